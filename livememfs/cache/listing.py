"""One level of the bucket, in as little time as it takes.

Owns the choice between one LIST after the other and several side by side. Side by side needs keys whose order is known
before they are heard: those of notes begin with their time. Refuses to do it where it would cost more requests than it
saves time: a level of a few pages is listed in order. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.store.base import MAX_PAGE, Listing, ObjectInfo, Page, Store

STREAMS = 4
WORTH_IT = 20
"""From this many pages on. Each stream may ask for a page of which it needs only a part."""


async def list_level(store: Store, prefix: str, heard: Callable[[], None] = lambda: None) -> Listing:
    """The objects and folders directly below `prefix`; `heard` is called for each page. Raises the store's errors."""
    first = await store.list_page(prefix, delimiter="/")
    if first.next_token is None:
        return Listing(first.objects, first.prefixes)
    bounds = _bounds(prefix, first)
    if bounds:
        return await _side_by_side(store, prefix, first, bounds, heard)
    objects, prefixes = list(first.objects), list(first.prefixes)
    token: str | None = first.next_token
    while token is not None:
        heard()
        page = await store.list_page(prefix, delimiter="/", token=token)
        objects += page.objects
        prefixes += page.prefixes
        token = page.next_token
    return Listing(tuple(objects), tuple(prefixes))


def _bounds(prefix: str, first: Page) -> list[str]:
    """Keys that divide what comes after the first page into equal times; none when that is not worth it."""
    stamps = [parsed.timestamp for info in first.objects if (parsed := keys.NoteName.parse(info.key[len(prefix) :]))]
    if first.prefixes or len(stamps) < MAX_PAGE // 2:
        return []
    last, end = stamps[-1], datetime.now(UTC)
    span = max(last - stamps[0], timedelta(seconds=1))
    if (end - last) / span < WORTH_IT:
        return []
    step = (end - last) / STREAMS
    return [f"{prefix}{last + step * number:%Y%m%dT%H%M%S}" for number in range(1, STREAMS)]


async def _side_by_side(
    store: Store, prefix: str, first: Page, bounds: list[str], heard: Callable[[], None]
) -> Listing:
    starts = [first.objects[-1].key, *bounds]
    found: dict[str, list[ObjectInfo]] = {start: [] for start in starts}
    prefixes = set(first.prefixes)

    async def stream(number: int) -> None:
        start, end = starts[number], starts[number + 1] if number + 1 < len(starts) else None
        page = await store.list_page(prefix, delimiter="/", start_after=start)
        while True:
            heard()
            found[start] += [info for info in page.objects if end is None or info.key <= end]
            prefixes.update(page.prefixes)
            beyond = end is not None and bool(page.objects) and page.objects[-1].key > end
            if page.next_token is None or beyond:
                return
            page = await store.list_page(prefix, delimiter="/", start_after=start, token=page.next_token)

    await for_each(range(len(starts)), stream, at_once=STREAMS)
    objects = [*first.objects, *(info for start in starts for info in found[start])]
    return Listing(tuple(objects), tuple(sorted(prefixes)))
