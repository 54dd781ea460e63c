"""The hooks for all projects of a machine: an event comes without a space, and goes to the space of its project.

Owns which space a directory has: a missing space is made, and two projects with the same name get two spaces. A hook
that fails gets an empty answer, and a line in `errors.ndjson` has the reason. Waits at most `PATIENCE` for a disk, and
keeps results for a while. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs.agents.contract import Payload, first, payload, text
from livememfs.agents.hooks import CONTRACTS
from livememfs.agents.projects import FILE, MARK, Project, find
from livememfs.concurrency import aside
from livememfs.errors import AlreadyExists, Forbidden, LiveMemError, ProjectFileOdd, StoreError, TimedOut
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.spaces import making as spaces
from livememfs.tree.writer import working_directory

if TYPE_CHECKING:
    from livememfs.agents.hooks import Hooks
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.records.access import Access

PATIENCE = 0.5
"""Most seconds for finding a project."""
THREADS = 4
"""Most searches at once, each of which may wait for a disk that hangs."""
KEPT, MISSING_KEPT = 60.0, 5.0
"""Seconds until a directory is searched again: if it has a space, and if it has none."""
MOST = 1_024


class Projects:
    """The spaces of the projects of this machine. `failed(path, error)` is called for each that cannot be used."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        access: Callable[[], Access],
        failed: Callable[[str, LiveMemError], None],
        *,
        home: Path,
        host: str,
        mountpoint: str,
        owner: str,
    ) -> None:
        self._replica, self._clock, self._access, self._failed = replica, clock, access, failed
        self._home, self._host, self._mountpoint, self._owner = home, host, mountpoint, owner
        self._known: dict[str, tuple[str, float]] = {}
        self._told: set[str] = set()
        self._limiter = trio.CapacityLimiter(THREADS)

    @property
    def looking(self) -> int:
        """The number of searches that wait for a disk now."""
        return self._limiter.borrowed_tokens

    async def space(self, folder: str) -> str:
        """The space of the project around a directory; empty without a project."""
        known, until = self._known.get(folder, ("", 0.0))
        if trio.current_time() < until:
            return known
        if len(self._known) >= MOST:
            self._known.clear()
        try:
            space = await self._find(folder)
        except LiveMemError as error:
            self._tell(folder, error)
            space = ""
        self._known[folder] = space, trio.current_time() + (KEPT if space else MISSING_KEPT)
        return space

    async def _find(self, folder: str) -> str:
        look = partial(find, Path(folder), home=self._home, host=self._host, mounts=(self._mountpoint,))
        with trio.move_on_after(PATIENCE) as waiting:
            project = await trio.to_thread.run_sync(look, abandon_on_cancel=True, limiter=self._limiter)
        if waiting.cancelled_caught:
            raise TimedOut(f"the disk of {folder}")
        if project is None:
            return ""
        if project.wrong:
            file = str(project.folder / FILE)
            self._tell(file, ProjectFileOdd(path=file, detail=project.wrong))
        return await self._made(project) if project.space else ""

    async def _made(self, project: Project) -> str:
        """The space of a project, made if it does not exist. Forbidden, and the errors of making one."""
        whose = await self._whose(project.space, project)
        is_free = not project.marks or not whose or whose in project.marks
        name = project.space if is_free else project.other_space
        if not is_free:
            await self._whose(name, project)
        return name

    async def _whose(self, space: str, project: Project) -> str:
        """The mark of the project that a space is for; empty if people made the space. Makes a missing space."""
        access = self._access()
        if not (access.sees(space) and access.may("write")):
            raise Forbidden(path=space, name=access.name or "the token", permission="write")
        if not await spaces.is_space(self._replica, space):
            description = MARK + project.marks[0] if project.marks else ""
            with suppress(AlreadyExists):
                await spaces.create(self._replica, self._clock, space, description=description, owner=self._owner)
                await self._replica.names.listing(f"{space}/")  # cache its names for times without the store
                return description.removeprefix(MARK)
        try:
            description = Meta.parse((await self._replica.read(keys.meta_key(space))).data).description
        except (ValueError, StoreError):  # damaged, or the store does not answer: take the space as ours
            return ""
        return description.removeprefix(MARK) if description.startswith(MARK) else ""

    def _tell(self, path: str, error: LiveMemError) -> None:
        """Report an error once: it comes again with each event."""
        if (line := f"{path}: {error}") not in self._told:
            self._told.add(line)
            self._failed(path, error)


class Door:
    """Answers the hooks of `.livememfs/hooks/`."""

    def __init__(self, hooks: Hooks, projects: Projects) -> None:
        self._hooks, self.space = hooks, projects.space

    async def answer(self, event: str, request: bytes, pid: int) -> bytes:
        """The answer to one request of an event; `pid` is the hook's process. Raises nothing."""
        try:
            given = await aside(len(request), lambda: payload(request, path=event))
        except LiveMemError:
            given = {}
        space = await self.space(_folder(given) or working_directory(pid))
        return await self._hooks.answer(space, event, request) if space else CONTRACTS[event].plain.encode()


def _folder(given: Payload) -> str:
    """The working directory in a payload; empty without one."""
    folders = (text(given, name) or first(given.get(name)) for name in ("cwd", "workspace_roots", "workspaceRoots"))
    return next((folder for folder in folders if folder.startswith("/")), "")
