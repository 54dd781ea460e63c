"""Drafts: bytes of files that are open and not closed, for the day the process ends before they are.

Owns the tables `draft` and `recovered`. What a crash left in the first is in the second from the next start on, until
the user removes it. Refuses to upload anything: nobody said that these bytes are meant to stay. Trio thread only;
nothing here awaits.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs.errors import NoSpace

if TYPE_CHECKING:
    from livememfs.cache.database import Database

LARGEST = 16 << 20
"""What is larger is not kept: it would be written again at each look."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a crash left of a file: `name` is unique here, `path` is where it was being written."""

    name: str
    path: str
    size: int
    written_ns: int


class Drafts:
    """The drafts of one mount. Opening takes over what the last process left."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: dict[str, int] = {}
        with suppress(NoSpace):  # on a full disk they stay where they are until the next start
            self._take_over()

    def _take_over(self) -> None:
        rows = self._database.rows("SELECT path, written FROM draft")
        with self._database.atomic() as db:
            for path, written in rows:
                db.execute(
                    "INSERT INTO recovered SELECT ?, path, data, written FROM draft WHERE path = ?",
                    (self._free_name(path, written), path),
                )
            db.execute("DELETE FROM draft")

    def _free_name(self, path: str, written: int) -> str:
        """A name that nothing recovered has: `a/b` and `a__b` of one second would share it, and one would be lost."""
        plain = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(written / 1e9))}_{path.replace('/', '__')}"
        name, number = plain, 1
        while self._database.rows("SELECT 1 FROM recovered WHERE name = ?", (name,)):
            number += 1
            name = f"{plain}~{number}"
        return name

    def lacks(self, path: str, size: int, change: int) -> bool:
        """Whether the bytes of an open file are to be kept: not those of the last look (`change` counts them)."""
        return self._kept.get(path) != change and size <= LARGEST

    def keep(self, path: str, data: bytes, change: int) -> None:
        """Keep the bytes of an open file, unless they are those of the last look. NoSpace."""
        if not self.lacks(path, len(data), change):
            return
        with self._database.atomic() as db:
            db.execute("INSERT OR REPLACE INTO draft VALUES (?, ?, ?)", (path, data, time.time_ns()))
        self._kept[path] = change

    def drop_all_but(self, paths: set[str]) -> None:
        """Forget the drafts of files that were closed or removed."""
        gone = [path for path in self._kept if path not in paths]
        if gone:
            with self._database.atomic() as db:
                db.executemany("DELETE FROM draft WHERE path = ?", [(path,) for path in gone])
        for path in gone:
            del self._kept[path]

    def recovered(self) -> list[Recovered]:
        """What crashes have left, the oldest first."""
        rows = self._database.rows("SELECT name, path, length(data), written FROM recovered ORDER BY written")
        return [Recovered(*row) for row in rows]

    def read(self, name: str) -> bytes | None:
        """The bytes of one of them; None when there is none of that name."""
        rows = self._database.rows("SELECT data FROM recovered WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None

    def remove(self, name: str) -> None:
        """Give one of them up."""
        with self._database.atomic() as db:
            db.execute("DELETE FROM recovered WHERE name = ?", (name,))
