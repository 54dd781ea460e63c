"""Digests in the world of the consolidations: one run with given answers, and what it stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consolidation_world import SPACE, World, asking, filing

from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.runs.options import RunOptions
from livememfs.runs.result import RunResult
from livememfs.testing.llm import LLMRequest, ScriptedLLM

DIGEST = RunOptions(kind="digest")


async def digest(
    world: World, *answers: Any, options: Mapping[str, Any] | None = None, **settings: Any
) -> tuple[RunResult, list[LLMRequest]]:
    """One digest with these answers; its result and what was asked."""
    with ScriptedLLM(*answers) as llm:
        async with asking(world, llm, **settings) as runs:
            result = await runs.run_once(SPACE, RunOptions.from_json(dict(options or {}), kind="digest"))
        return result, llm.requests


async def digest_without_model(world: World) -> RunResult:
    async with filing(world) as runs:
        return await runs.run_once(SPACE, DIGEST)


async def memories(world: World) -> dict[str, Memory]:
    """What is stored, by key relative to the space."""
    found: dict[str, Memory] = {}
    for key, data in (await world.bucket()).items():
        parsed = keys.parse(key)
        if parsed.kind == "memory":
            collection, _, name = parsed.name.partition("/")
            found[parsed.name] = Memory.parse(data, path=key, collection=collection, name=name)
    return found


async def contents(world: World) -> list[str]:
    """What is remembered, in the order of the texts."""
    return sorted(memory.content.strip() for memory in (await memories(world)).values())
