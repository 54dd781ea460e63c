"""`/s/<space>/notes/` and one note: reading, writing, editing, deleting.

Owns the forms of a note. Trio thread only.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.memories.notes import write_note
from livememfs.memories.rewriting import put_back, remove, rewrite
from livememfs.records import keys
from livememfs.records.note import CATEGORIES, Note
from livememfs.serve.web.acts import Done, Warnings, author, text_fields
from livememfs.serve.web.asked import access_of, name_in
from livememfs.serve.web.cards import Card, FeedItem, card_of
from livememfs.serve.web.feed import Wanted, answer
from livememfs.serve.web.markdown import rendered
from livememfs.serve.web.render import part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.memories.rewriting import KeptVersion
    from livememfs.serve.web.site import Site

NAME_AFTER = 3
"""`/s/SPACE/note/NAME`: the name stands behind three parts."""
MEANWHILE = "Somebody has changed it meanwhile: it is shown below. Saving again replaces what they wrote."


async def notes(site: Site, request: Request) -> Response:
    """The notes of a space."""
    space = (await site.space(request)).space
    total = len(await site.order.names(space, keys.LIVE))
    writing = "write" in request.query_params and access_of(request).may("write")
    more = {"space": space, "total": total, "categories": CATEGORIES, "writing": writing}
    return await answer(site, request, "notes.html", Wanted.of(request, "notes"), [space], **more)


async def write(site: Site, request: Request) -> Response:
    """A new note."""
    space = (await site.space(request, "write")).space
    given, warnings = await text_fields(request), Warnings()
    context = site.context
    key = await write_note(
        context.replica, context.clock, space, given.get("text", ""), agent=author(site, request),
        category=_category(given), tags=_tags(given), on_private=warnings.hear,
    )  # fmt: skip

    written = (await context.replica.names.stat(key)).etag

    async def back() -> str:
        await remove(context.replica, key, saw=written)
        return f"/s/{part(space)}/notes/"

    where = "" if given.get("from") == "feed" else "notes/"
    return site.acts.done(f"/s/{part(space)}/{where}", Done(space, "The note is written.", tuple(warnings), back))


async def note(site: Site, request: Request) -> Response:
    """One note; with `?edit` as a form."""
    space = (await site.space(request)).space
    card = await _card(site, space, name_in(request, NAME_AFTER))
    if "edit" in request.query_params:
        (await site.space(request, "write"))
        return await _form(site, request, card, card.whole, card.type, ", ".join(card.tags))
    html = await in_thread(partial(rendered, card.whole))
    after = site.events.place(site.events.last)
    return await site.page(request, "note.html", space=space, card=card, html=html, after=after)


async def change(site: Site, request: Request) -> Response:
    """`action` is `save` or `delete`."""
    space = (await site.space(request, "write")).space
    card, given = await _card(site, space, name_in(request, NAME_AFTER)), await text_fields(request)
    if given.get("action") == "delete":
        return await _delete(site, space, card, given)
    if given.get("action") != "save":
        raise errors.BadRequest("an action is save or delete", path="note")
    return await _save(site, request, card, given)


async def _save(site: Site, request: Request, card: Card, given: Mapping[str, str]) -> Response:
    key, context, warnings = f"{card.item.space}/{card.item.key}", site.context, Warnings()
    stored = await context.replica.read(key)
    was = Note.parse(stored.data, path=key, name=key.rpartition("/")[2])
    text = given.get("text", "").rstrip() + "\n"
    now = replace(was, body=text, category=_category(given) or was.category, tags=_tags(given))
    try:
        kept = await rewrite(
            context.replica, context.clock, key, now.render().decode(), saw=given.get("saw", ""),
            agent=author(site, request), on_private=warnings.hear,
        )  # fmt: skip
    except errors.PreconditionFailed:
        values = (given.get("text", ""), given.get("category", ""), given.get("tags", ""))
        return await _form(site, request, await _card(site, card.item.space, key.rpartition("/")[2]), *values, code=409)
    return site.acts.done(card.href, Done(card.item.space, "Saved.", tuple(warnings), _back(site, kept, card.href)))


async def _delete(site: Site, space: str, card: Card, given: Mapping[str, str]) -> Response:
    kept = await remove(site.context.replica, f"{space}/{card.item.key}", saw=given.get("saw", ""))
    back = _back(site, kept, card.href)
    return site.acts.done(f"/s/{part(space)}/notes/", Done(space, "The note is deleted.", back=back))


def _back(site: Site, kept: KeptVersion, href: str) -> Any:
    async def back() -> str:
        await put_back(site.context.replica, kept)
        return href

    return back


async def _form(
    site: Site, request: Request, card: Card, text: str, category: str, tags: str, code: int = 200
) -> Response:
    html = await in_thread(partial(rendered, card.whole)) if code != 200 else ""
    values = {"text": text, "category": category, "tags": tags, "html": html}
    problem = MEANWHILE if code != 200 else ""
    more = {"space": card.item.space, "card": card, "categories": CATEGORIES, "problem": problem}
    return await site.page(request, "noteedit.html", code=code, **values, **more)


async def _card(site: Site, space: str, name: str) -> Card:
    """A note by its name. NotFound."""
    key = keys.live_key(space, name)
    missing = errors.NotFound(path=f"{space}/{keys.LIVE}/{name}")
    level = await site.context.replica.names.listing(keys.live_prefix(space))
    if keys.parse(key).kind != "note" or name not in level.objects:
        raise missing
    card = await card_of(site, FeedItem(name, space, "note", f"{keys.LIVE}/{name}"))
    if card is None:
        raise missing
    return card


def _category(given: Mapping[str, str]) -> str:
    return given.get("category", "").strip()[:64]


def _tags(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag.strip() for tag in given.get("tags", "").split(",") if tag.strip()))
