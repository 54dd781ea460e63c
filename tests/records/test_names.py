"""Names that people, models and editors give."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.errors import InvalidName
from livememfs.records.names import check_bank_name, check_space_name, is_litter, is_lock


@pytest.mark.parametrize("name", ["a", "0", "projet-alpha", "a.b_c-d", "searching", "x" * 63])
def test_a_good_space_name_is_returned_as_it_is(name: str) -> None:
    assert check_space_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "search", "Alpha", "-a", ".a", "_system", "a b", "a/b", "é", "x" * 64, "a\n", "..", "٣"]
)
def test_a_bad_space_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_space_name(name)


# --- bank files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("progress.md", "progress.md"),
        ("bank/progress.md", "progress.md"),
        ("api/v1/users/list.md", "api/v1/users/list.md"),
        ("bank/api/v1/users/list.md", "api/v1/users/list.md"),
        ("my notes (2).md", "my notes (2).md"),
        ("Décisions.md", "Décisions.md"),
        (unicodedata.normalize("NFD", "Décisions.md"), "Décisions.md"),
        ("日本語.md", "日本語.md"),
        ("sessions/today.md", "sessions/today.md"),
        ("_index.md", "_index.md"),
        ("a..b.md", "a..b.md"),
        ("banking.md", "banking.md"),
        ("x" * 252 + ".md", "x" * 252 + ".md"),
    ],
)
def test_a_good_bank_name_comes_back_relative_and_in_nfc(given_name: str, name: str) -> None:
    assert check_bank_name(given_name) == name
    assert check_bank_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("prog\u200bress.md", "U+200B ZERO WIDTH SPACE"),
        ("progress.md\u200b", "U+200B ZERO WIDTH SPACE"),
        ("\ufeffprogress.md", "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
        ("a\u202eb.md", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\u00adb.md", "U+00AD SOFT HYPHEN"),
        ("a\u00a0b.md", "U+00A0 NO-BREAK SPACE"),
        ("a\u2060b.md", "U+2060 WORD JOINER"),
        ("a\u3164b.md", "U+3164 HANGUL FILLER"),
        ("a\uffa0b.md", "U+FFA0 HALFWIDTH HANGUL FILLER"),
        ("a\ufe0fb.md", "U+FE0F VARIATION SELECTOR-16"),
        ("a\u0301\u0302b.md", "U+0302 COMBINING CIRCUMFLEX ACCENT"),
        ("a\U000e0061b.md", "U+E0061 TAG LATIN SMALL LETTER A"),
        ("a\x00b.md", "U+0000 "),
        ("a\nb.md", "U+000A "),
        ("a\x7fb.md", "U+007F "),
        ("a\ud800b.md", "U+D800 "),
        ("plan\U0001f600.md", "U+1F600 GRINNING FACE"),
        ("a–b.md", "U+2013 EN DASH"),
        ("a\\b.md", "U+005C REVERSE SOLIDUS"),
        *((name, "relative") for name in ("/etc/passwd.md", "/bank/x.md")),
        *((name, "dot") for name in ("../x.md", "bank/../x.md", "a/../../x.md", "./x.md", ".md", ".keep", "a/.h.md")),
        *((name, "empty") for name in ("", "bank/", "a//x.md", "a/x.md/")),
        ("bank/bank/x.md", "repeats"),
        *((name, "outside") for name in ("live/x.md", "_rules.md", "_synthesis.md", "_meta.json", "bank/_rules.md")),
        *((name, "outside") for name in ("_ledger/x.md", "_system/x.md", "_backups/x.md")),
        *((name, ".md") for name in ("notes.txt", "notes", "notes.MD", "notes.md.")),
        *((name, "space") for name in (" x.md", "a /x.md")),
        ("a/b/c/d/x.md", "deep"),
        ("x" * 253 + ".md", "255 bytes"),
        ("é" * 127 + ".md", "255 bytes"),
        ("/".join([unicodedata.normalize("NFC", "é") * 110] * 4) + "-" * 30 + ".md", "900 bytes"),
    ],
)
def test_a_bad_bank_name_is_refused_with_its_fault(name: str, reason: str) -> None:
    with pytest.raises(InvalidName) as caught:
        check_bank_name(name)

    assert reason in str(caught.value)
    assert str(caught.value).isprintable()


@given(st.text(max_size=30).map(lambda text: text + ".md") | st.text(max_size=30))
def test_an_accepted_bank_name_is_accepted_again_unchanged(name: str) -> None:
    try:
        accepted = check_bank_name(name)
    except InvalidName:
        return
    assert check_bank_name(accepted) == accepted
    assert accepted.isprintable()
    assert not accepted.startswith("/")


# --- litter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "4913", ".note.md.swp", ".note.md.swo", ".note.md.swx", ".note.md.swpx", ".swp", "note.md~", "note.bak~",
        ".#note.md", "#note.md#", ".goutputstream-ABC123", ".~lock.note.md#", "sedAbC123", ".note.md.Xy12Zq",
        "note.tmp", "note.md.tmp", "note.md.tmp.1234", "note.md.tmp.1234.1760000000000", "note.md___jb_tmp___",
        "note.md___jb_old___", ".DS_Store", "._note.md", ".fuse_hidden0000000100000001", ".nfs000000000001",
    ],
)  # fmt: skip
def test_what_editors_leave_behind_is_litter(name: str) -> None:
    assert is_litter(name)


@pytest.mark.parametrize(
    "name",
    [
        "note.md", "4913.md", "49130", "note.swp.md", ".note.md", "a~b.md", "#note.md", "note#.md", "#", "sedAbC12",
        "sedAbC1234", "sed-notes.md", "sediment.md", "tmp", "tmp.md", "note.tmpl", "template.md", ".keep",
        "goutputstream-1", "DS_Store", "20260220T140000_cline_todo_a1b2c3d4.md", "decision-use-s3.md",
    ],
)  # fmt: skip
def test_near_misses_are_notes(name: str) -> None:
    assert not is_litter(name)


def test_only_what_says_that_an_editor_is_open_is_a_lock() -> None:
    """What is refused to a lock is not told to anybody: so no name may be one by which a text is saved."""
    assert all(is_lock(name) for name in (".#note.md", ".~lock.note.odt#", ".note.md.swp", ".note.md.swx"))
    assert not any(is_lock(name) for name in ("note.md", "#note.md#", "note.md~", "sedAbC123", "4913", ".#", ".swp"))
