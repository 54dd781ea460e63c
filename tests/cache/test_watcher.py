"""The watcher: what other hosts did shows in time, and costs little."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from several import CLOCK, INTERVAL, META, NOTE, SOON, Host
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.asking import OUTAGE_PAUSE
from livememfs.cache.beacon import REMEMBERED, WAIT, Announcement
from livememfs.cache.replica import Replica
from livememfs.cache.watcher import (
    EVERYTHING_AFTER,
    IN_USE,
    LISTED_AGAIN,
    ROOT_BELIEVED,
    SPARE_NAMES,
    Watcher,
)
from livememfs.cache.watching.listening import ASKED_ONE_BY_ONE, BEACONS_READ_FIRST, RELISTED
from livememfs.cache.watching.pace import CALM_SECONDS
from livememfs.records import keys
from livememfs.store.base import MAX_PAGE, Page
from livememfs.store.memory import MemoryStore
from livememfs.testing.store import Fault, FaultyStore, StoreRequest
from livememfs.text.foreign import RECORD_BYTES, Unreadable


class Two:
    """A bucket with one space, the host that looks and the host that changes things; it did so a moment ago."""

    def __init__(self) -> None:
        self.memory = MemoryStore(CLOCK)
        self.here, self.there = Host(self.memory, "here"), Host(self.memory, "there")


async def _next_look(watcher: Watcher) -> None:
    """Wait until the next look has begun."""
    before = watcher.statistics().looks
    while watcher.statistics().looks == before:
        await trio.sleep(0.05)


@pytest.fixture
async def two(autojump_clock: Clock, nursery: trio.Nursery) -> Two:
    made = Two()
    await made.memory.put(META, b"{}")
    await made.memory.put("s/live/.keep", b"")
    await made.memory.put("s/file", b"older")
    await made.memory.put(NOTE.format(1, 1), b"note")
    for host in (made.there, made.here):
        await nursery.start(host.replica.run)
        await host.look_around()
        if host is made.there:
            await host.put("s/file", b"old")
            await trio.sleep(2 * WAIT)
    await trio.sleep(SOON)
    made.here.told.clear()
    made.here.store.forget()
    return made


async def test_an_edit_is_told_within_the_interval_and_a_second(two: Two, autojump_clock: Clock) -> None:
    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)
    assert ("put", "s/file") in two.here.told
    assert (await two.here.replica.read("s/file")).data == b"new"


async def test_an_edit_is_told_though_the_first_question_about_it_fails(two: Two, autojump_clock: Clock) -> None:
    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)
    two.here.told.clear()
    two.here.store.script("head", Fault(before=errors.Unreachable("reset", endpoint="the bucket")))

    await two.there.put("s/file", b"newer")
    await trio.sleep(2 * SOON)

    assert two.here.replica.watcher.statistics().failures == 1
    assert two.here.told == [("put", "s/file")]


async def test_a_new_note_is_told_though_its_writer_announces_nothing(two: Two, autojump_clock: Clock) -> None:
    before = await two.memory.list_page("s/_changes/")
    await two.there.put(NOTE.format(2, 2), b"another")
    await trio.sleep(SOON)
    assert two.here.told == [("put", NOTE.format(2, 2))]
    assert (await two.memory.list_page("s/_changes/")) == before


async def test_of_a_long_ledger_little_is_listed(two: Two, autojump_clock: Clock) -> None:
    """Two short pages a look; whoever comes later is heard all the same, and what comes after the ledger, too."""
    for number in range(MAX_PAGE + 1):
        await two.memory.put(keys.ledger_key("s", number + 1), b"{}")
    await two.here.names("s/_index/_worth/")
    await trio.sleep(SOON)
    sizes: list[int] = []
    list_page = two.here.store.list_page

    async def counted(prefix: str, **more: Any) -> Page:
        page = await list_page(prefix, **more)
        if prefix == "s/_":
            sizes.append(len(page.objects))
        return page

    two.here.store.list_page = counted  # type: ignore[method-assign]  # to see how long the pages are
    await trio.sleep(SOON)
    assert sizes
    assert max(sizes) <= 1 + SPARE_NAMES  # the other host's beacon
    for number in range(2 * SPARE_NAMES):
        await two.memory.put(f"s/_changes/gone-{number:04}.json", b"{}")
    await two.there.put("s/file", b"new")
    await two.memory.put("s/_synthesis.md", b"told")
    await trio.sleep(SOON)

    assert {("put", "s/file"), ("put", "s/_synthesis.md")} <= set(two.here.told)


async def test_counts_of_uses_are_told_without_a_beacon(two: Two, autojump_clock: Clock) -> None:
    """Every host writes its own each minute, and a beacon would make all others ask for it each time."""
    await two.here.names("s/_index/_worth/")
    before = await two.memory.list_page("s/_changes/")
    await two.there.put(keys.worth_key("s", "there"), b"{}")
    await trio.sleep(SOON)

    assert ("put", keys.worth_key("s", "there")) in two.here.told
    assert (await two.memory.list_page("s/_changes/")) == before


async def test_a_note_by_a_host_whose_clock_is_behind_is_told_too(two: Two, autojump_clock: Clock) -> None:
    await two.there.put("s/live/20261122T090700_me_todo_0a1b2c3d.md", b"three minutes behind the newest")
    await trio.sleep(SOON)
    assert two.here.told == [("put", "s/live/20261122T090700_me_todo_0a1b2c3d.md")]


async def test_a_removal_is_told(two: Two, autojump_clock: Clock) -> None:
    info = await two.there.replica.names.stat("s/file")
    two.there.replica.remove("s/file", base=info)
    await trio.sleep(SOON)
    assert two.here.told == [("delete", "s/file")]
    assert "file" not in await two.here.names("s/")


async def test_a_note_that_another_program_removes_is_missed_at_the_next_look(two: Two, autojump_clock: Clock) -> None:
    await two.memory.delete(NOTE.format(1, 1))
    await trio.sleep(SOON)
    assert two.here.told == [("delete", NOTE.format(1, 1))]


async def test_a_new_folder_and_one_that_goes_are_told(two: Two, autojump_clock: Clock) -> None:
    await two.there.put("s/new/deep/file", b"x")
    await trio.sleep(SOON)
    assert ("put", "s/new/") in two.here.told
    assert "new" in await two.here.names("s/")

    two.there.replica.remove("s/new/deep/file", base=await two.there.replica.names.stat("s/new/deep/file"))
    await trio.sleep(SOON)
    assert "new" not in await two.here.names("s/")


async def test_more_changes_than_a_beacon_holds_are_all_told(two: Two, autojump_clock: Clock) -> None:
    for number in range(REMEMBERED + 50):
        two.there.replica.save(f"s/folder/{number}", b"x", meta={}, base=None)
    await two.there.replica.uploaded()
    await trio.sleep(2 * SOON)
    assert len(await two.here.names("s/folder/")) == REMEMBERED + 50
    assert len({key for _, key in two.here.told if key.startswith("s/folder/")}) >= REMEMBERED + 50


async def test_the_last_of_more_hosts_than_a_page_holds_is_listened_to(two: Two, autojump_clock: Clock) -> None:
    """Its beacon stands on the second page, and a ledger of more than a page behind it."""
    for number in range(MAX_PAGE):
        await two.memory.put(f"s/_changes/gone-{number:04}.json", b"{}")
        await two.memory.put(keys.ledger_key("s", number + 1), b"{}")
    await trio.sleep(SOON)

    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)

    assert ("put", "s/file") in two.here.told
    assert two.here.replica.watcher.statistics().full == 0


async def test_many_hosts_that_have_something_to_say_are_listened_to_side_by_side(
    two: Two, autojump_clock: Clock
) -> None:
    """One after the other, their beacons would take longer than a look is vouched for."""

    async def say(number: int) -> None:
        for host in range(40):
            beacon = {"epoch": "e", "seq": number, "recent": [[one + 1, f"s/h{host}"] for one in range(number)]}
            await two.memory.put(f"s/_changes/h{host}.json", json.dumps(beacon).encode())

    await say(1)
    await trio.sleep(SOON)
    two.here.store.latency("get", 0.1)
    await two.memory.put("s/h39", b"new")
    await say(2)

    await trio.sleep(SOON)

    assert ("put", "s/h39") in two.here.told


async def test_use_costs_two_requests_an_interval_and_one_for_each_directory_every_three_seconds(
    two: Two, autojump_clock: Clock
) -> None:
    two.here.store.forget()
    for _ in range(20):
        await trio.sleep(INTERVAL / 2)
        for prefix in ("s/", "s/live/", "s/folder/"):
            await two.here.names(prefix)
    for_all = [asked for asked in two.here.store.requests if asked.key == "s/_"]
    assert two.here.store.counts.total() <= 2 * 10 + 2 + 3 * 20 / LISTED_AGAIN
    assert len(for_all) <= 1.5 * 10 + 1
    assert set(two.here.store.counts) == {"list"}


async def test_a_directory_that_nobody_looks_into_any_more_is_not_listed_again(two: Two, autojump_clock: Clock) -> None:
    await trio.sleep(IN_USE)
    two.here.store.forget()
    await trio.sleep(20.0)

    assert {asked.key for asked in two.here.store.requests} == {"s/_", "s/live/"}
    assert two.here.store.counts.total() <= 2 * 10 + 2


@pytest.mark.parametrize("name", ["file", "new", "folder/new", "live/20200101T000000_me_todo_0a1b2c3d.md"])
async def test_what_a_program_without_a_beacon_puts_into_a_directory_in_use_is_told_within_five_seconds(
    two: Two, autojump_clock: Clock, name: str
) -> None:
    folder = f"s/{name}".rpartition("/")[0] + "/"
    await two.here.names(folder)
    await two.memory.put(f"s/{name}", b"by another program")
    await trio.sleep(5.0)

    assert ("put", f"s/{name}") in two.here.told
    assert name.rpartition("/")[2] in await two.here.names(folder)


async def test_a_large_directory_is_listed_again_less_often(two: Two, autojump_clock: Clock) -> None:
    for number in range(2 * MAX_PAGE):
        await two.memory.put(f"s/folder/{number}", b"x")
    await two.here.replica.names.refresh("s/folder/")
    two.here.store.forget()
    for _ in range(20):
        await two.here.names("s/folder/")
        await trio.sleep(1.0)

    asked = [request for request in two.here.store.requests if request.key == "s/folder/"]
    assert len(asked) == 2 * 2  # two pages, twice in twenty seconds


async def test_nobody_in_the_space_costs_less_and_less(two: Two, autojump_clock: Clock) -> None:
    await trio.sleep(3_700)
    two.here.store.forget()
    await trio.sleep(600)
    assert two.here.store.counts.total() <= 25
    assert two.here.replica.watcher.statistics().full == 0


@pytest.mark.parametrize(
    ("idle", "intervals", "calm"),
    [
        (0.0, 0.75, 5.0),
        (50.0, 0.75, 5.0),
        (70.0, 4.0, 5.0),
        (550.0, 4.0, 5.0),
        (650.0, 15.0, 15.0),
        (3_500.0, 15.0, 15.0),
        (4_000.0, 30.0, 30.0),
    ],
)
@pytest.mark.parametrize("is_calm", [False, True], ids=["others are at work", "alone"])
async def test_the_longer_nobody_is_there_the_longer_are_the_pauses(
    autojump_clock: Clock, nursery: trio.Nursery, idle: float, intervals: float, calm: float, is_calm: bool
) -> None:
    memory = MemoryStore(CLOCK)
    await memory.put(META, b"{}")
    if not is_calm:
        await memory.put("s/_changes/there.json", b'{"epoch": "e", "seq": 0, "recent": []}')
    watcher = Host(memory, "here").replica.watcher
    watcher.used("s/")
    await trio.sleep(idle)
    nursery.start_soon(watcher.run)
    await trio.sleep(0.1)
    await _next_look(watcher)
    started = trio.current_time()
    await _next_look(watcher)
    assert trio.current_time() - started == pytest.approx((calm if is_calm else intervals) * INTERVAL, abs=0.11)


async def test_a_space_that_nobody_uses_for_a_day_is_forgotten(autojump_clock: Clock, nursery: trio.Nursery) -> None:
    memory = MemoryStore(CLOCK)
    await memory.put(META, b"{}")
    store = FaultyStore(memory)
    watcher = Replica(store, host="here", poll_interval=300.0).watcher
    nursery.start_soon(watcher.run)
    watcher.used("s/")
    await trio.sleep(80_000.0)
    assert watcher.statistics().spaces == 1
    await trio.sleep(16_000.0)  # a day, and the last pause
    assert watcher.statistics().spaces == 0
    store.forget()
    await trio.sleep(50_000.0)
    assert store.counts.total() == 0


async def test_edits_show_in_time_again_once_somebody_is_back(two: Two, autojump_clock: Clock) -> None:
    await trio.sleep(100)
    await _next_look(two.here.replica.watcher)
    await two.here.names("s/")
    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)
    assert ("put", "s/file") in two.here.told


async def test_who_comes_after_the_watcher_was_told_to_rest_is_served_at_once(two: Two, autojump_clock: Clock) -> None:
    watcher = two.here.replica.watcher
    watcher.rest()
    await _next_look(watcher)
    started = trio.current_time()
    await _next_look(watcher)
    assert trio.current_time() - started > 3 * INTERVAL

    watcher.rest()
    watcher.used("s/")
    started = trio.current_time()
    await _next_look(watcher)
    assert trio.current_time() - started < 0.1


async def test_a_look_is_vouched_for_from_its_question_for_the_interval_and_a_second(
    two: Two, autojump_clock: Clock
) -> None:
    two.here.store.latency("list", 0.5)
    await trio.sleep(SOON)
    await _next_look(two.here.replica.watcher)
    asked = trio.current_time()
    await trio.sleep(1.2)  # two questions
    two.here.store.blackhole = True
    await trio.sleep_until(asked + INTERVAL + 0.9)
    assert two.here.replica.names.watched("s/")
    await trio.sleep_until(asked + INTERVAL + 1.1)
    assert not two.here.replica.names.watched("s/")


async def test_who_comes_back_after_a_while_sees_what_is_there_now(two: Two, autojump_clock: Clock) -> None:
    await trio.sleep(3_700)
    await two.there.put("s/file", b"new")
    await trio.sleep(INTERVAL / 2)
    two.here.store.latency("list", 1.0)
    started = trio.current_time()
    assert (await two.here.replica.read("s/file")).data == b"new"
    assert trio.current_time() - started <= 2.0  # the two of one look; whatever else is due is not waited for


async def test_what_a_newcomer_hears_first_need_not_be_asked_for_again(
    two: Two, autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    """It looks before it lists, so the first look vouches for the names; and that one asks for a whole page."""
    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)  # its beacon
    newcomer = Host(two.memory, "newcomer")
    await nursery.start(newcomer.replica.run)
    for _ in range(3):
        await newcomer.names("s/")
        await trio.sleep(LISTED_AGAIN / 4)
    assert newcomer.store.requests[:2] == [StoreRequest("list", "s/_"), StoreRequest("get", "s/_changes/there.json")]
    assert newcomer.store.requests[2] == StoreRequest("list", "s/")
    assert newcomer.store.requests.count(StoreRequest("list", "s/")) == 1


async def test_who_comes_back_to_a_folder_that_nobody_here_has_seen_waits_for_its_names_alone(
    two: Two, autojump_clock: Clock
) -> None:
    await trio.sleep(3_700)
    two.here.store.latency("list", 0.5)
    started = trio.current_time()
    await two.here.names("s/unseen/")
    assert trio.current_time() - started <= 0.5


async def test_a_writer_without_a_beacon_is_found_after_some_minutes(two: Two, autojump_clock: Clock) -> None:
    await two.memory.put("s/file", b"by another program")
    for _ in range(int(EVERYTHING_AFTER / 30) + 2):
        await trio.sleep(30)
        await two.here.names("s/")
    assert ("put", "s/file") in two.here.told


async def test_of_many_folders_some_are_looked_at_again_and_the_others_when_somebody_looks(
    two: Two, autojump_clock: Clock
) -> None:
    """The ones used last, for whoever is in them waits for news."""
    folders = [f"s/many/{number:03}/" for number in range(RELISTED + 5)]
    for folder in folders:
        await two.here.names(folder)
    await trio.sleep(EVERYTHING_AFTER - INTERVAL)
    await two.here.names("s/many/")  # somebody is there
    for folder in (folders[0], folders[-1]):
        await two.memory.put(f"{folder}file", b"by another program")
    two.here.store.forget()

    await trio.sleep(2 * SOON)

    assert two.here.replica.watcher.statistics().full == 1
    listed = [asked.key for asked in two.here.store.requests if asked.key not in {"s/_", "s/live/"}]
    assert len({*listed}) == RELISTED  # the one in use may come again
    assert folders[0] not in listed
    assert [key for _, key in two.here.told if key.endswith("file")] == [f"{folders[-1]}file"]
    assert await two.here.names(folders[0]) == {"file"}


async def test_what_a_full_look_did_not_come_to_is_looked_at_when_somebody_looks(
    two: Two, autojump_clock: Clock
) -> None:
    await trio.sleep(EVERYTHING_AFTER - INTERVAL)
    await two.here.names("s/folder/")
    await two.memory.put("s/folder/file", b"by another program")
    refused = Fault(before=errors.Denied(key="s/", detail="no"))
    two.here.store.plan = lambda asked, _: refused if asked == StoreRequest("list", "s/") else None
    await trio.sleep(2 * SOON)

    assert two.here.replica.watcher.statistics().failures == 1
    assert await two.here.names("s/folder/") == {"file"}


async def test_each_of_a_few_changes_is_asked_for_and_of_more_the_folder_is_listed(
    two: Two, autojump_clock: Clock
) -> None:
    await trio.sleep(IN_USE)
    for round_, number in enumerate((ASKED_ONE_BY_ONE, ASKED_ONE_BY_ONE + 1, 1)):
        two.here.store.forget()
        for one in range(number):
            two.there.replica.save(f"s/folder/{round_}-{one}", b"x", meta={}, base=None)
        await two.there.replica.uploaded()
        await trio.sleep(SOON)
        asked = [request for request in two.here.store.requests if request.key.startswith("s/folder/")]
        few = number <= ASKED_ONE_BY_ONE
        assert [request.verb for request in asked] == (["head"] * number if few else ["list"])
        assert two.here.store.counts["get"] == 1  # the beacon


async def test_changes_where_nobody_has_looked_cost_no_question_each(two: Two, autojump_clock: Clock) -> None:
    for one in range(5):
        two.there.replica.save(f"s/other/deep/{one}", b"x", meta={}, base=None)
    await two.there.replica.uploaded()
    await trio.sleep(SOON)
    assert two.here.store.counts["head"] == 0
    assert "s/other/deep/" not in {asked.key for asked in two.here.store.requests}


async def test_a_host_does_not_read_its_own_beacon(two: Two, autojump_clock: Clock) -> None:
    await two.here.put("s/file", b"mine")
    await trio.sleep(SOON)
    assert two.here.store.counts["put"] == 2  # the file and the beacon
    assert two.here.store.counts["get"] == 0


async def test_to_who_comes_what_others_did_before_is_no_news(
    two: Two, autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    """Of the many hosts that there ever were some are read, so that their next change costs one question."""
    for host in range(BEACONS_READ_FIRST + 5):
        first = 1 + host % 2  # some have forgotten what they did first
        beacon = {"epoch": "e", "seq": 9, "recent": [[number, f"s/h{host}"] for number in range(first, 10)]}
        await two.memory.put(f"s/_changes/h{host}.json", json.dumps(beacon).encode())
    newcomer = Host(two.memory, "newcomer")
    await nursery.start(newcomer.replica.run)
    await newcomer.names("s/")
    await trio.sleep(SOON)

    assert newcomer.store.counts["get"] == BEACONS_READ_FIRST
    assert newcomer.store.counts["head"] == 0
    assert {asked.key for asked in newcomer.store.requests if asked.verb == "list"} == {"s/", "s/_"}
    assert newcomer.replica.watcher.statistics().full == 0


async def test_a_beacon_that_goes_before_it_is_read_stops_nobody(two: Two, autojump_clock: Clock) -> None:
    missing = Fault(before=errors.ObjectMissing(key="s/_changes/there.json"))
    two.here.store.script("get", missing)
    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)
    assert two.here.store.counts["get"] == 1
    assert two.here.replica.watcher.statistics().failures == 0
    await two.there.put("s/file", b"newer")
    await trio.sleep(SOON)
    assert ("put", "s/file") in two.here.told


async def test_a_beacon_that_is_too_large_is_not_fetched(two: Two, autojump_clock: Clock) -> None:
    await two.memory.put("s/_changes/large.json", b"x" * (RECORD_BYTES + 1))
    await trio.sleep(SOON)
    assert two.here.store.counts["get"] == 0


async def test_of_many_notes_the_latest_are_listed(two: Two, autojump_clock: Clock) -> None:
    heard: list[int] = []
    list_page = two.here.store.list_page

    async def counted(prefix: str, **more: Any) -> Page:
        page = await list_page(prefix, **more)
        if prefix == "s/live/":
            heard.append(len(page.objects))
        return page

    await trio.sleep(IN_USE)
    two.here.store.list_page = counted  # type: ignore[method-assign]  # to see how many names come
    await trio.sleep(SOON)
    assert set(heard) == {1}  # the newest is within what clocks may differ

    await two.memory.put("s/live/20261123T120000_me_todo_0a1b2c3d.md", b"the day after")
    await trio.sleep(2 * SOON)
    heard.clear()
    await trio.sleep(SOON)
    assert set(heard) == {1}


@pytest.mark.parametrize("other", ["9999 ideas.md", "zettel.md"])
async def test_a_new_note_is_told_beside_files_that_are_no_notes(two: Two, autojump_clock: Clock, other: str) -> None:
    await two.memory.put(f"s/live/{other}", b"")
    await trio.sleep(SOON)
    await two.there.put(NOTE.format(2, 2), b"another")
    await trio.sleep(SOON)
    assert ("put", NOTE.format(2, 2)) in two.here.told


async def test_a_folder_that_is_no_space_is_watched_once_it_becomes_one(two: Two, autojump_clock: Clock) -> None:
    await two.memory.put("plain/_synthesis.md", b"")
    await two.here.names("plain/")
    await trio.sleep(SOON)
    assert not two.here.replica.names.watched("plain/")

    await two.here.put(keys.meta_key("plain"), b"{}")
    assert two.here.replica.names.watched("plain/")
    await trio.sleep(SOON)
    assert two.here.replica.names.watched("plain/")

    await two.memory.delete(keys.meta_key("plain"))
    await trio.sleep(CALM_SECONDS)
    assert not two.here.replica.names.watched("plain/")


async def test_what_waits_here_decides_whether_there_is_a_space(two: Two, autojump_clock: Clock) -> None:
    """A look at the bucket does not know yet of a space that was made or removed here."""
    await two.here.names("plain/")
    await trio.sleep(SOON)
    for verb in ("put", "delete"):
        two.here.store.latency(verb, 60.0)
    two.here.replica.save(keys.meta_key("plain"), b"{}", meta={}, base=None)
    two.here.replica.remove(META, base=two.here.replica.names.now(META))
    await trio.sleep(2 * SOON)
    assert two.here.replica.names.watched("plain/")
    assert not two.here.replica.names.watched("s/")


async def test_the_first_note_of_a_space_is_told(two: Two, autojump_clock: Clock) -> None:
    await two.memory.put(keys.meta_key("empty"), b"{}")
    await two.memory.put("empty/live/.keep", b"")
    await two.here.names("empty/live/")
    await trio.sleep(SOON)
    first = "empty/live/20261122T091001_me_decision_0a1b2c01.md"
    await two.memory.put(first, b"note")
    await trio.sleep(CALM_SECONDS)
    assert ("put", first) in two.here.told


async def test_what_is_no_beacon_by_its_name_is_not_read(two: Two, autojump_clock: Clock) -> None:
    for key in ("s/_changes/read me.txt", "s/_other.json"):
        await two.memory.put(key, b"{}")
    await trio.sleep(SOON)
    assert two.here.store.counts["get"] == 0


async def test_who_comes_while_somebody_looks_waits_for_that_look(two: Two, autojump_clock: Clock) -> None:
    await trio.sleep(100)
    await _next_look(two.here.replica.watcher)
    await trio.sleep(INTERVAL + 1.5)
    await two.there.put("s/folder/new", b"x")
    await trio.sleep(0.5)  # its beacon
    two.here.store.latency("list", 0.3)
    two.here.store.forget()
    seen: list[bool] = []

    async def look() -> None:
        seen.append("new" in await two.here.names("s/folder/"))

    async with trio.open_nursery() as both:
        both.start_soon(look)
        both.start_soon(look)

    assert seen == [True, True]
    assert [asked.key for asked in two.here.store.requests if asked.verb == "list"][:2] == ["s/_", "s/live/"]


async def test_what_waits_is_uploaded_as_soon_as_a_look_is_answered(two: Two, autojump_clock: Clock) -> None:
    two.here.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
    two.here.replica.save("s/folder/mine", b"x", meta={}, base=None)
    await trio.sleep(57.0)
    two.here.store.fail_all = None
    await trio.sleep(INTERVAL)
    assert (await two.memory.get("s/folder/mine")).data == b"x"


async def test_a_space_that_is_removed_here_is_no_longer_watched(two: Two, autojump_clock: Clock) -> None:
    assert two.here.replica.names.watched("s/")
    two.here.replica.remove(META, base=two.here.replica.names.now(META))
    assert not two.here.replica.names.watched("s/")


async def test_the_names_of_the_root_are_believed_for_a_while_where_a_space_is_watched(
    two: Two, autojump_clock: Clock
) -> None:
    await two.here.names("")
    two.here.store.forget()
    await trio.sleep(ROOT_BELIEVED - 5.0)
    await two.here.names("")
    assert StoreRequest("list", "") not in two.here.store.requests
    await trio.sleep(10.0)
    await two.here.names("")
    assert two.here.store.requests.count(StoreRequest("list", "")) == 1


async def test_neither_the_root_nor_what_is_hidden_is_watched(
    two: Two, autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    other = Host(two.memory, "other")
    await nursery.start(other.replica.run)
    for prefix in ("", "_backups/", "_backups/deep/"):
        await other.names(prefix)
    other.store.forget()
    await trio.sleep(10 * INTERVAL)
    assert other.replica.watcher.statistics().spaces == 0
    assert other.store.counts.total() == 0
    await other.names("")
    assert other.store.counts["list"] == 1


async def test_names_are_asked_for_again_while_the_watcher_cannot_look(two: Two, autojump_clock: Clock) -> None:
    assert two.here.replica.names.watched("s/")
    two.here.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
    await trio.sleep(4 * INTERVAL)
    assert not two.here.replica.names.watched("s/")
    two.here.store.fail_all = None
    await two.there.put("s/file", b"new")
    await trio.sleep(6 * INTERVAL)
    assert (await two.here.replica.read("s/file")).data == b"new"
    assert two.here.replica.names.watched("s/")


@pytest.mark.parametrize("prefix", ["s/", ""], ids=["a space", "the root"])
async def test_in_an_outage_nobody_waits_for_known_names_where_a_look_finds_out_that_it_is_over(
    two: Two, autojump_clock: Clock, prefix: str
) -> None:
    """Looks are rarer by then than the pauses after a failure."""
    await two.here.names(prefix)
    two.here.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
    await trio.sleep(700.0)
    await _next_look(two.here.replica.watcher)
    await trio.sleep(OUTAGE_PAUSE + 1.0)
    two.here.store.latency("list", 0.5)
    two.here.store.forget()
    started = trio.current_time()
    await two.here.names(prefix)
    assert trio.current_time() == started
    assert StoreRequest("list", prefix) not in two.here.store.requests


async def test_names_of_a_space_that_may_not_be_looked_at_are_asked_for_again_and_again(
    two: Two, autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    """Each look fails, and says nothing of whether the store answers others."""
    other = Host(two.memory, "other")
    denied = Fault(before=errors.Denied(key="s/_", detail="no"))
    other.store.plan = lambda asked, _: denied if asked.key == "s/_" else None
    await nursery.start(other.replica.run)
    await other.names("s/")
    await two.memory.put("s/new", b"")
    await trio.sleep(SOON)
    assert "new" in await other.names("s/")


async def test_own_changes_are_no_news(two: Two, autojump_clock: Clock) -> None:
    await two.here.put("s/file", b"mine")
    await two.here.put("s/folder/x", b"mine")
    await trio.sleep(3 * SOON)
    assert two.here.told == []


async def test_a_space_that_is_removed_is_not_brought_back_by_a_beacon(two: Two, autojump_clock: Clock) -> None:
    await two.there.put("s/file", b"new")
    await trio.sleep(SOON)
    page = await two.memory.list_page("s/")
    for info in page.objects:
        if info.key != META:
            await two.there.replica.delete(info.key)
    await two.there.replica.delete(META)
    await trio.sleep(3 * SOON)
    assert (await two.memory.list_page("s/")).objects == ()


async def test_a_prefix_that_was_no_space_and_is_emptied_is_not_brought_back_by_a_beacon(
    two: Two, autojump_clock: Clock
) -> None:
    await two.memory.put("plain/folder/x", b"1")
    for prefix in ("", "plain/", "plain/folder/"):
        await two.there.names(prefix)
    await two.there.put("plain/folder/y", b"2")
    await trio.sleep(SOON)
    page = await two.memory.list_page("plain/")
    assert len(page.objects) == 3
    for info in page.objects:
        await two.there.names(info.key.rpartition("/")[0] + "/")
        two.there.replica.remove(info.key, base=two.there.replica.names.now(info.key))
    await two.there.replica.uploaded()
    await trio.sleep(3 * SOON)
    assert (await two.memory.list_page("plain/")).objects == ()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"epoch": 1}', b"\xff", b'{"epoch":"a","seq":1,"recent":[3]}'])
def test_what_is_no_beacon_cannot_be_read(data: bytes) -> None:
    with pytest.raises(Unreadable):
        Announcement.parse(data)


def test_an_announcement_knows_what_was_missed() -> None:
    first = Announcement("e", 2, ((1, "a"), (2, "b")))
    assert Announcement("e", 4, ((2, "b"), (3, "c"), (4, "d"))).since(first) == ["c", "d"]
    assert Announcement("e", 9, ((8, "x"), (9, "y"))).since(first) is None
    assert Announcement("other", 3, ((3, "c"),)).since(first) is None
    assert first.since(None) is None
    assert first.all() == ["a", "b"]
    assert Announcement("e", 3, ((2, "b"), (3, "c"))).all() is None
