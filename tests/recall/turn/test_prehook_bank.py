"""The bank is told as memories and notes are: after a run nothing that was known is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from recall_world import DONE_WITHIN, SPACE, Bucket, prehook

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.memories.notes import write_note
from livememfs.recall.turn.inject import SHOWN_CHARACTERS, TITLES, Telling
from livememfs.recall.turn.prehook import Prehook, TurnAnswer
from livememfs.records import keys
from livememfs.records.turn import Turn
from livememfs.spaces import making as spaces

FACTS = {
    "which database did we choose?": "We chose PostgreSQL as the database of the orders service.",
    "how long is a session valid?": "A session of the shop is valid for 30 minutes.",
    "what breaks the build on Mondays?": "The build breaks on Mondays since the cache is emptied on Sunday night.",
}


async def bank(bucket: Bucket, text: str, name: str = "facts.md") -> None:
    await bucket.memory.put(keys.bank_key(SPACE, name), text.encode())


async def ask(here: Prehook, message: str, session: str = "s") -> TurnAnswer:
    return await here.turn(SPACE, Turn(message, session))


async def test_a_section_is_told_with_its_file_and_heading_once_a_session(bucket: Bucket) -> None:
    await bank(bucket, "# Facts\n\n## Storage\n\nThe orders are kept in PostgreSQL.\n\n## Food\n\nLunch is at noon.\n")
    async with prehook(bucket) as here:
        answer = await ask(here, "where are the orders kept?")

        assert f"{TITLES['bank']}\n- facts.md, Facts / Storage: The orders are kept in PostgreSQL.\n" in answer.block
        assert "noon" not in answer.block
        assert answer.paths == (f"{SPACE}/bank/facts.md",)
        assert (await ask(here, "where are the orders kept?")).block == ""
        assert "PostgreSQL" in (await ask(here, "where are the orders kept?", "another")).block


async def test_a_section_that_has_changed_is_told_again_and_the_others_are_not(bucket: Bucket) -> None:
    await bank(bucket, "# Storage\n\nOrders are kept in MySQL.\n\n# Lists\n\nOrders are listed by date.\n")
    async with prehook(bucket) as here:
        assert "MySQL" in (await ask(here, "orders")).block
    await bank(bucket, "# Storage\n\nOrders are archived in glass bottles.\n\n# Lists\n\nOrders are listed by date.\n")
    async with prehook(bucket) as here:
        told = (await ask(here, "orders")).block
        assert "bottles" in told
        assert "by date" not in told


async def test_of_a_long_section_the_lines_that_fit_are_told(bucket: Bucket) -> None:
    lines = [f"- Line {number} is about the weather of day {number}." for number in range(200)]
    lines.insert(150, "- The zebra of the director lives in the garage.")
    await bank(bucket, "# All\n\n" + "\n".join(lines) + "\n")
    async with prehook(bucket) as here:
        block = (await ask(here, "where does the zebra live?")).block

    assert "The zebra of the director lives in the garage." in block
    assert len(block) < SHOWN_CHARACTERS + 300


@pytest.mark.parametrize("first", ["bank", "note"])
async def test_what_a_note_or_a_memory_says_the_bank_does_not_say_again(bucket: Bucket, first: str) -> None:
    same, other = "The zebra lives in the garage.", "The zebra eats hay."
    if first == "bank":
        await bank(bucket, f"# Zebra\n\n> {same}\n\n- {other}\n")
    await bucket.write("n", same)
    await bucket.remember(same)
    bucket.clock.advance(hours=7)
    async with prehook(bucket) as here:
        block = (await ask(here, "where does the zebra live?")).block
        assert (block.count(same), block.count(other)) == (1, first == "bank")
    if first == "note":
        await bank(bucket, f"# Zebra\n\n> {same}\n\n- {other}\n")
        async with prehook(bucket) as here:
            block = (await ask(here, "where does the zebra live?", "another")).block
            assert (block.count(same), block.count(other)) == (1, 1)


async def test_what_the_bank_says_is_no_use_of_a_memory(bucket: Bucket) -> None:
    await bank(bucket, "# Zebra\n\nThe zebra lives in the garage.\n")
    tellings: list[Telling] = []
    async with prehook(bucket, tells=tellings.append) as here:
        assert "garage" in (await ask(here, "zebra")).block
    assert [candidate.section for telling in tellings for candidate in telling.told] == ["bank"]


async def _told(app: App, session: str) -> dict[str, str]:
    """What a session is told for each question; whatever it is of, and all it takes."""
    await app.recall.prepare([SPACE], DONE_WITHIN)
    return {
        question: (await app.prehook.turn(SPACE, Turn(question, f"{session} {question}"))).block for question in FACTS
    }


async def test_after_a_run_nothing_that_was_known_is_unknown(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none")
    async with open_app(settings) as app:
        await spaces.create(app.replica, app.clock, SPACE)
        for fact in FACTS.values():
            await write_note(app.replica, app.clock, SPACE, fact, agent="ada", category="decision")
        before = await _told(app, "before")
        assert (await app.consolidations.run_once(SPACE)).state == "ok"
        assert not (await app.replica.names.listing(keys.live_prefix(SPACE))).objects.keys() - {keys.KEEP}
        after = await _told(app, "after")

    for question, fact in FACTS.items():
        assert fact in before[question]
        assert fact in after[question]
        assert TITLES["bank"] in after[question]


# --- agents' own files ---------------------------------------------------------------------------------------------


async def own_file(bucket: Bucket, name: str, text: str) -> None:
    await bucket.memory.put(f"{keys.agent_prefix(SPACE, 'claude-code')}{name}", text.encode())


async def test_a_topic_of_an_agents_own_memory_is_told_and_its_index_is_not(bucket: Bucket) -> None:
    """To every agent, with its type and its file, once a session."""
    text = "---\nname: mocks\ndescription: Tests hit a real database\ntype: feedback\n---\n\nNever mock the database.\n"
    await own_file(bucket, "feedback_mocks.md", text)
    await own_file(bucket, "MEMORY.md", "- [Mocks](feedback_mocks.md): never mock the database\n")
    async with prehook(bucket) as here:
        answer = await ask(here, "shall I mock the database?")

        about = "- claude, feedback, claude-code/feedback_mocks.md, 2026-02-20 14:00: mocks"
        assert f"{TITLES['relevant']}\n{about}" in answer.block
        assert answer.block.count("Never mock the database.") == 1
        assert answer.paths == (f"{SPACE}/agents/claude-code/feedback_mocks.md",)
        assert (await ask(here, "shall I mock the database?")).block == ""


async def test_of_a_long_topic_the_lines_that_fit_are_told(bucket: Bucket) -> None:
    lines = [f"- Line {number} is about the weather of day {number}." for number in range(200)]
    lines.insert(150, "- The zebra of the director lives in the garage.")
    await own_file(bucket, "project_zoo.md", "\n".join(lines))
    async with prehook(bucket) as here:
        block = (await ask(here, "where does the zebra live?")).block
        assert "The zebra of the director lives in the garage." in block
        assert len(block) < 2 * SHOWN_CHARACTERS
