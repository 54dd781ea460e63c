"""One event in an agent's session: it began, the user asked something, a tool was used, the agent said something, it
stopped, or the session ended.

Owns what is kept of an event, how long fields are shortened (visibly), and which files it touched: by the input of the
tool, never by what a text claims. Knows no agent's own form of hooks. Pure; any thread.
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
"""The events that observations are made of."""

STORED_CHARACTERS = 16_000
"""The most characters that are kept of a tool's input, and of its output."""
HEAD, TAIL = 0.6, 0.3
"""The shares of the limit that the beginning and the end of a long field get (claude-mem, lessons)."""
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

    :id:       the agent's own id of it, else a digest of its content
    :session:  the agent's id of the session
    :at:       when it was captured, aware, UTC
    :agent:    claude, codex, cursor, ...
    :subagent: the id of the subagent that did it; empty for the main agent
    :project:  the folder in which the agent works
    :tool:     the name of the tool
    :input:    the input of the tool, a JSON value
    :output:   the output of the tool
    :text:     the prompt, or what the agent said; of a start or an end the reason
    :failed:   the agent says that the tool failed
    :branch:   that was checked out there, of `repository`, at `commit`; empty where that is not known
    :tokens:   of input and output, estimated before these were shortened
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
    repository: str = ""
    branch: str = ""
    commit: str = ""

    def to_json(self) -> str:
        """One line."""
        return json.dumps({**asdict(self), "at": iso(self.at, exact=True)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Event:
        """The event in a line of `to_json`, whose unknown fields are ignored. Raises Unreadable for any other line."""
        data = line.encode("utf-8", "replace")
        return build(cls, storable(read_json(data, most=LINE_BYTES, deepest=2 * DEEPEST)))

    def files(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that a tool read, and those that it changed, by its input; relative to the project if in it."""
        paths = tuple(dict.fromkeys(self._relative(path) for path in paths_of(self.tool, self.input)))
        if self.tool.lower() in EDITS:
            return (), paths
        return (paths, ()) if self.tool.lower() in READS else ((), ())

    def error(self) -> str:
        """The error message of a tool that failed."""
        return as_text(self.output.get("error", self.output) if isinstance(self.output, Mapping) else self.output)

    def command(self) -> str:
        """The command that a shell ran; empty for any other tool."""
        given = self.input if self.tool.lower() in SHELLS and isinstance(self.input, Mapping) else {}
        command = next((given[name] for name in ("command", "commands", "cmd") if name in given), "")
        return " ".join(map(str, command)) if isinstance(command, list) else command if isinstance(command, str) else ""

    def _relative(self, path: str) -> str:
        path = path.strip()
        if self.project and PurePosixPath(path).is_relative_to(self.project):
            return str(PurePosixPath(path).relative_to(self.project))
        return path


def paths_of(tool: str, given: Any) -> Iterator[str]:
    """The paths in a tool's input: that of the first field for a path, and those in a patch."""
    given = given if isinstance(given, Mapping) else {}
    for name in _PATHS:
        if isinstance(given.get(name), str) and given[name]:
            yield given[name]
            break
    for text in (given.get("patch"), given.get("input"), given.get("command")) if tool == "apply_patch" else ():
        text = "\n".join(map(str, text)) if isinstance(text, list) else text
        if isinstance(text, str):
            yield from map("".join, _PATCHED.findall(text))


def storable(value: Any, depth: int = 0) -> Any:
    """A JSON value without the parts that cannot be stored: lone surrogates, and nesting over DEEPEST deep."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, Mapping | list) and depth == DEEPEST:
        return TOO_DEEP
    if isinstance(value, Mapping):
        return {storable(name): storable(inner, depth + 1) for name, inner in value.items()}
    return [storable(inner, depth + 1) for inner in value] if isinstance(value, list) else value


def as_text(value: Any) -> str:
    """A JSON value for people and models: a text as it is, null as an empty text, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value is not None else ""


def shortened(text: str, limit: int) -> str:
    """A text of about `limit` characters at most: its beginning, how much was left out, and its end."""
    if len(text) <= limit:
        return text
    head, tail = int(limit * HEAD), int(limit * TAIL)
    return f"{text[:head]}\n[... {len(text) - head - tail:,} characters left out ...]\n{text[len(text) - tail :]}"


def capped(value: Any, limit: int) -> Any:
    """A JSON value of about `limit` characters at most: the texts in it are shortened, or else the whole as one text.

    Short parts stay, so that a path beside a long list of edits can still be found.
    """
    if len(as_text(value)) <= limit:
        return value
    smaller = _parts_capped(value, limit)
    if smaller is None or len(as_text(smaller)) > limit + limit // 4:
        return shortened(as_text(value), limit)
    return smaller


def _parts_capped(value: Any, limit: int) -> Any:
    """An object or list with each part capped to its share; None where nothing of its form would be left."""
    share = max(limit // len(value), 200) if isinstance(value, Mapping | list) and value else 0
    if isinstance(value, Mapping) and value:
        parts = {name: capped(part, share) for name, part in value.items()}
        same_form = [*map(type, parts.values())] == [*map(type, value.values())]
        return parts if len(value) > 1 or same_form else None
    return [capped(part, share) for part in value] if isinstance(value, list) and len(value) > 1 else None


def digest_id(*parts: Any) -> str:
    """An id for an event whose agent gives none: the same for the same parts."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
