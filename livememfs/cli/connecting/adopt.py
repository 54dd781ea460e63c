"""`livememfs adopt`: an agent's own memory becomes a folder of a space, and is given back.

Owns what is said about it, and that the mount answers before a file on it is touched: a copy to a mount that hangs can
be neither interrupted nor killed. Nothing changes before the user saw it and agreed. Main thread only.
"""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.agents.install.table import AgentName
from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, argument, command
from livememfs.cli.connecting.install import DryRun, ProjectDirectory, Yes, project_of, the_mount
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.environment import environment
from livememfs.errors import NotFound, UsageError
from livememfs.fuse.mounted import ask
from livememfs.records import keys
from livememfs.records.names import check_space_name

if TYPE_CHECKING:
    from livememfs.agents.adopting.plan import Adopting

HINT = "Claude Code reads the setting when a session begins, in a project that you have told it to trust"


@command
def adopt(
    choice: Choice,
    tool: Annotated[AgentName, argument(metavar="TOOL", help="claude-code.")],
    space: Annotated[
        str, argument(metavar="SPACE", help="The space that gets it.", autocompletion=completion.spaces)
    ] = "",
    mount: Annotated[
        Path | None,
        typer.Option(parser=Path, metavar="DIR", help="Where it is mounted.", show_default="the one mount there is"),
    ] = None,
    project: ProjectDirectory = Path(),
    undo: Annotated[bool, typer.Option("--undo", help="Give the folder back, as it is now.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: JsonFlag = False,
) -> None:
    """Make TOOL's own memory a folder of SPACE, for all machines.

    Its files are copied there and stay as they are, to the byte. `--undo` copies them back.

        livememfs adopt claude-code project
        livememfs adopt claude-code --undo
    """

    from livememfs.agents.adopting import plan
    from livememfs.agents.adopting.place import check_tool

    host = keys.agent_slug(choice.quiet().host_name)
    check_tool(tool)
    if undo == bool(space):
        raise UsageError("name the space, or `--undo`, which takes none" if undo else "name the space that gets it")
    there = project_of(project, user=False)
    if undo:
        found = plan.find(tool, there)
        if found is not None:
            _expect_mounted(Path(found.folder).parents[2], "")
        adopting = plan.giving_back(tool, there, host=host)
    else:
        where = resolve(mount) if mount is not None else the_mount()
        _expect_mounted(where, check_space_name(space))
        home = Path.home().resolve()
        own = Path(environment().get("CLAUDE_CONFIG_DIR") or home / ".claude")
        adopting = plan.adoption(tool, there, where / space, home=home, configuration=own, host=host)
    _settle(adopting, {"tool": tool, "project": there}, yes=yes, dry_run=dry_run, as_json=as_json)


def _expect_mounted(mount: Path, space: str) -> None:
    """UsageError without a mount that answers, NotFound without the space."""
    if str(mount) not in mounts.kernel_mounts():
        raise UsageError(f"nothing is mounted on {mount}: mount the bucket there first")
    answer = ask(mount, mount / space / keys.META if space else None)
    if answer is not None and space and answer.errno == errno.ENOENT:
        raise NotFound(path=f"space {space} on {mount}; `mkdir {shlex.quote(str(mount / space))}` makes it")
    if answer is None or answer.errno:
        reason = f" ({os.strerror(answer.errno)})" if answer is not None else ""
        raise UsageError(f"the mount on {mount} does not answer{reason}")


def _settle(adopting: Adopting, about: dict[str, Any], *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Show what would change, ask, and do it. Exits 1 when a setting stays because somebody changed it since."""
    settings, steps = adopting.settings, adopting.steps
    if not as_json:
        output.say(*(f"{step.deed}: {adopting.target / step.target}" for step in steps))
        if settings.changes:
            output.say(settings.diff().rstrip("\n"))
    if (steps or settings.changes) and not yes and not dry_run:
        output.confirm(
            f"Change {output.plural(len(steps) + len(settings.changes), 'file')} like this?",
            unasked="files would change; pass --yes to change them without a question",
            refused="nothing was changed",
        )
    if not dry_run:
        adopting.carry_out()
    figures = {"from": adopting.source, "to": adopting.target, "done": not dry_run, "diff": settings.diff()}
    if as_json:
        output.print_json({**about, **figures, "files": [{"path": step.target, "action": step.deed} for step in steps]})
    elif not steps and not settings.changes:
        output.say("nothing needs to change")
    elif not dry_run:
        output.note(f"{about['tool']} has its memory of {about['project']} in {adopting.target}", HINT)
    for left in settings.left:
        output.note(f"{left.path}: {left.detail} stays; look at it")
    if settings.left:
        raise typer.Exit(1)
