"""The records of a space: kept as others wrote them, and refused when they have another form."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.errors import NotText
from livememfs.records.space import Meta, Synthesis, parse_synthesis, render_synthesis
from livememfs.text.foreign import LARGEST
from livememfs.text.times import iso, parse_iso

KNOWN = (
    "space_id", "description", "owner", "created_at", "last_consolidation", "consolidation_count",
    "total_notes_processed", "version", "livememfs_ledger",
)  # fmt: skip
MOMENT = datetime(2026, 2, 20, 14, 0, 0, tzinfo=UTC)
moments = st.datetimes(timezones=st.just(UTC))
metas = st.builds(
    Meta,
    space_id=st.text(),
    description=st.text(),
    owner=st.text(),
    created_at=moments,
    last_consolidation=st.none() | moments,
    consolidation_count=st.integers(0, LARGEST),
    total_notes_processed=st.integers(0, LARGEST),
    version=st.integers(0, 9),
    ledger=st.integers(0, LARGEST),
    extra=st.dictionaries(
        st.text().filter(lambda name: name not in KNOWN), st.text() | st.lists(st.integers()), max_size=3
    ),
)


@given(metas)
def test_any_meta_reads_back_as_itself(meta: Meta) -> None:
    assert Meta.parse(meta.render()) == meta


def test_meta_has_the_form_of_the_data_model() -> None:
    meta = Meta("alpha", "Refonte de l'été", "cline-dev", MOMENT)

    assert meta.render().decode() == (
        '{\n  "space_id": "alpha",\n  "description": "Refonte de l\'été",\n  "owner": "cline-dev",\n'
        '  "created_at": "2026-02-20T14:00:00Z",\n  "last_consolidation": null,\n  "consolidation_count": 0,\n'
        '  "total_notes_processed": 0,\n  "version": 1\n}\n'
    )


def test_unknown_fields_and_exact_stamps_of_others_survive_a_run() -> None:
    theirs = {"space_id": "a", "created_at": "2026-02-20T14:00:00.123456+00:00", "colour": {"x": [1]}, "graph": None}
    ran = Meta.parse(json.dumps(theirs).encode()).after_run(MOMENT + timedelta(microseconds=5), 42)

    assert json.loads(ran.render()) == {
        "space_id": "a", "description": "", "owner": "", "created_at": "2026-02-20T14:00:00.123456Z",
        "last_consolidation": "2026-02-20T14:00:00Z", "consolidation_count": 1, "total_notes_processed": 42,
        "version": 1, "colour": {"x": [1]}, "graph": None,
    }  # fmt: skip


@pytest.mark.parametrize("odd", [None, "3", -1, 0, True, 2.5, [4]])
def test_a_number_in_the_ledger_that_is_none_is_left_out(odd: object) -> None:
    theirs = {"space_id": "a", "created_at": "2026-02-20T14:00:00Z", "livememfs_ledger": odd}

    assert b"ledger" not in Meta.parse(json.dumps(theirs).encode()).render()


def test_runs_add_up() -> None:
    meta = Meta("a", "", "", MOMENT).after_run(MOMENT, 3).after_run(MOMENT + timedelta(hours=1), 4)

    assert (meta.consolidation_count, meta.total_notes_processed) == (2, 7)
    assert meta.last_consolidation == MOMENT + timedelta(hours=1)


def test_a_lone_surrogate_in_anothers_meta_goes_back_to_its_escape() -> None:
    data = b'{"space_id": "a", "created_at": "2026-02-20", "x": "\\ud800"}'

    assert b'"x": "\\ud800"' in Meta.parse(data).render()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{",
        b"{}",
        b'{"space_id": "a"}',
        b'{"space_id": 1, "created_at": "2026-02-20"}',
        b'{"space_id": "a", "created_at": "yesterday"}',
        b'{"space_id": "a", "created_at": "2026-02-20", "consolidation_count": "3"}',
        b'{"space_id": "a", "created_at": "2026-02-20", "version": true}',
        b"[" * 100_000,
    ],
)
def test_nonsense_is_no_meta(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Meta.parse(data)


def test_a_byte_order_mark_does_no_harm() -> None:
    assert Meta.parse(b'\xef\xbb\xbf{"space_id": "a", "created_at": "2026-02-20"}').space_id == "a"


# --- synthesis ---------------------------------------------------------------------------------------------------


@given(st.text(), moments.map(lambda moment: moment.replace(microsecond=0)), st.integers(0, 9_999), st.integers(0, 999))
def test_a_synthesis_reads_back_as_itself(body: str, moment: datetime, notes: int, number: int) -> None:
    assert parse_synthesis(render_synthesis(body, moment, notes, number)) == Synthesis(moment, notes, number, body)


def test_a_synthesis_has_the_form_of_the_data_model() -> None:
    assert render_synthesis("Facts\n", MOMENT, 42, 3) == (
        b'---\nconsolidated_at: "2026-02-20T14:00:00Z"\nnotes_processed: 42\nconsolidation_number: 3\n---\n\nFacts\n'
    )


@pytest.mark.parametrize(
    "text", ["plain", "---\nnot a mapping\n---\nx", "---\nconsolidated_at: never\nnotes_processed: many\n---\n"]
)
def test_a_foreign_synthesis_is_read_as_far_as_it_goes(text: str) -> None:
    synthesis = parse_synthesis(text.encode())

    assert (synthesis.consolidated_at, synthesis.notes_processed, synthesis.number) == (None, 0, 0)
    assert text.endswith(synthesis.body)


def test_a_synthesis_that_is_not_text_is_refused() -> None:
    with pytest.raises(NotText):
        parse_synthesis(b"\xff")


# --- stamps ------------------------------------------------------------------------------------------------------


@given(moments)
def test_a_stamp_reads_back(moment: datetime) -> None:
    assert parse_iso(iso(moment, exact=True)) == moment
    assert parse_iso(iso(moment)) == moment.replace(microsecond=0)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-20T14:00:00Z", "2026-02-20T14:00:00z", "2026-02-20t14:00:00", " 2026-02-20 14:00:00 ",
        "2026-02-20T15:00:00+01:00", "2026-02-20T09:00:00-0500", "2026-02-20T14:00:00.000000000Z", "20260220T140000Z",
    ],
)  # fmt: skip
def test_every_usual_form_is_the_same_moment(text: str) -> None:
    assert parse_iso(text) == MOMENT
    assert parse_iso(text).tzinfo is UTC


@pytest.mark.parametrize("text", ["", "now", "2026", "2026-13-01", "14:00", "0001-01-01T00:00:00+05:00"])
def test_what_is_no_stamp_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_iso(text)


def test_other_zones_are_written_in_utc() -> None:
    assert iso(datetime(2026, 2, 20, 16, 0, tzinfo=timezone(timedelta(hours=2)))) == "2026-02-20T14:00:00Z"
