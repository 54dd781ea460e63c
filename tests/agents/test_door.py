"""The hooks of a whole machine: which space an event goes to, and that no disk and no stranger stands in its way."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import virtual

from livememfs.agents import door
from livememfs.agents.door import Door, Projects
from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError
from livememfs.records.access import EVERYTHING, Access
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock


class World:
    """A bucket, and projects below a home."""

    def __init__(self, home: Path, replica: Replica) -> None:
        self.home, self.replica, self.clock = home, replica, ManualClock()
        self.access = EVERYTHING
        self.failed: list[tuple[str, str]] = []
        self.heard: list[tuple[str, str]] = []
        self.all: list[Projects] = []
        self.projects = self.on("box")
        self.door = Door(self, self.projects)  # type: ignore[arg-type]  # it has an `answer`

    def on(self, host: str) -> Projects:
        place = {"home": self.home, "host": host, "mountpoint": f"{self.home}/mnt", "owner": "me"}
        self.all.append(Projects(self.replica, self.clock, lambda: self.access, self.failing, **place))
        return self.all[-1]

    def is_at_work(self) -> bool:
        """Whether somebody looks for a project, who is not virtual."""
        return any(projects.looking for projects in self.all)

    def failing(self, path: str, error: LiveMemError) -> None:
        self.failed.append((path, str(error)))

    async def answer(self, space: str, event: str, request: bytes) -> bytes:
        self.heard.append((space, event))
        return b"answer"

    def made(self, name: str, file: str = ".git/config", text: str = "") -> str:
        """A directory of a project."""
        path = self.home / name
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text(text)
        if file.startswith(".git/"):
            (path / ".git/HEAD").touch()
        return str(path)


def run(tmp_path: Path, main: Callable[[World], Awaitable[None]], *, hangs: bool = False) -> None:
    async def whole() -> None:
        async with opened() as replica:
            world = World(tmp_path, replica)
            with virtual.outside(lambda: world.is_at_work() and not hangs):
                await main(world)

    virtual.run(whole)


@asynccontextmanager
async def opened() -> AsyncIterator[Replica]:
    replica = Replica(MemoryStore())
    async with trio.open_nursery() as nursery:
        await nursery.start(replica.run)
        yield replica
        nursery.cancel_scope.cancel()
    replica.close()


def test_a_space_is_made_once_and_two_projects_of_one_name_have_two(tmp_path: Path) -> None:
    async def main(world: World) -> None:
        app, twin = world.made("app"), world.made("twins/app")

        first, second = await world.projects.space(app), await world.projects.space(twin)
        assert first == "app"
        assert second.startswith("app-")
        assert {listed.name for listed in await spaces.list_spaces(world.replica)} == {first, second}
        again = world.on("box")
        assert (await again.space(twin), await again.space(app)) == (second, first)
        assert await world.on("laptop").space(app) not in (first, second)

    run(tmp_path, main)


def test_a_repository_has_one_space_on_all_machines_also_when_it_gets_its_remote_later(tmp_path: Path) -> None:
    async def main(world: World) -> None:
        app = world.made("app")
        assert await world.projects.space(app) == "app"
        world.made("app", text='[remote "origin"]\n\turl = git@example.com:x/app.git\n')
        assert await world.on("box").space(app) == "app"

        other = world.made("other/tool", text='[remote "origin"]\n\turl = https://example.com/x/tool\n')
        assert await world.projects.space(other) == await world.on("laptop").space(other) == "tool"

    run(tmp_path, main)


def test_a_space_that_people_made_is_used_by_its_name(tmp_path: Path) -> None:
    async def main(world: World) -> None:
        await spaces.create(world.replica, world.clock, "app", description="Ours")

        assert await world.projects.space(world.made("app")) == "app"

    run(tmp_path, main)


def test_a_limited_mount_uses_only_what_it_may_write_to_and_says_so_once(tmp_path: Path) -> None:
    async def main(world: World) -> None:
        await spaces.create(world.replica, world.clock, "mine")
        await spaces.create(world.replica, world.clock, "theirs")
        for permission, where, space in (("write", "mine", "mine"), ("write", "theirs", ""), ("read", "mine", "")):
            world.access = Access("me", frozenset({permission}), ("mine",))
            folder = world.made(f"{permission}/{where}", ".livememfs.toml", f'space = "{where}"')
            assert await world.projects.space(folder) == space
            await trio.sleep(door.MISSING_KEPT)
            assert await world.projects.space(folder) == space
        assert len(world.failed) == 2
        assert {listed.name for listed in await spaces.list_spaces(world.replica)} == {"mine", "theirs"}

    run(tmp_path, main)


def test_a_disk_that_hangs_is_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(world: World) -> None:
        held = threading.Event()
        monkeypatch.setattr(door, "find", lambda *_, **__: held.wait(30))
        try:
            for _ in range(2 * door.THREADS):
                assert await world.projects.space(str(tmp_path)) == ""
                await trio.sleep(door.MISSING_KEPT)
        finally:
            held.set()
        assert [path for path, _ in world.failed] == [str(tmp_path)]

    run(tmp_path, main, hangs=True)


def test_an_event_goes_to_the_project_that_it_names_else_to_that_of_the_process(tmp_path: Path) -> None:
    async def main(world: World) -> None:
        app, file = world.made("app"), world.made("file", ".livememfs.toml", 'space = "named"')
        os.chdir(file)
        for given in ({"cwd": app}, {"workspace_roots": [app]}, {"workspaceRoots": [app]}, {}, {"cwd": 3}):
            assert await world.door.answer("claude.Stop", json.dumps(given).encode(), os.getpid()) == b"answer"
        assert await world.door.answer("claude.Stop", b"no json", os.getpid()) == b"answer"
        assert [space for space, _ in world.heard] == ["app"] * 3 + ["named"] * 3

        assert await world.door.answer("claude.Stop", json.dumps({"cwd": str(tmp_path)}).encode(), 0) == b"{}"
        assert len(world.heard) == 6

    before = Path.cwd()
    try:
        run(tmp_path, main)
    finally:
        os.chdir(before)
