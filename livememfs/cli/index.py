"""`livememfs index`: show, check and rebuild the search index of a bucket.

Owns what is printed. Works on the index of this machine while no mount uses it, or on the shared index of a team at any
time; a mount shows the figures of its own index in `status.json`. Main thread only.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, JsonFlag, command, on_store
from livememfs.cli.search import INDEXED_WITHIN, all_spaces
from livememfs.errors import LiveMemError

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.config import Settings

app = listing.group("Show, check or rebuild the search index.")


@app.command()
@command
def status(choice: Choice, as_json: JsonFlag = False) -> None:
    """Show how much the index contains.

    livememfs index status
    """
    figures = _opened(choice.on_store())[0]
    if as_json:
        output.print_json(figures)
        return
    place = figures.get("folder") or figures["database"]
    output.say(f"{figures['records']:,} records of {figures['objects']:,} objects in {place}")
    output.say(f"{figures['pieces']:,} texts, {figures['embedded']:,} of them with a vector of {figures['model']}")
    if figures["former"]:
        output.say(f"until all have one, a mount searches the vectors of {figures['former']} if that can be loaded")


@app.command()
@command
def verify(choice: Choice, as_json: JsonFlag = False) -> None:
    """Check that the parts of the index agree; exit 1 on a fault.

    livememfs index verify
    """
    figures, problems = _opened(choice.on_store())
    if as_json:
        output.print_json({**figures, "problems": problems})
    elif not problems:
        output.say(f"{figures['pieces']:,} texts, no fault")
    if problems:
        raise LiveMemError("; ".join(problems) + "; `livememfs index rebuild` rebuilds it")


@app.command()
@command
def rebuild(choice: Choice, as_json: JsonFlag = False) -> None:
    """Rebuild the index of all spaces from the bucket.

    livememfs index rebuild
    """
    from livememfs.app.recall import drop_engine

    async def work(app: App) -> None:
        await app.recall.prepare(await all_spaces(app.replica), INDEXED_WITHIN)

    settings = choice.on_store()
    drop_engine(settings)
    with output.busy("indexing"):
        on_store(settings, work)
    figures = _opened(settings)[0]
    output.answer(
        figures, f"{figures['records']:,} records, {figures['embedded']:,} texts with a vector", as_json=as_json
    )


def _opened(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The figures of the index and its faults. CacheInUse while a mount has this machine's index open."""
    from livememfs.app.models import NONE
    from livememfs.app.recall import index_folder, open_engine

    folder = Path() if settings.index_url else index_folder(settings)
    index = open_engine(settings, folder)
    try:
        where = {"folder": str(folder)}
        if settings.index_url:
            from livememfs.recall.postgres.connection import place_of

            where = {"database": place_of(settings.index_url)}
        former = index.change.former if index.change is not None and settings.embed_model != NONE else ""
        return {**where, **asdict(index.statistics()), "former": former}, index.verify()
    finally:
        index.close()
