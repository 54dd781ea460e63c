"""`livememfs mount`, `umount`, `status`, `consolidate --mountpoint` and `demo`, as a user runs them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import machine
import pytest
from cloud import Bucket
from machine import Mount, StartMount, clean_environment, detach, mounted_at, sh

Run = Callable[..., subprocess.CompletedProcess[str]]

LIMITED = "timeout -k 5 300 setpriv --pdeathsig KILL --"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the user's directories are."""
    return tmp_path / "home"


@pytest.fixture
def livememfs(tmp_path: Path, home: Path) -> Iterator[Run]:
    """`livememfs("status", env={...}, status=1)`: run a command; every mount below `tmp_path` is gone at the end.

    `forked=False` starts an interpreter for it, as a user does.
    """
    home.mkdir()

    def run(
        line: str, *, env: dict[str, str] | None = None, status: int = 0, forked: bool = True
    ) -> subprocess.CompletedProcess[str]:
        named = bool(env) and bool(env.keys() & {"S3_BUCKET_NAME", "LIVEMEMFS_STORE"})
        store = {} if named else {"LIVEMEMFS_STORE": str(tmp_path / "store")}
        environment = clean_environment(home, **store, **(env or {}))
        if forked:
            return machine.livememfs(line, cwd=tmp_path, env=environment, status=status)
        command = f"{LIMITED} {sys.executable} -m livememfs {line}"
        return sh(command, cwd=tmp_path, env=environment, status=status, timeout=100)

    yield run
    for line in Path("/proc/mounts").read_text().splitlines():
        path = Path(line.split(" ")[1])
        if path.is_relative_to(tmp_path):
            detach(path)


def records(home: Path) -> list[Path]:
    """The records of mounts there are."""
    return list((home / "state").rglob("mounts/*.json"))


def kill(daemon: int) -> None:
    """End a daemon as a crash would, and wait until there is nothing left of it."""
    os.kill(daemon, signal.SIGKILL)
    while Path(f"/proc/{daemon}").exists():
        time.sleep(0.01)


# --- in the background -------------------------------------------------------------------------------------------


def test_mount_returns_when_the_mount_is_usable_and_umount_when_all_is_saved(
    livememfs: Run, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "mnt").mkdir()

    told = livememfs("mount mnt", forked=False).stdout
    assert "livememfs umount" in told
    assert "ls " in told
    sh("mkdir project && echo 'We chose S3.' > project/live/decision-store.md", cwd=tmp_path / "mnt")
    assert "mounted" in livememfs("status mnt", forked=False).stdout
    told = livememfs("umount mnt", forked=False).stdout

    assert f"everything is in folder {tmp_path}/store" in told
    assert not mounted_at(tmp_path / "mnt")
    assert records(home) == []
    notes = list((tmp_path / "store" / "project" / "live").glob("*_decision_*.md"))
    assert [note.read_text().splitlines()[-1] for note in notes] == ["We chose S3."]


def test_no_record_and_no_log_holds_a_secret(livememfs: Run, tmp_path: Path, home: Path, bucket: Bucket) -> None:
    (tmp_path / "mnt").mkdir()

    told = livememfs("mount mnt", env=bucket.environment()).stdout
    kept = "".join(path.read_text(errors="replace") for path in home.rglob("*") if path.is_file())
    livememfs("umount mnt", env=bucket.environment())

    assert bucket.name in kept
    assert bucket.environment()["S3_SECRET_ACCESS_KEY"] not in told + kept


def test_a_note_that_was_refused_is_not_blamed_on_the_bucket_and_the_next_mount_says_where_it_is(
    livememfs: Run, tmp_path: Path
) -> None:
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")
    sh("mkdir project", cwd=tmp_path / "mnt")
    with pytest.raises(OSError, match="multibyte"):
        (tmp_path / "mnt/project/live/bad.md").write_bytes(b"\xff\xfe")

    told = livememfs("umount mnt", status=1).stderr
    assert "1 file (project/live/bad.md) was refused" in told
    assert "not taken by the bucket" not in told
    assert f"next: `livememfs mount {tmp_path}/store {tmp_path}/mnt`" in told

    told = livememfs("mount mnt").stderr
    assert f"copy what you need from {tmp_path}/mnt/.livememfs/recovered/" in told
    (kept,) = (tmp_path / "mnt/.livememfs/recovered").iterdir()
    assert kept.read_bytes() == b"\xff\xfe"
    kept.unlink()
    livememfs("umount mnt")


def test_a_store_stands_before_the_mount_point_and_a_new_shell_finds_it(livememfs: Run, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    livememfs(f"mount {tmp_path}/other mnt", env={"LIVEMEMFS_STORE": ""})
    sh("mkdir project", cwd=tmp_path / "mnt")

    listed = livememfs("space list", env={"LIVEMEMFS_STORE": ""})
    livememfs("umount mnt")

    assert "project" in listed.stdout
    assert f"using folder {tmp_path}/other, which is mounted on {tmp_path}/mnt" in listed.stderr
    assert (tmp_path / "other/project/_meta.json").exists()


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ("s3://b/prefix mnt", "a bucket is mounted whole: s3://b"),
        ("memory mnt", "a bucket is written s3://memory, a new folder ./memory"),
        ("a b mnt", "name one store and one mount point"),
        ("--bucket b ./a mnt", "name one store and one mount point"),
    ],
)
def test_a_store_that_cannot_be_meant_is_refused_in_words(
    livememfs: Run, tmp_path: Path, places: str, sentence: str
) -> None:
    (tmp_path / "mnt").mkdir()

    assert sentence in livememfs(f"mount {places}", status=2).stderr


def test_a_second_mount_on_the_same_directory_is_refused(livememfs: Run, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")

    refused = livememfs("mount mnt", status=1)

    assert "livememfs: " in refused.stderr
    assert "Traceback" not in refused.stderr
    livememfs("umount mnt")


def test_a_cache_that_cannot_be_is_told_in_the_daemon_s_own_words(livememfs: Run, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    refused = livememfs("mount mnt", env={"LIVEMEMFS_CACHE": "/proc/nothing/here"}, status=1)

    assert "the local state cannot be kept in" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"S3_BUCKET_NAME": "misspelt-bucket"}, "there is no bucket misspelt-bucket"),
        ({"S3_ENDPOINT_URL": "http://127.0.0.1:9"}, "127.0.0.1:9"),
        ({"S3_ENDPOINT_URL": "127.0.0.1:9"}, "is not an http:// or https:// URL"),
        ({"LLMAAS_API_URL": "http://127.0.0.1:9/v1"}, "LLMAAS_MODEL"),
    ],
)
def test_what_cannot_be_mounted_ends_with_one_sentence_and_leaves_nothing(
    livememfs: Run, tmp_path: Path, home: Path, bucket: Bucket, change: dict[str, str], sentence: str
) -> None:
    (tmp_path / "mnt").mkdir()
    status = 1 if "S3_BUCKET_NAME" in change or change.get("S3_ENDPOINT_URL", "").startswith("http") else 2

    ended = livememfs("mount mnt", env=bucket.environment() | change, status=status)

    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""
    assert not mounted_at(tmp_path / "mnt")
    assert records(home) == []


@pytest.mark.parametrize("target", ["missing", "file", "full"])
def test_a_directory_that_cannot_be_a_mount_point_is_refused(livememfs: Run, tmp_path: Path, target: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()

    ended = livememfs(f"mount {target}", status=1)

    assert ended.stderr.startswith("livememfs: ")
    assert target in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_mount_in_use_is_not_taken_away_and_says_who_uses_it(livememfs: Run, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")
    waiting = ["setpriv", "--pdeathsig", "KILL", "--", "sleep", "60"]
    with subprocess.Popen(waiting, cwd=tmp_path / "mnt") as user:
        try:
            refused = livememfs("umount mnt", status=1)
            lazily = livememfs("umount --lazy mnt")
        finally:
            user.kill()

    assert f"(process {user.pid})" in refused.stderr
    assert "--lazy" in refused.stderr
    assert not mounted_at(tmp_path / "mnt")
    assert str(tmp_path / "mnt") in lazily.stdout


def test_a_copy_of_the_mount_in_another_namespace_keeps_no_daemon_alive(livememfs: Run, tmp_path: Path) -> None:
    """As a container has one, or an agent's sandbox. What is written there until then is saved as well."""
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")
    (tmp_path / "mnt/project").mkdir()
    writes = "echo 'We chose S3.' > mnt/project/live/decision-store.md; echo; read -r line; exec cat mnt/README.md"
    copied = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", writes]
    with subprocess.Popen(copied, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        told = livememfs("umount mnt").stdout
        _, said = other.communicate("\n")

    assert "everything is in" in told
    assert "Transport endpoint is not connected" in said
    (note,) = (tmp_path / "store/project/live").glob("*_decision_*.md")
    assert "We chose S3." in note.read_text()


def test_a_killed_daemon_is_told_from_a_good_end_and_cleared_away(livememfs: Run, tmp_path: Path, home: Path) -> None:
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")
    (record,) = records(home)
    kill(json.loads(record.read_text())["pid"])

    assert "daemon died" in livememfs("status mnt", status=1).stdout
    livememfs("umount mnt")

    assert not mounted_at(tmp_path / "mnt")
    assert records(home) == []
    livememfs("mount mnt")
    livememfs("umount mnt")


def test_a_mount_that_hangs_is_detached_and_keeps_no_command_waiting(folder_mounted: Mount, livememfs: Run) -> None:
    folder_mounted.signal(signal.SIGSTOP)
    environment = {"XDG_STATE_HOME": folder_mounted.environment["XDG_STATE_HOME"], "LIVEMEMFS_EMBED_MODEL": "none"}
    try:
        told = livememfs("status --json", env=environment, status=1).stdout
        refused = livememfs(f"mount {folder_mounted.path}", env=environment, status=1).stderr
        said = json.loads(livememfs("doctor --json", env=environment).stdout)["next"]
        detached = livememfs(f"umount --lazy {folder_mounted.path}", env=environment).stdout
    finally:
        folder_mounted.signal(signal.SIGCONT)

    states = {one["mountpoint"]: one["state"] for one in json.loads(told)}
    assert states[str(folder_mounted.path)] == "not answering"
    assert f"`livememfs umount --lazy {folder_mounted.path}`" in said
    assert f"`livememfs umount --lazy {folder_mounted.path}`" in refused
    assert "is detached" in detached
    assert not mounted_at(folder_mounted.path)
    folder_mounted.expect_end()


@pytest.mark.parametrize("known", [True, False], ids=["with a record", "without a record"])
def test_the_doctor_finds_a_mount_whose_daemon_is_dead(livememfs: Run, tmp_path: Path, home: Path, known: bool) -> None:
    """What it says to do next helps, too."""
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")
    (record,) = records(home)
    kill(json.loads(record.read_text())["pid"])
    if not known:
        record.unlink()

    found = json.loads(livememfs("doctor --json", env={"LIVEMEMFS_EMBED_MODEL": "none"}).stdout)
    (check,) = (check for check in found["checks"] if check["name"] == "mounts")
    assert f"{tmp_path / 'mnt'}: daemon died" in check["found"]
    assert found["next"] == f"mounts: {check['advice']}"
    advised = check["advice"].split("`")[1].removeprefix("livememfs ")
    if known:
        assert advised == f"umount {tmp_path / 'mnt'}"
    else:  # Without a record of its own it may name the dead mount of a test beside this one first.
        advised = f"{advised.rpartition(' ')[0]} {tmp_path / 'mnt'}"
    livememfs(advised)

    assert not mounted_at(tmp_path / "mnt")


def test_an_empty_volume_of_a_container_is_mounted_on_and_a_memory_is_not(livememfs: Run, tmp_path: Path) -> None:
    """A volume is a mount point itself, and what is mounted on it is seen outside."""
    (tmp_path / "mnt").mkdir()
    sh("mount -t tmpfs none mnt", cwd=tmp_path)
    try:
        livememfs("mount mnt")
        assert "a livememfs is mounted on" in livememfs("mount mnt", status=1).stderr
        livememfs("umount mnt")
        assert (tmp_path / "mnt").is_mount()
    finally:
        sh("umount mnt", cwd=tmp_path)


def test_mounting_over_a_dead_mount_clears_it_away(livememfs: Run, tmp_path: Path, home: Path) -> None:
    (tmp_path / "mnt").mkdir()
    livememfs("mount mnt")
    (record,) = records(home)
    kill(json.loads(record.read_text())["pid"])

    livememfs("mount mnt")

    sh("ls -A", cwd=tmp_path / "mnt")
    livememfs("umount mnt")


# --- in the foreground -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_unmounts_in_good_order(folder_mounted: Mount, folder: Path, number: signal.Signals) -> None:
    sh("echo 'We chose S3.' > project/live/decision-store.md", cwd=folder_mounted.path)

    folder_mounted.signal(number)
    folder_mounted.expect_end()

    assert not mounted_at(folder_mounted.path)
    assert len(list((folder / "project" / "live").glob("*_decision_*.md"))) == 1
    assert folder_mounted.unclaimed() == []


def test_a_mount_leaves_a_record_while_it_serves(start_mount: StartMount, tmp_path: Path) -> None:
    mount = start_mount({"LIVEMEMFS_STORE": str(tmp_path / "store")})

    (path,) = Path(mount.environment["XDG_STATE_HOME"]).rglob("mounts/*.json")
    kept = json.loads(path.read_text())
    mount.stop()

    assert (kept["pid"], kept["mountpoint"]) == (mount.pid, str(mount.path))
    assert not path.exists()


# --- through a mount ---------------------------------------------------------------------------------------------


def test_consolidate_lets_the_daemon_of_a_mount_do_it(livememfs: Run, folder_mounted: Mount) -> None:
    sh("echo 'We chose S3.' > project/live/decision-store.md", cwd=folder_mounted.path)

    ended = livememfs(f"consolidate project --mountpoint {folder_mounted.path} --wait --json")

    told = json.loads(ended.stdout)
    assert (told["state"], told["notes_processed"]) == ("ok", 1)
    assert sh("grep -rl 'We chose S3.' project/bank", cwd=folder_mounted.path).stdout


def test_a_dry_run_through_a_mount_shows_the_difference(livememfs: Run, folder_mounted: Mount) -> None:
    sh("echo 'We chose S3.' > project/live/decision-store.md", cwd=folder_mounted.path)

    ended = livememfs(f"consolidate project --mountpoint {folder_mounted.path} --wait --dry-run")

    assert "+++ b/bank/" in ended.stdout
    assert sh("ls project/live | wc -l", cwd=folder_mounted.path).stdout.strip() == "1"


def test_a_space_that_is_not_on_the_mount_is_named(livememfs: Run, folder_mounted: Mount) -> None:
    ended = livememfs(f"consolidate nowhere --mountpoint {folder_mounted.path}", status=1)

    assert "there is no space nowhere" in ended.stderr


def test_a_command_without_a_mount_and_the_mount_see_the_same_memory(livememfs: Run, folder_mounted: Mount) -> None:
    livememfs("note project 'From the command line.' --category insight")

    shown = sh("sleep 1.2; cat project/live/*_insight_*", cwd=folder_mounted.path).stdout
    assert shown.endswith("From the command line.")


# --- demo --------------------------------------------------------------------------------------------------------


def test_the_demo_works_whatever_is_configured_and_leaves_nothing(
    livememfs: Run, tmp_path: Path, home: Path, start_mount: StartMount
) -> None:
    """Nor does it matter that the daemon of another mount hangs."""
    (tmp_path / "tmp").mkdir()
    another = start_mount({"LIVEMEMFS_STORE": str(tmp_path / "another")})
    another.signal(signal.SIGSTOP)

    foreign = {"S3_BUCKET_NAME": "elsewhere", "S3_ENDPOINT_URL": "http://127.0.0.1:9", "TMPDIR": str(tmp_path / "tmp")}
    told = livememfs("demo", env=foreign).stdout
    another.signal(signal.SIGCONT)

    assert "$ livememfs mount memory" in told
    assert '"model": "builtin"' in told
    assert list((tmp_path / "tmp").iterdir()) == []
    assert records(home) == []


def test_a_mount_that_serves_the_live_page_says_where_and_serves_it(livememfs: Run, tmp_path: Path, home: Path) -> None:
    (tmp_path / "mnt").mkdir()

    told = livememfs("mount mnt --web 127.0.0.1:0").stdout
    url = re.search(r"http://127\.0\.0\.1:\d+", told)
    assert url is not None
    secret = livememfs("token create me").stdout.strip()
    for path, headers, status in (
        ("/healthz", {}, 200),
        ("/", {}, 401),
        ("/", {"Authorization": f"Bearer {secret}"}, 200),
        ("/metrics", {"Authorization": f"Bearer {secret}"}, 200),
    ):
        try:
            with urllib.request.urlopen(urllib.request.Request(url[0] + path, headers=headers), timeout=30) as answer:
                assert answer.status == status
        except urllib.error.HTTPError as error:
            assert error.code == status  # noqa: PT017 - it is one of the answers that are looked at
    livememfs("umount mnt")
    assert list((home / "state").rglob("mounts/*")) == []
