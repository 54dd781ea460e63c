"""Bank files whose names no model and no person should meet: with invisible characters, or twins of another.

Owns what a name should be, and which of two files stays. Loses no text: a twin goes only if it has the same bytes,
otherwise it gets a name of its own. Trio thread only, except `cleaned`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from livememfs.cache.replica import Replica
from livememfs.concurrency import for_each
from livememfs.errors import InvalidName
from livememfs.records import keys
from livememfs.records.names import check_bank_name
from livememfs.runs.edit import Replacement
from livememfs.spaces.objects import content
from livememfs.store.base import ObjectInfo


@dataclass(frozen=True)
class OddName:
    """A bank file and the name that it should have; `text` and `etag` are of the version that was read."""

    name: str
    becomes: str
    text: str
    etag: str


@dataclass(frozen=True)
class OddNames:
    """The odd names of one bank.

    :scanned: how many files were looked at
    :renamed: files that get another name
    :twins:   files with the bytes of the one that they should be called like
    """

    scanned: int
    renamed: tuple[OddName, ...]
    twins: tuple[OddName, ...]

    def changes(self) -> Sequence[Replacement]:
        """What mends them: files are written under their new names before the old ones go."""
        made = [Replacement(f"{keys.BANK}/{item.becomes}", item.text) for item in self.renamed]
        gone = [Replacement(f"{keys.BANK}/{item.name}", None, item.etag) for item in (*self.renamed, *self.twins)]
        return [*made, *gone]


def cleaned(name: str) -> str:
    """A name as it looks: composed, without invisible characters, and with plain blanks and hyphens."""
    looks = unicodedata.normalize("NFC", name)
    kept = []
    for character in looks:
        category = unicodedata.category(character)
        if category in ("Zs", "Pd"):
            kept.append(" " if category == "Zs" else "-")
        elif category[0] not in "CZM":
            kept.append(character)
    return "/".join(part.strip() for part in "".join(kept).split("/"))


async def find_odd(replica: Replica, space: str) -> OddNames:
    """The odd names of a bank. A file whose name cannot be mended so, or that is no text, is left as it is."""
    infos = [info for info in await replica.names.walk(keys.bank_prefix(space)) if keys.parse(info.key).kind == "bank"]
    names = {keys.parse(info.key).name: info for info in infos}
    wanted = {name: looks for name in names if (looks := _should_be(name)) and looks != name}
    data: dict[str, bytes] = {}

    async def look(name: str) -> None:
        data[name] = await content(replica, names[name]) or b""

    await for_each({*wanted, *(looks for looks in wanted.values() if looks in names)}, look)
    return _judged(names, wanted, data)


def _judged(names: dict[str, ObjectInfo], wanted: dict[str, str], data: dict[str, bytes]) -> OddNames:
    renamed: list[OddName] = []
    twins: list[OddName] = []
    there = {name: data.get(name) for name in names}
    for name, looks in sorted(wanted.items()):
        try:
            text = data[name].decode("utf-8")
        except UnicodeDecodeError:
            continue
        free = next(each for each in _choices(looks) if each not in there or there[each] == data[name])
        item = OddName(name, free, text, names[name].etag)
        (twins if free in there else renamed).append(item)
        there[free] = data[name]
    return OddNames(len(names), tuple(renamed), tuple(twins))


def _choices(name: str) -> Iterator[str]:
    """The name, then names beside it."""
    yield name
    for number in count(2):
        yield f"{name.removesuffix('.md')}-{number}.md"


def _should_be(name: str) -> str:
    """The name that a file should have; empty if its looks are no name for a bank file either."""
    try:
        return check_bank_name(cleaned(name))
    except InvalidName:
        return ""
