"""What taking back a run means for each object of a space: the entry of an undo, before it is committed.

Owns the rule for notes. The notes that the run took come back. Notes that later runs took come back too, in their last
version: the undo takes the runs back, not what agents wrote. Notes that an undo had put back are removed again, unless
somebody has edited them. Notes that a digest took stay away: they are memories now, and no undo touches those. All else
in `live/` stays. Refuses to write anything, and to go on without the backup that a note needs. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import LiveMemError, NotText, ObjectMissing
from livememfs.records import keys
from livememfs.records.ledger import Entry, NoteEntry, Write
from livememfs.records.note import Note
from livememfs.records.space import Meta
from livememfs.runs.entry import first_line
from livememfs.runs.inputs import parsed_meta
from livememfs.runs.undo.restore import OF_ONE_VERSION
from livememfs.spaces.backup_list import Backup, content_of, list_backups
from livememfs.store.base import ObjectInfo
from livememfs.text.times import iso

T = TypeVar("T")
R = TypeVar("R")

Objects = Mapping[str, ObjectInfo]
"""Objects by their names relative to a space."""

_KINDS: tuple[keys.Kind, ...] = ("synthesis", "note", "bank")
_LIVE, _BANK = f"{keys.LIVE}/", f"{keys.BANK}/"


@dataclass(frozen=True)
class Taking:
    """What an undo does: its writes without that of `_meta.json`, and the notes that it removes.

    :notes: how many notes come back
    :left:  how many are in `live/` afterwards
    """

    writes: tuple[Write, ...]
    removes: tuple[NoteEntry, ...]
    notes: int
    left: int


@dataclass
class _Trail:
    """What the runs to take back did to one note.

    :put_first: an undo put it back before one of these runs took it
    :taken:     the last run that took it
    :put:       the write by which the last undo put it back
    """

    put_first: bool
    taken: Entry | None = None
    put: Write | None = None


class TakeBack:
    """One undo: of `since[0]` and all later runs of a space, given in ascending order."""

    def __init__(self, replica: Replica, space: str, since: Sequence[Entry]) -> None:
        self._replica, self._space = replica, space
        self._since = [run for run in since if run.changes_bank]
        # Rules that nobody changed stay: a consolidation may have sealed the default ones after its backup.
        rules = any(write.key == keys.RULES for run in self._since for write in run.writes)
        self._kinds = (*_KINDS, *(("rules",) if rules else ()))
        others = (run for run in since if not run.changes_bank)
        self._stay_away = {note.key.removeprefix(f"{space}/") for run in others for note in run.removes}
        self._backups: dict[str, Backup] = {}
        self._held: dict[str, Objects] = {}

    # --- the backups ----------------------------------------------------------------------------------------

    async def find_backups(self) -> None:
        """List the backups. LiveMemError when the one of the first run is gone or incomplete."""
        self._backups = {backup.stamp: backup for backup in await list_backups(self._replica, self._space)}
        run = self._since[0]
        why = f"run {run.number} of {self._space} cannot be taken back"
        if not run.backup:
            raise LiveMemError(f"{why}: no backup was made before it")
        if run.backup not in self._backups:
            raise LiveMemError(f"{why}: its backup {run.backup} is gone")
        if not self._backups[run.backup].complete:
            raise LiveMemError(f"{why}: its backup {run.backup} is incomplete")

    async def record(self) -> Meta:
        """`_meta.json` as it was before the run. LiveMemError when it cannot be read."""
        prefix = self._backups[self._since[0].backup].prefix
        return parsed_meta(await self._replica.read(prefix + keys.META, fresh=True))

    async def _objects_of(self, stamp: str) -> Objects | None:
        """The objects of a backup; None when it is gone or incomplete."""
        backup = self._backups.get(stamp)
        if backup is None or not backup.complete:
            return None
        if stamp not in self._held:
            self._held[stamp] = self._named(await self._replica.names.walk(backup.prefix), backup.prefix)
        return self._held[stamp]

    def _named(self, infos: Iterable[ObjectInfo], prefix: str) -> dict[str, ObjectInfo]:
        """The objects that an undo brings back or removes, by their names in the space."""
        named = {info.key[len(prefix) :]: info for info in infos}
        return {name: info for name, info in named.items() if keys.parse(f"{self._space}/{name}").kind in self._kinds}

    # --- all objects ----------------------------------------------------------------------------------------

    async def taking(self) -> Taking:
        """All that the undo does, by what is in the space now. PreconditionFailed when that changes meanwhile."""
        base = await self._objects_of(self._since[0].backup)
        assert base is not None  # `find_backups` came first
        now = self._named(await content_of(self._replica, self._space), f"{self._space}/")
        trails = self._trails()
        back = await self._coming_back(base, now, trails)
        removes = await self._going(base, now, trails)
        others = sorted(name for name in {*base, *now} if not name.startswith(_LIVE))
        wanted: list[tuple[str, ObjectInfo | None, ObjectInfo | None]] = [(name, back[name], None) for name in back]
        wanted += [(name, base.get(name), now.get(name)) for name in others]
        changes = await _in_order(wanted, lambda versions: self._write(*versions))
        left = sum(name.startswith(_LIVE) for name in now) + len(back) - len(removes)
        writes = [write for write in changes if write is not None]
        # Notes first: otherwise a crash could leave what they say neither in the bank nor in `live/`.
        return Taking(tuple(sorted(writes, key=_place)), tuple(removes), len(back), left)

    async def _write(self, name: str, then: ObjectInfo | None, now: ObjectInfo | None) -> Write | None:
        """The write that makes one object as it was; None when nothing has to change."""
        if then is not None and now is not None and (then.etag, then.size) == (now.etag, now.size):
            return None
        old = await self._replica.read_version(now) if now is not None else None
        new = await self._replica.read_version(then) if then is not None else None
        if old == new:
            return None
        before, was = now.etag if now is not None else None, _text(old)
        text = _text(new)
        copy = then.key if then is not None and text is None else ""
        kept = name.startswith((_LIVE, f"{keys.BANK}/", keys.SYNTHESIS))
        meta = await self._marks(then) if then is not None and kept else {}
        return Write(name, before, text, copy, was, meta)

    async def _marks(self, then: ObjectInfo) -> dict[str, str]:
        """The user metadata of a note or a bank file: without it, the name under which the note was written would not
        work any more, and what a tool gave out would pass for an agent's words.
        """
        meta = (await self._replica.names.stat(then.key, fresh=True)).meta or {}
        return {name: value for name, value in meta.items() if name not in OF_ONE_VERSION}

    # --- notes ----------------------------------------------------------------------------------------------

    def _trails(self) -> dict[str, _Trail]:
        """What the runs did to each note that they took or put back, by its name in the space."""
        trails: dict[str, _Trail] = {}
        for run in self._since:
            for note in run.removes:
                trail = trails.setdefault(note.key.removeprefix(f"{self._space}/"), _Trail(put_first=False))
                trail.taken = run
            for write in run.writes:
                if write.key.startswith(_LIVE):
                    trails.setdefault(write.key, _Trail(put_first=True)).put = write
        return trails

    async def _coming_back(self, base: Objects, now: Objects, trails: Mapping[str, _Trail]) -> dict[str, ObjectInfo]:
        """The notes that are missing and come back, by name, with the object that has their bytes."""
        wanted = {name for name in base if name.startswith(_LIVE)}
        wanted |= {name for name, trail in trails.items() if not trail.put_first}
        sources: dict[str, ObjectInfo] = {}
        for name in wanted - now.keys() - self._stay_away:
            trail = trails.get(name)
            held: Objects | None = base
            if trail is not None and trail.taken is not None:
                held = await self._objects_of(trail.taken.backup)
                if held is None and name not in base:
                    raise LiveMemError(
                        f"run {self._since[0].number} of {self._space} cannot be taken back: the notes that run "
                        f"{trail.taken.number} took in since are in its backup alone, which is gone or incomplete"
                    )
            info = (held or {}).get(name) or base.get(name)
            if info is not None:  # otherwise somebody removed it by hand before that run
                sources[name] = info
        return sources

    async def _going(self, base: Objects, now: Objects, trails: Mapping[str, _Trail]) -> list[NoteEntry]:
        """The notes that are there only because an undo put them back, in the versions that it put."""
        candidates = [
            (now[name], trail.put)
            for name, trail in sorted(trails.items())
            if trail.put_first and trail.put is not None and name in now and name not in base
        ]
        entries = await _in_order(candidates, lambda candidate: self._gone(*candidate))
        return [entry for entry in entries if entry is not None]

    async def _gone(self, info: ObjectInfo, put: Write) -> NoteEntry | None:
        """A note to remove; None when somebody has changed it since, or when that cannot be found out."""
        data = await self._replica.read_version(info)
        try:
            was_put = (await self._replica.read(put.copy)).data if put.copy else (put.content or "").encode()
            note = Note.parse(data, path=info.key, name=keys.parse(info.key).name)
        except (ObjectMissing, NotText):
            return None
        if data != was_put:
            return None
        digest, when = sha256(data).hexdigest(), iso(note.timestamp)
        return NoteEntry(info.key, info.etag, digest, note.agent, when, first_line(note))


def _place(write: Write) -> tuple[int, str]:
    first = 0 if write.key.startswith(_LIVE) else 1 if write.key.startswith(_BANK) else 2
    return first, write.key


def _text(data: bytes | None) -> str | None:
    """Bytes as UTF-8 text; None when there are none, or when they are no text."""
    try:
        return data.decode("utf-8") if data is not None else None
    except UnicodeDecodeError:
        return None


async def _in_order(items: Sequence[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """Do `work` for all items side by side; its results in the order of the items."""
    results: dict[int, R] = {}

    async def work_on(number: int) -> None:
        results[number] = await work(items[number])

    await for_each(range(len(items)), work_on)
    return [results[number] for number in range(len(items))]
