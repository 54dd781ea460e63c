"""The registry against a real tree and against the documentation."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import docs_tables
import pytest
import trio

from livememfs.cache.drafts import Drafts
from livememfs.cache.replica import Replica
from livememfs.pipelines import backups
from livememfs.pipelines.capture import Capture
from livememfs.pipelines.observe import Observer
from livememfs.pipelines.options import RunOptions
from livememfs.pipelines.queue import Consolidations
from livememfs.recall.context import ContextPages
from livememfs.recall.index import Index
from livememfs.recall.service import Recall
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.embed import PATIENT
from livememfs.tree.context import Context
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.node import NOBODY, Attrs, Directory, File, OpenMode
from livememfs.tree.registry import ANY, REGISTRY, find
from livememfs.tree.rejected import RejectedReplies
from livememfs.tree.root import Root
from livememfs.tree.space import RESERVED

TREE = docs_tables.TREE.read_text()
SPACE = "alpha"
CHOSEN_MODE = 0o640
Shown = dict[str, Attrs]


async def _append(file: File, data: bytes) -> None:
    handle = await file.open(OpenMode(read=False, write=True, append=True), NOBODY)
    await handle.write(0, data)
    await handle.flush()
    await handle.release()


async def _write(directory: Directory, name: str, data: bytes, mode: int = 0o644) -> None:
    file = await directory.create(name, mode, NOBODY)
    handle = await file.open(OpenMode(read=False, write=True), NOBODY)
    await handle.write(0, data)
    await handle.flush()
    await handle.release()


async def _walk(directory: Directory, prefix: str = "") -> Shown:
    """Every path below `directory`, as `stat` shows it."""
    found: Shown = {}
    for name, node in await directory.children():
        found[prefix + name] = await node.attrs()
        if isinstance(node, Directory):
            found |= await _walk(node, f"{prefix}{name}/")
    return found


class _Hooks:
    events = ("PostToolUse", "stop")

    async def answer(self, space: str, event: str, request: bytes) -> bytes:
        return b"{}"


@asynccontextmanager
async def _tree(folder: Path) -> AsyncIterator[tuple[Root, Consolidations, MemoryStore]]:
    clock = ManualClock()
    store = MemoryStore(clock)
    replica = Replica(store, listing_ttl=0)  # what is put behind its back is seen at once
    async with trio.open_nursery() as nursery:
        await nursery.start(replica.run)
        consolidations = Consolidations(replica, clock, None, nursery=nursery)
        recall = Recall(replica, clock, lambda: Index(folder, "none"), open_nothing, patience=PATIENT)
        await nursery.start(recall.run)
        observer = Observer(replica, clock, None)
        capture = Capture(replica.inbox, clock, woken=observer.wake)
        context = Context(
            replica=replica,
            consolidations=consolidations,
            clock=clock,
            errors=ErrorLog(clock),
            rejected=RejectedReplies(clock),
            agent_of=lambda pid: "tester",
            status=dict,
            recall=recall,
            pages=ContextPages(replica, clock),
            capture=capture,
            observer=observer,
            hooks=_Hooks(),
        )
        nursery.start_soon(observer.run)
        yield Root(context), consolidations, store
        nursery.cancel_scope.cancel()


async def _furnish(root: Root, consolidations: Consolidations, store: MemoryStore) -> Directory:
    """A space with one of everything, and what stands beside spaces.

    Returns the session: what was dropped in it is shown for as long as somebody holds it, as a kernel does.
    """
    root.context.replica.drafts.keep("alpha/open", b"half", 1)
    Drafts(root.context.replica._database)  # as the next process would, after a crash
    root.context.rejected.keep(SPACE, "not JSON", "I am sorry")
    await store.put("beside/a/file.txt", b"of another program")
    await store.put("loose.txt", b"of another program")
    space = await root.mkdir(SPACE, 0o755, NOBODY)
    await store.put(f"{SPACE}/bank/more/deep.md", b"of another program")
    live = await space.child("live")
    assert isinstance(live, Directory)
    await _write(live, "first", b"the first note\n")
    await consolidations.run_once(SPACE)  # bank, rules and synthesis
    await _write(live, "second", b"the second note\n")
    await _write(live, "x~", b"an editor's backup\n")
    await live.create("draft", 0o644, NOBODY)
    for folder in keys.COLLECTIONS:
        collection = await space.child(folder)
        assert isinstance(collection, Directory)
        await _write(collection, "remembered", b"---\nsubjects: [david]\n---\nDavid is my brother\n")
        await _write(collection, "linked", b"---\nlinks: {updates: [remembered]}\n---\nDavid is my cousin\n")
        await _write(collection, "forgotten", b"David lives in Ordizan\n")
        await collection.unlink("forgotten")
    sessions = await _directory(space, "sessions")
    session = await sessions.mkdir("one", 0o755, NOBODY)
    events = await _directory(session, "events")
    await _write(events, "1.json", b'{"tool": "Edit", "input": {"file_path": "a.py"}}')
    prompts = await session.child("prompts.ndjson")
    assert isinstance(prompts, File)
    await _append(prompts, b"Mend it\n")
    key = f"{SPACE}/sessions/one/summary.md"
    root.context.replica.save(key, b"## Completed\n\nmended\n", meta={}, base=None)
    one = Observation("1a2b3c4d", "one", root.context.clock.now(), "bugfix", "Mended")
    root.context.replica.save(f"{SPACE}/observations/{one.name}", one.render(), meta={}, base=None)
    await consolidations.run_once(SPACE, RunOptions(dry_run=True))
    made = await space.mkdir("folder", CHOSEN_MODE, NOBODY)
    await _write(made, "file.txt", b"as it is\n", CHOSEN_MODE)
    await _write(made, "README.md", b"no guide, an ordinary file\n")
    await space.symlink("link", "folder/file.txt", NOBODY)
    await backups.create(root.context.replica, root.context.clock, SPACE, automatic=False)
    return session


async def _directory(above: Directory, name: str) -> Directory:
    found = await above.child(name)
    assert isinstance(found, Directory)
    return found


async def open_nothing() -> None:
    """Words have to do."""


async def _ask(root: Root) -> Shown:
    """What is below a search, or a memory's links, which no listing shows."""
    found: Shown = {}
    for folder in keys.COLLECTIONS:
        collection = await _directory(await _directory(root, SPACE), folder)
        links = await _directory(collection, "linked.links")
        path = f"{SPACE}/{folder}/linked.links"
        found |= {path: await links.attrs(), **await _walk(links, f"{path}/")}
    for prefix in ("", f"{SPACE}/"):
        above = await root.child(SPACE) if prefix else root
        assert isinstance(above, Directory)
        search = await above.child("search")
        assert isinstance(search, Directory)
        names = ("second note", "second note.md", ".explain", *(["around:1a2b3c4d.md"] if prefix else []))
        for name in names:
            node = await search.child(name)
            found[f"{prefix}search/{name}"] = await node.attrs()
            if name == ".explain":
                assert isinstance(node, Directory)
                found[f"{prefix}search/.explain/note.md"] = await (await node.child("note.md")).attrs()
            elif isinstance(node, Directory):
                found |= await _walk(node, f"{prefix}search/{name}/")
    return found


@pytest.fixture
async def shown(tmp_path: Path) -> Shown:
    async with _tree(tmp_path) as (root, consolidations, store):
        held = await _furnish(root, consolidations, store)
        gc.collect()  # or it is chance whether what nobody holds is still there
        found = {"": await root.attrs(), **await _walk(root), **await _ask(root)}
        assert held.name == "one"  # held until here
        return found


async def test_every_path_shown_is_described_once_with_its_mode(shown: Shown) -> None:
    for path, attrs in shown.items():
        entries = find(path, attrs.kind, {SPACE})

        assert len(entries) == 1, f"{path} ({attrs.kind}): {entries}"
        assert attrs.mode in ({entries[0].mode, CHOSEN_MODE} if entries[0].kept else {entries[0].mode}), path


async def test_every_entry_is_shown_by_a_tree(shown: Shown) -> None:
    """Nothing is documented that a mount does not have."""
    met = [entry for path, attrs in shown.items() for entry in find(path, attrs.kind, {SPACE})]

    assert [entry for entry in REGISTRY if entry not in met] == []


async def test_bits_are_kept_where_the_registry_says_so(shown: Shown) -> None:
    assert shown[f"{SPACE}/folder"].mode == shown[f"{SPACE}/folder/file.txt"].mode == CHOSEN_MODE
    assert {entry.pattern for entry in REGISTRY if entry.kept} == {ANY}


def test_names_that_have_a_meaning_in_a_space_have_none_elsewhere() -> None:
    assert [entry.pattern for entry in find("beside/live", "directory", {SPACE})] == [ANY]
    assert [entry.pattern for entry in find(f"{SPACE}/folder/README.md", "file", {SPACE})] == [ANY]


def test_the_table_of_tree_md_is_the_registry() -> None:
    assert docs_tables.render(TREE) == TREE, "run: python tests/docs_tables.py"
    assert "<!-- generated: tree -->" in TREE


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_every_reserved_name_is_documented(name: str) -> None:
    assert f"`{name}`" in TREE
