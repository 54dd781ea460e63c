"""What a limited mount tells of itself: its figures, and only those names and texts that are its own spaces'.

Owns the list of texts that speak of no space. Every other text is left out, since a new one may quote any key: of what
went wrong, whoever may see it reads in `errors.ndjson`. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TOLD = frozenset({"state", "since", "mountpoint", "store", "model", "host", "failing_since", "paused_until"})


def veiled(status: Mapping[str, Any], sees: Callable[[str], bool]) -> dict[str, Any]:
    """`status` for somebody who `sees(path)`. Of `stuck` and `schedule` they get what is of their spaces, whole."""
    shown: dict[str, Any] = _without_texts(status)
    shown["stuck"] = [one for one in status.get("stuck", ()) if sees(one["key"])]
    schedule = status.get("schedule")
    if schedule:
        shown["schedule"] |= {
            kind: {space: about for space, about in schedule[kind].items() if sees(space)}
            for kind in ("spaces", "digests")
        }
    return shown


def _without_texts(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _without_texts(part, key) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_texts(part) for part in value]
    return value if value is None or isinstance(value, int | float) or name in TOLD else ""
