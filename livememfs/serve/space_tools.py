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

from livememfs.concurrency import in_thread
from livememfs.errors import BadRequest, TooLarge
from livememfs.memories.parameters import Parameter
from livememfs.records.space import Meta
from livememfs.runs.options import CONTROLS
from livememfs.serve import note_tools
from livememfs.serve.bank_tools import fitting
from livememfs.serve.toolbox import MOST_TOKENS, SPACE, Answered, ToolCall, Toolset
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
CONFIRM = Parameter("confirm", "must be true", "boolean", required=True)
TOOLS = Toolset()


@TOOLS.add(
    "Make a memory space; rules say which files its bank has.",
    SPACE,
    Parameter("description"),
    Parameter("rules", "Markdown, sealed for good", longest=spaces.MAX_RULES_BYTES),
    Parameter("owner"),
    returns={"space_id": "string", "created_at": "string"},
    needs="write",
    effect="adds",
)
async def space_create(
    call: ToolCall, space_id: str, description: str = "", rules: str = "", owner: str = ""
) -> Answered:
    """Make a space."""
    meta = await spaces.create(
        call.replica,
        call.clock,
        space_id,
        description=description,
        owner=owner or call.agent,
        rules=rules or None,
        on_private=call.warn,
    )
    return {"space_id": space_id, "created_at": iso(meta.created_at)}


@TOOLS.add("List spaces.", returns={"spaces": "array"}, about="", core=True)
async def space_list(call: ToolCall) -> Answered:
    """The spaces that the caller sees."""
    seen = [space for space in await spaces.list_spaces(call.replica) if call.access.sees(space.name)]
    return {"spaces": [{"space_id": space.name, **_record(space.meta, space.problem)} for space in seen]}


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
        "live": {"notes": info.notes, "bytes": info.note_bytes},
        "bank": {"files": info.bank_files, "bytes": info.bank_bytes},
        "rules": info.rules,
        "synthesis": info.synthesis,
    }


@TOOLS.add("Read a space's rules.", SPACE, returns={"rules": "string"})
async def space_rules(call: ToolCall, space_id: str) -> Answered:
    """The sealed rules."""
    return {"rules": await spaces.rules(call.replica, space_id)}


@TOOLS.add(
    "Load a space at once: rules, bank, last notes.",
    SPACE,
    returns={"rules": "string", "bank": "array", "left_out": "array", "notes": "array"},
)
async def space_summary(call: ToolCall, space_id: str) -> Answered:
    """Rules, bank and the last notes: an agent loads these first."""
    summary = await spaces.summary(call.replica, space_id)
    rules = summary.rules or ""
    budget = Budget(MOST_TOKENS - NOTES_TOKENS)
    budget.takes(rules, at_any_cost=True)
    notes = await note_tools.newest(call, space_id, lambda _: True, SUMMARY_NOTES, Budget(NOTES_TOKENS))
    bank = await fitting(summary.bank, budget, "bank")
    return {"description": summary.description, "rules": rules, **bank, **notes}


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
    packed = await in_thread(partial(_packed, contents, below))
    return {"archive_base64": packed, "objects": len(contents), **about_them}


def _packed(objects: Sequence[tuple[ObjectInfo, bytes]], below: str) -> str:
    """The archive in base64."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for item, data in objects:
            about = tarfile.TarInfo(item.key.removeprefix(below))
            about.size, about.mtime = len(data), item.modified_ns // 1_000_000_000
            tar.addfile(about, io.BytesIO(data))
    return base64.b64encode(packed.getvalue()).decode()


@TOOLS.add(
    "Remove a space and all it holds.", SPACE, CONFIRM, returns={"objects": "integer"}, needs="admin", effect="destroys"
)
async def space_delete(call: ToolCall, space_id: str, confirm: bool = False) -> Answered:
    """Remove a space with all its objects; its backups stay."""
    if not confirm:
        raise BadRequest(path=space_id, detail="nothing was removed: confirm is not true")
    runs = call.context.consolidations
    for kind in CONTROLS:
        runs.cancel(space_id, kind)  # its result would be removed anyway; `hold` waits for a run that writes already
    async with runs.leases.hold(space_id):
        return {"objects": await spaces.delete(call.replica, space_id)}
