"""Other users of the machine: nothing that a mount keeps can be opened, listed or connected to by them."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hooking import hook, used
from machine import LONG, clean_environment, detach, sh
from test_mount_watch import until

from livememfs.testing.llm import ScriptedLLM

NOBODY = 65_534
SECRET, DRAFT = "the moon is hollow", "a thought that nobody finished"
KEPT_WITHIN = 10.0
XDG = ("config", "data", "state", "cache")
Run = Callable[..., str]


@pytest.fixture
def world() -> Iterator[Path]:
    """A folder that everybody can walk through, with a home and its usual folders: only what is in those is guarded."""
    world = Path(tempfile.mkdtemp(prefix="livememfs-others-", dir="/tmp"))
    for folder in (world, world / "home", *(world / "home" / name for name in XDG), world / "mnt"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    yield world
    detach(world / "mnt")
    with suppress(OSError, ValueError):
        os.kill(daemon(world), 9)
    shutil.rmtree(world)


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    """An endpoint without answers yet."""
    with ScriptedLLM() as server:
        yield server


@pytest.fixture
def livememfs(world: Path, llm: ScriptedLLM) -> Run:
    """`livememfs("mount mnt", mask=0o022)`: run a command under a umask, with the default store and cache."""
    asking = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
    settings = {**asking, "LIVEMEMFS_EMBED_MODEL": "none"}

    def run(line: str, *, mask: int = 0o022, status: int | None = 0) -> str:
        command = f"umask {mask:03o}; timeout -k 5 120 {sys.executable} -m livememfs {line}"
        environment = clean_environment(world / "home", **settings)
        done = sh(command, cwd=world, env=environment, status=status, timeout=100)
        return done.stdout + done.stderr

    return run


def daemon(world: Path) -> int:
    """The process that serves the mount. ValueError when there is none."""
    (record,) = (world / "home/state").rglob("mounts/*.json")
    return int(json.loads(record.read_text())["pid"])


def state_files(world: Path) -> list[Path]:
    """The databases of the local state."""
    return list((world / "home/cache").rglob("state.db*"))


def fill(world: Path, llm: ScriptedLLM, livememfs: Run, mask: int) -> None:
    """Have a mount, in the background, keep every kind of thing that it keeps, and a crash end it."""
    livememfs("mount --web 127.0.0.1:0 mnt", mask=mask)
    space, state = world / "mnt/project", world / "mnt/.livememfs"
    sh(f"mkdir project; echo '{SECRET}' > project/live/note.md", cwd=world / "mnt")
    sh("head -c 200000 /dev/zero > project/large", cwd=world / "mnt")
    until(lambda: SECRET in (world / "mnt/search/moon.md").read_text(), KEPT_WITHIN)
    sh(f"exec 3<>.recall; echo '{SECRET}' >&3; cat <&3", cwd=space)
    assert hook(space, "PostToolUse", used(1, "s1")).returncode == 0
    for _ in range(3):
        llm.add(f"{SECRET}, which is no JSON")
    sh("touch .consolidate && cat .consolidate.wait", cwd=space, status=None)
    assert os.listdir(state / "rejected")
    (state / "journal.wait").read_bytes()
    draft = os.open(space / "live/draft", os.O_WRONLY | os.O_CREAT)
    os.write(draft, DRAFT.encode())
    until(lambda: DRAFT.encode() in b"".join(one.read_bytes() for one in state_files(world)), KEPT_WITHIN)
    assert open_to_others(world) == []
    os.kill(daemon(world), 9)
    with suppress(OSError):
        os.close(draft)


def open_to_others(world: Path) -> list[str]:
    """What another user can use of all that was made in the home: each path is tried by its own name."""
    home = world / "home"
    paths = [path for path in home.rglob("*") if path not in [home / name for name in XDG]]
    assert len(paths) > 20
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, "\n".join(str(path) for path in paths if _usable(path)).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        found = stream.read().splitlines()
    os.waitpid(child, 0)
    return found


def _usable(path: Path) -> bool:
    """Whether this process can do anything with a path."""
    with suppress(OSError):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return True  # it can even be seen
        os.listdir(path)
        return True
    return False


@pytest.mark.parametrize("mask", [0o000, *([0o022] if LONG else [])], ids="{:03o}".format)
def test_another_user_can_use_nothing_that_a_mount_keeps(
    world: Path, llm: ScriptedLLM, livememfs: Run, mask: int
) -> None:
    """Nor what an earlier version kept, which everybody could read: a mount puts that right. A umask of 022 takes from
    others what that of 000 leaves to them, so that it is tried with LIVEMEMFS_TEST_LONG=1 alone.
    """
    fill(world, llm, livememfs, mask)
    sh("chmod -R a+rwX home/*/livememfs", cwd=world)
    assert set(state_files(world)) <= {Path(path) for path in open_to_others(world)}, "what is looked for is seen"

    livememfs("mount --web 127.0.0.1:0 mnt", mask=mask)

    assert DRAFT in sh("cat mnt/.livememfs/recovered/*", cwd=world).stdout
    assert open_to_others(world) == []
