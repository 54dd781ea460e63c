"""Which earlier observations of a space the new ones correct or contradict.

Owns which earlier observations a model is shown before it observes, and the judgement by words alone where there is no
model; and that both ends of a link say so, so that whoever meets the older one knows it without a search. An
observation never supersedes one of a higher class of trust: then both are told, as a contradiction. Refuses the web's:
a page has no say in what else holds. Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import nlargest
from typing import TYPE_CHECKING

from livememfs.concurrency import A_NAME, aside, for_each
from livememfs.errors import NotText, ObjectMissing, Throttled, Unreachable
from livememfs.observing.builtin import NAME as BUILTIN
from livememfs.observing.prompt import Known, earlier_line
from livememfs.observing.reply import Draft
from livememfs.recall.index.words import content_words
from livememfs.recall.likeness.correction import Verdict, judged
from livememfs.records import keys
from livememfs.records.event import Event, as_text, capped
from livememfs.records.observation import CONTRADICTED, CONTRADICTS, SUPERSEDED, SUPERSEDES, Observation
from livememfs.records.origin import trust_of_events
from livememfs.records.trust import Trust, least
from livememfs.text.size import tokens

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica

READ = 30
"""The newest observations of a space, which may be corrected; each is read once by a host, and then known to it."""
SHOWN, ROOM = 8, 500
"""Of those the most that a model is shown, and the tokens for them."""
SHARED = 2
"""Words that an earlier observation needs in common with the events, unless both name a file."""
CHARACTERS = 4_000
"""Of one event that are looked at for words."""
COMPARED = 300
"""Comparisons of two statements for one batch: a second, at most."""
_STEM = 5
_SAID = re.compile(r"\A(?:A subagent|The agent) said: ")


async def with_earlier(replica: Replica, space: str, events: Sequence[Event], known: Known) -> Known:
    """What is known of a session, with what a batch of events may correct. A page has no say in what holds."""
    if not events or trust_of_events(events) is Trust.WEB:
        return known
    earlier = related(await earlier_of(replica, space), events)
    return replace(known, earlier=earlier, trust=least((known.trust, *(each.trust for each in earlier))))


async def earlier_of(replica: Replica, space: str) -> list[Observation]:
    """The newest observations of a space, newest first, without the web's."""
    prefix = keys.observations_prefix(space)
    level = await replica.names.listing(prefix)
    known = list(level.objects)

    def newest() -> list[str]:
        return [name for name in nlargest(2 * READ, known) if keys.MemoryName.parse(name) is not None][:READ]

    names = await aside(len(known) * A_NAME, newest)
    found: dict[str, Observation] = {}

    async def read(name: str) -> None:
        with suppress(ObjectMissing, NotText):
            data = (await replica.read(prefix + name)).data
            found[name] = Observation.parse(data, path=prefix + name, name=name)

    await for_each(names, read)
    return [found[name] for name in names if name in found and found[name].trust > Trust.WEB]


def related(earlier: Sequence[Observation], events: Sequence[Event]) -> list[Observation]:
    """Those that the events may correct, the likeliest first, as many as a request has room for."""
    files = {name for event in events for names in event.files() for name in names}
    words: set[str] = set()
    for event in events:
        words |= _stems(f"{as_text(capped(event.input, CHARACTERS))} {as_text(capped(event.output, CHARACTERS))}")
        words |= _stems(event.text[:CHARACTERS])
    ranked: list[tuple[int, Observation]] = []
    for observation in earlier:
        shared = len(words & _stems(" ".join((observation.title, *observation.facts))))
        one_file = not files.isdisjoint((*observation.files_read, *observation.files_modified))
        if shared >= SHARED or one_file:
            ranked.append((shared + SHARED * one_file, observation))
    ranked.sort(key=lambda item: -item[0])  # of equals the newest: the sort keeps their order
    room, chosen = ROOM, list[Observation]()
    for _, observation in ranked[:SHOWN]:
        room -= tokens(earlier_line(observation))
        if room < 0:
            break
        chosen.append(observation)
    return chosen


async def judged_by_words(drafts: Sequence[Draft], earlier: Sequence[Observation]) -> tuple[Draft, ...]:
    """Drafts with what they correct by their words alone. One statement of several that is corrected makes the whole
    older observation no more than contradicted: what else it says may hold.

    Only what an agent said is compared: of two commands or edits that differ in one word, neither corrects the other.
    """
    old = [observation for observation in earlier if observation.model != BUILTIN or _SAID.match(observation.title)]

    def judge() -> tuple[Draft, ...]:
        left = [COMPARED]
        return tuple(_judged(draft, old, left) if _SAID.match(draft.title) else draft for draft in drafts)

    return await aside(len(drafts) * len(old) * CHARACTERS, judge) if old else tuple(drafts)


def _judged(draft: Draft, earlier: Sequence[Observation], left: list[int]) -> Draft:
    """`left`: how many more comparisons there may be."""
    supersedes, contradicts = list[str](), list[str]()
    mine = [(line, _stems(line)) for line in _lines(draft.title, draft.facts)]
    for observation in earlier:
        theirs, verdicts = _lines(observation.title, observation.facts), set[Verdict]()
        for line in theirs:
            stems = _stems(line)
            for said, words in mine:
                if left[0] > 0 and len(stems & words) >= SHARED:
                    left[0] -= 1
                    verdicts.add(judged(line, said, None))
        if Verdict.CORRECTS in verdicts and len(theirs) == 1:
            supersedes.append(observation.id)
        elif verdicts - {Verdict.DISTINCT}:
            contradicts.append(observation.id)
    return replace(draft, supersedes=tuple(supersedes), contradicts=tuple(contradicts))


def links_of(draft: Draft, uid: str, trust: Trust, earlier: Sequence[Observation]) -> dict[str, list[str]]:
    """The fields of the new observation `uid`, of that class, for what its draft says it corrects. Ids that nobody was
    shown are left out.
    """
    known = {each.id: each for each in earlier if each.id != uid and trust > Trust.WEB}
    newer = [known[each] for each in draft.supersedes if each in known]
    hidden = [observation for observation in newer if observation.trust <= trust]
    unsure = [observation for observation in newer if observation not in hidden]
    unsure += [known[each] for each in draft.contradicts if each in known and known[each] not in newer]
    fields = {SUPERSEDES: [each.link for each in hidden], CONTRADICTS: [each.link for each in unsure]}
    return {field: names for field, names in fields.items() if names}


async def with_the_older(replica: Replica, space: str, objects: dict[str, bytes]) -> None:
    """Add to some new observations the older ones that they are linked to, which say so from now on."""
    prefix, changed = keys.observations_prefix(space), dict[str, Observation]()
    for key, data in list(objects.items()):
        if keys.parse(key).kind != "observation":
            continue
        newer = Observation.parse(data, path=key, name=key.removeprefix(prefix))
        for field, back in ((SUPERSEDES, SUPERSEDED), (CONTRADICTS, CONTRADICTED)):
            for link in newer.linked(field):
                older = changed.get(link) or await _there(replica, prefix, link)
                if older is not None and f"{prefix}{link}.md" not in objects:
                    changed[link] = older.linking(back, newer.link)
    objects |= {f"{prefix}{link}.md": older.render() for link, older in changed.items()}


async def _there(replica: Replica, prefix: str, link: str) -> Observation | None:
    """An observation as it is now; None when it was forgotten meanwhile: a model may have thought for a minute."""
    key = f"{prefix}{link}.md"
    with suppress(ObjectMissing, NotText):
        try:
            stored = await replica.read(key, fresh=True)
        except (Unreachable, Throttled):  # what was paid for is kept, and what is known here is good enough
            stored = await replica.read(key)
        return Observation.parse(stored.data, path=key, name=f"{link}.md")
    return None


def _lines(title: str, facts: Sequence[str]) -> list[str]:
    """What is said: the facts; without facts the title."""
    return list(facts) or [_SAID.sub("", title)]


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in content_words(text)}
