"""Sessions of other programs: their words are found at once, what was done waits for a mount, and nothing comes twice.

The transcripts are what the programs themselves wrote, see `data/README.md`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from import_house import House, counts

from livememfs.cache.inbox import Queued
from livememfs.cache.replica import Replica
from livememfs.errors import Unreachable
from livememfs.importing.sessions import MODEL
from livememfs.observing.parking import Parking
from livememfs.recall.index.reader import is_indexed
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.session import Session, Summary, prompts_in
from livememfs.records.trust import Trust
from livememfs.store.base import list_all
from livememfs.testing.store import Fault

DATA = Path(__file__).parent / "data"
CLAUDE, CODEX = "0674ede6-671a-4aa1-9836-4d245f983a7b", "01a22122-e616-7741-bb6d-c22127e24879"
PROMPTS = ["Set the port in app.py to two.", "Which database does the marmot service use?"]
ANSWERS = ["The port is two now.", "Postgres, because the marmot service needs JSONB."]
AWAY = Fault(before=Unreachable("the bucket is away"))


def transcript(house: House, source: str = "claude-code") -> Path:
    """A transcript of the program, alone in the folder; it may be written to."""
    real = next((DATA / source).rglob("*.jsonl"))
    return Path(shutil.copy(real, house.folder / real.name))


async def parked(house: House) -> dict[str, bytes]:
    """What waits for a mount."""
    infos = (await list_all(house.store, keys.parked_prefix())).objects
    return {info.key: (await house.store.get(info.key)).data for info in infos}


async def taken_up(house: House) -> list[Queued]:
    """What a mount of this machine finds to observe."""
    replica = Replica(house.store)
    await Parking(replica, "host").take_up()
    found = replica.inbox.unfinished()
    replica.close()
    return found


async def whole(house: House) -> dict[str, bytes]:
    return {**await house.bucket(), **await parked(house)}


@pytest.mark.parametrize(("source", "session", "agent"), [("claude-code", CLAUDE, "claude"), ("codex", CODEX, "codex")])
async def test_a_real_session_comes_with_its_prompts_words_tools_and_times(
    house: House, source: str, session: str, agent: str
) -> None:
    done = await house.bring(source, transcript(house, source))

    bucket = await house.bucket()
    top = f"sessions/{session}"
    assert (counts(done), done.faults) == ((1, 0, 0, 0), ())
    prompts = list(prompts_in(bucket[f"{top}/{keys.PROMPTS}"].splitlines()))
    assert [text for _, text in prompts] == PROMPTS
    about = Session.parse(bucket[f"{top}/{keys.SESSION}"], space="alpha", session="", now=house.clock.now())
    assert (about.id, about.agent, about.project, about.prompts) == (session, agent, "/home/ana/project", 2)
    assert f"{about.created_at:%Y-%m-%d %H}" == "2026-11-28 07"
    assert prompts[0][0] == about.created_at
    events = [Event.from_json(row.line) for row in await taken_up(house)]
    assert [event.kind for event in events] == ["tool", "tool", "said", "tool", "said", "end"]
    assert [event.text for event in events if event.kind == "said"] == ANSWERS
    assert [event.failed for event in events if event.kind == "tool"] == [False, False, True]
    assert [event.files()[1] for event in events if event.kind == "tool"] == [(), ("app.py",), ()]
    assert events[3].command().startswith("printf 'kestrel")
    assert "kestrel-42" in events[3].error()
    assert [event.at for event in events] == sorted(event.at for event in events)


async def test_the_words_are_where_a_search_looks(house: House) -> None:
    await house.bring("claude-code", transcript(house))

    name = f"sessions/{CLAUDE}/{keys.SUMMARY}"
    text = (await house.bucket())[name].decode()

    assert is_indexed(f"alpha/{name}")
    assert [words for words in (*PROMPTS, *ANSWERS) if words not in text] == []


async def test_the_memories_of_a_project_come_with_its_sessions(house: House) -> None:
    """With their types; the index that the agent keeps of them is none of them."""
    done = await house.bring("claude-code", DATA / "claude-code")

    assert (counts(done), done.faults) == ((5, 0, 0, 0), ())
    memories = {memory.type: memory for memory in (await house.stored()).values()}
    assert sorted(memories) == ["feedback", "project", "reference", "user"]
    asked = memories["feedback"]
    assert asked.content.split("\n\n")[:3] == [
        "# run-tests-first",
        "Ana wants the tests run before each commit",
        "Run the tests before each commit.",
    ]
    assert asked.extra["agent"] == "claude"
    [linked] = [each for each, memory in (await house.stored()).items() if memory == memories["project"]]
    assert asked.links == (("related_to", linked),)


@pytest.mark.parametrize("path", ["", "projects", "projects/shop", "projects/shop/memory"])
async def test_a_line_of_the_index_that_says_something_itself_is_named(house: House, path: str) -> None:
    folder = house.folder / "projects" / "shop" / "memory"
    folder.mkdir(parents=True)
    index = folder / "MEMORY.md"
    index.write_text("# Index\n\n- [Tea](tea.md): what Ana drinks\nWe chose Garage.\n")
    (folder / "tea.md").write_text("---\nname: tea\ntype: user\n---\nAna drinks tea.\n")

    done = await house.bring("claude-code", house.folder / path)

    assert [fault.place for fault in done.faults] == [f"{index}:4"]
    assert [memory.extra["import_id"] for memory in (await house.stored()).values()] == ["shop/tea.md"]
    assert [memory.type for memory in (await house.stored()).values()] == ["user"]


@pytest.mark.parametrize("source", ["claude-code", "codex"])
async def test_a_second_time_changes_no_byte_of_the_bucket(house: House, source: str) -> None:
    await house.bring(source, DATA / source)
    before = await whole(house)

    again = await house.bring(source, DATA / source)

    assert again.counts["known"] == sum(counts(again)) > 0
    assert again.tokens == 0
    assert await whole(house) == before


async def test_what_was_observed_does_not_wait_again(house: House) -> None:
    await house.bring("claude-code", transcript(house))
    assert len(await taken_up(house)) == 6

    await house.bring("claude-code", house.folder)

    assert await taken_up(house) == []


async def test_a_dry_run_writes_nothing_and_counts_the_same_tokens(house: House) -> None:
    transcript(house)
    before = await whole(house)

    told = await house.bring("claude-code", dry_run=True)

    assert await whole(house) == before
    assert 0 < told.tokens == (await house.bring("claude-code")).tokens


@pytest.mark.parametrize("fails_at", range(10))
async def test_an_import_that_is_killed_at_any_write_ends_as_if_it_had_not_been(house: House, fails_at: int) -> None:
    """Five writes a session; each may happen without its answer, too."""
    transcript(house)
    done = house.store.counts["put"]
    lost = Fault(after=Unreachable("the answer is lost"))
    what = AWAY if fails_at % 2 else lost
    house.store.plan = lambda request, before: (
        what if request.verb == "put" and before == done + fails_at // 2 else None
    )
    with pytest.raises(Unreachable):
        await house.bring("claude-code")
    house.store.plan = None
    house.restart()
    done_again = await house.bring("claude-code")
    resumed = await whole(house)

    other = await House.made(house.folder)
    await other.bring("claude-code")

    assert resumed == await whole(other)
    assert done_again.faults == ()


async def test_a_mount_between_a_kill_and_the_next_import_loses_no_event(house: House) -> None:
    transcript(house)
    done = house.store.counts["put"]
    house.store.plan = lambda request, before: AWAY if request.verb == "put" and before == done + 4 else None
    with pytest.raises(Unreachable):
        await house.bring("claude-code")
    house.store.plan = None
    first = await taken_up(house)
    house.restart()

    await house.bring("claude-code")

    ids = [row.id for row in first]
    assert len(ids) == 6
    assert [row.id for row in await taken_up(house)] == ids, "and its inbox knows them by these"


async def test_a_session_that_went_on_in_the_program_brings_only_what_is_new(house: House) -> None:
    file = transcript(house)
    lines = file.read_text().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if PROMPTS[1] in line)
    file.write_text("".join(lines[:cut]))
    await house.bring("claude-code")
    first = [row.id for row in await taken_up(house)]
    file.write_text("".join(lines))

    done = await house.bring("claude-code")

    assert counts(done) == (0, 1, 0, 0)
    kinds = [row.kind for row in await taken_up(house)]
    assert ([*first[:2]], kinds) == (["toolu_1", "toolu_2"], ["tool", "said", "end"])
    stored = (await house.bucket())[f"sessions/{CLAUDE}/{keys.PROMPTS}"]
    assert [text for _, text in prompts_in(stored.splitlines())] == PROMPTS


@pytest.mark.parametrize("imported", [False, True])
async def test_a_session_that_was_captured_or_went_on_here_stays_as_it_is(house: House, imported: bool) -> None:
    file = transcript(house)
    lines = file.read_text().splitlines(keepends=True)
    if imported:
        file.write_text("".join(lines[:10]))
        await house.bring("claude-code")
        file.write_text("".join(lines))
    else:
        about = Session(CLAUDE, "alpha", house.clock.now(), house.clock.now())
        await house.replica.put(f"alpha/sessions/{CLAUDE}/{keys.SESSION}", about.render())
    key = f"alpha/sessions/{CLAUDE}/{keys.PROMPTS}"
    await house.replica.put(key, b'{"at": "2026-11-29T00:00:00Z", "prompt": "Asked here."}\n')
    before = await whole(house)

    done = await house.bring("claude-code")

    assert counts(done) == (0, 0, 0, 1)
    assert await whole(house) == before


async def test_a_session_that_was_captured_without_a_prompt_stays_as_it_is(house: House) -> None:
    transcript(house)
    about = Session(CLAUDE, "alpha", house.clock.now(), house.clock.now())
    await house.replica.put(f"alpha/sessions/{CLAUDE}/{keys.SESSION}", about.render())
    before = await whole(house)

    done = await house.bring("claude-code")

    assert counts(done) == (0, 0, 0, 1)
    assert await whole(house) == before


async def test_words_before_a_tool_are_not_the_answer_of_a_turn(house: House) -> None:
    file = transcript(house)
    words = {"type": "text", "text": "I look first."}
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    for entry in entries:
        if entry["type"] == "assistant" and entry["message"]["content"][0]["type"] == "tool_use":
            entry["message"]["content"].insert(0, words)
    last = max(number for number, entry in enumerate(entries) if "toolu_2" in json.dumps(entry))
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries[: last + 1]))

    await house.bring("claude-code")

    assert [row.kind for row in await taken_up(house)] == ["tool", "tool", "end"]


async def test_the_summary_of_an_observer_is_not_written_over(house: House) -> None:
    file = transcript(house)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:10]))
    await house.bring("claude-code")
    key = f"alpha/sessions/{CLAUDE}/{keys.SUMMARY}"
    brought = Summary.parse((await house.replica.read(key)).data, path=key)
    assert (brought.model, brought.whose) == (MODEL, Trust.IMPORTED)
    observed = Summary(CLAUDE, house.clock.now(), request="The port.", model="a-model").render()
    await house.replica.put(key, observed)
    file.write_text("".join(lines))

    await house.bring("claude-code")

    assert (await house.replica.read(key)).data == observed


async def test_secrets_of_a_transcript_are_nowhere_in_the_bucket(house: House) -> None:
    secret = "ghp_" + "a1B2" * 9
    file = transcript(house)
    file.write_text(file.read_text().replace(PROMPTS[1], f"The token is {secret}").replace("kestrel", secret))

    await house.bring("claude-code")

    assert [name for name, data in (await whole(house)).items() if secret.encode() in data] == []
    assert len(house.private) == 1


async def test_a_line_that_cannot_be_read_is_named_and_the_others_come(house: House) -> None:
    file = transcript(house)
    file.write_text(file.read_text() + '{"type": "user", "mess')
    number = len(file.read_text().splitlines())

    done = await house.bring("claude-code")

    assert [fault.place for fault in done.faults] == [f"{file}:{number}"]
    assert counts(done) == (1, 0, 0, 0)


Change = Callable[[list[dict[str, object]]], list[dict[str, object]]]


def _meta(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**entry, "isMeta": True} for entry in entries]


def _compacted(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**entry, "isCompactSummary": True} for entry in entries]


def _aside(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**entry, "isSidechain": True} for entry in entries]


@pytest.mark.parametrize("change", [_meta, _compacted, _aside])
async def test_what_is_no_word_of_the_user_does_not_come(house: House, change: Change) -> None:
    file = transcript(house)
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(f"{json.dumps(entry)}\n" for entry in change(entries)))

    assert counts(await house.bring("claude-code")) == (0, 0, 0, 0)


async def test_what_a_subagent_did_is_in_the_session_of_its_agent(house: House) -> None:
    file = transcript(house)
    below = house.folder / CLAUDE / "subagents" / "agent-a7.jsonl"
    below.parent.mkdir(parents=True)
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    asides = [{**entry, "isSidechain": True, "uuid": f"{entry.get('uuid')}-a"} for entry in entries]
    below.write_text("".join(f"{json.dumps(entry)}\n" for entry in asides).replace("toolu_", "toolu_a"))

    await house.bring("claude-code")

    events = [Event.from_json(row.line) for row in await taken_up(house)]
    assert sorted(event.id for event in events if event.subagent == "a7" and event.kind == "tool") == [
        "toolu_a1",
        "toolu_a2",
        "toolu_a4",
    ]
    assert {event.session for event in events} == {CLAUDE}
    stored = (await house.bucket())[f"sessions/{CLAUDE}/{keys.PROMPTS}"]
    assert [text for _, text in prompts_in(stored.splitlines())] == PROMPTS, "a task is no prompt"


async def test_nothing_of_the_source_is_changed(house: House) -> None:
    file = transcript(house)
    before = file.read_bytes(), file.stat().st_mtime_ns

    await house.bring("claude-code")

    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
