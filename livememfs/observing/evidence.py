"""What of the told came back: decided without a model, from what hooks report after a telling in the same session.

Owns what counts: the agent names a record, or writes its values, names and words, which it has from nowhere else; or a
file that the record is about is read or changed. Each counts once for a record and session. Decided in a worker thread
after the hook was answered, and bounded: of a flood, events are passed over. Nothing is kept of what was said but its
words, in memory, while the session is one of those used last. Refuses to count what a question, a file or a program's
output has as well: an unclear case is no use. Trio thread only, but for what runs in the worker.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal

import trio

from livememfs.concurrency import in_thread
from livememfs.recall.likeness.echo import Marks, Words, came_back, marks, words
from livememfs.recall.turn.aboutfile import EVERYWHERE
from livememfs.recall.turn.inject import Candidate, Telling, cost_of
from livememfs.records import keys
from livememfs.records.event import READS, Event, as_text
from livememfs.text.filenames import files_in

PAUSE = 0.1
"""Seconds that the work waits, so that whoever reported has its answer before."""
MOST_WAITING = 256
"""Events that wait to be looked at; others that come then are passed over."""
MOST_SESSIONS = 256
MOST_TOLD = 200
"""Records of one session, those told last."""
MOST_KNOWN = 20_000
"""Words of one session that it has from elsewhere. A session that has seen more is not judged by words any more."""
SHORT_NAME = 12
"""Characters of a name that is no word of a text."""
TURNS = 3
"""Turns within which the words of a record may come back: in all that is written in a day they would, by chance."""
MOST_FILES = 8
"""A record that is about more files is about none of them."""
_BEFORE = frozenset(("old_string", "oldstring", "old_str", "oldtext", "old_text"))
"""Fields of editing tools with what stood in the file."""
_DEEPEST = 4
Kind = Literal["said", "file"]


@dataclass(eq=False)
class _Told:
    """A record that was told at a turn: the names it may be called by, its marks, its files, what it was used by."""

    turn: int
    names: tuple[str, ...]
    marks: Marks
    files: tuple[str, ...]
    by: set[Kind] = field(default_factory=set)


@dataclass(eq=False)
class _Session:
    """What one session was told, and words that it has from elsewhere; `shared`: how many records have a mark."""

    turn: int = 0
    told: dict[str, _Told] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    shared: Counter[str] = field(default_factory=Counter)

    def learn(self, text: str) -> None:
        if len(self.known) < MOST_KNOWN:
            self.known |= words(text)

    def came_back(self, told: _Told, text: str, said: Words) -> bool:
        """Whether a text that the agent wrote names a record, or has its words."""
        if any(name in text for name in told.names):
            return True
        may = self.turn - told.turn < TURNS and len(self.known) < MOST_KNOWN
        return may and came_back(said, told.marks, self.known, self.shared)

    def take(self, candidate: Candidate, asked: str) -> None:
        """Take note of a record. One that was told before stays used by what it was used by."""
        before = self.told.pop(candidate.id, None)
        self.shared.subtract(before.marks.keys() if before is not None else ())
        about = candidate.files or tuple(files_in(candidate.text))
        files = tuple(name for name in about if not _is_asked(name, asked)) if len(about) <= MOST_FILES else ()
        by = before.by if before is not None else set()
        told = _Told(self.turn, _names(candidate.id), marks(candidate.text), files, by)
        self.shared.update(told.marks.keys())
        self.told[candidate.id] = told
        while len(self.told) > MOST_TOLD:
            self.shared.subtract(self.told.pop(next(iter(self.told))).marks.keys())


class Evidence:
    """The sessions of one bucket. `told(space, costs)` is called with what was told and the tokens of each,
    `used(space, ids)` with what came back; `quiet()` returns when nobody waits for an answer.
    """

    def __init__(
        self,
        told: Callable[[str, Iterable[tuple[str, int]]], None],
        used: Callable[[str, Sequence[str]], None],
        quiet: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        self._told, self._used, self._quiet = told, used, quiet
        self._waiting: deque[Telling | tuple[str, Event]] = deque()
        self._work, self._one_by_one = trio.Event(), trio.Lock()
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._counts = {"said": 0, "file": 0, "passed_over": 0}

    def tells(self, telling: Telling) -> None:
        """Take note of what a session was told. Costs nothing now."""
        self._wait(telling)

    def heard(self, space: str, event: Event) -> None:
        """Take note of an event, whose fields are shortened. Costs nothing now."""
        self._wait((space, event))

    def _wait(self, item: Telling | tuple[str, Event]) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._counts["passed_over"] += 1
            return
        self._waiting.append(item)
        self._work.set()

    async def run(self) -> None:
        """Look at what was told and heard, until cancelled."""
        while True:
            await self._work.wait()
            await trio.sleep(PAUSE)
            await self._quiet()
            self._work = trio.Event()
            await self.settle()

    async def settle(self) -> None:
        """Look at all that waits."""
        async with self._one_by_one:
            while self._waiting:
                item = self._waiting.popleft()
                if isinstance(item, Telling):
                    self._told(item.space, await in_thread(partial(self._learn, item)))
                elif (session := self._sessions.get((item[0], item[1].session))) is not None:  # it was told something
                    used = await in_thread(partial(_came_back, session, item[1]))
                    for kind, _ in used:
                        self._counts[kind] += 1
                    self._used(item[0], [record for _, record in used])

    def _learn(self, telling: Telling) -> list[tuple[str, int]]:
        """Take note of the records of a telling; what each cost. In the worker thread."""
        place = telling.space, telling.session
        session = self._sessions[place] = self._sessions.pop(place, _Session())
        while len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session.learn(telling.asked)
        for candidate in telling.told:
            session.take(candidate, telling.asked)
        return [(candidate.id, cost_of(candidate)) for candidate in telling.told]

    def statistics(self) -> dict[str, int]:
        """Uses since the start by what was said and by files, events that were passed over, and those that wait."""
        return {**self._counts, "waiting": len(self._waiting)}


def _came_back(session: _Session, event: Event) -> list[tuple[Kind, str]]:
    """What an event uses of what its session was told, each once. In the worker thread."""
    if event.kind == "prompt":
        session.turn += 1
        session.learn(event.text)
        return []
    paths = [path for of_a_kind in event.files() for path in of_a_kind] or list(files_in(event.command()))
    used = _first(session, "file", lambda told: any(_is_file(path, name) for name in told.files for path in paths))
    text = event.text if event.kind == "said" else _written(event)
    if text:
        said = Words(text)
        used += _first(session, "said", lambda told: session.came_back(told, text, said))
    session.learn(as_text(event.output))  # afterwards: what was written before this was seen was not taken from it
    return used


def _first(session: _Session, kind: Kind, is_used: Callable[[_Told], bool]) -> list[tuple[Kind, str]]:
    """The records that are used like this for the first time."""
    used = [(name, told) for name, told in session.told.items() if kind not in told.by and is_used(told)]
    for _, told in used:
        told.by.add(kind)
    return [(kind, name) for name, _ in used]


def _written(event: Event) -> str:
    """What an agent itself wrote into a tool's input: nothing of a tool that reads files."""
    return "" if event.tool.lower() in READS else "\n".join(_texts(event.input))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for name, inner in value.items():
            if name.lower() not in _BEFORE:
                yield from _texts(inner, depth + 1)
    elif isinstance(value, list) and depth < _DEEPEST:
        for inner in value:
            yield from _texts(inner, depth + 1)


def _names(record: str) -> tuple[str, ...]:
    """What a record may be called: the name of its object, with the folder where it is short, and `#` with the id of an
    observation. A section of the bank has no name of its own.
    """
    _, folder, name = (*record.split("/", 2), "", "")[:3]
    if folder == keys.BANK or not name:
        return ()
    if len(name) < SHORT_NAME:
        return (f"{folder}/{name}",)
    uid = keys.ending(f"{name}.md")
    return (name, f"#{uid}") if folder == keys.OBSERVATIONS and uid else (name,)


def _is_file(path: str, name: str) -> bool:
    """Whether a path is that of a file which a record calls by a name, perhaps by the last parts of its path."""
    path, name = f"/{path.removeprefix('./').lstrip('/')}", f"/{name.removeprefix('./').lstrip('/')}"
    shorter = min(path, name, key=len)
    tells = shorter.count("/") > 1 or PurePosixPath(shorter).stem.casefold() not in EVERYWHERE
    return tells and (path.endswith(name) or name.endswith(path))


def _is_asked(name: str, asked: str) -> bool:
    """Whether a question names a file, or is the path of it."""
    return PurePosixPath(name).name in asked
