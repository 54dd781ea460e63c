"""What a consolidation would change, for people: a unified diff, the fate of each note, and the dropped lines.

Owns the text of `.consolidate.diff`; its first part is valid input of `patch`. Pure, and slow on large files, so it is
called in a worker thread.
"""

from __future__ import annotations

import difflib

from livememfs.records import keys
from livememfs.runs.consolidation.inputs import BankInputs
from livememfs.runs.consolidation.plan import BankPlan

_NO_LINE_END = "\\ No newline at end of file\n"


def render_diff(inputs: BankInputs, plan: BankPlan) -> str:
    """The diff of each bank file and of the synthesis, a table of the notes, and the dropped lines."""
    parts = [_file_diff(f"{keys.BANK}/{change.name}", change.old, change.content) for change in plan.changes]
    synthesis = inputs.synthesis.body if inputs.synthesis else None
    parts.append(_file_diff(keys.SYNTHESIS, synthesis, plan.synthesis))
    parts += [_table(inputs, plan), _dropped(plan)]
    return "\n".join(part for part in parts if part)


def _file_diff(name: str, old: str | None, new: str) -> str:
    lines = difflib.unified_diff(
        _lines(old or ""), _lines(new), "/dev/null" if old is None else f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_LINE_END}" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends a line, as in other diff tools."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _table(inputs: BankInputs, plan: BankPlan) -> str:
    lines = ["# note -> what would become of it"]
    lines += [f"# {note.name} -> {_fate(plan, number)}" for number, note in enumerate(inputs.notes, 1)]
    return "\n".join(lines) + "\n"


def _dropped(plan: BankPlan) -> str:
    dropped = [line for line in plan.outgoing if line.fate == "dropped"]
    lines = [f"# {line.file}: {line.text}{f' ({_one_line(line.reason)})' if line.reason else ''}" for line in dropped]
    return "\n".join(["# lines that the bank would say no more", *lines]) + "\n" if lines else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fate(plan: BankPlan, number: int) -> str:
    fate = plan.coverage.fates.get(number)
    if fate is None:
        return "not accounted for, stays"
    return ", ".join(fate.used_in) if fate.used_in else f"skipped: {_one_line(fate.skipped)}"
