"""Redaction: `<private>` blocks and credentials in a text are replaced by visible marks.

Owns the blocks, the marks, and how texts, JSON values and files with front matter are redacted. Fails closed: a block
that is never closed ends with the text, and a block that was never opened begins with the text. Redacting twice changes
nothing more, and all other text stays as it is. Pure; any thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from livememfs.errors import PrivateText
from livememfs.text import frontmatter
from livememfs.text.frontmatter import FrontMatterError
from livememfs.text.privacy import credentials, named
from livememfs.text.privacy.disguises import UNSEEN

PRIVATE = "private"
"""The kind of a block; all other kinds are those of `credentials.KINDS`."""
NAMED = "named-secret"
TOO_DEEP = "too-deep"
LARGE = 1 << 18
"""A larger text, in bytes or characters, is redacted in a thread, so that it does not hold up the event loop."""
MARK = re.compile(r"\[private\]|\[redacted: [a-z0-9-]{1,40}\]")
"""The marks that replace private text."""
_MOST_PASSES = 8
_FAR = 4_000
"""So far on each side of a mark the text is searched again: no credential is longer."""
_DEEPEST = 200

_HIDDEN = f"[{UNSEEN}]*+"
_NAME = _HIDDEN.join(
    f"[{letter}{letter.upper()}{chr(ord(letter) + 0xFEE0)}{chr(ord(letter) + 0xFEC0)}]" for letter in PRIVATE
)
_GAP = rf"(?:\s|\\[nrt]|{_HIDDEN[:-2]})*+"
_OPENS = (
    r"[<\uff1c\ufe64&\\%](?:(?<=[<\uff1c\ufe64])|(?<=&)(?:amp;){0,4}(?:lt|LT|\#0{0,6}60|\#[xX]0{0,6}3[cC]);?"
    r"|(?<=\\)\\{0,7}(?:u003|x3)[cC]|(?<=%)3[cC])"
)
"""It begins with a set of single characters, which the engine finds much faster than alternatives."""
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
    kinds: set[str] = set()
    blocks = _blocks(text) if _may_have_tags(text) else []
    if blocks:
        text = _replaced(text, blocks)
        kinds.add(PRIVATE)
    for _ in range(_MOST_PASSES):  # the text beside a replaced credential may now be recognised as another one
        spans = credentials.spans(_without_marks(text))
        if not spans:
            break
        text = _replaced(text, [(start, end, f"[redacted: {kind}]") for start, end, kind in spans])
        kinds.update(kind for _, _, kind in spans)
        if len(text) > _FAR and not credentials.spans(_beside_marks(text)):
            break  # nothing new can be found far from what was replaced
    return Redacted(text, tuple(sorted(kinds)))


def redact_value(value: Any) -> tuple[Any, tuple[str, ...]]:
    """A JSON value with every text in it redacted, names of fields too; and the kinds that were replaced.

    A text in a field called `password`, `api_key` or the like is always a credential. Names of fields that become equal
    get a number. A value that is nested over 200 deep is replaced as a whole.
    """
    kinds: set[str] = set()
    return _value(value, kinds, secret=False, depth=0), tuple(sorted(kinds))


def redact_file(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The file of a note or memory, redacted, and the kinds that were replaced.

    Front matter stays front matter where that is possible. Bytes that are not UTF-8 stay as they are.
    """
    text = data.decode("utf-8", "surrogateescape")
    redacted = redact(text)
    if not redacted.found:
        return data, ()
    if PRIVATE not in redacted.found:  # a block may begin in the front matter and end in the body
        redacted = _by_parts(text) or redacted
    return redacted.text.encode("utf-8", "surrogateescape"), redacted.found


def told(path: str, kinds: tuple[str, ...]) -> PrivateText:
    """The message to the writer of a text in which these kinds were replaced."""
    return PrivateText(path=path, detail=", ".join(kinds))


def without_marks(text: str) -> str:
    """A text with a blank for each mark, so that no search finds the words of a mark."""
    return MARK.sub(" ", text)


# --- blocks --------------------------------------------------------------------------------------------------------


def _may_have_tags(text: str) -> bool:
    return PRIVATE in text.lower() if text.isascii() else _WORD.search(text) is not None


def _blocks(text: str) -> list[tuple[int, int, str]]:
    """The blocks of a text; of nested blocks the outermost."""
    blocks: list[tuple[int, int, str]] = []
    begun = depth = 0
    for tag in _TAG.finditer(text):
        if tag["slash"] is None:
            begun = tag.start() if depth == 0 else begun
            depth += 1
        elif depth == 0:  # closed but never opened: nobody can say where it began
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
    """The text with line feeds for its marks: no credential goes across a mark, and all other text keeps its place."""
    return MARK.sub(lambda mark: "\n" * len(mark[0]), text) if "[private]" in text or "[redacted: " in text else text


def _beside_marks(text: str) -> str:
    """The parts of a text near its marks, without the marks."""
    parts, to = [], 0
    for mark in MARK.finditer(text):
        start, end = max(to, mark.start() - _FAR), mark.end() + _FAR
        parts += ["\n" * (start > to), text[start:end]]
        to = min(end, len(text))
    return _without_marks("".join(parts))


# --- values --------------------------------------------------------------------------------------------------------


def _value(value: Any, kinds: set[str], *, secret: bool, depth: int) -> Any:
    if isinstance(value, str):
        return _secret(value, kinds) if secret else _text(value, kinds)
    if depth >= _DEEPEST and isinstance(value, dict | list | tuple):
        kinds.add(TOO_DEEP)
        return f"[redacted: {TOO_DEEP}]"
    if isinstance(value, dict):
        return _fields(value, kinds, depth)
    if isinstance(value, list | tuple):
        return [_value(inner, kinds, secret=secret, depth=depth + 1) for inner in value]
    return value


def _fields(value: dict[Any, Any], kinds: set[str], depth: int) -> dict[Any, Any]:
    fields: dict[Any, Any] = {}
    taken = set(value)
    for name, inner in value.items():
        kept = shown = _text(name, kinds) if isinstance(name, str) else name
        number = 1
        while kept != name and (kept in fields or kept in taken):
            number += 1
            kept = f"{shown} {number}"
        # The redacted name decides, so that redacting twice has the same result.
        secret = isinstance(name, str) and named.is_secret_name(without_marks(shown))
        fields[kept] = _value(inner, kinds, secret=secret, depth=depth + 1)
    return fields


def _text(text: str, kinds: set[str]) -> str:
    redacted = redact(text)
    kinds.update(redacted.found)
    return redacted.text


def _secret(text: str, kinds: set[str]) -> str:
    """The mark for the value of a secret field. Where the value is one known credential, the mark has its kind."""
    if not text or MARK.fullmatch(text):
        return text
    redacted = redact(text)
    if len(redacted.found) == 1 and MARK.fullmatch(redacted.text):
        kinds.update(redacted.found)
        return redacted.text
    kinds.add(NAMED)
    return f"[redacted: {NAMED}]"


def _by_parts(text: str) -> Redacted | None:
    """Front matter redacted by its fields, since YAML reads a bare mark as a list; and the body. None without any."""
    try:
        metadata, body = frontmatter.split(text)
        if not metadata:
            return None
        fields, kinds = redact_value(metadata)
        rest = redact(body)
        whole = frontmatter.join(fields, rest.text) if kinds else text.removesuffix(body) + rest.text
    except FrontMatterError:
        return None
    # The parts joined may show a credential that neither part shows by itself.
    return Redacted(whole, tuple(sorted({*kinds, *rest.found}))) if not redact(whole).found else None
