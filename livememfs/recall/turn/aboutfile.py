"""What is known about just one file, for an agent that is about to read or edit it.

Owns what a record may call a file, which records are worth a line, and in which order: decisions and traps, and what
was changed last, in turns. Refuses to wait for an index, and to say the same to a session twice. Blocking: for a worker
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from livememfs.recall.turn.athand import excerpt
from livememfs.recall.turn.bycode import ByCode
from livememfs.recall.turn.choosing import candidate, in_turns, may_be_told, same
from livememfs.recall.turn.inject import Candidate, Limits, Told, ToldSession, about_file, in_a_line, tell
from livememfs.recall.turn.superseded import as_they_stand
from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.recall.index.exchanged import Stored
    from livememfs.recall.index.record import Record

LIMITS = Limits(most=8, budget=300)
SHOWN = 280
"""Characters of one record."""
LOOKED_AT = 40
"""Records that are looked at, the newest."""
LONGEST = 4_096
MOST_PARTS = 16
_KINDS = frozenset((keys.OBSERVATIONS, *keys.COLLECTIONS, keys.LIVE, keys.BANK, keys.AGENTS))
_CHANGES = frozenset(("bugfix", "feature", "refactor", "change", "discovery"))
_TRAPS = frozenset(("gotcha", "trade-off", "why-decided", "problem-solution"))
EVERYWHERE = frozenset((
    "__init__", "__main__", "config", "conftest", "index", "main", "mod", "package", "readme", "setup", "test", "types",
    "utils",
))  # fmt: skip
"""Names, without their suffix, that many folders have: alone, they do not tell which file is meant."""


def tell_about(
    index: Engine,
    space: str,
    path: str,
    project: str,
    session: ToldSession,
    now: datetime,
    gone: Callable[[str], bool],
    web: bool = False,
    code: ByCode | None = None,
) -> Told:
    """What a session is told about a file, and takes note of; nothing when there is nothing, or it was told before.
    `web`: what is from the web may be told; `code`: what may be told by the code that it speaks of.
    """
    path = path[:LONGEST].encode("utf-8", "replace").decode()
    known = about_file(inside(path, project) or path)
    if known in session.told:
        return Told((), {})
    exact, loose, bare = _names(path, project)
    named = [
        stored
        for stored in index.naming(space, [*exact, *loose, *bare], LOOKED_AT)
        if stored.record.kind in _KINDS and not gone(stored.record.key) and not keys.has_ended(stored.record.key, now)
        if may_be_told(stored.record, web)
        if _files(stored.record) & {*exact, *loose} or stored.record.kind != keys.OBSERVATIONS
    ]
    code = code or ByCode()
    code.judge(stored.record for stored in named)
    named = [stored for stored in named if code.told(stored.record)]

    def is_told(one: Record) -> bool:
        return not gone(one.key) and may_be_told(one, web) and code.judge([one])

    named = as_they_stand(index, space, named, is_told)
    ordered = sorted(_in_order(named, exact), key=lambda stored: bool(code.of(stored.record).branch))
    candidates = _candidates(index, ordered, PurePosixPath(path).name, now, code) if named else ()
    told = tell(session, candidates, same(index, LIMITS.alike), LIMITS, turns=0)
    _ = told.block  # made here, and kept
    session.told[known] = session.turn
    return told


def inside(path: str, project: str) -> str:
    """A path relative to its project; empty for one that is elsewhere."""
    if not path.startswith("/"):
        return path.removeprefix("./")
    root = project.rstrip("/") + "/"
    return path.removeprefix(root) if project and path.startswith(root) else ""


def _names(path: str, project: str) -> tuple[set[str], list[str], list[str]]:
    """The names of a file: exact ones; its last parts, two at least; its bare name, if that tells which file it is."""
    relative = inside(path, project)
    parts = [part for part in path.split("/") if part not in ("", ".")][-MOST_PARTS:]
    loose = ["/".join(parts[start:]) for start in range(len(parts) - 1)]
    name = parts[-1] if parts else ""
    tells = len(parts) > 1 and PurePosixPath(name).stem.casefold() not in EVERYWHERE
    return {path, relative} - {""}, loose, [name] if tells else []


def _files(record: Record) -> set[str]:
    return {value for label, value in record.labels if label == "file"}


def _in_order(named: Iterable[Stored], exact: set[str]) -> Iterator[Stored]:
    """Decisions and traps, and the last changes, in turns; first records that name the file exactly."""
    order = sorted(named, key=lambda stored: (not _files(stored.record) & exact, -stored.record.created))
    changes = [stored for stored in order if stored.record.type in _CHANGES and not _is_trap(stored.record)]
    yield from in_turns([stored for stored in order if stored not in changes], changes)


def _is_trap(record: Record) -> bool:
    return any(label == "concept" and value in _TRAPS for label, value in record.labels)


def _candidates(index: Engine, named: Sequence[Stored], name: str, now: datetime, code: ByCode) -> Iterator[Candidate]:
    vectors = index.vectors_of([stored.id for stored in named])
    for stored in named:
        made = candidate(stored.record, "file", vectors.get(stored.id), name, now)
        text = made.text if stored.record.kind == keys.OBSERVATIONS else excerpt(made.text, name, SHOWN)
        yield replace(made, text=in_a_line(text, SHOWN), about=made.about + code.mark(stored.record))
