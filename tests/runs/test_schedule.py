"""What starts a run by itself, what holds it back, and what hosts and restarts know of each other's runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
import trio
from consolidation_world import SPACE, World
from schedule_world import Town
from trio.abc import Clock

from livememfs.cache.replica import Replica
from livememfs.errors import Unreachable
from livememfs.records import keys
from livememfs.records.ledger import Entry, NoteEntry
from livememfs.records.schedule import Schedule, SpaceSchedule
from livememfs.records.schedule_book import Book, Past, not_ahead
from livememfs.runs.schedule import scheduler
from livememfs.runs.schedule.book import ScheduleMemory
from livememfs.runs.schedule.triggers import Next, Waiting, next_run
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.testing.clock import START
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

NOON = datetime(2026, 2, 20, 12, 0, tzinfo=UTC)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError:
        pytest.skip("this machine has no time zones")


# --- the rules, without anything around them ----------------------------------------------------------------------


def due(schedule: SpaceSchedule, *, now: datetime = NOON, spent: bool = False, **known: Any) -> Next:
    """The next run as of `now`; `known` are the fields of Waiting and of Past."""
    waiting = Waiting(known.pop("notes", 0), known.pop("written", None))
    return next_run(schedule, waiting, Past(**known), spent=spent, now=now, zone=UTC)


def test_so_many_notes_are_due_at_once_and_fewer_never() -> None:
    schedule = SpaceSchedule(after_notes=3)

    assert due(schedule, notes=2) == Next()
    assert due(schedule, notes=3, written=NOON) == Next(NOON, "after_notes")


def test_quiet_counts_from_the_last_note_and_needs_one() -> None:
    schedule = SpaceSchedule(after_idle=1_800)

    assert due(schedule) == Next()
    assert due(schedule, notes=1, written=NOON - seconds(60)) == Next(NOON + seconds(1_740), "after_idle")


def test_an_hour_that_was_missed_is_due_now_and_one_that_was_served_is_not() -> None:
    schedule = SpaceSchedule(at=(time(3), time(15, 30)))
    three, half_past_three = NOON.replace(hour=3), NOON.replace(hour=15, minute=30)

    assert due(schedule, served=NOON - timedelta(days=9)) == Next(three, "at")
    assert due(schedule, served=three) == Next(half_past_three, "at")
    assert due(schedule) == Next(half_past_three, "at")


def test_the_hours_are_those_on_the_wall_of_the_host() -> None:
    schedule = SpaceSchedule(at=(time(3),))

    found = next_run(schedule, Waiting(), Past(), spent=False, now=NOON, zone=timezone(timedelta(hours=-8)))

    assert found.when == datetime(2026, 2, 21, 11, 0, tzinfo=UTC)


@pytest.mark.parametrize("day", ["2026-03-28", "2026-03-29", "2026-10-24", "2026-10-25"])
def test_an_hour_that_a_clock_change_leaves_out_or_repeats_runs_once_a_day(day: str) -> None:
    """In Paris 02:30 is not there on 2026-03-29, and is there twice on 2026-10-25."""
    paris = _zone("Europe/Paris")
    schedule = SpaceSchedule(at=(time(2, 30),))
    now = datetime.fromisoformat(day).replace(tzinfo=UTC)
    runs: list[datetime] = []
    served = now
    for _ in range(48 * 4):
        now += timedelta(minutes=15)
        found = next_run(schedule, Waiting(), Past(served=served), spent=False, now=now, zone=paris)
        if found.is_due(now):
            runs.append(now)
            served = now

    assert len(runs) == 2
    assert timedelta(hours=22) <= runs[1] - runs[0] <= timedelta(hours=26)


def test_a_cooldown_puts_off_what_is_due_and_says_so() -> None:
    schedule = SpaceSchedule(after_notes=1, cooldown=600)

    found = due(schedule, notes=1, written=NOON, started=NOON - seconds(700), ended=NOON - seconds(100))

    assert found == Next(NOON + seconds(500), "after_notes", "its last run was just now")


def test_failures_put_it_off_for_longer_and_longer_up_to_six_hours() -> None:
    schedule = SpaceSchedule(after_notes=1, cooldown=0)

    waits = [due(schedule, notes=1, ended=NOON, failures=count).when for count in (1, 2, 3, 50)]

    assert waits == [NOON + seconds(wait) for wait in (120, 240, 480, 21_600)]


def test_without_tokens_left_it_waits_for_the_next_day() -> None:
    found = due(SpaceSchedule(after_notes=1), notes=1, spent=True)

    assert found == Next(datetime(2026, 2, 21, tzinfo=UTC), "after_notes", "the tokens of the day are used up")


# --- the setting ---------------------------------------------------------------------------------------------------


def test_the_setting_is_read_from_tables_and_from_json_alike() -> None:
    table = {"daily_tokens": 5, "a": {"after_notes": 2, "after_idle": 60, "at": ["15:30", "03:00"], "cooldown": 0}}

    schedule = Schedule.parse(table)

    assert schedule.daily_tokens == 5
    assert schedule.spaces["a"] == SpaceSchedule(after_notes=2, after_idle=60, at=(time(3), time(15, 30)), cooldown=0)
    assert Schedule.parse(json.dumps(table)) == Schedule.parse(str(schedule)) == schedule
    assert str(Schedule.parse({})) == "{}"
    assert Schedule.parse({"daily_tokens": 0}).daily_tokens == 0
    assert str(Schedule.parse({"é": {"after_notes": 1}})) == '{"é": {"after_notes": 1}}'


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("x", "this is not JSON"),
        ([], "a table for each space"),
        ({"daily_token": 3}, "no key daily_token; did you mean daily_tokens"),
        ({"daily_tokens": -1}, "daily_tokens is a number"),
        ({"daily_tokens": True}, "daily_tokens is a number"),
        ({"_system": {"after_notes": 1}}, "'_system' cannot be a space"),
        ({"a": {}}, "a: one of after_notes, after_idle and at"),
        ({"a": {"at": []}}, "a: one of after_notes, after_idle and at"),
        ({"a": {"cooldown": 1}}, "a: one of after_notes, after_idle and at"),
        ({"a": {"after_note": 1}}, "a: there is no key after_note; did you mean after_notes"),
        ({"a": {"after_notes": 0}}, "a: after_notes is a number from 1"),
        ({"a": {"after_notes": 1.5}}, "a: after_notes is a number from 1"),
        ({"a": {"after_idle": float("inf")}}, "a: after_idle is a number of seconds"),
        ({"a": {"after_idle": float("nan")}}, "a: after_idle is a number of seconds"),
        ({"a": {"after_idle": 10**400}}, "a: after_idle is a number of seconds"),
        ({"a": {"after_idle": True}}, "a: after_idle is a number of seconds"),
        ({"a": {"after_notes": 1, "cooldown": -1}}, "a: cooldown is a number of seconds"),
        ({"a": {"at": "03:00"}}, "a: at is a list of hours"),
        ({"a": {"at": ["3:00"]}}, "a: at is a list of hours"),
        ({"a": {"at": ["24:00"]}}, "a: at is a list of hours"),
        ({"a": {"at": [3]}}, "a: at is a list of hours"),
    ],
)
def test_a_schedule_that_cannot_be_meant_is_refused_in_one_sentence(value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        Schedule.parse(value)

    assert sentence in str(caught.value)


# --- what is remembered --------------------------------------------------------------------------------------------


def test_what_is_remembered_reads_back_as_it_was() -> None:
    past = Past(started=NOON, ended=NOON + seconds(1.5), served=NOON, why="at", host="h/1", state="ok", tokens=7)
    book = Book("2026-02-20", 9, {"alpha": past, "beta": Past(failures=2)})

    assert Book.parse(book.render(), NOON) == book


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\x00",
        b"[" * 100_000,
        b"[]",
        b'{"spaces": 3, "tokens": "many", "day": 7}',
        b'{"spaces": {"alpha": 1, "beta": {"started": "soon", "failures": -1, "tokens": true}}}',
        b'{"spaces": {"alpha": {"started": "9999-01-01T00:00:00Z", "served": "9998-01-01"}}}',
    ],
)
def test_garbage_was_never_remembered(data: bytes) -> None:
    book = Book.parse(data, NOON)

    assert book.used(NOON) == 0
    assert book.past("alpha") == book.past("beta") == Past()
    assert (Past().tokens, Past().failures, Book().tokens) == (0, 0, 0)


def test_tokens_are_counted_by_the_day_of_utc() -> None:
    book = Book().with_tokens(5, NOON).with_tokens(6, NOON)

    assert book.used(NOON) == 11
    assert book.used(NOON + timedelta(days=1)) == 0
    assert book.with_tokens(1, NOON + timedelta(days=1)).tokens == 1


# --- hosts ---------------------------------------------------------------------------------------------------------


async def test_enough_notes_start_one_run_and_the_rest_waits_for_enough(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=3, cooldown=0)
    for _ in range(2):
        await host.note()
    await town.later(3_600)
    assert town.model.runs == []
    await host.note()
    await town.later(5)

    assert town.model.runs == [SPACE]
    assert host.state()["last_why"] == "after_notes"
    assert (host.state()["last_state"], host.state()["last_tokens"], host.state()["notes"]) == ("ok", 100, 0)
    await host.note()
    await town.later(3_600)
    assert town.model.runs == [SPACE]


async def test_notes_of_the_time_before_the_mount_count(town: Town, autojump_clock: Clock) -> None:
    for _ in range(3):
        await town.world.note("from before")
    await town.host(after_notes=3)

    assert town.model.runs == [SPACE]


async def test_quiet_after_a_note_starts_a_run_and_each_further_note_puts_it_off(
    town: Town, autojump_clock: Clock
) -> None:
    host = await town.host(after_idle=1_800)
    await host.note()
    await town.later(1_700)
    await host.note()
    await town.later(1_700)
    assert town.model.runs == []
    assert host.state()["next_why"] == "after_idle"
    await town.later(120)

    assert town.model.runs == [SPACE]
    await town.later(7_200)
    assert town.model.runs == [SPACE]


async def test_a_store_whose_clock_is_ahead_does_not_put_a_run_off_for_ever(town: Town, autojump_clock: Clock) -> None:
    town.clock.advance(days=400)
    await town.world.note("from the future")
    town.clock.advance(days=-400)
    await town.host(after_idle=600)
    await town.later(700)

    assert town.model.runs == [SPACE]


async def test_an_hour_starts_a_run_each_day(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(at=(time(15, 30),))
    assert host.state()["next_run"] == "2026-02-20T15:30:00Z"
    await town.sleep(5_401)
    assert town.model.runs == [SPACE]
    await town.sleep(86_400)

    assert town.model.runs == [SPACE, SPACE]


async def test_hours_missed_while_nothing_was_mounted_are_made_up_for_by_one_run(
    town: Town, autojump_clock: Clock
) -> None:
    first = await town.host(at=(time(3), time(15, 30)))
    town.kill(first)
    town.clock.advance(days=5)
    again = await town.host(at=(time(3), time(15, 30)))
    await town.later(60)

    assert town.model.runs == [SPACE]
    assert again.state()["last_why"] == "at"


async def test_hours_before_a_schedule_was_first_seen_are_not_made_up_for(town: Town, autojump_clock: Clock) -> None:
    await town.host(at=(time(13, 59),))
    await town.later(3_600)

    assert town.model.runs == []


async def test_two_runs_are_a_cooldown_apart(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=1, cooldown=600)
    await host.note()
    await town.later(5)
    await host.note()
    await town.later(500)
    assert town.model.runs == [SPACE]
    assert host.state()["held_back_by"] == "its last run was just now"
    await town.later(120)

    assert town.model.runs == [SPACE, SPACE]


async def test_a_failed_run_is_told_and_tried_again_later_and_later(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=1, cooldown=0)
    town.model.state = "error"
    await host.note()
    await town.later(3_600)

    assert 4 <= len(town.model.runs) <= 6
    assert host.failed[0] == (SPACE, "it went wrong", "look")
    assert len(host.failed) == len(town.model.runs) == host.state()["failures"]
    assert host.state()["held_back_by"] == "its last run failed"
    town.model.state = "ok"
    await town.later(7_200)
    assert host.state()["failures"] == 0
    assert host.scheduler.statistics().ok == 1


async def test_a_failed_hour_is_tried_again(town: Town, autojump_clock: Clock) -> None:
    await town.host(at=(time(15),), cooldown=0)
    town.model.state = "error"
    await town.later(3_610)
    assert town.model.runs == [SPACE]
    town.model.state = "ok"
    await town.later(3_600)

    assert town.model.runs == [SPACE, SPACE]


async def test_notes_that_a_run_left_alone_start_no_other(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_idle=60, after_notes=2, cooldown=0)
    town.model.takes = False
    await host.note()
    await town.later(3_600)
    await town.sleep(86_400)
    assert town.model.runs == [SPACE]
    assert host.state()["notes"] == 0
    await host.note("something new")
    await town.later(120)

    assert town.model.runs == [SPACE, SPACE]


async def test_the_tokens_of_a_day_stop_runs_until_the_next_and_never_the_users_own(
    town: Town, autojump_clock: Clock
) -> None:
    host = await town.host(after_notes=1, cooldown=0, daily_tokens=150)
    for _ in range(3):
        await host.note()
        await town.later(60)
    assert len(town.model.runs) == 2
    assert host.scheduler.status()["tokens_today"] == 200
    assert host.state()["held_back_by"] == "the tokens of the day are used up"
    assert (await host.consolidations.run_once(SPACE)).state == "ok"
    assert host.scheduler.status()["tokens_today"] == 200
    await host.note()
    await town.later(3_600)
    assert len(town.model.runs) == 3
    await town.sleep(36_000)

    assert len(town.model.runs) == 4
    assert host.scheduler.status()["tokens_today"] == 100


async def test_no_limit_is_no_limit(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=1, cooldown=0, daily_tokens=0)
    town.model.tokens = 10**9
    for _ in range(3):
        await host.note()
        await town.later(60)

    assert len(town.model.runs) == 3


async def test_of_hosts_with_the_same_schedule_one_runs_and_tokens_count_once(
    town: Town, autojump_clock: Clock
) -> None:
    hosts = [await town.host(f"host{number}", at=(time(15),), after_notes=9) for number in range(3)]
    await hosts[0].note()
    await town.later(3_700)

    assert town.model.runs == [SPACE]
    assert (await town.book()).used(town.clock.now()) == 100
    assert sum(host.scheduler.statistics().ok for host in hosts) == 1


async def test_of_two_that_write_in_the_same_instant_the_second_sees_what_the_first_wrote(
    autojump_clock: Clock,
) -> None:
    world, claimed = World(), []

    def claim(book: Book) -> Book | None:
        return None if book.past(SPACE).started else book.with_past(SPACE, Past(started=NOON))

    async def one(name: str) -> None:
        store = FaultyStore(world.memory)
        store.latency("*", 0.2)  # both have read before one of them writes
        replica = Replica(store)
        async with trio.open_nursery() as nursery:
            await nursery.start(replica.run)
            if await ScheduleMemory(replica, world.clock).update(claim):
                claimed.append(name)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "first")
        nursery.start_soon(one, "second")

    assert len(claimed) == 1


async def test_a_host_that_comes_while_another_is_at_it_finds_nothing_to_do(town: Town, autojump_clock: Clock) -> None:
    """A run may take longer than the cooldown: then the other host asks too, and the lease makes it come second."""
    town.model.seconds = 300
    first = await town.host("first", after_notes=1, cooldown=60)
    await town.world.note("one")
    second = await town.host("second", after_notes=1, cooldown=60)
    await town.later(3_600)

    assert (await town.book()).used(town.clock.now()) == 100
    assert {first.state()["failures"], second.state()["failures"]} == {0}
    assert await town.world.live() == []


async def test_what_is_remembered_survives_a_restart(town: Town, autojump_clock: Clock) -> None:
    first = await town.host(after_notes=1, cooldown=3_600, daily_tokens=500)
    await first.note()
    await town.later(60)
    town.kill(first)
    again = await town.host(after_notes=1, cooldown=3_600, daily_tokens=500)
    await again.note()
    await town.later(60)
    assert town.model.runs == [SPACE]
    assert again.scheduler.status()["tokens_today"] == 100
    assert again.state()["last_host"] == "here"
    await town.later(3_600)

    assert town.model.runs == [SPACE, SPACE]


def test_a_clock_may_be_an_hour_ahead() -> None:
    hour = timedelta(hours=1)

    assert not_ahead(NOON + hour, NOON) == NOON + hour
    assert not_ahead(NOON + hour + seconds(1), NOON) is None
    assert not_ahead(None, NOON) is None


def test_what_is_due_is_due_from_its_moment_on_and_a_pause_ends_at_its() -> None:
    assert Next(NOON).is_due(NOON)
    assert not Next(NOON + seconds(1)).is_due(NOON)
    assert not Next().is_due(NOON)
    schedule = SpaceSchedule(after_notes=1, cooldown=600)
    rested = due(schedule, notes=1, written=NOON - seconds(60), ended=NOON - seconds(600))
    assert rested == Next(NOON - seconds(60), "after_notes")
    both = SpaceSchedule(after_notes=1, after_idle=60, at=(time(13),))
    assert due(both, notes=1, written=NOON) == Next(NOON, "after_notes")
    assert due(both, notes=0) == Next(NOON.replace(hour=13), "at")
    busy = due(schedule, notes=1, written=NOON, started=NOON - seconds(10), ended=NOON - seconds(900))
    assert busy == Next(NOON + seconds(590), "after_notes", "its last run was just now")


async def test_garbage_in_the_bucket_is_overwritten_by_the_next_run(town: Town, autojump_clock: Clock) -> None:
    await town.world.put(keys.schedule_key(), b"\xffgarbage")
    host = await town.host(after_notes=1, cooldown=0)
    await host.note()
    await town.later(5)
    assert town.model.runs == [SPACE]
    await town.world.put(keys.schedule_key(), b'{"spaces": []}')
    await host.note()
    await town.later(5)

    assert town.model.runs == [SPACE, SPACE]
    assert (await town.book()).past(SPACE).state == "ok"


async def test_while_the_store_is_away_nothing_starts_and_nothing_is_forgotten(
    town: Town, autojump_clock: Clock
) -> None:
    host = await town.host(after_notes=1, cooldown=0)
    town.model.seconds = 100
    await host.note()
    await town.later(50)
    host.store.plan = lambda asked, _: _refused(asked)
    await town.later(600)
    assert len(town.model.runs) == 1
    assert host.scheduler.status()["tokens_today"] == 100
    assert (await town.book()).used(town.clock.now()) == 0
    host.store.plan = None
    await town.later(120)

    assert (await town.book()).used(town.clock.now()) == 100


def _refused(asked: StoreRequest) -> Fault | None:
    return Fault(before=Unreachable("gone")) if asked.key == keys.schedule_key() else None


async def test_an_end_whose_answer_was_lost_counts_once(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=1, cooldown=0)
    town.model.seconds = 100
    await host.note()
    await town.later(50)
    lost = iter([Fault(after=Unreachable("reset"))])
    host.store.plan = lambda asked, _: (
        next(lost, None) if (asked.verb, asked.key) == ("put", keys.schedule_key()) else None
    )
    await town.later(600)

    assert (await town.book()).used(town.clock.now()) == 100


async def test_a_space_that_is_not_there_is_waited_for_and_stops_no_other(town: Town, autojump_clock: Clock) -> None:
    both = {"ghost": SpaceSchedule(at=(time(14, 10),)), SPACE: SpaceSchedule(at=(time(14, 20),))}
    host = await town.start("here", Schedule(both))
    await town.later(1_800)
    assert town.model.runs == [SPACE]
    assert host.state("ghost")["held_back_by"] == "there is no such space"
    await spaces.create(host.replica, town.clock, "ghost")
    await town.later(120)

    assert town.model.runs == [SPACE, "ghost"]


async def test_a_run_of_the_users_own_is_not_joined(town: Town, autojump_clock: Clock) -> None:
    town.model.seconds = 300
    host = await town.host(after_notes=2)
    await host.note()
    host.consolidations.touch(SPACE)
    await town.later(10)
    for _ in range(2):
        await host.note("meanwhile")
    await town.later(60)
    assert host.state()["held_back_by"] == "a run is at work already"
    await town.later(600)

    assert (await town.book()).used(town.clock.now()) == 100
    assert len(town.model.runs) == 2


async def test_a_run_that_the_user_had_asked_for_first_is_not_counted(town: Town, autojump_clock: Clock) -> None:
    town.model.seconds = 100
    host = await town.host(after_notes=1, cooldown=0)
    host.store.plan = lambda asked, _: (
        Fault(delay=20) if (asked.verb, asked.key) == ("put", keys.schedule_key()) else None
    )
    await host.note("for the first of two")
    await town.later(3)
    for _ in range(2):  # while the scheduler is about to start one: it joins the second of these
        host.consolidations.touch(SPACE)
        await town.later(3)
    await host.note("for the second")
    await town.later(600)

    assert len(town.model.runs) == 2
    assert (await town.book()).used(town.clock.now()) == 0


async def test_stopping_starts_nothing_more_and_writes_down_what_ended(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=1, cooldown=0)
    town.model.seconds = 100
    await host.note()
    await town.later(50)
    host.scheduler.stop()
    await town.later(60)
    await host.scheduler.stopped()
    await host.note()
    await town.later(600)

    assert town.model.runs == [SPACE]
    assert (await town.book()).past(SPACE).state == "ok"


async def test_stopping_one_that_waits_takes_no_time(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=1)
    before = trio.current_time()
    host.scheduler.stop()
    await host.scheduler.stopped()

    assert trio.current_time() == before


async def test_hours_of_waiting_ask_the_store_for_next_to_nothing(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=5, at=(time(13, 59, 59),))
    before = len(host.store.requests)
    await town.later(25_000)

    asked = [one for one in host.store.requests[before:] if one.verb != "head"]
    assert len(asked) <= 2, asked


async def test_many_notes_at_once_are_one_look(town: Town, autojump_clock: Clock) -> None:
    host = await town.host(after_notes=200)
    for number in range(199):
        await host.note(f"note {number}")
    await town.later(5)
    assert (town.model.runs, host.state()["notes"]) == ([], 199)
    await host.note()
    await town.later(5)

    assert town.model.runs == [SPACE]
    listing = await list_all(town.world.memory, keys.live_prefix(SPACE))
    assert [info.key for info in listing.objects] == [keys.keep_key(SPACE, keys.LIVE)]


def test_the_world_starts_in_the_afternoon() -> None:
    """The hours of these tests are chosen by it."""
    assert START.hour == 14


@pytest.mark.parametrize("what", ["damaged", "gone", "ahead"])
async def test_hours_are_served_on_whatever_becomes_of_the_book(what: str, town: Town, autojump_clock: Clock) -> None:
    """A record that was lost, or told by a clock that is days ahead, costs at most a run, never all runs to come."""
    await town.host(at=(time(15, 30),))
    await town.sleep(5_401)
    assert len(town.model.runs) == 1
    far = town.clock.now() + timedelta(days=2)
    if what == "gone":
        await town.world.memory.delete(keys.schedule_key())
    else:
        told = Book(spaces={SPACE: Past(started=far, ended=far, served=far, host="other/1", state="ok")}).render()
        await town.world.put(keys.schedule_key(), told if what == "ahead" else b"\xffdamaged")
    for _ in range(5):
        await town.sleep(86_400)

    assert 5 <= len(town.model.runs) - 1 <= 6


async def test_notes_whose_plan_is_held_start_no_run_on_any_host_until_there_are_others(
    town: Town, autojump_clock: Clock
) -> None:
    for _ in range(3):
        await town.world.note("from before")
    notes = [
        info
        for info in await town.world.replica.names.walk(keys.live_prefix(SPACE))
        if not info.key.endswith(keys.KEEP)
    ]
    removes = tuple(NoteEntry(info.key, info.etag, "", "", "", "") for info in notes)
    plan = Entry(number=1, space=SPACE, state="held", committed_at=town.world.clock.now(), removes=removes)
    await town.world.put(keys.held_key(SPACE, 1), plan.render())

    host = await town.host(after_notes=1, cooldown=0)
    await town.later(3_600)
    assert town.model.runs == []
    assert "run 1 is held" in host.state()["held_back_by"]

    await host.note()
    await town.later(120)
    assert town.model.runs == [SPACE]


async def test_a_space_that_the_store_says_nothing_of_waits_and_the_reason_is_shown(
    town: Town, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> bool:
        raise Unreachable("down", endpoint="the bucket")

    host = await town.host(after_notes=1, cooldown=0)
    with monkeypatch.context() as during:
        during.setattr(scheduler, "is_space", away)
        await host.note()
        await town.later(120)
        assert town.model.runs == []
        assert "the store does not answer" in host.state()["held_back_by"]

    await town.later(600)
    assert town.model.runs == [SPACE]
