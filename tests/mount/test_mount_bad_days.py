"""The bad days: the store fails, a handler breaks, the daemon is told to end, the user is nobody special."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cloud import Bucket, Cloud
from machine import ROOT, Mount, StartMount, clean_environment, detach, mounted_at, sh

LIVE = "project/live"


def stored(bucket: Bucket) -> list[str]:
    """The keys of all notes, without the sentinel."""
    return [key for key in bucket.keys(f"{LIVE}/") if not key.endswith(".keep")]


# --- the store ---------------------------------------------------------------------------------------------------


def test_while_the_store_fails_writers_go_on_and_everything_arrives_afterwards(
    start_mount: StartMount, bucket: Bucket, s3: Cloud
) -> None:
    mount = start_mount(bucket.environment(), "--op-timeout", "2")
    sh(f"mkdir project; cat {LIVE}/* project/README.md; true", cwd=mount.path)

    with s3.failing(503):
        sh(f"cp /etc/hostname {LIVE}/host.md", cwd=mount.path)
        assert sh(f"tail -n 1 {LIVE}/host.md", cwd=mount.path).stdout == Path("/etc/hostname").read_text()
        wait_for(lambda: status_of(mount)["state"] == "degraded")
        told = status_of(mount)
        assert (told["pending"], told["pending_bytes"] > 0, bool(told["failing_since"])) == (1, True, True)
        assert os.getxattr(mount / LIVE / "host.md", "user.livememfs.state") == b"pending"
    sh(f"echo again >> {LIVE}/host.md", cwd=mount.path)

    [key] = stored(bucket)
    assert bucket.text(key).endswith(Path("/etc/hostname").read_text() + "again\n")
    told = status_of(mount)
    assert (told["state"], told["pending"], told["failing_since"]) == ("ok", 0, None)


def status_of(mount: Mount) -> dict[str, Any]:
    """What `status.json` says now."""
    found: dict[str, Any] = json.loads((mount / ".livememfs/status.json").read_text())
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.05)


@pytest.mark.parametrize("how", ["SIGTERM", "umount"])
def test_ending_uploads_what_the_store_did_not_take_before(
    start_mount: StartMount, bucket: Bucket, s3: Cloud, how: str
) -> None:
    mount = start_mount(bucket.environment(), "--op-timeout", "2")
    sh(f"mkdir project; ls {LIVE}", cwd=mount.path)
    with s3.failing(503):
        sh(f"cp /etc/hostname {LIVE}/host.md", cwd=mount.path)

    if how == "SIGTERM":
        mount.signal(signal.SIGTERM)
        mount.expect_end(0)
    else:
        mount.stop()

    assert len(stored(bucket)) == 1


def test_what_could_not_be_uploaded_at_the_end_is_an_error_that_names_it_and_the_next_mount_uploads_it(
    start_mount: StartMount, bucket: Bucket, s3: Cloud
) -> None:
    env = {**bucket.environment(), "LIVEMEMFS_DRAIN_TIMEOUT": "1"}
    mount = start_mount(env, "--op-timeout", "2")
    sh(f"mkdir project; ls {LIVE}", cwd=mount.path)

    with s3.failing(503):
        sh(f"cp /etc/hostname {LIVE}/host.md", cwd=mount.path)
        mount.signal(signal.SIGTERM)
        mount.expect_end(1)
    mount.expect_log("the next mount uploads what waits")
    assert f"{LIVE}/2" in mount.log()
    assert "the next mount uploads what waits" in mount.log()
    assert not mounted_at(mount.path)

    mount.start()

    assert len(stored(bucket)) == 1


def test_a_file_open_at_the_end_is_saved(folder_mounted: Mount, folder: Path) -> None:
    descriptor = os.open(folder_mounted / LIVE / "insight.md", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"half a thought")

    folder_mounted.signal(signal.SIGTERM)
    folder_mounted.expect_end(0)

    with contextlib.suppress(OSError):  # whoever closes it afterwards hears that the mount is gone
        os.close(descriptor)
    [note] = (folder / LIVE).glob("*_insight_*.md")
    assert note.read_text().endswith("half a thought")


def test_a_signal_in_the_middle_of_a_save_loses_nothing(start_mount: StartMount, bucket: Bucket, s3: Cloud) -> None:
    mount = start_mount(bucket.environment(), "--op-timeout", "6")
    sh(f"mkdir project; ls {LIVE}", cwd=mount.path)

    with s3.failing(503):
        before = bucket.requests()["PUT"]
        copying = subprocess.Popen(["cp", "/etc/hostname", mount.path / LIVE / "host.md"], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while bucket.requests()["PUT"] == before:
            assert time.monotonic() < deadline, "the save never began"
        mount.signal(signal.SIGTERM)
    mount.expect_end(0)

    assert copying.wait(20) in (0, 1)
    [key] = stored(bucket)
    assert bucket.text(key).endswith(Path("/etc/hostname").read_text())


def test_while_the_store_is_down_calls_end_in_time_and_the_mount_says_why(
    start_mount: StartMount, bucket: Bucket, s3: Cloud
) -> None:
    mount = start_mount(bucket.environment(), "--op-timeout", "2")
    sh(f"mkdir project; echo known > {LIVE}/known.md; cat {LIVE}/known.md", cwd=mount.path)

    with s3.failing(503):
        sh("timeout 20 cp /etc/hostname project/new", cwd=mount.path)
        sh("timeout 20 ls project/folder", cwd=mount.path, status=2)
        wait_for(lambda: status_of(mount)["state"] == "degraded")
        assert "does not answer" in status_of(mount)["last_error"]

    assert sh(f"tail -n 1 {LIVE}/known.md", cwd=mount.path).stdout == "known\n"


# --- bugs --------------------------------------------------------------------------------------------------------


def test_a_handler_that_raises_costs_one_call_and_the_mount_lives(start_mount: StartMount, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        textwrap.dedent("""
            import sys
            if "mount" in sys.orig_argv:
                from livememfs.tree.space import root as space
                def guide(name):
                    raise ZeroDivisionError("a bug")
                space.guide = guide
        """)
    )
    env = {"LIVEMEMFS_STORE": str(tmp_path / "store"), "PYTHONPATH": f"{broken}:{ROOT}"}
    mount = start_mount(env)
    mount.expect_log("a handler failed")
    sh("mkdir project", cwd=mount.path)

    told = sh("cat project/README.md", cwd=mount.path, status=1).stderr

    assert "Input/output error" in told
    sh(f"echo alive > {LIVE}/x.md && cat {LIVE}/x.md", cwd=mount.path)
    assert "ZeroDivisionError" in mount.log()
    assert "ZeroDivisionError" in (mount / ".livememfs/errors.ndjson").read_text()


def test_a_killed_daemon_loses_nothing_that_was_closed(
    start_mount: StartMount, bucket: Bucket, second_mount: StartMount
) -> None:
    mount = start_mount(bucket.environment())
    sh(f"mkdir project; for i in 1 2 3 4 5; do echo note $i > {LIVE}/n$i.md; done", cwd=mount.path)

    mount.kill()

    assert "not connected" in sh(f"ls {mount.path}", status=2).stderr
    mount.start()
    mount.uploaded()
    other = second_mount()
    assert sorted(sh(f"tail -qn 1 {LIVE}/*", cwd=other.path).stdout.split("\n"))[1:] == [
        f"note {i}" for i in range(1, 6)
    ]


# --- a user without rights ---------------------------------------------------------------------------------------


@pytest.fixture
def device_for_all() -> Iterator[None]:
    """/dev/fuse the way udev makes it on every desktop and server; put back afterwards."""
    before = stat.S_IMODE(os.stat("/dev/fuse").st_mode)
    os.chmod("/dev/fuse", 0o666)
    yield
    os.chmod("/dev/fuse", before)


def test_a_user_without_rights_mounts_writes_consolidates_and_unmounts(device_for_all: None) -> None:
    nobody = pwd.getpwnam("nobody")
    home = Path(tempfile.mkdtemp(prefix="livememfs-nobody-", dir="/tmp"))  # TMPDIR may be root's own
    mountpoint = home / "mnt"
    try:
        mountpoint.mkdir()
        for path in (home, mountpoint):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        become = ["setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups"]
        if sh(f"{shlex.join(become)} test -x {sys.executable} -a -r {ROOT}", status=None).returncode:
            # The tests run from a directory that is root's own: nobody may read there, and nothing else.
            become += ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
        script = f"""
            set -eu
            livememfs() {{ {sys.executable} -m livememfs "$@"; }}
            livememfs mount mnt
            [ "$(stat -c %U mnt)" = nobody ]
            mkdir mnt/project
            echo 'we chose S3' > mnt/project/live/decision.md
            touch mnt/project/.consolidate
            cat mnt/project/.consolidate.wait
            grep -r 'we chose S3' mnt/project/bank
            livememfs umount mnt
        """
        done = subprocess.run(
            ["timeout", "-k", "5", "80", *become, "--", "/bin/sh", "-c", script],
            cwd=home,
            env=clean_environment(home, LIVEMEMFS_STORE=str(home / "store"), USER="nobody", LOGNAME="nobody"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "everything is in folder" in done.stdout
        assert not mounted_at(mountpoint)
    finally:
        detach(mountpoint)
        shutil.rmtree(home)
