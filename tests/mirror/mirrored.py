"""What tests of mirrors share: machines with a directory and a local state each, in front of one bucket in memory.

Nothing waits: a file counts at once, and what another host did is found when somebody compares.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import trio
from contexts import PlainHooks
from hosts import SPACE, Host

from livememfs.cache.database import Database
from livememfs.concurrency import the_one
from livememfs.mirror.mirror import Mirror
from livememfs.mirror.place import OURS
from livememfs.mirror.running import open_mirror
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.tree.root import Root

NEVER = 1 << 60
COMPUTED = ("README.md", "context.md", "_meta.json")
FAST = {
    "livememfs.mirror.agenda.QUIET_SECONDS": 0.0,
    "livememfs.mirror.agenda.STEP_SECONDS": 0.0,
    "livememfs.mirror.mirror.PAGE_SECONDS": 0.0,
    "livememfs.mirror.settling.LATER_SECONDS": 0.05,
}


class Crash(BaseException):  # no error: the end
    """The process is no more."""


class Moments:
    """Counts the moments at which a process can die: around each commit, and before each change on the disk in `top`.
    It dies at number `at`, and at every later one: the dead do not tidy up.
    """

    def __init__(self, top: Path, at: int = NEVER) -> None:
        self.top, self.at = str(top), at
        self.count, self.where, self.running = 0, "", False

    def comes(self, what: str) -> None:
        if not self.running:
            return
        self.count += 1
        if self.count == self.at:
            self.where = what
        if self.count >= self.at:
            raise Crash(what)


_dying: list[Moments] = []
_EFFECTS = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate")


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _dying or event not in _EFFECTS:
        return
    path = os.fspath(arguments[0])
    if (path if isinstance(path, str) else os.fsdecode(path)).startswith(_dying[-1].top):
        _dying[-1].comes(f"{event} {arguments[:2]}")


sys.addaudithook(_hook)


@contextmanager
def dying(moments: Moments) -> Iterator[None]:
    """Within, the process dies at its moment."""
    atomic = Database.atomic

    @contextmanager
    def counted(self: Database) -> Iterator[Any]:
        outermost = self.folder is not None and not self._inside()
        if outermost:
            moments.comes("before a commit")
        with atomic(self) as db:
            yield db
        if outermost:
            moments.comes("after a commit")

    _dying.append(moments)
    try:
        with patch.object(Database, "atomic", counted):
            yield
    finally:
        _dying.pop()


class Machine:
    """A machine with the directory `top`. `space` empty: it mirrors the whole bucket."""

    def __init__(self, name: str, folder: Path, memory: MemoryStore, clock: ManualClock, space: str = SPACE) -> None:
        self.name, self.memory, self.clock, self.space = name, memory, clock, space
        self.top, self.cache = folder / name / "dir", folder / name / "cache"
        self.top.mkdir(parents=True)

    @asynccontextmanager
    async def up(self, *, insists: bool = False, plan: Any = None, ttl: float = 0.0) -> AsyncIterator[Running]:
        """A process; at the end of the block it is gone, as after kill -9. Names are believed for `ttl` seconds."""
        host: Host | None = None
        try:
            async with trio.open_nursery() as nursery:
                host = Host(self.name, self.memory, self.clock, nursery, insists=insists, folder=self.cache)
                host.prompt = False
                host.store.plan = plan
                host.context = replace(host.context, hooks=PlainHooks("claude.Stop"))
                host.root = Root(host.context)
                host.replica.names._ttl = ttl
                for moments in _dying:
                    moments.running = True
                async with open_mirror(host.root, self.top, self.space, "the bucket") as mirror:
                    yield Running(self, host, mirror)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise the_one(group) from None
        finally:
            if host is not None:
                host.replica._database.close()

    def files(self) -> dict[str, str]:
        """What a user sees in the directory, but for what is computed."""
        found = {}
        for path in sorted(self.top.rglob("*")):
            name = path.relative_to(self.top).as_posix()
            if name.startswith(OURS) or path.name in COMPUTED:
                continue
            found[name] = f"-> {os.readlink(path)}" if path.is_symlink() else "/" if path.is_dir() else path.read_text()
        return found

    def write(self, path: str, text: str, mode: str = "w") -> None:
        target = self.top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open(mode) as file:
            file.write(text)

    def one(self, pattern: str) -> Path:
        """The one path that fits."""
        (found,) = self.top.glob(pattern)
        return found

    def kept(self) -> dict[str, str]:
        """What was refused, by its path."""
        refused = self.top / OURS / "refused"
        return {
            "/".join(path.relative_to(refused).parts[1:]): path.read_text()
            for path in refused.rglob("*")
            if path.is_file()
        }


class Running:
    """A process that mirrors."""

    def __init__(self, machine: Machine, host: Host, mirror: Mirror) -> None:
        self.machine, self.host, self.mirror = machine, host, mirror

    async def settle(self) -> None:
        """Look at both sides until nothing is left to do, and upload."""
        while True:
            before = self.mirror.statistics()
            await self.mirror.compare()
            await self.mirror.until_idle()
            await self.host.replica.uploaded()
            await self.mirror.until_idle()
            await self.host.replica.persist()
            if self.mirror.statistics() == before:
                return


@contextmanager
def hasty() -> Iterator[None]:
    """Nothing waits."""
    patches = [patch(name, value) for name, value in FAST.items()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


async def new_space(memory: MemoryStore, clock: ManualClock, nursery: trio.Nursery) -> Host:
    """A bucket with the space, and a host that mounts it."""
    host = Host("mount", memory, clock, nursery)
    host.replica.names._ttl = 0.0  # names are asked for each time
    await spaces.create(host.replica, clock, SPACE)
    return host
