"""Who may write, between threads and between processes.

Owns the lock files. One lock covers a stripe of keys and is held for one change, so no caller ever holds two and none
can wait in a circle. The kernel releases what a dead process held. Any thread may call it; waiting blocks the thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from livememfs.store.folder.place import FolderPlace


@contextmanager
def held(path: FolderPlace) -> Iterator[None]:
    """Hold an exclusive lock on a lock file for the block. The file is created and never removed."""
    import fcntl  # here: Windows has none

    # Each call opens the file anew: flock belongs to the open file, so this also keeps two threads apart.
    descriptor = path.open(os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def claim_folder(path: FolderPlace) -> int | None:
    """Lock a folder without waiting: a descriptor that holds it until closed, None when somebody else has it."""
    import fcntl

    descriptor = path.open(os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
