"""The composition root: from settings to a working tree, and back.

Owns what each part is built from, and the order in which parts start and end. Only this package knows every layer. It
has one module for each subject; the layers below get what they need as arguments. Trio thread only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import trio

from livememfs.agents.hooks import Hooks
from livememfs.app import agents, memories, runs
from livememfs.app.agents import open_code, open_door, open_hooks, open_pages
from livememfs.app.basics import Basics, ids_of, local_state
from livememfs.app.cache import open_replica
from livememfs.app.leaving import complain, drain, report
from livememfs.app.models import Models, open_models
from livememfs.app.observing import open_capture, open_observer
from livememfs.app.recall import INDEX, open_recall, prehook_settings
from livememfs.app.runs import open_consolidations, open_scheduler
from livememfs.app.status import metrics_of, status_of
from livememfs.app.store import open_store
from livememfs.cache.replica import Replica
from livememfs.clock import SystemClock
from livememfs.concurrency import Background, Starts, the_one
from livememfs.config import Settings
from livememfs.environment import user_name
from livememfs.errors import NoSpace, TaskFailed
from livememfs.memories.expiry import Expiry
from livememfs.memories.merging import Merging
from livememfs.memories.uses import Uses
from livememfs.observing.evidence import Evidence
from livememfs.recall.turn.allowed import WebAllowed
from livememfs.recall.turn.prehook import Prehook
from livememfs.recall.turn.told import ToldSessions
from livememfs.runs.schedule.scheduler import Scheduler
from livememfs.spaces.gate import Gate
from livememfs.spaces.tokens import Tokens
from livememfs.store.retry import RetryingStore
from livememfs.text.privacy.redaction import redact
from livememfs.text.times import iso
from livememfs.tree.context import Context
from livememfs.tree.errorlog import ErrorLog
from livememfs.tree.rejected import NAME as REJECTED
from livememfs.tree.rejected import RejectedReplies
from livememfs.tree.root import Root
from livememfs.tree.writer import agent_of, user_of

Keep = Callable[[str, Callable[[], Awaitable[None]]], None]
"""Starts a task with a name; it is started again when it fails."""
DRAFT_SECONDS = 1.0
"""After a crash, at most the writes of this last time to open files are lost."""
FORGET_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class App(Context):
    """Everything a command needs: what the nodes of the tree share, and the other parts of the process.

    Nothing of it may be used after the end of `open_app`. `index` is the folder of this machine's search index, which
    may not exist yet. Without a `mountpoint` no local state outlives the process. `served` has, by the name of each
    server in this process, the function that gives its figures.
    """

    settings: Settings
    since: str
    mountpoint: Path | None
    store: RetryingStore
    models: Models
    background: Background
    index: Path
    sessions: ToldSessions
    merging: Merging
    evidence: Evidence
    tokens: Tokens
    gate: Gate
    scheduler: Scheduler | None
    hooks: Hooks  # the tree knows only their answers; here they have figures too
    served: dict[str, Callable[[], Any]] = field(default_factory=dict)

    @cached_property
    def tree(self) -> Root:
        """The top directory."""
        return Root(self)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    mountpoint: Path | None = None,
    serving: bool = False,
    alone: str = "",
    keeps: bool = False,
    on_drain: Callable[[int], None] | None = None,
) -> AsyncIterator[App]:
    """Build everything; at the end, end runs and upload what was accepted, within `drain_timeout`.

    Meanwhile `on_drain(left)` is called now and then with the number of files that are left. With a mount point the
    local state is on the disk and outlives the process; without, it is in memory, unless the process `keeps` it all
    the same. `serving`: a process without a mount stays too, and looks after the bucket as a mount would. `alone`: the
    mount point is this one space. Raises CacheInUse, and at the end LiveMemError when the bucket did not take
    everything; its text names the files.
    """
    public = {"host": redact(settings.host_name).text, "agent": redact(settings.agent).text}
    settings = settings.model_copy(update=public)  # both become names of objects
    store, models = open_store(settings), open_models(settings)
    replica: Replica | None = None
    stays = serving or mountpoint is not None
    try:
        async with trio.open_nursery() as nursery:
            basics = _basics(settings, mountpoint, store.label, serving=serving, alone=alone, keeps=keeps)
            replica = open_replica(basics, store, watching=stays)
            work = basics.background.beside(nursery, "runs")
            app = _build(basics, store=store, replica=replica, models=models, nursery=work)
            await _start(app, nursery, stays=stays)
            yield app
            if on_drain is not None:
                nursery.start_soon(report, replica, on_drain)
            refused = await drain(app)
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise the_one(group) from None
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(settings.op_timeout):
            await models.aclose()
            await store.aclose()
        if replica is not None:
            replica.close()
    complain(refused, replica)


def _basics(
    settings: Settings, mountpoint: Path | None, label: str, *, serving: bool, alone: str, keeps: bool
) -> Basics:
    """What everything is built from. `label` names the bucket. CacheInUse."""
    clock = SystemClock()
    errors = ErrorLog(clock)

    def failed(name: str, reason: str) -> None:
        errors.record("background", "", TaskFailed(reason, task=name))

    return Basics(
        settings=settings,
        clock=clock,
        errors=errors,
        background=Background(failed),
        mountpoint=mountpoint,
        serving=serving,
        alone=alone,
        folder=local_state(settings, label) if keeps or mountpoint is not None else None,
    )


def _build(basics: Basics, *, store: RetryingStore, replica: Replica, models: Models, nursery: Starts) -> App:
    """Every part; none is started. Runs are tasks of `nursery`."""
    settings, clock, owner = basics.settings, basics.clock, user_name()
    rejected = RejectedReplies(clock, basics.folder / REJECTED if basics.folder is not None else None)
    index = (basics.folder or local_state(settings, store.label)) / INDEX
    web, code = WebAllowed(replica), open_code(basics)
    recall = open_recall(basics, replica=replica, index=index, code=code)
    sessions = ToldSessions(replica)
    uses = Uses(replica, clock, f"{basics.host}-{replica.identity}", recall.used)  # each local state counts by itself
    evidence = Evidence(uses.told, uses.count, recall.quiet)
    prehook = Prehook(recall, clock, sessions, prehook_settings(settings), tells=evidence.tells, web=web, code=code)
    queue = open_consolidations(basics, replica=replica, model=models.consolidating, nursery=nursery, rejected=rejected)
    tokens = Tokens(replica, clock, queue.leases, settings.admin_bootstrap_key)
    gate = Gate(tokens)
    observer = open_observer(basics, replica=replica, model=models.observing, code=code)
    capture = open_capture(basics, replica=replica, observer=observer, evidence=evidence)
    pages = open_pages(basics, replica=replica, code=code)
    hooks = open_hooks(basics, capture=capture, prehook=prehook, pages=pages, observer=observer, code=code)
    ids = ids_of(settings)
    writer = user_of if ids.by_number else _the_owner
    app = App(
        settings=settings,
        clock=clock,
        since=iso(clock.now()),
        mountpoint=basics.mountpoint,
        host=settings.host_name,
        owner=owner,
        max_file_size=settings.max_file_size,
        fsync_remote=settings.fsync == "remote",
        ids=ids,
        agent_of=lambda pid: gate.access().name or agent_of(pid, settings.agent or writer(pid, owner)),
        access=gate.access,
        status=lambda: status_of(app),
        metrics=lambda: metrics_of(app),
        store=store,
        replica=replica,
        errors=basics.errors,
        background=basics.background,
        models=models,
        index=index,
        recall=recall,
        sessions=sessions,
        prehook=prehook,
        uses=uses,
        evidence=evidence,
        expiry=Expiry(replica, clock),
        merging=Merging(replica, clock, recall, settings.memory_alike),
        consolidations=queue,
        rejected=rejected,
        scheduler=open_scheduler(basics, replica=replica, consolidations=queue),
        tokens=tokens,
        gate=gate,
        observer=observer,
        capture=capture,
        pages=pages,
        hooks=hooks,
        code=code,
        door=open_door(basics, hooks=hooks, replica=replica, access=gate.access, owner=owner),
    )
    return app  # `status` and `metrics` refer to it by this name


def _the_owner(_: int, owner: str) -> str:
    """The writer where nobody but the owner is let in."""
    return owner


async def _start(app: App, nursery: trio.Nursery, *, stays: bool) -> None:
    """Start the tasks of the parts; `stays`: also those of a process that looks after the bucket.

    NotSignedIn for a token that is not valid.
    """

    def keep(name: str, work: Callable[[], Awaitable[None]]) -> None:
        nursery.start_soon(app.background.keep, name, work)

    keep("told", app.sessions.run)
    keep("code", app.code.run)
    await nursery.start(app.replica.run)
    await nursery.start(app.recall.run)
    app.replica.changes.subscribe(app.recall.heard)
    keep("drafts", partial(_keep_drafts, app.tree))
    if not stays:
        return
    if app.settings.token:
        await app.gate.enter(app.settings.token)
        keep("token", app.gate.run)
    memories.look_after(app, keep)
    if app.index.is_dir():
        keep("search", app.recall.warm)  # be ready for the first message of an agent
    runs.look_after(app, keep)
    keep("rejected replies", partial(_forget, app.rejected))
    keep("tokens", app.tokens.run)
    if app.mountpoint is not None:
        agents.look_after(app, keep, app.mountpoint)


async def _keep_drafts(tree: Root) -> None:
    while True:
        await trio.sleep(DRAFT_SECONDS)
        with suppress(NoSpace):  # the next write reports it
            await tree.keep_drafts()


async def _forget(rejected: RejectedReplies) -> None:
    while True:
        await trio.sleep(FORGET_SECONDS)
        rejected.forget()
