"""Plans an adoption, and giving it back: which files are copied, and what changes in the agent's settings.

Owns the record of an adoption: one small file in the user's state folder, with the inserted text and the digests of the
files, and nothing else of the user's. Files are copied first: where that fails, the agent goes on with the folder that
it had. Blocking; any thread.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import platformdirs

from livememfs.agents.adopting import copying
from livememfs.agents.adopting.copying import Step
from livememfs.agents.adopting.place import SETTING, SETTINGS, folder_of
from livememfs.agents.adopting.setting import given_back, pointed
from livememfs.agents.install import disk
from livememfs.agents.install.disk import FileEdit
from livememfs.agents.install.plan import Left, Plan
from livememfs.agents.install.record import FileRecord
from livememfs.agents.install.segments import decoded, encoded
from livememfs.agents.install.table import AgentName
from livememfs.errors import CannotInstall
from livememfs.records import keys
from livememfs.text.foreign import Unreadable, read_object


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """One agent's memory of one project.

    :original:    the folder that it had
    :folder:      its folder in the mount
    :former:      the JSON of the setting before; empty: there was none
    :digests:     SHA-256 of the files that the original had, by their paths in it
    :directories: the directories that were made for the settings, below the project
    """

    tool: str
    project: str
    original: str
    folder: str
    former: str
    digests: dict[str, str]
    directories: tuple[str, ...]
    filed: FileRecord


@dataclass(frozen=True)
class Adopting:
    """What is to be done: files first, then the settings and the record."""

    source: Path
    target: Path
    steps: list[Step]
    settings: Plan
    back: bool = False

    def carry_out(self) -> None:
        """Do it. CannotInstall, and the settings are as they were."""
        copying.make(self.target)
        copying.carry_out(self.steps, self.source, self.target, back=self.back)
        self.settings.carry_out()


def adoption(tool: AgentName, project: Path, space: Path, *, home: Path, configuration: Path, host: str) -> Adopting:
    """Make a folder of the space at this path the agent's memory of a project. CannotInstall.

    An agent that has it already brings what is left in its former folder.
    """
    old, target = find(tool, project), space / keys.AGENTS / tool.value
    if old is not None and Path(old.folder) != target:
        undo = f"`livememfs adopt --undo {tool} --project {shlex.quote(str(project))}` gives it back first"
        raise CannotInstall(path=project / SETTINGS, detail=f"{tool} has its memory in {old.folder}", advice=undo)
    path = disk.real_path(project, SETTINGS)
    before = disk.read(path)
    text = decoded(before) if before is not None else None
    source = Path(old.original) if old is not None else folder_of(project, home, configuration)
    known = old.digests if old is not None else {}
    digests = {**known, **copying.digests_of(source)}
    try:
        after, filed, former = pointed(SETTINGS, text, SETTING, str(target))
    except ValueError as error:
        raise CannotInstall(path=path, detail=str(error)) from None
    made = [folder.relative_to(project).as_posix() for folder in disk.missing_directories(project, path)]
    new = Adoption(
        tool=tool, project=str(project), original=str(source), folder=str(target), former=former, digests=digests,
        directories=tuple(made), filed=filed,
    )  # fmt: skip
    if old is not None and encoded(after) == before:
        new = Adoption(**{**_fields(old), "digests": digests})
    steps = copying.to_bring(source, target, known, f"from-{host}") if source != target else []
    return Adopting(source, target, steps, _settings(project, path, before, after, _filing(tool, project, new)))


def giving_back(tool: AgentName, project: Path, *, host: str) -> Adopting:
    """Give an agent the folder back that it had, as its memory is now, and its setting as it was. CannotInstall."""
    old = find(tool, project)
    if old is None:
        raise CannotInstall(path=project / SETTINGS, detail=f"{tool}'s memory of this project was not adopted here")
    source, target = Path(old.folder), Path(old.original)
    if not source.is_dir():
        raise CannotInstall(path=source, detail="it is not there", advice="mount the bucket there first")
    path = disk.real_path(project, SETTINGS)
    before = disk.read(path)
    try:
        text = decoded(before) if before is not None else None
        after, left = given_back(text, SETTING, old.folder, old.filed, old.former)
    except ValueError as error:
        raise CannotInstall(path=path, detail=str(error)) from None
    steps = copying.to_give_back(source, target, old.digests, f"before-{host}")
    emptied = tuple(project / folder for folder in old.directories)
    settings = _settings(project, path, before, after, _filing(tool, project, None), left, emptied)
    return Adopting(source, target, steps, settings, back=True)


def _settings(
    project: Path, path: Path, before: bytes | None, after: str | None, filed: FileEdit | None,
    left: str = "", emptied: tuple[Path, ...] = (),
) -> Plan:  # fmt: skip
    data = encoded(after) if after is not None else None
    changes = (FileEdit(path=path, before=before, after=data),) if data != before else ()
    stays = (Left(str(path), left),) if left else ()
    return Plan(project=project, changes=changes, filed=filed, left=stays, emptied=emptied)


# --- the record ---------------------------------------------------------------------------------------------------


def find(tool: AgentName, project: Path) -> Adoption | None:
    """The record of one agent in one project; None without a usable one."""
    try:
        value = read_object(_path(tool, project).read_bytes())
        filed = FileRecord.of(value["filed"])
        return Adoption(**{**value, "filed": filed, "directories": tuple(value["directories"])})
    except (OSError, Unreadable, KeyError, TypeError, ValueError):
        return None


def _path(tool: AgentName, project: Path) -> Path:
    name = hashlib.sha256(f"{tool}\0{project}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return platformdirs.user_state_path("livememfs") / "adoptions" / f"{name}.json"


def _fields(adoption: Adoption) -> dict[str, Any]:
    return {name: getattr(adoption, name) for name in Adoption.__dataclass_fields__}


def _filing(tool: AgentName, project: Path, new: Adoption | None) -> FileEdit | None:
    path = _path(tool, project)
    before, after = disk.read(path), json.dumps(asdict(new), indent=1).encode() if new is not None else None
    return FileEdit(path=path, before=before, after=after, private=True) if before != after else None
