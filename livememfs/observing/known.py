"""The objects of a session: read for a request of the observer, and made from the reply to a batch.

Owns which objects a batch needs, and how a batch becomes objects. Refuses to ask a model. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from livememfs.cache.inbox import Queued
from livememfs.errors import NotText, ObjectMissing
from livememfs.observing.builtin import NAME as BUILTIN
from livememfs.observing.corrections import links_of
from livememfs.observing.prompt import Known
from livememfs.observing.proposing import with_waiting
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.observation import Observation, observation_id
from livememfs.records.origin import trust_of_events
from livememfs.records.session import Meter, Session, Summary, last_prompts, with_prompts
from livememfs.records.trust import FIELD, Trust, least
from livememfs.text.foreign import read_object

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.observing.reply import Draft, ObserverReply

IMPORTED = "import"
"""The source of a session that was brought from another program."""
BEGAN = "began"
"""The field of a session with the repository, branch and commit at which it began."""
REMINDED = 8
"""Observations that the observer is reminded of."""
PROMPTS_SHOWN = 3


@dataclass(frozen=True)
class SessionPlace:
    """Which session: `session` is the agent's id of it."""

    space: str
    session: str

    def key(self, name: str) -> str:
        """The key of one of its objects."""
        return keys.session_key(self.space, keys.session_slug(self.session), name)


@dataclass
class Outcome:
    """What a batch led to, to be accepted in one step.

    :objects: contents by key
    :stored:  events by the key of what they led to
    :skipped: events by reason
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    stored: dict[str, list[Queued]] = field(default_factory=dict)
    skipped: dict[str, list[Queued]] = field(default_factory=dict)


async def data_of(replica: Replica, key: str) -> bytes:
    """An object's content; empty where there is none. Raises what the store fails with."""
    try:
        return (await replica.read(key)).data
    except ObjectMissing:
        return b""


async def session_of(replica: Replica, place: SessionPlace, now: datetime) -> Session:
    """What `session.json` says; a new session where there is none. Raises what the store fails with."""
    try:
        stored = await replica.read(place.key(keys.SESSION))
    except ObjectMissing:
        return Session(place.session, place.space, now, now)
    await replica.unread.read(stored, read_object)
    return Session.parse(stored.data, space=place.space, session=place.session, now=now)


async def known_of(
    replica: Replica, place: SessionPlace, session: Session, *, with_summary: bool, answers: int = 0
) -> Known:
    """What a request needs of a session; `answers` is how often the agent spoke in the batch, as each answers a prompt.
    What is from the web stays out: whatever a reply says would be from the web as well. Raises what the store fails
    with.
    """
    shown = min(max(PROMPTS_SHOWN, answers), REMINDED)
    prompts = last_prompts(await data_of(replica, place.key(keys.PROMPTS)), shown)
    wanted = session.observations if with_summary else session.observations[-REMINDED:]
    observations = await observations_of(replica, place.space, wanted)
    if len(observations) < len(wanted):
        observations = await with_waiting(replica, place.space, wanted, observations)
    observations = [each for each in observations if each.trust > Trust.WEB]
    trust, summary = least(each.trust for each in observations), ""
    if with_summary and (data := await data_of(replica, place.key(keys.SUMMARY))):
        with suppress(NotText):
            was = Summary.parse(data, path=keys.SUMMARY).whose
            if was > Trust.WEB:
                summary, trust = data.decode().partition("\n---\n")[2].strip(), min(trust, was)
    titles = [observation.title for observation in observations]
    return Known(session.project, prompts, observations[-REMINDED:], titles, summary, trust)


async def observations_of(replica: Replica, space: str, names: Sequence[str]) -> list[Observation]:
    """Observations by the names of their objects; those that are gone are left out."""
    prefix = keys.observations_prefix(space)
    objects = await replica.read_many([prefix + name for name in names])
    parsed: list[Observation] = []
    for name in names:
        stored = objects.get(prefix + name)
        if stored is not None:
            with suppress(NotText):
                parsed.append(Observation.parse(stored.data, path=stored.info.key, name=name))
    return parsed


async def recorded(
    replica: Replica, place: SessionPlace, events: Sequence[tuple[Queued, Event]], now: datetime
) -> Outcome:
    """The objects of a session after its start or a prompt."""
    session = await session_of(replica, place, now)
    starts = [(queued, event) for queued, event in events if event.kind == "start"]
    prompts = [(queued, event) for queued, event in events if event.kind == "prompt"]
    last = events[-1][1]
    session = replace(
        session,
        updated_at=now,
        status="active",
        created_at=min(session.created_at, events[0][1].at),
        agent=last.agent or session.agent,
        project=last.project or session.project,
        source=starts[-1][1].text if starts else session.source,
        prompts=session.prompts + len(prompts),
        extra=_placed(session.extra, [event for _, event in events]),
    )
    outcome = Outcome({place.key(keys.SESSION): session.render()})
    if starts:
        outcome.stored[place.key(keys.SESSION)] = [queued for queued, _ in starts]
    if prompts:
        key = place.key(keys.PROMPTS)
        outcome.objects[key] = with_prompts(await data_of(replica, key), [event for _, event in prompts])
        outcome.stored[key] = [queued for queued, _ in prompts]
    return outcome


def _placed(extra: Mapping[str, Any], events: Sequence[Event]) -> Mapping[str, Any]:
    """Fields of a session, with the repository, branch and commit of its last event, and those of its first."""
    places = [(event.repository, event.branch, event.commit) for event in events if event.repository]
    if not places:
        return extra
    first, last = (dict(zip(("repository", "branch", "commit"), each, strict=True)) for each in (places[0], places[-1]))
    began = extra.get(BEGAN)
    return {**extra, **last, BEGAN: began if isinstance(began, Mapping) else first}


@dataclass(frozen=True)
class Batch:
    """Events that are observed together: tools, what the agent said, and the stops that end with them."""

    place: SessionPlace
    tools: Sequence[tuple[Queued, Event]]
    stops: Sequence[Queued]

    @property
    def queued(self) -> list[Queued]:
        """All rows that are claimed for it."""
        return [*(queued for queued, _ in self.tools), *self.stops]

    @property
    def events(self) -> list[Event]:
        """What happened."""
        return [event for _, event in self.tools]


def came_of(
    batch: Batch, reply: ObserverReply, session: Session, known: Known, *, model: str, meter: Meter, now: datetime,
    code: Sequence[Mapping[str, Any]] = (),
) -> tuple[Outcome, list[Queued]]:  # fmt: skip
    """The objects that a reply leads to, and the events that it leaves out. A model has seen all of the batch and of
    what is known: what it says of one event has the class of the least of them. `code`: fields of each observation that
    say of which code it speaks.
    """
    outcome, names = Outcome(), list[str]()
    most = Trust.IMPORTED if session.source == IMPORTED else Trust.USER
    seen = min(most, known.trust, trust_of_events(batch.events))
    left = {queued.seq: queued for queued, _ in batch.tools}
    for number, draft in enumerate(reply.observations, 1):
        rows = [batch.tools[event_number - 1] for event_number in draft.events]
        events = [event for _, event in rows]
        trust = min(most, trust_of_events(events)) if model == BUILTIN else seen
        extra = {FIELD: trust.word, **(code[number - 1] if code else {})}
        observation = _observation(batch.place, number, draft, events, model, extra)
        links = links_of(draft, observation.id, trust, known.earlier)
        observation = replace(observation, extra={**observation.extra, **links})
        key = keys.observations_prefix(batch.place.space) + observation.name
        outcome.objects[key] = observation.render()
        outcome.stored[key] = [queued for queued, _ in rows if left.pop(queued.seq, None) is not None]
        names.append(observation.name)
    observed = sum(map(len, outcome.stored.values()))
    for number, reason in reply.skipped.items():
        queued = batch.tools[number - 1][0]
        if left.pop(queued.seq, None) is not None:
            outcome.skipped.setdefault(reason, []).append(queued)
    skipped = sum(map(len, outcome.skipped.values()))
    session = replace(
        session.with_observations(names),
        updated_at=now,
        observed=session.observed + observed,
        skipped=session.skipped + skipped,
        model=model,
        meter=session.meter.plus(meter),
    )
    if batch.tools:  # an agent may have no hook for its beginning
        last = batch.tools[-1][1]
        session = replace(session, agent=last.agent or session.agent, project=last.project or session.project)
        session = replace(session, extra=_placed(session.extra, batch.events))
    if batch.stops and (reply.summary or reply.no_summary):
        session = replace(session, status="completed", summed_up=session.observed + session.skipped)
        _end(outcome, batch, reply.summary, session, model, now, seen)
    outcome.objects[batch.place.key(keys.SESSION)] = session.render()
    return outcome, list(left.values())


def _end(
    outcome: Outcome,
    batch: Batch,
    parts: Mapping[str, str] | None,
    session: Session,
    model: str,
    now: datetime,
    trust: Trust,
) -> None:
    if not parts:
        outcome.skipped.setdefault("nothing worth a summary", []).extend(batch.stops)
        return
    summary = Summary(batch.place.session, now, project=session.project, model=model, trust=trust.word, **parts)
    outcome.objects[batch.place.key(keys.SUMMARY)] = summary.render()
    outcome.stored[batch.place.key(keys.SUMMARY)] = list(batch.stops)


def _observation(
    place: SessionPlace, number: int, draft: Draft, events: Sequence[Event], model: str, extra: Mapping[str, Any]
) -> Observation:
    ids = tuple(event.id for event in events)
    files = [event.files() for event in events]
    return Observation(
        id=observation_id(place.session, ids, number),
        session=place.session,
        created_at=min(event.at for event in events),
        type=draft.type,
        title=draft.title,
        subtitle=draft.subtitle,
        narrative=draft.narrative,
        facts=draft.facts,
        concepts=draft.concepts,
        files_read=tuple(dict.fromkeys(name for read, _ in files for name in read)),
        files_modified=tuple(dict.fromkeys(name for _, changed in files for name in changed)),
        project=events[-1].project,
        agent=events[-1].agent,
        discovery_tokens=sum(event.tokens for event in events),
        model=model,
        events=ids,
        extra=extra,
    )
