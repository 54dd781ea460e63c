"""The search index on its bad days, on real mounts: whatever happened to its files, there is an answer or a page that
says why not, the mount lives on, and the next one makes whole what is broken.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from machine import Mount, StartMount, livememfs, sh

from livememfs.text.own import HEAD

KILLS = 4
NOTES = 600
WORDS_ONLY = {"LIVEMEMFS_EMBED_MODEL": "none"}
FOUND = "The upload crashes when S3 answers 503 twice."


def index_of(mount: Mount) -> Path:
    """The folder of the index of a mount."""
    (found,) = Path(mount.environment["XDG_CACHE_HOME"]).rglob("index")
    return found


def answer(mount: Mount, question: str = "upload crashes") -> str:
    """The page of a question."""
    return sh(f'cat "search/{question}.md"', cwd=mount / "project").stdout


@pytest.fixture
def store(tmp_path: Path) -> dict[str, str]:
    return {"LIVEMEMFS_STORE": str(tmp_path / "store"), **WORDS_ONLY}


@pytest.fixture
def asked(start_mount: StartMount, store: dict[str, str]) -> Mount:
    """A mount with a note, that has been asked."""
    mount = start_mount(store)
    sh(f"mkdir project && echo '{FOUND}' > project/live/issue-upload.md", cwd=mount.path)
    assert FOUND in answer(mount)
    return mount


# --- damage between two mounts ------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbled(path: Path) -> None:
    path.write_bytes(b"\x17" * path.stat().st_size)


def of_an_older_version(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 1")


def every_file_of_the_text_index_cut(path: Path) -> None:
    for file in (path.parent / "text").iterdir():
        cut(file)


def the_text_index_gone(path: Path) -> None:
    shutil.rmtree(path.parent / "text")


def the_records_gone_and_the_text_of_another_index(path: Path) -> None:
    for file in path.parent.glob("records.db*"):
        file.unlink()
    (path.parent / "text" / "incarnation").write_text("another's")


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        garbled,
        of_an_older_version,
        every_file_of_the_text_index_cut,
        the_text_index_gone,
        the_records_gone_and_the_text_of_another_index,
    ],
)
def test_files_that_were_damaged_between_two_mounts_are_made_anew(asked: Mount, damage: Callable[[Path], None]) -> None:
    asked.stop()
    damage(index_of(asked) / "records.db")

    asked.start()

    assert FOUND in answer(asked)
    asked.stop()
    assert "no fault" in livememfs("index verify", env=asked.environment).stdout


# --- damage under a mount -----------------------------------------------------------------------------------------


def every_file_of_the_text_index_replaced(path: Path) -> None:
    for file in (path.parent / "text").iterdir():
        other = file.with_name("other")
        other.write_bytes(b"\x17" * file.stat().st_size)
        other.rename(file)


@pytest.mark.parametrize("damage", [cut, garbled, every_file_of_the_text_index_replaced, the_text_index_gone])
def test_files_that_are_damaged_under_a_mount_cost_answers_at_most(
    asked: Mount, damage: Callable[[Path], None]
) -> None:
    asked.claims.append("a search failed")
    asked.claims.append("the index failed")
    damage(index_of(asked) / "records.db")

    sh("echo 'the zeppelin lands at noon' > live/zep.md && cat live/zep.md && ls live", cwd=asked / "project")
    for question in ("upload", "zeppelin", "type:observation", "noon -friday"):
        assert answer(asked, question).startswith(f"{HEAD}\n# ")
    asked.stop()

    asked.start()
    assert "zeppelin" in answer(asked, "zeppelin lands")


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    path.mkdir()
    sh(f"mount -t tmpfs -o size=64m tmpfs '{path}'")
    try:
        yield path
    finally:
        sh(f"umount -l '{path}'")


def test_a_full_disk_costs_what_is_new_and_comes_back_with_room(
    start_mount: StartMount, store: dict[str, str], tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        mount = start_mount({**store, "LIVEMEMFS_CACHE": str(disk)})
        sh(f"mkdir project && echo '{FOUND}' > project/live/issue-upload.md", cwd=mount.path)
        assert FOUND in answer(mount)
        sh(f"dd if=/dev/zero of='{disk}/others' bs=64k 2>/dev/null", status=None)

        outside = tmp_path / "store" / "project" / "live" / "20260101T000000_me_todo_00000001.md"
        outside.write_text("the zeppelin lands at noon")  # by another machine, as this one's disk is full
        sh("ls live", cwd=mount / "project")
        assert answer(mount, "upload").startswith(f"{HEAD}\n# upload")
        (disk / "others").unlink()

        until = time.monotonic() + 30
        while "zeppelin" not in answer(mount, f"zeppelin lands {time.monotonic()}"):
            assert time.monotonic() < until
            time.sleep(0.5)
        mount.stop()


# --- kills --------------------------------------------------------------------------------------------------------


def test_kills_while_a_space_is_indexed_leave_an_index_that_is_whole(
    start_mount: StartMount, store: dict[str, str]
) -> None:
    folder = Path(store["LIVEMEMFS_STORE"])
    mount = start_mount(store)
    sh("mkdir project", cwd=mount.path)
    mount.stop()
    for number in range(NOTES):
        name = f"202601{1 + number % 28:02}T{number % 24:02}0000_me_todo_{number:08x}.md"
        (folder / "project" / "live" / name).write_text(f"the parrot number{number} is green " + "and so on " * 40)

    for kill in range(KILLS):
        mount.start()
        sh("ls search/parrot > /dev/null &", cwd=mount / "project")
        time.sleep(0.05 + 0.15 * kill)  # the moment is what is being tried
        mount.kill()
        sh(f"fusermount3 -uz '{mount.path}'", status=None)
        told = json.loads(livememfs("index verify --json", env=mount.environment).stdout)
        assert told["problems"] == []
    mount.start()
    until = time.monotonic() + 30
    while "number599" not in answer(mount, f"parrot number599 or {time.monotonic()}"):
        assert time.monotonic() < until
        time.sleep(0.2)
    status = json.loads((mount / ".livememfs" / "status.json").read_text())
    assert status["statistics"]["recall"]["index"]["rebuilt"] == []


# --- strange questions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "..",
        "the and of",
        "le la les de",
        "?!.,;:",
        '"',
        '"""',
        "-",
        "-upload",
        "😀 🚀",
        "مرحبا بالعالم",
        "(((((a+)+)+)+)+)$",
        "x" * 250,
        "é" * 120,
        "type:",
        "after:yesterday before:2026-99-99",
        "a\nb",
        "$(rm -rf .) `id` %s %n",
        "limit:0 limit:-3 limit:99999999999",
    ],
)
def test_a_strange_question_has_a_page_and_costs_nothing_else(shared: Mount, question: str) -> None:
    found = shared / "project" / "search" / f"{question}.md"
    if question != "..":
        assert found.read_text().startswith(f"{HEAD}\n# ")
    folder = shared / "project" / "search" / question
    assert len(list(folder.iterdir())) <= 20
    assert "upload" in answer(shared)


@pytest.mark.parametrize(
    "question", ["x" * 10_000, "word " * 2_000, "a:b " * 2_500, "é" * 5_000, '"a" ' * 2_500, "-a " * 3_000]
)
def test_a_question_of_ten_kilobytes_is_answered_from_the_command_line(shared: Mount, question: str) -> None:
    cache = str(shared.path.parent / "c")
    livememfs(f"search --json -- '{question}'", env={**shared.environment, "XDG_CACHE_HOME": cache})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mount]:
    """One mount for all questions that change nothing."""
    folder = tmp_path_factory.mktemp("strange")
    with Mount(folder / "mnt", folder / "home", {"LIVEMEMFS_STORE": str(folder / "store"), **WORDS_ONLY}) as mount:
        sh(f"mkdir project && echo '{FOUND}' > project/live/issue-upload.md", cwd=mount.path)
        yield mount
