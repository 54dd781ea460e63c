"""Objects many at a time, objects that must be new, and objects as text.

Owns the manners the other pipelines share. Refuses to know what the objects mean. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

import trio

from livememfs.cache.replica import Replica
from livememfs.errors import ConditionsUnsupported, LiveMemError, NotText, ObjectMissing, PreconditionFailed
from livememfs.store.base import IfAbsent, ObjectInfo

T = TypeVar("T")

AT_ONCE = 8


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int = AT_ONCE) -> None:
    """`await work(item)` for all items, `at_once` of them side by side, started in their order.

    The first LiveMemError stops the rest and is raised as itself, not inside an exception group.
    """
    waiting = iter(items)
    failures: list[LiveMemError] = []

    async def worker() -> None:
        for item in waiting:
            try:
                await work(item)
            except LiveMemError as error:
                failures.append(error)
                nursery.cancel_scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(worker)
    if failures:
        raise failures[0]


async def put_new(replica: Replica, key: str, data: bytes, *, meta: Mapping[str, str] | None = None) -> ObjectInfo:
    """Write an object that must not exist yet. Raises PreconditionFailed when it does.

    A store without conditions is asked first and written to after: two hosts in the same instant could then both
    believe they were first, which `status.json` tells of such a store.
    """
    try:
        return await replica.put(key, data, meta=meta, condition=IfAbsent())
    except ConditionsUnsupported:
        pass
    try:
        await replica.stat(key, fresh=True)
    except ObjectMissing:
        return await replica.put(key, data, meta=meta)
    raise PreconditionFailed(key=key)


async def content(replica: Replica, item: ObjectInfo) -> bytes | None:
    """The bytes of a listed version, or of the newest when that is gone, or None when the object is gone."""
    try:
        return await replica.read_version(item)
    except (PreconditionFailed, ObjectMissing):
        pass
    try:
        return (await replica.read(item.key, fresh=True)).data
    except ObjectMissing:
        return None


def decode_text(data: bytes, path: str) -> str:
    """UTF-8 bytes as text. Raises NotText; `path` is for the message."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(path=path, detail=f"byte 0x{data[error.start]:02x} at offset {error.start}") from error
