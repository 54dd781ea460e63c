"""What the memory of a space is worth: what was never told, what was told in vain, what says the same or the opposite,
and what costs most.

Owns what is looked for, in which order it is shown, and what is to be done about it; each row names a file. The same
space gives the same audit. Bounded: names and counts of all records, the texts of some two thousand memories, and the
costs of as many observations. Refuses to change anything, and to open an index that does not open. Trio thread only;
what takes time runs in a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING, Any

import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.memories.storing import id_of
from livememfs.memories.uses import NOTHING, Uses, Worth, name_of, shown
from livememfs.recall.service import Recall
from livememfs.recall.turn.inject import in_a_line
from livememfs.records import keys
from livememfs.spaces.describe import require_space
from livememfs.text.times import iso

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.likeness.twins import Twins

IN_VAIN = 3
"""Told so often without any use, a record is shown: once or twice proves nothing."""
ROWS = 20
"""Rows of one section; all are counted."""
SHOWN_CHARACTERS = 100
PATIENCE = 2.0
"""Seconds that an index may take to open."""
OBSERVATIONS_READ, COLD_READ = 2_000, 100
"""The newest observations whose costs are looked at, and how many of those that are not on this machine."""
_TOKENS = re.compile(rb"^discovery_tokens: ([0-9]{1,12})\s*$", re.MULTILINE)
_HEAD_BYTES = 16_384
Stale = Callable[["Engine", str, Sequence[str]], Awaitable["Contradicted"]]
"""What the code contradicts of the memories of a space, given by the keys of their objects."""


@dataclass(frozen=True)
class Row:
    """A record.

    :path:   of its file, from the top of a mount, with `#` and the headings of a section of the bank
    :text:   what it says, shortened
    :beside: the path of the other one, of two that say the same or the opposite
    :tokens: what an observation cost to find out
    :why:    what speaks against it
    """

    path: str
    text: str = ""
    worth: Worth = NOTHING
    beside: str = ""
    tokens: int = 0
    why: str = ""


@dataclass(frozen=True)
class Contradicted:
    """The memories that the code contradicts, in which code (repository and branch), and what hindered the look."""

    rows: tuple[Row, ...] = ()
    where: str = ""
    note: str = ""


@dataclass(frozen=True)
class AuditPart:
    """One thing that was looked for: what was found (`found` in all), and what to do about it."""

    name: str
    title: str
    advice: str
    rows: tuple[Row, ...]
    found: int


@dataclass(frozen=True)
class Audit:
    """The audit of a space: its memories, what of all records was ever told, and used; remarks on what is missing."""

    space: str
    memories: int
    told: int
    used: int
    tokens: int
    parts: tuple[AuditPart, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Names:
    """What there is: each record by its name in the counts, and what is known of it."""

    memories: Mapping[str, str]
    others: Mapping[str, str]
    worth: Mapping[str, Worth]

    def rows(self, names: Sequence[str]) -> list[Row]:
        return [
            Row(self.memories.get(name) or self.others[name], worth=self.worth.get(name, NOTHING)) for name in names
        ]


async def audit(
    replica: Replica, clock: Clock, recall: Recall, uses: Uses, space: str, *, stale: Stale | None = None
) -> Audit:
    """The audit of a space. NotFound, and what the store fails with."""
    await require_space(replica, space)
    await uses.known(space)
    index, notes = await recall.ready((space,), PATIENCE)
    there = [key for key in await _there(replica, index, space) if not recall.has_gone(key)]
    worth, now = uses.all(space), clock.now()
    names = await trio.to_thread.run_sync(_named, space, there, worth, now)
    parts = await trio.to_thread.run_sync(_by_worth, names)
    parts.append(await _found_out(replica, space, names, there))
    if index is not None:
        if stale is not None:
            found = await stale(index, space, [*names.memories.values()])
            parts.append(_stale(found, worth))
            notes = [*notes, *filter(None, [found.note])]
        parts = await trio.to_thread.run_sync(_with_texts, index, space, names, parts)
    seen = [known for name, known in worth.items() if name in names.memories or name in names.others]
    return Audit(
        space,
        memories=len(names.memories),
        told=sum(known.told > 0 for known in seen),
        used=sum(known.uses > 0 for known in seen),
        tokens=sum(known.tokens for known in seen),
        parts=tuple(sorted(parts, key=lambda part: [*_ADVICE].index(part.name))),
        notes=tuple(notes),
    )


_ADVICE = {
    "in_vain": "each telling took room from another: say in it what to do, link it to what it is about, or `rm` it",
    "duplicates": "keep the better one and `rm` the other",
    "contradictions": "edit or `rm` the one that does not hold any more",
    "stale": "correct it, or `rm` it",
    "told_tokens": "shorten those that are told often; split a long one, so that only what fits is told",
    "found_out": "what took long to find out is worth keeping: what of it lasts belongs in `memories/`",
    "never": "no question came for these: `rm` what is no longer true, and name the subject in what is",
}
"""What to do about each part, in the order in which they are shown."""


async def _there(replica: Replica, index: Engine | None, space: str) -> list[str]:
    """The keys of all records: from the index, since to list a hundred thousand takes a hundred requests."""
    if index is not None:
        return list(await trio.to_thread.run_sync(index.objects, f"{space}/"))
    top = (await replica.names.listing(f"{space}/")).folders
    levels = [
        await replica.names.listing(f"{space}/{folder}/")
        for folder in (*keys.COLLECTIONS, keys.OBSERVATIONS, keys.LIVE, keys.BANK)
        if folder in top
    ]
    return [info.key for level in levels for info in level.objects.values()]


def _named(space: str, there: Sequence[str], worth: Mapping[str, Worth], now: datetime) -> _Names:
    """What there is by the names of the counts. To take apart a hundred thousand names would take a second."""
    memories: dict[str, str] = {}
    known = {*there}
    for folder in keys.COLLECTIONS:
        prefix = f"{space}/{folder}/"
        for key in (key for key in there if key.startswith(prefix)):
            name = key[len(prefix) :]
            if "/" not in name and name.endswith(".md") and not keys.has_ended(key, now):
                memories[id_of(name) if keys.UNTIL in name else name[:-3]] = key
    others: dict[str, str] = {}
    for name in worth:
        path, mark, heading = name.partition("#")
        key = f"{space}/{path.removesuffix('.md')}.md"
        if "/" in name and key in known:
            others[name] = f"{key}{mark}{heading}"
    return _Names(memories, others, worth)


def _by_worth(names: _Names) -> list[AuditPart]:
    """What the counts alone tell."""
    known = {name: worth for name, worth in names.worth.items() if name in names.memories or name in names.others}
    never = [name for name in names.memories if name not in known]
    vain = {name: worth.told for name, worth in known.items() if worth.told >= IN_VAIN and not worth.uses}
    costs = {name: worth.tokens for name, worth in known.items() if worth.tokens}
    oldest = nsmallest(ROWS, never, key=lambda name: (names.memories[name].rpartition("/")[2], name))
    return [
        AuditPart("never", "Never told, the oldest first", _ADVICE["never"], tuple(names.rows(oldest)), len(never)),
        AuditPart(
            "in_vain",
            f"Told {IN_VAIN} times or more, and never used",
            _ADVICE["in_vain"],
            _most(names, vain),
            len(vain),
        ),
        AuditPart("told_tokens", "Most tokens told", _ADVICE["told_tokens"], _most(names, costs), len(costs)),
    ]


def _most(names: _Names, figures: Mapping[str, int]) -> tuple[Row, ...]:
    return tuple(names.rows(nlargest(ROWS, sorted(figures), key=lambda name: figures[name])))


async def _found_out(replica: Replica, space: str, names: _Names, there: Sequence[str]) -> AuditPart:
    """The observations that cost most to find out, of the newest ones."""
    prefix, wanted, cold = keys.observations_prefix(space), list[str](), 0
    observations = nlargest(OBSERVATIONS_READ, (key for key in there if key.startswith(prefix)))
    if observations:
        await replica.names.listing(prefix)
    for key in observations:
        info = replica.names.now(key)
        here = info is not None and replica.has(info)
        cold += not here
        if here or cold <= COLD_READ:
            wanted.append(key)
    stored = await replica.read_many(wanted)
    costs = {key: cost for key, found in stored.items() if (cost := _cost(found.data))}
    rows = [
        Row(key, worth=names.worth.get(key.partition("/")[2].removesuffix(".md"), NOTHING), tokens=costs[key])
        for key in nlargest(ROWS, sorted(costs), key=lambda key: costs[key])
    ]
    return AuditPart("found_out", "Cost most to find out", _ADVICE["found_out"], tuple(rows), len(costs))


def _cost(data: bytes) -> int:
    found = _TOKENS.search(data[:_HEAD_BYTES])
    return int(found[1]) if found is not None else 0


def _stale(found: Contradicted, worth: Mapping[str, Worth]) -> AuditPart:
    rows = tuple(replace(row, worth=worth.get(name_of(row.path), NOTHING)) for row in found.rows[:ROWS])
    where = f", in {found.where}" if found.where else ""
    return AuditPart("stale", f"Stale: the code says otherwise{where}", _ADVICE["stale"], rows, len(found.rows))


def _with_texts(index: Engine, space: str, names: _Names, parts: Sequence[AuditPart]) -> list[AuditPart]:
    """The same with what the records say, and pairs that say the same or the opposite. Blocking."""
    from livememfs.recall.likeness import twins

    told = nlargest(
        twins.EACH, (name for name in names.memories if name in names.worth), key=lambda name: names.worth[name].told
    )
    among = twins.looked_at(index, space, [names.memories[name] for name in told])
    same, opposite = twins.alike(index, among), twins.contradicting(index, space, among)
    texts = {
        ref: hit.record.text for ref, hit in index.called([row.path for part in parts for row in part.rows]).items()
    }
    shown = [
        replace(part, rows=tuple(replace(row, text=_shown(texts.get(row.path, ""))) for row in part.rows))
        for part in parts
    ]
    return [
        *shown,
        _pairs(names, "duplicates", "Say the same", same),
        _pairs(names, "contradictions", "Cannot both hold", opposite),
    ]


def _pairs(names: _Names, name: str, title: str, found: Sequence[Twins]) -> AuditPart:
    rows = [
        Row(pair.newer.key, _shown(pair.newer.text), names.worth.get(pair.newer.memory_id, NOTHING), pair.older.key)
        for pair in found[:ROWS]
    ]
    return AuditPart(name, title, _ADVICE[name], tuple(rows), len(found))


def _shown(text: str) -> str:
    return in_a_line(text, SHOWN_CHARACTERS)


def figures(found: Audit) -> dict[str, Any]:
    """An audit for programs."""
    parts = {
        part.name: {
            "title": part.title,
            "found": part.found,
            "to_do": part.advice,
            "rows": [_as_json(row) for row in part.rows],
        }
        for part in found.parts
    }
    return {
        "space": found.space,
        "memories": found.memories,
        "told": found.told,
        "used": found.used,
        "told_tokens": found.tokens,
        "notes": list(found.notes),
        "parts": parts,
    }


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "path": row.path,
        "beside": row.beside or None,
        "text": row.text,
        "why": row.why or None,
        "discovery_tokens": row.tokens or None,
        **{name: iso(value) if isinstance(value, datetime) else value for name, value in shown(row.worth).items()},
    }
