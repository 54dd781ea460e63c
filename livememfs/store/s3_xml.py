"""The XML of S3's replies.

Owns the shape they share: a root, its plain values, and its rows of plain values (`Contents`, `CommonPrefixes`).
Refuses to know what they mean, and document types, which S3 never sends. Pure; any thread may call it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from xml.etree import ElementTree

_DOCTYPE: Final = b"<!DOCTYPE"


class Malformed(Exception):
    """A reply that S3 would not send, or only a part of one: something else answered, or something cut it short."""


@dataclass(slots=True)
class XmlDocument:
    """`values` are the texts of the root's children without children of their own, `rows` those of its other children.

    Whatever lies deeper is left out, and so are namespaces.
    """

    root: str = ""
    values: dict[str, str] = field(default_factory=dict)
    rows: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def parse(body: bytes) -> XmlDocument:
    """The whole document. Raises Malformed for anything that is not well-formed to its end."""
    if _DOCTYPE in body or b"\0" in body:  # the second: UTF-16, in which a document type would not be seen
        raise Malformed("the reply is not the XML of S3: it has a document type, or zeros")
    try:
        # A server that needs long for a COPY sends blanks meanwhile, ahead of the declaration.
        root = ElementTree.fromstring(body.lstrip())
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: encodings Python does not know
        raise Malformed(f"the reply is not the XML of S3: {error}") from error
    found = XmlDocument(_local(root.tag))
    for child in root:
        if len(child):
            row = {_local(cell.tag): "" if len(cell) else cell.text or "" for cell in child}
            found.rows.append((_local(child.tag), row))
        else:
            found.values[_local(child.tag)] = child.text or ""
    return found


@lru_cache(maxsize=256)
def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
