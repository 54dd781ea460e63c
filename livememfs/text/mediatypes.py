"""What kind of content an object has, by its name: for browsers of buckets, and for whoever is given a link.

Owns the types of what livememfs writes; those of ordinary files are Python's own, so the same on every machine. Pure;
any thread.
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
    """The media type of an object of that name."""
    return _TYPES.get(splitext(key)[1].lower(), UNKNOWN)
