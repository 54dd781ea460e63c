"""What is refused, and that a refusal or a failure leaves every byte, mode and directory as it was."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import EVENTS, HOOKS, Project

from livememfs.agents.install import record
from livememfs.agents.install.tools import AgentName
from livememfs.errors import CannotInstall, UsageError

Make = Callable[..., Project]
SETTINGS = HOOKS[AgentName.CLAUDE_CODE]


def refused(project: Project, tool: AgentName, match: str, **more: object) -> None:
    """Installing fails with a sentence, and nothing is changed by it."""
    before = project.everything()
    with pytest.raises(CannotInstall, match=match):
        project.install(tool, **more)

    assert project.everything() == before
    assert not list(record.folder().glob("*"))


@pytest.mark.parametrize("tool", HOOKS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"hello", "not JSON, line 1"),
        (b'{\n"hooks": {\n', "not JSON, line 3"),
        (b'{"a": 1} {"b": 2}', "more than one value"),
        (b"[]", "not an object"),
        (b'{"hooks": []}', '"hooks" is not an object'),
        (b'{"hooks": null}', '"hooks" is not an object'),
        (b'{"hooks": {"EVENT": {}}}', "not an array"),
        (b'{"a": "\xe9"}', "not JSON"),
        (b"\xff\xfe{\0}\0", "not JSON"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(project: Make, tool: AgentName, text: bytes, reason: str) -> None:
    text = text.replace(b"EVENT", EVENTS[tool][-1].encode())
    refused(project({HOOKS[tool]: text}), tool, reason)


@pytest.mark.parametrize(
    ("tool", "file", "text", "reason"),
    [
        (
            AgentName.CLAUDE_CODE,
            ".mcp.json",
            b'{"mcpServers": {"livememfs": {"command": "mine"}}}',
            "not written by this",
        ),
        (AgentName.CLAUDE_CODE, ".mcp.json", b'{"mcpServers": []}', "not an object"),
        (AgentName.CURSOR, ".cursor/mcp.json", b"{", "not JSON"),
        (AgentName.CURSOR, ".cursor/rules/livememfs-context.mdc", b"mine", "not written by this"),
        (AgentName.CODEX, ".codex/config.toml", b"[mcp_servers.livememfs]\nurl = 'x'\n", "not written by this"),
        (AgentName.CODEX, ".codex/config.toml", b"mcp_servers = { other = { command = 'x' } }\n", "in one line"),
        (AgentName.CODEX, ".codex/config.toml", b"mcp_servers = 3\n", "not a table"),
        (AgentName.CODEX, ".codex/config.toml", b"= no\n", "not TOML"),
        (AgentName.CODEX, ".codex/config.toml", b"a = '\xe9'\n", "not TOML"),
        (AgentName.ZED, "AGENTS.md", b"#\0 \0P\0", "NUL bytes"),
    ],
)
def test_what_is_in_the_way_is_refused_and_no_other_file_changes(
    project: Make, tool: AgentName, file: str, text: bytes, reason: str
) -> None:
    refused(project({file: text}), tool, reason, mcp=True)


@pytest.mark.parametrize("target", ["../outside.md", "/nowhere/HINTS.md", ".goosehints"])
def test_a_link_out_of_the_project_is_refused(project: Make, tmp_path: Path, target: str) -> None:
    (tmp_path / "outside.md").write_text("others'\n")

    refused(project({}, links={".goosehints": target}), AgentName.GOOSE, "links?")

    assert (tmp_path / "outside.md").read_text() == "others'\n"


def test_a_directory_that_leads_out_of_the_project_is_refused(project: Make, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()

    refused(project({}, links={".claude": "../elsewhere"}), AgentName.CLAUDE_CODE, "out of the project")

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_is_no_file_is_refused(project: Make) -> None:
    """Reading a pipe would wait for ever."""
    made = project({"AGENTS.md/file": b""})
    os.mkfifo(made.path / ".goosehints")
    before = set(made.path.iterdir())

    for tool in (AgentName.GOOSE, AgentName.ZED):
        with pytest.raises(CannotInstall, match="no ordinary file"):
            made.install(tool)

    assert set(made.path.iterdir()) == before


def test_files_we_do_not_need_are_nobodys_trouble(project: Make, tmp_path: Path) -> None:
    files = {".claude/settings.json": b"broken", ".mcp.json": b"broken"}
    made = project(files, links={"AGENTS.md": "../outside.md"})

    plan = made.install(AgentName.CLAUDE_CODE)

    assert {plan.name(change) for change in plan.changes} == {SETTINGS}
    assert plan.left == ()


@pytest.mark.parametrize("name", [SETTINGS, ".mcp.json", ".claude"])
def test_what_is_read_only_is_refused_for_root_too(project: Make, name: str) -> None:
    made = project({SETTINGS: b"{}\n", ".mcp.json": b"{}\n"})
    path = made.path / name
    mode = path.stat().st_mode
    path.chmod(mode & ~0o222)
    try:
        refused(made, AgentName.CLAUDE_CODE, f"{path} .*read-only", mcp=True)
    finally:
        path.chmod(mode)


def test_uninstalling_from_what_became_read_only_changes_nothing(project: Make) -> None:
    made = project({".goosehints": b"# Project\n"})
    made.install(AgentName.GOOSE)
    (made.path / ".goosehints").chmod(0o444)
    before = made.everything()

    with pytest.raises(CannotInstall, match="read-only"):
        made.uninstall(AgentName.GOOSE)

    assert made.everything() == before
    (made.path / ".goosehints").chmod(0o644)
    made.uninstall(AgentName.GOOSE)
    assert set(made.everything()) == {".goosehints"}


@pytest.mark.parametrize("space", ["/mnt/a\nb/project", "/mnt/a\x1b/project", "/mnt/\udce9/project"])
def test_a_path_that_no_line_can_hold_is_refused(made: Project, space: str) -> None:
    with pytest.raises(UsageError, match="cannot hold"):
        made.planned(AgentName.CURSOR, mount=Path(space).parent)


def test_a_file_that_was_changed_since_it_was_shown_is_left_alone(project: Make) -> None:
    made = project({".goosehints": b"# Project\n"})
    plan = made.planned(AgentName.GOOSE)
    made.write(".goosehints", b"# Project, newer\n")
    before = made.everything()

    with pytest.raises(CannotInstall, match="changed meanwhile"):
        plan.carry_out()

    assert made.everything() == before


# --- half done ---------------------------------------------------------------------------------------------------


class Disk:
    """Lets so many files be written to the disk, then fails once; what is taken back is written again."""

    def __init__(self, allowed: int, failure: BaseException) -> None:
        self.allowed, self.failure, self.failed = allowed, failure, False
        self.fsync = os.fsync

    def __call__(self, descriptor: int) -> None:
        if self.allowed == 0 and not self.failed:
            self.failed = True
            raise self.failure
        self.allowed -= 1
        self.fsync(descriptor)


def everything(project: Project) -> tuple[object, list[bytes]]:
    """The project, and what is on record."""
    return project.everything(), [path.read_bytes() for path in sorted(record.folder().glob("*"))]


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("way", "allowed"),
    [
        *((way, allowed) for way in ("into nothing", "beside others", "over another") for allowed in range(3)),
        *(("out again", allowed) for allowed in range(2)),  # the record is removed, which writes nothing
    ],
)
def test_when_a_write_fails_the_earlier_ones_are_taken_back(
    project: Make, monkeypatch: pytest.MonkeyPatch, failure: BaseException, allowed: int, way: str
) -> None:
    files = {SETTINGS: b'{"a": 1}', ".mcp.json": b"{}"}
    made = project({} if way == "into nothing" else files)
    if way != "into nothing":
        (made.path / ".mcp.json").chmod(0o640)
    if way in ("over another", "out again"):
        made.install(AgentName.CLAUDE_CODE, mcp=True)
    before = everything(made)
    disk = Disk(allowed, failure)
    monkeypatch.setattr("livememfs.agents.install.disk.os.fsync", disk)

    plan = (
        made.planned(AgentName.CLAUDE_CODE, "other", mcp=True)
        if way != "out again"
        else made.removal(AgentName.CLAUDE_CODE)
    )
    with pytest.raises(CannotInstall if isinstance(failure, OSError) else KeyboardInterrupt):
        plan.carry_out()

    assert disk.failed
    assert everything(made) == before


def test_what_is_removed_comes_back_with_its_mode_when_a_later_write_fails(
    project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings were made by us and go first; the servers were there and cannot be written."""
    made = project({".mcp.json": b"{}"})
    made.install(AgentName.CLAUDE_CODE, mcp=True)
    (made.path / SETTINGS).chmod(0o600)
    before = everything(made)
    monkeypatch.setattr("livememfs.agents.install.disk.os.fsync", Disk(0, OSError(errno.EIO, "I/O error")))

    with pytest.raises(CannotInstall, match=r"\.mcp\.json .*I/O error"):
        made.uninstall(AgentName.CLAUDE_CODE)

    assert everything(made) == before


def test_modes_stay_and_new_files_have_the_usual_one(project: Make) -> None:
    made = project({".mcp.json": b"{}"})
    (made.path / ".mcp.json").chmod(0o606)
    made.write("usual", b"")

    made.install(AgentName.CLAUDE_CODE, mcp=True)

    assert (made.path / ".mcp.json").stat().st_mode & 0o777 == 0o606
    assert (made.path / SETTINGS).stat().st_mode == (made.path / "usual").stat().st_mode
    assert b"/opt/bin/livememfs" in made.read(".mcp.json")
