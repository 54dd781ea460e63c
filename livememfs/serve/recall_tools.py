"""The tools to search and remember: observations (claude-mem 5.3), and memories (companion-memory).

Owns their answers. A search never fails because of the index: its `notes` say what is missing. Refuses to decide who
may call it: the toolbox does; without a project, a search covers all spaces that the caller sees. Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from livememfs.concurrency import in_thread
from livememfs.errors import BadRequest, NotFound, NotText, ObjectMissing
from livememfs.memories import tools
from livememfs.memories.parameters import QUESTION, Parameter
from livememfs.memories.tools import Desk
from livememfs.recall.search.query import parse
from livememfs.recall.service import SearchAnswer
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.session import SUMMARY_FIELDS, Summary
from livememfs.serve.toolbox import MOST_TOKENS, SPACE, Answered, McpTool, ToolCall, Toolset, Work
from livememfs.spaces import making as spaces
from livememfs.text.size import Budget
from livememfs.text.times import iso

MOST_FOUND = 50
MOST_IDS = 50
TIMELINE = 2_000
"""Estimated tokens of a timeline without an anchor."""
_ID = re.compile(r"#?[0-9A-Za-z_-]{1,100}")
_PROJECT = Parameter("project", required=True)
TOOLS = Toolset()


# --- observations --------------------------------------------------------------------------------------------------


@TOOLS.add(
    "Search notes, bank, memories and observations by meaning.",
    Parameter("query", required=True, longest=QUESTION),
    Parameter("project", "a space; none: all"),
    Parameter("type"),
    Parameter("concepts", kind="array"),
    Parameter("files", kind="array"),
    Parameter("limit", kind="integer", least=1, most=MOST_FOUND),
    returns={"results": "array"},
    about="project",
    core=True,
)
async def search_memory(
    call: ToolCall,
    query: str,
    project: str = "",
    type: str = "",
    concepts: Sequence[str] = (),
    files: Sequence[str] = (),
    limit: int = 10,
) -> Answered:
    """Search notes, banks, memories and observations, by words and by meaning."""
    from livememfs.recall.search.page import snippet  # with the index, which needs numpy

    narrowed = {"type": [type] if type else [], "concept": concepts, "file": files}
    answer = await ask(call, query, project, narrowed, limit)
    results = await in_thread(
        lambda: [
            {
                "path": hit.record.key,
                "id": keys.ending(hit.record.key.rpartition("/")[2]),
                "kind": hit.record.kind,
                "type": hit.record.type,
                "trust": hit.record.trust.word,
                **({"code": hit.mark} if hit.mark else {}),
                "title": hit.record.title,
                "date": iso(datetime.fromtimestamp(hit.record.created, UTC)),
                "score": round(hit.score, 4),
                "text": snippet(hit.record, hit.piece, answer.query),
            }
            for hit in answer.found.hits
        ]
    )
    return {"results": results, "notes": [*answer.query.doubts, *answer.notes, *answer.found.remarks]}


async def ask(
    call: ToolCall,
    question: str,
    project: str = "",
    narrowed: Mapping[str, Sequence[str]] | None = None,
    limit: int = 10,
) -> SearchAnswer:
    """Search a project, or all spaces that the caller sees."""
    search = parse(question, now=call.clock.now())
    for key, values in (narrowed or {}).items():
        search = search.narrowed(key, *values) if values else search
    search = replace(search, limit=min(search.limit or limit, MOST_FOUND))
    if project:
        await spaces.require_space(call.replica, project)
        seen: Sequence[str] = (project,)
    else:
        seen = [space.name for space in await spaces.list_spaces(call.replica) if call.access.sees(space.name)]
    return await call.context.recall.ask(search, tuple(seen), anew=True)


@TOOLS.add(
    "Show what was observed last, or around an id.",
    _PROJECT,
    Parameter("anchor"),
    returns={"timeline": "string"},
    about="project",
)
async def timeline(call: ToolCall, project: str, anchor: str = "") -> Answered:
    """The observations around one, or the last ones."""
    await spaces.require_space(call.replica, project)
    pages = call.context.pages
    if not anchor:
        return {"timeline": await pages.latest(project, TIMELINE)}
    text = await pages.around(project, _one_id(anchor))
    if text is None:
        raise NotFound(path=f"{project}/{keys.OBSERVATIONS}/{anchor}")
    return {"timeline": text}


@TOOLS.add(
    "Read observations in full.",
    Parameter("ids", kind="array", required=True, items=MOST_IDS),
    _PROJECT,
    returns={"observations": "array", "missing": "array"},
    about="project",
    core=True,
)
async def get_observations(call: ToolCall, ids: Sequence[str], project: str) -> Answered:
    """Whole observations, in the requested order."""
    await spaces.require_space(call.replica, project)
    wanted = [_one_id(name_or_id) for name_or_id in ids]
    prefix = keys.observations_prefix(project)
    level = await call.replica.names.listing(prefix)
    named: dict[str, str] = {}
    for name in level.objects:
        named[name.removesuffix(".md")] = named[keys.ending(name)] = prefix + name
    contents = await call.replica.read_many([named[name_or_id] for name_or_id in wanted if name_or_id in named])
    shown: list[dict[str, Any]] = []
    missing, more, budget = [], [], Budget(MOST_TOKENS)
    for name_or_id in wanted:
        key = named.get(name_or_id, "")
        observation = None
        if (stored := contents.get(key)) is not None:
            with suppress(NotText):
                observation = Observation.parse(stored.data, path=name_or_id, name=key.rpartition("/")[2])
        if observation is None:
            missing.append(name_or_id)
        elif budget.takes(observation.narrative, *observation.facts, at_any_cost=not shown):
            shown.append(_observation(observation))
            call.context.uses.count(project, [key])  # who asks for it by its id wants it
        else:
            more.append(name_or_id)
    return {"observations": shown, "missing": missing} | ({"more": more} if more else {})


def _one_id(text: str) -> str:
    """The id in an argument. BadRequest."""
    if not _ID.fullmatch(text):
        raise BadRequest(path="id", detail=f"{text[:40]!a} is no id of an observation")
    return text.removeprefix("#").removesuffix(".md")


def _observation(observation: Observation) -> dict[str, Any]:
    return {
        "id": observation.id,
        "session": observation.session,
        "created_at": iso(observation.created_at),
        "type": observation.type,
        "title": observation.title,
        "subtitle": observation.subtitle,
        "narrative": observation.narrative.strip("\n"),
        "facts": list(observation.facts),
        "concepts": list(observation.concepts),
        "files_read": list(observation.files_read),
        "files_modified": list(observation.files_modified),
        "discovery_tokens": observation.discovery_tokens,
    }


@TOOLS.add(
    "Read what a session came to.",
    Parameter("session_id", required=True),
    _PROJECT,
    returns={"completed": "string"},
    about="project",
)
async def get_session_summary(call: ToolCall, session_id: str, project: str) -> Answered:
    """The summary of a session."""
    await spaces.require_space(call.replica, project)
    key = keys.session_key(project, keys.session_slug(session_id), keys.SUMMARY)
    try:
        summary = Summary.parse((await call.replica.read(key)).data, path=key)
    except ObjectMissing:
        raise NotFound(path=f"summary of session {session_id[:80]!a} in {project}") from None
    parts = {name: text for name in SUMMARY_FIELDS if (text := getattr(summary, name))}
    return {"session_id": session_id, "created_at": iso(summary.created_at), **parts}


@TOOLS.add("Load what to know before working.", _PROJECT, returns={"context": "string"}, about="project", core=True)
async def get_project_context(call: ToolCall, project: str) -> Answered:
    """The context of a project, to read before work."""
    await spaces.require_space(call.replica, project)
    return {"context": await call.context.pages.page(project)}


# --- memories ------------------------------------------------------------------------------------------------------


def _at_a_desk(tool: tools.MemoryTool) -> Work:
    async def work(call: ToolCall, space_id: str, **given: Any) -> Answered:
        context = call.context
        recall, code, uses = context.recall, context.code, context.uses
        desk = Desk(call.replica, call.clock, recall, space_id, call.agent, call.warn, code, uses, context.dictated)
        return await tool.work(desk, **given)

    return work


_DESCRIPTIONS = {"ttl": "7d, 1h; none: lasts", "subjects": "whom it is about"}
_PURPOSES = {
    "search_memories": "Search facts about people and projects.",
    "get_recent_memories": "List the newest facts.",
    "store_memory": "Remember one lasting fact; no small talk.",
    "search_self": "Search what you know about yourself.",
    "store_self": "Remember something about yourself.",
    "search_goals": "Search what you would like.",
    "store_goal": "Remember something you would like.",
}
_CORE = frozenset({"search_memories", "store_memory"})


def _memory_tool(tool: tools.MemoryTool) -> McpTool:
    stores = tool.name.startswith("store_")
    # With short descriptions: a model reads the list of all tools with every request.
    parameters = (replace(parameter, says=_DESCRIPTIONS.get(parameter.name, "")) for parameter in tool.parameters)
    return McpTool(
        tool.name,
        _PURPOSES[tool.name],
        (SPACE, *parameters),
        {"id": "string"} if stores else {"memories": "array"},
        _at_a_desk(tool),
        needs="write" if stores else "read",
        effect="adds" if stores else "reads",
        core=tool.name in _CORE,
    )


TOOLS.extend(map(_memory_tool, tools.TOOLS))
