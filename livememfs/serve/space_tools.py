"""The tools for spaces, notes and the bank, by the names of the data model's section 5.

Owns what each answers. Refuses to decide who may call it: the toolbox does. Trio thread only.
"""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from livememfs.concurrency import for_each
from livememfs.errors import BadRequest, NotFound, NotText, ObjectMissing, TooLarge
from livememfs.pipelines import spaces
from livememfs.pipelines.notes import write_note
from livememfs.pipelines.objects import content, decode_text
from livememfs.pipelines.options import RunOptions
from livememfs.pipelines.parameters import Parameter
from livememfs.records import keys
from livememfs.records.note import CATEGORIES, Note
from livememfs.records.space import Meta
from livememfs.records.times import iso, parse_iso
from livememfs.serve.toolbox import SPACE, Answered, Call, Tool, check_path
from livememfs.store.base import ObjectInfo, StoredObject

LARGEST_ARCHIVE = 8 << 20
"""Bytes that are sent in one answer; larger ones are for the command line."""
MOST_NOTES = 500
SUMMARY_NOTES = 10
READ_AT_ONCE, MOST_LOOKED_AT = 100, 10_000
"""Notes that are read at a time, and for one answer: a search that finds nothing must end too."""


# --- spaces --------------------------------------------------------------------------------------------------------


async def space_create(call: Call, space_id: str, description: str = "", rules: str = "", owner: str = "") -> Answered:
    """Make a space."""
    meta = await spaces.create(
        call.replica,
        call.clock,
        space_id,
        description=description,
        owner=owner or call.agent,
        rules=rules or None,
    )
    return {"space_id": space_id, "created_at": iso(meta.created_at)}


async def space_list(call: Call) -> Answered:
    """The spaces that the caller sees."""
    found = [one for one in await spaces.list_spaces(call.replica) if call.access.sees(one.name)]
    return {"spaces": [{"space_id": one.name, **_record(one.meta, one.problem)} for one in found]}


def _record(meta: Meta | None, problem: str) -> dict[str, Any]:
    """What `_meta.json` says."""
    if meta is None:
        return {"problem": problem}
    last = meta.last_consolidation
    return {
        "description": meta.description,
        "owner": meta.owner,
        "created_at": iso(meta.created_at),
        "last_consolidation": iso(last) if last else None,
        "consolidation_count": meta.consolidation_count,
        "total_notes_processed": meta.total_notes_processed,
    }


async def space_info(call: Call, space_id: str) -> Answered:
    """What a space is and how much it holds."""
    found = await spaces.info(call.replica, space_id)
    return {
        "space_id": space_id,
        **_record(found.meta, found.problem),
        "live": {"notes": found.notes, "bytes": found.note_bytes},
        "bank": {"files": found.bank_files, "bytes": found.bank_bytes},
        "rules": found.rules,
        "synthesis": found.synthesis,
    }


async def space_rules(call: Call, space_id: str) -> Answered:
    """The rules, as they were sealed."""
    return {"rules": await spaces.rules(call.replica, space_id)}


async def space_summary(call: Call, space_id: str) -> Answered:
    """Everything that is settled, and the last notes: what an agent loads first."""
    found = await spaces.summary(call.replica, space_id)
    notes, more = await _notes(call, space_id, lambda _: True, SUMMARY_NOTES)
    return {
        "description": found.description,
        "rules": found.rules or "",
        "bank": [{"filename": name, "content": text} for name, text in found.bank.items()],
        "notes": notes,
        "more": more,
    }


async def space_export(call: Call, space_id: str) -> Answered:
    """All objects of a space as an archive in base64."""
    await spaces.require_space(call.replica, space_id)
    return await archive(call, f"{space_id}/", "", f"livememfs space export {space_id}")


async def archive(call: Call, prefix: str, below: str, otherwise: str) -> Answered:
    """What is below a prefix as a `.tar.gz`. TooLarge; `otherwise` is the command for what is."""
    objects = [item for item in await call.replica.walk(prefix) if not item.key.endswith("/")]
    if sum(item.size for item in objects) > LARGEST_ARCHIVE:
        raise TooLarge(path=prefix, detail=f"over {LARGEST_ARCHIVE >> 20} MB; `{otherwise}` writes it to a file")
    data, count = io.BytesIO(), 0
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for item in objects:
            found = await content(call.replica, item)
            if found is not None:
                about = tarfile.TarInfo(item.key.removeprefix(below))
                about.size, about.mtime = len(found), item.modified_ns // 1_000_000_000
                tar.addfile(about, io.BytesIO(found))
                count += 1
    return {"archive_base64": base64.b64encode(data.getvalue()).decode(), "objects": count}


async def space_delete(call: Call, space_id: str, confirm: bool = False) -> Answered:
    """Remove a space with all it holds; its backups stay."""
    if not confirm:
        raise BadRequest(path=space_id, detail="nothing was removed: confirm is not true")
    return {"objects": await spaces.delete(call.replica, space_id)}


# --- notes ---------------------------------------------------------------------------------------------------------


async def live_note(
    call: Call, space_id: str, content: str, category: str = "", agent: str = "", tags: Sequence[str] = ()
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
    )
    return {"filename": key.rpartition("/")[2]}


async def live_read(
    call: Call, space_id: str, limit: int = 50, category: str = "", agent: str = "", since: str = ""
) -> Answered:
    """The newest notes, newest first."""
    after = _moment(since)

    def fits(note: Note) -> bool:
        right = (not category or note.category == category) and (not agent or note.agent == agent)
        return right and (after is None or note.timestamp >= after)

    notes, more = await _notes(call, space_id, fits, limit, after)
    return {"notes": notes, "more": more}


async def live_search(call: Call, space_id: str, query: str, limit: int = 20) -> Answered:
    """The notes that have all words of a question, newest first."""
    words = query.casefold().split()
    if not words:
        raise BadRequest(path="query", detail="there is no word in it")

    def fits(note: Note) -> bool:
        text = f"{note.body} {' '.join(note.tags)} {note.category} {note.agent}".casefold()
        return all(word in text for word in words)

    notes, more = await _notes(call, space_id, fits, limit)
    return {"notes": notes, "more": more}


async def _notes(
    call: Call, space: str, fits: Callable[[Note], bool], limit: int, after: datetime | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """The newest notes that fit, newest first, and whether there may be more. Their names sort by time, so they are
    read from the newest on, until there are enough.
    """
    await spaces.require_space(call.replica, space)
    prefix = keys.live_prefix(space)
    infos = [info for info in await call.replica.walk(prefix, local=True) if keys.parse(info.key).kind == "note"]
    names = [name for info in infos if not _is_before(name := info.key.removeprefix(prefix), after)][::-1]
    found: list[tuple[str, Note]] = []
    looked = 0
    while looked < min(len(names), MOST_LOOKED_AT) and len(found) <= limit:
        portion = names[looked : looked + READ_AT_ONCE]
        looked += len(portion)
        stored = await call.replica.read_many([prefix + name for name in portion])
        for name in portion:
            note = _parsed(stored.get(prefix + name), prefix + name, name)
            if note is not None and fits(note):
                found.append((name, note))
    return [_shown(name, note) for name, note in found[:limit]], len(found) > limit or looked < len(names)


def _parsed(stored: StoredObject | None, key: str, name: str) -> Note | None:
    """A note; None when it is gone, or no text."""
    try:
        return Note.parse(stored.data, path=key, name=name) if stored is not None else None
    except NotText:
        return None


def _is_before(name: str, after: datetime | None) -> bool:
    """Whether a note's name alone says that it is too old: then it need not be read."""
    named = keys.NoteName.parse(name) if after is not None else None
    return named is not None and after is not None and named.timestamp < after - timedelta(seconds=1)


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


# --- the bank ------------------------------------------------------------------------------------------------------


async def bank_list(call: Call, space_id: str) -> Answered:
    """The bank's files without their text."""
    files = [
        {"filename": keys.parse(item.key).name, "size": item.size, "updated_at": _modified(item)}
        for item in await _bank(call, space_id)
    ]
    return {"files": files}


async def bank_read(call: Call, space_id: str, filename: str) -> Answered:
    """One file of the bank."""
    await spaces.require_space(call.replica, space_id)
    key = keys.bank_key(space_id, check_path(filename.removeprefix("bank/"), f"{space_id}/bank"))
    try:
        found = await call.replica.read(key, fresh=True)
    except ObjectMissing:
        raise NotFound(path=key) from None
    return {"content": decode_text(found.data, key), "updated_at": _modified(found.info)}


async def bank_read_all(call: Call, space_id: str) -> Answered:
    """All files of the bank."""
    items = await _bank(call, space_id)
    texts: dict[str, str] = {}

    async def read(item: ObjectInfo) -> None:
        data = await content(call.replica, item)
        if data is not None:
            texts[keys.parse(item.key).name] = decode_text(data, item.key)

    await for_each(items, read)
    return {"files": [{"filename": name, "content": texts[name]} for name in sorted(texts)]}


async def _bank(call: Call, space: str) -> list[ObjectInfo]:
    await spaces.require_space(call.replica, space)
    items = await call.replica.walk(keys.bank_prefix(space))
    return [item for item in items if keys.parse(item.key).kind == "bank"]


def _modified(item: ObjectInfo) -> str:
    return iso(datetime.fromtimestamp(item.modified_ns // 1_000_000_000, UTC))


async def bank_consolidate(
    call: Call, space_id: str, agent: str = "", dry_run: bool = False, max_notes: int | None = None
) -> Answered:
    """Fold the notes into the bank; a run that is at work already is waited for."""
    await spaces.require_space(call.replica, space_id)
    runs = call.context.consolidations
    options = RunOptions(dry_run=dry_run, agent=agent or None, max_notes=max_notes)
    ticket = runs.touch(space_id, options)
    outcome: dict[str, Any] = {}
    async for outcome in runs.wait(space_id, ticket):
        await call.progress(str(outcome.get("phase") or outcome.get("state", "")))
    diff = runs.diff(space_id) if dry_run and outcome.get("state") == "ok" else None
    return {**outcome, **({"diff": diff} if diff is not None else {})}


# --- as they are offered -------------------------------------------------------------------------------------------

_CONFIRM = Parameter("confirm", "must be true", "boolean", required=True)
_LIMIT = Parameter("limit", kind="integer", least=1, most=MOST_NOTES)

TOOLS = (
    Tool(
        "space_create",
        "Make a memory space; rules say which files its bank has.",
        (SPACE, Parameter("description"), Parameter("rules", "Markdown, sealed for good"), Parameter("owner")),
        {"space_id": "string", "created_at": "string"},
        space_create,
        needs="write",
        effect="adds",
    ),
    Tool("space_list", "List spaces.", (), {"spaces": "array"}, space_list, about="", core=True),
    Tool("space_info", "Tell what a space holds.", (SPACE,), {"live": "object", "bank": "object"}, space_info),
    Tool("space_rules", "Read a space's rules.", (SPACE,), {"rules": "string"}, space_rules),
    Tool(
        "space_summary",
        "Load a space at once: rules, bank, last notes.",
        (SPACE,),
        {"rules": "string", "bank": "array", "notes": "array"},
        space_summary,
    ),
    Tool("space_export", "Get a space as .tar.gz.", (SPACE,), {"archive_base64": "string"}, space_export),
    Tool(
        "space_delete",
        "Remove a space and all it holds.",
        (SPACE, _CONFIRM),
        {"objects": "integer"},
        space_delete,
        needs="admin",
        effect="destroys",
    ),
    Tool(
        "live_note",
        "Write a note: what happened, was decided, is to do.",
        (
            SPACE,
            Parameter("content", required=True),
            Parameter("category", one_of=CATEGORIES),
            Parameter("agent"),
            Parameter("tags", kind="array"),
        ),
        {"filename": "string"},
        live_note,
        needs="write",
        effect="adds",
        core=True,
    ),
    Tool(
        "live_read",
        "Read the newest notes not consolidated yet.",
        (SPACE, _LIMIT, Parameter("category"), Parameter("agent"), Parameter("since", "ISO 8601")),
        {"notes": "array", "more": "boolean"},
        live_read,
        core=True,
    ),
    Tool(
        "live_search",
        "Find notes that have all these words.",
        (SPACE, Parameter("query", required=True), _LIMIT),
        {"notes": "array", "more": "boolean"},
        live_search,
    ),
    Tool("bank_list", "List bank files.", (SPACE,), {"files": "array"}, bank_list, core=True),
    Tool(
        "bank_read",
        "Read one bank file: what is settled.",
        (SPACE, Parameter("filename", required=True)),
        {"content": "string"},
        bank_read,
        core=True,
    ),
    Tool("bank_read_all", "Read all bank files.", (SPACE,), {"files": "array"}, bank_read_all),
    Tool(
        "bank_consolidate",
        "Fold the notes into the bank with the LLM.",
        (
            SPACE,
            Parameter("agent", "only its notes"),
            Parameter("dry_run", "only show the diff", "boolean"),
            Parameter("max_notes", kind="integer", least=1),
        ),
        {"state": "string", "notes_processed": "integer", "reason": "string", "diff": "string"},
        bank_consolidate,
        needs="write",
        effect="changes",
        core=True,
    ),
)
