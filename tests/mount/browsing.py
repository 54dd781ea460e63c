"""A real browser in front of the live page of a real mount.

Owns the start of the browser, what it is asked to watch for on every page (dialogs, scripts that ran, violations of the
page's own policy, movement of what is being read), and axe-core. Used by one thread.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

from machine import Mount, livememfs
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

Scheme = Literal["light", "dark"]
WIDE, NARROW = 1280, 360
PATIENCE = 30_000
"""Milliseconds for whatever a page does: what waits for it goes on as soon as it is done."""
AXE = Path(sys.prefix) / "axe/node_modules/axe-core/axe.min.js"
GRAVE = ("serious", "critical")
WATCH = """
window.seen = { violations: [], shift: 0, moved: [], errors: [] };
document.addEventListener("securitypolicyviolation", (e) => {
  window.seen.violations.push(`${e.violatedDirective} ${e.blockedURI}`);
});
addEventListener("error", (e) => window.seen.errors.push(e.message));
addEventListener("unhandledrejection", (e) => window.seen.errors.push(String(e.reason)));
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) {
    window.seen.shift += one.value;
    for (const { node, previousRect, currentRect } of one.sources) {
      window.seen.moved.push(`${node && node.className} from ${previousRect.y} to ${currentRect.y}`);
    }
  }
}).observe({ type: "layout-shift", buffered: true });
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium without a window. Its own sandbox does not work for root."""
    found = shutil.which("chromium")
    assert found is not None, "chromium is not installed; scripts/setup test does it"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@cache
def pictures() -> Path:
    """Where screenshots are kept: never in the checkout, and beyond the end of the tests."""
    given = os.environ.get("LIVEMEMFS_TEST_ARTEFACTS")
    folder = Path(given) if given else Path(tempfile.mkdtemp(prefix="livememfs-pages-", dir=tempfile.gettempdir()))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"screenshots are in {folder}")
    return folder


@cache
def _axe() -> str:
    assert AXE.exists(), f"{AXE} is missing; scripts/setup test fetches it"
    return AXE.read_text()


def url_of(mount: Mount) -> str:
    """Where a mount serves its page."""
    for line in mount.log().splitlines():
        event = json.loads(line)
        if event["event"] == "serving":
            return f"{event['url']}/"
    raise AssertionError(f"nothing is served\n{mount.log()}")


def token_of(mount: Mount, name: str, *options: str) -> str:
    """A new token."""
    done = livememfs(shlex.join(["token", "create", name, *options, "--json"]), env=mount.environment)
    return str(json.loads(done.stdout)["token"])


class Visitor:
    """One browser window that is signed in, and everything alarming that happened in it."""

    def __init__(self, browser: Browser, url: str, *, width: int = WIDE, scheme: Scheme = "light", calm: bool = False):
        self.url = url
        self.alarms: list[str] = []
        self.context: BrowserContext = browser.new_context(
            viewport={"width": width, "height": 800 if width > 600 else 740},
            color_scheme=scheme,
            reduced_motion="reduce" if calm else "no-preference",
        )
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(WATCH)
        self.page: Page = self.context.new_page()
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.alarms.append(f"error: {error}"))
        self.page.on("console", self._said)
        self.page.on("request", self._asked)

    def _dialog(self, dialog: Any) -> None:
        self.alarms.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _said(self, message: Any) -> None:
        if message.type == "error" and not re.search(r"status of 40[1-9]", message.text):
            self.alarms.append(f"console: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.url):
            self.alarms.append(f"request to {request.url}")

    def sign_in(self, token: str) -> None:
        """As a person does: come, be asked, paste, go on."""
        self.page.goto(self.url)
        assert "/login" in self.page.url
        self.page.get_by_label("Token").fill(token)
        self.follow(self.page.get_by_role("button", name="Sign in"))
        assert self.page.url == self.url

    def go(self, path: str) -> Page:
        """Open a page of the server."""
        self.page.goto(self.url.rstrip("/") + path)
        return self.page

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """What is done here opens another page: wait until that is there, scripts and all, as no click does."""
        with self.page.expect_navigation():
            yield

    def follow(self, link: Locator) -> None:
        """Click on a link, and be on its page."""
        with self.leaving():
            link.click()

    def listening(self) -> None:
        """Wait until the page hears of what happens."""
        self.page.locator('#pulse[data-state="on"]').wait_for()

    @property
    def shift(self) -> float:
        """How much has moved on this page that nobody asked to move (Cumulative Layout Shift)."""
        self.page.wait_for_timeout(120)
        return float(self.page.evaluate("window.seen.shift"))

    def expect_well(self) -> None:
        """Nothing ran that is not ours, nothing was refused, nothing is wider than the window."""
        seen = self.page.evaluate("window.seen")
        assert self.alarms == []
        assert seen["violations"] == [], f"{self.page.url}: {seen['violations']}"
        assert seen["errors"] == []
        assert self.page.evaluate("window.hacked") is None
        widths = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1], f"{self.page.url} is {widths[0]} px wide in a window of {widths[1]} px"

    def expect_accessible(self) -> None:
        """axe-core finds no serious and no critical fault. It is evaluated from outside: the page would not run it."""
        self.page.evaluate(_axe())
        result = self.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        grave = [
            f"{one['id']}: {one['help']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
            for one in result["violations"]
            if one["impact"] in GRAVE
            for node in one["nodes"]
        ]
        assert grave == [], f"{self.page.url}\n" + "\n".join(grave)

    def picture(self, name: str) -> None:
        """Keep how the page looks."""
        path = pictures() / f"{name}.jpg"  # a PNG takes half as long again
        self.page.screenshot(path=path, full_page=True, type="jpeg", quality=90)


def seconds_since(start: float) -> float:
    """On the clock that nobody sets."""
    return time.monotonic() - start
