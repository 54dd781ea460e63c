"""From one model to the next: no question in between is without meaning, and nothing of the former one is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trio
import trio.testing
from index_world import ALL, DIM, THREE, embed, near, note, read
from recall_world import DONE_WITHIN, SPACE, Bucket

from livememfs.errors import EmbeddingUnavailable
from livememfs.recall.embed.base import Embedder
from livememfs.recall.index import kept
from livememfs.recall.index.local import Index
from livememfs.recall.service import Patience, Recall
from livememfs.testing.embed import FakeEmbedder, hashed


class Turned(FakeEmbedder):
    """Another model with vectors as long: compared with the former's, they find the opposite."""

    def __init__(self) -> None:
        super().__init__(name="turned-1")
        self.may = trio.Semaphore(0)
        self.waits = True

    async def passages(self, texts):
        if self.waits:
            await self.may.acquire()
        return -(await super().passages(texts))

    async def question(self, text):
        return -(await super().question(text))


async def searched(recall: Recall, model: str) -> None:
    """Wait until the vectors of a model are searched."""
    with trio.fail_after(DONE_WITHIN):
        while (index := recall.statistics().index) is None or index.searched != model:
            await trio.sleep(0.005)


async def opened(model: Embedder) -> Embedder:
    return model


async def test_the_former_model_answers_until_the_next_has_read_everything_and_is_then_forgotten(
    bucket: Bucket,
) -> None:
    changed = Turned()
    await bucket.write("one", "apples are red")
    await bucket.write("two", "cars are fast")
    async with bucket.mount() as mount:
        await mount.indexed()
    former = FakeEmbedder()

    async with bucket.mount(
        lambda: opened(changed),
        open_engine=lambda: Index(bucket.folder, "turned-1"),
        open_former=lambda name, place: opened(former),
    ) as mount:
        assert (await mount.ask("apples")).found.strategy == "semantic"
        index = mount.recall.at_once
        assert isinstance(index, Index)
        assert former.asked == ["apples"]
        assert changed.asked == []
        assert (index.statistics().model, index.statistics().searched) == ("turned-1", "fake-1")

        await mount.replica.put(f"{SPACE}/live/20260101T000000_a_decision_00000002.md", b"a bicycle in the yard")
        assert await mount.recall.understood(DONE_WITHIN), "nobody waits for the next model to have read everything"
        assert any("bicycle" in text for text in former.embedded)
        vector = await former.question("bicycle yard")
        [(best, _)] = index.near(vector, ALL, 1)
        assert "bicycle" in index.table.records([index.briefs([best])[best][1].id]).popitem()[1].text

        changed.waits = False
        changed.may.release()
        await searched(mount.recall, "turned-1")
        assert await mount.recall.understood(DONE_WITHIN)
        assert (await mount.ask("red apples")).found.strategy == "semantic"
        assert changed.asked == ["red apples"]
        with trio.fail_after(DONE_WITHIN):
            while not index.change.over:
                await trio.sleep(0.005)
        assert index.table.eights("fake-1", index.table.meanings(index.table.piece_numbers())) == {}
        assert index.table.state("prior fake-1") is None


async def test_a_former_model_that_cannot_be_had_any_more_leaves_words_and_what_the_next_has_read(
    bucket: Bucket, expect_log
) -> None:
    expect_log("the former model is not used")
    changed = Turned()
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.indexed()

    async def gone(name: str, place: str) -> Embedder:
        raise EmbeddingUnavailable("no weights")

    async with bucket.mount(
        lambda: opened(changed),
        open_engine=lambda: Index(bucket.folder, "turned-1"),
        open_former=gone,
        patience=Patience(first=0.01),
    ) as mount:
        answer = await mount.ask("apples")
        assert [hit.record.text for hit in answer.found.hits] == ["apples are red"]
        await searched(mount.recall, "turned-1")
        changed.waits = False
        changed.may.release()
        assert await mount.recall.understood(DONE_WITHIN)
        assert (await mount.ask("red apples")).found.strategy == "semantic"


async def test_the_former_model_answers_while_the_next_is_being_loaded_or_cannot_be(bucket: Bucket, expect_log) -> None:
    expect_log("the former model goes on")
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.indexed()
    may = trio.Event()

    async def broken() -> Embedder:
        await may.wait()
        raise EmbeddingUnavailable("no graph")

    async with bucket.mount(
        broken,
        open_engine=lambda: Index(bucket.folder, "turned-1"),
        open_former=lambda name, place: opened(FakeEmbedder()),
    ) as mount:
        assert (await mount.ask("apples")).found.strategy == "semantic"
        may.set()
        with trio.fail_after(DONE_WITHIN):
            while "no graph" not in mount.recall.statistics().last_error:
                await trio.sleep(0.005)
        assert (await mount.ask("red apples")).found.strategy == "semantic"


async def test_a_former_model_that_is_at_work_when_it_is_over_is_no_fault(bucket: Bucket) -> None:
    """No alarm is logged."""
    changed, former, began, goes_on = Turned(), FakeEmbedder(), trio.Event(), trio.Event()

    async def cut_off(texts):
        began.set()
        await goes_on.wait()
        raise trio.ClosedResourceError

    former.passages = cut_off  # type: ignore[method-assign]
    await bucket.write("one", "apples are red")
    async with bucket.mount() as mount:
        await mount.indexed()

    async with bucket.mount(
        lambda: opened(changed),
        open_engine=lambda: Index(bucket.folder, "turned-1"),
        open_former=lambda name, place: opened(former),
    ) as mount:
        assert (await mount.ask("apples")).found.strategy == "semantic"
        await mount.replica.put(f"{SPACE}/live/20260101T000000_a_decision_00000002.md", b"a bicycle in the yard")
        await began.wait()
        changed.waits = False
        changed.may.release()
        await searched(mount.recall, "turned-1")
        goes_on.set()
        await trio.testing.wait_all_tasks_blocked()


# --- one index ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An index whose pieces all have a vector of the model `old`."""
    index = Index(tmp_path, "old")
    index.apply([], THREE)
    embed(index)
    index.change.end()
    index.close()
    return tmp_path


def test_what_goes_and_what_comes_meanwhile_is_known_to_the_former_vectors(folder: Path) -> None:
    index = Index(folder, "new")
    index.change.begin()
    index.apply(["space/live/one.md"], [read(note("four", "queue epsilon"))])
    assert {*near(index, "gamma"), *near(index, "alpha")} <= {"two", "three"}
    texts = index.change.lacking(10)
    index.change.take_vectors([text.meaning for text in texts], np.array([hashed(text.own, DIM) for text in texts]))

    assert len(texts) == 1
    assert near(index, "queue epsilon")[0] == "four"
    assert index.change.lacking(10) == []
    assert len(index.unembedded(10)) == 4, "the next model has read none"
    index.close()


def test_a_change_that_is_interrupted_goes_on_with_the_former_vectors(folder: Path) -> None:
    for _ in range(2):
        index = Index(folder, "new")
        index.change.begin()
        assert (index.change.former, near(index, "alpha")) == ("old", ["one"])
        texts = index.unembedded(1)
        index.take_vectors([text.meaning for text in texts], np.array([hashed("x", DIM)] * len(texts)))
        index.close()


def test_who_changes_back_in_time_has_lost_nothing(folder: Path) -> None:
    index = Index(folder, "new")
    texts = index.unembedded(1)
    index.take_vectors([text.meaning for text in texts], np.array([hashed("x", DIM)]))
    index.close()

    index = Index(folder, "old")
    assert (index.change.former, index.unembedded(10), near(index, "alpha")) == ("", [], ["one"])
    index.close()


def test_in_the_end_nothing_is_left_of_any_other_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By portions, and of models on both sides of the alphabet."""
    monkeypatch.setattr(kept, "FORGOTTEN_AT_ONCE", 1)
    index = Index(folder, "other")
    index.table.keep_segment("old", "space", "a.vec", [(b"m" * 16, b"v")])
    index.close()
    for model in ("zebra", "middle"):
        index = Index(folder, model)
        assert index.change.former == "old"
        embed(index)
        vectors = len(index.table.meanings(index.table.piece_numbers()))
        index.close()

    index = Index(folder, "middle")
    index.change.begin()
    index.change.end()

    assert (index.statistics().vectors, index.statistics().searched) == (vectors, "middle")
    assert index.table.segments("old", "space") == {}
    assert near(index, "alpha") == ["one"]
    index.close()
    index = Index(folder, "next")
    assert index.change.former == "middle"
    index.close()


def test_an_index_of_an_earlier_version_knows_its_former_model_by_the_mean_that_it_kept(tmp_path: Path) -> None:
    index = Index(tmp_path, "old")
    index.apply([], THREE)
    embed(index)
    index.expect(hashed("mean", DIM))
    index.close()

    index = Index(tmp_path, "new")
    assert index.change.former == "old"
    index.close()
