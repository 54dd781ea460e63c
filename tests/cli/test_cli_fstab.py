"""`mount.fuse.livememfs` and `livememfs service fstab`: what options mean, what is refused, and what a line says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commandline import Cli

from livememfs.cli.main import app
from livememfs.cli.mounting import fstab
from livememfs.cli.mounting.helper import FLAGS, VALUES, MountCall, main
from livememfs.errors import UsageError

STORES = {
    "memory": ["--bucket", "memory"],
    "s3://memory": ["--bucket", "memory"],
    "/srv/memory": ["--store", "/srv/memory"],
    "none": [],
}


def status(*words: str) -> object:
    """The exit status of `mount.fuse.livememfs`."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    return caught.value.code


@pytest.mark.parametrize("source", STORES)
def test_the_source_names_a_bucket_a_folder_or_nothing(source: str) -> None:
    assert MountCall.read([source, "/mnt"]).command() == ["mount", *STORES[source], "--source", source, "--", "/mnt"]


def test_the_words_of_mount_are_understood_wherever_they_stand() -> None:
    call = MountCall.read(
        ["-sv", "memory", "/mnt", "-n", "-t", "fuse.livememfs", "-o", "rw,agent=ann", "-o", "foreign=1"]
    )

    assert call.command()[-4:] == ["--agent", "ann", "--", "/mnt"]
    assert (call.sloppy, call.verbose, call.fake) == (True, True, False)


def test_what_is_for_mount_itself_is_passed_over() -> None:
    usual = "rw,noauto,user,_netdev,nofail,nodev,nosuid,noatime,x-systemd.automount,x-gvfs-show,comment=mine,user=me"

    assert MountCall.read(["memory", "/mnt", "-o", usual]).command() == MountCall.read(["memory", "/mnt"]).command()


def test_every_option_is_one_of_livememfs_mount() -> None:
    import typer.main

    options = typer.main.get_command(app).commands["mount"].params  # type: ignore[attr-defined]  # a group, typer does not say
    known = {name for option in options for name in option.opts}

    assert {f"--{name.replace('_', '-')}" for name in (*VALUES, *FLAGS)} <= known


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("frobnicate", "does not know the option frobnicate"),
        ("ro", "no read-only mount"),
        ("agent", "agent=..."),
        ("allow_other=yes", "does not know the option allow_other=yes"),
        ("remount", "does not know the option remount"),
        ("s3_secret_access_key=sesame", "is a secret"),
        ("llmaas_api_key=sesame", "is a secret"),
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(
    options: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status("memory", "/mnt", "-o", options) == 1

    printed = capsys.readouterr().err
    assert sentence in printed
    assert "sesame" not in printed


def test_not_even_a_sloppy_mount_takes_a_secret() -> None:
    with pytest.raises(UsageError, match="is a secret"):
        MountCall.read(["memory", "/mnt", "-s", "-o", "s3_secret_access_key=sesame"]).command()


@pytest.mark.parametrize("words", [[], ["memory"], ["a", "b", "c"], ["a", "b", "-o"], ["a", "b", "--bucket"]])
def test_what_mount_would_never_say_is_refused(words: list[str]) -> None:
    assert status(*words) == 1


def test_a_fake_mount_does_nothing(tmp_path: Path) -> None:
    assert status("-f", "/srv/memory", str(tmp_path / "not there")) == 0


def test_a_mount_that_fails_has_the_status_of_mount(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(str(tmp_path / "store"), str(tmp_path / "not there")) == 32
    assert "there is no directory" in capsys.readouterr().err


# --- the line ----------------------------------------------------------------------------------------------------


def line(cli: Cli, *arguments: str) -> list[str]:
    """The fields of the line."""
    ended = cli("service", "fstab", *arguments)
    assert ended.code == 0, ended.err
    return ended.out.split()


def test_a_bucket_needs_the_network_and_a_folder_does_not(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert line(cli, "/mnt/memory") == [str(tmp_path / "store"), "/mnt/memory", "fuse.livememfs", "nofail", "0", "0"]
    monkeypatch.delenv("LIVEMEMFS_STORE")
    (tmp_path / "c.toml").touch()
    fields = line(cli, "/mnt", "--bucket", "b", "--endpoint-url", "http://h:9", "--config", f"{tmp_path}/c.toml")
    assert fields[0] == "b"
    assert fields[3] == f"nofail,_netdev,endpoint_url=http://h:9,config={tmp_path}/c.toml"


def test_blanks_are_written_as_fstab_wants_them(cli: Cli) -> None:
    fields = line(cli, "/mnt/my memory", "--allow-other")
    assert fields[1:4] == [r"/mnt/my\040memory", "fuse.livememfs", "nofail,allow_other"]


def test_a_secret_of_this_shell_is_named_and_not_written(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3_SECRET_ACCESS_KEY", "sesame")

    ended = cli("service", "fstab", "/mnt")

    assert "S3_SECRET_ACCESS_KEY" in ended.err
    assert "sesame" not in ended.out + ended.err


def test_a_comma_that_would_end_an_option_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a,b.toml").touch()

    assert cli("service", "fstab", "/mnt", "--config", f"{tmp_path}/a,b.toml").code == 2


def test_the_link_is_made_anew_and_a_file_of_others_stays(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, sbin = tmp_path / "bin" / "mount.fuse.livememfs", tmp_path / "sbin"
    program.parent.mkdir()
    sbin.mkdir()
    program.touch()
    monkeypatch.setattr(fstab, "SBIN", sbin)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    link = sbin / "mount.fuse.livememfs"

    assert "as root: livememfs service fstab --link '/my mnt'" in cli("service", "fstab", "/my mnt").err
    for _ in range(2):
        ended = cli("service", "fstab", "/mnt", "--link")
        assert (ended.code, ended.err) == (0, "")
        assert link.readlink() == program
    link.unlink()
    link.write_text("of others")
    assert "not from livememfs" in cli("service", "fstab", "/mnt", "--link").err
    assert link.read_text() == "of others"
