"""Context files for agents without hooks: a mount copies the content of `context.md` into them.

They are real files in a project, so that no agent and no editor waits for a mount that hangs. Owns when they are
written: shortly after a change in a space, and once at the start of a mount. Writes only files that `livememfs install`
made, only below their project, and only while they exist and begin with our head. A file on a disk that does not answer
must not end the mount. Trio thread only; files are written in a thread.
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
"""Seconds to wait after a change: changes come in groups, and each file is written once for all of them."""
_TOLD = frozenset({"observation", "session", "memory"})


class ContextFiles:
    """The context files for the spaces of one mount.

    `page(space)` gives `context.md`. `failed(path, error)` is called when a file cannot be written; again only after a
    success, or for another reason.
    """

    def __init__(
        self,
        mountpoint: Path,
        page: Callable[[str], Awaitable[str]],
        failed: Callable[[str, LiveMemError], None],
        *,
        installed: Callable[[Path], list[ContextFile]] = context_files,
    ) -> None:
        self._mountpoint, self._page, self._failed, self._installed = mountpoint, page, failed, installed
        self._changed: set[str] = set()
        self._wake = trio.Event()
        self._told: dict[Path, str] = {}
        self._counts = {"written": 0, "failed": 0}

    def heard(self, change: Change) -> None:
        """Take a change; subscribed to `changes`."""
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
        """Count a failure, and report it if it is new: a dead disk fails again at every change."""
        self._counts["failed"] += 1
        if self._told.get(path) != str(error):
            self._told[path] = str(error)
            self._failed(str(path), error)

    def statistics(self) -> dict[str, int]:
        """Files written, and failures, since the start."""
        return dict(self._counts)


def _written(file: ContextFile, text: bytes) -> bool:
    """Write a context file, if it exists; whether its content changed.

    CannotInstall, also for a file without our head: a link in a commit could point to any file of the user.
    """
    path = disk.real_path(file.project, file.part)
    before = disk.read(path)
    if before is None or before == text:
        return False
    if not before.startswith(encoded(file.head)):
        raise CannotInstall(path=file.path, detail="it is not the file that was installed", advice="install it again")
    try:
        disk.carry_out([disk.FileEdit(path=path, before=before, after=text)])
    except OSError as error:  # for example, the disk was removed meanwhile
        raise CannotInstall(path=path, detail=f"it cannot be written: {error.strerror}") from None
    return True
