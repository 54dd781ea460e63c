"""A last look before a run is committed: is everything it builds on still what was read?

Owns the question. Refuses to be the guarantee: that is the lease, and the condition on each write. Trio thread only.
"""

from __future__ import annotations

from livememfs.cache.replica import Replica
from livememfs.errors import ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.runs.consolidation.gather import Inputs
from livememfs.runs.consolidation.plan import Plan


async def check_unchanged(replica: Replica, inputs: Inputs, plan: Plan) -> None:
    """Raises PreconditionFailed when somebody who keeps no lease has changed what the plan builds on."""
    versions = {info.key: info.etag for info in await replica.names.walk(keys.bank_prefix(inputs.space))}
    for change in plan.changes:
        key = keys.bank_key(inputs.space, change.name)
        if versions.get(key) != change.etag:
            raise PreconditionFailed(key=key)
    for key, etag in (
        (keys.synthesis_key(inputs.space), inputs.synthesis_etag),
        (keys.meta_key(inputs.space), inputs.meta_etag),
    ):
        if await _version(replica, key) != etag:
            raise PreconditionFailed(key=key)


async def _version(replica: Replica, key: str) -> str | None:
    try:
        return (await replica.names.stat(key, fresh=True)).etag
    except ObjectMissing:
        return None
