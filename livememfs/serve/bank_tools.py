"""The tools for the bank, by the names of the data model's section 5.

Owns their answers. Refuses to decide who may call it: the toolbox does. Trio thread only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from livememfs.cache.replica import Replica
from livememfs.concurrency import aside, for_each
from livememfs.errors import BadRequest, NotFound, ObjectMissing
from livememfs.memories.parameters import Parameter
from livememfs.records import keys
from livememfs.runs.options import RunOptions
from livememfs.serve.toolbox import LONGEST_PATH, MOST_TOKENS, SPACE, Answered, ToolCall, Toolset, check_path
from livememfs.spaces import making as spaces
from livememfs.spaces.objects import content, decode_text
from livememfs.store.base import ObjectInfo
from livememfs.text.size import Budget, first_lines, lines_of
from livememfs.text.times import iso

TOOLS = Toolset()


@TOOLS.add("List bank files.", SPACE, returns={"files": "array"}, core=True)
async def bank_list(call: ToolCall, space_id: str) -> Answered:
    """The bank's files without their text."""
    files = [
        {"filename": keys.parse(item.key).name, "size": item.size, "last_modified": _modified(item)}
        for item in await _bank(call, space_id)
    ]
    return {"files": files, "file_count": len(files)}


@TOOLS.add(
    "Read one bank file: what is settled.",
    SPACE,
    Parameter("filename", required=True, longest=LONGEST_PATH),
    Parameter("from_line", kind="integer", least=1),
    returns={"content": "string", "next_line": "integer"},
    core=True,
)
async def bank_read(call: ToolCall, space_id: str, filename: str, from_line: int = 1) -> Answered:
    """One file of the bank, or as much of it as fits; the rest begins at `next_line`."""
    info, text = await bank_file(call, space_id, filename)
    content, further = await aside(len(text), partial(_part, text, from_line, info.key))
    name = keys.parse(info.key).name
    return {"filename": name, "content": content, "size": info.size, "updated_at": _modified(info), **further}


def _part(text: str, from_line: int, key: str) -> tuple[str, dict[str, int]]:
    """The part of a text that fits, and the line where the rest begins. BadRequest."""
    lines = lines_of(text)
    if from_line > max(len(lines), 1):
        raise BadRequest(path=key, detail=f"it has {len(lines)} lines")
    rest = lines[from_line - 1 :]
    count = first_lines(rest, Budget(MOST_TOKENS))
    return "".join(rest[:count]), {"next_line": from_line + count} if count < len(rest) else {}


async def bank_file(call: ToolCall, space: str, filename: str) -> tuple[ObjectInfo, str]:
    """A file of the bank and its whole text. NotFound, NotText."""
    await spaces.require_space(call.replica, space)
    key = keys.bank_key(space, check_path(filename.removeprefix("bank/"), f"{space}/bank"))
    try:
        stored = await call.replica.read(key, fresh=True)
    except ObjectMissing:
        raise NotFound(path=key) from None
    return stored.info, decode_text(stored.data, key)


@TOOLS.add("Read all bank files.", SPACE, returns={"files": "array", "left_out": "array"})
async def bank_read_all(call: ToolCall, space_id: str) -> Answered:
    """All files of the bank that fit."""
    items = await _bank(call, space_id)
    texts: dict[str, str] = {}

    async def read(item: ObjectInfo) -> None:
        data = await content(call.replica, item)
        if data is not None:
            texts[keys.parse(item.key).name] = decode_text(data, item.key)

    await for_each(items, read)
    size = sum(item.size for item in items)
    return {**await fitting(texts, Budget(MOST_TOKENS), "files"), "total_size": size, "file_count": len(items)}


async def fitting(texts: Mapping[str, str], budget: Budget, field: str) -> Answered:
    """The files of a bank that fit, and the names of the others."""
    return await aside(sum(map(len, texts.values())), partial(_fitting, texts, budget, field))


def _fitting(texts: Mapping[str, str], budget: Budget, field: str) -> Answered:
    there = {name: text for name, text in sorted(texts.items()) if budget.takes(name, text)}
    left = [name for name in sorted(texts) if name not in there]
    shown = [{"filename": name, "content": text, "size": len(text.encode())} for name, text in there.items()]
    return {field: shown} | ({"left_out": left} if left else {})


async def _bank(call: ToolCall, space: str) -> list[ObjectInfo]:
    await spaces.require_space(call.replica, space)
    return await files_of(call.replica, space)


async def files_of(replica: Replica, space: str) -> list[ObjectInfo]:
    """The files of a bank."""
    return [item for item in await replica.names.walk(keys.bank_prefix(space)) if keys.parse(item.key).kind == "bank"]


def _modified(item: ObjectInfo) -> str:
    return iso(datetime.fromtimestamp(item.modified_ns // 1_000_000_000, UTC))


@TOOLS.add(
    "Fold the notes into the bank with the LLM.",
    SPACE,
    Parameter("agent", "only its notes"),
    Parameter("dry_run", "only show the diff", "boolean"),
    Parameter("max_notes", kind="integer", least=1),
    returns={"state": "string"},
    needs="write",
    effect="changes",
    core=True,
)
async def bank_consolidate(
    call: ToolCall, space_id: str, agent: str = "", dry_run: bool = False, max_notes: int | None = None
) -> Answered:
    """Fold the notes into the bank; waits for a run that is under way already.

    A caller without `admin` takes only its own notes: another agent may still be at work on theirs.
    """
    if not call.access.may("admin"):
        own = call.access.name
        if agent not in ("", own):
            call.access.require(space_id, "admin")
        agent = own
    await spaces.require_space(call.replica, space_id)
    return await consolidated(call, space_id, RunOptions(dry_run=dry_run, agent=agent or None, max_notes=max_notes))


async def consolidated(call: ToolCall, space_id: str, options: RunOptions) -> Answered:
    """One consolidation, to its end."""
    runs = call.context.consolidations
    ticket = runs.touch(space_id, options)
    outcome: dict[str, Any] = {}
    waiting = cast(AsyncGenerator[dict[str, Any]], runs.wait(space_id, ticket))
    async with aclosing(waiting) as outcomes:  # a client may go away meanwhile
        async for outcome in outcomes:
            await call.progress(str(outcome.get("phase") or outcome.get("state", "")))
    diff = runs.diff(space_id) if options.dry_run and outcome.get("state") == "ok" else None
    return _told(outcome) | ({"diff": diff} if diff is not None else {})


def _told(outcome: Mapping[str, Any]) -> Answered:
    """How a run ended. `state` says it exactly; `status` only whether it failed, and then `message` says why."""
    failed = outcome.get("state") in ("error", "held")
    parts = ("reason", "what_to_do", "message") if failed else ("message", "reason")
    message = "; ".join(filter(None, map(outcome.get, parts)))
    return {**outcome, "status": "error" if failed else "ok", "message": message}
