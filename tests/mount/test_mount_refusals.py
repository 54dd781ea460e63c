"""What must not be changed by hand is not changed, not by root either."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator

import pytest
from cloud import Bucket, Cloud
from machine import Mount, sh

from livememfs.tree.space.root import RESERVED

PYTHON = f"{sys.executable} -c"

CHANGES = {
    "create": "echo x > bank/y",
    "append": "echo x >> bank/progress.md",
    "truncate on open": ": > bank/progress.md",
    "truncate": "truncate -s 0 bank/progress.md",
    "unlink": "rm -f bank/progress.md",
    "mkdir": "mkdir bank/d",
    "rmdir": "rmdir bank/sub",
    "rename inside": "mv bank/progress.md bank/other.md",
    "rename out": PYTHON + " \"import os; os.rename('bank/progress.md', 'progress.md')\"",
    "rename in": "echo x > x; " + PYTHON + " \"import os; os.rename('x', 'bank/x')\"",
    "symlink": "ln -s x bank/l",
    "hard link": "echo x > x; ln x bank/l",
    "hard link inside": "ln bank/progress.md bank/l",
    "chmod": "chmod 600 bank/progress.md",
    "chmod of the folder": "chmod 700 bank",
    "chown": "chown 1:1 bank/progress.md",
    "touch": "touch bank/progress.md",
    "utimens": "touch -d 2001-01-01 bank/progress.md",
    "touch of a new name": "touch bank/new",
    "mkfifo": "mkfifo bank/fifo",
    "set an attribute": PYTHON + " \"import os; os.setxattr('bank/progress.md', 'user.x', b'1')\"",
    "remove an attribute": PYTHON + " \"import os; os.removexattr('bank/progress.md', 'user.x')\"",
    "open for writing": PYTHON + " \"open('bank/progress.md', 'r+')\"",
    "in a subfolder": "echo x > bank/sub/y",
    "the synthesis": "echo x > _synthesis.md",
    "the metadata": "rm _meta.json",
    "the guide": "echo x >> README.md",
}


@pytest.fixture(scope="module")
def kept(s3: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mount, Bucket]]:
    """A mount with a bank, for all who try to change what may not be changed: none of them leaves a trace in it."""
    bucket, folder = Bucket(s3, "refusals", s3.client()), tmp_path_factory.mktemp("refusals")
    bucket.client.create_bucket(Bucket=bucket.name)
    bucket.put("project/_meta.json", json.dumps({"space_id": "project"}))
    bucket.put("project/bank/progress.md", "# Progress\n")
    bucket.put("project/bank/sub/deep.md", "# Deep\n")
    bucket.put("project/_synthesis.md", "---\nnotes_count: 0\n---\n")
    with Mount(folder / "mnt", folder / "home", bucket.environment()) as mount:
        yield mount, bucket


@pytest.mark.parametrize("how", CHANGES)
def test_every_change_of_what_livememfs_keeps_is_refused_as_read_only(kept: tuple[Mount, Bucket], how: str) -> None:
    mount, bucket = kept

    def what_is_kept() -> dict[str, bytes]:
        return {key: bucket.get(key) for key in bucket.keys("project/") if re.match("project/(bank/|_)", key)}

    def refused() -> int:
        return (mount / ".livememfs/errors.ndjson").read_text().count('"EROFS"')

    before, told = what_is_kept(), refused()
    assert {"project/bank/progress.md", "project/bank/sub/deep.md", "project/_meta.json"} <= before.keys()

    done = sh(CHANGES[how], cwd=mount / "project", status=None)

    assert done.returncode != 0
    assert "Read-only file system" in done.stderr
    assert what_is_kept() == before
    assert refused() > told


def test_rules_are_written_once(mounted: Mount, bucket: Bucket) -> None:
    sh("echo '# first' > _rules.md", cwd=mounted / "project")

    for change in (
        "echo '# second' > _rules.md",
        "echo more >> _rules.md",
        "rm -f _rules.md",
        "mv _rules.md x",
        "sed -i s/first/second/ _rules.md",
        "chmod 600 _rules.md",
        "truncate -s 0 _rules.md",
    ):
        assert sh(change, cwd=mounted / "project", status=None).returncode != 0, change

    assert bucket.text("project/_rules.md") == "# first\n"
    assert (mounted / "project/_rules.md").read_text() == "# first\n"


@pytest.mark.parametrize("how", ["mv x.md _rules.md", "cp x.md _rules.md", "cat x.md > _rules.md"])
def test_rules_can_be_put_in_place_by_any_tool(mounted: Mount, bucket: Bucket, how: str) -> None:
    sh(f"echo '# mine' > x.md; {how}", cwd=mounted / "project")

    assert bucket.text("project/_rules.md") == "# mine\n"


def test_the_root_holds_spaces_only(mounted: Mount, bucket: Bucket) -> None:
    before = bucket.keys()

    for change in (
        "echo x > file",
        "ln -s project link",
        "mkdir _system",
        "mkdir 'no spaces'",
        "mv project other",
        "rmdir .livememfs",
        "echo x > .livememfs/status.json",
    ):
        assert sh(change, cwd=mounted.path, status=None).returncode != 0, change

    assert bucket.keys() == before
    assert sorted(os.listdir(mounted.path)) == [".livememfs", "project", "search"]


def test_names_of_later_versions_are_reserved(mounted: Mount, bucket: Bucket) -> None:
    for name in sorted(RESERVED):
        assert sh(f"echo x > {name}", cwd=mounted / "project", status=None).returncode != 0, name
