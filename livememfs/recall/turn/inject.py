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
"""Files of one session that are remembered as told about."""
MOST_TURNS = 1 << 40
_FILE = "file:"
_FENCE = tokens(HEAD) + tokens(END)


@dataclass(frozen=True)
class Limits:
    """What one turn may bring; the specification's numbers.

    :most:    candidates told in one turn
    :alike:   above this, two of them say the same
    :buffer:  a candidate is compared with so many of those told last
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
    :vector:  of the text; None when there is none, and then only the same words count as the same
    :files:   that the record is about
    """

    id: str
    section: Section
    text: str
    about: str = ""
    vector: Any = None
    files: tuple[str, ...] = ()


@dataclass
class ToldSession:
    """What one conversation was told: ids by the turn, and what was told last.

    :forgotten: how often all of it was forgotten: what was told before is told again
    :looked_up: ids that others told and whose texts were looked up
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
        if not all(isinstance(at, int) and 0 <= at <= MOST_TURNS for at in (turn, forgotten, *told.values())):
            raise Unreadable("a turn is no number, or no possible one")
        return cls(turn, {name: min(at, turn) for name, at in told.items()}, forgotten=forgotten)

    def join(self, other: ToldSession) -> None:
        """Take in what another mount knows of this session: what either of them told, unless it was forgotten since."""
        self.turn = max(self.turn, other.turn)
        if other.forgotten < self.forgotten:
            return
        if other.forgotten > self.forgotten:
            self.forget(other.forgotten)
        self.told |= {name: max(at, self.told.get(name, at)) for name, at in other.told.items()}

    def in_view(self, window: int, turns: int = 1) -> set[str]:
        """Ids of what its model still sees of what it was told, once the session has moved on by so many turns."""
        since = self.turn + turns - window
        return {name for name, turn in self.told.items() if turn > since}

    def forget(self, times: int) -> None:
        """Forget everything that was told; `times`: how often that has happened by now."""
        self.forgotten = times
        self.told.clear()
        self.last.clear()
        self.looked_up.clear()

    def untold(self) -> list[str]:
        """Ids that others told and whose texts were not looked up yet; they count as looked up from now on."""
        names = [name for name in self.told if name not in self.looked_up and not name.startswith(_FILE)]
        self.looked_up.update(names)
        return names


def in_a_line(text: str, most: int) -> str:
    """A text on one line, of at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "\u2026"


def about_file(path: str) -> str:
    """The id under which a session remembers that it was told about a file; the path itself is not kept."""
    return _FILE + blake2b(path.encode("utf-8", "replace"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Told:
    """One turn: what is told, and why the rest is not.

    :left_out: how many were told within the window, say the same as another, or had no room any more
    """

    emitted: tuple[Candidate, ...]
    left_out: dict[str, int]

    @cached_property
    def block(self) -> str:
        """The text for the model."""
        return block(self.emitted)


@dataclass(frozen=True)
class Telling:
    """What a session was told before it answered a message, or opened a file. `asked`: that message, or the path."""

    space: str
    session: str
    asked: str
    told: tuple[Candidate, ...]


class Same(Protocol):
    """Whether a candidate says the same as one that was shown before. Each turn begins with a fresh one."""

    def show(self, others: Sequence[Candidate]) -> None:
        """Take note of candidates that are told, or were."""

    def __call__(self, candidate: Candidate) -> bool:
        """Whether one of those shown says the same; one with the same id does not count."""


class SameWords:
    """See `Same`, for the methods too. Without vectors: only the same words are the same."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}

    def show(self, others: Sequence[Candidate]) -> None:
        for other in others:
            self._ids.setdefault(_plain(other.text), set()).add(other.id)

    def __call__(self, candidate: Candidate) -> bool:
        return bool(self._ids.get(_plain(candidate.text), set()) - {candidate.id})


def tell(
    session: ToldSession,
    candidates: Iterable[Candidate],
    says_the_same: Same | None = None,
    limits: Limits | None = None,
    *,
    turns: int = 1,
) -> Told:
    """Choose among candidates, of which the most important come first, and record what is told. `turns`: how many turns
    the session moves on.
    """
    limits, says_the_same = limits or Limits(), says_the_same or SameWords()
    says_the_same.show([line for candidate in session.last for line in _said(candidate)])
    in_view = session.in_view(limits.window, turns)
    session.turn += turns
    left_out = {"told": 0, "alike": 0, "budget": 0}
    emitted: list[Candidate] = []
    spent = _FENCE
    for given in _each_once(candidates):
        if given.id in in_view:
            left_out["told"] += 1
        elif len(emitted) >= limits.most:
            left_out["budget"] += 1
        elif (candidate := _new_in(given, says_the_same)) is None:
            left_out["alike"] += 1
        elif spent + (cost := _cost(candidate, emitted)) > limits.budget:
            left_out["budget"] += 1
        else:
            emitted.append(candidate)
            says_the_same.show(_said(candidate))
            spent += cost
    _record(session, emitted, limits)
    return Told(tuple(emitted), left_out)


def _cost(candidate: Candidate, emitted: Sequence[Candidate]) -> int:
    """Estimated tokens of one more candidate, the first of a section with the section's title."""
    is_first = all(told.section != candidate.section for told in emitted)
    return cost_of(candidate) + (tokens(TITLES[candidate.section]) if is_first else 0)


def _each_once(candidates: Iterable[Candidate]) -> list[Candidate]:
    unique: dict[str, Candidate] = {}
    for candidate in candidates:
        unique.setdefault(candidate.id, candidate)
    return list(unique.values())


def _said(candidate: Candidate) -> list[Candidate]:
    """The parts that are compared with others: the candidate, or each line of an excerpt of the bank."""
    if candidate.section != "bank" or "\n" not in candidate.text:
        return [candidate]
    return [replace(candidate, text=line) for line in candidate.text.split("\n")]


def _new_in(candidate: Candidate, says_the_same: Same) -> Candidate | None:
    """The candidate if it says something new, of an excerpt only the new lines; None if it says nothing new."""
    lines = _said(candidate)
    new = [line.text for line in lines if not says_the_same(line)]
    return candidate if len(new) == len(lines) else replace(candidate, text="\n".join(new)) if new else None


@lru_cache(4_096)
def _plain(text: str) -> str:
    return " ".join(fold(text).split())


def _record(session: ToldSession, emitted: Sequence[Candidate], limits: Limits) -> None:
    for candidate in emitted:
        session.told[candidate.id] = session.turn
    session.looked_up.update(candidate.id for candidate in emitted)
    again = {candidate.id for candidate in emitted}
    kept = [candidate for candidate in session.last if candidate.id not in again]
    in_view = [candidate for candidate in kept if session.turn - session.told.get(candidate.id, 0) < limits.window]
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
        mine = [_line(candidate) for candidate in emitted if candidate.section == section]
        if mine:
            lines += [title, *mine]
    return fenced("\n".join(lines))


def cost_of(candidate: Candidate) -> int:
    """Estimated tokens of what is told of a candidate."""
    return tokens(_line(candidate))


def _line(candidate: Candidate) -> str:
    text = in_a_line(candidate.text, SHOWN_CHARACTERS)
    return basic(f"- {candidate.about}: {text}" if candidate.about else f"- {text}")
