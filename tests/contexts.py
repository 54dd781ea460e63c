"""The surroundings of a tree without a kernel: real parts, built here alone, where a test does not bring its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import LiveMemError
from livememfs.memories.expiry import Expiry
from livememfs.memories.uses import Uses
from livememfs.observing.capture import Capture
from livememfs.observing.observer import Observer
from livememfs.recall.index.engine import Engine
from livememfs.recall.service import Recall
from livememfs.recall.turn.context import ContextPages
from livememfs.recall.turn.prehook import Prehook
from livememfs.recall.turn.told import ToldSessions
from livememfs.records.access import EVERYTHING
from livememfs.runs.queue import RunQueue
from livememfs.tree.context import Context
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.node import Ids
from livememfs.tree.rejected import RejectedReplies


class PlainHooks:
    """Hooks that answer nothing: there is no agent."""

    def __init__(self, *events: str) -> None:
        self.events: Sequence[str] = events

    async def answer(self, space: str, event: str, request: bytes) -> bytes:
        return b"{}"


def context_of(replica: Replica, clock: Clock, consolidations: RunQueue, **parts: Any) -> Context:
    """What the nodes of one mount share. `parts` are those that a test brings, by their names in `Context`.

    Nobody runs what has to run: a test that searches, lets memories end or observes starts its own.
    """
    recall = parts.get("recall") or Recall(replica, clock, _no_index, words_alone)
    observer = Observer(replica, clock, None)
    common: dict[str, Any] = {
        "errors": ErrorLog(clock),
        "rejected": RejectedReplies(clock),
        "agent_of": lambda pid: "me",
        "status": lambda: {"state": "ok"},
        "metrics": _no_figures,
        "access": lambda: EVERYTHING,
        "recall": recall,
        "expiry": Expiry(replica, clock),
        "uses": Uses(replica, clock, "here", lambda _: None),
        "prehook": Prehook(recall, clock, ToldSessions(replica)),
        "pages": ContextPages(replica, clock),
        "capture": Capture(replica.inbox, clock, woken=observer.wake),
        "observer": observer,
        "hooks": PlainHooks(),
        "door": None,
        "host": "localhost",
        "owner": "",
        "ids": Ids(0, 0),
        "max_file_size": 1 << 26,
        "fsync_remote": False,
    }
    return Context(replica=replica, clock=clock, consolidations=consolidations, **common | parts)


def _no_index() -> Engine:
    raise LiveMemError("this tree has no index")


async def words_alone() -> None:
    """There is no model for meanings: words have to do."""


async def _no_figures() -> bytes:
    return b""
