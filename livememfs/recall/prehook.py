"""What to know before answering: a message in, the right lines out, in milliseconds and with no model that generates.

Owns a turn of a session (spacebot-memory-v2 2.2, companion-memory "live"): which candidates there are by two paths, the
memories that come whatever is asked and what fits the message; what a session was told is `inject`'s, over a restart
`told`'s. Refuses to look anything up by what is private, and to fail: whatever goes wrong, the answer is empty or
smaller, and says why. Trio thread only; what
takes time runs in one worker thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import structlog
import trio

from livememfs.clock import Clock
from livememfs.recall.inject import Candidate, Limits, Section, Session, Told, tell
from livememfs.recall.told import ToldFile
from livememfs.recall.words import content_words
from livememfs.records import keys, privacy
from livememfs.records.own import HEAD, RECORDED
from livememfs.records.turn import Turn

if TYPE_CHECKING:
    from livememfs.recall.engine import Engine
    from livememfs.recall.record import Record
    from livememfs.recall.sameness import Sameness
    from livememfs.recall.service import Recall
    from livememfs.recall.vectors import Floats

    Numbered = list[tuple[int, Record]]

log = structlog.get_logger("livememfs.recall")

PATIENCE = 0.8
"""Seconds that a message waits for an index that is being opened."""
SYSTEM = "system"
LOOKED_AT = 8_000
"""Characters of a message that is longer: half from where it begins, half from where it ends. Around a page that was
pasted stands what is asked of it.
"""
OPEN_SESSIONS = 256
WORTH = 0.35
"""The share of the best score that something needs to be told: nobody chose to search, and what does not belong there
costs tokens and attention.
"""
CHATTER = frozenset((
    "accord", "allez", "bonjour", "bonsoir", "bye", "continue", "cool", "coucou", "daccord", "great", "hello",
    "hey", "hi", "lol", "merci", "nice", "no", "non", "nope", "ok", "okay", "oui", "parfait", "please", "salut",
    "stp", "super", "svp", "thank", "thanks", "thx", "vas", "yep", "yes",
))  # fmt: skip
"""Words that ask for nothing: a message of these alone gets what comes whatever is asked."""


@dataclass(frozen=True)
class PrehookSettings:
    """The numbers of the specification, each a setting.

    :recent_hours: what was created within so many is new
    :important:    what a memory weighs now that comes whatever is asked
    :channel_only: what is new must have been said in the message's channel
    :pinned:       at most so many of those who somebody is, of what matters, of what is new
    :relevant:     memories that fit the message
    :live:         notes that fit it
    """

    recent_hours: float = 6.0
    important: float = 0.8
    channel_only: bool = False
    pinned: int = 10
    relevant: int = 20
    live: int = 10
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Answer:
    """One turn. `told` is None for a message that is none of a user's; `spent` are milliseconds by part; `private` are
    the kinds of what the message had and nothing was looked up by.
    """

    turn: int
    told: Told | None = None
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    spent: dict[str, float] = field(default_factory=dict)
    private: tuple[str, ...] = ()

    @property
    def block(self) -> str:
        """What to put before the model; empty when there is nothing to say."""
        return self.told.block if self.told is not None else ""

    def to_json(self) -> dict[str, Any]:
        """The answer for programs."""
        emitted = self.told.emitted if self.told is not None else ()
        return {
            RECORDED: HEAD,
            "context": self.block,
            "turn": self.turn,
            "memories": [
                {"id": one.id, "path": path, "section": one.section, "text": one.text}
                for one, path in zip(emitted, self.paths, strict=True)
            ],
            "left_out": self.told.left_out if self.told is not None else {},
            "notes": list(self.notes),
            "ms": {name: round(value, 2) for name, value in self.spent.items()},
        }


class Prehook:
    """The sessions of one bucket. `used(space, ids)` hears what was told, which is a use of each."""

    def __init__(
        self,
        recall: Recall,
        clock: Clock,
        told: ToldFile,
        settings: PrehookSettings | None = None,
        *,
        used: Callable[[str, Sequence[str]], None] = lambda *_: None,
    ) -> None:
        self._recall, self._clock, self._told = recall, clock, told
        self.settings = settings or PrehookSettings()
        self._used = used
        self._sessions: dict[tuple[str, str], tuple[Session, trio.Lock]] = {}
        self._counts = {"turns": 0, "told": 0, "skipped": 0, "failed": 0, "unkept": 0}

    async def turn(self, space: str, turn: Turn) -> Answer:
        """What to know before answering a message in a space. Raises nothing."""
        if turn.source == SYSTEM:
            self._counts["skipped"] += 1
            return Answer(0)
        public = await _redacted(turn.message)
        session = privacy.redact(turn.session).text
        turn = replace(turn, message=_looked_at(privacy.without_marks(public.text)), session=session)
        if not turn.message.strip():
            self._counts["skipped"] += 1
            return Answer(0, private=public.found)
        self._counts["turns"] += 1
        known, lock = self._session(space, session)
        async with lock:
            answer = replace(await self._answer(space, turn, known), private=public.found)
        if answer.told is not None:
            self._counts["told"] += len(answer.told.emitted)
            self._used(space, [one.id for one in answer.told.emitted if one.section != "live"])
        return answer

    async def forget(self, space: str, session: str) -> None:
        """What a session was told is no longer before its model, so it may be told again."""
        self._sessions.pop((space, session), None)
        state, now = Session.from_json(None).to_json(), int(self._clock.now().timestamp())
        await trio.to_thread.run_sync(self._told.keep, space, session, state, now)

    def _session(self, space: str, name: str) -> tuple[Session, trio.Lock]:
        found = self._sessions.pop((space, name), None)
        if found is None:
            found = Session.from_json(self._told.load(space, name)), trio.Lock()
        self._sessions[space, name] = found  # at the end: those used last stay
        while len(self._sessions) > OPEN_SESSIONS:
            old = next(iter(self._sessions))
            if self._sessions[old][1].locked():
                break
            del self._sessions[old]
        return found

    async def _answer(self, space: str, turn: Turn, session: Session) -> Answer:
        spent: dict[str, float] = {}
        notes: list[str] = []
        try:
            with _timed(spent, "index"):
                index, missing = await self._recall.ready((space,), PATIENCE)
            notes += missing
            if index is None:
                return Answer(session.turn, notes=tuple(notes))
            with _timed(spent, "embedding"):
                asks = _asks(turn.message)
                question = await self._recall.question(turn.message, notes) if asks else None
            now, gone = self._clock.now(), self._recall.has_gone
            work = _Turn(index, space, turn, question, now, self.settings, spent, asks=asks, gone=gone)
            told, paths, unkept = await trio.to_thread.run_sync(self._tell, work, space, turn.session, session)
            if unkept:
                self._unkept(unkept, notes)
            return Answer(session.turn, told, paths, tuple(notes), spent)
        except Exception as error:  # an agent must not wait or fail because its memory does
            log.exception("a message got no memories")
            self._counts["failed"] += 1
            return Answer(session.turn, notes=(*notes, f"the memories cannot be looked up: {error}"))

    def _tell(self, work: _Turn, space: str, name: str, session: Session) -> tuple[Told, tuple[str, ...], str]:
        """In a thread, as a disk may take its time; with why the session could not be kept."""
        told, paths = work.tell(session)
        return told, paths, self._told.keep(space, name, session.to_json(), int(self._clock.now().timestamp()))

    def _unkept(self, reason: str, notes: list[str]) -> None:
        """An answer is worth more than the memory of it: say so with each, and once in the log."""
        notes.append(f"after a restart of the mount this may be told again: {reason}")
        self._counts["unkept"] += 1
        if self._counts["unkept"] == 1:
            log.warning("what sessions were told is not kept over a restart", reason=reason)

    def statistics(self) -> dict[str, int]:
        """Turns, memories told, messages that were none of a user's or empty, failures, and turns that are not kept
        over a restart, since the start.
        """
        return {**self._counts, "sessions": len(self._sessions)}


class _Turn:
    """One turn at work, in its thread."""

    def __init__(
        self, index: Engine, space: str, turn: Turn, question: Floats | None, now: Any, settings: PrehookSettings,
        spent: dict[str, float], *, asks: bool, gone: Callable[[str], bool],
    ) -> None:  # fmt: skip
        self._index, self._space, self._turn, self._question = index, space, turn, question
        self._now, self._settings, self._spent, self._asks, self._gone = now, settings, spent, asks, gone

    def tell(self, session: Session) -> tuple[Told, tuple[str, ...]]:
        """Choose, take note in the session, and write the block; with the paths of what is told."""
        with _timed(self._spent, "indexed"):
            pinned = self._pinned()
        with _timed(self._spent, "search"):
            fitting, live = self._fitting()
        with _timed(self._spent, "dedup"):
            told = tell(session, self._in_order(pinned, fitting, live), self._same(), self._settings.limits)
        with _timed(self._spent, "formatting"):
            _ = told.block  # and it is kept
        paths = {self._id(record): record.key for _, record in (*pinned, *fitting, *live)}
        return told, tuple(paths[one.id] for one in told.emitted)

    def _in_order(self, pinned: Numbered, fitting: Numbered, live: Numbered) -> list[Candidate]:
        """Who somebody is, and then of everything in turns."""
        vectors = self._index.vectors_of([number for number, _ in (*pinned, *fitting, *live)])

        def candidates(found: Iterable[tuple[int, Record]], section: Section) -> list[Candidate]:
            return [self._candidate(record, section, vectors.get(number)) for number, record in found]

        identity = [one for one in pinned if one[1].type == "identity"]
        others = [one for one in pinned if one[1].type != "identity"]
        rest = candidates(fitting, "relevant"), candidates(others, "pinned"), candidates(live, "live")
        return [*candidates(identity, "pinned"), *_in_turns(*rest)]

    def _same(self) -> Sameness:
        from livememfs.recall.sameness import Sameness

        return Sameness(self._index.prior, self._settings.limits.alike)

    def _pinned(self) -> Numbered:
        from livememfs.recall.merits import Wanted

        settings, now = self._settings, int(self._now.timestamp())
        wanted = Wanted(
            now=now,
            since=now - int(settings.recent_hours * 3_600),
            least=settings.important,
            channel=self._turn.channel if settings.channel_only else "",
            most=settings.pinned,
        )
        found = self._index.foremost((self._space,), wanted)
        records = self._index.records(list(dict.fromkeys((*found.identity, *found.important, *found.recent))))
        order = dict.fromkeys((*found.identity, *_in_turns(found.important, found.recent)))
        return [(number, records[number]) for number in order if number in records and self._is_there(records[number])]

    def _fitting(self) -> tuple[Numbered, Numbered]:
        from livememfs.recall.search import fitting_best

        if not self._asks:
            return [], []
        lists = [
            fitting_best(self._index, self._turn.message, self._question, (self._space,), kinds, most)
            for kinds, most in ((keys.COLLECTIONS, self._settings.relevant), ((keys.LIVE,), self._settings.live))
        ]
        least = WORTH * max((score for hits in lists for _, _, score in hits), default=0.0)
        memories, live = (
            [(number, one) for number, one, score in hits if score >= least and self._is_there(one)] for hits in lists
        )
        return memories, live

    def _is_there(self, record: Record) -> bool:
        return not keys.has_ended(record.key, self._now) and not self._gone(record.key)

    def _candidate(self, record: Record, section: Section, vector: Floats | None) -> Candidate:
        made = time.strftime("%Y-%m-%d", time.gmtime(record.created))
        about = f"{record.agent}, {made}" if section == "live" else record.type
        return Candidate(self._id(record), section, record.text, about, vector)

    def _id(self, record: Record) -> str:
        """The same for all versions of a memory, however long each lasts."""
        return record.key.removesuffix(".md").partition(keys.UNTIL)[0]


def _in_turns(*lists: Iterable[Any]) -> Iterator[Any]:
    """One of each, then the next of each: no list takes all the room."""
    for row in zip_longest(*lists):
        yield from (one for one in row if one is not None)


def _asks(message: str) -> bool:
    """Whether a message is about anything: "who are you?" is, by its meaning alone, and "hello!" is not."""
    words = set(content_words(message))
    return not CHATTER.issuperset(words) if words else "?" in message and any(map(str.isalpha, message))


async def _redacted(message: str) -> privacy.Redacted:
    if len(message) > privacy.LARGE:
        return await trio.to_thread.run_sync(privacy.redact, message)
    return privacy.redact(message)


def _looked_at(message: str) -> str:
    half = LOOKED_AT // 2
    return message if len(message) <= LOOKED_AT else f"{message[:half]} {message[-half:]}"


@contextmanager
def _timed(into: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        into[name] = (time.perf_counter() - start) * 1e3
