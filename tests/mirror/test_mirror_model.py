"""Random work in a mirrored directory, in several and on a mount at once, with faults and kills: all agree in the end.

The directory itself is the model: whatever a program does in it with the calls of its system, the bucket holds the same
afterwards, as a mount's would. With several machines each write adds a line that no other write has; a line may go only
when somebody removed or rewrote a file that had it.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
import trio
from hosts import APPEND, REPLACE, SPACE, Host, unreachable
from mirrored import Machine, Running, hasty, new_space
from trio.testing import MockClock
from working import NAMES, Work

from livememfs import errors
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, StoreRequest

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
SEEDS = [int(seed) for seed in os.environ.get("LIVEMEMFS_TEST_SEED", "1 2").split()]
STEPS = 60
SECONDS, WORLDS = (60.0, 10) if LONG else (3.0, 1)
"""How long is worked in one world, and in how many: with thousands of files a look takes longer than a life."""
FAST_CLOCK = 20.0
MOST_ROUNDS = 12
PATHS = [*NAMES, *(f"{above}/{name}" for above in NAMES for name in NAMES)]


# --- one machine: the directory is the model ------------------------------------------------------------------------


def act(dice: random.Random, top: Path) -> None:
    """One call of a program; what the system refuses has not happened."""
    path, other = top / dice.choice(PATHS), top / dice.choice(PATHS)
    kind = dice.choice(["write", "write", "append", "remove", "rename", "rename", "mkdir", "rmdir", "link", "chmod"])
    with suppress(OSError):
        if kind in ("write", "append") and not path.is_symlink():
            with path.open("a" if kind == "append" else "w") as file:
                file.write("".join(dice.choices("xyz\n", k=dice.choice([0, 1, 30, 5_000]))))
        elif kind == "remove":
            path.unlink()
        elif kind == "rename":
            path.rename(other)
        elif kind == "mkdir":
            path.mkdir()
        elif kind == "rmdir":
            path.rmdir()
        elif kind == "link":
            path.symlink_to(dice.choice(["a", "../b", "missing/x", "."]))
        elif kind == "chmod" and path.is_file() and not path.is_symlink():
            path.chmod(dice.choice([0o600, 0o644, 0o755]))


async def shown(host: Host, folder: str) -> dict[str, object]:
    """What a mount shows below a folder."""
    found: dict[str, object] = {}
    for name in await host.names(folder):
        path = f"{folder}/{name}"
        attrs = await host.attrs(path)
        if attrs.kind == "directory":
            found[path] = "/"
            found |= await shown(host, path)
        elif attrs.kind == "symlink":
            found[path] = await (await host.node(path)).target()
        else:
            found[path] = (await host.read(path), attrs.mode)
    return found


def on_disk(top: Path, prefix: str) -> dict[str, object]:
    """The same of a directory."""
    found: dict[str, object] = {}
    for path in top.rglob("*"):
        name = f"{prefix}/{path.relative_to(top).as_posix()}"
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = "/" if path.is_dir() else (path.read_bytes(), path.stat().st_mode & 0o777)
    return found


@pytest.mark.parametrize("seed", range(40) if LONG else SEEDS)
def test_a_mount_shows_what_the_directory_has(seed: int, tmp_path: Path) -> None:
    async def main() -> None:
        dice, clock = random.Random(seed), ManualClock()
        memory = MemoryStore(clock)
        async with trio.open_nursery() as nursery:
            await new_space(memory, clock, nursery)
            machine = Machine("one", tmp_path, memory, clock)
            top = machine.top / "top"
            top.mkdir()
            for _ in range(3):
                async with machine.up() as running:
                    for _ in range(STEPS):
                        act(dice, top)
                        if dice.random() < 0.15:
                            running.mirror.agenda.touched(
                                path.relative_to(machine.top).as_posix() for path in top.rglob("*")
                            )
                            await running.mirror.step()
                    await running.settle()
                    mount = Host("fresh", memory, clock, nursery)  # it has heard of nothing before
                    there, here = await shown(mount, f"{SPACE}/top"), on_disk(top, f"{SPACE}/top")
                    assert sorted(there.items() - here.items()) == sorted(here.items() - there.items())
            nursery.cancel_scope.cancel()

    with hasty():
        trio.run(main, clock=MockClock(rate=FAST_CLOCK))


# --- several machines -----------------------------------------------------------------------------------------------


def failing(dice: random.Random) -> Callable[[StoreRequest, int], Fault | None]:
    """A fifth of the requests fails, before or after their effect."""

    def plan(_: StoreRequest, __: int) -> Fault | None:
        if dice.random() >= 0.2:
            return None
        return Fault(before=unreachable()) if dice.random() < 0.5 else Fault(after=unreachable())

    return plan


async def on_mount(work: Work, host: Host) -> None:
    """One act on the mount."""
    line = work.new()
    path = work.dice.choice([work.shared(), work.name_of_note(line)])
    with suppress(errors.LiveMemError):
        await host.write(f"{SPACE}/{path}", f"{line}\n", APPEND if path.startswith("top") else REPLACE)
        work.counts["mount"] += 1
        return
    work.written.discard(line)


async def work_together(folder: Path, seed: int, seconds: float, tell: Callable[[str], None]) -> None:
    """Two mirrors and a mount, rounds of work with kills, until the time is over; at the end all are compared."""
    dice, clock = random.Random(seed), ManualClock()
    memory = MemoryStore(clock)
    work, kills, rounds = Work(dice), 0, 0
    ends = time.monotonic() + seconds
    async with trio.open_nursery() as nursery:
        mount = await new_space(memory, clock, nursery)
        mount.prompt = False
        await mount.mkdir(f"{SPACE}/top")
        await mount.replica.uploaded()
        machines = [Machine(name, folder, memory, clock) for name in ("one", "two")]
        while time.monotonic() < ends:
            rounds += 1
            with suppress(errors.Unreachable):  # of so many failures that a process ended before it had begun
                async with AsyncExitStack() as stack:
                    lives = [one.up(insists=True, plan=failing(dice), ttl=0.5) for one in machines]
                    ups = [await stack.enter_async_context(life) for life in lives]
                    await one_round(work, machines, ups, mount)
            kills += 2
        # A store in memory is always there. A busy machine makes it seem silent, and then names are believed.
        with patch("livememfs.cache.asking.PATIENCE", float("inf")):
            async with AsyncExitStack() as stack:
                ups = [await stack.enter_async_context(one.up()) for one in machines]
                await until_nothing_changes(ups, mount)
                await agree(mount, machines, work)
        nursery.cancel_scope.cancel()
    tell(f"mirrors: {rounds} rounds, {kills} kills, {dict(work.counts)}, nothing lost, nothing twice")


async def one_round(work: Work, machines: list[Machine], ups: list[Running], mount: Host) -> None:
    """Work for a while; then the processes of the mirrors are killed in the middle of what they do."""
    async with trio.open_nursery() as nursery:
        for up in ups:
            nursery.start_soon(keep, up)
        for _ in range(work.dice.randrange(5, 30)):
            machine = work.dice.choice(machines)
            work.act(machine.name, machine.top)
            if work.dice.random() < 0.3:
                await on_mount(work, mount)
            await trio.sleep(work.dice.random() * 0.2)
        nursery.cancel_scope.cancel()


async def until_nothing_changes(ups: list[Running], mount: Host) -> None:
    """Have everybody look and upload, until nobody does anything in a whole round: what one brings, others may join."""
    for _ in range(MOST_ROUNDS):
        before = [up.mirror.statistics() for up in ups]
        for up in ups:
            await up.settle()
        await mount.replica.uploaded()
        if [up.mirror.statistics() for up in ups] == before:
            return
    raise AssertionError("the mirrors go on changing each other's files")


async def keep(running: Running) -> None:
    """What `livememfs sync` does, with looks in place of notices."""
    while True:
        with suppress(errors.Unreachable, errors.Throttled):
            await running.mirror.compare()
            with trio.move_on_after(0.5):
                await running.mirror.run()


async def agree(mount: Host, machines: list[Machine], work: Work) -> None:
    """All have the same, and each line is there exactly once."""
    first, second = (one.files() for one in machines)
    assert first == second
    texts = {name: text for name, text in first.items() if text != "/"}
    for name, text in texts.items():
        assert (await machines[0].memory.get(f"{SPACE}/{name}")).data.decode() == text
        shown = (await mount.read(f"{SPACE}/{name}")).decode()
        assert shown == text, (name, (await mount.node(f"{SPACE}/{name}")).body)
    work.check(texts)


@pytest.mark.parametrize("world", range(WORLDS))
def test_two_mirrors_and_a_mount_lose_nothing_and_agree_in_the_end(
    world: int, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    seed = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261129").split()[0]) + world
    with hasty():
        trio.run(work_together, tmp_path, seed, SECONDS, figures, clock=MockClock(rate=FAST_CLOCK))
    shutil.rmtree(tmp_path)
