"""The folder store itself, synchronous: objects as files that people can read.

Owns the order of the steps of every change, which is what makes a crash harmless, and the sweep of what a crash left.
Refuses trio; any thread and any number of processes may work on one folder at once.

A put: content to a temp file, side file describing new and present version, rename of the content (the commit), then
a stale odd twin goes. A delete: an odd twin first, then the plain file (the commit), then the side file and folders
that became empty. At every point in between the object is either the old or the new one, whole.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from livememfs import private
from livememfs.clock import Clock
from livememfs.errors import Denied, NameTooLong, NoSpace, ObjectMissing, PreconditionFailed, StoreError, Unreachable
from livememfs.store.base import (
    Condition,
    IfMatch,
    ObjectInfo,
    Page,
    StoredObject,
    check_condition,
    check_key,
    check_meta,
    nanoseconds,
)
from livememfs.store.content import Content, FileContent, content_etag
from livememfs.store.folder import sidecar
from livememfs.store.folder.disk import Disk
from livememfs.store.folder.layout import Layout
from livememfs.store.folder.locks import claim_folder, held
from livememfs.store.folder.odd import OddKeys
from livememfs.store.folder.place import FolderPlace
from livememfs.store.folder.sidecar import Identity, Version
from livememfs.store.folder.versions import FoundVersion, Versions
from livememfs.store.folder.walk import Entries, MergedKeys, Walk
from livememfs.store.listing import ListingRequest, page_of

_ROUNDS = 100


class Files:
    """Objects below `root`, which is created when it is missing. Methods mirror Store and raise the same errors."""

    def __init__(self, root: Path, clock: Clock, disk: Disk) -> None:
        self._layout = Layout(root)
        self._clock = clock
        self._disk = disk
        self._versions = Versions(self._layout)
        self._odd_keys = OddKeys(self._layout)
        self._entries = Entries()
        with self._errors("", "open"):
            private.make(root)
            for folder in self._layout.own_folders:
                folder.make_folder()
            self._temp, self._claim = self._claim_temp_folder()

    def close(self) -> None:
        """Remove the temp folder and let go of its lock. Twice is fine."""
        if self._claim is not None:
            self._temp.remove_tree()
            os.close(self._claim)
            self._claim = None

    def get(self, key: str, if_match: str | None) -> StoredObject:
        """See Store.get."""
        with self._errors(key, "read"):
            found = self._versions.find(check_key(key), content=True)
            if found is None or found.data is None:
                raise self._missing(key)
            if if_match is not None and found.version.etag != if_match:
                raise PreconditionFailed(key=key)
            return StoredObject(found.info(key), found.data)

    def get_part(self, key: str, start: int, size: int, if_match: str) -> bytes:
        """See Store.get_part."""
        with self._errors(key, "read"):
            found = self._versions.find(check_key(key), part=(start, size))
            if found is None or found.data is None:
                raise self._missing(key)
            if found.version.etag != if_match:
                raise PreconditionFailed(key=key)
            return found.data

    def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        with self._errors(key, "read"):
            found = self._versions.find(check_key(key))
            if found is None:
                raise self._missing(key)
            return found.info(key)

    def put(self, key: str, data: Content, meta: Mapping[str, str] | None, condition: Condition | None) -> ObjectInfo:
        """See Store.put."""
        kept = check_meta(meta)
        with self._errors(key, "write"), held(self._layout.lock(check_key(key))):
            return self._replace(key, data, kept, condition)

    def copy(self, source: str, target: str, meta: Mapping[str, str] | None, condition: Condition | None) -> ObjectInfo:
        """See Store.copy. The source is read under the target's lock, so a copy onto itself loses no other write."""
        lock = self._layout.lock(check_key(target))
        with self._errors(target, "write"), held(lock), self._versions.content(check_key(source)) as found:
            if found is None:
                raise self._missing(source)
            version, content = found
            return self._replace(target, content, check_meta(version.meta if meta is None else meta), condition)

    def delete(self, key: str, condition: IfMatch | None) -> None:
        """See Store.delete."""
        with self._errors(key, "delete"), held(self._layout.lock(check_key(key))):
            current = self._versions.find(key)
            if current is None:
                if condition is not None:
                    raise self._missing(key)
                return
            check_condition(condition, key=key, current=current.version.etag)
            self._drop_twin(key, current.path)  # first: removing the plain file must not bring it to light
            self._disk.unlink(current.path, lasting=True)
            self._disk.unlink(self._layout.side(key), lasting=False)
            self._prune(current.path.parent)

    def list_page(self, request: ListingRequest) -> Page:
        """See Store.list_page."""
        with self._errors(request.prefix, "list"):
            self._check_root()
            walk = Walk(self._layout, request.prefix, self._entries, folded=request.delimiter == "/")
            page = page_of(MergedKeys(walk, self._odd_keys.in_order()), request)
            found = ((key, self._versions.find(key)) for key in page.keys)
            objects = tuple(replace(item.info(key), meta=None) for key, item in found if item is not None)
            return Page(objects, tuple(page.prefixes), page.next_token)

    def _replace(self, key: str, data: Content, meta: dict[str, str], condition: Condition | None) -> ObjectInfo:
        """The steps of a put, under the key's lock."""
        current = self._versions.find(key)
        check_condition(condition, key=key, current=current.version.etag if current else None)
        temp = self._new_temp()
        try:
            stat = self._disk.write_new(temp, data, modified_ns=self._next_moment(current))
            # Of a large file what was written counts: its source may change while it is read.
            written = FileContent(Path(temp), stat.st_size) if isinstance(data, FileContent) else data
            version = Version(Identity.of(stat), content_etag(written), meta)
            self._describe(key, [version, *([current.version] if current else [])])
            path = self._name(temp, key)
        except BaseException:
            with suppress(OSError):
                self._disk.unlink(temp, lasting=False)
            raise
        self._drop_twin(key, path)
        return FoundVersion(path, version).info(key)

    def _next_moment(self, current: FoundVersion | None) -> int:
        """When the new version is dated: now, and in any case later than the one it replaces."""
        now = nanoseconds(self._clock.now())
        return max(now, current.version.identity.modified_ns + 1) if current else now

    def _describe(self, key: str, versions: list[Version]) -> None:
        side, temp = self._layout.side(key), self._new_temp()
        self._disk.make_folder(side.parent, below=self._layout.meta_folder)
        self._disk.write_new(temp, sidecar.render(key, versions))
        self._disk.replace(temp, side)

    def _name(self, temp: FolderPlace, key: str) -> FolderPlace:
        """Commit: put the content where it belongs, on the plain path if it can be. The path."""
        plain = self._layout.plain(key)
        if plain is not None and self._name_plain(temp, plain):
            return plain
        odd = self._layout.odd(key)
        self._disk.replace(temp, odd)
        return odd

    def _name_plain(self, temp: FolderPlace, plain: FolderPlace) -> bool:
        """Whether the plain path could be used: not when a folder has it, or a file stands where a parent would."""
        for _ in range(_ROUNDS):
            try:
                self._disk.make_folder(plain.parent, below=self._layout.root)
                self._disk.replace(temp, plain)
                return True
            except FileNotFoundError:
                continue  # another writer's delete pruned a parent between the two steps
            except IsADirectoryError:
                if not self._disk.remove_folder(plain):
                    return False
            except (FileExistsError, NotADirectoryError):
                return False
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                return False
        raise StoreError("its folder is removed again and again", key=str(plain))

    def _drop_twin(self, key: str, path: FolderPlace) -> None:
        """Remove an older odd form of an object that lies at `path`."""
        odd = self._layout.odd(key)
        if path != odd and odd.exists():
            self._disk.unlink(odd, lasting=True)

    def _prune(self, folder: FolderPlace) -> None:
        """Remove folders that hold nothing any more: a bucket has none of those."""
        while folder not in (self._layout.root, self._layout.odd_folder) and self._disk.remove_folder(folder):
            folder = folder.parent

    def _new_temp(self) -> FolderPlace:
        return self._temp / uuid4().hex

    def _claim_temp_folder(self) -> tuple[FolderPlace, int | None]:
        """A temp folder of our own, after removing those of stores that are no more (the kernel dropped their lock)."""
        folder = self._layout.temp_folder
        with held(self._layout.lock_folder / "open"):
            for left in map(folder.__truediv__, folder.names()):
                if not left.is_folder():
                    left.unlink()
                elif (descriptor := claim_folder(left)) is not None:
                    left.remove_tree()
                    os.close(descriptor)
            mine = folder / uuid4().hex
            mine.make_folder()
            return mine, claim_folder(mine)

    def _missing(self, key: str) -> ObjectMissing:
        self._check_root()
        return ObjectMissing(key=key)

    def _check_root(self) -> None:
        """A folder that was unmounted or moved is out of reach, not empty: its objects must not look deleted."""
        if not self._layout.odd_folder.is_folder():
            raise Unreachable("the folder is gone", endpoint=self._layout.root, advice=self._advice("bring back {}"))

    def _advice(self, step: str) -> str:
        """What to do about the folder; what helps with a bucket is no help here."""
        return f"{step.format(self._layout.root)}, or name another folder with --store or LIVEMEMFS_STORE"

    @contextmanager
    def _errors(self, key: str, doing: str) -> Iterator[None]:
        """Every OSError as one of ours."""
        try:
            yield
        except OSError as error:
            said, root = f"{doing}: {error}", self._layout.root
            what = key or str(root)  # opening and listing are about the whole of it
            match error.errno:
                case errno.ENOSPC | errno.EDQUOT:
                    raise NoSpace(f"{said} in {root}") from error
                case errno.EACCES | errno.EPERM | errno.EROFS:
                    raise Denied(said, key=what, advice=self._advice("let this user write to {}")) from error
                case errno.ENAMETOOLONG:
                    raise NameTooLong(said, path=what) from error
                case errno.ENOENT if not self._layout.odd_folder.is_folder():
                    raise Unreachable(said, endpoint=root, advice=self._advice("see that {} can be made")) from error
                case errno.ENOTDIR | errno.EEXIST if not key:
                    raise StoreError(said, key=what, advice=self._advice("see that {} is a folder")) from error
                case _:
                    raise StoreError(said, key=what) from error
