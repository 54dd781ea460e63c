"""The six commands of a file-based memory tool over a space's folder: what a path means is the tree's to say."""

from __future__ import annotations

from typing import Any

import pytest
from clients import SPACE, OpenClient, content_of

from livememfs.app import App
from livememfs.errors import BadRequest, NotText, ReadOnly, Unreachable
from livememfs.records import keys
from livememfs.records.access import Access
from livememfs.serve.folder import LARGEST, MOST_ENTRIES, Folder
from livememfs.spaces import making as spaces
from livememfs.tree.node import NOBODY
from livememfs.tree.plain import PlainDirectory

READER = Access("reader", frozenset({"read"}))


@pytest.fixture
def folder(app: App) -> Folder:
    """The folder of `alpha`."""
    return Folder(app.tree, SPACE, agent="tester")


async def stored(app: App, folder: str, kind: str) -> list[str]:
    """The keys of the objects of a kind."""
    infos = await app.replica.names.walk(f"{SPACE}/{folder}/")
    return [info.key for info in infos if keys.parse(info.key).kind == kind]


async def text_of(app: App, name: str) -> str:
    """An object below `alpha/`."""
    return (await app.replica.read(f"{SPACE}/{name}", fresh=True)).data.decode()


async def test_a_file_is_made_seen_changed_and_removed(folder: Folder, app: App) -> None:
    await folder.create("/memories/plan.md", "one\ntwo\nthree\n")
    assert await text_of(app, "plan.md") == "one\ntwo\nthree\n"
    assert await folder.view("/memories/plan.md") == (
        "/memories/plan.md with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree"
    )
    assert "     2\t2\n" in await folder.str_replace("/memories/plan.md", "two", "2")
    assert "     1\tzero\n     2\tone" in await folder.insert("/memories/plan.md", 0, "zero")
    await folder.insert("/memories/plan.md", 4, "four\nfive")
    assert await text_of(app, "plan.md") == "zero\none\n2\nthree\nfour\nfive\n"
    await folder.rename("/memories/plan.md", "/memories/done/plan.md")
    assert await text_of(app, "done/plan.md") == "zero\none\n2\nthree\nfour\nfive\n"
    await folder.delete("/memories/done")
    assert [info.key for info in await app.replica.names.walk(f"{SPACE}/done")] == []


async def test_lines_are_counted_as_they_are_shown(folder: Folder, app: App) -> None:
    """A form feed or a line separator of Unicode ends no line, whatever Python thinks; an end in two bytes stays."""
    text = "one\f still one\u2028and\x85here\r\ntwo\r\nthree"
    await folder.create("/memories/a.txt", text)
    await folder.insert("/memories/a.txt", 1, "between")
    assert await text_of(app, "a.txt") == text.replace("\r\ntwo", "\r\nbetween\ntwo")
    await folder.insert("/memories/a.txt", 4, "last")
    assert (await text_of(app, "a.txt")).endswith("two\r\nthree\nlast\n")
    await folder.create("/memories/empty.txt", "")
    await folder.insert("/memories/empty.txt", 0, "first")
    assert await text_of(app, "empty.txt") == "first\n"


@pytest.mark.parametrize(
    ("given", "shown"),
    [(None, "123"), ([1, -1], "123"), ([2, 2], "2"), ([2, 9], "23"), ([3, -1], "3")],
)
async def test_a_part_of_a_file_is_seen_by_its_lines(folder: Folder, given: Any, shown: str) -> None:
    await folder.create("/memories/a.md", "l1\nl2\nl3\n")
    lines = (await folder.view("/memories/a.md", given)).splitlines()[1:]

    assert [line.partition("\t")[2] for line in lines] == [f"l{number}" for number in shown]


async def test_a_note_is_made_in_live_and_is_by_whoever_wrote_it(folder: Folder, app: App) -> None:
    await folder.create("/memories/live/decision-store.md", "we chose S3")

    [key] = await stored(app, "live", "note")
    assert "_tester_decision_" in key
    await folder.str_replace("/memories/live/decision-store.md", "S3", "a bucket")
    assert "we chose a bucket" in (await app.replica.read(key)).data.decode()
    assert await stored(app, "live", "note") == [key]
    assert key.rpartition("/")[2] in await folder.view("/memories/live")


async def test_a_memory_is_made_in_memories_and_forgotten(folder: Folder, app: App) -> None:
    await folder.create("/memories/memories/fact-david.md", "David lives in Toulouse")
    [key] = await stored(app, "memories", "memory")
    await folder.delete(f"/memories/memories/{key.rpartition('/')[2]}")
    await app.replica.uploaded()
    assert await stored(app, "memories", "memory") == []


KEPT = ("live", "memories", "self", "goals", "bank", "sessions", "observations", "search", ".history", ".hooks")


@pytest.mark.parametrize("name", [*KEPT, "memories/.by", "memories/.recent", "memories/.history"])
async def test_a_directory_that_the_space_keeps_loses_nothing(folder: Folder, app: App, name: str) -> None:
    await folder.create("/memories/live/todo.md", "a note")
    await folder.create("/memories/memories/fact.md", "a fact")
    await app.replica.put(f"{SPACE}/bank/progress.md", b"settled\n")
    before = await content_of(app)

    with pytest.raises(ReadOnly):
        await folder.delete(f"/memories/{name}")
    await app.replica.uploaded()
    assert await content_of(app) == before


async def test_a_directory_goes_with_all_that_is_below(folder: Folder, app: App) -> None:
    before = set(await content_of(app))
    for path in ("docs/a.txt", "docs/deep/live/b.txt", "docs/deep/c.txt", "docs/.hidden"):
        await folder.create(f"/memories/{path}", "x")
    await (await folder._parent(["docs", "x"])).mkdir("empty", 0o755, NOBODY)
    await folder.delete("/memories/docs")

    assert set(await content_of(app)) == before


async def test_a_removal_that_fails_half_way_says_how_far_it_came(
    folder: Folder, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        await folder.create(f"/memories/docs/{name}", "x")
    unlink = PlainDirectory.unlink

    async def failing(directory: PlainDirectory, name: str) -> None:
        if name == "a":
            await unlink(directory, name)  # as somebody else does at the same time
        if name == "c":
            raise Unreachable(path="docs/c")
        await unlink(directory, name)

    monkeypatch.setattr(PlainDirectory, "unlink", failing)
    with pytest.raises(BadRequest, match="2 of the 4 names in it are removed"):
        await folder.delete("/memories/docs")

    assert [info.key for info in await app.replica.names.walk(f"{SPACE}/docs/c")] == [f"{SPACE}/docs/c"]


@pytest.mark.parametrize(
    ("command", "given", "sentence"),
    [
        ("view", {"path": "/memories/none.md"}, "there is no alpha/none.md"),
        ("view", {"path": "/etc/passwd"}, "paths begin with /memories"),
        ("view", {"path": "/memoriesX"}, "paths begin with /memories"),
        ("view", {"path": "/memories/../beta"}, "is no path in it"),
        ("view", {"path": "/memories/./a"}, "is no path in it"),
        ("view", {"path": "/memories/a//b"}, "is no path in it"),
        ("view", {"path": "/memories/a.md", "view_range": [2]}, "[first, last]"),
        ("view", {"path": "/memories/a.md", "view_range": [0, 2]}, "[first, last]"),
        ("view", {"path": "/memories/a.md/b"}, "not a directory"),
        ("create", {"path": "/memories/a.md", "file_text": "x"}, "exists already"),
        ("create", {"path": "/memories", "file_text": "x"}, "a file needs a name"),
        ("create", {"path": "/memories/bank/x.md", "file_text": "x"}, "read-only"),
        ("create", {"path": "/memories/big", "file_text": "é" * LARGEST}, "over 1 MB"),
        ("str_replace", {"path": "/memories/a.md", "old_str": "none", "new_str": ""}, "occurs 0 times"),
        ("str_replace", {"path": "/memories/a.md", "old_str": "twice"}, "occurs 2 times in it (lines 1, 2)"),
        ("str_replace", {"path": "/memories/a.md", "old_str": "", "new_str": "x"}, "occurs 0 times"),
        ("str_replace", {"path": "/memories/bank", "old_str": "a", "new_str": "x"}, "is a directory"),
        ("insert", {"path": "/memories/a.md", "insert_line": 9, "insert_text": "x"}, "insert_line is 0 to 2"),
        ("insert", {"path": "/memories/README.md", "insert_line": 0, "insert_text": "x"}, "read-only"),
        ("delete", {"path": "/memories"}, "the space itself"),
        ("delete", {"path": "/memories/bank"}, "read-only"),
        ("rename", {"old_path": "/memories/none", "new_path": "/memories/x"}, "there is no alpha/none"),
        ("rename", {"old_path": "/memories/a.md", "new_path": "/memories/b.md"}, "exists already"),
        ("rename", {"old_path": "/memories", "new_path": "/memories/b"}, "cannot be renamed"),
        ("view", {}, "it takes path, view_range"),
        ("view", {"path": "/memories", "old_str": "x"}, "it takes path, view_range"),
    ],
)
async def test_what_cannot_be_done_is_said_in_words(
    open_client: OpenClient, app: App, command: str, given: dict[str, Any], sentence: str
) -> None:
    await app.replica.put(f"{SPACE}/a.md", b"twice\ntwice\n")
    await app.replica.put(f"{SPACE}/b.md", b"b\n")
    before = await content_of(app)

    async with open_client() as client:
        assert sentence in await client.refused("memory", space_id=SPACE, command=command, **given)
    assert await content_of(app) == before


async def test_who_may_only_read_views_and_no_more(open_client: OpenClient, app: App) -> None:
    await app.replica.put(f"{SPACE}/a.md", b"text\n")
    before = await content_of(app)

    async with open_client(READER) as client:
        assert "text" in (await client.call("memory", space_id=SPACE, command="view", path="/memories/a.md"))["text"]
        for command, given in (
            ("create", {"path": "/memories/new", "file_text": "x"}),
            ("create", {"path": "/memories/deep/new", "file_text": "x"}),
            ("str_replace", {"path": "/memories/a.md", "old_str": "text", "new_str": "x"}),
            ("insert", {"path": "/memories/a.md", "insert_line": 0, "insert_text": "x"}),
            ("delete", {"path": "/memories/a.md"}),
            ("rename", {"old_path": "/memories/a.md", "new_path": "/memories/c.md"}),
        ):
            assert "may only view" in await client.refused("memory", space_id=SPACE, command=command, **given)
    assert await content_of(app) == before


async def test_a_folder_is_seen_two_levels_deep_without_what_is_hidden(folder: Folder) -> None:
    for path in ("a/b/c/deep.md", "a/.hidden", "top.md"):
        await folder.create(f"/memories/{path}", "x")
    lines = (await folder.view("/memories")).splitlines()[1:]
    names = {line.partition("\t")[2] for line in lines}

    assert {"/memories/a/", "/memories/a/b/", "/memories/top.md", "/memories/live/", "/memories/README.md"} <= names
    assert not [name for name in names if "deep.md" in name or "hidden" in name or "_meta" in name]


async def test_a_folder_of_thousands_is_not_shown_whole(folder: Folder, app: App) -> None:
    for number in range(MOST_ENTRIES + 5):
        await app.replica.put(f"{SPACE}/many/{number:04}.md", b"")

    lines = (await folder.view("/memories/many")).splitlines()
    assert len(lines) == MOST_ENTRIES + 2
    assert lines[-1].strip() == "/memories/many/... and 5 more"


async def test_what_is_no_text_is_not_shown(folder: Folder, app: App) -> None:
    await app.replica.put(f"{SPACE}/picture.png", b"\x89PNG\xff")
    with pytest.raises(NotText):
        await folder.view("/memories/picture.png")


async def test_a_space_that_is_not_there_is_said(app: App, open_client: OpenClient) -> None:
    async with open_client() as client:
        assert "there is no beta" in await client.refused("memory", space_id="beta", command="view", path="/memories")
    assert not await spaces.is_space(app.replica, "beta")
