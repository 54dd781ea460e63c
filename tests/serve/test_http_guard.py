"""Who is let in over HTTP: the guard, asked without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from livememfs.errors import Unreachable, UsageError
from livememfs.records.access import Access
from livememfs.records.token import hash_of
from livememfs.serve.guard import (
    BODY_SECONDS,
    CONNECTION,
    COOKIE,
    HEADERS,
    LARGEST_BODY,
    MOST_AT_ONCE,
    MOST_OF_A_TOKEN,
    MOST_OF_AN_ADDRESS,
    MOST_UNKNOWN,
    SMALL_BODY,
    UNKNOWN_SECONDS,
    Guard,
    GuardStatistics,
    local_path,
)
from livememfs.serve.http import LARGE, ListenAddress, names_of

SECRET = "lm_" + "s" * 43
READER = Access("reader", frozenset({"read"}))
HOST = {"host": "127.0.0.1:8765"}
BEARER = {"authorization": f"Bearer {SECRET}"}


class Registry:
    """Knows one token."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.good = True
        self.others: dict[str, Access] = {}

    async def access(self, secret: str) -> Access | None:
        self.asked.append(secret)
        if self.error is not None:
            raise self.error
        if secret in self.others:
            return self.others[secret]
        return READER if secret == SECRET and self.good else None

    async def access_of(self, digest: str) -> Access | None:
        return READER if digest == hash_of(SECRET) and self.good else None


@dataclass
class Inside:
    """What is served: takes note of what reaches it."""

    scopes: list[Mapping[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    hold: trio.Event | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        self.bodies.append((await receive()).get("body", b""))
        if self.hold is not None:
            await self.hold.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"inside"})


class Door:
    """A guard with what is behind it."""

    def __init__(self, **settings: Any) -> None:
        self.registry, self.inside = Registry(), Inside()
        self.guard = Guard(self.inside, self.registry, large=LARGE, **settings)  # type: ignore[arg-type]  # it only asks

    async def ask(
        self,
        headers: Mapping[str, str] | list[tuple[str, str]],
        *,
        path: str = "/mcp",
        method: str = "POST",
        body: AsyncIterator[bytes] | bytes = b"{}",
        state: dict[str, Any] | None = None,
        client: str = "127.0.0.1",
        version: str = "1.1",
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        sent: list[Mapping[str, Any]] = []
        pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
        raw = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in pairs]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}
        scope["state"] = {} if state is None else state
        scope |= {"client": (client, 1), "http_version": version}

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        await self.guard(scope, _receiving(body), send)  # type: ignore[arg-type]  # a scope is a mutable mapping
        answer = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], answer, b"".join(part.get("body", b"") for part in sent[1:])


def _receiving(body: AsyncIterator[bytes] | bytes) -> Any:
    async def receive() -> dict[str, Any]:
        if isinstance(body, bytes):
            return {"type": "http.request", "body": body, "more_body": False}
        chunk = await anext(body, b"")
        return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}

    return receive


@pytest.fixture
def door() -> Door:
    return Door(open_paths=("/healthz", "/login", "/static/"), always="/healthz", sign_in="/login")


# --- whose it is -----------------------------------------------------------------------------------------------------


async def test_with_a_token_one_is_let_in_and_what_it_allows_is_passed_on(door: Door) -> None:
    status, headers, body = await door.ask({**HOST, **BEARER})

    assert (status, body) == (200, b"inside")
    state = door.inside.scopes[0]["state"]
    assert state["access"] == READER
    assert state["holder"] == hash_of(SECRET)
    assert await state["still"]() == READER
    door.registry.good = False
    assert await state["still"]() is None
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


async def test_callers_at_the_same_moment_are_not_taken_for_each_other(door: Door) -> None:
    """A server may give all requests of a connection, or of all connections, the same state."""
    shared: dict[str, Any] = {}
    door.inside.hold = trio.Event()
    with_it, without = {**HOST, **BEARER}, HOST

    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(door.ask, with_it, path="/login", state=shared))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(partial(door.ask, without, path="/login", state=shared))
        await trio.testing.wait_all_tasks_blocked()
        door.inside.hold.set()
    assert [scope["state"]["access"] for scope in door.inside.scopes] == [READER, None]
    assert shared == {}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer lm_wrong"},
        {"authorization": f"Basic {SECRET}"},
        {"authorization": "Bearer"},
        {"authorization": SECRET},
        {"cookie": f"other={SECRET}"},
        {"cookie": f"{COOKIE}=lm_wrong"},
        {"cookie": "\x01;=;;"},
        {"authorization": "Bearer lm_wrong", "cookie": f"{COOKIE}={SECRET}"},
        {"x-api-key": SECRET},
    ],
)
async def test_without_a_good_token_nothing_is_served(door: Door, headers: dict[str, str]) -> None:
    status, answer, body = await door.ask({**HOST, **headers})

    assert status == 401
    assert answer["www-authenticate"] == "Bearer"
    assert json.loads(body)["error"] == "a valid token is needed"
    assert SECRET not in body.decode()
    assert door.inside.scopes == []


async def test_the_cookie_of_the_live_page_is_as_good_as_the_header(door: Door) -> None:
    assert (await door.ask({**HOST, "cookie": f"theme=dark; {COOKIE}={SECRET}"}))[0] == 200


@pytest.mark.parametrize("other", ['prefs={"theme":"dark"}', "na me=x", "version=2", "Path=/x", "a[b]=1", "=", "x"])
async def test_a_cookie_of_another_application_keeps_nobody_out(door: Door, other: str) -> None:
    """On localhost they all come along, whatever they hold."""
    ours = f"{COOKIE}={SECRET}"
    for cookie in (f"{other}; {ours}", f"{ours};{other}", f"{ours}; {other}; {COOKIE}=lm_wrong"):
        assert (await door.ask({**HOST, "cookie": cookie}))[0] == 200
    for cookie in (f"{other}; {COOKIE}=lm_wrong; {ours}", f"{other}; my_{ours}", f"{other}; {COOKIE}2={SECRET}"):
        assert (await door.ask({**HOST, "cookie": cookie}))[0] == 401


async def test_a_browser_is_sent_to_sign_in_and_comes_back_to_this_server_only(door: Door) -> None:
    page = {**HOST, "accept": "text/html,*/*"}
    status, answer, _ = await door.ask(page, path="/s/alpha/", method="GET")
    assert (status, answer["location"]) == (303, "/login?next=/s/alpha/")
    assert (await door.ask(page, path="//evil.example/", method="GET"))[1]["location"] == "/login?next=/"
    assert (await door.ask(page, path="/s/alpha/", method="POST"))[0] == 401


@pytest.mark.parametrize("path", ["/healthz", "/login", "/static/app.css"])
async def test_what_tells_nothing_is_open_and_knows_nobody(door: Door, path: str) -> None:
    assert (await door.ask(HOST, path=path, method="GET"))[0] == 200
    assert door.inside.scopes[0]["state"]["access"] is None


@pytest.mark.parametrize("path", ["/", "/static", "/loginx", "/login/", "/healthz/../mcp", "/STATIC/x", "//healthz"])
async def test_what_only_looks_open_is_not(door: Door, path: str) -> None:
    assert (await door.ask(HOST, path=path, method="POST"))[0] == 401


async def test_an_open_first_page_opens_nothing_below_it() -> None:
    door = Door(open_paths=("/",))

    assert (await door.ask(HOST, path="/"))[0] == 200
    assert (await door.ask(HOST, path="/mcp"))[0] == 401


async def test_while_nobody_can_look_a_token_up_nobody_comes_in(door: Door) -> None:
    door.registry.error = Unreachable("down")

    status, _, body = await door.ask({**HOST, **BEARER})
    assert status == 503
    assert SECRET not in body.decode()
    assert door.inside.scopes == []


async def test_a_secret_of_any_length_costs_no_more_than_a_long_one(door: Door) -> None:
    await door.ask({**HOST, "authorization": "Bearer " + "x" * 1_000_000})

    assert len(door.registry.asked[0]) == 512


async def test_nothing_but_http_is_served(door: Door) -> None:
    sent: list[Any] = []

    async def never(*message: Any) -> Any:
        sent.append(message)

    await door.guard({"type": "websocket", "path": "/", "headers": []}, never, never)
    assert (sent, door.inside.scopes) == ([], [])


# --- where it comes from ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "localhost@evil", "evil.example#localhost",
     "[::1", "127.0.0.1:8765, evil.example", "2130706433", "0.0.0.0", "localhost.:8765"],
)  # fmt: skip
async def test_a_name_that_was_made_to_point_here_is_not_ours(door: Door, host: str) -> None:
    """DNS rebinding: the browser of a victim sends the attacker's name."""
    assert (await door.ask({"host": host, **BEARER}))[0] == 421
    assert (await door.ask({"host": host}, path="/healthz", method="GET"))[0] == 421
    assert (door.inside.scopes, door.registry.asked) == ([], [])


@pytest.mark.parametrize("headers", [[], [("host", "localhost"), ("host", "evil.example")]])
async def test_without_one_name_nothing_is_served(door: Door, headers: list[tuple[str, str]]) -> None:
    assert (await door.ask([*headers, *BEARER.items()]))[0] == 421


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "LOCALHOST:8765", "[::1]:8765", "memory.example"])
async def test_the_names_of_a_server_are_those_it_was_given(host: str) -> None:
    door = Door(hosts=("127.0.0.1", "localhost", "::1", "Memory.Example"))

    assert (await door.ask({"host": host, **BEARER}))[0] == 200


FOREIGN = (
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://localhost:8765"},
    {"origin": "file://"},
    {"origin": "chrome-extension://127.0.0.1:8765"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
)


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize(("method", "path"), [("POST", "/mcp"), ("GET", "/events"), ("DELETE", "/mcp")])
async def test_pages_of_other_sites_can_neither_post_nor_listen(
    door: Door, headers: dict[str, str], method: str, path: str
) -> None:
    """Even with the cookie, which a page on another port of this machine would get sent."""
    sent = {**HOST, "cookie": f"{COOKIE}={SECRET}", **headers}

    assert (await door.ask(sent, method=method, path=path))[0] == 403
    assert (door.inside.scopes, door.registry.asked) == ([], [])


async def test_our_own_pages_and_programs_can(door: Door) -> None:
    for headers in (
        {"origin": "http://127.0.0.1:8765"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"},
        {},
    ):
        assert (await door.ask({**HOST, **BEARER, **headers}))[0] == 200


async def test_a_link_may_be_followed_from_elsewhere_and_a_form_may_not(door: Door) -> None:
    link = {**HOST, **BEARER, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}

    assert (await door.ask(link, method="GET"))[0] == 200
    assert (await door.ask(link, method="POST"))[0] == 403


# --- how much it is --------------------------------------------------------------------------------------------------


class Megabytes:
    """A body that arrives by the megabyte."""

    def __init__(self, count: int) -> None:
        self.left, self.taken = count, 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.left:
            raise StopAsyncIteration
        self.left, self.taken = self.left - 1, self.taken + 1
        return b"x" * (1 << 20)


async def test_ten_megabytes_are_too_much_however_they_come(door: Door) -> None:
    announced, untold = Megabytes(10), Megabytes(10)
    assert (await door.ask({**HOST, **BEARER, "content-length": str(10 << 20)}, body=announced))[0] == 413
    assert announced.taken == 0
    assert (await door.ask({**HOST, **BEARER}, body=untold))[0] == 413
    assert untold.taken == (LARGEST_BODY >> 20) + 1
    assert (await door.ask({**HOST, **BEARER, "content-length": "-1"}))[0] == 413
    assert door.inside.scopes == []


async def test_a_form_of_a_space_may_be_as_large_as_a_note(door: Door) -> None:
    assert (await door.ask({**HOST, **BEARER}, path="/s/project/notes/", body=b"x" * (2 << 20)))[0] == 200
    assert (await door.ask({**HOST, **BEARER}, path="/s/project/memory/self/a\nb.md", body=b"x" * (2 << 20)))[0] == 200
    assert (await door.ask({**HOST, **BEARER}, path="/search", body=b"x" * (2 << 20)))[0] == 413
    assert (await door.ask(HOST, path="/s/project/notes/", body=b"x" * (2 << 20)))[0] == 401


async def test_who_is_not_let_in_is_not_listened_to(door: Door) -> None:
    body = Megabytes(10)

    assert (await door.ask(HOST, body=body))[0] == 401
    assert body.taken == 0


async def test_a_body_that_fits_arrives_whole(door: Door) -> None:
    assert (await door.ask({**HOST, **BEARER}, body=Megabytes(3)))[0] == 200
    assert door.inside.bodies == [b"x" * (3 << 20)]


@pytest.mark.parametrize("headers", [{}, BEARER])
async def test_a_body_of_exactly_the_most_fits_and_a_byte_more_does_not(door: Door, headers: dict[str, str]) -> None:
    most, path = (4 << 20, "/mcp") if headers else (64 << 10, "/login")
    assert (LARGEST_BODY, SMALL_BODY) == (4_194_304, 65_536)

    assert (await door.ask({**HOST, **headers, "content-length": str(most)}, path=path, body=b"x" * most))[0] == 200
    assert (await door.ask({**HOST, **headers}, path=path, body=b"x" * most))[0] == 200
    for status, answer, body in (
        await door.ask({**HOST, **headers, "content-length": str(most + 1)}, path=path),
        await door.ask({**HOST, **headers}, path=path, body=b"x" * (most + 1)),
    ):
        assert (status, answer["connection"]) == (413, "close")
        assert json.loads(body) == {"error": f"a request here has at most {most // 1024:,} kB"}
    assert door.inside.bodies == [b"x" * most] * 2


@pytest.mark.parametrize(("length", "status"), [("0" * 20, 200), ("0" * 21, 413), ("9" * 5_000, 413), ("\xb2", 413)])
async def test_a_length_is_a_number_that_can_be_read(door: Door, length: str, status: int) -> None:
    assert (await door.ask({**HOST, **BEARER, "content-length": length}))[0] == status


async def test_who_leaves_before_the_end_of_a_request_is_not_served(door: Door) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in {**HOST, **BEARER}.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw, "state": {}}  # and no client
    await door.guard(scope, receive, send)  # type: ignore[arg-type]  # a scope is a mutable mapping

    assert (sent[0]["status"], door.inside.scopes) == (400, [])
    assert (b"connection", b"close") in sent[0]["headers"]


class Endless(Megabytes):
    """A byte a second."""

    async def __anext__(self) -> bytes:
        await trio.sleep(1)
        return b"x"


async def test_a_request_that_never_ends_is_not_waited_for(door: Door, autojump_clock: object) -> None:
    begun = trio.current_time()

    assert (await door.ask({**HOST, **BEARER}, body=Endless(1)))[0] == 408
    assert trio.current_time() - begun <= BODY_SECONDS + 1
    assert door.guard.statistics().under_way == 0


async def test_one_token_may_have_only_a_share_of_what_is_under_way(door: Door) -> None:
    """More are sent away and may come again; another token, and who has none, are served all the while."""
    door.registry.others["lm_other"] = Access("other", frozenset({"read"}))
    door.inside.hold = trio.Event()
    answers: list[int] = []

    async def one() -> None:
        answers.append((await door.ask({**HOST, **BEARER}))[0])

    async with trio.open_nursery() as nursery:
        for _ in range(MOST_OF_A_TOKEN + 7):
            nursery.start_soon(one)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == [429] * 7
        for headers in ({**HOST, "authorization": "Bearer lm_other"}, HOST):
            nursery.start_soon(partial(door.ask, headers, path="/login"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(door.inside.scopes) == MOST_OF_A_TOKEN + 2
        door.inside.hold.set()
    assert sorted(answers) == [200] * MOST_OF_A_TOKEN + [429] * 7
    assert (await door.ask({**HOST, **BEARER}))[0] == 200
    assert door.guard.statistics().under_way == 0


async def test_many_tokens_together_have_a_most_too(door: Door) -> None:
    door.inside.hold = trio.Event()
    answers: list[int] = []

    async def one(number: int) -> None:
        answers.append((await door.ask({**HOST, "authorization": f"Bearer lm_{number}"}))[0])

    async with trio.open_nursery() as nursery:
        for number in range(MOST_AT_ONCE + 3):
            door.registry.others[f"lm_{number}"] = READER
            nursery.start_soon(one, number)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == [503] * 3
        door.inside.hold.set()


async def test_who_has_no_token_takes_no_place_from_who_has_one(door: Door, autojump_clock: object) -> None:
    """256 slow requests to sign in, of one address and of many; each is given up soon."""
    answers: list[int] = []

    async def slow(address: str) -> None:
        answers.append((await door.ask(HOST, path="/login", body=Endless(1), client=address))[0])

    async with trio.open_nursery() as nursery:
        for _ in range(256):
            nursery.start_soon(slow, "192.0.2.1")
        await trio.sleep(0.5)
        assert answers == [429] * (256 - MOST_OF_AN_ADDRESS)
        for number in range(MOST_UNKNOWN):
            nursery.start_soon(slow, f"192.0.2.{number + 2}")
        await trio.sleep(0.5)
        assert answers[256 - MOST_OF_AN_ADDRESS :] == [503] * MOST_OF_AN_ADDRESS
        assert (await door.ask({**HOST, **BEARER}))[0] == 200
        assert (await door.ask(HOST, path="/healthz", method="GET"))[0] == 200
        begun = trio.current_time()
    assert trio.current_time() - begun <= UNKNOWN_SECONDS
    assert answers[256:] == [408] * MOST_UNKNOWN


async def test_the_sign_of_life_asks_nothing_and_waits_for_nothing(door: Door) -> None:
    """Neither for the registry of tokens, which may not answer, nor for a body, nor for a place."""
    door.registry.error = Unreachable("down")

    status, _, body = await door.ask({**HOST, **BEARER}, path="/healthz", method="GET", body=Endless(1))
    assert (status, body) == (200, b"inside")
    assert door.registry.asked == []


async def test_only_where_a_note_may_be_sent_may_much_be_sent(door: Door) -> None:
    """Megabytes go to the tools, and to those of a token alone."""
    much = {"content-length": str(SMALL_BODY + 1)}

    assert (await door.ask({**HOST, **BEARER, **much}, path="/mcp"))[0] == 200
    for path in ("/login", "/s/alpha/consolidation", "/mcp/"):
        assert (await door.ask({**HOST, **BEARER, **much}, path=path))[0] == 413
    assert (await door.ask({**HOST, **much}, path="/login"))[0] == 413


# --- in which form ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"content-length": "2", "transfer-encoding": "chunked"},
        {"upgrade": "h2c", "connection": "upgrade, http2-settings", "http2-settings": "AAMAAABkAAQAAP__"},
        {"upgrade": "H2C"},
    ],
)
async def test_what_could_be_understood_in_two_ways_is_refused(door: Door, headers: dict[str, str]) -> None:
    """A proxy before this server may have taken the rest of it for another request, with another's token."""
    status, answer, _ = await door.ask({**HOST, **BEARER, **headers})

    assert (status, answer["connection"]) == (400, "close")
    assert (door.inside.scopes, door.registry.asked) == ([], [])


async def test_no_other_protocol_is_spoken(door: Door) -> None:
    assert (await door.ask({**HOST, **BEARER}, method="PRI", path="*", version="2.0"))[0] == 400
    assert (await door.ask({**HOST, **BEARER}, version="1.0"))[0] == 200


# --- what is told ----------------------------------------------------------------------------------------------------


class Line:
    """A connection that takes note of what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begun(self) -> None:
        self.told.append("begun")

    def ended(self) -> None:
        self.told.append("ended")

    def belongs_to(self, holder: str) -> None:
        self.told.append(holder)


@pytest.mark.parametrize(
    ("headers", "path", "told"),
    [
        ({**HOST, **BEARER}, "/mcp", ["begun", hash_of(SECRET), "ended"]),
        (HOST, "/login", ["begun", "ended"]),
        (HOST, "/mcp", ["begun", "ended"]),
        ({**HOST, **BEARER}, "/healthz", ["begun", "ended"]),
    ],
)
async def test_a_connection_knows_when_a_request_is_under_way_and_whose_it_is(
    door: Door, headers: dict[str, str], path: str, told: list[str]
) -> None:
    """Else it would be closed in the middle of one, or count for nobody."""
    line = Line()

    await door.ask(headers, path=path, state={CONNECTION: line, "kept": 1})

    assert line.told == told
    if path in ("/mcp", "/login") and door.inside.scopes:
        assert door.inside.scopes[0]["state"]["kept"] == 1


async def test_each_request_is_counted_by_what_became_of_it(door: Door) -> None:
    assert door.guard.statistics() == GuardStatistics(served=0, unknown=0, foreign=0, too_much=0, under_way=0)
    for headers, path in (
        ({**HOST, **BEARER}, "/mcp"),
        (HOST, "/healthz"),
        ({"host": "evil.example"}, "/healthz"),
        ({**HOST, "origin": "null"}, "/mcp"),
        (HOST, "/mcp"),
        ({**HOST, **BEARER, "content-length": "x"}, "/mcp"),
    ):
        await door.ask(headers, path=path)
    assert door.guard.statistics() == GuardStatistics(served=2, unknown=1, foreign=2, too_much=1, under_way=0)

    door.inside.hold = trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(MOST_OF_A_TOKEN + 1):
            nursery.start_soon(door.ask, {**HOST, **BEARER})
        await trio.testing.wait_all_tasks_blocked()
        assert door.guard.statistics() == GuardStatistics(
            served=2 + MOST_OF_A_TOKEN, unknown=1, foreign=2, too_much=2, under_way=MOST_OF_A_TOKEN
        )
        door.inside.hold.set()


@pytest.mark.parametrize(
    ("headers", "status", "advice"),
    [
        (HOST, 401, True),
        ({"host": "evil.example"}, 421, True),
        ({**HOST, "origin": "null"}, 403, False),
    ],
)
async def test_a_refusal_says_why_in_json_and_keeps_the_connection(
    door: Door, headers: dict[str, str], status: int, advice: bool
) -> None:
    got, answer, body = await door.ask(headers)

    assert got == status
    assert ("www-authenticate" in answer, "connection" in answer) == (status == 401, False)
    assert set(json.loads(body)) == ({"error", "what_to_do"} if advice else {"error"})
    assert {name.decode(): value.decode() for name, value in HEADERS}.items() <= answer.items()


@pytest.mark.parametrize(("accept", "sign_in"), [("application/json", "/login"), ("text/html", "")])
async def test_a_program_is_not_sent_to_sign_in_nor_is_anybody_where_nobody_can(accept: str, sign_in: str) -> None:
    assert (await Door(sign_in=sign_in).ask({**HOST, "accept": accept}, path="/s/", method="GET"))[0] == 401


async def test_what_an_answer_says_of_itself_stays_and_the_rest_is_added(door: Door) -> None:
    async def cached(scope: Any, receive: Any, send: Any) -> None:
        assert [await receive(), await receive()] == [
            {"type": "http.request", "body": b"{}", "more_body": False},
            {"type": "http.request", "body": b"{}", "more_body": False},  # what the server gives next
        ]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"Cache-Control", b"max-age=60")]})
        await send({"type": "http.response.body", "body": b""})

    door.guard._app = cached
    _, answer, _ = await door.ask({**HOST, **BEARER})

    assert answer == {**{name.decode(): value.decode() for name, value in HEADERS}, "cache-control": "max-age=60"}


async def test_that_the_server_starts_and_stops_is_passed_on(door: Door) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def never(*_: Any) -> Any:
        raise AssertionError

    door.guard._app = app
    await door.guard({"type": "lifespan"}, never, never)
    assert seen == ["lifespan"]


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"bearer {SECRET}"},
        {"authorization": f"BEARER   {SECRET}  "},
        {"cookie": f'{COOKIE}="{SECRET}"'},
        {"cookie": f"\t{COOKIE}={SECRET} "},
    ],
)
async def test_a_token_is_read_as_programs_write_it(door: Door, headers: dict[str, str]) -> None:
    assert (await door.ask({**HOST, **headers}))[0] == 200


async def test_a_cookie_of_any_length_costs_no_more_than_a_long_one(door: Door) -> None:
    await door.ask({**HOST, "cookie": f"{COOKIE}={'x' * 1_000_000}"})

    assert len(door.registry.asked[0]) == 512


async def test_who_sends_no_token_asks_for_none(door: Door) -> None:
    await door.ask(HOST, path="/login")

    assert (door.registry.asked, door.inside.scopes[0]["state"]["holder"]) == ([], "")


@pytest.mark.parametrize(
    ("path", "target"),
    [("/", "/"), ("/s/alpha/", "/s/alpha/"), ("/a//b", "/a//b"), ("//a", "/"), ("/\\a", "/"), ("a", "/"), ("", "/"),
     ("/a\nb", "/"), ("/é", "/é")],
)  # fmt: skip
def test_a_path_of_this_server_is_kept(path: str, target: str) -> None:
    assert local_path(path) == target


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host", "port", "here_only"),
    [
        ("127.0.0.1:1", "127.0.0.1", 1, True),
        ("9000", "127.0.0.1", 9000, True),
        (":9000", "127.0.0.1", 9000, True),
        ("localhost", "localhost", 8765, True),
        ("[::1]:80", "::1", 80, True),
        ("[::1]", "::1", 8765, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("memory.example:80", "memory.example", 80, False),
    ],
)
def test_where_to_listen_is_read_as_people_write_it(text: str, host: str, port: int, here_only: bool) -> None:
    address = ListenAddress.parse(text)

    assert (address.host, address.port, address.here_only) == (host, port, here_only)


@pytest.mark.parametrize("text", ["", "x:y", "127.0.0.1:70000", "a b:1", "http://x:1", "me@x:1"])
def test_what_is_no_address_is_said(text: str) -> None:
    if text:
        with pytest.raises(UsageError):
            ListenAddress.parse(text)
    else:
        assert ListenAddress.parse(text).here_only


def test_a_server_for_the_world_needs_a_name() -> None:
    with pytest.raises(UsageError, match="--allow-host"):
        names_of(ListenAddress("0.0.0.0", 80), ())
    assert names_of(ListenAddress("0.0.0.0", 80), ("memory.example",)) == ("memory.example",)
    assert "localhost" not in names_of(ListenAddress("192.0.2.1", 80), ())


@given(st.text(max_size=20))
def test_where_one_goes_on_to_is_always_here(path: str) -> None:
    target = local_path(path)

    assert target.startswith("/")
    assert target[1:2] not in ("/", "\\")
