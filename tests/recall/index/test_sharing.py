"""Vectors in the bucket: nobody computes what another has computed, and nothing that happens to them costs more.

Threads do the work, so these tests live in real time.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from recall_world import DONE_WITHIN, SPACE, Bucket, Mount

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.recall.embed.prior import MEANINGS as PRIOR_MEANINGS
from livememfs.recall.embed.prior import TEXTS
from livememfs.recall.index import sharing
from livememfs.recall.index.segments import MOST_ROWS, name_of, parse, render
from livememfs.recall.service import Patience
from livememfs.records import keys
from livememfs.spaces import making as spaces
from livememfs.testing.store import Fault

MODEL = "fake-1"
PREFIX = keys.index_prefix(SPACE, MODEL)


async def fill(bucket: Bucket, count: int, first: int = 0, *, minutes: float = 60) -> None:
    """Notes of different hours, so that none is another's context."""
    for number in range(first, first + count):
        bucket.clock.advance(minutes=minutes)
        await bucket.write(f"n{number}", f"the parrot number{number} is green")


async def segments(bucket: Bucket) -> dict[str, set[bytes]]:
    """The meanings in each segment that the bucket has."""
    found: dict[str, set[bytes]] = {}
    for info in (await bucket.memory.list_page(PREFIX)).objects:
        name = info.key.removeprefix(PREFIX)
        found[name] = set(parse(name, (await bucket.memory.get(info.key)).data, MODEL)[0])
    return found


async def understand(mount: Mount, words: str = "green parrot") -> None:
    """Asks, and waits until all is found by meaning."""
    await mount.ask(words)
    assert await mount.recall.understood(DONE_WITHIN)


async def share(bucket: Bucket, count: int = 20, first: int = 0, *, minutes: float = 60) -> None:
    """A machine of its own embeds new notes and tells the bucket."""
    await fill(bucket, count, first, minutes=minutes)
    async with bucket.mount(share=True, folder=bucket.folder.with_name(f"index-{first}")) as mount:
        await understand(mount)
        await mount.recall.drain()


async def assert_shared(bucket: Bucket, folder: Path) -> None:
    """Another machine finds the vectors of everything in the bucket."""
    async with bucket.mount(share=True, folder=folder) as mount:
        await understand(mount)
    assert bucket.model.embedded == []


async def test_a_second_machine_answers_by_meaning_and_embeds_nothing(bucket: Bucket, tmp_path: Path) -> None:
    await share(bucket)
    assert bucket.embedded == 20 + len(TEXTS)
    bucket.store.forget()

    async with bucket.mount(share=True, folder=tmp_path / "another") as mount:
        await understand(mount)
        answer = await mount.ask("green parrot number7")
        figures = mount.recall.statistics().sharing

    assert bucket.model.embedded == []
    assert "meaning" in answer.found.hits[0].reasons
    assert answer.notes == ()
    assert figures is not None
    assert (figures.read, figures.written) == (20 + len(TEXTS), 0)
    assert bucket.store.counts["get"] == 20 + 1
    assert bucket.store.counts["put"] == 0


async def test_a_new_note_is_embedded_alone_and_its_vector_added(bucket: Bucket) -> None:
    await share(bucket)
    await share(bucket, 1, first=100)

    assert len(bucket.model.embedded) == 1
    found = await segments(bucket)
    assert sorted(map(len, found.values())) == [1, 20 + len(TEXTS)]


async def test_with_sharing_off_nothing_is_asked_or_written(bucket: Bucket) -> None:
    await fill(bucket, 3)
    async with bucket.mount() as mount:
        await understand(mount)
        await mount.recall.drain()

        assert mount.recall.statistics().sharing is None

    assert await segments(bucket) == {}
    assert not [asked for asked in bucket.store.requests if "_index" in asked.key]


async def test_what_was_embedded_before_a_kill_is_written_by_the_next_mount_and_not_embedded_again(
    bucket: Bucket,
) -> None:
    await fill(bucket, 5)
    async with bucket.mount(share=True) as mount:
        await understand(mount)
    assert await segments(bucket) == {}

    async with bucket.mount(share=True) as mount:
        await understand(mount)
        await mount.recall.drain()

    assert bucket.model.embedded == []
    assert [len(found) for found in (await segments(bucket)).values()] == [5 + len(TEXTS)]


async def test_a_bucket_that_may_not_be_written_is_searched_all_the_same(bucket: Bucket) -> None:
    await fill(bucket, 5)
    bucket.store.plan = lambda asked, _: Fault(errors.Denied(path=asked.key)) if asked.verb == "put" else None
    async with bucket.mount(share=True) as mount:
        await understand(mount)
        await mount.recall.drain()
        figures = mount.recall.statistics().sharing

        assert figures is not None
        assert figures.waiting == 5
        assert figures.last_error

        bucket.store.plan = None
        await mount.recall.drain()

    assert [len(found) for found in (await segments(bucket)).values()] == [5 + len(TEXTS)]


async def test_a_bucket_that_does_not_list_its_vectors_is_searched_and_told_later(
    bucket: Bucket, tmp_path: Path
) -> None:
    await share(bucket, 5)
    down = Fault(errors.Unreachable("down"))
    bucket.store.plan = lambda asked, _: down if "_index" in asked.key else None
    async with bucket.mount(share=True, folder=tmp_path / "another") as mount:
        await understand(mount)
        assert len(bucket.model.embedded) == 5 + len(TEXTS)

        bucket.store.plan = None
        await fill(bucket, 1, first=50)
        await mount.indexed()
    async with bucket.mount(share=True, folder=tmp_path / "another") as mount:
        await understand(mount)
        await mount.recall.drain()

    assert sum(map(len, (await segments(bucket)).values())) == 6 + len(TEXTS)


def cut_off(data: bytes) -> bytes:
    return data[:-10]


def of_another(data: bytes) -> bytes:
    return render(MODEL, {b"x" * 16: bytes(64)})


def text(data: bytes) -> bytes:
    return b"hello\n"


@pytest.mark.parametrize("damage", [cut_off, of_another, text])
async def test_a_damaged_segment_is_passed_over_and_its_vectors_computed_and_written_again(
    bucket: Bucket, tmp_path: Path, damage: object
) -> None:
    await share(bucket, 5)
    (name,) = await segments(bucket)
    data = (await bucket.memory.get(PREFIX + name)).data
    assert callable(damage)
    await bucket.memory.put(PREFIX + name, damage(data))

    async with bucket.mount(share=True, folder=tmp_path / "another") as mount:
        await understand(mount)
        await mount.recall.drain()
        figures = mount.recall.statistics().sharing

    assert len(bucket.model.embedded) == 5 + len(TEXTS)
    assert figures is not None
    assert figures.unreadable == 1


async def test_strange_objects_beside_the_segments_are_left_alone(bucket: Bucket, tmp_path: Path) -> None:
    await share(bucket, 5)
    await bucket.memory.put(PREFIX + "README", b"hello")
    await bucket.memory.put(PREFIX + "folder/x.vec", b"hello")

    async with bucket.mount(share=True, folder=tmp_path / "another") as mount:
        await understand(mount)
        figures = mount.recall.statistics().sharing

    assert bucket.model.embedded == []
    assert figures is not None
    assert figures.unreadable == 0


async def test_a_segment_of_vectors_of_another_length_is_no_answer_and_no_failure(
    bucket: Bucket, tmp_path: Path
) -> None:
    await share(bucket, 5)
    data = render(MODEL, {bytes([number] * 16): bytes(32) for number in range(3)})
    await bucket.memory.put(PREFIX + name_of(data), data)

    async with bucket.mount(share=True, folder=tmp_path / "another") as mount:
        await understand(mount)

        assert len((await mount.ask("green parrot")).found.hits) == 5
    assert bucket.model.embedded == []


async def test_many_small_segments_become_one_and_every_vector_stays(bucket: Bucket, tmp_path: Path) -> None:
    await fill(bucket, 3)
    async with bucket.mount(share=True) as mount:
        await understand(mount)
        await mount.recall.drain()
        before: set[bytes] = set().union(*(await segments(bucket)).values())
        for number in range(sharing.MERGED_AT):
            await fill(bucket, 1, first=10 + number)
            await mount.replica.names.refresh(f"{SPACE}/live/")
            await understand(mount, f"green {number}")
            await mount.recall.drain()
    found = await segments(bucket)

    assert len(found) == 2
    assert len(set().union(*found.values())) == len(before) + sharing.MERGED_AT
    assert before <= set().union(*found.values())
    await assert_shared(bucket, tmp_path / "another")


async def test_two_machines_that_tidy_at_the_same_time_lose_nothing(bucket: Bucket, tmp_path: Path) -> None:
    for number in range(sharing.MERGED_AT):
        await share(bucket, 1, first=number)
    await fill(bucket, 2, first=50)
    async with (
        bucket.mount(share=True, folder=tmp_path / "one") as one,
        bucket.mount(share=True, folder=tmp_path / "two") as two,
    ):
        await understand(one)
        await understand(two)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.recall.drain)
            nursery.start_soon(two.recall.drain)
    found = await segments(bucket)
    wanted: set[bytes] = set().union(*found.values())

    assert len(wanted) == sharing.MERGED_AT + 2 + len(TEXTS)
    assert len(found) < sharing.MERGED_AT
    await assert_shared(bucket, tmp_path / "three")


async def forget_notes(bucket: Bucket, count: int) -> None:
    notes = [info.key for info in (await bucket.memory.list_page(keys.live_prefix(SPACE))).objects]
    for key in [key for key in notes if not key.endswith(keys.KEEP)][:count]:
        await bucket.memory.delete(key)


async def test_vectors_of_what_is_gone_are_dropped_but_not_within_the_hour(bucket: Bucket, tmp_path: Path) -> None:
    await share(bucket, 100)
    await forget_notes(bucket, 90)
    (name,) = await segments(bucket)

    await share(bucket, 1, first=200, minutes=59)
    assert name in await segments(bucket)

    await share(bucket, 1, first=201, minutes=2)
    found = await segments(bucket)

    assert name not in found
    left: set[bytes] = set().union(*found.values())
    assert len(left) == 10 + 2 + len(TEXTS)
    assert left >= PRIOR_MEANINGS
    await assert_shared(bucket, tmp_path / "another")


async def test_a_machine_that_has_not_read_all_of_a_space_drops_nothing(bucket: Bucket, tmp_path: Path) -> None:
    """It knows one note, whose vector it has yet to write, and cannot read the others."""
    bucket.clock.advance(minutes=60)
    key = await bucket.write("its own", "the parrot number200 is green")
    async with bucket.mount(folder=tmp_path / "late") as mount:
        await understand(mount)
    own = (await bucket.memory.get(key)).data
    await bucket.memory.delete(key)
    await share(bucket, 50)  # of its vectors most are of what that machine has not read
    await bucket.memory.put(key, own)
    bucket.clock.advance(days=1)
    before: set[bytes] = set().union(*(await segments(bucket)).values())
    away = Fault(before=errors.Unreachable("reset", endpoint="the bucket"))
    bucket.store.plan = lambda asked, _: away if asked.verb == "get" and f"/{keys.LIVE}/" in asked.key else None

    async with bucket.mount(share=True, folder=tmp_path / "late", patience=Patience(0.1, 0.1)) as mount:
        await mount.ask("green parrot")
        while not mount.recall.statistics().sharing.written:  # type: ignore[union-attr]
            await mount.recall.drain()
            await trio.sleep(0.01)

    assert before < set().union(*(await segments(bucket)).values())


async def test_a_removed_space_does_not_come_back_for_its_vectors(bucket: Bucket) -> None:
    await fill(bucket, 3)
    async with bucket.mount(share=True) as mount:
        await understand(mount)
        for info in (await bucket.memory.list_page(f"{SPACE}/")).objects:
            await mount.replica.delete(info.key)
        await mount.recall.drain()

        assert mount.recall.statistics().sharing.waiting == 0  # type: ignore[union-attr]
    assert (await bucket.memory.list_page(f"{SPACE}/_index/")).objects == ()


async def test_a_space_is_not_removed_under_vectors_on_their_way(bucket: Bucket) -> None:
    """They would be what is left of it."""
    await fill(bucket, 3)
    async with bucket.mount(share=True) as mount:
        await understand(mount)
        bucket.store.plan = lambda asked, _: Fault(delay=0.5) if asked.verb == "put" else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mount.recall.drain)
            while not any(asked.verb == "put" for asked in bucket.store.requests):
                await trio.sleep(0.01)
            await spaces.delete(mount.replica, SPACE)
    assert (await bucket.memory.list_page(f"{SPACE}/")).objects == ()


async def test_an_empty_space_is_removed_with_the_vectors_it_had(bucket: Bucket) -> None:
    await share(bucket, 3)
    await forget_notes(bucket, 3)
    replica = Replica(bucket.memory)

    await spaces.remove_empty(replica, SPACE)

    assert (await bucket.memory.list_page(f"{SPACE}/")).objects == ()


def test_a_segment_that_is_full_is_never_merged() -> None:
    half = {bytes(8) + number.to_bytes(8, "big") for number in range(MOST_ROWS // 2 + 1)}
    known = {f"{number}.vec": set(half) for number in range(20)}

    assert sharing._to_merge(known) == set()


def test_sizes_are_merged_when_there_are_eight_of_one_with_all_that_are_smaller() -> None:
    def sized(*sizes: int) -> dict[str, set[bytes]]:
        return {
            f"{n}-{size}": {bytes([n]) + i.to_bytes(15, "big") for i in range(size)} for n, size in enumerate(sizes)
        }

    assert sharing._to_merge(sized(1, 1, 1, 9, 70, 600)) == set()
    assert sharing._to_merge(sized(*[10] * 8, 1, 2, 64)) == set(sized(*[10] * 8, 1, 2))
