"""Memories as objects: the forgotten can come back, what is asked for by its id is found, the purged is gone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from livememfs.cache.replica import Replica
from livememfs.errors import AlreadyExists, BadRequest, LiveMemError, NotFound
from livememfs.memories import storing
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock

FOLDER = "alpha/memories"
DAVID = "20260101T000000_fact_0000000a"
ANNA = "20260102T000000_event_0000000b"
SECOND = timedelta(seconds=1)


class House:
    """A bucket with the space `alpha`, and a host that uploads nothing before it is told to."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.replica = Replica(self.store)

    async def put(self, name: str, text: str | bytes = "David lives in Pau") -> None:
        """A file of the folder `memories`, written by another host."""
        await self.store.put(f"{FOLDER}/{name}", text.encode() if isinstance(text, str) else text)

    async def former(self, memory_id: str, moment: datetime, text: str, *, forgotten: bool = False) -> str:
        """A former version of a memory, kept at a moment."""
        key = keys.memory_history_key("alpha", "memories", memory_id, moment)
        await self.store.put(key, (f"---\nforgotten: true\n---\n{text}" if forgotten else text).encode())
        return key

    async def forget(self, name: str) -> str:
        return await storing.forget(self.replica, self.clock, await self.replica.names.look(f"{FOLDER}/{name}"))

    async def restore(self, memory_id: str) -> str:
        return await storing.restore(self.replica, self.clock, "alpha", "memories", memory_id)

    async def versions(self, memory_id: str = "") -> list[tuple[str, str]]:
        """The former versions: the id and the text of each."""
        former = await storing.versions(self.replica, "alpha", "memories", memory_id)
        return [(old.id, old.memory.content) for old in former]

    async def current(self, collection: str = "memories") -> list[tuple[str, str]]:
        found = await storing.current(self.replica, self.clock, "alpha", collection)
        return [(of, memory.content) for of, memory in found]

    async def the_one(self, beginning: str) -> str:
        info = await storing.the_one(self.replica, self.clock, "alpha", "memories", beginning)
        return info.key.removeprefix(f"{FOLDER}/")

    async def everything(self) -> list[str]:
        """The names below the folder that a listing shows, with what still waits for the bucket."""
        infos = await self.replica.names.walk(f"{FOLDER}/", local=True)
        names = [info.key.removeprefix(f"{FOLDER}/") for info in infos]
        return [name for name in names if name != keys.KEEP]

    async def read(self, key: str) -> Memory:
        data = (await self.replica.read(key)).data
        return Memory.parse(data, path=key, collection="memories", name=key.rpartition("/")[2])


@pytest.fixture
async def house() -> House:
    made = House()
    await spaces.create(made.replica, made.clock, "alpha")
    return made


def until(memory_id: str, moment: datetime) -> str:
    return f"{memory_id}_until_{moment:%Y%m%dT%H%M%S}.md"


# --- forgetting and bringing back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"{DAVID}.md", until(DAVID, START + SECOND)])
async def test_what_is_forgotten_is_kept_under_its_id_and_is_no_memory(house: House, name: str) -> None:
    await house.put(name)

    kept = await house.forget(name)

    assert kept == keys.memory_history_key("alpha", "memories", DAVID, START)
    assert await house.everything() == [kept.removeprefix(f"{FOLDER}/")]
    assert (await house.read(kept)).forgotten
    (old,) = await storing.forgotten(house.replica, "alpha", "memories")
    assert (old.id, old.key, old.moment, old.memory.content) == (DAVID, kept, START, "David lives in Pau")


@pytest.mark.parametrize(
    ("left", "ends"), [(SECOND, START + SECOND), (timedelta(0), None), (-SECOND, None), (None, None)]
)
async def test_what_comes_back_has_its_end_unless_that_has_passed(
    house: House, left: timedelta | None, ends: datetime | None
) -> None:
    """With an end that has passed it would vanish at once."""
    end = f"---\nexpires_at: {(START + left).isoformat()}\n---\n" if left is not None else ""
    name = until(DAVID, START + left) if left is not None else f"{DAVID}.md"
    await house.put(name, f"{end}David is ill")
    await house.forget(name)

    key = await house.restore(DAVID)

    assert key == f"{FOLDER}/" + (until(DAVID, ends) if ends is not None else f"{DAVID}.md")
    memory = await house.read(key)
    assert (memory.content, memory.forgotten, memory.expires_at) == ("David is ill", False, ends)
    assert await house.everything() == [key.removeprefix(f"{FOLDER}/")]


async def test_what_comes_back_keeps_a_name_of_its_own(house: House) -> None:
    await house.put("shoulder.md")
    await house.forget("shoulder.md")

    assert await house.restore("shoulder") == f"{FOLDER}/shoulder.md"


async def test_the_newest_version_comes_back_and_older_ones_stay(house: House) -> None:
    older = await house.former(DAVID, START - SECOND, "David lives in Pau")
    await house.former(DAVID, START, "David lives in Toulouse", forgotten=True)

    key = await house.restore(DAVID)

    assert (await house.read(key)).content == "David lives in Toulouse"
    assert sorted(await house.everything()) == sorted([f"{DAVID}.md", older.removeprefix(f"{FOLDER}/")])


async def test_only_what_was_forgotten_last_comes_back(house: House) -> None:
    with pytest.raises(NotFound, match=f"{FOLDER}/{DAVID}"):
        await house.restore(DAVID)
    await house.former(DAVID, START - SECOND, "an older text", forgotten=True)
    await house.former(DAVID, START, "a text that an edit replaced")
    with pytest.raises(NotFound, match=f"{FOLDER}/{DAVID}"):
        await house.restore(DAVID)


async def test_what_comes_back_replaces_nothing(house: House) -> None:
    kept = await house.former(DAVID, START, "David lives in Pau", forgotten=True)
    await house.replica.put(f"{FOLDER}/{DAVID}.md", b"David lives in Toulouse")

    with pytest.raises(AlreadyExists, match=DAVID):
        await house.restore(DAVID)

    assert (await house.read(f"{FOLDER}/{DAVID}.md")).content == "David lives in Toulouse"
    assert kept.removeprefix(f"{FOLDER}/") in await house.everything()


async def test_former_versions_come_newest_first_and_a_damaged_one_hides_none(house: House) -> None:
    for number in range(3):
        await house.former(DAVID, START + number * SECOND, f"version {number}")
    await house.put(f".history/{DAVID}/at some time.md", "its name has no moment")
    await house.put(f".history/{DAVID}/{START + 9 * SECOND:%Y%m%dT%H%M%S}.000000Z.md", b"\xff\xfe")
    await house.former(f"{DAVID}b", START, "of another memory")

    assert await house.versions(DAVID) == [(DAVID, f"version {number}") for number in (2, 1, 0)]
    assert await house.versions() == [(f"{DAVID}b", "of another memory"), *await house.versions(DAVID)]


@pytest.mark.parametrize(
    ("name", "of"),
    [(f"{DAVID}.md", DAVID), (until(DAVID, START), DAVID), ("shoulder.md", "shoulder"), ("a.md.md", "a.md")],
)
def test_the_id_of_a_memory_is_its_name_without_its_end(name: str, of: str) -> None:
    assert storing.id_of(name) == of


# --- what a command asks for -------------------------------------------------------------------------------------


async def test_those_that_are_there_now_come_by_name(house: House) -> None:
    await house.put(until(ANNA, START + SECOND), "---\nforgotten: false\n---\nAnna is away")
    await house.put(until("20251231T000000_fact_0000000c", START), "it has ended this very second")
    await house.put("20251231T000000_fact_0000000d.md", b"\xff damaged")
    await house.put("shoulder.md", "David's shoulder hurts")
    await house.former(DAVID, START, "David lives in Pau")
    house.replica.save(f"{FOLDER}/{DAVID}.md", b"David lives in Toulouse", meta={}, base=None)  # waits for the bucket
    await house.store.put("alpha/goals/walk.md", b"to walk")

    assert await house.current() == [
        (DAVID, "David lives in Toulouse"),
        (ANNA, "Anna is away"),
        ("shoulder", "David's shoulder hurts"),
    ]
    assert await house.current("goals") == [("walk", "to walk")]


async def test_what_vanishes_while_it_is_read_is_left_out(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.put(f"{DAVID}.md")
    await house.put(f"{ANNA}.md", "Anna is away")
    listed = await house.replica.names.walk(f"{FOLDER}/")
    await house.store.delete(f"{FOLDER}/{ANNA}.md")

    async def as_before(prefix: str, *, local: bool = False) -> object:
        return listed

    monkeypatch.setattr(house.replica.names, "walk", as_before)
    assert await house.current() == [(DAVID, "David lives in Pau")]


@pytest.mark.parametrize("beginning", [DAVID, f"{DAVID}.md", "20260101", until(DAVID, START + SECOND)])
async def test_a_memory_is_found_by_the_beginning_of_its_id(house: House, beginning: str) -> None:
    name = until(DAVID, START + SECOND)
    house.replica.save(f"{FOLDER}/{name}", b"David is ill", meta={}, base=None)  # waits for the bucket
    await house.put(f"{ANNA}.md")
    await house.put(until("20260101T000000_fact_0000000c", START), "it has ended this very second")
    await house.put("20260101T000000_notes.txt", "no memory")
    await house.former("20260101T000000_fact_0000000d", START, "a former version")

    assert await house.the_one(beginning) == name


async def test_a_beginning_of_several_or_of_none_is_refused(house: House) -> None:
    for name in (f"{DAVID}.md", f"{ANNA}.md"):
        await house.put(name)

    with pytest.raises(BadRequest, match="2 memories begin so"):
        await house.the_one("202601")
    with pytest.raises(NotFound, match=f"{FOLDER}/2025"):
        await house.the_one("2025")


async def test_a_purge_removes_the_memory_and_its_former_versions_alone(house: House) -> None:
    await house.put(until(DAVID, START - SECOND))  # though it has ended
    await house.put(f"{DAVID}b.md")
    await house.put(f"{ANNA}.md")
    for moment in (START, START + SECOND):
        await house.former(DAVID, moment, "David lives in Pau")
    others = [await house.former(of, START, "another's") for of in (f"{DAVID}b", ANNA)]

    assert await storing.purge(house.replica, "alpha", "memories", DAVID) == 3

    left = [info.key for info in (await list_all(house.store, f"{FOLDER}/")).objects]
    assert set(left) - {f"{FOLDER}/{keys.KEEP}"} == {f"{FOLDER}/{DAVID}b.md", f"{FOLDER}/{ANNA}.md", *others}
    with pytest.raises(NotFound, match=f"{FOLDER}/{DAVID}"):
        await storing.purge(house.replica, "alpha", "memories", DAVID)


async def test_each_needs_a_space(house: House) -> None:
    replica, clock = house.replica, house.clock
    await house.store.put(f"beta/memories/{DAVID}.md", b"there is no _meta.json beside it")
    for asked in (
        storing.current(replica, clock, "beta", "memories"),
        storing.the_one(replica, clock, "beta", "memories", DAVID),
        storing.purge(replica, "beta", "memories", DAVID),
        storing.remember(replica, clock, "beta", "memories", "David lives in Pau", agent="me"),
    ):
        with pytest.raises(NotFound, match="beta"):
            await asked


async def test_a_memory_that_is_remembered_has_the_id_that_it_is_asked_for_by(house: House) -> None:
    heard: list[LiveMemError] = []
    key = await storing.remember(
        house.replica, house.clock, "alpha", "goals", "to walk", agent="me", on_private=heard.append
    )

    assert heard == []  # nothing in it is private
    assert key.startswith("alpha/goals/20260220T140000_goal_")
    assert (await house.store.get(key)).data.endswith(b"to walk")
    assert await house.current("goals") == [(storing.id_of(key.rpartition("/")[2]), "to walk")]
