"""`livememfs mount`: in the background, or in the foreground for service managers and containers.

Owns starting the daemon and telling the user how it went. The parent waits on a pipe that only the daemon holds open,
so it learns of readiness, of a failure in the daemon's own words, and of a death without words alike. Main thread only.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livememfs import private
from livememfs.cli import output
from livememfs.cli.common import AllowHost, Choice, JsonFlag, argument, command, expanded, option, run
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.cli.mounting.starting import FstabLine, Readiness, Served, places
from livememfs.environment import environment
from livememfs.errors import LiveMemError, MountError, UsageError

if TYPE_CHECKING:
    from livememfs.config import Settings

GRACE = 30.0
"""Seconds that the daemon may take to come up beyond the one question it asks the store."""
LARGEST_LOG = 10_485_760
PLACES = "[s3://BUCKET|DIR] MOUNTPOINT"


@dataclass(frozen=True, kw_only=True)
class MountOptions:
    """What the command line says about the settings of a mount; None where it says nothing."""

    agent: Annotated[str | None, option(metavar="NAME", help="Agent named in notes whose writer cannot be told.")] = (
        None
    )
    allow_other: Annotated[bool | None, option("--allow-other", help="Let other users in.")] = None
    uid: Annotated[int | None, option(metavar="NUMBER", help="All files belong to this user.")] = None
    gid: Annotated[int | None, option(metavar="NUMBER", help="All files belong to this group.")] = None
    op_timeout: Annotated[float | None, option(metavar="SECONDS", help="Longest time of one operation.")] = None
    cache: Annotated[Path | None, option(metavar="DIR", help="Where the local state is kept.")] = None
    cache_size: Annotated[int | None, option(metavar="BYTES", help="Contents kept on the local disk.")] = None
    fsync: Annotated[str | None, option(metavar="local|remote", help="What fsync waits for.")] = None
    poll_interval: Annotated[float | None, option(metavar="SECONDS", help="Between looks for others' changes.")] = None
    drain_timeout: Annotated[float | None, option(metavar="SECONDS", help="Longest wait for uploads at the end.")] = (
        None
    )

    def overrides(self) -> dict[str, Any]:
        """The settings this sets."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        return given | ({"cache": str(expanded(self.cache).resolve())} if self.cache is not None else {})

    def options(self) -> list[str]:
        """The same as options for another process, whatever its working directory is."""
        flags = {f"--{name.replace('_', '-')}": value for name, value in self.overrides().items()}
        return [word for flag, value in flags.items() for word in ([flag] if value is True else [flag, str(value)])]


@command
def mount(
    choice: Choice,
    places: Annotated[list[str], argument(metavar=PLACES, help="What is mounted, and an empty directory.")],
    *,
    foreground: Annotated[bool, typer.Option("--foreground", "-f", help="Stay in the foreground.")] = False,
    more: MountOptions,
    web: Annotated[
        str | None, typer.Option("--web", metavar="ADDRESS", help="Serve the live page and MCP there.")
    ] = None,
    allow_host: AllowHost = None,
    token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Allow what this token does.  [default: everything]")
    ] = None,
    as_json: JsonFlag = False,
    ready_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
    log_file: Annotated[str, typer.Option(hidden=True)] = "",
    source: Annotated[str, typer.Option(hidden=True)] = "",
    noexec: Annotated[bool, typer.Option("--noexec", hidden=True)] = False,
) -> None:
    """Mount the memory on MOUNTPOINT.

    Runs in the background until `livememfs umount MOUNTPOINT`, and returns when the mount is usable.

        livememfs mount ~/memory                          the folder of this user
        livememfs mount s3://team-memory ~/memory         a bucket
        livememfs mount /srv/memory ~/memory              a folder that stands in for one
        livememfs mount -f --web 127.0.0.1:8765 /memory   for a container
    """

    from livememfs import config

    choice, mountpoint = placed(choice, places)
    load = partial(choice.load, **more.overrides(), token=token)
    path = resolve(mountpoint)
    table = FstabLine(source, noexec)
    served = Served(web, tuple(allow_host or ()))
    if foreground:
        _foreground(load, path, served, Readiness(ready_fd), log_file, table)
    else:
        settings = load()
        secret = {config.setting_names()["token"]: settings.token} if settings.token else {}
        options = [*choice.arguments(settings), *more.options(), *table.options(), *served.options()]
        remarks = begin(settings, path, options, secret)
        if as_json:
            output.print_json(mounts.find(path))
        else:
            _explain(path, settings)
        output.note(*remarks)


def placed(choice: Choice, places: Sequence[str]) -> tuple[Choice, Path]:
    """The store and the mount point that one or two words name. UsageError."""
    *stores, mountpoint = places
    if not stores:
        return choice, Path(mountpoint)
    word = stores[0]
    if len(stores) > 1 or choice.store is not None or choice.bucket is not None:
        raise UsageError(f"name one store and one mount point: livememfs mount {PLACES}")
    bucket, _, below = word.removeprefix("s3://").partition("/")
    if not word.startswith("s3://"):
        if "/" not in word and not Path(word).exists():
            raise UsageError(f"there is no folder {word} here; a bucket is written s3://{word}, a new folder ./{word}")
        return replace(choice, store=Path(word)), Path(mountpoint)
    if below or not bucket:
        raise UsageError(f"{word} names no bucket; a bucket is mounted whole: s3://{bucket or 'BUCKET'}")
    return replace(choice, bucket=bucket), Path(mountpoint)


# --- in the foreground -------------------------------------------------------------------------------------------


def _foreground(
    load: Callable[[], Settings], path: Path, served: Served, readiness: Readiness, log_file: str, table: FstabLine
) -> None:
    from livememfs import log
    from livememfs.cli.mounting.notify import ServiceManager
    from livememfs.fuse.mountpoint import check_library

    manager = ServiceManager.of(environment())
    try:
        settings = load()
        log.configure(settings.log_level, json=settings.log_json)
        check_library()
        from livememfs.cli.mounting import daemon  # whoever only starts one need not load what it is made of

        serving = partial(daemon.run_daemon, manager=manager, table=table)
        run(serving, settings, path, readiness, log_file, served)
    except LiveMemError as error:
        readiness.failed(error)
        raise


# --- in the background -------------------------------------------------------------------------------------------


def begin(settings: Settings, path: Path, options: list[str], secret: dict[str, str]) -> list[str]:
    """Start a daemon with these options and wait for it. Returns what else there is to say.

    `secret` is what only its environment may have.
    """
    from livememfs.fuse.mountpoint import check_mountpoint, check_places

    check_mountpoint(path)
    check_places(path, places(settings))
    log_file = _open_log(path)
    with output.busy(f"mounting {path}"):
        arguments, patience = [*options, "--log-file", str(log_file), str(path)], settings.op_timeout + GRACE
        return _start(arguments, secret, log_file, patience)


def _open_log(path: Path) -> Path:
    log_file = mounts.log_path(path)
    try:
        private.folder(log_file.parent, top=mounts.state())
        if log_file.exists() and log_file.stat().st_size > LARGEST_LOG:
            log_file.replace(log_file.with_suffix(".old"))
        log_file.touch(mode=private.FILE)
    except OSError as error:
        raise MountError(f"cannot write the log {log_file}: {error.strerror}") from None
    return log_file


def _start(options: list[str], secret: dict[str, str], log_file: Path, timeout: float) -> list[str]:
    """Start the daemon and wait until it is ready. Returns what else there is to say.

    Raises MountError, or the daemon's own failure.
    `secret` goes by the environment: everybody can read the arguments of a process.
    """
    reader, writer = os.pipe()
    arguments = [sys.executable, "-m", "livememfs", "mount", "--foreground", "--ready-fd", str(writer), *options]
    with log_file.open("ab") as stderr:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(writer,),
            start_new_session=True,  # a Ctrl-C or a closed terminal is not for the daemon
            env=environment() | secret,
            cwd="/",  # it must not keep anybody's directory busy
        )
    os.close(writer)
    try:
        answer = _wait_for_answer(reader, timeout)
    except BaseException:
        child.send_signal(signal.SIGTERM)
        raise
    finally:
        os.close(reader)
    if answer.get("state") != "ready":
        raise _failure(child, answer, log_file)
    remarks: list[str] = answer.get("remarks", [])
    return remarks


def _wait_for_answer(reader: int, timeout: float) -> dict[str, Any]:
    """The daemon's line; empty when it died without one. Raises MountError when time is up."""
    deadline = time.monotonic() + timeout
    received = b""
    while not received.endswith(b"\n"):
        readable, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise MountError(f"the mount did not come up within {timeout:g} seconds")
        data = os.read(reader, 65_536)
        if not data:
            return {}
        received += data
    value: dict[str, Any] = json.loads(received)
    return value


def _failure(child: subprocess.Popen[bytes], answer: dict[str, Any], log_file: Path) -> LiveMemError:
    code = child.wait()
    if not answer:
        return MountError(f"the mount's process ended with status {code} before it was ready; see {log_file}")
    advice = f" ({answer['advice']})" if answer["advice"] else ""
    kind = UsageError if answer["exit_code"] == UsageError.exit_code else MountError
    return kind(f"{answer['reason']}{advice}")


def _explain(path: Path, settings: Settings) -> None:
    record = mounts.find(path)
    at, space = shlex.quote(str(path)), shlex.quote(f"{path}/project")
    note = shlex.quote(f"{path}/project/live/decision-store.md")
    output.say(
        f"{record.store if record else 'the memory'} is mounted on {path}",
        "",
        f"  mkdir -p {space}                                       make a space",
        f"  echo 'we chose S3' > {note}    write a note",
        f"  ls {space}                                             look around; README.md explains",
        f"  livememfs umount {at}                                       unmount",
        "",
        f"consolidation by {settings.model_name}; log in {record.log if record else 'the state directory'}",
    )
    if record and record.url:
        output.say(f"the live page is {record.url}/; `livememfs token create NAME` lets somebody in")
