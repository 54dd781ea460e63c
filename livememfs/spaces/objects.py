"""Steps on objects that runs, backups and spaces share.

Owns creating an object, replacing and removing exactly one version, keeping a version under another name, waiting for
uploads, and taking private parts out of texts. Refuses to know what the objects mean. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import trio

from livememfs.cache.replica import Replica
from livememfs.concurrency import aside
from livememfs.errors import (
    ConditionsUnsupported,
    InvalidName,
    LiveMemError,
    NotText,
    ObjectMissing,
    PreconditionFailed,
    StoreError,
    TimedOut,
)
from livememfs.records import keys
from livememfs.records.trust import kept_stamp
from livememfs.store.base import IfAbsent, IfMatch, ObjectInfo, StoredObject
from livememfs.text.privacy import redaction as privacy

UPLOAD_SECONDS = 60.0
"""How long a run, a backup or a removal waits for the upload of files that were closed before it."""
OnPrivate = Callable[[LiveMemError], None]
"""Called with what was replaced in a text before it was stored."""


def unheard(_: LiveMemError) -> None:
    """For callers that tell nobody what was replaced: the marks in the text show it."""


async def public(text: str, path: str, on_private: OnPrivate) -> bytes:
    """A text for `path` as it may be stored: what is private is replaced."""
    data, kinds = await aside(len(text), lambda: privacy.redact_file(text.encode("utf-8", "surrogatepass")))
    if kinds:
        on_private(privacy.told(path, kinds))
    return data


def public_name(text: str, path: str, on_private: OnPrivate = unheard) -> str:
    """A short text that was given beside a file, such as the name of an agent, as it may be stored."""
    redacted = privacy.redact(text)
    if redacted.found:
        on_private(privacy.told(path, redacted.found))
    return redacted.text


def public_as_it_is(name: str, what: str) -> None:
    """Refuse a name with something private in it: nothing in a name can be replaced. InvalidName, without the name."""
    if kinds := privacy.redact(name).found:
        raise InvalidName(path=what, detail=f"it has something private in it ({', '.join(kinds)})")


async def uploaded(replica: Replica, prefix: str, what: str) -> None:
    """Wait until the bucket has all that was accepted below a prefix. TimedOut; StoreError when it refuses a part."""
    with trio.move_on_after(UPLOAD_SECONDS) as patience:
        await replica.uploaded(prefix)
    if patience.cancelled_caught:
        raise TimedOut(f"uploading {what}")


async def wait_for_notes(replica: Replica, space: str) -> None:
    """Wait for the upload of notes: one that was closed before a run was asked for belongs to that run. TimedOut.

    A note that the bucket refuses is not waited for: it is not lost, and is reported elsewhere.
    """
    with suppress(StoreError):
        await uploaded(replica, keys.live_prefix(space), f"the notes of {space}")


async def put_new(replica: Replica, key: str, data: bytes, *, meta: Mapping[str, str] | None = None) -> ObjectInfo:
    """Write an object that must not exist yet. Raises PreconditionFailed when it does.

    In a store without conditions it is looked for first and then written: two hosts at the same moment may both believe
    that they were first. `status.json` says so of such a store.
    """
    try:
        return await replica.put(key, data, meta=meta, condition=IfAbsent())
    except ConditionsUnsupported:
        pass
    try:
        await replica.names.stat(key, fresh=True)
    except ObjectMissing:
        return await replica.put(key, data, meta=meta)
    raise PreconditionFailed(key=key)


async def content(replica: Replica, item: ObjectInfo) -> bytes | None:
    """The bytes of a listed version; of the newest one when that is gone; None when the object is gone."""
    try:
        return await replica.read_version(item)
    except (PreconditionFailed, ObjectMissing):
        pass
    try:
        return (await replica.read(item.key, fresh=True)).data
    except ObjectMissing:
        return None


def decode_text(data: bytes, path: str) -> str:
    """UTF-8 bytes as text. Raises NotText; `path` is for the message."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(path=path, detail=f"byte 0x{data[error.start]:02x} at offset {error.start}") from error


async def put_version(
    replica: Replica, key: str, data: bytes, etag: str | None, meta: Mapping[str, str] | None = None
) -> None:
    """Replace exactly the version `etag`, or create the object for None. Raises PreconditionFailed.

    In a store without conditions the version is compared just before the write: nothing better is possible there.
    """
    if etag is None:
        await put_new(replica, key, data, meta=meta)
        return
    try:
        await replica.put(key, data, meta=meta, condition=IfMatch(etag))
    except ConditionsUnsupported:
        await _expect(replica, key, etag)
        await replica.put(key, data, meta=meta)


async def delete_version(replica: Replica, key: str, etag: str) -> None:
    """Remove exactly the version `etag`. ObjectMissing, PreconditionFailed."""
    try:
        await replica.delete(key, condition=IfMatch(etag))
    except ConditionsUnsupported:
        await _expect(replica, key, etag)
        await replica.delete(key)


async def delete_directories(replica: Replica, prefix: str) -> None:
    """After the removal of all keys below `prefix`: have a store with directories of its own stop naming these.

    The innermost goes first: such a store removes none that has another in it. S3 is asked for one listing. Nobody is
    told: an announcement of this would be a new object below `prefix`.
    """
    for name in sorted((await replica.names.listing(prefix, fresh=True)).folders):
        await delete_directories(replica, f"{prefix}{name}/")
    await replica.store.delete(prefix)


async def _expect(replica: Replica, key: str, etag: str) -> None:
    try:
        now = (await replica.names.stat(key, fresh=True)).etag
    except ObjectMissing:
        now = ""
    if now != etag:
        raise PreconditionFailed(key=key)


async def keep_beside(replica: Replica, there: StoredObject, mark: str) -> str:
    """Keep a version that is about to be replaced, under another name in the same folder; returns that name."""
    stem, dot, suffix = there.info.key.rpartition(".")
    named = f"{stem if dot else there.info.key}.conflict-{mark}-{there.info.etag[:8]}{dot}{suffix if dot else ''}"
    with suppress(PreconditionFailed):
        await put_new(replica, named, there.data, meta=kept_stamp(there.info.meta))
    return named
