"""What an agent should know before it answers: which candidates are told, once, and how (spacebot-memory-v2 2.2).

Owns the session's memory of what it was told, the two filters (the same record, the same thing in other words), the
budget, and the form of the block. Refuses to find candidates. Only what was emitted is recorded: a candidate that the
budget cut may come with the next turn. Pure; one session belongs to one thread at a time.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Literal, Protocol

from livememfs.recall.index.words import fold
from livememfs.text.foreign import Unreadable, read_object, take
from livememfs.text.own import END, HEAD, basic, fenced
from livememfs.text.size import tokens

Section = Literal["pinned", "relevant", "bank", "live", "file"]

TITLES: dict[Section, str] = {
    "pinned": "Good to know here, whatever is asked:",
    "relevant": "What may matter for this message:",
    "bank": "From the bank, what is settled (excerpts that fit this message):",
    "live": "Recent notes (excerpts that fit this message, not a conversation):",
    "file": "What is known about this file:",
}
SHOWN_CHARACTERS = 600
"""Of one memory or note in a block; the rest can be read in its file."""
MOST_FILES = 1_000
"""Files of one session of which is known that they were told about."""
MOST_TURNS = 1 << 40
_FILE = "file:"
_ELSEWHERE = "\u2026"


@dataclass(frozen=True)
class Limits:
    """What one turn may bring; the specification's numbers.

    :most:    candidates told in one turn
    :alike:   above this, two of them say the same
    :buffer:  how many of those told last are compared with
    :window:  turns after which something may be told again, as it has left the model's view
    :budget:  estimated tokens of a block
    """

    most: int = 20
    alike: float = 0.85
    buffer: int = 100
    window: int = 20
    budget: int = 1_000


@dataclass(frozen=True)
class Candidate:
    """Something that may be told.

    :id:      the same for the same record, whatever its version
    :text:    what is said of it
    :about:   what stands before the text: its type, who wrote it and when
    :vector:  for whoever compares; None when there is none, and then only the same words are the same
    """

    id: str
    section: Section
    text: str
    about: str = ""
    vector: Any = None


@dataclass
class ToldSession:
    """What one conversation was told: ids by the turn, and what was told last.

    :forgotten: how often all of it was forgotten: what was told before is told again
    :looked_up: ids of which the texts were asked for, as somebody else told them
    """

    turn: int = 0
    told: dict[str, int] = field(default_factory=dict)
    last: deque[Candidate] = field(default_factory=deque)
    forgotten: int = 0
    looked_up: set[str] = field(default_factory=set, repr=False, compare=False)

    def render(self) -> bytes:
        """The object of the bucket: ids alone, whose texts are in the bucket."""
        value = {"turn": self.turn, "forgotten": self.forgotten, "told": self.told}
        return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "replace")

    @classmethod
    def parse(cls, data: bytes) -> ToldSession:
        """What an object says. Raises Unreadable."""
        value = read_object(data)
        turn, forgotten, told = take(value, "turn", int), take(value, "forgotten", int, 0), take(value, "told", dict)
        if not all(isinstance(one, int) and 0 <= one <= MOST_TURNS for one in (turn, forgotten, *told.values())):
            raise Unreadable("a turn is no number, or no possible one")
        return cls(turn, {name: min(at, turn) for name, at in told.items()}, forgotten=forgotten)

    def join(self, other: ToldSession) -> None:
        """Take in what another mount knows of this session: what either told was told, unless forgotten since."""
        self.turn = max(self.turn, other.turn)
        if other.forgotten < self.forgotten:
            return
        if other.forgotten > self.forgotten:
            self.forget(other.forgotten)
        self.told |= {name: max(at, self.told.get(name, at)) for name, at in other.told.items()}

    def forget(self, times: int) -> None:
        """Have been told nothing; `times`: how often that was so by now."""
        self.forgotten = times
        self.told.clear()
        self.last.clear()
        self.looked_up.clear()

    def untold(self) -> list[str]:
        """Ids of what was told by others, whose texts nobody has asked for yet; from now on they were."""
        found = [name for name in self.told if name not in self.looked_up and not name.startswith(_FILE)]
        self.looked_up.update(found)
        return found


def about_file(path: str) -> str:
    """The id under which a session remembers that it was told about a file; the path itself is not kept."""
    return _FILE + blake2b(path.encode("utf-8", "replace"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Told:
    """One turn: what is told, and why the rest is not.

    :left_out: how many were told within the window, say what another says, or did not fit
    """

    emitted: tuple[Candidate, ...]
    left_out: dict[str, int]

    @cached_property
    def block(self) -> str:
        """The text for the model."""
        return block(self.emitted)


class Same(Protocol):
    """Whether a candidate says what another one says, of those that it was shown; a fresh one for each turn."""

    def show(self, others: Sequence[Candidate]) -> None:
        """These are told, or were."""
        ...

    def __call__(self, one: Candidate) -> bool:
        """Whether one of those shown says the same; one with the same id does not count."""
        ...


class SameWords:
    """What can be told without vectors."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}

    def show(self, others: Sequence[Candidate]) -> None:
        """See `Same`."""
        for other in others:
            self._ids.setdefault(_plain(other.text), set()).add(other.id)

    def __call__(self, one: Candidate) -> bool:
        """See `Same`."""
        return bool(self._ids.get(_plain(one.text), set()) - {one.id})


def tell(
    session: ToldSession,
    candidates: Iterable[Candidate],
    says_the_same: Same | None = None,
    limits: Limits | None = None,
    *,
    turns: int = 1,
) -> Told:
    """Choose among candidates, the most important first, and take note of what is told; so many turns further."""
    limits, says_the_same = limits or Limits(), says_the_same or SameWords()
    says_the_same.show([line for one in session.last for line in _said(one)])
    session.turn += turns
    left_out = {"told": 0, "alike": 0, "budget": 0}
    emitted: list[Candidate] = []
    spent = tokens(HEAD) + tokens(END)
    for given in _each_once(candidates):
        if _is_in_view(session, given, limits):
            left_out["told"] += 1
        elif (one := _new_in(given, says_the_same)) is None:
            left_out["alike"] += 1
        else:
            cost = tokens(_line(one)) + (0 if _has(emitted, one.section) else tokens(TITLES[one.section]))
            if len(emitted) >= limits.most or spent + cost > limits.budget:
                left_out["budget"] += 1
                continue
            emitted.append(one)
            says_the_same.show(_said(one))
            spent += cost
    _record(session, emitted, limits)
    return Told(tuple(emitted), left_out)


def _each_once(candidates: Iterable[Candidate]) -> list[Candidate]:
    found: dict[str, Candidate] = {}
    for one in candidates:
        found.setdefault(one.id, one)
    return list(found.values())


def _said(one: Candidate) -> list[Candidate]:
    """What others may say as well: a candidate, or each line of an excerpt."""
    if one.section != "bank" or "\n" not in one.text:
        return [one]
    return [replace(one, text=line) for line in one.text.split("\n")]


def _new_in(one: Candidate, says_the_same: Same) -> Candidate | None:
    """What a candidate says that nobody else said: of an excerpt, the lines that are new."""
    said = _said(one)
    new = [line.text for line in said if not says_the_same(line)]
    return one if len(new) == len(said) else replace(one, text="\n".join(new)) if new else None


def _is_in_view(session: ToldSession, one: Candidate, limits: Limits) -> bool:
    told = session.told.get(one.id)
    return told is not None and session.turn - told < limits.window


@lru_cache(4_096)
def _plain(text: str) -> str:
    return " ".join(fold(text).split())


def _record(session: ToldSession, emitted: Sequence[Candidate], limits: Limits) -> None:
    for one in emitted:
        session.told[one.id] = session.turn
    session.looked_up.update(one.id for one in emitted)
    again = {one.id for one in emitted}
    kept = [one for one in session.last if one.id not in again]
    in_view = [one for one in kept if session.turn - session.told.get(one.id, 0) < limits.window]
    session.last = deque([*in_view, *emitted], maxlen=limits.buffer)
    files = [name for name in session.told if name.startswith(_FILE)][-MOST_FILES:]
    in_window = {name: turn for name, turn in session.told.items() if session.turn - turn < limits.window}
    session.told = {**{name: session.told[name] for name in files}, **in_window}
    session.looked_up &= session.told.keys()


# --- the block -----------------------------------------------------------------------------------------------------


def block(emitted: Sequence[Candidate]) -> str:
    """The text for the model; the same candidates give the same bytes."""
    lines: list[str] = []
    for section, title in TITLES.items():
        mine = [_line(one) for one in emitted if one.section == section]
        if mine:
            lines += [title, *mine]
    return fenced("\n".join(lines))


def _has(emitted: Sequence[Candidate], section: Section) -> bool:
    return any(one.section == section for one in emitted)


def _line(one: Candidate) -> str:
    text = " ".join(one.text.split())
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 1].rstrip() + _ELSEWHERE
    return basic(f"- {one.about}: {text}" if one.about else f"- {text}")
