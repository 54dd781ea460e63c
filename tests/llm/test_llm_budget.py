"""Batches that fit a model's context: no note is lost, none is cut, no request is too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.errors import ContextTooSmall
from livememfs.llm.budget import Batches, split

sizes_of_notes = st.lists(st.integers(0, 40), max_size=30)


@pytest.mark.parametrize(
    ("sizes", "room", "batches", "too_large"),
    [
        ([], 10, (), ()),
        ([3, 3, 3], 10, (range(3),), ()),
        ([5, 5, 1], 10, (range(2), range(2, 3)), ()),
        ([10, 10], 10, (range(1), range(1, 2)), ()),
        ([11], 10, (), (0,)),
        ([1, 11, 1], 10, (range(1), range(2, 3)), (1,)),
        ([11, 1, 12], 10, (range(1, 2),), (0, 2)),
        ([0, 0], 0, (range(2),), ()),
        ([0, 1], 0, (range(1),), (1,)),
    ],
)
def test_notes_are_put_together_as_they_fit(
    sizes: list[int], room: int, batches: tuple[range, ...], too_large: tuple[int, ...]
) -> None:
    assert split(sizes, fixed=100, window=150 + room, reply=50) == Batches(batches, too_large)


@given(sizes=sizes_of_notes, fixed=st.integers(0, 20), room=st.integers(0, 60), reply=st.integers(0, 20))
def test_every_note_is_sent_once_or_named_and_every_request_fits(
    sizes: list[int], fixed: int, room: int, reply: int
) -> None:
    window = fixed + room + reply
    found = split(sizes, fixed, window, reply)

    sent = [position for batch in found.batches for position in batch]
    assert sent == sorted(sent)
    assert sorted([*sent, *found.too_large]) == list(range(len(sizes)))
    assert all(fixed + sum(sizes[position] for position in batch) + reply <= window for batch in found.batches)
    assert all(fixed + sizes[position] + reply > window for position in found.too_large)


@given(sizes=sizes_of_notes, room=st.integers(0, 60))
def test_no_batch_could_take_the_note_after_it(sizes: list[int], room: int) -> None:
    for batch in split(sizes, 0, room, 0).batches:
        assert len(batch) > 0
        if batch.stop < len(sizes):
            assert sum(sizes[batch.start : batch.stop + 1]) > room


def test_a_request_without_room_for_notes_names_the_figures() -> None:
    with pytest.raises(ContextTooSmall) as caught:
        split([1], fixed=7_001, window=8_000, reply=1_000)

    assert all(figure in str(caught.value) for figure in ("7001", "8000", "1000"))


@pytest.mark.parametrize("figures", [([-1], 0, 1, 0), ([1], -1, 1, 0), ([1], 0, -1, 0), ([1], 0, 1, -1)])
def test_negative_sizes_are_refused(figures: tuple[list[int], int, int, int]) -> None:
    with pytest.raises(ValueError, match="negative"):
        split(*figures)
