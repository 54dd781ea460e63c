"""Records for the tests of an index, and what an index finds of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np

from livememfs.recall.index.engine import Engine, Read
from livememfs.recall.index.exchanged import Restriction, TextQuery
from livememfs.recall.index.record import Record
from livememfs.testing.embed import hashed

ALL = Restriction()
MODEL = "hashed"
DIM = 64
DAY = 86_400


def note(name: str, text: str | tuple[str, ...] = "text", created: int | datetime = DAY, **given: Any) -> Record:
    """A note by ann in the space `space`; several texts are its pieces."""
    key = f"{given.get('space', 'space')}/live/{name}.md"
    defaults: dict[str, Any] = {
        "ref": key, "key": key, "etag": "1", "kind": "live", "space": "space", "type": "todo", "agent": "ann",
        "title": name, "importance": 0.5, "labels": (),
        "created": int(created.timestamp()) if isinstance(created, datetime) else created,
        "pieces": text if isinstance(text, tuple) else (text,),
    }  # fmt: skip
    return Record(**{**defaults, **given})


def read(*records: Record) -> Read:
    """The object that these records are in."""
    return records[0].key, records[0].etag, records[0].space, records


def only(**fields: tuple[str, ...]) -> Restriction:
    """What has one of these values in each field."""
    return Restriction(fields=tuple(fields.items()))


def named(index: Engine, numbers: list[int]) -> list[str]:
    """Titles of the records of pieces, in this order."""
    briefs = index.briefs(numbers)
    records = index.records([brief.id for _, brief in briefs.values()])
    return [records[briefs[number][1].id].title for number in numbers]


def found(index: Engine, words: str = "", where: Restriction = ALL, **asked: Any) -> list[str]:
    """Titles of the records that have the words, in the order of the alphabet."""
    hits, _ = index.text(TextQuery(words, **asked), where, 100)
    return sorted(set(named(index, [number for number, _ in hits])))


def near(index: Engine, words: str, where: Restriction = ALL) -> list[str]:
    """Titles of what lies near the words, best first."""
    hits = index.near(hashed(words, DIM), where, 100)
    return named(index, [number for number, cosine in hits if cosine > 0.2])


def embed(index: Engine) -> int:
    """Embeds all there is to embed; how many texts."""
    done = 0
    while texts := index.unembedded(100):
        index.take_vectors(
            [text.meaning for text in texts], np.array([hashed(f"{text.own} {text.before}", DIM) for text in texts])
        )
        done += len(texts)
        assert done < 10_000
    return done


THREE = [
    read(note("one", "queue alpha", 1 * DAY)),
    read(note("two", "queue beta", 2 * DAY)),
    read(note("three", ("queue gamma", "second piece delta"), 3 * DAY)),
]


def assert_whole(index: Engine) -> None:
    """An index has these three, and no fault."""
    assert index.verify() == []
    assert found(index, "queue") == ["one", "three", "two"]
    assert found(index, "delta") == ["three"]
