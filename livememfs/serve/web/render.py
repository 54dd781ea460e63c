"""Values as HTML: the templates, and how times, sizes and addresses are written.

Owns that everything is escaped, and the addresses of pages. Refuses to read anything but its own templates. Any thread
but for `long_page`, which is called from the trio thread.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.responses import Response

from livememfs.concurrency import in_thread
from livememfs.records import keys
from livememfs.serve.web.markdown import plain
from livememfs.serve.web.static import address
from livememfs.text.times import parse_iso

if TYPE_CHECKING:
    from livememfs.records.access import Access

NEVER = "never"
_DAY = timedelta(days=1)
_TITLES = {400: "Not possible", 401: "Sign in first", 403: "Not allowed", 404: "Not found", 503: "Not now"}


def page(template: str, *, access: Access | None, code: int = 200, **values: Any) -> Response:
    """One page, or a part of one."""
    text = _environment().get_template(template).render(access=access, **values)
    return Response(text.encode("utf-8", "backslashreplace"), code, media_type="text/html; charset=utf-8")


async def long_page(template: str, **values: Any) -> Response:
    """A page that may be long, made in a thread."""
    return await in_thread(partial(page, template, **values))


def error_page(status: int, sentence: str, advice: str, *, access: Access | None) -> Response:
    """An error with its advice."""
    title = _TITLES.get(status, "Something went wrong")
    return page("error.html", access=access, code=status, status=status, title=title, sentence=sentence, advice=advice)


def part(text: str) -> str:
    """A name as one part of an address. Bytes that are no text are kept."""
    return quote(text, safe="", errors="surrogateescape")


def path(text: str) -> str:
    """A path as a part of an address."""
    return "/".join(part(name) for name in text.split("/"))


def place(key: str) -> str:
    """The address of the page for an object; empty without one."""
    parsed = keys.parse(key)
    space, name = part(parsed.space), parsed.name
    if parsed.kind == "note":
        return f"/s/{space}/note/{part(name)}"
    if parsed.kind == "bank":
        return f"/s/{space}/bank/{path(name)}"
    if parsed.kind == "observation":
        return f"/s/{space}/observations/{part(keys.ending(name))}"
    if parsed.kind == "memory":
        return f"/s/{space}/memory/{path(name)}"
    if parsed.kind == "session":
        return f"/s/{space}/sessions/{part(name.split('/')[1])}"
    return f"/s/{space}/consolidation" if parsed.kind == "synthesis" else ""


def when(moment: datetime | int | None) -> str:
    """A moment as people read it, in UTC."""
    if moment is None:
        return NEVER
    shown = _moment(moment)
    return f"{shown.day} {shown:%b} {shown.year:04d}, {shown:%H:%M}"


def stamp(moment: datetime | int) -> str:
    """A moment as programs read it."""
    return _moment(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def ago(moment: datetime, now: datetime) -> str:
    """How long ago a moment is, in a few characters; after a week its day. The script writes the same."""
    passed, ahead = abs(now - moment), moment > now
    if passed < timedelta(minutes=1):
        return "just now"
    for unit, length, most in (("min", timedelta(minutes=1), 60), ("h", timedelta(hours=1), 24), ("d", _DAY, 7)):
        if passed < length * most:
            return f"in {passed // length} {unit}" if ahead else f"{passed // length} {unit} ago"
    return f"{moment.day} {moment:%b}" + (f" {moment.year:04d}" if moment.year != now.year else "")


@pass_context
def clock(context: Context, moment: datetime | int | str | None) -> Markup | str:
    """A moment as an element: how long ago, and the exact time to whoever points at it. Odd text stays as it is."""
    if moment is None:
        return NEVER
    try:
        at = parse_iso(moment).astimezone(UTC) if isinstance(moment, str) else _moment(moment)
    except ValueError:
        return str(moment)
    now = context.get("now")
    shown = ago(at, now) if isinstance(now, datetime) else when(at)
    exact = f"{at.day} {at:%b} {at.year:04d}, {at:%H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp(at), exact, shown)


def _moment(moment: datetime | int) -> datetime:
    return (datetime.fromtimestamp(moment, UTC) if isinstance(moment, int) else moment).astimezone(UTC)


def size(count: int) -> str:
    """Bytes as people read them."""
    amount = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def count(number: int, single: str, many: str = "") -> str:
    """`3 notes`."""
    return f"{number:,} {single if number == 1 else many or single + 's'}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("livememfs.serve.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(part=part, path=path, when=when, clock=clock, plain=plain, stamp=stamp, size=size, place=place)
    made.globals.update(count=count, address=address)
    return made
