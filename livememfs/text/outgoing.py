"""Lines that leave a bank: for each one where it is said now, or that it is said nowhere any more.

Owns the comparison of a bank before and after a run. Refuses to judge: `hold` decides what is too much. What counts is
what a line says: headings, fences, rules and blank lines say nothing of their own, and emphasis, list marks, case and
indentation are no difference. Linear in the texts but for common words, which are passed over. Pure; may be called
from any thread.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

Fate = Literal["moved", "reworded", "dropped"]

REWORDED = 0.5
"""The part of a line's words, and of its figures, that another line must have to say the same in other words."""
JOINED = 3
"""Lines that one line stands for at most: a summary of more has left something out."""
MOST_REASONS = 500
_STEM = 5
"""Letters by which two forms of one word are told from two words: decided, decision, décidé."""
_COMMON = 400
"""A word in so many lines says nothing about one of them."""

_WORD = re.compile(r"[^\W_]+(?:[.,:/][0-9]+)*")
_SILENT = re.compile(r"\s*(?:#{1,6}(?:\s|$)|```|~~~|<!--)")
_LIST_MARK = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s)?")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Outgoing:
    """A line that is no longer where it was.

    :file:   the bank file that had it
    :text:   the line, without blanks around it
    :fate:   `moved`: the same words stand elsewhere; `reworded`: most of them stand together; `dropped`: neither
    :where:  the file that says it now; empty for a dropped line
    :now:    the line that says it now; empty for a dropped line
    :reason: why it was dropped, in the words of the reply; empty where it gave none
    """

    file: str
    text: str
    fate: Fate
    where: str = ""
    now: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Reason:
    """Why a reply drops something from a file: `text` is the line, a part of it, or empty for the whole file."""

    file: str
    text: str
    reason: str


@dataclass(frozen=True)
class _Line:
    file: str
    text: str
    words: tuple[str, ...]

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(word if word[0].isdigit() else word[:_STEM] for word in self.words)


def lines_that_say(text: str) -> list[str]:
    """The lines of a Markdown text that say something, without blanks around them."""
    return [line.text for line in _said("", text)]


def outgoing(
    before: Mapping[str, str], after: Mapping[str, str], reasons: Sequence[Reason] = ()
) -> tuple[Outgoing, ...]:
    """The lines that leave their file, in the order of files and lines. Both mappings hold the whole bank by name."""
    old = [line for name, text in sorted(before.items()) if after.get(name) != text for line in _said(name, text)]
    new = [line for name, text in sorted(after.items()) if before.get(name) != text for line in _said(name, text)]
    gone, added = _surplus(old, new), _surplus(new, old)
    if not gone:
        return ()
    same = [line for name, text in sorted(after.items()) if before.get(name) == text for line in _said(name, text)]
    there = {line.words: line for line in (*same, *new)}
    index = _Index([*added, *_paragraphs(added)])
    found = [_fate(line, there, index) for line in gone]
    return tuple(map(_Reasons(reasons).add_to, found))


def _fate(line: _Line, there: Mapping[tuple[str, ...], _Line], index: _Index) -> Outgoing:
    same = there.get(line.words)
    if same is not None:
        return Outgoing(line.file, line.text, "moved", same.file, same.text)
    nearest = index.nearest(line)
    if nearest is not None:
        return Outgoing(line.file, line.text, "reworded", nearest.file, nearest.text)
    return Outgoing(line.file, line.text, "dropped")


def _said(name: str, text: str) -> Iterator[_Line]:
    for line in _LINE_END.split(text):
        words = () if _SILENT.match(line) else tuple(_WORD.findall(_LIST_MARK.sub("", line, count=1).casefold()))
        if words:
            yield _Line(name, line.strip(), words)


def _surplus(lines: Sequence[_Line], others: Sequence[_Line]) -> list[_Line]:
    """The lines of a file that the other text of this file has not, or has less often."""
    there = Counter((line.file, line.words) for line in others)
    left: list[_Line] = []
    for line in lines:
        if there[line.file, line.words] > 0:
            there[line.file, line.words] -= 1
        else:
            left.append(line)
    return left


def _paragraphs(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Two added lines in a row as one: prose is wrapped anew when a word of it changes."""
    for first, second in pairwise(lines):
        if first.file == second.file:
            yield _Line(first.file, f"{first.text} {second.text}", (*first.words, *second.words))


class _Index:
    """Lines by their words."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self._lines = lines
        self._stands_for: Counter[int] = Counter()
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(lines):
            for stem in line.stems:
                self._having[stem].append(number)

    def nearest(self, line: _Line) -> _Line | None:
        """The line that says most of these words, and of these figures, if it has room for one more line."""
        stems = {stem for stem in line.stems if len(stem) > 2 or stem[0].isdigit()} or line.stems
        told = [stem for stem in stems if len(self._having.get(stem, ())) <= _COMMON]
        shared = Counter(number for stem in told for number in self._having.get(stem, ()))
        figures = {stem for stem in stems if stem[0].isdigit()}
        for number, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            if count < len(stems) * REWORDED:
                break
            kept = len(figures & self._lines[number].stems)
            if self._stands_for[number] < JOINED and kept >= len(figures) * REWORDED:
                self._stands_for[number] += 1
                return self._lines[number]
        return None


class _Reasons:
    """What a reply says of the lines that it drops."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        self._of: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for one in reasons[:MOST_REASONS]:
            self._of[one.file].append((" ".join(_WORD.findall(one.text.casefold())), one.reason))

    def add_to(self, line: Outgoing) -> Outgoing:
        """The line with the reason that was given for it, else the one for its whole file."""
        said = " ".join(_WORD.findall(line.text.casefold()))
        found = [reason for text, reason in self._of.get(line.file, ()) if text and (text in said or said in text)]
        found += [reason for text, reason in self._of.get(line.file, ()) if not text]
        return replace(line, reason=found[0]) if found and line.fate == "dropped" else line
