"""Requests that are files, and hooks on the socket: the tree of a mount answers them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
from hosts import Host
from mirrored import Machine, Running

from livememfs.cli.serving.sync import _answer
from livememfs.mirror import client
from livememfs.mirror.letters import Letters
from livememfs.mirror.place import OURS
from livememfs.serve import sock


@pytest.fixture
async def running(one: Machine, mount: Host, nursery: trio.Nursery) -> AsyncIterator[Running]:
    async with one.up() as running:
        await running.settle()
        yield running


@pytest.fixture
def letters(running: Running, nursery: trio.Nursery) -> Letters:
    return Letters(running.mirror.branch, running.mirror.place, nursery.start_soon)


async def until_gone(path: Path) -> None:
    with trio.fail_after(10):
        while path.exists():
            await trio.sleep(0.005)


async def test_a_request_is_taken_away_once_its_answer_is_beside_it(
    one: Machine, running: Running, letters: Letters
) -> None:
    one.write("live/decision", "we chose S3\n")
    one.write(".recall.answer", "an old answer")
    one.write(".recall", '{"message": "which store?", "format": "json"}')
    one.write(".digest", '{"dry": "no such option"}')
    one.write(".consolidate", "")
    await running.settle()
    paths = await running.mirror.scan()
    letters.touched(paths)
    letters.touched(paths)  # notices may come twice
    for name in (".recall", ".digest", ".consolidate"):
        await until_gone(one.top / name)

    assert "recorded" in json.loads((one.top / ".recall.answer").read_text())
    assert (one.top / ".digest.answer").read_text().startswith("livememfs: ")
    told = json.loads((one.top / ".consolidate.answer").read_text())
    assert told["run"] == 1
    assert not await running.host.exists("alpha/.recall.answer")  # none of it is mirrored


async def test_an_empty_page_of_search_gets_its_answer_and_another_one_stays(
    one: Machine, running: Running, letters: Letters
) -> None:
    assert (one.top / "search").is_dir()
    one.write("search/which store.md", "")
    one.write("search/old.md", "an answer of yesterday")
    letters.touched(await running.mirror.scan())
    with trio.fail_after(10):
        while not (text := (one.top / "search/which store.md").read_text()):
            await trio.sleep(0.005)

    assert "which store" in text
    assert (one.top / "search/old.md").read_text() == "an answer of yesterday"


@pytest.mark.parametrize("where", ["project", "elsewhere"])
async def test_a_hook_is_answered_by_the_process_that_mirrors(
    where: str, one: Machine, running: Running, letters: Letters, nursery: trio.Nursery, tmp_path: Path
) -> None:
    """Outside of a mirror nothing is answered, and the agent goes on."""
    await nursery.start(sock.listen, one.top / OURS / client.SOCKET, partial(_answer, letters, dict))
    top = one.top if where == "project" else tmp_path
    request, answer = os.pipe(), os.pipe()
    os.write(request[1], b'{"session_id": "s1"}')
    os.close(request[1])
    here = os.getcwd()
    try:
        await trio.to_thread.run_sync(client.hook, f"{top}/x/../.hooks/claude.Stop", request[0], answer[1])
    finally:
        os.chdir(here)
        os.close(answer[1])
    with os.fdopen(answer[0], "rb") as found:
        assert found.read() == (b"{}" if where == "project" else b"")
    os.close(request[0])
