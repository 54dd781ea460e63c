"""Recall over a bucket: what feeds the index, what it costs, and what an answer says when something is missing.

Threads do the work, so these tests live in real time; none waits longer than what it waits for takes.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from recall_world import DONE_WITHIN, SPACE, Bucket, no_model

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.recall.embed.base import Embedder
from livememfs.recall.index import feeder
from livememfs.recall.index.local import Index
from livememfs.recall.service import QUIET, QUIET_MOST, Patience, Recall
from livememfs.testing.embed import FakeEmbedder


async def test_nothing_is_read_or_loaded_before_the_first_question(bucket: Bucket) -> None:
    await bucket.write("one", "apples are red")

    async with bucket.mount() as mount:
        await mount.replica.names.listing(f"{SPACE}/live/")
        bucket.store.forget()
        await trio.testing.wait_all_tasks_blocked()

        assert mount.recall.statistics().index is None
        assert not bucket.folder.exists()
        assert bucket.store.requests == []


async def test_the_first_question_indexes_a_space_and_a_second_mount_reads_nothing_again(bucket: Bucket) -> None:
    for number in range(40):
        await bucket.write(f"n{number}", f"note {number} about apples and number{number}")

    async with bucket.mount() as mount:
        await mount.indexed()
        assert (await mount.texts("number17"))[0].startswith("note 17 ")
        assert await mount.recall.understood(DONE_WITHIN)
        embedded = bucket.embedded
    bucket.store.forget()

    async with bucket.mount() as mount:
        assert (await mount.texts("number18"))[0].startswith("note 18 ")
        assert await mount.recall.understood(DONE_WITHIN)
        assert bucket.store.counts["get"] == 0
        assert bucket.embedded == embedded
        assert (await mount.ask("number19")).notes == ()


async def test_what_another_host_writes_and_removes_while_nobody_looks_is_noticed_by_the_next_mount(
    bucket: Bucket,
) -> None:
    key = await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        assert await mount.texts("apples") == ["apples are red"]

    await bucket.memory.delete(key)
    await bucket.write("two", "pears are green")

    async with bucket.mount() as mount:
        assert await mount.texts("apples pears") == ["pears are green"]


async def test_what_is_written_here_is_found_by_the_next_question(bucket: Bucket) -> None:
    """However busy the machine is: where that takes longer than anybody waits, a remark says so instead."""
    async with bucket.mount() as mount:
        assert await mount.texts("unicorn") == []
        key = await bucket.write("one", "seen a unicorn")
        note = (await bucket.memory.get(key)).data
        await bucket.memory.delete(key)

        await mount.replica.put(key, note)
        assert await mount.texts("the unicorn") == ["seen a unicorn"]

        await mount.replica.delete(key)
        assert await mount.texts("any unicorn") == []


def held_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Have the index take nothing in until the event is set."""
    apply, go_on = Index.apply, threading.Event()

    def slowly(self: Index, *arguments: Any, **named: Any) -> Any:
        go_on.wait(DONE_WITHIN)
        return apply(self, *arguments, **named)

    monkeypatch.setattr(Index, "apply", slowly)
    return go_on


async def test_what_was_removed_is_not_found_before_the_index_knows_and_is_when_it_comes_back(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bucket.mount(patience=Patience(fresh=0.0)) as mount:
        key = await bucket.write("one", "seen a unicorn")
        note = (await bucket.memory.get(key)).data
        await mount.indexed()
        assert await mount.texts("unicorn") == ["seen a unicorn"]
        go_on = held_up(monkeypatch)
        await mount.replica.delete(key)
        assert mount.recall.has_gone(key)
        assert await mount.texts("the unicorn") == []
        await mount.replica.put(key, note)
        assert await mount.texts("a unicorn") == ["seen a unicorn"]

        await mount.replica.delete(key)
        go_on.set()
        await mount.indexed()
        assert await mount.texts("any unicorn") == []
        assert not mount.recall.has_gone(key), "the index knows, and nothing else need remember it"


async def test_who_is_to_be_told_waits_for_notes_and_not_for_what_an_observer_has_just_written(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent at work is observed all the time: each of its messages would wait."""
    await bucket.write("one", "seen a unicorn")
    async with bucket.mount(patience=Patience(unasked=DONE_WITHIN)) as mount:
        await mount.indexed()
        go_on = held_up(monkeypatch)
        await mount.replica.put(f"{SPACE}/observations/20260101T000000_change_00000001.md", b"observed")
        with trio.fail_after(DONE_WITHIN / 2):
            index, notes = await mount.recall.ready((SPACE,), DONE_WITHIN)
        assert (index is not None, notes, mount.recall.lacking(SPACE)) == (True, [], [])

        key = f"{SPACE}/live/20260101T000000_a_decision_00000002.md"
        await mount.replica.put(key, b"a note")
        assert mount.recall.lacking(SPACE) == [key]
        go_on.set()
        await mount.recall.ready((SPACE,), DONE_WITHIN)
        assert mount.recall.lacking(SPACE) == []


async def test_meaning_comes_when_the_model_is_there_and_words_answer_until_then(bucket: Bucket) -> None:
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.indexed()
    there = trio.Event()

    async def slowly() -> Embedder:
        await there.wait()
        return FakeEmbedder()

    async with bucket.mount(slowly, patience=Patience(first=0.01)) as mount:
        answer = await mount.ask("apples")
        assert (answer.found.strategy, len(answer.found.hits)) == ("words", 1)
        assert "by words alone: the model that knows meanings is not loaded" in answer.notes

        there.set()
        while (await mount.ask(f"apples {trio.current_time()}")).found.strategy != "semantic":
            await trio.sleep(0.01)


@pytest.mark.parametrize("error", [errors.EmbeddingUnavailable("no such file"), ValueError("Invalid port: '80a'")])
async def test_a_mount_without_a_model_searches_by_words(bucket: Bucket, expect_log, error: Exception) -> None:
    async def missing() -> Embedder:
        raise error

    await bucket.write("one", "apples are red")
    async with bucket.mount(missing) as mount:
        answer = await mount.ask("apples")

    assert answer.found.strategy == "words"
    expect_log("searching by words alone")


async def test_a_model_that_fails_in_between_costs_meaning_and_not_the_answer(bucket: Bucket) -> None:
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.ask("apples")
        assert await mount.recall.understood(DONE_WITHIN)
        bucket.model.failure = errors.ModelUnreachable("reset")

        answer = await mount.ask("red apples")

    assert answer.found.strategy == "words"
    assert "by words alone: the model that knows meanings does not answer" in answer.notes
    assert len(answer.found.hits) == 1


async def test_an_index_that_somebody_else_uses_is_no_reason_to_fail(bucket: Bucket) -> None:
    held = Index(bucket.folder, bucket.model.name)
    async with bucket.mount() as mount:
        answer = await mount.ask("apples")
        assert answer.found.hits == ()
        assert any(note.startswith("the search failed") for note in answer.notes)
        assert answer.failed
        held.close()

        await bucket.write("one", "apples are red")
        assert await mount.texts("red apples") == ["apples are red"]
        assert not (await mount.ask("red apples")).failed


def damage(path: Path) -> None:
    """The disk garbles all of a database but its first page, and nobody has the rest in memory."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


async def test_an_index_that_is_damaged_while_it_is_open_is_made_anew_and_ends_nothing(
    bucket: Bucket, expect_log
) -> None:
    expect_log("the index is damaged and made anew")
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        assert await mount.texts("apples") == ["apples are red"]
        assert await mount.recall.understood(DONE_WITHIN)
        damage(bucket.folder / "records.db")

        answer = await mount.recall.ask("apples", ("beta",))

        assert answer.found.hits == ()
        assert any("beta may have more" in note and "is made anew" in note for note in answer.notes)
        await mount.indexed()
        assert await mount.texts("red apples") == ["apples are red"]
        statistics = mount.recall.statistics().index
        assert statistics is not None
        assert (statistics.rebuilt, statistics.embedded) == (("records",), 1)


async def test_an_index_found_damaged_by_a_search_is_made_anew(bucket: Bucket, expect_log) -> None:
    expect_log("the index is damaged and made anew")
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.indexed()
        damage(bucket.folder / "records.db")

        assert (await mount.ask("apples")).notes == ("the search failed: the index was damaged and is made anew",)
        await mount.indexed()
        assert await mount.texts("red apples") == ["apples are red"]


async def test_an_index_that_cannot_tell_what_it_has_costs_a_remark(
    bucket: Bucket, expect_log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def objects(self: Index, prefix: str = "") -> dict[str, str]:
        raise sqlite3.OperationalError("disk I/O error")

    expect_log("a space cannot be compared with the index")
    monkeypatch.setattr(Index, "objects", objects)
    async with bucket.mount() as mount:
        assert any("may have more than was found: disk I/O error" in note for note in (await mount.ask("x")).notes)


@pytest.mark.parametrize("error", [errors.LiveMemError("no such database"), sqlite3.OperationalError("disk I/O error")])
@pytest.mark.parametrize("method", ["unembedded", "expects", "take_vectors"])
async def test_an_index_that_fails_while_meanings_are_computed_is_asked_again(
    bucket: Bucket, expect_log, monkeypatch: pytest.MonkeyPatch, error: Exception, method: str
) -> None:
    async with bucket.mount() as mount:
        await mount.indexed()
        real, failing = getattr(Index, method), True

        def fails(self: Index, *arguments: Any) -> Any:
            if failing:
                raise error
            return real(self, *arguments)

        expect_log("the index failed")
        monkeypatch.setattr(feeder, "AGAIN_SECONDS", 0.01)
        monkeypatch.setattr(Index, method, fails)
        await mount.replica.put(await bucket.write("one", "apples are red"), b"apples are red")
        await mount.texts("apples")
        while await mount.recall.understood(DONE_WITHIN):
            await trio.sleep(0.01)
        assert mount.recall.statistics().last_error == str(error)

        failing = False
        while not await mount.recall.understood(DONE_WITHIN):
            await trio.sleep(0.01)
        assert bucket.embedded


async def test_uses_that_the_index_cannot_take_are_no_reason_to_fail(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used(self: Index, uses: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.ask("apples")
        monkeypatch.setattr(Index, "used", used)
        mount.recall.used({(SPACE, "x"): (1, 1)})
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert await mount.texts("red apples") == ["apples are red"]


async def test_a_model_that_fails_is_not_waited_for_until_it_answers_again(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down() -> Embedder:
        bucket.model.failure = errors.ModelUnreachable("reset")
        return bucket.model

    monkeypatch.setattr(feeder, "AGAIN_SECONDS", 0.1)
    await bucket.write("one", "apples are red")
    async with bucket.mount(down) as mount:
        with trio.fail_after(DONE_WITHIN / 4):
            await mount.indexed()
        answer = await mount.ask("apples")
        assert ([hit.record.text for hit in answer.found.hits], answer.found.strategy) == (["apples are red"], "words")
        assert answer.notes == ("by words alone: the model that knows meanings does not answer",)

        bucket.model.failure = None
        while not await mount.recall.understood(DONE_WITHIN):
            await trio.sleep(0.01)
        assert (await mount.ask("red apples")).found.strategy == "semantic"


async def test_a_store_that_is_away_is_told_of_and_asked_again_by_the_next_question(bucket: Bucket) -> None:
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        bucket.store.fail_all = errors.Unreachable("reset", endpoint="the bucket")
        answer = await mount.ask("apples")
        assert answer.found.hits == ()
        assert any("may have more than was found" in note for note in answer.notes)

        bucket.store.fail_all = None
        mount.replica.asking.remember_error("")
        assert await mount.texts("red apples") == ["apples are red"]


async def test_who_would_rather_wait_than_miss_something_waits_longer_than_a_question_does(bucket: Bucket) -> None:
    await bucket.write("one", "apples are red")
    bucket.store.latency("list", 0.2)
    async with bucket.mount(patience=Patience(first=0.01, fresh=0.01)) as mount:
        await mount.indexed()
        assert await mount.texts("red apples") == ["apples are red"]


async def test_an_unmount_while_indexing_leaves_an_index_that_is_right_as_far_as_it_goes(bucket: Bucket) -> None:
    for number in range(300):
        await bucket.write(f"n{number}", f"note about number{number}")
    async with bucket.mount() as mount:
        with trio.move_on_after(0.15):
            await mount.ask("number7")

    index = Index(bucket.folder, bucket.model.name)
    assert index.verify() == []
    index.close()
    async with bucket.mount() as mount:
        await mount.indexed()
        assert (await mount.texts("number299"))[0] == "note about number299"


async def test_the_same_question_is_answered_from_memory_for_a_moment(bucket: Bucket) -> None:
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        first = await mount.ask("apples  type:observation")
        assert await mount.ask("type:observation apples") is first
        assert mount.recall.statistics().repeated == 1


async def test_work_that_can_wait_waits_until_nobody_asks_but_not_for_ever(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    recall = Recall(Replica(bucket.memory), bucket.clock, lambda: pytest.fail("not needed"), no_model)
    begun = trio.current_time()
    await recall.quiet()
    assert trio.current_time() == begun
    await recall.question("anything", [])
    await recall.quiet()
    assert trio.current_time() == begun + QUIET

    async def ask_on() -> None:
        while True:
            await recall.question("anything", [])
            await trio.sleep(QUIET / 2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_on)
        await trio.testing.wait_all_tasks_blocked()
        begun = trio.current_time()
        await recall.quiet()
        assert trio.current_time() == pytest.approx(begun + QUIET_MOST)
        nursery.cancel_scope.cancel()


class Halting(FakeEmbedder):
    """Reads the first two notes with the one before them, and the next ones when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = trio.Event()

    async def passages(self, texts: Any) -> Any:
        read = {text[text.rindex("note ") :] for text in (*self.embedded, *texts) if "apples" in text}
        if len(read) > 3:
            await self.may_go_on.wait()
        return await super().passages(texts)


async def test_how_long_the_rest_of_the_texts_takes_is_said_from_the_first_ones_on(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeder, "EMBEDDED_AT_ONCE", 2)
    for number in range(5):
        await bucket.write(f"n{number}", f"note {number} about apples")
    model = Halting()

    async def opened() -> Embedder:
        return model

    async with bucket.mount(opened) as mount, trio.open_nursery() as nursery:
        nursery.start_soon(mount.ask, "apples")
        while (figures := mount.recall.statistics()).seconds_left is None:
            await trio.sleep(0.01)
        assert figures.index is not None
        assert 0 < figures.index.embedded < figures.index.pieces == 5
        assert figures.seconds_left >= 0
        model.may_go_on.set()
        assert await mount.recall.understood(DONE_WITHIN)
        assert mount.recall.statistics().seconds_left == 0
