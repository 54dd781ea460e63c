"""Writing one note: complete, under a free canonical key, in the bucket when the call returns."""

from __future__ import annotations

import pytest

from livememfs.cache.replica import Replica
from livememfs.errors import AlreadyExists, BadRequest, NotFound, NotText, TooLarge, Unreachable
from livememfs.memories.notes import MAX_ATTEMPTS, write_note
from livememfs.records import keys
from livememfs.records.keys import NoteName
from livememfs.records.metadata import META_NAME
from livememfs.records.note import MAX_NOTE_BYTES, Note, order_of, uid_ending, uid_of
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import Fault, FaultyStore


class House:
    """A bucket with the space `alpha`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = FaultyStore(MemoryStore(self.clock))
        self.replica = Replica(self.store)

    async def notes(self) -> list[str]:
        """The names in `live/`."""
        names = [item.key.removeprefix("alpha/live/") for item in (await list_all(self.store, "alpha/live/")).objects]
        return [name for name in names if name != ".keep"]

    async def read(self, key: str) -> Note:
        """The note in the bucket."""
        return Note.parse((await self.store.get(key)).data, path=key)


@pytest.fixture
async def house() -> House:
    made = House()
    await spaces.create(made.replica, made.clock, "alpha")
    return made


async def test_a_note_is_completed_and_named(house: House) -> None:
    key = await write_note(
        house.replica,
        house.clock,
        "alpha",
        "We use S3.\n",
        agent="cline dev",
        category="decision",
        tags=("a", "b"),
        choose_uid=lambda attempt: "a1b2c3d4",
    )

    assert key == "alpha/live/20260220T140000_cline-dev_decision_a1b2c3d4.md"
    assert await house.read(key) == Note(START, "cline dev", "decision", ("a", "b"), "alpha", "We use S3.\n")
    assert (await house.store.head(key)).meta == {}


async def test_a_text_alone_is_enough(house: House) -> None:
    note = await house.read(await write_note(house.replica, house.clock, "alpha", "x", agent="a"))

    assert (note.category, note.tags, note.body) == ("observation", (), "x")


async def test_front_matter_in_the_text_goes_first(house: House) -> None:
    text = "---\ntags: [mine]\nagent: me\nextra: 1\n---\nbody"
    key = await write_note(
        house.replica, house.clock, "alpha", text, agent="a", category="todo", tags=["theirs"], written_name="issue.md"
    )
    note = await house.read(key)

    assert (note.agent, note.category, note.tags, dict(note.extra)) == ("me", "todo", ("mine",), {"extra": 1})


async def test_odd_front_matter_is_kept_as_body(house: House) -> None:
    text = "---\nno mapping\n---\nbody"
    note = await house.read(await write_note(house.replica, house.clock, "alpha", text, agent="a", category="todo"))

    assert (note.category, note.body) == ("todo", text)


async def test_the_written_name_is_kept_and_gives_the_category(house: House) -> None:
    key = await write_note(
        house.replica,
        house.clock,
        "alpha",
        "x",
        agent="a",
        written_name="todo-läuft.md",
    )
    name = NoteName.parse(keys.parse(key).name)

    assert name is not None
    assert (name.category, name.uid) == ("todo", uid_of(0, uid_ending("alpha", "todo-läuft.md")))
    assert (await house.store.head(key)).meta == {META_NAME: "todo-läuft.md"}


async def test_a_taken_name_is_passed_over(house: House) -> None:
    asked: list[int] = []

    def choose(attempt: int) -> str:
        asked.append(attempt)
        return ["11111111", "11111111", "22222222"][attempt]

    first = await write_note(house.replica, house.clock, "alpha", "one", agent="a", choose_uid=lambda _: "11111111")
    second = await write_note(house.replica, house.clock, "alpha", "two", agent="a", choose_uid=choose)

    assert asked == [0, 1, 2]
    assert ((await house.read(first)).body, (await house.read(second)).body) == ("one", "two")


async def test_notes_of_one_second_are_numbered_in_their_order(house: House) -> None:
    written = [await write_note(house.replica, house.clock, "alpha", f"{n}", agent="a") for n in range(50)]
    names = [NoteName.parse(keys.parse(key).name) for key in written]

    assert [order_of(name.uid) for name in names if name is not None] == list(range(50))
    assert sorted(written) == written


async def test_there_is_an_end_to_trying(house: House) -> None:
    tried: list[int] = []
    await write_note(house.replica, house.clock, "alpha", "one", agent="a", choose_uid=lambda _: "11111111")
    with pytest.raises(AlreadyExists, match="11111111"):
        await write_note(
            house.replica,
            house.clock,
            "alpha",
            "two",
            agent="a",
            choose_uid=lambda attempt: tried.append(attempt) or "11111111",
        )

    assert len(tried) == MAX_ATTEMPTS
    assert len(await house.notes()) == 1


async def test_many_notes_of_one_second_are_many_objects(house: House) -> None:
    for n in range(50):
        await write_note(house.replica, house.clock, "alpha", f"note {n}", agent="a")

    assert len(await house.notes()) == 50


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", BadRequest),
        (" \n", BadRequest),
        ("---\nagent: me\n---\n\n", BadRequest),
        ("\ud800", NotText),
        ("x" * (MAX_NOTE_BYTES + 1), TooLarge),
    ],
)
async def test_what_cannot_be_a_note_is_refused(house: House, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await write_note(house.replica, house.clock, "alpha", text, agent="a")

    assert await house.notes() == []


async def test_arguments_may_be_too_large_too(house: House) -> None:
    with pytest.raises(TooLarge):
        await write_note(house.replica, house.clock, "alpha", "x", agent="a", tags=["t" * 100] * 1_000)


async def test_a_note_needs_a_space(house: House) -> None:
    with pytest.raises(NotFound, match="beta"):
        await write_note(house.replica, house.clock, "beta", "x", agent="a")

    assert await house.notes() == []


async def test_a_failure_of_the_store_is_the_callers_to_know(house: House) -> None:
    house.store.script("put", Fault(before=Unreachable("gone")))
    with pytest.raises(Unreachable):
        await write_note(house.replica, house.clock, "alpha", "x", agent="a")

    assert await house.notes() == []
