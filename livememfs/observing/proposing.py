"""What the observer would write, as proposals: for a space in which a person wants a say.

Owns which objects of a batch wait: observations and the summary. What a person or an agent said themselves, and how a
session went on, is stored at once. Trio thread only.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from livememfs.errors import ObjectMissing
from livememfs.records import keys
from livememfs.records.proposal import Proposal, is_target, key_of, prefix

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
        base, was = await _version(replica, key) if target.endswith(f"/{keys.SUMMARY}") else ("", "")
        why = f"from session {place.session}"
        content = data.decode("utf-8", "replace")
        proposal = Proposal(target=target, content=content, by=f"observer {model}", why=why, at=now, base=base, was=was)
        new = key_of(place.space, proposal.name)
        changed.objects[new] = proposal.render()
        if key in outcome.stored:
            changed.stored[new] = outcome.stored[key]
    changed.stored |= {key: rows for key, rows in outcome.stored.items() if key in changed.objects}
    return changed


async def _version(replica: Replica, key: str) -> tuple[str, str]:
    """The etag and the text of what is stored under a key; both empty without it."""
    try:
        stored = await replica.read(key)
    except ObjectMissing:
        return "", ""
    return stored.info.etag, stored.data.decode("utf-8", "replace")
