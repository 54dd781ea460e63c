"""A bucket that a daemon looks after, without a kernel, and the calls of a shell, an agent's hook and a client."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from livememfs.app import App
from livememfs.errors import LiveMemError
from livememfs.tree.node import Caller, Directory, File, OpenMode

SPACE = "alpha"
EDIT, WRITE = OpenMode(write=True), OpenMode(read=False, write=True, truncate=True)


@dataclass
class House:
    """A bucket that is looked after, and the calls that a kernel, a client or an agent would make."""

    app: App
    call: Callable[..., Awaitable[Any]]
    refused: dict[str, str] = field(default_factory=dict)

    async def node(self, path: str) -> Any:
        """The node of a path in the space."""
        node: Any = await self.app.tree.child(SPACE)
        for part in path.split("/"):
            node = await node.child(part)
        return node

    async def above(self, path: str) -> tuple[Directory, str]:
        """The directory of a path in the space, and the name in it."""
        folder, _, name = path.rpartition("/")
        return await (self.node(folder) if folder else self.app.tree.child(SPACE)), name

    async def write(self, path: str, text: str) -> None:
        """`echo text > path`."""
        folder, name = await self.above(path)
        try:
            file: File = await folder.child(name)  # type: ignore[assignment]  # tests write to files
        except LiveMemError:
            file = await folder.create(name, 0o644, Caller())
        handle = await file.open(WRITE, Caller())
        await handle.write(0, text.encode())
        await handle.flush()
        await handle.release()

    async def ask(self, path: str, text: str) -> str:
        """Write a request to an exchange file, and read the answer."""
        handle = await (await self.node(path)).open(EDIT, Caller(pid=os.getpid()))
        await handle.write(0, text.encode())
        answer = b"".join([part async for part in parts_of(handle)])
        await handle.release()
        return answer.decode()

    async def read(self, path: str) -> str:
        """`cat path`."""
        handle = await (await self.node(path)).open(OpenMode(), Caller())
        data = b"".join([part async for part in parts_of(handle)])
        await handle.release()
        return data.decode()

    async def hook(self, event: str, **given: Any) -> str:
        """What an agent's hook tells; what it is answered."""
        return await self.ask(f".hooks/{event}", json.dumps({"session_id": "s", "hook_event_name": event, **given}))

    async def tool(self, **given: Any) -> None:
        """What an agent's hook tells of a tool."""
        fields = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "x", **given}
        await self.hook("PostToolUse", **fields)

    async def rename(self, old: str, new: str) -> None:
        """`mv`, in one directory."""
        folder, name = await self.above(old)
        await folder.rename(name, folder, new.rpartition("/")[2])


async def parts_of(handle: Any) -> AsyncIterator[bytes]:
    """What is read of a handle until it ends."""
    at = 0
    while part := await handle.read(at, 1 << 16):
        at += len(part)
        yield part
