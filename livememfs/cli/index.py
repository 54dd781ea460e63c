"""`livememfs index`: the search index of a bucket on this machine: how it is, whether it is whole, made anew.

Owns what is printed. Works on the index that no mount uses; a mount tells of its own in `status.json`. Main thread
only.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Any

import typer

from livememfs.app import index_folder, open_app, open_engine
from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, quiet_log, run
from livememfs.cli.search import INDEXED_WITHIN, all_spaces
from livememfs.config import Settings
from livememfs.errors import LiveMemError

app = typer.Typer(
    help="Look at the search index on this machine, or make it anew.", no_args_is_help=True, rich_markup_mode=None
)


@app.command()
@command
def status(choice: Choice, as_json: JsonFlag = False) -> None:
    """Say what the index holds."""
    settings = choice.load()
    quiet_log(settings)
    figures = _opened(settings)[0]
    if as_json:
        output.print_json(figures)
        return
    output.say(f"{figures['records']:,} records of {figures['objects']:,} objects in {figures['folder']}")
    output.say(f"{figures['pieces']:,} texts, {figures['embedded']:,} of them with a vector of {figures['model']}")


@app.command()
@command
def verify(choice: Choice, as_json: JsonFlag = False) -> None:
    """Compare the parts of the index with each other; exit 1 when something is wrong."""
    settings = choice.load()
    quiet_log(settings)
    figures, problems = _opened(settings)
    if as_json:
        output.print_json({**figures, "problems": problems})
    elif not problems:
        output.say(f"{figures['pieces']:,} texts, nothing wrong")
    if problems:
        raise LiveMemError("; ".join(problems) + "; `livememfs index rebuild` makes it anew")


@app.command()
@command
def rebuild(choice: Choice, as_json: JsonFlag = False) -> None:
    """Make the index of all spaces anew from the bucket."""
    settings = choice.load()
    quiet_log(settings)
    _opened(settings)  # nobody else uses it
    shutil.rmtree(index_folder(settings), ignore_errors=True)
    with output.busy("indexing"):
        run(_index_all, settings)
    figures = _opened(settings)[0]
    if as_json:
        output.print_json(figures)
    else:
        output.say(f"{figures['records']:,} records, {figures['embedded']:,} texts with a vector")


async def _index_all(settings: Settings) -> None:
    async with open_app(settings) as app:
        await app.recall.prepare(await all_spaces(app.replica), INDEXED_WITHIN)


def _opened(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The figures of the index and what is wrong with it. CacheInUse when a mount has it."""
    folder = index_folder(settings)
    index = open_engine(settings, folder)
    try:
        return {"folder": str(folder), "model": index.model, **asdict(index.statistics())}, index.verify()
    finally:
        index.close()
