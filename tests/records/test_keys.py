"""The key grammar reads and writes every key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.records import keys
from livememfs.records.keys import NoteName, ParsedKey

SECOND = datetime(2026, 2, 20, 14, 0, 0, tzinfo=UTC)

_words = st.sampled_from(
    ["", "alpha", "live", "bank", "_system", "_backups", "_ledger", "_meta.json", "_rules.md", "_synthesis.md", ".keep"]
)
any_key = st.one_of(st.text(max_size=30), st.lists(_words | st.text(max_size=6), max_size=6).map("/".join))


@given(any_key)
def test_building_a_parsed_key_gives_the_key(key: str) -> None:
    assert keys.build(keys.parse(key)) == key


@pytest.mark.parametrize(
    ("key", "kind", "space", "name"),
    [
        ("", "root", "", ""),
        ("alpha/_meta.json", "meta", "alpha", "_meta.json"),
        ("alpha/_rules.md", "rules", "alpha", "_rules.md"),
        ("alpha/_synthesis.md", "synthesis", "alpha", "_synthesis.md"),
        ("alpha/live/.keep", "keep", "alpha", "live/.keep"),
        ("alpha/bank/.keep", "keep", "alpha", "bank/.keep"),
        ("alpha/live/20260220T140000_c_todo_a1b2c3d4.md", "note", "alpha", "20260220T140000_c_todo_a1b2c3d4.md"),
        ("alpha/live/note_001.md", "note", "alpha", "note_001.md"),
        ("alpha/live/picture.png", "live-other", "alpha", "picture.png"),
        ("alpha/live/sub/x.md", "live-other", "alpha", "sub/x.md"),
        ("alpha/live/.x.md", "live-other", "alpha", ".x.md"),
        ("alpha/live/", "other", "alpha", "live/"),
        ("alpha/live", "other", "alpha", "live"),
        ("alpha/bank/api/specs.md", "bank", "alpha", "api/specs.md"),
        ("alpha/bank/api/", "other", "alpha", "bank/api/"),
        ("alpha/_ledger/00000003.json", "ledger", "alpha", "00000003.json"),
        ("alpha/_index/model-1/ab.vec", "index", "alpha", "model-1/ab.vec"),
        ("alpha/_index/", "other", "alpha", "_index/"),
        ("alpha/docs/.keep", "other", "alpha", "docs/.keep"),
        ("alpha/_changes/host.json", "other", "alpha", "_changes/host.json"),
        ("_system/tokens.json", "system", "", "tokens.json"),
        ("_backups/alpha/2026-02-20T18-00-00/_meta.json", "backup", "alpha", "2026-02-20T18-00-00/_meta.json"),
        ("_backups/alpha", "other", "_backups", "alpha"),
        ("_elsewhere/_meta.json", "other", "_elsewhere", "_meta.json"),
        ("readme.txt", "other", "", "readme.txt"),
        ("/alpha/_meta.json", "other", "", "/alpha/_meta.json"),
    ],
)
def test_each_place_of_the_bucket_has_its_kind(key: str, kind: keys.Kind, space: str, name: str) -> None:
    assert keys.parse(key) == ParsedKey(kind, space, name)


def test_builders_and_the_parser_agree() -> None:
    assert keys.parse(keys.meta_key("a")).kind == "meta"
    assert keys.parse(keys.rules_key("a")).kind == "rules"
    assert keys.parse(keys.synthesis_key("a")).kind == "synthesis"
    assert keys.parse(keys.live_key("a", "x.md")) == ParsedKey("note", "a", "x.md")
    assert keys.parse(keys.bank_key("a", "d/x.md")) == ParsedKey("bank", "a", "d/x.md")
    assert keys.parse(keys.keep_key("a", "live")).kind == "keep"
    assert keys.parse(keys.backup_prefix("a", "stamp") + "x") == ParsedKey("backup", "a", "stamp/x")
    assert keys.live_prefix("a") == "a/live/"
    assert keys.bank_prefix("a") == "a/bank/"


def test_a_backup_is_stamped_in_utc_without_colons() -> None:
    moment = datetime(2026, 2, 20, 20, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))

    assert keys.backup_prefix("a", keys.backup_stamp(moment)) == "_backups/a/2026-02-20T18-00-00/"


# --- the name of a note ------------------------------------------------------------------------------------------

note_names = st.builds(
    NoteName,
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0)),
    st.text(max_size=80).map(keys.agent_slug),
    st.from_regex(r"[A-Za-z0-9.-]{1,12}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
)


@given(note_names)
def test_a_notes_name_reads_back_as_its_parts(name: NoteName) -> None:
    assert NoteName.parse(str(name)) == name


@given(st.text(max_size=40) | st.from_regex(r"[0-9]{8}T[0-9]{6}_.*_.*_[0-9a-fA-F]{8}\.md", fullmatch=True))
def test_a_name_that_parses_is_written_the_same_way(name: str) -> None:
    parsed = NoteName.parse(name)

    assert parsed is None or str(parsed) == name


@pytest.mark.parametrize(
    ("name", "agent", "category"),
    [
        ("20260220T140000_cline-dev_observation_a1b2c3d4.md", "cline-dev", "observation"),
        ("20260220T140000_my_own_agent_todo_a1b2c3d4.md", "my_own_agent", "todo"),
        ("20260220T140000___todo_a1b2c3d4.md", "_", "todo"),
    ],
)
def test_an_agent_may_contain_underscores(name: str, agent: str, category: str) -> None:
    assert NoteName.parse(name) == NoteName(SECOND, agent, category, "a1b2c3d4")


@pytest.mark.parametrize(
    "name",
    [
        "note_001.md", "20260220T140000_cline_a1b2c3d4.md", "20261320T140000_cline_todo_a1b2c3d4.md",
        "20260220T250000_cline_todo_a1b2c3d4.md", "20260220T140000_cline_todo_a1b2c3d.md",
        "20260220T140000_cline_todo_a1b2c3dg.md", "20260220T140000_cline_todo_a1b2c3d4.txt",
        "20260220T140000_cline_todo_a1b2c3d4.md\n", "20260220T140000_a/b_todo_a1b2c3d4.md",
        "٢٠٢٦٠٢٢٠T140000_cline_todo_a1b2c3d4.md",
    ],
)  # fmt: skip
def test_other_names_are_not_canonical(name: str) -> None:
    assert NoteName.parse(name) is None


@pytest.mark.parametrize(
    ("timestamp", "agent", "category", "uid"),
    [
        (SECOND.replace(microsecond=1), "a", "todo", "a1b2c3d4"),
        (SECOND.astimezone(timezone(timedelta(hours=1))), "a", "todo", "a1b2c3d4"),
        (SECOND.replace(tzinfo=None), "a", "todo", "a1b2c3d4"),
        (SECOND, "", "todo", "a1b2c3d4"),
        (SECOND, "a/b", "todo", "a1b2c3d4"),
        (SECOND, "a", "to_do", "a1b2c3d4"),
        (SECOND, "a", "todo", "xyz"),
    ],
)
def test_parts_that_would_read_back_differently_are_refused(
    timestamp: datetime, agent: str, category: str, uid: str
) -> None:
    with pytest.raises(ValueError, match=r"name"):
        NoteName(timestamp, agent, category, uid)


@pytest.mark.parametrize(
    ("agent", "slug"),
    [
        ("cline-dev_2.0", "cline-dev_2.0"),
        ("Claude Code", "Claude-Code"),
        ("a/b", "a-b"),
        ("José", "Jos-"),
        ("", "unknown"),
        ("日本", "unknown"),
        ("x" * 100, "x" * 64),
    ],
)
def test_an_agent_becomes_a_slug(agent: str, slug: str) -> None:
    assert keys.agent_slug(agent) == slug


@given(st.text(max_size=80))
def test_a_slug_is_its_own_slug(agent: str) -> None:
    slug = keys.agent_slug(agent)

    assert keys.agent_slug(slug) == slug


def test_sessions_whose_ids_differ_in_a_sign_do_not_share_a_folder() -> None:
    ids = ("a-b", "a/b", "a b", "-a-b", "", "session", "日本", "x" * 64, "x" * 65, "x" * 66)

    slugs = [keys.session_slug(session) for session in ids]
    assert len(set(slugs)) == len(ids)
    assert all("/" not in slug for slug in slugs)
    assert slugs[0] == "a-b"


@pytest.mark.parametrize(
    ("model", "folder"),
    [
        ("multilingual-e5-small-1", "multilingual-e5-small-1"),
        ("text at https://host/v1", "text-at-https---host-v1-"),
        ("..", "-"),
        ("été", "-t--"),
    ],
)
def test_every_model_has_a_folder_of_its_own_for_its_vectors(model: str, folder: str) -> None:
    prefix = keys.index_prefix("alpha", model)

    assert prefix.startswith(f"alpha/_index/{folder}")
    assert prefix.count("/") == 3
    assert prefix != keys.index_prefix("alpha", model + "x")
    assert keys.parse(prefix + "a.vec").kind == "index"
