"""`livememfs audit`: what the memory of a space is worth, and what to do about what is not.

Owns what is printed, and who makes the audit: a mount of the same store if one runs, which has the index open and
counts that are not in the store yet; else this process, with the index that a mount left, or one of its own. Main
thread only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, on_store
from livememfs.cli.space import SpaceName

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.config import Settings

COLUMNS = ["TOLD", "USED", "TOKENS", "PATH"]
OF_THE_STORE = "the counts are those in the store, to which each mount adds its own every minute"


@command
def audit(choice: Choice, space: SpaceName, as_json: JsonFlag = False) -> None:
    """Show what a space tells in vain, says twice, or never tells, and its cost.

    livememfs audit project
    """
    settings = choice.on_store()
    found = _by_mount(settings, space) or _by_us(settings, space)
    if as_json:
        output.print_json(found)
        return
    output.say(
        f"{output.plural(found['memories'], 'memory', 'memories')}; of all records {found['told']:,} were told, for"
        f" about {found['told_tokens']:,} tokens,\nand {found['used']:,} were used."
    )
    for part in found["parts"].values():
        if rows := part["rows"]:
            of = f", {len(rows)} of {part['found']:,}" if part["found"] > len(rows) else ""
            output.say("", f"{part['title']}{of}", f"To do: {part['to_do']}.")
            output.table(COLUMNS, [cells for row in rows for cells in _cells(row)])
    output.note(*found["notes"])


def _by_mount(settings: Settings, space: str) -> dict[str, Any] | None:
    """The audit that a running mount of the same store makes; None without one, or if nobody uses the space there."""
    from livememfs.cli.mounting import mounts
    from livememfs.cli.mounting.starting import place_of
    from livememfs.tree.audit import FOR_PROGRAMS

    for record in mounts.records():
        if record.is_alive and record.place and _same(record.place, place_of(settings)):
            try:
                with output.patience(f"waiting for the mount on {record.mountpoint}"):
                    page = json.loads((Path(record.mountpoint) / ".livememfs" / FOR_PROGRAMS).read_bytes())
                if found := page["spaces"].get(space):
                    return dict(found)
            except (OSError, ValueError, KeyError):  # it ends, or hangs, or is of another version
                continue
    return None


def _same(one: Any, other: Any) -> bool:
    return {**one, "keys": None} == {**other, "keys": None}


def _by_us(settings: Settings, space: str) -> dict[str, Any]:
    from livememfs.cli.search import INDEXED_WITHIN
    from livememfs.memories.audit import audit as audit_of
    from livememfs.memories.audit import figures
    from livememfs.tree.space.stale import StaleMemories

    async def work(app: App) -> dict[str, Any]:
        await app.recall.prepare([space], INDEXED_WITHIN)
        stale = StaleMemories(app).found
        return figures(await audit_of(app.replica, app.clock, app.recall, app.uses, space, stale=stale))

    found = on_store(settings, work, space)
    return {**found, "notes": [*found["notes"], OF_THE_STORE]}


def _cells(row: dict[str, Any]) -> list[list[str]]:
    """A line for the record, and one for each of: the other of a pair, what it says."""
    cost = row["discovery_tokens"] or row["told_tokens"]
    first = [f"{row['told']:,}", f"{row['uses']:,}", f"{cost:,}" if cost else "-", row["path"]]
    return [first, *(["", "", "", f"  {line}"] for line in (row["beside"], row["why"], row["text"]) if line)]
