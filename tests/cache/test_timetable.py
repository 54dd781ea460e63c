"""The timetable of a journal: who may start, and who has to wait for whom."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.abc import Clock

from livememfs.cache.database import Database
from livememfs.cache.journal.operation import Kind, Operation
from livememfs.cache.journal.operations import Operations
from livememfs.cache.journal.timetable import Timetable


@pytest.fixture
def ops() -> Operations:
    return Operations(Database(None))


@pytest.fixture
def table(ops: Operations) -> Timetable:
    return Timetable(ops)


def entered(ops: Operations, table: Timetable, kind: Kind, key: str, **more: Any) -> Operation:
    op = Operation(len(ops) + 1, key, kind, key, **more)
    ops.add(op)
    table.enter(op)
    return op


async def test_what_was_put_off_starts_at_its_new_moment(
    ops: Operations, table: Timetable, autojump_clock: Clock
) -> None:
    op = entered(ops, table, "put", "a")
    table.delay(op, 5.0)
    now = trio.current_time()
    assert table.next_ready(now + 4.0) is None
    assert table.next_ready(now + 5.0) is op


def test_what_is_held_up_by_one_of_its_key_is_offered_once_after_that_has_ended(
    ops: Operations, table: Timetable
) -> None:
    ahead = entered(ops, table, "put", "a", in_flight=True)
    op = entered(ops, table, "put", "a")
    assert table.next_ready(0.0) is None
    ops.forget(ahead)
    table.look_again()
    assert table.next_ready(0.0) is op
    table.look_again()
    assert table.next_moment() == float("inf")


@pytest.mark.parametrize(("kind", "waits"), [("put", True), ("delete", True), ("meta", False)])
def test_a_copy_is_made_before_its_bytes_go_and_attributes_wait_for_none(
    ops: Operations, table: Timetable, kind: Kind, waits: bool
) -> None:
    op = entered(ops, table, kind, "a")
    copy = entered(ops, table, "copy", "b", source="a")
    assert table.next_ready(0.0) is (copy if waits else op)


def test_of_two_that_wait_for_each_other_one_starts_unless_the_other_is_on_its_way(
    ops: Operations, table: Timetable
) -> None:
    first = entered(ops, table, "put", "a", after=2)
    second = entered(ops, table, "put", "b", after=1)
    assert table.next_ready(0.0) is first
    second.in_flight = True
    table.enter(first)
    assert table.next_ready(0.0) is None
