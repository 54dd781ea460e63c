"""The replica of this process, from settings.

Owns how conflicts and unreadable objects are reported. Trio thread only.
"""

from __future__ import annotations

from livememfs.app.basics import Basics
from livememfs.cache.beacon import COMMANDS
from livememfs.cache.replica import Replica
from livememfs.cache.unread import Unread
from livememfs.errors import ObjectUnreadable
from livememfs.store.base import Store


def open_replica(basics: Basics, store: Store, *, watching: bool) -> Replica:
    """The replica; `watching`: it looks for changes of other hosts. CacheInUse."""
    settings, clock, errors = basics.settings, basics.clock, basics.errors

    def conflict(key: str, copy: str) -> None:
        errors.conflict(key, copy, "changed by another host meanwhile")

    def unreadable(key: str, reason: str) -> None:
        errors.record("read", key, ObjectUnreadable(reason, path=key))

    return Replica(
        store,
        folder=basics.folder,
        cache_size=settings.cache_size,
        cache_memory=settings.cache_memory,
        listing_ttl=settings.listing_ttl,
        host=settings.host_name,
        now_ns=lambda: int(clock.now().timestamp() * 1_000_000) * 1_000,
        on_conflict=conflict,
        announce=basics.host if basics.folder is not None else f"{basics.host}{COMMANDS}",
        poll_interval=settings.poll_interval if watching else None,
        unread=Unread(unreadable),
        background=basics.background,
    )
