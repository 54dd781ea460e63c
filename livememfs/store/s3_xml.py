"""The XML of S3's replies, read in one pass without building a tree.

Owns the shape they share: a root, its plain values, and its rows of plain values (`Contents`, `CommonPrefixes`).
Refuses to know what they mean, and document types, which S3 never sends. Pure; any thread may call it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from xml.parsers.expat import ExpatError, ParserCreate


class Malformed(Exception):
    """A reply that S3 would not send, or only a part of one: something else answered, or something cut it short."""


@dataclass(slots=True)
class Document:
    """`values` are the texts of the root's children without children of their own, `rows` those of its other children.

    Whatever lies deeper is left out, and so are namespaces.
    """

    root: str = ""
    values: dict[str, str] = field(default_factory=dict)
    rows: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def parse(body: bytes) -> Document:
    """The whole document. Raises Malformed for anything that is not well-formed to its end."""
    found = Document()
    depth, texts, row = 0, list[str](), dict[str, str]()

    def start(name: str, _: object) -> None:
        nonlocal depth
        depth += 1
        texts.clear()
        if depth == 1:
            found.root = _local(name)

    def end(name: str) -> None:
        nonlocal depth, row
        if depth == 3:
            row[_local(name)] = "".join(texts)
        elif depth == 2 and row:
            found.rows.append((_local(name), row))
            row = {}
        elif depth == 2:
            found.values[_local(name)] = "".join(texts)
        else:
            texts.clear()
        depth -= 1

    _read(body, start, end, texts.append)
    return found


def _read(
    body: bytes, start: Callable[[str, object], None], end: Callable[[str], None], text: Callable[[str], None]
) -> None:
    parser = ParserCreate()
    parser.buffer_text = True  # one call for a text, however many entities it has
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse
    try:
        # A server that needs long for a COPY sends blanks meanwhile, ahead of the declaration.
        parser.Parse(body.lstrip(), True)
    except (ExpatError, LookupError, ValueError) as error:  # the last two: an encoding that Python does not know
        raise Malformed(f"the reply is not the XML of S3: {error}") from error


@lru_cache(maxsize=256)
def _local(name: str) -> str:
    return name.rpartition(":")[2] if ":" in name else name


def _refuse(*_: object) -> None:
    raise Malformed("the reply is not the XML of S3: it has a document type")
