"""Help, and what a command loads before it does anything."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer.main
from commandline import Cli

from livememfs.cli import gc, main, moving, search
from livememfs.importing.export import FORMS
from livememfs.importing.sources import SOURCES
from livememfs.recall.search import page
from livememfs.runs.upkeep.gc import OLDER_THAN


def every_command() -> list[tuple[str, Any]]:
    """Each command that does something, by its words."""
    found: list[tuple[str, Any]] = []
    for name, command in typer.main.get_command(main.app).commands.items():  # type: ignore[attr-defined]  # a group
        inner = getattr(command, "commands", None)
        found += [(f"{name} {part}", below) for part, below in inner.items()] if inner else [(name, command)]
    return found


def taken(typed: str) -> str:
    """The words of the command that takes a line. Its parser ends the test at a line that it does not take."""
    context = typer.main.get_command(main.app).make_context("livememfs", shlex.split(typed))
    words, rest = [], [*context._protected_args, *context.args]
    found: Any = context.command
    while hasattr(found, "commands"):
        words.append(rest.pop(0))
        found = found.commands[words[-1]]
    found.make_context(words[-1], rest, parent=context)
    return " ".join(words)


@pytest.mark.parametrize(("words", "command"), every_command())
def test_the_help_of_each_command_has_examples_that_the_command_takes(words: str, command: Any) -> None:
    examples = re.findall(r"^  .*?\blivememfs (.+?)(?=   | \||\)|$)", command.help, re.MULTILINE)

    assert examples
    assert {taken(line) for line in examples} == {words}


def test_help_cuts_no_sentence_and_fits_80_columns(cli: Cli) -> None:
    for words in ([], *([name] for name, listed in main.COMMANDS.items() if listed.is_group)):
        shown = cli(*words, "--help").out
        assert "..." not in shown.replace("[ARGS]...", "")
        assert max(map(len, shown.splitlines())) <= 80


def test_examples_keep_their_lines(cli: Cli) -> None:
    lines = [line.strip() for line in cli("mount", "--help").out.splitlines()]

    assert "livememfs mount s3://team-memory ~/memory         a bucket" in lines


def test_the_options_that_every_command_has_stand_in_one_help(cli: Cli) -> None:
    assert "--bucket" in cli("--help").out
    shown = cli("space", "list", "--help").out
    assert "--bucket" not in shown
    assert "livememfs --help" in shown


def test_options_before_the_command_count_unless_it_has_its_own(cli: Cli, tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")

    assert cli("--store", first, "space", "create", "one").code == 0
    assert cli("--store", first, "space", "create", "two", "--store", second).code == 0
    assert cli("--store", first, "space", "list", "--bucket", "b", "--endpoint-url", "x").code == 2, "the endpoint"
    assert (tmp_path / "first" / "one").is_dir()
    assert (tmp_path / "second" / "two").is_dir()
    assert "there is no space" in cli("space", "list").out, "the next command begins anew"


@pytest.mark.parametrize(
    "words", ["--help", "--version", "note --help", "mount --help", "import --help", "status --help"]
)
def test_help_loads_no_settings_no_event_loop_and_no_tables(words: str) -> None:
    """They would take longer than all the rest of it."""
    code = (
        "import sys\nfrom livememfs.cli.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(sorted({'livememfs.config', 'trio', 'structlog', 'rich.table', 'yaml'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_what_help_repeats_is_what_the_slow_modules_say() -> None:
    assert tuple(SOURCES) == moving.SOURCES
    assert moving.FORMS == FORMS
    assert search.DEFAULT_BUDGET == page.DEFAULT_BUDGET
    assert timedelta(days=gc.OLDER_THAN_DAYS) == OLDER_THAN
