"""Which agent is behind a process.

Owns the look into /proc: the writer's own LIVEMEMFS_AGENT, else the nearest ancestor that is a known agent. Refuses
guesses: when neither is there the mount's default stands. Any thread; reads a few small files of the kernel.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

KNOWN_AGENTS = frozenset(
    {
        "aider",
        "amp",
        "claude",
        "cline",
        "codex",
        "continue",
        "copilot",
        "crush",
        "cursor",
        "cursor-agent",
        "gemini",
        "goose",
        "opencode",
        "qwen",
        "roo",
        "windsurf",
        "zed",
    }
)
_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno", "python", "python3", "sh", "bash"})
_VARIABLE = b"LIVEMEMFS_AGENT="
_DEPTH = 24


def agent_of(pid: int, default: str, *, proc: Path = Path("/proc")) -> str:
    """The agent behind process `pid`; `default` when there is none or it cannot be seen."""
    for variable in _read(proc / str(pid) / "environ").split(b"\0"):
        if variable.startswith(_VARIABLE) and len(variable) > len(_VARIABLE):
            return variable[len(_VARIABLE) :].decode("utf-8", "replace").strip() or default
    for _ in range(_DEPTH):
        if pid <= 1:
            break
        name = _agent_name(proc / str(pid))
        if name:
            return name
        pid = _parent(proc / str(pid))
    return default


def _agent_name(process: Path) -> str:
    """The known agent that this process is, or an empty string. Interpreters are judged by what they run."""
    comm = _read(process / "comm").decode("utf-8", "replace").strip()
    if comm in KNOWN_AGENTS:
        return comm
    words = _read(process / "cmdline").decode("utf-8", "replace").split("\0")[:3]
    for index, word in enumerate(words):
        stem = PurePosixPath(word).name.removesuffix(".js").removesuffix(".py")
        if stem in KNOWN_AGENTS:
            return stem
        if index == 0 and stem.rstrip("0123456789.") not in _INTERPRETERS:
            break
    return ""


def _parent(process: Path) -> int:
    """The parent's pid, 0 when it cannot be told. The name in `stat` may itself hold spaces and parentheses."""
    fields = _read(process / "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # gone, or another user's: both mean that we cannot tell
        return b""
