"""From the stream of changes to the index: what is written is found, what is removed is gone.

Owns which spaces are indexed, which objects differ from the index, and their reading. A space is indexed when it is
searched for the first time, since to read a whole bucket is not free; from then on only changes feed the index, and a
new process compares names and versions once and reads nothing again. Refuses to search. Trio thread only; blocking work
runs in one worker thread at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.cache.changes import Change
from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError
from livememfs.recall.embed.base import Embedder
from livememfs.recall.embed.prior import TEXTS
from livememfs.recall.index.engine import Engine
from livememfs.recall.index.local import Index
from livememfs.recall.index.pieces import PieceText
from livememfs.recall.index.reader import is_indexed, records_of
from livememfs.recall.index.record import digest
from livememfs.recall.index.recordfile import is_damage
from livememfs.records import keys
from livememfs.store.base import ObjectInfo, StoredObject

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from livememfs.recall.index.sharing import Sharing

log = structlog.get_logger("livememfs.recall")

READ_AT_ONCE, MOST_AT_ONCE = 4, 16
"""Objects read side by side: more only where it helps, as each takes time of the thread that also answers files."""
FASTER = 1.2
APPLIED_AT_ONCE = 256
"""Objects that are put into the index in one step."""
EMBEDDED_AT_ONCE = 64
BEFORE = 0.5
"""How much what was said before a note counts in its vector, against what it says itself."""
KEPT = 1_024
"""Vectors of texts that may stand before others: 1.5 MB."""
WORDS_FIRST = 60.0
"""Seconds that embedding waits for the text index, when many objects come at once."""
SHARED_WITHIN = 10.0
"""Seconds to wait for the vectors that the bucket has already."""
AGAIN_SECONDS = 5.0
"""After a failure of the store, the disk or the model."""


@dataclass
class _Batch:
    """Objects on their way into the index: their keys, and what was read of those that are there."""

    keys: list[str]
    objects: dict[str, StoredObject] = field(default_factory=dict)


class _Pace:
    """How many objects to read side by side: twice as many as before, as long as that is faster."""

    def __init__(self) -> None:
        self.at_once = self._best = READ_AT_ONCE
        self._rate = 0.0

    def took(self, objects: int, seconds: float) -> None:
        """So many were read in this time."""
        rate = objects / max(seconds, 1e-6)
        if objects < APPLIED_AT_ONCE:
            return  # a last, small portion says little
        if rate > self._rate * FASTER:
            self._rate, self._best = rate, self.at_once
            self.at_once = min(2 * self.at_once, MOST_AT_ONCE)
        else:
            self.at_once = self._best


class Feeder:
    """Feeds one index. `heard` takes changes from any layer; `run` does the work. `sharing`: with vectors of others."""

    def __init__(self, replica: Replica, index: Engine, sharing: Sharing | None = None) -> None:
        self._replica, self._index, self._sharing = replica, index, sharing
        self._spaces: dict[str, trio.Event] = {}
        self._dirty: dict[str, None] = {}
        self._reading: Counter[str] = Counter()
        self._work, self._texts = trio.Event(), trio.Event()
        self._idle = trio.Event()
        # `_meant` is set when embedding has ended: everything is embedded, or (`_stuck`) it failed.
        self._meant, self._stuck = trio.Event(), False
        # The same two for the former model, while that is the one that is asked.
        self._meant_before, self._came = trio.Event(), trio.Event()
        self._limiter = trio.CapacityLimiter(1)
        self._pace = _Pace()
        self.seconds_a_text = 0.0
        """How long one text took the model lately; 0 before the first."""
        self.last_error = ""

    def heard(self, change: Change) -> None:
        """Take note of a change: a subscriber of `changes`."""
        if is_indexed(change.key) and keys.parse(change.key).space in self._spaces:
            self._mark([change.key])

    def knows(self, space: str) -> bool:
        """Whether a space's names have been compared."""
        begun = self._spaces.get(space)
        return begun is not None and begun.is_set()

    def complete(self, space: str) -> bool:
        """Whether the index has everything of a space that was heard of."""
        return self.knows(space) and not self.waiting

    @property
    def waiting(self) -> int:
        """Objects that differ from what the index has."""
        return len(self._dirty) + self._reading.total()

    def lacking(self, space: str) -> list[str] | None:
        """Notes, memories, bank and agents' files of a space that differ from the index; None where that is not known
        yet.
        """
        if not self.knows(space):
            return None
        folders = tuple(f"{space}/{folder}/" for folder in (keys.LIVE, *keys.COLLECTIONS, keys.BANK, keys.AGENTS))
        return [key for key in dict.fromkeys((*self._dirty, *self._reading)) if key.startswith(folders)]

    def _mark(self, changed: list[str]) -> None:
        self._dirty.update(dict.fromkeys(changed))
        if self._dirty:
            self._idle = trio.Event() if self._idle.is_set() else self._idle
            self._work.set()

    # --- spaces ---------------------------------------------------------------------------------------------------

    def wants(self, space: str) -> None:
        """A space will be needed: vectors that others computed for it are read before any are computed here."""
        if self._sharing is not None:
            self._sharing.wants(space)

    async def ensure(self, space: str) -> None:
        """Have a space indexed; returns when its names were compared. Raises what the store fails with."""
        begun = self._spaces.get(space)
        if begun is not None:
            await begun.wait()
            if space in self._spaces:
                return
        ready = self._spaces[space] = trio.Event()
        self.wants(space)
        try:
            self._mark(await self._differences(space))
        except BaseException:
            self._spaces.pop(space, None)
            raise
        finally:
            ready.set()

    async def mend(self, error: Exception) -> bool:
        """After a failure: have damaged records made anew, and every space compared with them again. Whether damage was
        the reason of the failure.
        """
        if not isinstance(self._index, Index) or not is_damage(error):
            return False
        log.warning("the index is damaged and made anew", reason=str(error))
        try:
            await trio.to_thread.run_sync(self._index.make_anew, limiter=self._limiter)
        except Exception as failure:  # a full disk, say: the next failure tries again
            log.error("the index cannot be made anew", exc_info=failure)
        self._spaces.clear()
        if self._sharing is not None:
            self._sharing.forget()
        return True

    async def _differences(self, space: str) -> list[str]:
        """The keys whose versions in the bucket are not those of the index."""
        etags = {info.key: info.etag for info in await self._objects_of(space) if is_indexed(info.key)}
        known = await trio.to_thread.run_sync(self._index.objects, f"{space}/")
        # In the order of time: a note has to be in the index before the note after it, whose vector needs it.
        return sorted(key for key in etags.keys() | known.keys() if etags.get(key) != known.get(key))

    async def _objects_of(self, space: str) -> list[ObjectInfo]:
        live = await self._replica.names.listing(keys.live_prefix(space))
        bank = await self._replica.names.walk(keys.bank_prefix(space), local=True)
        top = await self._replica.names.listing(f"{space}/")
        objects = [*live.objects.values(), *bank, *top.objects.values()]
        for collection in keys.COLLECTIONS:
            if collection in top.folders:
                objects += (await self._replica.names.listing(f"{space}/{collection}/")).objects.values()
        if keys.OBSERVATIONS in top.folders:
            objects += (await self._replica.names.listing(keys.observations_prefix(space))).objects.values()
        if keys.AGENTS in top.folders:
            for agent in keys.ADOPTED:
                objects += await self._replica.names.walk(keys.agent_prefix(space, agent), local=True)
        if keys.SESSIONS in top.folders:
            objects += await self._replica.names.walk(f"{space}/{keys.SESSIONS}/", local=True)
        return objects

    async def settled(self, seconds: float) -> bool:
        """Wait until everything that was heard is found by its words; False when that takes longer."""
        with trio.move_on_after(seconds):
            while self.waiting:
                await self._idle.wait()
            return True
        return not self.waiting

    async def understood(self, seconds: float) -> bool:
        """Wait until everything that is found by its words is found by its meaning as well; False when that takes
        longer, or when embedding failed and nothing was embedded since.
        """
        with trio.move_on_after(seconds):
            while self.waiting or not self._searched().is_set():
                await (self._idle if self.waiting else self._searched()).wait()
            return not self._stuck
        return False

    def _searched(self) -> trio.Event:
        """Whether what is searched has a vector of every text."""
        change = self._index.change
        return self._meant if change is None or change.loaded is None else self._meant_before

    # --- working --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Bring what differs to the index, until cancelled: the next batch is read while the last one is taken in."""
        send, receive = trio.open_memory_channel[_Batch](0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read_on, send)
            async for batch in receive:
                try:
                    await trio.to_thread.run_sync(self._take, batch, limiter=self._limiter)
                except Exception as error:  # no failure of an index may end the mount
                    await self._try_later(batch, error)
                    continue
                self.last_error = ""
                self._done(batch)

    async def _read_on(self, send: trio.MemorySendChannel[_Batch]) -> None:
        while True:
            await self._work.wait()
            batch = _Batch(list(self._dirty)[:APPLIED_AT_ONCE])
            for key in batch.keys:
                del self._dirty[key]  # what changes while it is read is heard again
            if not self._dirty:
                self._work = trio.Event()
            self._reading.update(batch.keys)
            try:
                begun = trio.current_time()
                batch.objects = await self._replica.read_many(batch.keys, at_once=self._pace.at_once)
                self._pace.took(len(batch.keys), trio.current_time() - begun)
            except Exception as error:  # as in `run`
                await self._try_later(batch, error)
                continue
            await send.send(batch)

    def _take(self, batch: _Batch) -> None:
        """In a thread: to parse objects takes as long as to index them."""
        read = [
            (key, stored.info.etag, keys.parse(key).space, records_of(stored)) for key, stored in batch.objects.items()
        ]
        self._index.apply([key for key in batch.keys if key not in batch.objects], read)

    def _done(self, batch: _Batch) -> None:
        self._reading -= Counter(batch.keys)
        self._meant = trio.Event() if self._meant.is_set() else self._meant
        self._meant_before = trio.Event() if self._meant_before.is_set() else self._meant_before
        self._texts.set()
        self._came.set()
        if not self.waiting:
            self._idle.set()

    async def _try_later(self, batch: _Batch, error: Exception) -> None:
        self._dirty.update(dict.fromkeys(batch.keys))
        self._reading -= Counter(batch.keys)
        await self._failed(error)
        await trio.sleep(AGAIN_SECONDS)
        self._work.set()

    async def embed(self, embedder: Embedder, former: Embedder | None = None) -> None:
        """Compute the vectors that are missing, until cancelled. `former`: the model whose vectors are searched until
        there are all of `embedder`'s; it is closed then.
        """
        model = TextReader(embedder)
        while True:
            try:
                await self._shared(False)
                await self._words_first()
                await self._expect(embedder)
                while await self._embed_some(model):
                    pass
                await self._changed_over(former)
            except Exception as error:  # as in `run`
                self._stuck = True
                self._meant.set()
                await self._failed(error)
                await trio.sleep(AGAIN_SECONDS)
                continue
            self._stuck = False
            if not self._texts.is_set():
                self._meant.set()
            await self._texts.wait()

    async def _embed_some(self, model: TextReader) -> bool:
        """Compute the vectors of some texts, unless others did; whether any text had none."""
        self._texts = trio.Event()  # set again by objects that come from here on
        texts = await trio.to_thread.run_sync(self._index.unembedded, EMBEDDED_AT_ONCE)
        if not texts:
            return False
        await self._words_first()
        if await self._shared(len(texts) == EMBEDDED_AT_ONCE):
            return True
        begun = trio.current_time()
        vectors = await model.vectors(texts)
        took = (trio.current_time() - begun) / len(texts)
        self.seconds_a_text = (self.seconds_a_text + took) / 2 if self.seconds_a_text else took
        meanings = [text.meaning for text in texts]
        await trio.to_thread.run_sync(self._index.take_vectors, meanings, vectors, limiter=self._limiter)
        if self._sharing is not None:
            self._sharing.embedded(meanings)
        if self._stuck:
            self._stuck, self._meant = False, trio.Event()
        return True

    async def keep_up(self, former: Embedder) -> None:
        """Have what comes while the next model reads everything found by the former one as well. Much of it at once is
        an import, which the next model reads alone.
        """
        model = TextReader(former)
        while (change := self._index.change) is not None and change.loaded is not None:
            meant, self._came = self._meant_before, trio.Event()
            try:
                texts = await trio.to_thread.run_sync(change.lacking, EMBEDDED_AT_ONCE)
                if 0 < len(texts) < EMBEDDED_AT_ONCE:
                    vectors, meanings = await model.vectors(texts), [text.meaning for text in texts]
                    await trio.to_thread.run_sync(change.take_vectors, meanings, vectors, limiter=self._limiter)
            except Exception as error:  # as in `run`; words find it
                if change.loaded is not None:  # else it is over, and the model is closed
                    await self._failed(error)
            meant.set()
            await self._came.wait()

    async def _changed_over(self, former: Embedder | None) -> None:
        """Search the vectors of the new model, which are all there, and forget those of the former one."""
        change = self._index.change
        if change is not None and not change.over:
            await trio.to_thread.run_sync(change.end, limiter=self._limiter)
            self._meant_before.set()
            self._came.set()
            if former is not None:
                await former.aclose()

    async def _words_first(self) -> None:
        """Wait for the text index, which is faster while nothing is embedded."""
        if self.waiting > APPLIED_AT_ONCE:
            with trio.move_on_after(WORDS_FIRST):
                await self._idle.wait()

    async def _shared(self, many: bool) -> bool:
        """Wait for vectors that others computed; whether any came. `many`: read the bucket once more."""
        if self._sharing is None:
            return False
        before = self._sharing.statistics().read
        if many:
            self._sharing.look_again()
        with trio.move_on_after(SHARED_WITHIN):
            await self._sharing.settled()
        return self._sharing.statistics().read > before

    async def _expect(self, embedder: Embedder) -> None:
        """Have the index know the mean of any texts by this model before the first vectors are compared."""
        if not await trio.to_thread.run_sync(self._index.expects):
            vectors = await embedder.passages(TEXTS)
            meanings = [digest(text) for text in TEXTS]
            await trio.to_thread.run_sync(self._index.take_vectors, meanings, vectors, limiter=self._limiter)
            await trio.to_thread.run_sync(self._index.expect, vectors.mean(axis=0), limiter=self._limiter)

    async def _failed(self, error: Exception) -> None:
        is_mended = await self.mend(error)
        if not is_mended and not isinstance(error, LiveMemError):
            log.error("the index failed", exc_info=error)
        elif not is_mended and str(error) != self.last_error:
            log.info("the index waits", reason=str(error))
        self.last_error = str(error) or type(error).__name__


class TextReader:
    """Has a model read texts, each once: many notes stand before another one. Keeps the vectors of the last texts."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: dict[bytes, NDArray[np.float32]] = {}

    async def vectors(self, texts: Sequence[PieceText]) -> NDArray[np.float32]:
        """One row of length 1 for each text: what it says, and half as much of what was said just before it."""
        import numpy as np

        rows = await self._read({digest(said): said for text in texts for said in (text.own, text.before) if said})
        found = np.array([rows[digest(text.own)] for text in texts])
        for number, text in enumerate(texts):
            if text.before:
                found[number] += BEFORE * rows[digest(text.before)]
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9), np.float32)

    async def _read(self, said: dict[bytes, str]) -> dict[bytes, NDArray[np.float32]]:
        new = [key for key in said if key not in self._kept]
        if new:
            read = await self._embedder.passages([said[key] for key in new])
            self._kept.update(zip(new, read, strict=True))
        rows = {key: self._kept[key] for key in said}
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return rows
