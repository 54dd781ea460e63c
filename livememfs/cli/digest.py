"""`livememfs digest`: store the lasting facts of new notes as memories, here or through a mount.

Owns the sentence about the outcome; `cli/runs.py` does the rest. Main thread only.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from livememfs.cli import output, runs
from livememfs.cli.common import Choice, JsonFlag, command
from livememfs.cli.space import SpaceName


@command
def digest(
    choice: Choice,
    space: SpaceName,
    wait: runs.Wait = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing and show what would be stored.")] = False,
    max_notes: runs.MaxNotes = None,
    agent: runs.OfAgent = None,
    accept: runs.Accept = None,
    mountpoint: runs.Through = None,
    as_json: JsonFlag = False,
) -> None:
    """Store the lasting facts of SPACE's new notes as memories."""
    options = runs.options_of("digest", dry_run=dry_run, agent=agent, max_notes=max_notes, accept=accept)
    request = runs.RunRequest(space, options, mountpoint, wait)
    outcome, diff = runs.ask(choice.load(), request)
    if not as_json:
        for memory in outcome.get("memories", ()):
            output.say(_line(memory))
    runs.end(request, outcome, diff, _figures, as_json=as_json)


def _line(memory: dict[str, Any]) -> str:
    """A memory as a dry run shows it."""
    lasts = f", for {memory['ttl']}" if memory["ttl"] else ""
    return f"+ {memory['collection']} ({memory['type']}{lasts}): {memory['content']}"


def _figures(outcome: dict[str, Any]) -> str:
    """How many notes were read and memories stored, or would be."""
    done = ("would be read", "would be stored") if outcome.get("dry_run") else ("read", "stored")
    memories = output.plural(outcome["memories_stored"], "memory", "memories")
    return f"{output.plural(outcome['notes_processed'], 'note')} {done[0]}, {memories} {done[1]}"
