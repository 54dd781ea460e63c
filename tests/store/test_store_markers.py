"""Directories keep what describes them on a store that loses the metadata of their markers."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from hierarchical import HierarchicalStore

from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.records.keys import MARKER
from livememfs.store.base import IfAbsent, IfMatch, list_all
from livememfs.store.markers import MarkerStore
from livememfs.store.memory import MemoryStore

META = {"livememfs-mode": "2770", "livememfs-mtime": "1"}


@pytest.fixture(params=[HierarchicalStore, MemoryStore])
def inner(request: pytest.FixtureRequest) -> MemoryStore:
    """A store that loses the metadata of markers, and one that keeps it."""
    return request.param()


@pytest.fixture
def store(inner: MemoryStore) -> MarkerStore:
    return MarkerStore(inner)


async def listed(store: MarkerStore | MemoryStore, delimiter: str = "") -> list[str]:
    return [info.key for info in (await list_all(store, "", delimiter=delimiter)).objects]


@pytest.mark.parametrize("anew", [False, True], ids=["the writer", "another process"])
async def test_a_marker_keeps_its_metadata_through_each_change(inner: MemoryStore, anew: bool) -> None:
    store = MarkerStore(inner)
    await store.put("a/", b"", meta={"livememfs-mode": "755"})
    await store.put("a/", b"", meta=META, condition=IfMatch((await store.head("a/")).etag))
    await store.put("a/file", b"1")
    if anew:
        store = MarkerStore(inner)
    await store.copy("a/", "b/")
    await store.copy("a/", "c/", meta={"livememfs-mode": "700"})

    assert (await store.head("a/")).meta == (await store.get("a/")).info.meta == META
    assert (await store.head("b/")).meta == META
    assert (await store.head("c/")).meta == {"livememfs-mode": "700"}


async def test_a_marker_is_listed_once_and_nothing_else_of_it(store: MarkerStore) -> None:
    await store.put("a/!early", b"1")
    await store.put("a/", b"", meta=META)
    await store.put("a/file", b"1")
    page = await store.list_page("a/", delimiter="/")

    assert [info.key for info in page.objects] == ["a/", "a/!early", "a/file"] == await listed(store)


@pytest.mark.parametrize("anew", [False, True], ids=["the writer", "another process"])
async def test_nothing_is_left_of_a_marker_that_is_deleted(inner: MemoryStore, anew: bool) -> None:
    store = MarkerStore(inner)
    await store.put("a/", b"", meta=META)
    if anew:
        store = MarkerStore(inner)
    await store.delete("a/", condition=IfMatch((await store.head("a/")).etag))
    await store.put("b/", b"", meta=META)
    await MarkerStore(inner).delete("b/")

    assert await listed(inner) == []
    with pytest.raises(ObjectMissing):
        await store.head("a/")
    with pytest.raises(ObjectMissing):
        await store.delete("a/", condition=IfMatch("0" * 32))


async def test_a_marker_is_made_once(store: MarkerStore) -> None:
    await store.put("a/", b"", meta=META, condition=IfAbsent())
    with pytest.raises(PreconditionFailed):
        await store.put("a/", b"", meta={}, condition=IfAbsent())

    assert (await store.head("a/")).meta == META


async def test_the_bare_marker_of_another_program_is_described_from_then_on() -> None:
    inner = HierarchicalStore()
    store = MarkerStore(inner)
    await store.put("known/", b"", meta=META)
    seen = await inner.put("a/", b"")
    with pytest.raises(PreconditionFailed):
        await store.put("a/", b"", meta=META, condition=IfMatch("0" * 32))
    await store.put("a/", b"", meta=META, condition=IfMatch(seen.etag))

    assert (await store.head("a/")).meta == META
    assert await listed(store) == ["a/", "known/"]


async def test_a_store_that_keeps_metadata_is_asked_once_more_in_all_and_gets_no_other_object() -> None:
    inner = MemoryStore()
    store = MarkerStore(inner)
    for name in ("a/", "b/", "c/"):
        await store.put(name, b"", meta=META)
        await store.head(name)
        await store.delete(name)
    await store.put("d/", b"", meta=META)

    assert inner.statistics().requests == {"put": 4, "head": 4, "delete": 3}
    assert await listed(inner) == ["d/"]


async def test_a_bucket_that_moved_to_a_better_store_still_describes_its_directories() -> None:
    inner = MemoryStore()
    await inner.put(f"a/{MARKER}", b"", meta=META)

    assert (await MarkerStore(inner).head("a/")).meta == META


async def test_a_directory_of_the_stores_own_is_no_object() -> None:
    inner = HierarchicalStore()
    store = MarkerStore(inner)
    await store.put("a/b/file", b"1")
    await store.delete("a/b/file")

    assert (await inner.list_page("a/b/", delimiter="/")).objects != ()
    assert (await store.list_page("a/b/", delimiter="/")).objects == ()
    for ask in (store.head, store.get):
        with pytest.raises(ObjectMissing):
            await ask("a/b/")
    with pytest.raises(ObjectMissing):
        await MarkerStore(inner).head("a/b/")


async def test_markers_that_are_written_first_and_at_once_all_keep_their_metadata(inner: MemoryStore) -> None:
    store = MarkerStore(inner)
    names = [f"{number}/" for number in range(5)]
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(partial(store.put, name, b"", meta=META))

    for name in names:
        assert (await MarkerStore(inner).head(name)).meta == META


async def test_a_marker_is_described_though_the_store_has_made_its_directory_already() -> None:
    """Files of a new directory may arrive before its marker."""
    inner = HierarchicalStore()
    store = MarkerStore(inner)
    await store.put("a/file", b"1")
    await store.put("a/", b"", meta=META, condition=IfAbsent())

    assert (await store.head("a/")).meta == META
    with pytest.raises(PreconditionFailed):
        await store.put("a/", b"", meta={}, condition=IfAbsent())
