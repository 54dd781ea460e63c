"""The journal: what was accepted here and the bucket does not have, in order, on the local disk.

Owns the operations: how a later one of the same key swallows an earlier one, which one may start when, and what is left
of one that ended. At most one operation of a key is on its way, and at most one more waits. Refuses to talk to a store
(`uploader` does) and to know names (`replica` does). Trio thread only; nothing here awaits, so each method is one step
for everybody else and one transaction on the disk.
"""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import trio

from livememfs.cache.operation import ANY, BEFORE, COLUMNS, FREE, NEVER, Operation, stay, take_over
from livememfs.cache.removals import next_version, removal
from livememfs.errors import NoSpace, StoreError
from livememfs.records.metadata import META_OP
from livememfs.store.base import content_etag
from livememfs.text.merge import merge

if TYPE_CHECKING:
    from livememfs.cache.blobs import Blobs
    from livememfs.cache.database import Database
    from livememfs.store.base import ObjectInfo, StoredObject

DELAY = 0.25
"""Seconds for which a write waits for the next one of its key: shells close twice, editors write and rename."""
MAX_DELAY = 5.0
"""How long a key that is written to all the time may be put off."""
VERSIONS = 4096
"""Versions whose ETag here is not the bucket's. If one is forgotten, its next change is settled as a stranger's."""
_REPLACE = f"INSERT OR REPLACE INTO op (seq, {', '.join(COLUMNS)}) VALUES (?, {', '.join('?' * len(COLUMNS))})"


@dataclass(frozen=True)
class JournalStatistics:
    """What waits for the bucket: operations, those on their way, bytes, those that are stuck; `oldest_s` in seconds."""

    pending: int
    in_flight: int
    pending_bytes: int
    stuck: int
    oldest_s: float
    accepted: int
    finished: int
    dropped: int


class Journal:
    """All operations of one replica. `now_ns` tells the time for versions that the bucket has not dated yet."""

    def __init__(self, database: Database, blobs: Blobs, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._database = database
        self._blobs = blobs
        self._now_ns = now_ns
        self._ops: dict[int, Operation] = {}
        self._waiting: dict[str, Operation] = {}
        self._flying: dict[str, Operation] = {}
        self._timetable: list[tuple[float, int]] = []
        self._order: list[int] = []
        self._blocked: list[Operation] = []
        self._copies: defaultdict[str, list[Operation]] = defaultdict(list)
        self._called: dict[tuple[str, str], str] = {}
        self._bytes = 0
        self._counts = {"accepted": 0, "finished": 0, "dropped": 0}
        self.last = 0
        self.changed = trio.Event()
        for row in database.rows(f"SELECT seq, {', '.join(COLUMNS)} FROM op ORDER BY seq"):
            self._recover(Operation.from_row(row))

    def _recover(self, op: Operation) -> None:
        """Take an operation from the disk. Two of one key: the first was on its way when the process ended."""
        before = self._waiting.get(op.key)
        op.accepted = trio.current_time()
        self._add(op)
        if before is not None:
            try:
                self._swallow(before, op)
            except NoSpace:
                if not self._database.give_up_reserve():
                    raise
                self._swallow(before, op)

    # --- looking ----------------------------------------------------------------------------------------------

    def newest(self, key: str) -> Operation | None:
        """The last operation accepted for a key: what it shows here."""
        return self._waiting.get(key) or self._flying.get(key)

    def pending(self) -> Iterable[Operation]:
        """What each key that differs from the bucket shows here."""
        return [*self._waiting.values(), *(op for key, op in self._flying.items() if key not in self._waiting)]

    def all(self) -> list[Operation]:
        """Every operation, in the order of acceptance."""
        return [self._ops[seq] for seq in sorted(self._ops)]

    def get(self, seq: int) -> Operation | None:
        """One operation by its number; None when it has ended."""
        return self._ops.get(seq)

    def stuck(self) -> list[Operation]:
        """What the bucket refuses for good."""
        return [op for op in self._ops.values() if op.error is not None]

    def oldest(self) -> int | None:
        """The lowest number of an operation that has not ended; None when all have."""
        while self._order and self._order[0] not in self._ops:
            heapq.heappop(self._order)
        return self._order[0] if self._order else None

    def __len__(self) -> int:
        return len(self._ops)

    @property
    def backlog(self) -> int:
        """Bytes that only this machine has."""
        return self._bytes

    # --- accepting --------------------------------------------------------------------------------------------

    def put(
        self,
        key: str,
        data: bytes,
        etag: str,
        meta: Mapping[str, str],
        *,
        base: ObjectInfo | None,
        moved: bool = False,
    ) -> Operation:
        """Accept new content. `base` is the version it was made from, None when the key was free. NoSpace.

        Where the bucket has something else by then, it is settled when the operation arrives there. `moved`: it is the
        content of another key, made from nothing that was here. Joined as a change of `base` it could vanish: a file
        that is moved onto one with the same bytes would look like no change at all.
        """
        made = Operation(0, uuid4().hex, "put", key, etag=etag, size=len(data), meta=next_version(key, meta, base))
        made.modified = self._now_ns()
        before = self._content(key)
        knows = before is not None and base is not None and base.etag == before.etag
        if before is not None and (knows or before.origin is not None):
            made.holds = before.etag if before.in_flight else before.holds
        if before is None or before.origin is None or before.blob is None or knows:
            with self._database.atomic():
                self._write(made, base, data)
                if moved:
                    made.base_blob = None
                    self._store(made)
            return self._enter(made)
        # The version it was made from has been joined with another host's, which the writer has not seen.
        with self._database.atomic():
            self._blobs.keep(key, etag, data)
            self._write(made, base, data)
            self._enter(made)
            self._rejoin(made, before.origin, self._blobs.by_id(before.blob))
        return made

    def _content(self, key: str) -> Operation | None:
        """The newest operation of a key that says what its content is: a change of attributes does not."""
        newest = self.newest(key)
        return self._flying.get(key, newest) if newest is not None and newest.kind == "meta" else newest

    def copy(self, source: ObjectInfo, key: str, *, base: ObjectInfo | None) -> Operation:
        """Accept a copy on the server of a version whose bytes are not here. StoreError when they should be."""
        made = Operation(0, uuid4().hex, "copy", key, source=self._origin(source.key), etag=source.etag)
        made.modified, made.size, made.meta = (
            source.modified_ns,
            source.size,
            next_version(key, source.meta or {}, base),
        )
        stay(made)
        with self._database.atomic():
            self._write(made, base)
        return self._enter(made)

    def _origin(self, key: str) -> str:
        """Where the bucket has the bytes that a key shows: for a copy that is not made yet, that is its source."""
        for op in (self._waiting.get(key), self._flying.get(key)):
            if op is not None and op.kind == "put":
                raise StoreError(f"the local copy of {key} is damaged")
            if op is not None and op.kind == "copy":
                return op.source
        return key

    def meta(self, info: ObjectInfo, meta: Mapping[str, str]) -> Operation:
        """Accept other metadata for the version that the key shows."""
        waiting = self._waiting.get(info.key)
        if waiting is not None and waiting.kind != "delete":
            with self._database.atomic():
                self._change(waiting, meta=dict(meta))
                if waiting.tries:  # what the bucket may have under the old id does not have these
                    self._change(waiting, op_id=uuid4().hex, sent=waiting.sent_by())
                self._store(waiting)
            return waiting
        made = Operation(0, uuid4().hex, "meta", info.key, etag=info.etag, size=info.size, meta=dict(meta))
        made.modified = self._now_ns()
        with self._database.atomic():
            self._write(made, info)
        return self._enter(made)

    def delete(self, key: str, *, base: ObjectInfo | None, after: Operation | None = None) -> Operation | None:
        """Accept a removal. None when the bucket never heard of the key: then nothing is left to do."""
        waiting = self._waiting.get(key)
        if waiting is not None and self._unheard(waiting) and after is None:
            self._remove(waiting)
            self._counts["dropped"] += 1
            self._wake()
            return None
        ahead = self._content(key)
        if ahead is not None and ahead.origin is not None and base is not None and base.etag != ahead.etag:
            if waiting is not None and waiting is not ahead:
                self._remove(waiting)
            return None  # another host's version was joined in meanwhile, which nobody here has seen: the edit wins
        made = Operation(0, uuid4().hex, "delete", key, base=ANY, after=after.seq if after is not None else None)
        if after is not None and ahead is None and base is not None and base.meta:
            made.meta = {name: value for name, value in base.meta.items() if name == META_OP}
        made.meta = {**made.meta, **removal(key, base)}
        with self._database.atomic():
            self._write(made, base)
        return self._enter(made)

    def has_bytes(self, key: str) -> bool:
        """Whether bytes of a key wait for the bucket, so that a copy on the server would not be of them."""
        return any(op is not None and op.kind == "put" for op in (self._waiting.get(key), self._flying.get(key)))

    def move(self, source: str, target: str, *, base: ObjectInfo | None) -> Operation | None:
        """Give content that the bucket never heard of another key. None when it is not of that kind."""
        op = self._waiting.get(source)
        if op is None or not self._unheard(op) or op.kind not in ("put", "copy"):
            return None
        data = self._blobs.by_id(op.blob) if op.blob is not None else None
        if op.kind == "put" and data is None:
            return None
        moved = replace(op, key=target, base_blob=None)
        stay(moved)
        with self._database.atomic() as db:
            db.execute("DELETE FROM op WHERE seq = ?", (op.seq,))
            self._write(moved, base, data)
            for other in self._ops.values():
                if other.after == op.seq and other.seq != moved.seq:  # not the one that this has just replaced
                    self._change(other, after=moved.seq)
                    self._store(other)
        self._forget(op)
        return self._enter(moved)

    def _unheard(self, op: Operation) -> bool:
        """Whether the bucket cannot have anything under this operation's key that is ours.

        What waits behind one on its way is based on that one, never on a free key.
        """
        return op.base is FREE and not op.tries and op.after is None

    def _write(self, op: Operation, base: ObjectInfo | None, data: bytes | None = None) -> None:
        """Give an operation its place: over the one that waits, behind the one on its way, or first of its key.

        On the disk alone: should the disk be full, nothing has happened.
        """
        waiting = self._waiting.get(op.key)
        if waiting is not None:
            take_over(op, waiting)
        elif op.key in self._flying:
            op.base = BEFORE
        elif base is not None:
            op.base = self._now_called(op.key, base.etag)
            op.base_blob = self._blobs.id_of(op.key, op.base) if op.kind == "put" else None
        if data is not None:
            op.blob = self._blobs.keep(op.key, op.etag, data)
        now = trio.current_time()
        op.accepted = op.accepted or now
        op.not_before = min(now + DELAY, op.accepted + MAX_DELAY)
        op.error = None
        self._store(op)

    def _now_called(self, key: str, etag: str) -> str:
        """The ETag by which the bucket knows a version, as far as that was heard."""
        passed: set[str] = set()
        while (key, etag) in self._called and etag not in passed:
            passed.add(etag)
            etag = self._called[key, etag]
        return etag

    def _enter(self, op: Operation) -> Operation:
        """Take note of an operation that is on the disk."""
        waiting = self._waiting.get(op.key)
        if waiting is not None:
            self._forget(waiting)
        self._add(op)
        self._counts["accepted"] += 1
        self._wake()
        return op

    # --- on their way -----------------------------------------------------------------------------------------

    def next_ready(self, now: float) -> Operation | None:
        """An operation that may start now."""
        while self._timetable and self._timetable[0][0] <= now:
            _, seq = heapq.heappop(self._timetable)
            op = self._ops.get(seq)
            if op is None or op.in_flight or op.not_before > now:
                continue  # ended, or put off: then it stands in the timetable once more
            if self._is_held_up(op):
                self._blocked.append(op)
                continue
            return op
        return None

    def _is_held_up(self, op: Operation) -> bool:
        """Whether another operation has to come first.

        Where each of some waits for the next, and the last for the first, an order that is only good manners is not
        kept, and a copy fetches the bytes that it is about to take another's place with.
        """
        if op.key in self._flying:
            return True
        readers = self._readers(op)
        if not readers and op.after not in self._ops:
            return False
        return not self._is_in_a_circle(op) or (bool(readers) and op.kind != "copy")

    def _readers(self, op: Operation) -> list[Operation]:
        """Copies that are to be made from what this operation replaces or removes: without them it would be lost."""
        return [other for other in self._copies.get(op.key, ()) if other is not op] if op.kind != "meta" else []

    def _is_in_a_circle(self, op: Operation) -> bool:
        seen: set[int] = set()
        ahead = [op]
        while ahead:
            step = ahead.pop()
            if step.in_flight:
                continue
            first = self._ops.get(step.after) if step.after is not None else None
            for other in (*self._readers(step), *((first,) if first is not None else ())):
                if other is op:
                    return True
                if other.seq not in seen:
                    seen.add(other.seq)
                    ahead.append(other)
        return False

    def needs_bytes(self, op: Operation) -> bool:
        """Whether a copy must not be made on the server, because another one still has to read what it replaces."""
        return bool(self._readers(op))

    def fetched(self, op: Operation, data: bytes, etag: str) -> None:
        """The bytes that a copy was to be made of are here: from now on it is a put. NoSpace."""
        with self._database.atomic():
            blob = self._blobs.keep(op.key, etag, data)
            self._change(op, kind="put", source="", blob=blob, etag=etag, size=len(data))
            self._store(op)

    def next_moment(self) -> float:
        """When `next_ready` should be asked again; infinity: not before something changes."""
        return self._timetable[0][0] if self._timetable else float("inf")

    def start(self, op: Operation) -> None:
        """The operation leaves. From now on the bucket may have it, whatever is heard."""
        op.tries += 1
        try:
            with self._database.atomic() as db:
                db.execute("UPDATE op SET tries = tries + 1 WHERE seq = ?", (op.seq,))
        except BaseException:
            op.tries -= 1
            self._schedule(op, 0.0)
            raise
        op.in_flight = True
        self._flying[op.key] = op
        del self._waiting[op.key]

    def again(self, op: Operation, delay: float, error: str | None = None) -> None:
        """It did not get through: once more after `delay` seconds, unless a later one of its key takes its place.

        With `error` it is stuck: the bucket refuses it. NoSpace, and it is still on its way.
        """
        later = self._waiting.get(op.key)
        if later is not None:
            self._swallow(op, later)
            op.in_flight = False
        else:
            op.in_flight = False
            del self._flying[op.key]
            self._waiting[op.key] = op
            self._schedule(op, delay)
            if op.error != error:
                op.error = error
                with suppress(NoSpace):  # the reason is known here; the disk may not take it
                    self._store(op)
        self._wake()

    def land(self) -> None:
        """Nobody sends any more: what was on its way waits again. NoSpace, as for `again`."""
        for op in list(self._flying.values()):
            self.again(op, 0.0)

    def _swallow(self, op: Operation, later: Operation) -> None:
        """A later operation of the key takes the place of one that did not get through."""
        with self._database.atomic():
            if later.base == BEFORE:
                base = op.etag if later.kind == "delete" and op.base is FREE else op.base
                self._change(later, base=base, base_blob=op.base_blob)
            if later.kind == "meta" and op.kind != "meta":
                self._change(later, kind=op.kind, blob=op.blob, source=op.source)
            sent = f"{op.sent_by()} {later.sent}".strip()
            after = op.after if later.after is None else later.after
            self._change(later, sent=sent, tries=op.tries + later.tries, after=after)
            self._remove(op)
            self._store(later)

    def finish(self, op: Operation, etag: str, *, as_sent: bool = True) -> None:
        """The bucket has it under `etag` ("": the key is gone). The operation behind it now follows that version.

        Not `as_sent`: what the bucket has is another content than the one sent, and who follows must be merged again.
        """
        later = self._waiting.get(op.key)
        with self._database.atomic() as db:
            if later is not None and later is not op and later.base == BEFORE:
                self._follow(later, op, etag if as_sent else op.etag, etag)
            self._remove(op)
            # The names say at their leisure what the bucket has now; until then they must not vouch for what it had.
            db.execute("UPDATE object SET meta = NULL WHERE key = ?", (op.key,))
        op.in_flight = False
        if as_sent and etag and op.kind != "copy":  # what a copy has is what its source had by then
            self.called(op.key, op.base or "" if op.kind == "meta" else op.etag, etag)
        self._counts["finished"] += 1
        self._wake()

    def called(self, key: str, etag: str, now: str) -> None:
        """The bucket has the version `etag` under the ETag `now`: not every store's is the MD5 of the content.

        Whoever has the file open goes on from the one that is known here, and would be taken for a stranger.
        """
        self._called.pop((key, etag), None)
        if etag != now:
            self._called[key, etag] = now
            if len(self._called) > VERSIONS:
                del self._called[next(iter(self._called))]

    def _follow(self, later: Operation, op: Operation, base: str, etag: str) -> None:
        """Base what waited behind `op` on the version that it knew, which is `base` ("": there was none)."""
        if later.kind == "delete" and not base:
            self._remove(later)  # what it was to remove never was in the bucket; what is there now is another's
            return
        self._change(later, base=base or FREE, base_blob=op.blob if later.kind == "put" else None)
        self._change(later, etag=etag if later.kind == "meta" else later.etag)
        self._store(later)

    def rebase(self, op: Operation, base: str | None) -> None:
        """Before another attempt: it now replaces `base`. NoSpace."""
        with self._database.atomic():
            self._change(op, base=base)
            self._store(op)

    def join(self, op: Operation, theirs: StoredObject, data: bytes, etag: str) -> None:
        """Before another attempt: it now replaces `theirs`, with `data`, which holds both sides. NoSpace.

        What waits behind it was made from what it was before, and is joined with the same; a removal is withdrawn.
        """
        later = self._waiting.get(op.key)
        with self._database.atomic():
            sent = self._blobs.by_id(op.blob) if op.blob is not None else None
            origin = op.origin if op.origin is not None else sent
            whole = later is not None and later.holds == op.etag
            knew = sent if whole else origin
            kept = self._blobs.keep(op.key, theirs.info.etag, theirs.data)
            self._change(op, base=theirs.info.etag, base_blob=kept, origin=origin)
            self._change(op, blob=self._blobs.keep(op.key, etag, data), etag=etag, size=len(data))
            self._store(op)
            if later is not None and later.kind == "put" and knew is not None:
                self._rejoin(later, knew, data, whole=whole)
                self._change(later, holds="" if later.base == NEVER else etag)
            elif later is not None and later.kind == "delete" and later.base == BEFORE:
                # Whoever removed it had not seen what another host wrote into it: the edit wins.
                self._remove(later)
                self._counts["dropped"] += 1

    def _rejoin(self, op: Operation, base: bytes, joined: bytes | None, *, whole: bool = False) -> None:
        """Join what was made from `base` with what has become of that; if it cannot be, the bucket is to settle it.

        `whole`: the content was made from it, which itself may be joined already; else what was accepted was.
        """
        content = self._blobs.by_id(op.blob) if op.blob is not None else None
        accepted = op.origin if op.origin is not None else content
        own = content if whole else accepted
        data = merge(base, own, joined) if own is not None and joined is not None else None
        if data is None:
            self._change(op, base=NEVER, base_blob=None, holds="")
        else:
            etag = content_etag(data)
            self._change(op, blob=self._blobs.keep(op.key, etag, data), etag=etag, size=len(data), origin=accepted)
        self._store(op)

    def hurry(self, *seqs: int) -> None:
        """Start these, or all, without waiting for time to pass; what is stuck is tried again as well."""
        for op in list(self._ops.values()) if not seqs else [self._ops[seq] for seq in seqs if seq in self._ops]:
            if not op.in_flight:
                self._schedule(op, 0.0)
        self._wake()

    # --- inside -----------------------------------------------------------------------------------------------

    def _add(self, op: Operation) -> None:
        self._ops[op.seq] = op
        (self._flying if op.in_flight else self._waiting)[op.key] = op
        self._database.on_rollback(lambda: self._forget(op))
        self.last = max(self.last, op.seq)
        self._list(op)
        heapq.heappush(self._order, op.seq)
        heapq.heappush(self._timetable, (op.not_before, op.seq))

    def _remove(self, op: Operation) -> None:
        with self._database.atomic() as db:
            db.execute("DELETE FROM op WHERE seq = ?", (op.seq,))
        self._forget(op)

    def _forget(self, op: Operation) -> None:
        del self._ops[op.seq]
        self._unlist(op)
        for where in (self._waiting, self._flying):
            if where.get(op.key) is op:
                del where[op.key]
        self._database.on_rollback(lambda: self._add(op))

    def _change(self, op: Operation, **values: Any) -> None:
        """Change some of what an operation says, together with the open transaction."""
        before = {name: getattr(op, name) for name in values}
        self._unlist(op)
        for name, value in values.items():
            setattr(op, name, value)
        self._list(op)
        self._database.on_rollback(lambda: self._change(op, **before))

    def _list(self, op: Operation) -> None:
        """Count an operation by its kind."""
        if op.kind == "put":
            self._bytes += op.size
        elif op.kind == "copy":
            self._copies[op.source].append(op)

    def _unlist(self, op: Operation) -> None:
        if op.kind == "put":
            self._bytes -= op.size
        elif op.kind == "copy":
            self._copies[op.source].remove(op)
            if not self._copies[op.source]:
                del self._copies[op.source]

    def _schedule(self, op: Operation, delay: float) -> None:
        op.not_before = trio.current_time() + delay
        heapq.heappush(self._timetable, (op.not_before, op.seq))

    def _store(self, op: Operation) -> None:
        with self._database.atomic() as db:
            if not op.seq:
                self.last += 1  # never one that was given before: who waits for that one waits for no other
                op.seq = self.last
            db.execute(_REPLACE, (op.seq, *op.values()))

    def notice(self) -> None:
        """Let everybody who waits for `changed` look again."""
        self._wake()

    def _wake(self) -> None:
        """Something changed: what was held up may start, and whoever waits for the end may look again."""
        for op in self._blocked:
            heapq.heappush(self._timetable, (op.not_before, op.seq))
        self._blocked.clear()
        self.changed.set()
        self.changed = trio.Event()

    def statistics(self) -> JournalStatistics:
        """Counters, cheap."""
        oldest = self.oldest()
        age = trio.current_time() - self._ops[oldest].accepted if oldest is not None else 0.0
        return JournalStatistics(
            pending=len(self._ops),
            in_flight=len(self._flying),
            pending_bytes=self._bytes,
            stuck=len(self.stuck()),
            oldest_s=round(age, 3),
            **self._counts,
        )
