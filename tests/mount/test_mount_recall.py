"""`.recall` from a shell and from Python, on a real mount with the real model: what a hook does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from machine import Mount, StartMount, clean_environment, sh

from livememfs.text.own import HEAD
from livememfs.tree.exchange import USAGE

TOLD_WITHIN = 20.0
ANSWERED_WITHIN = 1.0
"""Seconds from a message to its answer, whatever state the index is in."""
DATABASE = "We chose PostgreSQL as the database of the orders service."
# Where the test runs is a repository, and on a busy machine the check of a record may have no time.
TOLD = rf"- decision, \d{{4}}-\d\d-\d\d \d\d:\d\d(?: \(not checked against the code\))?: {DATABASE}\n"
CAT = "The cat of Anna is called Felix."
ASK = 'exec 3<>.recall; echo "{}" >&3; cat <&3; exec 3>&-'
"""What the file itself says is to be done."""


@pytest.fixture
def space(mounted: Mount) -> Path:
    """A space with two memories, one of them of importance, that can be told."""
    space = mounted / "project"
    sh(f"echo '{CAT}' > memories/cat", cwd=space)
    (space / "memories" / "database").write_text(f"---\ntype: decision\nimportance: 0.9\n---\n{DATABASE}\n")
    until_open(space)
    return space


def until_open(space: Path) -> None:
    """The first message of a mount may come before its index is open, and then it says so."""
    until = time.monotonic() + TOLD_WITHIN
    while ask_json(space, "hello", f"opening {until}")["notes"]:
        assert time.monotonic() < until
        time.sleep(0.1)


def ask(space: Path, message: str) -> str:
    """One turn of the terminal that all of a test's shells share."""
    return sh(ASK.format(message), cwd=space).stdout


def ask_json(space: Path, message: str, session: str) -> Any:
    """One turn as a program asks it."""
    handle = os.open(space / ".recall", os.O_RDWR)
    try:
        os.write(handle, json.dumps({"message": message, "session": session, "format": "json"}).encode())
        parts = []
        while part := os.read(handle, 65_536):
            parts.append(part)
    finally:
        os.close(handle)
    return json.loads(b"".join(parts))


def told(answer: Any) -> list[str]:
    return [one["text"] for one in answer["memories"]]


def prehook(mount: Mount) -> Any:
    """What the mount counts of messages."""
    return json.loads((mount / ".livememfs" / "status.json").read_text())["statistics"]["prehook"]


def turns(mount: Mount) -> int:
    return int(prehook(mount)["turns"])


def test_a_shell_asks_with_nothing_but_builtins(space: Path) -> None:
    answer = ask(space, "which database did we choose?")

    assert answer.startswith(HEAD)
    assert re.search(TOLD, answer)
    assert ask(space, "and which database was it?") == "", "a second shell of the same terminal"
    assert DATABASE in sh(f"setsid -w sh -c '{ASK.format('which database?')}'", cwd=space).stdout, "another terminal"


def test_one_shell_goes_on_on_one_descriptor(space: Path) -> None:
    script = 'exec 3<>.recall; for m in "which database?" "which cat?" "who?"; do echo "$m" >&3; cat <&3; echo --; done'

    answers = sh(f"setsid -w sh -c '{script}'", cwd=space).stdout

    assert answers.count("--\n") == 3
    assert (answers.count(DATABASE), answers.count(CAT)) == (1, 1)


def test_three_messages_before_the_answer_are_one_turn(mounted: Mount, space: Path) -> None:
    before = turns(mounted)

    sh('exec 3<>.recall; echo "En fait" >&3; echo "j\'ai changé d\'avis" >&3; echo "MySQL" >&3; cat <&3', cwd=space)

    assert turns(mounted) == before + 1


def test_programs_talk_json_in_sessions_that_they_name(space: Path) -> None:
    first = ask_json(space, "which database did we choose?", "mine")

    assert DATABASE in told(first)
    assert set(first) == {"recorded", "context", "turn", "memories", "left_out", "notes", "ms"}
    (path,) = [one["path"] for one in first["memories"] if one["text"] == DATABASE]
    assert DATABASE in (space.parent / path).read_text()
    assert told(ask_json(space, "which database did we choose?", "mine")) == []
    assert DATABASE in told(ask_json(space, "which database did we choose?", "yours"))


def test_meaning_tells_what_no_word_does(space: Path) -> None:
    until = time.monotonic() + TOLD_WITHIN
    number = 0
    while CAT not in told(ask_json(space, "comment s'appelle le chat d'Anna ?", f"s{number}")):
        assert time.monotonic() < until
        time.sleep(0.2)  # the model and its vectors come in the background, and no event tells a program
        number += 1


def test_a_hooks_few_lines_put_json_in_and_get_json_out(space: Path) -> None:
    request = '{"session": "hook", "message": "which database?", "format": "json"}'

    answer = sh(f"exec 3<>.recall; echo '{request}' >&3; cat <&3", cwd=space).stdout

    assert DATABASE in json.loads(answer)["context"]


def test_what_is_no_request_fails_the_read_and_the_error_log_says_why(mounted: Mount, space: Path) -> None:
    done = sh("""exec 3<>.recall; echo '{"prompt": "x"}' >&3; cat <&3""", cwd=space, status=1)

    assert "Invalid argument" in done.stderr
    last = json.loads(sh("tail -n 1 .livememfs/errors.ndjson", cwd=mounted.path).stdout)
    assert last["path"] == "project/.recall"
    assert "unknown: prompt" in last["what"]


def test_whoever_only_looks_asks_nothing(mounted: Mount, space: Path) -> None:
    before = turns(mounted)

    assert sh("cat .recall", cwd=space).stdout == USAGE
    sh("touch .recall; ls -la .recall; stat .recall; find . -type f > /dev/null; cp .recall /dev/null", cwd=space)
    sh("grep -r unicorn . > /dev/null", cwd=space, status=1)
    refused = sh("echo hello > .recall", cwd=space, status=None)

    assert refused.returncode != 0
    assert turns(mounted) == before


def test_a_descriptor_cannot_seek(space: Path) -> None:
    handle = os.open(space / ".recall", os.O_RDWR)
    try:
        with pytest.raises(OSError, match="Illegal seek"):
            os.lseek(handle, 0, os.SEEK_SET)
    finally:
        os.close(handle)


def test_a_killed_daemon_and_a_new_mount_tell_nothing_twice(mounted: Mount, space: Path) -> None:
    assert DATABASE in told(ask_json(space, "which database did we choose?", "mine"))
    mounted.uploaded()

    mounted.kill()
    sh(f"fusermount3 -u -z '{mounted.path}'")
    mounted.start()

    until_open(space)
    again = ask_json(space, "which database did we choose?", "mine")
    assert DATABASE not in told(again)
    assert again["turn"] == 2
    assert DATABASE in told(ask_json(space, "which database did we choose?", "another"))


def test_the_first_message_after_a_mount_is_answered(
    mounted: Mount, second_mount: StartMount, space: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it takes is printed: a mount that has its index, and one that has nothing."""
    mounted.uploaded()
    mounted.stop()
    mounted.start()
    began = time.monotonic()
    answer = ask_json(space, "which database did we choose?", "first")
    first = time.monotonic() - began
    assert DATABASE in told(answer), answer

    other = second_mount()
    began = time.monotonic()
    answer = ask_json(other / "project", "which database did we choose?", "cold")
    cold = time.monotonic() - began
    assert DATABASE in told(answer), answer
    assert max(first, cold) < ANSWERED_WITHIN

    with capsys.disabled():
        print(f"\nfirst message after a mount: {first * 1e3:.0f} ms, with an empty cache {cold * 1e3:.0f} ms")
    until_open(space)
    until_open(other / "project")
    assert DATABASE in told(ask_json(other / "project", "which database did we choose?", "second"))


def test_a_fresh_space_answers_the_first_hook_and_the_first_message(mounted: Mount) -> None:
    for name in ("one", "two"):
        (mounted / name).mkdir()
        (mounted / name / "live" / "cat.md").write_text(CAT)
        began = time.monotonic()
        if name == "one":
            said = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/", "prompt": "which cat?"}
            with (mounted / name / ".hooks" / "UserPromptSubmit").open("r+b", buffering=0) as hook:
                hook.write(json.dumps(said).encode())
                answer = hook.read().decode()
        else:
            answer = json.dumps(ask_json(mounted / name, "which cat?", "s"))
        assert CAT in answer
        assert time.monotonic() - began < ANSWERED_WITHIN


def test_two_mounts_and_the_command_tell_a_session_once_and_again_when_it_forgets(
    mounted: Mount, second_mount: StartMount, space: Path, tmp_path: Path
) -> None:
    mounted.uploaded()
    other = second_mount()
    assert DATABASE in told(ask_json(space, "which database did we choose?", "shared"))
    until = time.monotonic() + TOLD_WITHIN
    while not prehook(mounted)["told_written"]:
        assert time.monotonic() < until
        time.sleep(0.05)  # written behind the answer: a program is told of it by nothing
    assert DATABASE not in told(ask_json(other / "project", "which database did we choose?", "shared"))
    env = clean_environment(
        tmp_path / "shell",
        **{name: value for name, value in mounted.environment.items() if name.startswith(("S3_", "AWS_"))},
    )
    command = "python -m livememfs recall project 'which database did we choose?' --session shared"
    assert DATABASE not in sh(command, env=env).stdout
    kept = json.loads((other / "project/sessions/shared/told.json").read_text())
    assert kept["turn"] >= 1
    assert not any(word in json.dumps(kept) for word in ("PostgreSQL", "Felix"))


def test_the_shell_command_tells_what_the_mount_would(mounted: Mount, space: Path, tmp_path: Path) -> None:
    mounted.uploaded()

    env = clean_environment(
        tmp_path / "shell",
        **{name: value for name, value in mounted.environment.items() if name.startswith(("S3_", "AWS_"))},
    )
    command = "python -m livememfs recall project 'which database did we choose?' --session cli"
    assert re.search(TOLD, sh(command, env=env).stdout)
    assert DATABASE not in sh(command, env=env).stdout


def test_a_hook_that_is_killed_while_it_waits_costs_nothing(space: Path) -> None:
    handle = os.open(space / ".recall", os.O_RDWR)
    os.write(handle, b'{"session": "killed", "message": "which database?"}')
    with subprocess.Popen(["cat"], stdin=handle, stdout=subprocess.DEVNULL) as reader:
        reader.kill()
    os.close(handle)

    assert ask_json(space, "which database did we choose?", "after")["turn"] == 1
