"""Agents at work, on a real mount: their hooks run through `sh`, by the commands that `livememfs install` writes."""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import quote

import pytest
from cloud import Bucket
from hooking import answered, asking, hook, metered, observations, settled, told, used
from machine import SPACE, Mount, StartMount, detach, sh
from recorded import FAILED, KEPT, PRIVATE, PUBLIC, REPEATED, SESSION, Call, fates, recorded
from test_mount_outage import AT_ONCE, Proxy, behind, proxy, timed
from test_mount_watch import until

from livememfs.agents.hooks import CONTRACTS, PATIENCE
from livememfs.agents.install.command import Hook
from livememfs.pipelines.observe import NOTHING_NEW
from livememfs.records.observation import Observation
from livememfs.records.own import OPEN
from livememfs.testing.llm import LLMRequest, Scripted, ScriptedLLM
from livememfs.testing.observer import LOOKED
from livememfs.tree.exchange import MAX_EVENT

__all__ = ["proxy"]  # a fixture

LEAST_CALLS = 120
MOST_ASKED = 15
SILENCE = 8.0
WHO = "I am the keeper of the lighthouse."
LINE = re.compile(r"^#([0-9a-f]{8}) ", re.MULTILINE)
Replay = list[tuple[Call, "CompletedProcess[bytes]"]]


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    """The model that observes."""
    with ScriptedLLM(responder=metered) as llm:
        yield llm


@pytest.fixture
def observed(start_mount: StartMount, folder: Path, llm: ScriptedLLM) -> Mount:
    """A mount whose agents are observed, with one space that knows who the agent is."""
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), **asking(llm)})
    sh(f"mkdir {SPACE}; printf -- '---\\ntype: identity\\n---\\n{WHO}\\n' > {SPACE}/self/who", cwd=mount.path)
    return mount


def replay(mount: Mount) -> Replay:
    """Every call of the recorded session, one after the other."""
    space = mount / SPACE
    context = (space / "context.md").read_text()
    assert WHO in context
    return [(call, hook(space, call.event, call.request)) for call in recorded(space, context)]


def status(mount: Mount) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((mount / ".livememfs/status.json").read_text())
    return found


# --- the recorded session --------------------------------------------------------------------------------------------


def expect_answer(call: Call, done: CompletedProcess[bytes]) -> None:
    """A status of 0, nothing on standard error, and JSON as the agent expects it."""
    assert (done.returncode, done.stderr) == (0, b""), call
    answer = json.loads(done.stdout)
    if call.event == "SessionStart" or answer:
        told = answer["hookSpecificOutput"]
        assert answer == {"hookSpecificOutput": told}
        assert set(told) == {"hookEventName", "additionalContext"}
        assert told["hookEventName"] == call.event
        assert call.event in ("SessionStart", "UserPromptSubmit")
        assert told["additionalContext"]


def test_every_hook_of_a_session_answers_and_every_event_is_accounted_for(
    observed: Mount, llm: ScriptedLLM, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = replay(observed)
    events = settled(observed)

    assert len(calls) >= LEAST_CALLS
    assert {event for event, contract in CONTRACTS.items() if event[0].isupper()} == {one.event for one, _ in calls}
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
                found[str(path)] = path.read_bytes()
    return found


def test_a_private_text_is_found_however_it_is_spelt() -> None:
    for text in PRIVATE:
        inside = [base64.b64encode(b"x" * before + text.encode() + b"yz") for before in range(3)]
        for spelling in [*inside, json.dumps([json.dumps(text)]).encode(), quote(text).encode(), text.encode()]:
            assert have(b"some " + spelling + b" more", text)
        assert not have(text[::-1].encode() + base64.b64encode(text[::-1].encode()), text)


@pytest.mark.parametrize("model", ["scripted", "builtin"])
def test_nothing_private_of_a_session_is_anywhere(
    start_mount: StartMount, folder: Path, tmp_path: Path, llm: ScriptedLLM, model: str
) -> None:
    """Neither while events wait nor afterwards; and everywhere there is what stands beside it, so it was looked for."""
    mount = start_mount(
        {
            "LIVEMEMFS_STORE": str(folder),
            **asking(llm),
            "LIVEMEMFS_OBSERVE_MODEL": model,
            "LIVEMEMFS_LOG_LEVEL": "debug",
        }
    )
    sh(f"mkdir {SPACE}; printf -- '---\\ntype: identity\\n---\\n{WHO}\\n' > {SPACE}/self/who", cwd=mount.path)
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


# --- when something is wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["unmounted", "killed"])
def test_hooks_are_silent_while_nothing_is_mounted(observed: Mount, end: str) -> None:
    space = observed / SPACE
    assert answered(space, "PostToolUse", used(1, "first")) == {}
    settled(observed)
    if end == "killed":
        observed.kill()
        assert "not connected" in sh(f"ls {space}", status=None).stderr
    else:
        observed.stop()
        assert not space.exists()

    for event in CONTRACTS:
        for request in (json.dumps(used(2, "first")).encode(), bytes(1 << 20)):
            done = hook(space, event, request)
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    detach(observed.path)
    assert list(observed.path.iterdir()) == []


def test_the_commands_that_install_writes_are_those_that_are_tried_here(observed: Mount, tmp_path: Path) -> None:
    project, space = tmp_path / "shop", observed / SPACE
    project.mkdir()
    command = f"python -m livememfs install claude-code --space {SPACE} --project {project} --yes"
    sh(command, cwd=project, env=observed.environment)
    settings = json.loads((project / ".claude/settings.local.json").read_text())["hooks"]
    found = {
        event: [one["command"] for group in groups for one in group["hooks"]] for event, groups in settings.items()
    }

    assert {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"} <= set(found)
    assert found == {event: [Hook(str(space), event).command] for event in found}
    assert f"@{space}/context.md" in (project / "CLAUDE.md").read_text()


def test_while_no_model_answers_events_wait_and_the_next_session_is_warned(
    start_mount: StartMount, folder: Path
) -> None:
    down = [True]

    def responder(request: LLMRequest) -> Scripted:
        return Scripted("out of order", status=500) if down[0] else metered(request)

    with ScriptedLLM(responder=responder) as llm:
        mount = start_mount({"LIVEMEMFS_STORE": str(folder), **asking(llm, idle=0.1)})
        space = mount / SPACE
        space.mkdir()
        answered(space, "PostToolUse", used(1, "first"))
        until(lambda: told(mount)["last_error"] != "", 20)
        warned = answered(space, "SessionStart", {"session_id": "second", "source": "startup"})
        events = told(mount)["events"]
        down[0] = False
        settled(mount)
        well = answered(space, "SessionStart", {"session_id": "third", "source": "startup"})

    first, _, rest = warned["hookSpecificOutput"]["additionalContext"].partition("\n\n")
    assert first.startswith("Warning from livememfs: observing has been failing since ")
    assert "\n" not in first
    assert rest.startswith(OPEN)
    assert (events["observed"], events["failed"], events["skipped"]) == (0, 0, {})
    assert events["events"] == events["waiting"] == 2
    assert well["hookSpecificOutput"]["additionalContext"].startswith(OPEN)
    assert [one.events for one in observations(folder)] == [("t1",)]


def test_hooks_do_not_wait_for_a_bucket_that_is_silent(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, llm: ScriptedLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session that begins meanwhile is told what was known, and everything arrives afterwards."""
    mount = start_mount({**behind(proxy, bucket), **asking(llm)})
    space = mount / SPACE
    space.mkdir()
    context = answered(space, "SessionStart", {"session_id": "first", "source": "startup"})
    mount.uploaded()
    seconds: dict[str, list[float]] = {"PostToolUse": [], "UserPromptSubmit": [], "Stop": [], "SessionStart": []}
    answers = []

    proxy.order("blackhole?on=1")
    began, number = time.monotonic(), 0
    while time.monotonic() < began + SILENCE:
        number += 1
        request = {**used(number, f"s{number % 3}"), "prompt": f"which basket is {number}?", "source": "startup"}
        for event, found in seconds.items():
            found.append(timed(lambda: answers.append(answered(space, event, request))))  # noqa: B023  # called at once
    proxy.order("blackhole?on=0")
    events = settled(mount)

    slowest = {event: max(found) for event, found in seconds.items()}
    with capsys.disabled():
        print(f"\nwhile the bucket is silent, of {number} hooks each the slowest:", slowest)
    assert max(slowest[event] for event in ("PostToolUse", "Stop")) < AT_ONCE
    assert max(slowest.values()) < PATIENCE
    assert answers == [{}, {}, {}, context] * number
    assert events["events"] == events["observed"] + sum(events["skipped"].values())
    ids = [event for key in bucket.keys(f"{SPACE}/observations/") for event in read_events(bucket, key)]
    assert sorted(ids) == sorted(f"t{one}" for one in range(1, number + 1))


def read_events(bucket: Bucket, key: str) -> tuple[str, ...]:
    return Observation.parse(bucket.get(key), path=key, name=key.rpartition("/")[2]).events


def test_hooks_of_a_space_that_is_gone_are_silent_and_make_none(observed: Mount) -> None:
    done = hook(observed / "another", "PostToolUse", used(1, "first"))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (observed / "another").exists()


def test_what_is_no_event_is_answered_as_nothing_and_told_in_the_errors(observed: Mount) -> None:
    requests = [b"{", b"[]", b"\xff\xfe", b'{"session_id": 3}', b'{"tool_name": "Edit"}']
    requests += [
        b"[" * 100_000,
        b'{"x": %s%s}' % (b"[" * 700, b"]" * 700),
        b'{"x": "%s"}' % bytes(MAX_EVENT + (1 << 20)),
    ]

    for number, request in enumerate(requests, 1):
        done = hook(observed / SPACE, "PostToolUse", request)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")
        assert len((observed / ".livememfs/errors.ndjson").read_text().splitlines()) == number

    assert told(observed)["events"]["events"] == 0


def test_hooks_at_the_same_time_are_all_accounted_for(observed: Mount, folder: Path) -> None:
    """Tools run side by side, and so do their hooks; some of them come twice."""
    calls = [used(number % 48, "first") for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda call: answered(observed / SPACE, "PostToolUse", call), calls))

    events = settled(observed)

    assert found == [{}] * len(calls)
    assert (events["events"], events["observed"]) == (48, 48)
    assert status(observed)["statistics"]["capture"]["repeated"] == 16
    seen = Counter(event for one in observations(folder) for event in one.events)
    assert seen == {f"t{number}": 1 for number in range(48)}
