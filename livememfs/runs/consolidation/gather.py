"""What one consolidation works from: rules, last synthesis, live notes and bank, each with the version that was read
(consolidation 2, step 1); and reading notes, as a digest does too.

Owns the choice of notes and the sealing of default rules. Refuses to guess: a note that changed while it was read waits
for the next run, a bank file that did ends this one. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

import structlog

from livememfs.cache.removals import ids_of
from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import NotFound, NotText, ObjectMissing, ObjectUnreadable, PreconditionFailed
from livememfs.records import keys
from livememfs.records.metadata import META_OP
from livememfs.records.names import is_litter
from livememfs.records.note import Note
from livememfs.records.rules import DEFAULT, templates
from livememfs.records.space import Meta, Synthesis, parse_synthesis
from livememfs.runs.consolidation.excerpt import Excerpt
from livememfs.runs.options import KNOWN_TOKENS
from livememfs.runs.taken import remove, sift
from livememfs.spaces.counts import put_right
from livememfs.spaces.objects import put_new, wait_for_notes
from livememfs.store.base import ObjectInfo, StoredObject

log = structlog.get_logger("livememfs.runs")


@dataclass(frozen=True)
class LiveNote:
    """A note as it was read. `name` is relative to `live/`, `sha256` is of its bytes, in hex.

    :part:     which part of the note its text is, where it goes out in several; else empty
    :ids:      of the writes that it comes from, and `op` that of this version; empty where they are not told
    :modified_ns: when the bucket got this version, in nanoseconds since the epoch, 0 when it does not tell
    :taken_by: the run that took an earlier version of it; 0: none
    :new:      the lines that this version has and that one had not; None where that is not known
    """

    name: str
    key: str
    etag: str
    note: Note
    sha256: str = ""
    ids: tuple[str, ...] = ()
    op: str = ""
    modified_ns: int = 0
    taken_by: int = 0
    new: str | None = None
    part: str = ""

    @property
    def unread(self) -> Note:
        """What no run has taken in yet."""
        return self.note if self.new is None else replace(self.note, body=self.new)


@dataclass(frozen=True)
class BankFile:
    """A bank file as it was read. `name` is relative to `bank/`; `text` is None when it is not UTF-8."""

    name: str
    etag: str
    text: str | None


@dataclass(frozen=True)
class Choice:
    """Which notes a run takes.

    :max_notes: the oldest so many
    :now:       when the run began
    :agent:     only notes whose front matter names exactly this agent
    :seal:      write the default rules when there are none, and remove late copies of notes that were taken before
                (False: change nothing, for a dry run)
    :ledger:    number of the last run in the ledger, 0 before the first
    :known:     tokens of what is known already that a request has room for, where a run shows that
    """

    max_notes: int
    now: datetime
    agent: str | None = None
    seal: bool = False
    ledger: int = 0
    known: int = KNOWN_TOKENS

    def of(self, found: Sequence[LiveNote]) -> tuple[tuple[LiveNote, ...], int]:
        """The notes that the run takes, of these, and how many are left over."""
        chosen = [live for live in found if self.agent is None or live.note.agent == self.agent]
        return tuple(chosen[: self.max_notes]), max(0, len(chosen) - self.max_notes)


@dataclass(frozen=True)
class Inputs:
    """Everything a run knows of its space.

    :notes:      the notes of this run, oldest first; the model knows them by their number from 1
    :remaining:  notes that would have qualified and were beyond the limit
    :unreadable: names in `live/` that are not UTF-8 text
    :ledger:     number of the last run in the ledger, 0 before the first
    :late:       names of notes that were taken before and that a late upload had stored again
    :synthesis_text: the whole object, None when there is none or it is no text
    :excerpt:    what a request shows of the bank; None: all of it
    :now:        when the run began
    """

    space: str
    meta: Meta
    meta_etag: str
    rules: str = ""
    synthesis: Synthesis | None = None
    synthesis_etag: str | None = None
    notes: tuple[LiveNote, ...] = ()
    remaining: int = 0
    unreadable: tuple[str, ...] = ()
    bank: Mapping[str, BankFile] = field(default_factory=dict)
    ledger: int = 0
    synthesis_text: str | None = None
    excerpt: Excerpt | None = None
    late: tuple[str, ...] = ()
    now: datetime | None = None

    @property
    def number(self) -> int:
        """The number of this run in the ledger, from 1; none is ever used twice, whatever was removed there."""
        return max(self.meta.ledger, self.ledger) + 1

    @property
    def consolidation(self) -> int:
        """Which consolidation of the space this is, from 1: those of other programs count, what was undone does not."""
        return self.meta.consolidation_count + 1

    @property
    def size(self) -> int:
        """Characters of notes and bank."""
        bank = sum(len(file.text or "") for file in self.bank.values())
        return bank + sum(len(live.note.body) for live in self.notes)

    def bank_texts(self) -> dict[str, str]:
        """The bank's texts by name, without files that are not text."""
        return {name: file.text for name, file in self.bank.items() if file.text is not None}


async def gather(replica: Replica, space: str, choice: Choice) -> Inputs:
    """Read the space. Without notes for this run nothing but the notes and `_meta.json` is looked at.

    Raises NotFound when there is no such space, PreconditionFailed when the bank changed meanwhile.
    """
    await wait_for_notes(replica, space)
    meta, meta_etag = await read_meta(replica, space)
    found, unreadable = await read_notes(replica, await note_objects(replica, space))
    found, late = await leave_out_late(replica, space, found, choice)
    notes, remaining = choice.of(found)
    if not notes:
        return Inputs(space, meta, meta_etag, unreadable=unreadable, ledger=choice.ledger, late=late)
    meta = await put_right(replica, space, meta)
    rules = await _read_rules(replica, space, seal=choice.seal)
    synthesis, synthesis_etag, synthesis_text = await _read_synthesis(replica, space)
    bank = await _read_bank(replica, space)
    read = (rules, synthesis, synthesis_etag, notes, remaining, unreadable, bank, choice.ledger, synthesis_text)
    return Inputs(space, meta, meta_etag, *read, late=late, now=choice.now)


async def read_meta(replica: Replica, space: str) -> tuple[Meta, str]:
    key = keys.meta_key(space)
    try:
        found = await replica.read(key, fresh=True)
    except ObjectMissing:
        raise NotFound(path=f"space {space}") from None
    try:
        return Meta.parse(found.data), found.info.etag
    except ValueError as error:
        raise ObjectUnreadable(error, path=key) from error


async def _read_rules(replica: Replica, space: str, *, seal: bool) -> str:
    key = keys.rules_key(space)
    try:
        found = await replica.read(key, fresh=True)
    except ObjectMissing:
        text = templates()[DEFAULT]
        if not seal:
            return text
        try:
            await put_new(replica, key, text.encode())
        except PreconditionFailed:  # somebody sealed theirs first
            return await _read_rules(replica, space, seal=seal)
        log.info("default rules sealed", space=space)
        return text
    try:
        return found.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(path=key, detail=f"at offset {error.start}") from error


async def _read_synthesis(replica: Replica, space: str) -> tuple[Synthesis | None, str | None, str | None]:
    try:
        found = await replica.read(keys.synthesis_key(space), fresh=True)
    except ObjectMissing:
        return None, None, None
    try:
        return parse_synthesis(found.data), found.info.etag, found.data.decode("utf-8")
    except NotText:  # it is overwritten by this run; nothing in it can be used
        return None, found.info.etag, None


async def note_objects(replica: Replica, space: str) -> list[ObjectInfo]:
    """The notes of a space as they are listed now."""
    return [info for info in await replica.names.walk(keys.live_prefix(space)) if is_note(info.key)]


async def leave_out_late(
    replica: Replica, space: str, found: Sequence[LiveNote], choice: Choice
) -> tuple[list[LiveNote], tuple[str, ...]]:
    """The notes without those that were taken before, which a run removes and a dry run does not; their names."""
    sifted = await sift(replica, space, found)
    if choice.seal:
        await remove(replica, sifted.late)
    return list(sifted.notes), tuple(live.name for live in sifted.late)


async def read_notes(replica: Replica, infos: Sequence[ObjectInfo]) -> tuple[list[LiveNote], tuple[str, ...]]:
    """These notes in order of their time stamps, and the names that are not text."""
    contents = await _read_whole(replica, infos)
    notes: list[LiveNote] = []
    unreadable: list[str] = []
    for info in infos:
        name = keys.parse(info.key).name
        whole = contents.get(info.key)
        if whole is None:
            continue  # edited or removed just now
        try:
            note = Note.parse(whole.data, path=info.key, name=name)
            digest, meta = sha256(whole.data).hexdigest(), whole.info.meta
            ids, op = ids_of(meta), (meta or {}).get(META_OP, "")
            notes.append(LiveNote(name, info.key, info.etag, note, digest, ids, op, info.modified_ns))
        except NotText:
            unreadable.append(name)
    notes.sort(key=_written)
    return notes, tuple(unreadable)


def _written(live: LiveNote) -> tuple[datetime, str, str]:
    """What notes are sorted by: their digits begin with the order in which those of one second were written."""
    named = keys.NoteName.parse(live.name)
    return live.note.timestamp, named.uid if named is not None else "", live.name


async def _read_whole(replica: Replica, infos: Sequence[ObjectInfo]) -> dict[str, StoredObject]:
    """The same as `read_versions`, with the user metadata, which comes with the content where it is not known."""
    found: dict[str, StoredObject] = {}

    async def read(info: ObjectInfo) -> None:
        with suppress(ObjectMissing, PreconditionFailed):
            if info.meta is not None:
                found[info.key] = StoredObject(info, await replica.read_version(info))
                return
            whole = await replica.read(info.key, fresh=True)
            if whole.info.etag == info.etag:
                found[info.key] = whole

    await for_each(infos, read)
    return found


def is_note(key: str) -> bool:
    """Whether this is the key of a note that runs read."""
    parsed = keys.parse(key)
    return parsed.kind == "note" and not is_litter(parsed.name)


async def _read_bank(replica: Replica, space: str) -> dict[str, BankFile]:
    infos = [info for info in await replica.names.walk(keys.bank_prefix(space)) if keys.parse(info.key).kind == "bank"]
    contents = await read_versions(replica, infos)
    bank: dict[str, BankFile] = {}
    for info in infos:
        if info.key not in contents:
            raise PreconditionFailed(key=info.key)
        name = keys.parse(info.key).name
        try:
            text: str | None = contents[info.key].decode("utf-8")
        except UnicodeDecodeError:
            text = None
        bank[name] = BankFile(name, info.etag, text)
    return bank


async def read_versions(replica: Replica, infos: Sequence[ObjectInfo]) -> dict[str, bytes]:
    """The contents of exactly these versions by key, read side by side. Versions that are gone are left out."""
    contents: dict[str, bytes] = {}

    async def read(info: ObjectInfo) -> None:
        with suppress(ObjectMissing, PreconditionFailed):
            contents[info.key] = await replica.read_version(info)

    await for_each(infos, read)
    return contents
