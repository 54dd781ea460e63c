"""Adopting an agent's own memory: no file of either folder is lost, and what was changed is given back to the byte."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.agents.adopting import plan
from livememfs.agents.adopting.place import SETTING, SETTINGS, folder_of
from livememfs.agents.adopting.plan import Adopting
from livememfs.agents.adopting.setting import given_back, pointed
from livememfs.agents.install.table import AgentName
from livememfs.errors import CannotInstall

TOOL = AgentName.CLAUDE_CODE
Tree = dict[str, bytes]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project below a home that has a memory of it, and a space."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for folder in ("home/.claude", "project", "mnt/space"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.fixture
def original(there: Path) -> Path:
    """The folder that Claude Code makes for the project."""
    name = str(there / "project").replace("/", "-").replace("_", "-").replace(".", "-")
    folder = there / "home/.claude/projects" / name / "memory"
    fill(folder, {"MEMORY.md": b"- [Role](user_role.md)\n", "user_role.md": b"\xff\r\n", "logs/2026/a.md": b""})
    return folder


def fill(folder: Path, files: Tree) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def tree(folder: Path) -> Tree:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def adopt(there: Path) -> Adopting:
    own = there / "home/.claude"
    adopting = plan.adoption(
        TOOL, there / "project", there / "mnt/space", home=there / "home", configuration=own, host="one"
    )
    adopting.carry_out()
    return adopting


def undo(there: Path) -> Adopting:
    adopting = plan.giving_back(TOOL, there / "project", host="one")
    adopting.carry_out()
    return adopting


def setting(there: Path) -> object:
    return json.loads((there / "project" / SETTINGS).read_text()).get(SETTING)


# --- files --------------------------------------------------------------------------------------------------------


def test_what_the_agent_had_is_there_to_the_byte_and_comes_back_so(there: Path, original: Path) -> None:
    before = tree(original)
    os.utime(original / "user_role.md", ns=(1_000, 2_000_000_123))
    (original / "user_role.md").chmod(0o600)
    adopt(there)
    folder = there / "mnt/space/agents/claude-code"
    assert tree(folder) == tree(original) == before
    assert (folder / "user_role.md").stat().st_mtime_ns == 2_000_000_123
    assert (folder / "user_role.md").stat().st_mode & 0o777 == 0o600
    assert setting(there) == str(folder)

    undo(there)
    assert tree(original) == before
    assert not (there / "project/.claude").exists()
    assert plan.find(TOOL, there / "project") is None


def test_the_folder_is_given_back_as_it_is_by_then(there: Path, original: Path) -> None:
    """What was added, changed and removed since."""
    adopt(there)
    folder = there / "mnt/space/agents/claude-code"
    (folder / "user_role.md").unlink()
    fill(folder, {"MEMORY.md": b"- new\n", "sub/new.md": b"n"})
    undo(there)

    assert tree(original) == {"MEMORY.md": b"- new\n", "sub/new.md": b"n", "logs/2026/a.md": b""}


def test_what_somebody_wrote_into_the_former_folder_since_is_kept(there: Path, original: Path) -> None:
    adopt(there)
    folder = there / "mnt/space/agents/claude-code"
    (folder / "user_role.md").write_bytes(b"new")
    (folder / "logs/2026/a.md").unlink()
    fill(original, {"user_role.md": b"by hand", "logs/2026/a.md": b"by hand too", "own.md": b"o"})
    undo(there)

    assert tree(original) == {
        "MEMORY.md": b"- [Role](user_role.md)\n", "user_role.md": b"new", "user_role.before-one.md": b"by hand",
        "logs/2026/a.md": b"by hand too", "own.md": b"o",
    }  # fmt: skip


def test_what_the_space_has_already_stays_and_the_other_version_goes_beside_it(there: Path, original: Path) -> None:
    """The index is joined. A second time changes nothing."""
    folder = there / "mnt/space/agents/claude-code"
    fill(folder, {"MEMORY.md": b"- of another\n- [Role](user_role.md)\n", "user_role.md": b"of another"})
    adopt(there)
    expected = {
        "MEMORY.md": b"- of another\n- [Role](user_role.md)\n", "user_role.md": b"of another",
        "user_role.from-one.md": b"\xff\r\n", "logs/2026/a.md": b"",
    }  # fmt: skip
    assert tree(folder) == expected
    again = adopt(there)
    assert (again.steps, again.settings.changes, tree(folder)) == ([], (), expected)


def test_what_was_removed_in_the_space_does_not_come_back_with_a_second_adoption(there: Path, original: Path) -> None:
    """What is new in the former folder comes."""
    adopt(there)
    folder = there / "mnt/space/agents/claude-code"
    (folder / "user_role.md").unlink()
    (folder / "MEMORY.md").write_bytes(b"")
    fill(original, {"new.md": b"n"})
    adopt(there)

    assert tree(folder) == {"MEMORY.md": b"", "logs/2026/a.md": b"", "new.md": b"n"}


def test_links_are_copied_as_links(there: Path, original: Path) -> None:
    (original / "link.md").symlink_to("user_role.md")
    (original / "out").symlink_to("/etc")
    adopt(there)
    folder = there / "mnt/space/agents/claude-code"
    assert (folder / "link.md").readlink() == Path("user_role.md")
    assert (folder / "out").readlink() == Path("/etc")


def test_where_a_file_cannot_be_copied_the_agent_goes_on_with_its_folder(there: Path, original: Path) -> None:
    (there / "mnt/space/agents").write_bytes(b"in the way")
    with pytest.raises(CannotInstall):
        adopt(there)
    assert not (there / "project" / SETTINGS).exists()
    assert plan.find(TOOL, there / "project") is None


def test_without_its_folder_in_the_mount_nothing_is_given_back(there: Path, original: Path) -> None:
    """An unmounted bucket would look like a memory of which all was removed."""
    before = tree(original)
    adopt(there)
    (there / "mnt/space").rename(there / "gone")
    with pytest.raises(CannotInstall, match="it is not there"):
        undo(there)
    assert tree(original) == before


def test_another_space_needs_the_first_to_be_undone(there: Path, original: Path) -> None:
    adopt(there)
    with pytest.raises(CannotInstall, match="has its memory in"):
        plan.adoption(
            TOOL, there / "project", there / "mnt/other", home=there / "home", configuration=there, host="one"
        )


# --- where it is --------------------------------------------------------------------------------------------------


def test_what_is_set_is_looked_for_as_the_agent_does(there: Path) -> None:
    """The settings of this machine, those of the project, those of the user, and then the folder of the repository."""
    home, project, own = there / "home", there / "project", there / "home/.claude"

    def found() -> Path:
        return folder_of(project, home, own)

    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (project / "sub").mkdir()
    assert folder_of(project / "sub", home, own) == found()
    assert found().parent.parent == own / "projects"
    fill(own, {"settings.json": b'{"autoMemoryDirectory": "~/mine"}'})
    assert found() == home / "mine"
    fill(project, {".claude/settings.json": b'{"autoMemoryDirectory": "/shared"}'})
    assert found() == Path("/shared")
    fill(project, {SETTINGS: b'{"autoMemoryDirectory": "/local"}'})
    assert found() == Path("/local")
    fill(project, {SETTINGS: b'{"autoMemoryDirectory": 5}', ".claude/settings.json": b"no JSON"})
    assert found() == home / "mine"


def test_a_path_that_the_agent_cuts_is_found_by_its_beginning(there: Path) -> None:
    project = there / ("a" * 150) / ("b" * 100)
    name = re.sub("[^a-zA-Z0-9]", "-", str(project))[:200] + "-1x2y3z"
    fill(there / "home/.claude/projects" / name / "memory", {"MEMORY.md": b""})
    assert folder_of(project, there / "home", there / "home/.claude").parent.name == name


# --- the setting --------------------------------------------------------------------------------------------------

VALUE = "/mnt/space/agents/claude-code"
members = st.dictionaries(st.sampled_from(["a", "env", "hooks"]), st.sampled_from([1, "x", {"y": [1]}, []]), max_size=3)


@given(
    members=members,
    former=st.none() | st.sampled_from(["~/mine", 5, ["x"]]),
    indent=st.sampled_from([None, 2, "\t"]),
    end=st.sampled_from(["", "\n", "\r\n"]),
)
def test_the_setting_is_given_back_to_the_byte(
    members: dict[str, object], former: object, indent: int | str | None, end: str
) -> None:
    fields = members if former is None else {**members, SETTING: former, "z": 1}
    text = json.dumps(fields, indent=indent) + end
    after, filed, before = pointed(SETTINGS, text, SETTING, VALUE)
    assert json.loads(after) == {**fields, SETTING: VALUE}
    assert given_back(after, SETTING, VALUE, filed, before) == (text, "")


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_file_that_was_not_there_or_empty_is_so_again(text: str | None) -> None:
    after, filed, before = pointed(SETTINGS, text, SETTING, VALUE)
    assert json.loads(after) == {SETTING: VALUE}
    assert given_back(after, SETTING, VALUE, filed, before) == (text, "")


def test_what_others_changed_in_the_file_since_stays() -> None:
    after, filed, before = pointed(SETTINGS, '{"a": 1}', SETTING, VALUE)
    changed = after.replace('"a": 1', '"a": 2, "b": 3')
    rest, left = given_back(changed, SETTING, VALUE, filed, before)
    assert (json.loads(rest or ""), left) == ({"a": 2, "b": 3}, "")


def test_a_setting_that_somebody_changed_since_stays_and_is_named() -> None:
    after, filed, before = pointed(SETTINGS, '{"a": 1}', SETTING, VALUE)
    changed = after.replace(VALUE, "/elsewhere")
    rest, left = given_back(changed, SETTING, VALUE, filed, before)
    assert rest == changed
    assert SETTING in left


@pytest.mark.parametrize("text", ['{"a": 1} // note', "[1]", '{"a": 1', '{"a": 1,}'])
def test_what_the_agent_would_ignore_is_refused(there: Path, original: Path, text: str) -> None:
    fill(there / "project", {SETTINGS: text.encode()})
    with pytest.raises(CannotInstall):
        adopt(there)
    assert (there / "project" / SETTINGS).read_text() == text
    assert not (there / "mnt/space/agents").exists()


def test_a_project_without_a_memory_gets_one(there: Path) -> None:
    adopt(there)
    assert setting(there) == str(there / "mnt/space/agents/claude-code")
    assert (there / "mnt/space/agents/claude-code").is_dir()
