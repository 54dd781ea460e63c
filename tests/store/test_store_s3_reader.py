"""Many objects of a bucket are read by a process of its own, which ends with whoever wants them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from select import POLLIN, poll

import pytest
import trio
from http_double import Reply, S3Double

from livememfs.store.s3 import S3Options, S3Store
from livememfs.store.s3_reader import IDLE_SECONDS, WORTH, Reader

KEYS = [f"a/{n} é" for n in range(WORTH)]
PATIENCE = 20


@pytest.fixture
async def store(s3_options: Callable[..., S3Options]) -> AsyncIterator[S3Store]:
    found = S3Store(s3_options())
    yield found
    await found.aclose()


def reader_of(store: S3Store) -> Reader:
    return store._reader


async def fill(store: S3Store) -> dict[str, bytes]:
    for key in KEYS:
        await store.put(key, key.encode(), meta={"m": key})
    return {key: key.encode() for key in KEYS}


def ended(pid: int) -> bool:
    """Whether a process has ended, or does soon."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        waiting = poll()
        waiting.register(handle, POLLIN)
        return bool(waiting.poll(PATIENCE * 1_000))
    finally:
        os.close(handle)


async def test_many_come_from_another_process_as_they_would_one_by_one(store: S3Store) -> None:
    wanted = await fill(store)
    found = await store.get_many([*KEYS, "none"], at_once=4)
    assert {one.info.key: one.data for one in found} == wanted
    assert {one.info.key: one for one in found} == {key: await store.get(key) for key in KEYS}
    assert reader_of(store).statistics().starts == 1


async def test_the_next_many_are_read_by_the_same_process_and_few_by_none(store: S3Store) -> None:
    await fill(store)
    assert len(await store.get_many(KEYS[1:])) == WORTH - 1
    assert reader_of(store).statistics().starts == 0
    for _ in range(3):
        assert len(await store.get_many(KEYS)) == WORTH
    assert reader_of(store).statistics().starts == 1


async def test_a_process_that_was_killed_costs_no_object_and_is_replaced(store: S3Store) -> None:
    wanted = await fill(store)
    await store.get_many(KEYS)
    pid = reader_of(store).statistics().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    for _ in range(2):
        assert {one.info.key: one.data for one in await store.get_many(KEYS)} == wanted
    assert reader_of(store).statistics().starts == 2


async def test_where_no_process_can_be_started_the_threads_of_this_one_read(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = await fill(store)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert {one.info.key: one.data for one in await store.get_many(KEYS)} == wanted


async def test_what_lies_in_the_directory_of_the_mount_is_not_run(
    store: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store)
    (tmp_path / "pickle.py").write_text("raise SystemExit('somebody else')")
    monkeypatch.chdir(tmp_path)
    await store.get_many(KEYS)
    assert reader_of(store).statistics().pid is not None


async def test_a_closed_store_leaves_no_process(store: S3Store) -> None:
    await fill(store)
    await store.get_many(KEYS)
    pid = reader_of(store).statistics().pid
    assert pid is not None
    await store.aclose()
    assert ended(pid)
    assert reader_of(store).read(KEYS, 4) is None


async def test_a_process_that_nobody_wants_any_more_ends(store: S3Store) -> None:
    await fill(store)
    await store.get_many(KEYS)
    pid, idle = reader_of(store).statistics().pid, reader_of(store)._idle
    assert pid is not None
    assert idle is not None
    assert idle.interval == IDLE_SECONDS
    idle.function()  # what happens when that time is over
    assert ended(pid)
    assert len(await store.get_many(KEYS)) == WORTH


_KILLED = """
import os, pickle, signal, sys
from livememfs.store.s3_reader import Reader
reader = Reader(pickle.load(sys.stdin.buffer))
print(len(reader.read([f"a/{n}" for n in range(100)], 4)), reader.statistics().pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_when_the_mount_is_killed_the_process_ends(s3_options: Callable[..., S3Options]) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED], input=pickle.dumps(s3_options()), stdout=subprocess.PIPE, check=False
    )
    found, pid = killed.stdout.split()
    assert killed.returncode == -signal.SIGKILL
    assert int(found) == 0
    assert ended(int(pid))


async def test_whoever_gives_up_waits_for_no_server(s3_double: S3Double) -> None:
    """And the process that was waiting for it has ended."""
    s3_double.replies.extend([Reply(silent=True)] * 4)
    store = S3Store(s3_double.options(read_timeout=60.0))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(store.get_many, KEYS, at_once=4))
            assert await trio.to_thread.run_sync(s3_double.asked.wait, PATIENCE)
            pid = reader_of(store).statistics().pid
            assert pid is not None
            nursery.cancel_scope.cancel()
        assert ended(pid)
    finally:
        await store.aclose()
