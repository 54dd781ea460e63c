"""The tools that keep spaces in order, by the names of Live Memory.

Owns their answers. Refuses to decide who may call one: the toolbox does. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from livememfs.memories.parameters import Parameter
from livememfs.runs.options import RunOptions
from livememfs.runs.upkeep import gc
from livememfs.runs.upkeep.oldnotes import OldNotes, find_old
from livememfs.serve.bank_tools import consolidated
from livememfs.serve.space_tools import CONFIRM
from livememfs.serve.toolbox import DESCRIPTION, SPACE, Answered, ToolCall, Toolset
from livememfs.spaces import making as spaces
from livememfs.spaces.changing import describe
from livememfs.text.times import iso

OLD_DAYS, MOST_DAYS = 7, 36_500
_SPACE = Parameter("space_id")
TOOLS = Toolset()


@TOOLS.add(
    "Change a space's description or owner.",
    SPACE,
    DESCRIPTION,
    Parameter("owner"),
    returns={"updated_fields": "array"},
    needs="write",
    effect="changes",
)
async def space_update(call: ToolCall, space_id: str, description: str = "", owner: str = "") -> Answered:
    """Change what a space is called by people."""
    meta = await describe(call.replica, space_id, description=description, owner=owner, on_private=call.warn)
    updated = [name for name, given in (("description", description), ("owner", owner)) if given]
    return {"space_id": space_id, "updated_fields": updated, "description": meta.description, "owner": meta.owner}


@TOOLS.add(
    "Consolidate or remove notes that wait for long.",
    _SPACE,
    Parameter("max_age_days", kind="number", most=MOST_DAYS),
    CONFIRM,
    Parameter("delete_only", kind="boolean"),
    returns={"spaces": "object"},
    needs="admin",
    effect="changes",
)
async def admin_gc_notes(
    call: ToolCall, space_id: str = "", max_age_days: float = OLD_DAYS, confirm: bool = False, delete_only: bool = False
) -> Answered:
    """The old notes; with `confirm` they are consolidated, or with `delete_only` removed after a backup."""
    cutoff = call.clock.now() - timedelta(days=max_age_days)
    if space_id:
        await spaces.require_space(call.replica, space_id)
    names = [space_id] if space_id else [each.name for each in await spaces.list_spaces(call.replica)]
    old = await find_old(call.replica, [name for name in names if call.access.sees(name)], cutoff)
    count = sum(len(each.notes) for each in old)
    mode = "dry-run" if not confirm else "delete" if delete_only else "consolidate"
    done = await _WORK[mode](call, old)
    return {
        "max_age_days": max_age_days,
        "cutoff_date": iso(cutoff),
        "spaces": {
            each.space: {"old_notes": len(each.notes), "total_size": each.size, "agents": each.agents} for each in old
        },
        "total_old_notes": count,
        "total_old_size": sum(each.size for each in old),
        "mode": mode,
        **done,
    }


async def _shown(_: ToolCall, old: Sequence[OldNotes]) -> Answered:
    count = sum(len(each.notes) for each in old)
    return {"message": f"{count} old notes; with confirm they are consolidated, with delete_only too they are removed"}


async def _consolidated(call: ToolCall, old: Sequence[OldNotes]) -> Answered:
    """A run for each space, of as many notes as are old: a run takes the oldest first."""
    processed, failures = 0, []
    for each in old:
        outcome = await consolidated(call, each.space, RunOptions(max_notes=len(each.notes)))
        processed += outcome["notes_processed"]
        failures += [f"{each.space}: {outcome['message']}"] if outcome["status"] == "error" else []
    message = "; ".join([f"{processed} notes are consolidated", *failures])
    return {"status": "error" if failures else "ok", "notes_processed": processed, "message": message}


async def _removed(call: ToolCall, old: Sequence[OldNotes]) -> Answered:
    leases = call.context.consolidations.leases
    findings = [finding for each in old for finding in each.findings()]
    gone = await gc.remove(call.replica, call.clock, leases, findings)
    saved = ", ".join(f"{space}/{stamp}" for space, stamp in gone.backups.items())
    message = f"{gone.objects} notes are removed" + (f"; they are in {saved}" if saved else "")
    return {"deleted": gone.objects, "message": message}


_WORK: dict[str, Any] = {"dry-run": _shown, "consolidate": _consolidated, "delete": _removed}
