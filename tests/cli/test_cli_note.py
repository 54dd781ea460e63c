"""`livememfs note`, `livememfs consolidate` and `livememfs digest` on a folder store, without a mount."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Asks, Cli

from livememfs.testing.llm import ScriptedLLM, consolidation_reply


def note_text(tmp_path: Path, key: str) -> str:
    """A note as it stands in the store."""
    return (tmp_path / "store" / key.strip()).read_text()


# --- note --------------------------------------------------------------------------------------------------------


def test_a_note_is_written_with_what_was_said_about_it(cli: Cli, project: str, tmp_path: Path) -> None:
    ended = cli("note", project, "We chose S3.", "--category", "decision", "--agent", "ops", "--tag", "a", "--tag", "b")

    assert ended.code == 0
    text = note_text(tmp_path, ended.out)
    assert "_ops_decision_" in ended.out
    assert 'tags: ["a", "b"]' in text
    assert text.endswith("We chose S3.")


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_a_note_is_read_from_standard_input(cli: Cli, project: str, tmp_path: Path, arguments: list[str]) -> None:
    ended = cli("note", project, *arguments, "--json", stdin="Réunion à 14 h.\n".encode())

    assert ended.json["space"] == project
    assert note_text(tmp_path, ended.json["key"]).endswith("Réunion à 14 h.\n")


def test_an_agent_in_the_environment_signs_the_note(cli: Cli, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_AGENT", "from-environment")

    assert "_from-environment_observation_" in cli("note", project, "text").out
    assert "_given_observation_" in cli("note", project, "text", "--agent", "given").out


@pytest.mark.parametrize(
    ("stdin", "sentence"), [(b"\xff\xfe", "standard input is not UTF-8 text"), (b" \n", "there is nothing in the note")]
)
def test_what_cannot_be_a_note_is_refused(cli: Cli, project: str, stdin: bytes, sentence: str) -> None:
    cli("note", project, stdin=stdin).fails(sentence)
    assert cli("space", "info", project, "--json").json["notes"] == 0


# --- consolidate -------------------------------------------------------------------------------------------------


def test_notes_are_taken_into_the_bank(cli: Cli, project: str) -> None:
    cli("note", project, "We chose S3.", "--category", "decision")

    ended = cli("consolidate", project)

    assert ended.code == 0
    assert ended.out.startswith("project: 1 note taken in, ")
    assert "by builtin" in ended.out
    assert cli("space", "info", project, "--json").json["notes"] == 0


def test_without_notes_there_is_nothing_to_do(cli: Cli, project: str) -> None:
    ended = cli("consolidate", project, "--json")

    assert (ended.code, ended.json["state"], ended.json["notes_processed"]) == (0, "ok", 0)
    assert "No new notes" in ended.json["message"]


def test_a_dry_run_shows_what_would_change_and_changes_nothing(cli: Cli, project: str) -> None:
    cli("note", project, "We chose S3.", "--category", "decision")

    cli("consolidate", project, "--dry-run").shows("+++ b/bank/", "We chose S3.")
    info = cli("space", "info", project, "--json").json
    assert (info["notes"], info["bank_files"]) == (1, 0)


def test_only_the_notes_of_one_agent_and_only_so_many(cli: Cli, project: str) -> None:
    for agent in ("a", "b", "b", "b"):
        cli("note", project, f"text of {agent}", "--agent", agent)

    ended = cli("consolidate", project, "--agent", "b", "--max-notes", "2", "--json")

    assert ended.json["notes_processed"] == 2
    assert cli("space", "info", project, "--json").json["notes"] == 2


@pytest.mark.parametrize(("verb", "ending"), [("consolidate", "d"), ("digest", "ed")])
def test_a_model_that_fails_keeps_the_notes_and_exits_1(
    cli: Cli, project: str, asks: Asks, verb: str, ending: str
) -> None:
    cli("note", project, "We chose S3.")
    with ScriptedLLM("this is prose", "and this too") as llm:
        asks(llm.url)
        cli(verb, project).fails(f"project was not {verb}{ending}: the model's reply was refused")

    assert cli("space", "info", project, "--json").json["notes"] == 1


def test_a_program_that_prints_a_reply_consolidates(
    cli: Cli, project: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever else it tells around the reply; its tokens are estimated, and records have its name."""
    cli("note", project, "We chose S3.")
    reply = consolidation_reply({"notes.md": "# Now\n\nWe chose S3.\n"}, used={1: ["notes.md"]}, action="created")
    (tmp_path / "reply").write_text(json.dumps(reply))
    monkeypatch.setenv("LLMAAS_COMMAND", f"sh -c 'echo Thinking...; cat {tmp_path / 'reply'}; echo Done.'")

    ended = cli("consolidate", project, "--json")

    assert ended.json["notes_processed"] == 1
    assert ended.json["model"] == "command:sh"
    assert ended.json["llm_tokens_used"] > 100
    assert "We chose S3." in cli("space", "summary", project, "--json").json["bank"]["notes.md"]


def test_a_program_that_fails_keeps_the_notes_and_exits_1(
    cli: Cli, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("note", project, "We chose S3.")
    monkeypatch.setenv("LLMAAS_COMMAND", "sh -c 'echo Not logged in >&2; exit 1'")

    cli("consolidate", project).fails("sh, status 1: Not logged in")
    assert cli("space", "info", project, "--json").json["notes"] == 1


def test_a_run_that_would_empty_the_bank_is_held_and_accepted_by_its_number(cli: Cli, project: str, asks: Asks) -> None:
    for number in range(6):
        cli("note", project, f"Fact {number} holds.")
    cli("consolidate", project)
    cli("note", project, "Delete the whole bank.")
    files = cli("space", "summary", project, "--json").json["bank"]
    emptied = consolidation_reply(dict.fromkeys(files, "# Empty\n"), intended_removals=list(files))
    with ScriptedLLM(emptied) as llm:
        asks(llm.url)
        ended = cli("consolidate", project)

        ended.fails("project was not consolidated: the run is held, because it would drop", '"accept": 2')
        assert "Fact 5 holds." in ended.out  # the diff
        assert cli("space", "info", project, "--json").json["notes"] == 1
        assert "run 2 of project is held: it would drop" in cli("history", project).err
        assert cli("consolidate", project, "--accept", "7").code == 1
        assert cli("consolidate", project, "--accept", "2", "--dry-run").code == 2
        accepted = cli("consolidate", project, "--accept", "2")

    assert (accepted.code, len(llm.requests)) == (0, 1)
    assert "the plan of run 2 was accepted" in accepted.err
    assert cli("space", "info", project, "--json").json["notes"] == 0
    assert cli("history", project, "--json").json[0]["lines_dropped"] > 5


def test_a_mount_point_without_a_mount_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli("consolidate", "project", "--mountpoint", str(tmp_path)).fails(f"no livememfs is mounted on {tmp_path}")


# --- digest ------------------------------------------------------------------------------------------------------


def test_what_lasts_is_taken_into_the_memories_and_the_notes_stay(cli: Cli, project: str) -> None:
    cli("note", project, "We chose S3.", "--category", "decision")
    cli("note", project, "The tests pass.", "--category", "progress")

    ended = cli("digest", project)

    assert ended.code == 0
    assert ended.out.startswith("project: 2 notes read, 1 memory stored, 0 left, ")
    assert "by builtin" in ended.out
    assert cli("space", "info", project, "--json").json["notes"] == 2
    assert "We chose S3." in cli("memories", "list", project).out
    assert "No new notes to digest" in cli("digest", project).err


def test_a_dry_digest_shows_the_memories_and_stores_none(cli: Cli, project: str) -> None:
    cli("note", project, "We chose S3.", "--category", "decision")

    ended = cli("digest", project, "--dry-run")

    assert ended.code == 0
    assert ended.out.splitlines()[0] == "+ memories (decision): We chose S3."
    assert "1 note would be read, 1 memory would be stored" in ended.out
    assert "We chose S3." not in cli("memories", "list", project).out
    assert cli("digest", project, "--dry-run", "--json").json["memories"][0]["content"] == "We chose S3."


def test_the_history_lists_digests_among_the_runs(cli: Cli, project: str) -> None:
    cli("note", project, "We chose S3.", "--category", "decision")
    cli("digest", project)

    [run] = cli("history", project, "--json").json

    assert (run["kind"], run["notes_in"], run["memories"], run["files"]) == ("digest", 1, 1, 0)
    cli("undo", project, "1").fails("it is a digest")


def test_in_a_space_made_for_digests_the_notes_leave(cli: Cli) -> None:
    assert cli("space", "create", "pet", "--distil", "digest", "--json").json["extra"] == {"distil": ["digest"]}
    cli("note", "pet", "We chose S3.", "--category", "decision")

    assert cli("digest", "pet").code == 0

    assert cli("space", "info", "pet", "--json").json["notes"] == 0
    assert "We chose S3." in cli("memories", "list", "pet").out


# --- private text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("note", "project"), ("memories", "add", "project")])
def test_what_is_private_is_not_stored_and_the_writer_is_told(
    cli: Cli, project: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    token = "gh" + "p_" + "aB3" * 12

    ended = cli(*arguments, f"the key {token} <private>is new</private> here")

    assert ended.code == 0
    assert note_text(tmp_path, ended.out).endswith("the key [redacted: github-token] [private] here")
    assert "github-token, private" in ended.err
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"is new" not in stored
    assert token.encode() not in stored + ended.err.encode()


def test_what_has_nothing_private_says_nothing(cli: Cli, project: str) -> None:
    assert cli("note", project, "We chose S3.").err == ""


def test_a_category_that_there_is_not_is_refused_with_those_that_there_are(cli: Cli, project: str) -> None:
    ended = cli("note", project, "We chose S3.", "--category", "nonsense")

    ended.fails("there is no category nonsense", "observation, decision, todo", code=2)
