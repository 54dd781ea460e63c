"""Setting values in the configuration file.

Owns that all other lines stay as they are, and that only this user can read the result. Refuses a file in which it
cannot replace a value safely. Main thread only.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from livememfs import private
from livememfs.errors import UsageError


def with_values(text: str, values: Mapping[str, str]) -> str:
    """The text with these values; an empty one takes its line away. UsageError for a text that is no TOML, or has one
    of the values in a form that is not known here.
    """
    try:
        wanted = {name: value for name, value in tomllib.loads(text).items() if name not in values}
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the configuration file is not TOML: {error}; correct it first") from None
    wanted |= {name: value for name, value in values.items() if value}
    names = "|".join(map(re.escape, values))
    kept = re.sub(rf"^[ \t]*(?:{names})[ \t]*=.*\n?", "", text, flags=re.MULTILINE)
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items() if value]
    made = "".join(lines) + kept  # before a table that the file may have
    try:
        if tomllib.loads(made) == wanted:
            return made
    except tomllib.TOMLDecodeError:
        pass
    raise UsageError(f"the configuration file has one of {', '.join(values)} in more than one line; write it in one")


def set_values(path: Path, values: Mapping[str, str]) -> Path | None:
    """Write them. Returns where the file before is kept; None where there was none, or nothing changed. UsageError."""
    try:
        before = path.read_text("utf-8") if path.exists() else ""
        after = with_values(before, values)
        if after == before or tomllib.loads(after) == tomllib.loads(before):
            return None
        private.make(path.parent)
        kept = path.with_name(f"{path.name}.before")
        if before:
            private.write_text(kept, before)
        path = path.resolve()  # the file itself, where a link leads to one that is kept elsewhere
        draft = path.with_name(f".{path.name}.new")
        private.write_text(draft, after)
        draft.replace(path)
        return kept if before else None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be written: {error}") from None
