"""Writes the files of an installation: all of them or none.

Owns which files may be written: only below the project, with links resolved, and only if their mode allows writing.
Each file is replaced in one step; when one fails, the earlier ones are restored. Blocking; any thread.
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
    """The change of one file.

    :path:    the file itself, with links resolved
    :before:  its bytes now, None without a file
    :after:   its new bytes, None to remove it
    :private: a new file is readable for its owner only
    :runs:    a new file is executable
    """

    path: Path
    before: bytes | None
    after: bytes | None
    private: bool = False
    runs: bool = False


def real_path(project: Path, part: str) -> Path:
    """The file behind a path below the project, with links resolved. CannotInstall if one leads out of the project."""
    named = project / part
    try:
        real = named.resolve()
    except (OSError, RuntimeError) as error:
        raise CannotInstall(path=named, detail=f"its links cannot be followed: {error}") from None
    if not real.is_relative_to(project):
        raise CannotInstall(path=named, detail=f"a link leads out of the project, to {real}")
    return real


def read(path: Path) -> bytes | None:
    """The bytes of a file, None without a file. CannotInstall if it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CannotInstall(path=path, detail="it is no ordinary file")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotInstall(path=path, detail=f"it cannot be read: {error.strerror}") from None


def missing_directories(project: Path, path: Path) -> list[Path]:
    """The missing parent directories of a file below the project, the outer ones first."""
    between = [parent for parent in path.parents if parent.is_relative_to(project)]
    return [parent for parent in reversed(between) if not parent.exists()]


def carry_out(changes: Sequence[FileEdit], emptied: Iterable[Path] = ()) -> None:
    """Make all changes, then remove those directories of `emptied` that are empty.

    CannotInstall, after everything was restored.
    """
    statuses = {change.path: _checked(change) for change in changes}
    done: list[FileEdit] = []
    made: list[Path] = []
    try:
        for change in changes:
            _make_directories(change, made)
            done.append(change)  # before the write: an interrupt right after it must find the file here, to restore it
            _put(change, change.after, statuses[change.path])
    except BaseException as error:
        _take_back(done, statuses, made)
        if not isinstance(error, OSError):
            raise
        path = changes[max(0, len(done) - 1)].path
        raise CannotInstall(path=path, detail=f"it cannot be written: {error.strerror}") from None
    for directory in sorted(emptied, reverse=True):
        with contextlib.suppress(OSError):  # others have files in it
            directory.rmdir()


def _checked(change: FileEdit) -> os.stat_result | None:
    """The file's status. CannotInstall if it cannot be written, or was changed since the plan."""
    if read(change.path) != change.before:
        raise CannotInstall(path=change.path, detail="it was changed meanwhile", advice="try again")
    if change.before is not None:
        _check_writable(change.path)
    _check_writable(next(parent for parent in change.path.parents if parent.exists()))
    return change.path.stat() if change.before is not None else None


def _check_writable(path: Path) -> None:
    """CannotInstall without write permission. Root obeys the mode too: the write bits were removed on purpose."""
    if not path.stat().st_mode & _ANY_WRITE or not os.access(path, os.W_OK):
        raise CannotInstall(path=path, detail="it is read-only", advice="chmod u+w it, or leave it out")


def _make_directories(change: FileEdit, made: list[Path]) -> None:
    for directory in reversed(change.path.parents):
        if not directory.exists():
            directory.mkdir(private.FOLDER if change.private else 0o777)
            made.append(directory)


def _put(change: FileEdit, data: bytes | None, status: os.stat_result | None) -> None:
    """Replace the file in one step, with its old mode and owner; or remove it."""
    path = change.path
    if data is None:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
    mode = private.FILE if change.private else 0o777 if change.runs else 0o666  # the umask also applies to a new file
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
    with contextlib.suppress(PermissionError):  # a file of another user in our directory
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _take_back(done: Sequence[FileEdit], statuses: Mapping[Path, os.stat_result | None], made: Sequence[Path]) -> None:
    """Restore all files, as far as the disk allows."""
    for change in reversed(done):
        with contextlib.suppress(OSError, CannotInstall):
            if read(change.path) != change.before:
                _put(change, change.before, statuses[change.path])
    for directory in reversed(made):
        with contextlib.suppress(OSError):
            directory.rmdir()
