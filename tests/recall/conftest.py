"""The database server that tests of the shared index use, one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from postgres_server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running server. A test that stops it starts it again."""
    started = Server()
    yield started
    started.close()


_numbers = count()


@pytest.fixture(scope="session")
def bucket() -> Callable[[], str]:
    """Makes names of buckets that nobody has used."""
    return lambda: f"s3://bucket-{next(_numbers)} at http://localhost"
