"""Meaning in PostgreSQL: which pieces lie near a question, by the angle between vectors.

Owns the tables `model`, `kept`, `near`, `mean` and `waiting`. Angles are taken relative to the mean of the space,
drawn to that of any texts, as in `vectors`. A space is scanned until it is so large that pgvector's graph is faster;
what the graph hands on is scored exactly. Writing needs a transaction in which nobody else writes. Any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from psycopg import sql

from livememfs.recall.embed.prior import WEIGHT
from livememfs.recall.index.exchanged import Restriction
from livememfs.recall.index.vectors import Floats
from livememfs.recall.postgres.connection import Db, faults, number_of
from livememfs.recall.postgres.records import clauses, clean, columns

INDEXED_FROM = 50_000
"""Vectors of a space from which it gets a graph; to scan fewer takes no longer, after a filter as well."""
RESCORED = 1_000
"""Vectors that the graph hands on."""
_EF_SEARCH = 400
_MOST_DIMENSIONS = 4_000
"""pgvector makes no graph of longer vectors."""


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model whose vectors are here. `dim` None: none has come; `origin`: what was subtracted from those in `near`."""

    id: int
    dim: int | None
    prior: Floats | None
    origin: Floats | None


@dataclass(frozen=True, slots=True)
class _Space:
    """A space as one question sees it: the question and the mean relative to the origin."""

    id: int
    count: int
    indexed: bool
    asked: Floats
    mean: Floats


# --- models -------------------------------------------------------------------------------------------------------


def model_of(db: Db, name: str) -> StoredModel | None:
    """The model of a name, None when it has never been here."""
    row = db.execute("SELECT id, dim, prior, origin FROM model WHERE name = %s", (name,)).fetchone()
    return _model(row) if row is not None else None


def _model(row: Sequence[Any]) -> StoredModel:
    return StoredModel(row[0], row[1], _floats(row[2]), _floats(row[3]))


def register(db: Db, name: str) -> StoredModel:
    """The model of a name; a new one lacks a vector for every piece."""
    if (model := model_of(db, name)) is not None:
        return model
    db.execute("INSERT INTO model (name) VALUES (%s)", (name,))
    db.execute("INSERT INTO waiting SELECT m.id, p.number FROM model m, piece p WHERE m.name = %s", (name,))
    model = model_of(db, name)
    assert model is not None
    return model


def expect(db: Db, model: StoredModel, prior: Floats) -> None:
    """Keep the mean of any texts, and store the vectors relative to it: without that they all point much the same way,
    and the graph cannot tell them apart.

    Where another mount has computed nearly the same mean, that one stays: a change rewrites every vector.
    """
    prior = np.asarray(prior, np.float32)
    if model.prior is not None and len(model.prior) == len(prior) and np.allclose(model.prior, prior, atol=1e-3):
        return
    db.execute("UPDATE model SET prior = %s WHERE id = %s", (prior.tobytes(), model.id))
    if model.dim not in (None, len(prior)):
        return
    if model.dim is not None:
        moved = prior - (model.origin if model.origin is not None else 0)
        by = literal(np.asarray(moved, np.float32))
        db.execute("SET LOCAL statement_timeout = 0")
        db.execute("UPDATE near SET at = (at::vector - %s::vector)::halfvec WHERE model = %s", (by, model.id))
    db.execute("UPDATE model SET origin = prior WHERE id = %s", (model.id,))
    db.execute("DELETE FROM mean WHERE model = %s AND NOT indexed", (model.id,))
    db.execute(
        "INSERT INTO mean SELECT model, space, count(*), sum(at::vector) FROM near WHERE model = %s GROUP BY 1, 2"
        " ON CONFLICT (model, space) DO UPDATE SET count = EXCLUDED.count, total = EXCLUDED.total",
        (model.id,),
    )


# --- writing ------------------------------------------------------------------------------------------------------


def take(db: Db, model: StoredModel, meanings: Sequence[bytes], vectors: Floats) -> None:
    """Keep vectors by the meanings of their texts. A meaning that has a vector keeps it."""
    if not len(meanings):
        return
    if model.dim is None:
        db.execute("UPDATE model SET dim = %s WHERE id = %s", (vectors.shape[1], model.id))
    rows = sorted(dict(zip(meanings, map(literal, vectors), strict=True)).items())
    db.execute(
        "INSERT INTO kept SELECT %s, u.meaning, u.at::halfvec FROM unnest(%b::bytea[], %s::text[]) u(meaning, at)"
        " ON CONFLICT DO NOTHING",
        (model.id, *columns(rows, 2)),
    )
    pieces = db.execute("SELECT number FROM piece WHERE meaning = ANY(%b)", (list(meanings),)).fetchall()
    place(db, [row[0] for row in pieces])


def place(db: Db, numbers: Sequence[int]) -> None:
    """Have pieces found by the vectors of their meanings. Where a meaning has none yet, the old vector stays."""
    db.execute("DELETE FROM waiting WHERE number = ANY(%s)", (list(numbers),))
    db.execute(
        "INSERT INTO waiting SELECT m.id, p.number FROM model m CROSS JOIN piece p WHERE p.number = ANY(%s)"
        " AND NOT EXISTS (SELECT 1 FROM kept v WHERE v.model = m.id AND v.meaning = p.meaning)",
        (list(numbers),),
    )
    for model in [_model(row) for row in db.execute("SELECT id, dim, prior, origin FROM model ORDER BY id").fetchall()]:
        if model.dim is not None:
            _place(db, model, numbers)


def _place(db: Db, model: StoredModel, numbers: Sequence[int]) -> None:
    origin = model.origin if model.origin is not None else np.zeros(model.dim or 0, np.float32)
    rows = db.execute(
        "SELECT p.number FROM piece p JOIN kept v ON v.model = %s AND v.meaning = p.meaning"
        " WHERE p.number = ANY(%s) AND vector_dims(v.at) = %s",
        (model.id, list(numbers), model.dim),
    )
    ready = [row[0] for row in rows]
    _remove(db, ready, model.id)
    db.execute(
        "WITH come AS (INSERT INTO near SELECT %s, p.number, p.space, (v.at::vector - %s::vector)::halfvec"
        " FROM piece p JOIN kept v ON v.model = %s AND v.meaning = p.meaning WHERE p.number = ANY(%s)"
        " RETURNING model, space, at)"
        " INSERT INTO mean SELECT model, space, count(*), sum(at::vector) FROM come GROUP BY 1, 2"
        " ON CONFLICT (model, space) DO UPDATE SET count = mean.count + EXCLUDED.count,"
        " total = mean.total + EXCLUDED.total",
        (model.id, literal(origin), model.id, ready),
    )


def remove(db: Db, numbers: Sequence[int]) -> None:
    """Forget the vectors of pieces that are removed. Those of their texts stay in `kept`: a text may come back."""
    db.execute("DELETE FROM waiting WHERE number = ANY(%s)", (list(numbers),))
    _remove(db, numbers, None)


def _remove(db: Db, numbers: Sequence[int], model: int | None) -> None:
    db.execute(
        "WITH went AS (DELETE FROM near WHERE number = ANY(%s) AND model = coalesce(%s, model)"
        " RETURNING model, space, at), less AS (SELECT model, space, count(*) AS n, sum(at::vector) AS total FROM went"
        " GROUP BY 1, 2) UPDATE mean m SET count = m.count - less.n, total = m.total - less.total FROM less"
        " WHERE m.model = less.model AND m.space = less.space",
        (list(numbers), model),
    )


def without_graph(db: Db, model: StoredModel) -> list[int]:
    """The spaces that have become so large that they should have a graph, and have none."""
    rows = db.execute(
        "SELECT space FROM mean WHERE model = %s AND NOT indexed AND count >= %s", (model.id, INDEXED_FROM)
    )
    return [row[0] for row in rows] if model.dim is None or model.dim <= _MOST_DIMENSIONS else []


def make_graphs(db: Db, model: StoredModel) -> None:
    """Make a graph for each space that has become large. It grows by itself from then on."""
    for space in without_graph(db, model):
        db.execute("SET LOCAL statement_timeout = 0")
        db.execute("SET LOCAL maintenance_work_mem = '512MB'")
        db.execute(
            sql.SQL(
                "CREATE INDEX IF NOT EXISTS {} ON near USING hnsw ((at::halfvec({})) halfvec_cosine_ops)"
                " WHERE model = {} AND space = {}"
            ).format(
                sql.Identifier(f"near_{model.id}_{space}"), *(sql.Literal(n) for n in (model.dim, model.id, space))
            )
        )
        db.execute("UPDATE mean SET indexed = true WHERE model = %s AND space = %s", (model.id, space))


# --- asking -------------------------------------------------------------------------------------------------------


def near(db: Db, name: str, question: Floats, where: Restriction, limit: int) -> list[tuple[int, float]]:
    """Numbers of pieces and cosines, best first."""
    model = model_of(db, name)
    if model is None or model.dim != len(question):
        return []
    wanted = next((values for field, values in where.fields if field == "space"), None)
    spaces = _spaces(db, model, question, wanted)
    rest = replace(where, fields=tuple(pair for pair in where.fields if pair[0] != "space"))
    large = [space for space in spaces if space.indexed and not _few(db, space, rest)]
    hits = _scanned(db, model, [space for space in spaces if space not in large], rest, limit)
    for space in large:
        hits += _searched(db, model, space, rest, limit)
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit]


def _spaces(db: Db, model: StoredModel, question: Floats, wanted: Sequence[str] | None) -> list[_Space]:
    rows = db.execute(
        "SELECT m.space, m.count, m.total::text, m.indexed FROM mean m JOIN space s ON s.id = m.space"
        " WHERE m.model = %s AND m.count > 0 AND (%s::text[] IS NULL OR s.name = ANY(%s::text[]))",
        (model.id, *2 * ([clean(name) for name in wanted] if wanted is not None else None,)),
    ).fetchall()
    origin = model.origin if model.origin is not None else np.zeros(len(question), np.float32)
    spaces: list[_Space] = []
    for space, count, total, indexed in rows:
        whole, weight = np.fromstring(total[1:-1], np.float32, sep=","), float(count)
        if model.prior is not None and len(model.prior) == len(question):
            whole, weight = whole + WEIGHT * (model.prior - origin), weight + WEIGHT
        mean = np.asarray(whole / weight, np.float32)
        asked = question - origin - mean
        length = float(np.linalg.norm(asked))
        if length:
            spaces.append(_Space(space, count, indexed, np.asarray(asked / length, np.float32), mean))
    return spaces


_COSINE = "(-(n.at <#> {asked}) - {dot}) / greatest(n.at <-> {mean}, 1e-6)"


def _filter(where: Restriction) -> tuple[str, list[Any]]:
    """A filter in SQL, about a piece `p`; empty where every piece fits."""
    if where == Restriction():
        return "", []
    condition, values = clauses(replace(where, numbers=None), "p")
    if where.numbers is not None:  # these pieces, not others of their records
        condition, values = f"{condition} AND p.number = ANY(%s)", [*values, list(where.numbers)]
    return condition, values


def _few(db: Db, space: _Space, where: Restriction) -> bool:
    """Whether a filter leaves so few pieces of a space that the vectors of all can be scored."""
    condition, values = _filter(where)
    if not condition:
        return False
    pieces = f"SELECT count(*) FROM (SELECT 1 FROM piece p WHERE p.space = %s AND {condition} LIMIT %s) few"
    return number_of(db, pieces, space.id, *values, INDEXED_FROM) < INDEXED_FROM


def _scanned(
    db: Db, model: StoredModel, spaces: Sequence[_Space], where: Restriction, limit: int
) -> list[tuple[int, float]]:
    if not spaces:
        return []
    condition, values = _filter(where)
    join = f" JOIN piece p ON p.number = n.number AND {condition}" if condition else ""
    cosine = _COSINE.format(asked="x.asked", dot="x.dot", mean="x.mean")
    rows = [(space.id, literal(space.asked), float(space.asked @ space.mean), literal(space.mean)) for space in spaces]
    return db.execute(
        f"SELECT n.number, {cosine} AS cosine FROM unnest(%s::int[], %s::halfvec[], %s::float8[], %s::halfvec[])"
        " x(space, asked, dot, mean)"
        f" JOIN near n ON n.model = %s AND n.space = x.space{join} ORDER BY cosine DESC, n.number LIMIT %s",
        (*columns(rows, 4), model.id, *values, limit),
    ).fetchall()


def _searched(db: Db, model: StoredModel, space: _Space, where: Restriction, limit: int) -> list[tuple[int, float]]:
    """Take candidates from the graph, and score those exactly."""
    condition, values = _filter(where)
    asked = literal(space.asked)
    cosine = _COSINE.format(asked="%s::halfvec", dot="%s", mean="%s::halfvec")
    # A subquery is tested for one vector after the other: so the graph is read no further than it has to be.
    fits = f" AND (SELECT {condition} FROM piece p WHERE p.number = n.number)" if condition else ""
    # Numbers, not parameters: a graph of a part of the table is only used for what is known to be in that part.
    graph = (
        f"SELECT n.number, n.at FROM near n WHERE n.model = {model.id} AND n.space = {space.id}{fits}"
        f" ORDER BY n.at::halfvec({model.dim}) <=> %s::halfvec({model.dim}) LIMIT %s"
    )
    with db.transaction():
        db.execute(f"SET LOCAL hnsw.ef_search = {_EF_SEARCH}; SET LOCAL hnsw.iterative_scan = relaxed_order")
        db.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off")
        return db.execute(
            f"SELECT n.number, {cosine} AS cosine FROM ({graph}) n ORDER BY cosine DESC, n.number LIMIT %s",
            (
                *(asked, float(space.asked @ space.mean), literal(space.mean)),
                *(*values, asked, max(RESCORED, limit), limit),
            ),
        ).fetchall()


def vectors_of(db: Db, name: str, ids: Sequence[int]) -> dict[int, Floats]:
    """The vectors of the first pieces of records, by the records' numbers."""
    rows = db.execute(
        "SELECT p.record, v.at::real[] FROM piece p JOIN model m ON m.name = %s"
        " JOIN kept v ON v.model = m.id AND v.meaning = p.meaning WHERE p.part = 0 AND p.record = ANY(%s)",
        (name, list(ids)),
    )
    vectors = {record: np.asarray(at, np.float32) for record, at in rows}
    return {record: vector / max(float(np.linalg.norm(vector)), 1e-6) for record, vector in vectors.items()}


# --- looking after it ---------------------------------------------------------------------------------------------


def check(db: Db) -> list[str]:
    """What is wrong with the vectors, in words."""
    return faults(db, (
        ("SELECT count(*) FROM near n WHERE NOT EXISTS (SELECT 1 FROM piece p WHERE p.number = n.number)",
         "{} vectors belong to no piece"),
        ("SELECT count(*) FROM (SELECT model, space, count(*) AS n FROM near GROUP BY 1, 2) n FULL JOIN mean m"
         " USING (model, space) WHERE coalesce(n.n, 0) <> coalesce(m.count, 0)",
         "the vectors of {} spaces are counted wrongly"),
        ("SELECT count(*) FROM (SELECT m.id AS model, p.number FROM model m CROSS JOIN piece p WHERE NOT EXISTS"
         " (SELECT 1 FROM kept v WHERE v.model = m.id AND v.meaning = p.meaning)) l FULL JOIN waiting w"
         " USING (model, number) WHERE l.number IS NULL OR w.number IS NULL OR w.model IS NULL OR l.model IS NULL",
         "{} pieces lack a vector and nobody knows, or the other way round"),
    ))  # fmt: skip


def literal(vector: Floats) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join([f'{number:.6g}' for number in vector.tolist()])}]"


def _floats(data: bytes | None) -> Floats | None:
    return np.frombuffer(data, np.float32) if data is not None else None


def embedded(db: Db, name: str) -> int:
    """Pieces that are found by meaning."""
    return number_of(
        db, "SELECT coalesce(sum(count), 0) FROM mean m JOIN model o ON o.id = m.model WHERE o.name = %s", name
    )
