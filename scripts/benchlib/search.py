"""`scripts/bench search`: an index of so many records, and what questions to it cost.

Owns the records, which are made up: words by their rank as in any language, vectors in clusters as real ones are. All
but the model's own reading of them runs as on a mount. Main thread only.
"""

from __future__ import annotations

import gc
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
import trio

from livememfs.cli.mounting.daemon import GC_THRESHOLD
from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.embed.weights import Weights
from livememfs.recall.index.engine import Engine, Read
from livememfs.recall.index.exchanged import Restriction, TextQuery
from livememfs.recall.index.local import Index
from livememfs.recall.index.reader import records_in
from livememfs.recall.search.query import parse
from livememfs.recall.search.ranking import CANDIDATES, search

T = TypeVar("T")

SPACE = "bench"
VOCABULARY = 40_000
WORDS = (20, 90)
CLUSTERS = 400
BATCH = 1_000
QUESTIONS = 200
START = 1_700_000_000
APART = 2_400
"""Seconds between notes, so that most stand alone."""


@dataclass(frozen=True)
class Figures:
    """What was measured for one size; times in milliseconds unless they say otherwise."""

    records: int
    build_s: float
    open_s: float
    insert: list[float]
    parts: dict[str, list[float]]
    rss_mb: float
    disk_mb: float


class Local:
    """Where the index is: a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self, model: str) -> Engine:
        return Index(self.folder, model)

    def megabytes(self) -> float:
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file()) / 1e6

    def remove(self) -> None:
        """The folder is temporary."""


class Shared:
    """A PostgreSQL database, and in it the index of a bucket that nobody else has."""

    def __init__(self, url: str) -> None:
        self.url, self.bucket = url, f"bench {os.getpid()}"

    def open(self, model: str) -> Engine:
        from livememfs.recall.postgres.engine import Postgres

        return Postgres(self.url, model, self.bucket)

    def megabytes(self) -> float:
        import psycopg

        from livememfs.recall.postgres.schema import schema_of

        query = (
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind = 'r'"
        )
        with psycopg.connect(self.url) as db:
            row = db.execute(query, (schema_of(self.bucket),)).fetchone()
        return float(row[0]) / 1e6 if row else 0.0

    def remove(self) -> None:
        from livememfs.recall.postgres.schema import drop

        drop(self.url, self.bucket)


class Made:
    """Made-up notes and questions, the same each time; vectors are so for the same `seed`."""

    def __init__(self, dim: int, seed: int = 0) -> None:
        self.chance = random.Random(7)
        # Words as languages have them: a model divides what is none into many parts, and takes time for each.
        words = sorted(piece[1:] for piece in Weights().pieces if re.fullmatch("\u2581[a-z]{3,12}", piece))
        self.words = self.chance.sample(words, VOCABULARY)
        self.weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1)).tolist()
        generator = np.random.default_rng(7)
        self.centres = generator.normal(size=(CLUSTERS, dim)).astype(np.float32)
        self.generator = np.random.default_rng((7, seed))

    def text(self, low: int, high: int, chance: random.Random | None = None) -> str:
        chance = chance or self.chance
        return " ".join(chance.choices(self.words, cum_weights=self.weights, k=chance.randint(low, high)))

    def note(self, number: int) -> Read:
        when = datetime.fromtimestamp(START + APART * number, UTC)
        key = f"{SPACE}/live/{when:%Y%m%dT%H%M%S}_agent-{number % 7}_decision_{number:08x}.md"
        return key, "e", SPACE, records_in(key, self.text(*WORDS, random.Random(number)).encode(), "e", 0)

    def vectors(self, count: int) -> np.ndarray:
        rows = self.centres[self.generator.integers(0, CLUSTERS, count)]
        rows = rows + self.generator.normal(size=rows.shape).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def timed(into: list[float], call: Callable[[], T]) -> T:
    """The result of a call; its milliseconds go into the list."""
    start = time.perf_counter()
    found = call()
    into.append((time.perf_counter() - start) * 1e3)
    return found


def grow(place: Local | Shared, model: str, dim: int, numbers: range) -> None:
    """Take in notes and vectors, in a process of its own: what that leaves in memory is not the index's."""
    index, made = place.open(model), Made(dim, numbers.start)
    for start in range(numbers.start, numbers.stop, BATCH):
        index.apply([], [made.note(number) for number in range(start, min(start + BATCH, numbers.stop))])
        while texts := index.unembedded(BATCH):
            index.take_vectors([text.meaning for text in texts], made.vectors(len(texts)))
    index.close()


def measure(place: Local | Shared, sizes: list[int]) -> Iterator[Figures]:
    """Grow one index from size to size and measure at each."""
    model, there, built = Builtin.load(), 0, 0.0
    made = Made(model.dim)
    for size in sizes:
        start = time.perf_counter()
        child = get_context("spawn").Process(target=grow, args=(place, model.name, model.dim, range(there, size)))
        child.start()
        child.join()
        if child.exitcode:
            raise RuntimeError("the index could not be filled")
        built += time.perf_counter() - start
        there = size
        start = time.perf_counter()
        index = place.open(model.name)
        opened = time.perf_counter() - start
        insert, parts = inserts(index, made, size), questions(index, made, model)
        rss = rss_mb()
        index.close()
        del index
        yield Figures(size, built, opened, insert, parts, rss, place.megabytes())


def inserts(index: Engine, made: Made, size: int) -> list[float]:
    """From the close of a note until its words find it."""
    times: list[float] = []
    for number in range(20):
        note = made.note(size + number)
        index.apply([note[0]], [])
        timed(times, lambda note=note: index.apply([], [note]))  # type: ignore[misc]
        index.apply([note[0]], [])
    return times


def questions(index: Engine, made: Made, model: Builtin) -> dict[str, list[float]]:
    """Questions of a few words, in all and list by list."""
    where = Restriction(fields=(("space", (SPACE,)),))
    parts: dict[str, list[float]] = {"read": [], "words": [], "meaning": [], "all": []}
    for _ in range(QUESTIONS):
        text = made.text(3, 8)
        query = parse(text, now=datetime.now(UTC))
        whole = time.perf_counter()
        vector = timed(parts["read"], lambda text=text: trio.run(model.question, text))  # type: ignore[misc]
        near = made.vectors(1)[0]
        search(index, query, near if vector is not None else None, (SPACE,))
        parts["all"].append((time.perf_counter() - whole) * 1e3)
        timed(parts["words"], lambda text=text: index.text(TextQuery(text), where, CANDIDATES))  # type: ignore[misc]
        timed(parts["meaning"], lambda near=near: index.near(near, where, CANDIDATES))  # type: ignore[misc]
    return parts


def p(values: list[float], share: float) -> float:
    """A percentile."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def rss_mb() -> float:
    """Memory of this process now: with the index open, and after questions."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def main(sizes: list[int], index_url: str = "") -> int:
    """Measure and print a table; `index_url`: of a database, in place of a folder."""
    timings = "".join(f"{name + ' p50/p95':>16}" for name in ("insert", "read", "words", "meaning", "all"))
    gc.freeze()  # as a mount does
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    print(f"{'records':>9}  build s  open s{timings}  RSS MB  disk MB")
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-") as folder, ExitStack() as stack:
        place = Shared(index_url) if index_url else Local(Path(folder))
        stack.callback(place.remove)
        for found in measure(place, sizes):
            cells = [f"{p(found.insert, 0.5):6.1f} /{p(found.insert, 0.95):6.1f}"]
            cells += [f"{p(values, 0.5):6.1f} /{p(values, 0.95):6.1f}" for values in found.parts.values()]
            print(
                f"{found.records:>9,} {found.build_s:8.1f} {found.open_s:7.1f}  {'  '.join(cells)}"
                f"  {found.rss_mb:6.0f}  {found.disk_mb:7.0f}",
                flush=True,
            )
            assert statistics.fmean(found.parts["all"]) > 0
    return 0
