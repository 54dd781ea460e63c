"""`scripts/bench mirror`: when a change in one mirror is in another one, what a mirror costs while nothing happens, and
what a hook costs in it.

Owns a folder as the store, and two processes of `livememfs sync` on it, each as a machine of its own. Main thread only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchlib.servers import TIED
from benchlib.table import aligned, percentile

SPACE, FOLDERS = "project", 100
READY_WITHIN, SEEN_WITHIN, LOOK_SECONDS = 900.0, 30.0, 0.01
SETTLED, SETTLED_SECONDS = 0.05, 5.0
EVENT = b'{"hook_event_name": "PostToolUse", "session_id": "bench", "tool_name": "Read", "tool_input": {}}'


class Machine:
    """A directory that `livememfs sync` keeps equal to the store."""

    def __init__(self, name: str, above: Path) -> None:
        self.path, self._log = above / name, above / f"{name}.log"
        self.path.mkdir()
        home = {part: str(above / f"{name}-home") for part in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("LIVEMEMFS_", "S3_"))},
            **home,
            "LIVEMEMFS_STORE": str(above / "store"),
            "LIVEMEMFS_CACHE": str(above / f"{name}-cache"),
            "LIVEMEMFS_HOST": name,
        }

    @contextmanager
    def running(self) -> Iterator[int]:
        """The process, with both sides equal; its id."""
        with self._log.open("wb") as log:
            command = [*TIED, sys.executable, "-m", "livememfs", "sync", str(self.path)]
            process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            if not comes(lambda: b" is a mirror of " in self._log.read_bytes(), READY_WITHIN):
                raise SystemExit(f"scripts/bench: no mirror came up:\n{self._log.read_text()}")
            yield process.pid
        finally:
            process.terminate()
            process.wait()

    def hook(self) -> float:
        """Milliseconds of an event that is answered without a search, as an agent waits for it."""
        file = self.path / SPACE / ".hooks/claude.PostToolUse"
        begun = time.perf_counter()
        asked = [sys.executable, "-m", "livememfs", "hook", str(file)]
        subprocess.run(asked, env=self.environment, input=EVENT, check=True, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - begun) * 1e3


def comes(seen: Callable[[], bool], seconds: float) -> bool:
    """Whether something comes true in time."""
    ends = time.perf_counter() + seconds
    while not seen():
        if time.perf_counter() > ends:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def until(seen: Callable[[], bool]) -> float:
    """Seconds until something comes true; `SEEN_WITHIN` where it did not."""
    begun = time.perf_counter()
    return time.perf_counter() - begun if comes(seen, SEEN_WITHIN) else SEEN_WITHIN


def processor_seconds(pid: int) -> float:
    """What a process has used of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def used(pid: int, seconds: float) -> float:
    """Which part of a processor a process uses in the next seconds."""
    begun = processor_seconds(pid)
    time.sleep(seconds)
    return (processor_seconds(pid) - begun) / seconds


def one_change(one: Path, other: Path, number: int) -> tuple[float, float, float]:
    """Seconds until a new file, an edit of it, and a note in one directory are in the other one."""
    here, there = one / SPACE / f"new-{number}", other / SPACE / f"new-{number}"
    here.write_text("first\n")
    made = until(there.exists)
    here.write_text("second\n")
    edited = until(lambda: there.exists() and there.read_text() == "second\n")
    words = f"a note of round {number}"
    (one / SPACE / "live" / f"note-{number}.md").write_text(f"{words}\n")
    live = other / SPACE / "live"
    noted = until(lambda: any(words in note.read_text() for note in live.glob("*.md")))
    return made, edited, noted


def fill(top: Path, files: int) -> None:
    """The files that lie there while nothing happens."""
    for number in range(files):
        folder = top / SPACE / f"folder-{number % FOLDERS}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file-{number}").write_text(f"file {number}\n")


def main(files: int, rounds: int, seconds: float) -> int:
    """Measure and print a table. 1 when a change was not seen."""
    with (
        tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as name,
        ExitStack() as stack,
    ):
        above = Path(name)
        one, other = Machine("one", above), Machine("other", above)
        (above / "store").mkdir()
        make = [sys.executable, "-m", "livememfs", "space", "create", SPACE]
        subprocess.run(make, env=one.environment, check=True, stdout=subprocess.DEVNULL)
        fill(one.path, files)
        pid = stack.enter_context(one.running())
        stack.enter_context(other.running())
        changes = list(zip(*(one_change(one.path, other.path, number) for number in range(rounds)), strict=True))
        hooks = [one.hook() for _ in range(rounds)]
        comes(lambda: used(pid, SETTLED_SECONDS) < SETTLED, READY_WITHIN)  # all is uploaded
        idle = used(pid, seconds)
    rows = [("", "p50", "most", "")]
    rows += [_row(what, times, "s") for what, times in zip(("a new file", "an edit", "a note"), changes, strict=True)]
    rows += [_row("a hook, with Python's start", hooks, "ms")]
    print(f"two mirrors of a folder, {rounds} rounds: until a change in one is in the other")
    print(aligned(rows, {1, 2}))
    print(f"idle with {files:,} files, for {seconds:.0f} s: {100 * idle:.2f} % of a processor")
    return 0 if max(map(max, changes)) < SEEN_WITHIN else 1


def _row(what: str, values: Sequence[float], unit: str) -> tuple[str, str, str, str]:
    return what, f"{percentile(list(values), 0.5):.2f}", f"{max(values):.2f}", unit
