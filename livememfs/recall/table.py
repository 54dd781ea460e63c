"""The records of an index in SQLite: what each is, which pieces it has, and which of them the other two indexes lack.

Owns the file `records.db`, whose transactions say what is indexed; the text index follows by numbers that only grow, so
a crash between the two is healed by doing the rest again. Vectors are kept here by the digest of their text, since a
text that comes back need not be computed again. Refuses a file of another version: Damaged, and its owner makes a new
one. Writing is for one thread at a time (the owner's lock); each thread reads by a connection of its own.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from livememfs.errors import NoSpace
from livememfs.recall.lexical import Damaged, Piece, Restriction
from livememfs.recall.record import Brief, Record, digest, divided
from livememfs.recall.words import language_of

VERSION = 3
NEIGHBOURS = 2
"""Notes before and after one that were written in the same sitting, and count as its context."""
SITTING_SECONDS = 1_800
"""Two notes further apart than this have nothing to say about each other."""
SHORT = 400
"""Characters of a note that may need the one before it to be understood, and of that one, its end, that help. A model
takes time by length."""
AT_ONCE = 64
"""Notes of one second that are looked at anew when one of them comes or goes."""
_CHUNK = 500

_SCHEMA = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
-- What was read of the bucket: a key whose etag is listed here need not be read again.
CREATE TABLE object (key TEXT PRIMARY KEY, etag TEXT NOT NULL, space TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE record (
    id INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT NOT NULL UNIQUE, key TEXT NOT NULL, etag TEXT NOT NULL,
    kind TEXT NOT NULL, space TEXT NOT NULL, type TEXT NOT NULL, agent TEXT NOT NULL, title TEXT NOT NULL,
    created INTEGER NOT NULL, importance REAL NOT NULL, labels TEXT NOT NULL, pieces TEXT NOT NULL,
    asks INTEGER NOT NULL
);
CREATE INDEX record_key ON record(key);
CREATE INDEX record_time ON record(space, kind, created);
CREATE TABLE label (record INTEGER NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL);
CREATE INDEX label_record ON label(record);
CREATE INDEX label_value ON label(field, value);
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


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as it stands in the table."""

    id: int
    record: Record


@dataclass(frozen=True, slots=True)
class Delta:
    """What the text index has to take out and put in to be at step `step`."""

    step: int
    gone: tuple[int, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """What the vector of a piece is made of: the piece itself and, where something was said just before it in the same
    sitting, that and the piece together. An answer often makes sense only after its question.
    """

    own: str
    around: str = ""
    meaning: bytes = b""
    """What the vector is kept under."""

    def known(self) -> Text:
        """With the meaning that follows from the texts."""
        return replace(self, meaning=digest(f"{self.own}\0{self.around}"))


class _Connection(sqlite3.Connection):
    """One that can be referred to weakly."""


class Table:
    """The open file. `path` None keeps it in memory, for one thread."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
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
        found: _Connection | None = getattr(self._local, "db", None)
        if found is None:
            found = sqlite3.connect(
                self._path or ":memory:",
                isolation_level=None,
                timeout=10.0,
                cached_statements=256,
                check_same_thread=False,
                factory=_Connection,
            )
            found.create_function("fold", 1, str.casefold, deterministic=True)  # SQLite's lower() knows ASCII alone
            for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "temp_store=MEMORY", "cache_size=-16000"):
                found.execute(f"PRAGMA {pragma}")
            self._local.db = found
            self._open.add(found)
        return found

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

    # --- writing --------------------------------------------------------------------------------------------------

    def apply(self, gone: Iterable[str], read: Iterable[tuple[str, str, str, Sequence[Record]]]) -> int:
        """Forget the objects `gone`; take `read` (key, etag, space, records) in their place. The step it was."""
        with self._step() as step:
            touched: set[tuple[str, str, int]] = set()
            for key in gone:
                touched |= self._forget(key, step)
                self._db.execute("DELETE FROM object WHERE key = ?", (key,))
            for key, etag, space, records in read:
                touched |= self._forget(key, step)
                self._db.execute("INSERT OR REPLACE INTO object VALUES (?, ?, ?)", (key, etag, space))
                for record in records:
                    self._add(record, step)
                    touched.add((record.space, record.kind, record.created))
            self._touch_neighbours(touched, step)
        return step

    def _forget(self, key: str, step: int) -> set[tuple[str, str, int]]:
        rows = self._db.execute("SELECT id, space, kind, created FROM record WHERE key = ?", (key,)).fetchall()
        for record, *_ in rows:
            self._db.execute("INSERT INTO gone SELECT number, ? FROM piece WHERE record = ?", (step, record))
            for table, column in (("piece", "record"), ("label", "record"), ("record", "id")):
                self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (record,))
        return {(space, kind, created) for _, space, kind, created in rows}

    def _add(self, record: Record, step: int) -> None:
        values = (
            record.ref, record.key, record.etag, record.kind, record.space, record.type, record.agent, record.title,
            record.created, record.importance, json.dumps(record.labels), json.dumps(record.pieces),
            record.text.endswith("?"),
        )  # fmt: skip
        marks = ",".join("?" * len(values))
        cursor = self._db.execute(
            "INSERT INTO record (ref,key,etag,kind,space,type,agent,title,created,importance,labels,pieces,asks)"
            f" VALUES ({marks})",
            values,
        )
        number = cursor.lastrowid
        self._db.executemany("INSERT INTO label VALUES (?, ?, ?)", [(number, *label) for label in record.labels])
        self._db.executemany(
            "INSERT INTO piece (record, part, changed, meaning) VALUES (?, ?, ?, ?)",
            [(number, part, step, b"") for part in range(len(record.pieces))],
        )

    def _touch_neighbours(self, places: set[tuple[str, str, int]], step: int) -> None:
        """What stands beside a record that came or went has another context now, and what came has a meaning."""
        touched: dict[int, Stored] = {}
        for space, kind, created in places:
            if kind == "live":
                touched.update({one.id: one for one in self.beside(space, kind, created, NEIGHBOURS + 1)})
                touched.update({one.id: one for one in self._at_once(space, created)})
        new = self._db.execute("SELECT * FROM record WHERE id IN (SELECT record FROM piece WHERE meaning = x'')")
        touched.update({one.id: one for one in map(_stored, new.fetchall())})
        self._db.executemany(
            "UPDATE piece SET changed = ?, meaning = ? WHERE record = ? AND part = ?",
            [
                (step, self.text(stored, part).meaning, stored.id, part)
                for stored in touched.values()
                for part in range(len(stored.record.pieces))
            ],
        )

    def _at_once(self, space: str, created: int) -> list[Stored]:
        """The notes of one second, and those that come next: an import may write many with one time."""
        rows = self._db.execute(
            "SELECT * FROM record WHERE space = ? AND kind = 'live' AND created = ? ORDER BY id DESC LIMIT ?",
            (space, created, AT_ONCE),
        ).fetchall()
        rows += self._db.execute(
            "SELECT * FROM record WHERE space = ? AND kind = 'live' AND created BETWEEN ? AND ? ORDER BY created, id"
            " LIMIT ?",
            (space, created + 1, created + SITTING_SECONDS, NEIGHBOURS + 1),
        ).fetchall()
        return [_stored(row) for row in rows]

    def text(self, stored: Stored, part: int) -> Text:
        """What the vector of a piece is made of."""
        record = stored.record
        if record.kind != "live":
            return text_of(record, part, None)
        row = self._db.execute(
            "SELECT * FROM record WHERE space = ? AND kind = 'live' AND created >= ? AND (created, id) < (?, ?)"
            " ORDER BY created DESC, id DESC LIMIT 1",
            (record.space, record.created - SITTING_SECONDS, record.created, stored.id),
        ).fetchone()
        return text_of(record, part, _stored(row).record if row is not None else None)

    # --- what the text index lacks --------------------------------------------------------------------------------

    def lacking(self, step: int) -> Delta:
        """What has changed since a step."""
        upto = int(self.state("step") or 0)
        gone = tuple(row[0] for row in self._db.execute("SELECT number FROM gone WHERE changed > ?", (step,)))
        rows = self._db.execute(
            "SELECT p.number, p.part, r.* FROM piece p JOIN record r ON r.id = p.record WHERE p.changed > ?", (step,)
        ).fetchall()
        return Delta(upto, gone, tuple(self._piece(row[0], row[1], _stored(row[2:])) for row in rows))

    def pieces(self, numbers: Sequence[int]) -> list[Piece]:
        """Some pieces, as the text index takes them."""
        return [self._piece(number, part, stored) for number, (part, stored) in self.of_pieces(numbers).items()]

    def _piece(self, number: int, part: int, stored: Stored) -> Piece:
        record = stored.record
        beside = self.beside(record.space, record.kind, record.created, NEIGHBOURS) if record.kind == "live" else []
        return piece_of(number, record, part, [other.record for other in beside if other.id != stored.id])

    def settled(self, step: int) -> None:
        """The text index is at a step: what went before need not be remembered. NoSpace, Damaged."""
        with self._step():
            self._put_state("text", str(step))
            self._db.execute("DELETE FROM gone WHERE changed <= ?", (step,))

    def beside(self, space: str, kind: str, created: int, count: int) -> list[Stored]:
        """The records of one kind around a moment, `count` to each side, in the order of time."""
        sides = (("<", "DESC"), (">=", "ASC"))
        found: list[Stored] = []
        for sign, order in sides:
            rows = self._db.execute(
                f"SELECT * FROM record WHERE space = ? AND kind = ? AND created {sign} ? AND created BETWEEN ? AND ?"
                f" ORDER BY created {order}, id {order} LIMIT ?",
                (space, kind, created, created - SITTING_SECONDS, created + SITTING_SECONDS, count + (sign == ">=")),
            ).fetchall()
            found += [_stored(row) for row in rows]
        return sorted(found, key=lambda stored: (stored.record.created, stored.id))

    # --- vectors --------------------------------------------------------------------------------------------------

    def without_vector(self, model: str, numbers: Sequence[int] | None = None) -> list[int]:
        """The pieces, of all or of some, that have no vector of this model, ascending."""
        select = (
            "SELECT p.number FROM piece p WHERE NOT EXISTS"
            " (SELECT 1 FROM vector v WHERE v.model = ? AND v.meaning = p.meaning)"
        )
        if numbers is None:
            return [row[0] for row in self._db.execute(f"{select} ORDER BY p.number", (model,))]
        found: list[int] = []
        for chunk in _chunks(numbers):
            marks = ",".join("?" * len(chunk))
            found += (row[0] for row in self._db.execute(f"{select} AND p.number IN ({marks})", (model, *chunk)))
        return sorted(found)

    def texts(self, numbers: Sequence[int]) -> dict[int, Text]:
        """What the vectors of some pieces are made of, in their order."""
        found = self.of_pieces(numbers)
        meanings: dict[int, bytes] = {}
        for chunk in _chunks(numbers):
            marks = ",".join("?" * len(chunk))
            meanings.update(self._db.execute(f"SELECT number, meaning FROM piece WHERE number IN ({marks})", chunk))
        # Under the meaning that the piece has: with another one, it would stay without a vector for ever.
        return {
            number: replace(self.text(found[number][1], found[number][0]), meaning=meanings[number])
            for number in numbers
            if number in found and number in meanings
        }

    def keep_vectors(self, model: str, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors by digest. NoSpace, Damaged."""
        with self._step():
            self._db.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?)",
                [(meaning, model, eight) for meaning, eight in vectors],
            )

    def vectors(self, model: str, meanings: Sequence[bytes] | None = None) -> Iterator[tuple[str, int, bytes]]:
        """Space, number and vector of every piece that has one; or of the pieces with one of these digests."""
        select = (
            "SELECT r.space, p.number, v.eight FROM piece p JOIN vector v ON v.model = ? AND v.meaning = p.meaning"
            " JOIN record r ON r.id = p.record"
        )
        if meanings is None:
            yield from self._db.execute(select, (model,))
            return
        for chunk in _chunks(meanings):
            marks = ",".join("?" * len(chunk))
            yield from self._db.execute(f"{select} WHERE p.meaning IN ({marks})", (model, *chunk)).fetchall()

    def meanings(self, numbers: Sequence[int]) -> list[bytes]:
        """The digests of pieces."""
        found: set[bytes] = set()
        for chunk in _chunks(numbers):
            marks = ",".join("?" * len(chunk))
            found |= {row[0] for row in self._db.execute(f"SELECT meaning FROM piece WHERE number IN ({marks})", chunk)}
        return list(found)

    def eights(self, model: str, meanings: Sequence[bytes]) -> dict[bytes, bytes]:
        """Vectors by digest, of those that there are."""
        found: dict[bytes, bytes] = {}
        for chunk in _chunks(meanings):
            marks = ",".join("?" * len(chunk))
            select = f"SELECT meaning, eight FROM vector WHERE model = ? AND meaning IN ({marks})"
            found.update(self._db.execute(select, (model, *chunk)).fetchall())
        return found

    # --- segments of the bucket -----------------------------------------------------------------------------------

    def segments(self, model: str, space: str) -> dict[str, list[bytes]]:
        """The digests in each segment of a space that is known here, by its name."""
        select = "SELECT name, meanings FROM segment WHERE model = ? AND space = ?"
        return {name: divided(blob) for name, blob in self._db.execute(select, (model, space)).fetchall()}

    def keep_segment(self, model: str, space: str, name: str, vectors: Sequence[tuple[bytes, bytes]]) -> None:
        """Take note of a segment and keep its vectors, those that are new here. NoSpace, Damaged."""
        with self._step():
            self._db.executemany(
                "INSERT OR IGNORE INTO vector VALUES (?, ?, ?)", [(meaning, model, eight) for meaning, eight in vectors]
            )
            joined = b"".join(meaning for meaning, _ in vectors)
            self._db.execute("INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?)", (model, space, name, joined))

    def forget_segments(self, model: str, space: str, names: Iterable[str]) -> None:
        """The bucket has them no more. NoSpace, Damaged."""
        with self._step():
            self._db.executemany(
                "DELETE FROM segment WHERE model = ? AND space = ? AND name = ?",
                [(model, space, name) for name in names],
            )

    def meanings_of(self, space: str) -> set[bytes]:
        """The digests of all pieces of a space."""
        select = "SELECT p.meaning FROM piece p JOIN record r ON r.id = p.record WHERE r.space = ?"
        return {row[0] for row in self._db.execute(select, (space,))}

    def spaces_of(self, meanings: Sequence[bytes]) -> dict[str, set[bytes]]:
        """Digests by the spaces that have pieces with them."""
        found: dict[str, set[bytes]] = {}
        for chunk in _chunks(meanings):
            marks = ",".join("?" * len(chunk))
            rows = self._db.execute(
                f"SELECT r.space, p.meaning FROM piece p JOIN record r ON r.id = p.record WHERE p.meaning IN ({marks})",
                chunk,
            )
            for space, meaning in rows:
                found.setdefault(space, set()).add(meaning)
        return found

    # --- reading --------------------------------------------------------------------------------------------------

    def objects(self, prefix: str = "") -> dict[str, str]:
        """Etags of what is indexed below a prefix, by key."""
        rows = self._db.execute(
            "SELECT key, etag FROM object WHERE key >= ? AND key < ?", (prefix, prefix + "\U0010ffff")
        )
        return dict(rows.fetchall())

    def of_pieces(self, numbers: Sequence[int]) -> dict[int, tuple[int, Stored]]:
        """The record of each piece, and which of its pieces it is, by number."""
        found: dict[int, tuple[int, Stored]] = {}
        for chunk in _chunks(numbers):
            marks = ",".join("?" * len(chunk))
            rows = self._db.execute(
                "SELECT p.number, p.part, r.* FROM piece p JOIN record r ON r.id = p.record"
                f" WHERE p.number IN ({marks})",
                chunk,
            )
            found |= {row[0]: (row[1], _stored(row[2:])) for row in rows}
        return found

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        """Records by their numbers; one that has gone meanwhile is left out."""
        found: dict[int, Record] = {}
        for chunk in _chunks(ids):
            marks = ",".join("?" * len(chunk))
            rows = self._db.execute(f"SELECT r.* FROM record r WHERE r.id IN ({marks})", chunk)
            found |= {stored.id: stored.record for stored in map(_stored, rows)}
        return found

    def select(self, where: Restriction, limit: int) -> list[Stored]:
        """The records that fit a filter, newest first: the strict search (claude-mem 4.2)."""
        clauses, values = _clauses(where)
        rows = self._db.execute(
            f"SELECT r.* FROM record r WHERE {clauses} ORDER BY r.created DESC, r.id DESC LIMIT ?", (*values, limit)
        )
        return [_stored(row) for row in rows.fetchall()]

    def numbers(self, where: Restriction, *, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> list[int]:
        """The pieces of all records that fit a filter; `files`: parts of names, one of which they must have."""
        clauses, values = _clauses(where, files, not_files)
        rows = self._db.execute(
            f"SELECT p.number FROM piece p JOIN record r ON r.id = p.record WHERE {clauses}", tuple(values)
        )
        return [row[0] for row in rows]

    def columns(self, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, int, Brief]]:
        """Number, place in its record and what ranking needs of that, of every piece or of some."""
        select = (
            "SELECT p.number, p.part, r.id, r.kind, r.space, r.type, r.agent, r.created, r.asks"
            " FROM piece p JOIN record r ON r.id = p.record"
        )
        if numbers is None:
            yield from ((number, part, Brief(*rest)) for number, part, *rest in self._db.execute(select))
            return
        for chunk in _chunks(numbers):
            marks = ",".join("?" * len(chunk))
            rows = self._db.execute(f"{select} WHERE p.number IN ({marks})", chunk).fetchall()
            yield from ((number, part, Brief(*rest)) for number, part, *rest in rows)

    def piece_numbers(self) -> list[int]:
        """Every piece there is."""
        return [row[0] for row in self._db.execute("SELECT number FROM piece")]

    def counts(self) -> dict[str, int]:
        """Objects, records, pieces, vectors, and pieces that went and the text index may still have."""
        names = {"objects": "object", "records": "record", "pieces": "piece", "vectors": "vector", "gone": "gone"}
        return {name: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for name, table in names.items()}

    def check(self, quick: Callable[[str], None]) -> None:
        """Tell of every inconsistency of the file itself."""
        for (said,) in self._db.execute("PRAGMA integrity_check(10)"):
            if said != "ok":
                quick(said)
        for table, column in (("piece", "record"), ("label", "record")):
            rows = self._db.execute(
                f"SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.id = t.{column})"
            )
            count = rows.fetchone()[0]
            if count:
                quick(f"{count} rows of {table} belong to no record")


def spoken(record: Record, text: str) -> str:
    """A text as it is embedded and found: with who said it and when, which is half of what people ask by."""
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{record.agent} ({moment.day} {moment:%B %Y}): {text}" if record.kind == "live" else text


def text_of(record: Record, part: int, before: Record | None) -> Text:
    """What the vector of a piece is made of; `before`: the note just before it in the same sitting."""
    own = spoken(record, record.pieces[part])
    if before is None or len(own) > SHORT:
        return Text(own).known()
    return Text(own, f"{spoken(before, before.text[-SHORT:])}\n{own}").known()


def piece_of(number: int, record: Record, part: int, beside: Iterable[Record]) -> Piece:
    """A piece as the text index takes it; `beside`: the notes around it in the same sitting."""
    text = record.pieces[part]
    heading = f"{record.title}\n" if record.title and part else ""
    return Piece(
        number=number,
        language=language_of(text),
        text=heading + spoken(record, text),
        context="\n".join(spoken(other, other.text) for other in beside),
        space=record.space,
        kind=record.kind,
        type=record.type,
        agent=record.agent,
        created=record.created,
        labels=tuple(f"{name}:{value.casefold()}" for name, value in record.labels),
    )


def _stored(row: Sequence[Any]) -> Stored:
    number, ref, key, etag, kind, space, type_, agent, title, created, importance, labels, pieces, _ = row
    told, texts = _listed(labels, pieces)
    return Stored(number, Record(ref, key, etag, kind, space, type_, agent, title, created, importance, told, texts))


@lru_cache(1_024)
def _listed(labels: str, pieces: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The lists of a record. One that is taken in is read ten times, as whose neighbour it is."""
    return tuple((name, value) for name, value in json.loads(labels)), tuple(json.loads(pieces))


def _clauses(where: Restriction, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """A filter in SQL, about `r`."""
    parts, values = ["1"], list[Any]()
    for wanted, pairs in ((True, where.fields), (False, where.without)):
        for name, options in pairs:
            marks = ",".join("?" * len(options))
            if name == "label":
                inner = f"SELECT 1 FROM label l WHERE l.record = r.id AND l.field || ':' || fold(l.value) IN ({marks})"
                parts.append(f"{'' if wanted else 'NOT '}EXISTS ({inner})")
            else:
                parts.append(f"r.{name} {'' if wanted else 'NOT '}IN ({marks})")
            values += options
    for sign, moment in ((">=", where.after), ("<", where.before)):
        if moment is not None:
            parts.append(f"r.created {sign} ?")
            values.append(moment)
    for wanted, names in ((True, files), (False, not_files)):
        if names:
            either = " OR ".join(["instr(fold(l.value), ?)"] * len(names))
            inner = f"SELECT 1 FROM label l WHERE l.record = r.id AND l.field = 'file' AND ({either})"
            parts.append(f"{'' if wanted else 'NOT '}EXISTS ({inner})")
            values += [name.casefold() for name in names]
    if where.numbers is not None:
        parts.append("EXISTS (SELECT 1 FROM piece q JOIN json_each(?) j ON j.value = q.number WHERE q.record = r.id)")
        values.append(json.dumps(where.numbers))
    return " AND ".join(parts), values


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
