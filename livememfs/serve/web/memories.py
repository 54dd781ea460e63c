"""`/s/<space>/memories/` and one memory: links, history and trust; adding, editing, forgetting, bringing back.

Owns the forms of a memory. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.memories import storing
from livememfs.memories.rewriting import put_back, remove, rewrite
from livememfs.memories.uses import moment
from livememfs.records import keys
from livememfs.records.memory import CATEGORIES, RELATIONS, TYPES, Memory, read_field
from livememfs.serve.web.acts import Done, Warnings, author, text_fields
from livememfs.serve.web.asked import access_of, name_in
from livememfs.serve.web.cards import Card, FeedItem, card_of
from livememfs.serve.web.feed import Wanted, answer
from livememfs.serve.web.markdown import excerpt, plain, rendered
from livememfs.serve.web.notes import MEANWHILE
from livememfs.serve.web.render import part, stamp
from livememfs.serve.web.vouching import offered
from livememfs.text import frontmatter
from livememfs.text.frontmatter import FrontMatterError

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.serve.web.site import Site
    from livememfs.tree.space.collection import Collection
    from livememfs.tree.space.root import Space

NAME_AFTER = 4
"""`/s/SPACE/memory/COLLECTION/NAME`: the name stands behind four parts."""
TITLES = {keys.MEMORIES: "What is true", keys.SELF: "Who the agent is", keys.GOALS: "What the agent wants"}
SHOWN_FORGOTTEN, SHOWN_LINKS = 100, 64


@dataclass(frozen=True)
class Link:
    """A link of a memory. `incoming`: the other memory has it; `href` is empty for one that leads nowhere."""

    relation: str
    href: str
    words: str
    incoming: bool = False


@dataclass(frozen=True)
class FormerVersion:
    """A version of before: until when it was, and its text."""

    until: datetime
    memory: Memory
    html: Markup


async def memories(site: Site, request: Request) -> Response:
    """The memories of one collection, or with `?forgotten` those that were forgotten."""
    space = (await site.space(request)).space
    collection = _known(request.query_params.get("in", keys.MEMORIES), space)
    more: dict[str, Any] = {
        "space": space,
        "collection": collection,
        "collections": TITLES,
        "types": tuple(TYPES),
        "categories": CATEGORIES[collection],
        "total": len(await site.order.names(space, collection)),
        "forgotten": None,
    }
    if "forgotten" in request.query_params:
        old = (await storing.forgotten(site.context.replica, space, collection))[:SHOWN_FORGOTTEN]
        more["forgotten"] = await in_thread(lambda: [(each, excerpt(each.memory.content)[0]) for each in old])
    return await answer(site, request, "memories.html", Wanted.of(request, collection), [space], **more)


async def add(site: Site, request: Request) -> Response:
    """A new memory, or with `action=restore` a forgotten one."""
    space, given = (await site.space(request, "write")).space, await text_fields(request)
    collection, context = _known(given.get("in", ""), space), site.context
    if given.get("action") == "restore":
        key = await storing.restore(context.replica, context.clock, space, collection, given.get("id", ""))
        return site.acts.done(_address(key), Done(space, "Brought back.", back=_forgetting(site, key)))
    fields = {"type": given.get("type", ""), "category": given.get("category", ""), "ttl": given.get("until", "")}
    fields |= {"importance": given.get("importance", "")}
    fields = {name: value.strip() for name, value in fields.items() if value.strip()}
    for name, value in fields.items():
        _check(name, value, collection, context.clock.now())
    warnings = Warnings()
    text = _joined({**fields, "subjects": list(_subjects(given))}, given.get("text", ""))
    key = await storing.remember(
        context.replica, context.clock, space, collection, text, agent=author(site, request), on_private=warnings.hear
    )

    written = (await context.replica.names.stat(key)).etag

    async def back() -> str:
        await remove(context.replica, key, saw=written)
        return f"/s/{part(space)}/memories/?in={collection}"

    done = Done(space, "Remembered.", tuple(warnings), back)
    return site.acts.done(f"/s/{part(space)}/memories/?in={collection}", done)


async def memory(site: Site, request: Request) -> Response:
    """One memory; with `?edit` as a form."""
    node = await site.space(request)
    card = await _card(site, request, node)
    if "edit" in request.query_params:
        await site.space(request, "write")
        return await _form(site, request, card, _as_given(card.more["memory"]))
    collection = _folder(node, card)
    memory_id = storing.id_of(card.item.key.rpartition("/")[2])
    worth = site.context.uses.of(node.space, memory_id)
    last = moment(worth.used_at)
    now = site.context.clock.now()
    whole: Memory = card.more["memory"]
    values = {
        "html": await in_thread(partial(rendered, card.whole)),
        "links": await _links(collection, whole, memory_id),
        "former": await _former(site, node.space, whole.collection, memory_id),
        "uses": worth.uses,
        "told": worth.told,
        "last_use": last,
        "weight": whole.effective(now, uses=worth.uses, last_use=last),
        "id": memory_id,
        "offered": offered(card.more["trust"], access_of(request)),
        "vouched": card.item.key,
        "after": site.events.place(site.events.last),
    }
    return await site.page(request, "memory.html", space=node.space, card=card, memory=whole, **values)


async def change(site: Site, request: Request) -> Response:
    """`action` is `save` or `forget`."""
    node = await site.space(request, "write")
    card, given = await _card(site, request, node), await text_fields(request)
    key = f"{node.space}/{card.item.key}"
    if given.get("action") == "forget":
        info = (await site.context.replica.read(key)).info
        await storing.forget(site.context.replica, site.context.clock, info, by_caller=False)
        collection, _, name = card.item.key.partition("/")

        async def back() -> str:
            restored = await storing.restore(
                site.context.replica, site.context.clock, node.space, collection, storing.id_of(name)
            )
            return _address(restored)

        where = f"/s/{part(node.space)}/memories/?in={collection}"
        return site.acts.done(where, Done(node.space, "The memory is forgotten.", back=back))
    if given.get("action") != "save":
        raise errors.BadRequest("an action is save or forget", path="memory")
    return await _save(site, request, card, given)


async def _save(site: Site, request: Request, card: Card, given: Mapping[str, str]) -> Response:
    key, context, warnings = f"{card.item.space}/{card.item.key}", site.context, Warnings()
    text = _changed(card.more["memory"], given, context.clock.now())
    try:
        kept = await rewrite(
            context.replica, context.clock, key, text, saw=given.get("saw", ""), agent=author(site, request),
            on_private=warnings.hear,
        )  # fmt: skip
    except errors.PreconditionFailed:
        return await _form(site, request, card, given, code=409)

    async def back() -> str:
        await put_back(context.replica, kept)
        return card.href

    assert kept.now is not None  # it was replaced
    return site.acts.done(_address(kept.now.key), Done(card.item.space, "Saved.", tuple(warnings), back))


def _forgetting(site: Site, key: str) -> Any:
    async def back() -> str:
        info = (await site.context.replica.read(key)).info
        await storing.forget(site.context.replica, site.context.clock, info, by_caller=False)
        space, collection, _ = key.split("/", 2)
        return f"/s/{part(space)}/memories/?in={collection}&forgotten="

    return back


# --- what a form says -------------------------------------------------------------------------------------------


async def _form(site: Site, request: Request, card: Card, given: Mapping[str, str], code: int = 200) -> Response:
    collection = card.more["memory"].collection
    more = {
        "space": card.item.space,
        "card": card,
        "given": given,
        "types": tuple(dict.fromkeys((*TYPES, card.type))),
        "categories": CATEGORIES[collection],
        "collection": collection,
        "problem": MEANWHILE if code != 200 else "",
        "html": await in_thread(partial(rendered, card.whole)) if code != 200 else "",
    }
    return await site.page(request, "memoryedit.html", code=code, **more)


def _as_given(memory: Memory) -> dict[str, str]:
    """The fields of a form that says what a memory says."""
    return {
        "text": memory.content.strip("\n"),
        "type": memory.type,
        "category": memory.category,
        "importance": f"{memory.importance:g}",
        "subjects": ", ".join(memory.subjects),
        "until": stamp(memory.expires_at) if memory.expires_at is not None else "",
        "links": "\n".join(f"{relation} {name}" for relation, name in memory.links),
    }


def _changed(memory: Memory, given: Mapping[str, str], now: datetime) -> str:
    """The text of the memory that a form says. BadRequest for a value that no memory can have."""
    fields: dict[str, Any] = {}
    for name in ("type", "category", "importance"):
        if given.get(name, "").strip():
            fields |= _check(name, given[name].strip(), memory.collection, now)
    if (until := given.get("until")) is not None:
        fields |= {"expires_at": None} if not until.strip() else _until(until.strip(), memory.collection, now)
    if "links" in given:
        lines = [line for line in given["links"].split("\n") if line.strip()]
        fields |= _check("links", lines, memory.collection, now)
        if len(fields["links"]) < len(lines):
            detail = f"each line is a relation ({', '.join(RELATIONS)}) and the id of a memory"
            raise errors.BadRequest(path="links", detail=detail)
    content = given.get("text", memory.content).rstrip() + "\n"
    after = replace(memory, content=content, subjects=_subjects(given), updated_at=now, **fields)
    try:
        return after.render(whole=True).decode()
    except FrontMatterError as error:
        raise errors.TooLarge(path="the fields", detail=str(error)) from error


def _until(text: str, collection: str, now: datetime) -> dict[str, Any]:
    """An end: how long from now, or a time."""
    try:
        return read_field("ttl", text, collection, now)
    except (ValueError, TypeError, OverflowError):
        return _check("expires_at", text, collection, now)


def _check(name: str, value: Any, collection: str, now: datetime) -> dict[str, Any]:
    try:
        return read_field(name, value, collection, now)
    except (ValueError, TypeError, OverflowError):
        raise errors.BadRequest(path=name, detail=f"{str(value)[:80]!r} is none that a memory can have") from None


def _subjects(given: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in given.get("subjects", "").split(",") if text.strip()))


def _joined(fields: Mapping[str, Any], text: str) -> str:
    given = {name: value for name, value in fields.items() if value}
    try:
        return frontmatter.join(given, text) if given else text
    except FrontMatterError as error:
        raise errors.TooLarge(path="the fields", detail=str(error)) from error


# --- one memory -------------------------------------------------------------------------------------------------


def _known(collection: str, space: str) -> str:
    if collection not in keys.COLLECTIONS:
        raise errors.NotFound(path=f"{space}/{collection[:40]}")
    return collection


def _address(key: str) -> str:
    space, collection, name = key.split("/", 2)
    return f"/s/{part(space)}/memory/{collection}/{part(name)}"


def _folder(node: Space, card: Card) -> Collection:
    return next(each for each in node.collections if each.name == card.item.key.partition("/")[0])


async def _card(site: Site, request: Request, node: Space) -> Card:
    """The memory of an address, by its name, its id, or the name it was written under. NotFound."""
    collection, name = _known(request.path_params["collection"], node.space), name_in(request, NAME_AFTER)
    missing = errors.NotFound(path=f"{node.space}/{collection}/{name}")
    folder = next(each for each in node.collections if each.name == collection)
    found = await folder.find(name)
    if found is None:
        raise missing
    card = await card_of(site, FeedItem(found, node.space, "memory", f"{collection}/{found}"))
    if card is None or "memory" not in card.more:
        raise missing
    return card


async def _links(collection: Collection, memory: Memory, memory_id: str) -> Sequence[Link]:
    """The links of a memory to others, and those of others of its folder to it."""
    links = []
    for relation, name in memory.links[:SHOWN_LINKS]:
        found = await collection.linked(name)
        if found is None:
            links.append(Link(relation, "", name))
            continue
        key = f"{found.collection.prefix}{found.name}"
        links.append(Link(relation, _address(key), await _first_line(found.collection, found.name)))
    contents = await collection.shelf.contents()
    for name in contents.names:
        other = collection.shelf.known(name)
        for relation, to in other.links if other is not None else ():
            if to == memory_id and len(links) < 2 * SHOWN_LINKS:
                href = _address(f"{collection.prefix}{name}")
                links.append(Link(relation, href, await _first_line(collection, name), incoming=True))
    return links


async def _first_line(collection: Collection, name: str) -> str:
    try:
        data = (await collection.context.replica.read(collection.prefix + name)).data
        memory = Memory.parse(data, path=name, collection=collection.name, name=name)
    except (errors.ObjectMissing, errors.NotText):
        return name
    return plain(memory.content)[:120] or name


async def _former(site: Site, space: str, collection: str, memory_id: str) -> Sequence[FormerVersion]:
    """What it said before, the last version first."""
    old = await storing.versions(site.context.replica, space, collection, memory_id)
    shown = [each for each in old if not each.memory.forgotten]
    return await in_thread(
        lambda: [FormerVersion(each.moment, each.memory, rendered(each.memory.content)) for each in shown]
    )
