"""How well questions in French and English are answered: the corpus beside this file, with the built-in model."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from corpus_vectors import KeptVectors

from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.embed.prior import TEXTS
from livememfs.recall.index.feeder import TextReader
from livememfs.recall.index.local import Index
from livememfs.recall.index.reader import records_in
from livememfs.recall.search.query import parse
from livememfs.recall.search.ranking import search
from livememfs.records import keys
from livememfs.records.note import Note, canonical_name, uid8

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
CORPUS = Path(__file__).parent / "corpus"
NOW = datetime(2026, 12, 31, tzinfo=UTC)
AT_LEAST = {
    "accents": 1.0,
    "identifier": 1.0,
    "file": 1.0,
    "keyword": 1.0,
    "negation": 1.0,
    "date": 0.95,
    "multi": 0.6,
    "mixed": 0.45,
    "paraphrase": 0.34,
}
"""Recall in the first five that must not get worse; measured figures are in docs/recall.md."""
AT_LEAST_OVERALL = 0.79


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / name).read_text().splitlines()]


def indexed(index: Index) -> dict[str, str]:
    """Put every note of the corpus into the index; ids by key."""
    ids: dict[str, str] = {}
    read = []
    for said in lines("notes.jsonl"):
        space, when = said["space"], datetime.fromisoformat(said["date"])
        note = Note(when, said["agent"], said["category"], (), space, said["text"])
        key = keys.live_key(space, canonical_name(note, uid8(space, said["id"])))
        ids[key] = said["id"]
        read.append((key, "e", space, records_in(key, note.render(), "e", 0)))
    index.apply([], read)
    return ids


async def understand(index: Index, model: KeptVectors) -> None:
    """Have everything in the index embedded."""
    index.expect((await model.passages(TEXTS)).mean(axis=0))
    reader = TextReader(model)
    while texts := index.unembedded(64):
        index.take_vectors([text.meaning for text in texts], await reader.vectors(texts))


async def test_french_and_english_questions_find_their_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builtin = await trio.to_thread.run_sync(Builtin.load)
    model = KeptVectors(builtin, kept=not LONG)
    index = Index(tmp_path, model.name)
    ids = indexed(index)
    await understand(index, model)
    spaces = sorted({key.split("/")[0] for key in ids})
    recalls: dict[str, list[float]] = defaultdict(list)
    for asked in lines("questions.jsonl"):
        vector = await model.question(asked["query"])
        hits = search(index, parse(asked["query"], now=NOW), vector, spaces, limit=5).hits
        found = {ids[hit.record.key] for hit in hits}
        recalls[asked["kind"]].append(len(found & set(asked["relevant"])) / len(asked["relevant"]))
    overall = fmean(value for values in recalls.values() for value in values)
    with capsys.disabled():
        shown = ", ".join(f"{kind} {fmean(values):.2f} ({len(values)})" for kind, values in sorted(recalls.items()))
        print(f"\nrecall@5 {overall:.3f}: {shown}")
    index.close()
    await builtin.aclose()

    if not LONG:
        assert not model.asked, "tests/recall/corpus_vectors.py has not kept these texts: run it"
    assert {kind: fmean(recalls[kind]) for kind, least in AT_LEAST.items() if fmean(recalls[kind]) < least} == {}
    assert overall >= AT_LEAST_OVERALL


async def write_vectors() -> None:
    """Compute every vector that the test asks for, and keep them."""
    builtin = await trio.to_thread.run_sync(Builtin.load)
    model = KeptVectors(builtin, kept=False)
    with TemporaryDirectory() as folder:
        index = Index(Path(folder), model.name)
        indexed(index)
        await understand(index, model)
        index.close()
    for asked in (*lines("questions.jsonl"), *lines("unanswered.jsonl")):
        await model.question(asked["query"])
    model.write()
    await builtin.aclose()
