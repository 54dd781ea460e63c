"""What a space's runs were, what its bank was after each, and where its parts came from: read from the ledger.

Owns the reading of the ledger for people. What is of the bank leaves digests out: they do not change it, and there may
be many. An entry never changes once it is carried out, so it is read once, and kept without its texts. Refuses to
change anything. An entry that cannot be read is reported and left out: one damaged object must not hide the others.
Trio thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from livememfs.cache.levels import Level
from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, NotFound, ObjectMissing
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.origins import origins, origins_page, without_source
from livememfs.runs.standing import standing
from livememfs.spaces.entries import Report, digests_in, entries_in, log_it, parsed, read_all
from livememfs.spaces.objects import content
from livememfs.store.base import ObjectInfo

KEPT_ENTRIES = 8
"""Entries that are kept whole: a reader of one file of a run reads the other files next."""
_BANK = f"{keys.BANK}/"


@dataclass(frozen=True)
class PastBankFile:
    """A bank file as it was, and where its bytes are. Sizes are bytes.

    The entry of `run` has the bytes: as the text that it wrote or, with `replaced`, as the text that was there before.
    Without a `run` the object `info` has them.
    """

    name: str
    size: int
    run: int = 0
    replaced: bool = False
    info: ObjectInfo | None = None


@dataclass(frozen=True)
class _Trace:
    """What a run did to one file, without the texts. `size` is after the run, `was` before it; None without a text."""

    size: int | None
    was: int | None
    copy: str
    created: bool


@dataclass(frozen=True)
class _KnownRun:
    """What is remembered of a run: its entry without the writes, and their traces by bank file."""

    etag: str
    entry: Entry | None
    files: Mapping[str, _Trace]


class History:
    """The ledger of one space, for readers.

    :window: how many of the newest runs are read unless the caller names an older one; None: all
    :fresh:  list the runs in the bucket each time, instead of trusting the catalog
    :report: called once for each entry that cannot be read
    """

    def __init__(
        self,
        replica: Replica,
        space: str,
        *,
        window: int | None = None,
        fresh: bool = False,
        report: Report = log_it,
    ) -> None:
        self._replica, self._space = replica, space
        self._window, self._fresh, self._report = window, fresh, report
        self._runs: dict[int, _KnownRun] = {}
        self._whole: OrderedDict[tuple[int, str], Entry] = OrderedDict()

    # --- the runs -------------------------------------------------------------------------------------------

    async def listed(self) -> dict[int, ObjectInfo]:
        """The entries within the window by number, ascending, without digests: these leave the bank as it was. No entry
        is read.
        """
        return self._newest(await self._listing())

    async def of_all_kinds(self) -> dict[int, ObjectInfo]:
        """As `listed`, with the digests."""
        return self._newest(entries_in((await self._level()).objects.values()))

    async def find(self, number: int) -> ObjectInfo:
        """The object of one run, within the window or not. NotFound. No entry is read."""
        info = (await self._listing()).get(number)
        if info is None:
            raise NotFound(path=f"run {number} of {self._space}")
        return info

    async def entry(self, number: int) -> Entry:
        """One run of any kind. NotFound; LiveMemError when it cannot be read."""
        info = await self._of_any_kind(number)
        kept = self._whole.get((number, info.etag))
        if kept is None:
            try:
                kept = parsed(await content(self._replica, info))
            except ValueError as error:
                raise LiveMemError(f"{info.key} cannot be read: {error}") from error
            self._whole[number, info.etag] = kept
            while len(self._whole) > KEPT_ENTRIES:
                self._whole.popitem(last=False)
        self._whole.move_to_end((number, info.etag))
        return kept

    async def outline(self, number: int) -> Entry | None:
        """One run of any kind without what it wrote, at no cost after `bank_after`; None when it cannot be read."""
        return (await self._known({number: await self._of_any_kind(number)}))[number].entry

    async def _of_any_kind(self, number: int) -> ObjectInfo:
        info = entries_in((await self._level()).objects.values()).get(number)
        if info is None:
            raise NotFound(path=f"run {number} of {self._space}")
        return info

    async def _level(self) -> Level:
        return await self._replica.names.listing(keys.ledger_prefix(self._space), fresh=self._fresh)

    async def _listing(self) -> dict[int, ObjectInfo]:
        level = await self._level()
        digests = set(digests_in(level.objects.values()))
        return {number: info for number, info in entries_in(level.objects.values()).items() if number not in digests}

    def _newest(self, infos: dict[int, ObjectInfo]) -> dict[int, ObjectInfo]:
        return infos if self._window is None else dict(list(infos.items())[-self._window :])

    async def _known(self, infos: Mapping[int, ObjectInfo]) -> dict[int, _KnownRun]:
        """What is remembered of these runs; new ones are read now, side by side."""
        known = self._runs
        unread = {n: info for n, info in infos.items() if n not in known or known[n].etag != info.etag}
        for number, entry in (await read_all(self._replica, unread, self._report)).items():
            known[number] = _KnownRun(infos[number].etag, *_remembered(entry))
        return {number: known[number] for number in infos}

    # --- the bank -------------------------------------------------------------------------------------------

    async def bank_after(self, number: int) -> dict[str, PastBankFile]:
        """The bank as it was after a run, by name, in the order of names. NotFound; LiveMemError for a damaged entry.

        For a run outside of the window all runs are read. A file whose bytes are nowhere any more is left out.
        """
        infos = await self._listing()
        if number not in infos:
            raise NotFound(path=f"run {number} of {self._space}")
        newest = self._newest(infos)
        runs = await self._known(newest if number in newest else infos)
        if runs[number].entry is None:
            raise LiveMemError(f"{infos[number].key} cannot be read: it is no entry of a ledger")
        last: dict[str, tuple[int, _Trace]] = {}  # by file: the last run up to `number` that wrote it
        later: dict[str, tuple[int, _Trace]] = {}  # by file: the first run after `number` that wrote it
        for n, run in runs.items():
            for name, trace in run.files.items():
                if n <= number:
                    last[name] = (n, trace)
                else:
                    later.setdefault(name, (n, trace))
        today = await self._bank_of_today()
        bank: dict[str, PastBankFile] = {}
        for name in sorted({*last, *later, *today}):
            past = await self._past(name, last.get(name), later.get(name), today.get(name))
            if past is not None:
                bank[name] = past
        return bank

    async def _past(
        self, name: str, last: tuple[int, _Trace] | None, later: tuple[int, _Trace] | None, today: ObjectInfo | None
    ) -> PastBankFile | None:
        """A file as the last run up to then wrote it; else as the first run after it found it; else as it is today."""
        candidates: list[ObjectInfo | None] = []
        if last is not None:
            run, trace = last
            if trace.size is not None:
                return PastBankFile(name, trace.size, run)
            if not trace.copy:
                return None
            candidates.append(await self._object(trace.copy))
        if later is not None:
            run, trace = later
            if last is None and trace.created:
                return None
            if last is None and trace.was is not None:
                return PastBankFile(name, trace.was, run, replaced=True)
            candidates.append(await self._in_backup_of(run, name))
        candidates.append(None if later else today)
        info = next((candidate for candidate in candidates if candidate is not None), None)
        return PastBankFile(name, info.size, info=info) if info is not None else None

    async def _in_backup_of(self, run: int, name: str) -> ObjectInfo | None:
        """The copy of a file in the backup that a run made first: a file that is no text is in no entry."""
        entry = self._runs[run].entry
        if entry is None or not entry.backup:
            return None
        return await self._object(f"{keys.backup_prefix(self._space, entry.backup)}{_BANK}{name}")

    async def _object(self, key: str) -> ObjectInfo | None:
        try:
            return await self._replica.names.stat(key)
        except ObjectMissing:
            return None

    async def _bank_of_today(self) -> dict[str, ObjectInfo]:
        bank: dict[str, ObjectInfo] = {}
        folders = [keys.bank_prefix(self._space)]
        while folders:
            prefix = folders.pop()
            level = await self._replica.names.listing(prefix, fresh=self._fresh)
            folders += [f"{prefix}{name}/" for name in level.folders]
            for info in level.objects.values():
                parsed = keys.parse(info.key)
                if parsed.kind == "bank":
                    bank[parsed.name] = info
        return bank

    async def content(self, past: PastBankFile) -> bytes:
        """The bytes of a file as it was. NotFound when they are nowhere any more."""
        if past.info is None:
            writes = {write.key: write for write in (await self.entry(past.run)).writes}
            write = writes[f"{_BANK}{past.name}"]
            return ((write.was if past.replaced else write.content) or "").encode("utf-8", "backslashreplace")
        data = await content(self._replica, past.info)
        if data is None:
            raise NotFound(path=past.info.key)
        return data

    async def wrote(self, file: str) -> list[int]:
        """The runs within the window that wrote or removed a bank file, ascending."""
        known = await self._known(await self.listed())
        return [number for number, run in known.items() if file in run.files]

    # --- where it came from ---------------------------------------------------------------------------------

    async def why(self, file: str) -> str:
        """Which notes each part of a bank file of today came from, as Markdown. NotFound without the file."""
        key = keys.bank_key(self._space, file)
        try:
            data = (await self._replica.read(key, fresh=self._fresh)).data
        except ObjectMissing:
            raise NotFound(path=key) from None
        known = await self._known(await self.listed())
        runs = standing(run.entry for run in known.values() if run.entry is not None)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = ""  # runs write text only: this file has no headings and no trail
        return origins_page(file, origins(text, file, runs), without_source(text, file, runs))


def _remembered(entry: Entry | None) -> tuple[Entry | None, dict[str, _Trace]]:
    if entry is None:
        return None, {}
    traces = {
        write.key.removeprefix(_BANK): _Trace(_size(write.content), _size(write.was), write.copy, write.before is None)
        for write in entry.writes
        if write.key.startswith(_BANK)
    }
    return replace(entry, writes=()), traces


def _size(text: str | None) -> int | None:
    return None if text is None else len(text.encode("utf-8", "backslashreplace"))
