"""`live/`: write a file, and it is a note.

Owns the names of one space's notes: canonical names (what the bucket has), second names (what a user wrote) and names
that stay on this machine (drafts, editors' litter). `editing` has the steps by which editors save. Refuses directories
(EPERM), but for those of sandboxes, and moves out of `live/` (EXDEV, so that tools copy). Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.cache.listing import Heard
from livememfs.cache.presence import is_unheard
from livememfs.cache.replica import Listing
from livememfs.records import keys, names
from livememfs.records.metadata import META_NAME
from livememfs.records.sealing import Form
from livememfs.store.base import ObjectInfo
from livememfs.tree.context import Context
from livememfs.tree.node import AttrChange, Caller, Directory, Node, check_name, crossing
from livememfs.tree.objectfile import lose, node_of
from livememfs.tree.plain import PlainDirectory, made_by
from livememfs.tree.sandbox import Places
from livememfs.tree.space import editing
from livememfs.tree.space.note import NoteFile


class KnownNotes:
    """The notes of one folder that somebody holds, and the names of notes that only this mount knows.

    `stored` has notes of the bucket by canonical name; `local` keeps drafts and litter alive, by their name; `aliases`
    leads from a written name to the canonical one; `parked` from the name of a note that was moved aside to its key.
    """

    __slots__ = ("aliases", "local", "parked", "stored")

    def __init__(self) -> None:
        self.stored: WeakValueDictionary[str, NoteFile] = WeakValueDictionary()
        self.local: dict[str, NoteFile] = {}
        self.aliases: dict[str, str] = {}
        self.parked: dict[str, str] = {}

    def written_names(self, canonical: str) -> list[str]:
        """The second names under which a note is known here."""
        return [name for name, known in self.aliases.items() if known == canonical]

    def unsaved(self) -> list[NoteFile]:
        """Notes here with content that is not in the bucket."""
        return [note for note in {*self.local.values(), *self.stored.values()} if note.unsaved]

    def sealed(self, note: NoteFile) -> None:
        """A note is in the bucket: from now on it is found under its canonical name and the written one."""
        assert note.key is not None  # it was just stored
        canonical = note.key.rpartition("/")[2]
        self.local = {name: other for name, other in self.local.items() if other is not note}
        self.parked.pop(note.written, None)
        self.parked.pop(canonical, None)
        if note.name != canonical and self.stored.get(note.name) is note:  # its object has another name now
            del self.stored[note.name]
            self.aliases = {name: canonical if of == note.name else of for name, of in self.aliases.items()}
        self.stored[canonical] = note
        if note.written and note.written != canonical:
            self.aliases[note.written] = canonical
        note.name = canonical

    def forget(self, note: NoteFile) -> None:
        """The note has no name any more."""
        self.local = {name: other for name, other in self.local.items() if other is not note}
        for canonical in [name for name, other in self.stored.items() if other is note]:
            self.forget_stored(canonical)

    def forget_stored(self, canonical: str) -> None:
        """No note has this canonical name any more, nor the written names that led to it."""
        self.stored.pop(canonical, None)
        self.aliases = {name: known for name, known in self.aliases.items() if known != canonical}


class Live(Directory):
    """The notes of one space."""

    __slots__ = ("_places", "context", "form", "known", "prefix", "rule", "space")

    def __init__(self, parent: Directory, context: Context, space: str, form: Form) -> None:
        super().__init__(parent, form.folder)
        self.context = context
        self.form = form
        self.prefix = f"{space}/{form.folder}/"
        self.space = space
        self.rule = f"{form.folder}/ holds files only, directly"
        self.known = KnownNotes()
        self._places = Places(self)

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode, owner and times of the folder itself are accepted and not kept: it is the space's."""

    def shows(self, name: str) -> bool:
        """Whether an object of this name is shown."""
        return name not in ("", keys.KEEP)

    def make(self, name: str, info: ObjectInfo | None) -> NoteFile:
        """The node of a file here; `info` None: it is new."""
        return NoteFile(self, name, self.context, info)

    # --- looking ----------------------------------------------------------------------------------------------

    async def child(self, name: str) -> Node:
        return self._places.get(name) or await self.file(name)

    async def file(self, name: str) -> NoteFile:
        """The file of that name. NotFound."""
        check_name(name, self.path_of(name))
        if name in self.known.local:
            return self.known.local[name]
        if is_unheard(self.context.replica.names, self.prefix):
            return self._written_here(name)
        try:
            listing = await self._listing()
        except (errors.Throttled, errors.Unreachable):
            return self._written_here(name)
        canonical = name if name in listing.objects and self.shows(name) else await self._canonical(name, listing)
        info = listing.objects.get(canonical) if canonical is not None else None
        if canonical is None or info is None or not self.shows(canonical):
            raise errors.NotFound(path=self.path_of(name))
        if info.meta is None:  # one file was asked for: get its exact time, since it will be read
            with suppress(errors.Unreachable, errors.Throttled):
                await self.context.replica.fetch([info])
            info = listing.objects.get(canonical, info)
        note = self._note(canonical, info)
        if name != canonical:
            note.written = name
        return note

    def _written_here(self, name: str) -> NoteFile:
        """A note of this machine that waits for a bucket whose names were never heard. NotFound.

        Nobody knows then what else is there. A kernel that is told so looks no further, and could not even make a note:
        it asks for the name first.
        """
        note = self.known.stored.get(self.known.aliases.get(name, name))
        if note is None or note.key is None or self.context.replica.journal.ops.newest(note.key) is None:
            raise errors.NotFound(path=self.path_of(name))
        return note

    async def children(self) -> Sequence[tuple[str, Node]]:
        listing = await self._listing()
        shown = {name: self._note(name, info) for name, info in listing.objects.items() if self.shows(name)}
        shown.update(self.known.local)
        return sorted(shown.items())

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        listing = await self._listing()
        nodes: dict[str, Node] = {
            name: self._note(name, listing.objects[name]) for name in list(self.known.stored) if name in listing.objects
        }
        nodes |= self.known.local
        if not nodes:
            return [named for named in listing.items() if self.shows(named[0])]
        shown: dict[str, Node | ObjectInfo] = {**dict(listing.items()), **nodes}
        return [(name, shown[name]) for name in sorted(shown) if self.shows(name)]

    def overhear(self, heard: Heard) -> AbstractContextManager[None]:
        return self.context.replica.names.overhear(self.prefix, heard)

    def appear(self, name: str) -> Node | None:
        level = self.context.replica.names.levels.get(self.prefix)
        info = level.objects.get(name) if level is not None else None
        return self._note(name, info) if info is not None and self.shows(name) else self.met(name)

    async def _listing(self) -> Listing:
        """The objects of this folder, with the sentinel and the folder's own marker."""
        return await self.context.replica.names.listing(self.prefix)

    def _note(self, canonical: str, info: ObjectInfo) -> NoteFile:
        note = node_of(self.known.stored.get(canonical), info, lambda: self.make(canonical, info))
        self.known.stored[canonical] = note
        return note

    async def _canonical(self, name: str, listing: Listing) -> str | None:
        """The canonical name of the note that was written as `name`; None when there is none.

        A parked note is not found under the name that it had before.
        """
        if name in self.known.parked or names.is_litter(name):
            return None
        alias = self.known.aliases.get(name)
        if alias is not None and alias in listing.objects:
            return alias
        endings = self.form.endings(self.space, name)
        likely = {canonical for end in endings for canonical in listing.ending(end) if self.form.uid_of(canonical)}
        candidates = [listing.objects[canonical] for canonical in likely if self.shows(canonical)]
        infos = await self.context.replica.names.complete(candidates)
        for info in sorted(infos, key=lambda info: info.key, reverse=True):  # the newest first
            if (info.meta or {}).get(META_NAME) == name:
                self.known.aliases[name] = canonical = info.key.rpartition("/")[2]
                return canonical
        return None

    def steady(self) -> bool:
        return self.context.replica.names.watched(self.prefix)

    async def look(self) -> None:
        await self._listing()

    def stamp(self) -> object:
        level = self.context.replica.names.levels.get(self.prefix)
        return None if level is None else (level.serial, tuple(self.known.local), self.context.writes.count)

    def met(self, name: str) -> Node | None:
        return self._places.get(name) or self.known.local.get(name) or self.known.stored.get(name)

    def lose(self, name: str) -> bool:
        canonical = self.known.aliases.get(name, name)
        if name in self.known.local or not lose(self.known.stored, canonical):
            return False
        self.known.forget_stored(canonical)
        return True

    def has(self, name: str, node: Node) -> bool:
        return self.met(name) is node

    # --- creating, removing, renaming -------------------------------------------------------------------------

    async def create(self, name: str, mode: int, caller: Caller) -> NoteFile:
        check_name(name, self.path_of(name))
        above = self.parent
        assert isinstance(above, PlainDirectory)  # the space
        begins = await made_by(above, caller, mode)
        if await self._existing(name) is not None:
            raise errors.AlreadyExists(path=self.path_of(name))
        note = self.make(name, None)
        if self.context.ids.by_number:
            note.own = begins
        if name in self.known.parked:
            await editing.take_over(self, note, self.known.parked[name])
        self.known.local[name] = note
        return note

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        return await self._places.make(name, self.context.now_ns())

    async def rmdir(self, name: str) -> None:
        if not self._places.remove(name):
            await super().rmdir(name)

    async def unlink(self, name: str) -> None:
        note = await self.file(name)
        async with note.removing():
            info = note.body.info if note.parks is None else await editing.abandon(self, note.parks)
            key = note.key if note.parks is None else note.parks
            if key is not None and info is not None:
                await self.discard(key, info)
        self.known.forget(note)

    async def discard(self, key: str, info: ObjectInfo) -> None:
        """Remove the object of a removed file."""
        self.context.replica.remove(key, base=info)

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        if target is not self:
            raise crossing(self.path_of(name), target)
        check_name(new_name, self.path_of(new_name))
        note = await self.file(name)
        existing = await self._existing(new_name)
        if existing is note:
            return
        if existing is not None and not replace:
            raise errors.AlreadyExists(path=self.path_of(new_name))
        if names.is_litter(new_name):
            await editing.set_aside(self, note, name, new_name, existing)
        elif note.local:
            await editing.become(self, note, name, new_name, existing)
        else:
            await editing.rename_stored(self, note, new_name, existing)

    async def _existing(self, name: str) -> NoteFile | None:
        try:
            return await self.file(name)
        except errors.NotFound:
            return None
