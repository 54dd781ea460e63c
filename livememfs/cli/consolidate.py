"""`livememfs consolidate`: fold a space's notes into its bank, here or through a mount.

Owns turning a result into prose and an exit code. Without `--mountpoint` the run happens in this process; with it the
command is what a shell would do by hand: write to `.consolidate`, read `.consolidate.wait`. Main thread only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from livememfs.app import open_app
from livememfs.cli import mounts, output
from livememfs.cli.common import Choice, JsonFlag, command, quiet_log, run
from livememfs.cli.mount import resolve
from livememfs.cli.space import SpaceName, naming_the_space
from livememfs.config import Settings
from livememfs.errors import LiveMemError, MountError, NotFound
from livememfs.pipelines import spaces
from livememfs.pipelines.options import RunOptions
from livememfs.tree.space import CONTROL, DIFF, WAIT


@command
def consolidate(
    choice: Choice,
    space: SpaceName,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --mountpoint: wait for the result. Without it that is always so.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing and show what would change.")] = False,
    max_notes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Take at most so many notes.", show_default=False)
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Take only notes of this agent.", show_default=False)
    ] = None,
    mountpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Let the daemon of this mount do it.", show_default=False)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Fold the notes of SPACE into its bank."""
    options = RunOptions(dry_run=dry_run, agent=agent, max_notes=max_notes)
    settings = choice.load()
    quiet_log(settings)
    if mountpoint is not None:
        outcome, diff = _through_mount(resolve(mountpoint), space, options, wait)
    else:
        with naming_the_space(space):
            outcome, diff = run(_here, settings, space, options)
    if as_json:
        output.print_json({**outcome, "diff": diff} if dry_run else outcome)
    else:
        _tell(space, outcome, diff)
    if outcome["state"] in ("partial", "error"):
        raise typer.Exit(1)


async def _here(settings: Settings, space: str, options: RunOptions) -> tuple[dict[str, Any], str | None]:
    """Run in this process."""
    async with open_app(settings) as app:
        await spaces.require_space(app.replica, space)
        with output.busy(f"consolidating {space} with {settings.llmaas_model or 'built-in filing'}"):
            result = await app.consolidations.run_once(space, options)
        return {"space": space, **result.to_json()}, result.diff


# --- through a mount ---------------------------------------------------------------------------------------------


def _through_mount(path: Path, space: str, options: RunOptions, wait: bool) -> tuple[dict[str, Any], str | None]:
    """Ask the daemon. The wait file answers about every request made before it is opened, so ours is among them."""
    if str(path) not in mounts.kernel_mounts():
        raise MountError(f"no livememfs is mounted on {path}")
    folder = path / space
    if not (folder / CONTROL).exists():
        raise NotFound(path=f"space {space} on {path}")
    wanted = {"dry_run": options.dry_run, "agent": options.agent, "max_notes": options.max_notes}
    request = {name: value for name, value in wanted.items() if value}
    try:
        (folder / CONTROL).write_text(json.dumps(request))
        if not wait:
            return json.loads((folder / CONTROL).read_bytes()), None
        outcome = _follow(folder / WAIT, space)
        return outcome, (folder / DIFF).read_text() if options.dry_run and outcome["state"] == "ok" else None
    except OSError as error:
        raise LiveMemError(f"{error.filename or folder}: {error.strerror}") from None


def _follow(path: Path, space: str) -> dict[str, Any]:
    """Read progress until the result. A failed run ends the stream with an error, after its result was read."""
    last: dict[str, Any] = {}
    with output.busy(f"consolidating {space}") as show, path.open("rb", buffering=0) as stream:
        try:
            for line in stream:
                last = json.loads(line)
                show(f"consolidating {space}: {last.get('phase') or last['state']}")
        except OSError:
            if last.get("state") != "error":
                raise
    return last


# --- telling -----------------------------------------------------------------------------------------------------


def _tell(space: str, outcome: dict[str, Any], diff: str | None) -> None:
    state = outcome["state"]
    if diff is not None:
        output.say(diff.rstrip("\n"))
    if state in ("queued", "running"):
        output.say(f"{space}: {state}; `cat .consolidate` in the space shows how it goes")
        return
    if state == "error":
        advice = outcome.get("what_to_do")
        output.note(f"livememfs: {space} was not consolidated: {outcome['reason']}{f' ({advice})' if advice else ''}")
        return
    output.say(_figures(space, outcome))
    for text in (outcome.get("message"), outcome.get("reason"), outcome.get("what_to_do")):
        if text:
            output.note(f"{space}: {text}")


def _figures(space: str, outcome: dict[str, Any]) -> str:
    """One sentence about a run that did something."""
    done = "would be taken in" if outcome.get("dry_run") else "taken in"
    files = outcome["bank_files_created"] + outcome["bank_files_updated"]
    tokens = f", {outcome['llm_tokens_used']} tokens" if outcome["llm_tokens_used"] else ""
    return (
        f"{space}: {output.plural(outcome['notes_processed'], 'note')} {done}, "
        f"{output.plural(files, 'bank file')} written, {outcome['notes_remaining']} left, "
        f"{outcome['duration_seconds']:.1f} s by {outcome['model'] or 'nobody'}{tokens}"
    )
