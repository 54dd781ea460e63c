"""`livememfs memories ...` on a folder store, without a mount."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Cli


@pytest.fixture
def david(cli: Cli, project: str) -> str:
    """The id of the one memory there is."""
    ended = cli("memories", "add", project, "David is my brother", "--subject", "david", "--json")
    assert ended.code == 0
    return str(ended.json["id"])


def listed(cli: Cli, project: str, *options: str) -> list[str]:
    return [memory["content"] for memory in cli("memories", "list", project, "--json", *options).json]


def test_what_is_stored_is_listed(cli: Cli, project: str, david: str) -> None:
    (memory,) = cli("memories", "list", project, "--json").json
    assert (memory["id"], memory["type"], memory["subjects"]) == (david, "fact", ["david"])
    assert (memory["content"], memory["importance"], memory["expires_at"]) == ("David is my brother", 0.6, None)
    assert (memory["uses"], memory["used_at"], memory["told"]) == (0, None, 0)
    shown = cli("memories", "list", project).out
    assert david in shown
    assert "David is my brother" in shown


def test_an_empty_list_says_so(cli: Cli, project: str) -> None:
    assert "nothing is remembered in project/goals" in cli("memories", "list", project, "--in", "goals").out
    assert "nothing was forgotten" in cli("memories", "list", project, "--forgotten").out


def test_type_and_time_can_be_said(cli: Cli, project: str) -> None:
    ended = cli("memories", "add", project, "Mickael is ill", "--type", "event", "--ttl", "7d")

    assert "_event_" in ended.out
    assert "_until_" in ended.out


@pytest.mark.parametrize(
    ("option", "given", "sentence"),
    [
        ("--ttl", "banana", "--ttl is a number and a unit, like 90m, 1h, 7d or 2w, not 'banana'"),
        ("--ttl", "0d", "--ttl is a number"),
        ("--ttl", "7 days", "--ttl is a number"),
        ("--type", "recipe", "--type is one of identity, "),
    ],
)
def test_a_time_or_a_type_that_is_none_is_refused(
    cli: Cli, project: str, option: str, given: str, sentence: str
) -> None:
    ended = cli("memories", "add", project, "David is ill", option, given)

    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.err
    assert listed(cli, project) == []


def test_a_type_may_be_written_in_capitals_and_a_time_may_be_never(cli: Cli, project: str) -> None:
    """As a file in a mount may have them."""
    assert cli("memories", "add", project, "Mickael is ill", "--type", "Event", "--ttl", "never").code == 0
    (memory,) = cli("memories", "list", project, "--json").json
    assert (memory["type"], memory["expires_at"]) == ("event", None)


def test_what_is_forgotten_is_listed_apart_and_comes_back(cli: Cli, project: str, david: str) -> None:
    cli("memories", "forget", project, david).shows(f"livememfs memories restore {project} {david}")
    assert listed(cli, project) == []
    assert listed(cli, project, "--forgotten") == ["David is my brother"]

    assert cli("memories", "restore", project, david).code == 0
    assert listed(cli, project) == ["David is my brother"]
    assert listed(cli, project, "--forgotten") == []
    assert cli("memories", "restore", project, david).code == 1


def test_what_is_purged_leaves_nothing(cli: Cli, project: str, david: str, tmp_path: Path) -> None:
    cli("memories", "forget", project, david)
    cli("memories", "restore", project, david)
    cli("memories", "forget", project, david)

    assert cli("memories", "forget", project, david, "--purge").out == "removed 1 object\n"
    assert [path for path in (tmp_path / "store" / project / "memories").rglob("*") if path.is_file()] == []
    assert cli("memories", "forget", project, david, "--purge").code == 1


def test_the_beginning_of_an_id_is_enough_where_it_is_of_one_alone(cli: Cli, project: str, david: str) -> None:
    cli("memories", "add", project, "David has a son")

    cli("memories", "forget", project, david[:4]).fails("2 memories begin so")
    assert cli("memories", "forget", project, david[:-1]).code == 0


def test_a_memory_without_a_word_is_refused(cli: Cli, project: str) -> None:
    assert cli("memories", "add", project, "  ").code == 1


@pytest.mark.parametrize("agent", ["", "ann"])
def test_a_person_says_whose_words_a_memory_has_and_a_search_shows_it(
    cli: Cli, project: str, david: str, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.tree.writer.agent_of", lambda *_: agent)

    def found() -> str:
        return str(cli("search", "who is David?", "--space", project, "--json").json["hits"][0]["trust"])

    assert found() == "agent"
    for trust, said in (("web", "words from the web"), ("user", "the user's words")):
        cli("memories", "trust", project, david, trust).shows(f"is told as {said}")
        assert found() == trust


def test_an_agent_raises_nothing_and_a_class_has_one_of_five_names(
    cli: Cli, project: str, david: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.tree.writer.agent_of", lambda *_: "claude")

    cli("memories", "trust", project, david, "user").fails("only a person raises")
    cli("memories", "trust", project, david, "tool").shows("tool output")
    cli("memories", "trust", project, david, "root").fails("'root' is not one of", code=2)


def test_an_audit_names_files_and_what_to_do(cli: Cli, project: str, david: str) -> None:
    cli("memories", "add", project, "david is MY brother")
    ended = cli("audit", project)
    ended.shows(
        "2 memories; of all records 0 were told", "Never told, the oldest first", f"project/memories/{david}.md"
    )
    ended.shows("Say the same", "To do: keep the better one")
    assert ended.out.count("To do: ") == 2
    assert "the counts are those in the store" in ended.err
    found = cli("audit", project, "--json").json
    assert [row["path"] for row in found["parts"]["never"]["rows"]].count(f"project/memories/{david}.md") == 1
    assert (found["memories"], found["parts"]["in_vain"]["found"]) == (2, 0)
    cli("audit", "nowhere").fails("space nowhere")
