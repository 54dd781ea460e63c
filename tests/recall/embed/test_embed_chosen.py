"""The setting for the embedding model, as the rest of the program takes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import tiny

from livememfs.app import open_app
from livememfs.app.recall import open_embedder, open_engine, open_former, vectors_name
from livememfs.cli.checks.models import checks
from livememfs.config import Settings
from livememfs.errors import SettingsError
from livememfs.recall.embed.builtin import NAME


def chosen(model: str | Path, tmp_path: Path) -> Settings:
    return Settings(embed_model=str(model), store=str(tmp_path / "store"), cache=str(tmp_path / "cache"))


async def test_a_path_is_a_folder_and_its_vectors_are_kept_under_its_name(tmp_path: Path) -> None:
    settings = chosen(tiny(tmp_path / "m"), tmp_path)

    embedder = await open_embedder(settings)

    assert embedder is not None
    assert embedder.name == vectors_name(settings)
    assert embedder.name.startswith("dir:m@")


def test_a_model_of_an_endpoint_may_have_a_slash_in_its_name() -> None:
    settings = Settings(embed_model="BAAI/bge-m3", embed_url="http://host/v1")

    assert settings.embed_folder is None
    assert vectors_name(settings) == "BAAI/bge-m3 at http://host/v1"


async def test_a_former_model_is_had_again_where_it_needs_no_setting(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "m")
    settings = chosen(folder, tmp_path)
    index = open_engine(settings, tmp_path / "index")
    assert index.change is not None
    index.change.end()
    index.close()
    index = open_engine(Settings(), tmp_path / "index")
    assert index.change is not None
    name, place = vectors_name(settings), index.change.former_place
    index.close()

    asks = Settings(embed_model="another", embed_url="http://me:key@host/v1")
    former, builtin = await open_former(asks, name, place), await open_former(asks, NAME, "")
    remote = await open_former(asks, vectors_name(asks), "")

    assert former is not None
    assert former.name == name
    assert builtin is not None
    assert builtin.name == NAME
    assert remote is not None
    assert remote.name == "another"
    tiny(folder, pooling="cls")
    assert await open_former(asks, name, place) is None
    assert await open_former(asks, "another at http://elsewhere", "") is None


async def test_a_folder_that_lacks_something_is_refused_when_a_mount_begins(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    settings = chosen(folder, tmp_path)

    with pytest.raises(SettingsError, match=r"tokenizer\.json") as failure:
        async with open_app(settings, mountpoint=tmp_path):
            pass

    assert (failure.value.exit_code, "docs/recall.md" in failure.value.advice()) == (2, True)
    found = {check.name: check for check in await checks(settings)}["embeddings"]
    assert ("tokenizer.json" in found.found, "docs/recall.md" in found.advice) == (True, True)


async def test_a_missing_package_is_named_when_a_mount_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livememfs.app.recall.find_spec", lambda name: None)

    with pytest.raises(SettingsError, match=r"pip install livememfs\[search,tokenizers\]"):
        async with open_app(chosen(tiny(tmp_path / "m"), tmp_path), mountpoint=tmp_path):
            pass


async def test_a_command_without_a_mount_does_its_work_without_the_model(tmp_path: Path, expect_log) -> None:
    expect_log("searching by words alone")
    settings = chosen(tmp_path / "gone", tmp_path)
    async with open_app(settings) as app:
        answer = await app.recall.ask("apples", ())

    assert not answer.failed
    assert any("by words alone" in note for note in answer.notes)
