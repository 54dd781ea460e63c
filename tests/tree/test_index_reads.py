"""Which version of an index a process has seen: its own last read, else that of who read for it."""

from __future__ import annotations

import subprocess
import threading

import pytest
import trio

from livememfs.tree.indexreads import ITS_OWN, MOST_BYTES, MOST_READS, IndexReads
from livememfs.tree.writer import kin_of

KEY = "p/agents/claude-code/MEMORY.md"
SHELL, CAT, TEE, OTHER = 10, 11, 12, 20
PROCESSES = {SHELL: (10, 1), CAT: (11, 10), TEE: (12, 10), OTHER: (20, 2), 31: (30, 3), 32: (30, 3)}


@pytest.fixture
def reads() -> IndexReads:
    return IndexReads(lambda pid: PROCESSES.get(pid, (0, 0)))


def seen(reads: IndexReads, pid: int) -> bytes | None:
    return reads.base(KEY, reads.who(pid))


def note(reads: IndexReads, pid: int, data: bytes, key: str = KEY) -> None:
    reads.note(key, reads.who(pid), data)


async def test_a_process_has_seen_what_it_read_last(reads: IndexReads) -> None:
    note(reads, OTHER, b"1")
    note(reads, OTHER, b"2")
    note(reads, CAT, b"3")
    note(reads, OTHER, b"4", "p/agents/claude-code/team/MEMORY.md")
    assert seen(reads, OTHER) == b"2"


async def test_a_shell_has_seen_what_its_child_read_and_its_children_what_their_sibling_did(reads: IndexReads) -> None:
    note(reads, CAT, b"read")
    assert seen(reads, SHELL) == seen(reads, TEE) == b"read"
    assert seen(reads, OTHER) is None


async def test_a_thread_goes_by_its_own_read_for_a_moment_then_by_its_process(
    reads: IndexReads, autojump_clock: object
) -> None:
    note(reads, 31, b"old")
    note(reads, 32, b"new")
    assert (seen(reads, 31), seen(reads, 32)) == (b"old", b"new")
    await trio.sleep(ITS_OWN + 1)
    assert seen(reads, 31) == b"new"


async def test_nobody_is_taken_for_kin_of_a_process_that_cannot_be_seen(reads: IndexReads) -> None:
    note(reads, 98, b"read")
    assert seen(reads, 99) is None
    assert seen(reads, 0) is None
    assert seen(reads, 98) == b"read"


async def test_what_is_remembered_has_an_end(reads: IndexReads) -> None:
    note(reads, OTHER, b"x" * (MOST_BYTES + 1))
    assert seen(reads, OTHER) is None
    note(reads, OTHER, b"first")
    for pid in range(1_000, 1_000 + MOST_READS):
        note(reads, pid, b"other")
    assert seen(reads, OTHER) is None


def test_kin_is_what_the_kernel_says() -> None:
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.append(kin_of(threading.get_native_id())))
    thread.start()
    thread.join()
    assert found[0] == kin_of(threading.get_native_id())
    with subprocess.Popen(["sleep", "60"]) as child:
        assert kin_of(child.pid) == (child.pid, found[0][0])
        child.kill()
    assert kin_of(2**22 + 1) == (0, 0)
