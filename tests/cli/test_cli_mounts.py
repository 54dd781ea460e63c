"""What is known of mounts: records, the kernel's table, states, and who keeps a directory busy. No mount is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commandline import Cli

from livememfs.cli.mounting import mounts, umount
from livememfs.cli.mounting.mounts import MountRecord
from livememfs.cli.mounting.starting import place_of
from livememfs.config import Settings

MOUNTINFO = r"""22 1 0:20 / /proc rw,nosuid - proc proc rw
90 22 0:51 / {} rw,nosuid,nodev shared:1 - fuse.livememfs livememfs rw,user_id=0,group_id=0
91 22 0:52 / /other rw - fuse.sshfs host:/ rw
"""

Child = subprocess.Popen[bytes]
KernelShows = Callable[[Path], None]


@pytest.fixture
def kernel_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelShows:
    """`kernel_shows(path)`: let the kernel's table have a livememfs on `path`."""
    table = tmp_path / "mountinfo"
    table.write_text("")
    monkeypatch.setattr(mounts, "MOUNTINFO", table)

    def show(path: Path) -> None:
        table.write_text(MOUNTINFO.format(str(path).replace("\\", r"\134").replace(" ", r"\040")))

    return show


@pytest.fixture
def child() -> Iterator[Child]:
    """A process that does nothing until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def record_of(path: Path, pid: int) -> MountRecord:
    """A record as that process would have written it."""
    return MountRecord(
        mountpoint=str(path),
        pid=pid,
        started=mounts.start_time(pid) or 0,
        since="2026-02-20T14:00:00Z",
        store="folder /x",
        log="/x/mount.log",
    )


# --- records -----------------------------------------------------------------------------------------------------


def test_a_record_is_found_again(tmp_path: Path) -> None:
    record = record_of(tmp_path / "mnt", os.getpid())

    record.write()

    assert mounts.find(tmp_path / "mnt") == record
    assert record.is_alive


def test_a_good_end_leaves_nothing_and_a_bad_one_its_reason(tmp_path: Path) -> None:
    good, bad = record_of(tmp_path / "good", os.getpid()), record_of(tmp_path / "bad", os.getpid())
    good.write()
    bad.write()

    good.ended("")
    bad.ended("the store went away")

    assert mounts.records() == [replace(bad, problem="the store went away")]


def test_a_daemon_touches_only_its_own_record(tmp_path: Path) -> None:
    old = record_of(tmp_path / "mnt", os.getpid())
    newer = replace(old, pid=old.pid + 1)
    newer.write()

    old.ended("")
    old.ended("trouble")

    assert mounts.records() == [newer]


def test_only_a_daemon_that_has_served_and_has_its_place_still_says_how_much_is_left(tmp_path: Path) -> None:
    record = record_of(tmp_path / "mnt", os.getpid())

    record.draining(3)
    assert record.left is None
    record.write()
    record.draining(2)
    assert record.left == 2
    replace(record, pid=record.pid + 1).write()
    record.draining(1)
    assert record.left == 2


def test_a_process_that_got_the_same_id_later_is_not_the_daemon(tmp_path: Path) -> None:
    record = record_of(tmp_path / "mnt", os.getpid())

    assert not replace(record, started=record.started - 1).is_alive


def test_files_that_are_no_records_are_passed_over(tmp_path: Path) -> None:
    record_of(tmp_path / "mnt", os.getpid()).write()
    (mounts.folder() / "half.json").write_text('{"mountpoint": ')
    (mounts.folder() / "list.json").write_text("[]")
    (mounts.folder() / "other.json").write_text('{"mountpoint": "/x"}')

    assert [record.mountpoint for record in mounts.records()] == [str(tmp_path / "mnt")]


def test_a_log_is_named_after_its_mount_point(tmp_path: Path) -> None:
    assert mounts.log_path(Path("/home/a b/mem")).name == "mount-home-a-b-mem.log"


def test_a_finished_process_has_no_start_time(child: Child) -> None:
    assert mounts.start_time(child.pid) is not None

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped

    assert mounts.start_time(child.pid) is None


@pytest.mark.parametrize("name", ["plain", "with blank", "back\\slash", "a\u2028b\x85c"])
def test_the_kernel_s_table_is_read_with_odd_names(tmp_path: Path, kernel_shows: KernelShows, name: str) -> None:
    kernel_shows(tmp_path / name)

    assert mounts.kernel_mounts() == [str(tmp_path / name)]


# --- status ------------------------------------------------------------------------------------------------------


def test_nothing_mounted_is_no_failure(cli: Cli, kernel_shows: KernelShows) -> None:
    ended = cli("status")

    assert (ended.code, ended.out) == (0, "nothing is mounted; `livememfs mount DIRECTORY` mounts\n")
    assert cli("status", "--json").json == []


def test_a_mount_that_serves_is_shown_with_its_figures(
    cli: Cli, tmp_path: Path, kernel_shows: KernelShows, child: Child
) -> None:
    (tmp_path / "mnt" / ".livememfs").mkdir(parents=True)
    (tmp_path / "mnt" / ".livememfs" / "status.json").write_text('{"notes": {"waiting": 3}}')
    kernel_shows(tmp_path / "mnt")
    record_of(tmp_path / "mnt", child.pid).write()

    cli("status", str(tmp_path / "mnt")).shows("mounted", "notes.waiting: 3")
    assert cli("status", "--json").json[0]["details"] == {"notes": {"waiting": 3}}


def test_a_mount_that_does_not_answer_exits_1(
    cli: Cli, tmp_path: Path, kernel_shows: KernelShows, child: Child
) -> None:
    kernel_shows(tmp_path / "mnt")
    record_of(tmp_path / "mnt", child.pid).write()

    ended = cli("status")

    assert ended.code == 1
    assert f"{tmp_path}/mnt: see its log; if it lasts, `livememfs umount --lazy {tmp_path}/mnt`" in ended.out


def test_a_daemon_that_died_is_told_from_one_that_lives(
    cli: Cli, tmp_path: Path, kernel_shows: KernelShows, child: Child
) -> None:
    kernel_shows(tmp_path / "mnt")
    record = record_of(tmp_path / "mnt", child.pid)
    replace(record, started=record.started - 1).write()

    (shown,) = cli("status", "--json").json
    assert shown["state"] == "daemon died"
    # The doctor says the same, in the same words.
    (check,) = (one for one in cli("doctor", "--json").json["checks"] if one["name"] == "mounts")
    assert (check["found"], check["advice"]) == (f"{tmp_path}/mnt: daemon died", shown["advice"])


def test_a_bad_end_is_shown_with_its_reason(cli: Cli, tmp_path: Path, kernel_shows: KernelShows, child: Child) -> None:
    record = record_of(tmp_path / "mnt", child.pid)
    replace(record, started=record.started - 1, problem="2 files could not be saved").write()

    ended = cli("status")

    assert ended.code == 1
    assert "2 files could not be saved" in ended.out


def test_asking_for_a_mount_that_is_not_there_exits_1(cli: Cli, tmp_path: Path, kernel_shows: KernelShows) -> None:
    cli("status", str(tmp_path)).fails(f"no livememfs is mounted on {tmp_path}")


# --- umount ------------------------------------------------------------------------------------------------------


def test_unmounting_what_is_not_mounted_exits_1(cli: Cli, tmp_path: Path, kernel_shows: KernelShows) -> None:
    cli("umount", str(tmp_path)).fails(f"no livememfs is mounted on {tmp_path}")


def test_a_bad_end_is_told_once_and_then_forgotten(
    cli: Cli, tmp_path: Path, kernel_shows: KernelShows, child: Child
) -> None:
    record = record_of(tmp_path / "mnt", child.pid)
    replace(record, started=record.started - 1, problem="the disk was full").write()

    assert "the last one ended badly: the disk was full" in cli("umount", str(tmp_path / "mnt")).err
    assert mounts.records() == []


def test_who_works_in_a_directory_or_has_a_file_open_is_found(tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    (tmp_path / "mnt" / "file").touch()
    waits = [sys.executable, "-c", "print(1, flush=True); input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        (tmp_path / "mnt" / "file").open() as file,
        subprocess.Popen(waits, cwd=tmp_path / "mnt", **pipes) as inside,
        subprocess.Popen(waits, pass_fds=(file.fileno(),), **pipes) as reader,
    ):
        inside.stdout.readline()
        reader.stdout.readline()
        holders = umount.holders(tmp_path / "mnt")
        inside.communicate(b"\n")
        reader.communicate(b"\n")

    assert any(f"(process {inside.pid})" in holder for holder in holders)
    assert any(f"(process {reader.pid})" in holder for holder in holders)
    assert not any(f"(process {os.getpid()})" in holder for holder in holders)
    assert umount.holders(tmp_path / "mnt2") == []


def test_waiting_for_a_process_ends_with_it(child: Child) -> None:
    assert not umount.wait_for_exit(child.pid, 0.0)

    child.kill()

    assert umount.wait_for_exit(child.pid, 10.0)
    child.wait()
    assert umount.wait_for_exit(child.pid, 0.0)


# --- the store of a running mount --------------------------------------------------------------------------------


@pytest.fixture
def no_store_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new shell, without the variables of the one that mounted."""
    monkeypatch.delenv("LIVEMEMFS_STORE")


def running(tmp_path: Path, name: str, **place: Any) -> MountRecord:
    """The record of a mount that serves."""
    record = record_of(tmp_path / name, os.getpid())
    record = replace(record, store=f"folder {place['store']}" if "store" in place else f"s3://{name}", place=place)
    record.write()
    return record


@pytest.mark.usefixtures("no_store_named")
def test_a_new_shell_uses_the_store_that_is_mounted_and_says_so(cli: Cli, tmp_path: Path) -> None:
    assert cli("space", "create", "mine", "--store", str(tmp_path / "elsewhere")).code == 0
    running(tmp_path, "mnt", store=str(tmp_path / "elsewhere"))

    ended = cli("space", "list", "--json")

    assert [space["name"] for space in ended.json] == ["mine"]
    assert f"using folder {tmp_path}/elsewhere, which is mounted on {tmp_path}/mnt" in ended.err


@pytest.mark.usefixtures("no_store_named")
@pytest.mark.parametrize(
    ("places", "why"),
    [
        ([{"s3_bucket_name": "b", "s3_endpoint_url": "http://127.0.0.1:1", "keys": True}], "S3_ACCESS_KEY_ID"),
        ([{}], "a token limits that mount"),
        ([{"store": "/a"}, {"store": "/b"}], "--bucket or --store names another store"),
    ],
    ids=["keys missing", "limited", "several"],
)
def test_where_the_mounted_store_cannot_be_used_the_one_that_is_used_is_named(
    cli: Cli, tmp_path: Path, places: list[dict[str, Any]], why: str
) -> None:
    for number, place in enumerate(places):
        running(tmp_path, f"mnt{number}", **place)

    ended = cli("space", "list")

    assert f"using folder {tmp_path}/data/livememfs/store, while " in ended.err
    assert f" is mounted on {tmp_path}/mnt0" in ended.err
    assert why in ended.err
    said = {check["name"]: check for check in cli("doctor", "--json").json["checks"]}["store, choice"]
    assert said["verdict"] == "warn", "all is not well"


def test_a_store_that_is_named_is_used_without_a_word(cli: Cli, tmp_path: Path) -> None:
    running(tmp_path, "mnt", store=str(tmp_path / "elsewhere"))

    ended = cli("space", "list")
    assert str(tmp_path / "store") in ended.out
    assert ended.err == ""


@pytest.mark.usefixtures("no_store_named")
def test_a_mount_of_the_users_own_folder_or_one_that_ended_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    running(tmp_path, "mnt", store=str(tmp_path / "data/livememfs/store"))
    gone = running(tmp_path, "gone", store=str(tmp_path / "elsewhere"))
    replace(gone, started=-1).write()

    assert cli("space", "list").err == ""


def test_the_record_of_a_mount_has_no_secret_and_of_a_limited_one_no_store() -> None:
    settings = Settings(s3_bucket_name="b", s3_access_key_id="AK", s3_secret_access_key="SK", token="")
    place = place_of(settings)

    assert place["s3_bucket_name"] == "b"
    assert place["keys"] is True
    assert "SK" not in str(place)
    assert place_of(settings.model_copy(update={"token": "t"})) == {}


def test_what_was_not_saved_is_told_with_what_to_do_next(
    cli: Cli, tmp_path: Path, kernel_shows: KernelShows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that the store is named by which the next mount finds it."""
    record = replace(running(tmp_path, "mnt", s3_bucket_name="b"), problem="2 files were not taken by the bucket")
    kernel_shows(tmp_path / "mnt")
    monkeypatch.setattr("livememfs.fuse.mountpoint.unmount", lambda *_, **__: record.write())
    monkeypatch.setattr(umount, "wait_for_exit", lambda *_: True)

    ended = cli("umount", str(tmp_path / "mnt"))

    assert ended.code == 1
    assert "2 files were not taken by the bucket" in ended.err
    assert f"next: `livememfs mount s3://b {tmp_path}/mnt`" in ended.err
    assert "`livememfs doctor` says whether s3://mnt answers" in ended.err
