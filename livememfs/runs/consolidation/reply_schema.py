"""The form of a consolidation's reply as JSON Schema, for endpoints that hold a model to one.

Owns the schema. Refuses to be the check: whatever comes back is judged by `plan`, which knows more than a schema can
say. Pure; may be read from any thread.
"""

from __future__ import annotations

from typing import Any

from livememfs.text.edits import OPS

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_EDIT = _object(
    ["op", "heading"],
    op={"type": "string", "enum": list(OPS)},
    heading=_TEXTS,
    content=_TEXT,
    deep={"type": "boolean"},
)
_FILE = _object(
    ["filename", "action"],
    filename=_TEXT,
    action={"type": "string", "enum": ["created", "updated"]},
    edits={"type": "array", "items": _EDIT},
    content=_TEXT,
)
_NOTE = _object(["note"], note={"type": "integer", "minimum": 1}, files=_TEXTS, skipped=_TEXT)

REPLY_SCHEMA: dict[str, Any] = _object(
    ["bank_files", "coverage", "synthesis"],
    bank_files={"type": "array", "items": _FILE},
    coverage={"type": "array", "items": _NOTE},
    intended_removals=_TEXTS,
    dropped={
        "type": "array",
        "items": _object(["filename", "text", "reason"], filename=_TEXT, text=_TEXT, reason=_TEXT),
    },
    synthesis=_TEXT,
)
"""The object that the prompt asks for."""
