"""What an object store is: the protocol every kind of bucket implements, its records and its conditions.

Owns the contract that `tests/store/test_contract.py` holds all stores to. Refuses I/O of its own and any knowledge of
what a key means. The records may be used from any thread; a store's methods are called from the trio thread.

The contract in short: one object is read and replaced as a whole, a request either happened or did not, a condition
is checked in the same step as the change it guards, and a listing is in the UTF-8 byte order of the keys (for `str`
without surrogates this is the order of Python's own comparison).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from livememfs.errors import InvalidName, LiveMemError, NameTooLong, ObjectMissing, PreconditionFailed
from livememfs.store.content import Content

MAX_KEY_BYTES = 1024
MAX_PAGE = 1000

_META_KEY = re.compile(r"[a-z0-9-]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One version of one object, without its bytes.

    `etag` is unquoted and opaque: it changes with the content and is compared for equality only. `modified_ns` is
    nanoseconds since the epoch, as fine as the store tells it (S3: whole seconds), 0 when it does not. `meta` is None
    where the answer does not carry user metadata (listings), which is not the same as having none.
    """

    key: str
    etag: str
    size: int
    modified_ns: int
    meta: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One version of one object with its bytes; `info.meta` is known."""

    info: ObjectInfo
    data: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing. `next_token` continues it and is None on the last page."""

    objects: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...]
    next_token: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole listing: every object, and every common prefix when a delimiter was given."""

    objects: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IfAbsent:
    """The change happens only while there is no object under the key (`If-None-Match: *`).

    `once`: whoever asks has to know when an answer was lost, before anybody asks again. What was stored may be gone by
    then, and the condition would hold a second time.
    """

    once: bool = False


@dataclass(frozen=True, slots=True)
class IfMatch:
    """The change happens only while the object has this etag (`If-Match`)."""

    etag: str


Condition = IfAbsent | IfMatch


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What a store was asked so far.

    `requests` counts by verb (get, head, put, delete, copy, list); `errors` are failures of the store, so neither a
    missing object nor a condition that did not hold; `bytes_in` were read from the store, `bytes_out` written to it.
    """

    requests: Mapping[str, int]
    errors: int
    bytes_in: int
    bytes_out: int


class Store(Protocol):
    """A bucket. Any method may also raise Denied, BucketMissing, Throttled, Unreachable, ConflictRetry or StoreError.

    A key is 1 to 1,024 bytes of UTF-8 (else InvalidName, NameTooLong). User metadata has names of `[a-z0-9-]+` and any
    text as value; a store that has a limit says so with a StoreError.
    """

    @property
    def label(self) -> str:
        """Which store this is, for people: `s3://bucket at http://host:9000`, `folder /home/x/memory`."""
        ...

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """The object's bytes and metadata, of one version. Raises ObjectMissing; PreconditionFailed with `if_match`."""
        ...

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """Of many objects those that come easily, in any order, each by one attempt; raises nothing.

        What is left out may be there all the same: `get` tells. Costs a fraction of as many `get`.
        """
        ...

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """`size` bytes of this version from `start` on, which it has. Raises ObjectMissing; PreconditionFailed."""
        ...

    async def head(self, key: str) -> ObjectInfo:
        """The object without its bytes. Raises ObjectMissing."""
        ...

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """Replace or create the object, metadata included (None: no metadata).

        A file is read a part at a time; nobody may write to it meanwhile.

        Raises PreconditionFailed when the condition does not hold; for IfMatch that includes a missing object.
        """
        ...

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """Remove the object. A missing one is fine without a condition and ObjectMissing with one.

        Raises PreconditionFailed when the object is another version.
        """
        ...

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """Copy inside the store. `meta` None keeps the source's metadata, a mapping replaces it.

        A copy onto itself with `meta` changes the metadata alone. The condition is on the target. `known` is what was
        last heard of the source and may be outdated: it saves asking, and what is copied is what is there. Raises
        ObjectMissing for the source and PreconditionFailed for the target.
        """
        ...

    async def list_page(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Page:
        """Up to `limit` (1 to 1,000) objects and common prefixes below `prefix`, in key order.

        Keys that hold `delimiter` after the prefix are folded into one common prefix, the delimiter included. Keys up
        to and including `start_after` are left out. `token` is a former page's `next_token`; all other arguments must
        then be the same.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections, threads and locks. Closing twice is fine."""
        ...

    def statistics(self) -> StoreStatistics:
        """What was asked so far."""
        ...


async def get_each(store: Store, keys: Sequence[str]) -> list[StoredObject]:
    """`Store.get_many` by one `get` after the other, for stores that have nothing better; up to the first failure."""
    found: list[StoredObject] = []
    with suppress(LiveMemError):
        for key in keys:
            with suppress(ObjectMissing):
                found.append(await store.get(key))
    return found


async def list_all(store: Store, prefix: str, *, delimiter: str = "", start_after: str = "") -> Listing:
    """Every page of a listing, joined. Raises what `Store.list_page` raises."""
    objects: list[ObjectInfo] = []
    prefixes: list[str] = []
    token: str | None = None
    while True:
        page = await store.list_page(prefix, delimiter=delimiter, start_after=start_after, token=token)
        objects.extend(page.objects)
        prefixes.extend(page.prefixes)
        token = page.next_token
        if token is None:
            return Listing(tuple(objects), tuple(prefixes))


class Tally:
    """The mutable side of StoreStatistics: one per store, used from the trio thread only."""

    def __init__(self) -> None:
        self._requests: Counter[str] = Counter()
        self._errors = 0
        self.bytes_in = 0
        self.bytes_out = 0

    @contextmanager
    def request(self, verb: str) -> Iterator[None]:
        """Count one request, and its failure when the store is to blame."""
        self._requests[verb] += 1
        try:
            yield
        except (ObjectMissing, PreconditionFailed):
            raise
        except LiveMemError:
            self._errors += 1
            raise

    def requests(self, verb: str, count: int) -> None:
        """Count requests that were made side by side."""
        self._requests[verb] += count

    def snapshot(self) -> StoreStatistics:
        """The counts as they stand."""
        return StoreStatistics(dict(self._requests), self._errors, self.bytes_in, self.bytes_out)


def check_key(key: str) -> str:
    """The key itself. Raises InvalidName for an empty key or one that is no UTF-8, NameTooLong over 1,024 bytes."""
    if not key:
        raise InvalidName("a key has at least one character", path=repr(key))
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidName("a key is valid UTF-8", path=repr(key)) from error
    if size > MAX_KEY_BYTES:
        raise NameTooLong(f"{size} bytes, a key has up to {MAX_KEY_BYTES}", path=f"{key[:80]}...")
    return key


def check_meta(meta: Mapping[str, str] | None) -> dict[str, str]:
    """A copy of the metadata, {} for None. Raises InvalidName for a name that does not travel on every store."""
    for name in meta or {}:
        if not _META_KEY.fullmatch(name):
            raise InvalidName("metadata names are lower-case letters, digits and hyphens", path=repr(name))
    return dict(meta or {})


def check_condition(condition: Condition | None, *, key: str, current: str | None) -> None:
    """Hold a condition against the etag an object has now (None: there is no object). Raises PreconditionFailed."""
    holds = (
        condition is None
        or (isinstance(condition, IfAbsent) and current is None)
        or (isinstance(condition, IfMatch) and condition.etag == current)
    )
    if not holds:
        raise PreconditionFailed(key=key)


def nanoseconds(moment: datetime) -> int:
    """An aware datetime as nanoseconds since the epoch, exact to the microsecond."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
