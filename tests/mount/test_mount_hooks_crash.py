"""kill -9 between the capture of events and the proof that the bucket has what came of them, on a real mount: whatever
a hook was answered is observed once, and each prompt is written down once.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from cloud import Bucket
from hooking import answered, asking_by_words, hook, metered, settled, told, used
from machine import SPACE, Mount, StartMount, detach
from test_mount_outage import Proxy, behind, proxy
from test_mount_watch import until

from livememfs.cache.inbox import STORED
from livememfs.records.observation import Observation
from livememfs.testing.llm import LLMRequest, Scripted, ScriptedLLM

__all__ = ["proxy"]  # a fixture

SESSION = "crashing"
TROUBLES = ["lose?writes=3", "latency?seconds=0.1", "slowdown?fraction=0.4&when=after&seed=7"]
KILLS, EVENTS = 3, 5
AT_ONCE = 0.05
"""Seconds without an event after which they are observed, where the observer is to be caught at it."""
LATER = 60.0
"""The same where it is not to have begun."""
STEP, SLOW_STEP = 0.1, 0.2
"""Seconds from a request of the observer's until the daemon dies, times the number of the kill: with a folder, and with
a bucket that is slow. By the last of them what came of the reply may be in the bucket.
"""
WITHIN = 20.0


class Dying:
    """A mount that is killed again and again, and what its hooks were answered for."""

    def __init__(self, mount: Mount, llm: ScriptedLLM) -> None:
        self.mount, self.llm = mount, llm
        self.written = self.asked = 0

    def work(self, events: int = EVENTS) -> None:
        """A prompt, and some uses of tools."""
        space = self.mount / SPACE
        answered(space, "UserPromptSubmit", {"session_id": SESSION, "cwd": "/p", "prompt": f"question {self.asked}"})
        self.asked += 1
        for _ in range(events):
            assert answered(space, "PostToolUse", used(self.written, SESSION)) == {}
            self.written += 1

    def die(self) -> None:
        self.mount.kill()
        detach(self.mount.path)

    def stop(self) -> None:
        """The agent has done what it was asked to."""
        assert answered(self.mount / SPACE, "Stop", {"session_id": SESSION, "cwd": "/p"}) == {}

    def finish(self) -> dict[str, Any]:
        """It stops, and nobody is killed any more; what `status.json` says of events in the end."""
        self.stop()
        return settled(self.mount)


Read = Callable[[str], dict[str, bytes]]
"""The objects in a folder of the space, by their names."""


def observed_in(read: Read) -> list[Observation]:
    return [Observation.parse(data, path=name, name=name) for name, data in read("observations").items()]


def expect_once(dying: Dying, read: Read) -> None:
    """Every event is in one observation, every prompt in one line, and the session counts them so."""
    found = observed_in(read)
    assert Counter(event for one in found for event in one.events) == {f"t{n}": 1 for n in range(dying.written)}
    session = read(f"sessions/{SESSION}")
    record = json.loads(session["session.json"])
    assert record["events"] == {"observed": dying.written, "skipped": 0}
    assert record["status"] == "completed"
    assert sorted(record["observations"]) == sorted(one.name for one in found)
    assert "Mend the login" in session["summary.md"].decode()
    prompts = [json.loads(line)["prompt"] for line in session["prompts.ndjson"].splitlines()]
    assert prompts == [f"question {number}" for number in range(dying.asked)]
    assert record["prompts"] == dying.asked


def in_folder(store: Path) -> Read:
    return lambda name: {path.name: path.read_bytes() for path in (store / SPACE / name).iterdir()}


def in_bucket(bucket: Bucket) -> Read:
    return lambda name: {key.rpartition("/")[2]: bucket.get(key) for key in bucket.keys(f"{SPACE}/{name}/")}


# --- before the reply is accepted ------------------------------------------------------------------------------------


def test_killed_before_anybody_observes_every_event_is_observed_once(start_mount: StartMount, folder: Path) -> None:
    """The hooks have been answered, and nothing else has happened."""
    with ScriptedLLM(responder=metered) as llm:
        settings = {"LIVEMEMFS_STORE": str(folder), **asking_by_words(llm, idle=LATER)}
        dying = Dying(start_mount(settings), llm)
        (dying.mount / SPACE).mkdir()
        dying.mount.uploaded()
        for _ in range(KILLS):
            before = len(llm.requests)
            dying.work()
            assert len(llm.requests) == before
            dying.die()
            dying.mount.start()
            llm.wait_for_requests(before + 1, WITHIN)
        dying.stop()
        dying.die()
        dying.mount.start()
        settled(dying.mount)

    expect_once(dying, in_folder(folder))


def test_killed_while_a_model_thinks_every_event_is_observed_once(start_mount: StartMount, folder: Path) -> None:
    """What was claimed waits again, and the next process asks again."""
    holding = [True]

    def responder(request: LLMRequest) -> Scripted:
        return Scripted(metered(request).text, hold=holding[0])

    with ScriptedLLM(responder=responder) as llm:
        dying = Dying(start_mount({"LIVEMEMFS_STORE": str(folder), **asking_by_words(llm, idle=AT_ONCE)}), llm)
        (dying.mount / SPACE).mkdir()
        for number in range(KILLS):
            dying.work()
            llm.wait_for_requests(number + 1, WITHIN)
            assert told(dying.mount)["events"]["waiting"] >= EVENTS
            dying.die()
            holding[0] = number + 1 < KILLS
            dying.mount.start()
        events = dying.finish()

    assert events["observed"] == events["events"] == dying.written + dying.asked + 1
    expect_once(dying, in_folder(folder))


# --- after it --------------------------------------------------------------------------------------------------------


def kill_after_replies(
    dying: Dying,
    kills: int,
    step: float,
    *,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Kill it some moments after replies, each a little later than the last. `before` and `after` each kill."""
    caught = 0
    for number in range(kills):
        before()
        requests = len(dying.llm.requests)
        dying.work()
        dying.llm.wait_for_requests(requests + 1, WITHIN)
        time.sleep(number * step)  # the moment is what is being tried
        caught += told(dying.mount)["events"]["waiting"] > 0
        dying.die()
        after()
        dying.mount.start()
    print(f"{caught} of {kills} kills came before the bucket had everything")


def test_killed_right_after_a_reply_every_event_is_observed_once(start_mount: StartMount, folder: Path) -> None:
    """At moments from the request until the bucket has what came of it, and a little later."""
    with ScriptedLLM(responder=metered) as llm:
        dying = Dying(start_mount({"LIVEMEMFS_STORE": str(folder), **asking_by_words(llm, idle=AT_ONCE)}), llm)
        (dying.mount / SPACE).mkdir()
        kill_after_replies(dying, KILLS + 1, STEP)
        dying.finish()

    expect_once(dying, in_folder(folder))


def test_hooks_that_run_while_the_daemon_dies_are_silent_and_what_they_were_answered_for_is_observed(
    start_mount: StartMount, folder: Path
) -> None:
    """A hook that was answered counts; one that was not may, and then once."""
    with ScriptedLLM(responder=metered) as llm:
        mount = start_mount({"LIVEMEMFS_STORE": str(folder), **asking_by_words(llm, idle=AT_ONCE)})
        space, ended = mount / SPACE, threading.Event()
        space.mkdir()

        def work() -> list[CompletedProcess[bytes]]:
            done = []
            while not ended.is_set():
                done.append(hook(space, "PostToolUse", used(len(done), SESSION)))
            return done

        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(work)
            for number in range(KILLS):
                llm.wait_for_requests(number + 1, WITHIN)
                mount.kill()
                detach(mount.path)
                mount.start()
            ended.set()
            done = working.result()
        settled(mount)

    assert {(one.returncode, one.stderr) for one in done} == {(0, b"")}
    assert {one.stdout for one in done} == {b"{}", b""}
    times = Counter(event for one in observed_in(in_folder(folder)) for event in one.events)
    assert {f"t{number}" for number, one in enumerate(done) if one.stdout} <= set(times)
    assert set(times.values()) == {1}


@pytest.fixture
def silenced(proxy: Proxy) -> Iterator[list[bool]]:
    """Whether the bucket falls silent with the next reply of the model."""
    yield [True]
    proxy.order("blackhole?on=0")


def test_killed_with_nothing_uploaded_every_event_is_observed_once(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, silenced: list[bool]
) -> None:
    """What came of them is accepted, and the bucket hears of it from the next process."""

    def responder(request: LLMRequest) -> Scripted:
        if silenced[0]:
            proxy.order("blackhole?on=1")
        return metered(request)

    with ScriptedLLM(responder=responder) as llm:
        dying = Dying(start_mount({**behind(proxy, bucket), **asking_by_words(llm, idle=AT_ONCE)}), llm)
        (dying.mount / SPACE).mkdir()
        for number in range(KILLS):
            dying.work()
            until(lambda: bool(stored(dying.mount) - uploaded(bucket)), WITHIN)
            dying.die()
            proxy.order("blackhole?on=0")
            silenced[0] = number + 1 < KILLS
            dying.mount.start()
        dying.finish()

    expect_once(dying, in_bucket(bucket))


def stored(mount: Mount) -> set[str]:
    """The keys of observations that the local state has, and of which it does not know whether the bucket has them. A
    look at the mount might wait for the bucket.
    """
    (path,) = Path(mount.environment["XDG_CACHE_HOME"]).glob("livememfs/buckets/*/state.db")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return {key for (key,) in db.execute("SELECT object FROM event WHERE state = ? AND kind = 'tool'", (STORED,))}


def uploaded(bucket: Bucket) -> set[str]:
    """The keys of those that the bucket has by now."""
    found = bucket.client.list_objects_v2(Bucket=bucket.name, Prefix=f"{SPACE}/observations/").get("Contents", [])
    return {item["Key"] for item in found}


@pytest.mark.parametrize("trouble", TROUBLES if os.environ.get("LIVEMEMFS_TEST_LONG") else TROUBLES[:1])
def test_killed_in_the_middle_of_uploads_every_event_is_observed_once(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, trouble: str
) -> None:
    """Some of what came of them is in the bucket, and of some nobody knows whether it is."""

    def calm() -> None:
        proxy.order("latency?seconds=0")
        proxy.order("slowdown?fraction=0")

    with ScriptedLLM(responder=metered) as llm:
        dying = Dying(start_mount({**behind(proxy, bucket), **asking_by_words(llm, idle=AT_ONCE)}), llm)
        (dying.mount / SPACE).mkdir()
        dying.mount.uploaded()
        kill_after_replies(dying, KILLS - 1, SLOW_STEP, before=lambda: proxy.order(trouble), after=calm)
        dying.finish()

    expect_once(dying, in_bucket(bucket))
