"""Observations and summaries in the real index: each fact is found by itself, filters let through what fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_search
from recall_world import SPACE, Bucket, no_model
from test_search import DIM

from livememfs.recall.index.local import Index
from livememfs.recall.index.reader import records_in
from livememfs.recall.index.record import Record
from livememfs.recall.search.found import RankedHit
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.session import Summary
from livememfs.testing.embed import hashed

BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def day(number: int) -> datetime:
    return BEGAN + timedelta(days=number)


def observed(number: int, title: str, **fields: Any) -> tuple[str, bytes]:
    """The key and the object of an observation."""
    one = Observation(f"{number:08x}", **{"session": "s-1", "created_at": day(number), "type": "discovery",
                                          "title": title, **fields})  # fmt: skip
    return keys.observations_prefix(SPACE) + one.name, one.render()


def summed_up(session: str, at: datetime, **said: str) -> tuple[str, bytes]:
    return keys.session_key(SPACE, session, keys.SUMMARY), Summary(session, at, **said).render()


OBJECTS = [
    observed(
        1,
        "Tokens last a day",
        type="bugfix",
        narrative="Login was refused since tokens had expired.",
        facts=("bcrypt runs with salt twelve", "refresh happens hourly"),
        concepts=("gotcha", "problem-solution"),
        files_modified=("src/auth/token.py",),
    ),
    observed(
        2,
        "Uploads are tried again",
        type="feature",
        narrative="A queue keeps what failed.",
        facts=("three attempts at most",),
        concepts=("how-it-works",),
        files_read=("src/upload.py",),
        files_modified=("src/queue.py",),
    ),
    observed(
        3, "Postgres was chosen", type="decision", narrative="The queue needs one writer.", concepts=("trade-off",)
    ),
    observed(4, "Lunch is at noon", type="discovery", narrative="Nobody works then.", files_read=("docs/TOKEN.md",)),
    observed(5, "The queue broke", type="bugfix", narrative="Its file was full.", files_modified=("src/queue.py",)),
    summed_up("s-1", day(6), request="Mend the login", learned="Tokens are the matter", completed="All in src/auth.py"),
]


def read(key: str, data: bytes) -> Sequence[Record]:
    return list(records_in(key, data, "1", 0))


def fill(index: Index, objects: Sequence[tuple[str, bytes]]) -> None:
    index.apply((), [(key, "1", SPACE, tuple(read(key, data))) for key, data in objects])
    while texts := index.unembedded(500):
        rows = np.array([hashed(text.own, DIM) for text in texts])
        index.take_vectors([text.meaning for text in texts], rows)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    index = Index(tmp_path_factory.mktemp("shelf"), "hashed")
    fill(index, OBJECTS)
    yield index
    index.close()


ask = partial(test_search.ask, spaces=(SPACE,))


def ids(found: RankedHit) -> list[str]:
    """The last digit of the ids of what was found, best first; `s` for a summary."""
    return [keys.ending(hit.record.key)[-1] if hit.record.kind == keys.OBSERVATIONS else "s" for hit in found.hits]


# --- what a record has -------------------------------------------------------------------------------------------


def test_an_observation_is_a_record_of_its_narrative_and_of_each_fact() -> None:
    (record,) = read(*OBJECTS[0])

    assert record.pieces == (
        "Tokens last a day\nLogin was refused since tokens had expired.",
        "bcrypt runs with salt twelve",
        "refresh happens hourly",
    )
    assert (record.kind, record.type, record.title, record.space) == (
        "observations",
        "bugfix",
        "Tokens last a day",
        SPACE,
    )
    assert record.created == day(1).timestamp()
    assert {("concept", "gotcha"), ("file", "src/auth/token.py")} <= set(record.labels)


@pytest.mark.parametrize("data", [b"", b"---\ntitle: ''\n---\n", b"\xff", b" \n"])
def test_an_object_that_says_nothing_is_no_record(data: bytes) -> None:
    assert read(OBJECTS[0][0], data) == []
    assert read(OBJECTS[-1][0], data) == []


@pytest.mark.parametrize("name", [keys.SESSION, keys.PROMPTS])
def test_of_a_session_only_the_summary_is_found(name: str) -> None:
    assert read(keys.session_key(SPACE, "s-1", name), b'{"prompt": "Mend the login"}') == []


# --- each piece --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("meaning", [True, False])
@pytest.mark.parametrize(
    ("typed", "which", "piece"),
    [
        ("login refused expired", "1", 0),
        ("bcrypt salt twelve", "1", 1),
        ("refresh hourly", "1", 2),
        ("three attempts", "2", 1),
        ("one writer", "3", 0),
    ],
)
def test_the_narrative_and_each_fact_are_found_by_themselves(
    shelf: Index, typed: str, which: str, piece: int, meaning: bool
) -> None:
    found = ask(shelf, typed, meaning=meaning)

    assert ids(found)[0] == which
    assert found.hits[0].piece == piece


@pytest.mark.parametrize("meaning", [True, False])
def test_an_observation_is_found_once_by_the_best_of_its_pieces(shelf: Index, meaning: bool) -> None:
    found = ask(shelf, "tokens refresh hourly", meaning=meaning)

    assert ids(found)[0] == "1"
    assert found.hits[0].piece == 2
    assert len({hit.record.ref for hit in found.hits}) == len(found.hits)


def test_by_words_alone_the_best_comes_first(shelf: Index) -> None:
    found = ask(shelf, "queue file full", meaning=False)

    assert found.strategy == "words"
    assert ids(found)[0] == "5"
    assert {"2", "3"} <= set(ids(found))


# --- filters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "which"),
    [
        ("type:bugfix", "51"),
        ("type:bugfix,decision", "531"),
        ("concept:gotcha", "1"),
        ("concept:trade-off", "3"),
        ("concept:gotcha,how-it-works", "21"),
        ("file:queue", "52"),
        ("file:src/", "s521"),
        ("file:TOKEN", "41"),
        ("file:auth", "s1"),
        ("file:upload.py", "2"),
        ("after:2026-01-04", "s543"),
        ("before:2026-01-04", "21"),
        ("after:2026-01-03 before:2026-01-05", "32"),
        ("in:observations", "54321"),
        ("in:sessions", "s"),
        ("in:observations,sessions", "s54321"),
        ("-in:observations", "s"),
        ("-type:bugfix in:observations", "432"),
        ("type:bugfix file:queue", "5"),
        ("type:bugfix after:2026-01-03 concept:gotcha", ""),
    ],
)
@pytest.mark.parametrize("meaning", [True, False])
def test_filters_alone_are_strict_and_answered_the_newest_first(
    shelf: Index, typed: str, which: str, meaning: bool
) -> None:
    found = ask(shelf, typed, meaning=meaning)

    assert (found.strategy, ids(found)) == ("strict", list(which))


@pytest.mark.parametrize(
    "typed", ["type:bugfix", "file:queue", "in:observations", "before:2026-01-04", "concept:gotcha"]
)
@pytest.mark.parametrize("words", ["queue", "tokens", "refresh hourly", "three attempts"])
def test_with_words_nothing_is_let_through_that_does_not_fit_and_all_that_fits_is_there(
    shelf: Index, words: str, typed: str
) -> None:
    strict = ids(ask(shelf, typed))

    for meaning in (True, False):
        assert sorted(ids(ask(shelf, f"{words} {typed}", meaning=meaning))) == sorted(strict)


def test_what_is_meant_keeps_its_order_among_what_fits_and_dates_complete_it(tmp_path: Path) -> None:
    """claude-mem 4.4, phases 3 and 4: of what means something in the best order, what fits; then the newest."""
    index = Index(tmp_path, "hashed")
    titles = [
        "queue broker retry",
        "queue broker",
        "queue lunch garden",
        "garden",
        "lunch",
        "queue broker retry upload",
    ]
    kinds = ["bugfix", "bugfix", "bugfix", "bugfix", "bugfix", "decision"]
    fill(index, [observed(n, title, type=kind) for n, (title, kind) in enumerate(zip(titles, kinds, strict=True))])
    everything = ids(ask(index, "queue broker retry"))
    found = ask(index, "queue broker retry type:bugfix")

    assert found.strategy == "hybrid"
    relevant = [one for one, hit in zip(ids(found), found.hits, strict=True) if "date" not in hit.reasons]
    assert relevant == [one for one in everything if one in relevant]
    assert relevant[0] == "0"
    assert "5" not in ids(found)
    rest = ids(found)[len(relevant) :]
    assert rest == sorted(rest, reverse=True)
    assert sorted(ids(found)) == ["0", "1", "2", "3", "4"]
    words = ask(index, "retry type:bugfix", meaning=False)
    assert ids(words) == ["0", "4", "3", "2", "1"]
    assert [list(hit.reasons) for hit in words.hits] == [["words"]] + [["date"]] * 4
    assert ids(ask(index, "retry type:bugfix limit:2", meaning=False)) == ["0", "4"]
    index.close()


# --- no hidden window --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recent_days", "typed", "found"),
    [
        (0, "queue", {"new", "old"}),
        (0, "in:observations", {"new", "old"}),
        (90, "queue", {"new"}),
        (90, "type:bugfix", {"new"}),
        (90, "queue after:2020", {"new", "old"}),
        (90, "queue before:2025-11", {"old"}),
    ],
)
async def test_old_observations_are_found_unless_somebody_set_a_window_and_then_it_is_said(
    bucket: Bucket, recent_days: int, typed: str, found: set[str]
) -> None:
    for name, age in (("new", 80), ("old", 300)):
        at = bucket.clock.now() - timedelta(days=age)
        key, data = observed(age, name, created_at=at, type="bugfix", narrative="about the queue")
        await bucket.memory.put(key, data)
    async with bucket.mount(no_model, recent_days=recent_days) as mount:
        answer = await mount.ask(typed)

    assert {hit.record.title for hit in answer.found.hits} == found
    windowed = bool(recent_days) and "after:" not in typed and "before:" not in typed
    assert any(f"only the last {recent_days} days" in doubt for doubt in answer.query.doubts) is windowed
