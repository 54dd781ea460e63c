"""The seven tools with which an agent searches and stores memories (companion-memory, "tools").

Owns what each tool takes, refuses and returns, and its description for a model: `TOOLS` has all that a protocol needs.
Results are JSON values. Refuses arguments that no memory can have, in words that a model can act on (BadRequest). A
fault of the index does not fail a search: the `notes` of its result say what is missing. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.code.workplaces import Workplaces
from livememfs.errors import BadRequest
from livememfs.memories import storing as memories
from livememfs.memories.dictated import Dictated
from livememfs.memories.parameters import QUESTION, Parameter, checked, schema
from livememfs.memories.uses import Uses
from livememfs.recall.index.record import Record
from livememfs.recall.search.query import Query, parse
from livememfs.recall.service import Recall, SearchAnswer
from livememfs.records import keys
from livememfs.records.memory import CATEGORIES, MAX_MEMORY_BYTES, TYPES, expiry
from livememfs.spaces.describe import require_space
from livememfs.spaces.objects import OnPrivate, unheard
from livememfs.text import frontmatter
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.times import iso

MOST_FOUND = 10
MOST_RECENT = 20
SHOWN_CHARACTERS = 2_000
"""Most characters of one memory in a result; the rest can be read in its file."""

Answered = dict[str, Any]


@dataclass(frozen=True)
class Desk:
    """Where an agent works: one space of a bucket, and the name under which it writes. `on_private` is called with what
    was replaced in a text that it stores; `code` knows in which code it works, `uses` what memories were worth,
    `dictated` what users have said.
    """

    replica: Replica
    clock: Clock
    recall: Recall
    space: str
    agent: str
    on_private: OnPrivate = unheard
    code: Workplaces | None = None
    uses: Uses | None = None
    dictated: Dictated | None = None


# --- finding -----------------------------------------------------------------------------------------------------


async def search_memories(desk: Desk, query: str, subject: str = "") -> Answered:
    """The memories that fit a question best, with their scores. No threshold: the caller judges."""
    return await _search(desk, keys.MEMORIES, query, subject)


async def search_self(desk: Desk, query: str) -> Answered:
    """The memories of the agent about itself that fit a question best."""
    return await _search(desk, keys.SELF, query)


async def search_goals(desk: Desk, query: str) -> Answered:
    """The goals of the agent that fit a question best."""
    return await _search(desk, keys.GOALS, query)


async def get_recent_memories(desk: Desk, limit: int = MOST_FOUND) -> Answered:
    """The memories that were stored last, the newest first."""
    if not 1 <= limit <= MOST_RECENT:
        raise _refused(desk, keys.MEMORIES, f"limit is 1 to {MOST_RECENT}, not {limit}")
    await require_space(desk.replica, desk.space)
    answer = await desk.recall.ask(Query(limit=limit).narrowed("in", keys.MEMORIES), (desk.space,), anew=True)
    return {"memories": await _each(desk, [hit.record for hit in answer.found.hits]), "notes": _notes(answer)}


async def _search(desk: Desk, collection: str, text: str, subject: str = "") -> Answered:
    await require_space(desk.replica, desk.space)
    query = parse(text, now=desk.clock.now()).narrowed("in", collection)
    query = query.narrowed("subject", subject) if subject else query
    query = replace(query, limit=min(query.limit or MOST_FOUND, MOST_FOUND))
    answer = await desk.recall.ask(query, (desk.space,), anew=True)
    shown = await _each(desk, [hit.record for hit in answer.found.hits])
    scored = [
        {"score": round(hit.score, 4), **each, **({"code": hit.mark} if hit.mark else {})}
        for hit, each in zip(answer.found.hits, shown, strict=True)
    ]
    return {"memories": scored, "notes": _notes(answer)}


async def _each(desk: Desk, records: Sequence[Record]) -> list[Answered]:
    """What a model gets of memories: what they say, and how often they were used and told."""
    if desk.uses is None:
        return list(map(_shown, records))
    await desk.uses.known(desk.space)
    worths = [desk.uses.of(desk.space, record.key) for record in records]
    return [
        {**_shown(record), "uses": worth.uses, "told": worth.told}
        for record, worth in zip(records, worths, strict=True)
    ]


def _shown(record: Record) -> Answered:
    text = record.text
    labels = {field: [value for name, value in record.labels if name == field] for field in ("subject", "concept")}
    return {
        "id": memories.id_of(record.key.rpartition("/")[2]),
        "path": record.key,
        "type": record.type,
        "trust": record.trust.word,
        "category": next(iter(labels["concept"]), ""),
        "subjects": labels["subject"],
        "created_at": iso(datetime.fromtimestamp(record.created, UTC)),
        "text": text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "\u2026",
    }


def _notes(answer: SearchAnswer) -> list[str]:
    return [*answer.query.doubts, *answer.notes, *answer.found.remarks]


# --- storing -----------------------------------------------------------------------------------------------------


async def store_memory(
    desk: Desk,
    content: str,
    subjects: Sequence[str] = (),
    ttl: str | None = None,
    type: str = "",
    importance: float | None = None,
) -> Answered:
    """Remember a fact. BadRequest for a type, ttl or importance that is not valid, NotFound, TooLarge."""
    if type and type not in TYPES:
        raise _refused(desk, keys.MEMORIES, f"type is one of {', '.join(TYPES)}, not {type!r}")
    if ttl and expiry(ttl, desk.clock.now()) is None:
        raise _refused(desk, keys.MEMORIES, f"ttl is a number and a unit, like 90m, 1h, 7d or 2w, not {ttl!r}")
    if importance is not None and not 0 <= importance <= 1:
        raise _refused(desk, keys.MEMORIES, f"importance is 0 to 1, not {importance}")
    fields = {"type": type, "subjects": list(subjects), "ttl": ttl, "importance": importance}
    return await _store(desk, keys.MEMORIES, content, fields)


async def store_self(desk: Desk, content: str, category: str) -> Answered:
    """Remember something the agent has found out about itself. BadRequest for an unknown category."""
    return await _store_as(desk, keys.SELF, content, category)


async def store_goal(desk: Desk, content: str, category: str) -> Answered:
    """Remember something the agent would like. BadRequest for an unknown category."""
    return await _store_as(desk, keys.GOALS, content, category)


async def _store_as(desk: Desk, collection: str, content: str, category: str) -> Answered:
    if category not in CATEGORIES[collection]:
        allowed = ", ".join(CATEGORIES[collection])
        raise _refused(desk, collection, f"category is one of {allowed}, not {category!r}")
    return await _store(desk, collection, content, {"category": category})


async def _store(desk: Desk, collection: str, content: str, fields: Mapping[str, Any]) -> Answered:
    try:
        text = frontmatter.join({name: value for name, value in fields.items() if value not in (None, "", [])}, content)
    except FrontMatterError as error:
        raise _refused(desk, collection, f"the subjects are too long: {error}") from error
    key = await memories.remember(
        desk.replica, desk.clock, desk.space, collection, text, agent=desk.agent, on_private=desk.on_private,
        code=desk.code, dictated=desk.dictated,
    )  # fmt: skip
    name = keys.MemoryName.parse(key.rpartition("/")[2])
    ends = name.expires_at if name is not None else None
    return {"id": memories.id_of(key.rpartition("/")[2]), "path": key, "expires_at": iso(ends) if ends else None}


def _refused(desk: Desk, collection: str, detail: str) -> BadRequest:
    return BadRequest(path=f"{desk.space}/{collection}", detail=detail)


# --- the descriptions for a model ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemoryTool:
    """One of the seven: its name, one sentence for a model, its parameters, and the function that does the work."""

    name: str
    purpose: str
    parameters: tuple[Parameter, ...]
    work: Callable[..., Awaitable[Answered]]

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {**schema(self.parameters), "additionalProperties": False}

    async def call(self, desk: Desk, arguments: Mapping[str, Any]) -> Answered:
        """Do it with the arguments of a model; null counts as not given. BadRequest, and what the work raises."""
        return await self.work(desk, **checked(self.name, self.parameters, arguments, path=desk.space))


def _query(says: str) -> Parameter:
    return Parameter("query", says, required=True, longest=QUESTION)


def _category(collection: str) -> Parameter:
    return Parameter("category", "what kind of thing it is", required=True, one_of=CATEGORIES[collection])


_CONTENT = Parameter(
    "content",
    "one fact, in one sentence that is understood without its context",
    required=True,
    longest=MAX_MEMORY_BYTES,
)

TOOLS = (
    MemoryTool(
        "search_memories",
        "Search what is known about people, decisions and projects, by meaning; the ten best come with their scores.",
        (
            _query("what to look for, in any words; type:decision or after:2026-02 narrow it down"),
            Parameter("subject", "only what is about this subject, for example a name"),
        ),
        search_memories,
    ),
    MemoryTool(
        "get_recent_memories",
        "List what was remembered last, the newest first.",
        (Parameter("limit", "how many; 10 when nothing is said", "integer", least=1, most=MOST_RECENT),),
        get_recent_memories,
    ),
    MemoryTool(
        "store_memory",
        "Remember a fact about the user or the people and things around them that will matter later; no small talk,"
        " and nothing that anybody knows.",
        (
            _CONTENT,
            Parameter("subjects", "whom and what it is about, as single words", "array"),
            Parameter("ttl", "how long it is true, for what passes: 1h, 7d, 30d; leave it out for what lasts"),
            Parameter("type", "what kind of memory it is; fact when nothing is said", one_of=tuple(TYPES)),
            Parameter("importance", "0 to 1; that of the type when nothing is said", "number", most=1),
        ),
        store_memory,
    ),
    MemoryTool(
        "search_self",
        "Search what you know about yourself: where you are, what you can and cannot do, what you like.",
        (_query("what to look for, in any words"),),
        search_self,
    ),
    MemoryTool(
        "store_self",
        "Remember something you have found out about yourself.",
        (_CONTENT, _category(keys.SELF)),
        store_self,
    ),
    MemoryTool(
        "search_goals",
        "Search what you would like to be able to do, to understand or to be closer to.",
        (_query("what to look for, in any words"),),
        search_goals,
    ),
    MemoryTool(
        "store_goal",
        "Remember something you would like.",
        (_CONTENT, _category(keys.GOALS)),
        store_goal,
    ),
)
"""In the order in which they are offered."""
