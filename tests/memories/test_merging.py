"""Update by similarity: a new memory that says what another says takes its place, on however many hosts, once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.errors import EmbeddingUnavailable, Unreachable
from livememfs.memories import merging as module
from livememfs.memories.merging import Merging, merge
from livememfs.memories.storing import remember, trust_of_object, versions, vouch
from livememfs.recall.embed.base import Embedder
from livememfs.recall.embed.builtin import NAME, Builtin
from livememfs.recall.embed.model import OnnxModel
from livememfs.recall.index.local import Index
from livememfs.recall.likeness.alike import alike
from livememfs.recall.service import Recall
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.records.space import Meta
from livememfs.records.trust import Trust
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.embed import PATIENT
from livememfs.testing.store import FaultyStore

SPACE = "alpha"
DONE_WITHIN = 30.0
OpenModel = Callable[[], Awaitable[Embedder | None]]
SHOULDER, PRECISE = "Mickael s'est cassé l'épaule", "Mickael s'est cassé l'épaule le 10 janvier 2026"


class Host:
    """A mount without a kernel: it compares what it hears of."""

    def __init__(self, replica: Replica, clock: ManualClock, merging: Merging) -> None:
        self.replica, self.clock, self.merging = replica, clock, merging

    async def remember(self, text: str, collection: str = keys.MEMORIES) -> str:
        """Stores a memory a second after the last; its key."""
        self.clock.advance(1)
        return await remember(self.replica, self.clock, SPACE, collection, text, agent="me")

    async def settled(self) -> None:
        """Until nothing waits to be compared and all is in the bucket."""
        while not self.merging.is_idle:
            await self.merging.idle()
            await self.replica.uploaded()
            await trio.lowlevel.checkpoint()
        await self.replica.uploaded()

    async def memories(self, collection: str = keys.MEMORIES) -> list[Memory]:
        """Those that are there, by name."""
        level = await self.replica.names.listing(f"{SPACE}/{collection}/", fresh=True)
        names = [name for name in sorted(level.objects) if name.endswith(".md")]
        return [await self.parsed(f"{SPACE}/{collection}/{name}") for name in names]

    async def parsed(self, key: str) -> Memory:
        """What an object says."""
        _, collection, name = key.split("/")
        return Memory.parse((await self.replica.read(key)).data, path=key, collection=collection, name=name)


@cache
def loaded() -> OnnxModel:
    """The model, which takes as long to load as a test; so do the texts that every new index has it read."""
    model = OnnxModel()
    model.vector = cache(model.vector)  # type: ignore[method-assign]  # the same text always has the same vector
    return model


class Bucket:
    """A bucket with a space."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)

    @asynccontextmanager
    async def host(
        self,
        name: str = "one",
        *,
        threshold: float = 0.85,
        model: Callable[[], Awaitable[Embedder | None]] | None = None,
    ) -> AsyncIterator[Host]:
        """A mount on a machine of this name."""

        async def builtin() -> Embedder:
            return Builtin(await trio.to_thread.run_sync(loaded))

        meta = Meta(SPACE, "a space", "me", self.clock.now())
        await self.memory.put(keys.meta_key(SPACE), meta.render())
        replica = Replica(self.store, folder=self.folder / name, poll_interval=0.05, announce=name, host=name)
        folder = self.folder / f"{name}-index"
        recall = Recall(replica, self.clock, lambda: Index(folder, NAME), model or builtin, patience=PATIENT)
        merging = Merging(replica, self.clock, recall, threshold)
        replica.changes.subscribe(recall.heard)
        replica.changes.subscribe(merging.heard)
        recall.on_opened(merging.opened)
        with trio.fail_after(DONE_WITHIN):
            async with trio.open_nursery() as nursery:
                await nursery.start(replica.run)
                await nursery.start(recall.run)
                nursery.start_soon(merging.run)
                await replica.names.listing(f"{SPACE}/{keys.MEMORIES}/")
                yield Host(replica, self.clock, merging)
                nursery.cancel_scope.cancel()
        replica.close()


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(tmp_path)


@pytest.fixture
async def host(bucket: Bucket) -> AsyncIterator[Host]:
    async with bucket.host() as made:
        yield made


async def test_the_shoulder_that_becomes_precise_is_one_memory_and_what_it_was_can_be_read(host: Host) -> None:
    first = await host.remember(f"---\nsubjects: [mickael, blessure]\n---\n{SHOULDER}")
    await host.settled()
    made = (await host.parsed(first)).created_at
    second = await host.remember(f"---\nsubjects: [mickael, ski]\n---\n{PRECISE}")
    await host.settled()

    (left,) = await host.memories()

    old_id = first.rpartition("/")[2].removesuffix(".md")
    assert left.content == PRECISE
    assert left.subjects == ("mickael", "blessure", "ski")
    assert left.created_at == made
    assert left.links == (("updates", old_id),)
    assert [old.memory.content for old in await versions(host.replica, SPACE, keys.MEMORIES, old_id)] == [SHOULDER]
    assert await host.parsed(second) == left
    assert host.merging.statistics().merged == 1


@pytest.mark.parametrize(
    "moved", ["Non en fait David a déménagé à Toulouse", "David a déménagé à Toulouse", "David habite à Toulouse"]
)
async def test_david_who_moves_lives_in_one_place_and_is_still_a_brother(host: Host, moved: str) -> None:
    for text in ("David est mon frère", "David habite à Ordizan", "David a un fils", moved):
        await host.remember(text)
        await host.settled()
    assert [one.content for one in await host.memories()] == ["David est mon frère", "David a un fils", moved]


async def test_several_at_once_are_compared_with_each_other(host: Host) -> None:
    for text in (SHOULDER, "David est mon frère", PRECISE, SHOULDER, "David a un fils"):
        await host.remember(text)
    await host.settled()
    assert sorted(one.content for one in await host.memories()) == [
        "David a un fils",
        "David est mon frère",
        SHOULDER,
    ]


async def test_two_that_are_near_and_say_two_things_are_linked_once_and_nothing_contradicts(host: Host) -> None:
    first = await host.remember("Kate moved to Madrid")
    await host.settled()
    second = await host.remember("Kate's boss moved to Madrid")
    await host.settled()
    await host.remember("The build needs Python 3.12")
    await host.settled()
    assert (await host.parsed(first)).links == ()
    assert (await host.parsed(second)).links == (("related_to", first.rpartition("/")[2].removesuffix(".md")),)
    figures = host.merging.statistics()
    assert (figures.merged, figures.related) == (0, 1)


async def test_of_two_that_are_near_and_were_stored_together_the_newer_one_has_the_link(host: Host) -> None:
    first = await host.remember("Kate moved to Madrid")
    second = await host.remember("Kate's boss moved to Madrid")
    await host.settled()
    assert (await host.parsed(first)).links == ()
    assert (await host.parsed(second)).links == (("related_to", first.rpartition("/")[2].removesuffix(".md")),)


async def test_two_that_are_as_alike_as_the_threshold_and_no_more_stay_two(bucket: Bucket) -> None:
    async with bucket.host(threshold=1.0) as host, trio.open_nursery() as nursery:
        await host.remember(SHOULDER)
        second = await host.remember(PRECISE)
        found, _ = await alike(host.merging._recall, SPACE, keys.MEMORIES, PRECISE)
        (likeness,) = [one.likeness for one in found if one.key != second]
        host.merging = Merging(host.replica, host.clock, host.merging._recall, likeness)
        nursery.start_soon(host.merging.run)
        host.merging.heard(Change(second, "put", "e", "local"))
        await host.settled()
        figures = host.merging.statistics()
        assert (len(await host.memories()), figures.judged, figures.merged) == (2, 1, 0)
        nursery.cancel_scope.cancel()


async def test_what_is_in_another_collection_or_ended_is_left_alone(bucket: Bucket, host: Host) -> None:
    await host.remember("I can read the lobby")
    await host.remember("I can read the lobby", keys.SELF)
    await host.remember("---\nttl: 1h\n---\nMickael est malade")
    await host.settled()
    bucket.clock.advance(7_200)
    await host.remember("Mickael est malade")
    await host.settled()
    assert host.merging.statistics().merged == 0


async def test_the_newer_one_says_how_long_it_lasts(host: Host) -> None:
    await host.remember("---\nttl: 7d\n---\nMickael est malade")
    await host.settled()
    await host.remember("---\nttl: 30d\n---\nMickael est malade")
    await host.settled()
    (left,) = await host.memories()
    assert left.expires_at is not None
    assert (left.expires_at - left.updated_at) == timedelta(days=30)


async def test_two_hosts_that_store_the_same_fact_at_once_end_with_one_memory(bucket: Bucket) -> None:
    async with bucket.host("one") as one, bucket.host("two") as two:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.remember, SHOULDER)
            nursery.start_soon(two.remember, SHOULDER)
        for _ in range(200):
            await one.settled()
            await two.settled()
            there = [key for key in await stored(bucket) if keys.parse(key).kind == "memory"]
            if len(there) == 1:
                break
            await trio.sleep(0.05)
        assert len(there) == 1
        assert len([key for key in await stored(bucket) if keys.parse(key).kind == "memory-old"]) == 1
        assert not [key for key in await stored(bucket) if "conflict" in key]
        left = Memory.parse((await bucket.memory.get(there[0])).data, path="", collection=keys.MEMORIES)
        assert (left.content, len(left.links)) == (SHOULDER, 1)


async def stored(bucket: Bucket) -> list[str]:
    return [info.key for info in (await bucket.memory.list_page(f"{SPACE}/")).objects]


async def test_a_memory_that_was_written_while_nobody_was_there_is_compared_when_its_space_is_opened(
    bucket: Bucket,
) -> None:
    async with bucket.host("one", threshold=1.0) as host:
        await host.remember(SHOULDER)
        await host.remember(PRECISE)
        await host.settled()
        assert len(await host.memories()) == 2
    async with bucket.host("two") as host:
        await host.remember("David est mon frère")
        await host.settled()
        assert [one.content for one in await host.memories()] == [PRECISE, "David est mon frère"]


async def test_what_others_stored_long_ago_and_only_now_comes_to_light_is_left_to_them(host: Host) -> None:
    for number in range(50):
        old = f"{SPACE}/memories/20200101T000000_fact_{number:08x}.md"
        host.merging.heard(Change(old, "put", "e", "remote"))
    assert host.merging.statistics().waiting == 0
    host.merging.heard(Change(f"{SPACE}/memories/20200101T000000_fact_00000000.md", "put", "e", "local"))
    assert host.merging.statistics().waiting == 1


async def test_without_a_model_the_same_words_are_one_memory_and_nothing_else(bucket: Bucket) -> None:
    async def none() -> Embedder | None:
        return None

    async with bucket.host(model=none) as host:
        for text in ("David est mon frère", "  david EST mon frere", SHOULDER, PRECISE):
            await host.remember(text)
        await host.settled()
        assert [one.content.strip() for one in await host.memories()] == ["david EST mon frere", SHOULDER, PRECISE]


async def test_what_cannot_be_compared_now_is_compared_later(
    bucket: Bucket, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.01)
    failed = trio.Event()
    await host.remember(SHOULDER)
    await host.settled()
    read = host.replica.read

    async def failing(key: str, *, fresh: bool = False) -> object:
        if not failed.is_set() and keys.parse(key).kind == "memory":
            failed.set()
            raise Unreachable("reset", endpoint="the bucket")
        return await read(key, fresh=fresh)

    monkeypatch.setattr(host.replica, "read", failing)
    await host.remember(PRECISE)
    await failed.wait()
    await host.settled()
    assert [one.content for one in await host.memories()] == [PRECISE]
    assert host.merging.statistics().last_error == ""


async def test_a_memory_that_is_edited_while_it_is_compared_keeps_the_edit(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    corrected = PRECISE.replace("10", "11")
    first = await host.remember(SHOULDER)
    await host.settled()
    read, edited = host.replica.read, trio.Event()
    second = ""

    async def editing(key: str, *, fresh: bool = False) -> object:
        if key == first and not edited.is_set():
            edited.set()
            mine = await read(second)
            data = mine.data.replace(PRECISE.encode(), corrected.encode())
            host.replica.save(second, data, meta=mine.info.meta or {}, base=mine.info)
        return await read(key, fresh=fresh)

    second = await host.remember(PRECISE)
    monkeypatch.setattr(host.replica, "read", editing)
    await edited.wait()
    await host.settled()
    assert [one.content for one in await host.memories()] == [corrected]


@asynccontextmanager
async def judging(
    host: Host, monkeypatch: pytest.MonkeyPatch, key: str, *, when: str = "", then: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """One memory is compared with the others; `then` happens the first time that the memory `when` is read for it."""
    read, happened = host.replica.read, trio.Event()

    async def reading(asked: str, *, fresh: bool = False) -> object:
        if asked == when and not happened.is_set():
            happened.set()
            await then()
        return await read(asked, fresh=fresh)

    host.merging = Merging(host.replica, host.clock, host.merging._recall, 0.85)
    await host.merging._recall.prepare([SPACE], DONE_WITHIN)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(host.replica, "read", reading)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.merging.run)
            host.merging.heard(Change(key, "put", "e", "local"))
            await host.merging.idle()
            nursery.cancel_scope.cancel()
    assert happened.is_set() == bool(when)
    yield


async def nothing() -> None:
    """Nothing happens."""


async def rewrite(host: Host, key: str, old: str, new: str) -> None:
    """Somebody edits a memory."""
    there = await host.replica.read(key)
    data = there.data.replace(old.encode(), new.encode())
    host.replica.save(key, data, meta=there.info.meta or {}, base=there.info)


async def test_a_memory_that_is_removed_while_it_is_compared_stays_removed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bucket.host(threshold=1.0) as host:
        first, second = await host.remember(SHOULDER), await host.remember(PRECISE)

        async def removed() -> None:
            host.replica.remove(second, base=None)

        async with judging(host, monkeypatch, second, when=first, then=removed):
            assert [one.content for one in await host.memories()] == [SHOULDER]
            assert host.merging.statistics().merged == 0


async def test_a_memory_that_says_something_else_by_now_is_left_alone(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bucket.host(threshold=1.0) as host:
        first, second = await host.remember(SHOULDER), await host.remember(PRECISE)

        async def edited() -> None:
            await rewrite(host, first, SHOULDER, "David a un fils")

        async with judging(host, monkeypatch, second, when=first, then=edited):
            assert [one.content for one in await host.memories()] == ["David a un fils", PRECISE]


@pytest.mark.parametrize("removed", [False, True])
async def test_a_memory_that_changes_while_it_is_to_be_linked_keeps_the_change(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    async with bucket.host(threshold=1.0) as host:
        first, second = await host.remember("Kate moved to Madrid"), await host.remember("Kate's boss moved to Madrid")

        async def changed() -> None:
            if removed:
                host.replica.remove(second, base=None)
            else:
                await rewrite(host, second, "boss", "chief")

        async with judging(host, monkeypatch, second, when=first, then=changed):
            left = ["Kate moved to Madrid"] + ([] if removed else ["Kate's chief moved to Madrid"])
            assert [one.content for one in await host.memories()] == left
            assert host.merging.statistics().related == 0


async def test_two_that_are_linked_one_way_are_not_linked_the_other_way(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bucket.host(threshold=1.0) as host:
        first, second = await host.remember("Kate moved to Madrid"), await host.remember("Kate's boss moved to Madrid")
        name = second.rpartition("/")[2].removesuffix(".md")
        await rewrite(host, first, "---\ntype:", f"---\nlinks: {{related_to: [{name}]}}\ntype:")
        assert (await host.parsed(first)).links == (("related_to", name),)
        async with judging(host, monkeypatch, second, then=nothing):
            assert (await host.parsed(second)).links == ()


async def test_a_memory_is_linked_to_the_three_it_is_nearest_to(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RELATED", -1.0)
    async with bucket.host(threshold=1.0) as host:
        for who in ("Kate", "Ann", "Bob", "Zoe", "Eve"):
            await host.remember(f"{who} moved to Madrid")
        last = await host.remember("The build needs Python 3.12")
        async with judging(host, monkeypatch, last, then=nothing):
            assert len((await host.parsed(last)).links) == 3


async def test_two_that_are_as_near_as_the_figure_and_no_nearer_are_not_linked(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bucket.host(threshold=1.0) as host:
        first, second = await host.remember("Kate moved to Madrid"), await host.remember("Kate's boss moved to Madrid")
        found, _ = await alike(host.merging._recall, SPACE, keys.MEMORIES, "Kate's boss moved to Madrid")
        (cosine,) = [one.near for one in found if one.key == first]
        monkeypatch.setattr(module, "RELATED", cosine)
        async with judging(host, monkeypatch, second, then=nothing):
            assert (await host.parsed(second)).links == ()


async def test_what_goes_and_what_nothing_is_alike_enough_for_waits_for_nothing(bucket: Bucket) -> None:
    key = f"{SPACE}/memories/20260101T000000_fact_00000000.md"
    async with bucket.host() as host:
        host.merging.heard(Change(key, "delete", "", "local"))
        assert host.merging.statistics().waiting == 0
    async with bucket.host(threshold=1.0) as host:
        host.merging.heard(Change(key, "put", "e", "local"))
        assert host.merging.statistics().waiting == 0


async def test_a_model_that_fails_costs_the_comparison_by_meaning_alone(
    bucket: Bucket, expect_log: Callable[[str], None]
) -> None:
    expect_log("searching by words alone")

    async def failing() -> Embedder | None:
        raise EmbeddingUnavailable("no weights")

    async with bucket.host(model=failing) as host:
        await host.remember(SHOULDER)
        await host.remember(SHOULDER)
        await host.settled()
        assert len(await host.memories()) == 1


def test_merging_twice_changes_nothing() -> None:
    older = Memory("memories", "fact", "a", 0.6, at(1), at(1), subjects=("x",), links=(("part_of", "p"),))
    newer = Memory("memories", "decision", "b", 0.8, at(2), at(2), subjects=("y", "x"))
    once = merge(older, newer, "o")
    assert (once.content, once.type, once.created_at, once.updated_at) == ("b", "decision", at(1), at(2))
    assert once.links == (("updates", "o"), ("part_of", "p"))
    assert merge(older, once, "o") == once


def at(second: int) -> object:
    return ManualClock().now() + timedelta(seconds=second)


async def test_who_was_told_to_stop_accepts_nothing_more_and_the_next_mount_compares_the_rest(bucket: Bucket) -> None:
    """What is accepted behind the last wait for the bucket would be missing from it when the mount is gone."""
    async with bucket.host() as host:
        await host.remember(SHOULDER)
        await host.settled()
        await host.remember(PRECISE)
        await host.merging.stop()
        await host.replica.uploaded()
        assert len(host.replica.journal.ops) == 0
        for _ in range(20):
            await trio.sleep(0.01)
            assert len(host.replica.journal.ops) == 0
    async with bucket.host() as host:
        await host.merging._recall.prepare([SPACE], DONE_WITHIN)
        await host.settled()
        (left,) = await host.memories()
        assert left.content == PRECISE


@pytest.mark.parametrize(
    ("older", "newer", "left"),
    [
        ("agent", "agent", ["agent"]),
        ("tool", "tool", ["tool"]),
        ("tool", "agent", ["tool"]),
        ("imported", "user", ["user"]),
        ("web", "user", ["user"]),
        ("agent", "tool", ["agent", "tool"]),
        ("user", "agent", ["user", "agent"]),
        ("agent", "web", ["agent", "web"]),
        ("web", "agent", ["web", "agent"]),
    ],
)
async def test_what_is_merged_has_the_lower_class_and_no_memory_gives_way_to_one_of_a_lower_class(
    host: Host, older: str, newer: str, left: list[str]
) -> None:
    for text, trust in ((SHOULDER, older), (PRECISE, newer)):
        key = await host.remember(f"---\ntrust: {trust}\n---\n{text}")
        if trust == "user":  # no text says so of itself
            await vouch(host.replica, host.clock, await host.replica.names.stat(key), Trust.USER, by="ann")
        await host.settled()

    level = await host.replica.names.listing(f"{SPACE}/{keys.MEMORIES}/", fresh=True)
    names = [f"{SPACE}/{keys.MEMORIES}/{name}" for name in sorted(level.objects) if name.endswith(".md")]
    assert [(await trust_of_object(host.replica, key)).word for key in names] == left
