"""What was last the same on both sides, and what follows from it.

Owns the rows of the local state, one for each path, and the decision for one path (`decide`), which is pure. They are
in the database of the journal: of two commits the later one never survives a power cut alone, so a row that says "the
tree has it" never outlives what the journal has accepted. Refuses to look at any file. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from typing import Literal

from livememfs.cache.database import Database

LocalKind = Literal["f", "d", "l"]
"""A file, a directory, a symbolic link."""


@dataclass(frozen=True, slots=True)
class Sig:
    """What `lstat` says of a path. Whatever is done to a file changes one of these numbers."""

    kind: LocalKind
    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int
    mode: int

    def same(self, other: Sig | None) -> bool:
        """Whether nothing can have happened between the two. Of a directory only its being there counts."""
        if other is None or self.kind != other.kind:
            return False
        return self.kind == "d" or self == other

    def same_file(self, other: Sig) -> bool:
        """Whether it is the same file with the same bytes; its name, its mode and its links may be others."""
        mine, its = (self.kind, self.ino), (other.kind, other.ino)
        return mine == its and (self.kind == "d" or (self.size, self.mtime_ns) == (other.size, other.mtime_ns))


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """A path at the moment when both sides were the same.

    :digest: SHA-256 of the local bytes, or of a link's target; empty for a directory
    :key:    the object; of a note that was just written it has another name than the path
    :etag:   the tree's version; empty for a directory
    :behind: whether the tree has made something else of the bytes (a note is completed at its close)
    """

    local: Sig
    digest: str = ""
    key: str = ""
    etag: str = ""
    behind: bool = False


@dataclass(frozen=True, slots=True)
class Remote:
    """A path in the tree. `fixed`: nobody may write there."""

    kind: LocalKind
    etag: str = ""
    size: int = 0
    key: str = ""
    fixed: bool = False


class Do(StrEnum):
    """What makes one path equal."""

    NOTHING = "nothing"
    FORGET = "forget"
    UP = "up"
    DOWN = "down"
    BOTH = "both"
    """Both sides have changed. Equal bytes are equal; else ours goes up over what it was made from, and the tree joins
    the two or keeps both."""


def decide(row: MirrorRow | None, local: Sig | None, remote: Remote | None) -> Do:
    """What to do about a path. Of a removal on one side and a change on the other, the change wins."""
    if local is None and remote is None:
        return Do.NOTHING if row is None else Do.FORGET
    here = local is not None if row is None else not row.local.same(local)
    there = changed_there(row, remote)
    if not here and not there:
        return Do.NOTHING
    if local is None:
        return Do.DOWN if there else Do.UP
    if remote is None:
        return Do.UP if here else Do.DOWN
    if here and there:
        return Do.BOTH
    return Do.UP if here else Do.DOWN


def changed_there(row: MirrorRow | None, remote: Remote | None) -> bool:
    """Whether the tree has something else than it had."""
    if row is None or remote is None:
        return (row is None) != (remote is None)
    return row.behind or (row.local.kind, row.etag) != (remote.kind, remote.etag)


class MirrorRows:
    """All rows of one mirror, in memory and on the disk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: dict[str, MirrorRow] = {}
        for path, kind, size, mtime, ctime, ino, mode, digest, key, etag, behind in database.rows(
            "SELECT * FROM mirror"
        ):
            self._rows[path] = MirrorRow(
                Sig(kind, size, mtime, ctime, ino, mode), digest, key, etag, behind=bool(behind)
            )

    @property
    def all(self) -> Mapping[str, MirrorRow]:
        """Every row by its path."""
        return self._rows

    def get(self, path: str) -> MirrorRow | None:
        """The row of a path."""
        return self._rows.get(path)

    def set(self, path: str, row: MirrorRow) -> None:
        """Both sides are the same now. NoSpace."""
        local = astuple(row.local)
        with self._database.atomic() as db:
            db.execute(
                "INSERT OR REPLACE INTO mirror VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (path, *local, row.digest, row.key, row.etag, row.behind),
            )
        self._rows[path] = row

    def relook(self, path: str, local: Sig) -> None:
        """The same bytes have other times, links or another name on the disk."""
        self.set(path, replace(self._rows[path], local=local))

    def drop(self, path: str) -> None:
        """Neither side has it."""
        if path in self._rows:
            with self._database.atomic() as db:
                db.execute("DELETE FROM mirror WHERE path = ?", (path,))
            del self._rows[path]

    def below(self, path: str) -> Iterator[str]:
        """The paths below a directory."""
        return (other for other in list(self._rows) if other.startswith(f"{path}/"))

    def move(self, old: str, new: str) -> None:
        """A path, and what is below it, has another name on both sides. In one step. NoSpace."""
        moved = {path: new + path[len(old) :] for path in (old, *self.below(old)) if path in self._rows}
        with self._database.atomic() as db:
            for path, target in moved.items():
                db.execute("DELETE FROM mirror WHERE path = ?", (target,))
                db.execute("UPDATE mirror SET path = ? WHERE path = ?", (target, path))
        rows = {target: self._rows.pop(path) for path, target in moved.items()}
        self._rows.update(rows)
