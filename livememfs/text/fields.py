"""Fields of front matter as people and programs write them.

Owns lenient reading: an odd value is read as None, and the caller replaces it. Refuses only bytes that are no text.
Pure; may be called from any thread.
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
    """Front matter and body. Front matter that cannot be read is part of the body."""
    try:
        return frontmatter.split(text)
    except FrontMatterError:
        return {}, text


def read_text(value: object) -> str | None:
    """A value as text; None for an empty text, and for a list, a mapping or null."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value).strip() or None
    return None


def read_list(value: object) -> tuple[str, ...] | None:
    """A list of texts, given as a list or as one line with commas; None for anything else."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return None
    return tuple(text for text in map(read_text, value) if text is not None)
