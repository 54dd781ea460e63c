"""Bringing what a source gives into a space, so that a second time changes nothing.

Owns the name of an imported memory, which is made from the tool and the item's id alone; what an import leaves of it in
the front matter (`import_id`, `import_from`, `import_of`); and which side wins: what happened here since the import
does, be it an edit, a merge or that the memory was forgotten. An import that was killed goes on where it was, because
it is simply done again. Refuses to change what it did not bring. Trio thread only; a source is read in a worker thread.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from livememfs.cache.replica import Replica
from livememfs.concurrency import aside, for_each
from livememfs.errors import NotText, ObjectMissing, PreconditionFailed, TooLarge
from livememfs.importing.item import KINDS, SourceFault, SourceItem, SourceObject, SourceSession, digest
from livememfs.importing.sessions import IMPORT_FROM, IMPORT_OF, Outcome, Transcripts, bring, cleaned
from livememfs.importing.sources import Source
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.records.memory import MAX_LINKS, Memory
from livememfs.records.sealing import Former, MemoryForm, Provenance, Sealed, says_nothing
from livememfs.records.trust import Trust, kept_stamp, stamp, trust_of
from livememfs.spaces.describe import require_space
from livememfs.spaces.objects import OnPrivate, put_new, put_version, unheard
from livememfs.store.base import ObjectInfo
from livememfs.text import frontmatter
from livememfs.text.fields import split
from livememfs.text.privacy import redaction as privacy
from livememfs.text.size import tokens
from livememfs.text.times import iso

IMPORT_ID = "import_id"
IMPORT = Provenance(Trust.IMPORTED)
STAMPED = frozenset({"memory", "note", "bank", "agent"})
"""Kinds of objects that count as an agent's words without a stamp."""
ATTEMPTS = 64
"""Names that an item may have: eight digits of a hash are taken by another item once in four thousand million pairs."""
LONGEST_ID = 256
Progress = Callable[[int, int], None]
Brought = SourceItem | SourceObject | SourceSession


@dataclass(frozen=True)
class Imported:
    """What an import did, or would do.

    :counts: of each outcome: `new`; `changed` at the source since the last import; `known`, nothing to do; `kept here`,
             since it was changed, merged or forgotten here
    :tokens: of what is new or changed, estimated
    :faults: what could not be read or stored
    """

    counts: Mapping[Outcome, int]
    tokens: int
    faults: tuple[SourceFault, ...]


class Importer:
    """One import into a space. `dry_run`: tell only what would be done."""

    def __init__(
        self,
        replica: Replica,
        space: str,
        source: Source,
        *,
        transcripts: Transcripts,
        dry_run: bool = False,
        on_private: OnPrivate = unheard,
    ) -> None:
        self._replica, self._space, self._source, self._dry_run = replica, space, source, dry_run
        self._transcripts, self._on_private = transcripts, on_private
        self._form = MemoryForm(keys.MEMORIES)
        self._there: dict[str, str] = {}
        self._gone: set[str] = set()
        self._names: dict[str, str] = {}
        """The eight digits of each item by its id; `_ids`: the id of its memory."""
        self._ids: dict[str, str] = {}
        self._counts: dict[Outcome, int] = {"new": 0, "changed": 0, "known": 0, "kept here": 0}
        self._tokens = 0
        self._faults: list[SourceFault] = []

    async def bring(self, path: Path, progress: Progress = lambda *_: None) -> Imported:
        """Import what is at a path. NotFound without the space; BadRequest for a path that is none of the source's."""
        await require_space(self._replica, self._space)
        read = await trio.to_thread.run_sync(lambda: list(self._source.read(path)))
        await self._look()
        self._faults += [each for each in read if isinstance(each, SourceFault)]
        wanted = _once(each for each in read if not isinstance(each, SourceFault))
        self._name([each for each in wanted if isinstance(each, SourceItem)])
        done = 0

        async def one(each: Brought) -> None:
            nonlocal done
            try:
                outcome = await self._one(each)
                if outcome is not None:
                    self._counts[outcome] += 1
            except (
                NotText,
                TooLarge,
                PreconditionFailed,
                frontmatter.FrontMatterError,
            ) as error:  # of this one; others fail for all
                self._faults.append(SourceFault(each.place, str(error)))
            done += 1
            progress(done, len(wanted))

        await for_each(wanted, one)
        faults = sorted(self._faults, key=lambda fault: fault.place)
        return Imported(dict(self._counts), self._tokens, tuple(faults))

    async def _one(self, each: Brought) -> Outcome | None:
        if isinstance(each, SourceSession):
            return await self._session(each)
        return await (self._item(each) if isinstance(each, SourceItem) else self._exact(each))

    # --- which names ------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Which memories are in the space, and which were there."""
        prefix = f"{self._space}/{keys.MEMORIES}/"
        for info in await self._replica.names.walk(prefix, local=True):
            parsed, name = keys.parse(info.key), info.key.removeprefix(prefix)
            if parsed.kind == "memory":
                self._there[self._form.uid_of(name)] = name
            elif parsed.kind == "memory-old":
                former = name.removeprefix(f"{keys.MEMORY_HISTORY}/").partition("/")[0]
                self._gone.add(self._form.uid_of(f"{former}.md"))

    def _name(self, items: list[SourceItem]) -> None:
        """Give each item its eight digits, before any is stored: links name items that come later."""
        taken: dict[str, str] = {}
        for item in items:
            for attempt in range(ATTEMPTS):
                uid = hashlib.blake2b(
                    "\0".join((self._source.name, item.id, str(attempt))).encode("utf-8", "surrogatepass"),
                    digest_size=4,
                ).hexdigest()
                if taken.setdefault(uid, item.id) == item.id:
                    self._names[item.id] = uid
                    made = (item.made or item.seen).astimezone(UTC).replace(microsecond=0)
                    self._ids[item.id] = id_of(self._there.get(uid) or str(keys.MemoryName(made, item.type, uid)))
                    break

    # --- one item ---------------------------------------------------------------------------------------------

    async def _item(self, item: SourceItem) -> Outcome:
        name = self._there.get(self._names[item.id])
        if name is None:
            return "kept here" if self._names[item.id] in self._gone else await self._new(item)
        key = f"{self._space}/{keys.MEMORIES}/{name}"
        stored = await self._replica.read(key)
        memory = Memory.parse(stored.data, path=key, collection=keys.MEMORIES, name=name)
        known, _, body = str(memory.extra.get(IMPORT_OF, "")).partition("-")
        if memory.extra.get(IMPORT_ID) != _short(item.id) or body != _body(memory):
            return "kept here"
        if known == _of(item):
            return "known"
        return await self._changed(item, stored.info, Former(name, stored.data, stored.info.meta or {}))

    async def _new(self, item: SourceItem) -> Outcome:
        sealed = await self._sealed(item, None)
        key = f"{self._space}/{keys.MEMORIES}/{sealed.named(self._names[item.id])}"
        if not self._dry_run:
            with suppress(PreconditionFailed):  # of another import at the same time
                await put_new(self._replica, key, sealed.data, meta=sealed.meta)
        return "new"

    async def _changed(self, item: SourceItem, info: ObjectInfo, former: Former) -> Outcome:
        sealed = await self._sealed(item, former)
        if not self._dry_run:
            kept = keys.memory_history_key(
                self._space, keys.MEMORIES, id_of(former.name), item.changed or item.made or item.seen
            )
            with suppress(PreconditionFailed):
                await put_new(self._replica, kept, former.data, meta=kept_stamp(former.meta))
            await put_version(self._replica, info.key, sealed.data, info.etag, sealed.meta)
        return "changed"

    async def _sealed(self, item: SourceItem, former: Former | None) -> Sealed:
        """The memory, redacted, with what the next import has to know of it."""
        place = f"{self._space}/{keys.MEMORIES}/(from {item.place})"
        raw = frontmatter.join(self._fields(item), item.text).encode("utf-8", "surrogatepass")
        if says_nothing(raw):
            raise NotText(path=place, detail="there is nothing in it")

        def seal(text: bytes) -> Sealed:
            return self._form.seal(
                text, path=place, written_name="", space=self._space, agent=item.author or self._source.name,
                now=item.changed or item.made or item.seen, former=former, origin=IMPORT,
            )  # fmt: skip

        sealed = await aside(len(raw), lambda: seal(raw))
        if sealed.replaced:
            self._on_private(privacy.told(item.place, sealed.replaced))
        memory = Memory.parse(sealed.data, path=place, collection=keys.MEMORIES)
        marked = replace(memory, extra={**memory.extra, IMPORT_OF: f"{_of(item)}-{_body(memory)}"})
        self._tokens += tokens(memory.content)
        return replace(sealed, data=marked.render())

    def _fields(self, item: SourceItem) -> dict[str, Any]:
        links: dict[str, list[str]] = defaultdict(list)
        for relation, to in item.links[:MAX_LINKS]:
            if to in self._ids and to != item.id:
                links[relation].append(self._ids[to])
        fields = {
            "type": item.type,
            "subjects": list(item.subjects),
            "source": self._source.name,
            "created_at": iso(item.made or item.seen, exact=True),
            "updated_at": iso(item.changed or item.made or item.seen, exact=True),
            "expires_at": iso(item.ends, exact=True) if item.ends is not None else "",
            "links": dict(links),
            IMPORT_ID: _short(item.id),
            IMPORT_FROM: self._source.name,
        }
        return {name: value for name, value in fields.items() if value}

    # --- one session ------------------------------------------------------------------------------------------

    async def _session(self, each: SourceSession) -> Outcome | None:
        """None for one in which nothing was asked or done."""
        clean = await trio.to_thread.run_sync(cleaned, self._transcripts.capture, each)
        self._faults += clean.faults
        if not clean.events:
            return None
        if clean.private:
            self._on_private(privacy.told(each.place, clean.private))
        outcome, new = await bring(
            self._replica, self._space, self._source.name, clean, self._transcripts.parking, dry_run=self._dry_run
        )
        self._tokens += new
        return outcome

    # --- one object that keeps its name -----------------------------------------------------------------------

    async def _exact(self, each: SourceObject) -> Outcome:
        key = f"{self._space}/{each.name}"
        kind = keys.parse(key).kind
        if kind not in KINDS or any(part in ("", ".", "..") for part in each.name.split("/")):
            raise NotText(path=each.place, detail="its name is none that comes with an import")
        data, private = await aside(len(each.data), lambda: privacy.redact_file(each.data))
        if private:
            self._on_private(privacy.told(each.place, private))
        try:
            there = (await self._replica.read(key)).data
        except ObjectMissing:
            self._tokens += tokens(data.decode(errors="replace"))
            if not self._dry_run:
                with suppress(PreconditionFailed):
                    await put_new(self._replica, key, data, meta=_stamp(data) if kind in STAMPED else None)
            return "new"
        return "known" if there == data else "kept here"


def _stamp(data: bytes) -> dict[str, str]:
    """The class of an object that keeps its name: imported, or lower if its front matter says so."""
    said = trust_of(None, split(data.decode(errors="replace"))[0])
    return stamp(min(Trust.IMPORTED, said))


def _once(read: Iterable[Brought]) -> list[Brought]:
    """Each id once, as it was said last: exports are appended to."""
    return list(
        {(type(each), each.name if isinstance(each, SourceObject) else each.id): each for each in read}.values()
    )


def _short(item_id: str) -> str:
    """The id as the front matter has it: some tools give none, and the text stands for it."""
    return item_id if len(item_id) <= LONGEST_ID and item_id.isprintable() else digest(item_id)


def _of(item: SourceItem) -> str:
    """What tells two states of an item apart, as the source has it. The time of its file is no part of it."""
    return digest(
        item.text, item.type, item.author, *item.subjects, *map(str, item.links), *_times(item.made, item.changed),
        *_times(*[item.ends] if item.ends is not None else []),
    )  # fmt: skip


def _body(memory: Memory) -> str:
    """What tells whether a memory was changed here. Links are no part of it: a comparison may add some."""
    return digest(memory.content, memory.type, *memory.subjects)


def _times(*moments: datetime | None) -> list[str]:
    return [iso(moment, exact=True) if moment else "" for moment in moments]
