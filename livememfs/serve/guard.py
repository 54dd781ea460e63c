"""The guard of the HTTP server: it surrounds all routes, so that none needs a check of its own, and none can forget it.

Owns the order of checks: the form of the request, which must have only one meaning; its `Host`, against DNS rebinding;
its origin (`Origin`, `Sec-Fetch-Site`), against pages of other sites; its token (`Authorization: Bearer` or a cookie);
the number of requests at once, per token or without one; its size. Puts the caller's access into the request's state as
`access`, and a function that asks again as `still`. Does not slow down guesses of tokens: 256 random bits cannot be
guessed. Refuses to log, to show or to pass on a token. Trio thread only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import structlog
import trio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse, Response

from livememfs.errors import LiveMemError, NotSignedIn
from livememfs.records.access import Access
from livememfs.records.token import MAX_SECRET, hash_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from livememfs.serve.connections import Connection
    from livememfs.spaces.tokens import Tokens

log = structlog.get_logger("livememfs.serve")

COOKIE = "livememfs_token"
CONNECTION = "connection"
"""The key of the connection in a request's state."""
LARGEST_BODY, SMALL_BODY = 4 << 20, 64 << 10
"""Most bytes of a request: at the path for large ones, and elsewhere."""
MOST_AT_ONCE, MOST_OF_A_TOKEN = 1_024, 256
"""Most requests at once, streams included: of all tokens, and of one. More are refused, and may come again."""
MOST_UNKNOWN, MOST_OF_AN_ADDRESS = 64, 32
"""The same without a token: of all addresses, and of one. Counted apart, so that they cannot block others."""
BODY_SECONDS, UNKNOWN_SECONDS = 30.0, 5.0
"""Most seconds for a request to arrive, with a token and without."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


@dataclass(frozen=True)
class GuardStatistics:
    """Requests served; refused by token, by host or origin, and by size or number; running now."""

    served: int
    unknown: int
    foreign: int
    too_much: int
    under_way: int


class _Refused(Exception):
    """The guard refuses a request."""

    def __init__(self, status: int, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.advice = status, reason, advice


class Guard:
    """Guards `app`. `hosts` are the names of this server; `open_paths` need no token, a final `/` means all below.

    `always` is the path that answers without limits of number, `large` a pattern of the paths for large requests.
    Browsers without a token are redirected to `sign_in`; empty: they are not.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        *,
        hosts: Iterable[str] = LOOPBACK,
        open_paths: Sequence[str] = (),
        always: str = "",
        large: str = "",
        sign_in: str = "",
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        self._open = tuple(open_paths)
        self._always, self._large, self._sign_in = always, re.compile(large, re.DOTALL), sign_in
        self._served = self._unknown = self._foreign = self._too_much = 0
        self._under_way: Counter[tuple[bool, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. Nothing but HTTP is served."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # without an answer a websocket is refused
        connection: Connection | None = scope.get("state", {}).get(CONNECTION)
        if connection is not None:
            connection.begun()
        try:
            await self._let_in(scope, receive, with_headers(send, HEADERS))
        except _Refused as refused:
            await self._answer(scope, refused)(scope, receive, with_headers(send, HEADERS))
        finally:
            if connection is not None:
                connection.ended()

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        _check_form(scope, headers)
        self._check_host(headers)
        self._check_origin(scope, headers)
        if scope["path"] == self._always:
            self._served += 1
            await self._app({**scope, "state": {"access": None, "holder": ""}}, receive, send)
            return
        state = await self._check_token(scope, headers)
        if state["holder"] and CONNECTION in scope.get("state", {}):
            scope["state"][CONNECTION].belongs_to(state["holder"])
        # A copy: one connection gives all its requests the same state.
        scope = {**scope, "state": {**scope.get("state", {}), **state}}
        with self._place(state["holder"], (scope.get("client") or ("",))[0]):
            body = await self._whole(scope, headers, receive, known=bool(state["holder"]))
            self._served += 1
            await self._app(scope, again({"type": "http.request", "body": body, "more_body": False}, receive), send)

    @contextmanager
    def _place(self, holder: str, address: str) -> Iterator[None]:
        """Count a request of a token, or without one of its address. _Refused if there are too many."""
        whose = (bool(holder), holder or address)
        most, own = (MOST_AT_ONCE, MOST_OF_A_TOKEN) if holder else (MOST_UNKNOWN, MOST_OF_AN_ADDRESS)
        full = self._under_way[whose] >= own
        if full or sum(count for (known, _), count in self._under_way.items() if known == bool(holder)) >= most:
            self._too_much += 1
            what = "of yours" if full else "at once"
            raise _Refused(429 if full else 503, f"there are too many requests {what}", "try again in a moment")
        self._under_way[whose] += 1
        try:
            yield
        finally:
            self._under_way[whose] -= 1
            if not self._under_way[whose]:
                del self._under_way[whose]

    # --- host and origin --------------------------------------------------------------------------------------

    def _check_host(self, headers: Headers) -> None:
        """Refuse other host names: a page of another site, whose name points here, would send that name."""
        given = headers.getlist("host")
        if len(given) != 1 or _name(given[0]) not in self._hosts:
            self._foreign += 1
            raise _Refused(421, "this server does not have that host name", "livememfs web --allow-host NAME adds one")

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests of pages of other sites; a link from there may be followed."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None:
            parts = urlsplit(origin)
            foreign = parts.netloc.lower() != headers["host"].lower() or parts.scheme not in ("http", "https")
        else:
            follows_link = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in ("GET", "HEAD")
            foreign = site not in ("none", "same-origin") and not follows_link
        if foreign:
            self._foreign += 1
            raise _Refused(403, "pages of other sites may not use this server")

    # --- the token --------------------------------------------------------------------------------------------

    async def _check_token(self, scope: Scope, headers: Headers) -> dict[str, Any]:
        """The state for the caller. _Refused without a good token where one is needed."""
        secret = _secret(headers)
        access = None
        if secret:
            try:
                access = await self._tokens.access(secret)
            except LiveMemError as error:
                log.info("tokens cannot be looked up", reason=str(error))
                raise _Refused(503, "the store does not answer, so tokens cannot be checked", error.advice()) from None
        if access is None and not self._is_open(scope["path"]):
            self._unknown += 1
            missing = NotSignedIn()
            raise _Refused(401, str(missing), missing.advice())
        holder = hash_of(secret) if access is not None else ""
        return {"access": access, "holder": holder, "still": self._still(holder)}

    def _still(self, digest: str) -> Callable[[], Awaitable[Access | None]]:
        """A function by which a long request asks again for the caller's access."""

        async def still() -> Access | None:
            try:
                return await self._tokens.access_of(digest)
            except LiveMemError:
                return None

        return still

    def _is_open(self, path: str) -> bool:
        return any(path.startswith(top) if top.endswith("/") and top != "/" else path == top for top in self._open)

    # --- the size ---------------------------------------------------------------------------------------------

    async def _whole(self, scope: Scope, headers: Headers, receive: Receive, *, known: bool) -> bytes:
        """The body, within the limits of size and time."""
        most = LARGEST_BODY if known and self._large.fullmatch(scope["path"]) else SMALL_BODY
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 20 or int(length) > most:
            raise self._too_large(most)
        body = bytearray()
        with trio.move_on_after(BODY_SECONDS if known else UNKNOWN_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Refused(400, "the request has no end")
                body += message.get("body", b"")
                if len(body) > most:
                    raise self._too_large(most)
                if not message.get("more_body", False):
                    return bytes(body)
        raise _Refused(408, "the request took too long to arrive")

    def _too_large(self, most: int) -> _Refused:
        self._too_much += 1
        return _Refused(413, f"a request here has at most {most >> 10:,} kB")

    # --- answering --------------------------------------------------------------------------------------------

    def _answer(self, scope: Scope, refused: _Refused) -> Response:
        headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
        if refused.status in (400, 408, 413):  # the unread rest of the request would be taken for the next one
            headers["Connection"] = "close"
        accepts = Headers(scope=scope).get("accept", "")
        if refused.status == 401 and self._sign_in and scope["method"] == "GET" and "text/html" in accepts:
            return RedirectResponse(f"{self._sign_in}?next={quote(local_path(scope['path']))}", 303)
        body = {"error": refused.reason} | ({"what_to_do": refused.advice} if refused.advice else {})
        return JSONResponse(body, refused.status, headers)

    def statistics(self) -> GuardStatistics:
        """Counters, cheap."""
        return GuardStatistics(self._served, self._unknown, self._foreign, self._too_much, self._under_way.total())


def _check_form(scope: Scope, headers: Headers) -> None:
    """Refuse requests that a proxy could have read differently, and other protocols. _Refused."""
    if scope.get("http_version", "1.1") not in ("1.0", "1.1") or "h2c" in headers.get("upgrade", "").lower():
        raise _Refused(400, "this server speaks HTTP/1.1")
    if "transfer-encoding" in headers and "content-length" in headers:
        raise _Refused(400, "a request must have only one length")


def local_path(path: str) -> str:
    """A path on this server to redirect to; `/` for one that a browser could take for another server."""
    return path if path.startswith("/") and path[1:2] not in ("/", "\\") and path.isprintable() else "/"


def _name(host: str) -> str:
    """The name in a `Host` header, without its port; empty for an invalid one."""
    match = _HOST.fullmatch(host)
    return match[1].strip("[]").lower() if match else ""


def _secret(headers: Headers) -> str:
    """The token of a request. A header wins over the cookie, even with an invalid token."""
    given = headers.get("authorization")
    if given is not None:
        kind, _, secret = given.partition(" ")
        return secret.strip()[:MAX_SECRET] if kind.lower() == "bearer" else ""
    return _cookie(";".join(headers.getlist("cookie")))[:MAX_SECRET]


def _cookie(header: str) -> str:
    """The value of our first cookie; empty without one.

    `http.cookies` stops at the first invalid cookie, and on localhost the cookies of all applications arrive.
    """
    pairs = (pair.strip(" \t").partition("=") for pair in header.split(";"))
    return next((value.strip(' \t"') for name, _, value in pairs if name == COOKIE), "")


def again(message: Message, receive: Receive) -> Receive:
    """The messages of a request, of which the first was read already."""
    waiting = [message]

    async def messages() -> Message:
        return waiting.pop() if waiting else await receive()

    return messages


def with_headers(send: Send, defaults: Sequence[tuple[bytes, bytes]]) -> Send:
    """Adds the headers that an answer does not set itself."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            known = {name.lower() for name, _ in headers}
            added = [header for header in defaults if header[0] not in known]
            message = {**message, "headers": [*headers, *added]}
        await send(message)

    return sending
