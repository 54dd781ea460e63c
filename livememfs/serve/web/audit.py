"""`/s/<space>/audit`: what the memory of a space is worth, and what to do about it.

Owns how the audit is shown; what is looked for belongs to `memories.audit`. Refuses to change anything: each row
leads to the page where that is done. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs.concurrency import in_thread
from livememfs.memories.audit import audit
from livememfs.memories.uses import moment
from livememfs.records import keys
from livememfs.serve.web.cards import when_named
from livememfs.serve.web.markdown import rendered
from livememfs.serve.web.render import count, place
from livememfs.tree.space.stale import StaleMemories

if TYPE_CHECKING:
    from datetime import datetime

    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.memories.audit import Audit, AuditPart, Row
    from livememfs.serve.web.site import Site

_HEADING = ".md#"


@dataclass(frozen=True)
class AuditLine:
    """A record on the page: the address of its page (empty without one), its path in the space, and what it says.

    :told:   when it was told last
    :made:   when it was made, if its name says so
    :beside: the address and the path of the other record of a pair; empty without one
    """

    href: str
    path: str
    text: str
    why: str
    figures: Sequence[str]
    told: datetime | None
    made: datetime | None
    beside: tuple[str, str]


@dataclass(frozen=True)
class ShownAuditPart:
    """One thing that was looked for, with its advice as HTML."""

    title: str
    advice: Markup
    rows: Sequence[AuditLine]
    found: int


async def show(site: Site, request: Request) -> Response:
    """The page."""
    space, context = (await site.space(request)).space, site.context
    stale = StaleMemories(context).found
    found = await audit(context.replica, context.clock, context.recall, context.uses, space, stale=stale)
    parts = await in_thread(lambda: shown_parts(found))
    clear = [part.title for part in found.parts if not part.rows]
    return await site.page(request, "audit.html", space=space, audit=found, parts=parts, clear=clear)


def shown_parts(found: Audit) -> list[ShownAuditPart]:
    """The parts in which something was found. Renders Markdown: call it in a thread."""
    return [_part(part) for part in found.parts if part.rows]


def _part(part: AuditPart) -> ShownAuditPart:
    words = part.advice.replace("`rm`", "forget")  # as the button says; a browser has no files to remove
    advice = f"{words[:1].upper()}{words[1:]}."
    return ShownAuditPart(part.title, rendered(advice), [_row(row) for row in part.rows], part.found)


def _row(row: Row) -> AuditLine:
    beside = (_address(row.beside), _inside(row.beside)) if row.beside else ("", "")
    told = moment(row.worth.told_at)
    made = when_named(row.path.rpartition("/")[2])
    figures = tuple(_figures(row))
    return AuditLine(_address(row.path), _inside(row.path), row.text, row.why, figures, told, made, beside)


def _figures(row: Row) -> Iterable[str]:
    worth = row.worth
    if worth.tokens:
        yield f"about {worth.tokens:,} tokens"
    if worth.told or worth.uses:
        yield f"used {count(worth.uses, 'time')}" if worth.uses else "never used"
        yield f"told {count(worth.told, 'time')}" if worth.told else "never told"
    if row.tokens:
        yield f"found out for about {row.tokens:,} tokens"


def _address(path: str) -> str:
    """The page of a record, or of the bank file in which a section stands."""
    key, mark, _ = path.partition(_HEADING)
    if mark and keys.parse(path).kind == "bank":
        path = f"{key}.md"
    return place(path)


def _inside(path: str) -> str:
    """A path without the space."""
    return path.partition("/")[2]
