"""The command: draws changes, finds out which tests come to each, runs them, prints what nobody noticed."""

from __future__ import annotations

import argparse
import difflib
import os
import queue
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coverage.numbits import numbits_to_nums

from mutatelib.changes import Change, sample

ROOT = Path(__file__).resolve().parents[2]
AREAS = (
    "cache", "store", "runs", "spaces", "memories", "observing", "records", "text/privacy", "recall/turn",
    "serve/guard.py",
)  # fmt: skip
"""Of the package: where a change loses or tells something."""
TESTED_BY = (
    "cache", "store", "runs", "spaces", "memories", "observing", "records", "text", "recall/turn", "serve", "tree",
)  # fmt: skip
"""Of tests/: what is run for them. What tests of real mounts alone would notice counts as unnoticed."""
BATCHES = (60, 600)
"""Tests that a change is tried with, one batch after the other, and then all others that come to its line."""
SECONDS = 300
"""For a batch. A test that hangs fails after its own limit. A batch that is not done by then noticed nothing."""
WANTED = 90
"""Percent."""


def main() -> int:
    """Print a table; 1 when too little is noticed."""
    wanted = _arguments()
    changes = sample(_modules(wanted.only), ROOT, wanted.count, wanted.seed)
    with tempfile.TemporaryDirectory(prefix="livememfs-mutate.") as room:
        data = wanted.coverage or Path(room) / "coverage"
        if not data.exists():
            _measure(data, wanted.jobs)
        unnoticed = _try_all(changes, _Reached(data), Path(room), wanted.jobs)
    return _report(changes, unnoticed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="so many changes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="draws the same changes again (%(default)s)")
    parser.add_argument("--only", action="append", help="an area of the package, such as cache or serve/guard.py")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="changes tried side by side (%(default)s)"
    )
    parser.add_argument(
        "--coverage", type=Path, help="a file that keeps which test comes to which line for another time"
    )
    return parser.parse_args()


def _modules(only: list[str] | None) -> list[Path]:
    places = [ROOT / "livememfs" / area for area in only or AREAS]
    found = [place for area in places for place in (area.rglob("*.py") if area.is_dir() else [area])]
    return sorted(path for path in found if path.name != "__init__.py")


def _pytest(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=60", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{where}:{ROOT / '.venv/mutate'}", "ORT_DISABLE_TELEMETRY": "1"}
    return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=SECONDS)


def _measure(data: Path, jobs: int) -> None:
    """Find out which test comes to which line."""
    print("looking which tests come to which lines", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(jobs), "--dist", "loadfile"]
    command += ["--cov=livememfs", "--cov-context=test", "--cov-report=", *(f"tests/{folder}" for folder in TESTED_BY)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".venv/mutate"), "COVERAGE_FILE": str(data)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if not data.exists():
        raise SystemExit(f"the tests could not be measured:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


class _Reached:
    """Which tests come to a line."""

    def __init__(self, data: Path) -> None:
        self._rows: dict[str, list[tuple[str, set[int]]]] = {}
        database = sqlite3.connect(data)
        rows = database.execute(
            "SELECT path, context, numbits FROM line_bits JOIN file ON file.id = file_id"
            " JOIN context ON context.id = context_id WHERE context != ''"
        )
        for path, context, bits in rows:
            name = path.rpartition("/livememfs/")[2]
            test = context.partition("|")[0]
            self._rows.setdefault(f"livememfs/{name}", []).append((test, set(numbits_to_nums(bits))))

    def tests(self, change: Change) -> list[str]:
        """The tests, without their examples, those of few lines first: they are about just this.

        No test comes to what is done when a module is loaded; then they are those that come to the module.
        """
        rows = self._rows.get(change.path, [])
        here = [row for row in rows if change.line in row[1]] or rows
        tests = sorted((len(lines), test.partition("[")[0]) for test, lines in here)
        return list(dict.fromkeys(test for _, test in tests))


def _try_all(changes: list[Change], reached: _Reached, room: Path, jobs: int) -> dict[Change, str]:
    """The changes that nothing noticed, each with its lines."""
    unnoticed: dict[Change, str] = {}
    waiting: queue.SimpleQueue[Change] = queue.SimpleQueue()
    for change in changes:
        waiting.put(change)
    done = Counter[bool]()

    def work(number: int) -> None:
        where = room / f"copy{number}"
        _copy(where)
        while True:
            try:
                change = waiting.get_nowait()
            except queue.Empty:
                return
            lines = _try(change, reached.tests(change), where)
            done[lines is None] += 1
            if lines is not None:
                unnoticed[change] = lines
                print(f"{change.path}:{change.line}\n{lines}", flush=True)
            print(f"{done.total()} of {len(changes)}, {done[True]} noticed", end="\r", file=sys.stderr, flush=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return unnoticed


def _copy(where: Path) -> None:
    for name in ("livememfs", "tests", "scripts", "docs"):
        shutil.copytree(ROOT / name, where / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "SECURITY.md"):
        shutil.copy(ROOT / name, where / name)


def _try(change: Change, tests: list[str], where: Path) -> str | None:
    """The lines that a change makes other, when no test notices it."""
    path = where / change.path
    source = path.read_text()
    changed = change.made(source)
    if changed is None or changed == source:
        return None
    lines = "".join(difflib.unified_diff(source.splitlines(True), changed.splitlines(True), n=0)).partition("@@\n")[2]
    with _written(path, changed, source):
        first, second = BATCHES
        for some in (tests[:first], tests[first:second], tests[second:]):
            if some and _fails(where, some):
                return None
    return lines if tests else f"{lines}(no test comes here)\n"


def _fails(where: Path, tests: list[str]) -> bool:
    try:
        return _pytest(where, "-x", *tests).returncode != 0
    except subprocess.TimeoutExpired:
        return False


@contextmanager
def _written(path: Path, changed: str, source: str) -> Iterator[None]:
    path.write_text(changed)
    try:
        yield
    finally:
        path.write_text(source)


def _report(changes: list[Change], unnoticed: dict[Change, str]) -> int:
    drawn, missed = (Counter(change.path.split("/")[1] for change in some) for some in (changes, unnoticed))
    print(f"{'area':12} {'changes':>8} {'noticed':>8}")
    for area, count in sorted(drawn.items()):
        print(f"{area:12} {count:8} {100 * (count - missed[area]) / count:7.1f}%")
    share = 100 * (len(changes) - len(unnoticed)) / len(changes)
    print(f"{'all':12} {len(changes):8} {share:7.1f}%")
    return int(share < WANTED)


if __name__ == "__main__":
    raise SystemExit(main())
