"""The objects of a session: fields of other programs stay, and an odd part does not spoil the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.errors import NotText
from livememfs.records.event import Event
from livememfs.records.session import LAST_KEPT, SUMMARY_FIELDS, Meter, Session, Summary, last_prompts, with_prompts
from livememfs.text import frontmatter

AT = datetime(2026, 2, 20, 14, 0, tzinfo=UTC)
NOW = AT + timedelta(days=3)
NEW = Session("s-1", "alpha", NOW, NOW)

texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=20)
numbers = st.integers(0, 10**6)
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(
    lambda at: at.replace(microsecond=0)
)
sessions = st.builds(
    Session,
    id=texts.filter(bool),
    space=st.just("alpha"),
    created_at=moments,
    updated_at=moments,
    agent=texts,
    project=texts,
    source=texts,
    status=st.sampled_from(["active", "completed"]),
    prompts=numbers,
    observed=numbers,
    skipped=numbers,
    observations=st.lists(texts, max_size=3).map(tuple),
    summed_up=numbers,
    model=texts,
    meter=st.builds(Meter, numbers, numbers, numbers),
    extra=st.dictionaries(st.sampled_from(["reviewed", "memory_session_id"]), texts | st.lists(numbers), max_size=2),
)


def parse(data: bytes | str) -> Session:
    return Session.parse(data if isinstance(data, bytes) else data.encode(), space="alpha", session="s-1", now=NOW)


def changed(**fields: Any) -> Session:
    """A session whose object has these fields, as it is read."""
    known = replace(NEW, created_at=AT, updated_at=AT, prompts=3, agent="claude")
    return parse(json.dumps({**json.loads(known.render()), **fields}))


# --- session.json ------------------------------------------------------------------------------------------------


@given(sessions)
def test_a_session_comes_back_from_its_object_as_it_was(session: Session) -> None:
    assert parse(session.render()) == session


def test_fields_of_other_hands_are_kept() -> None:
    session = changed(reviewed={"by": ["me"]}, memory_session_id="m-1")

    assert session.extra == {"reviewed": {"by": ["me"]}, "memory_session_id": "m-1"}
    again = json.loads(replace(session, prompts=4).render())
    assert (again["reviewed"], again["memory_session_id"], again["prompts"]) == ({"by": ["me"]}, "m-1", 4)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"7", b"\xff", b"{}", b'{"created_at": "never", "updated_at": 7}', b"[" * 100_000],
    ids=["empty", "half", "list", "null", "number", "no text", "no fields", "no times", "too deep"],
)
def test_what_is_no_session_is_a_new_one(data: bytes) -> None:
    assert parse(data) == NEW


def test_a_new_session_has_had_nothing() -> None:
    assert (NEW.prompts, NEW.observed, NEW.skipped, NEW.summed_up, NEW.meter) == (0, 0, 0, 0, Meter(0, 0, 0))
    assert (NEW.status, NEW.source, NEW.observations) == ("active", "", ())


@given(st.binary(max_size=60) | st.dictionaries(texts, texts).map(json.dumps).map(str.encode))
def test_whatever_stands_in_the_object_gives_a_session_of_this_space(data: bytes) -> None:
    assert parse(data).space == "alpha"


@pytest.mark.parametrize(
    "odd",
    [
        {"prompts": "many"}, {"events": [1, 2]}, {"meter": {"calls": None}}, {"observations": "n1"},
        {"created_at": "yesterday"}, {"agent": {"name": "claude"}}, {"summed_up": [7]},
    ],
    ids=str,
)  # fmt: skip
def test_a_field_that_is_odd_costs_no_other(odd: dict[str, Any]) -> None:
    session = changed(**odd, reviewed="yes")
    given_ = {name: value for name, value in json.loads(changed(reviewed="yes").render()).items() if name not in odd}

    assert given_.items() <= json.loads(session.render()).items()


@pytest.mark.parametrize("status", ["finished", "", None, 7, ["completed"]])
def test_a_status_that_is_none_is_active(status: Any) -> None:
    session = changed(status=status)

    assert (session.status, session.prompts, session.agent) == ("active", 3, "claude")


def test_the_last_observations_are_remembered_each_once() -> None:
    names = [f"n{number}" for number in range(LAST_KEPT + 3)]

    session = NEW.with_observations(names[:10]).with_observations(["n9", *names[10:]])

    assert session.observations == tuple(names[3:])
    assert NEW.observations == ()


def test_meters_add_up_field_by_field() -> None:
    both = Meter(1, 20, 3).plus(Meter(2, 5, 7))

    assert (both, both.tokens) == (Meter(3, 25, 10), 35)


# --- prompts.ndjson ----------------------------------------------------------------------------------------------


def asked(text: str, number: int = 1) -> Event:
    return Event(f"p{number}", "s-1", "prompt", AT, text=text)


@given(st.lists(texts.filter(str.strip), max_size=5), st.integers(1, 5))
@example(["two\nlines", "a line\u2028that goes on", "next\u0085line", "page\x0cfeed", "a\r\nb"], 5)
def test_prompts_come_back_in_order_the_last_of_them(prompts: list[str], most: int) -> None:
    data = with_prompts(b"", [asked(text, number) for number, text in enumerate(prompts)])

    assert data.count(b"\n") == len(prompts)
    assert last_prompts(data, most) == prompts[-most:]


@given(st.binary(max_size=60), texts)
def test_what_stands_in_the_file_stays_byte_for_byte(before: bytes, text: str) -> None:
    data = with_prompts(before, [asked(text)])

    assert data.startswith(before)
    added = data[len(before) :]
    assert added.startswith(b"\n") is (before != b"" and not before.endswith(b"\n"))
    assert json.loads(added)["prompt"] == text


def test_a_line_says_when_and_by_which_id_it_was_asked() -> None:
    line = with_prompts(b"", [asked("Mend the login", 7)])

    assert json.loads(line) == {"at": "2026-02-20T14:00:00Z", "id": "p7", "prompt": "Mend the login"}


@pytest.mark.parametrize(
    "line",
    ["not json", "[]", "7", "null", '{"text": "x"}', '{"prompt": 7}', '{"prompt": " "}', "", "\ufffd", "[" * 100_000],
)
def test_a_line_that_is_no_prompt_is_passed_over(line: str) -> None:
    data = f'{{"prompt": "one"}}\n{line}\n{{"prompt": "two", "by": "another hand"}}\n'.encode()

    assert last_prompts(data, 9) == ["one", "two"]


@given(st.binary(max_size=80), st.integers(1, 3))
def test_whatever_stands_in_the_file_is_read(data: bytes, most: int) -> None:
    assert len(last_prompts(data, most)) <= most


# --- summary.md --------------------------------------------------------------------------------------------------

plain = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=30).map(str.strip)
said_ = st.lists(plain | st.just("## Findings"), max_size=3).map("\n".join).map(str.strip)


@given(st.lists(said_, min_size=5, max_size=5), moments, plain)
@example(["", "## Findings\n- one\n\n## More\n- two", "", "x", "- y"], AT, "s-1")
def test_a_summary_comes_back_from_its_object_as_it_was(said: list[str], at: datetime, session: str) -> None:
    summary = Summary(session, at, *said, project="/home/me/p", model="scripted")

    assert Summary.parse(summary.render(), path="x") == summary


def test_its_object_has_a_heading_for_each_field_that_says_something() -> None:
    summary = Summary("s-1", AT, request="Mend it", next_steps="- rest\n- sleep", model="builtin")

    metadata, body = frontmatter.split(summary.render().decode())

    assert body == "## Request\n\nMend it\n\n## Next steps\n\n- rest\n- sleep\n"
    assert metadata == {"session": "s-1", "project": "", "created_at": "2026-02-20T14:00:00Z", "model": "builtin"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", {}),
        ("words without headings", {}),
        ("## Request\nx\n## Else\ny\n## LEARNED  \nz", {"request": "x\n## Else\ny", "learned": "z"}),
        ("---\ncreated_at: yesterday\nsession: [a, b]\n---\n## Completed\n\nall", {"completed": "all"}),
        ("### Request\nx", {}),
    ],
)
def test_an_object_of_another_hand_is_read_as_far_as_it_can_be(text: str, said: dict[str, str]) -> None:
    summary = Summary.parse(text.encode(), path="x")

    assert {name: getattr(summary, name) for name in SUMMARY_FIELDS} == {**dict.fromkeys(SUMMARY_FIELDS, ""), **said}
    assert summary.created_at == datetime.fromtimestamp(0, UTC)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(NotText):
        Summary.parse(b"\xff", path="x")
