"""The files in which agents without hooks find what is known: a mount writes what `context.md` says into them.

They are real files of a project, so that no agent and no editor waits for a mount that hangs. Owns when they are
written: a while after something changed in a space, and once when a mount begins. Only files that `livememfs install`
has made are touched, only below their project, and only while they are there and begin as ours do. A file on a disk
that does not answer must not end the mount. Trio thread only; files are written in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs.agents.install import disk
from livememfs.agents.install.record import ContextFile, context_files
from livememfs.agents.install.segments import encoded
from livememfs.errors import CannotInstall, LiveMemError
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.cache.changes import Change

LATER_SECONDS = 2.0
"""Changes come in crowds."""
_TOLD = frozenset({"observation", "session", "memory"})


class ContextFiles:
    """The files that show spaces of one mount. `page(space)` is `context.md`; `failed(path, error)` hears why one
    could not be written, once until it can be or the reason is another.
    """

    def __init__(
        self,
        mountpoint: Path,
        page: Callable[[str], Awaitable[str]],
        failed: Callable[[str, LiveMemError], None] = lambda *_: None,
        *,
        installed: Callable[[Path], list[ContextFile]] = context_files,
    ) -> None:
        self._mountpoint, self._page, self._failed, self._installed = mountpoint, page, failed, installed
        self._changed: set[str] = set()
        self._wake = trio.Event()
        self._told: dict[Path, str] = {}
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
            text = encoded(file.head + await self._page(file.space))
            try:
                self._counts["written"] += await trio.to_thread.run_sync(_written, file, text)
            except CannotInstall as error:
                self._tell(file.path, error)
            else:
                self._told.pop(file.path, None)

    def _tell(self, path: Path, error: CannotInstall) -> None:
        """Count a failure, and tell of it when it is a new one: what is dead stays so for many changes."""
        self._counts["failed"] += 1
        if self._told.get(path) != str(error):
            self._told[path] = str(error)
            self._failed(str(path), error)

    def statistics(self) -> dict[str, int]:
        """Files written, and failures, since the start."""
        return dict(self._counts)


def _written(file: ContextFile, text: bytes) -> bool:
    """Have a file say this, if it is there; whether it said something else.

    CannotInstall, also for what is no rule of ours: a link that came with a commit may lead to any file of the user's.
    """
    path = disk.real_path(file.project, file.part)
    before = disk.read(path)
    if before is None or before == text:
        return False
    if not before.startswith(encoded(file.head)):
        raise CannotInstall(path=file.path, detail="it is not the file that was installed", advice="install it again")
    try:
        disk.carry_out([disk.FileEdit(path=path, before=before, after=text)])
    except OSError as error:  # a disk that went away meanwhile
        raise CannotInstall(path=path, detail=f"it cannot be written: {error.strerror}") from None
    return True
