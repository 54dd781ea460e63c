"""What the ledger tells: the runs, the bank after each of them, and the notes that its parts came from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from consolidation_world import SPACE, World
from undo_world import consolidate, take_back

from livememfs.cache.replica import Replica
from livememfs.errors import LiveMemError, NotFound
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.history import History
from livememfs.runs.standing import last_standing, standing, taken_back
from livememfs.spaces import backups
from livememfs.spaces.entries import runs
from livememfs.testing.clock import START

ONE = "# Progress\n\n## Done\n\nthe parser\n\n## Open\n\nthe printer\n"
TWO = "# Progress\n\n## Done\n\nthe parser\nthe lexer\n\n## Open\n\nthe printer\n"


@pytest.fixture
async def world() -> World:
    made = World()
    await made.seed(bank={"progress.md": "# Progress\n", "before.md": "# Before\r\n", "more/deep.md": "deep"})
    return made


async def told(world: World, body: str, files: dict[str, str], **note: Any) -> Entry:
    """A note, and the run that takes it in."""
    await world.note(body, **note)
    return await consolidate(world, files)


def lines_of(page: str, heading: str) -> list[str]:
    """The lines below one heading of a page."""
    _, _, rest = page.partition(f"\n## {heading}\n")
    return [line for line in rest.partition("\n## ")[0].splitlines() if line]


# --- the runs -----------------------------------------------------------------------------------------------------


async def test_runs_come_newest_first_with_all_they_wrote(world: World) -> None:
    entries = [await told(world, f"note {n}", {"progress.md": f"# {n}\n"}) for n in range(3)]

    assert await runs(world.replica, SPACE) == entries[::-1]


async def test_an_entry_that_cannot_be_read_is_reported_and_hides_no_other(world: World) -> None:
    entries = [await told(world, f"note {n}", {"progress.md": f"# {n}\n"}) for n in range(3)]
    await world.put(keys.ledger_key(SPACE, 2), '{"form": 99}')
    await world.put(f"{SPACE}/_ledger/notes.txt", "no entry")
    problems: dict[int, str] = {}

    found = await runs(world.replica, SPACE, report=problems.__setitem__)

    assert found == [entries[2], entries[0]]
    assert problems == {2: "it is not an entry of form 1"}


async def test_without_a_report_the_log_hears_of_it(world: World, expect_log: Callable[[str], None]) -> None:
    expect_log("number=1 reason=it is not UTF-8")
    await world.put(keys.ledger_key(SPACE, 1), b"\xff")

    assert await runs(world.replica, SPACE) == []


def entry(number: int, undoes: int = 0) -> Entry:
    kind = "undo" if undoes else "consolidation"
    return Entry(number=number, space=SPACE, kind=kind, undoes=undoes, committed_at=START)


@pytest.mark.parametrize(
    ("undoes", "stand", "fallen", "last"),
    [
        ([], [], {}, None),
        ([0, 0, 0], [3, 2, 1], {}, 3),
        ([0, 0, 2], [3, 1], {2: 3}, 1),
        ([0, 0, 2, 1], [4], {1: 4, 2: 4, 3: 4}, None),
        ([0, 0, 2, 3], [4, 2, 1], {3: 4}, 2),
        ([0, 0, 1, 0, 4], [5, 3], {1: 3, 2: 3, 4: 5}, None),
        ([0, 0, 2, 3, 4], [5, 3, 1], {2: 3, 4: 5}, 1),
    ],
)
def test_which_runs_stand(undoes: list[int], stand: list[int], fallen: dict[int, int], last: int | None) -> None:
    """`undoes` says of run 1, 2, ... which run it takes back; 0: it is a consolidation."""
    entries = [entry(number, undone) for number, undone in enumerate(undoes, 1)]

    assert [one.number for one in standing(entries)] == stand
    assert taken_back(entries) == fallen
    assert last_standing(entries) == last


# --- the bank as it was -------------------------------------------------------------------------------------------


async def bank_after(replica: Replica, space: str, number: int) -> dict[str, bytes]:
    """The bank as it was after run `number`, by name."""
    history = History(replica, space, fresh=True)
    return {name: await history.content(past) for name, past in (await history.bank_after(number)).items()}


async def why(replica: Replica, space: str, file: str) -> str:
    """The page about a bank file of today."""
    return await History(replica, space, fresh=True).why(file)


async def test_the_bank_after_each_run_is_what_the_bank_was_then(world: World) -> None:
    then = []
    for number in range(5):
        files = {"progress.md": f"# Progress\n\n{number}\n", f"n{number}.md": f"# {number} \u2028 ä\r\n"}
        await told(world, f"note {number}", files if number % 2 else {"progress.md": files["progress.md"]})
        then.append(await world.bank())
    await take_back(world, 3)
    then.append(await world.bank())

    for number, bank in enumerate(then, 1):
        found = await bank_after(world.replica, SPACE, number)
        assert {name: data.decode() for name, data in found.items()} == bank


async def test_what_other_programs_do_to_the_bank_changes_no_run_that_wrote_the_file(world: World) -> None:
    await told(world, "a", {"progress.md": ONE})
    await world.put(keys.bank_key(SPACE, "progress.md"), "somebody's")
    await world.memory.delete(keys.bank_key(SPACE, "more/deep.md"))
    await told(world, "b", {"before.md": "# Before\n\nnow\n"})

    found = await bank_after(world.replica, SPACE, 1)

    assert found == {"progress.md": ONE.encode(), "before.md": b"# Before\r\n"}


async def test_bytes_that_are_no_text_come_from_the_backup_of_the_run_that_found_them(world: World) -> None:
    odd = keys.bank_key(SPACE, "odd.md")
    await world.put(odd, b"\xff")
    await told(world, "a", {"progress.md": ONE})
    await world.put(odd, b"\xfe")
    await take_back(world)

    assert (await bank_after(world.replica, SPACE, 1))["odd.md"] == b"\xfe"
    assert (await bank_after(world.replica, SPACE, 2))["odd.md"] == b"\xff"

    for backup in await backups.list_backups(world.replica, SPACE):
        await backups.delete(world.replica, SPACE, backup.stamp)
    assert "odd.md" not in await bank_after(world.replica, SPACE, 1)
    assert (await bank_after(world.replica, SPACE, 2))["odd.md"] == b"\xff"


async def test_a_run_that_is_not_there_or_cannot_be_read_has_no_bank(world: World) -> None:
    with pytest.raises(NotFound):
        await bank_after(world.replica, SPACE, 1)
    await world.put(keys.ledger_key(SPACE, 1), "{}")

    problems: dict[int, str] = {}
    with pytest.raises(LiveMemError, match="cannot be read"):
        await History(world.replica, SPACE, fresh=True, report=problems.__setitem__).bank_after(1)
    assert list(problems) == [1]


async def test_an_entry_is_read_once_however_often_somebody_looks(world: World) -> None:
    for number in range(6):
        await told(world, f"note {number}", {f"n{number}.md": f"# {number}\n"})
    world.replica = Replica(world.store)  # one that has never read any
    history = History(world.replica, SPACE)
    world.store.forget()

    for number in range(1, 7):
        for past in (await history.bank_after(number)).values():
            await history.content(past)
        await history.why("n0.md")

    asked = [request.key for request in world.store.requests if request.verb == "get" and "_ledger" in request.key]
    assert sorted(asked) == [keys.ledger_key(SPACE, number) for number in range(1, 7)]


async def test_within_a_window_older_runs_are_not_read(world: World) -> None:
    banks = {}
    for number in range(1, 7):
        await told(world, f"note {number}", {f"n{number}.md": f"# {number}\n"})
        banks[number] = await world.bank()
    world.replica = Replica(world.store)  # one that has never read any
    history = History(world.replica, SPACE, window=2)
    world.store.forget()

    assert list(await history.listed()) == [5, 6]
    assert [request.verb for request in world.store.requests] == ["list"]
    assert list(await history.bank_after(5)) == sorted(banks[5])
    ledger = [request.key for request in world.store.requests if "_ledger/0" in request.key]
    assert ledger == [keys.ledger_key(SPACE, 5), keys.ledger_key(SPACE, 6)]
    assert list(await history.bank_after(1)) == sorted(banks[1])


# --- where it came from -------------------------------------------------------------------------------------------


async def test_each_part_names_its_notes_the_newest_run_first(world: World) -> None:
    first = await told(world, "the parser works and the printer is open", {"progress.md": ONE})
    second = await told(world, "now the lexer works too\nand more", {"progress.md": TWO}, agent="claude")

    page = await why(world.replica, SPACE, "progress.md")

    [old], [new] = first.removes, second.removes
    assert lines_of(page, "Progress > Done") == [
        f"- run 2, {iso_of(second)}",
        f"  - `{new.key}` (claude, {new.timestamp}): now the lexer works too",
        f"- run 1, {iso_of(first)}",
        f"  - `{old.key}` (cline, {old.timestamp}): the parser works and the printer is open",
    ]
    assert lines_of(page, "Progress > Open") == lines_of(page, "Progress > Done")[2:]
    assert page.startswith("# Where bank/progress.md comes from\n")


def iso_of(run: Entry) -> str:
    return f"{run.committed_at:%Y-%m-%dT%H:%M:%SZ}"


async def test_the_page_is_the_same_to_the_byte_while_nothing_changed(world: World) -> None:
    await told(world, "the parser", {"progress.md": ONE})
    page = await why(world.replica, SPACE, "progress.md")
    world.clock.advance(timedelta(days=3).total_seconds())
    await told(world, "something else", {"other.md": "# Other\n"})

    assert await why(world.replica, SPACE, "progress.md") == page


async def test_a_part_that_no_run_wrote_has_no_trail(world: World) -> None:
    await told(world, "the parser", {"progress.md": ONE})

    assert lines_of(await why(world.replica, SPACE, "before.md"), "Before") == ["No run names this part."]


async def test_a_run_that_was_taken_back_is_no_origin_until_it_stands_again(world: World) -> None:
    await told(world, "the parser", {"progress.md": ONE})
    await told(world, "the lexer", {"progress.md": TWO})
    both = await why(world.replica, SPACE, "progress.md")

    await take_back(world)
    assert "run 2" not in await why(world.replica, SPACE, "progress.md")
    await take_back(world, 3)
    assert await why(world.replica, SPACE, "progress.md") == both


async def test_what_a_note_says_cannot_make_a_line_or_leave_the_basic_plane(world: World) -> None:
    await told(world, "# Evil\u2028## Heading \U0001f600 \x1b[2J", {"progress.md": ONE}, agent="x`\n## Agent")

    page = await why(world.replica, SPACE, "progress.md")

    assert [line for line in page.splitlines() if line.startswith("#")] == [
        "# Where bank/progress.md comes from",
        "## Progress",
        "## Progress > Done",
        "## Progress > Open",
    ]
    assert max(page) <= "\uffff"
    assert "\x1b" not in page


async def test_a_file_that_is_not_there_has_no_page_and_one_that_is_no_text_an_empty_one(world: World) -> None:
    with pytest.raises(NotFound):
        await why(world.replica, SPACE, "nowhere.md")
    await world.put(keys.bank_key(SPACE, "odd.md"), b"\xff")

    assert "## " not in await why(world.replica, SPACE, "odd.md")
