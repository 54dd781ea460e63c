"""What a newer memory corrects is replaced, or shown beside it; what is near but distinct is left alone.

By the pairs of `corrections.tsv`, judged as memories are when they are stored.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from livememfs.recall.embed.model import OnnxModel
from livememfs.recall.embed.prior import TEXTS
from livememfs.recall.likeness.correction import Verdict, judged
from livememfs.recall.likeness.estimate import THRESHOLD, likeness

CORRECTED_AT_LEAST, DISTINCT_TOUCHED_AT_MOST = 0.85, 0.02
UNSEEN_AT_LEAST = 0.75
"""17 of 22 were measured, once, when the rules were done."""
Near = Callable[[str, str], float]


def pairs(name: str = "corrections.tsv") -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def near() -> Near:
    """The cosine of two texts, relative to the mean of any texts."""
    model = OnnxModel()
    prior = np.mean([model.vector("passage: " + text) for text in TEXTS], axis=0)

    def cosine(one: str, other: str) -> float:
        a, b = (model.vector("passage: " + text) - prior for text in (one, other))
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    return cosine


def verdict(older: str, newer: str, near: Near) -> str:
    """As `Merging` has it."""
    cosine = near(older, newer)
    return "same" if likeness(older, newer, cosine) > THRESHOLD else judged(older, newer, cosine).value


def test_the_corpus_has_two_hundred_pairs_of_each_kind_half_of_them_french() -> None:
    counts = Counter((pair["expected"], pair["language"]) for pair in pairs())
    assert counts == dict.fromkeys([(e, n) for e in ("corrects", "distinct") for n in ("en", "fr")], 100)
    assert len({(pair["older"], pair["newer"]) for pair in pairs()}) == 400


@pytest.mark.parametrize("half", [0, 1], ids=["tuned on", "held out"])
def test_corrections_are_replaced_or_paired_and_distinct_facts_are_not_touched(
    half: int, near: Near, figures: Callable[[str], None]
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for pair in pairs()[half::2]:
        said = verdict(pair["older"], pair["newer"], near)
        counts[pair["expected"], said] += 1
        if (said == "distinct") != (pair["expected"] == "distinct"):
            wrong.append(f"{said}: {pair['older']} | {pair['newer']}")
    corrected = sum(counts["corrects", said] for said in ("same", "corrects", "contradicts"))
    touched = sum(counts["distinct", said] for said in ("same", "corrects", "contradicts"))
    figures(
        f"corrections, {('tuned on', 'held out')[half]}: {corrected} of 100 replaced or paired"
        f" ({counts['corrects', 'contradicts']} paired); {touched} of 100 distinct facts touched"
    )
    print(*wrong, sep="\n")
    assert corrected >= 100 * CORRECTED_AT_LEAST
    assert touched <= 100 * DISTINCT_TOUCHED_AT_MOST


def test_of_pairs_that_no_rule_was_written_for_most_corrections_are_found_and_no_distinct_fact_is_hidden(
    near: Near, figures: Callable[[str], None]
) -> None:
    unseen = pairs("corrections_unseen.tsv")
    said = [(pair["expected"], verdict(pair["older"], pair["newer"], near)) for pair in unseen]
    corrections = [verdict for expected, verdict in said if expected == "corrects"]
    distinct = [verdict for expected, verdict in said if expected == "distinct"]
    found, paired = len(corrections) - corrections.count("distinct"), distinct.count("contradicts")
    figures(
        f"corrections, unseen: {found} of {len(corrections)} replaced or paired;"
        f" {paired} of {len(distinct)} distinct facts paired"
    )
    assert found >= UNSEEN_AT_LEAST * len(corrections)
    assert not {"same", "corrects"} & set(distinct)
    assert paired <= 0.1 * len(distinct)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The team deploys with Ansible", "The team deploys with Terraform now"),
        ("Marie likes oysters", "Marie hates oysters"),
        ("Sophie est malade", "Sophie est guerie"),
        ("We indent with tabs", "We indent with spaces"),
        ("CI runs on GitHub Actions", "CI runs on GitLab CI"),
        ("Julie est enceinte", "Julie a accouche"),
        ("Luis vive en Madrid", "Luis se ha mudado a Barcelona"),
        ("Jan wohnt in Kiel", "Jan ist nach Bonn umgezogen"),
        ("The user uses dark mode", "The user uses light mode"),
    ],
)
def test_what_was_seen_told_beside_its_correction_is_replaced_or_paired(older: str, newer: str, near: Near) -> None:
    assert verdict(older, newer, near) != Verdict.DISTINCT
