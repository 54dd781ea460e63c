"""What each session was told, so that a restart of the daemon tells nothing twice.

Owns one small SQLite file beside the local state. It is a cache: without it, or on a full disk, a session that goes on
after a restart may hear something again. Several processes may have it open. Any thread.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from livememfs import private

KEPT_SECONDS = 30 * 86_400
"""For so long a session may pause."""
MOST_SESSIONS = 2_000
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS session (space TEXT NOT NULL, name TEXT NOT NULL, used INTEGER NOT NULL,"
    " state TEXT NOT NULL, PRIMARY KEY (space, name)) WITHOUT ROWID"
)


class ToldFile:
    """The open file; `path` None keeps it in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        self._pruned = False

    def load(self, space: str, name: str) -> Any:
        """What was kept of a session; None when there is nothing."""
        with self._lock, suppress(sqlite3.Error, ValueError):
            rows = self._do("SELECT state FROM session WHERE space = ? AND name = ?", (space, name))
            return json.loads(rows[0][0]) if rows else None
        return None

    def keep(self, space: str, name: str, state: Any, now: int) -> str:
        """Keep a session, by `now` in seconds. Why it could not be kept; empty when it was."""
        try:
            with self._lock:
                self._do("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?)", (space, name, now, json.dumps(state)))
                if not self._pruned:
                    self._prune(now)
        except (sqlite3.Error, ValueError) as error:  # a disk that is full or gone is no reason to fail
            return str(error)
        return ""

    def _prune(self, now: int) -> None:
        """Forget sessions that have not gone on for long, and the oldest of too many; once a process is enough."""
        self._do("DELETE FROM session WHERE used < ?", (now - KEPT_SECONDS,))
        self._do(
            "DELETE FROM session WHERE (space, name) NOT IN"
            " (SELECT space, name FROM session ORDER BY used DESC LIMIT ?)",
            (MOST_SESSIONS,),
        )
        self._pruned = True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._shut()

    # --- the file ---------------------------------------------------------------------------------------------

    def _do(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        """One statement. A file that is damaged is begun anew: what it held is worth less than an answer."""
        try:
            return self._db().execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
        self._shut()
        self._remove()
        return self._db().execute(statement, values).fetchall()

    def _db(self) -> sqlite3.Connection:
        """The file, opened by the first turn: most mounts have none."""
        if self._opened is None:
            if self._path is not None:
                private.begin(self._path)
            db = sqlite3.connect(self._path or ":memory:", isolation_level=None, timeout=1.0, check_same_thread=False)
            try:
                for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", _SCHEMA):
                    db.execute(statement)
            except BaseException:
                db.close()
                raise
            self._opened = db
        return self._opened

    def _shut(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _remove(self) -> None:
        """Whoever else has it open goes on with what is gone, and finds the new file when it starts again."""
        for suffix in ("", "-wal", "-shm"):
            if self._path is not None:
                with suppress(OSError):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file itself is at fault: one that somebody else uses, or a disk that is full, is none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
