"""The steps of `livememfs init`, each of which says what it did, and keeps how to undo it.

Owns each step, that it does nothing where it was done before, and that the lines that undo all of them work when they
are pasted as they stand. Main thread only.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from livememfs.agents.install.table import AGENTS, AgentName
from livememfs.cli import output
from livememfs.cli.checks import Check, models, store
from livememfs.cli.common import Choice, run
from livememfs.cli.connecting.install import for_all_projects, program
from livememfs.cli.first.configfile import set_values
from livememfs.cli.first.questions import Asker
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mount import begin
from livememfs.config import Settings
from livememfs.environment import environment, file_of
from livememfs.errors import LiveMemError, MountError, UsageError

BIN = "~/.local/bin"
PROGRAMS = {
    AgentName.CLAUDE_CODE: "claude", AgentName.CODEX: "codex", AgentName.CURSOR: "cursor", AgentName.GEMINI: "gemini",
    AgentName.QWEN: "qwen", AgentName.OPENCODE: "opencode", AgentName.COPILOT: "copilot",
    AgentName.WINDSURF: "windsurf", AgentName.CLINE: "cline",
}  # fmt: skip
"""The programs of the agents whose hooks can be for all projects."""


@dataclass
class StepsTaken:
    """What was done: `undo` has the commands that undo it, in the order of the steps."""

    undo: list[list[str]] = field(default_factory=list)

    def done(self, what: str, *undo: Sequence[str | Path]) -> None:
        """Say one step; `undo`: commands by their words, in the order in which they undo it."""
        output.say(f"  {what}")
        self.undo += [[str(word) for word in command] for command in reversed(undo)]

    def all_undone(self) -> list[str]:
        """The lines to paste, the last step first: an earlier one says where the later ones were done."""
        return [shlex.join(command) for command in reversed(self.undo)]


def new_folders(settings: Settings) -> list[Path]:
    """The folder in which the memory is kept, if it is not there yet. The cache is no part of it: when the lines are
    pasted, it may have what other mounts have not sent yet.
    """
    folders = [] if settings.s3_bucket_name else [settings.store_path.absolute()]
    return [folder for folder in folders if not folder.exists()]


def take_back(folders: list[Path]) -> None:
    """Remove the folder that the trial of a store has made, if it holds no file but locks."""
    while folders:
        folder = folders.pop()
        if not any(names for path, _, names in os.walk(folder) if Path(path).name != "locks"):
            shutil.rmtree(folder, ignore_errors=True)


def keep_folders(steps: StepsTaken, folders: Sequence[Path]) -> None:
    """Note that folders are new: what undoes all steps removes them last, when nothing uses them any more."""
    steps.undo[:0] = [["rm", "-r", str(folder)] for folder in folders if folder.exists()]


def person_is_there() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def attempt(settings: Settings) -> Check | None:
    """Try the store and the model. Returns what failed."""

    async def both() -> list[Check]:
        return [*await store.checks(settings), *await models.chats(settings)]

    with output.busy("trying the store and the model"):
        results = run(both)
    for check in results:
        if check.verdict == "fail":
            return check
        if check.name in ("store", "model"):
            output.say(f"  {check.name} works: {check.found}")
        elif check.verdict == "warn":
            output.note(f"  {check.name}: {check.found} ({check.advice})")
    return None


def write(steps: StepsTaken, choice: Choice, values: dict[str, str]) -> None:
    """Write the answers into the configuration file, and say which variables of this shell go before them."""
    path, _ = file_of(environment(), choice.config)
    was_there, folder_is_new = path.exists(), not path.parent.exists()
    before = path.read_bytes() if was_there else b""
    kept = set_values(path, values)
    if was_there and path.read_bytes() == before:
        steps.done(f"{path} is as it was")
    else:
        undo = [("mv", kept, path) if kept else ("rm", path), *([("rmdir", path.parent)] if folder_is_new else [])]
        steps.done(f"{path} has the answers, for you alone", *undo)
    shell = Settings.load(environment(), config_file=choice.config)
    if others := [name for name, value in in_force(values).items() if getattr(shell, name) != value]:
        variables = ", ".join(_variable(name) for name in others)
        output.note(f"  this shell has other values, which go before the file: unset {variables}")


def in_force(values: dict[str, str]) -> dict[str, object]:
    """The answers as settings: what is not to be set has its default."""
    return {name: value or Settings.model_fields[name].default for name, value in values.items()}


def _variable(name: str) -> str:
    from livememfs.config import setting_names

    return setting_names()[name]


def put_on_path(steps: StepsTaken) -> None:
    """Make a link to this installation's command where a shell finds it, unless it finds one already."""
    found = shutil.which("livememfs")
    if found is not None:
        steps.done(f"the command is {found}")
        return
    target, folder = program(), Path(BIN).expanduser()
    link = folder / "livememfs"
    if link.is_symlink() and str(link.readlink()) == target[0]:
        steps.done(f"{link} starts {target[0]}")
    elif len(target) > 1 or os.path.lexists(link):
        output.note(f"  the command is not on PATH: make {link} start {' '.join(target)}")
        return
    else:
        folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target[0])
        steps.done(f"{link} starts {target[0]}", ("rm", link))
    if str(folder) not in environment().get("PATH", "").split(":"):
        output.note(f"  a shell does not look there yet; add to ~/.profile: export PATH={BIN}:$PATH")


def is_mounted(settings: Settings, place: Path) -> bool:
    """Whether the store is mounted there already. MountError for another one."""
    if str(place) not in mounts.kernel_mounts():
        return False
    record = mounts.find(place)
    if record is None or not record.is_alive or not _is_of(record, settings):
        advice = f"`livememfs umount {shlex.quote(str(place))}`, then init again; nothing was changed"
        raise MountError(f"something else is mounted on {place}", advice=advice)
    return True


def mount(steps: StepsTaken, choice: Choice, settings: Settings, place: Path) -> None:
    """Mount, unless it is mounted. MountError."""
    if is_mounted(settings, place):
        steps.done(f"the memory is mounted on {place}")
        return
    made = not place.exists()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MountError(f"{place} cannot be a mount point: {error.strerror}") from None
    options = Choice(endpoint_url=settings.s3_endpoint_url or None, config=choice.config)
    secret = {_variable("token"): settings.token} if settings.token else {}
    remarks = begin(settings, place, options.arguments(settings), secret)
    record = mounts.find(place)
    undo: list[tuple[str | Path, ...]] = [("livememfs", "umount", place), *([("rmdir", place)] if made else [])]
    steps.done(f"{record.store if record else 'the memory'} is mounted on {place}", *undo)
    output.note(*(f"  {remark}" for remark in remarks))


def _is_of(record: mounts.MountRecord, settings: Settings) -> bool:
    if settings.s3_bucket_name:
        return record.place.get("s3_bucket_name") == settings.s3_bucket_name
    return record.place.get("store") == str(settings.store_path.absolute())


def make_space(steps: StepsTaken, settings: Settings, place: Path, name: str) -> None:
    """Make the first space."""
    folder = place / name
    if folder.is_dir():
        steps.done(f"the space {name} is there")
        return
    try:
        folder.mkdir()
    except OSError as error:
        raise MountError(f"the space {name} cannot be made: {error.strerror}") from None
    # Named, since another store may have a space of the same name.
    bucket, store = settings.s3_bucket_name, settings.store_path.absolute()
    of = ("--bucket", bucket) if bucket else ("--store", store)
    steps.done(f"the space {name} is made", ("livememfs", *of, "space", "delete", name, "--yes"))


# --- agents ------------------------------------------------------------------------------------------------------


def check_agents(names: Sequence[str]) -> None:
    """UsageError for an agent that cannot be connected for all projects."""
    for name in names:
        if name not in [agent.value for agent in PROGRAMS]:
            raise UsageError(f"init connects {', '.join(PROGRAMS)}, not {name}; `livememfs install` knows more")


def connect(steps: StepsTaken, place: Path, wanted: Sequence[str], asker: Asker) -> list[str]:
    """Connect agents for all projects: those named, else those that the person wants of those that are there."""
    there = [agent.value for agent, name in PROGRAMS.items() if shutil.which(name)]
    chosen = list(wanted) or [agent for agent in there if _is_wanted(agent, asker)]
    for agent in chosen:
        try:
            for_all_projects(AgentName(agent), place, yes=not asker.asks)
        except LiveMemError as error:
            output.note(f"  {agent} is not connected: {error}")
            continue
        undo = ("livememfs", "uninstall", agent, "--user", "--yes")
        steps.done(f"{agent} is connected; {AGENTS[AgentName(agent)].hint}", undo)
    for agent in there:
        if agent not in chosen:
            steps.done(f"{agent} is there, and not connected: livememfs install {agent} --user")
    return chosen


def _is_wanted(agent: str, asker: Asker) -> bool:
    return asker.ask(f"Connect {agent}, for all projects? (yes, no)", "no", choices=("yes", "no")) == "yes"


def end(steps: StepsTaken, place: Path, space: str, connected: Sequence[str]) -> None:
    """Say what to type now, and what undoes all steps."""
    if lines := steps.all_undone():
        output.say("", "To undo all of this:", *(f"  {line}" for line in lines))
    note = shlex.quote(f"{place}/{space}/live/decision-store.md")
    output.say(
        "",
        "Now type:",
        f"  echo 'we chose S3' > {note}",
        f"  livememfs search 'what did we choose' --space {space}",
        "",
        f"livememfs service install {shlex.quote(str(place))} mounts it whenever you log in; "
        "livememfs doctor looks whether all is well.",
    )
    if connected:
        output.say(f"Start {' or '.join(connected)} in a git repository: it has a space of its own there.")
