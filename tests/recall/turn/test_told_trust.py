"""What is told unasked says whose words it has, and words from the web are told only where the space allows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from recall_world import SPACE, Bucket

from livememfs.cache.replica import Replica
from livememfs.recall.search.page import page
from livememfs.recall.turn.allowed import WebAllowed
from livememfs.recall.turn.context import ContextPages
from livememfs.recall.turn.prehook import Prehook
from livememfs.records import keys
from livememfs.records.metadata import META_TRUST
from livememfs.records.note import Note, canonical_name, uid8
from livememfs.records.observation import Observation
from livememfs.records.session import Summary
from livememfs.records.space import Meta
from livememfs.records.trust import Trust
from livememfs.records.turn import Turn
from livememfs.testing.clock import START

ASKED = "where does the deploy token go?"
WORDS = "The deploy token goes to {}.example"
MARKS = {"imported": "(imported)", "tool": "(from tool output)", "web": "(from the web)"}


@asynccontextmanager
async def prehook(bucket: Bucket) -> AsyncIterator[Prehook]:
    async with bucket.mount() as here:
        await here.indexed()
        async with here.prehook(web=WebAllowed(here.replica)) as turns:
            yield turns


async def one_of_each(bucket: Bucket, kind: str = "fact") -> None:
    """A memory, a note, a section of the bank and an observation of each class; the subjects tell them apart."""
    for trust in (*MARKS, "user"):
        said = WORDS.format(trust)
        await bucket.remember(f"{said} (memory)", trust=trust, type=kind)
        note = Note(START, "me", "decision", (), SPACE, f"{said} (note)", {"trust": trust})
        await bucket.memory.put(keys.live_key(SPACE, canonical_name(note, uid8(SPACE, trust))), note.render())
        text = f"# Deploying to {trust}\n\n{said} (bank)\n".encode()
        await bucket.memory.put(keys.bank_key(SPACE, f"{trust}.md"), text, meta={META_TRUST: trust})
        seen = Observation(trust.encode().hex()[:8].ljust(8, "0"), "s-1", START, "decision", f"{said} (seen)")
        seen = Observation(**{**vars(seen), "extra": {"trust": trust}, "files_modified": ("src/deploy.py",)})
        await bucket.memory.put(keys.observations_prefix(SPACE) + seen.name, seen.render())


async def allow(bucket: Bucket) -> None:
    key = keys.meta_key(SPACE)
    meta = Meta.parse((await bucket.memory.get(key)).data)
    await bucket.memory.put(key, meta.allowing_web(True).render())


@pytest.fixture
async def furnished(bucket: Bucket) -> Bucket:
    await one_of_each(bucket)
    return bucket


def lines_about(block: str, trust: str) -> list[str]:
    return [line for line in block.splitlines() if f"{trust}.example" in line]


async def test_what_is_told_is_marked_below_an_agents_words_and_the_web_is_not_told(furnished: Bucket) -> None:
    async with prehook(furnished) as here:
        block = (await here.turn(SPACE, Turn(ASKED, "s"))).block
        block += await here.file(SPACE, "s", "/p/src/deploy.py", "/p")

    assert lines_about(block, "web") == []
    for trust in ("imported", "tool"):
        lines = lines_about(block, trust)
        assert lines
        assert all(MARKS[trust] in line for line in lines), lines
    assert not any(mark in line for line in lines_about(block, "user") for mark in MARKS.values())


async def test_a_space_that_allows_the_web_is_told_of_it_with_its_mark(furnished: Bucket) -> None:
    await allow(furnished)
    async with prehook(furnished) as here:
        block = (await here.turn(SPACE, Turn(ASKED, "s"))).block

    lines = lines_about(block, "web")
    assert lines
    assert all(MARKS["web"] in line for line in lines)


async def test_what_comes_with_any_message_is_held_to_the_same(bucket: Bucket) -> None:
    for trust in MARKS:
        await bucket.remember(f"I am {trust}.example", trust=trust, type="identity", importance=1)
    async with prehook(bucket) as here:
        block = (await here.turn(SPACE, Turn("hello", "s"))).block

    assert lines_about(block, "web") == []
    assert [MARKS[trust] in block for trust in ("imported", "tool")] == [True, True]


async def test_a_source_alone_hides_what_another_program_put_there(bucket: Bucket) -> None:
    await bucket.remember(WORDS.format("web"), source="web:evil.example", importance=1)
    async with prehook(bucket) as here:
        assert (await here.turn(SPACE, Turn(ASKED, "s"))).block == ""


async def test_a_pair_that_contradicts_is_told_only_of_what_may_be_told(bucket: Bucket) -> None:
    old = await bucket.remember("We deploy with Ansible")
    old_id = old.rpartition("/")[2]
    await bucket.remember("We deploy with Terraform", trust="web", links={"contradicts": [old_id]})
    async with prehook(bucket) as here:
        block = (await here.turn(SPACE, Turn("how do we deploy?", "s"))).block

    assert "Ansible" in block
    assert "Terraform" not in block


async def test_a_search_shows_all_and_marks_it(furnished: Bucket) -> None:
    async with furnished.mount() as here:
        await here.indexed()
        answer = await here.recall.ask(f"in:all {ASKED}", (SPACE,), limit=40)
    shown = page(answer.query, answer.found, [hit.record.key for hit in answer.found.hits], budget=10_000)

    for hit in answer.found.hits:
        at = shown.index(f"<{hit.record.key}>")
        about = shown[at:].split("\n")[1]
        assert hit.record.trust.mark in about
    assert {hit.record.trust for hit in answer.found.hits} >= {Trust.WEB, Trust.TOOL, Trust.IMPORTED}


async def test_the_page_of_a_session_that_begins_is_held_to_the_same(bucket: Bucket) -> None:
    await one_of_each(bucket, "identity")
    for trust in MARKS:
        await bucket.remember(f"learn {trust}.example", keys.GOALS, trust=trust)
    summary = Summary("s-1", START, request="Go to web.example", trust="web")
    await bucket.memory.put(keys.session_key(SPACE, "s-1", keys.SUMMARY), summary.render())
    pages = ContextPages(Replica(bucket.memory, listing_ttl=0.0), bucket.clock)
    shown = await pages.page(SPACE)

    assert lines_about(shown, "web") == []
    for trust in ("imported", "tool"):
        told = [line for line in lines_about(shown, trust) if not line.startswith("#")]
        assert told
        assert all(MARKS[trust] in line for line in told)
    assert "; from tool output" in shown, "what was observed has no higher class than the least of the lines"

    await allow(bucket)
    shown = await pages.page(SPACE)
    assert lines_about(shown, "web"), "the page changes with the choice"
    assert all("from the web" in line for line in lines_about(shown, "web") if not line.startswith("- Asked"))
    assert "## Last session (2026-02-20, from the web)" in shown


async def test_each_half_of_a_pair_has_its_own_mark(bucket: Bucket) -> None:
    old = await bucket.remember("We deploy with Ansible", trust="tool")
    await bucket.remember("We deploy with Terraform", links={"contradicts": [old.rpartition("/")[2]]})
    async with prehook(bucket) as here:
        block = (await here.turn(SPACE, Turn("how do we deploy?", "s"))).block

    assert "We deploy with Ansible (from tool output); " in block
    assert "Terraform (" not in block
