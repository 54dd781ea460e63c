"""`livememfs import` and `livememfs export`: the memory of other programs comes in, and ours goes out.

Owns what is printed: what came, what would come, what could not be read. An import with something that could not be
read ends with status 1, as a copy does. Main thread only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, argument, command, expanded, on_store, option
from livememfs.cli.search import INDEXED_WITHIN
from livememfs.cli.space import SpaceName
from livememfs.errors import UsageError

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.importing.export import Form, Written
    from livememfs.importing.importer import Imported

MOST_FOUND = 100
SOURCES = (
    "markdown", "jsonl", "memory-bank", "basic-memory", "mem0", "live-memory", "claude-code", "codex", "chatgpt",
    "claude-mem",
)  # fmt: skip
FORMS = ("markdown", "jsonl", "basic-memory")
"""The names of what `importing` reads and writes, repeated here because that loads slowly."""
PER = 1_000_000
"""Tokens of the price."""


@command
def import_(
    choice: Choice,
    space: SpaceName,
    source: Annotated[str, argument(metavar="SOURCE", help=f"One of: {', '.join(SOURCES)}.")],
    path: Annotated[Path, argument(metavar="PATH", help="The file or folder of that program.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would come, and bring nothing.")] = False,
    price: Annotated[float, option(min=0, metavar="N", help="With --dry-run: cost of a million tokens.")] = 0.0,
    as_json: JsonFlag = False,
) -> None:
    """Bring what another program remembers into SPACE.

    A second time brings only what is new.

        livememfs import project claude-code ~/.claude --dry-run
        livememfs import project markdown notes/
    """
    from livememfs.importing import sources
    from livememfs.importing.importer import Importer
    from livememfs.importing.sessions import Transcripts

    if source not in SOURCES:
        raise UsageError(f"there is no source {source}; use one of {', '.join(SOURCES)}")
    form = sources.SOURCES[source]
    if not (place := expanded(path)).exists():
        raise UsageError(f"there is no {place}; {source} takes {form.takes}")

    async def work(app: App) -> Imported:
        transcripts = Transcripts(app.capture, app.observer.parking)
        importer = Importer(
            app.replica, space, form, transcripts=transcripts, dry_run=dry_run, on_private=output.complain
        )
        with output.bar(f"reading {place}") as progress:
            return await importer.bring(place, progress)

    done = on_store(choice.on_store(), work, space)
    figures: dict[str, Any] = {"space": space, "dry_run": dry_run, "counts": dict(done.counts), "tokens": done.tokens}
    figures["faults"] = [{"place": fault.place, "reason": fault.reason} for fault in done.faults]
    output.answer(figures, *_said(done, dry_run, price), as_json=as_json)
    if done.faults:
        raise typer.Exit(1)


def _said(done: Imported, dry_run: bool, price: float) -> list[str]:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in done.counts.items())
    cost = f", {done.tokens * price / PER:.2f} at {price:g} for a million" if dry_run and price else ""
    lines = [f"{'would bring: ' if dry_run else ''}{counts}; about {output.plural(done.tokens, 'token')}{cost}"]
    if done.faults:
        lines += [f"{output.plural(len(done.faults), 'part')} could not be read:"]
        lines += [f"  {fault.place}: {fault.reason}" for fault in done.faults]
    return lines


@command
def export(
    choice: Choice,
    space: SpaceName,
    target: Annotated[Path, argument(metavar="TARGET", help="A folder, or a file for jsonl, that is not there yet.")],
    form: Annotated[str, typer.Option("--as", metavar="FORM", help=f"One of: {', '.join(FORMS)}.")] = "markdown",
    query: Annotated[str | None, option(metavar="QUESTION", help="Only what a search finds.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write the notes, memories and bank of SPACE as files that other programs read.

    livememfs export project exported/
    livememfs export project project.jsonl --as jsonl
    """
    from livememfs.importing import export as exporting

    if form not in FORMS:
        raise UsageError(f"there is no form {form}; use one of {', '.join(FORMS)}")
    chosen: Form = next(each for each in exporting.FORMS if each == form)

    async def work(app: App) -> Written:
        only = None
        if query is not None:
            await app.recall.prepare([space], INDEXED_WITHIN)
            only = {hit.record.key for hit in (await app.recall.ask(query, [space], limit=MOST_FOUND)).found.hits}
        place = expanded(target).absolute()
        with output.bar(f"exporting {space}") as progress:
            return await exporting.export(app.replica, space, place, chosen, only=only, progress=progress)

    done = on_store(choice.on_store(), work, space)
    for name in done.left_out:
        output.note(f"left out, since {form} cannot hold it: {name}")
    figures = {"target": str(target), "objects": done.objects, "left_out": list(done.left_out)}
    output.answer(figures, f"wrote {output.plural(done.objects, 'object')} to {target}", as_json=as_json)
