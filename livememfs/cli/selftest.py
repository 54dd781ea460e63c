"""`livememfs selftest`: does a mount do what it says, tried on the mount itself in a space that goes again.

Owns the steps and the scratch space. Everything is done with calls that any program makes; a step that does not come
back within its time has failed, and the space is removed whatever happened, an interrupt included. Main thread only.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import trio
import typer

from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, command, quiet_log, run
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mount import resolve
from livememfs.errors import MountError
from livememfs.tree.context import STATE

STEP_SECONDS = 60.0
LOOK_SECONDS = 0.1
INTERRUPTED = 130
PREFIX = "selftest-"

State = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Result:
    """How one step went. `ms`: how long it took; `detail`: why it failed or was left out."""

    step: str
    state: State
    ms: float
    detail: str = ""


class Wrong(Exception):
    """A step came to something else than it should."""


class Skipped(Exception):
    """A step is not for this mount."""


@command
def selftest(
    choice: Choice,
    mountpoint: completion.MountedAt,
    llm: Annotated[bool, typer.Option("--llm", help="Let a configured model be asked, which may cost.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Longest time of one step.")
    ] = STEP_SECONDS,
    as_json: JsonFlag = False,
) -> None:
    """Try on a mount what it is for: notes, search, a dry run, ordinary files, the way to the bucket.

    In a space of its own, which is removed. Exits 1 when a step fails.
    """
    quiet_log(choice.load())
    path = resolve(mountpoint)
    if str(path) not in mounts.kernel_mounts():
        raise MountError(f"no livememfs is mounted on {path}")
    trial = Trial(path, f"{PREFIX}{secrets.token_hex(4)}", llm, timeout)
    with output.busy(f"trying {path}") as show:
        found = run(trial.run, show)
    if as_json:
        output.print_json({"mountpoint": str(path), "space": trial.space, "steps": [asdict(one) for one in found]})
    else:
        _show(found)
    if trial.is_interrupted:
        raise typer.Exit(INTERRUPTED)
    if any(one.state == "failed" for one in found):
        raise typer.Exit(1)


def _show(found: list[Result]) -> None:
    styles = {"ok": "", "failed": "red", "skipped": "yellow"}
    rows = [[one.step, one.state, f"{one.ms:.1f}", one.detail] for one in found]
    output.table(["STEP", "", "MS", ""], rows, styles=[styles[one.state] for one in found])
    failed = [one.step for one in found if one.state == "failed"]
    output.say("", f"{len(failed)} of {len(found)} failed: {', '.join(failed)}" if failed else "all is well")


# --- the run -----------------------------------------------------------------------------------------------------


class Trial:
    """One run of all steps in one scratch space."""

    def __init__(self, mount: Path, space: str, llm: bool, timeout: float) -> None:
        self.space = space
        self.is_interrupted = False
        self._steps = Steps(mount, mount / space, llm, timeout)
        self._timeout = timeout

    async def run(self, show: Callable[[str], None]) -> list[Result]:
        """What each step came to. Those after the first that failed are left out, but for removing the space."""
        found: list[Result] = []
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signals, nursery.cancel_scope)
            for name, step in self._steps.all():
                show(name)
                if any(one.state == "failed" for one in found):
                    found.append(Result(name, "skipped", 0.0, "not tried"))
                else:
                    found.append(await self._try(name, step))
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            found.append(await self._try("remove the space", self._steps.remove))
        return found

    async def _watch_signals(
        self, scope: trio.CancelScope, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            task_status.started()
            async for _ in received:
                self.is_interrupted = True
                scope.cancel()

    async def _try(self, name: str, step: Callable[[], None]) -> Result:
        """One step in a thread, since a mount that hangs must not hang this command."""
        start = time.monotonic()
        state: State = "failed"
        detail = f"no answer within {self._timeout:g} s"
        with trio.move_on_after(self._timeout):
            try:
                await trio.to_thread.run_sync(step, abandon_on_cancel=True)
                state, detail = "ok", ""
            except Skipped as reason:
                state, detail = "skipped", str(reason)
            except Wrong as reason:
                detail = str(reason)
            except OSError as error:
                detail = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        return Result(name, state, round((time.monotonic() - start) * 1e3, 1), detail)


# --- the steps ---------------------------------------------------------------------------------------------------

TEXT = "The selftest of livememfs chose a quiet harbour.\n"
MORE = "It came back to it twice.\n"


@dataclass(frozen=True)
class Steps:
    """What is tried, each in calls that block; each raises OSError, Wrong or Skipped."""

    mount: Path
    space: Path
    llm: bool
    timeout: float

    def all(self) -> list[tuple[str, Callable[[], None]]]:
        """The steps in order; each may need what those before it left."""
        return [
            ("make a space", self.space.mkdir),
            ("write a note", self._write),
            ("read it by the name it was written under", partial(self._holds, TEXT)),
            ("read it by its own name", self._canonical),
            ("edit it", self._edit),
            ("rename it", self._rename),
            ("find it by its words", self._search),
            ("plan a consolidation (dry run)", self._dry_run),
            ("write and append to a file", self._write_file),
            ("truncate and rename the file", self._change_file),
            ("fsync", self._fsync),
            ("wait for the bucket", self._barrier),
        ]

    def remove(self) -> None:
        """Take the scratch space away with everything in it."""
        if not self.space.exists():
            return
        for note in (self.space / "live").iterdir():
            note.unlink()
        for path in (self._file, self._moved):
            path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self._folder.rmdir()
        self.space.rmdir()
        if self.space in self.mount.iterdir():
            raise Wrong(f"{self.space.name} is still listed")

    # --- notes ------------------------------------------------------------------------------------------------

    @property
    def _written(self) -> Path:
        return self.space / "live" / "decision-selftest.md"

    def _write(self) -> None:
        self._written.write_text(TEXT)

    def _holds(self, text: str) -> None:
        """Whether the note has a front matter and this text, by the name it was written under."""
        found = self._written.read_text()
        if not found.startswith("---\n") or not found.endswith(text):
            raise Wrong(f"{self._written.name} has {_short(found)}")

    def _only(self) -> Path:
        """The one note, by its own name."""
        found = list((self.space / "live").iterdir())
        if len(found) != 1 or "_decision_" not in found[0].name:
            raise Wrong(f"live/ lists {', '.join(path.name for path in found) or 'nothing'}")
        return found[0]

    def _canonical(self) -> None:
        if self._only().read_text() != self._written.read_text():
            raise Wrong("it is not the same by both names")

    def _edit(self) -> None:
        before = self._only()
        with self._written.open("a") as file:
            file.write(MORE)
        self._holds(TEXT + MORE)
        if self._only() != before:
            raise Wrong("it has become another note")

    def _rename(self) -> None:
        other = self._written.with_name("decision-renamed.md")
        self._written.rename(other)
        if not other.read_text().endswith(MORE):
            raise Wrong("it has lost its text")
        self._only()
        other.rename(self._written)

    def _search(self) -> None:
        """A search hears of a note a moment after it was written."""
        page = self.space / "search" / "quiet harbour.md"
        name, until = self._only().name, time.monotonic() + self.timeout
        while name not in (found := page.read_text()):
            if time.monotonic() > until:
                raise Wrong(f"the search has {_short(found)}")
            time.sleep(LOOK_SECONDS)

    def _dry_run(self) -> None:
        model = json.loads((self.mount / STATE / "status.json").read_bytes())["model"]
        if not self.llm and model != "built-in filing":
            raise Skipped(f"it would ask {model}; --llm has it asked")
        (self.space / ".consolidate").write_text('{"dry_run": true}')
        lines = (self.space / ".consolidate.wait").read_text().splitlines()
        outcome = json.loads(lines[-1]) if lines else {}
        if outcome.get("state") != "ok":
            raise Wrong(str(outcome.get("reason") or outcome.get("state")))
        if not (self.space / ".consolidate.diff").read_text():
            raise Wrong("it would change nothing")
        self._only()

    # --- ordinary files ---------------------------------------------------------------------------------------

    @property
    def _folder(self) -> Path:
        return self.space / "folder"

    @property
    def _file(self) -> Path:
        return self._folder / "file.txt"

    @property
    def _moved(self) -> Path:
        return self.space / "moved.txt"

    def _write_file(self) -> None:
        self._folder.mkdir()
        self._file.write_text(TEXT)
        with self._file.open("a") as file:
            file.write(MORE)
        self._has(self._file, TEXT + MORE)

    def _change_file(self) -> None:
        os.truncate(self._file, len(TEXT))
        self._file.rename(self._moved)
        self._has(self._moved, TEXT)
        if self._file.exists():
            raise Wrong("it is there under its old name")

    def _has(self, path: Path, text: str) -> None:
        if (found := path.read_text()) != text or path.stat().st_size != len(text):
            raise Wrong(f"{path.name} has {_short(found)}")

    def _fsync(self) -> None:
        with self._moved.open("r+") as file:
            file.write(TEXT.upper())
            file.flush()
            os.fsync(file.fileno())
        self._has(self._moved, TEXT.upper())

    def _barrier(self) -> None:
        lines = (self.mount / STATE / "journal.wait").read_text().splitlines()
        last = json.loads(lines[-1]) if lines else {}
        if last.get("state") != "ok":
            raise Wrong(str(last.get("reason") or last or "it says nothing"))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...") if text else "nothing"
