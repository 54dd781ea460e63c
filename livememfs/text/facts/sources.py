"""Lines of a bank file that state a fact without a source (design rule 5).

Owns the comparison: each number, date, version, reference and path of an added line must stand in a text that the file
was made from. Refuses nothing: it lists the lines, and the caller decides. `finding` says what a fact is; the keys of
`fact` make facts equal that are written in different ways. Linear in the texts; pure; may be called from any thread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from livememfs.text.facts import finding as found_facts
from livememfs.text.facts.fact import WORD, Fact, bare_key, number_key
from livememfs.text.facts.paths import words_in
from livememfs.text.facts.quantities import NUMBER_WORDS
from livememfs.text.facts.relative import said_days

_LINE_END = re.compile(r"\r\n|\r|\n")
_LIST_MARK = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])(?:\s+\[[ xX]\])?(?=\s|$)")


@dataclass(frozen=True)
class UnsourcedFact:
    """An added line with facts that have no source.

    :number: the number of the line in the new text, from 1
    :line:   the line, without its end
    :facts:  the facts without a source, as the line has them
    """

    number: int
    line: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class DatedText:
    """A text and the time at which it was written, so that `yesterday` in it is a known day."""

    text: str
    written: datetime


class Sources:
    """The facts of the source texts. Immutable; build it once for all files of a run."""

    def __init__(self, texts: Iterable[str | DatedText], known: Iterable[str] = ()) -> None:
        """:known: keys of further facts (see `fact`)"""
        given = list(texts)
        # All texts in one: a word that several of them have is read once.
        self._keys = found_facts.keys("\n".join(each for each in given if isinstance(each, str)))
        self._keys.update(known)
        self._words: dict[str, int] = {}
        for number, each in enumerate(given):
            if isinstance(each, DatedText):
                own = found_facts.keys(each.text)
                self._keys |= own | said_days(each.text, each.written, own)
                each = each.text
            self._add_words(number, each)

    def _add_words(self, number: int, text: str) -> None:
        """Note the words of a text, with one bit for each text that has a word."""
        bit, known = 1 << number, self._words
        for word in {word for token in set(text.split()) for word in words_in(token)}:
            known[word] = known.get(word, 0) | bit
            if word in NUMBER_WORDS:
                self._keys |= {number_key(NUMBER_WORDS[word]), bare_key(NUMBER_WORDS[word])}

    def knows(self, fact: str) -> bool:
        """Whether all facts in a piece of text have a source, however they are written; true where it has no facts.

        A word with a slash is read as a path, as if it were marked as code.
        """
        return all(self._has(each) for each in _alone(fact))

    def unknown(self, line: str) -> tuple[str, ...]:
        """The facts of a line without a source, each once."""
        missing = (fact.text for fact in found_facts.find(line) if not self._has(fact))
        return tuple(dict.fromkeys(missing))

    def _has(self, fact: Fact) -> bool:
        return not fact.readings or any(map(self._has_all, fact.readings))

    def _has_all(self, reading: tuple[str, ...]) -> bool:
        """Whether the texts have all keys of a reading, and one text has all of its words."""
        texts = -1
        for key in reading:
            if key.startswith(WORD):
                texts &= self._words.get(key[1:], 0)
            elif key not in self._keys:
                return False
        return texts != 0


def _alone(fact: str) -> list[Fact]:
    alone = not (" " in fact or "`" in fact)
    return found_facts.find(f"`{fact}`" if alone else fact)


def is_hard(fact: str) -> bool:
    """Whether a fact, as it is written, is of a kind that leaves no doubt: see `Fact.is_hard`."""
    return any(each.is_hard for each in _alone(fact))


def facts(line: str) -> list[str]:
    """The facts of a line of Markdown as they are written there, each once."""
    return list(dict.fromkeys(fact.text for fact in found_facts.find(line) if fact.readings))


def unsourced(old: str, new: str, sources: Iterable[str] | Sources) -> list[UnsourcedFact]:
    """The lines of `new` that are not in `old`, and state a fact that neither `old` nor a source has.

    Plain texts are read again in each call; for many files, pass one Sources.
    """
    known = sources if isinstance(sources, Sources) else Sources([old, *sources])
    suspects = [
        UnsourcedFact(number, line, missing) for number, line in _added(old, new) if (missing := known.unknown(line))
    ]
    if not suspects or not isinstance(sources, Sources):
        return suspects
    own = Sources([old])  # only now: most files have no suspect line
    kept = ((each, set(own.unknown(each.line))) for each in suspects)
    both = ((each, tuple(fact for fact in each.facts if fact in missing)) for each, missing in kept)
    return [UnsourcedFact(each.number, each.line, missing) for each, missing in both if missing]


def _added(old: str, new: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line of `new` that `old` does not have, or has less often."""
    there = Counter(map(_bare, _LINE_END.split(old)))
    for number, line in enumerate(_LINE_END.split(new), 1):
        bare = _bare(line)
        there[bare] -= 1
        if there[bare] < 0:
            yield number, line


def _bare(line: str) -> str:
    """A line without its list mark and its indentation."""
    return " ".join(_LIST_MARK.sub("", line.strip(), count=1).split()) if line else ""
