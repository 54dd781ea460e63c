"""The socket of a mount: found at any path, this user's alone, and no reason for a mount to fail."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
import trio.testing

from livememfs.errors import MountError, NotFound
from livememfs.serve import sock


async def echo(stream: trio.SocketStream, wanted: Mapping[str, Any]) -> None:
    """Tells what was wanted, and gives back what is said until the other end ends it."""
    if wanted.get("space") == "nothing":
        raise NotFound(path="nothing")
    await sock.welcome(stream)
    await stream.send_all(f"{wanted['space']}:".encode())
    async for data in stream:
        await stream.send_all(data)


async def connect(path: Path, space: str) -> socket.socket:
    """A connection of an agent that wants a space."""
    return await trio.to_thread.run_sync(sock.connect, path, {"space": space})


@pytest.mark.parametrize("depth", [1, 40])
async def test_bytes_go_both_ways_however_long_the_path_is(tmp_path: Path, nursery: trio.Nursery, depth: int) -> None:
    path = tmp_path.joinpath(*(["deep"] * depth), "x.sock")
    await nursery.start(partial(sock.listen, path, echo))
    connection = await connect(path, "alpha")
    source, typing = os.pipe()
    heard, target = os.pipe()
    os.write(typing, b"first\nsecond\n" * 4_000 if depth == 1 else b"short")
    os.close(typing)

    async def passing() -> None:
        await trio.to_thread.run_sync(sock.relay, connection, source, target)
        os.close(target)

    nursery.start_soon(passing)
    received = await trio.to_thread.run_sync(_whole, heard)
    for descriptor in (source, heard):
        os.close(descriptor)
    connection.close()

    assert received == b"alpha:" + (b"first\nsecond\n" * 4_000 if depth == 1 else b"short")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o700 == 0o700


def _whole(descriptor: int) -> bytes:
    received = b""
    while data := os.read(descriptor, 1 << 16):
        received += data
    return received


async def test_what_is_refused_is_said_and_the_others_are_served(tmp_path: Path, nursery: trio.Nursery) -> None:
    await nursery.start(partial(sock.listen, tmp_path / "x.sock", echo))

    with pytest.raises(MountError, match="there is no nothing"):
        await connect(tmp_path / "x.sock", "nothing")
    (await connect(tmp_path / "x.sock", "alpha")).close()


async def test_who_says_nothing_takes_no_place_and_who_is_too_many_is_told(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred silent connections do not keep an agent from the mount; those that were silent longest are ended."""
    monkeypatch.setattr(sock, "MOST_CLIENTS", 2)
    await nursery.start(partial(sock.listen, tmp_path / "x.sock", echo))
    folder = os.open(tmp_path, os.O_PATH)  # the directory of a test may be longer than a socket's path can be
    silent = [await trio.open_unix_socket(f"/proc/self/fd/{folder}/x.sock") for _ in range(200)]
    os.close(folder)

    with trio.fail_after(10):  # they would be heard for ten seconds each
        agents = [await connect(tmp_path / "x.sock", "a") for _ in range(2)]
        assert await silent[0].receive_some() == b""
        with pytest.raises(MountError, match="2 agents share this mount already"):
            await connect(tmp_path / "x.sock", "a")
        agents.pop().close()
        await trio.testing.wait_all_tasks_blocked(0.05)
        agents.append(await connect(tmp_path / "x.sock", "a"))
    for stream in silent:
        await stream.aclose()
    for agent in agents:
        agent.close()


async def test_nobody_who_listens_is_said(tmp_path: Path) -> None:
    with pytest.raises(MountError, match="does not answer"):
        await connect(tmp_path / "none.sock", "alpha")


async def test_a_socket_of_a_daemon_that_died_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(sock.listen, path, echo))
            left = path.with_suffix(".copy")
            os.link(path, left)
            (await connect(path, "alpha")).close()
            nursery.cancel_scope.cancel()
        assert not path.exists()
        left.rename(path)  # as a killed process leaves it


async def test_where_no_socket_can_be_a_mount_goes_on_without(
    tmp_path: Path, nursery: trio.Nursery, expect_log: Callable[[str], None]
) -> None:
    expect_log("agents cannot share this mount")
    (tmp_path / "file").write_text("")

    await nursery.start(partial(sock.listen, tmp_path / "file" / "x.sock", echo))


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"{\n", b"x" * 10_000])
async def test_a_client_that_says_nothing_of_use_is_let_go(nursery: trio.Nursery, line: bytes) -> None:
    with TemporaryDirectory(prefix="livememfs-", dir="/tmp") as folder:  # whose path any client can name
        path = Path(folder) / "x.sock"
        await nursery.start(partial(sock.listen, path, echo))
        stream = await trio.open_unix_socket(path)
    async with stream:
        await stream.send_all(line)
        with trio.fail_after(10):
            with suppress(trio.BrokenResourceError):  # it was closed with some of it unread
                assert await stream.receive_some(10) == b""
