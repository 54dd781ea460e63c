"""`/s/<space>/about` and `/settings`: what a space is, its rules, and what is set.

Owns the form for the rules. Settings are shown and never changed here: they are read once, where a mount is started.
Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.records import keys
from livememfs.records.rules import DEFAULT, templates
from livememfs.records.space import Meta
from livememfs.runs.edit import Replacement
from livememfs.serve.web.acts import Warnings, text_fields
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.markdown import rendered
from livememfs.serve.web.render import part
from livememfs.serve.web.runs import edited
from livememfs.spaces.making import check_rules
from livememfs.spaces.objects import public

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.serve.web.site import Site


async def about(site: Site, request: Request) -> Response:
    """What a space is, and its rules; with `?edit` these as a form."""
    space = (await site.space(request)).space
    after = site.events.place(site.events.last)
    meta, problem = None, ""
    try:
        meta = Meta.parse((await site.context.replica.read(keys.meta_key(space))).data)
    except ValueError as error:
        problem = str(error)
    rules, etag = await _rules(site, space)
    edit = "edit" in request.query_params
    if edit:
        await site.space(request, "admin")
    text = rules if rules is not None else templates()[DEFAULT]
    html = await in_thread(partial(rendered, text))
    values = {"meta": meta, "problem": problem, "rules": rules, "etag": etag, "html": html, "edit": edit}
    return await site.page(request, "about.html", space=space, after=after, text=text, **values)


async def seal(site: Site, request: Request) -> Response:
    """New rules."""
    space = (await site.space(request, "admin")).space
    given, warnings = await text_fields(request), Warnings()
    data = await public(given.get("text", "").rstrip() + "\n", keys.rules_key(space), warnings.hear)
    check_rules(space, data)
    change = Replacement(keys.RULES, data.decode(), given.get("saw", ""))
    return await edited(site, request, space, [change], f"/s/{part(space)}/about", "The rules are sealed.", warnings)


async def settings(site: Site, request: Request) -> Response:
    """The settings, for administrators of the bucket."""
    access_of(request).require_admin()
    return await site.page(request, "settings.html", settings=site.settings)


async def _rules(site: Site, space: str) -> tuple[str | None, str]:
    """The rules of a space and their etag; None and empty without any."""
    with suppress(errors.ObjectMissing):
        stored = await site.context.replica.read(keys.rules_key(space))
        return stored.data.decode("utf-8", "replace"), stored.info.etag
    return None, ""
