"""While the index is opened or made, words answer: nothing that is there is unknown to the first message."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from recall_world import SPACE, Bucket

from livememfs.app import App, open_app
from livememfs.cache.replica import Replica
from livememfs.config import Settings
from livememfs.memories.notes import write_note
from livememfs.recall.index.reader import records_in
from livememfs.recall.service import Patience
from livememfs.recall.turn.athand import MOST, AtHand, excerpt, fitting, read_newest
from livememfs.recall.turn.prehook import LATEST, PATIENCE, Prehook, TurnAnswer
from livememfs.recall.turn.told import ToldSessions
from livememfs.records import keys
from livememfs.records.keys import NoteName
from livememfs.records.note import Note
from livememfs.records.space import Meta
from livememfs.records.turn import Turn
from livememfs.spaces import making as spaces

NOW = datetime.now(UTC).replace(microsecond=0)
ZEBRA = "The zebra of the director lives in the garage."
ANSWERED_WITHIN = 2.0
"""Seconds, on a machine that is busy; what is waited for ends after LATEST."""


def settings(tmp_path: Path, store: Path | None = None) -> Settings:
    return Settings(store=str(store or tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none")


async def asked(app: App, session: str = "s") -> tuple[TurnAnswer, float]:
    """The answer to one question, and the seconds that it took."""
    began = time.monotonic()
    answer = await app.prehook.turn(SPACE, Turn("where does the zebra live?", session))
    return answer, time.monotonic() - began


def opens_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index takes longer to open than anybody waits."""
    from livememfs.recall.index import local as index

    opened = index.Index.__init__

    def slowly(self: Any, *arguments: Any) -> None:
        time.sleep(PATIENCE + 0.5)
        opened(self, *arguments)

    monkeypatch.setattr(index.Index, "__init__", slowly)


@pytest.mark.parametrize("slow", [False, True])
async def test_the_first_message_of_a_fresh_space_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    if slow:
        opens_slowly(monkeypatch)
    async with open_app(settings(tmp_path)) as app:
        await spaces.create(app.replica, app.clock, SPACE)
        await write_note(app.replica, app.clock, SPACE, ZEBRA, agent="ada")
        answer, seconds = await asked(app)

        assert ZEBRA in answer.block
        assert not any("being opened" in note for note in answer.notes)
        assert any("by words alone" in note for note in answer.notes) or not slow
        assert seconds < ANSWERED_WITHIN


async def test_what_was_written_a_moment_ago_is_told_before_the_index_knows(bucket: Bucket) -> None:
    async with bucket.mount(patience=Patience()) as mount, mount.prehook() as here:
        await mount.indexed()
        feeder = mount.recall._feeder
        assert feeder is not None
        await feeder._limiter.acquire_on_behalf_of("a step that takes long")
        note = Note(bucket.clock.now(), "me", "observation", (), SPACE, ZEBRA)
        await mount.replica.put(keys.live_key(SPACE, "20260220T140000_me_observation_d4d8560b.md"), note.render())
        answer = await here.turn(SPACE, Turn("the zebra?", "s"))
        feeder._limiter.release_on_behalf_of("a step that takes long")

    assert ZEBRA in answer.block
    assert answer.notes == (), "all that the index lacks was looked at"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder store with 10,000 notes over a year, the last one about a zebra."""
    folder = tmp_path_factory.mktemp("many")
    live = folder / "s" / SPACE / "live"
    live.mkdir(parents=True)
    (folder / "s" / keys.meta_key(SPACE)).write_bytes(Meta(SPACE, "", "ada", NOW).render())
    for number in range(10_000):
        then = NOW - timedelta(minutes=50 * (10_000 - number))
        text = ZEBRA if number == 9_999 else f"Note {number} is about the weather."
        name = str(NoteName(then, "ada", "observation", f"{number:08x}"))
        (live / name).write_bytes(Note(then, "ada", "observation", (), SPACE, text).render())
    return folder


@pytest.mark.parametrize("slow", [False, True])
async def test_of_a_large_space_that_is_new_here_the_newest_are_looked_at_and_it_is_said(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    if slow:
        opens_slowly(monkeypatch)
    async with open_app(settings(tmp_path, many / "s")) as app:
        answer, seconds = await asked(app, f"s-{slow}")

        assert ZEBRA in answer.block
        assert any(re.search("the newest [1-9][0-9]* objects", note) for note in answer.notes), answer.notes
        assert seconds < ANSWERED_WITHIN


async def test_the_newest_are_read_with_few_requests(bucket: Bucket, autojump_clock: trio.testing.MockClock) -> None:
    for number in range(2_500):
        then = bucket.clock.now() - timedelta(hours=2_500 - number)
        key = keys.live_key(SPACE, str(NoteName(then.replace(microsecond=0), "me", "todo", f"{number:08x}")))
        await bucket.memory.put(key, f"note {number}".encode())
    bucket.store.forget()
    read = AtHand()

    await read_newest(Replica(bucket.store), SPACE, None, bucket.clock.now(), read)

    assert {one.text for one in read.records} == {f"note {number}" for number in range(2_500 - MOST, 2_500)}
    assert bucket.store.counts["list"] <= 16
    assert not read.whole


async def test_a_bucket_that_is_away_costs_what_it_has_and_no_more(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PATIENCE < LATEST < 1.0
    bucket.store.blackhole = True
    async with bucket.mount() as mount:
        began = time.monotonic()
        answer = await Prehook(mount.recall, bucket.clock, ToldSessions(mount.replica)).turn(SPACE, Turn("zebra", "s"))
        assert answer.block == ""
        assert time.monotonic() - began < ANSWERED_WITHIN
        assert answer.notes
        bucket.store.blackhole = False


def records(*texts: str) -> list[Any]:
    return [
        one
        for number, text in enumerate(texts)
        for one in records_in(f"a/live/20260220T14000{number}_me_todo_0000000{number}.md", text.encode(), "1", 0)
    ]


def test_what_has_more_and_rarer_words_of_the_message_fits_better() -> None:
    found = records("the cache of the build", "the build", "a zebra in the build", "nothing of that")

    fits = [one.text for one, _ in fitting("why does the zebra build?", found)]

    assert fits[0] == "a zebra in the build"
    assert set(fits[1:]) == {"the build", "the cache of the build"}
    assert fitting("the of a", found) == fitting("", found) == []
    assert [score for _, score in fitting("zebra", found)] == [1.0]


def test_an_excerpt_has_the_lines_that_fit_in_their_order() -> None:
    text = "\n".join(["- first zebra", *[f"- line {number}" for number in range(100)], "> last zebra", "# x"])

    assert excerpt(text, "zebras?", 24) == "first zebra\nlast zebra\nx"
    assert excerpt("> one\n\n- two\n", "three", 100) == "one\ntwo"
    assert excerpt("word " * 1_000, "word", 10) == ("word " * 1_000).strip()
