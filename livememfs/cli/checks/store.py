"""Whether the store answers, may be written, has our time, and which of its promises it keeps.

Owns the probe objects below `_system/probe/`, which it removes. Trio thread only.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from uuid import uuid4

import trio

from livememfs import private
from livememfs.app.store import open_store
from livememfs.cache.watching.listening import CLOCK_SKEW
from livememfs.cli import output
from livememfs.cli.checks import Check, attempt
from livememfs.clock import Clock, SystemClock
from livememfs.config import Settings
from livememfs.errors import BucketMissing, ClockDiffers, Denied, LiveMemError, NotPrivate, TimedOut, Unreachable
from livememfs.records import proposal
from livememfs.store.base import Store
from livememfs.store.capabilities import PREFIX, Capabilities, probe
from livememfs.store.retry import RetryingStore

PROBE_TIMEOUT = 60.0
PROMISES = "store, promises"
DIFFERS = 60.0
"""Seconds by which clocks may differ without a word. Beyond CLOCK_SKEW others see new notes late."""
SPACES = 200
"""Spaces in which proposals are counted: each costs a request."""
SET_CLOCK = ClockDiffers.what_to_do


async def checks(settings: Settings) -> list[Check]:
    """All of it, up to the first that fails."""
    try:
        opened = open_store(settings)
    except LiveMemError as error:
        return [Check("store", "fail", str(error), _advice(error, settings))]
    try:
        failed = await attempt(
            "store", lambda: ask_once(opened, settings.op_timeout), lambda error: _advice(error, settings)
        )
        if failed is not None:  # a store that refuses requests because of their date says so in place of an answer
            is_clock = "RequestTimeTooSkewed" in failed.found
            return [Check("clock", "fail", failed.found, SET_CLOCK) if is_clock else failed]
        return [
            Check("store", "ok", opened.label),
            *await _others(opened, settings),
            *await _writing(opened, settings),
            *await _proposals(opened),
        ]
    finally:
        await opened.aclose()


async def ask_once(store: Store, timeout: float) -> None:
    """Ask the store one question. Raises what it fails with, TimedOut when it does not answer."""
    try:
        with trio.fail_after(timeout):
            await store.list_page("", delimiter="/", limit=1)
    except trio.TooSlowError:
        raise TimedOut(store.label) from None


async def _others(opened: RetryingStore, settings: Settings) -> list[Check]:
    """Whether others can read the memory: a bucket says so itself, a folder that the user named by its modes."""
    if settings.s3_bucket_name:
        from livememfs.store.markers import MarkerStore
        from livememfs.store.s3 import S3Store

        assert isinstance(opened.inner, MarkerStore)
        assert isinstance(opened.inner.inner, S3Store)
        strangers: list[str] = []
        with suppress(LiveMemError), trio.move_on_after(PROBE_TIMEOUT):  # the other checks say what is wrong
            strangers = await opened.inner.inner.strangers()
        if not strangers:
            return []
        advice = f"take the public rights from the access list and the policy of {settings.s3_bucket_name}"
        return [Check("store, others", "warn", f"{' and '.join(strangers)} can look into the bucket", advice)]
    folder = settings.store_path.absolute()
    if not private.is_open(folder):
        return []
    advice = f"chmod 700 {shlex.quote(str(folder))}, or 770 to share it with a group alone"
    return [Check("store, others", "warn", f"every user of this machine can look into {folder}", advice)]


def _advice(error: LiveMemError, settings: Settings) -> str:
    """What to do about a store that cannot be used, by the settings that lead to it."""
    folder = settings.store_path
    if isinstance(error, NotPrivate):
        return error.advice()
    if not settings.s3_bucket_name:
        return f"let this user write to {folder}, or name another folder with --store or LIVEMEMFS_STORE"
    if isinstance(error, BucketMissing):
        return f"create the bucket {settings.s3_bucket_name}, or correct S3_BUCKET_NAME"
    if isinstance(error, Unreachable) and not settings.s3_endpoint_url:
        return "check the network, or set S3_ENDPOINT_URL if the bucket is not Amazon's"
    if type(error) is Denied and not settings.s3_access_key_id:
        return "set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY, or give the AWS SDK a profile or a role"
    return error.advice()


async def _writing(opened: Store, settings: Settings) -> list[Check]:
    results: list[Capabilities] = []

    async def work() -> None:
        with trio.fail_after(PROBE_TIMEOUT):
            results.append(await probe(opened))

    failed = await attempt("store, writing", work, lambda error: _advice(error, settings))
    if failed:
        return [failed]
    return [Check("store, writing", "ok", "allowed"), await _clock(opened, SystemClock()), _promises(results[0])]


async def _clock(opened: Store, clock: Clock) -> Check:
    """How far this machine's clock and the store's differ, by when a new object is said to have been made."""
    key = f"{PREFIX}{uuid4().hex}/clock"
    try:
        with trio.fail_after(PROBE_TIMEOUT):
            before = clock.now().timestamp()
            info = await opened.put(key, b"1")
            after = clock.now().timestamp()
            modified = (info.modified_ns or (await opened.head(key)).modified_ns) / 1e9
    except (LiveMemError, trio.TooSlowError) as error:
        return Check("clock", "warn", f"the store's time cannot be had: {error}", "try again")
    finally:
        with suppress(LiveMemError), trio.move_on_after(PROBE_TIMEOUT, shield=True):
            await opened.delete(key)
    if not modified:
        return Check("clock", "ok", "the store does not tell its time")
    ahead = before - modified - 1 if before > modified else min(0.0, after - modified)  # dates are whole seconds
    return _compared(ahead)


def _compared(ahead: float) -> Check:
    """The verdict on a clock that is so many seconds ahead of the store's."""
    seconds = abs(ahead)
    if seconds <= DIFFERS:
        return Check("clock", "ok", "that of the store")
    size = output.plural(round(seconds / 60), "minute")
    differs = f"{size} {'ahead of' if ahead > 0 else 'behind'} the store's"
    if seconds <= CLOCK_SKEW.total_seconds():
        return Check("clock", "warn", f"{differs}: notes are dated and ordered wrongly", SET_CLOCK)
    return Check("clock", "fail", f"{differs}: others see new notes late, and S3 may refuse requests", SET_CLOCK)


async def _proposals(opened: Store) -> list[Check]:
    """What waits for a person, in the first spaces; nothing where nothing does."""
    waiting: dict[str, int] = {}
    with suppress(LiveMemError), trio.move_on_after(PROBE_TIMEOUT):  # the other checks say what is wrong
        for folder in (await opened.list_page(delimiter="/")).prefixes[:SPACES]:
            page = await opened.list_page(proposal.prefix(folder.rstrip("/")), delimiter="/")
            if number := sum(bool(proposal.name_in(info.key)) for info in page.objects):
                waiting[folder.rstrip("/")] = number
    if not waiting:
        return []
    found = ", ".join(f"{number} in {space}" for space, number in waiting.items())
    return [Check("proposals", "ok", f"{found}; `livememfs proposals list {next(iter(waiting))}` shows them")]


def _promises(kept: Capabilities) -> Check:
    promises = {
        "put if absent": kept.put_if_absent,
        "put if unchanged": kept.put_if_match,
        "delete if unchanged": kept.delete_if_match,
        "list from a key on": kept.start_after,
        "user metadata": kept.metadata,
        "copy with metadata": kept.copy_metadata,
        "modes of directories": kept.markers,
    }
    missing = [name for name, is_kept in promises.items() if not is_kept]
    if not missing:
        return Check(PROMISES, "ok", ", ".join(promises))
    advice = "; ".join(kept.notes) or "two hosts that write the same object at once may overwrite each other"
    return Check(PROMISES, "warn", f"missing: {', '.join(missing)}", advice)
