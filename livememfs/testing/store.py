"""A store that fails the way real ones do, on demand.

Owns faults and a log of the requests; every answer comes from the wrapped store. Refuses to fail by chance: each fault
is scripted, so a test that failed once fails again. Called from the trio thread, like any store. Delays use trio's
clock, so `autojump_clock` makes them free.

    faulty = FaultyStore(MemoryStore())
    faulty.script("put", Fault(after=Unreachable("reset")))    # the next put happens, its reply is lost
    faulty.latency("*", 0.2)                                   # every request takes 200 ms
    faulty.blackhole = True                                    # and now nothing is ever answered
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import trio

from livememfs.store.base import (
    MAX_PAGE,
    Condition,
    IfMatch,
    ObjectInfo,
    Page,
    Store,
    StoredObject,
    StoreStatistics,
    get_each,
)
from livememfs.store.content import Content

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request.

    `delay` seconds pass first. `before` is raised without anything having happened. `after` is raised once the request
    was carried out: a lost reply. A request that the wrapped store refused keeps its own error, since there was no
    effect whose reply could be lost. `late` seconds pass between the effect and the reply.
    """

    before: Exception | None = None
    after: Exception | None = None
    delay: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """One request as it came in.

    `verb` is one of get, head, put, delete, copy, list; `key` is the target of a copy and the prefix of a list.
    """

    verb: str
    key: str


Plan = Callable[[StoreRequest, int], Fault | None]
"""Decides on each request, given how many of its verb came before it."""


class FaultyStore:
    """Any store, made unreliable.

    `blackhole`: requests from now on never answer until cancelled, or until the switch is turned back. `fail_all`: the
    error that every request raises while it is set. `plan`: consulted when no script is left for the verb. `requests`:
    what was asked, in order.
    """

    def __init__(self, store: Store, *, plan: Plan | None = None) -> None:
        self.inner = store
        self.plan = plan
        self.fail_all: Exception | None = None
        self.requests: list[StoreRequest] = []
        self.counts: Counter[str] = Counter()
        self._scripts: defaultdict[str, deque[Fault | None]] = defaultdict(deque)
        self._latency: dict[str, float] = {}
        self._light = trio.Event()
        self._light.set()

    @property
    def label(self) -> str:
        """The wrapped store's label."""
        return self.inner.label

    @property
    def blackhole(self) -> bool:
        """Whether requests vanish."""
        return not self._light.is_set()

    @blackhole.setter
    def blackhole(self, on: bool) -> None:
        if on == self.blackhole:
            return
        if on:
            self._light = trio.Event()
        else:
            self._light.set()

    def script(self, verb: str, *faults: Fault | None) -> None:
        """Line up faults for the coming requests of a verb, one each; None lets one through."""
        self._scripts[verb].extend(faults)

    def latency(self, verb: str, seconds: float) -> None:
        """Let every request of a verb ("*": of any) take this long from now on."""
        self._latency[verb] = seconds

    def forget(self) -> None:
        """Drop the log and the counts; faults stay."""
        self.requests.clear()
        self.counts.clear()

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""
        return await self._through("get", key, lambda: self.inner.get(key, if_match=if_match))

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """See Store.get_part."""
        return await self._through("get", key, lambda: self.inner.get_part(key, start, size, if_match=if_match))

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """See Store.get_many. Each of them is a request that may fail."""
        return await get_each(self, keys)

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        return await self._through("head", key, lambda: self.inner.head(key))

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put."""
        return await self._through("put", key, lambda: self.inner.put(key, data, meta=meta, condition=condition))

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete."""
        await self._through("delete", key, lambda: self.inner.delete(key, condition=condition))

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """See Store.copy."""
        return await self._through(
            "copy", target, lambda: self.inner.copy(source, target, meta=meta, condition=condition, known=known)
        )

    async def list_page(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Page:
        """See Store.list_page."""
        return await self._through(
            "list",
            prefix,
            lambda: self.inner.list_page(
                prefix, delimiter=delimiter, start_after=start_after, token=token, limit=limit
            ),
        )

    async def aclose(self) -> None:
        """Close the wrapped store; this never fails on purpose."""
        await self.inner.aclose()

    def statistics(self) -> StoreStatistics:
        """The wrapped store's statistics: what got through."""
        return self.inner.statistics()

    async def _through(self, verb: str, key: str, call: Callable[[], Awaitable[T]]) -> T:
        request = StoreRequest(verb, key)
        script = self._scripts[verb]
        planned = script.popleft() if script else self.plan and self.plan(request, self.counts[verb])
        fault = planned or Fault()
        self.requests.append(request)
        self.counts[verb] += 1
        await trio.sleep(fault.delay + self._latency.get(verb, self._latency.get("*", 0.0)))
        await self._light.wait()
        if self.fail_all is not None:
            raise _fresh(self.fail_all)
        if fault.before is not None:
            raise _fresh(fault.before)
        answer = await call()
        if fault.late:
            await trio.sleep(fault.late)
        if fault.after is not None:
            raise _fresh(fault.after)
        return answer


def _fresh(error: Exception) -> Exception:
    """The same error without what an earlier raise left on it, or a switch kept on would grow a chain."""
    error.__context__ = None
    return error.with_traceback(None)
