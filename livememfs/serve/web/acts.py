"""What somebody does on a page, and how it is taken back.

Owns the forms, whose name stands on what is written, and the last acts with what takes each back: it is kept here for a
while, in memory alone. The guard (Origin) and the cookie (SameSite) make sure that a form comes from our own page;
rights are checked again for each act. Refuses to do anything itself: the acts are those of notes, memories and runs.
Trio thread only.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import RedirectResponse

from livememfs import errors
from livememfs.serve.web.asked import access_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.errors import LiveMemError
    from livememfs.records.access import Permission
    from livememfs.serve.web.site import Site

KEPT = 64
"""Most acts that can be taken back; a text among them has at most a MiB."""
MAX_FORM, MAX_TEXT_FORM, MAX_FIELDS = 8_192, 4 << 20, 32
DONE = "did"
"""The field of an address that names the act that was just done."""


@dataclass(frozen=True)
class Done:
    """One act. `back` takes it back, and returns the address of what there is then; None: nothing does. `needs` is what
    that takes.
    """

    space: str
    words: str
    warnings: tuple[str, ...] = ()
    back: Callable[[], Awaitable[str]] | None = None
    needs: Permission = "write"


@dataclass(frozen=True)
class Notice:
    """What a page says of an act. `id`: with it the act is taken back; empty: it cannot be."""

    words: str
    warnings: tuple[str, ...]
    id: str


class Acts:
    """The last acts on the pages of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._done: OrderedDict[str, Done] = OrderedDict()

    def done(self, where: str, done: Done) -> Response:
        """The answer to a form: the page at `where`, which says what was done."""
        name = secrets.token_urlsafe(9)
        self._done[name] = done
        while len(self._done) > KEPT:
            self._done.popitem(last=False)
        path, mark, fragment = where.partition("#")
        return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{DONE}={name}{mark}{fragment}", 303)

    def notice(self, request: Request) -> Notice | None:
        """What the page of this request says was just done."""
        name = request.query_params.get(DONE, "")
        done = self._done.get(name)
        if done is None or not access_of(request).sees(done.space):
            return None
        may = done.back is not None and access_of(request).may(done.needs)
        return Notice(done.words, done.warnings, name if may else "")

    async def take_back(self, request: Request) -> Response:
        """Take an act back, once. NotFound when it is not known any more, Forbidden."""
        name = (await fields(request)).get("act", "")
        done = self._done.get(name)
        if done is None or done.back is None:
            raise errors.NotFound(path="such act any more; the pages of history may have what was there")
        access_of(request).require(done.space, done.needs)
        where = await done.back()
        self._done.pop(name, None)
        return self.done(where, Done(done.space, "Taken back."))


async def undo(site: Site, request: Request) -> Response:
    """The button beside what was just done."""
    return await site.acts.take_back(request)


class Warnings(list[str]):
    """What was replaced in a text before it was stored."""

    def hear(self, error: LiveMemError) -> None:
        """One warning."""
        kinds = error.values.get("detail") if isinstance(error, errors.PrivateText) else None
        self.append(f"Private text was left out, and a mark stands in its place: {kinds}" if kinds else str(error))


def author(site: Site, request: Request) -> str:
    """The name that stands on what the caller writes."""
    return access_of(request).name or site.context.agent_of(0)


async def fields(request: Request, most: int = MAX_FORM) -> dict[str, str]:
    """The fields of a form, the last of each name; none if it is too large. Line ends are as in files."""
    data = bytearray()
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            data += chunk
            if len(data) > most:
                return {}
    try:
        values_of = parse_qs(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return {}
    return {name: values[-1].replace("\r\n", "\n") for name, values in values_of.items()}


async def text_fields(request: Request) -> Mapping[str, str]:
    """The fields of a form with a text. TooLarge."""
    given = await fields(request, MAX_TEXT_FORM)
    if not given:
        raise errors.TooLarge(path="what was sent", detail=f"more than {MAX_TEXT_FORM >> 20} MiB, or nothing")
    return given
