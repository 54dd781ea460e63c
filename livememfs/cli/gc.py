"""`livememfs gc`: list objects of the bucket that nothing uses any more, and with `--delete` remove them.

Owns what is printed. Refuses to remove anything without `--delete`. Main thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.runs.upkeep.gc import Finding, Removed

OLDER_THAN_DAYS = 30
MOST_DAYS = 36_500
"""A larger age would lead to a day before the first one that `datetime` has."""
COLUMNS = ("KIND", "WHAT", "SIZE", "LAST WRITTEN", "WHY")


@command
def gc(
    choice: Choice,
    space: Annotated[str | None, argument(metavar="[SPACE]", help="Only this space.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove the listed objects.")] = False,
    older_than: Annotated[
        int, typer.Option(min=1, max=MOST_DAYS, metavar="DAYS", help="Only objects not written for so many days.")
    ] = OLDER_THAN_DAYS,
    as_json: JsonFlag = False,
) -> None:
    """List unused objects; --delete removes them.

    livememfs gc
    livememfs gc project --delete --older-than 90
    """
    from livememfs.runs.upkeep.gc import find, remove

    async def work(app: App) -> tuple[list[Finding], Removed | None]:
        with output.busy("looking for unused objects"):
            findings = await find(app.replica, app.clock, space, older_than=timedelta(days=older_than))
        if not delete or not findings:
            return findings, None
        with output.bar("removing") as progress:
            leases = app.consolidations.leases
            return findings, await remove(app.replica, app.clock, leases, findings, progress=progress)

    findings, removed = on_store(choice.on_store(), work, space or "")
    if as_json:
        output.print_json(_figures(findings, removed))
        return
    _show(findings)
    if removed is not None:
        _tell(removed)
    elif findings:
        output.note("`--delete` removes them")


def _figures(findings: Sequence[Finding], removed: Removed | None) -> dict[str, Any]:
    """For programs. `removed` is null without `--delete`, or when nothing was found."""
    return {
        "found": [finding.to_json() for finding in findings],
        "objects": sum(len(finding.objects) for finding in findings),
        "bytes": sum(finding.size for finding in findings),
        "removed": removed,
    }


def _show(findings: Sequence[Finding]) -> None:
    if not findings:
        output.say("nothing is left behind")
        return
    rows = [[row.kind, row.key, output.size(row.size), output.when(row.modified), row.why] for row in findings]
    output.table(COLUMNS, rows, spare=["LAST WRITTEN"])
    count = output.plural(sum(len(finding.objects) for finding in findings), "object")
    output.say(f"{count} ({output.size(sum(finding.size for finding in findings))})")


def _tell(removed: Removed) -> None:
    output.say(f"{output.plural(removed.objects, 'object')} removed")
    for space, stamp in removed.backups.items():
        output.say(
            f"files removed from live/ of {space} are in backup {stamp}: `livememfs backup download {space} {stamp}`"
        )
    for key in removed.kept:
        output.note(f"{key} was written meanwhile and stays")
