"""The tools for the service itself: how it is, what it is, and who asks.

Owns their answers, which show no name of a space or bucket that the caller does not see. Refuses to decide who may call
a tool: the toolbox does. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from livememfs import __version__
from livememfs.errors import LiveMemError, Unreachable
from livememfs.records.access import PERMISSIONS, Access
from livememfs.serve.toolbox import Answered, McpTool, ToolCall, Toolset
from livememfs.spaces import making as spaces
from livememfs.text.times import parse_iso

HEALTH_SECONDS = 10.0
NAME = "livememfs"
TOOLS = Toolset()


@TOOLS.add("Tell whether the store answers.", returns={"status": "string"}, about="")
async def system_health(call: ToolCall) -> Answered:
    """Whether the bucket answers, and how much waits for upload."""
    begun = trio.current_time()
    reason, count = "", 0
    try:
        with trio.fail_after(min(HEALTH_SECONDS, call.timeout)):
            count = await _spaces_seen(call)
    except trio.TooSlowError:
        reason = "the bucket does not answer"
    except LiveMemError as error:
        reason = str(error) if call.access.everywhere else str(Unreachable("the bucket does not answer"))
    latency = round((trio.current_time() - begun) * 1_000)
    status = call.context.status()
    model = _model(status)
    return {
        "status": "degraded" if reason or model["status"] == "error" else "healthy",
        "service_name": NAME,
        "version": __version__,
        "uptime_seconds": _uptime(call, status),
        "services": {"s3": _store(call.access, status, reason, latency), "llmaas": model},
        "spaces_count": count,
        "store": {"ok": not reason, "latency_ms": latency, "reason": reason},
        "pending": call.replica.statistics().journal.pending,
    }


async def _spaces_seen(call: ToolCall) -> int:
    """How many spaces the caller sees, asked for now."""
    top = await call.replica.names.listing("", fresh=True)
    seen = [name for name in top.folders if call.access.sees(name)]
    return sum([await spaces.is_space(call.replica, name) for name in seen])


def _uptime(call: ToolCall, status: Mapping[str, Any]) -> int:
    since = status.get("since")
    return max(0, round((call.clock.now() - parse_iso(since)).total_seconds())) if since else 0


def _store(access: Access, status: Mapping[str, Any], reason: str, latency: int) -> Answered:
    label = str(status.get("store", "")) if access.everywhere else ""
    bucket = label.removeprefix("s3://").partition(" at ")[0]
    about = {"status": "error" if reason else "ok", "bucket": bucket, "latency_ms": latency}
    return about | ({"message": reason} if reason else {})


def _model(status: Mapping[str, Any]) -> Answered:
    """The model that consolidates, by its calls so far. It is not asked now: a call costs money."""
    figures = status.get("statistics", {}).get("model") or {}
    fails = 0 < figures.get("requests", 0) == figures.get("failures", 0)
    about = {"status": "error" if fails else "ok", "model": str(status.get("model", "")), "latency_ms": None}
    return about | ({"message": "all calls since the start have failed"} if fails else {})


@TOOLS.add("Tell who you are and what you may do.", returns={"client_name": "string"}, about="")
async def system_whoami(call: ToolCall) -> Answered:
    """The caller's name, permissions and spaces."""
    access = call.access
    return {
        "client_name": access.name or call.agent,
        "auth_type": _kind_of(call),
        "permissions": _permissions(access),
        "allowed_spaces": list(access.spaces),
    }


def _kind_of(call: ToolCall) -> str:
    """How the caller was let in: by a `token`, by the `bootstrap` key, or `local`: by being this user here."""
    if call.tokens.is_bootstrap(call.access.token):
        return "bootstrap"
    return "token" if call.access.name else "local"


def _permissions(access: Access) -> list[str]:
    return [permission for permission in PERMISSIONS if access.may(permission)]


def about_of(tools: Callable[[], Sequence[McpTool]]) -> McpTool:
    """`system_about`, which lists the other tools."""

    async def system_about(call: ToolCall) -> Answered:
        listed = [{"name": tool.name, "description": tool.purpose} for tool in tools()]
        return {
            "name": NAME,
            "version": __version__,
            "description": "Agent memory in the files of a bucket.",
            "model": str(call.context.status().get("model", "")),
            "agent": call.agent,
            "permissions": _permissions(call.access),
            "tools_count": len(listed),
            "tools": listed,
        }

    returns: dict[str, Any] = {"version": "string", "permissions": "array", "tools": "array"}
    return McpTool("system_about", "Tell version, permissions, tools.", (), returns, system_about, about="")
