"""Which records answer a question, in which order, and why.

Owns the lists (words, meaning, hints, links), how they become one, and the choice between the three strategies
(claude-mem 4.1): strict when there is nothing to search by but filters, semantic for free text, hybrid for both. Words
and meaning are merged by their calibrated scores, since ranks alone forget how well something fits; that list is fused
with the others by reciprocal ranks. Refuses to generate and to read the bucket. Blocking; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from livememfs.recall.index.engine import Engine
from livememfs.recall.index.exchanged import Restriction, TextQuery
from livememfs.recall.index.manner import STANDING_LABELS, Manner
from livememfs.recall.index.record import Brief, Record
from livememfs.recall.index.sittings import SITTING_SECONDS
from livememfs.recall.index.vectors import Floats
from livememfs.recall.index.words import fold
from livememfs.recall.search import newest
from livememfs.recall.search.floor import BEST, Seen, is_answered
from livememfs.recall.search.found import Hit, RankedHit, Strategy
from livememfs.recall.search.graph import seeds_of, walk
from livememfs.recall.search.hints import OF_DATES, Hints, hints_in
from livememfs.recall.search.query import Query
from livememfs.recall.search.telling import share_of_names, share_of_words
from livememfs.recall.search.where import restriction

DEFAULT_LIMIT = 10
CANDIDATES, CANDIDATES_UNASKED, CANDIDATES_EACH = 400, 100, 5
"""Pieces taken of each list; for a message that nobody chose to search by, of which few are told, at most so many, and
so many for each that may be told.
"""
READ, READ_UNASKED = 50, 10
"""Records whose text is looked at before they get their place; for a message, beside as many as may be told."""
SITTING_BEST = 3
MOST_STANDING, STANDING_NEAR = 3, 0.1
"""Instructions and preferences that are thought of, and the least cosine to the question that each has."""
HOLDS = 1.0
"""The score of one, for a message: about that of a text with all of its words."""
MOST_UNWANTED = 10_000
UNANSWERED = "what is nearest does not answer it; with `in:all` before the question it is shown"
_LAST = "\U0010ffff"
Words = tuple[list[tuple[int, float]], float]
"""Pieces that have words of a question, with their scores, best first; and the score of a piece that had all of them.
"""


@dataclass(frozen=True)
class Ranking:
    """The weights of the lists, measured (docs/recall.md).

    :meaning:  of a cosine, beside a text score of at most about 1
    :author:   factor for what somebody wrote whom the question names; 1 for none
    :question: factor for what asks, since it seldom answers
    :writer:   for a question about whoever asks it: factor for what speaks of its writer; 1 for none
    :reader:   the same for what speaks to its reader
    :sitting:  what a hit gains from the best of what was written in the same sitting
    :names:    what a text gains, as a share, by having names in it
    :damping:  k of the reciprocal rank fusion
    :hints:    weight of the list of what fits the question's hints, beside 1 for words and meaning
    :graph:    weight of the list of what memories that fit lead to by their links
    :reached:  the most of what they lead to that counts
    :standing: place of the first standing instruction or preference in whose scope the question may be, as the share
               of the score of what is first: behind some four that fit better

    For a question that asks for several things, which stand in several places:

    :further:  what each further hit of one sitting loses, as a share, in place of what a sitting gains
    :length:   how much a text's length counts, as the power of its share of what is long
    :several:  whether such a question is told from others at all

    :floor: whether a question that nothing answers finds nothing, in place of what is nearest
    :newest: whether of hits that say the same of the same the newest is first

    :candidates: pieces taken of each list
    :read:       records whose text is looked at
    """

    meaning: float = 0.3
    author: float = 1.4
    question: float = 0.9
    writer: float = 1.2
    reader: float = 0.67
    sitting: float = 0.25
    names: float = 0.1
    damping: int = 60
    hints: float = 0.1
    graph: float = 0.9
    standing: float = 0.95
    reached: int = 3
    further: float = 0.05
    length: float = 0.2
    several: bool = True
    floor: bool = True
    newest: bool = True
    candidates: int = CANDIDATES
    read: int = READ


UNASKED = Ranking(
    writer=1.0, reader=1.0, hints=0.0, graph=0.0, standing=0.0, newest=False, candidates=CANDIDATES_UNASKED
)
"""For messages: without hints and links, scores stay scores and can be compared with the best one; lines say when."""


@dataclass(slots=True)
class _Candidate:
    brief: Brief
    piece: int
    score: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)
    record: Record | None = None

    def order(self) -> tuple[float, int, str, int]:
        """Best first; of equals the newest, so that the order is always the same."""
        return -self.score, -self.brief.created, self.record.ref if self.record is not None else _LAST, self.brief.id


def search(
    index: Engine,
    query: Query,
    question: Floats | None,
    spaces: Sequence[str],
    *,
    limit: int | None = None,
    ranking: Ranking | None = None,
) -> RankedHit:
    """Search some spaces; `question` is the vector of the query's text, None when there is none to be had."""
    limit = query.limit or limit or DEFAULT_LIMIT
    if query.is_wordless:  # the newest would pass for an answer to it
        return RankedHit((), "strict", remarks=("there is no word in the question",))
    where = restriction(index, query, spaces)
    if where is None:
        return RankedHit((), "strict", remarks=("nobody and nothing here fits the filters",))
    if query.is_filter_only:
        return _by_filters(index, query, where, limit)
    ranked, remarks = _with_phrases(index, query, question, where, spaces, ranking or Ranking(), limit)
    best = ranked[:limit]
    _read(index, best)
    hits = [Hit(hit.record, hit.piece, hit.score, hit.reasons) for hit in best if hit.record is not None]
    strategy: Strategy = "words" if question is None else "hybrid" if query.is_filtered else "semantic"
    if query.is_filtered and len(hits) < limit:
        hits += _completed(index, where, query, hits, limit)
    return RankedHit(tuple(hits), strategy, len(ranked), remarks)


def _by_filters(index: Engine, query: Query, where: Restriction, limit: int) -> RankedHit:
    """The newest that fit: there are no words to rank by."""
    unwanted = {brief.id for _, brief in index.briefs(list(_unwanted(index, query, where))).values()}
    fitting = [stored for stored in index.strict(where, limit + len(unwanted)) if stored.id not in unwanted]
    hits = [Hit(stored.record, 0, 0.0, {"date": rank}) for rank, stored in enumerate(fitting[:limit], 1)]
    return RankedHit(tuple(hits), "strict", len(hits))


def _with_phrases(
    index: Engine,
    query: Query,
    question: Floats | None,
    where: Restriction,
    spaces: Sequence[str],
    ranking: Ranking,
    limit: int,
) -> tuple[list[_Candidate], tuple[str, ...]]:
    """What has the query's phrases; then what fits its other words, with a remark. A question that quotes a title wants
    an answer; somebody who typed nothing but the quote wants that alone.
    """
    ranked, answered, _ = _ranked(index, query, question, where, spaces, ranking)
    if not answered:
        return [], (UNANSWERED,)
    quoted = fold(" ".join(query.phrases))
    has_other_words = any(fold(word) not in quoted for word in query.words)
    if not query.phrases or len(ranked) >= limit or (ranked and not has_other_words):
        return ranked, ()
    remark = f"{len(ranked) or 'none'} of them {'has' if len(ranked) == 1 else 'have'} the phrase; then by the words"
    known = {candidate.brief.id for candidate in ranked}
    others, answered, _ = _ranked(index, replace(query, phrases=()), question, where, spaces, ranking)
    if not answered:
        return ranked, ()
    return ranked + [candidate for candidate in others if candidate.brief.id not in known], (remark,)


def fitting_words(index: Engine, text: str, spaces: Sequence[str], most: Mapping[str, int]) -> Words:
    """What `fitting_best` needs and can be had while the message is embedded."""
    return _words(index, Query(text=text), _of_kinds(spaces, most), _unasked(most).candidates)


def fitting_best(
    index: Engine,
    text: str,
    question: Floats | None,
    spaces: Sequence[str],
    most: Mapping[str, int],
    words: Words | None = None,
) -> list[tuple[int, Record, float]]:
    """The records that fit a message best, of each kind at `most` so many, with their numbers and scores, best first;
    before them instructions and preferences. Scores of several calls can be compared. Kinds share the pieces that are
    looked at, so one that is much larger than the others has a call of its own.
    """
    left, best = dict(most), list[_Candidate]()
    where = _of_kinds(spaces, most)
    ranked, answered, holding = _ranked(index, Query(text=text), question, where, spaces, _unasked(most), words)
    for candidate in holding:
        candidate.score = max(candidate.score, HOLDS)
    first = {candidate.brief.id for candidate in holding}
    others = [candidate for candidate in ranked if candidate.brief.id not in first] if answered else []
    for candidate in (*holding, *others):
        if left[candidate.brief.kind] > 0:
            left[candidate.brief.kind] -= 1
            best.append(candidate)
    _read(index, best)
    return [(hit.brief.id, hit.record, hit.score) for hit in best if hit.record is not None]


def _of_kinds(spaces: Sequence[str], kinds: Iterable[str]) -> Restriction:
    return Restriction(fields=(("space", tuple(spaces)), ("kind", tuple(kinds))))


def _unasked(most: Mapping[str, int]) -> Ranking:
    likely = max(most.values())
    candidates = min(CANDIDATES_UNASKED, CANDIDATES_EACH * likely)
    return replace(UNASKED, read=min(READ, likely + READ_UNASKED), candidates=candidates)


def _completed(index: Engine, where: Restriction, query: Query, hits: Sequence[Hit], limit: int) -> list[Hit]:
    """What else fits the filters, the newest first (claude-mem 4.4): never what the query says it does not want."""
    if query.phrases or query.without:
        return []
    known = {hit.record.ref for hit in hits}
    newest = [stored.record for stored in index.strict(where, limit + len(known))]
    others = [record for record in newest if record.ref not in known]
    return [Hit(record, 0, 0.0, {"date": rank}) for rank, record in enumerate(others[: limit - len(hits)], 1)]


# --- the lists and their fusion -----------------------------------------------------------------------------------


def _words(index: Engine, query: Query, where: Restriction, limit: int) -> Words:
    return index.text(TextQuery(query.text, query.phrases, query.without), where, limit)


def _ranked(
    index: Engine,
    query: Query,
    question: Floats | None,
    where: Restriction,
    spaces: Sequence[str],
    ranking: Ranking,
    listed: Words | None = None,
) -> tuple[list[_Candidate], bool, list[_Candidate]]:
    """What is nearest, best first; whether it answers the question; and see `_holding`. `listed`: the list of words,
    where it was looked up before.
    """
    words, ceiling = listed or _words(index, query, where, ranking.candidates)
    meant = index.near(question, where, ranking.candidates) if question is not None and not query.phrases else []
    unwanted = _unwanted(index, query, where) if query.without else set[int]()
    meant = [hit for hit in meant if hit[0] not in unwanted]
    known = index.briefs(list({number for number, _ in (*words, *meant)}))
    authors = index.spelt("agent", spaces)
    hints = hints_in(query.text, authors)
    several = hints.several and ranking.several
    by_record: dict[int, _Candidate] = {}
    _add(by_record, known, words, "words", 1 / max(ceiling, 1e-9))
    _add(by_record, known, meant, "meaning", ranking.meaning)
    for candidate in by_record.values():
        candidate.score *= _factor(candidate.brief, hints, ranking)
    merged = sorted(by_record.values(), key=_Candidate.order)
    _read(index, merged[: ranking.read])
    _weigh_by_text(merged, ranking.names, ranking.length if several else 0.0)
    if several:
        _lose_by_sitting(merged, ranking.further)
    else:
        _gain_by_sitting(merged, ranking.sitting)
    merged = sorted(merged, key=_Candidate.order)
    linked: list[_Candidate] = []
    if ranking.graph and not query.phrases:
        seeds = seeds_of((known[number][1], score) for number, score in words if number in known)
        reached = walk(index, seeds, where, lambda piece: piece not in unwanted)[: ranking.reached]
        linked = _linked(index, merged, seeds, reached) if seeds else []
    holding = _holding(index, query, question, where, hints, merged)
    ranked = _fused(merged, linked, holding if ranking.standing else (), hints, ranking)
    if ranking.newest:
        _put_newest_first(index, query, ranked)
    answered = not (ranking.floor and ranked) or _is_answered(query, ranked, meant, hints, authors)
    return ranked, answered, holding


def _holding(
    index: Engine,
    query: Query,
    question: Floats | None,
    where: Restriction,
    hints: Hints,
    merged: Iterable[_Candidate],
) -> list[_Candidate]:
    """The list of instructions and preferences in whose scope a question may be: instructions about dates first for who
    asks when something is, then the nearest. Who asks for what was said or done, by somebody or at all, asks for
    nothing else that they apply to.
    """
    if query.phrases or query.without or hints.author:
        return []
    near: list[int] = []
    if hints.when:
        only = replace(where, fields=(*where.fields, ("label", STANDING_LABELS[:1])))
        near += [number for number, _ in index.text(TextQuery(OF_DATES), only, MOST_STANDING)[0]]
    if question is not None and not hints.looks_back:
        only = replace(where, fields=(*where.fields, ("label", STANDING_LABELS)))
        near += [number for number, cosine in index.near(question, only, MOST_STANDING) if cosine >= STANDING_NEAR]
    near = list(dict.fromkeys(near))[:MOST_STANDING]
    known, briefs = {candidate.brief.id: candidate for candidate in merged}, index.briefs(near)
    found = [briefs[number] for number in near if number in briefs]
    return [known.get(brief.id) or _Candidate(brief, part) for part, brief in found]


def _put_newest_first(index: Engine, query: Query, ranked: list[_Candidate]) -> None:
    """See `newest`. The scores stay where they are: they go with the places."""
    foremost = ranked[: newest.FOREMOST]
    _read(index, foremost)
    if len(foremost) < 2 or any(candidate.record is None for candidate in foremost):
        return
    vectors = index.vectors_of([candidate.brief.id for candidate in foremost])
    said = [
        newest.Dated(
            one.record.pieces[one.piece], one.brief.agent, one.brief.created, vectors.get(one.brief.id),
            one.record.own_id, one.record.links,
        )
        for one in foremost
        if one.record is not None and one.record.pieces
    ]  # fmt: skip
    if len(said) < len(foremost):
        return
    order = newest.in_time(query.text, said, index.prior, then=query.before is not None)
    scores = [candidate.score for candidate in foremost]
    for place, (at, score) in enumerate(zip(order, scores, strict=True)):
        ranked[place] = foremost[at]
        ranked[place].score = score


def _is_answered(
    query: Query, ranked: Sequence[_Candidate], meant: Iterable[tuple[int, float]], hints: Hints, authors: Iterable[str]
) -> bool:
    """See `floor`. Who says with filters or a phrase what to find gets it, however little else fits."""
    if query.is_filtered or query.phrases:
        return True
    read = [candidate for candidate in ranked if candidate.record is not None and candidate.record.pieces]
    sittings = {one.brief.id: number for number, sitting in enumerate(_sittings(read)) for one in sitting}
    shown = [
        Seen(one.record.pieces[one.piece], one.brief.agent, sittings.get(one.brief.id, -one.brief.id))
        for one in read
        if one.record is not None
    ]
    in_time = any(hints.in_time(candidate.brief.created) for candidate in ranked[:BEST])
    cosines = [cosine for _, cosine in meant]
    return is_answered(query.text, shown, cosines, authors=[fold(author) for author in authors], in_time=in_time)


def _linked(
    index: Engine, merged: Sequence[_Candidate], seeds: Mapping[int, float], reached: Sequence[tuple[int, int, float]]
) -> list[_Candidate]:
    """The list of what is linked, best first, with what it was reached from; empty when nothing was."""
    by_record = {candidate.brief.id: candidate for candidate in merged}
    known = index.briefs([piece for record, piece, _ in reached if record not in by_record]) if reached else {}
    by_record |= {brief.id: _Candidate(brief, part) for part, brief in known.values()}
    scores = {**seeds, **{record: score for record, _, score in reached}} if reached else {}
    order = sorted(scores, key=lambda record: (-scores[record], record not in seeds, -record))
    return [by_record[record] for record in order if record in by_record]


def _read(index: Engine, candidates: Sequence[_Candidate]) -> None:
    """Have the records of some candidates; what has gone meanwhile stays without."""
    missing = [candidate for candidate in candidates if candidate.record is None]
    records = index.records([candidate.brief.id for candidate in missing]) if missing else {}
    for candidate in missing:
        candidate.record = records.get(candidate.brief.id)


def _unwanted(index: Engine, query: Query, where: Restriction) -> set[int]:
    """The pieces that have any of the words that a hit must not have."""
    queries = (TextQuery("", (words,)) for words in query.without)
    return {number for unwanted in queries for number, _ in index.text(unwanted, where, MOST_UNWANTED)[0]}


def _factor(record: Brief, hints: Hints, ranking: Ranking) -> float:
    factor = ranking.author if hints.author and fold(record.agent) == hints.author else 1.0
    if record.kind != "live":
        return factor
    if hints.of_writer:
        factor *= ranking.writer if Manner.OF_WRITER in record.manner else 1.0
        factor *= ranking.reader if Manner.TO_READER in record.manner else 1.0
    return factor * (ranking.question if Manner.ASKS in record.manner else 1.0)


def _weigh_by_text(candidates: Sequence[_Candidate], names: float, length: float) -> None:
    """What tells much is more likely to answer than what tells little, and fits as well."""
    least = 1.0
    for candidate in candidates:
        factor = least  # what was not read was behind all that was, and stays there
        if candidate.record is not None and candidate.record.pieces:
            text = candidate.record.pieces[candidate.piece]
            factor = (1 + names * share_of_names(text)) / (1 + names)
            factor *= share_of_words(text) ** length if length else 1.0
            least = min(least, factor)
        candidate.score *= factor


def _gain_by_sitting(candidates: Iterable[_Candidate], weight: float) -> None:
    """Where several things that fit were written in one sitting, the subject was this one."""
    for sitting in _sittings(candidates):
        if len(sitting) == 1:  # most are, and a question has hundreds
            sitting[0].score *= 1 + weight / SITTING_BEST
            continue
        best = sorted((candidate.score for candidate in sitting), reverse=True)[:SITTING_BEST]
        for candidate in sitting:
            candidate.score += weight * sum(best) / SITTING_BEST


def _lose_by_sitting(candidates: Iterable[_Candidate], share: float) -> None:
    """Where several things are asked for, what is said of one of them in one sitting leaves room for the others."""
    for sitting in _sittings(candidates):
        for before, candidate in enumerate(sorted(sitting, key=_Candidate.order)):
            candidate.score *= (1 - share) ** before


def _sittings(candidates: Iterable[_Candidate]) -> list[list[_Candidate]]:
    """The notes among the candidates by sitting; one that stands alone is one by itself."""
    live = [candidate for candidate in candidates if candidate.brief.kind == "live"]
    live.sort(key=lambda candidate: (candidate.brief.space, candidate.brief.created))
    sittings: list[list[_Candidate]] = []
    for candidate in live:
        record = candidate.brief
        last = sittings[-1][-1].brief if sittings else None
        if last is not None and last.space == record.space and record.created - last.created <= SITTING_SECONDS:
            sittings[-1].append(candidate)
        else:
            sittings.append([candidate])
    return sittings


def _add(
    by_record: dict[int, _Candidate],
    known: Mapping[int, tuple[int, Brief]],
    hits: Iterable[tuple[int, float]],
    name: str,
    weight: float,
) -> None:
    """Add the scores of one list, the best piece of a record standing for it."""
    best: dict[int, tuple[float, int]] = {}
    for number, raw in hits:
        if number in known:
            part, brief = known[number]
            value = weight * max(raw, 0.0)
            if brief.id not in best or value > best[brief.id][0]:
                best[brief.id] = (value, part)
                by_record.setdefault(brief.id, _Candidate(brief, part))
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    for rank, (record, (value, part)) in enumerate(ranked, 1):
        candidate = by_record[record]
        candidate.reasons[name] = rank
        if value > candidate.score:
            candidate.piece = part
        candidate.score += value


def _fused(
    merged: list[_Candidate],
    linked: Sequence[_Candidate],
    holding: Sequence[_Candidate],
    hints: Hints,
    ranking: Ranking,
) -> list[_Candidate]:
    """Reciprocal rank fusion of the merged list with those of what fits the hints and of what is linked."""
    fitting = [candidate for candidate in merged if hints.fit(candidate.brief) > 0] if ranking.hints else []
    if not fitting and not linked and not holding:
        return merged
    # Of those that fit as many hints, the order of the merged list stays.
    for rank, candidate in enumerate(sorted(fitting, key=lambda candidate: -hints.fit(candidate.brief)), 1):
        candidate.reasons["hints"] = rank
    for name, found in (("graph", linked), ("standing", holding)):
        for rank, candidate in enumerate(found, 1):
            candidate.reasons[name] = rank
    for rank, candidate in enumerate(merged, 1):
        candidate.score = 1 / (ranking.damping + rank)
    both = list({candidate.brief.id: candidate for candidate in (*merged, *linked, *holding)}.values())
    for candidate in both:
        for name, weight in (("hints", ranking.hints), ("graph", ranking.graph)):
            if name in candidate.reasons:
                candidate.score += weight / (ranking.damping + candidate.reasons[name])
        if "standing" in candidate.reasons:
            candidate.score = max(candidate.score, ranking.standing / (ranking.damping + candidate.reasons["standing"]))
    return sorted(both, key=_Candidate.order)
