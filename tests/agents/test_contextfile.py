"""Files that show a space's context: kept up to date by the mount, and only where they were installed and still are."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import virtual

from livememfs.agents.contextfile import ContextFiles
from livememfs.agents.install.record import ContextFile
from livememfs.agents.install.table import CURSOR_HEAD
from livememfs.cache.changes import Change
from livememfs.errors import LiveMemError

RULE = ".cursor/rules/livememfs-context.mdc"
OBSERVED = Change("alpha/observations/20260101T000000_change_00000001.md", "put", "e", "local")


class World:
    def __init__(self, folder: Path) -> None:
        self.file = folder / RULE
        self.file.parent.mkdir(parents=True)
        self.installed = [ContextFile(folder, "alpha", RULE, CURSOR_HEAD)]
        self.text = "the first"
        self.failures: list[tuple[str, LiveMemError]] = []
        self.asked: list[str] = []
        self.rules = ContextFiles(
            Path("/mnt"),
            self.page,
            lambda path, error: self.failures.append((path, error)),
            installed=lambda _: self.installed,
        )

    async def page(self, space: str) -> str:
        self.asked.append(space)
        return self.text

    async def change(self) -> None:
        """An observation was made, and there was time to write."""
        self.rules.heard(OBSERVED)
        await trio.sleep(10)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Have a mount begin, and then `main`."""

        async def whole() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.rules.run)
                await trio.sleep(10)
                await main()
                nursery.cancel_scope.cancel()

        virtual.run(whole)


def test_a_rule_is_brought_up_to_date_when_the_mount_begins_and_a_while_after_a_change(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text(CURSOR_HEAD + "old")
    world.file.chmod(0o600)

    async def main() -> None:
        assert world.file.read_text() == (CURSOR_HEAD + "the first")
        world.text = "the second"
        world.rules.heard(OBSERVED)
        await world.change()
        assert world.file.read_text() == (CURSOR_HEAD + "the second")

    world.run(main)
    assert world.asked == ["alpha", "alpha"]  # changes that come together are one
    assert world.file.stat().st_mode & 0o777 == 0o600
    assert list(world.file.parent.iterdir()) == [world.file]


def test_what_concerns_no_context_asks_nobody(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text(CURSOR_HEAD + "old")

    async def main() -> None:
        world.rules.heard(Change("alpha/bank/progress.md", "put", "e", "local"))
        world.rules.heard(Change("beta/observations/20260101T000000_change_00000001.md", "put", "e", "local"))
        await trio.sleep(10)

    world.run(main)
    assert world.asked == ["alpha"]


def test_a_file_that_its_user_removed_is_not_made_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(world.change)
    assert list(world.file.parent.iterdir()) == []


def test_the_same_bytes_are_not_written_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text(CURSOR_HEAD + "the first")
    world.run(world.change)
    assert world.rules.statistics() == {"written": 0, "failed": 0}


def test_a_file_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text(CURSOR_HEAD + "old")
    world.file.chmod(0o400)

    async def main() -> None:
        world.file.chmod(0o600)
        await world.change()

    world.run(main)
    assert [path for path, _ in world.failures] == [str(world.file)]
    assert world.file.read_text() == (CURSOR_HEAD + "the first")


def test_a_project_on_a_dead_disk_is_told_once_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "alive")
    world.file.write_text(CURSOR_HEAD + "old")
    dead = tmp_path / "dead"
    world.installed.insert(0, ContextFile(dead, "alpha", RULE, CURSOR_HEAD))
    stat = Path.stat

    def lost(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.is_relative_to(dead):
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", lost)

    async def main() -> None:
        world.text = "the second"
        await world.change()
        assert world.file.read_text() == (CURSOR_HEAD + "the second")

    world.run(main)
    assert [path for path, _ in world.failures] == [str(dead / RULE)]
    assert world.rules.statistics() == {"written": 2, "failed": 2}


def test_a_disk_that_dies_while_a_file_is_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.file.write_text(CURSOR_HEAD + "old")

    def lost(_: Path) -> bool:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    async def main() -> None:
        monkeypatch.setattr(Path, "exists", lost)
        world.text = "the second"
        await world.change()
        monkeypatch.undo()

    world.run(main)
    assert [path for path, _ in world.failures] == [str(world.file)]


def test_a_link_in_place_of_the_rule_leads_to_no_file_of_somebody_elses(tmp_path: Path) -> None:
    """As a commit may bring one, into the home directory or to another file of the project."""
    world = World(tmp_path / "project")
    outside, inside = tmp_path / "precious.conf", tmp_path / "project/README.md"
    outside.write_text(CURSOR_HEAD + "like a rule, and outside")
    inside.write_text("Host work")
    world.file.symlink_to(outside)

    async def main() -> None:
        world.file.unlink()
        world.file.symlink_to(inside)
        await world.change()

    world.run(main)
    assert outside.read_text() == (CURSOR_HEAD + "like a rule, and outside")
    assert inside.read_text() == "Host work"
    assert [str(error).partition(": ")[2][:9] for _, error in world.failures] == ["a link le", "it is not"]


def test_a_rule_that_its_user_wrote_anew_is_left_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text("my own rule")
    world.run(trio.lowlevel.checkpoint)
    assert world.file.read_text() == "my own rule"
    assert len(world.failures) == 1
