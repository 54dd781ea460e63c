"""`livememfs recall`: the turn of a mount's `.recall`, without a mount."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commandline import Cli

from livememfs.text.own import HEAD

DATABASE = "We chose PostgreSQL as the database of the orders service"


@pytest.fixture(autouse=True)
def without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are enough here, and loading the model takes longer than all of this."""
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "none")


@pytest.fixture
def remembered(cli: Cli, project: str) -> str:
    """A space with a decision in it."""
    assert cli("memories", "add", project, DATABASE, "--type", "decision").code == 0
    return project


def told(cli: Cli, *arguments: str, stdin: bytes = b"") -> Any:
    """The texts that a turn tells."""
    ended = cli("recall", *arguments, "--json", stdin=stdin)
    assert ended.code == 0, ended.err
    return [memory["text"] for memory in ended.json["memories"]]


def test_the_block_is_printed_once_a_session(cli: Cli, remembered: str) -> None:
    first = cli("recall", remembered, "which database?", "--session", "one")
    assert (first.code, first.out.startswith(HEAD)) == (0, True)
    assert re.search(rf"- decision, \d{{4}}-\d\d-\d\d \d\d:\d\d: {DATABASE}\n", first.out)

    again = cli("recall", remembered, "which database?", "--session", "one")
    assert again.out == ""
    assert "told in this session" in again.err
    assert "--session NEW" in again.err
    assert DATABASE in cli("recall", remembered, "which database?", "--session", "two").out


def test_without_a_name_it_is_the_session_of_the_terminal(
    cli: Cli, remembered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(cli, remembered, "which database?") == [DATABASE]
    assert told(cli, remembered, "which database?") == []

    monkeypatch.setattr("livememfs.tree.writer.session_of", lambda _: "another terminal")
    assert told(cli, remembered, "which database?") == [DATABASE]


def test_a_message_may_come_on_standard_input_as_text_or_as_json(cli: Cli, remembered: str) -> None:
    assert told(cli, remembered, "--session", "one", stdin=b"quelle base, PostgreSQL ?") == [DATABASE]
    request = json.dumps({"session": "two", "message": "which database?", "format": "json"}).encode()
    ended = cli("recall", remembered, "--session", "one", stdin=request)
    assert [memory["text"] for memory in ended.json["memories"]] == [DATABASE], "its own session counts"


def test_a_message_of_the_system_and_an_empty_one_print_nothing(cli: Cli, remembered: str) -> None:
    for message in ('{"source": "system", "message": "Worker #42 completed"}', "  "):
        ended = cli("recall", remembered, message)
        assert (ended.code, ended.out) == (0, "")


def test_where_nothing_matches_it_says_so(cli: Cli, project: str) -> None:
    ended = cli("recall", project, "which database?")

    assert (ended.code, ended.out) == (0, "")
    assert "nothing matches" in ended.err


def test_what_is_new_can_be_that_of_one_channel(
    cli: Cli, project: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LIVEMEMFS_RECALL_CHANNEL_SCOPE", "true")
    now = datetime.now(UTC)
    folder = tmp_path / "store" / project / "memories"
    folder.mkdir()
    for number, place in enumerate(("lobby", "kitchen")):
        text = f"---\nchannel_id: {place}\ncreated_at: {now.isoformat()}\n---\nsaid in the {place}"
        (folder / f"{now:%Y%m%dT%H%M%S}_fact_0000000{number}.md").write_text(text)

    assert told(cli, project, "hello", "--channel", "lobby") == ["said in the lobby"]


def test_the_numbers_are_settings(cli: Cli, remembered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_RECALL_BUDGET", "0")

    ended = cli("recall", remembered, "which database?", "--json")

    assert (ended.json["context"], ended.json["left_out"]["budget"]) == ("", 1)


def test_a_model_that_is_down_is_not_waited_for(cli: Cli, remembered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "x")
    monkeypatch.setenv("LIVEMEMFS_EMBED_URL", "http://127.0.0.1:9/v1")

    ended = cli("recall", remembered, "which database?", "--json")

    assert DATABASE in ended.json["context"]
    assert ended.json["notes"] == ["by words alone: the model that knows meanings does not answer"]


@pytest.mark.parametrize("message", ['{"prompt": "x"}', '{"message": 3}', "{"])
def test_what_is_no_request_is_refused_and_says_what_is_wrong(cli: Cli, remembered: str, message: str) -> None:
    cli("recall", remembered, message).fails("the message:")


def test_bytes_that_are_no_text_are_refused(cli: Cli, remembered: str) -> None:
    cli("recall", remembered, stdin=b"\xff\xfe").fails("UTF-8")
