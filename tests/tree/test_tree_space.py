"""Spaces and what is special in them: who may write where, control files, waiting, and what livememfs computes."""

from __future__ import annotations

import errno
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio
from contexts import context_of
from hosts import APPEND, EDIT, READ, REPLACE, WRITE, Host, World, close, read_all, refused, unreachable, without_room
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.replica import Replica
from livememfs.cache.watching.pace import CALM_SECONDS
from livememfs.errors import NotFound
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.runs.queue import RunQueue
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest
from livememfs.tree.node import NOBODY, AttrChange, File
from livememfs.tree.root import Root

WRITING = {"write": WRITE, "read and write": EDIT, "append": APPEND, "truncate": REPLACE}
RULES = "# Rules\n\n### progress.md\n- Done\n"
CONTROL = "alpha/.consolidate"
WAIT = "alpha/.consolidate.wait"

Attempt = Callable[["Host", str], Awaitable[object]]


async def file_at(host: Host, path: str) -> File:
    node = await host.node(path)
    assert isinstance(node, File)
    return node


# --- making and removing -----------------------------------------------------------------------------------------


async def test_mkdir_at_the_root_makes_the_three_objects_of_a_space(world: World, here: Host) -> None:
    await here.mkdir("beta")

    objects = await world.bucket("beta/")

    assert set(objects) == {"_meta.json", "live/.keep", "bank/.keep"}
    meta = Meta.parse(objects["_meta.json"])
    assert (meta.space_id, meta.owner, meta.created_at) == ("beta", "me", world.clock.now())
    assert await here.names("") == [".livememfs", "alpha", "beta", "search"]
    assert " ".join(await here.names("beta")) == (
        ".consolidate .consolidate.wait .digest .digest.wait .history .hooks .proposals .recall .why README.md"
        " _meta.json bank context.md goals live memories observations search self sessions"
    )


async def test_a_space_made_by_another_host_shows(world: World, here: Host, there: Host, autojump_clock: Clock) -> None:
    assert not await there.exists("beta")
    await here.mkdir("beta")
    await world.settle()

    assert await there.exists("beta/live")


@pytest.mark.parametrize("name", ["Beta", "search", "_system", "-x", "a b", "x" * 64, "é"])
async def test_names_that_no_space_can_have_are_refused(here: Host, name: str) -> None:
    await refused(errors.InvalidName, here.mkdir(name))


async def test_a_space_is_made_once(here: Host) -> None:
    await refused(errors.AlreadyExists, here.mkdir("alpha"))


async def test_two_hosts_making_the_same_space_at_once_share_it_and_one_hears_so(here: Host, there: Host) -> None:
    for host in (here, there):
        assert not await host.exists("beta")
    await here.mkdir("beta")

    await refused(errors.AlreadyExists, there.mkdir("beta"))


async def test_the_root_takes_nothing_but_spaces(here: Host) -> None:
    await here.write("alpha/plain.txt", "x")
    await refused(
        errors.NotPermitted,
        here.write("file.txt", "x"),
        here.symlink("link", "alpha"),
        here.rename("alpha", "beta"),
        here.rename("alpha/plain.txt", "file.txt"),
    )
    assert await here.names("") == [".livememfs", "alpha", "search"]


async def test_internal_prefixes_are_hidden_and_others_are_ordinary_directories(world: World, here: Host) -> None:
    for key in ("_system/tokens.json", "photos/cat.jpg", "top.txt"):
        await world.memory.put(key, b"bytes")

    assert await here.names("") == [".livememfs", "alpha", "photos", "search", "top.txt"]
    for hidden in ("_system", "_system/tokens.json"):
        await refused(errors.NotFound, here.node(hidden))
    assert await here.read("photos/cat.jpg") == b"bytes"
    assert await here.names("photos") == ["cat.jpg"]


async def test_an_empty_space_goes_with_rmdir_and_leaves_nothing(world: World, here: Host) -> None:
    await here.mkdir("beta")
    await here.write("beta/_rules.md", RULES)

    await here.rmdir("beta")

    assert await world.bucket("beta/") == {}
    assert not await here.exists("beta")


@pytest.mark.parametrize("path", ["alpha/live/x.md", "alpha/bank/x.md", "alpha/own.txt"])
async def test_a_space_that_holds_something_stays(world: World, here: Host, path: str) -> None:
    await world.memory.put(path, b"text")
    before = await world.bucket()

    await refused(errors.NotEmpty, here.rmdir("alpha"))

    assert await world.bucket() == before


async def test_a_space_with_a_note_that_is_not_saved_yet_stays(here: Host) -> None:
    await without_room(here, here.write("alpha/live/x.md", "text"))

    await refused(errors.NotEmpty, here.rmdir("alpha"))


async def test_a_space_that_another_host_removed_goes(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    assert await there.exists("alpha/live")
    await here.rmdir("alpha")
    await world.settle()

    assert not await there.exists("alpha")


# --- rules -------------------------------------------------------------------------------------------------------


async def test_rules_are_sealed_by_the_close_that_gives_them_content(world: World, here: Host, there: Host) -> None:
    await here.write("alpha/_rules.md", "")
    assert keys.RULES not in await world.bucket("alpha/")

    await here.write("alpha/_rules.md", RULES)

    assert (await world.bucket("alpha/"))[keys.RULES] == RULES.encode()
    assert await there.read("alpha/_rules.md") == RULES.encode()
    assert keys.RULES in await here.names("alpha")


RULES_ATTEMPTS: dict[str, Attempt] = {
    **{name: lambda host, path, mode=mode: host.open(path, mode) for name, mode in WRITING.items()},
    "chmod": lambda host, path: _change(host, path, AttrChange(mode=0o600)),
    "truncate by name": lambda host, path: _change(host, path, AttrChange(size=0)),
    "utimens": lambda host, path: _change(host, path, AttrChange(mtime_ns=1)),
    "setxattr": lambda host, path: _set_xattr(host, path),
    "unlink": lambda host, path: host.unlink(path),
    "rename over": lambda host, path: host.rename("alpha/own.txt", path),
}


async def _change(host: Host, path: str, change: AttrChange) -> None:
    await (await host.node(path)).change(change, NOBODY)


async def _set_xattr(host: Host, path: str) -> None:
    await (await host.node(path)).set_xattr("user.mine", b"x")


@pytest.mark.parametrize("attempt", RULES_ATTEMPTS.values(), ids=RULES_ATTEMPTS.keys())
@pytest.mark.parametrize("name", ["_rules.md", "_meta.json", "_synthesis.md"])
async def test_rules_meta_and_synthesis_refuse_every_change(
    world: World, here: Host, name: str, attempt: Attempt
) -> None:
    await here.write("alpha/own.txt", "mine")
    await world.memory.put("alpha/_rules.md", RULES.encode())
    await world.memory.put("alpha/_synthesis.md", b"text")
    here = world.host("here")
    before = await world.bucket()

    await refused(errors.ReadOnly, attempt(here, f"alpha/{name}"))

    assert await world.bucket() == before


@pytest.mark.parametrize(
    ("data", "refusal"),
    [(b"\xff\n", errors.NotText), (b" \n\n", errors.BadRequest), (b"x" * 300_000, errors.TooLarge)],
    ids=["not text", "blank", "too large"],
)
async def test_rules_that_cannot_be_sealed_stay_a_draft_to_be_mended(
    world: World, here: Host, data: bytes, refusal: type[errors.LiveMemError]
) -> None:
    with pytest.raises(refusal) as caught:
        await here.write("alpha/_rules.md", data)
    assert "write _rules.md again" in caught.value.advice()
    assert "live/" not in caught.value.advice()
    assert await here.read("alpha/_rules.md") == data

    await here.write("alpha/_rules.md", RULES)
    assert (await world.bucket("alpha/"))[keys.RULES] == RULES.encode()


async def test_rules_that_could_not_be_sealed_are_sealed_by_draining(world: World, here: Host) -> None:
    here.store.script("put", Fault(before=unreachable()))
    await refused(errors.Unreachable, here.write("alpha/_rules.md", RULES))

    assert [file.path for file in here.root.unsaved_files()] == ["alpha/_rules.md"]
    assert await here.root.drain() == []
    assert (await world.bucket("alpha/"))[keys.RULES] == RULES.encode()


async def test_a_draft_of_rules_can_be_removed(world: World, here: Host) -> None:
    await here.write("alpha/_rules.md", "")
    await here.unlink("alpha/_rules.md")

    assert not await here.exists("alpha/_rules.md")


async def test_the_second_host_to_write_rules_is_told_and_shown_the_sealed_ones(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    late = await there.open("alpha/_rules.md", WRITE)
    await here.write("alpha/_rules.md", RULES)
    await late.write(0, b"# other rules\n")

    await refused(errors.ReadOnly, late.flush())
    await late.release()

    await world.settle()
    assert await there.read("alpha/_rules.md") == RULES.encode()
    assert (await world.bucket("alpha/"))[keys.RULES] == RULES.encode()


# --- the bank ----------------------------------------------------------------------------------------------------


BANK_ATTEMPTS: dict[str, Attempt] = {
    **{
        f"open to {name}": lambda host, bank, mode=mode: host.open(f"{bank}/progress.md", mode)
        for name, mode in WRITING.items()
    },
    "create": lambda host, bank: host.write(f"{bank}/new.md", "x"),
    "create below": lambda host, bank: host.write(f"{bank}/folder/new.md", "x"),
    "mkdir": lambda host, bank: host.mkdir(f"{bank}/new"),
    "symlink": lambda host, bank: host.symlink(f"{bank}/link", "progress.md"),
    "unlink": lambda host, bank: host.unlink(f"{bank}/progress.md"),
    "unlink below": lambda host, bank: host.unlink(f"{bank}/folder/file.md"),
    "rmdir": lambda host, bank: host.rmdir(f"{bank}/folder"),
    "rename": lambda host, bank: host.rename(f"{bank}/progress.md", f"{bank}/other.md"),
    "move out": lambda host, bank: host.rename(f"{bank}/progress.md", "alpha/other.md"),
    "move in": lambda host, bank: host.rename("alpha/own.txt", f"{bank}/own.md"),
    "move a note in": lambda host, bank: host.rename("alpha/live/x.md", f"{bank}/x.md"),
    "chmod": lambda host, bank: _change(host, f"{bank}/progress.md", AttrChange(mode=0o666)),
    "chown": lambda host, bank: _change(host, f"{bank}/progress.md", AttrChange(uid=1)),
    "truncate": lambda host, bank: _change(host, f"{bank}/progress.md", AttrChange(size=0)),
    "utimens": lambda host, bank: _change(host, f"{bank}/progress.md", AttrChange(mtime_ns=1)),
    "chmod of the folder": lambda host, bank: _change(host, bank, AttrChange(mode=0o777)),
    "setxattr": lambda host, bank: _set_xattr(host, f"{bank}/progress.md"),
    "setxattr of the folder": lambda host, bank: _set_xattr(host, bank),
}


@pytest.fixture
async def bank(world: World, here: Host) -> str:
    """A bank with a file and a folder; its path."""
    await world.memory.put("alpha/bank/progress.md", b"# Progress\n")
    await world.memory.put("alpha/bank/folder/file.md", b"# File\n")
    await here.write("alpha/own.txt", "mine")
    await here.write("alpha/live/x.md", "a note")
    return "alpha/bank"


@pytest.mark.parametrize("attempt", BANK_ATTEMPTS.values(), ids=BANK_ATTEMPTS.keys())
async def test_the_bank_refuses_every_change_even_by_root(
    world: World, here: Host, bank: str, attempt: Attempt
) -> None:
    before = await world.bucket()

    with pytest.raises(errors.ReadOnly) as caught:
        await attempt(here, bank)

    assert caught.value.errno == errno.EROFS
    assert await world.bucket() == before


async def test_the_bank_shows_its_files_and_not_its_sentinel(here: Host, bank: str) -> None:
    assert await here.names(bank) == ["folder", "progress.md"]
    assert await here.names(f"{bank}/folder") == ["file.md"]
    assert await here.read(f"{bank}/progress.md") == b"# Progress\n"
    assert (await here.attrs(f"{bank}/progress.md")).size == 11
    await refused(errors.NotFound, here.node(f"{bank}/.keep"))


async def test_a_bank_file_rewritten_while_it_is_open_is_never_mixed(
    world: World, here: Host, bank: str, autojump_clock: Clock
) -> None:
    old = await here.open(f"{bank}/progress.md")
    await world.memory.put(f"{bank}/progress.md", b"# Progress\n\n- more\n")
    await world.settle()

    new = await here.open(f"{bank}/progress.md")

    assert await read_all(old) == b"# Progress\n"
    assert await read_all(new) == b"# Progress\n\n- more\n"
    assert (await here.attrs(f"{bank}/progress.md")).size == 19
    assert old.version != new.version


# --- names with a meaning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_ledger", ".keep", "_changes", "_index"])
async def test_names_that_are_reserved_in_a_space_stay_free(world: World, here: Host, name: str) -> None:
    await here.write("alpha/own.txt", "x")
    await refused(
        errors.NotPermitted,
        here.write(f"alpha/{name}", "x"),
        here.mkdir(f"alpha/{name}"),
        here.rename("alpha/own.txt", f"alpha/{name}"),
    )
    await world.memory.put(f"alpha/{name}", b"x")
    assert name not in await world.host("other").names("alpha")


@pytest.mark.parametrize("name", ["live", "bank", "README.md", ".consolidate", ".consolidate.wait"])
async def test_what_belongs_to_a_space_cannot_be_removed_or_replaced(here: Host, name: str) -> None:
    await here.write("alpha/own.txt", "x")
    await refused(
        errors.ReadOnly,
        here.unlink(f"alpha/{name}"),
        here.rmdir(f"alpha/{name}"),
        here.rename("alpha/own.txt", f"alpha/{name}"),
        here.rename(f"alpha/{name}", "alpha/other"),
    )
    assert await here.exists(f"alpha/{name}")


async def test_the_same_names_are_ordinary_outside_a_space(here: Host) -> None:
    await here.mkdir("alpha/folder")
    for name in ("_rules.md", "_meta.json", "context.md", ".consolidate"):
        await here.write(f"alpha/folder/{name}", "mine")

    assert await here.names("alpha/folder") == [".consolidate", "_meta.json", "_rules.md", "context.md"]


COMPUTED = (
    "alpha/README.md", ".livememfs/status.json", ".livememfs/errors.ndjson", ".livememfs/journal.wait", WAIT,
    "alpha/.digest.wait",
)  # fmt: skip


@pytest.mark.parametrize("path", COMPUTED)
async def test_computed_files_are_readable_and_read_only(here: Host, path: str) -> None:
    node = await file_at(here, path)

    handle = await node.open(READ, NOBODY)

    assert handle.direct
    assert (await node.attrs()).volatile
    for mode in WRITING.values():
        await refused(errors.ReadOnly, node.open(mode, NOBODY))
    await refused(errors.ReadOnly, node.change(AttrChange(size=0), NOBODY), node.set_xattr("user.mine", b"x"))


async def test_the_readme_is_the_same_each_time_and_has_its_size(here: Host) -> None:
    text = await here.read("alpha/README.md")

    assert text == await here.read("alpha/README.md")
    assert (await here.attrs("alpha/README.md")).size == len(text)
    assert b"# Memory space `alpha`" in text


async def test_the_state_directory_tells_how_the_mount_is_doing(here: Host) -> None:
    here.errors.record("write", "alpha/live/x.md", errors.NotText(path="alpha/live/x.md", detail="byte 0xff"))
    await here.write("alpha/own.txt", "x")

    assert json.loads(await here.read(".livememfs/status.json")) == {"state": "ok"}
    line = json.loads(await here.read(".livememfs/errors.ndjson"))
    assert (line["path"], line["operation"], line["errno"]) == ("alpha/live/x.md", "write", "EILSEQ")
    assert "UTF-8" in line["what_to_do"]
    changes = [json.loads(text) for text in (await here.read(".livememfs/changes.ndjson")).splitlines()]
    etag = changes[-1]["etag"]
    assert changes[-1] == {"key": "alpha/own.txt", "kind": "put", "etag": etag, "origin": "local"}
    assert await here.read(".livememfs/conflicts.ndjson") == b""
    await refused(errors.ReadOnly, here.write(".livememfs/new", "x"))


async def test_waiting_for_an_empty_journal_ends_at_once(here: Host) -> None:
    text = await here.read(".livememfs/journal.wait")
    assert json.loads(text) == {"state": "ok", "pending": 0, "pending_bytes": 0}


async def test_waiting_for_the_journal_ends_when_the_bucket_has_what_was_accepted_before(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    here.prompt = False
    here.store.latency("put", 2.5)
    await here.write("alpha/file", "text")

    lines = [json.loads(line) for line in (await here.read(".livememfs/journal.wait")).splitlines()]

    assert [line["state"] for line in lines] == ["running", "running", "ok"]
    assert lines[0]["pending_bytes"] == 4
    assert (await world.memory.get("alpha/file")).data == b"text"


async def test_waiting_for_the_journal_fails_with_the_reason_when_the_bucket_refuses(
    here: Host, expect_log: Callable[[str], None]
) -> None:
    expect_log("the bucket does not take it")
    here.prompt = False
    here.store.plan = lambda asked, _: Fault(before=errors.Denied(key=asked.key)) if asked.verb == "put" else None
    await here.write("alpha/file", "text")

    await refused(errors.LiveMemError, here.read(".livememfs/journal.wait"), match="denies access")


# --- control files -----------------------------------------------------------------------------------------------


def runs(host: Host) -> int:
    """How many runs have been asked for that are not the same one."""
    return host.consolidations.latest("alpha")


async def lines_of(host: Host) -> list[dict[str, Any]]:
    """What `cat .consolidate.wait` shows."""
    return [json.loads(line) for line in (await host.read(WAIT)).splitlines()]


async def test_an_open_for_writing_is_one_touch(here: Host, autojump_clock: Clock) -> None:
    handle = await here.open(CONTROL, WRITE)
    await close(handle)

    assert runs(here) == 1


async def test_gnu_touch_is_one_touch(here: Host, autojump_clock: Clock) -> None:
    """It opens, closes a duplicate, sets the times through the descriptor and closes that, with pauses in between."""
    node = await file_at(here, CONTROL)
    handle = await node.open(WRITE, NOBODY)
    await handle.flush()
    await trio.sleep(5)
    await handle.change(node, AttrChange(mtime_ns=1), NOBODY)
    await trio.sleep(5)
    await handle.flush()
    await trio.sleep(5)
    await handle.release()
    await trio.sleep(5)

    assert runs(here) == 1
    assert here.consolidations.statistics().ok == 1


async def test_setting_the_times_alone_is_a_touch_and_a_mode_is_not(here: Host, autojump_clock: Clock) -> None:
    await _change(here, CONTROL, AttrChange(mode=0o600))
    assert runs(here) == 0

    await _change(here, CONTROL, AttrChange(mtime_ns=1))
    assert runs(here) == 1


async def test_reading_is_no_touch(here: Host) -> None:
    assert json.loads(await here.read(CONTROL)) == {"space": "alpha", "status": "idle", "state": "idle"}
    assert runs(here) == 0


async def test_a_touch_consolidates_and_its_result_is_shown(world: World, here: Host, autojump_clock: Clock) -> None:
    await here.write("alpha/_rules.md", RULES)
    await here.write("alpha/live/progress.md", "the tests pass\n")

    await _change(here, CONTROL, AttrChange(mtime_ns=1))
    lines = await lines_of(here)

    assert lines[-1]["state"] == "ok"
    assert lines[-1]["notes_processed"] == 1
    assert json.loads(await here.read(CONTROL)) == lines[-1]
    assert await world.notes() == {}
    assert b"the tests pass" in await here.read("alpha/bank/progress.md")
    assert b"the tests pass" in await here.read("alpha/_synthesis.md")


async def test_options_are_taken_from_what_is_written(world: World, here: Host, autojump_clock: Clock) -> None:
    """As `echo '{"dry_run": true}' > .consolidate` in a shell, which closes a duplicate before it writes."""
    await here.write("alpha/live/progress.md", "the tests pass\n")
    before = await world.notes()
    assert ".consolidate.diff" not in await here.names("alpha")
    handle = await here.open(CONTROL, REPLACE)
    await handle.flush()
    await handle.write(0, b'{"dry_run"')
    await handle.write(10, b": true}\n")
    await close(handle)

    lines = await lines_of(here)

    assert runs(here) == 1
    assert (lines[-1]["state"], lines[-1]["dry_run"]) == ("ok", True)
    assert await world.notes() == before
    assert ".consolidate.diff" in await here.names("alpha")
    assert b"+" in await here.read("alpha/.consolidate.diff")


@pytest.mark.parametrize(
    "request_text", ['{"dry_run":', "[1]", '{"dryrun": true}', '{"max_notes": 0}', b"\xff", '"x"', "null"]
)
async def test_a_request_that_makes_no_sense_is_refused_at_close(here: Host, request_text: str | bytes) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        await here.write(CONTROL, request_text, WRITE)

    assert caught.value.errno == errno.EINVAL
    assert str(caught.value).startswith(CONTROL)
    assert runs(here) == 0


async def test_a_request_without_end_is_refused(here: Host) -> None:
    handle = await here.open(CONTROL, WRITE)
    for _ in range(16):
        await handle.write(0, b" " * 4_096)

    await refused(errors.BadRequest, handle.write(0, b" "))


async def test_a_cancel_ends_what_waits_and_asks_for_nothing(here: Host, autojump_clock: Clock) -> None:
    control = await file_at(here, CONTROL)
    here.store.latency("*", 10)
    await control.change(AttrChange(mtime_ns=1), NOBODY)
    await trio.sleep(1)

    handle = await control.open(WRITE, NOBODY)
    await handle.write(0, b'{"cancel": true}')
    await close(handle)
    await trio.sleep(1)

    assert runs(here) == 1
    shown = json.loads(await handle.read(0, 65_536))
    assert (shown["state"], shown["reason"]) == ("error", "the run was cancelled")


async def test_touches_while_a_run_is_at_work_share_one_more_run(here: Host, autojump_clock: Clock) -> None:
    control = await file_at(here, CONTROL)
    here.store.latency("*", 1)
    await control.change(AttrChange(mtime_ns=1), NOBODY)
    await trio.sleep(0.5)
    for _ in range(3):
        await control.change(AttrChange(mtime_ns=1), NOBODY)

    assert runs(here) == 2
    assert (await lines_of(here))[-1]["run"] == 2


async def test_waiting_streams_about_a_line_a_second_until_the_run_ends(here: Host, autojump_clock: Clock) -> None:
    node = await file_at(here, WAIT)
    here.store.latency("*", 4)
    here.consolidations.touch("alpha")
    handle = await node.open(READ, NOBODY)
    arrived: list[tuple[float, dict[str, Any]]] = []
    while line := await handle.read(0, 65_536):
        arrived.append((trio.current_time(), json.loads(line)))

    pauses = [later - earlier for (earlier, _), (later, _) in pairwise(arrived)]

    assert handle.direct
    assert not handle.seekable
    assert len(arrived) > 4
    assert max(pauses) <= 1.0
    assert {line["state"] for _, line in arrived[:-1]} <= {"queued", "running"}
    assert arrived[-1][1]["state"] == "ok"


async def test_waiting_without_a_run_tells_the_state_and_ends(here: Host) -> None:
    assert await lines_of(here) == [{"space": "alpha", "status": "idle", "state": "idle"}]


async def test_a_wait_is_for_the_touches_before_it_only(here: Host, autojump_clock: Clock) -> None:
    wait = await file_at(here, WAIT)
    here.store.latency("*", 1)
    here.consolidations.touch("alpha")
    handle = await wait.open(READ, NOBODY)
    await trio.sleep(0.5)
    here.consolidations.touch("alpha")

    lines = (await read_all(handle)).splitlines()

    assert json.loads(lines[-1])["run"] == 1


async def test_a_failed_run_ends_the_read_with_an_error_after_the_reason(here: Host, autojump_clock: Clock) -> None:
    node = await file_at(here, WAIT)
    here.store.fail_all = unreachable()
    here.consolidations.touch("alpha")
    handle = await node.open(READ, NOBODY)
    text = b""

    async def cat() -> None:
        nonlocal text
        while part := await handle.read(0, 7):  # a reader with a small buffer still gets the whole reason
            text += part

    with pytest.raises(errors.LiveMemError) as caught:
        await cat()

    last = json.loads(text.splitlines()[-1])
    assert last["state"] == "error"
    assert "does not answer" in last["reason"]
    assert caught.value.errno == errno.EIO
    assert last["reason"] in str(caught.value)


async def test_a_new_space_is_usable_while_the_store_is_away(world: World, here: Host, autojump_clock: Clock) -> None:
    await here.mkdir("fresh")
    await here.names("fresh/live")
    await world.settle()
    here.store.fail_all = unreachable()
    here.prompt = False

    await here.write("fresh/live/todo.md", "call back")

    assert b"call back" in await here.read("fresh/live/todo.md")
    here.store.fail_all = None
    assert [name for name in await world.bucket("fresh/live/") if name != ".keep"] != []


# --- .digest ------------------------------------------------------------------------------------------------------


async def test_a_touch_of_digest_stores_memories_and_no_consolidation_hears_of_it(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    await here.write("alpha/live/decision.md", "we chose S3\n")

    await _change(here, "alpha/.digest", AttrChange(mtime_ns=1))
    told = [json.loads(line) for line in (await here.read("alpha/.digest.wait")).splitlines()]

    assert (told[-1]["state"], told[-1]["memories_stored"], told[-1]["model"]) == ("ok", 1, "builtin")
    assert json.loads(await here.read("alpha/.digest")) == told[-1]
    assert json.loads(await here.read(CONTROL)) == {"space": "alpha", "status": "idle", "state": "idle"}
    [name] = [name for name in await here.names("alpha/memories") if name.endswith(".md")]
    assert (await here.read(f"alpha/memories/{name}")).endswith(b"we chose S3\n")
    assert len(await world.notes()) == 1
    assert await here.names("alpha/.history") == []


async def test_a_dry_digest_shows_what_it_would_store_where_it_is_asked_for(here: Host, autojump_clock: Clock) -> None:
    await here.write("alpha/live/decision.md", "we chose S3\n")
    await here.write("alpha/.digest", '{"dry_run": true}', WRITE)
    await here.read("alpha/.digest.wait")

    [memory] = json.loads(await here.read("alpha/.digest"))["memories"]
    assert (memory["content"], memory["type"]) == ("we chose S3", "decision")
    assert ".consolidate.diff" not in await here.names("alpha")


async def test_what_a_digest_cannot_be_asked_is_refused_by_its_own_name(here: Host) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        await here.write("alpha/.digest", '{"kind": "consolidation"}', WRITE)

    assert str(caught.value).startswith("alpha/.digest: there is no option 'kind'")


async def test_cancelling_a_digest_leaves_a_consolidation_alone(here: Host, autojump_clock: Clock) -> None:
    here.store.latency("*", 10)
    await _change(here, CONTROL, AttrChange(mtime_ns=1))
    await here.write("alpha/.digest", '{"cancel": true}', WRITE)
    await trio.sleep(1)

    assert json.loads(await here.read(CONTROL))["state"] == "running"
    assert json.loads(await here.read("alpha/.digest"))["state"] == "idle"


async def test_a_watched_space_is_found_without_a_list_of_the_top_and_no_more_once_it_is_removed(
    autojump_clock: Clock, nursery: trio.Nursery
) -> None:
    clock = ManualClock()
    memory = MemoryStore(clock)
    await memory.put(keys.meta_key("alpha"), b"{}")
    store = FaultyStore(memory)
    replica = Replica(store, poll_interval=2.0)
    await nursery.start(replica.run)
    root = Root(context_of(replica, clock, RunQueue(replica, clock, None, nursery=nursery)))
    space = await root.child("alpha")
    store.forget()
    for _ in range(60):
        assert await root.child("alpha") is space
        await trio.sleep(1.0)
    assert StoreRequest("list", "") not in store.requests

    await memory.delete(keys.meta_key("alpha"))
    await trio.sleep(CALM_SECONDS)
    with pytest.raises(NotFound):
        await root.child("alpha")
