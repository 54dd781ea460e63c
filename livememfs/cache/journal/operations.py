"""The operations of a journal: the rows of `op` on the disk, and the same in memory.

Owns that both say the same: what is changed here is changed back when the transaction around it is rolled back, so a
full disk leaves nothing half done. Refuses to know what a change means (`journal` does). Trio thread only; nothing here
awaits.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from livememfs.cache.journal.operation import COLUMNS, Operation
from livememfs.cache.levels import above

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from livememfs.cache.database import Database

_REPLACE = f"INSERT OR REPLACE INTO op (seq, {', '.join(COLUMNS)}) VALUES (?, {', '.join('?' * len(COLUMNS))})"


class Operations:
    """All operations. `waiting` and `flying` have at most one of each key, `copies` are by what they are made from.

    `backlog` are the bytes that only this machine has.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.waiting: dict[str, Operation] = {}
        self.flying: dict[str, Operation] = {}
        self.copies: defaultdict[str, list[Operation]] = defaultdict(list)
        self._below: Counter[str] = Counter()
        self.backlog = 0
        self._by_seq: dict[int, Operation] = {}
        self._order: list[int] = []
        self._last = 0

    # --- looking ----------------------------------------------------------------------------------------------

    def newest(self, key: str) -> Operation | None:
        """The last operation accepted for a key: what it shows here."""
        return self.waiting.get(key) or self.flying.get(key)

    def content(self, key: str) -> Operation | None:
        """The newest operation of a key that says what its content is: a change of attributes does not."""
        newest = self.newest(key)
        return self.flying.get(key, newest) if newest is not None and newest.kind == "meta" else newest

    def of(self, key: str) -> list[Operation]:
        """What there is of a key: what waits, and what is in flight."""
        return [op for op in (self.waiting.get(key), self.flying.get(key)) if op is not None]

    def pending(self) -> Iterable[Operation]:
        """What each key that differs from the bucket shows here."""
        return [*self.waiting.values(), *(op for key, op in self.flying.items() if key not in self.waiting)]

    def all(self) -> list[Operation]:
        """Every operation, in the order of acceptance."""
        return [self._by_seq[seq] for seq in sorted(self._by_seq)]

    def get(self, seq: int | None) -> Operation | None:
        """One operation by its number; None when it has ended."""
        return self._by_seq.get(seq) if seq is not None else None

    def stuck(self) -> list[Operation]:
        """What the bucket refuses for good."""
        return [op for op in self._by_seq.values() if op.error is not None]

    def below(self, prefix: str) -> int:
        """How many operations there are of keys below a directory; its marker is not one of these."""
        return self._below[prefix]

    def oldest(self) -> Operation | None:
        """The operation with the lowest number; None when all have ended."""
        while self._order and self._order[0] not in self._by_seq:
            heapq.heappop(self._order)
        return self._by_seq[self._order[0]] if self._order else None

    def __len__(self) -> int:
        return len(self._by_seq)

    # --- changing, together with the open transaction ---------------------------------------------------------

    def rows(self) -> Iterator[Operation]:
        """What the last process left, in the order of acceptance."""
        for row in self._database.rows(f"SELECT seq, {', '.join(COLUMNS)} FROM op ORDER BY seq"):
            yield Operation.from_row(row)

    def add(self, op: Operation) -> None:
        """Take an operation that is on the disk into memory."""
        self._by_seq[op.seq] = op
        self._below.update(above(op.key))
        (self.flying if op.in_flight else self.waiting)[op.key] = op
        self._database.on_rollback(lambda: self.forget(op))
        self._last = max(self._last, op.seq)
        self._count(op)
        heapq.heappush(self._order, op.seq)

    def remove(self, op: Operation) -> None:
        """Take it from the disk and from memory."""
        with self._database.atomic() as db:
            db.execute("DELETE FROM op WHERE seq = ?", (op.seq,))
        self.forget(op)

    def forget(self, op: Operation) -> None:
        """Take it from memory alone: another one has its row."""
        del self._by_seq[op.seq]
        for prefix in above(op.key):
            self._below[prefix] -= 1
            if not self._below[prefix]:
                del self._below[prefix]
        self._discount(op)
        for where in (self.waiting, self.flying):
            if where.get(op.key) is op:
                del where[op.key]
        self._database.on_rollback(lambda: self.add(op))

    def change(self, op: Operation, **values: Any) -> None:
        """Change some of what an operation says; `store` brings it to the disk."""
        before = {name: getattr(op, name) for name in values}
        self._discount(op)
        for name, value in values.items():
            setattr(op, name, value)
        self._count(op)
        self._database.on_rollback(lambda: self.change(op, **before))

    def store(self, op: Operation, **values: Any) -> None:
        """Bring an operation to the disk, with these changes. A new one gets its number."""
        if values:
            self.change(op, **values)
        with self._database.atomic() as db:
            if not op.seq:
                self._last += 1  # never one that was given before: who waits for that one waits for no other
                op.seq = self._last
            db.execute(_REPLACE, (op.seq, *op.values()))

    def _count(self, op: Operation) -> None:
        if op.kind == "put":
            self.backlog += op.size
        elif op.kind == "copy":
            self.copies[op.source].append(op)

    def _discount(self, op: Operation) -> None:
        if op.kind == "put":
            self.backlog -= op.size
        elif op.kind == "copy":
            self.copies[op.source].remove(op)
            if not self.copies[op.source]:
                del self.copies[op.source]
