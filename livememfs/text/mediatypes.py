"""The media type of an object, by its name: for programs that show a bucket, and for people who open a link to it.

Owns the types of the files that livememfs writes. All others are Python's own, so they are the same on every machine.
Pure; any thread.
"""

from __future__ import annotations

from mimetypes import MimeTypes
from posixpath import splitext

UNKNOWN = "application/octet-stream"
_TYPES = MimeTypes(filenames=()).types_map[True] | {
    ".md": "text/markdown; charset=utf-8",
    ".json": "application/json",
    ".ndjson": "application/x-ndjson",
}


def content_type(key: str) -> str:
    """The media type of an object with this key."""
    return _TYPES.get(splitext(key)[1].lower(), UNKNOWN)
