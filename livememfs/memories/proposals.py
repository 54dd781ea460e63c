"""Proposals as acts: what waits in a space for a person, and accepting or refusing it (see `records/proposal`).

Owns that each proposal has one decision, whoever asks where: writing the decision is the commit, under a condition, and
whoever finds a decided proposal carries it out. What is accepted is joined with what somebody else wrote there since.
Refuses agents: one may do what a planted text asks for. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress

import structlog

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import BadRequest, LiveMemError, NotFound, NotPermitted, ObjectMissing, PreconditionFailed
from livememfs.memories.storing import was_there
from livememfs.records import keys
from livememfs.records import proposal as records
from livememfs.records.agentnames import AGENTS
from livememfs.records.proposal import Decision, Proposal
from livememfs.records.space import Meta
from livememfs.records.trust import kept_stamp
from livememfs.spaces.objects import delete_version, keep_beside, put_new, put_version, uploaded
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.text.foreign import Unreadable
from livememfs.text.merge import merge

log = structlog.get_logger("livememfs.memories")

MOST = 1_000
"""Most proposals that are shown, the oldest ones: each is read."""
TRIES = 5


async def wanted(replica: Replica, space: str) -> bool:
    """Whether what digests and observers would add to a space waits for a person. Raises the store's failures, since
    nobody may take a space for one that does not ask.
    """
    with suppress(ObjectMissing, ValueError):
        return Meta.parse((await replica.read(keys.meta_key(space))).data).proposals
    return False


def is_allowed(path: str, by: str) -> None:
    """NotPermitted for an agent. `by`: who asks."""
    if by in AGENTS:
        what = f"{by} is an agent, and only a person decides on a proposal, in a terminal of their own"
        raise NotPermitted(what, path=path)


async def waiting(replica: Replica, space: str) -> list[tuple[StoredObject, Proposal]]:
    """What waits, by name, at most `MOST`. One that cannot be read is left out; one that was decided is carried out."""
    level = await replica.names.listing(records.prefix(space))
    wanted_keys = sorted(key for info in level.objects.values() if records.name_in(key := info.key))[:MOST]
    found = await replica.read_many(wanted_keys)
    decisions = await replica.names.listing(records.decided_prefix(space)) if found else None
    shown: list[tuple[StoredObject, Proposal]] = []
    for key in wanted_keys:
        proposal = await _parsed(replica, found[key], space) if key in found else None
        if proposal is None:
            continue
        if decisions is not None and proposal.decided_key(space).rpartition("/")[2] in decisions.objects:
            with suppress(LiveMemError):  # somebody died between the steps; the next look tries again
                await _finish(replica, space, found[key], proposal)
            continue
        shown.append((found[key], proposal))
    return shown


def counted(replica: Replica) -> int:
    """How many wait in all spaces that this machine has looked into; asks nobody."""
    top = replica.names.levels.get("")
    levels = [replica.names.levels.get(records.prefix(space)) for space in (top.folders if top is not None else ())]
    return sum(bool(records.name_in(info.key)) for level in levels if level for info in level.objects.values())


async def decisions(replica: Replica, space: str) -> list[Proposal]:
    """The newest decisions, at most `MOST`, the last one first. One that cannot be read is left out."""
    level = await replica.names.listing(records.decided_prefix(space))
    newest = sorted(level.objects.values(), key=lambda info: -info.modified_ns)[:MOST]
    found = await replica.read_many([info.key for info in newest])
    each = [await _parsed(replica, found[info.key], space) for info in newest if info.key in found]
    return [decided for decided in each if decided is not None]


async def the_one(replica: Replica, space: str, name: str) -> tuple[StoredObject, Proposal]:
    """What waits under a name, with or without `.md`. NotFound; BadRequest for one that cannot be read."""
    name = name.removesuffix(".md")
    key = records.key_of(space, name)
    missing = NotFound(path=f"{space}/.proposals/{name}.md")
    if not name or records.name_in(key) != name:
        raise missing
    try:
        stored = await replica.read(key, fresh=True)
    except ObjectMissing:
        raise missing from None
    proposal = await _parsed(replica, stored, space)
    if proposal is None:
        raise BadRequest(path=f"{space}/.proposals/{name}.md", detail="it cannot be read, or is none")
    return stored, proposal


async def accept(replica: Replica, clock: Clock, space: str, name: str, *, by: str) -> str:
    """Write what was proposed; returns the key of the object.

    Raises NotPermitted for an agent, NotFound, BadRequest when it was refused meanwhile or what is there now cannot be
    joined with it, and the store's failures: a decision that was made is then carried out later.
    """
    is_allowed(f"{space}/.proposals/{name}", by)
    stored, proposal = await _ready(replica, space, name)
    there = await _there(replica, f"{space}/{proposal.target}")
    if _joined(proposal, there) is None:
        what = "it was changed since, and the two cannot be joined; edit it by hand and refuse this"
        raise BadRequest(path=f"{space}/{proposal.target}", detail=what)
    await _decide(replica, clock, space, stored, proposal, "accepted", by)
    return f"{space}/{proposal.target}"


async def refuse(replica: Replica, clock: Clock, space: str, name: str, *, by: str) -> None:
    """Refuse a proposal. It is kept with the decision, so that the same is not proposed again. Raises as `accept`."""
    is_allowed(f"{space}/.proposals/{name}", by)
    stored, proposal = await _ready(replica, space, name)
    await _decide(replica, clock, space, stored, proposal, "refused", by)


# --- the steps ---------------------------------------------------------------------------------------------------


async def _ready(replica: Replica, space: str, name: str) -> tuple[StoredObject, Proposal]:
    await uploaded(replica, records.prefix(space), f"the proposals of {space}")
    return await the_one(replica, space, name)


async def _decide(
    replica: Replica, clock: Clock, space: str, stored: StoredObject, proposal: Proposal, decision: Decision, by: str
) -> None:
    """Commit a decision and carry it out. BadRequest when another one was made before."""
    key = proposal.decided_key(space)
    made = proposal.decided(decision, by, clock.now())
    try:
        await put_new(replica, key, made.render())
    except PreconditionFailed:
        await _finish(replica, space, stored, proposal)
        earlier = await _parsed(replica, await replica.read(key, fresh=True), space)
        if earlier is None or earlier.decision != decision:
            was = f"it was {earlier.decision} already, by {earlier.decided_by}" if earlier else "it was decided already"
            raise BadRequest(path=f"{space}/.proposals/{proposal.name}.md", detail=was) from None
        return
    await _carry_out(replica, space, stored.info, made, again=False)


async def _finish(replica: Replica, space: str, stored: StoredObject, proposal: Proposal) -> None:
    """Carry out what was decided about a proposal, by whomever."""
    try:
        decided = await _parsed(replica, await replica.read(proposal.decided_key(space), fresh=True), space)
    except ObjectMissing:
        return
    if decided is not None:
        await _carry_out(replica, space, stored.info, decided, again=True)


async def _carry_out(replica: Replica, space: str, info: ObjectInfo, decided: Proposal, *, again: bool) -> None:
    if decided.decision == "accepted":
        await _apply(replica, space, decided, again=again)
    with suppress(ObjectMissing, PreconditionFailed):  # a newer proposal of this name stays
        await delete_version(replica, info.key, info.etag)
    log.info("a proposal was decided", key=info.key, decision=decided.decision, by=decided.decided_by)


async def _apply(replica: Replica, space: str, decided: Proposal, *, again: bool) -> None:
    """Write an accepted proposal, unless that was done before (`again`: it may have been)."""
    key = f"{space}/{decided.target}"
    for _ in range(TRIES):
        there = await _there(replica, key)
        a_memory = decided.folder in keys.COLLECTIONS
        if there is None and again and a_memory and await was_there(replica, space, decided.target):
            return  # it was forgotten, replaced or renamed since
        data = _joined(decided, there)
        if there is not None and data == there.data:
            return
        if data is None:  # it changed after the look before the decision: both are kept
            assert there is not None  # what is not there is in nobody's way
            await keep_beside(replica, there, "proposed")
            data = _data(decided)
        meta = {**decided.meta, **_lower(there, decided)}
        try:
            await put_version(replica, key, data, there.info.etag if there is not None else None, meta)
            return
        except PreconditionFailed:
            continue
    raise PreconditionFailed(key=key)


def _joined(proposal: Proposal, there: StoredObject | None) -> bytes | None:
    """What is written for a proposal over what is there now; None where a person has to join the two.

    A proposal for a new object that is there already was carried out before, and perhaps edited since: it stays.
    """
    ours = _data(proposal)
    if there is None or there.info.etag == proposal.base:
        return ours
    return merge(proposal.was.encode("utf-8", "backslashreplace"), ours, there.data) if proposal.base else there.data


def _data(proposal: Proposal) -> bytes:
    return proposal.content.encode("utf-8", "backslashreplace")


def _lower(there: StoredObject | None, decided: Proposal) -> dict[str, str]:
    """The stamp of what is joined, if its class is lower than that of the proposal."""
    if there is None or not decided.base:
        return {}
    earlier = Proposal(
        target=decided.target, content=there.data.decode("utf-8", "replace"), by="", why="", at=decided.at,
        meta=kept_stamp(there.info.meta),
    )  # fmt: skip
    return dict(earlier.meta) if earlier.trust < decided.trust else {}


async def _there(replica: Replica, key: str) -> StoredObject | None:
    try:
        return await replica.read(key, fresh=True)
    except ObjectMissing:
        return None


async def _parsed(replica: Replica, stored: StoredObject, space: str) -> Proposal | None:
    """The proposal in an object; None for one that cannot be read, which is noted once."""
    named = records.name_in(stored.info.key)

    def parse(data: bytes) -> Proposal:
        proposal = Proposal.parse(data, space)
        if named and proposal.name != named:
            raise Unreadable("its name is not that of its target")
        return proposal

    return await replica.unread.read(stored, parse)
