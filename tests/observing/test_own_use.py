"""Which use of a tool is of this memory alone, in part, or not at all: names of tools, paths, commands of a shell."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.observing.own_use import LONGEST, OwnUse

OWN = OwnUse("/home/me/memory", "/home/me", frozenset({"live_note"}))
PROJECT = "/home/me/p"

ALL = r"""
cat /home/me/memory/p/search/x.md
cat ~/memory/p/search/x.md
cat "$HOME/memory/p/search/which database.md" | head -20
cat ../memory/p/bank/a.md
grep -r x /home/me/memory/p/live
grep -rn -A 3 "a/b" ~/memory/p/live | sort | uniq -c
rg 'x y' /home/me/memory
ls -la /home/me/memory/p/
find ~/memory/p -name '*.md' | xargs grep -l x
cd /home/me/memory/p && cat search/x.md
cd ~/memory && ls && grep -r x p/live
for f in /home/me/memory/p/bank/*.md; do cat "$f"; done
if [ -e /home/me/memory/p ]; then cat /home/me/memory/p/context.md; fi
cat /home/me/memory/p/context.md 2>/dev/null || true
head -n 5 /home/me/memory/p/bank/a.md; echo ---; tail -3 ~/memory/p/bank/b.md
echo "$(cat /home/me/memory/p/context.md)"
echo $(cat /home/me/memory/p/context.md)
jq . < /home/me/memory/.livememfs/status.json
sed -n 1,5p /home/me/memory/p/bank/a.md
bash -lc 'cat /home/me/memory/p/context.md'
timeout 5 cat /home/me/memory/p/context.md
sleep 1; cat /home/me/memory/p/context.md
{ echo 'which database?' >&3; cat <&3; } 3<>/home/me/memory/p/.recall
echo "We chose Postgres" > ~/memory/p/live/decision.md
printf 'x' >> /home/me/memory/p/live/x.md
touch /home/me/memory/p/.consolidate
mkdir -p /home/me/memory/p/sessions/s1
livememfs search "which database"
livememfs recall p 'which database?' | head
""".strip().splitlines()
HEREDOCS = [
    "cat > /home/me/memory/p/live/x.md <<'EOF'\nWe chose Postgres; run npm test\nEOF\n",
    "cat <<EOF > /home/me/memory/p/live/x.md\nnpm test\nEOF",
]

PART = """
cat /home/me/memory/p/bank/a.md && npm test
cat README.md /home/me/memory/p/bank/a.md
diff a.md /home/me/memory/p/bank/a.md
cat /home/me/memory/p/bank/a.md | python -m json.tool
python -c "print(open('/home/me/memory/p/bank/a.md').read())"
cat "/home/me/memory/p/x
cp ~/memory/p/bank/a.md . ; cat ~/memory/p/bank/a.md
""".strip().splitlines()

NONE = """
npm test
cat README.md
grep -r memory src
ls
cat /home/me/memory-notes/a.md
cat /home/me/memorial
echo /home/me/p
cd /home/me/p && cat a.md
git commit -m 'memory'
npm test > ~/memory/p/live/result.md
cp a.md ~/memory/p/live/
pytest --ignore memory
cat 'unfinished
""".strip().splitlines()


@pytest.mark.parametrize("command", [*ALL, *HEREDOCS])
def test_a_command_that_only_looks_at_the_mount_or_writes_into_it_is_ours(command: str) -> None:
    assert OWN.of("Bash", {"command": command}, PROJECT) == "all"
    assert OWN.of("shell", {"command": ["bash", "-lc", command]}, PROJECT) == "all"


@pytest.mark.parametrize("command", PART)
def test_what_comes_out_of_a_command_that_does_both_may_be_ours(command: str) -> None:
    assert OWN.of("Bash", {"command": command}, PROJECT) == "part"


@pytest.mark.parametrize("command", NONE)
def test_any_other_command_is_none_of_ours(command: str) -> None:
    assert OWN.of("Bash", {"command": command}, PROJECT) == "none"


@pytest.mark.parametrize("command", ["ls", "cat search/x.md", "grep -r x live", "echo x > live/x.md"])
def test_in_the_mount_a_command_without_a_path_is_ours(command: str) -> None:
    assert OWN.of("Bash", {"command": command}, "/home/me/memory/p") == "all"
    assert OWN.of("Bash", {"command": command}, PROJECT) == "none"


@pytest.mark.parametrize(
    ("tool", "ours"),
    [
        ("mcp__livememfs__live_note", True),
        ("mcp__plugin_livememfs_livememfs__search_memory", True),
        ("mcp_livememfs_live_note", True),
        ("livememfs_live_note", True),
        ("livememfs__live_note", True),
        ("livememfs.live_note", True),
        ("livememfs-live_note", True),
        ("livememfs/live_note", True),
        ("MCP:live_note", True),
        ("MCP:list_issues", False),
        ("live_note", False),
        ("mcp__mylivememfsx__y", False),
        ("mcp__github__list_issues", False),
    ],
)
def test_our_tools_are_known_however_an_agent_spells_them(tool: str, ours: bool) -> None:
    assert OWN.of(tool, {"query": "x"}, PROJECT) == ("all" if ours else "none")


@pytest.mark.parametrize(
    ("tool", "given_", "use"),
    [
        ("Read", {"file_path": "/home/me/memory/p/bank/a.md"}, "all"),
        ("Read", {"file_path": "../memory/p/bank/a.md"}, "all"),
        ("read", {"filePath": "/home/me/memory/p/bank/a.md"}, "all"),
        ("read_file", {"absolute_path": "/home/me/memory/p/bank/a.md"}, "all"),
        ("read_files", {"files": [{"path": "/home/me/memory/a"}, {"path": "/home/me/memory/b"}]}, "all"),
        ("read_many_files", {"paths": ["/home/me/memory/a", "README.md"]}, "part"),
        ("read_many_files", {"include": ["/home/me/memory/**"]}, "all"),
        ("list_directory", {"dir_path": "/home/me/memory/p"}, "all"),
        ("Grep", {"pattern": "x", "path": "/home/me/memory/p/live"}, "all"),
        ("Grep", {"pattern": "/home/me/memory/x", "path": "src"}, "part"),
        ("Glob", {"pattern": "/home/me/memory/p/**/*.md"}, "all"),
        ("Write", {"file_path": "/home/me/memory/p/live/a.md", "content": "x"}, "all"),
        ("apply_patch", {"command": "*** Add File: /home/me/memory/p/live/a.md\n+x"}, "all"),
        ("apply_patch", {"command": "*** Update File: a.py\n+/home/me/memory"}, "none"),
        ("Read", {"file_path": "/home/me/memories/a.md"}, "none"),
        ("Read", {"file_path": "/home/me/memory/../p/a.md"}, "none"),
        ("Edit", {"file_path": "a.py", "new_string": "/home/me/memory/p"}, "none"),
        ("Task", {"prompt": "Look at /home/me/memory"}, "none"),
        ("Read", None, "none"),
    ],
)
def test_a_tool_is_ours_by_the_paths_it_was_given(tool: str, given_: Any, use: str) -> None:
    assert OWN.of(tool, given_, PROJECT) == use


@pytest.mark.parametrize(
    ("given_", "use"),
    [
        ({"commands": ["cat /home/me/memory/a", "cat /home/me/memory/b"]}, "all"),
        ({"commands": ["cat /home/me/memory/a", "npm test"]}, "part"),
        ({"commands": [{"command": "cat /home/me/memory/a"}, {"command": "npm test"}]}, "part"),
        ({"commands": [{"command": "npm test"}, {"why": "/home/me/memory"}]}, "none"),
        ({"cmd": ["cat", "/home/me/memory/a b"]}, "all"),
        ({"cmd": ["cat", "/home/me/memory/a; npm test"]}, "all"),  # one word, and no second command
        ({"cmd": ["bash", "-c", "cat /home/me/memory/a"]}, "all"),
        ({"cmd": ["bash", "-x", "cat /home/me/memory/a"]}, "part"),
        ({"command": 7}, "none"),
        ({}, "none"),
    ],
)
def test_a_command_is_known_as_lines_as_words_and_as_a_script(given_: Any, use: str) -> None:
    assert OWN.of("Bash", given_, PROJECT) == use


@pytest.mark.parametrize(("deep", "use"), [(0, "all"), (3, "all"), (4, "none")])
def test_a_path_is_looked_for_three_objects_deep(deep: int, use: str) -> None:
    value: Any = {"target_file": "/home/me/memory/a"}
    for _ in range(deep):
        value = {"more": [value]}

    assert OWN.of("Other", value, PROJECT) == use


def test_a_search_without_a_path_looks_where_the_agent_works() -> None:
    assert OWN.of("Grep", {"pattern": "x"}, "/home/me/memory/p") == "all"
    assert OWN.of("Grep", {"pattern": "x"}, PROJECT) == "none"


def test_without_a_mount_only_our_tools_are_ours() -> None:
    assert OwnUse().of("Bash", {"command": "cat /a"}, "/") == "none"
    assert OwnUse().of("mcp__livememfs__x", {}, "/") == "all"


def test_a_command_that_is_too_long_to_look_at_keeps_what_came_out_to_itself() -> None:
    assert OWN.of("Bash", {"command": "cat /home/me/memory/a " + "x" * LONGEST}, PROJECT) == "part"
    assert OWN.of("Bash", {"command": "x " * LONGEST}, PROJECT) == "none"


@given(st.text(alphabet="c at/home/me/memory/p;|&<>(){}$'\"\\\n#~`=-*", max_size=60))
def test_no_command_is_too_odd(command: str) -> None:
    assert OWN.of("Bash", {"command": f"cat /home/me/memory/{command}"}, PROJECT) in ("all", "part", "none")


def test_the_longest_command_is_looked_at_in_a_moment() -> None:
    began = time.thread_time()
    OWN.of("Bash", {"command": "cat /home/me/memory/a;" * (LONGEST // 22)}, PROJECT)
    OWN.of("Bash", {"command": "cat /home/me/memory/a" + "<<a\n" * (LONGEST // 5)}, PROJECT)
    assert time.thread_time() - began < 0.5
