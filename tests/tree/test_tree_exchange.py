"""`.recall`: one descriptor, a request, its answer; what only looks asks nothing; what is told follows files at once.

Threads do the work, so these tests live in real time; what is new and what has ended follows the world's own clock.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import trio
from hosts import APPEND, EDIT, READ, REPLACE, WRITE, Host, World, close, read_all, refused

from livememfs import errors
from livememfs.recall.index.local import Index
from livememfs.recall.service import Recall
from livememfs.text.own import END, HEAD
from livememfs.tree.exchange import MAX_REQUEST, USAGE
from livememfs.tree.node import AttrChange, Caller, File, Handle, OpenMode

RECALL = "alpha/.recall"
ANSWERED_WITHIN = 10.0
OPENED = OpenMode(write=True, truncate=True)
"""`exec 3<>` of some shells, and `open(path, "w+")`."""


class Talking:
    """A mount that tells; terminals are told apart by their pids."""

    def __init__(self, host: Host, recall: Recall) -> None:
        self.host, self.prehook, self.recall = host, host.context.prehook, recall

    async def write(self, path: str, text: str) -> None:
        """Write a file and wait until the index has it: a message waits for a moment only."""
        await self.host.write(path, text)
        await self.indexed()

    async def indexed(self) -> None:
        await self.recall.prepare(("alpha",), ANSWERED_WITHIN)

    async def open(self, mode: OpenMode = EDIT, *, pid: int = 1) -> Handle:
        return await self.host.open(RECALL, mode, pid=pid)

    async def ask(self, *requests: str | bytes, pid: int = 1) -> str:
        """What one descriptor answers to what was written to it in parts."""
        handle = await self.open(pid=pid)
        for request in requests:
            data = request if isinstance(request, bytes) else request.encode()
            assert await handle.write(0, data) == len(data)
        with trio.fail_after(ANSWERED_WITHIN):
            answer = await read_all(handle)
        await close(handle)
        return answer.decode()

    async def ask_json(self, message: str, **fields: Any) -> Any:
        answer = await self.ask(json.dumps({"message": message, "format": "json", **fields}))
        return json.loads(answer)


@pytest.fixture
async def talking(here: Host, recall: Recall, monkeypatch: pytest.MonkeyPatch) -> Talking:
    monkeypatch.setattr("livememfs.tree.exchange.session_of", lambda pid: f"terminal {pid}")
    made = Talking(here, recall)
    await made.indexed()
    return made


def turns(talking: Talking) -> int:
    return talking.prehook.statistics()["turns"]


# --- asking ----------------------------------------------------------------------------------------------------


async def test_what_is_written_is_asked_and_what_is_read_is_the_answer(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")

    answer = await talking.ask("which database did we choose?\n")

    assert answer.startswith(f"{HEAD}\n")
    assert re.search(
        rf"- fact, [0-9-]{{10}} [0-9:]{{5}}: we chose PostgreSQL as the database\n{re.escape(END)}\n\Z", answer
    )


async def test_several_writes_before_the_first_read_are_one_turn(talking: Talking) -> None:
    await talking.ask("En fait\n", "j'ai changé d'avis\n", "é".encode()[:1], "é".encode()[1:], " on prend MySQL\n")

    assert turns(talking) == 1


async def test_a_second_request_on_the_same_descriptor_is_the_next_turn(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")
    await talking.write("alpha/memories/cat", "the cat of Anna is called Felix")
    handle = await talking.open()

    await handle.write(0, b"hello")
    first = await read_all(handle)
    await handle.write(5, b"which database?")
    second = await read_all(handle)

    assert b"PostgreSQL" in first
    assert b"Felix" in first
    assert (second, turns(talking)) == (b"", 2), "both were told already"
    await handle.write(0, b"again")  # and an answer that was not read to its end is not mixed into the next one
    assert await handle.read(0, 3) == b""


async def test_an_answer_is_read_in_parts_of_any_size_and_ends(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "café " * 20)
    handle = await talking.open()
    await handle.write(0, b"hello")

    parts = [await handle.read(0, 7)]
    while parts[-1]:
        parts.append(await handle.read(0, 7))

    assert b"".join(parts).decode().endswith(f"café\n{END}\n")
    assert await handle.read(0, 100) == b""
    assert turns(talking) == 1


async def test_what_was_left_unread_is_gone_with_the_next_request(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")
    handle = await talking.open()
    await handle.write(0, b"hello")
    assert await handle.read(0, 4) == b"[liv"

    await handle.write(0, b"hello again")

    assert await read_all(handle) == b""


async def test_two_descriptors_at_once_have_their_own_requests(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")
    await talking.write("alpha/memories/cat", "the cat of Anna is called Felix")
    one, two = await talking.open(pid=1), await talking.open(pid=2)
    await one.write(0, b"which ")
    await two.write(0, b"hello")
    await one.write(0, b"database?")

    assert b"PostgreSQL" in await read_all(two)
    assert b"PostgreSQL" in await read_all(one)
    assert turns(talking) == 2


async def test_json_gives_json_and_a_session_of_its_own(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")

    first = await talking.ask_json("which database?", session="mine")
    again = await talking.ask_json("which database?", session="mine")
    other = await talking.ask_json("which database?", session="yours")

    assert [memory["text"] for memory in first["memories"]] == ["we chose PostgreSQL as the database"]
    assert first["memories"][0]["path"].startswith("alpha/memories/")
    assert (again["memories"], again["context"], again["turn"]) == ([], "", 2)
    assert other["memories"] == first["memories"]


async def test_a_plain_message_belongs_to_its_terminal(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")

    assert "PostgreSQL" in await talking.ask("hello", pid=1)
    assert await talking.ask("hello", pid=1) == ""
    assert "PostgreSQL" in await talking.ask("hello", pid=2)


async def test_a_message_of_the_system_gets_no_answer(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")

    assert await talking.ask('{"source": "system", "message": "Worker #42 completed"}') == ""
    assert turns(talking) == 0


# --- who asks nothing ------------------------------------------------------------------------------------------


async def test_whoever_only_reads_sees_how_it_is_used_and_asks_nothing(talking: Talking) -> None:
    assert (await talking.host.read(RECALL)).decode() == USAGE
    assert ".recall" in USAGE
    assert talking.prehook.statistics()["turns"] == talking.prehook.statistics()["sessions"] == 0


async def test_a_descriptor_without_a_request_ends_at_once_and_asks_nothing(talking: Talking) -> None:
    handle = await talking.open()

    assert await handle.read(0, 100) == b""
    await handle.write(0, b"never read")
    await close(handle)
    assert turns(talking) == 0


@pytest.mark.parametrize("mode", [WRITE, APPEND, REPLACE])
async def test_an_open_to_write_only_is_refused_since_nobody_reads_the_answer(talking: Talking, mode: OpenMode) -> None:
    await refused(errors.BadRequest, talking.open(mode), match="opened for reading and writing")


async def test_a_touch_and_an_open_that_truncates_are_fine_and_another_length_is_not(talking: Talking) -> None:
    node = await talking.host.node(RECALL)
    assert isinstance(node, File)

    await node.change(AttrChange(mtime_ns=1), Caller())
    await node.change(AttrChange(size=0), Caller())
    await refused(errors.BadRequest, node.change(AttrChange(size=7), Caller()), match="reading and writing")
    handle = await talking.open(OPENED)
    await handle.write(0, b"hello")
    await read_all(handle)
    assert turns(talking) == 1


async def test_it_is_there_in_every_space_and_cannot_be_removed_or_replaced(talking: Talking) -> None:
    host = talking.host
    assert ".recall" in await host.names("alpha")
    assert (await host.attrs(RECALL)).size == 0
    await host.write("alpha/plain", "x")

    changes = host.unlink(RECALL), host.rename(RECALL, "alpha/x"), host.rename("alpha/plain", RECALL)
    await refused(errors.LiveMemError, *changes)
    assert (await host.read(RECALL)).decode() == USAGE


async def test_a_mount_without_a_search_answers_nothing(here: Host) -> None:
    handle = await here.open(RECALL, EDIT)
    await handle.write(0, b"hello")

    assert await read_all(handle) == b""


# --- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (b"\xff\xfe", errors.NotText),
        (b'{"message": ', errors.BadRequest),
        (b'{"prompt": "hello"}', errors.BadRequest),
        (b'{"message": "hello", "format": "yaml"}', errors.BadRequest),
    ],
)
async def test_a_request_that_is_none_fails_the_read_once_and_the_descriptor_goes_on(
    talking: Talking, request_: bytes, error: type[errors.LiveMemError]
) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")
    handle = await talking.open()
    await handle.write(0, request_)

    await refused(error, handle.read(0, 100))
    assert await handle.read(0, 100) == b""
    await handle.write(0, b"hello")
    assert b"PostgreSQL" in await read_all(handle)


async def test_a_request_that_is_too_long_is_refused_whole(talking: Talking) -> None:
    handle = await talking.open()
    half = b"x" * (MAX_REQUEST // 2)
    await handle.write(0, half)
    await handle.write(0, half)

    await refused(errors.BadRequest, handle.write(0, b"x"), match="1,048,576 bytes")
    assert await handle.read(0, 100) == b""
    assert turns(talking) == 0


async def test_a_request_of_all_the_bytes_there_may_be_is_answered(talking: Talking) -> None:
    await talking.write("alpha/memories/db", "we chose PostgreSQL as the database")

    assert "PostgreSQL" in await talking.ask("x " * (MAX_REQUEST // 2))


async def test_a_failure_is_an_empty_answer_with_the_reason_for_programs(
    talking: Talking, monkeypatch: pytest.MonkeyPatch, expect_log: Callable[[str], None]
) -> None:
    expect_log("a message got no memories")
    monkeypatch.setattr(Index, "foremost", lambda *_: 1 / 0)

    assert await talking.ask("hello") == ""
    answer = await talking.ask_json("hello")
    assert (answer["context"], answer["notes"]) == ("", ["the memories cannot be looked up: division by zero"])


# --- files and what is told ------------------------------------------------------------------------------------


async def test_what_was_just_written_is_told_and_what_was_removed_is_not(talking: Talking) -> None:
    await talking.write("alpha/memories/cat", "the cat of Anna is called Felix")
    assert "Felix" in await talking.ask("hello", pid=1)

    await talking.host.unlink("alpha/memories/cat")
    await talking.indexed()
    assert await talking.ask("what is the name of Anna's cat?", pid=2) == ""


async def test_the_temporary_illness_is_told_and_after_seven_days_neither_told_nor_listed_nor_found(
    world: World, talking: Talking
) -> None:
    """companion-memory: `{"content": "Mickael est malade", "subjects": ["mickael", "santé"], "ttl": "7d"}`."""
    host = talking.host
    await talking.write("alpha/memories/malade", '---\nsubjects: [mickael, santé]\nttl: "7d"\n---\nMickael est malade')
    asked = "comment va Mickael, est-il malade ?"
    world.clock.advance(days=6, hours=23)

    assert "Mickael est malade" in await talking.ask(asked, pid=1)
    assert [name for name in await host.names("alpha/memories") if not name.startswith(".")] != []
    page = (await host.read("alpha/search/mickael malade.md")).decode()
    assert "Mickael est malade" in page

    world.clock.advance(hours=1)

    assert await talking.ask(asked, pid=2) == ""
    assert await talking.ask("hello", pid=3) == ""
    assert [name for name in await host.names("alpha/memories") if not name.startswith(".")] == []
    assert "Nothing found" in (await host.read("alpha/search/mickael est malade.md")).decode()
    await refused(errors.NotFound, host.open("alpha/memories/malade", READ))


async def test_a_program_that_we_ask_is_neither_heard_nor_answered(talking: Talking) -> None:
    """What it starts has the mark as well, such as the hooks of an agent."""
    await talking.write("alpha/live/database", "We chose Postgres for the database.")
    marked = {"PATH": "/usr/bin:/bin", "LIVEMEMFS_ASKING": "1"}
    # The child itself says who it is: while a process becomes another program its environment reads as empty.
    command = ["sh", "-c", "sh -c 'echo $$; read line'; true"]
    with subprocess.Popen(command, env=marked, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        with shell.stdin:  # its end ends both
            child = int(shell.stdout.readline())
            heard = [await talking.ask("Which database?", pid=pid) for pid in (child, shell.pid, 1)]

    assert heard[:2] == ["", ""]
    assert "Postgres" in heard[2]
