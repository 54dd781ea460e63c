"""`livememfs init` with a real mount: afterwards all that it said can be typed."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import machine
import pytest
from cloud import Bucket
from machine import clean_environment, detach, mounted_at, sh


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home directory; what is mounted in it is gone at the end."""
    (tmp_path / "home").mkdir()
    yield tmp_path / "home"
    if mounted_at(tmp_path / "home/memory"):
        detach(tmp_path / "home/memory")


def test_after_init_a_new_shell_writes_finds_and_unmounts(tmp_path: Path, home: Path, bucket: Bucket) -> None:
    """The keys are in the file alone then: a new shell has no variables."""
    shell = clean_environment(home)
    with_keys = {**shell, **bucket.environment(), "LIVEMEMFS_EMBED_MODEL": "none"}

    told = machine.livememfs("init", cwd=tmp_path, env=with_keys).stdout

    values = tomllib.loads((home / "config/livememfs/config.toml").read_text())
    assert values["s3_secret_access_key"] == bucket.environment()["S3_SECRET_ACCESS_KEY"]
    assert values["s3_secret_access_key"] not in told
    typed = next(line for line in told.splitlines() if "echo " in line)
    sh(typed.strip(), env=shell)
    sh("cat .livememfs/journal.wait", cwd=home / "memory", env=shell)
    assert "we chose S3" in machine.livememfs("search chose --space notes", cwd=tmp_path, env=shell).stdout
    machine.livememfs("umount home/memory", cwd=tmp_path, env=shell)
    assert not mounted_at(home / "memory")
    assert os.listdir(home / "memory") == []


def test_a_second_init_finds_the_mount_and_another_store_there_is_refused(tmp_path: Path, home: Path) -> None:
    shell = clean_environment(home)
    machine.livememfs(f"init {tmp_path}/store {home}/memory", cwd=tmp_path, env=shell)

    again = machine.livememfs(f"init {tmp_path}/store {home}/memory", cwd=tmp_path, env=shell)
    assert f"the memory is mounted on {home}/memory" in again.stdout
    before = (home / "config/livememfs/config.toml").read_bytes()
    refused = machine.livememfs(f"init {tmp_path}/other {home}/memory", cwd=tmp_path, env=shell, status=1)
    assert f"something else is mounted on {home}/memory" in refused.stderr
    assert (home / "config/livememfs/config.toml").read_bytes() == before
    machine.livememfs(f"umount {home}/memory", cwd=tmp_path, env=shell)
