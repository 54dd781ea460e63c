"""`livememfs search`: the answer of the mount's search, on a terminal and for programs."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from livememfs.cli.main import main
from livememfs.text.own import HEAD

ORDERS, SLOW = "We chose PostgreSQL for the orders service.", "PostgreSQL is slow here."


def livememfs(home: Path, *arguments: str, status: int = 0, typed: str = "", **environ: str) -> str:
    """Run the command on a folder of its own, in this process; its standard output."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "LIVEMEMFS_STORE": str(home / "bucket"),
        "LIVEMEMFS_CACHE": str(home / "cache"),
        **environ,
    }
    stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8") for text in (typed, "", ""))
    with (
        patch.dict(os.environ, environment, clear=True),
        patch("sys.stdin", stdin),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
        pytest.raises(SystemExit) as ended,
    ):
        main(arguments)
    for stream in (stdout, stderr):
        stream.seek(0)
    assert (ended.value.code or 0) == status, stderr.read()
    return stdout.read()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket with two spaces and three notes, of different days: what is written in one sitting belongs together."""
    made = tmp_path_factory.mktemp("search")
    for day, (space, name, text) in enumerate(
        (
            ("alpha", "decision-db", ORDERS),
            ("alpha", "todo-x", "Renouveler le certificat avant le 3 mars."),
            ("beta", "other", SLOW),
        ),
        1,
    ):
        if not (made / "bucket" / space).exists():
            livememfs(made, "space", "create", space)
        category = name.partition("-")[0]
        subject = ["--category", category] if category in ("decision", "todo") else []
        note = f'---\ntimestamp: "2026-02-0{day}T10:00:00Z"\n---\n{text}'
        livememfs(made, "note", space, "-", *subject, typed=note)
    return made


def test_the_page_is_printed_with_keys(home: Path) -> None:
    page = livememfs(home, "search", "which database PostgreSQL", "--space", "alpha")

    assert page.startswith(f"{HEAD}\n# which database PostgreSQL\n")
    assert "1. [We chose PostgreSQL for the orders service.](<alpha/live/" in page


def test_programs_get_the_texts_with_their_tokens_and_reasons(home: Path) -> None:
    answer = json.loads(livememfs(home, "search", "PostgreSQL", "--json"))

    assert {hit["space"] for hit in answer["hits"][:2]} == {"alpha", "beta"}
    first, second = answer["hits"][:2]
    assert {first["text"], second["text"]} == {ORDERS, SLOW}
    assert sorted(hit["reasons"]["words"] for hit in (first, second)) == [1, 2]
    assert first["created"].startswith("2026-02-0")
    assert 0 < first["tokens"] < 20
    assert answer["strategy"] == "semantic"
    assert answer["notes"] == []


def test_meaning_is_there_at_once_since_the_command_waits_for_it(home: Path) -> None:
    answer = json.loads(livememfs(home, "search", "quand expire le TLS", "--space", "alpha", "--json"))

    assert answer["hits"][0]["text"].startswith("Renouveler le certificat")


def test_a_model_that_is_down_is_not_waited_for(home: Path, tmp_path: Path) -> None:
    """In an index that no other model has read before."""
    down = {"LIVEMEMFS_EMBED_MODEL": "x", "LIVEMEMFS_EMBED_URL": "http://127.0.0.1:9/v1"}
    down["LIVEMEMFS_CACHE"] = str(tmp_path)

    answer = json.loads(livememfs(home, "search", "PostgreSQL", "--json", **down))

    assert len(answer["hits"]) >= 2
    assert answer["strategy"] == "words"
    assert answer["notes"] == ["by words alone: the model that knows meanings does not answer"]


def test_filters_limits_and_budgets(home: Path) -> None:
    assert len(json.loads(livememfs(home, "search", "type:decision", "--json"))["hits"]) == 1
    assert len(json.loads(livememfs(home, "search", "PostgreSQL", "--limit", "1", "--json"))["hits"]) == 1
    assert "left out to stay under 200" in livememfs(home, "search", "PostgreSQL service here", "--budget", "200")


def test_a_space_that_is_not_there_is_said(home: Path) -> None:
    livememfs(home, "search", "x", "--space", "nowhere", status=1)


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["page", "json"])
def test_a_search_that_failed_is_told_apart_from_one_that_found_nothing(
    home: Path, tmp_path: Path, shown: list[str]
) -> None:
    cache = str(tmp_path / "cache")
    livememfs(home, "search", "PostgreSQL", LIVEMEMFS_CACHE=cache)
    [index] = Path(cache).glob("*/index")
    shutil.rmtree(index)
    index.write_text("in its way")

    printed = livememfs(home, "search", "PostgreSQL", *shown, status=1, LIVEMEMFS_CACHE=cache)

    assert "the search failed: " in printed
    livememfs(home, "search", "type:decision before:2000-01-01", *shown)  # finds nothing


def test_who_never_searches_loads_nothing_for_it() -> None:
    """The libraries take as long to load as a mount takes to start, and as much memory as one needs."""
    code = (
        "import sys, livememfs.cli.main, livememfs.app;"
        "print({'numpy', 'tantivy', 'onnxruntime', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"


def test_the_index_says_how_it_is_and_can_be_made_anew(home: Path) -> None:
    made = json.loads(livememfs(home, "index", "rebuild", "--json"))
    assert (made["records"], made["embedded"], made["objects"]) == (3, 3, 3)

    figures = json.loads(livememfs(home, "index", "verify", "--json"))
    assert (figures["problems"], figures["rebuilt"], figures["pieces"]) == ([], [], 3)
    assert "3 texts, 3 of them with a vector" in livememfs(home, "index", "status")
    other = {"LIVEMEMFS_EMBED_MODEL": "x", "LIVEMEMFS_EMBED_URL": "http://127.0.0.1:9/v1"}
    assert "a mount searches the vectors of multilingual-e5-small-1" in livememfs(home, "index", "status", **other)


def test_an_index_with_damaged_files_is_mended_by_looking_at_it(home: Path) -> None:
    folder = Path(json.loads(livememfs(home, "index", "status", "--json"))["folder"])
    for file in list((folder / "text").glob("*.store")):
        damaged = folder / "damaged"
        damaged.write_bytes(b"not what it was")
        damaged.replace(file)  # not written into: this process may have it mapped, and would die of the bytes it lacks

    livememfs(home, "index", "verify")
    assert len(json.loads(livememfs(home, "search", "PostgreSQL", "--json"))["hits"]) >= 2
