"""Recall for a judge: notes in, ranked ids out, one JSON object a line on standard input and output.

    {"op": "index", "space": S, "memories": [{"id", "text", "speaker", "created_at", ...}]}  ->  {"ok": true}
    {"op": "search", "space": S, "query": Q, "k": 50}                                        ->  {"ids": [...]}
    {"op": "close"}                                                                          ->  the process ends

Owns the translation of memories to notes; everything else is the code that a mount runs, on a folder in place of a
bucket, index and model included; `--index URL` keeps the index in a PostgreSQL database. `--without author,...`
switches off a part of the ranking, to see what it gains.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from livememfs import log
from livememfs.app import App, open_app
from livememfs.app.recall import drop_engine
from livememfs.config import Settings
from livememfs.recall.index import table
from livememfs.recall.search.ranking import Ranking
from livememfs.records import keys
from livememfs.records.note import Note, canonical_name, uid8
from livememfs.spaces.making import create

INDEXED_WITHIN = 1_800.0
OFF: dict[str, dict[str, Any]] = {
    "author": {"author": 1.0},
    "meaning": {"meaning": 0.0},
    "question": {"question": 1.0},
    "manner": {"writer": 1.0, "reader": 1.0},
    "sitting": {"sitting": 0.0},
    "hints": {"hints": 0.0},
    "names": {"names": 0.0},
    "length": {"length": 0.0},
    "further": {"further": 0.0},
    "several": {"several": False},
    "floor": {"floor": False},
    "newest": {"newest": False},
    "standing": {"standing": 0.0},
    "beside": {},
}
"""What is left out of the ranking for each part; `beside` is one of the index."""


class Judge:
    """The spaces that the other side names, and which note was which memory."""

    def __init__(self, app: App, ranking: Ranking) -> None:
        self.app, self.ranking = app, ranking
        self.ids: dict[str, str] = {}

    async def index(self, space: str, memories: list[Mapping[str, Any]]) -> dict[str, Any]:
        """Write each memory as a note, and wait until all can be found by their meaning."""
        name = _space_name(space)
        await create(self.app.replica, self.app.clock, name)
        for memory in memories:
            note = _note(memory, name)
            key = keys.live_key(name, canonical_name(note, uid8(name, str(memory["id"]))))
            self.ids[key] = str(memory["id"])
            await self.app.replica.put(key, note.render())
        await self.app.recall.ask("anything", (name,))
        return {"ok": await self.app.recall.understood(INDEXED_WITHIN)}

    async def search(self, space: str, query: str, k: int) -> dict[str, Any]:
        """The best `k`."""
        answer = await self.app.recall.ask(query, (_space_name(space),), limit=k, ranking=self.ranking)
        return {"ids": [self.ids[hit.record.key] for hit in answer.found.hits if hit.record.key in self.ids]}


def _space_name(space: str) -> str:
    return "eval-" + (re.sub(r"[^a-z0-9._-]", "-", space.lower()) or "x")[:50]


def _note(memory: Mapping[str, Any], space: str) -> Note:
    """A memory as somebody would have written it down: its author and its day are the note's, not part of the text."""
    written = datetime.fromisoformat(str(memory["created_at"]))
    author, text = str(memory.get("speaker") or "unknown"), str(memory["text"])
    for prefix in (f"{author} ({memory.get('date')}): ", f"{author}: "):
        text = text.removeprefix(prefix)
    return Note(written if written.tzinfo else written.replace(tzinfo=UTC), author, "observation", (), space, text)


async def _serve(ranking: Ranking, index_url: str) -> None:
    with tempfile.TemporaryDirectory(prefix="livememfs-eval-") as folder:
        settings = Settings(store=f"{folder}/bucket", cache=f"{folder}/cache", log_level="error", index_url=index_url)
        try:
            await _judge(settings, ranking)
        finally:
            if index_url:
                drop_engine(settings)  # nobody will ask for the index of a folder that is gone


async def _judge(settings: Settings, ranking: Ranking) -> None:
    async with open_app(settings) as app:
        judge = Judge(app, ranking)
        while line := await trio.to_thread.run_sync(sys.stdin.readline):
            asked = json.loads(line)
            if asked["op"] == "close":
                break
            if asked["op"] == "index":
                said = await judge.index(asked["space"], asked["memories"])
            else:
                said = await judge.search(asked["space"], asked["query"], int(asked["k"]))
            print(json.dumps(said), flush=True)


def main() -> None:
    """Read what to leave out, then serve."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--without", default="", help=f"parts to leave out, by commas: {', '.join(OFF)}")
    parser.add_argument("--index", default="", metavar="URL", help="a PostgreSQL database to keep the index in")
    given = parser.parse_args()
    ranking = Ranking()
    for part in filter(None, given.without.split(",")):
        ranking = replace(ranking, **OFF[part])
        if part == "beside":
            table.context_of = lambda _, around: [*around]
    log.configure("warning")  # standard output is the judge's
    trio.run(_serve, ranking, given.index)


if __name__ == "__main__":
    main()
