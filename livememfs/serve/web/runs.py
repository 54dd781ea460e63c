"""`/s/<space>/consolidation`: the progress and results of runs, and the buttons that start one and take one back.

Owns the start of a run from a browser, which needs the permission to write. Of refused replies only the number is
shown. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.records import keys
from livememfs.records.note import Note
from livememfs.records.space import parse_synthesis
from livememfs.runs import held
from livememfs.runs.edit import Replacement, edit
from livememfs.runs.options import RunOptions
from livememfs.runs.standing import taken_back
from livememfs.runs.undo.run import undo
from livememfs.serve.web.acts import Done, Warnings, author, fields
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.cards import history_of
from livememfs.serve.web.diff import DiffLine, diff_lines
from livememfs.serve.web.markdown import rendered
from livememfs.serve.web.render import part

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.ledger import Entry
    from livememfs.runs.history import History
    from livememfs.serve.web.site import Site

SHOWN_RUNS = 30
MAX_COMPARED = 512 << 10
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
    space, after = (await site.space(request)).space, site.events.place(site.events.last)
    status = site.context.consolidations.status(space)
    diff, cut = diff_lines(site.context.consolidations.diff(space) or "")
    history = await history_of(site, space)
    runs = await _runs(history)
    return await site.page(
        request,
        "_run.html" if request.query_params.get("part") == "run" else "consolidation.html",
        space=space,
        after=after,
        status=status,
        diff=diff,
        cut=cut,
        figures=FIGURES,
        may_write=access_of(request).may("write"),
        waiting=len(await site.order.names(space, keys.LIVE)),
        held=await held.current(site.context.replica, space),
        runs=runs,
        undone=taken_back(runs),
        last=next((run.number for run in runs if run.changes_bank), 0),
        refused=len(site.context.rejected.since(space, datetime.fromtimestamp(0, UTC))),
        synthesis=await _synthesis(site, space),
    )


async def ask(site: Site, request: Request) -> Response:
    """A button was pressed: `action` is one of ACTIONS, or `accept` or `undo` with the number of a `run`."""
    space = (await site.space(request, "write")).space
    given = await fields(request)
    action, run = given.get("action", ""), given.get("run", "")
    if action == "undo" and _is_number(run):
        return await _undo(site, request, space, int(run))
    wanted = ACTIONS.get(action)
    if action == "accept" and _is_number(run):
        wanted = RunOptions(accept=int(run))
    if wanted is None:
        raise errors.BadRequest(f"an action is one of {', '.join(ACTIONS)}, accept, undo", path="consolidation")
    site.context.consolidations.touch(space, wanted)
    site.events.look_now()
    return RedirectResponse(f"/s/{part(space)}/consolidation", 303)


async def one(site: Site, request: Request) -> Response:
    """One run: what it changed in the bank or stored as memories, what it took in and what it left out."""
    space, number = (await site.space(request)).space, request.path_params["number"]
    if not _is_number(number):
        raise errors.NotFound(path=f"run {number[:20]}")
    history = await history_of(site, space)
    entry = await history.entry(int(number))
    numbers = list(await history.listed())
    changes = _changes(history, entry, numbers) if entry.changes_bank else in_thread(partial(_stored, entry))
    lines, cut = await changes
    later = [n for n in numbers if n > entry.number]
    values = {"run": entry, "diff": lines, "cut": cut, "figures": FIGURES, "later": later}
    values["memories"] = [
        write.key for write in entry.writes if keys.parse(f"{space}/{write.key}").kind == "memory" and not write.removes
    ]
    values["undone"] = taken_back([e for n in numbers if n >= entry.number and (e := await history.outline(n))])
    return await site.page(request, "run.html", space=space, **values)


async def note(site: Site, request: Request) -> Response:
    """A note that a run took in, from the backup that was made before."""
    space, number = (await site.space(request)).space, request.path_params["number"]
    name = request.path_params["name"]
    missing = errors.NotFound(path=f"{name} of run {number[:20]}")
    if not _is_number(number):
        raise missing
    entry = await (await history_of(site, space)).entry(int(number))
    taken = next((each for each in entry.removes if each.key == keys.live_key(space, name)), None)
    if taken is None or not entry.backup:
        raise missing
    try:
        key = f"{keys.backup_prefix(space, entry.backup)}{keys.LIVE}/{name}"
        shown = Note.parse((await site.context.replica.read(key)).data, path=key, name=name)
    except (errors.ObjectMissing, errors.NotText):
        raise missing from None
    html = await in_thread(partial(rendered, shown.body))
    return await site.page(request, "runnote.html", space=space, run=entry, taken=taken, note=shown, html=html)


# --- changing -----------------------------------------------------------------------------------------------------


async def edited(
    site: Site,
    request: Request,
    space: str,
    changes: Sequence[Replacement],
    where: str,
    words: str,
    warnings: Warnings | None = None,
) -> Response:
    """Make changes of a bank or its rules, as a run that can be taken back."""
    context, by = site.context, author(site, request)
    leases = context.consolidations.leases
    entry = await edit(context.replica, context.clock, leases, context.host, space, changes, by)
    if entry is None:
        return site.acts.done(where, Done(space, "Nothing was to be changed."))
    back = _taking_back(site, space, entry, where)
    return site.acts.done(where, Done(space, words, tuple(warnings or ()), back, "admin"))


async def _undo(site: Site, request: Request, space: str, number: int) -> Response:
    """Take a run back, and all after it. What an administrator has mended only one takes back."""
    history = await history_of(site, space)
    for each in [n for n in await history.listed() if n >= number]:
        entry = await history.outline(each)
        if entry is not None and entry.kind == "edit":
            await site.space(request, "admin")
    entry = await _taken_back(site, space, number)
    where = f"/s/{part(space)}/consolidation"
    back = _taking_back(site, space, entry, where)
    return site.acts.done(where, Done(space, f"Run {number} is taken back.", back=back))


async def _taken_back(site: Site, space: str, number: int) -> Entry:
    context = site.context
    return await undo(context.replica, context.clock, context.consolidations.leases, context.host, space, number)


def _taking_back(site: Site, space: str, entry: Entry, where: str) -> Any:
    async def back() -> str:
        await _taken_back(site, space, entry.number)
        return where

    return back


# --- reading ------------------------------------------------------------------------------------------------------


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) < 9


async def _runs(history: History) -> list[Entry]:
    """The last runs, newest first. One that cannot be read is skipped."""
    numbers = list(reversed(list(await history.of_all_kinds())[-SHOWN_RUNS:]))
    return [entry for number in numbers if (entry := await history.outline(number)) is not None]


async def _changes(history: History, entry: Entry, numbers: Sequence[int]) -> tuple[list[DiffLine], bool]:
    """What a run changed, file by file."""
    earlier = [number for number in numbers if number < entry.number]
    before = await history.bank_after(earlier[-1]) if earlier else {}
    texts = []
    for write in entry.writes:
        name = write.key.removeprefix(f"{keys.BANK}/")
        if name == write.key and write.key != keys.RULES:
            continue
        was = write.was
        if was is None and (past := before.get(name)) is not None:
            was = (await history.content(past)).decode("utf-8", "replace")
        texts.append((name, was or "", write.content or ""))
    return await in_thread(partial(_compared, texts))


def _stored(entry: Entry) -> tuple[list[DiffLine], bool]:
    """The memories that a digest stored, as it wrote them, or what it proposed."""
    return _compared([(write.key, "", write.content or "") for write in entry.writes if write.key != keys.META])


def _compared(texts: Sequence[tuple[str, str, str]]) -> tuple[list[DiffLine], bool]:
    lines: list[str] = []
    for name, was, is_ in texts:
        old, new = (text[:MAX_COMPARED].split("\n") if text else [] for text in (was, is_))
        lines += unified_diff(old, new, f"{name} before", name, lineterm="")
    return diff_lines("\n".join(lines))


async def _synthesis(site: Site, space: str) -> Markup | None:
    try:
        stored = await site.context.replica.read(keys.synthesis_key(space))
        text = parse_synthesis(stored.data).body
    except (errors.ObjectMissing, errors.NotText):
        return None
    return await in_thread(partial(rendered, text))
