"""Whose words a memory or a bank file has, by a button: a person vouches for it, or says that it came from elsewhere.

Owns who may: lowering a class needs the permission to write, raising one that to administer, which agents are not
given. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.memories.storing import trust_of_object
from livememfs.memories.storing import vouch as vouch_memory
from livememfs.records import keys
from livememfs.records.trust import Trust, trust_of
from livememfs.runs.edit import vouch as vouch_bank
from livememfs.serve.web.acts import Done
from livememfs.serve.web.render import place
from livememfs.serve.web.who import access_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.access import Access
    from livememfs.serve.web.site import Site

OFFERED = {Trust.USER: "Vouch for it", Trust.TOOL: "It is tool output", Trust.WEB: "It is from the web"}
"""The classes that a button gives, with its words."""


def offered(trust: Trust, access: Access) -> dict[str, str]:
    """The buttons for something of this class: the names of classes, with the words of each."""
    return {
        given.word: words
        for given, words in OFFERED.items()
        if (given < trust and access.may("write")) or (given > trust and access.may("admin"))
    }


async def memory(site: Site, request: Request, key: str, given: Mapping[str, str]) -> Response:
    """The memory under a key gets the class `trust` of the form. NotFound, Forbidden, BadRequest."""
    context = site.context
    try:
        info = await context.replica.names.stat(key)
        trust = _allowed(request, await trust_of_object(context.replica, key), given)
    except errors.ObjectMissing:
        raise errors.NotFound(path=key) from None
    await vouch_memory(context.replica, context.clock, info, trust, by=_by(site, request))
    return _told(site, key, trust)


async def bank(site: Site, request: Request, space: str, path: str, given: Mapping[str, str]) -> Response:
    """A bank file gets the class `trust` of the form, as a run of its own. As `memory`."""
    key, context = keys.bank_key(space, path), site.context
    try:
        was = trust_of((await context.replica.read(key)).info.meta, {})
    except errors.ObjectMissing:
        raise errors.NotFound(path=key) from None
    trust = _allowed(request, was, given)
    leases, by = context.consolidations.leases, _by(site, request)
    await vouch_bank(context.replica, context.clock, leases, context.host, space, path, trust, by)
    return _told(site, key, trust)


def _told(site: Site, key: str, trust: Trust) -> Response:
    return site.acts.done(place(key), Done(key.partition("/")[0], f"From now on it is told as {trust.word}."))


def _allowed(request: Request, was: Trust, given: Mapping[str, str]) -> Trust:
    """The class that the form names. BadRequest; Forbidden for a class that this caller does not give."""
    trust = Trust.named(given.get("trust"))
    if trust not in OFFERED:
        raise errors.BadRequest(f"trust is one of {', '.join(each.word for each in OFFERED)}", path="trust")
    if trust > was:
        access_of(request).require(request.path_params["space"], "admin")
    return trust


def _by(site: Site, request: Request) -> str:
    return access_of(request).name or site.context.owner
