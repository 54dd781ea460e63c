"""`.livememfs/audit.md`: what the memory of each space that is in use is worth, computed at each look; `audit.json` has
the same for programs.

Owns the page and which spaces are on it. While nothing changes, its bytes stay. What it quotes is marked as recorded
data: an agent may read it. Code is looked at in the directory of whoever opens it, if that is in a repository. Trio
thread only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from livememfs.concurrency import in_thread
from livememfs.errors import LiveMemError, NotFound
from livememfs.memories.audit import Audit, Row, Stale, audit, figures
from livememfs.memories.uses import moment
from livememfs.shown import in_a_line
from livememfs.text.own import HEAD, RECORDED, basic, fenced
from livememfs.tree.computed import BytesHandle, ComputedFile
from livememfs.tree.context import Context
from livememfs.tree.node import Caller, Directory, Handle, OpenMode
from livememfs.tree.writer import working_directory

NAME, FOR_PROGRAMS = "audit.md", "audit.json"
MOST_SPACES = 20
_EMPTY = "Nobody has used a space of this mount yet: search one, or write to its `.recall`.\n"


class AuditPage:
    """The page of one mount. `stale(folder)`: what finds the memories of which the code there says otherwise."""

    def __init__(self, context: Context, stale: Callable[[str], Stale] | None = None, *, as_json: bool = False) -> None:
        self._context, self._stale, self._as_json = context, stale, as_json
        self.last = b"{}\n" if as_json else b""
        """As it was made last."""

    async def content(self, folder: str = "") -> bytes:
        """The page as it is now, for somebody in a directory."""
        context = self._context
        spaces = [space for space in context.uses.spaces() if context.sees(space)]
        audits: list[Audit] = []
        notes = [f"{len(spaces) - MOST_SPACES} more spaces are in use"] if len(spaces) > MOST_SPACES else []
        for space in spaces[:MOST_SPACES]:
            try:
                found = context.replica, context.clock, context.recall, context.uses, space
                audits.append(await audit(*found, stale=self._stale(folder) if self._stale is not None else None))
            except NotFound:
                continue  # it was removed
            except LiveMemError as error:
                notes.append(f"{space} cannot be looked at: {error}")
        self.last = (await in_thread(partial(in_json if self._as_json else page, audits, notes))).encode()
        return self.last


class AuditFile(ComputedFile):
    """One of the two files."""

    __slots__ = ("_page",)

    def __init__(self, parent: Directory, name: str, context: Context, page: AuditPage) -> None:
        super().__init__(parent, name, context, page.content, lambda: page.last)
        self._page = page

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            raise self.refuse("writing")
        return BytesHandle(await self._page.content(working_directory(caller.pid)))


def in_json(audits: Sequence[Audit], notes: Sequence[str] = ()) -> str:
    """The same as one JSON object, by space."""
    spaces = {found.space: figures(found) for found in audits}
    return json.dumps({RECORDED: HEAD, "spaces": spaces, "notes": list(notes)}) + "\n"


def page(audits: Sequence[Audit], notes: Sequence[str] = ()) -> str:
    """The page of some spaces."""
    lines = [line for each in audits for line in (*_space(each), "")]
    text = "\n".join(["# Audit", "", *lines, *(f"- {note}" for note in notes)]).rstrip()
    return basic(fenced(text)) if audits or notes else _EMPTY


def _space(found: Audit) -> Iterable[str]:
    yield f"## {found.space}"
    yield ""
    yield (
        f"{found.memories:,} memories. Of all records {found.told:,} were told, for about {found.tokens:,} tokens, and"
        f" {found.used:,} were used. Paths are from the top of this mount."
    )
    for part in found.parts:
        if part.rows:
            shown = f", {len(part.rows)} of {part.found:,}" if part.found > len(part.rows) else ""
            yield from ("", f"### {part.title}{shown}", "", f"To do: {part.advice}.", "")
            yield from map(_row, part.rows)
    if found.notes:
        yield from ("", *(f"- {note}" for note in found.notes))


def _row(row: Row) -> str:
    beside = f" and `{row.beside}`" if row.beside else ""
    figures = [f"told {row.worth.told:,}", f"used {row.worth.uses:,}"]
    figures += [f"last told {at:%Y-%m-%d}"] if (at := moment(row.worth.told_at)) is not None else []
    figures += [f"~{row.worth.tokens:,} tokens"] if row.worth.tokens else []
    figures += [f"found out for ~{row.tokens:,} tokens"] if row.tokens else []
    said = "; ".join(filter(None, (row.why, row.text)))
    return in_a_line(f"- `{row.path}`{beside}: {', '.join(figures)}{f': {said}' if said else ''}")
