"""`/events`: what is told, in which order, to whom, from where on, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from contexts import context_of
from trio.testing import MockClock as Clock
from web_site import ALPHA, BETA, NOTE, OF_ALPHA, Browser, Doors, note

from livememfs.cache.names import Nobody
from livememfs.cache.replica import Replica
from livememfs.errors import Unreachable
from livememfs.records import keys
from livememfs.records.access import EVERYTHING, Access
from livememfs.runs.queue import RunQueue
from livememfs.serve.web import Site
from livememfs.serve.web import stream as streams
from livememfs.serve.web.events import KEPT, Events
from livememfs.serve.web.stream import HEARTBEAT, SEND_SECONDS, EventStream
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore
from livememfs.tree.root import Root

OpenPage = Callable[..., Awaitable["Reader"]]


@pytest.fixture
def site(nursery: trio.Nursery) -> Site:
    """A page of a bucket in memory."""
    clock = ManualClock()
    replica = Replica(FaultyStore(MemoryStore()))
    nursery.start_soon(replica.run)
    context = context_of(replica, clock, RunQueue(replica, clock, None, nursery=nursery))
    return Site(Root(context), Doors())


@dataclass
class Reader:
    """One open page. `stuck`: takes nothing any more."""

    site: Site
    access: Access = EVERYTHING
    stuck: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    beats: int = 0
    ended: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    news: trio.Event = field(default_factory=trio.Event)
    gone: trio.Event = field(default_factory=trio.Event)

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self.wake()
            return
        if self.stuck:
            await trio.sleep_forever()
        for block in message["body"].decode().split("\n\n"):
            self._heard(block)
        self.wake()

    def wake(self) -> None:
        self.news.set()
        self.news = trio.Event()

    def _heard(self, block: str) -> None:
        if block.startswith(":"):
            self.beats += 1
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith((":", "retry")) and line)
        if lines:
            self.events.append({"id": lines["id"], "event": lines["event"], **json.loads(lines["data"])})

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind."""
        return [event for event in self.events if event["event"] == kind]

    def names(self) -> list[str]:
        return [event["name"] for event in self.of("note")]

    async def until(self, condition: Callable[[], bool]) -> None:
        with trio.fail_after(60):
            while not condition():
                await self.news.wait()


@pytest.fixture
def open_page(site: Site, nursery: trio.Nursery) -> OpenPage:
    """`open_page(after="")`: a page that listens until the test ends."""

    async def start(
        access: Access = EVERYTHING, *, after: str = "", space: str = "", still: Any = None, **more: Any
    ) -> Reader:
        reader = Reader(site, access, **more)

        async def as_before() -> Access | None:
            return access

        stream = EventStream(site.events, access, still or as_before, place=after, space=space)

        async def run() -> None:
            await stream({"type": "http"}, reader.receive, reader.send)
            reader.ended = True
            reader.wake()

        nursery.start_soon(run)
        await reader.until(lambda: bool(reader.headers))
        return reader

    return start


def write(site: Site, name: str = NOTE, space: str = ALPHA, text: str = "") -> None:
    """`echo > live/x`, as far as the stream of changes sees it."""
    site.context.replica.save(keys.live_key(space, name), note(text or name).encode(), meta={}, base=None)


def named(number: int) -> str:
    return f"20260102T{number:06}_me_todo_0000000{number % 10}.md"


# --- what is told -------------------------------------------------------------------------------------------------


async def test_a_note_is_told_at_once(site: Site, open_page: OpenPage, autojump_clock: Clock) -> None:
    reader = await open_page()
    write(site)
    began = trio.current_time()
    await reader.until(lambda: NOTE in reader.names())

    assert trio.current_time() - began < 0.01
    [event] = reader.of("note")
    assert (event["space"], event["kind"]) == (ALPHA, "put")
    assert reader.headers["content-type"].startswith("text/event-stream")


async def test_bank_files_runs_and_the_queue_are_told_and_nothing_private(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    reader = await open_page()
    site.context.replica.save(keys.bank_key(ALPHA, "deep/a.md"), b"the secret text", meta={}, base=None)
    site.context.consolidations.touch(ALPHA)
    await reader.until(lambda: any(event["state"] == "error" for event in reader.of("run")))
    store = site.context.replica.store
    assert isinstance(store, FaultyStore)
    store.blackhole = True
    write(site)
    await reader.until(lambda: [event["pending"] for event in reader.of("status")][-1:] == [1])
    store.blackhole = False
    await reader.until(lambda: [event["pending"] for event in reader.of("status")][-1:] == [0])

    assert [event["name"] for event in reader.of("bank")] == ["deep/a.md"]
    assert "secret" not in json.dumps(reader.events)


async def test_what_a_watcher_of_agents_wants_is_told_by_its_kind_and_its_key(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    reader, elsewhere = await open_page(), await open_page(OF_ALPHA)
    told = {
        "observation": "observations/20260102T030405_bugfix_0badcafe.md",
        "memory": "goals/20260102T030405_goal_0badcafe.md",
        "session": "sessions/s-1/session.json",
        "summary": "sessions/s-1/summary.md",
        "space": "_rules.md",
    }
    for space in (ALPHA, BETA):
        for key in (*told.values(), "memories/.history/x/y.md", "plain.txt", "_ledger/00000001.json"):
            site.context.replica.save(f"{space}/{key}", b"the secret text", meta={}, base=None)
    site.context.errors.conflict(f"{ALPHA}/f", f"{ALPHA}/f.conflict-x", "changed by another host meanwhile")
    site.context.errors.conflict(f"{BETA}/f", f"{BETA}/f.conflict-x", "changed by another host meanwhile")
    await reader.until(lambda: len(reader.of("conflict")) == 2)

    for kind, key in told.items():
        assert [(event["space"], event["key"], event["kind"]) for event in reader.of(kind)] == [
            (ALPHA, key, "put"), (BETA, key, "put"),
        ], kind  # fmt: skip
    assert [event["path"] for event in reader.of("conflict")] == [f"{ALPHA}/f", f"{BETA}/f"]
    assert not [event for event in elsewhere.events if BETA in json.dumps(event)]
    assert "secret" not in json.dumps(reader.events)
    assert set(reader.kinds) <= {*told, "conflict", "status", "hello", "run"}


async def test_numbers_rise(site: Site, open_page: OpenPage, autojump_clock: Clock) -> None:
    reader = await open_page()
    for number in range(20):
        write(site, named(number))
    await reader.until(lambda: len(reader.names()) == 20)

    numbers = [int(event["id"].partition(".")[2]) for event in reader.events]
    assert numbers == sorted(numbers)
    assert len({event["id"] for event in reader.events if event["event"] != "hello"}) == len(reader.events) - 1


async def test_a_heartbeat_shows_that_the_stream_lives(open_page: OpenPage, autojump_clock: Clock) -> None:
    reader = await open_page()
    await reader.until(lambda: reader.beats >= 2)

    assert HEARTBEAT <= 15
    assert HEARTBEAT * 2 <= trio.current_time() < HEARTBEAT * 2 + 3


# --- going on -----------------------------------------------------------------------------------------------------


async def test_what_was_missed_is_told_once_and_in_order(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    first = await open_page()
    write(site, named(1))
    await first.until(lambda: first.names() == [named(1)])
    place = first.events[-1]["id"]
    first.gone.set()
    for number in (2, 3):
        write(site, named(number))
    second = await open_page(after=place)
    await second.until(lambda: len(second.names()) == 2)
    write(site, named(4))
    await second.until(lambda: len(second.names()) == 3)

    assert second.names() == [named(2), named(3), named(4)]
    assert "reset" not in second.kinds


@pytest.mark.parametrize(
    "place", ["0.0", "x", "12", "deadbeef.3", ".", "a.b", "{}.99999", "{}.-1", "{}.", "{}.1e3", "{}.٣"]
)
async def test_a_place_that_is_none_begins_anew(
    site: Site, open_page: OpenPage, place: str, autojump_clock: Clock
) -> None:
    """Also one of a process that is no more: its numbers mean other events."""
    start = site.events.place(0).partition(".")[0]
    reader = await open_page(after=place.format(start))
    await reader.until(lambda: bool(reader.events))

    assert reader.kinds[0] == "reset"


async def test_who_was_away_for_too_long_begins_anew_and_hears_what_is_next(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    place = site.events.place(0)
    for number in range(KEPT + 2):
        write(site, named(number))
    reader = await open_page(after=place)
    await reader.until(lambda: bool(reader.events))
    write(site, named(999_999))
    await reader.until(lambda: bool(reader.names()))

    assert reader.kinds[0] == "reset"
    assert reader.names() == [named(999_999)]
    assert site.statistics()["events"]["kept"] <= KEPT


async def test_a_page_takes_up_where_a_browser_says_it_was(site: Site, autojump_clock: Clock) -> None:
    """By the header that browsers send, which goes before the place in the address."""
    write(site, named(1))
    write(site, named(2))
    place = site.events.place(1)
    browser, reader = Browser(site), Reader(site)
    async with trio.open_nursery() as nursery:
        headers = [(b"last-event-id", place.encode())]
        scope = {"type": "http", "method": "GET", "path": "/events", "query_string": b"after=x", "headers": headers}
        nursery.start_soon(browser, scope, reader.receive, reader.send)
        await reader.until(lambda: bool(reader.names()))
        nursery.cancel_scope.cancel()

    assert reader.names() == [named(2)]


# --- who, and until when ------------------------------------------------------------------------------------------


async def test_a_space_that_is_not_theirs_is_told_to_nobody(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    limited, whole = await open_page(OF_ALPHA), await open_page()
    one_space = await open_page(space=BETA)
    write(site, named(1), BETA)
    write(site, named(2), ALPHA)
    await whole.until(lambda: len(whole.names()) == 2)
    await limited.until(lambda: len(limited.names()) == 1)
    await one_space.until(lambda: len(one_space.names()) == 1)

    assert limited.names() == [named(2)]
    assert one_space.names() == [named(1)]
    assert BETA not in json.dumps(limited.events)


async def test_listening_to_a_space_outside_of_the_access_is_refused(site: Site, autojump_clock: Clock) -> None:
    await Browser(site, OF_ALPHA).get(f"/events?space={BETA}", 404)
    await Browser(site, None).get("/events", 401)


@pytest.mark.parametrize("by_now", [None, Access("", frozenset()), Access("", frozenset({"read"}), (BETA,))])
async def test_a_stream_ends_when_the_access_does(
    site: Site, open_page: OpenPage, by_now: Access | None, autojump_clock: Clock
) -> None:
    """Within one heartbeat."""

    async def still() -> Access | None:
        return by_now

    reader = await open_page(OF_ALPHA, space=ALPHA, still=still)
    await reader.until(lambda: reader.ended)

    assert trio.current_time() < HEARTBEAT + 2
    assert site.events.streams.total() == 0


async def test_an_access_that_cannot_be_looked_at_ends_the_stream(open_page: OpenPage, autojump_clock: Clock) -> None:
    async def fails() -> Access | None:
        raise Unreachable(endpoint="x")

    async def hangs() -> Access | None:
        await trio.sleep_forever()

    for still in (fails, hangs):
        reader = await open_page(still=still)
        await reader.until(lambda reader=reader: reader.ended)


async def test_a_stream_ends_when_the_reader_goes_and_when_the_server_does(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    readers = [await open_page(), await open_page()]
    for reader in readers:
        await reader.until(lambda reader=reader: bool(reader.events))
    assert site.statistics()["events"]["streams"] == 2
    readers[0].gone.set()
    await readers[0].until(lambda: readers[0].ended)
    site.close()
    await readers[1].until(lambda: readers[1].ended)

    assert site.events.streams.total() == 0
    await Browser(site).get("/events", 503)


async def test_a_reader_who_takes_nothing_is_let_go_and_holds_nobody_up(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    quick, stuck = await open_page(), await open_page()
    await stuck.until(lambda: bool(stuck.events))
    stuck.stuck = True
    write(site)
    await quick.until(lambda: bool(quick.names()))
    began = trio.current_time()
    with trio.fail_after(SEND_SECONDS + 2):
        while site.events.streams.total() > 1:
            await trio.sleep(1)

    assert trio.current_time() - began <= SEND_SECONDS + 1
    assert not quick.ended


async def test_there_are_only_so_many_streams(
    site: Site, monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    monkeypatch.setattr(streams, "STREAMS", 0)

    assert "Too many pages" in await Browser(site).get("/events", 503)


async def test_what_nobody_listens_to_is_not_looked_at(
    site: Site, monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    looks = []
    monkeypatch.setattr(Events, "look", lambda self: looks.append(1))
    await trio.sleep(60)

    assert looks == []


async def test_a_page_that_is_open_keeps_the_watcher_awake_for_its_space(
    site: Site, open_page: OpenPage, autojump_clock: Clock
) -> None:
    """Else what another host writes would show after a minute on a page that nobody touches."""
    used: list[str] = []

    class Watch(Nobody):
        def used(self, prefix: str) -> None:
            used.append(prefix)

    site.context.replica.names.watch = Watch()
    await open_page(space=ALPHA)
    await trio.sleep(120)

    assert len(used) >= 100
    assert set(used) == {f"{ALPHA}/live/"}
