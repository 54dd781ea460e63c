"""How editors save: what a rename in `live/` does to notes.

Owns the steps by which one note stays one object. Some editors move the note aside and write a new file; others write a
temporary file and rename it over the note. A note that was moved aside is parked: its object stays in the bucket until
it has a new version, or the editor's backup is removed. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.tree.body import Body

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.space.live import Live
    from livememfs.tree.space.note import NoteFile


async def set_aside(live: Live, note: NoteFile, name: str, new_name: str, existing: NoteFile | None) -> None:
    """An editor moves a file aside: it becomes local, and the note that it was is parked."""
    if existing is not None:
        await live.unlink(new_name)
    if note.key is not None and note.body.info is not None:
        note.body = await note._load(note.body)
        key = note.key
        live.known.forget(note)
        live.known.parked[name] = note.parks = key
        note.key = note.body.info = None
    live.known.local.pop(name, None)
    note.name = new_name
    live.known.local[new_name] = note


async def become(live: Live, note: NoteFile, name: str, new_name: str, existing: NoteFile | None) -> None:
    """A local file gets a note's name: it is that note's next version, or a new note."""
    key, written = live.known.parked.get(new_name), new_name
    if existing is not None:
        await existing.detach()
        if not note.local:  # meanwhile the save of its own close has ended, and made a note of it
            await rename_stored(live, note, new_name, existing)
            return
        key, written = existing.key, existing.written or new_name
        live.known.forget(existing)
    before = (note.name, note.written, note.parks)
    live.known.local.pop(name, None)
    note.name, note.written = new_name, written
    live.known.local[new_name] = note
    try:
        if key is not None:
            await take_over(live, note, key)
        note.body.mark_dirty()
        await note.flush(note.body)
    except errors.LiveMemError:
        # The editor is told that the rename failed, so the file must still be where it was, with its bytes.
        live.known.local.pop(new_name, None)
        note.name, note.written, note.parks = before
        note.key = note.body.info = None
        live.known.local[name] = note
        raise


async def rename_stored(live: Live, note: NoteFile, new_name: str, existing: NoteFile | None) -> None:
    """A stored note gets another second name; a note that had it is replaced."""
    if existing is not None:
        await _make_way(live, existing, note)
    if existing is None or existing.local:
        live.known.forget_stored(note.name)
        await note.rename(new_name)
        live.known.stored[note.name] = note
        if note.name != new_name:
            live.known.aliases[new_name] = note.name
        return
    old_key, old_info = note.key, note.body.info
    assert old_key is not None  # a stored note has a key
    assert old_info is not None  # and a version
    live.known.forget(note)
    note.key, note.body = existing.key, Body(existing.body.info, note.body.value())
    note.written = existing.written
    note.body.mark_dirty()
    live.known.local[new_name] = note
    await note.flush(note.body)
    live.context.replica.remove(old_key, base=old_info)


async def _make_way(live: Live, existing: NoteFile, note: NoteFile) -> None:
    """Take `existing` out of the tree, so that the stored `note` can have its name."""
    await existing.detach()  # first: a save on its way may make a note of a draft, or a new version of either
    try:
        if not existing.local:  # `note` will be saved under its key, which needs the bytes
            note.body = await note._load(note.body)
    except BaseException:
        existing.attach()
        raise
    live.known.forget(existing)


async def take_over(live: Live, note: NoteFile, key: str) -> None:
    """Make a new file the next version of the note with this key."""
    info = await live.context.stored(key)
    if info is not None:
        note.key, note.body.info = key, info
        note.body.mark_dirty()


async def abandon(live: Live, key: str) -> ObjectInfo | None:
    """A backup is removed: what is to be removed with it. That is the parked note, when no file took its name."""
    if key not in live.known.parked.values() or any(other.key == key for other in live.known.local.values()):
        return None
    live.known.parked = {name: parked for name, parked in live.known.parked.items() if parked != key}
    return await live.context.stored(key)
