"""The proxy before a store: what passes is unchanged, what is counted came, what goes wrong is what was asked for."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from proxy import PROGRAM, DelayProxy
from proxy.requests import Requests

from livememfs.errors import Throttled, Unreachable
from livememfs.store.s3 import S3Options, S3Store

BIG = os.urandom(3_000_000)


class Origin(ThreadingHTTPServer):
    """A server that gives back what it was sent, and knows how many connections it had."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self.connections = 0
        self.seen: list[tuple[str, str, bytes]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that break are what the tests are about."""


class Echo(BaseHTTPRequestHandler):
    """Answers with the body of the request; in chunks for a path with `chunked`, with its number for `/b/{status}`."""

    server: Origin
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a reply in two pieces waits for the acknowledgement of the first

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def handle_request(self) -> None:
        body = self._chunks() if "chunked" in self.headers.get("Transfer-Encoding", "") else self._sized()
        self.server.seen.append((self.command, self.path, body))
        name = self.path.rpartition("/")[2]
        self.send_response(int(name) if name.isdigit() else 200)
        if "chunked" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in [*(body[at : at + 1000] for at in range(0, len(body), 1000)), b""]:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        else:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request

    def _sized(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def origin() -> Iterator[Origin]:
    server = Origin()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(origin: Origin) -> Iterator[DelayProxy]:
    with DelayProxy(origin.server_port, keep_log=True) as proxy:
        yield proxy


Connect = Callable[..., http.client.HTTPConnection]


@pytest.fixture
def connect(proxy: DelayProxy) -> Iterator[Connect]:
    """`connect()`: a connection through the proxy."""
    opened: list[http.client.HTTPConnection] = []

    def connect(timeout: float = 10) -> http.client.HTTPConnection:
        opened.append(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=timeout))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **more: Any
) -> tuple[int, bytes]:
    """One request and its reply."""
    connection.request(method, path, body, **more)
    reply = connection.getresponse()
    return reply.status, reply.read()


# --- what passes -----------------------------------------------------------------------------------------------------


def test_many_requests_share_one_connection(origin: Origin, connect: Connect) -> None:
    connection = connect()

    answers = [ask(connection, "PUT", f"/b/key-{number}", f"body {number}".encode()) for number in range(20)]

    assert answers == [(200, f"body {number}".encode()) for number in range(20)]
    assert origin.connections == 1


@pytest.mark.parametrize("path", ["/b/plain", "/b/chunked"])
@pytest.mark.parametrize("chunked", [False, True], ids=["sized", "in chunks"])
def test_a_body_comes_through_as_it_is(path: str, chunked: bool, connect: Connect) -> None:
    """Both ways, also when it is larger than what the proxy keeps, and the connection is usable afterwards."""
    connection = connect()
    pieces = [BIG[at : at + 70_000] for at in range(0, len(BIG), 70_000)]

    for _ in range(2):
        body = iter(pieces) if chunked else BIG
        assert ask(connection, "PUT", path, body, encode_chunked=chunked) == (200, BIG)


def test_a_client_that_waits_for_continue_is_told(proxy: DelayProxy) -> None:
    head = b"PUT /b/key HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"body")

        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_many_connections_at_once(proxy: DelayProxy, connect: Connect) -> None:
    def work(number: int) -> list[tuple[int, bytes]]:
        connection = connect()
        return [ask(connection, "PUT", f"/b/{number}-{turn}", f"{number} {turn}".encode()) for turn in range(10)]

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(work, range(50)))

    assert answers == [[(200, f"{number} {turn}".encode()) for turn in range(10)] for number in range(50)]
    assert proxy.counts() == {"put": 500}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_request_may_arrive_in_any_pieces(size: int) -> None:
    sized = b"PUT /b/k HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello"
    chunks = (
        b"PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\na\r\n0123456789\r\n0\r\nT: v\r\n\r\n"
    )
    bare = b"GET /b?list-type=2&prefix=a HTTP/1.1\r\n\r\n"
    stream = sized + chunks + bare + sized

    requests = Requests()
    parts = [part for at in range(0, len(stream), size) for part in requests.feed(stream[at : at + size])]

    assert b"".join(part.data for part in parts) == stream
    assert [part.head.verb for part in parts if part.head] == ["put", "put", "list", "put"]
    whole = [b""]
    for part in parts:
        whole[-1] += part.data
        whole += [b""] if part.last else []
    assert whole == [sized, chunks, bare, sized, b""]


def test_nonsense_ends_the_connection(proxy: DelayProxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        client.sendall(b"PUT /b/k HTTP/1.1\r\nContent-Length: many\r\n\r\n")

        assert client.recv(100) == b""


# --- what is counted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "target", "headers", "verb"),
    [
        ("GET", "/bucket/a/key?x-id=GetObject", {}, "get"),
        ("HEAD", "/bucket/key", {}, "head"),
        ("PUT", "/bucket/key", {}, "put"),
        ("PUT", "/bucket/key", {"X-Amz-Copy-Source": "/bucket/other"}, "copy"),
        ("DELETE", "/bucket/key", {}, "delete"),
        ("GET", "/bucket?prefix=a%2Fb&list-type=2", {}, "list"),
        ("GET", "/bucket/?list-type=2", {}, "list"),
        ("GET", "/bucket?location", {}, "other"),
        ("GET", "/", {}, "other"),
        ("POST", "/bucket?delete", {}, "other"),
    ],
)
def test_every_request_is_counted_by_what_it_is(
    method: str, target: str, headers: dict[str, str], verb: str, proxy: DelayProxy, connect: Connect
) -> None:
    ask(connect(), method, target, headers=headers)

    assert proxy.counts() == {verb: 1}
    assert proxy.log() == [(verb, target)]


def test_bytes_are_counted_in_both_directions(proxy: DelayProxy, connect: Connect) -> None:
    """Headers are part of them; a reset leaves them."""
    body = b"x" * 50_000
    connection = connect()
    connection.request("PUT", "/b/k", body)
    assert connection.getresponse().read() == body
    proxy.reset()

    traffic = proxy.traffic()

    assert all(len(body) < traffic[way] < len(body) + 1_000 for way in ("sent", "received"))


def test_a_reset_starts_from_nothing_and_says_what_was(proxy: DelayProxy, connect: Connect) -> None:
    connection = connect()
    ask(connection, "GET", "/b/one")

    assert proxy.reset() == {"get": 1}
    assert proxy.counts() == {}
    assert proxy.log() == []
    proxy.keep_log = False
    ask(connection, "HEAD", "/b/two")
    proxy.wait_for_requests(1, "head")
    assert proxy.counts() == {"head": 1}
    assert proxy.log() == []


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_each_request_takes_at_least_the_latency(proxy: DelayProxy, connect: Connect) -> None:
    proxy.latency = 0.02
    connection = connect()

    started = time.monotonic()
    answers = [ask(connection, "PUT", "/b/key", b"body") for _ in range(3)]

    assert time.monotonic() - started >= 3 * 0.02
    assert answers == [(200, b"body")] * 3


def test_in_a_blackhole_nothing_happens_until_it_ends(origin: Origin, proxy: DelayProxy, connect: Connect) -> None:
    """For a connection that was there before as well as for a new one."""
    connections = [connect(), connect()]
    ask(connections[0], "GET", "/b/key")
    proxy.reset()
    proxy.blackhole = True
    for connection in connections:
        connection.request("PUT", "/b/key", b"body")
    proxy.wait_for_requests(2, "put")

    assert [command for command, _, _ in origin.seen] == ["GET"]
    proxy.blackhole = False
    assert [connection.getresponse().read() for connection in connections] == [b"body", b"body"]


def test_what_was_given_up_in_a_blackhole_never_happens(origin: Origin, proxy: DelayProxy, connect: Connect) -> None:
    proxy.blackhole = True
    connection = connect()
    connection.request("PUT", "/b/given-up", b"body")
    proxy.wait_for_requests(1)
    connection.close()
    proxy.blackhole = True  # answered by the loop, after it has seen the end of the connection

    proxy.blackhole = False

    assert ask(connect(), "PUT", "/b/key", b"body") == (200, b"body")
    assert [path for _, path, _ in origin.seen] == ["/b/key"]


def test_a_proxy_that_refuses_lets_nobody_in_and_takes_its_port_up_again(proxy: DelayProxy, connect: Connect) -> None:
    before = connect()
    ask(before, "GET", "/b/key")
    proxy.refusing = True

    with pytest.raises(ConnectionRefusedError):
        ask(connect(), "GET", "/b/key")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        ask(before, "GET", "/b/key")

    proxy.refusing = False
    assert ask(connect(), "GET", "/b/key") == (200, b"")


def test_a_lost_reply_is_lost_after_the_effect(origin: Origin, proxy: DelayProxy, connect: Connect) -> None:
    """Reads keep theirs, and so do writes that the server refused: there was no effect."""
    proxy.lose_replies(2)

    assert ask(connect(), "GET", "/b/key") == (200, b"")
    assert ask(connect(), "PUT", "/b/412", b"refused") == (412, b"refused")
    for method in ("PUT", "DELETE"):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
            ask(connect(), method, "/b/key", b"body")
    assert ask(connect(), "PUT", "/b/key", b"again") == (200, b"again")
    assert [body for _, _, body in origin.seen] == [b"", b"refused", b"body", b"body", b"again"]


def test_a_lost_reply_is_the_last_one_not_the_leave_to_continue(origin: Origin, proxy: DelayProxy) -> None:
    proxy.lose_replies(1)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        client.sendall(b"PUT /b/key HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"body")

        assert client.recv(100) == b""
    assert origin.seen == [("PUT", "/b/key", b"body")]


@pytest.mark.parametrize(("when", "happened"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("body", [b"small", BIG], ids=["small", "big"])
def test_slow_down_comes_before_or_after_the_effect(
    when: Any, happened: int, body: bytes, origin: Origin, proxy: DelayProxy, connect: Connect
) -> None:
    proxy.slow_down(1.0, when=when)

    status, reply = ask(connect(), "PUT", "/b/key", body)

    assert status == 503
    assert b"<Code>SlowDown</Code>" in reply
    assert [sent for _, _, sent in origin.seen] == [body] * happened
    proxy.slow_down(0)
    assert ask(connect(), "PUT", "/b/key", b"again") == (200, b"again")


def test_slow_down_keeps_the_connection_unless_the_body_is_still_to_come(proxy: DelayProxy, connect: Connect) -> None:
    proxy.slow_down(1.0)
    connection = connect()
    assert [ask(connection, "PUT", "/b/key", b"body")[0] for _ in range(3)] == [503] * 3

    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        client.sendall(b"PUT /b/key HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        with client.makefile("rb") as reply:
            assert reply.read().startswith(b"HTTP/1.1 503 ")


def test_the_seed_decides_which_requests_are_slowed_down(proxy: DelayProxy, connect: Connect) -> None:
    def statuses(seed: int) -> list[int]:
        proxy.slow_down(0.5, seed=seed)
        connection = connect()
        return [ask(connection, "GET", "/b/key")[0] for _ in range(40)]

    assert statuses(1) == statuses(1)
    assert statuses(1) != statuses(2)
    assert set(statuses(1)) == {200, 503}


async def test_a_store_sees_what_it_would_see_of_a_real_server(
    s3_options: Callable[..., S3Options], moto_url: str
) -> None:
    with DelayProxy(int(moto_url.rpartition(":")[2])) as proxy:
        store = S3Store(s3_options(endpoint_url=f"http://127.0.0.1:{proxy.port}"))
        await store.put("key", b"data")
        await store.list_page()
        assert (await store.get("key")).data == b"data"
        assert proxy.counts() == {"put": 1, "list": 1, "get": 1}

        proxy.lose_replies(1)
        with pytest.raises(Unreachable):
            await store.put("lost", b"data")
        assert (await store.get("lost")).data == b"data"
        proxy.slow_down(1.0)
        with pytest.raises(Throttled):
            await store.put("never", b"data")
        await store.aclose()


# --- as a process ----------------------------------------------------------------------------------------------------


def test_a_proxy_of_its_own_takes_orders(origin: Origin) -> None:
    command = [*PROGRAM, "--target", f"127.0.0.1:{origin.server_port}"]
    with subprocess.Popen([*command, "--control", "--log"], stdout=subprocess.PIPE) as process:
        assert process.stdout
        try:
            ports = json.loads(process.stdout.readline())

            def order(method: str, what: str) -> Any:
                request = urllib.request.Request(f"http://127.0.0.1:{ports['control']}{what}", method=method)
                with urllib.request.urlopen(request, timeout=10) as reply:
                    return json.load(reply)

            def put() -> int:
                connection = http.client.HTTPConnection("127.0.0.1", ports["port"], timeout=10)
                try:
                    return ask(connection, "PUT", "/b/key", b"body")[0]
                finally:
                    connection.close()

            assert put() == 200
            assert order("GET", "/counts") == {"put": 1}
            assert order("GET", "/log") == [["put", "/b/key"]]
            assert order("POST", "/reset") == {"put": 1}
            assert order("GET", "/counts") == {}
            order("POST", "/latency?seconds=0.02")
            started = time.monotonic()
            assert put() == 200
            assert time.monotonic() - started >= 0.02
            order("POST", "/slowdown?fraction=1&when=after")
            assert put() == 503
            order("POST", "/slowdown?fraction=0")
            order("POST", "/lose?writes=1")
            with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
                put()
            order("POST", "/refuse?on=1")
            with pytest.raises(ConnectionRefusedError):
                put()
            order("POST", "/refuse?on=0")
            order("POST", "/blackhole?on=1")
            order("POST", "/blackhole?on=0")
            assert put() == 200
            for wrong in ("/latency?seconds=soon", "/blackhole?on=yes", "/slowdown?fraction=1&when=never", "/nothing"):
                with pytest.raises(urllib.error.HTTPError, match=r"40[04]") as refused:
                    order("POST", wrong)
                refused.value.close()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
