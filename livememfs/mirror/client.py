"""The other end of a mirror's socket: `livememfs hook FILE` asks the running mirror, which is warm.

Owns how a hook behaves whatever happens: it ends within `SECONDS`, with status 0, since agents take another status for
a veto. Imports nothing but the smallest parts of Python: a hook that takes longer to begin than to be answered is of no
use. Any thread; blocking.
"""

import json
import os
import select
import socket
import time

OURS, SOCKET = ".livememfs-mirror", "sock"
SECONDS = 2.0
CHUNK = 1 << 16


def hook(file: str, source: int = 0, target: int = 1) -> None:
    """Send what comes from `source` to the mirror that `file` is in, and write its answer to `target`."""
    try:
        path = _enter(file)
        answer = _ask(path, source) if path else b""
        while answer:
            answer = answer[os.write(target, answer) :]
    except (OSError, ValueError):  # no mirror runs, or its answer is late: the agent goes on
        return


def _enter(file: str) -> str:
    """Change to the mirror's own folder: the path of a socket may have 107 bytes. The path of the file in the mirror;
    empty when it is in none.
    """
    top = os.path.normpath(file if file.startswith("/") else f"{os.getcwd()}/{file}")  # noqa: PTH109  # pathlib is slow
    inside: list[str] = []
    while top:
        top, _, name = top.rpartition("/")
        inside.insert(0, name)
        try:
            os.chdir(f"{top}/{OURS}")
        except OSError:
            continue
        return "/".join(inside)
    return ""


def _ask(path: str, source: int) -> bytes:
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(SECONDS)
        made.connect(SOCKET)
        made.sendall(json.dumps({"ask": path}).encode() + b"\n")
        until = time.monotonic() + SECONDS
        while True:
            if not select.select([source], [], [], max(0.0, until - time.monotonic()))[0]:
                return b""  # somebody holds our input open
            if not (data := os.read(source, CHUNK)):
                break
            made.sendall(data)
        made.shutdown(socket.SHUT_WR)
        parts = []
        while data := made.recv(CHUNK):
            parts.append(data)
    return b"".join(parts)
