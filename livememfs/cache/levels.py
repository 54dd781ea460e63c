"""Known names: one level below each prefix that somebody looked at, as this machine shows them.

Owns the merge of what the bucket said and what the journal has accepted: an object that was written here shows at
once, one that was removed here is gone at once, whatever a LIST on its way will say. Refuses to ask anybody. Trio
thread only; nothing here awaits.
"""

from __future__ import annotations

from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING

from livememfs.records import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from livememfs.cache.journal.steps import Journal
    from livememfs.store.base import ObjectInfo

MAX_LEVELS = 4_096
"""Levels of names kept; the oldest are forgotten and simply asked for again."""

_serials = count(1)
_first = itemgetter(0)


class Level:
    """One level. `objects` by last name part, the folder's own marker under ""; `folders` without a slash.

    `confirmed` is the moment the bucket was asked; `serial` changes with every change of a name or a version.
    """

    __slots__ = ("_endings", "_sorted", "confirmed", "folders", "objects", "serial")

    def __init__(self, objects: Sequence[tuple[str, ObjectInfo]], folders: set[str], confirmed: float) -> None:
        self.objects = dict(objects)
        self.folders = folders
        self.confirmed = confirmed
        self.serial = next(_serials)
        self._endings: dict[str, set[str]] | None = None
        self._sorted: Sequence[tuple[str, ObjectInfo]] | None = objects

    def items(self) -> Sequence[tuple[str, ObjectInfo]]:
        """The objects in the order of their names: made when first asked, kept while nothing changes."""
        if self._sorted is None:
            self._sorted = sorted(self.objects.items(), key=_first)
        return self._sorted

    def ending(self, characters: str) -> set[str]:
        """The names that end in these five to eight characters, but for `.md` and how long a memory lasts.

        By an index, made when first asked.
        """
        if self._endings is None:
            self._endings = {}
            for name in self.objects:
                self._endings.setdefault(_ending(name), set()).add(name)
        found = self._endings.get(characters[-keys.ENDING_DIGITS :], set())
        return {name for name in found if keys.ending(name).endswith(characters)}

    def set(self, name: str, info: ObjectInfo | None) -> None:
        """Put an object under a name, or take it out."""
        self._sorted = None
        if info is None:
            self.objects.pop(name, None)
            if self._endings is not None:
                self._endings.get(_ending(name), set()).discard(name)
        else:
            self.objects[name] = info
            if self._endings is not None:
                self._endings.setdefault(_ending(name), set()).add(name)

    def __contains__(self, name: str) -> bool:
        return name in self.objects or name in self.folders


class Levels:
    """All known levels of one bucket."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._levels: dict[str, Level] = {}

    def get(self, prefix: str) -> Level | None:
        """A level, None when it is not known."""
        return self._levels.get(prefix)

    def __len__(self) -> int:
        return len(self._levels)

    def lacks(self, key: str) -> bool:
        """Whether a key is known to be free."""
        parent, name = split_key(key)
        level = self._levels.get(parent)
        return level is not None and name not in level.objects

    @property
    def known(self) -> int:
        """Objects on all levels."""
        return sum(len(level.objects) for level in self._levels.values())

    def below(self, prefix: str) -> list[str]:
        """The prefixes of the known levels below a prefix, itself included."""
        return [known for known in self._levels if known.startswith(prefix)]

    def replace(
        self, prefix: str, objects: Sequence[tuple[str, ObjectInfo]], folders: set[str], confirmed: float
    ) -> Level | None:
        """Take over what the bucket said of a whole level, under what the journal has; returns what was known.

        `objects` are in the order of their names.
        """
        before = self._levels.pop(prefix, None)
        level = self._levels[prefix] = Level(objects, folders - {""}, confirmed)
        cut, emptied = len(prefix), set()
        for op in self._journal.ops.pending():
            if not op.key.startswith(prefix):
                continue
            name, slash, _ = op.key[cut:].partition("/")
            if not slash:
                level.set(name, op.info())
            elif op.kind == "delete":
                emptied.add(name)
            else:
                level.folders.add(name)
        for name in emptied:  # the bucket still has what was removed here; whether that was all is known one level on
            below = self._levels.get(f"{prefix}{name}/")
            if below is not None and not below.objects and not below.folders:
                level.folders.discard(name)
        while len(self._levels) > MAX_LEVELS:
            self._levels.pop(next(iter(self._levels)))
        return before

    def vanish(self, prefix: str, folders: set[str], confirmed: float) -> None:
        """Take note that nothing is left below a prefix, nor in any of the folders (prefixes too) that were there.

        Known to be empty, they stay away although the bucket will go on listing them until the removals arrive.
        """
        for known in {prefix, *folders, *self.below(prefix)}:
            self._levels[known] = Level((), set(), confirmed)
        self._show_folders(prefix, there=False)

    def show(self, key: str, info: ObjectInfo | None) -> list[str]:
        """Put one object into every known level that it shows in, or take it out; the folders that came or went."""
        parent, name = split_key(key)
        level = self._levels.get(parent)
        if level is not None:
            level.set(name, info)
            level.serial = next(_serials)
        return self._show_folders(parent, there=info is not None)

    def _show_folders(self, parent: str, *, there: bool) -> list[str]:
        """A folder is there while something is below it. Those that came or went, as prefixes."""
        certain, changed = True, []
        while parent:
            level = self._levels.get(parent)
            certain = certain and (there or level is not None)
            if not there and certain and level is not None and (level.objects or level.folders):
                break
            prefix = parent
            parent, folder = split_key(parent[:-1])
            outer = self._levels.get(parent)
            if outer is None:
                continue
            if there and folder in outer.folders:
                break
            outer.serial = next(_serials)
            if there or certain:
                (outer.folders.add if there else outer.folders.discard)(folder)
                changed.append(prefix)
            else:  # it may have been the last object below this folder: only a new LIST can tell
                outer.confirmed = float("-inf")
        return changed

    def doubt(self, prefix: str) -> None:
        """Have every known level below a prefix asked for again."""
        for known in self.below(prefix):
            self._levels[known].confirmed = float("-inf")


def split_key(key: str) -> tuple[str, str]:
    """`("a/b/", "c")` for "a/b/c"; the prefix is "" at the top."""
    parent, slash, name = key.rpartition("/")
    return parent + slash, name


def above(prefix: str) -> list[str]:
    """The prefixes of all folders that hold a folder."""
    parts = prefix.rstrip("/").split("/")
    return ["/".join(parts[:count]) + "/" for count in range(1, len(parts))]


def _ending(name: str) -> str:
    return keys.ending(name)[-keys.ENDING_DIGITS :]
