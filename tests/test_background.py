"""A task that nobody awaits: when it fails it is started again, counted and shown, and takes nothing with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import trio
import virtual
from trio.testing import MockClock

from livememfs.app import open_app
from livememfs.cache.replica import Replica
from livememfs.concurrency import FIRST_PAUSE, LONGEST_PAUSE, WELL, Background
from livememfs.config import Settings
from livememfs.errors import Denied, LiveMemError
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore

Told = list[tuple[str, str]]


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
def background(told: Told, expect_log: Callable[[str], None]) -> Background:
    expect_log("a background task failed")
    return Background(lambda *failure: told.append(failure))


async def test_a_task_that_fails_is_started_again_after_longer_and_longer_pauses(
    background: Background, told: Told, autojump_clock: MockClock
) -> None:
    begun: list[float] = []

    async def work() -> None:
        begun.append(trio.current_time())
        if len(begun) < 9:
            raise OverflowError

    await background.keep("watch", work)

    pauses = [after - before for before, after in pairwise(begun)]
    assert pauses == pytest.approx([FIRST_PAUSE * 2**n for n in range(5)] + [LONGEST_PAUSE] * 3)
    assert background.statistics().failures == {"watch": 8}
    assert told == [("watch", "internal error: OverflowError; see the log")]


async def test_it_is_shown_until_it_has_gone_well_for_a_while(
    background: Background, told: Told, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    fails = [True, False]

    async def work() -> None:
        if fails.pop(0):
            raise Denied("no")
        await trio.sleep_forever()

    nursery.start_soon(background.keep, "beacon", work)
    await trio.sleep(FIRST_PAUSE + WELL - 0.1)
    assert list(background.failing()) == ["beacon"]
    assert background.statistics().failing == 1
    await trio.sleep(0.2)
    assert background.failing() == {}
    assert background.statistics().failures == {"beacon": 1}
    assert len(told) == 1


async def test_each_new_failure_is_told_and_the_same_one_only_once(
    background: Background, told: Told, autojump_clock: MockClock
) -> None:
    fails: list[Exception] = [LiveMemError("a"), LiveMemError("a"), LiveMemError("b"), ValueError("private")]

    async def work() -> None:
        if fails:
            raise fails.pop(0)
        if len(told) == 3:
            fails.append(LiveMemError("b"))
            told.append(("", ""))
            await trio.sleep(WELL + LONGEST_PAUSE)
            raise fails.pop(0)

    await background.keep("x", work)

    reasons = [reason for _, reason in told]
    assert reasons == ["a", "b", "internal error: ValueError; see the log", "", "b"]


async def test_what_ends_everything_and_what_ends_well_pass(background: Background, autojump_clock: MockClock) -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await background.keep("x", interrupted)
    with trio.move_on_after(5) as scope:
        await background.keep("x", trio.sleep_forever)
    assert scope.cancelled_caught
    await background.keep("x", trio.lowlevel.checkpoint)
    assert background.statistics().failures == {}


async def test_a_failure_while_everything_ends_ends_nothing_else(
    background: Background, autojump_clock: MockClock
) -> None:
    """A nursery that is being cancelled and has a child that fails raises both at once."""

    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OverflowError

    async def work() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(fails_when_cancelled)
            inner.start_soon(trio.sleep_forever)

    with trio.move_on_after(1) as scope:
        await background.keep("x", work)
    assert scope.cancelled_caught
    assert background.statistics().failures == {"x": 1}


async def test_what_fails_before_it_has_started_is_raised_and_later_it_is_started_again(
    background: Background, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    runs = 0

    async def refuses(*, task_status: trio.TaskStatus[str]) -> None:
        raise LiveMemError("the port is taken")

    async def serves(*, task_status: trio.TaskStatus[str]) -> None:
        nonlocal runs
        runs += 1
        task_status.started(f"here {runs}")
        if runs == 1:
            raise OSError
        await trio.sleep_forever()

    async with trio.open_nursery() as other:
        with pytest.raises(LiveMemError):
            await other.start(background.keep, "web", refuses)
    assert await nursery.start(background.keep, "web", serves) == "here 1"
    await trio.sleep(FIRST_PAUSE + 1)
    assert runs == 2


async def test_tasks_beside_a_nursery_do_not_end_it(
    background: Background, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    async def fails(_: int) -> None:
        raise OverflowError

    beside = background.beside(nursery, "runs")
    beside.start_soon(fails, 1)
    beside.start_soon(fails, 2)
    await trio.sleep(1)
    assert background.statistics().failures == {"runs": 2}
    assert not nursery.cancel_scope.cancel_called


async def test_an_upload_that_was_on_its_way_when_the_uploader_failed_is_sent_again(
    nursery: trio.Nursery, autojump_clock: MockClock, expect_log: Callable[[str], None]
) -> None:
    expect_log("a background task failed")
    memory, failures = MemoryStore(), [OverflowError()]
    replica = Replica(memory)
    attempt = replica.uploader._attempt

    async def fails_first(*args: Any) -> None:
        if failures:
            raise failures.pop()
        await attempt(*args)

    with patch.object(replica.uploader, "_attempt", fails_first):
        await nursery.start(replica.run)
        replica.save("a", b"x", meta={}, base=None)
        await replica.uploaded()

    assert (await memory.get("a")).data == b"x"
    assert replica.background.statistics().failures == {"upload": 1}


PERIODIC = (
    "livememfs.cache.beacon.Beacon.flush",
    "livememfs.cache.replica.Replica.persist",
    "livememfs.cache.watcher.Watcher._forget",
    "livememfs.memories.uses.Uses.write",
    "livememfs.spaces.tokens.Tokens.write_uses",
    "livememfs.tree.rejected.RejectedReplies.forget",
    "livememfs.tree.root.Root.keep_drafts",
)


def test_whatever_an_app_does_by_itself_its_failure_is_shown_and_does_not_end_it(
    tmp_path: Path, expect_log: Callable[[str], None]
) -> None:
    """All of them at once; when they work again, nothing is left of it but the count."""
    expect_log("a background task failed")
    settings = Settings(store=str(tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none", host="here")

    def fails(*_: Any, **__: Any) -> None:
        raise OverflowError

    async def main() -> None:
        async with open_app(settings, serving=True) as app:
            with ExitStack() as patches:
                for name in PERIODIC:
                    patches.enter_context(patch(name, fails))
                await app.replica.put("alpha/_meta.json", b"{}")
                app.replica.names.watch.used("alpha/")
                app.tokens._wanted.set()
                await trio.sleep(630)
                failing = app.tree.context.status()
            assert failing["state"] == "degraded"
            names = {"beacon", "cache", "drafts", "rejected replies", "tokens", "uses", "watch"}
            lines = [json.loads(line) for line in app.errors.errors().splitlines()]
            assert set(failing["failing_tasks"]) == names
            assert {line["what"].partition(":")[0] for line in lines} == names
            assert all(sum(line["what"].startswith(f"{name}:") for line in lines) <= 2 for name in names)
            await trio.sleep(WELL + LONGEST_PAUSE + 2)
            assert app.tree.context.status()["state"] == "ok"

    store = RetryingStore(MemoryStore())  # whose answers need no thread, beside which time would go on
    with patch("livememfs.app.open_store", lambda *_: store):
        virtual.run(main)
