"""Which symbols a text names, as people and agents write them.

Owns what looks like a symbol: what is marked as code, `snake_case`, `camelCase`, `call()`, and what stands beside a
word such as "function"; and which plain words may be symbols, by their place beside the name of a file. Refuses to look
whether code has it. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 32
"""Symbols of one text."""
LOOKED_AT = 16_000
"""Characters of a text."""
_WORDS = (
    "class|constant|enum|field|flag|function|interface|key|method|module|option|property|setting|struct|variable"
    "|classe|constante|fonction|méthode|propriété"
)
_NAME = r"[^\W\d][\w$]*"
_TICKED = re.compile(r"`([^`\n]{1,200})`")
_PART = re.compile(_NAME)
_DOTTED = re.compile(rf"(?<![\w$/.@-]){_NAME}(?:(?:\.|::|->|#){_NAME})*(?:(?=\()|(?![\w$/@]))")
_BESIDE = (
    re.compile(rf"\b(?:{_WORDS}|def|fn|func) +({_NAME})(?![\w./-])"),
    re.compile(rf"(?<![\w./-])({_NAME}) +(?:{_WORDS})\b"),
)
_SHAPED = re.compile(r"[^_]_+[^_]|[a-z0-9][A-Z]|[A-Z][a-z]+[A-Z]")
_LISTED = rf"(?<![\w$./-])((?:{_NAME}(?:, | and | or | et | ou )){{0,4}}{_NAME})"
_IN_FILE = re.compile(
    rf"{_LISTED}`?,? +(?:\(|\(?(?:in|inside|within|from|of|dans|de|du) (?:the file |le fichier )?)`?(?:\./)?\Z"
)
_OF_FILE = re.compile(rf"`?(?:['’]s +|::|#)`?({_NAME})")
_AROUND = 240
"""Characters before and behind the name of a file."""
_NOT_ONE = frozenset((
    "a", "all", "an", "and", "any", "as", "at", "by", "each", "every", "for", "from", "has", "in", "is", "it", "its",
    "new", "no", "of", "old", "on", "one", "or", "other", "our", "same", "that", "the", "then", "this", "to", "was",
    "which", "with", "your",
))  # fmt: skip


def symbols_in(text: str) -> list[str]:
    """The symbols that a text names, each once; of `Class.method` the last part first."""
    found: dict[str, None] = {}
    for symbol in _all(text[:LOOKED_AT]):
        if 1 < len(symbol) <= 120:
            found[symbol] = None
            if len(found) == MOST:
                break
    return list(found)


def words_beside(text: str, file: str) -> list[str]:
    """The plain words that may be symbols of a file that a text names: `connect in src/db.py`, `src/db.py's connect`.
    Only the file knows whether one is: the same words may say what happens in it.
    """
    found: dict[str, None] = {}
    at = text.find(file)
    while 0 <= at < LOOKED_AT and len(found) < MOST:
        before, end = text[max(0, at - _AROUND) : at], at + len(file)
        whole = not re.search(r"[\w/.-]\Z", before.removesuffix("./"))
        places = (_IN_FILE.search(before), _OF_FILE.match(text, end, end + _AROUND)) if whole else ()
        for place in filter(None, places):
            found |= dict.fromkeys(word for word in _PART.findall(place[1]) if 1 < len(word) <= 120)
        at = text.find(file, end)
    return [word for word in found if word.lower() not in _NOT_ONE]


def _all(text: str) -> Iterator[str]:
    for match in _TICKED.finditer(text):
        if "/" not in match[1]:
            yield from reversed(_PART.findall(match[1]))
    for beside in _BESIDE:
        yield from (match[1] for match in beside.finditer(text) if match[1].lower() not in _NOT_ONE)
    for match in _DOTTED.finditer(text):
        is_called = text.startswith("(", match.end())
        parts = _PART.findall(match[0])
        yield from (part for part in reversed(parts) if _SHAPED.search(part))
        if is_called:
            yield parts[-1]
