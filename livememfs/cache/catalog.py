"""The catalog: what the bucket was last heard to have, kept across mounts.

Owns the tables `object` and `level`. It saves questions (metadata that no LIST tells) and answers while the
store is away; what it says is never taken for current. Writes wait for `flush`, since losing them costs no more than
asking again. Trio thread only; nothing here awaits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from livememfs.store.base import ObjectInfo

if TYPE_CHECKING:
    from livememfs.cache.database import Database

WRITTEN_AT_ONCE = 500
"""Rows in one transaction: some milliseconds during which nothing else happens."""
_COLUMNS = ", ".join(f"json_extract(value, '$[{number}]')" for number in range(6))


class Catalog:
    """The tables of known names."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._objects: dict[str, ObjectInfo | None] = {}
        self._levels: dict[str, tuple[str, ...] | None] = {}

    def __len__(self) -> int:
        """Rows that wait for `flush`."""
        return len(self._objects) + len(self._levels)

    def load(self, prefix: str) -> tuple[list[tuple[str, ObjectInfo]], set[str]] | None:
        """Objects in the order of their names and folders of one level; None when the whole of it was never heard."""
        found = self._database.rows("SELECT folders FROM level WHERE prefix = ?", (prefix,))
        if not found:
            return None
        cut = len(prefix)
        rows = self._database.rows("SELECT key, etag, size, modified, meta FROM object WHERE parent = ?", (prefix,))
        objects = [
            (key[cut:], ObjectInfo(key, etag, size, modified, json.loads(meta) if meta is not None else None))
            for key, etag, size, modified, meta in sorted(rows)
        ]
        return objects, set(json.loads(found[0][0]))

    def heard(self, infos: Iterable[ObjectInfo]) -> None:
        """Take note of objects."""
        for info in infos:
            self._objects[info.key] = info

    def gone(self, key: str) -> None:
        """Take note that there is no such object."""
        self._objects[key] = None

    def complete(self, prefix: str, folders: Iterable[str]) -> None:
        """Take note that everything on a level was heard."""
        self._levels[prefix] = tuple(folders)

    def incomplete(self, prefix: str) -> None:
        """Take note that a level has to be asked for."""
        self._levels[prefix] = None

    def flush(self) -> int:
        """Write some of what waits; how many rows still wait. NoSpace."""
        if not len(self):
            return 0  # asked twice a second, and mostly there is nothing
        batch = list(islice(self._objects.items(), WRITTEN_AT_ONCE))
        levels = {} if len(batch) == WRITTEN_AT_ONCE else dict(self._levels)
        with self._database.atomic() as db:
            # One step for all: between two, SQLite lets other threads at the interpreter, and is given it back late.
            gone = json.dumps([key for key, info in batch if info is None])
            db.execute("DELETE FROM object WHERE key IN (SELECT value FROM json_each(?))", (gone,))
            there = json.dumps([_row(info) for _, info in batch if info])
            db.execute(f"INSERT OR REPLACE INTO object SELECT {_COLUMNS} FROM json_each(?)", (there,))
            for prefix, folders in levels.items():
                if folders is None:
                    db.execute("DELETE FROM level WHERE prefix = ?", (prefix,))
                else:
                    db.execute("INSERT OR REPLACE INTO level VALUES (?, ?)", (prefix, json.dumps(sorted(folders))))
        for key, _ in batch:
            del self._objects[key]
        for prefix in levels:
            del self._levels[prefix]
        return len(self)


def _row(info: ObjectInfo) -> tuple[str, str, str, int, int, str | None]:
    parent, slash, _ = info.key.rpartition("/")
    meta = json.dumps(dict(info.meta)) if info.meta is not None else None
    return info.key, parent + slash, info.etag, info.size, info.modified_ns, meta
