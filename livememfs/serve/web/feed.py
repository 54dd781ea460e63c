"""`/feed` and `/s/<space>/`: all that happens, the newest first, and what of it somebody wants to see.

Owns the filters. By kind and type names alone are looked at; by agent or tag the search index, which may be a moment
behind. Trio thread only.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from livememfs import errors
from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.cards import FeedItem, cards_of, when_named
from livememfs.serve.web.order import CHOICES, SOURCES, stamped
from livememfs.serve.web.overview import rows_of
from livememfs.serve.web.render import part

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.recall.search.query import Query
    from livememfs.serve.web.site import Site

SHOWN = 50
MOST_SPACES = 40
LABELS = {"notes": "tag", "memories": "subject", "self": "subject", "goals": "subject", "observations": "concept"}
"""What a tag is called in the index, by what it is on."""
RECORDS = {"notes": keys.LIVE}
"""What things are called in the index, where that is another word."""


@dataclass(frozen=True)
class Wanted:
    """What somebody wants to see. Empty: everything. `before`: a position; only what is older."""

    space: str = ""
    kind: str = ""
    type: str = ""
    agent: str = ""
    tag: str = ""
    before: str = ""

    @classmethod
    def of(cls, request: Request, kind: str = "") -> Wanted:
        """As an address says it. NotFound for an unknown kind."""
        given = {name: request.query_params.get(name, "").strip()[:200] for name in cls.__dataclass_fields__}
        wanted = cls(**{**given, "kind": kind or given["kind"]})
        if wanted.kind not in ("", *CHOICES):
            raise errors.NotFound(path=f"kind {wanted.kind[:40]}")
        return wanted

    @property
    def choices(self) -> tuple[str, ...]:
        """The kinds that are looked at."""
        return (self.kind,) if self.kind else CHOICES

    @property
    def narrows(self) -> bool:
        """Whether something is left out."""
        return any((self.space, self.kind, self.type, self.agent, self.tag))

    def address(self, **other: str) -> str:
        """The query of an address for the same, with other values."""
        values = {**self.__dict__, "before": "", **other}
        return "?" + urlencode({name: value for name, value in values.items() if value}, errors="surrogateescape")


async def home(site: Site, request: Request) -> Response:
    """A space without the slash."""
    return RedirectResponse(f"/s/{part((await site.space(request)).space)}/", 303)


async def in_space(site: Site, request: Request) -> Response:
    """What happens in a space."""
    space = (await site.space(request)).space
    held = await site.order.held(space)
    return await answer(site, request, "feed.html", Wanted.of(request), [space], space=space, held=held)


async def everywhere(site: Site, request: Request) -> Response:
    """What happens in all visible spaces, or in one of them."""
    wanted = Wanted.of(request)
    seen = [row.name for row in await rows_of(site, access_of(request))]
    if wanted.space and wanted.space not in seen:
        raise errors.NotFound(path=wanted.space)
    spaces = [wanted.space] if wanted.space else seen[:MOST_SPACES]
    return await answer(site, request, "feed.html", wanted, spaces, space="", seen=seen, held=None)


async def answer(
    site: Site, request: Request, template: str, wanted: Wanted, spaces: Sequence[str], **more: Any
) -> Response:
    """A page with a list."""
    after = site.events.place(site.events.last)  # before the list is read: later things come as events
    items = await _items(site, wanted, spaces)
    shown, older = items[:SHOWN], items[SHOWN - 1].at if len(items) > SHOWN else ""
    cards = await cards_of(site, shown)
    values = {"wanted": wanted, "cards": cards, "older": older, "newest": not wanted.before, "after": after}
    return await site.page(request, template, choices=CHOICES, **values, **more)


async def _items(site: Site, wanted: Wanted, spaces: Sequence[str]) -> list[FeedItem]:
    """The newest items, one more than are shown."""
    found: list[list[FeedItem]] = []
    by_index = bool(wanted.agent or wanted.tag)

    async def look(place: tuple[str, str]) -> None:
        space, choice = place
        if by_index:
            found.append(await _found(site, wanted, space, choice))
        else:
            found.append(await site.order.newest(space, choice, wanted.before, SHOWN + 1, wanted.type))

    choices = [choice for choice in wanted.choices if not by_index or choice in SOURCES]
    await for_each([(space, choice) for space in spaces for choice in choices], look)
    return heapq.nlargest(SHOWN + 1, (item for items in found for item in items))


async def _found(site: Site, wanted: Wanted, space: str, choice: str) -> list[FeedItem]:
    """The same by agent or tag, from the index."""
    answer = await site.context.recall.ask(_query(wanted, choice), (space,), anew=True)
    kind = SOURCES[choice][1]
    items = []
    for hit in answer.found.hits:
        key = hit.record.key.removeprefix(f"{space}/")
        name = key.rpartition("/")[2]
        at = name if when_named(name) else f"{stamped(datetime.fromtimestamp(hit.record.created, UTC))}_{name}"
        if not wanted.before or at < wanted.before:
            items.append(FeedItem(at, space, kind, key))
    return sorted(items, reverse=True)


def _query(wanted: Wanted, choice: str) -> Query:
    from livememfs.recall.search.query import Query

    query = Query(limit=SHOWN + 1).narrowed("in", RECORDS.get(choice, choice))
    for field, value in (("agent", wanted.agent), (LABELS[choice], wanted.tag), ("type", wanted.type)):
        query = query.narrowed(field, value) if value else query
    until = when_named(wanted.before)
    return replace(query, before=until + timedelta(seconds=1)) if until is not None else query
