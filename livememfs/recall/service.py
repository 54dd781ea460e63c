"""Recall as the rest of livememfs uses it: a question in, an answer out, whatever state the index is in.

Owns when the index and the model are loaded (with the first question, since most mounts never ask one), how long an
answer may take, and for how long it stays the same. Refuses to fail when the index fails: then the answer is empty and
says why. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.clock import Clock
from livememfs.concurrency import Background
from livememfs.errors import LiveMemError
from livememfs.recall.meanings import Meanings, OpenFormer, OpenModel
from livememfs.recall.search.found import RankedHit
from livememfs.recall.search.incode import marked
from livememfs.recall.search.query import Query, parse
from livememfs.recall.turn.athand import AtHand, read_newest
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.cache.changes import Change
    from livememfs.cache.replica import Replica
    from livememfs.code.workplaces import Workplaces
    from livememfs.recall.embed.base import EmbedStatistics
    from livememfs.recall.index.engine import Engine, IndexStatistics
    from livememfs.recall.index.feeder import Feeder
    from livememfs.recall.index.sharing import Sharing, SharingStatistics
    from livememfs.recall.index.vectors import Floats
    from livememfs.recall.search.ranking import Ranking

log = structlog.get_logger("livememfs.recall")

STABLE_SECONDS = 3.0
"""For so long the same question gets the same answer: a listing and its files must fit each other."""
QUIET, QUIET_MOST = 0.25, 5.0
"""Work that can wait begins when nobody has asked for so many seconds; it waits so many at most."""
KEPT = 256
REMOVED = 4_096
"""Removed objects that are remembered until the index has taken note of everything."""
DRAIN_SECONDS = 5.0
FIGURES_SECONDS = 5.0
"""How often an index that is not on this machine is asked for its figures."""


@dataclass(frozen=True)
class Patience:
    """For how many seconds a question waits before it is answered with what is there, and with a remark.

    `first`: for a space that nobody has asked about, and for the model; `fresh`: for what was just written; `unasked`:
    also for what was just written, when the question is a message to an agent and not a search.
    """

    first: float = 2.0
    fresh: float = 0.25
    unasked: float = 0.06


@dataclass(frozen=True)
class SearchAnswer:
    """What was asked, what was found, and remarks on what is still missing; `failed`: nobody could look at all."""

    query: Query
    found: RankedHit
    notes: tuple[str, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class RecallStatistics:
    """Questions since the start, those answered from memory, objects not yet indexed; figures of what is open.

    :seconds_left: until every text that is indexed has a vector, at the pace of the last ones; None before the first
    """

    questions: int
    repeated: int
    waiting: int
    seconds_left: float | None
    last_error: str
    index: IndexStatistics | None
    model: EmbedStatistics | None
    sharing: SharingStatistics | None


@dataclass(eq=False)
class _Ensuring:
    """A space whose names are being compared with the index."""

    done: trio.Event = field(default_factory=trio.Event)
    reason: str = ""


class Recall:
    """Searching over one bucket. `open_engine` blocks, and opens an index of the vectors that `open_embedder` makes;
    `open_former` opens the model that made others, by their name.

    `share`: read the vectors that are in the bucket, and put there what is computed here, where the index is this
    machine's own.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        open_engine: Callable[[], Engine],
        open_embedder: OpenModel,
        *,
        open_former: OpenFormer | None = None,
        share: bool = False,
        recent_days: int = 0,
        patience: Patience = Patience(),
        background: Background | None = None,
        code: Workplaces | None = None,
    ) -> None:
        self._background, self._code = background or Background(), code
        self._replica, self._clock, self._open_engine = replica, clock, open_engine
        self._recent_days, self._patience = recent_days, patience
        self._share = share
        self._meanings = Meanings(open_embedder, open_former)
        self._index: Engine | None = None
        self._feeder: Feeder | None = None
        self._sharing: Sharing | None = None
        self._elsewhere = False
        self._last_figures: IndexStatistics | None = None
        self._nursery: trio.Nursery | None = None
        self._opening = trio.Lock()
        self._answers: dict[tuple[str, tuple[str, ...]], tuple[float, SearchAnswer]] = {}
        self._ensuring: dict[str, _Ensuring] = {}
        self._opened: list[Callable[[str], Awaitable[None]]] = []
        self._counts = {"questions": 0, "repeated": 0}
        self._asked = float("-inf")
        self._removed: dict[str, None] = {}
        self._last_error = ""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be there for questions until cancelled; closes what was opened."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = self._feeder = None
            with trio.CancelScope(shield=True):
                await self._meanings.aclose()
                if self._index is not None:
                    await trio.to_thread.run_sync(self._index.close)
                    self._index = None

    def heard(self, change: Change) -> None:
        """A subscriber of `changes`."""
        self._removed.pop(change.key, None)
        if change.kind == "delete":
            self._removed[change.key] = None
            while len(self._removed) > REMOVED:
                self._removed.pop(next(iter(self._removed)))
        if self._feeder is not None:
            self._feeder.heard(change)

    def has_gone(self, key: str) -> bool:
        """Whether an object was removed, which the index may not know yet. From any thread."""
        return key in self._removed

    def lacking(self, space: str) -> list[str] | None:
        """The objects of a space that may be told unasked and that the index lacks or has in another version. None
        while that is not known.
        """
        return self._feeder.lacking(space) if self._feeder is not None else None

    async def newest(self, space: str, into: AtHand) -> None:
        """Read what the index lacks of a space into `into`, the newest first. Raises nothing of the store's."""
        await read_newest(self._replica, space, self.lacking(space), self._clock.now(), into)

    @property
    def at_once(self) -> Engine | None:
        """The index if it is open; None at once if it is not."""
        return self._index

    def used(self, uses: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        """Take note of how often memories were used, by space and id: counts, and seconds of the last time."""
        if self._index is None or self._nursery is None:
            return  # the counts are handed over again when the index is opened

        async def hand_over(index: Engine) -> None:
            from livememfs.recall.index.merits import Use

            counts = {memory: Use(*use) for memory, use in uses.items()}
            with suppress(Exception):  # without them, memories weigh what their age says
                await trio.to_thread.run_sync(index.used, counts)

        self._nursery.start_soon(hand_over, self._index)

    def on_opened(self, tell: Callable[[str], Awaitable[None]]) -> None:
        """Have `tell(space)` called when a space's names have been compared with the index for the first time."""
        self._opened.append(tell)

    # --- asking ---------------------------------------------------------------------------------------------------

    async def ask(
        self,
        question: str | Query,
        spaces: Sequence[str],
        *,
        limit: int | None = None,
        ranking: Ranking | None = None,
        anew: bool = False,
    ) -> SearchAnswer:
        """The answer to a question about some spaces. Raises nothing of the index's, the model's or the store's.

        `limit` counts where the question does not say one; `anew`: also where it was answered a moment ago.
        """
        query = parse(question, now=self._clock.now()) if isinstance(question, str) else question
        if query.limit is None and limit is not None:
            query = replace(query, limit=limit)
        query = _for_recent_days(query, self._recent_days, self._clock.now())
        key = (query.canonical(), tuple(spaces))
        known = self._answers.get(key)
        self._counts["questions"] += 1
        self._asked = trio.current_time()
        if known is not None and not anew and trio.current_time() - known[0] < STABLE_SECONDS:
            self._counts["repeated"] += 1
            return await marked(self._code, known[1])
        answer = await self._answer(query, key[1], ranking)
        self._answers.pop(key, None)
        self._answers[key] = trio.current_time(), answer
        while len(self._answers) > KEPT:
            self._answers.pop(next(iter(self._answers)))
        return await marked(self._code, answer)

    async def _answer(self, query: Query, spaces: tuple[str, ...], ranking: Ranking | None) -> SearchAnswer:
        notes: list[str] = []
        try:
            index = await self._ready(spaces, notes, self._patience.first, self._patience.fresh)
            from livememfs.recall.search.ranking import search  # only once the index is open: it may not be installed

            vector = None if query.is_filter_only else await self._meanings.question(query.text, notes)
            # Copied before the search: another question may clear it meanwhile, when the index has caught up, but this
            # search may have read the index before that.
            gone = frozenset(self._removed)
            ranked = await trio.to_thread.run_sync(partial(search, index, query, vector, spaces, ranking=ranking))
            self._last_error = ""
            now = self._clock.now()
            hits = [hit for hit in ranked.hits if hit.record.key not in gone and not self.has_gone(hit.record.key)]
            lasting = tuple(hit for hit in hits if not keys.has_ended(hit.record.key, now))
            return SearchAnswer(query, replace(ranked, hits=lasting), tuple(notes))
        except Exception as error:  # a failure of the index costs this answer and nothing else
            self._last_error = await self._failed("a search failed", error)
            remarks = (*notes, f"the search failed: {self._last_error}")
            return SearchAnswer(query, RankedHit((), "strict"), remarks, failed=True)

    async def _ready(self, spaces: Sequence[str], notes: list[str], patience: float, fresh: float | None) -> Engine:
        """The index, with these spaces in it as far as `patience` allows. `fresh`: seconds to wait for what was just
        written; None: do not wait for it in a space whose names were compared before.
        """
        async with self._opening:
            if self._index is None or self._feeder is None:
                await self._open()
        assert self._index is not None
        assert self._feeder is not None
        feeder, first = self._feeder, [space for space in spaces if not self._feeder.knows(space)]
        if first or fresh is not None:
            with trio.move_on_after(patience) as waiting:
                for space in first:
                    reason = await self._ensured(feeder, space)
                    if reason:
                        notes.append(f"{space} may have more than was found: {reason}")
            if waiting.cancelled_caught or not await feeder.settled(patience if first or fresh is None else fresh):
                left = f"{feeder.waiting:,} objects are" if feeder.waiting else "the space is"
                notes.append(f"{left} still being indexed")
            elif first:
                with trio.move_on_after(patience):
                    await self._meanings.loaded.wait()
                    if self._meanings.asked is not None:
                        await feeder.understood(patience)
        if not feeder.waiting:
            self._removed.clear()  # the index knows of them; an object that comes back under its old name must be found
        return self._index

    async def _ensured(self, feeder: Feeder, space: str) -> str:
        """Have a space indexed, in the background too when nobody waits any more, since a large one takes long to list.
        The reason why it could not be; empty when its names were compared.
        """
        work = self._ensuring.get(space)
        if work is None:
            work = self._ensuring[space] = _Ensuring()

            async def ensure(work: _Ensuring) -> None:
                try:
                    await feeder.ensure(space)
                    for tell in self._opened:
                        await tell(space)
                except Exception as error:  # as in `_answer`
                    work.reason = await self._failed("a space cannot be compared with the index", error)
                finally:
                    del self._ensuring[space]
                    work.done.set()

            assert self._nursery is not None
            feeder.wants(space)
            self._nursery.start_soon(ensure, work)
        await work.done.wait()
        return work.reason

    async def _failed(self, event: str, error: Exception) -> str:
        """Have a damaged index made anew, and log an error that is a fault of this program; the reason for people."""
        if self._feeder is not None and await self._feeder.mend(error):
            return "the index was damaged and is made anew"
        if not isinstance(error, LiveMemError):
            log.error(event, exc_info=error)
        return str(error) or type(error).__name__

    async def warm(self) -> None:
        """Open index and model before anybody asks, for a bucket that was searched before."""
        with suppress(Exception):  # the first question is answered with the reason
            async with self._opening:
                if self._index is None:
                    await self._open()

    async def ready(self, spaces: Sequence[str], patience: float) -> tuple[Engine | None, list[str]]:
        """The index with these spaces in it, and remarks on what is missing; None when it cannot be had in that time.

        Opening it goes on when nobody waits any more. Raises nothing of the index's or the store's.
        """
        notes: list[str] = []
        done = trio.Event()
        opened: list[Engine] = []

        async def work() -> None:
            try:
                again = any(space in self._ensuring for space in spaces)  # an earlier message waited for them
                first = 0.0 if again else patience / 2
                # Each step of an agent makes observations, which are not told unasked: they are not waited for.
                is_new = any(self.lacking(space) != [] for space in spaces)
                opened.append(await self._ready(spaces, notes, first, self._patience.unasked if is_new else None))
            except Exception as error:  # as in `_answer`
                reason = await self._failed("the index cannot be opened", error)
                notes.append(f"the index cannot be used: {reason}")
            finally:
                done.set()

        if self._nursery is None:
            return None, ["the search has not been started"]
        self._nursery.start_soon(work)
        with trio.move_on_after(patience):
            await done.wait()
        if not done.is_set():
            return None, ["the index is being made"]
        return (opened[0] if opened else None), notes

    async def passage(self, text: str, notes: list[str]) -> Floats | None:
        """The vector of a text as it is kept; None, and a remark, where there is no model."""
        with trio.move_on_after(self._patience.first):
            await self._meanings.loaded.wait()
        return await self._meanings.passage(text, notes)

    async def question(self, text: str, notes: list[str]) -> Floats | None:
        """The vector of a question; None, and a remark, where there is no model."""
        self._asked = trio.current_time()
        return await self._meanings.question(text, notes)

    async def quiet(self) -> None:
        """Wait until nobody has asked for a moment, though not for ever: for work that nobody waits for."""
        with trio.move_on_after(QUIET_MOST):
            while self._asked + QUIET > trio.current_time():  # noqa: ASYNC110 - it is time that has to pass
                await trio.sleep_until(self._asked + QUIET)

    async def _open(self) -> None:
        if self._nursery is None:
            raise LiveMemError("the search has not been started")
        if self._index is None:
            self._index = await trio.to_thread.run_sync(self._open_engine)  # says so where no index is installed
        from livememfs.recall.index.feeder import Feeder
        from livememfs.recall.index.local import Index
        from livememfs.recall.index.sharing import Sharing

        self._elsewhere = not isinstance(self._index, Index)
        if self._elsewhere:
            self._nursery.start_soon(self._ask_for_figures, self._index)
        if self._share and isinstance(self._index, Index):

            def is_complete(space: str) -> bool:
                return self._feeder is not None and self._feeder.complete(space)

            self._sharing = Sharing(self._replica, self._clock, self._index, is_complete)
            self._nursery.start_soon(self._background.keep, "vectors", self._sharing.run)
        self._feeder = Feeder(self._replica, self._index, self._sharing)
        self._nursery.start_soon(self._background.keep, "index", self._feeder.run)
        self._nursery.start_soon(self._background.keep, "meanings", partial(self._load, self._index, self._feeder))

    async def _load(self, index: Engine, feeder: Feeder) -> None:
        """Load the model. Until then the one before it answers; where there is none, words alone."""
        async with trio.open_nursery() as nursery:
            await self._meanings.load_former(index)
            if self._meanings.former is not None:
                nursery.start_soon(feeder.keep_up, self._meanings.former)
            self._last_error = await self._meanings.load() or self._last_error
            if self._meanings.model is not None:
                await feeder.embed(self._meanings.model, self._meanings.former)

    # --- looking after it -----------------------------------------------------------------------------------------

    async def prepare(self, spaces: Sequence[str], seconds: float) -> None:
        """Wait until some spaces are indexed, by words and by meaning, for callers who would rather wait than miss
        something. The next question tells what went wrong; a model that fails is not waited for.
        """
        with trio.move_on_after(seconds), suppress(Exception):
            await self._ready(spaces, [], seconds, seconds)
            await self._meanings.loaded.wait()
            while self._feeder is not None and not await self._feeder.settled(seconds):
                pass
            if self._meanings.asked is not None:
                await self.understood(seconds)

    async def drain(self) -> None:
        """Put what was computed here where others find it, before the end; not for long."""
        if self._sharing is not None:
            with trio.move_on_after(DRAIN_SECONDS):
                await self._sharing.flush()

    @property
    def embedded(self) -> int:
        """Texts embedded since the start."""
        return self._meanings.model.statistics().texts if self._meanings.model is not None else 0

    async def understood(self, seconds: float) -> bool:
        """Wait until everything heard of is found by meaning, or by words where there is no model; False when it takes
        longer, or when the model has failed and nothing was embedded since.
        """
        if self._feeder is None:
            return False
        with trio.move_on_after(seconds):
            await self._meanings.loaded.wait()
            if self._meanings.asked is None:
                return await self._feeder.settled(seconds)
            return await self._feeder.understood(seconds)
        return False

    def _figures(self) -> IndexStatistics | None:
        """The figures of an index on this machine as they are; of one elsewhere, as they were a moment ago."""
        if self._index is None or self._elsewhere:
            return self._last_figures
        with suppress(Exception):  # the rest of a status is shown all the same
            self._last_figures = self._index.statistics()
        return self._last_figures

    async def _ask_for_figures(self, index: Engine) -> None:
        """In the background: a database may be slow, and the figures are read on the trio thread."""
        while True:
            with suppress(Exception):
                self._last_figures = await trio.to_thread.run_sync(index.statistics)
            await trio.sleep(FIGURES_SECONDS)

    def statistics(self) -> RecallStatistics:
        """Counters, cheap but for those of an open index."""
        feeder, figures = self._feeder, self._figures()
        pace = feeder.seconds_a_text if feeder is not None else 0.0
        return RecallStatistics(
            **self._counts,
            waiting=feeder.waiting if feeder is not None else 0,
            seconds_left=round(pace * (figures.pieces - figures.embedded), 1) if pace and figures is not None else None,
            last_error=self._last_error or (feeder.last_error if feeder is not None else ""),
            index=figures,
            model=self._meanings.model.statistics() if self._meanings.model is not None else None,
            sharing=self._sharing.statistics() if self._sharing is not None else None,
        )


def _for_recent_days(query: Query, days: int, now: datetime) -> Query:
    """The query for the last days only, with a remark, where that is set and the query has no dates of its own."""
    if not days or query.after is not None or query.before is not None or query.is_wordless:
        return query
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    remark = f"only the last {days} days were searched, as LIVEMEMFS_SEARCH_RECENT_DAYS says"
    return replace(query, after=today - timedelta(days=days), doubts=(*query.doubts, remark))
