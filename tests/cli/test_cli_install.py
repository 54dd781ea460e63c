"""`livememfs install` and `uninstall`: which mount and project are meant, what is shown, and who has to agree."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Cli

from livememfs.agents.install import record
from livememfs.cli.main import main
from livememfs.cli.mounting.mounts import MountRecord

Mounted = Callable[..., Path]
TOOLS = ("claude-code", "cursor", "codex")


def files(path: Path) -> dict[str, bytes]:
    """Every file of a directory."""
    inside = [file for file in path.rglob("*") if file.is_file() and ".git" not in file.parts]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in inside}


# --- what is done ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_the_one_mount_and_the_current_directory_are_meant(cli: Cli, mount: Path, there: Path, tool: str) -> None:
    (mount / "project" / "context.md").write_text("We chose Postgres.\n")

    ended = cli("install", tool, "--space", "project", "--yes")

    assert ended.code == 0
    assert f"{tool} uses space project of {mount} in {there}" in ended.err
    assert str(mount / "project").encode() in b"".join(files(there).values())
    assert (b"We chose Postgres." in b"".join(files(there).values())) == (tool == "cursor")
    ended = cli("uninstall", tool, "--yes")
    assert (ended.code, list(there.iterdir())) == (0, [])


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_shown_is_a_diff_that_can_be_applied(
    cli: Cli, mount: Path, there: Path, tool: str, tmp_path: Path
) -> None:
    (there / "CLAUDE.md").write_bytes(b"# Project")
    (there / "AGENTS.md").write_bytes(b"# Project\r\n")
    (tmp_path / "copy").mkdir()
    for name, data in files(there).items():
        (tmp_path / "copy" / name).write_bytes(data)

    shown = cli("install", tool, "--space", "project", "--dry-run").out
    assert cli("install", tool, "--space", "project", "--yes").out == shown

    subprocess.run(["git", "apply", "-"], input=shown.encode(), cwd=tmp_path / "copy", check=True)
    assert files(tmp_path / "copy") == files(there)


def test_users_of_codex_are_told_that_it_wants_hooks_to_be_trusted(cli: Cli, mount: Path, there: Path) -> None:
    printed = cli("install", "codex", "--space", "project", "--yes").err

    assert "/hooks" in printed
    assert "`codex exec` runs none" in printed
    assert "codex_hooks" not in printed


def test_installing_twice_says_that_nothing_is_to_be_changed(cli: Cli, mount: Path, there: Path) -> None:
    cli("install", "cursor", "--space", "project", "--yes")
    before = files(there)

    ended = cli("install", "cursor", "--space", "project")

    assert (ended.code, ended.out) == (0, "nothing needs to change\n")
    assert files(there) == before


def test_json_tells_files_and_diff(cli: Cli, mount: Path, there: Path) -> None:
    (there / ".mcp.json").write_text("{}\n")

    dry = cli("install", "claude-code", "--space", "project", "--mcp", "--dry-run", "--json").json
    done = cli("install", "claude-code", "--space", "project", "--mcp", "--yes", "--json").json

    assert dry == {**done, "done": False}
    assert (done["tool"], done["mount"], done["project"]) == ("claude-code", str(mount), str(there))
    assert done["files"] == [
        {"path": ".claude/settings.local.json", "action": "create"},
        {"path": ".mcp.json", "action": "change"},
    ]
    assert done["diff"].count("\n--- ") == 1
    removed = cli("uninstall", "claude-code", "--yes", "--json").json
    assert [change["action"] for change in removed["files"]] == ["remove", "change"]


# --- who agrees --------------------------------------------------------------------------------------------------


def test_without_a_terminal_nothing_is_done_unless_told(cli: Cli, mount: Path, there: Path) -> None:
    ended = cli("install", "claude-code", "--space", "project", "--mcp")

    ended.fails("2 files would change; pass --yes", code=2)
    assert "+++ b/.mcp.json" in ended.out
    assert list(there.iterdir()) == []
    assert not record.folder().exists()
    cli("install", "claude-code", "--space", "project", "--yes")
    assert cli("uninstall", "claude-code").code == 2
    assert (there / ".claude/settings.local.json").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("Yes\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_at_a_terminal_the_user_is_asked(
    mount: Path, there: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))

    with pytest.raises(SystemExit) as caught:
        main(["install", "codex", "--space", "project"])

    assert int(caught.value.code or 0) == code
    assert (there / ".codex/hooks.json").exists() == (code == 0)


# --- which mount -------------------------------------------------------------------------------------------------


def test_with_no_mount_or_several_one_has_to_be_named(cli: Cli, mounted: Mounted, there: Path) -> None:
    ended = cli("install", "codex", "--space", "project", "--yes")
    assert (ended.code, "nothing is mounted" in ended.err, "--mount" in ended.err) == (2, True, True)
    first, second = mounted("one", "project"), mounted("two", "project")

    cli("install", "codex", "--space", "project", "--yes").fails(f"{first}, {second}", code=2)
    assert list(there.iterdir()) == []


def test_a_mount_whose_daemon_died_is_not_the_one(cli: Cli, mounted: Mounted, there: Path) -> None:
    dead, live = mounted("dead", "project"), mounted("live", "project")
    MountRecord(mountpoint=str(dead), pid=1, started=-1, since="", store="").write()

    ended = cli("install", "codex", "--space", "project", "--yes")

    assert ended.code == 0
    assert str(live) in (there / ".codex/hooks.json").read_text()


def test_a_mount_that_is_not_there_yet_is_warned_about(cli: Cli, mounted: Mounted, there: Path, tmp_path: Path) -> None:
    ended = cli("install", "codex", "--space", "project", "--mount", "../later", "--yes")

    assert ended.code == 0
    assert f"nothing is mounted on {tmp_path / 'later'} now" in ended.err
    assert f"{tmp_path / 'later'}/project/.hooks/codex.Stop" in (there / ".codex/hooks.json").read_text()


def test_a_space_that_the_mount_does_not_have_is_refused(cli: Cli, mount: Path, there: Path) -> None:
    (mount / "folder").mkdir()
    for space in ("other", "folder"):
        cli("install", "codex", "--space", space, "--yes").fails(f"there is no space {space} on {mount}")
    assert cli("install", "codex", "--space", "../x", "--yes").code == 1
    assert list(there.iterdir()) == []


# --- which project -----------------------------------------------------------------------------------------------


def test_another_project_can_be_named(cli: Cli, mount: Path, there: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()

    cli("install", "codex", "--space", "project", "--project", "../elsewhere", "--yes")

    assert set(files(tmp_path / "elsewhere")) == {".codex/hooks.json"}
    assert list(there.iterdir()) == []
    assert cli("install", "codex", "--space", "project", "--project", "../nowhere", "--yes").code == 2


@pytest.mark.parametrize("words", [("install", "codex", "--space", "project"), ("uninstall", "codex")])
def test_the_home_directory_is_no_project(
    cli: Cli, mount: Path, there: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOME", str(there))

    cli(*words, "--yes").fails("is the home directory", code=2)
    assert list(there.iterdir()) == []


# --- options -----------------------------------------------------------------------------------------------------


def test_only_agents_there_are_hooks_for_are_taken(cli: Cli, mount: Path, there: Path) -> None:
    assert cli("install", "emacs", "--space", "project", "--yes").code == 2
    assert cli("install", "cursor", "--space", "project", "--shared", "--yes").code == 2
    assert list(there.iterdir()) == []


def test_shared_hooks_go_where_others_see_them(cli: Cli, mount: Path, there: Path) -> None:
    cli("install", "claude-code", "--space", "project", "--shared", "--yes")

    assert set(files(there)) == {".claude/settings.json"}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_server_is_installed_when_it_is_wanted(cli: Cli, mount: Path, there: Path, tool: str) -> None:
    assert cli("install", tool, "--space", "project", "--mcp", "--yes").code == 0

    place = {"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}[tool]
    assert place in files(there)
    cli("uninstall", tool, "--yes")
    assert list(there.iterdir()) == []


# --- what stays --------------------------------------------------------------------------------------------------


def test_what_was_altered_is_named_and_exits_1(cli: Cli, mount: Path, there: Path) -> None:
    cli("install", "codex", "--space", "project", "--yes")
    hooks = there / ".codex" / "hooks.json"
    hooks.write_text(hooks.read_text().replace('"timeout": 5', '"timeout": 60', 1))

    cli("uninstall", "codex", "--yes").fails(f"{hooks}: a hook of livememfs that was changed since")
    assert hooks.read_text().count("# livememfs") == 1


def test_a_refusal_is_one_sentence_and_changes_nothing(cli: Cli, mount: Path, there: Path) -> None:
    (there / ".codex").mkdir()
    (there / ".codex" / "hooks.json").write_text("{")

    ended = cli("install", "codex", "--space", "project", "--yes")

    assert (ended.code, ended.out) == (1, "")
    assert f"{there}/.codex/hooks.json cannot be changed, and nothing was: it is not JSON, line 1" in ended.err
    assert set(files(there)) == {".codex/hooks.json"}


# --- without a name, and for all projects ------------------------------------------------------------------------


def test_without_a_name_the_space_is_that_of_the_project(cli: Cli, mounted: Mounted, there: Path) -> None:
    mount = mounted("mnt", "there", "other")
    assert "name a space with --space" in cli("install", "codex", "--yes").err
    (there / ".git").mkdir()
    (there / ".git/HEAD").write_text("ref: refs/heads/main\n")

    assert f"codex uses space there of {mount} in {there}" in cli("install", "codex", "--yes").err
    (there / ".livememfs.toml").write_text('space = "other"\n')
    assert f"codex uses space other of {mount} in {there}" in cli("install", "codex", "--yes").err
    (there / ".livememfs.toml").write_text("space = 3\n")
    assert "cannot be used" in cli("install", "codex", "--yes").err


def test_for_all_projects_the_users_own_settings_are_written(
    cli: Cli, mounted: Mounted, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = mounted("mnt")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".claude.json").write_text('{"numStartups": 3}')
    monkeypatch.setenv("HOME", str(home))

    ended = cli("install", "claude-code", "--user", "--mcp", "--yes")

    assert ended.code == 0
    assert f"claude-code uses a space of {mount} for each project" in ended.err
    assert set(files(home)) == {".claude/settings.json", ".claude.json"}
    assert f"f='{mount}/.livememfs/hooks/claude.Stop';" in (home / ".claude/settings.json").read_text()
    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["livememfs"]
    assert server["args"] == ["mcp", "--mount", str(mount)]
    assert Path(server["command"]).is_absolute()
    assert cli("install", "claude-code", "--user", "--space", "x", "--yes").code == 2
    (mount / "there").mkdir()
    (mount / "there" / "_meta.json").write_text("{}")
    again = cli("install", "claude-code", "--space", "there", "--yes")
    again.fails("is installed for all projects already", code=2)
    assert cli("install", "codex", "--space", "there", "--yes").code == 0
    assert f"{there} has codex's hooks too" in cli("install", "codex", "--user", "--dry-run").err
    assert cli("uninstall", "codex", "--yes").code == 0
    assert cli("uninstall", "claude-code", "--user", "--yes").code == 0
    assert files(home) == {".claude.json": b'{"numStartups": 3}'}
    assert list(there.iterdir()) == []


def test_what_an_agent_has_no_place_for_is_refused(
    cli: Cli, mount: Path, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    in_one = cli("install", "goose", "--space", "project", "--mcp", "--yes")
    in_all = cli("install", "goose", "--user", "--yes")

    in_one.fails("livememfs install goose --user --mcp", code=2)
    in_all.fails("add --mcp", code=2)
    assert list(there.iterdir()) == []
