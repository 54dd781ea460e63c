"""Hooks: what each event tells, what it is answered byte for byte, and that no failure ever reaches an agent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from payloads import HERE, PAYLOADS, USED

from livememfs.agents import claude, codex
from livememfs.agents.contract import payload
from livememfs.agents.hooks import AGENTS, CONTRACTS, PATIENCE, Hooks
from livememfs.cache.database import Database
from livememfs.cache.inbox import Inbox
from livememfs.errors import HookRefused, LiveMemError, NoSpace
from livememfs.observing.capture import EMPTY, SUBAGENT, Capture
from livememfs.records.turn import Turn
from livememfs.testing.clock import ManualClock
from livememfs.text.own import END, HEAD

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
FAMILY_NAMES = ("", "claude.", "codex.", "qwen.", "opencode.")
ROLLOUT = (Path(__file__).parent / "golden" / "codex-rollout.jsonl").read_bytes().splitlines(keepends=True)
"""Two commands of Codex 0.169, codes 0 and 3: the call, how it ended, and what its model is told after the hook."""
SPACE = "alpha"
PAGE = f"# Memory of alpha\n{END}\n"
CONTEXT = f"{HEAD}\n{PAGE}"
ABOUT = f"{HEAD}\nAbout this file\n{END}\n"
BLOCK = f"{HEAD}\nGood to know here, whatever is asked:\n- fact: we chose PostgreSQL\n{END}\n"


class Doubles:
    """Everything around the hooks: what it answers, and what it heard."""

    def __init__(self) -> None:
        self.database = Database(None)
        self.turns: list[Turn] = []
        self.forgotten: list[str] = []
        self.files: list[tuple[str, str, str]] = []
        self.failed: list[tuple[str, str, LiveMemError]] = []
        self.context, self.block, self.trouble, self.takes = CONTEXT, BLOCK, "", 0.0
        self.breaks: Exception | None = None
        self.capture = Capture(Inbox(self.database), ManualClock())
        self.hooks = Hooks(
            self.capture,
            self,
            self.page,
            lambda: self.trouble,
            lambda *failure: self.failed.append(failure),  # type: ignore[arg-type]  # it has a `turn`
        )

    async def page(self, space: str, patience: float) -> str:
        await self.work()
        return self.context

    async def forget(self, space: str, session: str) -> None:
        self.forgotten.append(session)

    async def file(self, space: str, session: str, path: str, project: str = "") -> str:
        self.files.append((session, path, project))
        await self.work()
        return ABOUT

    async def turn(self, space: str, turn: Turn) -> SimpleNamespace:
        self.turns.append(turn)
        await self.work()
        return SimpleNamespace(block=self.block)

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


@pytest.mark.parametrize("name", PAYLOADS)
def test_each_event_tells_what_its_payload_says(name: str) -> None:
    event, given_, said = PAYLOADS[name]

    assert CONTRACTS[event].said(given_) == said


def test_every_event_that_an_agent_has_is_there() -> None:
    events = {event for event, _, _ in PAYLOADS.values()}

    assert events == set(CONTRACTS) == set(Hooks.events)
    assert len(CONTRACTS) == sum(len(agent.CONTRACTS) for agent in AGENTS)  # no two have one file


# --- what it is answered -----------------------------------------------------------------------------------------


def answered(event: str, text: str) -> bytes:
    fields = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": fields}, ensure_ascii=False).encode()


def flat(**fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


ANSWERS = {
    **{f"{agent}SessionStart": answered("SessionStart", CONTEXT) for agent in FAMILY_NAMES},
    **{f"{agent}UserPromptSubmit": answered("UserPromptSubmit", BLOCK) for agent in FAMILY_NAMES},
    **{f"{agent}PreToolUse": answered("PreToolUse", ABOUT) for agent in FAMILY_NAMES},
    **{f"{agent}PreCompact": b"" for agent in FAMILY_NAMES},
    "gemini.SessionStart": answered("SessionStart", CONTEXT),
    "gemini.BeforeAgent": answered("BeforeAgent", BLOCK),
    "copilot.sessionStart": flat(additionalContext=CONTEXT),
    "copilot.userPromptSubmitted": flat(additionalContext=BLOCK),
    "cline.TaskStart": flat(cancel=False, contextModification=CONTEXT),
    "cline.TaskResume": flat(cancel=False, contextModification=CONTEXT),
    "qwen.UserPromptSubmit": answered("UserPromptSubmit", CONTEXT + BLOCK),
    "cline.PreToolUse": flat(cancel=False, contextModification=ABOUT),
    "cline.UserPromptSubmit": flat(cancel=False, contextModification=BLOCK),
    "beforeSubmitPrompt": b'{"continue": true}',
    "cursor.beforeSubmitPrompt": flat(**{"continue": True}, additional_context=BLOCK),
    "cursor.sessionStart": flat(additional_context=CONTEXT),
    **{event: b"" for event in CONTRACTS if event.startswith("windsurf.")},
}
"""What is answered by file; `{}` by all others."""


def plain(event: str) -> bytes:
    """What is answered when there is nothing to tell."""
    return CONTRACTS[event].plain.encode()


@pytest.mark.parametrize("name", PAYLOADS)
async def test_answers_are_these_bytes(doubles: Doubles, name: str) -> None:
    event, given_, said = PAYLOADS[name]

    assert await doubles.ask(event, given_) == ANSWERS.get(event, b"{}")
    words = [(said.session, "said", "waiting", "")] if said.kind == "stop" and said.text else []
    assert doubles.rows() == [*words, (said.session, said.kind, "skipped" if said.skipped else "waiting", said.skipped)]
    assert (doubles.failed, doubles.hooks.statistics()) == ([], {"requests": 1, "failed": 0, "late": 0})


@pytest.mark.parametrize("event", [one.file for one in (*claude.CONTRACTS, *codex.CONTRACTS)])
@pytest.mark.parametrize("turn", [{}, {"turn_id": "t"}])
async def test_answers_to_claude_and_codex_have_no_key_that_either_does_not_know(
    doubles: Doubles, event: str, turn: dict[str, str]
) -> None:
    """Codex refuses an answer with any other; a decision must never be there at all."""
    answer = json.loads(await doubles.ask(event, {**HERE, **turn, "prompt": "Hi"}) or b"{}")
    event = event.rpartition(".")[2]

    assert set(answer) <= {"hookSpecificOutput"}
    assert set(answer.get("hookSpecificOutput", {})) <= {"hookEventName", "additionalContext"}
    assert answer.get("hookSpecificOutput", {"hookEventName": event})["hookEventName"] == event


async def test_when_there_is_nothing_to_tell_the_answer_is_empty(doubles: Doubles) -> None:
    doubles.context = doubles.block = ""

    assert await doubles.ask("SessionStart", HERE) == b"{}"
    assert await doubles.ask("UserPromptSubmit", {**HERE, "prompt": "Hi"}) == b"{}"


async def test_a_prompt_is_looked_up_in_its_session(doubles: Doubles) -> None:
    await doubles.ask("UserPromptSubmit", {**HERE, "prompt": "Which database?"})

    assert doubles.turns == [Turn("Which database?", session="s-1", folder="/home/me/p")]


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


@pytest.mark.parametrize(("event", "field"), [("Stop", "transcript_path"), ("copilot.agentStop", "transcriptPath")])
async def test_last_words_that_a_stop_does_not_tell_are_read_from_its_transcript(
    doubles: Doubles, tmp_path: Path, event: str, field: str
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"type": "assistant", "message": {"role": "assistant", "content": "Postgres it is"}}\n')

    await doubles.ask(event, {"session_id": "s-1", "sessionId": "s-1", field: str(path)})

    assert [row[:3] for row in doubles.rows()] == [("s-1", "said", "waiting"), ("s-1", "stop", "waiting")]


@pytest.mark.parametrize("event", ["PostToolUse", "codex.PostToolUse"])
@pytest.mark.parametrize(
    ("call", "lines", "failed"),
    [("call_10", 2, False), ("call_11", 5, True), ("call_10", 6, False), ("call_11", 4, False), ("call_1", 6, False)],
)
async def test_a_command_of_codex_failed_when_its_rollout_says_so_as_the_hook_runs(
    doubles: Doubles, tmp_path: Path, event: str, call: str, lines: int, failed: bool
) -> None:
    """Lines that are not written yet, or of another command, say nothing."""
    path = tmp_path / "rollout-2026.jsonl"
    path.write_bytes(b"".join(ROLLOUT[:lines]) + b'{"call_11')
    used = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_response": "kestrel-42", "tool_use_id": call}

    await doubles.ask(event, {**HERE, "turn_id": "t", **used, "transcript_path": str(path)})

    [(line,)] = doubles.database.rows("SELECT line FROM event")
    assert json.loads(line).get("failed", False) is failed


async def test_a_rollout_says_nothing_of_tools_that_are_no_commands_and_of_other_agents(
    doubles: Doubles, tmp_path: Path
) -> None:
    path = tmp_path / "rollout-2026.jsonl"
    path.write_bytes(b"".join(ROLLOUT))
    used = {**USED, "tool_use_id": "call_11", "transcript_path": str(path)}

    await doubles.ask("codex.PostToolUse", {**HERE, **used})
    await doubles.ask("claude.PostToolUse", {**HERE, **used, "session_id": "s-2", "tool_name": "Bash"})

    assert len(doubles.rows()) == 2
    assert not [line for (line,) in doubles.database.rows("SELECT line FROM event") if json.loads(line).get("failed")]


@pytest.mark.parametrize(
    ("event", "given_", "forgets"),
    [
        *((f"{agent}PreCompact", {"session_id": "g"}, True) for agent in FAMILY_NAMES),
        *(
            (f"{agent}SessionStart", {"session_id": "g", "source": source}, source in ("compact", "clear"))
            for agent in FAMILY_NAMES
            for source in ("startup", "resume", "compact", "clear")
        ),
        ("gemini.PreCompress", {"session_id": "g", "trigger": "manual"}, True),
        ("gemini.PreCompress", {"session_id": "g", "trigger": "auto"}, False),  # before each request to its model
        ("gemini.SessionStart", {"session_id": "g", "source": "clear"}, True),
        ("gemini.SessionStart", {"session_id": "g", "source": "resume"}, False),
        ("copilot.preCompact", {"sessionId": "g"}, True),
        ("cline.PreCompact", {"taskId": "g"}, True),
        ("cursor.preCompact", {"conversation_id": "g"}, True),
    ],
)
async def test_what_was_told_is_forgotten_before_a_compaction_and_when_a_session_begins_without_it(
    doubles: Doubles, event: str, given_: dict[str, str], forgets: bool
) -> None:
    await doubles.ask(event, given_)

    assert doubles.forgotten == ["g"] * forgets


async def test_a_session_that_goes_on_is_not_told_again_what_it_began_with(doubles: Doubles) -> None:
    """Claude Code and Codex keep it in the conversation; after a compaction it is gone."""
    start, go_on = {**HERE, "source": "startup"}, {**HERE, "source": "resume"}
    assert await doubles.ask("claude.SessionStart", start) == answered("SessionStart", CONTEXT)
    assert await doubles.ask("claude.SessionStart", go_on) == b"{}"
    assert await doubles.ask("claude.SessionStart", {**go_on, "source": "compact"}) != b"{}"
    assert await doubles.ask("claude.SessionStart", {**go_on, "session_id": "another"}) != b"{}"
    assert await doubles.ask("gemini.SessionStart", go_on) != b"{}"

    doubles.context = CONTEXT.replace("alpha", "alpha, with something new")
    assert await doubles.ask("claude.SessionStart", go_on) != b"{}"
    assert await doubles.ask("claude.SessionStart", go_on) == b"{}"


async def test_qwen_code_begins_with_a_prompt_where_it_tells_of_no_session(doubles: Doubles) -> None:
    prompt = {**HERE, "prompt": "Which database?"}
    pages = [(await doubles.ask("qwen.UserPromptSubmit", prompt)).count(CONTEXT.splitlines()[1].encode()) for _ in "ab"]
    assert pages == [1, 0]

    begun = {**HERE, "session_id": "begun"}
    await doubles.ask("qwen.SessionStart", {**begun, "source": "startup"})
    for agent, session in (("qwen", "begun"), ("claude", "new")):
        answer = await doubles.ask(f"{agent}.UserPromptSubmit", {**prompt, "session_id": session})
        assert CONTEXT.splitlines()[1].encode() not in answer


async def test_only_before_a_file_is_read_or_edited_it_is_asked_what_is_known_of_it(doubles: Doubles) -> None:
    uses: list[tuple[str, dict[str, str]]] = [
        ("Read", {"file_path": "/p/a.py"}),
        ("edit", {"filePath": "b.py"}),
        ("Bash", {"command": "ls"}),
        ("Grep", {"path": "/p/c.py"}),
        ("Write", {"content": "x"}),
    ]
    for tool, given_ in uses:
        await doubles.ask("PreToolUse", {**HERE, "tool_name": tool, "tool_input": given_})

    assert doubles.files == [("s-1", "/p/a.py", "/home/me/p"), ("s-1", "b.py", "/home/me/p")]


async def test_a_context_that_is_longer_than_cursor_takes_is_cut_and_keeps_its_last_line(doubles: Doubles) -> None:
    doubles.context = HEAD + "\na line" * 3_000 + f"\n{END}\n"

    context = json.loads(await doubles.ask("cursor.sessionStart", {"session_id": "c-1"}))["additional_context"]

    assert len(context) <= 10_000
    assert context.endswith(f"a line\n{END}\n")


async def test_four_runs_of_a_command_in_cursor_are_four_events_and_each_told_twice_is_one(doubles: Doubles) -> None:
    """The same output each time; project and user may both have the hook, and then each tells of each run."""
    run = {"conversation_id": "c-1", "generation_id": "g-1", "command": "npm test", "output": "15 passed"}
    named = {**run, "tool_name": "Shell", "tool_input": {"command": "npm test"}, "duration": 900}

    for number in range(4):
        for _ in range(2):
            await doubles.ask("afterShellExecution", {**run, "duration": 900 + number})
            await doubles.ask("cursor.postToolUse", {**named, "tool_use_id": f"call_{number}"})

    assert len(doubles.rows()) == 8


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


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (event, name)
        for turn, event in enumerate(CONTRACTS)
        for number, name in enumerate(WRONG)
        # Every event has three of them, and every one comes at a fourth of the events; one event has them all.
        if LONG or turn == 0 or (turn + number) % 4 == 0
    ],
)
async def test_whatever_is_no_payload_is_answered_with_nothing_and_told_once(
    doubles: Doubles, event: str, name: str
) -> None:
    answer = await doubles.ask(event, WRONG[name])

    assert answer == plain(event)
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
    "last_assistant_message", "transcript_path", "sessionId", "taskId", "trajectory_id", "tool_info", "toolArgs",
    "toolResult", "postToolUse", "tool_result", "tool_output", "error", "text", "duration", "timestamp", "turn",
]  # fmt: skip


@given(st.sampled_from(sorted(CONTRACTS)), st.dictionaries(st.sampled_from(FIELDS), values, max_size=6))
def test_whatever_the_fields_are_the_answer_is_json_and_what_goes_wrong_is_told_once(
    event: str, given_: dict[str, Any]
) -> None:
    doubles = Doubles()

    answer = trio.run(doubles.ask, event, given_)

    assert isinstance(json.loads(answer or b"{}"), dict)
    beside_words = [row for row in doubles.rows() if row[1] != "said"]
    assert len(beside_words) + len(doubles.failed) == 1 or (not beside_words and len(doubles.rows()) == 1)
    assert all(isinstance(error, HookRefused) for _, _, error in doubles.failed)


def test_half_a_character_is_replaced_in_names_and_values() -> None:
    assert payload(rb'{"\ud83d": ["a\udc1b", {"b": "\ud83d\udc1b"}]}', path="x") == {
        "\ufffd": ["a\ufffd", {"b": "\U0001f41b"}]
    }
