"""Two machines that are touched at the same instant: one run, no error for either, both waits end well.

LIVEMEMFS_TEST_LONG=1 makes it fifty times.
"""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cloud import Bucket
from machine import LONG, Mount, StartMount, sh

from livememfs.testing.llm import ScriptedLLM, consolidation_reply

ROUNDS = 50 if LONG else 3
TOUCH = "touch project/.consolidate && exec cat project/.consolidate.wait"


def touched(mount: Mount) -> dict[str, Any]:
    """One touch and the wait for it, by a shell; the last line of the wait."""
    done = subprocess.run(["timeout", "60", "sh", "-c", TOUCH], cwd=mount.path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


def test_two_machines_touched_at_once_make_one_run_and_both_waits_end_well(
    start_mount: StartMount, second_mount: StartMount, bucket: Bucket
) -> None:
    reply = consolidation_reply({"log.md": "# Log\n"}, action="created")
    with ScriptedLLM(responder=lambda _: reply) as llm, ThreadPoolExecutor() as pool:
        asking = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
        one = start_mount({**bucket.environment(), **asking})
        sh("mkdir project", cwd=one.path)
        one.uploaded()
        two = second_mount(asking)
        for number in range(1, ROUNDS + 1):
            (one / f"project/live/note-{number}.md").write_text(f"note {number}\n")
            one.uploaded()
            ends = list(pool.map(touched, (one, two)))
            assert [end["state"] for end in ends] == ["ok", "ok"]
            assert sorted(end["notes_processed"] for end in ends) == [0, 1]
            assert len(llm.requests) == number

    entries = [json.loads(bucket.text(key)) for key in bucket.keys("project/_ledger/")]
    assert [(entry["number"], entry["state"]) for entry in entries] == [(n, "applied") for n in range(1, ROUNDS + 1)]
    print(f"{ROUNDS} touches on two machines, {len(entries)} runs")
