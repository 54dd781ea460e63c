"""A memory bank, the folder of Markdown files that agents such as Cline keep in a project.

Owns what kind of memory each of its usual files is. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from livememfs.importing.item import Read, SourceItem
from livememfs.importing.sources import markdown

KINDS = {
    "decisionlog": "decision", "projectbrief": "goal", "progress": "event", "activecontext": "event", "tasks": "todo",
}  # fmt: skip
"""By the file's name without its ending, in lower case; all others are facts."""


def read(path: Path) -> Iterator[Read]:
    """The files of the folder, each with the name of its file as a subject."""
    for found in markdown.read(path):
        if not isinstance(found, SourceItem):
            yield found
            continue
        stem = Path(found.id.partition("#")[0]).stem
        kind = found.kind if found.kind != "fact" else KINDS.get(stem.lower().replace("-", "").replace("_", ""), "fact")
        yield replace(found, kind=kind, subjects=(*found.subjects, stem))
