"""Random operations on an ordinary folder of a real mount and on a local file system: both give the same answers. They
do in the directory of a mirror as well, while it is kept equal, and a mount shows what came of them.

The steps follow from a seed alone, so a failure is repeated by its seed (LIVEMEMFS_TEST_SEED). Where the answers may
differ is a table, `DIFFERENCES`: every row of it is tried on both, and is a row of docs/semantics.md.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import re
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from machine import LONG, SPACE, Mount, StartMount
from mirroring import MirrorProcess

SEEDS = tuple(int(seed) for seed in os.environ.get("LIVEMEMFS_TEST_SEED", "1 2 3 4").split())
STEPS = 800
COMPARED_EVERY = 50
SLOTS = 3
PAUSES = {"folder_mounted": 0.0, "mirrored": 0.6}
"""The sides that are tried, and the pauses that they need: a mirror takes what was left alone for a moment."""
NO_FD = 1 << 30
"""A descriptor that is not open: EBADF."""
SHOWN = 40
"""How many steps before a difference are shown."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "semantics.md"
HEADING = "## Differences from a local file system\n"

Step = tuple[Any, ...]
"""The name of a method of `Side` and its arguments."""


# --- what is done ------------------------------------------------------------------------------------------------

NAMES = "abc"
PATHS = [*NAMES, *NAMES, *(f"{above}/{name}" for above in NAMES for name in NAMES)]
TARGETS = ["a", "b", "c/a", "../b", "./c", "missing/x", "."]
ACCESS = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR]
FLAGS = {
    os.O_CREAT: 0.6,
    os.O_EXCL: 0.1,
    os.O_TRUNC: 0.2,
    os.O_APPEND: 0.25,
    os.O_NOFOLLOW: 0.05,
    os.O_DIRECTORY: 0.03,
}
MODES = [0o644, 0o600, 0o755, 0o640, 0o400, 0o700]
SIZES = [0, 1, 3, 7, 20, 20, 4_097, 9_000, 150_000]
OFFSETS = [0, 0, 1, 5, 19, 4_090, 4_096, 10_000]
TIMES = [1_000_000_000_123_456_789, 978_307_200_000_000_000, 1, 1_234_567_890_000_000_001]
LONG_AGO_NS = 1_500_000_000 * 10**9
"""What `utime` sets is before this, and every clock that runs is after it."""


def _open_step(rng: random.Random) -> Step:
    flags = rng.choice(ACCESS)
    for flag, chance in FLAGS.items():
        flags |= flag if rng.random() < chance else 0
    if flags & os.O_ACCMODE == os.O_RDONLY:
        flags &= ~os.O_TRUNC  # POSIX leaves open what it does
    if flags & os.O_DIRECTORY:
        flags &= ~(os.O_CREAT | os.O_EXCL)  # kernels differ in what they say to both
    return ("open", rng.randrange(SLOTS), rng.choice(PATHS), flags, rng.choice(MODES))


def _data(rng: random.Random) -> tuple[str, int]:
    return rng.choice("uvwxyz"), rng.choice(SIZES)


def _seek_step(rng: random.Random) -> Step:
    return ("lseek", rng.randrange(SLOTS), rng.choice([*OFFSETS, -3]), rng.choice([0, 1, 2]))


KINDS: dict[str, tuple[int, Callable[[random.Random], Step]]] = {
    "open": (18, _open_step),
    "close": (8, lambda rng: ("close", rng.randrange(SLOTS))),
    "read": (6, lambda rng: ("read", rng.randrange(SLOTS), rng.choice(SIZES))),
    "pread": (6, lambda rng: ("pread", rng.randrange(SLOTS), rng.choice(SIZES), rng.choice(OFFSETS))),
    "write": (10, lambda rng: ("write", rng.randrange(SLOTS), *_data(rng))),
    "pwrite": (8, lambda rng: ("pwrite", rng.randrange(SLOTS), rng.choice(OFFSETS), *_data(rng))),
    "lseek": (5, _seek_step),
    "ftruncate": (5, lambda rng: ("ftruncate", rng.randrange(SLOTS), rng.choice([*SIZES, -1]))),
    "fsync": (3, lambda rng: ("fsync", rng.randrange(SLOTS))),
    "fstat": (5, lambda rng: ("fstat", rng.randrange(SLOTS))),
    "fchmod": (1, lambda rng: ("fchmod", rng.randrange(SLOTS), rng.choice(MODES))),
    "futime": (2, lambda rng: ("futime", rng.randrange(SLOTS), rng.choice(TIMES))),
    "mapped": (3, lambda rng: ("mapped", rng.randrange(SLOTS))),
    "map_write": (2, lambda rng: ("map_write", rng.randrange(SLOTS), rng.choice("UVW"))),
    # Not to nothing: of an empty file a tmpfs keeps the time then, as no other file system does.
    "truncate": (5, lambda rng: ("truncate", rng.choice(PATHS), rng.choice(SIZES[1:]))),
    "rename": (16, lambda rng: ("rename", rng.choice(PATHS), rng.choice(PATHS))),
    "unlink": (7, lambda rng: ("unlink", rng.choice(PATHS))),
    "mkdir": (10, lambda rng: ("mkdir", rng.choice(PATHS), rng.choice(MODES))),
    "rmdir": (6, lambda rng: ("rmdir", rng.choice(PATHS))),
    "symlink": (4, lambda rng: ("symlink", rng.choice(TARGETS), rng.choice(PATHS))),
    "readlink": (2, lambda rng: ("readlink", rng.choice(PATHS))),
    "chmod": (4, lambda rng: ("chmod", rng.choice(PATHS), rng.choice(MODES))),
    "utime": (5, lambda rng: ("utime", rng.choice(PATHS), rng.choice(TIMES))),
    "stat": (6, lambda rng: ("stat", rng.choice(PATHS))),
    "lstat": (4, lambda rng: ("lstat", rng.choice(PATHS))),
    "listdir": (4, lambda rng: ("listdir", rng.choice([".", *PATHS]))),
    "access": (2, lambda rng: ("access", rng.choice(PATHS), rng.choice([os.F_OK, os.R_OK, os.W_OK, os.X_OK]))),
    "content": (4, lambda rng: ("content", rng.choice(PATHS))),
}


def steps_of(seed: int, count: int) -> list[Step]:
    """The steps of a seed."""
    rng = random.Random(seed)
    chosen = rng.choices(list(KINDS.values()), weights=[weight for weight, _ in KINDS.values()], k=count)
    return [make(rng) for _, make in chosen]


# --- doing it ----------------------------------------------------------------------------------------------------


class Side:
    """One of the two file systems, with what is open on it. Each method gives what is to be the same on both."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.open_files: dict[int, tuple[int, int]] = {}  # slot: descriptor and the inode number it began with

    def do(self, step: Step) -> object:
        """The result of a step, or the name of its error."""
        try:
            return getattr(self, f"_{step[0]}")(*step[1:])
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}"

    def _fd(self, slot: int) -> int:
        return self.open_files[slot][0] if slot in self.open_files else NO_FD

    def close_all(self) -> None:
        """Close whatever is open."""
        for slot in list(self.open_files):
            os.close(self.open_files.pop(slot)[0])

    # --- descriptors ------------------------------------------------------------------------------------------

    def _open(self, slot: int, path: str, flags: int, mode: int) -> object:
        self._close(slot)
        fd = os.open(self._at(path), flags, mode)
        self.open_files[slot] = (fd, os.fstat(fd).st_ino)
        return "opened", self._fstat(slot)

    def _close(self, slot: int) -> object:
        if slot not in self.open_files:
            return "nothing open"
        os.close(self.open_files.pop(slot)[0])
        return "closed"

    def _read(self, slot: int, size: int) -> object:
        return os.read(self._fd(slot), size)

    def _pread(self, slot: int, size: int, offset: int) -> object:
        return os.pread(self._fd(slot), size, offset)

    def _write(self, slot: int, letter: str, size: int) -> object:
        return os.write(self._fd(slot), letter.encode() * size)

    def _pwrite(self, slot: int, offset: int, letter: str, size: int) -> object:
        return os.pwrite(self._fd(slot), letter.encode() * size, offset)

    def _lseek(self, slot: int, offset: int, whence: int) -> object:
        # Where the end of a directory is, is up to the file system.
        if slot in self.open_files and stat.S_ISDIR(os.fstat(self._fd(slot)).st_mode):
            return "a directory"
        return os.lseek(self._fd(slot), offset, whence)

    def _ftruncate(self, slot: int, size: int) -> object:
        return os.ftruncate(self._fd(slot), size)

    def _fsync(self, slot: int) -> object:
        return os.fsync(self._fd(slot))

    def _fstat(self, slot: int) -> object:
        found = os.fstat(self._fd(slot))
        return shown(found), found.st_ino == self.open_files[slot][1], self._same(found)

    def _fchmod(self, slot: int, mode: int) -> object:
        return os.fchmod(self._fd(slot), mode), self._fstat(slot)

    def _futime(self, slot: int, mtime_ns: int) -> object:
        return os.utime(self._fd(slot), ns=(1, mtime_ns)), os.fstat(self._fd(slot)).st_mtime_ns

    def _mapped(self, slot: int) -> object:
        size = os.fstat(self._fd(slot)).st_size
        if not size or stat.S_ISDIR(os.fstat(self._fd(slot)).st_mode):
            return "nothing to map"
        with mmap.mmap(self._fd(slot), size, prot=mmap.PROT_READ) as mapped:
            return mapped[:]

    def _map_write(self, slot: int, letter: str) -> object:
        size = os.fstat(self._fd(slot)).st_size
        if not size or stat.S_ISDIR(os.fstat(self._fd(slot)).st_mode):
            return "nothing to map"
        with mmap.mmap(self._fd(slot), size, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
            mapped[size // 2 : size // 2 + 1] = letter.encode()
            mapped.flush()
            return mapped[:]

    # --- paths ------------------------------------------------------------------------------------------------

    def _truncate(self, path: str, size: int) -> object:
        return os.truncate(self._at(path), size)

    def _rename(self, source: str, target: str) -> object:
        return os.rename(self._at(source), self._at(target))

    def _unlink(self, path: str) -> object:
        return os.unlink(self._at(path))

    def _mkdir(self, path: str, mode: int) -> object:
        return os.mkdir(self._at(path), mode)

    def _rmdir(self, path: str) -> object:
        return os.rmdir(self._at(path))

    def _symlink(self, target: str, path: str) -> object:
        return os.symlink(target, self._at(path))

    def _readlink(self, path: str) -> object:
        return os.readlink(self._at(path))

    def _chmod(self, path: str, mode: int) -> object:
        return os.chmod(self._at(path), mode), self._stat(path)

    def _utime(self, path: str, mtime_ns: int) -> object:
        return os.utime(self._at(path), ns=(1, mtime_ns)), os.stat(self._at(path)).st_mtime_ns

    def _stat(self, path: str) -> object:
        found = os.stat(self._at(path))
        return shown(found), self._same(found)

    def _lstat(self, path: str) -> object:
        found = os.lstat(self._at(path))
        return shown(found), self._same(found)

    def _listdir(self, path: str) -> object:
        return sorted(os.listdir(self._at(path)))

    def _access(self, path: str, mode: int) -> object:
        return os.access(self._at(path), mode)

    def _content(self, path: str) -> object:
        return Path(self._at(path)).read_bytes()

    def _same(self, found: os.stat_result) -> list[int]:
        """Which slots have the same file open."""
        return [slot for slot, (_, ino) in sorted(self.open_files.items()) if ino == found.st_ino]

    # --- all of it --------------------------------------------------------------------------------------------

    def tree(self) -> dict[str, object]:
        """Every path with what is to be the same about it."""
        return dict(self._below(""))

    def _below(self, above: str) -> Iterator[tuple[str, object]]:
        for name in sorted(os.listdir(self._at(above))):
            path = f"{above}{name}"
            found = os.lstat(self._at(path))
            if stat.S_ISDIR(found.st_mode):
                yield path, shown(found)
                yield from self._below(f"{path}/")
            else:
                link = stat.S_ISLNK(found.st_mode)
                yield path, (shown(found), os.readlink(self._at(path)) if link else self._content(path))

    def descriptors(self) -> dict[int, object]:
        """What is open, with attributes and position."""
        return {slot: (self.do(("fstat", slot)), self.do(("lseek", slot, 0, 1))) for slot in self.open_files}


def shown(found: os.stat_result) -> tuple[object, ...]:
    """The attributes that are to be the same. The rest is in `DIFFERENCES`."""
    kind, mode = stat.S_IFMT(found.st_mode), oct(stat.S_IMODE(found.st_mode))
    if kind == stat.S_IFDIR:
        return "directory", mode
    if kind == stat.S_IFLNK:
        return "link", mode, found.st_size, found.st_nlink
    mtime = found.st_mtime_ns if found.st_mtime_ns < LONG_AGO_NS else "now"
    return "file", mode, found.st_size, found.st_nlink, mtime


def brief(result: object) -> str:
    """A result that can be read: long runs of the same letter are counted."""
    return re.sub(r"((?:\\x00|[A-Za-z]))\1{9,}", lambda run: f"{run[1]}*{len(run[0]) // len(run[1])}", repr(result))


class Different(AssertionError):
    """The two sides gave different answers to a step."""


def run(steps: list[Step], local: Side, ours: Side, pause: float) -> None:
    """Do the steps on both sides and compare. Different, with the steps before, when an answer is not the same.

    Now and then nothing is done for `pause` seconds.
    """
    for number, step in enumerate(steps):
        wanted, found = local.do(step), ours.do(step)
        if wanted == found and (number + 1) % COMPARED_EVERY == 0:
            time.sleep(pause)
            step, wanted, found = ("compare",), _state(local), _state(ours)
        if wanted != found:
            before = "\n".join(f"  {done!r}" for done in steps[max(0, number + 1 - SHOWN) : number + 1])
            raise Different(f"step {number}: {step!r}\nlocal: {brief(wanted)}\nours:  {brief(found)}\nafter:\n{before}")


def _state(side: Side) -> object:
    return side.tree(), side.descriptors()


# --- where the answers differ ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One row: what is done, when, what a tmpfs and we answer, and why.

    `probe` does it in an empty directory and gives the answer.
    """

    operation: str
    condition: str
    local: str
    ours: str
    why: str
    probe: Callable[[Path], object]

    @property
    def row(self) -> str:
        """The row as the page has it."""
        return f"| {' | '.join((self.operation, self.condition, self.local, self.ours, self.why))} |"


def _answer(probe: Callable[[Path], object], directory: Path) -> str:
    directory.mkdir()
    try:
        found = probe(directory)
    except OSError as error:
        found = errno.errorcode[error.errno or 0]
    return "done" if found is None else str(found)


def _file(directory: Path, name: str = "file") -> Path:
    path = directory / name
    path.write_bytes(b"text")
    return path


def _size_of_directory(directory: Path) -> object:
    _file(directory)
    return "0" if directory.stat().st_size == 0 else "more than 0"


def _long_ago(directory: Path) -> object:
    path = _file(directory)
    os.utime(path, ns=(1, -86_400_000_000_000))
    return {-86_400_000_000_000: "as set", 0: "1970"}[path.stat().st_mtime_ns]


def _hole(directory: Path) -> object:
    path = _file(directory)
    os.truncate(path, 100_000)
    with path.open("rb") as opened:
        return "a hole" if os.lseek(opened.fileno(), 0, os.SEEK_HOLE) < 100_000 else "the end of the file"


def _truncating_reader(directory: Path) -> object:
    path = _file(directory)
    os.close(os.open(path, os.O_RDONLY | os.O_TRUNC))
    return f"{path.stat().st_size} bytes are left"


def _nameless(directory: Path) -> None:
    os.close(os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600))


def _large(directory: Path) -> None:
    with (directory / "file").open("wb") as opened:
        os.pwrite(opened.fileno(), b"x", 5 << 30)


def _deep(directory: Path) -> None:
    for _ in range(6):
        directory = directory / ("d" * 200)
        directory.mkdir()


DIFFERENCES = [
    Difference(
        "`link`",
        "on a file",
        "done",
        "EPERM",
        "an object has one key. A second name would be an object without content that every other program reads as "
        "an empty file, and a rename of either would be two requests that can be torn",
        lambda at: os.link(_file(at), at / "other"),
    ),
    Difference("`open` with `O_TMPFILE`", "anywhere", "done", "ENOTSUP", "a file without a name has no key", _nameless),
    Difference(
        "`open` with `O_RDONLY` and `O_TRUNC`",
        "on a file",
        "0 bytes are left",
        "4 bytes are left",
        "who may not write changes nothing; POSIX leaves it open",
        _truncating_reader,
    ),
    Difference(
        "`open` to create",
        "the name is not UTF-8",
        "done",
        "EILSEQ",
        "a key is UTF-8",
        lambda at: os.close(os.open(os.fsencode(at) + b"/\xff", os.O_CREAT | os.O_WRONLY)),
    ),
    Difference("`mkdir`", "the path is over 1,024 bytes", "done", "ENAMETOOLONG", "a key has 1,024 bytes", _deep),
    Difference(
        "`write`",
        "beyond `LIVEMEMFS_MAX_FILE_SIZE`",
        "done",
        "EFBIG",
        "S3 copies no object over 5 GiB, and a rename is a copy",
        _large,
    ),
    Difference(
        "`lseek` with `SEEK_HOLE`",
        "after a gap",
        "a hole",
        "the end of the file",
        "zeros are stored like any byte",
        _hole,
    ),
    Difference("`stat`", "`st_size` of a directory", "more than 0", "0", "a prefix has no size", _size_of_directory),
    Difference("`utimens`", "before 1970", "as set", "1970", "the kernel is told no earlier time", _long_ago),
]
"""A test shows every row to be so. The random steps leave out what these rows say of size, links and times."""


KNOWN: list[Difference] = []
"""The same for what ought not to differ and cannot be mended now."""


# --- the tests ---------------------------------------------------------------------------------------------------


@pytest.fixture
def local() -> Iterator[Path]:
    """A directory on a tmpfs."""
    path = Path(tempfile.mkdtemp(prefix="livememfs-test-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def mirrored(tmp_path: Path, folder: Path) -> Iterator[MirrorProcess]:
    """A mirror of a folder with one space."""
    mirror = MirrorProcess("mirror", tmp_path, {"LIVEMEMFS_STORE": str(folder)})
    mirror.start()
    (mirror.path / SPACE).mkdir()
    yield mirror
    mirror.end(signal.SIGKILL)


def _sides(local: Path, door: Mount | MirrorProcess, seed: int) -> tuple[Side, Side]:
    """The directories of a seed. Each is below one of its own, for a link may lead out of the inner one."""
    return Side(local / f"work-{seed}/work"), Side(door.path / SPACE / f"work-{seed}/work")


def _mirrored(tree: dict[str, object]) -> dict[str, object]:
    """What a mirror has words for: of folders nothing but their being there."""
    return {path: "directory" if found[0] == "directory" else found for path, found in tree.items()}  # type: ignore[index]


@pytest.mark.parametrize("kind", PAUSES)
def test_random_operations_give_the_same_as_on_a_local_file_system(
    kind: str, local: Path, folder: Path, start_mount: StartMount, request: pytest.FixtureRequest
) -> None:
    door: Mount | MirrorProcess = request.getfixturevalue(kind)
    as_far_as, seeds = (_mirrored, SEEDS if LONG else SEEDS[:1]) if kind == "mirrored" else (dict, SEEDS)
    for seed in seeds:
        print(f"LIVEMEMFS_TEST_SEED={seed}")
        theirs, ours = _sides(local, door, seed)
        theirs.root.mkdir(parents=True)
        ours.root.mkdir(parents=True)
        began = time.monotonic()
        try:
            run(steps_of(seed, STEPS), theirs, ours, PAUSES[kind])
        finally:
            theirs.close_all()
            ours.close_all()
        assert ours.tree() == theirs.tree(), f"after the last close, with the seed {seed}"
        print(f"  {STEPS} steps in {time.monotonic() - began:.1f} s")

    door.stop()
    door.start()
    other = start_mount({"LIVEMEMFS_STORE": str(folder)}, name="other")
    for seed in seeds:
        theirs, ours = _sides(local, door, seed)
        assert ours.tree() == theirs.tree(), f"started again, with the seed {seed}"
        _, elsewhere = _sides(local, other, seed)
        assert as_far_as(elsewhere.tree()) == as_far_as(theirs.tree()), f"on another machine, with the seed {seed}"


def test_what_differs_from_a_local_file_system_is_what_the_table_says(local: Path, folder_mounted: Mount) -> None:
    work = folder_mounted.path / SPACE / "work"
    work.mkdir()
    found = [
        (row.operation, row.condition, _answer(row.probe, local / str(n)), _answer(row.probe, work / str(n)))
        for n, row in enumerate([*DIFFERENCES, *KNOWN])
    ]

    assert found == [(row.operation, row.condition, row.local, row.ours) for row in [*DIFFERENCES, *KNOWN]]


def test_the_page_has_the_same_table() -> None:
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]

    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| operation ")]

    assert rows == [row.row for row in [*DIFFERENCES, *KNOWN]]
