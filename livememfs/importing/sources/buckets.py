"""A space of another bucket of this layout: a folder of it, an archive, a backup, or what `livememfs export` wrote.

Owns which objects come: notes, bank, memories, observations, sessions and agents' own files, under their own names.
Rules, ledger and figures stay behind: the space here has its own. Any thread.
"""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from livememfs.errors import BadRequest
from livememfs.importing.item import KINDS, Read, SourceFault, SourceObject
from livememfs.records import keys

LARGEST = 64 << 20
"""Bytes of one object, the limit of such files on a mount."""
_Load = Callable[[], bytes]


def read(path: Path) -> Iterator[Read]:
    """The objects of the space, in the order of their names. BadRequest for a path with several spaces, or none."""
    try:
        if path.is_dir():
            yield from _objects(path, ((str(file.relative_to(path)), file.read_bytes) for file in _files(path)))
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                entries = [entry for entry in zipped.infolist() if not entry.is_dir()]
                yield from _too_large(path, ((entry.filename, entry.file_size) for entry in entries))
                small = [entry for entry in entries if entry.file_size <= LARGEST]
                yield from _objects(path, [(entry.filename, _zipped(zipped, entry)) for entry in small])
        else:
            with tarfile.open(path) as packed:
                members = [member for member in packed if member.isfile()]
                yield from _too_large(path, ((member.name, member.size) for member in members))
                within = [member for member in members if member.size <= LARGEST]
                yield from _objects(path, [(member.name, _packed(packed, member)) for member in within])
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        yield SourceFault(str(path), str(error))


def _too_large(path: Path, sizes: Iterable[tuple[str, int]]) -> Iterator[Read]:
    for name, size in sizes:
        if size > LARGEST:
            yield SourceFault(f"{path}: {name}", f"it has more than {LARGEST >> 20} MiB")


def _files(path: Path) -> list[Path]:
    return [file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink()]


def _zipped(zipped: zipfile.ZipFile, entry: zipfile.ZipInfo) -> _Load:
    return lambda: zipped.read(entry)


def _packed(packed: tarfile.TarFile, member: tarfile.TarInfo) -> _Load:
    def load() -> bytes:
        file = packed.extractfile(member)
        return file.read() if file is not None else b""

    return load


def _objects(path: Path, found: Iterable[tuple[str, _Load]]) -> Iterator[Read]:
    named = dict(found)
    top = _top(path, named)
    for name in sorted(named):
        below = name.removeprefix(top)
        if name.startswith(top) and keys.parse(f"space/{below}").kind in KINDS:
            try:
                yield SourceObject(below, named[name](), f"{path}: {name}")
            except OSError as error:
                yield SourceFault(f"{path}: {name}", error.strerror or str(error))


def _top(path: Path, names: Iterable[str]) -> str:
    """What the names of the space's objects begin with: the folder with the space's own record."""
    tops = {name[: -len(keys.META)] for name in names if name == keys.META or name.endswith(f"/{keys.META}")}
    tops = {top for top in tops if not top.startswith("_")}  # backups of a bucket
    if len(tops) != 1:
        spaces = ", ".join(sorted(top.strip("/") for top in tops)[:8])
        detail = f"it has several spaces, name one of them: {spaces}" if tops else f"there is no {keys.META} in it"
        raise BadRequest(path=str(path), detail=detail)
    return tops.pop()
