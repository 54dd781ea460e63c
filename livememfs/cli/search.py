"""`livememfs search`: a question to one space or to all of them, without a mount.

Owns what is printed; a failed search exits with status 1. Uses the index that a mount of the same bucket left, or,
while a mount has that open, an index of its own. Both are built from the bucket and kept. Main thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, naming_the_space, on_store, option
from livememfs.records import keys
from livememfs.text.times import iso

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.cache.replica import Replica
    from livememfs.memories.uses import Shown
    from livememfs.recall.service import SearchAnswer

DEFAULT_BUDGET = 2_000
"""That of `recall/search/page.py`, repeated here because that loads slowly."""
INDEXED_WITHIN = 600.0
"""Seconds the first question waits for the index of a bucket. The answer says what is not indexed by then."""


@command
def search(
    choice: Choice,
    question: Annotated[str, argument(metavar="QUESTION", help="What to look for.")],
    space: Annotated[
        list[str] | None,
        typer.Option(
            "--space", metavar="SPACE", help="Only in this space; repeat for more.", autocompletion=completion.spaces
        ),
    ] = None,
    limit: Annotated[int | None, option(min=1, max=100, help="At most so many hits.")] = None,
    budget: Annotated[int, typer.Option(min=200, help="At most so many tokens on the page.")] = DEFAULT_BUDGET,
    as_json: JsonFlag = False,
) -> None:
    """Search notes and banks by words and by meaning.

    QUESTION may have filters.

        livememfs search 'which database did we choose'
        livememfs search 'type:decision after:2026-02 storage' --space project
    """
    from livememfs.memories.uses import shown
    from livememfs.recall.search.page import page
    from livememfs.spaces import making as spaces

    async def work(app: App) -> tuple[SearchAnswer, list[Shown]]:
        for name in space or []:
            with naming_the_space(name):
                await spaces.require_space(app.replica, name)
        searched = space or await all_spaces(app.replica)
        await app.recall.prepare(searched, INDEXED_WITHIN)
        answer = await app.recall.ask(question, searched, limit=limit)
        for name in {hit.record.space for hit in answer.found.hits} if as_json else ():
            await app.uses.known(name)
        return answer, [shown(app.uses.of(hit.record.space, hit.record.key)) for hit in answer.found.hits]

    answer, worths = on_store(choice.on_store(), work)
    if as_json:
        output.print_json(_figures(answer, worths))
    else:
        paths = [hit.record.key for hit in answer.found.hits]
        output.say(page(answer.query, answer.found, paths, budget=budget, notes=answer.notes).rstrip("\n"))
    if answer.failed:  # otherwise a script would take it for an empty result
        raise typer.Exit(1)


async def all_spaces(replica: Replica) -> list[str]:
    """The names of all spaces."""
    folders = (await replica.names.listing("")).folders
    named = [name for name in sorted(folders) if not name.startswith("_")]
    return [name for name in named if keys.META in (await replica.names.listing(f"{name}/")).objects]


def _figures(answer: SearchAnswer, worths: Sequence[Shown]) -> dict[str, Any]:
    from livememfs.text.size import tokens

    return {
        "query": answer.query.typed or answer.query.describe(),
        "read_as": list(answer.query.read_as),
        "strategy": answer.found.strategy,
        "notes": [*answer.notes, *answer.found.remarks],
        "hits": [
            {
                "rank": rank,
                "score": round(hit.score, 4),
                "key": hit.record.key,
                "ref": hit.record.ref,
                "space": hit.record.space,
                "kind": hit.record.kind,
                "type": hit.record.type,
                "agent": hit.record.agent,
                "trust": hit.record.trust.word,
                "code": hit.mark,
                "created": iso(datetime.fromtimestamp(hit.record.created, UTC)),
                "title": hit.record.title,
                "text": hit.record.pieces[hit.piece],
                "tokens": tokens(hit.record.pieces[hit.piece]),
                "reasons": dict(hit.reasons),
                **worth,
            }
            for rank, (hit, worth) in enumerate(zip(answer.found.hits, worths, strict=True), 1)
        ],
    }
