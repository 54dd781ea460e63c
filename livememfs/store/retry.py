"""A store that tries again: the one place where waiting and repeating is decided.

Owns back-off and the question what became of a write whose answer never came. Refuses to repeat anything that was
answered clearly. Called from the trio thread; waits on trio's clock.

Throttled means the store turned the request away. Unreachable and ConflictRetry after a write leave it open whether it
happened. An unconditional write is then simply repeated. A conditional one is settled by reading back: a put carries an
id of its own in the metadata (`livememfs-op`), so finding the id means that it happened, and finding something the
condition excludes means that somebody else was first. A caller who put an id there itself, to know the write again
after a crash, has even the first refusal settled that way.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

import structlog
import trio

from livememfs.errors import ConflictRetry, ObjectMissing, PreconditionFailed, StoreError, Throttled, Unreachable
from livememfs.records.metadata import META_OP
from livememfs.store.base import (
    MAX_PAGE,
    Condition,
    IfAbsent,
    IfMatch,
    ObjectInfo,
    Page,
    Store,
    StoredObject,
    StoreStatistics,
    check_condition,
)
from livememfs.store.content import Content

T = TypeVar("T")

_log = structlog.get_logger("livememfs.store")
_PASSING = (Throttled, Unreachable, ConflictRetry)
_OPEN = (Unreachable, ConflictRetry)


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How long to insist.

    The n-th wait is a random time up to `first_delay * 2**n`, at most `max_delay` seconds, and at least what the store
    asked for (Retry-After, capped the same way). After `attempts` requests, or when the next wait would end later than
    `deadline` seconds after the start, the last error is raised.
    """

    first_delay: float = 0.2
    max_delay: float = 10.0
    attempts: int = 6
    deadline: float = 60.0
    random: random.Random = field(default_factory=random.Random, repr=False)

    def delay(self, failures: int, error: StoreError) -> float:
        """Seconds to wait after this many failures (1 or more)."""
        ceiling = min(self.max_delay, self.first_delay * 2.0 ** (failures - 1))
        asked_for = error.values.get("retry_after")
        at_least = min(float(asked_for), self.max_delay) if isinstance(asked_for, int | float) else 0.0
        return max(self.random.uniform(0.0, ceiling), at_least)


@dataclass(frozen=True, slots=True)
class RetryStatistics:
    """How often a request was repeated after a wait (`retries`), a write whose answer was lost was found to have
    happened (`settled`), and a passing failure was raised since it did not pass in time (`given_up`).
    """

    retries: int
    settled: int
    given_up: int


class _Insist:
    """The waits between the attempts at one request."""

    def __init__(self, policy: RetryPolicy, label: str, verb: str, key: str) -> None:
        self._policy = policy
        self._about = {"store": label, "verb": verb, "key": key}
        self._started = trio.current_time()
        self.failures = 0

    async def wait_after(self, error: StoreError) -> bool:
        """Wait for the next attempt, or say False: there is none."""
        self.failures += 1
        delay = self._policy.delay(self.failures, error)
        late = trio.current_time() + delay > self._started + self._policy.deadline
        if late or self.failures >= self._policy.attempts:
            _log.info("store_gave_up", failures=self.failures, error=str(error), **self._about)
            return False
        _log.info("store_tries_again", failures=self.failures, delay_s=round(delay, 2), error=str(error), **self._about)
        await trio.sleep(delay)
        return True


class RetryingStore:
    """Any Store, patient. An error that leaves it is final for now: nothing above needs to repeat at once."""

    def __init__(self, store: Store, policy: RetryPolicy | None = None) -> None:
        self.inner = store
        self.policy = policy or RetryPolicy()
        self._retries = self._settled = self._given_up = 0

    @property
    def label(self) -> str:
        """The wrapped store's label."""
        return self.inner.label

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""
        return await self._repeat("get", key, lambda: self.inner.get(key, if_match=if_match))

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """See Store.get_part."""
        return await self._repeat("get", key, lambda: self.inner.get_part(key, start, size, if_match=if_match))

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """See Store.get_many. There is no second attempt: whoever lacks one asks for it by itself."""
        return await self.inner.get_many(keys, at_once=at_once)

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        return await self._repeat("head", key, lambda: self.inner.head(key))

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put. A conditional put adds `livememfs-op` to the metadata unless it is there."""
        if condition is None:
            return await self._repeat("put", key, lambda: self.inner.put(key, data, meta=meta))
        signed = _signed(meta)
        return await self._settled_write(
            "put",
            key,
            lambda: self.inner.put(key, data, meta=signed, condition=condition),
            lambda: self._find_ours(key, condition, _carries(signed[META_OP])),
            known_id=META_OP in (meta or {}),
            once=_once(condition),
        )

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete. After a lost answer, an object that is gone counts as deleted by us."""
        if condition is None:
            await self._repeat("delete", key, lambda: self.inner.delete(key))
            return

        async def attempt() -> bool:
            await self.inner.delete(key, condition=condition)
            return True

        async def settle() -> bool | None:
            try:
                check_condition(condition, key=key, current=(await self.inner.head(key)).etag)
            except ObjectMissing:
                return True
            return None

        await self._settled_write("delete", key, attempt, settle)

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """See Store.copy. A conditional copy that keeps the metadata is known again by the content's etag."""
        if condition is None:
            return await self._repeat("copy", target, lambda: self.inner.copy(source, target, meta=meta, known=known))
        signed = None if meta is None else _signed(meta)
        # Not `known`: by an outdated etag, our own copy would pass for another's.
        is_ours = _has_etag((await self.head(source)).etag) if signed is None else _carries(signed[META_OP])
        return await self._settled_write(
            "copy",
            target,
            lambda: self.inner.copy(source, target, meta=signed, condition=condition, known=known),
            lambda: self._find_ours(target, condition, is_ours),
            once=_once(condition),
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
        return await self._repeat(
            "list",
            prefix,
            lambda: self.inner.list_page(
                prefix, delimiter=delimiter, start_after=start_after, token=token, limit=limit
            ),
        )

    async def aclose(self) -> None:
        """Close the wrapped store."""
        await self.inner.aclose()

    def statistics(self) -> StoreStatistics:
        """The wrapped store's statistics: what was really sent."""
        return self.inner.statistics()

    def retry_statistics(self) -> RetryStatistics:
        """How often patience was needed."""
        return RetryStatistics(self._retries, self._settled, self._given_up)

    async def _repeat(self, verb: str, key: str, call: Callable[[], Awaitable[T]]) -> T:
        """For what may happen twice."""
        insist = _Insist(self.policy, self.label, verb, key)
        while True:
            try:
                return await call()
            except _PASSING as error:
                if not await insist.wait_after(error):
                    self._given_up += 1
                    raise
                self._retries += 1

    async def _settled_write(
        self,
        verb: str,
        key: str,
        call: Callable[[], Awaitable[T]],
        settle: Callable[[], Awaitable[T | None]],
        *,
        known_id: bool = False,
        once: bool = False,
    ) -> T:
        """For what must happen once.

        `settle` finds out by reading whether the write happened: its result, None when it may be tried again, or the
        final error. It is asked before any repetition once an outcome is open. With `once` that is where it ends: an
        object that is not there may have been there.
        """
        insist = _Insist(self.policy, self.label, verb, key)
        is_open = False
        while True:
            try:
                if is_open and (found := await settle()) is not None:
                    self._settled += 1
                    return found
                return await self._attempt(call, settle, in_doubt=is_open or known_id)
            except _PASSING as error:
                is_open = is_open or isinstance(error, _OPEN)
                if once and is_open:
                    found = await settle()
                    if found is None:
                        raise
                    self._settled += 1
                    return found
                if not await insist.wait_after(error):
                    self._given_up += 1
                    raise
                self._retries += 1

    async def _attempt(
        self, call: Callable[[], Awaitable[T]], settle: Callable[[], Awaitable[T | None]], *, in_doubt: bool
    ) -> T:
        """One attempt. `in_doubt`: a refusal may be the echo of our own earlier write, which came in late."""
        try:
            return await call()
        except (PreconditionFailed, ObjectMissing):
            found = await settle() if in_doubt else None
            if found is None:
                raise
            self._settled += 1
            return found

    async def _find_ours(
        self, key: str, condition: Condition, is_ours: Callable[[ObjectInfo], bool]
    ) -> ObjectInfo | None:
        """The object if it is what we wrote, None while the condition still holds. Raises PreconditionFailed."""
        try:
            info = await self.inner.head(key)
        except ObjectMissing:
            if isinstance(condition, IfAbsent):
                return None
            raise PreconditionFailed(key=key) from None
        if is_ours(info):
            return info
        check_condition(condition, key=key, current=info.etag)
        return None


def _signed(meta: Mapping[str, str] | None) -> dict[str, str]:
    """The metadata with an id of this write, the caller's own if there is one."""
    return {META_OP: uuid4().hex, **(meta or {})}


def _carries(op_id: str) -> Callable[[ObjectInfo], bool]:
    return lambda info: (info.meta or {}).get(META_OP) == op_id


def _once(condition: Condition) -> bool:
    return isinstance(condition, IfAbsent) and condition.once


def _has_etag(etag: str) -> Callable[[ObjectInfo], bool]:
    return lambda info: info.etag == etag
