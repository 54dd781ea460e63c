"""Renames: a file that is gone here and new there, with the same inode and the same bytes.

Owns telling them from a removal and a creation: on the tree a rename keeps what a note or a large file is. A wrong
guess does no harm, since both sides are compared afterwards. Trio thread only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.mirror.branch import Hidden
from livememfs.mirror.rows import MirrorRow, Sig

if TYPE_CHECKING:
    from livememfs.mirror.settling import Settler


async def settle_renames(settler: Settler, found: dict[str, Sig | None]) -> None:
    """A file that is gone here and new there, with the same inode and bytes, was renamed. Takes those out."""
    gone: dict[tuple[str, int], str] = {}
    for path, sig in found.items():
        row = settler.rows.get(path)
        if sig is None and row is not None:
            gone[row.local.kind, row.local.ino] = path
    for new in sorted(path for path, sig in found.items() if sig is not None and settler.rows.get(path) is None):
        sig = found[new]
        assert sig is not None  # by the line above
        old = gone.get((sig.kind, sig.ino))
        row = settler.rows.get(old) if old is not None else None
        if old is None or row is None or not row.local.same_file(sig) or row.behind:
            continue
        if await _renamed(settler, old, new, sig, row):
            found[new] = sig
            for path in [path for path in found if path == old or path.startswith(f"{old}/")]:
                del found[path]


async def _renamed(settler: Settler, old: str, new: str, sig: Sig, row: MirrorRow) -> bool:
    """Do a rename on the tree; False when it is to be a removal and a creation."""
    try:
        remote, _ = await settler.branch.look(old)
        if remote is None or (remote.kind, remote.key) != (row.local.kind, row.key):
            return False
        await settler.branch.rename(old, new)
    except (errors.LiveMemError, Hidden):
        return False
    if sig.kind == "d":
        settler.rows.move(old, new)
        settler.rows.relook(new, sig)
        for path in settler.rows.below(new):
            settler.agenda.heard(path)
        return True
    settler.rows.drop(old)
    settler.agenda.touched([new])  # it may have another mode as well
    sig = replace(sig, mode=row.local.mode)
    remote, node = await settler.branch.look(new)
    if remote is not None:
        settler.rows.set(new, MirrorRow(sig, row.digest, remote.key, remote.etag))
    elif node is not None:  # a note has its own name for it
        settler.rows.set(new, MirrorRow(sig, row.digest, "?", "?", behind=True))
        settler.agenda.heard(new, f"{new.rpartition('/')[0]}/{node.name}")
    settler.counts["up"] += 1
    return True
