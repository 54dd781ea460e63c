"""The index of a team: records, text and meaning in a PostgreSQL database that many mounts share.

Owns the order in which a change goes through its parts, all of it in one transaction, so that no mount ever sees half
of a change, and a mount that dies leaves nothing behind. A writer has a lock on the index of the bucket; a reader waits
for nobody. What another mount has already put in is not put in again. Refuses to read a bucket (`feeder` does) and to
rank (`search` does). Blocking: for any number of worker threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import structlog

from livememfs.errors import LiveMemError, TimedOut
from livememfs.recall.index.engine import Engine, IndexStatistics, Read
from livememfs.recall.index.exchanged import Linked, Restriction, Stored, TextQuery
from livememfs.recall.index.merits import Foremost, UnaskedMemories, Use
from livememfs.recall.index.pieces import PieceText, piece_of, text_of
from livememfs.recall.index.record import Brief, Record
from livememfs.recall.index.sittings import NEIGHBOURS, Place, Sittings, context_of, windows
from livememfs.recall.index.vectors import Floats
from livememfs.recall.postgres import asking, meaning, postings, records, schema
from livememfs.recall.postgres.connection import DatabaseConnections, Db, Unavailable, faults, lock, number_of
from livememfs.recall.postgres.postings import PostedPiece

log = structlog.get_logger("livememfs.recall")

SILENT_SECONDS = 10.0
"""Seconds for which a database that did not answer is not asked for figures again."""


class Postgres(Engine):
    """The index of one bucket in a database.

    :url:    postgresql://user:password@host/database
    :model:  the model whose vectors are searched; vectors of other models are kept, and not looked at
    :bucket: what the bucket is called: the same on every machine that is to share the index

    Opening raises SettingsError, Unavailable. For the methods see `Engine`; each may raise Unavailable, TimedOut.
    """

    def __init__(self, url: str, model: str, bucket: str) -> None:
        self.model, self.bucket = model, bucket
        self._connections = DatabaseConnections(url, schema.schema_of(bucket), self._prepare)
        self.where = self._connections.where
        self._graphs = True
        self._uses: dict[tuple[str, str], Use] = {}
        self._figures, self._silent_until = IndexStatistics(0, 0, 0, 0, 0, (), 0), 0.0
        try:
            self._connections.open()
        except BaseException:
            self.close()
            raise

    def _prepare(self, db: Db) -> None:
        schema.prepare(db, self.bucket)
        if meaning.model_of(db, self.model) is None:
            with db.transaction():
                lock(db, schema.schema_of(self.bucket))
                meaning.register(db, self.model)

    def close(self) -> None:
        """Close the connections. Nobody may be asking any more."""
        self._connections.close()

    # --- feeding --------------------------------------------------------------------------------------------------

    def objects(self, prefix: str = "") -> dict[str, str]:
        return self._connections.run(lambda db: records.objects(db, prefix))

    def apply(self, gone: Iterable[str], read: Iterable[Read]) -> None:
        """An object that is there with the same etag is left as it is."""
        went, came = sorted({records.clean(key) for key in gone}), list(read)
        self._connections.run(lambda db: _apply(db, went, came), writes=True)

    def unembedded(self, limit: int) -> list[PieceText]:
        def work(db: Db) -> list[PieceText]:
            model = meaning.model_of(db, self.model)
            return records.unembedded(db, model.id, limit) if model is not None else []

        return self._connections.run(work)

    def take_vectors(self, meanings: Sequence[bytes], vectors: Floats) -> None:
        """Of two vectors for one meaning the first stays."""

        def work(db: Db) -> bool:
            model = meaning.register(db, self.model)
            meaning.take(db, model, meanings, vectors)
            return bool(meaning.without_graph(db, model))

        if self._connections.run(work, writes=True) and self._graphs:
            self._make_graphs()

    def _make_graphs(self) -> None:
        """Make large spaces faster to search. After a failure no graph is tried again: the search works without."""
        try:
            self._connections.run(lambda db: meaning.make_graphs(db, meaning.register(db, self.model)), writes=True)
        except LiveMemError as error:
            self._graphs = False
            log.warning("a large space is searched without a graph", reason=str(error))

    @property
    def prior(self) -> Floats | None:
        model = self._connections.run(lambda db: meaning.model_of(db, self.model))
        return model.prior if model is not None else None

    def expects(self) -> bool:
        return self.prior is not None

    def expect(self, prior: Floats) -> None:
        self._connections.run(
            lambda db: meaning.expect(db, meaning.register(db, self.model), np.asarray(prior)), writes=True
        )

    # --- asking ---------------------------------------------------------------------------------------------------

    def text(self, asked: TextQuery, where: Restriction, limit: int) -> tuple[list[tuple[int, float]], float]:
        return self._connections.run(lambda db: asking.search(db, asked, where, limit))

    def near(self, question: Floats, where: Restriction, limit: int) -> list[tuple[int, float]]:
        return self._connections.run(lambda db: meaning.near(db, self.model, question, where, limit))

    def strict(self, where: Restriction, limit: int) -> list[Stored]:
        return self._connections.run(lambda db: records.strict(db, where, limit))

    def fitting(self, where: Restriction, *, files: Sequence[str] = (), not_files: Sequence[str] = ()) -> list[int]:
        return self._connections.run(lambda db: records.fitting(db, where, files, not_files))

    def briefs(self, numbers: Sequence[int]) -> dict[int, tuple[int, Brief]]:
        return self._connections.run(lambda db: records.briefs(db, numbers))

    def records(self, ids: Sequence[int]) -> dict[int, Record]:
        return self._connections.run(lambda db: records.bodies(db, ids))

    def called(self, refs: Sequence[str]) -> dict[str, Stored]:
        return self._connections.run(lambda db: records.called(db, refs))

    def naming(self, space: str, files: Sequence[str], limit: int) -> list[Stored]:
        return self._connections.run(lambda db: records.naming(db, space, files, limit))

    def spelt(self, field: str, spaces: Sequence[str]) -> list[str]:
        return self._connections.run(lambda db: records.spelt(db, field, spaces))

    def linked(self, ids: Sequence[int], where: Restriction, limit: int) -> list[Linked]:
        return self._connections.run(lambda db: records.linked(db, ids, where, limit))

    def foremost(self, spaces: Sequence[str], wanted: UnaskedMemories) -> Foremost:
        return self._connections.run(lambda db: records.foremost(db, spaces, wanted, self._uses))

    def used(self, uses: Mapping[tuple[str, str], Use]) -> None:
        """Only this mount weighs memories by this: the database does not know of it."""
        self._uses = {**self._uses, **uses}

    def vectors_of(self, ids: Sequence[int]) -> dict[int, Floats]:
        return self._connections.run(lambda db: meaning.vectors_of(db, self.model, ids))

    # --- looking after it -----------------------------------------------------------------------------------------

    def verify(self) -> list[str]:
        return self._connections.run(_verify)

    def statistics(self) -> IndexStatistics:
        """Counts, by a few queries; the last ones while the database does not answer."""

        def work(db: Db) -> IndexStatistics:
            tables = {"objects": "object", "records": "record", "pieces": "piece", "vectors": "kept", "links": "link"}
            tables["lost_links"] = "link l WHERE NOT EXISTS (SELECT 1 FROM named n WHERE n.name = l.target)"
            counts = {name: number_of(db, f"SELECT count(*) FROM {table}") for name, table in tables.items()}
            name, embedded = self.model, meaning.embedded(db, self.model)
            return IndexStatistics(**counts, embedded=embedded, rebuilt=(), redone=0, model=name, searched=name)

        if time.monotonic() >= self._silent_until:
            try:
                self._figures = self._connections.run(work)
            except (Unavailable, TimedOut):
                self._silent_until = time.monotonic() + SILENT_SECONDS
        return self._figures


# --- one change ---------------------------------------------------------------------------------------------------


def _apply(db: Db, gone: list[str], read: list[Read]) -> None:
    came = records.unread(db, read, gone)
    lost, places = records.forget(db, sorted({*gone, *(records.clean(key) for key, *_ in came)}))
    old = postings.documents(db, lost)
    for table in ("piece", "said"):
        db.execute(f"DELETE FROM {table} WHERE number = ANY(%s)", (lost,))
    meaning.remove(db, lost)
    new = records.add(db, came)
    places |= {place for record in new.values() if (place := _place(record)) is not None}
    changed, meant = _touch(db, places, new, old)
    if old or changed:
        postings.replace(db, old, changed)
    meaning.place(db, meant)


def _place(record: Record) -> Place | None:
    return (records.clean(record.space), record.created) if record.kind == "live" else None


def _touch(
    db: Db, places: set[Place], new: dict[int, Record], old: list[PostedPiece]
) -> tuple[list[PostedPiece], list[int]]:
    """Bring up to date the new records, and the notes beside a note that came or went.

    Returns the documents that have changed, whose former ones are added to `old`; and the pieces with a new meaning.
    """
    sittings = _sittings(db, places)
    touched = {record for place in places for record in sittings.touched(place)} | set(new)
    known = _known(db, touched, new, sittings)
    rows = db.execute(
        "SELECT number, record, part, space, document, meaning FROM piece WHERE record = ANY(%s) ORDER BY number",
        (sorted(touched),),
    ).fetchall()
    documents: dict[int, tuple[bytes, PostedPiece]] = {}
    meanings: dict[int, bytes] = {}
    for number, record, part, space, digest, meant in rows:
        place = _place(known[record])
        beside = [other for other in sittings.beside(place, NEIGHBOURS) if other != record] if place is not None else []
        piece = piece_of(number, known[record], part, context_of(known[record], [known[other] for other in beside]))
        if (now := postings.known_by(piece)) != digest:
            documents[number] = now, postings.document(piece, space)
        before = sittings.before(place, record) if place is not None else None
        text = text_of(known[record], part, known[before] if before is not None else None)
        if text.meaning != meant:
            meanings[number] = text.meaning
    old += postings.documents(db, list(documents))
    _write_pieces(db, documents, meanings)
    return [posted for _, posted in documents.values()], list(meanings)


def _sittings(db: Db, places: set[Place]) -> Sittings:
    """The notes around some moments."""
    rows = db.execute(
        "SELECT DISTINCT r.space, r.created, r.id FROM unnest(%s::text[], %s::bigint[], %s::bigint[])"
        " w(space, low, high) JOIN record r ON r.space = w.space AND r.kind = 'live'"
        " AND r.created BETWEEN w.low AND w.high",
        windows(places),
    )
    return Sittings(rows.fetchall())


def _known(db: Db, touched: set[int], new: dict[int, Record], sittings: Sittings) -> dict[int, Record]:
    """The records that were touched, and those that stand beside them."""
    known = {**records.bodies(db, sorted(touched - new.keys())), **new}
    wanted: set[int] = set()
    for record in touched:
        if (place := _place(known[record])) is not None:
            wanted.update(sittings.beside(place, NEIGHBOURS))
            before = sittings.before(place, record)
            wanted |= {before} if before is not None else set()
    return {**known, **records.bodies(db, sorted(wanted - known.keys()))}


def _write_pieces(db: Db, documents: dict[int, tuple[bytes, PostedPiece]], meanings: dict[int, bytes]) -> None:
    rows = [
        (number, digest, posted.language, posted.length, len(posted.counts))
        for number, (digest, posted) in documents.items()
    ]
    db.execute(
        "UPDATE piece p SET document = u.document, language = u.language, length = u.length, terms = u.terms"
        " FROM unnest(%s::bigint[], %b::bytea[], %s::text[], %s::int[], %s::int[])"
        " u(number, document, language, length, terms) WHERE p.number = u.number",
        records.columns(rows, 5),
    )
    db.execute(
        "INSERT INTO said SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[])"
        " ON CONFLICT (number) DO UPDATE SET words = EXCLUDED.words, beside = EXCLUDED.beside",
        records.columns([(number, posted.words, posted.beside) for number, (_, posted) in documents.items()], 3),
    )
    db.execute(
        "UPDATE piece p SET meaning = u.meaning FROM unnest(%s::bigint[], %b::bytea[]) u(number, meaning)"
        " WHERE p.number = u.number",
        (list(meanings), list(meanings.values())),
    )


def _verify(db: Db) -> list[str]:
    checks = [
        (
            f"SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.id = t.record)",
            f"{{}} rows of {table} belong to no record",
        )
        for table in ("piece", "label", "named", "link")
    ]
    records_alone = "SELECT count(*) FROM record r WHERE NOT EXISTS (SELECT 1 FROM object o WHERE o.key = r.key)"
    checks.append((records_alone, "{} records belong to no object"))
    with db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return [*faults(db, checks), *postings.check(db), *meaning.check(db)]
