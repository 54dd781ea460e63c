"""Each page of the live page: what it shows, to whom, and what it answers when something is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import pytest
import trio
from web_site import ALPHA, BETA, MEMORY, MOMENT, NOTE, OF_ALPHA, READER, SECRET, Browser, Page, note, opened, put

from livememfs import errors
from livememfs.app import App
from livememfs.records import keys
from livememfs.records.access import NOTHING, Access
from livememfs.records.ledger import Entry, NoteEntry, Write
from livememfs.records.proposal import Proposal, key_of
from livememfs.runs import held
from livememfs.serve.headers import CONTENT_SECURITY_POLICY
from livememfs.serve.web import Site
from livememfs.text.outgoing import Outgoing

PAGES = {
    "/": "the first",
    "/?part=spaces": "2 files",
    "/search": "Type a question",
    "/search?q=queue": "queue",
    "/feed": "We chose the queue of Postgres .",
    "/feed?space=alpha&kind=observations": "A lock was missing",
    "/settings": "Settings",
    "/s/alpha/": "We chose the queue of Postgres .",
    "/s/alpha/?kind=summaries": "make it fast",
    "/s/alpha/?agent=cline": "We chose the queue of Postgres .",
    "/s/alpha/notes/": "1 note waiting",
    f"/s/alpha/note/{NOTE}": "We chose the queue of Postgres .",
    f"/s/alpha/note/{NOTE}?edit": "We chose the queue of **Postgres**.",
    "/s/alpha/memories/": "David likes tea.",
    "/s/alpha/memories/?in=goals": "Nothing is remembered in goals/ .",
    "/s/alpha/memories/?forgotten=": "Nothing was forgotten in memories/ .",
    f"/s/alpha/memory/memories/{MEMORY}?edit": "David likes tea.",
    "/s/alpha/about": "None are sealed yet",
    "/s/alpha/about?edit": "They say which files the bank has",
    "/s/alpha/bank/decisions.md?view=edit": "S3 it is.",
    "/s/alpha/bank/": "deep/er.md",
    "/s/alpha/bank/decisions.md": "S3 it is.",
    "/s/alpha/bank/deep/er.md": "below",
    "/s/alpha/bank/decisions.md?view=source": "# Decisions",
    "/s/alpha/bank/decisions.md?view=changes": "Runs that wrote this file",
    "/s/alpha/bank/decisions.md?view=why": "Where bank/decisions.md comes from",
    "/s/alpha/search?q=queue": "queue",
    "/s/alpha/sessions/": "why is it slow?",
    "/s/alpha/sessions/s-1": "make it fast",
    "/s/alpha/observations/": "A lock was missing",
    "/s/alpha/observations/0badcafe": "Two writers met.",
    "/s/alpha/observations/0badcafe?": "found out for about 12,345 tokens",
    f"/s/alpha/memory/memories/{MEMORY}": "David likes tea.",
    "/s/alpha/proposals": "Nothing waits.",
    "/s/alpha/audit": "Never told, the oldest first",
    "/s/alpha/consolidation": "Dry run",
    "/s/alpha/consolidation?part=run": "No run since the mount.",
}
MISSING = (
    "/s/nobody/",
    "/s/alpha/what",
    "/s/alpha/note/nothing.md",
    "/s/alpha/note/..%2f_meta.json",
    "/s/alpha/note/%2e%2e",
    "/s/alpha/bank/nothing.md",
    "/s/alpha/bank/../_meta.json",
    "/s/alpha/bank/%2e%2e/_meta.json",
    "/s/alpha/bank/..%2f..%2fbeta/bank/hidden.md",
    "/s/alpha/bank/deep/%2e%2e/decisions.md",
    "/s/alpha/bank//decisions.md",
    "/s/alpha/bank/deep",
    "/s/alpha/bank/.keep",
    "/s/alpha/bank/decisions.md?view=other",
    "/s/alpha/bank/decisions.md?view=changes&from=99",
    "/s/alpha/bank/decisions.md?view=changes&to=../1",
    "/s/alpha/sessions/nobody",
    "/s/alpha/sessions/%2e%2e",
    "/s/alpha/observations/ffffffff",
    "/s/alpha/memory/bank/decisions.md",
    "/s/alpha/memory/memories/..%2f_meta.json",
    "/s/alpha/memories/?in=bank",
    "/s/alpha/?kind=everything",
    "/s/alpha/consolidation/99",
    "/s/alpha/consolidation/x",
    f"/s/alpha/consolidation/1/note/{NOTE}",
    "/feed?space=nobody",
    f"/s/alpha/memory/memories/{MEMORY}x",
    "/s/_system/",
    "/static/other.js",
    "/nothing",
    "/s/",
    "/static/..%2fsite.py",
)


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
    return Browser(site)


# --- what is shown ------------------------------------------------------------------------------------------------


async def test_every_page_shows_what_it_is_about_and_may_be_framed_and_scripted_by_nobody(browser: Browser) -> None:
    for address, words in PAGES.items():
        answer = await browser.ask("GET", address)

        assert answer.status_code == 200, f"{address}: {answer.text}"
        shown = Page(answer.text)
        assert words in shown.text, f"{address}: {shown.text}"
        assert shown.dangers() == []
        expect_headers(answer)


def expect_headers(answer: httpx.Response) -> None:
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_what_is_not_there_is_a_page_that_says_so(browser: Browser) -> None:
    """Also what is there and no page's business: a path cannot leave the folder it begins in."""
    for address in MISSING:
        answer = await browser.ask("GET", address)

        assert answer.status_code == 404, f"{address}: {answer.status_code} {answer.text}"
        assert "Not found" in answer.text, address
        assert "space_id" not in answer.text
        expect_headers(answer)


async def test_no_page_is_shown_without_an_access(site: Site) -> None:
    for address in PAGES:
        text = await Browser(site, None).get(address, 401)
        assert "A valid token is needed" in text
    await Browser(site, None).post("/s/alpha/consolidation", 401, action="run")


async def test_a_space_without_its_slash_leads_to_the_space(site: Site) -> None:
    assert (await Browser(site).ask("GET", "/s/alpha")).headers["location"] == "/s/alpha/"
    await Browser(site).get("/s/nobody", 404)


async def test_files_of_the_page_are_named_by_their_content_and_kept(browser: Browser) -> None:
    shown = Page(await browser.get("/"))
    for address in [shown.all("script")[0]["src"], *(link["href"] for link in shown.all("link"))]:
        answer = await browser.ask("GET", address or "")

        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


async def test_the_list_says_what_waits_and_what_is_settled(browser: Browser) -> None:
    shown = Page(await browser.get("/")).text

    assert "alpha the first waiting 1 note bank 2 files consolidated never" in shown
    assert "beta the second waiting 0 notes bank 1 file" in shown


async def test_older_notes_are_on_further_pages(app: App, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livememfs.serve.web.feed.SHOWN", 2)
    for day in range(3, 7):
        await put(app, keys.live_key(ALPHA, f"202601{day:02}T000000_me_todo_0000000{day}.md"), note(f"day {day}"))
    seen, address = [], "/s/alpha/notes/"
    while address:
        shown = Page(await browser.get(address))
        seen += [entry["data-at"] or "" for entry in shown.all("li") if "data-at" in entry]
        more = [link["href"] or "" for link in shown.all("a") if link.get("id") == "older"]
        address = f"/s/alpha/notes/{more[0]}" if more else ""

    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)


async def test_a_note_and_a_bank_file_that_are_no_text_do_not_cost_the_page(app: App, browser: Browser) -> None:
    await put(app, keys.live_key(ALPHA, "20260103T000000_me_todo_00000001.md"), b"\xff\xfe")
    await put(app, keys.bank_key(ALPHA, "binary.bin"), b"\xff\x00\xfe")

    assert "This is not text." in await browser.get("/s/alpha/")
    assert "�" in await browser.get("/s/alpha/bank/binary.bin")


async def test_the_reasons_for_a_rank_are_shown(browser: Browser) -> None:
    shown = Page(await browser.get("/s/alpha/search?q=queue&part=results"))

    assert "#1 words #" in shown.text
    assert "words #1 score" in shown.text
    assert f"/s/alpha/note/{NOTE}" in [link.get("href") for link in shown.all("a")]
    assert shown.all("main") == []


async def test_a_search_of_all_spaces_is_of_those_that_are_seen(app: App, site: Site) -> None:
    await put(app, keys.live_key(BETA, "20260103T000000_me_todo_00000001.md"), note("the queue of beta"))

    assert "the queue of beta" in Page(await Browser(site).get("/search?q=queue")).text
    assert "of beta" not in Page(await Browser(site, OF_ALPHA).get("/search?q=queue")).text


# --- the bank as it was -------------------------------------------------------------------------------------------


async def test_what_a_run_changed_is_shown_with_signs_and_where_it_came_from(app: App, browser: Browser) -> None:
    await app.consolidations.run_once(ALPHA)
    pages = {name: await browser.get(f"/s/alpha/bank/{name}?view=changes") for name in await bank_names(browser)}
    name, text = next(item for item in pages.items() if "We chose the queue" in item[1])
    changed = Page(text)

    assert "+++ run 1" in changed.text
    assert any(line.get("class") == "add" for line in changed.all("div"))
    assert NOTE in Page(await browser.get(f"/s/alpha/bank/{name}?view=why")).text
    assert "Nothing changed" in await browser.get(f"/s/alpha/bank/{name}?view=changes&from=1&to=now")


async def bank_names(browser: Browser) -> list[str]:
    links = [link.get("href") or "" for link in Page(await browser.get("/s/alpha/bank/")).all("a")]
    return [
        link.removeprefix("/s/alpha/bank/") for link in links if link.startswith("/s/alpha/bank/") and link[-1] != "/"
    ]


# --- runs ---------------------------------------------------------------------------------------------------------


async def until_ended(app: App) -> dict[str, Any]:
    with trio.fail_after(20):
        async for value in app.consolidations.wait(ALPHA):
            last = value
    return last


async def test_a_dry_run_shows_what_would_change_and_changes_nothing(app: App, browser: Browser) -> None:
    answer = await browser.post("/s/alpha/consolidation", action="dry")
    assert answer.headers["location"] == "/s/alpha/consolidation"
    assert (await until_ended(app))["state"] == "ok"

    shown = Page(await browser.get("/s/alpha/consolidation"))
    assert "What it would change" in shown.text
    assert any(line.get("class") == "add" for line in shown.all("div"))
    assert "1 note waiting" in shown.text


async def test_a_run_can_be_started_and_its_figures_read(app: App, browser: Browser) -> None:
    await browser.post("/s/alpha/consolidation", action="run")
    assert (await until_ended(app))["state"] == "ok"

    shown = Page(await browser.get("/s/alpha/consolidation")).text
    assert "1 notes taken in" in shown
    assert "run 1 consolidation" in shown
    assert "0 notes waiting" in shown


async def test_a_held_run_is_shown_with_what_it_would_drop_and_accepted_by_a_button(app: App, browser: Browser) -> None:
    [old] = [
        info for info in await app.replica.names.walk(keys.bank_prefix(ALPHA)) if info.key.endswith("decisions.md")
    ]
    entry = Entry(
        number=1,
        space=ALPHA,
        state="held",
        committed_at=MOMENT,
        writes=(Write("bank/decisions.md", old.etag, "# Decisions\n", was="# Decisions\n\nS3 it is.\n"),),
        outgoing=(Outgoing("decisions.md", "S3 it is.", "dropped", reason="<b>told to</b>"),),
        held=("it would drop all that decisions.md says",),
    )
    await held.keep(app.replica, entry)

    shown = Page(await browser.get("/s/alpha/consolidation"))
    assert "Run 1 is held" in shown.text
    assert "decisions.md : S3 it is. <b>told to</b>" in shown.text
    assert "Accept this plan" not in Page(await Browser(browser.site, READER).get("/s/alpha/consolidation")).text

    await browser.post("/s/alpha/consolidation", action="accept", run="1")

    assert (await until_ended(app))["state"] == "ok"
    assert (await app.replica.read(keys.bank_key(ALPHA, "decisions.md"))).data == b"# Decisions\n"
    assert "is held" not in Page(await browser.get("/s/alpha/consolidation")).text


async def test_a_run_that_goes_on_shows_how_far_it_is(
    app: App, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = {"space": ALPHA, "run": 1, "phase": "asking", "elapsed_seconds": 2.5, "queued": 0}
    for more, words in (
        ({"state": "queued", "dry_run": False, "last": None, "queued": 2}, "asking, 2 more queued"),
        ({"state": "running", "dry_run": True, "notes": 3, "last": None}, "dry run, asking, 3 notes"),
    ):
        monkeypatch.setattr(app.consolidations, "status", lambda *_, more=more: {**going, **more})
        assert words in Page(await browser.get("/s/alpha/consolidation")).text


async def test_a_run_that_failed_says_why(app: App, browser: Browser) -> None:
    await put(app, keys.rules_key(ALPHA), b"\xff")
    assert (await app.consolidations.run_once(ALPHA)).state == "error"

    assert "is not UTF-8 text" in Page(await browser.get("/s/alpha/consolidation")).text


@pytest.mark.filterwarnings("ignore:Async generator 'httpx2:ResourceWarning")  # the client's, of a body not read whole
async def test_nothing_else_can_be_asked_for(browser: Browser) -> None:
    for action in ("", "undo", "dry "):
        await browser.post("/s/alpha/consolidation", 400, action=action)
    await browser.post("/s/alpha/consolidation", 400, action="run", more="x" * 10_000)


# --- who sees what ------------------------------------------------------------------------------------------------


async def test_who_only_reads_has_no_buttons_and_is_refused(app: App, site: Site) -> None:
    reader = Browser(site, READER)

    reading = [page for page in PAGES if not page.endswith(("edit", "/settings"))]
    for page in reading:
        posts = [form for form in Page(await reader.get(page)).all("form") if form.get("method") == "post"]
        assert [form["action"] for form in posts] == ([] if "part=" in page else ["/logout"]), page
    for page in {*PAGES} - {*reading}:
        await reader.get(page, 403)
    answer = await reader.post("/s/alpha/consolidation", 403, action="run")
    assert "has no permission to write" in answer.text
    assert app.consolidations.status(ALPHA)["state"] == "idle"


async def test_a_space_outside_of_the_access_is_as_one_that_is_not_there(site: Site) -> None:
    browser = Browser(site, OF_ALPHA)
    for page in ("", "bank/", "bank/hidden.md", "search?q=x", "sessions/", "observations/", "consolidation"):
        outside, nowhere = await browser.get(f"/s/{BETA}/{page}", 404), await browser.get(f"/s/gamma/{page}", 404)
        assert outside.replace(BETA, "gamma") == nowhere
    await browser.post(f"/s/{BETA}/consolidation", 404, action="run")
    shown = Page(await browser.get("/")).text
    assert "the first" in shown
    assert BETA not in shown
    assert "There is no space here yet" in await Browser(site, NOTHING).get("/")


async def test_errors_and_conflicts_are_told_to_who_sees_their_space(app: App, site: Site) -> None:
    app.errors.record("write", f"{ALPHA}/live/a", errors.NotText(path=f"{ALPHA}/live/a"))
    app.errors.record("write", f"{BETA}/live/b", errors.NotText(path=f"{BETA}/live/b"))
    app.errors.record("mount", "somewhere", errors.TimedOut("it"))
    app.errors.conflict(f"{BETA}/f", f"{BETA}/f.conflict-x", "changed by another host meanwhile")

    everything, some = await Browser(site).get("/"), await Browser(site, OF_ALPHA).get("/")
    for path in (f"{ALPHA}/live/a", f"{BETA}/live/b", "somewhere", f"{BETA}/f.conflict-x"):
        assert path in everything
        assert (path in some) == path.startswith(ALPHA)


# --- signing in ---------------------------------------------------------------------------------------------------


async def test_a_good_token_is_kept_where_no_script_and_no_other_site_has_it(site: Site) -> None:
    answer = await Browser(site, None).post("/login", token=f" {SECRET} ", next="/s/alpha/")

    assert answer.headers["location"] == "/s/alpha/"
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(f"livememfs_token={SECRET.lower()};")
    for word in ("httponly", "samesite=strict", "path=/"):
        assert word in cookie
    assert "domain" not in cookie
    assert SECRET not in answer.text + answer.headers["location"]


@pytest.mark.parametrize("token", ["", "wrong", "x" * 600, "a b", "\x01", "lm_é", SECRET + "\r\nSet-Cookie: x=y"])
async def test_a_token_that_is_none_is_refused_and_not_repeated(site: Site, token: str) -> None:
    answer = await Browser(site, None).post("/login", 401, token=token)

    assert "set-cookie" not in answer.headers
    assert "is not valid" in answer.text
    assert not token or token not in answer.text.replace("&#39;", "'")


@pytest.mark.parametrize(
    "further", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x", "/\r\nA: b"]
)
async def test_signing_in_leads_to_no_other_site(site: Site, further: str) -> None:
    answer = await Browser(site, None).post("/login", token=SECRET, next=further)

    assert answer.headers["location"] == "/"
    form = Page(await Browser(site, None).get("/login?next=//evil.example"))
    assert "evil" not in "".join(field.get("value") or "" for field in form.all("input"))


async def test_signing_out_forgets_the_token(site: Site) -> None:
    answer = await Browser(site, None).post("/logout")

    assert answer.headers["location"] == "/login"
    assert 'livememfs_token=""' in answer.headers["set-cookie"]
    assert "Max-Age=0" in answer.headers["set-cookie"]


# --- bad days -----------------------------------------------------------------------------------------------------


async def test_a_store_that_fails_is_told_and_its_words_only_to_who_sees_all(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> Any:
        raise errors.Unreachable(endpoint="http://inside.example", detail="refused")

    monkeypatch.setattr(site.context.replica.names, "listing", fail)

    assert "inside.example" in await browser.get("/s/alpha/", 503)
    limited = await Browser(site, OF_ALPHA).get("/s/alpha/", 503)
    assert "inside.example" not in limited
    assert "The store does not answer" in limited


async def test_a_store_that_hangs_costs_the_deadline_and_no_more(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object, **__: object) -> Any:
        await trio.sleep_forever()

    monkeypatch.setattr(site.context.replica.names, "listing", hang)
    site.timeout = 0.05

    with trio.fail_after(5):
        assert "did not answer in time" in await Browser(site).get("/s/alpha/", 503)


@pytest.mark.parametrize("silent", [f"{BETA}/live", f"{BETA}/"])
async def test_a_figure_that_is_not_there_in_time_is_left_open(
    silent: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A space of a slow store is shown all the same, and nothing is said of it that is not known."""
    listing = site.context.replica.names.listing

    async def slow(prefix: str, **options: Any) -> Any:
        if prefix.startswith(silent):
            await trio.sleep_forever()
        return await listing(prefix, **options)

    monkeypatch.setattr(site.context.replica.names, "listing", slow)
    monkeypatch.setattr("livememfs.serve.web.overview.PATIENCE", 0.3)

    assert "beta … waiting … bank … consolidated …" in Page(await Browser(site).get("/")).text


async def test_a_fault_of_ours_is_a_page_without_a_traceback(
    site: Site, expect_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> Any:
        raise KeyError("the inside of it")

    monkeypatch.setattr(site, "space", broken)
    expect_log("a page failed")

    text = await Browser(site).get("/s/alpha/", 500)
    assert "the inside of it" not in text
    assert "Traceback" not in text
    assert site.statistics()["failed"] == 1


async def test_the_site_counts_what_it_answers(site: Site) -> None:
    await Browser(site).get("/")
    await Browser(site).get("/s/nobody/", 404)

    assert site.statistics()["requests"] == 2
    assert site.statistics()["failed"] == 0


# --- what only a person does --------------------------------------------------------------------------------------

PROPOSED = "20260102T030405_fact_0000000a"
WRITER = Access("writer", frozenset({"read", "write"}))


async def propose(app: App, content: str = "We deploy on <b>Fridays</b>.\n") -> None:
    proposal = Proposal(target=f"memories/{PROPOSED}.md", content=content, by="digest 1", why="from a.md", at=MOMENT)
    await put(app, key_of(ALPHA, proposal.name), proposal.render())


@pytest.mark.parametrize(("action", "is_there"), [("accept", True), ("refuse", False)])
async def test_a_proposal_is_shown_with_its_diff_and_decided_by_a_button(
    app: App, browser: Browser, action: str, is_there: bool
) -> None:
    await propose(app)
    shown = Page(await browser.get("/s/alpha/proposals"))
    assert "1 proposal waiting" in shown.text
    assert any(line.get("class") == "add" for line in shown.all("div"))
    assert "We deploy on <b>Fridays</b>." in shown.text

    await browser.post("/s/alpha/proposals", action=action, name=PROPOSED)

    after = Page(await browser.get("/s/alpha/proposals")).text
    assert ("Nothing waits." in after, f"{action}" in after.lower()) == (True, True)
    await browser.get(f"/s/alpha/memory/memories/{PROPOSED}.md", 200 if is_there else 404)


@pytest.mark.parametrize("access", [READER, WRITER])
async def test_who_does_not_administer_decides_nothing(app: App, browser: Browser, access: Access) -> None:
    """An agent may have a token to read and write."""
    await propose(app)
    other = Browser(browser.site, access)
    assert "Accept" not in Page(await other.get("/s/alpha/proposals")).text

    for action in ("accept", "refuse"):
        await other.post("/s/alpha/proposals", 403, action=action, name=PROPOSED)

    assert "1 proposal waiting" in Page(await browser.get("/s/alpha/proposals")).text


async def test_nothing_but_a_decision_on_what_waits_is_taken(app: App, browser: Browser) -> None:
    await browser.post("/s/alpha/proposals", 400, action="", name=PROPOSED)
    for name in ("", PROPOSED, "../_meta", "a/b"):
        await browser.post("/s/alpha/proposals", 404, action="accept", name=name)


TRUST = "/s/alpha/trust"
MEMORY_PAGE, BANK_PAGE = f"/s/alpha/memory/memories/{MEMORY}", "/s/alpha/bank/decisions.md"


VOUCHED = [(MEMORY_PAGE, f"memories/{MEMORY}", "trust {}"), (BANK_PAGE, "bank/decisions.md", "Told as {}.")]


@pytest.mark.parametrize(("address", "key", "said"), VOUCHED)
async def test_a_person_vouches_and_anybody_who_writes_says_that_it_is_from_elsewhere(
    browser: Browser, address: str, key: str, said: str
) -> None:
    writer = Browser(browser.site, WRITER)
    assert "Vouch for it" not in Page(await writer.get(address)).text
    await writer.post(TRUST, key=key, trust="web")
    assert said.format("web") in Page(await browser.get(address)).text
    await writer.post(TRUST, 403, key=key, trust="user")
    await Browser(browser.site, READER).post(TRUST, 403, key=key, trust="web")
    await browser.post(TRUST, 400, key=key, trust="imported")
    assert said.format("web") in Page(await browser.get(address)).text

    await browser.post(TRUST, key=key, trust="user")

    assert said.format("user") in Page(await browser.get(address)).text


@pytest.mark.parametrize(("address", "key", "said"), VOUCHED)
async def test_a_vouch_is_taken_back_to_the_byte_and_a_users_words_become_an_agents(
    app: App, browser: Browser, address: str, key: str, said: str
) -> None:
    before = await app.replica.read(f"{ALPHA}/{key}")
    was = "agent"
    for trust in ("user", "web"):
        where = str((await browser.post(TRUST, key=key, trust=trust)).headers["location"])
        page = Page(await browser.get(where))
        assert said.format(trust) in page.text
        act = next(field["value"] for field in page.all("input") if field.get("name") == "act")
        await Browser(browser.site, WRITER).post("/undo", 403 if trust == "web" else 303, act=str(act))
        if trust == "web":
            await browser.post("/undo", act=str(act))
        assert said.format(was) in Page(await browser.get(address)).text
        assert (await app.replica.read(f"{ALPHA}/{key}")).data == before.data

    await browser.post(TRUST, key=key, trust="user")
    assert "It is an agent's" in Page(await browser.get(address)).text
    await browser.post(TRUST, key=key, trust="agent")
    assert said.format("agent") in Page(await browser.get(address)).text


@pytest.mark.parametrize(("address", "key", "said"), VOUCHED)
async def test_the_undo_of_a_vouch_gives_no_class_to_what_came_after(
    app: App, browser: Browser, address: str, key: str, said: str
) -> None:
    """Otherwise an agent's later words would become the user's."""
    where = str((await browser.post(TRUST, key=key, trust="web")).headers["location"])
    act = next(f["value"] for f in Page(await browser.get(where)).all("input") if f.get("name") == "act")
    await browser.post(address, action="save", text="Something else.", links="")

    await browser.post("/undo", 409, act=str(act))

    assert (await app.replica.read(f"{ALPHA}/{key}")).data.endswith(b"Something else.\n")
    assert said.format("web") in Page(await browser.get(address)).text


async def test_only_a_memory_or_a_file_of_the_bank_is_vouched_for(browser: Browser) -> None:
    for key in ("memories/nothing.md", "live/x.md", "bank/nothing.md", "", "../beta/bank/decisions.md"):
        await browser.post(TRUST, 404, key=key, trust="web")


# --- digests ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("done", ["stored", "proposed"])
async def test_a_digest_is_among_the_runs_with_what_it_stored_and_has_no_undo(
    app: App, browser: Browser, done: str
) -> None:
    """An undo takes back what changed the bank; it is on the newest run that did, also below a digest."""
    await browser.post("/s/alpha/bank/decisions.md", action="save", text="# Decisions\n\nS4 it is.\n")
    evil = "<script>alert(1)</script> tea"
    read = NoteEntry(f"live/{NOTE}", "e", "s", "cline", "2026-01-02T03:04:05Z", evil, used_in=(f"memories/{MEMORY}",))
    digest = Entry(
        number=2, space=ALPHA, state="applied", kind="digest", committed_at=app.clock.now(),
        writes=(Write(f"memories/{MEMORY}", None, f"---\ntype: fact\n---\n{evil}\n"),), keeps=(read,),
        metrics={f"memories_{done}": 1},
    )  # fmt: skip
    await put(app, keys.ledger_key(ALPHA, 2), digest.render())
    await put(app, keys.stored_key(ALPHA, 2), "")

    runs, one = Page(await browser.get("/s/alpha/consolidation")), Page(await browser.get("/s/alpha/consolidation/2"))
    assert f"run 2 digest 1 note, 1 memory {done}" in runs.text
    assert [field["value"] for field in runs.all("input") if field.get("name") == "run"] == ["1"]
    assert f"+{evil}" in one.text
    assert one.dangers() == []
    assert {f"/s/alpha/memory/memories/{MEMORY}", f"/s/alpha/note/{NOTE}"} <= {
        link.get("href") for link in one.all("a")
    }
    assert not [button for button in one.all("button") if button.get("value") == "undo"]
    assert "Undo" in Page(await browser.get("/s/alpha/consolidation/1")).text
    await browser.post("/s/alpha/consolidation", 400, action="undo", run="2")
    assert "Notes digested" in Page(await browser.get("/s/alpha/?kind=runs&type=digest")).text
    assert "Edited by hand" not in Page(await browser.get("/s/alpha/?kind=runs&type=digest")).text
    assert "Edited by hand" in Page(await browser.get("/s/alpha/?kind=runs")).text


# --- the audit ----------------------------------------------------------------------------------------------------


ODD_FILE = 'deep/"wells" & <b>.md'


async def test_an_audit_leads_to_the_pages_of_what_it_found(app: App, browser: Browser) -> None:
    """A memory whose text is HTML, and a section of a bank file whose name is odd: each row is a link that works."""
    evil = MEMORY.replace("0a1b2c3d", "0a1b2c3e")
    await put(app, f"{ALPHA}/memories/{evil}", "---\ntype: fact\n---\n<script>alert(1)</script> & tea\n")
    await put(app, keys.bank_key(ALPHA, ODD_FILE), "# Wells\n\nThree.\n")
    for _ in range(3):
        app.tree.context.uses.told(ALPHA, [(f"{keys.bank_key(ALPHA, ODD_FILE)}#Wells", 40)])
    page = Page(await browser.get("/s/alpha/audit"))
    links = [link["href"] for link in page.all("a") if link.get("class") == "open"]

    assert page.dangers() == []
    assert f"/s/alpha/memory/memories/{evil}" in links
    assert f"/s/alpha/bank/{quote(ODD_FILE)}" in links
    assert "Told 3 times or more, and never used" in page.text
    for href in links:
        await browser.get(str(href))
