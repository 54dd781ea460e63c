"""What to know before answering: a message in, the right lines out, in milliseconds and with no model that generates.

Owns a turn of a session (spacebot-memory-v2 2.2, companion-memory "live"): what it waits for, for how long, and what it
reads meanwhile. `choosing` finds the candidates, `inject` knows what a session was told, `told` shares that among
mounts. Refuses to look anything up by what is private, and to fail: if something goes wrong, the answer is empty or
smaller, and says why. Trio thread only; what takes time runs in one worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import structlog
import trio

from livememfs.clock import Clock
from livememfs.recall.index.words import content_words
from livememfs.recall.turn.allowed import WebAllowed
from livememfs.recall.turn.athand import AtHand
from livememfs.recall.turn.bycode import ByCode
from livememfs.recall.turn.choosing import Choosing, PrehookSettings, timed
from livememfs.recall.turn.inject import Telling, Told
from livememfs.recall.turn.told import Kept, ToldSessions
from livememfs.records.turn import Turn
from livememfs.text.own import HEAD, RECORDED
from livememfs.text.privacy import redaction as privacy

if TYPE_CHECKING:
    from livememfs.code.workplaces import Workplaces
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.record import Record
    from livememfs.recall.service import Recall

log = structlog.get_logger("livememfs.recall")

PATIENCE = 0.6
"""Seconds that a message waits for an index that is being opened or made; then it gets what can be read at once."""
FILE_PATIENCE, FILE_FRESH = 0.05, 30.0
"""Seconds that the reading of a file waits while something else is told to its session; seconds for which what the
bucket says of the session counts as fresh then.
"""
LATEST = 0.85
"""Seconds that a message waits for the first object that can be read at once."""
SYSTEM = "system"
LOOKED_AT = 8_000
"""Characters used of a longer message, half from its beginning and half from its end: the question about a pasted page
stands before or after it.
"""
CHATTER = frozenset((
    "accord", "allez", "bonjour", "bonsoir", "bye", "continue", "cool", "coucou", "daccord", "great", "hello",
    "hey", "hi", "lol", "merci", "nice", "no", "non", "nope", "ok", "okay", "oui", "parfait", "please", "salut",
    "stp", "super", "svp", "thank", "thanks", "thx", "vas", "yep", "yes",
))  # fmt: skip
"""Words that ask for nothing: a message of these alone gets only what comes with any message."""


@dataclass(frozen=True)
class TurnAnswer:
    """One turn. `told` is None for a message that is not a user's; `spent` are milliseconds by part; `private` are the
    kinds of private texts in the message, which nothing was looked up by.
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
                {"id": candidate.id, "path": path, "section": candidate.section, "text": candidate.text}
                for candidate, path in zip(emitted, self.paths, strict=True)
            ],
            "left_out": self.told.left_out if self.told is not None else {},
            "notes": list(self.notes),
            "ms": {name: round(value, 2) for name, value in self.spent.items()},
        }


class Prehook:
    """The sessions of one bucket. `tells` is called with what each was told. `code`: where sessions work; without it,
    nothing is checked against code.
    """

    def __init__(
        self,
        recall: Recall,
        clock: Clock,
        told: ToldSessions,
        settings: PrehookSettings | None = None,
        *,
        tells: Callable[[Telling], None] = lambda _: None,
        web: WebAllowed | None = None,
        code: Workplaces | None = None,
    ) -> None:
        self._recall, self._clock, self._told = recall, clock, told
        self.settings = settings or PrehookSettings()
        self._tells, self._web, self._code = tells, web, code
        self._counts = {"turns": 0, "told": 0, "skipped": 0, "failed": 0, "files": 0}

    async def turn(self, space: str, turn: Turn) -> TurnAnswer:
        """What to know before answering a message in a space. Raises nothing."""
        if turn.source == SYSTEM:
            self._counts["skipped"] += 1
            return TurnAnswer(0)
        public = await _redacted(turn.message)
        session = privacy.redact(turn.session).text
        turn = replace(turn, message=_looked_at(privacy.without_marks(public.text)), session=session)
        if not turn.message.strip():
            self._counts["skipped"] += 1
            return TurnAnswer(0, private=public.found)
        self._counts["turns"] += 1
        kept = self._told.of(space, session)
        async with kept.lock:
            answer = replace(await self._answer(space, turn, kept), private=public.found)
        if answer.told is not None and answer.told.emitted:
            self._told.changed(kept)
            self._counts["told"] += len(answer.told.emitted)
            self._tells(Telling(space, session, turn.message, answer.told.emitted))
        return answer

    async def forget(self, space: str, session: str) -> None:
        """Have every mount tell a session everything again: its model has lost what it was told (compaction), or begins
        anew (clear). Raises nothing; to do it twice is the same as once.
        """
        await self._told.forget(space, privacy.redact(session).text)

    async def file(self, space: str, session: str, path: str, project: str = "") -> str:
        """What is known about just this file, to tell before it is read or edited: once a session, and only what can be
        had without waiting. Empty when that is nothing. Raises nothing.
        """
        index = self._recall.at_once
        if index is None or not self.settings.files or not path:
            return ""
        told, session = Told((), {}), privacy.redact(session).text
        try:
            kept = self._told.of(space, session, FILE_FRESH)
            with trio.move_on_after(FILE_PATIENCE):
                async with kept.lock:
                    await self._told.caught_up(kept, 0.0)
                    now, gone, web = self._clock.now(), self._recall.has_gone, await self._tells_web(space)
                    code = self._by_code(space, session, project)
                    told = await trio.to_thread.run_sync(
                        _tell_about, index, space, path, project, kept.session, now, gone, web, code
                    )
            if told.emitted:
                self._counts["files"] += 1
                self._told.changed(kept)
                self._tells(Telling(space, session, path, told.emitted))
        except Exception:  # as in `_answer`
            log.exception("nothing can be told about a file")
            self._counts["failed"] += 1
        return told.block if told.emitted else ""

    async def flush(self) -> None:
        """Have the bucket know what sessions were told, before the end."""
        await self._told.flush()

    async def _answer(self, space: str, turn: Turn, kept: Kept) -> TurnAnswer:
        spent: dict[str, float] = {}
        notes: list[str] = []
        session = kept.session
        try:
            with timed(spent, "index"):
                index, lacking = await self._looked(space, notes)
            now, gone, asks = self._clock.now(), self._recall.has_gone, _asks(turn.message)
            web = await self._tells_web(space)
            code = self._by_code(space, turn.session, turn.folder)
            work = Choosing(
                index, space, turn, now, self.settings, spent, asks=asks, gone=gone, lacking=lacking, web=web, code=code
            )
            async with trio.open_nursery() as nursery:  # side by side: to embed the question takes as long
                if asks and index is not None:
                    nursery.start_soon(self._embed, work, notes, spent)
                await self._told.caught_up(kept)
                await trio.to_thread.run_sync(work.begin, session)
            told, paths = await trio.to_thread.run_sync(work.tell, session)
            if kept.reason:  # the answer is given all the same
                notes.append(f"other mounts, and this one after a restart, may tell this again: {kept.reason}")
            return TurnAnswer(session.turn, told, paths, tuple(notes), spent)
        except Exception as error:  # a failure here must not make an agent fail
            log.exception("a message got no memories")
            self._counts["failed"] += 1
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            return TurnAnswer(session.turn, notes=(*notes, f"the memories cannot be looked up: {error}"))

    def _by_code(self, space: str, session: str, folder: str) -> ByCode:
        if self._code is None:
            return ByCode()
        return ByCode(self._code, self._code.folders(space, session, folder))

    async def _tells_web(self, space: str) -> bool:
        return self._web is not None and await self._web.of(space)

    async def _embed(self, work: Choosing, notes: list[str], spent: dict[str, float]) -> None:
        with timed(spent, "embedding"):
            work.question = await self._recall.question(work.turn.message, notes)

    async def _looked(self, space: str, notes: list[str]) -> tuple[Engine | None, list[Record]]:
        """The index (None when it cannot be had in time), and the records read at once that it lacks."""
        if self._recall.lacking(space) == []:
            index, missing = await self._recall.ready((space,), PATIENCE)
            notes += missing
            return index, []
        newest, began = AtHand(), trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._recall.newest, space, newest)
            index, missing = await self._recall.ready((space,), PATIENCE)
            lacking = self._recall.lacking(space) if index is not None else None
            if lacking != []:
                nursery.cancel_scope.deadline = began + (PATIENCE if newest.objects else LATEST)
                await newest.some.wait()
                nursery.cancel_scope.deadline = began + PATIENCE
            else:
                nursery.cancel_scope.cancel()
        if lacking == []:
            notes += missing
            return index, []
        if index is None or not newest.whole:
            notes += missing
            notes.append(f"of what it lacks, the newest {newest.objects:,} objects were looked at, by words alone")
        return index, [record for record in newest.records if lacking is None or record.key in lacking]

    def statistics(self) -> dict[str, int]:
        """Counters since the start: turns, memories told, messages skipped (not a user's, or empty), failures, files
        told about; objects of sessions read and written, and writes that failed.
        """
        return {**self._counts, **self._told.statistics()}


def _tell_about(*given: Any) -> Told:
    from livememfs.recall.turn.aboutfile import tell_about  # with the first file: most commands look at none

    return tell_about(*given)


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
