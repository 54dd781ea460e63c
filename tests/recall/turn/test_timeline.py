"""The timeline: by day, then by file, one dense line each, and the same bytes for the same observations."""

from __future__ import annotations

import locale
import random
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.recall.turn.timeline import NO_FILE, day_title, file_of, fitting, legend, line, timeline
from livememfs.records.observation import ICONS, TYPES, Observation
from livememfs.text.size import tokens

AT = datetime(2026, 2, 20, 14, 5, 59, tzinfo=UTC)

texts = st.text(max_size=40)
observations = st.builds(
    lambda number, at, kind, title, narrative, facts, files: Observation(
        f"{number:08x}", "s", at, kind, title, narrative=narrative, facts=tuple(facts), files_modified=tuple(files)
    ),
    st.integers(0, 2**32 - 1),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 5), timezones=st.just(UTC)),
    st.sampled_from(TYPES),
    texts,
    texts,
    st.lists(texts, max_size=2),
    st.lists(st.sampled_from(["a.py", "b.py"]) | texts, max_size=2),
)
many = st.lists(observations, max_size=12, unique_by=lambda one: one.id)


def seen(number: int, at: datetime = AT, **fields: Any) -> Observation:
    return Observation(f"{number:08x}", "s", at, **{"type": "bugfix", "title": f"Thing {number}", **fields})


# --- a line ------------------------------------------------------------------------------------------------------


def test_a_line_has_id_time_icon_title_and_what_reading_all_of_it_costs() -> None:
    one = seen(0x0A1B2C3D, title="Tokens expire after 24 hours", narrative="word " * 100)

    assert line(one) == "#0a1b2c3d 14:05 ✗ Tokens expire after 24 hours ~106"
    assert line(one, marked=True) == "> #0a1b2c3d 14:05 ✗ Tokens expire after 24 hours ~106"


@pytest.mark.parametrize("kind", TYPES)
def test_each_type_has_its_icon(kind: Any) -> None:
    assert line(seen(1, type=kind, title="x")) == f"#00000001 14:05 {ICONS[kind]} x ~0"


@given(texts, st.lists(texts, max_size=3))
def test_the_cost_is_that_of_the_narrative_and_of_each_fact(narrative: str, facts: list[str]) -> None:
    cost = sum(map(tokens, (narrative, *facts)))

    assert line(seen(1, narrative=narrative, facts=tuple(facts))).endswith(f" ~{cost}")


def test_times_are_utc_wherever_it_was_seen() -> None:
    tokyo = AT.astimezone(timezone(timedelta(hours=9)))

    assert line(seen(1, tokyo)) == line(seen(1))
    assert timeline([seen(1, tokyo)]) == timeline([seen(1)])


@given(observations)
@example(seen(1, title="two\nlines\u2028three", files_modified=("a\nb.py",)))
@example(seen(1, title="a | b", files_read=("\r",)))
def test_whatever_a_title_or_a_name_of_a_file_is_each_has_one_line(one: Observation) -> None:
    assert len(line(one).splitlines()) == 1
    assert len(timeline([one]).splitlines()) == 3


def test_a_title_of_blanks_is_its_type() -> None:
    assert line(seen(1, title=" \n")).endswith(" bugfix ~0")


# --- days and files ----------------------------------------------------------------------------------------------


def test_lines_stand_under_their_file_and_files_under_their_day_the_newest_day_first() -> None:
    found = timeline(
        [
            seen(1, AT - timedelta(days=1), files_modified=("src/auth.py",)),
            seen(2, AT, files_modified=("src/b.py", "src/auth.py")),
            seen(3, AT + timedelta(minutes=1), files_read=("src/c.py",)),
            seen(4, AT + timedelta(minutes=2), files_modified=("src/b.py",), files_read=("src/a.py",)),
            seen(5, AT + timedelta(minutes=3)),
        ],
        mark="00000004",
    )

    assert found.splitlines() == [
        "### Feb 20, 2026",
        "**src/b.py**",
        "#00000002 14:05 ✗ Thing 2 ~0",
        "> #00000004 14:07 ✗ Thing 4 ~0",
        "**src/c.py**",
        "#00000003 14:06 ✗ Thing 3 ~0",
        f"**{NO_FILE}**",
        "#00000005 14:08 ✗ Thing 5 ~0",
        "### Feb 19, 2026",
        "**src/auth.py**",
        "#00000001 14:05 ✗ Thing 1 ~0",
    ]


def test_the_oldest_day_may_come_first() -> None:
    found = timeline([seen(1), seen(2, AT - timedelta(days=1))], newest_first=False)

    assert re.findall("^###.*$", found, re.MULTILINE) == ["### Feb 19, 2026", "### Feb 20, 2026"]


@given(many, st.randoms(use_true_random=False))
def test_the_same_observations_give_the_same_bytes_in_whatever_order_they_come(
    found: list[Observation], chance: random.Random
) -> None:
    shuffled = list(found)
    chance.shuffle(shuffled)

    assert timeline(shuffled) == timeline(found)


@given(many)
def test_each_observation_has_one_line_under_its_day_and_its_file(found: list[Observation]) -> None:
    day = name = ""
    where = {}
    for row in timeline(found).split("\n") if found else []:
        if row.startswith("### "):
            day, name = row, ""
        elif row.startswith("**"):
            name = row
        else:
            where[row] = day, name

    assert where == {line(one): (day_title(one.created_at.date()), f"**{file_of(one)}**") for one in found}


@given(many)
def test_every_character_is_of_the_basic_plane(found: list[Observation]) -> None:
    text = timeline(found) + legend(found)

    assert all(mark <= "\uffff" and not "\ud800" <= mark <= "\udfff" for mark in text)


def test_months_do_not_depend_on_where_it_runs() -> None:
    titles = [day_title(datetime(2026, month, 7, tzinfo=UTC).date()) for month in range(1, 13)]

    assert (titles[1], titles[11]) == ("### Feb 7, 2026", "### Dec 7, 2026")
    assert locale.setlocale(locale.LC_TIME)  # nothing has touched it
    assert len(set(titles)) == 12


def test_the_legend_explains_the_icons_that_are_used() -> None:
    assert legend([seen(1), seen(2, type="decision"), seen(3)]) == "✗ bugfix, ⚖ decision; from tool output"
    assert legend([]) == ""


# --- the budget --------------------------------------------------------------------------------------------------


@given(many, st.integers(0, 400))
def test_what_fits_is_the_newest_and_costs_no_more_than_it_may(found: list[Observation], budget: int) -> None:
    newest = sorted(found, key=lambda one: (one.created_at, one.id), reverse=True)

    chosen = fitting(newest, budget)

    assert chosen == newest[: len(chosen)]
    assert tokens(timeline(chosen)) <= budget
    more = newest[: len(chosen) + 1]
    if len(more) > len(chosen):  # one more would be too much, but for what rounding up costs
        assert tokens(timeline(more)) > budget - 3 * len(more)


def test_a_day_and_a_file_are_paid_for_once() -> None:
    found = [seen(number, AT - timedelta(minutes=number), files_modified=("a.py",)) for number in range(20)]
    cost = tokens(timeline(found))

    assert len(fitting(found, cost + 2 * len(found))) == 20
    assert fitting(found, 0) == []
