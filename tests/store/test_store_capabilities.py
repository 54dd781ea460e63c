"""The probe: it finds what a store keeps of its promises, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import trio
from hierarchical import HierarchicalStore
from trio.testing import MockClock

from livememfs.errors import BucketMissing, ConditionsUnsupported, Denied, Unreachable
from livememfs.store.base import Condition, IfMatch, ObjectInfo, Page, Store, list_all
from livememfs.store.capabilities import Capabilities, probe
from livememfs.store.markers import MarkerStore
from livememfs.store.memory import MemoryStore
from livememfs.store.s3 import S3Options, S3Store
from livememfs.testing.store import Fault, FaultyStore

ALL = Capabilities(
    put_if_absent=True,
    put_if_match=True,
    delete_if_match=True,
    start_after=True,
    metadata=True,
    copy_metadata=True,
    markers=True,
    ordered=True,
)


class Careless(MemoryStore):
    """Takes every condition for met, like rclone's server."""

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        return await super().put(key, data, meta=meta)

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        await super().delete(key)


class Refusing(Careless):
    """Knows no conditions and says so."""

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        if condition is not None:
            raise ConditionsUnsupported(key=key)
        return await super().put(key, data, meta=meta)


class Forgetful(MemoryStore):
    """Keeps no metadata and cannot list from the middle, and folders come first."""

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        return await super().put(key, data, condition=condition)

    async def copy(
        self, source: str, target: str, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        return await super().copy(source, target, condition=condition)

    async def list_page(self, prefix: str = "", *, start_after: str = "", **how: object) -> Page:
        page = await super().list_page(prefix, **how)
        return replace(page, objects=tuple(sorted(page.objects, key=lambda info: info.key.replace("/", " "))))


async def left_in(store: Store) -> list[str]:
    return [info.key for info in (await list_all(store, "")).objects]


async def test_every_store_we_make_keeps_every_promise(calm_store: Store) -> None:
    await calm_store.put("mine", b"1")

    assert await probe(calm_store) == ALL
    assert await left_in(calm_store) == ["mine"]


async def test_a_store_that_ignores_conditions_is_found_out() -> None:
    store = Careless()
    found = await probe(store)

    assert (found.put_if_absent, found.put_if_match, found.delete_if_match) == (False, False, False)
    assert (found.start_after, found.metadata, found.copy_metadata, found.ordered) == (True, True, True, True)
    assert len(found.notes) == 3
    assert await left_in(store) == []


async def test_a_store_that_rejects_conditions_is_found_out() -> None:
    found = await probe(Refusing())

    assert (found.put_if_absent, found.put_if_match) == (False, False)
    assert "does not honour conditions" in found.notes[0]


async def test_lost_metadata_of_markers_are_found_out_and_made_up_for() -> None:
    found = await probe(HierarchicalStore(stays_listed=False))

    assert found == replace(ALL, markers=False, notes=("the marker of a directory loses its metadata",))
    assert await probe(MarkerStore(HierarchicalStore(stays_listed=False))) == ALL


async def test_lost_metadata_and_strange_listings_are_found_out() -> None:
    found = await probe(Forgetful())

    assert (found.start_after, found.metadata, found.copy_metadata, found.ordered) == (False, False, False, False)
    assert not found.markers
    assert (found.put_if_absent, found.put_if_match, found.delete_if_match) == (True, True, True)
    assert len(found.notes) == 5


async def test_a_missing_bucket_is_told_and_not_taken_for_a_weak_store(s3_options: Callable[..., S3Options]) -> None:
    with pytest.raises(BucketMissing):
        await probe(S3Store(s3_options(bucket="no-such-bucket")))


@pytest.mark.parametrize("error", [Denied(), Unreachable("reset")], ids=repr)
async def test_a_probe_without_an_answer_fails_and_cleans_up(error: Exception) -> None:
    store = MemoryStore()
    faulty = FaultyStore(store)
    faulty.script("copy", Fault(before=error))
    with pytest.raises(type(error)):
        await probe(faulty)

    assert await left_in(store) == []


async def test_a_cancelled_probe_cleans_up(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    faulty = FaultyStore(store)
    faulty.latency("*", 1.0)
    with trio.move_on_after(5.5) as scope:
        await probe(faulty)

    assert scope.cancelled_caught
    assert await left_in(store) == []


async def test_a_store_that_died_does_not_hold_up_the_clean_up(autojump_clock: MockClock) -> None:
    faulty = FaultyStore(MemoryStore())
    faulty.latency("*", 1.0)
    with trio.move_on_after(5.5):
        faulty.script("put", None, None, Fault(delay=1e9))
        faulty.script("list", None, Fault(delay=1e9))
        await probe(faulty)

    assert trio.current_time() < 30
