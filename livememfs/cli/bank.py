"""`livememfs bank ...`: mending bank files by hand, with or without a mount.

Owns the editor's file, which stays if what was written in it could not be stored. Main thread only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store
from livememfs.cli.memories import WHOSE, TrustArgument
from livememfs.cli.space import SpaceName
from livememfs.environment import environment_of_others, user_name
from livememfs.errors import LiveMemError, NotText, ObjectMissing, PreconditionFailed
from livememfs.records import keys
from livememfs.records.names import check_bank_name

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.records.ledger import Entry
    from livememfs.records.trust import Trust

app = listing.group("Mend bank files.")


@app.callback()
def bank() -> None:
    """Mend bank files."""


@app.command()
@command
def edit(
    choice: Choice,
    space: SpaceName,
    file: Annotated[str, argument(metavar="FILE", help="Name of the bank file; it may be a new one.")],
    as_json: JsonFlag = False,
) -> None:
    """Open a bank file in $EDITOR, and store it as a run of its own.

    `livememfs undo` takes it back, and `.why` names who did it.

        livememfs bank edit project decisions.md
    """
    settings, name = choice.on_store(), check_bank_name(file)
    key = keys.bank_key(space, name)
    text, etag = on_store(settings, lambda app: _read(app, space, key), space)
    with _draft(name, text) as path:
        _let_edit(path)
        written = _written(path, key)
        if written == text:
            output.answer({"space": space, "file": name, "run": None}, f"{name} is as it was", as_json=as_json)
            return
        entry = on_store(settings, lambda app: _store(app, space, name, written, etag), space)
    run = entry.number if entry is not None else None
    said = (
        f"{name} is stored: run {run}; `livememfs undo {space} {run}` takes it back" if run else f"{name} is as it was"
    )
    output.answer({"space": space, "file": name, "run": run}, said, as_json=as_json)


async def _read(app: App, space: str, key: str) -> tuple[str, str]:
    """The text and version of a file; both empty for a new one."""
    from livememfs.spaces import making as spaces
    from livememfs.spaces.objects import decode_text

    await spaces.require_space(app.replica, space)
    try:
        stored = await app.replica.read(key, fresh=True)
    except ObjectMissing:
        return "", ""
    return decode_text(stored.data, key), stored.info.etag


async def _store(app: App, space: str, name: str, text: str, etag: str) -> Entry | None:
    from livememfs.runs.edit import Replacement
    from livememfs.runs.edit import edit as by_hand
    from livememfs.spaces.objects import public

    key = keys.bank_key(space, name)
    data = await public(text, key, output.complain)
    change = Replacement(f"{keys.BANK}/{name}", data.decode(), etag)
    with output.busy(f"storing {name}") as show:
        leases, host = app.consolidations.leases, app.settings.host_name
        return await by_hand(app.replica, app.clock, leases, host, space, [change], user_name(), report=show)


@app.command()
@command
def trust(
    choice: Choice,
    space: SpaceName,
    file: Annotated[str, argument(metavar="FILE", help="Name of the bank file.")],
    given: TrustArgument,
    as_json: JsonFlag = False,
) -> None:
    """Say whose words a bank file has, as a run of its own; only a person raises it.

    livememfs bank trust project decisions.md user
    """
    from livememfs.records.trust import Trust

    name = check_bank_name(file)
    entry = on_store(choice.on_store(), lambda app: _vouch(app, space, name, Trust[given.value.upper()]), space)
    run = entry.number if entry is not None else None
    done = f"run {run}; `livememfs undo {space} {run}` takes it back" if run else "as before"
    said = f"{name} is told as {WHOSE[given]}: {done}"
    output.answer({"space": space, "file": name, "trust": given.value, "run": run}, said, as_json=as_json)


async def _vouch(app: App, space: str, name: str, given: Trust) -> Entry | None:
    from livememfs.runs.edit import vouch
    from livememfs.tree.writer import agent_of

    leases, host = app.consolidations.leases, app.settings.host_name
    by = agent_of(os.getpid(), "") or user_name()
    return await vouch(app.replica, app.clock, leases, host, space, name, given, by)


@contextmanager
def _draft(name: str, text: str) -> Iterator[Path]:
    """The editor's file. What was written in it stays after an error, which then names it."""
    folder = Path(tempfile.mkdtemp(prefix="livememfs-"))  # for this user only
    path = folder / name.rpartition("/")[2]
    path.write_bytes(text.encode())
    try:
        yield path
    except PreconditionFailed:
        raise LiveMemError(f"{name} was changed meanwhile, and yours is not stored: it is in {path}") from None
    except LiveMemError:
        if path.read_bytes() != text.encode():
            output.note(f"what you wrote is in {path}")
            raise
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)  # also what the editor has left beside it


def _let_edit(path: Path) -> None:
    """Wait for the person's editor. LiveMemError when it fails: then nothing may be stored."""
    environment = environment_of_others()
    editor = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(editor), path], env=environment, check=False).returncode
    except (OSError, ValueError) as error:
        raise LiveMemError(f"the editor {editor!a} cannot be started: {error}; set EDITOR to another one") from None
    if status:
        raise LiveMemError(f"the editor {editor!a} ended with status {status}, so nothing was stored")


def _written(path: Path, key: str) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(path=key, detail=f"at offset {error.start}") from None
