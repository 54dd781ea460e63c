"""What is told before an answer, over a bucket with an index: which candidates, once, in which order, whatever fails.

Threads do the work, so these tests live in real time; what is new and what has ended follows the bucket's own clock.
The model is a bag of words (`FakeEmbedder`): where meaning matters, see test_worked_examples.py.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
from recall_world import DONE_WITHIN, SPACE, Bucket, Mount, no_model, prehook

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.recall.embed.base import Embedder
from livememfs.recall.index.local import Index
from livememfs.recall.index.vectors import Floats, unit
from livememfs.recall.service import Patience, Recall
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.inject import TITLES, Limits, Telling
from livememfs.recall.turn.prehook import LOOKED_AT, Prehook, TurnAnswer
from livememfs.recall.turn.told import ToldSessions
from livememfs.records.turn import Turn
from livememfs.spaces import making as spaces
from livememfs.testing.embed import hashed
from livememfs.testing.store import Fault
from livememfs.text.own import END, HEAD, RECORDED
from livememfs.text.size import tokens

ROUNDING = 0.02
"""Of a vector that is kept over a restart."""
LATER = {"hours": 7}
"""Nothing that was stored before is new any more."""
PLACES = ("Lyon", "Oslo", "Rome", "Kyiv", "Lima", "Cairo", "Delhi", "Seoul", "Quito", "Paris", "Bern", "Sofia", "Minsk")


class Hook:
    """A mount's prehook and who asks it."""

    def __init__(self, mount: Mount, prehook: Prehook) -> None:
        self.mount, self.prehook = mount, prehook

    async def turn(self, message: str, session: str = "s", **fields: Any) -> TurnAnswer:
        return await self.prehook.turn(SPACE, Turn(message, session, **fields))

    async def told(self, message: str, session: str = "s", **fields: Any) -> list[str]:
        """The texts that one turn tells, in their order."""
        answer = await self.turn(message, session, **fields)
        return [one.text for one in answer.told.emitted] if answer.told is not None else []


Open = Callable[..., AbstractAsyncContextManager[Hook]]


@pytest.fixture
def hook(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Open:
    """`async with hook(settings) as hook`: a mount that has indexed everything; one after the other, as after restarts.

    With `ready=False` nothing has been opened yet. However busy the machine is, a message waits until that has worked
    or failed.
    """
    monkeypatch.setattr("livememfs.recall.turn.prehook.PATIENCE", DONE_WITHIN)

    @asynccontextmanager
    async def start(
        settings: PrehookSettings | None = None, *, ready: bool = True, **options: Any
    ) -> AsyncIterator[Hook]:
        async with bucket.mount(**options) as mount, mount.prehook(settings) as made:
            if ready:
                await mount.indexed()
            yield Hook(mount, made)

    return start


async def several(bucket: Bucket, count: int, about: str = "travel", **fields: Any) -> list[str]:
    """Memories about one thing that do not say the same; their texts."""
    chance = random.Random(count)
    texts = []
    for number in range(count):
        others = " ".join(f"{place.lower()}{number}" for place in chance.sample(PLACES, 8))
        texts.append(f"{about} {others}")
        await bucket.remember(texts[-1], **fields)
    return texts


# --- what is no question ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [Turn("Worker #42 completed", "s", source="system"), Turn(" \n", "s"), Turn("", "s")])
async def test_what_no_user_said_and_what_says_nothing_is_skipped_and_no_turn(
    bucket: Bucket, hook: Open, turn: Turn
) -> None:
    await bucket.remember("I am a helper", type="identity")
    async with hook() as here:
        answer = await here.prehook.turn(SPACE, turn)

        assert (answer.block, answer.turn, answer.told) == ("", 0, None)
        assert bucket.model.asked == []
        assert (await here.turn("who are you")).turn == 1
        assert here.prehook.statistics() | {"told_written": 1} == {
            "turns": 1, "told": 1, "skipped": 1, "failed": 0, "files": 0, "told_read": 1, "told_written": 1,
            "unkept": 0, "sessions": 1,
        }  # fmt: skip


@pytest.mark.parametrize("message", ["hello!", "Ok, merci", "Salut", "continue", "the", "?", "😀"])
async def test_chatter_gets_what_comes_whatever_is_asked_and_nothing_else(
    bucket: Bucket, hook: Open, message: str
) -> None:
    await bucket.remember("I am a helper", type="identity")
    await bucket.remember("people say hello, merci, salut, ok, and continue with the 😀")
    bucket.clock.advance(**LATER)
    async with hook() as here:
        assert await here.told(message) == ["I am a helper"]


@pytest.mark.parametrize("message", ["who are you?", "tu es qui ?"])
async def test_a_question_of_small_words_alone_is_looked_up_by_its_meaning(
    bucket: Bucket, hook: Open, message: str
) -> None:
    async with hook() as here:
        await here.turn(message)

    assert bucket.model.asked == [message]


async def test_messages_that_come_together_are_one_turn_and_one_question(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("decision: use PostgreSQL, not MySQL", type="decision")
    said = "\n".join(json.dumps({"message": one}) for one in ("En fait", "j'ai changé d'avis", "on prend MySQL"))
    async with hook() as here:
        answer = await here.prehook.turn(SPACE, Turn.parse(said.encode(), path="x"))

        assert answer.turn == 1
        assert bucket.model.asked == ["En fait j'ai changé d'avis on prend MySQL"]
        assert "PostgreSQL" in answer.block


# --- which candidates, in which order --------------------------------------------------------------------------


async def test_the_block_has_who_somebody_is_then_what_fits_then_notes_as_excerpts(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("Mickael is the user", type="identity")
    await bucket.remember("never deploy on a Friday", type="decision", importance=0.95)
    await bucket.remember("David lives in Toulouse, in the south", type="fact")
    bucket.clock.advance(**LATER)
    await bucket.remember("the heating is broken today", type="event")
    await bucket.write("n", "david leaves for Greece tomorrow")
    async with hook() as here:
        answer = await here.turn("where is David?")

    assert answer.block == (
        f"{HEAD}\n"
        f"{TITLES['pinned']}\n"
        "- identity, 2026-02-20 14:00: Mickael is the user\n"
        "- decision, 2026-02-20 14:00: never deploy on a Friday\n"
        "- event, 2026-02-20 21:00: the heating is broken today\n"
        f"{TITLES['relevant']}\n"
        "- fact, 2026-02-20 14:00: David lives in Toulouse, in the south\n"
        f"{TITLES['live']}\n"
        "- me, 2026-02-20 21:00: david leaves for Greece tomorrow\n"
        f"{END}\n"
    )


async def test_the_same_turn_of_a_new_session_is_the_same_bytes(bucket: Bucket, hook: Open) -> None:
    await several(bucket, 30)
    async with hook() as here:
        first = await here.turn("travel", "one")
        assert (await here.turn("travel", "two")).block == first.block != ""


@pytest.mark.parametrize(("importance", "pinned"), [(0.8, True), (0.79, False)])
async def test_what_matters_comes_whatever_is_asked(
    bucket: Bucket, hook: Open, importance: float, pinned: bool
) -> None:
    await bucket.remember("never deploy on a Friday", importance=importance)
    bucket.clock.advance(**LATER)
    async with hook() as here:
        assert await here.told("hello") == ["never deploy on a Friday"] * pinned


async def test_what_matters_is_told_whatever_its_age_behind_what_is_younger(bucket: Bucket, hook: Open) -> None:
    """Age lowers the weight, which decides the order alone: a decision matters until somebody makes another one."""
    await bucket.remember("never deploy on a Friday", importance=0.85)
    await bucket.remember("I am a helper", type="identity")
    bucket.clock.advance(days=200)
    await bucket.remember("each merge has a review", importance=0.8)
    bucket.clock.advance(hours=7)
    async with hook() as here:
        expected = ["I am a helper", "each merge has a review", "never deploy on a Friday"]
        assert await here.told("hello") == expected


async def test_what_is_new_comes_for_six_hours(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("the heating is broken")
    async with hook() as here:
        bucket.clock.advance(hours=6)
        assert await here.told("hello", "one") == ["the heating is broken"]
        bucket.clock.advance(seconds=1)
        assert await here.told("hello", "two") == []
    async with hook(PrehookSettings(recent_hours=24)) as here:
        assert await here.told("hello", "three") == ["the heating is broken"]


async def test_what_is_new_may_be_what_was_said_in_the_channel_alone(bucket: Bucket, hook: Open) -> None:
    for place in ("lobby", "kitchen"):
        await bucket.remember(f"said in the {place}", channel_id=place)
    await bucket.remember("said anywhere")
    async with hook() as here:
        assert len(await here.told("hello", "one", channel="lobby")) == 3
    async with hook(PrehookSettings(channel_only=True)) as here:
        assert await here.told("hello", "two", channel="lobby") == ["said in the lobby"]
        assert await here.told("hello", "three", channel="garden") == []
        assert len(await here.told("hello", "four")) == 3


async def test_what_hardly_fits_is_not_told(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("the orders service uses PostgreSQL for its JSON columns")
    await bucket.remember("lunch is at noon for all")
    bucket.clock.advance(**LATER)
    async with hook() as here:
        assert await here.told("PostgreSQL JSON columns of the orders service for lunch") == [
            "the orders service uses PostgreSQL for its JSON columns"
        ]


async def test_all_three_collections_are_told_and_other_spaces_are_not(bucket: Bucket, hook: Open) -> None:
    for collection in ("memories", "self", "goals"):
        await bucket.remember(f"zebra in {collection}", collection, type="fact")
    bucket.clock.advance(**LATER)
    async with hook() as here:
        assert sorted(await here.told("zebra")) == [f"zebra in {name}" for name in ("goals", "memories", "self")]
        await spaces.create(here.mount.replica, bucket.clock, "beta")
        assert (await here.prehook.turn("beta", Turn("zebra", "s"))).block == ""


# --- how much --------------------------------------------------------------------------------------------------


async def test_at_most_twenty_come_and_the_others_with_the_next_turns(bucket: Bucket, hook: Open) -> None:
    texts = await several(bucket, 45, importance=0.9)
    bucket.clock.advance(**LATER)
    async with hook(PrehookSettings(pinned=100, limits=Limits(budget=100_000, alike=1.0))) as here:
        turns = [await here.told("hello") for _ in range(4)]

    assert [len(turn) for turn in turns] == [20, 20, 5, 0]
    assert sorted(text for turn in turns for text in turn) == sorted(texts)


@pytest.mark.parametrize("budget", [0, 60, 200, 1_000])
async def test_a_block_costs_no_more_than_its_tokens_and_what_was_cut_is_told_later(
    bucket: Bucket, hook: Open, budget: int
) -> None:
    texts = await several(bucket, 12)
    async with hook(PrehookSettings(limits=Limits(budget=budget))) as here:
        first = await here.turn("travel")
        assert tokens(first.block) <= budget + 4  # line ends
        assert first.told is not None
        assert first.told.left_out["budget"] == len(texts) - len(first.told.emitted)
        seen = {one.text for one in first.told.emitted}
        assert seen.isdisjoint(await here.told("travel"))


async def test_each_path_has_its_own_limit(bucket: Bucket, hook: Open) -> None:
    await several(bucket, 8, "who", type="identity")
    await several(bucket, 9, "travel")
    for number in range(7):
        await bucket.write(f"n{number}", f"travel note{number} about number{number}")
    bucket.clock.advance(**LATER)
    async with hook(PrehookSettings(pinned=2, relevant=3, live=4, limits=Limits(alike=1.0))) as here:
        answer = await here.turn("travel")

    assert answer.told is not None
    sections = [one.section for one in answer.told.emitted]
    assert [sections.count(section) for section in ("pinned", "relevant", "live")] == [2, 3, 4]


@pytest.mark.parametrize(
    "settings",
    [
        PrehookSettings(0, 0, False, 0, 0, 0, Limits(0, 0, 0, 1, 0)),
        PrehookSettings(0, 1, True, 0, 0, 0),
        PrehookSettings(limits=Limits(buffer=0, window=1)),
        PrehookSettings(1e6, 0, False, 10_000, 10_000, 10_000, Limits(10_000, 1, 10_000, 10_000, 10**9)),
    ],
)
async def test_no_setting_fails(bucket: Bucket, hook: Open, settings: PrehookSettings) -> None:
    await several(bucket, 5)
    await bucket.write("n", "travel is over")
    async with hook(settings) as here:
        for message in ("travel", "hello", "travel"):
            assert (await here.turn(message)).notes == ()
        assert here.prehook.statistics()["failed"] == 0


async def test_a_long_message_is_looked_at_where_it_begins_and_ends(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("unicorns are real")
    await bucket.remember("zebras have stripes")
    bucket.clock.advance(**LATER)
    page = "line of a log that was pasted " * (LOOKED_AT // 10)
    async with hook(PrehookSettings()) as here:
        told = await here.told(f"are unicorns real? {page} and which zebras have stripes?")

    assert sorted(told) == ["unicorns are real", "zebras have stripes"]
    assert len(bucket.model.asked[-1]) <= LOOKED_AT + 1


async def test_what_was_told_is_reported_with_what_was_asked(bucket: Bucket) -> None:
    tellings: list[Telling] = []
    name = await bucket.remember("apples are red, says kitchen/fruit.md")
    note = await bucket.write("n", "apples in the garden")
    async with prehook(bucket, tells=tellings.append) as here:
        await here.turn(SPACE, Turn("apples", "s"))
        await here.turn(SPACE, Turn("apples", "s"))

    (telling,) = tellings  # nothing is told twice
    assert (telling.space, telling.session, telling.asked) == (SPACE, "s", "apples")
    assert {candidate.id: candidate.files for candidate in telling.told} == {
        name: ("kitchen/fruit.md",),
        note.removesuffix(".md"): (),
    }


async def test_programs_get_ids_and_paths_and_what_it_took(bucket: Bucket, hook: Open) -> None:
    name = await bucket.remember("apples are red", ttl="7d")
    async with hook() as here:
        found = (await here.turn("apples")).to_json()

    assert json.loads(json.dumps(found)) == found
    assert next(iter(found.items())) == (RECORDED, HEAD)
    assert found["context"].endswith(f"- fact, 2026-02-20 14:00: apples are red\n{END}\n")
    (memory,) = found["memories"]
    assert (memory["id"], memory["section"], memory["text"]) == (name, "relevant", "apples are red")
    assert memory["path"].startswith(f"{name}_until_")
    assert (found["turn"], found["notes"]) == (1, [])
    assert set(found["ms"]) == {"index", "embedding", "indexed", "search", "dedup", "formatting"}


# --- once ------------------------------------------------------------------------------------------------------


async def test_a_memory_is_told_once_while_it_is_in_view_and_again_after(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("I am a helper", type="identity")
    async with hook(PrehookSettings(limits=Limits(window=3))) as here:
        assert [len(await here.told("hello")) for _ in range(7)] == [1, 0, 0, 1, 0, 0, 1]


async def test_the_same_memory_that_is_kept_longer_is_no_other_one(bucket: Bucket, hook: Open) -> None:
    name = await bucket.remember("Mickael is ill", ttl="1h")
    (key,) = [f"{name}_until_20260220T150000.md"]
    data = (await bucket.memory.get(key)).data
    async with hook() as here:
        assert await here.told("hello") == ["Mickael is ill"]
        await here.mount.replica.put(f"{name}_until_20260227T150000.md", data)
        await here.mount.replica.delete(key)
        await here.mount.indexed()
        assert await here.told("is Mickael ill?") == []
        assert await here.told("is Mickael ill?", "another") == ["Mickael is ill"]


async def test_what_has_ended_is_never_told_by_any_path(bucket: Bucket, hook: Open) -> None:
    for number, fields in enumerate(({"type": "identity"}, {"importance": 1.0}, {"type": "fact"})):
        await bucket.remember(f"zebra{number} is temporary", **fields, ttl="1h")
    async with hook() as here:
        assert len(await here.told("zebra0 zebra1 zebra2 temporary", "one")) == 3
        bucket.clock.advance(hours=1)
        assert await here.told("zebra0 zebra1 zebra2 temporary", "two") == []


async def test_what_was_forgotten_is_not_told_any_more(bucket: Bucket, hook: Open) -> None:
    name = await bucket.remember("apples are red", type="identity")
    async with hook() as here:
        assert await here.told("apples", "one") == ["apples are red"]
        await here.mount.replica.delete(f"{name}.md")
        await here.mount.indexed()
        assert await here.told("apples", "two") == []


async def test_what_was_forgotten_is_not_told_before_the_index_knows(
    bucket: Bucket, hook: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = await bucket.remember("apples are red", type="identity")
    await bucket.remember("apples fall in autumn", type="identity")
    async with hook() as here:
        await here.mount.indexed()
        monkeypatch.setattr(here.mount.recall, "has_gone", lambda key: key == f"{gone}.md")
        assert await here.told("apples", "one") == ["apples fall in autumn"]


async def test_fifty_turns_over_restarts_never_tell_an_id_twice_in_view_nor_two_things_alike(
    bucket: Bucket, hook: Open
) -> None:
    travel, cooking = await several(bucket, 25, "travel"), await several(bucket, 24, "cooking")
    for text in (*travel[:10], *cooking[:10]):
        await bucket.remember(f"{text} indeed")  # the same, nearly
    await several(bucket, 3, "who", type="identity")
    chance, limits, shown = random.Random(3), Limits(window=10), list[dict[str, Floats]]()
    for restart in range(5):
        bucket.clock.advance(**LATER)
        async with hook(PrehookSettings(limits=limits)) as here:
            engine, _ = await here.mount.recall.ready((SPACE,), DONE_WITHIN)
            assert engine is not None
            assert engine.prior is not None
            for number in range(10):
                about = chance.choice(["travel", "cooking", "travel and cooking", "hello"])
                answer = await here.turn(f"{about} {chance.choice(PLACES)}{number}")
                assert (answer.turn, answer.notes) == (10 * restart + number + 1, ())
                assert answer.told is not None
                shown.append({one.id: unit(one.vector - engine.prior) for one in answer.told.emitted})

    assert sum(map(len, shown)) > 52, "some were told again after they had left the view"
    for turn, lines in enumerate(shown):
        view = {
            name: vector for past in shown[max(0, turn - limits.window + 1) : turn] for name, vector in past.items()
        }
        assert lines.keys().isdisjoint(view)
        for number, (_, vector) in enumerate(lines.items()):
            others = [*view.values(), *list(lines.values())[:number]]
            assert all(float(vector @ other) <= limits.alike + ROUNDING for other in others)


async def test_two_sessions_and_a_restart_do_not_disturb_each_other(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("I am a helper", type="identity")
    async with hook() as here:
        assert await here.told("hello", "one") == ["I am a helper"]
    async with hook() as here:
        assert await here.told("hello", "one") == []
        assert await here.told("hello", "two") == ["I am a helper"]


async def test_turns_of_one_session_at_once_are_turns_one_after_the_other(bucket: Bucket, hook: Open) -> None:
    await several(bucket, 15)
    answers: list[TurnAnswer] = []
    async with hook() as here:

        async def ask() -> None:
            answers.append(await here.turn("travel"))

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(ask)

    assert sorted(answer.turn for answer in answers) == list(range(1, 9))
    told = [one.id for answer in answers if answer.told is not None for one in answer.told.emitted]
    assert len(told) == len(set(told)) > 0


async def test_sessions_without_number_are_not_all_kept_in_memory(
    bucket: Bucket, hook: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.recall.turn.told.OPEN_SESSIONS", 3)
    await bucket.remember("I am a helper", type="identity")
    async with hook() as here:
        for number in range(10):
            assert await here.told("hello", f"s{number}") == ["I am a helper"]
        await here.prehook.flush()
        assert await here.told("hello", "s0") == [], "the bucket still knows it"
        assert here.prehook.statistics()["sessions"] == 3


# --- what fails ------------------------------------------------------------------------------------------------


async def test_while_somebody_else_uses_the_index_words_have_to_do_and_it_is_said(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("I am a helper", type="identity")
    held = Index(bucket.folder, bucket.model.name)
    async with hook(ready=False) as here:
        answer = await here.turn("hello")
        assert "I am a helper" in answer.block
        assert any(note.startswith("the index cannot be used") for note in answer.notes)
        held.close()

        await here.mount.indexed()
        answer = await here.turn("hello", "another")
        assert ("I am a helper" in answer.block, answer.notes) == (True, ())


async def test_an_index_that_takes_long_to_open_is_not_waited_for(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bucket.remember("I am a helper", type="identity")
    there = threading.Event()

    def slowly() -> Index:
        there.wait()
        return Index(bucket.folder, bucket.model.name)

    async with bucket.mount(open_engine=slowly, patience=Patience()) as mount, mount.prehook() as here:
        answer = await here.turn(SPACE, Turn("hello", "s"))
        assert "I am a helper" in answer.block
        assert answer.notes[0] == "the index is being made"

        there.set()
        await mount.indexed()
        monkeypatch.setattr("livememfs.recall.turn.prehook.PATIENCE", DONE_WITHIN)
        again = await here.turn(SPACE, Turn("hello", "s"))
        assert (again.block, again.notes) == ("", ())


async def test_a_search_that_has_not_been_started_is_no_reason_to_fail(bucket: Bucket) -> None:
    replica = Replica(bucket.store)
    recall = Recall(replica, bucket.clock, lambda: Index(bucket.folder, "x"), no_model)

    answer = await Prehook(recall, bucket.clock, ToldSessions(replica)).turn(SPACE, Turn("hello", "s"))

    assert (answer.block, answer.notes[0]) == ("", "the search has not been started")


async def test_without_a_model_words_have_to_do(bucket: Bucket, hook: Open, expect_log: Callable[[str], None]) -> None:
    async def missing() -> Embedder:
        raise errors.EmbeddingUnavailable("no such file")

    await bucket.remember("apples are red")
    expect_log("searching by words alone")
    async with hook(open_model=missing) as here:
        answer = await here.turn("apples")

    assert answer.block.endswith(f"apples are red\n{END}\n")
    assert answer.notes == ("by words alone: the model that knows meanings is not loaded",)


async def test_a_model_that_fails_costs_meaning_and_not_the_answer(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("apples are red")
    bucket.clock.advance(**LATER)
    async with hook() as here:
        bucket.model.failure = errors.ModelUnreachable("reset")
        answer = await here.turn("apples")

    assert answer.block.endswith(f"apples are red\n{END}\n")
    assert answer.notes == ("by words alone: the model that knows meanings does not answer",)


async def test_all_that_needs_no_vector_of_the_message_is_looked_up_while_it_is_embedded(
    bucket: Bucket, hook: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once: the words of memories, those of notes and the bank, and what comes whatever is asked."""
    await bucket.remember("apples are red")
    began, all_began = list[str](), trio.Event()

    async def embedded(text: str) -> Floats:
        with trio.fail_after(DONE_WITHIN):
            await all_began.wait()
        return hashed(text, bucket.model.dim)

    def noting(name: str) -> Callable[..., Any]:
        ask = getattr(Index, name)

        def asked(*given: Any) -> Any:
            began.append(name)
            if len(began) == 3:
                trio.from_thread.run_sync(all_began.set)
            return ask(*given)

        return asked

    async with hook() as here:
        monkeypatch.setattr(bucket.model, "question", embedded)
        for name in ("text", "foremost"):
            monkeypatch.setattr(Index, name, noting(name))
        answer = await here.turn("apples")

    assert answer.block.endswith(f"apples are red\n{END}\n")
    assert sorted(began) == ["foremost", "text", "text"]


async def test_a_store_that_is_down_is_said_and_what_is_known_is_told(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("apples are red", type="identity")
    async with hook():
        pass
    async with hook(ready=False) as here:
        bucket.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
        answer = await here.turn("apples")

    assert answer.block.endswith(f"apples are red\n{END}\n")
    assert any("may have more than was found" in note for note in answer.notes)


async def test_whatever_else_goes_wrong_is_logged_and_takes_nothing_for_told(
    bucket: Bucket, hook: Open, monkeypatch: pytest.MonkeyPatch, expect_log: Callable[[str], None]
) -> None:
    await bucket.remember("I am a helper", type="identity")
    expect_log("a message got no memories")
    async with hook() as here:
        with monkeypatch.context() as patched:
            patched.setattr(Index, "foremost", lambda *_: 1 / 0)
            answer = await here.turn("hello")
        assert (answer.block, here.prehook.statistics()["failed"]) == ("", 1)
        assert answer.notes == ("the memories cannot be looked up: division by zero",)

        assert await here.told("hello") == ["I am a helper"]


async def test_what_the_bucket_does_not_take_costs_nothing_now_and_is_said(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("I am a helper", type="identity")
    bucket.store.script("put", *[Fault(before=errors.Denied("no"))] * 3)
    async with hook() as here:
        first = await here.turn("hello")
        await here.prehook.flush()
        second = await here.turn("hello")

        assert "I am a helper" in first.block
        assert second.block == "", "this mount remembers it all the same"
        assert any("may tell this again" in note for note in second.notes), second.notes
        assert here.prehook.statistics()["unkept"] >= 1


@pytest.mark.parametrize(
    "message",
    ["\0", "a\0b", "\u202eabc\u202c", "(a+)+$" * 50, '"', 'type:nonsense "', "limit:0", "-", "🍎" * 300, "é" * 5_000],
)
async def test_no_message_fails(bucket: Bucket, hook: Open, message: str) -> None:
    await bucket.remember("I am a helper", type="identity")
    async with hook() as here:
        answer = await here.turn(message, "any\0session")

    assert "I am a helper" in answer.block
    assert answer.notes == ()


async def test_a_line_has_its_day_and_of_today_the_hour_too(bucket: Bucket, hook: Open) -> None:
    await bucket.remember("apples are red")
    async with hook() as here:
        assert "- fact, 2026-02-20 14:00: apples are red\n" in (await here.turn("apples")).block
    bucket.clock.advance(days=1)
    async with hook() as here:
        assert "- fact, 2026-02-20: apples are red\n" in (await here.turn("apples", "another session")).block
