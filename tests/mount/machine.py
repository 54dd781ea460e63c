"""A mount under test: the daemon in a process of its own, started and ended as a service manager would.

A process that waits for a file system cannot be interrupted while the file system's daemon lives, so every daemon has a
time limit from its first moment (`timeout`) and ends with the tests (`setpriv --pdeathsig`): no test can hang for long.
Unless LIVEMEMFS_TEST_LONG=1 they and our commands are forked from one that has imported what they need (`readymade`).
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import readymade

SPACE = "project"
ROOT = Path(__file__).resolve().parents[2]
LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
"""Whether to try what is long and rare, and nothing in a quicker way than users do."""
LIMIT = 300
READY_WITHIN = 60.0
STOPPED_WITHIN = 40.0
QUIET_LEVELS = ("debug", "info")
ALONE = ("setpriv", "--pdeathsig", "KILL", "--", "env", "--default-signal=HUP,INT")
"""Before a command: it ends with the tests, and hears signals that the tests were started to ignore, as by `nohup`."""


def sh(
    command: str,
    *,
    cwd: Path | str | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 30,
    status: int | None = 0,
) -> subprocess.CompletedProcess[str]:
    """Run one line of /bin/sh with its output captured, and expect it to end with `status` (None: with any)."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env=env or clean_environment(Path("/tmp")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert status is None or done.returncode == status, (
        f"`{command}` ended with {done.returncode}, not {status}\n{done.stdout}{done.stderr}"
    )
    return done


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """An environment made from nothing: no settings of this machine, and every directory below `home`."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        **more,
    }


def livememfs(
    line: str, *, env: dict[str, str], cwd: Path | str = "/", timeout: int = 100, status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """`sh` for a line of our own command, in a process that is forked ready-made."""
    if LONG:
        command = f"timeout -k 5 {LIMIT} {' '.join(ALONE)} {sys.executable} -m livememfs {line}"
        return sh(command, cwd=cwd, env=env, timeout=timeout, status=status)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as complaints:
        process = readymade.Process(shlex.split(line), env, timeout, output.fileno(), complaints.fileno(), cwd=str(cwd))
        ended = process.wait(timeout + 5)
        output.seek(0)
        complaints.seek(0)
        done = subprocess.CompletedProcess(line, ended, output.read(), complaints.read())
    assert status is None or ended == status, (
        f"`livememfs {line}` ended with {ended}, not {status}\n{done.stdout}{done.stderr}"
    )
    return done


def mounted_at(path: Path) -> bool:
    """Whether the kernel has a livememfs on `path`. Does not touch the path itself."""
    lines = Path("/proc/mounts").read_text(errors="surrogateescape").splitlines()
    asked = str(path).replace("\\", "\\134").replace(" ", "\\040")  # as the kernel writes them
    return any(line.split(" ")[1] == asked and line.split(" ")[2] == "fuse.livememfs" for line in lines)


RUNNING: list[Mount] = []
"""Every mount that was started, to be asked whether it still is."""


def uploaded(bucket: str) -> None:
    """Wait until a bucket has what every mount of it on this machine has accepted."""
    for mount in RUNNING:
        if mount.process is not None and mount.environment.get("S3_BUCKET_NAME") == bucket:
            mount.uploaded()


class Mount:
    """One daemon and its mount point. `with Mount(...) as mount:` starts it, and stops it if the block went well.

    :path:  the mount point, made here
    :home:  a directory for everything the daemon keeps
    :env:   settings, on top of a clean environment
    :limit: seconds after which the daemon ends, whatever it is doing
    :before: words that stand before the command, like `nohup`
    :stderr: a descriptor to log to, instead of a file
    """

    def __init__(
        self,
        path: Path,
        home: Path,
        env: dict[str, str],
        *options: str,
        limit: int = LIMIT,
        before: tuple[str, ...] = (),
        stderr: int | None = None,
    ) -> None:
        self.path = path
        self.options, self.limit = options, limit
        self.before, self.stderr = before, stderr
        self.environment = clean_environment(home, LIVEMEMFS_LOG_JSON="true", **env)
        self.log_path = home / f"{path.name}.log"
        self.claims: list[str] = []
        self.process: subprocess.Popen[bytes] | readymade.Process | None = None
        self.pid = 0
        path.mkdir(parents=True, exist_ok=True)
        home.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if self.process is None:
            return
        if kind is None:
            self.stop()
        else:
            print(f"--- log of {self.path} ---\n{self.log()}")
            self.abandon()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    # --- start and stop ---------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Start the daemon and wait until it serves; returns what it said. AssertionError with its log otherwise."""
        reader, writer = os.pipe()
        with self.log_path.open("ab") as log:
            self.process = self._process(writer, log.fileno() if self.stderr is None else self.stderr)
        os.close(writer)
        readable, _, _ = select.select([reader], [], [], READY_WITHIN)
        line = os.read(reader, 65_536) if readable else b""
        os.close(reader)
        answer: dict[str, Any] = json.loads(line) if line else {}
        if answer.get("state") != "ready":
            self.abandon()
            raise AssertionError(f"no mount on {self.path}: {answer or 'no answer'}\n{self.log()}")
        self.pid = answer["pid"]
        RUNNING.append(self)
        return answer

    def _process(self, ready: int, stderr: int) -> subprocess.Popen[bytes] | readymade.Process:
        arguments = ["mount", "-f", *self.options, str(self.path)]
        alike = not self.before and self.environment["PYTHONPATH"] == str(ROOT)
        if alike and not LONG:
            with open(os.devnull, "wb") as nothing:
                return readymade.Process(arguments, self.environment, self.limit, nothing.fileno(), stderr, ready)
        limited = ["timeout", "-k", "5", str(self.limit), *ALONE, *self.before]
        return subprocess.Popen(
            [*limited, sys.executable, "-m", "livememfs", *arguments, "--ready-fd", str(ready)],
            env=self.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(ready,),
        )

    def uploaded(self) -> None:
        """Wait until the bucket has what this mount has accepted. OSError when it refuses some of it."""
        (self.path / ".livememfs/journal.wait").read_bytes()

    def stop(self) -> None:
        """Unmount, and expect the daemon to end well and to have logged nothing alarming."""
        assert self.process is not None
        self._unmount()
        self.expect_end()
        noise = self.unclaimed()
        assert not noise, "the daemon logged, and no expect_log claims it:\n" + "\n".join(noise)

    def expect_end(self, status: int = 0) -> None:
        """Wait for the daemon to end with `status`."""
        assert self.process is not None
        process, self.process = self.process, None
        try:
            ended = process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"the daemon of {self.path} did not end\n{self.log()}") from None
        assert ended == status, f"the daemon of {self.path} ended with {ended}\n{self.log()}"

    def _unmount(self) -> None:
        # The kernel lets go of the last file a moment after the process that had it open is gone.
        deadline = time.monotonic() + 5
        while True:
            done = sh(f"fusermount3 -u '{self.path}'", status=None)
            if done.returncode == 0:
                return
            if time.monotonic() > deadline:
                users = sh(f"ls -l /proc/[0-9]*/cwd /proc/[0-9]*/fd/* 2>/dev/null | grep -F '{self.path}'", status=None)
                self.abandon()
                raise AssertionError(f"cannot unmount {self.path}: {done.stderr}{users.stdout}\n{self.log()}")
            time.sleep(0.05)

    def signal(self, number: signal.Signals) -> None:
        """Send the daemon itself a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End the daemon as a crash would, leaving the dead mount behind."""
        assert self.process is not None
        self.signal(signal.SIGKILL)
        process, self.process = self.process, None
        process.wait(STOPPED_WITHIN)

    def abandon(self) -> None:
        """Get rid of the mount and the daemon, whatever state they are in."""
        if self.process is not None:
            self.process.kill()  # or kills `timeout`; the daemon below it is told by the kernel
            self.process.wait(STOPPED_WITHIN)
            self.process = None
        detach(self.path)

    # --- the log ----------------------------------------------------------------------------------------------

    def log(self) -> str:
        """What the daemon has logged so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def expect_log(self, text: str) -> None:
        """Lines that contain `text` are part of what the test is about."""
        self.claims.append(text)

    def unclaimed(self) -> list[str]:
        """Lines of warnings and errors, and lines that are no log events at all, that nobody claims."""
        return [line for line in self.log().splitlines() if _is_noise(line) and not self._claimed(line)]

    def _claimed(self, line: str) -> bool:
        return any(claim in line for claim in self.claims)


StartMount = Callable[..., Mount]
"""`start_mount(env, *options, name="mnt")`: a running mount."""


def _is_noise(line: str) -> bool:
    try:
        event = json.loads(line)
    except ValueError:
        return bool(line.strip())
    return not isinstance(event, dict) or event.get("level") not in QUIET_LEVELS


def detach(path: Path) -> None:
    """Take a mount away at once, whoever uses it. Nothing happens where there is none."""
    while mounted_at(path):
        sh(f"fusermount3 -uz '{path}'", status=None, timeout=10)
