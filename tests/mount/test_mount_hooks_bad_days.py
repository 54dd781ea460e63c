"""Hooks when something is wrong, on a real mount: an agent never hears of it, and nothing is lost that was accepted."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cloud import Bucket
from hooking import answered, asking_by_words, hook, llm, metered, observations, observed, settled, status, told, used
from machine import SPACE, Mount, StartMount, detach, sh
from test_mount_outage import AT_ONCE, Proxy, behind, proxy, timed
from test_mount_watch import until

from livememfs.agents.hooks import CONTRACTS, PATIENCE
from livememfs.recall.turn import pending
from livememfs.records.observation import Observation
from livememfs.testing.llm import LLMRequest, Scripted, ScriptedLLM
from livememfs.text.own import HEAD
from livememfs.tree.exchange import MAX_EVENT

__all__ = ["llm", "observed", "proxy"]  # fixtures

SILENCE = 8.0


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


def test_while_no_model_answers_events_wait_and_the_next_session_is_warned(
    start_mount: StartMount, folder: Path
) -> None:
    down = [True]

    def responder(request: LLMRequest) -> Scripted:
        return Scripted("out of order", status=500) if down[0] else metered(request)

    with ScriptedLLM(responder=responder) as llm:
        mount = start_mount({"LIVEMEMFS_STORE": str(folder), **asking_by_words(llm, idle=0.1)})
        space = mount / SPACE
        space.mkdir()
        answered(space, "PostToolUse", used(1, "first"))
        until(lambda: told(mount)["last_error"] != "", 20)
        warned = answered(space, "SessionStart", {"session_id": "second", "source": "startup"})
        events = told(mount)["events"]
        down[0] = False
        settled(mount)
        well = answered(space, "SessionStart", {"session_id": "third", "source": "startup"})

    head, first, _, rest = warned["hookSpecificOutput"]["additionalContext"].split("\n", 3)
    assert head == HEAD
    assert first.startswith("Warning from livememfs: observing has been failing since ")
    assert rest.startswith("# Memory of ")
    assert (events["observed"], events["failed"], events["skipped"]) == (0, 0, {})
    assert events["events"] == events["waiting"] == 2
    assert well["hookSpecificOutput"]["additionalContext"].startswith(HEAD)
    assert [one.events for one in observations(folder)] == [("t1",)]


def test_hooks_do_not_wait_for_a_bucket_that_is_silent(
    start_mount: StartMount, bucket: Bucket, proxy: Proxy, llm: ScriptedLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session that begins meanwhile is told what was known and what was captured; everything arrives afterwards."""
    mount = start_mount({**behind(proxy, bucket), **asking_by_words(llm)})
    space = mount / SPACE
    space.mkdir()
    first = answered(space, "SessionStart", {"session_id": "first", "source": "startup"})
    context = first["hookSpecificOutput"]["additionalContext"]
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
    pages = [one["hookSpecificOutput"]["additionalContext"] for one in answers[3::4]]
    assert [one for one in answers if one] == answers[3::4]
    assert all(page.startswith(context.partition("## More")[0]) for page in pages)
    assert all(pending.TITLE in page for page in pages)
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
    requests += [b"[" * 100_000, b'{"x": %s%s}' % (b"[" * 700, b"]" * 700)]

    for number, request in enumerate(requests, 1):
        done = hook(observed / SPACE, "PostToolUse", request)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"{}", b"")
        assert len((observed / ".livememfs/errors.ndjson").read_text().splitlines()) == number

    # Without the hook's line, which waits two seconds: on a busy machine so much may take longer to write.
    with (observed / SPACE / ".hooks/PostToolUse").open("r+b", buffering=0) as exchange:
        rest = memoryview(b'{"x": "%s"}' % bytes(MAX_EVENT + (1 << 20)))
        while rest:
            rest = rest[exchange.write(rest[: 1 << 20]) :]
        assert exchange.read(100) == b"{}"
    errors = (observed / ".livememfs/errors.ndjson").read_text().splitlines()
    assert len(errors) == len(requests) + 1
    assert "an event has at most" in errors[-1]
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
