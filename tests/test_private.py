"""What is made for this user alone, what is narrowed, and whose places are refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from livememfs import private
from livememfs.cache.database import Database
from livememfs.cache.folder import cache_folder
from livememfs.errors import CacheUnusable, NotPrivate


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def _mask(request: pytest.FixtureRequest) -> Iterator[None]:
    old = os.umask(request.param)
    yield
    os.umask(old)


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on this process is a user who owns nothing that is there; nor does root, as whom these tests may run,
    and whose folders and links are fine.
    """
    monkeypatch.setattr(private, "_ROOT", -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4_242)


def mode(path: Path) -> int:
    """Its permission bits."""
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("_mask")
def test_what_is_made_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    private.folder(tmp_path / "a/b/c")
    private.write_text(tmp_path / "a/text", "1")
    private.begin(tmp_path / "a/db")

    assert {mode(tmp_path / name) for name in ("a", "a/b", "a/b/c")} == {0o700}
    assert {mode(tmp_path / name) for name in ("a/text", "a/db")} == {0o600}


def test_what_is_too_wide_is_narrowed_from_the_top_on_and_nothing_above(tmp_path: Path) -> None:
    (tmp_path / "mine/state/mounts").mkdir(parents=True)
    for folder in ("mine", "mine/state", "mine/state/mounts"):
        (tmp_path / folder).chmod(0o755)

    private.folder(tmp_path / "mine/state/mounts", top=tmp_path / "mine/state")

    assert [mode(tmp_path / name) for name in ("mine", "mine/state", "mine/state/mounts")] == [0o755, 0o700, 0o700]


def test_bits_that_the_owner_took_from_itself_are_not_given_back(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0o555)

    private.folder(tmp_path / "folder")

    assert mode(tmp_path / "folder") == 0o500


@pytest.mark.parametrize("leads", ["to a folder of ours", "nowhere"])
def test_a_link_in_the_place_of_a_folder_of_ours_is_refused_and_not_touched(tmp_path: Path, leads: str) -> None:
    if leads != "nowhere":
        (tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(NotPrivate, match=r"link: it is a symbolic link") as caught:
        private.folder(tmp_path / "link")

    assert "LIVEMEMFS_CACHE" in caught.value.advice()
    assert sorted(path.name for path in tmp_path.iterdir()) == (["link"] if leads == "nowhere" else ["link", "target"])


def test_a_link_on_the_way_may_be_ones_own(tmp_path: Path) -> None:
    """Whoever keeps caches on another disk."""
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "cache").symlink_to(tmp_path / "disk")

    private.folder(tmp_path / "cache/livememfs", top=tmp_path / "cache")

    assert (mode(tmp_path / "disk/livememfs"), mode(tmp_path / "disk")) == (0o700, 0o755)


@pytest.mark.usefixtures("another")
def test_a_link_on_the_way_may_not_be_another_users(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")

    with pytest.raises(NotPrivate, match="cache: it belongs to another user"):
        private.check(tmp_path / "cache/livememfs")


@pytest.mark.usefixtures("another")
def test_a_folder_of_another_user_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)

    with pytest.raises(NotPrivate, match="folder: it belongs to another user"):
        private.folder(tmp_path / "folder")

    assert mode(tmp_path / "folder") == 0o755


@pytest.mark.usefixtures("another")
def test_a_folder_above_ours_that_is_another_users_is_refused(tmp_path: Path) -> None:
    """It could put another in the place of ours."""
    with pytest.raises(NotPrivate, match=f"{tmp_path.name}: it belongs"):
        private.check(tmp_path / "cache", top=tmp_path)

    private.check(tmp_path / "cache")


# --- the local state -----------------------------------------------------------------------------------------


def test_a_cache_that_an_earlier_version_made_is_put_right(tmp_path: Path) -> None:
    """The folder of the bucket and what is in it. What the user named and owns for other ends is left."""
    folder = cache_folder(tmp_path, "b")
    database = Database(folder)
    assert database.identity
    database.close()
    for path in (tmp_path, folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)

    assert cache_folder(tmp_path, "b") == folder

    assert mode(tmp_path) == 0o777
    assert {(path.name, mode(path)) for path in (folder, folder / "contents")} == {
        (folder.name, 0o700),
        ("contents", 0o700),
    }
    assert {mode(path) for path in folder.iterdir() if path.is_file()} == {0o600}


@pytest.mark.usefixtures("_mask")
def test_all_files_of_the_local_state_are_for_their_owner_alone(tmp_path: Path) -> None:
    database = Database(cache_folder(tmp_path / "cache", "b"))
    assert database.identity

    modes = {path.name: mode(path) for path in (tmp_path / "cache").rglob("*")}
    database.close()

    assert {"lock", "state.db", "state.db-wal", "state.db-shm", "identity", "running"} <= modes.keys()
    assert set(modes.values()) == {0o700, 0o600}
    assert mode(tmp_path / "cache") == 0o700


def test_a_bucket_folder_that_is_a_link_is_refused_before_anything_is_looked_for_in_it(tmp_path: Path) -> None:
    folder = cache_folder(tmp_path, "b")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NotPrivate, match=folder.name):
        cache_folder(tmp_path, "b")


@pytest.mark.usefixtures("another")
def test_a_folder_for_caches_that_is_another_users_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner could put another in the place of a bucket's folder. One of root's is fine, as /var/tmp is."""
    with pytest.raises(NotPrivate, match=f"{tmp_path.name}: it belongs"):
        cache_folder(tmp_path, "b")
    assert list(tmp_path.iterdir()) == []

    monkeypatch.undo()
    monkeypatch.setattr(private, "_ROOT", os.geteuid())
    assert cache_folder(tmp_path, "b").is_dir()


def test_a_file_of_another_user_in_the_local_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who could write into a folder with wide modes may have left it there."""
    folder = cache_folder(tmp_path, "b")
    (folder / "state.db").touch()
    lstat = Path.lstat

    def of_another(self: Path) -> os.stat_result:
        values = list(lstat(self))
        values[4] += 1 if self.name == "state.db" else 0
        return os.stat_result(values)

    monkeypatch.setattr(Path, "lstat", of_another)

    with pytest.raises(NotPrivate, match=r"state.db: it belongs to another user"):
        cache_folder(tmp_path, "b")


def test_a_place_that_is_no_folder_cannot_be_the_local_state(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(CacheUnusable):
        cache_folder(tmp_path / "file", "b")
