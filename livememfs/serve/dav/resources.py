"""WsgiDAV's provider for the tree: what a path is, and what may be done with it.

Owns nothing but the translation: each method is one act. The library owns the protocol, its locks and its properties,
both of which are in memory. Any thread but the trio thread; blocking.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any

from wsgidav import util
from wsgidav.dav_error import DAVError
from wsgidav.dav_provider import DAVCollection, DAVNonCollection, DAVProvider

from livememfs.records.access import Access
from livememfs.serve.dav.acts import CHUNK, DavActs, DavEntry, DavReader, DavWriter, is_removed_whole
from livememfs.serve.dav.bridge import Bridge
from livememfs.tree.objectfile import IN_MEMORY

ACCESS = "livememfs.access"
"""The key of the caller's access in a request."""
_OPENED = "livememfs.opened"
SECOND = 1_000_000_000


class TreeProvider(DAVProvider):  # type: ignore[misc]  # the library has no types
    """The tree, for all requests. `bridge` leads to the trio thread."""

    def __init__(self, acts: DavActs, bridge: Bridge) -> None:
        super().__init__()
        self.acts, self.bridge = acts, bridge

    def get_resource_inst(self, path: str | None, environ: dict[str, Any]) -> TreeFile | TreeDirectory | None:
        """The resource of a path; None if there is none, as above the top."""
        if path is None:
            return None
        try:
            entry = self.bridge.run(self.acts.find, path.strip("/"), environ[ACCESS])
        except DAVError as error:
            if error.value == 404:
                return None
            raise
        return resource(entry, environ)

    def custom_request_handler(
        self, environ: dict[str, Any], start_response: Any, default_handler: Callable[..., Any]
    ) -> Iterator[bytes]:
        """Serve one request. What it opened is closed whatever happens."""
        # A walk through all views of all spaces ends nowhere.
        default_handler.__self__.allow_propfind_infinite = False  # type: ignore[attr-defined]  # a bound method
        if environ["REQUEST_METHOD"] in ("GET", "HEAD") and environ["PATH_INFO"].endswith("/"):
            raise DAVError(405, "this is a folder; connect a file manager to it")
        if environ["REQUEST_METHOD"] in ("LOCK", "UNLOCK", "PROPPATCH") and not environ[ACCESS].may("write"):
            raise DAVError(403, "the token may only read")
        opened: list[DavReader] = []
        environ[_OPENED] = opened
        try:
            yield from default_handler(environ, start_response)
        finally:
            for reader in opened:
                self.bridge.run(reader.handle.release)


class _Acting:
    """What files and directories have in common."""

    environ: dict[str, Any]
    provider: TreeProvider
    path: str
    entry: DavEntry | None

    @property
    def where(self) -> str:
        """The path, as acts have it."""
        return self.path.strip("/")

    def act(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Have something done in the tree with the rights of the caller. DAVError."""
        access: Access = self.environ[ACCESS]
        return self.provider.bridge.run(act, *arguments, access)

    def get_last_modified(self) -> float | None:
        """Seconds since 1970; None where nobody knows."""
        return self.entry.attrs.mtime_ns // SECOND or None if self.entry is not None else None

    def set_last_modified(self, dest_path: str, time_stamp: str | int, *, dry_run: bool) -> bool:
        """What Explorer does after each copy."""
        seconds = util.parse_time_string(time_stamp) if isinstance(time_stamp, str) else time_stamp
        if not dry_run and seconds is not None:
            self.act(self.provider.acts.set_time, dest_path.strip("/"), int(seconds))
        return True

    def delete(self) -> None:
        """Remove it; see `DavActs.remove`."""
        self.act(self.provider.acts.remove, self.where)
        self.remove_all_properties(recursive=True)
        self.remove_all_locks(recursive=True)

    def support_recursive_move(self, dest_path: str) -> bool:
        """The tree moves directories whole."""
        return True

    def move_recursive(self, dest_path: str) -> list[Any]:
        """Move it to a name that is free."""
        if not self.act(self.provider.acts.move, self.where, dest_path.strip("/")):
            self._write_to(dest_path)
            self.act(self.provider.acts.remove, self.where)
        moved = self.provider.get_resource_inst(dest_path, self.environ)
        if moved is not None:
            self.provider.prop_manager.move_properties(self.get_ref_url(), moved.get_ref_url(), True, self.environ)
        self.remove_all_locks(recursive=True)
        return []

    def _write_to(self, dest_path: str) -> None:
        reader: DavReader = self.act(self.provider.acts.open, self.where)
        self.environ[_OPENED].append(reader)
        self.write(dest_path, DavStream(reader, self.provider.bridge).read)

    def write(self, path: str, read: Callable[[int], bytes]) -> DavEntry:
        """Write what `read` gives to a path, part by part: a large file takes its time. DAVError."""
        run = self.provider.bridge.run
        writer: DavWriter = self.act(self.provider.acts.begin, path.strip("/"))
        try:
            while part := read(CHUNK):
                run(writer.write, part)
            return run(writer.finish)
        except BaseException:
            run(writer.give_up)
            raise

    def replaces(self, dest_path: str) -> bool:
        """Whether a file is about to take the place of another: that is one act, and gives a note a new version."""
        there = self.provider.get_resource_inst(dest_path, self.environ)
        return there is not None and not there.is_collection and isinstance(self, TreeFile)

    def handle_move(self, dest_path: str) -> bool:
        """Whether this was a move in place of another file, and was done."""
        if not self.replaces(dest_path):
            return False
        self.move_recursive(dest_path)
        return True

    def handle_copy(self, dest_path: str, *, depth_infinity: bool) -> bool:
        """The same for a copy."""
        if not self.replaces(dest_path):
            return False
        self.copy_move_single(dest_path, is_move=False)
        return True

    def copy_move_single(self, dest_path: str, *, is_move: bool) -> None:
        """Copy a file; of a directory the directory alone."""
        if isinstance(self, TreeFile):
            self._write_to(dest_path)
        elif self.provider.get_resource_inst(dest_path, self.environ) is None:
            self.act(self.provider.acts.make_directory, dest_path.strip("/"))
        made = self.provider.get_resource_inst(dest_path, self.environ)
        if made is not None:
            self.provider.prop_manager.copy_properties(self.get_ref_url(), made.get_ref_url(), self.environ)

    # What the library's classes have.
    get_ref_url: Callable[[], str]
    remove_all_properties: Callable[..., None]
    remove_all_locks: Callable[..., None]


class TreeFile(_Acting, DAVNonCollection):  # type: ignore[misc]  # the library has no types
    """A file. `entry` None: it is about to be made by a PUT."""

    def __init__(self, path: str, environ: dict[str, Any], entry: DavEntry | None) -> None:
        super().__init__(path, environ)
        self.entry = entry
        self._reader: DavReader | None = None
        self._body: PutBody | None = None

    def get_content_length(self) -> int | None:
        """Its size; of a page that is computed, once it was."""
        if self.environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return self._open().size
        return self.entry.attrs.size if self.entry is not None else None

    def get_etag(self) -> str | None:
        """What changes with the content; None after a PUT of which something else was stored."""
        return self.entry.etag if self.entry is not None else None

    def support_etag(self) -> bool:
        """Whether there is one."""
        return self.entry is not None

    def support_ranges(self) -> bool:
        """Whether parts of it can be read."""
        return True

    def _open(self) -> DavReader:
        if self._reader is None:
            self._reader = self.act(self.provider.acts.open, self.where)
            self.environ[_OPENED].append(self._reader)
            self.entry = self._reader.entry
        return self._reader

    def get_content(self) -> DavStream:
        """Its bytes, as a file of Python."""
        return DavStream(self._open(), self.provider.bridge)

    def begin_write(self, *, content_type: str | None = None) -> PutBody:
        """Where the body of a PUT goes: it is written once it is whole."""
        self._body = PutBody()
        return self._body

    def end_write(self, *, with_errors: bool) -> None:
        """Write what has come, unless it is only a part."""
        assert self._body is not None  # `begin_write` made it
        with self._body.file as file:
            if with_errors:
                return  # the library goes on with the error
            if self.environ.get("CONTENT_LENGTH") not in (None, "", str(self._body.size)):
                raise DAVError(400, "the body did not arrive whole; nothing was written")
            file.seek(0)
            entry = self.write(self.path, file.read)
        # What is stored of a note is more than what was sent: a client must not take its own bytes for it.
        self.entry = entry if entry.attrs.size == self._body.size else None


class PutBody:
    """The body of a PUT. What can be a note stays in memory: the tree has yet to take out what is private."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY + 1)  # noqa: SIM115  # `end_write` closes it
        self.size = 0

    def write(self, data: bytes) -> None:
        """Take a part of it."""
        try:
            self.size += self.file.write(data)
        except OSError as error:
            raise DAVError(507, f"there is no room for the body: {error.strerror}") from None

    def close(self) -> None:
        """It is whole."""


class DavStream:
    """An open file, as the library reads it. The request closes it."""

    def __init__(self, reader: DavReader, bridge: Bridge) -> None:
        self._reader, self._bridge, self._offset = reader, bridge, 0

    def seek(self, offset: int) -> None:
        """Go on there."""
        self._offset = offset

    def read(self, size: int) -> bytes:
        """The next bytes."""
        data = self._bridge.run(self._reader.read, self._offset, size)
        self._offset += len(data)
        return data

    def close(self) -> None:
        """The request closes it."""


class TreeDirectory(_Acting, DAVCollection):  # type: ignore[misc]  # the library has no types
    """A directory."""

    def __init__(self, path: str, environ: dict[str, Any], entry: DavEntry) -> None:
        super().__init__(path, environ)
        self.entry: DavEntry = entry

    def get_member_list(self) -> list[TreeFile | TreeDirectory]:
        """What is in it."""
        entries: list[DavEntry] = self.act(self.provider.acts.list, self.where)
        return [resource(entry, self.environ) for entry in entries]

    def get_member_names(self) -> list[str]:
        """The names of what is in it."""
        return [member.name for member in self.get_member_list()]

    def handle_delete(self) -> bool:
        """Whether this was the removal of a space or a view, which does not begin with what is in it."""
        if is_removed_whole(self.entry.node):
            return False
        self.delete()
        return True

    def create_empty_resource(self, name: str) -> TreeFile:
        """A new file. A PUT makes it when its body has come, a LOCK now."""
        path = util.join_uri(self.path, name)
        is_lock = self.environ["REQUEST_METHOD"] == "LOCK"
        return TreeFile(path, self.environ, self.write(path, lambda _: b"") if is_lock else None)

    def create_collection(self, name: str) -> None:
        """A new directory; at the top, a space."""
        self.act(self.provider.acts.make_directory, util.join_uri(self.path, name).strip("/"))


def resource(entry: DavEntry, environ: dict[str, Any]) -> TreeFile | TreeDirectory:
    """The resource for an entry."""
    path = f"/{entry.path}"
    return TreeDirectory(path, environ, entry) if entry.is_directory else TreeFile(path, environ, entry)
