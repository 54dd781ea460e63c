"""`/`: the spaces, and the state of the mount.

Owns who sees what: a space, and its errors and conflicts, are shown to callers who see the space; lines about no space
to callers who see all. Refuses to wait for a slow store: a figure that comes too late is left blank. Trio thread only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import trio

from livememfs import errors
from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.serve.web.asked import access_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.cache.replica import Replica
    from livememfs.records.access import Access
    from livememfs.serve.web.site import Site
    from livememfs.store.base import ObjectInfo

PATIENCE = 4.0
"""Seconds that the figures of the spaces may take together."""
AT_ONCE = 16
SHOWN_LINES = 8
ROOT_SECONDS = 1.0


@dataclass(slots=True)
class SpaceRow:
    """A space in the list. None: not known in time; `complete`: everything was known in time."""

    name: str
    complete: bool = False
    description: str = ""
    problem: str = ""
    notes: int | None = None
    bank: int | None = None
    consolidated: datetime | None = None
    state: str = ""


async def spaces(site: Site, request: Request) -> Response:
    """The page, or with `?part=spaces` the part of it that changes."""
    access, place = access_of(request), site.events.place(site.events.last)
    rows = await rows_of(site, access)
    part = request.query_params.get("part") == "spaces"
    template = "_overview.html" if part else "overview.html"
    return await site.page(request, template, after=place, rows=rows, **_figures(site, access))


async def rows_of(site: Site, access: Access) -> list[SpaceRow]:
    """The visible spaces, by name."""
    replica = site.context.replica
    top = await replica.names.listing("", max_age=ROOT_SECONDS)
    seen = (name for name in top.folders if not name.startswith("_") and site.root.shows(name) and access.sees(name))
    # A space whose figures come too late is shown without them: a slow store must not look empty.
    rows = {name: SpaceRow(name) for name in sorted(seen)}

    async def look(name: str) -> None:
        try:
            if keys.META not in (await replica.names.listing(f"{name}/")).objects:
                del rows[name]
                return
            await _fill(site, rows[name])
        except (errors.ObjectMissing, errors.NotFound):
            return  # it is being removed

    with trio.move_on_after(min(PATIENCE, site.timeout / 2)):
        await for_each(list(rows), look, at_once=AT_ONCE)
    return list(rows.values())


async def _fill(site: Site, row: SpaceRow) -> None:
    replica = site.context.replica
    row.state = site.context.consolidations.status(row.name)["state"]
    row.notes = len(await site.order.names(row.name, keys.LIVE))
    row.bank = len(await bank_files(replica, row.name))
    try:
        meta = Meta.parse((await replica.read(keys.meta_key(row.name))).data)
    except ValueError as error:
        row.problem = f"{keys.META} cannot be read: {error}"
    else:
        row.description, row.consolidated = meta.description, meta.last_consolidation
    row.complete = True


async def bank_files(replica: Replica, space: str) -> dict[str, ObjectInfo]:
    """The files of a bank by their path in it, in the order of paths."""
    files: dict[str, ObjectInfo] = {}
    folders = [keys.bank_prefix(space)]
    while folders:
        prefix = folders.pop()
        level = await replica.names.listing(prefix)
        folders += [f"{prefix}{name}/" for name in level.folders]
        for info in level.objects.values():
            parsed = keys.parse(info.key)
            if parsed.kind == "bank":
                files[parsed.name] = info
    return dict(sorted(files.items()))


def _figures(site: Site, access: Access) -> dict[str, Any]:
    context = site.context
    replica = context.replica.statistics()
    unsaved = [file.path for file in site.root.unsaved_files() if _shows(access, file.path)]
    stuck = [{"path": op.key, "what": op.error} for op in context.replica.journal.ops.stuck() if _shows(access, op.key)]
    return {
        "pending": replica.journal.pending,
        "pending_bytes": replica.journal.pending_bytes,
        "failing": bool(replica.last_error),
        "last_error": replica.last_error if access.everywhere else "",
        "unsaved": unsaved[:SHOWN_LINES],
        "stuck": stuck[:SHOWN_LINES],
        "errors": _lines(context.errors.errors(), access),
        "conflicts": _lines(context.errors.conflicts(), access),
        "observer": context.observer.statistics(),
        "runs": asdict(context.consolidations.statistics()),
    }


def _lines(data: bytes, access: Access) -> list[dict[str, str]]:
    """The newest visible lines of a list, newest first."""
    lines: list[dict[str, str]] = []
    for line in reversed(data.decode("utf-8", "replace").split("\n")):
        if line and len(lines) < SHOWN_LINES:
            value = json.loads(line)
            if _shows(access, value["path"]):
                lines.append(value)
    return lines


def _shows(access: Access, path: str) -> bool:
    return access.everywhere or access.sees(path.strip("/").partition("/")[0])


def in_pages(names: Sequence[str], before: str, most: int) -> tuple[list[str], str]:
    """Names below `before` in a list that stands newest first, and where the next page begins; empty at the end."""
    rest = [name for name in names if not before or name < before]
    return rest[:most], rest[most - 1] if len(rest) > most else ""
