"""Held plans: kept in the bucket beside the ledger until a person accepts them, and then committed as they are.

Owns where such a plan is stored, and whether it may still be accepted. A held plan is an entry of the ledger in the
state `held`, under `{space}/_ledger/{n:08d}.held`, where readers of runs do not find it. Refuses to accept a plan when
anything that it was made from has changed: a new run makes a new one. Trio thread only; the caller has the lease of the
space.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b

from livememfs.cache.replica import Replica
from livememfs.errors import HeldPlanStale, LiveMemError, NotFound, ObjectMissing
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.ledger import numbers, parsed
from livememfs.spaces.entries import held_in


def stood_on(bank: Mapping[str, str]) -> str:
    """A hash of a bank's names and ETags, in hex: it differs for each state of the bank."""
    named = "\n".join(f"{name}\0{etag}" for name, etag in sorted(bank.items()))
    return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


async def keep(replica: Replica, entry: Entry) -> None:
    """Keep a plan. A plan that was kept before is removed: a space has at most one."""
    for number in await waiting(replica, entry.space):
        if number != entry.number:
            await discard(replica, entry.space, number)
    await replica.put(keys.held_key(entry.space, entry.number), entry.render())


async def waiting(replica: Replica, space: str) -> list[int]:
    """The numbers of the held plans, ascending, as the bucket lists them now."""
    return held_in(await replica.names.walk(keys.ledger_prefix(space)))


async def read(replica: Replica, space: str, number: int) -> Entry:
    """The plan of a number. NotFound; LiveMemError when it cannot be read."""
    key = keys.held_key(space, number)
    try:
        return await parsed(await replica.read(key, fresh=True))
    except ObjectMissing:
        others = "".join(f"; the plan of run {other} waits" for other in await waiting(replica, space))
        raise NotFound(path=f"plan of run {number} of {space} that waits to be accepted{others}") from None


async def current(replica: Replica, space: str) -> Entry | None:
    """The held plan of a space, to be shown; None when there is none, or runs came after it."""
    plans = await waiting(replica, space)
    runs = await numbers(replica, space) if plans else []
    if not plans or (runs and runs[-1] >= plans[-1]):
        return None
    with suppress(LiveMemError):
        return await read(replica, space, plans[-1])
    return None


async def check(replica: Replica, entry: Entry) -> None:
    """HeldPlanStale, with the key that has changed, unless everything that the plan was made from is as it was."""
    runs = await numbers(replica, entry.space)
    if runs and runs[-1] >= entry.number:
        raise HeldPlanStale(number=entry.number, path=entry.space, detail=f"run {runs[-1]} was made since")
    prefix = keys.bank_prefix(entry.space)
    bank = {info.key: info.etag for info in await replica.names.walk(prefix)}
    versions = {info.key: info.etag for info in await replica.names.walk(keys.live_prefix(entry.space))} | bank
    for key in (keys.synthesis_key(entry.space), keys.meta_key(entry.space)):
        with suppress(ObjectMissing):
            versions[key] = (await replica.names.stat(key, fresh=True)).etag
    wanted = {f"{entry.space}/{write.key}": write.before for write in entry.writes}
    wanted |= {note.key: note.etag for note in (*entry.removes, *entry.keeps)}
    changed = next((key for key, etag in wanted.items() if versions.get(key) != etag), "")
    if not changed and entry.stood_on and entry.stood_on != stood_on(_named(bank, prefix)):
        changed = prefix
    if changed:
        raise HeldPlanStale(number=entry.number, path=entry.space, detail=f"{changed} has changed since")


async def discard(replica: Replica, space: str, number: int) -> None:
    """Remove a plan. A failure does no harm: `check` refuses a plan that was accepted before."""
    with suppress(LiveMemError):
        await replica.delete(keys.held_key(space, number))


def _named(bank: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): etag for key, etag in bank.items() if keys.parse(key).kind == "bank"}
