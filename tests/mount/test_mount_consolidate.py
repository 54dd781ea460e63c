"""One touch folds the notes into the bank, through a real mount, a real HTTP endpoint and a real S3 server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from cloud import Bucket
from machine import Mount, StartMount, sh

from livememfs.testing.llm import Scripted, ScriptedLLM, consolidation_reply

TOUCH = "touch project/.consolidate && cat project/.consolidate.wait"
BANK = {"decisions.md": "# Decisions\n\nWe chose S3.\n", "notes/deep.md": "# Deep\n\nA subfolder works.\n"}


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    """An endpoint without answers yet."""
    with ScriptedLLM() as server:
        yield server


@pytest.fixture
def project(start_mount: StartMount, bucket: Bucket, llm: ScriptedLLM) -> Mount:
    """A mount that asks `llm`, with two notes in one space."""
    asking = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
    mount = start_mount({**bucket.environment(), **asking})
    sh("mkdir project; echo 'we chose S3' > project/live/decision.md", cwd=mount.path)
    sh("echo 'check the bill' > project/live/todo.md", cwd=mount.path)
    return mount


def last_line(text: str) -> dict[str, Any]:
    """The result at the end of a stream of JSON lines."""
    value: dict[str, Any] = json.loads(text.splitlines()[-1])
    return value


def everything(bucket: Bucket) -> dict[str, bytes]:
    """Every object but the rules, which the first run seals."""
    return {key: bucket.get(key) for key in bucket.keys("") if not key.endswith("/_rules.md")}


def test_a_touch_writes_bank_synthesis_and_meta_and_removes_the_notes(
    project: Mount, bucket: Bucket, llm: ScriptedLLM, second_mount: StartMount
) -> None:
    used = {1: ["decisions.md"], 2: ["notes/deep.md"]}
    llm.add(consolidation_reply(BANK, action="created", synthesis="Two notes filed.", used=used))

    told = last_line(sh(TOUCH, cwd=project.path).stdout)

    assert told["state"] == "ok"
    assert told["notes_processed"] == 2
    assert {name: bucket.text(f"project/bank/{name}") for name in BANK} == BANK
    assert "Two notes filed." in bucket.text("project/_synthesis.md")
    assert json.loads(bucket.text("project/_meta.json"))["consolidation_count"] == 1
    assert bucket.keys("project/live/") == ["project/live/.keep"]
    assert os.listdir(project.path / "project/live") == []
    other = second_mount()
    for mount in (project, other):
        assert {name: (mount / "project/bank" / name).read_text() for name in BANK} == BANK
        assert (mount / "project/_synthesis.md").read_bytes() == bucket.get("project/_synthesis.md")
        assert json.loads((mount / "project/_meta.json").read_text())["consolidation_count"] == 1
    assert last_line((project / "project/.consolidate").read_text())["state"] == "ok"


def test_a_bank_that_was_read_before_is_read_anew_after_a_run(project: Mount, bucket: Bucket, llm: ScriptedLLM) -> None:
    llm.add(consolidation_reply({"decisions.md": "# D\n\nshort\n"}, action="created"))
    sh(TOUCH, cwd=project.path)
    assert (project / "project/bank/decisions.md").read_text() == "# D\n\nshort\n"
    longer = "# D\n\nmuch longer than it was before\n"
    llm.add(consolidation_reply({"decisions.md": longer}))
    sh("echo more > project/live/more.md", cwd=project.path)

    sh(TOUCH, cwd=project.path)

    assert (project / "project/bank/decisions.md").read_text() == longer
    assert sh("cat project/bank/decisions.md", cwd=project.path).stdout == longer


BAD: dict[str, tuple[list[Any], str]] = {
    "a path into another space": ([consolidation_reply({"../../_system/tokens.json": "# x\n"})] * 2, "_system"),
    "an absolute path": ([consolidation_reply({"/etc/x": "# x\n"})] * 2, "/etc/x"),
    "a path back into live": ([consolidation_reply({"bank/../live/x.md": "# x\n"})] * 2, "live/x.md"),
    "a name with a zero-width character": ([consolidation_reply({"a\u200bb.md": "# x\n"})] * 2, ""),
    "5 MB of content": ([consolidation_reply({"a.md": "# x\n" + "y" * 5_000_000})] * 2, "a.md"),
    "front matter in a bank file": ([consolidation_reply({"a.md": "---\na: b\n---\n\n# x\n"})] * 2, "front matter"),
    "no JSON": (["I am sorry."] * 2, "JSON"),
    "cut off": ([Scripted('{"bank_files": [', finish_reason="length")] * 2, "length"),
    "an error of the server": ([Scripted("broken", status=500)] * 2, ""),
    "a wrong key": ([Scripted("no", status=401)], ""),
    "a connection that breaks": ([Scripted(reset=True)] * 2, ""),
    "nothing at all": ([Scripted(None)] * 2, ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_reply_that_must_not_be_applied_leaves_the_bucket_as_it_was(
    project: Mount, bucket: Bucket, llm: ScriptedLLM, kind: str
) -> None:
    answers, reason = BAD[kind]
    llm.add(*answers)
    project.expect_log("consolidation")
    before = everything(bucket)

    done = sh(TOUCH, cwd=project.path, status=1)

    told = last_line(done.stdout)
    assert told["state"] == "error"
    assert told["reason"]
    assert reason in told["reason"]
    assert told["what_to_do"]
    assert "Input/output error" in done.stderr
    errors = [json.loads(line) for line in (project / ".livememfs/errors.ndjson").read_text().splitlines()]
    assert told["reason"] in [error["what"] for error in errors]
    assert everything(bucket) == before
    assert sorted(os.listdir(project.path / "project/live")) == [
        key.rpartition("/")[2] for key in bucket.keys("project/live/") if not key.endswith(".keep")
    ]


def test_options_are_json_and_a_dry_run_shows_a_diff_and_changes_nothing(
    project: Mount, bucket: Bucket, llm: ScriptedLLM
) -> None:
    llm.add(consolidation_reply(BANK, action="created"))
    before = everything(bucket)

    sh("""echo '{"dry_run": true}' > project/.consolidate && cat project/.consolidate.wait""", cwd=project.path)

    assert everything(bucket) == before
    assert "+We chose S3." in (project / "project/.consolidate.diff").read_text()


def test_options_that_are_no_options_are_refused_where_they_are_written(project: Mount, llm: ScriptedLLM) -> None:
    sh("""echo '{"dry": true}' > project/.consolidate""", cwd=project.path, status=None)

    # The shell's own `echo` may ignore what the close tells it; what it was told is in the mount.
    assert "there is no option" in (project / ".livememfs/errors.ndjson").read_text()
    assert llm.requests == []


def test_touches_during_a_run_share_one_run_after_it(project: Mount, llm: ScriptedLLM) -> None:
    held = Scripted(json.dumps(consolidation_reply({"a.md": "# A\n\none\n"}, action="created")), hold=True)
    llm.add(held, consolidation_reply({"a.md": "# A\n\none and two\n"}))
    sh("touch project/.consolidate", cwd=project.path)
    llm.wait_for_requests(1)
    sh("echo later > project/live/later.md", cwd=project.path)

    sh("for i in 1 2 3 4 5; do touch project/.consolidate; done", cwd=project.path)
    llm.release()
    sh("cat project/.consolidate.wait", cwd=project.path)

    assert len(llm.requests) == 2
    assert (project / "project/bank/a.md").read_text() == "# A\n\none and two\n"


def test_a_waiting_reader_can_be_interrupted_and_neighbours_are_served_meanwhile(
    project: Mount, llm: ScriptedLLM
) -> None:
    llm.add(Scripted(json.dumps(consolidation_reply({"a.md": "# A\n\none\n"}, action="created")), hold=True))
    sh("touch project/.consolidate", cwd=project.path)
    llm.wait_for_requests(1)

    done = sh(
        "timeout 2 cat project/.consolidate.wait & ls project/live; cat project/README.md; wait $!",
        cwd=project.path,
        status=124,
    )

    assert '"state": "running"' in done.stdout
    assert "# Memory space" in done.stdout
    llm.release()
    sh("cat project/.consolidate.wait", cwd=project.path)


def test_without_an_endpoint_the_notes_are_filed_word_for_word(mounted: Mount, bucket: Bucket) -> None:
    sh("echo 'we chose S3, not disks' > project/live/decision.md", cwd=mounted.path)

    told = last_line(sh(TOUCH, cwd=mounted.path).stdout)

    assert told["model"] == "builtin"
    bank = "".join(bucket.text(key) for key in bucket.keys("project/bank/") if key.endswith(".md"))
    assert "we chose S3, not disks" in bank
    assert bucket.keys("project/live/") == ["project/live/.keep"]
