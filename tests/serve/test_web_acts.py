"""What somebody does on a page: what it writes, who may, and how it is taken back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from web_site import ALPHA, BETA, MEMORY, NOTE, OF_ALPHA, READER, Browser, Page, opened, put

from livememfs.app import App
from livememfs.cache.changes import Change
from livememfs.memories import storing
from livememfs.records import keys
from livememfs.records.access import EVERYTHING, Access
from livememfs.records.memory import Memory
from livememfs.records.note import Note
from livememfs.records.trust import Trust, trust_of
from livememfs.serve.web import Site

WRITER = Access("me", frozenset({"read", "write"}))
NOTE_PAGE, MEMORY_PAGE = f"/s/alpha/note/{NOTE}", f"/s/alpha/memory/memories/{MEMORY}"
NOTE_KEY, MEMORY_KEY = keys.live_key(ALPHA, NOTE), f"{ALPHA}/memories/{MEMORY}"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[tuple[App, Site]]:
    async with opened(tmp_path) as app_and_site:
        yield app_and_site


@pytest.fixture
def app(world: tuple[App, Site]) -> App:
    return world[0]


@pytest.fixture
def site(world: tuple[App, Site]) -> Site:
    return world[1]


@pytest.fixture
def browser(site: Site) -> Browser:
    return Browser(site, WRITER)


async def saw(browser: Browser, page: str) -> str:
    """The version that a form was made for."""
    fields = Page(await browser.get(page)).all("input")
    return next(field["value"] or "" for field in fields if field.get("name") == "saw")


async def act(browser: Browser, page: str, **data: str) -> str:
    """Send a form; returns the page that it leads to."""
    return str((await browser.post(page, **data)).headers["location"])


async def undo(browser: Browser, where: str, status: int = 303) -> str:
    """Press Undo on the page that an act led to."""
    fields = Page(await browser.get(where)).all("input")
    act_of = next(field["value"] or "" for field in fields if field.get("name") == "act")
    return str((await browser.post("/undo", status, act=act_of)).headers.get("location", ""))


async def note(app: App, key: str = NOTE_KEY) -> Note:
    return Note.parse((await app.replica.read(key)).data, path=key, name=key.rpartition("/")[2])


async def memory(app: App, key: str = MEMORY_KEY) -> Memory:
    collection, _, name = key.partition("/")[2].partition("/")
    return Memory.parse((await app.replica.read(key)).data, path=key, collection=collection, name=name)


async def is_there(app: App, key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return name in (await app.replica.names.listing(f"{folder}/")).objects


# --- notes --------------------------------------------------------------------------------------------------------


async def test_a_note_is_written_in_the_name_of_the_token_and_taken_back(app: App, browser: Browser) -> None:
    where = await act(browser, "/s/alpha/notes/", text="We **ship**\r\non Friday", category="decision", tags="a, b,a")
    written = next(
        name for name in (await app.replica.names.listing(f"{ALPHA}/live/")).objects if name not in (NOTE, ".keep")
    )

    made = await note(app, keys.live_key(ALPHA, written))
    assert (made.agent, made.category, made.tags) == ("me", "decision", ("a", "b"))
    assert made.body.strip() == "We **ship**\non Friday"
    shown = Page(await browser.get(where))
    assert "The note is written." in shown.text
    assert "We ship on Friday" in shown.text

    assert (await undo(browser, where)).startswith("/s/alpha/notes/")
    assert not await is_there(app, keys.live_key(ALPHA, written))


async def test_what_is_private_in_a_note_is_replaced_and_the_writer_is_told(app: App, browser: Browser) -> None:
    where = await act(browser, "/s/alpha/notes/", text="the door is <private>4711</private> tonight")

    assert "private" in Page(await browser.get(where)).text
    assert "4711" not in await browser.get("/s/alpha/notes/")


async def test_an_edited_note_keeps_its_name_its_time_and_what_the_form_does_not_show(
    app: App, browser: Browser
) -> None:
    was = (await app.replica.read(NOTE_KEY)).data
    version = await saw(browser, f"{NOTE_PAGE}?edit")
    where = await act(browser, NOTE_PAGE, action="save", saw=version, text="It is MySQL", category="insight", tags="db")

    now = await note(app)
    assert (now.body.strip(), now.category, now.tags, now.agent) == ("It is MySQL", "insight", ("db",), "cline")
    assert now.timestamp.year == 2026
    await undo(browser, where)
    assert (await app.replica.read(NOTE_KEY)).data == was


async def test_who_edits_a_note_that_others_have_changed_loses_no_word_and_replaces_none(
    app: App, browser: Browser
) -> None:
    version = await saw(browser, f"{NOTE_PAGE}?edit")
    await act(browser, NOTE_PAGE, action="save", saw=version, text="theirs")
    answer = await browser.post(NOTE_PAGE, 409, action="save", saw=version, text="mine", category="todo", tags="x")
    shown = Page(answer.text)

    assert "Somebody has changed it meanwhile" in shown.text
    assert "mine" in shown.text
    assert "theirs" in shown.text
    assert (await note(app)).body.strip() == "theirs"
    newer = next(field["value"] or "" for field in shown.all("input") if field.get("name") == "saw")
    await act(browser, NOTE_PAGE, action="save", saw=newer, text="mine")
    assert (await note(app)).body.strip() == "mine"


async def test_a_deleted_note_comes_back_as_it_was(app: App, browser: Browser) -> None:
    stored = await app.replica.read(NOTE_KEY)
    where = await act(browser, NOTE_PAGE, action="delete", saw=await saw(browser, NOTE_PAGE))

    assert not await is_there(app, NOTE_KEY)
    await browser.get(NOTE_PAGE, 404)
    assert unquote(await undo(browser, where)).startswith(NOTE_PAGE)
    again = await app.replica.read(NOTE_KEY)
    assert (again.data, trust_of(again.info.meta, {})) == (stored.data, trust_of(stored.info.meta, {}))
    await undo_is_over(browser, where)


async def undo_is_over(browser: Browser, where: str) -> None:
    assert "Undo" not in Page(await browser.get(where)).words


async def test_a_note_that_changed_since_it_was_shown_is_not_deleted(app: App, browser: Browser) -> None:
    version = await saw(browser, NOTE_PAGE)
    await act(browser, NOTE_PAGE, action="save", saw=version, text="newer")

    await browser.post(NOTE_PAGE, 409, action="delete", saw=version)
    assert (await note(app)).body.strip() == "newer"


async def test_an_undo_does_not_replace_what_came_after(app: App, browser: Browser) -> None:
    where = await act(browser, NOTE_PAGE, action="save", saw="", text="first")
    await act(browser, NOTE_PAGE, action="save", saw="", text="second")

    await undo(browser, where, 409)
    assert (await note(app)).body.strip() == "second"
    where = await act(browser, "/s/alpha/notes/", text="a third one")
    await app.replica.uploaded()
    [written] = set((await app.replica.names.listing(f"{ALPHA}/live/")).objects) - {NOTE, ".keep"}
    await act(browser, f"/s/alpha/note/{written}", action="save", saw="", text="theirs")
    await undo(browser, where, 409)
    assert (await note(app, keys.live_key(ALPHA, written))).body.strip() == "theirs"


async def test_an_empty_note_is_refused(app: App, browser: Browser) -> None:
    await browser.post("/s/alpha/notes/", 400, text=" \r\n")
    await browser.post(NOTE_PAGE, 400, action="save", text="  ")
    await browser.post(NOTE_PAGE, 400, action="burn", text="x")
    assert "Postgres" in (await note(app)).body


async def test_an_act_is_told_to_the_kernel(app: App, browser: Browser) -> None:
    """A mount beside the page would go on showing what it knows of a file."""
    told: list[Change] = []
    app.replica.changes.subscribe(told.append)
    where = await act(browser, NOTE_PAGE, action="save", saw="", text="changed")
    await undo(browser, where)
    where = await act(browser, NOTE_PAGE, action="delete")
    await undo(browser, where)
    where = await act(browser, MEMORY_PAGE, action="save", text="changed")
    where = await act(browser, MEMORY_PAGE, action="forget")
    await undo(browser, where)

    assert len(told) >= 7
    assert [change.key for change in told if change.by_caller] == []


# --- memories -----------------------------------------------------------------------------------------------------


async def test_a_memory_is_added_with_what_the_form_says(app: App, browser: Browser) -> None:
    given = {"type": "preference", "importance": "0.9", "subjects": "Maria, tea", "until": "7d"}
    where = await act(browser, "/s/alpha/memories/", **{"in": "memories"}, text="Maria likes tea.", **given)
    names = (await app.replica.names.listing(f"{ALPHA}/memories/")).objects
    name = next(name for name in names if "preference" in name)

    made = await memory(app, f"{ALPHA}/memories/{name}")
    assert (made.type, made.importance, made.subjects) == ("preference", 0.9, ("Maria", "tea"))
    assert made.expires_at is not None
    assert "Remembered." in Page(await browser.get(where)).text
    await undo(browser, where)
    assert not await is_there(app, f"{ALPHA}/memories/{name}")


async def test_a_goal_has_the_category_of_the_form(app: App, browser: Browser) -> None:
    await act(browser, "/s/alpha/memories/", **{"in": "goals"}, text="Understand tides.", category="understanding")
    [name] = [name for name in (await app.replica.names.listing(f"{ALPHA}/goals/")).objects if name.endswith(".md")]

    assert (await memory(app, f"{ALPHA}/goals/{name}")).category == "understanding"
    assert "Understand tides." in Page(await browser.get("/s/alpha/memories/?in=goals")).text


BAD_FIELDS = ({"importance": "2"}, {"until": "someday"}, {"type": "secret"}, {"in": "bank"}, {"text": " "})


async def test_a_memory_that_cannot_be_is_refused(app: App, browser: Browser) -> None:
    before = set((await app.replica.names.listing(f"{ALPHA}/memories/")).objects)
    for bad in BAD_FIELDS:
        await browser.post("/s/alpha/memories/", 404 if "in" in bad else 400, **{"in": "memories", "text": "x", **bad})

    assert set((await app.replica.names.listing(f"{ALPHA}/memories/")).objects) == before


async def test_an_edited_memory_has_a_history_and_is_taken_back(app: App, browser: Browser) -> None:
    was = await memory(app)
    version = await saw(browser, f"{MEMORY_PAGE}?edit")
    where = await act(
        browser, MEMORY_PAGE, action="save", saw=version, text="David likes coffee.", type="preference",
        importance="0.5", subjects="David", until="", links="",
    )  # fmt: skip

    now = await memory(app)
    assert (now.content.strip(), now.type, now.importance, now.subjects) == (
        "David likes coffee.", "preference", 0.5, ("David",),
    )  # fmt: skip
    assert now.created_at == was.created_at
    assert now.updated_at > was.updated_at
    shown = Page(await browser.get(where)).text
    assert "What it said before" in shown
    assert "David likes tea." in shown
    await undo(browser, where)
    assert (await memory(app)).content == was.content


async def test_a_memory_gets_an_end_and_its_name_and_an_undo_give_both_back(app: App, browser: Browser) -> None:
    where = await act(browser, MEMORY_PAGE, action="save", saw="", text="For a week.", until="7d", links="")

    names = [name for name in (await app.replica.names.listing(f"{ALPHA}/memories/")).objects if name.endswith(".md")]
    assert len(names) == 1
    assert "_until_" in names[0]
    assert "For a week." in await browser.get(where)
    assert "For a week." in Page(await browser.get(MEMORY_PAGE)).text, "it is found by its id as before"
    await undo(browser, where)
    assert await is_there(app, MEMORY_KEY)
    assert not await is_there(app, f"{ALPHA}/memories/{names[0]}")


async def test_links_are_edited_and_shown_from_both_ends(app: App, browser: Browser) -> None:
    other = "20260103T000000_fact_00000001"
    await put(app, f"{ALPHA}/memories/{other}.md", "---\ntype: fact\n---\nTea is from Assam.\n")
    await act(browser, MEMORY_PAGE, action="save", saw="", text="David likes tea.", links=f"related_to {other}\n")

    assert (await memory(app)).links == (("related_to", other),)
    assert "related to Tea is from Assam." in Page(await browser.get(MEMORY_PAGE)).text
    there = Page(await browser.get(f"/s/alpha/memory/memories/{other}")).text
    assert "is related to of David likes tea." in there
    await browser.post(MEMORY_PAGE, 400, action="save", text="x", links="somehow related")


async def test_a_forgotten_memory_comes_back_by_undo_and_from_the_list(app: App, browser: Browser) -> None:
    where = await act(browser, MEMORY_PAGE, action="forget")
    assert not await is_there(app, MEMORY_KEY)
    await undo(browser, where)
    assert await is_there(app, MEMORY_KEY)

    await act(browser, MEMORY_PAGE, action="forget")
    listed = Page(await browser.get("/s/alpha/memories/?forgotten="))
    assert "David likes tea." in listed.text
    [id_of] = [field["value"] or "" for field in listed.all("input") if field.get("name") == "id"]
    await act(browser, "/s/alpha/memories/", **{"in": "memories"}, action="restore", id=id_of)
    assert await is_there(app, MEMORY_KEY)
    assert not [old for old in await storing.forgotten(app.replica, ALPHA, "memories") if old.memory.forgotten]


async def test_an_edit_on_a_page_raises_no_trust(app: App, browser: Browser) -> None:
    """A token may be an agent's: the words it writes are never those of the user."""
    await put(app, MEMORY_KEY, "---\ntype: fact\ntrust: web\n---\nFrom a page.\n")
    await act(browser, MEMORY_PAGE, action="save", text="---\ntrust: user\n---\nFrom a page.", links="")
    stored = await app.replica.read(MEMORY_KEY)

    assert trust_of(stored.info.meta, (await memory(app)).said_of_trust) is Trust.WEB


# --- the bank, rules and runs -------------------------------------------------------------------------------------


async def test_a_bank_file_is_mended_by_a_run_that_is_taken_back(app: App, site: Site) -> None:
    admin, page = Browser(site), "/s/alpha/bank/decisions.md"
    version = await saw(admin, f"{page}?view=edit")
    where = await act(admin, page, action="save", saw=version, text="# Decisions\n\nS4 it is.")

    assert (await app.replica.read(keys.bank_key(ALPHA, "decisions.md"))).data == b"# Decisions\n\nS4 it is.\n"
    assert "run 1" in Page(await admin.get("/s/alpha/bank/")).text
    assert "S4 it is." in Page(await admin.get("/s/alpha/consolidation/1")).text
    await admin.post(page, 409, action="save", saw=version, text="late")
    await undo(admin, where)
    assert (await app.replica.read(keys.bank_key(ALPHA, "decisions.md"))).data == b"# Decisions\n\nS3 it is.\n"


async def test_only_an_administrator_mends_a_bank_and_seals_rules(app: App, browser: Browser, site: Site) -> None:
    await browser.post("/s/alpha/bank/decisions.md", 403, action="save", text="x")
    await browser.post("/s/alpha/about", 403, text="# Rules\n")
    await browser.post("/s/alpha/bank/", 403, action="repair")
    await act(Browser(site), "/s/alpha/bank/decisions.md", action="save", text="mended")
    await browser.post("/s/alpha/consolidation", 403, action="undo", run="1")
    assert "Edit" not in Page(await browser.get("/s/alpha/about")).words


async def test_rules_are_sealed_and_the_former_ones_come_back(app: App, site: Site) -> None:
    admin = Browser(site)
    await act(admin, "/s/alpha/about", text="# Rules\n\n- `facts.md`: what is known\n")
    where = await act(admin, "/s/alpha/about", text="# Rules\n\n- `people.md`: who is who\n")
    assert "people.md" in Page(await admin.get("/s/alpha/about")).text
    await undo(admin, where)
    assert "facts.md" in Page(await admin.get("/s/alpha/about")).text


async def test_odd_names_are_shown_to_who_may_mend_them(app: App, site: Site) -> None:
    await put(app, keys.bank_key(ALPHA, "zero\u200bwidth.md"), "hidden\n")
    admin = Browser(site)
    assert "becomes zerowidth.md" in Page(await admin.get("/s/alpha/bank/")).text
    await act(admin, "/s/alpha/bank/", action="repair")

    assert "zerowidth.md" in Page(await admin.get("/s/alpha/bank/")).text
    assert "becomes" not in Page(await admin.get("/s/alpha/bank/")).text


async def test_a_run_is_shown_with_its_notes_and_taken_back(app: App, browser: Browser) -> None:
    await app.consolidations.run_once(ALPHA)
    shown = Page(await browser.get("/s/alpha/consolidation/1"))
    assert "We chose the queue of Postgres." in shown.text
    assert any(line.get("class") == "add" for line in shown.all("div"))
    taken = Page(await browser.get(f"/s/alpha/consolidation/1/note/{NOTE}"))
    assert "We chose the queue of Postgres ." in taken.text

    await act(browser, "/s/alpha/consolidation", action="undo", run="1")
    assert await is_there(app, NOTE_KEY)
    assert "taken back" in Page(await browser.get("/s/alpha/consolidation")).text
    await browser.post("/s/alpha/consolidation", 404, action="undo", run="77")


async def test_the_sources_of_a_bank_file_lead_to_the_notes_as_they_were(app: App, browser: Browser) -> None:
    await app.consolidations.run_once(ALPHA)
    found = 0
    for link in Page(await browser.get("/s/alpha/bank/")).all("a"):
        if re.fullmatch(r"/s/alpha/bank/.+\.md", link.get("href") or ""):
            why = Page(await browser.get(f"{link['href']}?view=why"))
            for href in [one["href"] or "" for one in why.all("a") if "/note/" in (one.get("href") or "")]:
                assert "We chose the queue" in await browser.get(href)
                found += 1
    assert found


# --- who may ------------------------------------------------------------------------------------------------------

ACTS = {
    "/s/alpha/notes/": {"text": "x"},
    NOTE_PAGE: {"action": "delete"},
    "/s/alpha/memories/": {"in": "memories", "text": "x"},
    MEMORY_PAGE: {"action": "forget"},
    "/s/alpha/bank/": {"action": "repair"},
    "/s/alpha/bank/decisions.md": {"action": "delete"},
    "/s/alpha/consolidation": {"action": "undo", "run": "1"},
    "/s/alpha/about": {"text": "x"},
}


async def test_who_only_reads_or_does_not_see_a_space_changes_nothing(app: App, site: Site) -> None:
    async def kept() -> list[str]:
        """Without the beacon, which tells of what was made before the test."""
        walked = await app.replica.names.walk(f"{ALPHA}/")
        return [info.etag for info in walked if f"/{keys.CHANGES}/" not in info.key]

    before = await kept()
    for page, data in ACTS.items():
        await Browser(site, READER).post(page, 403, **data)
        await Browser(site, None).post(page, 401, **data)
        elsewhere = Access("other", frozenset({"read", "write", "admin"}), (BETA,))
        await Browser(site, elsewhere).post(page, 404, **data)

    assert await kept() == before


async def test_an_act_is_taken_back_only_by_who_may_write_in_its_space(app: App, site: Site) -> None:
    where = await act(Browser(site, WRITER), NOTE_PAGE, action="delete")
    act_of = where.rpartition("did=")[2]

    assert "Undo" not in Page(await Browser(site, READER).get(where)).words
    await Browser(site, READER).post("/undo", 403, act=act_of)
    elsewhere = Access("other", frozenset({"read", "write"}), (BETA,))
    await Browser(site, elsewhere).post("/undo", 404, act=act_of)
    assert "is deleted" not in await Browser(site, elsewhere).get(f"/s/beta/?did={act_of}")
    await Browser(site, OF_ALPHA).post("/undo", act=act_of)
    assert await is_there(app, NOTE_KEY)
    await Browser(site, EVERYTHING).post("/undo", 404, act=act_of)


async def test_acts_that_nobody_takes_back_are_forgotten(site: Site, browser: Browser, monkeypatch: Any) -> None:
    monkeypatch.setattr("livememfs.serve.web.acts.KEPT", 2)
    first = await act(browser, "/s/alpha/notes/", text="one")
    for _ in range(2):
        await act(browser, "/s/alpha/notes/", text="more")

    await browser.post("/undo", 404, act=first.rpartition("did=")[2])


# --- addresses ----------------------------------------------------------------------------------------------------

ODD_NAMES = ["a b.md", "what?.md", "50%.md", "#1.md", "é.md", "+&=.md", "a\nb.md", "..md.md", "run 1.md", "%2e.md"]


async def test_every_name_of_a_file_has_an_address(app: App, browser: Browser) -> None:
    """What a list links to is there, for notes, memories and files of the bank."""
    tried = 0
    for folder, page in (("live", "/s/alpha/notes/"), ("memories", "/s/alpha/memories/"), ("bank", "/s/alpha/bank/")):
        names = [
            name for name in ODD_NAMES if keys.parse(f"{ALPHA}/{folder}/{name}").kind in ("note", "memory", "bank")
        ]
        for name in names:
            await put(app, f"{ALPHA}/{folder}/{name}", f"what {name!a} says\n")
        links = [link.get("href") or "" for link in Page(await browser.get(page)).all("a")]
        for name in names:
            [mine] = {href for href in links if unquote(href).endswith(f"/{name}")}
            assert f"what {name!a} says" in Page(await browser.get(mine)).text, f"{page} {name!r}"
            tried += 1
    assert tried > 2 * len(ODD_NAMES)


async def test_an_observation_has_its_name_its_id_and_its_file_name_as_addresses(browser: Browser) -> None:
    for given in ("0badcafe", "20260102T030405_bugfix_0badcafe", "20260102T030405_bugfix_0badcafe.md"):
        assert "A lock was missing" in await browser.get(f"/s/alpha/observations/{given}")
