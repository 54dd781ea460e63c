"""What users have dictated to agents lately, as hooks told it: a note or a memory with just these words is the user's.

Owns the evidence: the prompt itself, which this process has seen come from a hook; a text that says of itself that it
is the user's is no evidence. It lasts for `KEPT`, in memory alone: the bucket may have been written by anybody. Trio
thread only.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from livememfs.errors import NotText
from livememfs.records.sealing import BY_AGENT, Provenance
from livememfs.records.trust import Trust
from livememfs.text.dictation import LONGEST, dictated, same_words
from livememfs.text.fields import decode, split

KEPT = timedelta(minutes=30)
MOST = 64
"""Statements that are kept of one space; the last ones."""
MOST_SPACES = 256
_BY_USER = Provenance(trust=Trust.USER)
_FRONT_MATTER = 32_768


class Dictated:
    """The dictations of all spaces."""

    def __init__(self) -> None:
        self._said: dict[str, list[tuple[datetime, str]]] = {}

    def heard(self, space: str, prompt: str, now: datetime) -> None:
        """A user has written this prompt, as a hook tells."""
        statement = dictated(prompt)
        if not statement:
            return
        said = [*self._said.pop(space, ()), (now, statement)]
        self._said[space] = said[-MOST:]
        while len(self._said) > MOST_SPACES:
            del self._said[next(iter(self._said))]

    def origin(self, space: str, raw: bytes, now: datetime) -> Provenance:
        """How a text that is to be stored in a space came: as the user's own words, or as an agent's."""
        said = [statement for at, statement in self._said.get(space, ()) if timedelta(0) <= now - at <= KEPT]
        if not said or len(raw) > _FRONT_MATTER + 4 * LONGEST:
            return BY_AGENT
        try:
            body = split(decode(raw, ""))[1]
        except NotText:
            return BY_AGENT
        return _BY_USER if any(same_words(statement, body) for statement in said) else BY_AGENT
