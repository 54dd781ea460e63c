"""Local files are readable for their owner only, whatever the umask.

Owns how our folders and files are made (0700, 0600), the removal of wider modes from earlier versions, and the refusal
of a place that another user prepared: a folder of that user, or a symbolic link. Refuses to change a folder that the
user named: it may be shared on purpose. Blocking; any thread.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from livememfs.errors import NotPrivate

FOLDER, FILE = 0o700, 0o600
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_ROOT = 0


def make(path: Path) -> None:
    """Make a folder and its missing parents, for this user only. OSError.

    Existing folders, and links to folders, stay unchanged.
    """
    try:
        path.mkdir(mode=FOLDER)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make(path.parent)
        path.mkdir(mode=FOLDER, exist_ok=True)
    except OSError:
        if not path.is_dir():
            raise


def folder(path: Path, *, top: Path | None = None) -> None:
    """Make a folder that only this user can open. With `top`, the folders from there on are ours too.

    NotPrivate, OSError.
    """
    check(path, top=top)
    make(path)
    for ours in (path, *_between(path, top)):
        status = ours.lstat()
        if status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode):
            _narrow(ours, status)


def narrow_inside(path: Path) -> None:
    """Remove the rights of others from all entries of our folder, not below. NotPrivate, OSError."""
    for inner in path.iterdir():
        with suppress(FileNotFoundError):  # SQLite removes its own files at any time
            status = inner.lstat()
            _check_owner(inner, status)
            if not stat.S_ISLNK(status.st_mode):
                _narrow(inner, status)


def begin(path: Path) -> None:
    """Make an empty file for SQLite, if there is none: SQLite gives its other files the same mode.

    An error is ignored here: opening the database raises it again.
    """
    with suppress(OSError):
        os.close(opener(str(path), os.O_WRONLY | os.O_CREAT))


def write_text(path: Path, text: str) -> None:
    """Write a text to a small private file. OSError."""
    with open(path, "w", opener=opener) as file:
        file.write(text)


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=private.opener)`: a new file is for this user only."""
    return os.open(path, flags, FILE)


def check(path: Path, *, top: Path | None = None) -> None:
    """Refuse a path that another user owns, whether it exists or not. NotPrivate.

    The path itself must be no link; its parents may be links of this user or of root.
    """
    for place in (path, *path.parents):
        with suppress(OSError):  # it does not exist, or cannot be checked: using it raises the error
            status = place.lstat()
            is_link = stat.S_ISLNK(status.st_mode)
            if place == path:
                if is_link:
                    raise NotPrivate(path=place, detail="it is a symbolic link")
                _check_owner(place, status)
            elif status.st_uid != _ROOT and (is_link or place in _between(path, top)):
                _check_owner(place, status)


def is_open(path: Path) -> bool:
    """Whether other users of this machine can reach and use a folder. OSError."""
    real = path.resolve()
    return bool(real.stat().st_mode & stat.S_IRWXO) and all(
        parent.stat().st_mode & stat.S_IXOTH for parent in real.parents
    )


def _between(path: Path, top: Path | None) -> list[Path]:
    """The parents of a path, up to `top`."""
    return [parent for parent in path.parents if top is not None and parent.is_relative_to(top)]


def _narrow(path: Path, status: os.stat_result) -> None:
    if status.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise NotPrivate(path=path, detail=f"it belongs to another user (uid {status.st_uid})")
