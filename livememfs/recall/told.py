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

import structlog

log = structlog.get_logger("livememfs.recall")

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

    @property
    def _db(self) -> sqlite3.Connection:
        """The file, opened by the first turn: most mounts have none."""
        if self._opened is None:
            try:
                self._opened = self._open()
            except sqlite3.DatabaseError:
                if self._path is not None:
                    with suppress(OSError):
                        self._path.unlink(missing_ok=True)  # what it held is worth less than an answer
                self._opened = self._open()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path or ":memory:", isolation_level=None, timeout=1.0, check_same_thread=False)
        try:
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
                db.execute(f"PRAGMA {pragma}")
            db.execute(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def load(self, space: str, name: str) -> Any:
        """What was kept of a session; None when there is nothing."""
        with self._lock, suppress(sqlite3.Error, ValueError):
            row = self._db.execute("SELECT state FROM session WHERE space = ? AND name = ?", (space, name)).fetchone()
            return json.loads(row[0]) if row is not None else None
        return None

    def keep(self, space: str, name: str, state: Any, now: int) -> None:
        """Keep a session, by `now` in seconds. A disk that is full or gone is no reason to fail."""
        try:
            with self._lock:
                self._db.execute(
                    "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?)", (space, name, now, json.dumps(state))
                )
        except sqlite3.Error as error:
            log.info("a session is not kept over a restart", reason=str(error))

    def prune(self, now: int) -> None:
        """Forget sessions that have not gone on for long, and the oldest of too many."""
        with self._lock, suppress(sqlite3.Error):
            self._db.execute("DELETE FROM session WHERE used < ?", (now - KEPT_SECONDS,))
            self._db.execute(
                "DELETE FROM session WHERE (space, name) NOT IN"
                " (SELECT space, name FROM session ORDER BY used DESC LIMIT ?)",
                (MOST_SESSIONS,),
            )

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
