"""The programs: how each is installed, kept to itself, pointed at our model, started, and what it calls its tools.

Owns reading the table in `programs.toml`. A program's own HOME holds all it keeps; no address but the model's on
loopback is told to it. Main thread only, but for `call`, which the model's threads use.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trylib.endpoint import SEARCHES, Json, Turn

SERVER_TOOL = "live_note"


class Missing(Exception):
    """A program that does not run here, and why."""


@dataclass(frozen=True)
class Ran:
    """One run of a program: what it printed, its status (None: ended for being too slow) and seconds."""

    output: str
    status: int | None
    seconds: float


@dataclass(frozen=True)
class Program:
    """One agent's program; `programs.toml` says what the fields are."""

    name: str
    agent: str
    package: str
    binary: str
    start: Sequence[str]
    again: Sequence[str]
    server: str
    environment: Mapping[str, str]
    files: Mapping[str, str]
    tools: Mapping[str, tuple[str, Mapping[str, str]]]
    lacks: Mapping[str, str] = field(default_factory=dict)
    compact: str = ""
    full: int = 0
    keeps: str = ""

    def install(self, folder: Path) -> Path:
        """The program's file, had from npm if it is not below `folder` yet. Missing when that fails."""
        folder = folder / self.package.rpartition("@")[0].rpartition("/")[2]
        binary = folder / "node_modules" / ".bin" / self.binary
        if not binary.exists():
            folder.mkdir(parents=True, exist_ok=True)
            words = ["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), self.package]
            done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                raise Missing(f"npm: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return binary

    def settle(self, home: Path, project: Path, url: str) -> None:
        """Write what the program is to find below its HOME."""
        for path, text in self.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text.replace("{url}", url).replace("{project}", str(project)))

    def run(self, binary: Path, prompt: str, *, home: Path, project: Path, url: str, again: bool, limit: float) -> Ran:
        """A session, or the last one gone on with, until the program ends or is ended after `limit` seconds."""
        words = [str(binary), *(word.replace("{prompt}", prompt) for word in (self.again if again else self.start))]
        path = f"{Path(shutil.which('node') or '/usr/bin/node').parent}:/usr/local/bin:/usr/bin:/bin"
        own = {name: value.replace("{url}", url) for name, value in self.environment.items()}
        environment = {"PATH": path, "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8", "NO_COLOR": "1", **own}
        began = time.monotonic()
        process = subprocess.Popen(
            words,
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, status = process.communicate(timeout=limit)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, status = process.communicate()[0], None
        return Ran(output, status, time.monotonic() - began)

    def call(self, turn: Turn, tools: Sequence[str]) -> tuple[str, Json]:
        """The name and the arguments of a tool of this program; a search for it where the program hides it."""
        if turn.tool != "note":
            name, arguments = self.tools[turn.tool]
            return name, {key: value.format(**turn.arguments) for key, value in arguments.items()}
        shown = next((one for one in tools if one.endswith(SERVER_TOOL)), "")
        search = next((one for one in tools if one in SEARCHES), "")
        if not shown and search and not turn.found:
            return search, {"query": "livememfs live_note"}
        return shown or self.server + SERVER_TOOL, dict(turn.arguments)


PROGRAMS = {
    name: Program(name=name, **fields)
    for name, fields in tomllib.loads(Path(__file__).with_name("programs.toml").read_text()).items()
}
