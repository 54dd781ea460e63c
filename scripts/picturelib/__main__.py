"""`scripts/pictures`: fills a bucket, serves its page, and takes pictures of it in Chromium."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio
from playwright.sync_api import Browser, Page, sync_playwright

from livememfs.app import open_app
from livememfs.config import Settings
from picturelib.project import SHOP, fill

DOCS = Path(__file__).resolve().parents[2] / "docs" / "pictures"
QUALITY = 72
SIZES = {"wide": (1280, 800), "narrow": (360, 740)}
PAGES = {
    "spaces": "/",
    "all": "/feed",
    "feed": f"/s/{SHOP}/",
    "notes": f"/s/{SHOP}/notes/?write=",
    "memories": f"/s/{SHOP}/memories/",
    "forgotten": f"/s/{SHOP}/memories/?forgotten=",
    "memory": "a.open in main of /s/shop/memories/",
    "memory-edit": "?edit",
    "note": "a.open in main of /s/shop/notes/",
    "note-edit": "?edit",
    "bank": f"/s/{SHOP}/bank/",
    "bank-file": f"/s/{SHOP}/bank/systemPatterns.md",
    "bank-why": "?view=why",
    "bank-edit": "?view=edit",
    "observations": f"/s/{SHOP}/observations/",
    "observation": f"/s/{SHOP}/observations/0badcaf1",
    "sessions": f"/s/{SHOP}/sessions/",
    "session": "a.open in main of /s/shop/sessions/",
    "runs": f"/s/{SHOP}/consolidation",
    "run": f"/s/{SHOP}/consolidation/1",
    "search": f"/s/{SHOP}/search?q=forty+workers",
    "about": f"/s/{SHOP}/about",
    "settings": "/settings",
    "missing": f"/s/{SHOP}/note/nothing.md",
}
IN_DOCS = ("feed", "note-edit", "memory", "bank-why", "session", "runs", "search")


def main() -> None:
    """Take them."""
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    folder = given or DOCS
    folder.mkdir(parents=True, exist_ok=True)
    room = tempfile.TemporaryDirectory(prefix="livememfs-pictures-")
    with room as where, _served(Path(where)) as (url, token), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if given is None:
            _take(browser, url, token, folder, "wide", "light", IN_DOCS, "")
            _take(browser, url, token, folder, "narrow", "dark", ("feed",), "-narrow")
        for size in SIZES if given is not None else ():
            for scheme in ("light", "dark"):
                _take(browser, url, token, folder, size, scheme, tuple(PAGES), f"-{size}-{scheme}")
        browser.close()
    print(f"{len(list(folder.iterdir()))} pictures are in {folder}")


@contextmanager
def _served(room: Path) -> Iterator[tuple[str, str]]:
    """The address of the page of a filled bucket, and a token for it."""
    store, cache = str(room / "store"), str(room / "cache")

    async def make() -> None:
        async with open_app(Settings(store=store, cache=cache, embed_model="none", host="here")) as app:
            await fill(app)

    trio.run(make)
    settings = {"LIVEMEMFS_STORE": store, "LIVEMEMFS_CACHE": cache, "LIVEMEMFS_EMBED_MODEL": "none"}
    command, environment = [sys.executable, "-m", "livememfs"], {**os.environ, **settings, "XDG_CONFIG_HOME": str(room)}
    made = [*command, "token", "create", "me", "--permissions", "read,write,admin", "--json"]
    token = json.loads(subprocess.run(made, env=environment, check=True, capture_output=True).stdout)["token"]
    daemon = subprocess.Popen([*command, "web", "127.0.0.1:0"], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert daemon.stdout is not None  # it is a pipe
        yield daemon.stdout.readline().strip().rstrip("/"), token
    finally:
        daemon.terminate()
        daemon.wait(20)


def _take(
    browser: Browser, url: str, token: str, folder: Path, size: str, scheme: str, names: tuple[str, ...], ending: str
) -> None:
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{url}/login")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")
    for name, where in PAGES.items():
        if where.startswith("?"):
            page.goto(page.url.partition("?")[0] + where)
        elif " of " in where:
            page.goto(url + where.partition(" of ")[2])
            page.goto(url + str(page.locator("main a.open").first.get_attribute("href")))
        else:
            page.goto(url + where)
        if name in names:
            page.wait_for_timeout(150)  # the mark that says whether the page is live
            if ending.count("-") > 1:
                page.screenshot(path=folder / f"{name}{ending}.png", full_page=True)
            else:
                _small(page, folder / f"{name}{ending}.webp")
    context.close()


def _small(page: Page, path: Path) -> None:
    """The window as WebP, which Playwright's own pictures cannot be: half the bytes."""
    asked = {"format": "webp", "quality": QUALITY}
    answer = page.context.new_cdp_session(page).send("Page.captureScreenshot", asked)
    path.write_bytes(base64.b64decode(answer["data"]))


if __name__ == "__main__":
    main()
