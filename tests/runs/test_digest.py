"""What a digest stores, which notes it reads, and that nothing is read, stored or lost twice."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from consolidation_world import SPACE, World, answering, begun, filing, run, thinking, until_asked
from digest_world import DIGEST, contents, digest, digest_without_model, memories

from livememfs.errors import BadRequest, NotFound
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.memory import Memory
from livememfs.records.space import Meta
from livememfs.runs.digest.entry import KEPT_MARKS
from livememfs.runs.history import History
from livememfs.runs.options import RunOptions
from livememfs.runs.standing import taken_back
from livememfs.runs.undo.run import undo
from livememfs.testing.llm import Scripted, consolidation_reply, digest_reply, remembered

BROTHER = remembered("David is the brother of Mickael", 1, subjects=["David", "mickael"])
ILL = remembered("Mickael is ill", 2, subjects=["mickael", "health"], type="event", ttl="7d")
BOTH = digest_reply(BROTHER, ILL)
ONLY_DIGEST = {"distil": ["digest"]}


@pytest.fixture
async def world() -> World:
    world = await World.seeded()
    await world.note("David, my brother, has called.", agent="mickael")
    await world.note("I am in bed with the flu.", agent="mickael")
    return world


async def only_digests(world: World, *distil: str) -> None:
    """Say in the space's record which runs take notes out of `live/`."""
    record = Meta(SPACE, "a space", "me", world.clock.now(), extra={"distil": list(distil or ("digest",))})
    await world.put(keys.meta_key(SPACE), record.render())


# --- what is stored -----------------------------------------------------------------------------------------------


async def test_facts_become_memories_with_subjects_type_end_and_where_they_came_from(world: World) -> None:
    first, second = await world.live()

    result, _ = await digest(world, BOTH)

    assert (result.state, result.metrics.memories_stored, result.metrics.notes_processed) == ("ok", 2, 2)
    brother, ill = sorted((await memories(world)).values(), key=lambda memory: memory.content)
    assert (brother.content, brother.type, brother.importance) == ("David is the brother of Mickael\n", "fact", 0.6)
    assert (brother.subjects, brother.source, brother.space_id) == (("David", "mickael"), "digest", SPACE)
    assert brother.expires_at is None
    assert brother.extra == {"from": [first.rpartition("/")[2].removesuffix(".md")]}
    assert ill.expires_at == world.clock.now() + timedelta(days=7)
    assert ill.extra["from"] == [second.rpartition("/")[2].removesuffix(".md")]
    assert [key.partition("_until_")[2] for key in await memories(world) if "_until_" in key] == ["20260227T140000.md"]


async def test_what_the_agent_is_and_wants_has_folders_of_its_own(world: World) -> None:
    can = remembered("I can read the lobby", 1, collection="self", type="identity", category="capability")
    want = remembered("I would like to search the web", 2, collection="goals", type="goal", importance=0.25)

    await digest(world, digest_reply(can, want))

    stored = {memory.collection: memory for memory in (await memories(world)).values()}
    assert stored["self"].category == "capability"
    assert (stored["goals"].category, stored["goals"].importance) == ("capability_request", 0.25)


async def test_a_digest_changes_neither_bank_nor_rules_nor_record_nor_notes(world: World) -> None:
    before = await world.bucket()

    await digest(world, BOTH)

    assert {key: data for key, data in (await world.bucket()).items() if keys.parse(key).kind != "memory"} == before


async def test_the_account_is_in_the_ledger_under_one_number_for_all_kinds_of_runs(world: World) -> None:
    await digest(world, digest_reply(BROTHER, skipped={2: "an ailment"}))
    await run(world, consolidation_reply({"progress.md": "# Progress\n"}))
    await world.note("more")
    await digest(world, digest_reply(skipped={1: "nothing"}))

    one, two, three = await world.ledger()
    assert [entry.kind for entry in (one, two, three)] == ["digest", "consolidation", "digest"]
    assert [entry.number for entry in (one, two, three)] == [1, 2, 3]
    assert [entry.state for entry in (one, two, three)] == ["applied"] * 3
    assert [note.skipped for note in one.keeps] == ["", "an ailment"]
    assert one.keeps[0].used_in == (one.writes[0].key,)
    assert one.removes == two.keeps == ()
    assert one.metrics["memories_stored"] == 1
    assert "bank_files_created" not in one.metrics
    assert keys.stored_key(SPACE, 1) in await world.everything()
    assert Meta.parse(await world.get(keys.meta_key(SPACE))).consolidation_count == 1


async def test_an_entry_of_a_ledger_from_before_digests_is_a_consolidation(world: World) -> None:
    await run(world, consolidation_reply({"progress.md": "# Progress\n"}))
    data = json.loads(await world.get(keys.ledger_key(SPACE, 1)))
    assert not {"keeps", "digested"} & data.keys()
    del data["kind"]

    assert Entry.parse(json.dumps(data).encode()).kind == "consolidation"


async def test_nothing_worth_a_memory_is_a_digest_as_well(world: World) -> None:
    result, _ = await digest(world, digest_reply(skipped={1: "chatter", 2: "chatter"}))

    assert (result.state, result.metrics.memories_stored) == ("ok", 0)
    assert await memories(world) == {}
    assert (await digest(world))[0].message == "No new notes to digest"


async def test_a_dry_run_shows_the_memories_and_writes_nothing(world: World) -> None:
    before = await world.everything()

    result, _ = await digest(world, BOTH, options={"dry_run": True})

    assert await world.everything() == before
    assert [memory["content"] for memory in result.to_json()["memories"]] == [BROTHER["content"], ILL["content"]]


async def test_numbers_that_no_note_has_are_marked(world: World) -> None:
    result, _ = await digest(world, digest_reply(remembered("David has 3 cats", 1), ILL))

    assert (result.state, result.metrics.unsourced) == ("ok", 1)
    [entry] = await world.ledger()
    [cats] = [memory for memory in (await memories(world)).values() if "cats" in memory.content]
    assert cats.extra["unsourced"] == list(entry.unsourced[0].facts)
    assert entry.unsourced[0].file == entry.writes[0].key


# --- which notes are read -----------------------------------------------------------------------------------------


async def test_a_note_is_read_once_and_again_when_it_was_edited(world: World) -> None:
    await digest(world, BOTH)
    nothing, asked = await digest(world)
    assert (nothing.message, nothing.metrics.llm_calls, asked) == ("No new notes to digest", 0, [])
    key = (await world.live())[0]
    await world.put(key, (await world.get(key)).replace(b"has called", b"has moved to Toulouse"))

    result, [request] = await digest(world, digest_reply(remembered("David has moved to Toulouse", 1)))

    assert result.metrics.notes_processed == 1
    assert [note["text"] for note in request.section("Notes")] == ["David, my brother, has moved to Toulouse."]
    assert len(await contents(world)) == 3


async def test_a_note_of_which_the_reply_says_nothing_is_read_again(world: World) -> None:
    result, _ = await digest(world, digest_reply(BROTHER))

    assert (result.state, result.metrics.notes_remaining) == ("partial", 1)
    assert "1 of 2 notes are not accounted for" in result.reason
    assert result.what_to_do == "touch .digest to take these notes up again"
    again, [request] = await digest(world, digest_reply(remembered("Mickael is ill", 1)))
    assert again.state == "ok"
    assert [note["text"] for note in request.section("Notes")] == ["I am in bed with the flu."]
    assert await contents(world) == [BROTHER["content"], "Mickael is ill"]


async def test_more_notes_than_asked_for_wait_for_the_next_digest(world: World) -> None:
    first, _ = await digest(world, digest_reply(BROTHER), options={"max_notes": 1})
    assert (first.metrics.notes_processed, first.metrics.notes_remaining) == (1, 1)
    second, _ = await digest(world, digest_reply(skipped={1: "an ailment"}))

    assert (second.metrics.notes_processed, second.metrics.notes_remaining) == (1, 0)


async def test_notes_of_one_agent_can_be_asked_for(world: World) -> None:
    await world.note("I can read the lobby", agent="pet")

    result, [request] = await digest(world, digest_reply(skipped={1: "known"}), options={"agent": "pet"})

    assert [note["agent"] for note in request.section("Notes")] == ["pet"]
    assert result.metrics.notes_processed == 1


async def test_related_memories_are_shown_newest_first_and_others_are_not(world: World) -> None:
    async def there(name: str, text: str, fields: str = "") -> None:
        front = f"---\ntype: fact\n{fields}---\n" if fields else ""
        await world.put(f"{SPACE}/memories/{name}.md", front + text)

    await there("20260101T000000_fact_00000001", "David is a brother of somebody")
    await there("20260102T000000_fact_00000002", "David called in January")
    await there("20260103T000000_fact_00000003", "The build takes long")
    await there("20260104T000000_fact_00000004_until_20260105T000000", "David is away")
    await there("20260106T000000_fact_00000005", "David was forgotten", "forgotten: true\n")

    _, [request] = await digest(world, BOTH)

    shown = [memory["memory"] for memory in request.section("Memories")]
    assert shown == ["David called in January", "David is a brother of somebody"]


async def test_a_short_name_among_the_subjects_is_enough_to_be_shown(world: World) -> None:
    await world.note("Léa came by")
    front = '---\nsubjects: ["Léa"]\n---\n'
    await world.put(f"{SPACE}/memories/20260101T000000_fact_00000001.md", f"{front}She is from Brest")

    _, [request] = await digest(world, digest_reply(BROTHER, skipped={2: "x", 3: "x"}))

    assert [memory["memory"] for memory in request.section("Memories")] == ["She is from Brest"]


async def test_a_small_model_is_shown_fewer_memories_rather_than_none_of_the_notes(world: World) -> None:
    for number in range(9):
        text = f"David {number} " + "of Toulouse " * 50
        await world.put(f"{SPACE}/memories/2026010{number + 1}T000000_fact_00000001.md", text)

    result, [request] = await digest(world, BOTH, context_window=3_000, max_tokens=500)

    assert result.state == "ok"
    assert [memory["memory"][:7] for memory in request.section("Memories")] == ["David 8", "David 7", "David 6"]


async def test_what_is_known_to_the_letter_is_not_stored_again_and_its_note_is_read(world: World) -> None:
    known = "memories/20260101T000000_fact_00000001.md"
    await world.put(f"{SPACE}/{known}", "David  is the brother\nof Mickael")

    result, _ = await digest(world, BOTH)

    assert (result.metrics.memories_stored, len(result.metrics.warnings)) == (1, 1)
    [entry] = await world.ledger()
    assert entry.keeps[0].used_in == (known,)
    assert len(await contents(world)) == 2


async def test_a_consolidation_takes_digested_notes_and_an_undo_brings_them_back_without_a_second_digest(
    world: World,
) -> None:
    await digest(world, BOTH)
    await run(world, consolidation_reply({"progress.md": "# Progress\n"}))
    assert await world.live() == []
    await world.note("later")
    await digest(world, digest_reply(skipped={1: "nothing"}))
    stored = await memories(world)

    async with filing(world) as runs:
        taken = await undo(world.replica, world.clock, runs.leases, "here", SPACE)

    assert taken.undoes == 2
    assert len(await world.live()) == 3
    assert await memories(world) == stored
    assert (await digest(world))[0].message == "No new notes to digest"


async def test_marks_of_notes_that_are_gone_are_kept_up_to_a_number(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.runs.digest.entry.KEPT_MARKS", 3)
    assert KEPT_MARKS > 1_000
    for number in range(6):
        await digest(world, digest_reply(skipped=dict.fromkeys(range(1, 3 if number == 0 else 2), "nothing")))
        for key in await world.live():
            await world.memory.delete(key)
        await world.note(f"note {number}")

    assert len((await world.ledger())[-1].digested) == 4


# --- a space whose notes wait for nothing else --------------------------------------------------------------------


async def test_where_digests_alone_distil_the_notes_leave_after_a_backup(world: World) -> None:
    await only_digests(world)
    notes = {key: await world.get(key) for key in await world.live()}

    result, _ = await digest(world, digest_reply(BROTHER, skipped={2: "an ailment"}))

    assert (result.state, result.metrics.notes_remaining) == ("ok", 0)
    assert await world.live() == []
    [entry] = await world.ledger()
    assert len(entry.removes) == 2
    backup = keys.backup_prefix(SPACE, entry.backup)
    assert {key: await world.get(backup + key.partition("/")[2]) for key in notes} == notes


async def test_there_too_a_note_that_is_not_accounted_for_or_was_edited_meanwhile_stays(world: World) -> None:
    await only_digests(world)
    edited = (await world.live())[0]
    async with thinking(world, digest_reply(BROTHER), "digest") as outcome:
        await world.put(edited, (await world.get(edited)) + b"more\n")

    assert outcome["state"] == "partial"
    assert "edited meanwhile" in outcome["message"]
    assert len(await world.live()) == 2
    again, [request] = await digest(world, digest_reply(skipped={1: "x", 2: "y"}))
    assert len(request.section("Notes")) == 2
    assert (again.state, await world.live()) == ("ok", [])


@pytest.mark.parametrize("distil", [["digest", "consolidate"], ["consolidate"], [7]])
async def test_where_notes_wait_for_something_else_too_they_stay(world: World, distil: list[str]) -> None:
    await only_digests(world, *distil)

    await digest(world, BOTH)

    assert len(await world.live()) == 2
    assert (await world.ledger())[0].backup == ""


async def test_an_undo_of_a_consolidation_leaves_what_a_digest_took_since(world: World) -> None:
    """The notes of the digest led to memories, and those stay."""
    await only_digests(world)
    await run(world, consolidation_reply({"progress.md": "# Progress\n"}, used={1: ["progress.md"]}))
    await digest(world, digest_reply(remembered("Mickael is ill", 1)))
    assert await world.live() == []

    async with filing(world) as runs:
        await undo(world.replica, world.clock, runs.leases, "here", SPACE)

    assert [(await world.get(key)).decode().splitlines()[-1] for key in await world.live()] == [
        "David, my brother, has called."
    ]
    assert await world.bank() == {}


async def test_a_digest_cannot_be_taken_back_and_an_undo_passes_over_it(world: World) -> None:
    await run(world, consolidation_reply({"progress.md": "# Progress\n"}))
    await world.note("later")
    await digest(world, digest_reply(remembered("David is later", 1)))

    async with filing(world) as runs:
        with pytest.raises(BadRequest, match="it is a digest"):
            await undo(world.replica, world.clock, runs.leases, "here", SPACE, 2)
        assert (await undo(world.replica, world.clock, runs.leases, "here", SPACE)).undoes == 1

    assert taken_back(await world.ledger()) == {1: 3}
    assert await contents(world) == ["David is later"]


async def test_digests_are_no_part_of_the_banks_history(world: World) -> None:
    await run(world, consolidation_reply({"progress.md": "# Progress\n"}))
    await world.note("later")
    await digest(world, digest_reply(skipped={1: "nothing"}))
    history = History(world.replica, SPACE, fresh=True)

    assert list(await history.listed()) == [1]
    with pytest.raises(NotFound):
        await history.bank_after(2)
    assert list(await history.bank_after(1)) == ["progress.md"]


# --- several requests ---------------------------------------------------------------------------------------------


async def test_notes_that_do_not_fit_are_asked_about_in_order_and_committed_as_one(world: World) -> None:
    for number in range(6):
        await world.note(f"note {number} " + "word " * 300)
    result, requests = await digest(world, responder=_answer_all, context_window=2_600, max_tokens=500)

    assert 8 > len(requests) > 1
    assert (result.state, result.metrics.notes_processed) == ("ok", 8)
    assert len(await world.ledger()) == 1
    # The same fact of a later request is found among what the earlier ones have made.
    assert await contents(world) == ["David is the brother of Mickael"]
    [memory] = (await memories(world)).values()
    assert len(memory.extra["from"]) == len(requests)
    assert [one["memory"] for one in requests[-1].section("Memories")] == ["David is the brother of Mickael"]


def _answer_all(request: object) -> dict[str, object]:
    notes = request.section("Notes")  # type: ignore[attr-defined]  # an LLMRequest
    skipped = dict.fromkeys(range(2, len(notes) + 1), "nothing")
    return digest_reply(remembered("David is the brother of Mickael", 1), skipped=skipped)


# --- without a model ----------------------------------------------------------------------------------------------


async def test_without_a_model_what_lasts_is_remembered_word_for_word_and_the_rest_says_why_not(world: World) -> None:
    await world.note("# We chose S3\n\nIt is 3 times as cheap as v1.2.\n", category="decision", tags=("s3", "cost"))
    await world.note("check the bill", category="todo")
    await world.note("check  the bill", category="todo")
    await world.note("x" * 5_000, category="insight")

    result = await digest_without_model(world)

    assert (result.state, result.metrics.model, result.metrics.memories_stored) == ("ok", "builtin", 2)
    stored = {memory.content: memory for memory in (await memories(world)).values()}
    decision = stored["# We chose S3\n\nIt is 3 times as cheap as v1.2.\n"]
    assert (decision.type, decision.subjects, decision.expires_at) == ("decision", ("s3", "cost"), None)
    assert stored["check the bill\n"].type == "todo"
    [entry] = await world.ledger()
    reasons = [note.skipped for note in entry.keeps]
    assert "category 'progress'" in reasons[0]
    assert reasons[-2:] == ["says the same as note 4", "without a model, 5000 bytes are too many for one memory"]
    assert (await digest_without_model(world)).message == "No new notes to digest"


async def test_without_a_model_only_what_was_stored_leaves(world: World) -> None:
    await only_digests(world)
    await world.note("We chose S3", category="decision")

    await digest_without_model(world)

    assert len(await world.live()) == 2
    assert await contents(world) == ["We chose S3"]


# --- one queue ----------------------------------------------------------------------------------------------------


async def test_both_kinds_of_runs_share_a_queue_and_each_is_told_of_its_own(world: World) -> None:
    held = Scripted(json.dumps(BOTH), hold=True)
    async with answering(world, held, consolidation_reply({"progress.md": "# Progress\n"})) as (runs, llm):
        first = await begun(runs, llm, DIGEST)
        assert runs.status(SPACE) == {"space": SPACE, "status": "idle", "state": "idle"}
        second = runs.touch(SPACE)
        assert runs.status(SPACE)["state"] == "queued"
        assert runs.status(SPACE, "digest")["state"] == "running"
        assert (runs.status(SPACE, "digest")["queued"], runs.status(SPACE)["queued"]) == (0, 1)
        assert (runs.latest(SPACE, "digest"), runs.latest(SPACE)) == (first, second)
        llm.release()
        digested = [value async for value in runs.wait(SPACE, kind="digest")][-1]
        folded = [value async for value in runs.wait(SPACE)][-1]

    assert (digested["memories_stored"], "bank_files_created" in digested) == (2, False)
    assert (folded["bank_files_created"], "memories_stored" in folded) == (1, False)


async def test_cancelling_one_kind_leaves_the_other(world: World) -> None:
    held = Scripted(json.dumps(BOTH), hold=True)
    async with answering(world, held) as (runs, llm):
        runs.touch(SPACE, DIGEST)
        await until_asked(llm)
        runs.touch(SPACE)
        runs.touch(SPACE, RunOptions(cancel=True))
        assert runs.status(SPACE)["reason"] == "the run was cancelled"
        assert runs.status(SPACE, "digest")["state"] == "running"
        llm.release()
        assert [value async for value in runs.wait(SPACE, kind="digest")][-1]["state"] == "ok"


def test_the_memory_of_a_digest_is_one_that_any_reader_understands() -> None:
    data = b"---\ntype: fact\nsource: digest\nfrom:\n- a\n---\n\nDavid\n"

    assert Memory.parse(data, path="x", collection="memories").extra == {"from": ["a"]}


# --- what a fact corrects -----------------------------------------------------------------------------------------

IN_BED = "memories/20260101T000000_fact_00000001.md"


async def test_what_a_fact_corrects_is_named_in_its_memory_for_whoever_compares_memories(world: World) -> None:
    await world.put(f"{SPACE}/{IN_BED}", "David is confined to bed")
    reply = digest_reply(remembered("David hikes every day", 1, corrects=1), skipped={2: "nothing"})

    result, [request] = await digest(world, reply)

    assert result.state == "ok"
    assert [(memory["number"], memory["memory"]) for memory in request.section("Memories")] == [
        (1, "David is confined to bed")
    ]
    new = {key: memory for key, memory in (await memories(world)).items() if key != IN_BED}
    assert [memory.extra["corrects"] for memory in new.values()] == [["20260101T000000_fact_00000001"]]


@pytest.mark.parametrize("number", [2, 0, "1", True])
async def test_a_fact_that_corrects_what_was_not_shown_is_refused(world: World, number: object) -> None:
    await world.put(f"{SPACE}/{IN_BED}", "David is confined to bed")
    wrong = digest_reply(remembered("David hikes every day", 1, corrects=number), skipped={2: "nothing"})
    right = digest_reply(remembered("David hikes every day", 1), skipped={2: "nothing"})

    result, requests = await digest(world, wrong, right)

    assert (result.state, len(requests)) == ("ok", 2)
    assert "corrects" in requests[1].text
