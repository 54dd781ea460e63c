"""The local database: one SQLite file beside its large contents, for one process at a time.

Owns the folder (`DIR/state.db`, `DIR/contents/`, `DIR/lock`), its lock, the schema and the migrations, and what a full
disk means. Refuses a folder that another process uses, and a schema newer than it knows. The connection belongs to the
trio thread; every call is synchronous and short, and what must be atomic is one `atomic()` block without an await.

Without a folder the database is in memory: commands that work without a mount keep nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from livememfs import private
from livememfs.errors import CacheInUse, LiveMemError, NoSpace

RESERVE_BYTES = 4 << 20
"""Kept in a file of its own and given up when the disk is full, so that what is uploaded can still be written off."""
LOG_BYTES = 2 << 20
BUSY_MS = 2_000
RUNNING = "running"
"""A file that is there while a process uses the folder, and after one that was killed."""

Migration = Callable[[sqlite3.Connection], None]


def m001_the_beginning(db: sqlite3.Connection) -> None:
    """Names, contents, operations and drafts."""
    db.execute(
        # What the bucket was last heard to have. A cache: it may be lost, and a LIST of the level corrects it.
        #   parent    the key up to and including its last "/"
        #   meta      JSON of the user metadata; NULL: never heard (a LIST does not tell)
        """CREATE TABLE object (
            key TEXT PRIMARY KEY, parent TEXT NOT NULL, etag TEXT NOT NULL, size INTEGER NOT NULL,
            modified INTEGER NOT NULL, meta TEXT
        ) WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX object_parent ON object(parent)")
    db.execute(
        # Levels whose names were all heard at once; `folders` is the JSON list of the folders on it.
        "CREATE TABLE level (prefix TEXT PRIMARY KEY, folders TEXT NOT NULL) WITHOUT ROWID"
    )
    db.execute(
        # Contents by version, immutable.
        #   data      the bytes, when they are few; else NULL, and `file` names a file in contents/
        #   used      the clock of the least recently used: a number that grows
        # Set by Blobs.put; removed by Blobs.evict, never while an operation refers to it.
        """CREATE TABLE blob (
            id INTEGER PRIMARY KEY, key TEXT NOT NULL, etag TEXT NOT NULL, size INTEGER NOT NULL,
            used INTEGER NOT NULL, data BLOB, file TEXT, UNIQUE (key, etag)
        )"""
    )
    db.execute(
        # What was accepted and the bucket does not have. Removed by Journal.finish in the step that knows the outcome.
        #   seq       the order of acceptance, numbered by the journal; a row keeps it when a later write of its key
        #             takes its place
        #   kind      put | delete | meta (metadata alone) | copy (on the server, from `source`)
        #   base      the version this one replaces: NULL none (the key is free), "*" any, "<" the outcome of the
        #             operation on the same key before it, else an etag
        #   blob, base_blob    the new bytes, and those of `base` for a merge
        #   after     the operation that must have ended before
        #   tries     attempts made, lost answers included: with one, the bucket may have it already
        #   sent      ids of attempts of earlier operations that this one took the place of, separated by blanks
        #   error     why it is stuck; NULL while it is not
        """CREATE TABLE op (
            seq INTEGER PRIMARY KEY, op_id TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
            source TEXT NOT NULL, base TEXT, blob INTEGER REFERENCES blob(id), base_blob INTEGER REFERENCES blob(id),
            etag TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL, meta TEXT NOT NULL,
            after INTEGER, tries INTEGER NOT NULL, sent TEXT NOT NULL, error TEXT
        )"""
    )
    db.execute(
        # Bytes of files that are open and not closed, as of the last look. Shown under recovered/ after a crash.
        "CREATE TABLE draft (path TEXT PRIMARY KEY, data BLOB NOT NULL, written INTEGER NOT NULL) WITHOUT ROWID"
    )


def m002_recovered_drafts(db: sqlite3.Connection) -> None:
    """What a crash left of open files."""
    # Filled from `draft` at the start of the next process; a row goes when the user removes the file.
    db.execute(
        """CREATE TABLE recovered (
            name TEXT PRIMARY KEY, path TEXT NOT NULL, data BLOB NOT NULL, written INTEGER NOT NULL
        ) WITHOUT ROWID"""
    )


def m003_events(db: sqlite3.Connection) -> None:
    """What agents did, until it is observed."""
    db.execute(
        # One row for each event of a session, by the agent's own id: the same event twice is one row.
        #   state     waiting | claimed (somebody is at it) | stored (what came of it is accepted, and the bucket does
        #             not have it yet) | observed | skipped | failed (given up until somebody asks)
        #   tries     calls of a model that it was part of; `outages`: those that reached no model
        #   claimed   seconds since 1970 of the last sign of life of whoever is at it; 0 for nobody
        #   object    the key of what came of it
        #   reason    why it was skipped, or failed last
        #   line      the event as JSON, NULL once it is in the bucket or skipped
        # Set by Inbox.add; rows that are done go after a while, and their number is added to `event_count`.
        """CREATE TABLE event (
            seq INTEGER PRIMARY KEY, space TEXT NOT NULL, session TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
            state TEXT NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0,
            outages INTEGER NOT NULL DEFAULT 0, claimed INTEGER NOT NULL DEFAULT 0, object TEXT NOT NULL DEFAULT '',
            reason TEXT NOT NULL DEFAULT '', line TEXT, UNIQUE (space, session, id)
        )"""
    )
    db.execute("CREATE INDEX event_state ON event(state, reason)")
    db.execute("CREATE INDEX event_kind ON event(space, session, kind)")
    db.execute("CREATE INDEX event_waiting ON event(space, session, kind, size) WHERE state = 'waiting'")
    db.execute("CREATE INDEX event_object ON event(object) WHERE state = 'stored'")
    db.execute(
        "CREATE TABLE event_count (state TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL,"
        " PRIMARY KEY (state, reason)) WITHOUT ROWID"
    )
    # The key under which the bucket keeps what was not done when the last process ended in order; no row while it runs.
    db.execute("CREATE TABLE parked (key TEXT PRIMARY KEY) WITHOUT ROWID")
    # What a model was asked for in the background, by UTC day.
    db.execute(
        "CREATE TABLE spent (day TEXT PRIMARY KEY, calls INTEGER NOT NULL, prompt INTEGER NOT NULL,"
        " completion INTEGER NOT NULL) WITHOUT ROWID"
    )


def m004_moved(db: sqlite3.Connection) -> None:
    """Whether an operation's content is that of another key; see `journal.operation`."""
    db.execute("ALTER TABLE op ADD COLUMN moved INTEGER NOT NULL DEFAULT 0")


def m005_mirror(db: sqlite3.Connection) -> None:
    """What was last the same in a plain directory and in the tree; see `mirror.rows`."""
    # One row for each path, and one for the directory itself: path '', whose digest is the id in its marker.
    db.execute(
        """CREATE TABLE mirror (
            path TEXT PRIMARY KEY, kind TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
            ctime INTEGER NOT NULL, ino INTEGER NOT NULL, mode INTEGER NOT NULL, digest TEXT NOT NULL,
            key TEXT NOT NULL, etag TEXT NOT NULL, behind INTEGER NOT NULL
        ) WITHOUT ROWID"""
    )


MIGRATIONS: tuple[Migration, ...] = (
    m001_the_beginning,
    m002_recovered_drafts,
    m003_events,
    m004_moved,
    m005_mirror,
)
"""Append only. The number of those that were run is the database's `user_version`."""


class Database:
    """An open database. `folder` None keeps everything in memory."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = _locked(folder) if folder is not None else -1
        self._closed = False
        self._undo: list[Callable[[], None]] = []
        try:
            self._db = self._open()
            self._reserve()
            self.after_crash = self._begin()
            """Whether the process before this one did not come to `close`."""
        except BaseException:
            self._unlock()
            raise

    @property
    def contents(self) -> Path | None:
        """Where large contents are; None in memory."""
        return self.folder / "contents" if self.folder is not None else None

    def _open(self) -> sqlite3.Connection:
        path: str | Path = ":memory:"
        if self.folder is not None:
            private.make(self.folder / "contents")
            path = self.folder / "state.db"
            private.begin(path)
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000, cached_statements=256)
        try:
            # A commit is in the system's hands when it returns, and so survives kill -9; `sync` makes it survive the
            # power as well.
            # The log is carried over by `checkpoint`, in a thread: it syncs, which takes longer than many commits.
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "wal_autocheckpoint=0", "temp_store=MEMORY"):
                db.execute(f"PRAGMA {pragma}")
            _migrate(db)
        except sqlite3.DatabaseError as error:
            db.close()
            raise LiveMemError(f"the local state in {self.folder} cannot be used: {error}") from None
        except BaseException:
            db.close()
            raise
        return db

    @property
    def identity(self) -> str:
        """Eight digits that are this folder's and no other's: they stay as long as it does."""
        if self.folder is None:
            return uuid4().hex[:8]
        path = self.folder / "identity"
        try:
            return path.read_text().strip()
        except FileNotFoundError:
            private.write_text(path, uuid4().hex[:8] + "\n")
            return path.read_text().strip()

    @contextmanager
    def atomic(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing. NoSpace when the disk is full. May be nested: the outermost block decides."""
        if self._inside():
            yield self._db
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._inside():
                self._db.execute("ROLLBACK")
            undo, self._undo = self._undo, []
            for step in reversed(undo):
                step()
            if _is_full(error):
                raise NoSpace(f"the disk of {self.folder} is full") from None
            raise
        self._undo.clear()

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Have what goes along with the open transaction undone if that does not happen; without one, it has."""
        if self._inside():
            self._undo.append(undo)

    def _inside(self) -> bool:
        return self._db.in_transaction

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of a SELECT."""
        return self._db.execute(query, values).fetchall()

    def give_up_reserve(self) -> bool:
        """Make room on a full disk; whether there was any to make. `restore_reserve` takes it back."""
        if self.folder is None:
            return False
        try:
            (self.folder / "reserve").unlink()
        except FileNotFoundError:
            return False
        return True

    def restore_reserve(self) -> None:
        """Take the reserve again once there is room."""
        try:
            self._reserve()
        except OSError:
            return

    def _reserve(self) -> None:
        if self.folder is None or (self.folder / "reserve").exists():
            return
        path = self.folder / "reserve"
        handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.posix_fallocate(handle, 0, RESERVE_BYTES)
        except (OSError, AttributeError):  # macOS has no such call
            path.unlink()  # there is none to be had now; the next time there may be
        finally:
            os.close(handle)

    def sync(self) -> None:
        """Have everything committed so far survive a power cut. From any thread; touches no row.

        What is not in the log any more was synced when it was carried over.
        """
        if self.folder is None:
            return
        try:
            handle = os.open(self.folder / "state.db-wal", os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            getattr(os, "fdatasync", os.fsync)(handle)  # macOS has the second alone
        finally:
            os.close(handle)

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the log has grown so much that it should be carried over."""
        try:
            return self.folder is not None and (self.folder / "state.db-wal").stat().st_size > LOG_BYTES
        except FileNotFoundError:
            return False

    def checkpoint(self) -> None:
        """Carry the log over into the database. From any thread; nobody waits for it."""
        if self.folder is None or self._closed:
            return
        db = sqlite3.connect(self.folder / "state.db", isolation_level=None, timeout=0)
        try:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.OperationalError:
            return  # the disk is full, or somebody is at it: later, then
        finally:
            db.close()

    def _begin(self) -> bool:
        if self.folder is None:
            return False
        mark = self.folder / RUNNING
        found = mark.exists()
        with suppress(OSError):  # a full disk: then the next process has one question to ask in vain
            mark.touch(private.FILE)
        return found

    def close(self) -> None:
        """Give the folder to the next process. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._db.close()
            if self.folder is not None:
                with suppress(OSError):
                    (self.folder / RUNNING).unlink(missing_ok=True)
            self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _migrate(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise LiveMemError("the local state was written by a newer livememfs; update, or use another cache folder")
    for number, migration in enumerate(MIGRATIONS[version:], version + 1):
        db.execute("BEGIN IMMEDIATE")
        migration(db)
        db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")


def _locked(folder: Path) -> int:
    """Make the folder ours. CacheInUse when it is another process's."""
    import fcntl  # here: Windows has none

    private.make(folder)
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise CacheInUse(path=folder) from None
    return handle


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (28, 122)  # ENOSPC, EDQUOT
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_FULL
