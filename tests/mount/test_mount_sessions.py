"""Sessions without any hook, on a real mount: folders and files, by the tools that everybody has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hooking import SETTLED_WITHIN, asking_by_words, llm, observations, settled, told
from machine import SPACE, Mount, StartMount, sh
from recorded import CREDENTIALS, SECRETS
from test_mount_hooks import everything, have
from test_mount_watch import until

from livememfs.testing.llm import ScriptedLLM

__all__ = ["llm"]  # a fixture

IDLE = 0.3
SESSION = "by-hand"
EDIT = {"tool": "Edit", "input": {"file_path": "/p/src/a.py"}, "output": "done", "project": "/p"}


@pytest.fixture
def observed(start_mount: StartMount, folder: Path, llm: ScriptedLLM) -> Mount:
    """A mount whose agents are observed, with one space."""
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), **asking_by_words(llm, idle=IDLE)})
    (mount / SPACE).mkdir()
    return mount


@pytest.fixture
def session(observed: Mount) -> Path:
    """A session that somebody has begun."""
    sh(f"mkdir {SPACE}/sessions/{SESSION}", cwd=observed.path)
    return observed / SPACE / "sessions" / SESSION


def summed_up(session: Path) -> str:
    """The summary, once there is one."""
    until((session / "summary.md").exists, SETTLED_WITHIN)
    return sh("cat summary.md", cwd=session).stdout


def texts(llm: ScriptedLLM) -> str:
    return "\n".join(request.text for request in llm.requests)


def written(folder: Path, *names: str) -> Path:
    """A folder with an event in each file."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(json.dumps({**EDIT, "id": name, "output": f"{name} is done"}))
    return folder


def test_a_session_from_mkdir_to_its_summary(
    observed: Mount, session: Path, folder: Path, llm: ScriptedLLM, tmp_path: Path
) -> None:
    sources = written(tmp_path / "sources", "one.json", "two.json", "three.json", "four.json")

    assert sh("ls -A", cwd=session).stdout.split() == [".stop", "events", "prompts.ndjson", "session.json"]
    sh("echo 'mend the basket' >> prompts.ndjson", cwd=session)
    sh(f"cp {sources}/one.json events/; mv {sources}/two.json events/", cwd=session)
    sh(f"rsync -a {sources}/three.json {sources}/four.json events/", cwd=session)
    sh("echo 'a passing thought' > events/thought.txt; touch .stop", cwd=session)
    summary = summed_up(session)
    events = settled(observed)

    assert "Mend the login" in summary
    assert events["observed"] == events["events"] == 1 + 5 + 1
    ids = [event for one in observations(folder) for event in one.events]
    assert len(ids) == 5
    assert {"one.json", "two.json", "three.json", "four.json"} < set(ids)
    asked = texts(llm)
    assert all(
        part in asked for part in ("mend the basket", "a passing thought", "one.json is done", "four.json is done")
    )
    record = json.loads(sh("cat session.json", cwd=session).stdout)
    assert (record["status"], record["prompts"]) == ("completed", 1)
    assert json.loads(sh("cat prompts.ndjson", cwd=session).stdout)["prompt"] == "mend the basket"
    assert json.loads(sh("cat .stop", cwd=session).stdout) == {"observed": 7}


COPIES = {
    "cp": "cp {source} events/e.json",
    "cp -p": "cp -p {source} events/",
    "install": "install -m 600 {source} events/e.json",
    "mv": "mv {source} events/",
    "rsync": "rsync -a {source} events/",
    "rsync --inplace": "rsync -a --inplace {source} events/",
    "cat >": "cat {source} > events/e.json",
    "tee": "tee events/e.json < {source} > /dev/null",
    "dd": "dd if={source} of=events/e.json bs=16 2> /dev/null",
    "tar": "tar -C {folder} -cf - e.json | tar -C events -xf -",
    "write and rename": "cat {source} > events/.e.json.swp && mv events/.e.json.swp events/e.json",
    "python": 'python -c \'import shutil; shutil.copyfile("{source}", "events/e.json")\'',
}


def test_every_way_to_write_a_file_makes_one_event(
    observed: Mount, session: Path, folder: Path, tmp_path: Path
) -> None:
    for number, (way, command) in enumerate(COPIES.items()):
        home = tmp_path / f"source-{number}"
        home.mkdir()
        (home / "e.json").write_text(json.dumps({**EDIT, "output": f"by {way}"}))
        sh(command.format(source=home / "e.json", folder=home), cwd=session)
        assert told(observed)["events"]["events"] == number + 1, way
        assert "e.json" in sh("ls events", cwd=session).stdout, way
    sh("touch .stop", cwd=session)
    summed_up(session)
    settled(observed)

    found = [event for one in observations(folder) for event in one.events]
    assert len(found) == len(set(found)) == len(COPIES)


def test_the_same_event_twice_is_one(observed: Mount, session: Path, tmp_path: Path) -> None:
    sources = written(tmp_path / "sources", "one.json")

    for name in ("one.json", "copy.json"):
        sh(f"cp {sources}/one.json events/{name}", cwd=session)
    sh("cp events/one.json events/third.json", cwd=session)

    assert told(observed)["events"]["events"] == 1


def test_more_after_a_summary_is_summed_up_by_the_next_touch(observed: Mount, session: Path, llm: ScriptedLLM) -> None:
    sh("echo first > events/a.txt; touch .stop", cwd=session)
    summed_up(session)
    settled(observed)
    before = len(llm.requests)

    sh("touch .stop", cwd=session)
    settled(observed)
    assert len(llm.requests) == before, "there was nothing new"
    sh("echo second > events/b.txt; touch .stop", cwd=session)
    settled(observed)

    assert "second" in llm.requests[-1].text
    assert "The summary so far" in llm.requests[-1].text
    assert json.loads(sh("cat session.json", cwd=session).stdout)["events"]["observed"] == 2


def test_what_the_observer_writes_is_read_only_and_a_summary_can_be_forgotten(observed: Mount, session: Path) -> None:
    sh("echo first > events/a.txt; touch .stop", cwd=session)
    summed_up(session)
    settled(observed)

    for command in ("echo x > summary.md", "rm session.json", "mkdir more", "echo x > other", "mv summary.md s.md"):
        assert "Read-only" in sh(command, cwd=session, status=None).stderr, command
    sh("rm summary.md", cwd=session)

    assert "summary.md" not in sh("ls", cwd=session).stdout
    assert "session.json" in sh("ls", cwd=session).stdout


def test_names_that_cannot_be_sessions_are_refused(observed: Mount) -> None:
    for name in ("'a b'", ".hidden", "é", "x" * 65):
        done = sh(f"mkdir {SPACE}/sessions/{name}", cwd=observed.path, status=1)
        assert "Invalid argument" in done.stderr, name
        errors = (observed / ".livememfs/errors.ndjson").read_text().splitlines()
        assert json.loads(errors[-1])["operation"] == "mkdir"

    assert sh(f"ls -A {SPACE}/sessions", cwd=observed.path).stdout == ""


def test_nothing_private_of_a_file_is_anywhere(
    observed: Mount, session: Path, folder: Path, tmp_path: Path, llm: ScriptedLLM
) -> None:
    secret, token = SECRETS["a block in a prompt"], CREDENTIALS["github"]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "e.json").write_text(json.dumps({**EDIT, "output": f"beside {token}"}))

    sh(f"echo 'beside <private>{secret}</private>' >> prompts.ndjson", cwd=session)
    sh(f"cp {outside}/e.json events/; echo 'beside <private>{secret}' > events/e.txt; touch .stop", cwd=session)
    summed_up(session)
    settled(observed)

    places = everything(folder, tmp_path / "home-mnt") | {"requests": texts(llm).encode()}
    assert [(where, text) for where, data in places.items() for text in (secret, token) if have(data, text)] == []
    assert "beside" in places["requests"].decode()
    assert b"beside [private]" in (folder / SPACE / "sessions" / SESSION / "prompts.ndjson").read_bytes()


def test_two_mounts_show_one_session(observed: Mount, session: Path, start_mount: StartMount, folder: Path) -> None:
    """What one machine's agent did another one's reads; and only the first observes it."""
    other = start_mount({"LIVEMEMFS_STORE": str(folder), "LIVEMEMFS_HOST": "other"}, name="other")
    theirs = other / SPACE / "sessions" / SESSION
    sh("echo first > events/a.txt; touch .stop", cwd=session)

    assert "Mend the login" in summed_up(theirs)
    found: dict[str, Any] = told(other)["events"]
    assert found["events"] == 0
