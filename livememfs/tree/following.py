"""Readers follow: a descriptor that only reads goes on in the newest version of its file.

Owns when it does so: at the moment when the kernel is given that version's attributes. All descriptors of an inode
share one size and one cache in the kernel, so none may see another version than the kernel does. A descriptor that
writes is pinned to what it writes. Refuses to go on in the middle of a large file that comes in parts: its reader would
get parts of two versions, and gets ESTALE. Trio thread only; nothing here awaits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livememfs.tree.body import Body
    from livememfs.tree.objectfile import ObjectFile


def follow(file: ObjectFile) -> None:
    """Have the readers of a file go on in the version that it has now."""
    for handle in file.handles:
        if handle.body is not file.body and not handle.mode.write:
            handle.torn = handle.torn or is_amid(handle.body, handle.reached)
            handle.body = file.body


def is_amid(body: Body, reached: int) -> bool:
    """Whether who has read a version up to `reached` would miss the rest of it. Small ones are read in one go."""
    return body.in_parts and 0 < reached < body.size
