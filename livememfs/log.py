"""Structured logs on stderr.

Owns the one configuration of structlog. Refuses to log twice or to standard output: that belongs to the commands. Call
`configure` once, from the composition root, before other threads start; loggers may be used from any thread.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(level: str = "info", *, json: bool = False, stream: TextIO | None = None) -> None:
    """Send every event of `level` and above to `stream` (stderr), as lines for people or as JSON for programs."""
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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    # pyfuse3, botocore and httpx speak through the standard library: their warnings matter, their chatter does not.
    logging.basicConfig(level=logging.WARNING, stream=stream or sys.stderr, format="%(asctime)s %(name)s: %(message)s")
