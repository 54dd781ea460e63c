"""Random work of several people on one space, and which lines must be somewhere afterwards.

Each act writes a line that no other act writes. Files are only appended to, noted and renamed, so every line must stay,
and no line may be there twice.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

NAMES = "abc"
MARK = "of the work"
MINE = ("append", "append", "rename")
SHARED = ("note", "new")
CONFLICT = ".conflict-"


class Work:
    """What people do, and which lines must be somewhere."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.number = 0
        self.written: set[str] = set()
        self.counts: Counter[str] = Counter()

    def new(self) -> str:
        """A line, which is to be found from now on."""
        self.number += 1
        line = f"line {self.number} {MARK}"
        self.written.add(line)
        return line

    def name_of_note(self, line: str) -> str:
        """Where a note with this line is written."""
        return f"live/{line.replace(' ', '-')}.md"

    def shared(self) -> str:
        """A file to which everybody appends."""
        return f"top/shared-{self.dice.choice(NAMES)}"

    def act(self, who: str, top: Path, kinds: tuple[str, ...] = MINE + SHARED) -> None:
        """One act in a directory. OSError: it has not happened, or nobody knows whether it has."""
        kind, own = self.dice.choice(kinds), f"top/{who}-{self.dice.choice(NAMES)}"
        self.counts[kind] += 1
        if kind == "rename":
            # Under a name that nobody has, or it would replace a file with lines.
            self.number += 1
            if (top / own).exists():
                (top / own).rename(top / f"top/{who}-was-{self.number}")
            return
        line = self.new()
        path = {"append": own, "new": self.shared(), "note": self.name_of_note(line)}[kind]
        try:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            with (top / path).open("w" if kind == "note" else "a") as file:
                file.write(f"{line}\n")
        except OSError:
            self.written.discard(line)
            raise

    def check(self, texts: Mapping[str, str]) -> None:
        """Each line is in these files, by their names, exactly once."""
        found = Counter(line for text in texts.values() for line in text.splitlines() if line.endswith(MARK))
        assert self.written - set(found) == set(), "lost"
        more = {line: [name for name in texts if line in texts[name].splitlines()] for line in found if found[line] > 1}
        # Who goes on with a file whose version was put aside for another host's may leave what it had in both.
        assert {line: names for line, names in more.items() if not any(CONFLICT in name for name in names)} == {}
        for name, text in texts.items():
            assert len(text.splitlines()) == len(set(text.splitlines())) or name.startswith("live/"), name
