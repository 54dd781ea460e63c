"""`livememfs doctor`: each verdict, with what to do; where settings came from; no secret in sight."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Asks, Cli

from livememfs.cli.checks import machine, store
from livememfs.config import Settings
from livememfs.errors import Denied
from livememfs.store.capabilities import Capabilities
from livememfs.store.memory import MemoryStore
from livememfs.testing.llm import Scripted, ScriptedLLM

pytestmark = pytest.mark.usefixtures("nothing_mounted", "can_mount")


def named(checks: list[dict[str, str]], name: str) -> dict[str, str]:
    """The check with that name."""
    return next(check for check in checks if check["name"] == name)


def test_a_folder_and_no_model_is_a_healthy_set_up(cli: Cli) -> None:
    ended = cli("doctor", "--json")

    assert ended.code == 0, ended.out
    assert {check["verdict"] for check in ended.json["checks"]} == {"ok"}
    assert "built-in" in named(ended.json["checks"], "model")["found"]
    assert "CHECK" in cli("doctor").out


def test_the_probe_leaves_nothing_behind(cli: Cli, tmp_path: Path) -> None:
    cli("doctor")

    assert list((tmp_path / "store").rglob("*probe*")) == []


def test_settings_that_cannot_be_read_fail_and_the_machine_is_still_looked_at(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIVEMEMFS_OP_TIMEOUT", "soon")

    ended = cli("doctor", "--json")

    assert ended.code == 1
    assert named(ended.json["checks"], "settings")["verdict"] == "fail"
    assert "LIVEMEMFS_OP_TIMEOUT" in named(ended.json["checks"], "settings")["found"]
    assert named(ended.json["checks"], "python")["verdict"] == "ok"


def test_a_store_that_cannot_be_used_fails(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ended = cli("doctor", "--json", "--store", str(tmp_path / "file"))

    assert ended.code == 1
    assert named(ended.json["checks"], "store")["verdict"] == "fail"


# --- where settings came from ------------------------------------------------------------------------------------


def test_each_setting_is_shown_with_its_source_and_no_secret(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.toml").write_text('host = "laptop"\n')
    monkeypatch.setenv("S3_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("AWS_REGION", "eu-west-3")

    ended = cli("doctor", "--json", "--config", str(tmp_path / "c.toml"), "--store", str(tmp_path / "store"))

    settings = {setting["variable"]: (setting["value"], setting["source"]) for setting in ended.json["settings"]}
    assert settings["LIVEMEMFS_HOST"] == ("laptop", "configuration file")
    assert settings["LIVEMEMFS_STORE"] == (str(tmp_path / "store"), "command line")
    assert settings["S3_SECRET_ACCESS_KEY"] == ("(set)", "environment, S3_SECRET_ACCESS_KEY")
    assert settings["S3_REGION_NAME"][0] == "eu-west-3"
    assert "AWS_REGION" in settings["S3_REGION_NAME"][1]
    assert "S3_BUCKET_NAME" not in settings
    assert "s3cret" not in ended.out + cli("doctor").out


# --- the model ---------------------------------------------------------------------------------------------------


def test_a_model_that_answers_is_ok(cli: Cli, asks: Asks) -> None:
    with ScriptedLLM('{"ok": true}', key="sk-right") as llm:
        asks(llm.url)
        assert named(cli("doctor", "--json").json["checks"], "model")["verdict"] == "ok"


def test_a_model_without_words_is_a_warning(cli: Cli, asks: Asks) -> None:
    with ScriptedLLM(Scripted(text=None, finish_reason="length")) as llm:
        asks(llm.url)
        check = named(cli("doctor", "--json").json["checks"], "model")

    assert check["verdict"] == "warn"
    assert "it answers, but" in check["found"]


# --- the store's promises, and this machine ----------------------------------------------------------------------


class ReadOnlyStore(MemoryStore):
    """A store whose key may read and not write."""

    async def put(self, key: str, *_: object, **__: object) -> object:  # type: ignore[override]  # whatever it is given
        raise Denied("no write permission", key=key)


async def test_a_key_that_may_not_write_fails() -> None:
    checks = await store._writing(ReadOnlyStore(), Settings(s3_bucket_name="b"))

    assert [(check.name, check.verdict) for check in checks] == [("store, writing", "fail")]
    assert "no write permission" in checks[0].found


def test_a_missing_promise_is_a_warning_with_its_consequence() -> None:
    promises = dict.fromkeys(
        (
            "put_if_absent",
            "put_if_match",
            "delete_if_match",
            "start_after",
            "metadata",
            "copy_metadata",
            "markers",
            "ordered",
        ),
        True,
    )
    kept = Capabilities(**promises)
    broken = Capabilities(**{**promises, "put_if_match": False}, notes=("writers may overwrite each other",))

    assert store._promises(kept).verdict == "ok"
    check = store._promises(broken)
    assert (check.verdict, check.advice) == ("warn", "writers may overwrite each other")
    assert "put if unchanged" in check.found


def test_letting_others_in_needs_leave_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "fuse.conf"
    wants = Settings(allow_other=True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    conf.write_text("#user_allow_other\n")

    assert machine._allow_other(wants, conf).verdict == "fail"
    assert machine._allow_other(Settings(), conf).verdict == "ok"
    conf.write_text("user_allow_other\n")
    assert machine._allow_other(wants, conf).verdict == "ok"


# --- searching ---------------------------------------------------------------------------------------------------


def test_the_model_for_meanings_reads_a_question(cli: Cli) -> None:
    assert named(cli("doctor", "--json").json["checks"], "embeddings")["found"] == "multilingual-e5-small-1"


def test_no_model_for_meanings_is_fine(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "none")

    check = named(cli("doctor", "--json").json["checks"], "embeddings")
    assert (check["verdict"], "words only" in check["found"]) == ("ok", True)


def test_a_shared_index_that_is_not_there_fails_without_its_password(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_INDEX_URL", "postgresql://me:sesame@127.0.0.1:9/memory")

    ended = cli("doctor", "--json")

    check = named(ended.json["checks"], "index")
    assert (ended.code, check["verdict"], "127.0.0.1" in check["found"]) == (1, "fail", True)
    assert "sesame" not in ended.out
    assert "LIVEMEMFS_INDEX_URL" in check["advice"]
