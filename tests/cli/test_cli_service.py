"""`livememfs service`: the unit as systemd reads it, whose it is, and what is never in it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

import pytest
from commandline import Cli

from livememfs.cli.mounting import unit

NASTY = 'me & mine, 100% of $HOME\'s "best" \\n été'


def units(tmp_path: Path) -> list[Path]:
    """The units of the user."""
    return sorted((tmp_path / "config" / "systemd" / "user").glob("*.service"))


def words(text: str) -> list[str]:
    """The command of a unit, read the way systemd quotes: like a shell does, with `%%` and `$$` for themselves."""
    line = next(line for line in text.splitlines() if line.startswith("ExecStart=")).removeprefix("ExecStart=")
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(line)]


def analysed(path: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What `systemd-analyze verify` says of a user unit. It looks at the machine's other units as well, which have
    sockets in the runtime directory: the path of that must be short.
    """
    command = ["systemd-analyze", "verify", "--user", "--man=no", str(path)]
    with tempfile.TemporaryDirectory(prefix="livememfs-", dir="/tmp") as runtime:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": runtime}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)


# --- the unit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory", NASTY, "-leading", ".hidden"], ids=["plain", "nasty", "dash", "dot"])
def test_systemd_accepts_the_unit_whatever_the_mount_point_is_called(cli: Cli, tmp_path: Path, name: str) -> None:
    ended = cli("service", "install", str(tmp_path / name), "--agent", NASTY, "--cache", str(tmp_path / NASTY))

    (path,) = units(tmp_path)
    verdict = analysed(path, tmp_path)
    assert ended.code == 0, ended.err
    assert (verdict.returncode, verdict.stdout, verdict.stderr) == (0, "", "")
    options = ["--agent", NASTY, "--cache", str(tmp_path / NASTY), "--store", str(tmp_path / "store")]
    assert words(path.read_text())[1:] == ["mount", "--foreground", *options, str(tmp_path / name)]


def test_systemd_finds_what_is_wrong_with_a_unit(cli: Cli, tmp_path: Path) -> None:
    """The test above can fail."""
    cli("service", "install", str(tmp_path / "mnt"))
    (path,) = units(tmp_path)
    path.write_text(path.read_text().replace("KillMode=mixed", "KillMode=gently"))

    assert "kill mode" in analysed(path, tmp_path).stderr


@pytest.mark.parametrize("path", ["/home/me/memory", "/a b/c-d", "/.x/é", "/a.b_c:d", f"/{NASTY}"])
def test_the_name_is_escaped_as_systemd_escapes_a_path(path: str) -> None:
    command = ["systemd-escape", "--path", path]
    escaped = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    assert unit.name_of(path) == f"livememfs-{escaped}.service"


def test_a_very_long_path_still_gives_a_name_that_a_file_can_have() -> None:
    names = {unit.name_of("/x" * count) for count in (100, 300, 301)}

    assert len(names) == 3
    assert all(len(name) < 255 for name in names)


def test_the_unit_has_time_to_drain_and_forbids_nothing_that_fuse_needs(cli: Cli, tmp_path: Path) -> None:
    text = cli("service", "install", str(tmp_path / "mnt"), "--drain-timeout", "200", "--dry-run").out

    values = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line))
    assert values["Type"] == "notify"
    assert float(values["TimeoutStopSec"]) > 200
    assert values["Restart"] == "on-failure"
    fatal = {"NoNewPrivileges", "PrivateTmp", "ProtectHome", "ProtectSystem", "PrivateDevices", "SystemCallFilter"}
    assert fatal & values.keys() == set()
    assert units(tmp_path) == []


# --- what is in it, and what never is ----------------------------------------------------------------------------


def test_no_secret_is_in_the_unit_and_those_of_this_shell_are_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVEMEMFS_STORE")
    monkeypatch.setenv("S3_BUCKET_NAME", "memory")
    monkeypatch.setenv("S3_ENDPOINT_URL", "http://s3.example.com")
    monkeypatch.setenv("S3_ACCESS_KEY_ID", "key-of-mine")
    monkeypatch.setenv("S3_SECRET_ACCESS_KEY", "sesame")

    ended = cli("service", "install", str(tmp_path / "mnt"))

    text = units(tmp_path)[0].read_text()
    assert "--bucket memory --endpoint-url http://s3.example.com" in text
    assert "sesame" not in text + ended.out + ended.err
    assert "key-of-mine" not in text
    assert "S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY" in ended.err
    assert str(tmp_path / "config" / "livememfs" / "env") in ended.err
    assert f"EnvironmentFile=-{tmp_path}/config/livememfs/env" in text


def test_an_environment_file_that_others_can_read_is_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "config" / "livememfs" / "env"
    file.parent.mkdir(parents=True)
    file.write_text("S3_SECRET_ACCESS_KEY=sesame\n")
    file.chmod(0o644)

    assert f"chmod 600 {file}" in cli("service", "install", str(tmp_path / "mnt")).err
    file.chmod(0o600)
    assert "chmod" not in cli("service", "install", str(tmp_path / "mnt")).err


def test_the_home_directory_is_not_spelt_out() -> None:
    assert unit.file_named("/home/me/.config/livememfs/env", "/home/me") == "%h/.config/livememfs/env"
    assert unit.file_named("/etc/100%/env", "/home/me") == "/etc/100%%/env"


def test_what_only_the_configuration_file_says_is_left_to_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVEMEMFS_STORE")
    (tmp_path / "c.toml").write_text('s3_bucket_name = "memory"\n')

    text = cli("service", "install", str(tmp_path / "mnt"), "--config", str(tmp_path / "c.toml"), "--dry-run").out

    assert words(text)[2:] == ["--foreground", "--config", str(tmp_path / "c.toml"), str(tmp_path / "mnt")]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--agnet", "x"], "--agnet"),
        (["--foreground"], "not possible in a unit"),
        (["--cache-size", "big"], "cache-size"),
        (["--token", "sesame"], "--token is a secret"),
    ],
)
def test_options_that_mount_would_not_take_are_refused(
    cli: Cli, tmp_path: Path, options: list[str], sentence: str
) -> None:
    ended = cli("service", "install", str(tmp_path / "mnt"), *options)

    assert (ended.code, units(tmp_path)) == (2, [])
    assert sentence in ended.err
    assert "sesame" not in ended.err


def test_options_that_are_given_several_times_stay_so(cli: Cli, tmp_path: Path) -> None:
    served = ["--web", "127.0.0.1:8123", "--allow-host", "one", "--allow-host", "two"]

    text = cli("service", "install", str(tmp_path / "mnt"), *served, "--dry-run").out

    assert words(text)[3 : 3 + len(served)] == served


# --- whose it is -------------------------------------------------------------------------------------------------


def test_installing_again_changes_nothing_and_with_other_options_replaces(cli: Cli, tmp_path: Path) -> None:
    mnt = str(tmp_path / "mnt")
    cli("service", "install", mnt)
    first = units(tmp_path)[0].read_text()

    assert "is as it was" in cli("service", "install", mnt).out
    assert units(tmp_path)[0].read_text() == first
    cli("service", "install", mnt, "--agent", "ann")
    assert "--agent ann" in units(tmp_path)[0].read_text()
    assert len(units(tmp_path)) == 1


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_unit_that_is_not_ours_stays_as_it_is(cli: Cli, tmp_path: Path, command: str) -> None:
    path = tmp_path / "config" / "systemd" / "user" / unit.name_of(str(tmp_path / "mnt"))
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/bin/true\n")

    cli("service", command, str(tmp_path / "mnt")).fails("not from livememfs", code=2)
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"


def test_status_lists_ours_and_uninstall_removes(cli: Cli, tmp_path: Path) -> None:
    cli("service", "install", str(tmp_path / "mnt"))
    (tmp_path / "config" / "systemd" / "user" / "livememfs-other.service").write_text("[Service]\n")

    listed = cli("service", "status", "--json").json
    assert [installed["mountpoint"] for installed in listed] == [str(tmp_path / "mnt")]
    shown = cli("service", "status").out
    assert str(tmp_path)[:40] in shown  # a long path is folded
    assert all(title in shown for title in ("MOUNT POINT", "ENABLED", "ACTIVE", "UNIT"))
    assert cli("service", "uninstall", str(tmp_path / "mnt")).code == 0
    assert [path.name for path in units(tmp_path)] == ["livememfs-other.service"]
    assert cli("service", "uninstall", str(tmp_path / "mnt")).code == 2


# --- systemd, played by a script ---------------------------------------------------------------------------------


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl that writes down what it is asked; `fails` beside it holds a word that makes it fail."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "systemctl"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nif grep -qsx "$2" {tmp_path}/fails; then echo no >&2; exit 1; fi\n'
        'case "$2" in is-active) echo inactive; exit 3;; is-enabled) echo enabled;; esac\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path / "asked"


def test_systemd_is_told_and_one_command_enables(cli: Cli, tmp_path: Path, systemctl: Path) -> None:
    ended = cli("service", "install", str(tmp_path / "my mnt"))

    assert "--user daemon-reload" in systemctl.read_text()
    assert f"next: systemctl --user enable --now {shlex.quote(units(tmp_path)[0].name)}" in ended.out
    assert cli("service", "status", "--json").json[0]["enabled"] == "enabled"


def test_uninstalling_stops_it_first_and_keeps_the_unit_if_that_fails(
    cli: Cli, tmp_path: Path, systemctl: Path
) -> None:
    mnt = str(tmp_path / "mnt")
    cli("service", "install", mnt)
    name = units(tmp_path)[0].name

    (tmp_path / "fails").write_text("disable\n")
    assert cli("service", "uninstall", mnt).code == 1
    assert len(units(tmp_path)) == 1
    (tmp_path / "fails").unlink()
    assert cli("service", "uninstall", mnt).code == 0

    calls = systemctl.read_text().splitlines()
    assert calls[-2:] == [f"--user disable --now {name}", "--user daemon-reload"]
    assert units(tmp_path) == []
