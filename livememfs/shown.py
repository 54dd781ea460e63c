"""Makes texts of others safe to show: without terminal control codes, and without logins in URLs.

Owns which characters are replaced. Refuses to shorten a text, and to judge its content. Pure; any thread.
"""

from __future__ import annotations

import re

_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""Characters that move the cursor, change colours, ring, or reverse the direction of a line."""
_BREAKING = re.compile(r"[\t\r\n\u2028\u2029]")
_LOGIN = re.compile(r"(?<=://)[^/\s?#]*@")


def harmless(text: str) -> str:
    """A text of any number of lines, with terminal control characters as escapes in the form of JSON."""
    return _STEERING.sub(_escape, text)


def in_a_line(text: str) -> str:
    """The same for a text that must stay on one line, such as a cell of a table."""
    return _BREAKING.sub(_escape, harmless(text))


def without_login(text: str) -> str:
    """A text with `***` in place of user and password in every URL."""
    return _LOGIN.sub("***@", text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
