"""Ordinary files, symbolic links, pipes, sockets and devices.

Owns how a file is stored: bytes as the object; mode, owner, times and attributes as its metadata. Of what is no regular
file the object is small, and its metadata says what it is. A
save is accepted at close and uploaded later. Refuses to overwrite what another host wrote. Trio thread only.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from livememfs import errors
from livememfs.records.metadata import META_TYPE, META_XATTRS
from livememfs.records.posix import NOTHING, OWN_NAMES
from livememfs.text.foreign import Unreadable, read_object
from livememfs.tree.node import NOBODY, OWN_XATTRS, AttrChange, Attrs, Caller, Kind, Node, Symlink
from livememfs.tree.objectfile import ObjectFile, changed, inherited, pending_attrs, stat_of

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.body import Body
    from livememfs.tree.context import Context
    from livememfs.tree.node import Directory
    from livememfs.tree.plain import PlainDirectory

MAX_XATTR_NAME = 255
MAX_XATTR_BYTES = 1_500
"""S3 takes 2,048 bytes of metadata in all, counted as they are sent."""
_PLAIN_IN_HEADER = string.punctuation.replace("%", "")
_DEVICE = re.compile(r"[0-9]{1,8}")


class PlainFile(ObjectFile):
    """An ordinary file."""

    __slots__ = ("_xattrs",)

    parent: PlainDirectory

    def __init__(self, parent: PlainDirectory, name: str, context: Context, info: ObjectInfo | None, key: str) -> None:
        super().__init__(parent, name, context, info, key)
        self.size_limit = context.max_file_size
        self._xattrs: dict[str, str] | None = None
        if info is None:
            self.body.mark_dirty()  # an empty file is a file: it is stored when it is closed

    def rekey(self, key: str) -> None:
        """The directory has moved, and the object with it."""
        self.key = key
        if self.body.info is not None:
            self.body.info = replace(self.body.info, key=key)

    def accepts(self, info: ObjectInfo) -> bool:
        before = self.body
        accepted = super().accepts(info)
        if self.body is not before:
            self._xattrs = None  # like mode and time: they were set on a version that was replaced
        return accepted

    async def save(self, body: Body) -> None:
        """One new version, made from the one this body began with."""
        changes, data, xattrs = body.changes, body.content(), self._xattrs
        with pending_attrs(self) as attrs:
            body.info = await self.store(body, data, self.meta(attrs))
        body.saved = changes
        self._stored(xattrs)
        self.parent.known.saved(self)

    @property
    def attrs_pending(self) -> bool:
        return super().attrs_pending or (self._xattrs is not None and self.body.info is not None and not self.orphaned)

    async def save_attrs(self) -> None:
        xattrs = self._xattrs
        await super().save_attrs()
        self._stored(xattrs)

    def _stored(self, xattrs: dict[str, str] | None) -> None:
        """These are in the object now. Kept here as well, they would hide and overwrite what others set later."""
        if self._xattrs is xattrs:
            self._xattrs = None

    def meta(self, attrs: Mapping[str, str]) -> dict[str, str]:
        meta = super().meta(attrs)
        if self._xattrs is not None:
            meta[META_XATTRS] = _as_json(self._xattrs)
        return meta

    async def xattrs(self) -> Mapping[str, bytes]:
        return {**await super().xattrs(), **{name: value.encode("latin-1") for name, value in self._own().items()}}

    async def set_xattr(self, name: str, value: bytes | None, caller: Caller = NOBODY) -> None:
        if not name.startswith("user.") or name.startswith(OWN_XATTRS):
            raise errors.NotSupported(path=self.path, detail=f"setting {name}")
        own = dict(self._own())
        if value is None:
            if own.pop(name, None) is None:
                raise errors.NoAttribute(name, path=self.path)
        else:
            own[name] = value.decode("latin-1")
            if _size(own) > MAX_XATTR_BYTES:
                raise errors.NoSpace(f"the attributes of {self.path} take more than {MAX_XATTR_BYTES} bytes")
        self._xattrs = own
        if not self.busy:
            await self.flush(self.body)

    def _own(self) -> dict[str, str]:
        """Attributes the user set, by name."""
        if self._xattrs is not None:
            return self._xattrs
        meta = (self.body.info.meta if self.body.info is not None else None) or {}
        try:
            attributes = read_object(meta.get(META_XATTRS, "{}").encode("utf-8", "replace"))
        except Unreadable:
            return {}
        return {name: value for name, value in attributes.items() if _is_attribute(name, value)}


def _is_attribute(name: str, value: object) -> bool:
    """Whether a user can have set this attribute: the kernel takes the name, and each character is one byte."""
    sets = name.startswith("user.") and not name.startswith(OWN_XATTRS) and name.isprintable()
    return sets and len(name.encode()) <= MAX_XATTR_NAME and isinstance(value, str) and max(value, default="") <= "\xff"


def _as_json(xattrs: Mapping[str, str]) -> str:
    """Without blanks between the parts: each would take three bytes of a header."""
    return json.dumps(xattrs, ensure_ascii=True, separators=(",", ":"))


def _size(xattrs: Mapping[str, str]) -> int:
    """The bytes of these attributes in a header of S3. With too many, S3 would refuse every version of the file."""
    return len(quote(_as_json(xattrs), safe=_PLAIN_IN_HEADER))


def stays(target: str, prefix: str) -> bool:
    """Whether a link in the directory with this prefix can only lead to something in its space.

    A `..` after a name is refused: the name may itself be a link, and `..` then leads to the parent of its target.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    return not target.startswith("/") and ".." not in parts[up:] and up < prefix.count("/")


def expect_stays(target: str, directory: PlainDirectory, name: str) -> None:
    """LinkLeaves for a link that would lead out of the space."""
    if not stays(target, directory.prefix):
        raise errors.LinkLeaves(path=directory.path_of(name), target=target)


class PlainObject(Node):
    """What has no bytes for a user to write: a small object, and metadata that says what it is."""

    __slots__ = ("context", "info", "key")

    def __init__(self, parent: Directory, name: str, context: Context, info: ObjectInfo) -> None:
        super().__init__(parent, name)
        self.context, self.info, self.key = context, info, info.key

    def rekey(self, key: str) -> None:
        """The directory has moved, and the object with it."""
        self.key, self.info = key, replace(self.info, key=key)

    async def attrs(self) -> Attrs:
        kind, rdev = type_of(self.info)
        stat = stat_of(self.info)
        if kind == "symlink":
            return Attrs.of(kind, replace(stat, mode=0o777), self.info.size)
        return Attrs.of(kind, stat, 0, rdev=rdev)

    async def change(self, change: AttrChange, caller: Caller) -> None:
        shown = stat_of(self.info)
        set_now = changed(NOTHING, change, self.context, shown)
        if set_now is NOTHING:
            return
        kept = {name: value for name, value in inherited(self.info).items() if name not in OWN_NAMES}
        self.info = self.context.replica.restamp(self.info, kept | shown.under(set_now).render())
        self.context.writes.count += 1


class PlainSymlink(PlainObject, Symlink):
    """A symbolic link: its content is the path it stands for."""

    __slots__ = ()

    async def target(self) -> str:
        try:
            return (await self.context.replica.read(self.key)).data.decode("utf-8", "surrogateescape")
        except errors.ObjectMissing:
            raise errors.NotFound(path=self.path) from None


def type_of(info: ObjectInfo) -> tuple[Kind, tuple[int, int]]:
    """What an object is, and the number of a device. What cannot be read is an ordinary file."""
    kind, *numbers = (info.meta or {}).get(META_TYPE, "").split(":")
    if kind in ("symlink", "fifo", "socket") and not numbers:
        return cast("Kind", kind), (0, 0)
    if kind in ("char", "block") and len(numbers) == 2 and all(_DEVICE.fullmatch(number) for number in numbers):
        return cast("Kind", kind), (int(numbers[0]), int(numbers[1]))
    return "file", (0, 0)


def type_meta(kind: Kind, rdev: tuple[int, int]) -> dict[str, str]:
    """The reverse."""
    return {META_TYPE: f"{kind}:{rdev[0]}:{rdev[1]}" if kind in ("char", "block") else kind}
