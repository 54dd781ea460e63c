"""What a session is told of a hundred facts, in three worktrees of a repository in which code moves on.

The way is that of a hook: its JSON goes in, the block for the model comes out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from code_repositories import GitTree

from livememfs.app import App, open_app
from livememfs.code.workplaces import CheckPatience
from livememfs.config import Settings
from livememfs.memories.storing import remember
from livememfs.spaces import making as spaces

SPACE = "tool"
MARKS = ("its code has changed since", "not merged", "not checked")
FIRST = ["amber", "basalt", "cedar", "dahlia", "ermine", "falcon", "garnet", "heron", "indigo", "jasper"]
SECOND = ["anchor", "beacon", "candle", "drawer", "engine", "funnel", "girder", "hammer", "ingot", "jigsaw"]


@dataclass(frozen=True)
class Fact:
    """A fact about one function. `then` says what becomes of its code."""

    number: int
    then: str

    @property
    def name(self) -> str:
        return f"{FIRST[self.number // 10]}_{SECOND[self.number % 10]}"

    @property
    def path(self) -> str:
        return f"src/{FIRST[self.number // 10]}/{SECOND[self.number % 10]}.py"

    @property
    def text(self) -> str:
        return f"`{self.name}` in {self.path} answers {self.number} where a {self.name.replace('_', ' ')} is asked for"

    def code(self, answer: str = "") -> str:
        answers = f"def {self.name}(asked):\n    return {answer or self.number}\n"
        return f"import os\n\n\n{answers}\n\ndef more():\n    pass\n"


KINDS = ["stays"] * 40 + ["edited beside"] * 10 + ["renamed"] * 10 + ["changed"] * 15 + ["removed"] * 15 + ["side"] * 10
FACTS = [Fact(number, then) for number, then in enumerate(KINDS)]
OTHERS = [fact for fact in FACTS if fact.then != "side"]


def moves_on(tree: GitTree, facts: Sequence[Fact]) -> None:
    """The code of these facts becomes what it becomes, in the worktree and the index."""
    for fact in facts:
        if fact.then == "edited beside":
            tree.write(fact.path, fact.code().replace("    pass", "    return os.name"))
        elif fact.then == "renamed":
            renamed(tree, fact)
        elif fact.then == "changed":
            tree.write(fact.path, fact.code("'another thing'"))
        elif fact.then == "removed" and fact.number % 2:
            (tree.top / fact.path).unlink()
        elif fact.then == "removed":
            tree.write(fact.path, "import os\n")


def renamed(tree: GitTree, fact: Fact) -> None:
    (tree.top / "src" / f"moved_{FIRST[fact.number // 10]}").mkdir(exist_ok=True)
    tree.git("mv", fact.path, fact.path.replace("src/", "src/moved_"))


async def told(app: App, tree: GitTree, fact: Fact, session: str) -> str:
    """How a session in a worktree is told the fact: `plain`, `marked` or `not`."""
    request = {"session_id": session, "cwd": str(tree.top), "hook_event_name": "UserPromptSubmit"}
    prompt = f"What does the {fact.name.replace('_', ' ')} answer?"
    answer = await app.hooks.answer(SPACE, "UserPromptSubmit", json.dumps({**request, "prompt": prompt}).encode())
    context = json.loads(answer).get("hookSpecificOutput", {}).get("additionalContext", "")
    line = next((line for line in context.splitlines() if re.search(rf"`{fact.name}`", line)), "")
    return "not" if not line else "marked" if any(mark in line for mark in MARKS) else "plain"


async def pass_of(app: App, tree: GitTree, name: str) -> dict[str, Counter[str]]:
    """How each kind of fact is told there, each to a session of its own."""
    found: dict[str, Counter[str]] = {}
    for fact in FACTS:
        how = await told(app, tree, fact, f"{name}-{fact.number}")
        found.setdefault(fact.then, Counter())[how] += 1
    return found


async def test_of_a_hundred_facts_none_is_told_stale_and_what_was_not_touched_is_told(
    tmp_path: Path, figures: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    unhurried = CheckPatience(5.0, 1 << 26, 10.0)  # what a busy machine has time for is not asked here
    monkeypatch.setattr("livememfs.code.workplaces.BEFORE_AN_ANSWER", unhurried)
    main = GitTree.made(tmp_path / "tool")
    for fact in OTHERS:
        main.write(fact.path, fact.code())
    main.commit("code")
    side, old = main.worktree(tmp_path / "side", "side"), main.worktree(tmp_path / "old", "old")
    for fact in FACTS[len(OTHERS) :]:
        side.write(fact.path, fact.code())
    side.commit("only here")
    settings = Settings(store=str(tmp_path / "s"), cache=str(tmp_path / "c"), embed_model="none")
    async with open_app(settings) as app:
        await spaces.create(app.replica, app.clock, SPACE)
        for fact in FACTS:
            where = side if fact.then == "side" else main
            app.code.heard(SPACE, "", str(where.top))
            await remember(app.replica, app.clock, SPACE, "memories", fact.text, agent="claude", code=app.code)
        await app.recall.ask("amber", [SPACE])
        uncommitted = OTHERS[::2]
        moves_on(main, [fact for fact in OTHERS if fact not in uncommitted])
        main.commit("moves on")
        moves_on(main, uncommitted)
        passes = {"old": await pass_of(app, old, "old"), "side": await pass_of(app, side, "side")}
        passes["main, first"] = await pass_of(app, main, "main")
        with trio.fail_after(60):  # until git was asked what that pass lacked
            while app.code._waiting:
                await trio.sleep(0.01)
        passes["main, then"] = await pass_of(app, main, "again")

    for name, found in passes.items():
        figures(f"code, {name}: {'; '.join(f'{kind} {dict(how)}' for kind, how in found.items())}")
    now = passes["main, then"]
    untouched = Counter[str]()
    for kind in ("stays", "edited beside", "renamed"):
        untouched += now[kind]
    for found in (now, passes["main, first"]):
        assert found["changed"]["plain"] + found["removed"]["plain"] == 0
        assert found["removed"]["marked"] == 0
        assert found["side"]["plain"] == 0
    assert now["changed"]["marked"] == 15
    assert now["side"]["marked"] == 10
    assert untouched["plain"] >= 0.95 * untouched.total()
    for found in (passes["old"], passes["side"]):  # there, none of it has moved on
        plain = sum(how["plain"] for kind, how in found.items() if kind != "side")
        assert plain >= 0.95 * len(OTHERS)
    assert passes["old"]["side"]["plain"] == 0
    assert passes["side"]["side"]["plain"] == 10
