"""What is there before the measurement: a directory of many small files, and a space full of notes.

Owns their names and contents, which are the same in a folder and in a bucket. Refuses to use a mount for it: objects go
to the bucket itself. Main thread; `fill_bucket` starts trio for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio

from benchlib.workloads import NEEDLE, Sizes
from livememfs.records import keys
from livememfs.records.note import CATEGORIES, Note, canonical_name, uid8
from livememfs.records.space import Meta
from livememfs.store.base import Store

OBJECTS, NOTES = "bench-objects", "bench-notes"
SPACES = {"objects": OBJECTS, "notes": NOTES}
START = datetime(2026, 1, 1, tzinfo=UTC)
UPLOADS = 8


def files(sizes: Sizes) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the files that are listed."""
    for number in range(sizes.objects):
        yield f"file-{number:06}.txt", f"file {number}\n".encode()


def notes(sizes: Sizes) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the notes that are searched: as if four agents had written one a minute."""
    for number in range(sizes.notes):
        note = Note(
            timestamp=START + timedelta(minutes=number),
            agent=f"agent-{number % 4}",
            category=CATEGORIES[number % len(CATEGORIES)],
            tags=("bench",),
            space_id=NOTES,
            body=f"Note {number}: {NEEDLE}.\n" + "Nothing to be found in this line.\n" * 20,
        )
        yield canonical_name(note, uid8(NOTES, str(number))), note.render()


def fill_folder(root: Path, sizes: Sizes) -> None:
    """Make both spaces below `root`; in a mount, its `live/` comes with the space."""
    for space, folder, contents in ((OBJECTS, "list", files(sizes)), (NOTES, keys.LIVE, notes(sizes))):
        (root / space / folder).mkdir(parents=True, exist_ok=True)
        for name, data in contents:
            (root / space / folder / name).write_bytes(data)


def fill_bucket(store: Store, sizes: Sizes) -> None:
    """Make both spaces in a bucket, and close the store."""

    async def fill() -> None:
        objects = _objects(sizes)

        async def upload() -> None:
            for key, data in objects:
                await store.put(key, data)

        async with trio.open_nursery() as nursery:
            for _ in range(UPLOADS):
                nursery.start_soon(upload)
        await store.aclose()

    trio.run(fill)


def _objects(sizes: Sizes) -> Iterator[tuple[str, bytes]]:
    for space in (OBJECTS, NOTES):
        yield keys.meta_key(space), Meta(space, "made to be measured", "bench", START).render()
        for folder in (keys.LIVE, keys.BANK):
            yield keys.keep_key(space, folder), b""
    for name, data in files(sizes):
        yield f"{OBJECTS}/list/{name}", data
    for name, data in notes(sizes):
        yield keys.live_key(NOTES, name), data
