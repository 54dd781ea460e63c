"""Cursor's rule files: kept up to date by the mount, touched only where they were installed and still are."""

from __future__ import annotations

from pathlib import Path

import trio

from livememfs.agents.install.record import RuleFile, rule_text
from livememfs.agents.rulefile import RuleFiles
from livememfs.cache.changes import Change
from livememfs.errors import LiveMemError
from livememfs.testing import virtual

OBSERVED = Change("alpha/observations/20260101T000000_change_00000001.md", "put", "e", "local")


class World:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "rules.mdc"
        self.text = "the first"
        self.failures: list[tuple[str, LiveMemError]] = []
        self.asked: list[str] = []
        self.rules = RuleFiles(
            Path("/mnt"),
            self.page,
            lambda path, error: self.failures.append((path, error)),
            installed=lambda _: [RuleFile(self.file, "alpha")],
        )

    async def page(self, space: str) -> str:
        self.asked.append(space)
        return self.text

    def run(self, main: object) -> None:
        async def whole() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.rules.run)
                await trio.sleep(10)
                await main()  # type: ignore[operator]  # an async function, as each test gives one
                nursery.cancel_scope.cancel()

        virtual.run(whole)


def test_a_rule_is_brought_up_to_date_when_the_mount_begins_and_a_while_after_a_change(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text("old")
    world.file.chmod(0o600)

    async def main() -> None:
        assert world.file.read_text() == rule_text("the first")
        world.text = "the second"
        world.rules.heard(OBSERVED)
        world.rules.heard(OBSERVED)
        await trio.sleep(10)
        assert world.file.read_text() == rule_text("the second")

    world.run(main)
    assert world.asked == ["alpha", "alpha"]  # changes that come together are one
    assert world.file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["rules.mdc"]


def test_what_concerns_no_context_asks_nobody(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text("old")

    async def main() -> None:
        world.rules.heard(Change("alpha/bank/progress.md", "put", "e", "local"))
        world.rules.heard(Change("beta/observations/20260101T000000_change_00000001.md", "put", "e", "local"))
        await trio.sleep(10)

    world.run(main)
    assert world.asked == ["alpha"]


def test_a_file_that_its_user_removed_is_not_made_again(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def main() -> None:
        world.rules.heard(OBSERVED)
        await trio.sleep(10)

    world.run(main)
    assert list(tmp_path.iterdir()) == []


def test_the_same_bytes_are_not_written_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text(rule_text("the first"))

    async def main() -> None:
        world.rules.heard(OBSERVED)
        await trio.sleep(10)

    world.run(main)
    assert world.rules.statistics() == {"written": 0, "failed": 0}


def test_a_file_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file.write_text("old")
    world.file.chmod(0o400)

    async def main() -> None:
        world.file.chmod(0o600)
        world.rules.heard(OBSERVED)
        await trio.sleep(10)

    world.run(main)
    assert [path for path, _ in world.failures] == [str(world.file)]
    assert world.file.read_text() == rule_text("the first")
