"""`livememfs audit`: what the memory of a space is worth, and what to do about what is not.

Owns what is printed. Uses the index that a mount of the same bucket left, or one of its own, as `search` does. Main
thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, on_store
from livememfs.cli.search import INDEXED_WITHIN
from livememfs.cli.space import SpaceName

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.memories.audit import Audit, Row

COLUMNS = ["TOLD", "USED", "TOKENS", "PATH"]


@command
def audit(choice: Choice, space: SpaceName, as_json: JsonFlag = False) -> None:
    """Show what a space tells in vain, says twice, or never tells, and its cost.

    livememfs audit project
    """

    from livememfs.memories.audit import audit as audit_of

    async def work(app: App) -> Audit:
        await app.recall.prepare([space], INDEXED_WITHIN)
        return await audit_of(app.replica, app.clock, app.recall, app.uses, space)

    found = on_store(choice.on_store(), work, space)
    if as_json:
        output.print_json(_figures(found))
        return
    output.say(
        f"{output.plural(found.memories, 'memory', 'memories')}; of all records {found.told:,} were told, for about"
        f" {found.tokens:,} tokens,\nand {found.used:,} were used."
    )
    for part in found.parts:
        if part.rows:
            of = f", {len(part.rows)} of {part.found:,}" if part.found > len(part.rows) else ""
            output.say("", f"{part.title}{of}", f"To do: {part.advice}.")
            output.table(COLUMNS, [cells for row in part.rows for cells in _cells(row)])
    output.note(*found.notes)


def _cells(row: Row) -> list[list[str]]:
    """A line for the record, and one for each of: the other of a pair, what it says."""
    cost = row.tokens or row.worth.tokens
    first = [f"{row.worth.told:,}", f"{row.worth.uses:,}", f"{cost:,}" if cost else "-", row.path]
    return [first, *(["", "", "", f"  {line}"] for line in (row.beside, row.why, row.text) if line)]


def _figures(found: Audit) -> dict[str, Any]:
    return {
        "space": found.space,
        "memories": found.memories,
        "told": found.told,
        "used": found.used,
        "told_tokens": found.tokens,
        "notes": list(found.notes),
        "parts": {
            part.name: {"found": part.found, "to_do": part.advice, "rows": [_as_json(row) for row in part.rows]}
            for part in found.parts
        },
    }


def _as_json(row: Row) -> dict[str, Any]:
    from livememfs.memories.uses import shown

    return {
        "path": row.path,
        "beside": row.beside or None,
        "text": row.text,
        "why": row.why or None,
        "discovery_tokens": row.tokens or None,
        **shown(row.worth),
    }
