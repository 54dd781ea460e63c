"""Descriptions of tools, prompts and bank files for MCP clients.

Owns the protocol's hints on the effects of a tool. Refuses to know a caller. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp import types

from livememfs.serve.news import SCHEME, uri_of
from livememfs.serve.toolbox import Effect, McpTool
from livememfs.store.base import ObjectInfo


def _hints(*, reads: bool = False, destroys: bool = False, same_twice: bool = False) -> types.ToolAnnotations:
    """All hints, so that a client assumes none. No tool reaches beyond the bucket."""
    return types.ToolAnnotations(
        read_only_hint=reads, destructive_hint=destroys, idempotent_hint=same_twice, open_world_hint=False
    )


_HINTS: Mapping[Effect, types.ToolAnnotations] = {
    "reads": _hints(reads=True, same_twice=True),
    "adds": _hints(),
    "changes": _hints(destroys=True),
    "destroys": _hints(destroys=True, same_twice=True),
}
BANK_FILE = types.ResourceTemplate(
    uri_template=f"{SCHEME}://bucket/{{space}}/bank/{{+filename}}",
    name="bank file",
    title="Bank file",
    mime_type="text/markdown",
)


def tool(offered: McpTool, space: str = "") -> types.Tool:
    """A tool in the form of the protocol."""
    return types.Tool(
        name=offered.name,
        title=_title(offered),
        description=offered.purpose,
        input_schema=offered.input_schema(space),
        output_schema=offered.output_schema(),
        annotations=_HINTS[offered.effect],
    )


def prompt(offered: McpTool, space: str = "") -> types.Prompt:
    """A prompt in the form of the protocol."""
    arguments = [
        types.PromptArgument(name=given.name, description=given.says, required=given.required)
        for given in offered.taken(space)
    ]
    return types.Prompt(name=offered.name, title=_title(offered), description=offered.purpose, arguments=arguments)


def _title(offered: McpTool) -> str:
    return offered.name.replace("_", " ").capitalize()


def resource(item: ObjectInfo) -> types.Resource:
    """A bank file in the form of the protocol."""
    return types.Resource(uri=uri_of(item.key), name=item.key, mime_type="text/markdown", size=item.size)
