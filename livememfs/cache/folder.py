"""Where the local state of a bucket is.

Owns the choice among the folders of one bucket: the first is any mount's, a second mount on the same machine takes the
next. A folder that a crash left with something to upload goes first. Trio thread only, before anything else runs.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from hashlib import blake2b
from pathlib import Path

from livememfs.errors import CacheInUse, CacheUnusable

MOUNTS = 16


def cache_folder(below: Path, label: str) -> Path:
    """The folder for the bucket that `label` names, made if need be. CacheInUse when all are taken, CacheUnusable."""
    stem = blake2b(label.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    folders = [below / (stem if number == 1 else f"{stem}-{number}") for number in range(1, MOUNTS + 1)]
    free = [folder for folder in folders if not _in_use(folder)]
    if not free:
        raise CacheInUse(path=folders[0])
    try:
        free[0].mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheUnusable(path=below, detail=error.strerror) from None
    if not os.access(free[0], os.W_OK | os.X_OK):
        raise CacheUnusable(path=free[0], detail="it cannot be written to")
    return next((folder for folder in free if _has_waiting(folder)), free[0])


def _in_use(folder: Path) -> bool:
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
