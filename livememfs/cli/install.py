"""`livememfs install` and `uninstall`: a space put before an agent in one project, and taken away again.

Owns which mount and project are meant, and that nobody's file changes before its change was shown and agreed to.
Refuses the home directory, whose settings would hold for every project. Main thread only.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from livememfs.agents.install import plan, tools
from livememfs.agents.install.plan import Plan
from livememfs.agents.install.tools import Tool
from livememfs.cli import completion, mounts, output
from livememfs.cli.common import Choice, JsonFlag, command, expanded, quiet_log
from livememfs.cli.mount import resolve
from livememfs.errors import NotFound, UsageError
from livememfs.fuse.mounted import ask
from livememfs.records import keys
from livememfs.records.names import check_space_name

CONTEXT = "context.md"
HINTS = {
    Tool.CLAUDE_CODE: "Claude Code asks once whether CLAUDE.md may import a file from outside the project",
    Tool.CURSOR: "Cursor reads the rule and the hooks when it opens the project",
    Tool.CODEX: "hooks of Codex need `[features] codex_hooks = true` in ~/.codex/config.toml, and a project it trusts",
}

ToolName = Annotated[Tool, typer.Argument(metavar="TOOL", help="claude-code, cursor or codex.", show_default=False)]
ProjectDirectory = Annotated[
    Path, typer.Option("--project", metavar="DIR", help="The project's top directory.", show_default="the current one")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


@command
def install(
    choice: Choice,
    tool: ToolName,
    space: Annotated[
        str,
        typer.Option(
            "--space", metavar="SPACE", help="The space to use.", show_default=False, autocompletion=completion.spaces
        ),
    ],
    mount: Annotated[
        Path | None,
        typer.Option(parser=Path, metavar="DIR", help="Where it is mounted.", show_default="the one mount there is"),
    ] = None,
    project: ProjectDirectory = Path(),
    shared: Annotated[
        bool, typer.Option("--shared", help="Claude Code: hooks in settings.json, which others get too.")
    ] = False,
    mcp: Annotated[bool, typer.Option("--mcp", help="The MCP server as well.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Put hooks and the memory of a space into a project of TOOL.

    Shows what changes and asks first. `uninstall` takes it away again, to the byte.
    """
    quiet_log(choice.load())
    if shared and tool is not Tool.CLAUDE_CODE:
        raise UsageError(f"--shared is for claude-code; {tool} has one file for hooks")
    where = resolve(mount) if mount is not None else _the_mount()
    path = where / check_space_name(space)
    _look_for(where, path)
    wanted = tools.Wanted(space=str(path), shared=shared, mcp=mcp, context=_context(path))
    there = _project(project)
    found = plan.installation(tool, there, where, wanted)
    about = {"tool": tool, "project": there, "mount": where, "space": space}
    done = _settle(found, about, yes=yes, dry_run=dry_run, as_json=as_json)
    if not as_json:
        _tell(found, done, f"{tool} uses space {space} of {where} in {there}")
    if done and found.changes:
        output.note(HINTS[tool])


@command
def uninstall(
    choice: Choice,
    tool: ToolName,
    project: ProjectDirectory = Path(),
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Take out of a project what `install` put there.

    Exits 1 when something stays because it was changed since.
    """
    quiet_log(choice.load())
    there = _project(project)
    found = plan.removal(tool, there)
    done = _settle(found, {"tool": tool, "project": there}, yes=yes, dry_run=dry_run, as_json=as_json)
    if not as_json:
        _tell(found, done, f"{tool} in {there} is without livememfs")
    if found.left:
        raise typer.Exit(1)


# --- what is meant -----------------------------------------------------------------------------------------------


def _project(given: Path) -> Path:
    """The project's directory, free of links. Raises UsageError when it is none, or the home directory."""
    try:
        path = expanded(given).resolve()
        is_there = path.is_dir()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{given} cannot be looked at: {error}") from None
    if not is_there:
        raise UsageError(f"{path} is not a directory; name the project's with --project")
    if path == Path.home().resolve():
        raise UsageError(f"{path} is the home directory, whose settings hold for all projects; name one with --project")
    return path


def _the_mount() -> Path:
    """The one mount there is. Raises UsageError when there are none or several."""
    dead = {record.mountpoint for record in mounts.records() if not record.is_alive}
    live = [path for path in mounts.kernel_mounts() if path not in dead]
    if not live:
        raise UsageError("nothing is mounted: mount first, or name with --mount where it will be")
    if len(live) > 1:
        raise UsageError(f"there are several mounts, name one with --mount: {', '.join(live)}")
    return Path(live[0])


def _look_for(mount: Path, space: Path) -> None:
    """Whether the space is there; a mount that does not serve is no hindrance, hooks are silent until it does."""
    if str(mount) not in mounts.kernel_mounts():
        output.note(f"nothing is mounted on {mount} now; the hooks do nothing until it is")
        return
    answer = ask(mount, space / keys.META)
    if answer is not None and answer.errno == errno.ENOENT:
        raise NotFound(path=f"space {space.name} on {mount}; `mkdir {space}` makes it")
    if answer is None or answer.errno:
        reason = f" ({os.strerror(answer.errno)})" if answer is not None else ""
        output.note(f"the mount on {mount} does not answer{reason}; the hooks do nothing until it does")


def _context(space: Path) -> str | None:
    """What the space has to say now; None when it cannot be read."""
    try:
        return (space / CONTEXT).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


# --- what is done about it ---------------------------------------------------------------------------------------


def _settle(found: Plan, about: dict[str, Any], *, yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Show the plan, ask, and carry it out; whether it was. Raises UsageError when nobody can agree, or does not."""
    if not as_json and found.changes:
        output.say(found.diff().rstrip("\n"))
    if found.changes and not yes and not dry_run:
        _confirm(len(found.changes))
    if not dry_run:
        found.carry_out()
    if as_json:
        output.print_json({**about, **_figures(found), "done": not dry_run})
    for one in found.left:
        output.note(f"{one.path}: {one.detail} stays; remove it by hand")
    return not dry_run


def _confirm(count: int) -> None:
    """Ask at the terminal."""
    if not sys.stdin.isatty():
        raise UsageError(f"{output.plural(count, 'file')} would change; pass --yes to have it done without being asked")
    output.note(f"Change {output.plural(count, 'file')} like this? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was changed")


def _figures(found: Plan) -> dict[str, Any]:
    """For programs."""
    files = [
        {
            "path": found.name(change),
            "action": "create" if change.before is None else "remove" if change.after is None else "change",
        }
        for change in found.changes
    ]
    left = [{"path": one.path, "detail": one.detail} for one in found.left]
    return {"files": files, "left": left, "diff": found.diff()}


def _tell(found: Plan, done: bool, sentence: str) -> None:
    if not found.changes:
        output.say("nothing is to be changed")
    elif done and not found.left:
        output.note(sentence)
