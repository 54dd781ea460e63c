"""The fixture that more than one file of this folder has."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from schedule_world import Town


@pytest.fixture
async def town(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    """A town for a test that takes `autojump_clock`, which pytest-trio finds only among the parameters of the test.

    Days pass here, and nothing is kept on a disk: twice a second would be most of what such a test does.
    """
    monkeypatch.setattr("livememfs.cache.replica.PERSIST_SECONDS", 3_600.0)
    async with trio.open_nursery() as nursery:
        made = Town(nursery)
        await made.world.seed()
        yield made
        nursery.cancel_scope.cancel()
