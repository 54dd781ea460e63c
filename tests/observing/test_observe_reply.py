"""The observer's reply as models write it: observations, skips and summaries, one test for each shape."""

from __future__ import annotations

import pytest

from livememfs.observing.reply import Draft, ObserverReply, read
from livememfs.records.observation import MAX_ITEM, MAX_ITEMS, MAX_TEXT, MAX_TITLE
from livememfs.records.session import SUMMARY_FIELDS
from livememfs.testing.observer import observation, skip, summary
from livememfs.text.own import LEFT_OUT, fenced

EVENTS = 5
WHOLE = observation(1, 2, title="Tokens last a day")
DRAFT = Draft(
    (1, 2),
    "discovery",
    "Tokens last a day",
    "About Tokens last a day",
    "Tokens last a day. It was seen in the events.",
    ("Tokens last a day is a fact",),
    ("how-it-works",),
)


def reply(text: str, events: int = EVENTS, finish_reason: str = "stop") -> ObserverReply:
    return read(text, finish_reason, events)


def one(text: str, events: int = EVENTS) -> Draft:
    """The only observation of a reply."""
    found = reply(text, events)
    assert found.verdict == "ok"
    (draft,) = found.observations
    return draft


def within(*parts: str) -> Draft:
    """The observation that has these elements."""
    return one(f"<observation><events>1</events>{''.join(parts)}</observation>")


# --- observations ------------------------------------------------------------------------------------------------


def test_an_observation_has_what_its_elements_say() -> None:
    assert reply(WHOLE) == ObserverReply("ok", (DRAFT,))


@pytest.mark.parametrize(
    "text",
    [
        f"```xml\n{WHOLE}\n```",
        f"```\n{WHOLE}\n```\n",
        f"Here is what I saw:\n\n{WHOLE}\n\nThat is all.",
        f"<?xml version='1.0'?>\n<reply>{WHOLE}</reply>",
        WHOLE.replace("observation>", "OBSERVATION>").replace("title>", "Title>"),
        WHOLE.replace("</observation>", "</observation \n>").replace("<observation>", '<observation type="x">'),
        WHOLE.replace("<title>", '<title lang="en">').replace("</title>", "</title >"),
        WHOLE.replace("\n", "\r\n"),
        f"<thinking>I must say {skip(3)}</thinking>\n{WHOLE}",
        f"\n<think>\n{observation(4)}\n</think>\n\n{WHOLE}",
    ],
    ids=[
        "fence of xml", "fence", "words around", "a root", "capitals", "attributes and blanks", "attributes within",
        "other line ends", "thinking", "thinking aloud",
    ],
)  # fmt: skip
def test_what_stands_around_an_observation_does_not_change_it(text: str) -> None:
    assert reply(text) == ObserverReply("ok", (DRAFT,))


def test_several_observations_keep_their_order_and_may_share_events() -> None:
    found = reply(observation(1, 2, title="One") + observation(2, 3, title="Two") + observation(5, title="Three"))

    assert [(draft.title, draft.events) for draft in found.observations] == [
        ("One", (1, 2)),
        ("Two", (2, 3)),
        ("Three", (5,)),
    ]
    assert found.accounted == {1, 2, 3, 5}


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("<events>1 3</events>", (1, 3)),
        ("<events>1, 3; and 4</events>", (1, 3, 4)),
        ("<events>[3,1,3]</events>", (3, 1)),
        ("<events>#2</events>", (2,)),
        ("<events>2 6 0 77 99999999</events>", (2,)),
    ],
)
def test_events_are_numbers_of_the_batch_each_once_and_invented_ones_are_left_out(
    text: str, events: tuple[int, ...]
) -> None:
    assert one(f"<observation>{text}<title>x</title></observation>").events == events


@pytest.mark.parametrize("attribute", ['events="1 3"', "events='1,3'", "events=1,3", 'type="bugfix" event = "1 3"'])
def test_events_may_be_an_attribute(attribute: str) -> None:
    assert one(f"<observation {attribute}><title>x</title></observation>").events == (1, 3)


@pytest.mark.parametrize("text", ["", "<events></events>", "<events>none</events>", "<events>9</events>"])
def test_an_observation_of_no_event_confirms_none(text: str) -> None:
    assert reply(f"<observation>{text}<title>x</title></observation>") == ObserverReply("unaccounted")


def test_of_a_single_event_it_need_not_be_said_but_it_may_not_be_invented() -> None:
    assert one("<observation><title>x</title></observation>", events=1).events == (1,)
    assert reply("<observation><events>7</events><title>x</title></observation>", events=1) == ObserverReply(
        "unaccounted"
    )


@pytest.mark.parametrize(
    ("said", "type_"),
    [("bugfix", "bugfix"), (" Decision\n", "decision"), ("security", "discovery"), ("", "discovery")],
)
def test_a_type_that_is_none_is_a_discovery(said: str, type_: str) -> None:
    assert within("<title>x</title>", f"<type>{said}</type>").type == type_
    assert within("<title>x</title>").type == "discovery"


def test_entities_are_the_characters_they_stand_for_once() -> None:
    found = within("<title>a &lt;b&gt; &amp; &quot;c&quot; &#39;d&apos; &amp;lt;</title>")

    assert found.title == "a <b> & \"c\" 'd' &lt;"


@pytest.mark.parametrize(
    ("text", "title", "narrative"),
    [
        ("<title>one<narrative>two</narrative>", "one", "two"),
        ("<title>one</title><narrative>two", "one", "two"),
        ("<title>one<narrative>two", "one", "two"),
        ("<narrative>two <b>bold</b> one</narrative><title>one", "one", "two <b>bold</b> one"),
    ],
    ids=["before another", "the last one", "both", "after another"],
)
def test_an_inner_element_that_was_never_closed_ends_where_the_next_begins(
    text: str, title: str, narrative: str
) -> None:
    found = within(text)

    assert (found.title, found.narrative) == (title, narrative)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ('["a, b", "c"]', ("a, b", "c")),
        ('\n[\n "a"\n]\n', ("a",)),
        ("[&quot;a&quot;]", ("a",)),
        ('["a", "a", "", " ", 7, null, ["b"]]', ("a",)),
        ("<item>a</item>\n<item>b, c</item>", ("a", "b, c")),
        ("<fact>a &lt; b</fact><fact></fact>", ("a < b",)),
        ("<concept>a</concept >", ("a",)),
        ("[]", ()),
        ("", ()),
        ('["a", "b"', ()),
        ("a, b", ()),
        ("- a\n- b", ()),
        ('{"a": "b"}', ()),
        ('"a"', ()),
        ("[" * 100_000, ()),
        ("[" + "1" * 10_000 + "]", ()),
    ],
    ids=lambda value: str(value)[:24],
)
def test_lists_are_json_or_items_and_an_array_that_is_none_is_empty(text: str, facts: tuple[str, ...]) -> None:
    assert within(f"<title>x</title><facts>{text}</facts>").facts == facts


def test_foreign_tags_within_an_element_belong_to_it() -> None:
    quotes = "The page has <div><title>Hi</title></div>, and <summary> is never closed in it"

    found = reply(observation(1, title="How the page is made", narrative=quotes) + summary())

    assert [draft.narrative for draft in found.observations] == [quotes]
    assert found.summary is not None


def test_concepts_are_tags_whatever_their_spelling() -> None:
    assert within('<title>x</title><concepts>["How it Works", "gotcha"]</concepts>').concepts == (
        "how-it-works",
        "gotcha",
    )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("<narrative>First line.\nSecond.</narrative>", "First line."),
        ('<facts>["A fact"]</facts>', "A fact"),
        (f"<narrative>{'x' * 400}</narrative>", "x" * MAX_TITLE),
    ],
)
def test_a_title_that_is_missing_is_taken_from_what_is_there(text: str, title: str) -> None:
    assert within(text).title == title


def test_an_observation_that_says_nothing_is_none() -> None:
    assert reply("<observation><events>1</events><title> </title></observation>").observations == ()
    assert reply("<observation><events>1</events><type>bugfix</type></observation>" + skip(2)).accounted == {2}


def test_what_is_too_long_is_cut() -> None:
    facts = ", ".join(f'"{n}{"f" * 700}"' for n in range(MAX_ITEMS + 9))

    found = within(f"<title>{'t ' * 300}</title><narrative>{'n' * 9_000}</narrative><facts>[{facts}]</facts>")

    assert len(found.title) <= MAX_TITLE
    assert found.title.endswith("t…")
    assert (len(found.narrative), found.narrative[-1]) == (MAX_TEXT, "…")
    assert len(found.facts) == MAX_ITEMS
    assert {len(fact) for fact in found.facts} == {MAX_ITEM}


def test_lines_stay_in_narratives_and_nowhere_else() -> None:
    found = within("<title>a\n b</title><subtitle>c\td</subtitle><narrative>e\n\n- f</narrative>")

    assert (found.title, found.subtitle, found.narrative) == ("a b", "c d", "e\n\n- f")


def test_what_we_told_the_agent_ourselves_is_not_written_down_again() -> None:
    found = within(f"<title>x</title><narrative>It read {fenced('the old memory')} and went on</narrative>")

    assert "old memory" not in found.narrative
    assert LEFT_OUT in found.narrative


def test_characters_that_programs_choke_on_are_replaced() -> None:
    found = within(
        "<title>\U0001f41b a bug\ud83d\0</title>",
        '<facts>["\\ud83d\\udc1b", "\\u0000x"]</facts>',
        "<narrative>✓ é</narrative>",
    )

    assert found.title == "\ufffd a bug\ufffd"
    assert found.facts == ("\ufffd", "x")
    assert found.narrative == "✓ é"


# --- skips -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ('<skip events="3 4">only looked</skip>', {3: "only looked", 4: "only looked"}),
        ("<skip event='3'>x</skip>", {3: "x"}),
        ('<skip events="3" reason="only looked"/>', {3: "only looked"}),
        ("<skip reason='r' events=3></skip>", {3: "r"}),
        ('<skip events="3"/>', {3: "nothing worth knowing"}),
        ('<skip events="3"> </skip>', {3: "nothing worth knowing"}),
        ("<skip>all the same</skip>", dict.fromkeys(range(1, 6), "all the same")),
        ("<skip/>", dict.fromkeys(range(1, 6), "nothing worth knowing")),
        ('<skip events="2 9">x</skip>', {2: "x"}),
        ('<skip events="2">a</skip><skip events="2 3">b</skip>', {2: "a", 3: "b"}),
        ('<SKIP EVENTS="2">A &amp;\nB</SKIP>', {2: "A & B"}),
    ],
)
def test_a_skip_names_events_and_says_why(text: str, skipped: dict[int, str]) -> None:
    assert reply(text) == ObserverReply("ok", (), skipped)


def test_a_skip_of_invented_events_alone_accounts_for_nothing() -> None:
    assert reply('<skip events="9 10">x</skip>') == reply("<skip events='0'>x</skip>")
    assert reply('<skip events="9 10">x</skip>').verdict != "ok"


def test_a_skip_without_numbers_beside_an_observation_says_nothing_of_the_others() -> None:
    assert reply(WHOLE + "<skip>the rest</skip>").accounted == {1, 2}


def test_what_is_observed_is_not_skipped_as_well() -> None:
    assert reply(WHOLE + skip(2, 3)).skipped == {3: "only looked around"}


def test_what_an_observation_quotes_is_no_word_of_the_reply() -> None:
    """An agent that works on such replies, or a page that wants to be left out."""
    quotes = f"The parser takes {skip(3, 4)} and <summary><request>this</request></summary> and <no_summary/>"

    found = reply(observation(1, narrative=quotes, title="How replies are read"))

    assert found.accounted == {1}
    assert (found.summary, found.no_summary) == (None, False)
    assert reply(observation(1, narrative=quotes) + summary(request="Mine")).summary is not None


# --- summaries ---------------------------------------------------------------------------------------------------


def test_a_summary_has_every_field_and_those_nobody_told_are_empty() -> None:
    found = reply(WHOLE + summary(request="Mend &amp; test", learned=" - a\n - b "))

    assert found.summary == {
        "request": "Mend & test",
        "investigated": "",
        "learned": "- a\n - b",
        "completed": "The login was mended",
        "next_steps": "",
    }
    assert tuple(found.summary) == SUMMARY_FIELDS


@pytest.mark.parametrize("name", ["summary", "session_summary", "SUMMARY"])
def test_a_summary_alone_answers_a_request_without_events(name: str) -> None:
    found = reply(f"<{name}><completed>all</completed></{name}>", events=0)

    assert (found.verdict, found.no_summary) == ("ok", False)
    assert found.summary is not None
    assert found.summary["completed"] == "all"


@pytest.mark.parametrize("text", ["<no_summary/>", "<no_summary />", "<no_summary></no_summary>", "<NO_SUMMARY>"])
def test_a_session_may_have_come_to_nothing(text: str) -> None:
    assert reply(text, events=0) == ObserverReply("ok", no_summary=True)
    assert reply(WHOLE + text) == ObserverReply("ok", (DRAFT,), no_summary=True)


@pytest.mark.parametrize("text", [summary(), "<no_summary/>"])
def test_a_summary_confirms_no_event(text: str) -> None:
    assert reply(text).verdict == "unaccounted"
    assert reply(text).accounted == frozenset()


def test_a_summary_without_a_word_is_none() -> None:
    empty = "<summary><request></request><completed> </completed></summary>"

    assert reply(WHOLE + empty) == ObserverReply("ok", (DRAFT,))
    assert reply(empty, events=0).verdict != "ok"
