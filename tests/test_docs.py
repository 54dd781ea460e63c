"""The documents are held against the code: what is documented exists, and what exists is documented."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import docs_tables
import pytest
import typer.main

from livememfs.cli.main import app, main
from livememfs.config import Settings
from livememfs.importing.sources import SOURCES
from livememfs.records import keys

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
OPERATIONS = docs_tables.OPERATIONS.read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
DEPENDENCIES = (ROOT / "docs" / "dependencies.md").read_text()
BUCKET = (ROOT / "docs" / "bucket.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
DOCUMENTS = sorted([*(ROOT / name for name in TOP), *(ROOT / "docs").rglob("*.md")])


def requirement_names() -> list[str]:
    """Every dependency of the project, optional ones included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [line for group in project["optional-dependencies"].values() for line in group]
    return sorted(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in [*project["dependencies"], *optional])


# --- operations.md -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", docs_tables.PAGES, ids=lambda path: path.name)
def test_the_tables_of_documents_are_those_of_the_code(page: Path) -> None:
    assert docs_tables.render(page.read_text()) == page.read_text(), "run: python tests/docs_tables.py"


def test_each_table_stands_in_one_document_and_every_setting_is_described() -> None:
    names = [match[2] for page in docs_tables.PAGES for match in docs_tables.BLOCK.finditer(page.read_text())]

    assert sorted(names) == sorted(docs_tables.TABLES)
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


# --- the command line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "space", *docs_tables.commands()])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*name.split(), "--help"])

    assert caught.value.code == 0
    assert "Usage: livememfs" in capsys.readouterr().out


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_documents_exist(document: Path) -> None:
    """Each `livememfs WORD` in code names a command there is."""
    known = {name.split()[0] for name in docs_tables.commands()}
    code = re.findall(r"```.*?```|`[^`\n]+`", document.read_text(), re.DOTALL)
    named = {word for part in code for word in re.findall(r"(?:^|[\s/`;&|])livememfs ([a-z]+)", part)}

    assert named <= known, named - known


def command_lines(text: str) -> list[list[str]]:
    """The commands of livememfs in blocks of shell, each as its words; one with `...` is no whole command."""
    commands = []
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            for part in re.split(r"\s(?:&&|\||;)\s", line):
                words = shlex.split(part, comments=True) if "livememfs" in part and "..." not in part else []
                while words and re.match(r"[A-Z_]+=", words[0]):
                    words.pop(0)
                if words and words[0].rpartition("/")[2] == "livememfs":
                    commands.append(words[1:])
    return commands


LINES = [(document.name, line) for document in DOCUMENTS for line in command_lines(document.read_text())]


@pytest.mark.parametrize(
    ("document", "line"), LINES, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_command_lines_in_documents_are_understood(document: str, line: list[str]) -> None:
    """Command, arguments and options are such that the parser takes them; nothing is run."""
    command: Any = typer.main.get_command(app)
    name, rest = "livememfs", list(line)
    while rest[0] in ("--bucket", "--endpoint-url", "--store", "--config", "--log-level"):
        del rest[:2]
    while hasattr(command, "commands"):
        name = rest.pop(0)
        assert name in command.commands
        command = command.commands[name]
    command.make_context(name, rest)


def test_there_are_command_lines_to_look_at() -> None:
    assert len(LINES) > 40


# --- dependencies.md, README.md ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", requirement_names())
def test_every_dependency_is_explained(name: str) -> None:
    assert re.search(rf"^\| {re.escape(name)} \|", DEPENDENCIES, re.MULTILINE)


def test_no_dependency_is_explained_that_is_not_there() -> None:
    listed = re.findall(r"^\| ([a-z0-9-]+) \|", DEPENDENCIES, re.MULTILINE)

    assert set(listed) - {"package"} == set(requirement_names())


def test_every_promise_of_security_names_tests_that_exist() -> None:
    table = SECURITY.partition("## Promises")[2]
    promises = re.findall(r"^\| (?!promise|---)([^|]+) \| (`[^|]*) \|$", table, re.MULTILINE)
    named = [test.split("::") for _, tests in promises for test in re.findall(r"`([^`]+)`", tests)]

    assert [test for test in named if f"def {test[1]}(" not in (ROOT / "tests" / test[0]).read_text()] == []
    assert len(promises) == table.count("\n| ") - 1


def test_the_readme_is_short_and_says_how_to_see_it_and_how_to_check_it() -> None:
    seen = re.sub(r"<!--.*?-->", "", README, flags=re.DOTALL)

    assert len(seen.split()) < 700
    assert (
        seen.index("scripts/demo     #")
        < seen.index("scripts/test     #")
        < seen.index("## ", seen.index("## Start") + 1)
    )


def test_the_documents_are_a_site_without_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "docs", "build", tmp_path / "site"], check=True, timeout=120)

    assert {page.stem for page in (tmp_path / "site").glob("*.html")} >= {
        "index",
        "tutorial",
        "tasks",
        "cli",
        "metrics",
    }


def test_each_command_has_a_manual_page_with_its_options(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "docs", "man", tmp_path], check=True, timeout=120)
    pages = {page.name: page.read_text() for page in tmp_path.iterdir()}

    assert pages.keys() == {f"livememfs-{name.replace(' ', '-')}.1" for name in docs_tables.commands()} | {
        "livememfs.1"
    }
    assert "\n.B \\-\\-category NAME\n" in pages["livememfs-note.1"]
    assert [name for name, page in pages.items() if page.count("\n.SH NAME\n") != 1 or "\n'" in page] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    shown = re.sub(r"```console\n.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)  # what is printed
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", shown)

    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_and_folders_that_are_named_exist(document: str) -> None:
    """Whoever moves a file finds the way told anew, or this fails."""
    text = (ROOT / document).read_text()
    named = set(re.findall(r"(?:livememfs|tests|scripts|docs)/[\w./]*\w", text))

    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_source_of_an_import_has_a_page_that_says_what_comes_what_does_not_and_how_to_go_back() -> None:
    pages = {page.stem: page.read_text() for page in (ROOT / "docs" / "migrate").glob("*.md")}
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(migrate/\1\.md\) \|", (ROOT / "docs" / "migrate.md").read_text(), re.M)

    assert pages.keys() == set(rows) == SOURCES.keys()
    for name, page in pages.items():
        assert f"livememfs import project {name} " in page
        assert [
            part for part in ("What comes.", "What does not.", "How to go back.") if f"**{part}**" not in page
        ] == []


def test_the_architecture_has_every_part_of_the_package() -> None:
    parts = {path.parent.name for path in (ROOT / "livememfs").glob("*/__init__.py")} - {"testing"}

    assert set(re.findall(r"^\| `livememfs/(\w+)` \|", ARCHITECTURE, re.M)) == parts
    assert set(re.findall(r"\b(\w+)\[\"", ARCHITECTURE)) == parts


def test_scripts_that_are_named_exist_and_can_be_run() -> None:
    named = set(re.findall(r"scripts/[a-z-]+", README + OPERATIONS + DEPENDENCIES + CONTRIBUTING))

    assert named
    assert [name for name in sorted(named) if not (ROOT / name).stat().st_mode & 0o100] == []


@pytest.mark.parametrize("place", keys.PLACES, ids=lambda place: place.example)
def test_every_place_of_a_bucket_is_documented(place: keys.Place) -> None:
    assert f"`{place.shown}" in BUCKET
