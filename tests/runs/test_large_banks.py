"""Banks and notes of any size, with a small window: what is shown, what may be changed, what is cut."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from consolidation_world import SPACE, World, answering, ask, run

from livememfs import errors
from livememfs.records import keys
from livememfs.records.note import Note
from livememfs.runs.consolidation.excerpt import excerpt
from livememfs.runs.coverage import Coverage, Fate
from livememfs.runs.notes import LiveNote
from livememfs.runs.pieces import Account, piece
from livememfs.testing.clock import START
from livememfs.testing.llm import LLMRequest, consolidation_reply
from livememfs.text.size import tokens

WINDOW = 8_000
FILLER = "It was looked at by several people and nothing in it had to be changed afterwards. "


def bank_of_a_megabyte() -> dict[str, str]:
    """A hundred files of some kilobytes, one file of a quarter of a megabyte in sections, and one long log."""
    topic = "## Topic {0}\n\nsubject{0} is kept by owner{0}. " + FILLER * 4 + "\n\n"
    bank = {
        f"area/topic{n}.md": f"# Area {n}\n\n" + "".join(topic.format(n * 16 + m) for m in range(16))
        for n in range(100)
    }
    bank["large.md"] = "# Large\n\n" + "".join(topic.format(5_000 + n) for n in range(700))
    bank["log.md"] = "# Log\n\n" + "".join(f"- entry{n}: {FILLER}\n" for n in range(1_500))
    return bank


def files_into(request: LLMRequest) -> Any:
    """A model that adds each note to the first place it is shown that speaks of the note's subject."""
    shown = {file["filename"]: file["content"] for file in request.section("Bank files")}
    parts = [(part["filename"], part["heading"], part["content"]) for part in request.section("Parts of bank files")]
    files: dict[str, list[dict[str, Any]]] = {}
    coverage = []
    for note in request.section("Notes"):
        subject = re.search(r"subject\d+|entry\d+", note["text"])[0]  # type: ignore[index]
        name, heading = place(subject, shown, parts)
        files.setdefault(name, []).append(
            {"op": "append", "heading": heading, "content": f"- {note['text'].strip()}\n"}
        )
        coverage.append({"note": note["note"], "files": [name]})
    changed = [{"filename": name, "action": "updated", "edits": edits} for name, edits in files.items()]
    return {"bank_files": changed, "coverage": coverage, "synthesis": "Filed."}


def place(subject: str, shown: dict[str, str], parts: list[tuple[str, list[str], str]]) -> tuple[str, list[str]]:
    for name, text in shown.items():
        if f"{subject} " in text:
            return name, [re.search(r"^# (.*)", text)[1]]  # type: ignore[index]
    return next((name, heading) for name, heading, text in parts if f"{subject} " in text or name == "log.md")


@pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="it takes half a minute")
async def test_a_bank_of_a_megabyte_takes_in_fifty_notes_through_a_window_of_8000_tokens() -> None:
    world = World()
    bank = bank_of_a_megabyte()
    assert sum(map(len, bank.values())) > 1_000_000
    await world.seed(bank=bank)
    for number in range(50):
        subject = 5_000 + number * 7 if number % 5 == 0 else number * 31
        await world.note(f"The release was approved for subject{subject} by the new owner {number}.")

    result, requests = await ask(world, responder=files_into, context_window=WINDOW)

    assert (result.state, result.reason) == ("ok", ""), result.what_to_do
    assert await world.live() == []
    said = "\n".join((await world.bank()).values())
    assert [said.count(f"by the new owner {number}.\n") for number in range(50)] == [1] * 50
    for request in requests:
        assert tokens(request.text) + request.body["max_tokens"] <= WINDOW
    [entry] = await world.ledger()
    assert len(entry.removes) == 50


def test_an_excerpt_has_the_files_that_notes_speak_of_and_those_that_they_name() -> None:
    bank = {f"f{n}.md": f"# F{n}\n\nsubject{n} " + FILLER * 5 + "\n" for n in range(40)}

    shown, served = excerpt(bank, ["about subject7", "see f23.md, please"], room=400, outline_room=2_000)

    assert served == 2

    assert set(shown.full) == {"f7.md", "f23.md"}
    assert shown.full["f7.md"] == bank["f7.md"]
    assert {entry["filename"] for entry in shown.outline} == set(bank)
    assert shown.outline[0]["headings"] == ["F0"]


def test_a_request_takes_as_many_notes_as_what_is_nearest_to_each_can_be_shown_for() -> None:
    bank = {f"f{n}.md": f"# F{n}\n\nsubject{n} " + FILLER * 5 + "\n" for n in range(40)}
    notes = [f"about subject{n}" for n in (3, 5, 3, 8, 9)]

    shown, served = excerpt(bank, notes, room=330, outline_room=2_000)

    assert (served, set(shown.full)) == (3, {"f3.md", "f5.md"})


def test_an_outline_names_what_there_is_room_for_and_counts_the_rest() -> None:
    bank = {f"file{n}.md": "# One\n\n## Two\n\nx\n" for n in range(100)}

    def outline(room: int) -> tuple[int, int, object]:
        shown, _ = excerpt(bank, ["nothing"], 100, room)
        return len(shown.outline), shown.unnamed, shown.outline[0].get("headings")

    assert outline(4_000) == (100, 0, ["One", "Two"])
    assert outline(1_700) == (100, 0, ["One"])
    assert outline(1_500) == (100, 0, None)
    assert outline(400) == (20, 80, None)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"filename": "hidden.md", "content": "# Hidden\n\nmine\n"}, "hidden.md): the file was not shown"),
        (
            {"filename": "hidden.md", "edits": [{"op": "append", "heading": ["Hidden"], "content": "x"}]},
            "the file was not shown in this request",
        ),
        ({"filename": "log.md", "content": "# Log\n\nmine\n"}, "changed by edits alone"),
        (
            {"filename": "log.md", "edits": [{"op": "replace", "heading": ["Log"], "content": "mine"}]},
            "only the end was shown",
        ),
        (
            {"filename": "log.md", "edits": [{"op": "append", "heading": ["Log", "Old"], "content": "mine"}]},
            "the heading Log > Old was not shown",
        ),
    ],
)
async def test_what_a_request_did_not_show_is_not_changed_by_its_reply(change: dict[str, Any], fault: str) -> None:
    world = World()
    log = "# Log\n\n" + f"- {FILLER}\n" * 600 + "\n## Old\n\n" + "Quite another matter altogether. " * 400 + "\n"
    hidden = "# Hidden\n\n" + "Quite another matter altogether. " * 900 + "\n"
    bank = {"log.md": log, "hidden.md": hidden}
    await world.seed(bank=bank)
    await world.note("It was looked at by several people afterwards.")
    reply = {**consolidation_reply({}), "bank_files": [{"action": "updated", **change}]}

    result = await run(world, reply, reply, context_window=WINDOW)

    assert result.state == "error"
    assert fault in result.reason
    assert await world.bank() == bank


# --- long notes ---------------------------------------------------------------------------------------------------


def taken(request: LLMRequest) -> Any:
    """A model that takes in what it is shown, in one file for each request."""
    notes = request.section("Notes")
    text = "".join(note["text"] for note in notes)
    name = notes[-1].get("part", "whole").replace(" ", "-")
    return consolidation_reply({f"{name}.md": f"# Part\n\n{text}\n"}, action="created")


async def test_a_note_too_long_for_a_request_goes_out_in_parts_cut_at_headings_and_paragraphs() -> None:
    world = await World.seeded()
    await world.note("short")
    sections = [f"## Section {n}\n\n{FILLER * 20}\n\n{FILLER * 20}\n\n" for n in range(14)]
    await world.note("# Long\n\n" + "".join(sections))

    result, requests = await ask(world, responder=taken, context_window=WINDOW)

    assert (result.state, result.metrics.notes_processed) == ("ok", 2)
    assert await world.live() == []
    notes = [note for request in requests for note in request.section("Notes")]
    assert "part" not in notes[0]
    parts = [note for note in notes if "part" in note]
    assert re.fullmatch(r"1 of \d+", parts[0]["part"])
    assert "".join(note["text"] for note in parts) == "# Long\n\n" + "".join(sections)
    assert all(note["text"].startswith("## Section") for note in parts[1:])
    for request in requests:
        assert tokens(request.text) + request.body["max_tokens"] <= WINDOW


async def test_a_note_that_is_skipped_in_one_part_and_used_in_the_others_is_used() -> None:
    world = await World.seeded()
    await world.note("\n\n".join(FILLER * 20 for _ in range(60)))
    asked: list[LLMRequest] = []

    def second_is_skipped(request: LLMRequest) -> Any:
        asked.append(request)
        if len(asked) != 2:
            return taken(request)
        return consolidation_reply({}, used={}, skipped={1: "nothing new"})

    assert (await run(world, responder=second_is_skipped, context_window=12_000)).state == "ok"

    [entry] = await world.ledger()
    assert (len(entry.removes), len(asked)) == (1, len(entry.removes[0].used_in) + 1)


def test_a_note_is_accounted_for_once_all_its_parts_are() -> None:
    one = LiveNote("a.md", "alpha/live/a.md", "e", Note(START, "cline", "todo", (), SPACE, "text"))
    account = Account()
    account.add([piece(1, one, "x"), piece(2, one, "y")], Coverage({1: Fate(("a.md",)), 2: Fate(("a.md",))}))
    account.add([piece(2, one, "y"), piece(3, one, "z")], Coverage({2: Fate(skipped="known")}))

    assert account.coverage().fates == {1: Fate(("a.md",)), 3: Fate(skipped="known")}


async def test_a_line_too_long_for_any_request_is_said_to_be_too_long_with_the_limit() -> None:
    world = await World.seeded()
    await world.note("short")
    await world.note("x" * 60_000)

    async with answering(world, responder=taken, context_window=WINDOW) as (consolidations, _):
        partial = await consolidations.run_once(SPACE)
        none = await consolidations.run_once(SPACE)

    assert (partial.state, partial.metrics.notes_processed) == ("partial", 1)
    assert re.search(
        r"1 of 2 notes have a line that is too long for a request, which has room for \d+ tokens", partial.reason
    )
    assert "LIVEMEMFS_CONTEXT_WINDOW" in partial.what_to_do
    assert "not accounted for" not in partial.reason
    assert isinstance(none.error, errors.NotesTooLong)
    assert len(await world.live()) == 1


async def test_a_synthesis_that_a_model_made_too_long_does_not_block_its_space() -> None:
    world = await World.seeded(notes=1)
    await world.put(keys.synthesis_key(SPACE), FILLER * 600)

    reply = consolidation_reply({"a.md": "# A\n\nThis is note 1.\n"})
    result, [request] = await ask(world, reply, context_window=WINDOW)

    assert result.state == "ok"
    assert "too long to be shown" in request.section("Previous synthesis")
    assert tokens(request.text) + request.body["max_tokens"] <= WINDOW
