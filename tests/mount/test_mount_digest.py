"""One touch takes what lasts from the notes, through a real mount, a real HTTP endpoint and a real S3 server."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cloud import Bucket
from machine import Mount, StartMount, clean_environment, livememfs, sh

from livememfs.testing.llm import ScriptedLLM, digest_reply, remembered

TOUCH = "touch alpha/.digest && cat alpha/.digest.wait"


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    """An endpoint without answers yet."""
    with ScriptedLLM() as server:
        yield server


@pytest.fixture
def alpha(start_mount: StartMount, bucket: Bucket, llm: ScriptedLLM) -> Mount:
    """A mount that asks `llm`, with two notes in one space."""
    asking = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
    mount = start_mount({**bucket.environment(), **asking})
    sh("mkdir alpha; echo 'David, my brother, called' > alpha/live/one.md", cwd=mount.path)
    sh("echo 'I am in bed with the flu' > alpha/live/two.md", cwd=mount.path)
    return mount


def last_line(text: str) -> dict[str, Any]:
    """The result at the end of a stream of JSON lines."""
    value: dict[str, Any] = json.loads(text.splitlines()[-1])
    return value


def test_a_touch_stores_memories_that_every_mount_shows_and_the_notes_stay(
    alpha: Mount, llm: ScriptedLLM, second_mount: StartMount
) -> None:
    brother = remembered("David is the brother of Mickael", 1, subjects=["david", "family"])
    llm.add(digest_reply(brother, remembered("Mickael is ill", 2, ttl="7d", type="event")))

    told = last_line(sh(TOUCH, cwd=alpha.path).stdout)

    assert (told["state"], told["memories_stored"], told["notes_processed"]) == ("ok", 2, 2)
    for mount in (alpha, second_mount()):
        names = sorted(name for name in os.listdir(mount / "alpha/memories") if name.endswith(".md"))
        texts = [(mount / "alpha/memories" / name).read_text() for name in names]
        assert any("David is the brother of Mickael" in text and "source: " in text for text in texts)
        assert any("_until_" in name for name in names)
        assert len(os.listdir(mount / "alpha/live")) == 2
    assert last_line(sh(TOUCH, cwd=alpha.path).stdout)["message"] == "No new notes to digest"
    assert len(llm.requests) == 1


def test_a_digest_that_fails_gives_the_shell_its_exit_status_and_the_reason(alpha: Mount, llm: ScriptedLLM) -> None:
    llm.add("prose", "more prose")

    ended = sh(TOUCH, cwd=alpha.path, status=None)

    assert ended.returncode != 0
    told = last_line(ended.stdout)
    assert (told["state"], len(told["refused_replies"])) == ("error", 2)
    assert [name for name in os.listdir(alpha / "alpha/memories") if name.endswith(".md")] == []
    errors = [json.loads(line) for line in (alpha / ".livememfs/errors.ndjson").read_text().splitlines()]
    assert ("digest", "alpha/.digest") in [(error["operation"], error["path"]) for error in errors]


def test_a_mount_digests_by_itself_what_was_missed_before_it_began(start_mount: StartMount, bucket: Bucket) -> None:
    first = start_mount(bucket.environment())
    sh("mkdir alpha; echo 'We chose S3' > alpha/live/decision.md", cwd=first.path)
    first.uploaded()
    first.stop()

    mount = start_mount({**bucket.environment(), "LIVEMEMFS_DIGEST_SCHEDULE": '{"alpha": {"at": ["03:00"]}}'})

    deadline = time.monotonic() + 20
    while not any("We chose S3" in bucket.text(key) for key in bucket.keys("alpha/memories/")):
        assert time.monotonic() < deadline, "nothing was digested"
        time.sleep(0.05)
    digests = json.loads((mount / ".livememfs/status.json").read_text())["schedule"]["digests"]
    assert digests["alpha"]["last_why"] == "catch_up"
    assert len(os.listdir(mount / "alpha/live")) == 1


def test_the_command_asks_the_daemon_of_a_mount(alpha: Mount, llm: ScriptedLLM) -> None:
    llm.add(digest_reply(remembered("David is the brother of Mickael", 1), skipped={2: "an ailment"}))

    ended = livememfs(f"digest alpha --mountpoint {alpha.path} --wait", env=clean_environment(Path("/tmp")))

    assert ended.stdout.startswith("alpha: 2 notes read, 1 memory stored, 0 left, ")
    assert last_line((alpha / "alpha/.digest").read_text())["memories_stored"] == 1
