"""Requests queue per space, coalesce, can be waited for, cancelled and rehearsed; shutting down loses nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from consolidation_world import SPACE, World, answering, begun, filing, result_of, until_asked

from livememfs.errors import BadRequest, RunCancelled
from livememfs.records import keys
from livememfs.runs.options import RunOptions
from livememfs.runs.queue import RunQueue
from livememfs.testing.llm import Scripted, consolidation_reply

REPLY = consolidation_reply({"progress.md": "# Progress\n\nnew\n"})
HELD = Scripted(json.dumps(REPLY), hold=True)
DRY = RunOptions(dry_run=True)


@pytest.fixture
async def world() -> World:
    return await World.seeded(notes=2, bank={"progress.md": "# Progress\n\nold\n"})


# --- coalescing ---------------------------------------------------------------------------------------------------


async def test_requests_that_wait_share_one_run(world: World) -> None:
    async with answering(world, REPLY) as (consolidations, llm):
        tickets = {consolidations.touch(SPACE) for _ in range(5)}
        assert consolidations.status(SPACE)["state"] == "queued"
        await result_of(consolidations, *tickets)

    assert len(tickets) == len(llm.requests) == 1
    assert consolidations.statistics().joined == 4


async def test_requests_during_a_run_share_one_run_after_it(world: World) -> None:
    async with answering(world, HELD, REPLY) as (consolidations, llm):
        first = await begun(consolidations, llm)
        await world.note("late")
        later = {consolidations.touch(SPACE) for _ in range(3)}
        llm.release()
        assert (await result_of(consolidations, first))["notes_processed"] == 2
        assert (await result_of(consolidations, *later))["notes_processed"] == 1

    assert len(llm.requests) == 2
    assert await world.live() == []


async def test_requests_with_other_options_get_a_run_of_their_own(world: World) -> None:
    async with answering(world, REPLY, REPLY) as (consolidations, _):
        tickets = [consolidations.touch(SPACE, options) for options in (DRY, None, DRY, RunOptions())]
        assert tickets == [1, 2, 1, 2]
        assert (await result_of(consolidations, 1))["dry_run"] is True
        assert (await result_of(consolidations, 2))["dry_run"] is False


async def test_runs_of_one_space_never_overlap_and_those_of_two_do(world: World) -> None:
    other = World()
    other.memory, other.store, other.replica = world.memory, world.store, world.replica
    await world.put("beta/_meta.json", (await world.get(keys.meta_key(SPACE))).replace(b"alpha", b"beta"))
    await world.put("beta/live/20260101T000000_a_todo_00000000.md", "x")
    async with answering(world, HELD, HELD, REPLY) as (consolidations, llm):
        consolidations.touch(SPACE)
        consolidations.touch("beta")
        await until_asked(llm, 2)
        await world.note("late")
        again = consolidations.touch(SPACE)
        await trio.testing.wait_all_tasks_blocked()
        assert len(llm.requests) == 2
        assert consolidations.statistics().running == 2
        llm.release()
        assert (await result_of(consolidations, again))["state"] == "ok"


async def test_a_request_after_the_last_run_starts_a_new_one(world: World) -> None:
    async with answering(world, REPLY) as (consolidations, _):
        assert (await consolidations.run_once(SPACE)).metrics.notes_processed == 2
        assert (await consolidations.run_once(SPACE)).message == "No new notes to consolidate"
        assert consolidations.latest(SPACE) == 2


async def test_a_failed_run_does_not_stop_the_next(world: World) -> None:
    async with answering(world, Scripted("oops", status=500), REPLY) as (consolidations, _):
        assert (await consolidations.run_once(SPACE)).state == "error"
        assert (await consolidations.run_once(SPACE)).state == "ok"

    figures = consolidations.statistics()
    assert (figures.ok, figures.error, figures.running, figures.queued) == (1, 1, 0, 0)


# --- progress -----------------------------------------------------------------------------------------------------


async def test_waiting_tells_each_change_at_once_and_something_every_second(
    world: World, mock_clock: trio.testing.MockClock
) -> None:
    values: list[dict[str, Any]] = []
    async with answering(world, "not JSON", HELD, timeout=600) as (consolidations, llm), trio.open_nursery() as nursery:
        ticket = consolidations.touch(SPACE)

        @nursery.start_soon
        async def _() -> None:
            values.extend([value async for value in consolidations.wait(SPACE, ticket)])

        await until_asked(llm, 2)
        for _ in range(3):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(1)
        await trio.testing.wait_all_tasks_blocked()
        llm.release()

    *progress, end = [value for value in values if value["state"] != "queued"]
    assert [(value["phase"], value["elapsed_seconds"]) for value in progress] == [
        ("waiting for its turn", 0.0),
        ("gathering", 0.0),
        ("asking", 0.0),
        ("asking again", 0.0),
        ("asking again", 1.0),
        ("asking again", 2.0),
        ("asking again", 3.0),
        ("backing up", 3.0),
        ("writing", 3.0),
        ("removing", 3.0),
    ]
    assert (end["state"], end["duration_seconds"]) == ("ok", 3.0)
    assert all(value["status"] == value["state"] for value in values)


async def test_the_last_value_of_waiting_is_the_result_and_status_repeats_it(world: World) -> None:
    async with answering(world, REPLY) as (consolidations, _):
        last = await result_of(consolidations, consolidations.touch(SPACE))

        assert last == consolidations.status(SPACE)
        assert (last["space"], last["run"], last["state"], last["notes_processed"]) == (SPACE, 1, "ok", 2)
        assert [value async for value in consolidations.wait(SPACE)] == [last]


async def test_waiting_where_nothing_was_ever_asked_for_ends_at_once(world: World) -> None:
    async with filing(world) as consolidations:
        idle = {"space": SPACE, "status": "idle", "state": "idle"}
        assert [value async for value in consolidations.wait(SPACE)] == [idle]
        assert [value async for value in consolidations.wait(SPACE, 99)] == [idle]


async def test_the_result_of_an_old_ticket_is_its_own_not_the_latest(world: World) -> None:
    async with answering(world, Scripted("oops", status=500), REPLY) as (consolidations, _):
        for _ in range(2):
            await consolidations.run_once(SPACE)

        assert (await result_of(consolidations, 1))["state"] == "error"
        assert (await result_of(consolidations, 2))["state"] == "ok"


async def test_the_status_of_a_run_shows_what_it_is_doing_and_how_the_last_one_ended(world: World) -> None:
    async with answering(world, Scripted("oops", status=500), HELD) as (consolidations, llm):
        await consolidations.run_once(SPACE)
        ticket = consolidations.touch(SPACE)
        await until_asked(llm, 2)
        status = consolidations.status(SPACE)
        llm.release()
        await result_of(consolidations, ticket)

    assert (status["state"], status["phase"], status["notes"], status["run"]) == ("running", "asking", 2, 2)
    assert status["last"]["state"] == "error"
    json.dumps(status)


async def test_many_waiters_see_the_same_end(world: World) -> None:
    ends: list[dict[str, Any]] = []
    async with answering(world, HELD) as (consolidations, llm), trio.open_nursery() as nursery:
        ticket = consolidations.touch(SPACE)

        async def wait() -> None:
            ends.append(await result_of(consolidations, ticket))

        for _ in range(5):
            nursery.start_soon(wait)
        await until_asked(llm)
        llm.release()

    assert len(ends) == 5
    assert all(end == ends[0] for end in ends)


# --- cancelling ---------------------------------------------------------------------------------------------------


async def test_a_run_that_asks_the_model_can_be_cancelled_and_changes_nothing(world: World) -> None:
    before = await world.bucket()
    async with answering(world, HELD, REPLY) as (consolidations, llm):
        ticket = await begun(consolidations, llm)
        assert consolidations.touch(SPACE, RunOptions(cancel=True)) == ticket
        end = await result_of(consolidations, ticket)
        assert await world.bucket() == before
        llm.release()
        assert (await consolidations.run_once(SPACE)).state == "ok"

    assert (end["state"], end["reason"], end["notes_remaining"]) == ("error", "the run was cancelled", 2)


async def test_cancelling_drops_what_waits_too(world: World) -> None:
    async with answering(world, HELD) as (consolidations, llm):
        tickets = [consolidations.touch(SPACE)]
        await until_asked(llm)
        tickets += [consolidations.touch(SPACE), consolidations.touch(SPACE, DRY)]
        assert consolidations.cancel(SPACE)
        ends = [await result_of(consolidations, ticket) for ticket in tickets]

    assert [end["state"] for end in ends] == ["error"] * 3
    assert len(llm.requests) == 1


async def test_a_run_that_writes_is_not_cancelled(world: World, autojump_clock: trio.testing.MockClock) -> None:
    world.store.latency("put", 5.0)
    async with filing(world) as consolidations:
        ticket = consolidations.touch(SPACE)
        while consolidations.status(SPACE).get("phase") != "writing":
            await trio.sleep(0.5)
        assert not consolidations.cancel(SPACE)
        assert (await result_of(consolidations, ticket))["state"] == "ok"

    assert await world.live() == []


async def test_cancelling_where_nothing_runs_is_no_error(world: World) -> None:
    async with filing(world) as consolidations:
        assert not consolidations.cancel(SPACE)
        assert consolidations.touch(SPACE, RunOptions(cancel=True)) == 0
        assert consolidations.status(SPACE)["state"] == "idle"


async def test_whoever_gives_up_waiting_for_a_run_of_their_own_cancels_it(world: World) -> None:
    before = await world.bucket()
    async with answering(world, HELD) as (consolidations, llm):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consolidations.run_once, SPACE)
            await until_asked(llm)
            nursery.cancel_scope.cancel()
        assert (await result_of(consolidations, 1))["reason"] == "the run was cancelled"

    assert await world.bucket() == before


# --- shutting down ------------------------------------------------------------------------------------------------


async def test_draining_cancels_a_run_that_waits_for_the_model(world: World) -> None:
    before = await world.bucket()
    async with answering(world, HELD) as (consolidations, llm):
        ticket = await begun(consolidations, llm)
        await consolidations.drain()
        assert (await result_of(consolidations, ticket))["state"] == "error"
        late = consolidations.touch(SPACE)
        assert (await result_of(consolidations, late))["reason"] == "the run was cancelled"

    assert len(llm.requests) == 1
    assert await world.bucket() == before


async def test_draining_lets_a_run_that_writes_finish(world: World, autojump_clock: trio.testing.MockClock) -> None:
    world.store.latency("put", 5.0)
    async with filing(world) as consolidations:
        ticket = consolidations.touch(SPACE)
        while consolidations.status(SPACE).get("phase") != "writing":
            await trio.sleep(0.5)
        await consolidations.drain()
        assert (await result_of(consolidations, ticket))["state"] == "ok"


async def test_draining_does_not_wait_for_ever(world: World, autojump_clock: trio.testing.MockClock) -> None:
    notes = await world.live()
    async with filing(world) as consolidations:
        world.store.latency("put", 5.0)
        ticket = consolidations.touch(SPACE)
        while consolidations.status(SPACE).get("phase") != "writing":
            await trio.sleep(0.5)
        world.store.blackhole = True
        started = trio.current_time()
        await consolidations.drain(timeout=10)

        assert trio.current_time() - started < 11
        assert (await result_of(consolidations, ticket))["state"] == "error"
    assert await world.live() == notes


async def test_a_crash_of_the_rest_of_the_daemon_does_not_tear_a_run_that_writes(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    world.store.latency("put", 5.0)
    async with trio.open_nursery() as nursery:
        consolidations = RunQueue(world.replica, world.clock, None, nursery=nursery)
        consolidations.touch(SPACE)
        while consolidations.status(SPACE).get("phase") != "writing":
            await trio.sleep(0.5)
        nursery.cancel_scope.cancel()

    assert consolidations.status(SPACE)["state"] == "ok"
    assert await world.live() == []


async def test_a_run_that_dies_with_its_nursery_is_told_to_be_cancelled(world: World) -> None:
    async with answering(world, HELD) as (consolidations, llm):
        ticket = await begun(consolidations, llm)

    assert (await result_of(consolidations, ticket))["reason"] == str(RunCancelled())


# --- rehearsing ---------------------------------------------------------------------------------------------------


async def test_a_dry_run_writes_nothing_not_even_rules_and_leaves_a_diff() -> None:
    world = await World.seeded(notes=3, bank={"progress.md": "# Progress\n\nold"}, rules=None)
    before = await world.bucket()
    reply = consolidation_reply(
        {"progress.md": "# Progress\n\nnew", "d/new.md": "# New\n"},
        synthesis="Done.\n",
        used={1: ["progress.md", "d/new.md"]},
        skipped={2: "known\nalready"},
    )
    async with answering(world, reply) as (consolidations, _):
        end = await result_of(consolidations, consolidations.touch(SPACE, DRY))

    names = [key.rpartition("/")[2] for key in await world.live()]
    assert await world.bucket() == before
    assert (end["state"], end["dry_run"]) == ("ok", True)
    assert (end["bank_files_updated"], end["bank_files_created"], end["notes_processed"]) == (1, 1, 2)
    assert "nothing was written" in end["message"]
    assert consolidations.diff(SPACE) == "\n".join(
        [
            "--- a/bank/progress.md",
            "+++ b/bank/progress.md",
            "@@ -1,3 +1,3 @@",
            " # Progress",
            " ",
            "-old",
            "\\ No newline at end of file",
            "+new",
            "\\ No newline at end of file",
            "",
            "--- /dev/null",
            "+++ b/bank/d/new.md",
            "@@ -0,0 +1 @@",
            "+# New",
            "",
            "--- /dev/null",
            "+++ b/_synthesis.md",
            "@@ -0,0 +1 @@",
            "+Done.",
            "",
            "# note -> what would become of it",
            f"# {names[0]} -> progress.md, d/new.md",
            f"# {names[1]} -> skipped: known already",
            f"# {names[2]} -> not accounted for, stays",
            "",
            "# lines that the bank would say no more",
            "# progress.md: old",
            "",
        ]
    )


async def test_a_refused_dry_run_keeps_the_last_diff(world: World) -> None:
    async with answering(world, REPLY, "no", "no") as (consolidations, _):
        await consolidations.run_once(SPACE, DRY)
        diff = consolidations.diff(SPACE)
        assert (await consolidations.run_once(SPACE, DRY)).state == "error"

    assert diff is not None
    assert consolidations.diff(SPACE) == diff


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b" \n", b"\0", b"{}", b"\xef\xbb\xbf{}\n"])
def test_nothing_written_means_no_options(data: bytes) -> None:
    assert RunOptions.parse(data) == RunOptions()


def test_all_options_are_read() -> None:
    data = b'{"dry_run": true, "agent": "cline", "max_notes": 50, "cancel": false}\n'

    assert RunOptions.parse(data) == RunOptions(dry_run=True, agent="cline", max_notes=50)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"now", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"true", "not a JSON object"),
        (b'{"dryrun": true}', "no option 'dryrun'"),
        (b'{"dry_run": 1}', "dry_run is true or false"),
        (b'{"cancel": "yes"}', "cancel is true or false"),
        (b'{"agent": 5}', "agent is the name"),
        (b'{"agent": ""}', "agent is the name"),
        (b'{"max_notes": 0}', "max_notes is a number"),
        (b'{"max_notes": true}', "max_notes is a number"),
        (b'{"max_notes": "5"}', "max_notes is a number"),
        (b'{"max_notes": 5.0}', "max_notes is a number"),
    ],
)
def test_what_cannot_be_an_option_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason) as caught:
        RunOptions.parse(data, path="alpha/.consolidate")

    assert str(caught.value).startswith("alpha/.consolidate: ")
