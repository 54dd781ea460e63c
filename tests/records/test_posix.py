"""What POSIX knows of a file survives in metadata, and metadata of anybody does no harm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.records.posix import NOTHING, Stat

IDS = st.integers(0, (1 << 32) - 2)
TIMES = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
OWNERS = st.one_of(st.just((None, None)), st.tuples(IDS, IDS))


@st.composite
def stats(draw: st.DrawFn) -> Stat:
    uid, gid = draw(OWNERS)
    times = [draw(st.none() | TIMES) for _ in range(3)]
    return Stat(draw(st.none() | st.integers(0, 0o7777)), uid, gid, *times)


@given(stats())
def test_what_was_set_is_read_again(stat: Stat) -> None:
    shown = replace(stat, ctime_ns=None) if stat.ctime_ns == stat.mtime_ns else stat

    assert Stat.of(stat.render()) == shown


@given(stats(), stats())
def test_what_is_newer_goes_before_what_is_older(older: Stat, newer: Stat) -> None:
    both = older.under(newer)

    assert newer.under(both) == both
    for name in ("mode", "uid", "gid", "mtime_ns", "atime_ns", "ctime_ns"):
        first, second = getattr(newer, name), getattr(older, name)
        assert getattr(both, name) == (second if first is None else first)


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {},
        {"livememfs-owner": "root:root"},
        {"livememfs-owner": "-1:-1"},
        {"livememfs-owner": f"{(1 << 32) - 1}:{1 << 40}"},
        {"livememfs-owner": ":"},
        {"livememfs-mode": "rwx", "livememfs-mtime": "", "livememfs-atime": str(1 << 63), "livememfs-ctime": "1e9"},
    ],
)
def test_what_cannot_be_read_is_not_set(meta: dict[str, str] | None) -> None:
    assert Stat.of(meta) == NOTHING


def test_bits_that_are_no_permissions_are_left_out() -> None:
    assert Stat.of({"livememfs-mode": "106755"}) == Stat(mode=0o6755)
    assert Stat.of({"livememfs-owner": "1000:"}) == Stat(uid=1000)


def test_the_numbers_of_owners_and_times_end_where_the_kernels_end() -> None:
    highest, time = (1 << 32) - 2, (1 << 63) - 1
    meta = {"livememfs-owner": f"{highest}:0", "livememfs-mtime": str(time), "livememfs-ctime": str(-time)}

    found = Stat.of(meta)
    assert (found.uid, found.gid, found.mtime_ns, found.ctime_ns) == (highest, 0, time, -time)
    assert Stat.of({"livememfs-owner": f"{highest + 1}:{highest}"}).uid is None
