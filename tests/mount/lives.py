"""Short lives: daemons that are forked ready-made, to be killed by the hundred, and writers that survive them.

Run as a program this is one of the two:

    python lives.py serve MOUNTPOINT          forks a daemon for each line on its input; everything is imported once
    python lives.py write FOLDER NAME SEED    works in FOLDER until its input ends; tells on its output what it did

The rest is for the tests: `Daemons` and `Writer` run these programs, `Ledger` says what must be there in the end.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

LIMIT = 300
MNT_FORCE, MNT_DETACH = 1, 2
NAMES = ("a", "b", "c", "d")
FILLER = "." * 70_000
"""Makes a token so large that its file is kept beside the database."""
GONE = frozenset({errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ESTALE, errno.ENOENT, errno.ENODEV})
"""How a call may end whose daemon dies, or is not there."""


# --- the daemons -----------------------------------------------------------------------------------------------------


def serve(mountpoint: Path) -> None:
    """Fork one daemon for each line, tell its pid when it serves, and wait for its end before the next."""
    from livememfs import config, log
    from livememfs.cli import common
    from livememfs.cli.mounting import daemon, starting
    from livememfs.environment import environment
    from livememfs.store import s3  # noqa: F401  # what takes long is imported before the fork

    settings = config.Settings.load(environment())
    for _ in sys.stdin:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            log.configure(settings.log_level, json=True)
            try:
                common.run(daemon.run_daemon, settings, mountpoint, starting.Readiness(writer), "")
            except BaseException as error:
                print(json.dumps({"level": "error", "event": f"the daemon ended with {error!r}"}), file=sys.stderr)
                os._exit(1)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answers:
            answer = answers.readline()
        print(answer.decode().strip() or "{}", flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


class Daemons:
    """One mount point and its daemons, one at a time. `with` ends whatever runs."""

    def __init__(self, mountpoint: Path, environment: dict[str, str], log_path: Path) -> None:
        self.mountpoint = mountpoint
        self.log_path = log_path
        self._log = log_path.open("ab")
        limited = ["timeout", "-k", "5", str(LIMIT), "setpriv", "--pdeathsig", "KILL", "--"]
        self._server = subprocess.Popen(
            [*limited, sys.executable, __file__, "serve", str(mountpoint)],
            env=environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.pid = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        cut_off(self.mountpoint)
        self._server.kill()  # kills `timeout`; the kernel tells the others
        self._server.wait()
        for stream in (self._server.stdin, self._server.stdout, self._log):
            assert stream is not None
            stream.close()

    def start(self) -> None:
        """A new daemon, which serves when this returns."""
        assert self._server.stdin is not None
        self._server.stdin.write(b"\n")
        self._server.stdin.flush()
        answer = json.loads(self._line())
        assert answer.get("state") == "ready", f"no mount: {answer}\n{self.log_path.read_text()[-2000:]}"
        self.pid = answer["pid"]

    def kill(self) -> None:
        """The end of it, without a word."""
        os.kill(self.pid, signal.SIGKILL)
        if not select.select([self._server.stdout], [], [], 5)[0]:
            cut_off(self.mountpoint)
            raise AssertionError("a killed daemon does not end: one of its threads waits for an answer of its own")
        assert int(self._line()) == -signal.SIGKILL

    def end(self) -> int:
        """Wait for one that was asked to stop; its exit status."""
        os.kill(self.pid, signal.SIGTERM)
        return int(self._line())

    def _line(self) -> bytes:
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], 30)
        assert ready, "the daemon does not answer"
        return self._server.stdout.readline()


def cut_off(mountpoint: Path) -> None:
    """Have every call on a mount fail and take it away, even if nobody will ever answer it. Needs root."""
    ctypes.CDLL(None).umount2(os.fsencode(mountpoint), MNT_FORCE | MNT_DETACH)


# --- the writers -----------------------------------------------------------------------------------------------------

Action = list[str]
"""`["note", token]`, `["put" or "append", name, token]`, `["rename", name, other]`, `["unlink", name]`."""


def write(folder: Path, who: str, seed: str) -> None:
    """Work until the input ends. Each line of the output is a verdict and an action.

    `did`: every call of it returned well. `cut`: the daemon went meanwhile, so it may have happened or not. `saw`: what
    is there, looked at after each `cut`. `bad`: a call failed as none may.
    """
    dice = random.Random(seed)
    known = look(folder, who)
    for number in _until_told():
        action = _choose(dice, who, number, known)
        try:
            _perform(folder, who, action, fsync=dice.random() < 0.2)
        except OSError as error:
            _tell("cut" if error.errno in GONE else "bad", [*action, errno.errorcode[error.errno or 0]])
            known = look(folder, who)
            _tell("saw", known)
        else:
            _tell("did", action)
            known = changed(known, action)
    _tell("saw", look(folder, who))


def _until_told() -> Iterator[int]:
    number = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        number += 1
        yield number


def _tell(verdict: str, what: Any) -> None:
    os.write(1, json.dumps([verdict, what]).encode() + b"\n")


def _choose(dice: random.Random, who: str, number: int, known: dict[str, list[str]]) -> Action:
    token = f"{who}.{number}" + ("L" if dice.random() < 0.05 else "")
    name, other = dice.sample(NAMES, 2)
    kind = dice.choices(("note", "put", "append", "rename", "unlink"), (3, 3, 3, 3, 1))[0]
    if kind == "note":
        return ["note", token]
    if kind == "rename" and name in known:
        return ["rename", name, other]
    if kind == "unlink" and name in known:
        return ["unlink", name]
    return ["append" if kind == "append" else "put", name, token]


def _perform(folder: Path, who: str, action: Action, *, fsync: bool) -> None:
    match action:
        case ["note", token]:
            _store(folder / "live" / f"{token}.md", os.O_CREAT | os.O_EXCL, token, fsync=fsync)
        case ["put", name, token]:
            _store(folder / "files" / f"{who}-{name}", os.O_CREAT | os.O_TRUNC, token, fsync=fsync)
        case ["append", name, token]:
            _store(folder / "files" / f"{who}-{name}", os.O_CREAT | os.O_APPEND, token, fsync=fsync)
        case ["rename", name, other]:
            os.rename(folder / "files" / f"{who}-{name}", folder / "files" / f"{who}-{other}")
        case ["unlink", name]:
            os.unlink(folder / "files" / f"{who}-{name}")


def _store(path: Path, flags: int, token: str, *, fsync: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        data = text_of([token]).encode()
        while data:
            data = data[os.write(descriptor, data) :]
        if fsync:
            os.fsync(descriptor)
    except OSError:
        with suppress(OSError):  # the daemon is gone: all that a close can do is fail as well
            os.close(descriptor)
        raise
    os.close(descriptor)


def look(folder: Path, who: str) -> dict[str, list[str]]:
    """What this writer's files hold, as soon as somebody serves them."""
    while True:
        try:
            names = [name for name in os.listdir(folder / "files") if name.startswith(f"{who}-")]
            return {name.partition("-")[2]: tokens_of((folder / "files" / name).read_text()) for name in names}
        except OSError as error:
            if error.errno not in GONE:
                raise
            time.sleep(0.002)


def text_of(tokens: list[str]) -> str:
    """The content that stands for some tokens."""
    return "".join(f"{token}{FILLER if token.endswith('L') else ''}\n" for token in tokens)


def tokens_of(text: str) -> list[str]:
    """The reverse. What is not whole shows as it is, so that nobody takes it for whole."""
    tokens = [line.rstrip(".") for line in text.splitlines()]
    return tokens if text_of(tokens) == text else [text]


def changed(known: dict[str, list[str]], action: Action) -> dict[str, list[str]]:
    """The files after an action."""
    made = dict(known)
    match action:
        case ["put", name, token]:
            made[name] = [token]
        case ["append", name, token]:
            made[name] = [*made.get(name, []), token]
        case ["rename", name, other] if name in made:
            made[other] = made.pop(name)
        case ["unlink", name]:
            made.pop(name, None)
    return made


class Writer:
    """A writer's process."""

    def __init__(self, folder: Path, who: str, seed: str, output: Path) -> None:
        self.who = who
        self.output = output
        with output.open("wb") as stream:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, __file__, "write", str(folder), who, seed],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=stream,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def finish(self) -> Ledger:
        """Let it finish what it does, while somebody serves; what it has told."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0
        ledger = Ledger(self.who)
        for line in self.output.read_text().splitlines():
            ledger.add(*json.loads(line))
        return ledger


@dataclass
class Ledger:
    """What one writer's files may hold, and which notes must and may be there."""

    who: str
    states: list[dict[str, list[str]]] = field(default_factory=lambda: [{}])
    notes: set[str] = field(default_factory=set)
    open_notes: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: str, what: Any) -> None:
        """One line of the writer's. AssertionError when something that was accepted is not there."""
        self.counts[verdict] += 1
        if verdict == "saw":
            assert what in self.states, f"{self.who} saw {what}, and what it did allows {self.states}"
            self.states = [what]
        elif verdict == "did":
            self.states = [changed(state, what) for state in self.states]
            self.notes |= {what[1]} if what[0] == "note" else set()
        else:
            assert verdict == "cut", f"{self.who}: {what}"
            self.states = [*self.states, *(changed(state, what[:-1]) for state in self.states)]
            self.open_notes |= {what[1]} if what[0] == "note" else set()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
    else:
        write(Path(sys.argv[2]), sys.argv[3], sys.argv[4])
