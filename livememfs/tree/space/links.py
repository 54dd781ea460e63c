"""`<memory>.links/`: the links of a memory, as one directory of symbolic links for each relation.

Owns making and removing links with `ln -s` and `rm`: each is an edit of the memory's front matter. Only the last part
of the target of `ln -s` counts: it must name a memory of the space. The link is shown under the id of that memory, with
a path that resolves. Links to missing memories are not shown. Refuses all but links (EPERM). Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.records import attributes, keys
from livememfs.records.memory import RELATIONS, Memory
from livememfs.tree.computed import ComputedLink
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, Node, check_name, crossing
from livememfs.tree.space.views import nanoseconds

if TYPE_CHECKING:
    from livememfs.tree.space.collection import Collection, FoundMemory
    from livememfs.tree.space.memoryfile import MemoryFile

SUFFIX = ".links"
ABOVE = "../../"
"""From a directory of links to the folder of the memory."""


class RelationLink(ComputedLink):
    """A link that somebody made."""

    __slots__ = ()
    rule = "it is a line in a memory's front matter"

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Owner and times are accepted and not kept: `mv` and `cp -a` set them."""


class LinksDirectory(Directory):
    """The links of one memory. The directory's name, without the ending, is a name of that memory."""

    __slots__ = ("_relations", "collection")
    rule = "it has one directory for each relation"

    def __init__(self, collection: Collection, name: str) -> None:
        super().__init__(collection, name)
        self.collection = collection
        self._relations = {relation: RelationDirectory(self, relation) for relation in RELATIONS}

    async def stored(self) -> str:
        """The name of the memory's object. NotFound."""
        stored = await self.collection.find(self.name.removesuffix(SUFFIX))
        if stored is None:
            raise errors.NotFound(path=self.path)
        return stored

    async def attrs(self) -> Attrs:
        await self.stored()
        return await super().attrs()

    async def child(self, name: str) -> Node:
        if name not in self._relations:
            raise errors.NotFound(path=self.path_of(name))
        return self._relations[name]

    async def children(self) -> Sequence[tuple[str, Node]]:
        await self.stored()
        return sorted(self._relations.items())


class RelationDirectory(Directory):
    """The links of one memory by one relation, which is the directory's name."""

    __slots__ = ("_made", "links")
    rule = "it holds links to memories, made with ln -s"

    def __init__(self, links: LinksDirectory, relation: str) -> None:
        super().__init__(links, relation)
        self.links = links
        self._made: WeakValueDictionary[str, RelationLink] = WeakValueDictionary()

    async def attrs(self) -> Attrs:
        return await self.links.attrs()

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode, owner and times are accepted and not kept."""

    async def children(self) -> Sequence[tuple[str, Node]]:
        links: dict[str, Node] = {}
        for link in attributes.linked(await self._memory(), self.name):
            memory = await self.links.collection.linked(link)
            if memory is not None:
                links[f"{memory.id}.md"] = self._node(f"{memory.id}.md", memory)
        return sorted(links.items())

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        memory = await self.links.collection.linked(name)
        if memory is None or not await self._names_of(memory):
            raise errors.NotFound(path=self.path_of(name))
        return self._node(name, memory)

    async def symlink(self, name: str, target: str, caller: Caller) -> RelationLink:
        target_memory = await self._meant(target)
        if await self._names_of(target_memory):
            raise errors.AlreadyExists(path=self.path_of(name))
        new = (self.name, target_memory.id)
        file = await self._file()
        await file.amend(lambda memory: attributes.with_links(memory, (*memory.links, new)))
        return self._node(name, target_memory)

    async def unlink(self, name: str) -> None:
        linked = await self.links.collection.linked(name)
        gone = {(self.name, link) for link in await self._names_of(linked)} if linked is not None else set()
        if not gone:
            raise errors.NotFound(path=self.path_of(name))
        file = await self._file()
        await file.amend(lambda memory: replace(memory, links=tuple(link for link in memory.links if link not in gone)))

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        raise crossing(self.path_of(name), target)  # `mv` then makes the new link and removes this one

    async def _meant(self, target: str) -> FoundMemory:
        """The memory that the target of `ln -s` names. Unusable when this space has no such memory."""
        *folders, name = target.rstrip("/").split("/")
        collection = self.links.collection
        memory = await collection.linked(name, folders[-1] if folders else "")
        if memory is None or await self._elsewhere(folders):
            detail = f"{target!r} names no memory of {collection.space}: a link leads to one that is there"
            raise errors.Unusable(detail, path=self.path_of(name))
        return memory

    async def _elsewhere(self, folders: Sequence[str]) -> bool:
        """Whether a path leads through a collection's folder in another space that exists and that the token sees."""
        space = folders[-2] if len(folders) > 1 and folders[-1] in keys.COLLECTIONS else ""
        if space in ("", ".", "..", self.links.collection.space):
            return False
        context = self.links.collection.context
        return context.sees(space) and space in (await context.replica.names.listing("")).folders

    async def _memory(self) -> Memory:
        memory = await self.links.collection.shelf.one(await self.links.stored())
        if memory is None:
            raise errors.NotFound(path=self.path)
        return memory

    async def _file(self) -> MemoryFile:
        return await self.links.collection.file(await self.links.stored())

    async def _names_of(self, memory: FoundMemory) -> list[str]:
        """The names by which this memory is linked to `memory`; none when it is not."""
        linked = attributes.linked(await self._memory(), self.name)
        return [name for name in linked if await self.links.collection.linked(name) == memory]

    def _node(self, name: str, memory: FoundMemory) -> RelationLink:
        folder = "" if memory.collection is self.links.collection else f"../{memory.collection.name}/"
        target = f"{ABOVE}{folder}{memory.name}"
        node = self._made.get(name)
        if node is None:
            node = self._made[name] = RelationLink(self, name, why="")
        node.point_to(target, nanoseconds(memory.created))
        return node
