"""A space, or what was found in it, as files that others read: Markdown, JSON lines, or a folder of basic-memory.

Owns the forms. `markdown` and `jsonl` keep every object under its name, so that an import of them gives the same
objects; `basic-memory` has memories and bank alone, in that program's form. Refuses to write over anything. Trio thread
only; files are written in a worker thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import trio

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import LiveMemError, UsageError
from livememfs.importing.importer import IMPORT_ID
from livememfs.importing.item import KINDS
from livememfs.importing.sessions import IMPORT_FROM
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.spaces.archive import unpackable
from livememfs.spaces.describe import require_space
from livememfs.spaces.export import Progress
from livememfs.spaces.objects import content
from livememfs.store.base import ObjectInfo
from livememfs.text import frontmatter
from livememfs.text.times import iso

Form = Literal["markdown", "jsonl", "basic-memory"]
FORMS: tuple[Form, ...] = ("markdown", "jsonl", "basic-memory")
_NOT_IN_NAME = re.compile(r"[^\w -]+")


@dataclass(frozen=True)
class Written:
    """How many objects were written, and the names of those that this form, or a file, cannot hold."""

    objects: int
    left_out: tuple[str, ...]


async def export(
    replica: Replica,
    space: str,
    target: Path,
    form: Form,
    *,
    only: Collection[str] | None = None,
    progress: Progress = lambda *_: None,
) -> Written:
    """Write the objects of a space (of these keys only) to a folder, or for `jsonl` to a file, that is not there yet.

    `progress` is told how many are read, of how many.

    Raises NotFound without the space, UsageError for the target, LiveMemError when it cannot be written.
    """
    await require_space(replica, space)
    if await trio.to_thread.run_sync(target.exists):
        raise UsageError(f"{target} is there already; name a {'file' if form == 'jsonl' else 'folder'} that is not")
    infos = [info for info in await replica.names.walk(f"{space}/") if keys.parse(info.key).kind in (*KINDS, "meta")]
    objects: dict[str, bytes] = {}

    async def load(info: ObjectInfo) -> None:
        data = await content(replica, info)
        if data is not None:
            objects[info.key.removeprefix(f"{space}/")] = data
        done.append(info.key)
        progress(len(done), len(chosen))

    chosen, done = [info for info in infos if only is None or info.key in only or _is_meta(info)], list[str]()
    await for_each(chosen, load)
    written, left_out = _formed(space, objects, form)
    try:
        await trio.to_thread.run_sync(_write, target, written)
    except OSError as error:
        raise LiveMemError(f"{target} cannot be written: {error.strerror or error}") from error
    return Written(len(written) if form != "jsonl" else written[""].count(b"\n"), left_out)


def _is_meta(info: ObjectInfo) -> bool:
    return keys.parse(info.key).kind == "meta"


def _formed(space: str, objects: Mapping[str, bytes], form: Form) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files, by their names below the target (empty for the target itself), and what is left out."""
    if form == "markdown":
        good = unpackable(objects)
        files = {name: data for name, data in objects.items() if name in good}
    elif form == "jsonl":
        lines = {name: line for name, data in sorted(objects.items()) if (line := _line(name, data))}
        return {"": b"".join(lines.values())}, tuple(sorted(objects.keys() - lines.keys() - {keys.META}))
    else:
        return _basic_memory(space, objects)
    return files, tuple(sorted(objects.keys() - files.keys()))


def _line(name: str, data: bytes) -> bytes:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return b""
    if name == keys.META or not text.strip():
        return b""
    return json.dumps({"key": name, "content": text}, ensure_ascii=False).encode() + b"\n"


def _basic_memory(space: str, objects: Mapping[str, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    memories = {
        name: Memory.parse(data, path=name, collection=name.partition("/")[0], name=name.rpartition("/")[2])
        for name, data in sorted(objects.items())
        if keys.parse(f"{space}/{name}").kind == "memory"
    }
    titles = {id_of(name.rpartition("/")[2]): _title(memory) for name, memory in memories.items()}
    files: dict[str, bytes] = {}
    for name, memory in memories.items():
        memory_id = id_of(name.rpartition("/")[2])
        fields = {
            "title": titles[memory_id],
            "type": memory.type,
            "permalink": _permalink(memory_id, memory),
            "tags": list(memory.subjects),
            "created": iso(memory.created_at),
        }
        links = [
            f"- {relation} [[{titles[to]}]]"
            for relation, to in memory.links
            if to in titles and (relation != "related_to" or f"[[{titles[to]}]]" not in memory.content)
        ]
        text = "\n".join([memory.content.strip(), *(["", "## Relations", "", *links] if links else [])]) + "\n"
        files[f"{memory_id}.md"] = frontmatter.join(fields, text).encode()
    return files, tuple(sorted(objects.keys() - memories.keys() - {keys.META}))


def _permalink(memory_id: str, memory: Memory) -> str:
    """The one it came with, by which other notes and links of that program name it."""
    came = str(memory.extra.get(IMPORT_ID, "")) if memory.extra.get(IMPORT_FROM) == "basic-memory" else ""
    return came if came and "#" not in came else memory_id.lower().replace("_", "-")


def _title(memory: Memory) -> str:
    line = next((line for line in memory.content.splitlines() if line.strip()), "memory")
    return _NOT_IN_NAME.sub("", line).strip()[:80] or "memory"


def _write(target: Path, files: Mapping[str, bytes]) -> None:
    if not files:
        target.mkdir(parents=True)
    for name, data in files.items():
        place = target / name if name else target
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            file.write(data)
