"""`livememfs consolidate` and `livememfs digest`: start a run of a space, here or through a mount.

Owns how the result is awaited and printed, failures included. Without a mount point the run happens in this process.
With one, the command does what a shell would do by hand: write to the control file, read the wait file. Main thread
only.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, on_store, option
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.cli.space import SpaceName
from livememfs.errors import BadRequest, LiveMemError, MountError, NotFound, UsageError
from livememfs.runs.options import CONTROLS, KINDS, RunKind, RunOptions

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.config import Settings

Wait = Annotated[
    bool, typer.Option("--wait", help="With --mountpoint: wait for the result. Without --mountpoint it always waits.")
]
MaxNotes = Annotated[int | None, option(min=1, metavar="N", help="Take at most so many notes.")]
OfAgent = Annotated[str | None, option(metavar="NAME", help="Take only notes of this agent.")]
Accept = Annotated[int | None, option(min=1, metavar="N", help="Carry out the plan of run N, which was held.")]
Through = Annotated[Path | None, option(parser=Path, metavar="DIR", help="Run in the daemon of this mount.")]


@command
def consolidate(
    choice: Choice,
    space: SpaceName,
    wait: Wait = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing and show what would change.")] = False,
    max_notes: MaxNotes = None,
    agent: OfAgent = None,
    accept: Accept = None,
    mountpoint: Through = None,
    as_json: JsonFlag = False,
) -> None:
    """Fold the notes of SPACE into its bank.

    livememfs consolidate project
    livememfs consolidate project --dry-run
    """
    options = _options("consolidation", dry_run=dry_run, agent=agent, max_notes=max_notes, accept=accept)
    request = RunRequest(space, options, mountpoint, wait)
    outcome, diff = _ask(choice.on_store(), request)
    if as_json and diff is not None:
        outcome = {**outcome, "diff": diff}
    _end(request, outcome, diff, _of_bank, as_json=as_json)


def _of_bank(outcome: dict[str, Any]) -> str:
    """How many notes were consolidated and files written, or would be."""
    done = "would be taken in" if outcome.get("dry_run") else "taken in"
    files = outcome["bank_files_created"] + outcome["bank_files_updated"]
    notes = output.plural(outcome["notes_processed"], "note")
    dropped = outcome.get("lines_dropped", 0)
    gone = f", {output.plural(dropped, 'line')} dropped" if dropped else ""
    return f"{notes} {done}, {output.plural(files, 'bank file')} written{gone}"


@command
def digest(
    choice: Choice,
    space: SpaceName,
    wait: Wait = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing and show what would be stored.")] = False,
    max_notes: MaxNotes = None,
    agent: OfAgent = None,
    accept: Accept = None,
    mountpoint: Through = None,
    as_json: JsonFlag = False,
) -> None:
    """Store the lasting facts of SPACE's new notes as memories.

    livememfs digest project
    livememfs digest project --max-notes 50
    """
    options = _options("digest", dry_run=dry_run, agent=agent, max_notes=max_notes, accept=accept)
    request = RunRequest(space, options, mountpoint, wait)
    outcome, diff = _ask(choice.on_store(), request)
    if not as_json:
        for memory in outcome.get("memories", ()):
            lasts = f", for {memory['ttl']}" if memory["ttl"] else ""
            output.say(f"+ {memory['collection']} ({memory['type']}{lasts}): {memory['content']}")
    _end(request, outcome, diff, _of_memories, as_json=as_json)


def _of_memories(outcome: dict[str, Any]) -> str:
    """How many notes were read and memories stored, or proposed, or would be."""
    would = "would be " if outcome.get("dry_run") else ""
    read = f"{output.plural(outcome['notes_processed'], 'note')} {would}read"
    if waiting := outcome.get("memories_proposed", 0):
        verb = "would wait" if would else "waits" if waiting == 1 else "wait"
        memories = output.plural(waiting, "memory", "memories")
        return f"{read}, {memories} {verb} in {outcome['space']}/.proposals/ until a person accepts or refuses"
    return f"{read}, {output.plural(outcome['memories_stored'], 'memory', 'memories')} {would}stored"


# --- the run -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunRequest:
    """A run to start. `mountpoint` None: in this process."""

    space: str
    options: RunOptions
    mountpoint: Path | None
    wait: bool

    @property
    def doing(self) -> str:
        """`consolidating alpha`."""
        return f"{KINDS[self.options.kind].doing} {self.space}"


def _options(kind: RunKind, **given: Any) -> RunOptions:
    """The options of a command. UsageError for options that exclude each other."""
    try:
        return RunOptions.from_json({name: value for name, value in given.items() if value}, kind=kind)
    except BadRequest as error:
        raise UsageError(f"--accept: {error.values['detail']}") from None


def _ask(settings: Settings, request: RunRequest) -> tuple[dict[str, Any], str | None]:
    """The outcome as the control file shows it, and the diff of a dry run, if there is one."""
    from livememfs.spaces import making as spaces

    if request.mountpoint is not None:
        return _through_mount(resolve(request.mountpoint), request)

    async def work(app: App) -> tuple[dict[str, Any], str | None]:
        await spaces.require_space(app.replica, request.space)
        with output.busy(f"{request.doing} with {settings.model_name}"):
            result = await app.consolidations.run_once(request.space, request.options)
        return {"space": request.space, **result.to_json()}, result.diff

    return on_store(settings, work, request.space)


def _end(
    request: RunRequest,
    outcome: dict[str, Any],
    diff: str | None,
    figures: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> None:
    """Print the outcome and exit with its code. `figures` gives one sentence about a successful run."""
    if as_json:
        output.print_json(outcome)
    else:
        _tell(request, outcome, diff, figures)
    if outcome["state"] in ("partial", "held", "error"):
        raise typer.Exit(1)


# --- through a mount ---------------------------------------------------------------------------------------------


def _through_mount(path: Path, request: RunRequest) -> tuple[dict[str, Any], str | None]:
    """Ask the daemon. The wait file covers every request made before it is opened: so ours, written first."""
    from livememfs.tree.space.root import DIFF, wait_name

    if str(path) not in mounts.kernel_mounts():
        raise MountError(f"no livememfs is mounted on {path}")
    options, folder = request.options, path / request.space
    control = folder / CONTROLS[options.kind]
    if not control.exists():
        raise NotFound(path=f"space {request.space} on {path}")
    wanted = {name: getattr(options, name) for name in ("dry_run", "agent", "max_notes", "accept")}
    try:
        control.write_text(json.dumps({name: value for name, value in wanted.items() if value}))
        if not request.wait:
            return json.loads(control.read_bytes()), None
        outcome = _follow(folder / wait_name(options.kind), request)
        shows = (options.dry_run and outcome["state"] == "ok") or outcome["state"] == "held"
        has_diff = shows and options.kind == "consolidation"
        return outcome, (folder / DIFF).read_text() if has_diff else None
    except OSError as error:
        raise LiveMemError(f"{error.filename or folder}: {error.strerror}") from None


def _follow(path: Path, request: RunRequest) -> dict[str, Any]:
    """Read progress until the result. A failed run ends the stream with an OSError, after the result was read."""
    last: dict[str, Any] = {}
    with output.busy(request.doing) as show, path.open("rb", buffering=0) as stream:
        try:
            for line in stream:
                last = json.loads(line)
                show(f"{request.doing}: {last.get('phase') or last['state']}")
        except OSError:
            if last.get("state") not in ("held", "error"):
                raise
    return last


# --- telling -----------------------------------------------------------------------------------------------------


def _tell(
    request: RunRequest, outcome: dict[str, Any], diff: str | None, figures: Callable[[dict[str, Any]], str]
) -> None:
    space, kind, state = request.space, request.options.kind, outcome["state"]
    if diff is not None:
        output.say(diff.rstrip("\n"))
    if state in ("queued", "running"):
        output.say(f"{space}: {state}; `cat {CONTROLS[kind]}` in the space shows its progress")
        return
    if state in ("held", "error"):
        advice = outcome.get("what_to_do")
        output.note(
            f"livememfs: {space} was not {KINDS[kind].done}: {outcome['reason']}{f' ({advice})' if advice else ''}"
        )
        return
    output.say(f"{space}: {figures(outcome)}, {_cost(outcome)}")
    for text in (outcome.get("message"), outcome.get("reason"), outcome.get("what_to_do")):
        if text:
            output.note(f"{space}: {text}")


def _cost(outcome: dict[str, Any]) -> str:
    tokens = f", {outcome['llm_tokens_used']} tokens" if outcome["llm_tokens_used"] else ""
    return (
        f"{outcome['notes_remaining']} left, "
        f"{outcome['duration_seconds']:.1f} s by {outcome['model'] or 'no model'}{tokens}"
    )
