"""The order of what is told, pairs that contradict, and what is told about a file, where code has moved on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from code_repositories import GitTree

from livememfs.app import App, open_app
from livememfs.code.workplaces import CheckPatience
from livememfs.config import Settings
from livememfs.memories.storing import id_of, remember
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.inject import Limits
from livememfs.spaces import making as spaces

SPACE = "tool"


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a busy machine has time for is not asked here."""
    monkeypatch.setattr("livememfs.code.workplaces.BEFORE_AN_ANSWER", CheckPatience(5.0, 1 << 26, 10.0))


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[App]:
    settings = Settings(store=str(tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none")
    async with open_app(settings) as app:
        await spaces.create(app.replica, app.clock, SPACE)
        yield app


async def remembered(app: App, tree: GitTree, text: str) -> str:
    app.code.heard(SPACE, "", str(tree.top))
    key = await remember(app.replica, app.clock, SPACE, "memories", text, agent="claude", code=app.code)
    return id_of(key.rpartition("/")[2])


async def hook(app: App, tree: GitTree, event: str, session: str = "s", **fields: Any) -> str:
    request = {"session_id": session, "cwd": str(tree.top), "hook_event_name": event, **fields}
    answer = json.loads(await app.hooks.answer(SPACE, event, json.dumps(request).encode()))
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


async def test_what_is_on_another_branch_is_told_after_what_counts_here(tmp_path: Path) -> None:
    main = GitTree.made(tmp_path / "tool")
    side = main.worktree(tmp_path / "side", "side")
    side.write("a.py", "pass\n")
    side.commit("side")
    async with opened(tmp_path) as app:
        await remembered(app, side, "The ferry leaves the harbour at nine")
        await remembered(app, main, "The harbour has a striped lighthouse")
        await app.recall.ask("ferry", [SPACE])
        app.prehook.settings = PrehookSettings(limits=Limits(most=1))
        prompt = "When does the ferry leave the harbour?"
        on_main = [await hook(app, main, "UserPromptSubmit", "m", prompt=prompt) for _ in range(2)]
        on_side = await hook(app, side, "UserPromptSubmit", "s", prompt=prompt)

    assert "striped" in on_main[0]
    assert "(on branch side, not merged): The ferry leaves" in on_main[1]
    assert "The ferry leaves" in on_side
    assert "not merged" not in on_side


@pytest.mark.parametrize("gone", [False, True])
async def test_a_pair_is_told_only_while_the_code_of_both_is_there(tmp_path: Path, gone: bool) -> None:
    tree = GitTree.made(tmp_path / "tool")
    tree.write("ferry.py", "def ferry_time():\n    return 9\n")
    tree.commit("ferry")
    async with opened(tmp_path) as app:
        older = await remembered(app, tree, "We indent with tabs, see `ferry_time` in ferry.py")
        await remembered(app, tree, f"---\nlinks: {{contradicts: [{older}]}}\n---\nWe indent with spaces.")
        await app.recall.ask("indent", [SPACE])
        if gone:
            (tree.top / "ferry.py").unlink()
        block = await hook(app, tree, "UserPromptSubmit", prompt="How do we indent?")

    assert "We indent with spaces" in block
    assert ("with tabs" in block) is not gone


async def test_about_a_file_only_what_still_holds_is_told(tmp_path: Path) -> None:
    tree = GitTree.made(tmp_path / "tool")
    tree.write("src/ferry.py", "def ferry_time():\n    return 9\n\n\ndef ferry_name():\n    return 'Ada'\n")
    tree.commit("ferry")
    async with opened(tmp_path) as app:
        await remembered(app, tree, "src/ferry.py: `ferry_time` is nine because of the tide")
        await remembered(app, tree, "src/ferry.py: `ferry_name` was chosen by the mayor")
        await app.recall.ask("ferry", [SPACE])
        tree.write("src/ferry.py", "def ferry_name():\n    return 'Bob'\n")
        given = {"tool_name": "Read", "tool_input": {"file_path": str(tree.top / "src/ferry.py")}, "tool_use_id": "t"}
        block = await hook(app, tree, "PreToolUse", **given)

    assert "chosen by the mayor" in block
    assert "its code has changed since" in block
    assert "tide" not in block
