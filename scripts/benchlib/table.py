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


def as_json(rows: Sequence[Row], costs: Sequence[Cost]) -> dict[str, Any]:
    """All figures, and the samples they come from (seconds)."""
    plain = _plain(rows)
    return {
        "workloads": [
            {
                "workload": row.workload,
                "path": row.place,
                "p50_ms": in_ms(row, 0.5),
                "p95_ms": in_ms(row, 0.95),
                "ratio": in_ms(row, 0.5) / plain[row.workload] if row.workload in plain else None,
                "requests_per_operation": _of_row(row),
                "seconds": row.rounds,
            }
            for row in rows
        ],
        "requests": [
            {"what": cost.what, "path": cost.place, "requests": per_operation(cost.requests, 1)} for cost in costs
        ],
    }


def as_text(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    """Both tables."""
    plain = _plain(rows)
    lines: list[tuple[str, ...]] = []
    for row in rows:
        p50 = in_ms(row, 0.5)
        ratio = f"{p50 / plain[row.workload]:,.1f}" if row.workload in plain else ""
        cells = (row.place, f"{p50:,.3f}", f"{in_ms(row, 0.95):,.3f}", ratio, _in_words(_of_row(row)))
        lines.append((row.workload if not lines or rows[len(lines) - 1].workload != row.workload else "", *cells))
    text = _aligned([HEADINGS, *lines], right={2, 3, 4})
    if costs:
        rest = [(cost.what, cost.place, _in_words(per_operation(cost.requests, 1)) or "none") for cost in costs]
        text += "\n\n" + _aligned([("requests for", "path", "requests"), *rest])
    return text


def _plain(rows: Sequence[Row]) -> Mapping[str, float]:
    return {row.workload: in_ms(row, 0.5) for row in rows if row.place == PLAIN}


def _of_row(row: Row) -> dict[str, float]:
    return per_operation(row.requests, len(row.rounds[0])) if row.requests else {}


def _in_words(requests: Mapping[str, float]) -> str:
    return ", ".join(f"{verb} {count:,.2f}".removesuffix(".00") for verb, count in requests.items() if count)


def _aligned(lines: Sequence[tuple[str, ...]], right: frozenset[int] | set[int] = frozenset()) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ruled = [lines[0], tuple("-" * width for width in widths), *lines[1:]]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in ruled
    )
