"""The hosts of `hosts`, one bucket and one space for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from hosts import SPACE, Host, World

from livememfs.recall.index.local import Index
from livememfs.recall.service import Recall
from livememfs.recall.turn.prehook import Prehook
from livememfs.recall.turn.told import ToldSessions
from livememfs.spaces import making as spaces
from livememfs.testing.embed import PATIENT, FakeEmbedder
from livememfs.tree.root import Root


@asynccontextmanager
async def _open_world(folder: Path | None = None) -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        world = World(nursery, folder)
        await spaces.create(world.here.replica, world.clock, SPACE)
        yield world
        nursery.cancel_scope.cancel()


@pytest.fixture(scope="session")
def open_world() -> Callable[..., AbstractAsyncContextManager[World]]:
    """`async with open_world() as world`, for tests that run trio themselves."""
    return _open_world


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """A bucket with the space `alpha`. A test that waits for anything also asks for `autojump_clock`."""
    made = World(nursery)
    await spaces.create(made.here.replica, made.clock, SPACE)
    return made


@pytest.fixture
def model() -> FakeEmbedder:
    """The embedding model of `recall`."""
    return FakeEmbedder()


@pytest.fixture
async def recall(world: World, here: Host, model: FakeEmbedder, tmp_path: Path, nursery: trio.Nursery) -> Recall:
    """The search of `here`, which also answers messages. Threads do the work, so its tests live in real time."""

    async def open_model() -> FakeEmbedder:
        return model

    index = tmp_path / "index"
    recall = Recall(here.replica, world.clock, lambda: Index(index, model.name), open_model, patience=PATIENT)
    prehook = Prehook(recall, world.clock, ToldSessions(here.replica))
    here.context = replace(here.context, recall=recall, prehook=prehook)
    here.root = Root(here.context)
    here.replica.changes.subscribe(recall.heard)
    await nursery.start(recall.run)
    return recall


@pytest.fixture
def here(world: World) -> Host:
    return world.here


@pytest.fixture
def there(world: World) -> Host:
    return world.there
