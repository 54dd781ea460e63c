"""A space: its notes, its bank, its control files, its history, and the ordinary files that users keep in it.

Owns the names that mean something in a space. Every other name is an ordinary file or directory. Names that the layout
of the bucket needs are refused, so that no ordinary file ever takes one of them. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from livememfs import errors
from livememfs.records import keys
from livememfs.records.sealing import NoteForm
from livememfs.runs.history import History
from livememfs.runs.options import CONTROLS, RunKind
from livememfs.store.base import ObjectInfo
from livememfs.tree.computed import ComputedFile, ReadOnlyDirectory
from livememfs.tree.context import Context
from livememfs.tree.exchange import HookExchange, RecallExchange
from livememfs.tree.node import Caller, Directory, File, Node
from livememfs.tree.objectfile import ObjectFile, node_of
from livememfs.tree.plain import PlainDirectory
from livememfs.tree.space.bank import StoredDirectory, StoredFile
from livememfs.tree.space.collection import Collection
from livememfs.tree.space.control import Control, Wait
from livememfs.tree.space.guide import guide
from livememfs.tree.space.history import WINDOW, HistoryDirectory, WhyDirectory
from livememfs.tree.space.live import Live
from livememfs.tree.space.observations import ObservationsDirectory
from livememfs.tree.space.proposals import NAME as PROPOSALS
from livememfs.tree.space.proposals import Proposals
from livememfs.tree.space.rules import RulesFile
from livememfs.tree.space.search import NAME as SEARCH
from livememfs.tree.space.search import SearchDirectory
from livememfs.tree.space.sessions import SessionsDirectory

README = "README.md"
DIFF = f"{CONTROLS['consolidation']}.diff"
CONTEXT = "context.md"
RECALL = ".recall"
HOOKS = ".hooks"
HISTORY = ".history"
WHY = ".why"
OBJECTS = (keys.META, keys.SYNTHESIS)
RESERVED = frozenset({keys.LEDGER, keys.CHANGES, keys.INDEX, keys.PROPOSALS, keys.KEEP})


def wait_name(kind: RunKind) -> str:
    """The file of a space that is read to wait for runs of a kind."""
    return f"{CONTROLS[kind]}.wait"


class Space(PlainDirectory):
    """One space, at the root of the mount."""

    __slots__ = ("_fixed", "_objects", "_rules", "collections", "live", "space")

    def __init__(self, parent: Directory, context: Context, space: str) -> None:
        super().__init__(parent, space, context, f"{space}/")
        self.space = space
        self.live = Live(self, context, space, NoteForm())
        self._rules: RulesFile | None = None
        self._objects: dict[str, StoredFile] = {}
        bank = StoredDirectory(self, keys.BANK, context, keys.bank_prefix(space))
        history = History(context.replica, space, window=WINDOW)
        hooks = ReadOnlyDirectory(self, HOOKS)
        hooks.nodes = {event: HookExchange(hooks, event, context, space) for event in context.hooks.events}
        self._fixed: dict[str, Node] = {
            README: ComputedFile(self, README, context, self._readme),
            keys.LIVE: self.live,
            keys.BANK: bank,
            HISTORY: HistoryDirectory(self, HISTORY, history),
            WHY: WhyDirectory(self, WHY, context, space, history),
            CONTEXT: ComputedFile(self, CONTEXT, context, self._page, lambda: context.pages.last(space).encode()),
            RECALL: RecallExchange(self, RECALL, context, space),
            HOOKS: hooks,
            keys.OBSERVATIONS: ObservationsDirectory(self, context, space),
            keys.SESSIONS: SessionsDirectory(self, context, space),
            PROPOSALS: Proposals(self, context, space),
            SEARCH: SearchDirectory(self, SEARCH, context, space, self._itself),
        }
        for kind, name in CONTROLS.items():
            waiting = wait_name(kind)
            self._fixed[name] = Control(self, name, context, space, kind)
            self._fixed[waiting] = Wait(self, waiting, context, space, kind)
        family: dict[str, Collection] = {}
        for folder in keys.COLLECTIONS:
            family[folder] = Collection(self, context, space, folder, family)
        self.collections = list(family.values())
        self._fixed |= family

    async def _itself(self) -> Sequence[str]:
        return (self.space,)

    async def _readme(self) -> bytes:
        return guide(self.space)

    async def _page(self) -> bytes:
        return (await self.context.pages.page(self.space)).encode()

    async def _diff(self) -> bytes:
        return (self.context.consolidations.diff(self.space) or "").encode()

    # --- names ------------------------------------------------------------------------------------------------

    def shows(self, name: str) -> bool:
        taken = name in self._fixed or name in RESERVED or name in (keys.META, keys.RULES, keys.SYNTHESIS, DIFF)
        return super().shows(name) and not taken

    def check_new(self, name: str) -> None:
        super().check_new(name)
        if name in RESERVED:
            raise errors.NotPermitted(path=self.path_of(name), detail="this name is reserved in a space")
        if not self.shows(name):
            raise self._kept(name)

    def check_target(self, name: str) -> None:
        if name == keys.RULES and (self._rules is None or not self._rules.sealed):
            raise errors.CrossesKinds(path=self.path_of(name))  # `mv` then copies: rules are made by writing them
        super().check_target(name)

    async def child(self, name: str) -> Node:
        fixed = self._fixed.get(name)
        if fixed is not None:
            return fixed
        if name == keys.RULES:
            return await self._rules_file()
        if name in OBJECTS:
            return await self._object(name)
        if name == DIFF and self.context.consolidations.diff(self.space) is not None:
            return ComputedFile(self, DIFF, self.context, self._diff)
        return await super().child(name)

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        return await self.children()

    def stamp(self) -> object:
        return None

    def met(self, name: str) -> Node | None:
        own = self._fixed.get(name) or self._objects.get(name)
        if own is None and name == keys.RULES:
            own = self._rules
        return own or super().met(name)

    async def children(self) -> Sequence[tuple[str, Node]]:
        nodes = [*self._fixed.items(), *await super().children()]
        for name in (*OBJECTS, keys.RULES, DIFF):
            try:
                nodes.append((name, await self.child(name)))
            except errors.NotFound:
                continue
        return sorted(nodes, key=lambda item: item[0])

    async def _object(self, name: str) -> Node:
        """`_meta.json` or `_synthesis.md`."""
        listing = await self.context.replica.names.listing(self.prefix)
        info = listing.objects.get(name)
        if info is None:
            raise errors.NotFound(path=self.path_of(name))
        file = node_of(self._objects.get(name), info, lambda: StoredFile(self, name, self.context, info))
        self._objects[name] = file
        return file

    async def _rules_file(self) -> RulesFile:
        listing = await self.context.replica.names.listing(self.prefix)
        info = listing.objects.get(keys.RULES)
        known = self._rules
        if known is not None and (info is None or (known.sealed and known.accepts(info))):
            return known
        if info is None:
            raise errors.NotFound(path=self.path_of(keys.RULES))
        if known is not None:
            known.orphaned = True
        self._rules = RulesFile(self, self.context, self.space, info)
        return self._rules

    # --- changes ----------------------------------------------------------------------------------------------

    async def create(self, name: str, mode: int, caller: Caller) -> File:
        if name == keys.RULES:
            self._rules = RulesFile(self, self.context, self.space, None)
            return self._rules
        return await super().create(name, mode, caller)

    async def unlink(self, name: str) -> None:
        if name == keys.RULES and self._rules is not None and not self._rules.sealed:
            self._rules.orphaned = True
            self._rules = None
            return
        if name in self._fixed or name in (*OBJECTS, keys.RULES, DIFF):
            raise self._kept(name)
        await super().unlink(name)

    async def rmdir(self, name: str) -> None:
        if name in self._fixed:
            raise self._kept(name)
        await super().rmdir(name)

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        if name in self._fixed or name in (*OBJECTS, keys.RULES, DIFF):
            raise self._kept(name)
        await super().rename(name, target, new_name, replace=replace)

    def _kept(self, name: str) -> errors.LiveMemError:
        return errors.ReadOnly("livememfs keeps it", path=self.path_of(name))

    def unsaved_files(self, *, rules: bool = True) -> list[ObjectFile]:
        """Files whose content is not in the bucket; `rules`: those that are not sealed too."""
        files: list[ObjectFile] = list(self.known.unsaved_below())
        files += [note for folder in (self.live, *self.collections) for note in folder.known.unsaved()]
        if rules and self._rules is not None and self._rules.body.dirty and self._rules.body.size:
            files.append(self._rules)
        return files
