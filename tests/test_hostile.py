"""Whatever stands in the bucket, an app on it stays up, opens again and serves what is good.

Every place of `keys.PLACES` is taken in turn. LIVEMEMFS_TEST_LONG=1 tries all bodies and keys, else a share of each.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
import trio
import virtual
from hostile import METADATA, bodies, hostile_keys

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.memories.notes import write_note
from livememfs.records import keys
from livememfs.records.keys import PLACES
from livememfs.records.turn import Turn
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.store.retry import RetryingStore
from livememfs.tree.node import Caller, Directory, File, Node, OpenMode, Symlink

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
GOOD, SPACE = "good", "hostile"
BODIES, KEYS = 300, 200
LOOKS = 5.0
"""Seconds of virtual time between two looks at the bucket: these looks are most of the work here."""
SHARE = 1 if LONG else 80
"""One in so many is tried."""
AT_ONCE = 25
"""Bodies of one place that stand beside each other, where a place has room for more than one."""
ROOM_FOR_ONE = ("_meta.json", "_rules.md", "_synthesis.md", "tokens.json", "schedule.json", ".keep")
NEVER_READ = {"journal.wait", "metrics"}
"""Files that wait for something, or load a library."""
GROUPS = [
    [place for place in PLACES if place.kind in kinds]
    for kinds in (
        ("meta", "rules", "synthesis", "keep"),
        ("note", "live-other", "bank"),
        ("ledger",),
        ("memory", "memory-old", "observation", "session"),
        ("index", "other", "backup"),
        ("system",),
    )
]
Made = Callable[[keys.Place, int], Iterator["Object"]]
MARK = "The ferry leaves at nine."


class Town:
    """A bucket in memory that any app opens, with a space that is good."""

    def __init__(self, folder: Path) -> None:
        self.memory = MemoryStore()
        self.settings = Settings(
            store=str(folder / "s"), cache=str(folder / "c"), embed_model="none", host="laptop", poll_interval=LOOKS
        )

    async def put(self, key: str, data: bytes, meta: dict[str, str] | None = None) -> None:
        await self.memory.put(key, data, meta=meta)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[App]:
        """An app that stays. Time stands while its index is at work, in threads of its own."""
        async with open_app(self.settings, serving=True) as app:

            def indexes() -> bool:
                feeder = app.recall._feeder
                return feeder is not None and feeder._limiter.borrowed_tokens > 0

            with virtual.outside(indexes):
                yield app


async def walk(node: Node, counts: Counter[str], depth: int = 0) -> None:
    """Look at everything below a node, as tools do. Only domain errors are passed over."""
    for ask in (node.attrs, node.xattrs):
        try:
            await ask()
        except LiveMemError:
            counts["refused"] += 1
    if isinstance(node, File) and node.name not in NEVER_READ:
        await read(node, counts)
    elif isinstance(node, Symlink):
        await node.target()
    elif isinstance(node, Directory) and depth < 6:
        try:
            children = await node.children()
        except LiveMemError:
            counts["refused"] += 1
            return
        counts["listed"] += 1
        for _, child in children:
            await walk(child, counts, depth + 1)


async def read(node: File, counts: Counter[str]) -> bytes:
    try:
        handle = await node.open(OpenMode(), Caller())
        try:
            data = await handle.read(0, 1 << 16) if handle.seekable else b""
        finally:
            await handle.release()
    except LiveMemError:
        counts["refused"] += 1
        return b""
    counts["read"] += 1
    return data


async def check_good(app: App, number: int) -> None:
    """The good space does all that a space does."""
    text = f"{MARK} Written after {number}."
    await write_note(app.replica, app.clock, GOOD, text, agent="ada")
    good = await app.tree.child(GOOD)
    assert isinstance(good, Directory)
    live = await good.child("live")
    assert isinstance(live, Directory)
    assert await live.children()
    await app.recall.prepare([GOOD], 60)
    answer = await app.recall.ask("when does the ferry leave", [GOOD])
    assert answer.found.hits, answer.notes
    assert await app.pages.page(GOOD) is not None
    result = await app.consolidations.run_once(GOOD)
    assert result.state == "ok", result.reason
    status = json.loads(json.dumps(app.tree.context.status()))
    assert status["statistics"]["background"]["failing"] == 0, status["failing_tasks"]


async def consolidate(app: App, space: str) -> None:
    result = await app.consolidations.run_once(space)
    assert "internal error" not in result.reason, (space, result.reason)


async def use(app: App, hostile: Sequence[str]) -> None:
    """All that is done with spaces, done with hostile ones: what comes of it is an answer or a domain error."""
    for space in hostile:
        app.replica.names.watch.used(keys.live_prefix(space))
    await trio.sleep(4 * LOOKS)
    await walk(app.tree, Counter())
    await app.recall.ask("when does the ferry leave", [*hostile, GOOD])
    for space in hostile:
        for work in (app.pages.page(space), app.uses.opened(space), app.merging.opened(space)):
            try:
                await work
            except LiveMemError:
                continue
        for number in range(AT_ONCE):
            answer = await app.prehook.turn(space, Turn("when does the ferry leave?", f"s-{number}"))
            assert app.prehook.statistics()["failed"] == 0, answer.notes
    async with trio.open_nursery() as runs:  # side by side, since a lease that cannot be read is waited for
        for space in hostile:
            runs.start_soon(consolidate, app, space)
    with suppress(LiveMemError):
        await app.tokens.list()
    await trio.sleep(310)  # and a look at everything, whoever wrote it


Object = tuple[str, bytes, dict[str, str] | None]


def of_bodies(place: keys.Place, share: int) -> Iterator[Object]:
    """Hostile bodies in one place, each batch in a space of its own."""
    room = 1 if place.example.endswith(ROOM_FOR_ONE) or "leases" in place.example else AT_ONCE
    for at, body in enumerate(list(bodies(place, SPACE, BODIES))[::share]):
        yield varied(place.example.format(space=f"{SPACE}-{at // room}"), at % room), body, None


def of_keys(place: keys.Place, share: int) -> Iterator[Object]:
    """Hostile keys near one place, with metadata that is no better, each batch in a space of its own."""
    for at, key in enumerate(hostile_keys(place, f"{SPACE}-0", KEYS)[::share]):
        yield key.replace(f"{SPACE}-0", f"{SPACE}-{at // AT_ONCE}"), b"x" * (at % 3), dict(METADATA[at % len(METADATA)])


def varied(example: str, at: int) -> str:
    """Another key of the same place."""
    for digits in ("d4d8560b", "1a2b3c4d", "0123abcd", "00112233"):
        if digits in example:
            return example.replace(digits, f"{int(digits, 16) + at:08x}")
    for digits in ("00000003", "00000004"):
        if digits in example:
            return example.replace(digits, f"{int(digits) + at:08d}")
    return example.replace("s-1", f"s-{at}") if "s-1" in example else example if at == 0 else f"{example}{at}"


async def make_space(town: Town, space: str) -> None:
    """A space as anybody makes one: a record, and a note or two."""
    meta = {"space_id": space, "created_at": "2026-02-20T14:00:00Z"}
    await town.put(keys.meta_key(space), json.dumps(meta).encode())
    await town.put(keys.rules_key(space), b"# Rules\n")
    await town.put(f"{space}/live/20260220T140000_ada_todo_0000000a.md", f"{MARK}\n".encode())


async def trial(town: Town, written: Sequence[Object]) -> None:
    """An app that is up when it all appears, and one that begins with it there."""
    hostile = sorted({name for key, _, _ in written for name in re.findall(rf"{SPACE}-[0-9]+", key)}) or [SPACE]
    with patch("livememfs.app.open_store", lambda *_: RetryingStore(town.memory)):
        async with town.opened() as app:
            if not await spaces.is_space(app.replica, GOOD):
                await spaces.create(app.replica, app.clock, GOOD)
            for space in hostile:
                await make_space(town, space)
                app.replica.names.watch.used(keys.live_prefix(space))
            await trio.sleep(3 * LOOKS)
            for key, data, meta in written:
                await town.put(key, data, meta)
            await use(app, hostile)
            await check_good(app, 1)
            assert app.background.statistics().failures == {}, app.background.failing()
        async with town.opened() as app:
            await use(app, hostile)
            await check_good(app, 2)
            assert app.background.statistics().failures == {}, app.background.failing()


@pytest.mark.parametrize("made", [of_bodies, of_keys])
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: "-".join(dict.fromkeys(place.kind for place in group)))
def test_whatever_stands_in_the_bucket_an_app_serves_the_rest(
    group: Sequence[keys.Place], made: Made, tmp_path: Path, expect_log: Callable[[str], None]
) -> None:
    """Also while it appears; and all that could not be read is named once for each version."""
    expect_log("an entry of the ledger cannot be read")
    virtual.run(trial, Town(tmp_path), [written for place in group for written in made(place, SHARE)])
