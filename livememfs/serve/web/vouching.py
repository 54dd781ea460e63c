"""Whose words a memory or a bank file has, by a button: a person vouches for it, or says that it came from elsewhere.

Owns who may: lowering a class needs the permission to write, raising one that to administer, which agents are not
given; so it is for the undo of either. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.memories.rewriting import KeptVersion, put_back, seen
from livememfs.memories.storing import trust_of_object
from livememfs.memories.storing import vouch as vouch_memory
from livememfs.records import keys
from livememfs.records.trust import Trust, trust_of
from livememfs.runs.edit import vouch as vouch_bank
from livememfs.serve.web.acts import Done, author, fields
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.render import place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.access import Access, Permission
    from livememfs.serve.web.site import Site

OFFERED = {
    Trust.USER: "Vouch for it",
    Trust.AGENT: "It is an agent's",
    Trust.TOOL: "It is tool output",
    Trust.WEB: "It is from the web",
}
"""The classes that a button gives, with its words."""


def offered(trust: Trust, access: Access) -> dict[str, str]:
    """The buttons for something of this class: the names of classes, with the words of each."""
    return {
        given.word: words
        for given, words in OFFERED.items()
        if (given < trust and access.may("write")) or (given > trust and access.may("admin"))
    }


async def vouch(site: Site, request: Request) -> Response:
    """The memory or bank file `key` of the form (`memories/NAME`, `bank/PATH`) gets its class `trust`; a bank file by a
    run of its own. NotFound, Forbidden, BadRequest.
    """
    space, given = (await site.space(request, "write")).space, await fields(request)
    key, context, by = f"{space}/{given.get('key', '')}", site.context, author(site, request)
    parsed = keys.parse(key)
    if parsed.kind not in ("memory", "bank") or keys.has_ended(key, context.clock.now()):
        raise errors.NotFound(path=key)
    try:
        info = await context.replica.names.stat(key)
        is_memory = parsed.kind == "memory"
        was = await trust_of_object(context.replica, key) if is_memory else trust_of(info.meta, {})
    except errors.ObjectMissing:
        raise errors.NotFound(path=key) from None
    trust = _allowed(request, was, given)
    make = _memory if is_memory else _bank_file
    back = await make(site, key, trust, was, by) if trust is not was else None
    needs: Permission = "admin" if was > trust else "write"
    return site.acts.done(place(key), Done(space, f"Told as {trust.word} from now on.", back=back, needs=needs))


async def _memory(site: Site, key: str, trust: Trust, _was: Trust, by: str) -> Callable[[], Awaitable[str]]:
    """Give a memory a class. Returns what puts back the version that was there."""
    replica = site.context.replica
    stored = await replica.read(key)
    await vouch_memory(replica, site.context.clock, stored.info, trust, by=by)
    kept = KeptVersion(key, stored.data, stored.info.meta or {}, replica.names.now(key))

    async def back() -> str:
        await put_back(replica, kept)
        return place(key)

    return back


async def _bank_file(site: Site, key: str, trust: Trust, was: Trust, by: str) -> Callable[[], Awaitable[str]]:
    """Give a bank file a class. Returns what gives it the former one, which no other version of the file gets."""
    context, (space, path) = site.context, (keys.parse(key).space, keys.parse(key).name)

    async def give(one: Trust) -> str:
        leases = context.consolidations.leases
        await vouch_bank(context.replica, context.clock, leases, context.host, space, path, one, by)
        return (await context.replica.read(key)).info.etag

    now = await give(trust)

    async def back() -> str:
        await seen(context.replica, key, now)
        await give(was)
        return place(key)

    return back


def _allowed(request: Request, was: Trust, given: dict[str, str]) -> Trust:
    """The class that the form names. BadRequest; Forbidden for a class that this caller does not give."""
    trust = Trust.named(given.get("trust"))
    if trust not in OFFERED:
        raise errors.BadRequest(f"trust is one of {', '.join(each.word for each in OFFERED)}", path="trust")
    if trust > was:
        access_of(request).require(request.path_params["space"], "admin")
    return trust
