"""`livememfs selftest`: try a mount in a space made for the test and removed afterwards.

Owns the steps and the scratch space. The steps use only ordinary file calls. A step that does not end in time fails.
The space is removed in any case, also after an interrupt. Main thread only.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, command, run
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import resolve
from livememfs.errors import MountError
from livememfs.records.names import STATE

if TYPE_CHECKING:
    import trio

STEP_SECONDS = 60.0
LOOK_SECONDS = 0.1
INTERRUPTED = 130
PREFIX = "selftest-"

State = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Result:
    """How one step went. `ms`: how long it took; `detail`: why it failed or was skipped."""

    step: str
    state: State
    ms: float
    detail: str = ""


class Wrong(Exception):
    """A step had a wrong result."""


class Skipped(Exception):
    """A step is not possible on this mount."""


@command
def selftest(
    choice: Choice,
    mountpoint: completion.MountedAt,
    llm: Annotated[bool, typer.Option("--llm", help="Call a configured model, which may cost.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Longest time of one step.")
    ] = STEP_SECONDS,
    as_json: JsonFlag = False,
) -> None:
    """Try a mount: notes, search, a dry run, files, the upload to the bucket.

    Makes a space for the test and removes it. Exits 1 when a step fails.

        livememfs selftest ~/memory
        livememfs selftest ~/memory --llm
    """
    choice.quiet()
    path = resolve(mountpoint)
    if str(path) not in mounts.kernel_mounts():
        raise MountError(f"no livememfs is mounted on {path}")
    trial = Trial(path, f"{PREFIX}{secrets.token_hex(4)}", llm, timeout)
    with output.busy(f"trying {path}") as show:
        results = run(trial.run, show)
    if as_json:
        output.print_json({"mountpoint": path, "space": trial.space, "steps": results})
    else:
        _show(results)
    if trial.is_interrupted:
        raise typer.Exit(INTERRUPTED)
    if any(result.state == "failed" for result in results):
        raise typer.Exit(1)


def _show(results: list[Result]) -> None:
    styles = {"ok": "", "failed": "red", "skipped": "yellow"}
    rows = [[result.step, result.state, f"{result.ms:.1f}", result.detail] for result in results]
    output.table(["STEP", "", "MS", ""], rows, styles=[styles[result.state] for result in results])
    failed = [result.step for result in results if result.state == "failed"]
    output.say("", f"{len(failed)} of {len(results)} failed: {', '.join(failed)}" if failed else "all is well")


# --- the run -----------------------------------------------------------------------------------------------------


class Trial:
    """One run of all steps in one scratch space."""

    def __init__(self, mount: Path, space: str, llm: bool, timeout: float) -> None:
        self.space = space
        self.is_interrupted = False
        self._steps = Steps(mount, mount / space, llm, timeout)
        self._timeout = timeout

    async def run(self, show: Callable[[str], None]) -> list[Result]:
        """The result of each step. After the first failure the rest is skipped, except removing the space."""
        import trio

        results: list[Result] = []
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signals, nursery.cancel_scope)
            for name, step in self._steps.all():
                show(name)
                if any(result.state == "failed" for result in results):
                    results.append(Result(name, "skipped", 0.0, "not tried"))
                else:
                    results.append(await self._try(name, step))
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            results.append(await self._try("remove the space", self._steps.remove))
        return results

    async def _watch_signals(self, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
        import trio

        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            task_status.started()
            async for _ in received:
                self.is_interrupted = True
                scope.cancel()

    async def _try(self, name: str, step: Callable[[], None]) -> Result:
        """One step in a thread, since a mount that hangs must not hang this command."""
        import trio

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


class Steps:
    """The steps. Each blocks, and raises OSError, Wrong or Skipped."""

    def __init__(self, mount: Path, space: Path, llm: bool, timeout: float) -> None:
        self.mount, self.space, self.llm, self.timeout = mount, space, llm, timeout
        self._written = space / "live" / "decision-selftest.md"
        self._folder, self._moved = space / "folder", space / "moved.txt"
        self._file = self._folder / "file.txt"

    def all(self) -> list[tuple[str, Callable[[], None]]]:
        """The steps in order; each may need the files of earlier ones."""
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
        """Remove the scratch space with all its content."""
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

    def _write(self) -> None:
        self._written.write_text(TEXT)

    def _holds(self, text: str) -> None:
        """Check that the note has front matter and this text, under the name it was written with."""
        content = self._written.read_text()
        if not content.startswith("---\n") or not content.endswith(text):
            raise Wrong(f"{self._written.name} has {_short(content)}")

    def _only(self) -> Path:
        """The only note, under its own name."""
        notes = list((self.space / "live").iterdir())
        if len(notes) != 1 or "_decision_" not in notes[0].name:
            raise Wrong(f"live/ lists {', '.join(path.name for path in notes) or 'nothing'}")
        return notes[0]

    def _canonical(self) -> None:
        if self._only().read_text() != self._written.read_text():
            raise Wrong("the content differs between its two names")

    def _edit(self) -> None:
        before = self._only()
        with self._written.open("a") as file:
            file.write(MORE)
        self._holds(TEXT + MORE)
        if self._only() != before:
            raise Wrong("after the edit it is another note")

    def _rename(self) -> None:
        other = self._written.with_name("decision-renamed.md")
        self._written.rename(other)
        if not other.read_text().endswith(MORE):
            raise Wrong("it has lost its text")
        self._only()
        other.rename(self._written)

    def _search(self) -> None:
        """Wait for the note: a search finds it only a moment after it was written."""
        page = self.space / "search" / "quiet harbour.md"
        name, until = self._only().name, time.monotonic() + self.timeout
        while name not in (results := page.read_text()):
            if time.monotonic() > until:
                raise Wrong(f"the search has {_short(results)}")
            time.sleep(LOOK_SECONDS)

    def _dry_run(self) -> None:
        model = json.loads((self.mount / STATE / "status.json").read_bytes())["model"]
        if not self.llm and model != "built-in filing":
            raise Skipped(f"it would call {model}; --llm allows that")
        (self.space / ".consolidate").write_text('{"dry_run": true}')
        lines = (self.space / ".consolidate.wait").read_text().splitlines()
        outcome = json.loads(lines[-1]) if lines else {}
        if outcome.get("state") != "ok":
            raise Wrong(str(outcome.get("reason") or outcome.get("state")))
        if not (self.space / ".consolidate.diff").read_text():
            raise Wrong("it would change nothing")
        self._only()

    # --- ordinary files ---------------------------------------------------------------------------------------

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
            raise Wrong("it still exists under its old name")

    def _has(self, path: Path, text: str) -> None:
        if (content := path.read_text()) != text or path.stat().st_size != len(text):
            raise Wrong(f"{path.name} has {_short(content)}")

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
            raise Wrong(str(last.get("reason") or last or "it is empty"))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}...") if text else "nothing"
