"""Hooks: what each event tells, what it is answered byte for byte, and that no failure ever reaches an agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from livememfs.agents import claude
from livememfs.agents.contract import payload
from livememfs.agents.hooks import CONTRACTS, PATIENCE, Hooks
from livememfs.cache.database import Database
from livememfs.cache.inbox import Inbox
from livememfs.errors import HookRefused, LiveMemError, NoSpace
from livememfs.pipelines.capture import EMPTY, NOT_OBSERVED, SUBAGENT, Capture, Said
from livememfs.records.own import END, HEAD
from livememfs.records.turn import Turn
from livememfs.testing.clock import ManualClock

SPACE = "alpha"
PAGE = f"# Memory of alpha\n{END}\n"
CONTEXT = f"{HEAD}\n{PAGE}"
BLOCK = f"{HEAD}\nGood to know here, whatever is asked:\n- fact: we chose PostgreSQL\n{END}\n"
HERE = {"session_id": "s-1", "cwd": "/home/me/p", "transcript_path": "/x", "permission_mode": "default"}
ROOM = {"conversation_id": "c-1", "generation_id": "g", "workspace_roots": ["/home/me/p", "/q"], "user_email": "a@b"}


class Told:
    """What a prehook answers."""

    def __init__(self, block: str) -> None:
        self.block = block


class Doubles:
    """Everything around the hooks: what it answers, and what it heard."""

    def __init__(self) -> None:
        self.database = Database(None)
        self.turns: list[Turn] = []
        self.failed: list[tuple[str, str, LiveMemError]] = []
        self.context, self.block, self.trouble, self.takes = CONTEXT, BLOCK, "", 0.0
        self.breaks: Exception | None = None
        self.capture = Capture(Inbox(self.database), ManualClock())
        self.hooks = Hooks(
            self.capture,
            self,
            self.page,
            lambda: self.trouble,
            lambda *told: self.failed.append(told),  # type: ignore[arg-type]  # it has a `turn`
        )

    async def page(self, space: str, patience: float) -> str:
        await self.work()
        return self.context

    async def turn(self, space: str, turn: Turn) -> Told:
        self.turns.append(turn)
        await self.work()
        return Told(self.block)

    async def work(self) -> None:
        await trio.sleep(self.takes)
        if self.breaks is not None:
            raise self.breaks

    async def ask(self, event: str, given: Any) -> bytes:
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        return await self.hooks.answer(SPACE, event, data)

    def rows(self) -> list[tuple[Any, ...]]:
        return self.database.rows("SELECT session, kind, state, reason FROM event ORDER BY seq")


@pytest.fixture
def doubles() -> Doubles:
    return Doubles()


# --- what each event tells ---------------------------------------------------------------------------------------

SAID = Said("s-1", "tool", agent="claude", project="/home/me/p")
CURSOR = Said("c-1", "tool", agent="cursor", project="/home/me/p")
USED = {"tool_use_id": "toolu_1", "tool_name": "Edit", "tool_input": {"file_path": "a"}, "tool_response": {"ok": True}}
COMMAND = {"command": "ls", "output": "a", "duration": 3}
PAYLOADS: dict[str, tuple[str, dict[str, Any], Said]] = {
    "start": ("SessionStart", {**HERE, "source": "resume"}, replace(SAID, kind="start", text="resume")),
    "start without a reason": ("SessionStart", HERE, replace(SAID, kind="start", text="startup")),
    "prompt": ("UserPromptSubmit", {**HERE, "prompt": "Mend it"}, replace(SAID, kind="prompt", text="Mend it")),
    "tool": (
        "PostToolUse",
        {**HERE, **USED},
        replace(SAID, id="toolu_1", tool="Edit", input={"file_path": "a"}, output={"ok": True}),
    ),
    "tool of a subagent": (
        "PostToolUse",
        {**HERE, **USED, "agent_id": "a1"},
        replace(SAID, id="toolu_1", tool="Edit", input={"file_path": "a"}, output={"ok": True}, subagent="a1"),
    ),
    "tool of codex": (
        "PostToolUse",
        {**HERE, "turn_id": "t", "tool_name": "shell", "tool_input": {"command": ["ls"]}, "tool_response": "a"},
        replace(SAID, agent="codex", tool="shell", input={"command": ["ls"]}, output="a"),
    ),
    "before a tool": (
        "PreToolUse",
        {**HERE, **USED},
        replace(SAID, id="before toolu_1", skipped=NOT_OBSERVED),
    ),
    "stop": ("Stop", {**HERE, "stop_hook_active": True}, replace(SAID, kind="stop")),
    "stop of codex": ("Stop", {**HERE, "turn_id": "t"}, replace(SAID, kind="stop", agent="codex")),
    "stop in a subagent": (
        "Stop",
        {**HERE, "agent_id": "a1"},
        replace(SAID, kind="stop", subagent="a1", skipped=SUBAGENT),
    ),
    "stop of a subagent": (
        "SubagentStop",
        {**HERE, "agent_id": "a1"},
        replace(SAID, kind="stop", id="subagent a1", subagent="a1", skipped=SUBAGENT),
    ),
    "stop of nobody": ("SubagentStop", HERE, replace(SAID, kind="stop", skipped=SUBAGENT)),
    "compaction": ("PreCompact", HERE, replace(SAID, skipped=NOT_OBSERVED)),
    "end": ("SessionEnd", {**HERE, "reason": "clear"}, replace(SAID, skipped=NOT_OBSERVED)),
    "notification": ("Notification", {**HERE, "message": "x"}, replace(SAID, skipped=NOT_OBSERVED)),
    "cursor: prompt": ("beforeSubmitPrompt", {**ROOM, "prompt": "Hi"}, replace(CURSOR, kind="prompt", text="Hi")),
    "cursor: command": (
        "afterShellExecution",
        {**ROOM, **COMMAND},
        replace(CURSOR, tool="Shell", input={"command": "ls"}, output="a"),
    ),
    "cursor: mcp": (
        "afterMCPExecution",
        {**ROOM, "tool_name": "find", "tool_input": '{"a": 1}', "result_json": '["b"]'},
        replace(CURSOR, tool="find", input={"a": 1}, output=["b"]),
    ),
    "cursor: mcp in words": (
        "afterMCPExecution",
        {**ROOM, "tool_name": "find", "tool_input": "{", "output": "b"},
        replace(CURSOR, tool="find", input="{", output="b"),
    ),
    "cursor: edit": (
        "afterFileEdit",
        {**ROOM, "file_path": "/home/me/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
        replace(
            CURSOR,
            tool="Edit",
            input={"file_path": "/home/me/p/a.py", "edits": [{"old_string": "a", "new_string": "b"}]},
        ),
    ),
    "cursor: stop": ("stop", {**ROOM, "status": "completed"}, replace(CURSOR, kind="stop")),
    "cursor: no folder": ("stop", {"conversation_id": "c-1", "cwd": "/r"}, replace(CURSOR, kind="stop", project="/r")),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_each_event_tells_what_its_payload_says(name: str) -> None:
    event, given_, said = PAYLOADS[name]

    assert CONTRACTS[event].said(given_) == said


def test_every_event_that_an_agent_has_is_there() -> None:
    told = {event for event, _, _ in PAYLOADS.values()}

    assert told == {name for name in CONTRACTS if "." not in name}
    assert set(CONTRACTS) == set(Hooks.events)


# --- what it is answered -----------------------------------------------------------------------------------------


def answered(event: str, text: str) -> bytes:
    told = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": told}, ensure_ascii=False).encode()


@pytest.mark.parametrize("name", PAYLOADS)
async def test_answers_are_these_bytes(doubles: Doubles, name: str) -> None:
    event, given_, said = PAYLOADS[name]
    expected = {
        "SessionStart": answered("SessionStart", CONTEXT),
        "UserPromptSubmit": answered("UserPromptSubmit", BLOCK),
        "beforeSubmitPrompt": b'{"continue": true}',
    }.get(event, b"{}")

    assert await doubles.ask(event, given_) == expected
    assert doubles.rows() == [(said.session, said.kind, "skipped" if said.skipped else "waiting", said.skipped)]
    assert (doubles.failed, doubles.hooks.statistics()) == ([], {"requests": 1, "failed": 0, "late": 0})


@pytest.mark.parametrize("event", [one.event for one in claude.CONTRACTS])
@pytest.mark.parametrize("codex", [{}, {"turn_id": "t"}])
async def test_answers_to_claude_and_codex_have_no_key_that_either_does_not_know(
    doubles: Doubles, event: str, codex: dict[str, str]
) -> None:
    """Codex refuses an answer with any other; a decision must never be there at all."""
    answer = json.loads(await doubles.ask(event, {**HERE, **codex, "prompt": "Hi"}))

    assert set(answer) <= {"hookSpecificOutput"}
    assert set(answer.get("hookSpecificOutput", {})) <= {"hookEventName", "additionalContext"}
    assert answer.get("hookSpecificOutput", {"hookEventName": event})["hookEventName"] == event


async def test_when_there_is_nothing_to_tell_the_answer_is_empty(doubles: Doubles) -> None:
    doubles.context = doubles.block = ""

    assert await doubles.ask("SessionStart", HERE) == b"{}"
    assert await doubles.ask("UserPromptSubmit", {**HERE, "prompt": "Hi"}) == b"{}"


async def test_a_prompt_is_looked_up_in_its_session(doubles: Doubles) -> None:
    await doubles.ask("UserPromptSubmit", {**HERE, "prompt": "Which database?"})

    assert doubles.turns == [Turn("Which database?", session="s-1")]


async def test_what_is_private_in_a_prompt_is_not_looked_up(doubles: Doubles) -> None:
    await doubles.ask("UserPromptSubmit", {**HERE, "prompt": "a <private>hun" + "ter2"})

    assert "hun" + "ter2" not in doubles.turns[0].message


async def test_what_keeps_events_from_being_observed_is_said_first(doubles: Doubles) -> None:
    doubles.trouble = "observing has been failing since noon \U0001f41b"

    text = json.loads(await doubles.ask("SessionStart", HERE))["hookSpecificOutput"]["additionalContext"]

    assert text == f"{HEAD}\nWarning from livememfs: observing has been failing since noon \ufffd\n\n{PAGE}"
    assert b"Warning" not in await doubles.ask("UserPromptSubmit", {**HERE, "prompt": "Hi"})


async def test_the_stop_of_a_subagent_is_counted_and_ends_no_session(doubles: Doubles) -> None:
    await doubles.ask("SubagentStop", {**HERE, "agent_id": "a1"})
    await doubles.ask("SubagentStop", {**HERE, "agent_id": "a1"})
    await doubles.ask("Stop", {**HERE, "agent_id": "a2"})
    await doubles.ask("Stop", HERE)

    assert doubles.rows() == [("s-1", "stop", "skipped", SUBAGENT)] * 2 + [("s-1", "stop", "waiting", "")]


# --- what goes wrong ---------------------------------------------------------------------------------------------

WRONG: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "a text": b'"session_id"',
    "null": b"null",
    "no session": b'{"cwd": "/p"}',
    "an empty session": b'{"session_id": " ", "conversation_id": ""}',
    "a session that is no text": b'{"session_id": 7, "conversation_id": ["c"]}',
    "nested without end": b"[" * 100_000,
    "an object nested without end": b'{"session_id": ' * 100_000,
    "a number without end": b'{"a": ' + b"1" * 10_000 + b"}",
}


@pytest.mark.parametrize("event", CONTRACTS)
@pytest.mark.parametrize("name", WRONG)
async def test_whatever_is_no_payload_is_answered_with_nothing_and_told_once(
    doubles: Doubles, event: str, name: str
) -> None:
    answer = await doubles.ask(event, WRONG[name])

    assert answer == (b'{"continue": true}' if event.endswith("beforeSubmitPrompt") else b"{}")
    ((space, path, error),) = doubles.failed
    assert (space, path) == (SPACE, f"alpha/.hooks/{event}")
    assert isinstance(error, HookRefused)
    assert doubles.rows() == []
    assert doubles.hooks.statistics() == {"requests": 1, "failed": 1, "late": 0}


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
@pytest.mark.parametrize("error", [NoSpace("full"), RuntimeError("a bug")], ids=["ours", "a bug"])
async def test_when_the_memory_breaks_the_event_is_kept_and_the_agent_goes_on(
    doubles: Doubles, event: str, error: Exception, expect_log: Callable[[str], None]
) -> None:
    expect_log("a hook failed")
    doubles.breaks = error

    assert await doubles.ask(event, {**HERE, "prompt": "Hi"}) == b"{}"
    assert len(doubles.failed) == 1
    assert len(doubles.rows()) == 1


async def test_when_nothing_can_be_kept_that_is_told_and_the_agent_goes_on(
    doubles: Doubles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> bool:
        raise NoSpace("the disk is full")

    monkeypatch.setattr(Inbox, "add", full)

    assert await doubles.ask("PostToolUse", {**HERE, **USED}) == b"{}"
    assert [type(error) for _, _, error in doubles.failed] == [NoSpace]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
async def test_an_agent_waits_no_longer_than_it_is_asked_to(
    doubles: Doubles, event: str, autojump_clock: trio.testing.MockClock
) -> None:
    doubles.takes = PATIENCE * 0.9
    assert await doubles.ask(event, {**HERE, "prompt": "Hi"}) != b"{}"

    doubles.takes, began = 3_600.0, trio.current_time()
    assert await doubles.ask(event, {**HERE, "session_id": "s-2", "prompt": "Hi"}) == b"{}"

    assert trio.current_time() - began == pytest.approx(PATIENCE)
    assert doubles.hooks.statistics() == {"requests": 2, "failed": 0, "late": 1}
    assert [row[:2] for row in doubles.rows()][-1][0] == "s-2"  # what it told is kept


async def test_an_empty_prompt_is_counted_and_answered(doubles: Doubles) -> None:
    assert await doubles.ask("UserPromptSubmit", HERE) != b""
    assert doubles.rows() == [("s-1", "prompt", "skipped", EMPTY)]


# --- payloads ----------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters()),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(alphabet=st.characters()), one, max_size=3),
    max_leaves=5,
)
FIELDS = [
    "session_id", "conversation_id", "cwd", "prompt", "tool_name", "tool_input", "tool_response", "tool_use_id",
    "agent_id", "workspace_roots", "edits", "command", "output", "result_json", "source", "turn_id", "file_path",
]  # fmt: skip


@given(st.sampled_from(sorted(CONTRACTS)), st.dictionaries(st.sampled_from(FIELDS), values, max_size=6))
def test_whatever_the_fields_are_the_answer_is_json_and_what_goes_wrong_is_told_once(
    event: str, given_: dict[str, Any]
) -> None:
    doubles = Doubles()

    answer = trio.run(doubles.ask, event, given_)

    assert isinstance(json.loads(answer), dict)
    assert len(doubles.rows()) + len(doubles.failed) == 1
    assert all(isinstance(error, HookRefused) for _, _, error in doubles.failed)


def test_half_a_character_is_replaced_in_names_and_values() -> None:
    assert payload(rb'{"\ud83d": ["a\udc1b", {"b": "\ud83d\udc1b"}]}', path="x") == {
        "\ufffd": ["a\ufffd", {"b": "\U0001f41b"}]
    }
