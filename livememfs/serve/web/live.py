"""`/s/<space>/`: the waiting notes, as they arrive; one note; one memory.

Owns the excerpt of a note in the list. A note that is no text is shown as unreadable. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from livememfs import errors
from livememfs.concurrency import aside, for_each, in_thread
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.records.metadata import META_NAME
from livememfs.records.note import Note
from livememfs.records.trust import trust_of
from livememfs.serve.web.markdown import rendered
from livememfs.serve.web.overview import in_pages, note_names
from livememfs.serve.web.render import long_page, page, part, place
from livememfs.serve.web.vouching import offered
from livememfs.serve.web.who import access_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.serve.web.site import Site

SHOWN = 50
AT_ONCE = 16
EXCERPT_LINES, EXCERPT = 8, 600
UNREADABLE = "This note is not text."


@dataclass(frozen=True)
class Card:
    """A note in the list. `cut`: there is more of it."""

    name: str
    when: datetime
    agent: str
    category: str
    tags: tuple[str, ...]
    text: str
    cut: bool
    written: str
    whole: str = ""


async def home(site: Site, request: Request) -> Response:
    """A space without the slash."""
    return RedirectResponse(f"/s/{part((await site.space(request)).space)}/", 303)


async def notes(site: Site, request: Request) -> Response:
    """The notes of a space, newest first; older ones with `?before=`."""
    space = (await site.space(request)).space
    after = site.events.place(site.events.last)  # before the list is read: later notes come as events
    names = await note_names(site.context.replica, space)
    before = request.query_params.get("before", "")
    shown, older = in_pages(names, before, SHOWN)
    cards: dict[str, Card] = {}

    async def read(name: str) -> None:
        try:
            cards[name] = await _card(site, space, name)
        except errors.NotFound:  # it went meanwhile
            return

    await for_each(shown, read, at_once=AT_ONCE)
    read_cards = [cards[name] for name in shown if name in cards]
    listed = {"cards": read_cards, "total": len(names), "older": older, "newest": not before}
    return await long_page("live.html", access=access_of(request), space=space, after=after, **listed)


async def note(site: Site, request: Request) -> Response:
    """One note, or with `?part=card` its entry in the list."""
    space, name = (await site.space(request)).space, request.path_params["name"]
    card = await _card(site, space, name)
    access = access_of(request)
    if request.query_params.get("part") == "card":
        return page("_card.html", access=access, space=space, card=card)
    html = await in_thread(partial(rendered, card.whole))
    return page("note.html", access=access, space=space, card=card, html=html)


async def _card(site: Site, space: str, name: str) -> Card:
    """A note by its name. NotFound."""
    key, replica = keys.live_key(space, name), site.context.replica
    if keys.parse(key).kind != "note" or name not in (await replica.names.listing(keys.live_prefix(space))).objects:
        raise errors.NotFound(path=f"{space}/{keys.LIVE}/{name}")
    try:
        stored = await replica.read(key)
    except errors.ObjectMissing:
        raise errors.NotFound(path=f"{space}/{keys.LIVE}/{name}") from None
    parsed = await aside(len(stored.data), partial(_parsed, stored.data, key, name))
    body = parsed.body.strip("\n")
    text, cut = _excerpt(body)
    written = (stored.info.meta or {}).get(META_NAME, "")
    return Card(name, parsed.timestamp, parsed.agent, parsed.category, parsed.tags, text, cut, written, whole=body)


def _parsed(data: bytes, key: str, name: str) -> Note:
    try:
        return Note.parse(data, path=key, name=name)
    except errors.NotText:
        return Note.parse(UNREADABLE.encode(), path=key, name=name)


def _excerpt(body: str) -> tuple[str, bool]:
    """The beginning of a text, and whether there is more."""
    text = "\n".join(body.split("\n", EXCERPT_LINES)[:EXCERPT_LINES])[:EXCERPT]
    return text, len(text) < len(body)


async def memory(site: Site, request: Request) -> Response:
    """One memory."""
    space = (await site.space(request)).space
    collection, name = request.path_params["collection"], request.path_params["name"]
    replica, missing = site.context.replica, partial(errors.NotFound, path=f"{space}/{collection}/{name}")
    prefix = f"{space}/{collection}/"
    if collection not in keys.COLLECTIONS or keys.has_ended(name, site.context.clock.now()):
        raise missing()
    if name not in (await replica.names.listing(prefix)).objects or keys.parse(prefix + name).kind != "memory":
        raise missing()
    try:
        stored = await replica.read(prefix + name)
    except errors.ObjectMissing:
        raise missing() from None
    parsed = Memory.parse(stored.data, path=prefix + name, collection=collection, name=name)
    if parsed.forgotten:
        raise missing()
    html = await in_thread(partial(rendered, parsed.content))
    access, trust = access_of(request), trust_of(stored.info.meta, parsed.said_of_trust)
    values = {"name": name, "memory": parsed, "html": html, "trust": trust, "offered": offered(trust, access)}
    return page("memory.html", access=access, space=space, address_of=place(prefix + name), **values)
