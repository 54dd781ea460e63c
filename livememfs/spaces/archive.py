"""An archive file that appears whole or not at all.

Owns the two formats of an export, in which the same objects always give the same bytes, and which names may be in an
archive. Refuses any other suffix. The writer blocks: its methods are called in a worker thread, one at a time.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from livememfs.errors import UsageError

_TAR_SUFFIXES = (".tar.gz", ".tgz")
_ZIP_SUFFIX = ".zip"
_MODE = 0o644
_ZIP_EPOCH = datetime(1980, 1, 1, tzinfo=UTC)


class _Tar:
    def __init__(self, file: IO[bytes]) -> None:
        self._gzip = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see close

    def add(self, name: str, data: bytes, modified: datetime) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = len(data), _MODE, int(modified.timestamp())
        self._tar.addfile(entry, io.BytesIO(data))

    def close(self) -> None:
        self._tar.close()
        self._gzip.close()


class _Zip:
    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, data: bytes, modified: datetime) -> None:
        entry = zipfile.ZipInfo(name, max(modified, _ZIP_EPOCH).timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = _MODE << 16
        self._zip.writestr(entry, data)

    def close(self) -> None:
        self._zip.close()


class ArchiveWriter:
    """Writes `target` by way of a temporary file beside it.

    Call `add` for each member, then `finish`, or `abandon` to leave nothing behind. OSError comes out as it is.
    """

    def __init__(self, target: Path) -> None:
        """Choose the format by the suffix and open the temporary file. Raises UsageError for another suffix."""
        self._target = target
        form = archive_format(target)
        # The name is random and the mode 0600: only the user may read an archive of the user's memory.
        descriptor, self._temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        self._file = os.fdopen(descriptor, "wb")
        self._format = form(self._file)

    def add(self, name: str, data: bytes, modified: datetime) -> None:
        """One member. `modified` is aware, in UTC."""
        self._format.add(name, data, modified)

    def finish(self) -> int:
        """Make the file appear under its name; returns its size in bytes."""
        self._format.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        os.replace(self._temporary, self._target)  # noqa: PTH105 - the name is a str from mkstemp
        return size

    def abandon(self) -> None:
        """Remove what was written so far. Never raises: it runs while another error is being raised."""
        # The format is closed first: left open, it would write into the closed file when it is collected.
        for step in (self._format.close, self._file.close, lambda: os.unlink(self._temporary)):  # noqa: PTH108
            try:
                step()
            except (OSError, ValueError):
                continue


def archive_format(target: Path) -> type[_Tar] | type[_Zip]:
    """The format a file name asks for. Raises UsageError when it asks for none."""
    if target.name.endswith(_TAR_SUFFIXES):
        return _Tar
    if target.name.endswith(_ZIP_SUFFIX):
        return _Zip
    raise UsageError(f"{target} must end in .tar.gz, .tgz or .zip")


def unpackable(names: Iterable[str]) -> set[str]:
    """The names that can become files below the folder where the archive is unpacked.

    A bucket may have names that no folder can have: `a/../b`, or both `a` and `a/b`; then `a` is left out.
    """
    good = {name for name in names if _is_a_path(name)}
    return good - {name[:at] for name in good for at, character in enumerate(name) if character == "/"}


def _is_a_path(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")  # Windows takes a backslash for a slash
    return "\0" not in name and not {"", ".", ".."}.intersection(parts)
