"""Which agent is behind a process.

Owns what is read in /proc: the process's own LIVEMEMFS_AGENT, else the nearest ancestor that is a known agent; and
whether livememfs itself has started the program to ask it as a model. Refuses to guess: without either, the mount's
default is used. Any thread; reads a few small files of the kernel.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from livememfs.records import agentnames
from livememfs.text.own import ASKING

_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno", "python", "python3", "sh", "bash"})
_VARIABLE = "LIVEMEMFS_AGENT"
_DEPTH = 24
_START_TIME = 20
"""The field of `stat`, counted after the name, with the time when the process began."""
_SESSION = 3
"""The field with the session."""
_KNOWN = 256
_known: dict[tuple[int, bytes, bytes, Path], str] = {}


def agent_of(pid: int, default: str, *, proc: Path = Path("/proc")) -> str:
    """The agent behind process `pid`; `default` when there is none or it cannot be seen.

    The environment is read each time, the ancestors once for each process and program.
    """
    if variable := _variable(pid, _VARIABLE, proc):
        return variable.strip() or default
    program, fields = _stat(proc / str(pid))
    if len(fields) < _START_TIME:
        return _by_ancestors(pid, proc) or default
    process = (pid, fields[_START_TIME - 1], program, proc)
    agent = _known.get(process)
    if agent is None:
        if len(_known) > _KNOWN:
            _known.clear()
        agent = _known[process] = _by_ancestors(pid, proc)
    return agent or default


def user_of(pid: int, default: str, *, proc: Path = Path("/proc")) -> str:
    """The name of the user to whom process `pid` belongs; `default` when there is none or it cannot be seen."""
    import pwd  # here: Windows has none

    try:
        return pwd.getpwuid((proc / str(pid)).stat().st_uid).pw_name if pid else default
    except (OSError, KeyError):
        return default


def working_directory(pid: int, *, proc: Path = Path("/proc")) -> str:
    """The working directory of a process; empty when it cannot be seen. Only the kernel is asked, never a disk that
    could hang.
    """
    try:
        return str((proc / str(pid) / "cwd").readlink()) if pid else ""
    except OSError:
        return ""


def kin_of(pid: int, *, proc: Path = Path("/proc")) -> tuple[int, int]:
    """The process that a thread belongs to, and the process that started it; zeros when they cannot be seen."""
    found = {}
    for line in _read(proc / str(pid) / "status").split(b"\n"):
        name, _, value = line.partition(b":")
        if name in (b"Tgid", b"PPid"):
            found[name] = int(value)
    return found.get(b"Tgid", 0), found.get(b"PPid", 0)


def process_of(pid: int, *, proc: Path = Path("/proc")) -> tuple[int, bytes]:
    """The process that a thread belongs to, with its start time, since the kernel uses numbers again."""
    process = kin_of(pid, proc=proc)[0] or pid
    _, fields = _stat(proc / str(process))
    return process, fields[_START_TIME - 1] if len(fields) >= _START_TIME else b""


def is_asked_by_us(pid: int, *, proc: Path = Path("/proc")) -> bool:
    """Whether livememfs has started this program to ask it as a model: what it does is not observed."""
    return bool(_variable(pid, ASKING, proc))


def _variable(pid: int, name: str, proc: Path) -> str:
    """The first value that a variable has in the environment of a process; empty when there is none to be read."""
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
        _, fields = _stat(proc / str(pid))
        pid = int(fields[1]) if len(fields) > 1 else 0
    return ""


def _agent_name(process: Path) -> str:
    """The known agent that this process is, or an empty string. For an interpreter, its script is looked at."""
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


def _stat(process: Path) -> tuple[bytes, list[bytes]]:
    """The program and the fields after it, none when they cannot be read. Its name may have blanks and parentheses."""
    before, _, after = _read(process / "stat").rpartition(b")")
    return before.partition(b"(")[2], after.split()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended, or belongs to another user
        return b""


def session_of(pid: int, *, proc: Path = Path("/proc")) -> str:
    """The terminal session of a process. The start time is part of it, since the kernel uses numbers again."""
    _, fields = _stat(proc / str(pid))
    if len(fields) < _START_TIME:
        return "unknown"
    leader = fields[_SESSION].decode()
    _, of_leader = _stat(proc / leader)
    return f"terminal {leader} {of_leader[_START_TIME - 1].decode() if len(of_leader) >= _START_TIME else ''}".strip()
