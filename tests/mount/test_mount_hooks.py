"""Agents at work, on a real mount: their hooks run through `sh`, by the commands that `livememfs install` writes."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import quote

import pytest
from hooking import WHO, answered, asking, hook, llm, observations, observed, settled, status, told, used, with_identity
from machine import LONG, SPACE, Mount, StartMount, sh
from recorded import FAILED, KEPT, PRIVATE, PUBLIC, REPEATED, SESSION, Call, fates, recorded

from livememfs.agents.hooks import CONTRACTS
from livememfs.agents.install.command import HookCommand, memory_off
from livememfs.observing.observer import NOTHING_NEW
from livememfs.testing.llm import ScriptedLLM
from livememfs.testing.observer import LOOKED

__all__ = ["llm", "observed"]  # fixtures

LEAST_CALLS = 120
MOST_ASKED = 15
LINE = re.compile(r"^#([0-9a-f]{8}) ", re.MULTILINE)
Replay = list[tuple[Call, "CompletedProcess[bytes]"]]


def replay(mount: Mount) -> Replay:
    """Every call of the recorded session, one after the other."""
    space = mount / SPACE
    context = (space / "context.md").read_text()
    assert WHO in context
    return [(call, hook(space, call.event, call.request)) for call in recorded(space, context)]


# --- the recorded session --------------------------------------------------------------------------------------------


def expect_answer(call: Call, done: CompletedProcess[bytes]) -> None:
    """A status of 0, nothing on standard error, and JSON as the agent expects it."""
    assert (done.returncode, done.stderr) == (0, b""), call
    if call.event == "PreCompact":
        assert done.stdout == b""  # it would become a part of what the conversation is cut down to
        return
    answer = json.loads(done.stdout)
    if call.event == "SessionStart" or answer:
        found = answer["hookSpecificOutput"]
        assert answer == {"hookSpecificOutput": found}
        assert set(found) == {"hookEventName", "additionalContext"}
        assert found["hookEventName"] == call.event
        assert call.event in ("SessionStart", "UserPromptSubmit", "PreToolUse")
        assert found["additionalContext"]


def test_every_hook_of_a_session_answers_and_every_event_is_accounted_for(
    observed: Mount, llm: ScriptedLLM, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = replay(observed)
    events = settled(observed)

    assert len(calls) >= LEAST_CALLS
    assert {event for event in CONTRACTS if event[0].isupper()} == {one.event for one, _ in calls}
    for call, done in calls:
        expect_answer(call, done)
    given = fates([call for call, _ in calls])
    statistics, skipped = status(observed)["statistics"], Counter(events["skipped"])
    assert events["events"] == events["observed"] + skipped.total() + events["waiting"] + events["failed"]
    assert (statistics["capture"]["repeated"], statistics["hooks"]["failed"]) == (given[REPEATED], given[FAILED])
    assert events["events"] + given[REPEATED] + given[FAILED] == len(calls) == statistics["hooks"]["requests"]
    by_the_model = sum(call.fate == KEPT and call.tool in LOOKED for call, _ in calls)
    nothing_new = skipped.pop(NOTHING_NEW, 0)
    assert skipped.pop("only looked around") == by_the_model
    assert skipped == {fate: n for fate, n in given.items() if fate not in (KEPT, REPEATED, FAILED)}
    assert (events["waiting"], events["failed"]) == (0, 0)
    assert events["observed"] == given[KEPT] - by_the_model - nothing_new

    ids = [event for one in observations(folder) for event in one.events]
    worth = [call for call, _ in calls if call.fate == KEPT and call.tool and call.tool not in LOOKED]
    assert sorted(ids) == sorted(json.loads(call.request)["tool_use_id"] for call in worth)
    session = json.loads((folder / SPACE / "sessions" / SESSION / "session.json").read_text())
    assert (session["status"], session["source"]) == ("completed", "compact")
    assert session["events"] == {"observed": len(ids), "skipped": by_the_model}
    assert "Mend the login" in (folder / SPACE / "sessions" / SESSION / "summary.md").read_text()
    sessions = told(observed)
    assert 0 < sessions["calls"] == len(llm.requests) <= MOST_ASKED
    today = sessions["today"]
    with capsys.disabled():
        spent = f"{today['prompt_tokens']:,} tokens in and {today['completion_tokens']:,} out"
        print(f"\n{len(calls)} hook calls: {sessions['calls']} calls of the observer, {spent}")


# --- what is private -------------------------------------------------------------------------------------------------


def forms(text: str) -> set[bytes]:
    """How a text may be spelt: as it is, as JSON and as JSON in JSON, in a URL, and in base64 wherever it begins."""
    raw, once = text.encode(), json.dumps(text)[1:-1]
    plain = {text, once, json.dumps(once)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], quote(text)}
    inside = set()
    for before in range(3):
        whole = base64.b64encode(bytes(before) + raw)
        inside.add(whole[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])
    return {one.encode() for one in plain} | inside


def have(data: bytes, text: str) -> bool:
    return any(form in data for form in forms(text))


def everything(*folders: Path) -> dict[str, bytes]:
    """All bytes below some folders, by path: SQLite's files and logs are as good as any."""
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                with suppress(FileNotFoundError):  # an upload has ended: its bytes are under their own name by now
                    found[str(path)] = path.read_bytes()
    return found


def test_a_private_text_is_found_however_it_is_spelt() -> None:
    for text in PRIVATE:
        inside = [base64.b64encode(b"x" * before + text.encode() + b"yz") for before in range(3)]
        for spelling in [*inside, json.dumps([json.dumps(text)]).encode(), quote(text).encode(), text.encode()]:
            assert have(b"some " + spelling + b" more", text)
        assert not have(text[::-1].encode() + base64.b64encode(text[::-1].encode()), text)


@pytest.mark.parametrize("model", ["scripted", *(["builtin"] if LONG else [])])
def test_nothing_private_of_a_session_is_anywhere(
    start_mount: StartMount, folder: Path, tmp_path: Path, llm: ScriptedLLM, model: str
) -> None:
    """Neither while events wait nor afterwards; and everywhere there is what stands beside it, so it was looked for."""
    settings = {**asking(llm), "LIVEMEMFS_OBSERVE_MODEL": model, "LIVEMEMFS_LOG_LEVEL": "debug"}
    mount = with_identity(start_mount({"LIVEMEMFS_STORE": str(folder), **settings}))
    home = tmp_path / "home-mnt"

    calls = replay(mount)
    early = everything(home, folder)
    settled(mount)
    late = everything(home, folder)
    control = everything(mount / ".livememfs")
    shown = everything(mount / f"{SPACE}/sessions", mount / f"{SPACE}/observations")

    asked = {f"request {n}": json.dumps(one.body).encode() for n, one in enumerate(llm.requests)}
    answers = {f"answer {n}": done.stdout for n, (_, done) in enumerate(calls)}
    given = b"".join(call.request for call, _ in calls)
    assert all(have(given, text) for text in PRIVATE)
    for place in (early, late, control, shown, asked, answers):
        leaks = [(where, text) for where, data in place.items() for text in PRIVATE if have(data, text)]
        assert leaks == []
    assert any(have(data, PUBLIC) and path.endswith((".db", "-wal")) for path, data in early.items())
    assert any(have(data, PUBLIC) and path.endswith("prompts.ndjson") for path, data in late.items())
    assert bool(asked) == (model == "scripted")
    assert not asked or any(PUBLIC.encode() in data for data in asked.values())
    assert (home / "mnt.log").is_file()
    errors = [json.loads(line) for line in (mount / ".livememfs/errors.ndjson").read_text().splitlines()]
    assert {"privacy", "hook"} <= {line["operation"] for line in errors}
    ours = b"".join(asked.values()) + (folder / SPACE / "sessions" / SESSION / "prompts.ndjson").read_bytes()
    assert WHO.encode() in given
    assert WHO.encode() not in ours


# --- afterwards ------------------------------------------------------------------------------------------------------


def test_the_next_session_is_told_what_the_last_one_did(observed: Mount) -> None:
    space = observed / SPACE
    for number in range(5):
        answered(space, "PostToolUse", used(number, "first"))
    answered(space, "Stop", {"session_id": "first", "cwd": "/p"})
    settled(observed)

    answer = answered(space, "SessionStart", {"session_id": "second", "cwd": "/p", "source": "startup"})

    context = answer["hookSpecificOutput"]["additionalContext"]
    assert context == sh("cat context.md", cwd=space).stdout == sh("cat context.md", cwd=space).stdout
    assert "Mend the login" in context
    assert "**src/f0.py**" in context
    ids = LINE.findall(context)
    assert len(ids) == 3
    for number in ids:
        assert f'id: "{number}"\n' in sh(f"cat observations/{number}.md", cwd=space).stdout
        around = sh(f'cat "search/around:{number}.md"', cwd=space).stdout
        assert f"> #{number} " in around
        assert all(f"#{one} " in around for one in ids)
    assert sh("cat observations/00000000.md", cwd=space, status=1).stdout == ""


def test_a_session_that_resumes_is_summed_up_again(observed: Mount, llm: ScriptedLLM) -> None:
    space = observed / SPACE
    answered(space, "PostToolUse", used(1, "first"))
    answered(space, "Stop", {"session_id": "first"})
    settled(observed)
    answered(space, "SessionStart", {"session_id": "first", "source": "resume"})
    answered(space, "PostToolUse", used(2, "first"))
    answered(space, "Stop", {"session_id": "first"})
    settled(observed)

    session = json.loads(sh("cat sessions/first/session.json", cwd=space).stdout)
    assert (session["events"]["observed"], session["summed_up"], session["source"]) == (2, 2, "resume")
    assert len(llm.requests) == 2
    assert "The summary so far" in llm.requests[1].text


# --- other agents ----------------------------------------------------------------------------------------------------


def test_cursor_is_observed_by_its_five_events(observed: Mount, folder: Path) -> None:
    space = observed / SPACE
    common = {"conversation_id": "c-1", "generation_id": "g-1", "workspace_roots": ["/home/anna/shop"]}
    edits = [{"old_string": "a", "new_string": "b"}]
    calls: dict[str, dict[str, Any]] = {
        "beforeSubmitPrompt": {"prompt": "mend the basket", "attachments": []},
        "afterShellExecution": {"command": "make test", "output": "2 passed", "duration": 12},
        "afterMCPExecution": {"tool_name": "lookup", "tool_input": '{"q": 1}', "result_json": '{"found": true}'},
        "afterFileEdit": {"file_path": "/home/anna/shop/src/basket.py", "edits": edits},
        "stop": {"status": "completed", "loop_count": 0},
    }

    found = {one: answered(space, one, {**common, "hook_event_name": one, **more}) for one, more in calls.items()}
    events = settled(observed)

    assert found == {event: {"continue": True} if event == "beforeSubmitPrompt" else {} for event in calls}
    assert (events["events"], events["observed"]) == (5, 5)
    session = json.loads((folder / SPACE / "sessions/c-1/session.json").read_text())
    assert (session["agent"], session["project"], session["prompts"]) == ("cursor", "/home/anna/shop", 1)
    assert (folder / SPACE / "sessions/c-1/summary.md").is_file()
    assert {file for one in observations(folder) for file in one.files_modified} == {"src/basket.py"}


def test_codex_is_answered_what_it_knows_and_nothing_else(observed: Mount, folder: Path) -> None:
    space = observed / SPACE
    common = {"session_id": "x-1", "turn_id": "7", "cwd": "/p", "transcript_path": None, "model": "m"}
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"

    start = answered(space, "SessionStart", {**common, "source": "startup"})
    others = [
        answered(space, "PreToolUse", {**common, "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1"}),
        answered(
            space,
            "PostToolUse",
            {
                **common,
                "tool_name": "apply_patch",
                "tool_input": {"command": patch},
                "tool_response": "Done!",
                "tool_use_id": "t1",
            },
        ),
        answered(space, "Stop", {**common, "stop_hook_active": False, "last_assistant_message": None}),
    ]
    settled(observed)

    assert set(start) == {"hookSpecificOutput"}
    assert set(start["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert others == [{}, {}, {}]
    (one,) = observations(folder)
    assert (one.agent, one.files_modified) == ("codex", ("src/a.py",))


def test_the_commands_that_install_writes_are_those_that_are_tried_here(observed: Mount, tmp_path: Path) -> None:
    project, space = tmp_path / "shop", observed / SPACE
    project.mkdir()
    command = (
        f"python -m livememfs install claude-code --space {SPACE} --project {project} --mount {space.parent} --yes"
    )
    sh(command, cwd=project, env=observed.environment)
    settings = json.loads((project / ".claude/settings.local.json").read_text())["hooks"]
    found = {
        event: [one["command"] for group in groups for one in group["hooks"]] for event, groups in settings.items()
    }

    off = {"SessionStart": memory_off(str(space))}
    assert {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"} <= set(found)
    assert found == {event: [HookCommand(str(space), f"claude.{event}", off.get(event, "")).command] for event in found}
    assert not (project / "CLAUDE.md").exists()
