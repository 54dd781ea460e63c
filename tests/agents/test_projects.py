"""Which project a directory is in, and which space that wants."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from livememfs.agents.projects import Project, find, space_name


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's home, itself a repository as some keep theirs."""
    (tmp_path / "home/app/src/deep").mkdir(parents=True)
    git(tmp_path / "home", "init", "-q")
    return tmp_path / "home"


def found(home: Path, folder: Path, *mounts: Path) -> Project | None:
    return find(folder, home=home, host="box", mounts=[str(path) for path in mounts])


def test_a_directory_is_in_the_repository_above_it_and_homes_are_nobodys(home: Path) -> None:
    assert found(home, home / "app/src") is None
    assert found(home, home) is found(home, Path("/")) is found(home, Path("app")) is None
    assert found(home, home / "app/../../other") is None

    git(home / "app", "init", "-q")
    (home / "app/src/.git").mkdir(parents=True)  # as a sandbox leaves it

    assert found(home, home / "app/src/deep") == Project(folder=home / "app", space="app", marks=(f"box:{home}/app",))
    assert found(home, home / "app", home / "app") is None
    assert found(home, home / "app/gone/by/now") == found(home, home / "app")


def test_worktrees_are_one_project_and_submodules_are_others(home: Path) -> None:
    git(home / "app", "init", "-q")
    git(home / "app", "commit", "-q", "--allow-empty", "-m", "x")
    git(home / "app", "worktree", "add", "-q", "../tree")
    git(home, "clone", "-q", "--bare", "app", "bare.git")
    git(home / "bare.git", "worktree", "add", "-q", "../other")
    git(home / "app", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(home / "bare.git"), "part")

    main = found(home, home / "app")
    assert main is not None
    assert found(home, home / "tree") == main
    others = [found(home, home / name) for name in ("other", "app/part")]
    assert [project.space for project in others if project] == ["bare", "part"]


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/some/App.git",
        "https://user:secret@GitHub.com/some/App",
        "git@github.com:some/App.git",
        "ssh://git@github.com:22/some/App.git/",
    ],
)
def test_a_repository_is_known_by_where_it_comes_from_however_it_is_reached(home: Path, url: str) -> None:
    git(home / "app", "init", "-q")
    git(home / "app", "remote", "add", "other", "https://example.com/x/y")
    git(home / "app", "remote", "add", "origin", url)

    project = found(home, home / "app")

    assert project is not None
    assert project.marks == ("github.com/some/App", f"box:{home}/app")
    assert project.other_space.startswith("app-")
    (home / "x").mkdir()
    (home / "app").rename(home / "x/app")
    elsewhere = find(home / "x/app", home=home, host="laptop")  # on another machine, at another place
    assert elsewhere is not None
    assert elsewhere.other_space == project.other_space


@pytest.mark.parametrize(
    ("text", "space", "wrong"),
    [
        ('space = "team"\n', "team", ""),
        ('space = "team"\nb = 1\na = 2\n', "team", "other keys than `space`, which are ignored: a, b"),
        ('space = "Team!"\n', "", "starts with a letter or digit"),
        ("space = 3\n", "", 'no `space = "NAME"`'),
        ("", "", "no `space"),
        ("= no", "", "Invalid"),
    ],
)
def test_a_file_names_the_space_before_any_repository(home: Path, text: str, space: str, wrong: str) -> None:
    git(home / "app/src", "init", "-q")
    (home / "app/.livememfs.toml").write_text(text)

    project = found(home, home / "app/src/deep")

    assert project is not None
    assert (project.folder, project.space, project.marks) == (home / "app", space, ())
    assert wrong in project.wrong if wrong else not project.wrong


@pytest.mark.parametrize(
    ("text", "name"),
    [("My App", "my-app"), ("Über_uns", "uber_uns"), ("..x..", "x"), ("日本", "project"), ("search", "search-project")],
)
def test_any_name_becomes_a_spaces_name(text: str, name: str) -> None:
    assert space_name(text) == name
    assert space_name("é" * 300) == "e" * 63
