"""The feed: what is in it, in which order, what narrows it; times, facets of a search, titles of sessions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_site import ALPHA, BETA, MEMORY, NOTE, OBSERVATION, OF_ALPHA, Browser, Page, note, opened, put

from livememfs.app import App
from livememfs.records import keys
from livememfs.serve.web import Site
from livememfs.serve.web.markdown import plain
from livememfs.serve.web.render import ago
from livememfs.serve.web.search import _facets, _with_filter
from livememfs.serve.web.sessions import MAX_TITLE, title_of

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
LATER = "20260105T000000_cursor_issue_00000005.md"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[tuple[App, Site]]:
    async with opened(tmp_path) as app_and_site:
        yield app_and_site


@pytest.fixture
def app(world: tuple[App, Site]) -> App:
    return world[0]


@pytest.fixture
def browser(world: tuple[App, Site]) -> Browser:
    return Browser(world[1])


async def listed(browser: Browser, address: str) -> list[str]:
    """The keys in a list, with their spaces, as they stand there."""
    cards = Page(await browser.get(address)).all("li")
    return [f"{card['data-space']}/{card['data-key']}" for card in cards if "data-key" in card]


NOTE_KEY, MEMORY_KEY = keys.live_key(ALPHA, NOTE), f"{ALPHA}/memories/{MEMORY}"
OBSERVED, SUMMARY = f"{ALPHA}/observations/{OBSERVATION.name}", keys.session_key(ALPHA, "s-1", keys.SUMMARY)


async def test_the_feed_has_everything_newest_first_of_the_spaces_that_are_seen(app: App, browser: Browser) -> None:
    await put(app, keys.live_key(BETA, LATER), note("of beta"))
    await put(app, f"{ALPHA}/goals/20260106T000000_goal_00000006.md", "---\ntype: goal\n---\nBe quick.\n")
    app.errors.conflict(f"{ALPHA}/f", f"{ALPHA}/f.conflict-x", "changed by another host meanwhile")
    await app.consolidations.run_once(BETA)
    everywhere = await listed(browser, "/feed")

    assert set(everywhere) == {
        SUMMARY, "alpha/conflicts/0", "beta/_ledger/1", "alpha/goals/20260106T000000_goal_00000006.md",
        NOTE_KEY, MEMORY_KEY, OBSERVED,
    }  # fmt: skip
    assert everywhere.index("beta/_ledger/1") < everywhere.index("alpha/goals/20260106T000000_goal_00000006.md")
    assert everywhere.index("alpha/goals/20260106T000000_goal_00000006.md") < everywhere.index(NOTE_KEY)
    assert await listed(browser, "/feed?space=beta") == ["beta/_ledger/1"]
    of_alpha = Browser(browser.site, OF_ALPHA)
    assert not [key for key in await listed(of_alpha, "/feed") if key.startswith(BETA)]
    await of_alpha.get("/feed?space=beta", 404)


async def test_filters_leave_what_fits_and_can_be_combined(app: App, browser: Browser) -> None:
    await put(app, keys.live_key(ALPHA, LATER), note("a fault", agent="cursor", category="issue"))
    for query, found in (
        ("kind=notes", [keys.live_key(ALPHA, LATER), NOTE_KEY]),
        ("kind=observations", [OBSERVED]),
        ("kind=memories", [MEMORY_KEY]),
        ("kind=goals", []),
        ("kind=summaries", [SUMMARY]),
        ("type=issue", [keys.live_key(ALPHA, LATER)]),
        ("type=bugfix", [OBSERVED]),
        ("type=fact&kind=notes", []),
        ("agent=cursor", [keys.live_key(ALPHA, LATER)]),
        ("agent=claude", [OBSERVED]),
        ("tag=concurrency", [OBSERVED]),
        ("tag=a+tag&agent=cline", [NOTE_KEY]),
        ("tag=a+tag&type=issue", [keys.live_key(ALPHA, LATER)]),
        ("tag=nothing", []),
        (f"kind=notes&before={LATER}", [NOTE_KEY]),
        ("kind=notes&before=2026", []),
    ):
        assert await listed(browser, f"/s/alpha/?{query}") == found, query
        words = Page(await browser.get(f"/s/alpha/?{query}")).text
        assert ("Show everything" in words) or found or "before" in query


async def test_a_held_plan_stands_above_the_feed(browser: Browser, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    class Held:
        number, held = 3, ("it would drop much",)

    async def current(*_: Any) -> Any:
        return Held

    monkeypatch.setattr("livememfs.runs.held.current", current)
    assert "held Run 3 it would drop much" in Page(await browser.get("/s/alpha/")).text


async def test_what_has_ended_or_is_forgotten_is_not_shown(app: App, browser: Browser) -> None:
    ended = "20260102T000000_event_00000001_until_20260103T000000.md"
    await put(app, f"{ALPHA}/memories/{ended}", "---\ntype: event\n---\nover\n")
    await put(app, f"{ALPHA}/memories/20260107T000000_fact_00000007.md", "---\nforgotten: true\n---\ngone\n")

    assert await listed(browser, "/s/alpha/?kind=memories") == [MEMORY_KEY]


async def test_sessions_are_called_by_their_first_prompt_and_say_what_they_cost(app: App, browser: Browser) -> None:
    assert "why is it slow?" in Page(await browser.get("/s/alpha/sessions/")).text
    shown = Page(await browser.get("/s/alpha/sessions/s-1")).text
    assert "why is it slow? agent claude" in shown
    assert "0 tokens in and 0 out" in shown


def test_a_title_is_one_line_of_the_first_prompt_that_can_be_read() -> None:
    lines = ["", "{", json.dumps({"prompt": "one\ntwo  three " + "x" * 500}), json.dumps({"prompt": "next"})]
    title = title_of("\n".join(lines).encode())

    assert title.startswith("one two three xxx")
    assert title.endswith("…")
    assert len(title) == MAX_TITLE
    assert title_of(b"") == ""


# --- times --------------------------------------------------------------------------------------------------------


def test_a_time_is_as_long_ago_as_people_say() -> None:
    for passed, words in (
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=59), "59 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=6, hours=23), "6 d ago"),
        (timedelta(days=7), "21 Nov"),
        (timedelta(days=400), "24 Oct 2025"),
        (timedelta(hours=-2), "in 2 h"),
    ):
        assert ago(NOW - passed, NOW) == words


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_any_time_can_be_said(moment: datetime) -> None:
    assert 0 < len(ago(moment.replace(tzinfo=UTC), NOW)) < 20


async def test_a_time_has_the_exact_one_beside_it(browser: Browser) -> None:
    times = Page(await browser.get("/s/alpha/notes/")).all("time")
    assert {"datetime": "2026-01-02T03:04:05Z", "title": "2 Jan 2026, 03:04:05 UTC"} in times


# --- search -------------------------------------------------------------------------------------------------------


async def test_facets_narrow_a_search_and_widen_it_again(app: App, browser: Browser) -> None:
    for number in range(3):
        name = f"2026010{number + 3}T000000_cursor_issue_0000000{number}.md"
        await put(app, keys.live_key(ALPHA, name), note("the queue again", agent="cursor", category="issue"))
    page = Page(await browser.get("/s/alpha/search?q=queue"))
    assert "?q=queue%20agent%3Acursor" in [link.get("href") for link in page.all("a")]
    assert "cursor 3" in page.text

    narrowed = Page(await browser.get("/s/alpha/search?q=queue+agent%3Acursor"))
    assert narrowed.text.count("the queue again") >= 3
    assert "We chose" not in narrowed.text
    assert "?q=queue" in [link.get("href") for link in narrowed.all("a") if link.get("aria-current")]


def test_a_filter_is_added_once_and_quoted_where_it_must_be() -> None:
    assert _with_filter("why", "agent", "claude") == ("why agent:claude", False)
    assert _with_filter("why agent:claude", "agent", "claude") == ("why", True)
    assert _with_filter("", "subject", "David Smith") == ('subject:"David Smith"', False)
    assert _facets("why", []) == ()


def test_a_line_of_markdown_is_shown_without_its_marks() -> None:
    assert plain("**S3** it is, in `eu`") == "S3 it is, in eu"
    assert plain("# Head\n\n- one\n> two\n\n| a | b |\n|---|:-:|\n| 1 | 2 |") == "Head one two a b 1 2"
    assert plain("```python\nx = 1\n```") == "x = 1"
    assert plain("2 - 1 and a_b and 3 * 4 > x") == "2 - 1 and a_b and 3 * 4 > x"
