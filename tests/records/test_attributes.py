"""The fields of a memory as attributes: a shown value can be set again, and a value of no use is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.records import keys
from livememfs.records.attributes import SETTABLE, changed, shown, with_links
from livememfs.records.memory import KNOWN_TYPES, MAX_LINKS, RELATIONS, Memory, complete

NOW = datetime(2026, 2, 20, 14, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
names = st.text("ab0_", min_size=1, max_size=9)
memories = st.builds(
    Memory,
    collection=st.just(keys.MEMORIES),
    type=st.sampled_from(sorted(KNOWN_TYPES)),
    content=st.text(max_size=20),
    importance=st.integers(0, 100).map(lambda share: share / 100),
    created_at=st.just(NOW),
    updated_at=st.just(NOW),
    subjects=st.lists(names, max_size=3, unique=True).map(tuple),
    expires_at=st.none() | st.just(LATER),
    links=st.lists(st.tuples(st.sampled_from(RELATIONS), names), max_size=4, unique=True).map(
        lambda links: tuple(sorted(links))  # as they are stored: one relation after the other
    ),
)


@given(memories)
def test_setting_an_attribute_to_what_it_is_changes_nothing(memory: Memory) -> None:
    for name, text in shown(memory, 0.5).items():
        if name in SETTABLE:
            after = changed(memory, name, text, NOW)
            assert sorted(after.links) == sorted(memory.links)
            assert shown(after, 0.5).keys() == shown(memory, 0.5).keys()
            if name not in RELATIONS:  # those go to the end
                assert after == memory


@given(memories, st.sampled_from([name for name in SETTABLE if name != "type"]))
def test_what_was_set_and_what_was_removed_survives_a_new_version(memory: Memory, name: str) -> None:
    """A version without the field would inherit it from the version before."""
    after = changed(memory, name, None, LATER)
    where = {"path": "x", "written_name": "x", "collection": keys.MEMORIES, "space": ""}
    stored = complete(after.render(whole=True), now=LATER, previous=memory, **where)

    assert stored == after
    assert name == "importance" or name not in shown(stored, 0.5)


FACT = Memory(keys.MEMORIES, "fact", "text", 0.6, NOW, NOW)


def test_links_are_no_news_and_fields_are() -> None:
    assert changed(FACT, "updates", "other", LATER).updated_at == NOW
    assert changed(FACT, "importance", "0.7", LATER).updated_at == LATER
    assert changed(FACT, "links", "Updates ../x/other.md", LATER).links == (("updates", "other"),)


def test_without_an_importance_of_its_own_a_memory_has_that_of_its_type() -> None:
    for kind, usual in KNOWN_TYPES.items():
        assert changed(replace(FACT, type=kind, importance=0.1), "importance", None, LATER).importance == usual


def test_a_memory_has_no_more_links_than_so_many() -> None:
    most = [("updates", f"m{number}") for number in range(MAX_LINKS)]

    assert len(with_links(FACT, [*most, *most]).links) == MAX_LINKS
    with pytest.raises(ValueError, match="257 links"):
        with_links(FACT, [*most, ("part_of", "m")])


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("importance", "2", "a number from 0 to 1"),
        ("importance", "nan", "a number from 0 to 1"),
        ("type", "poem", "one of identity"),
        ("type", None, "a memory has a type"),
        ("expires_at", "soon", "a time such as"),
        ("links", "updates", "not a relation and a name"),
        ("links", "likes x", "the relations are related_to"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(name: str, text: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        changed(FACT, name, text, NOW)
