"""`livememfs sync`: a plain directory that is kept equal to a space or a bucket, without FUSE.

Owns the choice of the local state, one for each directory, and the process from start to end. Main thread only.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, argument, command, expanded, run
from livememfs.cli.mounting.mirrors import MirrorRecord
from livememfs.cli.mounting.mounts import start_time
from livememfs.cli.mounting.starting import place_of, places
from livememfs.clock import SystemClock
from livememfs.errors import MountError, UsageError
from livememfs.text.times import iso

if TYPE_CHECKING:
    import trio

    from livememfs.concurrency import Background
    from livememfs.config import Settings
    from livememfs.mirror.letters import Letters

POLL_SECONDS = 1.5
"""Between looks for others' changes, unless it is set: a note is to be on every disk within three seconds, and a file
counts only once it was left alone for a moment.
"""


@command
def sync(
    choice: Choice,
    directory: Annotated[Path, argument(metavar="DIR", help="The directory; it exists.")],
    *,
    space: Annotated[str, typer.Option("--space", metavar="SPACE", help="Mirror one space.")] = "",
    once: Annotated[bool, typer.Option("--once", help="Make both equal, and end.")] = False,
) -> None:
    """Keep the plain directory DIR equal to the bucket, both ways, without FUSE.

    Runs until a signal ends it. What is written into DIR is in the bucket a moment later, and the reverse.

        livememfs sync ~/memory
        livememfs sync ~/project --space project
        livememfs sync ~/memory --once
    """
    from livememfs import log  # loads slowly, as all below

    settings = choice.load()
    top = expanded(directory).resolve()
    for what, folder in places(settings):
        place = folder.resolve()
        if top.is_relative_to(place) or place.is_relative_to(top):
            raise UsageError(f"{top} and the {what} {place} must not be inside of each other")
    name = blake2b(str(top).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    own: dict[str, Any] = {"cache": str(settings.cache_path / "mirrors" / name)}
    if "poll_interval" not in settings.model_fields_set:
        own["poll_interval"] = POLL_SECONDS
    settings = settings.model_copy(update=own)
    log.configure(settings.log_level, json=settings.log_json)
    run(_sync, settings, top, space, once)


async def _sync(settings: Settings, top: Path, space: str, once: bool) -> None:
    from livememfs.app import open_app
    from livememfs.app.status import status_of
    from livememfs.mirror.running import bring_equal, keep_equal, open_mirror

    failed: MountError | None = None
    record: MirrorRecord | None = None
    async with open_app(settings, mountpoint=top, alone=space) as app:
        of = f"{space} of {app.store.label}" if space else app.store.label

        def ready() -> None:
            output.note(f"{top} is a mirror of {of}")

        try:
            async with open_mirror(app.tree, top, space, of) as mirror:
                if once:
                    await bring_equal(mirror)
                else:
                    record = _record(top, space, app.store.label, place_of(settings))

                    def status() -> dict[str, Any]:
                        return status_of(app) | {"space": space, "mirror": asdict(mirror.statistics())}

                    await keep_equal(mirror, app.background, partial(_serve, app.background, record, status), ready)
        except MountError as error:
            failed = error  # what was accepted before is uploaded all the same
    if record is not None:
        record.ended(str(failed or ""))
    if failed is not None:
        raise failed


def _record(top: Path, space: str, store: str, place: Mapping[str, Any]) -> MirrorRecord:
    return MirrorRecord(
        mountpoint=str(top),
        pid=os.getpid(),
        started=start_time(os.getpid()) or 0,
        since=iso(SystemClock().now()),
        store=store,
        place=place,
        space=space,
    )


async def _serve(
    background: Background, record: MirrorRecord, status: Callable[[], dict[str, Any]], letters: Letters
) -> None:
    """Answer hooks on a socket, and who asks for the state, until a signal asks to end."""
    import trio

    from livememfs.cli.mounting.ending import asked_to_end
    from livememfs.mirror.client import SOCKET
    from livememfs.serve import sock

    path, answer = letters.place.ours / SOCKET, partial(_answer, letters, status)
    async with trio.open_nursery() as nursery:
        await nursery.start(background.keep, "socket", partial(sock.listen, path, answer))
        record.write()
        await asked_to_end()
        nursery.cancel_scope.cancel()


async def _answer(
    letters: Letters, status: Callable[[], dict[str, Any]], stream: trio.SocketStream, wanted: Mapping[str, Any]
) -> None:
    from livememfs.serve import sock
    from livememfs.tree.node import Caller

    if "status" in wanted:
        await sock.welcome(stream)
        await stream.send_all(json.dumps(status()).encode())
        return
    request = b"".join([part async for part in stream])
    await stream.send_all(await letters.ask(str(wanted.get("ask", "")), request, Caller(pid=_peer(stream))))


def _peer(stream: trio.SocketStream) -> int:
    """The process at the other end; 0 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    pid, _, _ = struct.unpack("3i", stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return int(pid)
