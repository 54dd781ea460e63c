"""The check of a model's reply: it becomes a plan, or is refused with every reason (design rule 5).

Owns all checks of a reply's content. Refuses the whole reply for one fault and repairs nothing; it lists all faults, so
that the only retry can mend them all. Pure; may be called from any thread.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from livememfs.errors import InvalidName, ReplyRefused
from livememfs.llm.base import ChatReply
from livememfs.records.ledger import Unsourced
from livememfs.records.names import check_bank_name
from livememfs.records.trust import USUAL, Trust
from livememfs.runs.consolidation.coverage import overlap_coverage, read_coverage, shares_words
from livememfs.runs.consolidation.inputs import BankFile, BankInputs
from livememfs.runs.consolidation.judge import judge
from livememfs.runs.coverage import Coverage
from livememfs.runs.reply import decoded, front_matter_faults, hard_facts, listed, printable, shown, text_faults
from livememfs.text.edits import Edit, EditRefused
from livememfs.text.markdown import apply_edits
from livememfs.text.outgoing import Outgoing, Reason
from livememfs.text.privacy import redaction as privacy

MAX_FILE_BYTES = 1_048_576
SHRINKAGE_FROM = 200
"""Bytes from which on a file is protected against losing most of itself."""
SHRINKAGE_PERCENT = 30

_KEYS = {"bank_files", "synthesis", "coverage", "intended_removals", "dropped"}
_REASON_KEYS = ("filename", "text", "reason")
_FILE_KEYS = {"filename", "action"}
_BODY_KEYS = {"content", "edits"}
_ACTIONS = ("created", "updated")
_NO_ACCOUNT = "the reply does not say what became of the notes; those whose words its files have count as used"


@dataclass(frozen=True)
class FileChange:
    """A bank file that is to be written.

    :old:   its text now, with `etag`; both None for a new file
    :edits: those that made the content; empty when the reply had it in full
    :trust: the class of the least of what was worked into it
    """

    name: str
    content: str
    old: str | None
    etag: str | None
    edits: tuple[Edit, ...] = ()
    trust: Trust = USUAL

    @property
    def action(self) -> Literal["created", "updated"]:
        """What the change really is, even if the reply says otherwise."""
        return "created" if self.etag is None else "updated"


@dataclass(frozen=True)
class BankPlan:
    """What a run is going to write.

    :changes:   bank files with new content, in the reply's order
    :unchanged: how many bank files stay as they are
    :coverage:  what became of each note
    :unsourced: lines with facts that no source has, by file
    :warnings:  faults that are no reason to refuse the plan, one sentence each
    :reasons:   why the reply drops what it drops
    :outgoing:  lines that leave the bank; known once the plan is whole (see `Work.accounted`)
    :trust:     the class of the synthesis
    """

    changes: tuple[FileChange, ...]
    unchanged: int
    synthesis: str
    coverage: Coverage
    unsourced: tuple[Unsourced, ...] = ()
    warnings: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    outgoing: tuple[Outgoing, ...] = ()
    trust: Trust = USUAL

    def bank_after(self, bank: Mapping[str, str]) -> dict[str, str]:
        """The bank's texts by name once the plan is carried out on `bank`."""
        return {**bank, **{change.name: change.content for change in self.changes}}


def plan_from_reply(reply: ChatReply, inputs: BankInputs, *, overlap: bool = False, lenient: bool = False) -> BankPlan:
    """The plan in a model's reply. Raises ReplyRefused, whose detail lists every fault.

    :overlap: a reply without coverage is not refused; the words that files and notes share count instead
    :lenient: dates, versions, references and paths that no source has are listed like numbers, and not refused
    """
    return make_plan(decoded(reply), inputs, overlap=overlap, lenient=lenient)


def make_plan(
    reply: Mapping[str, Any], inputs: BankInputs, *, overlap: bool = False, lenient: bool = False
) -> BankPlan:
    """The plan in a decoded reply. Raises ReplyRefused."""
    reply, private = privacy.redact_value(reply)
    faults = _key_faults(reply, account=not overlap)
    changes, named = _read_files(reply.get("bank_files", []), inputs, faults)
    removals = _read_removals(reply.get("intended_removals", []), inputs, faults)
    for change in changes:
        if change.name not in removals:
            faults.extend(_shrinkage_fault(change))
    synthesis = _read_synthesis(reply.get("synthesis"), faults) if "synthesis" in reply else ""
    if "coverage" in reply:
        coverage = read_coverage(reply["coverage"], len(inputs.notes), named, faults)
    else:
        coverage = _by_overlap(inputs, changes, synthesis, faults)
    if faults:
        raise ReplyRefused(listed(faults))
    updated = sum(change.action == "updated" for change in changes)
    written = tuple(change for change in changes if change.content != change.old)
    same = len(changes) - len(written)
    unsourced, warnings = judge(changes_by_name(written), synthesis, inputs)
    if "coverage" not in reply:
        warnings = (_NO_ACCOUNT, *warnings)
    if not lenient and (invented := [fault for line in unsourced for fault in _invented(line)]):
        raise ReplyRefused(listed(invented))
    reasons, odd = _read_reasons(reply.get("dropped", []))
    odd = (*odd, f"something private in the reply was replaced ({', '.join(private)})") if private else odd
    return BankPlan(
        written, len(inputs.bank) - updated + same, synthesis, coverage, unsourced, (*warnings, *odd), reasons
    )


def _by_overlap(inputs: BankInputs, changes: Iterable[FileChange], synthesis: str, faults: list[str]) -> Coverage:
    """The coverage of a reply that gives none. A reply that has no word of any note is refused."""
    notes = [live.note for live in inputs.notes]
    if not faults and not shares_words(notes, [synthesis, *(change.content for change in changes)]):
        faults.append("it says of no note what became of it, and no file has taken up the words of one")
    return overlap_coverage(notes, changes_by_name(changes))


def _invented(line: Unsourced) -> list[str]:
    hard = hard_facts(line.facts)
    return [f"{line.file}, line {line.line}: no note, file or rule has {hard}: {shown(line.text)}"] if hard else []


def changes_by_name(changes: Iterable[FileChange]) -> dict[str, tuple[str, str]]:
    """Old and new text by name."""
    return {change.name: (change.old or "", change.content) for change in changes}


def _key_faults(reply: Mapping[str, Any], *, account: bool) -> list[str]:
    wanted = ("bank_files", "coverage", "synthesis") if account else ("bank_files", "synthesis")
    faults = [f'the key "{key}" is missing' for key in wanted if key not in reply]
    if "edits" in reply:
        faults.append('"edits" belong to a file, under "bank_files"')
    faults += [f"the key {shown(key)} is unknown" for key in reply if key not in _KEYS and key != "edits"]
    return faults


# --- files --------------------------------------------------------------------------------------------------------


def _read_files(value: object, inputs: BankInputs, faults: list[str]) -> tuple[list[FileChange], set[str]]:
    """The files of a reply without a fault of their own, and all valid names."""
    if not isinstance(value, list):
        faults.append('"bank_files" is not a list')
        return [], set()
    changes: list[FileChange] = []
    names: list[str] = []
    for number, given in enumerate(value, 1):
        if not isinstance(given, dict):
            faults.append(f"file {number} is not an object")
            continue
        # An endpoint that enforces a schema may make a model give both keys: the empty one is dropped.
        empty = {key for key in _BODY_KEYS & given.keys() if not given[key]} if given.keys() >= _BODY_KEYS else set()
        entry = {key: text for key, text in given.items() if key not in empty}
        own = _entry_faults(entry)
        name = _read_name(entry.get("filename"), own) if "filename" in entry else ""
        change = None
        if name:
            names.append(name)
            change = _read_body(name, entry, inputs, own)
        label = name or shown(entry.get("filename", ""))
        faults += [f"file {number} ({label}): {fault}" for fault in own]
        if change is not None and not own:
            changes.append(change)
    faults += _collisions(names, inputs.bank)
    return changes, set(names)


def _read_body(name: str, entry: Mapping[str, Any], inputs: BankInputs, faults: list[str]) -> FileChange | None:
    """The new content of a file, by its edits or in full; None when it has neither or has a fault."""
    present = inputs.bank.get(name)
    old, etag = (present.text, present.etag) if present else (None, None)
    edits: tuple[Edit, ...] = ()
    content = entry.get("content")
    if "edits" in entry and "content" not in entry:
        edits = _read_edits(entry["edits"], faults)
        if present is None:
            faults.append('there is no such file to edit; give a new one in full under "content"')
        if present is None or old is None or not edits:
            return None
        try:
            content = apply_edits(old, edits)
        except EditRefused as error:
            faults.append(printable(str(error)))
            return None
    elif "content" not in entry:
        return None
    if present is not None and inputs.excerpt is not None:
        faults += inputs.excerpt.faults(name, edits)
    faults += _content_faults(content, present)
    return FileChange(name, content, old, etag, edits) if isinstance(content, str) else None


def _read_edits(value: object, faults: list[str]) -> tuple[Edit, ...]:
    if not isinstance(value, list) or not value:
        faults.append('"edits" is not a list of edits')
        return ()
    edits: list[Edit] = []
    for number, item in enumerate(value, 1):
        try:
            edits.append(Edit.parse(item))
        except EditRefused as error:
            faults.append(printable(f"edit {number}: {error}"))
    return tuple(edits) if len(edits) == len(value) else ()


def _entry_faults(entry: Mapping[str, Any]) -> list[str]:
    faults = [f'"{key}" is missing' for key in sorted(_FILE_KEYS) if key not in entry]
    if len(_BODY_KEYS & entry.keys()) != 1:
        faults.append('it needs either "edits" or "content"')
    faults += [f"the key {shown(key)} is unknown" for key in entry if key not in _FILE_KEYS | _BODY_KEYS]
    if "action" in entry and entry["action"] not in _ACTIONS:
        faults.append(f"the action {shown(entry['action'])} is neither created nor updated")
    return faults


def _read_name(value: object, faults: list[str]) -> str:
    """The name in the form of the bank, or an empty string and a fault."""
    if not isinstance(value, str):
        faults.append(f"the file name {shown(value)} is not a string")
        return ""
    try:
        return check_bank_name(value)
    except InvalidName as error:
        faults.append(printable(f"the file name is refused: {error.values['detail']}"))
        return ""


def _content_faults(content: object, present: BankFile | None) -> list[str]:
    if present is not None and present.text is None:
        return ["the file in the bank is not text, so it stays as it is"]
    faults = text_faults(content, MAX_FILE_BYTES)
    if isinstance(content, str) and not faults:
        faults += front_matter_faults(content, (present and present.text) or "")
    return faults


def _collisions(names: list[str], bank: Mapping[str, BankFile]) -> list[str]:
    """Faults for names that are one file on some systems, and for files that would have to be folders as well."""
    faults: list[str] = []
    present = {_folded(name): name for name in bank}
    seen: dict[str, str] = {}
    for name in names:
        folded = _folded(name)
        if folded in seen:
            faults.append(
                f"{name} is there twice" if seen[folded] == name else f"{name} and {seen[folded]} differ in case only"
            )
        elif present.get(folded, name) != name:
            faults.append(f"{name} differs in case only from {printable(present[folded])} in the bank")
        seen.setdefault(folded, name)
    every = {**present, **seen}
    for folded, name in every.items():
        parts = folded.split("/")
        above = [every["/".join(parts[:depth])] for depth in range(1, len(parts)) if "/".join(parts[:depth]) in every]
        faults += [f"{name} is in a folder that is the file {file}" for file in above if {name, file} & set(names)]
    return faults


def _shrinkage_fault(change: FileChange) -> list[str]:
    old, new = len((change.old or "").encode()), len(change.content.encode())
    if old <= SHRINKAGE_FROM or new * 100 >= old * SHRINKAGE_PERCENT:
        return []
    return [f'{change.name} shrinks from {old} to {new} bytes and is not among "intended_removals"']


def _read_removals(value: object, inputs: BankInputs, faults: list[str]) -> set[str]:
    if not isinstance(value, list):
        faults.append('"intended_removals" is not a list')
        return set()
    removals: set[str] = set()
    for item in value:
        own: list[str] = []
        name = _read_name(item, own)
        if name and name not in inputs.bank:
            own.append(f"there is no bank file {name}")
        faults += [f"intended_removals: {fault}" for fault in own]
        removals.add(name)
    return removals


def _read_reasons(value: object) -> tuple[tuple[Reason, ...], tuple[str, ...]]:
    """The reasons for dropped lines, and a warning for those that cannot be read: they are for people, so no fault."""
    entries = value if isinstance(value, list) else [value]
    reasons: list[Reason] = []
    for entry in entries:
        given = entry if isinstance(entry, dict) else {}
        file, text, reason = (given.get(key, "") for key in _REASON_KEYS)
        if all(isinstance(value, str) for value in (file, text, reason)) and reason.strip():
            reasons.append(Reason(*map(storable, (file.removeprefix("bank/"), text, reason))))
    left = len(entries) - len(reasons)
    return tuple(reasons), (f'{left} of the reasons under "dropped" could not be read',) if left else ()


def storable(text: str) -> str:
    """A text of a reply as UTF-8 can hold it: half of a surrogate pair is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def _read_synthesis(value: object, faults: list[str]) -> str:
    own = text_faults(value, MAX_FILE_BYTES)
    if isinstance(value, str) and not own:
        own += front_matter_faults(value)
    faults += [f"synthesis: {fault}" for fault in own]
    return value if isinstance(value, str) else ""


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
