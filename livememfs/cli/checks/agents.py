"""Checks of the installed agents: each hook and each MCP server is run as the agent runs it.

Owns the verdicts: one check for the hooks of an agent and one for its server. A hook gets a probe that leaves nothing
in a space; a server is only asked for its list of tools. All run at once, in threads, each with a time limit. Refuses
to start a server whose command is not exactly as `install` writes it. Trio thread only.
"""

from __future__ import annotations

import errno
import json
import shlex
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import trio

from livememfs.agents.install import plan, record
from livememfs.agents.install.command import MACHINE, SECONDS, HookCommand
from livememfs.agents.install.plan import InstallState
from livememfs.agents.install.tools import AgentName
from livememfs.cli.checks import Check
from livememfs.cli.mounting import mounts
from livememfs.fuse.mounted import ask
from livememfs.records import keys
from livememfs.tree.exchange import PROBE

SERVER_SECONDS = 20.0
"""Starting an interpreter on a busy machine is slow; agents wait even longer."""
_REQUESTS = (
    {
        "method": "initialize",
        "id": 1,
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "livememfs-doctor", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"method": "tools/list", "id": 2},
)


@dataclass(frozen=True)
class InstalledAgent:
    """One agent in one project, or in all."""

    tool: AgentName
    folder: Path
    home: bool

    @property
    def where(self) -> str:
        """Tool and project, for people."""
        return f"{self.tool} in {'all projects' if self.home else self.folder}"

    @property
    def undo(self) -> str:
        """The command that removes it."""
        return f"livememfs uninstall {self.tool}" + (
            " --user" if self.home else f" --project {shlex.quote(str(self.folder))}"
        )


async def checks(project: Path, answering: list[str]) -> list[Check]:
    """The agents of this project and all recorded ones. `answering`: the mounts whose daemon answers."""
    by_agent: dict[int, list[Check]] = {}

    async def look(number: int, agent: InstalledAgent) -> None:
        standing = await trio.to_thread.run_sync(partial(plan.standing, agent.tool, agent.folder, home=agent.home))
        by_agent[number] = await _agent(agent, standing, answering)

    async with trio.open_nursery() as nursery:
        for number, agent in enumerate(_all(project)):
            nursery.start_soon(look, number, agent)
    lines = [check for _, some in sorted(by_agent.items()) for check in some]
    return lines or [Check("hooks", "ok", f"none in {project}")]


def _all(project: Path) -> Iterable[InstalledAgent]:
    here = [InstalledAgent(tool, project, False) for tool in AgentName] if project != Path.home() else []
    filed = [
        InstalledAgent(AgentName(entry.tool), Path(entry.project), entry.space == MACHINE) for entry in record.records()
    ]
    return dict.fromkeys([*here, *filed])


async def _agent(agent: InstalledAgent, standing: InstallState, answering: list[str]) -> list[Check]:
    results: list[Check] = []
    if standing.unread:
        advice = "remove comments and trailing commas"
        results.append(Check("hooks", "fail", f"{agent.where}: {standing.unread}", advice))
    if standing.hooks:
        results.append(await _hooks(agent, standing, answering))
    if standing.server:
        results.append(await trio.to_thread.run_sync(_server, agent, standing.server))
    return results


# --- hooks -------------------------------------------------------------------------------------------------------


async def _hooks(agent: InstalledAgent, standing: InstallState, answering: list[str]) -> Check:
    for space in sorted({hook.space for hook in standing.hooks.values()}):
        if (missing := await _space(agent, Path(space), answering)) is not None:
            return missing
    took: dict[str, float] = {}

    async def run(hook: HookCommand) -> None:
        took[hook.event] = await trio.to_thread.run_sync(_run, hook)

    async with trio.open_nursery() as nursery:
        for hook in standing.hooks.values():
            nursery.start_soon(run, hook)
    silent = sorted(event for event, seconds in took.items() if seconds < 0)
    if silent:
        advice = f"install it again (livememfs install {agent.tool}{' --user' if agent.home else ''}), or {agent.undo}"
        return Check("hooks", "fail", f"{agent.where}: nothing answers {', '.join(silent)}", advice)
    spaces = ", ".join(sorted({hook.space for hook in standing.hooks.values()}))
    return Check("hooks", "ok", f"{agent.where}: {len(took)} answer, within {max(took.values()):.2f} s, from {spaces}")


def _run(hook: HookCommand) -> float:
    """The seconds a hook took; negative if it did not answer."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            ["sh", "-c", hook.command], input=PROBE, capture_output=True, cwd="/", timeout=2 * SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1.0
    return time.monotonic() - began if (done.returncode, done.stdout) == (0, PROBE) else -1.0


async def _space(agent: InstalledAgent, space: Path, answering: list[str]) -> Check | None:
    """The problem between the hooks of an agent and its space; None without one."""
    mount, undo = space.parent, f"remove the hooks: {agent.undo}"
    if str(mount) not in answering and str(mount) in mounts.kernel_mounts():
        advice = f"livememfs umount --lazy {shlex.quote(str(mount))}, and mount again"
        return Check("hooks", "warn", f"{agent.where} writes to {space}, and the mount does not answer", advice)
    if str(mount) not in answering:
        advice = f"mount there (livememfs mount {shlex.quote(str(mount))}), or {undo}"
        return Check("hooks", "warn", f"{agent.where} writes to {space}, where nothing is mounted", advice)
    answer = await trio.to_thread.run_sync(ask, mount, space / keys.META if space.name != MACHINE else None)
    if answer is None or answer.errno != errno.ENOENT:
        return None
    other = f"name another one (livememfs install {agent.tool} --space SPACE)"
    advice = f"make it (mkdir {shlex.quote(str(space))}), or {other}, or {undo}"
    return Check("hooks", "warn", f"{agent.where} writes to {space}, and there is no such space", advice)


# --- servers -----------------------------------------------------------------------------------------------------


def _server(agent: InstalledAgent, argv: list[str]) -> Check:
    """Whether an MCP server lists its tools."""
    requests = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _REQUESTS)
    advice = f"livememfs install {agent.tool}{' --user' if agent.home else ''} --mcp, or {agent.undo}"
    try:
        done = subprocess.run(
            argv, input=requests, capture_output=True, cwd=agent.folder, timeout=SERVER_SECONDS, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = f"{argv[0]} cannot be started" if isinstance(error, OSError) else "it does not answer"
        return Check("MCP server", "fail", f"{agent.where}: {reason}", advice)
    tools = _tools(done.stdout)
    if tools is None:
        reason = (done.stderr.strip().splitlines() or ["it prints nothing"])[-1]
        return Check("MCP server", "fail", f"{agent.where}: {reason}", advice)
    return Check("MCP server", "ok", f"{agent.where}: {tools} tools")


def _tools(output: str) -> int | None:
    """The number of tools in a server's output; None without a list."""
    for line in output.splitlines():
        try:
            message: Any = json.loads(line)
            if message.get("id") == 2:
                return len(message["result"]["tools"])
        except (ValueError, AttributeError, KeyError, TypeError):
            continue
    return None
