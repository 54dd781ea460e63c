"""A bucket with one space and mounts of it that search, without a kernel; threads work, so time is real."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from livememfs.cache.replica import Replica
from livememfs.recall.embed.base import Embedder
from livememfs.recall.index.engine import Engine
from livememfs.recall.index.local import Index
from livememfs.recall.service import Patience, Recall, SearchAnswer
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.prehook import Prehook
from livememfs.recall.turn.told import ToldSessions
from livememfs.records import keys
from livememfs.records.memory import canonical_name as canonical_name_of
from livememfs.records.memory import complete
from livememfs.records.note import Note, canonical_name, uid8
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.embed import PATIENT, FakeEmbedder
from livememfs.testing.store import FaultyStore
from livememfs.text import frontmatter

SPACE = "alpha"
DONE_WITHIN = 20.0


async def no_model() -> None:
    """Searching by words alone."""


class Bucket:
    """A bucket with a space, and mounts of it that search."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.models: list[FakeEmbedder] = []
        self.folder = folder
        self._stored = 0

    @property
    def model(self) -> FakeEmbedder:
        """The one of the last mount; the first mount's before there is any."""
        if not self.models:
            self.models.append(FakeEmbedder())
        return self.models[-1]

    @property
    def embedded(self) -> int:
        """Texts embedded by all mounts."""
        return sum(len(model.embedded) for model in self.models)

    async def write(self, name: str, text: str) -> str:
        """Another host writes a note; its key."""
        note = Note(self.clock.now(), "me", "observation", (), SPACE, text)
        key = keys.live_key(SPACE, canonical_name(note, uid8(SPACE, name)))
        await self.memory.put(key, note.render())
        return key

    async def remember(self, text: str, collection: str = keys.MEMORIES, /, **fields: Any) -> str:
        """Another host stores a memory; its id."""
        data, path = frontmatter.join(fields, text).encode(), f"{SPACE}/{collection}/x"
        memory = complete(data, path=path, written_name="", collection=collection, space=SPACE, now=self.clock.now())
        self._stored += 1
        key = f"{SPACE}/{collection}/{canonical_name_of(memory, f'{self._stored:08x}')}"
        await self.memory.put(key, memory.render())
        return key.removesuffix(".md").partition(keys.UNTIL)[0]

    @asynccontextmanager
    async def mount(
        self,
        open_model: Callable[[], Awaitable[Embedder | None]] | None = None,
        *,
        folder: Path | None = None,
        share: bool = False,
        patience: Patience = PATIENT,
        open_engine: Callable[[], Engine] | None = None,
        **options: Any,
    ) -> AsyncIterator[Mount]:
        """A mount whose index is in `folder`, or else in the bucket's own; `options` are those of `Recall`."""
        replica = Replica(self.store)

        async def own() -> Embedder:
            self.models.append(FakeEmbedder())
            return self.models[-1]

        name, folder = self.model.name, folder or self.folder
        opening = open_engine or partial(Index, folder, name)
        recall = Recall(replica, self.clock, opening, open_model or own, share=share, patience=patience, **options)
        replica.changes.subscribe(recall.heard)
        with trio.fail_after(DONE_WITHIN):
            async with trio.open_nursery() as nursery:
                await nursery.start(replica.run)
                await nursery.start(recall.run)
                yield Mount(replica, recall, self.clock)
                nursery.cancel_scope.cancel()
        replica.close()


class Mount:
    """One mount's view, and its search."""

    def __init__(self, replica: Replica, recall: Recall, clock: ManualClock) -> None:
        self.replica, self.recall, self.clock = replica, recall, clock

    async def indexed(self) -> None:
        """Wait until the index has everything."""
        await self.recall.prepare((SPACE,), DONE_WITHIN)

    @asynccontextmanager
    async def prehook(self, settings: PrehookSettings | None = None, **options: Any) -> AsyncIterator[Prehook]:
        """What it tells before an answer; sessions are kept in the bucket."""
        told = ToldSessions(self.replica)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(told.run)
            yield Prehook(self.recall, self.clock, told, settings, **options)
            await told.flush()
            nursery.cancel_scope.cancel()

    async def ask(self, question: str) -> SearchAnswer:
        """The answer about the one space."""
        return await self.recall.ask(question, (SPACE,))

    async def texts(self, question: str) -> list[str]:
        """What it found, best first."""
        return [hit.record.text for hit in (await self.ask(question)).found.hits]


@asynccontextmanager
async def prehook(bucket: Bucket, settings: PrehookSettings | None = None, **options: Any) -> AsyncIterator[Prehook]:
    """That of a mount which has indexed everything."""
    async with bucket.mount() as mount, mount.prehook(settings, **options) as made:
        await mount.indexed()
        yield made
