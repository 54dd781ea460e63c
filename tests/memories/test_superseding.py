"""Supersession: a memory that corrects another replaces it; where that is not sure, both stay and are linked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from test_merging import SPACE, Bucket, Host

from livememfs.memories.merging import UNSURE, contradicts
from livememfs.memories.storing import id_of, versions
from livememfs.records import keys


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with Bucket(tmp_path).host() as made:
        yield made


def named(key: str) -> str:
    return id_of(key.rpartition("/")[2])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Sophie est malade", "Sophie est guerie"),
        ("Marie likes oysters", "Marie hates oysters since last summer"),
        ("The user lives in Lyon", "The user moved to Marseille last month"),
    ],
)
async def test_a_correction_replaces_what_it_corrects_which_stays_in_the_history(
    host: Host, older: str, newer: str
) -> None:
    first, second = await host.remember(older), await host.remember(newer)
    await host.settled()
    (left,) = await host.memories()
    assert left.content == newer
    assert ("updates", named(first)) in left.links
    former = await versions(host.replica, SPACE, keys.MEMORIES, named(first))
    assert [version.memory.content for version in former] == [older]
    assert named(second) != named(first)


async def test_what_is_unsure_stays_and_the_newer_one_is_linked_to_what_it_contradicts(host: Host) -> None:
    first = await host.remember("The platform team indents with tabs")
    second = await host.remember("The platform team indents with spaces")
    await host.settled()
    older, newer = await host.memories()
    assert (older.links, newer.links) == ((), (("contradicts", named(first)),))
    assert newer.extra[UNSURE] == [named(first)]
    assert contradicts(newer, older, named(first))
    assert not contradicts(older, newer, named(second))
    assert host.merging.statistics().contradicting == 1


async def test_comparing_twice_links_once(host: Host) -> None:
    await host.remember("The platform team indents with tabs")
    second = await host.remember("The platform team indents with spaces")
    await host.settled()
    data = (await host.replica.read(second)).data
    host.merging._wait_for([second])
    await host.settled()
    assert (await host.replica.read(second)).data == data


async def test_near_but_distinct_facts_are_neither_replaced_nor_linked_as_a_contradiction(host: Host) -> None:
    for text in ("Tom speaks Danish", "Tom speaks Dutch", "Ann lives in Rome", "The sister of Ann lives in Pisa"):
        await host.remember(text)
    await host.settled()
    left = await host.memories()
    assert len(left) == 4
    assert not [link for memory in left for link in memory.links if link[0] == "contradicts"]


async def test_two_hosts_that_store_a_fact_and_its_correction_end_with_the_correction(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path)
    async with bucket.host("one") as one, bucket.host("two") as two:
        await one.remember("Sophie est malade")
        await two.remember("Sophie est guerie")
        for _ in range(200):  # until each has heard of the other's
            await one.settled()
            await two.settled()
            if len(await one.memories()) == 1:
                break
            await trio.sleep(0.05)
        assert [memory.content for memory in await one.memories()] == ["Sophie est guerie"]


async def test_a_memory_that_names_what_it_corrects_takes_its_place_whatever_the_words(host: Host) -> None:
    first = await host.remember("David is confined to bed")
    await host.remember("David is a baker")
    await host.remember(f"---\ncorrects: [{named(first)}]\n---\nDavid hikes every day")
    await host.settled()
    assert [memory.content for memory in await host.memories()] == ["David is a baker", "David hikes every day"]
    former = await versions(host.replica, SPACE, keys.MEMORIES, named(first))
    assert [version.memory.content for version in former] == ["David is confined to bed"]


async def test_an_older_memory_does_not_take_the_place_of_a_newer_one_that_it_names(host: Host) -> None:
    await host.remember("David is a baker")
    older, newer = await host.remember("Ann is a nurse"), await host.remember("Bob plays chess")
    await host.settled()
    there = await host.replica.read(older)
    data = there.data.replace(b"---\ntype:", f"---\ncorrects: [{named(newer)}]\ntype:".encode())
    host.replica.save(older, data, meta=there.info.meta or {}, base=there.info)
    await host.settled()
    assert len(await host.memories()) == 3
