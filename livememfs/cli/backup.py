"""`livememfs backup ...`: backups of spaces on the store, with or without a mount.

Owns what is printed. Refuses to ask for confirmation: a restore over a space can be undone, and a removal names its
backup. Main thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, expanded, on_store, option
from livememfs.cli.space import SpaceName
from livememfs.errors import AlreadyExists, LiveMemError, NotFound

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.runs.undo.restore import Restored
    from livememfs.spaces import backups
    from livememfs.spaces.export import Exported, Progress

T = TypeVar("T")

app = listing.group("Make, list, restore and remove backups of spaces.")

Stamp = Annotated[
    str, argument(metavar="STAMP", help="Which backup, as `list` shows it; `latest`: the newest complete one.")
]


@app.command()
@command
def create(choice: Choice, space: SpaceName, as_json: JsonFlag = False) -> None:
    """Copy a space into a backup, inside the bucket.

    livememfs backup create project
    """
    from livememfs.spaces import backups

    async def work(app: App, progress: Progress) -> backups.Backup:
        return await backups.create(app.replica, app.clock, space, automatic=False, progress=progress)

    made = _run(choice, space, f"backing up {space}", work)
    output.answer(made, f"backup {made.stamp} of {space}: {_figures(made)}", as_json=as_json)


@app.command("list")
@command
def list_backups(
    choice: Choice,
    space: Annotated[str | None, argument(metavar="[SPACE]", help="Only this space.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List backups, the oldest first.

    livememfs backup list project
    """
    from livememfs.spaces import backups

    async def work(app: App, _: Progress) -> list[backups.Backup]:
        return await backups.list_backups(app.replica, space)

    listed = _run(choice, space or "", "listing backups", work)
    columns = ["SPACE", "STAMP", "OBJECTS", "SIZE", "MADE", "STATE"]
    none = f"there is no backup{f' of {space}' if space else ''} yet; `livememfs backup create SPACE` makes one"
    output.listing(listed, columns, [_row(backup) for backup in listed], none, as_json=as_json, spare=["MADE"])


def _row(backup: backups.Backup) -> list[str]:
    made = ("automatically" if backup.automatic else "by hand") if backup.complete else "-"
    state = "complete" if backup.complete else "incomplete"
    return [backup.space, backup.stamp, str(backup.objects), output.size(backup.bytes), made, state]


@app.command()
@command
def restore(
    choice: Choice,
    space: SpaceName,
    stamp: Stamp,
    to: Annotated[str | None, option(metavar="NAME", help="Restore as this space.  [default: SPACE]")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the content of the space, after a backup of it.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Restore a space from a backup.

    livememfs backup restore project latest --to project-before
    """
    from livememfs.runs.undo.restore import restore_backup

    async def work(app: App, progress: Progress) -> Restored:
        leases = app.consolidations.leases
        return await restore_backup(
            app.replica, app.clock, leases, space, stamp, to=to, replace=replace, progress=progress
        )

    with _explaining_replace():
        done = _run(choice, space, f"restoring {space}", work)
    if as_json:
        output.print_json(done)
        return
    output.say(
        f"space {done.target} is restored from backup {done.stamp} of {space} ({output.plural(done.objects, 'object')})"
    )
    if done.saved is not None:
        again = f"livememfs backup restore {done.target} {done.saved} --replace"
        output.say(f"its content before is in backup {done.saved}; `{again}` restores that")


@app.command()
@command
def download(
    choice: Choice,
    space: SpaceName,
    stamp: Stamp,
    target: Annotated[
        Path | None,
        option("--output", "-o", metavar="FILE", help="A .tar.gz or .zip file.  [default: SPACE-STAMP.tar.gz here]"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a backup into one archive.

    livememfs backup download project latest
    """
    from livememfs.spaces import backups

    here = Path.cwd()

    async def work(app: App, progress: Progress) -> Exported:
        exact = await _exact(app, space, stamp)
        path = here / expanded(target or Path(f"{space}-{exact}.tar.gz"))
        return await backups.download(app.replica, space, exact, path, progress=progress)

    archive = _run(choice, space, f"downloading a backup of {space}", work)
    output.exported(archive, as_json)


@app.command()
@command
def delete(choice: Choice, space: SpaceName, stamp: Stamp, as_json: JsonFlag = False) -> None:
    """Remove a backup.

    livememfs backup delete project 2026-02-01T10-00-00
    """
    from livememfs.spaces import backups

    async def work(app: App, progress: Progress) -> tuple[str, int]:
        exact = await _exact(app, space, stamp)
        return exact, await backups.delete(app.replica, space, exact, progress=progress)

    gone, removed = _run(choice, space, f"removing a backup of {space}", work)
    output.answer(
        {"space": space, "stamp": gone, "removed_objects": removed},
        f"backup {gone} of {space} is removed ({output.plural(removed, 'object')})",
        as_json=as_json,
    )


# --- common ------------------------------------------------------------------------------------------------------


def _figures(backup: backups.Backup) -> str:
    return f"{output.plural(backup.objects, 'object')} ({output.size(backup.bytes)})"


async def _exact(app: App, space: str, stamp: str) -> str:
    """The stamp that `latest` stands for."""
    from livememfs.spaces import backups

    return (await backups.find(app.replica, space, stamp)).stamp if stamp == backups.LATEST else stamp


@contextmanager
def _explaining_replace() -> Iterator[None]:
    try:
        yield
    except AlreadyExists as error:
        name = error.values.get("path")
        raise LiveMemError(
            f"space {name} exists already; --to NAME restores as another space, "
            "--replace replaces this one, after a backup of it"
        ) from None


def _run(choice: Choice, space: str, title: str, work: Callable[[App, Progress], Awaitable[T]]) -> T:
    """Run `work` on the store with a progress bar. NotFound for a backup says which command lists the backups."""
    settings = choice.on_store()
    try:
        with output.bar(title) as progress:
            return on_store(settings, lambda app: work(app, progress), space)
    except NotFound as error:
        path = str(error.values.get("path", ""))
        if not path.startswith("backup "):
            raise
        raise NotFound(path=f"{path}; `livememfs backup list {space}` lists the backups") from None
