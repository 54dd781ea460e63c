"""Objects that somebody wrote who means no good: bodies, keys and metadata, the same ones at each run.

For each place of the bucket (`keys.PLACES`) there is something that belongs there; hostile bodies are made of it, field
by field, and of what breaks readers of any kind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.ledger import Entry, NoteEntry, Part, Unsourced, Write
from livememfs.records.session import Meter, Session
from livememfs.records.space import Meta
from livememfs.text.outgoing import Outgoing

NOW = datetime(2026, 2, 20, 14, tzinfo=UTC)
HUGE = 10**400
"""A number that no float holds."""
DEEP = 1_100
RAW = "\x01raw\x01"
ATOMS: tuple[str, ...] = (
    "null", "true", "0", "-1", "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "9" * 400, "9" * 5_000, "1.5",
    "18446744073709551616", "-9223372036854775809", '""', '"1"', '"\\u0000"', '"\\ud800"', '"../../etc/passwd"',
    '"0001-01-01T00:00:00+14:00"', '"9999-12-31T23:59:59-14:00"', '"9999-99-99"', '"2026-02-20"',
    '"' + "x" * 70_000 + '"',
    "[]", "{}", "[[]]", "[null]", "[1e999]", '[{"a":1}]', '{"":{}}', '{"a":1,"a":2}', "[" * 70 + "]" * 70, "[" * DEEP,
)  # fmt: skip
"""Values, as JSON spells them or does not."""
WHOLE: tuple[bytes, ...] = (
    b"", b" ", b"\n", b"\0", b"\0" * 1_000, b"\xff\xfe", b"\xef\xbb\xbf", b"\xef\xbb\xbf{}", b"\xed\xa0\x80",
    b"\x80" * 64,
    b"{", b"}", b"[" * DEEP, b'{"a":' * DEEP, b"[" * 90_000, b'{"epoch":"e","seq":1e999,"recent":[]}', b"// no\n",
    b'{"holder":"x","fence":1e999,"released":false,"expires_at":"x"}', '{"a": "\u2028"}'.encode(), b"{}" * 3,
    b"---\n", b"---\n---\n", b"---\na: *b\n---\nx", b"---\n" + b"- [" * 400 + b"\n---\nx", b"\r\n\r\n",
    b"---\na: 1\na: 2\n---\nx",
    "\u202e\u0000\ufeff\ufffe".encode(), b"<script>alert(1)</script>", b"%PDF-1.7\n\xff", b"a\n" * 5_000,
)  # fmt: skip
"""Bodies that are wrong anywhere."""
YAML = (
    ".inf", "-.inf", ".nan", "1e999", "1e+999", "9" * 299, "9" * 400, "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00", "9999-99-99", "[" * 40 + "]" * 40, "{a: {b: {c: 1}}}", "!!python/object:os.system x",
    "&a [*a]", "[.inf, 1e999]", '"\\ud800"', '"\\0"', "true", "~", "-1", "1.5", "[]", "0x7fffffffffffffffffff", "?",
    "\t",
    "x" * 3_000, "[[1], {a: 2}]", "!!binary aGk=", "1:30", '"2026-02-20T14:00:00+99:00"',
)  # fmt: skip
FRONT = {
    "note": ("timestamp", "agent", "category", "tags", "space_id"),
    "memory": ("type", "importance", "subjects", "created_at", "updated_at", "expires_at", "links", "agent",
    "forgotten"),
    "observation": (
        "id", "session", "agent", "type", "title", "facts", "concepts", "files_read", "discovery_tokens", "created_at",
        "created_at_epoch", "model", "events",
    ),
    "session": ("session", "project", "created_at", "model"),
    "synthesis": ("consolidated_at", "notes_processed", "consolidation_number"),
}  # fmt: skip


def samples(space: str) -> dict[str, bytes]:
    """What belongs in places that hold records, by the place as the documents write it."""
    note = NoteEntry(f"{space}/live/x.md", "e", "s", "a", "t", "f", ("progress.md",), "", 1)
    entry = Entry(
        number=3,
        space=space,
        committed_at=NOW,
        applied_at=NOW,
        state="applied",
        writes=(Write("bank/progress.md", None, "# P\n", was="x", meta={"a": "b"}),),
        removes=(note,),
        keeps=(note,),
        digested=("00",),
        parts=(Part("progress.md", ("P",), (1,)),),
        unsourced=(Unsourced("progress.md", 1, "t", ("f",)),),
        warnings=("w",),
        outgoing=(Outgoing("progress.md", "t", "dropped"),),
        origins={note.key: "1 2"},
        continues={note.key: 2},
    )
    session = Session("s-1", space, NOW, NOW, prompts=1, observations=("x",), meter=Meter(1, 2, 3))
    event = Event("e", "s-1", "prompt", NOW, "claude", text="why")
    token = {"hash": "sha256:" + "0" * 64, "name": "n", "permissions": ["read"], "space_ids": [], "created_at": None}
    past = {"started": "2026-02-20T14:00:00Z", "ended": None, "served": "x", "why": "y", "tokens": 1, "failures": 2}
    json_of: dict[str, Any] = {
        "<space>/_changes/<host>-<digits>.json": {"epoch": "e", "seq": 2, "recent": [[1, f"{space}/a"], [2, "b"]]},
        "<space>/_ledger/removed/<note>": {"ids": ["1"], "sha256": "s"},
        "<space>/_index/_uses/<host>.json": {"20260220T140000_fact_d4d8560b": [3, 1_771_596_000]},
        "<space>/sessions/<session>/told.json": {
            "turn": 3,
            "forgotten": 1,
            "told": {f"{space}/live/a": 3, "file:1": 2},
        },
        "_system/leases/<space>.json": {"holder": "h", "fence": 3, "released": False, "expires_at": "x", "at": 1.5},
        "_system/tokens.json": {"version": 1, "tokens": [token]},
        "_system/events/<host>-<digits>.ndjson": {"space": space, "event": event.to_json()},
        "_system/schedule.json": {"day": "2026-02-20", "tokens": 3, "spaces": {space: past}, "digests": {space: past}},
    }
    records = {shown: json.dumps(value).encode() for shown, value in json_of.items()}
    records["<space>/_meta.json"] = Meta(space, "", "ada", NOW, NOW, 1, 2, extra={"distil": ["digest"]}).render()
    records["<space>/_ledger/<number>.json"] = records["<space>/_ledger/<number>.held"] = entry.render()
    records["<space>/sessions/<session>/session.json"] = session.render()
    return records


def bodies(place: keys.Place, space: str, count: int) -> Iterator[bytes]:
    """`count` bodies that may stand in a place, other ones for each."""
    chance = random.Random(place.shown + place.example)
    made = [*WHOLE, *_made(place, space)]
    chance.shuffle(made)
    while len(made) < count:
        made.append(_flipped(chance, chance.choice(made)))
    yield from made[:count]


def _made(place: keys.Place, space: str) -> Iterator[bytes]:
    sample = samples(space).get(place.shown)
    if place.shown.endswith(".vec"):
        for atom in ATOMS:
            yield f'{{"format": 1, "model": "model-1", "dim": {atom}, "count": 1}}\n'.encode() + bytes(16 + 384)
    if sample is not None:
        value = json.loads(sample)
        for path in _paths(value):
            for atom in ATOMS:
                yield json.dumps(_with(value, path, RAW)).replace(json.dumps(RAW), atom).encode()
        yield from (sample[:end] for end in range(0, len(sample), max(1, len(sample) // 40)))
    for field in FRONT.get(place.kind.removesuffix("-old"), ()):
        for value in YAML:
            yield f"---\n{field}: {value}\n---\nThe queue is Postgres, says {field}.\n".encode(
                "utf-8", "backslashreplace"
            )
    if sample is not None or place.kind != "session":
        return
    for atom in ATOMS:
        yield f'{{"at": {atom}, "id": {atom}, "prompt": {atom}}}\n{{"prompt": "why"}}\n'.encode()


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from _paths(part, (*path, name))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(copy[path[0]], path[1:], new)
    return copy


def _flipped(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data[:70_000] or b"{}")
    for _ in range(3):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


# --- keys and metadata -----------------------------------------------------------------------------------------------

PARTS = (
    "\n", "\r", "\t", "\x01", "\x1b[31m", "\x7f", "\x85", "\u2028", "\ufeff", "..", ".", "", " ", "~", "-", "*",
    "a" * 255,
    "\u00e9", "e\u0301", "\U0001f600", "_", "__", ".keep", "_meta.json", "live", "bank", "_changes", "_system", "con",
    "20260220T140000_a_todo_d4d8560b.md", "20269999T999999_a_todo_d4d8560b.md", "20260220T140000_fact_d4d8560b_until_"
    "00010101T000000.md", "99991231T235959_fact_d4d8560b_until_99991231T235959.md", "00000000.json", "99999999.json",
    "\u0660" * 8 + ".json", "x.conflict-a-b.md", ".hidden.md", "a.md.swp", "%2e%2e", "\\", "?", "#", "\u202e", "\x00",
)  # fmt: skip


def hostile_keys(place: keys.Place, space: str, count: int) -> list[str]:
    """`count` keys that look much like those of a place, each of which a store can hold."""
    chance = random.Random(place.example + "keys")
    example = place.example.format(space=space)
    keys_made: dict[str, None] = {}
    while len(keys_made) < count:
        parts = example.split("/")
        at = chance.randrange(1, len(parts)) if len(parts) > 1 else 0
        odd = chance.choice(PARTS)
        parts[at] = chance.choice((odd, odd + parts[at], parts[at] + odd, f"{odd}/{parts[at]}", f"{parts[at]}/{odd}"))
        key = "/".join(parts) + chance.choice(("", "", "", "/", "//x"))
        if 0 < len(key.encode()) <= 1_024 and key != example:
            keys_made[key] = None
        elif len(keys_made) + 1 == count:
            keys_made[f"{example}{len(keys_made)}"] = None
    return list(keys_made)


METADATA: tuple[Mapping[str, str], ...] = tuple(
    {"livememfs-mtime": number, "livememfs-mode": number, "livememfs-type": "symlink" if index % 5 == 0 else number}
    for index, number in enumerate(
        ("", "x", "-1", "9" * 30, "9" * 5_000, "1e999", "inf", "0x1f", "٣", "-" + "9" * 18, "1.5", "7" * 12,
        "100000000000000000")
    )
) + tuple(
    {"livememfs-xattrs": text, "livememfs-name": text, "livememfs-made": text, "livememfs-op": text,
    "livememfs-sha256": text}
    for text in (
        "[" * DEEP, '{"user.a": "\u1234"}', '{"user.a": 1e999}', '{"\\ud800": "x"}', '{"user.\\u0000": "x"}', "../x",
        "a/b",
        '{"security.capability": "x"}', '{"user.a":"1","user.a":"2"}', '{"user.' + "n" * 300 + '": "x"}', "\n", " ",
        "_meta.json",
    )
)  # fmt: skip
