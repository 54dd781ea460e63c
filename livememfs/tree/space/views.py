"""`.by/` and `.recent/` of a folder of memories: the same memories by type, subject, importance and age, as links.

Owns which memory is in which directory. That is decided anew at each look, by the clock and by the memories' fields.
Nothing here is kept in the bucket. Refuses every change (EROFS). Trio thread only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.memories.storing import id_of
from livememfs.records.memory import KNOWN_TYPES, Memory, expiry
from livememfs.tree.computed import ComputedLink, ReadOnlyDirectory
from livememfs.tree.node import Directory, Node, check_name
from livememfs.tree.space.shelf import Contents, subject_name, subject_names

if TYPE_CHECKING:
    from datetime import datetime

    from livememfs.tree.space.collection import Collection

BY = ".by"
RECENT = ".recent"
USUAL_RECENT = "6h"
BANDS = {"high": 0.8, "medium": 0.5, "low": 0.0}
"""The folders of `.by/importance/`, each with the lowest importance of a memory in it."""
SUFFIX = ".md"
WHY = "livememfs computes it from what the memories say"

Candidates = Callable[[Contents], Iterable[str]]
Holds = Callable[[str, Memory], bool]


class _View(ReadOnlyDirectory):
    """A directory that is computed from the memories of one folder."""

    __slots__ = ("collection",)

    def __init__(self, parent: Directory, name: str, collection: Collection) -> None:
        super().__init__(parent, name, WHY)
        self.collection = collection


class Chosen(_View):
    """Links to those `candidates` that the directory `holds`."""

    __slots__ = ("_candidates", "_holds", "_up")

    def __init__(self, groups: _Groups, name: str, candidates: Candidates, holds: Holds) -> None:
        super().__init__(groups, name, groups.collection)
        self._up, self._candidates, self._holds = groups.depth + 1, candidates, holds

    async def children(self) -> Sequence[tuple[str, Node]]:
        shelf = self.collection.shelf
        links = {}
        for name in self._candidates(await shelf.contents()):
            memory = shelf.known(name)
            if memory is not None and self._holds(name, memory):
                shown = id_of(name) + SUFFIX
                links[shown] = self._link(shown, name, memory)
        return sorted(links.items())

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        stored = await self.collection.find(name) if name.endswith(SUFFIX) else None
        memory = await self.collection.shelf.one(stored) if stored is not None else None
        if stored is None or memory is None or name != id_of(stored) + SUFFIX or not self._holds(stored, memory):
            raise errors.NotFound(path=self.path_of(name))
        return self._link(name, stored, memory)

    def _link(self, shown: str, stored: str, memory: Memory) -> Node:
        link = self.held(shown, lambda name: ComputedLink(self, name, WHY))
        link.point_to("../" * self._up + stored, nanoseconds(memory.created_at))
        return link


class _Groups(_View):
    """A directory of directories of links."""

    __slots__ = ()
    depth = 2
    """How many levels it is below the folder of memories."""

    @abstractmethod
    async def names(self) -> Iterable[str]:
        """The names that are shown, in any order."""

    @abstractmethod
    def group(self, name: str) -> Chosen:
        """The directory of that name, even if it is empty. NotFound for a name that no directory can have."""

    async def children(self) -> Sequence[tuple[str, Node]]:
        return [(name, self.held(name, self.group)) for name in sorted(await self.names())]

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        return self.held(name, self.group)

    def left(self, members: Iterable[str]) -> bool:
        """Whether one of these memories is still there."""
        known = self.collection.shelf.known
        return any(known(name) is not None for name in members)


class Types(_Groups):
    """`.by/type/`."""

    __slots__ = ()

    async def names(self) -> Iterable[str]:
        types = (await self.collection.shelf.contents()).types
        return [kind for kind, members in types.items() if self.left(members)]

    def group(self, name: str) -> Chosen:
        if name not in KNOWN_TYPES:
            raise errors.NotFound(path=self.path_of(name))
        return Chosen(self, name, lambda all_: all_.types.get(name, ()), lambda _, memory: memory.type == name)


class Subjects(_Groups):
    """`.by/subject/`. Capital and small letters make no difference in a subject."""

    __slots__ = ()

    async def names(self) -> Iterable[str]:
        subjects = (await self.collection.shelf.contents()).subjects
        return [subject for subject, members in subjects.items() if self.left(members)]

    async def child(self, name: str) -> Node:
        group = await super().child(name)
        if not self.left((await self.collection.shelf.contents()).subjects.get(subject_name(name), ())):
            raise errors.NotFound(path=self.path_of(name))
        return group

    def group(self, name: str) -> Chosen:
        subject = subject_name(name)

        def holds(_: str, memory: Memory) -> bool:
            return subject in subject_names(memory)

        return Chosen(self, name, lambda all_: all_.subjects.get(subject, ()), holds)


class ByImportance(_Groups):
    """`.by/importance/`: by the importance that a memory was given, which neither its age nor its use changes."""

    __slots__ = ()

    async def names(self) -> Iterable[str]:
        return BANDS

    def group(self, name: str) -> Chosen:
        if name not in BANDS:
            raise errors.NotFound(path=self.path_of(name))
        return Chosen(self, name, _all_names, lambda _, memory: band(memory.importance) == name)


def _all_names(contents: Contents) -> Iterable[str]:
    return contents.names


def band(importance: float) -> str:
    """The folder of BANDS for this importance."""
    return next(name for name, least in BANDS.items() if importance >= least)


class Recent(_Groups):
    """`.recent/`: memories of the last six hours, or of the time that the name of a directory gives."""

    __slots__ = ()
    depth = 1

    def __init__(self, collection: Collection) -> None:
        super().__init__(collection, RECENT, collection)

    async def names(self) -> Iterable[str]:
        return (USUAL_RECENT,)

    def group(self, name: str) -> Chosen:
        clock = self.collection.context.clock
        if expiry(name, clock.now()) is None:
            raise errors.NotFound(path=self.path_of(name))

        def holds(_: str, memory: Memory) -> bool:
            ends = expiry(name, memory.created_at)
            return ends is None or clock.now() < ends

        return Chosen(self, name, _all_names, holds)


class By(_View):
    """`.by/`."""

    __slots__ = ()

    def __init__(self, collection: Collection) -> None:
        super().__init__(collection, BY, collection)
        kinds: dict[str, type[_Groups]] = {"importance": ByImportance, "subject": Subjects, "type": Types}
        self.nodes = {name: kind(self, name, collection) for name, kind in kinds.items()}


def nanoseconds(moment: datetime) -> int:
    """Since 1970, to the microsecond."""
    return int(moment.timestamp() * 1_000_000) * 1_000
