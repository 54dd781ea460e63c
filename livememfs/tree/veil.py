"""The status of a limited mount: all figures, but only the names and texts of its own spaces.

Owns the list of texts that name no space. Every other text is left out, because it may quote any key; failures are in
`errors.ndjson`, which shows each user what that user may see. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

TOLD = frozenset({"state", "since", "mountpoint", "store", "model", "host", "failing_since", "paused_until"})


def veiled(status: Mapping[str, Any], sees: Callable[[str], bool]) -> dict[str, Any]:
    """`status` for a user who `sees` some paths. In `stuck` and `schedule`, entries of these spaces are whole."""
    shown: dict[str, Any] = _without_texts(status)
    shown["stuck"] = [operation for operation in status.get("stuck", ()) if sees(operation["key"])]
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
