"""The tools for notes, by the names of the data model's section 5.

Owns their answers. Refuses to decide who may call it: the toolbox does. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from livememfs.concurrency import A_NAME, aside
from livememfs.errors import BadRequest, NotText
from livememfs.memories.notes import write_note
from livememfs.memories.parameters import QUESTION, Parameter
from livememfs.records import keys
from livememfs.records.note import CATEGORIES, Note
from livememfs.serve.toolbox import LONGEST_TEXT, MOST_TOKENS, SPACE, Answered, ToolCall, Toolset
from livememfs.spaces import making as spaces
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.text.size import Budget
from livememfs.text.times import iso, parse_iso

MOST_NOTES = 500
MOST_WORDS = 64
READ_AT_ONCE, MOST_LOOKED_AT = 100, 10_000
"""Notes read at a time, and most notes read for one answer: a search without a result must end too."""
_LIMIT = Parameter("limit", kind="integer", least=1, most=MOST_NOTES)
TOOLS = Toolset()


@TOOLS.add(
    "Write a note: what happened, was decided, is to do.",
    SPACE,
    Parameter("content", required=True, longest=LONGEST_TEXT),
    Parameter("category", one_of=CATEGORIES),
    Parameter("agent"),
    Parameter("tags", kind="texts"),
    returns={"filename": "string"},
    needs="write",
    effect="adds",
    core=True,
    done="created",
)
async def live_note(
    call: ToolCall, space_id: str, content: str, category: str = "", agent: str = "", tags: Sequence[str] = ()
) -> Answered:
    """Write a note."""
    key = await write_note(
        call.replica,
        call.clock,
        space_id,
        content,
        agent=agent or call.agent,
        category=category or None,
        tags=tags,
        on_private=call.warn,
        code=call.context.code,
        dictated=call.context.dictated,
    )
    data = (await call.replica.read(key)).data
    note = Note.parse(data, path=key, name=key.rpartition("/")[2])
    written = {"agent": note.agent, "category": note.category, "timestamp": iso(note.timestamp)}
    return {"filename": key.rpartition("/")[2], **written, "size": len(data)}


@TOOLS.add(
    "Read the newest notes not consolidated yet.",
    SPACE,
    _LIMIT,
    Parameter("category"),
    Parameter("agent"),
    Parameter("since", "ISO 8601"),
    Parameter("before", "a filename"),
    returns={"notes": "array", "more": "boolean"},
    core=True,
)
async def live_read(
    call: ToolCall,
    space_id: str,
    limit: int = 50,
    category: str = "",
    agent: str = "",
    since: str = "",
    before: str = "",
) -> Answered:
    """The newest notes, newest first; with `before`, notes older than that one."""
    after = _moment(since)

    def fits(note: Note) -> bool:
        right = (not category or note.category == category) and (not agent or note.agent == agent)
        return right and (after is None or note.timestamp >= after)

    every = not (category or agent or since)
    return await newest(call, space_id, fits, limit, Budget(MOST_TOKENS), after=after, before=before, every=every)


@TOOLS.add(
    "Find notes that have all these words.",
    SPACE,
    Parameter("query", required=True, longest=QUESTION),
    _LIMIT,
    returns={"notes": "array", "more": "boolean"},
)
async def live_search(call: ToolCall, space_id: str, query: str, limit: int = 20) -> Answered:
    """The notes that have all words of a question, newest first."""
    words = tuple(dict.fromkeys(query.casefold().split()))
    if not 0 < len(words) <= MOST_WORDS:
        raise BadRequest(path="query", detail=f"it has {len(words)} words; 1 to {MOST_WORDS} are looked for")

    def fits(note: Note) -> bool:
        text = f"{note.body} {' '.join(note.tags)} {note.category} {note.agent}".casefold()
        return all(word in text for word in words)

    return {"query": query, **await newest(call, space_id, fits, limit, Budget(MOST_TOKENS))}


async def newest(
    call: ToolCall,
    space: str,
    fits: Callable[[Note], bool],
    limit: int,
    budget: Budget,
    *,
    after: datetime | None = None,
    before: str = "",
    every: bool = False,
) -> Answered:
    """`notes`, the newest notes that fit, newest first; `has_more`: whether there may be more; `total`: how many fit.

    :every: all notes fit; otherwise `total` counts those that were found before there were enough

    Names sort by time, so reading starts with the newest and stops when there are enough.
    """
    await spaces.require_space(call.replica, space)
    prefix = keys.live_prefix(space)
    infos = await call.replica.names.walk(prefix, local=True)
    names = await aside(len(infos) * A_NAME, partial(_names, infos, prefix, after, before))
    fitting: list[tuple[str, Note]] = []
    looked = 0
    while looked < min(len(names), MOST_LOOKED_AT) and len(fitting) <= limit:
        portion = names[looked : looked + READ_AT_ONCE]
        looked += len(portion)
        stored = await call.replica.read_many([prefix + name for name in portion])
        size = sum(len(item.data) for item in stored.values())
        fitting += await aside(size, partial(_fitting, portion, prefix, stored, fits))
    size = sum(len(note.body) for _, note in fitting[:limit])
    total = len(names) if every else len(fitting)
    return await aside(size, partial(_within, fitting, limit, budget, total=total, more=looked < len(names)))


def _names(infos: Sequence[ObjectInfo], prefix: str, after: datetime | None, before: str) -> list[str]:
    """The names of all possible notes, newest first."""
    notes = (info.key.removeprefix(prefix) for info in infos if keys.parse(info.key).kind == "note")
    names = [name for name in notes if not _is_before(name, after) and (not before or name < before)]
    return names[::-1]


def _fitting(
    names: Sequence[str], prefix: str, stored: Mapping[str, StoredObject], fits: Callable[[Note], bool]
) -> list[tuple[str, Note]]:
    """The notes that fit, among these objects; some may be gone, or no text."""
    fitting = []
    for name in names:
        if (item := stored.get(prefix + name)) is not None:
            with suppress(NotText):
                note = Note.parse(item.data, path=prefix + name, name=name)
                if fits(note):
                    fitting.append((name, note))
    return fitting


def _within(fitting: Sequence[tuple[str, Note]], limit: int, budget: Budget, *, total: int, more: bool) -> Answered:
    """As many notes as there is room for."""
    shown: list[dict[str, Any]] = []
    for name, note in fitting[:limit]:
        if not budget.takes(name, note.body, *note.tags, at_any_cost=not shown):
            break
        shown.append(_shown(name, note))
    more = more or len(fitting) > len(shown)
    return {"notes": shown, "total": total, "has_more": more, "more": more}


def _is_before(name: str, after: datetime | None) -> bool:
    """Whether the time in a note's name is too old, so that the note need not be read."""
    named = keys.NoteName.parse(name) if after is not None else None
    return named is not None and after is not None and after - named.timestamp > timedelta(seconds=1)


def _shown(name: str, note: Note) -> dict[str, Any]:
    return {
        "filename": name,
        "timestamp": iso(note.timestamp),
        "agent": note.agent,
        "category": note.category,
        "tags": list(note.tags),
        "content": note.body.strip("\n"),
    }


def _moment(text: str) -> datetime | None:
    try:
        return parse_iso(text) if text else None
    except ValueError:
        raise BadRequest(path="since", detail=f"{text[:40]!r} is no time such as 2026-02-20T14:00:00Z") from None
