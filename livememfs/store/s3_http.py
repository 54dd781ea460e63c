"""HTTP exchanges with one host, over connections that are kept.

Owns connections, TLS, proxies and time limits. Refuses to know S3, to follow redirects and to repeat a request: what
became of it is for others to find out. Any thread may call it.

The connections are urllib3's, set up as botocore sets up its own. What is said on them is left to the standard library:
urllib3's pool and its wrapping of a reply nearly double the CPU time of an exchange. A connection that the server
closed while it was idle is seen before anything is sent and replaced.
"""

from __future__ import annotations

import http.client
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from urllib.parse import urlsplit

from botocore.httpsession import ProxyConfiguration, create_urllib3_context
from botocore.utils import get_environ_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection, ProxyConfig
from urllib3.util.url import Url, parse_url

_Library = http.client.HTTPConnection


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply; the names of its headers are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes = b""


class HttpConnections:
    """Connections to one origin (`https://host:port`), as many as there are exchanges at once.

    Opening makes no request. Raises ValueError for a proxy that is no URL and OSError for a bundle that is no file.
    `certificates` says where the bundle is and is asked only where TLS is spoken.
    """

    def __init__(
        self, origin: str, *, connect_timeout: float, read_timeout: float, certificates: Callable[[], str]
    ) -> None:
        self._read_timeout = read_timeout
        self._idle: deque[HTTPConnection] = deque()
        self._is_closed = False
        self._route = _route(origin, connect_timeout, certificates)

    def exchange(self, verb: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> HttpReply:
        """Send one request and read the whole reply.

        `target` goes out as it is: nothing normalises it. Raises OSError, http.client.HTTPException and
        urllib3.exceptions.HTTPError; a reply that ends early is among them.
        """
        connection = self._take()
        try:
            reply, is_reusable = _exchanged(
                connection, verb, self._route.prefix + target, {**headers, **self._route.headers}, body
            )
        except BaseException:
            connection.close()
            raise
        if is_reusable:
            self._idle.append(connection)
        else:
            connection.close()
        if self._is_closed:  # looked at after the append: whatever comes in between, one of the two sees the other
            self.close()
        return reply

    def close(self) -> None:
        """Drop the idle connections, and keep none from now on: those in use are closed when they are done."""
        self._is_closed = True
        while (connection := self._kept()) is not None:
            connection.close()

    def _kept(self) -> HTTPConnection | None:
        """The connection used last, so that those a quiet time does not need grow old and are closed by the server."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _take(self) -> HTTPConnection:
        while (connection := self._kept()) is not None:
            if connection.is_connected:
                return connection
            connection.close()
        return self._opened()

    def _opened(self) -> HTTPConnection:
        connection = self._route.connection()
        try:
            connection.connect()
            connection.sock.settimeout(self._read_timeout)
        except BaseException:
            connection.close()
            raise
        return connection


def _exchanged(
    connection: HTTPConnection, verb: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> tuple[HttpReply, bool]:
    """The reply, and whether the connection is good for another exchange."""
    is_whole = True
    try:
        _Library.request(connection, verb, target, body, headers)
    except (BrokenPipeError, ConnectionResetError):
        is_whole = False  # a server that refuses a body may answer and hang up before it has read all of it
    response = _Library.getresponse(connection)
    data = response.read()
    named = {name.lower(): value for name, value in response.headers.items()}
    return HttpReply(response.status, response.reason, named, data), is_whole and not response.will_close


@dataclass(frozen=True, slots=True)
class _Route:
    """How to get to an origin: what makes a connection, and what a forwarding proxy wants of each request."""

    connection: Callable[[], HTTPConnection]
    prefix: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def _route(origin: str, timeout: float, certificates: Callable[[], str]) -> _Route:
    url = urlsplit(origin)
    host, port = url.hostname or "", url.port or {"http": 80, "https": 443}[url.scheme]
    settings = ProxyConfiguration(get_environ_proxies(origin))
    through = settings.proxy_url_for(origin)
    is_secret = url.scheme == "https"
    if not through:
        context = _context(certificates) if is_secret else None
        return _Route(lambda: _connection(host, port, timeout, context))
    proxy, headers = parse_url(through), settings.proxy_headers_for(through)
    context = _context(certificates) if is_secret or proxy.scheme == "https" else None

    def tunnel() -> HTTPConnection:
        connection = _connection(host, port, timeout, context, proxy)
        connection.set_tunnel(host, port, headers, proxy.scheme or "http")
        return connection

    if is_secret:
        return _Route(tunnel)
    return _Route(lambda: _connection(host, port, timeout, context, proxy), origin, headers)


def _connection(
    host: str, port: int, timeout: float, context: SSLContext | None, proxy: Url | None = None
) -> HTTPConnection:
    """A connection that is not open yet: to the proxy where there is one, with TLS where there is a context."""
    config = None
    if proxy is not None:
        host = (proxy.host or "").strip("[]")
        port = proxy.port or (443 if proxy.scheme == "https" else 80)
        config = ProxyConfig(context, use_forwarding_for_https=False, assert_hostname=None, assert_fingerprint=None)
    if context is None:
        return HTTPConnection(host, port, timeout=timeout, proxy=proxy, proxy_config=config)
    return HTTPSConnection(host, port, timeout=timeout, proxy=proxy, proxy_config=config, ssl_context=context)


def _context(certificates: Callable[[], str]) -> SSLContext:
    """One for all connections: reading the bundle takes longer than a request."""
    context: SSLContext = create_urllib3_context()
    context.check_hostname = True  # botocore leaves that to urllib3, whose refusal is no OSError and logs a warning
    context.load_verify_locations(cafile=certificates())
    return context
