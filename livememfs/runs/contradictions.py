"""What new notes contradict in what is known, so that a request can point at it: in a long bank a model overlooks the
one line that a note makes wrong.

Owns the search: each sentence of the notes with the few known lines that share most of its words. Refuses to decide:
the model is told what was seen, and judges. Pure; any thread. At most some tenths of a second, whatever the size.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from livememfs.recall.index.words import content_words
from livememfs.recall.likeness.correction import Verdict, judged
from livememfs.runs.notes import LiveNote
from livememfs.runs.prompt import as_json
from livememfs.text.size import tokens

SENTENCES, LINES, CANDIDATES = 300, 20_000, 4
"""Of the notes; of what is known; known lines that one sentence is compared with."""
ROOM = 150
"""Tokens for all that is shown; they are within `batches.MARGIN`."""
LONGEST = 300
"""Characters; what is longer is no single statement."""
_MARKS = re.compile(r"\A\s*(?:[-*+>]|\d+[.)]|#+|\[[ xX]\]|\*\*|\|)+\s*|\*\*|`")
_BETWEEN = re.compile(r"(?<=[.!?;])\s+|\n+")
_STEM = 5


def contradicted(known: Mapping[str, str], notes: Sequence[LiveNote]) -> list[dict[str, Any]]:
    """For each finding the number of the note and what `known` (texts by name) says instead; the surest first."""
    lines = [(name, line) for name, text in known.items() for line in statements(text)][:LINES]
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, (_, line) in enumerate(lines):
        for word in _stems(line):
            by_word[word].append(number)
    found: list[tuple[bool, dict[str, Any]]] = []
    for note, said in _said(notes):
        for number in _nearest(said, by_word):
            name, line = lines[number]
            verdict = judged(line, said, None)
            if verdict is not Verdict.DISTINCT:
                found.append((verdict is not Verdict.CORRECTS, {"note": note, "instead_of": line, "in": name}))
    return _fitting([finding for _, finding in sorted(found, key=lambda item: item[0])])


def statements(text: str) -> Iterator[str]:
    """The sentences of a text, without marks of lists and headings; those too short or long to be one are left out."""
    for part in _BETWEEN.split(text):
        plain = _MARKS.sub("", part).strip()
        if plain.count(" ") > 1 and len(plain) <= LONGEST:
            yield plain


def _said(notes: Sequence[LiveNote]) -> list[tuple[int, str]]:
    each = ((number, said) for number, live in enumerate(notes, 1) for said in statements(live.unread.body))
    return [pair for _, pair in zip(range(SENTENCES), each, strict=False)]


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in content_words(text)}


def _nearest(said: str, by_word: Mapping[str, Sequence[int]]) -> list[int]:
    """The known lines that share most words with a sentence; of equals, those with the rarer words."""
    shares: dict[int, float] = defaultdict(float)
    for word in _stems(said):
        there = by_word.get(word, ())
        for number in there:
            shares[number] += 1 + 1 / len(there)
    return [number for number, _ in sorted(shares.items(), key=lambda item: (-item[1], item[0]))[:CANDIDATES]]


def _fitting(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    room, shown = ROOM, []
    for finding in found:
        room -= tokens(as_json(finding))
        if room < 0:
            break
        shown.append(finding)
    return shown
