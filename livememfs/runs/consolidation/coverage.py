"""The coverage in a reply: which notes it used, in which files, and which it skipped, and why (design rule 3).

Owns reading it. Refuses claims that cannot be true: notes that were not sent, files that the reply does not write, the
same note twice. A note that the reply does not name is no fault; it stays. Pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from livememfs.errors import InvalidName
from livememfs.records.names import check_bank_name
from livememfs.records.note import Note
from livememfs.runs.coverage import Coverage, Fate, words

TAKEN_IN = 0.5
"""The part of a note's words that the files of a reply must have for the note to count as used."""

_KEYS = {"note", "files", "skipped"}


def overlap_coverage(notes: Sequence[Note], changes: Mapping[str, tuple[str, str]]) -> Coverage:
    """The coverage of a reply that gives none, by the words that notes share with files (old and new text by name).

    A note counts as used in the files that took up words of it, if the files of the reply together have `TAKEN_IN` of
    its words; any other note stays.
    """
    added = {name: words(new) - words(old) for name, (old, new) in changes.items()}
    present = frozenset[str]().union(*(words(new) for _, new in changes.values()))
    fates: dict[int, Fate] = {}
    for number, note in enumerate(notes, 1):
        own = words(note.body)
        used = tuple(name for name in changes if own & added[name])
        if used and len(own & present) >= len(own) * TAKEN_IN:
            fates[number] = Fate(used_in=used)
    return Coverage(fates)


def shares_words(notes: Sequence[Note], texts: Iterable[str]) -> bool:
    """Whether some texts have any word of any note."""
    present = frozenset[str]().union(*map(words, texts))
    return any(words(note.body) & present for note in notes)


def read_coverage(value: object, count: int, files: AbstractSet[str], faults: list[str]) -> Coverage:
    """The coverage in a reply to `count` notes that writes `files`. Adds to `faults` what cannot be true."""
    if not isinstance(value, list):
        faults.append('"coverage" is not a list')
        return Coverage({})
    fates: dict[int, Fate] = {}
    for position, entry in enumerate(value, 1):
        own: list[str] = []
        number, fate = _read_entry(entry, count, files, own)
        if number in fates:
            own.append(f"note {number} is there twice")
        faults += [f"coverage, entry {position}: {fault}" for fault in own]
        if not own:
            fates[number] = fate
    if not value:
        faults.append('"coverage" names no note')
    return Coverage(fates)


def _read_entry(entry: object, count: int, files: AbstractSet[str], faults: list[str]) -> tuple[int, Fate]:
    """The number of the note, 0 for none that is valid, and its fate."""
    if not isinstance(entry, dict):
        faults.append("it is not an object")
        return 0, Fate()
    if unknown := sorted(ascii(key) for key in entry.keys() - _KEYS):
        faults.append(f"the key {unknown[0][:80]} is unknown")
    # Empty values are dropped: an endpoint that enforces a schema may make a model give both keys.
    entry = {key: value for key, value in entry.items() if key in ("note", *(entry.keys() - _KEYS)) or value}
    if ("files" in entry) == ("skipped" in entry):
        faults.append('it needs either "files" or "skipped"')
        return _read_number(entry, count, faults), Fate()
    number = _read_number(entry, count, faults)
    if "skipped" in entry:
        return number, Fate(skipped=_read_reason(entry["skipped"], faults))
    return number, Fate(used_in=_read_names(entry["files"], files, faults))


def _read_number(entry: dict[str, Any], count: int, faults: list[str]) -> int:
    number = entry.get("note")
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number)
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= count:
        return number
    faults.append(f'"note" is not a number from 1 to {count}')
    return 0


def _read_reason(value: object, faults: list[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        faults.append('"skipped" gives no reason')
        return ""
    return value.encode("utf-8", "backslashreplace").decode()


def _read_names(value: object, files: AbstractSet[str], faults: list[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not value:
        faults.append('"files" is not a list of file names')
        return ()
    names: list[str] = []
    for item in value:
        name = _known_name(item, files)
        if name is None:
            faults.append(f"{ascii(item)[:120]} is not a file of this reply")
        elif name not in names:
            names.append(name)
    return tuple(names)


def _known_name(value: object, files: AbstractSet[str]) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        name = check_bank_name(value)
    except InvalidName:
        return None
    return name if name in files else None
