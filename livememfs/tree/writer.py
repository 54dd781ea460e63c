"""Which agent is behind a process.

Owns the look into /proc: the writer's own LIVEMEMFS_AGENT, else the nearest ancestor that is a known agent; and whether
it is a program that we ask ourselves. Refuses guesses: when neither is there the mount's default stands. Any thread;
reads a few small files of the kernel.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from livememfs.records import agentnames
from livememfs.text.own import ASKING

_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno", "python", "python3", "sh", "bash"})
_VARIABLE = "LIVEMEMFS_AGENT"
_DEPTH = 24
_START_TIME = 20
"""Which field of `stat`, after the name, says when the process began."""
_SESSION = 3
"""Which one is the session."""
_KNOWN = 256
_known: dict[tuple[int, bytes, bytes, Path], str] = {}


def agent_of(pid: int, default: str, *, proc: Path = Path("/proc")) -> str:
    """The agent behind process `pid`; `default` when there is none or it cannot be seen.

    The environment is looked at each time, the ancestors once for a process and what it runs.
    """
    if told := _variable(pid, _VARIABLE, proc):
        return told.strip() or default
    status = _read(proc / str(pid) / "stat")
    fields = status.rpartition(b")")[2].split()
    if len(fields) < _START_TIME:
        return _by_ancestors(pid, proc) or default
    who = (pid, fields[_START_TIME - 1], status.partition(b"(")[2].rpartition(b")")[0], proc)
    found = _known.get(who)
    if found is None:
        if len(_known) > _KNOWN:
            _known.clear()
        found = _known[who] = _by_ancestors(pid, proc)
    return found or default


def is_asked_by_us(pid: int, *, proc: Path = Path("/proc")) -> bool:
    """Whether a process belongs to a program that we ask as a model: what it does is no news to us."""
    return bool(_variable(pid, ASKING, proc))


def _variable(pid: int, name: str, proc: Path) -> str:
    """The first value of a variable that a process was started with; empty when it has none or it cannot be seen."""
    start = f"{name}=".encode()
    for variable in _read(proc / str(pid) / "environ").split(b"\0"):
        if variable.startswith(start) and len(variable) > len(start):
            return variable[len(start) :].decode("utf-8", "replace")
    return ""


def _by_ancestors(pid: int, proc: Path) -> str:
    """The nearest known agent among a process and its ancestors; empty when there is none."""
    for _ in range(_DEPTH):
        if pid <= 1:
            break
        name = _agent_name(proc / str(pid))
        if name:
            return name
        pid = _parent(proc / str(pid))
    return ""


def _agent_name(process: Path) -> str:
    """The known agent that this process is, or an empty string. Interpreters are judged by what they run."""
    comm = _read(process / "comm").decode("utf-8", "replace").strip()
    if agent := agentnames.of_process(comm):
        return agent
    words = _read(process / "cmdline").decode("utf-8", "replace").split("\0")[:3]
    for index, word in enumerate(words):
        name = PurePosixPath(word).name
        if agent := agentnames.of_process(name):
            return agent
        if index == 0 and name.rstrip("0123456789.") not in _INTERPRETERS:
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


def session_of(pid: int, *, proc: Path = Path("/proc")) -> str:
    """The terminal session that a process belongs to: what it starts belongs to the same one, nothing later does."""
    fields = _read(proc / str(pid) / "stat").rpartition(b")")[2].split()
    if len(fields) < _START_TIME:
        return "unknown"
    leader = fields[_SESSION].decode()
    began = _read(proc / leader / "stat").rpartition(b")")[2].split()
    return f"terminal {leader} {began[_START_TIME - 1].decode() if len(began) >= _START_TIME else ''}".strip()
