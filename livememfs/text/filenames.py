"""The names in a text that look like files, as people and agents write them.

Owns what counts as one. Refuses to look whether such a file exists. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FILES_READ = 64
"""File names taken from one text; the rest is found by its words."""
_FILE = re.compile(r"(?<![\w/.-])(?:[\w.-]{1,80}/){0,12}[\w-][\w.-]{0,80}\.[A-Za-z][A-Za-z0-9]{0,9}(?![\w/])")
_NOT_A_FILE = re.compile(r"(?i)(?:^|\.)(?:com|org|net|io|fr|e\.g|i\.e|etc)$")


def files_in(text: str) -> Iterator[str]:
    """The names in a text that look like files, each once, as they are written there."""
    seen: set[str] = set()
    dotted = " ".join(word for word in text.split() if "." in word[:-1])  # the rest can hold none, and is most of it
    for match in _FILE.finditer(dotted):
        name = match[0].removeprefix("./")
        if name not in seen and not _NOT_A_FILE.search(name):
            seen.add(name)
            yield name
            if len(seen) == FILES_READ:
                return
