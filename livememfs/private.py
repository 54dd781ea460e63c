"""What is kept on this machine is for its owner alone, whatever the umask.

Owns how folders and files of ours are made (0700, 0600), the narrowing of those that an earlier version made wider, and
the refusal of a place that somebody else prepared: a folder of another user, or a symbolic link in its place. Refuses
to touch what the user named: a folder that is shared on purpose stays as it is. Blocking; any thread.
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
    """Make a folder and what is missing of the way to it, for this user alone. Raises OSError.

    Whatever is there already stays as it is, a link to a folder as well.
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
    """Have a folder of ours that only this user can open. With `top`, those from there on are ours as well.

    Raises NotPrivate, OSError.
    """
    check(path, top=top)
    make(path)
    for one in (path, *_between(path, top)):
        status = one.lstat()
        if status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode):
            _narrow(one, status)


def narrow_inside(path: Path) -> None:
    """Keep others out of what lies directly in a folder of ours. Raises NotPrivate, OSError."""
    for inner in path.iterdir():
        with suppress(FileNotFoundError):  # a file of SQLite's comes and goes
            status = inner.lstat()
            _check_owner(inner, status)
            if not stat.S_ISLNK(status.st_mode):
                _narrow(inner, status)


def begin(path: Path) -> None:
    """Make an empty file for SQLite, if there is none: its other files take the mode of this one.

    Where that cannot be, whoever opens the file hears why.
    """
    with suppress(OSError):
        os.close(opener(str(path), os.O_WRONLY | os.O_CREAT))


def write_text(path: Path, text: str) -> None:
    """Have a small file of ours hold this text. Raises OSError."""
    with open(path, "w", opener=opener) as file:
        file.write(text)


def opener(path: str, flags: int) -> int:
    """For `open(..., opener=private.opener)`: a file that is made is for this user alone."""
    return os.open(path, flags, FILE)


def check(path: Path, *, top: Path | None = None) -> None:
    """Whether this place, there or not, is no other user's. Raises NotPrivate.

    In the last place there may be no link at all; on the way there may be one that this user or root made.
    """
    for one in (path, *path.parents):
        with suppress(OSError):  # it is not there, or cannot be looked at: whoever uses it hears why
            status = one.lstat()
            is_link = stat.S_ISLNK(status.st_mode)
            if one == path:
                if is_link:
                    raise NotPrivate(path=one, detail="it is a symbolic link")
                _check_owner(one, status)
            elif status.st_uid != _ROOT and (is_link or one in _between(path, top)):
                _check_owner(one, status)


def is_open(path: Path) -> bool:
    """Whether any user of this machine can use a folder and come to it. Raises OSError."""
    real = path.resolve()
    return bool(real.stat().st_mode & stat.S_IRWXO) and all(one.stat().st_mode & stat.S_IXOTH for one in real.parents)


def _between(path: Path, top: Path | None) -> list[Path]:
    """The folders above one, up to `top`."""
    return [one for one in path.parents if top is not None and one.is_relative_to(top)]


def _narrow(path: Path, status: os.stat_result) -> None:
    if status.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise NotPrivate(path=path, detail=f"it belongs to another user (uid {status.st_uid})")
