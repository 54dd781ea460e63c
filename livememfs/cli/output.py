"""What commands print: tables and sentences for people, JSON for programs.

Removes terminal control codes from all text. Results go to standard output, remarks and errors to standard error, so
that a pipe carries results only. Refuses colours and boxes outside of a terminal. Main thread only.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from livememfs.cli import progress
from livememfs.cli.progress import bar, busy, patience
from livememfs.errors import LiveMemError, UsageError
from livememfs.shown import harmless, in_a_line, without_login

if TYPE_CHECKING:
    from livememfs.spaces.export import Exported

__all__ = ["bar", "busy", "patience"]

SHOWN = 5
"""How many of many names are printed."""


def say(*lines: str) -> None:
    """Plain lines on standard output."""
    progress.hide()
    for line in lines:
        sys.stdout.write(harmless(f"{line}\n"))
    sys.stdout.flush()


def note(*lines: str) -> None:
    """Plain lines on standard error."""
    progress.hide()
    for line in lines:
        sys.stderr.write(harmless(f"{line}\n"))
    sys.stderr.flush()


def take_any_text() -> None:
    """Write characters as escapes where the output cannot encode them: a note may contain any."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def is_lost() -> bool:
    """Whether standard output cannot be written, as on a full disk. If so, later output is dropped, also at exit."""
    try:
        os.write(1, b"\n")  # a blank line before a possible traceback does no harm
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        return True
    return False


def complain(error: LiveMemError) -> None:
    """Print an error in one sentence, with its advice."""
    from livememfs.text.privacy.redaction import redact  # loads slowly

    advice = error.advice()
    note(redact(without_login(f"livememfs: {error}{f' ({advice})' if advice else ''}")).text)


def print_json(value: Any) -> None:
    """One JSON value on standard output; dataclasses, times and paths included."""
    say(json.dumps(value, ensure_ascii=False, indent=2, default=_jsonable))


def answer(value: Any, *lines: str, as_json: bool) -> None:
    """Print what came of a command: JSON for programs, or lines for people."""
    if as_json:
        print_json(value)
    else:
        say(*lines)


def listing(
    values: Any,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    none: str,
    *,
    as_json: bool,
    spare: Sequence[str] = (),
) -> None:
    """Print a list: JSON for programs, a table for people, and the sentence `none` in place of an empty table."""
    if rows and not as_json:
        table(columns, rows, spare=spare)
    else:
        answer(values, none, as_json=as_json)


def confirm(question: str, *, unasked: str, refused: str) -> None:
    """Ask at the terminal. UsageError, with these sentences, if there is none or the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError(unasked)
    note(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError(refused)


def exported(archive: Exported, as_json: bool) -> None:
    """Print which archive was written, and the objects that are not in it."""
    if as_json:
        print_json(archive)
        return
    say(f"{plural(archive.objects, 'object')} in {archive.target} ({size(archive.size)})")
    if archive.left_out:
        names = ", ".join(archive.left_out[:SHOWN]) + (" and others" if len(archive.left_out) > SHOWN else "")
        note(f"left out, because files with such names could not be unpacked: {names}")


def _jsonable(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        from livememfs.text.times import iso

        return iso(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Sequence[str] = (), spare: Sequence[str] = ()
) -> None:
    """A table on standard output.

    :styles: each row's style, in the order of rows
    :spare:  columns that a narrow terminal leaves out, the first one first
    """
    from livememfs.cli import tables

    cells = [[in_a_line(cell) for cell in row] for row in rows]
    if not progress.at_terminal(sys.stdout):
        say(*tables.aligned([list(columns), *cells]))
    elif left_out := tables.show(columns, cells, styles, spare):
        note(f"not shown for want of room: {', '.join(left_out)}; --json has all")


def size(count: int) -> str:
    """Bytes for people: 512 B, 1.5 KiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def when(moment: datetime | None) -> str:
    """A moment for people, in UTC, or a dash."""
    return f"{moment:%Y-%m-%d %H:%M}Z" if moment else "-"


def plural(count: int, single: str, many: str = "") -> str:
    """`1 note`, `2 notes`."""
    return f"{count} {single if count == 1 else many or single + 's'}"
