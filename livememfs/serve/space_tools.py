"""The tools for spaces as a whole, by the names of the data model's section 5.

Owns their answers. Refuses to decide who may call it: the toolbox does. Trio thread only.
"""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Sequence
from functools import partial
from typing import Any

from livememfs.concurrency import for_each, in_thread
from livememfs.errors import AlreadyExists, BadRequest, NotFound, TooLarge
from livememfs.memories.parameters import Parameter
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.runs.options import CONTROLS
from livememfs.serve import note_tools
from livememfs.serve.bank_tools import fitting
from livememfs.serve.toolbox import DESCRIPTION, MOST_TOKENS, SPACE, Answered, ToolCall, Toolset
from livememfs.spaces import making as spaces
from livememfs.spaces.archive import unpackable
from livememfs.spaces.objects import content
from livememfs.store.base import ObjectInfo
from livememfs.text.size import Budget
from livememfs.text.times import iso

LARGEST_ARCHIVE = 2 << 20
"""Most bytes of an archive in an answer; larger ones are for the command line."""
SUMMARY_NOTES, NOTES_TOKENS = 10, 5_000
"""Most notes in a summary, and most tokens for them."""
CONFIRM = Parameter("confirm", "must be true", "boolean")
TOOLS = Toolset()


@TOOLS.add(
    "Make a memory space; rules say which files its bank has.",
    SPACE,
    DESCRIPTION,
    Parameter("rules", "Markdown, sealed for good", longest=spaces.MAX_RULES_BYTES),
    Parameter("owner"),
    returns={"space_id": "string", "created_at": "string"},
    needs="write",
    effect="adds",
    done="created",
    makes=True,
)
async def space_create(
    call: ToolCall, space_id: str, description: str = "", rules: str = "", owner: str = ""
) -> Answered:
    """Make a space. A token that is limited to spaces may see the new one from now on."""
    digest = await _to_widen(call, space_id)
    meta = await spaces.create(
        call.replica,
        call.clock,
        space_id,
        description=description,
        owner=owner or call.agent,
        rules=rules or None,
        on_private=call.warn,
    )
    gained = await _widen(call, digest, space_id) if digest else {}
    made = {"description": meta.description, "rules_size": len(rules.encode()), "created_at": iso(meta.created_at)}
    return {"space_id": space_id, **made, **gained}


async def _to_widen(call: ToolCall, space: str) -> str:
    """The hash of the caller's token if that has to be given the new space; empty if the caller sees it already.

    NotFound where nothing can be given to the caller, AlreadyExists where they would gain what others have left there:
    the files of a plain directory, or the backups of a removed space.
    """
    if call.access.sees(space):
        return ""
    if not call.access.token:
        raise NotFound(path=space)
    for prefix in (f"{space}/", f"{keys.BACKUPS}/{space}/"):
        there = await call.replica.names.listing(prefix, fresh=True)
        if there.objects or there.folders:
            raise AlreadyExists(path=space)
    return call.access.token


async def _widen(call: ToolCall, digest: str, space: str) -> Answered:
    await call.tokens.give(digest, space)
    return {"token_auto_updated": True, "token_message": f"your token may use {space} from now on"}


@TOOLS.add("List spaces.", returns={"spaces": "array"}, about="", core=True)
async def space_list(call: ToolCall) -> Answered:
    """The spaces that the caller sees."""
    seen = [space for space in await spaces.list_spaces(call.replica) if call.access.sees(space.name)]
    counts: dict[str, Answered] = {}

    async def count(space: spaces.SpaceEntry) -> None:
        notes, files = await spaces.counts(call.replica, space.name)
        counts[space.name] = {"live_notes_count": notes, "bank_files_count": files}

    await for_each(seen, count)
    listed = [{"space_id": each.name, **_record(each.meta, each.problem), **counts[each.name]} for each in seen]
    return {"spaces": listed, "total": len(listed)}


def _record(meta: Meta | None, problem: str) -> dict[str, Any]:
    """The fields of `_meta.json`."""
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


@TOOLS.add("Tell what a space holds.", SPACE, returns={"live": "object", "bank": "object"})
async def space_info(call: ToolCall, space_id: str) -> Answered:
    """A space's record, and how much it contains."""
    info = await spaces.info(call.replica, space_id)
    return {
        "space_id": space_id,
        **_record(info.meta, info.problem),
        "live": {"notes_count": info.notes, "total_size": info.note_bytes},
        "bank": {"files_count": info.bank_files, "total_size": info.bank_bytes, "files": list(info.bank_names)},
        "rules": info.rules,
        "synthesis_exists": info.synthesis,
    }


@TOOLS.add("Read a space's rules.", SPACE, returns={"rules": "string"})
async def space_rules(call: ToolCall, space_id: str) -> Answered:
    """The sealed rules."""
    return {"rules": await spaces.rules(call.replica, space_id)}


@TOOLS.add(
    "Load a space at once: rules, bank, last notes.",
    SPACE,
    returns={"rules": "string", "bank_files": "array", "left_out": "array", "notes": "array", "synthesis": "string"},
)
async def space_summary(call: ToolCall, space_id: str) -> Answered:
    """Rules, bank and the last notes: an agent loads these first."""
    summary = await spaces.summary(call.replica, space_id)
    rules = summary.rules or ""
    budget = Budget(MOST_TOKENS - NOTES_TOKENS)
    budget.takes(rules, at_any_cost=True)
    budget.takes(summary.synthesis, at_any_cost=True)
    notes = await note_tools.newest(call, space_id, lambda _: True, SUMMARY_NOTES, Budget(NOTES_TOKENS), every=True)
    bank = await fitting(summary.bank, budget, "bank_files")
    about = {"description": summary.description, "rules": rules, "synthesis": summary.synthesis}
    return {**about, **bank, "bank_file_count": len(summary.bank), **notes}


@TOOLS.add("Get a space as .tar.gz.", SPACE, returns={"archive_base64": "string"})
async def space_export(call: ToolCall, space_id: str) -> Answered:
    """All objects of a space as an archive in base64."""
    await spaces.require_space(call.replica, space_id)
    return await archive(call, f"{space_id}/", "", f"livememfs space export {space_id}")


async def archive(call: ToolCall, prefix: str, below: str, otherwise: str) -> Answered:
    """All objects below a prefix as a `.tar.gz`. TooLarge, with the command `otherwise` as advice."""
    objects = [item for item in await call.replica.names.walk(prefix) if not item.key.endswith("/")]
    if sum(item.size for item in objects) > LARGEST_ARCHIVE:
        raise TooLarge(path=prefix, detail=f"over {LARGEST_ARCHIVE >> 20} MB; `{otherwise}` writes it to a file")
    good = unpackable(item.key.removeprefix(below) for item in objects)
    kept = [item for item in objects if item.key.removeprefix(below) in good]
    left_out = [item.key for item in objects if item.key.removeprefix(below) not in good]
    contents = [(item, data) for item in kept if (data := await content(call.replica, item)) is not None]
    about_them = {"left_out": left_out} if left_out else {}  # files with such names could not be unpacked
    packed, size = await in_thread(partial(_packed, contents, below))
    count = len(contents)
    return {"archive_base64": packed, "archive_size": size, "files_count": count, "objects": count, **about_them}


def _packed(objects: Sequence[tuple[ObjectInfo, bytes]], below: str) -> tuple[str, int]:
    """The archive in base64, and its size before that."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for item, data in objects:
            about = tarfile.TarInfo(item.key.removeprefix(below))
            about.size, about.mtime = len(data), item.modified_ns // 1_000_000_000
            tar.addfile(about, io.BytesIO(data))
    return base64.b64encode(packed.getvalue()).decode(), packed.tell()


@TOOLS.add(
    "Remove a space and all it holds.",
    SPACE,
    CONFIRM,
    returns={"files_deleted": "integer"},
    needs="admin",
    effect="destroys",
    done="deleted",
)
async def space_delete(call: ToolCall, space_id: str, confirm: bool = False) -> Answered:
    """Remove a space with all its objects; its backups stay."""
    if not confirm:
        raise BadRequest(path=space_id, detail="nothing was removed: confirm is not true")
    runs = call.context.consolidations
    for kind in CONTROLS:
        runs.cancel(space_id, kind)  # its result would be removed anyway; `hold` waits for a run that writes already
    async with runs.leases.hold(space_id):
        removed = await spaces.delete(call.replica, space_id)
    return {"files_deleted": removed, "objects": removed}
