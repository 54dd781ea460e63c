"""A right reply is never refused and hardly ever has a line listed; what nobody said is listed, by its line."""

from __future__ import annotations

from datetime import datetime

import pytest
from reply_corpus import Case, inventions, right_replies

from livememfs.errors import ReplyRefused
from livememfs.records.note import Note
from livememfs.records.space import Meta, Synthesis
from livememfs.runs.consolidation.hold import too_much
from livememfs.runs.consolidation.inputs import BankFile, BankInputs
from livememfs.runs.consolidation.plan import BankPlan, make_plan
from livememfs.runs.notes import LiveNote
from livememfs.runs.options import RunSettings
from livememfs.text.outgoing import outgoing
from livememfs.text.times import parse_iso

RIGHT, INVENTED = right_replies(), inventions()
LISTED: dict[str, set[str]] = {}
LEAST = 80
MOST_LISTED_OF_THE_RIGHT = 4
MOST_MISSED = len(INVENTED) * 5 // 80


def inputs_of(case: Case) -> BankInputs:
    """What the run knows."""
    notes = [
        LiveNote(f"{number}.md", f"s/live/{number}.md", "e", Note(_at(stamp), agent, "observation", (), "s", text))
        for number, (stamp, agent, text) in enumerate(case.notes, 1)
    ]
    return BankInputs(
        "s",
        Meta("s", "", "", _at(case.notes[0][0]), consolidation_count=case.number),
        "e",
        notes=tuple(notes),
        rules=case.rules,
        synthesis=Synthesis(None, 1, case.number, case.synthesis),
        bank={name: BankFile(name, "e", text) for name, text in case.bank.items()},
        now=_at(case.now),
    )


def _at(stamp: str) -> datetime:
    return parse_iso(stamp)


def plan_of(case: Case, *, lenient: bool) -> BankPlan:
    return make_plan(case.reply, inputs_of(case), lenient=lenient)


def listed(case: Case) -> set[str]:
    """The lines that the ledger would list."""
    if case.id not in LISTED:
        LISTED[case.id] = {one.text for one in plan_of(case, lenient=True).unsourced}
    return LISTED[case.id]


def test_the_corpus_is_large_enough_and_every_case_has_its_own_id() -> None:
    cases = [*RIGHT, *INVENTED]
    assert min(len(RIGHT), len(INVENTED)) >= LEAST
    assert len({case.id for case in cases}) == len(cases)


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.id)
@pytest.mark.parametrize("lenient", [True, False], ids=["list", "refuse"])
def test_a_right_reply_is_taken(case: Case, lenient: bool) -> None:
    assert plan_of(case, lenient=lenient).changes


@pytest.mark.parametrize("case", INVENTED, ids=lambda case: case.id)
def test_of_an_invention_its_own_line_is_listed_and_no_other_that_would_not_be_without_it(case: Case) -> None:
    right = next(each for each in RIGHT if case.id.startswith(f"{each.id}: "))
    assert listed(case) - listed(right) <= {case.invented_line}


def test_the_figures_of_the_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed in every run: how many right replies are refused, or have lines listed, and how many inventions are."""
    refused = [case.id for case in RIGHT if is_refused(case, lenient=True) or is_refused(case, lenient=False)]
    doubted = {case.id: listed(case) for case in RIGHT if listed(case)}
    missed = [case.id for case in INVENTED if case.invented_line not in listed(case)]
    with capsys.disabled():
        print(f"\nright replies refused: {len(refused)} of {len(RIGHT)}, with a line listed: {len(doubted)}")
        print(f"inventions listed: {len(INVENTED) - len(missed)} of {len(INVENTED)}, missed: {missed}")

    assert refused == []
    assert len(doubted) <= MOST_LISTED_OF_THE_RIGHT, doubted
    assert len(missed) <= MOST_MISSED


def test_a_right_reply_is_not_held() -> None:
    """But for the specification's own sample, which leaves most of its files out with three dots."""
    held = []
    for case in RIGHT:
        plan, bank = plan_of(case, lenient=True), inputs_of(case).bank_texts()
        after = plan.bank_after(bank)
        held += [case.id] if too_much(bank, after, outgoing(bank, after), RunSettings().drop_limit) else []

    assert held == ["alpha-worked-reply"]


def is_refused(case: Case, *, lenient: bool) -> bool:
    try:
        plan_of(case, lenient=lenient)
    except ReplyRefused:
        return True
    return False
