"""Ordinary files against a model: whatever is done in whatever order, the tree holds what a dictionary would hold.

The model has inodes, so descriptors stay open over renames and removals. At the end a host that has seen nothing reads
the bucket, and no conflict copy may have come of the work of a single host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio
from hosts import APPEND, EDIT, Host, World, close
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from livememfs import errors
from livememfs.tree.node import NOBODY, AttrChange, Directory, Handle

TOP = "alpha/top"
LISTED_ANEW = 2.0

# Short paths more often than long ones, or most operations would end at a directory that is not there.
PATHS = st.one_of(
    st.sampled_from("ab").map(lambda part: f"{TOP}/{part}"),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/".join([TOP, *parts])),
)
DATA = st.binary(max_size=6)
OFFSETS = st.integers(0, 8)
SLOTS = st.integers(0, 1)

OPERATIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, DATA),
    st.tuples(st.just("append"), PATHS, DATA),
    st.tuples(st.just("patch"), PATHS, OFFSETS, DATA),
    st.tuples(st.just("truncate"), PATHS, OFFSETS),
    st.tuples(st.just("mkdir"), PATHS),
    st.tuples(st.just("mkdir"), PATHS),
    st.tuples(st.just("rmdir"), PATHS),
    st.tuples(st.just("unlink"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("open"), SLOTS, PATHS),
    st.tuples(st.just("put"), SLOTS, OFFSETS, DATA),
    st.tuples(st.just("close"), SLOTS),
    st.tuples(st.just("later")),
)

Refusals = set[type[errors.LiveMemError]]


class Inode:
    """The bytes of one file."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, offset: int, data: bytes) -> None:
        self.resize(max(len(self.data), offset + len(data)))
        self.data[offset : offset + len(data)] = data

    def resize(self, size: int) -> None:
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))


class Model:
    """Paths to inodes; None is a directory. Each method returns why it refuses; an empty set when it was done."""

    def __init__(self) -> None:
        self.paths: dict[str, Inode | None] = {TOP: None}

    def above(self, path: str) -> Refusals:
        """Why the directory of `path` cannot be entered."""
        parts = path.split("/")
        for depth in range(2, len(parts)):
            parent = "/".join(parts[:depth])
            if parent not in self.paths:
                return {errors.NotFound}
            if self.paths[parent] is not None:
                return {errors.NotADirectory}
        return set()

    def below(self, path: str) -> list[str]:
        return [other for other in self.paths if other.startswith(f"{path}/")]

    def file(self, path: str, *, create: bool) -> tuple[Refusals, Inode]:
        refusals = self.above(path)
        if refusals:
            return refusals, Inode()
        if path not in self.paths:
            if not create:
                return {errors.NotFound}, Inode()
            self.paths[path] = Inode()
        inode = self.paths[path]
        return ({errors.IsADirectory}, Inode()) if inode is None else (set(), inode)

    def mkdir(self, path: str) -> Refusals:
        refusals = self.above(path) or ({errors.AlreadyExists} if path in self.paths else set())
        if not refusals:
            self.paths[path] = None
        return refusals

    def rmdir(self, path: str) -> Refusals:
        refusals = self.above(path)
        if not refusals and path not in self.paths:
            refusals = {errors.NotFound}
        elif not refusals and self.paths[path] is not None:
            refusals = {errors.NotADirectory}
        elif not refusals and self.below(path):
            refusals = {errors.NotEmpty}
        if not refusals:
            del self.paths[path]
        return refusals

    def unlink(self, path: str) -> Refusals:
        refusals, _ = self.file(path, create=False)
        if not refusals:
            del self.paths[path]
        return refusals

    def rename(self, source: str, target: str) -> Refusals:
        refusals = self.above(source) | self.above(target)
        if source not in self.paths and not self.above(source):
            refusals |= {errors.NotFound}
        if source in self.paths and self.paths[source] is None and target.startswith(f"{source}/"):
            refusals |= {errors.InvalidName}
        if source in self.paths and target in self.paths and source != target:
            refusals |= self._replacing(source, target)
        if refusals or source == target:
            return refusals
        self.paths.pop(target, None)
        for path in [source, *self.below(source)]:
            self.paths[target + path.removeprefix(source)] = self.paths.pop(path)
        return set()

    def _replacing(self, source: str, target: str) -> Refusals:
        is_directory, onto_directory = self.paths[source] is None, self.paths[target] is None
        if is_directory and not onto_directory:
            return {errors.NotADirectory}
        if onto_directory and not is_directory:
            return {errors.IsADirectory}
        return {errors.NotEmpty} if onto_directory and self.below(target) else set()


class Machine:
    """The model and a host, driven side by side.

    An operation `x` is `_x` of this class or `x` of the host. `_model_x` of this class, or `x` of the model,
    says why it is refused; with neither it is done.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.host = world.here
        self.host.prompt = False
        self.model = Model()
        self.open: dict[int, tuple[Inode, Handle]] = {}

    async def step(self, name: str, *args: Any) -> None:
        """One operation on both; they agree on whether and why it is refused."""
        raised: type[errors.LiveMemError] | None = None
        expect = getattr(self, f"_model_{name}", None) or getattr(self.model, name, None)
        refusals = expect(*args) if expect is not None else set()
        try:
            await (getattr(self, f"_{name}", None) or getattr(self.host, name))(*args)
        except errors.LiveMemError as error:
            raised = type(error)
        assert (raised in refusals) if refusals else raised is None, (name, args, raised, refusals)

    def _model_write(self, path: str, data: bytes) -> Refusals:
        refusals, inode = self.model.file(path, create=True)
        inode.data[:] = data
        return refusals

    def _model_append(self, path: str, data: bytes) -> Refusals:
        refusals, inode = self.model.file(path, create=True)
        inode.data.extend(data)
        return refusals

    async def _append(self, path: str, data: bytes) -> None:
        await self.host.write(path, data, APPEND)

    def _model_patch(self, path: str, offset: int, data: bytes) -> Refusals:
        refusals, inode = self.model.file(path, create=True)
        inode.put(offset, data)
        return refusals

    async def _patch(self, path: str, offset: int, data: bytes) -> None:
        handle = await self.host.open(path, EDIT)
        await handle.write(offset, data)
        await close(handle)

    def _model_truncate(self, path: str, size: int) -> Refusals:
        refusals, inode = self.model.file(path, create=False)
        inode.resize(size)
        return refusals

    async def _truncate(self, path: str, size: int) -> None:
        node = await self.host.node(path)
        if isinstance(node, Directory):
            raise errors.IsADirectory(path=path)
        await node.change(AttrChange(size=size), NOBODY)

    def _model_open(self, slot: int, path: str) -> Refusals:
        refusals, self.opened = self.model.file(path, create=True)
        return refusals

    async def _open(self, slot: int, path: str) -> None:
        await self._close(slot)
        self.open[slot] = (self.opened, await self.host.open(path, EDIT))

    async def _put(self, slot: int, offset: int, data: bytes) -> None:
        if slot in self.open:
            inode, handle = self.open[slot]
            inode.put(offset, data)
            await handle.write(offset, data)

    async def _close(self, slot: int) -> None:
        if slot in self.open:
            await close(self.open.pop(slot)[1])

    async def _later(self) -> None:
        self.world.clock.advance(LISTED_ANEW)
        await trio.sleep(LISTED_ANEW)

    # --- comparing ------------------------------------------------------------------------------------------------

    async def compare(self, host: Host) -> None:
        """Every path, its kind, its bytes and its size are those of the model."""
        shown: dict[str, bytes | None] = {}
        await self._collect(host, TOP, shown)
        wanted = {path: None if inode is None else bytes(inode.data) for path, inode in self.model.paths.items()}
        assert shown == wanted
        for inode, handle in self.open.values():
            assert await handle.read(0, 1_000) == bytes(inode.data)

    async def _collect(self, host: Host, path: str, shown: dict[str, bytes | None]) -> None:
        shown[path] = None
        for name, node in await (await host.folder(path)).children():
            below = f"{path}/{name}"
            if isinstance(node, Directory):
                await self._collect(host, below, shown)
            else:
                data = shown[below] = await host.read(below)
                assert (await host.attrs(below)).size == len(data)

    async def finish(self) -> None:
        """Close everything and compare with what a newcomer sees."""
        for slot in list(self.open):
            await self._close(slot)
        assert self.host.root.unsaved_files() == []
        await self.compare(self.host)
        await self.world.uploaded()
        await self.compare(self.world.host("newcomer"))
        assert not any("conflict" in key for key in await self.world.bucket())


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(operations=st.lists(OPERATIONS, min_size=4, max_size=30), remembers=st.booleans())
def test_the_tree_holds_what_a_dictionary_would_hold(
    open_world: Callable[[], AbstractAsyncContextManager[World]], operations: list[tuple[Any, ...]], remembers: bool
) -> None:
    """`remembers`: whether the kernel goes on holding each node it has met, or forgets them all at once."""

    async def main() -> None:
        async with open_world() as world:
            machine = Machine(world)
            if remembers:
                world.here.caches = []
            await world.here.mkdir(TOP)
            for operation in operations:
                await machine.step(*operation)
            await machine.compare(world.here)
            await machine.finish()

    trio.run(main, clock=MockClock(autojump_threshold=0))
