"""`search/`: a name is a question, and what is below it the answer.

Owns the forms of an answer: a directory of links in the order of rank, one page, the page that explains the order, and
`around:<id>.md`, what was observed before and after an observation. Listing `search/` itself shows nothing, so that
`grep -r`, `find` and an editor's indexer never start a search; names that begin with a dot are no questions for the
same reason. Refuses every change. Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.text.own import fenced
from livememfs.tree.computed import ComputedFile
from livememfs.tree.node import Attrs, Directory, Node, Symlink, check_name

if TYPE_CHECKING:
    from livememfs.recall.search.ranking import Hit
    from livememfs.recall.service import Answer
    from livememfs.tree.context import Context

NAME = "search"
EXPLAIN = ".explain"
PAGE = ".md"
AROUND = re.compile(r"around:#?([0-9A-Za-z_-]+)\.md")

Spaces = Callable[[], Awaitable[Sequence[str]]]


class _Computed(Directory):
    """A directory in which nothing can be changed."""

    __slots__ = ("_known", "context", "space", "spaces")

    def __init__(self, parent: Directory, name: str, context: Context, space: str, spaces: Spaces) -> None:
        super().__init__(parent, name)
        self.context, self.space, self.spaces = context, space, spaces
        self._known: WeakValueDictionary[str, Node] = WeakValueDictionary()

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.ReadOnly("livememfs computes it", path=self.path)

    async def attrs(self) -> Attrs:
        return Attrs(kind="directory", mode=0o555, size=0, mtime_ns=0, nlink=2)

    def _kept(self, name: str, make: Callable[[], Node]) -> Node:
        """The node of a name: the same one for as long as somebody holds it."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = make()
        return known

    async def ask(self, question: str) -> Answer:
        """The answer to a question."""
        return await self.context.recall.ask(question, await self.spaces())

    def path_to(self, hit: Hit, up: int) -> str:
        """Where a hit can be read, from a directory `up` levels below this space or the root."""
        path = hit.record.key[len(self.space) + 1 :] if self.space else hit.record.key
        return "../" * up + path


class SearchDirectory(_Computed):
    """`search/` of a space, or of all of them at the root (`space` empty)."""

    __slots__ = ()

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name == EXPLAIN:
            return self._kept(name, lambda: ExplainDirectory(self, name, self.context, self.space, self.spaces))
        if name.startswith("."):
            raise errors.NotFound(path=self.path_of(name))
        if name.endswith(PAGE):
            around = AROUND.fullmatch(name) if self.space else None
            if around is not None:
                return await self._around(name, around[1])
            return self._kept(name, lambda: ComputedFile(self, name, self.context, lambda: self._page(name)))
        return self._kept(name, lambda: ResultsDirectory(self, name, self.context, self.space, self.spaces))

    async def _around(self, name: str, observation: str) -> Node:
        """The page of what was observed around an observation. NotFound for one that is not there."""
        pages = self.context.pages

        async def content() -> bytes:
            return fenced(await pages.around(self.space, observation) or "").encode()

        if await pages.around(self.space, observation) is None:
            raise errors.NotFound(path=self.path_of(name))
        return self._kept(name, lambda: ComputedFile(self, name, self.context, content))

    async def _page(self, name: str) -> bytes:
        from livememfs.recall.search.page import page

        answer = await self.ask(name.removesuffix(PAGE))
        paths = [self.path_to(hit, 1) for hit in answer.found.hits]
        return page(answer.query, answer.found, paths, notes=answer.notes).encode(errors="replace")


class ExplainDirectory(_Computed):
    """`search/.explain/`: for each question the page that says why the answer is in this order."""

    __slots__ = ()

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name.startswith(".") or not name.endswith(PAGE):
            raise errors.NotFound(path=self.path_of(name))
        return self._kept(name, lambda: ComputedFile(self, name, self.context, lambda: self._page(name)))

    async def _page(self, name: str) -> bytes:
        from livememfs.recall.search.page import explanation

        answer = await self.ask(name.removesuffix(PAGE))
        paths = [self.path_to(hit, 2) for hit in answer.found.hits]
        return explanation(answer.query, answer.found, paths, notes=answer.notes).encode(errors="replace")


class ResultsDirectory(_Computed):
    """`search/<question>/`: links to what was found, best first."""

    __slots__ = ()

    async def children(self) -> Sequence[tuple[str, Node]]:
        from livememfs.recall.search.page import slug

        hits = (await self.ask(self.name)).found.hits
        width = max(2, len(str(len(hits))))
        found: list[tuple[str, Node]] = []
        for rank, hit in enumerate(hits, 1):
            name = f"{rank:0{width}}-{slug(hit.record)}{PAGE}"
            node = self._kept(name, partial(ResultLink, self, name))
            assert isinstance(node, ResultLink)
            node.point_to(self.path_to(hit, 2), hit.record.created)
            found.append((name, node))
        return found

    async def child(self, name: str) -> Node:
        # A name that was listed a moment ago still means what it meant, whatever the order is by now.
        known = self._known.get(name)
        if known is None:
            known = dict(await self.children()).get(name)
        if known is None:
            raise errors.NotFound(path=self.path_of(name))
        return known


class ResultLink(Symlink):
    """A link to one record."""

    __slots__ = ("_created", "_target")

    def __init__(self, parent: Directory, name: str) -> None:
        super().__init__(parent, name)
        self._target, self._created = "", 0

    def refuse(self, operation: str) -> errors.LiveMemError:
        return errors.ReadOnly("livememfs computes it", path=self.path)

    def point_to(self, target: str, created: int) -> None:
        """Stand for another record from now on."""
        self._target, self._created = target, created

    async def attrs(self) -> Attrs:
        return Attrs(
            kind="symlink", mode=0o777, size=len(self._target.encode()), mtime_ns=self._created * 1_000_000_000
        )

    async def target(self) -> str:
        return self._target
