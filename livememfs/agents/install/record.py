"""The records of installations: one small JSON file per agent and project, in the user's state folder.

Owns the records and their form. A record has the inserted text and nothing else of the user's files. With it removal is
exact; without it removal still finds unchanged parts. Files that are no records are skipped. Blocking; any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import platformdirs

from livememfs.agents.install.segments import Segment
from livememfs.agents.install.tools import AGENTS, AgentName


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """One file with insertions.

    :path:     below the project, with slashes
    :blank:    the old content if it was empty or white space; None if it was more
    :created:  whether the file did not exist before
    :before:   SHA-256 of the file before; empty without a file
    :after:    SHA-256 of the file with all insertions
    :segments: the insertions, with their places in the file of `after`
    """

    path: str
    blank: str | None
    created: bool
    before: str
    after: str
    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """Read from JSON. KeyError, TypeError or ValueError."""
        segments = tuple(
            Segment(int(segment["at"]), tuple((bool(ours), str(text)) for ours, text in segment["pieces"]))
            for segment in value["segments"]
        )
        return cls(**{**value, "segments": segments})


@dataclass(frozen=True, kw_only=True)
class InstallRecord:
    """One agent in one project.

    :directories: the directories that were made, below the project, the outer ones first
    """

    tool: str
    project: str
    mount: str
    space: str
    files: tuple[FileRecord, ...]
    directories: tuple[str, ...]

    @classmethod
    def read(cls, data: bytes) -> Self | None:
        """A record from the bytes of its file; None if they are no record."""
        try:
            value = json.loads(data)
            files = tuple(FileRecord.of(file) for file in value["files"])
            return cls(**{**value, "files": files, "directories": tuple(value["directories"])})
        except (KeyError, TypeError, ValueError):
            return None

    def to_bytes(self) -> bytes:
        """The bytes of its file."""
        return json.dumps(asdict(self), indent=1).encode()

    def file(self, path: str) -> FileRecord | None:
        """The record of one file; None without one."""
        return next((file for file in self.files if file.path == path), None)


@dataclass(frozen=True)
class ContextFile:
    """A file in a project that shows a space's context to an agent.

    :part: its path below the project
    :head: the text it begins with
    """

    project: Path
    space: str
    part: str
    head: str

    @property
    def path(self) -> Path:
        """Its path at installation; by now it may be a link."""
        return self.project / self.part


def folder() -> Path:
    """The folder of the records."""
    return platformdirs.user_state_path("livememfs") / "installs"


def path_of(tool: AgentName, project: Path) -> Path:
    """The file of the record of one agent in one project."""
    name = hashlib.sha256(f"{tool}\0{project}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return folder() / f"{name}.json"


def find(tool: AgentName, project: Path) -> InstallRecord | None:
    """The record of one agent in one project."""
    return _read(path_of(tool, project))


def context_files(mountpoint: Path) -> list[ContextFile]:
    """The existing context files for spaces of this mount, by path.

    Leaves out a file that the user removed: it must not be written again. Includes a file that cannot be checked: the
    write then fails with the reason.
    """
    installed = [
        ContextFile(Path(record.project), record.space, rule.path, rule.head)
        for record in records()
        if record.mount == str(mountpoint)
        and (rule := AGENTS[AgentName(record.tool)].rule) is not None
        and record.file(rule.path) is not None
    ]
    return sorted((file for file in installed if _may_be_there(file.path)), key=lambda file: file.path)


def _may_be_there(path: Path) -> bool:
    """Whether a file exists, or cannot be checked: one dead disk must not hide the other projects."""
    try:
        return path.is_file()
    except OSError:
        return True


def records() -> Iterator[InstallRecord]:
    """All records of known agents."""
    for path in sorted(folder().glob("*.json")):
        if (record := _read(path)) is not None and record.tool in list(AgentName):
            yield record


def _read(path: Path) -> InstallRecord | None:
    with contextlib.suppress(OSError):
        return InstallRecord.read(path.read_bytes())
    return None
