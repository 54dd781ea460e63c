"""The records of an index in SQLite: what each is, which pieces it has, and which of them the other two indexes lack.

Owns what stands in the file `records.db` (see `recordfile`, and `kept` for its vectors), whose transactions say what is
indexed; the text index follows by numbers that only grow, so a crash between the two is healed by doing the rest again.
Refuses to decide what is relevant. Threads: as `RecordFile`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from livememfs.recall.index.columns import Column
from livememfs.recall.index.exchanged import Linked, Piece, Restriction, Stored
from livememfs.recall.index.kept import KeptVectors
from livememfs.recall.index.manner import manner_of
from livememfs.recall.index.merits import Merit
from livememfs.recall.index.pieces import PieceText, piece_of, text_of
from livememfs.recall.index.record import Record
from livememfs.recall.index.sittings import AT_ONCE, NEIGHBOURS, SITTING_SECONDS, Sittings, context_of, windows
from livememfs.records.keys import COLLECTIONS, UNTIL

MANY = 16
"""For so many notes of one step, the notes around them are read by one query for each span of time."""
CROWDED = 50
"""That pays while there are no more notes than this around each of them."""
OF_RECORDS = ("piece", "label", "named", "link")
"""The tables whose rows belong to a record; the column `record` says to which."""
_THERE = "SELECT 1 FROM named n WHERE n.space = l.space AND n.name = l.target"


@dataclass(frozen=True, slots=True)
class Delta:
    """What the text index has to take out and put in to be at step `step`."""

    step: int
    gone: tuple[int, ...]
    pieces: tuple[Piece, ...]


class RecordTable(KeptVectors):
    """The open file. `path` None keeps it in memory, for one thread."""

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
            for table in OF_RECORDS:
                self._db.execute(f"DELETE FROM {table} WHERE record = ?", (record,))
            self._db.execute("DELETE FROM record WHERE id = ?", (record,))
        return {(space, kind, created) for _, space, kind, created in rows}

    def _add(self, record: Record, step: int) -> None:
        values = (
            record.ref, record.key, record.etag, record.kind, record.space, record.type, record.agent, record.title,
            record.created, record.importance, json.dumps(record.labels), json.dumps(record.pieces),
            int(manner_of(record.text)), json.dumps(record.links), record.channel, record.updated,
        )  # fmt: skip
        marks = ",".join("?" * len(values))
        cursor = self._db.execute(
            "INSERT INTO record (ref,key,etag,kind,space,type,agent,title,created,importance,labels,pieces,manner,"
            f"links,channel,updated) VALUES ({marks})",
            values,
        )
        number = cursor.lastrowid
        self._db.executemany("INSERT INTO label VALUES (?, ?, ?)", [(number, *label) for label in record.labels])
        if record.memory_id:
            self._db.execute("INSERT INTO named VALUES (?, ?, ?)", (number, record.space, record.memory_id))
            links = [(number, record.space, *link) for link in record.links]
            self._db.executemany("INSERT INTO link VALUES (?, ?, ?, ?)", links)
        self._db.executemany(
            "INSERT INTO piece (record, part, changed, meaning) VALUES (?, ?, ?, ?)",
            [(number, part, step, b"") for part in range(len(record.pieces))],
        )

    def _touch_neighbours(self, places: set[tuple[str, str, int]], step: int) -> None:
        """Notes beside a note that came or went have a new context; new records get their meaning."""
        live = {(space, created) for space, kind, created in places if kind == "live"}
        sittings = self._sittings(live)
        touched: dict[int, Stored] = {}
        if sittings is not None:
            touched = self._stored({number for place in live for number in sittings.touched(place)})
        else:
            for space, created in live:
                around = (*self.beside(space, created, NEIGHBOURS + 1), *self._at_once(space, created))
                touched.update({note.id: note for note in around})
        new = self._db.execute("SELECT * FROM record WHERE id IN (SELECT record FROM piece WHERE meaning = x'')")
        touched.update({stored.id: stored for stored in map(_stored, new.fetchall())})
        self._db.executemany(
            "UPDATE piece SET changed = ?, meaning = ? WHERE record = ? AND part = ?",
            [
                (step, text_of(stored.record, part, before).meaning, stored.id, part)
                for stored, before in self._with_former(touched, sittings)
                for part in range(len(stored.record.pieces))
            ],
        )

    def _with_former(
        self, touched: Mapping[int, Stored], sittings: Sittings | None
    ) -> Iterator[tuple[Stored, Record | None]]:
        """Records with the note before each in the same sitting."""
        if sittings is None:
            yield from ((stored, self._before(stored)) for stored in touched.values())
            return
        former = {
            number: sittings.before((stored.record.space, stored.record.created), number)
            for number, stored in touched.items()
            if _is_live(stored)
        }
        known = self._stored({number for number in former.values() if number is not None})
        for number, stored in touched.items():
            before = former.get(number)
            yield stored, known[before].record if before is not None else None

    def _sittings(self, places: Collection[tuple[str, int]]) -> Sittings | None:
        """The notes around many notes; None where a query for each is better."""
        if len(places) < MANY:
            return None
        rows: list[tuple[str, int, int]] = []
        for window in zip(*windows(places), strict=True):
            most = CROWDED * len(places) - len(rows)
            rows += self._db.execute(
                "SELECT space, created, id FROM record WHERE space = ? AND kind = 'live' AND created BETWEEN ? AND ?"
                " LIMIT ?",
                (*window, most + 1),
            )
            if len(rows) > CROWDED * len(places):
                return None
        return Sittings(rows)

    def _stored(self, ids: Collection[int]) -> dict[int, Stored]:
        """Records by their numbers, of those that are there."""
        rows = self._db.execute("SELECT r.* FROM json_each(?) j JOIN record r ON r.id = j.value", (json.dumps([*ids]),))
        return {row[0]: _stored(row) for row in rows.fetchall()}

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

    def _before(self, stored: Stored) -> Record | None:
        """The note before a note in the same sitting."""
        record = stored.record
        if record.kind != "live":
            return None
        row = self._db.execute(
            "SELECT * FROM record WHERE space = ? AND kind = 'live' AND created >= ? AND (created, id) < (?, ?)"
            " ORDER BY created DESC, id DESC LIMIT 1",
            (record.space, record.created - SITTING_SECONDS, record.created, stored.id),
        ).fetchone()
        return _stored(row).record if row is not None else None

    # --- what the text index lacks --------------------------------------------------------------------------------

    def lacking(self, step: int) -> Delta:
        """What has changed since a step."""
        upto = int(self.state("step") or 0)
        gone = tuple(row[0] for row in self._db.execute("SELECT number FROM gone WHERE changed > ?", (step,)))
        rows = self._db.execute(
            "SELECT p.number, p.part, r.* FROM piece p JOIN record r ON r.id = p.record WHERE p.changed > ?", (step,)
        ).fetchall()
        return Delta(upto, gone, tuple(self._pieces([(row[0], row[1], _stored(row[2:])) for row in rows])))

    def _pieces(self, rows: Sequence[tuple[int, int, Stored]]) -> Iterator[Piece]:
        """Pieces by number, place and record, each with the notes around it."""
        live = {stored.id: (stored.record.space, stored.record.created) for _, _, stored in rows if _is_live(stored)}
        sittings = self._sittings(set(live.values()))
        if sittings is not None:
            beside = {record: sittings.beside(place, NEIGHBOURS) for record, place in live.items()}
            known = self._stored({number for numbers in beside.values() for number in numbers})
        for number, part, stored in rows:
            around: list[Stored] = []
            if stored.id in live and sittings is not None:
                around = [known[other] for other in beside[stored.id]]
            elif stored.id in live:
                around = self.beside(stored.record.space, stored.record.created, NEIGHBOURS)
            others = [note.record for note in around if note.id != stored.id]
            yield piece_of(number, stored.record, part, context_of(stored.record, others))

    def pieces(self, numbers: Sequence[int]) -> list[Piece]:
        """Some pieces, as the text index takes them."""
        return list(self._pieces([(number, *of) for number, of in self.of_pieces(numbers).items()]))

    def settled(self, step: int) -> None:
        """The text index is at a step: what went before need not be remembered. NoSpace, Damaged."""
        with self._step():
            self._put_state("text", str(step))
            self._db.execute("DELETE FROM gone WHERE changed <= ?", (step,))

    def beside(self, space: str, created: int, count: int) -> list[Stored]:
        """The notes around a moment, `count` to each side, in the order of time."""
        around: list[Stored] = []
        for sign, order in (("<", "DESC"), (">=", "ASC")):
            rows = self._db.execute(
                f"SELECT * FROM record WHERE space = ? AND kind = 'live' AND created {sign} ?"
                f" AND created BETWEEN ? AND ? ORDER BY created {order}, id {order} LIMIT ?",
                (space, created, created - SITTING_SECONDS, created + SITTING_SECONDS, count + (sign == ">=")),
            ).fetchall()
            around += [_stored(row) for row in rows]
        return sorted(around, key=lambda stored: (stored.record.created, stored.id))

    def texts(self, numbers: Sequence[int]) -> dict[int, PieceText]:
        """What the vectors of some pieces are made of, in their order."""
        known = self.of_pieces(numbers)
        meanings = dict(self._among("SELECT number, meaning FROM piece WHERE number IN ({})", numbers))
        # Under the meaning that the piece has: with another one, it would stay without a vector for ever.
        return {
            number: replace(text_of(stored.record, part, self._before(stored)), meaning=meanings[number])
            for number in numbers
            if number in known and number in meanings
            for part, stored in (known[number],)
        }

    # --- reading --------------------------------------------------------------------------------------------------

    def objects(self, prefix: str = "") -> dict[str, str]:
        """Etags of what is indexed below a prefix, by key."""
        rows = self._db.execute(
            "SELECT key, etag FROM object WHERE key >= ? AND key < ?", (prefix, prefix + "\U0010ffff")
        )
        return dict(rows.fetchall())

    def of_pieces(self, numbers: Sequence[int]) -> dict[int, tuple[int, Stored]]:
        """The record of each piece, and which of its pieces it is, by number."""
        select = "SELECT p.number, p.part, r.* FROM piece p JOIN record r ON r.id = p.record WHERE p.number IN ({})"
        return {number: (part, _stored(row)) for number, part, *row in self._among(select, numbers)}

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        """Records by their numbers; one that has gone meanwhile is left out."""
        return {number: stored.record for number, stored in self._stored(ids).items()}

    def called(self, refs: Sequence[str]) -> dict[str, Stored]:
        """Records by their `ref`; a memory that ends also by the `ref` that it would have without its end."""
        known: dict[str, Stored] = {}
        for ref in refs:
            low = f"{ref.removesuffix('.md')}{UNTIL}"
            row = self._db.execute(
                "SELECT * FROM record WHERE ref = ? OR (key > ? AND key < ?) LIMIT 1", (ref, low, f"{low}\U0010ffff")
            ).fetchone()
            if row is not None:
                known[ref] = _stored(row)
        return known

    def naming(self, space: str, files: Sequence[str], limit: int) -> list[Stored]:
        """The records of a space that name one of these files exactly, newest first; of very many, the last ones."""
        ids: set[int] = set()
        for name in files:  # one by one: the index has the rows of one value in their order
            rows = self._db.execute(
                "SELECT l.record FROM label l CROSS JOIN record r ON r.id = l.record AND r.space = ?"
                " WHERE l.field = 'file' AND l.value = ? ORDER BY l.rowid DESC LIMIT ?",
                (space, name, limit),
            )
            ids.update(row[0] for row in rows)
        return sorted(self._stored(ids).values(), key=lambda named: (-named.record.created, -named.id))[:limit]

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

    def columns(self, numbers: Sequence[int] | None = None) -> Iterator[Column]:
        """What one may filter and rank by, of every piece or of some."""
        select = (
            "SELECT p.number, p.part, r.id, r.kind, r.space, r.type, r.agent, r.created, r.manner"
            " FROM piece p JOIN record r ON r.id = p.record"
        )
        if numbers is None:
            yield from self._db.execute(select)
        else:
            yield from self._among(f"{select} WHERE p.number IN ({{}})", numbers)

    def merits(self, numbers: Sequence[int] | None = None) -> Iterator[Merit]:
        """What memories are weighed by, of all of them or of those among some pieces, by ascending number."""
        kinds = ",".join(f"'{collection}'" for collection in COLLECTIONS)
        select = (
            "SELECT p.number, r.id, r.space, r.type, r.importance, r.created, r.updated, r.channel FROM piece p"
            f" JOIN record r ON r.id = p.record WHERE r.kind IN ({kinds}) AND p.part = 0"
        )
        if numbers is None:
            yield from map(Merit._make, self._db.execute(f"{select} ORDER BY p.number"))
        else:
            rows = self._among(f"{select} AND p.number IN ({{}}) ORDER BY p.number", sorted(numbers))
            yield from map(Merit._make, rows)

    def pieces_of(self, ids: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """The first pieces of memories by space and id, of those that are there."""
        numbers: dict[tuple[str, str], int] = {}
        for space, name in ids:
            for collection in COLLECTIONS:
                low = f"{space}/{collection}/{name}"
                row = self._db.execute(
                    "SELECT p.number FROM record r JOIN piece p ON p.record = r.id AND p.part = 0"
                    " WHERE r.key = ? OR (r.key > ? AND r.key < ?)",
                    (f"{low}.md", f"{low}{UNTIL}", f"{low}{UNTIL}\U0010ffff"),
                ).fetchone()
                if row is not None:
                    numbers[space, name] = row[0]
        return numbers

    def piece_numbers(self) -> list[int]:
        """Every piece there is."""
        return [row[0] for row in self._db.execute("SELECT number FROM piece")]

    def pieces_there(self) -> int:
        """How many pieces there are."""
        return int(self._db.execute("SELECT count(*) FROM piece").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """Objects, records, pieces, vectors, and pieces that went and the text index may still have."""
        names = {"objects": "object", "records": "record", "pieces": "piece", "vectors": "vector", "gone": "gone"}
        names |= {"links": "link", "lost_links": f"link l WHERE NOT EXISTS ({_THERE})"}
        return {name: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for name, table in names.items()}

    def linked(self, ids: Sequence[int], where: Restriction, limit: int) -> list[Linked]:
        """The links from and to these records, where the other record exists and fits a filter; each way the newest."""
        fits, values = _clauses(where)
        links: list[Linked] = []
        for ours, theirs, forward in (("link l", "named n", True), ("named n", "link l", False)):
            of, to = f"{ours[-1]}.record", f"{theirs[-1]}.record"
            rows = self._db.execute(  # CROSS: in this order, whatever SQLite thinks of it
                f"SELECT {of}, {to}, l.relation, p.number FROM {ours} CROSS JOIN {theirs} CROSS JOIN record r"
                " CROSS JOIN piece p WHERE n.space = l.space AND n.name = l.target"
                f" AND r.id = {to} AND p.record = r.id AND p.part = 0"
                f" AND {of} IN (SELECT value FROM json_each(?)) AND {fits} ORDER BY {to} DESC LIMIT ?",
                (json.dumps([*ids]), *values, limit),
            )
            links += [Linked(record, other, relation, forward, piece) for record, other, relation, piece in rows]
        return links

    def check(self, report: Callable[[str], None]) -> None:
        """Report every inconsistency of the file itself."""
        for (verdict,) in self._db.execute("PRAGMA integrity_check(10)"):
            if verdict != "ok":
                report(verdict)
        for table in OF_RECORDS:
            orphans = f"SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.id = t.record)"
            if count := self._db.execute(orphans).fetchone()[0]:
                report(f"{count} rows of {table} belong to no record")


def _is_live(stored: Stored) -> bool:
    return stored.record.kind == "live"


def _stored(row: Sequence[Any]) -> Stored:
    number, *plain, labels, pieces, _, links, channel, updated = row
    linked = tuple((relation, name) for relation, name in json.loads(links)) if links != "[]" else ()
    values: list[Any] = [*plain, *_listed(labels, pieces), linked, channel, updated]
    return Stored(number, Record(*values))


@lru_cache(1_024)
def _listed(labels: str, pieces: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The lists of a record. Cached: a new record is read about ten times, as the neighbour of others."""
    named = tuple((name, value) for name, value in json.loads(labels)) if labels != "[]" else ()
    return named, tuple(json.loads(pieces))


def _clauses(where: Restriction, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """A filter in SQL, about `r`."""
    parts, values = ["1"], list[Any]()
    for wanted, pairs in ((True, where.fields), (False, where.without)):
        for name, options in pairs:
            if name == "label":
                # From the label, by its index: a label that few records have is found without a look at all others.
                either = " OR ".join(["(l.field = ? AND fold(l.value) = ?)"] * len(options))
                parts.append(f"r.id {'' if wanted else 'NOT '}IN (SELECT l.record FROM label l WHERE {either})")
                values += [part for option in options for part in option.split(":", 1)]
            else:
                parts.append(f"r.{name} {'' if wanted else 'NOT '}IN ({','.join('?' * len(options))})")
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
