"""Whether a note was taken away: told by the ids of the writes that made it."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import patch

import pytest

from livememfs import errors
from livememfs.cache.removals import (
    CLOCKS,
    MADE_IDS,
    Removals,
    Taken,
    ids_of,
    makers_of,
    next_version,
    removal,
    with_makers,
)
from livememfs.records import keys
from livememfs.records.metadata import META_MADE, META_OP, META_SHA256
from livememfs.store.base import ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore

NOTE = "s/live/20261122T091001_me_decision_0a1b2c01.md"
SECOND = 1_000_000_000


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(MemoryStore(ManualClock()))


def test_a_note_names_the_first_of_its_makers_once_each() -> None:
    ids = [f"id{number}" for number in range(MADE_IDS + 1)]
    assert with_makers({"k": "v", META_MADE: "old"}, [ids[0], *ids]) == {"k": "v", META_MADE: " ".join(ids[:-1])}
    assert with_makers({"k": "v", META_MADE: "old"}, ()) == {"k": "v"}
    assert with_makers({}, ()) == {}


def test_a_version_comes_from_its_makers_or_else_from_its_own_write() -> None:
    assert makers_of({META_MADE: "a b", META_OP: "c"}) == ("a", "b")
    assert makers_of({META_OP: "c"}) == ("c",)
    assert ids_of({META_MADE: "a b", META_OP: "b"}) == ("a", "b")
    assert makers_of(None) == ids_of(None) == ()


@pytest.mark.parametrize(
    ("own", "earlier", "sha256", "taken"),
    [
        ("mine", [], "", True),
        ("other", ["mine"], "same", True),
        ("other", ["mine"], "", False),
        ("other", [], "same", False),
        ("other", ["mine"], "different", False),
    ],
)
async def test_a_trace_tells_of_the_very_write_or_of_the_same_bytes_of_an_earlier_one(
    store: FaultyStore, own: str, earlier: list[str], sha256: str, taken: bool
) -> None:
    removals = Removals(store)
    assert not await removals.has_taken(NOTE, own, earlier, sha256, SECOND)
    await removals.leave_trace(NOTE, ["mine"], "same")
    assert await removals.has_taken(NOTE, own, earlier, sha256, SECOND) == taken


def test_bytes_that_nobody_knows_are_not_the_same() -> None:
    assert not Taken(frozenset({"mine"})).was("other", ["mine"], "")


async def test_without_an_id_no_trace_is_left(store: FaultyStore) -> None:
    await Removals(store).leave_trace(NOTE, [], "same")
    assert store.counts.total() == 0


async def test_what_the_store_refuses_for_good_says_nothing_and_what_passes_is_told(store: FaultyStore) -> None:
    removals = Removals(store)
    refused, passing = errors.Denied(key=NOTE, detail="no"), errors.Throttled(key=NOTE)
    for verb in ("get", "put"):
        store.script(verb, Fault(before=refused), Fault(before=passing))
    assert not await removals.has_taken(NOTE, "mine", [], "", SECOND)
    with pytest.raises(errors.Throttled):
        await removals.has_taken(NOTE, "mine", [], "", SECOND)
    await removals.leave_trace(NOTE, ["mine"], "")
    with pytest.raises(errors.Throttled):
        await removals.leave_trace(NOTE, ["mine"], "")


async def test_entries_from_before_the_note_are_not_read_as_far_as_clocks_may_differ(store: FaultyStore) -> None:
    entry = await store.put(keys.ledger_key("s", 1), b"{}")
    removals = Removals(store)
    allowed = CLOCKS // timedelta(seconds=1) * SECOND
    for since, read in ((entry.modified_ns + allowed + 1, False), (entry.modified_ns + allowed, True)):
        store.forget()
        await removals.has_taken(NOTE, "mine", [], "", since)
        assert ([asked.key for asked in store.requests if asked.verb == "get"][1:] == [entry.key]) == read


async def test_an_entry_that_goes_before_it_is_read_tells_nothing(store: FaultyStore) -> None:
    entry = await store.put(keys.ledger_key("s", 1), b"{}")
    store.script("get", None, Fault(before=errors.ObjectMissing(key=entry.key)))
    await Removals(store).leave_trace(NOTE, ["mine"], "")
    assert await Removals(store).has_taken(NOTE, "mine", [], "", SECOND)


@pytest.mark.parametrize(
    ("key", "meta", "told"),
    [
        (NOTE, {META_OP: "b", META_MADE: "a", META_SHA256: "s"}, {META_MADE: "a b", META_SHA256: "s"}),
        (NOTE, {META_OP: "b"}, {META_MADE: "b", META_SHA256: ""}),
        (NOTE, {META_SHA256: "s"}, {}),
        (NOTE, {}, {}),
        (NOTE, None, {}),
        ("s/files/x", {META_OP: "b"}, {}),
    ],
)
def test_of_a_note_that_goes_its_makers_are_known_when_its_own_write_is(
    key: str, meta: dict[str, str] | None, told: dict[str, str]
) -> None:
    assert removal(key, ObjectInfo(key, "v1", 1, 1, meta)) == told
    assert removal(key, None) == {}


def test_the_next_version_of_a_note_names_the_makers_of_the_one_before() -> None:
    base = ObjectInfo(NOTE, "v1", 1, 1, {META_OP: "a"})
    assert next_version(NOTE, {"k": "v", META_MADE: "x"}, base) == {"k": "v", META_MADE: "a"}
    assert next_version(NOTE, {"k": "v", META_MADE: "x"}, None) == {"k": "v"}
    assert next_version("s/files/x", {"k": "v", META_MADE: "x"}, base) == {"k": "v", META_MADE: "x"}


async def test_each_entry_is_read_once_and_of_very_many_the_newest(store: FaultyStore) -> None:
    for number in range(1, 5):
        await store.inner.put(keys.ledger_key("s", number), b"{}")
    removals = Removals(store)
    with patch("livememfs.cache.removals.ENTRIES", 3), patch("livememfs.cache.removals.REMEMBERED", 3):
        for _ in range(2):
            await removals.has_taken(NOTE, "mine", [], "", 0)
            asked = [request.key for request in store.requests if request.verb == "get"]
            assert [key for key in asked if key != keys.removed_key(NOTE)] == [
                keys.ledger_key("s", number) for number in (4, 3, 2)
            ]
        assert len(removals._entries) == 3
        await store.inner.put(keys.ledger_key("s", 5), b"{}")
        await removals.has_taken(NOTE, "mine", [], "", 0)
        assert len(removals._entries) == 3
