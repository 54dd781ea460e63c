"""What a tool says of its parameters, and what it answers to arguments that it cannot take."""

from __future__ import annotations

from typing import Any

import pytest

from livememfs.errors import BadRequest
from livememfs.memories.parameters import (
    ITEMS,
    LARGEST_NUMBER,
    MOST_FAULTS,
    NAME,
    SHOWN,
    Parameter,
    checked,
    schema,
)

TEXT, LIST, ONE, SOME = (
    Parameter("text"),
    Parameter("list", kind="array"),
    Parameter("one", one_of=("red", "blue")),
    Parameter("some", kind="array", one_of=("red", "blue")),
)
COUNT, SHARE, LINES, YES = (
    Parameter("count", kind="integer", least=1, most=20),
    Parameter("share", kind="number", most=1),
    Parameter("lines", kind="integers", items=3),
    Parameter("yes", kind="boolean"),
)


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        (TEXT, {"type": "string", "maxLength": 255}),
        (Parameter("x", "what it is", longest=7), {"type": "string", "description": "what it is", "maxLength": 7}),
        (ONE, {"type": "string", "enum": ["red", "blue"]}),
        (LIST, {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 255}}),
        (SOME, {"type": "array", "maxItems": 64, "items": {"type": "string", "enum": ["red", "blue"]}}),
        (COUNT, {"type": "integer", "minimum": 1, "maximum": 20}),
        (Parameter("x", kind="integer"), {"type": "integer", "minimum": 0, "maximum": 1_048_576}),
        (SHARE, {"type": "number", "minimum": 0, "maximum": 1}),
        (LINES, {"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 0, "maximum": 1_048_576}}),
        (YES, {"type": "boolean"}),
    ],
    ids=lambda value: value.name if isinstance(value, Parameter) else "",
)
def test_a_schema_says_kind_values_and_limits(parameter: Parameter, said: dict[str, Any]) -> None:
    assert parameter.schema() == said
    assert schema([parameter]) == {"type": "object", "properties": {parameter.name: said}, "required": []}


def test_a_schema_says_what_must_be_given_and_the_check_holds_to_it() -> None:
    two = (Parameter("a", required=True), Parameter("b"))

    assert schema(two)["required"] == ["a"]
    assert not Parameter("a").required
    assert checked("tool", two, {"a": "x"}, path="") == {"a": "x"}
    with pytest.raises(BadRequest, match="a is missing"):
        checked("tool", two, {"a": None, "b": "x"}, path="")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (TEXT, "x" * NAME),
        (TEXT, "tab\t, line\r\n and page\f\x85"),
        (TEXT, "\U0001f600 \ud7ff\ue000"),
        (ONE, "red"),
        (LIST, []),
        (LIST, ["x" * NAME] * ITEMS),
        (LIST, ("a", "b")),
        (SOME, ["blue", "red"]),
        (SOME, []),
        (COUNT, 1),
        (COUNT, 20),
        (Parameter("x", kind="integer"), LARGEST_NUMBER),
        (SHARE, 0),
        (SHARE, 1),
        (SHARE, 0.5),
        (LINES, [0, LARGEST_NUMBER, 3]),
        (YES, True),
        (YES, False),
    ],
)
def test_nothing_is_wrong_with_a_value_within_the_limits(parameter: Parameter, value: Any) -> None:
    assert parameter.fault(value) == ""
    assert checked("tool", [parameter], {parameter.name: value}, path="p") == {parameter.name: value}


@pytest.mark.parametrize(
    ("parameter", "written", "meant"),
    [
        (COUNT, 2.0, 2),
        (COUNT, "7", 7),
        (SHARE, "0.5", 0.5),
        (YES, "True", True),
        (YES, "false", False),
        (Parameter("x", kind="texts"), "a, b,", ["a", "b"]),
        (Parameter("x", blank=True), "", ""),
    ],
)
def test_a_value_that_is_written_as_text_is_read(parameter: Parameter, written: Any, meant: Any) -> None:
    assert checked("tool", [parameter], {parameter.name: written}, path="p") == {parameter.name: meant}


@pytest.mark.parametrize("parameter", [TEXT, COUNT, SHARE, YES, LIST, Parameter("x", kind="texts")])
def test_an_empty_text_says_nothing(parameter: Parameter) -> None:
    assert checked("tool", [parameter], {parameter.name: ""}, path="p") == {}


@pytest.mark.parametrize(
    ("parameter", "value", "said"),
    [
        (TEXT, 1, "text is no string"),
        (TEXT, "x" * 256, "text has 256 characters, and takes 255"),
        (TEXT, "a\ud800b", "text has half of a character (a lone surrogate), which no file can hold"),
        (TEXT, "\udfff", "text has half of a character (a lone surrogate), which no file can hold"),
        (TEXT, "a\x0bb", "text has the control character U+000B, which no text has"),
        (TEXT, "a\x7fb", "text has the control character U+007F, which no text has"),
        (Parameter("text", longest=2_000), "x" * 2_001, "text has 2,001 characters, and takes 2,000"),
        (ONE, "green", "one is one of red, blue, not 'green'"),
        (ONE, "g" * 200, f"one is one of red, blue, not '{'g' * SHOWN}'"),
        (ONE, "é", r"one is one of red, blue, not '\xe9'"),
        (LIST, "a", "list is no list of strings"),
        (LIST, ["a", 1], "list is no list of strings"),
        (LIST, ["a"] * 65, "list has 65 values, and takes 64"),
        (LIST, ["a", "x" * 256, "b"], "list has 256 characters, and takes 255"),
        (LIST, ["a", "\x01"], "list has the control character U+0001, which no text has"),
        (SOME, ["red", "green", "grey"], "some is some of red, blue, not 'green'"),
        (COUNT, 0, "count is 1 to 20, not 0"),
        (COUNT, 21, "count is 1 to 20, not 21"),
        (COUNT, True, "count is no integer"),
        (COUNT, 2.5, "count is no integer"),
        (SHARE, 1.5, "share is 0 to 1, not 1.5"),
        (SHARE, float("nan"), "share is 0 to 1, not nan"),
        (SHARE, float("-inf"), "share is 0 to 1, not -inf"),
        (SHARE, (1 << 64) - 1, f"share is 0 to 1, not {(1 << 64) - 1}"),
        (SHARE, 1 << 64, "share is 0 to 1, not one that long"),
        (SHARE, -(1 << 64), "share is 0 to 1, not one that long"),
        (SHARE, "one", "share is no number"),
        (LINES, 1, "lines is no list of integers"),
        (LINES, [1, True], "lines is no list of integers"),
        (LINES, [1, 2.0], "lines is no list of integers"),
        (LINES, [1, 2, 3, 4], "lines has 4 values, and takes 3"),
        (Parameter("lines", kind="integers", most=9), [1, 10], "lines is 0 to 9, not 10"),
        (YES, 1, "yes is no boolean"),
        (YES, "perhaps", "yes is no boolean"),
    ],
)
def test_what_is_wrong_with_a_value_is_said_in_words(parameter: Parameter, value: Any, said: str) -> None:
    assert parameter.fault(value) == said
    with pytest.raises(BadRequest) as refused:
        checked("tool", [parameter], {parameter.name: value}, path="alpha")
    assert refused.value.values["detail"] == said
    assert refused.value.values["path"] == "alpha: tool"


def test_all_that_is_wrong_is_said_at_once_and_what_the_tool_takes() -> None:
    parameters = (Parameter("a", required=True), COUNT, Parameter("space"))

    with pytest.raises(BadRequest) as refused:
        checked("tool", parameters, {"b" * 200: 1, "count": 0, "space": 3}, path="", hidden="space")

    error = refused.value
    assert error.values["detail"] == (
        f"{'b' * SHOWN} is none of its parameters; a is missing; count is 1 to 20, not 0; space is no string"
    )
    assert (error.values["path"], error.advice()) == ("tool", "tool takes a, count")


def test_a_tool_without_parameters_says_so_and_a_message_has_an_end() -> None:
    with pytest.raises(BadRequest) as refused:
        checked("tool", (), {f"x{number}": 1 for number in range(MOST_FAULTS + 1)}, path="")

    assert refused.value.advice() == "tool takes nothing"
    assert str(refused.value).count("is none of its parameters") == MOST_FAULTS
    assert checked("tool", (), {"x": None}, path="") == {}
