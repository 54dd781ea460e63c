"""A client of the official SDK, as the tests of what is served use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp
from mcp.types import CallToolResult

from livememfs.app import App
from livememfs.text.own import HEAD, RECORDED

SPACE = "alpha"
REVISIONS = ("legacy", "2026-07-28")


class Client:
    """A client of the SDK, which checks each answer against the tool's schema."""

    def __init__(self, session: mcp.Client) -> None:
        self.session = session

    async def raw(self, name: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool."""
        return await self.session.call_tool(name, arguments)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that must not fail."""
        result = await self.raw(name, **arguments)
        assert not result.is_error, result.content[0].text  # type: ignore[union-attr]  # failures are texts
        assert result.structured_content is not None
        assert next(iter(result.structured_content.items())) == (RECORDED, HEAD)
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]  # it is a text
        return result.structured_content

    async def refused(self, name: str, /, **arguments: Any) -> str:
        """What a tool says that must refuse."""
        result = await self.raw(name, **arguments)
        assert result.is_error, result.structured_content
        return str(result.content[0].text)  # type: ignore[union-attr]  # as above


OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


async def content_of(app: App) -> dict[str, str]:
    """The versions of all that is in the bucket. What was written before is announced (`_changes/`) a moment later."""
    return {info.key: info.etag for info in await app.replica.names.walk("") if "/_changes/" not in info.key}
