"""No argument of any tool reaches anything outside of what the caller may see, whatever is written into it."""

from __future__ import annotations

import json
import os
import string
from typing import Any

import pytest
import trio
from clients import SPACE, VALUES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livememfs.app import App, open_app
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.memories.notes import write_note
from livememfs.records.access import PERMISSIONS, Access
from livememfs.serve.toolbox import McpTool, ToolCall
from livememfs.serve.tools import TOOLS
from livememfs.spaces import backups
from livememfs.spaces import making as spaces

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
CANARY = "canary-7f3a"
"""Stands in everything that is outside."""
OUTSIDE = "beta"
PARTS = (
    "..", ".", "", "/", "//", "\\", "%2e%2e", "%2f", "\0", "\n", "~", "*", "?", OUTSIDE, SPACE, "_system",
    "tokens.json", "_backups", "live", "bank", "_meta.json", "memories", "secret.md", "canary.md", "/memories",
    "2026", "file://", "s3:", "\u2215", "\uff0f", "\u202e", "'", '"', "$(id)", "../beta/bank/canary.md", "lm_",
    "sha256:",
)  # fmt: skip
NASTY = st.one_of(
    st.sampled_from(PARTS),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=7).map("/".join),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join),
    st.text(string.printable + "\0\u202e\uff0f", max_size=40),
    st.builds(
        "{}/{}".format, st.sampled_from([SPACE, OUTSIDE, "..", "/memories", "/memories/.."]), st.text(max_size=12)
    ),
)
MINE = Access("mine", frozenset(PERMISSIONS), (SPACE,))
EVERYWHERE = frozenset({"space_delete"})
"""What rightly removes the caller's own space."""


def filled(tool: McpTool, nasty: str, number: int) -> dict[str, Any]:
    """Arguments in which one text is nasty, and the others are right in form."""
    texts = [
        parameter.name
        for parameter in tool.parameters
        if parameter.kind in ("string", "array") and not parameter.one_of
    ]
    target = texts[number % len(texts)]
    known = {"space_id": SPACE, "project": SPACE, "path": "/memories/x", "old_path": "/memories/x"}
    given = {
        parameter.name: parameter.one_of[0] if parameter.one_of else known.get(parameter.name, VALUES[parameter.kind])
        for parameter in tool.parameters
    }
    given = {name: ["read"] if name == "permissions" else value for name, value in given.items()}
    kind = next(parameter.kind for parameter in tool.parameters if parameter.name == target)
    return {**given, target: [nasty] if kind == "array" else nasty}


async def outside(app: App) -> dict[str, bytes]:
    """Everything that the caller must not reach. What was furnished is announced (`_changes/`) a moment later."""
    own = (f"{SPACE}/", f"_backups/{SPACE}/", "_system/leases/")
    keys = [info.key for info in await app.replica.names.walk("")]
    keys = [key for key in keys if not key.startswith(own) and "/_changes/" not in key]
    return {key: (await app.store.get(key)).data for key in keys}


async def furnish(app: App) -> None:
    """A space of the caller's, and one that is not, with a backup, a token and a prefix that is no space."""
    await spaces.create(app.replica, app.clock, SPACE)
    await spaces.create(app.replica, app.clock, OUTSIDE, description=CANARY, rules=f"# {CANARY}\n")
    await write_note(app.replica, app.clock, OUTSIDE, CANARY, agent=CANARY)
    await app.replica.put(f"{OUTSIDE}/bank/canary.md", CANARY.encode())
    await app.replica.put("plain/secret.md", CANARY.encode())
    await backups.create(app.replica, app.clock, OUTSIDE, automatic=False)
    await app.tokens.create(CANARY, ["admin"])


TEXTS = [tool for tool in TOOLS if any(p.kind in ("string", "array") and not p.one_of for p in tool.parameters)]


@pytest.mark.parametrize("tool", TEXTS, ids=lambda tool: str(tool.name))
def test_no_text_leads_outside(tool: McpTool, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("store")
    chosen = Settings(store=str(folder / "s"), cache=str(folder / "c"), embed_model="none", listing_ttl=0.0)
    texts = sum(p.kind in ("string", "array") and not p.one_of for p in tool.parameters)

    async def attempts(arguments: list[tuple[str, int]]) -> None:
        async with open_app(chosen, serving=True) as app:
            if not await spaces.is_space(app.replica, OUTSIDE):
                await furnish(app)
            before = await outside(app)
            for nasty, number in arguments:
                if not await spaces.is_space(app.replica, SPACE):
                    await spaces.create(app.replica, app.clock, SPACE)
                call = ToolCall(app.tree, app.tokens, MINE, "mine")
                try:
                    with trio.fail_after(20):
                        answer = json.dumps(await tool.call(call, filled(tool, nasty, number)))
                except LiveMemError as error:
                    answer = str(error).replace(nasty, "")
                assert CANARY not in answer.replace(nasty, "")
            assert await outside(app) == before

    @settings(max_examples=20 if LONG else 2, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(NASTY, st.integers(0, texts - 1)), min_size=12, max_size=12))
    def run(arguments: list[tuple[str, int]]) -> None:
        trio.run(attempts, arguments)

    run()
    assert not list(folder.parent.glob("*canary*"))
