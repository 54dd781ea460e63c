"""One path is made equal: what was changed here goes to the tree, what was changed there comes down.

Owns the steps and their order. Only when the journal has accepted a change, its row says so; what the tree has is
brought down whole, in place of exactly the file that was looked at. So after a crash at any step the next look comes to
the same end. What the tree refuses is put back, and the user's bytes are kept. Trio thread only; files are read and
written in threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import structlog
import trio

from livememfs import errors
from livememfs.cache.conflicts import conflict_key
from livememfs.mirror.agenda import Agenda
from livememfs.mirror.branch import Branch, Hidden
from livememfs.mirror.place import ChangedMeanwhile, HeldFile, MirrorPlace, digest_of, prepared, sig_of
from livememfs.mirror.rows import NEVER, Do, MirrorRow, MirrorRows, Remote, Sig, decide
from livememfs.store.base import ObjectInfo
from livememfs.store.content import LARGE, content_etag
from livememfs.tree.node import Directory, File, Node, Symlink
from livememfs.tree.objectfile import DEFAULT_MODE
from livememfs.tree.space.note import NoteFile
from livememfs.tree.space.root import Space

log = structlog.get_logger("livememfs.mirror")

T = TypeVar("T")
LATER_SECONDS = 2.0
"""When a path is looked at again that could not be settled for a passing reason; twice as late each time."""
MOST_DOUBLED = 5
DISK_SECONDS = 30.0
"""The same for a failure of the local disk, always."""
HELD_SECONDS = 60.0
"""How long a file that was replaced is held: a program may have it open, and write to it."""
TORN = (errors.NotFound, errors.AlreadyExists, errors.NotADirectory, errors.IsADirectory, errors.NotEmpty)
"""What a path is refused with while another one on the way to it is still to be settled."""
TORN_TRIES = 5
ASKED = ("search", ".hooks")
PASSING = (errors.Unreachable, errors.Throttled, errors.TimedOut, errors.NoSpace, errors.Stale, ChangedMeanwhile)


class Settler:
    """Makes paths of one directory equal with those of one branch of the tree."""

    def __init__(self, branch: Branch, place: MirrorPlace, rows: MirrorRows, agenda: Agenda, host: str) -> None:
        self.branch, self.place, self.rows, self.agenda = branch, place, rows, agenda
        self._host = host
        self._olds: list[tuple[float, HeldFile, MirrorRow | None]] = []
        self._tries: Counter[str] = Counter()
        self.counts = {"up": 0, "down": 0, "refused": 0}

    async def settle(self, path: str, sig: Sig | None) -> None:
        """One path; a failure concerns it alone, unless the disk is gone."""
        try:
            await self._settle(path, sig)
            self._tries.pop(path, None)
        except Hidden:
            return
        except errors.MountError:
            raise
        except (*PASSING, FileNotFoundError, FileExistsError) as error:
            self._later(path, error)
        except TORN as error:
            if self._tries[path] < TORN_TRIES:
                self._later(path, error)
            else:
                await self._refused(path, sig, error)
        except OSError as error:
            log.warning("the disk does not do it", path=path, reason=str(error))
            self.agenda.again(path, DISK_SECONDS)
        except (errors.LiveMemError, ValueError) as error:
            await self._refused(path, sig, error)

    def _later(self, path: str, error: Exception) -> None:
        log.debug("looked at again later", path=path, reason=str(error))
        self.agenda.again(path, LATER_SECONDS * 2 ** min(self._tries[path], MOST_DOUBLED))
        self._tries[path] += 1

    async def _settle(self, path: str, sig: Sig | None) -> None:
        row = self.rows.made_from(path, sig)
        remote, node = await self.branch.look(path)
        if self.agenda.is_refused(path, sig):
            return
        match decide(row, sig, remote):
            case Do.NOTHING:
                return
            case Do.FORGET:
                self.rows.drop(path)
            case Do.DOWN:
                await self._down(path, sig, row, remote, node)
            case Do.UP if sig is None:
                assert node is not None  # `decide` has seen that the tree has it
                await self._remove_there(path, node)
            case Do.UP | Do.BOTH:
                assert sig is not None  # what is gone on one side and changed on the other comes down
                await self._up(path, sig, row, remote, node)

    # --- from the disk to the tree --------------------------------------------------------------------------------

    async def _up(self, path: str, sig: Sig, row: MirrorRow | None, remote: Remote | None, node: Node | None) -> None:
        if remote is not None and remote.kind != sig.kind:
            await self._make_way(path, sig, row, remote, node)
            return
        if sig.kind == "d":
            await self._begin(path, sig, await self.branch.directory(path))
            return
        data, digest = await aside_from_disk(self.place.read, path, sig, LARGE)
        try:
            if row is not None and row.digest == digest:
                await self._same_bytes(path, sig, row, remote, node)
            elif remote is not None and await self._has(remote, node, sig, data, digest):
                self._take(path, MirrorRow(sig, digest, remote.key, remote.etag))
                if isinstance(node, File) and not remote.fixed and (await node.attrs()).mode != sig.mode:
                    await self.branch.set_attrs(node, sig.mode, sig.mtime_ns)
            elif row is not None and remote is not None and await self._went_on_beside(path, row, remote):
                return
            elif sig.kind == "l":
                assert isinstance(data, bytes)  # a target is short
                await self._link_up(path, sig, data, digest, node)
            else:
                await self._write_up(path, sig, row, data, digest, node)
        finally:
            if isinstance(data, Path):
                data.unlink()

    async def _went_on_beside(self, path: str, row: MirrorRow, remote: Remote) -> bool:
        """Whether the version that was changed here has become a conflict copy meanwhile: then it is that copy which is
        changed, and the path gets what others made of it. Another copy with the same lines would help nobody.
        """
        name = await self.branch.set_aside_as(path, row.etag) if remote.etag != row.etag else ""
        if not name:
            return False
        copy = f"{path.rpartition('/')[0]}/{name}".lstrip("/")
        known, found = self.rows.get(copy), await aside_from_disk(self.place.look, copy)
        if found is not None:
            if known is None or not known.local.same(found):
                return False  # somebody has changed both
            await aside_from_disk(self.place.remove, copy, found)
        await aside_from_disk(self.place.step_aside, path, name)
        self.rows.set(copy, MirrorRow(NEVER, row.digest, f"{remote.key.rpartition('/')[0]}/{name}", row.etag))
        self.rows.drop(path)
        self.agenda.touched([copy])
        self.agenda.heard(path)
        return True

    async def _same_bytes(self, path: str, sig: Sig, row: MirrorRow, remote: Remote | None, node: Node | None) -> None:
        """Somebody has set the mode or the time."""
        is_other = sig.kind == "f" and (sig.mode, sig.mtime_ns) != (row.local.mode, row.local.mtime_ns)
        if is_other and remote is not None and node is not None and not remote.fixed:
            await self.branch.set_attrs(node, sig.mode, sig.mtime_ns)
        self.rows.set(path, replace(row, local=sig))
        self.agenda.heard(path)

    async def _has(self, remote: Remote, node: Node | None, sig: Sig, data: bytes | Path, digest: str) -> bool:
        """Whether the tree has these bytes already, as after a crash, or where both sides were filled by others."""
        if remote.size != sig.size and remote.kind == "f":
            return False
        if isinstance(data, bytes) and content_etag(data) == remote.etag:
            return True
        if isinstance(node, Symlink):
            return (await node.target()).encode("utf-8", "surrogateescape") == data
        if not isinstance(node, File):
            return False
        made, found, _ = await self._fetched(node)
        made.unlink()
        return found == digest

    async def _write_up(
        self, path: str, sig: Sig, row: MirrorRow | None, data: bytes | Path, digest: str, node: Node | None
    ) -> None:
        file = await self.branch.write(path, data, sig.mode, sig.mtime_ns, row, node)
        # Nothing may be awaited between the acceptance and the row: an upload would begin, and a crash in between
        # could not tell a note that nobody has taken yet from one that was never written.
        if file is None or file.body.info is None:
            return
        info = file.body.info
        behind = content_etag(data) != info.etag if isinstance(data, bytes) else isinstance(file, NoteFile)
        self._take(path, MirrorRow(sig, digest, info.key, info.etag, behind=behind))
        self.counts["up"] += 1
        if behind:
            self.agenda.heard(path, path.rpartition("/")[0] + "/" + file.name)

    async def _link_up(self, path: str, sig: Sig, target: bytes, digest: str, node: Node | None) -> None:
        made = await self.branch.link(path, target.decode("utf-8", "surrogateescape"), node)
        if made is not None:
            self._take(path, MirrorRow(sig, digest, made.key, made.info.etag))
            self.counts["up"] += 1

    def _take(self, path: str, row: MirrorRow) -> None:
        self.agenda.refused.pop(path, None)
        self.rows.set(path, row)

    async def _begin(self, path: str, sig: Sig, node: Directory) -> None:
        """A directory is on both sides now. Nobody has told what is in it."""
        self._take(path, MirrorRow(sig))
        self.agenda.heard(*(f"{path}/{name}" for name in await self.branch.names(node)))
        await self.make_asked(f"{path}/", node)

    async def make_asked(self, prefix: str, node: Directory) -> None:
        """Make the folders of a space in which a file is a request."""
        if isinstance(node, Space):
            for folder in ASKED:
                await aside_from_disk(self.place.make_directory, f"{prefix}{folder}")

    async def _make_way(self, path: str, sig: Sig, row: MirrorRow | None, remote: Remote, node: Node | None) -> None:
        """A file has become a directory, a link, or the reverse."""
        if row is not None and row.local.kind == remote.kind and node is not None:
            for below in sorted(self.rows.below(path), reverse=True):
                await self.settle(below, None)
            with suppress(errors.NotEmpty):  # somebody else has something in it
                await self._remove_there(path, node)
                self.agenda.touched([path])
                return
        stamp = utc_stamp()
        await aside_from_disk(self.place.step_aside, path, conflict_key(path, self._host, stamp).rpartition("/")[2])
        self.rows.drop(path)
        self.agenda.again(path, 0)

    async def _remove_there(self, path: str, node: Node) -> None:
        try:
            await self.branch.remove(path, node)
        except errors.NotFound:
            pass
        except errors.NotEmpty:  # others have something in it: it stays, with that
            self.rows.drop(path)
            self.agenda.again(path, LATER_SECONDS)
            return
        self.rows.drop(path)
        self.counts["up"] += 1

    # --- from the tree to the disk --------------------------------------------------------------------------------

    async def _down(
        self, path: str, sig: Sig | None, row: MirrorRow | None, remote: Remote | None, node: Node | None
    ) -> None:
        if remote is None:
            await self._remove_here(path, sig, row)
            return
        if sig is not None and sig.kind != remote.kind:
            await self._remove_here(path, sig, row)
            self.agenda.again(path, 0)
            return
        if isinstance(node, Directory):
            await self._begin(path, await aside_from_disk(self.place.make_directory, path), node)
        elif isinstance(node, Symlink):
            target = await node.target()
            made = self.place.new()
            made.symlink_to(target)
            digest = digest_of(target.encode("utf-8", "surrogateescape"))
            await self._install(made, path, sig, row, MirrorRow(NEVER, digest, remote.key, remote.etag))
        elif isinstance(node, File):
            await self._file_down(path, sig, row, remote, node)

    async def _file_down(self, path: str, sig: Sig | None, row: MirrorRow | None, remote: Remote, node: File) -> None:
        made, digest, info = await self._fetched(node)
        etag = info.etag if info is not None else remote.etag
        if row is not None and sig is not None and row.digest == digest:  # the store has given it another name
            made.unlink()
            self.rows.set(path, replace(row, key=remote.key, etag=etag, behind=False))
            return
        attrs = await node.attrs()
        mode = (attrs.mode or DEFAULT_MODE) & 0o777
        await aside_from_disk(prepared, made, None, mode & 0o555 if remote.fixed else mode, attrs.mtime_ns)
        await self._install(made, path, sig, row, MirrorRow(NEVER, digest, remote.key, etag))

    async def _fetched(self, node: File) -> tuple[Path, str, ObjectInfo | None]:
        """The bytes of a file of the tree in a new file, with their digest and the version that they are."""
        made, digest, info = self.place.new(), sha256(), None
        with made.open("wb") as file:
            async for part in self.branch.read(node):
                if isinstance(part, ObjectInfo):
                    info = part
                    continue
                digest.update(part)
                file.write(part)
        return made, digest.hexdigest(), info

    async def _install(self, made: Path, path: str, sig: Sig | None, row: MirrorRow | None, equal: MirrorRow) -> None:
        self.rows.intend(path, replace(equal, local=sig_of(made) or NEVER))
        now, old = await aside_from_disk(self.place.install, made, path, sig)
        self.branch.keep_contents()  # what is changed here next is joined by the bytes that it was made from
        self.rows.set(path, replace(equal, local=now))
        self._hold(old, row)
        self.counts["down"] += 1

    async def _remove_here(self, path: str, sig: Sig | None, row: MirrorRow | None) -> None:
        if sig is not None:
            try:
                self._hold(await aside_from_disk(self.place.remove, path, sig), row)
            except OSError:
                if sig.kind != "d":
                    raise
                if any(self.rows.below(path)):  # what is in it goes first
                    self.agenda.again(path, LATER_SECONDS)
                return  # with something that is not mirrored, or new: that makes the directory anew
            self.counts["down"] += 1
        self.rows.drop(path)

    # --- what must not be lost ------------------------------------------------------------------------------------

    def _hold(self, old: HeldFile | None, row: MirrorRow | None) -> None:
        if old is not None:
            self._olds.append((trio.current_time() + HELD_SECONDS, old, row))

    async def let_go(self, *, all_of_them: bool = False) -> None:
        """Give up old files, or keep what somebody has written to them since they were replaced."""
        now = trio.current_time()
        due = [held for held in self._olds if held[0] <= now or all_of_them]
        self._olds = [held for held in self._olds if held not in due]
        for _, old, row in due:
            if old.written_to:
                await self._late(old, row)
            old.at.unlink(missing_ok=True)

    async def _late(self, old: HeldFile, row: MirrorRow | None) -> None:
        """What was written to a file after it was replaced is another version of what it was: the tree joins it."""
        try:
            _, node = await self.branch.look(old.path)
            await self.branch.write(old.path, old.at, old.was.mode, old.was.mtime_ns, row, node)
        except (errors.LiveMemError, Hidden) as error:
            await aside_from_disk(self.place.keep_late, old, str(error), utc_stamp())
        self.agenda.heard(old.path)

    async def _refused(self, path: str, sig: Sig | None, error: Exception) -> None:
        """The tree, or the disk, does not take it for good. Bytes of the user's are kept, and the tree's come back."""
        self.counts["refused"] += 1
        reason, stamp = str(error), utc_stamp()
        log.warning("not taken", path=path, reason=reason)
        row = self.rows.get(path)
        is_kept = isinstance(error, errors.ReadOnly) or row is not None
        if sig is None or sig.kind == "d" or not is_kept:
            self.place.tell(path, reason, stamp)
            if sig is not None:
                self.agenda.refused[path] = sig  # it stays where it is, and is tried again when it changes
            elif row is not None:
                self._restore(path)
            return
        try:
            await aside_from_disk(partial(self.place.keep, path, reason, stamp, move=True))
        except (OSError, ChangedMeanwhile):
            self.agenda.touched([path])
            return
        self._restore(path)

    def _restore(self, path: str) -> None:
        """Bring down again what the tree has."""
        for below in (path, *self.rows.below(path)):
            self.rows.drop(below)
            self.agenda.heard(below)


async def aside_from_disk(work: Callable[..., T], *arguments: object) -> T:
    """Files are read and written in threads: a disk may hang."""
    return await trio.to_thread.run_sync(partial(work, *arguments))


def utc_stamp() -> str:
    """The time now, as a part of a name."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
