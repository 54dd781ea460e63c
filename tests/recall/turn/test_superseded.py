"""An observation that a newer one corrects is not told unasked, stays found and marked, and comes after the newer; two
that contradict one another are one line with their dates.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from recall_world import SPACE, Bucket, prehook

from livememfs.recall.turn.context import ContextPages
from livememfs.recall.turn.superseded import LOOKED_UP, standing
from livememfs.recall.turn.timeline import line
from livememfs.records import keys
from livememfs.records.observation import CONTRADICTED, CONTRADICTS, SUPERSEDED, SUPERSEDES, Observation
from livememfs.records.trust import FIELD
from livememfs.testing.clock import START

FILE = "src/auth.py"
_numbers = count(1)


def seen(bucket: Bucket, title: str, **extra: Any) -> Observation:
    """An observation of FILE, a day after the last one."""
    bucket.clock.advance(hours=24)
    at = bucket.clock.now()
    return Observation(f"{next(_numbers):08x}", "s-0", at, "change", title, files_modified=(FILE,), extra=extra)


async def put(bucket: Bucket, *observations: Observation) -> None:
    for each in observations:
        await bucket.memory.put(keys.observations_prefix(SPACE) + each.name, each.render())


def linked(older: Observation, newer: Observation, field: str = SUPERSEDES) -> tuple[Observation, Observation]:
    back = {SUPERSEDES: SUPERSEDED, CONTRADICTS: CONTRADICTED}[field]
    return older.linking(back, newer.link), newer.linking(field, older.link)


async def about(bucket: Bucket) -> str:
    """What is told about the file."""
    async with prehook(bucket) as here:
        return await here.file(SPACE, "s", FILE, "")


async def context(bucket: Bucket) -> str:
    async with bucket.mount() as here:
        return await ContextPages(here.replica, bucket.clock).page(SPACE)


OLD, NEW = "Tokens last 24 hours", "Tokens last 7 days"


async def test_what_is_superseded_is_told_neither_about_a_file_nor_in_the_context(bucket: Bucket) -> None:
    await put(bucket, *linked(seen(bucket, OLD), seen(bucket, NEW)))

    for told in (await about(bucket), await context(bucket)):
        assert (OLD in told, NEW in told) == (False, True)


async def test_it_stays_found_behind_the_newer_and_marked_with_its_id(bucket: Bucket) -> None:
    """Although it fits the question better."""
    older, newer = linked(seen(bucket, OLD), seen(bucket, "The auth module forgets tokens after a week"))
    await put(bucket, older, newer)
    async with bucket.mount() as here:
        await here.indexed()
        found = (await here.ask("in:observations tokens last 24 hours")).found.hits

    assert [hit.record.key.rpartition("/")[2] for hit in found] == [newer.name, older.name]
    assert found[1].record.mark == f"from tool output, superseded by #{newer.id}"
    assert found[0].record.mark == "from tool output"


@pytest.mark.parametrize("classes", [("agent", "tool"), ("tool", "web")])
async def test_one_of_a_lower_class_hides_none_of_a_higher(bucket: Bucket, classes: tuple[str, str]) -> None:
    """Whatever the objects in the bucket say of one another."""
    older, newer = seen(bucket, OLD, **{FIELD: classes[0]}), seen(bucket, NEW, **{FIELD: classes[1]})
    await put(bucket, *linked(older, newer))

    assert OLD in await about(bucket)
    assert OLD in await context(bucket)


@pytest.mark.parametrize("field", [SUPERSEDES, CONTRADICTS])
async def test_a_link_to_what_was_forgotten_hides_nothing(bucket: Bucket, field: str) -> None:
    older, _ = linked(seen(bucket, OLD), seen(bucket, NEW), field)
    await put(bucket, older)

    assert OLD in await about(bucket)
    assert OLD in await context(bucket)


async def test_two_that_contradict_one_another_are_told_in_one_line_with_their_dates(bucket: Bucket) -> None:
    older, newer = linked(seen(bucket, OLD), seen(bucket, NEW), CONTRADICTS)
    await put(bucket, older, newer)

    told = [each for each in (await about(bucket)).splitlines() if "Tokens" in each]
    days = [f"{each.created_at:%Y-%m-%d}" for each in (older, newer)]
    assert len(told) == 1
    assert f"{days[0]}: {OLD} (from tool output); {days[1]}: {NEW}" in told[0]
    shown = await context(bucket)
    assert f"{OLD} (contradicted by #{newer.id})" in shown
    assert f"{NEW} (contradicts #{older.id})" in shown


async def test_of_a_pair_what_is_from_the_web_is_not_told(bucket: Bucket) -> None:
    older, newer = linked(seen(bucket, OLD), seen(bucket, NEW, **{FIELD: "web"}), CONTRADICTS)
    await put(bucket, older, newer)

    told = await about(bucket)
    assert (OLD in told, NEW in told) == (True, False)


async def test_a_turn_looks_up_so_many_at_most(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = [seen(bucket, f"Newer {number}") for number in range(16)]
    olders = []
    for number in range(30):
        older = seen(bucket, f"Older {number}")
        for each in newer:
            older = older.linking(SUPERSEDED, each.link)
        olders.append(older)
    await put(bucket, *olders, *newer)
    looked: list[int] = []
    async with prehook(bucket) as here:
        from livememfs.recall.index.local import Index

        called = Index.called

        def counting(self: Index, refs: Any) -> Any:
            looked.append(len(refs))
            return called(self, refs)

        monkeypatch.setattr(Index, "called", counting)
        await here.file(SPACE, "s", FILE, "")
    assert looked
    assert max(looked) <= LOOKED_UP


def test_a_circle_hides_not_itself() -> None:
    one = Observation("0000000a", "s", START, "change", OLD)
    assert standing([one.linking(SUPERSEDED, one.link)]) != []


def test_a_line_of_the_timeline_says_what_supersedes_it() -> None:
    one = Observation("0000000a", "s", START, "change", OLD)
    assert "(superseded by #0badcafe)" in line(one.linking(SUPERSEDED, "20260220T140000_change_0badcafe"))
