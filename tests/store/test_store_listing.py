"""Listings against a model that is too simple to be wrong, and the folder store against the memory store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.errors import StoreError
from livememfs.store.base import Store, list_all
from livememfs.store.directory import DirectoryStore
from livememfs.store.folder.disk import Disk
from livememfs.store.listing import after_prefix
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock

KEYS = st.text("ab-/.0é", min_size=1, max_size=6)
PARTS = st.text("ab-/.0é", max_size=3)
KINDS = pytest.mark.parametrize("kind", ["memory", "folder"])


@asynccontextmanager
async def opened(kind: str) -> AsyncIterator[Store]:
    if kind == "memory":
        yield MemoryStore(ManualClock())
        return
    with TemporaryDirectory() as root:
        store = DirectoryStore(Path(root), ManualClock(), disk=Disk(fsync=False))
        yield store
        await store.aclose()


def expected(keys: set[str], prefix: str, delimiter: str, start_after: str) -> list[str]:
    """Every key or common prefix that a listing shows, in order."""
    shown = set()
    for key in keys:
        if key.startswith(prefix) and key > start_after:
            rest = key[len(prefix) :]
            head, found, _ = rest.partition(delimiter) if delimiter else (rest, "", "")
            shown.add(prefix + head + found)
    return sorted(shown, key=str.encode)


@KINDS
@example({"a//b", "a/b", "a/c", "b"}, "", "/", "", 5)
@given(st.sets(KEYS, max_size=10), PARTS, st.sampled_from(["", "/", "-", "a/"]), PARTS, st.integers(1, 5))
async def test_pages_joined_are_what_the_model_lists(
    kind: str, keys: set[str], prefix: str, delimiter: str, start_after: str, limit: int
) -> None:
    seen: list[str] = []
    token = None
    async with opened(kind) as store:
        for key in keys:
            await store.put(key, b"")
        while True:
            page = await store.list_page(prefix, delimiter=delimiter, start_after=start_after, token=token, limit=limit)
            shown = sorted([*(info.key for info in page.objects), *page.prefixes], key=str.encode)
            assert len(shown) <= limit
            seen += shown
            token = page.next_token
            if token is None:
                break

    assert seen == expected(keys, prefix, delimiter, start_after)


@given(st.lists(st.tuples(st.sampled_from(["put", "delete", "copy"]), KEYS, KEYS), max_size=25))
async def test_a_folder_holds_the_same_as_a_dictionary_whatever_happened(changes: list[tuple[str, str, str]]) -> None:
    """Keys that collide as file and folder, odd keys, folders that come and go: none of it shows."""
    async with opened("memory") as memory, opened("folder") as folder:
        for n, (verb, key, other) in enumerate(changes):
            outcomes = [await _change(store, verb, key, other, n) for store in (memory, folder)]
            assert outcomes[0] == outcomes[1]
        for info in (await list_all(memory, "")).objects:
            left, right = await memory.get(info.key), await folder.get(info.key)
            assert (left.data, left.info.etag, left.info.meta) == (right.data, right.info.etag, right.info.meta)
        left_keys = [info.key for info in (await list_all(memory, "")).objects]

        assert left_keys == [info.key for info in (await list_all(folder, "")).objects]


async def _change(store: Store, verb: str, key: str, other: str, n: int) -> object:
    try:
        match verb:
            case "put":
                return (await store.put(key, b"%d" % n, meta={"n": str(n)})).etag
            case "copy":
                return (await store.copy(other, key)).etag
        return await store.delete(key)
    except StoreError as error:
        return type(error)


@KINDS
async def test_a_token_that_no_page_gave_is_refused(kind: str) -> None:
    async with opened(kind) as store:
        with pytest.raises(StoreError, match="token"):
            await store.list_page(token="nonsense")


@KINDS
async def test_a_page_goes_on_where_it_stopped_although_keys_come_and_go(kind: str) -> None:
    async with opened(kind) as store:
        for key in ("a", "c", "e"):
            await store.put(key, b"")
        first = await store.list_page(limit=2)
        await store.delete("c")
        await store.put("b", b"")
        await store.put("d", b"")
        second = await store.list_page(token=first.next_token)

        assert [info.key for info in second.objects] == ["d", "e"]


@given(st.text(min_size=1, max_size=4).filter(lambda text: text.strip(chr(0x10FFFF))), st.text(max_size=4))
def test_nothing_that_starts_with_a_prefix_comes_after_its_end(prefix: str, rest: str) -> None:
    assert prefix + rest < after_prefix(prefix)
    assert not after_prefix(prefix).startswith(prefix)
