"""`livememfs consolidate`: fold a space's notes into its bank, here or through a mount.

Owns the sentence about the outcome; `cli/runs.py` does the rest. Main thread only.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from livememfs.cli import output, runs
from livememfs.cli.common import Choice, JsonFlag, command
from livememfs.cli.space import SpaceName


@command
def consolidate(
    choice: Choice,
    space: SpaceName,
    wait: runs.Wait = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing and show what would change.")] = False,
    max_notes: runs.MaxNotes = None,
    agent: runs.OfAgent = None,
    accept: runs.Accept = None,
    mountpoint: runs.Through = None,
    as_json: JsonFlag = False,
) -> None:
    """Fold the notes of SPACE into its bank."""
    options = runs.options_of("consolidation", dry_run=dry_run, agent=agent, max_notes=max_notes, accept=accept)
    request = runs.RunRequest(space, options, mountpoint, wait)
    outcome, diff = runs.ask(choice.load(), request)
    if as_json and diff is not None:
        outcome = {**outcome, "diff": diff}
    runs.end(request, outcome, diff, _figures, as_json=as_json)


def _figures(outcome: dict[str, Any]) -> str:
    """How many notes were consolidated and files written, or would be."""
    done = "would be taken in" if outcome.get("dry_run") else "taken in"
    files = outcome["bank_files_created"] + outcome["bank_files_updated"]
    notes = output.plural(outcome["notes_processed"], "note")
    dropped = outcome.get("lines_dropped", 0)
    gone = f", {output.plural(dropped, 'line')} dropped" if dropped else ""
    return f"{notes} {done}, {output.plural(files, 'bank file')} written{gone}"
