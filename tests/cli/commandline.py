"""How a command ended, for the tests of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ended:
    """Exit status and what was printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.out)


Cli = Callable[..., Ended]
"""Runs one command in this process: `cli("space", "list")`, `cli("note", "project", stdin=b"...")`."""
