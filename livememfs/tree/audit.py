"""`.livememfs/audit.md`: what the memory of each space that is in use is worth, computed at each look.

Owns the page and which spaces are on it. While nothing changes, its bytes stay. What it quotes is marked as recorded
data: an agent may read it. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from livememfs.concurrency import in_thread
from livememfs.errors import LiveMemError, NotFound
from livememfs.memories.audit import Audit, Row, Stale, audit
from livememfs.memories.uses import moment
from livememfs.shown import in_a_line
from livememfs.text.own import basic, fenced
from livememfs.tree.context import Context

NAME = "audit.md"
MOST_SPACES = 20
_EMPTY = "Nobody has used a space of this mount yet: search one, or write to its `.recall`.\n"


class AuditPage:
    """The page of one mount. `stale`: which memories of a space the code says otherwise of."""

    def __init__(self, context: Context, stale: Stale | None = None) -> None:
        self._context, self._stale = context, stale
        self.last = b""
        """As it was made last; empty before."""

    async def content(self) -> bytes:
        """The page as it is now."""
        context = self._context
        spaces = [space for space in context.uses.spaces() if context.sees(space)]
        audits: list[Audit] = []
        notes = [f"{len(spaces) - MOST_SPACES} more spaces are in use"] if len(spaces) > MOST_SPACES else []
        for space in spaces[:MOST_SPACES]:
            try:
                found = context.replica, context.clock, context.recall, context.uses, space
                audits.append(await audit(*found, stale=self._stale))
            except NotFound:
                continue  # it was removed
            except LiveMemError as error:
                notes.append(f"{space} cannot be looked at: {error}")
        self.last = (await in_thread(partial(page, audits, notes))).encode()
        return self.last


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
