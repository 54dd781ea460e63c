"""Who takes all that there is of a server takes it from nobody else: on real sockets, several tokens and none."""

from __future__ import annotations

import json
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
import trio
import trio.testing
from clients import ACCEPT, HELLO, PATIENCE, Site, ask, opened_session, serving, until
from hypercorn.config import Config

from livememfs.app import App
from livememfs.serve import sessions
from livememfs.serve.connections import ClientConnections, Connection, _Tasks
from livememfs.serve.guard import MOST_OF_AN_ADDRESS
from livememfs.serve.web import stream

SLOW = "POST /login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\ntoken="


class Crowded(Site):
    """A server with its pages, and two tokens: one greedy, one of somebody else."""

    greedy = other = ""

    async def serves_others(self) -> None:
        """Another token is served as ever, and so is who asks whether the server works."""
        async with self.browser(self.other) as browser:
            assert (await browser.get("/")).status_code == 200
            assert (await browser.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 200
        async with self.browser() as browser:
            assert (await browser.get("/healthz")).status_code == 200

    async def answer_to(self, text: str) -> bytes:
        """What is answered to something that no library would send."""
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            await stream.send_all(text.encode())
            received = b""
            with trio.fail_after(PATIENCE), suppress(trio.BrokenResourceError):  # it may be hung up on
                while part := await stream.receive_some(4_096):
                    received += part
            return received


@pytest.fixture
async def site(app: App, nursery: trio.Nursery) -> AsyncIterator[Crowded]:
    """Serving `app`."""
    async with serving(app, nursery) as served:
        site = Crowded(app, served.server)
        site.greedy, site.other = [await site.token(name, "read") for name in ("greedy", "other")]
        yield site


async def test_slow_requests_to_sign_in_keep_nobody_out(site: Crowded) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(256):
            connection = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", site.port))
            await connection.send_all(SLOW.encode())
        await until(lambda: site.server.statistics().too_much >= 256 - MOST_OF_AN_ADDRESS)

        await site.serves_others()


async def test_connections_that_say_nothing_are_ended_when_there_are_too_many(
    app: App, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was silent longest, never one that has shown a good token."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (80, 80))
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(app, nursery))
        site = Crowded(app, served.server)
        site.other = await site.token("other", "read")
        browser = await stack.enter_async_context(site.browser(site.other))
        assert (await browser.get("/")).status_code == 200
        silent = [
            await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", site.port)) for _ in range(100)
        ]
        with trio.fail_after(PATIENCE):
            assert await silent[0].receive_some() == b""
        assert (await browser.get("/")).status_code == 200
        assert len(browser._transport._pool.connections) == 1  # type: ignore[attr-defined]  # the same as before
        await site.serves_others()


async def test_one_token_cannot_take_all_streams(site: Crowded) -> None:
    async with AsyncExitStack() as stack, site.browser(site.greedy) as browser:
        for _ in range(stream.STREAMS_OF_A_TOKEN):
            answer = await stack.enter_async_context(browser.stream("GET", "/events"))
            assert answer.status_code == 200
        assert (await browser.get("/events")).status_code == 503
        async with site.browser(site.other) as another, another.stream("GET", "/events") as answer:
            assert answer.status_code == 200
        await site.serves_others()


async def test_one_token_cannot_take_all_sessions(site: Crowded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens more than its share loses the one it used longest ago, and nobody else loses one."""
    monkeypatch.setattr(sessions, "MOST_OF_A_TOKEN", 5)
    ping = ask("ping")
    async with site.browser(site.greedy) as greedy, site.browser(site.other) as other:
        theirs = await opened_session(other)
        own = [await opened_session(greedy) for _ in range(12)]
        statuses = [(await greedy.post("/mcp", json=ping, headers=session)).status_code for session in own]
        assert statuses == [404] * 7 + [200] * 5
        assert (await other.post("/mcp", json=ping, headers=theirs)).status_code == 200
    await site.serves_others()


async def test_when_there_is_no_room_who_has_most_sessions_makes_some(
    site: Crowded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 4)
    async with site.browser(site.greedy) as greedy, site.browser(site.other) as other:
        for _ in range(4):
            assert (await greedy.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 200
        for _ in range(2):
            assert (await other.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 200


# --- what is no request ----------------------------------------------------------------------------------------------

HEAD = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + "content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        HEAD + "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        HEAD + "content-length: +5\r\n\r\nhello",
        "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n"
        "http2-settings: AAMAAABkAAQAAP__\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_could_be_taken_for_another_request_is_refused(site: Crowded, text: str) -> None:
    """And the connection ends with it: what comes after has a meaning for nobody."""
    answer = await site.answer_to(text)

    assert not answer or int(answer.split(b" ", 2)[1]) in (400, 501)
    assert answer.count(b"HTTP/1.1 ") <= 1


@pytest.mark.parametrize("body", ["[" * 50_000, json.dumps([{"a": 1}] * 10_000), '{"a":' * 100 + "1" + "}" * 100])
async def test_json_that_costs_much_to_read_is_not_read(site: Crowded, body: str) -> None:
    async with site.browser(site.other) as browser:
        answer = await browser.post("/mcp", content=body, headers={**ACCEPT, "content-type": "application/json"})

    assert answer.status_code == 400
    assert "too many parts" in answer.json()["error"]


async def test_an_answer_that_waits_for_no_body_leaves_no_connection_behind(site: Crowded) -> None:
    """Two megabytes to a door that is closed: refused, and forgotten."""
    async with await trio.open_tcp_stream("127.0.0.1", site.port) as connection:
        await connection.send_all(b"POST /login HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9000000\r\n\r\n")
        with trio.fail_after(PATIENCE):
            try:
                while True:
                    await connection.send_all(b"x" * 65_536)
            except trio.BrokenResourceError:
                pass
        await until(lambda: not len(site.server._connections))


# --- whom to hang up on ----------------------------------------------------------------------------------------------


class FakeSocket:
    """One end of a connection."""

    def __init__(self, address: str) -> None:
        self.address, self.closed = address, False
        self.socket = self

    def getpeername(self) -> tuple[str, int]:
        """The other end."""
        return self.address, 1

    def close(self) -> None:
        """Hung up on."""
        self.closed = True


def connected(all_: ClientConnections, holder: str = "", *, busy: bool = False) -> FakeSocket:
    """A new connection, of a token if there is one."""
    end = FakeSocket("192.0.2.1")
    connection = Connection(end, all_)  # type: ignore[arg-type]  # it is only asked for its address
    all_._open[connection] = None
    all_.make_room(connection)
    if holder:
        connection.belongs_to(holder)
    if busy:
        connection.begun()
    return end


def test_who_has_most_makes_room_and_who_comes_has_it() -> None:
    """Silent ones go first, then idle ones of the greediest; whoever has just come stays."""
    all_ = ClientConnections(None)
    all_.most = 6
    silent = connected(all_)
    greedy = [connected(all_, "greedy", busy=number == 0) for number in range(3)]
    other = [connected(all_, "other") for _ in range(2)]
    assert len(all_) == 6

    third = connected(all_, "third")
    assert (silent.closed, third.closed) == (True, False)
    fourth = connected(all_, "fourth")
    assert [end.closed for end in greedy] == [False, True, False]
    assert not any(end.closed for end in (*other, third, fourth))
    own = [connected(all_, "fourth") for _ in range(3)]
    assert fourth.closed
    assert not own[-1].closed


async def test_an_answer_that_comes_before_the_end_of_a_body_ends_the_wait_for_the_rest() -> None:
    """Else whoever sends more than is kept for the application would hang, and its connection with it."""
    answered = trio.Event()

    async def app(*_: Any) -> None:
        await answered.wait()

    async def send(_: Any) -> None:
        """What is answered is not looked at."""

    with trio.fail_after(PATIENCE):
        async with _Tasks() as tasks, trio.open_nursery() as nursery:
            tell = await tasks.spawn_app(app, Config(), {}, send)
            for _ in range(20):
                nursery.start_soon(tell, {"type": "http.request", "body": b"x", "more_body": True})
            await trio.testing.wait_all_tasks_blocked()
            answered.set()
