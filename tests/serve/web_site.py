"""The live page of a small bucket, asked as a browser asks but without a socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2 as httpx
from starlette.applications import Starlette

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.records import keys
from livememfs.records.access import EVERYTHING, Access
from livememfs.records.observation import Observation
from livememfs.records.session import Session, Summary
from livememfs.serve.web import Site, routes_of
from livememfs.spaces import making as spaces

ALPHA, BETA = "alpha", "beta"
SECRET = "lm_" + "s" * 43
READER = Access("reader", frozenset({"read"}))
OF_ALPHA = Access("alpha only", frozenset({"read", "write"}), (ALPHA,))
NOTE = "20260102T030405_cline_decision_0a1b2c3d.md"
MEMORY = "20260102T030405_fact_0a1b2c3d.md"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OBSERVATION = Observation(
    "0badcafe", "s-1", MOMENT, "bugfix", "A lock was missing", "in the queue", "Two **writers** met.",
    ("one fact",), ("concurrency",), ("queue.py",), ("lock.py",), "proj", "claude",
    discovery_tokens=12_345,
)  # fmt: skip


class Doors:
    """The tokens that open something."""

    def __init__(self) -> None:
        self.known: dict[str, Access] = {SECRET: EVERYTHING}
        self.asked: list[str] = []

    async def access(self, secret: str) -> Access | None:
        self.asked.append(secret)
        return self.known.get(secret)


@dataclass
class Browser:
    """Asks for pages as somebody with `access`; None: as nobody."""

    site: Site
    access: Access | None = EVERYTHING
    cookies: dict[str, str] = field(default_factory=dict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """As the layer around the page does."""
        scope["state"] = {"access": self.access, "still": self.still}
        await Starlette(routes=routes_of(self.site))(scope, receive, send)

    async def still(self) -> Access | None:
        return self.access

    async def ask(self, method: str, address: str, data: dict[str, str] | None = None) -> httpx.Response:
        transport = httpx.ASGITransport(self)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", cookies=self.cookies) as client:
            return await client.request(method, address, data=data)

    async def get(self, address: str, status: int = 200) -> str:
        """The text of a page."""
        answer = await self.ask("GET", address)
        assert answer.status_code == status, f"{address}: {answer.status_code}\n{answer.text}"
        return answer.text

    async def post(self, address: str, status: int = 303, **data: str) -> httpx.Response:
        answer = await self.ask("POST", address, data)
        assert answer.status_code == status, f"{address}: {answer.status_code}\n{answer.text}"
        return answer


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[App, Site]]:
    """A bucket with two spaces, one of them with something of everything."""
    settings = Settings(store=str(folder / "bucket"), cache=str(folder / "cache"), embed_model="none", host="here")
    async with open_app(settings) as app:
        await spaces.create(app.replica, app.clock, ALPHA, description="the first")
        await spaces.create(app.replica, app.clock, BETA, description="the second")
        await put(app, keys.live_key(ALPHA, NOTE), note("We chose the queue of **Postgres**."))
        await put(app, keys.bank_key(ALPHA, "decisions.md"), "# Decisions\n\nS3 it is.\n")
        await put(app, keys.bank_key(ALPHA, "deep/er.md"), "below\n")
        await put(app, keys.bank_key(BETA, "hidden.md"), "# Hidden\n")
        await put(app, f"{ALPHA}/memories/{MEMORY}", "---\ntype: fact\nimportance: 0.7\n---\nDavid likes tea.\n")
        await put(app, f"{ALPHA}/observations/{OBSERVATION.name}", OBSERVATION.render())
        session = Session("s-1", ALPHA, MOMENT, MOMENT, agent="claude", prompts=1, observations=(OBSERVATION.name,))
        await put(app, keys.session_key(ALPHA, "s-1"), session.render())
        prompt = json.dumps({"at": "2026-01-02T03:04:05Z", "id": "e", "prompt": "why is it slow?"}) + "\n"
        await put(app, keys.session_key(ALPHA, "s-1", keys.PROMPTS), prompt)
        summary = Summary("s-1", MOMENT, request="make it fast", learned="locks matter")
        await put(app, keys.session_key(ALPHA, "s-1", keys.SUMMARY), summary.render())
        yield app, Site(app.tree, Doors())


def note(body: str, *, agent: str = "cline", category: str = "decision") -> str:
    """A note as it is stored."""
    return f"---\ntimestamp: 2026-01-02T03:04:05Z\nagent: {agent}\ncategory: {category}\ntags: [a tag]\n---\n{body}\n"


async def put(app: App, key: str, data: str | bytes) -> None:
    await app.replica.put(key, data if isinstance(data, bytes) else data.encode())


# --- reading pages -----------------------------------------------------------------------------------------------

SCRIPTS = {"/static/app.js"}
SCHEMES = ("http://", "https://", "mailto:")


class Page(HTMLParser):
    """What a browser would make of a page: its elements, and what in it could do something."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def dangers(self) -> list[str]:
        """Elements and attributes that a page of ours never has."""
        dangers = []
        for tag, attributes in self.elements:
            if tag == "script" and (attributes.get("src") or "").split("?")[0] not in SCRIPTS:
                dangers.append(f"script {attributes}")
            if tag in ("style", "iframe", "object", "embed", "base", "img", "svg", "math", "video", "audio"):
                dangers.append(tag)
            for name, value in attributes.items():
                bad_link = name in ("href", "src", "action", "formaction") and not _leads_well(value or "")
                if name.startswith("on") or name in ("style", "srcdoc", "srcset") or bad_link:
                    dangers.append(f"{tag} {name}={value}")
        return dangers


def _leads_well(address: str) -> bool:
    lowered = "".join(address.split()).lower()
    return lowered.startswith(SCHEMES) or ":" not in lowered.split("/")[0].split("?")[0].split("#")[0]
