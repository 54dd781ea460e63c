"""`livememfs init`: from nothing to a mount with a space, with what each step did and what undoes all of it.

Owns the order: first what can fail without leaving anything (the questions, the store, the model), then what stays. A
step that was done before says so and does nothing. Refuses to change an agent's files unasked. Main thread only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, argument, command, option, quiet_log
from livememfs.cli.mounting.mount import PLACES, placed
from livememfs.cli.mounting.mounts import resolve
from livememfs.environment import environment
from livememfs.errors import LiveMemError, UsageError
from livememfs.records.names import check_space_name

if TYPE_CHECKING:
    from livememfs.cli.first.questions import Asker
    from livememfs.config import Settings

MOUNTPOINT = "~/memory"
SPACE = "notes"


@command
def init(
    choice: Choice,
    places: Annotated[
        list[str] | None, argument(metavar=f"[{PLACES}]", help=f"As for `mount`.  [default: {MOUNTPOINT}]")
    ] = None,
    space: Annotated[str, option(metavar="NAME", help=f"The first space.  [default: {SPACE}]")] = "",
    agent: Annotated[list[str] | None, option(metavar="TOOL", help="Connect this agent; repeat for more.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: what is set is the answer.")] = False,
) -> None:
    """Set it up: store, model, configuration, mount, a first space, agents.

    Asks at a terminal. Elsewhere it takes the variables of the environment, the configuration file and the options.
    A second time it changes what has another answer.

        livememfs init
        livememfs init --yes
        livememfs init s3://team-memory ~/memory --space project --agent claude-code
    """
    from livememfs.cli.first import questions, steps
    from livememfs.fuse.mountpoint import check_library

    check_library()
    if places:
        choice, mountpoint = placed(choice, places)
    else:
        mountpoint = Path(MOUNTPOINT)
    steps.check_agents(agent or ())
    if space:
        check_space_name(space)
    asker = questions.Asker(not yes and steps.person_is_there())
    folders: list[Path] = []
    try:
        settings, values = _answered(choice, asker, folders)
        place = resolve(mountpoint if places else Path(asker.ask("Where is it mounted?", str(mountpoint))))
        steps.is_mounted(settings, place)
        name = space or asker.ask("Name of the first space?", SPACE, check=check_space_name)
    except BaseException as error:
        steps.take_back(folders)
        if isinstance(error, KeyboardInterrupt):
            output.note("nothing was changed")
        raise
    taken = steps.StepsTaken()
    steps.write(taken, choice, values)
    steps.put_on_path(taken)
    steps.mount(taken, choice, settings, place)
    steps.make_space(taken, settings, place, name)
    connected = steps.connect(taken, place, agent or (), asker)
    steps.keep_folders(taken, folders)
    steps.end(taken, place, name, connected)


def _answered(choice: Choice, asker: Asker, folders: list[Path]) -> tuple[Settings, dict[str, str]]:
    """Settings of which store and model were tried, and what is to be written down. Asks again after a failure.
    `folders` gets those that the trial makes.

    LiveMemError when nobody can be asked.
    """
    from livememfs.cli.first import questions, steps
    from livememfs.config import Settings

    settings = choice.load()
    while True:
        named = choice.store is not None or choice.bucket is not None
        values = questions.store(settings, asker, named=named) | questions.model(settings, asker)
        overrides = choice.overrides() | steps.in_force(values)
        settings = Settings.load(environment(), overrides=overrides, config_file=choice.config)
        quiet_log(settings)
        steps.take_back(folders)
        folders += steps.new_folders(settings)
        failed = steps.attempt(settings)
        if failed is None:
            return settings, values
        if not asker.asks:
            raise LiveMemError(f"{failed.name}: {failed.found}; nothing was changed", advice=failed.advice)
        output.note(f"{failed.name}: {failed.found} ({failed.advice})")
        if asker.ask("Answer again? (yes, no)", "yes", choices=("yes", "no")) == "no":
            raise UsageError("nothing was changed")
        choice = Choice(config=choice.config, log_level=choice.log_level)
