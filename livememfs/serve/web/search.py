"""Search as you type, with the reasons for the rank of each result.

Owns how an answer is shown. The answer is that of `search/` in the mount. Trio thread only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from livememfs.memories.parameters import QUESTION
from livememfs.recall.index.words import content_words
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.markdown import plain
from livememfs.serve.web.overview import rows_of
from livememfs.serve.web.render import place

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.recall.search.found import Hit
    from livememfs.recall.search.query import Query
    from livememfs.serve.web.site import Site

LIMIT, LOOKED_AT = 20, 80
"""Hits that are shown, and those of which the facets tell."""
MOST_VALUES = 6
FACETS = {"in": "where", "type": "type", "agent": "by", "tag": "tag", "subject": "about", "concept": "concept"}
"""Filters that are offered, and the word for each."""
WHY = {
    "words": "its words fit",
    "meaning": "its meaning fits",
    "hints": "it fits what the question hints at",
    "graph": "a memory that fits is linked to it",
}
"""The meaning of each list that a hit can be in."""


@dataclass(frozen=True)
class Shown:
    """A hit. `reasons`: a list, the rank in it, and its meaning."""

    rank: int
    title: str
    about: tuple[str, ...]
    created: int
    score: float
    href: str
    snippet: tuple[tuple[str, bool], ...]
    reasons: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Facet:
    """One property of what was found. `values`: a value, how many have it, the question with it, whether it is in the
    question already.
    """

    title: str
    values: tuple[tuple[str, int, str, bool], ...]


async def in_space(site: Site, request: Request) -> Response:
    """Search one space."""
    space = (await site.space(request)).space
    return await _answer(site, request, space, [space])


async def everywhere(site: Site, request: Request) -> Response:
    """Search all visible spaces."""
    question = request.query_params.get("q", "").strip()
    spaces = [row.name for row in await rows_of(site, access_of(request))] if question else []
    return await _answer(site, request, "", spaces)


async def _answer(site: Site, request: Request, space: str, spaces: Sequence[str]) -> Response:
    question = request.query_params.get("q", "").strip()[:QUESTION]
    values: dict[str, Any] = {"hits": [], "remarks": [], "read_as": "", "strategy": "", "facets": (), "found": 0}
    if question:
        from livememfs.recall.search.page import snippet

        answer = await site.context.recall.ask(question, spaces, limit=LOOKED_AT)
        results = answer.found
        values = {
            "hits": [
                _shown(rank, hit, answer.query, snippet(hit.record, hit.piece, answer.query))
                for rank, hit in enumerate(results.hits[:LIMIT], 1)
            ],
            "remarks": [*answer.notes, *results.remarks, *answer.query.doubts],
            "read_as": answer.query.describe(),
            "strategy": results.strategy,
            "facets": _facets(question, results.hits),
            "found": len(results.hits),
        }
    part = request.query_params.get("part") == "results"
    template = "_results.html" if part else "search.html"
    return await site.page(request, template, space=space, question=question, **values)


def _facets(question: str, hits: Sequence[Hit]) -> tuple[Facet, ...]:
    """What would narrow a question down, by what the hits have."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for hit in hits:
        record = hit.record
        own = [("in", record.kind), ("type", record.type), ("agent", record.agent), *record.labels]
        for name, value in dict.fromkeys(own):
            if name in counts and value and "," not in value and '"' not in value:
                counts[name][value] += 1
    facets = []
    for name, title in FACETS.items():
        values = [
            (value, count, *_with_filter(question, name, value))
            for value, count in counts[name].most_common(MOST_VALUES)
            if count < len(hits) or _filter(name, value) in question
        ]
        if values:
            facets.append(Facet(title, tuple(values)))
    return tuple(facets)


def _filter(name: str, value: str) -> str:
    return f"{name}:{value}" if re.fullmatch(r"[\w.@/-]*\w", value) else f'{name}:"{value}"'


def _with_filter(question: str, name: str, value: str) -> tuple[str, bool]:
    """The question with a filter, or without it where it is there."""
    filter_, words = _filter(name, value), question.split(" ")
    if filter_ in words:
        return " ".join(word for word in words if word != filter_), True
    return f"{question} {filter_}".strip(), False


def _shown(rank: int, hit: Hit, query: Query, text: str) -> Shown:
    record = hit.record
    about = tuple(filter(None, (record.space, record.type or record.kind, record.mark, record.agent, hit.mark)))
    reasons = tuple((name, at, WHY.get(name, "")) for name, at in sorted(hit.reasons.items(), key=itemgetter(1)))
    title = plain(record.title) or record.ref
    marked = tuple(_marked(plain(text), list(content_words(query.text))))
    return Shown(rank, title, about, record.created, hit.score, place(record.key), marked, reasons)


def _marked(text: str, words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The parts of a text, and whether each is a word of the question."""
    if not words:
        yield text, False
        return
    parts = re.split(rf"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
    yield from ((part, number % 2 == 1) for number, part in enumerate(parts) if part)
