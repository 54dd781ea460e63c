"""What was last the same on both sides, and what follows from it.

Owns the rows of the local state, one for each path, and the decision for one path (`decide`), which is pure. They are
in the database of the journal: of two commits the later one never survives a power cut alone, so a row that says "the
tree has it" never outlives what the journal has accepted. Refuses to look at any file. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from sqlite3 import Connection
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


NEVER = Sig("f", -1, 0, 0, 0, 0)
"""Equal to nothing that is ever seen."""
_NEXT = "\0"
"""What no path ends with marks the row of what a path is about to be."""


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
        self._next: dict[str, MirrorRow] = {}
        found = database.rows("SELECT * FROM mirror")
        for path, kind, size, mtime, ctime, ino, mode, digest, key, etag, behind in found:
            rows = self._next if path.endswith(_NEXT) else self._rows
            local = Sig(kind, size, mtime, ctime, ino, mode)
            rows[path.removesuffix(_NEXT)] = MirrorRow(local, digest, key, etag, behind=bool(behind))

    @property
    def all(self) -> Mapping[str, MirrorRow]:
        """Every row by its path."""
        return self._rows

    def get(self, path: str) -> MirrorRow | None:
        """The row of a path."""
        return self._rows.get(path)

    def made_from(self, path: str, local: Sig | None) -> MirrorRow | None:
        """The row of what a local file was made from. After a crash in between it may be the new version already: then
        it has the inode that was given to that.
        """
        following = self._next.get(path)
        if following is None or local is None or local.ino != following.local.ino:
            return self._rows.get(path)
        return replace(following, local=NEVER)

    def intend(self, path: str, following: MirrorRow) -> None:
        """Say what a path is about to be: a new file with the inode of `following`. NoSpace."""
        with self._database.atomic() as db:
            _insert(db, path + _NEXT, following)
        self._next[path] = following

    def set(self, path: str, row: MirrorRow) -> None:
        """Both sides are the same now. NoSpace."""
        with self._database.atomic() as db:
            _insert(db, path, row)
            self._forget_next(db, path)
        self._rows[path] = row

    def relook(self, path: str, local: Sig) -> None:
        """The same bytes have other times, links or another name on the disk."""
        self.set(path, replace(self._rows[path], local=local))

    def drop(self, path: str) -> None:
        """Neither side has it."""
        if path in self._rows or path in self._next:
            with self._database.atomic() as db:
                db.execute("DELETE FROM mirror WHERE path = ?", (path,))
                self._forget_next(db, path)
            self._rows.pop(path, None)

    def _forget_next(self, db: Connection, path: str) -> None:
        if self._next.pop(path, None) is not None:
            db.execute("DELETE FROM mirror WHERE path = ?", (path + _NEXT,))

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
                self._forget_next(db, path)
        rows = {target: self._rows.pop(path) for path, target in moved.items()}
        self._rows.update(rows)


def _insert(db: Connection, path: str, row: MirrorRow) -> None:
    db.execute(
        "INSERT OR REPLACE INTO mirror VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (path, *astuple(row.local), row.digest, row.key, row.etag, row.behind),
    )
