"""What one digest works from: the notes that no digest has read, and memories about the same things.

Owns which notes are new (the newest digest in the ledger has the marks of all notes that were read), and which memories
the model is shown, so that it does not repeat them. Refuses to read all memories: only the newest are read. Trio thread
only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from livememfs.cache.replica import Replica
from livememfs.errors import NotText
from livememfs.memories import proposals
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.records.ledger import digest_mark
from livememfs.records.memory import Memory
from livememfs.records.space import Meta
from livememfs.records.trust import USUAL, Trust, trust_of
from livememfs.runs.coverage import words
from livememfs.runs.inputs import Inputs, NoteChoice, leave_out_late, read_meta
from livememfs.runs.ledger import newest_digest
from livememfs.runs.notes import LiveNote, note_objects, read_notes, read_versions
from livememfs.runs.options import BY_DIGEST
from livememfs.runs.taken import named
from livememfs.spaces.objects import wait_for_notes
from livememfs.store.base import ObjectInfo
from livememfs.text.size import tokens

LOOKED_AT = 200
"""Most memories that are compared with the notes; the newest ones."""
SHOWN = 40
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class KnownMemory:
    """A memory of the space. `key` is relative to the space, `trust` says whose words it has."""

    key: str
    type: str
    content: str
    subjects: tuple[str, ...] = ()
    trust: Trust = USUAL

    @property
    def collection(self) -> str:
        """`memories`, `self` or `goals`."""
        return self.key.partition("/")[0]


@dataclass(frozen=True)
class DigestInputs(Inputs):
    """Everything a digest knows of its space.

    :known:    memories that share words with the notes, the newest first
    :taken:    ids of all memories
    :digested: marks of the notes that digests have read before, the oldest first
    :there:    marks of all notes in `live/`
    :room:     tokens that `known` may take of a request
    """

    known: tuple[KnownMemory, ...] = ()
    taken: frozenset[str] = frozenset()
    digested: tuple[str, ...] = ()
    there: frozenset[str] = frozenset()
    room: int = 0


def takes_notes(meta: Meta) -> bool:
    """Whether digests take the notes of a space out of `live/`."""
    return set(meta.distil) == {BY_DIGEST}


async def gather_new(replica: Replica, space: str, choice: NoteChoice) -> DigestInputs:
    """Read the space. Without notes for this run nothing else is read.

    Raises NotFound when there is no such space, LiveMemError when the newest digest cannot be read.
    """
    await wait_for_notes(replica, space)
    meta, meta_etag = await read_meta(replica, space)
    digested = await marks(replica, space)
    objects = await note_objects(replica, space)
    fresh = unread(objects, digested)
    if takes_notes(meta):  # a note that was read and is still there may be a late copy
        new = {info.key for info in fresh}
        fresh += await named(replica, space, [info for info in objects if info.key not in new])
    waiting, unreadable = await read_notes(replica, fresh)
    waiting, late = await leave_out_late(replica, space, waiting, choice)
    waiting = [live for live in waiting if digest_mark(live.key, live.etag) not in digested]
    notes, remaining = choice.of(waiting)
    there = frozenset(digest_mark(info.key, info.etag) for info in objects)
    memories = await _newest_memories(replica, space, choice.now) if notes else []
    related = await _related(replica, memories, notes, choice.now)
    if notes and meta.proposals:
        related = (*await _proposed(replica, space, choice.now), *related)
    known = within(related, choice.known)
    return DigestInputs(
        space,
        meta,
        meta_etag,
        notes=notes,
        remaining=remaining,
        unreadable=unreadable,
        ledger=choice.ledger,
        late=late,
        now=choice.now,
        known=known,
        taken=frozenset(map(_id_of, memories)),
        digested=digested,
        there=there,
        room=choice.known,
    )


async def marks(replica: Replica, space: str) -> tuple[str, ...]:
    """The marks of the notes that digests have read, the oldest first. LiveMemError when they cannot be read.

    Without them a digest would store everything again, so a digest that cannot be read is an error.
    """
    last = await newest_digest(replica, space)
    return last.digested if last is not None else ()


def unread(objects: Iterable[ObjectInfo], digested: Iterable[str]) -> list[ObjectInfo]:
    """The notes, of these, that no digest has read in this version."""
    known = frozenset(digested)
    return [info for info in objects if digest_mark(info.key, info.etag) not in known]


# --- what is known ------------------------------------------------------------------------------------------------


async def _newest_memories(replica: Replica, space: str, now: datetime) -> list[ObjectInfo]:
    """The memories of a space as the bucket lists them now, the newest first."""
    infos: list[ObjectInfo] = []
    for collection in keys.COLLECTIONS:
        level = await replica.names.listing(f"{space}/{collection}/", fresh=True)
        infos += [info for info in level.objects.values() if keys.parse(info.key).kind == "memory"]
    there = (info for info in infos if not keys.has_ended(info.key, now))
    return sorted(there, key=_id_of, reverse=True)


def _id_of(info: ObjectInfo) -> str:
    return id_of(info.key.rpartition("/")[2])


async def _related(
    replica: Replica, memories: list[ObjectInfo], notes: Iterable[LiveNote], now: datetime
) -> tuple[KnownMemory, ...]:
    """Those of the newest memories that share most words with the notes, the newest first."""
    newest = memories[:LOOKED_AT]
    contents = await read_versions(replica, newest)
    text = "\n".join(f"{live.note.body}\n{' '.join(live.note.tags)}" for live in notes)
    words_of_notes, every_word = words(text), set(_WORD.findall(text.casefold()))
    shared: dict[KnownMemory, int] = {}
    for info in newest:
        known = _known(info.key, contents[info.key], now) if info.key in contents else None
        if known is not None:
            # A subject counts however short it is: it may be a name.
            subjects = set(_WORD.findall(" ".join(known.subjects).casefold()))
            shared[known] = len(words(known.content) & words_of_notes | subjects & every_word)
    best = sorted((known for known in shared if shared[known]), key=lambda known: -shared[known])[:SHOWN]
    return tuple(known for known in shared if known in best)


async def _proposed(replica: Replica, space: str, now: datetime) -> tuple[KnownMemory, ...]:
    """The newest memories that wait for a person: what is proposed need not be proposed again."""
    found = [proposal for _, proposal in await proposals.waiting(replica, space)]
    each = (
        _known(f"{space}/{proposal.target}", proposal.content.encode("utf-8", "backslashreplace"), now)
        for proposal in found
        if proposal.folder in keys.COLLECTIONS
    )
    return tuple(known for known in each if known is not None)[-SHOWN:][::-1]


def within(known: Sequence[KnownMemory], room: int) -> tuple[KnownMemory, ...]:
    """The first of these memories, as many as fit into `room` tokens."""
    chosen: list[KnownMemory] = []
    for memory in known:
        room -= tokens(memory.content)
        if room < 0:
            break
        chosen.append(memory)
    return tuple(chosen)


def _known(key: str, data: bytes, now: datetime) -> KnownMemory | None:
    parsed = keys.parse(key)
    collection, _, name = parsed.name.partition("/")
    with suppress(NotText):
        memory = Memory.parse(data, path=key, collection=collection, name=name)
        if memory.is_there(now):
            trust = trust_of(None, memory.said_of_trust)  # without its stamp: a digest is told of no class too high
            return KnownMemory(parsed.name, memory.type, memory.content.strip(), memory.subjects, trust)
    return None
