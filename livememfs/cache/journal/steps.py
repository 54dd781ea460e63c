"""The journal: what was accepted here and the bucket does not have, in order, on the local disk.

Owns the steps of an operation: accepted, started, uploaded, replaced, joined, or sent again. At most one operation of a
key is in flight, and at most one more waits. The rules for two of one key are in `settling`, who may start in
`timetable`, rows and memory in `operations`. Refuses to talk to a store (`uploader` does) and to know names (`names`
does). Trio thread only; nothing here awaits, so each method is one step for everybody else and one transaction on the
disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from livememfs.cache.journal.operation import ANY, BEFORE, NEVER, Operation
from livememfs.cache.journal.operations import Operations
from livememfs.cache.journal.settling import (
    JOINED_BYTES,
    follow,
    has_seen,
    held,
    move_back,
    rejoin,
    swallow,
    take_over,
    unheard,
)
from livememfs.cache.journal.timetable import Timetable
from livememfs.cache.removals import next_version, removal
from livememfs.errors import NoSpace, StoreError
from livememfs.records.metadata import META_OP
from livememfs.store.content import Content, content_etag, whole

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
        self.ops = Operations(database)
        self.timetable = Timetable(self.ops)
        self._called: dict[tuple[str, str], str] = {}
        self._counts = {"accepted": 0, "finished": 0, "dropped": 0}
        self.changed = trio.Event()
        self.last_accepted = float("-inf")
        """When somebody wrote last, of trio's clock; earlier, when somebody waits for the bucket."""
        for op in self.ops.rows():
            self._recover(op)

    def _recover(self, op: Operation) -> None:
        """Take an operation from the disk. Two of one key: the first was on its way when the process ended."""
        before = self.ops.waiting.get(op.key)
        op.accepted = trio.current_time()
        self._add(op)
        if before is not None:
            try:
                self._swallow(before, op)
            except NoSpace:
                if not self._database.give_up_reserve():
                    raise
                self._swallow(before, op)

    def _add(self, op: Operation) -> None:
        self.ops.add(op)
        self.timetable.enter(op)

    # --- accepting --------------------------------------------------------------------------------------------

    def put(
        self,
        key: str,
        data: Content,
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
        before = self.ops.content(key)
        seen = has_seen(before, base)
        made.holds = held(before, seen=seen)
        if moved or before is None or before.origin is None or before.blob is None or seen:
            made.moved = moved
            with self._database.atomic():
                self._write(made, base, data)
                if moved:
                    made.base_blob = None
                    self._store_moved(made, base)
            return self._enter(made)
        # The version it was made from has been joined with another host's, which the writer has not seen.
        with self._database.atomic():
            self._blobs.keep(key, etag, data)
            self._write(made, base, data)
            self._enter(made)
            self._rejoin(made, before.origin, self._bytes(before.blob))
        return made

    def copy(self, source: ObjectInfo, key: str, *, base: ObjectInfo | None) -> Operation:
        """Accept a copy on the server of a version whose bytes are not here. StoreError when they should be."""
        made = Operation(0, uuid4().hex, "copy", key, source=self._origin(source.key), etag=source.etag)
        made.modified, made.size = source.modified_ns, source.size
        made.meta = next_version(key, source.meta or {}, base)
        move_back(made)
        made.moved = made.kind == "copy"
        with self._database.atomic():
            self._write(made, base)
            self._store_moved(made, base)
        return self._enter(made)

    def _origin(self, key: str) -> str:
        """Where the bucket has the bytes that a key shows: for a copy that is not made yet, that is its source."""
        for op in self.ops.of(key):
            if op.kind == "put":
                raise StoreError(f"the local copy of {key} is damaged")
            if op.kind == "copy":
                return op.source
        return key

    def meta(self, info: ObjectInfo, meta: Mapping[str, str]) -> Operation:
        """Accept other metadata for the version that the key shows."""
        waiting = self.ops.waiting.get(info.key)
        if waiting is not None and waiting.kind != "delete":
            with self._database.atomic():
                if waiting.tries:  # what the bucket may have under the old id does not have these
                    self.ops.change(waiting, op_id=uuid4().hex, sent=waiting.sent_by())
                self.ops.store(waiting, meta=dict(meta))
            return waiting
        made = Operation(0, uuid4().hex, "meta", info.key, etag=info.etag, size=info.size, meta=dict(meta))
        made.modified = self._now_ns()
        with self._database.atomic():
            self._write(made, info)
        return self._enter(made)

    def delete(self, key: str, *, base: ObjectInfo | None, after: Operation | None = None) -> Operation | None:
        """Accept a removal. None when the bucket never heard of the key: then nothing is left to do."""
        waiting = self.ops.waiting.get(key)
        if waiting is not None and unheard(waiting):
            self.ops.remove(waiting)
            self._counts["dropped"] += 1
            self.notice()
            return None
        ahead = self.ops.content(key)
        if ahead is not None and ahead.origin is not None and base is not None and base.etag != ahead.etag:
            if waiting is not None and waiting is not ahead:
                self.ops.remove(waiting)
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
        return any(op.kind == "put" for op in self.ops.of(key))

    def move(self, source: str, target: str, *, base: ObjectInfo | None) -> Operation | None:
        """Give content that the bucket never heard of another key. None when it is not of that kind."""
        op = self.ops.waiting.get(source)
        if op is None or not unheard(op) or op.kind not in ("put", "copy"):
            return None
        data = self._blobs.by_id(op.blob) if op.blob is not None else None
        if op.kind == "put" and data is None:
            return None
        moved = replace(op, key=target, base_blob=None, after=None)  # the bucket has nothing that had to wait
        move_back(moved)
        with self._database.atomic() as db:
            db.execute("DELETE FROM op WHERE seq = ?", (op.seq,))
            self._write(moved, base, data)
            self._store_moved(moved, base)
            for other in self.ops.all():
                if other.after == op.seq and other.seq != moved.seq:  # not the one that this has just replaced
                    self.ops.store(other, after=moved.seq)
        self.ops.forget(op)
        return self._enter(moved)

    def _write(self, op: Operation, base: ObjectInfo | None, data: Content | None = None) -> None:
        """Give an operation its place: over the one that waits, behind the one on its way, or first of its key.

        On the disk alone: should the disk be full, nothing has happened.
        """
        waiting = self.ops.waiting.get(op.key)
        if waiting is not None:
            take_over(op, waiting)
        elif op.key in self.ops.flying:
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
        self.ops.store(op)

    def _store_moved(self, op: Operation, base: ObjectInfo | None) -> None:
        """Write the operation of another key's content once more, before `_enter`, with what that changes.

        It was made from nothing that was here, so it cannot be joined: where its key has another host's part that its
        writer has not seen, it would overwrite that.
        """
        before = self.ops.content(op.key)
        if op.kind != "meta" and before is not None and before.origin is not None and not has_seen(before, base):
            op.base, op.base_blob, op.holds = NEVER, None, ""
        self.ops.store(op)

    def _now_called(self, key: str, etag: str) -> str:
        """The ETag by which the bucket knows a version, as far as that was heard."""
        passed: set[str] = set()
        while (key, etag) in self._called and etag not in passed:
            passed.add(etag)
            etag = self._called[key, etag]
        return etag

    def _enter(self, op: Operation) -> Operation:
        """Take note of an operation that is on the disk."""
        waiting = self.ops.waiting.get(op.key)
        if waiting is not None:
            self.ops.forget(waiting)
        self._add(op)
        self._counts["accepted"] += 1
        self.last_accepted = trio.current_time()
        self.notice()
        return op

    # --- on their way -----------------------------------------------------------------------------------------

    def fetched(self, op: Operation, data: Content, etag: str) -> None:
        """The bytes that a copy was to be made of are here: from now on it is a put. NoSpace."""
        with self._database.atomic():
            blob = self._blobs.keep(op.key, etag, data)
            self.ops.store(op, kind="put", source="", blob=blob, etag=etag, size=len(data))

    def start(self, op: Operation) -> None:
        """The operation leaves. From now on the bucket may have it, whatever is heard."""
        op.tries += 1
        try:
            with self._database.atomic() as db:
                db.execute("UPDATE op SET tries = tries + 1 WHERE seq = ?", (op.seq,))
        except BaseException:
            op.tries -= 1
            self.timetable.delay(op, 0.0)
            raise
        op.in_flight = True
        self.ops.flying[op.key] = op
        del self.ops.waiting[op.key]

    def again(self, op: Operation, delay: float, error: str | None = None) -> None:
        """It did not get through: once more after `delay` seconds, unless a later one of its key takes its place.

        With `error` it is stuck: the bucket refuses it. NoSpace, and it is still on its way.
        """
        later = self.ops.waiting.get(op.key)
        if later is not None:
            self._swallow(op, later)
            op.in_flight = False
        else:
            op.in_flight = False
            del self.ops.flying[op.key]
            self.ops.waiting[op.key] = op
            self.timetable.delay(op, delay)
            if op.error != error:
                op.error = error
                with suppress(NoSpace):  # the reason is known here; the disk may not take it
                    self.ops.store(op)
        self.notice()

    def land(self) -> None:
        """Nobody sends any more: what was on its way waits again. NoSpace, as for `again`."""
        for op in list(self.ops.flying.values()):
            self.again(op, 0.0)

    def _swallow(self, op: Operation, later: Operation) -> None:
        """A later operation of the key takes the place of one that did not get through."""
        with self._database.atomic():
            self.ops.store(later, **swallow(op, later))
            self.ops.remove(op)

    def uploaded(self, op: Operation, etag: str) -> None:
        """The bucket has it as it was sent, under `etag` ("": the key is gone). NoSpace, and it is still in flight."""
        self._end(op, etag)
        if etag and op.kind != "copy":  # what a copy has is what its source had by then
            self.called(op.key, op.base or "" if op.kind == "meta" else op.etag, etag)

    def replaced(self, op: Operation) -> None:
        """The bucket keeps another version than the one that was sent. NoSpace, and it is still in flight."""
        self._end(op, op.etag)

    def _end(self, op: Operation, base: str) -> None:
        """Write it off; what waited behind it now follows the version `base`."""
        later = self.ops.waiting.get(op.key)
        with self._database.atomic() as db:
            if later is not None and later is not op and later.base == BEFORE:
                values = follow(later, op, base)
                if values is None:
                    self.ops.remove(later)
                else:
                    self.ops.store(later, **values)
            self.ops.remove(op)
            # The names say at their leisure what the bucket has now; until then they must not vouch for what it had.
            db.execute("UPDATE object SET meta = NULL WHERE key = ?", (op.key,))
        op.in_flight = False
        self._counts["finished"] += 1
        self.notice()

    def called(self, key: str, etag: str, now: str) -> None:
        """The bucket has the version `etag` under the ETag `now`: not every store's is the MD5 of the content.

        Whoever has the file open goes on from the one that is known here, and would be taken for a stranger.
        """
        self._called.pop((key, etag), None)
        if etag != now:
            self._called[key, etag] = now
            if len(self._called) > VERSIONS:
                del self._called[next(iter(self._called))]

    def rebase(self, op: Operation, base: str | None) -> None:
        """Before another attempt: it now replaces `base`. NoSpace."""
        with self._database.atomic():
            self.ops.store(op, base=base)

    def join(self, op: Operation, theirs: StoredObject, data: bytes, etag: str) -> None:
        """Before another attempt: it now replaces `theirs`, with `data`, which holds both sides. NoSpace.

        What waits behind it was made from what it was before: a write is joined with the same, a file that was moved
        here is settled when it arrives, and a removal is withdrawn.
        """
        later = self.ops.waiting.get(op.key)
        with self._database.atomic():
            sent = self._bytes(op.blob)
            origin = op.origin if op.origin is not None else sent
            whole = later is not None and later.holds == op.etag
            knew = sent if whole else origin
            kept = self._blobs.keep(op.key, theirs.info.etag, theirs.data)
            blob = self._blobs.keep(op.key, etag, data)
            self.ops.change(op, base=theirs.info.etag, base_blob=kept, origin=origin)
            self.ops.store(op, blob=blob, etag=etag, size=len(data))
            if later is not None and later.kind in ("put", "copy"):
                self._rejoin(later, knew, data, whole=whole)
                self.ops.change(later, holds="" if later.base == NEVER else etag)
            elif later is not None and later.kind == "delete" and later.base == BEFORE:
                # Whoever removed it had not seen what another host wrote into it: the edit wins.
                self.ops.remove(later)
                self._counts["dropped"] += 1

    def _rejoin(self, op: Operation, base: bytes | None, joined: bytes | None, *, whole: bool = False) -> None:
        """See settling.rejoin. What cannot be joined is based on no version there is: the bucket is to settle it."""
        content = self._bytes(op.blob)
        both = rejoin(op, content, base, joined, whole=whole)
        if both is None:
            self.ops.store(op, base=NEVER, base_blob=None, holds="")
            return
        etag = content_etag(both.data)
        blob = self._blobs.keep(op.key, etag, both.data)
        self.ops.store(op, blob=blob, etag=etag, size=len(both.data), origin=both.accepted)

    def _bytes(self, blob: int | None) -> bytes | None:
        """What can be joined of a content: all of it, unless it is too large."""
        content = self._blobs.by_id(blob) if blob is not None else None
        if content is None or len(content) > JOINED_BYTES:
            return None
        try:
            return whole(content)
        except OSError:
            return None  # damaged, which its upload will say

    def hurry(self, *seqs: int) -> None:
        """Start these, or all, without waiting for time to pass; what is stuck is tried again as well."""
        self.last_accepted = float("-inf")
        for op in [self.ops.get(seq) for seq in seqs] if seqs else self.ops.all():
            if op is not None and not op.in_flight:
                self.timetable.delay(op, 0.0)
        self.notice()

    def notice(self) -> None:
        """Something changed: what was held up may start, and whoever waits for `changed` may look again."""
        self.timetable.look_again()
        self.changed.set()
        self.changed = trio.Event()

    def statistics(self) -> JournalStatistics:
        """Counters, cheap."""
        oldest = self.ops.oldest()
        age = trio.current_time() - oldest.accepted if oldest is not None else 0.0
        return JournalStatistics(
            pending=len(self.ops),
            in_flight=len(self.ops.flying),
            pending_bytes=self.ops.backlog,
            stuck=len(self.ops.stuck()),
            oldest_s=round(age, 3),
            **self._counts,
        )
