"""Texts as they are without what hides a credential in them, and where each part of that stood.

Owns two disguises. What nobody sees or what only says the same in another way is taken out or put right: zero-width
characters, soft hyphens, colours of a terminal, full-width letters, escapes of ordinary characters, lines joined by a
backslash. And base64 is decoded where it is text. Refuses to judge what stands there. Pure; any thread.
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
"""Characters that nobody sees, for a set of a pattern."""
_OTHER = "\uff01-\uff5e\U0001d400-\U0001d7ff"
"""Letters and digits that stand for ASCII's."""
_RARE = re.compile(f"[{UNSEEN}{_OTHER}]")
_ORDINARY = r"(?:2[dDeE]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9aA]|5[fF]|7[eE])"
"""The code of a letter, a digit, or of `-._~`: nobody needs to escape one."""
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
"""No credential that hides is longer on either side of what hides it."""
_APART = "\n\n"
_ESCAPED = re.compile(rf"%{_ORDINARY}|&#|\\(?:\r?\n|\\|u00|x1[bB]|033|e\[)")


@dataclass(frozen=True, slots=True)
class Plain:
    """What stands near the disguises of a text, without them.

    :text:  all of it, with an empty line between its parts
    :whole: the text with them
    :parts: where the parts stand in it
    """

    text: str
    whole: str
    parts: tuple[Span, ...]

    def origins(self, spans: Iterable[Span]) -> list[Span]:
        """Where some parts of the text stood in the whole, each with all that hid it."""
        starts, origins = self._kept()

        def of(place: int) -> Span:
            number = bisect_right(starts, place) - 1
            start, end = origins[number]
            return (start, end) if end > start else (start + place - starts[number], start + place - starts[number] + 1)

        return [(of(start)[0], of(end - 1)[1]) for start, end in spans]

    def _kept(self) -> tuple[list[int], list[Span]]:
        """Where each piece begins, and where it stood; of one that was kept as it was the end is not told."""
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
    """What stands near disguises, without them; None when there is none."""
    parts = tuple(_near(text)) if _may_hide(text) else ()
    return (
        Plain(_APART.join(_HIDES.sub(_shown, text[start:end]) for start, end in parts), text, parts) if parts else None
    )


def _hidden(text: str, at: int, end: int) -> Iterator[re.Match[str]]:
    """What hides something in a part of a text."""
    for first in _MAY_HIDE.finditer(text, at, end):  # one letter is looked for faster than what begins with it
        if first.start() >= at and (match := _HIDES.match(text, first.start(), end)) is not None:
            yield match
            at = match.end()


def _near(text: str) -> Iterator[Span]:
    """Whole lines near what hides something: what is far from all of it was looked at as it stands."""
    start = end = at = 0
    while (match := next(_hidden(text, at, len(text)), None)) is not None:
        if match.start() - _FAR > end:
            if end:
                yield start, end
            start = text.rfind("\n", end, match.start() - _FAR) + 1 or end
        end = text.find("\n", match.end() + 2 * _FAR)
        end = len(text) if end < 0 else end
        at = max(match.end(), end - _FAR)  # what hides before is far enough from the end
    if end:
        yield start, end


def _may_hide(text: str) -> bool:
    if "\x1b" in text or (any(sign in text for sign in ("\\", "%", "&#")) and _ESCAPED.search(text) is not None):
        return True
    return not text.isascii() and _RARE.search(text) is not None


def _shown(match: re.Match[str]) -> str:
    """What stands for something that hid, most often nothing."""
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
"""What four letters begin with that stand for three bytes of which the first is ASCII."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_END = re.compile(r"(?:\r?\n|\\r\\n|\\n)[ \t]{0,80}")
_OF_64 = "[A-Za-z0-9+/_-]"
_LAST = re.compile(rf"(?:{_OF_64}{{4}}){{0,3}}{_OF_64}{{2}}(?:==|{_OF_64}=|{_OF_64}{{2}})" + r"""(?=[\s"'\\]|\Z)""")
"""The short line that several of base64 end with, and nothing behind it."""
_WRAPPED = 60
"""A line of base64 that goes on in the next has at least so many characters, a multiple of four."""


def said(words: Iterable[str]) -> str:
    """All that words in base64 may say, for a first look: where it stood is not told."""
    data = "\n".join(words).encode("ascii", "replace").translate(_NO_CODE)
    parts = []
    open_line = False
    for run in data.split():
        # The first look of `_decoded` is taken here: a call for each of many thousand runs is most of the cost.
        says = _decoded(run) if (run[4] in _ASCII if len(run) >= _LEAST else open_line) else None
        open_line = says is not None and _goes_on(run)
        if says is not None:
            parts += [says, "" if open_line else "\n\n"]
    return "".join(parts)


def coded(text: str) -> list[tuple[Span, str]]:
    """Where base64 stands that is text, and what it says; lines of it that belong together are one."""
    found: list[tuple[Span, str]] = []
    at = 0
    while (match := _CODED.search(text, at)) is not None:
        at = match.end()
        says = []
        line: re.Match[str] | None = match
        while line is not None and (part := _decoded(run := _standard(line[0]))) is not None:
            says.append(part)
            at = line.end()
            gap = _LINE_END.match(text, at) if _goes_on(run) else None
            line = (_CODED.match(text, gap.end()) or _LAST.match(text, gap.end())) if gap is not None else None
        if says:
            found.append(((match.start(), at), "".join(says)))
    return found


def _standard(line: str) -> bytes:
    """A run of base64 in the alphabet that most use, without padding."""
    return line.rstrip("=").encode().translate(_STANDARD)


def _goes_on(run: bytes) -> bool:
    return len(run) >= _WRAPPED and len(run) % 4 == 0


def _decoded(run: bytes) -> str | None:
    """What a run of base64 in the standard alphabet says, in UTF-8 or UTF-16; None when that is no text."""
    if len(run) >= _LEAST and (run[4] not in _ASCII or (run[0] not in _ASCII and _ASCII.isdisjoint(run[8:13:4]))):
        return None  # most are none, and this tells it fast
    run = run[:-1] if len(run) % 4 == 1 else run
    data = a2b_base64(run + b"=" * (-len(run) % 4))
    wide = len(data) > 2 and data.count(0) * 2 >= len(data) - 1
    try:
        says = data.decode("utf-16-le" if wide else "utf-8")
    except UnicodeDecodeError:
        return None
    return says if _CONTROL.search(says) is None else None
