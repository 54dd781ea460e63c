"""Whoever comes by a mount's socket with a token: it limits them, and never gives more than the mount has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from clients import SPACE, Line, ask, content_of

from livememfs.app import App
from livememfs.app.visitor import meeting
from livememfs.cli.mounting.daemon import _speak
from livememfs.errors import MountError
from livememfs.records.access import EVERYTHING, NOTHING, PERMISSIONS, Access
from livememfs.serve import sock
from livememfs.spaces import gate
from livememfs.spaces import making as spaces

READ, WRITE, ADMIN = ["read"], ["read", "write"], ["read", "write", "admin"]


class Agent:
    """Speaks the protocol line by line, as whatever is started with a mount's space does."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.line, self.count = Line(stream), 0

    async def ask(self, method: str, **params: Any) -> Any:
        self.count += 1
        await self.line.say(ask(method, **params) | {"id": self.count})
        return (await self.line.hear())["result"]

    async def call(self, tool: str, **arguments: Any) -> str:
        """What a tool says."""
        return str((await self.ask("tools/call", name=tool, arguments=arguments))["content"][0]["text"])


Visit = Callable[..., AbstractAsyncContextManager[Agent]]


@pytest.fixture
async def visit(app: App, tmp_path: Path, nursery: trio.Nursery) -> Visit:
    """`async with visit(secret) as agent`: a connection to the daemon; empty: without a token."""
    path = tmp_path / "x.sock"
    await nursery.start(partial(sock.listen, path, partial(_speak, app)))
    await spaces.create(app.replica, app.clock, "beta")

    @asynccontextmanager
    async def visiting(secret: str, space: str = SPACE) -> AsyncIterator[Agent]:
        wanted = {"space": space, "tools": "all", "agent": "", **({"token": secret} if secret else {})}
        connection = await trio.to_thread.run_sync(sock.connect, path, wanted)
        async with trio.SocketStream(trio.socket.from_stdlib_socket(connection)) as stream:
            agent = Agent(stream)
            about = {"name": "t", "version": "1"}
            await agent.ask("initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo=about)
            await agent.line.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield agent

    return visiting


async def test_a_token_limits_the_connection_that_brings_it_and_no_other(app: App, visit: Visit) -> None:
    secret, _ = await app.tokens.create("reader", READ, [SPACE])
    before = await content_of(app)

    async with visit(secret) as agent:
        assert "reader has no permission to write" in await agent.call("live_note", content="no")
        assert "there is no beta" in await agent.call("space_delete", space_id="beta", confirm=True)
        assert json.loads(await agent.call("space_list"))["spaces"][0]["space_id"] == SPACE
        assert "beta" not in await agent.call("space_list")
        assert {key for key in await content_of(app) if "_system" not in key} == {
            key for key in before if "_system" not in key
        }
    async with visit("") as agent:
        assert "filename" in await agent.call("live_note", content="yes")
        assert "beta" in await agent.call("space_list")


async def test_a_limited_agent_of_a_mount_gains_the_space_it_makes(app: App, visit: Visit) -> None:
    secret, _ = await app.tokens.create("writer", WRITE, [SPACE])
    async with visit(secret) as agent:
        made = json.loads(await agent.call("space_create", space_id="gamma", description="d"))
        assert (made["status"], made["token_auto_updated"]) == ("created", True)
        assert json.loads(await agent.call("space_create", space_id="beta"))["status"] == "already_exists"
    assert await app.tokens.access(secret) == Access("writer", frozenset(PERMISSIONS[:2]), (SPACE, "gamma"))


async def test_what_a_token_is_not_for_is_refused_before_anything_is_served(app: App, visit: Visit) -> None:
    secret, _ = await app.tokens.create("reader", READ, [SPACE])
    with pytest.raises(MountError, match="there is no beta"):
        async with visit(secret, "beta"):
            pass


@pytest.mark.parametrize("secret", ["lm_of_nobody", "x" * 2_000])
async def test_a_token_that_is_not_good_is_refused_in_a_sentence_without_it(visit: Visit, secret: str) -> None:
    with pytest.raises(MountError, match="a valid token is needed") as caught:
        async with visit(secret):
            pass
    assert secret not in str(caught.value)


async def test_a_token_that_is_revoked_counts_no_more_for_who_is_there(
    app: App, visit: Visit, monkeypatch: pytest.MonkeyPatch, expect_log: Callable[[str], None]
) -> None:
    expect_log("is good no more")
    monkeypatch.setattr(gate, "AGAIN", 0.05)
    secret, _ = await app.tokens.create("writer", WRITE)
    async with visit(secret) as agent:
        assert "filename" in await agent.call("live_note", content="while it is good")
        await app.tokens.revoke("writer")
        with trio.fail_after(10):
            while "filename" in await agent.call("live_note", content="again"):
                await trio.sleep(0.05)


async def test_a_token_gives_no_more_than_a_limited_mount_has(app: App, visit: Visit) -> None:
    mounts, _ = await app.tokens.create("mount", READ, [SPACE])
    secret, _ = await app.tokens.create("chief", ADMIN)
    await app.gate.enter(mounts)
    async with visit(secret) as agent:
        assert "filename" not in await agent.call("live_note", content="no")
        assert "beta" not in await agent.call("space_list")
        assert "filename" not in await agent.call("admin_list_tokens")


def test_where_two_tokens_meet_the_smaller_of_each_counts() -> None:
    def access(name: str, permission: str, *of: str) -> Access:
        return Access(name, frozenset([permission]), of)

    assert meeting(EVERYTHING, EVERYTHING) == EVERYTHING
    assert meeting(EVERYTHING, access("a", "read", "x")) == access("a", "read", "x")
    assert meeting(access("m", "read", "x"), EVERYTHING) == access("m", "read", "x")
    assert meeting(access("m", "read", "x", "y"), access("a", "admin", "y", "z")) == access("a", "read", "y")
    assert meeting(access("m", "admin", "x"), access("a", "admin", "z")) == NOTHING
    own = Access("a", frozenset(["write"]), ("x",), "its hash")
    assert [meeting(EVERYTHING, own).token, meeting(own, EVERYTHING).token, meeting(own, own).token] == [
        "its hash",
        "its hash",
        "",
    ]
    assert not meeting(NOTHING, access("a", "admin")).may("read")
    assert not meeting(access("m", "admin"), NOTHING).may("read")
