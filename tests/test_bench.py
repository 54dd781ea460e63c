"""The benchmark: its workloads do what they say, and its table leaves nothing out. Nothing is mounted here."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from benchlib import table
from benchlib.__main__ import main
from benchlib.places import Folder
from benchlib.run import Cost, Row, measure
from benchlib.workloads import Sizes, Workload, workloads

ROOT = Path(__file__).resolve().parents[1]
TINY = Sizes(objects=5, notes=4, reads=3, creates=9, saves=2, large=1, pause=0)
OPERATIONS = [3, 9, 9, 9, 2, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Where somebody's mount could be."""
    path = tmp_path / "other"
    path.mkdir()
    return path


def test_the_script_can_be_run_and_parsed() -> None:
    script = ROOT / "scripts" / "bench"

    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True, timeout=10)


def test_every_workload_has_a_row_for_every_place_and_round(tmp_path: Path, other: Path) -> None:
    """All but the cold ones of a place that cannot be made to forget. Nothing is left where it was measured."""
    chosen = workloads(TINY)
    with Folder("folder", tmp_path, TINY, can_be_cold=True) as plain, Folder(str(other), other, TINY) as mount:
        rows = measure([plain, mount], chosen, TINY, rounds=2)

    assert [row.workload for row in rows if row.place == "folder"] == [workload.name for workload in chosen]
    assert [row.workload for row in rows if row.place != "folder"] == [item.name for item in chosen if not item.cold]
    assert [[len(samples) for samples in row.rounds] for row in rows if row.place == "folder"] == [
        [operations] * 2 for operations in OPERATIONS
    ]
    lines = table.as_text(rows, []).splitlines()
    assert len(lines) == 2 + len(rows)
    assert all(any(line.startswith(workload.name) for line in lines) for workload in chosen)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("kind", ["objects", "notes"])
def test_a_workload_that_finds_too_little_fails(kind: str, tmp_path: Path) -> None:
    chosen = [workload for workload in workloads(TINY) if workload.space == kind]
    with Folder("folder", tmp_path, TINY, can_be_cold=True) as plain:
        folder = plain.space(kind, "") / {"objects": "list", "notes": "live"}[kind]
        min(folder.iterdir()).unlink()

        for workload in chosen:
            with pytest.raises(AssertionError, match=r"(4 of 5 files|3 of 4 (files|notes))"):
                workload.work(plain.space(kind, ""), TINY)


def test_figures_are_measured_ones_and_medians_of_the_rounds() -> None:
    many = Row("many", "folder", rounds=[[0.001, 0.002, 0.009], [0.003, 0.004, 0.005], [0.1, 0.2, 0.3]])
    once = Row("once", "folder", rounds=[[0.003], [0.001], [0.002]])

    assert (table.in_ms(many, 0.5), table.in_ms(many, 0.95)) == (4, 9)
    assert (table.in_ms(once, 0.5), table.in_ms(once, 0.95)) == (2, 3)


def test_the_table_compares_with_the_folder_and_counts_per_operation() -> None:
    rows = [
        Row("save", "folder", [[0.001] * 4]),
        Row("save", "mount", [[0.01] * 4], [Counter(put=4, get=1)]),
        Row("load", "mount", [[0.01] * 4], [Counter()]),
    ]
    costs = [Cost("ls", "mount", [Counter(list=2), Counter(list=2)]), Cost("cat", "mount", [Counter()])]

    assert table.as_text(rows, costs).splitlines() == [
        "workload  path    p50 ms  p95 ms  x folder  requests per operation",
        "--------  ------  ------  ------  --------  ----------------------",
        "save      folder   1.000   1.000       1.0",
        "          mount   10.000  10.000      10.0  get 0.25, put 1",
        "load      mount   10.000  10.000",
        "",
        "requests for  path   requests",
        "------------  -----  --------",
        "ls            mount  list 2",
        "cat           mount  none",
    ]
    assert table.as_json(rows, costs)["workloads"][1]["requests_per_operation"] == {"get": 0.25, "put": 1}


def test_a_listing_is_compared_with_its_list_pages_alone() -> None:
    rows = [Row("ls", "mount", [[0.3], [0.11], [0.1]], [Counter(list=2)] * 3, pages=[0.1, 0.2, 0.05])]

    assert table.as_text(rows, []).endswith("list 2; 1.10 x its LIST pages alone (100 ms)")
    assert table.as_json(rows, [])["workloads"][0]["pages_ms"] == 100


def test_a_failure_is_shown_and_the_other_rounds_count() -> None:
    rows = [
        Row("list", "mount", [[0.01]], [Counter(list=1)], failures=["Connection timed out"]),
        Row("list", "other", failures=["Connection timed out"] * 2),
    ]

    assert table.as_text(rows, []).splitlines()[2:] == [
        "list      mount  10.000  10.000            list 1; 1 of 2 rounds failed: Connection timed out",
        "          other                            2 of 2 rounds failed: Connection timed out",
    ]


def test_an_operation_that_fails_does_not_end_the_measurement(tmp_path: Path) -> None:
    chosen = [workload for workload in workloads(TINY) if workload.space != "new"]
    with Folder("folder", tmp_path, TINY, can_be_cold=True) as plain:
        (plain.space("objects", "") / "list").rename(plain.space("objects", "") / "gone")
        rows = measure([plain], chosen, TINY, rounds=1)

    assert [row.failures for row in rows] == [["No such file or directory"]] * 2 + [[]] * 4


def test_a_workload_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    def wait(_space: Path, _sizes: Sizes) -> list[float]:
        signal.pause()
        return []

    endless = Workload("endless", "new", wait)
    with Folder("folder", tmp_path, TINY) as plain:
        rows = measure([plain], [endless], TINY, rounds=1, limit=0.01)

    assert [row.failures for row in rows] == [["took over 0 s"]]


def test_an_unknown_workload_is_refused_before_anything_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mount", "--only", "nonsense"]) == 2
    assert "no workload is called nonsense" in capsys.readouterr().err
