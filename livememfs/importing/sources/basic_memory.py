"""basic-memory: Markdown with a permalink, observations (`- [category] text #tag`) and relations (`- uses [[Title]]`).

Owns how its relations become links. The text keeps each line as it is, so that no category and no relation is lost.
Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceItem, parts, words
from livememfs.importing.sources import markdown
from livememfs.records.memory import RELATIONS

_RELATION = re.compile(r"^\s*[-*]\s+([\w][\w -]*?)\s+\[\[([^\]\n]+)\]\]", re.MULTILINE)
_OBSERVATION = re.compile(r"^\s*[-*]\s+\[([^\]\n]{2,40})\]\s+(.+)$", re.MULTILINE)
_TAG = re.compile(r"(?<![\w&/])#([\w][\w/-]*)")
_RELATED = {"supersedes": "updates", "replaces": "updates", "leads_to": "caused_by", "implements": "result_of"}


def read(path: Path) -> Iterator[Read]:
    """The notes of the folder. A relation finds its target by permalink, title or file name."""
    notes: list[tuple[str, Path, dict[str, Any], str]] = []
    for file in markdown.files(path):
        found = markdown.text_of(file)
        if isinstance(found, SourceFault):
            yield found
        elif found[1].strip():
            notes.append((markdown.name_of(file, path), file, *found))
    ids = _ids(notes)
    for name, file, fields, body in notes:
        yield from parts(_item(name, file, fields, body, ids))


def _ids(notes: list[tuple[str, Path, dict[str, Any], str]]) -> dict[str, str]:
    """The id of each note by what relations may call it."""
    ids: dict[str, str] = {}
    for name, file, fields, _ in notes:
        for called in (file.stem, name.rpartition(".")[0], fields.get("title"), fields.get("permalink")):
            if isinstance(called, str):
                ids[called.strip().lower()] = _id(name, fields)
    return ids


def _id(name: str, fields: Mapping[str, Any]) -> str:
    permalink = fields.get("permalink")
    return permalink if isinstance(permalink, str) and permalink else name


def _item(name: str, file: Path, fields: Mapping[str, Any], body: str, ids: Mapping[str, str]) -> SourceItem:
    item = markdown.item_of(name, file, fields, body)
    relations = [(_relation(word), ids.get(to.strip().lower(), "")) for word, to in _RELATION.findall(body)]
    tags = [tag for _, text in _OBSERVATION.findall(body) for tag in _TAG.findall(text)]
    return replace(
        item,
        id=_id(name, fields),
        links=tuple(dict.fromkeys((relation, to) for relation, to in relations if to)),
        subjects=tuple(dict.fromkeys((*item.subjects, *words(tags)))),
    )


def _relation(word: str) -> str:
    named = word.strip().lower().replace(" ", "_").replace("-", "_")
    return named if named in RELATIONS else _RELATED.get(named, "related_to")
