"""How credentials are searched in a text: first for a literal, and a pattern only where the literal stands.

Owns the cost: a text without any of the literals costs a few scans, and the time is linear in the text, because no part
is read twice. Owns also how a token continues in the next line. Knows no credential itself: those are in `credentials`
and `vendors`. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

Span = tuple[int, int]
"""The beginning and the end of a credential."""

_EDGES = (r"(?<![A-Za-z0-9]{})", r"(?<=\\[bfnrt]{})", r"(?<=\\u[0-9A-Fa-f]{{4}}{})", r"(?<=%[0-9A-Fa-f]{{2}}{})")
_OWN_EDGES = (r"(?<![A-Za-z0-9_-]{})", r"(?<=\\[bfnrt]{})")
EDGE = f"(?:{'|'.join(_EDGES).format(*[''] * len(_EDGES))})"
"""The beginning of a word; also behind an escape of JSON or of a URL, which ends in a letter or a digit."""
_LONG = 8
"""The shortest token with a form of its own, and the shortest part of one before a line break."""

_RUN_OF_BASE64, _LONGEST_NAME = 64, 40

_ALNUM = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_ESCAPES = re.compile(rb"\\(?:[bfnrt]|u[0-9A-Fa-f]{4})|%[0-9A-Fa-f]{2}")
_HEAD = re.compile("[A-Za-z0-9]+")


class Text:
    """A text, prepared for many searches.

    :whole:   the text
    :lowered: the text in lower case, of the same length
    :words:   its words (parts between blanks) that may be a token or end base64, each once
    :long:    these words, joined by blanks
    :each:    all its words, each once, in lower case; of a long run of base64 only the end, because no name of a
              credential is so long
    :heads:   the runs of letters and digits in `words`, and the first three and two characters of each
    :signs:   the signs of literals that stand in the text
    """

    __slots__ = ("each", "heads", "long", "lowered", "signs", "whole", "words")

    def __init__(self, whole: str) -> None:
        self.whole = whole
        self.lowered = _lower(whole)
        each = dict.fromkeys(whole.split())
        self.words = [word for word in each if len(word) >= _LONG or word[-1] == "="]
        self.each = _lower(" ".join(word if len(word) < _RUN_OF_BASE64 else _end_of_run(word) for word in each))
        self.long = " ".join(self.words)
        self.heads = _heads(self.long)
        self.signs = frozenset(sign for sign in _SIGNS if sign in whole)


def _end_of_run(word: str) -> str:
    """The end of a word that is base64 and nothing else; any other word whole."""
    is_run = word.isascii() and word.rstrip("=").replace("+", "").replace("/", "").isalnum()
    return word[-_LONGEST_NAME:] if is_run else word


def _lower(text: str) -> str:
    return text.replace("\u0130", "i").lower()  # the one letter whose lower case is longer


def _heads(words: str) -> set[bytes]:
    """The runs of letters and digits in these words, and the first three and two characters of each."""
    data = words.encode("ascii", "replace")
    if b"\\" in data or b"%" in data:
        data = _ESCAPES.sub(b" ", data)
    runs = set(data.translate(_ALNUM).split())
    shorter = {run[:3] for run in runs}
    runs |= shorter | {run[:2] for run in shorter}
    return runs


def _head(literal: str) -> bytes:
    """The head of each text with this literal: its first run, or three letters of a run that may go on in the text."""
    head = _HEAD.search(literal)
    assert head is not None
    return (head[0] if head.end() < len(literal) else head[0][:3]).encode()


@dataclass(frozen=True, slots=True)
class Search:
    """A search for credentials.

    :run:  gives their places in a text
    :head: must be among the heads of the text; None: there is no such condition
    :word: must stand in the text; in lower case if there is no head
    """

    run: Callable[[Text], Iterator[Span]]
    head: bytes | None = None
    word: str = ""

    def may_find(self, text: Text) -> bool:
        """Whether the search may find anything in a text. A sign is looked up first, because that is faster."""
        signs = _signs(self.word)
        if not text.signs.issuperset(signs):
            return False
        if self.head is not None:
            return self.word in text.long
        return self.word in (text.lowered if "/" in signs else text.each)


_SIGNS = "_-.:/$~=!"


@cache
def _signs(literal: str) -> frozenset[str]:
    return frozenset(literal).intersection(_SIGNS)


Check = Callable[[str], bool]
"""Whether the text that a pattern matched is a credential."""
_FEW = 1_000
_compiled = cache(re.compile)
"""A pattern is compiled when its literal is found: most literals never are."""


def anything(_: str) -> bool:
    """The check that accepts every match."""
    return True


def starting(literal: str, rest: str, is_one: Check = anything, *, own: bool = False) -> Search:
    """A search for words that begin with a literal in exactly this case. A word may continue in the next line.

    `own`: no word begins behind `-` or `_`; for patterns that often read far without a match.
    """
    first = re.escape(literal)
    # The literal comes first, because the engine finds it fast.
    begins = f"{first}(?:{'|'.join(edge.format(first) for edge in (_OWN_EDGES if own else _EDGES))})"

    def search(text: Text) -> Iterator[Span]:
        pattern = _compiled(first + rest, re.ASCII)
        done = joined_to = 0
        for at in _places(text.whole, literal, _compiled(begins)):
            if at < done:
                continue
            match = pattern.match(text.whole, at)
            if match is not None:
                done = match.end()
                if is_one(match[match.lastindex or 0]):
                    yield _secret(match)
            if at >= joined_to:  # lines that were read for an earlier beginning are not read again
                spans, joined_to = _broken(text.whole, at, pattern, is_one)
                yield from spans

    return Search(search, head=_head(literal), word=literal)


def _places(text: str, literal: str, pattern: re.Pattern[str]) -> Iterator[int]:
    """Where a pattern matches that begins with a literal. `find` is faster for few places, the engine for many."""
    if text.count(literal) > _FEW:
        yield from (match.start() for match in pattern.finditer(text))
        return
    at = text.find(literal)
    while at >= 0:
        if pattern.match(text, at) is not None:
            yield at
        at = text.find(literal, at + len(literal))


def following(literal: str, rest: str, is_one: Check = anything, *, within: str = "") -> Search:
    """A search for what follows a literal in any case; `literal` is in lower case. `within` may stand between the two.

    No part is read twice as `within`, so that many literals in it cost no more than one.
    """
    between = f"{within}?" if within else ""

    def search(text: Text) -> Iterator[Span]:
        at = text.lowered.find(literal)
        while at >= 0:
            end = at + len(literal)
            match = _compiled(between + rest, re.IGNORECASE | re.ASCII).match(text.whole, end)
            if match is not None:
                end = match.end()
                if is_one(match[match.lastindex or 0]):
                    yield _secret(match)
            elif (passed := _compiled(within).match(text.whole, end)) is not None:
                end = passed.end()
            at = text.lowered.find(literal, end)

    return Search(search, word=max(literal.split(), key=len))


def having(literal: str, expression: str, is_one: Check = anything, *, reach: int = 300) -> Search:
    """A search for words that have a literal in any case; `literal` is in lower case. Both ends of the word are at most
    `reach` characters away from it.
    """

    def search(text: Text) -> Iterator[Span]:
        at = text.lowered.find(literal)
        while at >= 0:
            start, end = max(0, at - reach), at + reach
            while 0 <= (at := text.lowered.find(literal, at + 1)) <= end:
                end = at + reach
            for match in _compiled(expression, re.ASCII).finditer(text.whole, start, end):
                if is_one(match[match.lastindex or 0]):
                    yield _secret(match)

    return Search(search, word=literal)


def _secret(match: re.Match[str]) -> Span:
    """The secret part of a match: the one group that took part, else the whole match."""
    return match.span(match.lastindex or 0)


# --- tokens broken by a line end -----------------------------------------------------------------------------------

_RUN = re.compile(r"(?:[\w.,+/~:%!$-]|=(?![ \t]*\r?\n)){1,400}+", re.ASCII)
_BREAK = re.compile(r"=?[ \t]{0,8}(?:\r?\n|\\r\\n|\\n)[ \t]{0,80}(?:[>#|*]{1,2}[ \t]{1,8})?")
"""A line end, in plain text, JSON or quoted-printable, with the indentation or quotation mark of the next line."""
_PLAIN = re.compile("[A-Z]?[a-z]*|[A-Z]*|[0-9.:/%-]*")
_GOES_ON = re.compile(r"[ \t]+[\w(]|[\w(]", re.ASCII)
_MOST_LINES = 40
_MOST_IN_VAIN = 4


def _broken(text: str, at: int, pattern: re.Pattern[str], is_one: Check) -> tuple[list[Span], int]:
    """The parts of a token that continues in the next lines, and the place up to which the text was read.

    A token continues where its line ends with it and the next line does not begin with a plain word. Behind a complete
    token only text that looks random and stands alone in its line belongs to it.
    """
    run = _RUN.match(text, at)
    if run is None or len(run[0]) < _LONG or _BREAK.match(text, run.end()) is None:
        return [], run.end() if run is not None else 0
    parts, joined, whole = [run.span()], run[0], pattern.match(run[0])
    if whole is not None and (whole.end() < len(joined) or not is_one(joined)):
        return [], at + whole.end()
    known = whole is not None
    while len(parts) < (_MOST_LINES if known else _MOST_IN_VAIN):
        part = _part(text, parts[-1][1])
        if part is None or (known and not _is_rest(text, part)):
            break
        parts.append(part.span())
        joined += part[0]
        if not known:
            whole = pattern.match(joined)
            over = len(joined) - whole.end() if whole is not None else 0
            known = whole is not None and over < len(part[0]) and is_one(whole[whole.lastindex or 0])
            if known and over:
                parts[-1] = (part.start(), part.end() - over)
                break
    return (parts if known and len(parts) > 1 else []), parts[-1][1]


def _part(text: str, end: int) -> re.Match[str] | None:
    """The beginning of the next line, if it may be a part of a token."""
    gap = _BREAK.match(text, end)
    part = _RUN.match(text, gap.end()) if gap is not None else None
    return part if part is not None and _PLAIN.fullmatch(part[0]) is None else None


def _is_rest(text: str, part: re.Match[str]) -> bool:
    """Whether a part looks random (digits with letters of both cases, or long) and no text follows in its line."""
    word = part[0]
    if len(word) < _LONG or not any(map(str.isdigit, word)) or _GOES_ON.match(text, part.end()) is not None:
        return False
    mixed = any(map(str.isupper, word)) and any(map(str.islower, word)) and word.isalnum()
    return mixed or is_random(word)


_RANDOM = re.compile("[A-Za-z0-9]{16}")


def is_random(text: str) -> bool:
    """Whether the text has a digit and a run of letters and digits that is too long for a word."""
    return _RANDOM.search(text) is not None and any(map(str.isdigit, text))
