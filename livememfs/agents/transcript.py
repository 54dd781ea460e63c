"""The agent's last words, from the transcript that a hook names, where the hook itself does not tell them.

Owns what such a file may be: a regular file of this user's, of which the end alone is read, and nothing in a mount of
ours. Whatever else it is, there are no words. Reads in a thread, within a deadline; trio thread only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import trio

from livememfs.records.foreign import Unreadable, read_object

TAIL = 256 << 10
PATIENCE = 0.5


async def last_words(path: str, mounted: str = "") -> str:
    """What the agent said last in a transcript of lines of JSON; empty when that cannot be told in a moment."""
    if not path.startswith("/"):
        return ""
    with trio.move_on_after(PATIENCE), suppress(OSError, ValueError):
        return await trio.to_thread.run_sync(_read, path, mounted, abandon_on_cancel=True)
    return ""


def _read(path: str, mounted: str) -> str:
    whole = os.path.realpath(path)
    if mounted and f"{whole}/".startswith(f"{mounted}/"):
        return ""
    number = os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
            return ""
        file.seek(max(about.st_size - TAIL, 0))
        lines = file.read(TAIL).split(b"\n")
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
