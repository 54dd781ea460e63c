"""The estimate of tokens, and how much of an answer there is room for."""

from __future__ import annotations

import base64
import json
import random
import time
import timeit
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import quicktok
from hypothesis import given
from hypothesis import strategies as st
from tongues import CHINESE, OTHERS

from livememfs.text.size import Budget, at_most, cut_to, first_lines, fitting, lines_of, tokens

ROOT = Path(__file__).parents[2]
PUBLISHED = quicktok.get_encoding("o200k_base")
CHARACTERS = 3_000
"""The length of one sample: a few hundred to two thousand tokens."""


def cut(text: str) -> Iterator[str]:
    """Samples of a text, without a short last one."""
    return (text[at : at + CHARACTERS] for at in range(0, len(text) - CHARACTERS, CHARACTERS))


def english() -> Iterator[str]:
    for name in ("architecture", "concurrency", "consolidation", "security", "semantics"):
        page = ROOT / "docs" / f"{name}.md"
        if page.exists():
            yield from cut(page.read_text("utf-8"))


def french() -> Iterator[str]:
    notes = map(json.loads, (ROOT / "tests/recall/corpus/notes.jsonl").read_text("utf-8").splitlines())
    yield from cut("\n\n".join(note["text"] for note in notes if note["lang"] == "fr"))


def chinese() -> Iterator[str]:
    for first in range(5):
        yield "\n".join(CHINESE[first : first + 6])


def code() -> Iterator[str]:
    modules = ("text/frontmatter", "cache/journal/steps", "store/s3_replies", "fuse/adapter", "cli/space")
    for path in (*(f"livememfs/{module}.py" for module in modules), "scripts/setup"):
        yield from cut((ROOT / path).read_text("utf-8"))


def encoded() -> Iterator[str]:
    chosen = random.Random(4)
    for size in (400, 1_500, 5_000):
        data = chosen.randbytes(size)
        yield from (base64.b64encode(data).decode(), base64.encodebytes(data).decode(), data.hex())
    yield base64.b64encode("Le déploiement a échoué, relancer après midi. ".encode() * 30).decode()
    yield "\n".join(str(uuid.UUID(int=chosen.getrandbits(128))) for _ in range(60))


KINDS = {"English": english, "French": french, "Chinese": chinese, "code": code, "base64": encoded}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_within_a_quarter_of_a_published_tokenizer_and_a_kind_within_a_tenth(kind: str) -> None:
    samples = list(KINDS[kind]())

    assert len(samples) >= 5
    assert [sample for sample in samples if abs(tokens(sample) / PUBLISHED.count(sample) - 1) > 0.25] == []
    assert sum(map(tokens, samples)) == pytest.approx(sum(map(PUBLISHED.count, samples)), rel=0.1)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_scripts_are_within_a_third(kind: str) -> None:
    assert tokens(OTHERS[kind]) == pytest.approx(PUBLISHED.count(OTHERS[kind]), rel=0.33)


def test_data_for_programs_is_within_a_quarter() -> None:
    records = [
        {"id": n, "name": "anna", "score": n / 7, "at": "2026-03-04T05:06:07Z", "tags": ["a"]} for n in range(60)
    ]
    lines = "\n".join(
        f"2026-02-{n % 28 + 1:02}T10:{n:02}:00Z INFO worker[{n}]: {n * 37} rows in {n} ms" for n in range(60)
    )
    table = "\n".join(f"| alpha | {n / 3:8.2f} | `option_{n}` |" for n in range(60))
    for text in (json.dumps(records), json.dumps(records, indent=2), lines, table):
        assert tokens(text) == pytest.approx(PUBLISHED.count(text), rel=0.25), text[:200]


@pytest.mark.parametrize(("text", "cost"), [("", 0), ("a", 1), ("four", 1), ("東京", 2), ("\ud800", 1), (" ", 1)])
def test_what_is_short_costs_a_token_at_least_and_nothing_costs_none(text: str, cost: int) -> None:
    assert tokens(text) == cost


@given(st.lists(st.text(), max_size=6))
def test_a_whole_is_hardly_estimated_above_its_parts(texts: list[str]) -> None:
    """Otherwise a batch of notes that fit would not fit as a request."""
    assert tokens("".join(texts)) <= sum(map(tokens, texts)) + 2 * len(texts)


def test_a_million_characters_are_estimated_at_once() -> None:
    text = (ROOT / "docs/semantics.md").read_text("utf-8")
    text = (text * (1_000_000 // len(text) + 1))[:1_000_000]

    assert min(timeit.repeat(lambda: tokens(text), timer=time.process_time, number=1, repeat=3)) < 0.1


@given(st.text(alphabet=st.sampled_from("ab\n\r\f\x85\u2028")))
def test_lines_are_the_text_and_end_with_a_line_feed_alone(text: str) -> None:
    lines = lines_of(text)

    assert "".join(lines) == text
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines[:-1])
    assert all(lines)


@given(st.lists(st.text(min_size=1, max_size=40), max_size=20), st.integers(-5, 60))
def test_the_first_lines_keep_to_a_budget_and_one_is_always_shown(lines: list[str], room: int) -> None:
    count = first_lines(lines, Budget(room))
    cost = sum(map(tokens, lines[:count]))

    assert count >= min(1, len(lines))
    assert cost <= room or count == 1
    assert count == len(lines) or cost + tokens(lines[count]) > room


def test_what_does_not_fit_leaves_room_for_what_does() -> None:
    budget = Budget(3)

    assert [budget.takes("four " * 9), budget.takes("four", "four"), budget.takes("four"), budget.takes("a")] == [
        False, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("room", [0, 1, 4, 5, 6, 99, 100, 101, 100_000])
def test_what_fits_into_a_room_is_the_most_that_is_sure_to(room: int) -> None:
    assert at_most(fitting(room)) <= room < at_most(fitting(room) + 1)
    assert fitting(-1) == 0


@pytest.mark.parametrize("text", ["word " * 100, "\u8bb0" * 100, "x" * 1_000, "a\n\n" * 99])
@pytest.mark.parametrize("budget", [5, 50])
def test_what_is_cut_is_its_beginning_and_fits(text: str, budget: int) -> None:
    beginning = cut_to(text, budget, end="\u2026")

    assert tokens(beginning) <= budget
    assert beginning.endswith("\u2026")
    assert text.startswith(beginning.removesuffix("\u2026"))


def test_what_fits_is_not_cut() -> None:
    assert cut_to("we use S3 ", 50, end="\u2026") == "we use S3 "
