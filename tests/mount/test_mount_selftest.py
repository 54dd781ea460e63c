"""`livememfs selftest`: passes on mounts that are well, fails on those that are not, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cloud import Bucket
from machine import Mount, StartMount, detach, sh

from livememfs.testing.llm import Scripted, ScriptedLLM

WORDS_ALONE = {"LIVEMEMFS_EMBED_MODEL": "none"}  # without the model for meanings, which takes a second to load


@dataclass(frozen=True)
class Ended:
    """How it went: exit status, and each step's state and detail."""

    code: int
    steps: dict[str, str]
    details: dict[str, str]
    space: str


def command(path: Path, *options: str) -> list[str]:
    limited = ["timeout", "-k", "5", "60", "setpriv", "--pdeathsig", "KILL", "--"]
    return [*limited, sys.executable, "-m", "livememfs", "selftest", "--json", *options, str(path)]


def selftest(mount: Mount, *options: str, path: Path | None = None) -> Ended:
    """Run it on a mount, or on another place where that is."""
    done = subprocess.run(
        command(path or mount.path, *options),
        env=mount.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=70,
        check=False,
    )
    assert done.stdout, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    steps = {one["step"]: one["state"] for one in told["steps"]}
    assert all(one["ms"] > 0 for one in told["steps"] if one["state"] == "ok")
    return Ended(done.returncode, steps, {one["step"]: one["detail"] for one in told["steps"]}, told["space"])


def nothing_left(mount: Mount) -> bool:
    """Whether no scratch space is in the mount."""
    return not [name for name in os.listdir(mount.path) if name.startswith("selftest-")]


def test_a_mount_of_a_folder_passes_and_keeps_nothing(start_mount: StartMount, folder: Path) -> None:
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), **WORDS_ALONE})

    ended = selftest(mount)

    assert ended.code == 0, ended
    assert set(ended.steps.values()) == {"ok"}
    assert len(ended.steps) >= 13
    assert ended.space.startswith("selftest-")
    assert nothing_left(mount)
    assert mount.path.joinpath(".livememfs/errors.ndjson").read_text() == ""
    assert [path for path in folder.iterdir() if not path.name.startswith(".")] == []


def test_a_mount_of_a_bucket_passes_and_other_spaces_are_not_touched(start_mount: StartMount, bucket: Bucket) -> None:
    mount = start_mount({**bucket.environment(), **WORDS_ALONE})
    sh("mkdir project && echo mine > project/live/decision.md", cwd=mount.path)
    before = {key: bucket.get(key) for key in bucket.keys("")}

    ended = selftest(mount)

    assert ended.code == 0, ended
    assert nothing_left(mount)
    assert {key: bucket.get(key) for key in bucket.keys("")} == before


def test_people_get_a_table(folder_mounted: Mount) -> None:
    done = subprocess.run(
        [word for word in command(folder_mounted.path) if word != "--json"],
        env={**folder_mounted.environment, **WORDS_ALONE},
        capture_output=True,
        text=True,
        timeout=70,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "all is well"
    assert done.stdout.split("\n")[1].startswith("make a space ")


# --- mounts that are not well ------------------------------------------------------------------------------------


@pytest.fixture
def read_only(folder_mounted: Mount, tmp_path: Path) -> Iterator[Path]:
    """The mount again, where nobody can write."""
    other = tmp_path / "read-only"
    other.mkdir()
    sh(f"mount --bind {folder_mounted.path} {other} && mount -o remount,bind,ro {other}")
    yield other
    detach(other)


def test_a_mount_that_cannot_be_written_to_fails(folder_mounted: Mount, read_only: Path) -> None:
    ended = selftest(folder_mounted, path=read_only)

    assert (ended.code, ended.steps["make a space"]) == (1, "failed")
    assert "Read-only" in ended.details["make a space"]
    assert ended.steps["write a note"] == "skipped"


def test_a_mount_whose_daemon_is_dead_fails(folder_mounted: Mount) -> None:
    folder_mounted.kill()

    ended = selftest(folder_mounted)

    assert ended.code == 1
    assert "not connected" in ended.details["make a space"]


def test_a_mount_that_hangs_fails_within_its_time(folder_mounted: Mount) -> None:
    folder_mounted.signal(signal.SIGSTOP)
    start = time.monotonic()
    try:
        ended = selftest(folder_mounted, "--timeout", "0.5")
    finally:
        folder_mounted.signal(signal.SIGCONT)

    assert ended.code == 1
    assert "no answer within 0.5 s" in ended.details["make a space"]
    assert time.monotonic() - start < 20


def test_a_mount_whose_bucket_is_away_fails(start_mount: StartMount, bucket: Bucket) -> None:
    mount = start_mount({**bucket.environment(), **WORDS_ALONE, "LIVEMEMFS_OP_TIMEOUT": "2"})
    sh("ls", cwd=mount.path)

    with bucket.cloud.failing():
        ended = selftest(mount, "--timeout", "3")

    assert (ended.code, ended.steps["remove the space"]) == (1, "failed")


def test_what_is_no_mount_is_refused(folder_mounted: Mount, tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path), env=folder_mounted.environment, capture_output=True, text=True, timeout=70, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert "no livememfs is mounted" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupt_removes_the_space_all_the_same(
    start_mount: StartMount, folder: Path, number: signal.Signals
) -> None:
    """Interrupted while a model is asked that does not answer."""
    with ScriptedLLM(Scripted(hold=True)) as llm:
        asks = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
        mount = start_mount({"LIVEMEMFS_STORE": str(folder), **WORDS_ALONE, **asks, "LIVEMEMFS_DRAIN_TIMEOUT": "10"})
        with subprocess.Popen(command(mount.path, "--llm")[8:], env=mount.environment) as process:
            while not llm.requests:
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(number)
            assert process.wait(20) == 130
        assert nothing_left(mount)
        llm.release()


# --- the model ---------------------------------------------------------------------------------------------------


def test_a_model_that_costs_is_asked_only_on_request(start_mount: StartMount, folder: Path) -> None:
    with ScriptedLLM("this is no answer to a consolidation") as llm:
        asks = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
        mount = start_mount({"LIVEMEMFS_STORE": str(folder), **WORDS_ALONE, **asks})

        ended = selftest(mount)
        asked_without = len(llm.requests)
        refused = selftest(mount, "--llm")

        assert (ended.code, asked_without) == (0, 0)
        assert ended.steps["plan a consolidation (dry run)"] == "skipped"
        assert refused.steps["plan a consolidation (dry run)"] == "failed"
        assert llm.requests
        assert nothing_left(mount)
