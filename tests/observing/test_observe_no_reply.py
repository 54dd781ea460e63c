"""What stands in place of the observer's reply: it is told apart, confirms no event, and nothing of it raises."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.observing.reply import ObserverReply, Verdict, read
from livememfs.records.observation import TYPES
from livememfs.testing.observer import observation, skip, summary

EVENTS = 5
WHOLE = observation(1, 2)


def reply(text: str, finish_reason: str = "stop") -> ObserverReply:
    return read(text, finish_reason, EVENTS)


HALVES = [
    "<observation>",
    "<observation><events>1</events><title>It bro",
    "<observation><title>x</title></observation",
    '<skip events="1">It bro',
    '<skip events="1"',
    "<summary><request>It bro",
    "<thinking>Let me see",
    "<think>\n" + WHOLE,
]


@pytest.mark.parametrize("text", HALVES)
def test_an_answer_that_breaks_off_is_none(text: str) -> None:
    assert reply(text).verdict in ("truncated", "prose")
    assert reply(text).accounted == frozenset()


@pytest.mark.parametrize("text", [HALVES[0], HALVES[1], HALVES[5], f"{summary()}<observation>It bro"])
def test_half_an_element_after_a_whole_one_confirms_nothing(text: str) -> None:
    assert reply(WHOLE + text) == ObserverReply("truncated")


def test_half_a_skip_after_an_observation_confirms_what_is_whole_alone() -> None:
    assert reply(WHOLE + '<skip events="3">It bro').accounted == {1, 2}


@pytest.mark.parametrize("text", [WHOLE, skip(1, 2, 3, 4, 5), "<no_summary/>", "words"])
def test_an_answer_at_the_limit_of_tokens_is_none_whatever_it_says(text: str) -> None:
    assert reply(text, finish_reason="length") == ObserverReply("truncated")


@pytest.mark.parametrize(
    "before",
    [
        "I could write:\n" + observation(2, title="A draft") + "\nbut nothing shows that.\n</think>\n\n",
        "<think>a</think>\n<think>b</think>\n",
        "Let me see.\n</thinking>\n```xml\n",
        "<reasoning>" + observation(2, title="A draft") + "</reasoning>",
    ],
)
def test_what_a_model_thinks_before_it_answers_is_no_answer(before: str) -> None:
    """Also where the beginning of the thinking is a part of the model's template and only its end is in the reply."""
    found = reply(before + observation(1, title="The port is 80"))

    assert found.verdict == "ok"
    assert [one.title for one in found.observations] == ["The port is 80"]


def test_an_observation_may_quote_the_end_of_thinking() -> None:
    found = reply(observation(1, narrative="The reply began with </think> and nothing else") + observation(2))

    assert [one.events for one in found.observations] == [(1,), (2,)]


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I am unable to observe this session.",
    "I cannot do that.",
    "I will not write this down.",
    "Désolé, je ne peux pas faire cela.",
    "Je ne peux pas répondre à cette demande.",
    "I can’t help with that.",
    "Je suis désolée, mais c'est impossible.",
]
OVERFLOWS = [
    "Prompt is too long: 210000 tokens > 200000 maximum",
    "This model's maximum context length is 8192 tokens.",
    "The context window is full.",
    "Input exceeds the context limit",
    "Request too large",
    "La requête est trop longue pour le contexte.",
    "Le contexte dépasse la limite de 8192 jetons.",
]
PROSE = [
    "I looked at the events, and they show that the login was changed.",
    "Nothing to save.",
    "Rien à retenir ici.",
    "No observations needed for these events.",
    "D'après les événements, l'agent a corrigé la connexion.",
    '{"observations": []}',
    "<result>fine</result>",
    "<observations/>",
    "skip",
]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        *((text, "refusal") for text in REFUSALS),
        *((text, "overflow") for text in OVERFLOWS),
        *((text, "prose") for text in PROSE),
        *((text, "empty") for text in ("", " \n", "<think>hm</think>", "<reasoning>\nhm\n</reasoning>\n")),
    ],
)
def test_words_in_place_of_an_answer_are_told_apart_and_confirm_nothing(text: str, verdict: Verdict) -> None:
    assert reply(text) == ObserverReply(verdict)


def test_a_long_text_about_such_things_is_prose() -> None:
    assert reply("The module checks the context window. " * 100).verdict == "prose"
    assert reply("It says I cannot log in. " * 100).verdict == "prose"


# --- whatever comes ----------------------------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        "<observation>", "</observation>", "<observation events='1 2'>", "<events>", "</events>", "1 2 9", "<title>",
        "</title>", "<facts>", '["a", "b"]', "[", "</facts>", "<item>", "</item>", "<skip>", "<skip", "/>", "</skip>",
        ' events="3"', "<summary>", "</summary>", "<request>", "</request>", "<no_summary/>", "<think>", "</think>",
        "```", "&amp;lt;", "\U0001f41b", "\ud83d", "\0",
    ]
)  # fmt: skip
anything = st.lists(pieces | st.text(alphabet=st.characters(), max_size=8), max_size=25).map("".join)


@given(anything, st.sampled_from(["stop", "length", "", "tool_calls"]), st.integers(0, 5))
@example("<observation><facts>" + "[" * 50_000 + "</facts></observation>", "stop", 1)
def test_whatever_comes_is_read_and_names_no_event_that_is_none(text: str, finish_reason: str, events: int) -> None:
    found = read(text, finish_reason, events)

    assert found.accounted <= set(range(1, events + 1))
    assert not found.accounted or found.verdict == "ok"
    assert not {*found.skipped} & {number for draft in found.observations for number in draft.events}
    for draft in found.observations:
        assert draft.events
        assert draft.title
        assert draft.type in TYPES
    texts = [text for draft in found.observations for text in (draft.title, draft.subtitle, draft.narrative)]
    texts += [fact for draft in found.observations for fact in (*draft.facts, *draft.concepts)]
    texts += [*found.skipped.values(), *(found.summary or {}).values()]
    assert not any(mark > "\uffff" or "\ud800" <= mark <= "\udfff" or mark == "\0" for text in texts for mark in text)
