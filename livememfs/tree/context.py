"""What every node of one mount shares.

Owns nothing itself: it holds the layers below and the figures that the composition root chose. Frozen; trio
thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from livememfs import errors
from livememfs.code.workplaces import Workplaces
from livememfs.tree import registry
from livememfs.tree.indexreads import IndexReads

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.memories.dictated import Dictated
    from livememfs.memories.expiry import Expiry
    from livememfs.memories.uses import Uses
    from livememfs.observing.capture import Capture
    from livememfs.observing.observer import Observer
    from livememfs.recall.service import Recall
    from livememfs.recall.turn.context import ContextPages
    from livememfs.recall.turn.prehook import Prehook
    from livememfs.records.access import Access
    from livememfs.runs.queue import RunQueue
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.errorlog import ErrorLog
    from livememfs.tree.node import Ids
    from livememfs.tree.objectfile import ObjectFile
    from livememfs.tree.rejected import RejectedReplies


@dataclass(slots=True)
class Writes:
    """How often something was written that no level knows of yet: listings that were made before are outdated."""

    count: int = 0


class HookAnswers(Protocol):
    """Answers the hooks of agents. It is made in a layer above this one."""

    @property
    def events(self) -> Sequence[str]:
        """The names of the events."""

    def answer(self, space: str, event: str, request: bytes) -> Awaitable[bytes]:
        """The answer to one request. Raises nothing."""


class DoorAnswers(Protocol):
    """Answers hooks of any project of this machine, and knows the spaces of projects."""

    def answer(self, event: str, request: bytes, pid: int) -> Awaitable[bytes]:
        """The answer to one request of a process. Raises nothing."""

    def space(self, folder: str) -> Awaitable[str]:
        """The space of the project that a directory is in; empty when it is in no project."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The surroundings of a node.

    `agent_of(pid)` names the agent behind a process; `status()` is the value of `status.json`, `metrics()` its figures
    for Prometheus. `written` holds the files that somebody writes to, `unsaved` those whose close failed: directories
    know their files only as long as somebody does. `access()` tells what may be done here. `door` is None where no
    project of this machine can be meant: without a mount. `code` knows where agents work.
    """

    replica: Replica
    consolidations: RunQueue
    clock: Clock
    errors: ErrorLog
    rejected: RejectedReplies
    agent_of: Callable[[int], str]
    status: Callable[[], dict[str, Any]]
    metrics: Callable[[], Awaitable[bytes]]
    access: Callable[[], Access]
    recall: Recall
    expiry: Expiry
    uses: Uses
    prehook: Prehook
    pages: ContextPages
    capture: Capture
    observer: Observer
    hooks: HookAnswers
    door: DoorAnswers | None
    host: str
    owner: str
    ids: Ids
    max_file_size: int
    fsync_remote: bool
    writes: Writes = field(default_factory=Writes)
    written: set[ObjectFile] = field(default_factory=set)
    unsaved: set[ObjectFile] = field(default_factory=set)
    index_reads: IndexReads = field(default_factory=IndexReads)
    code: Workplaces = field(default_factory=Workplaces)

    def now_ns(self) -> int:
        """The time in nanoseconds since 1970."""
        return int(self.clock.now().timestamp() * 1_000_000) * 1_000

    @property
    def dictated(self) -> Dictated:
        """What users have dictated to agents."""
        return self.capture.dictated

    async def stored(self, key: str) -> ObjectInfo | None:
        """The version that the bucket has under a key; None when it has none."""
        try:
            return await self.replica.names.stat(key)
        except errors.ObjectMissing:
            return None

    def opened(self, key: str, pid: int) -> None:
        """A process opens the file of a record, which may be a use of it."""
        self.uses.opened_by(pid, key.partition("/")[0], key, self._reader)

    def _reader(self, pid: int) -> int:
        """Who reads: what one shell or agent starts belongs together, as a `cat` for each file is a `grep -r` too."""
        who = self.index_reads.who(pid)
        return who.parent if who.parent > 1 else who.process or who.thread

    def sees(self, path: str) -> bool:
        """Whether the token of the mount sees a path. Each request to a limited mount asks this."""
        return registry.is_there(path, self.access())

    @property
    def confined(self) -> bool:
        """Whether the token does not administer the bucket: then links must stay in their space."""
        return not self.access().admin
