"""What may be told to a message, or about a file, and in which order: candidates out of the index.

Owns the paths to them (what comes whatever is asked, what fits the message, what names the file), from the index and
from what it still lacks, and how each kind of record is shown. Refuses to decide what was told already, which is
`inject`'s. Blocking: for a worker thread, one turn each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from livememfs.recall.index.record import Record, digest
from livememfs.recall.turn.athand import excerpt, fitting
from livememfs.recall.turn.bycode import ByCode
from livememfs.recall.turn.inject import SHOWN_CHARACTERS, Candidate, Limits, SameWords, Section, ToldSession, tell
from livememfs.recall.turn.pairs import Pairs
from livememfs.records import keys
from livememfs.records.trust import Trust

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.vectors import Floats
    from livememfs.recall.search.ranking import Words
    from livememfs.recall.turn.inject import Same, Told
    from livememfs.records.turn import Turn

    Numbered = list[tuple[int, Record]]

WORTH = 0.35
"""Only what has this share of the best score is told: nobody chose to search, and what does not fit costs tokens and
attention.
"""
IDENTITY = "identity"
ONE_FACT = 300
"""Characters up to which a section of the bank is compared by its meaning with what others say."""
_SECTIONS: tuple[tuple[Section, tuple[str, ...]], ...] = (
    ("relevant", (*keys.COLLECTIONS, keys.AGENTS)), ("bank", (keys.BANK,)), ("live", (keys.LIVE,)),
)  # fmt: skip
"""Where what fits a message is shown, and the kinds of it."""


@dataclass(frozen=True)
class PrehookSettings:
    """The numbers of the specification.

    :recent_hours: what was created within so many is new
    :important:    what a memory weighs now that comes whatever is asked
    :channel_only: what is new must have been said in the message's channel
    :pinned:       memories of who somebody is, at most; also of those that matter, and of those that are new
    :relevant:     memories that fit the message
    :live:         notes that fit it
    :bank:         sections of bank files that fit it
    :files:        whether something is told about a file before it is read or edited
    """

    recent_hours: float = 6.0
    important: float = 0.8
    channel_only: bool = False
    pinned: int = 10
    relevant: int = 20
    live: int = 10
    limits: Limits = field(default_factory=Limits)
    bank: int = 6
    files: bool = True


class Choosing:
    """The choice for one turn, in a worker thread: `begin`, and then `tell`. Without an index only `lacking` is looked
    at: the records that the index lacks. `question` is the vector of the message, set between the two; None without.
    `web`: what is from the web may be told. `code`: what may be told by the code that it speaks of.
    """

    def __init__(
        self, index: Engine | None, space: str, turn: Turn, now: datetime,
        settings: PrehookSettings, spent: dict[str, float], *, asks: bool, gone: Callable[[str], bool],
        lacking: Sequence[Record] = (), web: bool = False, code: ByCode | None = None,
    ) -> None:  # fmt: skip
        self._index, self._space, self.turn = index, space, turn
        self.question: Floats | None = None
        self._pinned: Numbered = []
        self._most: dict[Section, int] = {section: getattr(settings, section) for section, _ in _SECTIONS}
        self._words: list[Words] = []
        self._now, self._settings, self._spent, self._asks, self._gone = now, settings, spent, asks, gone
        self._web, self._code = web, code or ByCode()
        self._lacking = [
            record for record in lacking if not keys.has_ended(record.key, now) and may_be_told(record, web)
        ]
        self._newer = {record.key for record in lacking}

    def begin(self, session: ToldSession) -> None:
        """Look up what does not need the vector of the message: what others told the session, what comes with any
        message, and what has words of this one.
        """
        with timed(self._spent, "indexed"):
            remember(self._index, session, self._settings.limits.buffer)
            self._pinned = self._always()
            if self._index is not None and self._asks:
                from livememfs.recall.search.ranking import fitting_words

                self._words = [
                    fitting_words(self._index, self.turn.message, (self._space,), kinds)
                    for kinds in self._kinds(self._most)
                ]

    def tell(self, session: ToldSession) -> tuple[Told, tuple[str, ...]]:
        """Choose, record it in the session, and write the block; also the paths of what is told."""
        with timed(self._spent, "search"):
            fits = self._fitting()
            numbers = [number for number, _ in chain(self._pinned, *fits.values())]
            pairs = Pairs(self._index, self._space, numbers, self._is_there, self._code)
        with timed(self._spent, "dedup"):
            limits = self._settings.limits
            order = self._in_order(fits, pairs)
            candidates = self._candidates(order, session.in_view(limits.window), pairs)
            told = tell(session, candidates, same(self._index, limits.alike), limits)
        with timed(self._spent, "formatting"):
            _ = told.block  # computed here, so that its time counts, and kept
        return told, tuple(pairs.instead(order[candidate.id][1])[0].key for candidate in told.emitted)

    def _in_order(self, fits: dict[Section, Numbered], pairs: Pairs) -> dict[str, tuple[int, Record, Section]]:
        """What may be told, by its id, once each: first who somebody is, then one of each kind in turns."""
        by_section: dict[Section, Numbered] = {
            "pinned": [pinned for pinned in self._pinned if pinned[1].type != IDENTITY], **fits
        }  # fmt: skip
        listed = {
            section: [(number, record, section) for number, record in numbered]
            for section, numbered in by_section.items()
        }
        identity = [(*pinned, "pinned") for pinned in self._pinned if pinned[1].type == IDENTITY]
        turns = in_turns(*(listed[section] for section in ("relevant", "pinned", "bank", "live")))
        order: dict[str, tuple[int, Record, Section]] = {}
        for each in chain(identity, turns):
            order.setdefault(id_of(pairs.instead(each[1])[0]), each)
        unmerged = {id_of(record) for _, record in chain(self._pinned, *fits.values()) if self._code.of(record).branch}
        return dict(sorted(order.items(), key=lambda each: each[0] in unmerged))

    def _candidates(
        self, order: dict[str, tuple[int, Record, Section]], in_view: set[str], pairs: Pairs
    ) -> list[Candidate]:
        """The candidates; of what the session has in view, which is not told again, the id alone."""
        numbers = [number for name, (number, *_) in order.items() if number and name not in in_view]
        vectors = self._index.vectors_of(numbers) if self._index is not None else {}
        return [
            Candidate(name, section, "")
            if name in in_view
            else self._candidate(record, section, vectors.get(number), pairs)
            for name, (number, record, section) in order.items()
        ]

    def _candidate(self, record: Record, section: Section, vector: Floats | None, pairs: Pairs) -> Candidate:
        newer, text = pairs.instead(record)
        if text == record.text:
            made = candidate(record, section, vector, self.turn.message, self._now)
            return replace(made, about=made.about + self._code.mark(record))
        made = candidate(newer, section, None, self.turn.message, self._now)
        return replace(made, text=text, about=made.about + self._code.mark(newer, record))

    def _always(self) -> Numbered:
        """What comes with any message."""
        settings, since = self._settings, int(self._now.timestamp() - self._settings.recent_hours * 3_600)
        channel = self.turn.channel if settings.channel_only else ""
        memories = [record for record in self._lacking if record.kind in keys.COLLECTIONS]
        important = [
            record for record in memories if record.type == IDENTITY or record.importance >= settings.important
        ]
        recent = [record for record in memories if record.created >= since and channel in ("", record.channel)]
        newest = sorted(recent, key=lambda record: -record.created)[: settings.pinned]
        direct = {record.ref: (0, record) for record in (*important[: settings.pinned], *newest)}
        return [*direct.values(), *self._foremost(since, channel)]

    def _foremost(self, since: int, channel: str) -> Numbered:
        if self._index is None:
            return []
        from livememfs.recall.index.merits import UnaskedMemories

        wanted = UnaskedMemories(
            now=int(self._now.timestamp()),
            since=since,
            least=self._settings.important,
            channel=channel,
            most=self._settings.pinned,
        )
        foremost = self._index.foremost((self._space,), wanted)
        records = self._index.records(list(dict.fromkeys((*foremost.identity, *foremost.important, *foremost.recent))))
        order = dict.fromkeys((*foremost.identity, *in_turns(foremost.important, foremost.recent)))
        return [(number, records[number]) for number in order if number in records and self._is_there(records[number])]

    def _fitting(self) -> dict[Section, Numbered]:
        """What fits the message, best first, without what scores far below the best."""
        if not self._asks:
            self._code.judge(record for _, record in self._pinned)
            self._pinned = [pinned for pinned in self._pinned if self._code.told(pinned[1])]
            return {section: [] for section, _ in _SECTIONS}
        most, fits = self._most, self._best(self._most)
        if not self._judge(fits):  # what is not told leaves room for the next, which was not looked up
            self._words = []
            fits = self._best({section: 2 * count for section, count in most.items()})
            self._judge(fits)
        self._pinned = [pinned for pinned in self._pinned if self._code.told(pinned[1])]
        return {
            section: [hit for hit in hits if self._code.told(hit[1])][: most[section]] for section, hits in fits.items()
        }

    def _judge(self, fits: dict[Section, Numbered]) -> bool:
        """Check what may be told against the code; whether all that fits may be told."""
        self._code.judge(record for _, record in in_turns(*fits.values(), self._pinned))  # what fits best goes first
        return self._code.judge(record for _, record in chain(*fits.values()))

    def _best(self, most: dict[Section, int]) -> dict[Section, Numbered]:
        """At most so many for each section, of what is there."""
        scored = [(0, record, score) for record, score in fitting(self.turn.message, self._lacking)]
        scored += [hit for hit in self._indexed(most) if self._is_there(hit[1])]
        scored.sort(key=lambda hit: -hit[2])
        best = {
            section: [hit for hit in scored if hit[1].kind in kinds][: most[section]] for section, kinds in _SECTIONS
        }
        least = WORTH * max((score for hits in best.values() for _, _, score in hits), default=0.0)
        return {section: [(n, record) for n, record, score in hits if score >= least] for section, hits in best.items()}

    def _indexed(self, most: dict[Section, int]) -> list[tuple[int, Record, float]]:
        if self._index is None:
            return []
        from livememfs.recall.search.ranking import fitting_best

        question = self.turn.message, self.question, (self._space,)
        return [
            hit
            for kinds, words in zip_longest(self._kinds(most), self._words)
            for hit in fitting_best(self._index, *question, kinds, words)
        ]

    @staticmethod
    def _kinds(most: dict[Section, int]) -> list[dict[str, int]]:
        """How many of each kind are looked for, by what is looked for at once."""
        memories = dict.fromkeys((*keys.COLLECTIONS, keys.AGENTS), most["relevant"])
        others = {keys.BANK: most["bank"], keys.LIVE: most["live"]}
        return [kinds for kinds in (memories, others) if any(kinds.values())]

    def _is_there(self, record: Record) -> bool:
        """Whether the bucket still has this version, as far as is known, and it may be told."""
        gone = keys.has_ended(record.key, self._now) or self._gone(record.key) or record.key in self._newer
        return not gone and may_be_told(record, self._web)


def may_be_told(record: Record, web: bool) -> bool:
    """Whether a record may be told to who did not ask for it; `web`: the space allows it of what is from the web."""
    return web or record.trust > Trust.WEB


def same(index: Engine | None, alike: float) -> Same:
    """How to tell whether two candidates say the same: by vectors where there are any."""
    if index is None:
        return SameWords()
    from livememfs.recall.likeness.sameness import Sameness

    return Sameness(index.prior, alike)


def remember(index: Engine | None, session: ToldSession, most: int) -> None:
    """Give a session the texts of what it was told by another mount, or by this one before a restart."""
    ids = session.untold()[-most:] if index is not None and most else []
    if index is None or not ids:
        return
    refs = {name.rpartition("~")[0] if f"/{keys.BANK}/" in name else f"{name}.md": name for name in ids}
    hits = [hit for ref, hit in index.called(list(refs)).items() if id_of(hit.record) == refs[ref]]
    vectors = index.vectors_of([hit.id for hit in hits])
    others = [candidate(hit.record, _section(hit.record), vectors.get(hit.id), "") for hit in hits]
    session.last.extendleft(reversed(others))
    while len(session.last) > most:
        session.last.popleft()


def candidate(
    record: Record, section: Section, vector: Floats | None, message: str, now: datetime | None = None
) -> Candidate:
    """A record as it is told, with its day; where that is the day of `now`, with the hour too."""
    made = _when(record.updated or record.created, now)
    about, text = f"{record.type}, {made}" if record.type else made, record.text
    if record.kind == keys.LIVE:
        about = f"{record.agent}, {made}"
    elif record.kind == keys.BANK:
        file, heading = record.key.partition(f"/{keys.BANK}/")[2], record.ref.partition("#")[2]
        about = f"{file}, {heading}" if heading else file  # when the file was written says little of one line
        text = excerpt(text.removeprefix(f"{record.title}\n"), message, SHOWN_CHARACTERS)
        if "\n" in text or len(text) > ONE_FACT:
            vector = None  # a long section may say the same and more: its lines are compared instead
    elif record.kind == keys.AGENTS:
        file = record.key.partition(f"/{keys.AGENTS}/")[2]
        about = ", ".join(filter(None, (record.agent, record.type, file, made)))
        text = excerpt(text, message, SHOWN_CHARACTERS)
    files = tuple(value for label, value in record.labels if label == "file")
    return Candidate(id_of(record), section, text, f"{about}{record.marks}", vector, files)


def _when(seconds: int, now: datetime | None) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    today = now is not None and day == now.astimezone(UTC).date().isoformat()
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds)) if today else day


def id_of(record: Record) -> str:
    """The id by which a session remembers a record: the same for all versions of a memory, whenever each ends; a new
    one for a section of the bank that has changed.
    """
    if record.kind == keys.BANK:
        return f"{record.ref}~{digest(record.text).hex()[:8]}"
    return record.key.removesuffix(".md").partition(keys.UNTIL)[0]


def _section(record: Record) -> Section:
    return next((section for section, kinds in _SECTIONS if record.kind in kinds), "relevant")


def in_turns(*lists: Iterable[Any]) -> Iterator[Any]:
    """The first of each list, then the second of each, and so on: no list takes all the room."""
    for row in zip_longest(*lists):
        yield from (item for item in row if item is not None)


@contextmanager
def timed(into: dict[str, float], name: str) -> Iterator[None]:
    """Put milliseconds into a table."""
    start = time.perf_counter()
    try:
        yield
    finally:
        into[name] = (time.perf_counter() - start) * 1e3
