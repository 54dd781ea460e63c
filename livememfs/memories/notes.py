"""Writing one note from text: what `livememfs note` and the tools of an agent do (data model 4.4 and 5).

Owns the fields that are given beside the text. Refuses a space that does not exist. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.code.workplaces import Workplaces
from livememfs.errors import TooLarge
from livememfs.memories.dictated import Dictated
from livememfs.memories.storing import store_text
from livememfs.records.sealing import NoteForm
from livememfs.spaces.objects import OnPrivate, unheard
from livememfs.text import frontmatter


async def write_note(
    replica: Replica,
    clock: Clock,
    space: str,
    text: str,
    *,
    agent: str,
    category: str | None = None,
    tags: Sequence[str] = (),
    on_private: OnPrivate = unheard,
    code: Workplaces | None = None,
    dictated: Dictated | None = None,
) -> str:
    """Write a note and return its key; see `storing.store_text`. Front matter in `text` wins over arguments."""
    whole = _with_arguments(text, category, tags)
    form = NoteForm()
    return await store_text(
        replica, clock, form, space, whole, agent=agent, on_private=on_private, code=code, dictated=dictated
    )


def _with_arguments(text: str, category: str | None, tags: Sequence[str]) -> str:
    """The text with the fields that were given beside it, unless its own front matter has them."""
    fields: dict[str, Any] = {"category": (category or "").strip(), "tags": list(tags)}
    given = {name: value for name, value in fields.items() if value}
    if not given:
        return text
    try:
        metadata, body = frontmatter.split(text)
    except frontmatter.FrontMatterError:
        metadata, body = {}, text
    try:
        return frontmatter.join({**given, **metadata}, body)
    except frontmatter.FrontMatterError as error:
        raise TooLarge(path="the front matter", detail=str(error)) from error
