"""`livememfs bank edit` and `livememfs space rules --replace` on a folder store, without a mount."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Cli

TEXT = "# A\r\n\r\none\r\n"


@pytest.fixture
def filed(cli: Cli, project: str, tmp_path: Path) -> Path:
    """A bank file of the space, with the line ends of another system."""
    path = tmp_path / "store" / project / "bank" / "a.md"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script that is `$EDITOR`; its first argument is the file."""
    path = tmp_path / "editor"
    path.write_text('#!/bin/sh\nprintf "two\\r\\n" >> "$1"\n')
    path.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return path


def test_a_bank_file_is_mended_in_an_editor_and_undo_takes_it_back(
    cli: Cli, project: str, filed: Path, editor: Path
) -> None:
    done = cli("bank", "edit", project, "a.md", "--json").json

    assert filed.read_bytes() == f"{TEXT}two\r\n".encode()
    [run] = cli("history", project, "--json").json
    assert (run["run"], run["kind"], bool(run["by"])) == (done["run"], "edit", True)
    assert f"edit by {run['by']}" in cli("history", project).out
    cli("undo", project).shows("1 bank file changed")
    assert filed.read_bytes() == TEXT.encode()


def test_a_file_that_the_editor_leaves_as_it_was_is_no_run(cli: Cli, project: str, filed: Path, editor: Path) -> None:
    editor.write_text("#!/bin/sh\n")

    cli("bank", "edit", project, "a.md").shows("a.md is as it was")
    assert cli("history", project, "--json").json == []


def test_a_file_that_somebody_else_wrote_meanwhile_is_not_replaced_and_the_text_is_kept(
    cli: Cli, project: str, filed: Path, editor: Path
) -> None:
    editor.write_text(f'#!/bin/sh\nprintf "mine\\n" >> "$1"\nprintf "theirs\\n" > {filed}\n')

    ended = cli("bank", "edit", project, "a.md")

    ended.fails("a.md was changed meanwhile")
    assert filed.read_text() == "theirs\n"
    draft = Path(ended.err.split(" it is in ")[1].split()[0])
    assert draft.read_bytes() == f"{TEXT}mine\n".encode()


def test_an_editor_that_fails_stores_nothing(
    cli: Cli, project: str, filed: Path, editor: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor.write_text('#!/bin/sh\necho x >> "$1"\nexit 3\n')
    cli("bank", "edit", project, "a.md").fails("ended with status 3", "what you wrote is in")
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    cli("bank", "edit", project, "a.md").fails("cannot be started")
    assert [path.name for path in tmp_path.glob("livememfs-*/a.md")] == ["a.md"]  # of the first one
    assert filed.read_bytes() == TEXT.encode()


def test_a_new_file_can_be_written_and_a_bad_name_or_space_is_refused(cli: Cli, project: str, editor: Path) -> None:
    cli("bank", "edit", project, "sub/new.md").shows("sub/new.md is stored")
    cli("bank", "edit", project, "../x.md").fails("cannot be used as a name")
    cli("bank", "edit", "none", "x.md").fails("there is no space none")


def test_new_rules_are_sealed_and_undo_takes_them_back(cli: Cli, project: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.md"
    rules.write_text("### facts.md\n")
    assert cli("space", "create", "other", "--rules", "journal").code == 0
    before = cli("space", "rules", "other").out

    cli("space", "rules", "other", "--replace", str(rules)).shows("livememfs undo other")
    assert cli("space", "rules", "other").out == "### facts.md\n"
    cli("space", "rules", "other", "--replace", str(rules)).shows("are these already")
    cli("undo", "other").shows("as it was before run 1")
    assert cli("space", "rules", "other").out == before
    rules.write_text(" ")
    cli("space", "rules", "other", "--replace", str(rules)).fails("without a word")


def test_the_class_of_a_bank_file_is_a_run_that_undo_takes_back(
    cli: Cli, project: str, filed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.tree.writer.agent_of", lambda *_: "")
    run = cli("bank", "trust", project, "a.md", "tool", "--json").json["run"]
    cli("bank", "trust", project, "a.md", "tool").shows("a.md is told as tool output: as before")
    monkeypatch.setattr("livememfs.tree.writer.agent_of", lambda *_: "claude")
    cli("bank", "trust", project, "a.md", "agent").fails("only a person raises")

    assert [entry["run"] for entry in cli("history", project, "--json").json] == [run]
    cli("undo", project).shows("1 bank file changed")
    assert filed.read_bytes() == TEXT.encode()
