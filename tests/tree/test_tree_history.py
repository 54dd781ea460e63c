"""`.history/<n>/` shows the bank after each run, `.why/` where it came from; nobody changes either, or pays twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from hosts import Host, World, refused
from trio.abc import Clock

from livememfs import errors
from livememfs.records import keys
from livememfs.records.ledger import Entry, Write
from livememfs.runs.undo.run import undo
from livememfs.spaces.entries import runs
from livememfs.testing.clock import START
from livememfs.text.outgoing import Outgoing
from livememfs.tree.node import NOBODY, AttrChange, Directory
from livememfs.tree.space.history import WINDOW

SPACE = "alpha"
HISTORY, WHY = "alpha/.history", "alpha/.why"
READING = {"get", "head", "list"}


@pytest.fixture
async def ran(world: World, here: Host) -> list[dict[str, bytes]]:
    """The space after three runs of the built-in filing; the bank after each of them."""
    await world.memory.put("alpha/bank/more/deep.md", b"deep")
    banks = []
    for number in range(1, 4):
        await here.write(f"alpha/live/decision-{number}.md", f"We chose the number {number}.\n")
        world.clock.advance(60)
        result = await here.consolidations.run_once(SPACE)
        assert result.state == "ok"
        banks.append({n: d for n, d in (await world.bucket("alpha/bank/")).items() if not n.endswith(keys.KEEP)})
    return banks


async def tree_of(host: Host, path: str) -> dict[str, bytes]:
    """Every file below a directory, as `cp -r` reads it."""
    files: dict[str, bytes] = {}
    for name, node in await (await host.folder(path)).children():
        if isinstance(node, Directory):
            files |= {f"{name}/{below}": data for below, data in (await tree_of(host, f"{path}/{name}")).items()}
        else:
            files[name] = await host.read(f"{path}/{name}")
    return files


async def test_both_are_listed_and_empty_before_the_first_run(here: Host) -> None:
    assert {".history", ".why"} <= set(await here.names(SPACE))
    assert await here.names(HISTORY) == []
    assert await here.names(WHY) == []


async def test_a_run_shows_the_bank_as_it_was(here: Host, ran: list[dict[str, bytes]], autojump_clock: Clock) -> None:
    assert await here.names(HISTORY) == ["1", "2", "3"]
    for number, bank in enumerate(ran, 1):
        assert await tree_of(here, f"{HISTORY}/{number}") == bank
        assert await here.names(f"{HISTORY}/{number}/more") == ["deep.md"]


async def test_a_past_file_has_its_size_and_no_right_to_write(here: Host, ran: list[dict[str, bytes]]) -> None:
    [(name, data)] = [(name, data) for name, data in ran[0].items() if b"number 1" in data][:1]

    attrs = await here.attrs(f"{HISTORY}/1/{name}")

    assert (attrs.size, attrs.mode, attrs.kind) == (len(data), 0o444, "file")
    listed = dict(await (await here.folder(f"{HISTORY}/1")).children())
    assert listed[name].listed_attrs() == attrs


async def test_an_undo_is_a_run_with_a_bank_too(world: World, here: Host, ran: list[dict[str, bytes]]) -> None:
    await undo(here.replica, world.clock, here.consolidations.leases, "here", SPACE, 2)

    assert await here.names(HISTORY) == ["1", "2", "3", "4"]
    assert await tree_of(here, f"{HISTORY}/4") == ran[0]
    assert await tree_of(here, f"{HISTORY}/3") == ran[2]


@pytest.mark.parametrize("name", ["0", "4", "01", "x", "٣", "1x", ".keep"])
async def test_what_is_no_number_of_a_run_is_not_there(here: Host, ran: list[dict[str, bytes]], name: str) -> None:
    await refused(errors.NotFound, here.node(f"{HISTORY}/{name}"), here.node(f"{HISTORY}/1/{name}"))


async def test_why_has_a_page_for_each_bank_file(here: Host, ran: list[dict[str, bytes]]) -> None:
    pages = await tree_of(here, WHY)
    assert set(pages) == set(ran[-1])
    assert all(page.startswith(f"# Where bank/{name} comes from\n".encode()) for name, page in pages.items())
    [name] = [name for name, data in ran[-1].items() if b"number 3" in data][:1]

    page = await here.read(f"{WHY}/{name}")

    assert b": We chose the number 3." in page
    assert b"- run 3, " in page
    assert (await here.attrs(f"{WHY}/{name}")).size == len(page)


async def test_a_bank_file_that_is_gone_has_no_page(here: Host, ran: list[dict[str, bytes]]) -> None:
    for name in ("nowhere.md", "more/nowhere.md", ".keep"):
        await refused(errors.NotFound, here.node(f"{WHY}/{name}"))


Change = Callable[[Host], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "create": lambda host: host.write(f"{HISTORY}/new", "x"),
    "create in a run": lambda host: host.write(f"{HISTORY}/1/new.md", "x"),
    "create a page": lambda host: host.write(f"{WHY}/new.md", "x"),
    "mkdir": lambda host: host.mkdir(f"{HISTORY}/9"),
    "mkdir in a run": lambda host: host.mkdir(f"{HISTORY}/1/new"),
    "write": lambda host: host.write(f"{HISTORY}/1/more/deep.md", "x"),
    "write a page": lambda host: host.write(f"{WHY}/more/deep.md", "x"),
    "unlink": lambda host: host.unlink(f"{HISTORY}/1/more/deep.md"),
    "unlink a page": lambda host: host.unlink(f"{WHY}/more/deep.md"),
    "rmdir a run": lambda host: host.rmdir(f"{HISTORY}/1"),
    "rmdir all": lambda host: host.rmdir(HISTORY),
    "rmdir the pages": lambda host: host.rmdir(WHY),
    "rename": lambda host: host.rename(f"{HISTORY}/1", f"{HISTORY}/9"),
    "rename out": lambda host: host.rename(f"{HISTORY}/1/more/deep.md", "alpha/deep.md"),
    "rename all": lambda host: host.rename(HISTORY, "alpha/other"),
    "symlink": lambda host: host.symlink(f"{WHY}/link", "x"),
}


@pytest.mark.parametrize("how", CHANGES)
async def test_every_change_is_refused_as_read_only(here: Host, ran: list[dict[str, bytes]], how: str) -> None:
    await refused(errors.ReadOnly, CHANGES[how](here))


async def test_attributes_cannot_be_changed(here: Host, ran: list[dict[str, bytes]]) -> None:
    for path in (HISTORY, f"{HISTORY}/1", f"{HISTORY}/1/more/deep.md", WHY, f"{WHY}/more/deep.md"):
        with pytest.raises(errors.ReadOnly):
            await (await here.node(path)).change(AttrChange(mode=0o777), NOBODY)


# --- what it costs ------------------------------------------------------------------------------------------------


def asked(host: Host) -> int:
    return sum(request.verb in READING for request in host.store.requests)


async def many_runs(world: World, count: int) -> None:
    for number in range(1, count + 1):
        writes = (Write("bank/a.md", "x", f"{number}", was=f"{number - 1}"),)
        entry = Entry(number=number, space=SPACE, state="applied", committed_at=START, applied_at=START, writes=writes)
        await world.memory.put(keys.ledger_key(SPACE, number), entry.render())
    await world.memory.put("alpha/bank/a.md", str(count).encode())


async def test_listing_a_space_and_its_history_reads_no_entry(world: World, there: Host) -> None:
    await many_runs(world, 30)
    await there.names(SPACE)
    there.store.forget()

    await there.names(SPACE)
    assert asked(there) == 0
    assert len(await there.names(HISTORY)) == 30
    await there.names(WHY)
    for name, node in await (await there.folder(HISTORY)).children():
        assert (await node.attrs()).kind == "directory", name
    listed = dict(await (await there.folder(WHY)).children())
    assert listed["a.md"].listed_attrs() is not None
    assert [request.verb for request in there.store.requests] == ["list", "list"]


async def test_whoever_reads_everything_pays_once_and_for_the_newest_runs_alone(
    world: World, there: Host, autojump_clock: Clock
) -> None:
    await many_runs(world, 3 * WINDOW)
    there.store.forget()

    files = await tree_of(there, HISTORY)
    assert await tree_of(there, WHY)
    first = asked(there)

    newest = range(2 * WINDOW + 1, 3 * WINDOW + 1)
    assert files == {f"{number}/a.md": str(number).encode() for number in newest}
    assert first < WINDOW + 20
    there.store.forget()
    assert await tree_of(there, HISTORY) == files
    assert asked(there) < 5
    assert await there.read(f"{HISTORY}/1/a.md") == b"1"


async def test_a_run_that_took_lines_out_of_the_bank_has_a_page_that_names_them(
    world: World, here: Host, ran: list[dict[str, bytes]]
) -> None:
    [entry] = [entry for entry in await runs(here.replica, SPACE) if entry.number == 3]
    lines = (
        Outgoing("a.md", "- gone", "dropped", reason="note 1\nsays so"),
        Outgoing("a.md", "- other", "moved", "b.md", "- other"),
    )
    await world.memory.put(keys.ledger_key(SPACE, 4), replace(entry, number=4, outgoing=lines, metrics={}).render())

    names = {name for name, _ in await (await here.folder(f"{HISTORY}/4")).children()}

    assert ".outgoing.md" not in names  # `diff -r` compares banks
    page = (await here.read(f"{HISTORY}/4/.outgoing.md")).decode()
    assert "1 dropped, 0 reworded, 1 moved." in page
    assert "- a.md: - gone (reason given: note 1 says so)" in page
    assert "- a.md: - other -> b.md" in page
    await refused(errors.NotFound, here.read(f"{HISTORY}/3/.outgoing.md"))
