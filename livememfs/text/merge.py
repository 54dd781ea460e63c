"""Two versions of a text that were made from the same base, joined where that is safe (three-way merge by lines).

Owns what "safe" means: a line that one side added is in the result; a line that one side removed, and the other left
alone, is not. Refuses with None, and the caller then keeps both files: changes that overlap or touch, bytes that are no
text, texts that are too large or too repetitive for a quick comparison. Pure and deterministic; may be called from any
thread, which it may keep busy for about a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from io import BytesIO
from itertools import accumulate, pairwise, takewhile

MAX_BYTES = 4 * 1024 * 1024
MAX_LINES = 20_000
MAX_MIDDLE_LINES = 2_000
"""Lines that are compared one by one: those between the beginning and the end that both versions share."""
MAX_STEPS = 4_000_000
"""Pairs of equal lines that a comparison may look at: a text that repeats one line has quadratically many."""


def merge(base: bytes | None, ours: bytes, theirs: bytes, *, repeated: bool = False) -> bytes | None:
    """One text with the changes of both versions of `base`, or None where a person has to decide.

    Where both sides only appended, both additions are kept, theirs first. `repeated`: theirs may have been made from a
    part of ours, so equal lines at the start of both additions are kept once. `base` None: it is not known, and only
    equal versions are joined. Bytes that are not UTF-8, or hold a NUL, are joined only where one side changed nothing.
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
    """`base`, then what they appended, then what we appended; None if a side did anything else."""
    if base and not base.endswith(b"\n"):
        # A side that added to the last line has changed that line, which is more than appending.
        base += b"\r\n" if theirs.startswith(base + b"\r\n") else b"\n"
    if not (ours.startswith(base) and theirs.startswith(base)):
        return None
    start = len(base)
    if repeated:
        same = _shared(BytesIO(ours[start:]).readlines(), BytesIO(theirs[start:]).readlines())
        start += sum(map(len, BytesIO(ours[start:]).readlines()[:same]))
    return theirs + _missing_end(theirs) + ours[start:]


def _missing_end(text: bytes) -> bytes:
    """The line end that the last line lacks, of the same kind as on the line before; empty if it has one."""
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
        """As in difflib. It visits, for each line of `a`, all equal lines of `b`: that is the whole cost."""
        self._steps_left -= self._cost_up_to[self._all if ahi is None else ahi] - self._cost_up_to[alo]
        if self._steps_left < 0:
            raise _TooCostlyError
        return super().find_longest_match(alo, ahi, blo, bhi)


def _merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    if max(map(len, (base, ours, theirs))) > MAX_BYTES:
        return None
    # Not `splitlines`, which also ends a line at a lone carriage return.
    old, our_lines, their_lines = (BytesIO(data).readlines() for data in (base, ours, theirs))
    if max(map(len, (old, our_lines, their_lines))) > MAX_LINES:
        return None
    try:
        changes = _combined(old, _changes(old, our_lines), _changes(old, their_lines))
    except _TooCostlyError:
        return None
    return None if changes is None else b"".join(_applied(old, changes))


def _changes(base: list[bytes], side: list[bytes]) -> list[_Change]:
    """The changes that make `side` of `base`, in order; at least one unchanged line stands between two of them."""
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


def _shared(left: Iterable[bytes], right: Iterable[bytes]) -> int:
    """How many lines are equal before the first that differ."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


def _combined(base: list[bytes], ours: list[_Change], theirs: list[_Change]) -> list[_Change] | None:
    """The changes of both sides in order, each once, or None if two of them touch or may concern the same lines."""
    shared = set(ours) & set(theirs)
    changes = sorted({*ours, *theirs}, key=lambda change: (change.start, change.stop))
    # Without an unchanged line between two changes, nobody knows which comes first, or whether one undoes the other.
    if any(later.start <= change.stop for change, later in pairwise(changes)):
        return None
    # Lines that both sides took away here, and that only one side has elsewhere: this side moved them, and the other
    # side removed them or moved them to another place.
    gone = _words(line for change in shared for line in base[change.start : change.stop])
    gone -= _words(line for change in shared for line in change.lines)
    elsewhere = _words(line for change in changes if change not in shared for line in change.lines)
    return None if gone & elsewhere else changes


def _words(lines: Iterable[bytes]) -> set[bytes]:
    """The lines that are not blank, without line ends: a line that is moved to the end of a text may lose its own."""
    return {line.rstrip(b"\r\n") for line in lines if line.strip()}


def _applied(base: list[bytes], changes: Iterable[_Change]) -> Iterator[bytes]:
    """The lines of `base` with the changes made."""
    done = 0
    for change in changes:
        yield from base[done : change.start]
        yield from change.lines
        done = change.stop
    yield from base[done:]
