"""What the user did to the files between installing and uninstalling: their edits stay, and nothing else of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from projects import EVENTS, HOOKS, IMPORT, STRICT, Project, former

from livememfs.agents.install import record
from livememfs.agents.install.jsontext import scan
from livememfs.agents.install.tools import AGENTS, AgentName

Make = Callable[..., Project]
Edit = Callable[[str], str]

BASES = {
    "hooks": '{\n  "hooks": {\n    "EVENT": [\n      {"command": "others"}\n    ]\n  }\n}\n',
    "comments": '{\n  // mine\n  "a": 1, // one\n  "hooks": {\n    "Other": [], // that\n  },\n}\n',
    "carriage returns": '{\r\n\t"a": 1,\r\n\t"hooks": {}\r\n}\r\n',
    "no hooks": '{\n    "a": 1\n}',
}
ELSEWHERE: dict[str, Edit] = {
    "a member before": lambda text: text.replace("{", '{"new": [1, 2], ', 1),
    "a comment before": lambda text: "// new\n" + text,
    "lines behind": lambda text: text + "\n\n// new\n",
    "a changed value": lambda text: text.replace('"a": 1', '"a": "another"').replace("others", "another"),
}
SETTINGS = HOOKS[AgentName.CLAUDE_CODE]
READ = [
    (tool, base)
    for tool in (AgentName.CLAUDE_CODE, AgentName.CURSOR, AgentName.CODEX, AgentName.QWEN)
    for base in BASES
    if base != "comments" or tool not in STRICT
]
GOOSE, LINE = ".goosehints", b"@.goose/livememfs-context.md"


@pytest.mark.parametrize("edit", ELSEWHERE)
@pytest.mark.parametrize(("tool", "base"), READ)
def test_edits_elsewhere_stay_and_the_rest_is_as_before(project: Make, tool: AgentName, base: str, edit: str) -> None:
    text = BASES[base].replace("EVENT", EVENTS[tool][0])
    made = project({HOOKS[tool]: text.encode()})
    made.install(tool)

    made.write(HOOKS[tool], ELSEWHERE[edit](made.read(HOOKS[tool]).decode()).encode())
    plan = made.uninstall(tool)

    assert plan.left == ()
    assert made.read(HOOKS[tool]).decode() == ELSEWHERE[edit](text)


@pytest.mark.parametrize("tool", HOOKS)
def test_installing_again_after_edits_changes_nothing_and_leaves_cleanly(project: Make, tool: AgentName) -> None:
    text = BASES["comments" if tool not in STRICT else "no hooks"]
    edit = ELSEWHERE["a member before"]
    made = project({HOOKS[tool]: text.encode()})
    made.install(tool)
    made.write(HOOKS[tool], edit(made.read(HOOKS[tool]).decode()).encode())

    assert made.install(tool).changes == ()
    made.install(tool, "other")
    made.uninstall(tool)

    assert made.read(HOOKS[tool]).decode() == edit(text)


@pytest.mark.parametrize("tool", HOOKS)
@pytest.mark.parametrize("base", [None, "{}", "", BASES["hooks"], BASES["no hooks"]])
def test_a_file_written_anew_by_the_agent_itself_loses_ours_alone(
    project: Make, tool: AgentName, base: str | None
) -> None:
    """Agents keep permissions in the same file and write all of it when one is granted."""
    files = {} if base is None else {HOOKS[tool]: base.replace("EVENT", EVENTS[tool][0]).encode()}
    made = project(files)
    before = made.json(HOOKS[tool]) if base else {}
    made.install(tool)

    value = {"first": 1, **made.json(HOOKS[tool]), "permissions": {"allow": ["Bash(ls)"]}}
    made.write(HOOKS[tool], json.dumps(value, indent=3).encode())
    plan = made.uninstall(tool)

    after = json.loads(made.read(HOOKS[tool]))
    assert plan.left == ()
    assert after.pop("first") == 1
    assert after.pop("permissions") == {"allow": ["Bash(ls)"]}
    assert after.pop("version", 1) == 1
    assert after.pop("$version", 4) == 4
    assert {name: array for name, array in after.pop("hooks", {}).items() if array} == {
        name: array for name, array in before.pop("hooks", {}).items() if array
    }
    assert after == before


@pytest.mark.parametrize("tool", HOOKS)
@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        ('"b": 1,', "", {"b": 1}),
        ("", ',\n  "c": 2', {"c": 2}),
        ('"b": 1,', ',\n  "c": 2', {"b": 1, "c": 2}),
    ],
)
def test_members_around_ours_leave_no_comma_behind(
    project: Make, tool: AgentName, before: str, behind: str, expected: dict[str, int]
) -> None:
    """An empty object got our member alone; with theirs beside it, ours cannot be cut out as it was put in."""
    made = project({HOOKS[tool]: b"{}\n"})
    made.install(tool)
    text = made.read(HOOKS[tool]).decode()
    made.write(HOOKS[tool], ("{" + before + text[1:].removesuffix("\n}\n") + behind + "\n}\n").encode())

    assert made.uninstall(tool).left == ()

    versions = {AgentName.CURSOR: {"version": 1}, AgentName.COPILOT: {"version": 1}, AgentName.QWEN: {"$version": 4}}
    assert json.loads(made.read(HOOKS[tool])) in (expected, expected | versions.get(tool, {}))


def test_a_hook_added_to_one_of_ours_stays(made: Project) -> None:
    made.install(AgentName.CLAUDE_CODE)
    value = made.json(SETTINGS)
    value["hooks"]["PostToolUse"][0]["hooks"].append({"type": "command", "command": "mine"})
    value["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "mine"}]})
    made.write(SETTINGS, json.dumps(value).encode())

    assert made.uninstall(AgentName.CLAUDE_CODE).left == ()

    mine = {"type": "command", "command": "mine"}
    assert made.json(SETTINGS) == {
        "hooks": {"PostToolUse": [{"matcher": "*", "hooks": [mine]}], "Stop": [{"hooks": [mine]}]}
    }


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"timeout": 5', '"timeout": 60', 1),
        lambda text: text.replace('"matcher": "Read|', '"matcher": "Grep|'),
        lambda text: text.replace("exit 0 #", "exit 0; #", 1),
        lambda text: text.replace('"Stop"', '"Other"'),
    ],
)
def test_what_was_altered_stays_and_is_told_until_it_is_gone(made: Project, edit: Edit) -> None:
    made.install(AgentName.CLAUDE_CODE)
    text = made.read(SETTINGS).decode()
    assert edit(text) != text
    made.write(SETTINGS, edit(text).encode())

    for _ in range(2):  # the second time finds what the first one left
        left = made.uninstall(AgentName.CLAUDE_CODE).left
        assert [part.path for part in left] == [str(made.path / SETTINGS)]
        assert "a hook of livememfs that was changed since" in left[0].detail
    assert made.read(SETTINGS).count(b"# livememfs") == 1

    made.write(SETTINGS, b"{}\n")
    assert made.uninstall(AgentName.CLAUDE_CODE).left == ()
    assert made.everything() == {}


def test_an_altered_hook_is_told_when_installing_too(made: Project) -> None:
    made.install(AgentName.CODEX)
    made.write(HOOKS[AgentName.CODEX], re.sub(rb'"timeout": \d', b'"timeout": 60', made.read(HOOKS[AgentName.CODEX])))

    plan = made.install(AgentName.CODEX)

    assert [part.path for part in plan.left] == [str(made.path / HOOKS[AgentName.CODEX])]
    assert made.read(HOOKS[AgentName.CODEX]).count(b"# livememfs") == 2 * len(EVENTS[AgentName.CODEX])


@pytest.mark.parametrize("base", [b"# Project\n", b"# Project", b"# Project\r\n", None])
def test_text_written_around_our_line_stays(project: Make, base: bytes | None) -> None:
    tool, file, line = AgentName.GOOSE, GOOSE, LINE
    made = project({} if base is None else {file: base})
    made.install(tool)
    text = made.read(file)
    made.write(file, b"before\n" + text + b"\nbehind\n")

    assert made.uninstall(tool).left == ()

    kept = base or b""
    ending = b"\r\n" if base == b"# Project\r\n" else b"\n"
    assert made.read(file) == b"before\n" + kept + b"\nbehind\n"
    assert text == kept + (line + ending if kept.endswith(b"\n") or not kept else b"\n" + line)


def test_a_changed_line_of_an_earlier_version_stays(project: Make) -> None:
    changed = b"# Project\nSee " + IMPORT + b" for more.\n"
    made = project(former(AgentName.CLAUDE_CODE) | {"CLAUDE.md": changed})

    made.uninstall(AgentName.CLAUDE_CODE)

    assert made.read("CLAUDE.md") == changed


def test_what_the_user_removed_already_is_no_trouble(project: Make) -> None:
    made = project({GOOSE: b"# Project\n"})
    made.install(AgentName.GOOSE)
    made.write(GOOSE, b"# Project, mine\n")
    (made.path / ".goose/livememfs-context.md").unlink()
    made.install(AgentName.CLAUDE_CODE, mcp=True)
    (made.path / SETTINGS).unlink()
    made.write(".mcp.json", b"{}")

    assert made.uninstall(AgentName.GOOSE).left == made.uninstall(AgentName.CLAUDE_CODE).left == ()

    assert set(made.everything()) == {GOOSE}
    assert made.read(GOOSE) == b"# Project, mine\n"


@pytest.mark.parametrize(
    ("tool", "file", "change", "reason"),
    [
        (AgentName.CLAUDE_CODE, ".mcp.json", (b'"--space"', b'"-v", "--space"'), "was changed since"),
        (AgentName.CLAUDE_CODE, SETTINGS, (b'"hooks": {', b'"hooks": '), "not JSON"),
        (AgentName.CODEX, ".codex/config.toml", (b"args =", b"startup_timeout_sec = 20\nargs ="), "was changed since"),
        (AgentName.CODEX, ".codex/config.toml", (b'ect"]\n', b'ect"]\nenv = { A = "b" }\n'), "was changed since"),
    ],
)
def test_an_altered_server_or_a_broken_file_stays_whole_and_is_told(
    made: Project, tool: AgentName, file: str, change: tuple[bytes, bytes], reason: str
) -> None:
    made.install(tool, mcp=True)
    altered = made.read(file).replace(*change)
    assert altered != made.read(file)
    made.write(file, altered)

    [left] = made.uninstall(tool).left

    assert left.path == str(made.path / file)
    assert reason in left.detail
    assert made.read(file) == altered


def test_tables_behind_ours_stay_where_they_are(project: Make) -> None:
    made = project({".codex/config.toml": b'model = "x"\n'})
    made.install(AgentName.CODEX, mcp=True)
    made.write(".codex/config.toml", made.read(".codex/config.toml") + b"\n[tui]\na = 1\n")

    assert made.uninstall(AgentName.CODEX).left == ()

    assert made.read(".codex/config.toml") == b'model = "x"\n\n[tui]\na = 1\n'


@pytest.mark.parametrize("tool", HOOKS)
def test_files_of_others_in_directories_we_made_keep_these(made: Project, tool: AgentName) -> None:
    made.install(tool)
    directory = HOOKS[tool].partition("/")[0]
    made.write(f"{directory}/mine", b"x")

    made.uninstall(tool)

    assert set(made.everything()) == {directory, f"{directory}/mine"}


# --- without a record --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "base"), READ)
def test_without_a_record_ours_is_recognised(project: Make, tool: AgentName, base: str) -> None:
    text = BASES[base].replace("EVENT", EVENTS[tool][0])
    made = project({HOOKS[tool]: text.encode(), ".codex/config.toml": b"a = 1\n"})
    made.install(tool, mcp=bool(AGENTS[tool].servers.path))
    record.path_of(tool, made.path).unlink()

    assert made.uninstall(tool).left == ()

    value = made.json(HOOKS[tool])
    assert {**value, "hooks": value.get("hooks", {})} | {"version": 1} == {"hooks": {}} | json_of(text) | {"version": 1}
    assert made.read(".codex/config.toml") == b"a = 1\n"
    left = b"".join(data for name, (_, data) in made.everything().items() if not name.endswith(".mdc"))
    assert b"/opt/bin/livememfs" not in left


def json_of(text: str) -> dict[str, object]:
    """The value of one of the texts above."""
    value = scan(text).value
    assert isinstance(value, dict)
    return value


def test_without_a_record_what_was_altered_is_told(made: Project) -> None:
    made.install(AgentName.CLAUDE_CODE)
    record.path_of(AgentName.CLAUDE_CODE, made.path).unlink()
    made.write(SETTINGS, made.read(SETTINGS).replace(b'"timeout": 5', b'"timeout": 60', 1))

    left = made.uninstall(AgentName.CLAUDE_CODE).left

    assert [part.path for part in left] == [str(made.path / SETTINGS)]
