"""What tests of recall share: a bucket with a space, and the database server of the shared index, one for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from postgres_server import Server
from recall_world import SPACE, Bucket

from livememfs.cache.replica import Replica
from livememfs.spaces.making import create


@pytest.fixture
async def bucket(tmp_path: Path) -> Bucket:
    """A bucket with a space."""
    made = Bucket(tmp_path / "index")
    await create(Replica(made.memory), made.clock, SPACE)
    return made


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server. A test that stops it starts it again."""
    started = Server()
    yield started
    started.close()


_numbers = count()


@pytest.fixture(scope="session")
def bucket_name() -> Callable[[], str]:
    """Makes names of buckets that nobody has used."""
    return lambda: f"s3://bucket-{next(_numbers)} at http://localhost"
