"""`scripts/eval-recall` speaks the protocol of a judge, through the code that a mount runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOLD = {
    "m1": ("Ann", "We chose PostgreSQL for the orders"),
    "m2": ("Bob", "The cat is called Minou"),
    "m3": ("Ann", "Deployments happen on Fridays"),
}


def test_what_a_judge_has_indexed_it_finds_by_its_own_names() -> None:
    memories = [
        {"id": name, "text": text, "speaker": who, "created_at": f"2026-01-0{number}T10:00:00Z"}
        for number, (name, (who, text)) in enumerate(TOLD.items(), 1)
    ]
    requests = [
        {"op": "index", "space": "one conversation", "memories": memories},
        {"op": "search", "space": "one conversation", "query": "which database did Ann choose?", "k": 2},
        {"op": "search", "space": "one conversation", "query": "what is the cat called", "k": 1},
        {"op": "close"},
    ]
    done = subprocess.run(
        [ROOT / "scripts/eval-recall"],
        input="".join(json.dumps(request) + "\n" for request in requests),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHON": sys.executable},
        timeout=100,
        check=True,
    )
    indexed, database, cat = map(json.loads, done.stdout.splitlines())
    assert indexed["ok"] is True
    assert len(database["ids"]) == 2
    assert database["ids"][0] == "m1"
    assert cat["ids"] == ["m2"]
