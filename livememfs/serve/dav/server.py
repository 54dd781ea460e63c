"""The WebDAV server: WsgiDAV, served by cheroot on loopback, with a guard around both.

Owns the order of checks: the host name, against DNS rebinding; the origin, since no file manager is a page of a site;
the path, which must have only one meaning; the token, as the password of HTTP Basic, by any user name. Owns the address
and the end. Refuses to listen beyond this machine: a password would cross the network as it is. Does not slow down
guesses of tokens: 256 random bits cannot be guessed. `run` and `stop` are for the trio thread; requests come in threads
of cheroot.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
import trio
from cheroot.wsgi import Server
from wsgidav.dav_error import DAVError
from wsgidav.error_printer import ErrorPrinter
from wsgidav.request_resolver import RequestResolver
from wsgidav.wsgidav_app import WsgiDAVApp

from livememfs.errors import LiveMemError, NotSignedIn, UsageError
from livememfs.records.access import Access
from livememfs.records.token import MAX_SECRET
from livememfs.serve.dav.acts import CHUNK, DavActs
from livememfs.serve.dav.bridge import Bridge
from livememfs.serve.dav.resources import ACCESS, TreeProvider
from livememfs.serve.guard import LOOPBACK

if TYPE_CHECKING:
    from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.serve")

THREADS = 16
"""Explorer asks for many things at once."""
END_SECONDS = 5
"""How long the end waits for requests that are under way."""
TEXT = "text/plain; charset=utf-8"
REALM = ("WWW-Authenticate", 'Basic realm="livememfs", charset="UTF-8"')

Enter = Callable[[str], Awaitable[Access | None]]


class DavGuard:
    """Guards the application. `enter` tells what a secret allows; None when it is not valid."""

    def __init__(self, root: Root, enter: Enter, bridge: Bridge) -> None:
        self._enter, self.bridge = enter, bridge
        # Its warnings are for people who run it for itself, and say too much: names of files.
        logging.getLogger("wsgidav").setLevel(logging.CRITICAL)
        self._app = WsgiDAVApp(
            {
                "provider_mapping": {"/": TreeProvider(DavActs(root), bridge)},
                "middleware_stack": [ErrorPrinter, RequestResolver],
                "property_manager": True,
                "hotfixes": {"emulate_win32_lastmod": True},
                "http_authenticator": {"accept_basic": False},
                "block_size": CHUNK,
                "suppress_version_info": True,
                "logging": {"enable": False},
                "verbose": 1,
            }
        )

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """One request."""

        def begin(*arguments: Any) -> Any:
            # Cheroot would read what is left of the body into memory at once, a stranger's as well.
            with suppress(OSError, ValueError):  # it broke off
                while environ["wsgi.input"].read(CHUNK):
                    pass
            return start_response(*arguments)

        try:
            access = self._let_in(environ)
        except NotSignedIn as refused:
            return _turn_away(begin, 401, refused, REALM)
        except LiveMemError as refused:  # the store does not answer
            return _turn_away(begin, 503, refused)
        except DAVError as refused:
            return _turn_away(begin, refused.value, refused.context_info)
        environ[ACCESS] = access
        environ["wsgidav.auth.user_name"] = access.name  # whose locks these are
        answer: Iterable[bytes] = self._app(environ, begin)
        return answer

    def _let_in(self, environ: dict[str, Any]) -> Access:
        """The access of a request. DAVError, NotSignedIn, StoreError."""
        if urlsplit(f"//{environ.get('HTTP_HOST', '')}").hostname not in LOOPBACK:
            raise DAVError(421, "this server does not have that host name")
        if "HTTP_ORIGIN" in environ or environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
            raise DAVError(403, "pages of other sites may not ask this server")
        target = environ.get("HTTP_DESTINATION", "").lower()
        if any(part in address for address in (environ["REQUEST_URI"].lower(), target) for part in ("%2f", "%00")):
            raise DAVError(400, "no name has a slash or a zero in it")
        if ".." in environ["PATH_INFO"].split("/"):
            raise DAVError(400, "no path goes up")
        if any(part in target for part in ("%3f", "?", "%3b", ";")):  # the library would cut the name there
            raise DAVError(422, "nothing can get a name with ? or ; in it over WebDAV")
        kind, _, given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        if kind.lower() != "basic":
            raise NotSignedIn()
        try:
            _, _, secret = base64.b64decode(given, validate=True).decode().partition(":")
        except ValueError:
            raise NotSignedIn() from None
        access = self.bridge.ask(self._enter, secret[:MAX_SECRET])
        if access is None or not access.may("read"):
            raise NotSignedIn()
        return access


def _turn_away(begin: Callable[..., Any], status: int, why: object, *more: tuple[str, str]) -> Iterable[bytes]:
    body = f"{why}\n".encode()
    begin(f"{status} Refused", [("Content-Type", TEXT), ("Content-Length", str(len(body))), *more])
    return [body]


class _Cheroot(Server):  # type: ignore[misc, unused-ignore]  # it is not installed everywhere
    """The HTTP server, with a limit for what a stranger may send. It would write to standard error by itself."""

    max_request_header_size = 1 << 16

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        """Log what it says."""
        log.log(min(level, logging.WARNING), "the HTTP server says", text=msg, exc_info=traceback)


class DavServer:
    """One server at a port of 127.0.0.1; 0 is any free one. `run` serves until `stop`, or until it is cancelled."""

    def __init__(self, guard: DavGuard, port: int) -> None:
        self._server = _Cheroot((LOOPBACK[0], port), guard, THREADS, "livememfs", shutdown_timeout=END_SECONDS)
        self._port = port
        self._stopping = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve; reports its URL once it listens. UsageError if it cannot listen."""
        try:
            await trio.to_thread.run_sync(self._server.prepare)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"the server cannot listen at {LOOPBACK[0]}:{self._port}: {reason}") from None
        host, port = self._server.bind_addr[:2]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.to_thread.run_sync, self._server.serve, limiter=trio.CapacityLimiter(1)))
            try:
                log.info("serving WebDAV", url=f"http://{host}:{port}/")
                task_status.started(f"http://{host}:{port}/")
                await self._stopping.wait()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(self._server.stop)

    def stop(self) -> None:
        """End it: requests that are under way are answered, and no other is accepted."""
        self._stopping.set()
