"""`/s/<space>/sessions/` and `/s/<space>/observations/`: the sessions of agents, and their observations.

Owns the order in which they are shown. Unreadable files are skipped. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.concurrency import for_each, in_thread
from livememfs.recall.turn.timeline import file_of
from livememfs.records import keys
from livememfs.records.observation import ICONS, Observation
from livememfs.records.session import SUMMARY_FIELDS, Session, Summary, prompts_in
from livememfs.serve.web.asked import name_in
from livememfs.serve.web.markdown import rendered

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.cache.replica import Replica
    from livememfs.serve.web.site import Site

SHOWN_SESSIONS, READ_SESSIONS = 100, 500
SHOWN_OBSERVATIONS, SHOWN_PROMPTS = 80, 100
AROUND = 5
NAME_AFTER = 3
"""`/s/SPACE/sessions/ID`, `/s/SPACE/observations/ID`: the name stands behind three parts."""
MAX_TITLE, FIRST_BYTES = 120, 64 << 10
"""Characters of a title, and so far the first prompt is looked for."""
AT_ONCE = 16
_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True)
class Day:
    """A day of a timeline: for each file the observations about it."""

    day: date
    files: tuple[tuple[str, tuple[Observation, ...]], ...]


async def sessions(site: Site, request: Request) -> Response:
    """The sessions of a space, the last active first."""
    space, replica = (await site.space(request)).space, site.context.replica
    place = site.events.place(site.events.last)
    folders = sorted((await replica.names.listing(f"{space}/{keys.SESSIONS}/")).folders)
    contents = await _contents(replica, folders[:READ_SESSIONS], partial(keys.session_key, space))
    parsed = (await in_thread(lambda: _parsed(space, contents)))[:SHOWN_SESSIONS]
    names = [name for name, _ in parsed]
    prompts = await _contents(replica, names, lambda name: keys.session_key(space, name, keys.PROMPTS))
    titles = await in_thread(lambda: {name: title_of(data) for name, data in prompts.items()})
    listed = {"sessions": parsed, "titles": titles, "left_out": len(folders) - len(parsed)}
    return await site.page(request, "sessions.html", space=space, after=place, **listed)


async def session(site: Site, request: Request) -> Response:
    """One session: its summary, its prompts, its observations."""
    space, name, replica = (await site.space(request)).space, name_in(request, NAME_AFTER), site.context.replica
    place = site.events.place(site.events.last)
    if name not in (await replica.names.listing(f"{space}/{keys.SESSIONS}/")).folders:
        raise errors.NotFound(path=f"{space}/{keys.SESSIONS}/{name}")
    key = partial(keys.session_key, space, name)
    record = Session.parse(await _read(replica, key()) or b"", space=space, session=name, now=_NEVER)
    lines = (await _read(replica, key(keys.PROMPTS)) or b"").split(b"\n")
    prompts = await in_thread(lambda: list(prompts_in(lines)))
    summary = await _summary(await _read(replica, key(keys.SUMMARY)), key(keys.SUMMARY))
    observed = await _observations(replica, space, record.observations)
    return await site.page(
        request,
        "session.html",
        after=place,
        title=_line(prompts[0][1]) if prompts else "",
        space=space,
        name=name,
        session=record,
        summary=summary,
        prompts=prompts[-SHOWN_PROMPTS:],
        days=_days(observed),
        icons=ICONS,
    )


async def observations(site: Site, request: Request) -> Response:
    """The timeline of a space, newest first; older with `?before=`."""
    space, replica = (await site.space(request)).space, site.context.replica
    place, before = site.events.place(site.events.last), request.query_params.get("before", "")
    total = len(await site.order.names(space, keys.OBSERVATIONS))
    found = await site.order.newest(space, keys.OBSERVATIONS, before, SHOWN_OBSERVATIONS + 1)
    shown = [item.key.rpartition("/")[2] for item in found[:SHOWN_OBSERVATIONS]]
    older = shown[-1] if len(found) > SHOWN_OBSERVATIONS else ""
    days = _days(await _observations(replica, space, shown))
    listed = {"days": days, "icons": ICONS, "total": total, "older": older}
    return await site.page(request, "observations.html", space=space, after=place, **listed)


async def observation(site: Site, request: Request) -> Response:
    """One observation, and those before and after it."""
    space, given, replica = (await site.space(request)).space, name_in(request, NAME_AFTER), site.context.replica
    uid = given.removesuffix(".md")
    dated = (await site.order.names(space, keys.OBSERVATIONS)).dated
    names = await in_thread(lambda: [name for name in dated if keys.MemoryName.parse(name) is not None])
    missing = errors.NotFound(path=f"{space}/{keys.OBSERVATIONS}/{given}")
    at = next((index for index, name in enumerate(names) if uid in (keys.ending(name), name[:-3])), None)
    if at is None:
        raise missing
    around = await _observations(replica, space, names[max(at - AROUND, 0) : at + AROUND + 1])
    record = next((near for near in around if near.id == keys.ending(names[at])), None)
    if record is None:
        raise missing
    html = await in_thread(partial(rendered, record.narrative))
    return await site.page(
        request,
        "observation.html",
        space=space,
        record=record,
        html=html,
        days=_days(around),
        icons=ICONS,
        slug=keys.session_slug(record.session) if record.session else "",
    )


def title_of(prompts: bytes) -> str:
    """The first prompt of a session, on one line; empty without one."""
    return next((_line(words) for _, words in prompts_in(prompts[:FIRST_BYTES].split(b"\n"))), "")


def _line(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1].rstrip() + "…"


def _parsed(space: str, contents: Mapping[str, bytes]) -> list[tuple[str, Session]]:
    """Sessions with their names, the last active first."""
    records = [(name, Session.parse(data, space=space, session=name, now=_NEVER)) for name, data in contents.items()]
    return sorted(records, key=lambda name: (name[1].updated_at, name[0]), reverse=True)


# --- reading ----------------------------------------------------------------------------------------------------


async def _read(replica: Replica, key: str) -> bytes | None:
    try:
        return (await replica.read(key)).data
    except errors.ObjectMissing:
        return None


async def _contents(replica: Replica, names: Iterable[str], key_of: Callable[[str], str]) -> dict[str, bytes]:
    """The contents of objects by their names; objects that are gone are left out."""
    contents: dict[str, bytes] = {}

    async def read(name: str) -> None:
        data = await _read(replica, key_of(name))
        if data is not None:
            contents[name] = data

    await for_each(names, read, at_once=AT_ONCE)
    return contents


async def _observations(replica: Replica, space: str, names: Sequence[str]) -> list[Observation]:
    """Those of these observations that can be read."""
    prefix = keys.observations_prefix(space)
    named = [name for name in names if keys.MemoryName.parse(name) is not None]
    contents = await _contents(replica, named, prefix.__add__)

    def parsed() -> list[Observation]:
        records = []
        for name in filter(contents.__contains__, names):
            with suppress(errors.NotText):
                records.append(Observation.parse(contents[name], path=prefix + name, name=name))
        return records

    return await in_thread(parsed)


async def _summary(data: bytes | None, path: str) -> list[tuple[str, str]]:
    """The summary of a session: title and HTML of each part that is not empty."""
    if data is None:
        return []
    try:
        summary = Summary.parse(data, path=path)
    except errors.NotText:
        return []
    parts = [(name.replace("_", " ").capitalize(), getattr(summary, name)) for name in SUMMARY_FIELDS]
    return [(title, await in_thread(partial(rendered, text))) for title, text in parts if text]


def _days(observed: Iterable[Observation]) -> list[Day]:
    """A timeline: the newest day first, and within a day by file."""
    ordered = sorted(observed, key=lambda record: (record.created_at, record.id), reverse=True)
    days = []
    for day, group in groupby(ordered, key=lambda record: record.created_at.astimezone(UTC).date()):
        files: dict[str, list[Observation]] = {}
        for record in group:
            files.setdefault(file_of(record), []).append(record)
        days.append(Day(day, tuple((name, tuple(beside)) for name, beside in files.items())))
    return days
