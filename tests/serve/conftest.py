"""A bucket in a folder with what serves it, and clients of the official SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp
import pytest
from clients import REVISIONS, SPACE, Client, OpenClient

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.records.access import EVERYTHING, Access
from livememfs.serve.mcp import McpServer
from livememfs.spaces import making as spaces


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A folder as the bucket, words alone for searching, nothing of this machine."""
    return Settings(
        store=str(tmp_path / "store"), cache=str(tmp_path / "cache"), embed_model="none", host="here", listing_ttl=0.0
    )


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    """The bucket with one space, `alpha`."""
    async with open_app(settings, serving=True) as opened:
        await spaces.create(opened.replica, opened.clock, SPACE)
        yield opened


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    """How a client of the SDK begins: with a handshake, or as the newest revision has it."""
    return str(request.param)


@pytest.fixture
def open_client(app: App, revision: str) -> OpenClient:
    """`async with open_client(access) as client`: a client that may do what `access` says."""

    @asynccontextmanager
    async def opened(access: Access = EVERYTHING, *, tools: str = "all", space: str = "") -> AsyncIterator[Client]:
        async def still() -> Access:
            return access

        server = McpServer(app.tree, app.tokens, tools=tools, local=still, space=space)
        async with mcp.Client(server.sdk, mode=revision) as session:
            yield Client(session)

    return opened
