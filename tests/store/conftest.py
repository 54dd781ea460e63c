"""Stores to test: each kind as it is, and each behind transient faults and a patient wrapper."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3
import moto_s3
import pytest
from hierarchical import HierarchicalStore
from http_double import S3Double

from livememfs.errors import Throttled, Unreachable
from livememfs.store.base import Store
from livememfs.store.directory import DirectoryStore
from livememfs.store.folder.disk import Disk
from livememfs.store.markers import MarkerStore
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.store.s3 import S3Options, S3Store
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SECRET = "not-a-real-secret"


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    server = moto_s3.server(moto_s3.application())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def s3_admin(moto_url: str) -> Iterator[S3Client]:
    """A client of our own, to create buckets and to see what a store left in them."""
    session = boto3.session.Session(aws_access_key_id="test", aws_secret_access_key=SECRET, region_name="us-east-1")
    client = session.client("s3", endpoint_url=moto_url)
    yield client
    client.close()


@pytest.fixture
def s3_options(moto_url: str, s3_admin: S3Client) -> Callable[..., S3Options]:
    """Options for a fresh bucket; keyword arguments override."""
    bucket = f"bucket-{uuid4().hex[:12]}"
    s3_admin.create_bucket(Bucket=bucket)

    def options(**changes: object) -> S3Options:
        plain = {
            "bucket": bucket,
            "endpoint_url": moto_url,
            "access_key_id": "test",
            "secret_access_key": SECRET,
            "connect_timeout": 2.0,
            "read_timeout": 5.0,
        }
        return S3Options(**(plain | changes))

    return options


def shaky(asked: StoreRequest, count: int) -> Fault | None:
    """Of every three requests of a verb the first is turned away and the second loses its answer."""
    match count % 3:
        case 0:
            return Fault(before=Throttled(key=asked.key))
        case 1:
            return Fault(after=Unreachable("connection reset", key=asked.key))
    return None


CALM = ["memory", "folder", "s3", "forgetful"]
SHAKY = ["shaky memory", "shaky folder", "shaky s3"]


def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    inner: Store
    if "s3" in request.param:
        inner = S3Store(request.getfixturevalue("s3_options")())
    elif "folder" in request.param:
        inner = DirectoryStore(tmp_path / "root", ManualClock(), disk=Disk(fsync=False))
    elif "forgetful" in request.param:
        inner = MarkerStore(HierarchicalStore(ManualClock(), stays_listed=False))
    else:
        inner = MemoryStore(ManualClock())
    if "shaky" not in request.param:
        return inner
    patience = RetryPolicy(first_delay=0.0001, max_delay=0.001, attempts=20)
    return RetryingStore(FaultyStore(inner, plan=shaky), patience)


@pytest.fixture(params=CALM + SHAKY)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Every kind of store, as it is and behind faults."""
    store = open_store(request, tmp_path)
    yield store
    await store.aclose()


@pytest.fixture(params=CALM)
async def calm_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Every kind of store as it is: for what has many cases and nothing to do with faults."""
    store = open_store(request, tmp_path)
    yield store
    await store.aclose()


@pytest.fixture
def s3_double() -> Iterator[S3Double]:
    """A server that answers as it is told and remembers what it was sent."""
    with S3Double() as server:
        yield server
