"""The figures for Prometheus: read back by its own parser, named by its customs, and without a word of anybody's."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from livememfs.serve.metrics import FIGURES, OTHER, Figure, healthy, render

WORDS = "sesame of the space project"


def status_with(value: float) -> dict[str, Any]:
    """A status that has every figure, each with this value, and words wherever a status has some."""
    status: dict[str, Any] = {
        "state": "ok",
        "since": "2026-02-20T14:00:00Z",
        "last_error": WORDS,
        "store": WORDS,
        "stuck": [],
        "statistics": {"replica": {"failing_s": None, "last_error": WORDS}},
    }
    for figure in FIGURES:
        *above, last = figure.path.split(".")
        at = status
        for name in above:
            at = at.setdefault(name, {})
        if figure.label:
            at.setdefault(last, {}).update(dict.fromkeys(figure.values, value))
        else:
            at[last] = value
    return status


def read(status: dict[str, Any]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What Prometheus reads: each sample by its name and labels."""
    families = text_string_to_metric_families(render(status).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_every_figure_is_read_back_under_its_name() -> None:
    samples = read(status_with(7))

    for figure in FIGURES:
        name = f"livememfs_{figure.name}{'_total' if figure.kind == 'counter' else ''}"
        for labels in [((figure.label, value),) for value in figure.values] if figure.label else [()]:
            assert samples[name, labels] == 7
    assert samples["livememfs_start_time_seconds", ()] == 1771596000
    assert samples["livememfs_healthy", ()] == 1


def test_names_and_kinds_are_as_prometheus_has_them() -> None:
    families = list(text_string_to_metric_families(render(status_with(1)).decode()))

    assert len({family.name for family in families}) == len(families) == len(FIGURES) + 4
    for family in families:
        assert family.name.startswith("livememfs_")
        assert family.documentation.endswith(".")
        assert family.type in ("counter", "gauge")
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket"))


def test_no_word_of_a_status_is_in_the_figures() -> None:
    status = status_with(1)
    status["statistics"]["store"]["requests"][WORDS] = 3
    status["stuck"] = [{"key": WORDS, "reason": WORDS}]

    text = render(status).decode()

    assert "sesame" not in text
    assert "project" not in text
    assert read(status)["livememfs_store_requests_total", (("verb", OTHER),)] == 3


def test_what_a_status_does_not_have_is_left_out() -> None:
    samples = read({"state": "ok", "schedule": None, "statistics": {"schedule": None, "recall": {"index": None}}})

    assert {name for name, _ in samples} == {"livememfs_info", "livememfs_healthy", "livememfs_store_failing_seconds"}


def test_a_label_has_only_values_from_a_list() -> None:
    figure = Figure("x", "gauge", "Help.", "here", "kind", ("a", "b"))

    family = figure.family({"here": {"a": 1, "c": 5}})

    assert family is not None
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"kind": "a"}, 1), ({"kind": "b"}, 0)]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"state": "ok", "stuck": []}, "ok"),
        ({"state": "degraded", "stuck": [], "last_error": WORDS}, "degraded"),
        ({"state": "ok", "stuck": [{"key": WORDS, "reason": WORDS}]}, "degraded"),
        ({}, "degraded"),
    ],
)
def test_healthy_says_one_word(status: dict[str, Any], word: str) -> None:
    assert healthy(status) == (word == "ok", {"status": word})
