"""`/login` and `/logout`: a person enters a token once, and the browser keeps it as a cookie that no script can read.

Owns the cookie. Refuses to keep an invalid token, and to put one into an address. The guard (Origin) and the cookie
(SameSite) make sure that a form comes from our own page. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from livememfs.records.token import MAX_SECRET
from livememfs.serve.guard import COOKIE, local_path
from livememfs.serve.web.acts import fields
from livememfs.serve.web.render import page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.serve.web.site import Site

UNKNOWN = "This token is not valid: it is mistyped, expired or revoked."


async def form(_site: Site, request: Request) -> Response:
    """The form for a token; `?next=` is the page to show afterwards."""
    return page("login.html", access=None, problem="", next=local_path(request.query_params.get("next", "/")))


async def check(site: Site, request: Request) -> Response:
    """Keep a valid token; show the form again for another."""
    given = await fields(request)
    secret, further = given.get("token", "").strip(), local_path(given.get("next", "/"))
    usable = secret and len(secret) <= MAX_SECRET and secret.isascii() and secret.isprintable() and " " not in secret
    access = await site.sign_in.access(secret) if usable else None
    if access is None:
        return page("login.html", access=None, code=401, problem=UNKNOWN, next=further)
    answer = RedirectResponse(further, 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, secret, path="/", httponly=True, samesite="strict", secure=secure)
    return answer


async def leave(_site: Site, _request: Request) -> Response:
    """Forget the token."""
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
