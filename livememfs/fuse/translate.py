"""Between the tree's values and the kernel's structures.

Owns modes, flags, times and what the kernel may cache for how long. Pure; trio thread only.
"""

from __future__ import annotations

import os
import stat
from copy import copy

import pyfuse3

from livememfs.records.posix import Stat
from livememfs.tree.node import AttrChange, Attrs, Caller, Ids, Kind, OpenMode

KERNEL_SECONDS = 1.0
"""How long the kernel believes a name or attributes without asking."""
STEADY_SECONDS = 30.0
"""The same where changes are pushed. Shorter than the time for which the watcher watches after the last request."""
BLOCK_SIZE = 131_072
"""What tools take as the best size of one read or write."""
TYPES: dict[Kind, int] = {
    "file": stat.S_IFREG,
    "directory": stat.S_IFDIR,
    "symlink": stat.S_IFLNK,
    "fifo": stat.S_IFIFO,
    "socket": stat.S_IFSOCK,
    "char": stat.S_IFCHR,
    "block": stat.S_IFBLK,
}
_DISK_BLOCK = 512


def entry(ino: int, attrs: Attrs, ids: Ids, *, steady: bool = False) -> pyfuse3.EntryAttributes:
    """The kernel's form of `attrs`. Volatile attributes are not cached; `steady`: the kernel will be told of a change.

    The name of a file is cached for a short time only: where another host has removed it and made it again, it leads to
    another inode, and there is no notice for that.
    """
    result = pyfuse3.EntryAttributes()
    seconds = STEADY_SECONDS if steady else KERNEL_SECONDS
    result.st_ino = ino
    result.generation = 0
    result.entry_timeout = seconds if attrs.kind == "directory" else KERNEL_SECONDS
    result.attr_timeout = 0.0 if attrs.volatile else seconds
    result.st_mode = TYPES[attrs.kind] | attrs.mode
    result.st_nlink = attrs.nlink
    result.st_uid, result.st_gid = ids.shown(attrs.uid, attrs.gid)
    result.st_rdev = os.makedev(*attrs.rdev)
    result.st_size = attrs.size
    result.st_blksize = BLOCK_SIZE
    result.st_blocks = -(-attrs.size // _DISK_BLOCK)
    _set_times(result, attrs.mtime_ns, attrs.atime_ns, attrs.ctime_ns)
    return result


def _set_times(result: pyfuse3.EntryAttributes, mtime_ns: int, atime_ns: int | None, ctime_ns: int | None) -> None:
    result.st_mtime_ns = max(mtime_ns, 0)
    result.st_atime_ns = max(mtime_ns if atime_ns is None else atime_ns, 0)
    result.st_ctime_ns = max(mtime_ns if ctime_ns is None else ctime_ns, 0)


def file_entry(ino: int, size: int, known: Stat, ids: Ids, *, steady: bool) -> pyfuse3.EntryAttributes:
    """As `entry`, for a file that nobody has open: fast, since a listing may have very many."""
    result = pyfuse3.EntryAttributes()
    result.st_ino = pyfuse3.InodeT(ino)
    result.entry_timeout = KERNEL_SECONDS
    result.attr_timeout = file_seconds(steady=steady)
    result.st_mode = pyfuse3.ModeT(stat.S_IFREG | (known.mode or 0))
    result.st_nlink = 1
    result.st_uid, result.st_gid = ids.shown(known.uid, known.gid)
    result.st_size = size
    result.st_blksize = BLOCK_SIZE
    result.st_blocks = -(-size // _DISK_BLOCK)
    _set_times(result, known.mtime_ns or 0, known.atime_ns, known.ctime_ns)
    return result


def unkept(entry: pyfuse3.EntryAttributes) -> pyfuse3.EntryAttributes:
    """The same for a name that the kernel must not keep; a listing goes on using the other one."""
    result = copy(entry)
    result.entry_timeout = 0.0
    return result


def kind_of(mode: int) -> Kind:
    """What a mode of `mknod` asks for."""
    return next(kind for kind, bits in TYPES.items() if bits == stat.S_IFMT(mode))


def file_seconds(*, steady: bool) -> float:
    """How long the kernel may cache the attributes of a file."""
    return STEADY_SECONDS if steady else KERNEL_SECONDS


def caller(context: pyfuse3.RequestContext) -> Caller:
    """Who asks."""
    return Caller(context.uid, context.gid, context.pid, context.umask)


def open_mode(flags: int) -> OpenMode:
    """The flags of `open`. O_TRUNC arrives with the open itself, and without the right to write it means nothing."""
    access = flags & os.O_ACCMODE
    write = access != os.O_RDONLY
    return OpenMode(
        read=access != os.O_WRONLY,
        write=write,
        append=write and bool(flags & os.O_APPEND),
        truncate=write and bool(flags & os.O_TRUNC),
    )


def attr_change(attrs: pyfuse3.EntryAttributes, fields: pyfuse3.SetattrFields) -> AttrChange:
    """What `setattr` asks for."""
    return AttrChange(
        mode=stat.S_IMODE(attrs.st_mode) if fields.update_mode else None,
        uid=attrs.st_uid if fields.update_uid else None,
        gid=attrs.st_gid if fields.update_gid else None,
        size=attrs.st_size if fields.update_size else None,
        mtime_ns=attrs.st_mtime_ns if fields.update_mtime else None,
        atime_ns=attrs.st_atime_ns if fields.update_atime else None,
    )


def statfs(size: int, free: int) -> pyfuse3.StatvfsData:
    """What the local cache has, in bytes: a bucket has no size, and tools that ask often must not cost requests."""
    figures = pyfuse3.StatvfsData()
    figures.f_bsize = figures.f_frsize = block = 4_096
    figures.f_blocks = size // block
    figures.f_bfree = figures.f_bavail = free // block
    figures.f_files = 1 << 32
    figures.f_ffree = figures.f_favail = 1 << 31
    figures.f_namemax = 255
    return figures
