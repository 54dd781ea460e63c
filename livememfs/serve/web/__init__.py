"""The live page: the content of the spaces in a browser, updated as it changes.

Owns the routes and their pages. Refuses to check tokens: the guard puts an `Access` into `request.state.access`, and
without one nothing is shown. Every answer is rendered on the server; the one script only updates the page. Trio thread
only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from livememfs.serve.headers import SecureHeaders
from livememfs.serve.web import (
    about,
    acts,
    asked,
    audit,
    bank,
    feed,
    memories,
    notes,
    overview,
    proposals,
    runs,
    search,
    sessions,
    signin,
    static,
    stream,
    vouching,
)
from livememfs.serve.web.site import Site, not_found

if TYPE_CHECKING:
    from livememfs.serve.web.site import Handler

__all__ = ["SecureHeaders", "Site", "routes_of"]

GET, POST = ("GET",), ("POST",)
_PUBLIC: tuple[tuple[str, Handler, tuple[str, ...]], ...] = (
    ("/static/{name:path}", static.file, GET),
    ("/login", signin.form, GET),
    ("/login", signin.check, POST),
    ("/logout", signin.leave, POST),
)
_SIGNED_IN: tuple[tuple[str, Handler, tuple[str, ...]], ...] = (
    ("/", overview.spaces, GET),
    ("/events", stream.events, GET),
    ("/search", search.everywhere, GET),
    ("/feed", feed.everywhere, GET),
    ("/settings", about.settings, GET),
    ("/undo", acts.undo, POST),
    ("/s/{space}", feed.home, GET),
    ("/s/{space}/", feed.in_space, GET),
    ("/s/{space}/notes/", notes.notes, GET),
    ("/s/{space}/notes/", notes.write, POST),
    ("/s/{space}/note/{name}", notes.note, GET),
    ("/s/{space}/note/{name}", notes.change, POST),
    ("/s/{space}/memories/", memories.memories, GET),
    ("/s/{space}/memories/", memories.add, POST),
    ("/s/{space}/memory/{collection}/{name}", memories.memory, GET),
    ("/s/{space}/memory/{collection}/{name}", memories.change, POST),
    ("/s/{space}/bank/", bank.files, GET),
    ("/s/{space}/bank/", bank.mend, POST),
    ("/s/{space}/bank/{path:any}", bank.file, GET),
    ("/s/{space}/bank/{path:any}", bank.change, POST),
    ("/s/{space}/search", search.in_space, GET),
    ("/s/{space}/sessions/", sessions.sessions, GET),
    ("/s/{space}/sessions/{id}", sessions.session, GET),
    ("/s/{space}/observations/", sessions.observations, GET),
    ("/s/{space}/observations/{id}", sessions.observation, GET),
    ("/s/{space}/consolidation", runs.show, GET),
    ("/s/{space}/consolidation", runs.ask, POST),
    ("/s/{space}/consolidation/{number}", runs.one, GET),
    ("/s/{space}/consolidation/{number}/note/{name}", runs.note, GET),
    ("/s/{space}/proposals", proposals.show, GET),
    ("/s/{space}/proposals", proposals.decide, POST),
    ("/s/{space}/audit", audit.show, GET),
    ("/s/{space}/trust", vouching.vouch, POST),
    ("/s/{space}/about", about.about, GET),
    ("/s/{space}/about", about.seal, POST),
    ("/{rest:any}", not_found, GET),
)


def routes_of(site: Site) -> list[BaseRoute]:
    """The routes of a site; they must come last, since the last route matches every address."""
    asked.register()
    made: list[BaseRoute] = []
    for table, serve in ((_PUBLIC, site.public), (_SIGNED_IN, site.signed_in)):
        for path, handler, methods in table:
            endpoint = partial(serve, handler)
            name = f"{handler.__module__.rpartition('.')[2]}.{handler.__name__}"
            made.append(Route(path, endpoint, methods=list(methods), name=name, middleware=[Middleware(SecureHeaders)]))
    return made
