"""A repository beside a real mount: its code moves on, and a session is told what still holds of what it remembered."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from code_repositories import GitTree
from hooking import hook
from machine import SPACE, Mount, StartMount, sh
from test_mount_watch import until

CODE = "def read_port():\n    return 5433\n\n\ndef read_host():\n    return 'db'\n"
FACTS = {"port": "The service asks `read_port` in src/ports.py", "host": "The service asks `read_host` in src/ports.py"}


def ask(mount: Mount, tree: GitTree) -> dict[str, str]:
    """The lines that a new session in a worktree is told, by what they are about."""
    said = {"hook_event_name": "UserPromptSubmit", "session_id": os.urandom(8).hex(), "cwd": str(tree.top)}
    block = hook(mount / SPACE, "UserPromptSubmit", {**said, "prompt": "what does the service ask?"}).stdout.decode()
    lines = block.replace("\\n", "\n").splitlines()
    return {name: line for name in FACTS for line in lines if f"read_{name}" in line}


def told(mount: Mount, tree: GitTree, expected: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    """The first answer that is as expected. A turn looks at code for a few milliseconds only, so a slow machine may say
    "not checked" at first, and once more later.
    """
    answers = []

    def comes() -> bool:
        answers.append(ask(mount, tree))
        return expected(answers[-1])

    until(comes, 20)
    return answers[-1]


def stale(mount: Mount) -> dict[str, str]:
    folder = mount / SPACE / "memories/.stale"
    return {name: (folder / name).read_text() for name in os.listdir(folder)}


def test_a_session_is_told_what_still_holds_of_the_code(start_mount: StartMount, folder: Path, tmp_path: Path) -> None:
    tree = GitTree.made(tmp_path / "tool")
    tree.write("src/ports.py", CODE)
    tree.commit("ports")
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), "LIVEMEMFS_EMBED_MODEL": "none"})
    sh(f"mkdir {SPACE}", cwd=mount.path)
    for name, text in FACTS.items():
        sh(f'echo "$FACT" > {mount / SPACE}/memories/{name}.md', cwd=tree.top, env={**os.environ, "FACT": text})
    sh("cat 'search/the service.md' > /dev/null", cwd=mount / SPACE)
    kept = [path.read_text() for path in (mount / SPACE / "memories").glob("2*.md")]
    assert [text.count('repository: "example.org/acme/tool"') for text in kept] == [1, 1]

    before = told(mount, tree, lambda answer: set(answer) == set(FACTS))
    assert "its code" not in str(before)
    assert stale(mount) == {}

    tree.write("src/ports.py", CODE.replace("5433", "5434").replace("read_host", "find_host"))
    told(mount, tree, lambda answer: "its code has changed since" in answer.get("port", "") and "host" not in answer)
    texts = sorted(stale(mount).values())
    assert [text.partition(":")[0] for text in texts] == ["changed", "gone"]
    assert "read_host in src/ports.py: gone" in texts[1]

    tree.git("checkout", "-q", "src/ports.py")
    tree.git("mv", "src/ports.py", "src/places.py")
    until(lambda: stale(mount) == {}, 10)
    assert "its code" not in str(told(mount, tree, lambda answer: len(answer) == 2))


def test_a_mount_in_a_worktree_is_not_looked_into(start_mount: StartMount, folder: Path) -> None:
    """Git would have every file of it made, and wait for the mount that waits for git."""
    mount = start_mount({"LIVEMEMFS_STORE": str(folder), "LIVEMEMFS_EMBED_MODEL": "none"})
    tree = GitTree(mount.path.parent)
    tree.git("init", "-q", "-b", "main")
    sh(f"mkdir {SPACE}", cwd=mount.path)
    sh(f'echo "\\`read_port\\` is in places.py, ports.md" > {mount / SPACE}/memories/one.md', cwd=tree.top)
    sh(f'echo "\\`read_port\\` is called" > {mount / SPACE}/memories/two.md', cwd=tree.top)

    texts = [path.read_text() for path in (mount / SPACE / "memories").glob("2*.md")]
    assert len(texts) == 2
    assert all("repository:" in text for text in texts)
    assert not any("code:" in text for text in texts)
