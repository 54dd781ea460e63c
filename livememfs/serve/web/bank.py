"""`/s/<space>/bank/`: the files of the bank, and the old versions, changes and sources of each; mending by hand.

Owns the views of one file. Refuses paths outside of the bank. What is changed here is a run of its own, made by the
tools that an administrator has. Trio thread only; long work runs in a thread.
"""

from __future__ import annotations

import difflib
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.records import keys
from livememfs.records.trust import Trust, trust_of
from livememfs.runs.edit import Replacement
from livememfs.runs.upkeep.oddnames import find_odd
from livememfs.serve.web.acts import Warnings, text_fields
from livememfs.serve.web.asked import access_of, name_in
from livememfs.serve.web.cards import history_of
from livememfs.serve.web.diff import DiffLine, diff_lines
from livememfs.serve.web.markdown import MAX_SHOWN, rendered
from livememfs.serve.web.overview import bank_files
from livememfs.serve.web.render import part, path
from livememfs.serve.web.runs import edited
from livememfs.serve.web.vouching import offered
from livememfs.spaces.objects import public

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.ledger import Entry
    from livememfs.runs.history import History
    from livememfs.serve.web.site import Site

NOW = "now"
SHOWN_RUNS = 30
VIEWS = ("page", "source", "changes", "why", "edit")
NAME_AFTER = 3
"""`/s/SPACE/bank/PATH`: the path stands behind three parts."""
MOST_DATED = 200
_RUN, _NOTE = re.compile(r"- run (\d+)"), re.compile(r"  - `([^`]+)`")
"""Lines of a page of sources."""
MAX_COMPARED = 512 << 10


async def files(site: Site, request: Request) -> Response:
    """The files of the bank, each with the run that wrote it last."""
    space = (await site.space(request)).space
    after = site.events.place(site.events.last)
    listed = await bank_files(site.context.replica, space)
    history = await history_of(site, space)
    last = {name: await _last_run(history, name) for name in list(listed)[:MOST_DATED]}
    odd = await find_odd(site.context.replica, space) if access_of(request).may("admin") else None
    return await site.page(request, "bank.html", space=space, after=after, files=listed, last=last, odd=odd)


async def mend(site: Site, request: Request) -> Response:
    """`action=repair` gives files with odd names better ones."""
    space = (await site.space(request, "admin")).space
    if (await text_fields(request)).get("action") != "repair":
        raise errors.BadRequest("an action is repair", path="bank")
    odd = await find_odd(site.context.replica, space)
    return await edited(site, request, space, odd.changes(), f"/s/{part(space)}/bank/", "The names are mended.")


async def file(site: Site, request: Request) -> Response:
    """One file, by `?view=`: as a page, as source, its changes between two runs, its sources, or as a form."""
    space, name = (await site.space(request)).space, name_in(request, NAME_AFTER)
    view = request.query_params.get("view", VIEWS[0])
    if view not in VIEWS:
        raise errors.NotFound(path=f"view {view}")
    after = site.events.place(site.events.last)
    text, etag, trust = await _text(site, space, name)
    history = await history_of(site, space)
    values: dict[str, Any] = {"html": "", "source": "", "lines": [], "cut": False, "runs": [], "older": "", "newer": ""}
    if view == "page":
        values["html"] = await _html(text)
    elif view == "source":
        values["source"] = text[:MAX_SHOWN]
    elif view == "edit":
        await site.space(request, "admin")
        values["source"] = text
    elif view == "why":
        values["html"] = await _why(space, await history.why(name))
    else:
        values |= await _changes(history, name, text, request)
    values |= {"space": space, "path": name, "view": view, "views": VIEWS, "after": after, "etag": etag}
    values |= {"trust": trust, "offered": offered(trust, access_of(request)), "vouched": f"{keys.BANK}/{name}"}
    return await site.page(request, "bankfile.html", last=await _last_run(history, name), **values)


async def change(site: Site, request: Request) -> Response:
    """`action` is `save` or `delete`; either is a run of its own."""
    space, name = (await site.space(request, "admin")).space, name_in(request, NAME_AFTER)
    given, warnings = await text_fields(request), Warnings()
    _, etag, _ = await _text(site, space, name)
    saw, key = given.get("saw") or etag, f"{keys.BANK}/{name}"
    where = f"/s/{part(space)}/bank/"
    if given.get("action") == "delete":
        return await edited(site, request, space, [Replacement(key, None, saw)], where, "The file is removed.")
    if given.get("action") != "save":
        raise errors.BadRequest("an action is save or delete", path="bank")
    text = await public(given.get("text", "").rstrip() + "\n", keys.bank_key(space, name), warnings.hear)
    changes = [Replacement(key, text.decode(), saw)]
    return await edited(site, request, space, changes, where + path(name), "Saved as a run of its own.", warnings)


async def _last_run(history: History, name: str) -> Entry | None:
    """The run that wrote a file last; None if no run of the ledger did."""
    numbers = await history.wrote(name)
    return await history.outline(numbers[-1]) if numbers else None


async def _why(space: str, text: str) -> Markup:
    """Where a file comes from, with links to the runs and to the notes as they were then."""
    runs, number, lines = f"/s/{part(space)}/consolidation", "", []
    for line in text.split("\n"):
        if run := _RUN.match(line):
            number = run[1]
            line = f"- [run {number}]({runs}/{number}){line[run.end() :]}"
        elif note := _NOTE.match(line):
            name = note[1].rpartition("/")[2]
            line = f"  - [`{name}`]({runs}/{number}/note/{part(name)}){line[note.end() :]}"
        lines.append(line)
    return await _html("\n".join(lines))


async def _text(site: Site, space: str, path: str) -> tuple[str, str, Trust]:
    """The text of a file of the bank, its etag, and its class of trust. NotFound."""
    missing = errors.NotFound(path=f"{space}/{keys.BANK}/{path}")
    folder, _, name = f"{keys.BANK}/{path}".rpartition("/")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise missing
    replica, key = site.context.replica, keys.bank_key(space, path)
    if keys.parse(key).kind != "bank" or name not in (await replica.names.listing(f"{space}/{folder}/")).objects:
        raise missing
    try:
        stored = await replica.read(key)
    except errors.ObjectMissing:
        raise missing from None
    return stored.data.decode("utf-8", "replace"), stored.info.etag, trust_of(stored.info.meta, {})


async def _html(text: str) -> Markup:
    return await in_thread(partial(rendered, text))


async def _changes(history: History, path: str, text: str, request: Request) -> dict[str, Any]:
    """The changes of a file between two runs, or between one and now."""
    runs = [await history.entry(number) for number in reversed((await history.wrote(path))[-SHOWN_RUNS:])]
    numbers = [str(run.number) for run in runs]
    older = request.query_params.get("from", numbers[1] if len(numbers) > 1 else "0")
    newer = request.query_params.get("to", numbers[0] if numbers else NOW)
    before, later = await _as_it_was(history, path, older, text), await _as_it_was(history, path, newer, text)
    lines, cut = await in_thread(partial(_compared, before, later, older, newer))
    return {"runs": runs, "older": older, "newer": newer, "lines": lines, "cut": cut}


async def _as_it_was(history: History, path: str, run: str, text: str) -> str:
    """A file after a run; empty if it did not exist then. NotFound for an unknown run."""
    if run == NOW:
        return text
    if not (run.isascii() and run.isdecimal() and len(run) < 9):
        raise errors.NotFound(path=f"run {run[:20]}")
    if run == "0":
        return ""
    past = (await history.bank_after(int(run))).get(path)
    return "" if past is None else (await history.content(past)).decode("utf-8", "replace")


def _compared(before: str, later: str, older: str, newer: str) -> tuple[list[DiffLine], bool]:
    cut = max(len(before), len(later)) > MAX_COMPARED
    old, new = (side[:MAX_COMPARED].split("\n") for side in (before, later))
    lines = difflib.unified_diff(old, new, _called(older), _called(newer), lineterm="")
    shown, too_many = diff_lines("\n".join(lines))
    return shown, cut or too_many


def _called(run: str) -> str:
    return {NOW: NOW, "0": "nothing"}.get(run, f"run {run}")
