"""SeaweedFS, an S3 server with directories of its own: they keep modes and times, and what is removed is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from benchlib.servers import BUCKET, KEY_ID, SECRET, Server, s3_server
from machine import LIMIT, LONG, SPACE, Mount, StartMount, sh
from test_mount_selftest import WORDS_ALONE, selftest

ROUNDS = 20 if LONG else 2
COPIES = 50 if LONG else 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """SeaweedFS, with one bucket for all tests."""
    with s3_server("seaweedfs", tmp_path_factory.mktemp("seaweedfs")) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Any:
    """A plain client that knows nothing of markers."""
    where = {"endpoint_url": f"http://127.0.0.1:{server.port}", "region_name": "us-east-1"}
    return boto3.client("s3", aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET, **where)


@pytest.fixture
def mount(start_mount: StartMount, server: Server) -> Iterator[Mount]:
    """A mount with the space `project`, which is removed at the end."""
    mounted = start_mount({**server.environment(), **WORDS_ALONE}, limit=7_200 if LONG else LIMIT)
    sh(f"mkdir {SPACE}", cwd=mounted.path)
    yield mounted
    sh(f"rm -rf {SPACE}/tree; rm -f {SPACE}/live/*; rmdir {SPACE}", cwd=mounted.path)


def test_the_selftest_passes_again_and_again(mount: Mount) -> None:
    for _ in range(ROUNDS):
        ended = selftest(mount)
        assert ended.code == 0, ended
        assert ended.space not in os.listdir(mount.path)


def test_a_tree_is_copied_and_removed_again_and_again(mount: Mount, tmp_path: Path) -> None:
    source = _venv(tmp_path / "source") if LONG else _tree(tmp_path / "source")
    for _ in range(COPIES):
        sh(f"cp -a {source} {SPACE}/tree && rm -rf {SPACE}/tree", cwd=mount.path, timeout=300)
        assert not (mount / SPACE / "tree").exists()
    mount.uploaded()

    assert not (mount / SPACE / "tree").exists()


def test_modes_and_times_of_directories_are_there_after_a_remount(
    mount: Mount, start_mount: StartMount, server: Server, tmp_path: Path
) -> None:
    source = _tree(tmp_path / "source")
    sh("chmod 2770 a; chmod 1777 a/0; touch -d 2001-02-03T04:05:06.789 a a/0/1 .", cwd=source)
    sh(f"cp -a {source} {SPACE}/tree; chmod 750 {SPACE}/tree/a/1", cwd=mount.path)
    sh("chmod 750 a/1", cwd=source)
    mount.uploaded()
    other = start_mount({**server.environment(), **WORDS_ALONE}, name="other")
    look = r"find . -printf '%p %m %T@\n' | sort"

    assert sh(look, cwd=other / SPACE / "tree").stdout == sh(look, cwd=source).stdout


def test_what_a_program_without_markers_has_emptied_is_not_there(
    mount: Mount, start_mount: StartMount, server: Server, client: Any
) -> None:
    """The server goes on listing such a directory for minutes."""
    for key in ("tree/gone/deep/er/file", "tree/kept/deep/file"):
        client.put_object(Bucket=BUCKET, Key=f"{SPACE}/{key}", Body=b"1")
    client.delete_object(Bucket=BUCKET, Key=f"{SPACE}/tree/gone/deep/er/file")
    other = start_mount({**server.environment(), **WORDS_ALONE}, name="other")
    tree = other / SPACE / "tree"

    assert client.list_objects_v2(Bucket=BUCKET, Prefix=f"{SPACE}/tree/gone/", Delimiter="/")["KeyCount"] > 0
    assert os.listdir(tree) == ["kept"]
    assert not (tree / "gone").exists()
    sh("rm -r kept/deep; rmdir kept; cd ..; rmdir tree", cwd=tree)
    assert "tree" not in os.listdir(other / SPACE)
    other.uploaded()


def _venv(top: Path) -> Path:
    """A virtual environment of some 1,500 files, without its links, which lead out of the space."""
    sh(f"{sys.executable} -m venv {top}; find {top} -type l -delete", timeout=120)
    return top


def _tree(top: Path) -> Path:
    for outer in range(4):
        for inner in range(4):
            folder = top / "a" / str(outer) / str(inner)
            folder.mkdir(parents=True)
            for name in range(5):
                (folder / f"{name}.txt").write_text(f"{outer}{inner}{name}")
    return top
