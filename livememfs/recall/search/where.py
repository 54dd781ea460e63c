"""What may be found: a query's filters and spaces, as the index knows them.

Owns the words of filters for kinds of records, and that people do not remember capitals. Refuses to rank. Blocking; any
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from livememfs.recall.index.engine import Engine
from livememfs.recall.index.exchanged import Restriction
from livememfs.recall.index.words import fold
from livememfs.recall.search.query import Filter, Query

_KINDS = {"live": ("live",), "bank": ("bank", "synthesis")}


def restriction(index: Engine, query: Query, spaces: Sequence[str]) -> Restriction | None:
    """The query's filters and the spaces as the index knows them; None when nothing can fit them."""
    wanted_spaces = query.wanted("space")
    named = tuple(space for space in spaces if not wanted_spaces or space in wanted_spaces)
    conditions = [Filter("space", tuple(space for space in named if space not in query.unwanted("space")))]
    conditions += [known for item in query.filters if (known := _as_indexed(index, item, named)) is not None]
    wanted = tuple((item.field, item.values) for item in conditions if not item.negative)
    if not all(values for _, values in wanted):
        return None
    unwanted = tuple((item.field, item.values) for item in conditions if item.negative and item.values)
    where = Restriction(fields=wanted, without=unwanted, after=_seconds(query.after), before=_seconds(query.before))
    files, not_files = query.wanted("file"), query.unwanted("file")
    if not (files or not_files):
        return where
    numbers = tuple(index.fitting(where, files=files, not_files=not_files))
    return replace(where, numbers=numbers) if numbers else None


def _as_indexed(index: Engine, item: Filter, spaces: Sequence[str]) -> Filter | None:
    """A filter by a field of the index, with the index's own values; None where there is no such field, or where the
    filter lets everything through.
    """
    match item.field:
        case "type" | "agent" as field:
            return Filter(field, _as_written(index, field, item.values, spaces), item.negative)
        case "tag" | "concept" | "subject" as field:
            return Filter("label", tuple(f"{field}:{value.casefold()}" for value in item.values), item.negative)
        case "in" if "all" not in item.values:
            kinds = tuple(kind for value in item.values for kind in _KINDS.get(value, (value,)))
            return Filter("kind", kinds, item.negative)
    return None


def _as_written(index: Engine, name: str, values: Iterable[str], spaces: Sequence[str]) -> tuple[str, ...]:
    """The values as records spell them: people do not remember capitals."""
    wanted = {fold(value) for value in values}
    return tuple(value for value in index.spelt(name, spaces) if fold(value) in wanted)


def _seconds(moment: datetime | None) -> int | None:
    return int(moment.timestamp()) if moment is not None else None
