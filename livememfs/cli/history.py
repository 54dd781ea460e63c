"""`livememfs history` and `livememfs undo`: the runs of a space, and the undo of a run, with or without a mount.

Owns what is printed. Refuses to ask before an undo: it can itself be undone. Main thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store
from livememfs.cli.space import SpaceName
from livememfs.errors import NotFound
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.records.ledger import Entry

COLUMNS = ("RUN", "WHEN", "KIND", "HOST", "MODEL", "NOTES IN", "NOTES LEFT", "FILES", "UNSOURCED", "STATE")
SPARE = ("HOST", "UNSOURCED", "MODEL", "NOTES LEFT")


@command
def history(choice: Choice, space: SpaceName, as_json: JsonFlag = False) -> None:
    """List the runs of SPACE, the newest first.

    livememfs history project
    """
    from livememfs.runs import held
    from livememfs.runs.standing import taken_back
    from livememfs.spaces import making as spaces
    from livememfs.spaces.entries import runs

    unreadable: dict[int, str] = {}

    async def work(app: App) -> tuple[list[Entry], Entry | None]:
        await spaces.require_space(app.replica, space)
        entries = await runs(app.replica, space, report=unreadable.__setitem__)
        return entries, await held.current(app.replica, space)

    entries, plan = on_store(choice.on_store(), work, space)
    fallen = taken_back(entries)
    if as_json:
        output.print_json([_figures(entry, fallen) for entry in entries])
    elif entries:
        output.table(COLUMNS, [_row(_figures(entry, fallen)) for entry in entries], spare=SPARE)
    elif not unreadable:
        output.say(f"{space} has had no run yet; `livememfs consolidate {space}` makes one")
    if plan is not None:
        how = f"livememfs {'digest' if plan.kind == 'digest' else 'consolidate'} {space} --accept {plan.number}"
        output.note(f"run {plan.number} of {space} is held: {'; '.join(plan.held)} ({how} carries out its plan)")
    for number, problem in sorted(unreadable.items()):
        output.note(f"run {number} of {space} cannot be read: {problem}")


def _figures(entry: Entry, fallen: Mapping[int, int]) -> dict[str, Any]:
    """One run for programs. `taken_back_by` is the undo that took it back; null if none did."""
    return {
        "run": entry.number,
        "when": entry.committed_at,
        "kind": entry.kind,
        "undoes": entry.undoes or None,
        "by": entry.by or None,
        "host": entry.host,
        "model": str(entry.metrics.get("model") or ""),
        "notes_in": 0 if entry.kind == "undo" else len(entry.removes) + len(entry.keeps),
        "notes_left": entry.metrics.get("notes_remaining"),
        "files": len(_bank_writes(entry)),
        "memories": entry.metrics.get("memories_stored", 0) + entry.metrics.get("memories_proposed", 0),
        "unsourced": len(entry.unsourced),
        "lines_dropped": entry.metrics.get("lines_dropped", 0),
        "state": entry.state,
        "taken_back_by": fallen.get(entry.number),
        "backup": entry.backup,
    }


def _row(figures: Mapping[str, Any]) -> list[str]:
    kind = f"undo of {figures['undoes']}" if figures["undoes"] else str(figures["kind"])
    kind += f" by {figures['by']}" if figures["by"] else ""
    by = figures["taken_back_by"]
    state = "not finished" if figures["state"] == "committed" else f"taken back by {by}" if by else "applied"
    left = figures["notes_left"]
    counts = [figures["notes_in"], "-" if left is None else left, figures["files"], figures["unsourced"]]
    who = [kind, figures["host"] or "-", figures["model"] or "-"]
    return [str(figures["run"]), output.when(figures["when"]), *who, *map(str, counts), state]


@command
def undo(
    choice: Choice,
    space: SpaceName,
    number: Annotated[
        int | None,
        argument(metavar="[N]", min=1, help="Number of the run in `history`.  [default: the last run not taken back]"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Take back run N of SPACE and all runs after it.

    livememfs undo project
    livememfs undo project 12
    """
    from livememfs.runs.undo.run import undo as take_back

    async def work(app: App) -> Entry:
        doing = f"taking back a run of {space}"
        with output.busy(doing) as show:
            leases, host = app.consolidations.leases, app.settings.host_name
            return await take_back(
                app.replica, app.clock, leases, host, space, number, report=lambda phase: show(f"{doing}: {phase}")
            )

    try:
        entry = on_store(choice.on_store(), work, space)
    except NotFound as error:
        path = str(error.values.get("path", ""))
        if not path.startswith("run "):
            raise
        raise NotFound(path=f"{path}; `livememfs history {space}` lists the runs") from None
    if as_json:
        output.print_json(_figures(entry, {}) | {"notes_restored": entry.metrics["notes_restored"]})
    else:
        _tell(entry)


def _tell(entry: Entry) -> None:
    writes = _bank_writes(entry)
    back = output.plural(int(entry.metrics["notes_restored"]), "note")
    gone = f", {output.plural(len(entry.removes), 'note')} gone again" if entry.removes else ""
    changed = f"{output.plural(len(writes), 'bank file')} changed"
    output.say(
        f"{entry.space}: as it was before run {entry.undoes}; {changed}, {back} back{gone}",
        f"this is run {entry.number}; `livememfs undo {entry.space} {entry.number}` takes this undo back",
    )


def _bank_writes(entry: Entry) -> Sequence[str]:
    """The bank files that a run wrote or removed."""
    return [write.key for write in entry.writes if write.key.startswith(f"{keys.BANK}/")]
