"""Points one setting of a JSON file elsewhere, and gives back what it was.

Owns the edit: a value that is there is replaced in its place, else a member is added; no other character changes.
Refuses, with a ValueError, a text that is no JSON object. Pure.
"""

from __future__ import annotations

import json

from livememfs.agents.install.jsonedit import members_added, without
from livememfs.agents.install.jsontext import JsonNode, is_strict, scan
from livememfs.agents.install.record import FileRecord
from livememfs.agents.install.segments import Segment, digest, inserted, taken_out


def pointed(path: str, text: str | None, name: str, value: str) -> tuple[str, FileRecord, str]:
    """The text with `name` set to `value`, what was inserted, and the JSON of the former value ("": there was none).

    `text` None: there is no such file.
    """
    is_blank = not (text or "").strip()
    base = "{}\n" if text is None or is_blank else text
    item = _object(base).member(name)
    if not is_strict(base):
        raise ValueError("Claude Code ignores a file with comments or trailing commas; remove them first")
    if item is not None:
        start, end = item.value.start, item.value.end
        after, former, segments = base[:start] + json.dumps(value) + base[end:], base[start:end], tuple[Segment, ...]()
    else:
        after, segments = inserted(base, [members_added(base, _object(base), {name: value})])
        former = ""
    blank = text or "" if is_blank else None
    before = digest(text) if text is not None else ""
    filed = FileRecord(
        path=path, blank=blank, created=text is None, before=before, after=digest(after), segments=segments
    )
    return after, filed, former


def given_back(text: str | None, name: str, value: str, filed: FileRecord, former: str) -> tuple[str | None, str]:
    """The text with the setting as it was (None: no file), and in words what stays because somebody changed it."""
    if text is None or not text.strip():
        return text, ""
    root = _object(text)
    item = root.member(name)
    if item is None or item.value.value != value:
        return text, f"{name}, which was changed since," if item is not None else ""
    if former:
        return text[: item.value.start] + former + text[item.value.end :], ""
    rest = taken_out(text, filed.segments) if digest(text) == filed.after else without(text, [root], item)
    if filed.blank is not None and not _object(rest).items:
        return None if filed.created else filed.blank, ""
    return rest, ""


def _object(text: str) -> JsonNode:
    root = scan(text)
    if root.kind != "object":
        raise ValueError("it is JSON, but not an object")
    return root
