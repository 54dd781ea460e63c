"""The scripted model of `scripts/try-agents` and its table of programs. The programs themselves are not run here."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from trylib.day import COLUMNS
from trylib.endpoint import SUMMARY, Endpoint, Turn
from trylib.programs import PROGRAMS

GIVEN = {"path": "/p/app.py", "name": "app.py", "old": "1", "new": "2", "command": "echo {a}"}
PROTOCOLS = {
    "/v1/messages": ("messages", {"name": "Bash"}),
    "/v1/chat/completions": ("messages", {"type": "function", "function": {"name": "Bash"}}),
    "/v1/responses": ("input", {"type": "function", "name": "Bash"}),
    "/v1beta/models/m:generateContent": ("contents", {"functionDeclarations": [{"name": "Bash"}]}),
}


def ask(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("path", PROTOCOLS)
def test_the_model_follows_its_script_and_side_calls_use_up_nothing_of_it(path: str) -> None:
    field, tool = PROTOCOLS[path]
    side = {field: [{"role": "user", "content": "hello"}]}
    compact = {field: [{"role": "user", "content": "CONTEXT CHECKPOINT COMPACTION"}], "tools": [tool]}
    with Endpoint(lambda turn, tools: (tools[0], turn.arguments)) as model:
        model.script = [Turn(tool="shell", arguments={"command": "echo 42"}), Turn("done")]

        answers = [
            ask(model.url + path, body)
            for body in (side, {**side, "tools": [tool]}, compact, {**side, "tools": [tool]})
        ]

    assert "A day" in answers[0]
    assert "Bash" in answers[1]
    assert "echo 42" in answers[1]
    assert SUMMARY in answers[2]
    assert "done" in answers[3]
    assert [request.kind for request in model.asked] == ["side", "turn", "compact", "turn"]


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_has_a_version_its_tools_and_known_reasons(program: Any) -> None:
    for tool in ("shell", "edit", "read"):
        name, arguments = program.call(Turn(tool=tool, arguments=GIVEN), [])
        assert name
        assert any(GIVEN[key] in value for value in arguments.values() for key in ("command", "path", "name", "new"))
    assert program.package.rpartition("@")[2].count(".") == 2
    assert set(program.lacks) <= set(COLUMNS)
    assert program.call(Turn(tool="note"), ["tool_search"])[0] == "tool_search"
    assert program.call(Turn(tool="note", found=True), ["tool_search"])[0] == f"{program.server}live_note"
