"""`livememfs proposals ...` and `livememfs space proposals`, on a folder store without a mount."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Cli


@pytest.fixture
def waiting(cli: Cli, project: str) -> str:
    """The name of the one proposal there is."""
    cli("space", "proposals", project).shows("waits for a person")
    assert cli("note", project, "We chose S3 for the archive.", "--category", "decision").code == 0
    assert cli("digest", project).code == 0
    (proposal,) = cli("proposals", "list", project, "--json").json
    return str(proposal["name"])


def remembered(cli: Cli, project: str) -> list[str]:
    return [memory["content"].strip() for memory in cli("memories", "list", project, "--json").json]


def test_whether_a_space_asks_is_in_its_record(cli: Cli, project: str, tmp_path: Path) -> None:
    record = tmp_path / "store" / project / "_meta.json"
    assert cli("space", "proposals", project, "--json").json == {"space": project, "proposals": True}
    assert json.loads(record.read_bytes())["proposals"] is True
    cli("space", "proposals", project, "--off").shows("is stored at once")
    assert "proposals" not in json.loads(record.read_bytes())


def test_what_waits_is_listed_and_shown_and_not_remembered(cli: Cli, project: str, waiting: str) -> None:
    cli("proposals", "list", project).shows(waiting, "memories", "digest 1", "We chose S3")
    cli("proposals", "show", project, waiting).shows("+We chose S3 for the archive.", "from ")
    assert remembered(cli, project) == []


def test_the_name_of_the_group_alone_lists_what_waits_in_every_space(cli: Cli, project: str) -> None:
    cli("proposals").shows("nothing waits in any space")
    for space in (project, "other"):
        cli("space", "create", space)
        cli("space", "proposals", space)
        cli("note", space, "We chose S3 for the archive.", "--category", "decision")
        cli("digest", space)

    listed = cli("proposals")

    listed.shows("SPACE", project, "other", "We chose S3")
    assert "livememfs proposals show SPACE NAME" in listed.err
    assert [one["space"] for one in cli("proposals", "list", "--json").json] == sorted([project, "other"])


def test_what_is_accepted_is_remembered(cli: Cli, project: str, waiting: str) -> None:
    cli("proposals", "accept", project, waiting).shows(f"{project}/memories/{waiting}.md")

    assert remembered(cli, project) == ["We chose S3 for the archive."]
    cli("proposals", "list", project).shows(f"nothing waits in {project}")
    (decided,) = cli("proposals", "list", project, "--decided", "--json").json
    assert (decided["name"], decided["decision"]) == (waiting, "accepted")


def test_what_is_refused_is_not(cli: Cli, project: str, waiting: str) -> None:
    cli("proposals", "refuse", project, waiting).shows("refused")

    assert remembered(cli, project) == []
    cli("proposals", "list", project, "--decided").shows(waiting, "refused")
    cli("proposals", "accept", project, waiting).fails(f"there is no {project}/.proposals/{waiting}.md")


@pytest.mark.parametrize("act", ["accept", "refuse"])
def test_an_agent_decides_nothing(
    cli: Cli, project: str, waiting: str, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.tree.writer.agent_of", lambda pid, default: "claude")

    cli("proposals", act, project, waiting).fails("only a person decides")

    assert [each["name"] for each in cli("proposals", "list", project, "--json").json] == [waiting]


@pytest.mark.parametrize("words", ["list", "show", "accept", "refuse"])
def test_a_space_that_is_not_there_is_named(cli: Cli, words: str) -> None:
    cli("proposals", words, "nowhere", *(["x"] if words != "list" else [])).fails("there is no space nowhere")


def test_doctor_counts_what_waits(cli: Cli, project: str, waiting: str) -> None:
    checks = {check["name"]: check for check in cli("doctor", "--json").json["checks"]}

    assert checks["proposals"]["found"] == f"1 in {project}; `livememfs proposals list {project}` shows them"
    cli("proposals", "accept", project, waiting)
    assert "proposals" not in {check["name"] for check in cli("doctor", "--json").json["checks"]}


def test_a_digest_says_how_many_memories_wait_and_where(cli: Cli, project: str) -> None:
    cli("space", "proposals", project)
    cli("note", project, "--category", "decision", "We chose S3.")

    dry, real = cli("digest", project, "--dry-run"), cli("digest", project)

    dry.shows(f"1 note would be read, 1 memory would wait in {project}/.proposals/")
    real.shows(f"1 note read, 1 memory waits in {project}/.proposals/ until a person accepts or refuses")
    assert "stored" not in dry.out + real.out
