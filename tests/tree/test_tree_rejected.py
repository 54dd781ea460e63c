"""Refused replies: kept as they were said, for a day, within limits, and shown to whoever looks why a run failed."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import trio
from hosts import READ, SPACE, WRITE, Host, World, refused

from livememfs import errors
from livememfs.llm.client import OpenAIChat
from livememfs.runs.options import RunSettings
from livememfs.runs.queue import RunQueue
from livememfs.testing.clock import ManualClock
from livememfs.testing.llm import Scripted, ScriptedLLM, consolidation_reply
from livememfs.tree import rejected
from livememfs.tree.node import NOBODY, AttrChange
from livememfs.tree.rejected import RejectedReplies

FOLDER = ".livememfs/rejected"
ODD = 'Sure! {"bank": \r\n\x00 \ud800 é\n\n'


def texts(replies: RejectedReplies) -> list[str]:
    """What is kept, without the heads."""
    contents = [replies.read(reply.name) for reply in replies.kept()]
    return [data.decode().partition("\n\n")[2] for data in contents if data is not None]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where replies are kept."""
    return tmp_path / "state" / "rejected" if request.param == "folder" else None


# --- keeping ------------------------------------------------------------------------------------------------------


def test_the_head_says_when_where_and_why_and_the_whole_reply_follows(clock: ManualClock, place: Path | None) -> None:
    replies = RejectedReplies(clock, place)

    replies.keep(SPACE, "not JSON\nat line 1", ODD)

    [reply] = replies.kept()
    assert reply.name == "20260220T140000Z-alpha.txt"
    head = "when: 2026-02-20T14:00:00Z\nspace: alpha\nrefused: not JSON at line 1\n\n"
    data = replies.read(reply.name)
    assert data == (head + ODD).encode("utf-8", "backslashreplace")
    assert reply.size == len(data)


def test_two_of_one_second_have_names_of_their_own(clock: ManualClock, place: Path | None) -> None:
    replies = RejectedReplies(clock, place)
    for text in ("first", "second", "third"):
        replies.keep(SPACE, "why", text)

    assert len({reply.name for reply in replies.kept()}) == 3
    assert texts(replies) == ["first", "second", "third"]
    if place is not None:
        assert texts(RejectedReplies(clock, place)) == ["first", "second", "third"]


def test_a_reply_is_gone_after_a_day(clock: ManualClock, place: Path | None) -> None:
    replies = RejectedReplies(clock, place)
    replies.keep(SPACE, "why", "old")
    clock.advance(hours=23, minutes=59)
    replies.keep(SPACE, "why", "new")
    assert texts(replies) == ["old", "new"]
    name = replies.kept()[0].name
    clock.advance(minutes=1)

    assert replies.read(name) is None
    assert texts(replies) == ["new"]
    assert place is None or len(list(place.iterdir())) == 1


def test_the_oldest_go_when_there_are_too_many(clock: ManualClock, place: Path | None) -> None:
    replies = RejectedReplies(clock, place)
    for number in range(rejected.KEPT + 5):
        replies.keep(SPACE, "why", str(number))

    assert texts(replies) == [str(number) for number in range(5, rejected.KEPT + 5)]
    assert place is None or len(list(place.iterdir())) == rejected.KEPT
    assert replies.statistics().refused == rejected.KEPT + 5


def test_the_oldest_go_when_they_are_too_much_and_one_that_is_too_much_alone_drives_none_out(
    clock: ManualClock, place: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected, "KEPT_BYTES", 1_000)
    replies = RejectedReplies(clock, place)
    for text in ("a" * 400, "b" * 400, "c" * 400):
        replies.keep(SPACE, "why", text)
    replies.keep(SPACE, "why", "d" * 1_000)

    assert texts(replies) == ["b" * 400, "c" * 400]
    assert (replies.statistics().lost, replies.statistics().kept) == (1, 2)


# --- the folder ---------------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_what_is_kept(clock: ManualClock, tmp_path: Path) -> None:
    replies = RejectedReplies(clock, tmp_path / "rejected")
    replies.keep(SPACE, "why", "private")

    [path] = (tmp_path / "rejected").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_next_process_finds_young_replies_and_leaves_strange_files_alone(
    clock: ManualClock, tmp_path: Path
) -> None:
    RejectedReplies(clock, tmp_path).keep("first", "why", "old")
    clock.advance(hours=20)
    RejectedReplies(clock, tmp_path).keep("second", "why", "new")
    strange = ["20261399T000000Z-alpha.txt", "notes.txt", "20260220T140000Z-.txt"]
    for name in strange:
        (tmp_path / name).write_text("?")
    (tmp_path / "20260221T100000Z-third.txt.part").write_text("half")
    clock.advance(hours=5)

    again = RejectedReplies(clock, tmp_path)

    assert [(reply.space, reply.name) for reply in again.kept()] == [("second", "20260221T100000Z-second.txt")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*strange, "20260221T100000Z-second.txt"])


def test_a_folder_that_cannot_be_written_fails_nobody(clock: ManualClock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    replies = RejectedReplies(clock, tmp_path / "file" / "rejected")

    replies.keep(SPACE, "why", "text")
    replies.keep("x" * 300, "why", "text")

    assert replies.kept() == []
    assert replies.statistics().lost == 2


def test_a_file_that_somebody_removed_is_not_there(clock: ManualClock, tmp_path: Path) -> None:
    replies = RejectedReplies(clock, tmp_path)
    replies.keep(SPACE, "why", "text")
    [reply] = replies.kept()
    (tmp_path / reply.name).unlink()

    assert replies.read(reply.name) is None


# --- in the mount -------------------------------------------------------------------------------------------------


async def test_kept_replies_are_files_and_nobody_can_change_them(here: Host) -> None:
    here.context.rejected.keep(SPACE, "why", "what it said")
    [name] = await here.names(FOLDER)
    path = f"{FOLDER}/{name}"

    assert (await here.read(path)).endswith(b"\n\nwhat it said")
    attrs = await here.attrs(path)
    assert (attrs.size, attrs.mode) == (len(await here.read(path)), 0o400)
    folder = await here.folder(FOLDER)
    await refused(
        errors.ReadOnly,
        here.open(path, WRITE),
        here.open(f"{FOLDER}/new", WRITE),
        folder.unlink(name),
        folder.mkdir("x", 0o755, NOBODY),
        folder.rename(name, folder, "y"),
        (await here.node(path)).change(AttrChange(mode=0o777), NOBODY),
    )


async def test_a_reply_that_went_while_its_name_was_known_is_not_found(here: Host, world: World) -> None:
    here.context.rejected.keep(SPACE, "why", "text")
    [name] = await here.names(FOLDER)
    node = await here.node(f"{FOLDER}/{name}")
    world.clock.advance(days=1)

    assert await here.names(FOLDER) == []
    assert not await here.exists(f"{FOLDER}/{name}")
    with pytest.raises(errors.NotFound):
        await node.open(READ, NOBODY)  # type: ignore[attr-defined]  # it is a file


async def consolidated(here: Host, world: World, *answers: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `.consolidate` and the last line of `.consolidate.wait` say after one run with these answers."""
    with ScriptedLLM(*answers) as llm:
        model = OpenAIChat(llm.url, "a-key", "m-1", 30.0)
        try:
            async with trio.open_nursery() as nursery:
                keep = here.context.rejected.keep
                runs = RunQueue(here.replica, world.clock, model, RunSettings(), nursery=nursery, on_rejected=keep)
                object.__setattr__(here.context, "consolidations", runs)
                await here.write(f"{SPACE}/.consolidate", "")
                lines = await wait(here)
                nursery.cancel_scope.cancel()
        finally:
            await model.aclose()
    return json.loads(await here.read(f"{SPACE}/.consolidate")), lines[-1]


async def wait(here: Host) -> list[dict[str, Any]]:
    """The lines of the wait file, up to the failure that may end it."""
    handle, text = await here.open(f"{SPACE}/.consolidate.wait"), b""
    try:
        while part := await handle.read(0, 131_072):
            text += part
    except errors.LiveMemError:
        pass
    finally:
        await handle.release()
    return [json.loads(line) for line in text.splitlines()]


async def test_a_run_that_failed_names_the_reply_that_was_refused(here: Host, world: World) -> None:
    await here.write(f"{SPACE}/live/note.md", "we chose S3\n")

    told, waited = await consolidated(here, world, "not JSON", "not JSON either")

    world.clock.advance(hours=1)
    here.context.rejected.keep(SPACE, "why", "of a later run")
    assert told == waited == json.loads(await here.read(f"{SPACE}/.consolidate"))
    assert told["state"] == "error"
    first, second = told["refused_replies"]
    assert second in told["what_to_do"]
    assert (await here.read(first)).endswith(b"\n\nnot JSON")
    assert (await here.read(second)).endswith(b"\n\nnot JSON either")
    assert b"space: alpha\nrefused: " in await here.read(second)


async def test_a_run_that_did_well_at_the_second_try_names_the_first(here: Host, world: World) -> None:
    await here.write(f"{SPACE}/live/note.md", "we chose S3\n")
    reply = consolidation_reply({"progress.md": "# Progress\n\nwe chose S3\n"}, action="created")

    told, _ = await consolidated(here, world, "not JSON", reply)

    assert (told["state"], len(told["refused_replies"])) == ("ok", 1)
    assert told["what_to_do"] == ""


async def test_a_failure_of_another_kind_names_no_reply_of_an_earlier_run(here: Host, world: World) -> None:
    await here.write(f"{SPACE}/live/note.md", "we chose S3\n")
    here.context.rejected.keep(SPACE, "why", "yesterday's")
    world.clock.advance(hours=1)
    here.context.rejected.keep("beta", "why", "another space's")

    told, _ = await consolidated(here, world, Scripted("oops", status=401))

    assert told["state"] == "error"
    assert "refused_replies" not in told
