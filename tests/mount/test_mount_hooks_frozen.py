"""Hooks on a mount whose daemon hangs: every one of every agent ends in time, and its agent is not kept waiting."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from machine import SPACE, Mount

from livememfs.agents.install.command import HookCommand
from livememfs.agents.install.tools import AGENTS, AgentName, WantedFile, parts

WITHIN = 2.5
MOUNT = os.fsencode("fuse.livememfs")


def hooks(space: Path) -> list[HookCommand]:
    """Every hook that is installed for any agent."""
    found: list[HookCommand] = []
    for tool in AgentName:
        for home in (False, True):
            if home and AGENTS[tool].hooks is None and AGENTS[tool].plugin is None:
                continue
            wanted = WantedFile(space=str(space.parent / ".livememfs" if home else space))
            for part in parts(tool, wanted, home=home):
                text = part.skeleton("")
                for segment in part.added(text):
                    text = text[: segment.at] + segment.text + text[segment.at :]
                if part.wanted:
                    found += part.hooks(text)
    return found


def run(hook: HookCommand) -> tuple[float, bytes]:
    """How long an agent waits for a hook to end and for both ends of its pipes, and what it hears."""
    began = time.monotonic()
    done = subprocess.run(
        ["/bin/sh", "-c", hook.command],
        input=json.dumps({"session_id": "s", "cwd": "/p", "x": "y" * 200_000}).encode(),
        capture_output=True,
        cwd="/",
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return time.monotonic() - began, done.stdout


def all_end(chosen: Sequence[HookCommand], meanwhile: Callable[[], None] = lambda: None) -> None:
    """All of them at once; those that begin a session say that memory is off."""
    with ThreadPoolExecutor(len(chosen)) as pool:
        waiting = [pool.submit(run, hook) for hook in chosen]
        meanwhile()
        took = [one.result() for one in waiting]
    slowest = max(seconds for seconds, _ in took)
    assert slowest < WITHIN + 0.01 * len(chosen), f"{slowest:.1f} s"  # so many shells at once take their time to start
    said = {hook.event for hook, (_, out) in zip(chosen, took, strict=True) if b"memory is off" in out}
    assert said == {hook.event for hook in chosen if hook.off}
    assert {"claude.SessionStart", "codex.SessionStart", "gemini.SessionStart", "qwen.SessionStart"} <= said


def test_every_hook_of_every_agent_ends_while_the_daemon_is_stopped(folder_mounted: Mount) -> None:
    chosen = hooks(folder_mounted / SPACE)
    assert {hook.event.partition(".")[0] for hook in chosen} == {
        "claude", "cline", "codex", "copilot", "cursor", "gemini", "opencode", "qwen", "windsurf",
    }  # fmt: skip
    os.kill(folder_mounted.pid, signal.SIGSTOP)
    try:
        all_end(chosen)
    finally:
        os.kill(folder_mounted.pid, signal.SIGCONT)


def test_a_server_of_a_daemon_that_is_stopped_ends_with_a_sentence(folder_mounted: Mount) -> None:
    os.kill(folder_mounted.pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        done = subprocess.run(
            ["livememfs", "mcp", "--space", str(folder_mounted / SPACE)],
            env=folder_mounted.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )
    finally:
        os.kill(folder_mounted.pid, signal.SIGCONT)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"the daemon of {folder_mounted.path} does not answer" in done.stderr
    assert time.monotonic() - began < 20


def test_hooks_end_that_the_daemon_was_stopped_amid(folder_mounted: Mount) -> None:
    """Some of their requests were read, and those who wait for these cannot be killed."""
    chosen = [hook for hook in hooks(folder_mounted / SPACE) if hook.event == "claude.PostToolUse"] * 10

    def stop() -> None:
        time.sleep(0.05)  # the hooks are amid their requests; a hook tells nobody how far it is
        os.kill(folder_mounted.pid, signal.SIGSTOP)

    try:
        with ThreadPoolExecutor(len(chosen)) as pool:
            waiting = [pool.submit(run, hook) for hook in chosen]
            stop()
            assert max(one.result()[0] for one in waiting) < WITHIN
    finally:
        os.kill(folder_mounted.pid, signal.SIGCONT)


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A file system that reads each request of the kernel and answers none but the first, which makes it one."""
    place = tmp_path / "silent"
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"silent", os.fsencode(place), MOUNT, 0, options):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def serve() -> None:
        while True:
            try:
                request = os.read(device, 1 << 20)
            except OSError:
                return  # unmounted
            opcode, unique = struct.unpack_from("<IQ", request, 4)
            if opcode == 26:
                said = struct.pack("<IIIIHHIIHHI7I", 7, 31, 65_536, 0, 12, 9, 65_536, 1, 0, 0, *[0] * 8)[:64].ljust(
                    64, b"\0"
                )
                os.write(device, struct.pack("<IiQ", 16 + len(said), 0, unique) + said)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield place
    libc.umount2(os.fsencode(place), 3)  # by force, and without waiting
    thread.join(5)
    os.close(device)


def test_hooks_end_whose_requests_were_read_and_are_never_answered(silent: Path) -> None:
    all_end(hooks(silent / "project"))
