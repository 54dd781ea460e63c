"""`/s/<space>/consolidation`: the progress and results of runs, and the buttons that start one.

Owns the start of a run from a browser, which needs the permission to write. Of refused replies only the number is
shown. Trio thread only.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.records import keys
from livememfs.records.space import parse_synthesis
from livememfs.runs import held
from livememfs.runs.options import RunOptions
from livememfs.serve.web.bank import history_of
from livememfs.serve.web.diff import diff_lines
from livememfs.serve.web.markdown import rendered
from livememfs.serve.web.overview import note_names
from livememfs.serve.web.render import long_page, part
from livememfs.serve.web.signin import fields
from livememfs.serve.web.who import access_of

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.ledger import Entry
    from livememfs.runs.history import History
    from livememfs.serve.web.site import Site

SHOWN_RUNS = 8
FIGURES = {
    "notes_processed": "notes taken in",
    "notes_remaining": "notes left",
    "bank_files_created": "files created",
    "bank_files_updated": "files updated",
    "bank_files_unchanged": "files unchanged",
    "llm_tokens_used": "tokens",
    "llm_calls": "model calls",
    "duration_seconds": "seconds",
    "unsourced": "unsourced lines",
    "lines_moved": "lines moved",
    "lines_reworded": "lines reworded",
    "lines_dropped": "lines dropped",
}
ACTIONS = {"dry": RunOptions(dry_run=True), "run": RunOptions(), "cancel": RunOptions(cancel=True)}


async def show(site: Site, request: Request) -> Response:
    """The page, or with `?part=run` the part of it that changes."""
    space, access = await site.space(request), access_of(request)
    place, name = site.events.place(site.events.last), space.space
    status = site.context.consolidations.status(name)
    diff, cut = diff_lines(site.context.consolidations.diff(name) or "")
    replica = site.context.replica
    template = "_run.html" if request.query_params.get("part") == "run" else "consolidation.html"
    return await long_page(
        template,
        access=access,
        space=name,
        after=place,
        status=status,
        diff=diff,
        cut=cut,
        figures=FIGURES,
        may_write=access.may("write"),
        waiting=len(await note_names(replica, name)),
        held=await held.current(replica, name),
        runs=await _runs(await history_of(space)),
        refused=len(site.context.rejected.since(name, datetime.fromtimestamp(0, UTC))),
        synthesis=await _synthesis(site, name),
    )


async def ask(site: Site, request: Request) -> Response:
    """A button was pressed: `action` is one of ACTIONS, or `accept` with the number of a held `run`."""
    space = (await site.space(request, "write")).space
    given = await fields(request)
    wanted = ACTIONS.get(given.get("action", ""))
    if given.get("action") == "accept" and given.get("run", "").isdecimal():
        wanted = RunOptions(accept=int(given["run"]))
    if wanted is None:
        raise errors.BadRequest(f"an action is one of {', '.join(ACTIONS)}", path="consolidation")
    site.context.consolidations.touch(space, wanted)
    site.events.look_now()
    return RedirectResponse(f"/s/{part(space)}/consolidation", 303)


async def _runs(history: History) -> list[Entry]:
    """The last runs, newest first. One that cannot be read is skipped."""
    entries = []
    for number in reversed(list(await history.listed())[-SHOWN_RUNS:]):
        try:
            entries.append(await history.entry(number))
        except errors.StoreError:
            raise
        except errors.LiveMemError:
            continue
    return entries


async def _synthesis(site: Site, space: str) -> Markup | None:
    try:
        stored = await site.context.replica.read(keys.synthesis_key(space))
        text = parse_synthesis(stored.data).body
    except (errors.ObjectMissing, errors.NotText):
        return None
    return await in_thread(partial(rendered, text))
