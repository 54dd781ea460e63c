"""Two versions of a text that grew out of one: put together where that is safe (three-way merge by lines).

Owns what "safe" means: a line that one side added is in the result, a line that one side removed and the other left
alone is not. Refuses everything else with None, upon which the caller keeps both files: overlapping and touching
changes, whatever is not text, texts too large or too repetitive to be compared in a moment. Pure and deterministic; may
be called from any thread, and takes up to about a second of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from io import BytesIO
from itertools import accumulate, pairwise

MAX_BYTES = 4 * 1024 * 1024
MAX_LINES = 20_000
MAX_MIDDLE_LINES = 2_000
"""Lines compared one by one: what is left of a text without the beginning and the end that both versions share."""
MAX_STEPS = 4_000_000
"""Pairs of equal lines that a comparison may look at. A text of one line repeated is quadratic, again and again."""


def merge(base: bytes | None, ours: bytes, theirs: bytes, *, repeated: bool = False) -> bytes | None:
    """One text with the changes of both versions of `base`, or None where a person has to decide.

    What both only appended is kept from both, theirs first. `repeated`: theirs may have been made from a part of ours,
    so lines with which both additions begin are the same lines. `base` None means that it is not known: only equal
    versions are then merged. Anything but UTF-8 text without NUL is merged only where one side changed nothing.
    """
    if ours == theirs:
        return ours
    if base is None:
        return None
    if base in (ours, theirs):
        return theirs if base == ours else ours
    if not all(map(_is_text, (base, ours, theirs))):
        return None
    appended = _merge_appended(base, ours, theirs, repeated=repeated)
    return appended if appended is not None else _merge_lines(base, ours, theirs)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


# --- both appended ---------------------------------------------------------------------------------------------------


def _merge_appended(base: bytes, ours: bytes, theirs: bytes, *, repeated: bool) -> bytes | None:
    """`base`, then what they appended, then what we did; None if either did anything else."""
    if base and not base.endswith(b"\n"):
        # A side that went on in the last line has changed it, which is more than appending.
        base += b"\r\n" if theirs.startswith(base + b"\r\n") else b"\n"
    if not (ours.startswith(base) and theirs.startswith(base)):
        return None
    start = len(base)
    if repeated:
        same = _shared(BytesIO(ours[start:]).readlines(), BytesIO(theirs[start:]).readlines())
        start += sum(map(len, BytesIO(ours[start:]).readlines()[:same]))
    return theirs + _missing_end(theirs) + ours[start:]


def _missing_end(text: bytes) -> bytes:
    """What ends the last line, of the kind that ends the line before it; nothing if it has an end."""
    if text.endswith(b"\n"):
        return b""
    return b"\r\n" if text.rpartition(b"\n")[0].endswith(b"\r") else b"\n"


# --- line by line ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    """`base[start:stop]` became `lines`."""

    start: int
    stop: int
    lines: tuple[bytes, ...]


class _TooCostlyError(Exception):
    """The comparison would take too long."""


class _BoundedMatcher(SequenceMatcher[bytes]):
    """difflib's matcher, which gives up with _TooCostlyError after MAX_STEPS."""

    def __init__(self, a: Sequence[bytes], b: Sequence[bytes]) -> None:
        super().__init__(None, a, b, autojunk=False)
        counts = Counter(b)
        self._all = len(a)
        self._cost_up_to = [0, *accumulate(counts[line] + 1 for line in a)]
        self._steps_left = MAX_STEPS

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """As difflib has it. Each line of `a` is held against its equals in `b`: that is the whole cost."""
        self._steps_left -= self._cost_up_to[self._all if ahi is None else ahi] - self._cost_up_to[alo]
        if self._steps_left < 0:
            raise _TooCostlyError
        return super().find_longest_match(alo, ahi, blo, bhi)


def _merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    if max(map(len, (base, ours, theirs))) > MAX_BYTES:
        return None
    # Not `splitlines`: to that, a lone carriage return ends a line too.
    old, our_lines, their_lines = (BytesIO(data).readlines() for data in (base, ours, theirs))
    if max(map(len, (old, our_lines, their_lines))) > MAX_LINES:
        return None
    try:
        changes = _combined(old, _changes(old, our_lines), _changes(old, their_lines))
    except _TooCostlyError:
        return None
    return None if changes is None else b"".join(_applied(old, changes))


def _changes(base: list[bytes], side: list[bytes]) -> list[_Change]:
    """What turns `base` into `side`, in order; between two changes is at least one line that stays."""
    head = _shared(base, side)
    tail = _shared(reversed(base[head:]), reversed(side[head:]))
    old, new = base[head : len(base) - tail], side[head : len(side) - tail]
    if max(len(old), len(new)) > MAX_MIDDLE_LINES:
        raise _TooCostlyError
    return [
        _Change(head + old_start, head + old_stop, tuple(new[new_start:new_stop]))
        for tag, old_start, old_stop, new_start, new_stop in _BoundedMatcher(old, new).get_opcodes()
        if tag != "equal"
    ]


def _shared(one: Iterable[bytes], other: Iterable[bytes]) -> int:
    """How many lines are equal before the first that differ."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _combined(base: list[bytes], ours: list[_Change], theirs: list[_Change]) -> list[_Change] | None:
    """The changes of both in order, each once, or None if any two of them are not clear of each other."""
    shared = set(ours) & set(theirs)
    changes = sorted({*ours, *theirs}, key=lambda change: (change.start, change.stop))
    # Without a line between them that both left alone, nobody knows which comes first, or whether one undoes the other.
    if any(later.start <= change.stop for change, later in pairwise(changes)):
        return None
    # What both took away here and only one has elsewhere was moved by that one and removed, or moved, by the other.
    gone = _words(line for change in shared for line in base[change.start : change.stop])
    gone -= _words(line for change in shared for line in change.lines)
    elsewhere = _words(line for change in changes if change not in shared for line in change.lines)
    return None if gone & elsewhere else changes


def _words(lines: Iterable[bytes]) -> set[bytes]:
    """The lines that say something, without their ends: moved to the very end, a line may lose its own."""
    return {line.rstrip(b"\r\n") for line in lines if line.strip()}


def _applied(base: list[bytes], changes: Iterable[_Change]) -> Iterator[bytes]:
    """The lines of `base` with the changes made."""
    done = 0
    for change in changes:
        yield from base[done : change.start]
        yield from change.lines
        done = change.stop
    yield from base[done:]
