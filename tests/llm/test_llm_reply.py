"""The extractor finds one JSON object in what models really send, and refuses whatever can be read in two ways."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.errors import ReplyRefused
from livememfs.llm.reply import extract_json

WANTED = {"a": 1, "text": '```json\n{"x": 1}\n``` <think> </think> {name}'}
JSON = json.dumps(WANTED)

GOOD = {
    "bare": JSON,
    "white space": f"\n\n  {JSON}\n\t",
    "indented": json.dumps(WANTED, indent=2),
    "byte order mark": f"\ufeff{JSON}",
    "fence with language": f"```json\n{JSON}\n```",
    "fence without language": f"```\n{JSON}\n```",
    "prose before": f"Here is the result:\n\n{JSON}",
    "prose after": f"{JSON}\n\nTell me when you need more.",
    "prose with a placeholder": f"I filled in {{name}} and {{ other }}.\n{JSON}",
    "fence in prose": f"Sure.\n```json\n{JSON}\n```\nDone.",
    "reasoning": f'<think>maybe {{"a": 2}}?</think>{JSON}',
    "reasoning in capitals": f"<THINK>\nhm\n</THINK>\n\n{JSON}",
    "reasoning twice": f"<think>one</think>\n<thinking>two</thinking>\n{JSON}",
    "reasoning whose start was in the template": f'hm, {{"a": 2}} perhaps\n</think>\n{JSON}',
    "empty reasoning": f"<think></think>{JSON}",
    "reasoning and fence": f"<think>x</think>\n```json\n{JSON}\n```",
}

BAD = {
    "nothing": ("", "no JSON object"),
    "prose": ("I could not do this.", "no JSON object"),
    "array": ('[1, 2, "x"]', "no JSON object"),
    "object in an array": ('[{"a": 1}]', "something larger"),
    "array of objects": ('[{"a": 1}, {"b": 2}]', "something larger"),
    "string with JSON in it": (json.dumps(JSON), "no JSON object"),
    "two objects": ('{"a": 1}\n{"b": 2}', "2 JSON objects"),
    "the same twice": (f"{JSON}\n{JSON}", "2 JSON objects"),
    "truncated in a string": ('{"a": "begins', "truncated"),
    "truncated after a key": ('{"a": 1, "b":', "truncated"),
    "truncated in a list": ('{"a": [1, 2', "truncated"),
    "truncated in a fence": ('```json\n{"a": [1, 2\n```', "truncated"),
    "only the first bracket": ("{", "truncated"),
    "one bracket too many": ('{"a": 1}}', "something larger"),
    "comma at the end": ('{"a": 1,}', "invalid"),
    "comment": ('{"a": 1 // one\n}', "invalid"),
    "single quotes": ("{'a': 1}", "no JSON object"),
    "single quotes around an object": ("{'a': {\"b\": 1}}", "something larger"),
    "raw line end in a string": ('{"a": "x\ny"}', "invalid"),
    "NaN": ('{"a": NaN}', "NaN"),
    "infinity": ('{"a": -Infinity}', "Infinity"),
    "duplicate key": ('{"a": 1, "a": 2}', '"a" is there twice'),
    "duplicate key inside": ('{"o": {"k": 1, "k": 1}}', '"k" is there twice'),
    "reasoning without end": ('<think>so {"a": 1}', "never closed"),
    "reasoning without end, other case": ('<Thinking >so {"a": 1}', "never closed"),
    "nested too deeply": ('{"a":' * 100_000, "nested too deeply"),
    "a number too long": ('{"a": ' + "9" * 5_000 + "}", "invalid"),
}


@pytest.mark.parametrize("name", GOOD)
def test_the_one_object_is_found(name: str) -> None:
    assert extract_json(GOOD[name]) == WANTED


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_exactly_one_object_is_refused(name: str) -> None:
    text, reason = BAD[name]
    with pytest.raises(ReplyRefused, match=reason):
        extract_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(max_size=8), json_values, max_size=5),
    st.sampled_from(["{}", "```json\n{}\n```", "So:\n{}"]),
)
def test_any_object_comes_back_whatever_its_strings_hold(value: dict[str, object], frame: str) -> None:
    assert extract_json(frame.replace("{}", json.dumps(value, ensure_ascii=False), 1)) == value


@given(st.dictionaries(st.text(max_size=8), json_values, min_size=1, max_size=4), st.data())
def test_a_truncated_object_is_never_taken(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ReplyRefused):
        extract_json(text[:cut])


@given(st.text(max_size=200))
def test_any_text_gives_an_object_or_a_refusal(text: str) -> None:
    with suppress(ReplyRefused):
        assert isinstance(extract_json(text), dict)
