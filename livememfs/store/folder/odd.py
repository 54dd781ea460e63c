"""The keys of the odd objects of a folder store, in order.

Owns what was found out about them: a file name there is a digest of its key, so what it stands for is final. Refuses to
believe that nothing changed: the folder is read each time, and only what came or went since is looked into, since each
directory of a tree that somebody copies is such a name. Any thread.
"""

from __future__ import annotations

import threading
from bisect import bisect_left

from livememfs.store.folder import sidecar
from livememfs.store.folder.layout import Layout


class OddKeys:
    """What lies in the odd folder of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._keys: dict[str, str] = {}
        self._sorted: list[str] = []
        self._lock = threading.Lock()

    def in_order(self) -> list[str]:
        """All of them now; a list of the caller's own. Raises OSError."""
        names = set(self._layout.odd_folder.names())
        with self._lock:
            for name in self._keys.keys() - names:
                key = self._keys.pop(name)
                del self._sorted[bisect_left(self._sorted, key)]
            for name in names - self._keys.keys():
                if side := sidecar.read(self._layout.side_of_odd(name)):
                    self._keys[name] = side.key
                    self._sorted.append(side.key)
            self._sorted.sort()  # in order but for the last ones, which takes no time
            return self._sorted.copy()
