"""`live/`: write a file, and it is a note.

Owns the names of one space's notes: canonical names (what the bucket has), second names (what a user wrote) and names
that stay on this machine (drafts, editors' litter). Whatever an editor does to save, one note stays one object: a note
moved aside is parked, and the file that takes its name is its next version. Refuses directories (EPERM), but for those
of sandboxes, and moves out of `live/` (EXDEV, so that tools copy). Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.records import keys, names
from livememfs.records.metadata import META_NAME
from livememfs.records.sealing import Form, says_nothing
from livememfs.tree.body import Body
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, Node, check_name, crossing
from livememfs.tree.sandbox import Places
from livememfs.tree.space.note import NoteFile

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from livememfs.cache.listing import Heard
    from livememfs.cache.replica import Listing
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.context import Context


class Live(Directory):
    """The notes of one space."""

    __slots__ = ("_aliases", "_local", "_notes", "_parked", "_places", "context", "form", "prefix", "space")

    def __init__(self, parent: Directory, context: Context, space: str, form: Form) -> None:
        super().__init__(parent, form.folder)
        self.context = context
        self.form = form
        self.prefix = f"{space}/{form.folder}/"
        self.space = space
        self._notes: WeakValueDictionary[str, NoteFile] = WeakValueDictionary()
        self._local: dict[str, NoteFile] = {}
        self._aliases: dict[str, str] = {}
        self._parked: dict[str, str] = {}
        self._places = Places(self)

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.NotPermitted(path=self.path, detail=f"{operation}: {self.name}/ holds files only, directly")

    async def attrs(self) -> Attrs:
        return Attrs(kind="directory", mode=0o755, size=0, mtime_ns=0, nlink=2)

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
        local = self._local.get(name)
        if local is not None:
            return local
        listing = await self._listing()
        canonical = name if name in listing.objects and self.shows(name) else await self._canonical(name, listing)
        info = listing.objects.get(canonical) if canonical is not None else None
        if canonical is None or info is None or not self.shows(canonical):
            raise errors.NotFound(path=self.path_of(name))
        if info.meta is None:  # asked for by itself: then its time is to be exact, and it will be read
            with suppress(errors.Unreachable, errors.Throttled):
                await self.context.replica.fetch([info])
            info = listing.objects.get(canonical, info)
        note = self._note(canonical, info)
        if name != canonical:
            note.written = name
        return note

    async def children(self) -> Sequence[tuple[str, Node]]:
        listing = await self._listing()
        shown = {name: self._note(name, info) for name, info in listing.objects.items() if self.shows(name)}
        shown.update(self._local)
        return sorted(shown.items())

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        listing = await self._listing()
        nodes: dict[str, Node] = {
            name: self._note(name, listing.objects[name]) for name in list(self._notes) if name in listing.objects
        }
        nodes |= self._local
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
        """What the bucket has here, the sentinel and the folder's own marker included."""
        return await self.context.replica.names.listing(self.prefix)

    def _note(self, canonical: str, info: ObjectInfo) -> NoteFile:
        known = self._notes.get(canonical)
        if known is None or not known.accepts(info):
            if known is not None:
                known.orphaned = True
            known = self.make(canonical, info)
            self._notes[canonical] = known
        return known

    async def _canonical(self, name: str, listing: Listing) -> str | None:
        """The canonical name of the note that was written as `name`; None when there is none.

        A note parked under another name does not answer to the one it left.
        """
        if name in self._parked or names.is_litter(name):
            return None
        known = self._aliases.get(name)
        if known is not None and known in listing.objects:
            return known
        endings = self.form.endings(self.space, name)
        likely = {found for end in endings for found in listing.ending(end) if self.form.uid_of(found)}
        return await self._named(name, likely, listing)

    async def _named(self, name: str, candidates: set[str], listing: Listing) -> str | None:
        """The newest of `candidates` whose metadata says that it was written as `name`."""
        infos = await self.context.replica.names.complete(
            [listing.objects[found] for found in candidates if self.shows(found)]
        )
        for info in sorted(infos, key=lambda info: info.key, reverse=True):
            if (info.meta or {}).get(META_NAME) == name:
                found = info.key.rpartition("/")[2]
                self._aliases[name] = found
                return found
        return None

    def steady(self) -> bool:
        return self.context.replica.names.watched(self.prefix)

    async def look(self) -> None:
        await self._listing()

    def stamp(self) -> object:
        level = self.context.replica.names.levels.get(self.prefix)
        return None if level is None else (level.serial, tuple(self._local), self.context.writes.count)

    def met(self, name: str) -> Node | None:
        return self._places.get(name) or self._local.get(name) or self._notes.get(name)

    def has(self, name: str, node: Node) -> bool:
        return self.met(name) is node

    def written_names(self, canonical: str) -> list[str]:
        """The second names under which a note is known here."""
        return [name for name, known in self._aliases.items() if known == canonical]

    def unsaved(self) -> list[NoteFile]:
        """Notes here with content that is not in the bucket. Litter is not meant to be."""
        return [
            note
            for note in {*self._local.values(), *self._notes.values()}
            if note.body.dirty and not names.is_litter(note.name) and not says_nothing(note.body.value())
        ]

    # --- creating and removing --------------------------------------------------------------------------------

    async def create(self, name: str, mode: int, caller: Caller) -> NoteFile:
        check_name(name, self.path_of(name))
        try:
            await self.file(name)
        except errors.NotFound:
            pass
        else:
            raise errors.AlreadyExists(path=self.path_of(name))
        note = self.make(name, None)
        parked = self._parked.get(name)
        if parked is not None:
            await self._continue(note, parked)
        self._local[name] = note
        return note

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        return await self._places.make(name, self.context.now_ns())

    async def rmdir(self, name: str) -> None:
        if not self._places.remove(name):
            await super().rmdir(name)

    async def _continue(self, note: NoteFile, key: str) -> None:
        """Make a new file the next version of the note that was moved aside to make room for it."""
        try:
            info = await self.context.replica.names.stat(key)
        except errors.ObjectMissing:
            return
        note.key = key
        note.body.info = info
        note.body.mark_dirty()

    def sealed(self, note: NoteFile) -> None:
        """A note is in the bucket: from now on it is found under its canonical name and the written one."""
        assert note.key is not None  # it was just stored
        canonical = note.key.rpartition("/")[2]
        self._local = {name: other for name, other in self._local.items() if other is not note}
        self._parked.pop(note.written, None)
        self._parked.pop(canonical, None)
        if note.name != canonical and self._notes.get(note.name) is note:  # its object has another name now
            del self._notes[note.name]
            self._aliases = {name: canonical if of == note.name else of for name, of in self._aliases.items()}
        self._notes[canonical] = note
        if note.written and note.written != canonical:
            self._aliases[note.written] = canonical
        note.name = canonical

    async def unlink(self, name: str) -> None:
        note = await self.file(name)
        async with note.removing():
            key, info = note.key, note.body.info
            if note.parks is not None:
                key, info = await self._abandoned(note.parks)
            if key is not None and info is not None:
                await self.discard(key, info)
        self._forget(note)

    async def discard(self, key: str, info: ObjectInfo) -> None:
        """Have a removed file's object go."""
        self.context.replica.remove(key, base=info)

    async def _abandoned(self, key: str) -> tuple[str | None, ObjectInfo | None]:
        """A backup goes. The note it parks goes with it only when nothing took its place."""
        if key not in self._parked.values() or any(other.key == key for other in self._local.values()):
            return None, None
        self._parked = {name: parked for name, parked in self._parked.items() if parked != key}
        try:
            return key, await self.context.replica.names.stat(key)
        except errors.ObjectMissing:
            return None, None

    def _forget(self, note: NoteFile) -> None:
        self._local = {name: other for name, other in self._local.items() if other is not note}
        for canonical, other in list(self._notes.items()):
            if other is note:
                del self._notes[canonical]
                self._aliases = {name: known for name, known in self._aliases.items() if known != canonical}

    # --- renaming: how editors save ---------------------------------------------------------------------------

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
            await self._set_aside(note, name, new_name, existing)
        elif note.local:
            await self._become(note, name, new_name, existing)
        else:
            await self._rename_stored(note, new_name, existing)

    async def _existing(self, name: str) -> NoteFile | None:
        try:
            return await self.file(name)
        except errors.NotFound:
            return None

    async def _set_aside(self, note: NoteFile, name: str, new_name: str, existing: NoteFile | None) -> None:
        """An editor makes room: the file becomes local, and the note it was stays in the bucket until it has a new
        version, or the editor's backup is removed."""
        if existing is not None:
            await self.unlink(new_name)
        if note.key is not None and note.body.info is not None:
            note.body = await note._load(note.body)
            key = note.key
            self._forget(note)
            self._parked[name] = note.parks = key
            note.key = note.body.info = None
        self._local.pop(name, None)
        note.name = new_name
        self._local[new_name] = note

    async def _become(self, note: NoteFile, name: str, new_name: str, existing: NoteFile | None) -> None:
        """A local file gets a note's name: it is that note's next version, or a new note."""
        key, written = self._parked.get(new_name), new_name
        if existing is not None:
            await existing.detach()
            if not note.local:  # its own close was on its way, and has made a note of it meanwhile
                await self._rename_stored(note, new_name, existing)
                return
            key, written = existing.key, existing.written or new_name
            self._forget(existing)
        before = (note.name, note.written, note.parks)
        self._local.pop(name, None)
        note.name, note.written = new_name, written
        self._local[new_name] = note
        try:
            if key is not None:
                await self._continue(note, key)
            note.body.mark_dirty()
            await note.flush(note.body)
        except errors.LiveMemError:
            # The rename failed for whoever asked, so the file must still be where it was, with its bytes.
            self._local.pop(new_name, None)
            note.name, note.written, note.parks = before
            note.key = note.body.info = None
            self._local[name] = note
            raise

    async def _rename_stored(self, note: NoteFile, new_name: str, existing: NoteFile | None) -> None:
        """A stored note gets another second name; a note that had it is replaced."""
        if existing is not None:
            await self._make_way(existing, note)
        if existing is None or existing.local:
            self._notes.pop(note.name, None)
            self._aliases = {name: known for name, known in self._aliases.items() if known != note.name}
            await note.rename(new_name)
            self._notes[note.name] = note
            if note.name != new_name:
                self._aliases[new_name] = note.name
            return
        old_key, old_info = note.key, note.body.info
        assert old_key is not None  # a stored note has a key
        assert old_info is not None  # and a version
        self._forget(note)
        note.key, note.body = existing.key, Body(existing.body.info, note.body.value())
        note.written = existing.written
        note.body.mark_dirty()
        self._local[new_name] = note
        await note.flush(note.body)
        self.context.replica.remove(old_key, base=old_info)

    async def _make_way(self, existing: NoteFile, note: NoteFile) -> None:
        """Take a file out of the tree for a stored note; where that one gets its key, the bytes are here then."""
        await existing.detach()  # first: a close on its way makes a note of a draft, and new versions of either
        try:
            if not existing.local:
                note.body = await note._load(note.body)
        except BaseException:
            existing.attach()
            raise
        self._forget(existing)
