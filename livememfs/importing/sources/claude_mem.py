"""claude-mem (read in 13.25): its database of sessions, prompts, observations and summaries.

Owns the names of its tables and columns; what a version does not have counts as empty. Any thread.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from livememfs.importing.item import Read, SourceFault, SourceObject, SourceSession, SourceTalk, moment
from livememfs.importing.sources.database import Row, copied, rows
from livememfs.importing.sources.transcript import Turns, named, together
from livememfs.records import keys
from livememfs.records.observation import Observation, observation_id, read_list_of, type_of
from livememfs.records.session import SUMMARY_FIELDS
from livememfs.text.foreign import Unreadable, read_json
from livememfs.text.frontmatter import FrontMatterError

DATABASE = "claude-mem.db"


def read(path: Path) -> Iterator[Read]:
    """What is in the database, or in that of the folder of claude-mem."""
    file = path / DATABASE if path.is_dir() else path
    try:
        with copied(file) as database:
            yield from _all(str(file), database)
    except (OSError, sqlite3.Error) as error:
        yield SourceFault(str(file), str(error))


def _all(place: str, database: sqlite3.Connection) -> Iterator[Read]:
    sessions = rows(database, "sdk_sessions", "id")
    own = {each.get("memory_session_id"): each for each in sessions}
    asked: dict[str, list[Row]] = defaultdict(list)
    for each in rows(database, "user_prompts", "id"):
        asked[named(each, "content_session_id")].append(each)
    summed: dict[str, list[Row]] = defaultdict(list)
    for each in rows(database, "session_summaries", "id"):
        summed[named(own.get(each.get("memory_session_id"), {}), "content_session_id")].append(each)
    for each in sessions:
        if session := named(each, "content_session_id"):
            tell = partial(_told, each, asked[session], summed[session])
            yield SourceSession(session, f"{place}: session {each.get('id')}", tell)
    for each in rows(database, "observations", "id"):
        which = f"{place}: observation {each.get('id')}"
        try:
            observed = _observation(each, own.get(each.get("memory_session_id"), {}))
            yield SourceObject(f"{keys.OBSERVATIONS}/{observed.name}", observed.render(), which)
        except (FrontMatterError, ValueError) as error:
            yield SourceFault(which, str(error))


def _told(session: Row, prompts: list[Row], summaries: list[Row]) -> SourceTalk:
    turns = Turns(named(session, "content_session_id"), _agent(session))
    for each in prompts:
        turns.at(_at(each), named(session, "project"))
        turns.prompt(f"prompt-{each.get('prompt_number')}", named(each, "prompt_text"))
    parts = {name: [text for each in summaries if (text := named(each, name).strip())] for name in SUMMARY_FIELDS}
    return replace(together([turns]), summary={name: "\n\n".join(each) for name, each in parts.items() if each})


def _agent(session: Row) -> str:
    return named(session, "platform_source") or "claude"


def _observation(each: Row, of: Row) -> Observation:
    """`of`: the row of its session."""
    session = named(of, "content_session_id")
    at = _at(each) or datetime.fromtimestamp(0, UTC)
    title, narrative = named(each, "title"), named(each, "narrative") or named(each, "text")
    tokens = each.get("discovery_tokens")
    return Observation(
        id=observation_id(session, (str(each.get("created_at_epoch")), title, narrative), 0),
        session=session,
        created_at=at,
        type=type_of(named(each, "type")),
        title=title or narrative.strip().partition("\n")[0][:160],
        subtitle=named(each, "subtitle"),
        narrative=narrative,
        **{name: _list(each.get(name)) for name in ("facts", "concepts", "files_read", "files_modified")},
        project=named(each, "project"),
        agent=_agent(of),
        discovery_tokens=tokens if isinstance(tokens, int) and tokens > 0 else 0,
        model=named(each, "generated_by_model"),
        extra={"import_from": "claude-mem"},
    )


def _at(row: Row) -> datetime | None:
    return moment(row.get("created_at_epoch")) or moment(row.get("created_at"))


def _list(value: Any) -> tuple[str, ...]:
    """A list as JSON, or a text."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(Unreadable):
            value = read_json(value.encode("utf-8", "surrogatepass"))
    return read_list_of(value)
