"""`search/`: a name is a question, and the file or directory of that name is the answer.

Owns the forms of an answer: a directory of links in the order of rank, one page, the page that explains the order, and
`around:<id>.md`, the observations before and after one. Listing `search/` itself shows nothing, so that `grep -r`,
`find` and an editor's indexer never start a search; for the same reason a name with a dot in front is no question.
Refuses every change. Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.text.own import fenced
from livememfs.tree.computed import ComputedFile, ComputedLink, ReadOnlyDirectory
from livememfs.tree.node import Directory, Node, check_name

if TYPE_CHECKING:
    from livememfs.recall.search.found import Hit
    from livememfs.recall.service import SearchAnswer
    from livememfs.tree.context import Context

NAME = "search"
EXPLAIN = ".explain"
PAGE = ".md"
AROUND = re.compile(r"around:#?([0-9A-Za-z_-]+)\.md")

Spaces = Callable[[], Awaitable[Sequence[str]]]


class _Answers(ReadOnlyDirectory):
    """A directory of answers to questions about the spaces that `spaces` gives."""

    __slots__ = ("context", "space", "spaces")

    def __init__(self, parent: Directory, name: str, context: Context, space: str, spaces: Spaces) -> None:
        super().__init__(parent, name)
        self.context, self.space, self.spaces = context, space, spaces

    async def ask(self, question: str) -> SearchAnswer:
        """The answer to a question."""
        return await self.context.recall.ask(question, await self.spaces())

    def path_to(self, hit: Hit, up: int) -> str:
        """Where a hit can be read, from a directory `up` levels below this space or the root."""
        path = hit.record.key[len(self.space) + 1 :] if self.space else hit.record.key
        return "../" * up + path

    async def render(self, page: Callable[..., str], name: str, up: int) -> bytes:
        """The page `name`, in a directory `up` levels below this space or the root."""
        answer = await self.ask(name.removesuffix(PAGE))
        paths = [self.path_to(hit, up) for hit in answer.found.hits]
        return page(answer.query, answer.found, paths, notes=answer.notes).encode(errors="replace")


class SearchDirectory(_Answers):
    """`search/` of a space, or of all of them at the root (`space` empty)."""

    __slots__ = ()

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name == EXPLAIN:
            return self.held(name, lambda name: ExplainDirectory(self, name, self.context, self.space, self.spaces))
        if name.startswith("."):
            raise errors.NotFound(path=self.path_of(name))
        if name.endswith(PAGE):
            around = AROUND.fullmatch(name) if self.space else None
            if around is not None:
                return await self._around(name, around[1])
            return self.held(name, lambda name: ComputedFile(self, name, self.context, lambda: self._page(name)))
        return self.held(name, lambda name: ResultsDirectory(self, name, self.context, self.space, self.spaces))

    async def _around(self, name: str, observation: str) -> Node:
        """The page of the observations around one. NotFound when that one does not exist."""
        pages = self.context.pages

        async def content() -> bytes:
            return fenced(await pages.around(self.space, observation) or "").encode()

        if await pages.around(self.space, observation) is None:
            raise errors.NotFound(path=self.path_of(name))
        return self.held(name, lambda name: ComputedFile(self, name, self.context, content))

    async def _page(self, name: str) -> bytes:
        from livememfs.recall.search.page import page

        return await self.render(page, name, 1)


class ExplainDirectory(_Answers):
    """`search/.explain/`: for each question, the page that explains the order of its answer."""

    __slots__ = ()

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name.startswith(".") or not name.endswith(PAGE):
            raise errors.NotFound(path=self.path_of(name))
        return self.held(name, lambda name: ComputedFile(self, name, self.context, lambda: self._page(name)))

    async def _page(self, name: str) -> bytes:
        from livememfs.recall.search.page import explanation

        return await self.render(explanation, name, 2)


class ResultsDirectory(_Answers):
    """`search/<question>/`: links to what was found, best first."""

    __slots__ = ()

    async def children(self) -> Sequence[tuple[str, Node]]:
        from livememfs.recall.search.page import slug

        hits = (await self.ask(self.name)).found.hits
        width = max(2, len(str(len(hits))))
        links: list[tuple[str, Node]] = []
        for rank, hit in enumerate(hits, 1):
            name = f"{rank:0{width}}-{slug(hit.record)}{PAGE}"
            link = self.held(name, partial(ComputedLink, self))
            link.point_to(self.path_to(hit, 2), hit.record.created * 1_000_000_000)
            links.append((name, link))
        return links

    async def child(self, name: str) -> Node:
        # A name that was listed before leads to the same record, even if the ranks have changed meanwhile.
        return self.holding(name) or await super().child(name)
