"""Rows of small numbers: the same wherever they lie, and in a file that nobody can take away from under us."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from livememfs.recall.index import rows as module
from livememfs.recall.index.rows import Rows
from livememfs.recall.index.vectors import Vectors, packed

WIDTH = 64


@pytest.fixture
def from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is put into a file."""
    monkeypatch.setattr(module, "MAPPED_FROM", 1)


def numbers(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-127, 128, (count, WIDTH)).astype(np.int8)


def in_memory(mapped: str) -> int:
    """Bytes of the maps with this in their name that this process holds in memory."""
    found = re.findall(rf"^\S+ \S+ \S+ \S+ \S+ +{re.escape(mapped)}.*\n(?:.*\n)?Rss: +(\d+) kB", smaps(), re.MULTILINE)
    return 1024 * sum(map(int, found))


def smaps() -> str:
    return re.sub(r"^(?!\S+-\S+ |Rss:).*\n", "", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)


@pytest.mark.usefixtures("from_the_first")
def test_what_is_let_go_of_leaves_the_memory_of_the_process_and_is_still_there(tmp_path: Path) -> None:
    rows, wanted = Rows(WIDTH, tmp_path), numbers(20_000)
    rows.reserve(20_000, 0)
    rows.array[:] = wanted
    assert rows.is_mapped
    assert in_memory(str(tmp_path)) >= wanted.nbytes
    rows.let_go()
    assert in_memory(str(tmp_path)) == 0
    assert (rows.array == wanted).all()


@pytest.mark.usefixtures("from_the_first")
def test_rows_that_are_taken_come_in_the_order_they_were_asked_for_and_leave_nothing_in_memory(tmp_path: Path) -> None:
    rows, wanted = Rows(WIDTH, tmp_path), numbers(20_000)
    rows.reserve(20_000, 0)
    rows.array[:] = wanted
    asked = np.random.default_rng(3).integers(0, 20_000, 3 * module.TAKEN_AT_ONCE + 7)
    assert (rows.take(asked) == wanted[asked]).all()
    assert in_memory(str(tmp_path)) == 0


@pytest.mark.usefixtures("from_the_first")
def test_the_file_has_no_name_and_ends_with_its_rows(tmp_path: Path) -> None:
    rows = Rows(WIDTH, tmp_path)
    rows.reserve(100, 0)
    assert rows.is_mapped
    assert os.listdir(tmp_path) == []
    del rows
    assert str(tmp_path) not in smaps()


def test_few_rows_need_no_file(tmp_path: Path) -> None:
    rows = Rows(WIDTH, tmp_path)
    rows.reserve(100, 0)
    rows.let_go()
    assert not rows.is_mapped


@pytest.mark.parametrize(("before", "after"), [(10, 100), (100, 5_000), (5_000, 20_000)])
def test_growing_keeps_what_is_used_in_memory_into_a_file_and_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    monkeypatch.setattr(module, "MAPPED_FROM", 5_000 * WIDTH)
    rows, wanted = Rows(WIDTH, tmp_path), numbers(before)
    rows.reserve(before, 0)
    rows.array[:] = wanted
    old = rows.array
    rows.reserve(after, before)
    assert rows.is_mapped == (after >= 5_000)
    assert rows.array.shape == (after, WIDTH)
    assert (rows.array[:before] == wanted).all()
    assert not rows.array[before:].any()
    assert (old == wanted).all(), "somebody may still be reading what there was"


@pytest.mark.usefixtures("from_the_first")
def test_a_disk_without_room_costs_memory_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, wanted = Rows(WIDTH, tmp_path), numbers(10)
    rows.reserve(10, 0)
    rows.array[:] = wanted

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    rows.reserve(1_000, 10)
    assert not rows.is_mapped
    assert (rows.array[:10] == wanted).all()
    rows.let_go()
    monkeypatch.undo()
    monkeypatch.setattr(module, "MAPPED_FROM", 1)
    rows.reserve(2_000, 1_000)
    assert rows.is_mapped, "with room again, the file is used again"
    assert (rows.array[:10] == wanted).all()


@pytest.mark.usefixtures("from_the_first")
def test_a_folder_that_is_gone_costs_memory_and_nothing_else(tmp_path: Path) -> None:
    rows = Rows(WIDTH, tmp_path / "gone")
    rows.reserve(1_000, 0)
    assert not rows.is_mapped


@pytest.mark.usefixtures("from_the_first")
def test_vectors_in_a_file_are_found_as_those_in_memory_are(tmp_path: Path) -> None:
    chance = np.random.default_rng(2)
    vectors = chance.normal(size=(6_000, 48)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stores = [Vectors(48, folder=tmp_path), Vectors(48)]
    for store in stores:
        for first in range(0, 6_000, 500):
            store.put(range(first + 1, first + 501), packed(vectors[first : first + 500]))
        store.remove(range(1, 6_000, 3))
        store.put([7, 10], packed(vectors[[3, 5]]))
    for row in range(0, 6_000, 700):
        assert stores[0].search(vectors[row], 20) == stores[1].search(vectors[row], 20)
