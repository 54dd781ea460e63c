"""Structured logs on stderr.

Owns the one configuration of structlog, and removes terminal control codes. Refuses to log twice, or to standard
output, which belongs to the commands. Removes private text: a name or an exception may contain it. A line that cannot
be written is lost, without an error for the caller. Call `configure` once, from a command, before other threads start;
loggers may be used from any thread.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog

from livememfs.shown import harmless, without_login
from livememfs.text.privacy.redaction import redact, redact_value

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Lossy:
    """A stream that drops text it cannot write: a full disk or a closed terminal must not end the mount.

    `stream` is None if a process has no standard error; then all text is dropped.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = _unbuffered(stream) if stream is not None else None

    def write(self, text: str) -> int:
        """Write, if possible."""
        if self._stream is not None:
            with suppress(OSError, ValueError):  # ValueError: it is closed
                self._stream.write(without_login(harmless(text)))
        return len(text)

    def flush(self) -> None:
        """Flush, if possible."""
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.flush()


def configure(level: str = "info", *, json: bool = False, stream: TextIO | None = None) -> None:
    """Send every event of `level` and above to `stream` (stderr), as lines for people or as JSON for programs."""
    stream = stream or sys.stderr
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, sort_keys=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _public,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", Lossy(stream))),  # loggers only call write and flush
        cache_logger_on_first_use=False,
    )
    # pyfuse3, botocore and httpx2 log through the standard library; only their warnings matter.
    logging.basicConfig(
        level=logging.WARNING, stream=cast("TextIO", _Public(stream)), format="%(asctime)s %(name)s: %(message)s"
    )
    logging.getLogger("pyfuse3").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of pyfuse3 is worth logging: not if a caller was only killed before its answer."""
    return "fuse_reply_* failed with No such file or directory" not in record.getMessage()


class _Public(Lossy):
    """A stream that also removes private text."""

    def write(self, text: str) -> int:
        """Write without private text."""
        return super().write(redact(text).text)


def _public(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An event without private text."""
    return {name: redact_value(value)[0] for name, value in event.items()}


def _unbuffered(stream: TextIO) -> TextIO:
    """The same file without a buffer. Python would write a buffered line again at exit; if that fails too, even a
    successful process ends with status 120.
    """
    try:
        file = io.FileIO(stream.fileno(), "w", closefd=False)
    except OSError:  # it is no file
        return stream
    return io.TextIOWrapper(file, "utf-8", "backslashreplace", write_through=True)
