"""A bucket in memory, and a folder of another program to import from."""

from __future__ import annotations

import os
from pathlib import Path

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError
from livememfs.importing.importer import Imported, Importer
from livememfs.importing.sessions import Transcripts
from livememfs.importing.sources import SOURCES
from livememfs.observing.capture import Capture
from livememfs.observing.parking import Parking
from livememfs.records.memory import Memory
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore


class House:
    """A bucket with the space `alpha`, and a folder to import from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.store = FaultyStore(MemoryStore(self.clock))
        self.replica = Replica(self.store)

    @classmethod
    async def made(cls, folder: Path) -> House:
        """With its space."""
        house = cls(folder)
        await spaces.create(house.replica, house.clock, "alpha")
        return house

    def restart(self) -> None:
        """The process was killed, and this is another one."""
        self.replica.close()
        self.replica = Replica(self.store)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        os.utime(self.folder / name, (1_770_000_000, 1_770_000_000))

    async def bring(
        self, source: str = "markdown", path: Path | None = None, *, dry_run: bool = False, space: str = "alpha"
    ) -> Imported:
        self.private: list[LiveMemError] = []
        transcripts = Transcripts(Capture(self.replica.inbox, self.clock), Parking(self.replica, "host"))
        importer = Importer(
            self.replica,
            space,
            SOURCES[source],
            transcripts=transcripts,
            dry_run=dry_run,
            on_private=self.private.append,
        )
        return await importer.bring(path or self.folder)

    async def bucket(self, space: str = "alpha") -> dict[str, bytes]:
        """All of a space but what describes it."""
        infos = (await list_all(self.store, f"{space}/")).objects
        read = {info.key.removeprefix(f"{space}/"): (await self.store.get(info.key)).data for info in infos}
        return {name: data for name, data in read.items() if not name.startswith("_") and not name.endswith(".keep")}

    async def memories(self) -> dict[str, Memory]:
        """By their text's first word."""
        return {memory.content.split()[0]: memory for memory in (await self.stored()).values()}

    async def stored(self, space: str = "alpha") -> dict[str, Memory]:
        """The memories by their ids."""
        read = await self.bucket(space)
        names = [name for name in read if name.startswith("memories/2")]
        return {
            name.removeprefix("memories/").removesuffix(".md"): Memory.parse(
                read[name], path=name, collection="memories", name=name.rpartition("/")[2]
            )
            for name in names
        }


def counts(done: Imported) -> tuple[int, ...]:
    """New, changed, known, kept here."""
    return tuple(done.counts.values())
