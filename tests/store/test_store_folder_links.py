"""The folder store and what somebody else put into it: links that lead out of it, pipes, and other users' eyes."""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from livememfs.errors import ObjectMissing, StoreError
from livememfs.store.base import list_all
from livememfs.store.directory import DirectoryStore
from livememfs.store.folder.disk import Disk
from livememfs.store.folder.layout import HIDDEN, Layout
from livememfs.testing.clock import ManualClock

QUICK = Disk(fsync=False)
SECRET = b"somebody else's"
LINKS = {
    "the first name": ("a", ".."),
    "a name in the middle": ("a/b", "."),
    "the last folder": ("a/b/c", "b/c"),
    "the file": ("a/b/c/passwd", "b/c/passwd"),
    "a file that is not there": ("a/b/c/passwd", "b/c/nobody"),
}
"""Where a link stands on the way to `a/b/c/passwd`, and what it leads to below the folder outside."""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """`outside/a/b/c/passwd`, so that each link leads to what would be found without one."""
    (tmp_path / "outside/a/b/c").mkdir(parents=True)
    (tmp_path / "outside/a/b/c/passwd").write_bytes(SECRET)
    return tmp_path / "outside/a"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
async def folder(root: Path) -> AsyncIterator[DirectoryStore]:
    store = DirectoryStore(root, ManualClock(), disk=QUICK)
    yield store
    await store.aclose()


def _link(root: Path, outside: Path, place: str) -> None:
    name, _ = LINKS[place]
    target = outside.parent / name if "not there" not in place else outside / "nobody"
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(target)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", LINKS)
async def test_no_link_is_followed_by_a_key(root: Path, outside: Path, folder: DirectoryStore, place: str) -> None:
    _link(root, outside, place)
    before = _files(outside)
    for key in ("a/b/c/passwd", "a/b/c"):
        for ask in (folder.get, folder.head):
            with pytest.raises(ObjectMissing):
                await ask(key)
    with pytest.raises(ObjectMissing):
        await folder.copy("a/b/c/passwd", "mine")
    assert await folder.get_many(["a/b/c/passwd"]) == []
    for prefix in ("", "a/", "a/b/", "a/b/c/", "a/b/c/pass"):
        listing = await list_all(folder, prefix)
        assert (listing.objects, listing.prefixes) == ((), ())
        assert (await folder.list_page(prefix, delimiter="/")).prefixes == ()

    await folder.delete("a/b/c/passwd")
    await folder.put("a/b/c/passwd", b"ours", meta={"m": "1"})
    await folder.put("a/b/c/new", b"ours")

    assert _files(outside) == before
    assert (await folder.get("a/b/c/passwd")).data == b"ours"
    assert (await folder.head("a/b/c/passwd")).meta == {"m": "1"}
    assert [info.key for info in (await list_all(folder, "a/b/")).objects] == ["a/b/c/new", "a/b/c/passwd"]

    await folder.delete("a/b/c/new")
    await folder.delete("a/b/c/passwd")

    assert _files(outside) == before
    assert (await list_all(folder, "")).objects == ()


@pytest.mark.parametrize("part", ["", "odd", "meta", "tmp", "locks"])
def test_a_store_whose_own_folders_are_links_is_refused(root: Path, outside: Path, part: str) -> None:
    (root / HIDDEN / part).parent.mkdir(parents=True)
    (root / HIDDEN / part).symlink_to(outside)

    with pytest.raises(StoreError, match=HIDDEN):
        DirectoryStore(root, disk=QUICK)

    assert _files(outside) == {"b/c/passwd": SECRET}


@pytest.mark.parametrize("part", ["odd", "meta", "locks", "tmp"])
async def test_links_in_place_of_its_own_folders_lead_no_change_outside(
    root: Path, outside: Path, folder: DirectoryStore, part: str
) -> None:
    """Swapped under a store that is open: what is asked of it may fail, and nothing outside changes or is told."""
    await folder.put("a", b"in the way")
    await folder.put("a/b", b"odd", meta={"m": "1"})
    copy = outside / part
    shutil.copytree(root / HIDDEN / part, copy)
    shutil.rmtree(root / HIDDEN / part)
    (root / HIDDEN / part).symlink_to(copy)
    before = _files(outside)
    found = None
    with _refused():
        found = await folder.get("a/b")
    for step in (
        lambda: folder.put("a/b", b"new", meta={"m": "2"}),
        lambda: folder.delete("a/b"),
        lambda: folder.put("c", b"new"),
        lambda: folder.list_page(),
    ):
        with _refused():
            await step()

    assert _files(outside) == before
    assert found is None or part != "odd"
    assert found is None or found.info.meta == ({} if part == "meta" else {"m": "1"})


@contextmanager
def _refused() -> Iterator[None]:
    """It may go well, or be refused in our words."""
    with suppress(StoreError):
        yield


async def test_links_among_the_files_of_its_own_are_not_followed(
    root: Path, outside: Path, folder: DirectoryStore
) -> None:
    """A side file, an odd object and a lock file that are links, and links among what a crash left."""
    layout = Layout(root)
    await folder.put("a", b"1", meta={"m": "1"})
    side, odd, lock = Path(layout.side("a")), Path(layout.odd("b")), Path(layout.lock("c"))
    stolen = outside / "side"
    side.replace(stolen)
    side.symlink_to(stolen)
    odd.symlink_to(outside / "b/c/passwd")
    lock.unlink(missing_ok=True)
    lock.symlink_to(outside / "lock")
    (root / HIDDEN / "tmp/left").symlink_to(outside)
    before = _files(outside)
    again = DirectoryStore(root, disk=QUICK)

    assert (await again.get("a")).info.meta == {}
    with pytest.raises(ObjectMissing):
        await again.get("b")
    with pytest.raises(StoreError):
        await again.put("c", b"1")
    assert [info.key for info in (await list_all(again, "")).objects] == ["a"]
    assert _files(outside) == before
    assert not os.path.lexists(root / HIDDEN / "tmp/left"), "what a crash left is swept, a link too"
    await again.aclose()


async def test_the_root_may_be_a_link_since_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "named").symlink_to(tmp_path / "disk")
    store = DirectoryStore(tmp_path / "named", disk=QUICK)
    await store.put("a/b", b"1")

    assert (tmp_path / "disk/a/b").read_bytes() == b"1"
    assert [info.key for info in (await list_all(store, "")).objects] == ["a/b"]
    await store.aclose()


async def test_a_hard_link_is_a_file_like_any_other(root: Path, outside: Path, folder: DirectoryStore) -> None:
    (root / "hard").hardlink_to(outside / "b/c/passwd")

    assert (await folder.get("hard")).data == SECRET


async def test_nobody_waits_for_a_pipe_in_the_store(root: Path, folder: DirectoryStore) -> None:
    """In the place of an object, of its side file, of an odd object and of a lock: nobody ever opens the other end."""
    layout = Layout(root)
    await folder.put("a", b"1", meta={"m": "1"})
    side = Path(layout.side("a"))
    side.unlink()
    for place in (root / "pipe", root / "pipes/pipe", side, Path(layout.odd("odd")), root / HIDDEN / "tmp/left"):
        place.parent.mkdir(exist_ok=True)
        os.mkfifo(place)
    with trio.fail_after(10):
        again = DirectoryStore(root, disk=QUICK)
        assert (await again.get("a")).info.meta == {}
        for key in ("pipe", "pipes/pipe", "odd"):
            with pytest.raises(ObjectMissing):
                await again.get(key)
        assert [info.key for info in (await list_all(again, "")).objects] == ["a"]
        await again.put("pipe", b"2")
        await again.put("a", b"2", meta={"m": "2"})
        assert [(await again.get(key)).data for key in ("a", "pipe")] == [b"2", b"2"]
    await again.aclose()


def _exchange(one: Path, other: Path) -> None:
    """Give each the other's name in one step: Linux's RENAME_EXCHANGE, which Python does not offer."""
    assert ctypes.CDLL(None).renameat2(-100, bytes(one), -100, bytes(other), 2) == 0


async def test_a_folder_swapped_for_a_link_again_and_again_never_leads_outside(
    root: Path, outside: Path, folder: DirectoryStore
) -> None:
    """A thread exchanges a folder and a link all the time, in two places of the way, while others read and write."""
    await folder.put("a/b/c/passwd", b"ours")
    for name in ("a", "a/b/c"):
        (root / f"{name}.link").symlink_to(outside.parent / name)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for name in ("a", "a", "a/b/c", "a/b/c"):
                _exchange(root / name, root / f"{name}.link")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: list[bytes] = []
    try:
        for number in range(3_000):
            with _refused():
                seen.append(folder._files.get("a/b/c/passwd", None).data)
            if number % 20 == 0:
                with _refused():
                    folder._files.put(f"a/b/c/{number}", b"new", None, None)
                with _refused():
                    folder._files.delete("a/b/c/passwd.no", None)
    finally:
        stop.set()
        swapper.join()

    assert set(seen) == {b"ours"}
    assert _files(outside) == {"b/c/passwd": SECRET}


# --- who may look --------------------------------------------------------------------------------------------


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def _modes(root: Path) -> set[tuple[bool, int]]:
    """Whether it is a folder, and its mode, of the root and all in it."""
    return {(path.is_dir(), path.stat().st_mode & 0o777) for path in (root, *root.rglob("*"))}


@pytest.mark.parametrize("mask", [0o000, 0o022])
async def test_a_store_that_is_made_is_for_its_owner_alone(tmp_path: Path, mask: int) -> None:
    """The folders on the way to it as well: whoever can write there puts another in its place."""
    with _umask(mask):
        store = DirectoryStore(tmp_path / "on/the/way", disk=QUICK)
        await store.put("a/b", b"1", meta={"m": "1"})
        await store.put("a", b"odd")

        assert _modes(tmp_path / "on") == {(True, 0o700), (False, 0o600)}
        await store.aclose()


@pytest.mark.parametrize(("mode", "kept"), [(0o770, 0o660), (0o755, 0o644), (0o700, 0o600)])
async def test_a_folder_that_was_there_says_who_may_look_into_it(root: Path, mode: int, kept: int) -> None:
    """A team shares one on purpose: it stays as it is, and nothing in it is open to more people than it is."""
    root.mkdir()
    root.chmod(mode)
    with _umask(0):
        store = DirectoryStore(root, disk=QUICK)
        await store.put("a/b", b"1", meta={"m": "1"})

        assert _modes(root) == {(True, mode), (False, kept)}
        await store.aclose()
