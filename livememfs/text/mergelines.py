"""Two versions of an index, a text in which each line stands for itself, joined line by line.

Owns the rule: each line that either side added is in the result, once; no line that either side removed is. How often a
line stands in the result follows from how often it stood in the base and in both sides; only its place may be a guess.
Refuses nothing: bytes that are no text have lines too. Pure; any thread, in time linear in the texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from io import BytesIO

_ENDS = b"\r\n"


def merge_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """One text with the lines of both. `base` None: it is not known, so nothing counts as removed.

    A side that changed nothing takes the other, to the byte. Lines are the same without their ends.
    """
    if base is not None and base in (ours, theirs):
        return theirs if base == ours else ours
    if ours == theirs:
        return ours
    old, mine, other = (BytesIO(data).readlines() for data in (base or b"", ours, theirs))
    wanted = _wanted(*(Counter(map(_bare, lines)) for lines in (old, mine, other)))
    kept = _at_most(other, wanted)
    added = wanted - Counter(map(_bare, kept))
    return b"".join(_ended(_placed(kept, mine, added)))


def _bare(line: bytes) -> bytes:
    return line.rstrip(_ENDS)


def _wanted(base: Counter[bytes], ours: Counter[bytes], theirs: Counter[bytes]) -> Counter[bytes]:
    """How often each line stands in the result: what both added or both removed counts once."""
    wanted: Counter[bytes] = Counter()
    for line in base.keys() | ours.keys() | theirs.keys():
        changes = ours[line] - base[line], theirs[line] - base[line]
        wanted[line] = base[line] + max(0, *changes) + min(0, *changes)
    return +wanted


def _at_most(lines: Iterable[bytes], wanted: Counter[bytes]) -> list[bytes]:
    """The lines, each as often as it is wanted, in their order."""
    left = Counter(wanted)
    kept = []
    for line in lines:
        if left[_bare(line)] > 0:
            left[_bare(line)] -= 1
            kept.append(line)
    return kept


def _placed(kept: Sequence[bytes], ours: Sequence[bytes], added: Counter[bytes]) -> Iterable[bytes]:
    """`kept` with our further lines, each behind the line that it follows in ours; those at our end come last."""
    once = {line for line, count in Counter(map(_bare, kept)).items() if count == 1}
    place = {_bare(line): at + 1 for at, line in enumerate(kept) if _bare(line) in once}
    behind: dict[int, list[bytes]] = {}
    spare = Counter(map(_bare, ours)) - added
    at, last = 0, max((number for number, line in enumerate(ours) if _bare(line) in place), default=-1)
    for number, line in enumerate(ours):
        bare = _bare(line)
        at = place.get(bare, at)
        if number > last:
            at = len(kept)
        if spare[bare] > 0:  # of equal lines, the last are the new ones
            spare[bare] -= 1
        elif added[bare] > 0:
            behind.setdefault(at, []).append(line)
    yield from behind.get(0, ())
    for number, line in enumerate(kept, 1):
        yield line
        yield from behind.get(number, ())


def _ended(lines: Iterable[bytes]) -> Iterable[bytes]:
    """The lines, of which only the last may lack its end: no two are glued together."""
    before = b""
    for line in lines:
        if before:
            yield before if before.endswith(b"\n") else before + b"\n"
        before = line
    yield before
