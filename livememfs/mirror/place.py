"""The directory on the local disk: what is in it, and how something is put there or taken away.

Owns its marker, its lock and the folder `.livememfs-mirror/` inside of it, with new files before they get their names,
old ones for a while, and what the tree refused. A file gets its name whole and synced; one that is replaced or removed
is held by a second name until it is sure that nobody has written to it meanwhile. Refuses to follow a symbolic link,
and to act on a file that is not what it was. Blocking; any thread.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from secrets import token_hex

from livememfs.errors import MountError
from livememfs.mirror.rows import LocalKind, Sig

OURS = ".livememfs-mirror"
"""The folder in the directory that is ours and belongs to no side."""
MARKER = "mirror.json"
REFUSED = "refused"
WHY = "refused.ndjson"
CHUNK = 1 << 20
_INO = (1 << 63) - 1
"""SQLite keeps no larger numbers."""
_KINDS: dict[int, LocalKind] = {stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l"}


class ChangedMeanwhile(Exception):
    """Somebody works on a file at this moment: it is looked at again."""


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that was replaced or removed, for as long as somebody may still write to it. `was`: when it was."""

    path: str
    at: Path
    was: Sig

    @property
    def written_to(self) -> bool:
        """Whether somebody had it open, and has written to it since."""
        now = sig_of(self.at)
        return now is not None and not now.same_file(self.was)


def sig_of(path: Path | str) -> Sig | None:
    """What is there; None for nothing, and for what is no file, directory or link."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _sig(found)


def _sig(found: os.stat_result) -> Sig | None:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind is None:
        return None
    size = found.st_size if kind != "d" else 0
    return Sig(kind, size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino & _INO, stat.S_IMODE(found.st_mode))


class MirrorPlace:
    """One directory. `of` names what it is a mirror of, for its marker; `state` is where its rows are, for messages."""

    def __init__(self, top: Path, of: str, state: str = "") -> None:
        self.top, self.ours = top, top / OURS
        self.of, self.state = of, state
        self.id = ""
        self.told = ""
        """What was refused last, and why."""
        self._lock = -1
        self._numbers = count(1)

    # --- whose directory it is ------------------------------------------------------------------------------------

    def begin(self, known: str) -> str:
        """Take the directory; `known` is the id of the last time, empty for the first. Its id. MountError."""
        import fcntl  # here: Windows has none

        if not self.top.is_dir():
            raise MountError(f"there is no directory {self.top}; make it first")
        if known and self._marker().get("id") != known:
            raise self.away()
        try:
            for folder in (self.ours, self.ours / "new", self.ours / "old", self.ours / REFUSED):
                folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self.ours / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.end()
            raise MountError(f"another `livememfs sync` is at work in {self.top}") from None
        except OSError as error:
            raise MountError(f"{self.top} cannot be mirrored into: {error.strerror}") from None
        marker = self._marker()
        if marker and marker.get("of") != self.of:
            self.end()
            raise MountError(f"{self.top} is a mirror of {marker.get('of')}, not of {self.of}")
        self.id = str(marker.get("id") or token_hex(8))
        if not marker:
            (self.ours / MARKER).write_text(json.dumps({"id": self.id, "of": self.of}) + "\n")
        self._tidy()
        return self.id

    def end(self) -> None:
        """Let the next process have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _marker(self) -> dict[str, object]:
        try:
            found = json.loads((self.ours / MARKER).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def expect_here(self) -> None:
        """Raise MountError when the disk is gone: what is not there then was removed by nobody."""
        if self._marker().get("id") != self.id:
            raise self.away()

    def away(self) -> MountError:
        """Why nothing goes on."""
        return MountError(
            f"{self.top} is not the directory that was mirrored: its {OURS}/{MARKER} is gone",
            advice=f"nothing was removed; mount the disk that it is on; to begin anew there, remove {self.state}",
        )

    def _tidy(self) -> None:
        """After a crash: half files go, and what was written to an old file is kept."""
        for new in (self.ours / "new").iterdir():
            new.unlink()
        for old in (self.ours / "old").iterdir():
            found, said = sig_of(old), old.name.split("-")
            if found is None or [str(found.mtime_ns), str(found.size)] == said[:2]:
                old.unlink(missing_ok=True)
            else:
                old.replace(self.ours / REFUSED / f"written-late-{old.name}")

    # --- looking --------------------------------------------------------------------------------------------------

    def at(self, path: str) -> Path:
        """Where a path is. ChangedMeanwhile when it goes through a link or a file."""
        *above, _ = path.split("/")
        folder = self.top
        for part in above:
            folder = folder / part
            found = sig_of(folder)
            if found is not None and found.kind != "d":
                raise ChangedMeanwhile(path)
        return self.top / path

    def look(self, path: str) -> Sig | None:
        """What is at a path; None as well where it cannot be reached without a link."""
        try:
            return sig_of(self.at(path))
        except ChangedMeanwhile:
            return None

    def look_all(self, paths: Iterable[str]) -> dict[str, Sig | None]:
        """The same for many."""
        return {path: self.look(path) for path in paths}

    def scan(self, below: str = "") -> dict[str, Sig]:
        """Everything below a directory, by its path."""
        return dict(self._scan(self.top / below if below else self.top, f"{below}/" if below else ""))

    def _scan(self, folder: Path, prefix: str) -> Iterator[tuple[str, Sig]]:
        deeper: list[tuple[Path, str]] = [(folder, prefix)]
        while deeper:
            folder, prefix = deeper.pop()
            try:
                with os.scandir(folder) as entries:
                    found = [(entry.name, _sig(entry.stat(follow_symlinks=False))) for entry in entries]
            except (FileNotFoundError, NotADirectoryError):
                continue  # it went meanwhile; the next look settles what is left
            for name, sig in found:
                if sig is None or (not prefix and name == OURS):
                    continue
                yield prefix + name, sig
                if sig.kind == "d":
                    deeper.append((folder / name, f"{prefix}{name}/"))

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, path: str, sig: Sig, in_memory: int) -> tuple[bytes | Path, str]:
        """The bytes of a file or the target of a link, and their digest. What is larger than `in_memory` comes as a
        copy, to be removed by the caller. ChangedMeanwhile, OSError.
        """
        source = self.at(path)
        if sig.kind == "l":
            target = os.fsencode(os.readlink(source))  # noqa: PTH115  # a Path would make "a" of "./a"
            return target, digest_of(target)
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if sig.size <= in_memory:
                data = file.read()
                self._expect(source, path, sig)
                return data, digest_of(data)
            copy = self.new()
            digest = hashlib.sha256()
            with copy.open("wb") as target_file:
                while part := file.read(CHUNK):
                    digest.update(part)
                    target_file.write(part)
        try:
            self._expect(source, path, sig)
        except ChangedMeanwhile:
            copy.unlink()
            raise
        return copy, digest.hexdigest()

    def _expect(self, at: Path, path: str, sig: Sig | None) -> None:
        found = sig_of(at)
        if found is not None if sig is None else not sig.same(found):
            raise ChangedMeanwhile(path)

    # --- changing -------------------------------------------------------------------------------------------------

    def new(self) -> Path:
        """A name for a file that nobody sees yet."""
        return self.ours / "new" / f"{next(self._numbers)}-{token_hex(4)}"

    def install(self, made: Path, path: str, before: Sig | None) -> tuple[Sig, HeldFile | None]:
        """Give a synced new file or link its name, in place of what is `before` there. ChangedMeanwhile, OSError."""
        try:
            target, old = self.at(path), None
            target.parent.mkdir(parents=True, exist_ok=True)
            if before is None:
                self._take_name(made, target, path)
            else:
                old = self._hold(target, path, before)
                made.replace(target)
        except BaseException:
            made.unlink(missing_ok=True)
            raise
        now = sig_of(target)
        if now is None:
            raise ChangedMeanwhile(path)
        return now, old

    def _take_name(self, made: Path, target: Path, path: str) -> None:
        try:
            os.link(made, target, follow_symlinks=False)
        except FileExistsError:
            raise ChangedMeanwhile(path) from None
        except OSError:  # a disk without second names
            self._expect(target, path, None)
            made.replace(target)
        else:
            made.unlink()

    def _hold(self, target: Path, path: str, before: Sig) -> HeldFile:
        """Keep a second name of a file that is about to be replaced."""
        self._expect(target, path, before)
        kept = self._old_name(before)
        try:
            os.link(target, kept, follow_symlinks=False)
        except OSError:
            return HeldFile(path, kept, before)
        held = sig_of(kept)
        if held is None or not held.same_file(before):
            kept.unlink()
            raise ChangedMeanwhile(path)
        return HeldFile(path, kept, before)

    def _old_name(self, sig: Sig) -> Path:
        return self.ours / "old" / f"{sig.mtime_ns}-{sig.size}-{next(self._numbers)}-{token_hex(4)}"

    def remove(self, path: str, before: Sig) -> HeldFile | None:
        """Take away a file, a link or an empty directory. ChangedMeanwhile; OSError for a directory in use."""
        target = self.at(path)
        if before.kind == "d":
            target.rmdir()
            return None
        self._expect(target, path, before)
        kept = self._old_name(before)
        target.replace(kept)
        held = sig_of(kept)
        if held is None or not held.same_file(before):
            self._take_name(kept, target, path)
            raise ChangedMeanwhile(path)
        return HeldFile(path, kept, before)

    def make_directory(self, path: str) -> Sig:
        """Make a directory, if it is not there. ChangedMeanwhile, OSError."""
        target = self.at(path)
        try:
            target.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ChangedMeanwhile(path) from None
        found = sig_of(target)
        if found is None:
            raise ChangedMeanwhile(path)
        return found

    def keep(self, path: str, reason: str, stamp: str, *, move: bool) -> Path:
        """Keep the bytes that the tree refused, and say why. Those of a file that stays in its place are copied."""
        source = self.at(path)
        kept = self.ours / REFUSED / stamp / path
        while os.path.lexists(kept):
            kept = kept.with_name(f"{kept.name}-{token_hex(2)}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        if move:
            source.replace(kept)
        else:
            shutil.copy2(source, kept, follow_symlinks=False)
        self.tell(path, reason, stamp, str(kept.relative_to(self.top)))
        return kept

    def keep_late(self, old: HeldFile, reason: str, stamp: str) -> None:
        """Keep what was written to a file after it was replaced."""
        kept = self.ours / REFUSED / f"written-late-{old.at.name}"
        old.at.replace(kept)
        self.tell(old.path, reason, stamp, str(kept.relative_to(self.top)))

    def tell(self, path: str, reason: str, stamp: str, kept: str = "") -> None:
        """Say why something was refused, in a file beside it."""
        self.told = f"{path}: {reason}"
        line = {"at": stamp, "path": path, "reason": reason} | ({"kept": kept} if kept else {})
        with suppress(OSError), (self.ours / WHY).open("a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def step_aside(self, path: str, name: str) -> None:
        """Give what is at a path another name in the same directory. ChangedMeanwhile, OSError."""
        target = self.at(path)
        beside = target.with_name(name)
        if os.path.lexists(beside):
            raise ChangedMeanwhile(path)
        target.rename(beside)


def prepared(made: Path, data: bytes | None, mode: int, mtime_ns: int) -> None:
    """Make a new file whole: its bytes (None: they are there), mode and time, on the disk."""
    with made.open("ab" if data is None else "wb") as file:
        if data is not None:
            file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        if mtime_ns:
            os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
        os.fsync(file.fileno())


def digest_of(data: bytes) -> str:
    """The digest of bytes."""
    return hashlib.sha256(data).hexdigest()
