"""The timetable: which operation of a journal may start, and when.

Owns the moments and who has to come first. Refuses to start anything (`journal.start` does). Trio thread only; nothing
here awaits.

An operation is held up by four things: another one of its key in flight (two answers that cross would leave the older
version), the operation it comes `after` (a renamed file keeps one of its names in the bucket at each instant), a
copy on the server that still has to read what it replaces or removes (the bytes are nowhere else), and, where it
removes the marker of a directory, all that is to be done below: a store that has directories of its own goes on listing
one whose marker went first.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from livememfs.cache.journal.operation import Operation
    from livememfs.cache.journal.operations import Operations


class Timetable:
    """The moments of one journal's operations."""

    def __init__(self, ops: Operations) -> None:
        self._ops = ops
        self._moments: list[tuple[float, int]] = []
        self._held_up: list[Operation] = []

    def enter(self, op: Operation) -> None:
        """Let an operation start at its `not_before`."""
        heapq.heappush(self._moments, (op.not_before, op.seq))

    def delay(self, op: Operation, seconds: float) -> None:
        """Let it start so much later than now."""
        op.not_before = trio.current_time() + seconds
        self.enter(op)

    def look_again(self) -> None:
        """Something ended or changed: what was held up may be so no longer."""
        for op in self._held_up:
            self.enter(op)
        self._held_up.clear()

    def next_moment(self) -> float:
        """When `next_ready` should be asked again; infinity: not before something changes."""
        return self._moments[0][0] if self._moments else float("inf")

    def next_ready(self, now: float) -> Operation | None:
        """An operation that may start now."""
        while self._moments and self._moments[0][0] <= now:
            _, seq = heapq.heappop(self._moments)
            op = self._ops.get(seq)
            if op is None or op.in_flight or op.not_before > now:
                continue  # ended, or put off: then it stands in the timetable once more
            if self._is_held_up(op):
                self._held_up.append(op)
                continue
            return op
        return None

    def is_read(self, op: Operation) -> bool:
        """Whether copies are to be made from what this operation replaces or removes: without them it would be lost."""
        return bool(self._readers(op))

    def _readers(self, op: Operation) -> list[Operation]:
        return self._ops.copies.get(op.key, []) if op.kind != "meta" else []

    def _is_held_up(self, op: Operation) -> bool:
        """Whether another operation has to come first.

        Renames may form a circle: two files that change places, by a third name. Where each of some waits for the next,
        and the last for the first, `after` is not kept, as it is only good manners. The bytes are more than that: a
        copy in such a circle fetches those that it is about to take another's place with (`journal.fetched`).
        """
        if op.key in self._ops.flying:
            return True
        if op.kind == "delete" and op.key.endswith("/") and self._ops.below(op.key):
            return True
        if not self.is_read(op) and self._ops.get(op.after) is None:
            return False
        return not self._is_in_a_circle(op) or (self.is_read(op) and op.kind != "copy")

    def _is_in_a_circle(self, op: Operation) -> bool:
        seen: set[int] = set()
        ahead = [op]
        while ahead:
            step = ahead.pop()
            if step.in_flight:
                continue
            first = self._ops.get(step.after)
            for other in (*self._readers(step), *((first,) if first is not None else ())):
                if other is op:
                    return True
                if other.seq not in seen:
                    seen.add(other.seq)
                    ahead.append(other)
        return False
