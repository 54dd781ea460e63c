"""`scripts/bench web`: pages of a space with very many notes and observations, from the first byte to the last.

Owns the bucket, which is a folder, and the requests: plain HTTP over loopback, each on a connection of its own, as the
first request of a browser is. `first` is the first time that a page is asked for after the start; `again` what it costs
after that; `changed` when a note was written meanwhile, so that the space's names are put in order anew. Main thread.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from benchlib.seed import START
from benchlib.table import aligned, percentile
from livememfs.records import keys
from livememfs.records.note import CATEGORIES, Note, canonical_name, uid8
from livememfs.records.observation import TYPES, Observation
from livememfs.records.space import Meta

SPACE = "large"
PAGES = {
    "spaces": "/",
    "feed of all spaces": "/feed",
    "feed": f"/s/{SPACE}/",
    "feed, a page in the middle": f"/s/{SPACE}/?before=20260205T000000",
    "notes": f"/s/{SPACE}/notes/",
    "decisions": f"/s/{SPACE}/?type=decision",
    "observations": f"/s/{SPACE}/observations/",
}
COMMAND = (sys.executable, "-m", "livememfs")
HEADINGS = ("page", "when", "first byte p50 ms", "p95", "whole p50 ms", "p95", "kB")
BODY = (
    "The **queue** is slow when forty workers start at once; see `queue.py`.\n\n- measured twice\n- not in the night\n"
)


def main(notes: int, observations: int, rounds: int) -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as home:
        _fill(Path(home) / "store", notes, observations)
        token = _token(Path(home))
        with _served(Path(home)) as address:
            listed = _until_listed(address, token)
        with _served(Path(home)) as address:
            lines = list(_measured(address, token, rounds))
    print(f"{notes:,} notes and {observations:,} observations in one space, {rounds} rounds, {os.cpu_count()} CPUs")
    print(f"the feed of a bucket that was never listed before: {listed:.1f} s\n")
    print(aligned([HEADINGS, *lines], right={2, 3, 4, 5, 6}))
    return 0


def _measured(address: str, token: str, rounds: int) -> Iterator[tuple[str, ...]]:
    for page, path in PAGES.items():
        yield _line(page, "first", [_asked(address, path, token)])
        yield _line("", "again", [_asked(address, path, token) for _ in range(rounds)])
        changed = []
        for number in range(rounds):
            _write(address, token, f"written for {page}, {number}")
            changed.append(_asked(address, path, token))
        yield _line("", "changed", changed)


def _line(page: str, when: str, samples: list[tuple[float, float, int]]) -> tuple[str, ...]:
    figures = [f"{1e3 * percentile([one[at] for one in samples], part):,.1f}" for at in (0, 1) for part in (0.5, 0.95)]
    return (page, when, *figures, f"{samples[0][2] / 1e3:,.0f}")


def _until_listed(address: str, token: str) -> float:
    """Seconds until the feed is there for the first time, when the bucket is asked for all its names."""
    start = time.perf_counter()
    while True:
        with suppress(AssertionError):  # an answer has a deadline
            _asked(address, PAGES["feed"], token)
            return time.perf_counter() - start


def _asked(address: str, path: str, token: str) -> tuple[float, float, int]:
    """Seconds until the first byte and until the last, and the bytes."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.connect()
    start = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": f"livememfs_token={token}"})
    answer = connection.getresponse()
    answer.read(1)
    first = time.perf_counter() - start
    rest = answer.read()
    whole = time.perf_counter() - start
    connection.close()
    assert answer.status == 200, f"{path}: {answer.status}"
    return first, whole, len(rest) + 1


def _write(address: str, token: str, text: str) -> None:
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"Cookie": f"livememfs_token={token}", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request("POST", f"/s/{SPACE}/notes/", body=f"text={text.replace(' ', '+')}", headers=headers)
    assert connection.getresponse().status == 303
    connection.close()


def _fill(store: Path, notes: int, observations: int) -> None:
    """The objects of the bucket, each a file: nobody serves it yet."""
    for folder in (keys.LIVE, keys.OBSERVATIONS, keys.BANK):
        (store / SPACE / folder).mkdir(parents=True)
    (store / keys.meta_key(SPACE)).write_bytes(Meta(SPACE, "made to be measured", "bench", START).render())
    each = {keys.LIVE: (notes, _note), keys.OBSERVATIONS: (observations, _observation)}
    made: tuple[int, Callable[[int], tuple[str, bytes]]]
    for folder, made in each.items():
        for number in range(made[0]):
            name, data = made[1](number)
            (store / SPACE / folder / name).write_bytes(data)


def _note(number: int) -> tuple[str, bytes]:
    category, when = CATEGORIES[number % len(CATEGORIES)], START + timedelta(minutes=number)
    note = Note(when, f"agent-{number % 4}", category, ("bench",), SPACE, f"Note {number}. {BODY}")
    return canonical_name(note, uid8(SPACE, str(number))), note.render()


def _observation(number: int) -> tuple[str, bytes]:
    when = START + timedelta(minutes=10 * number)
    record = Observation(
        f"{number:08x}", f"session-{number // 20}", when, TYPES[number % len(TYPES)], f"Observation {number}", "",
        BODY, ("one fact",), ("how-it-works",), ("queue.py",), (), "bench", f"agent-{number % 4}",
    )  # fmt: skip
    return record.name, record.render()


def _environment(home: Path) -> dict[str, str]:
    settings = {"LIVEMEMFS_STORE": str(home / "store"), "LIVEMEMFS_CACHE": str(home / "cache")}
    return {**os.environ, **settings, "LIVEMEMFS_EMBED_MODEL": "none", "XDG_CONFIG_HOME": str(home)}


def _token(home: Path) -> str:
    made = [*COMMAND, "token", "create", "bench", "--permissions", "read,write", "--json"]
    done = subprocess.run(made, env=_environment(home), check=True, capture_output=True)
    return str(json.loads(done.stdout)["token"])


@contextmanager
def _served(home: Path) -> Iterator[str]:
    """The host and port of the page."""
    served = [*COMMAND, "web", "127.0.0.1:0"]
    daemon = subprocess.Popen(
        served, env=_environment(home), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert daemon.stdout is not None  # it is a pipe
        yield urlsplit(daemon.stdout.readline().strip()).netloc
    finally:
        daemon.terminate()
        daemon.wait(30)
