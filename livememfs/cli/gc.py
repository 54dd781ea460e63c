"""`livememfs gc`: list what lies in the bucket and serves nobody any more, and remove it when told to.

Owns what a person is told about it. Refuses to remove anything without `--delete`. Main thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer

from livememfs.app import open_app
from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, quiet_log, run
from livememfs.cli.space import naming_the_space
from livememfs.config import Settings
from livememfs.runs.upkeep.gc import OLDER_THAN, Finding, Removed, find, remove

MOST_DAYS = 36_500
"""More would lead to before the first day that can be told."""
COLUMNS = ("KIND", "WHAT", "SIZE", "LAST WRITTEN", "WHY")


@command
def gc(
    choice: Choice,
    space: Annotated[str | None, typer.Argument(metavar="[SPACE]", help="Only this one's.", show_default=False)] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove what is listed.")] = False,
    older_than: Annotated[
        int, typer.Option(min=1, max=MOST_DAYS, metavar="DAYS", help="Only what was not written for so many days.")
    ] = OLDER_THAN.days,
    as_json: JsonFlag = False,
) -> None:
    """List what no consolidation takes and nobody uses, and remove it with --delete."""
    settings = choice.load()
    quiet_log(settings)
    with naming_the_space(space or ""):
        found, removed = run(_work, settings, space, timedelta(days=older_than), delete)
    if as_json:
        output.print_json(_figures(found, removed))
        return
    _show(found)
    if removed is not None:
        _tell(removed)
    elif found:
        output.note("`--delete` removes them")


async def _work(
    settings: Settings, space: str | None, older_than: timedelta, delete: bool
) -> tuple[list[Finding], Removed | None]:
    async with open_app(settings) as app:
        with output.busy("looking for what is left behind"):
            found = await find(app.replica, app.clock, space, older_than=older_than)
        if not delete or not found:
            return found, None
        with output.bar("removing") as progress:
            leases = app.consolidations.leases
            return found, await remove(app.replica, app.clock, leases, found, progress=progress)


def _figures(found: Sequence[Finding], removed: Removed | None) -> dict[str, Any]:
    """For programs. `removed` is null when nothing was to be removed."""
    return {
        "found": [one.to_json() for one in found],
        "objects": sum(len(one.objects) for one in found),
        "bytes": sum(one.size for one in found),
        "removed": removed,
    }


def _show(found: Sequence[Finding]) -> None:
    if not found:
        output.say("nothing is left behind")
        return
    rows = [[one.kind, one.key, output.size(one.size), output.when(one.modified), one.why] for one in found]
    output.table(COLUMNS, rows)
    count = output.plural(sum(len(one.objects) for one in found), "object")
    output.say(f"{count} ({output.size(sum(one.size for one in found))})")


def _tell(removed: Removed) -> None:
    output.say(f"{output.plural(removed.objects, 'object')} removed")
    for space, stamp in removed.backups.items():
        output.say(f"what stood in live/ of {space} is in backup {stamp}: `livememfs backup download {space} {stamp}`")
    for key in removed.kept:
        output.note(f"{key} was written meanwhile and stays")
