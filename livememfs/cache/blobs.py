"""Contents by version: immutable, on the local disk, with the hot ones in memory as well.

Owns the bytes of versions that were read or written, by key and ETag: nothing here is ever stale, only forgotten, the
least recently used first, within `max_bytes` on the disk and `memory_bytes` in memory. Refuses to forget what an
operation of the journal refers to. Trio thread only; nothing here awaits. What was read from the bucket is kept in
memory and reaches the disk with the next `persist`; what the journal needs is there when `keep` returns.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from livememfs import private
from livememfs.cache.largefile import Fetch, LargeFile
from livememfs.errors import NoSpace
from livememfs.store.content import LARGE, Content, FileContent, whole

if TYPE_CHECKING:
    from livememfs.cache.database import Database

INLINE_BYTES = 1 << 16
"""Up to this size the bytes are a column of their row: one write instead of three system calls and a directory."""
PERSISTED_AT_ONCE = 256
EVICTED_AT_ONCE = 64


@dataclass(frozen=True)
class BlobStatistics:
    """What is in memory and on the disk, in objects and bytes, and how often it was of use."""

    in_memory: int
    memory_bytes: int
    disk_bytes: int
    waiting: int
    hits: int
    misses: int


class Blobs:
    """All contents of one replica."""

    def __init__(self, database: Database, *, max_bytes: int, memory_bytes: int) -> None:
        self._database = database
        self._max = max_bytes
        self._memory_max = memory_bytes
        self._memory: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._memory_bytes = self._hits = self._misses = 0
        self._unsaved: dict[str, tuple[str, bytes]] = {}
        ((total, clock),) = database.rows("SELECT coalesce(sum(size), 0), coalesce(max(used), 0) FROM blob")
        self._disk_bytes: int = total
        self._clock: int = clock
        self._remove_orphans()

    # --- reading ----------------------------------------------------------------------------------------------

    def get(self, key: str, etag: str) -> bytes | None:
        """The bytes of exactly this version, or None."""
        held = self._memory.get(key)
        if held is not None and held[0] == etag:
            self._hits += 1
            self._memory.move_to_end(key)
            return held[1]
        held = self._unsaved.get(key)
        data = held[1] if held is not None and held[0] == etag else self._from_disk(key, etag)
        if data is None:
            self._misses += 1
            return None
        self._hits += 1
        self._remember(key, etag, data)
        return data

    def has(self, key: str, etag: str) -> bool:
        """Whether `get` would find it, without reading it."""
        if any(held is not None and held[0] == etag for held in (self._memory.get(key), self._unsaved.get(key))):
            return True
        return bool(self._database.rows("SELECT 1 FROM blob WHERE key = ? AND etag = ?", (key, etag)))

    def content(self, key: str, etag: str) -> Content | None:
        """The same as `get`, but what is large stays on the disk, in a file that may go with the next `persist`."""
        rows = self._database.rows(
            "SELECT id FROM blob WHERE key = ? AND etag = ? AND size > ? AND file IS NOT NULL", (key, etag, LARGE)
        )
        return self.by_id(rows[0][0]) if rows else self.get(key, etag)

    def open(self, size: int = 0, fetch: Fetch | None = None, source: FileContent | None = None) -> LargeFile | None:
        """A file for content that is large; None where there is no folder. NoSpace, StoreError."""
        folder = self._database.contents
        return LargeFile(folder, size, fetch, source.path if source is not None else None) if folder else None

    def by_id(self, blob: int) -> Content | None:
        """What a row has that an operation refers to; None when its file is gone or damaged."""
        found = self._database.rows("SELECT key, etag, data, file, size FROM blob WHERE id = ?", (blob,))
        if not found:
            return None
        key, etag, data, file, size = found[0]
        held = self._memory.get(key)
        if held is not None and held[0] == etag:
            return held[1]
        if data is None and size > LARGE:
            return self._file(file, size)
        data = data if data is not None else self._from_file(file)
        return data if data is not None and len(data) == size else None

    def _from_disk(self, key: str, etag: str) -> bytes | None:
        found = self._database.rows("SELECT id, data, file, size FROM blob WHERE key = ? AND etag = ?", (key, etag))
        if not found:
            return None
        blob, data, file, size = found[0]
        data = data if data is not None else self._from_file(file)
        if data is None or len(data) != size:
            return None
        self._clock += 1
        with suppress(NoSpace), self._database.atomic() as db:  # a full disk is no reason not to read
            db.execute("UPDATE blob SET used = ? WHERE id = ?", (self._clock, blob))
        return bytes(data)

    def _from_file(self, file: str | None) -> bytes | None:
        folder = self._database.contents
        if folder is None or file is None:
            return None
        try:
            return (folder / file).read_bytes()
        except OSError:
            return None  # the bucket has it, or the journal says that it is lost

    def _file(self, file: str | None, size: int) -> FileContent | None:
        folder = self._database.contents
        if folder is None or file is None:
            return None
        with suppress(OSError):
            if (folder / file).stat().st_size == size:
                return FileContent(folder / file, size)
        return None

    # --- keeping ----------------------------------------------------------------------------------------------

    def put(self, key: str, etag: str, data: Content) -> None:
        """Keep a version that the bucket has: in memory now, on the disk with the next `persist`; a file at once."""
        self._remember(key, etag, data)
        if isinstance(data, FileContent):
            if len(data) <= self._max // 2:
                with suppress(NoSpace), self._database.atomic():
                    self._save(key, etag, data)
            return
        if len(data) <= self._max // 8:
            self._unsaved[key] = (etag, data)

    def keep(self, key: str, etag: str, data: Content) -> int:
        """Have a version on the disk, for the journal. Call inside its transaction. Returns the row. NoSpace."""
        blob = self._save(key, etag, data)
        self._remember(key, etag, data)
        return blob

    def id_of(self, key: str, etag: str) -> int | None:
        """The row of a version, so that an operation can refer to it; None when it is not here."""
        found = self._database.rows("SELECT id FROM blob WHERE key = ? AND etag = ?", (key, etag))
        if found:
            return int(found[0][0])
        data = self.get(key, etag)
        return self._save(key, etag, data) if data is not None else None

    def _save(self, key: str, etag: str, data: Content) -> int:
        self._clock += 1
        found = self._database.rows("SELECT id FROM blob WHERE key = ? AND etag = ?", (key, etag))
        if found:
            with self._database.atomic() as db:
                db.execute("UPDATE blob SET used = ? WHERE id = ?", (self._clock, found[0][0]))
            return int(found[0][0])
        folder = self._database.contents
        if folder is None:
            data = whole(data)
        inline = data if folder is None or len(data) <= INLINE_BYTES else None
        file = None if inline is not None or folder is None else _write(folder, data)
        with self._database.atomic() as db:
            self._disk_bytes += len(data)
            self._database.on_rollback(lambda: self._unsave(len(data), file))
            row = db.execute(
                "INSERT INTO blob (key, etag, size, used, data, file) VALUES (?, ?, ?, ?, ?, ?)",
                (key, etag, len(data), self._clock, inline, file),
            )
        return int(row.lastrowid or 0)

    def _unsave(self, size: int, file: str | None) -> None:
        self._disk_bytes -= size
        _remove(self._database.contents, file)

    def persist(self) -> int:
        """Bring some of what waits to the disk and keep within bounds; how many still wait. NoSpace."""
        batch = [(key, *self._unsaved[key]) for key in list(self._unsaved)[:PERSISTED_AT_ONCE]]
        if batch:
            with self._database.atomic():
                for key, etag, data in batch:
                    self._save(key, etag, data)
        for key, _, _ in batch:
            del self._unsaved[key]
        while self._disk_bytes > self._max and self.evict():
            pass
        return len(self._unsaved)

    def make_room(self) -> bool:
        """On a full disk: give up what the bucket has anyway, and the reserve. Whether there was anything to give."""
        self._unsaved.clear()
        given = self._database.give_up_reserve()
        try:
            return self.evict() > 0 or given
        except NoSpace:  # not even room to say what is given up
            return given

    def evict(self) -> int:
        """Forget some of the least recently used that no operation needs. Returns the bytes freed, 0 if none are."""
        rows = self._database.rows(
            """SELECT id, size, file FROM blob WHERE id NOT IN (SELECT blob FROM op WHERE blob IS NOT NULL)
            AND id NOT IN (SELECT base_blob FROM op WHERE base_blob IS NOT NULL) ORDER BY used LIMIT ?""",
            (EVICTED_AT_ONCE,),
        )
        excess, freed, gone = max(self._disk_bytes - self._max, 1), 0, []
        for blob, size, file in rows:
            if freed >= excess:
                break
            freed += size
            gone.append((blob, file))
        with self._database.atomic() as db:
            db.executemany("DELETE FROM blob WHERE id = ?", [(blob,) for blob, _ in gone])
        for _, file in gone:
            _remove(self._database.contents, file)
        self._disk_bytes -= freed
        return freed

    def drop(self, key: str) -> None:
        """Forget what is held of a key in memory; on the disk it ages."""
        held = self._memory.pop(key, None)
        if held is not None:
            self._memory_bytes -= len(held[1])
        self._unsaved.pop(key, None)

    def sync(self, blob: int) -> Path | None:
        """The file whose bytes must reach the disk for this row to survive a power cut; None when it has none."""
        found = self._database.rows("SELECT file FROM blob WHERE id = ?", (blob,))
        folder = self._database.contents
        return folder / found[0][0] if folder is not None and found and found[0][0] is not None else None

    def statistics(self) -> BlobStatistics:
        """Counters, cheap."""
        return BlobStatistics(
            in_memory=len(self._memory),
            memory_bytes=self._memory_bytes,
            disk_bytes=self._disk_bytes,
            waiting=len(self._unsaved),
            hits=self._hits,
            misses=self._misses,
        )

    # --- inside -----------------------------------------------------------------------------------------------

    def _remember(self, key: str, etag: str, data: Content) -> None:
        """One version of each key in memory, and nothing that would push out all the rest."""
        held = self._memory.pop(key, None)
        if held is not None:
            self._memory_bytes -= len(held[1])
        if isinstance(data, FileContent) or len(data) > self._memory_max // 8:
            return
        self._memory[key] = (etag, data)
        self._memory_bytes += len(data)
        while self._memory_bytes > self._memory_max:
            _, (_, oldest) = self._memory.popitem(last=False)
            self._memory_bytes -= len(oldest)

    def _remove_orphans(self) -> None:
        """Files without a row: their transaction did not happen, or its removal did not come this far."""
        folder = self._database.contents
        if folder is None:
            return
        known = {file for (file,) in self._database.rows("SELECT file FROM blob WHERE file IS NOT NULL")}
        for path in folder.iterdir():
            if path.name not in known:
                path.unlink()


def _write(folder: Path, data: Content) -> str:
    name = uuid4().hex
    path = folder / name
    private.make(folder)
    if isinstance(data, FileContent):  # of this folder, and nobody writes to it: one more name of it is enough
        os.link(data.path, path)
        return name
    try:
        with open(path, "xb", opener=private.opener) as file:
            file.write(data)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return name


def _remove(folder: Path | None, file: str | None) -> None:
    if folder is not None and file is not None:
        try:
            (folder / file).unlink()
        except FileNotFoundError:
            return
