"""What was installed where: one small JSON file for each agent and project, in the user's state folder.

Owns the records and their form. A record holds what was inserted and nothing else of the user's files; it makes removal
exact, and a lost one only less so. Files that are no records are passed over. Blocking; any thread.
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
    """One file that something was inserted into.

    :path:     below the project, with slashes
    :blank:    what the file held when that was nothing or white space; None when it held more
    :created:  whether there was no file
    :before:   SHA-256 of the file before; empty when there was none
    :after:    SHA-256 of the file with all insertions
    :segments: the insertions, with their places in that
    """

    path: str
    blank: str | None
    created: bool
    before: str
    after: str
    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """One read from JSON. Raises KeyError, TypeError or ValueError when it is none."""
        segments = tuple(
            Segment(int(one["at"]), tuple((bool(ours), str(text)) for ours, text in one["pieces"]))
            for one in value["segments"]
        )
        return cls(**{**value, "segments": segments})


@dataclass(frozen=True, kw_only=True)
class InstallRecord:
    """One agent in one project.

    :directories: those that were made, below the project, the outer ones first
    """

    tool: str
    project: str
    mount: str
    space: str
    files: tuple[FileRecord, ...]
    directories: tuple[str, ...]

    @classmethod
    def read(cls, data: bytes) -> Self | None:
        """A record from its file's bytes; None when they are none."""
        try:
            value = json.loads(data)
            files = tuple(FileRecord.of(one) for one in value["files"])
            return cls(**{**value, "files": files, "directories": tuple(value["directories"])})
        except (KeyError, TypeError, ValueError):
            return None

    def to_bytes(self) -> bytes:
        """What its file holds."""
        return json.dumps(asdict(self), indent=1).encode()

    def file(self, path: str) -> FileRecord | None:
        """What is known of one file."""
        return next((one for one in self.files if one.path == path), None)


@dataclass(frozen=True)
class ContextFile:
    """A file in a project that shows a space's context to an agent.

    :part: its path below the project
    :head: what it begins with
    """

    project: Path
    space: str
    part: str
    head: str

    @property
    def path(self) -> Path:
        """Where it was installed; a link may stand there by now."""
        return self.project / self.part


def folder() -> Path:
    """Where the records are."""
    return platformdirs.user_state_path("livememfs") / "installs"


def path_of(tool: AgentName, project: Path) -> Path:
    """The file of the record of one agent in one project."""
    name = hashlib.sha256(f"{tool}\0{project}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return folder() / f"{name}.json"


def find(tool: AgentName, project: Path) -> InstallRecord | None:
    """The record of one agent in one project."""
    return _read(path_of(tool, project))


def context_files(mountpoint: Path) -> list[ContextFile]:
    """The files that show spaces of this mount and are still there, by path.

    One that its user removed is not listed, so that nobody writes it again; one that cannot be looked at is, for
    whoever opens it hears why.
    """
    found = [
        ContextFile(Path(record.project), record.space, rule.path, rule.head)
        for record in records()
        if record.mount == str(mountpoint)
        and (rule := AGENTS[AgentName(record.tool)].rule) is not None
        and record.file(rule.path) is not None
    ]
    return sorted((file for file in found if _may_be_there(file.path)), key=lambda file: file.path)


def _may_be_there(path: Path) -> bool:
    """Whether a file is there, or its place does not answer: one dead disk must not hide the other projects."""
    try:
        return path.is_file()
    except OSError:
        return True


def records() -> Iterator[InstallRecord]:
    """All there are of agents that are known."""
    for path in sorted(folder().glob("*.json")):
        if (record := _read(path)) is not None and record.tool in list(AgentName):
            yield record


def _read(path: Path) -> InstallRecord | None:
    with contextlib.suppress(OSError):
        return InstallRecord.read(path.read_bytes())
    return None
