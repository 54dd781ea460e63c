"""What an index has in memory, as it was when it was closed: a large one is open at once, without reading its records.

Owns the form of the file: a line of JSON that says what follows, then arrays, one after the other. Refuses to know what
they mean, and to map the file: if another process cut it short, reading the map would end this process.
Blocking; any thread.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livememfs import private
from livememfs.recall.index.exchanged import Damaged

FORM = "livememfs index 1"
LONGEST_HEAD = 64 << 20
TAKEN_AT_ONCE = 16 << 20
"""Bytes of a long array that come into memory at once."""


def write(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Put facts (JSON) and arrays into a file, whole or not at all. Raises OSError."""
    laid_out = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    head = json.dumps({"form": FORM, "facts": facts, "arrays": laid_out}).encode() + b"\n"
    fresh = path.with_name(path.name + ".new")
    try:
        with open(fresh, "wb", opener=private.opener) as file:
            file.write(head)
            for array in arrays.values():
                for part in array if array.ndim > 1 and not array.flags.c_contiguous else (array,):
                    np.ascontiguousarray(part).tofile(file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


class Snapshot:
    """An open file. Raises Damaged for a file that `write` did not make, OSError for one that cannot be read."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            line = file.readline(LONGEST_HEAD)
        try:
            head = json.loads(line)
            if head["form"] != FORM:
                raise ValueError(head["form"])
            self.facts: dict[str, Any] = head["facts"]
            self._there: dict[str, tuple[int, Any, tuple[int, ...]]] = {}
            end = len(line)
            for name, (dtype, shape) in head["arrays"].items():
                self._there[name] = end, np.dtype(dtype), tuple(shape)
                end += np.dtype(dtype).itemsize * math.prod(shape)
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"{path.name} is no snapshot of an index: {error}") from error
        self._path = path
        if path.stat().st_size != end:
            raise Damaged(f"{path.name} is not whole")

    def array(self, name: str) -> NDArray[Any]:
        """One of the arrays."""
        _, dtype, shape = self._known(name)
        values = np.empty(shape, dtype)
        start = 0
        for rows in self.rows(name):
            values[start : start + len(rows)] = rows
            start += len(rows)
        return values

    def rows(self, name: str) -> Iterator[NDArray[Any]]:
        """One of the arrays, by portions of rows."""
        start, dtype, shape = self._known(name)
        wide = math.prod(shape[1:])
        at_once = max(1, TAKEN_AT_ONCE // max(1, dtype.itemsize * wide))
        with self._path.open("rb") as file:
            file.seek(start)
            for first in range(0, shape[0], at_once):
                count = min(at_once, shape[0] - first)
                values = np.fromfile(file, dtype, count * wide)
                if len(values) < count * wide:
                    raise Damaged(f"{self._path.name} is not whole")
                yield values.reshape(count, *shape[1:])

    def _known(self, name: str) -> tuple[int, Any, tuple[int, ...]]:
        if name not in self._there:
            raise Damaged(f"{self._path.name} lacks {name}")
        return self._there[name]
