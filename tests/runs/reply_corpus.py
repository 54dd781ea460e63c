"""Replies of a model, read from `replies/*.txt`: right ones, and the same with one thing that nobody said.

A file is a space: its rules, bank and synthesis, then cases that begin with `=== right <id>`, then its inventions, each
in a line: `<id>: <what the right reply says> => <what is said instead>`. Within a case `--- note <when> <who>`,
`--- file <name>` and `--- edit <file> <op> <heading > heading>` hold texts; every note that no `--- skipped <number>
<why>` names counts as used in the first file.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

REPLIES = Path(__file__).parent / "replies"
_PART = re.compile(r"^(===|---) (.*)\n", re.M)


@dataclass(frozen=True)
class Case:
    """A reply and what it was made from.

    :notes: time stamp in ISO 8601, agent, text; the oldest first
    :now:   when the run is made
    :number: of the last consolidation
    :invented_line: the line of the reply that says what nobody said; empty in a right reply
    """

    id: str
    rules: str
    bank: dict[str, str]
    synthesis: str
    notes: list[tuple[str, str, str]]
    reply: dict[str, Any]
    now: str
    number: int
    invented_line: str = ""


def right_replies() -> list[Case]:
    """Replies that say nothing but what is in their notes, bank and rules."""
    return [case for cases, _ in _spaces() for case in cases]


def inventions() -> list[Case]:
    """Right replies, each with one thing changed into something that nobody said."""
    return [made for cases, lines in _spaces() for made in _invented(cases, lines)]


@cache
def _spaces() -> list[tuple[list[Case], list[str]]]:
    return [_read(path) for path in sorted(REPLIES.glob("*.txt"))]


def _read(path: Path) -> tuple[list[Case], list[str]]:
    _, *parts = _PART.split(path.read_text())
    space: Case | None = None
    cases: list[Case] = []
    lines: list[str] = []
    for level, head, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        kind, _, rest = head.partition(" ")
        if level == "===" and kind == "space":
            space = Case(rest, "", {}, "", [], {}, "", 0)
        elif level == "===" and kind == "right":
            assert space is not None
            cases.append(replace(space, id=rest, notes=[], reply={"bank_files": [], "coverage": []}))
        elif level == "===":
            lines = body.splitlines()
        elif cases:
            cases[-1] = _add(cases[-1], kind, rest, body.strip("\n") + "\n")
        else:
            assert space is not None
            space = _describe(space, kind, rest, body.strip("\n") + "\n")
    for case in cases:
        _account(case)
    return cases, lines


def _describe(space: Case, kind: str, rest: str, body: str) -> Case:
    if kind == "bank":
        return replace(space, bank={**space.bank, rest: body})
    if kind == "synthesis":
        return replace(space, synthesis=body, number=int(rest))
    assert kind == "rules"
    return replace(space, rules=body)


def _add(case: Case, kind: str, rest: str, body: str) -> Case:
    files = case.reply["bank_files"]
    if kind == "now":
        return replace(case, now=rest)
    if kind == "note":
        stamp, agent = rest.split(" ")
        case.notes.append((stamp, agent, body))
    elif kind == "file":
        action = "updated" if rest.removeprefix("bank/") in case.bank else "created"
        files.append({"filename": rest, "action": action, "content": body})
    elif kind == "edit":
        name, op, heading = rest.split(" ", 2)
        if not files or files[-1]["filename"] != name:
            files.append({"filename": name, "action": "updated", "edits": []})
        edit = {"op": op, "heading": heading.split(" > ")} | ({} if op == "delete" else {"content": body})
        files[-1]["edits"].append(edit)
    elif kind == "removal":
        case.reply.setdefault("intended_removals", []).append(rest)
    elif kind == "skipped":
        number, reason = rest.split(" ", 1)
        case.reply["coverage"].append({"note": int(number), "skipped": reason})
    else:
        assert kind == "synthesis"
        case.reply["synthesis"] = body
    return case


def _account(case: Case) -> None:
    coverage, first = case.reply["coverage"], case.reply["bank_files"][0]["filename"]
    left_out = {entry["note"] for entry in coverage}
    coverage += [{"note": n, "files": [first]} for n in range(1, len(case.notes) + 1) if n not in left_out]


# --- inventions -------------------------------------------------------------------------------------------------------


def _invented(cases: list[Case], lines: list[str]) -> list[Case]:
    by_id = {case.id: case for case in cases}
    made: list[Case] = []
    for line in lines:
        name, _, change = line.partition(": ")
        said, _, instead = change.partition(" => ")
        case = by_id[name]
        reply = copy.deepcopy(case.reply)
        place = _place(reply, said)
        text = place.holder[place.key]
        assert text.count(said) == 1, f"{line}: it is there {text.count(said)} times"
        place.holder[place.key] = changed = text.replace(said, instead)
        start = changed.index(instead, text.index(said))
        invented = changed[changed.rfind("\n", 0, start) + 1 :].partition("\n")[0]
        made.append(replace(case, id=f"{name}: {instead}", reply=reply, invented_line=invented))
    return made


@dataclass(frozen=True)
class _Place:
    holder: dict[str, Any]
    key: str


def _place(reply: dict[str, Any], said: str) -> _Place:
    """The one text of a reply that says something."""
    places = [_Place(reply, "synthesis")]
    for file in reply["bank_files"]:
        places += [_Place(holder, "content") for holder in file.get("edits", [file]) if "content" in holder]
    found = [place for place in places if said in place.holder[place.key]]
    assert len(found) == 1, f"{said!r} is in {len(found)} texts"
    return found[0]
