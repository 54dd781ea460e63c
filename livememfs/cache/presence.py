"""Whether a folder that the store names has a key below it.

Owns that question, and what is known of a folder without asking. On S3 the answer is always yes, and costs nothing. A
store with directories of its own (SeaweedFS) goes on naming one for minutes after its last object was removed by a
program that knows nothing of markers: nobody could remove that directory, nor the one above it. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs.concurrency import for_each

if TYPE_CHECKING:
    from livememfs.cache.names import Names
    from livememfs.store.base import ObjectInfo

AT_ONCE = 16


class Presence:
    """What is there of the folders that `names` knows.

    Every folder is doubted once the store has named one that has no key, and before that only those which had none.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._doubts = False

    async def is_there(self, prefix: str) -> bool:
        """Whether there is any key below a prefix that a listing has named. Raises what the store fails with.

        Where it holds folders alone, and has no marker, these are asked for, down to the first object.
        """
        level = await self._names.listing(prefix)
        if level.objects:
            return True
        for name in sorted(level.folders):
            if await self.is_there(f"{prefix}{name}/"):
                return True
        self._doubts = True
        return False

    async def empty(self, prefix: str) -> set[str]:
        """The folders directly below a prefix that have no key. Raises what the store fails with."""
        folders = (await self._names.listing(prefix)).folders
        doubtful = [name for name in sorted(folders) if self._doubts or self._was_empty(f"{prefix}{name}/")]
        empty: set[str] = set()

        async def ask(name: str) -> None:
            if not await self.is_there(f"{prefix}{name}/"):
                empty.add(name)

        await for_each(doubtful, ask, at_once=AT_ONCE)
        return empty

    def _was_empty(self, prefix: str) -> bool:
        """Whether the bucket had no key below a prefix when it was asked last."""
        level = self._names.levels.get(prefix)
        return level is not None and not level.objects and not level.folders


def known_below(names: Names, prefix: str) -> list[ObjectInfo] | None:
    """Every object below a prefix, in no certain order, without asking; None where some level is not known by now.

    What another host has put there in the last seconds may be missing.
    """
    level = names.levels.get(prefix)
    if level is None or not names.believes(prefix, level):
        return None
    infos = list(level.objects.values())
    for folder in level.folders:
        below = known_below(names, f"{prefix}{folder}/")
        if below is None:
            return None
        infos += below
    return infos


def is_unheard(names: Names, prefix: str) -> bool:
    """Whether the names below a prefix were never heard, and the store is known not to answer."""
    asking = names.asking
    away = asking.pausing or (asking.failing_since is not None and names.watch.probes(prefix))
    return away and (names.levels.get(prefix) or names.from_catalog(prefix)) is None


def knows(names: Names, key: str) -> bool:
    """Whether an object is known; of a prefix at the top: whether it is not known to be gone."""
    top = names.levels.get("") if key.endswith("/") else None
    return key[:-1] in top.folders if top is not None else key.endswith("/") or names.now(key) is not None
