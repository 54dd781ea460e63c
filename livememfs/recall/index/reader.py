"""From an object of the bucket to what can be found in it.

Owns the decision which objects are indexed, and how they are cut: notes, memories and summaries stay whole, an
observation is its narrative and its facts, a bank file is cut at its headings. Refuses to fail on an object: one that
is not text, or is empty, has no records. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

import structlog

from livememfs.code.anchor import Claim
from livememfs.errors import NotText
from livememfs.recall.index.manner import standing_labels
from livememfs.recall.index.record import Record
from livememfs.records import keys
from livememfs.records.agentnames import of_client
from livememfs.records.memory import TOPIC_TYPES, Memory
from livememfs.records.names import is_litter
from livememfs.records.note import Note
from livememfs.records.observation import CONTRADICTED, CONTRADICTS, SUPERSEDED, SUPERSEDES, Observation
from livememfs.records.session import SUMMARY_FIELDS, Summary
from livememfs.records.trust import BY_KIND, FIELD, USUAL, trust_of
from livememfs.store.base import StoredObject
from livememfs.text.fields import decode, split
from livememfs.text.filenames import files_in
from livememfs.text.outline import Outline

log = structlog.get_logger("livememfs.recall")

TITLE_CHARACTERS = 80
LABELS_READ = 64
"""Values of one field of a note's front matter."""
IMPORTANCE = {"decision": 0.8, "todo": 0.8, "insight": 0.6, "issue": 0.6, "question": 0.5, "progress": 0.4}
"""The importance of a note by its category. A memory states its own."""
OBSERVED = {"decision": 0.8, "bugfix": 0.6, "feature": 0.6, "refactor": 0.5, "change": 0.4, "discovery": 0.5}
"""The same for observations."""
_BANK_IMPORTANCE, _OTHER_IMPORTANCE, _SUMMARY_IMPORTANCE = 0.7, 0.3, 0.5
_Meta = Mapping[str, str] | None
_LABELS = {"tags": "tag", "concepts": "concept", "subjects": "subject", "files": "file"}


def is_indexed(key: str) -> bool:
    """Whether something in this object may be found."""
    parsed = keys.parse(key)
    if parsed.kind == "note":
        return not is_litter(parsed.name)
    if parsed.kind == "session":
        return parsed.name.endswith(f"/{keys.SUMMARY}")
    is_bank = parsed.kind == "bank" and key.endswith(".md")
    return is_bank or parsed.kind in ("synthesis", "memory", "observation", "agent")


def records_of(stored: StoredObject) -> list[Record]:
    """What can be found in an object; nothing if the reader fails on it: one object must not stop all others."""
    info = stored.info
    try:
        return records_in(info.key, stored.data, info.etag, info.modified_ns // 1_000_000_000, info.meta)
    except Exception:
        log.exception("an object cannot be indexed", key=info.key)
        return []


def records_in(key: str, data: bytes, etag: str, modified: int, meta: _Meta = None) -> list[Record]:
    """What can be found in an object; `modified` is the time of its version in seconds, `meta` its metadata."""
    parsed = keys.parse(key)
    of_object: dict[str, Any] = {"ref": key, "key": key, "etag": etag, "space": parsed.space}
    if parsed.kind == "agent":
        of_object["created"] = modified
    if parsed.kind in _READERS:
        try:
            record = _READERS[parsed.kind](key, parsed, data, of_object, meta)
        except NotText:
            return []
        return [record] if record is not None else []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return []
    if "\0" in text:
        return []
    trust = _trust(keys.BANK, meta, {})
    return [replace(record, labels=(*trust, *record.labels)) for record in _sections(key, parsed, text, etag, modified)]


def _trust(kind: str, meta: _Meta, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The label that says whose words a record has, where it is not that of its kind."""
    usual = BY_KIND.get(kind, USUAL)
    trust = trust_of(meta, fields, usual)
    return [(FIELD, trust.word)] if trust is not usual else []


def _code(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The labels that say of which code a record speaks."""
    claim = Claim.of_fields(fields)
    return claim.labels() if claim is not None else []


def _note(key: str, parsed: keys.ParsedKey, data: bytes, of_object: dict[str, Any], meta: _Meta) -> Record | None:
    note = Note.parse(data, path=key, name=parsed.name)
    body = note.body.strip()
    if not body:
        return None
    return Record(
        **of_object,
        kind="live",
        type=note.category,
        agent=note.agent,
        title=_first_line(body),
        created=int(note.timestamp.timestamp()),
        importance=IMPORTANCE.get(note.category, _OTHER_IMPORTANCE),
        labels=(*_trust(keys.LIVE, meta, note.extra), *_code(note.extra), *_labels(note, body)),
        pieces=(body,),
    )


def _memory(key: str, parsed: keys.ParsedKey, data: bytes, of_object: dict[str, Any], meta: _Meta) -> Record | None:
    collection, _, name = parsed.name.partition("/")
    memory = Memory.parse(data, path=key, collection=collection, name=name)
    body = memory.content.strip()
    if not body or memory.forgotten:
        return None
    labels = _trust(collection, meta, memory.said_of_trust)
    labels += _code(memory.extra)
    labels += [("subject", subject) for subject in memory.subjects[:LABELS_READ]]
    labels += [("concept", memory.category)] if memory.category else []
    labels += [(label, value) for field, label in _LABELS.items() for value in _texts(memory.extra.get(field))]
    return Record(
        **of_object,
        kind=collection,
        type=memory.type,
        agent=str(memory.extra.get("agent", "")),
        title=_first_line(body),
        created=int(memory.created_at.timestamp()),
        importance=memory.importance,
        labels=(*labels, *(("file", name) for name in files_in(body)), *standing_labels(body)),
        pieces=(body,),
        links=memory.links,
        channel=memory.channel_id,
        updated=int(memory.updated_at.timestamp()),
    )


def _observation(
    key: str, parsed: keys.ParsedKey, data: bytes, of_object: dict[str, Any], meta: _Meta
) -> Record | None:
    """The narrative and each fact are found by themselves: a short statement has a sharper meaning than a page."""
    observation = Observation.parse(data, path=key, name=parsed.name.rpartition("/")[2])
    whole = "\n".join(filter(None, (observation.title, observation.subtitle, observation.narrative.strip())))
    if not whole:
        return None
    files = dict.fromkeys((*observation.files_modified, *observation.files_read, *files_in(whole)))
    return Record(
        **of_object,
        kind=keys.OBSERVATIONS,
        type=observation.type,
        agent=observation.agent,
        title=_first_line(observation.title or whole),
        created=int(observation.created_at.timestamp()),
        importance=OBSERVED[observation.type],
        labels=(
            *_trust(keys.OBSERVATIONS, meta, observation.extra),
            *_code(observation.extra),
            *(("concept", name) for name in observation.concepts),
            *(("file", name) for name in files),
            *((field, name) for field in (SUPERSEDED, CONTRADICTED) for name in observation.linked(field)),
        ),
        pieces=(whole, *(fact for fact in observation.facts if fact.strip())),
        links=tuple(
            (relation, name)
            for field, relation in ((SUPERSEDES, "updates"), (CONTRADICTS, "contradicts"))
            for name in observation.linked(field)
        ),
    )


def _summary(key: str, _: keys.ParsedKey, data: bytes, of_object: dict[str, Any], meta: _Meta) -> Record | None:
    summary = Summary.parse(data, path=key)
    texts = [getattr(summary, name) for name in SUMMARY_FIELDS if getattr(summary, name)]
    if not texts:
        return None
    return Record(
        **of_object,
        kind=keys.SESSIONS,
        type="summary",
        agent="",
        title=_first_line(summary.request or summary.completed or texts[0]),
        created=int(summary.created_at.timestamp()),
        importance=_SUMMARY_IMPORTANCE,
        labels=(
            *_trust(keys.SESSIONS, meta, {FIELD: summary.trust}),
            *(("file", name) for name in files_in("\n".join(texts))),
        ),
        pieces=("\n".join(texts),),
    )


def _topic(key: str, parsed: keys.ParsedKey, data: bytes, of_object: dict[str, Any], meta: _Meta) -> Record | None:
    """A file of an agent's own memory, with the type that its front matter gives it."""
    fields, body = split(decode(data, key))
    known = {name.lower(): value for name, value in _flat(fields).items() if isinstance(value, str) and value.strip()}
    head = [known[name].strip() for name in ("name", "description") if name in known]
    whole = "\n".join([*head, body.strip()]).strip()
    if not whole:
        return None
    agent, kind = parsed.name.split("/")[1], known.get("type", "").strip().lower()
    return Record(
        **of_object,
        kind=keys.AGENTS,
        type=kind,
        agent=of_client(agent),
        title=_first_line(head[-1] if head else whole),
        importance=TOPIC_TYPES.get(kind, _OTHER_IMPORTANCE),
        labels=(*_trust(keys.AGENTS, meta, known), *(("file", name) for name in files_in(body))),
        pieces=(whole,),
        updated=of_object["created"],
    )


def _flat(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of front matter, those of its `metadata` too."""
    more = fields.get("metadata")
    return {**more, **fields} if isinstance(more, dict) else fields


def _labels(note: Note, body: str) -> Iterator[tuple[str, str]]:
    for tag in note.tags[:LABELS_READ]:
        yield "tag", tag
    for name, label in _LABELS.items():
        yield from ((label, value) for value in _texts(note.extra.get(name)))
    yield from (("file", name) for name in files_in(body))
    yield from standing_labels(body)


def _texts(value: Any) -> list[str]:
    """What a foreign writer put into a field: one text or several."""
    given = value if isinstance(value, list | tuple) else [value]
    return [item for item in given if isinstance(item, str) and item][:LABELS_READ]


def _sections(key: str, parsed: keys.ParsedKey, text: str, etag: str, modified: int) -> Iterator[Record]:
    """One record for each heading that has text of its own, and one for what stands above the first."""
    outline = Outline(text)
    seen: set[str] = set()
    for section in outline.root.walk():
        own = "".join(outline.lines[section.body : section.own_end]).strip()
        if not own:
            continue
        path = " / ".join(section.path)
        anchor = next(name for name in _names(path) if name not in seen)
        seen.add(anchor)
        yield Record(
            ref=f"{key}#{anchor}" if anchor else key,
            key=key,
            etag=etag,
            kind="bank" if parsed.kind == "bank" else "synthesis",
            space=parsed.space,
            type="",
            agent="",
            title=path or _first_line(own),
            created=modified,
            importance=_BANK_IMPORTANCE,
            labels=tuple(("file", name) for name in files_in(own)),
            pieces=(f"{path}\n{own}" if path else own,),
        )


def _names(path: str) -> Iterator[str]:
    """What a section may be called: by its path, or with a number where that is taken."""
    yield path
    yield from (f"{path} ({number})" for number in count(2))


def _first_line(text: str) -> str:
    line = text.lstrip("#-* \t\r\n").partition("\n")[0].strip()
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"


_READERS: Final = {"note": _note, "memory": _memory, "observation": _observation, "session": _summary, "agent": _topic}
