"""basic-memory (read in 0.24): Markdown with a permalink, observations (`- [category] text #tag`) and relations
(`- uses [[Title]]`).

Owns how its relations and links become links. The text keeps each line as it is, so that no category and no relation is
lost. Any thread.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceItem, parts, words
from livememfs.importing.sources import markdown
from livememfs.records.memory import RELATIONS

_RELATION = re.compile(r"""^\s*[-*+]\s+(?:"([^"\n]+)"|'([^'\n]+)'|([\w][\w -]*?))\s+\[\[([^\]\n]+)\]\]""", re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[\[([^\]\n]+)\]\]")
_OBSERVATION = re.compile(r"^\s*[-*+]\s+(?!\[.\]\s)(?:\[[^\]\n]+\]\s+)?(.+)$", re.MULTILINE)
_TAG = re.compile(r"(?<![\w&/])#([\w][\w/-]*)")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_RELATED = {"supersedes": "updates", "replaces": "updates", "implements": "result_of"}


@dataclass(frozen=True)
class _Note:
    """A file: its name below the folder, and what is in it."""

    name: str
    file: Path
    fields: Mapping[str, Any]
    body: str

    @property
    def id(self) -> str:
        """The permalink; without one, the name."""
        permalink = self.fields.get("permalink")
        return permalink if isinstance(permalink, str) and permalink else self.name

    @property
    def called(self) -> tuple[str, ...]:
        """What relations may call it, the strongest first: permalink (also without the project), title, path."""
        title = self.fields.get("title")
        title = title if isinstance(title, str) else ""
        return self.id, self.id.partition("/")[2], title, self.name, self.name.rpartition(".")[0], self.file.stem


class _Targets:
    """Which note a relation means. Of several with one title, it is the one that is nearest in the folders."""

    def __init__(self, notes: list[_Note]) -> None:
        self._by: dict[int, dict[str, list[_Note]]] = defaultdict(lambda: defaultdict(list))
        for note in notes:
            for strength, called in enumerate(note.called):
                self._by[strength][called.strip().lower()].append(note)

    def id_of(self, called: str, note: _Note) -> str:
        """The id of the note that another one calls so; empty for none, and for itself."""
        wanted = called.removeprefix("memory://").partition("|")[0].strip().lower()
        for by in self._by.values():
            if wanted and wanted in by:
                near = max(by[wanted], key=lambda each: _shared(each.file, note.file))
                return near.id if near.id != note.id else ""
        return ""


def _shared(one: Path, other: Path) -> int:
    """How many folders two files have in common."""
    return len(set(one.parents) & set(other.parents))


def read(path: Path) -> Iterator[Read]:
    """The notes of the folder. A relation finds its target by permalink, title or file name."""
    notes: list[_Note] = []
    for file in markdown.files(path):
        found = markdown.text_of(file)
        if isinstance(found, SourceFault):
            yield found
        elif found[1].strip():
            notes.append(_Note(markdown.name_of(file, path), file, *found))
    targets = _Targets(notes)
    for note in notes:
        yield from parts(_item(note, targets))


def _item(note: _Note, targets: _Targets) -> SourceItem:
    item = markdown.item_of(note.name, note.file, note.fields, note.body)
    said = _CODE.sub("", note.body)
    tags = [tag for text in _OBSERVATION.findall(said) for tag in _TAG.findall(text)]
    return replace(
        item,
        id=note.id,
        links=_links(note, said, targets),
        subjects=tuple(dict.fromkeys((*item.subjects, *words(tags)))),
    )


def _links(note: _Note, said: str, targets: _Targets) -> tuple[tuple[str, str], ...]:
    """Its relations; what the text links to without saying how is related."""
    found = [(_relation("".join(word)), targets.id_of(to, note)) for *word, to in _RELATION.findall(said)]
    related = [targets.id_of(to, note) for to in (*_LINK.findall(said), *markdown.links_in(note.name, said))]
    known = {to for _, to in found}
    found += [("related_to", to) for to in related if to not in known]
    return tuple(dict.fromkeys((relation, to) for relation, to in found if to))


def _relation(word: str) -> str:
    named = word.strip().lower().replace(" ", "_").replace("-", "_")
    return named if named in RELATIONS else _RELATED.get(named, "related_to")
