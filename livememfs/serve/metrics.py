"""Figures for Prometheus. Pure; any thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(status: Mapping[str, Any]) -> bytes:
    """The figures of `status.json` as text."""
    return f"livememfs_unsaved {status['unsaved']}\n".encode()


def healthy(status: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether it works, and a word for it."""
    return status["state"] == "ok", {"status": status["state"]}
