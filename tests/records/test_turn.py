"""A turn as hooks and shells write it: any request gives one turn or is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.errors import BadRequest, NotText
from livememfs.records.turn import FIELDS, Turn

any_text = st.text(alphabet=st.characters(exclude_categories=()))
values = st.one_of(any_text, st.none(), st.integers(), st.lists(any_text, max_size=2))
objects = st.dictionaries(st.one_of(st.sampled_from(FIELDS), any_text), values, max_size=6)


def parse(request: bytes | str) -> Turn:
    return Turn.parse(request if isinstance(request, bytes) else request.encode(), path="alpha/.recall")


def written(*requests: dict[str, Any]) -> str:
    """Requests as a hook writes them, one to a line."""
    return "\n".join(json.dumps(request) for request in requests)


def test_plain_text_is_a_message() -> None:
    assert parse("which database?\n") == Turn("which database?")


def test_json_says_whose_message_it_is_and_how_to_answer() -> None:
    request = {"session": "s1", "message": "hi", "source": "user", "channel_id": "lobby", "format": "json"}

    assert parse(written(request)) == Turn("hi", "s1", "user", "lobby", json=True)


def test_lines_and_objects_that_come_together_are_one_turn() -> None:
    together = Turn("En fait j'ai changé d'avis on va utiliser MySQL à la place")

    assert parse("En fait\nj'ai changé d'avis\non va utiliser MySQL à la place\n") == together
    messages = ("En fait", "j'ai changé d'avis", "on va utiliser MySQL à la place")
    assert parse(written(*({"message": message} for message in messages))) == together
    assert parse("".join(json.dumps({"message": message}) for message in messages)) == together


def test_what_the_last_object_says_counts_and_what_no_user_said_is_left_out() -> None:
    request = written(
        {"session": "a", "message": "one", "format": "text"},
        {"source": "system", "message": "Worker #42 completed", "session": "worker"},
        {"session": "b", "message": "two", "channel_id": None},
    )

    assert parse(request) == Turn("one two", "b")


def test_messages_of_the_system_alone_stay_the_systems() -> None:
    assert parse(written({"source": "system", "message": "done"})) == Turn("done", source="system")


def test_a_turn_without_a_session_takes_the_one_it_is_given() -> None:
    assert Turn("hi").of("terminal 7") == Turn("hi", "terminal 7")
    assert Turn("hi", "mine").of("terminal 7") == Turn("hi", "mine")


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ('{"message": "x", "prompt": "y"}', "unknown: prompt"),
        ('{"session": "x"}', "no text: message"),
        ('{"message": 3}', "no text: message"),
        ('{"message": "x", "session": ["y"]}', "no text: session"),
        ('{"message": "x", "format": "yaml"}', "format is json or text"),
        ('{"message": "x"', "begins like JSON but is no JSON"),
        ('{"message": "x"} and more', "begins like JSON but is no JSON"),
        ('{"message": "x"} ["y"]', "a JSON object, or text"),
        ("{" * 100_000, "begins like JSON but is no JSON"),
        ('{"message": ' + "[" * 100_000, "begins like JSON but is no JSON"),
        ('{"message": "x", "a": ' + "9" * 10_000 + "}", "begins like JSON but is no JSON"),
    ],
)
def test_json_that_is_no_turn_is_refused_and_says_what_is_wrong(request_: str, named: str) -> None:
    with pytest.raises(BadRequest, match=named) as refused:
        parse(request_)

    assert "alpha/.recall" in str(refused.value)


@pytest.mark.parametrize("data", [b"\xff", "é".encode("latin-1"), b"\xed\xa0\x80", '{"message": "é"}'.encode("utf-16")])
def test_what_is_not_utf_8_is_refused(data: bytes) -> None:
    with pytest.raises(NotText):
        parse(data)


def test_half_a_character_becomes_a_mark_since_nothing_could_store_it() -> None:
    turn = parse(r'{"message": "a \ud83d b \ud83d\ude00", "session": "\udc00", "channel_id": "\ud800x"}')

    assert turn == Turn("a \ufffd b \U0001f600", "\ufffd", channel="\ufffdx")


def test_a_message_of_a_mebibyte_is_a_message() -> None:
    assert parse("x" * (1 << 20)).message == "x" * (1 << 20)
    assert len(parse(written({"message": "line\n" * 200_000})).message) == 999_999


def test_a_null_character_is_kept_as_any_other() -> None:
    assert parse(b"a\0b") == parse(r'{"message": "a\u0000b"}') == Turn("a\0b")


@given(st.binary())
@example(b"")
@example(b"{")
@example(b" \n{}")
@example(b'{"message": "x"}\0')
def test_any_bytes_give_a_turn_or_are_refused(request: bytes) -> None:
    try:
        turn = parse(request)
    except (BadRequest, NotText):
        return
    turn.message.encode()


@given(st.lists(objects, min_size=1, max_size=3))
@example([{"message": None}])
@example([{"message": "x", "session": None}])
def test_any_objects_give_a_turn_of_whole_characters_or_are_refused(requests: list[dict[str, Any]]) -> None:
    try:
        turn = parse(written(*requests))
    except BadRequest:
        return
    for text in (turn.message, turn.session, turn.source, turn.channel):
        text.encode()
