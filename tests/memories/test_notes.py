"""Writing one note: complete, under a free canonical key, in the bucket when the call returns."""

from __future__ import annotations

import pytest

from livememfs.cache.replica import Replica
from livememfs.errors import AlreadyExists, BadRequest, NotFound, NotText, TooLarge, Unreachable
from livememfs.memories import storing
from livememfs.memories.notes import write_note
from livememfs.records import keys
from livememfs.records.keys import NoteName
from livememfs.records.note import MAX_NOTE_BYTES, UID_ATTEMPTS, Note, order_of, uid_ending, uid_of
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.store import Fault, FaultyStore

CHANCE = "0123456789abcdef"
ENDING = uid_ending("alpha", CHANCE)


def named(order: int) -> str:
    """The key of a note that says nothing of itself and is written at the start, the `order`th of that second."""
    return f"alpha/live/20260220T140000_a_observation_{uid_of(order, ENDING)}.md"


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
async def house(monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr(storing, "token_hex", lambda _: CHANCE)
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
    )

    assert key == f"alpha/live/20260220T140000_cline-dev_decision_{uid_of(0, ENDING)}.md"
    assert await house.read(key) == Note(START, "cline dev", "decision", ("a", "b"), "alpha", "We use S3.\n")
    assert (await house.store.head(key)).meta == {}


async def test_a_text_alone_is_enough(house: House) -> None:
    note = await house.read(await write_note(house.replica, house.clock, "alpha", "x", agent="a"))

    assert (note.category, note.tags, note.body) == ("observation", (), "x")


async def test_front_matter_in_the_text_goes_first(house: House) -> None:
    text = "---\ntags: [mine]\nagent: me\nextra: 1\n---\nbody"
    key = await write_note(house.replica, house.clock, "alpha", text, agent="a", category="todo", tags=["theirs"])
    note = await house.read(key)

    assert (note.agent, note.category, note.tags, dict(note.extra)) == ("me", "todo", ("mine",), {"extra": 1})


async def test_odd_front_matter_is_kept_as_body(house: House) -> None:
    text = "---\nno mapping\n---\nbody"
    note = await house.read(await write_note(house.replica, house.clock, "alpha", text, agent="a", category="todo"))

    assert (note.category, note.body) == ("todo", text)


async def test_a_taken_name_is_passed_over(house: House) -> None:
    for taken in (0, 1):
        await house.store.put(named(taken), b"somebody else's")
    first = await write_note(house.replica, house.clock, "alpha", "one", agent="a")
    second = await write_note(house.replica, house.clock, "alpha", "two", agent="a")

    assert (first, second) == (named(2), named(3))
    assert ((await house.read(first)).body, (await house.read(second)).body) == ("one", "two")


async def test_notes_of_one_second_are_numbered_in_their_order(house: House) -> None:
    written = [await write_note(house.replica, house.clock, "alpha", f"{n}", agent="a") for n in range(50)]
    names = [NoteName.parse(keys.parse(key).name) for key in written]

    assert [order_of(name.uid) for name in names if name is not None] == list(range(50))
    assert sorted(written) == written


async def test_there_is_an_end_to_trying(house: House) -> None:
    for taken in range(UID_ATTEMPTS):
        await house.store.put(named(taken), b"somebody else's")
    house.store.forget()
    with pytest.raises(AlreadyExists, match=uid_of(UID_ATTEMPTS - 1, ENDING)):
        await write_note(house.replica, house.clock, "alpha", "one", agent="a")

    assert house.store.counts["put"] == UID_ATTEMPTS
    assert len(await house.notes()) == UID_ATTEMPTS


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
