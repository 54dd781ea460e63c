"""The official SDK's client against the program as agents start it; every tool, in the order of a space's life."""

from __future__ import annotations

import getpass
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import mcp
from machine import ROOT
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

SPACE = "project"
RULES = "# Rules\n\n### decisions.md\n- what was decided\n\n### open.md\n- what is left to do\n"
NOTES = (("decision", "We chose S3 over a database."), ("todo", "Write the operations page."))
FACT = "David lives in Toulouse"


class Client:
    """A session that notes which tools were called."""

    def __init__(self, session: mcp.Client) -> None:
        self.session = session
        self.called: set[str] = set()

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that must not fail; the SDK has checked it against the tool's schema."""
        self.called.add(tool)
        result = await self.session.call_tool(tool, arguments)
        assert not result.is_error, f"{tool}: {result.content}"
        assert result.structured_content is not None
        return result.structured_content

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """What a tool says that must refuse."""
        self.called.add(tool)
        result = await self.session.call_tool(tool, arguments)
        assert result.is_error, f"{tool}: {result.structured_content}"
        return str(result.structured_content["message"])


@asynccontextmanager
async def over_stdio(environment: Mapping[str, str], *options: str, revision: str = "auto") -> AsyncIterator[Client]:
    """`livememfs mcp`, started as an agent starts it, which has nothing to say beside the protocol."""
    command = ["-k", "5", "300", "setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "livememfs", "mcp"]
    options = options if "--tools" in options else ("--tools", "all", *options)
    parameters = StdioServerParameters(command="timeout", args=[*command, *options], env=dict(environment), cwd=ROOT)
    with tempfile.TemporaryFile("w+") as said:
        async with mcp.Client(stdio_client(parameters, errlog=said), mode=revision) as session:
            yield Client(session)
        said.seek(0)
        assert said.read() == ""


@asynccontextmanager
async def over_http(url: str, token: str) -> AsyncIterator[Client]:
    """A server that listens."""
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        mcp.Client(streamable_http_client(f"{url}/mcp", http_client=http)) as session,
    ):
        yield Client(session)


async def write(client: Client, space: str = SPACE) -> None:
    """What a mount is given as well: a space with rules, notes, a memory, and a search; then a run."""
    await client.call("space_create", space_id=space, rules=RULES, owner=getpass.getuser())
    for category, text in NOTES:
        await client.call("live_note", space_id=space, content=f"{text}\n", category=category)
    await client.call("store_memory", space_id=space, content=FACT)
    await client.call("memory", space_id=space, command="create", path="/memories/plain/list.txt", file_text="one\n")
    assert (await client.call("search_memory", query="Where does David live?", project=space))["results"]
    assert (await client.call("bank_consolidate", space_id=space))["state"] == "ok"
    await client.call("backup_create", space_id=space)


async def everything(client: Client, space: str = SPACE) -> None:
    """Every tool, in the order of a space's life."""
    call, refused = client.call, client.refused
    assert (await call("system_health"))["status"] == "healthy"
    assert (await call("system_whoami"))["permissions"] == ["read", "write", "admin"]
    names = {tool["name"] for tool in (await call("system_about"))["tools"]}
    await call("space_create", space_id=space, description="d", rules=RULES)
    assert space in [one["space_id"] for one in (await call("space_list"))["spaces"]]
    await call("live_note", space_id=space, content="We chose S3.", category="decision", tags=["store"])
    await call("live_note", space_id=space, content="Write the page.", category="todo")
    assert (await call("space_update", space_id=space, owner="o"))["description"] == "d"
    assert (await call("live_read", space_id=space, limit=1))["more"]
    assert len((await call("live_search", space_id=space, query="s3"))["notes"]) == 1
    for tool, content, more in (
        ("store_memory", FACT, {"subjects": ["david"]}),
        ("store_self", "I live in a bucket", {"category": "context"}),
        ("store_goal", "I would like to search the web", {"category": "capability_request"}),
    ):
        await call(tool, space_id=space, content=content, **more)
    for tool in ("search_memories", "search_self", "search_goals"):
        assert (await call(tool, space_id=space, query="where do I live, and what would I like"))["memories"]
    assert (await call("get_recent_memories", space_id=space))["memories"]
    rehearsed = await call("bank_consolidate", space_id=space, dry_run=True)
    assert "We chose S3." in rehearsed["diff"]
    assert (await call("bank_consolidate", space_id=space))["notes_processed"] == 2
    assert [one["filename"] for one in (await call("bank_list", space_id=space))["files"]] == [
        "decisions.md",
        "open.md",
    ]
    assert "We chose S3." in (await call("bank_read", space_id=space, filename="decisions.md"))["content"]
    assert (await call("bank_write", space_id=space, filename="by-hand.md", content="# By hand\n"))[
        "action"
    ] == "created"
    assert (await call("bank_delete", space_id=space, filename="by-hand.md"))["files_deleted"] == 1
    assert (await call("bank_repair", space_id=space))["files_ok"] == 2
    assert (await call("space_update_rules", space_id=space, rules=RULES))["rules_size"] == len(RULES.encode())
    assert len((await call("bank_read_all", space_id=space))["files"]) == 2
    assert (await call("space_info", space_id=space))["bank"]["files"] == ["decisions.md", "open.md"]
    assert "decisions.md" in (await call("space_rules", space_id=space))["rules"]
    assert len((await call("space_summary", space_id=space))["bank_files"]) == 2
    assert (await call("search_memory", query="S3", project=space))["results"]
    await call("timeline", project=space)
    assert (await call("get_observations", project=space, ids=["ffffffff"]))["missing"] == ["ffffffff"]
    assert "no summary" in await refused("get_session_summary", project=space, session_id="s")
    assert "Memory of" in (await call("get_project_context", project=space))["context"]
    await _six_commands(client, space)
    backup = (await call("backup_create", space_id=space))["backup_id"]
    assert backup in [one["backup_id"] for one in (await call("backup_list", space_id=space))["backups"]]
    assert (await call("backup_download", backup_id=backup))["objects"] > 2
    assert (await call("space_export", space_id=space))["objects"] > 2
    await call("space_delete", space_id=space, confirm=True)
    assert "there is no" in await refused("space_info", space_id=space)
    await call("backup_restore", backup_id=backup, confirm=True)
    assert "We chose S3." in (await call("bank_read", space_id=space, filename="decisions.md"))["content"]
    await call("backup_delete", backup_id=backup, confirm=True)
    await call("space_delete", space_id=space, confirm=True)
    made = await call("admin_create_token", name=f"of-{space}", permissions=["read"])
    assert f"of-{space}" in [one["name"] for one in (await call("admin_list_tokens"))["tokens"]]
    await call("admin_update_token", token=made["hash"], permissions=["write"])
    await call("admin_revoke_token", token=made["hash"])
    await call("admin_delete_token", token=made["hash"])
    await call("admin_purge_tokens")
    await call("admin_gc_notes")
    assert client.called == names


async def _six_commands(client: Client, space: str) -> None:
    """The file-based memory tool."""

    async def do(command: str, **given: Any) -> str:
        text: str = (await client.call("memory", space_id=space, command=command, **given))["text"]
        return text

    assert "bank/" in await do("view", path="/memories")
    await do("create", path="/memories/plans/plan.md", file_text="one\ntwo\n")
    await do("str_replace", path="/memories/plans/plan.md", old_str="two", new_str="2")
    await do("insert", path="/memories/plans/plan.md", insert_line=1, insert_text="between")
    assert "     2\tbetween\n     3\t2" in await do("view", path="/memories/plans/plan.md")
    await do("rename", old_path="/memories/plans/plan.md", new_path="/memories/plans/done.md")
    await do("delete", path="/memories/plans")
