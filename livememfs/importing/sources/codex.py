"""Codex (read in 0.169): the rollouts below its configuration folder.

Owns the form of `sessions/<year>/<month>/<day>/rollout-*.jsonl`: of each step it is written what the model was told
(`response_item`), and that is read. How a command ended stands in the words of its output. Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceSession, SourceTalk, moment
from livememfs.importing.sources.transcript import Turns, named, part, texts, together
from livememfs.text.foreign import Unreadable, read_json

AGENT = "codex"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_BADLY = re.compile(r"^(?:Exit code:|Process exited with code) 0*[1-9]", re.MULTILINE)
_HEAD = 400
"""Characters of an output in which the program's own lines stand."""


def read(path: Path) -> Iterator[Read]:
    """The sessions below the configuration folder, or in one rollout."""
    for file in [path] if path.is_file() else sorted(path.rglob("rollout-*.jsonl")):
        found = _ID.search(file.stem)
        session = found[0] if found else file.stem
        yield SourceSession(session, str(file), partial(_told, session, file))


def _told(session: str, file: Path) -> SourceTalk:
    turns = Turns(session, AGENT)
    for place, line in turns.objects(file):
        item = part(line, "payload")
        turns.at(moment(line.get("timestamp")), named(item, "cwd"))
        if line.get("type") == "response_item":
            _step(turns, place.rpartition(":")[2], item)
    return together([turns])


def _step(turns: Turns, number: str, item: dict[str, Any]) -> None:
    kind, call = item.get("type"), named(item, "call_id")
    item_id = named(item, "id") or f"line-{number}"
    if kind == "message" and item.get("role") == "user":
        turns.prompt(item_id, texts(item.get("content")))
    elif kind == "message" and item.get("role") == "assistant":
        turns.words(item_id, texts(item.get("content")))
    elif kind == "function_call":
        turns.call(call, named(item, "name"), _json(item.get("arguments")))
    elif kind == "custom_tool_call":
        turns.call(call, named(item, "name"), {"input": item.get("input")})
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = _json(item.get("output"))
        turns.answer(call, output, failed=_failed(output))


def _failed(output: Any) -> bool:
    if isinstance(output, dict):  # of older versions
        code = part(output, "metadata").get("exit_code")
        return isinstance(code, int) and code != 0
    head = output[:_HEAD].partition("\nOutput:")[0] if isinstance(output, str) else ""
    return _BADLY.search(head) is not None


def _json(value: Any) -> Any:
    """What a text of JSON holds, where it is an object; else the text."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(Unreadable):
            return read_json(value.encode("utf-8", "surrogatepass"))
    return value
