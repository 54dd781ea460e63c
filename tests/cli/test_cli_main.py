"""What the shell learns: exit codes, one sentence, and the options that every command has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.core
import typer.main
from commandline import Cli

from livememfs import __version__
from livememfs.cli import common, main, output
from livememfs.cli.common import Choice
from livememfs.concurrency import the_one
from livememfs.errors import Denied, LiveMemError, NotFound, UsageError


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"livememfs {__version__}\n"


@pytest.mark.parametrize("command", [["status"], ["umount", "/nowhere"], ["--version"], ["mount", "/nowhere"]])
def test_a_command_that_opens_no_bucket_loads_nothing_that_does(command: list[str]) -> None:
    """It would take longer than all the rest of it."""
    code = (
        "import sys\nfrom livememfs.cli.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(sorted({'livememfs.app', 'livememfs.tree.root', 'livememfs.cache.replica', 'pyfuse3', 'boto3'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_is_a_function_of_its_module_or_a_group_of_them() -> None:
    group = typer.main.get_command(main.app)
    assert isinstance(group, typer.core.TyperGroup)

    for name, command in group.commands.items():
        assert command.name == name
        assert (command.help or "").strip()
        assert isinstance(command, typer.core.TyperGroup) == main.COMMANDS[name].is_group
        assert command.help.partition("\n")[0] == main.COMMANDS[name].about
    assert "remember" not in group.commands


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["remember"], "No such command 'remember'"),
        (["note", "--colour", "red"], "No such option: --colour"),
        (["umount"], "Missing argument"),
        (["consolidate", "project", "--max-notes", "0"], "Invalid value for '--max-notes': '0' is less than 1"),
        (["undo", "project", "x"], "'x' is no whole number"),
        (["memories", "list", "project", "--in", "x"], "'x' is not one of 'memories', 'self', 'goals'"),
        (["space", "list", "--store", "/a", "--bucket", "b"], "--store and --bucket exclude each other"),
        (["space", "list", "--log-level", "loud"], "LIVEMEMFS_LOG_LEVEL: "),
        (["space", "list", "--endpoint-url", "minio:9000"], "S3_ENDPOINT_URL: "),
        (["space", "list", "--config", "/nowhere.toml"], "cannot read /nowhere.toml"),
    ],
)
def test_wrong_use_exits_2_and_says_what_is_wrong(cli: Cli, arguments: list[str], sentence: str) -> None:
    ended = cli(*arguments)

    ended.fails(sentence, code=2)
    assert ended.out == ""


@pytest.mark.parametrize(
    "words",
    ["backup create", "backup restore project", "backup delete project", "backup nothing", "history", "undo",
     "undo project 0", "undo project x", "completion powershell"],
)  # fmt: skip
def test_what_is_left_out_or_has_another_form_is_wrong_use(cli: Cli, words: str) -> None:
    assert cli(*words.split()).code == 2


def test_a_failure_is_one_sentence_with_advice_and_no_traceback(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    output.complain(Denied("signature", key="a/b"))

    assert capsys.readouterr().err == (
        "livememfs: the store denies access to a/b: signature "
        "(check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY and what the key may do on the bucket)\n"
    )


def test_a_store_s_failure_that_is_about_no_object_is_about_the_bucket() -> None:
    sentence = "the store denies access to the bucket: signature"

    assert str(Denied("signature")) == str(Denied("signature", key="")) == sentence
    assert Denied("signature").advice().startswith("check S3_ACCESS_KEY_ID")


def test_a_place_that_is_no_folder_is_said_with_what_to_do(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = cli("space", "list", "--store", str(tmp_path / "file"))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"livememfs: the store failed on {tmp_path}/file: open: ")
    assert ended.err.endswith(
        f"(see that {tmp_path}/file is a folder, or name another folder with --store or LIVEMEMFS_STORE)\n"
    )


def test_an_interrupt_exits_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("livememfs.cli.mounting.status.look", interrupt)

    assert cli("status").code == 130


# --- which store -------------------------------------------------------------------------------------------------


def test_a_store_on_the_command_line_goes_before_a_bucket_in_the_environment(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3_BUCKET_NAME", "elsewhere")
    monkeypatch.chdir(tmp_path)

    assert cli("space", "create", "mine", "--store", "here").code == 0
    assert (tmp_path / "here" / "mine" / "_meta.json").exists()


def test_another_process_is_given_the_same_choice_with_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text("")
    choice = Choice(store=Path("here"), config=Path("c.toml"))

    assert choice.arguments(choice.load()) == [
        *("--config", str(tmp_path / "c.toml")),
        *("--store", str(tmp_path / "here")),
        *("--log-level", "info"),
    ]


def test_a_relative_store_of_the_environment_is_made_absolute_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LIVEMEMFS_STORE", "here")
    choice = Choice()

    assert ["--store", str(tmp_path / "here")] == choice.arguments(choice.load())[:2]


# --- out of trio -------------------------------------------------------------------------------------------------


def test_a_failure_inside_nurseries_comes_out_as_itself() -> None:
    failure = NotFound(path="x")

    assert the_one(ExceptionGroup("", [ExceptionGroup("", [failure])])) is failure


def test_an_interrupt_goes_before_a_failure() -> None:
    group = BaseExceptionGroup("", [NotFound(path="x"), KeyboardInterrupt()])

    assert isinstance(the_one(group), KeyboardInterrupt)


def test_a_bug_beside_a_failure_keeps_its_traceback() -> None:
    group = BaseExceptionGroup("", [NotFound(path="x"), ZeroDivisionError()])

    assert the_one(group) is group


def test_run_gives_the_value_back() -> None:
    async def work(value: int) -> int:
        return value + 1

    assert common.run(work, 1) == 2


def test_usage_errors_are_known_failures() -> None:
    assert issubclass(UsageError, LiveMemError)
    assert UsageError.exit_code == 2


# --- what is printed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 20, "1.0 MiB"), (1 << 50, "1024.0 TiB")]
)
def test_sizes_for_people(count: int, shown: str) -> None:
    assert output.size(count) == shown


def test_a_table_in_a_pipe_has_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["NAME", "TEXT"], [["a", "word " * 30], ["[b]", "brackets are no markup"]])

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("[b]")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["space", "list", "--config", "{folder}"], "cannot read {folder}: Is a directory"),
        (["space", "list", "--store", "~nosuchuser/x"], "an unknown user"),
        (["mount", "~nosuchuser/x", "--cache", "~nosuchuser/y"], "an unknown user"),
        (["uninstall", "codex", "--project", "~nosuchuser/x"], "an unknown user"),
        (["uninstall", "codex", "--project", "{folder}/round"], "round"),
    ],
)
def test_a_path_that_leads_nowhere_is_one_sentence(
    cli: Cli, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "round").symlink_to("round")
    ended = cli(*(word.format(folder=tmp_path) for word in arguments))

    ended.fails(sentence.format(folder=tmp_path), code=2)
