"""Settings: where each comes from, who has the last word, and what is refused with a sentence that helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from livememfs import config
from livememfs.config import Settings
from livememfs.environment import environment_of_others
from livememfs.errors import SettingsError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No configuration of this machine takes part."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def write_config(home: Path, text: str) -> Path:
    """The user's configuration file."""
    path = home / "config" / "livememfs" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- precedence --------------------------------------------------------------------------------------------------


def test_with_nothing_set_the_store_is_a_folder_and_no_model_is_asked(home: Path) -> None:
    settings = Settings.load({})

    assert settings.s3_bucket_name == ""
    assert settings.store_path == home / "data" / "livememfs" / "store"
    assert settings.llmaas_api_url == ""
    assert settings.model_fields_set == set()


def test_the_command_line_goes_before_the_environment_before_the_file_before_other_tools_names(home: Path) -> None:
    write_config(home, 's3_region_name = "from-file"\n')
    other = {"AWS_REGION": "from-other-tool"}
    ours = {**other, "S3_REGION_NAME": "from-environment"}
    overrides = {"s3_region_name": "from-command-line"}

    assert Settings.load(ours, overrides=overrides).s3_region_name == "from-command-line"
    assert Settings.load(ours, overrides={"s3_region_name": None}).s3_region_name == "from-environment"
    assert Settings.load(other).s3_region_name == "from-file"
    write_config(home, "")
    assert Settings.load(other).s3_region_name == "from-other-tool"


def test_an_empty_variable_is_as_good_as_none() -> None:
    settings = Settings.load({"S3_BUCKET_NAME": "", "LIVEMEMFS_OP_TIMEOUT": ""})

    assert (settings.s3_bucket_name, settings.op_timeout) == ("", 30.0)


def test_every_setting_can_be_set_by_its_variable() -> None:
    """The variable that `setting_names` promises for a setting sets exactly that one."""
    values = {"bool": "false", "float": "7.5", "int": "7"}
    special = {
        "s3_endpoint_url": "http://host",
        "llmaas_api_url": "http://host",
        "embed_url": "http://host/v1/",
        "s3_signature_mode": "dual",
        "log_level": "error",
        "fsync": "remote",
        "uid": "7",
        "gid": "7",
        "index_url": "postgresql://host/database",
        "schedule": '{"project": {"after_notes": 7}}',
        "digest_schedule": '{"project": {"after_notes": 7}}',
        "unsourced": "refuse",
        "cache_size": "2000000",
        "llmaas_temperature": "1.5",
        "recall_important": "0.5",
        "drop_limit": "0.5",
        "recall_alike": "0.5",
        "memory_alike": "0.5",
        "context_budget": "700",
    }
    for name, variable in config.setting_names().items():
        kind = getattr(Settings.model_fields[name].annotation, "__name__", "")
        environ = {variable: special.get(name, values.get(kind, "text"))}
        environ |= {"LLMAAS_MODEL": "m"} if name == "llmaas_api_url" else {}
        environ |= {"LIVEMEMFS_EMBED_URL": "http://host"} if name == "embed_model" else {}

        settings = Settings.load(environ)

        assert name in settings.model_fields_set, variable
        assert str(getattr(settings, name)).lower() == environ[variable], variable


def test_a_schedule_is_a_table_of_the_file_and_a_variable_goes_before_it(home: Path) -> None:
    write_config(home, '[schedule]\ndaily_tokens = 1_000\n\n[schedule.project]\nat = ["03:00", "15:30"]\n')

    assert str(Settings.load({}).schedule) == '{"daily_tokens": 1000, "project": {"at": ["03:00", "15:30"]}}'
    assert list(Settings.load({"LIVEMEMFS_SCHEDULE": '{"a": {"after_idle": 60}}'}).schedule.spaces) == ["a"]
    assert Settings.load({"LIVEMEMFS_CONFIG": ""}, config_file=home / "config/livememfs/config.toml").schedule.spaces


# --- other tools' names ------------------------------------------------------------------------------------------


AWS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
OPENAI = {"OPENAI_API_KEY": "sk-other"}


@pytest.mark.parametrize(
    ("environ", "values"),
    [
        (AWS, {"s3_access_key_id": "id", "s3_secret_access_key": "secret", "s3_session_token": "token"}),
        ({"AWS_DEFAULT_REGION": "eu-west-3"}, {"s3_region_name": "eu-west-3"}),
        ({"AWS_ENDPOINT_URL": "http://elsewhere:9000/"}, {"s3_endpoint_url": "http://elsewhere:9000"}),
        ({"AWS_ENDPOINT_URL": "http://all", "AWS_ENDPOINT_URL_S3": "http://s3"}, {"s3_endpoint_url": "http://s3"}),
        # A key that lies in the environment for another tool is no consent to send memory to its endpoint.
        ({**OPENAI, "OPENAI_BASE_URL": "https://api.example/v1"}, {"llmaas_api_url": ""}),
        (
            {**OPENAI, "LLMAAS_MODEL": "gpt"},
            {"llmaas_api_url": "https://api.openai.com/v1", "llmaas_api_key": "sk-other"},
        ),
        (
            {**OPENAI, "LLMAAS_MODEL": "m", "LLMAAS_COMMAND": "claude -p"},
            {"llmaas_command": "claude -p", "llmaas_api_url": ""},
        ),
        ({"LLMAAS_CONTEXT_WINDOW": "500000"}, {"context_window": 500_000}),
        ({"ADMIN_BOOTSTRAP_KEY": "k" * 32}, {"admin_bootstrap_key": "k" * 32}),
        ({}, {"model_name": "built-in filing"}),
        ({"LLMAAS_COMMAND": "/opt/bin/claude -p"}, {"model_name": "command:claude"}),
        ({"LLMAAS_COMMAND": "claude", "LLMAAS_MODEL": "haiku"}, {"model_name": "haiku"}),
    ],
)
def test_names_of_other_tools_and_of_models_are_understood(environ: dict[str, str], values: dict[str, str]) -> None:
    settings = Settings.load(environ)

    assert {name: getattr(settings, name) for name in values} == values


def test_a_program_that_we_start_is_given_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("S3_SECRET_ACCESS_KEY", "LLMAAS_API_KEY", "LIVEMEMFS_TOKEN", "ADMIN_BOOTSTRAP_KEY")
    for name in (*ours, "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "secret")

    given = environment_of_others()

    assert "ANTHROPIC_API_KEY" in given
    assert not set(ours) & set(given)


def test_our_own_commands_may_be_started_by_a_program_that_we_ask() -> None:
    assert Settings.load({"LIVEMEMFS_ASKING": "1"}) == Settings.load({})


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"LIVEMEMFS_OP_TIMOUT": "3"}, "LIVEMEMFS_OP_TIMOUT; did you mean LIVEMEMFS_OP_TIMEOUT?"),
        ({"LIVEMEMFS_QQQQQQQQQQQQQQQQ": "3"}, "QQQQ; docs/operations.md lists the settings"),
        ({"LIVEMEMFS_OP_TIMEOUT": "soon"}, "LIVEMEMFS_OP_TIMEOUT: "),
        ({"ADMIN_BOOTSTRAP_KEY": "change_me_in_production"}, "ADMIN_BOOTSTRAP_KEY: this is the example of the"),
        ({"ADMIN_BOOTSTRAP_KEY": "two words"}, "ADMIN_BOOTSTRAP_KEY: a key has up to 512 ASCII characters and no"),
        ({"LIVEMEMFS_OP_TIMEOUT": "0"}, "LIVEMEMFS_OP_TIMEOUT: "),
        ({"S3_ENDPOINT_URL": "minio:9000"}, "S3_ENDPOINT_URL: 'minio:9000' is not an http:// or https:// URL"),
        (
            {"LIVEMEMFS_EMBED_URL": "http://me:80a/v1"},
            "EMBED_URL: 'http://me:80a/v1' is not an http:// or https:// URL",
        ),
        ({"LIVEMEMFS_STORE": "~nosuchuser/x"}, "LIVEMEMFS_STORE: '~nosuchuser/x' begins with the home directory of a"),
        ({"LIVEMEMFS_CACHE": "~nosuchuser/x"}, "LIVEMEMFS_CACHE: '~nosuchuser/x' begins with the home directory of a"),
        ({"LIVEMEMFS_EMBED_URL": "http://[::1/v1"}, "EMBED_URL: 'http://[::1/v1' is not an http:// or https:// URL"),
        ({"LIVEMEMFS_EMBED_URL": "localhost:80/v1"}, "EMBED_URL: 'localhost:80/v1' is not an http:// or https:// URL"),
        ({"LIVEMEMFS_EMBED_URL": "http://a b/v1"}, "EMBED_URL: 'http://a b/v1' is not an http:// or https:// URL"),
        ({"LLMAAS_API_URL": "http://llm:99999/v1", "LLMAAS_MODEL": "m"}, "'http://llm:99999/v1' is not an http:// or"),
        ({"LLMAAS_API_URL": "http://llm:80a/v1", "LLMAAS_MODEL": "m"}, "LLMAAS_API_URL: 'http://llm:80a/v1' is not an"),
        (
            {"LIVEMEMFS_EMBED_MODEL": "nomic"},
            "'nomic', which is neither built in nor an absolute path, and",
        ),
        ({"S3_SIGNATURE_MODE": "v5"}, "S3_SIGNATURE_MODE: "),
        ({"LLMAAS_API_URL": "http://llm/v1"}, "LLMAAS_MODEL is not: name the model to use"),
        (
            {"LLMAAS_API_URL": "http://llm/v1", "LLMAAS_MODEL": "m", "LLMAAS_COMMAND": "claude -p"},
            "LLMAAS_API_URL and LLMAAS_COMMAND are both set: set only one of them",
        ),
        ({"LLMAAS_COMMAND": "claude 'oops"}, 'LLMAAS_COMMAND: "claude \'oops" cannot be split into words as a shell'),
        ({"LLMAAS_COMMAND": "bin/ask"}, "LLMAAS_COMMAND: 'bin/ask' is neither on PATH nor an absolute path"),
        ({"LIVEMEMFS_SCHEDULE": '{"p": {"at": "noon"}}'}, "LIVEMEMFS_SCHEDULE: p: at is a list of hours"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_in_one_sentence(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load(environ)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('llmaas_modle = "x"\n', "has an unknown key llmaas_modle; did you mean llmaas_model"),
        ("bucket: x\n", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(home: Path, text: str, sentence: str) -> None:
    path = write_config(home, text)

    with pytest.raises(SettingsError, match=f"{path} {sentence}"):
        Settings.load({})


def test_a_file_that_was_asked_for_must_be_there(home: Path) -> None:
    missing = home / "nowhere.toml"

    for environ, file in (({}, missing), ({"LIVEMEMFS_CONFIG": str(missing)}, None)):
        with pytest.raises(SettingsError, match=r"cannot read .*nowhere\.toml"):
            Settings.load(environ, config_file=file)


def test_the_file_on_the_command_line_replaces_the_others(home: Path) -> None:
    write_config(home, 'agent = "usual"\n')
    other = home / "other.toml"
    other.write_text('agent = "other"\n')

    assert Settings.load({"LIVEMEMFS_CONFIG": str(home / "missing")}, config_file=other).agent == "other"
    assert Settings.load({"LIVEMEMFS_CONFIG": str(other)}).agent == "other"
    assert Settings.load({}).agent == "usual"


# --- frozen, and silent about secrets ----------------------------------------------------------------------------


def test_settings_cannot_change_after_they_were_read() -> None:
    settings = Settings.load({})

    with pytest.raises(ValidationError):
        settings.agent = "other"  # type: ignore[misc]  # that it is frozen is the test


def test_no_secret_is_in_what_is_printed() -> None:
    secrets = dict.fromkeys(
        ("S3_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "LLMAAS_API_KEY", "ADMIN_BOOTSTRAP_KEY"), "s3cret"
    )

    assert "s3cret" not in repr(Settings.load(secrets))


def test_digests_have_hours_and_a_zone_of_their_own(home: Path) -> None:
    write_config(home, '[digest_schedule]\nzone = "Asia/Tokyo"\n\n[digest_schedule.project]\nat = ["03:00"]\n')
    if not (Path("/usr/share/zoneinfo") / "Asia/Tokyo").exists():
        pytest.skip("this machine has no time zones")

    settings = Settings.load({})

    assert str(settings.digest_zone) == "Asia/Tokyo"
    assert str(settings.digest_schedule) == '{"zone": "Asia/Tokyo", "project": {"at": ["03:00"]}}'


def test_a_time_zone_that_is_none_is_refused_before_anything_starts() -> None:
    for zone in ("Europe/Nowhere", "../etc/passwd", "Europe"):
        with pytest.raises(SettingsError, match="this machine knows no time zone"):
            Settings.load({"LIVEMEMFS_DIGEST_SCHEDULE": json.dumps({"zone": zone, "project": {}})})


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("LIVEMEMFS_LOG_LEVEL", "loud", "'loud' is none of 'debug', 'info', 'warning' or 'error'"),
        ("LIVEMEMFS_CACHE_SIZE", "much", "'much' is no whole number"),
        ("LIVEMEMFS_CACHE_SIZE", "10", "'10' is less than 1048576"),
        ("LIVEMEMFS_OP_TIMEOUT", "0", "'0' is not more than 0"),
        ("LIVEMEMFS_OP_TIMEOUT", "long", "'long' is no number"),
        ("LLMAAS_TEMPERATURE", "3", "'3' is more than 2"),
        ("LIVEMEMFS_ALLOW_OTHER", "perhaps", "'perhaps' is neither true nor false"),
    ],
)
def test_a_value_that_cannot_be_is_named_in_plain_words(variable: str, value: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.load({variable: value})

    assert str(caught.value) == f"{variable}: {sentence}"


def test_the_words_for_a_secret_leave_it_out(home: Path) -> None:
    write_config(home, "s3_secret_access_key = 42\n")

    with pytest.raises(SettingsError) as caught:
        Settings.load({})
    assert str(caught.value) == "S3_SECRET_ACCESS_KEY: this is no text in quotes"
