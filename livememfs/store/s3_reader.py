"""Reading many objects of a bucket: by threads, and from some number on by those of a process of its own.

Owns that process, from the first large reading until nobody has wanted one for a while. A request costs a fraction of a
millisecond of the interpreter; thousands of them would make everybody wait who looks at a file meanwhile. Refuses to
write, to repeat and to tell why something could not be read: whoever lacks an object asks for it by itself.

`Reader` may be called from any thread, and does one reading after the other. The process runs `main`: it takes pickled
requests from its standard input, and ends with it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from livememfs.errors import LiveMemError, ObjectMissing
from livememfs.store.base import StoredObject
from livememfs.store.s3_client import Client, S3Options
from livememfs.store.s3_replies import TRANSLATED, S3Request, refusal, stored

WORTH = 64
"""Objects of one reading from which on another process is worth its start."""
IDLE_SECONDS = 10.0
MOST_AT_ONCE = 64
# The path by argument, and `-P`: the directory that a mount is started in may hold anything.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from livememfs.store.s3_reader import main; main()"


@dataclass(frozen=True, slots=True)
class ReaderStatistics:
    """`starts` of the process, and the number of the one that runs, None without one."""

    starts: int
    pid: int | None


class Reading:
    """Some objects to read by any number of threads, each of which calls `work`."""

    def __init__(self, get: Callable[[str], StoredObject], keys: Sequence[str]) -> None:
        self._get, self._waiting = get, deque(keys)
        self.found: list[StoredObject] = []

    def work(self) -> None:
        """Go from one to the next: handing over takes longer. The first failure ends it for all."""
        with suppress(IndexError):
            while True:
                key = self._waiting.popleft()
                try:
                    self.found.append(self._get(key))
                except ObjectMissing:
                    continue
                except (LiveMemError, *TRANSLATED):
                    self.stop()

    def stop(self) -> None:
        """Read no further."""
        self._waiting.clear()


def getter(client: Client, options: S3Options) -> Callable[[str], StoredObject]:
    """What reads one object. It raises what a refusal means, and whatever keeps a server from answering."""

    def get(key: str) -> StoredObject:
        asked = S3Request("get", key, options.bucket, options.endpoint)
        reply = client.send("GET", key)
        refused = refusal(reply, asked)
        if refused is not None:
            raise refused
        return stored(key, reply)

    return get


class Reader:
    """The process. Opening starts nothing."""

    def __init__(self, options: S3Options) -> None:
        self._options = options
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: threading.Timer | None = None
        self._is_closed = False
        self._starts = 0

    def read(self, keys: Sequence[str], at_once: int) -> list[StoredObject] | None:
        """See `Store.get_many`; None when there is no process to do it."""
        with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            if self._is_closed:
                return None
            try:
                process = self._process = self._process or self._started()
                found: list[StoredObject] = _asked(process, (list(keys), at_once))
            except (OSError, EOFError, pickle.UnpicklingError):
                self._end()
                return None
            self._idle = threading.Timer(IDLE_SECONDS, self._rest)
            self._idle.daemon = True
            self._idle.start()
            return found

    def stop(self) -> None:
        """Have a reading that nobody waits for any more end at once."""
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        """End the process, and start none from now on."""
        self._is_closed = True
        self.stop()
        with self._turn:
            self._end()

    def statistics(self) -> ReaderStatistics:
        """Cheap."""
        process = self._process
        return ReaderStatistics(self._starts, process.pid if process is not None else None)

    def _started(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *map(os.path.abspath, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for whoever mounts: this ends when its input does
        )
        assert process.stdin is not None
        pickle.dump(self._options, process.stdin)
        return process

    def _rest(self) -> None:
        with self._turn:
            self._end()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _asked(process: subprocess.Popen[bytes], request: tuple[list[str], int]) -> list[StoredObject]:
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump(request, process.stdin)
    process.stdin.flush()
    found: list[StoredObject] = pickle.load(process.stdout)
    return found


def main() -> None:
    """Answer requests until the input ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no reply
    options: S3Options = pickle.load(sys.stdin.buffer)
    client = Client(options)
    with ThreadPoolExecutor(MOST_AT_ONCE) as threads, suppress(EOFError, BrokenPipeError):
        while True:
            keys, at_once = pickle.load(sys.stdin.buffer)
            reading = Reading(getter(client, options), keys)
            for working in [threads.submit(reading.work) for _ in range(at_once)]:
                working.result()
            pickle.dump(reading.found, replies)
            replies.flush()
