"""What an agent should know before it answers: which candidates are told, once, and how (spacebot-memory-v2 2.2).

Owns the session's memory of what it was told, the two filters (the same record, the same thing in other words), the
budget, and the form of the block. Refuses to find candidates. Only what was emitted is recorded: a candidate that the
budget cut may come with the next turn. Pure; one session belongs to one thread at a time.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol

from livememfs.recall.words import fold
from livememfs.records.own import END, HEAD, basic, fenced
from livememfs.records.size import tokens

Section = Literal["pinned", "relevant", "live"]

TITLES: dict[Section, str] = {
    "pinned": "Good to know here, whatever is asked:",
    "relevant": "What may matter for this message:",
    "live": "Recent notes (excerpts that fit this message, not a conversation):",
}
SHOWN_CHARACTERS = 600
"""Of one memory or note in a block; the rest can be read in its file."""
COMPARED = 300
"""Characters of what was told that are kept over a restart, to compare with."""
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
class Session:
    """What one conversation was told: ids by the turn, and what was told last."""

    turn: int = 0
    told: dict[str, int] = field(default_factory=dict)
    last: deque[Candidate] = field(default_factory=deque)
    packed: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Vectors of those as they are kept, by id: a turn brings few new ones."""

    def to_json(self) -> dict[str, Any]:
        """What is kept over a restart: with the vectors, as what was told may be gone by then."""
        self.packed = {one.id: self.packed.get(one.id) or _packed(one.vector) for one in self.last}
        last = [[one.id, one.section, one.text[:COMPARED], one.about, self.packed[one.id]] for one in self.last]
        return {"turn": self.turn, "told": self.told, "last": last}

    @classmethod
    def from_json(cls, value: Any) -> Session:
        """A kept session; a new one for what is none."""
        try:
            last = [
                Candidate(str(one[0]), one[1], str(one[2]), str(one[3]), _unpacked(one[4])) for one in value["last"]
            ]
            told = {str(name): int(turn) for name, turn in value["told"].items()}
            return cls(int(value["turn"]), told, deque(last))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return cls()


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
    session: Session,
    candidates: Iterable[Candidate],
    says_the_same: Same | None = None,
    limits: Limits | None = None,
) -> Told:
    """Choose among candidates, the most important first, and take note of what is told. One turn further."""
    limits, says_the_same = limits or Limits(), says_the_same or SameWords()
    says_the_same.show(session.last)
    session.turn += 1
    left_out = {"told": 0, "alike": 0, "budget": 0}
    emitted: list[Candidate] = []
    spent = tokens(HEAD) + tokens(END)
    for one in _each_once(candidates):
        if _is_in_view(session, one, limits):
            left_out["told"] += 1
        elif says_the_same(one):
            left_out["alike"] += 1
        else:
            cost = tokens(_line(one)) + (0 if _has(emitted, one.section) else tokens(TITLES[one.section]))
            if len(emitted) >= limits.most or spent + cost > limits.budget:
                left_out["budget"] += 1
                continue
            emitted.append(one)
            says_the_same.show([one])
            spent += cost
    _record(session, emitted, limits)
    return Told(tuple(emitted), left_out)


def _each_once(candidates: Iterable[Candidate]) -> list[Candidate]:
    found: dict[str, Candidate] = {}
    for one in candidates:
        found.setdefault(one.id, one)
    return list(found.values())


def _is_in_view(session: Session, one: Candidate, limits: Limits) -> bool:
    told = session.told.get(one.id)
    return told is not None and session.turn - told < limits.window


@lru_cache(4_096)
def _plain(text: str) -> str:
    return " ".join(fold(text).split())


def _record(session: Session, emitted: Sequence[Candidate], limits: Limits) -> None:
    for one in emitted:
        session.told[one.id] = session.turn
    again = {one.id for one in emitted}
    kept = [one for one in session.last if one.id not in again]
    in_view = [one for one in kept if session.turn - session.told.get(one.id, 0) < limits.window]
    session.last = deque([*in_view, *emitted], maxlen=limits.buffer)
    session.told = {name: turn for name, turn in session.told.items() if session.turn - turn < limits.window}


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


def _packed(vector: Any) -> str:
    """A vector in eight bits a number, as text."""
    if vector is None:
        return ""
    from livememfs.recall.vectors import packed

    return b64encode(packed(vector).tobytes()).decode()


def _unpacked(text: str) -> Any:
    if not text:
        return None
    import numpy as np

    from livememfs.recall.vectors import unit

    return unit(np.frombuffer(b64decode(text), np.int8))
