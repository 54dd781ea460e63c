"""What the observer would write, as proposals: for a space in which a person wants a say.

Owns which objects of a batch wait: observations and the summary. What a person or an agent said themselves, and how a
session went on, is stored at once. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from livememfs.errors import NotText, ObjectMissing
from livememfs.memories.proposals import wanted
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.proposal import Proposal, is_target, key_of, prefix
from livememfs.text.foreign import Unreadable

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.observing.known import Outcome, SessionPlace


async def propose(replica: Replica, place: SessionPlace, outcome: Outcome, model: str, now: datetime) -> Outcome:
    """The outcome with proposals in place of observations and summary. Raises what the store fails with."""
    changed = type(outcome)(skipped=outcome.skipped)
    await replica.names.listing(prefix(place.space))  # so that the status of this host counts them
    for key, data in outcome.objects.items():
        target = key.removeprefix(f"{place.space}/")
        if not is_target(place.space, target):
            changed.objects[key] = data
            continue
        is_new = replica.names.now(key) is None and not target.endswith(f"/{keys.SUMMARY}")
        base, was = ("", "") if is_new else await _version(replica, key)
        why = f"from session {place.session}"
        content = data.decode("utf-8", "replace")
        proposal = Proposal(target=target, content=content, by=f"observer {model}", why=why, at=now, base=base, was=was)
        new = key_of(place.space, proposal.name)
        changed.objects[new] = proposal.render()
        if key in outcome.stored:
            changed.stored[new] = outcome.stored[key]
    changed.stored |= {key: rows for key, rows in outcome.stored.items() if key in changed.objects}
    return changed


async def with_waiting(
    replica: Replica, space: str, names: Sequence[str], found: Sequence[Observation]
) -> list[Observation]:
    """Some observations of a session with those that wait, in the order of `names`: what is proposed is not to be
    proposed again.
    """
    known = {each.name: each for each in found}
    if await wanted(replica, space):
        level = await replica.names.listing(prefix(space))
        missing = {key_of(space, name.removesuffix(".md")): name for name in names if name not in known}
        there = [key for key in missing if key.rpartition("/")[2] in level.objects]
        for key, stored in (await replica.read_many(there)).items():
            with suppress(Unreadable, NotText):
                content = Proposal.parse(stored.data, space).content.encode("utf-8", "backslashreplace")
                known[missing[key]] = Observation.parse(content, path=key, name=missing[key])
    return [known[name] for name in names if name in known]


async def _version(replica: Replica, key: str) -> tuple[str, str]:
    """The etag and the text of what is stored under a key; both empty without it."""
    try:
        stored = await replica.read(key)
    except ObjectMissing:
        return "", ""
    return stored.info.etag, stored.data.decode("utf-8", "replace")
