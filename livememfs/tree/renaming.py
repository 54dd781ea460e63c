"""Renaming between ordinary directories.

Owns the order of the steps: a rename that fails leaves both names as they were, and what was written and is not saved
yet moves with its file. Refuses to move more than `MAX_MOVED` objects (EXDEV: tools copy instead), and for a confined
user every move after which a link could lead out of the space. Trio thread only.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.cache.presence import known_below
from livememfs.records import keys
from livememfs.tree.adopted import AdoptedFile
from livememfs.tree.marker import keep_directory
from livememfs.tree.node import Attrs, Directory, Node, check_key
from livememfs.tree.objectfile import replaced
from livememfs.tree.plainfile import PlainFile, PlainObject, PlainSymlink, expect_stays

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo
    from livememfs.tree.plain import PlainDirectory

MAX_MOVED = 5_000


async def move_leaf(
    source: PlainDirectory, node: PlainFile | PlainObject, target: PlainDirectory, new_name: str, existing: Node | None
) -> None:
    """Move what is no directory, over `existing` if there is one. IsADirectory, LinkLeaves."""
    if isinstance(existing, Directory):
        raise errors.IsADirectory(path=existing.path)
    if isinstance(node, PlainSymlink) and source.context.confined:
        expect_stays(await node.target(), target, new_name)
    key, unsaved = target.prefix + new_name, False
    is_joined = isinstance(node, AdoptedFile) and keys.is_agent_index(key)
    if isinstance(existing, AdoptedFile) and existing is not node:
        await existing.keep()
    if isinstance(existing, PlainFile) and not is_joined:
        await existing.detach()
    try:
        if isinstance(node, PlainObject):
            node.info = await _move_object(source, node.name, node.info, key)
            node.key = key
            source.known.stored.pop(node.name, None)
        elif isinstance(node, AdoptedFile) and is_joined:
            await _become_index(source, node, existing, target, new_name)
        else:
            unsaved = await _move_file(source, node, key)
    except BaseException:
        if isinstance(existing, PlainFile):
            existing.attach()  # it still has its name, or what the copy made of it
        raise
    if existing is not None:
        target.known.unsaved.pop(new_name, None)
    node.parent, node.name = target, new_name
    target.known.stored[new_name] = node
    if isinstance(node, PlainFile) and unsaved:
        target.known.unsaved[new_name] = node


async def _become_index(
    source: PlainDirectory, file: AdoptedFile, existing: Node | None, target: PlainDirectory, new_name: str
) -> None:
    """Put a file in the place of an index: what others have written there since its maker read it is joined in."""
    old, name = file.body.info, file.name
    await file.replace(existing if isinstance(existing, AdoptedFile) else None, target, new_name)
    if old is not None:
        await keep_directory(source, name)
        source.context.replica.remove(old.key, base=old)
    source.known.forget(name)


async def _move_file(source: PlainDirectory, file: PlainFile, key: str) -> bool:
    """Give a file another key. What was written and not saved yet travels with it.

    True when the file was never stored. Then the object under its new key is the version that it replaces: type and
    attributes of that object are not the file's own.
    """
    async with file._saving:
        unsaved = source.known.unsaved.get(file.name) is file
        if file.body.info is not None:
            info: ObjectInfo | None = await _move_object(source, file.name, file.body.info, key)
        else:
            info = await source.context.stored(key)  # its first put is conditional on the version that it replaces
        file.body.info = replaced(info) if unsaved and info is not None else info
        file.key = key
    source.known.forget(file.name)
    return unsaved


async def _move_object(source: PlainDirectory, name: str, info: ObjectInfo, key: str) -> ObjectInfo:
    """Have the other key accepted, over what is known to be there."""
    overwritten = await source.context.stored(key)
    await keep_directory(source, name)
    return source.context.replica.move(info, key, replaces=overwritten)


def check_directory_move(
    source: PlainDirectory, node: PlainDirectory, target: PlainDirectory, new_name: str, existing: Node | None
) -> None:
    """Raise when a directory cannot move there: NotADirectory, InvalidName, CrossesKinds."""
    if existing is not None and not isinstance(existing, Directory):
        raise errors.NotADirectory(path=existing.path)
    if target.prefix.startswith(node.prefix):
        raise errors.InvalidName(path=target.path_of(new_name), detail="a directory cannot move into itself")
    if source.context.confined and target.prefix.count("/") < source.prefix.count("/"):
        raise errors.CrossesKinds(path=node.path)  # a link in it may lead too far up then: `mv` makes each anew


async def move_directory(
    source: PlainDirectory,
    node: PlainDirectory,
    target: PlainDirectory,
    new_name: str,
    replaces: tuple[PlainDirectory, Attrs] | None,
) -> None:
    """Move all objects below one prefix. `replaces` is an empty directory that has the name, and its attributes."""
    replica = source.context.replica
    for file in node.known.unsaved_below():
        await file.flush(file.body)
    if target is not source:
        await keep_directory(source, node.name)
    old, new = node.prefix, f"{target.prefix}{new_name}/"
    moved = known_below(replica.names, old)
    if moved is None:
        moved = await replica.names.walk(old, local=True)
    if len(moved) > MAX_MOVED:
        raise errors.CrossesKinds(path=node.path)
    for key in (new, *(new + info.key[len(old) :] for info in moved)):
        check_key(key, target.path_of(new_name))
    # Nothing was awaited since the walk: a version accepted after it would be removed with its old key.
    replica.move_all(old, new, moved)
    if replaces is not None:  # only now: after a refusal the other directory must be as it was
        marker = replica.names.now(new)
        if marker is not None and all(info.key != old for info in moved):
            with suppress(errors.NoSpace):  # the move is done; mode and time of the replaced directory are not wanted
                replica.remove(new, base=marker)
        replaces[0].last = replace(replaces[1], nlink=0)
    source.known.stored.pop(node.name, None)
    node.parent, node.name = target, new_name
    target.known.stored[new_name] = node
    node.known.rekey()
