"""`livememfs import` and `livememfs export` on a folder store, without a mount."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Cli


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with two files that can be read, and one that cannot."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "store.md").write_text("We chose Garage as our store.")
    (folder / "people.md").write_text("Ana deploys on Fridays.")
    (folder / "odd.md").write_bytes(b"\xff")
    return folder


def test_what_comes_is_counted_found_and_comes_once(cli: Cli, project: str, notes: Path) -> None:
    (notes / "odd.md").unlink()

    cli("import", project, "markdown", str(notes)).shows("2 new, 0 changed, 0 known, 0 kept here; about ")
    cli("import", project, "markdown", str(notes)).shows("0 new, 0 changed, 2 known, 0 kept here; about 0 tokens")
    cli("search", "Garage", "--space", project).shows("We chose Garage")


def test_what_cannot_be_read_is_named_the_rest_comes_and_the_status_is_1(cli: Cli, project: str, notes: Path) -> None:
    ended = cli("import", project, "markdown", str(notes))

    assert ended.code == 1
    assert "2 new" in ended.out
    assert f"1 part could not be read:\n  {notes / 'odd.md'}: " in ended.out


def test_a_dry_run_tells_tokens_and_cost(cli: Cli, project: str, notes: Path) -> None:
    (notes / "odd.md").unlink()

    told = cli("import", project, "markdown", str(notes), "--dry-run", "--price", "1000000", "--json")

    assert (told.json["counts"]["new"], told.json["dry_run"]) == (2, True)
    tokens = told.json["tokens"]
    shown = cli("import", project, "markdown", str(notes), "--dry-run", "--price", "1000000")
    shown.shows("would bring: 2 new", f"about {tokens} tokens, {tokens}.00 at 1e+06 for a million")
    cli("memories", "list", project).shows("nothing is remembered")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing", "."), "there is no source nothing; use one of markdown, jsonl"),
        (("markdown", "not-there"), "markdown takes a folder of Markdown"),
    ],
)
def test_a_wrong_word_is_named(cli: Cli, project: str, words: tuple[str, ...], sentence: str) -> None:
    cli("import", project, *words).fails(sentence, code=2)


def test_a_space_goes_out_and_into_another_one(cli: Cli, project: str, notes: Path, tmp_path: Path) -> None:
    (notes / "odd.md").unlink()
    cli("import", project, "markdown", str(notes))
    cli("space", "create", "other").shows()

    cli("export", project, str(tmp_path / "out")).shows("wrote 3 objects")
    cli("import", "other", "live-memory", str(tmp_path / "out")).shows("2 new")
    cli("export", project, str(tmp_path / "out")).fails("is there already", code=2)
    cli("export", project, str(tmp_path / "x"), "--as", "yaml").fails("there is no form yaml", code=2)


def test_only_what_a_search_finds_goes_out(cli: Cli, project: str, notes: Path, tmp_path: Path) -> None:
    cli("import", project, "markdown", str(notes))

    cli("export", project, str(tmp_path / "out.jsonl"), "--as", "jsonl", "--query", '"Garage"').shows("wrote 1 object ")

    assert "We chose Garage" in (tmp_path / "out.jsonl").read_text()
