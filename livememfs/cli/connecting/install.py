"""`livememfs install` and `uninstall`: connect an agent to a space, in one project or in all, and undo that.

Owns the choice of mount, project and space, and the command that starts the MCP server. No file changes before the user
saw the change and agreed to it. Refuses the home directory as a project: its settings are for all projects, which is
what `--user` is for. Main thread only.
"""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.agents.install.table import AgentName
from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, expanded
from livememfs.cli.mounting import mirrors, mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.errors import NotFound, UsageError
from livememfs.fuse.mounted import ask
from livememfs.records import keys
from livememfs.records.names import check_space_name

if TYPE_CHECKING:
    from livememfs.agents.install.plan import Plan

CONTEXT = "context.md"

ToolName = Annotated[AgentName, argument(metavar="TOOL", help=f"{', '.join(list(AgentName)[:-1])} or {AgentName.ZED}.")]
User = Annotated[bool, typer.Option("--user", help="For all projects of this user; each has its own space.")]
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
            "--space",
            metavar="SPACE",
            help="The space to use.",
            show_default="named after the project",
            autocompletion=completion.spaces,
        ),
    ] = "",
    mount: Annotated[
        Path | None,
        typer.Option(parser=Path, metavar="DIR", help="Where it is mounted.", show_default="the one mount there is"),
    ] = None,
    project: ProjectDirectory = Path(),
    user: User = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Claude Code: hooks in settings.json, which the team shares.")
    ] = False,
    mcp: Annotated[bool, typer.Option("--mcp", help="Set up the MCP server too.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Connect TOOL to a space: hooks, context file and MCP server.

    In one project, or with --user in all. It asks first; `uninstall` restores each file to the byte.

        livememfs install claude-code
        livememfs install codex --space project --mcp
    """

    from livememfs.agents.install import plan, tools
    from livememfs.agents.install.command import MACHINE

    choice.quiet()
    _check_options(tool, space, shared=shared, user=user)
    where = resolve(mount) if mount is not None else the_mount()
    _expect_no_mirror(where)
    there = project_of(project, user=user)
    _check_once(tool, user=user)
    space = MACHINE if user else check_space_name(space or _space_of(there))
    path = where / space
    look_for(where, None if user else path)
    context = None if user or tools.AGENTS[tool].rule is None else _context(where, path)
    wanted = tools.WantedFile(space=str(path), shared=shared, server=program() if mcp else None, context=context)
    changes = plan.installation(tool, there, where, wanted)
    about = {"tool": tool, "project": there, "mount": where, "space": "" if user else space}
    done = settle(changes, about, yes=yes, dry_run=dry_run, as_json=as_json)
    if not as_json:
        whose = f"a space of {where} for each project" if user else f"space {space} of {where} in {there}"
        _tell(changes, done, f"{tool} uses {whose}")
    if done and changes.changes:
        output.note(tools.AGENTS[tool].hint)


def for_all_projects(tool: AgentName, mount: Path, *, yes: bool) -> None:
    """Connect an agent in all projects, as `install --user` does: the changes are shown, and without `yes` the person
    is asked. LiveMemError, and nothing was changed.
    """
    from livememfs.agents.install import plan, tools
    from livememfs.agents.install.command import MACHINE

    _check_once(tool, user=True)
    changes = plan.installation(
        tool, project_of(Path(), user=True), mount, tools.WantedFile(space=str(mount / MACHINE))
    )
    settle(changes, {}, yes=yes, dry_run=False, as_json=False)


@command
def uninstall(
    choice: Choice,
    tool: ToolName,
    project: ProjectDirectory = Path(),
    user: User = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove what `install` wrote in a project, or with --user for all.

    Exits 1 when a part stays because somebody changed it since.

        livememfs uninstall claude-code
    """

    from livememfs.agents.install import plan

    choice.quiet()
    there = project_of(project, user=user)
    changes = plan.removal(tool, there, home=user)
    done = settle(changes, {"tool": tool, "project": there}, yes=yes, dry_run=dry_run, as_json=as_json)
    if not as_json:
        _tell(changes, done, f"{tool} in {there} is without livememfs")
    if changes.left:
        raise typer.Exit(1)


# --- the choice of mount, project and space ----------------------------------------------------------------------


def _check_options(tool: AgentName, space: str, *, shared: bool, user: bool) -> None:
    """Refuse options that exclude each other. UsageError."""
    from livememfs.agents import projects

    if shared and (user or tool is not AgentName.CLAUDE_CODE):
        raise UsageError("--shared is only for claude-code in one project")
    if user and space:
        raise UsageError(f"with --user each project has its own space; `{projects.FILE}` in a project names another")


def _check_once(tool: AgentName, *, user: bool) -> None:
    """Refuse hooks for all projects and for one: the agent runs both and would be told everything twice. UsageError."""
    from livememfs.agents import projects
    from livememfs.agents.install import record, tools

    agent, home = tools.AGENTS[tool], Path.home().resolve()
    if agent.plugin is None and (agent.hooks is None or not agent.hooks.tells):
        return
    if user:
        others = [entry.project for entry in record.records() if entry.tool == tool and entry.project != str(home)]
        for place in others:
            undo = f"livememfs uninstall {tool} --project {shlex.quote(place)}"
            output.note(f"{place} has {tool}'s hooks too, which tell all twice: {undo}")
    elif record.find(tool, home) is not None:
        raise UsageError(
            f"{tool} is installed for all projects already; `{projects.FILE}` names another space for this one,"
            f" and `livememfs uninstall {tool} --user` removes it from all"
        )


def program() -> list[str]:
    """The command that starts this installation from any directory, by its absolute path."""
    called = Path(sys.argv[0]).absolute()
    beside = Path(sys.executable).with_name("livememfs")
    for path in (called, beside):
        if path.name == "livememfs" and path.is_file() and os.access(path, os.X_OK):
            return [str(path)]
    return [sys.executable, "-m", "livememfs"]


def _space_of(project: Path) -> str:
    """The space that is named after a project. UsageError without a git repository and without a project file."""
    from livememfs.agents import projects

    named = projects.find(project, home=Path.home().resolve(), host=socket.gethostname(), mounts=mounts.kernel_mounts())
    if named is None:
        raise UsageError(f"{project} is not in a git repository and has no {projects.FILE}: name a space with --space")
    if not named.space:
        raise UsageError(f"{named.folder / projects.FILE} cannot be used: {named.wrong}")
    return named.space


def project_of(given: Path, *, user: bool) -> Path:
    """The project's directory, with links resolved; with `user` the home directory.

    UsageError for another path that is no directory, or is the home directory.
    """
    if user:
        return Path.home().resolve()
    try:
        path = expanded(given).resolve()
        is_there = path.is_dir()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{given} cannot be looked at: {error}") from None
    if not is_there:
        raise UsageError(f"{path} is not a directory; name the project's with --project")
    if path == Path.home().resolve():
        raise UsageError(f"{path} is the home directory, and its settings are for all projects: use --user")
    return path


def the_mount() -> Path:
    """The only mount of this machine. UsageError when there is none, or more than one."""

    dead = {record.mountpoint for record in mounts.records() if not record.is_alive}
    live = [path for path in mounts.kernel_mounts() if path not in dead]
    if not live:
        for record in mirrors.records():
            _expect_no_mirror(Path(record.mountpoint))
        raise UsageError("nothing is mounted: mount first, or name the future mount point with --mount")
    if len(live) > 1:
        raise UsageError(f"there are several mounts, name one with --mount: {', '.join(live)}")
    return Path(live[0])


def _expect_no_mirror(directory: Path) -> None:
    """Refuse the directory of `livememfs sync`, whose files answer no hooks. UsageError."""
    if str(directory) not in mounts.kernel_mounts() and (mirror := mirrors.around(directory)) is not None:
        raise UsageError(
            f"{mirror} is a mirror, and `install` connects agents to mounts; for a mirror, give the agent these hooks "
            f"by hand: `livememfs hook SPACE/.hooks/<agent>.<Event>`, where SPACE is the absolute path of the space in "
            f"{mirror}; docs/mirror.md has an example"
        )


def look_for(mount: Path, space: Path | None) -> None:
    """Refuse a space that does not exist. A mount that does not answer is only noted: hooks do nothing then."""
    if str(mount) not in mounts.kernel_mounts():
        output.note(f"nothing is mounted on {mount} now; the hooks do nothing until it is")
        return
    answer = ask(mount, space / keys.META if space is not None else None)
    if space is not None and answer is not None and answer.errno == errno.ENOENT:
        raise NotFound(path=f"space {space.name} on {mount}; `mkdir {shlex.quote(str(space))}` makes it")
    if answer is None or answer.errno:
        reason = f" ({os.strerror(answer.errno)})" if answer is not None else ""
        output.note(f"the mount on {mount} does not answer{reason}; the hooks do nothing until it does")


def _context(mount: Path, space: Path) -> str | None:
    """The context file of the space as it is now; None when it cannot be read."""
    answer = ask(mount, space / CONTEXT)
    return answer.data.decode(errors="replace") if answer is not None and not answer.errno else None


# --- showing a plan and carrying it out --------------------------------------------------------------------------


def settle(changes: Plan, about: dict[str, Any], *, yes: bool, dry_run: bool, as_json: bool) -> bool:
    """Show the plan, ask, and carry it out; whether it was. UsageError when the user says no or cannot be asked."""
    if not as_json and changes.changes:
        output.say(changes.diff().rstrip("\n"))
    if changes.changes and not yes and not dry_run:
        files = output.plural(len(changes.changes), "file")
        output.confirm(
            f"Change {files} like this?",
            unasked=f"{files} would change; pass --yes to change without a question",
            refused="nothing was changed",
        )
    if not dry_run:
        changes.carry_out()
    if as_json:
        output.print_json({**about, **_figures(changes), "done": not dry_run})
    for left in changes.left:
        output.note(f"{left.path}: {left.detail} stays; remove it by hand")
    return not dry_run


def _figures(planned: Plan) -> dict[str, Any]:
    files = []
    for change in planned.changes:
        action = "create" if change.before is None else "remove" if change.after is None else "change"
        files.append({"path": planned.name(change), "action": action})
    left = [{"path": part.path, "detail": part.detail} for part in planned.left]
    return {"files": files, "left": left, "diff": planned.diff()}


def _tell(planned: Plan, done: bool, sentence: str) -> None:
    if not planned.changes:
        output.say("nothing needs to change")
    elif done and not planned.left:
        output.note(sentence)
