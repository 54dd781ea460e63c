"""Which pieces have which terms, how often, and how long they are: all that BM25 needs, in blocks.

Owns the tables `term`, `posting`, `said` and `total`, and what they say of a `piece`. The pieces that have a term are
packed in blocks of 1,024 numbers, five bytes each, by space: a row for each would take twenty times the room, and a
common term as many rows as there are pieces. A question reads the blocks of its terms and scores them here as tantivy
does, down to how lengths are rounded. Writing needs a transaction in which nobody else writes. Any thread.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs.recall.index.exchanged import TEXT_WEIGHT, Piece
from livememfs.recall.index.record import digest
from livememfs.recall.index.words import Language, placed, spelt_out
from livememfs.recall.postgres.connection import Db, faults
from livememfs.recall.postgres.records import columns

BLOCK = 1_024
"""Numbers of pieces that share a row for each of their terms."""
HELD = np.dtype([("at", "<u2"), ("tf", "<u2"), ("norm", "u1")])
"""A piece in a block: its place there, how often it has the term, and its rounded length."""
MOST = 65_535
"""What two bytes hold."""
K1, B = 1.2, 0.75
Term = tuple[Language, str]
Key = tuple[int, int, int]
"""Term, space, block."""


def _lengths() -> NDArray[np.int64]:
    """The lengths that a byte can stand for: exact up to 40, then with four bits; as tantivy rounds them."""
    exact, lengths = 24, list[int]()
    for code in range(256):
        bits, shift = (code - exact) & 7, ((code - exact) >> 3) - 1
        lengths.append(code if code < exact else exact + (bits if shift < 0 else (bits | 8) << shift))
    return np.array(lengths, np.int64)


LENGTHS = _lengths()


@dataclass(frozen=True, slots=True)
class PostedPiece:
    """What the index has of a piece. `counts`: its terms, a term of the text `TEXT_WEIGHT` times."""

    number: int
    space: int
    language: Language
    words: str
    beside: str
    counts: Mapping[str, int]

    @property
    def length(self) -> int:
        """Terms, repeated ones too."""
        return sum(self.counts.values())

    @property
    def norm(self) -> int:
        """The byte for its length."""
        return int(np.searchsorted(LENGTHS, self.length, side="right")) - 1

    @property
    def terms(self) -> set[Term]:
        """Each term once."""
        return {(self.language, word) for word in self.counts}


def document(piece: Piece, space: int) -> PostedPiece:
    """A piece as it is indexed."""
    text, context = (part.encode(errors="ignore").decode() for part in (piece.text, piece.context))
    words = _sequence(text, piece.language)
    beside = _sequence(f"{spelt_out(text)}\n{context}", piece.language)
    return read(piece.number, space, piece.language, words, beside)


def read(number: int, space: int, language: Language, words: str, beside: str) -> PostedPiece:
    """A document from what the table `piece` has of it."""
    counts = Counter({word: TEXT_WEIGHT * count for word, count in Counter(words.split()).items()})
    counts.update(beside.split())
    counts.pop(GAP, None)
    return PostedPiece(number, space, language, words, beside, counts)


def known_by(piece: Piece) -> bytes:
    """The digest that tells whether the document of a piece has changed."""
    return digest(f"{piece.language}\0{piece.text}\0{piece.context}")


GAP = "_"
"""Stands in the place of a word that is in no index, such as a stop word; no term has this character."""


def _sequence(text: str, language: Language) -> str:
    """The terms of a text in their order, each between blanks."""
    sequence: list[str] = []
    for place, term in placed(text, language):
        sequence += [GAP] * (place - len(sequence))
        sequence.append(term)
    return f" {' '.join(sequence)} " if sequence else ""


# --- writing ------------------------------------------------------------------------------------------------------


def documents(db: Db, numbers: Sequence[int]) -> list[PostedPiece]:
    """The documents of some pieces, of those that have one."""
    rows = db.execute(
        "SELECT p.number, p.space, p.language, s.words, s.beside FROM piece p JOIN said s ON s.number = p.number"
        " WHERE p.number = ANY(%s)",
        (list(numbers),),
    )
    return [read(*row) for row in rows]


def replace(db: Db, old: Sequence[PostedPiece], new: Sequence[PostedPiece]) -> None:
    """Take out documents and put others in."""
    ids = _ids(db, {term for piece in (*old, *new) for term in piece.terms})
    removed: dict[Key, list[int]] = defaultdict(list)
    added: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    change: Counter[int] = Counter()
    for piece in old:
        for term in piece.terms:
            removed[ids[term], piece.space, piece.number // BLOCK].append(piece.number % BLOCK)
            change[ids[term]] -= 1
    for piece in new:
        norm = piece.norm
        for word, count in piece.counts.items():
            number = ids[piece.language, word]
            added[number, piece.space, piece.number // BLOCK].append((piece.number % BLOCK, min(count, MOST), norm))
            change[number] += 1
    _write_blocks(db, removed, added)
    _count(db, change, old, new)


def _ids(db: Db, terms: Iterable[Term]) -> dict[Term, int]:
    """The numbers of terms; one that is new gets one."""
    wanted = sorted(terms)
    arrays = columns(wanted, 2)
    db.execute(
        "INSERT INTO term (language, word) SELECT * FROM unnest(%s::text[], %s::text[]) u(language, word)"
        " WHERE NOT EXISTS (SELECT 1 FROM term t WHERE t.word = u.word AND t.language = u.language)",
        arrays,
    )
    rows = db.execute(
        "SELECT t.language, t.word, t.id FROM term t JOIN unnest(%s::text[], %s::text[]) u(language, word)"
        " ON t.word = u.word AND t.language = u.language",
        arrays,
    )
    return {(language, word): number for language, word, number in rows}


def _write_blocks(
    db: Db, removed: Mapping[Key, Sequence[int]], added: Mapping[Key, Sequence[tuple[int, int, int]]]
) -> None:
    keys = sorted(removed.keys() | added.keys())
    rows = db.cursor(binary=True).execute(
        "SELECT p.term, p.space, p.block, p.held FROM posting p"
        " JOIN unnest(%s::int[], %s::int[], %s::int[]) u(term, space, block) USING (term, space, block)",
        columns(keys, 3),
    )
    known: dict[Key, bytes] = {(term, space, block): bytes(held) for term, space, block, held in rows}
    written: list[tuple[int, int, int, bytes]] = []
    for key in keys:
        held = known.get(key, b"")
        if key in removed and held:
            block = np.frombuffer(held, HELD)
            held = block[~np.isin(block["at"], removed[key])].tobytes()
        if key in added:
            held += np.array(added[key], HELD).tobytes()
        written.append((*key, held))
    db.execute(
        "INSERT INTO posting SELECT * FROM unnest(%s::int[], %s::int[], %s::int[], %b::bytea[])"
        " ON CONFLICT (term, space, block) DO UPDATE SET held = EXCLUDED.held",
        columns([row for row in written if row[3]], 4),
    )
    db.execute(
        "DELETE FROM posting p USING unnest(%s::int[], %s::int[], %s::int[]) u(term, space, block)"
        " WHERE p.term = u.term AND p.space = u.space AND p.block = u.block",
        columns([row for row in written if not row[3]], 3),
    )


def _count(db: Db, change: Mapping[int, int], old: Sequence[PostedPiece], new: Sequence[PostedPiece]) -> None:
    changed = [(number, by) for number, by in sorted(change.items()) if by]
    db.execute(
        "UPDATE term t SET found = found + u.by FROM unnest(%s::int[], %s::int[]) u(id, by) WHERE t.id = u.id",
        columns(changed, 2),
    )
    db.execute("DELETE FROM term WHERE id = ANY(%s) AND found = 0", (list(change),))
    totals: dict[str, list[int]] = {}
    for sign, pieces in ((-1, old), (1, new)):
        for piece in pieces:
            total = totals.setdefault(piece.language, [0, 0])
            total[0] += sign
            total[1] += sign * piece.length
    db.execute(
        "INSERT INTO total SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) ON CONFLICT (language)"
        " DO UPDATE SET pieces = total.pieces + EXCLUDED.pieces, tokens = total.tokens + EXCLUDED.tokens",
        columns([(language, *by) for language, by in sorted(totals.items())], 3),
    )


# --- asking -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """The figures of the whole index that a score depends on. `found`: in how many pieces each term is."""

    pieces: int
    tokens: Mapping[str, int]
    found: Mapping[Term, int]

    def rarity(self, term: Term) -> float:
        """The weight of a term: much for one that few pieces have."""
        count = self.found.get(term, 0)
        return float(np.log(1 + (max(self.pieces, 1) - count + 0.5) / (count + 0.5)))

    def scores(self, weight: float, language: Language, tf: NDArray[Any], norms: NDArray[Any]) -> NDArray[np.float64]:
        """BM25 of pieces: `tf` says how often each has a term of this weight, `norms` how long it is."""
        mean = max(self.tokens.get(language, 0) / max(self.pieces, 1), 1e-9)
        drag = K1 * (1 - B + B * LENGTHS / mean)
        scores: NDArray[np.float64] = weight * (K1 + 1) * tf / (tf + drag[norms])
        return scores


@dataclass(frozen=True, slots=True)
class Postings:
    """The pieces of one term, by number."""

    numbers: NDArray[np.int64]
    tf: NDArray[np.float64]
    norms: NDArray[np.uint8]


def counts(db: Db, terms: Iterable[Term]) -> tuple[Counts, dict[Term, int]]:
    """The figures that the scores of some terms need, and the numbers of the terms that exist."""
    rows = db.execute(
        "SELECT '', language, pieces, tokens FROM total UNION ALL"
        " SELECT t.word, t.language, t.id, t.found FROM term t JOIN unnest(%s::text[], %s::text[]) u(language, word)"
        " ON t.word = u.word AND t.language = u.language",
        columns(sorted(terms), 2),
    ).fetchall()
    totals = [(language, pieces, tokens) for word, language, pieces, tokens in rows if not word]
    figures = {(language, word): (number, count) for word, language, number, count in rows if word}
    pieces = sum(count for _, count, _ in totals)
    return (
        Counts(pieces, {row[0]: row[2] for row in totals}, {term: known[1] for term, known in figures.items()}),
        {term: known[0] for term, known in figures.items()},
    )


def postings(db: Db, ids: Mapping[Term, int], spaces: Sequence[int] | None) -> dict[Term, Postings]:
    """The pieces that have some terms, in some spaces (None: in all)."""
    where, values = ("", []) if spaces is None else (" AND space = ANY(%s)", [list(spaces)])
    rows = db.cursor(binary=True).execute(
        f"SELECT term, block, held FROM posting WHERE term = ANY(%s){where}", (list(ids.values()), *values)
    )
    blocks: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for term, block, held in rows:
        blocks[term].append((block, held))
    return {term: _joined(blocks[number]) for term, number in ids.items()}


def _joined(blocks: Sequence[tuple[int, bytes]]) -> Postings:
    held = np.frombuffer(b"".join(data for _, data in blocks), HELD)
    starts = np.repeat([block * BLOCK for block, _ in blocks], [len(data) // HELD.itemsize for _, data in blocks])
    return Postings(starts.astype(np.int64) + held["at"], held["tf"].astype(np.float64), held["norm"])


# --- looking after it ---------------------------------------------------------------------------------------------


def check(db: Db) -> list[str]:
    """What is wrong with the text index, in words."""
    wrong: list[str] = []
    pieces = np.array(db.execute("SELECT number, terms FROM piece ORDER BY number").fetchall(), np.int64).reshape(-1, 2)
    rows = db.cursor(binary=True).execute("SELECT block, held FROM posting").fetchall()
    indexed, often = np.unique(_joined(rows).numbers, return_counts=True)
    extra = len(np.setdiff1d(indexed, pieces[:, 0]))
    if extra:
        wrong.append(f"{extra} pieces of the text index belong to no record")
    counted = dict(zip(indexed.tolist(), often.tolist(), strict=True))
    partial = sum(counted.get(number, 0) != kinds for number, kinds in pieces.tolist())
    if partial:
        wrong.append(f"{partial} pieces are not in the text index, or not whole")
    return wrong + faults(db, (
        ("SELECT count(*) FROM piece p FULL JOIN said s USING (number) WHERE p.record IS NULL OR s.words IS NULL",
         "{} pieces lack their words, or words their piece"),
        ("SELECT count(*) FROM term t LEFT JOIN (SELECT term, sum(length(held)) AS bytes FROM posting GROUP BY term) p"
         f" ON p.term = t.id WHERE coalesce(p.bytes, 0) <> t.found * {HELD.itemsize}",
         "{} terms are counted wrongly"),
        ("SELECT count(*) FROM (SELECT language, count(*) AS n, sum(length) AS m FROM piece GROUP BY language) p"
         " FULL JOIN total t USING (language) WHERE (coalesce(p.n, 0), coalesce(p.m, 0))"
         " <> (coalesce(t.pieces, 0), coalesce(t.tokens, 0))",
         "the text index counts other texts than there are"),
    ))  # fmt: skip
