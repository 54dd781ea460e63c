"""One thing that happened, as it is shown in a list: a note, an observation, a summary, a memory, a run, a conflict.

Owns what is read of each, and how it is cut. What is no text is shown as unreadable; what is gone is left out. Trio
thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from livememfs import errors
from livememfs.concurrency import aside, for_each
from livememfs.records.memory import Memory
from livememfs.records.metadata import META_NAME
from livememfs.records.note import Note
from livememfs.records.observation import ICONS, Observation
from livememfs.records.session import Summary
from livememfs.records.trust import Trust, trust_of
from livememfs.serve.web.markdown import excerpt, plain
from livememfs.serve.web.render import place
from livememfs.tree.space.history import HistoryDirectory
from livememfs.tree.space.root import HISTORY, Space

if TYPE_CHECKING:
    from markupsafe import Markup

    from livememfs.records.ledger import Entry
    from livememfs.runs.history import History
    from livememfs.serve.web.site import Site
    from livememfs.store.base import StoredObject

AT_ONCE = 16
UNREADABLE = "This is not text."
NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, order=True, slots=True)
class FeedItem:
    """A place in a list. `at` sorts by time, and begins with it as the names of objects do; `key` is in the space."""

    at: str
    space: str
    kind: str = field(compare=False)
    key: str = field(compare=False)
    line: dict[str, str] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Card:
    """What is shown of one thing.

    :type:   its category, its type, or what a run did
    :html:   the beginning of its text; `cut`: there is more
    :trust:  whose words it has, where that is less than an agent's
    :whole:  the whole text
    :more:   what else is shown of this kind
    """

    item: FeedItem
    when: datetime
    type: str = ""
    agent: str = ""
    title: str = ""
    html: Markup | None = None
    cut: bool = False
    tags: tuple[str, ...] = ()
    trust: str = ""
    etag: str = ""
    href: str = ""
    whole: str = ""
    more: dict[str, Any] = field(default_factory=dict)


async def cards_of(site: Site, items: Sequence[FeedItem]) -> list[Card]:
    """The cards of these items, in their order."""
    cards: dict[FeedItem, Card] = {}

    async def read(item: FeedItem) -> None:
        card = await card_of(site, item)
        if card is not None:
            cards[item] = card

    await for_each(items, read, at_once=AT_ONCE)
    return [cards[item] for item in items if item in cards]


async def card_of(site: Site, item: FeedItem) -> Card | None:
    """The card of an item; None if it is gone, or cannot be read as what it is."""
    if item.kind == "conflict":
        return _conflict(item)
    if item.kind == "run":
        return await _run(site, item)
    key = f"{item.space}/{item.key}"
    try:
        stored = await site.context.replica.read(key)
    except (errors.ObjectMissing, errors.NotFound):
        return None
    try:
        return await aside(len(stored.data), partial(_READERS[item.kind], item, stored))
    except errors.NotText:
        html, _ = excerpt(UNREADABLE)
        return Card(item, _when(item), html=html, etag=stored.info.etag, href=place(key), whole=UNREADABLE)


def when_named(name: str) -> datetime | None:
    """The time with which the name of an object begins; None without one."""
    try:
        return datetime.fromisoformat(name[:15]).replace(tzinfo=UTC) if name[8:9] == "T" else None
    except ValueError:
        return None


def _when(item: FeedItem) -> datetime:
    return when_named(item.at) or NEVER


def _note(item: FeedItem, stored: StoredObject) -> Card:
    name, key = item.key.rpartition("/")[2], f"{item.space}/{item.key}"
    note = Note.parse(stored.data, path=key, name=name)
    body = note.body.strip("\n")
    html, cut = excerpt(body)
    trust = trust_of(stored.info.meta, note.extra)
    return Card(
        item, note.timestamp, note.category, note.agent, "", html, cut, note.tags, trust.mark, stored.info.etag,
        place(key), body, {"written": (stored.info.meta or {}).get(META_NAME, "")},
    )  # fmt: skip


def _memory(item: FeedItem, stored: StoredObject) -> Card | None:
    collection, _, name = item.key.partition("/")
    key = f"{item.space}/{item.key}"
    memory = Memory.parse(stored.data, path=key, collection=collection, name=name)
    if memory.forgotten:
        return None
    html, cut = excerpt(memory.content)
    trust = trust_of(stored.info.meta, memory.said_of_trust)
    agent = str(memory.extra.get("agent", ""))
    return Card(
        item, memory.created_at, memory.type, agent, "", html, cut, memory.subjects, trust.mark,
        stored.info.etag, place(key), memory.content, {"memory": memory, "trust": trust},
    )  # fmt: skip


def _observation(item: FeedItem, stored: StoredObject) -> Card:
    name, key = item.key.rpartition("/")[2], f"{item.space}/{item.key}"
    record = Observation.parse(stored.data, path=key, name=name)
    html, cut = excerpt(record.narrative)
    mark = record.trust.mark if record.trust < Trust.TOOL else ""  # they are all made of what tools gave out
    return Card(
        item, record.created_at, record.type, record.agent, record.title or record.type, html, cut, record.concepts,
        mark, stored.info.etag, place(key), record.narrative, {"icon": ICONS[record.type], "subtitle": record.subtitle},
    )  # fmt: skip


def _summary(item: FeedItem, stored: StoredObject) -> Card:
    key = f"{item.space}/{item.key}"
    summary = Summary.parse(stored.data, path=key)
    text = "\n\n".join(filter(None, (summary.completed, summary.learned, summary.next_steps)))
    html, cut = excerpt(text)
    title = plain(summary.request) or f"Session {summary.session}"
    return Card(item, _when(item), "summary", "", title, html, cut, (), "", stored.info.etag, place(key), text)


def _conflict(item: FeedItem) -> Card:
    line = item.line or {}
    html, _ = excerpt(line.get("what", ""))
    return Card(item, _when(item), "conflict", title=line.get("path", ""), html=html, etag="1", more={"line": line})


async def _run(site: Site, item: FeedItem) -> Card | None:
    number = int(item.key.rpartition("/")[2])
    entry = await outline(site, item.space, number)
    return run_card(item, entry) if entry is not None else None


async def outline(site: Site, space: str, number: int) -> Entry | None:
    """One run without its texts; None when there is none that can be read."""
    try:
        return await (await history_of(site, space)).outline(number)
    except errors.NotFound:
        return None


async def history_of(site: Site, space: str) -> History:
    """The ledger of a space, as `.history/` reads it. NotFound."""
    node = await site.root.child(space)
    folder = await node.child(HISTORY) if isinstance(node, Space) else None
    if not isinstance(folder, HistoryDirectory):
        raise errors.NotFound(path=space)
    return folder.history


def run_card(item: FeedItem, entry: Entry) -> Card:
    """A run as it is shown in a list."""
    titles = {"undo": f"Run {entry.undoes} taken back", "edit": "Edited by hand", "digest": "Notes digested"}
    title = titles.get(entry.kind, "Consolidated")
    return Card(item, entry.committed_at, entry.kind, entry.by, title, etag=entry.state, more={"run": entry})


_READERS: dict[str, Callable[[FeedItem, StoredObject], Card | None]] = {
    "note": _note,
    "memory": _memory,
    "observation": _observation,
    "summary": _summary,
}
