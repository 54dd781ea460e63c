"""Daemons and commands that are forked ready-made: they import for longer than they work, so it is done once.

Run as a program this forks a process for each request on its standard input, a socket. A request is a JSON object with
`arguments` of the command, `environment`, `cwd` and `limit`, and these descriptors: standard output, standard error,
for a daemon the one on which it says that it is ready, and one that is told the process's pid and later its exit
status, a line each. A command that was forked here and mounts in the background has its daemon forked here, too.

`Process` is the tests' side of it. LIVEMEMFS_TEST_LONG=1 has `machine` start everything as a command instead.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any

IMPORTED = (
    "livememfs.app.serving",
    "livememfs.cli.mounting.daemon",
    "livememfs.fuse.mount",
    "livememfs.cli.main",
    "livememfs.cli.mounting.mount",
    "livememfs.llm.client",
    "livememfs.recall.index.local",
    "livememfs.serve.http",
    "livememfs.store.s3",
)
"""What daemons are made of, those of their libraries included that they load when they need them. Not onnxruntime: what
was forked after it was loaded does not end.
"""
LARGEST = 200_000
LIMIT = 300
"""Seconds after which a daemon in the background ends, whatever it is doing."""
SERVERS: list[socket.socket] = []
"""The one that is asked, while `serving` lasts."""


# --- the server's side -----------------------------------------------------------------------------------------------


def serve() -> None:
    """Fork until nobody asks any more. Never returns in what was forked."""
    for name in IMPORTED:
        import_module(name)
    gc.freeze()
    requests = socket.socket(fileno=0)
    of_commands, commands = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told: dict[int, tuple[int, int]] = {}
    while True:
        ready, _, _ = select.select([requests, of_commands, *told], [], [])
        for pidfd in told.keys() & set(ready):
            pid, teller = told.pop(pidfd)
            _, status = os.waitpid(pid, 0)
            _tell(teller, os.waitstatus_to_exitcode(status))
            os.close(teller)
            os.close(pidfd)
        for asked in {requests, of_commands} & set(ready):
            message, descriptors, _, _ = socket.recv_fds(asked, LARGEST, 4)
            if not message:
                return
            pid = os.fork()
            if pid == 0:
                _become(json.loads(message), descriptors, commands)
            *used, teller = descriptors
            for descriptor in used:
                os.close(descriptor)
            told[os.pidfd_open(pid)] = (pid, teller)
            _tell(teller, pid)


def _in_background(arguments: list[str], *, stderr: Any, pass_fds: Sequence[int], env: dict[str, str], **_: Any) -> Any:
    """The daemon that a command starts with `python -m livememfs`, and tells where to say that it is ready."""
    command, *options = arguments[3:]
    at = options.index("--ready-fd")
    with open(os.devnull, "wb") as nothing:
        streams = (nothing.fileno(), stderr.fileno(), *pass_fds)
        return Process([command, *options[:at], *options[at + 2 :]], env, LIMIT, *streams, session=True)


def _tell(teller: int, number: int) -> None:
    with suppress(BrokenPipeError):  # the test has ended without waiting for it
        os.write(teller, f"{number}\n".encode())


def _become(request: dict[str, Any], descriptors: list[int], server: socket.socket) -> None:
    """What a new process would be like: nothing of the server's is left but its modules. Ends as the command does."""
    from livememfs.cli.main import main
    from livememfs.cli.mounting import mount

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.alarm(request["limit"])
    os.setsid() if request["session"] else os.setpgid(0, 0)
    stdout, stderr, *readiness, _ = descriptors
    for place, descriptor in enumerate((os.open(os.devnull, os.O_RDWR), stdout, stderr)):
        os.dup2(descriptor, place)
    first = 3
    for kept in sorted((*readiness, server.fileno(), 4_096)):
        os.closerange(first, kept)
        first = kept + 1
    SERVERS.append(server)
    mount.subprocess = SimpleNamespace(Popen=_in_background, DEVNULL=subprocess.DEVNULL)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    tempfile.tempdir = None
    command, *options = request["arguments"]
    main([command, *(word for number in readiness for word in ("--ready-fd", str(number))), *options])


# --- the tests' side -------------------------------------------------------------------------------------------------


@contextmanager
def serving() -> Iterator[None]:
    """While this lasts a `Process` can be had."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", "env", "--default-signal=HUP,INT", sys.executable, __file__],
        cwd="/",
        stdin=theirs,
        env={**environment, "LC_ALL": "C.UTF-8"},
    ):
        theirs.close()
        SERVERS.append(ours)
        yield
        SERVERS.remove(ours)
        ours.close()


class Process:
    """What was forked, as far as tests need what `subprocess.Popen` has.

    :streams: descriptors of standard output and error, and of a daemon the one on which it says that it is ready
    :session: whether it leads a session of its own, as a daemon in the background does
    """

    def __init__(
        self,
        arguments: list[str],
        environment: dict[str, str],
        limit: int,
        *streams: int,
        cwd: str = "/",
        session: bool = False,
    ) -> None:
        self._told, teller = os.pipe()
        request = {
            "arguments": arguments, "environment": environment, "limit": limit, "cwd": cwd, "session": session,
        }  # fmt: skip
        socket.send_fds(SERVERS[-1], [json.dumps(request).encode()], [*streams, teller])
        os.close(teller)
        self.args = arguments
        self.returncode: int | None = None
        self.pid = self._hear(None)

    def _hear(self, timeout: float | None) -> int:
        if not select.select([self._told], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._told, 1)
            assert byte, "what forks daemons is gone"
            line += byte
        return int(line)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. subprocess.TimeoutExpired when it does not end in time."""
        if self.returncode is None:
            self.returncode = self._hear(timeout)
            os.close(self._told)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """As a command does with a daemon for which it has waited in vain."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


if __name__ == "__main__":
    serve()
