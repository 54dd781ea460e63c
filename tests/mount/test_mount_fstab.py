"""mount(8) itself: lines of fstab, and `mount -t fuse.livememfs`.

In a mount namespace in which `/sbin` is a directory of the test, so that nothing is left on the machine.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cloud import Bucket
from machine import clean_environment

LIMIT = 90


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Everything of the user, and the directories of the test."""
    for name in ("home", "sbin", "mnt", "store"):
        (tmp_path / name).mkdir()
    return tmp_path / "home"


def run(script: str, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script where mount finds us, as root; whatever it mounts is gone with it."""
    before = 'mount --bind sbin "$(readlink -f /sbin)"\n'
    # The daemon saves what it has after umount, and then forgets its record.
    after = (
        "for i in $(seq 100); do ls home/state/livememfs/mounts/*.json 2>/dev/null || exit 0; sleep 0.1; done; exit 9"
    )
    return subprocess.run(
        ["timeout", "-k", "5", str(LIMIT), "unshare", "--mount", "/bin/sh", "-exc", f"{before}{script}\n{after}"],
        cwd=home.parent,
        env=clean_environment(home, **env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT + 10,
        check=False,
    )


def test_a_line_of_fstab_mounts_and_umount_unmounts(home: Path) -> None:
    done = run(
        """
        livememfs service fstab "$PWD/my mnt" --store "$PWD/my store" --link > fstab
        sed -i 's/nofail/nofail,user,_netdev,x-systemd.automount,agent=ann/' fstab
        mkdir 'my mnt'
        mount -T fstab "$PWD/my mnt"
        grep -F " $PWD/my" /proc/self/mounts > table
        mkdir 'my mnt/project'
        echo 'We chose S3.' > 'my mnt/project/live/decision-store.md'
        mount -a -T fstab
        [ "$(grep -cF " $PWD/my" /proc/self/mounts)" = 1 ]
        cat 'my mnt/.livememfs/journal.wait'
        umount 'my mnt'
        """,
        home,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    table = (home.parent / "table").read_text().split()
    assert table[0].replace(r"\040", " ") == str(home.parent / "my store")
    assert "noexec" in table[3].split(",")  # which `user` means
    (note,) = (home.parent / "my store" / "project" / "live").glob("*_decision_*.md")
    assert "We chose S3." in note.read_text()


def test_mount_with_the_type_mounts_a_folder_and_a_bucket(home: Path, bucket: Bucket) -> None:
    settings = "".join(f'{name.lower()} = "{value}"\n' for name, value in bucket.environment().items() if "KEY" in name)
    (home / "c.toml").write_text(settings)
    done = run(
        f"""
        livememfs service fstab mnt --link
        mount -t fuse.livememfs store mnt
        mkdir mnt/project
        umount mnt
        mount -t fuse.livememfs {bucket.name} mnt -o config=home/c.toml,endpoint_url={bucket.cloud.endpoint}
        grep -q '^{bucket.name} ' /proc/self/mounts
        mkdir mnt/other
        livememfs umount mnt
        """,
        home,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (home.parent / "store" / "project" / "_meta.json").exists()
    assert "other/_meta.json" in bucket.keys("other/")
    assert bucket.environment()["S3_SECRET_ACCESS_KEY"] not in done.stdout + done.stderr


def test_a_mount_that_cannot_be_says_why(home: Path) -> None:
    done = run(
        """
        livememfs service fstab mnt --link
        mount -t fuse.livememfs no-such-bucket mnt -o endpoint_url=http://127.0.0.1:9,op_timeout=1 || echo "status $?"
        mount -t fuse.livememfs store mnt -o frobnicate || echo "status $?"
        """,
        home,
        S3_ACCESS_KEY_ID="some-key",
        S3_SECRET_ACCESS_KEY="sesame",
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "status 32" in done.stdout
    assert "127.0.0.1:9 does not answer" in done.stderr
    assert "status 1\n" in done.stdout
    assert "livememfs does not know the option frobnicate" in done.stderr
