"""What became of an operation, and what readers and subscribers see of it.

Owns the step from the uploader's verdict to names, contents and the stream of changes, and who is told that our hand
changed the bucket. Refuses to decide anything (`conflicts` and `settling` do). Trio thread only; nothing here awaits.

The newest operation of the key comes first: as long as one waits, readers see that one, whatever the bucket was just
heard to have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs.cache.changes import Change
from livememfs.cache.journal.operation import FREE

if TYPE_CHECKING:
    from collections.abc import Callable

    from livememfs.cache.blobs import Blobs
    from livememfs.cache.catalog import Catalog
    from livememfs.cache.changes import Changes
    from livememfs.cache.conflicts import KeptBoth
    from livememfs.cache.journal.operation import Operation
    from livememfs.cache.journal.steps import Journal
    from livememfs.cache.names import Names
    from livememfs.store.base import ObjectInfo


class Outcomes:
    """The outcomes of one replica's operations. `on_conflict(key, copy)` hears of conflict copies of ours."""

    def __init__(
        self,
        names: Names,
        journal: Journal,
        blobs: Blobs,
        catalog: Catalog,
        changes: Changes,
        on_conflict: Callable[[str, str], None] | None,
    ) -> None:
        self._names = names
        self._journal = journal
        self._blobs = blobs
        self._catalog = catalog
        self._changes = changes
        self._on_conflict = on_conflict
        self._subscribers: list[Callable[[str, bool], None]] = []

    def subscribe(self, callback: Callable[[str, bool], None]) -> None:
        """Call `callback(key, new)` for each key that our hand changed in the bucket; `new`: there was none before."""
        self._subscribers.append(callback)

    def announce(self, key: str, *, new: bool) -> None:
        """Tell them."""
        for callback in self._subscribers:
            callback(key, new)

    def uploaded_as(self, op: Operation, info: ObjectInfo | None) -> None:
        """The bucket has it as it was accepted; None: the key is gone."""
        if info is not None and info.etag != op.etag and op.blob is not None:
            data = self._blobs.by_id(op.blob)  # a store that names versions in its own way
            if data is not None:
                self._blobs.put(op.key, info.etag, data)
        self._names.asking.remember_error("")
        if self._journal.ops.newest(op.key) is None:
            self._names.ours(op.key, info)
            if info is None:
                self._catalog.gone(op.key)
            else:
                self._catalog.heard((info,))
                if info.etag != op.etag:
                    self._changes.publish(Change(op.key, "put", info.etag, "local", by_caller=True))  # the same bytes
        else:
            self._names.ours(op.key, self._names.now(op.key))
        self.announce(op.key, new=op.kind == "put" and op.base is FREE)

    def replaced(self, op: Operation, now: ObjectInfo | None) -> None:
        """The bucket keeps something else under the key: another host's version, or nothing."""
        self._names.settled(op.key, now, "remote")

    def joined(self, op: Operation) -> None:
        """The operation's content is now that of both sides, and so is that of a write which waits behind it."""
        newest = self._journal.ops.newest(op.key)
        if newest is not None and newest.kind == "put":
            self._names.ours(op.key, newest.info())
            self._changes.publish(Change(op.key, "put", newest.etag, "remote"))

    def kept_both(self, op: Operation, verdict: KeptBoth) -> None:
        """Another host's version has the key, ours is beside it."""
        self._names.settled(op.key, verdict.theirs, "remote")
        self._names.settled(verdict.copy.key, verdict.copy, "remote")
        self.announce(verdict.copy.key, new=verdict.note)
        if not verdict.note and self._on_conflict is not None:
            self._on_conflict(op.key, verdict.copy.key)

    def failing(self, reason: str) -> None:
        """The store does not answer, or refuses it."""
        self._names.asking.remember_error(reason)
