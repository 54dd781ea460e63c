"""The decision for one path, for every pair of what may have happened on the two sides."""

from __future__ import annotations

import pytest

from livememfs.mirror.rows import Do, MirrorRow, Remote, Sig, decide

WAS = Sig("f", 3, 1, 1, 7, 0o644)
EDITED = Sig("f", 4, 2, 2, 7, 0o644)
FOLDER = Sig("d", 0, 9, 9, 8, 0o755)
ROW = MirrorRow(WAS, "digest", "key", "etag")
SAME, OTHER = Remote("f", "etag", 3, "key"), Remote("f", "another", 4, "key")

TABLE = [
    # row, here, there, what follows
    (None, None, None, Do.NOTHING),
    (None, WAS, None, Do.UP),
    (None, None, SAME, Do.DOWN),
    (None, WAS, SAME, Do.BOTH),
    (ROW, WAS, SAME, Do.NOTHING),
    (ROW, EDITED, SAME, Do.UP),
    (ROW, None, SAME, Do.UP),
    (ROW, WAS, OTHER, Do.DOWN),
    (ROW, WAS, None, Do.DOWN),
    (ROW, None, None, Do.FORGET),
    (ROW, EDITED, OTHER, Do.BOTH),
    (ROW, None, OTHER, Do.DOWN),  # the edit wins over the removal, on either side
    (ROW, EDITED, None, Do.UP),
    (ROW, FOLDER, SAME, Do.UP),
    (ROW, WAS, Remote("d"), Do.DOWN),
    (MirrorRow(WAS, "digest", "key", "etag", behind=True), WAS, SAME, Do.DOWN),
    (MirrorRow(WAS, "digest", "key", "etag", behind=True), WAS, None, Do.DOWN),
    (MirrorRow(FOLDER), Sig("d", 0, 1, 1, 5, 0o700), Remote("d"), Do.NOTHING),
]


@pytest.mark.parametrize(("row", "here", "there", "expected"), TABLE)
def test_what_follows_from_both_sides(
    row: MirrorRow | None, here: Sig | None, there: Remote | None, expected: Do
) -> None:
    assert decide(row, here, there) is expected


def test_no_local_bytes_that_are_not_in_the_tree_are_ever_replaced() -> None:
    """`DOWN` where something is on the disk means that it is what both sides had."""
    for row, here, _, expected in TABLE:
        if expected is Do.DOWN and here is not None:
            assert row is not None
            assert row.local.same(here)


@pytest.mark.parametrize("field", ["size", "mtime_ns", "ctime_ns", "ino", "mode"])
def test_each_number_of_a_file_tells_of_a_change(field: str) -> None:
    values = {name: getattr(WAS, name) for name in WAS.__slots__}
    assert not WAS.same(Sig(**values | {field: 99}))
