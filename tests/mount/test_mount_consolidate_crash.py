"""kill -9 in the middle of consolidations, on a real mount: each has happened once, or not yet; no note is lost."""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from contextlib import suppress

from botocore.exceptions import ClientError
from cloud import Bucket
from machine import LONG, StartMount, detach, sh

from livememfs.testing.llm import LLMRequest, ScriptedLLM, consolidation_reply

SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261122"))
KILLS = 12 if LONG else 3
NOTES = 8
LATEST = 0.4
"""Seconds after the reply within which the daemon dies; a run has ended by then."""


def filed(request: LLMRequest) -> object:
    """A model that writes every note down."""
    lines = "".join(f"- {note['text'].strip()}\n" for note in request.section("Notes"))
    files = {file["filename"]: file["content"] for file in request.section("Bank files")}
    if "log.md" not in files:
        return consolidation_reply({"log.md": f"# Log\n\n{lines}"}, action="created")
    edit = {"op": "append", "heading": ["Log"], "content": lines}
    return {
        **consolidation_reply({}),
        "bank_files": [{"filename": "log.md", "action": "updated", "edits": [edit]}],
    }


def test_killed_at_any_moment_a_consolidation_takes_every_note_once(start_mount: StartMount, bucket: Bucket) -> None:
    print(f"LIVEMEMFS_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    asked = threading.Event()

    def responder(request: LLMRequest) -> object:
        asked.set()
        return filed(request)

    with ScriptedLLM(responder=responder) as llm:  # type: ignore[arg-type]  # what it returns is a mapping
        asking = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
        mount = start_mount({**bucket.environment(), **asking})
        sh("mkdir project", cwd=mount.path)
        written, unfinished = 0, 0
        for _ in range(KILLS):
            for _ in range(NOTES):
                (mount / f"project/live/note-{written}.md").write_text(f"giraffe-{written};\n")
                written += 1
            mount.uploaded()
            asked.clear()
            sh("touch project/.consolidate", cwd=mount.path)
            assert asked.wait(20)
            time.sleep(dice.random() * LATEST)  # the moment is what is being tried
            mount.kill()
            detach(mount.path)
            unfinished += len(live(bucket)) > 0
            mount.start()
            assert_accounted_for(bucket, written)
        sh("touch project/.consolidate && cat project/.consolidate.wait", cwd=mount.path)

    log = bucket.text("project/bank/log.md")
    assert sorted(int(number) for number in re.findall(r"giraffe-(\d+);", log)) == list(range(written))
    assert live(bucket) == []
    assert json.loads(bucket.text("project/_meta.json"))["total_notes_processed"] == written
    entries = [json.loads(bucket.text(key)) for key in bucket.keys("project/_ledger/")]
    assert {entry["state"] for entry in entries} == {"applied"}
    print(f"{KILLS} kills, {unfinished} in the middle; {len(entries)} runs for {written} notes")


def live(bucket: Bucket) -> list[str]:
    """The notes, as they are in the bucket."""
    return [key for key in bucket.keys("project/live/") if not key.endswith("/.keep")]


def assert_accounted_for(bucket: Bucket, written: int) -> None:
    """Every note is in `live/` or in the bank, soon after the mount is there again; never in neither, nor twice."""
    deadline = time.monotonic() + 20
    while True:
        with suppress(ClientError):  # a note that goes between the LIST and the GET: looked at once more
            numbers = accounted_for(bucket)
            if numbers == list(range(written)):
                return
            assert set(numbers) == set(range(written)), "a note is lost"
        assert time.monotonic() < deadline, "a committed run is not carried out"
        time.sleep(0.1)


def accounted_for(bucket: Bucket) -> list[int]:
    """The numbers of the notes that are in `live/`, then in the bank: one may be in both, and at no moment in none."""
    waiting = [re.search(r"giraffe-(\d+);", bucket.text(key)) for key in live(bucket)]
    log = bucket.text("project/bank/log.md") if "project/bank/log.md" in bucket.keys("project/bank/") else ""
    taken = re.findall(r"giraffe-(\d+);", log)
    return sorted([int(number) for number in taken] + [int(found[1]) for found in waiting if found])
