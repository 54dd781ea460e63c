"""What is private in a note or a memory is in no bucket, no draft and no message; ordinary files keep their bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hosts import EDIT, Host, World, close

from livememfs.errors import LiveMemError
from livememfs.memories import storing as memories
from livememfs.recall.service import Recall
from livememfs.testing.embed import FakeEmbedder
from livememfs.text.privacy import redaction as privacy

TOKEN = "gh" + "p_" + "aB3" * 12
SECRET = "the moon is hollow"
TEXT = f"before <private>{SECRET}</private> then {TOKEN} after\n"
PUBLIC = "before [private] then [redacted: github-token] after\n"
FOLDERS = ("live", "memories", "self", "goals")


def told(host: Host) -> list[dict[str, Any]]:
    """The lines of `errors.ndjson` about privacy."""
    lines = [json.loads(line) for line in host.errors.errors().splitlines()]
    return [line for line in lines if line["operation"] == "privacy"]


async def everything(world: World, host: Host) -> str:
    """All that the bucket and the local state of a host hold, and what it says of it."""
    objects = await world.bucket()
    database = host.replica.drafts._database
    drafts = [row[0] for table in ("draft", "recovered") for row in database.rows(f"SELECT data FROM {table}")]
    return b"\n".join([*objects.values(), *map(str.encode, objects), *drafts, host.errors.errors()]).decode()


async def expect_public(world: World, host: Host, text: str = PUBLIC) -> None:
    """The public text is held, and nothing private."""
    held = await everything(world, host)
    assert text in held
    assert SECRET not in held
    assert TOKEN not in held


@pytest.mark.parametrize("folder", FOLDERS)
async def test_what_is_closed_is_stored_without_what_is_private(world: World, here: Host, folder: str) -> None:
    path = f"alpha/{folder}/plan"

    await here.write(path, TEXT)

    assert (await here.read(path)).decode().endswith(PUBLIC)
    await expect_public(world, here)
    [line] = told(here)
    assert line["path"] == path
    assert line["what"].endswith("stored nowhere: github-token, private")
    assert line["what_to_do"]


@pytest.mark.parametrize("folder", FOLDERS)
async def test_the_descriptor_that_wrote_sees_its_bytes_and_each_later_save_is_redacted(
    world: World, here: Host, folder: str
) -> None:
    handle = await here.begin(f"alpha/{folder}/plan", TEXT.encode())
    await handle.flush()

    assert await handle.read(0, 1_000) == TEXT.encode()
    await handle.write(len(TEXT), b"more\n")
    await close(handle)
    await expect_public(world, here, PUBLIC + "more\n")
    assert len(told(here)) == 2


@pytest.mark.parametrize("text", ["plain words\n", "password=${PASS} <privateKey>\n"])
async def test_nothing_is_told_when_nothing_was_replaced(here: Host, text: str) -> None:
    await here.write("alpha/live/plain", text)

    assert told(here) == []
    assert (await here.read("alpha/live/plain")).decode().endswith(text)


async def test_how_an_editor_saves_makes_no_difference(world: World, here: Host) -> None:
    await here.write("alpha/live/.plan.tmp", TEXT)
    await here.rename("alpha/live/.plan.tmp", "alpha/live/plan")

    await expect_public(world, here)


async def test_ordinary_files_keep_their_bytes_and_nothing_is_told(world: World, here: Host) -> None:
    await here.write("alpha/notes.txt", TEXT)

    assert (await world.bucket("alpha/"))["notes.txt"] == TEXT.encode()
    assert told(here) == []


@pytest.mark.parametrize("folder", FOLDERS)
async def test_drafts_of_notes_and_memories_are_kept_without_secrets(world: World, here: Host, folder: str) -> None:
    for name in ("plan", ".plan.swp"):  # an editor's own file too
        _handle = await here.begin(f"alpha/{folder}/{name}", TEXT.encode())

    await here.root.keep_drafts()

    held = await everything(world, here)
    assert held.count(PUBLIC) == 2
    assert SECRET not in held
    assert TOKEN not in held


async def test_drafts_of_ordinary_files_are_kept_as_they_are(world: World, here: Host) -> None:
    _handle = await here.begin("alpha/notes.txt", TEXT.encode())

    await here.root.keep_drafts()

    assert TEXT in await everything(world, here)


async def test_a_draft_that_did_not_change_is_not_looked_at_again(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = await here.begin("alpha/live/plan", TEXT.encode())
    calls = _counted(monkeypatch, "redact_file")

    await here.root.keep_drafts()
    await here.root.keep_drafts()
    await handle.write(0, b"B")
    await here.root.keep_drafts()

    assert len(calls) == 2


async def test_what_is_large_is_redacted_in_a_thread_and_what_is_small_is_not(
    world: World, here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = _counted(monkeypatch, "redact_file")

    await here.write("alpha/live/small", TEXT)
    await here.write("alpha/live/large", "x " * (privacy.LARGE // 2) + TEXT)

    assert [thread is threading.main_thread() for thread in calls] == [True, False]
    assert SECRET not in await everything(world, here)


def _counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[threading.Thread]:
    """The threads in which a function of `privacy` is called from now on."""
    real: Callable[..., Any] = getattr(privacy, name)
    calls: list[threading.Thread] = []

    def counting(*arguments: Any) -> Any:
        calls.append(threading.current_thread())
        return real(*arguments)

    monkeypatch.setattr(privacy, name, counting)
    return calls


async def test_a_memory_without_a_file_goes_the_same_way(world: World, here: Host) -> None:
    heard: list[LiveMemError] = []

    await memories.remember(here.replica, world.clock, "alpha", "memories", TEXT, agent="me", on_private=heard.append)

    await expect_public(world, here)
    [error] = heard
    assert str(error).endswith("github-token, private")


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", FOLDERS)
async def test_a_file_whose_name_is_private_goes_by_it_in_this_mount_alone(
    world: World, here: Host, there: Host, folder: str
) -> None:
    await here.write(f"alpha/{folder}/{TOKEN}.md", "one\n")
    await here.write(f"alpha/{folder}/{TOKEN}.md", "two\n")

    assert (await here.read(f"alpha/{folder}/{TOKEN}.md")).endswith(b"two\n")
    [key] = [key for key in await world.bucket() if key.startswith(f"alpha/{folder}/2")]
    assert (await world.memory.head(key)).meta.get("livememfs-name") is None  # type: ignore[union-attr]  # HEAD tells it
    assert TOKEN not in await everything(world, here)
    assert told(here)[0]["path"] == f"alpha/{folder}/[redacted: github-token].md"
    assert not await there.exists(f"alpha/{folder}/{TOKEN}.md")
    assert (await there.read(key)).endswith(b"two\n")


@pytest.mark.parametrize("folder", FOLDERS)
async def test_two_private_names_are_two_files_and_digits_tell_nothing(world: World, here: Host, folder: str) -> None:
    for name in (TOKEN, f"{TOKEN[:-1]}c", "plan"):
        await here.write(f"alpha/{folder}/{name}", f"about {name[-1]}\n")
    await here.rename(f"alpha/{folder}/plan", f"alpha/{folder}/{TOKEN[:-1]}d")

    keys = [key for key in await world.bucket() if key.startswith(f"alpha/{folder}/2")]
    form = (await here.folder(f"alpha/{folder}")).form  # type: ignore[attr-defined]  # these folders have one
    endings = [one for name in (TOKEN, f"{TOKEN[:-1]}d") for one in form.endings("alpha", name)]
    assert len(keys) == 3
    assert not [key for key in keys if key.removesuffix(".md").endswith(tuple(endings))]
    assert (await here.read(f"alpha/{folder}/{TOKEN[:-1]}d")).endswith(b"about n\n")
    assert TOKEN[:-1] not in await everything(world, here)


async def test_rules_are_sealed_without_what_is_private_and_their_draft_has_none(world: World, here: Host) -> None:
    handle = await here.begin("alpha/_rules.md", TEXT.encode())
    await here.root.keep_drafts()
    drafted = await everything(world, here)
    await handle.flush()

    assert await handle.read(0, 1_000) == TEXT.encode()
    await handle.release()
    await here.sent()
    assert (await here.read("alpha/_rules.md")).decode() == PUBLIC
    assert [line["path"] for line in told(here)] == ["alpha/_rules.md"]
    for held in (drafted, await everything(world, here)):
        assert TOKEN not in held
        assert SECRET not in held


# --- asking --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def asking(here: Host, recall: Recall) -> Host:
    """`here`, which answers messages."""
    await here.write("alpha/memories/moon", "the moon is far away")
    await recall.prepare(("alpha",), 10.0)
    return here


async def ask(host: Host, message: str) -> str:
    handle = await host.begin("alpha/.recall", message.encode(), EDIT)
    with trio.fail_after(10.0):
        answer = await handle.read(0, 100_000)
    await handle.release()
    return answer.decode()


async def test_a_message_is_looked_up_without_private_parts(asking: Host, model: FakeEmbedder, tmp_path: Path) -> None:
    answer = await ask(asking, f"where is the moon? <private>{SECRET}</private> {TOKEN}")

    assert "the moon is far away" in answer
    [asked] = model.asked
    assert asked.split() == ["where", "is", "the", "moon?"]
    [line] = told(asking)
    assert (line["path"], line["what"].rpartition(": ")[2]) == ("alpha/.recall", "github-token, private")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
    assert TOKEN.encode() not in kept


async def test_a_message_that_is_private_as_a_whole_asks_nothing(asking: Host, model: FakeEmbedder) -> None:
    assert await ask(asking, f"<private>{SECRET}") == ""

    assert model.asked == []
    assert len(told(asking)) == 1


async def test_a_message_is_cut_only_after_what_is_private_has_left_it(asking: Host, model: FakeEmbedder) -> None:
    await ask(asking, f"the moon? <private>{'word ' * 5_000}{SECRET}</private> where?")

    [asked] = model.asked
    assert "hollow" not in asked
    assert "where" in asked
