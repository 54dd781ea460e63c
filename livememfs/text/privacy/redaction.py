"""What is private leaves a text: `<private>` blocks and credentials are replaced by marks that can be seen.

Owns the blocks, the marks, and what redacting means for texts, JSON values and files with front matter. Fails closed: a
block that is never closed goes on to the end, one that was never opened begins where the text does. Redacting twice
changes nothing, and beside what is replaced nothing changes. Pure; any thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from livememfs.errors import PrivateText
from livememfs.text import frontmatter
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.privacy import credentials, named

PRIVATE = "private"
"""The kind of a block; all other kinds are those of `credentials.KINDS`."""
NAMED = "named-secret"
TOO_DEEP = "too-deep"
LARGE = 1 << 18
"""Whoever must not be held up redacts what is larger, in bytes or characters, in a thread."""
MARK = re.compile(r"\[private\]|\[redacted: [a-z0-9-]{1,40}\]")
"""What stands where something was replaced."""
_MOST_PASSES = 8
_FAR = 4_000
"""No credential is so much longer that it would not be noticed at its beginning or its end."""
_DEEPEST = 200

_HIDDEN = "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]*+"
"""Characters that nobody sees."""
_NAME = _HIDDEN.join(
    f"[{letter}{letter.upper()}{chr(ord(letter) + 0xFEE0)}{chr(ord(letter) + 0xFEC0)}]" for letter in PRIVATE
)
_GAP = rf"(?:\s|\\[nrt]|{_HIDDEN[:-2]})*+"
_OPENS = (
    r"[<\uff1c\ufe64&\\%](?:(?<=[<\uff1c\ufe64])|(?<=&)(?:amp;){0,4}(?:lt|LT|\#0{0,6}60|\#[xX]0{0,6}3[cC]);?"
    r"|(?<=\\)\\{0,7}(?:u003|x3)[cC]|(?<=%)3[cC])"
)
"""One character out of a set comes first: the engine looks for that many times faster than for one of several."""
_CLOSES = r"(?:[>\uff1e\ufe65]|&(?:amp;){0,4}(?:gt|GT|\#0{0,6}62|\#[xX]0{0,6}3[eE]);?|\\{1,8}(?:u003|x3)[eE]|%3[eE])"
_SLASH = r"(?:\\{0,8}[/\uff0f]|&(?:amp;){0,4}\#(?:47|[xX]2[fF]);|\\{1,8}(?:u002|x2)[fF]|%2[fF])"
_WORD = re.compile(_NAME)
_TAG = re.compile(rf"{_OPENS}{_GAP}(?P<slash>{_SLASH}{_GAP})?{_NAME}{_HIDDEN}(?![\w.:-])(?P<end>{_GAP}{_CLOSES})?")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without what is private.

    :found: the kinds that were replaced, each once, sorted; empty when the text is unchanged
    """

    text: str
    found: tuple[str, ...]


def redact(text: str) -> Redacted:
    """Replace every `<private>` block and every credential by its mark."""
    found: set[str] = set()
    blocks = _blocks(text) if _may_have_tags(text) else []
    if blocks:
        text = _replaced(text, blocks)
        found.add(PRIVATE)
    for _ in range(_MOST_PASSES):  # what stood beside a credential may be one itself, now that it stands alone
        spans = credentials.spans(_without_marks(text))
        if not spans:
            break
        text = _replaced(text, [(start, end, f"[redacted: {kind}]") for start, end, kind in spans])
        found.update(kind for _, _, kind in spans)
        if len(text) > _FAR and not credentials.spans(_beside_marks(text)):
            break  # nothing new can be found far from what was replaced
    return Redacted(text, tuple(sorted(found)))


def redact_value(value: Any) -> tuple[Any, tuple[str, ...]]:
    """A JSON value with every text in it redacted, names of fields too; and the kinds that were replaced.

    A text in a field called `password`, `api_key` or the like is a credential whatever it looks like. Fields whose
    names become the same are told apart by numbers. What is nested over 200 deep is replaced as a whole.
    """
    found: set[str] = set()
    return _value(value, found, secret=False, depth=0), tuple(sorted(found))


def redact_file(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """A note or memory as somebody wrote it, redacted, and the kinds that were replaced.

    Front matter stays front matter where it can. Bytes that are no text stay what they are.
    """
    text = data.decode("utf-8", "surrogateescape")
    redacted = redact(text)
    if not redacted.found:
        return data, ()
    if PRIVATE not in redacted.found:  # a block may begin in the front matter and end in the body
        redacted = _by_parts(text) or redacted
    return redacted.text.encode("utf-8", "surrogateescape"), redacted.found


def told(path: str, found: tuple[str, ...]) -> PrivateText:
    """What the writer of a text is told of the kinds that were replaced in it."""
    return PrivateText(path=path, detail=", ".join(found))


def without_marks(text: str) -> str:
    """A text with a blank for each mark: what is looked up must not be found by them."""
    return MARK.sub(" ", text)


# --- blocks --------------------------------------------------------------------------------------------------------


def _may_have_tags(text: str) -> bool:
    return PRIVATE in text.lower() if text.isascii() else _WORD.search(text) is not None


def _blocks(text: str) -> list[tuple[int, int, str]]:
    """The blocks of a text, the outermost of those that stand in one another."""
    blocks: list[tuple[int, int, str]] = []
    begun = depth = 0
    for tag in _TAG.finditer(text):
        if tag["slash"] is None:
            begun = tag.start() if depth == 0 else begun
            depth += 1
        elif depth == 0:  # closed, and never opened: nobody can say where it began
            blocks = [(0, tag.end(), "[private]")]
        elif tag["end"] is not None:
            depth -= 1
            if depth == 0:
                blocks.append((begun, tag.end(), "[private]"))
    if depth:
        blocks.append((begun, len(text), "[private]"))
    return blocks


def _replaced(text: str, spans: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, mark in spans:
        parts += [text[at:start], mark]
        at = end
    return "".join((*parts, text[at:]))


def _without_marks(text: str) -> str:
    """The text with its marks blanked out: no credential reaches over one, and all else keeps its place."""
    return MARK.sub(lambda mark: "\n" * len(mark[0]), text) if "[private]" in text or "[redacted: " in text else text


def _beside_marks(text: str) -> str:
    """What stands near the marks of a text, without them."""
    parts, to = [], 0
    for mark in MARK.finditer(text):
        start, end = max(to, mark.start() - _FAR), mark.end() + _FAR
        parts += ["\n" * (start > to), text[start:end]]
        to = min(end, len(text))
    return _without_marks("".join(parts))


# --- values --------------------------------------------------------------------------------------------------------


def _value(value: Any, found: set[str], *, secret: bool, depth: int) -> Any:
    if isinstance(value, str):
        return _secret(value, found) if secret else _text(value, found)
    if depth >= _DEEPEST and isinstance(value, dict | list | tuple):
        found.add(TOO_DEEP)
        return f"[redacted: {TOO_DEEP}]"
    if isinstance(value, dict):
        return _fields(value, found, depth)
    if isinstance(value, list | tuple):
        return [_value(one, found, secret=secret, depth=depth + 1) for one in value]
    return value


def _fields(value: dict[Any, Any], found: set[str], depth: int) -> dict[Any, Any]:
    fields: dict[Any, Any] = {}
    taken = set(value)
    for name, inner in value.items():
        kept = shown = _text(name, found) if isinstance(name, str) else name
        number = 1
        while kept != name and (kept in fields or kept in taken):
            number += 1
            kept = f"{shown} {number}"
        # By what is left of the name: redacting twice must come to the same.
        secret = isinstance(name, str) and named.is_secret_name(without_marks(shown))
        fields[kept] = _value(inner, found, secret=secret, depth=depth + 1)
    return fields


def _text(text: str, found: set[str]) -> str:
    redacted = redact(text)
    found.update(redacted.found)
    return redacted.text


def _secret(text: str, found: set[str]) -> str:
    """A text that is a credential by its name; of one that has a form of its own the kind is told."""
    if not text or MARK.fullmatch(text):
        return text
    redacted = redact(text)
    if len(redacted.found) == 1 and MARK.fullmatch(redacted.text):
        found.update(redacted.found)
        return redacted.text
    found.add(NAMED)
    return f"[redacted: {NAMED}]"


def _by_parts(text: str) -> Redacted | None:
    """Front matter by its fields and the body by itself: a mark is not what YAML takes for text. None without any."""
    try:
        metadata, body = frontmatter.split(text)
        if not metadata:
            return None
        fields, found = redact_value(metadata)
        rest = redact(body)
        whole = frontmatter.join(fields, rest.text) if found else text.removesuffix(body) + rest.text
    except FrontMatterError:
        return None
    # What two parts do not show and their whole does must not get by.
    return Redacted(whole, tuple(sorted({*found, *rest.found}))) if not redact(whole).found else None
