"""The composition root: from settings to a working tree, and back.

Owns who is built from what, in which order things end, and what happens to writes that the bucket has not accepted by
then. The only module that knows every layer; everything below gets what it needs as arguments. Trio thread only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from livememfs.agents.contextfile import ContextFiles
from livememfs.app.agents import Agents, agents_of, door_of
from livememfs.app.parts import (
    INDEX,
    consolidation_settings,
    local_state,
    open_embedder,
    open_engine,
    open_model,
    open_observing_model,
    open_store,
    prehook_settings,
    usable_host,
)
from livememfs.cache.replica import Replica
from livememfs.cache.unread import Unread
from livememfs.clock import Clock, SystemClock
from livememfs.concurrency import Background, Starts, the_one
from livememfs.config import Settings, user_name
from livememfs.errors import LiveMemError, NoSpace, ObjectUnreadable, RunFailed, TaskFailed
from livememfs.memories.expiry import Expiry
from livememfs.memories.merging import Merging
from livememfs.memories.uses import Uses
from livememfs.recall.service import Recall
from livememfs.recall.turn.prehook import Prehook
from livememfs.recall.turn.told import Sessions
from livememfs.runs.options import CONTROLS
from livememfs.runs.queue import Consolidations
from livememfs.runs.result import RunResult
from livememfs.runs.schedule.scheduler import Scheduler
from livememfs.spaces.gate import Gate
from livememfs.spaces.tokens import Tokens
from livememfs.store.base import Store
from livememfs.text.privacy.redaction import redact
from livememfs.text.times import iso
from livememfs.tree.context import Context
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.rejected import NAME as REJECTED
from livememfs.tree.rejected import RejectedReplies
from livememfs.tree.root import Root
from livememfs.tree.space.control import with_refused_replies
from livememfs.tree.writer import agent_of

if TYPE_CHECKING:
    from livememfs.llm.base import ChatModel

Keep = Callable[[str, Callable[[], Awaitable[None]]], None]
"""Starts a task that is started again when it fails, by its name."""
SHOWN_UNSAVED = 5
DRAFT_SECONDS = 1.0
"""How much of what is written to an open file a crash may take."""
REPORT_SECONDS = 0.3
FORGET_SECONDS = 600.0
RECOVERY_SECONDS = 60.0
SCHEDULE_SECONDS = 5.0
"""How long leaving waits for the end of a scheduled run to be written down."""


@dataclass(frozen=True)
class App:
    """Everything a command needs. Nothing of it may be used after `open_app` is left."""

    settings: Settings
    clock: Clock
    store: Store
    replica: Replica
    consolidations: Consolidations
    tree: Root
    errors: ErrorLog
    recall: Recall
    expiry: Expiry
    prehook: Prehook
    merging: Merging
    uses: Uses
    agents: Agents
    tokens: Tokens
    gate: Gate
    background: Background
    keeps_state: bool
    """Whether there is a local state that outlives the process: then it is a mount's."""
    scheduler: Scheduler | None = None
    served: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """What is served beside a mount, by name, with how its figures are asked for."""


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    mountpoint: Path | None = None,
    serving: bool = False,
    on_drain: Callable[[int], None] | None = None,
) -> AsyncIterator[App]:
    """Build everything; on the way out, end runs and upload what was accepted, within `drain_timeout`.

    `on_drain(left)` hears now and then how many files are left then. With a mount point there is a local state on the
    disk, which outlives the process; without, it is in memory. `serving`: without a mount too this process stays, and
    looks after the bucket as a mount would. Raises CacheInUse, and LiveMemError on leaving when the bucket did not take
    everything; its text names the files.
    """
    clock = clock or SystemClock()
    public = {"host": redact(settings.host_name).text, "agent": redact(settings.agent).text}
    settings = settings.model_copy(update=public)  # both become names of objects
    store = open_store(settings, clock)
    model, observing = open_model(settings), open_observing_model(settings)
    replica: Replica | None = None
    try:
        async with trio.open_nursery() as nursery:
            errors = ErrorLog(clock)
            background = Background(partial(_task_failed, errors))

            def keep(name: str, work: Callable[[], Awaitable[None]]) -> None:
                nursery.start_soon(background.keep, name, work)

            folder = local_state(settings, store.label) if mountpoint is not None else None
            stays = serving or mountpoint is not None
            replica = _open_replica(settings, store, clock, errors, folder, background, watching=stays)
            rejected = RejectedReplies(clock, folder / REJECTED if folder is not None else None)
            index = (folder or local_state(settings, store.label)) / INDEX
            recall = Recall(
                replica,
                clock,
                lambda: open_engine(settings, index),
                lambda: open_embedder(settings),
                share=settings.share_vectors,
                recent_days=settings.search_recent_days,
                background=background,
            )
            told = Sessions(replica)
            uses = Uses(replica, clock, f"{usable_host(settings.host_name)}-{replica.identity}", recall.used)
            prehook = Prehook(recall, clock, told, prehook_settings(settings), used=uses.count)
            agents = agents_of(settings, clock, observing, mountpoint, replica, errors, prehook, background)
            keep("told", told.run)
            parts = replica, errors, rejected, prehook, uses, recall, agents, background
            runs = background.beside(nursery, "runs")
            app = _assemble(settings, clock, store, model, runs, mountpoint, *parts)
            await nursery.start(replica.run)
            await nursery.start(recall.run)
            replica.subscribe(recall.heard)
            keep("drafts", partial(_keep_drafts, app.tree))
            if stays:
                await _stay(app, keep, rejected, has_index=index.is_dir())
            if mountpoint is not None:
                _look_after_agents(app, keep, mountpoint)
            yield app
            if on_drain is not None:
                nursery.start_soon(_report, replica, on_drain)
            refused = await _drain(app)
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise the_one(group) from None
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(settings.op_timeout):
            for one in (model, observing):
                if one is not None:
                    await one.aclose()
            await store.aclose()
        if replica is not None:
            replica.close()
    _complain(refused, replica)


async def _stay(app: App, keep: Keep, rejected: RejectedReplies, *, has_index: bool) -> None:
    """What a process that stays does by itself, mounted or not. NotSignedIn with a token that is not good."""
    if app.settings.token:
        await app.gate.enter(app.settings.token)
        keep("token", app.gate.run)
    _look_after_memories(app, keep, has_index=has_index)
    app.replica.subscribe(app.consolidations.heard)
    keep("recovery", partial(_recover, app))
    keep("rejected replies", partial(_forget, rejected))
    keep("tokens", app.tokens.run)


def _look_after_memories(app: App, keep: Keep, *, has_index: bool) -> None:
    """What is done with memories unasked: remove what has ended, merge what says the same, count uses, and be
    ready for the first message of an agent.
    """
    app.replica.subscribe(app.expiry.heard)
    app.replica.subscribe(app.merging.heard)
    app.recall.on_opened(app.merging.opened)
    app.recall.on_opened(app.uses.opened)
    keep("expiry", app.expiry.run)
    keep("merging", app.merging.run)
    keep("uses", app.uses.run)
    if has_index:
        keep("search", app.recall.warm)


def _look_after_agents(app: App, keep: Keep, mountpoint: Path) -> None:
    """What only a mount does: observe agents, tell them what is known, and run by the schedule."""
    rules = ContextFiles(mountpoint, app.agents.pages.page, partial(app.errors.record, "rule file"))
    app.replica.subscribe(rules.heard)
    keep("observer", app.agents.observer.run)
    keep("rule files", rules.run)
    if app.scheduler is not None:
        app.replica.subscribe(app.scheduler.heard)
        keep("schedule", app.scheduler.run)


def _task_failed(errors: ErrorLog, name: str, reason: str) -> None:
    """Have `errors.ndjson` say that a background task failed."""
    errors.record("background", "", TaskFailed(reason, task=name))


def _open_replica(
    settings: Settings,
    store: Store,
    clock: Clock,
    errors: ErrorLog,
    folder: Path | None,
    background: Background,
    *,
    watching: bool,
) -> Replica:
    """The view of the bucket, with its state in `folder` (None: in memory). CacheInUse."""

    def conflict(key: str, copy: str) -> None:
        errors.conflict(key, copy, "changed by another host meanwhile")

    def unreadable(key: str, reason: str) -> None:
        errors.record("read", key, ObjectUnreadable(reason, path=key))

    local = folder is not None
    return Replica(
        store,
        folder=folder,
        cache_size=settings.cache_size,
        cache_memory=settings.cache_memory,
        listing_ttl=settings.listing_ttl,
        host=settings.host_name,
        now_ns=lambda: int(clock.now().timestamp() * 1_000_000) * 1_000,
        on_conflict=conflict,
        announce=usable_host(settings.host_name) if local else f"{usable_host(settings.host_name)}-commands",
        poll_interval=settings.poll_interval if watching else None,
        unread=Unread(unreadable),
        background=background,
    )


def _complain(refused: list[str], replica: Replica) -> None:
    """Say at the end what the bucket does not have."""
    waiting = sorted({op.key for op in replica.journal.pending()})
    told = [
        f"{len(names)} of the files written {text}: {', '.join(names[:SHOWN_UNSAVED])}"
        + (" and others" if len(names) > SHOWN_UNSAVED else "")
        for names, text in (
            (refused, "could not be saved"),
            (waiting, "wait in the local state and are uploaded by the next mount"),
        )
        if names
    ]
    if told:
        raise LiveMemError("the bucket did not take everything; " + "; ".join(told))


def _assemble(
    settings: Settings,
    clock: Clock,
    store: Store,
    model: ChatModel | None,
    nursery: Starts,
    mountpoint: Path | None,
    replica: Replica,
    errors: ErrorLog,
    rejected: RejectedReplies,
    prehook: Prehook,
    uses: Uses,
    recall: Recall,
    agents: Agents,
    background: Background,
) -> App:
    def run_failed(space: str, result: RunResult) -> None:
        told = with_refused_replies(context, consolidations.status(space, result.kind))
        error = RunFailed(result.reason, advice=told.get("what_to_do", result.what_to_do))
        control = CONTROLS[result.kind]
        errors.record(control.removeprefix("."), f"{space}/{control}", error)

    consolidations = Consolidations(
        replica,
        clock,
        model,
        consolidation_settings(settings),
        nursery=nursery,
        host=settings.host_name,
        on_rejected=rejected.keep,
        on_failed=run_failed,
    )
    user = user_name()
    since = iso(clock.now())

    def status() -> dict[str, Any]:
        return {"since": since, "mountpoint": str(mountpoint or ""), **_status(app, model)}

    async def metrics() -> bytes:
        # In a thread, since the first who asks has the library loaded, and nobody else is to wait for that.
        return await trio.to_thread.run_sync(_figures, status())

    expiry = Expiry(replica, clock)
    tokens = Tokens(replica, clock, consolidations.leases)
    gate = Gate(tokens)
    context = Context(
        replica=replica,
        consolidations=consolidations,
        clock=clock,
        errors=errors,
        rejected=rejected,
        agent_of=lambda pid: gate.access().name or agent_of(pid, settings.agent or user),
        access=gate.access,
        status=status,
        metrics=metrics,
        recall=recall,
        expiry=expiry,
        prehook=prehook,
        pages=agents.pages,
        capture=agents.capture,
        observer=agents.observer,
        hooks=agents.hooks,
        door=door_of(settings, mountpoint, agents.hooks, replica, clock, gate.access, errors, user),
        uses=uses,
        host=settings.host_name,
        owner=user,
        max_file_size=settings.max_file_size,
        fsync_remote=settings.fsync == "remote",
    )
    scheduler = _scheduler(settings, context) if mountpoint is not None else None
    merging = Merging(replica, clock, recall, settings.memory_alike)
    kept = recall, expiry, prehook, merging, uses, agents, tokens, gate, background
    app = App(
        settings, clock, store, replica, consolidations, Root(context), errors, *kept, mountpoint is not None, scheduler
    )
    return app  # `status` refers to it by this name


def _scheduler(settings: Settings, context: Context) -> Scheduler | None:
    """Who starts runs by the schedule; None without one."""
    digests = settings.digest_schedule
    if not settings.schedule.spaces and not digests.spaces:
        return None

    return Scheduler(
        context.replica,
        context.clock,
        context.consolidations,
        settings.schedule,
        host=settings.host_name,
        digests=digests,
        digest_zone=settings.digest_zone if digests.spaces else None,
    )


def _figures(status: dict[str, Any]) -> bytes:
    from livememfs.serve.metrics import render

    return render(status)


def _status(app: App, model: ChatModel | None) -> dict[str, Any]:
    """What `status.json` shows: one word first, then who, then every figure there is."""
    replica = app.replica.statistics()
    tree = app.tree.statistics()
    failing = app.background.failing()
    return {
        "state": "degraded" if replica.last_error or failing else "ok",
        "last_error": replica.last_error,
        "failing_tasks": failing,
        "store": app.store.label,
        "model": app.settings.model_name,
        "host": app.settings.host_name,
        "unsaved": tree.unsaved,
        "pending": replica.journal.pending,
        "pending_bytes": replica.journal.pending_bytes,
        "failing_since": iso(app.clock.now() - timedelta(seconds=replica.failing_s))
        if replica.failing_s is not None
        else None,
        "stuck": [{"key": op.key, "reason": op.error} for op in app.replica.journal.stuck()],
        "schedule": app.scheduler.status() if app.scheduler is not None else None,
        "sessions": asdict(app.agents.observer.statistics()),
        "statistics": {
            "store": asdict(app.store.statistics()),
            "replica": asdict(replica),
            "tree": asdict(tree),
            "consolidations": asdict(app.consolidations.statistics()),
            "leases": asdict(app.consolidations.leases.statistics()),
            "schedule": asdict(app.scheduler.statistics()) if app.scheduler is not None else None,
            "model": asdict(model.statistics()) if model is not None else None,
            "recall": asdict(app.recall.statistics()),
            "prehook": app.prehook.statistics(),
            "uses": asdict(app.uses.statistics()),
            "merging": asdict(app.merging.statistics()),
            "expiry": asdict(app.expiry.statistics()),
            "tokens": asdict(app.tokens.statistics()),
            "gate": asdict(app.gate.statistics()),
            "capture": app.agents.capture.statistics(),
            "hooks": app.agents.hooks.statistics(),
            "context": app.agents.pages.statistics(),
            "errors": asdict(app.errors.statistics()),
            "unread": asdict(app.replica.unread.statistics()),
            "background": asdict(app.background.statistics()),
            "rejected": asdict(app.tree.context.rejected.statistics()),
            "changes": asdict(app.replica.changes.statistics()),
            **{name: figures() for name, figures in app.served.items()},
        },
    }


async def _recover(app: App) -> None:
    """What a process committed that is no more is carried out, space by space, before anybody asks.

    At once if it may have been the one before us; else when whoever has just mounted has had what they came for.
    """
    if not app.replica.after_crash:
        await trio.sleep(RECOVERY_SECONDS)
    with suppress(LiveMemError):  # a space that is used while the bucket is away is seen to by its next run
        top = await app.replica.listing("")
        await app.consolidations.recover(sorted(name for name in top.folders if not name.startswith("_")))


async def _keep_drafts(tree: Root) -> None:
    while True:
        await trio.sleep(DRAFT_SECONDS)
        with suppress(NoSpace):  # whoever writes on will hear it
            await tree.keep_drafts()


async def _forget(rejected: RejectedReplies) -> None:
    while True:
        await trio.sleep(FORGET_SECONDS)
        rejected.forget()


async def _report(replica: Replica, on_drain: Callable[[int], None]) -> None:
    while True:
        on_drain(len(replica.journal))
        await trio.sleep(REPORT_SECONDS)


async def _drain(app: App) -> list[str]:
    """End the runs and save the rest. Returns the paths of what could not be saved."""
    timeout = app.settings.drain_timeout
    refused: list[str] = []
    if app.scheduler is not None:
        app.scheduler.stop()
    app.uses.write()
    with trio.move_on_after(timeout):
        await app.consolidations.drain(timeout)
        refused = await app.tree.drain()
        await app.merging.stop()
        await app.tokens.write_uses()
        if app.keeps_state:
            await app.agents.observer.stop()
        with suppress(LiveMemError):  # named afterwards, with everything else that waits
            await app.replica.uploaded()
            if app.keeps_state:
                app.agents.observer.leave()
                await app.replica.uploaded()
        await app.prehook.flush()
        await app.replica.beacon.flush()
        await app.recall.drain()
        if app.scheduler is not None:
            with trio.move_on_after(SCHEDULE_SECONDS):
                await app.scheduler.stopped()
    return sorted({*refused, *(file.path for file in app.tree.unsaved_files())})
