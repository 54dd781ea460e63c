"""A mirror as a process has it: notices of the system, the end, and the command."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import trio
from hosts import SPACE, Host
from mirrored import Machine

from livememfs.cli.main import main
from livememfs.concurrency import Background
from livememfs.errors import MountError
from livememfs.mirror import watching
from livememfs.mirror.letters import Letters
from livememfs.mirror.place import OURS
from livememfs.mirror.running import keep_equal


async def test_what_is_written_is_noticed_and_the_end_takes_the_last_of_it(one: Machine, mount: Host) -> None:
    ready, end = trio.Event(), trio.Event()

    async def until(_: Letters) -> None:
        await end.wait()

    async with one.up() as running, trio.open_nursery() as nursery:
        nursery.start_soon(keep_equal, running.mirror, Background(), until, ready.set)
        with trio.fail_after(20):
            await ready.wait()
            one.write("folder/deeper/file", "noticed")
            while not await mount.exists(f"{SPACE}/folder/deeper/file"):
                await trio.sleep(0.02)
            await mount.write(f"{SPACE}/from the mount", "heard")
            running.mirror.agenda.heard("from the mount")
            while "from the mount" not in one.files():
                await trio.sleep(0.02)
        one.write("the last", "of it")
        end.set()
    async with one.up() as running:  # what was accepted is uploaded by the next process at the latest
        await running.host.replica.uploaded()

    assert await mount.read(f"{SPACE}/the last") == b"of it"


async def test_a_name_that_is_not_utf_8_hides_no_other_change_and_is_refused(
    one: Machine, mount: Host, expect_log: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library that tells of changes fails at such a name, and with it all that it would have told of."""
    expect_log("not taken")
    monkeypatch.setattr("livememfs.mirror.watching.UNREAD_SECONDS", 0.05)
    ready = trio.Event()

    async def until(_: Letters) -> None:
        await ready.wait()
        (Path(os.fsdecode(os.fsencode(one.top) + b"/bad\xffname"))).write_text("no key has this name")
        for name in ("first", "second"):
            one.write(name, name)
            while not await mount.exists(f"{SPACE}/{name}"):
                await trio.sleep(0.02)

    async with one.up() as running:
        with trio.fail_after(20):
            await keep_equal(running.mirror, Background(), until, ready.set)

    assert "UTF-8" in (one.top / OURS / "refused.ndjson").read_text()


async def test_where_the_system_gives_no_notices_the_directory_is_polled(
    one: Machine, expect_log: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whoever asks for the state hears of it."""
    expect_log("the directory is polled")
    notices = watching.awatch

    def limited(*arguments: Any, **options: Any) -> Any:
        if not options["force_polling"]:
            raise OSError("OS file watch limit reached")
        return notices(*arguments, **options | {"poll_delay_ms": 50})

    async def generated(*arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for found in limited(*arguments, **options):
            yield found

    monkeypatch.setattr(watching, "awatch", generated)
    told, heard, is_polled = set[str](), trio.Event(), trio.Event()

    def tell(paths: Iterable[str]) -> None:
        told.update(paths)
        heard.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watching.watch, one.top, tell, is_polled.set, trio.sleep_forever)
        with trio.fail_after(20):
            await is_polled.wait()
            while not heard.is_set():
                one.write("file", f"{trio.current_time()}")
                await trio.sleep(0.1)
        nursery.cancel_scope.cancel()

    assert told == {"file"}


@pytest.mark.parametrize("how", ["emptied", "moved"])
async def test_a_mirror_whose_disk_is_gone_ends_and_says_so(
    how: str, one: Machine, mount: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the system tells of nothing, as when another disk is mounted over it."""
    monkeypatch.setattr("livememfs.mirror.running.IN_USE_SECONDS", 0.1)
    ready = trio.Event()

    async def until(_: Letters) -> None:
        await trio.sleep_forever()

    async def unmount() -> None:
        await ready.wait()
        one.write("file", "kept")
        while not await mount.exists(f"{SPACE}/file"):
            await trio.sleep(0.02)
        if how == "moved":
            one.top.rename(one.top.with_name("elsewhere"))
            one.top.mkdir()
            return
        shutil.rmtree(one.top / OURS)
        (one.top / "file").unlink()

    async with one.up() as running, trio.open_nursery() as nursery:
        nursery.start_soon(unmount)
        with pytest.raises(MountError, match="is gone"), trio.fail_after(20):
            await keep_equal(running.mirror, Background(), until, ready.set)

    assert await mount.read(f"{SPACE}/file") == b"kept"


def test_the_command_makes_both_equal_and_needs_no_fuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyfuse3", None)
    monkeypatch.setenv("LIVEMEMFS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    store = tmp_path / "store"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one/project/folder").mkdir(parents=True)
    (tmp_path / "one/project/folder/file").write_text("by the command")

    def sync(*arguments: str) -> object:
        with pytest.raises(SystemExit) as ended:
            main(["sync", "--store", str(store), "--once", *arguments])
        return ended.value.code

    assert sync(str(tmp_path / "one")) == 0
    assert sync(str(tmp_path / "two"), "--space", "project") == 0
    assert (tmp_path / "two/folder/file").read_text() == "by the command"
    assert sync(str(tmp_path / "two"), "--space", "another") == 1
    assert "no space another" in capsys.readouterr().err
    assert sync(str(store / "project")) == 2
