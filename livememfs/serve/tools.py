"""All tools of the MCP server, in the order in which they are offered. Owns the list alone; any thread."""

from __future__ import annotations

from collections.abc import Mapping

from livememfs.serve import (
    bank_tools,
    bucket_tools,
    edit_tools,
    folder,
    note_tools,
    recall_tools,
    space_tools,
    system_tools,
    upkeep_tools,
)
from livememfs.serve.system_tools import about_of
from livememfs.serve.toolbox import McpTool

TOOLS: tuple[McpTool, ...] = (
    *space_tools.TOOLS,
    *note_tools.TOOLS,
    *bank_tools.TOOLS,
    *recall_tools.TOOLS,
    folder.TOOL,
    *edit_tools.TOOLS,
    *bucket_tools.TOOLS,
    *upkeep_tools.TOOLS,
    *system_tools.TOOLS,
    about_of(lambda: TOOLS),
)
BY_NAME: Mapping[str, McpTool] = {tool.name: tool for tool in TOOLS}
