"""`livememfs top`: what the mounts are doing, again and again.

Owns what is shown of a mount's `status.json`. Without a terminal it is shown once. Refuses to name anybody's notes, and
to wait long for a mount that does not answer. Main thread only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from livememfs.cli import output, progress
from livememfs.cli.common import Choice, command
from livememfs.cli.mounting import status

COLUMNS = ("MOUNT POINT", "STATE", "SPACES", "WAITING", "RUNS", "AGENTS", "ERRORS")
SPARE = ("SPACES", "RUNS")


@command
def top(
    choice: Choice,  # noqa: ARG001 - every command has these options
    every: Annotated[float, typer.Option("--every", min=0.5, metavar="SECONDS", help="Time between two looks.")] = 2.0,
) -> None:
    """Show what the mounts are doing, again and again.

    Per mount: spaces, what waits for the bucket, runs, what agents do, errors. Ctrl-C ends it.

        livememfs top
        livememfs top --every 10
    """
    if not progress.at_terminal(sys.stdout):
        output.table(COLUMNS, rows(status.look(), {}))
        return
    from rich.live import Live

    before: dict[str, Mapping[str, Any]] = {}
    with Live(screen=True, auto_refresh=False) as live:
        while True:
            statuses = status.look()
            live.update(_page(rows(statuses, before), live.console.width), refresh=True)
            before = {entry.mountpoint: entry.details for entry in statuses if entry.details}
            time.sleep(every)


def rows(statuses: Sequence[status.MountStatus], before: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """A row for each mount. `before`: the details of the last look, by mount point."""
    return [
        [entry.mountpoint, *_cells(entry.details, before.get(entry.mountpoint))]
        if entry.details
        else [entry.mountpoint, entry.state, *("-" for _ in COLUMNS[2:])]
        for entry in statuses
    ]


def _cells(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[str]:
    runs, sessions = _at(now, "statistics", "consolidations"), _at(now, "sessions", "events")
    waiting = f"{output.plural(now.get('pending', 0), 'file')}, {output.size(now.get('pending_bytes', 0))}"
    busy = f"{runs.get('running', 0)} now, {runs.get('queued', 0)} queued"
    failed = f", {runs['error']} failed" if runs.get("error") else ""
    asked = _since(now, before, "statistics", "hooks", "requests")
    agents = f"{output.plural(asked, 'hook')}, {output.plural(sessions.get('waiting', 0), 'event')} to observe"
    errors = str(_at(now, "statistics", "errors").get("errors", 0))
    last = f": {now['last_error']}" if now.get("last_error") else ""
    spaces = str(_at(now, "statistics", "tree").get("spaces", 0))
    return [
        f"{now.get('state', '')}",
        spaces,
        waiting if now.get("pending") else "-",
        busy + failed,
        agents,
        errors + last,
    ]


def _at(value: Any, *path: str) -> Mapping[str, Any]:
    """What lies there; empty where a daemon of another version has nothing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _since(now: Mapping[str, Any], before: Mapping[str, Any] | None, *path: str) -> int:
    """By how much a counter has grown since the last look; at the first look, all of it."""
    *way, name = path
    return int(_at(now, *way).get(name, 0)) - int(_at(before, *way).get(name, 0))


def _page(lines: Sequence[Sequence[str]], width: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    from livememfs.cli import tables

    if not lines:
        return Text("nothing is mounted; `livememfs mount DIRECTORY` mounts")
    return Group(tables.made(COLUMNS, lines, (), tables.fitting(COLUMNS, lines, SPARE, width)))
