"""Plans the changes of an installation or a removal.

Owns `Plan`: the changed files of the project, the change of the record, and the parts that stay because somebody
changed them. Every file is planned before the first is written; a file that cannot be edited ends the planning.
Blocking; any thread.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from livememfs.agents.install import command, disk, record, tools
from livememfs.agents.install.command import HookCommand
from livememfs.agents.install.disk import FileEdit
from livememfs.agents.install.jsontext import BOM
from livememfs.agents.install.parts import InstalledPart, SettingsPart
from livememfs.agents.install.record import FileRecord, InstallRecord
from livememfs.agents.install.segments import decoded, digest, encoded, found_and_taken_out, inserted, taken_out
from livememfs.agents.install.tools import AgentName, WantedFile
from livememfs.errors import CannotInstall, UsageError

_UNENDED = "\n\\ No newline at end of file\n"


@dataclass(frozen=True)
class Left:
    """A part of ours that stays: the file, and the part in words."""

    path: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The planned changes.

    :changes: the changes of files of the project
    :filed:   the change of the record; None without one
    :left:    parts of ours that stay because somebody changed them
    :emptied: directories to remove if they are empty then
    """

    project: Path
    changes: tuple[FileEdit, ...]
    filed: FileEdit | None
    left: tuple[Left, ...]
    emptied: tuple[Path, ...] = ()

    def diff(self) -> str:
        """The changes as a unified diff for `git apply` and `patch -p1`; bytes that are no UTF-8 are replaced."""
        return "".join(_diff(self.name(change), change) for change in self.changes)

    def name(self, change: FileEdit) -> str:
        """A changed file's path below the project."""
        return change.path.relative_to(self.project).as_posix()

    def carry_out(self) -> None:
        """Make all changes or none. CannotInstall."""
        disk.carry_out([*([self.filed] if self.filed else []), *self.changes], self.emptied)


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """The plan for one part: the change, the new record of the file, and the part that stays."""

    change: FileEdit | None = None
    filed: FileRecord | None = None
    left: str = ""


def installation(tool: AgentName, project: Path, mount: Path, wanted: WantedFile) -> Plan:
    """The plan of an installation; empty if everything is installed. Parts for another space are replaced.

    `project` has its links resolved. CannotInstall; UsageError for a path that cannot be in a command line.
    """
    if not wanted.space.isprintable():
        raise UsageError(f"the path {wanted.space!r} has characters that a hook's command cannot hold")
    old = record.find(tool, project)
    if wanted.context is None and old is not None and f"{old.mount}/{old.space}" == wanted.space:
        wanted = replace(wanted, context=_context_there(tool, project))
    parts = tools.parts(tool, wanted, _spaces(tool, project, old), home=wanted.user)
    planned = _all_planned(project, parts, old)
    changes = tuple(part_plan.change for part_plan in planned.values() if part_plan.change is not None)
    made = [missing for change in changes for missing in disk.missing_directories(project, change.path)]
    known = [*(old.directories if old else ()), *(directory.relative_to(project).as_posix() for directory in made)]
    new = InstallRecord(
        tool=tool,
        project=str(project),
        mount=str(mount),
        space=wanted.name,
        files=tuple(part_plan.filed for part_plan in planned.values() if part_plan.filed is not None),
        directories=tuple(dict.fromkeys(known)),
    )
    filed = _filing(tool, project, new if new.files else None)
    return Plan(project=project, changes=changes, filed=filed, left=_left(planned))


def removal(tool: AgentName, project: Path, *, home: bool = False) -> Plan:
    """The plan of a removal: exact to the byte with a record, else of all parts that can be recognised.

    `project` has its links resolved. `home`: it is the home directory, and the parts for all projects are removed.
    CannotInstall.
    """
    old = record.find(tool, project)
    planned = _all_planned(project, tools.parts(tool, None, _spaces(tool, project, old), home=home), old)
    files = tuple(part_plan.filed for part_plan in planned.values() if part_plan.filed is not None)
    kept = replace(old, files=files) if old is not None and files else None
    return Plan(
        project=project,
        changes=tuple(part_plan.change for part_plan in planned.values() if part_plan.change is not None),
        filed=_filing(tool, project, kept),
        left=_left(planned),
        emptied=tuple(project / directory for directory in old.directories) if old is not None else (),
    )


@dataclass(frozen=True, kw_only=True)
class InstallState:
    """Our unchanged parts in an agent's files.

    :hooks:  by their commands
    :server: the command of its MCP server; empty without one
    :unread: a file that the agent ignores, and why; empty without one
    """

    hooks: dict[str, HookCommand]
    server: list[str]
    unread: str


def standing(tool: AgentName, project: Path, *, home: bool = False) -> InstallState:
    """Our unchanged parts in an agent's files. A file that cannot be read counts as empty."""
    hooks: dict[str, HookCommand] = {}
    server: list[str] = []
    unread = ""
    for part in tools.parts(tool, None, home=home):
        try:
            text = decoded(disk.read(disk.real_path(project, part.path)) or b"")
            mine = {hook.command: hook for hook in part.hooks(text)}
            started = part.server(text)
            if (mine or started) and isinstance(part, SettingsPart) and (why := part.unread(text)):
                unread = f"{project / part.path}: {why}"
        except (CannotInstall, ValueError):
            continue  # planning this file reports it
        hooks |= mine
        server = started or server
    return InstallState(hooks=hooks, server=server, unread=unread)


# --- one file ----------------------------------------------------------------------------------------------------


def _all_planned(project: Path, parts: Sequence[InstalledPart], old: InstallRecord | None) -> dict[Path, _Planned]:
    """The plans by real file; of two parts whose links lead to one file the first counts."""
    planned: dict[Path, _Planned] = {}
    for part in parts:
        filed = old.file(part.path) if old is not None else None
        try:
            path = disk.real_path(project, part.path)
            if path not in planned:
                planned[path] = _planned(part, path, filed)
        except CannotInstall:
            if part.wanted or filed is not None:
                raise
    return planned


def _planned(part: InstalledPart, path: Path, filed: FileRecord | None) -> _Planned:
    before = disk.read(path)
    text = decoded(before) if before is not None else None
    try:
        if part.wanted and text is not None and part.stands(text):
            return _Planned(filed=filed or (_whole(part, text) if part.is_whole else None))
        original, left = _original(part, text, filed)
        after, new = _added(part, original) if part.wanted else (original, filed if left else None)
    except ValueError as error:
        if part.wanted:
            raise CannotInstall(path=path, detail=str(error)) from None
        is_ours = text is not None and (filed is not None or command.MARK in text)
        return _Planned(filed=filed, left=f"the part of livememfs, because {error}," if is_ours else "")
    data = encoded(after) if after is not None else None
    change = FileEdit(path=path, before=before, after=data, runs=part.runs) if data != before else None
    return _Planned(change=change, filed=new, left=left)


def _original(part: InstalledPart, text: str | None, filed: FileRecord | None) -> tuple[str | None, str]:
    """A file's text without our parts, None for no file; and in words the part that stays."""
    if text is None or (part.is_whole and (filed is not None or not part.removed(text))):
        return None, ""
    if filed is not None and digest(text) == filed.after:
        exact = _emptied(filed, taken_out(text, filed.segments))
        if (digest(exact) if exact is not None else "") == filed.before:
            return exact, ""
    segments = filed.segments if filed is not None else ()
    rest = text if _is_blank(text) else part.removed(found_and_taken_out(text, segments, part.may_cut))
    left = "" if _is_blank(rest) else part.remains(rest, segments)
    if filed is not None and part.is_hollow(rest):
        return _emptied(filed, rest), left
    return rest, left


def _is_blank(text: str) -> bool:
    return not text.strip(BOM + " \t\r\n")


def _emptied(filed: FileRecord, text: str) -> str | None:
    """The content a file returns to if only `text` is left: no file, its old blank content, or `text`."""
    return None if filed.created else text if filed.blank is None else filed.blank


def _added(part: InstalledPart, original: str | None) -> tuple[str, FileRecord]:
    blank = original or "" if _is_blank(original or "") else None
    base = part.skeleton(blank) if blank is not None else original or ""
    after, segments = inserted(base, part.added(base))
    before = digest(original) if original is not None else ""
    created = original is None
    return after, FileRecord(
        path=part.path, blank=blank, created=created, before=before, after=digest(after), segments=segments
    )


def _whole(part: InstalledPart, text: str) -> FileRecord:
    """The record of a file that is all ours and existed already."""
    return FileRecord(path=part.path, blank="", created=True, before="", after=digest(text), segments=())


# --- what is known before ----------------------------------------------------------------------------------------


def _spaces(tool: AgentName, project: Path, old: InstallRecord | None) -> set[str]:
    """The spaces of earlier installations, from the record and from the hooks."""
    recorded = {f"{old.mount}/{old.space}"} if old is not None else set()
    return recorded | {hook.space for hook in standing(tool, project).hooks.values()}


def _context_there(tool: AgentName, project: Path) -> str | None:
    """The text of the existing rule file after its head; None without one."""
    rule = tools.AGENTS[tool].rule
    data = disk.read(disk.real_path(project, rule.path)) if rule is not None else None
    return decoded(data).removeprefix(rule.head) if rule is not None and data is not None else None


# --- what comes of it --------------------------------------------------------------------------------------------


def _filing(tool: AgentName, project: Path, new: InstallRecord | None) -> FileEdit | None:
    path = record.path_of(tool, project)
    before, after = disk.read(path), new.to_bytes() if new is not None else None
    return FileEdit(path=path, before=before, after=after, private=True) if before != after else None


def _left(planned: dict[Path, _Planned]) -> tuple[Left, ...]:
    return tuple(Left(str(path), part_plan.left) for path, part_plan in planned.items() if part_plan.left)


def _diff(name: str, change: FileEdit) -> str:
    before, after = ((data or b"").decode("utf-8", "replace") for data in (change.before, change.after))
    lines = difflib.unified_diff(
        _lines(before),
        _lines(after),
        "/dev/null" if change.before is None else f"a/{name}",
        "/dev/null" if change.after is None else f"b/{name}",
    )
    is_program = change.before is None and change.runs
    mode = f"diff --git a/{name} b/{name}\nnew file mode 100755\n" if is_program else ""
    return mode + "".join(line if line.endswith("\n") else line + _UNENDED for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends a line, as for all tools that read diffs."""
    return [line + "\n" for line in text.split("\n")[:-1]] + [last for last in [text.rpartition("\n")[2]] if last]
