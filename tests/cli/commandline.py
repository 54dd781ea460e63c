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

    def shows(self, *texts: str) -> None:
        """It ended well, and each of these is on standard output."""
        assert self.code == 0, self.err
        for text in texts:
            assert text in self.out, self.out

    def fails(self, *sentences: str, code: int = 1) -> None:
        """It failed with this status and without a traceback, and says each of these on standard error."""
        assert self.code == code, self.out + self.err
        assert "Traceback" not in self.err, self.err
        for sentence in sentences:
            assert sentence in self.err, self.err


Asks = Callable[..., None]
"""Sets the endpoint of the model, its key and its name."""
Cli = Callable[..., Ended]
"""Runs one command in this process: `cli("space", "list")`, `cli("note", "project", stdin=b"...")`."""
