"""A crash at every moment: around each commit and before each change on the disk. The next process brings both sides to
where they would have come without it: nothing is lost, nothing is there twice.

A note that has reached the bucket is taken away by another host before the next process begins: it must not come back.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
import trio
from hosts import SPACE, Host
from mirrored import NEVER, Crash, Machine, Moments, dying, hasty, new_space

from livememfs.errors import ObjectMissing
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261129"))
TRIED = 12
"""Moments that are tried where time is short; else all of them."""
LINE = "the token of this note"


class Story:
    """One run of the same story, in a world of its own."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.machine = Machine("one", folder, self.memory, self.clock)

    async def begin(self, mount: Host) -> None:
        """What both sides have before anything can go wrong."""
        for name in ("edited", "renamed", "removed", "theirs", "gone there", "folder/inside"):
            self.machine.write(name, f"{name} at first\n")
        async with self.machine.up() as running:
            await running.settle()
        await mount.write(f"{SPACE}/theirs", "theirs at first\nand more\n")
        await mount.write(f"{SPACE}/new there", "new there\n")
        await mount.unlink(f"{SPACE}/gone there")
        top = self.machine.top
        self.machine.write("edited", "and here\n", "a")
        self.machine.write("new/here", "new here\n")
        self.machine.write("live/decision.md", f"{LINE}\n")
        (top / "renamed").rename(top / "another name")
        (top / "removed").unlink()
        (top / "folder").rename(top / "moved")
        (top / "link").symlink_to("edited")

    async def taken(self, mount: Host) -> bool:
        """Take the note away if the bucket has it, as another host would."""
        found = await mount.names(f"{SPACE}/live")
        for name in found:
            await mount.unlink(f"{SPACE}/live/{name}")
        return bool(found)

    async def check(self, *, taken: bool) -> None:
        files = self.machine.files()
        notes = {name: text for name, text in files.items() if name.startswith("live/")}
        assert {name: text for name, text in files.items() if text != "/" and name not in notes} == {
            "edited": "edited at first\nand here\n",
            "new/here": "new here\n",
            "another name": "renamed at first\n",
            "theirs": "theirs at first\nand more\n",
            "new there": "new there\n",
            "moved/inside": "folder/inside at first\n",
            "link": "-> edited",
        }
        assert len([text for text in notes.values() if LINE in text]) == (0 if taken else 1)
        assert "live/decision.md" not in files
        for name, text in files.items():
            if text != "/" and not text.startswith("->"):
                assert (await self.memory.get(f"{SPACE}/{name}")).data.decode() == text
        for name in ("renamed", "removed", "gone there", "folder/inside"):
            with pytest.raises(ObjectMissing):
                await self.memory.head(f"{SPACE}/{name}")
        assert self.machine.kept() == {}


def moments_of(folder: Path, at: int) -> Moments:
    """Run the story, with a crash at one moment; the moments that there were."""

    async def main() -> Moments:
        async with trio.open_nursery() as nursery:
            story = Story(folder)
            mount = await new_space(story.memory, story.clock, nursery)
            await story.begin(mount)
            moments, taken = Moments(story.machine.top, at), False
            try:
                with dying(moments):
                    async with story.machine.up() as running:
                        await running.settle()
            except (Crash, BaseExceptionGroup) as end:
                if isinstance(end, BaseExceptionGroup) and end.split(Crash)[1] is not None:
                    raise
                taken = await story.taken(mount)
            async with story.machine.up() as running:
                await running.settle()
            try:
                await story.check(taken=taken)
            except AssertionError as error:
                raise AssertionError(f"after a crash at moment {at}, {moments.where}") from error
            nursery.cancel_scope.cancel()
        return moments

    with hasty():
        found = trio.run(main)
    shutil.rmtree(folder)
    return found


def test_a_crash_at_every_moment_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    count = moments_of(tmp_path / "whole", NEVER).count
    assert count > 50
    tried = range(1, count + 1)
    for at in tried if LONG else random.Random(SEED).sample(tried, TRIED):
        moments_of(tmp_path / str(at), at)
