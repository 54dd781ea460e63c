"""`scripts/bench hooks`: it measures the hooks that are installed, and takes no failure for a time. Nothing is mounted
here.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from benchlib.hooks import INTERPRETER, Found, Timed, as_text, hooks, run

from livememfs.agents.install.command import read

ROUNDS = 3


class Words:
    """Texts, without a model's vocabulary."""

    def text(self, low: int, high: int) -> str:
        return " ".join(["word"] * random.randint(low, high))


def timed(name: str, command: str) -> Timed:
    return Timed(name, command, lambda number: json.dumps({"number": number}))


def test_every_hook_runs_in_every_round_with_what_is_made_for_it(tmp_path: Path) -> None:
    chosen = [timed("echoes", "cat"), timed("says nothing", "cat > /dev/null"), timed("interpreter", INTERPRETER)]

    results = run(chosen, ROUNDS, tmp_path)

    assert [len(result.ms) for result in results] == [ROUNDS] * 3
    assert [result.told for result in results] == [ROUNDS, 0, 0]
    assert all(ms > 0 for result in results for ms in result.ms)
    assert json.loads((tmp_path / "0-2.json").read_text()) == {"number": 2}


@pytest.mark.parametrize("command", ["exit 1", "echo broken", "echo '{' ", "cat nowhere; echo '{}'"])
def test_a_hook_that_fails_ends_the_measurement(command: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"some hook|ended with"):
        run([timed("good", "echo '{}'"), timed("bad", command)], 1, tmp_path)


def test_the_hooks_are_those_that_are_installed(tmp_path: Path) -> None:
    space = tmp_path / "mnt" / "a space's"

    chosen = hooks(space, Words())  # type: ignore[arg-type]  # texts are all that is made here

    ours = [(hook, target) for hook in chosen if (target := read(hook.command)) is not None]
    assert {target.event for _, target in ours} == {"PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"}
    assert {target.space for _, target in ours} == {str(space)}
    assert {hook.name: hook.most for hook, _ in ours if hook.most} == {
        "PostToolUse": 15.0,
        "PreToolUse, a file": 15.0,
        "UserPromptSubmit": 40.0,
        "SessionStart": 60.0,
    }
    for hook, target in ours:
        requests = [json.loads(hook.request(number)) for number in range(30)]
        assert {request["hook_event_name"] for request in requests} == {target.event}
        assert len({request["session_id"] for request in requests}) == 2
    ids = [
        json.loads(hook.request(number))["tool_use_id"]
        for hook, target in ours
        for number in range(9)
        if hook.name.startswith("PostToolUse")
    ]
    assert len(set(ids)) == len(ids)


def test_the_table_says_whether_what_was_promised_is_kept() -> None:
    chosen = [Timed("free", ":", str), Timed("quick", ":", str, 15.0), Timed("slow", ":", str, 15.0)]
    results = [Found([1.0] * 20), Found([2.0] * 19 + [90.0], told=20), Found([2.0] * 18 + [15.0] * 2)]

    lines = [line.split() for line in as_text(chosen, results).splitlines()[2:]]

    assert lines == [
        ["free", "1.0", "1.0", "1.0", "0", "of", "20"],
        ["quick", "2.0", "2.0", "90.0", "15", "20", "of", "20", "kept"],
        ["slow", "2.0", "15.0", "15.0", "15", "0", "of", "20", "missed"],
    ]
