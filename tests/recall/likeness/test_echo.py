"""What an agent wrote has in it what it was told, or has not: `echoes.tsv` has both, in English and French, and so has
`echoes_unseen.tsv`, which was written when the numbers were chosen.

Each line: language, question, record, an answer that uses the record, one to the same question that does not.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from livememfs.recall.likeness.echo import LOOKED_AT, MOST_MARKS, PASSAGE, Words, came_back, marks, words


class Echo(NamedTuple):
    """One line of the corpus."""

    language: str
    question: str
    record: str
    answered_with: str
    answered_without: str


def corpus(name: str = "echoes.tsv") -> list[Echo]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as lines:
        return [Echo(*line) for line in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def back(echo: Echo, answer: str) -> bool:
    return came_back(Words(answer), marks(echo.record), words(echo.question), {})


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(("name", "lines"), [("echoes.tsv", 30), ("echoes_unseen.tsv", 10)])
def test_most_answers_with_a_record_are_seen_and_hardly_any_without(
    name: str, lines: int, language: str, figures: Callable[[str], None]
) -> None:
    """Also where the answer stands among all others: three words of a long text are chance."""
    echoes = [echo for echo in corpus(name) if echo.language == language]
    others = {echo: [other.answered_without for other in echoes if other != echo] for echo in echoes}
    counted = {
        "seen": sum(back(echo, echo.answered_with) for echo in echoes),
        "seen in a long text": sum(back(echo, " ".join([echo.answered_with, *others[echo]])) for echo in echoes),
        "false": sum(back(echo, echo.answered_without) for echo in echoes),
        "false in a long text": sum(back(echo, " ".join([echo.answered_without, *others[echo]])) for echo in echoes),
    }
    figures(f"echo, {name}, {language}, of {len(echoes)}: {counted}")

    assert len(echoes) == lines
    assert min(counted["seen"], counted["seen in a long text"]) >= 0.8 * lines
    assert counted["false"] <= 0.05 * lines
    assert counted["false in a long text"] <= 0.1 * lines


def test_an_answer_to_another_question_has_nothing_of_a_record() -> None:
    """But for translations: the corpus has some facts in both languages, and names and numbers are the same."""
    echoes = corpus()
    pairs = [(one, other) for one in echoes for other in echoes if one.language == other.language and one != other]
    false = [pair for pair in pairs for answer in pair[1][3:] if back(pair[1]._replace(record=pair[0].record), answer)]

    assert len(false) / (2 * len(pairs)) < 0.005


def test_what_the_question_has_proves_nothing() -> None:
    record = "the parser reads conf/limits.toml, with a limit of 4096 rows"

    assert came_back(
        Words("it is 4096, from conf/limits.toml"), marks(record), words("which limit has the parser?"), {}
    )
    assert not came_back(
        Words("it is 4096, from conf/limits.toml"), marks(record), words("are there 4096 rows in conf/limits.toml?"), {}
    )


def test_what_several_records_have_is_no_sign_of_one() -> None:
    record, answer = marks("Halfmoon runs on Debian"), Words("I looked at Halfmoon, which runs Debian")

    assert came_back(answer, record, set(), {})
    assert not came_back(answer, record, set(), dict.fromkeys(record, 4))


def test_one_word_is_never_enough() -> None:
    record = marks("card 4000002500003155")

    assert came_back(Words("the card 4000002500003155"), record, set(), {})
    assert not came_back(Words("it is 4000002500003155"), {**record, "40000": 9.0, "4000002500003155": 9.0}, set(), {})


def test_a_huge_text_is_looked_at_where_it_begins() -> None:
    text = "zebra crossing 4711 " * LOOKED_AT

    assert len(marks(" ".join(f"word{n}" for n in range(10_000)))) <= MOST_MARKS
    assert len(Words(text).passages) <= LOOKED_AT // PASSAGE * 2
