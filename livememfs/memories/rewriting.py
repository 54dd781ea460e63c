"""Changing a note or a memory that somebody sees: replacing the version they have read, removing it, putting it back.

Owns that no version is replaced or removed that its editor has not seen, and that a memory keeps its former version.
What a file operation changes goes through the tree; here nobody has a file open, and the kernel is told. Trio thread
only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import aside
from livememfs.errors import AlreadyExists, BadRequest, PreconditionFailed
from livememfs.memories.storing import keep_version
from livememfs.records import keys
from livememfs.records.metadata import META_NAME, META_TRUST
from livememfs.records.sealing import Form, Former, MemoryForm, NoteForm, says_nothing
from livememfs.spaces.objects import OnPrivate, unheard
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.text.privacy.redaction import told


@dataclass(frozen=True)
class KeptVersion:
    """A version that was replaced or removed: what is needed to put it back. `now`: what stands there instead."""

    key: str
    data: bytes
    meta: Mapping[str, str] = field(default_factory=dict)
    now: ObjectInfo | None = None


def form_of(key: str) -> Form:
    """What a text under this key becomes."""
    parsed = keys.parse(key)
    return NoteForm() if parsed.kind == "note" else MemoryForm(parsed.name.partition("/")[0])


async def seen(replica: Replica, key: str, saw: str) -> StoredObject:
    """The object, if it is the version with the etag `saw`; empty: any. ObjectMissing, PreconditionFailed."""
    stored = await replica.read(key)
    if saw and stored.info.etag != saw:
        raise PreconditionFailed(key=key)
    return stored


async def rewrite(
    replica: Replica, clock: Clock, key: str, text: str, *, saw: str, agent: str, on_private: OnPrivate = unheard
) -> KeptVersion:
    """Replace a note or a memory. What its new front matter lacks is as before; its class of trust is judged anew.

    Raises ObjectMissing, PreconditionFailed when it is not the version that the caller `saw`, BadRequest for a text
    that is empty behind its front matter, NotText, TooLarge, NoSpace.
    """
    stored = await seen(replica, key, saw)
    raw, name, space = text.encode("utf-8", "surrogatepass"), key.rpartition("/")[2], key.partition("/")[0]
    form, meta = form_of(key), stored.info.meta or {}
    if says_nothing(raw):
        raise BadRequest(path=key, detail=f"there is nothing in the {form.noun}; remove it instead")
    former = Former(name, stored.data, meta)
    seal = partial(form.seal, raw, path=key, written_name=meta.get(META_NAME) or name, space=space, agent=agent)
    sealed = await aside(len(raw), partial(seal, now=clock.now(), former=former))
    if sealed.replaced:
        on_private(told(key, sealed.replaced))
    await seen(replica, key, stored.info.etag)  # others may have been here while it was sealed
    if form.noun == "memory":
        keep_version(replica, clock, stored)
    info, target = stored.info, f"{key.rpartition('/')[0]}/{form.renewed(name, sealed)}"
    if target != key:  # a memory has its end in its name
        info = replica.move(info, target, replaces=None)
    kept = {name: value for name, value in meta.items() if name != META_TRUST}
    now = replica.save(target, sealed.data, meta={**kept, **sealed.meta}, base=info, by_caller=False)
    return KeptVersion(key, stored.data, meta, now)


async def remove(replica: Replica, key: str, *, saw: str) -> KeptVersion:
    """Remove a note. ObjectMissing, PreconditionFailed as `seen`, NoSpace."""
    stored = await seen(replica, key, saw)
    replica.remove(key, base=stored.info, by_caller=False)
    return KeptVersion(key, stored.data, stored.info.meta or {})


async def put_back(replica: Replica, kept: KeptVersion) -> None:
    """Put a version back, as a write of its own. PreconditionFailed when what replaced it was replaced by others, and
    AlreadyExists when something has its name.
    """
    if kept.now is not None:
        await seen(replica, kept.now.key, kept.now.etag)
    there = replica.names.now(kept.key)
    if there is not None and (kept.now is None or kept.now.key != kept.key):
        raise AlreadyExists(path=kept.key)
    replica.save(kept.key, kept.data, meta=kept.meta, base=there, by_caller=False)
    if kept.now is not None and kept.now.key != kept.key:
        replica.remove(kept.now.key, base=kept.now, by_caller=False)
