"""A mirror from its start to its end, around the tree of a running process.

Owns the tasks and how often everything is looked at. Refuses to build the tree, and to read settings. Trio thread only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import structlog
import trio

from livememfs.concurrency import Background
from livememfs.errors import LiveMemError, MountError, Throttled, Unreachable
from livememfs.mirror.branch import Branch
from livememfs.mirror.letters import Letters
from livememfs.mirror.mirror import Mirror
from livememfs.mirror.place import MirrorPlace
from livememfs.mirror.rows import MirrorRow, MirrorRows, Sig
from livememfs.mirror.settling import aside_from_disk
from livememfs.mirror.watching import watch
from livememfs.records import keys
from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.mirror")

SCAN_SECONDS = 180.0
"""How often the whole directory is looked at: it costs a call for each file, and no request."""
COMPARE_SECONDS = 600.0
"""The same for both sides."""
IN_USE_SECONDS = 10.0
"""How often spaces are said to be in use, and new ones and the disk looked for, of which nobody tells."""
END_SECONDS = 10.0
"""How long the end waits for files that somebody is just writing."""
ROUNDS = 5
TOP = Sig("d", 0, 0, 0, 0, 0)


@asynccontextmanager
async def open_mirror(root: Root, top: Path, space: str, of: str) -> AsyncIterator[Mirror]:
    """A mirror of a space, or of the whole bucket, in a directory. MountError, NotFound.

    Nothing is equal yet when it opens.
    """
    replica = root.context.replica
    branch, rows = Branch(root, space), MirrorRows(replica.database)
    top_node = await branch.top()
    place, known = MirrorPlace(top, of, str(replica.database.folder)), rows.get("")
    mirror = Mirror(branch, place, rows, root.context.host)
    replica.changes.subscribe(mirror.changed)
    try:
        found = await trio.to_thread.run_sync(place.begin, known.digest if known is not None else "")
        if known is None:
            rows.set("", MirrorRow(TOP, found))
        await mirror.settler.make_asked("", top_node)
        yield mirror
    finally:
        replica.changes.unsubscribe(mirror.changed)
        place.end()


async def bring_equal(mirror: Mirror) -> None:
    """Make both sides equal once. Raises what the store fails with, MountError."""
    for _ in range(ROUNDS):
        before = mirror.statistics()
        await mirror.compare()
        await mirror.until_idle()
        await mirror.branch.context.replica.uploaded()
        if mirror.statistics() == before:
            break
    await mirror.settler.let_go(all_of_them=True)


async def keep_equal(
    mirror: Mirror,
    background: Background,
    until: Callable[[Letters], Awaitable[None]],
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Keep both sides equal until `until` returns. `on_ready` is called once they are equal. MountError."""
    away: list[MountError] = []

    async def unless_away(work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except MountError as error:
            away.append(error)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        letters = Letters(mirror.branch, mirror.place, background.beside(nursery, "requests").start_soon)

        def touched(paths: Iterable[str]) -> None:
            mirror.agenda.touched(paths)
            letters.touched(paths)

        async def scan() -> None:
            letters.touched(await mirror.scan())

        watching = partial(watch, mirror.place.top, touched, mirror.polled, partial(unless_away, scan))
        for name, work in (
            ("watch the directory", watching),
            ("mirror", partial(unless_away, partial(_keep, mirror, on_ready))),
            ("scan", partial(unless_away, partial(_scan, mirror, letters))),
            ("in use", partial(unless_away, partial(_stay_in_use, mirror))),
        ):
            nursery.start_soon(background.keep, name, work)
        await until(letters)
        nursery.cancel_scope.cancel()
    if away:
        raise away[0]
    with trio.move_on_after(END_SECONDS):
        await mirror.scan()
        await mirror.until_idle()
        await mirror.settler.let_go(all_of_them=True)


async def _keep(mirror: Mirror, on_ready: Callable[[], None]) -> None:
    await mirror.compare()
    await mirror.until_idle()
    on_ready()
    await mirror.run()


async def _scan(mirror: Mirror, letters: Letters) -> None:
    compared = trio.current_time()
    while True:
        letters.touched(await mirror.scan())
        await trio.sleep(SCAN_SECONDS)
        if trio.current_time() - compared < COMPARE_SECONDS:
            continue
        compared = trio.current_time()
        try:
            await mirror.compare()
        except MountError:
            raise
        except LiveMemError as error:
            log.info("not everything was compared", reason=str(error))


async def _stay_in_use(mirror: Mirror) -> None:
    """Have changes of other hosts heard: a directory asks the tree nothing by itself."""
    names = mirror.branch.context.replica.names
    while True:
        await aside_from_disk(mirror.place.expect_here)
        with suppress(Unreachable, Throttled):
            for space in await mirror.branch.spaces():
                names.watch.used(f"{space}/{keys.LIVE}/")
                mirror.met(space)
        await trio.sleep(IN_USE_SECONDS)
