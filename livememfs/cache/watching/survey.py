"""A survey: everything below a prefix in one LIST, where it fits on a page.

Owns how such an answer is laid over the known names: what is there and not known is learned, what is known and not
there is gone, and levels that it confirms need no question of their own. Refuses to conclude anything of what did not
fit. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from livememfs.cache.levels import above, split_key

if TYPE_CHECKING:
    from livememfs.cache.journal.steps import Journal
    from livememfs.cache.names import Names
    from livememfs.store.base import ObjectInfo


@dataclass(frozen=True)
class Surveyed:
    """The first objects below a prefix in the order of their keys; whether that is all of them."""

    objects: list[ObjectInfo]
    complete: bool


class Survey:
    """The surveys of one bucket."""

    def __init__(self, names: Names, journal: Journal) -> None:
        self._names = names
        self._journal = journal
        self._bare: set[str] = set()
        """Folders that the store goes on naming although it has no key below them (see `presence`)."""

    async def take(self, prefix: str) -> Surveyed:
        """Ask for everything below a prefix, and take note of it. Raises what the store fails with."""
        asked, complete = trio.current_time(), True

        async def ask() -> tuple[ObjectInfo, ...]:
            nonlocal complete
            page = await self._names.store.list_page(prefix)
            complete = page.next_token is None
            return page.objects

        infos, newer = await self._names.hear(ask)
        if complete:
            kept = newer | {op.key for op in self._journal.ops.pending() if op.key.startswith(prefix)}
            folders = _folders(kept) | self._show_folders(info for info in infos if info.key not in kept)
            for level in self._lay_over(prefix, {info.key for info in infos} | kept, folders, asked, sure=not kept):
                await self._ask_for(level, folders)
        return Surveyed(infos, complete)

    def _show_folders(self, infos: Iterable[ObjectInfo]) -> set[str]:
        """All folders there are; those that are new are shown, whether or not anybody has looked into them."""
        found: set[str] = set()
        for info in infos:
            new = [folder for folder in _folders([info.key]) if folder not in found]
            found.update(new)
            if any(self._lacks(folder) for folder in new):
                self._names.learn(info)
        return found

    def _lacks(self, folder: str) -> bool:
        above_it, name = split_key(folder[:-1])
        level = self._names.levels.get(above_it)
        return level is not None and name not in level.folders

    def _lay_over(self, prefix: str, there: set[str], folders: set[str], asked: float, *, sure: bool) -> list[str]:
        """Levels that have a folder which is in doubt. `sure`: nothing came in between. No await."""
        names, doubtful = self._names, []
        self._bare -= folders
        for known in names.levels.below(prefix):
            level = names.levels.get(known)
            if level is None or level.confirmed > asked:
                continue
            for key in [known + name for name in level.objects]:
                if key not in there:
                    names.lost(key)
            if any(f"{known}{name}/" not in folders and f"{known}{name}/" not in self._bare for name in level.folders):
                doubtful.append(known)
            elif sure:
                level.confirmed = asked
        return doubtful

    async def _ask_for(self, prefix: str, folders: set[str]) -> None:
        """A folder has no key any more: whether it is gone is the store's word."""
        await self._names.refresh(prefix)
        level = self._names.levels.get(prefix)
        self._bare |= {f"{prefix}{name}/" for name in level.folders} - folders if level is not None else set()


def _folders(keys: Iterable[str]) -> set[str]:
    """The prefixes of all folders that some keys are in, and of those whose markers they are."""
    return {folder for key in keys for folder in (*above(key), *([key] if key.endswith("/") else ()))}
