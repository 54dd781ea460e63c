"""kill -9 in the middle of digests, on a real mount: each has happened once, or not yet; nothing is stored twice."""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time

import pytest
from cloud import Bucket
from machine import LONG, StartMount, detach, sh

from livememfs.testing.llm import LLMRequest, ScriptedLLM, digest_reply, remembered

SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261122"))
KILLS = 6 if LONG else 3
NOTES = 6
LATEST = 0.4
"""Seconds after the reply within which the daemon dies; a run has ended by then."""
RECORD = {"space_id": "project", "description": "", "owner": "me", "created_at": "2026-02-20T14:00:00Z", "version": 1}


def remember_all(request: LLMRequest) -> object:
    """A model that makes a memory of every note."""
    return digest_reply(*(remembered(note["text"].strip(), note["note"]) for note in request.section("Notes")))


@pytest.mark.parametrize("distil", [["digest"], []], ids=["notes leave", "notes stay"])
def test_killed_at_any_moment_a_digest_stores_every_fact_once(
    start_mount: StartMount, bucket: Bucket, distil: list[str]
) -> None:
    print(f"LIVEMEMFS_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    asked = threading.Event()

    def responder(request: LLMRequest) -> object:
        asked.set()
        return remember_all(request)

    bucket.put("project/_meta.json", json.dumps({**RECORD, "distil": distil}).encode())
    with ScriptedLLM(responder=responder) as llm:  # type: ignore[arg-type]  # what it returns is a mapping
        asking = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
        mount = start_mount({**bucket.environment(), **asking})
        written = 0
        for _ in range(KILLS):
            for _ in range(NOTES):
                (mount / f"project/live/note-{written}.md").write_text(f"giraffe-{written};\n")
                written += 1
            mount.uploaded()
            asked.clear()
            sh("touch project/.digest", cwd=mount.path)
            assert asked.wait(20)
            time.sleep(dice.random() * LATEST)  # the moment is what is being tried
            mount.kill()
            detach(mount.path)
            mount.start()
        sh("touch project/.digest && cat project/.digest.wait", cwd=mount.path)

    texts = [bucket.text(key) for key in bucket.keys("project/memories/")]
    stored = [re.search(r"giraffe-(\d+);", text.partition("---\n\n")[2]) for text in texts]
    assert sorted(int(found[1]) for found in stored if found) == list(range(written))
    left = [key for key in bucket.keys("project/live/") if not key.endswith("/.keep")]
    assert len(left) == (0 if distil else written)
    entries = [json.loads(bucket.text(key)) for key in bucket.keys("project/_ledger/") if key.endswith(".json")]
    assert {entry["state"] for entry in entries} == {"applied"}
    print(f"{KILLS} kills; {len(entries)} digests for {written} notes")
