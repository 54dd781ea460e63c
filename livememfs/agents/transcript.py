"""The end of the transcript that a hook names, for what the hook itself does not tell: the agent's last words, say.

Owns what such a file may be: a regular file of this user's, of which the end alone is read, and nothing in a mount of
ours. Whatever else it is, it has no lines. Reads in a thread, within a deadline; trio thread only.
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
    """What the agent said last in a transcript of lines of JSON; empty when that cannot be told in a moment."""
    return await at_end(path, _words, "", mounted)


async def at_end(path: str, look: Callable[[list[bytes]], T], otherwise: T, mounted: str = "") -> T:
    """What `look` sees in the last lines of a transcript, in a thread; `otherwise` when that cannot be told soon."""
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
    """Who said what in an entry of any agent's transcript; empty for one in which nobody spoke."""
    inner = next((one for name in ("message", "payload", "data") if isinstance(one := entry.get(name), dict)), entry)
    role = inner.get("role") or entry.get("role") or str(entry.get("type", "")).partition(".")[0]
    return str(role), "\n\n".join(_texts(inner.get("content"))).strip()


def _texts(content: Any) -> Iterator[str]:
    for one in content if isinstance(content, list) else [content]:
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict) and one.get("type") in ("text", "output_text", "input_text"):
            yield str(one.get("text", ""))
