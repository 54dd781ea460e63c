"""JSON edited as text: whatever people write it like, the value is right, and taking out gives every byte back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.agents.install.jsonedit import element_added, members_added, no_new_trailing_comma, without
from livememfs.agents.install.jsontext import JsonNode, scan
from livememfs.agents.install.parts import SettingsPart
from livememfs.agents.install.segments import found_and_taken_out, inserted, taken_out
from livememfs.agents.install.tools import AgentName, WantedFile, parts

OURS = {"ours": [{"command": "x"}], "more": {}}


# --- texts as people might write them ----------------------------------------------------------------------------

filling = st.lists(
    st.sampled_from(["", " ", "\n", "\r\n", "\t", "  ", "// , ] }\n", "// x\r\n", '/* "{ */', "/**/"]), max_size=3
).map("".join)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value with blanks, comments and trailing commas wherever they may stand."""

    def gap() -> str:
        return draw(filling)

    if isinstance(value, dict):
        items = [
            f"{gap()}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{gap()}:{gap()}{draw(written(inner))}{gap()}"
            for key, inner in value.items()
        ]
        brackets = "{}"
    elif isinstance(value, list):
        items, brackets = [f"{gap()}{draw(written(inner))}{gap()}" for inner in value], "[]"
    else:
        return json.dumps(value, ensure_ascii=False)
    trailing = f",{gap()}" if items and draw(st.booleans()) else ""
    return brackets[0] + (",".join(items) + trailing if items else gap()) + brackets[1]


@st.composite
def documents(draw: st.DrawFn, kinds: st.SearchStrategy[Any]) -> tuple[Any, str]:
    """A value and a text that holds it."""
    value = draw(kinds)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return value, mark + draw(filling) + draw(written(value)) + draw(filling)


objects = documents(st.dictionaries(st.text(), values, max_size=4))
arrays = documents(st.lists(values, max_size=4))


@given(documents(values))
def test_a_text_is_read_as_the_value_it_was_made_of(document: tuple[Any, str]) -> None:
    value, text = document

    assert scan(text).value == value


@given(objects)
def test_members_are_added_and_taken_out_to_the_byte(document: tuple[Any, str]) -> None:
    value, text = document

    after, segments = inserted(text, [members_added(text, scan(text), OURS)])

    assert scan(after).value == {**value, **OURS}
    assert list(scan(after).value)[-1] == "more"
    assert taken_out(after, segments) == text
    assert found_and_taken_out(after, segments, no_new_trailing_comma) == text
    assert scan(after).trailing_commas == scan(text).trailing_commas


@given(arrays)
def test_an_element_is_added_at_the_end_and_taken_out_to_the_byte(document: tuple[Any, str]) -> None:
    value, text = document

    after, segments = inserted(text, [element_added(text, scan(text), OURS)])

    assert scan(after).value == [*value, OURS]
    assert taken_out(after, segments) == text


@given(documents(st.lists(values, min_size=1, max_size=4)), st.data())
def test_any_element_can_be_removed_whatever_stands_around_it(document: tuple[Any, str], data: st.DataObject) -> None:
    value, text = document
    index = data.draw(st.integers(0, len(value) - 1))
    root = scan(text)

    after = without(text, [root], root.items[index])

    assert scan(after).value == value[:index] + value[index + 1 :]
    assert scan(after).trailing_commas <= root.trailing_commas


@given(objects)
def test_what_was_added_can_be_removed_by_looking_for_it(document: tuple[Any, str]) -> None:
    """Comments stay, and the value is what it was."""
    value, text = document
    after, _ = inserted(text, [members_added(text, scan(text), {"ours": OURS})])
    root = scan(after)

    removed = without(after, [root], root.items[-1])

    assert scan(removed).value == value
    assert [removed.count(mark) for mark in ("//", "/*")] == [text.count(mark) for mark in ("//", "/*")]


events = st.sampled_from(["Stop", "PostToolUse", "Other"])
others = st.dictionaries(events, st.lists(st.dictionaries(st.text(), values, max_size=2), max_size=2), max_size=3)
hooked = documents(st.fixed_dictionaries({}, optional={"a": values, "hooks": others, "z": values}))


@given(hooked)
def test_hooks_for_events_there_are_and_are_not_come_and_go_together(document: tuple[Any, str]) -> None:
    """Several insertions into one text, none of which moves another's place."""
    value, text = document
    part = next(
        part for part in parts(AgentName.GEMINI, WantedFile(space="/mnt/project")) if isinstance(part, SettingsPart)
    )

    after, segments = inserted(text, part.added(text))

    wishes = [wish for side in part.sides for wish in side.wishes(scan(text))]
    expected = {event: [*value.get("hooks", {}).get(event, []), entry] for (_, event), entry, _ in wishes}
    assert scan(after).value == {**value, "hooks": {**value.get("hooks", {}), **expected}}
    assert part.stands(after)
    assert not part.stands(text)
    assert taken_out(after, segments) == text
    assert found_and_taken_out(after, segments, part.may_cut) == text
    left = scan(part.removed(after)).value
    assert {event: entries for event, entries in left.pop("hooks", {}).items() if entries} == {
        event: entries for event, entries in value.pop("hooks", {}).items() if entries
    }
    assert left == value


# --- how it looks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "a": [\n    1\n  ]\n}'),
        ("{\n}\n", '{\n  "a": [\n    1\n  ]\n}\n'),
        ('{\n    "b": 2\n}\n', '{\n    "b": 2,\n    "a": [\n        1\n    ]\n}\n'),
        ('{\n\t"b": 2,\n}\n', '{\n\t"b": 2,\n\t"a": [\n\t\t1\n\t],\n}\n'),
        ('{\r\n  "b": 2\r\n}\r\n', '{\r\n  "b": 2,\r\n  "a": [\r\n    1\r\n  ]\r\n}\r\n'),
        ('{\n  "b": 2 // two\n}\n', '{\n  "b": 2, // two\n  "a": [\n    1\n  ]\n}\n'),
        ('{"b": 2}', '{"b": 2,\n  "a": [\n    1\n  ]\n}'),
    ],
)
def test_what_is_added_looks_like_what_is_there(before: str, after: str) -> None:
    assert inserted(before, [members_added(before, scan(before), {"a": [1]})])[0] == after


def test_a_remark_stays_with_what_it_is_about() -> None:
    text = "[\n  1, // one\n  2, // two\n  3 // three\n]"

    def less(node: JsonNode, index: int) -> str:
        return without(text, [node], node.items[index])

    assert less(scan(text), 2) == "[\n  1, // one\n  2 // two\n   // three\n]"
    assert less(scan(text), 0) == "[\n   // one\n  2, // two\n  3 // three\n]"


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a" 1}', "{a: 1}", "[1 2]", "[,]", '{"a": 1} x', '"\\x"', "'a'", "[1,,2]", "nul", "{} /* ", "[" * 300],
)
def test_what_is_no_json_is_refused_with_the_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is not JSON, line 3"):
        scan("\n\n" + text)
