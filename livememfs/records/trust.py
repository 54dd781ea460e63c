"""Whose words a record has: its class of trust, which decides how it is told.

Owns the classes, their order, and where one is kept: a stamp in the metadata of the object, which only the daemon
writes, and the field `trust` in front matter, which goes wherever the text goes. A text can lower its class by its
fields, and never raise it. Refuses to look at what the text says. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from livememfs.errors import NotPermitted
from livememfs.records import keys
from livememfs.records.agentnames import AGENTS
from livememfs.records.metadata import META_TRUST

FIELD = "trust"
"""The field of front matter. It is written for what is below an agent's words, and where somebody set the class."""


class Trust(IntEnum):
    """The classes, the lowest first: the fewer people who could have planted the words, the higher.

    :WEB:      a page or a mail: anybody
    :TOOL:     the output of a tool: whoever wrote a file, a commit or an issue that it read
    :IMPORTED: another program's memory, which a person chose to bring here
    :AGENT:    what an agent wrote: its own conclusions
    :USER:     what the user said, or a person has vouched for
    """

    WEB = 1
    TOOL = 2
    IMPORTED = 3
    AGENT = 4
    USER = 5

    @property
    def word(self) -> str:
        """Its name in metadata, front matter and commands."""
        return self.name.lower()

    @property
    def mark(self) -> str:
        """What stands beside words of this class that are told; empty from an agent's words on."""
        return _MARKS.get(self, "")

    @classmethod
    def named(cls, text: object) -> Trust | None:
        """The class with this name, in any case; None for anything else."""
        return cls.__members__.get(text.strip().upper()) if isinstance(text, str) else None


_MARKS = {Trust.WEB: "from the web", Trust.TOOL: "from tool output", Trust.IMPORTED: "imported"}
USUAL = Trust.AGENT
"""Of notes, memories and bank files that say nothing of it: older ones, and those that other programs put there."""
DERIVED = Trust.TOOL
"""Of observations and summaries that say nothing of it: they are made of what tools gave out."""
BY_KIND = {keys.OBSERVATIONS: DERIVED, keys.SESSIONS: DERIVED}
"""The usual class by the folder of a record, where it is another than USUAL."""
_SOURCES = {
    "web": Trust.WEB, "http": Trust.WEB, "https": Trust.WEB, "url": Trust.WEB, "mail": Trust.WEB, "mailto": Trust.WEB,
    "email": Trust.WEB, "tool": Trust.TOOL, "import": Trust.IMPORTED, "imported": Trust.IMPORTED,
}  # fmt: skip


def of_source(source: object) -> Trust:
    """The highest class that the field `source` leaves: `web:evil.example` is from the web, whatever else is said."""
    texts = source if isinstance(source, list | tuple) else [source]
    kinds = (text.strip().partition(":")[0].strip().lower() for text in texts if isinstance(text, str))
    return min((_SOURCES.get(kind, Trust.USER) for kind in kinds), default=Trust.USER)


def trust_of(meta: Mapping[str, str] | None, fields: Mapping[str, Any], usual: Trust = USUAL) -> Trust:
    """The class of a stored record, by the metadata of its object and its front matter; `usual` if neither says it.

    Without a stamp it is at most USUAL. `source` counts only then: who stamped the object has looked at it, and a
    person may have vouched for it.
    """
    stamp, claimed = Trust.named((meta or {}).get(META_TRUST)), Trust.named(fields.get(FIELD))
    if stamp is not None:
        return min(stamp, claimed or stamp)
    return min(USUAL, claimed or usual, of_source(fields.get("source")))


def trust_written(origin: Trust, fields: Mapping[str, Any], was: Trust | None, old_source: object = None) -> Trust:
    """The class of what somebody writes now.

    :origin:     how the words came
    :fields:     their front matter, which can only lower it
    :was:        the class of the version that they replace; the user's own words owe it nothing
    :old_source: the `source` of that version: it was judged when that was stored
    """
    source = fields.get("source")
    said = Trust.USER if was is not None and source == old_source else of_source(source)
    claimed = min(Trust.named(fields.get(FIELD)) or Trust.USER, said)
    return min(origin, claimed) if was is None or origin is Trust.USER else min(origin, claimed, was)


def least(classes: Iterable[Trust], usual: Trust = Trust.USER) -> Trust:
    """The class of what is made of several records: that of the least of them; `usual` when there is none."""
    return min(classes, default=usual)


def check_raise(path: str, was: Trust, trust: Trust, by: str) -> None:
    """NotPermitted when an agent would raise a class: it may do what a planted text asks for. `by`: who asks."""
    if trust > was and by in AGENTS:
        what = f"{by} is an agent, and only a person raises the trust of a record, in a terminal of their own"
        raise NotPermitted(what, path=path)


def vouched(fields: Mapping[str, Any], trust: Trust) -> dict[str, Any]:
    """Fields of front matter to which somebody gave this class: it is always named, so that the content changes and
    every host hears of it.
    """
    return {**fields, FIELD: trust.word}


def stamp(trust: Trust, source: object = None) -> dict[str, str]:
    """The metadata of an object of this class, which has this `source`. None for what it counts as without."""
    return {META_TRUST: trust.word} if trust is not min(USUAL, of_source(source)) else {}


def kept_stamp(meta: Mapping[str, str] | None) -> dict[str, str]:
    """What a copy of an object under another name keeps of its metadata: whose words it has."""
    return {name: value for name, value in (meta or {}).items() if name == META_TRUST}


def with_trust(fields: Mapping[str, Any], trust: Trust) -> dict[str, Any]:
    """Fields of front matter that say this class, and no other."""
    others = {name: value for name, value in fields.items() if name != FIELD}
    return others if trust is USUAL else {**others, FIELD: trust.word}
