"""An observation comes back from its object as it was; odd fields of other programs do no harm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.errors import NotText
from livememfs.records import keys
from livememfs.records.observation import ICONS, TYPES, Observation, observation_id, read_list_of, type_of
from livememfs.text import frontmatter
from livememfs.text.size import tokens

AT = datetime(2026, 2, 20, 14, 30, 5, tzinfo=UTC)
NAME = "20260220T143005_bugfix_0a1b2c3d.md"

lines = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20).map(str.strip)
filled = lines.filter(bool)
lists = st.lists(filled, max_size=3, unique=True).map(tuple)
bodies = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=60)
observations = st.builds(
    Observation,
    id=st.just("0a1b2c3d"),
    session=lines,
    created_at=st.just(AT),
    type=st.sampled_from(TYPES),
    title=filled,
    subtitle=lines,
    narrative=bodies,
    facts=lists,
    concepts=lists,
    files_read=lists,
    files_modified=lists,
    project=lines,
    agent=lines,
    discovery_tokens=st.integers(0, 10**6),
    model=lines,
    events=lists,
    extra=st.dictionaries(st.sampled_from(["score", "reviewed_by"]), filled, max_size=2),
)


def parse(data: bytes | str, name: str = NAME) -> Observation:
    data = data if isinstance(data, bytes) else data.encode()
    return Observation.parse(data, path=f"alpha/observations/{name}", name=name)


def written(metadata: dict[str, Any], body: str = "It was so.\n") -> Observation:
    return parse(frontmatter.join(metadata, body))


def test_of_very_many_files_as_many_are_named_as_there_is_room_for() -> None:
    files = tuple(f"src/part{number:04}/module.py" for number in range(2_000))
    full = tuple(f"{number} " + "f" * 580 for number in range(20))
    observation = Observation("0a1b2c3d", "s", AT, "change", "a", facts=full, files_read=files, files_modified=files)
    read = parse(observation.render())

    assert read.facts == full
    for named in (read.files_read, read.files_modified):
        assert 100 < len(named) < 200
        assert named[:-1] == files[: len(named) - 1]
        assert named[-1] == f"(and {2_001 - len(named)} more)"


@given(observations)
@example(
    Observation("0a1b2c3d", "s", AT, "bugfix", "a: b, # c", facts=("1, 2 and 3", "7", "true", "- x"), events=("7",))
)
def test_an_observation_comes_back_from_its_object_as_it_was(observation: Observation) -> None:
    assert parse(observation.render(), observation.name) == observation


def test_its_object_has_the_fields_of_the_specification_and_a_name_that_sorts_by_time() -> None:
    observation = Observation("0a1b2c3d", "s-1", AT, "bugfix", "Mended", narrative="It was so.\n", facts=("a, b",))

    metadata, body = frontmatter.split(observation.render().decode())

    assert observation.name == NAME
    assert keys.parse(keys.observations_prefix("alpha") + observation.name).kind == "observation"
    assert body == "It was so.\n"
    assert list(metadata) == [
        "id", "session", "project", "agent", "type", "title", "subtitle", "facts", "concepts", "files_read",
        "files_modified", "discovery_tokens", "created_at", "created_at_epoch", "model", "events",
    ]  # fmt: skip
    assert (metadata["facts"], metadata["concepts"]) == (["a, b"], [])
    assert (metadata["created_at"], metadata["created_at_epoch"]) == ("2026-02-20T14:30:05Z", 1_771_597_805_000)


def test_the_name_is_in_utc_and_whole_seconds_wherever_it_was_made() -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=9))).replace(microsecond=999_999)

    assert Observation("0a1b2c3d", "s", elsewhere, "bugfix", "x").name == NAME


@given(st.text())
@example("Bugfix ")
@example("DECISION")
def test_a_word_that_is_no_type_is_a_discovery(word: str) -> None:
    expected = word.strip().lower() if word.strip().lower() in TYPES else "discovery"

    assert type_of(word) == expected


@pytest.mark.parametrize("given_", ["nonsense", "", 7, None, ["bugfix"]])
def test_a_type_in_an_object_that_is_none_falls_back(given_: Any) -> None:
    expected = "bugfix" if given_ in ("", None, ["bugfix"]) else "discovery"  # the name has a type where it says none

    assert written({"type": given_, "title": "x"}).type == expected


def test_fields_of_other_hands_are_kept_with_their_values() -> None:
    observation = written({"title": "x", "score": 0.5, "tags": ["a", "b"], "by": {"who": "me"}})

    assert observation.extra == {"score": 0.5, "tags": ["a", "b"], "by": {"who": "me"}}
    again, _ = frontmatter.split(observation.render().decode())
    assert {name: again[name] for name in observation.extra} == observation.extra


def test_odd_fields_are_left_out_and_the_rest_is_read() -> None:
    odd: dict[str, Any] = {"title": ["a", "list"], "subtitle": {"a": "mapping"}, "facts": 7, "concepts": {"no": "list"}}
    odd |= {"files_read": [1, None, "a.py", ["b.py"], "a.py"], "discovery_tokens": "many"}
    odd |= {"created_at": "yesterday", "session": 12}

    observation = written(odd, "The first line\nand more")

    assert (observation.title, observation.subtitle) == ("The first line", "")
    assert (observation.facts, observation.concepts, observation.files_read) == ((), (), ("1", "a.py"))
    assert (observation.discovery_tokens, observation.session) == (0, "12")
    assert observation.created_at == AT  # as its name says


@pytest.mark.parametrize("text", ["", "no front matter at all", "---\n: : :\n---\nbody", "---\nnever closed", "\ufeff"])
def test_an_object_without_usable_fields_is_still_an_observation(text: str) -> None:
    observation = parse(text)

    assert (observation.id, observation.type, observation.created_at) == ("0a1b2c3d", "bugfix", AT)
    assert observation.title == text.strip().partition("\n")[0].lstrip("\ufeff")[:160]


def test_the_name_says_which_observation_it_is_and_under_any_other_name_the_fields_do() -> None:
    read = parse(Observation("0a1b2c3d", "s", AT, "feature", "x").render(), "by-hand.md")

    assert parse(Observation("ffffffff", "s", AT, "bugfix", "x").render()).id == "0a1b2c3d"
    assert (read.id, read.type, read.created_at) == ("0a1b2c3d", "feature", AT)
    assert parse("x", "by-hand.md").created_at == datetime.fromtimestamp(0, UTC)


@given(st.binary(max_size=80))
@example(b"\xff")
def test_whatever_stands_in_an_object_is_read_or_refused(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        with pytest.raises(NotText, match=f"0x{data[error.start]:02x}"):
            parse(data)
    else:
        assert parse(data).type in TYPES


@pytest.mark.parametrize(
    ("value", "items"),
    [("a, b", ("a, b",)), (" ", ()), (["a, b", "c"], ("a, b", "c")), (None, ()), (3, ()), ([1, True], ("1", "true"))],
)
def test_a_text_alone_is_one_item_since_facts_have_commas(value: object, items: tuple[str, ...]) -> None:
    assert read_list_of(value) == items


def test_reading_all_of_it_costs_what_narrative_and_facts_do() -> None:
    observation = Observation("0a1b2c3d", "s", AT, "bugfix", "a", narrative="It expires.", facts=("After an hour",))

    assert observation.tokens == tokens("It expires.") + tokens("After an hour") == 6


def test_each_type_has_an_icon_of_one_character_of_the_basic_plane() -> None:
    assert set(ICONS) == set(TYPES)
    assert all(len(icon) == 1 and icon <= "\uffff" for icon in ICONS.values())
    assert len(set(ICONS.values())) == len(TYPES)


def test_the_id_follows_from_session_events_and_number_whatever_their_order() -> None:
    assert observation_id("s", ["a", "b"], 1) == observation_id("s", ["b", "a"], 1)
    given_ = [("s", ["a", "b"], 1), ("s", ["a", "b"], 2), ("t", ["a", "b"], 1), ("s", ["a"], 1), ("s", ["ab"], 1)]
    ids = {observation_id(*parts) for parts in given_}
    assert len(ids) == 5
    assert all(len(each) == 8 and int(each, 16) >= 0 for each in ids)
