"""Adds items to a JSON text and removes items, without changing any other character.

Owns the place and layout of a new item, and the choice of the comma that goes with a removed one. Never rewrites parsed
values. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from livememfs.agents.install.jsontext import Item, JsonNode, scan
from livememfs.agents.install.segments import Segment, newline_of

_INDENT = re.compile(r"[ \t]*")
_FIRST_INDENT = re.compile(r"[\r\n]([ \t]+)[^\s/]")
_DEFAULT_INDENT = "  "


def members_added(text: str, node: JsonNode, members: Mapping[str, Any]) -> Segment:
    """The insertion that adds members at the end of an object."""
    return _added(text, node, [(json.dumps(key, ensure_ascii=False) + ": ", value) for key, value in members.items()])


def element_added(text: str, node: JsonNode, value: Any) -> Segment:
    """The insertion that adds an element at the end of an array."""
    return _added(text, node, [("", value)])


def without(text: str, path: Sequence[JsonNode], item: Item) -> str:
    """The text without one item of the last node of `path`, and without every parent that is empty then.

    `path` leads from the root to the array or object with the item. The root itself stays.
    """
    *above, holder = path
    if above and len(holder.items) == 1:
        parent = above[-1]
        return without(text, above, next(outer for outer in parent.items if outer.value is holder))
    return _cut(text, holder, item)


def no_new_trailing_comma(before: str, after: str) -> bool:
    """Whether both are JSON, and the second has no more trailing commas than the first."""
    try:
        return scan(after).trailing_commas <= scan(before).trailing_commas
    except ValueError:
        return False


def _added(text: str, node: JsonNode, items: Sequence[tuple[str, Any]]) -> Segment:
    """One insertion behind the last item and the comments after it."""
    newline, around = newline_of(text), _line_indent(text, node.start)
    indent = _item_indent(text, node) or around + _unit(text)
    last = node.items[-1] if node.items else None
    written = [prefix + json.dumps(value, ensure_ascii=False, indent=_unit(text)) for prefix, value in items]
    laid_out = [item.replace("\n", newline + indent) for item in written]
    body = newline + indent + f",{newline}{indent}".join(laid_out)
    at = node.start + 1 if last is None else last.value.end if last.comma is None else last.comma + 1
    behind = max(at, node.remarks or 0)
    closing = "" if "\n" in text[behind : node.end - 1] else newline + around
    if last is None:
        return Segment(behind, ((True, body + closing),))
    if last.comma is not None:
        return Segment(behind, ((True, f"{body},{closing}"),))
    if behind == at:
        return Segment(at, ((True, f",{body}{closing}"),))
    return Segment(at, ((True, ","), (False, text[at:behind]), (True, body + closing)))


def _line_indent(text: str, at: int) -> str:
    indent = _INDENT.match(text, text.rfind("\n", 0, at) + 1)
    return indent[0] if indent else ""


def _item_indent(text: str, node: JsonNode) -> str:
    """The indentation of the last item that begins a line; empty without one."""
    for item in reversed(node.items):
        indent = _line_indent(text, item.start)
        if indent and text[: item.start].endswith("\n" + indent):
            return indent
    return ""


def _unit(text: str) -> str:
    """The indentation of one level, taken from the first indented line."""
    indent = _FIRST_INDENT.search(text)
    return indent[1] if indent else _DEFAULT_INDENT


def _cut(text: str, holder: JsonNode, item: Item) -> str:
    """Without the item, the white space before it, and one comma: the one behind it, else the one before it."""
    index = holder.items.index(item)
    comma = item.comma if item.comma is not None or index == 0 else holder.items[index - 1].comma
    end = item.value.end
    begin = len(text[: item.start].rstrip(" \t\r\n"))
    follows = end + 1 if comma == end else end
    if text[follows] not in "\r\n":
        begin = item.start  # the rest of this line must not move into a comment at the end of the line above
    spans = [(begin, end)] if comma is None else [(begin, end), (comma, comma + 1)]
    for first, last in sorted(spans, reverse=True):
        text = text[:first] + text[last:]
    return text
