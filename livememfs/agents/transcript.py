"""Reads the end of a transcript that a hook names, for facts that the payload lacks, such as the agent's last words.

Owns which files are read: only a regular file of this user, outside of our mount, and only its end. Any other file
counts as empty. Reads in a thread, within a deadline; trio thread only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import trio

from livememfs.text.foreign import Unreadable, read_object

TAIL = 256 << 10
PATIENCE = 0.5
T = TypeVar("T")


async def last_words(path: str, mounted: str = "") -> str:
    """The agent's last words in a transcript of JSON lines; empty if they cannot be read in time."""
    return await at_end(path, _words, "", mounted)


async def at_end(path: str, look: Callable[[list[bytes]], T], otherwise: T, mounted: str) -> T:
    """The result of `look` for the last lines of a transcript, in a thread; `otherwise` if that is late or fails."""
    if not path.startswith("/"):
        return otherwise
    with trio.move_on_after(PATIENCE), suppress(OSError, ValueError):
        return await trio.to_thread.run_sync(lambda: look(_lines(path, mounted)), abandon_on_cancel=True)
    return otherwise


def _lines(path: str, mounted: str) -> list[bytes]:
    whole = os.path.realpath(path)
    if mounted and f"{whole}/".startswith(f"{mounted}/"):
        return []
    number = os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
            return []
        file.seek(max(about.st_size - TAIL, 0))
        return file.read(TAIL).split(b"\n")


def _words(lines: list[bytes]) -> str:
    for line in reversed(lines):
        with suppress(Unreadable):
            entry = read_object(line)
            role, words = _spoken(entry)
            if words and role == "user" and entry.get("isMeta") is not True:
                return ""  # the agent has not answered yet
            if words and role == "assistant" and entry.get("isSidechain") is not True:
                return words
    return ""


def _spoken(entry: dict[str, Any]) -> tuple[str, str]:
    """Role and words of an entry in any agent's transcript; empty words for other entries."""
    names = ("message", "payload", "data")
    inner = next((value for name in names if isinstance(value := entry.get(name), dict)), entry)
    role = inner.get("role") or entry.get("role") or str(entry.get("type", "")).partition(".")[0]
    return str(role), "\n\n".join(_texts(inner.get("content"))).strip()


def _texts(content: Any) -> Iterator[str]:
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, str):
            yield piece
        elif isinstance(piece, dict) and piece.get("type") in ("text", "output_text", "input_text"):
            yield str(piece.get("text", ""))
