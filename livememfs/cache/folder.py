"""Where the local state of a bucket is.

Owns the choice among the folders of one bucket: the first is any mount's, a second mount on the same machine takes the
next. A folder that a crash left with something to upload goes first. It is for this user alone, and so made if it was
not. Trio thread only, before anything else runs.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from pathlib import Path

from livememfs import private
from livememfs.errors import CacheInUse, CacheUnusable

MOUNTS = 16


def cache_folder(below: Path, label: str) -> Path:
    """The folder for the bucket that `label` names, made if need be.

    Raises CacheInUse when all are taken, CacheUnusable, NotPrivate.
    """
    stem = blake2b(label.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    folders = [below / (stem if number == 1 else f"{stem}-{number}") for number in range(1, MOUNTS + 1)]
    for folder in (folders[0], *filter(os.path.lexists, folders)):
        private.check(folder, top=below)
    free = [folder for folder in folders if not _in_use(folder)]
    if not free:
        raise CacheInUse(path=folders[0])
    chosen = next((folder for folder in free if _has_waiting(folder)), free[0])
    try:
        private.folder(chosen)
        private.narrow_inside(chosen)
    except OSError as error:
        raise CacheUnusable(path=below, detail=error.strerror) from None
    if not os.access(chosen, os.W_OK | os.X_OK):
        raise CacheUnusable(path=chosen, detail="it cannot be written to")
    return chosen


def _in_use(folder: Path) -> bool:
    import fcntl  # here: Windows has none

    try:
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CacheUnusable(path=folder.parent, detail=error.strerror) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _has_waiting(folder: Path) -> bool:
    """Whether a process ended there before everything was uploaded."""
    path = folder / "state.db"
    if not path.exists():
        return False
    db = sqlite3.connect(path, timeout=0)
    try:
        return bool(db.execute("SELECT 1 FROM op LIMIT 1").fetchall())
    except sqlite3.DatabaseError:
        return False
    finally:
        db.close()
