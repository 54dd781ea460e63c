"""Two hosts that mount one bucket in memory: trees without a kernel, with the calls a kernel would make."""

from __future__ import annotations

import random
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
import trio
from contexts import context_of
from trio.testing import wait_all_tasks_blocked

from livememfs.cache.replica import DEFAULT_LISTING_TTL, Replica
from livememfs.errors import IsADirectory, NoSpace, NotADirectory, NotFound, Unreachable
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.runs.queue import RunQueue
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore, RetryPolicy
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, File, Handle, Node, OpenMode
from livememfs.tree.root import Root

SPACE = "alpha"
READ = OpenMode()
WRITE = OpenMode(read=False, write=True)
EDIT = OpenMode(write=True)
APPEND = OpenMode(read=False, write=True, append=True)
REPLACE = OpenMode(read=False, write=True, truncate=True)
LISTED_ANEW = 2 * DEFAULT_LISTING_TTL
CHUNK = 131_072


class Host:
    """One mount. `agents` names the agent behind a pid; `caches` holds the nodes that a kernel would go on holding.

    `prompt`: each call that changes something ends when the bucket has it, so that the next host's call finds it there.
    `folder` is where its cache lies; without one it is in memory.
    """

    def __init__(
        self,
        name: str,
        memory: MemoryStore,
        clock: ManualClock,
        nursery: trio.Nursery,
        *,
        insists: bool = False,
        folder: Path | None = None,
    ) -> None:
        self.store = FaultyStore(memory)
        self.errors = ErrorLog(clock)
        self.replica = Replica(
            RetryingStore(self.store, RetryPolicy(random=random.Random(name))) if insists else self.store,
            folder=folder,
            host=name,
            now_ns=lambda: int(clock.now().timestamp() * 1_000_000) * 1_000,
            on_conflict=lambda key, copy: self.errors.conflict(key, copy, "changed by another host meanwhile"),
        )
        nursery.start_soon(self.replica.run)
        self.consolidations = RunQueue(self.replica, clock, None, nursery=nursery)
        self.agents: dict[int, str] = {}
        self.caches: list[Node] | None = None
        self.prompt = True
        self.context = context_of(
            self.replica,
            clock,
            self.consolidations,
            errors=self.errors,
            agent_of=lambda pid: self.agents.get(pid, "me"),
            host=name,
            owner="me",
        )
        self.root = Root(self.context)

    async def node(self, path: str) -> Node:
        """Look a path up, part by part."""
        node: Node = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Directory):
                raise NotADirectory(path=node.path)
            node = await node.child(part)
            if self.caches is not None:
                self.caches.append(node)
        return node

    async def folder(self, path: str) -> Directory:
        node = await self.node(path)
        if not isinstance(node, Directory):
            raise NotADirectory(path=path)
        return node

    async def above(self, path: str) -> tuple[Directory, str]:
        folder, _, name = path.rpartition("/")
        return await self.folder(folder), name

    async def exists(self, path: str) -> bool:
        try:
            await self.node(path)
        except NotFound:
            return False
        return True

    async def open(self, path: str, mode: OpenMode = READ, *, pid: int = 0) -> Handle:
        """As `open(2)` with O_CREAT when the mode writes: look the name up, make it when it is not there."""
        folder, name = await self.above(path)
        try:
            node = await folder.child(name)
        except NotFound:
            if not mode.write:
                raise
            node = await folder.create(name, 0o644, Caller(pid=pid))
        if self.caches is not None:
            self.caches.append(node)
        if not isinstance(node, File):
            raise IsADirectory(path=path)
        return await node.open(mode, Caller(pid=pid))

    async def begin(self, path: str, data: bytes, mode: OpenMode = WRITE, *, pid: int = 0) -> Handle:
        """Open a file and write to it; it stays open."""
        handle = await self.open(path, mode, pid=pid)
        await handle.write(0, data)
        return handle

    async def write(self, path: str, data: bytes | str, mode: OpenMode = REPLACE, *, pid: int = 0) -> None:
        """`cat > path`, or `>>` with APPEND."""
        handle = await self.open(path, mode, pid=pid)
        try:
            await handle.write(0, data if isinstance(data, bytes) else data.encode())
            await handle.flush()
        finally:
            await handle.release()
        await self.sent()

    async def sent(self) -> None:
        """Wait for the bucket to have everything, unless this host is not `prompt`."""
        if self.prompt:
            await self.replica.uploaded()

    async def read(self, path: str) -> bytes:
        """`cat path`."""
        handle = await self.open(path)
        try:
            return await read_all(handle)
        finally:
            await handle.release()

    async def attrs(self, path: str) -> Attrs:
        return await (await self.node(path)).attrs()

    async def names(self, path: str) -> list[str]:
        return [name for name, _ in await (await self.folder(path)).children()]

    async def mkdir(self, path: str, mode: int = 0o755) -> Directory:
        folder, name = await self.above(path)
        made = await folder.mkdir(name, mode, Caller())
        await self.sent()
        return made

    async def change(self, path: str, **asked: int) -> None:
        """`chmod`, `truncate` or `touch`, by the fields of AttrChange."""
        await (await self.node(path)).change(AttrChange(**asked), Caller())
        await self.sent()

    async def symlink(self, path: str, target: str) -> None:
        folder, name = await self.above(path)
        await folder.symlink(name, target, Caller())
        await self.sent()

    async def unlink(self, path: str) -> None:
        folder, name = await self.above(path)
        await folder.unlink(name)
        await self.sent()

    async def rmdir(self, path: str) -> None:
        folder, name = await self.above(path)
        await folder.rmdir(name)
        await self.sent()

    async def rename(self, source: str, target: str, *, replace: bool = True) -> None:
        folder, name = await self.above(source)
        other, new_name = await self.above(target)
        await folder.rename(name, other, new_name, replace=replace)
        await self.sent()


@contextmanager
def all_is_large(*, part: int = 3) -> Iterator[None]:
    """Each content of more than a byte is one that is too large for memory, and comes in small parts."""
    with ExitStack() as stack:
        for module in ("tree.body", "cache.blobs", "cache.largefile", "cache.uploader"):
            stack.enter_context(patch(f"livememfs.{module}.LARGE", 1))
        for module in ("cache.largefile", "store.content"):
            stack.enter_context(patch(f"livememfs.{module}.PART", part))
        stack.enter_context(patch("livememfs.cache.blobs.INLINE_BYTES", 0))
        yield


@contextmanager
def full_disk(host: Host) -> Iterator[None]:
    """The local disk takes nothing more: the one failure that a close still has."""

    def refuse(*_: object, **__: object) -> None:
        raise NoSpace("the disk is full")

    journal = host.replica.journal
    with ExitStack() as stack:
        for name in ("put", "copy", "delete", "meta", "move"):
            stack.enter_context(patch.object(journal, name, refuse))
        yield


async def without_room(host: Host, attempt: Awaitable[object]) -> None:
    """The attempt fails, because the local disk is full."""
    with full_disk(host):
        await refused(NoSpace, attempt)


async def while_saving(host: Host, handle: Handle, action: Awaitable[object]) -> None:
    """Do something while the close of `handle` waits for the bucket. Needs `autojump_clock`."""
    host.store.latency("put", 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(handle.flush)
        await trio.sleep(0.5)
        await action


async def during(close: Callable[[], Awaitable[None]], work: str, other: Callable[[], Awaitable[None]]) -> None:
    """Begin `other` while `close` waits for the function `work`, which it has a thread do, and see both through."""
    trio_thread, go = threading.get_ident(), threading.Event()
    patched = patch(work)
    function = patched.get_original()[0]

    def late(data: bytes) -> object:
        if threading.get_ident() != trio_thread:
            go.wait(10)
        return function(data)

    with patch(work, late):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(close)
            await wait_all_tasks_blocked()
            nursery.start_soon(other)
            await wait_all_tasks_blocked(0.1)
            go.set()


class World:
    """A bucket, the host `here` that the tests work on, and the host `there`."""

    def __init__(self, nursery: trio.Nursery, folder: Path | None = None) -> None:
        self.clock = ManualClock()
        self.folder = folder
        self.memory = MemoryStore(self.clock)
        self.nursery = nursery
        self.hosts: list[Host] = []
        self.here = self.host("here")
        self.there = self.host("there")

    def host(self, name: str, *, insists: bool = False) -> Host:
        """One more mount of the same bucket; `insists`: behind a store that tries again, as a mount's does."""
        folder = self.folder / name if self.folder is not None else None
        self.hosts.append(Host(name, self.memory, self.clock, self.nursery, insists=insists, folder=folder))
        return self.hosts[-1]

    async def uploaded(self) -> None:
        """Wait until the bucket has what every host has accepted."""
        for host in self.hosts:
            await host.replica.uploaded()

    async def settle(self) -> None:
        """Wait until the bucket has everything, and every host asks it again for what it knows."""
        await self.uploaded()
        await trio.sleep(LISTED_ANEW)

    async def bucket(self, prefix: str = "") -> dict[str, bytes]:
        """Every object below a prefix, by what follows the prefix."""
        await self.uploaded()
        listing = await list_all(self.memory, prefix)
        return {info.key.removeprefix(prefix): (await self.memory.get(info.key)).data for info in listing.objects}

    async def notes(self) -> dict[str, bytes]:
        """The objects in `live/` of the space."""
        objects = await self.bucket(f"{SPACE}/live/")
        return {name: data for name, data in objects.items() if name != ".keep"}

    async def memories(self, folder: str = keys.MEMORIES) -> dict[str, Memory]:
        """The memories of the space that the bucket has in a folder, by their names."""
        objects = {name: data for name, data in (await self.bucket(f"{SPACE}/{folder}/")).items() if "/" not in name}
        return {name: Memory.parse(data, path=name, collection=folder, name=name) for name, data in objects.items()}


async def read_all(handle: Handle) -> bytes:
    """Everything behind a handle, as a reader asks for it."""
    data = b""
    while part := await handle.read(len(data), CHUNK):
        data += part
    return data


async def close(*handles: Handle) -> None:
    """Close files for good, one after the other."""
    for handle in handles:
        await handle.flush()
        await handle.release()


async def refused(
    error: type[Exception] | tuple[type[Exception], ...], *attempts: Awaitable[object], match: str | None = None
) -> None:
    """Each attempt is refused with this error."""
    for attempt in attempts:
        with pytest.raises(error, match=match):
            await attempt


def unreachable() -> Unreachable:
    """A new one each time: an error keeps the frames that it went through, and with them the files, alive."""
    return Unreachable("reset", endpoint="the bucket")
