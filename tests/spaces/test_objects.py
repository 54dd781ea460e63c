"""Steps on objects: exactly one version is replaced or removed, also where a store honours no conditions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from livememfs.cache.replica import Replica
from livememfs.errors import ConditionsUnsupported, NotText, ObjectMissing, PreconditionFailed
from livememfs.spaces import objects
from livememfs.store.base import Condition, ObjectInfo, StoredObject
from livememfs.store.content import FileContent
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock

KEY = "alpha/bank/a.md"


class WithoutConditions(MemoryStore):
    """A store that honours none."""

    async def put(
        self,
        key: str,
        data: bytes | FileContent,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
    ) -> ObjectInfo:
        if condition is not None:
            raise ConditionsUnsupported(key=key)
        return await super().put(key, data, meta=meta)

    async def delete(self, key: str, *, condition: Condition | None = None) -> None:
        if condition is not None:
            raise ConditionsUnsupported(key=key)
        await super().delete(key)


@pytest.fixture(params=[MemoryStore, WithoutConditions])
def store(request: pytest.FixtureRequest) -> MemoryStore:
    made: MemoryStore = request.param(ManualClock())
    return made


@pytest.fixture
def replica(store: MemoryStore) -> Replica:
    return Replica(store)


async def test_what_is_there_is_not_made_again(store: MemoryStore, replica: Replica) -> None:
    await objects.put_new(replica, KEY, b"one", meta={"m": "1"})
    with pytest.raises(PreconditionFailed):
        await objects.put_new(replica, KEY, b"two")

    stored = await store.get(KEY)
    assert (stored.data, stored.info.meta) == (b"one", {"m": "1"})


async def test_exactly_the_version_that_is_named_is_replaced(store: MemoryStore, replica: Replica) -> None:
    await objects.put_version(replica, KEY, b"one", None)
    with pytest.raises(PreconditionFailed):
        await objects.put_version(replica, KEY, b"not new", None)
    first = (await store.head(KEY)).etag
    await objects.put_version(replica, KEY, b"two", first, {"m": "2"})
    with pytest.raises(PreconditionFailed):
        await objects.put_version(replica, KEY, b"three", first)

    stored = await store.get(KEY)
    assert (stored.data, stored.info.meta) == (b"two", {"m": "2"})
    await store.delete(KEY)
    with pytest.raises((PreconditionFailed, ObjectMissing)):
        await objects.put_version(replica, KEY, b"four", stored.info.etag)


async def test_exactly_the_version_that_is_named_is_removed(store: MemoryStore, replica: Replica) -> None:
    await store.put(KEY, b"one")
    first = (await store.head(KEY)).etag
    await store.put(KEY, b"two")
    with pytest.raises(PreconditionFailed):
        await objects.delete_version(replica, KEY, first)
    assert (await store.get(KEY)).data == b"two"

    await objects.delete_version(replica, KEY, (await store.head(KEY)).etag)
    with pytest.raises(ObjectMissing):
        await store.head(KEY)


async def test_of_a_listed_version_that_was_replaced_the_newest_is_read(store: MemoryStore, replica: Replica) -> None:
    listed = await store.put(KEY, b"one")
    await store.put(KEY, b"another")
    assert await objects.content(replica, listed) == b"another"
    listed = await store.put(KEY, b"a third")
    assert await objects.content(replica, listed) == b"a third"
    await store.put(KEY, b"a fourth")
    assert await objects.content(replica, listed) == b"a third"  # this host has it
    listed = await store.put(KEY, b"a fifth")
    await store.delete(KEY)
    assert await objects.content(replica, listed) is None


@pytest.mark.parametrize(
    ("key", "beside"),
    [
        ("alpha/bank/a.md", "alpha/bank/a.conflict-here-{}.md"),
        ("alpha/bank/a.b.md", "alpha/bank/a.b.conflict-here-{}.md"),
        ("LICENSE", "LICENSE.conflict-here-{}"),
    ],
)
async def test_what_is_about_to_be_replaced_is_kept_beside_once(
    store: MemoryStore, replica: Replica, key: str, beside: str
) -> None:
    info = await store.put(key, b"theirs")
    named = beside.format(info.etag[:8])

    for _ in range(2):
        assert await objects.keep_beside(replica, StoredObject(info, b"theirs"), "here") == named
    assert (await store.get(named)).data == b"theirs"


def test_bytes_that_are_no_text_say_where() -> None:
    assert objects.decode_text("é".encode(), "p") == "é"
    with pytest.raises(NotText, match="byte 0xff at offset 2"):
        objects.decode_text(b"ab\xff", "p")
