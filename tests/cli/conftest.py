"""The command line in this process: an environment without settings of this machine, and a folder as the store."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Asks, Cli, Ended

from livememfs.cli.checks import machine
from livememfs.cli.main import main
from livememfs.cli.mounting import mounts

FOREIGN = ("S3_", "AWS_", "LLMAAS_", "OPENAI_", "CONSOLIDATION_", "LIVEMEMFS_", "XDG_")


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of this machine; every directory of the user below the test's own; a folder as the store."""
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("LIVEMEMFS_STORE", str(tmp_path / "store"))


@pytest.fixture
def nothing_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's table without what other tests have mounted at the same time."""
    (tmp_path / "mountinfo").touch()
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")


@pytest.fixture
def can_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that could mount, for what only asks whether it can: these tests run without pyfuse3 and /dev/fuse."""
    monkeypatch.setattr("livememfs.fuse.mountpoint.check_library", lambda: None)
    monkeypatch.setattr(machine, "check_library", lambda: None)
    monkeypatch.setattr(machine, "DEVICE", Path("/dev/null"))


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli(*arguments, stdin=b"...")`: run a command; standard input is not a terminal."""

    def run(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        captured = capsys.readouterr()
        return Ended(int(caught.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def asks(monkeypatch: pytest.MonkeyPatch) -> Asks:
    """`asks(url, key=..., model=...)`: the settings for a model."""

    def use(url: str, key: str = "sk-right", model: str = "scripted") -> None:
        for name, value in {"API_URL": url, "API_KEY": key, "MODEL": model}.items():
            monkeypatch.setenv(f"LLMAAS_{name}", value)

    return use


@pytest.fixture
def project(cli: Cli) -> str:
    """The name of a space that is there."""
    assert cli("space", "create", "project").code == 0
    return "project"


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`mounted("mnt", "project")`: let the kernel show a livememfs there, with these spaces in it."""
    table = tmp_path / "mountinfo"
    table.write_text("")
    monkeypatch.setattr(mounts, "MOUNTINFO", table)

    def make(name: str, *spaces: str) -> Path:
        path = tmp_path / name
        path.mkdir()
        for space in spaces:
            (path / space).mkdir()
            (path / space / "_meta.json").write_text("{}")
        with table.open("a") as file:
            file.write(f"90 22 0:51 / {path} rw - fuse.livememfs livememfs rw\n")
        return path

    return make


@pytest.fixture
def mount(mounted: Callable[..., Path]) -> Path:
    """A mount with the space `project`."""
    return mounted("mnt", "project")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, and the working directory."""
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    return tmp_path / "there"
