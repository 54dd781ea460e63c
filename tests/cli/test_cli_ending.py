"""Signals that ask a process to end: one that waits for them and then saves for as long as it is let."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = """
import sys, trio
from livememfs import log
from livememfs.cli.mounting.ending import asked_to_end

def say(word):
    print(word, flush=True)

async def main():
    async with trio.open_nursery() as nursery:
        await nursery.start(serve)
    await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    say("saved")

async def serve(task_status):
    task_status.started()
    async with trio.open_nursery() as nursery:
        await nursery.start(ask)
        say("serving")

async def ask(task_status):
    await asked_to_end(task_status=task_status)
    say("asked")

log.configure(json=True)
trio.run(main)
"""
WITHIN = 60.0
SIGIGN = re.compile(r"^SigIgn:\s*([0-9a-f]+)$", re.MULTILINE)


class Process:
    """A process that serves."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self.running = running
        self.expect("serving")

    def expect(self, word: str) -> None:
        """Wait for the next word it says."""
        assert self.running.stdout is not None
        assert self.running.stdout.readline() == f"{word}\n"

    def send(self, *numbers: signal.Signals) -> None:
        """Send signals, which come to it in the same moment."""
        self.running.send_signal(signal.SIGSTOP)
        for number in numbers:
            self.running.send_signal(number)
        self.running.send_signal(signal.SIGCONT)

    def saves(self) -> str:
        """Let it save, and expect it to end well. Returns its log."""
        out, err = self.running.communicate("\n", timeout=WITHIN)
        assert (self.running.returncode, out) == (0, "saved\n"), err
        return err

    def ignores(self, number: signal.Signals) -> bool:
        """Whether the kernel keeps this signal from it."""
        ignored = SIGIGN.search(Path(f"/proc/{self.running.pid}/status").read_text())
        return ignored is not None and bool(int(ignored[1], 16) >> (number - 1) & 1)


@contextmanager
def serving(ignored: str = "") -> Iterator[Process]:
    """A process that was started to ignore some signals."""
    options = ["--default-signal=HUP,INT,TERM", *([f"--ignore-signal={ignored}"] if ignored else [])]
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", "env", *options, sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield Process(running)
        finally:
            running.kill()


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGTERM,),
        (signal.SIGINT,),
        (signal.SIGHUP,),
        (signal.SIGTERM, signal.SIGHUP),
        (signal.SIGHUP, signal.SIGTERM),
        (signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
    ],
    ids=lambda numbers: "+".join(number.name for number in numbers),
)
def test_signals_of_one_moment_are_one_wish_to_end(numbers: tuple[signal.Signals, ...]) -> None:
    with serving() as process:
        process.send(*numbers)
        process.expect("asked")

        assert process.saves().count("stopping") == 1


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_hangup_does_not_cut_off_the_saving(first: signal.Signals) -> None:
    with serving() as process:
        process.send(first)
        process.expect("asked")
        process.send(signal.SIGHUP)

        process.saves()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_second_wish_does_not_wait_for_the_saving(second: signal.Signals) -> None:
    with serving() as process:
        process.send(signal.SIGTERM)
        process.expect("asked")
        process.send(second)

        out, _ = process.running.communicate(timeout=WITHIN)
        assert "saved" not in out
        assert process.running.returncode != 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_the_process_was_started_to_ignore_stays_ignored(number: signal.Signals) -> None:
    with serving(ignored=number.name.removeprefix("SIG")) as process:
        assert process.ignores(number)
        process.send(number)
        process.send(signal.SIGTERM)
        process.expect("asked")

        assert "SIGTERM" in process.saves()


def test_sigterm_ends_a_process_that_was_started_to_ignore_everything() -> None:
    with serving(ignored="HUP,INT,TERM") as process:
        process.send(signal.SIGTERM)
        process.expect("asked")

        process.saves()
