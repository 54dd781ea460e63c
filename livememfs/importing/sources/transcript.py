"""What transcripts of all agents have in common: lines of JSON, and turns of prompts, tools and words.

Owns which of an agent's words count, as hooks tell them: the last ones before the next prompt. A tool without an answer
is left out, since the next import may find the answer. Any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from livememfs.importing.item import SourceEvent, SourceFault, SourceTalk
from livememfs.observing.capture import Said
from livememfs.text.foreign import Unreadable, read_object

LONGEST_LINE = 64 << 20
"""Bytes. A line may have pictures in it."""


class Turns:
    """Collects what a transcript tells, one after the other. `subagent` and `kind` are those of a subagent."""

    def __init__(self, session: str, agent: str, *, subagent: str = "", kind: str = "") -> None:
        self._said = Said(session, "prompt", agent=agent, subagent=subagent)
        self._kind = kind
        self._last = datetime.fromtimestamp(0, UTC)
        self._words: SourceEvent | None = None
        self._calls: dict[str, tuple[str, Any]] = {}
        self.events: list[SourceEvent] = []
        self.faults: list[SourceFault] = []

    def at(self, moment: datetime | None, project: str = "") -> None:
        """When the next thing happened, and where. What has no time has that of the one before."""
        self._last = moment or self._last
        self._said = replace(self._said, project=project or self._said.project)

    def prompt(self, event_id: str, text: str) -> None:
        """The user asked something; a subagent's task is no prompt of the user's."""
        self.end()
        if text.strip() and not self._said.subagent:
            self._add(kind="prompt", id=event_id, text=text)

    def words(self, event_id: str, text: str) -> None:
        """The agent said something."""
        if text.strip():
            said = replace(self._said, kind="said", id=event_id, text=text, tool=self._kind)
            self._words = SourceEvent(said, self._last)

    def call(self, call_id: str, tool: str, given: Any) -> None:
        """The agent called a tool."""
        self._words = None
        self._calls[call_id] = tool, given

    def answer(self, call_id: str, output: Any, *, failed: bool = False) -> None:
        """The tool answered."""
        if call_id in self._calls:
            tool, given = self._calls.pop(call_id)
            self._add(kind="tool", id=call_id, tool=tool, input=given, output=output, failed=failed)

    def end(self) -> None:
        """The turn is over: what the agent said last is its answer."""
        if self._words is not None:
            self.events.append(self._words)
        self._words = None

    def _add(self, **fields: Any) -> None:
        self.events.append(SourceEvent(replace(self._said, **fields), self._last))

    def objects(self, file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a file's lines, each with the file and its number. Other lines become faults."""
        try:
            with file.open("rb") as lines:
                number = 0
                while line := lines.readline(LONGEST_LINE):
                    number += 1
                    try:
                        if line.strip():
                            yield f"{file}:{number}", read_object(line, most=LONGEST_LINE)
                    except Unreadable as error:
                        self.faults.append(SourceFault(f"{file}:{number}", str(error)))
        except OSError as error:
            self.faults.append(SourceFault(str(file), error.strerror or str(error)))


def together(told: list[Turns]) -> SourceTalk:
    """One session out of the transcripts of an agent and its subagents."""
    for each in told:
        each.end()
    events = sorted((event for each in told for event in each.events), key=lambda event: event.at)
    return SourceTalk(tuple(events), tuple(fault for each in told for fault in each.faults))


def texts(content: Any) -> str:
    """The text of a message, in any agent's form: a text, or a list of pieces."""
    pieces = content if isinstance(content, list) else [content]
    found = [piece if isinstance(piece, str) else text_of(piece) for piece in pieces]
    return "\n\n".join(text for text in found if text.strip())


def text_of(piece: Any) -> str:
    """The text of a piece of a message; empty for a picture or the like."""
    if isinstance(piece, dict) and piece.get("type") in ("text", "output_text", "input_text", "Text"):
        return piece["text"] if isinstance(piece.get("text"), str) else ""
    return ""


def part(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """An object in a field; empty for anything else."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def named(fields: dict[str, Any], name: str) -> str:
    """A text in a field; empty for anything else."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
