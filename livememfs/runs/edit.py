"""Changing bank files or rules by hand, as a run of its own: so that a person can mend what a model wrote.

Owns the course of an edit: under the lease of the space, with a backup, committed to the ledger with the name of who
asked for it, and carried out like any run. So a crash leaves all of it or nothing, and an undo takes it back. Refuses
to replace another version than the caller has seen, if they say which. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.concurrency import aside, for_each
from livememfs.errors import LiveMemError, NotFound, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.ledger import MOST_LINES, Entry, Part, Write
from livememfs.records.trust import USUAL, Trust, check_raise, stamp, trust_of
from livememfs.runs.apply import carry_out, finish_open
from livememfs.runs.inputs import parsed_meta
from livememfs.runs.ledger import commit
from livememfs.runs.origins import own_text
from livememfs.spaces import backups
from livememfs.spaces.describe import require_space
from livememfs.spaces.lease import Leases
from livememfs.spaces.objects import content, decode_text
from livememfs.store.base import ObjectInfo, StoredObject
from livememfs.text.markdown import Document
from livememfs.text.outgoing import Outgoing, outgoing

log = structlog.get_logger("livememfs.runs")

_BANK = f"{keys.BANK}/"


@dataclass(frozen=True)
class Replacement:
    """What becomes of one object.

    :key:     relative to the space: `bank/...` or `_rules.md`
    :content: the new text; None: the object is removed
    :saw:     the etag of the version that the caller has read; empty: whatever is there is replaced
    :trust:   the class that a person gives a bank file; None: it keeps that of the version it replaces
    """

    key: str
    content: str | None
    saw: str = ""
    trust: Trust | None = None


@dataclass(frozen=True)
class _Replaced:
    """A change and the object that it replaces; None for a new one."""

    change: Replacement
    old: StoredObject | None

    @property
    def was(self) -> str | None:
        """The text that is replaced; None without one, or if it is no UTF-8: then only the backup has it."""
        try:
            return None if self.old is None else self.old.data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    @property
    def changes(self) -> bool:
        """Whether anything becomes another."""
        new = self.change.content
        return (None if new is None else new.encode()) != (None if self.old is None else self.old.data)

    @property
    def write(self) -> Write:
        """The write of the ledger's entry."""
        before = self.old.info.etag if self.old else None
        return Write(self.change.key, before, self.change.content, was=self.was, meta=stamp(self.trust))

    @property
    def trust(self) -> Trust:
        """The class of the new version."""
        was = trust_of(self.old.info.meta, {}) if self.old is not None else USUAL
        return self.change.trust if self.change.trust is not None else was


async def edit(
    replica: Replica,
    clock: Clock,
    leases: Leases,
    host: str,
    space: str,
    changes: Sequence[Replacement],
    by: str,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> Entry | None:
    """Make all these changes or none. Returns the run; None when everything is so already.

    :host:   this machine's name, for the ledger
    :by:     who asked for it
    :report: called with each phase: waiting, backing up, writing, removing

    Raises NotFound without the space, PreconditionFailed when a version is not the one that the caller has read,
    LeaseLost, and the store's failures. Nothing has changed then, unless the message says that the run is committed.
    """
    started = trio.current_time()
    await require_space(replica, space)
    report("waiting for its turn")
    async with leases.hold(space) as held:
        last = await finish_open(replica, clock, space)
        replaced = [item for item in [await _read(replica, space, change) for change in changes] if item.changes]
        if not replaced:
            return None
        report("backing up")
        backup = await backups.create(replica, clock, space, automatic=True)
        record, number = await _record(replica, space, last.number if last else 0)
        bank = await _bank(replica, space)
        about = await aside(sum(map(len, bank.values())), partial(_about, replaced, bank))
        entry = Entry(
            number=number,
            space=space,
            kind="edit",
            committed_at=clock.now(),
            host=host,
            fence=held.fence,
            by=by,
            writes=(*(item.write for item in replaced), record),
            parts=about.parts,
            outgoing=about.outgoing[:MOST_LINES],
            backup=backup.stamp,
            metrics={**about.figures, "duration_seconds": round(trio.current_time() - started, 3), "ledger": number},
        )
        await held.check()
        report("writing")
        await commit(replica, entry)
        await _carry_out(replica, clock, entry, report)
        with suppress(LiveMemError):
            await backups.prune(replica, space)
    log.info("edited", space=space, run=number, files=len(replaced))
    return entry.applied(clock.now())


async def vouch(
    replica: Replica, clock: Clock, leases: Leases, host: str, space: str, file: str, trust: Trust, by: str
) -> Entry | None:
    """Give a bank file another class, as an edit; None when it has it. `by` names an agent or a person.

    Raises NotFound without the file, NotPermitted for an agent that would raise it, NotText, and as `edit`.
    """
    key = keys.bank_key(space, file)
    try:
        stored = await replica.read(key, fresh=True)
    except ObjectMissing:
        raise NotFound(path=key) from None
    was = trust_of(stored.info.meta, {})
    check_raise(key, was, trust, by)
    if trust is was:
        return None
    text = decode_text(stored.data, key)
    # With the same bytes it would be the same version, and no index would read it again.
    text = text[:-1] if text.endswith("\n\n") else text + "\n"
    change = Replacement(f"{_BANK}{file}", text, stored.info.etag, trust)
    return await edit(replica, clock, leases, host, space, [change], by)


async def _read(replica: Replica, space: str, change: Replacement) -> _Replaced:
    key = f"{space}/{change.key}"
    try:
        old: StoredObject | None = await replica.read(key, fresh=True)
    except ObjectMissing:
        old = None
    if change.saw and (old is None or old.info.etag != change.saw):
        raise PreconditionFailed(key=key)
    return _Replaced(change, old)


async def _bank(replica: Replica, space: str) -> dict[str, str]:
    """The text of each bank file, by name."""
    infos = [info for info in await replica.names.walk(keys.bank_prefix(space)) if keys.parse(info.key).kind == "bank"]
    texts: dict[str, str] = {}

    async def look(info: ObjectInfo) -> None:
        data = await content(replica, info)
        texts[keys.parse(info.key).name] = (data or b"").decode("utf-8", "replace")

    await for_each(infos, look)
    return texts


async def _record(replica: Replica, space: str, last: int) -> tuple[Write, int]:
    """The write of `_meta.json`, which has only the number of the run anew; and that number."""
    stored = await replica.read(keys.meta_key(space), fresh=True)
    meta = parsed_meta(stored)
    number = max(meta.ledger, last) + 1
    return Write(keys.META, stored.info.etag, replace(meta, ledger=number).render().decode()), number


async def _carry_out(replica: Replica, clock: Clock, entry: Entry, report: Callable[[str], None]) -> None:
    """Carry the edit out. LiveMemError when not all of it could be written yet."""
    try:
        await carry_out(replica, clock, entry, report)
    except LiveMemError as error:
        raise LiveMemError(
            f"run {entry.number} of {entry.space} is committed, and not all of it could be written yet: {error}; "
            "the next run of the space, or a mount of it, does the rest"
        ) from error


# --- what is said of it ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _About:
    parts: tuple[Part, ...]
    outgoing: tuple[Outgoing, ...]
    figures: Mapping[str, int]


def _about(replaced: Sequence[_Replaced], before: Mapping[str, str]) -> _About:
    """The parts that change, the lines that leave the bank `before`, and the figures."""
    bank = [item for item in replaced if item.change.key.startswith(_BANK)]
    written = {_name(item): item.change.content for item in bank}
    after = {name: text for name, text in {**before, **written}.items() if text is not None}
    gone = outgoing(before, after)
    created = sum(item.old is None for item in bank)
    removed = sum(item.change.content is None for item in bank)
    figures = {
        "bank_files_updated": len(bank) - created - removed,
        "bank_files_created": created,
        "bank_files_removed": removed,
        **{f"lines_{fate}": sum(line.fate == fate for line in gone) for fate in ("moved", "reworded", "dropped")},
    }
    parts = [part for item in bank if item.change.content is not None for part in _parts(item)]
    return _About(tuple(parts), gone, figures)


def _parts(item: _Replaced) -> list[Part]:
    """The sections of a file that have other text than before. No note is named: a person wrote them."""
    before, after = Document(item.was or ""), Document(item.change.content or "")
    known = {own_text(before, section) for section in before.root.walk()}
    return [
        Part(_name(item), section.path, ()) for section in after.root.walk() if own_text(after, section) not in known
    ]


def _name(item: _Replaced) -> str:
    return item.change.key.removeprefix(_BANK)
