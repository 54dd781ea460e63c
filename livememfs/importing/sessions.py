"""Bringing sessions of agents into a space: what was asked at once, what was done by way of the queue.

Owns the order in which a session's objects are written, so that an import that was killed at any step goes on when it
is done again: `session.json` first, with a mark that nothing has come yet; prompts, words and parked events, whose
names and bytes are the same each time; at the end the mark of what has come. A session that was captured here, or went
on here since, stays as it is. Trio thread only; a session is read and cleaned in a worker thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import trio

from livememfs.cache.replica import Replica
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.importing.item import SourceFault, SourceSession, digest, moment
from livememfs.observing.capture import OFF, Capture
from livememfs.observing.known import IMPORTED, SessionPlace, data_of
from livememfs.observing.parking import Parking
from livememfs.records import keys
from livememfs.records.event import OBSERVED_KINDS, Event, as_text, shortened
from livememfs.records.session import Session, Summary, with_prompts
from livememfs.records.trust import Trust
from livememfs.spaces.objects import put_new, put_version
from livememfs.text.own import basic
from livememfs.text.privacy import redaction as privacy
from livememfs.text.size import tokens
from livememfs.text.times import iso

IMPORT_FROM, IMPORT_OF = "import_from", "import_of"
MODEL = "import"
"""Who wrote a summary that is only the words of a session; the observer writes another one over it."""
WORDS_CHARACTERS = 12_000
"""Of the prompts, and of the agent's answers, in such a summary."""
TRIES = 4
Outcome = Literal["new", "changed", "known", "kept here"]


@dataclass(frozen=True)
class Transcripts:
    """What sessions need: who cleans events, and where they wait for a mount."""

    capture: Capture
    parking: Parking | None


@dataclass(frozen=True)
class Clean:
    """A session, cleaned.

    :events:  prompts, and all that the agent did and said
    :waiting: what is observed of it
    :private: the kinds of private text that were replaced
    :summary: what the tool says of it, by field
    """

    events: tuple[Event, ...]
    waiting: tuple[Event, ...]
    private: tuple[str, ...]
    faults: tuple[SourceFault, ...]
    summary: Mapping[str, str]

    @property
    def prompts(self) -> list[Event]:
        """What the user asked."""
        return [event for event in self.events if event.kind == "prompt"]

    @property
    def tokens(self) -> int:
        """What the observer will read, estimated."""
        read = (f"{as_text(each.input)}{as_text(each.output)}{each.text}" for each in self.events)
        return sum(map(tokens, read))


@dataclass(frozen=True)
class Mark:
    """What has come of a session: how many events, which, and when the last one was."""

    events: int
    of: str
    last: datetime

    def __str__(self) -> str:
        return f"{self.events} {self.of} {iso(self.last, exact=True)}"

    @classmethod
    def parse(cls, text: object) -> Mark | None:
        """The mark in a `session.json`; None while nothing has come."""
        words = str(text).split()
        last = moment(words[2]) if len(words) == 3 and words[0].isdigit() else None
        return cls(int(words[0]), words[1], last) if last is not None else None

    @classmethod
    def made(cls, events: Sequence[Event]) -> Mark:
        """The mark of events that have come."""
        return cls(len(events), digest(*(event.id for event in events)), max(event.at for event in events))

    def new(self, events: Sequence[Event]) -> Sequence[Event]:
        """Those that have not come: all behind the known ones, or all that are later where these are others now."""
        if digest(*(event.id for event in events[: self.events])) == self.of:
            return events[self.events :]
        return [event for event in events if event.at > self.last]


def cleaned(capture: Capture, session: SourceSession) -> Clean:
    """Read a session and take out what is private. Each id once. Pure but for the reading; any thread."""
    talk = session.tell()
    past = {(each.said.kind, each.said.id): capture.past(each.said, each.at) for each in talk.events}
    kept = [each for each in past.values() if each.skipped in ("", OFF)]
    observed = (each.event for each in kept if not each.skipped and each.event.kind in OBSERVED_KINDS)
    said = {name: privacy.redact(text) for name, text in talk.summary.items()}
    found = {kind for each in past.values() for kind in each.private} | {
        kind for each in said.values() for kind in each.found
    }
    summary = {name: each.text for name, each in said.items()}
    return Clean(tuple(each.event for each in kept), tuple(observed), tuple(sorted(found)), talk.faults, summary)


async def bring(
    replica: Replica, space: str, source: str, clean: Clean, parking: Parking | None, *, dry_run: bool
) -> tuple[Outcome, int]:
    """Bring a session that has events: the outcome, and how many tokens are new. PreconditionFailed if somebody else
    writes the session meanwhile.
    """
    place = SessionPlace(space, clean.events[0].session)
    there = await _there(replica, place)
    if there is not None and there.extra.get(IMPORT_FROM) != source:
        return "kept here", 0
    mark = Mark.parse(there.extra.get(IMPORT_OF)) if there is not None else None
    new = mark.new(clean.events) if mark is not None else clean.events
    if not new:
        return "known", 0
    prompts = with_prompts(b"", clean.prompts)
    if not prompts.startswith(await data_of(replica, place.key(keys.PROMPTS))):
        return "kept here", 0
    if not dry_run:
        if there is None:
            await put_new(replica, place.key(keys.SESSION), _session(place, source, clean).render())
        await _put(replica, place.key(keys.PROMPTS), prompts)
        await _words(replica, place, clean)
        await _park(parking, place, clean, new)
        await _mark(replica, place, clean)
    return "changed" if mark is not None else "new", replace(clean, events=tuple(new)).tokens


async def _there(replica: Replica, place: SessionPlace) -> Session | None:
    key = place.key(keys.SESSION)
    try:
        data = (await replica.read(key)).data
    except ObjectMissing:
        return None
    return Session.parse(data, space=place.space, session=place.session, now=datetime.min)


def _session(place: SessionPlace, source: str, clean: Clean) -> Session:
    first, last = clean.events[0], clean.events[-1]
    return Session(
        id=place.session,
        space=place.space,
        created_at=min(event.at for event in clean.events),
        updated_at=max(event.at for event in clean.events),
        agent=first.agent,
        project=last.project,
        source=IMPORTED,
        prompts=len(clean.prompts),
        extra={IMPORT_FROM: source, IMPORT_OF: ""},
    )


async def _words(replica: Replica, place: SessionPlace, clean: Clean) -> None:
    """The words of the session as its summary, which a search finds at once; until the observer has written one."""
    said = [event for event in clean.events if event.kind == "said"]
    words = clean.summary or {"request": _lines(clean.prompts), "learned": _lines(said)}
    if not any(words.values()):
        return
    summary = Summary(
        session=place.session,
        created_at=max(event.at for event in clean.events),
        project=clean.events[-1].project,
        model=MODEL,
        trust=Trust.IMPORTED.word,
        **words,
    )
    key = place.key(keys.SUMMARY)
    there = await data_of(replica, key)
    if not there or Summary.parse(there, path=key).model == MODEL:
        await _put(replica, key, summary.render())


def _lines(events: Sequence[Event]) -> str:
    lines = (basic(" ".join(event.text.split())) for event in events)
    return shortened("\n".join(f"- {line}" for line in lines if line), WORDS_CHARACTERS)


async def _park(parking: Parking | None, place: SessionPlace, clean: Clean, new: Sequence[Event]) -> None:
    """What was done goes where a mount finds what was not observed: its queue and its budget decide when it is."""
    ids = {event.id for event in new}
    waiting = [event for event in clean.waiting if event.id in ids]
    if not waiting or parking is None:
        return
    last = replace(waiting[-1], id=f"end-{digest(*sorted(ids))}", kind="end", tool="", input=None, output=None)
    end = replace(last, text=MODEL, tokens=0, failed=False, subagent="", at=clean.events[-1].at)
    tag = digest(place.space, place.session, *(event.id for event in waiting))[:8]
    await parking.bring(place.space, tag, [*waiting, end])


async def _mark(replica: Replica, place: SessionPlace, clean: Clean) -> None:
    """All has come. The observer may write the session at the same time."""
    key, mark = place.key(keys.SESSION), str(Mark.made(clean.events))
    for attempt in range(TRIES):
        stored = await replica.read(key, fresh=attempt > 0)
        session = Session.parse(stored.data, space=place.space, session=place.session, now=clean.events[-1].at)
        updated = max(session.updated_at, clean.events[-1].at)
        marked = replace(
            session, updated_at=updated, prompts=len(clean.prompts), extra={**session.extra, IMPORT_OF: mark}
        )
        with suppress(PreconditionFailed):
            await put_version(replica, key, marked.render(), stored.info.etag)
            return
        await trio.lowlevel.checkpoint()
    raise PreconditionFailed(key=key)


async def _put(replica: Replica, key: str, data: bytes) -> None:
    """Write an object unless it is the same already."""
    try:
        stored = await replica.read(key)
    except ObjectMissing:
        if data:
            await put_new(replica, key, data)
        return
    if stored.data != data:
        await put_version(replica, key, data, stored.info.etag)
