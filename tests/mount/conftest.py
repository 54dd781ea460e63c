"""Real mounts for the tests. Without a usable /dev/fuse every test here fails: what was not tried is not tested."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import readymade
from cloud import Bucket, Cloud, running
from machine import SPACE, Mount, StartMount, detach, sh


@pytest.fixture(autouse=True)
def _fuse() -> None:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        pytest.fail(f"/dev/fuse cannot be used: {error}")


@pytest.fixture(scope="session", autouse=True)
def _readymade() -> Iterator[None]:
    with readymade.serving():
        yield


@pytest.fixture(scope="session")
def s3() -> Iterator[Cloud]:
    """An S3 server over HTTP, one for all tests."""
    with running() as cloud:
        yield cloud


@pytest.fixture
def bucket(s3: Cloud) -> Bucket:
    """A bucket of its own."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    client = s3.client()
    client.create_bucket(Bucket=name)
    return Bucket(s3, name, client)


@pytest.fixture
def start_mount(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartMount]:
    """`start_mount(env, *options, name="mnt", **how)`: a running mount, stopped and checked at the end of the test."""
    started: list[Mount] = []

    def start(env: dict[str, str], *options: str, name: str = "mnt", **how: Any) -> Mount:
        mount = Mount(tmp_path / name, tmp_path / f"home-{name}", env, *options, **how)
        started.append(mount)
        mount.start()
        return mount

    yield start
    failed = getattr(request.node, "failed", False)
    try:
        for mount in reversed(started):
            if failed:
                print(f"--- log of {mount.path} ---\n{mount.log()}")
                mount.abandon()
            elif mount.process is not None:
                mount.stop()
    finally:
        for mount in started:
            mount.abandon()
            detach(mount.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Let fixtures know how the test went, so that a failed one shows the daemon's log."""
    report = yield
    if report.when == "call":
        item.failed = report.failed  # type: ignore[attr-defined]  # for the fixtures
    return report


@pytest.fixture
def mounted(start_mount: StartMount, bucket: Bucket) -> Mount:
    """A mount of `bucket` with one space, `project`."""
    return _with_space(start_mount(bucket.environment()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that `folder_mounted` uses as its store."""
    return tmp_path / "store"


@pytest.fixture
def folder_mounted(start_mount: StartMount, folder: Path) -> Mount:
    """A mount of a folder with one space, `project`."""
    return _with_space(start_mount({"LIVEMEMFS_STORE": str(folder)}))


@pytest.fixture
def second_mount(start_mount: StartMount, bucket: Bucket) -> StartMount:
    """`second_mount()`: the same bucket mounted by another daemon, as another machine would."""

    def start(env: dict[str, str] | None = None, *options: str, name: str = "other") -> Mount:
        return start_mount({**bucket.environment(), "LIVEMEMFS_HOST": name, **(env or {})}, *options, name=name)

    return start


def _with_space(mount: Mount) -> Mount:
    sh(f"mkdir {SPACE}", cwd=mount.path)
    return mount
