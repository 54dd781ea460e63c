"""What a session is told: each thing once while it is in view, nothing twice in other words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from livememfs.recall.turn.inject import TITLES, Candidate, Limits, SameWords, Section, ToldSession, block, tell
from livememfs.text.foreign import Unreadable
from livememfs.text.own import END, HEAD
from livememfs.text.size import tokens

ALIKE = Limits().alike
ROUNDING = 0.02
"""Of a vector that is kept over a restart."""


def one(name: str, text: str = "", section: Section = "relevant", vector: float | None = None) -> Candidate:
    at = place(vector) if vector is not None else None
    return Candidate(name, section, text or f"text of {name}", "fact, 2026-02-20", at)


def place(number: float) -> NDArray[np.float32]:
    """A vector for a number: those of numbers less than .15 apart are alike, and hardly any others."""
    axis, share = divmod(number / 0.425, 1)
    found = np.zeros(256, np.float32)
    found[int(axis)], found[int(axis) + 1] = np.cos(share * np.pi / 2), np.sin(share * np.pi / 2)
    return found


def near(first: Candidate, other: Candidate) -> float:
    """The cosine of two vectors."""
    return float(first.vector @ other.vector)


class ByNumber(SameWords):
    """By those numbers, where there are any."""

    def __init__(self) -> None:
        super().__init__()
        self._others: list[Candidate] = []

    def show(self, others: Sequence[Candidate]) -> None:
        super().show(others)
        self._others += [other for other in others if other.vector is not None]

    def __call__(self, one: Candidate) -> bool:
        compared = [other for other in self._others if one.vector is not None and other.id != one.id]
        return super().__call__(one) or any(near(one, other) > ALIKE for other in compared)


def told(session: ToldSession, *candidates: Candidate, **limits: float) -> list[str]:
    found = tell(session, candidates, ByNumber(), Limits(**limits))  # type: ignore[arg-type]  # of several types
    return [candidate.id for candidate in found.emitted]


def test_a_record_is_told_once_while_it_is_in_view_and_again_when_it_has_left() -> None:
    session = ToldSession()

    turns = [told(session, one("a"), window=3) for _ in range(7)]

    assert turns == [["a"], [], [], ["a"], [], [], ["a"]]


def test_within_a_turn_a_record_is_told_once_where_it_came_first() -> None:
    found = tell(ToldSession(), [one("a", section="pinned"), one("b"), one("a", section="live")], ByNumber())

    assert [(candidate.id, candidate.section) for candidate in found.emitted] == [("a", "pinned"), ("b", "relevant")]


def test_the_same_in_other_words_is_told_once_in_a_turn_and_over_turns() -> None:
    session = ToldSession()

    assert told(session, one("a", vector=0.0), one("b", vector=0.1), one("c", vector=0.5)) == ["a", "c"]
    assert told(session, one("d", vector=0.49), one("e", vector=0.8)) == ["e"]


def test_without_vectors_the_same_words_are_the_same_and_nothing_else() -> None:
    session = ToldSession()

    assert told(session, one("a", "Déjà vu"), one("b", "  deja\nVU "), one("c", "deja", vector=1.0)) == ["a", "c"]


def test_what_the_limit_cuts_is_not_taken_for_told() -> None:
    session = ToldSession()
    many = [one(f"n{number}", vector=float(number)) for number in range(30)]

    assert told(session, *many) == [f"n{number}" for number in range(20)]
    assert told(session, *many) == [f"n{number}" for number in range(20, 30)]


def test_only_the_last_are_compared_with() -> None:
    session = ToldSession()
    for number in range(5):
        told(session, one(f"n{number}", vector=float(10 * number)), buffer=3)

    assert told(session, one("like the first", vector=0.0), buffer=3) == ["like the first"]
    assert told(session, one("like the last", vector=40.0), buffer=3) == []


def test_two_sessions_do_not_disturb_each_other() -> None:
    first, other = ToldSession(), ToldSession()

    assert told(first, one("a")) == told(other, one("a")) == ["a"]


@pytest.mark.parametrize("budget", [30, 60, 100, 300])
def test_a_block_stays_under_its_budget_and_a_long_text_leaves_room_for_short_ones(budget: int) -> None:
    long = one("long", "word " * 400)

    found = tell(ToldSession(), [one("a", "short"), long, one("b", "short too")], ByNumber(), Limits(budget=budget))

    assert tokens(found.block) <= budget + 2  # line ends are counted with the whole
    assert found.left_out["budget"] == 3 - len(found.emitted)
    if budget >= 60:
        assert {"a", "b"} <= {candidate.id for candidate in found.emitted}


def test_nothing_to_tell_is_no_block() -> None:
    assert tell(ToldSession(), [], ByNumber()).block == ""
    assert block([]) == ""


def test_the_block_has_its_sections_in_one_order_and_says_what_notes_are() -> None:
    found = tell(
        ToldSession(),
        [one("n", "I leave tomorrow", "live"), one("m", "David is my brother"), one("i", "I am a helper", "pinned")],
        ByNumber(),
    )

    assert found.block == (
        f"{HEAD}\n{TITLES['pinned']}\n- fact, 2026-02-20: I am a helper\n"
        f"{TITLES['relevant']}\n- fact, 2026-02-20: David is my brother\n"
        f"{TITLES['live']}\n- fact, 2026-02-20: I leave tomorrow\n{END}\n"
    )
    assert "not a conversation" in TITLES["live"]


def test_a_text_is_one_line_of_basic_characters() -> None:
    found = tell(ToldSession(), [one("a", "one\n\n- two \U0001f600 \ud83d é")], ByNumber())

    assert found.block.endswith(f": one - two \ufffd \ufffd é\n{END}\n")
    found.block.encode()


def test_a_session_goes_on_after_a_restart_by_ids_alone() -> None:
    session = ToldSession()
    told(session, one("a"), one("b"))

    again = ToldSession.parse(session.render())

    assert again.render() == session.render()
    assert b"text" not in session.render()
    assert told(again, one("a"), one("b"), one("c")) == ["c"]


@pytest.mark.parametrize(
    "kept",
    [b"", b"[]", b"{}", b"\xff", b'{"turn": "x", "told": {}}', b'{"turn": 1, "told": []}', b'{"turn": -1, "told": {}}',
     b'{"turn": 1, "told": {"a": 1e3}}', b'{"turn": 9223372036854775807, "told": {}}', b'{"turn": NaN, "told": {}}',
     b'{"turn": 1, "told": {"a": null}}', b'{"turn": 1, "told": {}, "forgotten": "x"}'],
)  # fmt: skip
def test_what_is_no_session_is_unreadable(kept: bytes) -> None:
    with pytest.raises(Unreadable):
        ToldSession.parse(kept)


sessions = st.builds(
    ToldSession,
    st.integers(0, 9),
    st.dictionaries(st.sampled_from(["a", "b", "file:1"]), st.integers(0, 9)),
    forgotten=st.integers(0, 2),
)


@given(sessions, sessions, sessions)
def test_in_whatever_order_mounts_hear_of_each_other_they_know_the_same(
    one: ToldSession, two: ToldSession, three: ToldSession
) -> None:
    made = []
    for order in permutations((one, two, three)):
        session = ToldSession()
        for other in order:
            session.join(deepcopy(other))
        session.join(deepcopy(order[0]))
        made.append((session.turn, session.told, session.forgotten))

    mounts = (one, two, three)
    forgotten = max(mount.forgotten for mount in mounts)
    since = [mount.told for mount in mounts if mount.forgotten == forgotten]
    names = {name for told in since for name in told}
    told_last = {name: max(told[name] for told in since if name in told) for name in names}
    assert made == [(max(mount.turn for mount in mounts), told_last, forgotten)] * 6


def test_what_was_told_before_it_was_forgotten_is_told_again_by_all() -> None:
    here, there = ToldSession(), ToldSession()
    told(here, one("a"))
    there.join(here)
    here.forget(here.forgotten + 1)
    told(here, one("b"))
    there.join(here)

    assert told(there, one("a"), one("b")) == ["a"]


def test_fifty_turns_never_tell_an_id_twice_in_view_nor_two_things_alike() -> None:
    chance, session, limits = random.Random(7), ToldSession(), Limits(window=10)
    shown: list[list[Candidate]] = []
    for _ in range(50):
        some = [one(f"m{number}", vector=number / 40) for number in chance.sample(range(200), 30)]
        if chance.random() < 0.2:
            others, session = session.last, ToldSession.parse(session.render())
            session.last = others  # their texts are looked up
        shown.append(list(tell(session, some, ByNumber(), limits).emitted))

    assert any(shown)
    for turn, emitted in enumerate(shown):
        view = [candidate for past in shown[max(0, turn - limits.window + 1) : turn] for candidate in past]
        for number, candidate in enumerate(emitted):
            others = [*view[-limits.buffer :], *emitted[:number]]
            assert candidate.id not in {other.id for other in others}
            assert all(near(candidate, other) <= limits.alike + ROUNDING for other in others)


def test_the_title_of_a_section_counts_once_whatever_was_told_before_it() -> None:
    candidates = [one("a"), one("b", section="bank"), one("c", section="bank")]
    whole = tell(ToldSession(), candidates, ByNumber(), Limits(budget=1_000))
    lines = sum(tokens(text) for text in whole.block.split("\n") if text.startswith("- "))
    exact = tokens(HEAD) + tokens(END) + tokens(TITLES["relevant"]) + tokens(TITLES["bank"]) + lines + 3

    told_all = tell(ToldSession(), candidates, ByNumber(), Limits(budget=exact))

    assert [candidate.id for candidate in told_all.emitted] == ["a", "b", "c"]
