"""An agent's own memory on real mounts: no line of an index is lost, and every topic is found by its words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from cloud import Bucket
from machine import Mount, StartMount, sh
from test_mount_install import livememfs
from test_mount_watch import until

LINES = 200
INDEX = "project/agents/claude-code/MEMORY.md"
WRITER = """
import os, sys
index, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(count):
    line = f"- [{name} {number}]({name}_{number}.md)\\n"
    if name.startswith("append"):
        with open(index, "a") as file:
            file.write(line)
    else:
        with open(index) as file:
            text = file.read()
        with open(f"{index}.tmp.{os.getpid()}", "w") as file:
            file.write(text + line)
        os.replace(f"{index}.tmp.{os.getpid()}", index)
"""
SHELL = """
for number in $(seq {count}); do
    {{ cat MEMORY.md; echo "- [{name} $number]"; }} > MEMORY.md.{name}
    mv MEMORY.md.{name} MEMORY.md
done
"""
TOPICS = {
    "feedback_testing.md": ("feedback", "Integration tests hit a real database, never a mock"),
    "user_role.md": ("user", "The user has written Go for ten years and is new to React"),
    "project_freeze.md": ("project", "Merges are frozen from Thursday for the mobile release"),
    "reference_linear.md": ("reference", "Pipeline bugs are tracked in the Linear project INGEST"),
}


@pytest.fixture
def two(mounted: Mount, second_mount: StartMount) -> tuple[Path, Path]:
    """The index on two mounts of one bucket."""
    index = mounted / INDEX
    index.parent.mkdir(parents=True)
    index.write_text("# Memory\n\n")
    mounted.uploaded()
    other = second_mount() / INDEX
    until(other.exists, 10)
    return index, other


def test_two_hosts_append_by_rename_and_by_append_and_no_line_is_lost(two: tuple[Path, Path], bucket: Bucket) -> None:
    """Four writers at once, two on each mount, none of whom waits for another."""
    share = LINES // 4
    names = [f"{way}_{host}" for way in ("append", "replace") for host in (0, 1)]
    writers = [
        subprocess.Popen(["timeout", "60", sys.executable, "-c", WRITER, str(two[int(name[-1])]), name, str(share)])
        for name in names
    ]
    assert [writer.wait() for writer in writers] == [0] * 4
    for index in two:
        (index.parents[3] / ".livememfs/journal.wait").read_bytes()

    expected = Counter(f"- [{name} {number}]({name}_{number}.md)" for name in names for number in range(share))
    expected += Counter(["# Memory", ""])
    assert Counter(bucket.text(INDEX).splitlines()) == expected
    for index in two:
        until(lambda index=index: Counter(index.read_text().splitlines()) == expected, 10)  # type: ignore[misc]
        assert [path.name for path in index.parent.iterdir()] == ["MEMORY.md"]


def test_a_shell_replaces_the_index_while_another_appends(two: tuple[Path, Path], bucket: Bucket) -> None:
    """`cat` reads for the shell that writes, and `mv` puts the file in its place."""
    script = SHELL.format(count=20, name="shell")
    with subprocess.Popen(["timeout", "60", "sh", "-c", script], cwd=two[0].parent) as shell:
        assert subprocess.run([sys.executable, "-c", WRITER, str(two[0]), "append_0", "20"], timeout=60).returncode == 0
        assert shell.wait() == 0
    (two[0].parents[3] / ".livememfs/journal.wait").read_bytes()

    expected = Counter(f"- [append_0 {number}](append_0_{number}.md)" for number in range(20))
    expected += Counter(["# Memory", "", *(f"- [shell {number}]" for number in range(1, 21))])
    assert Counter(bucket.text(INDEX).splitlines()) == expected


def test_every_topic_is_found_by_its_words_and_the_index_is_not(mounted: Mount) -> None:
    folder = mounted / "project/agents/claude-code"
    folder.mkdir(parents=True)
    for name, (kind, text) in TOPICS.items():
        (folder / name).write_text(f"---\nname: {name[:-3]}\ndescription: {text}\ntype: {kind}\n---\n\n{text}.\n")
    (folder / "MEMORY.md").write_text("".join(f"- [{text}]({name})\n" for name, (_, text) in TOPICS.items()))

    for name, (kind, text) in TOPICS.items():
        page = sh(f'cat "search/in:agents {text}.md"', cwd=mounted / "project").stdout
        first = page.partition("\n1. ")[2].partition("\n2. ")[0]
        assert f"/agents/claude-code/{name}>" in first, page
        assert f"{kind} · claude" in first
        assert "MEMORY.md" not in page
        found = sh(f'ls -d "search/type:{kind} {text}"/01-* | xargs -rd "\\n" cat', cwd=mounted / "project").stdout
        assert found == (folder / name).read_text()


def test_adopting_and_giving_back_is_identical_to_the_byte(mounted: Mount, tmp_path: Path) -> None:
    """Also the settings and the times of the files, and a file that another program would call broken."""
    project, home = tmp_path / "p", Path(mounted.environment["HOME"])
    project.mkdir()
    settings = project / ".claude/settings.local.json"
    settings.parent.mkdir()
    settings.write_bytes(b'{\r\n\t"env": {"A": "1"}\r\n}')
    own = home / ".claude/projects" / re.sub("[^a-zA-Z0-9]", "-", str(project)) / "memory"
    own.mkdir(parents=True)
    files = {
        "MEMORY.md": b"- a\n\n- b",
        "user_x.md": b"---\r\ntype: user\r\n---\r\n",
        "odd.bin": b"\0\xff",
        "no.md": b"",
    }
    for name, data in files.items():
        (own / name).write_bytes(data)
        os.utime(own / name, ns=(10**18, 10**18 + 123_456_789))
    before = settings.read_bytes(), seen(own)

    done = livememfs(mounted, "adopt", "claude-code", "project", "--mount", str(mounted.path), "--yes", cwd=project)
    folder = mounted / "project/agents/claude-code"
    assert f'"autoMemoryDirectory": "{folder}"' in done
    assert json.loads(settings.read_text()) == {"env": {"A": "1"}, "autoMemoryDirectory": str(folder)}
    assert seen(folder) == before[1]
    livememfs(mounted, "adopt", "--undo", "claude-code", "--yes", cwd=project)
    assert (settings.read_bytes(), seen(own)) == before

    livememfs(mounted, "adopt", "claude-code", "project", "--mount", str(mounted.path), "--yes", cwd=project)
    with (folder / "MEMORY.md").open("a") as file:
        file.write("\n- c\n")
    (folder / "no.md").unlink()
    livememfs(mounted, "adopt", "--undo", "claude-code", "--yes", cwd=project)
    assert (own / "MEMORY.md").read_bytes() == b"- a\n\n- b\n- c\n"
    assert not (own / "no.md").exists()


def seen(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of each file."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
