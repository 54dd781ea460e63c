"""A proposal: an object that a digest, an observer or a source of little trust would write, until a person decides.

Owns where proposals lie, `{space}/_proposals/{name}.json`, where decisions are kept, `{space}/_ledger/decided/`
(watchers ignore the ledger, so many decisions cost them nothing), and the form of both, which is one: a decision is the
proposal with what became of it. A proposal is whole, so that any host can carry it out. Refuses targets that are no
memory, note, observation or summary of a session. Pure; any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal

from livememfs.records import keys
from livememfs.records.metadata import META_TRUST
from livememfs.records.trust import BY_KIND, USUAL, Trust, trust_of
from livememfs.text.fields import split
from livememfs.text.foreign import Unreadable, build, read_object
from livememfs.text.times import iso

FORM = 1
DECIDED = "decided"
"""The folder of a ledger with the decisions."""
Decision = Literal["", "accepted", "refused"]
_KINDS = ("memory", "note", "observation", "session")
_SUFFIX, DECIDED_SUFFIX = ".json", ".decided"


def prefix(space: str) -> str:
    """`{space}/_proposals/`, with the slash."""
    return f"{space}/{keys.PROPOSALS}/"


def key_of(space: str, name: str) -> str:
    """`{space}/_proposals/{name}.json`: what waits for a decision."""
    return f"{prefix(space)}{name}{_SUFFIX}"


def name_in(key: str) -> str:
    """The name of the proposal that waits under a key; empty for every other key."""
    folder, _, last = key.rpartition("/")
    is_one = folder.endswith(f"/{keys.PROPOSALS}") and folder.count("/") == 1 and last.endswith(_SUFFIX)
    return last.removesuffix(_SUFFIX) if is_one else ""


def decided_prefix(space: str) -> str:
    """`{space}/_ledger/decided/`, with the slash."""
    return f"{keys.ledger_prefix(space)}{DECIDED}/"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One proposal, or one decision.

    :target:     the key of the object it is for, relative to the space
    :content:    the whole new object, as text
    :meta:       the user metadata of the new object: its stamp of trust
    :base:       the etag of the version that it was made from; empty: there was none
    :was:        the text of that version
    :by:         who proposes: a run or an observer
    :why:        from what: notes, a session
    :at:         since when it waits
    :decision:   empty while it waits
    :decided_by: who decided, on which host
    """

    target: str
    content: str
    by: str
    why: str
    at: datetime
    meta: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    was: str = ""
    decision: Decision = ""
    decided_by: str = ""
    decided_at: datetime | None = None
    form: int = FORM

    @property
    def name(self) -> str:
        """By this people call it: the name of what it is for, without `.md`; of a summary, that of the session."""
        folder, _, last = self.target.rpartition("/")
        is_summary = folder.startswith(f"{keys.SESSIONS}/")
        return f"summary_{folder.rpartition('/')[2]}" if is_summary else last.removesuffix(".md")

    @property
    def folder(self) -> str:
        """The folder that it is for, relative to the space."""
        return self.target.rpartition("/")[0]

    @property
    def trust(self) -> Trust:
        """Whose words it has."""
        return trust_of(self.meta, split(self.content)[0], BY_KIND.get(self.target.partition("/")[0], USUAL))

    def decided_key(self, space: str) -> str:
        """The key of the decision about exactly this: the same content for the same target has the same."""
        said = "\0".join((self.target, self.base, self.content)).encode("utf-8", "surrogatepass")
        return f"{decided_prefix(space)}{self.name}-{blake2b(said, digest_size=8).hexdigest()}{DECIDED_SUFFIX}"

    def decided(self, decision: Decision, by: str, now: datetime) -> Proposal:
        """The decision about it."""
        return replace(self, decision=decision, decided_by=by, decided_at=now)

    def render(self) -> bytes:
        """Its object: JSON, one line for each field."""
        values: dict[str, Any] = asdict(self)
        values |= {"at": iso(self.at), "decided_at": iso(self.decided_at) if self.decided_at else None}
        lines = [f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "backslashreplace")

    @classmethod
    def parse(cls, data: bytes, space: str) -> Proposal:
        """The proposal in an object of a space. Raises Unreadable, also for a target that nobody may propose."""
        values = read_object(data)
        if values.get("form") != FORM:
            raise Unreadable(f"it is not a proposal of form {FORM}")
        given = build(cls, {name: values[name] for name in (each.name for each in fields(cls)) if name in values})
        if not is_target(space, given.target):
            raise Unreadable("its target is no memory, note, observation or summary")
        stamped = {name: value for name, value in given.meta.items() if name == META_TRUST}
        return replace(given, meta=stamped)


def is_target(space: str, target: str) -> bool:
    """Whether an object at this place of a space may be proposed."""
    parsed = keys.parse(f"{space}/{target}")
    is_summary = parsed.kind != "session" or target.endswith(f"/{keys.SUMMARY}")
    return parsed.space == space and parsed.kind in _KINDS and is_summary and target.isprintable()
