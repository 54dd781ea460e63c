"""What people and agents see of stale records where they look: `.stale/`, a search, and the text that they wrote."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from code_repositories import GitTree

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.errors import NotFound
from livememfs.memories.storing import remember
from livememfs.recall.search.page import page
from livememfs.records.memory import Memory
from livememfs.records.observation import Observation
from livememfs.spaces import making as spaces
from livememfs.tree.node import Caller, Directory, File, OpenMode

SPACE = "tool"
FACTS = {"stays": "`stays` in stays.py is called first", "changes": "`changes` in changes.py is called second",
         "goes": "`goes` in goes.py is called last"}  # fmt: skip
WRITE = OpenMode(write=True)


async def folder_in(above: Directory, name: str) -> Directory:
    node = await above.child(name)
    assert isinstance(node, Directory)
    return node


@pytest.fixture
def repository(tmp_path: Path) -> GitTree:
    made = GitTree.made(tmp_path / "tool")
    for name in FACTS:
        made.write(f"{name}.py", f"def {name}():\n    pass\n")
    made.commit("code")
    return made


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[App]:
    settings = Settings(store=str(tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none")
    async with open_app(settings) as app:
        await spaces.create(app.replica, app.clock, SPACE)
        yield app


async def remembered(app: App, tree: GitTree) -> dict[str, str]:
    """Names of objects by what they are about; then the code moves on."""
    app.code.heard(SPACE, "s", str(tree.top))
    keys = {}
    for name, fact in FACTS.items():
        keys[name] = await remember(app.replica, app.clock, SPACE, "memories", fact, agent="claude", code=app.code)
    moves_on(tree)
    return {name: key.rpartition("/")[2] for name, key in keys.items()}


def moves_on(tree: GitTree) -> None:
    tree.write("changes.py", "def changes():\n    return 1\n")
    (tree.top / "goes.py").unlink()


async def stale(app: App, folder: str) -> dict[str, str]:
    """The texts of a `.stale/` by the names of its files."""
    node = await folder_in(await folder_in(await folder_in(app.tree, SPACE), folder), ".stale")
    found = {}
    for name, file in await node.children():
        assert isinstance(file, File)
        assert await node.child(name) is file
        handle = await file.open(OpenMode(read=True), Caller())
        found[name] = (await handle.read(0, 1 << 16)).decode()
    return found


async def test_stale_memories_are_listed_with_what_became_of_their_code(tmp_path: Path, repository: GitTree) -> None:
    async with opened(tmp_path) as app:
        names = await remembered(app, repository)
        found = await stale(app, "memories")
        assert set(found) == {names["changes"], names["goes"]}
        commit = repository.git("rev-parse", "HEAD")[:12]
        assert f"- changes in changes.py: changed since commit {commit}" in found[names["changes"]]
        assert found[names["goes"]].startswith("gone: it is not told")
        assert str(repository.top) in found[names["goes"]]
        assert f"../{names['goes']}" in found[names["goes"]]

        repository.git("checkout", "-q", ".")
        assert await stale(app, "memories") == {}


async def test_what_is_renamed_is_not_stale(tmp_path: Path, repository: GitTree) -> None:
    async with opened(tmp_path) as app:
        names = await remembered(app, repository)
        repository.git("checkout", "-q", ".")
        repository.git("mv", "goes.py", "gone.py")

        assert names["goes"] not in await stale(app, "memories")


async def test_without_a_working_directory_nothing_is_stale(tmp_path: Path, repository: GitTree) -> None:
    async with opened(tmp_path) as app:
        await remembered(app, repository)
        app.code._folders.clear()

        assert await stale(app, "memories") == {}


async def test_stale_observations_are_listed_too(tmp_path: Path, repository: GitTree) -> None:
    async with opened(tmp_path) as app:
        extra = {"repository": "example.org/acme/tool", "code": ["goes.py@0123456789abcdef", "../odd@x", 7]}
        seen = Observation("1a2b3c4d", "s", app.clock.now(), "change", "Wrote goes.py", extra=extra)
        app.replica.save(f"{SPACE}/observations/{seen.name}", seen.render(), meta={}, base=None)
        app.code.heard(SPACE, "s", str(repository.top))
        repository.write("goes.py", "pass\n")
        (text,) = (await stale(app, "observations")).values()
        node = await folder_in(await folder_in(app.tree, SPACE), "observations")

        assert "- goes.py: changed" in text
        assert [name for name, _ in await node.children()] == [seen.name]


async def test_a_search_shows_what_is_gone_and_says_so(tmp_path: Path, repository: GitTree) -> None:
    async with opened(tmp_path) as app:
        await remembered(app, repository)
        answer = await app.recall.ask("called", [SPACE])
        text = page(answer.query, answer.found, [hit.record.key for hit in answer.found.hits])
        marks = {hit.record.text.split("`")[1]: hit.mark for hit in answer.found.hits}

    assert marks == {"stays": "", "changes": "its code has changed since", "goes": "its code is gone"}
    assert text.count("its code is gone") == 1


async def write(app: App, name: str, text: str) -> Memory:
    """What became of a text that this process wrote into `memories/`."""
    folder = await folder_in(await folder_in(app.tree, SPACE), "memories")
    try:
        node = await folder.child(name)
    except NotFound:
        node = await folder.create(name, 0o644, Caller(pid=os.getpid()))
    assert isinstance(folder, Directory)
    assert isinstance(node, File)
    handle = await node.open(WRITE, Caller(pid=os.getpid()))
    await handle.write(0, text.encode())
    await handle.flush()
    await handle.release()
    (key,) = [
        info.key
        for info in await app.replica.names.walk(f"{SPACE}/memories/", local=True)
        if "/.history/" not in info.key
    ]
    return Memory.parse((await app.replica.read(key)).data, path=key, collection="memories")


async def test_a_text_keeps_the_code_of_the_directory_of_who_wrote_it(
    tmp_path: Path, repository: GitTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as app:
        app.code._own = ""
        monkeypatch.chdir(repository.top)
        memory = await write(app, "fact", FACTS["goes"])

    assert memory.extra["repository"] == "example.org/acme/tool"
    assert memory.extra["branch"] == "main"
    assert [text.partition("@")[0] for text in memory.extra["code"]] == ["goes.py#goes"]


async def test_what_is_private_is_in_no_anchor(
    tmp_path: Path, repository: GitTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "ghp_" + "a1B2" * 9
    repository.write("goes.py", f"{secret} = 1\n")
    repository.write("server.pem", "MIIB_X\n")
    async with opened(tmp_path) as app:
        monkeypatch.chdir(repository.top)
        memory = await write(app, "fact", f"`{secret}` in goes.py, see server.pem and `MIIB_X`")

    assert secret not in memory.render().decode()
    assert memory.extra["repository"]
    assert "server.pem" not in str(memory.extra.get("code"))


async def test_an_edit_of_the_text_looks_at_the_code_anew_and_an_edit_of_a_field_does_not(
    tmp_path: Path, repository: GitTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as app:
        monkeypatch.chdir(repository.top)
        first = await write(app, "fact", FACTS["changes"])
        moves_on(repository)
        fields = first.render().decode().replace("importance: 0.6", "importance: 0.9")
        same = await write(app, "fact", fields)
        other = await write(app, "fact", FACTS["changes"] + " of all")

    assert same.importance == 0.9
    assert same.extra["code"] == first.extra["code"]
    assert other.extra["code"] != first.extra["code"]
