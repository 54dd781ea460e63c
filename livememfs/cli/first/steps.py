"""The steps of `livememfs init`, each of which says what it did and how to undo it.

Owns each step, and that it does nothing where it was done before. Main thread only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from livememfs.agents.install.table import AGENTS, AgentName
from livememfs.cli import output
from livememfs.cli.checks import Check, models, store
from livememfs.cli.common import Choice, run
from livememfs.cli.connecting.install import program
from livememfs.cli.first.configfile import set_values
from livememfs.cli.first.questions import Asker
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mount import begin
from livememfs.config import Settings
from livememfs.environment import environment, file_of
from livememfs.errors import MountError, UsageError

BIN = "~/.local/bin"
PROGRAMS = {
    AgentName.CLAUDE_CODE: "claude", AgentName.CODEX: "codex", AgentName.CURSOR: "cursor", AgentName.GEMINI: "gemini",
    AgentName.QWEN: "qwen", AgentName.OPENCODE: "opencode", AgentName.COPILOT: "copilot",
    AgentName.WINDSURF: "windsurf", AgentName.CLINE: "cline",
}  # fmt: skip
"""The programs of the agents whose hooks can be for all projects."""


def done(what: str, undo: str = "") -> None:
    """Say one step."""
    output.say(f"  {what}", *([f"      undo: {undo}"] if undo else []))


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
            done(f"{check.name} works: {check.found}")
        elif check.verdict == "warn":
            output.note(f"  {check.name}: {check.found} ({check.advice})")
    return None


def write(choice: Choice, values: dict[str, str]) -> None:
    """Write the answers into the configuration file, and say which variables of this shell go before them."""
    path, _ = file_of(environment(), choice.config)
    was_there = path.exists()
    before = path.read_bytes() if was_there else b""
    kept = set_values(path, values)
    if was_there and path.read_bytes() == before:
        done(f"{path} is as it was")
    else:
        done(f"{path} has the answers, for you alone", f"mv {kept} {path}" if kept else f"rm {path}")
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


def put_on_path() -> None:
    """Make a link to this installation's command where a shell finds it, unless it finds one already."""
    found = shutil.which("livememfs")
    if found is not None:
        done(f"the command is {found}")
        return
    target, folder = program(), Path(BIN).expanduser()
    link = folder / "livememfs"
    if link.is_symlink() and str(link.readlink()) == target[0]:
        done(f"{link} starts {target[0]}")
    elif len(target) > 1 or os.path.lexists(link):
        output.note(f"  the command is not on PATH: make {link} start {' '.join(target)}")
        return
    else:
        folder.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target[0])
        done(f"{link} starts {target[0]}", f"rm {link}")
    if str(folder) not in environment().get("PATH", "").split(":"):
        output.note(f"  a shell does not look there yet; add to ~/.profile: export PATH={BIN}:$PATH")


def is_mounted(settings: Settings, place: Path) -> bool:
    """Whether the store is mounted there already. MountError for another one."""
    if str(place) not in mounts.kernel_mounts():
        return False
    record = mounts.find(place)
    if record is None or not record.is_alive or not _is_of(record, settings):
        advice = f"`livememfs umount {place}`, then init again; nothing was changed"
        raise MountError(f"something else is mounted on {place}", advice=advice)
    return True


def mount(choice: Choice, settings: Settings, place: Path) -> None:
    """Mount, unless it is mounted. MountError."""
    if is_mounted(settings, place):
        done(f"the memory is mounted on {place}")
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
    undo = f"livememfs umount {place}{f' && rmdir {place}' if made else ''}"
    done(f"{record.store if record else 'the memory'} is mounted on {place}", undo)
    output.note(*(f"  {remark}" for remark in remarks))


def _is_of(record: mounts.MountRecord, settings: Settings) -> bool:
    if settings.s3_bucket_name:
        return record.place.get("s3_bucket_name") == settings.s3_bucket_name
    return record.place.get("store") == str(settings.store_path.absolute())


def make_space(place: Path, name: str) -> None:
    """Make the first space."""
    folder = place / name
    if folder.is_dir():
        done(f"the space {name} is there")
        return
    try:
        folder.mkdir()
    except OSError as error:
        raise MountError(f"the space {name} cannot be made: {error.strerror}") from None
    done(f"the space {name} is made", f"livememfs space delete {name}")


# --- agents ------------------------------------------------------------------------------------------------------


def check_agents(names: Sequence[str]) -> None:
    """UsageError for an agent that cannot be connected for all projects."""
    for name in names:
        if name not in [agent.value for agent in PROGRAMS]:
            raise UsageError(f"init connects {', '.join(PROGRAMS)}, not {name}; `livememfs install` knows more")


def connect(place: Path, wanted: Sequence[str], asker: Asker) -> list[str]:
    """Connect agents for all projects: those named, else those that the person wants of those that are there."""
    there = [agent.value for agent, name in PROGRAMS.items() if shutil.which(name)]
    chosen = list(wanted) or [agent for agent in there if _is_wanted(agent, asker)]
    for agent in chosen:
        line = [*program(), "install", agent, "--user", "--mount", str(place), "--yes"]
        ended = subprocess.run(line, capture_output=True, text=True, check=False)
        if ended.returncode:
            output.note(f"  {agent} is not connected: {ended.stderr.strip()}")
        else:
            done(f"{agent} is connected; {AGENTS[AgentName(agent)].hint}", f"livememfs uninstall {agent} --user")
    for agent in there:
        if agent not in chosen:
            done(f"{agent} is there, and not connected: livememfs install {agent} --user")
    return chosen


def _is_wanted(agent: str, asker: Asker) -> bool:
    return asker.ask(f"Connect {agent}, for all projects? (yes, no)", "no", choices=("yes", "no")) == "yes"


def end(place: Path, space: str, connected: Sequence[str]) -> None:
    """Say what to type now."""
    output.say(
        "",
        "Now type:",
        f"  echo 'we chose S3' > {place}/{space}/live/decision-store.md",
        f"  livememfs search 'what did we choose' --space {space}",
        "",
        f"livememfs service install {place} mounts it whenever you log in; livememfs doctor looks whether all is well.",
    )
    if connected:
        output.say(f"Start {' or '.join(connected)} in a git repository: it has a space of its own there.")
