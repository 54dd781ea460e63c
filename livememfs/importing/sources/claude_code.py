"""Claude Code (read in 2.1.197): the transcripts below its configuration folder, and the memory that it writes beside.

Owns the form of `projects/<project>/<session>.jsonl`, of the transcripts of subagents, and which entries are no words
of a user: what the program puts in, and the summary of a compaction. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceItem, SourceSession, SourceTalk, moment
from livememfs.importing.sources import markdown
from livememfs.importing.sources.transcript import Turns, named, text_of, texts, together

AGENT = "claude"
_INTERRUPTED = "[Request interrupted by user"


def read(path: Path) -> Iterator[Read]:
    """The sessions and memories below the configuration folder, a project's folder in it, or in one transcript."""
    top = path / "projects" if (path / "projects").is_dir() else path
    transcripts = [path] if path.is_file() else sorted(top.rglob("*.jsonl"))
    for session, files in _sessions(transcripts).items():
        yield SourceSession(session, str(files[0]), partial(_told, session, files))
    for folder in sorted(top.rglob("memory")) if top.is_dir() else ():
        if folder.is_dir():
            for each in markdown.read(folder):
                yield _below(folder, each) if isinstance(each, SourceItem) else each


def _below(folder: Path, item: SourceItem) -> SourceItem:
    """The memory of one project: the same name may be in another one."""
    project = folder.parent.name
    links = tuple((relation, f"{project}/{to}") for relation, to in item.links)
    return replace(item, id=f"{project}/{item.id}", links=links, author=item.author or AGENT)


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
