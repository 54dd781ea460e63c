"""`livememfs index`: show, check and rebuild the search index of a bucket.

Owns what is printed. Works on the index of this machine while no mount uses it, or on the shared index of a team at any
time; a mount shows the figures of its own index in `status.json`. Main thread only.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from livememfs.app import open_app
from livememfs.app.recall import drop_engine, index_folder, open_engine
from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, quiet_log, run
from livememfs.cli.search import INDEXED_WITHIN, all_spaces
from livememfs.config import Settings
from livememfs.errors import LiveMemError

app = typer.Typer(help="Show, check or rebuild the search index.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@command
def status(choice: Choice, as_json: JsonFlag = False) -> None:
    """Show how much the index contains."""
    settings = choice.load()
    quiet_log(settings)
    figures = _opened(settings)[0]
    if as_json:
        output.print_json(figures)
        return
    place = figures.get("folder") or figures["database"]
    output.say(f"{figures['records']:,} records of {figures['objects']:,} objects in {place}")
    output.say(f"{figures['pieces']:,} texts, {figures['embedded']:,} of them with a vector of {figures['model']}")


@app.command()
@command
def verify(choice: Choice, as_json: JsonFlag = False) -> None:
    """Check that the parts of the index agree; exit 1 on a fault."""
    settings = choice.load()
    quiet_log(settings)
    figures, problems = _opened(settings)
    if as_json:
        output.print_json({**figures, "problems": problems})
    elif not problems:
        output.say(f"{figures['pieces']:,} texts, no fault")
    if problems:
        raise LiveMemError("; ".join(problems) + "; `livememfs index rebuild` rebuilds it")


@app.command()
@command
def rebuild(choice: Choice, as_json: JsonFlag = False) -> None:
    """Rebuild the index of all spaces from the bucket."""
    settings = choice.load()
    quiet_log(settings)
    drop_engine(settings)
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
    """The figures of the index and its faults. CacheInUse while a mount has this machine's index open."""
    folder = Path() if settings.index_url else index_folder(settings)
    index = open_engine(settings, folder)
    try:
        where = {"database": _database(settings)} if settings.index_url else {"folder": str(folder)}
        return {**where, "model": index.model, **asdict(index.statistics())}, index.verify()
    finally:
        index.close()


def _database(settings: Settings) -> str:
    """The address of the shared index, without the login."""
    from livememfs.recall.postgres.connection import place_of

    return place_of(settings.index_url)
