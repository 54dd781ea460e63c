"""What basic-memory, mem0, claude-mem and agents wrote (see `data/README.md`) comes whole, with its times, authors and
links; a second time changes nothing; and the files stay as they are.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from import_house import House, counts

from livememfs.importing.export import export
from livememfs.importing.importer import IMPORT_ID
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.records.observation import Observation
from livememfs.records.session import Session, Summary, prompts_in
from livememfs.spaces import making as spaces

DATA = Path(__file__).parent / "data"
SESSION = "0674ede6-671a-4aa1-9836-4d245f983a7b"
ROLLOUT = "rollout-2026-11-28T07-51-04-01a22122-e616-7741-bb6d-c22127e24879.jsonl"
WRITTEN = datetime(2026, 11, 28, 11, 14, 33, tzinfo=UTC)
"""When the files of basic-memory were last written: a checkout gives them another time."""
FORMS = {
    "basic-memory": ("basic-memory", ""),
    "mem0": ("mem0", "ana.json"),
    "mem0-history": ("mem0", "history.db"),
    "claude-mem": ("claude-mem", ""),
    "claude-code": ("claude-code", ""),
    "codex": ("codex", ""),
}


def files_of(house: House, form: str) -> Path:
    """The files of a program, in a folder of the test. A database is made of what was read out of it."""
    tool, name = FORMS[form]
    folder = house.folder / tool
    shutil.copytree(DATA / tool, folder)
    for script in folder.rglob("*.sql"):
        with closing(sqlite3.connect(script.with_suffix(".db"))) as database:
            database.executescript(script.read_text())
    for file in folder.rglob("*.*"):
        os.utime(file, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return folder / name


def seen(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in sorted(folder.rglob("*")) if file.is_file()
    }


async def by_import_id(house: House) -> dict[str, Memory]:
    return {str(memory.extra[IMPORT_ID]): memory for memory in (await house.stored()).values()}


@pytest.mark.parametrize(
    ("form", "name", "where"),
    [
        ("basic-memory", "basic-memory/services/Bad.md", ""),
        ("claude-code", f"claude-code/projects/-home-ana-project/{SESSION}.jsonl", ":19"),
        ("claude-code", "claude-code/projects/-home-ana-project/memory/bad.md", ""),
        ("codex", f"codex/sessions/2026/11/28/{ROLLOUT}", ":24"),
    ],
)
async def test_what_cannot_be_read_is_named_with_its_file_and_line_and_the_rest_comes(
    house: House, form: str, name: str, where: str
) -> None:
    path = files_of(house, form)
    with (house.folder / name).open("ab") as file:
        file.write(b'{"type": "us\xff\n')

    done = await house.bring(FORMS[form][0], path)

    assert [fault.place for fault in done.faults] == [f"{house.folder / name}{where}"]
    assert done.counts["new"] > 0


async def test_an_export_of_mem0_that_was_cut_off_is_named_with_the_line(house: House) -> None:
    path = files_of(house, "mem0")
    path.write_text("\n".join(path.read_text().split("\n")[:9]))

    done = await house.bring("mem0", path)

    assert [(fault.place, fault.reason.rpartition(", ")[2]) for fault in done.faults] == [(str(path), "line 9")]


@pytest.mark.parametrize("form", ["mem0-history", "claude-mem"])
async def test_a_damaged_database_is_named(house: House, form: str) -> None:
    path = files_of(house, form)
    database = path if path.is_file() else path / "claude-mem.db"
    database.write_bytes(database.read_bytes()[:100] + b"\xff" * 8_000)

    done = await house.bring(FORMS[form][0], path)

    assert [fault.place for fault in done.faults] == [str(database)]


@pytest.mark.parametrize("form", FORMS)
async def test_nothing_comes_twice_and_nothing_of_the_source_changes(house: House, form: str) -> None:
    path = files_of(house, form)
    before = seen(house.folder)
    first = await house.bring(FORMS[form][0], path)
    once = await house.bucket()

    again = await house.bring(FORMS[form][0], path)

    assert (first.faults, again.faults) == ((), ())
    assert first.counts["new"] == sum(counts(first)) == again.counts["known"] == sum(counts(again)) > 0
    assert await house.bucket() == once
    assert seen(house.folder) == before


async def test_notes_of_basic_memory_have_the_links_of_its_own_database(house: House) -> None:
    await house.bring("basic-memory", files_of(house, "basic-memory"))

    stored = await house.stored()
    notes = {name: str(memory.extra[IMPORT_ID]).removeprefix("main/") for name, memory in stored.items()}
    links = {(notes[name], relation, notes[to]) for name, memory in stored.items() for relation, to in memory.links}
    assert links == {
        ("services/marmot", "related_to", "stores/postgres"),
        ("services/marmot", "part_of", "areas/billing"),
        ("services/marmot", "related_to", "services/vole"),
        ("stores/postgres", "result_of", "services/marmot"),
        ("areas/billing", "related_to", "services/marmot"),
        ("areas/billing", "updates", "services/vole"),
        ("services/vole", "related_to", "services/marmot"),
    }


async def test_notes_of_basic_memory_have_all_lines_tags_types_and_the_time_of_their_file(house: House) -> None:
    folder = files_of(house, "basic-memory")

    await house.bring("basic-memory", folder)

    found = await by_import_id(house)
    marmot, postgres = found["main/services/marmot"], found["main/stores/postgres"]
    body = (folder / "services" / "Marmot.md").read_text().split("---\n", 2)[2]
    assert marmot.content.strip() == body.strip()
    assert marmot.subjects == ("services", "go", "backend", "database", "inline", "ops")
    assert (marmot.type, postgres.type) == ("fact", "decision")
    assert {memory.created_at for memory in found.values()} == {WRITTEN}


async def test_notes_of_basic_memory_go_back_with_their_permalinks_and_links(house: House, tmp_path: Path) -> None:
    await house.bring("basic-memory", files_of(house, "basic-memory"))
    await export(house.replica, "alpha", tmp_path / "out", "basic-memory")
    await spaces.create(house.replica, house.clock, "beta")

    done = await house.bring("basic-memory", tmp_path / "out", space="beta")

    assert counts(done) == (4, 0, 0, 0)
    [marmot] = [text for file in (tmp_path / "out").iterdir() if "billing service.\n\n##" in (text := file.read_text())]
    assert marmot.count("related_to") == 0, "what its text links to is not said twice"
    links = [
        {
            name[-8:]: sorted((relation, to[-8:]) for relation, to in memory.links)
            for name, memory in (await house.stored(space)).items()
        }
        for space in ("alpha", "beta")
    ]
    assert links[0] == links[1], "the same eight digits, which are made of the permalink"


async def test_memories_of_mem0_have_their_times_users_tags_and_ends(house: House) -> None:
    folder = files_of(house, "mem0").parent
    for name in ("ana.json", "claude.json"):
        assert (await house.bring("mem0", folder / name)).faults == ()

    found = {memory.content.strip(): memory for memory in (await house.stored()).values()}
    assert {text.partition(".")[0]: memory.extra["agent"] for text, memory in found.items()} == {
        "The marmot service uses Postgres, because it needs JSONB": "ana",
        "Ana deploys on Fridays": "ana",
        "Tickets are on the board MAR": "claude",
        "The freeze ends in December": "Bob",
        "Ana drinks coffee": "ana",
        "## Summary of the agent's steps\n\n1": "claude",
    }
    coffee = found["Ana drinks coffee."]
    assert (coffee.created_at, coffee.updated_at) == (
        datetime(2026, 11, 28, 11, 18, 8, 313924, tzinfo=UTC),
        datetime(2026, 11, 28, 11, 18, 9, 543822, tzinfo=UTC),
    )
    assert found["Tickets are on the board MAR."].subjects == ("work", "tickets", "board")
    freeze = found["The freeze ends in December."]
    assert freeze.is_there(datetime(2027, 12, 1, 23, tzinfo=UTC)), "mem0 tells it on its last day too"
    assert not freeze.is_there(datetime(2027, 12, 2, tzinfo=UTC))


async def test_an_end_that_was_set_at_the_source_since_comes(house: House) -> None:
    path = files_of(house, "mem0")
    await house.bring("mem0", path)
    path.write_text(path.read_text().replace("2027-12-01", "2028-12-01"))

    assert (await house.bring("mem0", path)).counts["changed"] == 1
    ends = [memory.expires_at for memory in (await house.stored()).values() if memory.expires_at]
    assert ends == [datetime(2028, 12, 2, tzinfo=UTC)]


async def test_the_history_of_mem0_has_the_last_words_of_what_was_not_deleted(house: House) -> None:
    await house.bring("mem0", files_of(house, "mem0-history"))

    found = {memory.content.strip(): memory for memory in (await house.stored()).values()}
    assert len(found) == 6
    assert not {"Ana drinks tea.", "Old news."} & found.keys()
    coffee = found["Ana drinks coffee."]
    assert coffee.created_at == datetime(2026, 11, 28, 11, 18, 8, 313924, tzinfo=UTC)
    assert coffee.updated_at == datetime(2026, 11, 28, 11, 18, 9, 543822, tzinfo=UTC)
    assert found["The freeze ends in December."].extra["agent"] == "Bob"


async def test_what_claude_mem_observed_comes_with_its_session_prompts_and_summary(house: House) -> None:
    await house.bring("claude-mem", files_of(house, "claude-mem"))

    bucket = await house.bucket()
    observed = {
        each.title: each
        for name, data in bucket.items()
        if name.startswith("observations/")
        for each in [Observation.parse(data, path=name, name=name.partition("/")[2])]
    }
    assert {title: each.type for title, each in observed.items()} == {
        "Postgres stores the invoices": "decision",
        "The port is read as a number": "bugfix",
        "Deploys": "discovery",
    }
    chosen = observed["Postgres stores the invoices"]
    assert (chosen.session, chosen.project, chosen.agent, chosen.model) == (SESSION, "project", "claude", "scripted")
    assert chosen.facts == ("The service needs JSONB", "SQLite was tried, and refused")
    assert chosen.files_modified == ("/home/ana/project/store.py",)
    assert b"created_at_epoch: 1795864574877\n" in bucket[f"observations/{chosen.name}"]
    top = f"sessions/{SESSION}"
    asked = list(prompts_in(bucket[f"{top}/{keys.PROMPTS}"].splitlines()))
    assert [text for _, text in asked] == [
        "Choose a store for the invoices.",
        "Does the test pass?",
        "Go on: mend the port.",
    ]
    summary = Summary.parse(bucket[f"{top}/{keys.SUMMARY}"], path="s")
    assert (summary.completed, summary.next_steps) == ("Postgres is used in store.py", "Write the migration")
    about = Session.parse(bucket[f"{top}/{keys.SESSION}"], space="alpha", session="", now=house.clock.now())
    assert (about.agent, f"{about.created_at:%H:%M:%S}", about.prompts) == ("claude", "11:16:13", 3)


async def test_what_claude_mem_saw_of_another_agent_is_by_that_agent(house: House) -> None:
    path = files_of(house, "claude-mem")
    with closing(sqlite3.connect(path / "claude-mem.db")) as database, database:
        database.execute("UPDATE sdk_sessions SET platform_source = 'codex'")

    await house.bring("claude-mem", path)

    bucket = await house.bucket()
    agents = {
        Observation.parse(data, path=name, name=name.partition("/")[2]).agent
        for name, data in bucket.items()
        if name.startswith("observations/")
    }
    assert agents == {"codex"}
