"""A proposal as a page for people: who proposes what and why, the change as a unified diff, and the whole text.

Owns what the diff is against: the object that it would change, else the memory that it corrects, else nothing. Refuses
to decide anything. Trio thread only; the comparison of large texts runs in a thread.
"""

from __future__ import annotations

import re
from difflib import unified_diff

from livememfs.cache.replica import Replica
from livememfs.concurrency import aside
from livememfs.errors import ObjectMissing
from livememfs.memories.merging import CORRECTS
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.records.proposal import Proposal
from livememfs.text.fields import read_list, split
from livememfs.text.times import iso

MAX_COMPARED = 64 << 10
"""Characters of either text; what is after them is only in the whole text."""
_TICKS = re.compile(r"`{3,}")


async def diff_of(replica: Replica, space: str, proposal: Proposal) -> str:
    """What it would change, as a unified diff of the texts without their front matter."""
    name, before = await _before(replica, space, proposal)
    after = split(proposal.content)[1]

    def diff() -> str:
        old, new = (text[:MAX_COMPARED].strip("\n").splitlines() for text in (before, after))
        return "\n".join(unified_diff(old, new, name or "nothing", proposal.target, lineterm=""))

    return await aside(len(before) + len(after), diff)


async def page_of(replica: Replica, space: str, proposal: Proposal) -> bytes:
    """The whole page, in Markdown."""
    diff = await diff_of(replica, space, proposal)
    fence = "`" * (1 + max(map(len, _TICKS.findall(diff)), default=2))
    if proposal.decision:
        when = iso(proposal.decided_at) if proposal.decided_at else "at some time"
        state = f"{proposal.decision} by {proposal.decided_by}, {when}"
    else:
        state = f"`mv` into {proposal.folder}/ accepts it, `rm` refuses it; only a person does either"
    lines = (
        f"Proposed by {proposal.by}, {proposal.why}, {iso(proposal.at)}",
        f"Would be {proposal.target}, told as {proposal.trust.word}",
        state[:1].upper() + state[1:],
    )
    listed = "\n".join(f"- {' '.join(line.split())}" for line in lines)
    return f"{listed}\n\n{fence}diff\n{diff}\n{fence}\n\n{proposal.content}".encode("utf-8", "replace")


async def _before(replica: Replica, space: str, proposal: Proposal) -> tuple[str, str]:
    """The name, relative to the space, and the text of what it would change; both empty when there is nothing."""
    for target in (proposal.target, *await _corrected(replica, space, proposal)):
        try:
            data = (await replica.read(f"{space}/{target}")).data
        except ObjectMissing:
            continue
        return target, split(data.decode("utf-8", "replace"))[1]
    return "", ""


async def _corrected(replica: Replica, space: str, proposal: Proposal) -> list[str]:
    """The memories that it says it corrects, relative to the space."""
    names = (
        set(read_list(split(proposal.content)[0].get(CORRECTS)) or ()) if proposal.folder in keys.COLLECTIONS else ()
    )
    if not names:
        return []
    level = await replica.names.listing(f"{space}/{proposal.folder}/")
    return [f"{proposal.folder}/{name}" for name in level.objects if id_of(name) in names]
