"""The process behind a mount: from settings to a mounted tree, and back.

Owns the order of things: look at the mount point, ask the store, mount, report readiness; at the end let the kernel go,
save what was accepted, say what could not be saved. Signals that ask it to end (`ending`) unmount in good order. One
mount per process; main thread only.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import structlog
import trio

from livememfs.app import App, open_app
from livememfs.app.visitor import Visitor
from livememfs.cli.checks import machine
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.ending import asked_to_end
from livememfs.cli.mounting.notify import ServiceManager
from livememfs.cli.mounting.starting import FstabLine, Readiness, Served, place_of, places
from livememfs.clock import SystemClock
from livememfs.config import Settings
from livememfs.errors import TimedOut
from livememfs.fuse.mountpoint import check_mountpoint, check_places
from livememfs.records.names import STATE
from livememfs.serve import sock
from livememfs.spaces import making as spaces
from livememfs.text.times import iso

log = structlog.get_logger("livememfs.cli")

MEETING_SECONDS = 1.0
SPACES_MET = 16
GC_THRESHOLD = 20_000
SWITCH_SECONDS = 0.000_5
"""How long a thread that uploads may keep the one that answers the kernel waiting. Python's 5 ms are ten answers."""

NOTHING_SERVED, NOBODY, NO_TABLE = Served(), ServiceManager(), FstabLine()


async def meet(app: App, timeout: float) -> None:
    """Ask for the names at the top, and get to know the spaces, so that the first caller finds them known.

    While the store is away, names that a former mount has heard will do. Raises what the store fails with, TimedOut.
    """
    try:
        with trio.fail_after(timeout):
            await app.replica.names.listing("")
    except trio.TooSlowError:
        raise TimedOut(app.store.label) from None
    with trio.move_on_after(MEETING_SECONDS):
        await app.tree.meet(SPACES_MET)
    app.replica.watcher.rest()


async def run_daemon(
    settings: Settings,
    mountpoint: Path,
    readiness: Readiness,
    log_file: str,
    served: Served = NOTHING_SERVED,
    *,
    manager: ServiceManager = NOBODY,
    table: FstabLine = NO_TABLE,
) -> None:
    """Mount, serve until unmounted, save. Raises LiveMemError when it cannot mount or could not save everything."""
    check_mountpoint(mountpoint)
    check_places(mountpoint, places(settings))
    sys.setswitchinterval(SWITCH_SECONDS)
    # Names and nodes are many and live long; looking through all of them again for each few hundred new ones is what
    # a listing of a hundred thousand notes would mostly consist of.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    record: mounts.MountRecord | None = None

    def draining(left: int) -> None:
        manager.draining(left)
        if record is not None:
            record.draining(left)

    try:
        async with open_app(settings, mountpoint=mountpoint, on_drain=draining) as app:
            await meet(app, settings.op_timeout)
            record = mounts.MountRecord(
                mountpoint=str(mountpoint),
                pid=os.getpid(),
                started=mounts.start_time(os.getpid()) or 0,
                since=iso(SystemClock().now()),
                store=app.store.label,
                log=log_file,
                place=place_of(settings),
            )
            ready = partial(_announce, record, readiness, manager, remarks(app))
            await _serve(app, mountpoint, served, record, ready, table)
            manager.stopping()
    except BaseException as error:
        if record is not None:
            record.ended(str(error) or type(error).__name__)
        raise
    record.ended("")
    log.info("unmounted", mountpoint=str(mountpoint))


def remarks(app: App) -> list[str]:
    """What the person who mounts should know besides: files to look after, a disk that is nearly full."""
    said, disk = [], machine.disk(app.settings)
    if found := len(app.replica.drafts.recovered()):
        files = "1 file" if found == 1 else f"{found} files"
        where = f"{app.mountpoint}/{STATE}/recovered/"
        said.append(
            f"{files} of an earlier mount could not be saved: copy what you need from {where}, and remove it there"
        )
    if disk.verdict != "ok":
        said.append(f"{disk.found} ({disk.advice})")
    return said


def _announce(
    record: mounts.MountRecord, readiness: Readiness, manager: ServiceManager, said: list[str], url: str
) -> None:
    record.write()
    if url:
        record.serving(url)
    log.info("mounted", mountpoint=record.mountpoint, store=record.store)
    for remark in said:
        log.info("remark", text=remark)
    readiness.ready(said)
    manager.ready(f"{record.store} is mounted on {record.mountpoint}")


async def _serve(
    app: App,
    mountpoint: Path,
    served: Served,
    record: mounts.MountRecord,
    on_ready: Callable[[str], None],
    table: FstabLine,
) -> None:
    """Serve until the kernel lets go, by `umount` or by a signal. `on_ready` is told where HTTP is served."""
    from livememfs.fuse import mount as fuse_mount  # the only line that needs pyfuse3

    settings, url = app.settings, ""
    async with trio.open_nursery() as nursery:
        await nursery.start(_end_by_signal, nursery.cancel_scope)
        listen = partial(sock.listen, record.socket, partial(_speak, app))
        await nursery.start(app.background.keep, "socket", listen)
        if served.address is not None:
            url = await nursery.start(app.background.keep, "web", partial(_web, app, served))
        await fuse_mount.serve(
            app.tree,
            mountpoint,
            allow_other=settings.allow_other,
            op_timeout=settings.op_timeout,
            on_ready=partial(on_ready, url),
            source=table.source,
            noexec=table.noexec,
            limited=app.gate.limited,
        )
        nursery.cancel_scope.cancel()


async def _speak(app: App, stream: trio.SocketStream, wanted: Mapping[str, Any]) -> None:
    """Serve one agent of this machine, with no more than the token it brings allows. NotSignedIn for a token that is
    not good: what somebody meant to limit must not be served without a limit.

    Or hear from `livememfs umount` that the mount is gone, which it is not for the kernel while another namespace has a
    copy. The protocol is imported when the first agent comes: most mounts have none.
    """
    if wanted.get("unmounted"):
        await sock.welcome(stream)
        _end_unseen(app.mountpoint)
        return
    serving = await trio.to_thread.run_sync(import_module, "livememfs.app.serving")
    options = {name: str(wanted.get(name, "")) for name in ("space", "tools", "agent")}
    visitor = Visitor(app.gate, app.tokens)
    await visitor.enter(str(wanted.get("token", "")))
    if (folder := str(wanted.get("folder", ""))) and (door := app.door) is not None:
        options["space"] = await door.space(folder)
    if space := options["space"]:
        (await visitor.still()).require(space)
        await spaces.require_space(app.replica, space)
    await sock.welcome(stream)
    await serving.over_stream(app, stream, visitor, **options)


def _end_unseen(mountpoint: Path | None) -> None:
    """End a mount that is not seen any more where this process lives; whoever has a copy gets ENOTCONN."""
    from livememfs.fuse import mount as fuse_mount

    if str(mountpoint) not in mounts.kernel_mounts():
        log.info("ending: unmounted here, whoever has a copy")
        fuse_mount.stop()


async def _web(app: App, served: Served, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
    serving = await trio.to_thread.run_sync(import_module, "livememfs.app.serving")
    address = serving.ListenAddress.parse(served.address)
    await serving.http_server(app, address, allow_hosts=served.names).run(task_status=task_status)


async def _end_by_signal(
    serving: trio.CancelScope, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Let the mount go when a signal asks for it; before there is one, give up making it."""
    from livememfs.fuse import mount as fuse_mount

    await asked_to_end(task_status=task_status)
    if not fuse_mount.stop():
        serving.cancel()
