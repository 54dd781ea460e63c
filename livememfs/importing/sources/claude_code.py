"""Claude Code (read in 2.1.197): the transcripts below its configuration folder, and the memory that it writes beside.

Owns the form of `projects/<project>/<session>.jsonl`, of the transcripts of subagents, and which entries are no words
of a user: what the program puts in, and the summary of a compaction. Of `memory/` beside them: that its files have a
name, by which others link to them, and a type, and that `MEMORY.md` only lists them. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceItem, SourceSession, SourceTalk, moment, parts
from livememfs.importing.sources import markdown
from livememfs.importing.sources.transcript import Turns, named, part, text_of, texts, together

AGENT = "claude"
INDEX = "MEMORY.md"
_INTERRUPTED = "[Request interrupted by user"


def read(path: Path) -> Iterator[Read]:
    """The sessions and memories below the configuration folder, a project's folder in it, or its folder of memories; or
    what is in one transcript.
    """
    top = path / "projects" if (path / "projects").is_dir() else path
    transcripts = [path] if path.is_file() else sorted(top.rglob("*.jsonl"))
    for session, files in _sessions(transcripts).items():
        yield SourceSession(session, str(files[0]), partial(_told, session, files))
    folders = [top] if (top / INDEX).is_file() else sorted(top.rglob("memory"))
    for folder in folders:
        if folder.is_dir():
            yield from _memories(folder)


def _memories(folder: Path) -> Iterator[Read]:
    """The memories of one project. Those of another may have the same names."""
    project, items, ids = folder.parent.name, list[tuple[SourceItem, str]](), dict[str, str]()
    for file in markdown.files(folder):
        found = markdown.text_of(file)
        if isinstance(found, SourceFault):
            yield found
        elif file.name == INDEX:
            yield from _not_listed(file)
        elif found[1].strip():
            item = _topic(markdown.name_of(file, folder), file, *found)
            ids[str(found[0].get("name") or file.stem)] = item.id
            items.append((item, found[1]))
    for item, body in items:
        named_ = [ids[to] for to in markdown.wiki_names(body) if to in ids]
        linked = dict.fromkeys(to for to in (*(to for _, to in item.links), *named_) if to != item.id)
        links = tuple(("related_to", f"{project}/{to}") for to in linked)
        yield from parts(replace(item, id=f"{project}/{item.id}", links=links, author=item.author or AGENT))


def _topic(name: str, file: Path, fields: dict[str, Any], body: str) -> SourceItem:
    """A memory. Newer versions write its type under `metadata`; its description is what it says in one line."""
    description = named(fields, "description").strip()
    text = body if description in body else f"{description}\n\n{body.lstrip()}"
    return markdown.item_of(name, file, {**fields, **part(fields, "metadata")}, text)


def _not_listed(file: Path) -> Iterator[SourceFault]:
    """The lines of the index that say something themselves. It is no memory: an agent reads it before all others."""
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#") and "](" not in line and not markdown.wiki_names(line):
            yield SourceFault(f"{file}:{number}", "it is a line of an index, which does not come, and names no file")


def _sessions(files: list[Path]) -> dict[str, list[Path]]:
    """The transcripts of each session: that of the agent, then those of its subagents."""
    found: dict[str, list[Path]] = {}
    for file in sorted(files, key=lambda file: file.stem.startswith("agent-")):
        session = file.stem
        if file.parent.name == "subagents":
            session = file.parent.parent.name
        elif file.stem.startswith("agent-"):  # of older versions: beside the others, with the session inside
            told = Turns("", AGENT).objects(file)
            session = next((named(entry, "sessionId") for _, entry in told), file.stem)
        found.setdefault(session, []).append(file)
    return found


def _told(session: str, files: list[Path]) -> SourceTalk:
    return together([_turns(session, file) for file in files])


def _turns(session: str, file: Path) -> Turns:
    subagent = file.stem.removeprefix("agent-") if file.stem.startswith("agent-") else ""
    turns = Turns(session, AGENT, subagent=subagent)
    seen: set[str] = set()
    for place, entry in turns.objects(file):
        entry_id = named(entry, "uuid") or place.rpartition(":")[2]
        if entry_id in seen or entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
            continue
        seen.add(entry_id)
        if entry.get("isSidechain") is True and not subagent:
            continue
        message = entry.get("message")
        if isinstance(message, dict) and entry.get("type") in ("user", "assistant"):
            turns.at(moment(entry.get("timestamp")), named(entry, "cwd"))
            (_user if entry["type"] == "user" else _assistant)(turns, entry_id, entry, message.get("content"))
    return turns


def _user(turns: Turns, entry_id: str, entry: dict[str, Any], content: Any) -> None:
    pieces = content if isinstance(content, list) else []
    for piece in pieces:
        if isinstance(piece, dict) and piece.get("type") == "tool_result":
            failed = piece.get("is_error") is True
            output = entry.get("toolUseResult", texts(piece.get("content")))
            if failed:
                output = {"error": texts(piece.get("content"))}
            turns.answer(named(piece, "tool_use_id"), output, failed=failed)
    asked = texts(content)
    if asked and not asked.startswith(_INTERRUPTED):
        turns.prompt(entry_id, asked)


def _assistant(turns: Turns, entry_id: str, _: dict[str, Any], content: Any) -> None:
    words = [text for piece in (content if isinstance(content, list) else []) if (text := text_of(piece))]
    turns.words(entry_id, "\n\n".join(words))
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and piece.get("type") == "tool_use":
            turns.call(named(piece, "id"), named(piece, "name"), piece.get("input"))
