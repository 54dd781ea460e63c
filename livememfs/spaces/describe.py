"""What a space is and holds, for people and programs (data model 4.1 and 5).

Owns the answers to list, info, rules and summary. Refuses to change anything. A space whose `_meta.json` is damaged is
shown with the damage, not hidden. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from livememfs.cache.replica import Replica
from livememfs.concurrency import A_NAME, aside, for_each
from livememfs.errors import NotFound, ObjectMissing
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.spaces.objects import content, decode_text
from livememfs.store.base import ObjectInfo


@dataclass(frozen=True)
class SpaceEntry:
    """A space in a list.

    :name:    its prefix, without the slash
    :meta:    None when its `_meta.json` cannot be read
    :problem: why it cannot be read; else empty
    """

    name: str
    meta: Meta | None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class SpaceInfo(SpaceEntry):
    """A space and what it holds; sizes in bytes. `bank_names` are the bank's files; `rules` and `synthesis` say whether
    these files are there.
    """

    notes: int
    note_bytes: int
    bank_files: int
    bank_bytes: int
    bank_names: tuple[str, ...]
    rules: bool
    synthesis: bool


@dataclass(frozen=True)
class SpaceSummary:
    """What a new reader of a space needs first.

    :name:        the space
    :description: from its `_meta.json`, possibly empty
    :rules:       the rules' text, None when there are none
    :bank:        text by bank file name, in the order of names
    :synthesis:   text of `_synthesis.md`, empty when there is none
    """

    name: str
    description: str = ""
    rules: str | None = None
    bank: dict[str, str] = field(default_factory=dict)
    synthesis: str = ""

    def render(self) -> str:
        """All of it as one Markdown page."""
        head = f"# {self.name}\n" + (f"\n{self.description}\n" if self.description else "")
        sections = [head] if self.rules is None else [head, f"## {keys.RULES}\n\n{self.rules.strip()}\n"]
        sections += [f"## {keys.BANK}/{name}\n\n{text.strip()}\n" for name, text in self.bank.items()]
        return "\n".join(sections)


async def is_space(replica: Replica, name: str) -> bool:
    """Whether the prefix has a `_meta.json` by the catalog; `_system` and the like are never spaces."""
    if name.startswith("_"):
        return False
    try:
        await replica.names.stat(keys.meta_key(name))
    except ObjectMissing:
        return False
    return True


async def require_space(replica: Replica, space: str) -> None:
    """NotFound unless the bucket has the space now."""
    try:
        await replica.names.stat(keys.meta_key(space), fresh=True)
    except ObjectMissing:
        raise NotFound(path=space) from None


async def list_spaces(replica: Replica) -> list[SpaceEntry]:
    """Every space of the bucket, by name. A space whose `_meta.json` cannot be read is listed with the problem."""
    top = await replica.names.listing("", fresh=True)
    entries: dict[str, SpaceEntry] = {}

    async def look(name: str) -> None:
        entry = await _entry(replica, name)
        if entry is not None:
            entries[name] = entry

    await for_each(sorted(name for name in top.folders if not name.startswith("_")), look)
    return [entries[name] for name in sorted(entries)]


async def info(replica: Replica, space: str) -> SpaceInfo:
    """A space and how much it holds. Raises NotFound."""
    entry = await _entry(replica, space)
    if entry is None:
        raise NotFound(path=space)
    top = await replica.names.listing(f"{space}/", fresh=True)
    notes = await _sizes(replica, keys.live_prefix(space), "note")
    bank = await _sizes(replica, keys.bank_prefix(space), "bank")
    return SpaceInfo(
        name=space,
        meta=entry.meta,
        problem=entry.problem,
        notes=len(notes),
        note_bytes=sum(notes.values()),
        bank_files=len(bank),
        bank_bytes=sum(bank.values()),
        bank_names=tuple(bank),
        rules=keys.RULES in top.objects,
        synthesis=keys.SYNTHESIS in top.objects,
    )


async def counts(replica: Replica, space: str) -> tuple[int, int]:
    """How many notes and how many bank files a space has."""
    notes = await _sizes(replica, keys.live_prefix(space), "note")
    return len(notes), len(await _sizes(replica, keys.bank_prefix(space), "bank"))


async def rules(replica: Replica, space: str) -> str:
    """The text of a space's rules. Raises NotFound without the space or the rules, NotText."""
    await require_space(replica, space)
    key = keys.rules_key(space)
    try:
        return decode_text((await replica.read(key, fresh=True)).data, key)
    except ObjectMissing:
        raise NotFound(path=key) from None


async def summary(replica: Replica, space: str) -> SpaceSummary:
    """Rules and the whole bank. Raises NotFound, NotText."""
    entry = await _entry(replica, space)
    if entry is None:
        raise NotFound(path=space)
    try:
        sealed: str | None = await rules(replica, space)
    except NotFound:
        sealed = None
    texts: dict[str, str] = {}

    async def read(item: ObjectInfo) -> None:
        data = await content(replica, item)
        if data is not None:
            texts[keys.parse(item.key).name] = decode_text(data, item.key)

    objects = await replica.names.walk(keys.bank_prefix(space))
    await for_each([item for item in objects if keys.parse(item.key).kind == "bank"], read)
    description = entry.meta.description if entry.meta else ""
    synthesis = await _synthesis(replica, space)
    return SpaceSummary(space, description, sealed, dict(sorted(texts.items())), synthesis)


async def _synthesis(replica: Replica, space: str) -> str:
    key = keys.synthesis_key(space)
    try:
        return decode_text((await replica.read(key, fresh=True)).data, key)
    except ObjectMissing:
        return ""


async def _entry(replica: Replica, name: str) -> SpaceEntry | None:
    try:
        stored = await replica.read(keys.meta_key(name), fresh=True)
    except ObjectMissing:
        return None
    try:
        return SpaceEntry(name, Meta.parse(stored.data))
    except ValueError as error:
        replica.unread.note(stored.info.key, stored.info.etag, str(error))
        return SpaceEntry(name, None, f"{keys.META} cannot be read: {error}")


async def _sizes(replica: Replica, prefix: str, kind: keys.Kind) -> dict[str, int]:
    """The sizes of the objects of a kind, by their names below the prefix."""
    items = await replica.names.walk(prefix)

    def of_kind() -> dict[str, int]:
        return {item.key[len(prefix) :]: item.size for item in items if keys.parse(item.key).kind == kind}

    return await aside(len(items) * A_NAME, of_kind)
