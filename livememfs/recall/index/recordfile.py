"""The file `records.db` of an index: its tables, its connections, and steps that happen whole or not at all.

Owns the schema and its version. Refuses a file of another version: Damaged, and its owner makes a new one. Writing is
for one thread at a time (the owner's lock); each thread reads by a connection of its own.
"""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from livememfs import private
from livememfs.errors import NoSpace
from livememfs.recall.index.exchanged import Damaged

VERSION = 8
_AT_ONCE = 500
_DAMAGED: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_SCHEMA = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- What was read of the bucket: a key whose etag is listed here need not be read again.
CREATE TABLE object (key TEXT PRIMARY KEY, etag TEXT NOT NULL, space TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE record (
    id INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL UNIQUE, key TEXT NOT NULL, etag TEXT NOT NULL,
    kind TEXT NOT NULL, space TEXT NOT NULL, type TEXT NOT NULL, agent TEXT NOT NULL, title TEXT NOT NULL,
    created INTEGER NOT NULL, importance REAL NOT NULL, labels TEXT NOT NULL, pieces TEXT NOT NULL,
    manner INTEGER NOT NULL, links TEXT NOT NULL, channel TEXT NOT NULL, updated INTEGER NOT NULL
);
CREATE INDEX record_key ON record(key);
CREATE INDEX record_time ON record(space, kind, created);
CREATE TABLE label (record INTEGER NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL);
CREATE INDEX label_record ON label(record);
CREATE INDEX label_value ON label(field, value);
-- What memories are called, and by which names they are linked to others; those need not be there.
CREATE TABLE named (record INTEGER PRIMARY KEY, space TEXT NOT NULL, name TEXT NOT NULL);
CREATE INDEX named_name ON named(space, name);
CREATE TABLE link (record INTEGER NOT NULL, space TEXT NOT NULL, relation TEXT NOT NULL, target TEXT NOT NULL);
CREATE INDEX link_record ON link(record);
CREATE INDEX link_target ON link(space, target);
--   changed   the step that last changed what the text index has to know of it
--   meaning   digest of the texts whose vectors stand for it (see Text)
CREATE TABLE piece (
    number INTEGER PRIMARY KEY AUTOINCREMENT, record INTEGER NOT NULL, part INTEGER NOT NULL,
    changed INTEGER NOT NULL, meaning BLOB NOT NULL
);
CREATE INDEX piece_record ON piece(record);
CREATE INDEX piece_changed ON piece(changed);
CREATE INDEX piece_meaning ON piece(meaning);
CREATE TABLE gone (number INTEGER PRIMARY KEY, changed INTEGER NOT NULL);
CREATE TABLE vector (meaning BLOB NOT NULL, model TEXT NOT NULL, eight BLOB NOT NULL, PRIMARY KEY (model, meaning))
    WITHOUT ROWID;
-- Which segments of the bucket (see `segments`) this machine has read or written, and the digests that each has.
CREATE TABLE segment (model TEXT NOT NULL, space TEXT NOT NULL, name TEXT NOT NULL, meanings BLOB NOT NULL,
    PRIMARY KEY (model, space, name)) WITHOUT ROWID;
"""


class _Connection(sqlite3.Connection):
    """One that can be referred to weakly."""


class RecordFile:
    """The open file. `path` None keeps it in memory, for one thread."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            private.begin(path)
        self._local = threading.local()
        # A thread's connection goes with the thread.
        self._open: weakref.WeakSet[_Connection] = weakref.WeakSet()
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise Damaged(f"the records of the index cannot be read: {error}") from error

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if not version and not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self._db.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version={VERSION};COMMIT;")
        elif version != VERSION:
            raise Damaged(f"the records of the index are of version {version}, which is not {VERSION}")

    @property
    def _db(self) -> sqlite3.Connection:
        connection: _Connection | None = getattr(self._local, "db", None)
        if connection is None:
            connection = sqlite3.connect(
                self._path or ":memory:",
                isolation_level=None,
                timeout=10.0,
                cached_statements=256,
                check_same_thread=False,
                factory=_Connection,
            )
            connection.create_function(
                "fold", 1, str.casefold, deterministic=True
            )  # SQLite's lower() knows ASCII alone
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "temp_store=MEMORY", "cache_size=-16000"):
                connection.execute(f"PRAGMA {pragma}")
            self._local.db = connection
            self._open.add(connection)
        return connection

    def _among(self, query: str, items: Sequence[Any], *values: Any) -> Iterator[Any]:
        """The rows of a query for some items, by portions that one command takes. It has `{}` for the marks of the
        items, which come after the other values.
        """
        for start in range(0, len(items), _AT_ONCE):
            portion = items[start : start + _AT_ONCE]
            yield from self._db.execute(query.format(",".join("?" * len(portion))), (*values, *portion)).fetchall()

    def close(self) -> None:
        """Close every connection. Nobody may be reading any more."""
        for connection in list(self._open):
            connection.close()
        self._open.clear()

    @contextmanager
    def _step(self) -> Iterator[int]:
        """Everything inside is one transaction, and one step further. NoSpace, Damaged."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                step = int(self.state("step") or 0) + 1
                self._put_state("step", str(step))
                yield step
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            full = isinstance(error, sqlite3.OperationalError) and "full" in str(error)
            raise (NoSpace if full else Damaged)(f"the records of the index cannot be written: {error}") from error

    # --- what it remembers about itself ---------------------------------------------------------------------------

    def state(self, name: str) -> str | None:
        """A remembered word."""
        row = self._db.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row is not None else None

    def remember(self, name: str, value: str) -> None:
        """Remember a word. NoSpace, Damaged."""
        with self._step():
            self._put_state(name, value)

    def _put_state(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the file itself is no good, and not that something stands in the way of it."""
    fault = error.__cause__ if isinstance(error, Damaged) else error
    return isinstance(fault, sqlite3.DatabaseError) and getattr(fault, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
