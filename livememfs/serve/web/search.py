"""Search as you type, with the reasons for the rank of each result.

Owns how an answer is shown. The answer is that of `search/` in the mount. Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from livememfs.memories.parameters import QUESTION
from livememfs.recall.index.words import content_words
from livememfs.serve.web.overview import rows_of
from livememfs.serve.web.render import page, place
from livememfs.serve.web.who import access_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.recall.search.query import Query
    from livememfs.recall.search.ranking import Hit
    from livememfs.serve.web.site import Site

LIMIT = 20
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
    values: dict[str, Any] = {"hits": [], "remarks": [], "read_as": "", "strategy": "", "candidates": 0}
    if question:
        from livememfs.recall.search.page import snippet

        answer = await site.context.recall.ask(question, spaces, limit=LIMIT)
        results = answer.found
        values = {
            "hits": [
                _shown(rank, hit, answer.query, snippet(hit.record, hit.piece, answer.query))
                for rank, hit in enumerate(results.hits, 1)
            ],
            "remarks": [*answer.notes, *results.remarks, *answer.query.doubts],
            "read_as": answer.query.describe(),
            "strategy": results.strategy,
            "candidates": results.candidates,
        }
    part = request.query_params.get("part") == "results"
    template = "_results.html" if part else "search.html"
    return page(template, access=access_of(request), space=space, question=question, **values)


def _shown(rank: int, hit: Hit, query: Query, text: str) -> Shown:
    record = hit.record
    about = tuple(filter(None, (record.space, record.type or record.kind, record.mark, record.agent, hit.mark)))
    reasons = tuple((name, at, WHY.get(name, "")) for name, at in sorted(hit.reasons.items(), key=itemgetter(1)))
    title = " ".join(record.title.split()) or record.ref
    marked = tuple(_marked(text, list(content_words(query.text))))
    return Shown(rank, title, about, record.created, hit.score, place(record.key), marked, reasons)


def _marked(text: str, words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The parts of a text, and whether each is a word of the question."""
    if not words:
        yield text, False
        return
    parts = re.split(rf"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
    yield from ((part, number % 2 == 1) for number, part in enumerate(parts) if part)
