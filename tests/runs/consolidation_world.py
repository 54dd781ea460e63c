"""A space in a store in memory, a scripted model behind real HTTP, and consolidations between the two."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Self

import trio
import virtual

from livememfs.cache.replica import Replica
from livememfs.llm.base import ChatReply
from livememfs.llm.client import OpenAIChat
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.records.note import Note, canonical_name
from livememfs.records.space import Meta
from livememfs.runs.options import RunKind, RunOptions, RunSettings
from livememfs.runs.queue import RunQueue
from livememfs.runs.result import RunResult
from livememfs.store.base import list_all
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.llm import LLMRequest, Responder, Scripted, ScriptedLLM
from livememfs.testing.store import FaultyStore

SPACE = "alpha"
RULES = "# Rules\n\n### progress.md\n- Done: what works\n\n### decisions.md\n- Decisions: what holds\n"


class World:
    """One bucket with the space `alpha`."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.replica = Replica(self.store)
        self.written = 0

    @classmethod
    async def seeded(cls, **given: Any) -> Self:
        """A bucket whose space was made by `seed`."""
        world = cls()
        await world.seed(**given)
        return world

    async def seed(
        self,
        *,
        notes: int = 0,
        bank: Mapping[str, str] | None = None,
        rules: str | None = RULES,
        meta: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """The space with `notes` notes; returns their keys."""
        record = Meta(SPACE, "a space", "me", self.clock.now(), **(meta or {}))
        await self.put(keys.meta_key(SPACE), record.render())
        for folder in (keys.LIVE, keys.BANK):
            await self.put(keys.keep_key(SPACE, folder), b"")
        if rules is not None:
            await self.put(keys.rules_key(SPACE), rules)
        for name, text in (bank or {}).items():
            await self.put(keys.bank_key(SPACE, name), text)
        return [await self.note(f"This is note {number}.") for number in range(1, notes + 1)]

    async def note(self, body: str, *, agent: str = "cline", category: str = "progress", **fields: Any) -> str:
        """One more note, a minute later than the last; returns its key."""
        moment = self.clock.now() + timedelta(minutes=self.written)
        self.written += 1
        note = Note(fields.pop("timestamp", moment), agent, category, fields.pop("tags", ()), SPACE, body, fields)
        key = keys.live_key(SPACE, canonical_name(note, f"{self.written:08x}"))
        await self.put(key, note.render())
        return key

    async def put(self, key: str, data: bytes | str) -> None:
        """Write behind everybody's back, as another host would."""
        await self.memory.put(key, data if isinstance(data, bytes) else data.encode())

    async def get(self, key: str) -> bytes:
        return (await self.memory.get(key)).data

    async def bucket(self) -> dict[str, bytes]:
        """Every object of the space and of others, byte for byte, without the account that is kept of the runs."""
        return {key: data for key, data in (await self.everything()).items() if not _is_account(key)}

    async def everything(self) -> dict[str, bytes]:
        """Every object: leases, ledgers and backups as well."""
        listing = await list_all(self.memory, "")
        return {info.key: await self.get(info.key) for info in listing.objects}

    async def ledger(self) -> list[Entry]:
        """The runs that were committed, in order."""
        found = await self.everything()
        return [
            Entry.parse(data)
            for key, data in sorted(found.items())
            if keys.parse(key).kind == "ledger" and key.endswith(".json")
        ]

    async def bank(self) -> dict[str, str]:
        prefix = keys.bank_prefix(SPACE)
        found = await self.bucket()
        return {
            key.removeprefix(prefix): data.decode()
            for key, data in found.items()
            if key.startswith(prefix) and not key.endswith(keys.KEEP)
        }

    async def live(self) -> list[str]:
        prefix = keys.live_prefix(SPACE)
        return [key for key in await self.bucket() if key.startswith(prefix) and not key.endswith(keys.KEEP)]


def _is_account(key: str) -> bool:
    return keys.parse(key).kind in ("ledger", "backup", "system")


class _Chat(OpenAIChat):
    """A client of a scripted model. Virtual time stands while an answer is worked out, and goes on over a held one."""

    def __init__(self, llm: ScriptedLLM, timeout: float) -> None:
        super().__init__(llm.url, "a-key", "m-1", timeout)
        self._llm = llm

    async def chat(self, *args: Any, **options: Any) -> ChatReply:
        with self._llm.asking(), virtual.outside(lambda: self._llm.is_at_work):
            return await super().chat(*args, **options)


@asynccontextmanager
async def asking(world: World, llm: ScriptedLLM, *, timeout: float = 30.0, **settings: Any) -> AsyncIterator[RunQueue]:
    """A queue of runs that ask `llm`."""
    model = _Chat(llm, timeout)
    try:
        async with trio.open_nursery() as nursery:
            yield RunQueue(world.replica, world.clock, model, RunSettings(**settings), nursery=nursery)
            nursery.cancel_scope.cancel()
    finally:
        await model.aclose()


@asynccontextmanager
async def filing(world: World, **settings: Any) -> AsyncIterator[RunQueue]:
    """A queue of runs without a model."""
    async with trio.open_nursery() as nursery:
        yield RunQueue(world.replica, world.clock, None, RunSettings(**settings), nursery=nursery)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def answering(
    world: World, *answers: Any, responder: Responder | None = None, **settings: Any
) -> AsyncIterator[tuple[RunQueue, ScriptedLLM]]:
    """A queue of runs, and the model with these answers that they ask."""
    with ScriptedLLM(*answers, responder=responder) as llm:
        async with asking(world, llm, **settings) as runs:
            yield runs, llm


async def ask(
    world: World,
    *answers: Any,
    options: Mapping[str, Any] | None = None,
    kind: RunKind = "consolidation",
    responder: Responder | None = None,
    **settings: Any,
) -> tuple[RunResult, list[LLMRequest]]:
    """One run with these answers; its result, and the requests that it made."""
    async with answering(world, *answers, responder=responder, **settings) as (runs, llm):
        result = await runs.run_once(SPACE, RunOptions.from_json(dict(options or {}), kind=kind))
    return result, llm.requests


async def run(world: World, *answers: Any, **given: Any) -> RunResult:
    """The result of `ask` alone."""
    return (await ask(world, *answers, **given))[0]


async def until_asked(llm: ScriptedLLM, count: int = 1) -> None:
    """Wait until `count` requests have arrived at the endpoint."""
    await trio.to_thread.run_sync(llm.wait_for_requests, count)


async def begun(runs: RunQueue, llm: ScriptedLLM, options: RunOptions | None = None) -> int:
    """The ticket of a run that has asked the model."""
    ticket = runs.touch(SPACE, options)
    await until_asked(llm, len(llm.requests) + 1)
    return ticket


@asynccontextmanager
async def thinking(
    world: World, reply: Mapping[str, Any], kind: RunKind = "consolidation"
) -> AsyncIterator[dict[str, Any]]:
    """A run whose model gives its reply at the end of the block. What is yielded gets the result then."""
    result: dict[str, Any] = {}
    async with answering(world, Scripted(json.dumps(reply), hold=True)) as (runs, llm):
        ticket = await begun(runs, llm, RunOptions(kind=kind))
        yield result
        llm.release()
        result |= await result_of(runs, ticket, kind=kind)


async def result_of(runs: RunQueue, ticket: int, space: str = SPACE, kind: RunKind = "consolidation") -> dict[str, Any]:
    """How a run ended, when it has."""
    return [value async for value in runs.wait(space, ticket, kind)][-1]
