"""The records of an index in PostgreSQL: what was read of the bucket, and what one may filter by.

Owns the tables `object`, `record`, `label`, `spelt` and the rows of `piece`, but not what the text index and the
vectors keep of a piece. A record comes back as it was given; text columns, which one filters by, lose what PostgreSQL
cannot hold (NUL, halves of surrogate pairs). Refuses transactions: callers have one where they need it. Any thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from livememfs.recall.index.engine import Read
from livememfs.recall.index.exchanged import Linked, Restriction, Stored
from livememfs.recall.index.manner import Manner, manner_of
from livememfs.recall.index.merits import IDENTITY, ROUNDING, Foremost, UnaskedMemories, Use, weigh
from livememfs.recall.index.pieces import PieceText, text_of
from livememfs.recall.index.record import Brief, Record, digest
from livememfs.recall.index.sittings import SITTING_SECONDS, Place
from livememfs.recall.postgres.connection import Db
from livememfs.records.keys import COLLECTIONS, UNTIL
from livememfs.records.memory import FRESH, HALF_LIFE


def clean(text: str) -> str:
    """A text as a column of PostgreSQL holds it."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def body_of(record: Record) -> str:
    """A record as JSON, from which it comes back as it was. In ASCII, so that nothing in it is lost."""
    return json.dumps(
        [
            record.ref, record.key, record.etag, record.kind, record.space, record.type, record.agent, record.title,
            record.created, record.importance, record.labels, record.pieces, record.links, record.channel,
            record.updated,
        ]
    )  # fmt: skip


def record_of(body: str) -> Record:
    """The record that `body_of` wrote down."""
    *given, labels, pieces, links, channel, updated = json.loads(body)
    labelled, linked = (tuple((name, value) for name, value in pairs) for pairs in (labels, links))
    values: list[Any] = [*given, labelled, tuple(pieces), linked, channel, updated]
    return Record(*values)


def columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[list[Any]]:
    """Rows as `count` arrays, which `unnest` takes."""
    return [[row[number] for row in rows] for number in range(count)]


# --- writing ------------------------------------------------------------------------------------------------------


def unread(db: Db, read: Iterable[Read], gone: Sequence[str]) -> list[Read]:
    """The objects that the index does not have in this version yet; of several with one key, the last."""
    wanted = {clean(item[0]): item for item in read}
    rows = db.execute("SELECT key, etag FROM object WHERE key = ANY(%s)", (list(wanted),)).fetchall()
    known = {key: etag for key, etag in rows if key not in gone}
    return [item for key, item in wanted.items() if known.get(key) != clean(item[1])]


def forget(db: Db, keys: Sequence[str]) -> tuple[list[int], set[Place]]:
    """Take out objects and their records. Returns the numbers of their pieces, and the places of their notes."""
    rows = db.execute("SELECT id, space, kind, created FROM record WHERE key = ANY(%s)", (list(keys),)).fetchall()
    ids = [row[0] for row in rows]
    numbers = [row[0] for row in db.execute("SELECT number FROM piece WHERE record = ANY(%s)", (ids,))]
    for table in ("label", "named", "link"):
        db.execute(f"DELETE FROM {table} WHERE record = ANY(%s)", (ids,))
    db.execute("DELETE FROM record WHERE id = ANY(%s)", (ids,))
    db.execute("DELETE FROM object WHERE key = ANY(%s)", (list(keys),))
    return numbers, {(space, created) for _, space, kind, created in rows if kind == "live"}


def add(db: Db, read: Sequence[Read]) -> dict[int, Record]:
    """Put in objects with their records and empty pieces. Returns the records by their new numbers."""
    added = [record for *_, records in read for record in records]
    numbered = dict(zip(_numbers(db, "record", "id", len(added)), added, strict=True))
    db.execute(
        "INSERT INTO object SELECT * FROM unnest(%s::text[], %s::text[])",
        ([clean(key) for key, *_ in read], [clean(etag) for _, etag, *_ in read]),
    )
    with db.cursor().copy(
        "COPY record (id, name, ref, key, kind, space, type, agent, created, manner, importance, updated, channel,"
        " body) FROM STDIN"
    ) as copy:
        for number, record in numbered.items():
            copy.write_row(_row(number, record))
    with db.cursor().copy("COPY label FROM STDIN") as copy:
        for number, record in numbered.items():
            for field, value in record.labels:
                copy.write_row((number, clean(f"{field}:{value.casefold()}")))
    _add_links(db, {number: record for number, record in numbered.items() if record.memory_id})
    _add_pieces(db, numbered)
    _note_spelling(db, numbered.values())
    return numbered


def _add_links(db: Db, memories: Mapping[int, Record]) -> None:
    if not memories:
        return
    named = [(number, _called(memory.space, memory.memory_id)) for number, memory in memories.items()]
    db.execute("INSERT INTO named SELECT * FROM unnest(%s::bigint[], %b::bytea[])", columns(named, 2))
    links = [
        (number, clean(relation), _called(memory.space, target))
        for number, memory in memories.items()
        for relation, target in memory.links
    ]
    db.execute("INSERT INTO link SELECT * FROM unnest(%s::bigint[], %s::text[], %b::bytea[])", columns(links, 3))


def _called(space: str, name: str) -> bytes:
    """What a memory is known by in the table of links."""
    return digest(f"{space}/{name}")


def _row(number: int, record: Record) -> tuple[Any, ...]:
    return (
        number, digest(record.ref), clean(record.ref), clean(record.key), clean(record.kind), clean(record.space),
        clean(record.type), clean(record.agent), record.created, int(manner_of(record.text)), record.importance,
        record.updated, clean(record.channel), body_of(record),
    )  # fmt: skip


def _add_pieces(db: Db, records: dict[int, Record]) -> None:
    spaces = sorted({clean(record.space) for record in records.values()})
    known = space_ids(db, spaces)
    missing = [space for space in spaces if space not in known]
    if missing:
        db.execute("INSERT INTO space (name) SELECT unnest(%s::text[])", (missing,))
        known = space_ids(db, spaces)
    rows = [
        (
            number,
            part,
            known[clean(record.space)],
            *map(clean, (record.kind, record.type, record.agent)),
            record.created,
        )
        for number, record in records.items()
        for part in range(len(record.pieces))
    ]
    db.execute(
        "INSERT INTO piece (record, part, space, kind, type, agent, created)"
        " SELECT record, part, space, kind, type, agent, created FROM unnest(%s::bigint[], %s::int[], %s::int[],"
        " %s::text[], %s::text[], %s::text[], %s::bigint[]) WITH ORDINALITY"
        " u(record, part, space, kind, type, agent, created, at) ORDER BY at",
        columns(rows, 7),
    )


def _note_spelling(db: Db, records: Iterable[Record]) -> None:
    rows = sorted(
        {
            (clean(record.space), field, clean(value))
            for record in records
            for field, value in (("type", record.type), ("agent", record.agent))
        }
    )
    db.execute(
        "INSERT INTO spelt SELECT * FROM unnest(%s::text[], %s::text[], %s::text[]) ON CONFLICT DO NOTHING",
        columns(rows, 3),
    )


def _numbers(db: Db, table: str, column: str, count: int) -> list[int]:
    rows = db.execute(
        "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)", (table, column, count)
    )
    return [row[0] for row in rows]


# --- reading ------------------------------------------------------------------------------------------------------


def space_ids(db: Db, names: Sequence[str]) -> dict[str, int]:
    """The numbers of spaces; one that has nothing in it has none."""
    rows = db.execute("SELECT name, id FROM space WHERE name = ANY(%s)", ([clean(name) for name in names],))
    return dict(rows.fetchall())


def objects(db: Db, prefix: str) -> dict[str, str]:
    """Etags of what is indexed below a prefix, by key."""
    low = clean(prefix)
    return dict(
        db.execute("SELECT key, etag FROM object WHERE key >= %s AND key < %s", (low, low + "\U0010ffff")).fetchall()
    )


def bodies(db: Db, ids: Sequence[int]) -> dict[int, Record]:
    """Records by their numbers."""
    rows = db.execute("SELECT id, body FROM record WHERE id = ANY(%s)", (list(ids),))
    return {number: record_of(body) for number, body in rows}


def called(db: Db, refs: Sequence[str]) -> dict[str, Stored]:
    """Records by their `ref`; a memory that ends also by the `ref` that it would have without its end."""
    low = [clean(f"{ref.removesuffix('.md')}{UNTIL}") for ref in refs]
    rows = db.execute(
        "SELECT n.at, r.id, r.body FROM unnest(%b::bytea[]) WITH ORDINALITY n(name, at)"
        " JOIN record r ON r.name = n.name"
        " UNION ALL SELECT k.at, r.id, r.body FROM unnest(%s::text[]) WITH ORDINALITY k(low, at)"
        " JOIN record r ON r.key > k.low AND r.key < k.low || chr(1114111)",
        ([digest(ref) for ref in refs], low),
    )
    return {refs[at - 1]: Stored(number, record_of(body)) for at, number, body in rows}


def naming(db: Db, space: str, files: Sequence[str], limit: int) -> list[Stored]:
    """The records of a space that name one of these files exactly, newest first."""
    rows = db.execute(
        "SELECT r.id, r.body FROM record r WHERE r.space = %s AND r.id IN (SELECT l.record FROM label l"
        " WHERE l.told = ANY(%s)) ORDER BY r.created DESC, r.id DESC LIMIT %s",
        (clean(space), [clean(f"file:{name.casefold()}") for name in files], limit),
    )
    return [Stored(number, record_of(body)) for number, body in rows]


def briefs(db: Db, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
    """What ranking needs of the record of each piece."""
    rows = db.execute(
        "SELECT p.number, p.part, r.id, r.kind, r.space, r.type, r.agent, r.created, r.manner"
        " FROM piece p JOIN record r ON r.id = p.record WHERE p.number = ANY(%s)",
        (list(numbers),),
    )
    return {
        number: (part, Brief(record, kind, space, type_, agent, created, Manner(manner)))
        for number, part, record, kind, space, type_, agent, created, manner in rows
    }


def strict(db: Db, where: Restriction, limit: int) -> list[Stored]:
    """The records that fit a filter, newest first."""
    fits, values = clauses(where, "r")
    rows = db.execute(
        f"SELECT r.id, r.body FROM record r WHERE {fits} ORDER BY r.created DESC, r.id DESC LIMIT %s", (*values, limit)
    )
    return [Stored(number, record_of(body)) for number, body in rows]


def fitting(db: Db, where: Restriction, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> list[int]:
    """The pieces of all records that fit a filter."""
    condition, values = clauses(where, "p", files, not_files)
    rows = db.execute(f"SELECT p.number FROM piece p WHERE {condition} ORDER BY p.number", values)
    return [row[0] for row in rows]


def linked(db: Db, ids: Sequence[int], where: Restriction, limit: int) -> list[Linked]:
    """The links from and to these records, where the other record exists and fits a filter; each way the newest."""
    fits, values = clauses(where, "r")
    links: list[Linked] = []
    for ours, theirs, forward in (("l.record", "n.record", True), ("n.record", "l.record", False)):
        rows = db.execute(
            f"SELECT {ours}, {theirs}, l.relation, p.number FROM link l JOIN named n ON n.name = l.target"
            f" JOIN record r ON r.id = {theirs} JOIN piece p ON p.record = r.id AND p.part = 0"
            f" WHERE {ours} = ANY(%s) AND {fits} ORDER BY {theirs} DESC LIMIT %s",
            (list(ids), *values, limit),
        )
        links += [Linked(of, to, relation, forward, piece) for of, to, relation, piece in rows]
    return links


def foremost(db: Db, spaces: Sequence[str], wanted: UnaskedMemories, uses: Mapping[tuple[str, str], Use]) -> Foremost:
    """The memories that come without being asked for, by the numbers of their records."""
    here = "FROM record r WHERE r.space = ANY(%s) AND r.kind IN ('memories', 'self', 'goals')"
    names = [clean(space) for space in spaces]
    identity = db.execute(
        f"SELECT r.id {here} AND r.type = %s ORDER BY r.importance DESC, r.updated DESC, r.id DESC LIMIT %s",
        (names, IDENTITY, wanted.most),
    ).fetchall()
    recent = db.execute(
        f"SELECT r.id {here} AND r.created >= %s AND %s IN ('', r.channel) ORDER BY r.created DESC, r.id DESC LIMIT %s",
        (names, wanted.since, clean(wanted.channel), wanted.most),
    ).fetchall()
    age = "greatest((%s - r.updated - %s) / %s::float8, 0)"
    weight = f"least(1, r.importance * (0.5 + 0.5 * power(0.5::float8, {age})))"
    values = (wanted.now, FRESH.total_seconds(), HALF_LIFE.total_seconds())
    important = db.execute(
        f"SELECT r.id, {weight} AS weight, r.updated {here} AND r.type <> %s AND r.importance >= %s"
        " ORDER BY weight DESC, r.updated DESC, r.id DESC LIMIT %s",
        (*values, names, IDENTITY, wanted.least - ROUNDING, wanted.most),
    ).fetchall()
    weighed = {number: (float(at), updated) for number, at, updated in important}
    weighed |= _used(db, names, wanted, uses)
    order = sorted(weighed, key=lambda number: (*weighed[number], number), reverse=True)
    return Foremost(tuple(row[0] for row in identity), tuple(order[: wanted.most]), tuple(row[0] for row in recent))


def _used(
    db: Db, spaces: Sequence[str], wanted: UnaskedMemories, uses: Mapping[tuple[str, str], Use]
) -> dict[int, tuple[float, int]]:
    """The weights of the memories that were used, of those that matter: the database knows nothing of their use."""
    keys = {f"{space}/{folder}/{name}": use for (space, name), use in uses.items() for folder in COLLECTIONS}
    rows = db.execute(
        "SELECT id, key, importance, updated FROM record r WHERE r.space = ANY(%s) AND r.type <> %s AND"
        " r.importance >= %s AND split_part(substr(key, 1, length(key) - 3), %s, 1) = ANY(%s)",
        (list(spaces), IDENTITY, wanted.least - ROUNDING, UNTIL, [clean(key) for key in keys]),
    ).fetchall()
    weighed: dict[int, tuple[float, int]] = {}
    for number, key, importance, updated in rows:
        use = keys[key.removesuffix(".md").partition(UNTIL)[0]]
        weight = weigh(np.array(importance), np.array(updated), np.array(use.times), np.array(use.last), wanted.now)
        weighed[number] = float(weight), updated
    return weighed


def spelt(db: Db, field: str, spaces: Sequence[str]) -> list[str]:
    """Every value that a field has had in these spaces."""
    rows = db.execute(
        "SELECT DISTINCT value FROM spelt WHERE field = %s AND space = ANY(%s) ORDER BY value",
        (field, [clean(space) for space in spaces]),
    )
    return [row[0] for row in rows]


def unembedded(db: Db, model: int, limit: int) -> list[PieceText]:
    """Texts that wait for a vector of a model, newest first."""
    rows = db.execute(
        "SELECT p.meaning, p.part, r.body, b.body FROM waiting w JOIN piece p ON p.number = w.number"
        " JOIN record r ON r.id = p.record LEFT JOIN LATERAL (SELECT x.body FROM record x WHERE r.kind = 'live'"
        " AND x.space = r.space AND x.kind = 'live' AND x.created >= r.created - %s"
        " AND (x.created, x.id) < (r.created, r.id) ORDER BY x.created DESC, x.id DESC LIMIT 1) b ON true"
        " WHERE w.model = %s ORDER BY w.number DESC LIMIT %s",
        (SITTING_SECONDS, model, limit),
    )
    texts: dict[bytes, PieceText] = {}
    for meaning, part, body, before in rows:
        text = text_of(record_of(body), part, record_of(before) if before is not None else None)
        # Under the meaning that the piece has: with another one, it would stay without a vector for ever.
        texts[meaning] = replace(text, meaning=meaning)
    return list(texts.values())


def clauses(
    where: Restriction, of: Literal["p", "r"], files: Sequence[str] = (), not_files: Sequence[str] = ()
) -> tuple[str, list[Any]]:
    """A filter in SQL, about a piece `p` or a record `r`. Where it lists pieces, their records fit."""
    parts, values = ["true"], list[Any]()
    record = "p.record" if of == "p" else "r.id"
    for wanted, pairs in ((True, where.fields), (False, where.without)):
        for name, options in pairs:
            column = f"{of}.{name} = ANY(%s)"
            if name == "label":
                column = f"EXISTS (SELECT 1 FROM label l WHERE l.record = {record} AND l.told = ANY(%s))"
            elif name == "space" and of == "p":
                column = "p.space = ANY(ARRAY(SELECT s.id FROM space s WHERE s.name = ANY(%s)))"
            parts.append(column if wanted else f"NOT {column}")
            values.append([clean(option) for option in options])
    for sign, moment in ((">=", where.after), ("<", where.before)):
        if moment is not None:
            parts.append(f"{of}.created {sign} %s")
            values.append(moment)
    for wanted, names in ((True, files), (False, not_files)):
        if names:
            inner = (
                f"EXISTS (SELECT 1 FROM label l, unnest(%s::text[]) f WHERE l.record = {record}"
                " AND l.told LIKE 'file:%%' AND position(f IN substr(l.told, 6)) > 0)"
            )
            parts.append(inner if wanted else f"NOT {inner}")
            values.append([clean(name.casefold()) for name in names])
    if where.numbers is not None:
        parts.append(f"{record} IN (SELECT q.record FROM piece q WHERE q.number = ANY(%s))")
        values.append(list(where.numbers))
    return " AND ".join(parts), values
