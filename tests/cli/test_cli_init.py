"""`livememfs init`: its questions, the configuration file, and what stays after a failure. No mount is made."""

from __future__ import annotations

import io
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Asks, Cli

from livememfs.cli.first import questions, steps
from livememfs.cli.first.configfile import set_values, with_values
from livememfs.cli.first.questions import Asker
from livememfs.config import Settings
from livememfs.errors import UsageError
from livememfs.records.names import check_space_name

Answers = Callable[..., Asker]

pytestmark = pytest.mark.usefixtures("can_mount")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """`answers("bucket", "memory", ...)`: a person who types these lines; an empty one takes the default."""

    def typed(*lines: str, secret: str = "") -> Asker:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        monkeypatch.setattr("getpass.getpass", lambda _: secret)
        return Asker(asks=True)

    return typed


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory; no command is on PATH, and mounting is making the directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(steps, "begin", lambda settings, place, options, secret: [])
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def config(tmp_path: Path) -> Path:
    """The user's configuration file."""
    return tmp_path / "config/livememfs/config.toml"


def files(place: Path) -> dict[Path, bytes]:
    """Every file but those of the store, which is tried each time."""
    found = (path for path in place.rglob("*") if path.is_file() and "store" not in path.parts)
    return {path: path.read_bytes() for path in found}


def undoing(told: str) -> list[str]:
    """The lines that undo all steps."""
    return [line.strip() for line in told.partition("To undo all of this:\n")[2].partition("\n\n")[0].splitlines()]


# --- the whole of it ---------------------------------------------------------------------------------------------


def test_without_a_terminal_it_asks_nothing_and_says_what_undoes_all_of_it(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "program", lambda: ["/opt/livememfs/bin/livememfs"])
    ended = cli("init")

    ended.shows(f"echo 'we chose S3' > {home}/memory/notes/live/")
    undo = undoing(ended.out)
    assert undo[:5] == [
        f"livememfs --store {tmp_path}/store space delete notes --yes",
        f"livememfs umount {home}/memory",
        f"rmdir {home}/memory",
        f"rm {home}/.local/bin/livememfs",
        f"rm {config(tmp_path)}",
    ]
    assert f"rm -r {tmp_path}/store" in undo[6:]
    assert tomllib.loads(config(tmp_path).read_text()) == {"store": str(tmp_path / "store")}
    assert stat.S_IMODE(config(tmp_path).stat().st_mode) == 0o600
    assert (home / ".local/bin/livememfs").readlink() == Path("/opt/livememfs/bin/livememfs")
    assert (home / "memory/notes").is_dir()


def test_a_second_time_nothing_is_left_to_do(cli: Cli, home: Path, tmp_path: Path) -> None:
    cli("init")
    before = files(tmp_path)

    ended = cli("init")

    ended.shows(f"{config(tmp_path)} is as it was", "the space notes is there")
    assert undoing(ended.out) == [f"livememfs umount {home}/memory"]
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["s3://misspelt", "{home}/memory", "--endpoint-url", "http://127.0.0.1:9"], "store: "),
        (["--agent", "emacs"], "not emacs"),
        (["--space", "Not A Space"], "cannot be used as a name"),
    ],
)
def test_what_fails_leaves_no_configuration_and_no_mount_point(
    cli: Cli, home: Path, tmp_path: Path, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIVEMEMFS_OP_TIMEOUT", "1")
    ended = cli("init", *(word.format(home=home) for word in words))

    assert ended.code in (1, 2)
    assert sentence in ended.err
    assert not config(tmp_path).exists()
    assert list(home.iterdir()) == []
    assert words[0].startswith("s3:") or not (tmp_path / "store").exists()


def test_a_model_that_does_not_answer_is_said_before_anything_is_written(
    cli: Cli, home: Path, tmp_path: Path, asks: Asks
) -> None:
    asks("http://127.0.0.1:9/v1")
    ended = cli("init")

    ended.fails("model: ", "nothing was changed", "LLMAAS_API_URL")
    assert not config(tmp_path).exists()
    assert not (tmp_path / "store").exists()


def test_a_variable_of_the_shell_that_goes_before_the_file_is_named(cli: Cli, home: Path, tmp_path: Path) -> None:
    ended = cli("init", str(tmp_path / "other"), str(home / "memory"))

    assert ended.code == 0, ended.err
    assert "unset LIVEMEMFS_STORE" in ended.err
    assert tomllib.loads(config(tmp_path).read_text()) == {"store": str(tmp_path / "other")}


def test_an_agent_is_connected_when_it_is_named_and_else_only_told_of(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")

    cli("init").shows("claude-code is there, and not connected: livememfs install claude-code --user")
    assert not (home / ".claude").exists()
    connected = cli("init", "--agent", "claude-code")
    connected.shows("+++ b/.claude/settings.json", f"{home}/memory/.livememfs", "claude-code is connected")
    assert undoing(connected.out)[0] == "livememfs uninstall claude-code --user --yes"
    assert f"{home}/memory/.livememfs" in (home / ".claude/settings.json").read_text()
    cli("uninstall", "claude-code", "--user", "--yes")
    assert not (home / ".claude").exists()


# --- questions ---------------------------------------------------------------------------------------------------


def test_a_bucket_is_asked_for_with_its_keys_and_the_folder_is_given_up(answers: Answers) -> None:
    asker = answers("bucket", "memory", "https://s3.example.com", "", "AK", secret="SK")

    values = questions.store(Settings(store="/old"), asker, named=False)

    assert values == {
        "s3_bucket_name": "memory",
        "store": "",
        "s3_endpoint_url": "https://s3.example.com",
        "s3_region_name": "us-east-1",
        "s3_access_key_id": "AK",
        "s3_secret_access_key": "SK",
    }


def test_an_empty_answer_is_what_is_set_and_a_wrong_one_is_asked_again(
    answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Settings(llmaas_api_url="https://llm/v1", llmaas_model="m", llmaas_api_key="K")

    values = questions.model(known, answers("perhaps", "", "", ""))

    assert values == {
        "llmaas_api_url": "https://llm/v1", "llmaas_model": "m", "llmaas_api_key": "K", "llmaas_command": "",
    }  # fmt: skip
    shown = capsys.readouterr().err
    assert "perhaps is none of endpoint, program, none" in shown
    assert "K" not in shown.replace("Key", ""), "a secret is not shown"


def test_what_no_setting_takes_is_said_and_asked_for_again(
    answers: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    model = answers("endpoint", "", "my endpoint", "https://llm/v1", "", "m")
    assert (
        questions.model(Settings(), model).items() >= {"llmaas_api_url": "https://llm/v1", "llmaas_model": "m"}.items()
    )
    bucket = answers("bucket", "", "b", "s3.example.com", "https://s3.example.com", "", "")
    assert questions.store(Settings(), bucket, named=False)["s3_endpoint_url"] == "https://s3.example.com"
    program = answers("program", "'", "claude -p")
    assert questions.model(Settings(), program)["llmaas_command"] == "claude -p"

    said = capsys.readouterr().err
    for reason in (
        "it cannot be empty",
        "'my endpoint' is not an http",
        "'s3.example.com' is not",
        "No closing quotation",
    ):
        assert reason in said
    assert said.count("Name of the model?") == 2


def test_keys_that_are_void_soon_are_not_written_down() -> None:
    passing = Settings(s3_bucket_name="b", s3_access_key_id="AK", s3_secret_access_key="SK", s3_session_token="T")

    values = questions.store(passing, Asker(asks=False), named=True)
    assert (values["s3_access_key_id"], values["s3_secret_access_key"]) == ("", "")


def test_answers_that_end_too_early_change_nothing(answers: Answers) -> None:
    with pytest.raises(UsageError, match="nothing was changed"):
        questions.store(Settings(), answers("bucket"), named=False)


# --- the configuration file --------------------------------------------------------------------------------------

FILE = """\
# what our team uses
store = "/old"   # a folder
log_level = "debug"

[schedule.project]
after_notes = 5
"""


def test_other_lines_and_tables_of_the_file_stay_and_values_go_before_them() -> None:
    made = with_values(FILE, {"s3_bucket_name": 'a "quoted" name', "store": ""})

    assert tomllib.loads(made) == {
        "s3_bucket_name": 'a "quoted" name', "log_level": "debug", "schedule": {"project": {"after_notes": 5}},
    }  # fmt: skip
    assert made.endswith(FILE.replace('store = "/old"   # a folder\n', ""))


@pytest.mark.parametrize("text", ['store = """\na\n"""\n', "no toml", '"store" = "/a"\n', 'x = """\nstore = 1\n"""\n'])
def test_a_file_in_which_a_value_cannot_be_replaced_safely_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.toml").write_text(text)

    with pytest.raises(UsageError):
        set_values(tmp_path / "c.toml", {"store": "/b"})
    assert (tmp_path / "c.toml").read_text() == text


def test_the_file_before_is_kept_and_a_link_to_it_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles.toml").write_text('store = "/a"\n')
    (tmp_path / "c.toml").symlink_to("dotfiles.toml")

    kept = set_values(tmp_path / "c.toml", {"store": "/b"})

    assert kept is not None
    assert kept.read_text() == 'store = "/a"\n'
    assert (tmp_path / "c.toml").is_symlink()
    assert (tmp_path / "dotfiles.toml").read_text() == 'store = "/b"\n'
    assert set_values(tmp_path / "c.toml", {"store": "/b"}) is None


def test_a_name_that_cannot_be_is_asked_for_again(answers: Answers, capsys: pytest.CaptureFixture[str]) -> None:
    asker = answers("My Shop", "search", "shop")
    assert asker.ask("Name?", "notes", check=check_space_name) == "shop"
    assert "1 to 63 of a-z" in capsys.readouterr().err
