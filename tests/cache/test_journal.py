"""The journal and the uploader: what was accepted reaches the bucket once, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pytest
import trio
from journal_world import KEY, Machine, lose_the_answer, save, tried_in_vain, unreachable
from trio.abc import Clock
from trio.testing import assert_no_checkpoints

from livememfs import errors
from livememfs.cache.conflicts import conflict_key
from livememfs.cache.database import Database
from livememfs.cache.replica import Replica
from livememfs.cache.uploader import HASHED_AT_ONCE, SENDING_SECONDS, SLOWEST
from livememfs.records import keys
from livememfs.records.metadata import META_MADE
from livememfs.store.base import ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault

# --- accepting -----------------------------------------------------------------------------------------------------


async def test_what_was_accepted_shows_at_once_and_is_stored_soon(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.running() as replica:
        with assert_no_checkpoints():
            save(replica, b"text")
        assert (await replica.read(KEY)).data == b"text"
        assert "file.txt" in (await replica.names.listing("space/")).objects
        await replica.uploaded()
        assert await machine.bucket() == {KEY: b"text"}
        assert len(replica.journal.ops) == 0


async def test_writes_in_quick_succession_are_one_request(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.running() as replica:
        first = save(replica, b"")
        second = save(replica, b"half", first)
        save(replica, b"whole", second)
        await trio.sleep(5)
        assert await machine.bucket() == {KEY: b"whole"}
    assert machine.store.counts == {"put": 1}


async def test_a_file_written_to_all_the_time_is_stored_all_the_same(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.running() as replica:
        info = save(replica, b"0")
        for number in range(1, 100):
            await trio.sleep(0.1)
            info = save(replica, str(number).encode(), info)
        assert await machine.bucket() != {}


async def test_made_and_removed_before_the_upload_costs_no_request(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.running() as replica:
        replica.remove(KEY, base=save(replica, b"text"))
        await trio.sleep(5)
    assert machine.store.requests == []


async def test_a_new_file_that_is_renamed_is_stored_under_its_new_name_alone(
    machine: Machine, autojump_clock: Clock
) -> None:
    """What editors do: write beside the file, then rename over it."""
    async with machine.running() as replica:
        old = save(replica, b"old")
        await replica.uploaded()
        machine.store.forget()
        new = save(replica, b"new", key="space/tmp")
        replica.move(new, KEY, replaces=old)
        await replica.uploaded()
        assert await machine.bucket() == {KEY: b"new"}
    assert machine.store.counts == {"put": 1}


@pytest.mark.parametrize("cached", [True, False])
async def test_a_stored_file_that_is_renamed_has_one_of_its_names_at_each_instant(
    machine: Machine, autojump_clock: Clock, cached: bool
) -> None:
    await machine.memory.put(KEY, b"text", meta={"livememfs-mode": "600"})
    async with machine.running() as replica:
        info = await replica.names.stat(KEY, fresh=True)
        if cached:
            await replica.read(KEY)
        moved = replica.move(info, "space/other", replaces=None)
        assert await replica.read_version(moved) == b"text"
        machine.store.latency("*", 1)
        machine.store.forget()
        with trio.move_on_after(30):
            while len(replica.journal.ops):
                assert await machine.bucket()
                await trio.sleep(0.1)
        assert await machine.bucket() == {"space/other": b"text"}
        assert (await machine.memory.head("space/other")).meta["livememfs-mode"] == "600"  # type: ignore[index]  # HEAD tells it


async def test_identical_bytes_are_not_sent_again(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.running() as replica:
        info = save(replica, b"text")
        await replica.uploaded()
        machine.store.forget()
        replica.save(KEY, b"text", meta={"livememfs-mtime": "5"}, base=info)
        await replica.uploaded()
        assert machine.store.counts["put"] == 0
        found = await machine.memory.head(KEY)
        assert (found.meta or {})["livememfs-mtime"] == "5"


async def test_a_full_cache_refuses_new_bytes_and_takes_them_again_after_the_upload(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    memory = MemoryStore(ManualClock())
    replica = Replica(memory, cache_size=100)
    save(replica, b"x" * 90)
    with pytest.raises(errors.NoSpace):
        save(replica, b"y" * 20, key="space/more")
    async with trio.open_nursery() as nursery:
        await nursery.start(replica.run)
        await replica.uploaded()
        save(replica, b"y" * 20, key="space/more")
        await replica.uploaded()
        nursery.cancel_scope.cancel()
    assert (await memory.get("space/more")).data == b"y" * 20


# --- crashes -------------------------------------------------------------------------------------------------------


async def test_what_was_accepted_is_stored_by_the_next_process(machine: Machine, autojump_clock: Clock) -> None:
    async with machine.stopped() as replica:
        save(replica, b"text")
        large = save(replica, b"x" * 100_000, key="space/large")
        replica.move(large, "space/renamed", replaces=None)
        replica.remove("space/gone", base=save(replica, b"", key="space/gone"))
    assert await machine.bucket() == {}

    async with machine.running() as replica:
        assert (await replica.read(KEY)).data == b"text"
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"text", "space/renamed": b"x" * 100_000}


async def test_an_upload_whose_end_the_process_did_not_see_is_not_repeated(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.running() as replica:
        machine.store.script("put", Fault(late=9.0))
        save(replica, b"text")
        await trio.sleep(1.0)  # it is stored, and nobody here knows
    assert await machine.bucket() == {KEY: b"text"}
    version = await machine.memory.head(KEY)

    async with machine.running() as replica:
        await replica.uploaded()

    assert await machine.memory.head(KEY) == version
    assert await machine.bucket() == {KEY: b"text"}
    assert machine.conflicts == []


@pytest.mark.parametrize("fault", [Fault(late=9.0), Fault(delay=9.0)], ids=["stored", "not stored"])
async def test_a_version_on_its_way_in_a_crash_and_the_one_behind_it_leave_the_last_one(
    machine: Machine, autojump_clock: Clock, fault: Fault
) -> None:
    async with machine.running() as replica:
        machine.store.script("put", fault)
        first = save(replica, b"first")
        await trio.sleep(0.5)
        second = save(replica, b"second", first)
        save(replica, b"third", second)
        await trio.sleep(0.5)

    async with machine.running() as replica:
        assert (await replica.read(KEY)).data == b"third"
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"third"}
    assert machine.conflicts == []


async def test_a_file_removed_while_it_was_on_its_way_does_not_come_back(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.running() as replica:
        machine.store.script("put", Fault(late=9.0))
        info = save(replica, b"text")
        await trio.sleep(0.5)
        replica.remove(KEY, base=info)
        await trio.sleep(0.5)
    assert await machine.bucket() == {KEY: b"text"}

    async with machine.running() as replica:
        with pytest.raises(errors.ObjectMissing):
            await replica.names.stat(KEY)
        await replica.uploaded()

    assert await machine.bucket() == {}


async def test_a_stored_file_removed_while_a_new_version_was_on_its_way_does_not_come_back(
    machine: Machine, autojump_clock: Clock
) -> None:
    """What stands in the bucket is not the version that was replaced, and only its id says whose it is."""
    await machine.memory.put(KEY, b"old")
    async with machine.running() as replica:
        machine.store.script("put", Fault(late=9.0))
        info = save(replica, b"new", (await replica.read(KEY)).info)
        await trio.sleep(0.5)
        replica.remove(KEY, base=info)
        await trio.sleep(0.5)
    assert await machine.bucket() == {KEY: b"new"}

    async with machine.running() as replica:
        await replica.uploaded()

    assert await machine.bucket() == {}


async def test_two_processes_never_share_a_folder(machine: Machine) -> None:
    async with machine.stopped():
        with pytest.raises(errors.CacheInUse):
            machine.replica()


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = Database(tmp_path / "cache")
    database._db.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(errors.LiveMemError, match="newer"):
        Database(tmp_path / "cache")


async def test_what_an_older_livememfs_has_accepted_is_stored_by_this_one(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.stopped() as replica:
        save(replica, b"text")
        for statement in ("ALTER TABLE op DROP COLUMN moved", "DROP TABLE mirror", "PRAGMA user_version = 3"):
            replica._database._db.execute(statement)

    async with machine.running() as replica:
        await replica.uploaded()
    assert await machine.bucket() == {KEY: b"text"}


# --- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_an_outage_costs_nothing_but_time(machine: Machine, autojump_clock: Clock, lost: str) -> None:
    fault = Fault(before=unreachable()) if lost == "request" else Fault(after=unreachable())
    async with machine.running() as replica:
        machine.store.script("put", *[fault] * 40)
        for number in range(10):
            save(replica, str(number).encode(), key=f"space/{number}")
        await replica.uploaded()
    assert await machine.bucket() == {f"space/{number}": str(number).encode() for number in range(10)}
    assert machine.conflicts == []


@pytest.mark.parametrize("target", [None, "space/other"], ids=["removed", "renamed"])
async def test_a_new_file_whose_answer_was_lost_leaves_nothing_under_its_name(
    machine: Machine, autojump_clock: Clock, target: str | None
) -> None:
    async with machine.running() as replica:
        info = save(replica, b"text")
        await lose_the_answer(machine, replica)
        assert await machine.bucket() == {KEY: b"text"}
        if target is None:
            replica.remove(KEY, base=info)
        else:
            replica.move(info, target, replaces=None)
        machine.store.plan = None
        await replica.uploaded()

    assert await machine.bucket() == ({} if target is None else {target: b"text"})


async def test_the_same_bytes_saved_again_after_a_lost_answer_have_their_new_attributes(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.running() as replica:
        info = replica.save(KEY, b"text", meta={"colour": "red"}, base=None)
        await lose_the_answer(machine, replica)
        replica.save(KEY, b"text", meta={"colour": "blue"}, base=info)
        machine.store.plan = None
        await replica.uploaded()

    assert ((await machine.memory.head(KEY)).meta or {})["colour"] == "blue"


async def test_the_removal_of_a_new_file_that_never_arrived_takes_nothing_of_another_hosts(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.running() as replica:
        machine.store.fail_all = unreachable()
        info = save(replica, b"ours")
        await tried_in_vain(replica)
        replica.remove(KEY, base=info)
        await machine.memory.put(KEY, b"theirs")
        machine.store.fail_all = None
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"theirs"}


async def test_a_large_file_is_given_longer_to_arrive(machine: Machine, autojump_clock: Clock) -> None:
    allowance = HASHED_AT_ONCE / SLOWEST
    machine.store.latency("put", SENDING_SECONDS + allowance / 2)
    async with machine.running() as replica:
        save(replica, b"x" * HASHED_AT_ONCE)
        await trio.sleep(SENDING_SECONDS + allowance)
        assert KEY in await machine.bucket()


async def test_an_outage_does_not_meet_everybody(machine: Machine, autojump_clock: Clock) -> None:
    """While the store does not answer, one operation at a time finds out whether it does again."""
    async with machine.running() as replica:
        machine.store.fail_all = unreachable()
        for number in range(100):
            save(replica, b"x", key=f"space/{number}")
        await trio.sleep(60)
        machine.store.forget()
        await trio.sleep(60)
        assert machine.store.counts["put"] < 100  # six attempts each time, and each operation would be one
        assert replica.statistics().uploader.paused
        machine.store.fail_all = None
        await replica.uploaded()
        uploader = replica.statistics().uploader
        assert (uploader.paused, uploader.last_error) == (False, "")
    assert len(await machine.bucket()) == 100


async def test_what_is_refused_for_good_is_stuck_with_its_reason_and_blocks_nobody_else(
    machine: Machine, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    expect_log("the bucket does not take it")
    refused = True
    machine.store.plan = lambda asked, _: (
        Fault(before=errors.Denied("no right", key=asked.key)) if refused and asked.key == KEY else None
    )
    async with machine.running() as replica:
        save(replica, b"text")
        save(replica, b"other", key="space/other")
        with pytest.raises(errors.StoreError, match="no right"):
            await replica.uploaded()
        await trio.sleep(1)
        assert await machine.bucket() == {"space/other": b"other"}
        [stuck] = replica.journal.ops.stuck()
        assert (stuck.key, replica.statistics().journal.stuck) == (KEY, 1)
        refused = False
        await trio.sleep(120)  # it is still tried now and then
        assert await machine.bucket() == {KEY: b"text", "space/other": b"other"}


async def test_local_bytes_that_were_damaged_are_never_sent(
    machine: Machine, autojump_clock: Clock, expect_log: Callable[[str], None]
) -> None:
    expect_log("the bucket does not take it")
    async with machine.stopped() as replica:
        save(replica, b"x" * 100_000)
    [file] = (machine.folder / "contents").iterdir()
    file.write_bytes(b"y" * 100_000)

    async with machine.running() as replica:
        with pytest.raises(errors.StoreError, match="damaged"):
            await replica.uploaded()
    assert await machine.bucket() == {}


# --- two hosts -----------------------------------------------------------------------------------------------------


async def both(
    machine: Machine, tmp_path: Path, base: bytes | None, ours: bytes | None, theirs: bytes | None
) -> Machine:
    """Two machines make something of one version at the same time; `ours` arrives second. None removes."""
    other = Machine(tmp_path / "other", machine.memory, "there")
    if base is not None:
        await machine.memory.put(KEY, base)
    async with machine.running() as here, other.running() as there:
        for replica in (here, there):
            if base is not None:
                await replica.read(KEY)
        for replica, data in ((there, theirs), (here, ours)):
            info = replica.names.now(KEY)
            if data is None:
                replica.remove(KEY, base=info)
            else:
                replica.save(KEY, data, meta={}, base=info)
        await there.uploaded()
        await here.uploaded()
    return other


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result"),
    [
        (b"a\n", b"a\nours\n", b"a\ntheirs\n", b"a\ntheirs\nours\n"),
        (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", b"A\nb\nC\n"),
        (b"a\n", b"a\nours\n", b"a\nours\ntheirs\n", b"a\nours\ntheirs\n"),
        (b"a\n", b"new\n", b"new\n", b"new\n"),
        (None, b"new\n", b"new\n", b"new\n"),
        (b"a\n", b"edited\n", None, b"edited\n"),
        (b"a\n", None, b"edited\n", b"edited\n"),
    ],
    ids=["both append", "other lines", "go on", "same bytes", "same new bytes", "edit wins ours", "edit wins theirs"],
)
async def test_both_sides_are_joined_where_they_can_be(
    machine: Machine,
    tmp_path: Path,
    autojump_clock: Clock,
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    result: bytes,
) -> None:
    other = await both(machine, tmp_path, base, ours, theirs)

    assert await machine.bucket() == {KEY: result}
    assert machine.conflicts == other.conflicts == []


@pytest.mark.parametrize("base", [b"a\n", None])
async def test_else_both_are_kept_and_reported(
    machine: Machine, tmp_path: Path, autojump_clock: Clock, base: bytes | None
) -> None:
    await both(machine, tmp_path, base, b"ours\n", b"theirs\n")

    found = await machine.bucket()
    assert found.pop(KEY) == b"theirs\n"
    [(copy, data)] = found.items()
    assert (data, copy.startswith("space/file.conflict-here-")) == (b"ours\n", True)
    assert machine.conflicts == [(KEY, copy)]


async def test_a_store_without_conditions_is_looked_at_before_a_version_is_overwritten(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"base\n")
    machine.store.script("put", Fault(before=errors.ConditionsUnsupported(key=KEY)))
    async with machine.running() as replica:
        save(replica, b"ours\n", (await replica.read(KEY)).info)
        await machine.memory.put(KEY, b"theirs\n")
        await replica.uploaded()

    found = await machine.bucket()
    assert found.pop(KEY) == b"theirs\n"
    assert list(found.values()) == [b"ours\n"]


async def test_a_store_that_names_versions_in_its_own_way_is_asked_for_nothing_that_is_here(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Neither for the bytes, nor by a writer who goes on from the version as it was called here."""
    with patch("livememfs.store.memory.content_etag", lambda data: f"own-{len(data)}"):
        async with machine.running() as replica:
            first = save(replica, b"first")
            await replica.uploaded()
            assert replica.changes.recent[-1].etag == "own-5"
            assert (await replica.read(KEY)).data == b"first"
            save(replica, b"second", first)
            await replica.uploaded()

    assert await machine.bucket() == {KEY: b"second"}
    assert set(machine.store.counts) == {"put", "list"}


@pytest.mark.parametrize("copied", [False, True], ids=["written", "copied on the server"])
async def test_a_conflict_copy_never_takes_the_name_of_an_earlier_one(
    machine: Machine, autojump_clock: Clock, copied: bool
) -> None:
    await machine.memory.put(KEY, b"base\n")
    await machine.memory.put("space/source", b"ours\n")
    async with machine.running() as replica:
        base, source = await replica.names.stat(KEY, fresh=True), await replica.names.stat("space/source", fresh=True)
        if copied:
            replica.move(source, KEY, replaces=base)
        else:
            save(replica, b"ours\n", base)
        op = replica.journal.ops.newest(KEY)
        assert op is not None
        assert op.kind == ("copy" if copied else "put")
        taken = conflict_key(KEY, "here", f"{datetime.fromtimestamp(op.modified / 1e9, UTC):%Y%m%dT%H%M%SZ}")
        await machine.memory.put(taken, b"earlier\n")
        await machine.memory.put(KEY, b"theirs\n")
        await replica.uploaded()

    found = await machine.bucket()
    found.pop("space/source", None)
    assert found.pop(KEY) == b"theirs\n"
    assert found.pop(taken) == b"earlier\n"
    assert list(found.values()) == [b"ours\n"]


async def test_a_file_that_was_cut_down_unread_does_not_pass_for_the_past_of_another_hosts(
    machine: Machine, tmp_path: Path, autojump_clock: Clock
) -> None:
    """Truncated when it was opened: nobody here has the bytes of the version it replaces."""
    await machine.memory.put(KEY, b"title\nsecret\n")
    other = Machine(tmp_path / "other", machine.memory, "there")
    async with machine.running() as here, other.running() as there:
        base = await here.names.stat(KEY, fresh=True)
        there.save(KEY, b"title\nsecret\nmore\n", meta={}, base=(await there.read(KEY)).info)
        await there.uploaded()
        save(here, b"title\n", base)
        await here.uploaded()

    found = await machine.bucket()
    assert found.pop(KEY) == b"title\nsecret\nmore\n"
    assert list(found.values()) == [b"title\n"]
    assert [key for key, _ in machine.conflicts] == [KEY]


@pytest.mark.parametrize(
    "key",
    [
        "space/" + "n" * 252 + ".md",
        "space/" + "я" * 127,
        "space/a." + "s" * 253,
        "space/" + "/".join(["d" * 200] * 4) + "/" + "x" * 204,
        "space/" + "/".join(["d" * 250] * 4) + "/" + "x" * 13,
    ],
    ids=["suffix", "letters of two bytes", "long suffix", "longest key", "full folder"],
)
async def test_a_conflict_copy_of_the_longest_names_can_be_stored_and_opened(
    machine: Machine, tmp_path: Path, autojump_clock: Clock, key: str
) -> None:
    await machine.memory.put(key, b"a\n")
    other = Machine(tmp_path / "other", machine.memory, "there")
    async with machine.running() as here, other.running() as there:
        infos = [(await replica.read(key)).info for replica in (here, there)]
        for replica, info, data in zip((here, there), infos, (b"ours\n", b"theirs\n"), strict=True):
            save(replica, data, info, key)
            await replica.uploaded()

    found = await machine.bucket()
    assert found.pop(key) == b"ours\n"
    [(copy, data)] = found.items()
    assert data == b"theirs\n"
    assert max(len(part.encode()) for part in copy.split("/")) <= 255
    assert len(copy.encode()) <= 1024
    assert copy.endswith(".md") == key.endswith(".md")
    meta = (await machine.memory.head(copy)).meta or {}
    told = meta["livememfs-conflict"]
    assert key.endswith(told)
    assert told == key or len(quote(told)) <= 300


def test_names_that_are_cut_do_not_meet() -> None:
    keys = [f"space/{'n' * 254}{last}" for last in "ab"]
    assert len({conflict_key(key, "here", "20260220T140000Z", attempt) for key in keys for attempt in (0, 1)}) == 4


async def test_a_writer_who_goes_on_after_a_merge_builds_on_both_sides(
    machine: Machine, tmp_path: Path, autojump_clock: Clock
) -> None:
    other = Machine(tmp_path / "other", machine.memory, "there")
    await machine.memory.put(KEY, b"a\n")
    async with machine.running() as here, other.running() as there:
        base = (await here.read(KEY)).info
        there.save(KEY, b"a\ntheirs\n", meta={}, base=(await there.read(KEY)).info)
        await there.uploaded()
        mine = here.save(KEY, b"a\nours\n", meta={}, base=base)
        await here.uploaded()
        here.save(KEY, b"a\nours\nmore\n", meta={}, base=mine)  # its editor has not loaded the file again
        await here.uploaded()
    found = await machine.bucket()
    assert set(found) == {KEY}
    assert sorted(found[KEY].splitlines()) == [b"a", b"more", b"ours", b"theirs"]


async def _joined_on_its_way(machine: Machine, replica: Replica) -> tuple[ObjectInfo, ObjectInfo]:
    """Ours of nine lines, and that joined with another host's, which is on its way now."""
    await machine.memory.put(KEY, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", meta={})
    machine.store.latency("put", 1.0)
    base = (await replica.read(KEY)).info
    ours = save(replica, b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9\n", base)
    await trio.sleep(0.8)
    await machine.memory.put(KEY, b"1\n2\n3\n4\n5\n6\n7\n8\n9 theirs\n", meta={})
    await trio.sleep(1.0)
    joined = await replica.read(KEY)
    assert joined.data == b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9 theirs\n"
    return ours, joined.info


async def test_a_line_of_another_hosts_that_the_writer_saw_and_took_out_does_not_come_back(
    machine: Machine, autojump_clock: Clock
) -> None:
    """The version that the writer saw meets yet another one before it arrives."""
    async with machine.running() as replica:
        _, joined = await _joined_on_its_way(machine, replica)
        save(replica, b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9\n", joined)
        await machine.memory.put(KEY, b"1\n2\n3\n4\n5 theirs\n6\n7\n8\n9 theirs\n", meta={})
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"1 ours\n2\n3\n4\n5 theirs\n6\n7\n8\n9\n"}


async def test_a_line_of_another_hosts_that_the_last_writer_never_saw_is_not_taken_out(
    machine: Machine, autojump_clock: Clock
) -> None:
    """One writer here has seen the joined version; one who has the former open saves after it."""
    async with machine.running() as replica:
        ours, joined = await _joined_on_its_way(machine, replica)
        save(replica, b"1 ours\n2\n3 seen\n4\n5\n6\n7\n8\n9 theirs\n", joined)
        save(replica, b"1 ours\n2\n3 unseen\n4\n5\n6\n7\n8\n9\n", ours)
        await machine.memory.put(KEY, b"1\n2\n3\n4\n5\n6\n7 theirs\n8\n9 theirs\n", meta={})
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"1 ours\n2\n3 unseen\n4\n5\n6\n7 theirs\n8\n9 theirs\n"}


async def test_each_of_three_joins_keeps_what_the_ones_before_it_brought_and_what_a_writer_took_out(
    machine: Machine, autojump_clock: Clock
) -> None:
    """A writer saw the first, took its line out, and goes on from that version while the second and third arrive."""
    async with machine.running() as replica:
        _, joined = await _joined_on_its_way(machine, replica)
        taken_out = save(replica, b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9\n", joined)
        await machine.memory.put(KEY, b"1\n2\n3\n4\n5 theirs\n6\n7\n8\n9 theirs\n", meta={})
        await trio.sleep(1.0)
        save(replica, b"1 ours\n2\n3 last\n4\n5\n6\n7\n8\n9\n", taken_out)
        await machine.memory.put(KEY, b"1\n2\n3\n4\n5 theirs\n6\n7 theirs\n8\n9 theirs\n", meta={})
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"1 ours\n2\n3 last\n4\n5 theirs\n6\n7 theirs\n8\n9\n"}


@pytest.mark.parametrize("ahead", ["arrived", "lost", "arrived, and its answer was lost"])
async def test_a_version_that_cannot_be_joined_with_what_the_one_ahead_became_overwrites_nothing(
    machine: Machine, autojump_clock: Clock, ahead: str
) -> None:
    async with machine.running() as replica:
        if ahead == "arrived, and its answer was lost":
            machine.store.script("put", None, Fault(late=0.5, after=unreachable()))
        ours, joined = await _joined_on_its_way(machine, replica)
        save(replica, b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9 otherwise\n", ours)
        if ahead == "arrived, and its answer was lost":
            while (await machine.memory.head(KEY)).etag != joined.etag:
                await trio.sleep(0.01)
        if ahead != "arrived":
            machine.store.fail_all = unreachable()
            await tried_in_vain(replica)
            machine.store.fail_all = None
        await replica.uploaded()

    found = await machine.bucket()
    assert b"9 theirs\n" in found.pop(KEY)
    assert list(found.values()) == [b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9 otherwise\n"]
    assert len(machine.conflicts) == 1


async def test_a_removal_by_who_has_not_seen_what_was_joined_in_leaves_the_joined_version_in_sight(
    machine: Machine, autojump_clock: Clock
) -> None:
    async with machine.running() as replica:
        ours, joined = await _joined_on_its_way(machine, replica)
        published: list[str] = []
        replica.changes.subscribe(lambda change: published.append(change.kind))
        replica.remove(KEY, base=ours)
        assert (await replica.names.listing("space/")).objects["file.txt"].etag == joined.etag
        assert published == ["put"], "whoever was told that it went is told that it is there"
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"1 ours\n2\n3\n4\n5\n6\n7\n8\n9 theirs\n"}


async def test_a_removal_takes_nothing_along_that_was_joined_in_after_it(
    machine: Machine, tmp_path: Path, autojump_clock: Clock
) -> None:
    """Our version is on its way, ours is removed, and only then does it meet another host's: the edit wins."""
    await machine.memory.put(KEY, b"a\n", meta={})
    machine.store.latency("put", 1.0)
    async with machine.running() as replica:
        base = (await replica.read(KEY)).info
        shown = replica.save(KEY, b"a\nours\n", meta={}, base=base)
        await trio.sleep(0.8)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        replica.remove(KEY, base=shown)
        await replica.uploaded()
        assert (await replica.read(KEY)).data == (await machine.bucket())[KEY]

    assert b"theirs\n" in (await machine.bucket())[KEY]


async def test_a_second_removal_does_not_take_what_another_host_made_after_the_first(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"ours\n", meta={})
    machine.store.latency("delete", 1.0)
    async with machine.running() as replica:
        replica.remove(KEY, base=(await replica.read(KEY)).info)
        await trio.sleep(0.8)
        made = replica.save(KEY, b"made again\n", meta={}, base=None)
        replica.remove(KEY, base=made)
        await machine.memory.put(KEY, b"theirs\n", meta={})
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"theirs\n"}


async def test_a_writer_who_goes_on_after_a_change_of_attributes_builds_on_what_was_joined_in(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Ours is on its way and joined with another host's; a change of attributes waits behind it, then more of ours."""
    await machine.memory.put(KEY, b"a\n", meta={})
    machine.store.latency("put", 1.0)
    async with machine.running() as replica:
        base = (await replica.read(KEY)).info
        ours = replica.save(KEY, b"a\nours\n", meta={}, base=base)
        await trio.sleep(0.8)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        replica.restamp(ours, {"colour": "blue"})
        await trio.sleep(1.0)
        assert replica.journal.ops.flying[KEY].origin is not None, "it is joined, and on its way again"
        replica.save(KEY, b"a\nours\nmore\n", meta={}, base=ours)
        await replica.uploaded()

    assert sorted((await machine.bucket())[KEY].split()) == [b"a", b"more", b"ours", b"theirs"]


async def test_a_new_file_renamed_onto_one_that_another_host_has_changed_is_joined_as_a_save_is(
    machine: Machine, autojump_clock: Clock
) -> None:
    """What editors do is a change of the file."""
    await machine.memory.put(KEY, b"a\n", meta={})
    async with machine.running() as replica:
        old = (await replica.read(KEY)).info
        replica.move(save(replica, b"a\nours\n", key="space/tmp"), KEY, replaces=old)
        await machine.memory.put(KEY, b"a\ntheirs\n", meta={})
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"a\ntheirs\nours\n"}
    assert machine.conflicts == []


async def test_a_file_moved_onto_one_with_the_same_bytes_is_kept_when_another_host_has_changed_that_one(
    machine: Machine, autojump_clock: Clock
) -> None:
    await machine.memory.put(KEY, b"same\n", meta={})
    await machine.memory.put("space/source", b"same\n", meta={})
    async with machine.running() as replica:
        target, source = (await replica.read(KEY)).info, (await replica.read("space/source")).info
        replica.move(source, KEY, replaces=target)
        await machine.memory.put(KEY, b"theirs\n", meta={})
        await replica.uploaded()

    assert sorted((await machine.bucket()).values()) == [b"same\n", b"theirs\n"]


@pytest.mark.parametrize("first", ["joined", "heard", "lost", "on its way when the process died"])
async def test_a_file_moved_onto_one_with_the_same_bytes_that_is_on_its_way_is_kept_beside_another_hosts(
    machine: Machine, autojump_clock: Clock, first: str
) -> None:
    same = b"1\n2\n3 ours\n"
    await machine.memory.put(KEY, b"1\n2\n3\n", meta={})
    await machine.memory.put("space/source", same, meta={})
    machine.store.latency("put", 1.0)
    async with machine.running() as replica:
        ours = save(replica, same, (await replica.read(KEY)).info)
        source = (await replica.read("space/source")).info
        await trio.sleep(0.8)
        replica.move(source, KEY, replaces=ours)
        if first == "heard":
            while (await machine.bucket())[KEY] != same:
                await trio.sleep(0.01)
        elif first == "lost":
            machine.store.fail_all = unreachable()
            await tried_in_vain(replica)
            machine.store.fail_all = None
        await machine.memory.put(KEY, b"1 theirs\n2\n3" + (b" ours\n" if first == "heard" else b"\n"), meta={})
        if first != "on its way when the process died":
            await replica.uploaded()
    async with machine.running() as replica:
        await replica.uploaded()

    found = await machine.bucket()
    assert b"1 theirs\n" in found.pop(KEY)
    assert list(found.values()) == [same]


async def test_a_file_that_another_host_moves_back_while_we_move_it_away_does_not_vanish(
    machine: Machine, autojump_clock: Clock
) -> None:
    """Its bytes, and so its ETag, are the same all the time."""
    async with machine.running() as replica:
        replica.save(KEY, b"same\n", meta={}, base=None)
        await replica.uploaded()
        machine.store.script("delete", *[Fault(before=unreachable())] * 8)  # more than one call insists
        replica.move(await replica.names.stat(KEY), "space/moved", replaces=None)
        while "space/moved" not in await machine.bucket():
            await trio.sleep(0.1)
        await machine.memory.put(KEY, b"same\n", meta={"livememfs-op": "theirs"})
        await machine.memory.delete("space/moved")
        await replica.uploaded()

    assert await machine.bucket() == {KEY: b"same\n"}


async def test_what_another_host_wrote_under_our_change_of_attributes_is_not_overwritten_unread(
    machine: Machine, autojump_clock: Clock
) -> None:
    """A change of attributes is a look and a copy; what comes in between is a version that nobody here has read."""
    await machine.memory.put(KEY, b"ours\n", meta={})
    machine.store.latency("copy", 1.0)
    async with machine.running() as replica:
        info = await replica.names.stat(KEY)
        await replica.read(KEY)
        shown = replica.restamp(info, {"colour": "blue"})
        await trio.sleep(0.8)
        replica.save(KEY, b"ours\nand on\n", meta={}, base=shown)
        await machine.memory.put(KEY, b"theirs\n", meta={})
        await replica.uploaded()

    written = b"".join((await machine.bucket()).values())
    assert b"theirs\n" in written
    assert b"and on\n" in written


async def test_a_note_names_the_writes_that_may_have_made_it_where_they_are_more_than_its_own(
    machine: Machine, autojump_clock: Clock
) -> None:
    plain, repeated = (f"space/live/20261121T101112_me_decision_0a1b2c3{digit}.md" for digit in "de")
    async with machine.running() as replica:
        save(replica, b"text", key=plain)
        await replica.uploaded()
        machine.store.fail_all = unreachable()
        info = save(replica, b"first", key=repeated)
        first = replica.journal.ops.newest(repeated)
        assert first is not None
        while first.in_flight or not first.tries:
            await trio.sleep(0.01)
        save(replica, b"second", info, key=repeated)
        second = replica.journal.ops.newest(repeated)
        assert second is not None
        machine.store.fail_all = None
        await replica.uploaded()

    assert META_MADE not in ((await machine.memory.head(plain)).meta or {})
    assert ((await machine.memory.head(repeated)).meta or {})[META_MADE] == f"{first.op_id} {second.op_id}"


async def test_two_new_notes_that_chose_one_key_are_two_notes(
    machine: Machine, tmp_path: Path, autojump_clock: Clock
) -> None:
    key = "space/live/20261121T101112_me_decision_0a1b2c3d.md"
    other = Machine(tmp_path / "other", machine.memory, "there")
    async with machine.running() as here, other.running() as there:
        for replica in (here, there):
            replica.save(key, replica.uploader._host.encode(), meta={"livememfs-name": "decision.md"}, base=None)
        await there.uploaded()
        await here.uploaded()
    found = await machine.bucket()
    assert sorted(found.values()) == [b"here", b"there"]
    assert all(name.startswith("space/live/20261121T101112_me_decision_") for name in found)
    assert all(keys.NoteName.parse(name.rpartition("/")[2]) for name in found)
    assert machine.conflicts == []
