"""The hosts of `hosts`, one bucket and one space for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import trio
from hosts import SPACE, Host, World

from livememfs.spaces import making as spaces


@asynccontextmanager
async def _open_world() -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        world = World(nursery)
        await spaces.create(world.here.replica, world.clock, SPACE)
        yield world
        nursery.cancel_scope.cancel()


@pytest.fixture(scope="session")
def open_world() -> Callable[[], AbstractAsyncContextManager[World]]:
    """`async with open_world() as world`, for tests that run trio themselves."""
    return _open_world


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """A bucket with the space `alpha`. A test that waits for anything also asks for `autojump_clock`."""
    made = World(nursery)
    await spaces.create(made.here.replica, made.clock, SPACE)
    return made


@pytest.fixture
def here(world: World) -> Host:
    return world.here


@pytest.fixture
def there(world: World) -> Host:
    return world.there
