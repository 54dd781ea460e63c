"""A program as the model: what it is given, what of its answer counts, and that nothing of it is left.

The programs are small scripts, so these tests live in real time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from livememfs.errors import CommandFailed, ContextOverflow, ModelError, ModelTimedOut, ReplyRefused
from livememfs.llm.base import ChatMessage, ChatReply
from livememfs.llm.command import CommandChat

MESSAGES = [ChatMessage("system", "Answer in JSON."), ChatMessage("user", "Wie geht's? \u00e9\u4e2d")]
PATIENCE = 20.0
PATH = {"PATH": os.environ["PATH"]}
Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write a program of Python, by its name, and give its path."""

    def write(text: str, name: str = "ask") -> str:
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\n{text}\n")
        path.chmod(0o700)
        return str(path)

    return write


async def ask(program: str, *, model: str = "", timeout: float = PATIENCE, **environment: str) -> ChatReply:
    chat = CommandChat(program, model, {**PATH, **environment}, timeout)
    return await chat.chat(MESSAGES, max_tokens=77, temperature=0.25)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> None:
    """Wait until a process that was killed is no more."""
    with trio.fail_after(PATIENCE):
        while is_alive(pid):
            await trio.sleep(0.01)


# --- what it is given -------------------------------------------------------------------------------------------


async def test_a_prompt_is_read_from_stdin_and_stands_on_no_command_line(script: Script) -> None:
    program = script("print(json.dumps([sys.stdin.read(), sys.argv[1:]]))")

    reply = await ask(f"{program} --quiet 'two words'")

    assert reply == ChatReply(reply.text, "stop", "command:ask")
    assert json.loads(reply.text) == ["Answer in JSON.\n\nWie geht's? \u00e9\u4e2d", ["--quiet", "two words"]]


async def test_what_is_private_is_not_asked(script: Script) -> None:
    chat = CommandChat(script("sys.stdout.write(sys.stdin.read())"), "", PATH, PATIENCE)

    reply = await chat.chat([ChatMessage("user", "a <private>b</private> c")], max_tokens=1, temperature=0)

    assert reply.text == "a [private] c"


async def test_it_runs_in_an_empty_folder_of_its_own_that_is_gone_afterwards(script: Script) -> None:
    program = script("print(json.dumps([os.getcwd(), os.listdir(), os.stat('.').st_mode & 0o777])); open('left', 'w')")

    folder, names, mode = json.loads((await ask(program)).text)

    assert (names, mode) == ([], 0o700)
    assert not Path(folder).exists()


async def test_it_has_the_environment_it_is_given_the_mark_and_the_model(script: Script) -> None:
    program = script("print(json.dumps(dict(os.environ)))")

    reply = await ask(program, model="m-1", HOME="/home/me")

    assert reply.model == "m-1"
    environment = json.loads(reply.text)
    assert environment.items() >= {"LIVEMEMFS_ASKING": "1", "LLMAAS_MODEL": "m-1", "HOME": "/home/me"}.items()
    assert "PYTEST_CURRENT_TEST" not in environment


# --- what of its answer counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", ReplyRefused, "it has no text"),
        ("print()", ReplyRefused, "it has no text"),
        ("sys.stdout.buffer.write(b'\\xff{}')", ReplyRefused, "it is not UTF-8"),
        ("sys.stdout.write('x' * 9_000_000); sys.stdout.flush(); time.sleep(99)", ReplyRefused, "longer than"),
        ("sys.exit('Not logged in')", CommandFailed, "ask, status 1: Not logged in"),
        ("print('half a reply'); sys.exit(3)", CommandFailed, "ask, status 3: half a reply"),
        ("sys.stdout.buffer.write(b'\\xff'); sys.exit(3)", CommandFailed, "ask, status 3: it said nothing"),
        ("os.kill(os.getpid(), 9)", CommandFailed, "ask, ended by signal 9: it said nothing"),
        ("sys.exit('Prompt is too long')", ContextOverflow, "Prompt is too long"),
        ("sys.stderr.write('x' * 900_000 + ' the end'); sys.exit(1)", CommandFailed, "xx the end"),
        ("sys.exit('key sk-ant-api03-' + 'a1B2' * 24)", CommandFailed, "[redacted: "),
    ],
)
async def test_each_way_of_failing_has_its_error(text: str, error: type[ModelError], said: str, script: Script) -> None:
    with pytest.raises(error) as caught:
        await ask(script(text))

    assert type(caught.value) is error
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500
    assert "sk-ant-api03" not in str(caught.value)


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="nobody cannot be started: No such file"):
        await ask(str(tmp_path / "nobody"))


async def test_a_program_need_not_read_what_it_is_asked(script: Script) -> None:
    chat = CommandChat(script("print('{}')"), "", PATH, PATIENCE)

    reply = await chat.chat([ChatMessage("user", "x" * 1_000_000)], max_tokens=1, temperature=0)

    assert reply.text == "{}\n"


# --- its end ----------------------------------------------------------------------------------------------------

CHILD = "child = subprocess.Popen(['sleep', '99']); open({path!r}, 'w').write(str(child.pid)); {then}"


@pytest.mark.parametrize("then", ["print('{}')", "time.sleep(99)"])
async def test_what_it_has_started_ends_with_it(then: str, script: Script, tmp_path: Path) -> None:
    """Whether it replied, and its child holds the pipes, or its time is over."""
    program, pid = script(CHILD.format(path=str(tmp_path / "pid"), then=then)), tmp_path / "pid"

    if then.startswith("print"):
        assert (await ask(program)).text == "{}\n"
    else:
        with pytest.raises(ModelTimedOut, match=r"within 1\.5 seconds"):
            await ask(program, timeout=1.5)

    await gone(int(pid.read_text()))


async def test_a_call_that_is_cancelled_leaves_no_process(
    script: Script, tmp_path: Path, nursery: trio.Nursery
) -> None:
    pid = tmp_path / "pid"
    text = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); open({str(pid)!r}, 'w').write(str(os.getpid()))"
    nursery.start_soon(ask, script(f"{text}; time.sleep(99)"))
    with trio.fail_after(PATIENCE):
        while not pid.exists() or not pid.read_text():
            await trio.sleep(0.01)

    nursery.cancel_scope.cancel()

    with trio.CancelScope(shield=True):
        await gone(int(pid.read_text()))


async def test_one_is_asked_at_a_time_and_the_wait_for_it_counts_for_nobody(script: Script, tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = f"open({str(log)!r}, 'a').write"
    chat = CommandChat(script(f"{note}('<'); time.sleep(0.5); {note}('>'); print('{{}}')"), "", PATH, 2.0)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(lambda: chat.chat(MESSAGES, max_tokens=1, temperature=0))

    assert log.read_text() == "<>" * 5
    assert chat.statistics().requests == 5


# --- agents known by name ----------------------------------------------------------------------------------------

CLAUDE = {
    "type": "result",
    "is_error": False,
    "result": '{"ok": true}',
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 7},
}
CODEX: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "1"},
    {"type": "item.completed", "item": {"type": "error", "message": "a remark"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "I think."}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": '{"ok": true}'}},
    {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 7}},
]


def lines(*events: dict[str, Any]) -> str:
    return "\n".join(json.dumps(event) for event in events)


@pytest.mark.parametrize(
    ("name", "given", "output"),
    [
        ("claude", "", lines(CLAUDE)),
        ("claude", "-p", lines(CLAUDE)),
        ("codex", "", lines(*CODEX)),
        ("qwen", "", json.dumps([{"type": "system", "tools": []}, CLAUDE])),
    ],
)
async def test_an_agent_is_asked_like_a_model(name: str, given: str, output: str, script: Script) -> None:
    """Without tools, hooks and servers; its system message in a file, the rest on stdin; its tokens are counted."""
    seen = Path(script("", "seen"))
    program = script(
        f"system = os.environ.get('QWEN_SYSTEM_MD')\n"
        f"for word in sys.argv:\n"
        f"    if 'instructions.md' in word: system = word.split('=')[-1].strip('\"')\n"
        f"open({str(seen)!r}, 'w').write(json.dumps([sys.argv[1:], open(system).read(), sys.stdin.read()]))\n"
        f"print({output!r})",
        name,
    )

    reply = await ask(f"{program} {given}", model="m-1")

    assert reply == ChatReply('{"ok": true}', "stop", "m-1", 10, 7, 17)
    words, system, prompt = json.loads(seen.read_text())
    assert (system, prompt) == ("Answer in JSON.", "Wie geht's? \u00e9\u4e2d")
    assert words[-2:] == ["--model", "m-1"]
    if name == "claude":
        assert words[words.index("--tools") + 1] == ""
        assert {"-p", "--safe-mode", "--strict-mcp-config", "--no-session-persistence"} <= set(words)
    elif name == "qwen":
        assert {"--bare", "read_file", "edit", "run_shell_command"} <= set(words)
    else:
        assert words[0] == "exec"
        assert {"features.hooks=false", "features.shell_tool=false", "--ignore-user-config", "--ephemeral"} <= {*words}


async def test_a_verb_that_somebody_wrote_is_not_written_twice(script: Script) -> None:
    program = script(f"print({lines(*CODEX)!r} if sys.argv[1:4] == ['exec', '-c', 'x=1'] else '')", "codex")

    assert (await ask(f"{program} exec -c x=1")).text == '{"ok": true}'


@pytest.mark.parametrize(
    ("name", "output", "error", "said"),
    [
        ("claude", lines({**CLAUDE, "is_error": True, "result": "Not logged in"}), CommandFailed, "Not logged in"),
        ("qwen", json.dumps([{**CLAUDE, "result": "[API Error: 429]"}]), CommandFailed, "API Error: 429"),
        ("claude", lines({**CLAUDE, "result": ""}), ReplyRefused, "it has no text"),
        ("claude", "no JSON", ReplyRefused, "it has no text"),
        ("claude", "[" * 100_000, ReplyRefused, "it has no text"),
        ("codex", lines({"type": "turn.failed", "error": {"message": "401 Unauthorized"}}), CommandFailed, "401"),
        ("codex", lines({"type": "error", "message": "stream lost"}, *CODEX[:2]), CommandFailed, "stream lost"),
        ("codex", lines({"type": "turn.completed", "usage": "many"}), ReplyRefused, "it has no text"),
    ],
)
async def test_what_an_agent_says_of_itself_is_no_reply(
    name: str, output: str, error: type[ModelError], said: str, script: Script
) -> None:
    with pytest.raises(error, match=said):
        await ask(script(f"print({output!r})", name))


async def test_a_reply_that_broke_off_is_told(script: Script) -> None:
    output = lines({**CLAUDE, "stop_reason": "max_tokens"})

    assert (await ask(script(f"print({output!r})", "claude"))).finish_reason == "max_tokens"


async def test_what_codex_tried_again_is_no_failure(script: Script) -> None:
    output = lines({"type": "error", "message": "Reconnecting... 1/5"}, *CODEX)

    assert (await ask(script(f"print({output!r})", "codex"))).text == '{"ok": true}'
