"""The tools by which an administrator mends a space: bank files and rules, each change as a run that undo takes back.

Owns their answers. Refuses to decide who may call one: the toolbox does. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from livememfs.errors import NotFound
from livememfs.memories.parameters import Parameter
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.names import check_bank_name
from livememfs.runs.edit import Replacement, edit
from livememfs.runs.upkeep.oddnames import OddNames, cleaned, find_odd
from livememfs.serve.bank_tools import files_of
from livememfs.serve.toolbox import LONGEST_PATH, LONGEST_TEXT, SPACE, Answered, ToolCall, Toolset
from livememfs.spaces import making as spaces
from livememfs.spaces.making import MAX_RULES_BYTES, check_rules
from livememfs.spaces.objects import public

_FILE = Parameter("filename", required=True, longest=LONGEST_PATH)
TOOLS = Toolset()


async def _edited(call: ToolCall, space: str, changes: Sequence[Replacement]) -> Entry | None:
    """Make the changes in the name of the caller."""
    leases, host = call.context.consolidations.leases, call.context.host
    by = call.access.name or call.agent
    return await edit(call.replica, call.clock, leases, host, space, changes, by)


def _run(entry: Entry | None) -> Answered:
    """The number of the run, for an undo; nothing if nothing had to change."""
    return {"run": entry.number} if entry is not None else {}


@TOOLS.add(
    "Replace or make a bank file; undo takes it back.",
    SPACE,
    _FILE,
    Parameter("content", required=True, longest=LONGEST_TEXT),
    returns={"action": "string"},
    needs="admin",
    effect="changes",
)
async def bank_write(call: ToolCall, space_id: str, filename: str, content: str) -> Answered:
    """Write a bank file by hand."""
    name = check_bank_name(filename)
    data = await public(content, keys.bank_key(space_id, name), call.warn)
    entry = await _edited(call, space_id, [Replacement(f"{keys.BANK}/{name}", data.decode())])
    created = entry is not None and entry.metrics["bank_files_created"]
    return {"filename": name, "action": "created" if created else "replaced", "size": len(data), **_run(entry)}


@TOOLS.add(
    "Remove a bank file; undo takes it back.",
    SPACE,
    _FILE,
    returns={"files_deleted": "integer"},
    needs="admin",
    effect="destroys",
    done="deleted",
)
async def bank_delete(call: ToolCall, space_id: str, filename: str) -> Answered:
    """Remove a bank file, and its twins: files whose names look the same."""
    await spaces.require_space(call.replica, space_id)
    wanted = cleaned(filename.removeprefix(f"{keys.BANK}/"))
    names = [keys.parse(info.key).name for info in await files_of(call.replica, space_id)]
    gone = [name for name in names if cleaned(name) == wanted]
    if not gone:
        raise NotFound(path=f"{keys.bank_prefix(space_id)}{filename}")
    entry = await _edited(call, space_id, [Replacement(f"{keys.BANK}/{name}", None) for name in gone])
    paths = [keys.bank_key(space_id, name) for name in gone]
    return {"filename": filename, "files_deleted": len(gone), "keys_deleted": paths, **_run(entry)}


@TOOLS.add(
    "Seal new rules for a space; undo takes them back.",
    SPACE,
    Parameter("rules", required=True, longest=MAX_RULES_BYTES),
    returns={"rules_size": "integer"},
    needs="admin",
    effect="changes",
)
async def space_update_rules(call: ToolCall, space_id: str, rules: str) -> Answered:
    """Replace the rules, which nobody else can."""
    data = await public(rules, keys.rules_key(space_id), call.warn)
    check_rules(space_id, data)
    entry = await _edited(call, space_id, [Replacement(keys.RULES, data.decode())])
    what = "they are the same" if entry is None else f"the former ones are in backup {space_id}/{entry.backup}"
    return {"space_id": space_id, "rules_size": len(data), "message": f"the rules are sealed; {what}", **_run(entry)}


@TOOLS.add(
    "Find, and with dry_run false mend, odd names in a bank.",
    SPACE,
    Parameter("dry_run", kind="boolean"),
    returns={"repairs": "array", "duplicates": "array"},
    needs="admin",
    effect="changes",
)
async def bank_repair(call: ToolCall, space_id: str, dry_run: bool = True) -> Answered:
    """Names with invisible characters get a name that can be seen; of files with the same text one stays."""
    await spaces.require_space(call.replica, space_id)
    odd = await find_odd(call.replica, space_id)
    entry = None if dry_run else await _edited(call, space_id, odd.changes())
    return {"space_id": space_id, "mode": "dry-run" if dry_run else "applied", **_found(odd, dry_run), **_run(entry)}


def _found(odd: OddNames, dry_run: bool) -> dict[str, Any]:
    repairs = [
        {"original_relpath": item.name, "sanitized": item.becomes, "status": "to repair" if dry_run else "repaired"}
        for item in odd.renamed
    ]
    duplicates = [
        {"relpath": item.name, "canonical": item.becomes, "status": "to delete" if dry_run else "deleted"}
        for item in odd.twins
    ]
    count = len(repairs) + len(duplicates)
    advice = "; dry_run false mends them" if dry_run and count else ""
    return {
        "files_scanned": odd.scanned,
        "files_ok": odd.scanned - count,
        "files_to_repair": len(repairs),
        "duplicates_found": len(duplicates),
        "repairs": repairs,
        "duplicates": duplicates,
        "message": f"{count} of {odd.scanned} names are odd{advice}",
    }
