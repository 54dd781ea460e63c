"""The parts that are not JSON: a line in a Markdown file, a server in a TOML or YAML file, and files that are all ours.

Pure.
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import yaml

from livememfs.agents.install.command import HookCommand, read
from livememfs.agents.install.jsontext import scan
from livememfs.agents.install.parts import SERVER, InstalledPart, is_server, server
from livememfs.agents.install.segments import Segment, newline_of


class Line(InstalledPart):
    """One line at the end of a text.

    :line:   the wanted line; None when it is not wanted
    :known:  matches lines that count as ours
    :others: matches lines for another agent that shares this file; that agent's removal takes them
    """

    def __init__(self, path: str, line: str | None, known: re.Pattern[str], others: re.Pattern[str]) -> None:
        super().__init__(path, wanted=line is not None)
        self.line, self.known, self.others = line, known, others

    def stands(self, text: str) -> bool:
        return [line for line in _lines(text) if self._is_ours(line)] == ([] if self.line is None else [self.line])

    def added(self, text: str) -> list[Segment]:
        if self.line is None:
            return []
        if "\0" in text:
            raise ValueError("it has NUL bytes, as a UTF-16 text has")
        newline = newline_of(text)
        ended = not text or text.endswith("\n")
        return [Segment(len(text), ((True, self.line + newline if ended else newline + self.line),))]

    def removed(self, text: str) -> str:
        lines = text.split("\n")
        kept = [line for line in lines if not self._is_ours(line.rstrip("\r"))]
        without = "\n".join(kept)
        return without.removesuffix("\r") if self._is_ours(lines[-1]) else without

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        named = {path[0] for segment in segments for path in re.finditer(r"/\S.*?/context\.md", segment.text)}
        lines = [line for line in _lines(text) if not self.others.fullmatch(line)]
        changed = any(name in line for line in lines for name in named)
        return "the line that leads to context.md, which was changed since" if changed else ""

    def _is_ours(self, line: str) -> bool:
        return line == self.line or self.known.fullmatch(line) is not None


class Block(InstalledPart):
    """Our server among the servers of a file that is not JSON.

    :argv: its command; None when it is not wanted
    """

    _OURS: re.Pattern[str]

    def __init__(self, path: str, argv: Sequence[str] | None) -> None:
        super().__init__(path, wanted=argv is not None)
        self.argv = argv

    def may_cut(self, before: str, after: str) -> bool:
        try:
            return self.is_ours(self.entry(before)) and self.entry(after) is None
        except ValueError:
            return False

    def stands(self, text: str) -> bool:
        return self.argv is not None and self.entry(text) == self.value(self.argv)

    def added(self, text: str) -> list[Segment]:
        if self.argv is None:
            return []
        if self.entry(text) is not None:
            raise ValueError(f"it has a server {SERVER} that was not written by this command")
        segment = self.segment(text, self.argv)
        if not self.may_cut(text[: segment.at] + segment.text + text[segment.at :], text):
            raise ValueError(f"its servers are written in one line, or indented so that {SERVER} cannot be added")
        return [segment]

    def removed(self, text: str) -> str:
        without = self._OURS.sub("", text)
        return without if self.may_cut(text, without) else text

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        there = segments and self.entry(text) is not None
        return f"the MCP server {SERVER}, which was changed since" if there else ""

    def server(self, text: str) -> list[str]:
        value = self.entry(text) if text else None
        return [value.get("command") or value["cmd"], *value["args"]] if value and self.is_ours(value) else []

    @abstractmethod
    def entry(self, text: str) -> Any:
        """Our server in the file, None without one. ValueError."""

    def value(self, argv: Sequence[str]) -> dict[str, Any]:
        """The entry for our server."""
        return server(argv)

    def is_ours(self, value: Any) -> bool:
        """Whether an entry is our unchanged server."""
        return is_server(value)

    @abstractmethod
    def segment(self, text: str, argv: Sequence[str]) -> Segment:
        """The insertion that adds it."""


class TomlTable(Block):
    """Our server in the TOML of Codex."""

    _OURS = re.compile(
        rf'(?:(?<=\n)\r?\n)?(?:(?<=\n)|\A)\[mcp_servers\.{SERVER}\]\r?\ncommand = "[^\n]*"\r?\n'
        r"args = \[[^\n]*\](?:\r?\n|\Z)"
    )

    def entry(self, text: str) -> Any:
        try:
            text.encode("utf-8")
            servers = tomllib.loads(text.removeprefix("\ufeff")).get("mcp_servers")
        except ValueError as error:
            raise ValueError(f"it is not TOML: {error}") from None
        if servers is not None and not isinstance(servers, dict):
            raise ValueError("its mcp_servers are not a table")
        return (servers or {}).get(SERVER)

    def segment(self, text: str, argv: Sequence[str]) -> Segment:
        newline, wanted = newline_of(text), server(argv)
        lines = [f"[mcp_servers.{SERVER}]", *(f"{name} = {_quoted(value)}" for name, value in wanted.items())]
        block = newline.join(lines)
        if not text:
            return Segment(0, ((True, block + newline),))
        if text.endswith("\n"):
            return Segment(len(text), ((True, newline + block + newline),))
        return Segment(len(text), ((True, newline + newline + block),))


class Extension(Block):
    """Our server in the YAML of Goose, which calls servers extensions."""

    _OURS = re.compile(rf"(?:(?<=\n)|\A)  {SERVER}:\r?\n(?:    [^\n]*(?:\n|\Z))+")
    _TOP = re.compile(r"^extensions:[ \t]*(?:\r?\n|\Z)", re.MULTILINE)

    def entry(self, text: str) -> Any:
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            raise ValueError(f"it is not YAML: {error}") from None
        extensions = (value or {}).get("extensions") if isinstance(value, dict) or value is None else value
        if extensions is not None and not isinstance(extensions, dict):
            raise ValueError("its extensions are not a mapping")
        return (extensions or {}).get(SERVER)

    def value(self, argv: Sequence[str]) -> dict[str, Any]:
        more = {"enabled": True, "type": "stdio", "name": SERVER, "timeout": 60}
        return {**more, "cmd": argv[0], "args": list(argv[1:])}

    def is_ours(self, value: Any) -> bool:
        if not isinstance(value, dict) or not is_server({"command": value.get("cmd"), "args": value.get("args")}):
            return False
        return value == self.value([value["cmd"], *value["args"]])

    def segment(self, text: str, argv: Sequence[str]) -> Segment:
        newline = newline_of(text)
        lines = [f"  {SERVER}:", *(f"    {name}: {_quoted(value)}" for name, value in self.value(argv).items())]
        block = newline.join(lines) + newline
        if (top := self._TOP.search(text)) is not None:
            return Segment(top.end(), ((True, block),))
        if re.search(r"^\S*extensions\S*[ \t]*:", text, re.MULTILINE):
            raise ValueError("its extensions are written in one line, so that none can be added")
        start = "" if not text or text.endswith("\n") else newline
        return Segment(len(text), ((True, f"{start}extensions:{newline}{block}"),))


class Rule(InstalledPart):
    """A file that is all ours, also after changes: the content of `context.md`, kept up to date by the mount.

    :head: the text it begins with, by which it is recognised
    :text: the wanted text after the head; None when the file is not wanted
    """

    is_whole = True

    def __init__(self, path: str, head: str, text: str | None) -> None:
        super().__init__(path, wanted=text is not None)
        self.head, self.text = head, text

    def stands(self, text: str) -> bool:
        return self.text is not None and text == self.head + self.text

    def added(self, text: str) -> list[Segment]:
        if text:
            raise ValueError("a file with this name exists that was not written by this command")
        return [] if self.text is None else [Segment(0, ((True, self.head + self.text),))]

    def removed(self, text: str) -> str:
        return "" if text.startswith(self.head) else text

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        return ""


class Script(Rule):
    """A program that is all ours, for one hook."""

    runs = True

    def hooks(self, text: str) -> list[HookCommand]:
        return [hook for line in _lines(text) if (hook := read(line)) is not None]


class Plugin(Rule):
    """A program that is all ours. Its hooks and its server are JSON constants, each on its own lines."""

    def hooks(self, text: str) -> list[HookCommand]:
        return [hook for line in _values(text, "HOOKS").values() if (hook := read(line)) is not None]

    def server(self, text: str) -> list[str]:
        return list(_values(text, "SERVER"))


def _values(text: str, name: str) -> Any:
    """The value of a constant of our program; empty if it cannot be read."""
    constant = re.search(rf"^const {name} = (.+?)\n(?=const |\n)", text, re.MULTILINE | re.DOTALL)
    return (scan(constant[1]).value if constant is not None else None) or {}


def _lines(text: str) -> list[str]:
    return [line.rstrip("\r") for line in text.split("\n")]


def _quoted(value: Any) -> str:
    """A value in a form that is TOML and YAML, on one line."""
    return json.dumps(value, ensure_ascii=False)
