"""The keys of the folder store in order: the files people see, merged with the odd ones.

Owns what counts as an object: regular files with UTF-8 names, outside the store's own tree. Symbolic links are not
followed and not listed. Refuses to open content. Any thread may iterate; one walk belongs to one call.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator

from livememfs.store.base import MAX_KEY_BYTES
from livememfs.store.folder.layout import HIDDEN, Layout
from livememfs.store.folder.place import FolderPlace
from livememfs.store.listing import SortedKeys, after_prefix

KEPT_FROM = 2_000
"""Names in a folder from which on they are kept."""
MOST_KEPT = 4
SETTLED_NS = 2_000_000_000
"""A folder that changed less long ago may change again without another time being written down."""


class Walk:
    """A KeySource (see `listing`) over the plain files that can lie below a prefix.

    `folded`: of all those in one folder below the prefix, any one will do.
    """

    def __init__(self, layout: Layout, prefix: str, entries: Entries | None = None, *, folded: bool = False) -> None:
        self._layout, self._entries, self._folded = layout, entries or Entries(), folded
        self._stem = prefix[: prefix.rfind("/") + 1]
        self._prefix = prefix
        self._bound = ""

    def __iter__(self) -> Iterator[str]:
        start = self._layout.plain(self._stem[:-1]) if self._stem else self._layout.root
        return iter(()) if start is None else self._below(start, self._stem)

    def skip_to(self, bound: str) -> None:
        """Whole folders below the bound are left unopened."""
        self._bound = bound

    def _below(self, folder: FolderPlace, stem: str) -> Iterator[str]:
        entries = self._entries.of(folder, stem)
        # The one before the bound may be the folder that it lies in.
        for at in range(max(bisect_left(entries, self._bound) - 1, 0), len(entries)):
            path = entries[at]
            if not path.endswith("/"):
                if path >= self._bound:
                    yield path
            elif after_prefix(path) > self._bound and path.startswith(self._prefix[: len(path)]):
                if self._folded and path.startswith(self._prefix) and path >= self._bound:
                    yield from _first_found(self._layout.root / path[:-1], path)
                else:
                    yield from self._below(self._layout.root / path[:-1], path)


class Entries:
    """The sorted names of large folders, kept while nothing in them changes: a listing of a million files is asked for
    in a thousand pages. Any thread.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[FolderPlace, str], tuple[int, list[str]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: FolderPlace, stem: str) -> list[str]:
        """Files and folders of one folder as keys in order; a folder ends in a slash, as the keys below it continue."""
        changed = _changed(folder)
        with self._lock:
            known = self._kept.get((folder, stem))
            if known is not None and known[0] == changed:
                self._kept.move_to_end((folder, stem))
                return known[1]
        entries = _sorted_entries(folder, stem)
        if len(entries) >= KEPT_FROM and changed < time.time_ns() - SETTLED_NS:
            with self._lock:
                self._kept[folder, stem] = changed, entries
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
        return entries


def _changed(folder: FolderPlace) -> int:
    """When a name came to a folder or went from it; 0 when it is not there."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


class MergedKeys:
    """A KeySource over plain and odd keys together, each key once."""

    def __init__(self, plain: Walk, odd: list[str]) -> None:
        self._sources = (plain, SortedKeys(odd))
        self._bound = ""

    def __iter__(self) -> Iterator[str]:
        last = None
        for key in heapq.merge(*self._sources):
            # The merge holds one key of each source in hand, so a leap forward can find one that it has passed.
            if key != last and key >= self._bound:
                last = key
                yield key

    def skip_to(self, bound: str) -> None:
        """Leap forward in both."""
        self._bound = bound
        for source in self._sources:
            source.skip_to(bound)


def _first_found(folder: FolderPlace, stem: str) -> list[str]:
    """Any key in a folder or below, in a list; none where there is none. A million names need not be read for that."""
    try:
        with folder.opened() as descriptor, os.scandir(descriptor) as entries:
            inner = []
            for found in filter(None, (_as_key(entry, stem) for entry in entries)):
                if not found.endswith("/"):
                    return [found]
                inner.append(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return next(filter(None, (_first_found(folder / path[len(stem) : -1], path) for path in inner)), [])


def _sorted_entries(folder: FolderPlace, stem: str) -> list[str]:
    try:
        with folder.opened() as descriptor, os.scandir(descriptor) as entries:
            return sorted(filter(None, (_as_key(entry, stem) for entry in entries)))
    except (FileNotFoundError, NotADirectoryError):
        return []  # never there, or removed while the walk came to it


def _as_key(entry: os.DirEntry[str], stem: str) -> str | None:
    if not stem and entry.name == HIDDEN:
        return None
    path = stem + entry.name
    try:
        if len(path.encode()) > MAX_KEY_BYTES:
            return None
    except UnicodeEncodeError:
        return None  # a file name that is no UTF-8 cannot be a key
    if entry.is_dir(follow_symlinks=False):
        return path + "/"
    return path if entry.is_file(follow_symlinks=False) else None
