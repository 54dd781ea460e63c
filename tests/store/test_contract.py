"""What every store promises (`livememfs.store.base.Store`), held against all kinds, calm and shaky.

A test that passes for one kind and fails for another has found a bug in a store, not a difference to allow for.
"""

from __future__ import annotations

import os
from hashlib import md5
from pathlib import Path

import pytest
import trio

from livememfs.errors import InvalidName, NameTooLong, ObjectMissing, PreconditionFailed
from livememfs.records.metadata import META_OP
from livememfs.store.base import IfAbsent, IfMatch, ObjectInfo, Store, list_all
from livememfs.store.content import PART, FileContent
from livememfs.store.memory import MemoryStore

ODD_KEYS = [
    "a/",
    "a//b",
    "./x",
    "../y",
    "a/../z",
    "a/./b",
    "/lead",
    "é +%20?#&=;'\".md",
    "x" * 300 + "/y",
    "日本語/メモ.md",
    "tab\there",
    ".livememfs-store/meta/x",
    ".livememfs-store",
    "k" * 1024,
]

ODD_TEXTS = [
    "",
    " ",
    " spaced ",
    "100%",
    "%41",
    "é ✓ 日本語 🙂",
    "a\nb\tc",
    'quo"te\\',
    "a,b;c=d",
    os.fsdecode(b"\xff\xfe x"),
]


def own_meta(info: ObjectInfo) -> dict[str, str]:
    """The metadata without the id that a patient store adds to a conditional write."""
    assert info.meta is not None
    return {name: value for name, value in info.meta.items() if name != META_OP}


async def keys_below(store: Store, prefix: str, **how: str) -> list[str]:
    return [info.key for info in (await list_all(store, prefix, **how)).objects]


async def test_what_was_put_is_got(store: Store) -> None:
    put = await store.put("a/b.md", b"hello", meta={"name": "b"})
    got = await store.get("a/b.md")

    assert got.data == b"hello"
    assert (got.info.key, got.info.size, got.info.meta) == ("a/b.md", 5, {"name": "b"})
    assert got.info.etag == put.etag == md5(b"hello").hexdigest()
    assert (put.key, put.size, put.meta) == ("a/b.md", 5, {"name": "b"})


async def test_head_tells_the_same_as_get_without_the_bytes(calm_store: Store) -> None:
    await calm_store.put("a", b"hello", meta={"x": "1"})

    assert await calm_store.head("a") == (await calm_store.get("a")).info


async def test_an_object_is_dated(calm_store: Store) -> None:
    await calm_store.put("a", b"1")

    assert (await calm_store.head("a")).modified_ns > 1_700_000_000 * 10**9


async def test_an_empty_object_is_an_object(store: Store) -> None:
    await store.put("empty", b"")

    assert (await store.get("empty")).data == b""
    assert await keys_below(store, "") == ["empty"]


async def test_a_put_replaces_bytes_and_metadata_as_a_whole(store: Store) -> None:
    await store.put("a", b"a long first version", meta={"old": "1", "both": "1"})
    await store.put("a", b"2", meta={"both": "2"})
    found = await store.get("a")

    assert (found.data, found.info.meta) == (b"2", {"both": "2"})

    await store.put("a", b"3")

    assert (await store.head("a")).meta == {}


async def test_large_binary_content_survives(calm_store: Store) -> None:
    data = os.urandom(3 << 20)
    await calm_store.put("large.bin", data)

    assert (await calm_store.get("large.bin")).data == data


async def test_any_text_survives_as_user_metadata(calm_store: Store) -> None:
    for n, value in enumerate(ODD_TEXTS):
        await calm_store.put(f"{n}", b"1", meta={"some-name": value})
        assert (await calm_store.head(f"{n}")).meta == {"some-name": value}


async def test_a_metadata_name_that_not_every_store_carries_is_refused(calm_store: Store) -> None:
    for name in ("", "Upper", "under_score", "spa ce", "é"):
        with pytest.raises(InvalidName):
            await calm_store.put("a", b"1", meta={name: "x"})

    assert await keys_below(calm_store, "") == []


async def test_a_key_may_be_any_text(calm_store: Store) -> None:
    for key in ODD_KEYS:
        await calm_store.put(key, b"1", meta={"n": "1"})
        await calm_store.put(key, key.encode(), meta={"n": "2"})
    assert await keys_below(calm_store, "") == sorted(ODD_KEYS)

    for key in ODD_KEYS:
        found = await calm_store.get(key)
        assert (found.data, found.info.key, found.info.meta) == (key.encode(), key, {"n": "2"})
        assert key in await keys_below(calm_store, key)
        await calm_store.delete(key)

    assert await keys_below(calm_store, "") == []


async def test_a_key_and_keys_below_it_live_side_by_side(store: Store) -> None:
    keys = ["a", "a/", "a/b", "a/b/c", "a/b/c/d"]
    for key in reversed(keys):
        await store.put(key, key.encode())
    for key in keys:
        assert (await store.get(key)).data == key.encode()

    assert await keys_below(store, "") == keys

    await store.delete("a/b")
    await store.put("a/b/c", b"again")

    assert await keys_below(store, "a") == ["a", "a/", "a/b/c", "a/b/c/d"]
    assert (await store.get("a/b/c")).data == b"again"


async def test_a_key_can_take_the_place_that_keys_below_it_left(store: Store) -> None:
    await store.put("a/b/c", b"1")
    await store.delete("a/b/c")
    await store.put("a", b"2")
    await store.delete("a")
    await store.put("a/b", b"3")

    assert await keys_below(store, "") == ["a/b"]


async def test_an_impossible_key_is_refused(calm_store: Store) -> None:
    for key, error in (("", InvalidName), ("lone \ud800 surrogate", InvalidName), ("é" * 513, NameTooLong)):
        with pytest.raises(error):
            await calm_store.put(key, b"1")
        with pytest.raises(error):
            await calm_store.get(key)
        with pytest.raises(error):
            await calm_store.copy("a", key)


async def test_a_missing_object_is_missing_to_every_question(store: Store) -> None:
    with pytest.raises(ObjectMissing):
        await store.get("a")
    with pytest.raises(ObjectMissing):
        await store.head("a")
    with pytest.raises(ObjectMissing):
        await store.copy("a", "b")
    with pytest.raises(ObjectMissing):
        await store.delete("a", condition=IfMatch("0" * 32))


async def test_a_deleted_object_is_missing_not_empty(store: Store) -> None:
    await store.put("a", b"1")
    await store.delete("a")
    with pytest.raises(ObjectMissing):
        await store.get("a")

    assert await keys_below(store, "") == []


async def test_deleting_what_is_not_there_is_fine(store: Store) -> None:
    await store.delete("a")
    await store.put("a/b", b"1")
    await store.delete("a")

    assert await keys_below(store, "") == ["a/b"]


async def test_put_if_absent_happens_once(store: Store) -> None:
    await store.put("a", b"1", meta={"m": "1"}, condition=IfAbsent())
    with pytest.raises(PreconditionFailed):
        await store.put("a", b"2", condition=IfAbsent())
    found = await store.get("a")

    assert (found.data, own_meta(found.info)) == (b"1", {"m": "1"})


async def test_of_many_puts_if_absent_one_wins(store: Store) -> None:
    winners: list[bytes] = []

    async def compete(data: bytes) -> None:
        try:
            await store.put("a", data, condition=IfAbsent())
            winners.append(data)
        except PreconditionFailed:
            pass

    # One after the other: the test server itself checks and writes in two steps.
    for n in range(5):
        await compete(b"%d" % n)

    assert winners == [b"0"]
    assert (await store.get("a")).data == b"0"


async def test_put_if_match_needs_the_present_version(store: Store) -> None:
    first = await store.put("a", b"1")
    second = await store.put("a", b"2", condition=IfMatch(first.etag))
    with pytest.raises(PreconditionFailed):
        await store.put("a", b"3", condition=IfMatch(first.etag))

    assert (await store.head("a")).etag == second.etag


async def test_put_if_match_creates_nothing(store: Store) -> None:
    with pytest.raises(PreconditionFailed):
        await store.put("a", b"1", condition=IfMatch("0" * 32))

    assert await keys_below(store, "") == []


async def test_delete_if_match_needs_the_present_version(store: Store) -> None:
    first = await store.put("a", b"1")
    second = await store.put("a", b"2")
    with pytest.raises(PreconditionFailed):
        await store.delete("a", condition=IfMatch(first.etag))
    assert (await store.get("a")).data == b"2"

    await store.delete("a", condition=IfMatch(second.etag))

    assert await keys_below(store, "") == []


async def test_get_can_be_pinned_to_a_version(store: Store) -> None:
    first = await store.put("a", b"1")
    assert (await store.get("a", if_match=first.etag)).data == b"1"

    await store.put("a", b"2")

    with pytest.raises(PreconditionFailed):
        await store.get("a", if_match=first.etag)


@pytest.mark.parametrize("at_once", [1, 4])
async def test_many_come_as_they_would_one_by_one_and_what_is_not_there_is_left_out(
    calm_store: Store, at_once: int
) -> None:
    wanted = {f"a/{n} é": f"text {n}".encode() * n for n in range(20)}
    for key, data in wanted.items():
        await calm_store.put(key, data, meta={"m": key})

    found = await calm_store.get_many([*wanted, "a/none", "b"], at_once=at_once)

    assert {one.info.key: one.data for one in found} == wanted
    assert {one.info.key: one for one in found} == {key: await calm_store.get(key) for key in wanted}
    assert await calm_store.get_many([]) == []


async def test_of_many_what_a_failure_keeps_back_is_left_out_and_the_rest_is_as_it_is(store: Store) -> None:
    for n in range(6):
        await store.put(f"k{n}", b"%d" % n)
    for one in await store.get_many([f"k{n}" for n in range(6)]):
        assert (await store.get(one.info.key)) == one


async def test_a_copy_keeps_bytes_and_metadata(store: Store) -> None:
    await store.put("a b/é.md", b"1", meta={"m": "é"})
    copied = await store.copy("a b/é.md", "c/d+e.md")
    found = await store.get("c/d+e.md")

    assert (found.data, found.info.meta) == (b"1", {"m": "é"})
    assert (copied.key, copied.etag, copied.size, copied.meta) == ("c/d+e.md", found.info.etag, 1, {"m": "é"})
    assert await keys_below(store, "") == ["a b/é.md", "c/d+e.md"]


async def test_what_is_known_of_the_source_changes_nothing_about_a_copy(store: Store) -> None:
    """It saves a question, and may be outdated: what is copied is what is there."""
    await store.put("a", b"1", meta={"m": "1"})
    (listed,) = (await store.list_page("a")).objects
    copied = await store.copy("a", "b", known=listed)
    assert ((await store.get("b")).data, copied.etag, copied.size) == (b"1", listed.etag, 1)

    await store.put("a", b"22", meta={"m": "2"})
    outdated = await store.copy("a", "c", known=listed)
    found = await store.get("c")
    assert (found.data, found.info.meta) == (b"22", {"m": "2"})
    assert (outdated.etag, outdated.size) == (found.info.etag, 2)

    await store.delete("a")
    with pytest.raises(ObjectMissing):
        await store.copy("a", "d", known=listed)


async def test_a_copy_can_replace_the_metadata(store: Store) -> None:
    await store.put("a", b"1", meta={"old": "1"})
    await store.copy("a", "b", meta={"new": "é"})
    await store.copy("a", "c", meta={})

    assert (await store.head("b")).meta == {"new": "é"}
    assert (await store.head("c")).meta == {}
    assert (await store.head("a")).meta == {"old": "1"}


async def test_a_copy_onto_itself_changes_the_metadata_alone(store: Store) -> None:
    before = await store.put("a", b"1", meta={"old": "1"})
    after = await store.copy("a", "a", meta={"new": "2"})
    found = await store.get("a")

    assert (found.data, found.info.meta, found.info.etag) == (b"1", {"new": "2"}, before.etag)
    assert after.etag == before.etag


async def test_a_copy_onto_itself_without_metadata_changes_nothing(store: Store) -> None:
    await store.put("a", b"1", meta={"m": "1"})
    await store.copy("a", "a")

    assert (await store.head("a")).meta == {"m": "1"}


async def test_a_copy_can_depend_on_the_target(store: Store) -> None:
    await store.put("a", b"1", meta={"m": "1"})
    target = await store.put("b", b"2")
    with pytest.raises(PreconditionFailed):
        await store.copy("a", "b", condition=IfAbsent())
    with pytest.raises(PreconditionFailed):
        await store.copy("a", "c", condition=IfMatch(target.etag))
    assert (await store.get("b")).data == b"2"

    await store.copy("a", "b", condition=IfMatch(target.etag))
    await store.copy("a", "c", meta={"m": "3"}, condition=IfAbsent())

    assert (await store.get("b")).data == b"1"
    assert own_meta(await store.head("b")) == {"m": "1"}
    assert own_meta(await store.head("c")) == {"m": "3"}


async def test_a_listing_is_in_the_byte_order_of_the_keys(calm_store: Store) -> None:
    keys = ["B", "a", "a b", "a-b", "a.b", "a/b", "a0", "aé", "b", "z", "é", "日", "🙂"]
    for key in reversed(keys):
        await calm_store.put(key, b"1")

    assert await keys_below(calm_store, "") == keys == sorted(keys, key=str.encode)


async def test_a_listing_gives_etag_size_and_date_but_no_metadata(calm_store: Store) -> None:
    put = await calm_store.put("a", b"hello", meta={"m": "1"})
    (info,) = (await calm_store.list_page()).objects

    assert (info.key, info.etag, info.size, info.meta) == ("a", put.etag, 5, None)
    assert info.modified_ns > 0


async def test_a_prefix_need_not_end_at_a_slash(calm_store: Store) -> None:
    for key in ("a/b1", "a/b2/c", "a/c", "ab", "b"):
        await calm_store.put(key, b"1")

    assert await keys_below(calm_store, "a/b") == ["a/b1", "a/b2/c"]
    assert await keys_below(calm_store, "a") == ["a/b1", "a/b2/c", "a/c", "ab"]
    assert await keys_below(calm_store, "nothing") == []
    assert await keys_below(calm_store, "nothing/at/all") == []


async def test_a_delimiter_folds_what_lies_deeper(calm_store: Store) -> None:
    for key in ("a", "a-b", "a/1", "a/2/x", "b/1", "c"):
        await calm_store.put(key, b"1")
    top = await list_all(calm_store, "", delimiter="/")
    below = await list_all(calm_store, "a/", delimiter="/")

    assert ([info.key for info in top.objects], top.prefixes) == (["a", "a-b", "c"], ("a/", "b/"))
    assert ([info.key for info in below.objects], below.prefixes) == (["a/1"], ("a/2/",))


async def test_a_folder_marker_is_listed_below_itself_and_folded_above(calm_store: Store) -> None:
    await calm_store.put("a/", b"")
    top = await list_all(calm_store, "", delimiter="/")

    assert (top.objects, top.prefixes) == ((), ("a/",))
    assert await keys_below(calm_store, "a/", delimiter="/") == ["a/"]


async def test_start_after_leaves_out_what_comes_before(calm_store: Store) -> None:
    for key in ("live/20260101", "live/20260102", "live/20260103", "other"):
        await calm_store.put(key, b"1")

    assert await keys_below(calm_store, "live/", start_after="live/20260102") == ["live/20260103"]
    assert await keys_below(calm_store, "live/", start_after="live/202601015") == ["live/20260102", "live/20260103"]
    assert await keys_below(calm_store, "live/", start_after="live/9") == []


@pytest.mark.parametrize("limit", [1, 3])
async def test_pages_joined_are_the_listing(store: Store, limit: int) -> None:
    for key in ("a", "a-b", "a/1", "a/2/x", "b/1", "c"):
        await store.put(key, b"1")
    seen: list[str] = []
    token = None
    while True:
        page = await store.list_page("", delimiter="/", token=token, limit=limit)
        assert 0 < len(page.objects) + len(page.prefixes) <= limit
        seen += [*page.prefixes, *(info.key for info in page.objects)]
        token = page.next_token
        if token is None:
            break

    assert sorted(seen) == ["a", "a-b", "a/", "b/", "c"]
    assert len(seen) == 5


async def test_a_listing_of_more_than_a_page_is_whole() -> None:
    """Shown on the memory store alone: writing a thousand objects costs seconds elsewhere."""
    store = MemoryStore()
    for n in range(1001):
        await store.put(f"{n:04}", b"")
    page = await store.list_page(limit=5000)

    assert len(page.objects) == 1000
    assert len(await keys_below(store, "")) == 1001


async def test_requests_are_counted_by_verb(calm_store: Store) -> None:
    before = calm_store.statistics()
    await calm_store.put("a", b"12345")
    await calm_store.get("a")
    after = calm_store.statistics()

    assert after.requests["put"] > before.requests.get("put", 0)
    assert after.requests["get"] > before.requests.get("get", 0)
    assert after.bytes_out >= 5
    assert after.bytes_in >= 5


async def test_closing_twice_is_fine(calm_store: Store) -> None:
    await calm_store.put("a", b"1")
    await calm_store.aclose()
    await calm_store.aclose()


async def test_many_requests_at_once(calm_store: Store) -> None:
    async with trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(calm_store.put, f"n/{n:02}", b"%d" % n)

    assert await keys_below(calm_store, "n/") == [f"n/{n:02}" for n in range(20)]


def large_file(folder: Path, fill: bytes = b"0123456789abcdef") -> FileContent:
    """One byte more than is sent at a time."""
    path = folder / f"large-{fill[:4].decode()}"
    path.write_bytes((fill * (PART // len(fill) + 1))[: PART + 1])
    return FileContent(path, PART + 1)


async def test_a_part_of_a_version_is_got_alone(store: Store) -> None:
    first = await store.put("a/part", bytes(range(256)))
    assert await store.get_part("a/part", 10, 5, if_match=first.etag) == bytes(range(10, 15))
    assert await store.get_part("a/part", 255, 1, if_match=first.etag) == b"\xff"
    await store.put("a/part", b"another version")
    with pytest.raises(PreconditionFailed):
        await store.get_part("a/part", 10, 5, if_match=first.etag)
    with pytest.raises(ObjectMissing):
        await store.get_part("a/missing", 0, 5, if_match=first.etag)


async def test_a_large_file_is_put_whole_or_not_at_all(store: Store, tmp_path: Path) -> None:
    """Its conditions hold, and a refused one leaves the object as it was, with its metadata."""
    content, other = large_file(tmp_path), large_file(tmp_path, b"fedcba9876543210")
    info = await store.put("a/large", content, meta={"some": "é text"}, condition=IfAbsent())
    assert info.size == content.size
    for refused in (IfAbsent(), IfMatch("0" * 32)):
        with pytest.raises(PreconditionFailed):
            await store.put("a/large", other, condition=refused)
    found = await store.get("a/large", if_match=info.etag)
    assert found.data == content.read()
    assert own_meta(found.info) == own_meta(info) == {"some": "é text"}
    again = await store.put("a/large", other, condition=IfMatch(info.etag))
    assert again.etag != info.etag
    assert await store.get_part("a/large", PART - 3, 4, if_match=again.etag) == other.read()[-4:]


async def test_a_large_object_is_copied_with_its_metadata(store: Store, tmp_path: Path) -> None:
    await store.put("a/large", large_file(tmp_path), meta={"some": "text"})
    copied = await store.copy("a/large", "b/copy")
    assert (copied.size, own_meta(copied)) == (PART + 1, {"some": "text"})
    assert (await store.get("b/copy", if_match=copied.etag)).data == large_file(tmp_path).read()
