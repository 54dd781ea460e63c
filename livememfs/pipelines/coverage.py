"""The account that a reply gives of the notes: which it used, where, and which it left out, why (design rule 3).

Owns reading that account. Refuses claims that cannot be true: notes that were not sent, files that the reply does not
hold, the same note twice. A note of which nothing is said is no fault; it stays. Pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from livememfs.errors import InvalidName
from livememfs.records.names import check_bank_name

_KEYS = {"note", "files", "skipped"}


@dataclass(frozen=True)
class Fate:
    """What became of one note: the files it was used in, or the reason why it was skipped."""

    used_in: tuple[str, ...] = ()
    skipped: str = ""


@dataclass(frozen=True)
class Coverage:
    """What became of the notes, by number from 1.

    :fates: the notes that are accounted for; without `given`, all of them, with nothing known of each
    :given: whether the reply had an account at all
    """

    fates: dict[int, Fate]
    given: bool

    def missing(self, count: int) -> list[int]:
        """The numbers of the `count` notes of which the reply said nothing."""
        return [number for number in range(1, count + 1) if number not in self.fates]


def read_coverage(value: object, count: int, files: AbstractSet[str], faults: list[str], *, given: bool) -> Coverage:
    """The account in a reply to `count` notes that writes `files`. Adds to `faults` what cannot be believed."""
    if not given:
        return Coverage({number: Fate() for number in range(1, count + 1)}, given=False)
    if not isinstance(value, list):
        faults.append('"coverage" is not a list')
        return Coverage({}, given=True)
    fates: dict[int, Fate] = {}
    for position, entry in enumerate(value, 1):
        own: list[str] = []
        number, fate = _read_entry(entry, count, files, own)
        if number in fates:
            own.append(f"note {number} is there twice")
        faults += [f"coverage, entry {position}: {fault}" for fault in own]
        if number and not own:
            fates[number] = fate
    if not value:
        faults.append('"coverage" names no note')
    return Coverage(fates, given=True)


def _read_entry(entry: object, count: int, files: AbstractSet[str], faults: list[str]) -> tuple[int, Fate]:
    """The note's number (0 when it has none that can be used) and its fate."""
    if not isinstance(entry, dict):
        faults.append("it is not an object")
        return 0, Fate()
    if unknown := sorted(ascii(key) for key in entry.keys() - _KEYS):
        faults.append(f"the key {unknown[0][:80]} is unknown")
    if ("files" in entry) == ("skipped" in entry):
        faults.append('it needs either "files" or "skipped"')
        return _read_number(entry, count, faults), Fate()
    number = _read_number(entry, count, faults)
    if "skipped" in entry:
        return number, Fate(skipped=_read_reason(entry["skipped"], faults))
    return number, Fate(used_in=_read_names(entry["files"], files, faults))


def _read_number(entry: dict[str, Any], count: int, faults: list[str]) -> int:
    number = entry.get("note")
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
    """The file of the reply that is meant, or None."""
    if not isinstance(value, str):
        return None
    try:
        name = check_bank_name(value)
    except InvalidName:
        return None
    return name if name in files else None
