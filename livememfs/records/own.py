"""Our own words: how context that we gave an agent is told from everything else, so that it is never remembered again.

Owns the marks around a block of context, and taking such blocks out of what an agent did or was asked. A block that was
never closed goes to its end: what is lost so is a copy of what we know. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

OPEN, CLOSE = "<!-- livememfs context -->", "<!-- /livememfs context -->"
"""Around what is put before a model; Markdown shows nothing of it."""
HEAD = "[Memory: what is known from before, for you and not part of the conversation]"
"""The first line of what `.recall` answers."""
LEFT_OUT = "[livememfs context left out]"

_NOT_BASIC = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
_BLOCK = re.compile(
    rf"{re.escape(OPEN)}.*?(?:{re.escape(CLOSE)}\n?|\Z)|{re.escape(HEAD)}\n(?:(?:- |[^\n]*:$)[^\n]*\n?)*",
    re.DOTALL | re.MULTILINE,
)


def wrapped(text: str) -> str:
    """A block of context with its marks. A mark that ends one and stands in the text is replaced: the rest would pass
    for somebody else's words.
    """
    return f"{OPEN}\n{text.replace(CLOSE, LEFT_OUT).rstrip()}\n{CLOSE}\n"


def basic(text: str) -> str:
    """Without what is outside the basic plane: it becomes two halves on its way to some models, and one is lost."""
    return text if text.isascii() else _NOT_BASIC.sub("\ufffd", text)


def without_own(text: str) -> str:
    """A text without our blocks."""
    if OPEN not in text and HEAD not in text:
        return text
    return _BLOCK.sub(LEFT_OUT + "\n", text)


def value_without_own(value: Any) -> Any:
    """A JSON value whose texts are without our blocks."""
    if isinstance(value, str):
        return without_own(value)
    if isinstance(value, Mapping):
        return {name: value_without_own(one) for name, one in value.items()}
    return [value_without_own(one) for one in value] if isinstance(value, list) else value
