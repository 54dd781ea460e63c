"""`scripts/bench index`: how long after the first question everything can be found, and what a mount is like meanwhile.

Owns the notes, which are paragraphs of this project's own documentation, mixed anew for each. A mount with an empty
cache is asked, and then a second one, which finds in the bucket what the first has computed. Main thread; one more asks
how far it is.
"""

from __future__ import annotations

import random
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import trio

from benchlib import servers
from benchlib.places import OurMount
from benchlib.seed import START, UPLOADS
from livememfs.records import keys
from livememfs.records.note import CATEGORIES, Note, canonical_name, uid8
from livememfs.records.space import Meta
from livememfs.store.base import Store

SPACE = "bench"
APART = timedelta(minutes=20)
"""Between two notes: each is written in the sitting of the one before."""
SENTENCES = (3, 8)
LOOK_SECONDS = 0.5
STAT_SECONDS = 0.01
QUESTION = "which crash does the next mount repair"


@dataclass
class Figures:
    """One mount from its first question on; seconds, but for `stat`, whose samples are milliseconds.

    :words: until all notes were found by their words
    :meant: until all were found by their meaning
    """

    words: float = 0.0
    meant: float = 0.0
    embedded: int = 0
    rss_mb: float = 0.0
    stat: list[float] = field(default_factory=list)


def sentences() -> list[str]:
    """What the notes are made of."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    text = " ".join(file.read_text() for file in sorted(docs.glob("*.md")))
    found = [" ".join(one.split()) for one in re.split(r"(?<=[.:;])\s", text)]
    return [one for one in found if 30 < len(one) < 200 and one.count("|") < 2]


def notes(count: int) -> Iterator[tuple[str, bytes]]:
    """Names and bytes, of about a hundred tokens each."""
    chance, there = random.Random(7), sentences()
    for number in range(count):
        body = " ".join(chance.sample(there, chance.randint(*SENTENCES)))
        agent, category = f"agent-{number % 4}", CATEGORIES[number % len(CATEGORIES)]
        note = Note(START + number * APART, agent, category, (), SPACE, f"{number}: {body}")
        yield canonical_name(note, uid8(SPACE, str(number))), note.render()


def fill(store: Store, count: int) -> list[str]:
    """Put the notes into a bucket, and close the store; their names."""
    names: list[str] = []

    async def upload(contents: Iterator[tuple[str, bytes]]) -> None:
        for name, data in contents:
            await store.put(keys.live_key(SPACE, name), data)
            names.append(name)

    async def all_of_them() -> None:
        await store.put(keys.meta_key(SPACE), Meta(SPACE, "made to be measured", "bench", START).render())
        contents = notes(count)
        async with trio.open_nursery() as nursery:
            for _ in range(UPLOADS):
                nursery.start_soon(upload, contents)
        await store.aclose()

    trio.run(all_of_them)
    return names


def index_all(mount: OurMount, names: list[str], limit: float) -> Figures:
    """Ask, and wait until all is found, with a `stat` of some note now and then."""
    found, done, chance = Figures(), threading.Event(), random.Random(7)
    live = mount.path / SPACE / keys.LIVE
    list(live.iterdir())
    begun = time.perf_counter()

    def watch() -> None:
        list((mount.path / SPACE / "search" / QUESTION).iterdir())
        while time.perf_counter() - begun < limit and not done.is_set():
            time.sleep(LOOK_SECONDS)
            figures = mount.figures()["recall"]
            if not figures["waiting"] and figures["index"]["objects"] >= len(names):
                found.words = found.words or time.perf_counter() - begun
                if figures["index"]["embedded"] >= figures["index"]["pieces"]:
                    found.meant, found.embedded = time.perf_counter() - begun, figures["model"]["texts"]
                    done.set()
        done.set()

    watching = threading.Thread(target=watch)
    watching.start()
    while not done.wait(STAT_SECONDS):
        name = chance.choice(names)
        start = time.perf_counter()
        (live / name).stat()
        found.stat.append((time.perf_counter() - start) * 1e3)
    watching.join()
    found.rss_mb = mount.rss_mb()
    return found


def p(values: list[float], share: float) -> float:
    """A percentile."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def line(what: str, found: Figures) -> str:
    """A row of the table."""
    stat = " / ".join(f"{p(found.stat, share):.2f}" for share in (0.5, 0.95, 0.99, 1.0))
    return (
        f"{what:<34} {found.words:8.1f} {found.meant:9.1f} {found.embedded:9,} {found.rss_mb:7.0f}   {stat}"
        f"  (of {len(found.stat):,})"
    )


def main(
    count: int, server_choice: str, latency: float, open_store: Callable[[servers.Server], Store], limit: float
) -> int:
    """Measure and print a table. 1 when something was not found within `limit` seconds."""
    rows: list[Figures] = []
    with (
        tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as folder,
        servers.s3_server(server_choice, Path(folder)) as server,
        servers.proxy_to(server) if latency else nullcontext() as proxy,
    ):
        names = fill(open_store(server), count)
        print(f"{count:,} notes; seconds from the first question on; milliseconds of a stat p50 / p95 / p99 / max")
        print(f"{'mount':<34} {'words':>8} {'meaning':>9} {'embedded':>9} {'RSS MB':>7}   stat")
        with OurMount(server, proxy, latency, Path(folder)) as mount:
            for what in ("the first", "another, with an empty cache"):
                mount.refresh()
                rows.append(index_all(mount, names, limit))
                print(line(what, rows[-1]), flush=True)
    return 0 if all(row.meant for row in rows) else 1
