"""Memories: read from anybody, completed, written so that they read back the same, weighed by age and use."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livememfs.errors import NotText, TooLarge
from livememfs.records import keys
from livememfs.records.memory import (
    CATEGORIES,
    FRESH,
    HALF_LIFE,
    KNOWN_TYPES,
    MAX_MEMORY_BYTES,
    RELATIONS,
    TOPIC_TYPES,
    TYPES,
    Memory,
    canonical_name,
    complete,
    expiry,
    sealed,
)
from livememfs.text import frontmatter

NOW = datetime(2026, 2, 20, 14, 0, tzinfo=UTC)


def written(text: str, name: str = "note.md", collection: str = keys.MEMORIES, **more: Any) -> Memory:
    """The memory of a file that somebody wrote."""
    given_ = {"path": "a/b", "written_name": name, "collection": collection, "space": "s", "now": NOW, **more}
    return complete(text.encode(), **given_)


def fronted(**fields: Any) -> str:
    return frontmatter.join(fields, "text")


moments = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).map(str.strip)
memories = st.builds(
    Memory,
    collection=st.just(keys.MEMORIES),
    type=st.sampled_from(sorted(KNOWN_TYPES)),
    content=st.text(st.characters(codec="utf-8"), max_size=40),
    importance=st.floats(0, 1).map(lambda value: round(value, 4)),
    created_at=moments,
    updated_at=moments,
    subjects=st.lists(words.filter(bool), max_size=3, unique_by=str.casefold).map(tuple),
    source=words,
    channel_id=words,
    expires_at=st.none() | moments,
    forgotten=st.booleans(),
    links=st.lists(st.tuples(st.sampled_from(RELATIONS), st.from_regex(r"[a-z0-9_]{1,9}", fullmatch=True)), unique=True)
    .map(sorted)
    .map(tuple),
    space_id=words,
    extra=st.dictionaries(st.sampled_from(["x", "agent"]), st.integers()),
)


@given(memories)
@settings(max_examples=3 * settings.default.max_examples)
def test_what_was_written_reads_back(memory: Memory) -> None:
    read = Memory.parse(memory.render(), path="p", collection=memory.collection)

    assert replace(read, links=tuple(sorted(read.links))) == memory


# --- plain text is enough -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("david", "fact"),
        ("david.md", "fact"),
        ("decision-use-s3.md", "decision"),
        ("Preference dark mode", "preference"),
        ("todo", "todo"),
        ("identity_me.txt", "identity"),
        ("decisions.md", "fact"),
        ("été", "fact"),
    ],
)
def test_the_type_is_the_names_first_word_or_a_fact(name: str, kind: str) -> None:
    memory = written("David is my brother\n", name)

    assert (memory.type, memory.importance, memory.content) == (kind, TYPES[kind], "David is my brother\n")
    assert (memory.created_at, memory.updated_at, memory.space_id) == (NOW, NOW, "s")


@pytest.mark.parametrize("kind", TOPIC_TYPES)
@pytest.mark.parametrize("form", ["type: {}", "metadata:\n  node_type: memory\n  type: {}"])
def test_a_file_that_an_agent_remembers_in_keeps_its_type(kind: str, form: str) -> None:
    memory = written(f"---\nname: tests\n{form.format(kind)}\n---\nRun the tests first.\n")

    read = Memory.parse(memory.render(), path="p", collection=keys.MEMORIES)
    assert (read.type, read.importance, read.extra["name"]) == (kind, TOPIC_TYPES[kind], "tests")


def test_a_name_gives_no_type_that_only_other_programs_have() -> None:
    assert written("How to start.", "user-guide.md").type == "fact"


@pytest.mark.parametrize(
    ("collection", "name", "kind", "category"),
    [
        (keys.SELF, "capability-reads-the-lobby.md", "identity", "capability"),
        (keys.SELF, "whatever.md", "identity", CATEGORIES[keys.SELF][0]),
        (keys.GOALS, "capability_request-web.md", "goal", "capability_request"),
        (keys.GOALS, "understanding.md", "goal", "understanding"),
        (keys.GOALS, "x", "goal", "capability_request"),
    ],
)
def test_self_and_goals_have_categories_of_their_own(collection: str, name: str, kind: str, category: str) -> None:
    memory = written("text", name, collection)

    assert (memory.type, memory.category) == (kind, category)


def test_given_front_matter_goes_before_everything() -> None:
    memory = written(
        fronted(
            type="Decision", importance=0.35, subjects="David, david, Toulouse", source="chat", channel_id="c1",
            mood="x", created_at="2025-01-01", links={"updates": ["a.md"], "part_of": "b, c", "invents": ["d"]},
        ),
        "todo-x.md",
    )  # fmt: skip

    assert (memory.type, memory.importance, memory.subjects) == ("decision", 0.35, ("David", "Toulouse"))
    assert (memory.source, memory.channel_id, memory.extra) == ("chat", "c1", {"mood": "x"})
    assert (memory.created_at.year, memory.updated_at) == (2025, NOW)
    assert memory.links == (("updates", "a"), ("part_of", "b"), ("part_of", "c"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "opinion"),
        ("importance", 7),
        ("importance", -0.1),
        ("importance", True),
        ("importance", "high"),
        ("ttl", "soon"),
        ("ttl", "0d"),
        ("expires_at", "tomorrow"),
        ("created_at", "never"),
        ("subjects", {"a": "b"}),
        ("links", 3),
    ],
)
def test_what_cannot_be_used_is_replaced_and_kept_beside(field: str, value: object) -> None:
    memory = written(fronted(**{field: value}))

    assert memory.extra == {f"{field}_given": value}
    assert (memory.type, memory.importance, memory.expires_at) == ("fact", 0.6, None)
    assert Memory.parse(memory.render(), path="p", collection=keys.MEMORIES).extra == memory.extra


def test_links_can_be_lines() -> None:
    assert written(fronted(links=["updates a.md", "related_to b", "nonsense", "loves c"])).links == (
        ("updates", "a"),
        ("related_to", "b"),
    )


def test_text_that_is_none_or_too_long_is_refused() -> None:
    with pytest.raises(NotText):
        complete(b"\xff", path="p", written_name="x", collection=keys.MEMORIES, space="s", now=NOW)
    with pytest.raises(TooLarge):
        written("x" * (MAX_MEMORY_BYTES + 1))


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttl", "lasts"),
    [
        ("7d", timedelta(days=7)),
        ("1h", timedelta(hours=1)),
        (" 30D ", timedelta(days=30)),
        ("2w", timedelta(weeks=2)),
        ("90m", timedelta(minutes=90)),
        ("5s", timedelta(seconds=5)),
        ("soon", None),
        ("d", None),
        ("-1d", None),
        ("999999w", None),
        ("", None),
    ],
)
def test_how_long_something_lasts_is_written_as_people_write_it(ttl: str, lasts: timedelta | None) -> None:
    assert expiry(ttl, NOW) == (NOW + lasts if lasts is not None else None)


@pytest.mark.parametrize("given", ["null", "", "never", None])
def test_no_ttl_means_for_ever_and_takes_an_earlier_one_away(given: object) -> None:
    before = written(fronted(ttl="7d"))
    assert before.expires_at == NOW + timedelta(days=7)

    assert written(fronted(ttl=given), previous=before).expires_at is None


def test_it_is_there_until_the_very_second() -> None:
    memory = written(fronted(ttl="1h"))
    ends = NOW + timedelta(hours=1)

    assert memory.is_there(ends - timedelta(microseconds=1))
    assert not memory.is_there(ends)


def test_an_edit_keeps_what_it_does_not_say() -> None:
    before = written(fronted(type="preference", importance=0.9, subjects=["a"], source="chat", ttl="7d", mood="x"))
    later = NOW + timedelta(days=1)

    after = written("new text", previous=before, now=later)

    assert (after.content, after.created_at, after.updated_at) == ("new text", NOW, later)
    assert (after.type, after.importance, after.subjects, after.source) == ("preference", 0.9, ("a",), "chat")
    assert (after.expires_at, after.extra) == (before.expires_at, {"mood": "x"})


def weighed(kind: str, days: float, **used: Any) -> float:
    return written(fronted(type=kind)).effective(NOW + timedelta(days=days), **used)


def test_a_memory_weighs_less_with_age_never_under_half_and_what_is_fresh_weighs_all() -> None:
    assert weighed("decision", FRESH.days) == 0.8
    assert weighed("decision", (FRESH + HALF_LIFE).days) == pytest.approx(0.6)
    assert weighed("decision", 100_000) == pytest.approx(0.4)
    assert weighed("identity", 100_000) == 1.0, "an identity does not age"


def test_use_keeps_a_memory_young_and_adds_a_little() -> None:
    used = NOW + timedelta(days=400)

    assert weighed("decision", 400, last_use=used) == 0.8
    assert 0.8 < weighed("decision", 400, uses=7, last_use=used) <= 1.0
    assert weighed("decision", 400, uses=10**9, last_use=used) == 1.0


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x", "20260220T140000_fact_0a1b2c3d.md"),
        (fronted(ttl="1h"), "20260220T140000_fact_0a1b2c3d_until_20260220T150000.md"),
    ],
    ids=["without an end", "with an end"],
)
def test_the_canonical_name_says_until_when_and_reads_back(text: str, name: str) -> None:
    memory = written(text)
    parsed = keys.MemoryName(NOW, "fact", "0a1b2c3d", memory.expires_at)

    assert canonical_name(memory, "0a1b2c3d") == name
    assert keys.MemoryName.parse(name) == parsed
    assert parsed.id == "20260220T140000_fact_0a1b2c3d"


@pytest.mark.parametrize(
    "name",
    ["x.md", "20261320T140000_fact_0a1b2c3d.md", "20260220T140000_fact_0a1b2c3d", "20260220T140000_a_b_0a1b2c3d.md"],
)
def test_other_names_are_none(name: str) -> None:
    assert keys.MemoryName.parse(name) is None


def test_a_bare_object_takes_its_time_and_type_from_its_name() -> None:
    memory = Memory.parse(b"text", path="p", collection=keys.MEMORIES, name="20260220T140000_event_0a1b2c3d.md")

    assert (memory.created_at, memory.type, memory.importance) == (NOW, "event", 0.4)


@pytest.mark.parametrize(("uses", "weight"), [(-5, 0.6), (0, 0.6), (1, 0.63), (3, 0.66), (7, 0.69), (1 << 60, 1.0)])
def test_each_doubling_of_the_uses_adds_a_twentieth_up_to_one(uses: int, weight: float) -> None:
    assert weighed("fact", 30, uses=uses) == pytest.approx(weight)


def test_a_use_before_the_last_edit_does_not_make_a_memory_older() -> None:
    assert weighed("fact", 30, last_use=NOW - timedelta(days=90)) == 0.6


def test_each_type_has_the_importance_that_the_data_model_gives_it() -> None:
    assert {kind: written(fronted(type=kind)).importance for kind in TYPES} == {
        "identity": 1.0, "goal": 0.9, "decision": 0.8, "todo": 0.8, "preference": 0.7, "fact": 0.6, "event": 0.4,
        "observation": 0.3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ttl", "lasts"),
    [
        ("90m", timedelta(minutes=90)),
        (" 1 H ", timedelta(hours=1)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("30s", timedelta(seconds=30)),
        ("999999d", timedelta(days=999_999)),
        ("9999999d", None),
        ("0d", None),
        ("999999w", None),
        ("1y", None),
        ("-1d", None),
        ("d", None),
    ],
)
def test_a_memory_lasts_a_number_of_units(ttl: str, lasts: timedelta | None) -> None:
    assert expiry(ttl, NOW) == (NOW + lasts if lasts is not None else None)


@pytest.mark.parametrize("whole", [False, True])
def test_a_memory_that_is_written_whole_inherits_nothing(whole: bool) -> None:
    before = written(fronted(subjects=["david"], ttl="1d", links={"updates": ["a"]}))
    emptied = replace(before, subjects=(), expires_at=None, links=()).render(whole=whole).decode()

    after = written(emptied, previous=before)

    kept = (("david",), before.expires_at, (("updates", "a"),))
    assert (after.subjects, after.expires_at, after.links) == (((), None, ()) if whole else kept)


def test_a_memory_whose_fields_are_too_large_is_refused_in_words() -> None:
    large = replace(written("text"), subjects=tuple(f"subject {number}" for number in range(20_000)))

    with pytest.raises(TooLarge, match="its front matter"):
        sealed(large, "alpha/memories/a.md")
