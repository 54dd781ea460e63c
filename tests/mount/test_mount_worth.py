"""A session on a real mount: what it is told, what of it comes back, and where a person sees both."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hooking import hook, used
from machine import SPACE, Mount, StartMount, livememfs, sh
from test_mount_watch import until

from livememfs.memories.opened import RESTS

PORT = "20260220T140000_fact_0000000a.md"
LEASE = "20260220T140100_fact_0000000b.md"
IDLE = "20260220T140200_fact_0000000c.md"
SESSION = "s-1"


def started(start_mount: StartMount, folder: Path) -> Mount:
    """A mount with a space of three memories that a message about the service is told."""
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), "LIVEMEMFS_EMBED_MODEL": "none"})
    sh(f"mkdir {SPACE}", cwd=mount.path)
    for name, text in (
        (PORT, "the service listens on port 5433, since the VPN came"),
        (LEASE, "the service loses its lease in src/worker.py"),
        (IDLE, "the service was written by Kim"),
    ):
        (mount / SPACE / "memories" / name).write_text(text)
    sh("cat 'search/the service.md' > /dev/null", cwd=mount / SPACE)
    return mount


def ask(mount: Mount, session: str = SESSION, prompt: str = "what about the service?") -> str:
    said = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/p", "prompt": prompt}
    return hook(mount / SPACE, "UserPromptSubmit", said).stdout.decode()


def worth(mount: Mount, name: str) -> dict[str, str]:
    """The attributes of a memory that say what it was worth."""
    path = mount / SPACE / "memories" / name
    found = {}
    for field in ("uses", "used_at", "told", "told_at"):
        try:
            found[field] = os.getxattr(path, f"user.livememfs.{field}").decode()
        except OSError:
            found[field] = ""
    return found


def uses(mount: Mount) -> list[int]:
    return [int(worth(mount, name)["uses"]) for name in (PORT, LEASE, IDLE)]


def test_what_a_session_is_told_is_used_when_it_comes_back(start_mount: StartMount, folder: Path) -> None:
    mount = started(start_mount, folder)
    block = ask(mount)
    assert all(word in block for word in ("5433", "lease", "Kim"))
    until(lambda: worth(mount, IDLE)["told"] == "1", 10)
    assert uses(mount) == [0, 0, 0], "a telling passes for a use"

    opens = used(1, SESSION, tool_name="Read", tool_input={"file_path": "/p/src/worker.py"}, tool_response={})
    hook(mount / SPACE, "PostToolUse", opens)
    stop = {"hook_event_name": "Stop", "session_id": SESSION, "cwd": "/p"}
    hook(mount / SPACE, "Stop", {**stop, "last_assistant_message": "It is port 5433, because of the VPN."})
    until(lambda: uses(mount) == [1, 1, 0], 10)
    assert worth(mount, PORT)["used_at"].startswith("20")
    assert worth(mount, IDLE)["used_at"] == ""
    assert not [name for name in os.listxattr(mount / SPACE / "memories" / PORT) if "used" in name or "told" in name]

    for number in range(3):
        ask(mount, f"other-{number}")
    until(lambda: worth(mount, IDLE)["told"] == "4", 10)
    page = (mount / ".livememfs/audit.md").read_text()
    vain = page[page.index("Told 3 times") :]
    assert f"- `{SPACE}/memories/{IDLE}`: told 4, used 0" in vain
    assert f"`{SPACE}/memories/{PORT}`: told 4" not in vain.partition("###")[0]
    assert (mount / ".livememfs/audit.md").read_text() == page


def test_who_reads_a_memory_uses_it_and_who_reads_all_does_not(start_mount: StartMount, folder: Path) -> None:
    mount = started(start_mount, folder)
    for number in range(5):
        (mount / SPACE / "memories" / f"20260220T14100{number}_fact_1000000{number}.md").write_text(f"more {number}")
    sh("grep -r service memories; true", cwd=mount / SPACE)  # a shell of its own, as the next one
    sh(f"cat memories/{PORT} memories/{PORT}; true", cwd=mount / SPACE)

    until(lambda: uses(mount)[0] > 0, RESTS + 10)
    assert uses(mount) == [1, 0, 0], "grep read all of them, and began to rest before"
    os.setxattr(mount / SPACE / "memories" / IDLE, "user.livememfs.importance", b"0.9")
    assert uses(mount)[2] == 0, "it was never told"
    ask(mount)
    until(lambda: worth(mount, IDLE)["told"] == "1", 10)
    os.setxattr(mount / SPACE / "memories" / IDLE, "user.livememfs.importance", b"0.8")
    assert uses(mount)[2] == 1
    os.setxattr(mount / SPACE / "memories" / PORT, "user.livememfs.related_to", LEASE.encode())
    assert uses(mount) == [2, 1, 1], "the one that is linked, and the one that it is linked to"


def test_the_command_shows_the_counts_of_the_mount_and_what_is_stale_where_it_is_called(
    start_mount: StartMount, folder: Path, tmp_path: Path
) -> None:
    mount = started(start_mount, folder)
    code = tmp_path / "code"
    sh(
        "git init -q code && cd code && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m begin"
        " && echo 'def load(): pass' > loader.py"
        f" && echo 'the service loads in loader.py' > {mount.path}/{SPACE}/memories/20260220T140300_fact_0000000d.md"
        " && rm loader.py",
        cwd=tmp_path,
    )
    ask(mount)
    until(lambda: worth(mount, IDLE)["told"] == "1", 10)

    def found() -> Any:
        command = f"audit {SPACE} --json --store {folder}"
        return json.loads(livememfs(command, env=mount.environment, cwd=code).stdout)

    until(lambda: found()["parts"]["stale"]["found"] == 1, 20)
    audit = found()
    assert audit["told"] >= 3
    assert PORT not in str(audit["parts"]["never"])
    assert "loader.py: gone" in audit["parts"]["stale"]["rows"][0]["why"]
    elsewhere = json.loads(livememfs(f"audit {SPACE} --json --store {folder}", env=mount.environment).stdout)
    assert elsewhere["parts"]["stale"]["rows"] == []
    assert "no repository" in str(elsewhere["notes"])
