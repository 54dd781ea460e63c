"""Hooks as an agent runs them, and what a mount says of their events."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from machine import SPACE, Mount, StartMount, clean_environment, sh
from test_mount_watch import until

from livememfs.agents.install.command import HookCommand
from livememfs.records.observation import Observation
from livememfs.testing.llm import LLMRequest, Scripted, ScriptedLLM
from livememfs.testing.observer import observing

IDLE = 0.4
"""Seconds without an event after which a batch that is not full is observed."""
SETTLED_WITHIN = 30.0
WHO = "I am the keeper of the lighthouse."
"""What a memory of the space says of the agent."""


def metered(request: LLMRequest) -> Scripted:
    """The scripted observer's answer, with what a model would say that it cost."""
    text = observing(request)
    usage = {"prompt_tokens": math.ceil(len(request.text) / 4), "completion_tokens": math.ceil(len(text) / 4)}
    return Scripted(text, usage=usage)


def asking(llm: ScriptedLLM, *, idle: float = IDLE) -> dict[str, str]:
    """Settings of a mount whose observer asks `llm`."""
    model = {"LLMAAS_API_URL": llm.url, "LLMAAS_API_KEY": "k", "LLMAAS_MODEL": "scripted"}
    return {**model, "LIVEMEMFS_OBSERVE_IDLE": str(idle)}


def asking_by_words(llm: ScriptedLLM, *, idle: float = IDLE) -> dict[str, str]:
    """The same of a mount that searches by words alone: each daemon that loads the model works longer than its test."""
    return {**asking(llm, idle=idle), "LIVEMEMFS_EMBED_MODEL": "none"}


def hook(space: Path, event: str, request: bytes | Mapping[str, Any]) -> subprocess.CompletedProcess[bytes]:
    """Run the command of a hook as an agent does: a shell, the JSON on its input."""
    return subprocess.run(
        ["/bin/sh", "-c", HookCommand(str(space), event).command],
        input=request if isinstance(request, bytes) else json.dumps(request).encode(),
        capture_output=True,
        cwd="/",
        env=clean_environment(Path("/tmp")),
        timeout=20,
        check=False,
    )


def answered(space: Path, event: str, request: bytes | Mapping[str, Any]) -> dict[str, Any]:
    """What a hook that went well printed."""
    done = hook(space, event, request)
    assert (done.returncode, done.stderr) == (0, b"")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def used(number: int, session: str, **fields: Any) -> dict[str, Any]:
    """The use of a tool, by its number, as Claude Code tells it."""
    file = f"/p/src/f{number}.py"
    return {
        "session_id": session,
        "cwd": "/p",
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"},
        "tool_response": {"filePath": file},
        "tool_use_id": f"t{number}",
        **fields,
    }


def status(mount: Mount) -> dict[str, Any]:
    """The mount's figures."""
    found: dict[str, Any] = json.loads((mount / ".livememfs/status.json").read_text())
    return found


def told(mount: Mount) -> dict[str, Any]:
    """What `status.json` says of sessions."""
    found: dict[str, Any] = status(mount)["sessions"]
    return found


def settled(mount: Mount) -> dict[str, Any]:
    """Wait until no event waits and the bucket has what came of them; what `status.json` says of events then."""
    until(lambda: told(mount)["events"]["waiting"] == 0, SETTLED_WITHIN)
    mount.uploaded()
    found: dict[str, Any] = told(mount)["events"]
    return found


def observations(store: Path) -> list[Observation]:
    """The observations in a folder store."""
    paths = sorted((store / SPACE / "observations").glob("*.md"))
    return [Observation.parse(path.read_bytes(), path=path.name, name=path.name) for path in paths]


def with_identity(mount: Mount) -> Mount:
    """The mount, with one space that knows who the agent is."""
    sh(f"mkdir {SPACE}; printf -- '---\\ntype: identity\\n---\\n{WHO}\\n' > {SPACE}/self/who", cwd=mount.path)
    return mount


@pytest.fixture
def llm() -> Iterator[ScriptedLLM]:
    """The model that observes."""
    with ScriptedLLM(responder=metered) as llm:
        yield llm


@pytest.fixture
def observed(start_mount: StartMount, folder: Path, llm: ScriptedLLM) -> Mount:
    """A mount whose agents are observed, with one space that knows who the agent is."""
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), **asking(llm)})
    return with_identity(mount)
