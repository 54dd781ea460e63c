"""The hooks of a whole machine: an event comes without a space, and goes to that of the project it happened in.

Owns which space a directory has here: one that does not exist is made, and two projects of one name do not share one.
What cannot be answered is answered with nothing, and a line in `errors.ndjson` says why. No more than `PATIENCE` is
waited for a disk, and what was found is kept for a while. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs.agents.contract import Payload, payload
from livememfs.agents.hooks import CONTRACTS
from livememfs.agents.projects import FILE, MARK, Project, find
from livememfs.concurrency import aside
from livememfs.errors import AlreadyExists, Forbidden, LiveMemError, ProjectFileOdd, StoreError, TimedOut
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.spaces import making as spaces

if TYPE_CHECKING:
    from livememfs.agents.hooks import Hooks
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.records.access import Access

PATIENCE = 0.5
"""Seconds for finding a project."""
THREADS = 4
"""As many disks that hang may be waited for at once."""
KEPT, MISSING_KEPT = 60.0, 5.0
"""Seconds for which a space that was found is not looked for again; and none."""
MOST = 1_024


@dataclass(frozen=True, kw_only=True)
class ProjectSurroundings:
    """What does not change while a mount lives."""

    home: Path
    host: str
    mountpoint: str
    owner: str


class Projects:
    """The spaces of the projects of this machine. `failed(path, error)` hears of what cannot be used."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        access: Callable[[], Access],
        around: ProjectSurroundings,
        failed: Callable[[str, LiveMemError], None],
    ) -> None:
        self._replica, self._clock, self._access, self._around, self._failed = replica, clock, access, around, failed
        self._known: dict[str, tuple[str, float]] = {}
        self._told: set[str] = set()
        self._limiter = trio.CapacityLimiter(THREADS)

    @property
    def looking(self) -> int:
        """How many disks are waited for."""
        return self._limiter.borrowed_tokens

    async def space(self, folder: str) -> str:
        """The space of the project that a directory is in; empty for a directory that has none."""
        known, until = self._known.get(folder, ("", 0.0))
        if trio.current_time() < until:
            return known
        if len(self._known) >= MOST:
            self._known.clear()
        try:
            found = await self._find(folder)
        except LiveMemError as error:
            self._tell(folder, error)
            found = ""
        self._known[folder] = found, trio.current_time() + (KEPT if found else MISSING_KEPT)
        return found

    async def _find(self, folder: str) -> str:
        around = self._around
        look = partial(find, Path(folder), home=around.home, host=around.host, mounts=(around.mountpoint,))
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
        """The space of a project, which is there then. Forbidden, and what making one raises."""
        whose = await self._whose(project.space, project)
        is_free = not project.marks or not whose or whose in project.marks
        name = project.space if is_free else project.other_space
        if not is_free:
            await self._whose(name, project)
        return name

    async def _whose(self, space: str, project: Project) -> str:
        """Which project a space is for; empty for one that people made. It is made where there is none."""
        access = self._access()
        if not (access.sees(space) and access.may("write")):
            raise Forbidden(path=space, name=access.name or "the token", permission="write")
        if not await spaces.is_space(self._replica, space):
            description = MARK + project.marks[0] if project.marks else ""
            with suppress(AlreadyExists):
                await spaces.create(
                    self._replica, self._clock, space, description=description, owner=self._around.owner
                )
                await self._replica.names.listing(f"{space}/")  # its names are to be known while the store is away
                return description.removeprefix(MARK)
        try:
            description = Meta.parse((await self._replica.read(keys.meta_key(space))).data).description
        except (ValueError, StoreError):  # damaged, or the store is away: then it is the one that was known
            return ""
        return description.removeprefix(MARK) if description.startswith(MARK) else ""

    def _tell(self, path: str, error: LiveMemError) -> None:
        """Of what goes wrong with each event, once."""
        if (said := f"{path}: {error}") not in self._told:
            self._told.add(said)
            self._failed(path, error)


class Door:
    """Answers hooks that lead to `.livememfs/hooks/`."""

    def __init__(self, hooks: Hooks, projects: Projects) -> None:
        self._hooks, self.space = hooks, projects.space

    async def answer(self, event: str, request: bytes, pid: int) -> bytes:
        """What one request of an event is answered; `pid` is the hook's process. Raises nothing."""
        try:
            given = await aside(len(request), lambda: payload(request, path=event))
        except LiveMemError:
            given = {}
        space = await self.space(_folder(given) or _working_directory(pid))
        return await self._hooks.answer(space, event, request) if space else CONTRACTS[event].plain.encode()


def _folder(given: Payload) -> str:
    """Where an agent says that it works."""
    for name in ("cwd", "workspace_roots", "workspaceRoots"):
        value = given.get(name)
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, str) and first.startswith("/"):
            return first
    return ""


def _working_directory(pid: int) -> str:
    """Where a process works; the link is the kernel's own, no disk is asked."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""
