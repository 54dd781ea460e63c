"""The parts that are no JSON: one line of a Markdown file, a table of a TOML file, and the rule that is all ours.

Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from livememfs.agents.install.parts import SERVER, Part, is_server, server
from livememfs.agents.install.segments import Segment, newline_of

RULE_HEAD = """\
---
description: What livememfs remembers about this project
alwaysApply: true
---
"""
"""What each rule of ours begins with, and is told from others by."""


class Line(Part):
    """One line at the end of a text.

    :line:  what is wanted there; None when nothing is
    :known: what counts as ours when a line is exactly that
    :others: lines of the agent that reads this file by another name, which are its own to remove
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
            raise ValueError("it is not a text of one byte order")
        newline = newline_of(text)
        ended = not text or text.endswith("\n")
        return [Segment(len(text), ((True, self.line + newline if ended else newline + self.line),))]

    def removed(self, text: str) -> str:
        lines = text.split("\n")
        kept = [line for line in lines if not self._is_ours(line.rstrip("\r"))]
        without = "\n".join(kept)
        return without.removesuffix("\r") if self._is_ours(lines[-1]) else without

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        named = {found[0] for segment in segments for found in re.finditer(r"/\S.*?/context\.md", segment.text)}
        lines = [line for line in _lines(text) if not self.others.fullmatch(line)]
        changed = any(name in line for line in lines for name in named)
        return "the line that leads to context.md, which was changed since" if changed else ""

    def _is_ours(self, line: str) -> bool:
        return line == self.line or self.known.fullmatch(line) is not None


class Table(Part):
    """Our server among the MCP servers of a TOML file; `space` is None when it is not wanted."""

    _OURS = re.compile(
        rf'(?:(?<=\n)\r?\n)?(?:(?<=\n)|\A)\[mcp_servers\.{SERVER}\]\r?\ncommand = "livememfs"\r?\n'
        r'args = \["mcp", "--space", "[^"\n]*"\](?:\r?\n|\Z)'
    )

    def __init__(self, path: str, space: str | None) -> None:
        super().__init__(path, wanted=space is not None)
        self.space = space

    def may_cut(self, before: str, after: str) -> bool:
        try:
            return is_server(_entry(before)) and _entry(after) is None
        except ValueError:
            return False

    def stands(self, text: str) -> bool:
        return self.space is not None and _entry(text) == server(self.space)

    def added(self, text: str) -> list[Segment]:
        if self.space is None:
            return []
        if _entry(text) is not None:
            raise ValueError(f"its mcp_servers have a {SERVER} that was not written by this command")
        newline = newline_of(text)
        lines = [f"[mcp_servers.{SERVER}]", 'command = "livememfs"', f'args = ["mcp", "--space", "{self.space}"]']
        block = newline.join(lines)
        if not text:
            segment = Segment(0, ((True, block + newline),))
        elif text.endswith("\n"):
            segment = Segment(len(text), ((True, newline + block + newline),))
        else:
            segment = Segment(len(text), ((True, newline + newline + block),))
        if not self.may_cut(text + segment.text, text):
            raise ValueError("its mcp_servers are written in one line, to which no table can be added")
        return [segment]

    def removed(self, text: str) -> str:
        without = self._OURS.sub("", text)
        return without if self.may_cut(text, without) else text

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        there = segments and _entry(text) is not None
        return f"the MCP server {SERVER}, which was changed since" if there else ""


class Rule(Part):
    """A rule of Cursor that is all ours, whatever it says by now.

    :text: what it is to say; None when it is not wanted
    """

    is_whole = True

    def __init__(self, path: str, text: str | None) -> None:
        super().__init__(path, wanted=text is not None)
        self.text = text

    def stands(self, text: str) -> bool:
        return text == self.text

    def added(self, text: str) -> list[Segment]:
        if text:
            raise ValueError("a rule of that name is there that was not written by this command")
        return [] if self.text is None else [Segment(0, ((True, self.text),))]

    def removed(self, text: str) -> str:
        return "" if context_of(text) is not None else text

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        return ""


def rule_text(context: str) -> str:
    """The rule that puts `context` before the model in each conversation."""
    return RULE_HEAD + context


def context_of(rule: str) -> str | None:
    """What a rule of ours puts before the model; None for one that is not ours."""
    return rule.removeprefix(RULE_HEAD) if rule.startswith(RULE_HEAD) else None


def _lines(text: str) -> list[str]:
    return [line.rstrip("\r") for line in text.split("\n")]


def _toml(text: str) -> dict[str, Any]:
    try:
        text.encode("utf-8")
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise ValueError(f"it is not TOML: {error}") from None


def _entry(text: str) -> Any:
    """Our server as the file has it, None when it has none."""
    servers = _toml(text).get("mcp_servers")
    if servers is not None and not isinstance(servers, dict):
        raise ValueError("its mcp_servers are not a table")
    return (servers or {}).get(SERVER)
