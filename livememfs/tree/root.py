"""The root of a mount: spaces, ordinary prefixes, `.livememfs/`, and the backups.

Owns which prefix is a space (it has a `_meta.json`). `mkdir` makes a space, or an empty directory for a sandbox.
Refuses ordinary files at the root, names that no space can have, and every change of a backup; hides `_system`. Trio
thread only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs import errors
from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.records.names import STATE, check_space_name
from livememfs.spaces import making as spaces
from livememfs.store.base import ObjectInfo
from livememfs.tree import registry
from livememfs.tree.audit import FOR_PROGRAMS, AuditFile, AuditPage
from livememfs.tree.audit import NAME as AUDIT
from livememfs.tree.computed import ComputedFile, ReadOnlyDirectory
from livememfs.tree.context import Context
from livememfs.tree.exchange import MachineHook
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, File, Ids, Node, Symlink, check_name
from livememfs.tree.objectfile import ObjectFile
from livememfs.tree.plain import DIRECTORY_MODE, PlainDirectory, expect_free
from livememfs.tree.plainfile import PlainObject
from livememfs.tree.recovered import RecoveredDirectory
from livememfs.tree.rejected import NAME as REJECTED
from livememfs.tree.rejected import RejectedDirectory
from livememfs.tree.sandbox import Places
from livememfs.tree.space.bank import StoredDirectory
from livememfs.tree.space.control import JournalWait
from livememfs.tree.space.note import NoteFile
from livememfs.tree.space.root import Space
from livememfs.tree.space.search import NAME as SEARCH
from livememfs.tree.space.search import SearchDirectory
from livememfs.tree.space.stale import StaleMemories
from livememfs.tree.veil import veiled

if TYPE_CHECKING:
    from livememfs.records.access import Access

log = structlog.get_logger("livememfs.tree")

SPECIAL = frozenset({keys.SYSTEM, keys.BACKUPS, SEARCH})
"""Prefixes that are no ordinary directories."""
WHY = "it is a backup; `livememfs backup` restores and removes them"
LISTED_AT_ONCE = 16
RETRY_SECONDS = 1.0
ROOT_SECONDS = 1.0
"""How old the listing of the root may be when somebody lists it, or asks for a name that it does not have."""


@dataclass(frozen=True)
class TreeStatistics:
    """What the tree holds: spaces met, files that were closed and whose bytes are not in the bucket."""

    spaces: int
    unsaved: int


class Root(PlainDirectory):
    """The mount's top directory."""

    __slots__ = ("_backups", "_places", "_search", "_spaces", "state")

    def __init__(self, context: Context) -> None:
        super().__init__(None, "", context, "")
        self._spaces: dict[str, Space] = {}
        self._backups = StoredDirectory(self, keys.BACKUPS, context, f"{keys.BACKUPS}/", WHY)
        self._search = SearchDirectory(self, SEARCH, context, "", self._readable)
        self.state = _state_directory(self, context)
        self._places = Places(self)

    async def _readable(self) -> Sequence[str]:
        """The spaces there are."""
        listing = await self.context.replica.names.listing("", max_age=ROOT_SECONDS)
        names = [name for name in sorted(listing.folders) if self.shows(name) and not name.startswith("_")]
        return [name for name in names if isinstance(await self.child(name), Space)]

    # --- looking ----------------------------------------------------------------------------------------------

    def shows(self, name: str) -> bool:
        return super().shows(name) and name not in SPECIAL and self.context.sees(name)

    async def child(self, name: str) -> Node:
        if name == STATE:
            return self.state
        if name == SEARCH:
            return self._search
        if place := self._places.get(name):
            return place
        if (known := await self._watched(name)) is not None:
            return known
        listing = await self.context.replica.names.listing("")
        if name not in listing.folders:  # nobody watches what is made at the root: ask, but not all the time
            listing = await self.context.replica.names.listing("", max_age=ROOT_SECONDS)
        if name == keys.BACKUPS and name in listing.folders and self.context.sees(name):
            return self._backups
        if name in listing.folders and self.shows(name) and not name.startswith("_"):
            below = await self.context.replica.names.listing(f"{name}/")
            if keys.META in below.objects:
                known = self._spaces.get(name)
                if known is None:
                    known = self._spaces[name] = Space(self, self.context, name)
                return known
        # Nothing may be awaited from here on: another host may make a space meanwhile. It would pass for an ordinary
        # directory, and notes would be written into it as ordinary files.
        self._spaces.pop(name, None)
        check_name(name, self.path_of(name))
        if not self.shows(name):
            raise errors.NotFound(path=self.path_of(name))
        return await self.known.look_up(name, listing)

    async def _watched(self, name: str) -> Space | None:
        """A space that is looked at anyhow: as long as it has its record, nobody need ask whether it is there."""
        known, names = self._spaces.get(name), self.context.replica.names
        if known is None or not self.shows(name) or not names.watched(f"{name}/"):
            return None
        return known if keys.META in (await names.listing(f"{name}/")).objects else None

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        return await self.children()

    def stamp(self) -> object:
        return None

    def met(self, name: str) -> Node | None:
        if name == SEARCH:
            return self._search
        if name == keys.BACKUPS:
            return self._backups
        return self._places.get(name) or self._spaces.get(name) or super().met(name)

    def lose(self, name: str) -> bool:
        self._spaces.pop(name, None)
        return super().lose(name)

    async def meet(self, at_most: int) -> None:
        """Look at some of the spaces, as `children` would. Failures of the store are ignored."""
        level = self.context.replica.names.levels.get("")
        names = [name for name in sorted(level.folders if level is not None else ()) if self.shows(name)][:at_most]

        async def look(name: str) -> None:
            with suppress(errors.LiveMemError):
                await self.child(name)

        await for_each(names, look, at_once=LISTED_AT_ONCE)

    async def children(self) -> Sequence[tuple[str, Node]]:
        listing = await self.context.replica.names.listing("", max_age=ROOT_SECONDS)
        nodes: dict[str, Node] = {STATE: self.state, SEARCH: self._search}

        async def look(name: str) -> None:
            try:
                nodes[name] = await self.child(name)
            except errors.NotFound:
                return

        names = [name for name in {*listing.folders, *listing.objects} if self.shows(name)]
        await for_each(names, look, at_once=LISTED_AT_ONCE)
        if keys.BACKUPS in listing.folders and self.context.sees(keys.BACKUPS):
            nodes[keys.BACKUPS] = self._backups
        return sorted(nodes.items())

    def permit(
        self, node: Node, name: str = "", *, writing: bool, making: bool = False, access: Access | None = None
    ) -> None:
        """Whether a token allows a request on a node that the caller knows already, or on a name in it.

        The token is the mount's, or that of `access`. NotFound for a path that it does not see, ReadOnly for a change
        that it does not allow, Forbidden for a token that is not valid any more, and for `making` a name that it does
        not see.
        """
        access = access or self.context.access()
        if not access.may("read"):
            raise errors.Forbidden(path=node.path or "/", name=access.name or "the token", permission="read")
        if not registry.is_there(node.path, access):
            raise errors.NotFound(path=node.path)
        if writing and not access.may("write") and not self._is_question(node):
            raise errors.ReadOnly("the token may only read", path=node.path or "/")
        if name and isinstance(node, Directory) and not registry.is_there(path := node.path_of(name), access):
            raise (
                errors.Forbidden(path=path, name=access.name, permission="write")
                if making
                else errors.NotFound(path=path)
            )

    def _is_question(self, node: Node) -> bool:
        """Whether the registry says that writing to this node only asks a question."""
        space = self._space_of(node)
        return space is not None and registry.asks(node.path, (space.name,))

    def _space_of(self, node: Node) -> Space | None:
        """The space that a node is, or is in."""
        top = node
        while top.parent is not None and top.parent is not self:
            top = top.parent
        return top if isinstance(top, Space) else None

    def owned(self, node: Node, attrs: Attrs) -> Attrs:
        """The attributes of a node in a space: what nobody owns by itself is the space's, and as open as the space is.

        So `chgrp` and `chmod` of a space let a group of agents in, to `live/`, the control files and the hooks as well.
        """
        within = self._space_of(node)
        if attrs.uid is not None or within is None or within is node or attrs.kind == "symlink":
            return attrs
        space = within.listed_attrs()
        mode = attrs.mode
        if not isinstance(node, ObjectFile | PlainDirectory | PlainObject):
            allowed = space.mode if attrs.kind == "directory" else space.mode & 0o666
            mode = allowed if attrs.mode & 0o222 else allowed & 0o555
        return replace(attrs, uid=space.uid, gid=space.gid, mode=mode)

    def ids_in(self, directory: Directory) -> Ids:
        """Whose the files in a directory are that carry no owner: those of the space, as `owned` has it."""
        ids, within = self.context.ids, self._space_of(directory)
        if not ids.by_number or within is None:
            return ids
        space = within.listed_attrs()
        return Ids(*ids.shown(space.uid, space.gid), by_number=True)

    # --- changing ---------------------------------------------------------------------------------------------

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        if name.startswith("."):
            return await self._places.make(name, self.context.now_ns())
        check_space_name(name)
        await expect_free(self, name)
        try:
            await spaces.create(self.context.replica, self.context.clock, name, owner=self.context.owner, later=True)
        except errors.AlreadyExists:
            await self.context.replica.names.listing("", max_age=0.0)  # the caller must find what exists already
            raise
        # Known names stay usable while the store cannot be reached: make the new space's names known at once.
        await self.context.replica.names.listing(f"{name}/")
        self.touch()
        made = self._spaces[name] = Space(self, self.context, name)
        ids = self.context.ids
        given = ids.by_number and (caller.uid, caller.gid) != (ids.uid, ids.gid)
        if given or mode != DIRECTORY_MODE:
            owner = (caller.uid, caller.gid) if given else (None, None)
            await made.change(AttrChange(mode, *owner), caller)
        return made

    async def rmdir(self, name: str) -> None:
        if self._places.remove(name):
            return
        node = await self.child(name)
        if not isinstance(node, Space):
            await super().rmdir(name)
            return
        if node.unsaved_files(rules=False):
            raise errors.NotEmpty("it has files that are not saved yet", path=name)
        await spaces.remove_empty(self.context.replica, name)
        self._spaces.pop(name, None)
        self.touch()

    async def create(self, name: str, mode: int, caller: Caller) -> File:
        raise self._only_spaces(name)

    async def symlink(self, name: str, target: str, caller: Caller) -> Symlink:
        raise self._only_spaces(name)

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        if name == keys.BACKUPS:
            raise self._backups.refuse("moving it")
        detail = "what stands at the root cannot be moved; `livememfs space export` copies a space out"
        raise errors.NotPermitted(path=name, detail=detail)

    def check_new(self, name: str) -> None:
        raise self._only_spaces(name)

    def _only_spaces(self, name: str) -> errors.LiveMemError:
        return errors.NotPermitted(path=name, detail="the root holds spaces only; `mkdir` makes one")

    # --- the end ----------------------------------------------------------------------------------------------

    def unsaved_files(self) -> list[ObjectFile]:
        """Every file of the mount whose bytes are not in the bucket."""
        files: list[ObjectFile] = list(self.known.unsaved_below())
        for space in self._spaces.values():
            files += space.unsaved_files()
        return files

    async def keep_drafts(self) -> None:
        """Keep what was written to open files where the next process finds it after a crash. NoSpace."""
        context, paths, drafts = self.context, set[str](), self.context.replica.drafts
        for file in list(context.written):
            body = file.body
            if not body.dirty or not body.loaded or file.orphaned:
                context.written.discard(file)
                continue
            path, changes = file.draft_path, body.changes
            paths.add(path)
            if drafts.lacks(path, body.size, changes):
                drafts.keep(path, await file.draft(), changes)
        drafts.drop_all_but(paths)

    async def drain(self) -> list[str]:
        """Save what could not be saved so far, again and again until it is or the caller's deadline ends it.

        Returns the paths that the bucket refuses for good, for instance a note that is not text.
        """
        refused: dict[ObjectFile, str] = {}
        while True:
            waiting = [file for file in self.unsaved_files() if file not in refused]
            if not waiting:
                return sorted(refused.values())
            for file in waiting:
                try:
                    await file.flush(file.body)
                except (errors.Unreachable, errors.Throttled):
                    break
                except errors.LiveMemError as error:
                    if isinstance(error, errors.NoSpace) and len(self.context.replica.journal.ops):
                        break  # uploads of the journal will make room
                    refused[file] = file.path
                    log.info("a file could not be saved", path=file.path, reason=str(error))
                else:
                    if file.body.dirty:
                        refused[file] = file.path
                    continue
            else:
                continue
            await trio.sleep(RETRY_SECONDS)

    def statistics(self) -> TreeStatistics:
        """Counters, cheap: a hundred thousand notes that are known are not looked at."""
        failed = (file.unsaved if isinstance(file, NoteFile) else file.body.dirty for file in self.context.unsaved)
        return TreeStatistics(len(self._spaces), sum(failed))


class StateDirectory(ReadOnlyDirectory):
    """`.livememfs/`: each user sees the names that the token allows."""

    __slots__ = ("context",)

    def __init__(self, parent: Directory, context: Context) -> None:
        super().__init__(parent, STATE)
        self.context = context

    async def children(self) -> Sequence[tuple[str, Node]]:
        return [(name, node) for name, node in await super().children() if self.context.sees(node.path)]


def _state_directory(root: Root, context: Context) -> StateDirectory:
    def sees(path: str) -> bool:
        # A line without a path, or with the path of a file outside, may name any space.
        return context.sees(path) if path.strip("/") and path[0] != "/" else context.access().everywhere

    async def status() -> bytes:
        shown = context.status()
        if not context.access().everywhere:
            shown = veiled(shown, context.sees)
        return (json.dumps(shown, ensure_ascii=False, indent=2, default=str) + "\n").encode()

    async def failed() -> bytes:
        return context.errors.errors(sees)

    async def conflicts() -> bytes:
        return context.errors.conflicts(sees)

    async def changes() -> bytes:
        lines = [
            {"key": change.key, "kind": change.kind, "etag": change.etag, "origin": change.origin}
            for change in context.replica.changes.recent
            if context.sees(change.key)
        ]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()

    figures = b""

    async def metrics() -> bytes:
        nonlocal figures
        figures = await context.metrics()
        return figures

    state = StateDirectory(root, context)
    contents = {
        "status.json": status,
        "errors.ndjson": failed,
        "conflicts.ndjson": conflicts,
        "changes.ndjson": changes,
    }
    for name, content in contents.items():
        state.nodes[name] = ComputedFile(state, name, context, content)
    # The figures are costly: `stat` shows the size of the last ones.
    state.nodes["metrics"] = ComputedFile(state, "metrics", context, metrics, lambda: figures)
    for name in (AUDIT, FOR_PROGRAMS):
        audits = AuditPage(context, lambda folder: StaleMemories(context, folder).found, as_json=name == FOR_PROGRAMS)
        state.nodes[name] = AuditFile(state, name, context, audits)
    state.nodes["hooks"] = doors = ReadOnlyDirectory(state, "hooks")
    doors.nodes = {event: MachineHook(doors, event, context, "") for event in context.hooks.events if "." in event}
    state.nodes["recovered"] = RecoveredDirectory(state, "recovered", context)
    state.nodes[REJECTED] = RejectedDirectory(state, REJECTED, context)
    state.nodes["journal.wait"] = JournalWait(state, "journal.wait", context)
    return state
