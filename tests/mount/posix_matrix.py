"""One system call after the other as several users, in a directory of a mount and in one of the local disk.

The local disk is the reference: whatever a call answers there, and whatever `lstat` shows after it, is what POSIX has.
A user is a process of its own, since threads of one process have one effective user for the kernel's checks.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

ROOT, ANNA, BERT = 0, 65_534, 65_533
USERS = {ROOT: (0, (0,)), ANNA: (65_534, (65_534, 65_530)), BERT: (65_533, (65_533, 65_530))}
"""Each user with its first group, and all of its groups: Anna and Bert have one in common."""
SHARED = 65_530
KINDS = ("file", "directory", "symlink", "fifo", "socket", "char", "block")
Call = Callable[[Path], Any]


def make(path: Path, kind: str) -> None:
    """A new thing of this kind."""
    if kind == "file":
        path.write_bytes(b"text")
    elif kind == "directory":
        path.mkdir()
    elif kind == "symlink":
        path.symlink_to("nowhere")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(path.parent, os.O_PATH)
            server.bind(f"/proc/self/fd/{here}/{path.name}")  # the whole path may be too long for a socket
            os.close(here)
    else:
        bits = stat.S_IFCHR if kind == "char" else stat.S_IFBLK
        os.mknod(path, bits | 0o644, os.makedev(1, 3))


def shown(path: Path) -> dict[str, Any] | str:
    """What `lstat` says, but for times and numbers that differ by nature."""
    try:
        seen = path.lstat()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    fields = {"mode": oct(seen.st_mode), "uid": seen.st_uid, "gid": seen.st_gid, "rdev": seen.st_rdev}
    fields["links"] = seen.st_nlink
    return fields if stat.S_ISDIR(seen.st_mode) else fields | {"size": seen.st_size}


class User:
    """A process with the rights of one user, which calls what it is told to."""

    def __init__(self, uid: int, umask: int = 0o022) -> None:
        self._ours, theirs = Pipe()
        self._pid = os.fork()
        if not self._pid:
            try:
                self._serve(theirs, uid, umask)
            finally:
                os._exit(0)
        theirs.close()

    @staticmethod
    def _serve(told: Connection, uid: int, umask: int) -> None:
        gid, groups = USERS[uid]
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        os.umask(umask)
        while True:
            name, path, text = told.recv()
            if not name and text is None:
                return
            try:
                told.send(("ok", CALLS[name](Path(path)) if text is None else _appended(Path(path), text)))
            except OSError as error:
                told.send((errno.errorcode[error.errno or 0], None))
            except Exception as error:
                told.send((repr(error), None))

    def does(self, call: str, path: Path) -> str:
        """The outcome of one call: ok, or the name of the error."""
        return str(self._ask(call, path)[0])

    def writes(self, path: Path, text: str) -> str:
        """The outcome of appending to a file that may be new."""
        return str(self._ask("", path, text)[0])

    def text_of(self, path: Path) -> str:
        """What is read from a file."""
        outcome, text = self._ask("text", path)
        assert outcome == "ok", outcome
        return str(text)

    def _ask(self, call: str, path: Path, text: str | None = None) -> Any:
        self._ours.send((call, str(path), text))
        return self._ours.recv()

    def end(self) -> None:
        """Let the process end."""
        self._ours.send(("", "", None))  # closing is not enough: processes that began later have the same pipe
        os.waitpid(self._pid, 0)


@contextmanager
def users() -> Iterator[dict[int, User]]:
    """All of them."""
    made = {uid: User(uid) for uid in USERS}
    try:
        yield made
    finally:
        for user in made.values():
            user.end()


def _write(flags: int) -> Call:
    def call(path: Path) -> None:
        descriptor = os.open(path, flags | os.O_NONBLOCK)
        try:
            if flags & os.O_ACCMODE != os.O_RDONLY:
                os.write(descriptor, b"more")
        finally:
            os.close(descriptor)

    return call


def _appended(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def _new(kind: str) -> Call:
    return lambda path: make(path / "new", kind)


def _new_file(flags: int, mode: int) -> Call:
    return lambda path: os.close(os.open(path / "new", flags | os.O_CREAT, mode))


CALLS: dict[str, Call] = {
    "read": _write(os.O_RDONLY),
    "append": _write(os.O_WRONLY | os.O_APPEND),
    "read and write": _write(os.O_RDWR),
    "cut at open": _write(os.O_WRONLY | os.O_TRUNC),
    "truncate": lambda path: os.truncate(path, 2),
    "text": Path.read_text,
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "list": os.listdir,
    "rename": lambda path: os.rename(path, path.parent / "renamed"),
    "rename over a file": lambda path: os.rename(path, path.parent / "other file"),
    "rename over a directory": lambda path: os.rename(path, path.parent / "other directory"),
    "rename over a full directory": lambda path: os.rename(path, path.parent / "full"),
    "rename into itself": lambda path: os.rename(path, path / "below"),
    "rename below": lambda path: os.rename(path, path.parent / "other directory" / "moved"),
    "chmod": lambda path: os.chmod(path, 0o640),
    "chmod with all bits": lambda path: os.chmod(path, 0o7777),
    "chown to anna": lambda path: os.lchown(path, ANNA, -1),
    "chgrp to the shared one": lambda path: os.lchown(path, -1, SHARED),
    "chgrp to a foreign one": lambda path: os.lchown(path, -1, 12_345),
    "chown to nobody else": lambda path: os.lchown(path, -1, -1),
    "touch": lambda path: os.utime(path, follow_symlinks=False),
    "set times": lambda path: os.utime(path, ns=(1_000_000_001, 2_000_000_002), follow_symlinks=False),
    "readlink": os.readlink,
    "mkdir here": os.mkdir,
    "through it": lambda path: os.stat(path / "below"),
    "create in it": _new_file(os.O_WRONLY, 0o666),
    "create exclusively in it": _new_file(os.O_WRONLY | os.O_EXCL, 0o6777),
    "a directory in it": lambda path: os.mkdir(path / "new", 0o7777),
    **{f"a {kind} in it": _new(kind) for kind in KINDS if kind not in ("file", "directory")},
}
NOT_TRIED = {"text"}
NEEDS_DIRECTORY = {name for name in CALLS if name.endswith("in it")}
OPENS = {"read", "append", "read and write", "cut at open"}
"""What is not asked of devices: a mount opens none (`nodev`)."""


@dataclass(frozen=True)
class Case:
    """Who calls what, on what."""

    call: str
    user: int
    kind: str
    owner: int
    group: int
    mode: int
    above: int
    """The mode of the directory in which it stands."""
    above_owner: int

    def prepared(self, room: Path) -> Path:
        """The thing, in a directory of its own with things to rename onto."""
        room.mkdir()
        path = room / "thing"
        make(path, self.kind)
        (room / "other file").write_bytes(b"")
        (room / "other directory").mkdir()
        (room / "full" / "inside").mkdir(parents=True)
        os.lchown(path, self.owner, self.group)
        if self.kind != "symlink":
            path.chmod(self.mode)
        os.chown(room, self.above_owner, SHARED)
        room.chmod(self.above)
        return path

    def outcome(self, who: dict[int, User], room: Path) -> dict[str, Any]:
        """What the call answers, and what is there after it."""
        path = self.prepared(room)
        answer = who[self.user].does(self.call, path)
        names = ("", "thing", "thing/new", "thing/below", "renamed", "other file", "other directory", "full")
        return {"answer": answer, **{name: shown(room / name) for name in (*names, "other directory/moved")}}


MODES = (0o755, 0o700, 0o070, 0o007, 0o2775, 0o1777, 0o6711)
ABOVE = ((0o777, ROOT), (0o755, ROOT), (0o1777, ROOT), (0o1770, ANNA), (0o2770, BERT), (0o700, ANNA))


def cases() -> Iterator[Case]:
    """Each call x user x kind, with owners, modes and directories that take turns: each pair of them comes often."""
    number = 0
    for call, user, kind in product(CALLS, USERS, KINDS):
        if (
            call in NOT_TRIED
            or (call in NEEDS_DIRECTORY and kind != "directory")
            or (call in OPENS and kind in ("char", "block"))
        ):
            continue
        for turn in range(7):
            number += 1
            above, above_owner = ABOVE[(number + turn) % len(ABOVE)]
            owner = (ROOT, ANNA, BERT)[(number // 2 + turn) % 3]
            group = (0, SHARED, 65_534)[(number // 3) % 3]
            yield Case(call, user, kind, owner, group, MODES[(number // 5 + turn) % 7], above, above_owner)
