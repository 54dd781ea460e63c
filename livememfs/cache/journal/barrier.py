"""A barrier: what was accepted up to a moment, and when the bucket has it.

Owns the wait, which may be given up and taken up again. Refuses to wait for what the bucket refuses: the reason ends
it. Trio thread only.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from livememfs.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from livememfs.cache.journal.operation import Operation
    from livememfs.cache.journal.steps import Journal


class Barrier:
    """Some operations of a journal, started without delay."""

    def __init__(self, journal: Journal, operations: Iterable[Operation]) -> None:
        self._journal = journal
        self._waiting = deque((op.seq, op.tries) for op in operations)
        if self._waiting:
            journal.hurry(*(seq for seq, _ in self._waiting))

    async def wait(self) -> str:
        """Wait for the end of them all: empty when the bucket has them, else why one was refused since."""
        while self._waiting:
            seq, tries = self._waiting[0]
            changed = self._journal.changed
            op = self._journal.ops.get(seq)
            if op is None:
                self._waiting.popleft()
            elif op.error is not None and not op.in_flight and op.tries > tries:
                return f"the bucket does not take {op.key}: {op.error}"
            else:
                await changed.wait()
        return ""

    async def expect(self) -> None:
        """Wait. StoreError when the bucket refuses some of it."""
        if reason := await self.wait():
            raise StoreError(reason)
