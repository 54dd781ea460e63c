"""What is measured: functions that work on a directory and say how long each operation took.

Owns the work and its timing, not the place where it is done. Refuses to measure wrong results: what a workload reads
it checks (AssertionError); an operation that fails is an OSError. A workload blocks; one with several writers starts
threads of its own.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

NEEDLE = "needle"
"""Stands in each seeded note exactly once."""
WRITERS = 8
LIST, LIVE = "list", "live"
"""The folders of the two seeded spaces."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything. `objects` and `notes` are what the listed and the searched directory hold."""

    objects: int = 10_000
    notes: int = 1_000
    reads: int = 500
    creates: int = 200
    saves: int = 100
    large: int = 256
    """MiB of the large file."""
    pause: float = 1.5
    """Seconds between a listing and reading, where the kernel is to have forgotten its names."""

    def quick(self) -> Sizes:
        """The same, small enough for a look in between."""
        return replace(self, objects=min(self.objects, 1_000), notes=200, reads=200, creates=80, saves=40, large=32)


Work = Callable[[Path, Sizes], list[float]]
"""`work(space, sizes)`: seconds of each operation in the order of their ends."""


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    :space:   which space it works in: a new one for each round (`new`), or a seeded one (`objects`, `notes`)
    :prepare: done before, not timed
    :cold:    wants a mount that has just been made; without it, the mount is whichever there is
    :listed:  the folder of the space that is only listed: how long its LIST pages take by themselves is shown beside it
    """

    name: str
    space: str
    work: Work
    prepare: Callable[[Path, Sizes], object] = lambda _space, _sizes: None
    cold: bool = False
    listed: str = ""


def timed(operation: Callable[..., object], *arguments: object) -> float:
    """Seconds that one call takes."""
    started = time.perf_counter_ns()
    operation(*arguments)
    return (time.perf_counter_ns() - started) / 1e9


# --- reading and writing ---------------------------------------------------------------------------------------------


def _write(path: Path, size: int) -> None:
    with path.open("xb", buffering=0) as file:
        file.write(b"%-*d\n" % (size - 1, size))


def _make_files(space: Path, _: Sizes) -> None:
    (space / "files").mkdir(exist_ok=True)


def _make_hot_file(space: Path, sizes: Sizes) -> None:
    _make_files(space, sizes)
    _write(space / "files" / "hot", 8192)
    (space / "files" / "hot").read_bytes()


def _read_hot(space: Path, sizes: Sizes) -> list[float]:
    path = space / "files" / "hot"

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            if len(file.read(10_000)) != 8192:
                raise AssertionError(f"{path} was cut")

    return [timed(read) for _ in range(sizes.reads)]


def _create_files(space: Path, sizes: Sizes) -> list[float]:
    folder = space / "files"
    return [timed(_write, folder / f"one-{number}", 1024) for number in range(sizes.creates)]


def _create_notes(space: Path, sizes: Sizes) -> list[float]:
    folder = space / "live"
    return [timed(_write, folder / f"note-{number}.md", 1024) for number in range(sizes.creates)]


def _create_together(space: Path, sizes: Sizes) -> list[float]:
    folder = space / "files"

    def write_some(writer: int) -> list[float]:
        numbers = range(writer, sizes.creates, WRITERS)
        return [timed(_write, folder / f"many-{number}", 1024) for number in numbers]

    with ThreadPoolExecutor(WRITERS) as pool:
        return [seconds for some in pool.map(write_some, range(WRITERS)) for seconds in some]


def _save(space: Path, sizes: Sizes) -> list[float]:
    path, temporary = space / "files" / "saved", space / "files" / ".saved.tmp"

    def save() -> None:
        with temporary.open("xb", buffering=0) as file:
            file.write(b"x" * 8192)
            os.fsync(file.fileno())
        temporary.rename(path)

    return [timed(save) for _ in range(sizes.saves)]


def _write_large(space: Path, sizes: Sizes) -> list[float]:
    block = os.urandom(1 << 20)

    def write() -> None:
        with (space / "files" / "large").open("wb", buffering=0) as file:
            for _ in range(sizes.large):
                file.write(block)

    return [timed(write)]


def _read_large(space: Path, sizes: Sizes) -> list[float]:
    def read() -> None:
        with (space / "files" / "large").open("rb", buffering=0) as file:
            size = sum(len(block) for block in iter(lambda: file.read(1 << 20), b""))
        if size != sizes.large << 20:
            raise AssertionError(f"{size} bytes of {sizes.large} MiB")

    return [timed(read)]


def _make_large(space: Path, sizes: Sizes) -> None:
    _make_files(space, sizes)
    _write_large(space, sizes)


def _make_and_remove(space: Path, sizes: Sizes) -> list[float]:
    def both(number: int) -> None:
        path = space / "files" / f"directory-{number}"
        path.mkdir()
        path.rmdir()

    return [timed(both, number) for number in range(sizes.creates)]


def _rename(space: Path, sizes: Sizes) -> list[float]:
    """One file by one name after the other."""
    folder = space / "files"
    return [timed(os.rename, folder / f"name-{n}", folder / f"name-{n + 1}") for n in range(sizes.creates)]


def _make_one(space: Path, sizes: Sizes) -> None:
    _make_files(space, sizes)
    _write(space / "files" / "name-0", 1024)


# --- looking for things ----------------------------------------------------------------------------------------------


def _list_and_stat(folder: Path, count: int) -> list[float]:
    """One listing with the attributes of everything in it, as `ls -l` and most tools make it."""

    def look() -> None:
        with os.scandir(folder) as entries:
            found = sum(entry.stat().st_size > 0 for entry in entries)
        if found != count:
            raise AssertionError(f"{found} of {count} files in {folder}")

    return [timed(look)]


def _list_objects(space: Path, sizes: Sizes) -> list[float]:
    return _list_and_stat(space / LIST, sizes.objects)


def _list_notes(space: Path, sizes: Sizes) -> list[float]:
    return _list_and_stat(space / LIVE, sizes.notes)


def _read_later(space: Path, sizes: Sizes) -> list[float]:
    """Every note, one after the other, when the kernel has forgotten the names of the listing that told of them."""
    paths = sorted((space / LIVE).iterdir())
    time.sleep(sizes.pause)

    def read() -> None:
        found = sum(NEEDLE.encode() in path.read_bytes() for path in paths)
        if found != sizes.notes:
            raise AssertionError(f"{found} of {sizes.notes} notes in {space}/{LIVE}")

    return [timed(read)]


def _search(space: Path, sizes: Sizes) -> list[float]:
    """One real `grep -rc` over all notes."""
    output: list[str] = []

    def grep() -> None:
        command = ["grep", "-rc", NEEDLE, "live"]
        done = subprocess.run(command, cwd=space, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"grep: {done.stderr or done.returncode}")
        output.append(done.stdout)

    seconds = timed(grep)
    found = sum(line.endswith(":1") for line in output[0].splitlines())
    if found != sizes.notes:
        raise AssertionError(f"grep found {found} of {sizes.notes} notes in {space}/live")
    return [seconds]


def workloads(sizes: Sizes) -> list[Workload]:
    """All of them, in the order in which they are done."""
    listing, search_all = f"list + stat {sizes.objects:,} files", f"grep -r {sizes.notes:,} notes"
    return [
        Workload("open+read+close 8 KB, hot", "new", _read_hot, _make_hot_file),
        Workload("create 1 KB + close", "new", _create_files, _make_files),
        Workload("create 1 KB + close, notes", "new", _create_notes),
        Workload(f"create 1 KB + close, {WRITERS} writers", "new", _create_together, _make_files),
        Workload("atomic save 8 KB", "new", _save, _make_files),
        Workload("mkdir + rmdir", "new", _make_and_remove, _make_files),
        Workload("rename", "new", _rename, _make_one),
        Workload(f"write {sizes.large} MiB", "new", _write_large, _make_files),
        Workload(f"read {sizes.large} MiB", "new", _read_large, _make_large),
        Workload(f"{listing}, cold", "objects", _list_objects, cold=True, listed=LIST),
        Workload(f"{listing}, warm", "objects", _list_objects, _list_objects),
        Workload(f"list + stat {sizes.notes:,} notes, cold", "notes", _list_notes, cold=True, listed=LIVE),
        Workload(f"read {sizes.notes:,} notes, listed before, cold", "notes", _read_later, cold=True),
        Workload(f"{search_all}, cold", "notes", _search, cold=True),
        Workload(f"{search_all}, warm", "notes", _search, _search),
    ]
