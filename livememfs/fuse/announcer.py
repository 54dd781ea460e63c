"""The process that makes inotify report what other hosts did.

The kernel reports only calls that go through it. So for each change a small process makes such a call on the mount,
and the daemon answers it as if it were done (`pretence`). It is a process of its own, since a call on the mount waits
for the daemon, and a thread that waits there keeps a dying daemon alive. It has nothing of the mount open between two
calls, follows no symbolic link, and makes no call outside of this very mount: where that is gone, the same path is an
ordinary directory. Owns the process; one that has died is started again. Refuses to wait for it: what it cannot take is
dropped.

One thread sends; `pid` is read on the trio thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from livememfs.fuse.mounted import kernel_ids

ENDED_WITHIN = 2.0


class Act(StrEnum):
    """What is announced of a name, as the program takes it."""

    CHANGED = "changed"
    MADE = "file"
    MADE_DIRECTORY = "directory"
    MADE_LINK = "link"
    MADE_PIPE = "pipe"
    MADE_SOCKET = "socket"
    REMOVED = "unlink"
    REMOVED_DIRECTORY = "rmdir"


PROGRAM = """
import ctypes, os, stat, sys
point, mount = os.fsencode(sys.argv[1]), b"mnt_id:\\t%s\\n" % sys.argv[2].encode()
libc = ctypes.CDLL(None)
OMIT, PLACE = (1 << 30) - 2, os.O_PATH | os.O_NOFOLLOW
times = (ctypes.c_long * 4)(0, OMIT, 0, 0)
times[3] = (1 << 30) - 1

def here(fd):
    with open("/proc/self/fdinfo/%d" % fd, "rb") as file:
        if mount not in file.read():
            raise OSError("outside of the mount")

def changed(above, name):
    fd = os.open(name, PLACE, dir_fd=above)
    try:
        here(fd)
        path = b"/proc/self/fd/%d" % fd
        libc.utimensat(-100, path, times, 0)
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    finally:
        os.close(fd)

acts = {
    "changed": changed,
    "file": lambda above, name: os.mknod(name, stat.S_IFREG | 0o644, dir_fd=above),
    "directory": lambda above, name: os.mkdir(name, 0o755, dir_fd=above),
    "link": lambda above, name: os.symlink(b".", name, dir_fd=above),
    "pipe": lambda above, name: os.mknod(name, stat.S_IFIFO | 0o644, dir_fd=above),
    "socket": lambda above, name: os.mknod(name, stat.S_IFSOCK | 0o644, dir_fd=above),
    "unlink": lambda above, name: os.unlink(name, dir_fd=above),
    "rmdir": lambda above, name: os.rmdir(name, dir_fd=above),
}
os.umask(0)
for line in sys.stdin:
    act, path = line.split()
    *folders, name = bytes.fromhex(path).split(b"/")
    above = -1
    try:
        above = os.open(point, PLACE | os.O_DIRECTORY)
        for folder in folders:
            below = os.open(folder, PLACE | os.O_DIRECTORY, dir_fd=above)
            os.close(above)
            above = below
        here(above)
        acts[act](above, name)
    except OSError:
        pass
    finally:
        if above >= 0:
            os.close(above)
"""
"""For each line an act and a path below the mount point, in hexadecimal. Only the time of the content is set: that
alone makes IN_MODIFY. The file is opened and closed for IN_CLOSE_WRITE."""


class Announcer:
    """The process for the mount on `mountpoint`."""

    def __init__(self, mountpoint: Path) -> None:
        self._mountpoint = mountpoint
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self.pid = -1
        """Of the running process. Taken away before the kernel may give the number to another one."""

    def send(self, act: Act, path: str) -> bool:
        """Have it announced; `path` is relative to the mount point. False when that is not possible now."""
        if self._process is not None and _is_over(self._process):
            self._let_go(self._process)
        process = self._process or self._start()
        if process is None or process.stdin is None:
            return False
        line = f"{act} {os.fsencode(path).hex()}\n".encode()
        try:
            return os.write(process.stdin.fileno(), line) == len(line)  # at most PIPE_BUF: all of it or nothing
        except (BlockingIOError, BrokenPipeError):
            return False

    def _start(self) -> subprocess.Popen[bytes] | None:
        ids = kernel_ids(str(self._mountpoint))
        if self._ended or ids is None:
            return None
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(self._mountpoint), ids[0]]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        assert process.stdin is not None  # it was asked for
        os.set_blocking(process.stdin.fileno(), False)
        self._process, self.pid = process, process.pid
        return process

    def _let_go(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = -1
        self._process = None
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        process.wait()

    def stop(self) -> None:
        """Announce nothing more. Does not wait."""
        self._ended = True
        if self._process is not None:
            self._process.terminate()

    def join(self) -> None:
        """Wait for the process, after the mount is gone and nobody sends any more."""
        process = self._process
        if process is None:
            return
        self.pid = -1
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDED_WITHIN)
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without giving its number free."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
