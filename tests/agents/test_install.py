"""Installing into projects of all kinds: what was announced is what changed, and uninstalling gives every byte back.

Each project is a git repository, and git is the judge of what changed.
"""

from __future__ import annotations

import errno
import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projects import EVENTS, HOOKS, MOUNT, STRICT, Project, former

from livememfs.agents.install import record
from livememfs.agents.install.jsontext import is_strict, scan
from livememfs.agents.install.table import CURSOR_HEAD
from livememfs.agents.install.tools import AGENTS, AgentName
from livememfs.errors import CannotInstall

Make = Callable[..., Project]

RULE = ".cursor/rules/livememfs-context.mdc"
FLAT = '{"command": "others"}'
NESTED = '{"matcher": "Bash", "hooks": [{"type": "command", "command": "others"}]}'

TEXTS = {
    "others' hooks": '{\n  "model": "x",\n  "hooks": {\n    "EVENT": [\n      ENTRY\n    ]\n  },\n  "z": [1, 2]\n}\n',
    "others' hooks for another event": '{\n  "hooks": {\n    "Other": [ENTRY]\n  }\n}\n',
    "two entries of others": '{\n  "hooks": {\n    "EVENT": [\n      ENTRY,\n      ENTRY\n    ],\n  "LAST": []}\n}',
    "comments": '// top\n{\n  "a": 1, // one\n  /* h */ "hooks": {\n    "EVENT": [\n      ENTRY // x\n    ]}\n}\n',
    "trailing commas": '{\n  "hooks": {\n    "EVENT": [\n      ENTRY,\n    ],\n  },\n}\n',
    "a comment behind a trailing comma": '{\n  "a": 1, // one\n  // "b": 2\n}\n',
    "carriage returns": '{\r\n    "hooks": {\r\n        "EVENT": [\r\n            ENTRY\r\n        ]\r\n    }\r\n}\r\n',
    "tabs": '{\n\t"hooks": {\n\t\t"EVENT": [\n\t\t\tENTRY\n\t\t]\n\t}\n}\n',
    "a byte order mark": '\ufeff{\n  "a": 1\n}\n',
    "only a byte order mark": "\ufeff",
    "nothing": "",
    "a blank line": "\n",
    "an empty object": "{}",
    "an empty object on two lines": "{\n}\n",
    "only a comment": "{\n  // nothing yet\n}\n",
    "empty hooks": '{"hooks": {}}\n',
    "an empty array": '{"hooks": {"EVENT": []}}\n',
    "one line": '{"a": {"b": [1, {}]}, "hooks": {"EVENT": [ENTRY], "LAST": [ENTRY]}}',
    "no final newline": '{\n  "a": 1\n}',
    "a version": '{\n  "version": 1\n}\n',
    "accents": '{\n  "é": "\\u00e9 \\" \\\\"\n}\n',
}
FLAT_TOOLS = {AgentName.CURSOR, AgentName.COPILOT, AgentName.WINDSURF}
READ = [
    pytest.param(tool, name, id=f"{tool}-{name}")
    for tool in (AgentName.CLAUDE_CODE, AgentName.CURSOR, AgentName.GEMINI)
    for name, text in TEXTS.items()
    if tool not in STRICT or not text.strip("\ufeff\n") or is_strict(text.replace("ENTRY", "0"))
]
"""An agent with strict JSON, one with flat hooks, one with servers in the same file: each with texts that it reads."""
MARKDOWN = {
    "a text": b"# Project\n\nBe kind.\n",
    "no final newline": b"# Project\n\nBe kind.",
    "carriage returns": b"# Project\r\n\r\nBe kind.\r\n",
    "carriage returns, no final one": b"# Project\r\nBe kind.",
    "nothing": b"",
    "blank lines": b"\n\n",
    "a byte order mark": b"\xef\xbb\xbf# Project\n",
    "not UTF-8": b"caf\xe9\n",
    "a form feed": b"one\x0ctwo\x0b\n",
}


def text_for(tool: AgentName, name: str) -> bytes:
    """A file of hooks as that agent would have it."""
    entry = FLAT if tool in FLAT_TOOLS else NESTED
    events = EVENTS[tool]
    return TEXTS[name].replace("ENTRY", entry).replace("EVENT", events[1]).replace("LAST", events[-1]).encode()


def commands(value: Any) -> dict[str, list[str]]:
    """Every command of a file's hooks, by event."""
    return {
        event: [hook.get("command") or hook["bash"] for entry in entries for hook in entry.get("hooks", [entry])]
        for event, entries in value.get("hooks", {}).items()
    }


def goes_in_and_out(project: Project, tool: AgentName, tmp_path: Path, **more: Any) -> None:
    """The one property of all projects: announced, installed, installed again, uninstalled, as before."""
    before = project.everything()
    plan = project.install(tool, **more)
    installed = project.everything()

    assert project.status() == {plan.name(change) for change in plan.changes}
    assert patched(project, plan.diff().encode(), before, tmp_path) == installed
    assert project.planned(tool, **more).changes == ()
    assert project.planned(tool, **more).filed is None

    project.install(tool, **more)
    assert project.everything() == installed
    removal = project.uninstall(tool)
    assert project.everything() == before
    assert removal.left == ()
    assert list(record.folder().glob("*")) == []


def patched(project: Project, diff: bytes, before: dict[str, tuple[int, bytes]], tmp_path: Path) -> dict[str, Any]:
    """What the project would be if git had applied the announced diff to what was committed."""
    other = tmp_path / "patched"
    project.git("worktree", "add", "-q", "--detach", str(other), "HEAD")
    copy = Project(other)
    try:
        for name, (_, data) in before.items():
            if not (other / name).exists():  # an empty directory, which git does not know
                (other / name).mkdir(parents=True)
            elif not (other / name).is_symlink() and (other / name).is_file():
                assert copy.read(name) == data
        copy.git("apply", "--whitespace=nowarn", "-", stdin=diff)
        return {name: value for name, value in copy.everything().items() if name != ".git"}
    finally:
        project.git("worktree", "remove", "--force", str(other))


# --- hooks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "name"), READ)
def test_any_file_of_hooks_is_as_before_in_the_end(project: Make, tmp_path: Path, tool: AgentName, name: str) -> None:
    goes_in_and_out(project({HOOKS[tool]: text_for(tool, name)}), tool, tmp_path)


@pytest.mark.parametrize("tool", AgentName)
def test_a_project_without_any_file_is_empty_in_the_end(project: Make, tmp_path: Path, tool: AgentName) -> None:
    goes_in_and_out(project(), tool, tmp_path)


@pytest.mark.parametrize(("tool", "name"), READ)
def test_hooks_of_others_stay_before_ours(project: Make, tool: AgentName, name: str) -> None:
    made = project({HOOKS[tool]: text_for(tool, name)})
    before = made.json(HOOKS[tool]) if text_for(tool, name).strip(b"\n\xef\xbb\xbf") else {}

    made.install(tool)

    after = made.json(HOOKS[tool])
    assert {key: value for key, value in after.items() if key not in ("hooks", "version")} == {
        key: value for key, value in before.items() if key not in ("hooks", "version")
    }
    for event, present in commands(after).items():
        ours = [command for command in present if "# livememfs" in command]
        assert present == [*commands(before).get(event, []), *ours]
        assert len(ours) == (event in EVENTS[tool])
        assert all(f"f='/mnt/mem/project/.hooks/{tool.short}.{event}';" in command for command in ours)
    assert set(EVENTS[tool]) <= set(commands(after))


@pytest.mark.parametrize("tool", HOOKS)
def test_a_file_we_make_is_strict_json_in_the_agents_form(made: Project, tool: AgentName) -> None:
    made.install(tool)

    value = json.loads(made.read(HOOKS[tool]))
    last = value["hooks"][EVENTS[tool][-1]]
    assert value.get("version") == (1 if tool in (AgentName.CURSOR, AgentName.COPILOT) else None)
    assert value.get("$version") == (4 if tool is AgentName.QWEN else None)
    if tool not in FLAT_TOOLS:
        seconds = {AgentName.GEMINI: 5_000, AgentName.QWEN: 5_000, AgentName.CODEX: 3}.get(tool, 5)
        assert [(hook["type"], hook["timeout"]) for hook in last[0]["hooks"]] == [("command", seconds)]
    assert made.read(HOOKS[tool]).decode() == json.dumps(value, indent=2) + "\n"


def test_claude_code_is_asked_for_files_and_all_uses_of_tools_and_waits_for_no_report(made: Project) -> None:
    made.install(AgentName.CLAUDE_CODE)

    hooks = made.json(HOOKS[AgentName.CLAUDE_CODE])["hooks"]
    matchers = {event: entries[0].get("matcher") for event, entries in hooks.items()}
    assert {event: matcher for event, matcher in matchers.items() if matcher} == {
        "PreToolUse": "Read|Edit|Write|MultiEdit",
        "PostToolUse": "*",
        "PostToolUseFailure": "*",
    }
    aside = {event for event, entries in hooks.items() if entries[0]["hooks"][0].get("async")}
    assert aside == {"PostToolUse", "PostToolUseFailure"}


@pytest.mark.parametrize("tool", sorted(STRICT & set(HOOKS)))
def test_a_file_with_comments_is_refused_where_the_agent_would_read_none_of_it(project: Make, tool: AgentName) -> None:
    """Seen with Claude Code: a comment in its settings, and no hook runs, also none of others'."""
    made = project({HOOKS[tool]: text_for(tool, "comments")})
    before = made.everything()

    with pytest.raises(CannotInstall, match="ignores a file with comments"):
        made.install(tool)

    assert made.everything() == before
    made.write(HOOKS[tool], b"{}")
    made.install(tool)
    made.write(HOOKS[tool], b"// mine\n" + made.read(HOOKS[tool]))
    with pytest.raises(CannotInstall, match="comments"):
        made.install(tool)
    made.uninstall(tool)
    assert made.read(HOOKS[tool]).startswith(b"// mine\n{")
    assert b"# livememfs" not in made.read(HOOKS[tool])


@pytest.mark.parametrize("name", ["others' hooks", "nothing", "one line"])
def test_shared_hooks_go_into_the_settings_that_are_committed(project: Make, tmp_path: Path, name: str) -> None:
    made = project({".claude/settings.json": text_for(AgentName.CLAUDE_CODE, name)})

    goes_in_and_out(made, AgentName.CLAUDE_CODE, tmp_path, shared=True)
    made.install(AgentName.CLAUDE_CODE, shared=True)

    assert not (made.path / HOOKS[AgentName.CLAUDE_CODE]).exists()
    assert b"# livememfs" in made.read(".claude/settings.json")


def test_a_path_of_any_characters_comes_through_shell_and_json(made: Project, tmp_path: Path) -> None:
    mount = tmp_path / 'it\'s a "mount" é\\'

    made.planned(AgentName.CLAUDE_CODE, mount=mount).carry_out()

    command = made.json(HOOKS[AgentName.CLAUDE_CODE])["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert command.startswith("f='" + str(mount).replace("'", "'\\''") + "/project/.hooks/claude.Stop';")
    assert not (made.path / "CLAUDE.md").exists()
    made.uninstall(AgentName.CLAUDE_CODE)
    assert made.everything() == {}


# --- lines and rules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MARKDOWN)
def test_one_line_is_added_at_the_end_in_the_manner_of_the_file(project: Make, tmp_path: Path, name: str) -> None:
    tool, file, line = AgentName.GOOSE, ".goosehints", b"@.goose/livememfs-context.md"
    text = MARKDOWN[name]
    made = project({file: text})

    if b"\xe9" in text:  # an announced diff is text, and shows such bytes as a question
        before = made.everything()
        made.install(tool)
        assert made.read(file) == text + line + b"\n"
        made.uninstall(tool)
        assert made.everything() == before
        return
    goes_in_and_out(made, tool, tmp_path)
    made.install(tool)

    newline = b"\r\n" if b"\r\n" in text else b"\n"
    ended = not text or text.endswith(b"\n")
    assert made.read(file) == text + (line + newline if ended else newline + line)


def test_a_link_inside_the_project_stays_and_its_target_gets_the_line(project: Make, tmp_path: Path) -> None:
    made = project({"HINTS.md": b"# Project\n"}, links={".goosehints": "HINTS.md"})

    goes_in_and_out(made, AgentName.GOOSE, tmp_path)
    made.install(AgentName.GOOSE)

    assert (made.path / ".goosehints").is_symlink()
    assert made.read("HINTS.md") == b"# Project\n@.goose/livememfs-context.md\n"


@pytest.mark.parametrize("tool", [AgentName.CLAUDE_CODE, AgentName.CODEX])
@pytest.mark.parametrize("again", [True, False])
def test_what_an_earlier_version_wrote_is_taken_out(project: Make, tool: AgentName, again: bool) -> None:
    """What is known came twice: by the line and by the hook."""
    made = project(former(tool))

    if again:
        made.install(tool)
    text = made.read(HOOKS[tool])
    assert made.uninstall(tool).left == ()

    assert (b"timeout 2 cat" in text, b"cat >&3" in text) == (again, not again)
    assert {made.read(name) for name in ("CLAUDE.md", "AGENTS.md") if (made.path / name).exists()} == {b"# Project\n"}
    assert made.json(HOOKS[tool]) == {"a": 1}


@pytest.mark.parametrize("tool", AgentName)
def test_what_is_known_comes_by_one_channel(made: Project, tool: AgentName) -> None:
    made.install(tool, context="known")

    hooks, texts = AGENTS[tool].hooks, b"".join(data for _, data in made.everything().values()).decode()
    begins = [name for name, event in hooks.events.items() if event.starts] if hooks is not None else ["SessionStart"]
    assert any(f".hooks/{tool.short}.{name}'" in texts for name in begins) + ("known" in texts) == 1
    assert "/context.md" not in texts


def test_two_names_of_one_file_are_one_file(project: Make) -> None:
    """What goes in by one name is not taken out again by the other."""
    text = text_for(AgentName.CLAUDE_CODE, "others' hooks")
    made = project({".claude/settings.json": text}, links={HOOKS[AgentName.CLAUDE_CODE]: "settings.json"})
    before = made.everything()

    made.install(AgentName.CLAUDE_CODE)

    assert commands(made.json(".claude/settings.json")).keys() == set(EVENTS[AgentName.CLAUDE_CODE])
    made.uninstall(AgentName.CLAUDE_CODE)
    assert made.everything() == before


def test_the_rule_of_cursor_holds_what_the_space_says(project: Make, tmp_path: Path) -> None:
    made = project({".cursor/rules/mine.mdc": b"mine"})
    goes_in_and_out(made, AgentName.CURSOR, tmp_path, context="We chose Postgres.\n")

    made.install(AgentName.CURSOR, context="We chose Postgres.\n")
    rule = made.read(RULE).decode()

    assert rule == CURSOR_HEAD + "We chose Postgres.\n"
    _, head, body = rule.split("---\n")
    assert "alwaysApply: true\n" in head
    assert body == "We chose Postgres.\n"


def test_a_rule_says_that_nothing_is_known_while_it_cannot_be_read(made: Project) -> None:
    made.install(AgentName.CURSOR)
    assert "Nothing yet" in made.read(RULE).decode()
    made.install(AgentName.CURSOR, context="known\n")
    made.install(AgentName.CURSOR)

    assert made.read(RULE).decode() == CURSOR_HEAD + "known\n"


# --- MCP servers -------------------------------------------------------------------------------------------------

MCP_TEXTS = {
    "other servers": b'{\n    "mcpServers": {\n        "other": {"command": "x", "args": []}\n    }\n}\n',
    "no servers": b'{\n  "inputs": []\n}\n',
    "comments": b'{\n  // mine\n  "mcpServers": {\n    "other": {}, // that\n  },\n}',
    "nothing": b"",
}
TOML_TEXTS = {
    "a table": b'model = "x"\n\n[features]\ncodex_hooks = true\n',
    "no final newline": b'model = "x"',
    "other servers": b'[mcp_servers.other]\ncommand = "x"\n',
    "carriage returns": b'model = "x"\r\n',
    "nothing": b"",
}


OURS = {"command": "/opt/bin/livememfs", "args": ["mcp", "--space", "/mnt/mem/project"]}


@pytest.mark.parametrize(
    ("tool", "file"), [(AgentName.CLAUDE_CODE, ".mcp.json"), (AgentName.GEMINI, ".gemini/settings.json")]
)
@pytest.mark.parametrize("name", [*MCP_TEXTS, None])
def test_our_mcp_server_stands_beside_others(
    project: Make, tmp_path: Path, tool: AgentName, file: str, name: str | None
) -> None:
    if name == "comments" and tool in STRICT:
        return
    made = project({file: MCP_TEXTS[name]} if name is not None else {})
    others = (made.json(file) if name not in (None, "nothing") else {}).get("mcpServers", {})

    goes_in_and_out(made, tool, tmp_path, mcp=True)
    made.install(tool, mcp=True)

    assert made.json(file)["mcpServers"] == {**others, "livememfs": OURS}


@pytest.mark.parametrize("name", [*TOML_TEXTS, None])
def test_our_mcp_server_is_a_table_for_codex(project: Make, tmp_path: Path, name: str | None) -> None:
    file = ".codex/config.toml"
    before = TOML_TEXTS[name] if name is not None else b""
    made = project({file: before} if name is not None else {})

    goes_in_and_out(made, AgentName.CODEX, tmp_path, mcp=True)
    made.install(AgentName.CODEX, mcp=True)

    after, was = tomllib.loads(made.read(file).decode()), tomllib.loads(before.decode())
    assert after.pop("mcp_servers") == {**was.pop("mcp_servers", {}), "livememfs": OURS}
    assert after == was


# --- again -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tool", [AgentName.CLAUDE_CODE, AgentName.CURSOR, AgentName.CODEX, AgentName.GEMINI, AgentName.QWEN]
)
@pytest.mark.parametrize("name", ["others' hooks", "nothing", "an empty array"])
def test_another_space_replaces_the_one_before(project: Make, tool: AgentName, name: str) -> None:
    made = project({HOOKS[tool]: text_for(tool, name), "CLAUDE.md": b"mine", "AGENTS.md": b"mine\n"})
    before = made.everything()

    made.install(tool, mcp=True, context="old")
    made.install(tool, "other", context="new")

    after = made.everything()
    texts = b"".join(data for _, data in after.values())
    assert b"/mnt/mem/project" not in texts
    assert b"/mnt/mem/other" in texts
    assert not {".mcp.json", ".cursor/mcp.json", ".codex/config.toml"} & set(after)
    made.uninstall(tool)
    assert made.everything() == before


def test_moving_between_personal_and_shared_settings_leaves_one_set(project: Make) -> None:
    made = project({".claude/settings.json": text_for(AgentName.CLAUDE_CODE, "others' hooks")})
    before = made.everything()

    made.install(AgentName.CLAUDE_CODE, shared=True)
    made.install(AgentName.CLAUDE_CODE)

    assert made.read(".claude/settings.json") == text_for(AgentName.CLAUDE_CODE, "others' hooks")
    assert commands(made.json(HOOKS[AgentName.CLAUDE_CODE])).keys() == set(EVENTS[AgentName.CLAUDE_CODE])
    made.uninstall(AgentName.CLAUDE_CODE)
    assert made.everything() == before


def test_uninstalling_what_is_not_installed_changes_nothing(project: Make) -> None:
    made = project({"CLAUDE.md": b"@/somewhere/else/context.md\n", ".claude/settings.json": b"no json"})
    for tool in AgentName:
        plan = made.uninstall(tool)

        assert (plan.changes, plan.filed, plan.left) == ((), None, ())


# --- records -----------------------------------------------------------------------------------------------------


def test_records_are_private_and_hold_nothing_of_others(project: Make) -> None:
    made = project({HOOKS[AgentName.CLAUDE_CODE]: b'{"env": {"KEY": "secret"}}', "CLAUDE.md": b"secret\n"})

    made.install(AgentName.CLAUDE_CODE)

    path = record.path_of(AgentName.CLAUDE_CODE, made.path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"secret" not in path.read_bytes()


def test_the_daemon_finds_the_rules_of_its_mount(made: Project) -> None:
    made.install(AgentName.CURSOR)
    made.install(AgentName.CLAUDE_CODE)

    assert record.context_files(MOUNT) == [record.ContextFile(made.path, "project", RULE, CURSOR_HEAD)]
    assert record.context_files(Path("/mnt/other")) == []
    (made.path / RULE).unlink()
    assert record.context_files(MOUNT) == []


def test_a_rule_whose_disk_does_not_answer_hides_no_other(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    made.install(AgentName.CURSOR)

    def lost(_: Path) -> bool:
        raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    monkeypatch.setattr(Path, "is_file", lost)

    assert record.context_files(MOUNT) == [record.ContextFile(made.path, "project", RULE, CURSOR_HEAD)]


def test_a_rule_that_was_refreshed_goes_all_the_same(made: Project) -> None:
    made.install(AgentName.CURSOR)
    made.write(RULE, (CURSOR_HEAD + "newer").encode())

    assert made.uninstall(AgentName.CURSOR).left == ()

    assert made.everything() == {}
    assert record.context_files(MOUNT) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"files": [{}], "directories": []}', b"\xff", b'{"files": 3}'])
def test_a_record_that_is_none_is_passed_over(project: Make, data: bytes) -> None:
    """What is ours is then recognised by what it says."""
    made = project({"CLAUDE.md": b"# Project\n"})
    made.install(AgentName.CLAUDE_CODE)
    record.path_of(AgentName.CLAUDE_CODE, made.path).write_bytes(data)

    assert record.context_files(MOUNT) == []
    made.uninstall(AgentName.CLAUDE_CODE)

    assert scan(made.read(HOOKS[AgentName.CLAUDE_CODE]).decode()).value == {}
