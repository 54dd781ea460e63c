"""A folder of Markdown and text files: each file becomes a memory (several, where it is long).

Owns which files are read, and what their front matter means. Links between the files stay links. Any thread.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from livememfs.errors import NotText
from livememfs.importing.item import Read, SourceFault, SourceItem, first, modified, moment, parts, words
from livememfs.text.fields import decode, split

ENDINGS = (".md", ".markdown", ".mdx", ".txt", ".mdc")
MOST = 4 << 20
"""Bytes of a file: a larger one is no text that somebody wrote."""
_WIKI = re.compile(r"\[\[([^\]|#\n]+)(?:[#|][^\]\n]*)?\]\]")
_LINK = re.compile(r"\]\(<?([^)\s>#]+)[^)]*\)")


def read(path: Path) -> Iterator[Read]:
    """The files below a folder, or one file, in the order of their names."""
    for file in files(path):
        found = text_of(file)
        if isinstance(found, SourceFault):
            yield found
            continue
        fields, body = found
        if body.strip():
            yield from parts(item_of(name_of(file, path), file, fields, body))


def files(path: Path) -> Iterator[Path]:
    """The text files at a path. Hidden ones, links, and what package managers install are left out."""
    if path.is_file():
        yield path
        return
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            file = Path(folder, name)
            if not name.startswith(".") and name.lower().endswith(ENDINGS) and file.is_file() and not file.is_symlink():
                yield file


def text_of(file: Path) -> tuple[dict[str, Any], str] | SourceFault:
    """Front matter and body of a file, or why it cannot be read."""
    try:
        if file.stat().st_size > MOST:
            return SourceFault(str(file), f"it has more than {MOST >> 20} MiB")
        return split(decode(file.read_bytes(), str(file)))
    except NotText as error:
        return SourceFault(str(file), str(error.values.get("detail", error)))
    except OSError as error:
        return SourceFault(str(file), error.strerror or str(error))


def name_of(file: Path, path: Path) -> str:
    """The name by which other files of the folder link to a file."""
    return file.relative_to(path).as_posix() if file != path else file.name


def item_of(name: str, file: Path, fields: Mapping[str, Any], body: str) -> SourceItem:
    """The memory that a file becomes, with the usual fields of front matter. Its title leads the text."""
    known = {key.lower(): value for key, value in fields.items()}
    title = first(known, "title", "name")
    text = body.strip("\n")
    if isinstance(title, str) and title.strip() and title.strip().lower() not in text[:400].lower():
        text = f"# {title.strip()}\n\n{text}"
    return SourceItem(
        id=name,
        text=text,
        place=str(file),
        seen=modified(file),
        kind=str(first(known, "type", "kind") or "fact").lower(),
        made=moment(first(known, "created_at", "created", "date")),
        changed=moment(first(known, "updated_at", "updated", "modified", "last_modified")),
        author=str(first(known, "author", "agent") or ""),
        subjects=words(first(known, "tags", "subjects", "keywords")),
        links=tuple(("related_to", to) for to in links_in(name, body)),
    )


def wiki_names(text: str) -> list[str]:
    """What stands in `[[...]]`, as it stands there."""
    return [name.strip() for name in _WIKI.findall(text)]


def links_in(name: str, body: str) -> list[str]:
    """The names of the files that a text links to."""
    here = posixpath.dirname(name)
    found = [posixpath.normpath(posixpath.join(here, unquote(to))) for to in _LINK.findall(body) if "://" not in to]
    for to in wiki_names(body):
        found += [posixpath.join(here, f"{to}.md"), f"{to}.md"]
    return [to for to in dict.fromkeys(found) if to != name]
