"""What is told often is not told more for that: only what was used comes first."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import trio

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.memories import storing as memories
from livememfs.recall.index.merits import UnaskedMemories, Use
from livememfs.recall.turn.inject import Candidate, Telling
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.spaces import making as spaces

SPACE = "alpha"
DONE_WITHIN = 30.0
OLD = "---\ntype: decision\nimportance: 0.8\nupdated_at: 2025-{:02}-01T00:00:00Z\n---\n{}"
"""Older than what keeps all of its weight: the older weighs less."""


async def decide(app: App, month: int, text: str) -> str:
    content = OLD.format(month, text)
    return await memories.remember(app.replica, app.clock, SPACE, keys.MEMORIES, content, agent="me")


def foremost(app: App) -> list[str]:
    """What comes with any message, in its order."""
    index = app.recall.at_once
    assert index is not None
    now = int(app.clock.now().timestamp())
    numbers = index.foremost((SPACE,), UnaskedMemories(now=now, since=now + 1)).important
    records = index.records(numbers)
    return [records[number].key for number in numbers]


async def told(app: App, key: str, question: str, sessions: range) -> None:
    """One memory is told alone, to many sessions."""
    candidate = Candidate(key.removesuffix(".md"), "relevant", "zebras are not served")
    for number in sessions:
        app.evidence.tells(Telling(SPACE, f"s{number}", question, (candidate,)))
    await app.evidence.settle()


async def test_telling_moves_nothing_and_one_use_does(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none")
    async with open_app(settings, mountpoint=tmp_path / "m") as app:
        await spaces.create(app.replica, app.clock, SPACE)
        newer = await decide(app, 3, "the gateway bans whoever tries a fifth time, port 5433")
        older = await decide(app, 1, "zebras are not served")
        await app.recall.prepare([SPACE], DONE_WITHIN)
        assert foremost(app) == [newer, older]

        await told(app, older, "what about zebras?", range(60))
        assert app.uses.of(SPACE, older).told == 60
        await _counted(app)
        assert foremost(app) == [newer, older], "what was told often comes first"

        for number in range(60):
            event = Event("e", f"s{number}", "said", datetime.now(UTC), text="Zebras are never served here.")
            app.evidence.heard(SPACE, event)
        await app.evidence.settle()
        await _counted(app)
        assert app.uses.of(SPACE, older).uses == 0, "the question has its word, and one word is not enough"

        await _counted(app, older)
        assert foremost(app) == [older, newer]


async def _counted(app: App, *records: str) -> None:
    """Records are used, until the index has heard of it, which is told in a thread."""
    index, done = app.recall.at_once, threading.Event()
    assert index is not None
    hear = index.used

    def heard(uses: Mapping[tuple[str, str], Use]) -> None:
        hear(uses)
        if (SPACE, "the last one") in uses:
            done.set()

    index.used = heard  # type: ignore[method-assign]  # to see that it has come
    app.uses.count(SPACE, [*records, "the last one"])
    assert await trio.to_thread.run_sync(done.wait, DONE_WITHIN)
    index.used = hear  # type: ignore[method-assign]  # as it was
