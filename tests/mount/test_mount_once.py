"""Two real mounts, a way to the bucket that loses answers, and kill -9: each note is taken once, none comes back.

LIVEMEMFS_TEST_LONG=1 makes it a hundred rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from cloud import Bucket, Cloud
from machine import Mount, StartMount, detach, sh
from proxy import PROGRAM

ROUNDS = 100 if os.environ.get("LIVEMEMFS_TEST_LONG") else 3
MISHAPS = ("answer lost", "killed before", "killed after", "late", "silent")
ACTIONS = ("consolidates", "digests", "deletes", "edits", "renames")
T = TypeVar("T")
HELD_BACK = 0.5
"""Seconds before each request of the writer goes on: time to cut it off between its upload and its next question."""


class Way:
    """`tests/proxy` between the writer and the bucket."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.endpoint = f"http://127.0.0.1:{ports['port']}"
        self._control = f"http://127.0.0.1:{ports['control']}"

    def order(self, *orders: str) -> None:
        for what in orders:
            urllib.request.urlopen(f"{self._control}/{what}", data=b"", timeout=10).close()

    def clear(self) -> None:
        self.order("latency?seconds=0", "lose?writes=0", "refuse?on=0", "blackhole?on=0")


@pytest.fixture
def way(s3: Cloud) -> Iterator[Way]:
    command = [*PROGRAM, "--target", urlsplit(s3.endpoint).netloc, "--control"]
    with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Way(json.loads(process.stdout.readline()))
        finally:
            process.kill()


class Round:
    """One note, from its close on the one mount to its end."""

    def __init__(self, number: int, bucket: Bucket, writer: Mount, other: Mount, way: Way) -> None:
        self.number, self.bucket, self.writer, self.other, self.way = number, bucket, writer, other, way
        self.mishap = MISHAPS[number % 5]
        self.action = ACTIONS[(number + number // 5) % 5]
        self.space = "digested" if self.action == "digests" else "project"
        self.token = f"giraffe-{number};"

    def play(self) -> None:
        cut_off = self.mishap in ("answer lost", "killed before", "silent")
        if cut_off:
            self.way.order(f"latency?seconds={HELD_BACK}", "lose?writes=1000")
        (self.writer / f"{self.space}/live/decision-{self.number}").write_text(f"We keep {self.token}\n")
        name = self._until(self._arrived)
        copy = self.bucket.client.get_object(Bucket=self.bucket.name, Key=f"{self.space}/live/{name}")
        body = copy["Body"].read()
        if cut_off:
            self.way.order("blackhole?on=1" if self.mishap == "silent" else "refuse?on=1")
        else:
            self.writer.uploaded()
        if self.mishap.startswith("killed"):
            self.writer.kill()
            detach(self.writer.path)
        self._until(lambda: name in os.listdir(self.other / f"{self.space}/live"))
        self._act(self.other / self.space, name)
        self.way.clear()
        if self.mishap.startswith("killed"):
            self.writer.start()
        self.writer.uploaded()
        assert len(self._live()) == (self.action in ("edits", "renames")), f"{self} came back, or is gone"
        if self.mishap == "late":
            with suppress(ClientError):  # what was on its way arrives; an edited note is there
                self.bucket.put(f"{self.space}/live/{name}", body, Metadata=copy["Metadata"], IfNoneMatch="*")

    def _act(self, space: Path, name: str) -> None:
        if self.action in ("consolidates", "digests"):
            self.run()
        else:
            note = f"live/{name}"
            sh(
                {
                    "deletes": f"rm {note}",
                    "edits": f"echo 'and more' >> {note}",
                    "renames": f"mv {note} live/moved-{self.number}",
                }[self.action],
                cwd=space,
            )
            self.other.uploaded()

    def run(self) -> None:
        """One run of the space on the other mount."""
        control = ".digest" if self.space == "digested" else ".consolidate"
        sh(f"touch {control} && cat {control}.wait > /dev/null", cwd=self.other / self.space)

    def _arrived(self) -> str | None:
        return next((name for name, text in self._notes().items() if self.token in text), None)

    def _live(self) -> list[str]:
        return [name for name, text in self._notes().items() if self.token in text]

    def _notes(self) -> dict[str, str]:
        prefix, found = f"{self.space}/live/", self._listed(f"{self.space}/live/")
        return {key.removeprefix(prefix): text for key, text in found.items()}

    def _listed(self, *prefixes: str) -> dict[str, str]:
        """Objects as they are now: asked past the mounts, one of which may not be able to upload anything."""
        found: dict[str, str] = {}
        for prefix in prefixes:
            listed = self.bucket.client.list_objects_v2(Bucket=self.bucket.name, Prefix=prefix)
            for item in listed.get("Contents", []):
                with suppress(ClientError):
                    body = self.bucket.client.get_object(Bucket=self.bucket.name, Key=item["Key"])["Body"]
                    found[item["Key"]] = body.read().decode()
        return found

    def said(self) -> int:
        """How often the bank and the memories say it, while nothing in `live/` does."""
        assert self._live() == [], f"{self} is not taken"
        found = self._listed(f"{self.space}/bank/", f"{self.space}/memories/")
        return sum(text.count(self.token) for text in found.values())

    def __str__(self) -> str:
        return f"round {self.number}: {self.mishap}, the other {self.action}"

    def _until(self, look: Callable[[], T]) -> T:
        deadline = time.monotonic() + 20
        while not (found := look()):
            assert time.monotonic() < deadline, str(self)
            time.sleep(0.02)
        return found


def test_through_lost_answers_and_kills_each_note_is_taken_once(
    start_mount: StartMount, bucket: Bucket, way: Way
) -> None:
    quick = {"LIVEMEMFS_POLL_INTERVAL": "0.3"}
    writing = {**bucket.environment(), **quick, "S3_ENDPOINT_URL": way.endpoint, "LIVEMEMFS_HOST": "writer"}
    writer = start_mount(writing, name="writer", limit=3_000)
    sh("mkdir project digested", cwd=writer.path)
    record = json.loads(bucket.text("digested/_meta.json"))
    bucket.put("digested/_meta.json", json.dumps({**record, "distil": ["digest"]}))
    other = start_mount({**bucket.environment(), **quick, "LIVEMEMFS_HOST": "other"}, name="other", limit=3_000)
    lost, twice = [], []
    for number in range(ROUNDS):
        one = Round(number, bucket, writer, other, way)
        one.play()
        one.run()
        said, expected = one.said(), int(one.action != "deletes")
        lost += [str(one)] if said < expected else []
        twice += [str(one)] if said > expected else []
    print(f"{ROUNDS} rounds, {len(twice)} twice or back, {len(lost)} lost")
    assert (lost, twice) == ([], [])
