"""`/s/<space>/bank/`: the files of the bank, and the old versions, changes and sources of each.

Owns the views of one file. Refuses paths outside of the bank. Trio thread only; long work runs in a thread.
"""

from __future__ import annotations

import difflib
from functools import partial
from typing import TYPE_CHECKING, Any

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.records import keys
from livememfs.records.trust import Trust, trust_of
from livememfs.serve.web.diff import DiffLine, diff_lines
from livememfs.serve.web.markdown import MAX_SHOWN, rendered
from livememfs.serve.web.overview import bank_files
from livememfs.serve.web.render import long_page, page, place
from livememfs.serve.web.vouching import offered
from livememfs.serve.web.who import access_of
from livememfs.tree.space.history import HistoryDirectory
from livememfs.tree.space.root import HISTORY

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.runs.history import History
    from livememfs.serve.web.site import Site
    from livememfs.tree.space.root import Space

NOW = "now"
SHOWN_RUNS = 30
VIEWS = ("page", "source", "changes", "why")
MAX_COMPARED = 512 << 10


async def files(site: Site, request: Request) -> Response:
    """The files of the bank."""
    space = (await site.space(request)).space
    after = site.events.place(site.events.last)
    listed = await bank_files(site.context.replica, space)
    return page("bank.html", access=access_of(request), space=space, after=after, files=listed)


async def file(site: Site, request: Request) -> Response:
    """One file, by `?view=`: as a page, as source, its changes between two runs, or its sources."""
    node, path = await site.space(request), request.path_params["path"]
    view = request.query_params.get("view", VIEWS[0])
    if view not in VIEWS:
        raise errors.NotFound(path=f"view {view}")
    after = site.events.place(site.events.last)
    text, trust = await _text(site, node.space, path)
    values: dict[str, Any] = {"html": "", "source": "", "lines": [], "cut": False, "runs": [], "older": "", "newer": ""}
    if view == "page":
        values["html"] = await _html(text)
    elif view == "source":
        values["source"] = text[:MAX_SHOWN]
    elif view == "why":
        values["html"] = await _html(await (await history_of(node)).why(path))
    else:
        values |= await _changes(await history_of(node), path, text, request)
    values |= {"space": node.space, "path": path, "view": view, "views": VIEWS, "after": after}
    access = access_of(request)
    values |= {"trust": trust, "offered": offered(trust, access), "address_of": place(keys.bank_key(node.space, path))}
    return await long_page("bankfile.html", access=access, **values)


async def history_of(space: Space) -> History:
    """The ledger of a space, as `.history/` reads it."""
    folder = await space.child(HISTORY)
    assert isinstance(folder, HistoryDirectory)  # the space made this folder
    return folder.history


async def _text(site: Site, space: str, path: str) -> tuple[str, Trust]:
    """The text of a file of the bank, and its class of trust. NotFound."""
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
    return stored.data.decode("utf-8", "replace"), trust_of(stored.info.meta, {})


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
