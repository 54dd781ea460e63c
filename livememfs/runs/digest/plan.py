"""The check of a model's reply to a digest: it becomes facts to store, or is refused with every reason (design rule 5).

Owns all checks of such a reply. Refuses the whole reply for one fault and repairs nothing; it lists all faults, so that
the only retry can mend them all. Pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from livememfs.errors import ReplyRefused
from livememfs.llm.base import ChatReply
from livememfs.records import keys
from livememfs.records.ledger import Unsourced
from livememfs.records.memory import CATEGORIES, TYPES, expiry
from livememfs.records.trust import USUAL, Trust, least
from livememfs.runs.batches import Joined, RequestRoom
from livememfs.runs.coverage import Coverage, Fate
from livememfs.runs.digest.inputs import DigestInputs, KnownMemory, within
from livememfs.runs.pieces import NotePiece
from livememfs.runs.reply import (
    decoded,
    front_matter_faults,
    hard_facts,
    listed,
    printable,
    shown,
    sources_of,
    text_faults,
)
from livememfs.text.facts.sources import Sources
from livememfs.text.privacy import redaction as privacy

MAX_FACT_BYTES = 4_096
"""A memory has a few sentences at most. A longer text is a note."""
MAX_SUBJECTS = 20
MAX_SUBJECT_CHARS = 100

_KEYS = {"memories", "skipped"}
_FACT_KEYS = {"content", "subjects", "type", "ttl", "importance", "collection", "category", "sources", "corrects"}
_NEEDED = ("content", "subjects", "type", "ttl", "sources")
LARGEST = 100_000
"""No request has so many memories."""
_ANY_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class DigestFact:
    """A fact that becomes a memory.

    :ttl:       how long it lasts (`7d`); None: for ever
    :importance: None: that of its type
    :category:  empty: the first one of its collection
    :sources:   numbers of the notes that it comes from
    :unsourced: numbers, dates and the like that no note has
    :corrects:  the key, relative to the space, of a memory whose place it takes
    :same_as:   the key, relative to the space, of a memory with the same words; nothing is stored then
    :trust:     that of the least of the notes in its request
    """

    content: str
    subjects: tuple[str, ...]
    type: str
    ttl: str | None
    sources: tuple[int, ...]
    importance: float | None = None
    collection: str = keys.MEMORIES
    category: str = ""
    unsourced: tuple[str, ...] = ()
    same_as: str = ""
    corrects: str = ""
    trust: Trust = USUAL


@dataclass(frozen=True)
class DigestPlan:
    """What a digest is going to store.

    :facts:    in the reply's order
    :coverage: what became of each note; for a note that was used, the collections
    :verbatim: the facts are the notes themselves: no model has read and judged them
    :proposed: the space asks a person first: they wait in `.proposals/`
    """

    facts: tuple[DigestFact, ...]
    coverage: Coverage
    unsourced: tuple[Unsourced, ...] = ()
    warnings: tuple[str, ...] = ()
    verbatim: bool = False
    proposed: bool = False

    @property
    def new(self) -> tuple[DigestFact, ...]:
        """The facts that no memory has yet."""
        return tuple(fact for fact in self.facts if not fact.same_as)


def plan_from_reply(reply: ChatReply, inputs: DigestInputs, *, lenient: bool = False) -> DigestPlan:
    """The plan in a model's reply. Raises ReplyRefused, whose detail lists every fault.

    :lenient: dates, versions, references and paths that no source has are marked like numbers, and not refused
    """
    return make_plan(decoded(reply), inputs, lenient=lenient)


def make_plan(
    reply: Mapping[str, Any], inputs: DigestInputs, *, lenient: bool = False, verbatim: bool = False
) -> DigestPlan:
    """The plan in a decoded reply. Raises ReplyRefused. `verbatim`: the reply is not from a model."""
    reply = privacy.redact_value(reply)[0]
    faults = [f'the key "{key}" is missing' for key in sorted(_KEYS) if key not in reply]
    faults += [f"the key {shown(key)} is unknown" for key in reply if key not in _KEYS]
    count = len(inputs.notes)
    facts = _read_facts(reply.get("memories", []), count, verbatim, faults)
    facts = [_correcting(number, fact, inputs.known, faults) for number, fact in enumerate(facts, 1)]
    fates = _fates(facts, _read_skipped(reply.get("skipped", []), count, faults), faults)
    if not fates and not faults:
        faults.append("it says of no note what became of it")
    if faults:
        raise ReplyRefused(listed(faults))
    sources = sources_of(inputs, (known.content for known in inputs.known))
    judged = [_judged(fact, sources, inputs.known) for fact in facts]
    # A model has seen all of the notes, whichever it names.
    seen = [inputs.notes if not verbatim else [inputs.notes[n - 1] for n in fact.sources] for fact in facts]
    judged = [replace(fact, trust=least(live.trust for live in of)) for fact, of in zip(judged, seen, strict=True)]
    invented = [fault for number, fact in enumerate(judged, 1) for fault in _invented(number, fact)]
    if invented and not lenient:
        raise ReplyRefused(listed(invented))
    warnings = tuple(f"{fact.same_as} says this already: {shown(fact.content)}" for fact in judged if fact.same_as)
    new = [fact for fact in judged if fact.unsourced and not fact.same_as]
    unsourced = tuple(Unsourced(fact.collection, 1, fact.content, fact.unsourced) for fact in new)
    return DigestPlan(tuple(judged), Coverage(fates), unsourced, warnings, verbatim, inputs.meta.proposals)


class JoinedFacts(Joined[DigestInputs, DigestPlan]):
    """The facts of the batches so far."""

    def __init__(self, inputs: DigestInputs) -> None:
        super().__init__(inputs)
        self._facts: list[DigestFact] = []
        self._unsourced: list[Unsourced] = []
        self._warnings: list[str] = []

    def part(self, batch: Sequence[NotePiece], room: RequestRoom) -> tuple[DigestInputs, int]:
        """The notes of one request, and the memories that are known by now; none of a lower class than the notes."""
        stored = [
            KnownMemory(f"{fact.collection}/", fact.type, fact.content, fact.subjects, fact.trust)
            for fact in self._facts
        ]
        notes = tuple(sent.live for sent in batch)
        least_of = least(live.trust for live in notes)
        higher = [known for known in (*reversed(stored), *self._inputs.known) if known.trust >= min(least_of, USUAL)]
        known = within(higher, self._inputs.room)
        return replace(self._inputs, notes=notes, known=known), len(batch)

    def add(self, batch: Sequence[NotePiece], plan: DigestPlan) -> None:
        """Add the plan of one request."""
        for fact in plan.facts:
            sources = tuple(dict.fromkeys(batch[number - 1].number for number in fact.sources))
            if fact.same_as.endswith("/"):  # the fact of an earlier batch of this run: its key is not known yet
                earlier = next(n for n, known_fact in enumerate(self._facts) if _says(known_fact) == _says(fact))
                known = dict.fromkeys((*self._facts[earlier].sources, *sources))
                self._facts[earlier] = replace(self._facts[earlier], sources=tuple(known))
            else:
                self._facts.append(replace(fact, sources=sources))
        self._unsourced += plan.unsourced
        self._warnings += plan.warnings

    def plan(self, coverage: Coverage) -> DigestPlan:
        """One plan for all requests."""
        return DigestPlan(
            tuple(self._facts),
            coverage,
            tuple(self._unsourced),
            tuple(self._warnings),
            proposed=self._inputs.meta.proposals,
        )


# --- reading ------------------------------------------------------------------------------------------------------


def _read_facts(value: object, count: int, verbatim: bool, faults: list[str]) -> list[DigestFact]:
    """The facts of a reply to `count` notes, without those that have a fault of their own."""
    if not isinstance(value, list):
        faults.append('"memories" is not a list')
        return []
    facts: list[DigestFact] = []
    for number, entry in enumerate(value, 1):
        own: list[str] = []
        fact = _read_fact(entry, count, verbatim, own)
        if fact is not None and _says(fact) in map(_says, facts):
            own.append("another one says the same")
        faults += [f"memory {number}: {printable(fault)}" for fault in own]
        if fact is not None and not own:
            facts.append(fact)
    return facts


def _read_fact(entry: object, count: int, verbatim: bool, faults: list[str]) -> DigestFact | None:
    if not isinstance(entry, dict):
        faults.append("it is not an object")
        return None
    faults += [f'"{key}" is missing' for key in _NEEDED if key not in entry]
    faults += [f"the key {shown(key)} is unknown" for key in entry if key not in _FACT_KEYS]
    if faults:
        return None
    content, collection = entry["content"], entry.get("collection") or keys.MEMORIES
    faults += text_faults(content, MAX_FACT_BYTES)
    if isinstance(content, str) and not faults and not verbatim:
        faults += front_matter_faults(content)
    if collection not in keys.COLLECTIONS:
        faults.append(f"the collection {shown(collection)} is none of {', '.join(keys.COLLECTIONS)}")
        return None
    faults += _choice_faults(entry, collection)
    corrects = entry.get("corrects")
    if corrects is not None and not _is_note(corrects, LARGEST):
        faults.append(f"what it corrects, {shown(corrects)}, is no number of a memory")
    subjects, sources = _read_subjects(entry["subjects"], faults), _read_sources(entry["sources"], count, faults)
    if faults:
        return None
    return DigestFact(
        content.strip("\r\n") if verbatim else content.strip(),
        subjects,
        entry["type"],
        entry["ttl"],
        sources,
        entry.get("importance"),
        collection,
        entry.get("category") or "",
        corrects=str(corrects or ""),
    )


def _choice_faults(entry: Mapping[str, Any], collection: str) -> list[str]:
    faults = []
    kind, ttl, weight, category = entry["type"], entry["ttl"], entry.get("importance"), entry.get("category")
    if not isinstance(kind, str) or kind not in TYPES:
        faults.append(f"the type {shown(kind)} is none of {', '.join(TYPES)}")
    if ttl is not None and (not isinstance(ttl, str) or expiry(ttl, _ANY_MOMENT) is None):
        faults.append(f'the ttl {shown(ttl)} is neither null nor a time as "7d" or "12h"')
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if weight is not None and not (number and 0 <= weight <= 1):
        faults.append(f"the importance {shown(weight)} is no number from 0 to 1")
    if category and category not in CATEGORIES[collection]:
        known = ", ".join(CATEGORIES[collection])
        faults.append(f"the category {shown(category)} is " + (f"none of {known}" if known else "for self and goals"))
    return faults


def _read_subjects(value: object, faults: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word.strip() for word in value):
        faults.append('"subjects" is not a list of words')
        return ()
    if len(value) > MAX_SUBJECTS or any(len(word) > MAX_SUBJECT_CHARS for word in value):
        faults.append(f"subjects are at most {MAX_SUBJECTS}, of at most {MAX_SUBJECT_CHARS} characters")
        return ()
    if odd := [word for word in value if not word.isprintable()]:
        faults.append(f"the subject {shown(odd[0])} has a character that cannot be seen")
        return ()
    return tuple({word.casefold(): word.strip() for word in reversed(value)}.values())[::-1]


def _read_sources(value: object, count: int, faults: list[str]) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        faults.append('"sources" names no note')
        return ()
    if wrong := [number for number in value if not _is_note(number, count)]:
        faults.append(f"the source {shown(wrong[0])} is not a number from 1 to {count}")
        return ()
    return tuple(dict.fromkeys(value))


def _read_skipped(value: object, count: int, faults: list[str]) -> dict[int, str]:
    if not isinstance(value, list):
        faults.append('"skipped" is not a list')
        return {}
    reasons: dict[int, str] = {}
    for position, entry in enumerate(value, 1):
        fault = _skipped_fault(entry, count, reasons)
        if fault:
            faults.append(f"skipped, entry {position}: {fault}")
        else:
            reasons[entry["note"]] = entry["reason"].encode("utf-8", "backslashreplace").decode()
    return reasons


def _skipped_fault(entry: object, count: int, reasons: Mapping[int, str]) -> str:
    if not isinstance(entry, dict) or entry.keys() != {"note", "reason"}:
        return 'it is not an object with "note" and "reason"'
    if not _is_note(entry["note"], count):
        return f'"note" is not a number from 1 to {count}'
    if not isinstance(entry["reason"], str) or not entry["reason"].strip():
        return '"reason" gives none'
    return f"note {entry['note']} is there twice" if entry["note"] in reasons else ""


def _is_note(value: object, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= count


def _fates(facts: list[DigestFact], skipped: Mapping[int, str], faults: list[str]) -> dict[int, Fate]:
    """What became of each note that the reply accounts for."""
    fates = {number: Fate(skipped=reason) for number, reason in skipped.items()}
    for fact in facts:
        for number in fact.sources:
            if number in skipped:
                faults.append(f"note {number} is both a source and skipped")
            fates[number] = Fate(used_in=tuple(dict.fromkeys((*fates.get(number, Fate()).used_in, fact.collection))))
    return dict(sorted(fates.items()))


def _correcting(position: int, fact: DigestFact, known: Sequence[KnownMemory], faults: list[str]) -> DigestFact:
    """With the key of the memory that the reply names by its number. One of another collection, and one that is not
    stored yet, are left out: the fact is stored, and compared with others as any is.
    """
    if not fact.corrects:
        return fact
    if int(fact.corrects) > len(known):
        faults.append(f"memory {position}: it corrects memory {fact.corrects}, and there are {len(known)}")
        return fact
    key = known[int(fact.corrects) - 1].key
    return replace(fact, corrects=key if key.startswith(f"{fact.collection}/") and not key.endswith("/") else "")


# --- judging ------------------------------------------------------------------------------------------------------


def _says(memory: DigestFact | KnownMemory) -> tuple[str, str]:
    """Equal for two memories with the same words, even if case and line breaks differ."""
    return memory.collection, " ".join(memory.content.split()).casefold()


def _judged(fact: DigestFact, sources: Sources, known: tuple[KnownMemory, ...]) -> DigestFact:
    """The fact with its details that no source has, and with the memory that has the same words."""
    missing = [text for line in fact.content.splitlines() for text in sources.unknown(line)]
    same = next((memory.key for memory in known if _says(memory) == _says(fact)), "")
    return replace(fact, unsourced=tuple(dict.fromkeys(missing)), same_as=same)


def _invented(number: int, fact: DigestFact) -> list[str]:
    hard = hard_facts(fact.unsourced)
    return [f"memory {number}: no note and no memory has {hard}: {shown(fact.content)}"] if hard else []
