"""Whose words an event has, by its kind and by the tool that was used: never by what stands in it.

Owns which tools and shell commands bring pages and mails, in every agent's spelling. Other tools give out what
is in files, commits and issues, whoever wrote it. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from livememfs.records.event import Event
from livememfs.records.trust import Trust, least

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OUTSIDE = frozenset((
    "brave", "browse", "browser", "browsing", "chrome", "crawl", "crawler", "email", "emails", "exa", "fetch",
    "fetcher", "firecrawl", "gmail", "google", "http", "https", "imap", "inbox", "internet", "mail", "mails",
    "navigate", "newsletter", "outlook", "perplexity", "playwright", "puppeteer", "rss", "scrape", "scraper", "serp",
    "tavily", "url", "urls", "web", "webfetch", "webpage", "webpages", "websearch", "website", "wikipedia", "www",
))  # fmt: skip
"""Words in the name of a tool, or of the MCP server that has it, by which it brings what anybody may have written."""
_FETCHES = re.compile(
    r"(?<![\w./-])(?:[\w./-]*/)?(?:curl|wget|lynx|w3m|elinks|xh|httpie|https?|aria2c)(?=\s)(?![\w./-])"
)
_URL = re.compile(r"\bhttps?://(?:[^\s/@'\"]*@)?([^\s/:'\"]+)", re.IGNORECASE)
_HERE = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "[::1]", "host.docker.internal"})


def trust_of_event(event: Event) -> Trust:
    """The class of what stands in an event."""
    if event.kind != "tool":
        return Trust.USER if event.kind == "prompt" else Trust.AGENT
    return Trust.WEB if _is_outside(event) else Trust.TOOL


def trust_of_events(events: Iterable[Event]) -> Trust:
    """That of the least of them."""
    return least(map(trust_of_event, events))


def _is_outside(event: Event) -> bool:
    """Whether a tool brought a page or a mail."""
    if not _OUTSIDE.isdisjoint(word.lower() for word in _WORDS.findall(event.tool)):
        return True
    command = event.command()
    if not command or not _FETCHES.search(command):
        return False
    hosts = [host.lower() for host in _URL.findall(command)]
    return not hosts or any(host not in _HERE for host in hosts)
