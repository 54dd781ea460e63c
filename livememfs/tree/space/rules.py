"""`_rules.md`: written once, then sealed.

Owns the draft of a space's rules while they do not exist, and the one conditional put that seals them. Refuses any
change after that (EROFS), and to keep what is private. Trio thread only.
"""

from __future__ import annotations

from livememfs.records import keys
from livememfs.records.posix import NOTHING
from livememfs.spaces import making as spaces
from livememfs.store.base import ObjectInfo
from livememfs.text.privacy import redaction as privacy
from livememfs.tree.body import Body
from livememfs.tree.context import Context
from livememfs.tree.node import Directory
from livememfs.tree.objectfile import ObjectFile

SEALED = "rules are sealed once written; livememfs space rules SPACE --replace FILE seals others"


class RulesFile(ObjectFile):
    """The rules of one space, or the draft that will be."""

    __slots__ = ("space",)
    why = SEALED

    def __init__(self, parent: Directory, context: Context, space: str, info: ObjectInfo | None) -> None:
        super().__init__(parent, keys.RULES, context, info, info.key if info is not None else None)
        self.space = space

    @property
    def sealed(self) -> bool:
        """Whether the bucket has them."""
        return self.key is not None

    def check_writable(self) -> None:
        if self.sealed:
            raise self.refuse("writing")

    async def save(self, body: Body) -> None:
        changes, data = body.changes, body.value()
        if not data:
            return  # `> _rules.md` says nothing yet
        if self.sealed:  # by a write after the close that sealed them
            raise self.refuse("writing")
        public, kinds = privacy.redact_file(data)
        info = await spaces.seal_rules(self.context.replica, self.space, public)
        self.key, body.info, body.saved = info.key, info, changes
        self.own = NOTHING
        if kinds:  # the writer's descriptor goes on seeing its own bytes
            self.context.errors.record("privacy", self.path, privacy.told(self.path, kinds))
            self.body = Body(info)

    async def draft(self) -> bytes:
        return privacy.redact_file(self.body.value())[0]
