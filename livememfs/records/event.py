"""One thing that happened in an agent's session: it began, somebody asked something, a tool was used, the agent said
something, it stopped, or the session ended.

Owns what is kept of it, how long fields are shortened where it can be seen, and which files it touched: by what the
tool was given, never by what somebody says of it. Refuses to know how any agent spells its hooks. Pure; any thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, Literal

from livememfs.text.foreign import build, read_json
from livememfs.text.times import iso

Kind = Literal["start", "prompt", "tool", "said", "stop", "end"]
OBSERVED_KINDS: tuple[Kind, ...] = ("tool", "said")
"""What observations are made of: what was done, and what the agent said of it."""

STORED_CHARACTERS = 16_000
"""Kept of what a tool was given, and of what it gave."""
HEAD, TAIL = 0.6, 0.3
"""The shares of a long field that are kept of its beginning and of its end (claude-mem, lessons)."""
LINE_BYTES = 1 << 20
DEEPEST = 200
TOO_DEEP = "[... nested too deep ...]"
READS = frozenset({"read", "notebookread", "view", "read_file", "read_files", "read_many_files", "beforereadfile"})
EDITS = frozenset(
    {
        "edit", "multiedit", "write", "notebookedit", "apply_patch", "edit_file", "write_file", "update", "replace",
        "create", "delete", "editor", "write_to_file", "replace_in_file", "str_replace_editor", "patch",
        "afterfileedit",
    }
)  # fmt: skip
SHELLS = frozenset(
    {
        "bash", "shell", "local_shell", "exec_command", "run_terminal_cmd", "unified_exec", "run_shell_command",
        "run_command", "run_commands", "execute_command",
    }
)  # fmt: skip
"""Tools of all agents that read files, that change them, and that run commands; in small letters."""
_HALF = re.compile("[\ud800-\udfff]")
_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "filename", "target_file")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    :id:       the agent's own id of it, else a digest of what it is
    :session:  the agent's id of the session
    :at:       when it was captured, aware, UTC
    :agent:    claude, codex, cursor, ...
    :subagent: the id of the subagent that did it; empty for the main agent
    :project:  the folder in which the agent works
    :tool:     of a tool: its name
    :input:    what the tool was given, a JSON value
    :output:   what it gave
    :text:     of a prompt: what was asked; of a start or an end: why; of what was said: the words
    :failed:   of a tool: the agent says that it failed
    :tokens:   what input and output cost the agent, estimated before they were shortened
    """

    id: str
    session: str
    kind: Kind
    at: datetime
    agent: str = ""
    subagent: str = ""
    project: str = ""
    tool: str = ""
    input: Any = None
    output: Any = None
    text: str = ""
    tokens: int = 0
    failed: bool = False

    def to_json(self) -> str:
        """One line."""
        return json.dumps({**asdict(self), "at": iso(self.at, exact=True)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Event:
        """The event of a line that `to_json` gave, of a newer version as well: fields that are unknown here are left
        out. Raises Unreadable for any other.
        """
        data = line.encode("utf-8", "replace")
        return build(cls, storable(read_json(data, most=LINE_BYTES, deepest=2 * DEEPEST)))

    def files(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files it read and those it changed, as far as what the tool was given says so; relative to the project
        where they are in it.
        """
        found = tuple(dict.fromkeys(self._relative(path) for path in paths_of(self.tool, self.input)))
        if self.tool.lower() in EDITS:
            return (), found
        return (found, ()) if self.tool.lower() in READS else ((), ())

    def error(self) -> str:
        """What a tool that failed said of it."""
        return as_text(self.output.get("error", self.output) if isinstance(self.output, Mapping) else self.output)

    def command(self) -> str:
        """The command that it ran; empty for any other tool."""
        return command_of(self.tool, self.input)

    def _relative(self, path: str) -> str:
        path = path.strip()
        if self.project and PurePosixPath(path).is_relative_to(self.project):
            return str(PurePosixPath(path).relative_to(self.project))
        return path


def paths_of(tool: str, given: Any) -> Iterator[str]:
    """The paths in what a tool was given: of the first field that stands for one, and of a patch."""
    given = given if isinstance(given, Mapping) else {}
    for name in _PATHS:
        if isinstance(given.get(name), str) and given[name]:
            yield given[name]
            break
    for text in (given.get("patch"), given.get("input"), given.get("command")) if tool == "apply_patch" else ():
        text = "\n".join(map(str, text)) if isinstance(text, list) else text
        if isinstance(text, str):
            yield from (one or other for one, other in _PATCHED.findall(text))


def command_of(tool: str, given: Any) -> str:
    """The command in what a shell was given; empty for any other tool."""
    if tool.lower() not in SHELLS or not isinstance(given, Mapping):
        return ""
    found = next((given[name] for name in ("command", "commands", "cmd") if name in given), "")
    return " ".join(map(str, found)) if isinstance(found, list) else found if isinstance(found, str) else ""


def storable(value: Any, depth: int = 0) -> Any:
    """A JSON value without what JSON can spell and nothing can store: halves of characters, nesting without end."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, Mapping | list) and depth == DEEPEST:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {storable(name): storable(one, depth + 1) for name, one in value.items()}
    return [storable(one, depth + 1) for one in value] if isinstance(value, list) else value


def as_text(value: Any) -> str:
    """A JSON value for people and models: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value is not None else ""


def shortened(text: str, limit: int) -> str:
    """A text of at most about `limit` characters: its beginning and its end, and between them how much is missing."""
    if len(text) <= limit:
        return text
    head, tail = int(limit * HEAD), int(limit * TAIL)
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters left out ...]\n{text[len(text) - tail :]}"


def capped(value: Any, limit: int) -> Any:
    """A JSON value that takes at most about `limit` characters: its texts are shortened first, else the whole is.

    What is short stays, so that a path beside a long list of edits can still be found.
    """
    if len(as_text(value)) <= limit:
        return value
    smaller = _parts_capped(value, limit)
    return (
        shortened(as_text(value), limit) if smaller is None or len(as_text(smaller)) > limit + limit // 4 else smaller
    )


def _parts_capped(value: Any, limit: int) -> Any:
    """The same object or list with each part capped to its share; None where that leaves nothing of its form."""
    if isinstance(value, Mapping) and value:
        share = max(limit // len(value), 200)
        found = {name: capped(one, share) for name, one in value.items()}
        return (
            found if len(value) > 1 or [type(one) for one in found.values()] == [*map(type, value.values())] else None
        )
    if isinstance(value, list) and len(value) > 1:
        return [capped(one, max(limit // len(value), 200)) for one in value]
    return None


def digest_id(*parts: Any) -> str:
    """An id for an event whose agent gives it none: the same for the same parts."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
