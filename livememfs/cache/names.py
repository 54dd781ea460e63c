"""Names and versions: what this machine knows of the bucket, and how it finds out.

Owns the questions to the store (LIST, HEAD), how long an answer is believed, and what is told to subscribers when an
answer brings news. Refuses to touch contents (`replica` does). While the store does not answer, what was known stays
true. Trio thread only; the store is awaited with no lock held, and who asks the same thing at once shares the answer.

An answer of the store is older than it looks: what our own hand did while it was on its way is not in it. So every
question is asked under `Listen`, and what was done here meanwhile (`ours`) is put on top of the answer, or the
question is asked again. Else a file that was just closed could vanish for a second, and a removed one come back.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import trio

from livememfs import errors
from livememfs.cache.asking import StoreQuestions
from livememfs.cache.changes import Change
from livememfs.cache.levels import Level, Levels, split_key
from livememfs.cache.listing import Heard, Listen, Meanwhile, Named, answered, list_level
from livememfs.concurrency import for_each, in_steps
from livememfs.store.base import ObjectInfo, Store, list_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from livememfs.cache.catalog import Catalog
    from livememfs.cache.changes import Changes
    from livememfs.cache.journal.steps import Journal

T = TypeVar("T")
Origin = Literal["local", "remote"]

HEADS_AT_ONCE = 16
WALKS = 3
"""Listings of everything below a prefix that are made at once: names are read in threads that compute."""
LOOSE = 4_096
"""Versions remembered with their metadata although their level is not known."""


class Watch(Protocol):
    """Whoever looks at the bucket for others' changes, so that not everybody has to."""

    def used(self, prefix: str) -> None:
        """Somebody looks at something below `prefix`."""

    def since(self, prefix: str) -> float:
        """What was confirmed at this moment or later is current; infinity: nothing is known to be."""

    def probes(self, prefix: str) -> bool:
        """Whether the store is asked about `prefix` now and then, whoever else asks."""

    def is_new(self, prefix: str) -> bool:
        """Whether the watch has yet to begin there: what is heard before it has begun cannot be vouched for."""

    async def catch_up(self, prefix: str) -> None:
        """Have `since` answer for now, if that is possible. Raises nothing of the store's."""


class Nobody:
    """No watch: every answer ages."""

    def used(self, prefix: str) -> None:
        """See Watch."""

    def since(self, prefix: str) -> float:
        """See Watch."""
        return float("inf")

    def probes(self, prefix: str) -> bool:
        """See Watch."""
        return False

    def is_new(self, prefix: str) -> bool:
        """See Watch."""
        return False

    async def catch_up(self, prefix: str) -> None:
        """See Watch."""


class Names:
    """The known names of one bucket. `ttl` is how long names are believed that nobody watches, in seconds.

    `forget(key)` is called for an object that is there no more: its content need not be kept.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        catalog: Catalog,
        changes: Changes,
        *,
        ttl: float,
        forget: Callable[[str], None],
    ) -> None:
        self.store = store
        self.asking = StoreQuestions()
        self.watch: Watch = Nobody()
        self.levels = Levels(journal)
        self.counts = {"listings": 0, "listing_hits": 0}
        self._changes = changes
        self._walking = trio.CapacityLimiter(WALKS)
        self._journal = journal
        self._catalog = catalog
        self._ttl = ttl
        self._forget = forget
        self._loose: dict[str, ObjectInfo] = {}
        self._overhearing: dict[str, list[Heard]] = {}
        self._listening: list[Meanwhile] = []
        self._listing: list[Meanwhile] = []

    # --- one level ----------------------------------------------------------------------------------------------

    async def listing(self, prefix: str, *, fresh: bool = False, max_age: float | None = None) -> Level:
        """The names directly below `prefix` ("" or ending in "/"): a live view, which changes with the bucket.

        `fresh` asks the store whatever is known, `max_age` (seconds) what was not confirmed since. A store that does
        not answer is no reason to forget: then what was known last is given, unless `fresh`.
        """
        self.watch.used(prefix)
        if self.watch.is_new(prefix) and not self.asking.pausing:
            await self.watch.catch_up(prefix)
        level = self.levels.get(prefix)
        if level is None and not fresh and self.asking.pausing:
            level = self.from_catalog(prefix)
        if level is None or fresh:
            return await self._ask_or_remember(prefix, level, fresh=fresh)
        if not self.believes(prefix, level, max_age):
            await self.watch.catch_up(prefix)
            level = self.levels.get(prefix) or level
        if self.believes(prefix, level, max_age):
            self.counts["listing_hits"] += 1
        elif max_age is not None:
            return await self._ask_or_remember(prefix, level, fresh=False)
        else:
            await self.asking.patiently(lambda: self._ask_or_remember(prefix, level, fresh=False))
        return self.levels.get(prefix) or level

    async def _ask_or_remember(self, prefix: str, level: Level | None, *, fresh: bool) -> Level:
        try:
            return await self._ask(prefix, level, fresh=fresh)
        except (errors.Unreachable, errors.Throttled):
            level = self.levels.get(prefix) or self.from_catalog(prefix)
            if fresh or level is None:
                raise
            return level

    @contextmanager
    def overhear(self, prefix: str, heard: Heard) -> Iterator[None]:
        """Around a question for a level: `heard` is told of each page while more are to come, as the store says it.

        Only what `listing` returns in the end counts. Whoever has work to do for each of very many objects can do it
        while the store is at work as well.
        """
        hearing = self._overhearing.setdefault(prefix, [])
        hearing.append(heard)
        try:
            yield
        finally:
            hearing.remove(heard)
            if not hearing:
                self._overhearing.pop(prefix, None)

    def begin(self, prefix: str) -> None:
        """Take note of a level that our own hand has just made, where the one above said that there was none.

        It is as certain as that one, and like that one it can be used while the store does not answer.
        """
        if self.levels.get(prefix) is None:
            above = self.levels.get(split_key(prefix[:-1])[0])
            self.levels.replace(prefix, (), set(), above.confirmed if above is not None else float("-inf"))

    def doubt(self, prefix: str) -> None:
        """Have a level asked for again when somebody looks at it."""
        level = self.levels.get(prefix)
        if level is not None:
            level.confirmed = float("-inf")

    async def refresh(self, prefix: str) -> None:
        """Ask for a level now. Raises what the store fails with."""
        await self._ask(prefix, self.levels.get(prefix), fresh=True)

    def watched(self, prefix: str) -> bool:
        """Whether others' changes below `prefix` will be told: then it need not be asked again and again."""
        return self.watch.since(prefix) != float("inf")

    def believes(self, prefix: str, level: Level, max_age: float | None = None) -> bool:
        """Whether a level need not be asked for."""
        if self.asking.pausing:
            return True
        age = trio.current_time() - level.confirmed
        if max_age is not None:
            return age < max_age
        if self.asking.silent or (self.asking.failing_since is not None and self.watch.probes(prefix)):
            return True  # who is asking already finds out when the store answers again; nobody else need wait for that
        return age < self._ttl or level.confirmed >= self.watch.since(prefix)

    def from_catalog(self, prefix: str) -> Level | None:
        """The names that a former mount has heard."""
        found = self._catalog.load(prefix)
        if found is None:
            return None
        self.levels.replace(prefix, *found, float("-inf"))
        return self.levels.get(prefix)

    async def _ask(self, prefix: str, before: Level | None, *, fresh: bool) -> Level:
        """One request for one level at a time; who had to wait takes what the other one got."""
        async with self.asking.single(("list", prefix)) as first:
            known = self.levels.get(prefix)
            anew = known is not before or (not fresh and known is not None and self.believes(prefix, known, None))
            if not first and known is not None and anew and known.confirmed != float("-inf"):  # doubted meanwhile
                return known
            return await self._list(prefix)

    async def _list(self, prefix: str) -> Level:
        """Ask the store for one level. What our own hand does while the store answers is applied on top."""
        asked = trio.current_time()
        self.counts["listings"] += 1

        def page_heard(objects: Sequence[Named]) -> None:
            self.asking.answered()
            for heard in self._overhearing.get(prefix, ()):
                heard(objects)

        with Listen(self._listening) as meanwhile, Listen(self._listing) as heard_meanwhile:
            named, folders = await self.asking.call(lambda: list_level(self.store, prefix, page_heard))
        if self.levels.get(prefix) is None:
            self.from_catalog(prefix)  # the metadata that was heard once saves a question for each object
        before = self.levels.get(prefix)
        known = dict(before.objects) if before is not None else {}
        if known or self._loose:
            named = [(name, self._merged(info, known.get(name))) for name, info in named]
        self.levels.replace(prefix, named, folders, asked)
        for key, info in (*heard_meanwhile, *meanwhile):
            self._show(key, info)
        level = self.levels.get(prefix)
        assert level is not None  # it was put there, and nothing was awaited since
        self._heard_level(prefix, level, known, before)
        return level

    def _heard_level(self, prefix: str, level: Level, known: dict[str, ObjectInfo], before: Level | None) -> None:
        """Keep what a LIST said, and tell of what is new in it."""
        announce = before is not None
        self._catalog.complete(prefix, level.folders)
        if not known and not len(self._journal.ops):
            self._catalog.heard(level.objects.values())  # very many, the first time
            known = level.objects if before is None else known
        for name, info in level.objects.items():
            old = known.get(name)
            if old is info:
                continue
            if self._journal.ops.newest(prefix + name) is None:
                self._catalog.heard((info,))
            if announce and (old is None or old.etag != info.etag):
                self._changes.publish(Change(prefix + name, "put", info.etag, "remote", new=old is None))
        if before is not None:
            for folder in before.folders ^ level.folders:
                kind: Literal["put", "delete"] = "put" if folder in level.folders else "delete"
                self._changes.publish(Change(f"{prefix}{folder}/", kind, "", "remote", new=kind == "put"))
        for name in known.keys() - level.objects.keys():
            self._catalog.gone(prefix + name)
            self._forget(prefix + name)
            if announce:
                self._changes.publish(Change(prefix + name, "delete", "", "remote"))

    def _merged(self, info: ObjectInfo, known: ObjectInfo | None) -> ObjectInfo:
        """What a LIST says of an object, with the user metadata that is already known of this very version."""
        known = known or self._loose.pop(info.key, None)
        return known if known is not None and known.meta is not None and _same_version(known, info) else info

    async def walk(self, prefix: str, *, local: bool = False) -> list[ObjectInfo]:
        """Every object below `prefix`, asked for now, in the order of keys. `local`: with what was accepted here."""
        with Listen(self._listening) as meanwhile:
            async with self._walking:
                found = await self.asking.call(lambda: list_all(self.store, prefix))
            infos: dict[str, ObjectInfo] = {}

            def take(info: ObjectInfo) -> None:
                infos[info.key] = self._merged(info, self.now(info.key))

            await in_steps(found.objects, take)
        if local:
            for key, shown in meanwhile:  # also what has arrived since the store looked, and waits no longer
                if key.startswith(prefix):
                    infos.pop(key, None)
                    if shown is not None:
                        infos[key] = shown
            for op in self._journal.ops.pending():
                if op.key.startswith(prefix):
                    infos.pop(op.key, None)
                    shown = op.info()
                    if shown is not None:
                        infos[op.key] = shown
        return [infos[key] for key in sorted(infos)]

    # --- one object -----------------------------------------------------------------------------------------------

    def now(self, key: str) -> ObjectInfo | None:
        """What is known of one object, without asking."""
        op = self._journal.ops.newest(key)
        if op is not None:
            return op.info()
        parent, name = split_key(key)
        level = self.levels.get(parent)
        return level.objects.get(name) if level is not None else self._loose.get(key)

    async def stat(self, key: str, *, fresh: bool = False) -> ObjectInfo:
        """What is known of one object, user metadata included. ObjectMissing when there is none.

        `fresh` is the bucket's word; without it, what was accepted here counts.
        """
        if not fresh:
            info = await self.look(key)
            if info.meta is not None:
                return info
        return await self.head(key)

    async def look(self, key: str) -> ObjectInfo:
        """What is known of one object, with or without its metadata. ObjectMissing when there is none."""
        parent, name = split_key(key)
        try:
            info = (await self.listing(parent)).objects.get(name)
        except (errors.Unreachable, errors.Throttled):
            info = self.now(key)
            if self._journal.ops.newest(key) is None or info is None:
                raise  # what was accepted here is known, whether or not anything else is
        if info is None:
            raise errors.ObjectMissing(key=key)
        return info

    async def head(self, key: str) -> ObjectInfo:
        """Ask the store for an object without its bytes. ObjectMissing when there is none."""
        async with self.asking.single(("head", key)):
            try:
                info = await self.undisturbed(key, lambda: self.store.head(key))
            except errors.ObjectMissing:
                self.lost(key)
                raise
            return self.learn(info)

    async def complete(self, infos: list[ObjectInfo]) -> list[ObjectInfo]:
        """The same objects with their user metadata, asked for side by side where it is not known.

        An object that went meanwhile is left out.
        """
        found: dict[str, ObjectInfo] = {info.key: info for info in infos if info.meta is not None}
        if len(found) == len(infos):
            return infos

        async def ask(key: str) -> None:
            try:
                found[key] = await self.head(key)
            except errors.ObjectMissing:
                return

        await for_each([info.key for info in infos if info.meta is None], ask, at_once=HEADS_AT_ONCE)
        return [found[info.key] for info in infos if info.key in found]

    async def look_again(self, keys: list[str]) -> None:
        """Find out what became of objects that somebody says have changed. Raises what the store fails with."""

        async def ask(key: str) -> None:
            try:
                await self.head(key)
            except errors.ObjectMissing:
                return

        await for_each(keys, ask, at_once=HEADS_AT_ONCE)

    async def hear(self, question: Callable[[], Awaitable[Sequence[ObjectInfo]]]) -> tuple[list[ObjectInfo], set[str]]:
        """Ask for some objects and take note of them; returns them, and the keys of which more was heard meanwhile."""
        asked = trio.current_time()
        with Listen(self._listening) as meanwhile, Listen(self._listing) as heard_meanwhile:
            infos = await self.asking.call(question)
        newer = {key for key, _ in (*meanwhile, *heard_meanwhile)}
        for info in infos:
            parent, name = split_key(info.key)
            level = self.levels.get(parent)
            if level is None or info.key in newer or self._journal.ops.newest(info.key) is not None:
                continue
            if level.confirmed > asked:
                continue  # somebody has asked later, and was answered earlier
            known = level.objects.get(name)
            if known is None or not _same_version(known, info):
                self.learn(info)
        return list(infos), newer

    async def hear_range(
        self, prefix: str, after: str, question: Callable[[], Awaitable[Sequence[ObjectInfo]]]
    ) -> list[ObjectInfo]:
        """The same for all objects on the level `prefix` whose name sorts after `after`: what is missing is gone."""
        infos, newer = await self.hear(question)
        level = self.levels.get(prefix)
        if level is not None:
            there = {info.key for info in infos}
            for key in [prefix + name for name in level.objects if name > after]:
                if key not in there and key not in newer:
                    self.lost(key)
        return infos

    # --- taking note: no await below this line but in the last --------------------------------------------------

    def learn(self, info: ObjectInfo) -> ObjectInfo:
        """Take note of what the store just said of one object, and show it unless a later version waits here."""
        op = self._journal.ops.newest(info.key)
        if op is not None:
            return op.info() or info
        old = self.now(info.key)
        parent, _ = split_key(info.key)
        self._catalog.heard((info,))
        answered(info.key, info, self._listing)
        self._tell_folders(self._show(info.key, info), "put")
        looked_at = old is not None or self.levels.get(parent) is not None
        if looked_at and (old is None or old.etag != info.etag):
            self._changes.publish(Change(info.key, "put", info.etag, "remote", new=old is None))
        return info

    def lost(self, key: str) -> None:
        """Take note that the store has no such object."""
        if self._journal.ops.newest(key) is not None:
            return
        was_known = self.now(key) is not None
        self._catalog.gone(key)
        self._forget(key)
        answered(key, None, self._listing)
        folders = self._show(key, None)
        if was_known:
            self._changes.publish(Change(key, "delete", "", "remote"))
        self._tell_folders(folders, "delete")

    def _tell_folders(self, prefixes: list[str], kind: Literal["put", "delete"]) -> None:
        """Folders are told like objects, with a key that ends in a slash."""
        for prefix in prefixes:
            self._changes.publish(Change(prefix, kind, "", "remote", new=kind == "put"))

    def _show(self, key: str, info: ObjectInfo | None) -> list[str]:
        """Show one object, or its absence, in the levels that are known; the folders that came or went with it."""
        if self.levels.get(split_key(key)[0]) is None and info is not None:
            self._loose[key] = info
            if len(self._loose) > LOOSE:
                self._loose.pop(next(iter(self._loose)))
        else:
            self._loose.pop(key, None)
        return self.levels.show(key, info)

    def ours(self, key: str, info: ObjectInfo | None) -> list[str]:
        """Show what our own hand made of a key, also to every question that is on its way; returns as `_show` does."""
        for meanwhile in self._listening:
            meanwhile.append((key, info))
        return self._show(key, info)

    def settled(self, key: str, info: ObjectInfo | None, origin: Origin) -> None:
        """Take note of our own hand: what the key has now, in view of every answer that is on its way."""
        if info is None:
            self._catalog.gone(key)
            self._forget(key)
        else:
            self._catalog.heard((info,))
        op = self._journal.ops.newest(key)
        shown, new = info if op is None else op.info(), self.levels.lacks(key)
        folders = self.ours(key, shown)
        if origin == "remote":
            self._tell_folders(folders, "delete" if shown is None else "put")
        kind: Literal["put", "delete"] = "delete" if shown is None else "put"
        self._changes.publish(Change(key, kind, "" if shown is None else shown.etag, origin, new=new))

    async def undisturbed(self, key: str, ask: Callable[[], Awaitable[T]], *, bulk: bool = False) -> T:
        """The store's answer about one object; asked again when our own hand was on it meanwhile, so none is older."""
        while True:
            with Listen(self._listening) as meanwhile:
                try:
                    answer = await self.asking.call(ask, bulk=bulk)
                except errors.ObjectMissing:
                    if all(changed != key for changed, _ in meanwhile):
                        raise
                else:
                    if all(changed != key for changed, _ in meanwhile):
                        return answer


def _same_version(one: ObjectInfo, other: ObjectInfo) -> bool:
    # A change of metadata alone keeps the ETag and moves the time; stores round that time to a second in one of
    # LIST and HEAD and not always in the other.
    return one.etag == other.etag and abs(one.modified_ns - other.modified_ns) < 1_000_000_000
