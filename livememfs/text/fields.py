"""Fields of front matter as people and programs write them: text, lists, and what is neither.

Owns reading them with good will. Refuses bytes that are no text; whatever else is odd has no value, for the caller to
replace. Pure; may be called from any thread.
"""

from __future__ import annotations

from typing import Any

from livememfs.errors import NotText
from livememfs.text import frontmatter
from livememfs.text.frontmatter import FrontMatterError

_BOM = "\ufeff"


def decode(data: bytes, path: str) -> str:
    """The text of an object, without a byte order mark. `path` is for the message. Raises NotText."""
    try:
        return data.decode("utf-8").lstrip(_BOM)
    except UnicodeDecodeError as error:
        detail = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise NotText(path=path, detail=detail) from error


def split(text: str) -> tuple[dict[str, Any], str]:
    """Front matter and body; odd front matter is body."""
    try:
        return frontmatter.split(text)
    except FrontMatterError:
        return {}, text


def read_text(value: object) -> str | None:
    """A value as text, or None when it is empty or no text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value).strip() or None
    return None


def read_list(value: object) -> tuple[str, ...] | None:
    """Texts as a list, or as one line with commas, as people write them; None for anything else."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return None
    return tuple(text for text in map(read_text, value) if text is not None)
