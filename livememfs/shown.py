"""Texts of others as people are shown them: nothing in them steers a terminal, and no login stands in a URL.

Owns what is left out. Refuses to shorten, and to judge what a text says. Pure; any thread.
"""

from __future__ import annotations

import re

_STEERING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""What moves a cursor, colours, rings, or turns the direction in which a line is read."""
_BREAKING = re.compile(r"[\t\r\n\u2028\u2029]")
_LOGIN = re.compile(r"(?<=://)[^/\s?#]*@")


def harmless(text: str) -> str:
    """A text of any number of lines, with each character that steers a terminal as its escape, which JSON has too."""
    return _STEERING.sub(_escape, text)


def in_a_line(text: str) -> str:
    """The same for what has to stay in its line: a cell of a table."""
    return _BREAKING.sub(_escape, harmless(text))


def without_login(text: str) -> str:
    """A text with `***` for who asks, and by which password, in each URL of it."""
    return _LOGIN.sub("***@", text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
