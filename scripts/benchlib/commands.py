"""`scripts/bench cli`: the processor time that short commands take, from the start of their interpreter to its end.

Owns which commands: those that somebody waits for without a bucket, the help of every command, and what a shell asks at
the tabulator key. Processor time and not the clock counts, since that is the same on a busy machine. Main thread only.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchlib.table import aligned, percentile
from livememfs.cli.listing import COMPLETING
from livememfs.cli.main import COMMANDS

MOST_MS = 200.0
PLAIN = ("--version", "--help", "status", "completion bash")
COMPLETED = ("", "sta", "space ", "space info ", "umount ")
HEADINGS = ("command", "p50 ms", "at most", "")


def run(words: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of user and system time of one command, of its children too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "livememfs", *words]
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def chosen(environment: dict[str, str]) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """What is measured: its name, its words, its environment."""
    for words in (*PLAIN, *(f"{name} --help" for name in COMMANDS)):
        yield words, words.split(), environment
    for line in COMPLETED:
        words = ["livememfs", *line.split(" ")]
        asked = {COMPLETING: "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        yield f"livememfs {line}<TAB>", [], environment | asked


def main(rounds: int) -> int:
    """Measure and print a table. 1 when a command takes longer than is promised."""
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-") as home:
        places = {f"XDG_{name}_HOME": str(Path(home, name.lower())) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LIVEMEMFS_")}
        found = [
            (name, percentile([run(words, variables) for _ in range(rounds)], 0.5))
            for name, words, variables in chosen(kept | places)
        ]
    empty = percentile([_of_nothing() for _ in range(rounds)], 0.5)
    lines = [(name, f"{ms:.0f}", f"{MOST_MS:.0f}", "kept" if ms < MOST_MS else "missed") for name, ms in found]
    print(f"processor time, median of {rounds} rounds; an interpreter that does nothing takes {empty:.0f} ms")
    print(aligned([HEADINGS, *lines], right={1, 2}))
    return int(any(ms >= MOST_MS for _, ms in found))


def _of_nothing() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
