"""The table of forms, `vendors.txt`: the credentials of known vendors and of everyday commands.

Owns how a line of the table is read, and the search for it. Kinds that need more than a pattern are in `credentials`.
Pure; the table is read once, at import; any thread.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from livememfs.text.privacy import named
from livememfs.text.privacy.searches import EDGE, Search, following, having, is_random, starting

TABLE = Path(__file__).with_name("vendors.txt")


@dataclass(frozen=True, slots=True)
class CredentialForm:
    """One line of the table. The head of the table explains the columns."""

    kind: str
    vendor: str
    way: str
    literal: str
    pattern: str
    example: str
    miss: str


def _read(table: str) -> tuple[CredentialForm, ...]:
    rows = [re.split(" {2,}", line) for line in table.splitlines() if line and not line.startswith("#")]
    return tuple(CredentialForm(*(column.replace("␣", " ").replace("⏎", "\n") for column in row)) for row in rows)


FORMS = _read(TABLE.read_text("utf-8"))
"""All forms. Where two overlap in a text, the earlier one gives the mark."""
_COMMAND = r"[^\r\n|;`]{0,200}"
"""The part of a command that may stand before its password."""


def _is_basic(text: str) -> bool:
    """Whether it is a name and a password in base64."""
    try:
        return b":" in b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return False


_WAYS: dict[str, Callable[[CredentialForm], Search]] = {
    "word": lambda form: starting(form.literal, form.pattern),
    "random": lambda form: starting(form.literal, form.pattern, is_random),
    "after": lambda form: following(form.literal, form.pattern),
    "given": lambda form: following(form.literal, form.pattern, named.is_given),
    "command": lambda form: following(form.literal, form.pattern, named.is_given, within=_COMMAND),
    "header": lambda form: following(form.literal, form.pattern, is_random),
    "basic": lambda form: following(form.literal, form.pattern, _is_basic),
    "inside": lambda form: having(form.literal, re.sub("^@", lambda _: EDGE, form.pattern)),
}


def search(form: CredentialForm) -> Search | None:
    """The search for a form; None for a form that is recognised by its name only."""
    return _WAYS[form.way](form) if form.way != "name" else None
