"""Of which code the observations of a batch speak.

Owns what is asked for each: its text, the files of its events, and the moment up to which the batch was seen. Refuses
to read code. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from livememfs.code.anchor import Claim, CodePlace
from livememfs.code.stamping import Subject

if TYPE_CHECKING:
    from livememfs.code.workplaces import Workplaces
    from livememfs.observing.known import Batch
    from livememfs.observing.reply import Draft, ObserverReply
    from livememfs.records.event import Event


async def claimed(code: Workplaces | None, batch: Batch, reply: ObserverReply) -> Sequence[Mapping[str, Any]]:
    """For each observation of a reply the fields of its front matter; none where nothing is known of the code."""
    if code is None or not reply.observations:
        return ()
    until = max(int(event.at.timestamp() * 1e6) * 1_000 for event in batch.events)
    claims: list[Claim | None] = []
    for draft in reply.observations:
        events = [batch.events[number - 1] for number in draft.events]
        last = events[-1]
        place = CodePlace.of({"repository": last.repository, "branch": last.branch, "commit": last.commit})
        claims.append(await code.claim(_subject(draft, events, until), place) if place.repository else None)
    return [claim.fields() if claim is not None else {} for claim in claims]


def _subject(draft: Draft, events: Sequence[Event], until: int) -> Subject:
    files = [event.files() for event in events]
    read = tuple(dict.fromkeys(name for names, _ in files for name in names))
    changed = tuple(dict.fromkeys(name for _, names in files for name in names))
    text = "\n".join((draft.title, draft.subtitle, draft.narrative, *draft.facts))
    return Subject(text, events[-1].project, changed or read, read, until)
