"""What is shown: figures made from samples, as text for people and as JSON for programs.

Owns the arithmetic: percentiles are taken by rank, so each is a time that was measured; of several rounds the median of
their percentiles counts. A workload that is one operation per round has its percentiles over the rounds. Refuses to
fill gaps: what was not measured has no row. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchlib.run import Cost, Row

PLAIN = "folder"
HEADINGS = ("workload", "path", "p50 ms", "p95 ms", "x folder", "requests per operation")


def percentile(seconds: Sequence[float], part: float) -> float:
    """The smallest sample that at least `part` (0 to 1) of all are not above."""
    return sorted(seconds)[max(0, math.ceil(part * len(seconds)) - 1)]


def in_ms(row: Row, part: float) -> float:
    """One percentile of a row, in milliseconds."""
    if all(len(samples) == 1 for samples in row.rounds):
        return 1000 * percentile([samples[0] for samples in row.rounds], part)
    return 1000 * median(percentile(samples, part) for samples in row.rounds)


def per_operation(requests: Sequence[Counter[str]], operations: float) -> dict[str, float]:
    """Requests per operation by verb: the median of the rounds."""
    verbs = sorted({verb for counts in requests for verb in counts})
    return {verb: median(counts[verb] for counts in requests) / operations for verb in verbs}


def _plain(rows: Sequence[Row]) -> Mapping[str, float]:
    return {row.workload: in_ms(row, 0.5) for row in rows if row.place == PLAIN and row.rounds}


def _figures(row: Row, plain: Mapping[str, float]) -> dict[str, Any]:
    """What is shown of a row; of one that failed in every round there are no figures."""
    if not row.rounds:
        return {"workload": row.workload, "path": row.place, "failures": row.failures, "seconds": []}
    p50 = in_ms(row, 0.5)
    return {
        "workload": row.workload,
        "path": row.place,
        "p50_ms": p50,
        "p95_ms": in_ms(row, 0.95),
        "ratio": p50 / plain[row.workload] if row.workload in plain else None,
        "pages_ms": 1000 * median(row.pages) if row.pages else None,
        "requests_per_operation": per_operation(row.requests, len(row.rounds[0])),
        "failures": row.failures,
        "seconds": row.rounds,
    }


def as_json(rows: Sequence[Row], costs: Sequence[Cost]) -> dict[str, Any]:
    """All figures, and the samples they come from (seconds)."""
    plain = _plain(rows)
    requests = [{"what": cost.what, "path": cost.place, "requests": per_operation(cost.requests, 1)} for cost in costs]
    return {"workloads": [_figures(row, plain) for row in rows], "requests": requests}


def as_text(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    """Both tables. A workload's name stands in its first line only."""
    plain = _plain(rows)
    lines = [_cells(_figures(row, plain)) for row in rows]
    named = [
        ("" if number and rows[number - 1].workload == row.workload else row.workload, *line)
        for number, (row, line) in enumerate(zip(rows, lines, strict=True))
    ]
    text = aligned([HEADINGS, *named], right={2, 3, 4})
    if costs:
        rest = [(cost.what, cost.place, _in_words(per_operation(cost.requests, 1)) or "none") for cost in costs]
        text += "\n\n" + aligned([("requests for", "path", "requests"), *rest])
    return text


def _cells(figures: Mapping[str, Any]) -> tuple[str, ...]:
    failures, rounds = figures["failures"], len(figures["failures"]) + len(figures["seconds"])
    failed = f"{len(failures)} of {rounds} rounds failed: {failures[0]}" if failures else ""
    if "p50_ms" not in figures:
        return (figures["path"], "", "", "", failed)
    ratio = "" if figures["ratio"] is None else f"{figures['ratio']:,.1f}"
    words = "; ".join(filter(None, (_in_words(figures["requests_per_operation"]), _beside_pages(figures), failed)))
    return (figures["path"], f"{figures['p50_ms']:,.3f}", f"{figures['p95_ms']:,.3f}", ratio, words)


def _beside_pages(figures: Mapping[str, Any]) -> str:
    """How a listing compares with its LIST pages alone."""
    pages = figures["pages_ms"]
    return f"{figures['p50_ms'] / pages:.2f} x its LIST pages alone ({pages:,.0f} ms)" if pages else ""


def _in_words(requests: Mapping[str, float]) -> str:
    return ", ".join(f"{verb} {_number(count)}" for verb, count in requests.items() if count)


def _number(count: float) -> str:
    return "<0.01" if count < 0.01 else f"{count:,.2f}".removesuffix(".00")


def aligned(lines: Sequence[tuple[str, ...]], right: frozenset[int] | set[int] = frozenset()) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ruled = [lines[0], tuple("-" * width for width in widths), *lines[1:]]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in ruled
    )
