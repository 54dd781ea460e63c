"""Hosts with a schedule over one bucket, and time that passes as a test tells it to."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

import trio
from consolidation_world import SPACE, World

from livememfs.cache.replica import Replica
from livememfs.memories.notes import write_note
from livememfs.records import keys
from livememfs.records.schedule import DigestSchedule, Schedule, SpaceSchedule
from livememfs.records.schedule_book import Book
from livememfs.runs.options import RunSettings
from livememfs.runs.queue import RunQueue
from livememfs.runs.result import Metrics, RunResult
from livememfs.runs.schedule.scheduler import Scheduler
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import FaultyStore


class Model:
    """Runs that take in every note, cost `tokens` and end in `state`, in place of the consolidator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.runs: list[str] = []
        self.tokens = 100
        self.state: Any = "ok"
        self.takes = True
        self.seconds = 0.0

    async def __call__(self, space: str, replica: Replica) -> RunResult:
        self.runs.append(space)
        prefix = keys.live_prefix(space)
        found = [item.key for item in await replica.names.walk(prefix) if not item.key.endswith(keys.KEEP)]
        await trio.sleep(self.seconds)
        taken = found if self.takes and self.state != "error" else []
        for key in taken:
            await replica.delete(key)
        cost = Metrics(notes_processed=len(taken), llm_tokens_used=self.tokens if found else 0)
        return RunResult(self.state, cost, self.world.clock.now(), reason="it went wrong", what_to_do="look")


class Host:
    """One mount with a schedule. Without a `model` its runs are real ones, which need none."""

    def __init__(
        self,
        world: World,
        model: Model | None,
        nursery: trio.Nursery,
        name: str,
        schedule: Schedule,
        digests: DigestSchedule | None = None,
        digest_zone: tzinfo = UTC,
    ) -> None:
        self.world = world
        self.store = FaultyStore(world.memory)
        now_ns = lambda: int(world.clock.now().timestamp() * 1_000_000_000)  # noqa: E731 - one line, used once
        self.replica = Replica(self.store, now_ns=now_ns)
        settings = RunSettings()
        self.consolidations = RunQueue(self.replica, world.clock, None, settings, nursery=nursery, host=name)
        runs = self.consolidations

        class _Runs:
            async def run(self, space: str, options: object, control: object) -> RunResult:
                assert model is not None
                async with runs.leases.hold(space):
                    return await model(space, host.replica)

        host = self
        if model is not None:
            runs._runner = _Runs()  # type: ignore[assignment]  # what a run does is not what is tested here
        self.failed: list[tuple[str, str, str]] = []
        self.scheduler = Scheduler(
            self.replica,
            world.clock,
            runs,
            schedule,
            host=name,
            zone=UTC,
            digests=digests,
            digest_zone=digest_zone,
            on_failed=lambda *told: self.failed.append(told),
        )
        self.replica.changes.subscribe(self.scheduler.heard)

    def state(self, space: str = SPACE, kind: str = "spaces") -> dict[str, Any]:
        """What status.json says of a space."""
        found = self.scheduler.status()[kind][space]
        assert isinstance(found, dict)
        return found

    async def note(self, text: str = "a note", space: str = SPACE, *, category: str | None = None) -> None:
        """A note written through this host, as of now."""
        await write_note(self.replica, self.world.clock, space, text, agent="me", category=category)


class Town:
    """A bucket with one space, hosts, and time."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.world = World()
        self.clock: ManualClock = self.world.clock
        self.model = Model(self.world)
        self.nursery = nursery
        self.hosts: list[tuple[Host, trio.CancelScope]] = []

    async def host(self, name: str = "here", *, daily_tokens: int = 1_000_000, **schedule: Any) -> Host:
        """A host whose schedule for `alpha` is this."""
        return await self.start(name, Schedule({SPACE: SpaceSchedule(**schedule)}, daily_tokens))

    async def start(self, name: str, schedule: Schedule) -> Host:
        """A host with this schedule, whose runs are those of `model`."""
        return await self.live(Host(self.world, self.model, self.nursery, name, schedule))

    def digester(
        self, name: str = "here", *, zone: tzinfo = UTC, schedule: Schedule | None = None, **digests: Any
    ) -> Host:
        """A host that will digest `alpha`, by this table, without a model."""
        parsed = DigestSchedule.parse({SPACE: digests})
        return Host(self.world, None, self.nursery, name, schedule or Schedule(), parsed, zone)

    async def digesting(self, *given: Any, **named: Any) -> Host:
        """A `digester` at work."""
        return await self.live(self.digester(*given, **named))

    async def live(self, host: Host) -> Host:
        """Let a host work until it is killed."""
        scope = trio.CancelScope()

        async def live() -> None:
            with scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(host.replica.run)
                    nursery.start_soon(host.scheduler.run)

        self.nursery.start_soon(live)
        self.hosts.append((host, scope))
        await self.later(2)
        return host

    def kill(self, host: Host) -> None:
        """End a host as a crash would."""
        next(scope for one, scope in self.hosts if one is host).cancel()

    async def later(self, length: float) -> None:
        """Let time pass, by every clock there is."""
        left = length
        while left > 0:
            step = min(left, 30.0)
            self.clock.advance(step)
            await trio.sleep(step)
            left -= step

    async def sleep(self, length: float) -> None:
        """Let the machine sleep: the clock on the wall goes on, and nothing else does."""
        self.clock.advance(length)
        await self.later(61)

    async def book(self) -> Book:
        """What the bucket remembers."""
        return Book.parse(await self.world.get(keys.schedule_key()), self.clock.now())
