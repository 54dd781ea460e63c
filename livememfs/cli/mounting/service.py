"""`livememfs service`: a mount that systemd starts with the user's session and stops cleanly.

Owns the unit file in the user's configuration and the calls of systemctl; without a systemd it prints what to do.
Refuses to overwrite or remove a unit that livememfs did not write, and to write a secret. Main thread only.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import platformdirs
import typer

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, expanded
from livememfs.cli.doctor import setting_sources
from livememfs.cli.mounting import fstab, mounts, unit
from livememfs.cli.mounting.mount import GRACE, PLACES, placed
from livememfs.cli.mounting.mounts import resolve
from livememfs.cli.mounting.unit import Unit
from livememfs.environment import environment, file_of
from livememfs.errors import MountError, UsageError

if TYPE_CHECKING:
    from livememfs.config import Settings

SYSTEMCTL_SECONDS = 30.0
STOP_GRACE = 30.0
"""Seconds to end, added to the time for uploads."""
NOT_FOR_UNITS = {"foreground", "as_json", "ready_fd", "log_file"}
SECRET = re.compile(r"token|key|secret|password")

app = listing.group("Mount by a systemd user unit, or by /etc/fstab.")
app.command("fstab")(fstab.fstab)

Place = Annotated[Path, argument(parser=Path, metavar="MOUNTPOINT", help="The mount point.")]


@app.command("install", context_settings={"ignore_unknown_options": True})
@command
def install(
    choice: Choice,
    context: typer.Context,
    words: Annotated[list[str], argument(metavar=PLACES, help="And any option of `livememfs mount`.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the unit.")] = False,
) -> None:
    """Write a unit that mounts on MOUNTPOINT, with the options of `livememfs mount`.

    A second time it replaces the unit. Secrets belong in the configuration file, or in ~/.config/livememfs/env.

        livememfs service install ~/memory
        livememfs service install ~/memory --web 127.0.0.1:8765
    """
    mount = _parsed(context, words)
    choice, mountpoint = placed(choice, mount.params["places"])
    settings = choice.quiet(**_overrides(mount))
    place = resolve(mountpoint)
    made = _unit(place, _options(mount, choice, settings), settings)
    if dry_run:
        output.say(made.text().rstrip("\n"))
        return
    path = _path_of(place)
    before = _read(path)
    if before is not None and unit.mountpoint_in(before) is None:
        raise UsageError(f"{path} is not from livememfs; move it away first")
    _make_mountpoint(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made.text())
    is_reloaded = _systemctl("daemon-reload") is not None
    _tell(path, before, made.text(), is_reloaded)
    _tell_of_secrets(choice, settings)


@app.command("uninstall")
@command
def uninstall(choice: Choice, mountpoint: Place) -> None:
    """Stop a unit that `install` wrote, and remove it. All memory stays.

    livememfs service uninstall ~/memory
    """
    settings = choice.quiet()
    place = resolve(mountpoint)
    path = _path_of(place)
    text = _read(path)
    if text is None:
        raise UsageError(f"there is no unit for {place}; `livememfs service status` lists the units")
    if unit.mountpoint_in(text) is None:
        raise UsageError(f"{path} is not from livememfs and was not removed")
    seconds = SYSTEMCTL_SECONDS + settings.drain_timeout + STOP_GRACE
    done = _systemctl("disable", "--now", path.name, timeout=seconds)
    if done is not None and done.returncode:
        raise MountError(f"{path.name} cannot be stopped: {done.stderr.strip()}")
    path.unlink()
    (path.parent / "default.target.wants" / path.name).unlink(missing_ok=True)
    _systemctl("daemon-reload")
    output.say(f"{path} is removed")
    if done is None and str(place) in mounts.kernel_mounts():
        output.note(f"it is still mounted; `livememfs umount {shlex.quote(str(place))}` unmounts")


@app.command("status")
@command
def status(choice: Choice, as_json: JsonFlag = False) -> None:
    """List the units that `install` wrote, with their state in systemd.

    livememfs service status
    """
    choice.quiet()
    units = []
    for path in sorted(_folder().glob("livememfs-*.service")):
        place = unit.mountpoint_in(_read(path) or "")
        if place is not None:
            units.append(InstalledUnit(path, place, _state("is-enabled", path.name), _state("is-active", path.name)))
    rows = [[installed.mountpoint, installed.enabled, installed.active, str(installed.unit)] for installed in units]
    none = "no unit is installed; `livememfs service install DIRECTORY` installs one"
    output.listing(units, ["MOUNT POINT", "ENABLED", "ACTIVE", "UNIT"], rows, none, as_json=as_json)


@dataclass(frozen=True)
class InstalledUnit:
    """One unit; `enabled` and `active` in systemd's words, `unknown` without an answer."""

    unit: Path
    mountpoint: str
    enabled: str
    active: str


# --- what the unit says ------------------------------------------------------------------------------------------


def _parsed(context: typer.Context, words: list[str]) -> Any:
    """The words parsed as those of `livememfs mount`. Its parser ends the command itself at wrong words."""
    mount = context.find_root().command.commands["mount"]  # type: ignore[attr-defined]  # a group, typer does not say
    parsed = mount.make_context("install", list(words), parent=context.parent)
    for option in mount.params:
        if not _is_given(parsed, option):
            continue
        if option.name in NOT_FOR_UNITS:
            raise UsageError(f"{option.opts[0]} is not possible in a unit")
        if SECRET.search(option.name):
            raise UsageError(f"{option.opts[0]} is a secret; it belongs in {unit.service_environment()}, not in a unit")
    if not str(resolve(Path(parsed.params["places"][-1]))).isprintable():
        raise UsageError("the mount point of a unit has only characters that can be printed")
    return parsed


def _is_given(mount: Any, parameter: Any) -> bool:
    source = mount.get_parameter_source(parameter.name)
    return parameter.param_type_name == "option" and source is not None and source.name == "COMMANDLINE"


def _overrides(mount: Any) -> dict[str, Any]:
    """The given options of `mount` that are settings."""
    from livememfs.config import Settings

    names = [option.name for option in mount.command.params if _is_given(mount, option)]
    given = {name: mount.params[name] for name in names if name in Settings.model_fields}
    return {name: _word(value) if isinstance(value, Path) else value for name, value in given.items()}


def _word(value: object) -> str:
    """A value for another process, whose working directory may differ."""
    return str(expanded(value).absolute()) if isinstance(value, Path) else str(value)


def _options(mount: Any, choice: Choice, settings: Settings) -> list[str]:
    """The options of the unit's `mount`: those given, and the store, also if the environment names it."""

    words: list[str] = []
    for option in mount.command.params:
        if _is_given(mount, option):
            value, flag = mount.params[option.name], option.opts[0]
            many = value if isinstance(value, (list, tuple)) else [value]
            words += [flag] if value is True else [word for item in many for word in (flag, _word(item))]
    file, is_named = file_of(environment(), choice.config)
    if is_named:
        words += ["--config", _word(file)]
    set_here = {item.variable for item in setting_sources(choice, settings) if item.source != "configuration file"}
    if settings.s3_bucket_name:
        words += ["--bucket", settings.s3_bucket_name] if "S3_BUCKET_NAME" in set_here else []
        words += ["--endpoint-url", settings.s3_endpoint_url] if "S3_ENDPOINT_URL" in set_here else []
    elif "LIVEMEMFS_STORE" in set_here:
        words += ["--store", str(settings.store_path.absolute())]
    return [*words, *(["--log-level", settings.log_level] if choice.log_level else [])]


def _unit(place: Path, options: list[str], settings: Settings) -> Unit:
    program = Path(sys.executable).with_name("livememfs")
    start = [str(program)] if program.exists() else [sys.executable, "-m", "livememfs"]
    return Unit(
        mountpoint=str(place),
        command=[*start, "mount", "--foreground", *options, str(place)],
        environment=unit.file_named(str(unit.service_environment()), str(Path.home())),
        start_timeout=settings.op_timeout + GRACE + STOP_GRACE,
        stop_timeout=settings.drain_timeout + STOP_GRACE,
    )


# --- files -------------------------------------------------------------------------------------------------------


def _folder() -> Path:
    return platformdirs.user_config_path("systemd") / "user"


def _path_of(place: Path) -> Path:
    return _folder() / unit.name_of(str(place))


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _make_mountpoint(place: Path) -> None:
    if str(place) in mounts.kernel_mounts():
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MountError(f"{place} cannot be a mount point: {error.strerror}") from None


# --- systemd -----------------------------------------------------------------------------------------------------


def _systemctl(*words: str, timeout: float = SYSTEMCTL_SECONDS) -> subprocess.CompletedProcess[str] | None:
    """The result of `systemctl --user`; None without a user manager."""
    if shutil.which("systemctl") is None:
        return None
    words_run = ["systemctl", "--user", *words]
    try:
        done = subprocess.run(words_run, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise MountError(f"`{shlex.join(words_run)}` does not end") from None
    return None if done.returncode and "connect to bus" in done.stderr else done


def _state(*words: str) -> str:
    done = _systemctl(*words)
    return (done.stdout.strip() if done is not None else "") or "unknown"


def _tell(path: Path, before: str | None, after: str, is_reloaded: bool) -> None:
    output.say(f"{path} is {'as it was' if before == after else 'written'}")
    name = shlex.quote(path.name)
    if not is_reloaded:
        output.note("no systemd of this user answers; the unit is ready for when one does")
    elif _state("is-active", path.name) == "active":
        output.say(f"next: systemctl --user restart {name}")
        return
    output.say(f"next: systemctl --user enable --now {name}")
    output.note("`loginctl enable-linger` keeps it mounted while nobody is logged in")


def _tell_of_secrets(choice: Choice, settings: Settings) -> None:
    """Note which variables of this shell the unit does not get, and whether others can read its secrets."""
    file = unit.service_environment()
    if named := fstab.only_here(choice, settings):
        output.note(f"the unit does not see this shell's {named}: write NAME=value lines to {file}, and `chmod 600` it")
    elif file.exists() and file.stat().st_mode & 0o077:
        output.note(f"others can read {file}; `chmod 600 {shlex.quote(str(file))}`")
