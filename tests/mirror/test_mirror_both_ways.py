"""A directory and a mount of the same bucket: what is done on one side is on the other, by the rules of the mount."""

from __future__ import annotations

import os
from collections.abc import Callable
from unittest.mock import patch

import pytest
import trio
from hosts import APPEND, SPACE, Host
from mirrored import Crash, Machine

from livememfs.errors import MountError
from livememfs.mirror.place import OURS
from livememfs.mirror.rows import MirrorRows
from livememfs.mirror.running import open_mirror


async def test_files_folders_and_links_come_and_go_in_both_directions(one: Machine, mount: Host) -> None:
    one.write("a/b/file", "from the disk")
    (one.top / "a/link").symlink_to("./b/file")
    (one.top / "empty").mkdir()
    await mount.mkdir(f"{SPACE}/there")
    await mount.write(f"{SPACE}/there/file", "from the mount")
    await mount.symlink(f"{SPACE}/there/link", "../a")

    async with one.up() as running:
        await running.settle()

        assert await mount.read(f"{SPACE}/a/b/file") == b"from the disk"
        assert await mount.names(f"{SPACE}/empty") == []
        assert one.files() | {"a": "/", "there": "/"} == one.files()
        assert one.files()["there/file"] == "from the mount"
        assert one.files()["there/link"] == "-> ../a"

        os.rename(one.top / "a", one.top / "c")
        (one.top / "empty").rmdir()
        await mount.unlink(f"{SPACE}/there/file")
        await mount.unlink(f"{SPACE}/there/link")
        await mount.rmdir(f"{SPACE}/there")
        await running.settle()

    assert await mount.read(f"{SPACE}/c/b/file") == b"from the disk"
    assert not await mount.exists(f"{SPACE}/a")
    assert not await mount.exists(f"{SPACE}/empty")
    assert not (one.top / "there").exists()


async def test_a_file_in_live_is_a_note_under_its_own_name_and_its_written_name_leads_to_it(
    one: Machine, mount: Host
) -> None:
    async with one.up() as running:
        await running.settle()
        one.write("live/decision.md", "we chose S3\n")
        await running.settle()
        note = one.one("live/*")
        assert note.name in await mount.names(f"{SPACE}/live")
        assert note.read_bytes() == await mount.read(f"{SPACE}/live/{note.name}")
        assert note.read_text().endswith("\nwe chose S3\n")

        one.write("live/decision.md", "we chose SQLite\n")
        await running.settle()
        assert one.one("live/*") == note
        assert note.read_text().endswith("\nwe chose SQLite\n")

        note.rename(note.with_name("database.md"))
        await running.settle()
        note = one.one("live/*")
        assert "SQLite" in note.read_text()
        assert await mount.read(f"{SPACE}/live/{note.name}") == note.read_bytes()

        one.write("live/draft.md", "")  # it says nothing yet
        one.write("live/.draft.md.swp", "an editor's")
        await running.settle()
        assert (await mount.names(f"{SPACE}/live")) == [note.name]
        note.unlink()
        await running.settle()
        assert await mount.names(f"{SPACE}/live") == []


async def test_what_the_tree_refuses_is_put_back_and_the_bytes_are_kept(
    one: Machine, mount: Host, expect_log: Callable[[str], None]
) -> None:
    expect_log("not taken")
    async with one.up() as running:
        await running.settle()
        readme = (one.top / "README.md").read_text()
        one.write("bank/mine.md", "mine")
        (one.top / "README.md").unlink()
        one.write("README.md", "no")
        (one.top / "live/note.bin").write_bytes(b"\xff\xfe\x00")
        (one.top / "live/folder").mkdir()
        one.write("live/folder/inside", "kept where it is")
        await running.settle()

    assert (one.top / "README.md").read_text() == readme
    assert not (one.top / "bank/mine.md").exists()
    assert one.kept() == {"bank/mine.md": "mine", "README.md": "no"}
    assert (one.top / "live/note.bin").exists()
    assert (one.top / "live/folder/inside").read_text() == "kept where it is"
    assert "UTF-8" in (one.top / OURS / "refused.ndjson").read_text()
    assert await mount.names(f"{SPACE}/live") == []


async def test_two_that_changed_one_file_are_joined_or_both_are_kept(one: Machine, two: Machine, mount: Host) -> None:
    await mount.write(f"{SPACE}/joined", "one\n")
    await mount.write(f"{SPACE}/apart", "one\n")
    async with one.up() as first, two.up() as second:
        await first.settle()
        await second.settle()
        one.write("joined", "one\ntwo\n")
        two.write("joined", "zero\none\n")
        one.write("apart", "two\n")
        two.write("apart", "three\n")
        for running in (first, second, first):
            await running.settle()

    assert one.files() == two.files()
    assert one.files()["joined"] == "zero\none\ntwo\n"
    apart = {text for name, text in one.files().items() if name.startswith("apart")}
    assert apart == {"two\n", "three\n"}


async def test_of_a_removal_and_a_change_the_change_wins(one: Machine, two: Machine, mount: Host) -> None:
    await mount.write(f"{SPACE}/a", "a")
    await mount.write(f"{SPACE}/b", "b")
    async with one.up() as first, two.up() as second:
        await first.settle()
        await second.settle()
        (one.top / "a").unlink()
        two.write("a", "changed there")
        one.write("b", "changed here")
        (two.top / "b").unlink()
        for running in (second, first, second):
            await running.settle()

    assert one.files() == two.files()
    assert (one.files()["a"], one.files()["b"]) == ("changed there", "changed here")


async def test_two_directories_that_were_filled_before_they_met_are_joined(
    one: Machine, two: Machine, mount: Host
) -> None:
    one.write("same", "same")
    two.write("same", "same")
    one.write("other", "of one\n")
    two.write("other", "of two\n")
    async with one.up() as first, two.up() as second:
        for running in (first, second, first):
            await running.settle()

    assert one.files() == two.files()
    assert {text for name, text in one.files().items() if name.startswith("other")} == {"of one\n", "of two\n"}
    assert [name for name in one.files() if name.startswith("same")] == ["same"]


async def test_a_disk_that_is_gone_is_no_removal(one: Machine, mount: Host) -> None:
    await mount.write(f"{SPACE}/file", "here")
    async with one.up() as running:
        await running.settle()
        one.top.rename(one.top.with_name("elsewhere"))
        one.top.mkdir()
        with pytest.raises(MountError, match="is gone"):
            await running.mirror.scan()
        running.mirror.agenda.touched(["file"])
        with pytest.raises(MountError, match="is gone"):
            await running.mirror.until_idle()
    with pytest.raises(MountError, match="is gone") as raised:
        async with one.up():
            pass
    assert str(one.cache) in raised.value.advice()

    assert await mount.read(f"{SPACE}/file") == b"here"
    one.top.rmdir()
    one.top.with_name("elsewhere").rename(one.top)
    async with one.up() as running:
        await running.settle()
        with pytest.raises(MountError, match="another"):
            async with open_mirror(running.host.root, one.top, SPACE, "the bucket"):
                pass


async def test_what_is_written_to_a_file_that_was_just_replaced_is_not_lost(one: Machine, mount: Host) -> None:
    await mount.write(f"{SPACE}/log", "one\n")
    async with one.up() as running:
        await running.settle()
        with (one.top / "log").open("a") as opened:
            await mount.write(f"{SPACE}/log", "zero\none\n")
            await running.settle()
            opened.write("two\n")
        await running.mirror.settler.let_go(all_of_them=True)
        await running.settle()

    assert one.files()["log"] == "zero\none\ntwo\n"


async def test_modes_and_times_go_along(one: Machine, two: Machine, mount: Host, nursery: trio.Nursery) -> None:
    one.write("tool", "#!/bin/sh\n")
    (one.top / "tool").chmod(0o755)
    os.utime(one.top / "tool", ns=(1, 1_234_567_890_000_000_000))
    async with one.up() as first, two.up() as second:
        await first.settle()
        await second.settle()
        found = (two.top / "tool").stat()
        assert (found.st_mode & 0o777, found.st_mtime_ns) == (0o755, 1_234_567_890_000_000_000)
        (one.top / "tool").chmod(0o700)
        await first.settle()
        assert (await mount.attrs(f"{SPACE}/tool")).mode == 0o700
        os.utime(one.top / "tool", ns=(1, 978_307_200_000_000_001))
        await first.settle()
        fresh = Host("fresh", one.memory, one.clock, nursery)
        assert (await fresh.attrs(f"{SPACE}/tool")).mtime_ns == 978_307_200_000_000_001


async def test_a_file_that_becomes_a_folder_and_the_reverse(one: Machine, two: Machine, mount: Host) -> None:
    one.write("a", "file")
    one.write("b/c/d", "file")
    async with one.up() as first, two.up() as second:
        await first.settle()
        await second.settle()
        (one.top / "a").unlink()
        one.write("a/inside", "now a folder")
        (one.top / "b/c/d").unlink()
        (one.top / "b/c").rmdir()
        (one.top / "b").rmdir()
        one.write("b", "now a file")
        await first.settle()
        await second.settle()

    assert one.files()["b"] == "now a file"
    assert one.files()["a/inside"] == "now a folder"
    assert one.files() == two.files()


async def test_a_file_that_is_being_written_is_left_alone_for_a_moment(
    one: Machine, mount: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.mirror.agenda.QUIET_SECONDS", 3_600.0)
    async with one.up() as running:
        running.mirror.agenda.touched(["file"])
        one.write("file", "ha")
        await running.mirror.step()
        await running.mirror.step()
        assert not await mount.exists(f"{SPACE}/file")
        assert not running.mirror.agenda.idle


async def test_a_line_that_is_added_after_a_crash_is_added_to_the_version_that_is_there(
    one: Machine, mount: Host
) -> None:
    """The process died when the new version had its name, and before it was said that it has."""
    await mount.write(f"{SPACE}/log", "one\n")
    async with one.up() as running:
        await running.settle()
    await mount.write(f"{SPACE}/log", "two\n", APPEND)
    with patch.object(MirrorRows, "set", side_effect=Crash), pytest.raises((Crash, BaseExceptionGroup)):
        async with one.up() as running:
            await running.settle()
    assert one.files()["log"] == "one\ntwo\n"
    one.write("log", "three\n", "a")
    async with one.up() as running:
        await running.settle()

    assert one.files() == {**one.files(), "log": "one\ntwo\nthree\n"}
    assert await mount.read(f"{SPACE}/log") == b"one\ntwo\nthree\n"
    assert [name for name in one.files() if name.startswith("log")] == ["log"]


async def test_who_goes_on_with_a_version_that_was_put_aside_goes_on_in_the_copy(
    one: Machine, two: Machine, mount: Host
) -> None:
    one.write("log", "of one\n")
    two.write("log", "of two\n")
    async with one.up() as first, two.up() as second:
        await first.settle()
        await second.mirror.compare()
        await second.mirror.until_idle()
        await second.host.replica.uploaded()  # it is a conflict copy by now, and the disk does not have theirs yet
        two.write("log", "and more\n", "a")
        second.mirror.agenda.touched(["log"])
        await second.settle()
        await first.settle()

    assert one.files() == two.files()
    logs = {name: text for name, text in one.files().items() if name.startswith("log")}
    assert logs.pop("log") == "of one\n"
    assert list(logs.values()) == ["of two\nand more\n"]
