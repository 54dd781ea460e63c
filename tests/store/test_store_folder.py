"""The folder store where it is a folder: what people see and do there, crashes, and other processes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import md5
from pathlib import Path

import pytest
import trio

import livememfs
from livememfs.errors import Denied, NoSpace, ObjectMissing, StoreError, Unreachable
from livememfs.store.base import IfAbsent, IfMatch, list_all
from livememfs.store.directory import DirectoryStore
from livememfs.store.folder import sidecar, walk
from livememfs.store.folder.disk import Disk
from livememfs.store.folder.files import Files
from livememfs.store.folder.layout import HIDDEN, Layout
from livememfs.store.folder.place import FolderPlace
from livememfs.store.folder.walk import Entries
from livememfs.store.listing import ListingRequest
from livememfs.testing.clock import ManualClock

QUICK = Disk(fsync=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
async def folder(root: Path) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(root, ManualClock(), disk=QUICK)
    yield store
    await store.aclose()


async def keys_in(store: DirectoryStore) -> list[str]:
    return [info.key for info in (await list_all(store, "")).objects]


# --- what people see and do in the folder ----------------------------------------------------------------------


async def test_an_object_is_a_plain_file_of_the_same_name(root: Path, folder: DirectoryStore) -> None:
    await folder.put("space/live/note.md", b"hello", meta={"m": "1"})

    assert (root / "space/live/note.md").read_bytes() == b"hello"
    assert sorted(path.name for path in root.iterdir()) == [HIDDEN, "space"]


async def test_a_file_placed_by_hand_is_an_object(root: Path, folder: DirectoryStore) -> None:
    (root / "space").mkdir()
    (root / "space/hand.md").write_bytes(b"by hand")
    found = await folder.get("space/hand.md")

    assert (found.data, found.info.meta, found.info.size) == (b"by hand", {}, 7)
    assert found.info.etag == md5(b"by hand").hexdigest()
    assert [info.etag for info in (await folder.list_page()).objects] == [found.info.etag]

    await folder.delete("space/hand.md", condition=IfMatch(found.info.etag))

    assert await keys_in(folder) == []


@pytest.mark.parametrize("how", ["in place", "replaced"])
async def test_an_edit_by_hand_is_a_new_version_without_metadata(root: Path, folder: DirectoryStore, how: str) -> None:
    """Of the same size, so that only the etag can tell."""
    old = await folder.put("note.md", b"one", meta={"m": "1"})
    if how == "in place":
        (root / "note.md").write_bytes(b"two")
    else:
        (root / "new").write_bytes(b"two")
        (root / "new").replace(root / "note.md")
    new = (await folder.get("note.md")).info

    assert (new.etag, new.meta) == (md5(b"two").hexdigest(), {})
    assert (await folder.list_page()).objects[0].etag == new.etag != old.etag


async def test_edits_by_hand_in_quick_succession_are_all_seen(root: Path, folder: DirectoryStore) -> None:
    for n in range(50):
        (root / "note.md").write_bytes(b"%02d" % n)
        assert (await folder.head("note.md")).etag == md5(b"%02d" % n).hexdigest()


async def test_a_copy_by_hand_with_its_times_is_an_object_of_its_own(root: Path, folder: DirectoryStore) -> None:
    await folder.put("a", b"one", meta={"m": "1"})
    shutil.copy2(root / "a", root / "b")

    assert (await folder.head("b")).meta == {}
    assert (await folder.head("a")).meta == {"m": "1"}


async def test_a_removal_by_hand_is_a_removal(root: Path, folder: DirectoryStore) -> None:
    await folder.put("a", b"1", meta={"m": "1"})
    (root / "a").unlink()
    with pytest.raises(ObjectMissing):
        await folder.head("a")
    await folder.put("a", b"1", condition=IfAbsent())

    assert (await folder.head("a")).meta == {}


async def test_only_regular_files_with_utf8_names_are_objects(root: Path, folder: DirectoryStore) -> None:
    await folder.put("real", b"1")
    (root / "link").symlink_to(root / "real")
    (root / "linked").symlink_to(root, target_is_directory=True)
    (root / "empty folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"latin-\xe9.md")).write_bytes(b"1")
    listing = await list_all(folder, "", delimiter="/")

    assert ([info.key for info in listing.objects], listing.prefixes) == (["real"], ())
    for key in ("link", "pipe", "empty folder"):
        with pytest.raises(ObjectMissing):
            await folder.get(key)


async def test_folders_go_with_their_last_object(root: Path, folder: DirectoryStore) -> None:
    await folder.put("a/b/c/d", b"1")
    await folder.put("a/e", b"1")
    await folder.delete("a/b/c/d")

    assert sorted(path.name for path in (root / "a").iterdir()) == ["e"]


async def test_an_empty_folder_made_by_hand_does_not_stand_in_the_way(root: Path, folder: DirectoryStore) -> None:
    (root / "a").mkdir()
    await folder.put("a", b"1")

    assert (root / "a").read_bytes() == b"1"


async def test_an_object_moves_to_its_plain_place_once_that_is_free(root: Path, folder: DirectoryStore) -> None:
    await folder.put("a", b"1")
    await folder.put("a/b", b"2", meta={"m": "2"})
    await folder.delete("a")
    assert (await folder.head("a/b")).meta == {"m": "2"}

    await folder.put("a/b", b"3")

    assert (root / "a/b").read_bytes() == b"3"
    assert await keys_in(folder) == ["a/b"]
    assert not Layout(root).odd_folder.names()


async def test_versions_of_an_object_have_strictly_later_dates(folder: DirectoryStore) -> None:
    dates = [(await folder.put("a", b"%d" % n)).modified_ns for n in range(5)]

    assert dates == sorted(set(dates))


async def test_what_one_store_writes_another_one_reads(root: Path, folder: DirectoryStore) -> None:
    other = DirectoryStore(root, ManualClock(), disk=QUICK)
    for n in range(5):
        await folder.put("a", b"%d" % n, meta={"n": str(n)})
        found = await other.get("a")
        assert (found.data, found.info.meta) == (b"%d" % n, {"n": str(n)})
        await other.delete("a")
        with pytest.raises(ObjectMissing):
            await folder.get("a")
    await other.aclose()


async def test_metadata_outlives_the_store(root: Path, folder: DirectoryStore) -> None:
    await folder.put("a", b"1", meta={"m": "é"})
    await folder.aclose()
    again = DirectoryStore(root, disk=QUICK)

    assert (await again.head("a")).meta == {"m": "é"}
    await again.aclose()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key": "a", "versions": [{}]}', b"\xff"], ids=repr)
async def test_a_damaged_side_file_costs_the_metadata_alone(root: Path, damage: bytes) -> None:
    store = DirectoryStore(root, disk=QUICK)
    info = await store.put("a", b"1", meta={"m": "1"})
    Path(Layout(root).side("a")).write_bytes(damage)
    await store.aclose()
    again = DirectoryStore(root, disk=QUICK)
    found = await again.get("a")

    assert (found.data, found.info.etag, found.info.meta) == (b"1", info.etag, {})
    await again.aclose()


async def test_side_files_can_be_read_by_people(root: Path, folder: DirectoryStore) -> None:
    await folder.put("a/b", b"1", meta={"m": "1"})
    side = json.loads(Layout(root).side("a/b").read() or b"")

    assert side["key"] == "a/b"
    assert side["versions"][0]["meta"] == {"m": "1"}


# --- failures --------------------------------------------------------------------------------------------------


async def test_a_folder_shows_when_anything_in_it_is_an_object_and_its_names_are_not_read_for_that(
    root: Path, folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folder.put("s/deep/er/a", b"1")
    await folder.put("s/flat/b", b"1")
    (root / "s/empty/in/it").mkdir(parents=True)
    (root / "s/linked").mkdir()
    (root / "s/linked/x").symlink_to(root / "s/flat/b")
    (root / "s/linked/y").symlink_to(root / "s/flat")
    read: list[str] = []

    def entries_of(self: Entries, where: FolderPlace, stem: str) -> list[str]:
        read.append(stem)
        return walk._sorted_entries(where, stem)

    monkeypatch.setattr(Entries, "of", entries_of)
    assert (await folder.list_page("s/", delimiter="/")).prefixes == ("s/deep/", "s/flat/")
    assert set(read) == {"s/"}
    after = await folder.list_page("s/", delimiter="/", start_after="s/deep/er/a")
    assert after.prefixes == ("s/flat/",)
    within = await folder.list_page("s/", delimiter="/", start_after="s/deep/er/")
    assert within.prefixes == ("s/deep/", "s/flat/")


async def test_a_folder_that_is_gone_is_unreachable_not_empty(root: Path, folder: DirectoryStore) -> None:
    """An unmounted disk must not look as if everything had been deleted, and nothing is written in its place."""
    await folder.put("a", b"1")
    root.rename(root.with_name("elsewhere"))
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: folder.get("a"),
        lambda: folder.head("a"),
        lambda: folder.list_page(),
        lambda: folder.put("b/c", b"1"),
        lambda: folder.delete("a", condition=IfMatch("0" * 32)),
        lambda: folder.delete("a"),
    ]
    for call in calls:
        with pytest.raises(Unreachable, match="root"):
            await call()

    assert not root.exists()


class FailingDisk(Disk):
    """Every write fails with one errno."""

    def __init__(self, number: int) -> None:
        super().__init__(fsync=False)
        self.number = number

    def write_new(self, path: FolderPlace, data: bytes, *, modified_ns: int | None = None) -> os.stat_result:
        raise OSError(self.number, os.strerror(self.number), str(path))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, NoSpace),
        (errno.EDQUOT, NoSpace),
        (errno.EACCES, Denied),
        (errno.EROFS, Denied),
        (errno.EIO, StoreError),
    ],
    ids=str,
)
async def test_a_failing_disk_has_our_errors(root: Path, number: int, expected: type[Exception]) -> None:
    store = DirectoryStore(root, disk=FailingDisk(number))
    with pytest.raises(expected) as caught:
        await store.put("a", b"1")

    assert type(caught.value) is expected
    assert store.statistics().errors == 1
    await store.aclose()


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError):
        DirectoryStore(tmp_path / "file" / "root")


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.EROFS, "let this user write to {}, or"),
        (errno.EACCES, "let this user write to {}, or"),
        (errno.ENOENT, "see that {} can be made, or"),
        (errno.ENOTDIR, "see that {} is a folder, or"),
    ],
    ids=str,
)
def test_a_folder_that_cannot_be_opened_is_named_and_s3_is_not(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int, step: str
) -> None:
    def fail(path: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(StoreError) as caught:
        DirectoryStore(root)
    monkeypatch.undo()

    assert step.format(root) in caught.value.advice()
    assert caught.value.advice().endswith("name another folder with --store or LIVEMEMFS_STORE")
    before, _, _ = str(caught.value).partition(": ")
    assert str(root) in before
    assert "S3_" not in str(caught.value) + caught.value.advice()


async def test_a_folder_that_is_gone_is_to_be_brought_back(root: Path, folder: DirectoryStore) -> None:
    root.rename(root.with_name("elsewhere"))

    with pytest.raises(Unreachable) as caught:
        await folder.list_page()

    assert caught.value.advice().startswith(f"bring back {root}, or")


async def test_a_disk_that_refuses_one_object_names_the_object_and_the_folder(root: Path) -> None:
    store = DirectoryStore(root, disk=FailingDisk(errno.EROFS))

    with pytest.raises(Denied, match="denies access to a: write: ") as caught:
        await store.put("a", b"1")

    assert caught.value.advice().startswith(f"let this user write to {root}, or")
    await store.aclose()


async def test_the_temp_files_of_a_dead_store_are_swept_and_those_of_a_living_one_kept(root: Path) -> None:
    temp = Path(Layout(root).temp_folder)
    living = DirectoryStore(root, disk=QUICK)
    (kept,) = temp.iterdir()
    (kept / "half").write_bytes(b"being written")
    (temp / "dead").mkdir()
    (temp / "dead" / "half").write_bytes(b"left over")
    second = DirectoryStore(root, disk=QUICK)

    assert (kept / "half").exists()
    assert not (temp / "dead").exists()

    await living.aclose()
    await second.aclose()

    assert list(temp.iterdir()) == []


# --- crashes ---------------------------------------------------------------------------------------------------


async def test_a_power_cut_takes_neither_a_new_object_nor_its_name_nor_brings_a_removed_one_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes last before it has its name, and then every folder in which a name came or went."""
    synced: dict[int, str] = {}
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.update({os.fstat(fd).st_ino: os.readlink(f"/proc/self/fd/{fd}")})
    )
    store = DirectoryStore(root, ManualClock(), disk=Disk())

    await store.put("space/one.md", b"one")
    assert HIDDEN in synced[(root / "space/one.md").stat().st_ino]
    assert {root.stat().st_ino, (root / "space").stat().st_ino} <= synced.keys()

    await store.put("space/two.md", b"two")
    synced.clear()
    await store.delete("space/one.md")
    assert (root / "space").stat().st_ino in synced
    await store.aclose()


class Crash(BaseException):
    """The process is gone. Nothing catches this, and no clean-up reaches the disk after it."""


class CrashingDisk(Disk):
    """Stops the world before its n-th step; a write that is cut off leaves half of its bytes."""

    def __init__(self, steps: int) -> None:
        super().__init__(fsync=False)
        self.left = steps

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def write_new(self, path: FolderPlace, data: bytes, *, modified_ns: int | None = None) -> os.stat_result:
        if self.left == 0:
            Path(path).write_bytes(data[: len(data) // 2])
        self._step()
        return super().write_new(path, data, modified_ns=modified_ns)

    def replace(self, source: FolderPlace, target: FolderPlace) -> None:
        self._step()
        super().replace(source, target)

    def unlink(self, path: FolderPlace, *, lasting: bool) -> None:
        self._step()
        super().unlink(path, lasting=lasting)

    def make_folder(self, path: FolderPlace, *, below: FolderPlace) -> None:
        self._step()
        super().make_folder(path, below=below)

    def remove_folder(self, path: FolderPlace) -> bool:
        self._step()
        return super().remove_folder(path)


Step = Callable[[DirectoryStore], Awaitable[object]]


async def _nothing(store: DirectoryStore) -> None:
    await trio.lowlevel.checkpoint()


async def _old(store: DirectoryStore) -> None:
    await store.put("a/b", b"old content", meta={"m": "old"})


async def _odd_old(store: DirectoryStore) -> None:
    await store.put("a", b"in the way")
    await _old(store)


async def _odd_old_with_free_place(store: DirectoryStore) -> None:
    await _odd_old(store)
    await store.delete("a")


async def _twins(store: DirectoryStore) -> None:
    """An object in an odd place and, by hand, another under the same key in the plain one."""
    await _odd_old_with_free_place(store)
    await _hand_made(store)


async def _hand_made(store: DirectoryStore) -> None:
    (store.root / "a").mkdir()
    (store.root / "a/b").write_bytes(b"by hand")


async def _put(store: DirectoryStore) -> None:
    await store.put("a/b", b"new content", meta={"m": "new"})


async def _change_metadata(store: DirectoryStore) -> None:
    await store.copy("a/b", "a/b", meta={"m": "changed"})


async def _delete(store: DirectoryStore) -> None:
    await store.delete("a/b")


SCENARIOS: dict[str, tuple[Step, Step]] = {
    "create": (_nothing, _put),
    "replace": (_old, _put),
    "replace a file made by hand": (_hand_made, _put),
    "replace in an odd place": (_odd_old, _put),
    "move from an odd place": (_odd_old_with_free_place, _put),
    "change metadata": (_old, _change_metadata),
    "replace one of twins": (_twins, _put),
    "delete": (_old, _delete),
    "delete one of twins": (_twins, _delete),
    "delete from an odd place": (_odd_old, _delete),
}


Content = tuple[bytes, dict[str, str]] | None


async def _state(store: DirectoryStore) -> Content:
    """The object, after checking that all ways to ask tell the same."""
    listed = [info for info in (await list_all(store, "")).objects if info.key == "a/b"]
    try:
        found = await store.get("a/b")
    except ObjectMissing:
        assert listed == []
        return None
    assert found.info == await store.head("a/b")
    assert [info.etag for info in listed] == [found.info.etag] == [md5(found.data).hexdigest()]
    return found.data, dict(found.info.meta or {})


async def _before_and_after(root: Path, prepare: Step, change: Step) -> tuple[Content, Content]:
    """What the object is without a crash."""
    store = DirectoryStore(root, disk=QUICK)
    await prepare(store)
    before = await _state(store)
    await change(store)
    after = await _state(store)
    await store.aclose()
    return before, after


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_crash_at_any_step_leaves_the_old_or_the_new_object(tmp_path: Path, scenario: str) -> None:
    prepare, change = SCENARIOS[scenario]
    before, after = await _before_and_after(tmp_path / "whole", prepare, change)
    seen = []
    for steps in range(100):
        root = tmp_path / str(steps)
        store = DirectoryStore(root, disk=QUICK)
        await prepare(store)
        await store.aclose()
        crashed = await _crash(root, change, steps)

        store = DirectoryStore(root, disk=QUICK)
        seen.append(await _state(store))
        assert list(Path(Layout(root).temp_folder).rglob("*/*")) == [], "the rests are swept"
        await _goes_on(store)
        await store.aclose()
        if not crashed:
            break

    turn = seen.index(after)
    assert turn > 0
    assert seen == [before] * turn + [after] * (len(seen) - turn)


async def _crash(root: Path, change: Step, steps: int) -> bool:
    """Make the change on a disk that stops after so many steps; whether it stopped."""
    store = DirectoryStore(root, disk=CrashingDisk(steps))
    try:
        await change(store)
    except Crash:
        os.close(store._files._claim or -1)  # the kernel does this for a dead process
        store._files._claim = None
        return True
    await store.aclose()
    return False


async def _goes_on(store: DirectoryStore) -> None:
    """Whatever the crash left does not stand in the way."""
    await _put(store)
    assert await _state(store) == (b"new content", {"m": "new"})
    await _delete(store)
    assert await _state(store) is None


# --- other processes -------------------------------------------------------------------------------------------

RACER = """
import sys, trio
from pathlib import Path
from livememfs.errors import PreconditionFailed
from livememfs.store.base import IfAbsent, IfMatch
from livememfs.store.directory import DirectoryStore
from livememfs.store.folder import sidecar, versions, walk
from livememfs.store.folder.disk import Disk

async def main(root, me):
    store = DirectoryStore(Path(root), disk=Disk(fsync=False))
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(40):
        try:
            await store.put(f"once/{n}/x", me.encode(), condition=IfAbsent())
            print("won", n)
        except PreconditionFailed:
            pass
    for n in range(40):
        while True:
            found = await store.get("counter")
            try:
                text = b"%d" % (int(found.data) + 1)
                await store.put("counter", text, condition=IfMatch(found.info.etag))
                break
            except PreconditionFailed:
                pass
    for n in range(40):
        await store.put(f"both/{n}/{me}", b"1")
        await store.delete(f"both/{n}/{me}")
    await store.aclose()

trio.run(main, *sys.argv[1:])
"""


async def test_two_processes_on_one_folder_never_both_win(root: Path) -> None:
    """IfAbsent has one winner, IfMatch loses no update, and folders that come and go disturb nobody."""
    store = DirectoryStore(root, disk=QUICK)
    await store.put("counter", b"0")
    environment = {**os.environ, "PYTHONPATH": str(Path(livememfs.__file__).parents[1])}
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(root), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for name in ("left", "right")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    outputs = []
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        outputs.append(racer.communicate()[0].split("\n"))
        assert racer.returncode == 0
    wins = [line for output in outputs for line in output if line]

    assert sorted(wins) == sorted(f"won {n}" for n in range(40))
    assert (await store.get("counter")).data == b"80"
    assert await keys_in(store) == ["counter", *sorted(f"once/{n}/x" for n in range(40))]
    await store.aclose()


async def test_writers_and_removers_of_neighbours_do_not_trip_each_other(folder: DirectoryStore) -> None:
    """A delete removes folders that became empty, in which another write may just be about to put a file."""

    async def come_and_go(key: str) -> None:
        for n in range(30):
            await folder.put(key, b"%d" % n)
            assert (await folder.get(key)).data == b"%d" % n
            await folder.delete(key)

    async with trio.open_nursery() as nursery:
        for key in ("a/b/c", "a/b/d", "a/e", "a"):
            nursery.start_soon(come_and_go, key)

    assert await keys_in(folder) == []


class PruningDisk(Disk):
    """A neighbour's delete removes each new folder once, before a file gets into it."""

    pruned = False

    def make_folder(self, path: FolderPlace, *, below: FolderPlace) -> None:
        super().make_folder(path, below=below)
        if path.name == "b" and not self.pruned:
            self.pruned = True
            path.remove_folder()


async def test_a_folder_that_goes_before_the_file_comes_is_made_again(root: Path) -> None:
    disk = PruningDisk(fsync=False)
    store = DirectoryStore(root, disk=disk)
    await store.put("a/b/c", b"1")

    assert disk.pruned
    assert (root / "a/b/c").read_bytes() == b"1"
    await store.aclose()


async def test_a_reader_sees_whole_versions_while_a_writer_works(folder: DirectoryStore) -> None:
    await folder.put("a", b"0" * 5000, meta={"n": "0"})
    done = False

    async def read() -> None:
        while not done:
            found = await folder.get("a")
            letter = found.data[:1]
            assert found.data == letter * 5000
            assert found.info.meta == {"n": letter.decode()}
            assert found.info.etag == md5(found.data).hexdigest()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(read)
        for n in range(100):
            await folder.put("a", b"%d" % (n % 10) * 5000, meta={"n": str(n % 10)})
        done = True


async def test_a_reader_overtaken_by_two_writes_takes_the_newest(
    folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The side file forgets a version after two more: the open old content then fits no description."""
    await folder.put("a", b"0", meta={"n": "0"})
    reader = DirectoryStore(folder.root, disk=QUICK)

    def read_late(path: FolderPlace) -> sidecar.SideFile | None:
        monkeypatch.undo()
        for data in (b"1", b"2"):
            folder._files.put("a", data, {"n": data.decode()}, None)
        return real_read(path)

    real_read = sidecar.read
    monkeypatch.setattr(sidecar, "read", read_late)
    found = await reader.get("a")

    assert (found.data, found.info.meta) == (b"2", {"n": "2"})
    await reader.aclose()


async def test_a_reader_meets_an_object_that_moves_to_its_plain_place(
    folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks in the plain place, then in the odd one; the object moves from the one to the other in between."""
    await folder.put("a", b"in the way")
    await folder.put("a/b", b"1")
    await folder.delete("a")
    odd = Layout(folder.root).odd("a/b")

    def open_late(path: FolderPlace) -> int | None:
        if path == odd and odd.exists():
            monkeypatch.undo()
            folder._files.put("a/b", b"2", None, None)
        return real_open(path)

    real_open = FolderPlace.open_regular
    monkeypatch.setattr(FolderPlace, "open_regular", open_late)

    assert (await folder.get("a/b")).data == b"2"
    assert not odd.exists()


def test_a_vanished_root_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        QUICK.make_folder(FolderPlace(str(tmp_path), "root/a/b"), below=FolderPlace(str(tmp_path), "root"))

    assert list(tmp_path.iterdir()) == []


def test_the_names_of_a_large_folder_are_kept_until_one_comes_or_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "KEPT_FROM", 2)
    scanned: list[FolderPlace] = []
    scan = walk._sorted_entries

    def counted(folder: FolderPlace, stem: str) -> list[str]:
        scanned.append(folder)
        return scan(folder, stem)

    monkeypatch.setattr(walk, "_sorted_entries", counted)
    for name in "ab":
        (tmp_path / name).touch()
    entries = Entries()
    here = FolderPlace(str(tmp_path))
    entries.of(here, "x/")
    assert entries.of(here, "x/") == ["x/a", "x/b"]
    assert len(scanned) == 2, "a folder that has just changed may change again in the same moment"

    long_ago = time.time_ns() - 2 * walk.SETTLED_NS
    os.utime(tmp_path, ns=(long_ago, long_ago))
    assert [entries.of(here, "x/") for _ in range(5)] == [["x/a", "x/b"]] * 5
    assert len(scanned) == 3
    (tmp_path / "c").touch()
    assert entries.of(here, "x/") == ["x/a", "x/b", "x/c"]
    assert entries.of(here / "gone", "y/") == []


@pytest.mark.parametrize("limit", [1, 2, 3, 1_000])
def test_pages_of_nested_folders_hold_every_key_once_wherever_they_begin(tmp_path: Path, limit: int) -> None:
    keys = ["a-b", "a.md/x", "a/b-c/d", "a/b.c", "a/b/c", "a/b/d/e", "a0", "b/c", "b-/c", "z"]
    for key in keys:
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).touch()
    files = Files(tmp_path, ManualClock(), Disk(fsync=False))
    found, token = list[str](), None
    while True:
        page = files.list_page(ListingRequest("", token=token, limit=limit))
        found += [info.key for info in page.objects]
        token = page.next_token
        if token is None:
            break
    assert found == sorted(keys, key=str.encode)
    for key in ("", "a", "a-a", "a/", "a/b", "a/b/", "a/b/d", "a/z", "a1", *keys):
        page = files.list_page(ListingRequest("", start_after=key))
        assert [info.key for info in page.objects] == [one for one in found if one.encode() > key.encode()]
    files.close()


async def test_odd_objects_that_another_process_makes_and_removes_are_listed_and_listed_no_more(
    root: Path, folder: DirectoryStore
) -> None:
    """What one store knows of them is looked at anew each time; directories are such objects."""
    other = DirectoryStore(root, ManualClock(), disk=QUICK)
    for name in ("b/", "a/", "c/"):
        await other.put(name, b"")
    assert await keys_in(folder) == ["a/", "b/", "c/"]

    await other.delete("b/")
    await other.put("a/b/", b"")

    assert await keys_in(folder) == ["a/", "a/b/", "c/"]
    await other.aclose()
