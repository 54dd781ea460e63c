"""What is observed of an agent keeps the code that it speaks of, and the page of the next session knows what became of
it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from code_repositories import GitTree

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.session import Session
from livememfs.spaces import making as spaces
from livememfs.store.base import list_all

SPACE = "tool"
ORIGIN = "example.org/acme/tool"


@asynccontextmanager
async def observing(tmp_path: Path) -> AsyncIterator[App]:
    """An app whose observer works, without a model."""
    settings = Settings(
        store=str(tmp_path / "s"),
        cache=str(tmp_path / "c"),
        embed_model="none",
        observe_model="builtin",
        observe_idle=1,
    )
    async with open_app(settings) as app:
        await spaces.create(app.replica, app.clock, SPACE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(app.observer.run)
            yield app
            nursery.cancel_scope.cancel()


async def hook(app: App, tree: GitTree, event: str, **fields: Any) -> str:
    """What an agent is told at an event of a session in a worktree."""
    request = {"session_id": "s-1", "cwd": str(tree.top), "hook_event_name": event, **fields}
    answer = json.loads(await app.hooks.answer(SPACE, event, json.dumps(request).encode()))
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


async def edited(app: App, tree: GitTree, path: str, text: str) -> None:
    """An agent edits a file, says so and stops; it returns when that is observed."""
    tree.write(path, text)
    known = len(await observed(app))
    given = {"tool_name": "Edit", "tool_input": {"file_path": str(tree.top / path)}, "tool_use_id": f"toolu_{path}"}
    await hook(app, tree, "PostToolUse", **given)
    await hook(app, tree, "Stop")
    with trio.fail_after(60):
        while len(await observed(app)) == known:
            await trio.sleep(0.02)


async def observed(app: App) -> list[Observation]:
    await app.replica.uploaded()
    prefix = keys.observations_prefix(SPACE)
    infos = (await list_all(app.store, prefix)).objects
    objects = [await app.store.get(info.key) for info in infos]
    return [
        Observation.parse(stored.data, path=stored.info.key, name=stored.info.key.removeprefix(prefix))
        for stored in objects
    ]


async def test_an_observation_and_its_session_keep_where_they_were_made(tmp_path: Path) -> None:
    tree = GitTree.made(tmp_path / "tool")
    first = tree.git("rev-parse", "HEAD")
    async with observing(tmp_path) as app:
        await hook(app, tree, "SessionStart", source="startup")
        tree.git("checkout", "-q", "-b", "feature/x")
        await edited(app, tree, "src/a.py", "def load():\n    pass\n")
        (observation,) = await observed(app)
        key = keys.session_key(SPACE, keys.session_slug("s-1"), keys.SESSION)
        session = Session.parse((await app.store.get(key)).data, space=SPACE, session="s-1", now=app.clock.now())

    where = {"repository": ORIGIN, "branch": "feature/x", "commit": first}
    assert {name: observation.extra[name] for name in where} == where
    (anchor,) = observation.extra["code"]
    assert anchor.startswith("src/a.py@")
    assert len(anchor) > len("src/a.py@")
    assert {name: session.extra[name] for name in where} == where
    assert session.extra["began"] == {**where, "branch": "main"}


async def test_the_branch_is_that_of_the_event_and_not_of_the_moment_it_is_observed(tmp_path: Path) -> None:
    tree = GitTree.made(tmp_path / "tool")
    async with observing(tmp_path) as app:
        tree.git("checkout", "-q", "-b", "feature/x")
        tree.write("src/a.py", "pass\n")
        given = {"tool_name": "Edit", "tool_input": {"file_path": str(tree.top / "src/a.py")}, "tool_use_id": "toolu_1"}
        await hook(app, tree, "PostToolUse", **given)
        tree.git("checkout", "-q", "main")
        await hook(app, tree, "Stop")
        with trio.fail_after(60):
            while not (found := await observed(app)):
                await trio.sleep(0.02)

    assert found[0].extra["branch"] == "feature/x"


async def test_the_page_of_a_session_says_what_became_of_the_code(tmp_path: Path) -> None:
    tree = GitTree.made(tmp_path / "tool")
    async with observing(tmp_path) as app:
        for name in ("stays", "changes", "goes"):
            await edited(app, tree, f"src/{name}.py", f"def {name}():\n    pass\n")
        before = await hook(app, tree, "SessionStart", source="startup")
        tree.write("src/changes.py", "def changes():\n    return 1\n")
        (tree.top / "src/goes.py").unlink()
        after = await hook(app, tree, "SessionStart", source="clear")

    lines = {name: next((line for line in after.splitlines() if f"src/{name}.py" in line and "#" in line), "")
             for name in ("stays", "changes", "goes")}  # fmt: skip
    assert "its code" not in before
    assert "Wrote src/goes.py" in before or "Edited src/goes.py" in before
    assert "its code" not in lines["stays"]
    assert lines["stays"]
    assert "its code has changed since" in lines["changes"]
    assert not lines["goes"]
