"""Connections to the database of an index: who has one, what is tried again, and what a failure is called.

Owns every connection and every transaction. A connection that broke while it was idle is replaced without a message,
since a server may be restarted at any time; for that reason all work that `run` does must be safe to do twice. Raises
Unavailable, NoSpace, TimedOut or Damaged in place of the driver's exceptions; none of them shows a password. Any
thread; a connection belongs to one thread at a time.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from livememfs.errors import LiveMemError, NoSpace, SettingsError, TimedOut
from livememfs.recall.index.exchanged import Damaged

T = TypeVar("T")
Db = psycopg.Connection[Any]

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 120
"""No statement takes longer."""
LOCK_SECONDS = 20
"""Seconds that a change waits for another mount that writes."""
LOST_SECONDS = 120
"""Seconds after which the server ends the transaction of a silent mount, and so frees its lock."""
KEPT_OPEN = 4
TRIES = 4
SCHEMES = ("postgresql", "postgres")
_GONE = (errors.UndefinedTable, errors.InvalidSchemaName)
_AGAIN = (errors.DeadlockDetected, errors.SerializationFailure)


class Unavailable(LiveMemError):
    """The database of the index does not answer, or refuses."""

    message = "the index at {where} cannot be used: {detail}"
    what_to_do = "check LIVEMEMFS_INDEX_URL and the database; files are not affected"
    errno = errno.ETIMEDOUT


class DatabaseConnections:
    """Connections to one index. `prepare` is called before the first use, and again when the tables have gone."""

    def __init__(self, url: str, schema: str, prepare: Callable[[Db], None] | None = None) -> None:
        self._url, self._schema, self._prepare = url, schema, prepare
        self.where = place_of(url)
        self._secrets = _secrets(url)
        self._idle: list[Db] = []
        self._guard = threading.Lock()
        self._prepared = False

    def open(self) -> None:
        """Connect and prepare now: a fault is then raised when the index is opened, and not by the first question."""
        self.run(lambda db: db.pgconn.status)

    def run(self, work: Callable[[Db], T], *, writes: bool = False) -> T:
        """The result of `work`, which may be called more than once. With `writes` all it does is one transaction,
        while no other mount writes to this index.
        """
        for attempt in range(1, TRIES + 1):
            db, used = self._take()
            try:
                if not self._prepared and self._prepare is not None:
                    self._prepare(db)
                    self._prepared = True
                return self._exclusive(db, work) if writes else work(db)
            except psycopg.Error as error:
                lost = db.closed or db.broken
                if attempt == TRIES or not self._may_help(error, lost=lost, used=used):
                    raise self._translated(error) from None  # the driver's own words are in the text
            finally:
                self._give(db)
        raise AssertionError

    def _exclusive(self, db: Db, work: Callable[[Db], T]) -> T:
        with db.transaction():
            lock(db, self._schema)
            return work(db)

    def _may_help(self, error: psycopg.Error, *, lost: bool, used: bool) -> bool:
        """Whether another attempt may succeed."""
        if lost and used:
            self.close()  # the other idle connections are as old, and broken too
            return True
        if isinstance(error, _GONE):
            self._prepared = False
            return True
        return isinstance(error, _AGAIN)

    def _take(self) -> tuple[Db, bool]:
        with self._guard:
            if self._idle:
                return self._idle.pop(), True
        return self._connect(), False

    def _give(self, db: Db) -> None:
        whole = not db.closed and db.info.transaction_status == TransactionStatus.IDLE
        with self._guard:
            if whole and len(self._idle) < KEPT_OPEN:
                self._idle.append(db)
                return
        db.close()

    def _connect(self) -> Db:
        try:
            db = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                application_name="livememfs",
                keepalives_idle=30,
                tcp_user_timeout=STATEMENT_SECONDS * 1_000,
                prepare_threshold=None,
            )
            self._set_up(db)
        except psycopg.Error as error:
            raise self._translated(error) from None
        return db

    def _set_up(self, db: Db) -> None:
        """Set the schema whose tables are meant, and limits so that no statement waits for ever."""
        db.execute(
            "SELECT set_config('search_path', quote_ident(%s) || ', ' || coalesce((SELECT quote_ident(n.nspname)"
            " FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'), 'public'),"
            " false), set_config('statement_timeout', %s, false), set_config('jit', 'off', false),"
            " set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false)",
            (self._schema, f"{STATEMENT_SECONDS}s", f"{LOCK_SECONDS}s", f"{LOST_SECONDS}s"),
        )

    def close(self) -> None:
        """Close the idle connections."""
        with self._guard:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def _translated(self, error: psycopg.Error) -> LiveMemError:
        text = next(iter(str(error).splitlines()), type(error).__name__)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if isinstance(error, errors.DiskFull):
            return NoSpace(f"the index at {self.where}: {text}")
        if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable | errors.ConnectionTimeout):
            return TimedOut(f"the index at {self.where}")
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | errors.InsufficientPrivilege):
            return Unavailable(text, where=self.where)
        return Damaged(f"the index at {self.where} refuses: {text}")


def number_of(db: Db, query: str, *values: Any) -> int:
    """The one number that a query gives; 0 where it gives no row."""
    row = db.execute(query, values).fetchone()
    return int(row[0]) if row is not None else 0


def faults(db: Db, checks: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong, in words: of each pair of a query that counts and a sentence, the sentence where it counts any."""
    return [sentence.format(number) for query, sentence in checks if (number := number_of(db, query))]


def lock(db: Db, name: str) -> None:
    """Wait for the lock of this name, take it, and hold it until the transaction ends."""
    number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)
    db.execute("SELECT pg_advisory_xact_lock(%s)", (number,))


def place_of(url: str) -> str:
    """The database of a URL, without user and password. Raises SettingsError for a URL of anything else."""
    try:
        parts = conninfo_to_dict(url) if urlsplit(url).scheme in SCHEMES else {}
    except (psycopg.Error, ValueError):
        parts = {}
    if not parts:
        raise SettingsError("LIVEMEMFS_INDEX_URL is not a URL of PostgreSQL: postgresql://user:password@host/database")
    host = str(parts.get("host") or "this machine")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{host}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def _secrets(url: str) -> list[str]:
    """The parts of a URL that no message may show."""
    password = str(conninfo_to_dict(url).get("password") or "")
    written = urlsplit(url).password or ""
    return [text for text in {url, password, written, unquote(written)} if text]
