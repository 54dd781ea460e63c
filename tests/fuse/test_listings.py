"""Listings for the kernel: begun while the store still answers, and never showing anything but what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import pytest

from livememfs.cache.listing import Heard, Named
from livememfs.fuse import translate
from livememfs.fuse.inodes import Inodes
from livememfs.fuse.listings import Listings
from livememfs.store.base import ObjectInfo
from livememfs.tree.node import Directory, Ids, Node


class Shelf(Directory):
    """A directory of files: `pages` are overheard, then `shown` is what there is."""

    __slots__ = ("between", "calm", "hearing", "pages", "shown")

    def __init__(self) -> None:
        super().__init__(Directory(None, ""), "shelf")
        self.pages: list[list[Named]] = []
        self.shown: list[Named] = []
        self.calm = True
        self.between: Callable[[], None] = lambda: None
        self.hearing: list[Heard] = []

    def steady(self) -> bool:
        return self.calm

    def stamp(self) -> object:
        return tuple(self.shown)

    @contextmanager
    def _hearing(self, heard: Heard) -> Iterator[None]:
        self.hearing.append(heard)
        yield
        self.hearing.remove(heard)

    def overhear(self, heard: Heard) -> AbstractContextManager[None]:
        return self._hearing(heard)

    async def look(self) -> None:
        for page in self.pages:
            for heard in self.hearing:
                heard(page)
        self.pages = []
        self.between()

    async def entries(self) -> Sequence[tuple[str, Node | ObjectInfo]]:
        return list(self.shown)


def named(name: str, size: int = 1) -> Named:
    return name, ObjectInfo(f"shelf/{name}", f"etag-{size}", size, 1_000)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def listings_of() -> Listings:
    return Listings(Inodes(Directory(None, "")), Ids(0, 0), lambda _, attrs: attrs, lambda _: Ids(0, 0))


async def listed(shelf: Shelf, listings: Listings | None = None) -> dict[bytes, tuple[int, float]]:
    """Size, and how long the kernel may believe it, of each name; numbers must differ."""
    found = await (listings or listings_of()).of(shelf)
    assert len({entry.st_ino for _, _, entry in found}) == len(found)
    assert all(held.ino == entry.st_ino for _, held, entry in found)
    return {name: (entry.st_size, entry.attr_timeout) for name, _, entry in found}


@pytest.mark.parametrize("early", [0, 1, 2])
async def test_what_was_heard_early_is_shown_like_what_was_not(shelf: Shelf, early: int) -> None:
    shelf.shown = [named("a", 1), named("b", 2)]
    shelf.pages = [[one] for one in shelf.shown[:early]]

    assert await listed(shelf) == {b"a": (1, translate.STEADY_SECONDS), b"b": (2, translate.STEADY_SECONDS)}


async def test_what_has_changed_since_it_was_heard_is_shown_as_it_is_now(shelf: Shelf) -> None:
    shelf.shown = [named("a", 7), named("new", 8)]
    shelf.pages = [[named("a", 1), named("gone", 2)]]

    assert {name: size for name, (size, _) in (await listed(shelf)).items()} == {b"a": 7, b"new": 8}


async def test_a_page_that_is_heard_twice_is_shown_once(shelf: Shelf) -> None:
    shelf.shown = [named("a"), named("b")]
    shelf.pages = [shelf.shown, shelf.shown[1:]]

    assert len(await listed(shelf)) == 2


@pytest.mark.parametrize("calm", [True, False])
async def test_the_kernel_believes_as_long_as_holds_in_the_end(shelf: Shelf, calm: bool) -> None:
    """Whether others' changes are told is known only when the store has answered."""
    shelf.shown = [named("a"), named("b")]
    shelf.pages = [shelf.shown[:1]]
    shelf.calm = not calm

    def settle() -> None:
        shelf.calm = calm

    shelf.between = settle

    seconds = translate.file_seconds(steady=calm)
    assert await listed(shelf) == {b"a": (1, seconds), b"b": (1, seconds)}


async def test_a_listing_is_kept_until_something_changes(shelf: Shelf) -> None:
    listings = listings_of()
    shelf.shown = [named("a")]
    first = await listings.of(shelf)

    assert await listings.of(shelf) is first
    shelf.shown = [named("a"), named("b")]
    assert len(await listings.of(shelf)) == 2
