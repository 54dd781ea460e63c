"""What each source reads of the files of its program, and what it says of those that cannot be read."""

from __future__ import annotations

import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from livememfs.errors import BadRequest
from livememfs.importing.item import (
    MOST_BYTES,
    Read,
    SourceFault,
    SourceItem,
    SourceObject,
    SourceSession,
    moment,
    parts,
)
from livememfs.importing.sources import SOURCES, buckets

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def read(source: str, path: Path) -> list[Read]:
    return list(SOURCES[source].read(path))


def items(source: str, path: Path) -> dict[str, SourceItem]:
    found = read(source, path)
    assert [fault for fault in found if isinstance(fault, SourceFault)] == []
    return {item.id: item for item in found if isinstance(item, SourceItem)}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file below a folder of its own, and returns that folder."""

    def written(name: str, content: str | bytes) -> Path:
        file = tmp_path / "source" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(file, (DAY.timestamp(), DAY.timestamp()))
        return tmp_path / "source"

    return written


Write = Callable[[str, str | bytes], Path]


def test_front_matter_becomes_fields_and_the_title_leads_the_text(write: Write) -> None:
    folder = write(
        "a/store.md",
        "---\ntitle: The store\ntype: decision\ntags: [s3, '#bucket']\ncreated: 2026-01-02\n---\nWe chose S3.\n",
    )

    item = items("markdown", folder)["a/store.md"]

    assert (item.text, item.type, item.subjects) == ("# The store\n\nWe chose S3.", "decision", ("s3", "bucket"))
    assert (item.made, item.seen) == (datetime(2026, 1, 2, tzinfo=UTC), DAY)


def test_links_between_files_are_links_and_those_to_the_web_are_not(write: Write) -> None:
    write("b.md", "B")
    folder = write("a.md", "See [[b]], [c](sub/c%20d.md), [web](https://example.org/e.md) and [[a]].")

    assert [to for _, to in items("markdown", folder)["a.md"].links] == ["sub/c d.md", "b.md"]


def test_hidden_files_packages_and_links_are_left_out(write: Write) -> None:
    write(".git/a.md", "x")
    write("node_modules/b.md", "x")
    write("c.png", b"x")
    folder = write("d.txt", "We use Debian.")
    (folder / "e.md").symlink_to("/etc/hostname")

    assert list(items("markdown", folder)) == ["d.txt"]


def test_what_is_no_text_is_named_with_its_place(write: Write) -> None:
    folder = write("a.md", b"\xff\xfe")

    (fault,) = read("markdown", folder)

    assert isinstance(fault, SourceFault)
    assert fault.place == str(folder / "a.md")
    assert "0xff" in fault.reason


def test_a_long_file_is_cut_before_headings_and_loses_nothing(write: Write) -> None:
    text = "".join(f"# Part {number}\n\n{'word ' * 3_000}\n\n" for number in range(8)).strip()
    folder = write("long.md", text)

    found = list(items("markdown", folder).values())

    assert "".join(item.text for item in found) == text
    assert [item.id for item in found][:2] == ["long.md", "long.md#2"]
    assert all(item.text.startswith("# Part") and len(item.text.encode()) <= MOST_BYTES for item in found)


def test_a_text_without_a_place_to_cut_is_cut_between_characters() -> None:
    text = "é" * MOST_BYTES
    item = SourceItem("a", text, "a", DAY)

    assert "".join(part.text for part in parts(item)) == text


def test_basic_memory_relations_find_their_target_by_title(write: Write) -> None:
    write("auth.md", "---\ntitle: Auth\npermalink: main/auth\n---\n- [tech] JWT with RS256 #security\n")
    folder = write("api.md", "---\ntitle: API\npermalink: main/api\n---\n- part_of [[Auth]]\n- uses [[Nothing]]\n")

    found = items("basic-memory", folder)

    assert found["main/api"].links == (("part_of", "main/auth"),)
    assert found["main/auth"].subjects == ("security",)
    assert "- uses [[Nothing]]" in found["main/api"].text


@pytest.mark.parametrize(
    ("line", "links"),
    [
        ("- part of [[Auth]]", [("part_of", "main/auth/auth-design")]),
        ("- 'replaces' [[auth/auth-design]]", [("updates", "main/auth/auth-design")]),
        ("Read [[Auth|this]] first.", [("related_to", "main/auth/auth-design")]),
        ("- part_of [[Auth]]\n\nRead [[Auth]].", [("part_of", "main/auth/auth-design")]),
        ("See [it](auth/Auth%20design.md).", [("related_to", "main/auth/auth-design")]),
        ("- part_of [[memory://main/auth/auth-design]]", [("part_of", "main/auth/auth-design")]),
        ("Write `[[auth/Auth design]]` or `[[Auth]]`, or:\n\n```\n- part_of [[Auth]]\n```\n", []),
        ("- part_of \\[[Auth]]", []),
        ("- see [[API]]", []),
    ],
)
def test_a_link_of_basic_memory_means_what_it_means_there(write: Write, line: str, links: list[object]) -> None:
    write("auth/Auth design.md", "---\ntitle: Auth\npermalink: main/auth/auth-design\n---\nJWT\n")
    folder = write("api.md", f"---\ntitle: API\npermalink: main/api\n---\n{line}\n")

    assert list(items("basic-memory", folder)["main/api"].links) == links


def test_of_several_notes_of_basic_memory_with_one_title_the_nearest_is_meant(write: Write) -> None:
    for folder in ("a", "b", "c"):
        write(
            f"{folder}/notes/plan.md", f"---\ntitle: Plan\npermalink: main/{folder}/plan\n---\nThe plan of {folder}.\n"
        )
    top = write("b/log/day.md", "---\ntitle: Day\npermalink: main/b/day\n---\n- part_of [[Plan]]\n")

    assert items("basic-memory", top)["main/b/day"].links == (("part_of", "main/b/plan"),)


def test_a_memory_of_mem0_that_ends_after_the_last_day_there_is_has_no_end(write: Write) -> None:
    folder = write("a.json", '[{"id": "m1", "memory": "Tea", "expiration_date": "9999-12-31"}]')

    assert items("mem0", folder / "a.json")["m1"].ends is None


def test_the_files_of_a_memory_bank_have_their_kind(write: Write) -> None:
    write("decisionLog.md", "We chose S3.")
    folder = write("techContext.md", "Python 3.11.")

    kinds = {name: (item.type, item.subjects) for name, item in items("memory-bank", folder).items()}

    assert kinds == {
        "decisionLog.md": ("decision", ("decisionLog",)),
        "techContext.md": ("fact", ("techContext",)),
    }


@pytest.mark.parametrize("wrap", [list, lambda rows: {"results": rows}, lambda rows: {"memories": rows}])
def test_mem0_in_each_of_its_forms(write: Write, wrap: Callable[[list[object]], object]) -> None:
    row = {
        "id": "m1",
        "memory": "Likes tea",
        "user_id": "ana",
        "created_at": "2026-03-01T00:00:00Z",
        "categories": ["food"],
    }
    folder = write("export.json", json.dumps(wrap([row, {"id": "m2"}])))

    first, fault = read("mem0", folder / "export.json")

    assert isinstance(first, SourceItem)
    assert (first.id, first.text, first.author, first.made, first.subjects) == (
        "m1",
        "Likes tea",
        "ana",
        DAY,
        ("food",),
    )
    assert isinstance(fault, SourceFault)
    assert fault.place.endswith("export.json: memory 2")


def test_a_line_that_is_no_json_is_named_with_its_number(write: Write) -> None:
    folder = write("a.jsonl", '{"text": "one", "id": 7}\n\n{"text": \n{"content": "two", "type": "decision"}\n')

    one, fault, two = read("jsonl", folder / "a.jsonl")

    assert isinstance(one, SourceItem)
    assert isinstance(two, SourceItem)
    assert isinstance(fault, SourceFault)
    assert (one.id, two.type, fault.place) == ("7", "decision", f"{folder / 'a.jsonl'}:3")


def test_a_space_comes_as_it_is_without_rules_and_ledger(write: Write, tmp_path: Path) -> None:
    note = "live/20260220T140000_a_observation_00000000.md"
    for name in ("_meta.json", "_rules.md", "_ledger/00000001.json", note, "bank/a.md", "work/b.txt"):
        folder = write(f"alpha/{name}", f"of {name}")
    with tarfile.open(tmp_path / "alpha.tar.gz", "w:gz") as packed:
        packed.add(folder / "alpha", "alpha")

    expected = [SourceObject("bank/a.md", b"of bank/a.md", ""), SourceObject(note, f"of {note}".encode(), "")]
    for path in (folder, folder / "alpha", tmp_path / "alpha.tar.gz"):
        found = [each for each in read("live-memory", path) if isinstance(each, SourceObject)]
        assert [(each.name, each.data) for each in found] == [(each.name, each.data) for each in expected]


def test_what_is_too_large_in_an_archive_is_named_and_the_rest_comes(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "LARGEST", 8)
    for name, text in (("_meta.json", "{}"), ("bank/a.md", "short"), ("bank/b.md", "longer than that")):
        folder = write(f"alpha/{name}", text)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as packed:
        packed.add(folder / "alpha", "alpha")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        for file in (folder / "alpha").rglob("*.*"):
            zipped.write(file, file.relative_to(folder))

    for archive in ("a.tar.gz", "a.zip"):
        found = read("live-memory", tmp_path / archive)
        assert [each.name for each in found if isinstance(each, SourceObject)] == ["bank/a.md"]
        assert [each.place for each in found if isinstance(each, SourceFault)] == [
            f"{tmp_path / archive}: alpha/bank/b.md"
        ]


def test_a_folder_with_several_spaces_names_them(write: Write) -> None:
    write("alpha/_meta.json", "{}")
    folder = write("beta/_meta.json", "{}")

    with pytest.raises(BadRequest, match="several spaces, name one of them: alpha, beta"):
        read("live-memory", folder)


@pytest.mark.parametrize("source", sorted(SOURCES))
@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[1, 2]", b"{}", b'"text"', b"---\n- a\n---\n", b"null\n[]"])
def test_no_source_fails_on_what_is_not_its_own(write: Write, source: str, content: bytes) -> None:
    folder = write("a.md", content)

    for path in (folder, folder / "a.md"):
        try:
            found = read(source, path)
        except BadRequest:
            continue
        assert all(isinstance(each, SourceFault | SourceItem | SourceSession) for each in found)
        assert [each for each in found if isinstance(each, SourceSession) and each.tell().events] == []


@pytest.mark.parametrize(
    "value", ["2026-03-01T00:00:00Z", "2026-03-01", DAY.timestamp(), DAY.timestamp() * 1_000, int(DAY.timestamp()), DAY]
)
def test_times_are_read_in_each_form(value: object) -> None:
    assert moment(value) == DAY


@pytest.mark.parametrize("value", ["yesterday", "", -1, True, None, 1e300, float("nan"), []])
def test_what_is_no_time_is_none(value: object) -> None:
    assert moment(value) is None
