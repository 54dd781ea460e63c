"""An edit of a Markdown text, as a model's reply states it.

Owns the form of an edit, and the message for an edit of another form. Refuses whatever it does not know: an edit that
is half understood would change the wrong thing. Knows nothing of the text to edit. Pure; any thread may call it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

from livememfs.text.headings import is_blank

Op = Literal["append", "prepend", "replace", "add", "rename", "delete"]
OPS: tuple[Op, ...] = ("append", "prepend", "replace", "add", "rename", "delete")

_MARKS = re.compile("^ {0,3}#{1,6}[ \t]+(?=\\S)")
"""The marks of a heading, which models often write before its title."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class EditRefused(ValueError):
    """An edit that cannot be made. Its text tells the model why."""


@dataclass(frozen=True)
class Edit:
    """One edit of a file.

    :heading: titles from the top down; of an `add` the last one is the new heading; `[]`: the text above all headings
    :content: the new text; of a `rename` the new title; may be empty for `add`; a `delete` has none
    :deep:    `replace` and `delete` also change the headings below
    """

    op: Op
    heading: tuple[str, ...]
    content: str = ""
    deep: bool = False

    @classmethod
    def parse(cls, value: object) -> Edit:
        """The edit in a JSON value of a reply. Raises EditRefused."""
        if not isinstance(value, Mapping):
            raise EditRefused("it is not an object")
        unknown = sorted(str(key) for key in value if key not in ("op", "heading", "content", "deep"))
        if unknown:
            raise EditRefused(f"the key {unknown[0]!r:.60} is unknown")
        op, heading, deep = value.get("op"), value.get("heading"), value.get("deep", False)
        if isinstance(heading, str):
            heading = [heading]
        if op not in OPS:
            raise EditRefused(f"the op {op!r:.60} is none of {', '.join(OPS)}")
        if not isinstance(heading, list) or not all(map(_is_text, heading)):
            raise EditRefused('"heading" is not a list of titles')
        if not isinstance(deep, bool):
            raise EditRefused('"deep" is neither true nor false')
        if deep and op not in ("replace", "delete"):
            raise EditRefused(f'"deep" has no meaning for the op {op}')
        titles = tuple(_MARKS.sub("", title) for title in heading)
        return cls(op, titles, _read_content(op, value.get("content")), deep)


def _read_content(op: Op, content: object) -> str:
    if content is None and op in ("add", "delete"):
        return ""
    if not _is_text(content):
        raise EditRefused('"content" is not a text')
    if op == "delete" and content:
        raise EditRefused('a delete takes no "content"')
    if is_blank(content) and (content or op not in ("add", "delete")):
        raise EditRefused('"content" is an empty text')
    return content


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and not _SURROGATE.search(value)
