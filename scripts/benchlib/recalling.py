"""`scripts/bench recall`: one message to `.recall` and its answer, from a shell, by the number of memories.

Owns the memories, which are made up as those of `search` are: all but their vectors is as on any mount, which has them
on a folder store. Times are those of a bash that opens the file, writes, reads and closes; the parts are the daemon's
own, once everything that a mount does at its beginning is done: names compared, and kept. Main thread only.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio

from benchlib.search import BATCH, SPACE, Local, Made, p
from benchlib.servers import TIED
from livememfs.app.recall import index_folder
from livememfs.config import Settings
from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.index.reader import records_in
from livememfs.records import keys
from livememfs.records.memory import TYPES, Memory, canonical_name
from livememfs.records.space import Meta
from livememfs.store.base import list_all
from livememfs.store.directory import DirectoryStore

SESSIONS, TURNS = 5, 20
FILES, SECTIONS = 20, 50
"""Of the bank."""
WORDS = (8, 20)
DAYS = 400
READY_WITHIN, COMPARED_WITHIN = 60.0, 900.0
PARTS = ("embedding", "indexed", "search", "dedup", "formatting")
_META = Meta(SPACE, "made to be measured", "bench", datetime.now(UTC)).render()
TALK = """
while IFS= read -r line; do
  start=$EPOCHREALTIME
  exec 3<>"$1"; printf '%s\\n' "$line" >&3; cat <&3 >"$2"; exec 3>&-
  end=$EPOCHREALTIME
  printf '%s ' "$(( ${end/./} - ${start/./} ))"; cat "$2"
done
"""


def memories(made: Made, numbers: range) -> Iterator[tuple[str, bytes]]:
    """Names and bytes: of all types, some of them new, most of them old."""
    chance, now = random.Random(numbers.start), datetime.now(UTC)
    for number in numbers:
        kind = chance.choice(tuple(TYPES))
        # None within the last day but a few: a mount compares those with all others, which is another measurement.
        days = chance.random() ** 2 * DAYS + 1.1 if number % 5_000 else 0.1
        then = now - timedelta(days=days)
        memory = Memory(keys.MEMORIES, kind, made.text(*WORDS, chance), TYPES[kind], then, then, space_id=SPACE)
        yield canonical_name(memory, f"{number:08x}"), memory.render()


def bank(made: Made) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of bank files, each of many sections."""
    chance = random.Random(FILES)
    for number in range(FILES):
        sections = (f"## {made.text(1, 4, chance)}\n\n{made.text(20, 90, chance)}\n" for _ in range(SECTIONS))
        yield f"file-{number}.md", f"# File {number}\n\n{''.join(sections)}".encode()


def fill(store: Path, settings: Settings, made: Made, model: str, numbers: range) -> None:
    """Put memories, and at first a bank, into the folder and into the index of a mount that is to come."""
    store.mkdir(parents=True, exist_ok=True)
    written = {f"{SPACE}/{keys.MEMORIES}/{name}": data for name, data in memories(made, numbers)}
    if not numbers.start:
        written |= {keys.bank_key(SPACE, name): data for name, data in bank(made)}
    put(store, settings, made, model, written)


def put(store: Path, settings: Settings, made: Made, model: str, written: Mapping[str, bytes]) -> None:
    """Put objects into the folder of the store, and into the index."""
    long_ago = time.time() - 30 * 86_400  # what is new would be compared with everything meanwhile
    for key, data in {keys.meta_key(SPACE): _META, **written}.items():
        (store / key).parent.mkdir(parents=True, exist_ok=True)
        (store / key).write_bytes(data)
        os.utime(store / key, (long_ago, long_ago))

    async def etags() -> dict[str, str]:
        opened = DirectoryStore(store)
        found = await list_all(opened, f"{SPACE}/")
        await opened.aclose()
        return {info.key: info.etag for info in found.objects}

    versions, index = trio.run(etags), Local(index_folder(settings)).open(model)
    names = list(written)
    for start in range(0, len(names), BATCH):
        index.apply(
            [],
            [
                (key, versions[key], SPACE, records_in(key, written[key], versions[key], 0))
                for key in names[start : start + BATCH]
            ],
        )
        while texts := index.unembedded(BATCH):
            index.take_vectors([text.meaning for text in texts], made.vectors(len(texts)))
    index.close()


def talk(file: Path, scratch: Path, messages: list[dict[str, str]]) -> list[tuple[float, dict[str, float], int]]:
    """Milliseconds from the shell, those of each part, and how many were told, for each message; none where the answer
    says that something is missing yet.
    """
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run(
        ["bash", "-c", TALK, "bash", file, scratch], input=lines, capture_output=True, text=True, check=True
    )
    found = []
    for line in done.stdout.splitlines():
        micros, _, answer = line.partition(" ")
        value = json.loads(answer)
        found.append((int(micros) / 1e3, {} if value["notes"] else value["ms"], len(value["memories"])))
    return found


def settle(mount: Path, deadline: float) -> None:
    """Wait until nothing is left to do that the mount would do by itself."""
    while True:
        status = json.loads((mount / ".livememfs/status.json").read_text())["statistics"]
        left = status["replica"]["unkept"], status["merging"]["waiting"], status["recall"]["sharing"]["waiting"]
        if not any(left):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"the mount does not come to rest: {left}")
        time.sleep(1.0)


@contextmanager
def ready(home: Path, settings: Settings, made: Made, mount: Path) -> Iterator[float]:
    """A fresh mount that has done what a mount does at its beginning; what its first answer took, in milliseconds."""
    environment = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "TMPDIR") if name in os.environ},
        "HOME": str(home),
        "LIVEMEMFS_STORE": settings.store,
        "LIVEMEMFS_CACHE": settings.cache,
    }
    mount.mkdir()
    command = [*TIED, sys.executable, "-m", "livememfs", "mount", "--foreground", mount]
    with (home / "log").open("wb") as log:
        daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd="/")
    try:
        deadline = time.monotonic() + READY_WITHIN
        while not (mount / ".livememfs").exists():
            if time.monotonic() > deadline:
                raise RuntimeError((home / "log").read_text())
            time.sleep(0.02)
        file, scratch = mount / SPACE / ".recall", home / "answer"
        first = talk(file, scratch, [{"session": "first", "message": made.text(3, 8), "format": "json"}])[0]
        deadline = time.monotonic() + COMPARED_WITHIN
        while not talk(file, scratch, [{"session": "warm", "message": made.text(3, 8), "format": "json"}])[0][1]:
            if time.monotonic() > deadline:
                raise RuntimeError("the mount does not end comparing names")
            time.sleep(0.2)
        settle(mount, deadline)
        yield first[0]
    finally:
        subprocess.run(["fusermount3", "-u", mount], check=False, capture_output=True)
        daemon.wait(READY_WITHIN)


def measure(home: Path, settings: Settings, made: Made, size: int) -> str:
    """A row of the table: a fresh mount, its first answer, and the sessions after it."""
    mount = home / f"mnt-{size}"
    with ready(home, settings, made, mount) as first:
        messages = [
            {"session": f"s{session}", "message": made.text(4, 14), "format": "json"}
            for session in range(SESSIONS)
            for _ in range(TURNS)
        ]
        found = talk(mount / SPACE / ".recall", home / "answer", messages)
    shell = [one[0] for one in found]
    parts = [[one[1].get(name, 0.0) for one in found] for name in PARTS]
    cells = "".join(f"{p(values, 0.5):7.1f} /{p(values, 0.95):5.1f}" for values in parts)
    told = sum(one[2] for one in found) / len(found)
    whole = " /".join(f"{p(shell, share):{width}.1f}" for share, width in ((0.5, 8), (0.95, 5), (0.99, 5)))
    return f"{size:>9,} {first:8.0f} {whole}{cells} {told:6.1f}"


def main(sizes: list[int]) -> int:
    """Measure and print a table."""
    model = Builtin.load()
    made = Made(model.dim)
    print(f"{SESSIONS} sessions of {TURNS} messages; milliseconds; parts p50 / p95")
    parts = "".join(f"{name:>14}" for name in PARTS)
    print(f"{'memories':>9} {'first':>8} {'shell p50 / p95 / p99':>24}{parts} {'told':>6}")
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as folder:
        home, there = Path(folder), 0
        settings = Settings(store=str(home / "store"), cache=str(home / "cache"))  # type: ignore[call-arg]  # the rest have defaults
        for size in sizes:
            fill(home / "store", settings, made, model.name, range(there, size))
            there = size
            print(measure(home, settings, made, size), flush=True)
    return 0
