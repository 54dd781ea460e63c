"""When a session is due to be observed: each wait by itself, in virtual time."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.inbox import Standing
from livememfs.observing.ask import ObserveSettings
from livememfs.observing.due import Due
from livememfs.observing.known import SessionPlace
from livememfs.records.event import Kind
from livememfs.testing.clock import ManualClock

ONE, TWO, ELSEWHERE = SessionPlace("alpha", "one"), SessionPlace("alpha", "two"), SessionPlace("beta", "one")
SETTINGS = ObserveSettings()
Waiting = dict[Kind, Standing]


class Desk:
    """The waits of an observer, on a clock that goes as virtual time does."""

    def __init__(self, *, free: bool = False) -> None:
        self.clock = ManualClock()
        self.due = Due(self.clock, SETTINGS, free=free)

    async def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await trio.sleep(seconds)

    def left(self, waiting: Waiting, *, tries: int = 0) -> float:
        """In how many seconds `ONE` is due."""
        moment, place = self.due.first({("alpha", "one"): waiting}, lambda _: tries)
        assert place == ONE
        return moment - trio.current_time() if moment > -math.inf else moment


@pytest.fixture
async def desk() -> Desk:
    made = Desk()
    made.due.heard(ONE)
    return made


def tools(number: int, *, size: int = 10, first: int = 1, last: int = 0) -> Standing:
    return Standing(number, size, first, last or first + number - 1)


def at(last: int) -> Standing:
    return Standing(1, 0, last, last)


@pytest.mark.parametrize(
    ("waiting", "seconds"),
    [
        ({"tool": tools(16)}, -math.inf),
        ({"tool": tools(15), "said": tools(1)}, -math.inf),
        ({"tool": tools(15)}, 30),
        ({"tool": tools(8)}, 30),
        ({"tool": tools(7)}, 180),
        ({"tool": tools(1, size=110_000)}, -math.inf),
        ({"tool": tools(1, size=60_000), "said": tools(1, size=50_000)}, -math.inf),
        ({"tool": tools(1, size=109_999)}, 180),
        ({"tool": tools(1), "end": at(5)}, 0.5),
        ({"tool": tools(1), "start": at(5)}, 0.5),
        ({"tool": tools(1), "prompt": at(5)}, 0.5),
        ({"tool": tools(1), "stop": at(5)}, 10),
        ({"tool": tools(5), "stop": at(5)}, 180),  # it has gone on since
    ],
)
async def test_a_batch_waits_for_more_unless_it_is_full_or_has_ended(
    desk: Desk, autojump_clock: Clock, waiting: Waiting, seconds: float
) -> None:
    assert desk.left(waiting) == seconds


async def test_nothing_is_due_where_nothing_waits(desk: Desk, autojump_clock: Clock) -> None:
    assert desk.due.first({}, lambda _: 0) == (math.inf, None)


async def test_what_comes_later_puts_it_off_and_what_was_part_of_a_call_waits_for_nothing(
    desk: Desk, autojump_clock: Clock
) -> None:
    await desk.later(7)
    assert desk.left({"tool": tools(8)}) == 23
    desk.due.heard(ONE)
    assert desk.left({"tool": tools(8)}) == 30
    assert desk.left({"tool": tools(8)}, tries=1) == -math.inf
    assert desk.left({"stop": at(5)}, tries=1) == 10


@pytest.mark.parametrize(
    ("small", "seconds"), [(0, 10), (1, 40), (2, 160), (3, 640), (4, 2_560), (5, 3_600), (400, 3_600)]
)
async def test_each_stop_with_little_to_observe_makes_the_next_one_wait_longer(
    desk: Desk, autojump_clock: Clock, small: int, seconds: float
) -> None:
    for _ in range(small):
        desk.due.small(ONE)

    assert desk.left({"tool": tools(1), "stop": at(5)}) == seconds
    desk.left({"start": at(6)})  # the session goes on
    assert desk.left({"tool": tools(1), "stop": at(7)}) == 10


async def test_a_stop_before_the_last_prompt_counts_no_more(desk: Desk, autojump_clock: Clock) -> None:
    desk.left({"prompt": at(6)})

    assert desk.left({"tool": tools(1), "stop": at(5)}) == 180
    assert desk.left({"tool": tools(1), "stop": at(7)}) == 10


async def test_what_costs_nothing_waits_a_second(autojump_clock: Clock) -> None:
    free = Desk(free=True)
    free.due.heard(ONE)

    assert free.left({"tool": tools(1)}) == free.left({"tool": tools(1), "stop": at(5)}) == 1


async def test_after_a_failure_a_session_waits_and_can_be_let_go(desk: Desk, autojump_clock: Clock) -> None:
    desk.due.hold(ONE, 60)
    assert desk.left({"tool": tools(16)}) == desk.left({"prompt": at(1)}) == 60
    await desk.later(20)
    assert desk.left({"tool": tools(16)}) == 40
    desk.due.let_go(ONE)
    desk.due.let_go(TWO)  # it was not held
    assert desk.left({"tool": tools(16)}) == -math.inf


async def test_without_a_model_all_wait_twice_as_long_each_time_up_to_an_hour(
    desk: Desk, autojump_clock: Clock
) -> None:
    waits = []
    for _ in range(12):
        desk.due.out()
        waits.append(desk.left({"tool": tools(16)}))
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600]
    for _ in range(2_000):  # for months
        desk.due.out()
    assert desk.left({"tool": tools(16)}) == 3_600
    assert desk.left({"prompt": at(1)}) == 0.5  # what no model is asked for
    desk.due.reached()
    assert desk.left({"tool": tools(16)}) == -math.inf
    desk.due.out()
    assert desk.left({"tool": tools(16)}) == 5


async def test_a_spent_budget_pauses_all_until_the_next_utc_day(desk: Desk, autojump_clock: Clock) -> None:
    assert not desk.due.is_paused()
    desk.due.pause()

    assert desk.due.is_paused()
    assert desk.due.paused_until == datetime(2026, 2, 21, tzinfo=UTC)
    assert desk.left({"tool": tools(16)}) == 600  # then the clock is looked at
    await desk.later(10 * 3_600 - 60)
    assert desk.left({"tool": tools(16)}) == 60
    await desk.later(60)
    assert (desk.left({"tool": tools(16)}), desk.due.is_paused(), desk.due.paused_until) == (-math.inf, False, None)


@pytest.mark.parametrize("days", [-1, 1])
async def test_a_clock_that_is_set_to_another_day_ends_the_pause(desk: Desk, autojump_clock: Clock, days: int) -> None:
    desk.due.pause()
    desk.clock.advance(days=days)

    assert not desk.due.is_paused()


async def test_a_new_session_hurries_what_others_of_its_space_left(desk: Desk, autojump_clock: Clock) -> None:
    """It waits for its first answer, and then for what they found out."""
    desk.due.heard(ELSEWHERE)
    await desk.later(10)
    desk.due.heard(TWO)
    left, other = {"tool": tools(2, first=1), "said": tools(1, first=9)}, {"tool": tools(2)}
    waits = {("alpha", "one"): left, ("alpha", "two"): {"start": at(5)}, ("beta", "one"): other}

    moment, _ = desk.due.first(waits, lambda _: 0)
    assert moment == trio.current_time() + 0.5
    assert desk.left({"tool": tools(2, first=9), "stop": at(11)}) == 0.5  # the last one that it had left
    assert desk.left({"tool": tools(2, first=10)}) == 170  # newer ones wait as usual
    alone, place = desk.due.first({("beta", "one"): other}, lambda _: 0)
    assert (alone, place) == (trio.current_time() + 170, ELSEWHERE)


async def test_the_one_that_is_due_first_comes_first(desk: Desk, autojump_clock: Clock) -> None:
    await desk.later(1)
    desk.due.heard(TWO)
    waits = {("alpha", "one"): {"tool": tools(1)}, ("alpha", "two"): {"tool": tools(8)}}

    assert desk.due.first(waits, lambda _: 0) == (trio.current_time() + 30, TWO)


async def test_after_a_restart_what_others_left_is_due_though_nobody_knows_when_the_new_session_began(
    desk: Desk, autojump_clock: Clock
) -> None:
    waits = {("alpha", "one"): {"tool": tools(2)}, ("alpha", "two"): {"start": at(5)}}

    desk.due.first(waits, lambda _: 0)

    assert desk.left({"tool": tools(2)}) == -math.inf
