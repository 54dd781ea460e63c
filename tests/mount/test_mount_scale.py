"""Four machines on one bucket that all want the same at the same moment: it happens once, and nothing is lost.

Also `scripts/bench scale`, which measures what such machines cost, in its small form on two of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cloud import Bucket, Cloud
from hooking import IDLE, answered, settled, status, used
from machine import ROOT, SPACE, Mount, StartMount, detach, sh
from test_mount_consolidate_crash import filed, live
from test_mount_consolidate_hosts import touched
from test_mount_watch import until

from livememfs.records.observation import Observation
from livememfs.testing.llm import LLMRequest, ScriptedLLM
from livememfs.testing.observer import events_in, observing, wants_summary

HOSTS = 4
ROUNDS, NOTES = 2, 3
EVENTS, AFTER = 4, 5
SCHEDULED, OBSERVED = "scheduled", "observed"
WITHIN = 20.0
SHORT_LEASE = """
import livememfs.spaces.lease as lease
lease.SECONDS, lease.RENEWED_EVERY, lease.GIVEN_UP_AFTER = 3.0, 0.75, 2.0
"""
"""Read by each interpreter at its start: the dead are taken over after three seconds instead of sixty."""


def responder(request: LLMRequest) -> object:
    """A model that observes, and writes every note down."""
    return observing(request) if events_in(request) or wants_summary(request) else filed(request)


def asking(llm: ScriptedLLM) -> dict[str, str]:
    """Settings of mounts that ask `llm` for everything."""
    model = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
    return {**model, "LIVEMEMFS_OBSERVE_IDLE": str(IDLE)}


def make_space(hosts: list[Mount], space: str) -> None:
    """A space, which all of them see."""
    sh(f"mkdir {space}", cwd=hosts[0].path)
    hosts[0].uploaded()
    for host in hosts:
        until((host / space).exists, WITHIN)


@pytest.fixture(scope="module")
def four(s3: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Mount], Bucket]]:
    """Four machines on one bucket, each with the same model and the same schedule."""
    bucket = Bucket(s3, f"test-{uuid.uuid4().hex[:12]}", s3.client())
    bucket.client.create_bucket(Bucket=bucket.name)
    folder = tmp_path_factory.mktemp("four")
    schedule = json.dumps({SCHEDULED: {"after_notes": AFTER}})
    with ScriptedLLM(responder=responder) as llm, ExitStack() as stack:  # type: ignore[arg-type]  # a mapping or text
        env = {**bucket.environment(), **asking(llm), "LIVEMEMFS_SCHEDULE": schedule}
        names = [f"h{number}" for number in range(1, HOSTS + 1)]
        made = [Mount(folder / name, folder / f"home-{name}", {**env, "LIVEMEMFS_HOST": name}) for name in names]
        with ThreadPoolExecutor() as pool:
            yield list(pool.map(stack.enter_context, made)), bucket


def write_notes(host: Mount, numbers: range, space: str = SPACE) -> None:
    """Notes that the model can be asked about later, in the bucket at the end."""
    for number in numbers:
        (host / f"{space}/live/note-{number}.md").write_text(f"giraffe-{number};\n")
    host.uploaded()


def entries(bucket: Bucket, space: str = SPACE) -> list[dict[str, Any]]:
    """The runs in a ledger, in order."""
    keys = [key for key in bucket.keys(f"{space}/_ledger/") if key.endswith(".json")]
    return [json.loads(bucket.text(key)) for key in keys]


def assert_each_taken_once(bucket: Bucket, written: int) -> None:
    """Every note is in exactly one run and stands in the bank once, numbers have no gap, nothing waits."""
    found = entries(bucket)
    assert [(one["number"], one["state"]) for one in found] == [(n, "applied") for n in range(1, len(found) + 1)]
    taken = Counter(note["key"] for one in found for note in one["removes"])
    assert (len(taken), set(taken.values())) == (written, {1})
    log = bucket.text(f"{SPACE}/bank/log.md")
    assert sorted(int(number) for number in re.findall(r"giraffe-(\d+);", log)) == list(range(written))
    assert live(bucket) == []


@pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="test_mount_consolidate_hosts does it with two")
def test_four_machines_touched_at_once_take_every_note_of_all_once(four: tuple[list[Mount], Bucket]) -> None:
    """All of them write, too, and what one has just written may be in the run of another."""
    hosts, bucket = four
    make_space(hosts, SPACE)
    processed = 0
    with ThreadPoolExecutor() as pool:
        for number in range(ROUNDS):
            first = number * HOSTS * NOTES
            shares = [range(first + which * NOTES, first + (which + 1) * NOTES) for which in range(HOSTS)]
            list(pool.map(write_notes, hosts, shares))
            ends = list(pool.map(touched, hosts))
            assert {end["state"] for end in ends} == {"ok"}
            processed += sum(end["notes_processed"] for end in ends)
    processed += touched(hosts[0])["notes_processed"]

    assert processed == ROUNDS * HOSTS * NOTES
    assert_each_taken_once(bucket, processed)


def test_four_machines_with_one_schedule_start_one_run(four: tuple[list[Mount], Bucket]) -> None:
    hosts, bucket = four
    make_space(hosts, SCHEDULED)
    write_notes(hosts[1], range(AFTER), SCHEDULED)

    def seen(host: Mount) -> dict[str, Any]:
        found: dict[str, Any] = status(host)["schedule"]["spaces"][SCHEDULED]
        return found

    until(lambda: any(seen(host)["last_state"] == "ok" for host in hosts), WITHIN)
    until(lambda: all(seen(host)["notes"] == 0 for host in hosts), WITHIN)

    assert sum(status(host)["statistics"]["schedule"]["ok"] for host in hosts) == 1
    assert [len(one["removes"]) for one in entries(bucket, SCHEDULED)] == [AFTER]


def test_events_of_one_session_on_four_machines_end_in_one_observation_each(four: tuple[list[Mount], Bucket]) -> None:
    """Each machine observes what was captured there, and needs no lease for it."""
    hosts, bucket = four
    make_space(hosts, OBSERVED)

    def work(which: int) -> None:
        for number in range(which * EVENTS, (which + 1) * EVENTS):
            assert answered(hosts[which] / OBSERVED, "PostToolUse", used(number, "shared")) == {}

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, range(HOSTS)))
        list(pool.map(settled, hosts))

    keys = bucket.keys(f"{OBSERVED}/observations/")
    found = [Observation.parse(bucket.get(key), path=key, name=key.rpartition("/")[2]) for key in keys]
    files = Counter(file for one in found for file in one.files_modified)
    assert files == Counter({f"src/f{number}.py": 1 for number in range(HOSTS * EVENTS)})


def test_a_machine_that_dies_while_it_asks_the_model_is_taken_over(
    start_mount: StartMount, bucket: Bucket, tmp_path: Path
) -> None:
    """All others wait for its run; one of them makes it, and what the dead one was told comes to nothing."""
    (tmp_path / "sitecustomize.py").write_text(SHORT_LEASE)
    dying, asked = threading.Event(), threading.Event()

    def slowly(request: LLMRequest) -> object:
        if not asked.is_set():
            asked.set()
            dying.wait(WITHIN)
        return filed(request)

    with ScriptedLLM(responder=slowly) as llm, ThreadPoolExecutor() as pool:  # type: ignore[arg-type]  # as above
        env = {**bucket.environment(), **asking(llm), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
        names = ("dies", "one", "two")
        hosts = list(pool.map(lambda name: start_mount({**env, "LIVEMEMFS_HOST": name}, name=name), names))
        make_space(hosts, SPACE)
        write_notes(hosts[0], range(NOTES))
        sh(f"touch {SPACE}/.consolidate", cwd=hosts[0].path)
        assert asked.wait(WITHIN)
        hosts[0].kill()
        detach(hosts[0].path)
        dying.set()
        ends = list(pool.map(touched, hosts[1:]))

    assert sorted(end["notes_processed"] for end in ends) == [0, NOTES]
    assert sum(status(host)["statistics"]["leases"]["takeovers"] for host in hosts[1:]) == 1
    assert_each_taken_once(bucket, NOTES)
    assert len(entries(bucket)) == 1


@pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="it measures for a minute")
def test_what_several_machines_cost_is_measured_in_everything(tmp_path: Path) -> None:
    """`scripts/bench scale --quick`: each line is there; an idle host and a question to an index ask for nothing."""
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["timeout", "-k", "5", "100", sys.executable, "-m", "benchlib", "scale", "--quick"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    forms = ("note", "edit of a note", "memory", "ordinary file")
    for what in ("idle for a minute", "idle, one space in use", *(f"one {form}" for form in forms), "a run over"):
        assert sum(line.startswith(what) for line in lines) == 1, what
    for what in ("idle for a minute", "one question after that"):
        (line,) = [line for line in lines if line.startswith(what)]
        assert " none " in line, line
    embedded = [re.findall(r"(\d+) texts embedded", line) for line in lines if "embedded" in line]
    assert len(embedded) == 2
    assert embedded[1] == ["0"]
