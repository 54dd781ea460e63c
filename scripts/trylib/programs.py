"""The programs: how each is installed, kept to itself, pointed at our model, started, and what it calls its tools.

Owns the table. A program's own HOME holds all it keeps; it hears of no address but the model's on loopback, as far as
it lets itself be told so. Main thread only, but for `call`, which the model's threads use.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trylib.endpoint import Json, Turn

SERVER_TOOL = "live_note"


class Missing(Exception):
    """A program that does not run here, and why."""


@dataclass(frozen=True)
class Ran:
    """One run of a program: what it printed, its status (None: ended for being too slow) and seconds."""

    output: str
    status: int | None
    seconds: float


@dataclass
class Program:
    """One agent's program.

    :name:    what `livememfs install` calls it
    :agent:   what its records are to name it
    :package: on npm, with the version that was tried
    :command: the words that start a session and one that goes on with the last; `{prompt}` stands for the prompt
    :hides:   events of ours that the program tells nothing of, or context it drops: checks that do not apply
    :compact: the prompt that makes it compact; empty: so many tokens used as `full` says make it do so by itself
    """

    name: str
    agent: str
    package: str
    version: str
    binary: str
    command: Sequence[str]
    again: Sequence[str]
    environment: Mapping[str, str]
    files: Mapping[str, object]
    tools: Mapping[str, tuple[str, Mapping[str, str]]]
    hides: Mapping[str, str] = field(default_factory=dict)
    compact: str = ""
    full: int = 0
    server: str = "mcp__livememfs__"

    def install(self, folder: Path) -> Path:
        """The program's file, had from npm if it is not below `folder` yet. Missing when that fails."""
        folder = folder / self.package.rpartition("/")[2]
        binary = folder / "node_modules" / ".bin" / self.binary
        if not binary.exists():
            folder.mkdir(parents=True, exist_ok=True)
            words = [
                "npm",
                "install",
                "--no-fund",
                "--no-audit",
                "--prefix",
                str(folder),
                f"{self.package}@{self.version}",
            ]
            done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                raise Missing(f"npm: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return binary

    def settle(self, home: Path, project: Path, url: str) -> None:
        """Write what the program keeps below its HOME: no telemetry, no updates, our model, a project it trusts."""
        for path, content in self.files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            target = home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace("{url}", url).replace("{project}", str(project)))

    def surroundings(self, home: Path, url: str) -> dict[str, str]:
        """The environment of a run: nothing of ours but what is needed to start."""
        path = os.pathsep.join(dict.fromkeys(["/usr/local/bin", "/usr/bin", "/bin", *_node()]))
        own = {name: value.replace("{url}", url) for name, value in self.environment.items()}
        return {"PATH": path, "HOME": str(home), "TERM": "dumb", "LANG": "C.UTF-8", "NO_COLOR": "1", **own}

    def run(self, binary: Path, prompt: str, *, home: Path, project: Path, url: str, again: bool, limit: float) -> Ran:
        """One session, or the last one gone on with, until the program ends."""
        words = [str(binary), *(word.replace("{prompt}", prompt) for word in (self.again if again else self.command))]
        began, environment = time.monotonic(), self.surroundings(home, url)
        with (
            Path(os.devnull).open() as nothing,
            subprocess.Popen(
                words,
                cwd=project,
                env=environment,
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            ) as process,
        ):
            try:
                output, status = process.communicate(timeout=limit)[0], process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                output, status = process.communicate()[0], None
        return Ran(output, status, time.monotonic() - began)

    def call(self, turn: Turn, tools: Sequence[str]) -> tuple[str, Json]:
        """The name and the arguments of a tool of this program."""
        if turn.tool == "note":
            name = next((one for one in tools if one.endswith(SERVER_TOOL)), "")
            search = next((one for one in tools if one in ("tool_search", "ToolSearch")), "")
            if not name and search and not turn.found:
                return search, {"query": "livememfs live_note"}
            return name or self.server + SERVER_TOOL, dict(turn.arguments)
        name, arguments = self.tools[turn.tool]
        return name, {key: value.format(**turn.arguments) for key, value in arguments.items()}


def _node() -> list[str]:
    found = subprocess.run(["which", "node"], capture_output=True, text=True, check=False).stdout.strip()
    return [str(Path(found).parent)] if found else []


_QUIET_GEMINI = {
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
_CODEX = """
model = "gpt-5.5"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
model_context_window = 200000
model_auto_compact_token_limit = 150000
[features]
plugins = false
apps = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
[mcp_servers.livememfs]
default_tools_approval_mode = "approve"
[projects."{project}"]
trust_level = "trusted"
"""
_PATCH = "*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch\n"
_OPENCODE_MODEL = {"name": "scripted", "limit": {"context": 100_000, "output": 8_000}, "tool_call": True}

CLAUDE = Program(
    name="claude-code",
    agent="claude",
    package="@anthropic-ai/claude-code",
    version="2.1.197",
    binary="claude",
    command=[
        "-p",
        "{prompt}",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-hook-events",
        "--allowedTools",
        "Bash,Edit,Read,mcp__livememfs",
    ],
    again=["-p", "{prompt}", "--continue", "--allowedTools", "Bash,Edit,Read,mcp__livememfs"],
    environment={
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": "none",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    },
    files={
        ".claude.json": {
            "hasCompletedOnboarding": True,
            "projects": {
                "{project}": {
                    "hasTrustDialogAccepted": True,
                    "hasClaudeMdExternalIncludesApproved": True,
                    "enabledMcpjsonServers": ["livememfs"],
                }
            },
        }
    },
    tools={
        "shell": ("Bash", {"command": "{command}", "description": "a command"}),
        "edit": ("Edit", {"file_path": "{path}", "old_string": "{old}", "new_string": "{new}"}),
        "read": ("Read", {"file_path": "{path}"}),
    },
    compact="/compact",
)
CODEX = Program(
    name="codex",
    agent="codex",
    package="@openai/codex",
    version="0.169.0",
    binary="codex",
    command=["exec", "--dangerously-bypass-hook-trust", "{prompt}"],
    again=["exec", "resume", "--last", "--dangerously-bypass-hook-trust", "{prompt}"],
    environment={"LOCAL_KEY": "none"},
    files={".codex/config.toml": _CODEX},
    tools={
        "shell": ("exec_command", {"cmd": "{command}"}),
        "edit": ("apply_patch", {"*": _PATCH}),
        "read": ("exec_command", {"cmd": "cat {name}"}),
    },
    hides={"file": "it has no tool that reads a file"},
    full=190_000,
)
QWEN = Program(
    name="qwen-code",
    agent="qwen",
    package="@qwen-code/qwen-code",
    version="0.15.10",
    binary="qwen",
    command=["--yolo", "{prompt}"],
    again=["--yolo", "--continue", "{prompt}"],
    environment={
        "OPENAI_BASE_URL": "{url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "scripted",
        "QWEN_SANDBOX": "false",
    },
    files={".qwen/settings.json": {**_QUIET_GEMINI, "security": {"auth": {"selectedType": "openai"}}}},
    tools={
        "shell": ("run_shell_command", {"command": "{command}"}),
        "edit": ("edit", {"file_path": "{path}", "old_string": "{old}", "new_string": "{new}"}),
        "read": ("read_file", {"file_path": "{path}"}),
    },
    hides={"file": "it drops the context of PreToolUse"},
    compact="/compress",
)
GEMINI = Program(
    name="gemini-cli",
    agent="gemini",
    package="@google/gemini-cli",
    version="0.61.0",
    binary="gemini",
    command=["--yolo", "--model", "gemini-2.5-pro", "--prompt", "{prompt}"],
    again=["--yolo", "--model", "gemini-2.5-pro", "--resume", "latest", "--prompt", "{prompt}"],
    environment={
        "GOOGLE_GEMINI_BASE_URL": "{url}",
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    files={
        ".gemini/settings.json": {
            **_QUIET_GEMINI,
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        }
    },
    tools={
        "shell": ("run_shell_command", {"command": "{command}"}),
        "edit": ("replace", {"file_path": "{path}", "old_string": "{old}", "new_string": "{new}", "instruction": "x"}),
        "read": ("read_file", {"file_path": "{path}"}),
    },
    hides={"file": "it drops the context of BeforeTool", "compaction": "it compacts only in a terminal"},
    server="mcp_livememfs_",
)
OPENCODE = Program(
    name="opencode",
    agent="opencode",
    package="opencode-ai",
    version="1.18.33",
    binary="opencode",
    command=["run", "{prompt}"],
    again=["run", "--continue", "{prompt}"],
    environment={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    },
    files={
        ".config/opencode/opencode.json": {
            "autoupdate": False,
            "share": "disabled",
            "permission": {"*": "allow"},
            "enabled_providers": ["local"],
            "model": "local/scripted",
            "small_model": "local/scripted",
            "provider": {
                "local": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "local",
                    "options": {"baseURL": "{url}/v1", "apiKey": "none"},
                    "models": {"scripted": _OPENCODE_MODEL},
                }
            },
        }
    },
    tools={
        "shell": ("bash", {"command": "{command}", "description": "a command"}),
        "edit": ("edit", {"filePath": "{path}", "oldString": "{old}", "newString": "{new}"}),
        "read": ("read", {"filePath": "{path}"}),
    },
    hides={"file": "its plugins add nothing to a tool's answer"},
    full=99_000,
    server="livememfs_",
)
PROGRAMS = {one.name: one for one in (CLAUDE, CODEX, QWEN, GEMINI, OPENCODE)}
