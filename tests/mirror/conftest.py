"""Machines of `mirrored`, two for each test, and a host with a mount of the same bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from hosts import Host
from mirrored import Machine, hasty, new_space

from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock


@pytest.fixture(autouse=True)
def _hasty() -> Iterator[None]:
    with hasty():
        yield


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture
async def mount(memory: MemoryStore, clock: ManualClock, nursery: trio.Nursery) -> Host:
    """A host that mounts the bucket, in which the space exists."""
    return await new_space(memory, clock, nursery)


@pytest.fixture
def one(tmp_path: Path, memory: MemoryStore, clock: ManualClock, mount: Host) -> Machine:
    return Machine("one", tmp_path, memory, clock)


@pytest.fixture
def two(tmp_path: Path, memory: MemoryStore, clock: ManualClock, mount: Host) -> Machine:
    return Machine("two", tmp_path, memory, clock)
