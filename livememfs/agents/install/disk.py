"""The disk's side of an installation: what may be touched, and changing all of it or nothing.

Owns which files may be written: below the project, whatever links say, and only where their mode lets somebody write.
Each write is whole or not at all, and when one fails the earlier ones are taken back. Blocking; any thread.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from livememfs import private
from livememfs.errors import CannotInstall

_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, kw_only=True)
class FileEdit:
    """One file that is to change.

    :path:    the file itself, behind all links
    :before:  its bytes now, None when there is none
    :after:   its bytes then, None when it is to go
    :private: only its owner may read it, should it be made
    :runs:    it may be run, should it be made
    """

    path: Path
    before: bytes | None
    after: bytes | None
    private: bool = False
    runs: bool = False


def real_path(project: Path, part: str) -> Path:
    """The file behind a path below the project. Raises CannotInstall when a link leads out of the project."""
    named = project / part
    try:
        found = named.resolve()
    except (OSError, RuntimeError) as error:
        raise CannotInstall(path=named, detail=f"its links lead nowhere: {error}") from None
    if not found.is_relative_to(project):
        raise CannotInstall(path=named, detail=f"a link leads out of the project, to {found}")
    return found


def read(path: Path) -> bytes | None:
    """The bytes of a file, None when there is none. Raises CannotInstall when they cannot be had."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CannotInstall(path=path, detail="it is no ordinary file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotInstall(path=path, detail=f"it cannot be read: {error.strerror}") from None


def missing_directories(project: Path, path: Path) -> list[Path]:
    """The directories below the project that a file needs and that are not there, the outer ones first."""
    between = [one for one in path.parents if one.is_relative_to(project)]
    return [one for one in reversed(between) if not one.exists()]


def carry_out(changes: Sequence[FileEdit], emptied: Iterable[Path] = ()) -> None:
    """Make all changes, then remove those directories of `emptied` that are empty.

    Raises CannotInstall; then everything is as it was.
    """
    statuses = {change.path: _checked(change) for change in changes}
    done: list[FileEdit] = []
    made: list[Path] = []
    try:
        for change in changes:
            _make_directories(change, made)
            done.append(change)  # before it is written: an interrupt may come right behind that
            _put(change, change.after, statuses[change.path])
    except BaseException as error:
        _take_back(done, statuses, made)
        if not isinstance(error, OSError):
            raise
        path = changes[max(0, len(done) - 1)].path
        raise CannotInstall(path=path, detail=f"it cannot be written: {error.strerror}") from None
    for directory in sorted(emptied, reverse=True):
        with contextlib.suppress(OSError):  # it holds something of somebody else's
            directory.rmdir()


def _checked(change: FileEdit) -> os.stat_result | None:
    """The file's status. Raises CannotInstall when it could not be changed, or is not what was planned with."""
    if read(change.path) != change.before:
        raise CannotInstall(path=change.path, detail="it was changed meanwhile", advice="try again")
    if change.before is not None:
        _check_writable(change.path)
    _check_writable(next(one for one in change.path.parents if one.exists()))
    return change.path.stat() if change.before is not None else None


def _check_writable(path: Path) -> None:
    """The mode counts for root too, who could write: whoever took the bits away meant it."""
    if not path.stat().st_mode & _ANY_WRITE or not os.access(path, os.W_OK):
        raise CannotInstall(path=path, detail="it is read-only", advice="chmod u+w it, or leave it out")


def _make_directories(change: FileEdit, made: list[Path]) -> None:
    for directory in reversed(change.path.parents):
        if not directory.exists():
            directory.mkdir(private.FOLDER if change.private else 0o777)
            made.append(directory)


def _put(change: FileEdit, data: bytes | None, status: os.stat_result | None) -> None:
    """Let the file hold these bytes, with the mode and owner it had; or remove it."""
    path = change.path
    if data is None:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
    mode = (
        private.FILE if change.private else 0o777 if change.runs else 0o666
    )  # the umask takes its part from a new file
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            if status is not None:
                _adopt(file.fileno(), status)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _adopt(descriptor: int, status: os.stat_result) -> None:
    with contextlib.suppress(PermissionError):  # another's file in a directory that is ours
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _take_back(done: Sequence[FileEdit], statuses: Mapping[Path, os.stat_result | None], made: Sequence[Path]) -> None:
    """As it was, as far as the disk lets us."""
    for change in reversed(done):
        with contextlib.suppress(OSError, CannotInstall):
            if read(change.path) != change.before:
                _put(change, change.before, statuses[change.path])
    for directory in reversed(made):
        with contextlib.suppress(OSError):
            directory.rmdir()
