"""The uploader: brings what the journal accepted into the bucket.

Owns who is sent when, how often a failure is tried again, and the breaker that spares a store which does not answer.
Every write is conditional and carries the operation's id, so that an answer that was lost, or a crash, never makes it
happen twice; a note that may have been stored and is gone is not stored again (see `removals`).
Refuses to give anything up: a failure that will not pass makes an operation `stuck`, with its reason, and
it is still tried now and then. Trio thread only.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.cache.conflicts import Adopted, Continued, KeptBoth, MergedVersion, TryAgain, settle_copy, settle_put
from livememfs.cache.journal.operation import ANY, FREE, NEVER, Operation
from livememfs.cache.removals import Removals, ids_of, makers_of, with_makers
from livememfs.cache.unread import Unread
from livememfs.errors import (
    ConditionsUnsupported,
    ConflictRetry,
    LiveMemError,
    NoSpace,
    ObjectMissing,
    PreconditionFailed,
    StoreError,
    Throttled,
    Unreachable,
)
from livememfs.records import keys
from livememfs.records.metadata import META_MADE, META_OP, META_SHA256
from livememfs.store.base import Condition, IfAbsent, IfMatch, ObjectInfo, check_condition
from livememfs.store.content import LARGE, Content, digests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from livememfs.cache.blobs import Blobs
    from livememfs.cache.journal.outcomes import Outcomes
    from livememfs.cache.journal.steps import Journal
    from livememfs.store.base import Store

log = structlog.get_logger("livememfs.cache")

WORKERS = 12
FEW = 2
"""Uploads side by side while files are being written: each thread that sends takes turns with the one that answers the
kernel. Of 2,400 creates by 8 writers, 12 made the slowest twentieth wait 106 ms, 2 made it wait 38."""
QUIET_SECONDS = 0.2
"""Nothing was accepted for so long: nobody is writing."""
OVERDUE_SECONDS = 20.0
"""What has waited for so long is sent at full speed, whoever is writing."""
SENDING_SECONDS = 60.0
"""How long one attempt may take, and `SLOWEST` bytes a second more for what is large."""
SLOWEST = 1 << 17
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
FULL_PAUSE = 1.0
STUCK_PAUSE = 60.0
HASHED_AT_ONCE = 1 << 20
"""What is larger is hashed in a thread."""
_NOTHING = ObjectInfo("", "", 0, 0)
PASSING = (Throttled, Unreachable, ConflictRetry)


@dataclass(frozen=True)
class UploaderStatistics:
    """Attempts, failures that pass, conflicts that were settled; `paused` while the store does not answer."""

    attempts: int
    failures: int
    conflicts: int
    paused: bool
    last_error: str


class Uploader:
    """Sends the operations of one journal. `host` names this machine in conflict copies."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        blobs: Blobs,
        outcomes: Outcomes,
        *,
        host: str = "localhost",
        unread: Unread | None = None,
    ) -> None:
        self._store = store
        self._journal = journal
        self._blobs = blobs
        self._outcomes = outcomes
        self._host = host
        self._removals = Removals(store, unread or Unread())
        self._conditions = True
        self._attempts = self._failures = self._conflicts = self._in_a_row = 0
        self._closed_until = float("-inf")
        self._last_error = ""
        self._limiter = trio.CapacityLimiter(WORKERS)

    async def run(self) -> None:
        """Send for ever. While the store does not answer, one operation at a time finds out whether it does again."""
        self._journal.land()
        async with trio.open_nursery() as nursery:
            while True:
                changed = self._journal.changed
                now = trio.current_time()
                if now < self._closed_until:
                    await _either(changed, self._closed_until)
                    continue
                if self._limiter.borrowed_tokens >= (1 if self._in_a_row else _at_once(self._journal, now)):
                    await _either(changed, now + QUIET_SECONDS)
                    continue
                op = self._journal.timetable.next_ready(now)
                if op is None:
                    await _either(changed, self._journal.timetable.next_moment())
                    continue
                self._launch(nursery, op)

    def _launch(self, nursery: trio.Nursery, op: Operation) -> None:
        try:
            self._journal.start(op)
        except NoSpace:  # nothing is sent that could not be written off
            if not self._blobs.make_room():
                self._closed_until = trio.current_time() + FIRST_PAUSE
            return
        token = object()
        self._limiter.acquire_on_behalf_of_nowait(token)
        nursery.start_soon(self._work, op, token)

    async def _work(self, op: Operation, token: object) -> None:
        try:
            await self._upload(op)
        finally:
            self._limiter.release_on_behalf_of(token)
            self._journal.notice()

    async def _upload(self, op: Operation) -> None:
        """Attempts until the journal has taken note of the end of one. Raises nothing but what cancels it."""
        while True:
            try:
                return await self._attempt(op)
            except NoSpace:
                if not self._blobs.make_room():
                    await trio.sleep(FULL_PAUSE)

    async def _attempt(self, op: Operation) -> None:
        """One attempt, and what its end means. NoSpace when there is not even room to write that down."""
        self._attempts += 1
        try:
            with trio.fail_after(SENDING_SECONDS + op.size / SLOWEST):
                await self._send(op)
        except (*PASSING, trio.TooSlowError) as error:
            self._failed(op, str(error) or "the store does not answer")
        except LiveMemError as error:
            self._stuck(op, str(error))
        except Exception as error:
            log.exception("an upload failed for no reason we know", key=op.key)
            self._stuck(op, f"internal error: {type(error).__name__}")
        else:
            self._in_a_row = 0
            self._closed_until = float("-inf")
            self._last_error = ""

    def _failed(self, op: Operation, reason: str) -> None:
        """No answer: nobody is asked for a while, longer each time, and then one is."""
        self._failures += 1
        self._in_a_row += 1
        self._last_error = reason
        self._outcomes.failing(reason)
        pause = random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._in_a_row, 16)))
        self._closed_until = max(self._closed_until, trio.current_time() + pause)
        self._journal.again(op, 0.0)

    def _stuck(self, op: Operation, reason: str) -> None:
        self._last_error = reason
        self._outcomes.failing(reason)
        if op.error != reason:
            log.error("the bucket does not take it", key=op.key, kind=op.kind, reason=reason)
        self._journal.again(op, STUCK_PAUSE, reason)

    def reachable(self) -> None:
        """The store answered somebody: what waits for it need not wait any longer."""
        if self._in_a_row:
            self._in_a_row = 0
            self._closed_until = float("-inf")
            self._journal.hurry()

    # --- one operation ------------------------------------------------------------------------------------------

    async def _send(self, op: Operation) -> None:
        send = {"put": self._put, "delete": self._delete, "meta": self._meta, "copy": self._copy}[op.kind]
        while await send(op):
            self._conflicts += 1

    async def _put(self, op: Operation) -> bool:
        """Whether it has to be sent again."""
        data = self._blobs.by_id(op.blob) if op.blob is not None else None
        md5, sha = ("", "") if data is None else await _digests(data)
        if data is None or md5 != op.etag:
            raise StoreError(f"the local copy of {op.key} is damaged")
        if await self._was_taken(op, sha):
            return self._let_go(op)
        meta = {**await self._lineage(op), META_OP: op.op_id, META_SHA256: sha}
        try:
            info = await self._conditional_put(op, data, meta)
        except (PreconditionFailed, ObjectMissing):
            return await self._settle(op, data, sha)
        return self._uploaded(op, info)

    async def _conditional_put(self, op: Operation, data: Content, meta: dict[str, str]) -> ObjectInfo:
        condition = _condition(op)
        if self._conditions:
            try:
                return await self._store.put(op.key, data, meta=meta, condition=condition)
            except ConditionsUnsupported:
                self._conditions = False  # from now on we look first, which leaves a gap of one round trip
        if condition is not None:
            check_condition(condition, key=op.key, current=_etag(await self._find(op.key)))
        return await self._store.put(op.key, data, meta=meta)

    async def _settle(self, op: Operation, data: Content, sha256: str) -> bool:
        base = self._blobs.by_id(op.base_blob) if op.base_blob is not None else None
        verdict = await settle_put(self._store, op, data, base, self._host, sha256)
        if isinstance(verdict, Adopted):
            return self._uploaded(op, verdict.info)
        if isinstance(verdict, Continued):
            return self._replaced(op, verdict.theirs)
        if isinstance(verdict, KeptBoth):
            return self._kept_both(op, verdict)
        if isinstance(verdict, MergedVersion):
            self._journal.join(op, verdict.theirs, verdict.data, verdict.etag)
            self._outcomes.joined(op)
        else:
            assert isinstance(verdict, TryAgain)  # the last of the four
            self._journal.rebase(op, verdict.base)
        return True

    # --- notes that others take away ------------------------------------------------------------------------------

    async def _was_taken(self, op: Operation, sha256: str = "") -> bool:
        """Whether this makes a note that an earlier attempt has made, and that is gone since."""
        repeated = op.tries > 1 or bool(op.sent)
        if op.base is not FREE or not repeated or not keys.is_note(op.key) or await self._find(op.key) is not None:
            return False
        own = op.op_id if op.origin is None else ""  # what another's version was joined into has never been sent
        return await self._removals.has_taken(op.key, own, op.attempts_since_removal, sha256, op.modified)

    def _let_go(self, op: Operation) -> bool:
        log.info("a note was stored and has been taken away since; it is not stored again", key=op.key)
        return self._replaced(op, None)

    async def _lineage(self, op: Operation) -> Mapping[str, str]:
        """The metadata of a put, which for a note says which writes may have made it."""
        if not keys.is_note(op.key):
            return op.meta
        if op.base is FREE:
            return with_makers(op.meta, [*op.attempts, op.op_id] if op.sent else ())
        if META_MADE in op.meta:
            return op.meta
        return with_makers(op.meta, makers_of((await self._find(op.key) or _NOTHING).meta))

    async def _leave_trace(self, op: Operation) -> None:
        """Before a note goes: whoever stores it again, not knowing that it was stored, finds that it was removed."""
        ids, sha256 = op.meta.get(META_MADE, "").split(), op.meta.get(META_SHA256, "")
        if not ids and (found := await self._find(op.key)) is not None:
            ids, sha256 = list(ids_of(found.meta)), (found.meta or {}).get(META_SHA256, "")
        await self._removals.leave_trace(op.key, [*ids, *op.attempts], sha256)

    async def _delete(self, op: Operation) -> bool:
        if keys.is_note(op.key):
            await self._leave_trace(op)
        try:
            if op.base == ANY:
                await self._store.delete(op.key)
            else:
                await self._expect_writer(op)
                await self._conditional_delete(op.key, op.base or NEVER)
        except ObjectMissing:
            pass  # somebody was faster, or we were, and the answer was lost
        except PreconditionFailed:
            found = await self._find(op.key)
            if found is not None and op.was_sent_as((found.meta or {}).get(META_OP, "")):
                self._journal.rebase(op, found.etag)
                return True
            return self._replaced(op, found)  # edited there, removed here: the edit wins
        return self._uploaded(op, None)

    async def _expect_writer(self, op: Operation) -> None:
        """Of a file that was moved away, the very write that was seen goes: ETags tell contents, not writes apart.

        Another host may have moved it back meanwhile, with the same bytes, and removed it where we moved it to.
        """
        writer = op.meta.get(META_OP, "")
        if not writer:
            return
        found = await self._store.head(op.key)
        now = (found.meta or {}).get(META_OP, "")
        if now != writer and not op.was_sent_as(now):
            raise PreconditionFailed(key=op.key)

    async def _conditional_delete(self, key: str, etag: str) -> None:
        if self._conditions:
            try:
                await self._store.delete(key, condition=IfMatch(etag))
            except ConditionsUnsupported:
                self._conditions = False
            else:
                return
        check_condition(IfMatch(etag), key=key, current=_etag(await self._find(key)))
        await self._store.delete(key)

    async def _meta(self, op: Operation) -> bool:
        try:
            found = await self._store.head(op.key)
            check_condition(_condition(op), key=op.key, current=found.etag)
            meta = with_makers(op.meta, makers_of(found.meta)) if keys.is_note(op.key) else op.meta
            info = await self._store.copy(op.key, op.key, meta={**meta, META_OP: op.op_id}) if op.meta else found
        except (PreconditionFailed, ObjectMissing):
            # The attributes belonged to a version that is gone; the content of the one that replaced it is another's.
            return self._replaced(op, await self._find(op.key))
        if info.etag != found.etag and not await self._is_unchanged(op, found.etag, info):
            # Another host wrote between the two requests: its content has our attributes now, and nobody here has read
            # it. What waits behind must not pass for its next version.
            return self._replaced(op, info)
        return self._uploaded(op, info)

    async def _copy(self, op: Operation) -> bool:
        # Metadata that was never heard travels with the copy; what is known gets our id.
        if await self._was_taken(op):
            return self._let_go(op)
        meta = {**await self._lineage(op), META_OP: op.op_id} if op.meta else None
        try:
            if self._journal.timetable.is_read(op):
                data = await _source_of(op, self._store, self._blobs)
                self._journal.fetched(op, data, (await _digests(data))[0])
                self._journal.again(op, 0.0)
                return False
            try:
                info = await self._store.copy(op.source, op.key, meta=meta, condition=_condition(op))
            except PreconditionFailed:
                return await self._settle_copy(op)
        except ObjectMissing:
            return self._replaced(op, await self._find(op.key))  # removed there, renamed here: nothing to rename
        if info.etag != op.etag and await self._is_unchanged(op, op.etag, info):
            self._journal.called(op.key, op.etag, info.etag)
        return self._uploaded(op, info)

    async def _is_unchanged(self, op: Operation, etag: str, copied: ObjectInfo) -> bool:
        """Whether what was copied on the server is the version `etag`: some stores give each copy an ETag of its own.

        Told by the bytes, where they are here: of what another host may have written meanwhile, nothing else is sure.
        """
        data = self._blobs.get(op.key, etag) if copied.size <= LARGE else None
        if data is None or len(data) != copied.size:
            return False
        try:
            found = await self._store.get(op.key, if_match=copied.etag)
        except LiveMemError:
            return False  # it is copied, and only its name is in doubt
        if found.data != data:
            return False
        self._blobs.put(op.key, copied.etag, data)
        return True

    async def _settle_copy(self, op: Operation) -> bool:
        verdict = await settle_copy(self._store, op, self._host)
        if isinstance(verdict, KeptBoth):
            return self._kept_both(op, verdict)
        if isinstance(verdict, Adopted):
            return self._uploaded(op, verdict.info)
        self._journal.rebase(op, verdict.base)
        return True

    # --- how it ends: each says that it need not be sent again ----------------------------------------------------

    def _uploaded(self, op: Operation, info: ObjectInfo | None) -> bool:
        """The bucket has it as it was sent; None: the key is gone."""
        self._write_off(lambda: self._journal.uploaded(op, info.etag if info is not None else ""))
        self._outcomes.uploaded_as(op, info)
        return False

    def _replaced(self, op: Operation, now: ObjectInfo | None) -> bool:
        """The bucket keeps another version, or none."""
        self._write_off(lambda: self._journal.replaced(op))
        self._outcomes.replaced(op, now)
        return False

    def _kept_both(self, op: Operation, verdict: KeptBoth) -> bool:
        """The bucket keeps another version, and ours beside it."""
        self._conflicts += 1
        self._write_off(lambda: self._journal.replaced(op))
        self._outcomes.kept_both(op, verdict)
        return False

    def _write_off(self, take_note: Callable[[], None]) -> None:
        """On a full disk the reserve makes that possible."""
        try:
            take_note()
        except NoSpace:
            if not self._blobs.make_room():
                raise
            take_note()

    async def _find(self, key: str) -> ObjectInfo | None:
        try:
            return await self._store.head(key)
        except ObjectMissing:
            return None

    def statistics(self) -> UploaderStatistics:
        """Counters, cheap."""
        return UploaderStatistics(
            attempts=self._attempts,
            failures=self._failures,
            conflicts=self._conflicts,
            paused=self._in_a_row > 0,
            last_error=self._last_error,
        )


def _etag(found: ObjectInfo | None) -> str | None:
    return found.etag if found is not None else None


def _condition(op: Operation) -> Condition | None:
    if op.base == ANY:
        return None
    return IfAbsent(once=keys.is_note(op.key)) if op.base is FREE else IfMatch(op.base)


def _at_once(journal: Journal, now: float) -> int:
    """How many may be on their way while the store answers."""
    oldest = journal.ops.oldest()
    overdue = oldest is not None and now - oldest.accepted >= OVERDUE_SECONDS
    return FEW if now - journal.last_accepted < QUIET_SECONDS and not overdue else WORKERS


async def _source_of(op: Operation, store: Store, blobs: Blobs) -> Content:
    """What a copy is made from, here: a large one in a file."""
    if op.size > LARGE:
        found = await store.head(op.source)

        async def fetch(start: int, size: int) -> bytes:
            return await store.get_part(op.source, start, size, if_match=found.etag)

        file = blobs.open(found.size, fetch)
        if file is not None:
            await file.bring(0, file.size)
            return file.content()
    return (await store.get(op.source)).data


async def _digests(data: Content) -> tuple[str, str]:
    """What the journal knows content by, and what the bucket is told to know it by; empty where it is damaged."""
    try:
        return digests(data) if len(data) <= HASHED_AT_ONCE else await trio.to_thread.run_sync(digests, data)
    except OSError:
        return "", ""


async def _either(event: trio.Event, moment: float) -> None:
    """Wait for an event, but not longer than until a moment."""
    with trio.move_on_at(moment):
        await event.wait()
