"""Lines that a run takes out of a bank: for each, the line that states the same now, or that no line does.

Owns the comparison of a bank before and after a run. Refuses to judge: `hold` decides how much is too much. Lines are
compared by their words: headings, fences, rules and blank lines do not count, and emphasis, list marks, case and
indentation make no difference. Takes time linear in the texts, because very common words are ignored. Pure; may be
called from any thread.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Literal

Fate = Literal["moved", "reworded", "dropped"]

REWORDED = 0.5
"""The share of a line's words, and of its figures, that another line must have to count as the same, reworded."""
JOINED = 3
"""So many lines one line can stand for at most: a summary of more lines has left something out."""
MOST_REASONS = 500
_STEM = 5
"""Words that share so many first letters count as one word: decided, decision."""
_COMMON = 400
"""A word that more lines have is ignored: it does not tell one line from another."""

_WORD = re.compile(r"[^\W_]+(?:[.,:/][0-9]+)*")
_SILENT = re.compile(r"\s*(?:#{1,6}(?:\s|$)|```|~~~|<!--)")
_LIST_MARK = re.compile(r"\s*(?:[-*+]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s)?")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Outgoing:
    """A line that is no longer in its file.

    :file:   the bank file that had it
    :text:   the line, without blanks around it
    :fate:   `moved`: another line has the same words; `reworded`: another line has most of them; `dropped`: neither
    :where:  the file of that other line; empty for a dropped line
    :now:    that other line; empty for a dropped line
    :reason: why it was dropped, in the words of the reply; empty where the reply gave no reason
    """

    file: str
    text: str
    fate: Fate
    where: str = ""
    now: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Reason:
    """Why a reply drops a line of a file. `text` is the line, a part of it, or empty: then it is for the whole file."""

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
    """The lines of a Markdown text that have words of their own, without blanks around them."""
    return [line.text for line in _lines("", text)]


def outgoing(
    before: Mapping[str, str], after: Mapping[str, str], reasons: Sequence[Reason] = ()
) -> tuple[Outgoing, ...]:
    """The lines that leave their file, in the order of files and lines. Both mappings hold the whole bank by name."""
    old = [line for name, text in sorted(before.items()) if after.get(name) != text for line in _lines(name, text)]
    new = [line for name, text in sorted(after.items()) if before.get(name) != text for line in _lines(name, text)]
    gone, added = _surplus(old, new), _surplus(new, old)
    if not gone:
        return ()
    same = [line for name, text in sorted(after.items()) if before.get(name) == text for line in _lines(name, text)]
    there = {line.words: line for line in (*same, *new)}
    index = _Index([*added, *_paragraphs(added)])
    fates = [_fate(line, there, index) for line in gone]
    return tuple(map(_Reasons(reasons).add_to, fates))


def _fate(line: _Line, there: Mapping[tuple[str, ...], _Line], index: _Index) -> Outgoing:
    same = there.get(line.words)
    if same is not None:
        return Outgoing(line.file, line.text, "moved", same.file, same.text)
    nearest = index.nearest(line)
    if nearest is not None:
        return Outgoing(line.file, line.text, "reworded", nearest.file, nearest.text)
    return Outgoing(line.file, line.text, "dropped")


def _lines(name: str, text: str) -> Iterator[_Line]:
    for line in _LINE_END.split(text):
        words = () if _SILENT.match(line) else tuple(_WORD.findall(_LIST_MARK.sub("", line, count=1).casefold()))
        if words:
            yield _Line(name, line.strip(), words)


def _surplus(lines: Sequence[_Line], others: Sequence[_Line]) -> list[_Line]:
    """The lines that the other version of their file does not have, or has less often."""
    there = Counter((line.file, line.words) for line in others)
    left: list[_Line] = []
    for line in lines:
        there[line.file, line.words] -= 1
        if there[line.file, line.words] < 0:
            left.append(line)
    return left


def _paragraphs(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Each two neighbouring lines as one, because prose is wrapped again when one word of it changes."""
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
        """The line with most of these words and figures that stands for fewer than JOINED lines so far."""
        stems = {stem for stem in line.stems if len(stem) > 2 or stem[0].isdigit()} or line.stems
        numbers = [self._having.get(stem, ()) for stem in stems]
        shared = Counter(chain.from_iterable(having for having in numbers if len(having) <= _COMMON))
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
    """The reasons that a reply gives for dropped lines."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        self._of: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for given in reasons[:MOST_REASONS]:
            self._of[given.file].append((_words(given.text), given.reason))

    def add_to(self, line: Outgoing) -> Outgoing:
        """The line with the reason that was given for it, else with the one for its whole file."""
        words, given = _words(line.text), self._of.get(line.file, ())
        reasons = [reason for text, reason in given if text and (text in words or words in text)]
        reasons += [reason for text, reason in given if not text]
        return replace(line, reason=reasons[0]) if reasons and line.fate == "dropped" else line


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
