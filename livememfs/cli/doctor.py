"""`livememfs doctor`: check everything, name the next thing to do, and show where each setting came from.

Owns the report and the order of the checks: first those that others depend on, last what cannot be changed on this
machine. A secret is shown only as "(set)", a URL without its login. Main thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, quiet_log, run
from livememfs.cli.mounting import mirrors, mounts
from livememfs.environment import environment
from livememfs.errors import SettingsError
from livememfs.shown import without_login

if TYPE_CHECKING:
    from livememfs.cli.checks import Check
    from livememfs.config import Settings

STYLES = {"ok": "", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True)
class Setting:
    """One setting in force and its source."""

    variable: str
    value: str
    source: str


@command
def doctor(choice: Choice, as_json: JsonFlag = False) -> None:
    """Check machine, store, models, agents and settings, and name the next thing to do.

    Exits 1 when a check fails.

        livememfs doctor
        livememfs --bucket team-memory doctor
    """
    from livememfs.cli.checks import Check, machine, next_step  # they load slowly, and help does not need them

    settings: Settings | None = None
    mounted: frozenset[str] = frozenset()
    try:
        store = choice.found()
    except SettingsError as error:
        results = [Check("settings", "fail", str(error))]  # the error itself says what to do
    else:
        settings, mounted = store.settings, store.taken
        quiet_log(settings)
        results = [Check("settings", "ok", "understood")]
        if store.said:
            advice = "name the store here too, by variables, the configuration file or --bucket" if store.other else ""
            results.append(Check("store, choice", "warn" if store.other else "ok", store.said, advice))
    results += machine.checks(settings, choice.config)
    with output.busy("asking the mounts, the store and the models"):
        results += run(_others, settings)
    well = "nothing, all is well" if mounts.kernel_mounts() or mirrors.records() else "livememfs mount DIRECTORY"
    then = next_step(results) or well
    sources = setting_sources(choice, settings, mounted) if settings is not None else []
    if as_json:
        output.print_json({"checks": results, "settings": sources, "next": then})
    else:
        _show(results, sources)
        output.say("", f"next: {then}")
    if any(item.verdict == "fail" for item in results):
        raise typer.Exit(1)


async def _others(settings: Settings | None) -> list[Check]:
    """The checks that must wait for an answer; without settings only those of this machine."""
    from livememfs.cli.checks import around, models, store

    mounted, *agents = await around.checks(Path.cwd())
    if settings is None:
        return [mounted, *agents]
    results = [mounted, *await store.checks(settings), *await models.checks(settings), *agents]
    return sorted(results, key=lambda check: check.name == store.PROMISES)


def _show(checks: list[Check], sources: list[Setting]) -> None:
    rows = [(STYLES[item.verdict], [item.verdict, item.name, item.found]) for item in checks]
    for place, item in reversed(list(enumerate(checks))):
        if item.advice:
            rows.insert(place + 1, (STYLES[item.verdict], ["", "", f"-> {item.advice}"]))
    output.table(["", "CHECK", "FOUND, AND WHAT TO DO"], [row for _, row in rows], styles=[style for style, _ in rows])
    if sources:
        output.say("")
        output.table(["SETTING", "VALUE", "FROM"], [[item.variable, item.value, item.source] for item in sources])


def setting_sources(choice: Choice, settings: Settings, mounted: frozenset[str] = frozenset()) -> list[Setting]:
    """Every setting that was set, with its value (secrets masked) and its source. `mounted`: those of a mount."""
    from livememfs import config
    from livememfs.config import Settings

    variables = config.setting_names()
    overrides = choice.overrides()
    environ = environment()
    settings_set = []
    for name in sorted(settings.model_fields_set):
        if getattr(settings, name) == "":
            continue
        secret = Settings.model_fields[name].repr is False
        value = "(set)" if secret and getattr(settings, name) else without_login(str(getattr(settings, name)))
        source = "the running mount" if name in mounted else _source(name, variables[name], overrides, environ)
        settings_set.append(Setting(variables[name], value, source))
    return settings_set


def _source(name: str, variable: str, overrides: dict[str, object], environ: dict[str, str]) -> str:
    """The source that decides a setting; the order is that of `Settings.load`."""
    from livememfs import config

    if name in overrides:
        return "command line"
    if environ.get(variable):
        return f"environment, {variable}"
    standard = [other for other, setting in config.STANDARD.items() if setting == name and environ.get(other)]
    # A configuration file wins over the variables of other tools; which of the two it was is not known here.
    return f"environment, {standard[0]}, or the configuration file" if standard else "configuration file"
