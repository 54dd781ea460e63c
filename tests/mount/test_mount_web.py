"""The live page of a real mount in a real browser: by hand, by eye, by keyboard and by script."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from browsing import NARROW, WIDE, Scheme, Visitor, chromium, seconds_since, token_of, url_of
from cloud import Bucket, Cloud
from machine import LONG as ALL
from machine import Mount, sh
from playwright.sync_api import Browser, expect

from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.session import Session, Summary

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OBSERVED = [
    Observation(
        f"0badcaf{number}", "s-1", MOMENT.replace(hour=hour), kind, title, "in the queue of jobs",
        "Two **writers** met, and one lost its work.\n\n- the lock came too late\n- the test used one writer",
        ("`queue.py` takes the lock after reading",), ("concurrency", "how-it-works"), ("src/queue.py",),
        ("src/lock.py",), "shop", "claude", 900, "builtin",
    )
    for number, hour, kind, title in (
        (1, 9, "discovery", "The queue reads before it locks"),
        (2, 10, "bugfix", "A lock was missing around the queue"),
        (3, 11, "decision", "One writer for each queue, and the others wait"),
    )
]  # fmt: skip
DECISIONS = """# Decisions

## Storage

S3 it is, with **one** bucket for all.

- versioned
- in Paris

> Keep it boring.

| what | where |
|---|---:|
| notes | `live/` |
| facts | `memories/` |

```sh
echo hello > live/x
```
"""
ATTACK = "<script>window.hacked = 1; alert(1)</script>"
FLAGS = '<img src=x onerror="window.hacked=1"><svg onload="window.hacked=1">[x](javascript:window.hacked=1)'
LONG = "x" * 300
SECONDS = 300
MEMORY, OTHER = "20260102T030405_fact_0a1b2c3d", "20260102T030406_decision_0a1b2c3e"
EVIL = "<script>window.hacked=1<script>.md"
PAGES = {
    "overview": "/",
    "feed-of-all": "/feed",
    "feed": "/s/project/",
    "notes": "/s/project/notes/?write=",
    "note": "",
    "note-edit": "?edit",
    "memories": "/s/project/memories/",
    "forgotten": "/s/project/memories/?forgotten=",
    "memory": f"/s/project/memory/memories/{MEMORY}",
    "memory-edit": f"/s/project/memory/memories/{MEMORY}?edit",
    "bank": "/s/project/bank/",
    "bank-file": "/s/project/bank/decisions.md",
    "bank-source": "/s/project/bank/decisions.md?view=source",
    "bank-changes": "/s/project/bank/progress.md?view=changes",
    "bank-why": "/s/project/bank/progress.md?view=why",
    "search": "/s/project/search?q=queue",
    "search-all": "/search",
    "sessions": "/s/project/sessions/",
    "session": "/s/project/sessions/s-1",
    "observations": "/s/project/observations/",
    "observation": "/s/project/observations/0badcaf2",
    "consolidation": "/s/project/consolidation",
    "run": "/s/project/consolidation/1",
    "proposals": "/s/project/proposals",
    "audit": "/s/project/audit",
    "about": "/s/project/about",
    "about-edit": "/s/project/about?edit",
    "bank-edit": "/s/project/bank/decisions.md?view=edit",
    "settings": "/settings",
    "error": "/s/project/bank/nothing.md",
}
COLOURFUL = ("overview", "feed", "memory", "note-edit", "bank-file", "search", "run", "consolidation", "error")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, s3: Cloud) -> Iterator[Mount]:
    """A mount that serves its page, one for all tests here, with a space in which there is something of everything."""
    client, folder = s3.client(), tmp_path_factory.mktemp("web")
    bucket = Bucket(s3, "pages", client)
    client.create_bucket(Bucket=bucket.name)
    fill(bucket)
    settings = {**bucket.environment(), "LIVEMEMFS_EMBED_MODEL": "none"}
    with Mount(folder / "mnt", folder / "home", settings, "--web", "127.0.0.1:0", limit=SECONDS) as mount:
        for name, text in (
            ("decision-queue.md", "We chose the queue of Postgres: one system less to run."),
            ("progress-lock.md", "The lock around the queue is in.\nTests with two writers pass."),
            ("todo-bill.md", "Check the bill of the bucket at the end of the month."),
        ):
            (mount / "project/live" / name).write_text(text)
        sh("touch project/.consolidate && cat project/.consolidate.wait", cwd=mount.path)
        (mount / "project/live/issue-slow.md").write_text("The queue is slow when forty workers start at once.")
        (mount / "project/live/question.md").write_text("Who owns the queue of the mails?")
        yield mount


def fill(bucket: Bucket) -> None:
    """What other hands have written."""
    for space, about in (("project", "A shop and the queue behind it"), ("garden", "What grows where")):
        meta = {"space_id": space, "description": about, "created_at": "2026-01-01T00:00:00Z", "version": 1}
        bucket.put(keys.meta_key(space), json.dumps(meta))
    bucket.put(keys.bank_key("project", "decisions.md"), DECISIONS)
    evil = f"# {ATTACK}\n\n{FLAGS}\n\n![x](https://evil.example/x.png) {LONG}\n"
    bucket.put(keys.bank_key("garden", EVIL), evil)
    for one in OBSERVED:
        bucket.put(f"project/observations/{one.name}", one.render())
    names = tuple(one.name for one in OBSERVED)
    session = Session("s-1", "project", MOMENT, MOMENT, agent="claude", project="shop", prompts=1, observations=names)
    bucket.put(keys.session_key("project", "s-1"), session.render())
    prompt = {"at": "2026-01-02T03:04:05Z", "id": "e", "prompt": "why does the queue lose jobs?"}
    bucket.put(keys.session_key("project", "s-1", keys.PROMPTS), json.dumps(prompt) + "\n")
    linked = f"links:\n  related_to: [{OTHER}]\n"
    bucket.put(
        f"project/memories/{MEMORY}.md", f"---\ntype: fact\nsubjects: [shop]\n{linked}---\nThe shop sells tea.\n"
    )
    bucket.put(f"project/memories/{OTHER}.md", "---\ntype: decision\n---\nTea comes from **Assam**.\n")
    summary = Summary("s-1", MOMENT, request="find the lost jobs", learned="a lock was missing", next_steps="- measure")
    bucket.put(keys.session_key("project", "s-1", keys.SUMMARY), summary.render())


@pytest.fixture(scope="module")
def token(served: Mount) -> str:
    return token_of(served, "me", "--permissions", "read,write,admin")


@pytest.fixture
def visit(browser: Browser, served: Mount, token: str) -> Iterator[Callable[..., Visitor]]:
    """`visit(width=..., scheme=...)`: a window that is signed in."""
    opened: list[Visitor] = []

    def open_one(**options: object) -> Visitor:
        visitor = Visitor(browser, url_of(served), **options)  # type: ignore[arg-type]  # as it says itself
        opened.append(visitor)
        visitor.sign_in(token)
        return visitor

    yield open_one
    for visitor in opened:
        visitor.context.close()


# --- how it looks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_for_everybody_in_both_schemes_and_widths(
    served: Mount, visit: Callable[..., Visitor], scheme: Scheme
) -> None:
    """axe-core finds no serious fault, nothing is wider than the window, nothing moves, and a picture is kept.

    A scheme changes colours alone, so that the dark one is tried on pages that have all of them between them, in a wide
    window, and so is a narrow window; LIVEMEMFS_TEST_LONG=1 tries everything.
    """
    pages = {name: path for name, path in PAGES.items() if scheme == "light" or ALL or name in COLOURFUL}
    note = sorted(one.name for one in (served / "project/live").iterdir())[-1]
    for width in (WIDE, NARROW) if scheme == "light" or ALL else (WIDE,):
        visitor = visit(width=width, scheme=scheme)
        for name, path in pages.items():
            if width == NARROW and name not in COLOURFUL and not ALL:
                continue
            visitor.go(f"/s/project/note/{note}{path}" if path in ("", "?edit") else path)
            expect(visitor.page.locator(".door")).to_have_count(1 if name == "error" else 0)  # pages of errors have it
            visitor.expect_well()
            if width == WIDE or ALL:
                visitor.expect_accessible()
            assert visitor.page.evaluate("window.seen.shift") < 0.02, f"{name} moves while it loads"
            visitor.picture(f"{name}-{width}-{scheme}")
        visitor.follow(visitor.page.get_by_role("button", name="Sign out"))
        assert visitor.page.url.endswith("/login")
        visitor.expect_well()
        visitor.expect_accessible()
        visitor.picture(f"login-{width}-{scheme}")


def test_what_goes_wrong_stands_on_the_first_page(served: Mount, visit: Callable[..., Visitor]) -> None:
    sh("echo no > project/bank/by-hand.md", cwd=served.path, status=2)
    visitor = visit()

    expect(visitor.page.locator("aside")).to_contain_text("is read-only")
    expect(visitor.page.locator("aside")).to_contain_text("project/bank/by-hand.md")
    visitor.expect_accessible()
    visitor.picture("overview-with-errors")


# --- what people do -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calm", [False, True], ids=["moving", "calm"])
def test_a_note_arrives_while_somebody_looks(served: Mount, visit: Callable[..., Visitor], calm: bool) -> None:
    """Within a second of `echo > live/x`, without a reload, and without moving what is read."""
    visitor = visit(calm=calm)
    page = visitor.go("/s/project/notes/")
    visitor.listening()
    page.evaluate("window.same = true")
    worst = 0.0
    for number in range(3):
        start = time.monotonic()
        sh(f"echo 'note number {number} {calm}' > project/live/progress-{number}-{calm}", cwd=served.path)
        page.get_by_text(f"note number {number} {calm}").wait_for()
        worst = max(worst, seconds_since(start))
    print(f"a note is on the page at most {worst:.3f} s after its echo began")
    assert worst < 1.0
    assert page.locator("#feed > li").first.get_attribute("data-kind") == "progress"
    expect(page.locator("#total")).to_have_text(f"{len(list((served / 'project/live').iterdir()))} notes waiting")
    assert page.evaluate("window.same")
    shift = visitor.shift
    print(f"cumulative layout shift while notes arrived: {shift:.4f}")
    assert shift < 0.01, "\n".join(page.evaluate("window.seen.moved"))
    visitor.expect_well()


def test_whoever_has_scrolled_goes_on_reading_where_they_were(served: Mount, visit: Callable[..., Visitor]) -> None:
    for number in range(12):
        (served / f"garden/live/n{number}").write_text(f"{number}\n" * 6)
    visitor = visit(calm=True)
    page = visitor.go("/s/garden/notes/")
    visitor.listening()
    page.mouse.wheel(0, 900)
    page.wait_for_function("scrollY > 500")
    card = page.locator("#feed > li").nth(7)
    page.wait_for_timeout(600)  # movement shortly after an input is not counted
    before, top = visitor.shift, card.bounding_box()
    sh("echo 'far above' > garden/live/above", cwd=served.path)
    page.get_by_text("far above").wait_for(state="attached")
    after = page.locator("#feed > li").nth(8).bounding_box()

    assert top is not None
    assert after is not None
    assert abs(after["y"] - top["y"]) < 2
    assert visitor.shift - before < 0.01


def test_what_was_missed_while_nobody_looked_is_there(served: Mount, visit: Callable[..., Visitor]) -> None:
    """A page that comes back goes on from where it was: the stream is resumed, the page is not loaded again."""
    visitor = visit()
    page = visitor.go("/s/project/")
    visitor.listening()
    visitor.context.set_offline(True)
    page.evaluate("window.same = true")
    page.evaluate("dispatchEvent(new Event('pagehide'))")
    sh("echo 'while away' > project/live/away", cwd=served.path)
    visitor.context.set_offline(False)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_text("while away").wait_for()

    assert page.evaluate("window.same")
    visitor.follow(page.locator("article", has_text="while away").locator("a.open"))
    expect(page.locator("h1")).to_contain_text("observation")


def test_searching_reading_rehearsing_and_running(served: Mount, visit: Callable[..., Visitor]) -> None:
    (served / "project/live/todo-gardeners").write_text("Call the gardeners about the hedge.")
    waiting = sorted((served / "project/live").iterdir())
    visitor = visit()
    page = visitor.go("/s/project/")
    page.keyboard.press("/")
    page.keyboard.type("queue")
    with visitor.leaving():
        page.keyboard.press("Enter")
    expect(page.locator("#summary")).to_contain_text("for queue")
    expect(page.locator(".hit .why").first).to_contain_text("words #")
    page.locator("#q").fill("one system less")
    expect(page.locator("#summary")).to_contain_text("for one system less")
    expect(page.locator(".hit mark").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=one\+system\+less$"))

    visitor.follow(page.get_by_role("link", name="Bank", exact=True))
    visitor.follow(page.get_by_role("link", name="decisions.md"))
    expect(page.get_by_role("heading", name="Storage")).to_be_visible()
    expect(page.locator(".prose td code").first).to_have_text("live/")
    visitor.expect_well()

    visitor.follow(page.get_by_role("link", name="Runs", exact=True))
    visitor.listening()
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#diff .diff .add", has_text="the hedge").first).to_be_visible()
    expect(page.locator("#run .badge").first).to_have_text("ok")
    assert sorted((served / "project/live").iterdir()) == waiting
    page.get_by_role("button", name="Consolidate now").click()
    expect(page.locator("#run")).to_contain_text("Run by builtin")
    visitor.expect_well()
    visitor.picture("consolidation-ended")
    assert list((served / "project/live").iterdir()) == []


def test_a_run_that_others_start_shows_while_it_goes_on(served: Mount, visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    page = visitor.go("/s/project/consolidation")
    visitor.listening()
    page.evaluate("window.same = true")
    before = page.locator("#run .run").inner_text()
    (served / "project/live/progress-by-others").write_text("Others have been at work.")
    sh("touch project/.consolidate && cat project/.consolidate.wait", cwd=served.path)
    expect(page.locator("#run .run")).not_to_have_text(before)
    expect(page.locator("#run .badge").first).to_have_text("ok")
    expect(page.locator("#run")).to_contain_text("0 notes waiting")

    assert page.evaluate("window.same")
    assert visitor.shift < 0.1


def test_everything_can_be_reached_by_keyboard(visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    page = visitor.go("/s/project/consolidation")
    names = []
    for _ in range(18):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.innerText || document.activeElement.id"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"the focus on {names[-1]!r} cannot be seen"
    assert names[0] == "Skip to the content"
    assert [one for one in names if one in ("Dry run", "Consolidate now", "Cancel")] == [
        "Dry run", "Consolidate now", "Cancel",
    ]  # fmt: skip
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


def test_who_only_reads_sees_no_button(browser: Browser, served: Mount) -> None:
    visitor = Visitor(browser, url_of(served))
    visitor.sign_in(token_of(served, "reader", "--permissions", "read", "--space", "project"))
    expect(visitor.page.locator("main")).to_contain_text("A shop and the queue behind it")
    expect(visitor.page.locator("main")).not_to_contain_text("garden")
    page = visitor.go("/s/project/consolidation")

    expect(page.get_by_role("button", name="Dry run")).to_have_count(0)
    visitor.follow(page.get_by_role("button", name="Sign out"))
    assert page.url.endswith("/login")
    visitor.go("/s/project/")
    assert "/login?next=" in page.url
    visitor.context.close()


def test_two_people_at_work_see_what_the_other_does(
    browser: Browser, served: Mount, visit: Callable[..., Visitor]
) -> None:
    """Whatever is written, edited, deleted, forgotten or taken back on one page is on the other within a second, and in
    the mount. Here by keyboard, where there is a key for it.
    """
    one, other = visit(), visit(calm=True)
    page, feed = one.page, other.go("/s/garden/")
    other.listening()
    worst = 0.0

    def both(text: str, *, gone: bool = False) -> None:
        nonlocal worst
        start, card = time.monotonic(), feed.locator("#feed > li", has_text=text).first
        expect(card).to_have_class(re.compile("gone")) if gone else card.wait_for()
        worst = max(worst, seconds_since(start))
        one.expect_well()

    one.go("/s/garden/notes/")
    page.keyboard.press("n")
    page.keyboard.type("Two of us planted *leeks*")
    with one.leaving():
        page.keyboard.press("Control+Enter")
    both("Two of us planted leeks")
    [written] = [note for note in (served / "garden/live").iterdir() if "leeks" in note.read_text()]
    page.keyboard.press("j")
    with one.leaving():
        page.keyboard.press("Enter")
    with one.leaving():
        page.keyboard.press("e")
    page.locator("#text").fill("Two of us planted *onions*")
    with one.leaving():
        page.keyboard.press("Control+Enter")
    both("Two of us planted onions")
    assert "onions" in written.read_text()
    one.follow(page.get_by_role("button", name="Delete"))
    both("Two of us planted onions", gone=True)
    assert not written.exists()
    with one.leaving():
        page.keyboard.press("u")
    expect(feed.locator("#feed > li.gone")).to_have_count(0)
    assert "onions" in written.read_text()

    one.go("/s/garden/memories/")
    page.keyboard.press("n")
    page.keyboard.type("Leeks like cold")
    page.get_by_label("About").fill("leeks")
    with one.leaving():
        page.keyboard.press("Control+Enter")
    both("Leeks like cold")
    one.follow(page.locator("#feed a.open").first)
    with one.leaving():
        page.keyboard.press("e")
    page.locator("#text").fill("Leeks like frost")
    one.follow(page.get_by_role("button", name="Save"))
    both("Leeks like frost")
    expect(page.locator(".former")).to_contain_text("until")
    one.follow(page.get_by_role("button", name="Forget"))
    both("Leeks like frost", gone=True)
    one.follow(page.get_by_role("link", name="Forgotten"))
    one.follow(page.get_by_role("button", name="Restore").first)
    expect(feed.locator("#feed > li.gone")).to_have_count(0)
    feed.get_by_label("Tag").fill("leeks")
    with other.leaving():
        feed.keyboard.press("Enter")
    expect(feed.locator("#feed > li")).to_have_count(1)
    other.expect_well()
    print(f"what one does is on the page of the other at most {worst:.3f} s later")
    assert worst < 1.0


def test_an_administrator_mends_a_bank_its_rules_and_its_runs(served: Mount, visit: Callable[..., Visitor]) -> None:
    visitor = visit()
    page = visitor.go("/s/garden/about?edit")
    page.locator("#text").fill("# Rules\n\n- `beds.md`: what grows where\n")
    visitor.follow(page.get_by_role("button", name="Save"))
    expect(page.locator(".prose")).to_contain_text("beds.md")
    visitor.go("/s/project/bank/decisions.md?view=edit")
    page.locator("#text").fill("# Decisions\n\n## Storage\n\nS5 it is.\n")
    visitor.follow(page.get_by_role("button", name="Save"))
    expect(page.locator(".prose")).to_contain_text("S5 it is.")
    assert "S5" in (served / "project/bank/decisions.md").read_text()
    visitor.follow(page.get_by_role("link", name=re.compile(r"^run \d+")))
    expect(page.locator(".diff")).to_contain_text("+S5 it is.")
    visitor.follow(page.get_by_role("button", name="Undo"))
    expect(page.locator(".done")).to_contain_text("is taken back")
    visitor.expect_well()
    assert "S5" not in (served / "project/bank/decisions.md").read_text()
    page = visitor.go(f"/s/project/memory/memories/{OTHER}")
    visitor.follow(page.get_by_role("button", name="Vouch for it"))
    expect(page.locator(".facts")).to_contain_text("user")
    visitor.follow(page.locator(".done").get_by_role("button", name="Undo"))
    expect(page.locator(".facts")).to_contain_text("agent")
    visitor.expect_well()


# --- what nobody may do -------------------------------------------------------------------------------------------


def test_a_script_in_a_note_a_file_name_and_a_bank_file_does_not_run(
    served: Mount, visit: Callable[..., Visitor]
) -> None:
    (served / f"garden/live/{EVIL}").write_text(f"{ATTACK}\n{FLAGS}\n\u202egnp.exe {LONG}")
    (served / "garden/memories/evil.md").write_text(f"{ATTACK} {FLAGS} {LONG}\n")
    (served / "garden/live/decision-2.md").write_text(f"---\nagent: '{ATTACK}'\ntags: ['{FLAGS}']\n---\n# {ATTACK}\n")
    for width in (WIDE, NARROW) if ALL else (NARROW,):
        visitor = visit(width=width)
        page = visitor.go("/s/garden/")
        expect(page.locator("#feed")).to_contain_text(ATTACK)
        visitor.expect_well()
        visitor.follow(page.locator("article", has_text="window.hacked").first.locator("a.open"))
        expect(page.locator(".prose")).to_contain_text(ATTACK)
        visitor.expect_well()
        page = visitor.go("/s/garden/bank/")
        visitor.expect_well()
        visitor.follow(page.get_by_role("link", name=EVIL))
        for view in ("Source", "Changes", "Why", "Page"):
            visitor.follow(page.get_by_role("link", name=view, exact=True))
            visitor.expect_well()
        expect(page.locator(".prose")).to_contain_text(ATTACK)
        visitor.go("/s/garden/audit")
        expect(page.locator(".audit li a.open", has_text="window.hacked").first).to_be_visible()
        visitor.expect_well()
        visitor.go("/s/garden/search?q=alert")
        expect(page.locator(".hit").first).to_contain_text("alert")
        visitor.expect_well()
        page.locator("#q").fill(f"{ATTACK} alert")
        expect(page.locator("#summary")).to_contain_text(ATTACK)
        visitor.expect_well()
    live = visit()
    page = live.go("/s/garden/")
    live.listening()
    (served / "garden/live/insight.md").write_text(f"arrived {ATTACK} {FLAGS}")
    page.get_by_text("arrived").wait_for()
    live.expect_well()
