"""Spaces come and go in an order that a crash, a second try or another host can live with."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import (
    AlreadyExists,
    BadRequest,
    ConditionsUnsupported,
    InvalidName,
    LiveMemError,
    NotEmpty,
    NotFound,
    NotText,
    ReadOnly,
    StoreError,
    TooLarge,
    Unreachable,
    UsageError,
)
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

NOTE = "live/20260220T140000_cline_todo_a1b2c3d4.md"


class House:
    """A bucket in memory that can fail, seen through a replica."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.replica = Replica(self.store)

    async def create(self, name: str = "alpha", *, rules: str | None = None) -> Meta:
        """A space."""
        return await spaces.create(self.replica, self.clock, name, description="d", owner="o", rules=rules)

    async def fill(self, space: str, **objects: bytes) -> None:
        """Objects by name below the space, put as another host would."""
        for name, data in objects.items():
            await self.store.put(f"{space}/{name}", data)

    def at_once(self, **objects: bytes | None) -> None:
        """The same (None: gone) from inside a callback, which cannot wait."""
        for name, data in objects.items():
            if data is None:
                del self.memory._objects[f"alpha/{name}"]
            else:
                self.memory._place(f"alpha/{name}", data, {}, None)

    async def keys(self) -> list[str]:
        """All keys of the bucket."""
        return [item.key for item in (await list_all(self.store, "")).objects]


@pytest.fixture
def house() -> House:
    return House()


# --- create ------------------------------------------------------------------------------------------------------


async def test_a_new_space_has_the_data_models_objects(house: House) -> None:
    meta = await house.create(rules="# Rules\n")

    assert await house.keys() == ["alpha/_meta.json", "alpha/_rules.md", "alpha/bank/.keep", "alpha/live/.keep"]
    assert meta == Meta("alpha", "d", "o", START)
    assert Meta.parse((await house.store.get("alpha/_meta.json")).data) == meta
    assert (await house.store.get("alpha/_rules.md")).data == b"# Rules\n"


async def test_a_space_without_rules_can_have_them_later(house: House) -> None:
    await house.create()

    assert "alpha/_rules.md" not in await house.keys()
    await spaces.seal_rules(house.replica, "alpha", b"# Mine\n")
    assert await spaces.rules(house.replica, "alpha") == "# Mine\n"


async def test_a_space_is_made_once(house: House) -> None:
    first = await house.create()
    with pytest.raises(AlreadyExists, match="alpha"):
        await spaces.create(house.replica, house.clock, "alpha", description="other")

    assert Meta.parse((await house.store.get("alpha/_meta.json")).data) == first


async def test_of_two_that_make_the_same_space_one_does(house: House) -> None:
    made: list[str] = []

    async def make(owner: str) -> None:
        try:
            await spaces.create(Replica(house.store), house.clock, "alpha", owner=owner)
        except AlreadyExists:
            return
        made.append(owner)

    async with trio.open_nursery() as nursery:
        for owner in "abcd":
            nursery.start_soon(make, owner)

    assert [Meta.parse((await house.store.get("alpha/_meta.json")).data).owner] == made


@pytest.mark.parametrize(
    ("name", "rules", "error"),
    [
        ("Alpha", None, InvalidName),
        ("search", None, InvalidName),
        ("alpha", " \n", BadRequest),
        ("alpha", "\ud800", NotText),
        ("alpha", "x" * (spaces.MAX_RULES_BYTES + 1), TooLarge),
    ],
)
async def test_a_bad_request_leaves_nothing_behind(
    house: House, name: str, rules: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await spaces.create(house.replica, house.clock, name, rules=rules)

    assert await house.keys() == []


async def test_a_store_without_conditions_is_asked_first(house: House) -> None:
    refused = [False]

    def refuse_conditions(asked: StoreRequest, _: int) -> Fault | None:
        """Of each pair of puts of one key the first, which is the conditional one."""
        if asked.verb != "put" or asked.key.endswith(".keep"):
            return None
        refused[0] = not refused[0]
        return Fault(before=ConditionsUnsupported(key=asked.key)) if refused[0] else None

    house.store.plan = refuse_conditions
    await house.create(rules="# Rules\n")
    assert "alpha/_rules.md" in await house.keys()

    with pytest.raises(AlreadyExists):
        await house.create()


# --- rules -------------------------------------------------------------------------------------------------------


async def test_rules_are_sealed(house: House) -> None:
    await house.create(rules="first")
    with pytest.raises(ReadOnly, match=r"alpha/_rules\.md"):
        await spaces.seal_rules(house.replica, "alpha", b"second")

    assert await spaces.rules(house.replica, "alpha") == "first"


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"\xff", NotText), (b"", BadRequest), (b"x" * (spaces.MAX_RULES_BYTES + 1), TooLarge)],
)
async def test_what_cannot_be_rules_is_refused(house: House, data: bytes, error: type[Exception]) -> None:
    await house.create()
    with pytest.raises(error):
        await spaces.seal_rules(house.replica, "alpha", data)

    assert "alpha/_rules.md" not in await house.keys()


async def test_rules_need_a_space(house: House) -> None:
    with pytest.raises(NotFound, match="beta"):
        await spaces.seal_rules(house.replica, "beta", b"x")
    with pytest.raises(NotFound, match="beta"):
        await spaces.rules(house.replica, "beta")
    await house.create()
    with pytest.raises(NotFound, match=r"_rules\.md"):
        await spaces.rules(house.replica, "alpha")


# --- list, info, summary -----------------------------------------------------------------------------------------


async def test_spaces_are_the_prefixes_with_a_meta(house: House) -> None:
    await house.create("beta")
    await house.create("alpha")
    await house.store.put("plain/file.txt", b"x")
    await house.store.put("_system/_meta.json", b"{}")
    await house.store.put("top.txt", b"x")
    await house.store.put("broken/_meta.json", b"[]")

    found = await spaces.list_spaces(house.replica)

    assert [entry.name for entry in found] == ["alpha", "beta", "broken"]
    assert found[0].meta == Meta("alpha", "d", "o", START)
    assert found[2].meta is None
    assert "not a JSON object" in found[2].problem
    assert await spaces.is_space(house.replica, "alpha")
    assert not await spaces.is_space(house.replica, "plain")
    assert not await spaces.is_space(house.replica, "_system")


async def test_info_counts_notes_and_bank_files_only(house: House) -> None:
    await house.create(rules="r")
    await house.fill(
        "alpha",
        **{
            NOTE: b"12345",
            "live/foreign.md": b"123",
            "live/picture.png": b"1",
            "bank/a.md": b"1234567",
            "bank/b/c.md": b"12",
            "docs/readme.txt": b"1",
            "_synthesis.md": b"s",
        },
    )

    found = await spaces.info(house.replica, "alpha")

    assert (found.notes, found.note_bytes) == (2, 8)
    assert (found.bank_files, found.bank_bytes) == (2, 9)
    assert (found.rules, found.synthesis, found.problem) == (True, True, "")
    assert found.meta is not None


async def test_info_of_a_damaged_space_still_counts(house: House) -> None:
    await house.create()
    await house.fill("alpha", **{NOTE: b"1", "_meta.json": b"{"})

    found = await spaces.info(house.replica, "alpha")

    assert (found.meta, found.notes, found.rules) == (None, 1, False)
    assert "_meta.json" in found.problem


async def test_a_summary_is_the_rules_and_the_bank(house: House) -> None:
    await house.create(rules="# My rules\n")
    await house.fill("alpha", **{"bank/b.md": b"B\n", "bank/a/x.md": b"A\n", NOTE: b"note"})

    found = await spaces.summary(house.replica, "alpha")

    assert found.rules == "# My rules\n"
    assert list(found.bank.items()) == [("a/x.md", "A\n"), ("b.md", "B\n")]
    assert found.render() == (
        "# alpha\n\nd\n\n## _rules.md\n\n# My rules\n\n## bank/a/x.md\n\nA\n\n## bank/b.md\n\nB\n"
    )


async def test_a_summary_needs_no_rules(house: House) -> None:
    await house.create()

    assert (await spaces.summary(house.replica, "alpha")).render() == "# alpha\n\nd\n"


@pytest.mark.parametrize(
    "call",
    [
        spaces.info,
        spaces.summary,
        spaces.rules,
        spaces.delete,
        spaces.remove_empty,
        lambda replica, space: spaces.export(replica, space, Path("/nowhere/x.zip")),
    ],
)
async def test_what_is_no_space_is_not_found(house: House, call: Callable[[Replica, str], Awaitable[object]]) -> None:
    await house.store.put("plain/file.txt", b"x")
    with pytest.raises(NotFound, match="plain"):
        await call(house.replica, "plain")

    assert await house.keys() == ["plain/file.txt"]


# --- export ------------------------------------------------------------------------------------------------------


async def test_an_export_holds_every_object_in_order(house: House, tmp_path: Path) -> None:
    await house.create(rules="r")
    await house.fill("alpha", **{NOTE: b"note", "bank/a.md": b"bank", "docs/d.bin": bytes(range(256))})
    steps: list[tuple[int, int]] = []

    made = await spaces.export(
        house.replica, "alpha", tmp_path / "a.tar.gz", progress=lambda done, total: steps.append((done, total))
    )

    keys = await house.keys()
    with tarfile.open(made.target) as archive:
        assert archive.getnames() == keys
        member = archive.extractfile("alpha/docs/d.bin")
        assert member is not None
        assert member.read() == bytes(range(256))
        assert archive.getmember("alpha/_rules.md").mtime == START.timestamp()
    assert steps == [(n, len(keys)) for n in range(1, len(keys) + 1)]
    assert (made.objects, made.size) == (len(keys), made.target.stat().st_size)
    assert os.listdir(tmp_path) == ["a.tar.gz"]


async def test_a_zip_holds_the_same(house: House, tmp_path: Path) -> None:
    await house.create()
    await house.fill("alpha", **{NOTE: "café".encode()})
    await spaces.export(house.replica, "alpha", tmp_path / "a.zip")

    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == await house.keys()
        assert archive.read(f"alpha/{NOTE}") == "café".encode()
        assert archive.testzip() is None


UNPACKABLE = ("docs/..", "..", "a/../b", "../../evil", "/abs", "a//b", "a/./b", ".", "x\\..\\..\\evil", "nul\0", "file")
ODD = (
    "file/below",
    "..two",
    "new\nline",
    "tab\t",
    "-rf",
    "\x1b[31m",
    "back\\slash",
    "déjà",
    "a" * 200 + "/" + "b" * 200,
)


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
async def test_an_archive_has_only_what_can_be_unpacked_below_a_folder(
    house: House, tmp_path: Path, suffix: str
) -> None:
    """Whoever writes to a bucket makes any key; whoever unpacks it with any tool gets files in one folder, and all."""
    await house.create()
    await house.fill("alpha", **dict.fromkeys(UNPACKABLE, b"evil"), **dict.fromkeys(ODD, b"odd"))
    made = await spaces.export(house.replica, "alpha", tmp_path / f"a.{suffix}")

    assert {*made.left_out} == {f"alpha/{name}" for name in UNPACKABLE}
    for way in ("python", "tool"):
        place = tmp_path / way / "deep/er"
        place.mkdir(parents=True)
        if suffix == "zip":
            with zipfile.ZipFile(made.target) as packed:
                packed.extractall(place)
        elif way == "python":
            with tarfile.open(made.target) as archive:
                archive.extractall(place, filter="data")
        else:
            done = subprocess.run(["tar", "-C", place, "-xzf", made.target], capture_output=True, text=True, check=True)
            assert done.stderr == ""  # it says what it changes or skips
        files = {path for path in (tmp_path / way).rglob("*") if path.is_file()}
        assert len(files) == made.objects
        assert {f"alpha/{name}" for name in ODD} <= {path.relative_to(place).as_posix() for path in files}


@pytest.mark.parametrize("suffix", ["tgz", "zip"])
async def test_the_same_space_gives_the_same_bytes(house: House, tmp_path: Path, suffix: str) -> None:
    await house.create(rules="r")
    await spaces.export(house.replica, "alpha", tmp_path / f"a.{suffix}")
    house.clock.advance(days=1)
    await spaces.export(Replica(house.store), "alpha", tmp_path / f"b.{suffix}")

    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
async def test_an_export_that_fails_leaves_the_old_file(house: House, tmp_path: Path, name: str) -> None:
    await house.create(rules="r")
    target = tmp_path / name
    target.write_bytes(b"old")
    house.store.script("get", None, None, Fault(before=Unreachable("gone")))
    with pytest.raises(Unreachable):
        await spaces.export(Replica(house.store), "alpha", target)
    gc.collect()

    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [name]


async def test_a_cancelled_export_leaves_nothing(house: House, tmp_path: Path, autojump_clock: object) -> None:
    await house.create()
    house.store.latency("get", 60)
    with trio.move_on_after(90) as scope:
        await spaces.export(Replica(house.store), "alpha", tmp_path / "a.tar.gz")

    assert scope.cancelled_caught
    assert os.listdir(tmp_path) == []


async def test_an_object_that_goes_meanwhile_is_left_out(house: House, tmp_path: Path) -> None:
    await house.create()
    await house.fill("alpha", **{"bank/a.md": b"a", "bank/b.md": b"old"})
    keys = await house.keys()

    def go(done: int, _: int) -> None:
        if done == 1:
            house.at_once(**{"bank/a.md": None, "bank/b.md": b"new"})

    made = await spaces.export(Replica(house.store), "alpha", tmp_path / "a.tgz", progress=go)

    with tarfile.open(made.target) as archive:
        assert archive.getnames() == [key for key in keys if key != "alpha/bank/a.md"]
        member = archive.extractfile("alpha/bank/b.md")
        assert member is not None
        assert member.read() == b"new"


async def test_a_target_that_cannot_be_is_refused_at_once(house: House, tmp_path: Path) -> None:
    await house.create()
    with pytest.raises(UsageError, match=r"\.tar\.gz"):
        await spaces.export(house.replica, "alpha", tmp_path / "a.rar")
    with pytest.raises(UsageError, match="no directory"):
        await spaces.export(house.replica, "alpha", tmp_path / "none" / "a.zip")
    (tmp_path / "taken.zip").mkdir()
    with pytest.raises(LiveMemError, match=r"taken\.zip cannot be written"):
        await spaces.export(house.replica, "alpha", tmp_path / "taken.zip")

    assert os.listdir(tmp_path) == ["taken.zip"]


async def test_a_gzip_carries_no_time_of_its_own(house: House, tmp_path: Path) -> None:
    await house.create()
    await spaces.export(house.replica, "alpha", tmp_path / "a.tar.gz")
    with gzip.open(tmp_path / "a.tar.gz") as file:
        file.read(1)
        assert file.mtime == 0


# --- delete ------------------------------------------------------------------------------------------------------


async def test_a_delete_removes_one_space_and_its_meta_last(house: House) -> None:
    await house.create(rules="r")
    await house.create("alpha2")
    await house.fill("alpha", **{NOTE: b"n", "docs/x": b"x", "docs/": b""})
    house.store.forget()
    steps: list[tuple[int, int]] = []

    removed = await spaces.delete(house.replica, "alpha", progress=lambda done, total: steps.append((done, total)))

    assert removed == 7
    assert steps == [(n, 6) for n in range(1, 7)]
    assert [key for key in await house.keys() if not key.startswith("alpha2/")] == []
    assert len(await house.keys()) == 3
    assert [asked.key for asked in house.store.requests if asked.verb == "delete"][-2:] == [
        "alpha/_meta.json",
        "alpha/",
    ]


async def test_a_delete_that_failed_can_be_repeated(house: House) -> None:
    await house.create(rules="r")
    await house.fill("alpha", **{f"bank/{n}.md": b"x" for n in range(30)})
    house.store.script("delete", None, None, Fault(before=StoreError("no", key="k")))
    with pytest.raises(StoreError, match="no"):
        await spaces.delete(house.replica, "alpha")
    left = await house.keys()
    assert "alpha/_meta.json" in left
    assert len(left) > 20

    await spaces.delete(house.replica, "alpha")
    assert await house.keys() == []


async def test_what_arrives_during_a_delete_goes_too(house: House) -> None:
    await house.create()
    arrived: list[bool] = []

    def late(done: int, _: int) -> None:
        if done == 1 and not arrived:
            arrived.append(True)
            house.at_once(**{"live/late.md": b"late"})

    await spaces.delete(house.replica, "alpha", progress=late)

    assert await house.keys() == []


# --- rmdir -------------------------------------------------------------------------------------------------------


async def test_an_empty_space_can_go_with_its_own_records(house: House) -> None:
    await house.create(rules="r")
    await house.fill(
        "alpha",
        **{
            "_synthesis.md": b"s",
            "_ledger/00000001.json": b"{}",
            "_changes/h.json": b"{}",
            "": b"",
            "live/": b"",
            "bank/sub/": b"",
        },
    )
    house.store.forget()

    await spaces.remove_empty(house.replica, "alpha")

    assert await house.keys() == []
    assert [asked.key for asked in house.store.requests if asked.verb == "delete"][-2:] == [
        "alpha/_meta.json",
        "alpha/",
    ]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        (NOTE, "1 in live/"),
        ("live/foreign.md", "1 in live/"),
        ("live/picture.png", "1 in live/"),
        ("bank/a/b.md", "1 in bank/"),
        ("docs/readme.txt", "1 other files or directories"),
        ("docs/", "1 other files or directories"),
        ("_proposals/20260220T140000_fact_d4d8560b.json", "1 in .proposals/"),
    ],
)
async def test_a_space_with_anything_of_the_users_stays(house: House, name: str, detail: str) -> None:
    await house.create(rules="r")
    await house.fill("alpha", **{name: b""})
    before = await house.keys()

    with pytest.raises(NotEmpty, match=detail):
        await spaces.remove_empty(house.replica, "alpha")
    assert await house.keys() == before


# --- what is written unasked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [0.0, 0.15, 5.0])
@pytest.mark.parametrize("removal", [spaces.delete, spaces.remove_empty])
async def test_a_removed_space_is_not_brought_back_by_an_announcement_on_its_way(
    house: House,
    nursery: trio.Nursery,
    autojump_clock: Clock,
    removal: Callable[[Replica, str], Awaitable[object]],
    late: float,
) -> None:
    """However slow each beacon is: none arrives after the space has gone, and names show none either."""
    replica = Replica(house.store, announce="here", poll_interval=2.0)
    await nursery.start(replica.run)
    await spaces.create(replica, house.clock, "alpha")
    await replica.names.listing("alpha/")
    house.store.latency("delete", 0.1)
    house.store.plan = lambda asked, _: Fault(delay=late) if keys.CHANGES in asked.key else None
    await trio.sleep(0.1)
    await removal(replica, "alpha")

    assert "alpha" not in await replica.names.listing("", max_age=0.0)
    await trio.sleep(30)
    assert await house.keys() == []
    nursery.cancel_scope.cancel()


async def test_a_removal_that_failed_is_announced_as_far_as_it_came(
    house: House, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    replica = Replica(house.store, announce="here")
    await nursery.start(replica.run)
    await house.create()
    await house.fill("alpha", **{"docs/x": b"x"})
    house.store.script("delete", None, Fault(delay=1.0, before=StoreError("no", key="k")))
    with pytest.raises(StoreError):
        await spaces.delete(replica, "alpha")
    await trio.sleep(1)

    [beacon] = [key for key in await house.keys() if keys.CHANGES in key]
    assert b"alpha/bank/.keep" in (await house.store.get(beacon)).data
    nursery.cancel_scope.cancel()


async def test_a_space_made_again_is_told_from_the_one_before_it(
    house: House, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    """Who has heard the fifth change of the old one must not take the fifth of the new one for heard."""
    replica = Replica(house.store, announce="here")
    await nursery.start(replica.run)
    epochs = []
    for _ in range(2):
        await spaces.create(replica, house.clock, "alpha")
        await trio.sleep(1)
        epochs.append(json.loads((await house.store.get("alpha/_changes/here.json")).data)["epoch"])
        await spaces.delete(replica, "alpha")

    assert len(set(epochs)) == 2
    nursery.cancel_scope.cancel()


async def test_what_was_accepted_is_in_the_bucket_before_its_space_goes(
    house: House, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    """A note that waits for its upload would bring the prefix back."""
    await house.create()
    house.store.latency("put", 3.0)
    nursery.start_soon(house.replica.run)
    house.replica.save(f"alpha/{NOTE}", b"late", meta={}, base=None)
    await spaces.delete(house.replica, "alpha")
    await trio.sleep(30)

    assert await house.keys() == []
    nursery.cancel_scope.cancel()


# --- side by side ------------------------------------------------------------------------------------------------


async def test_work_is_done_side_by_side_within_the_limit(autojump_clock: object) -> None:
    running: list[int] = []
    most = 0

    async def work(item: int) -> None:
        nonlocal most
        running.append(item)
        most = max(most, len(running))
        await trio.sleep(1)
        running.remove(item)

    started = trio.current_time()
    await for_each(range(10), work, at_once=4)

    assert most == 4
    assert trio.current_time() - started == pytest.approx(3)


async def test_the_first_failure_stops_the_rest(autojump_clock: object) -> None:
    done: list[int] = []

    async def work(item: int) -> None:
        if item == 3:
            raise NotFound(path="three")
        await trio.sleep(1)
        done.append(item)

    with pytest.raises(NotFound, match="three"):
        await for_each(range(100), work, at_once=4)
    assert len(done) < 4
