"""The rule files of Cursor, which cannot import: a mount writes what `context.md` says into those that are installed.

Owns when that is done: a while after something changed in a space, and once when a mount begins. Only files that
`livememfs install cursor` has made are touched, and only while they are there. Trio thread only; files are written in a
thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs.agents.install import disk
from livememfs.agents.install.record import RuleFile, rule_files, rule_text
from livememfs.errors import CannotInstall, LiveMemError
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.cache.changes import Change

LATER_SECONDS = 2.0
"""Changes come in crowds."""
_TOLD = frozenset({"observation", "session", "memory"})


class RuleFiles:
    """The rule files that show spaces of one mount. `page(space)` is `context.md`; `failed(path, error)` hears why one
    could not be written.
    """

    def __init__(
        self,
        mountpoint: Path,
        page: Callable[[str], Awaitable[str]],
        failed: Callable[[str, LiveMemError], None] = lambda *_: None,
        *,
        installed: Callable[[Path], list[RuleFile]] = rule_files,
    ) -> None:
        self._mountpoint, self._page, self._failed, self._installed = mountpoint, page, failed, installed
        self._changed: set[str] = set()
        self._wake = trio.Event()
        self._counts = {"written": 0, "failed": 0}

    def heard(self, change: Change) -> None:
        """A subscriber of `changes`."""
        parsed = keys.parse(change.key)
        if parsed.kind in _TOLD:
            self._changed.add(parsed.space)
            self._wake.set()

    async def run(self) -> None:
        """Keep them up to date until cancelled."""
        await self._refresh(None)
        while True:
            await self._wake.wait()
            await trio.sleep(LATER_SECONDS)
            self._wake, changed, self._changed = trio.Event(), self._changed, set()
            await self._refresh(changed)

    async def _refresh(self, spaces: set[str] | None) -> None:
        """Bring the files of some spaces up to date; None: of all."""
        for file in await trio.to_thread.run_sync(self._installed, self._mountpoint):
            if spaces is not None and file.space not in spaces:
                continue
            text = rule_text(await self._page(file.space)).encode()
            try:
                self._counts["written"] += await trio.to_thread.run_sync(_written, file.path, text)
            except CannotInstall as error:
                self._counts["failed"] += 1
                self._failed(str(file.path), error)

    def statistics(self) -> dict[str, int]:
        """Files written, and failures, since the start."""
        return dict(self._counts)


def _written(path: Path, text: bytes) -> bool:
    """Have a file say this, if it is there; whether it said something else. CannotInstall."""
    before = disk.read(path)
    if before is None or before == text:
        return False
    disk.carry_out([disk.Change(path=path.resolve(), before=before, after=text)])
    return True
