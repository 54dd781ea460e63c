"""The signs of life of a command, on standard error: a spinner, a bar, and a word after two seconds without either.

Owns that only one of them is seen at a time. Refuses to write where there is no terminal. `bar` and `busy` belong to
the main thread, `patience` starts a thread of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from livememfs.shown import in_a_line

PATIENCE_SECONDS = 2.0
"""Seconds for which nobody wonders."""
_lock = threading.Lock()
_seen: list[Any] = []
"""What `patience` shows now: one spinner, or nothing."""
_others = 0
"""How many bars and spinners of commands there are now."""


def at_terminal(stream: TextIO) -> bool:
    """Whether a person sees what is written there."""
    return stream.isatty()


@contextmanager
def patience(text: str) -> Iterator[None]:
    """Show a spinner if the work takes more than two seconds and has no sign of life of its own."""
    if not at_terminal(sys.stderr):
        yield
        return
    timer = threading.Timer(PATIENCE_SECONDS, _show, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        hide()


def _show(text: str) -> None:
    with _lock:
        if not _others and not _seen:
            status = _status(text)
            status.start()
            _seen.append(status)


def hide() -> None:
    """Take the spinner of `patience` away, before something else is written."""
    with _lock:
        while _seen:
            _seen.pop().stop()


@contextmanager
def busy(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner during some work; the yielded function changes its text."""
    if not at_terminal(sys.stderr):
        yield lambda _: None
        return
    with _alone(), _status(text) as status:
        yield lambda now: status.update(_plain(now))


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar; the yielded function takes the count done and the total."""
    if not at_terminal(sys.stderr):
        yield lambda _, __: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with _alone(), Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(_plain(text), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def _alone() -> Iterator[None]:
    """Let no other spinner begin."""
    global _others
    with _lock:
        _others += 1
    hide()
    try:
        yield
    finally:
        with _lock:
            _others -= 1


def _status(text: str) -> Any:
    from rich.console import Console

    return Console(stderr=True).status(_plain(text))


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(in_a_line(text))
