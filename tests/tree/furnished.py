"""A tree with one of every kind of path the registry has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio
from contexts import PlainHooks, context_of, words_alone
from hosts import APPEND, WRITE, close

from livememfs.cache.drafts import Drafts
from livememfs.cache.replica import Replica
from livememfs.memories import proposals
from livememfs.recall.index.local import Index
from livememfs.recall.service import Recall
from livememfs.records import keys
from livememfs.records.access import EVERYTHING, Access
from livememfs.records.observation import Observation
from livememfs.records.proposal import Proposal, key_of
from livememfs.runs.options import RunOptions
from livememfs.runs.queue import RunQueue
from livememfs.spaces import backups
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import START, ManualClock
from livememfs.testing.embed import PATIENT
from livememfs.text import frontmatter
from livememfs.tree.node import NOBODY, Directory, File, Node, OpenMode
from livememfs.tree.root import Root

SPACE = "alpha"
OF_CODE = {"repository": "example.org/tool", "code": ["a.py@0123456789abcdef"]}
CODE = frontmatter.join(OF_CODE, "The answer is in a.py\n").encode()
"""A file that is not there any more."""
CHOSEN_MODE = 0o640
Met = dict[str, Node]


async def _fill(file: Node, data: bytes, mode: OpenMode = WRITE) -> None:
    assert isinstance(file, File)
    handle = await file.open(mode, NOBODY)
    await handle.write(0, data)
    await close(handle)


async def _write(directory: Directory, name: str, data: bytes, mode: int = 0o644) -> None:
    await _fill(await directory.create(name, mode, NOBODY), data)


async def walk(directory: Directory, prefix: str = "") -> Met:
    """Every path below `directory`."""
    nodes: Met = {}
    for name, node in await directory.children():
        nodes[prefix + name] = node
        if isinstance(node, Directory):
            nodes |= await walk(node, f"{prefix}{name}/")
    return nodes


@dataclass
class Furnished:
    """The tree; `access` is what may be done in it from now on, `status` what its mount says of itself. `code` is a
    folder for a repository.
    """

    root: Root
    consolidations: RunQueue
    store: MemoryStore
    code: Path
    access: Access = EVERYTHING
    status: dict[str, object] = field(default_factory=dict)


@asynccontextmanager
async def tree(folder: Path) -> AsyncIterator[Furnished]:
    """An empty one."""
    clock = ManualClock()
    store = MemoryStore(clock)
    replica = Replica(store, listing_ttl=0)  # what is put behind its back is seen at once
    async with trio.open_nursery() as nursery:
        await nursery.start(replica.run)
        consolidations = RunQueue(replica, clock, None, nursery=nursery)
        recall = Recall(replica, clock, lambda: Index(folder, "none"), words_alone, patience=PATIENT)
        await nursery.start(recall.run)
        context = context_of(
            replica,
            clock,
            consolidations,
            agent_of=lambda pid: "tester",
            status=lambda: made.status,
            access=lambda: made.access,
            recall=recall,
            hooks=PlainHooks("PostToolUse", "claude.Stop", "stop"),
        )
        nursery.start_soon(context.observer.run)
        made = Furnished(Root(context), consolidations, store, folder / "code")
        yield made
        nursery.cancel_scope.cancel()


async def furnish(made: Furnished) -> Directory:
    """A space with one of everything, and what stands beside spaces.

    Returns the session: what was dropped in it is shown for as long as somebody holds it, as a kernel does.
    """
    root, consolidations, store = made.root, made.consolidations, made.store
    root.context.replica.drafts.keep("alpha/open", b"half", 1)
    Drafts(root.context.replica._database)  # as the next process would, after a crash
    root.context.rejected.keep(SPACE, "not JSON", "I am sorry")
    await store.put("beside/a/file.txt", b"of another program")
    await store.put("loose.txt", b"of another program")
    space = await root.mkdir(SPACE, 0o755, NOBODY)
    await store.put(f"{SPACE}/bank/more/deep.md", b"of another program")
    for name in ("0000000a", "0000000b"):
        target = f"memories/20260220T140000_fact_{name}.md"
        proposal = Proposal(target=target, content="David is my uncle\n", by="digest 1", why="", at=START)
        await store.put(key_of(SPACE, proposal.name), proposal.render())
    await proposals.refuse(root.context.replica, root.context.clock, SPACE, proposal.name, by="me")
    live = await folder_in(space, "live")
    await _write(live, "first", b"the first note\n")
    await consolidations.run_once(SPACE)  # bank, rules and synthesis
    await _write(live, "second", b"the second note\n")
    await _write(live, "x~", b"an editor's backup\n")
    await live.create("draft", 0o644, NOBODY)
    for folder in keys.COLLECTIONS:
        collection = await folder_in(space, folder)
        await _write(collection, "remembered", b"---\nsubjects: [david]\n---\nDavid is my brother\n")
        await _write(collection, "linked", b"---\nlinks: {updates: [remembered]}\n---\nDavid is my cousin\n")
        await _write(collection, "doubted", b"---\nlinks: {contradicts: [remembered]}\n---\nDavid is no relative\n")
        await _write(collection, "stale", CODE)
        await _write(collection, "forgotten", b"David lives in Ordizan\n")
        await collection.unlink("forgotten")
    for place in (root, live, *[await folder_in(space, folder) for folder in keys.COLLECTIONS]):
        await place.mkdir(".git", 0o755, NOBODY)
    sessions = await folder_in(space, "sessions")
    session = await sessions.mkdir("one", 0o755, NOBODY)
    events = await folder_in(session, "events")
    await _write(events, "1.json", b'{"tool": "Edit", "input": {"file_path": "a.py"}}')
    await _fill(await session.child("prompts.ndjson"), b"Mend it\n", APPEND)
    key = f"{SPACE}/sessions/one/summary.md"
    root.context.replica.save(key, b"## Completed\n\nmended\n", meta={}, base=None)
    await store.put(f"{SPACE}/sessions/one/told.json", b'{"turn": 1, "told": {}}')
    seen = Observation("1a2b3c4d", "one", root.context.clock.now(), "bugfix", "Mended", extra=OF_CODE)
    root.context.replica.save(f"{SPACE}/observations/{seen.name}", seen.render(), meta={}, base=None)
    await consolidations.run_once(SPACE, RunOptions(dry_run=True))
    plain = await space.mkdir("folder", CHOSEN_MODE, NOBODY)
    await _write(plain, "file.txt", b"as it is\n", CHOSEN_MODE)
    await _write(plain, "README.md", b"no guide, an ordinary file\n")
    await space.symlink("link", "folder/file.txt", NOBODY)
    (made.code / ".git").mkdir(parents=True)
    (made.code / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (made.code / ".git/config").write_text('[remote "origin"]\n\turl = https://example.org/tool.git\n')
    root.context.code.heard(SPACE, "one", str(made.code))
    await backups.create(root.context.replica, root.context.clock, SPACE, automatic=False)
    return session


async def folder_in(above: Directory, name: str) -> Directory:
    node = await above.child(name)
    assert isinstance(node, Directory)
    return node


async def ask(root: Root) -> Met:
    """What is below a search, or a memory's links, and the places of sandboxes, which no listing shows."""
    live = await folder_in(await folder_in(root, SPACE), "live")
    nodes: Met = {".git": await root.child(".git"), f"{SPACE}/live/.git": await live.child(".git")}
    for folder in keys.COLLECTIONS:
        collection = await folder_in(await folder_in(root, SPACE), folder)
        links = await folder_in(collection, "linked.links")
        nodes[f"{SPACE}/{folder}/.git"] = await collection.child(".git")
        path = f"{SPACE}/{folder}/linked.links"
        nodes |= {path: links, **await walk(links, f"{path}/")}
    stale = await folder_in(await folder_in(await folder_in(root, SPACE), "observations"), ".stale")
    nodes |= {f"{SPACE}/observations/.stale": stale, **await walk(stale, f"{SPACE}/observations/.stale/")}
    for prefix in ("", f"{SPACE}/"):
        search = await folder_in(await folder_in(root, SPACE) if prefix else root, "search")
        names = ("second note", "second note.md", ".explain", *(["around:1a2b3c4d.md"] if prefix else []))
        for name in names:
            node = nodes[f"{prefix}search/{name}"] = await search.child(name)
            if name == ".explain":
                assert isinstance(node, Directory)
                nodes[f"{prefix}search/.explain/note.md"] = await node.child("note.md")
            elif isinstance(node, Directory):
                nodes |= await walk(node, f"{prefix}search/{name}/")
    return nodes
