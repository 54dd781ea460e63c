"""The agent's last words from its transcript: in each agent's form, from its end alone, of a plain file of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from livememfs.agents import transcript
from livememfs.agents.transcript import TAIL, last_words

WORDS = "We decide for Postgres"
FORMS: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "user", "message": {"role": "user", "content": "Which database?"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Let me see"}]}},
        {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": WORDS}]}},
        {"type": "assistant", "isSidechain": True, "message": {"role": "assistant", "content": "of a subagent"}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "name": "x"}]}},
        {"type": "system", "content": "a note"},
    ],
    "codex": [
        {"type": "response_item", "payload": {"role": "user", "content": [{"type": "input_text", "text": "?"}]}},
        {"type": "event_msg", "payload": {"role": "assistant", "content": [{"type": "output_text", "text": WORDS}]}},
        {"type": "event_msg", "payload": {"type": "token_count"}},
    ],
    "cursor": [
        {"role": "user", "message": {"content": [{"type": "text", "text": "?"}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": WORDS}]}},
    ],
    "copilot": [
        {"type": "user.message", "data": {"content": "?"}},
        {"type": "assistant.message", "data": {"content": WORDS}},
        {"type": "session.idle", "data": {}},
    ],
}  # fmt: skip


def written(path: Path, entries: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return str(path)


@pytest.mark.parametrize("form", FORMS)
async def test_the_last_words_are_those_of_the_agent(tmp_path: Path, form: str) -> None:
    assert await last_words(written(tmp_path / "t.jsonl", FORMS[form])) == WORDS


@pytest.mark.parametrize("form", FORMS)
async def test_what_was_said_before_the_last_prompt_is_no_answer_to_it(tmp_path: Path, form: str) -> None:
    assert await last_words(written(tmp_path / "t.jsonl", [*FORMS[form], FORMS[form][0]])) == ""


async def test_only_the_end_of_a_long_transcript_is_read(tmp_path: Path) -> None:
    long = {"type": "assistant", "message": {"role": "assistant", "content": "x" * TAIL}}
    assert await last_words(written(tmp_path / "t.jsonl", [long, *FORMS["claude"][:5]])) == WORDS
    assert await last_words(written(tmp_path / "t.jsonl", [*FORMS["claude"], long])) == ""


@pytest.mark.parametrize("odd", ["missing", "folder", "pipe", "relative", "binary", "", "a\0b"])
async def test_what_is_no_transcript_says_nothing(tmp_path: Path, odd: str) -> None:
    path = tmp_path / odd.replace("\0", "") if odd else tmp_path
    if odd == "pipe":
        os.mkfifo(path)
    elif odd == "binary":
        path.write_bytes(os.urandom(4_096))
    with trio.fail_after(5):
        assert await last_words({"relative": "t.jsonl", "": ""}.get(odd, str(path) + odd.partition("a\0b")[1])) == ""


async def test_nothing_in_the_mount_is_read_and_no_link_leads_there(tmp_path: Path) -> None:
    (tmp_path / "mount").mkdir()
    inside = written(tmp_path / "mount" / "t.jsonl", FORMS["claude"])
    (tmp_path / "link.jsonl").symlink_to(inside)
    (tmp_path / "folder").symlink_to(tmp_path / "mount")

    assert await last_words(inside) == WORDS
    assert await last_words(inside, str(tmp_path / "mount")) == ""
    for path in ("link.jsonl", "folder/t.jsonl"):
        assert await last_words(str(tmp_path / path), str(tmp_path / "mount")) == ""


async def test_a_file_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t.jsonl", FORMS["claude"])
    monkeypatch.setattr(transcript.os, "getuid", lambda: os.geteuid() + 1)

    assert await last_words(path) == ""


async def test_nobody_waits_for_a_disk_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async def hangs(*_: object, **__: object) -> str:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(transcript.trio.to_thread, "run_sync", hangs)

    assert await last_words("/x") == ""
    assert trio.current_time() < 1
