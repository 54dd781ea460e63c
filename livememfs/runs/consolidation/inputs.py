"""What one consolidation works from: rules, last synthesis, live notes and bank, each with the version that was read
(consolidation 2, step 1).

Owns the sealing of default rules. Refuses to guess: a bank file that changed while it was read ends the run. Trio
thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from livememfs.cache.replica import Replica
from livememfs.errors import NotText, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.rules import DEFAULT, templates
from livememfs.records.space import Synthesis, parse_synthesis
from livememfs.records.trust import USUAL, Trust, trust_of
from livememfs.runs.consolidation.excerpt import Excerpt
from livememfs.runs.inputs import Inputs, NoteChoice, leave_out_late, read_meta
from livememfs.runs.notes import note_objects, read_notes, read_whole
from livememfs.spaces.counts import put_right
from livememfs.spaces.objects import put_new, wait_for_notes

log = structlog.get_logger("livememfs.runs")


@dataclass(frozen=True)
class BankFile:
    """A bank file as it was read. `name` is relative to `bank/`; `text` is None when it is not UTF-8; `trust` is the
    class of the least of what was worked into it.
    """

    name: str
    etag: str
    text: str | None
    trust: Trust = USUAL


@dataclass(frozen=True)
class BankInputs(Inputs):
    """Everything a consolidation knows of its space.

    :synthesis_text: the whole object, None when there is none or it is no text
    :excerpt:        what a request shows of the bank; None: all of it
    :synthesis_trust: the class of the synthesis
    """

    rules: str = ""
    synthesis: Synthesis | None = None
    synthesis_etag: str | None = None
    synthesis_text: str | None = None
    bank: Mapping[str, BankFile] = field(default_factory=dict)
    excerpt: Excerpt | None = None
    synthesis_trust: Trust = USUAL

    @property
    def size(self) -> int:
        """Characters of notes and bank."""
        return super().size + sum(len(file.text or "") for file in self.bank.values())

    def bank_texts(self) -> dict[str, str]:
        """The bank's texts by name, without files that are not text."""
        return {name: file.text for name, file in self.bank.items() if file.text is not None}


async def gather(replica: Replica, space: str, choice: NoteChoice) -> BankInputs:
    """Read the space. Without notes for this run nothing but the notes and `_meta.json` is looked at.

    Raises NotFound when there is no such space, PreconditionFailed when the bank changed meanwhile.
    """
    await wait_for_notes(replica, space)
    meta, meta_etag = await read_meta(replica, space)
    waiting, unreadable = await read_notes(replica, await note_objects(replica, space))
    waiting, late = await leave_out_late(replica, space, waiting, choice)
    # A line from the web would hide its whole file from every session.
    notes, remaining = choice.of([live for live in waiting if meta.allow_web or live.trust > Trust.WEB])
    inputs = BankInputs(space, meta, meta_etag, notes, remaining, unreadable, choice.ledger, late, choice.now)
    if not notes:
        return inputs
    meta = await put_right(replica, space, meta)
    rules = await _read_rules(replica, space, seal=choice.seal)
    synthesis = await _read_synthesis(replica, space)
    return replace(
        inputs,
        meta=meta,
        rules=rules,
        **synthesis,
        bank=await _read_bank(replica, space),
    )


async def _read_rules(replica: Replica, space: str, *, seal: bool) -> str:
    key = keys.rules_key(space)
    try:
        rules = await replica.read(key, fresh=True)
    except ObjectMissing:
        text = templates()[DEFAULT]
        if not seal:
            return text
        try:
            await put_new(replica, key, text.encode())
        except PreconditionFailed:  # another host sealed its rules first
            return await _read_rules(replica, space, seal=seal)
        log.info("default rules sealed", space=space)
        return text
    try:
        return rules.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(path=key, detail=f"at offset {error.start}") from error


async def _read_synthesis(replica: Replica, space: str) -> dict[str, Any]:
    """The fields of BankInputs that concern it."""
    try:
        synthesis = await replica.read(keys.synthesis_key(space), fresh=True)
    except ObjectMissing:
        return {}
    read = {"synthesis_etag": synthesis.info.etag, "synthesis_trust": trust_of(synthesis.info.meta, {})}
    try:
        return {**read, "synthesis": parse_synthesis(synthesis.data), "synthesis_text": synthesis.data.decode("utf-8")}
    except NotText:  # this run overwrites it; nothing in it can be used
        return read


async def _read_bank(replica: Replica, space: str) -> dict[str, BankFile]:
    infos = [info for info in await replica.names.walk(keys.bank_prefix(space)) if keys.parse(info.key).kind == "bank"]
    objects = await read_whole(replica, infos)
    bank: dict[str, BankFile] = {}
    for info in infos:
        if info.key not in objects:
            raise PreconditionFailed(key=info.key)
        name = keys.parse(info.key).name
        try:
            text: str | None = objects[info.key].data.decode("utf-8")
        except UnicodeDecodeError:
            text = None
        bank[name] = BankFile(name, info.etag, text, trust_of(objects[info.key].info.meta, {}))
    return bank


async def check_unchanged(replica: Replica, inputs: BankInputs, changes: Mapping[str, str | None]) -> None:
    """PreconditionFailed when a writer without the lease has changed what was read; `changes`: ETags by bank file.

    This only saves work: the guarantee is the lease, and the condition on each write.
    """
    versions = {info.key: info.etag for info in await replica.names.walk(keys.bank_prefix(inputs.space))}
    for name, etag in changes.items():
        key = keys.bank_key(inputs.space, name)
        if versions.get(key) != etag:
            raise PreconditionFailed(key=key)
    for key, read in (
        (keys.synthesis_key(inputs.space), inputs.synthesis_etag),
        (keys.meta_key(inputs.space), inputs.meta_etag),
    ):
        if await _version(replica, key) != read:
            raise PreconditionFailed(key=key)


async def _version(replica: Replica, key: str) -> str | None:
    try:
        return (await replica.names.stat(key, fresh=True)).etag
    except ObjectMissing:
        return None
