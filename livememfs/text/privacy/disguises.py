"""Texts without the disguises that may hide a credential, and where each part stood in the original.

Owns two kinds of disguise. Invisible characters and other spellings are removed or replaced: zero-width characters,
soft hyphens, colours of a terminal, full-width letters, escapes of ordinary characters, lines joined by a backslash.
And base64 is decoded where it holds text. Does not judge what the text holds. Pure; any thread.
"""

from __future__ import annotations

import re
import unicodedata
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from livememfs.text.privacy.searches import Span

UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
"""Invisible characters, for a set in a pattern."""
_OTHER = "\uff01-\uff5e\U0001d400-\U0001d7ff"
"""Letters and digits that stand for ASCII's."""
_RARE = re.compile(f"[{UNSEEN}{_OTHER}]")
_ORDINARY = r"(?:2[dDeE]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9aA]|5[fF]|7[eE])"
"""The code of a letter, a digit, or of `-._~`, which never need an escape."""
_HIDES = re.compile(
    rf"""
    [{UNSEEN}]++
  | [{_OTHER}]
  | \x1b (?: \[ [0-?]*+ [ -/]*+ [@-~] | \] [^\x07\x1b]{{0,2000}}+ (?: \x07 | \x1b\\ ) )   # a colour, a link
  | \\ (?: u001[bB] | x1[bB] | 033 | e ) \[ [0-9;]{{0,30}} m                             # the same, escaped
  | \\ \r?\n [ \t]*+                                                                    # lines joined in a shell
  | \\\\ (?: \\r )? \\n [ ]*+                                                           # the same, as JSON has it
  | %{_ORDINARY} | \\u00{_ORDINARY} | &\#[xX]{_ORDINARY} ;
  | &\#(?: 4[5-9] | 5[0-7] | 6[5-9] | [78][0-9] | 9[0-57-9] | 1[01][0-9] | 12[0-2] ) ;
    """,
    re.VERBOSE,
)
_MAY_HIDE = re.compile(rf"[\x1b\\%&{UNSEEN}{_OTHER}]")
_FAR = 4_000
"""So far on each side of a disguise the text is searched: no credential is longer."""
_APART = "\n\n"
_ESCAPED = re.compile(rf"%{_ORDINARY}|&#|\\(?:\r?\n|\\|u00|x1[bB]|033|e\[)")


@dataclass(frozen=True, slots=True)
class Plain:
    """The parts of a text that are near disguises, without these.

    :text:  all parts, with an empty line between them
    :whole: the original text
    :parts: where the parts stand in the original text
    """

    text: str
    whole: str
    parts: tuple[Span, ...]

    def origins(self, spans: Iterable[Span]) -> list[Span]:
        """Where spans of `text` stood in `whole`, each with the disguise of its characters."""
        starts, origins = self._kept()

        def of(place: int) -> Span:
            number = bisect_right(starts, place) - 1
            start, end = origins[number]
            return (start, end) if end > start else (start + place - starts[number], start + place - starts[number] + 1)

        return [(of(start)[0], of(end - 1)[1]) for start, end in spans]

    def _kept(self) -> tuple[list[int], list[Span]]:
        """Where each piece of `text` begins, and its span in `whole`; the span of an unchanged piece is empty."""
        starts, origins, length = [], [], 0
        for at, end in self.parts:
            for match in _hidden(self.whole, at, end):
                starts.append(length)
                origins.append((at, at))
                length += match.start() - at
                at = match.end()
                if shown := _shown(match):
                    starts.append(length)
                    origins.append(match.span())
                    length += len(shown)
            starts.append(length)
            origins.append((at, at))
            length += end - at + len(_APART)
        return starts, origins


def plain(text: str) -> Plain | None:
    """The parts of a text near its disguises, without these; None for a text without disguises."""
    parts = tuple(_near(text)) if _may_hide(text) else ()
    if not parts:
        return None
    return Plain(_APART.join(_HIDES.sub(_shown, text[start:end]) for start, end in parts), text, parts)


def _hidden(text: str, at: int, end: int) -> Iterator[re.Match[str]]:
    """The disguises in a part of a text."""
    for first in _MAY_HIDE.finditer(text, at, end):  # searching a set of single characters is fast
        if first.start() >= at and (match := _HIDES.match(text, first.start(), end)) is not None:
            yield match
            at = match.end()


def _near(text: str) -> Iterator[Span]:
    """Whole lines near disguises. Text far from all of them need not be searched again."""
    start = end = at = 0
    while (match := next(_hidden(text, at, len(text)), None)) is not None:
        if match.start() - _FAR > end:
            if end:
                yield start, end
            start = text.rfind("\n", end, match.start() - _FAR) + 1 or end
        end = text.find("\n", match.end() + 2 * _FAR)
        end = len(text) if end < 0 else end
        at = max(match.end(), end - _FAR)  # a disguise before this place is far enough from the end
    if end:
        yield start, end


def _may_hide(text: str) -> bool:
    if "\x1b" in text or (any(sign in text for sign in ("\\", "%", "&#")) and _ESCAPED.search(text) is not None):
        return True
    return not text.isascii() and _RARE.search(text) is not None


def _shown(match: re.Match[str]) -> str:
    """What a disguise is replaced by: most often nothing."""
    hidden = match[0]
    if hidden.startswith("%"):
        return chr(int(hidden[1:], 16))
    if hidden.startswith("\\u00") and hidden[4] != "1":
        return chr(int(hidden[4:], 16))
    if hidden.startswith("&#"):
        return chr(int(hidden[3:-1], 16) if hidden[2] in "xX" else int(hidden[2:-1]))
    if hidden.isascii():
        return ""
    other = unicodedata.normalize("NFKC", hidden)
    return other if len(other) == 1 and other.isascii() else ""


# --- base64 --------------------------------------------------------------------------------------------------------

_LEAST = 16
_CODED = re.compile(f"[A-Za-z0-9+/_-]{{{_LEAST},}}+={{0,2}}")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_NO_CODE = bytes(code if _CODED.match(chr(code) * 16) else 32 for code in range(128)).translate(_STANDARD) + b" " * 128
_ASCII = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef")
"""The first of four letters that stand for three bytes, where the first byte is ASCII."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_END = re.compile(r"(?:\r?\n|\\r\\n|\\n)[ \t]{0,80}")
_OF_64 = "[A-Za-z0-9+/_-]"
_LAST = re.compile(rf"(?:{_OF_64}{{4}}){{0,3}}{_OF_64}{{2}}(?:==|{_OF_64}=|{_OF_64}{{2}})" + r"""(?=[\s"'\\]|\Z)""")
"""The short last line of several lines of base64."""
_WRAPPED = 60
"""A line of base64 that continues in the next has at least so many characters, a multiple of four."""


def said(words: Iterable[str]) -> str:
    """All text that words in base64 may hold, without its places, for a first quick search."""
    data = "\n".join(words).encode("ascii", "replace").translate(_NO_CODE)
    parts = []
    open_line = False
    for run in data.split():
        # The first check of `_decoded` is made here too: to call it for each of many thousand runs is most of the cost.
        decoded = _decoded(run) if (run[4] in _ASCII if len(run) >= _LEAST else open_line) else None
        open_line = decoded is not None and _goes_on(run)
        if decoded is not None:
            parts += [decoded, "" if open_line else "\n\n"]
    return "".join(parts)


def coded(text: str) -> list[tuple[Span, str]]:
    """Each place where base64 holds text, and that text. Lines of base64 that belong together are one place."""
    places: list[tuple[Span, str]] = []
    at = 0
    while (match := _CODED.search(text, at)) is not None:
        at = match.end()
        parts = []
        line: re.Match[str] | None = match
        while line is not None:
            run = line[0].rstrip("=").encode().translate(_STANDARD)
            part = _decoded(run)
            if part is None:
                break
            parts.append(part)
            at = line.end()
            gap = _LINE_END.match(text, at) if _goes_on(run) else None
            line = (_CODED.match(text, gap.end()) or _LAST.match(text, gap.end())) if gap is not None else None
        if parts:
            places.append(((match.start(), at), "".join(parts)))
    return places


def _goes_on(run: bytes) -> bool:
    return len(run) >= _WRAPPED and len(run) % 4 == 0


def _decoded(run: bytes) -> str | None:
    """The text in a run of base64 of the standard alphabet, in UTF-8 or UTF-16; None when it holds no text."""
    if len(run) >= _LEAST and (run[4] not in _ASCII or (run[0] not in _ASCII and _ASCII.isdisjoint(run[8:13:4]))):
        return None  # most runs hold no text, and this check is fast
    run = run[:-1] if len(run) % 4 == 1 else run
    data = a2b_base64(run + b"=" * (-len(run) % 4))
    wide = len(data) > 2 and data.count(0) * 2 >= len(data) - 1
    try:
        text = data.decode("utf-16-le" if wide else "utf-8")
    except UnicodeDecodeError:
        return None
    return text if _CONTROL.search(text) is None else None
