"""Whatever goes wrong, the bucket is afterwards what it was before, byte for byte, and the reason can be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import trio
from consolidation_world import SPACE, World, answering, ask, run, thinking
from hypothesis import given
from hypothesis import strategies as st

from livememfs import errors
from livememfs.records import keys
from livememfs.records.note import Note
from livememfs.records.space import Meta
from livememfs.runs.consolidation.coverage import overlap_coverage
from livememfs.runs.consolidation.inputs import BankFile, BankInputs
from livememfs.runs.consolidation.plan import MAX_FILE_BYTES, make_plan
from livememfs.runs.notes import LiveNote
from livememfs.runs.reply import text_faults
from livememfs.testing.clock import START
from livememfs.testing.llm import LLMRequest, Scripted, consolidation_reply
from livememfs.testing.store import Fault, StoreRequest

LONG = "# Decisions\n\n" + "We keep everything in one bucket.\n" * 10
BANK = {"progress.md": "# Progress\n\nshort\n", "decisions.md": LONG, "odd.md/inner.md": "# A\n"}
GOOD = consolidation_reply(
    {"progress.md": "# Progress\n\nlonger than it was\n"}, used={1: ["progress.md"], 2: ["progress.md"]}
)


def but(**changes: Any) -> dict[str, Any]:
    """The good reply with some keys replaced; None removes a key."""
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not None}


def file(
    name: Any = "progress.md", content: Any = "# P\n\ntext\n", action: Any = "updated", **extra: Any
) -> dict[str, Any]:
    """The good reply with this file instead of its own."""
    entry = {"filename": name, "action": action, "content": content, **extra}
    used = name if isinstance(name, str) else "x.md"
    return {"bank_files": [entry], "coverage": [{"note": n, "files": [used]} for n in (1, 2)], "synthesis": "s"}


def coverage(*entries: Any) -> dict[str, Any]:
    return but(coverage=list(entries))


USED = {"note": 1, "files": ["progress.md"]}

BAD: dict[str, tuple[object, str]] = {
    # not a whole JSON object
    "prose": ("All done.", "no JSON object"),
    "truncated": (json.dumps(GOOD)[:-10], "truncated"),
    "two answers": (json.dumps(GOOD) * 2, "2 JSON objects"),
    "array": ([GOOD], "something larger"),
    "unclosed reasoning": ("<think>" + json.dumps(GOOD), "never closed"),
    "duplicate key": (json.dumps(GOOD)[:-1] + ', "synthesis": "x"}', "there twice"),
    "stopped by length": (Scripted(json.dumps(GOOD), finish_reason="length"), "finish_reason is .length"),
    "stopped by a filter": (Scripted(json.dumps(GOOD), finish_reason="content_filter"), "content_filter"),
    "no finish reason": (Scripted(json.dumps(GOOD), finish_reason=None), "finish_reason is missing"),
    "no text": (Scripted(None), "no text"),
    # keys and types
    "nothing in it": ({}, '"bank_files" is missing; the key "synthesis" is missing'),
    "no files": (but(bank_files=None), '"bank_files" is missing'),
    "no synthesis": (but(synthesis=None), '"synthesis" is missing'),
    "unknown key": (but(thoughts="hm"), '"thoughts" is unknown'),
    "edits": (but(edits=[]), '"edits" belong to a file'),
    "files as a mapping": (but(bank_files={"progress.md": "x"}), '"bank_files" is not a list'),
    "a file as a string": (but(bank_files=["progress.md"]), "file 1 is not an object"),
    "no file name": (but(bank_files=[{"action": "updated", "content": "x"}]), '"filename" is missing'),
    "no content": (but(bank_files=[{"action": "updated", "filename": "x.md"}]), 'either "edits" or "content"'),
    "no action": (but(bank_files=[{"content": "x", "filename": "x.md"}]), '"action" is missing'),
    "edits and content": (file(edits=[{"op": "append", "heading": [], "content": "x"}]), 'either "edits" or "content"'),
    "unknown key of a file": (file(mode="w"), '"mode" is unknown'),
    "unknown action": (file(action="deleted"), '"deleted" is neither'),
    "action of a wrong type": (file(action=["updated"]), "is neither created nor updated"),
    "file name of a wrong type": (file(name=7), "7 is not a string"),
    "content of a wrong type": (file(content={"a": 1}), "the content is a dict"),
    "content null": (file(content=None), "the content is a NoneType"),
    "synthesis of a wrong type": (but(synthesis=["x"]), "synthesis: the content is a list"),
    "synthesis empty": (but(synthesis=" \n"), "synthesis: the content is empty"),
    "removals of a wrong type": (but(intended_removals="progress.md"), '"intended_removals" is not a list'),
    "removal of a strange name": (but(intended_removals=[3]), "3 is not a string"),
    "removal of an unknown file": (but(intended_removals=["new.md"]), "no bank file new.md"),
    # names
    "outside the bank": (file("../_meta.json"), "start with a dot"),
    "absolute": (file("/etc/passwd.md"), "relative"),
    "another prefix": (file("live/x.md"), "outside the bank"),
    "zero width space": (file("pro\u200bgress.md"), r"U\+200B ZERO WIDTH SPACE"),
    "right to left override": (file("a\u202edm.md"), r"U\+202E"),
    "half a surrogate pair in a name": (file("a\ud800.md"), r"U\+D800"),
    "NUL in a name": (file("a\0.md"), r"U\+0000"),
    "backslash": (file("a\\b.md"), r"U\+005C"),
    "another extension": (file("run.sh"), r"end in \.md"),
    "hidden": (file(".git/config.md"), "start with a dot"),
    "too deep": (file("a/b/c/d/e.md"), "folders deep"),
    "empty name": (file(""), "name is refused"),
    "too long": (file("x" * 300 + ".md"), "255 bytes"),
    "twice": (but(bank_files=GOOD["bank_files"] * 2), "progress.md is there twice"),
    "twice with a prefix": (
        but(bank_files=[*GOOD["bank_files"], {**GOOD["bank_files"][0], "filename": "bank/progress.md"}]),
        "there twice",
    ),
    "twice but for case": (
        but(bank_files=[*GOOD["bank_files"], {**GOOD["bank_files"][0], "filename": "Progress.md"}]),
        "differ in case only",
    ),
    "present in another case": (file("DECISIONS.md"), "differs in case only from decisions.md"),
    "a file below a file": (file("progress.md/x.md"), "is in a folder that is the file progress.md"),
    "a file above a file": (file("odd.md"), "odd.md/inner.md is in a folder that is the file odd.md"),
    # content
    "empty": (file(content=""), "the content is empty"),
    "white space only": (file(content=" \n\t\n"), "the content is empty"),
    "NUL": (file(content="# P\n\0\n"), r"U\+0000"),
    "half a surrogate pair": (file(content="# P \ud83d\n"), r"U\+D83D, half"),
    "half a surrogate pair in the synthesis": (but(synthesis="\udc00"), r"synthesis: .*U\+DC00"),
    "front matter": (file(content="---\na: 1\n---\n\n# P\n"), "front matter"),
    "odd front matter": (file(content="---\na: [1\n---\n\n# P\n"), "front matter"),
    "front matter in the synthesis": (but(synthesis="---\na: 1\n---\n\nx"), "synthesis: it starts with front matter"),
    "too large": (file(content="é" * (MAX_FILE_BYTES // 2 + 1)), f"over {MAX_FILE_BYTES}"),
    "shrunk": (file("decisions.md", "# Decisions\n"), r"shrinks from \d+ to 12 bytes"),
    "another shrunk on purpose": (
        {**file("decisions.md", "# Decisions\n"), "intended_removals": ["progress.md"]},
        "shrinks",
    ),
    "emptied on purpose": ({**file("decisions.md", ""), "intended_removals": ["decisions.md"]}, "the content is empty"),
    # coverage
    "no file and no account": (but(bank_files=[], coverage=None), "no file has taken up"),
    "account of a wrong type": (but(coverage={"1": "used"}), '"coverage" is not a list'),
    "account null": (json.dumps({**GOOD, "coverage": None}), '"coverage" is not a list'),
    "empty account": (coverage(), "names no note"),
    "entry of a wrong type": (coverage(USED, 2), "entry 2: it is not an object"),
    "invented note": (coverage(USED, {"note": 3, "skipped": "x"}), "not a number from 1 to 2"),
    "note zero": (coverage(USED, {"note": 0, "skipped": "x"}), "not a number from 1 to 2"),
    "note true": (coverage({"note": True, "skipped": "x"}), "not a number from 1 to 2"),
    "note by name": (coverage({"note": "one", "skipped": "x"}), "not a number from 1 to 2"),
    "note twice": (coverage(USED, {"note": 1, "skipped": "x"}), "note 1 is there twice"),
    "neither used nor skipped": (coverage({"note": 1}), "needs either"),
    "both": (coverage({**USED, "skipped": "x"}), "needs either"),
    "skipped without a reason": (coverage({"note": 1, "skipped": " "}), "no reason"),
    "used nowhere": (coverage({"note": 1, "files": []}), "needs either"),
    "used in a number": (coverage({"note": 1, "files": 7}), "not a list of file names"),
    "used in a file that is not returned": (coverage({"note": 1, "files": ["decisions.md"]}), "not a file of this"),
    "unknown key of an entry": (coverage({**USED, "why": "x"}), "'why' is unknown"),
}


@pytest.fixture
async def world() -> World:
    return await World.seeded(notes=2, bank=BANK)


def test_the_table_is_long_enough() -> None:
    assert len(BAD) >= 30


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_reply_is_asked_for_once_more_and_then_refused_with_nothing_changed(
    name: str, world: World
) -> None:
    answer, reason = BAD[name]
    if isinstance(answer, list):
        answer = json.dumps(answer)
    before = await world.bucket()
    async with answering(world, answer, answer) as (consolidations, llm):
        result = await consolidations.run_once(SPACE)

    assert result.state == "error"
    assert result.reason.startswith("the model's reply was refused: ")
    assert re.search(reason, result.reason), result.reason
    assert "the notes were kept" in result.what_to_do
    assert (result.metrics.notes_processed, result.metrics.notes_remaining) == (0, 2)
    assert len(llm.requests) == 2
    assert await world.bucket() == before
    json.dumps(consolidations.status(SPACE), ensure_ascii=False).encode()


async def test_every_fault_of_a_reply_is_listed(world: World) -> None:
    reply = {
        "bank_files": [
            {"filename": "a\u200b.md", "action": "updated", "content": ""},
            {"filename": "decisions.md", "action": "dropped", "content": "x"},
        ],
        "coverage": [{"note": 9, "skipped": "x"}],
    }

    result = await run(world, reply, reply)

    for fault in ('"synthesis" is missing', "U+200B", "dropped", "from 1 to 2"):
        assert fault in result.reason


@pytest.mark.parametrize(
    "reply",
    [
        coverage({**USED, "skipped": None}, {"note": "2", "files": [], "skipped": "known"}),
        coverage({"note": 1, "files": "progress.md", "skipped": ""}, {"note": 2, "files": ["progress.md"]}),
        file(edits=[]),
        file(content=None, edits=[{"op": "append", "heading": "# Progress", "content": "more", "deep": False}]),
    ],
)
async def test_a_reply_that_says_nothing_in_two_ways_is_taken(reply: dict[str, Any], world: World) -> None:
    """An endpoint that holds a model to a schema may make it name every key."""
    result, requests = await ask(world, reply)

    assert (result.state, len(requests)) == ("ok", 1)
    assert await world.live() == []


async def test_a_long_list_of_faults_is_cut_and_says_so(world: World) -> None:
    reply = but(coverage=[{"note": number, "skipped": "x"} for number in range(3, 103)])

    result = await run(world, reply, reply)

    assert result.reason.endswith("; and 60 more")


async def test_shrinking_on_purpose_is_allowed(world: World) -> None:
    shorter = "# Decisions\n\nWe keep everything in one bucket.\n"
    reply = {**file("decisions.md", shorter), "intended_removals": ["bank/decisions.md"]}

    assert (await run(world, reply)).state == "ok"
    assert (await world.bank())["decisions.md"] == shorter


async def test_a_small_file_may_shrink(world: World) -> None:
    assert (await run(world, file("progress.md", "short"))).state == "ok"


async def test_a_bank_file_that_is_not_text_is_neither_shown_nor_replaced(world: World) -> None:
    await world.put(f"{SPACE}/bank/blob.md", b"\xff\xfe\x00")
    before = await world.bucket()
    async with answering(world, file("blob.md"), file("blob.md"), GOOD) as (consolidations, llm):
        result = await consolidations.run_once(SPACE)
        assert await world.bucket() == before
        assert (await consolidations.run_once(SPACE)).state == "ok"

    assert "not text" in result.reason
    assert "blob.md" not in llm.requests[0].text
    assert await world.get(f"{SPACE}/bank/blob.md") == b"\xff\xfe\x00"


async def test_front_matter_of_a_foreign_hand_may_stay_as_it_is(world: World) -> None:
    block = "---\nowner: them\n---\n\n"
    await world.put(f"{SPACE}/bank/foreign.md", f"{block}# F\n")

    assert (await run(world, file("foreign.md", f"{block}# F\n\nmore\n"))).state == "ok"


# --- the endpoint -------------------------------------------------------------------------------------------------

ENDPOINT = {
    "wrong key": (Scripted("no", status=401), errors.ModelDenied),
    "unknown model": (Scripted("no such model", status=404), errors.ModelDenied),
    "too large": (Scripted("no, thanks", status=400), errors.RequestRefused),
    "throttled": (Scripted("slow down", status=429), errors.ModelUnreachable),
    "broken": (Scripted("oops", status=503), errors.ModelUnreachable),
    "reset": (Scripted(reset=True), errors.ModelUnreachable),
    "not an API": (Scripted(body=b"<html>", content_type="text/html"), errors.ModelError),
}


@pytest.mark.parametrize("name", ENDPOINT)
async def test_a_failing_endpoint_is_not_asked_again_and_nothing_changes(name: str, world: World) -> None:
    answer, kind = ENDPOINT[name]
    before = await world.bucket()
    result, requests = await ask(world, answer, GOOD)

    assert (result.state, type(result.error)) == ("error", kind)
    assert result.what_to_do
    assert len(requests) == 1
    assert await world.bucket() == before


async def test_a_model_that_does_not_answer_in_time_costs_nothing_but_the_time(world: World) -> None:
    before = await world.bucket()

    result = await run(world, Scripted("late", hold=True), timeout=0.3)

    assert (result.state, type(result.error)) == ("error", errors.ModelTimedOut)
    assert "CONSOLIDATION_TIMEOUT" in result.what_to_do
    assert await world.bucket() == before


async def test_a_retry_that_fails_otherwise_reports_that(world: World) -> None:
    before = await world.bucket()

    result = await run(world, "prose", Scripted("oops", status=500))

    assert type(result.error) is errors.ModelUnreachable
    assert result.metrics.llm_tokens_used == 120
    assert await world.bucket() == before


# --- the store ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["get", "list", "head"])
async def test_a_store_that_cannot_be_read_ends_the_run_with_nothing_changed(verb: str, world: World) -> None:
    before = await world.bucket()
    world.store.script(verb, Fault(before=errors.Unreachable("down", endpoint="s3")))

    result = await run(world, GOOD)

    assert (result.state, type(result.error)) == ("error", errors.Unreachable)
    assert await world.bucket() == before


WRITES = ["_ledger/00000001.json", "bank/progress.md", "bank/new.md", "_synthesis.md", "_meta.json"]


@pytest.mark.parametrize("failing", WRITES)
async def test_a_write_that_fails_keeps_every_note_and_the_next_run_does_the_rest(failing: str, world: World) -> None:
    answer = consolidation_reply({"progress.md": "# Progress\n\nnew\n", "new.md": "# New\n"})
    notes = await world.live()
    down = [Fault(before=errors.Unreachable("down", endpoint="s3"))]
    world.store.plan = lambda asked, _: down.pop() if (asked.verb, asked.key) == ("put", f"{SPACE}/{failing}") else None

    first = await run(world, answer)

    assert (first.state, type(first.error)) == ("error" if failing in WRITES[0] else "partial", errors.Unreachable)
    assert await world.live() == notes
    assert Meta.parse(await world.get(keys.meta_key(SPACE))).total_notes_processed == 0

    world.store.plan = None
    second = await run(world, *[answer] * (failing in WRITES[0]))
    assert second.state == "ok"
    assert await world.live() == []
    assert {"progress.md": "# Progress\n\nnew\n", "new.md": "# New\n"}.items() <= (await world.bank()).items()
    assert Meta.parse(await world.get(keys.meta_key(SPACE))).consolidation_count == 1
    assert [entry.state for entry in await world.ledger()] == ["applied"]


async def test_notes_that_cannot_be_removed_make_the_run_partial(
    world: World, expect_log: Callable[[str], None]
) -> None:
    expect_log("a consolidated note could not be removed")
    notes = await world.live()
    world.store.plan = lambda asked, _: (
        Fault(before=errors.Denied("no", key=asked.key)) if asked.verb == "delete" else None
    )

    result = await run(world, GOOD)

    assert result.state == "partial"
    assert "could not be removed" in result.reason
    assert (result.metrics.notes_processed, result.metrics.notes_remaining) == (2, 2)
    assert await world.live() == notes


CHANGED = {
    "a bank file was changed": ("bank/progress.md", b"theirs"),
    "a bank file that is to be created appeared": ("bank/new.md", b"theirs"),
    "somebody else consolidated": ("_meta.json", Meta(SPACE, "", "", START, consolidation_count=7).render()),
    "a synthesis appeared": ("_synthesis.md", b"theirs"),
}


@pytest.mark.parametrize("name", CHANGED)
async def test_what_changed_while_the_model_was_thinking_ends_the_run_before_its_first_write(
    name: str, world: World
) -> None:
    key, data = CHANGED[name]
    answer = consolidation_reply({"decisions.md": f"{LONG}\nmore", "progress.md": "# P\n\nshort\n", "new.md": "# N"})
    async with thinking(world, answer) as result:
        await world.put(f"{SPACE}/{key}", data)
        before = await world.bucket()

    assert result["state"] == "error"
    assert f"{SPACE}/{key} changed in the store meanwhile" in result["reason"]
    assert await world.bucket() == before


async def test_what_somebody_without_a_lease_writes_after_the_commit_is_kept_beside_ours(
    world: World, expect_log: Callable[[str], None]
) -> None:
    expect_log("a file of the bank was changed during a run; that version is kept beside it")
    theirs = "# Progress\n\ntheirs\n"
    held: list[trio.Event] = []

    def plan(asked: StoreRequest, _: int) -> Fault | None:
        if (asked.verb, asked.key) == ("put", f"{SPACE}/bank/decisions.md"):
            held.append(trio.Event())
            return Fault(delay=1.0)
        return None

    world.store.plan = plan
    answer = consolidation_reply({"decisions.md": f"{LONG}\nmore", "progress.md": "# P\n\nshort\n"})
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def _() -> None:
            while not held:
                await trio.sleep(0.05)
            await world.put(f"{SPACE}/bank/progress.md", theirs)

        result = await run(world, answer)

    bank = await world.bank()
    assert result.state == "ok"
    assert bank["progress.md"] == "# P\n\nshort\n"
    assert [text for name, text in bank.items() if name.startswith("progress.conflict-")] == [theirs]


# --- the space ----------------------------------------------------------------------------------------------------


async def test_a_space_that_does_not_exist_is_an_error_and_is_not_made() -> None:
    world = World()
    await world.note("lost")
    before = await world.bucket()

    result = await run(world)

    assert (result.state, type(result.error)) == ("error", errors.NotFound)
    assert await world.bucket() == before


@pytest.mark.parametrize(("key", "data"), [("_meta.json", b"{}"), ("_rules.md", b"\xff")])
async def test_a_space_whose_records_cannot_be_read_is_left_alone(key: str, data: bytes, world: World) -> None:
    await world.put(f"{SPACE}/{key}", data)
    before = await world.bucket()

    result = await run(world)

    assert result.state == "error"
    assert f"{SPACE}/{key}" in result.reason
    assert await world.bucket() == before


async def test_a_note_that_is_not_text_stays_and_is_named(world: World) -> None:
    await world.put(f"{SPACE}/live/broken.md", b"\xff\xfe")

    result = await run(world, GOOD)

    assert result.state == "ok"
    assert "broken.md" in result.message
    assert await world.live() == [f"{SPACE}/live/broken.md"]


async def test_a_synthesis_that_is_not_text_is_replaced(world: World) -> None:
    await world.put(keys.synthesis_key(SPACE), b"\xff\xfe")

    assert (await run(world, GOOD)).state == "ok"
    assert b"Filed." in await world.get(keys.synthesis_key(SPACE))


async def test_a_bug_ends_one_run_and_not_the_mount(
    world: World, monkeypatch: pytest.MonkeyPatch, expect_log: Callable[[str], None]
) -> None:
    expect_log("consolidation broke down")
    monkeypatch.setattr("livememfs.runs.consolidation.work.plan_from_reply", lambda *_, **__: 1 // 0)
    before = await world.bucket()
    async with answering(world, GOOD, GOOD) as (consolidations, _):
        result = await consolidations.run_once(SPACE)
        monkeypatch.undo()
        assert await world.bucket() == before
        assert (await consolidations.run_once(SPACE)).state == "ok"

    assert result.reason == "internal error: ZeroDivisionError"


# --- any reply ----------------------------------------------------------------------------------------------------


def _inputs() -> BankInputs:
    notes = tuple(LiveNote(f"{n}.md", f"a/live/{n}.md", "e", Note(START, "a", "todo", (), "a", "x")) for n in (1, 2))
    bank = {name: BankFile(name, "e", text) for name, text in BANK.items()}
    return BankInputs("a", Meta("a", "", "", START), "e", notes, rules="rules", bank=bank)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.text(max_size=5)
    | st.sampled_from([*BANK, "new.md", "updated"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["filename", "action", "content", "note", "files", "skipped"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["bank_files", "synthesis", "coverage", "intended_removals", "dropped", "x"]), values
    )
)
def test_any_json_object_gives_a_plan_or_a_refusal_that_can_be_written_down(reply: dict[str, Any]) -> None:
    try:
        said = make_plan(reply, _inputs()).synthesis
    except errors.ReplyRefused as refused:
        said = str(refused)
    assert said.strip().encode()


def test_a_text_of_exactly_the_largest_size_is_stored_and_one_byte_more_is_not() -> None:
    assert [bool(text_faults("x" * size, MAX_FILE_BYTES)) for size in (MAX_FILE_BYTES, MAX_FILE_BYTES + 1)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("old", "new", "refused"), [(200, 1, False), (201, 1, True), (300, 90, False), (300, 89, True)]
)
def test_a_file_over_two_hundred_bytes_keeps_thirty_in_a_hundred(old: int, new: int, refused: bool) -> None:
    inputs = replace(_inputs(), bank={"progress.md": BankFile("progress.md", "e", "x" * old)})
    with pytest.raises(errors.ReplyRefused, match="shrinks") if refused else nullcontext():
        make_plan(file("progress.md", "y" * new), inputs)


@pytest.mark.parametrize(("said", "counts"), [("alpha bravo", True), ("alpha", False)])
def test_a_note_counts_as_used_when_files_have_half_of_its_words(said: str, counts: bool) -> None:
    note = Note(START, "a", "progress", (), SPACE, "alpha bravo charlie delta")
    assert (1 in overlap_coverage([note], {"a.md": ("", said)}).fates) == counts


def test_a_request_shows_its_sections() -> None:
    request = LLMRequest("/", {}, {"messages": [{"role": "user", "content": "## Rules\nx\n\n[1]"}]})

    assert request.section("Rules") == [1]
    with pytest.raises(LookupError, match="Notes"):
        request.section("Notes")
