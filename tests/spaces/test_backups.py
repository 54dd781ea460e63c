"""Backups are whole or torn, and what is restored from a whole one is what was there."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.replica import Replica
from livememfs.concurrency import the_one
from livememfs.errors import (
    AlreadyExists,
    ConditionsUnsupported,
    InvalidName,
    LiveMemError,
    NotEmpty,
    NotFound,
    PreconditionFailed,
    TimedOut,
    Unreachable,
    UsageError,
)
from livememfs.records import keys
from livememfs.records.ledger import Entry, Write
from livememfs.records.space import Meta
from livememfs.runs.undo.restore import Restored, restore_backup
from livememfs.spaces import backups
from livememfs.spaces import making as spaces
from livememfs.spaces.lease import Leases
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

NOTE = "live/20260220T140000_cline_todo_a1b2c3d4.md"
OTHER = "live/20260220T150000_cline_todo_b1b2c3d4.md"
STAMP = "2026-02-20T14-00-00"
NEXT = "2026-02-20T14-00-01"
CONTENT = {
    "_rules.md": b"# Rules\n",
    "_synthesis.md": b"---\nnotes_processed: 2\n---\n\nwhat was\n",
    NOTE: b'---\nspace_id: "alpha"\n---\n\nCall back.\r\n',
    "live/picture.png": bytes(range(256)),
    "bank/progress.md": "# Progress \u00e9\n".encode(),
    "bank/more/deep.md": b"no line end",
}
RUN = Entry(number=1, space="alpha", state="applied", committed_at=START, applied_at=START)
OUTSIDE = {"docs/plan.txt": b"a plan", "_ledger/00000001.json": RUN.render()}


class House:
    """A bucket in memory with the space `alpha`, seen through a replica."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = FaultyStore(MemoryStore(self.clock))
        self.replica = Replica(self.store)

    async def fill(self, space: str, objects: dict[str, bytes]) -> None:
        """Objects by name below the space, put as another host would."""
        for name, data in objects.items():
            await self.store.put(f"{space}/{name}", data, meta={"livememfs-name": f"written as {name}"})

    async def below(self, prefix: str) -> dict[str, bytes]:
        """Every object below a prefix, by what follows it; sentinels left out."""
        found = (await list_all(self.store, prefix)).objects
        return {
            item.key[len(prefix) :]: (await self.store.get(item.key)).data
            for item in found
            if not item.key.endswith(f"/{keys.KEEP}")
        }

    async def content(self, space: str) -> dict[str, bytes]:
        """What a backup is to bring back of a space."""
        return {name: data for name, data in (await self.below(f"{space}/")).items() if name in CONTENT}

    async def back_up(self, *, automatic: bool = False, space: str = "alpha") -> backups.Backup:
        return await backups.create(self.replica, self.clock, space, automatic=automatic)

    async def restore(
        self, stamp: str = STAMP, *, to: str | None = None, replace: bool = False, space: str = "alpha"
    ) -> Restored:
        try:
            async with trio.open_nursery() as nursery:
                leases = Leases(self.replica, self.clock, "here", nursery)
                return await restore_backup(self.replica, self.clock, leases, space, stamp, to=to, replace=replace)
        except BaseExceptionGroup as group:
            raise the_one(group) from None

    async def stamps(self) -> list[str]:
        return [one.stamp for one in await backups.list_backups(self.replica, "alpha")]

    async def record(self, space: str = "alpha", **changed: object) -> Meta:
        """A space's `_meta.json`, after some of its fields were set."""
        key = keys.meta_key(space)
        found = json.loads((await self.store.get(key)).data) | changed
        if changed:
            await self.store.put(key, json.dumps(found).encode())
        return Meta.parse(json.dumps(found).encode())

    async def tear(self, key: str) -> None:
        """Have the next backup die when it comes to this key of the space."""
        self.store.plan = lambda asked, _: (
            Fault(before=Unreachable("gone")) if asked.verb == "copy" and asked.key.endswith(key) else None
        )
        with pytest.raises(Unreachable):
            await self.back_up()
        self.store.plan = None


@pytest.fixture
async def house() -> House:
    made = House()
    await spaces.create(made.replica, made.clock, "alpha", description="d", owner="o")
    await made.fill("alpha", CONTENT | OUTSIDE)
    return made


# --- create ------------------------------------------------------------------------------------------------------


async def test_a_backup_has_the_data_models_objects_and_nothing_else(house: House) -> None:
    made = await house.back_up()

    copies = await house.below(f"_backups/alpha/{STAMP}/")
    assert copies == {**CONTENT, "_meta.json": (await house.store.get("alpha/_meta.json")).data}
    assert (await house.store.head(f"_backups/alpha/{STAMP}/{NOTE}")).meta == {"livememfs-name": f"written as {NOTE}"}
    assert made == (await backups.list_backups(house.replica))[0]
    assert (made.space, made.stamp, made.automatic, made.complete) == ("alpha", STAMP, False, True)
    assert made.bytes == sum(map(len, copies.values()))
    assert made.objects == len(copies) + 2  # and the sentinels


async def test_contents_are_copied_on_the_server(house: House) -> None:
    house.store.forget()
    await house.back_up()

    assert house.store.counts["get"] == 0
    assert [asked.key for asked in house.store.requests if asked.verb == "put"] == [
        f"_backups/alpha/{STAMP}/live/.keep"
    ]


async def test_the_record_is_copied_last(house: House) -> None:
    house.store.forget()
    await house.back_up()

    assert house.store.requests[-1] == StoreRequest("copy", f"_backups/alpha/{STAMP}/_meta.json")


async def test_copies_are_made_side_by_side(house: House, autojump_clock: Clock) -> None:
    house.store.latency("copy", 1)
    started = trio.current_time()
    await house.back_up()

    assert trio.current_time() - started == pytest.approx(2)


async def test_an_automatic_backup_is_marked_beside_the_metadata_there_was(house: House) -> None:
    data = (await house.store.get("alpha/_meta.json")).data
    await house.store.put("alpha/_meta.json", data, meta={"mine": "kept"})
    await house.back_up(automatic=True)
    await house.back_up()

    record = await house.store.head(f"_backups/alpha/{STAMP}/_meta.json")
    assert record.meta == {"mine": "kept", "livememfs-backup": "automatic"}
    assert (await house.store.head(f"_backups/alpha/{NEXT}/_meta.json")).meta == {"mine": "kept"}
    assert [one.automatic for one in await backups.list_backups(Replica(house.store))] == [True, False]


async def test_the_later_of_two_in_the_same_second_takes_the_next_free_one(house: House) -> None:
    made = [(await house.back_up()).stamp for _ in range(3)]

    assert made == [STAMP, NEXT, "2026-02-20T14-00-02"]


async def test_two_hosts_at_once_never_share_a_stamp(house: House, autojump_clock: Clock) -> None:
    house.store.latency("*", 0.1)
    made: list[str] = []

    async def back_up() -> None:
        made.append((await backups.create(Replica(house.store), house.clock, "alpha", automatic=True)).stamp)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(back_up)

    assert sorted(made) == [STAMP, NEXT, "2026-02-20T14-00-02"]


async def test_a_note_accepted_before_is_in_the_backup(
    house: House, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    nursery.start_soon(house.replica.run)
    house.store.latency("put", 5)
    house.replica.save(f"alpha/{OTHER}", b"just closed", meta={}, base=None)

    await house.back_up()

    assert (await house.below(f"_backups/alpha/{STAMP}/"))[OTHER] == b"just closed"
    nursery.cancel_scope.cancel()


async def test_a_backup_does_not_wait_for_ever(house: House, nursery: trio.Nursery, autojump_clock: Clock) -> None:
    house.replica.save(f"alpha/{OTHER}", b"never uploaded", meta={}, base=None)

    with pytest.raises(TimedOut, match="notes of alpha"):
        await house.back_up()
    assert await house.stamps() == []


async def test_what_goes_meanwhile_is_left_out(house: House) -> None:
    def go(asked: StoreRequest, _: int) -> Fault | None:
        if asked == StoreRequest("copy", f"_backups/alpha/{STAMP}/{NOTE}"):
            house.store.inner._objects.pop(f"alpha/{NOTE}", None)  # type: ignore[attr-defined]  # a callback cannot wait
        return None

    house.store.plan = go
    made = await house.back_up()

    assert NOTE not in await house.below(f"_backups/alpha/{STAMP}/")
    assert made == (await backups.list_backups(house.replica))[0]


@pytest.mark.parametrize("name", ["beta", "", "_system", f"alpha/{STAMP}"])
async def test_what_is_no_space_cannot_be_backed_up(house: House, name: str) -> None:
    before = await house.below("")
    with pytest.raises(NotFound):
        await house.back_up(space=name)

    assert await house.below("") == before


async def test_a_second_that_another_program_has_used_is_taken(house: House) -> None:
    await house.store.put(f"_backups/alpha/{STAMP}/_meta.json", b"{}")

    assert (await house.back_up()).stamp == NEXT


async def test_a_space_that_another_tool_copied_back_is_not_marked_for_ever(house: House) -> None:
    await house.back_up(automatic=True)
    await house.store.copy(f"_backups/alpha/{STAMP}/_meta.json", "alpha/_meta.json")

    assert not (await house.back_up()).automatic
    assert [one.automatic for one in await backups.list_backups(Replica(house.store))] == [True, False]


async def test_a_store_without_conditions_takes_backups(house: House) -> None:
    house.store.script("put", Fault(before=ConditionsUnsupported(key="x")))
    await house.back_up()

    assert await house.stamps() == [STAMP]


async def test_a_removed_space_is_not_brought_back_by_what_is_announced_of_its_backups(
    house: House, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    await house.back_up()
    replica = Replica(house.store, announce="here")
    nursery.start_soon(replica.run)
    await spaces.delete(replica, "alpha")
    await trio.sleep(1)
    await backups.delete(replica, "alpha", STAMP)
    await trio.sleep(1)

    assert await house.below("") == {}
    nursery.cancel_scope.cancel()


# --- torn --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [NOTE, "bank/progress.md", "_meta.json"])
async def test_a_crash_half_way_leaves_a_torn_backup_that_is_listed_and_refused(house: House, key: str) -> None:
    await house.tear(key)
    before = await house.below("alpha/")

    [torn] = await backups.list_backups(house.replica, "alpha")
    assert (torn.stamp, torn.complete, torn.automatic) == (STAMP, False, False)
    for refused in (
        house.restore(replace=True),
        house.restore(to="beta"),
        backups.download(house.replica, "alpha", STAMP, Path("/nowhere/x.tar.gz")),
    ):
        with pytest.raises(LiveMemError, match="incomplete"):
            await refused
    assert await house.below("alpha/") == before
    assert await house.below("beta/") == {}


async def test_the_next_backup_does_not_grow_into_a_torn_one(house: House) -> None:
    await house.tear(NOTE)

    assert (await house.back_up()).stamp == NEXT


async def test_latest_is_the_newest_complete_one(house: House) -> None:
    await house.back_up()
    await house.tear(NOTE)

    assert (await backups.find(house.replica, "alpha", backups.LATEST)).stamp == STAMP
    assert (await house.restore(backups.LATEST, to="beta")).stamp == STAMP


async def test_latest_of_torn_ones_alone_is_not_found(house: House) -> None:
    await house.tear(NOTE)
    with pytest.raises(NotFound, match="backup latest of alpha"):
        await backups.find(house.replica, "alpha", backups.LATEST)


# --- list --------------------------------------------------------------------------------------------------------


async def test_all_backups_are_listed_by_space_and_age_removed_spaces_too(house: House) -> None:
    await spaces.create(house.replica, house.clock, "beta")
    for space in ("beta", "alpha", "alpha"):
        await house.back_up(space=space)
    await spaces.delete(house.replica, "beta")
    await house.store.put("_backups/stray.txt", b"of somebody else")

    found = await backups.list_backups(Replica(house.store))

    assert [(one.space, one.stamp) for one in found] == [("alpha", STAMP), ("alpha", NEXT), ("beta", STAMP)]
    assert await backups.list_backups(house.replica, "gamma") == []


async def test_a_space_whose_name_begins_like_anothers_has_its_own_backups(house: House) -> None:
    await spaces.create(house.replica, house.clock, "alpha2")
    await house.back_up(space="alpha2")

    assert await house.stamps() == []


# --- prune -------------------------------------------------------------------------------------------------------


async def test_pruning_keeps_the_last_ten_automatic_ones_and_every_other(house: House) -> None:
    made: dict[bool, list[str]] = {True: [], False: []}
    record = (await house.store.get("alpha/_meta.json")).data
    await house.store.put("alpha/_meta.json", record, meta={"mine": "kept"})
    await house.tear(NOTE)
    for number in range(14):
        automatic = number not in (0, 7)
        made[automatic].append((await house.back_up(automatic=automatic)).stamp)
        house.clock.advance(minutes=1)
    mine = await house.below(f"_backups/alpha/{made[False][0]}/")

    gone = await backups.prune(Replica(house.store), "alpha")

    assert gone == made[True][:2]
    assert await house.stamps() == sorted([STAMP, *made[False], *made[True][2:]])
    assert await house.below(f"_backups/alpha/{made[False][0]}/") == mine
    assert await backups.prune(house.replica, "alpha") == []


async def test_pruning_touches_no_other_space_and_needs_none(house: House) -> None:
    await spaces.create(house.replica, house.clock, "alpha2")
    await house.back_up(automatic=True)
    await house.back_up(automatic=True, space="alpha2")

    assert await backups.prune(house.replica, "alpha", keep=0) == [STAMP]
    assert [one.space for one in await backups.list_backups(house.replica)] == ["alpha2"]
    assert await backups.prune(house.replica, "nowhere") == []


async def test_a_consolidation_can_back_up_and_prune_each_time(house: House) -> None:
    for _ in range(13):
        await backups.create(house.replica, house.clock, "alpha", automatic=True)
        await backups.prune(house.replica, "alpha")
        house.clock.advance(minutes=1)

    assert len(await house.stamps()) == backups.KEPT


# --- restore -----------------------------------------------------------------------------------------------------


async def test_a_round_trip_restores_the_exact_bytes_and_metadata(house: House) -> None:
    record = (await house.store.get("alpha/_meta.json")).data
    await house.back_up(automatic=True)
    await spaces.delete(house.replica, "alpha")

    done = await house.restore()

    assert await house.below("alpha/") == {**CONTENT, "_meta.json": record}
    assert (await house.store.head(f"alpha/{NOTE}")).meta == {"livememfs-name": f"written as {NOTE}"}
    assert (await house.store.head("alpha/_meta.json")).meta.get("livememfs-backup") is None  # type: ignore[union-attr]
    assert (done.target, done.removed, done.saved) == ("alpha", 0, None)
    assert done.objects == len((await list_all(house.store, "alpha/")).objects)


async def test_a_space_that_is_there_is_left_alone_without_replace(house: House) -> None:
    await house.back_up()
    await house.fill("alpha", {"bank/progress.md": b"newer"})
    before = await house.below("")

    with pytest.raises(AlreadyExists, match="alpha"):
        await house.restore()
    assert await house.below("") == before


async def test_replacing_brings_the_state_back_and_leaves_the_rest_alone(house: House) -> None:
    await house.back_up()
    await house.store.delete(f"alpha/{NOTE}")
    await house.fill("alpha", {"bank/progress.md": b"newer", "bank/new.md": b"new", OTHER: b"new", "docs/x": b"new"})

    done = await house.restore(replace=True)

    assert await house.content("alpha") == CONTENT
    assert await house.below("alpha/") == {
        **CONTENT,
        **OUTSIDE,
        "docs/x": b"new",
        "_meta.json": (await house.store.get("alpha/_meta.json")).data,
    }
    assert (done.removed, done.saved) == (2, NEXT)


async def test_a_synthesis_that_came_later_goes(house: House) -> None:
    await house.store.delete("alpha/_synthesis.md")
    await house.back_up()
    await house.fill("alpha", {"_synthesis.md": b"later"})

    assert (await house.restore(replace=True)).removed == 1
    assert "_synthesis.md" not in await house.below("alpha/")


async def test_rules_come_back_and_sealed_ones_stay_when_the_backup_has_none(house: House) -> None:
    await house.back_up()
    await house.store.delete("alpha/_rules.md")
    await house.back_up()
    await house.fill("alpha", {"_rules.md": b"others"})

    await house.restore(NEXT, replace=True)
    assert await spaces.rules(house.replica, "alpha") == "others"
    await house.restore(STAMP, replace=True)
    assert await spaces.rules(house.replica, "alpha") == "# Rules\n"


async def test_a_restore_over_a_space_is_undone_from_its_automatic_backup(house: House) -> None:
    await house.back_up()
    await house.fill("alpha", {"bank/progress.md": b"newer", "bank/new.md": b"new", OTHER: b"new"})
    await house.store.delete("alpha/bank/more/deep.md")
    before = await house.below("alpha/")

    done = await house.restore(replace=True)
    assert await house.below("alpha/") != before
    assert done.saved is not None
    assert (await backups.find(house.replica, "alpha", done.saved)).automatic
    await house.restore(done.saved, replace=True)

    assert await house.below("alpha/") == before


async def test_nothing_is_replaced_while_the_present_state_cannot_be_backed_up(house: House) -> None:
    await house.back_up()
    await house.fill("alpha", {"bank/progress.md": b"newer"})
    house.store.plan = lambda asked, _: (
        Fault(before=Unreachable("gone"))
        if asked == StoreRequest("copy", f"_backups/alpha/{NEXT}/_meta.json")
        else None
    )
    before = await house.below("alpha/")

    with pytest.raises(Unreachable):
        await house.restore(replace=True)
    assert await house.below("alpha/") == before


async def test_a_restore_over_a_space_holds_its_lease_and_one_under_a_new_name_needs_none(house: House) -> None:
    await house.back_up()
    house.store.forget()
    await house.restore(replace=True)

    lease = keys.lease_key("alpha")
    writes = [asked.key for asked in house.store.requests if asked.verb in ("put", "delete", "copy")]
    assert (writes[0], writes[-1], writes.count(lease)) == (lease, lease, 2)
    house.store.forget()
    await house.restore(to="beta")
    assert not [asked for asked in house.store.requests if "leases" in asked.key]


async def test_what_is_committed_is_carried_out_before_it_is_restored_over(house: House) -> None:
    await house.back_up()
    record = await house.record()
    etag = (await house.store.head("alpha/_meta.json")).etag
    written = record.after_run(START, 1, ledger=2).render().decode()
    writes = (Write("bank/late.md", None, "late"), Write("_meta.json", etag, written))
    entry = Entry(number=2, space="alpha", committed_at=START, writes=writes)
    await house.store.put(keys.ledger_key("alpha", 2), entry.render())

    done = await house.restore(replace=True)

    assert Entry.parse((await house.store.get(keys.ledger_key("alpha", 2))).data).state == "applied"
    assert "bank/late.md" in await house.below(f"_backups/alpha/{done.saved}/")
    assert "bank/late.md" not in await house.below("alpha/")
    record = await house.record()
    assert (record.consolidation_count, record.ledger) == (0, 2)


async def test_what_others_write_during_a_restore_is_not_removed(house: House) -> None:
    await house.back_up()
    await house.fill("alpha", {OTHER: b"known", "bank/new.md": b"known"})

    def write(asked: StoreRequest, _: int) -> Fault | None:
        if asked == StoreRequest("copy", f"_backups/alpha/{NEXT}/_meta.json"):
            house.store.inner._place(f"alpha/{OTHER}", b"edited", {}, None)  # type: ignore[attr-defined]  # as above
            house.store.inner._place("alpha/live/third.md", b"new", {}, None)  # type: ignore[attr-defined]
        return None

    house.store.plan = write
    done = await house.restore(replace=True)

    found = await house.below("alpha/")
    assert (found[OTHER], found["live/third.md"]) == (b"edited", b"new")
    assert done.removed == 1
    assert "bank/new.md" not in found


@pytest.mark.parametrize("written", [NOTE, "bank/progress.md", OTHER])
async def test_what_others_write_where_a_restore_writes_is_kept_beside(
    house: House, written: str, expect_log: Callable[[str], None]
) -> None:
    """Edited after the former state was copied aside, it would be in no backup."""
    if written == OTHER:
        await house.fill("alpha", {OTHER: b"backed up"})
        expect_log("changed during a restore")
        await house.back_up()
        await house.store.delete(f"alpha/{OTHER}")  # and it is made anew
    else:
        expect_log("changed during a restore")
        await house.back_up()

    def write(asked: StoreRequest, _: int) -> Fault | None:
        if asked == StoreRequest("copy", f"_backups/alpha/{NEXT}/_meta.json"):
            house.store.inner._place(f"alpha/{written}", b"edited", {}, None)  # type: ignore[attr-defined]  # as above
        return None

    house.store.plan = write
    await house.restore(replace=True)

    found = await house.below("alpha/")
    assert found[written] == (CONTENT | {OTHER: b"backed up"})[written]
    assert [name for name, data in found.items() if data == b"edited" and ".conflict-restored-" in name]


async def test_a_lost_answer_in_a_restore_makes_no_copy_beside(house: House) -> None:
    await house.back_up()
    await house.fill("alpha", {NOTE: b"later"})
    lost = {f"alpha/{NOTE}", "alpha/live/picture.png"}

    def lose(asked: StoreRequest, _: int) -> Fault | None:
        if asked.verb == "copy" and asked.key in lost:
            lost.remove(asked.key)
            return Fault(after=PreconditionFailed(key=asked.key))  # what a second try of a copy that was made meets
        return None

    house.store.plan = lose
    await house.restore(replace=True)

    assert lost == set()
    assert await house.content("alpha") == CONTENT
    assert not [name for name in await house.below("alpha/") if ".conflict-" in name]


async def test_sentinels_stay_although_a_backup_has_none(house: House) -> None:
    await house.back_up()
    await house.store.delete(f"_backups/alpha/{STAMP}/bank/.keep")

    assert (await house.restore(replace=True)).removed == 0
    assert (await house.store.get("alpha/bank/.keep")).data == b""


async def test_a_store_without_conditions_can_be_restored_on(house: House) -> None:
    await house.back_up()
    await house.fill("alpha", {OTHER: b"new"})
    house.store.script("delete", Fault(before=ConditionsUnsupported(key="x")))
    refused: set[str] = set()

    def refuse(asked: StoreRequest, _: int) -> Fault | None:
        if asked.verb != "copy" or not asked.key.startswith("alpha/") or asked.key in refused:
            return None
        refused.add(asked.key)
        return Fault(before=ConditionsUnsupported(key=asked.key))

    house.store.plan = refuse
    assert (await house.restore(replace=True)).removed == 1
    assert await house.content("alpha") == CONTENT


async def test_the_figures_are_those_of_the_backup_and_the_number_in_the_ledger_never_goes_back(house: House) -> None:
    await house.record(consolidation_count=3, total_notes_processed=30, livememfs_ledger=4, colour="blue")
    await house.back_up()
    await house.record(consolidation_count=5, total_notes_processed=50, livememfs_ledger=7)

    await house.restore(replace=True)

    record = await house.record()
    assert (record.consolidation_count, record.total_notes_processed, record.ledger) == (3, 30, 7)
    assert record.extra == {"colour": "blue"}


async def test_the_record_is_written_last(house: House) -> None:
    await house.back_up()
    house.store.forget()
    await house.restore(to="beta")

    changes = [asked for asked in house.store.requests if asked.verb in ("put", "copy", "delete")]
    assert changes[-1] == StoreRequest("put", "beta/_meta.json")


async def test_another_name_gets_a_record_of_its_own_and_the_notes_as_they_were(house: House) -> None:
    await house.record(consolidation_count=3, colour="blue")
    await house.back_up()

    done = await house.restore(to="beta")

    record = await house.record("beta")
    assert (record.space_id, record.consolidation_count, record.extra) == ("beta", 3, {"colour": "blue"})
    assert record == Meta("beta", "d", "o", START, consolidation_count=3, extra={"colour": "blue"})
    assert await house.content("beta") == CONTENT
    assert done.target == "beta"
    assert [one.name for one in await spaces.list_spaces(house.replica)] == ["alpha", "beta"]


async def test_another_space_is_replaced_only_after_a_backup_of_its_own(house: House) -> None:
    await spaces.create(house.replica, house.clock, "beta", rules="# Beta\n")
    await house.fill("beta", {"bank/beta.md": b"beta"})
    await house.back_up()
    with pytest.raises(AlreadyExists, match="beta"):
        await house.restore(to="beta")

    done = await house.restore(to="beta", replace=True)

    assert await house.content("beta") == CONTENT
    assert (await house.record("beta")).space_id == "beta"
    saved = await backups.find(house.replica, "beta", str(done.saved))
    assert "bank/beta.md" in await house.below(saved.prefix)


@pytest.mark.parametrize("name", ["Beta", "search", "_system", "a/b", ""])
async def test_a_name_that_no_space_can_have_is_refused(house: House, name: str) -> None:
    await house.back_up()
    before = await house.below("")
    with pytest.raises(InvalidName):
        await house.restore(to=name)

    assert await house.below("") == before


async def test_a_restore_that_died_makes_no_space_and_can_be_made_again(house: House) -> None:
    await house.back_up()
    house.store.plan = lambda asked, _: (
        Fault(before=Unreachable("gone")) if asked == StoreRequest("put", "beta/_meta.json") else None
    )
    with pytest.raises(Unreachable):
        await house.restore(to="beta")
    house.store.plan = None
    assert await house.below("beta/") == CONTENT

    await house.restore(to="beta")
    assert await house.content("beta") == CONTENT


@pytest.mark.parametrize("name", ["bank/progress.md", "live/mine.md", "_synthesis.md"])
async def test_what_stands_where_there_is_no_space_is_not_overwritten(house: House, name: str) -> None:
    await house.back_up()
    await house.fill("beta", {name: b"somebody's"})

    for replace in (False, True):
        with pytest.raises(NotEmpty, match=name):
            await house.restore(to="beta", replace=replace)
    assert await house.below("beta/") == {name: b"somebody's"}


async def test_a_space_made_meanwhile_is_not_taken_over(house: House) -> None:
    await house.back_up()

    def make(asked: StoreRequest, _: int) -> Fault | None:
        if asked == StoreRequest("copy", f"beta/{NOTE}"):
            house.store.inner._place("beta/_meta.json", b"{}", {}, None)  # type: ignore[attr-defined]  # as above
        return None

    house.store.plan = make
    with pytest.raises(AlreadyExists, match="beta"):
        await house.restore(to="beta")
    assert (await house.store.get("beta/_meta.json")).data == b"{}"


async def test_a_record_that_cannot_be_read_comes_back_under_its_own_name_only(house: House) -> None:
    await house.store.put("alpha/_meta.json", b"[]")
    await house.back_up()
    await spaces.delete(house.replica, "alpha")

    with pytest.raises(LiveMemError, match=r"_meta\.json cannot be read"):
        await house.restore(to="beta")
    assert await house.below("beta/") == {}
    await house.restore()
    assert (await house.store.get("alpha/_meta.json")).data == b"[]"


async def test_only_what_a_backup_is_made_of_comes_back(house: House) -> None:
    await house.back_up()
    await house.store.put(f"_backups/alpha/{STAMP}/docs/stray", b"x")
    await house.store.put(f"_backups/alpha/{STAMP}/_ledger/00000009.json", b"x")

    await house.restore(to="beta")

    assert set(await house.below("beta/")) == {*CONTENT, "_meta.json"}


@pytest.mark.parametrize("stamp", ["", "bank", "..", f"{STAMP}/bank", "2026-02-20T14-00-09", backups.LATEST])
async def test_a_backup_that_is_not_there_is_named(house: House, stamp: str) -> None:
    with pytest.raises(NotFound, match="of alpha"):
        await house.restore(stamp)
    with pytest.raises(NotFound, match="of alpha"):
        await backups.delete(house.replica, "alpha", stamp)


@pytest.mark.parametrize(("space", "stamp"), [(f"alpha/{STAMP}", "bank"), ("", "alpha"), (f"../{STAMP}", "x")])
async def test_no_name_of_a_space_reaches_into_a_backup(house: House, space: str, stamp: str) -> None:
    await house.back_up()
    before = await house.below("")
    for refused in (
        backups.delete(house.replica, space, stamp),
        backups.prune(house.replica, space, keep=0),
        house.restore(stamp, space=space, to="beta"),
    ):
        with pytest.raises(NotFound):
            await refused

    assert await house.below("") == before


# --- download and delete -----------------------------------------------------------------------------------------


async def test_a_download_holds_every_object_of_one_backup(house: House, tmp_path: Path) -> None:
    await house.back_up()
    await house.back_up()
    steps: list[tuple[int, int]] = []

    made = await backups.download(
        house.replica, "alpha", STAMP, tmp_path / "a.tar.gz", progress=lambda done, total: steps.append((done, total))
    )

    keys_ = [item.key for item in (await list_all(house.store, f"_backups/alpha/{STAMP}/")).objects]
    with tarfile.open(made.target) as archive:
        assert archive.getnames() == [key.removeprefix("_backups/") for key in keys_]
        member = archive.extractfile(f"alpha/{STAMP}/live/picture.png")
        assert member is not None
        assert member.read() == CONTENT["live/picture.png"]
    assert steps[-1] == (len(keys_), len(keys_))
    assert os.listdir(tmp_path) == ["a.tar.gz"]


async def test_a_download_that_cannot_be_written_is_refused(house: House, tmp_path: Path) -> None:
    await house.back_up()
    with pytest.raises(UsageError, match=r"\.tar\.gz"):
        await backups.download(house.replica, "alpha", STAMP, tmp_path / "a.rar")
    with pytest.raises(UsageError, match="no directory"):
        await backups.download(house.replica, "alpha", STAMP, tmp_path / "none" / "a.tgz")


async def test_a_delete_takes_the_record_first_and_nothing_of_others(house: House) -> None:
    made = await house.back_up()
    await house.back_up()
    house.store.forget()

    assert await backups.delete(house.replica, "alpha", STAMP) == made.objects

    gone = [asked.key for asked in house.store.requests if asked.verb == "delete"]
    assert gone[0] == f"_backups/alpha/{STAMP}/_meta.json"
    assert len(gone) == made.objects + 1
    assert gone[-1] == f"_backups/alpha/{STAMP}/"  # for stores that go on listing a directory
    assert await house.stamps() == [NEXT]
    assert await house.content("alpha") == CONTENT


async def test_a_delete_that_dies_leaves_a_torn_backup_that_can_be_deleted(house: House) -> None:
    await house.back_up()
    house.store.script("delete", None, Fault(before=Unreachable("gone")))
    with pytest.raises(Unreachable):
        await backups.delete(house.replica, "alpha", STAMP)

    assert [one.complete for one in await backups.list_backups(house.replica)] == [False]
    await backups.delete(house.replica, "alpha", STAMP)
    assert await house.below("_backups/") == {}


async def test_progress_is_told_after_each_object(house: House) -> None:
    steps: list[tuple[int, int]] = []
    await backups.create(
        house.replica,
        house.clock,
        "alpha",
        automatic=False,
        progress=lambda done, total: steps.append((done, total)),
    )

    assert steps == [(n, len(steps)) for n in range(1, len(steps) + 1)]
    assert len(steps) == len(CONTENT) + 1


async def test_stamps_follow_the_clock(house: House) -> None:
    await house.back_up()
    house.clock.advance(days=1)

    assert (await house.back_up()).stamp == "2026-02-21T14-00-00"
