"""`scripts/bench stall`: for how long a mount does not answer while clients of its HTTP server ask for much.

Owns the bucket, the mount with `--web`, and the requests, each of which ten clients repeat side by side while another
process looks at a file on the mount every few milliseconds: a `stat` and an `open` with a `read`, of which the second
always reaches the daemon. The figure is the longest of them. Refuses nothing: a request that is answered with an error
is shown with its status. Main thread; each client is a thread of a process of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchlib.ports import free_ports
from benchlib.seed import START, notes
from benchlib.servers import TIED
from benchlib.table import aligned, percentile
from benchlib.workloads import Sizes
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.session import Session
from livememfs.records.space import Meta

SPACE = "bench-notes"
CLIENTS = 10
PAUSE = 0.002
MOST_MS = 100.0
READY_WITHIN = 120.0
HEADINGS = ("request", "times/s", "status", "stat p99 ms", "longest ms", "")
NOTHING = "nothing"
FILE = f"{SPACE}/looked-at.txt"
WORDS = " ".join(f"word{number}" for number in range(300_000))
NESTED = "[" * 100_000 + "]" * 100_000
MANY = json.dumps([{"a": number} for number in range(250_000)])
WATCH = """
import os, sys, time
path, seconds, pause = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
end, now = time.monotonic() + seconds, time.monotonic
while now() < end:
    start = now()
    os.stat(path)
    with open(path, 'rb', buffering=0) as file:
        file.read(100)
    print((now() - start) * 1e3)
    time.sleep(pause)
"""


@dataclass(frozen=True)
class Asked:
    """One request. `session`: it is sent in a session of MCP, which is opened first."""

    name: str
    method: str = "GET"
    path: str = "/mcp?tools=all"
    body: bytes = b""
    session: bool = False
    headers: dict[str, str] = field(default_factory=dict)


def call(tool: str, name: str = "", **arguments: Any) -> Asked:
    """A call of a tool."""
    params = {"name": tool, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()
    return Asked(name or tool, "POST", body=body, session=True)


def requests() -> list[Asked]:
    """What is asked, the attacks that were seen among them."""
    base, web = f"/s/{SPACE}", "application/x-www-form-urlencoded"
    question, sixty = "which lock was missing and why", " ".join(f"word{number}" for number in range(60))
    return [
        Asked(NOTHING),
        call("live_search", "live_search, 1.9 MB", space_id=SPACE, query=WORDS),
        call("live_search", "live_search, 60 words", space_id=SPACE, query=sixty),
        call("live_search", "live_search, no hit", space_id=SPACE, query="nowhere-to-be-found"),
        call("search_memory", "search_memory, 1.9 MB", query=WORDS),
        call("search_memory", query=question, project=SPACE),
        call("search_memory", "search_memory, -x -y", query=" ".join(f"-w{n}" for n in range(150)), project=SPACE),
        call("search_memories", "search_memories, 1.9 MB", space_id=SPACE, query=WORDS),
        call("search_memories", space_id=SPACE, query=question),
        call("live_read", space_id=SPACE, limit=500),
        call("bank_list", space_id=SPACE),
        call("bank_read", space_id=SPACE, filename="large.md"),
        call("bank_read_all", space_id=SPACE),
        call("space_summary", space_id=SPACE),
        call("space_info", space_id=SPACE),
        call("get_project_context", project=SPACE),
        call("timeline", project=SPACE),
        call("memory", "memory view, 1 MB", space_id=SPACE, command="view", path="/memories/large.txt"),
        call("space_export", space_id="small"),
        call("live_note", "live_note, 1 MB", space_id="written", content="a line of a long note\n" * 47_000),
        Asked("MCP, deep JSON", "POST", body=NESTED.encode(), session=True),
        Asked("MCP, 4 MB of JSON", "POST", body=MANY.encode()[: 4 << 20], session=True),
        Asked("MCP, a batch", "POST", body=MANY.encode(), session=True),
        Asked("resources/list", "POST", body=b'{"jsonrpc":"2.0","id":2,"method":"resources/list"}', session=True),
        Asked("tools/list", "POST", body=b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}', session=True),
        Asked("initialize", "POST", body=INITIALIZE),
        Asked("/", path="/"),
        Asked("live page", path=f"{base}/"),
        Asked("search page", path=f"{base}/search?q={quote(question)}"),
        Asked("bank page, 1 MB", path=f"{base}/bank/large.md"),
        Asked("bank page, 250 kB", path=f"{base}/bank/markdown.md"),
        Asked("bank source", path=f"{base}/bank/large.md?view=source"),
        Asked("bank changes", path=f"{base}/bank/large.md?view=changes&from=0&to=now"),
        Asked("sessions page", path=f"{base}/sessions/"),
        Asked("a large session", path=f"{base}/sessions/s-00"),
        Asked("observations page", path=f"{base}/observations/"),
        Asked("consolidation page", path=f"{base}/consolidation"),
        Asked("/metrics", path="/metrics"),
        Asked("/healthz", path="/healthz"),
        Asked("/login", "POST", "/login", b"token=lm_" + b"x" * 43, headers={"content-type": web}),
        Asked("/login, 4 MB", "POST", "/login", b"a&" * (2 << 20), headers={"content-type": web}),
        Asked("a token that is none", path="/mcp", headers={"authorization": "Bearer lm_" + "y" * 43}),
    ]


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    }
).encode()


# --- the bucket ------------------------------------------------------------------------------------------------------


def fill(store: Path, count: int) -> None:
    """A space with so many notes, a large bank and large sessions; two small ones beside it."""

    def put(key: str, data: bytes) -> None:
        (store / key).parent.mkdir(parents=True, exist_ok=True)
        (store / key).write_bytes(data)

    for space in (SPACE, "small", "written"):
        put(keys.meta_key(space), Meta(space, "made to be measured", "bench", START).render())
    for name, data in notes(Sizes(notes=count)):
        put(keys.live_key(SPACE, name), data)
    line = "A settled line, with *marks* and `code`, as a bank has many of: number {}.\n"
    large = "".join(line.format(number) for number in range(13_500))
    put(keys.bank_key(SPACE, "large.md"), large.encode())
    put(keys.bank_key(SPACE, "markdown.md"), (("* > " * 8 + "[a](b) **c** `d`\n" * 400) * 40).encode()[:250_000])
    for number in range(40):
        put(keys.bank_key(SPACE, f"topic-{number}.md"), large[: 20 << 10].encode())
    put(f"{SPACE}/large.txt", large.encode()[: 1 << 20])
    put(FILE, b"looked at\n")
    put("small/data.bin", os.urandom(1_900_000))
    _put_observed(put)


def _put_observed(put: Callable[[str, bytes], None]) -> None:
    """What an observer would have left: sessions of which one is large, and what was seen in them."""
    for number in range(300):
        name, moment = f"s-{number:02}", START + timedelta(hours=number)
        session = Session(name, SPACE, moment, moment)
        put(keys.session_key(SPACE, name), session.render())
        prompt = json.dumps({"at": "2026-01-01T00:00:00Z", "prompt": "Why does the lock fail? " * 40}) + "\n"
        put(keys.session_key(SPACE, name, "prompts.ndjson"), prompt.encode() * (1_500 if not number else 5))
    for number in range(3_000):
        moment = START + timedelta(minutes=number)
        one = Observation(
            f"{number:08x}", f"s-{number % 300:02}", moment, "bugfix", f"A lock was missing in part {number}",
            "in the queue", "Two writers met. " * 20, ("one fact",), ("concurrency",), (f"f{number}.py",), ("lock.py",),
            SPACE, "claude",
        )  # fmt: skip
        put(f"{SPACE}/observations/{moment:%Y%m%dT%H%M%S}_bugfix_{number:08x}.md", one.render())


# --- the mount -------------------------------------------------------------------------------------------------------


@contextmanager
def mounted(home: Path) -> Iterator[tuple[Path, int, str]]:
    """A mount with a server, its port, and a token that may do everything."""
    mount, (port,) = home / "mnt", free_ports(1)
    environment = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "TMPDIR") if name in os.environ},
        "HOME": str(home),
        "LIVEMEMFS_STORE": str(home / "store"),
        "LIVEMEMFS_CACHE": str(home / "cache"),
        "LIVEMEMFS_EMBED_MODEL": "none",  # what computes meanings has a thread of its own, and would take minutes first
    }
    mount.mkdir()
    program = [sys.executable, "-m", "livememfs"]
    made = subprocess.run(
        [*program, "token", "create", "bench", "--permissions", "admin", "--json"],
        env=environment, capture_output=True, text=True, check=True, cwd="/",
    )  # fmt: skip
    command = [*TIED, *program, "mount", "--foreground", "--web", f"127.0.0.1:{port}", mount]
    with (home / "log").open("wb") as log:
        daemon = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True, cwd="/")
    try:
        deadline = time.monotonic() + READY_WITHIN
        while not (mount / ".livememfs").exists():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((home / "log").read_text())
            time.sleep(0.1)
        yield mount, port, json.loads(made.stdout)["token"]
    finally:
        subprocess.run(["fusermount3", "-u", mount], check=False, capture_output=True)
        daemon.wait(READY_WITHIN)


# --- asking ----------------------------------------------------------------------------------------------------------


class Client(threading.Thread):
    """Repeats one request until told to end."""

    def __init__(self, asked: Asked, port: int, token: str, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._asked, self._port, self._ended = asked, port, ended
        self._headers = {
            "authorization": f"Bearer {token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **asked.headers,
        }
        self.answers: Counter[str] = Counter()

    def run(self) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._ended.is_set():
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
                    self._open(connection)
                self.answers[self._ask(connection, self._asked.method, self._asked.path, self._asked.body)[0]] += 1
            except (OSError, http.client.HTTPException) as error:
                self.answers[type(error).__name__] += 1
                connection = None
        if connection is not None and "mcp-session-id" in self._headers:
            self._ask(connection, "DELETE", "/mcp", b"")

    def _open(self, connection: http.client.HTTPConnection) -> None:
        if self._asked.session and "mcp-session-id" not in self._headers:
            _, headers, _ = self._ask(connection, "POST", "/mcp", INITIALIZE)
            self._headers["mcp-session-id"] = headers.get("mcp-session-id", "")
            self._ask(connection, "POST", "/mcp", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes
    ) -> tuple[str, dict[str, str], bytes]:
        connection.request(method, path, body or None, self._headers)
        answer = connection.getresponse()
        data = answer.read()
        refused = b'"isError":true' in data or b'"error"' in data[:400]
        return f"{answer.status}{' refused' if refused else ''}", {k.lower(): v for k, v in answer.getheaders()}, data


def longest(mount: Path, seconds: float) -> list[float]:
    """Milliseconds that each look at the file took."""
    command = [*TIED, sys.executable, "-c", WATCH, str(mount / FILE), str(seconds), str(PAUSE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(float(line) for line in done.stdout.split())


def measured(asked: Asked, mount: Path, port: int, token: str, seconds: float) -> tuple[str, ...]:
    """A row of the table."""
    ended = threading.Event()
    count = CLIENTS if asked.name != NOTHING else 0
    clients = [Client(asked, port, token, ended) for _ in range(count)]
    for client in clients:
        client.start()
    found = longest(mount, seconds)
    ended.set()
    for client in clients:
        client.join(90)
    answers = sum((client.answers for client in clients), Counter[str]())
    status = ", ".join(f"{count}x {name}" for name, count in answers.most_common(2))
    verdict = "" if found[-1] < MOST_MS else "missed"
    rate = sum(answers.values()) / seconds
    return asked.name, f"{rate:.1f}", status, f"{percentile(found, 0.99):.1f}", f"{found[-1]:.1f}", verdict


def main(count: int, seconds: float, only: Sequence[str]) -> int:
    """Measure and print a table; 1 when something kept the mount from answering for too long."""
    chosen = [one for one in requests() if not only or any(part in one.name for part in only)]
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        fill(home / "store", count)
        with mounted(home) as (mount, port, token):
            warm = Client(call("search_memory", query="lock", project=SPACE), port, token, threading.Event())
            deadline = time.monotonic() + READY_WITHIN
            warm.start()
            while time.monotonic() < deadline and not _settled(mount):
                time.sleep(1)
            warm._ended.set()
            for one in chosen:
                rows.append(measured(one, mount, port, token, seconds))
                print(aligned([HEADINGS, rows[-1]], right={1, 3, 4}).splitlines()[-1], flush=True)
    print(f"\n{count:,} notes, {CLIENTS} clients, {seconds:.0f} s each, a look every {PAUSE * 1e3:.0f} ms")
    print(aligned([HEADINGS, *rows], right={1, 3, 4}))
    return 1 if any(row[-1] for row in rows) else 0


def _settled(mount: Path) -> bool:
    status = json.loads((mount / ".livememfs/status.json").read_text())["statistics"]
    index = status["recall"].get("index") or {}
    return bool(index) and not status["recall"]["waiting"]
