"""What people are shown of texts that others wrote."""

from __future__ import annotations

import io
import json

import pytest
import structlog

from livememfs import log
from livememfs.errors import NotPermitted
from livememfs.shown import harmless, in_a_line, without_login
from livememfs.testing.clock import ManualClock
from livememfs.tree.errorlog import ErrorLog

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\x00\u202egnp.exe\rall is well"
STEERING = {"\x1b", "\x07", "\x9b", "\x7f", "\x00", "\u202e", "\r"}


def test_no_character_that_steers_a_terminal_is_left() -> None:
    assert not STEERING & {*harmless(HOSTILE)}
    assert harmless("\x1b[31m") == "\\u001b[31m"


@pytest.mark.parametrize(
    "text", ["a\nb\tc", "a line\r\nof another system", "déjà vu 記憶 🧠 שלום", "1\u202f000\xa0€", ""]
)
def test_a_text_without_them_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


def test_a_cell_of_a_table_is_one_line() -> None:
    assert in_a_line("a\nb\tc\u2028d\r\ne").splitlines() == ["a\\u000ab\\u0009c\\u2028d\\u000d\\u000ae"]


def test_json_stays_json_and_means_the_same() -> None:
    """What `json.dumps` leaves as it is comes out as the escape that JSON has for it."""
    assert json.loads(harmless(json.dumps({"name": HOSTILE}, ensure_ascii=False))) == {"name": HOSTILE}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pass@host/v1", "https://***@host/v1"),
        ("at https://key@host:8443, twice http://a:b@c", "at https://***@host:8443, twice http://***@c"),
        ("postgresql://me:p@ss@host/db?sslmode=require", "postgresql://***@host/db?sslmode=require"),
        ("socks5://u:p@127.0.0.1:1080", "socks5://***@127.0.0.1:1080"),
        ("https://host/path@v1?to=me@home", "https://host/path@v1?to=me@home"),
        ("write to me@home", "write to me@home"),
    ],
)
def test_no_login_of_a_url_is_left(text: str, shown: str) -> None:
    assert without_login(text) == shown


@pytest.mark.parametrize("as_json", [True, False])
def test_no_line_of_a_log_steers_a_terminal_or_has_a_login_in_it(as_json: bool) -> None:
    stream = io.StringIO()
    try:
        log.configure("info", json=as_json, stream=stream)
        structlog.get_logger("x").info("a name", key=HOSTILE, url="https://me:pass@host")
        structlog.get_logger("x").info("failed", exc_info=ValueError(f"{HOSTILE} at https://me:pass@host"))
    finally:
        structlog.reset_defaults()
    assert not STEERING & {*stream.getvalue()}
    assert "me:pass" not in stream.getvalue()
    assert "title" in stream.getvalue()


def test_errors_ndjson_steers_no_terminal_and_tells_no_login() -> None:
    errors = ErrorLog(ManualClock())
    errors.record("open", f"alpha/{HOSTILE}", NotPermitted(path=HOSTILE, detail="https://me:pass@host"))
    text = errors.errors().decode()

    assert not STEERING & {*text}
    assert "me:pass" not in text
    assert json.loads(text)["path"] == f"alpha/{HOSTILE}"
