"""`_backups/` through the kernel: backups are read with any tool and changed with none."""

from __future__ import annotations

import filecmp
import os
import sys
from pathlib import Path

import pytest
from cloud import Bucket
from machine import Mount, livememfs, sh
from test_mount_watch import until

PYTHON = f"{sys.executable} -c"
WITHIN = 20.0
BANK = "# Progress\n\nAll of it.\n"


@pytest.fixture
def stamp(folder_mounted: Mount, folder: Path) -> str:
    """The stamp of a backup, made by the command while the space is mounted."""
    project = folder_mounted / "project"
    (folder / "project/bank/more").mkdir(parents=True)
    (folder / "project/bank/progress.md").write_text(BANK)
    (folder / "project/bank/more/deep.md").write_text("deep\n")
    sh("echo 'We chose S3.' > live/decision", cwd=project)
    folder_mounted.uploaded()
    livememfs("backup create project", env=folder_mounted.environment)
    sh("for i in $(seq 40); do [ -e _backups ] && exit 0; sleep 0.1; done; exit 1", cwd=folder_mounted.path)
    [name] = os.listdir(folder_mounted / "_backups/project")
    return name


def test_a_backup_is_listed_read_and_copied_out(
    folder_mounted: Mount, folder: Path, stamp: str, tmp_path: Path
) -> None:
    backup = folder_mounted / f"_backups/project/{stamp}"
    [note] = os.listdir(folder_mounted / "project/live")

    assert sorted(os.listdir(folder_mounted.path)) == [".livememfs", "_backups", "project", "search"]
    assert sh("ls", cwd=backup).stdout.split() == ["_meta.json", "bank", "live"]
    assert (backup / "bank/progress.md").stat().st_size == len(BANK)
    assert sh("cat bank/progress.md", cwd=backup).stdout == BANK
    assert sh("cat live/*", cwd=backup).stdout == (folder_mounted / f"project/live/{note}").read_text()

    sh(f"cp -r '{backup}' '{tmp_path}/out'")

    kept = folder / f"_backups/project/{stamp}"
    names = ["_meta.json", "bank/progress.md", "bank/more/deep.md", f"live/{note}"]
    assert filecmp.cmpfiles(tmp_path / "out", kept, names, shallow=False) == (names, [], [])
    assert sh("find . -type f | sort", cwd=tmp_path / "out").stdout.split() == sorted(f"./{name}" for name in names)


CHANGES = {
    "create": "echo x > bank/new.md",
    "append": "echo x >> bank/progress.md",
    "truncate on open": ": > bank/progress.md",
    "truncate": "truncate -s 0 bank/progress.md",
    "unlink": "rm -f bank/progress.md",
    "unlink all of it": "rm -rf bank",
    "mkdir": "mkdir new",
    "mkdir of a backup": "mkdir ../new",
    "mkdir of a space": "mkdir ../../new",
    "rmdir": "rmdir bank/more",
    "rename inside": "mv bank/progress.md bank/other.md",
    "rename of a backup": "mv ../* ../../other",
    "rename of all": "mv ../../../_backups ../../../other",
    "rename out": PYTHON + " \"import os; os.rename('bank/progress.md', '../../../project/progress.md')\"",
    "move in": "echo x > ../../../project/x; mv ../../../project/x .",
    "copy in": "cp bank/progress.md live/",
    "symlink": "ln -s x link",
    "hard link": "ln bank/progress.md link",
    "chmod": "chmod 600 bank/progress.md",
    "chmod of all": "chmod 700 ../../../_backups",
    "chown": "chown 1:1 bank/progress.md",
    "touch": "touch bank/progress.md",
    "mkfifo": "mkfifo fifo",
    "set an attribute": PYTHON + " \"import os; os.setxattr('bank/progress.md', 'user.x', b'1')\"",
    "open for writing": PYTHON + " \"open('_meta.json', 'r+')\"",
}


def test_every_change_is_refused_as_read_only_for_root_too(folder_mounted: Mount, folder: Path, stamp: str) -> None:
    kept = folder / "_backups"
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}

    for how, change in CHANGES.items():
        done = sh(change, cwd=folder_mounted / f"_backups/project/{stamp}", status=None)
        assert done.returncode != 0, how
        assert "Read-only file system" in done.stderr, f"{how}: {done.stderr}"

    assert {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()} == before
    assert "livememfs backup" in (folder_mounted / ".livememfs/errors.ndjson").read_text()


def test_what_is_restored_shows_on_the_mount(folder_mounted: Mount, folder: Path, stamp: str) -> None:
    project = folder_mounted / "project"
    [note] = os.listdir(project / "live")
    text = (project / "live" / note).read_bytes()
    sh(f"rm live/{note}; echo later > live/todo", cwd=project)
    folder_mounted.uploaded()

    livememfs(f"backup restore project {stamp} --replace", env=folder_mounted.environment)

    sh(
        f"for i in $(seq 120); do [ \"$(ls live)\" = '{note}' ] && exit 0; sleep 0.1; done; ls live; exit 1",
        cwd=project,
    )
    assert (project / "live" / note).read_bytes() == text
    sh(
        "for i in $(seq 40); do [ $(ls _backups/project | wc -l) = 2 ] && exit 0; sleep 0.1; done; exit 1",
        cwd=folder_mounted.path,
    )


def state(bucket: Bucket) -> dict[str, tuple[bytes, dict[str, str]]]:
    """The space's objects with their metadata, less the ids of the writes."""
    found = {key: (bucket.get(key), bucket.meta(key)) for key in bucket.keys("project/")}
    return {key: (data, meta | {"livememfs-op": ""}) for key, (data, meta) in found.items()}


def test_a_backup_on_s3_brings_back_bytes_and_metadata(mounted: Mount, bucket: Bucket) -> None:
    project = mounted / "project"
    bucket.put("project/bank/progress.md", BANK)
    sh("echo 'We chose S3.' > live/decision-store", cwd=project)
    mounted.uploaded()
    [note] = [key for key in bucket.keys("project/live/") if not key.endswith(".keep")]
    before = state(bucket)

    livememfs("backup create project", env=mounted.environment)
    bucket.put("project/bank/progress.md", "spoilt")
    bucket.put("project/bank/new.md", "new")
    bucket.delete(note)
    livememfs("backup restore project latest --replace", env=mounted.environment)

    assert state(bucket) == before
    marks = [bucket.meta(key).get("livememfs-backup") for key in bucket.keys("_backups/") if key.endswith("_meta.json")]
    assert marks == [None, "automatic"]
    # Others took the note away and brought it back, which a mount sees within three seconds.
    until((project / "live/decision-store").exists, WITHIN)
    assert "We chose S3." in sh("cat live/decision-store", cwd=project).stdout
