"""The grammar of the bucket's keys (data model 2 and 4.4): building keys and parsing them.

Owns every literal in a key. Refuses nothing when parsing: a key that fits no rule is `other`, and `build(parse(key)) ==
key` for all keys, so objects of other programs keep their names. Pure; may be called from any thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from hashlib import blake2b
from typing import Literal

SYSTEM = "_system"
BACKUPS = "_backups"
META = "_meta.json"
RULES = "_rules.md"
SYNTHESIS = "_synthesis.md"
LEDGER = "_ledger"
REMOVED = "removed"
"""The folder of a ledger with one object for each note that a person removed."""
CHANGES = "_changes"
INDEX = "_index"
WORTH, USES = "_worth", "_uses"
PROPOSALS = "_proposals"
MEMORIES = "memories"
SELF = "self"
GOALS = "goals"
MEMORY_HISTORY = ".history"
COLLECTIONS = (MEMORIES, SELF, GOALS)
"""The folders of a space that hold typed memories."""
OBSERVATIONS = "observations"
SESSIONS = "sessions"
SESSION, PROMPTS, SUMMARY, TOLD = "session.json", "prompts.ndjson", "summary.md", "told.json"
"""The objects of one session."""
LIVE = "live"
BANK = "bank"
AGENTS, ADOPTED, AGENT_INDEX = "agents", ("claude-code",), "MEMORY.md"
"""The folder of a space with what agents remember in files of their own, these agents, and the name of an index."""
KEEP, MARKER = ".keep", ".livememfs-directory"
"""What keeps a folder of a space; what describes a directory on a store whose markers keep no metadata."""
ENDING_DIGITS = 5
"""So many of the eight digits of a note's name, the last ones, follow from the name it was written under."""

Kind = Literal[
    "root", "meta", "rules", "synthesis", "note", "live-other", "bank", "keep", "ledger", "index", "memory",
    "memory-old", "observation", "session", "agent", "agent-index", "backup", "system", "other",
]  # fmt: skip

_NOTE_NAME = re.compile(r"([0-9]{8}T[0-9]{6})_([^/\x00-\x1f]+)_([^_/\x00-\x1f]+)_([0-9A-Fa-f]{8})\.md")
UNTIL = "_until_"
"""Stands in the name of a memory before the time of its end."""
_MEMORY_NAME = re.compile(r"([0-9]{8}T[0-9]{6})_([a-z]{1,32})_([0-9a-f]{8})(?:_until_([0-9]{8}T[0-9]{6}))?\.md")
_ENTRY_KEY = re.compile(rf"[^/]+/{LEDGER}/([0-9]{{8}})\.json")
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9._-]")
_ADOPTED = [[AGENTS, agent] for agent in ADOPTED]
AGENT_MAX = 64


# --- building --------------------------------------------------------------------------------------------------


def meta_key(space: str) -> str:
    """`{space}/_meta.json`: a prefix with this object is a space."""
    return f"{space}/{META}"


def rules_key(space: str) -> str:
    """`{space}/_rules.md`."""
    return f"{space}/{RULES}"


def synthesis_key(space: str) -> str:
    """`{space}/_synthesis.md`."""
    return f"{space}/{SYNTHESIS}"


def live_prefix(space: str) -> str:
    """`{space}/live/`, with the slash."""
    return f"{space}/{LIVE}/"


def bank_prefix(space: str) -> str:
    """`{space}/bank/`, with the slash."""
    return f"{space}/{BANK}/"


def live_key(space: str, name: str) -> str:
    """The key of a file directly in `live/`."""
    return live_prefix(space) + name


def bank_key(space: str, name: str) -> str:
    """The key of a bank file; `name` is relative to `bank/` and may have folders."""
    return bank_prefix(space) + name


def keep_key(space: str, folder: str) -> str:
    """The sentinel by which an empty folder of a space exists, e.g. `{space}/live/.keep`."""
    return f"{space}/{folder}/{KEEP}"


def ledger_prefix(space: str) -> str:
    """`{space}/_ledger/`, with the slash."""
    return f"{space}/{LEDGER}/"


def ledger_key(space: str, number: int) -> str:
    """`{space}/_ledger/{n:08d}.json`: one run that changed the space."""
    return f"{ledger_prefix(space)}{number:08d}.json"


def stored_key(space: str, number: int) -> str:
    """`{space}/_ledger/{n:08d}.digest`: the run with this number is a digest, and its memories are stored.

    By it a listing alone shows which runs are digests, so code about the bank need not read them.
    """
    return f"{ledger_prefix(space)}{number:08d}.digest"


def held_key(space: str, number: int) -> str:
    """`{space}/_ledger/{n:08d}.held`: a plan that becomes the run with this number if a person accepts it."""
    return f"{ledger_prefix(space)}{number:08d}.held"


def removed_prefix(space: str) -> str:
    """`{space}/_ledger/removed/`, with the slash. Watchers ignore the ledger, so many removals cost them nothing."""
    return f"{ledger_prefix(space)}{REMOVED}/"


def removed_key(key: str) -> str:
    """`{space}/_ledger/removed/{name}`: the trace of the note under `key` after a person removed it."""
    parsed = parse(key)
    return removed_prefix(parsed.space) + parsed.name


def is_note(key: str) -> bool:
    """Whether this is the key of a note."""
    return f"/{LIVE}/" in key and parse(key).kind == "note"


def is_entry(key: str) -> bool:
    """Whether this is the key of a run's entry in a ledger."""
    return _ENTRY_KEY.fullmatch(key) is not None


def index_prefix(space: str, model: str) -> str:
    """`{space}/_index/{model}/`, with the slash: a model's vectors. A name that is changed for that gets a digest."""
    slug = _NOT_IN_SLUG.sub("-", model)[:AGENT_MAX]
    if slug != model or slug.startswith("."):
        slug = f"{slug.lstrip('.')}-{blake2b(model.encode(), digest_size=4).hexdigest()}"
    return f"{space}/{INDEX}/{slug}/"


def worth_prefix(space: str, folder: str = WORTH) -> str:
    """`{space}/_index/_worth/`: how often records were told and used; with USES, what earlier versions counted."""
    return f"{space}/{INDEX}/{folder}/"


def worth_key(space: str, host: str) -> str:
    """`{space}/_index/_worth/{host}.json`: what one host counted."""
    return f"{worth_prefix(space)}{host}.json"


def memory_history_prefix(space: str, collection: str) -> str:
    """`{space}/{collection}/.history/`, with the slash: earlier versions of memories."""
    return f"{space}/{collection}/{MEMORY_HISTORY}/"


def memory_history_key(space: str, collection: str, memory_id: str, moment: datetime) -> str:
    """The key of the version that was replaced at a moment."""
    stamp = moment.astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return f"{memory_history_prefix(space, collection)}{memory_id}/{stamp}.md"


def observations_prefix(space: str) -> str:
    """`{space}/observations/`, with the slash."""
    return f"{space}/{OBSERVATIONS}/"


def agent_prefix(space: str, agent: str) -> str:
    """`{space}/agents/{agent}/`, with the slash: the files of an agent's own memory."""
    return f"{space}/{AGENTS}/{agent}/"


def is_adopted(key: str) -> bool:
    """Whether this is the key of a file of an agent's own memory."""
    return f"/{AGENTS}/" in key and key.split("/")[1:3] in _ADOPTED


def is_agent_index(key: str) -> bool:
    """Whether this is the key of an index of an agent's own memory: a file in which each line stands for itself."""
    return key.endswith(f"/{AGENT_INDEX}") and parse(key).kind == "agent-index"


def session_prefix(space: str, session: str) -> str:
    """`{space}/sessions/{session}/`, with the slash. `session` is a result of `session_slug`."""
    return f"{space}/{SESSIONS}/{session}/"


def session_key(space: str, session: str, name: str = SESSION) -> str:
    """One object of a session: SESSION, PROMPTS, SUMMARY or TOLD."""
    return session_prefix(space, session) + name


def session_slug(session: str) -> str:
    """An agent's id of a session, as a key can have it. An id that is changed for that gets a digest."""
    slug = _NOT_IN_SLUG.sub("-", session).strip(".-")[:AGENT_MAX]
    return slug if slug == session else f"{slug or 'session'}-{blake2b(session.encode(), digest_size=4).hexdigest()}"


def lease_key(space: str) -> str:
    """`_system/leases/{space}.json`: who may run a pipeline on the space."""
    return f"{SYSTEM}/leases/{space}.json"


def tokens_key() -> str:
    """`_system/tokens.json`: the registry of tokens (data model 3.1)."""
    return f"{SYSTEM}/tokens.json"


def parked_prefix() -> str:
    """`_system/events/`, with the slash: events that were not observed yet when their mount ended."""
    return f"{SYSTEM}/events/"


def schedule_key() -> str:
    """`_system/schedule.json`: the record of scheduled runs that all hosts of a bucket share."""
    return f"{SYSTEM}/schedule.json"


def backup_stamp(moment: datetime) -> str:
    """A moment in the form of a backup's prefix: `2026-02-20T18-00-00`, in UTC."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat().replace(":", "-")


def backup_prefix(space: str, stamp: str) -> str:
    """`_backups/{space}/{stamp}/`, with the slash."""
    return f"{BACKUPS}/{space}/{stamp}/"


# --- the name of a note ----------------------------------------------------------------------------------------


def agent_slug(agent: str) -> str:
    """An agent's name, as a file name can have it: `[A-Za-z0-9._-]`, 1 to 64 characters."""
    slug = _NOT_IN_SLUG.sub("-", agent)[:AGENT_MAX]
    return slug if any(map(str.isalnum, slug)) else "unknown"


@dataclass(frozen=True, slots=True)
class NoteName:
    """The parts of a note's canonical file name `{YYYYMMDD}T{HHMMSS}_{agent}_{category}_{uuid8}.md` (data model 4.4).

    :timestamp: aware, UTC, whole seconds
    :agent:     may contain `_`, because a name is parsed from its right end
    :category:  without `_`
    :uid:       eight hexadecimal digits

    Raises ValueError when the name of these parts would not be parsed into the same parts.
    """

    timestamp: datetime
    agent: str
    category: str
    uid: str

    def __post_init__(self) -> None:
        if self.timestamp.utcoffset() != timedelta(0) or self.timestamp.microsecond:
            raise ValueError("the time stamp of a note's name is in UTC and in whole seconds")
        match = _NOTE_NAME.fullmatch(str(self))
        if match is None or match.groups()[1:] != (self.agent, self.category, self.uid):
            raise ValueError(f"{self.agent!r}, {self.category!r} and {self.uid!r} do not make a note's name")

    def __str__(self) -> str:
        return f"{_stamp(self.timestamp)}_{self.agent}_{self.category}_{self.uid}.md"

    @classmethod
    def parse(cls, name: str) -> NoteName | None:
        """The parts of a canonical file name, or None for any other name."""
        match = _NOTE_NAME.fullmatch(name)
        if match is None:
            return None
        try:
            timestamp = _moment(match[1])
        except ValueError:
            return None
        return cls(timestamp, match[2], match[3], match[4])


@dataclass(frozen=True, slots=True)
class MemoryName:
    """The parts of a memory's canonical file name: `{id}.md`, or `{id}_until_{YYYYMMDD}T{HHMMSS}.md` if it has an end.

    :timestamp:  when it was made: aware, UTC, whole seconds
    :type:       a word
    :uid:        eight hexadecimal digits
    :expires_at: it has ended from this second on; it is in the name so that a listing alone shows it
    """

    timestamp: datetime
    type: str
    uid: str
    expires_at: datetime | None = None

    @property
    def id(self) -> str:
        """The name by which others refer to it, without its end: `{YYYYMMDD}T{HHMMSS}_{type}_{uid}`."""
        return f"{_stamp(self.timestamp)}_{self.type}_{self.uid}"

    def __str__(self) -> str:
        return f"{self.id}{UNTIL}{_stamp(self.expires_at)}.md" if self.expires_at is not None else f"{self.id}.md"

    @classmethod
    def parse(cls, name: str) -> MemoryName | None:
        """The parts of a canonical file name, or None for any other name."""
        match = _MEMORY_NAME.fullmatch(name)
        if match is None:
            return None
        try:
            return cls(_moment(match[1]), match[2], match[3], _moment(match[4]) if match[4] else None)
        except ValueError:
            return None


def ending(name: str) -> str:
    """The eight characters at the place where a canonical name has its digits."""
    if UNTIL in name and (parsed := MemoryName.parse(name)) is not None:
        return parsed.uid
    return name[-11:-3]


def has_ended(key: str, now: datetime) -> bool:
    """Whether this is the key of a memory that has ended, by its name."""
    name = MemoryName.parse(key.rpartition("/")[2]) if UNTIL in key else None
    return name is not None and name.expires_at is not None and name.expires_at <= now


def _stamp(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat().replace("-", "").replace(":", "")


def _moment(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC)


# --- reading ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """The parts of a key.

    :kind:  the rule of the grammar that it fits
    :space: the space or, for `other`, the first part of the key; empty where there is none
    :name:  the rest, relative to the kind's own folder (a note's name, a bank file's path, `stamp/...` of a backup);
            for `keep`, `other`, memories, observations, sessions and agents' files relative to the space
    """

    kind: Kind
    space: str
    name: str


_FOLDER_OF: dict[Kind, str] = {"note": LIVE, "live-other": LIVE, "bank": BANK, "ledger": LEDGER, "index": INDEX}


@dataclass(frozen=True, slots=True)
class Place:
    """One rule of the grammar.

    :shown:   the key as docs/bucket.md writes it
    :kind:    of the keys that fit
    :form:    a pattern for the part of the key behind the space, or behind a first part such as `_system`
    :example: a key that fits, in the space `{space}`
    """

    shown: str
    kind: Kind
    form: str
    example: str

    def fits(self, rest: str) -> bool:
        """Whether a key fits; `rest` is the part that `form` is for."""
        fits = _form(self.form).fullmatch(rest) is not None
        return fits and (self.kind != "observation" or MemoryName.parse(rest.partition("/")[2]) is not None)


_form = cache(partial(re.compile, flags=re.DOTALL))


def _in(folder: str, shown: str, kind: Kind, form: str, example: str) -> Place:
    return Place(f"<space>/{folder}/{shown}", kind, f"{re.escape(folder)}/{form}", f"{{space}}/{folder}/{example}")


def _collection(folder: str) -> tuple[Place, Place]:
    shown = f"<space>/{folder}/" + ("" if folder == MEMORIES else "...")
    old = Place("<space>/memories/.history/", "memory-old", rf"{folder}/\.history/.+", _OLD.format(folder=folder))
    name = f"{{space}}/{folder}/20260220T140000_fact_d4d8560b.md"
    return old, Place(shown, "memory", rf"{folder}/[^./][^/]*\.md", name)


_OLD = "{{space}}/{folder}/.history/20260220T140000_fact_d4d8560b/20260221T140000.000000Z.md"
_AGENTS_OWN: tuple[tuple[str, Kind, str, str], ...] = (
    (AGENT_INDEX, "agent-index", rf"(?:.+/)?{re.escape(AGENT_INDEX)}", AGENT_INDEX),
    ("<topic>.md", "agent", r"(?:[^./][^/]*/)*[^./][^/]*\.md", "feedback_testing.md"),
)
PLACES: tuple[Place, ...] = (
    Place("<space>/_meta.json", "meta", r"_meta\.json", "{space}/_meta.json"),
    Place("<space>/_rules.md", "rules", r"_rules\.md", "{space}/_rules.md"),
    Place("<space>/_synthesis.md", "synthesis", r"_synthesis\.md", "{space}/_synthesis.md"),
    _in(LIVE, ".keep", "keep", r"(?:.*/)?\.keep", ".keep"),
    _in(LIVE, "<note>.md", "note", r"[^./][^/]*\.md", "20260220T140000_claude_todo_d4d8560b.md"),
    Place("<space>/<anything else>", "live-other", "live/.+", "{space}/live/picture.png"),
    _in(BANK, ".keep", "keep", r"(?:.*/)?\.keep", ".keep"),
    _in(BANK, "<file>.md", "bank", ".+", "progress.md"),
    _in(LEDGER, "<number>.json", "ledger", r"[0-9]{8}\.json", "00000003.json"),
    _in(LEDGER, "removed/<note>", "ledger", "removed/.+", "removed/20260220T140000_claude_todo_d4d8560b.md"),
    _in(LEDGER, "<number>.held", "ledger", r"[0-9]{8}\.held", "00000004.held"),
    _in(LEDGER, "<number>.digest", "ledger", r"[0-9]{8}\.digest", "00000003.digest"),
    _in(LEDGER, "decided/<name>.decided", "ledger", "decided/.+", "decided/20260220T140000_fact_d4d8560b-0.decided"),
    _in(LEDGER, "", "ledger", ".+", "foreign.txt"),
    *(place for folder in COLLECTIONS for place in _collection(folder)),
    _in(OBSERVATIONS, "<observation>.md", "observation", ".+", "20260220T140000_bugfix_1a2b3c4d.md"),
    *(
        _in(SESSIONS, shown, "session", rf"(?:.*/)?{re.escape(name)}", f"s-1/{name}")
        for name, shown in (
            (SESSION, "<session>/session.json"),
            (PROMPTS, ""),
            (SUMMARY, ""),
            (TOLD, "<session>/told.json"),
        )
    ),
    *(
        _in(AGENTS, f"<agent>/{shown}", kind, rf"(?:{'|'.join(ADOPTED)})/{form}", f"{ADOPTED[0]}/{example}")
        for shown, kind, form, example in _AGENTS_OWN
    ),
    _in(INDEX, "_worth/<host>.json", "index", rf"{WORTH}/.+", "_worth/laptop-0123abcd.json"),
    _in(INDEX, "_uses/<host>.json", "index", rf"{USES}/.+", "_uses/laptop-0123abcd.json"),
    _in(INDEX, "<model>/<digest>.vec", "index", ".+", "model-1/00112233445566778899aabbccddeeff.vec"),
    _in(CHANGES, "<host>-<digits>.json", "other", r"[^/]+\.json", "laptop-0123abcd.json"),
    _in(PROPOSALS, "<name>.json", "other", r".+\.json", "20260220T140000_fact_d4d8560b.json"),
    Place("<space>/<path>/", "other", ".*/", "{space}/folder/"),
    Place("<space>/<anything else>", "other", ".*", "{space}/notes/plan.txt"),
    Place("_backups/<space>/<stamp>/...", "backup", "[^/]+/.*", "_backups/{space}/2026-02-20T18-00-00/_meta.json"),
    Place("_system/leases/<space>.json", "system", r"leases/.+\.json", "_system/leases/{space}.json"),
    Place("_system/tokens.json", "system", r"tokens\.json", "_system/tokens.json"),
    Place("_system/events/<host>-<digits>.ndjson", "system", "events/.+", "_system/events/laptop-0123abcd.ndjson"),
    Place("_system/schedule.json", "system", r"schedule\.json", "_system/schedule.json"),
    Place("_system/", "system", ".*", "_system/probe/1"),
)
"""Everything that a bucket has. A key that fits two places belongs to the first."""
_PLACES_IN: dict[str, list[Place]] = {}
"""The places in a space, by their folder; those without a folder are under an empty name."""
for _place in PLACES:
    _space, _folder, *_more = _place.example.split("/")
    if _space == "{space}":
        _PLACES_IN.setdefault(_folder if _more else "", []).append(_place)


def parse(key: str) -> ParsedKey:
    """The parts of a key. Never raises; folder markers (`a/b/`) and everything unforeseen are `other`.

    A first part that starts with `_` is no space. Any other may be one: only its `_meta.json` makes it a space.
    """
    if not key:
        return ParsedKey("root", "", "")
    first, slash, rest = key.partition("/")
    if not slash or not first:
        return ParsedKey("other", "", key)
    if first == SYSTEM:
        return ParsedKey("system", "", rest)
    folder, slash, name = rest.partition("/")
    if first == BACKUPS and slash and folder:
        return ParsedKey("backup", folder, name)
    if first.startswith("_"):
        return ParsedKey("other", first, rest)
    if slash and (not name or name.endswith("/")):
        return ParsedKey("other", first, rest)
    for place in _PLACES_IN.get(folder if slash else "", ()):
        if place.fits(rest):
            return ParsedKey(place.kind, first, name if place.kind in _FOLDER_OF else rest)
    return ParsedKey("other", first, rest)


def build(parsed: ParsedKey) -> str:
    """The key of a parsed key: the inverse of `parse`."""
    if parsed.kind == "root":
        return ""
    if parsed.kind == "system":
        return f"{SYSTEM}/{parsed.name}"
    if parsed.kind == "backup":
        return f"{BACKUPS}/{parsed.space}/{parsed.name}"
    if parsed.kind in _FOLDER_OF:
        return f"{parsed.space}/{_FOLDER_OF[parsed.kind]}/{parsed.name}"
    return f"{parsed.space}/{parsed.name}" if parsed.space else parsed.name
