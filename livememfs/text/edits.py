"""An edit of a Markdown text as it stands in a reply.

Owns the shape of an edit and what is wrong with one that has another shape. Refuses whatever it does not know: an edit
that is half understood would change the wrong thing. Knows nothing of the text it is for. Pure; any thread may call it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from livememfs.text.headings import is_blank

Op = Literal["append", "prepend", "replace", "add", "rename", "delete"]
OPS: tuple[Op, ...] = ("append", "prepend", "replace", "add", "rename", "delete")

_MARKS = re.compile("^ {0,3}#{1,6}[ \t]+(?=\\S)")
"""The marks of a heading, which models put before its title."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class EditRefused(ValueError):
    """An edit that cannot be made; its text says why, for the model to read."""


@dataclass(frozen=True)
class Edit:
    """One edit of a file.

    :heading: titles from the top down; for `add` the last one is the new heading's, and `[]` names the text above all
    :content: the new text; the new title for `rename`; not used by `delete`; may be empty for `add`
    :deep:    `replace` and `delete` take the headings below with them
    """

    op: Op
    heading: tuple[str, ...]
    content: str = ""
    deep: bool = False

    @classmethod
    def parse(cls, value: object) -> Edit:
        """An edit of a reply. Raises EditRefused."""
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
            raise EditRefused(f'"deep" says nothing to a {op}')
        titles = tuple(_MARKS.sub("", title) for title in heading)
        return cls(op, titles, _read_content(op, value.get("content")), deep)


def _read_content(op: Op, content: object) -> str:
    if content is None and op in ("add", "delete"):
        return ""
    if not _is_text(content):
        raise EditRefused('"content" is not a text')
    if op == "delete" and content:
        raise EditRefused('a delete takes no "content"')
    if is_blank(content) and not (op in ("add", "delete") and not content):
        raise EditRefused('"content" is not a text with something in it')
    return content


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and not _SURROGATE.search(value)


def to_json(edit: Edit) -> dict[str, Any]:
    """An edit as it stands in a reply."""
    found: dict[str, Any] = {"op": edit.op, "heading": list(edit.heading), "content": edit.content}
    return {**found, "deep": True} if edit.deep else found
