"""What two operations of one name stand for: each rule of `cache/journal/settling.py`, by the harm it keeps away."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from journal_world import KEY, Machine, lose_the_answer, save, tried_in_vain, unreachable
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.conflicts import TryAgain, settle_put
from livememfs.cache.journal.operation import FREE, Operation
from livememfs.cache.replica import Replica
from livememfs.records.metadata import META_OP
from livememfs.store.content import content_etag
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, StoreRequest

ROOT = Path(__file__).resolve().parents[2]
OTHER = "space/other.txt"


def failing(machine: Machine, *verbs_and_keys: tuple[str, str]) -> Callable[[], None]:
    """Requests that get no answer, until the returned function is called."""
    away = set(verbs_and_keys)

    def plan(asked: StoreRequest, _: int) -> Fault | None:
        return Fault(before=unreachable()) if (asked.verb, asked.key) in away else None

    machine.store.plan = plan
    return away.clear


# --- take over -----------------------------------------------------------------------------------------------------


async def test_a_new_file_saved_again_and_removed_after_a_lost_answer_leaves_nothing(
    machine: Machine, autojump_clock: Clock
) -> None:
    """The second version was never sent, and still there is something to remove: the first one."""
    async with machine.running() as replica:
        first = save(replica, b"first")
        await lose_the_answer(machine, replica)
        replica.remove(KEY, base=save(replica, b"second", first))
        assert await machine.bucket() == {KEY: b"first"}
        machine.store.plan = None
        await replica.uploaded()

    assert await machine.bucket() == {}


async def test_the_second_of_two_saves_is_joined_with_another_hosts_as_the_first_would_have_been(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"a\n", meta={})
    async with machine.running() as replica:
        first = save(replica, b"a\nours\n", (await replica.read(KEY)).info)
        save(replica, b"a\nours\nmore\n", first)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        await replica.uploaded()

    assert set((await machine.bucket())[KEY].split()) == {b"a", b"ours", b"more", b"theirs"}
    assert machine.conflicts == []


async def test_what_is_written_under_the_old_name_waits_until_the_bucket_has_the_new_one(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Else the bucket would have the renamed content under neither name for a while."""
    await machine.memory.put(KEY, b"old", meta={})
    async with machine.running() as replica:
        arrive = failing(machine, ("put", OTHER))
        replica.move((await replica.read(KEY)).info, OTHER, replaces=None)
        save(replica, b"new")
        await trio.sleep(10)
        assert await machine.bucket() == {KEY: b"old"}
        arrive()
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"new", OTHER: b"old"}


async def test_the_removal_of_an_old_name_waits_for_what_is_saved_under_the_new_one(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"old", meta={})
    async with machine.running() as replica:
        arrive = failing(machine, ("put", OTHER))
        moved = replica.move((await replica.read(KEY)).info, OTHER, replaces=None)
        save(replica, b"old and more", moved, OTHER)
        await trio.sleep(10)
        assert await machine.bucket() == {KEY: b"old"}
        arrive()
        await replica.uploaded()

    assert await machine.bucket() == {OTHER: b"old and more"}


async def test_content_that_the_bucket_never_heard_of_waits_for_nobody_under_its_next_name(
    machine: Machine, autojump_clock: Clock
) -> None:
    """And its old name is left alone: what is there now is another host's."""
    await machine.memory.put(KEY, b"old", meta={})
    async with machine.running() as replica:
        machine.store.latency("delete", 1.0)
        arrive = failing(machine, ("put", OTHER))
        replica.remove(KEY, base=(await replica.read(KEY)).info)
        await trio.sleep(0.5)
        replica.move(save(replica, b"second"), OTHER, replaces=None)
        third = save(replica, b"third")
        await trio.sleep(5)
        assert await machine.bucket() == {}, "the removal has arrived, and nothing else"
        replica.move(third, "space/third", replaces=None)
        await machine.memory.put(KEY, b"theirs", meta={})
        await trio.sleep(60)
        assert await machine.bucket() == {KEY: b"theirs", "space/third": b"third"}
        arrive()
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"theirs", OTHER: b"second", "space/third": b"third"}


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_stored_file_removed_while_a_new_version_is_tried_again_goes_whether_that_arrived_or_not(
    machine: Machine, autojump_clock: Clock, arrived: bool
) -> None:
    await machine.memory.put(KEY, b"old", meta={})
    async with machine.running() as replica:
        base = (await replica.read(KEY)).info
        new = save(replica, b"new", base)
        if arrived:
            await lose_the_answer(machine, replica)
        else:
            machine.store.fail_all = unreachable()
            await tried_in_vain(replica)
        assert await machine.bucket() == {KEY: b"new" if arrived else b"old"}
        replica.remove(KEY, base=new)
        machine.store.plan = machine.store.fail_all = None
        await replica.uploaded()

    assert await machine.bucket() == {}


# --- swallow -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", [b"theirs", b"ours"], ids=["other bytes", "the same bytes"])
async def test_a_removal_behind_a_new_file_that_never_arrived_takes_nothing_of_another_hosts(
    machine: Machine, autojump_clock: Clock, theirs: bytes
) -> None:
    async with machine.running() as replica:
        info = save(replica, b"ours")
        machine.store.script("put", Fault(delay=0.5, before=unreachable()))
        await trio.sleep(0.5)
        machine.store.fail_all = unreachable()
        replica.remove(KEY, base=info)
        while any(op.in_flight or op.kind == "put" for op in replica.journal.ops.all()):
            await trio.sleep(0.1)
        await machine.memory.put(KEY, theirs, meta={})
        machine.store.fail_all = None
        await replica.uploaded()
        assert (await replica.read(KEY)).data == theirs

    assert await machine.bucket() == {KEY: theirs}


async def test_a_version_behind_one_that_never_arrived_is_joined_with_another_hosts(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"a\n", meta={})
    async with machine.running() as replica:
        base = (await replica.read(KEY)).info
        machine.store.script("put", Fault(delay=0.5, before=unreachable()))
        first = save(replica, b"a\nours\n", base)
        await trio.sleep(0.5)
        machine.store.fail_all = unreachable()
        save(replica, b"a\nours\nmore\n", first)
        await tried_in_vain(replica)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        machine.store.fail_all = None
        await replica.uploaded()

    assert set((await machine.bucket())[KEY].split()) == {b"a", b"ours", b"more", b"theirs"}
    assert machine.conflicts == []


async def test_a_version_behind_one_that_is_refused_for_good_is_not_stuck(
    machine: Machine, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    """The bucket may take it, and nobody waits a minute for that."""
    expect_log("the bucket does not take it")
    async with machine.running() as replica:
        machine.store.script("put", Fault(delay=0.5, before=errors.Denied("no right", key=KEY)))
        first = save(replica, b"first")
        await trio.sleep(0.5)
        save(replica, b"second", first)
        while KEY in replica.journal.ops.flying:
            await trio.sleep(0.01)
        assert replica.statistics().journal.stuck == 0
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"second"}


# --- follow --------------------------------------------------------------------------------------------------------


async def test_a_version_behind_one_that_arrived_is_joined_with_what_another_host_made_of_that(
    machine: Machine, autojump_clock: Clock
) -> None:
    machine.store.latency("put", 1.0)
    async with machine.running() as replica:
        first = save(replica, b"a\nours\n")
        await trio.sleep(0.5)
        save(replica, b"a\nours\nmore\n", first)
        await trio.sleep(0.8)
        assert await machine.bucket() == {KEY: b"a\nours\n"}
        await machine.memory.put(KEY, b"a\nours\ntheirs\n", meta={})
        await replica.uploaded()

    assert set((await machine.bucket())[KEY].split()) == {b"a", b"ours", b"more", b"theirs"}
    assert machine.conflicts == []


async def test_the_removal_of_what_never_was_in_the_bucket_is_not_asked_for(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Made again while its removal was in flight, and removed again: one removal is enough."""
    await machine.memory.put(KEY, b"ours\n", meta={})
    machine.store.latency("delete", 1.0)
    async with machine.running() as replica:
        replica.remove(KEY, base=(await replica.read(KEY)).info)
        await trio.sleep(0.8)
        replica.remove(KEY, base=save(replica, b"made again\n"))
        await replica.uploaded()

    assert machine.store.counts["delete"] == 1
    assert await machine.bucket() == {}


async def test_attributes_that_wait_behind_a_version_show_its_size_with_its_content(
    machine: Machine, autojump_clock: Clock
) -> None:
    """The version was joined with another host's when they were set; a size never shows with other bytes."""
    await machine.memory.put(KEY, b"a\n", meta={})
    machine.store.latency("put", 1.0)
    machine.store.latency("copy", 1.0)
    async with machine.running() as replica:
        ours = save(replica, b"a\nours\n", (await replica.read(KEY)).info)
        await trio.sleep(0.8)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        replica.restamp(ours, {"colour": "blue"})
        while KEY in replica.journal.ops.flying and replica.journal.ops.flying[KEY].kind == "put":
            await trio.sleep(0.05)
        shown = replica.names.now(KEY)
        assert shown is not None
        assert shown.size == len(await replica.read_version(shown)) == len(b"a\ntheirs\nours\n")
        await replica.uploaded()

    assert ((await machine.memory.head(KEY)).meta or {})["colour"] == "blue"


async def test_attributes_that_wait_behind_a_version_that_went_beside_another_hosts_show_with_ours(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Until they have found out that they belong to a version that is gone; then theirs shows."""
    await machine.memory.put(KEY, b"base", meta={})
    machine.store.latency("put", 1.0)
    async with machine.running() as replica:
        ours = save(replica, b"ours", (await replica.read(KEY)).info)
        await trio.sleep(0.8)
        await machine.memory.put(KEY, b"theirs", meta={})
        replica.restamp(ours, {"colour": "blue"})
        machine.store.latency("head", 1.0)
        while any(op.kind == "put" for op in replica.journal.ops.all()):
            await trio.sleep(0.01)
        shown = replica.names.now(KEY)
        assert shown is not None
        assert (shown.etag, shown.size) == (content_etag(b"ours"), len(b"ours"))
        await replica.uploaded()
        assert (await replica.read(KEY)).data == b"theirs"

    assert sorted((await machine.bucket()).values()) == [b"ours", b"theirs"]


# --- rejoin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["heard", "lost", "never sent"])
@pytest.mark.parametrize("moment", ["before the join", "after the join"])
@pytest.mark.parametrize("kind", ["copy", "put", "put of a new file"])
async def test_a_file_renamed_onto_one_that_is_joined_overwrites_nothing_of_another_hosts(
    machine: Machine, autojump_clock: Clock, kind: str, moment: str, answer: str
) -> None:
    """Who renamed it has not seen what was joined in."""
    new = kind == "put of a new file"
    await machine.memory.put(KEY, b"a\n", meta={})
    if not new:
        await machine.memory.put(OTHER, b"moved\n", meta={})
    async with machine.running() as replica:
        ours = save(replica, b"a\nours\n", (await replica.read(KEY)).info)
        if kind == "put":
            await replica.read(OTHER)
        machine.store.latency("put", 1.0)
        machine.store.script("put", None, Fault(late=0.5, after=unreachable() if answer == "lost" else None))
        await trio.sleep(0.8)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        if moment == "after the join":
            await _joined(replica)
        source = save(replica, b"moved\n", key=OTHER) if new else await replica.names.stat(OTHER)
        replica.move(source, KEY, replaces=ours)
        assert replica.journal.ops.waiting[KEY].kind == ("copy" if kind == "copy" else "put")
        await _joined(replica)
        if answer == "lost":
            while b"ours\n" not in (await machine.bucket())[KEY]:
                await trio.sleep(0.01)
        if answer != "heard":
            machine.store.fail_all = unreachable()
            await tried_in_vain(replica)
            machine.store.fail_all = None
        await replica.uploaded()

    written = b"".join((await machine.bucket()).values())
    assert b"theirs\n" in written
    assert b"moved\n" in written


async def _joined(replica: Replica) -> None:
    """Wait until the version in flight has another host's in it."""
    while replica.journal.ops.flying[KEY].origin is None:
        await trio.sleep(0.01)


# --- what the bucket keeps -----------------------------------------------------------------------------------------


async def test_a_removal_that_gives_way_to_an_edit_shows_the_edit(machine: Machine, autojump_clock: Clock) -> None:
    await machine.memory.put(KEY, b"base", meta={})
    async with machine.running() as replica:
        published: list[tuple[str, str]] = []
        replica.remove(KEY, base=(await replica.read(KEY)).info)
        replica.changes.subscribe(lambda change: published.append((change.kind, change.origin)))
        theirs = await machine.memory.put(KEY, b"theirs", meta={})
        await replica.uploaded()
        shown = replica.names.now(KEY)
        assert shown is not None
        assert shown.etag == theirs.etag
        assert published == [("put", "remote")]


async def test_who_went_on_from_ours_after_a_lost_answer_is_left_alone(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.running() as replica:
        save(replica, b"ours\n")
        await lose_the_answer(machine, replica)
        await machine.memory.put(KEY, b"ours\ntheirs\n", meta={})
        machine.store.plan = None
        await replica.uploaded()
        assert (await replica.read(KEY)).data == b"ours\ntheirs\n"

    assert await machine.bucket() == {KEY: b"ours\ntheirs\n"}


async def test_a_rename_of_what_another_host_has_removed_leaves_neither_name(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Nobody here has its bytes."""
    await machine.memory.put(KEY, b"text", meta={})
    async with machine.running() as replica:
        replica.move(await replica.names.stat(KEY), OTHER, replaces=None)
        await machine.memory.delete(KEY)
        await replica.uploaded()
        assert (replica.names.now(KEY), replica.names.now(OTHER)) == (None, None)

    assert await machine.bucket() == {}


async def test_a_rename_onto_what_another_host_has_written_of_what_it_has_removed_leaves_theirs(
    machine: Machine, autojump_clock: Clock
) -> None:
    """It finds out about the removal while it looks for a name for a copy of its own."""
    for key in (KEY, OTHER):
        await machine.memory.put(key, key.encode(), meta={})
    async with machine.running() as replica:
        source, target = await replica.names.stat(KEY), await replica.names.stat(OTHER)
        replica.move(source, OTHER, replaces=target)
        theirs = await machine.memory.put(OTHER, b"theirs", meta={})
        machine.store.latency("head", 1.0)
        while machine.store.counts["copy"] == 0:
            await trio.sleep(0.01)
        await trio.sleep(0.5)
        await machine.memory.delete(KEY)
        await replica.uploaded()
        shown = replica.names.now(OTHER)
        assert (shown and shown.etag, replica.names.now(KEY)) == (theirs.etag, None)

    assert await machine.bucket() == {OTHER: b"theirs"}
    assert machine.conflicts == []


async def test_attributes_of_a_file_that_another_host_has_removed_do_not_bring_it_back(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"text", meta={})
    async with machine.running() as replica:
        replica.restamp((await replica.read(KEY)).info, {"colour": "blue"})
        await machine.memory.delete(KEY)
        await replica.uploaded()
        assert replica.names.now(KEY) is None

    assert await machine.bucket() == {}


async def test_one_id_that_was_sent_with_two_contents_is_sent_again_with_the_last(autojump_clock: Clock) -> None:
    """A copy on the server of which no answer came, and whose bytes were fetched then, may arrive with older ones."""
    memory = MemoryStore(ManualClock())
    there = await memory.put(KEY, b"older", meta={META_OP: "id"})
    op = Operation(1, "id", "put", KEY, base=FREE, etag=content_etag(b"newer"), tries=2)

    assert await settle_put(memory, op, b"newer", None, "here") == TryAgain(there.etag)


# --- the table -----------------------------------------------------------------------------------------------------


def test_each_test_that_the_table_of_states_names_exists() -> None:
    page = (ROOT / "docs" / "concurrency.md").read_text()
    table = page[page.index("## The states of a name") : page.index("## What others do")]
    named = set(re.findall(r"`(test_\w+)`", table))
    sources = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}

    assert len(named) > 20
    assert named - defined == set()
