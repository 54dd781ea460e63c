"""ChatGPT and claude-mem: conversations in the form of its export, and a database with the tables of 13.25.

Neither was made by the program itself: the one needs an account, the other a model of its own.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest
from import_house import House, counts

from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.session import Session, Summary, prompts_in

START = 1_770_000_000.5
TABLES = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
 memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT,
 started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER,
 status TEXT NOT NULL DEFAULT 'active');
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER,
 content_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL,
 created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
 project TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT,
 facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
 files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
 created_at_epoch INTEGER NOT NULL, generated_by_model TEXT);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
 project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT,
 files_edited TEXT, notes TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
"""
EPOCH, ISO = 1_770_000_000_000, "2026-02-02T02:40:00.000Z"
SECRET = "ghp_" + "a1B2" * 9


def conversation(*messages: tuple[str, str], name: str = "c-1") -> dict[str, Any]:
    """A conversation whose messages follow each other, and another answer to the first that was not kept."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    before = "root"
    for number, (role, words) in enumerate(messages):
        node = f"m{number}"
        content = {"content_type": "text", "parts": [words]}
        message = {"id": node, "author": {"role": role}, "create_time": START + number, "content": content}
        mapping[node] = {"id": node, "parent": before, "children": [], "message": {**message, "recipient": "all"}}
        before = node
    other = {"id": "other", "author": {"role": "assistant"}, "create_time": START + 1}
    said = {**other, "content": {"content_type": "text", "parts": ["An answer that was asked for again."]}}
    mapping["other"] = {"id": "other", "parent": "m0", "children": [], "message": said}
    return {
        "conversation_id": name,
        "title": "A talk",
        "create_time": START,
        "mapping": mapping,
        "current_node": before,
    }


TALK = (("user", "Which store?"), ("assistant", "Garage, because it is small."), ("user", "Thanks."))


@pytest.mark.parametrize("form", ["file", "folder", "zip"])
async def test_a_conversation_comes_as_it_was_shown_last(house: House, form: str) -> None:
    file = house.folder / "conversations.json"
    file.write_text(json.dumps([conversation(*TALK)]))
    packed = house.folder.parent / "export.zip"
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.write(file, "conversations.json")

    done = await house.bring("chatgpt", {"file": file, "folder": house.folder, "zip": packed}[form])

    bucket = await house.bucket()
    prompts = list(prompts_in(bucket[f"sessions/c-1/{keys.PROMPTS}"].splitlines()))
    assert (counts(done), done.faults) == ((1, 0, 0, 0), ())
    assert [text for _, text in prompts] == ["Which store?", "Thanks."]
    assert prompts[0][0] is not None
    assert int(prompts[0][0].timestamp()) == int(START)
    summary = bucket[f"sessions/c-1/{keys.SUMMARY}"].decode()
    assert "Garage, because it is small." in summary
    assert "asked for again" not in summary


async def test_a_conversation_that_cannot_be_read_is_named_by_its_number(house: House) -> None:
    file = house.folder / "conversations.json"
    file.write_text(json.dumps([conversation(*TALK), {"title": "odd"}, 7]))

    done = await house.bring("chatgpt", file)

    assert [fault.place for fault in done.faults] == [f"{file}: conversation 2", f"{file}: conversation 3"]
    assert counts(done) == (1, 0, 0, 0)


async def test_messages_that_lead_in_a_circle_end(house: House) -> None:
    talk = conversation(*TALK)
    talk["mapping"]["m0"]["parent"] = "m2"
    (house.folder / "conversations.json").write_text(json.dumps([talk]))

    assert counts(await house.bring("chatgpt")) == (1, 0, 0, 0)


@pytest.fixture
def database(house: House) -> sqlite3.Connection:
    """A database in use: its last rows are not in its file yet."""
    made = sqlite3.connect(house.folder / "claude-mem.db")
    made.execute("PRAGMA journal_mode=WAL")
    made.executescript(TABLES)
    made.execute(
        "INSERT INTO sdk_sessions (content_session_id, memory_session_id, project, started_at, started_at_epoch)"
        " VALUES ('s-1', 'mem-1', 'shop', ?, ?)",
        (ISO, EPOCH),
    )
    ask(made, 1, "Choose a store.")
    made.execute(
        "INSERT INTO observations (memory_session_id, project, type, title, subtitle, facts, narrative, concepts,"
        " files_read, files_modified, discovery_tokens, created_at, created_at_epoch, generated_by_model)"
        " VALUES ('mem-1', 'shop', 'decision', 'Garage', 'It is small', '[\"It runs on one host, alone\"]', ?,"
        " '[\"trade-off\"]', '[\"a.py\"]', '[]', 120, ?, ?, 'a-model')",
        (f"We chose Garage; the key is {SECRET}.", ISO, EPOCH),
    )
    for number, words in enumerate((f"Chose the store. {SECRET}", "Wrote it down.")):
        made.execute(
            "INSERT INTO session_summaries (memory_session_id, project, request, completed, created_at,"
            " created_at_epoch) VALUES ('mem-1', 'shop', 'A store', ?, ?, ?)",
            (words, ISO, EPOCH + number),
        )
    made.commit()
    return made


def ask(database: sqlite3.Connection, number: int, words: str) -> None:
    database.execute(
        "INSERT INTO user_prompts (content_session_id, prompt_number, prompt_text, created_at, created_at_epoch)"
        " VALUES ('s-1', ?, ?, ?, ?)",
        (number, words, ISO, EPOCH + number * 1_000),
    )
    database.commit()


async def test_all_that_claude_mem_has_comes_with_its_fields(house: House, database: sqlite3.Connection) -> None:
    done = await house.bring("claude-mem")

    bucket = await house.bucket()
    assert (counts(done), done.faults) == ((2, 0, 0, 0), ())
    [name] = [name for name in bucket if name.startswith("observations/")]
    observed = Observation.parse(bucket[name], path=name, name=name.partition("/")[2])
    assert (observed.session, observed.project, observed.type) == ("s-1", "shop", "decision")
    assert (observed.title, observed.facts) == ("Garage", ("It runs on one host, alone",))
    assert (observed.concepts, observed.files_read, observed.files_modified) == (("trade-off",), ("a.py",), ())
    assert (observed.discovery_tokens, observed.model) == (120, "a-model")
    assert observed.created_at.timestamp() == EPOCH / 1_000
    about = Session.parse(bucket[f"sessions/s-1/{keys.SESSION}"], space="alpha", session="", now=house.clock.now())
    assert (about.project, about.agent, about.prompts) == ("shop", "claude", 1)
    summary = Summary.parse(bucket[f"sessions/s-1/{keys.SUMMARY}"], path="")
    assert summary.completed.startswith("Chose the store. ")
    assert summary.completed.endswith("\n\nWrote it down.")
    assert SECRET.encode() not in b"".join(bucket.values())


async def test_a_second_time_only_what_claude_mem_has_learned_since_comes(
    house: House, database: sqlite3.Connection
) -> None:
    await house.bring("claude-mem")
    before = await house.bucket()

    assert counts(await house.bring("claude-mem")) == (0, 0, 2, 0)
    assert await house.bucket() == before
    ask(database, 2, "And a name?")
    assert counts(await house.bring("claude-mem")) == (0, 1, 1, 0)
    prompts = (await house.bucket())[f"sessions/s-1/{keys.PROMPTS}"].splitlines()
    assert [text for _, text in prompts_in(prompts)] == ["Choose a store.", "And a name?"]


async def test_reading_a_database_in_use_changes_nothing_beside_it(house: House, database: sqlite3.Connection) -> None:
    before = {file.name: file.read_bytes() for file in sorted(house.folder.iterdir()) if not file.name.endswith("-shm")}

    await house.bring("claude-mem")

    after = {file.name: file.read_bytes() for file in sorted(house.folder.iterdir()) if not file.name.endswith("-shm")}
    assert after == before
    assert "claude-mem.db-wal" in before


async def test_a_file_that_is_no_database_is_named(house: House) -> None:
    file: Path = house.folder / "claude-mem.db"
    file.write_text("no database")

    done = await house.bring("claude-mem")

    assert [fault.place for fault in done.faults] == [str(file)]
