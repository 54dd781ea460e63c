"""Results as people and models read them: one Markdown page under a budget of tokens.

Owns the layout, what of a record is shown, and how many of them fit. Refuses to search. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from livememfs.recall.index.record import Record
from livememfs.recall.index.words import content_words, fold
from livememfs.recall.search.found import Hit, RankedHit
from livememfs.recall.search.query import Query
from livememfs.text.own import END, HEAD, fenced
from livememfs.text.size import tokens

DEFAULT_BUDGET = 2_000
"""Estimated tokens of one page."""
SNIPPET = 320
"""Characters of a record that are shown, around what fits best."""
SNIPPET_FROM = 50_000
"""Characters of a record in which the words are looked for."""
_COST = "\0"
"""Stands for what is known only when the page is whole; no text that is shown has it."""
_BLANKS = re.compile(r"\s+")


def page(
    query: Query, answer: RankedHit, paths: Sequence[str], *, budget: int = DEFAULT_BUDGET, notes: Sequence[str] = ()
) -> str:
    """The page; `paths` are where each hit can be read. It says what it costs, and what was left out for that."""
    title = _title(query)
    remarks = [*notes, *answer.remarks, *query.doubts]
    shown: list[str] = []
    spent = sum(map(tokens, (HEAD, title, *remarks, END))) + 60
    for rank, (hit, path) in enumerate(zip(answer.hits, paths, strict=True), 1):
        entry = _entry(rank, hit, path, query)
        if shown and spent + tokens(entry) > budget:
            break
        shown.append(entry)
        spent += tokens(entry)
    left = len(answer.hits) - len(shown)
    head = [f"# {title}", "", _summary(answer, len(shown), left, budget), f"Read as: {query.describe()}."]
    body = fenced("\n".join([*head, *(f"Note: {_line(remark)}." for remark in remarks), "", *shown]))
    return body.replace(_COST, str(tokens(body)), 1)


def explanation(query: Query, answer: RankedHit, paths: Sequence[str], *, notes: Sequence[str] = ()) -> str:
    """Why the answer is in this order: the rank of each hit in each list that has it."""
    lists = list(dict.fromkeys(name for hit in answer.hits for name in hit.reasons))
    rows = [f"| rank | score | {''.join(f'{name} | ' for name in lists)}record |", "|---" * (len(lists) + 3) + "|"]
    for rank, (hit, path) in enumerate(zip(answer.hits, paths, strict=True), 1):
        ranks = "".join(f"{hit.reasons.get(name, '')} | " for name in lists)
        link = f"[{_line(hit.record.title)}](<{path}>)".replace("|", "\\|")
        rows.append(f"| {rank} | {hit.score:.4f} | {ranks}{link} |")
    head = [
        f"# {_title(query)}",
        "",
        f"Read as: {query.describe()}.",
        *(f"Note: {_line(remark)}." for remark in (*notes, *answer.remarks, *query.doubts)),
        f"{answer.strategy} search, {answer.candidates} candidates, {len(answer.hits)} shown.",
        "",
    ]
    return fenced("\n".join([*head, *(rows if answer.hits else ["Nothing found."])]))


def _summary(answer: RankedHit, shown: int, left: int, budget: int) -> str:
    if not answer.hits:
        return f"Nothing found (~{_COST} tokens)."
    more = f", {left} more left out to stay under {budget}" if left else ""
    return f"{shown} {'record' if shown == 1 else 'records'}, {answer.strategy} search (~{_COST} tokens{more})."


def _entry(rank: int, hit: Hit, path: str, query: Query) -> str:
    record = hit.record
    day = datetime.fromtimestamp(record.created, UTC).date().isoformat()
    who = (
        _line(record.type) or record.kind,
        record.mark,
        _line(record.agent),
        day,
        f"score {hit.score:.3f}",
        hit.mark,
    )
    about = " · ".join(part for part in who if part)
    return f"{rank}. [{_line(record.title)}](<{path}>)\n   {about}\n   {snippet(record, hit.piece, query)}\n"


def snippet(record: Record, piece: int, query: Query, size: int = SNIPPET) -> str:
    """The part of a record's text in which most of the question's words stand, on one line."""
    text = _BLANKS.sub(" ", record.pieces[piece].replace("\0", " ")).strip()
    if len(text) <= size:
        return text
    words = set(content_words(query.text))
    text = text[:SNIPPET_FROM]
    folded = "".join(fold(character)[:1] or character for character in text)  # as long as the text is
    places = sorted(at for word in words if (at := folded.find(word)) >= 0)
    start = max(range(len(places)), key=lambda n: sum(places[n] <= at < places[n] + size for at in places), default=0)
    first = max(0, (places[start] if places else 0) - size // 4)
    first = text.rfind(" ", 0, first + 1) + 1 if first else 0
    cut = text[first : first + size].rsplit(" ", 1)[0] if first + size < len(text) else text[first:]
    return f"{'…' if first else ''}{cut}{'…' if first + size < len(text) else ''}"


def slug(record: Record, size: int = 48) -> str:
    """A few words of a title that every shell can type."""
    words = re.findall(r"[a-z0-9]+", fold(record.title))
    name = ""
    for word in words:
        if name and len(name) + len(word) >= size:
            break
        name = f"{name}-{word}" if name else word[:size]
    return name or "record"


def _title(query: Query) -> str:
    """The question, or the beginning of one that is a page itself."""
    text = _line(query.typed or query.describe())
    return text if len(text) <= SNIPPET else f"{text[:SNIPPET].rstrip()}…"


def _line(text: str) -> str:
    """On one line, and nothing in it that would end a link or a heading."""
    return _BLANKS.sub(" ", text.replace("\0", " ")).replace("[", "(").replace("]", ")").strip()
