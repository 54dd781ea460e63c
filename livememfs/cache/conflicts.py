"""Two hosts wrote the same object: what becomes of it.

Owns the decision and the name of a conflict copy: our own earlier work is recognised, identical bytes are adopted, a
version that was removed is written again, both sides of an append or of a clean merge are joined; else the bucket's
version keeps the name and ours goes beside it. Refuses to drop a byte of either side. Trio thread only; the journal is
not touched here: the uploader carries out the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote

from livememfs.cache.journal.operation import FREE, Operation
from livememfs.cache.journal.settling import JOINED_BYTES, join
from livememfs.cache.removals import makers_of
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.metadata import META_CONFLICT, META_OP, META_SHA256
from livememfs.records.note import UID_ATTEMPTS, order_of, uid_of
from livememfs.store.base import MAX_KEY_BYTES, IfAbsent
from livememfs.store.content import Content, content_etag, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from livememfs.store.base import ObjectInfo, Store, StoredObject

TOLD_BYTES = 100
"""Of such a key. Percent-encoded they are three times as many, and S3 refuses a copy with over 2 KB of metadata, of
which extended attributes alone may be 1,500 bytes."""
MAX_NAME_BYTES = 255
MAX_SUFFIX_BYTES = 32
"""What comes after the last dot of a name that has to be cut, and is longer, is no suffix."""
MAX_HOST_BYTES = 64
ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class Adopted:
    """The bucket has our bytes already."""

    info: ObjectInfo


@dataclass(frozen=True, slots=True)
class Continued:
    """The bucket had our bytes, and somebody has gone on from them: an answer of ours was lost."""

    theirs: ObjectInfo


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Send it again over `base`: what stands there is our own earlier work, or nothing."""

    base: str | None


@dataclass(frozen=True, slots=True)
class MergedVersion:
    """Send `data` over `theirs`: it holds both sides."""

    theirs: StoredObject
    data: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class KeptBoth:
    """Theirs has the name; ours is `copy`. `note`: two notes that happened to choose one key, which is no conflict."""

    theirs: ObjectInfo
    copy: ObjectInfo
    note: bool


Verdict = Adopted | Continued | TryAgain | MergedVersion | KeptBoth


async def settle_put(
    store: Store, op: Operation, content: Content, base_content: Content | None, host: str, sha256: str = ""
) -> Verdict:
    """What to do about a put whose condition did not hold. `base_content` is what it was made from, where known.

    `sha256` is the content's. Raises what the store fails with; OSError for a file of the cache that is damaged.
    """
    try:
        found = await store.head(op.key)
        if max(found.size, len(content)) > JOINED_BYTES:
            return await _settle_large(store, op, content, found, host, sha256)
        data, base = whole(content), None if base_content is None else whole(base_content)
        theirs = await store.get(op.key)
    except ObjectMissing:
        return TryAgain(FREE)  # removed there, edited here: the edit wins
    writer = (theirs.info.meta or {}).get(META_OP, "")
    if op.was_sent_as(writer) and (writer != op.op_id or theirs.data != data):
        return TryAgain(theirs.info.etag)
    if theirs.data == data:
        return Adopted(theirs.info)
    if op.base is FREE and keys.parse(op.key).kind == "meta":
        return Continued(theirs.info)  # two hosts have made one space: the record of the first is as good
    if op.base is FREE and keys.is_note(op.key) and op.op_id in makers_of(theirs.info.meta):
        return Continued(theirs.info)
    # An attempt whose answer was lost may have arrived, and theirs be made from it.
    repeated = bool(op.sent) or op.tries > 1
    # Where nothing can have arrived, a file that was cut down to what theirs begins with would pass for its past.
    possible = data.startswith(base) if base is not None else op.base is FREE or repeated
    if data and possible and theirs.data.startswith(data):
        return Continued(theirs.info)
    # Both of two new notes are whole; of a file that both made, a merge without a base would be a guess.
    merged = join(op.key, base, data, theirs.data, repeated=repeated)
    if merged is not None:
        return MergedVersion(theirs, merged, content_etag(merged))
    return await _keep_both(store, op, data, theirs.info, host)


async def _settle_large(
    store: Store, op: Operation, content: Content, theirs: ObjectInfo, host: str, sha256: str
) -> Verdict:
    """The same where the bytes are too many to be held in memory: ours are known by their hash, or by our id."""
    meta = theirs.meta or {}
    same = theirs.size == len(content) and meta.get(META_SHA256) == sha256
    if op.was_sent_as(meta.get(META_OP, "")) and not same:
        return TryAgain(theirs.etag)
    return Adopted(theirs) if same else await _keep_both(store, op, content, theirs, host)


async def settle_copy(store: Store, op: Operation, host: str) -> Adopted | TryAgain | KeptBoth:
    """What to do about a copy on the server whose target is not what it was. Raises what the store fails with."""
    try:
        theirs = await store.head(op.key)
    except ObjectMissing:
        return TryAgain(FREE)
    writer = (theirs.meta or {}).get(META_OP, "")
    if op.was_sent_as(writer) and writer != op.op_id:
        return TryAgain(theirs.etag)
    if writer == op.op_id or theirs.etag == op.etag:
        return Adopted(theirs)
    for key in _free_names(op, host, is_new_note=False):
        try:
            copy = await store.copy(op.source, key, condition=IfAbsent())
        except PreconditionFailed:
            continue
        return KeptBoth(theirs, copy, note=False)
    raise PreconditionFailed(key=op.key)


async def _keep_both(store: Store, op: Operation, data: Content, theirs: ObjectInfo, host: str) -> Verdict:
    is_new_note = op.base is FREE and keys.parse(op.key).kind == "note"
    for attempt, key in enumerate(_free_names(op, host, is_new_note=is_new_note)):
        # The same id at each attempt, after a crash too: a copy that is there already is known again.
        meta = {**op.meta, META_OP: f"{op.op_id}-{attempt}"}
        if not is_new_note:
            meta[META_CONFLICT] = op.key if len(quote(op.key)) <= 3 * TOLD_BYTES else _end_of(op.key)
        try:
            copy = await store.put(key, data, meta=meta, condition=IfAbsent())
        except PreconditionFailed:
            continue
        return KeptBoth(theirs, copy, is_new_note)
    raise PreconditionFailed(key=op.key)


def _free_names(op: Operation, host: str, *, is_new_note: bool) -> Iterator[str]:
    """Keys for our side, in the order of preference. They follow from the operation alone."""
    folder, slash, name = op.key.rpartition("/")
    parsed = keys.NoteName.parse(name) if is_new_note else None
    if parsed is not None:
        first, ending = order_of(parsed.uid), parsed.uid[-keys.ENDING_DIGITS :]
        for attempt in range(1, UID_ATTEMPTS):
            uid = uid_of(first + attempt, ending)
            yield f"{folder}{slash}{keys.NoteName(parsed.timestamp, parsed.agent, parsed.category, uid)}"
    stamp = f"{datetime.fromtimestamp(op.modified / 1e9, UTC):%Y%m%dT%H%M%SZ}"
    for attempt in range(ATTEMPTS):
        yield conflict_key(op.key, host, stamp, attempt)


def conflict_key(key: str, host: str, stamp: str, attempt: int = 0) -> str:
    """`dir/name.conflict-<host>-<utc>.md` for "dir/name.md"."""
    folder, slash, name = key.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    number = f"-{attempt}" if attempt else ""
    made = f"{stem}.conflict-{host}-{stamp}{number}{dot}{suffix}"
    if len(made.encode()) > MAX_NAME_BYTES or len(f"{folder}{slash}{made}".encode()) > MAX_KEY_BYTES:
        return _cut_conflict_key(key, host, f"{stamp}{number}")
    return f"{folder}{slash}{made}"


def _cut_conflict_key(key: str, host: str, stamp: str) -> str:
    """The same where that is too long: with the beginning of the name, and a hash of the key instead of the rest.

    In a folder whose own name leaves no room for it, the copy goes into the next one above that does.
    """
    folder, slash, name = key.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) > MAX_SUFFIX_BYTES:
        stem, dot, suffix = name, "", ""
    mark = sha256(key.encode()).hexdigest()[:8]
    end = f"~{mark}.conflict-{_start_of(host, MAX_HOST_BYTES)}-{stamp}{dot}{suffix}"
    while folder and len(f"{folder}/{end}".encode()) > MAX_KEY_BYTES:
        folder, slash, _ = folder.rpartition("/")
    above = f"{folder}{slash}"
    room = min(MAX_NAME_BYTES, MAX_KEY_BYTES - len(above.encode())) - len(end.encode())
    return f"{above}{_start_of(stem, room)}{end}"


def _start_of(text: str, size: int) -> str:
    """As many whole characters as `size` bytes hold."""
    return text.encode()[:size].decode(errors="ignore")


def _end_of(key: str) -> str:
    return key.encode()[-TOLD_BYTES:].decode(errors="ignore")
