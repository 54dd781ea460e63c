"""Kill -9 while an index is being written: what was acknowledged is found, and nothing is made anew."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from livememfs.recall.index import loaded as module
from livememfs.recall.index.exchanged import Restriction, TextQuery
from livememfs.recall.index.local import Index

SEED = int(os.environ.get("LIVEMEMFS_TEST_SEED", "20261122"))
KILLS = 50 if os.environ.get("LIVEMEMFS_TEST_LONG") else 6
STARTED_WITHIN = 30.0
ALL = Restriction(fields=(("space", ("alpha",)),))

WRITER = """
import sys
from pathlib import Path
import numpy as np
from livememfs.recall.index import loaded as module
from livememfs.recall.index.local import Index
from livememfs.recall.index.reader import records_in

module.KEPT_FROM = 1
index = Index(Path(sys.argv[1]), "m")
assert not index.repairs.rebuilt, index.repairs.rebuilt
generator = np.random.default_rng(1)
number = int(sys.argv[2])
print("ready", flush=True)
while True:
    read = []
    for step in range(10):
        word = f"word{number + step}"
        at = number + step
        when = f"20260101T{at // 3600 % 24:02}{at // 60 % 60:02}{at % 60:02}"
        key = f"alpha/live/{when}_me_todo_{at:08x}.md"
        read.append((key, "e", "alpha", records_in(key, f"a note about {word}".encode(), "e", 0)))
    gone = [read[0][0]] if number % 20 == 0 else []
    index.apply([], read)
    if gone:
        index.apply(gone, [])
    texts = index.unembedded(64)
    vectors = generator.normal(size=(len(texts), 64)).astype(np.float32)
    index.take_vectors([text.meaning for text in texts], vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    print(number, flush=True)
    number += 10
"""


def acknowledged_until_killed(folder: Path, start: int, seconds: float) -> list[int]:
    """Let a process write for a while, then kill it; the batches it said were done."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(start)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    ready = writer.stdout.readline()
    if ready != "ready\n":
        writer.kill()
        raise AssertionError(writer.stderr.read())
    time.sleep(seconds)  # the moment is what is being tried
    writer.send_signal(signal.SIGKILL)
    said, _ = writer.communicate()
    return [int(line) for line in said.split()]


def found(index: Index, number: int) -> bool:
    """Whether a note is found by its own word; those beside it have the word in their context."""
    hits, _ = index.text(TextQuery(f"word{number}"), ALL, 5)
    records = index.table.of_pieces([piece for piece, _ in hits])
    return any(stored.record.text.endswith(f"word{number}") for _, stored in records.values())


def test_an_index_that_was_killed_is_whole_and_was_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process goes on from the snapshot of the one that looks after it, and leaves none."""
    monkeypatch.setattr(module, "KEPT_FROM", 1)
    chance = random.Random(SEED)
    print(f"LIVEMEMFS_TEST_SEED={SEED}")
    folder, done, redone = tmp_path / "index", set[int](), 0
    Index(folder, "m").close()

    for kill in range(KILLS):
        batches = acknowledged_until_killed(folder, 10_000 * (kill + 1), chance.uniform(0.0, 0.6))
        done |= set(batches)
        index = Index(folder, "m")
        assert index.verify() == []
        assert index.repairs.rebuilt == []
        redone += index.repairs.redone
        for batch in batches[-3:]:
            assert found(index, batch) == (batch % 20 != 0)
            assert found(index, batch + 9)
        assert index.statistics().embedded >= sum(9 if batch % 20 == 0 else 10 for batch in done)
        index.close()
    print(f"{KILLS} kills, {len(done)} batches acknowledged, {redone} times a step was done again")
    assert done
