"""What of the told came back: named, written, its file touched; once a session, and nothing of what was known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import trio

from livememfs.observing.evidence import MOST_FILES, MOST_KNOWN, MOST_SESSIONS, MOST_TOLD, MOST_WAITING, TURNS, Evidence
from livememfs.recall.turn.inject import Candidate, Telling, cost_of
from livememfs.records.event import Event

SPACE = "alpha"
AT = datetime(2026, 2, 20, tzinfo=UTC)
PORT = Candidate(
    "alpha/memories/20260220T140000_fact_0123abcd", "relevant", "the database listens on port 5433 since the VPN came"
)
WORKER = Candidate(
    "alpha/observations/20260220T150000_bugfix_1a2b3c4d", "file", "the worker lost its lease", files=("src/worker.py",)
)
SECTION = Candidate("alpha/bank/stack.md#Queue~0123abcd", "bank", "NATS JetStream carries every message")


class Session:
    """One session that was told something, and what of that was used."""

    def __init__(self) -> None:
        self.costs: list[tuple[str, int]] = []
        self.used: list[str] = []
        self.seen = trio.Event()
        self.evidence = Evidence(self._told, self._used)

    def _told(self, space: str, costs: Any) -> None:
        assert space == SPACE
        self.costs += costs

    def _used(self, space: str, records: Sequence[str]) -> None:
        assert space == SPACE
        self.used += records
        self.seen.set()

    async def told(self, *records: Candidate, asked: str = "how do I begin?", session: str = "s") -> None:
        self.evidence.tells(Telling(SPACE, session, asked, records))
        await self.evidence.settle()

    async def does(self, kind: Any, text: str = "", session: str = "s", **fields: Any) -> list[str]:
        """What an event uses."""
        before = len(self.used)
        self.evidence.heard(SPACE, Event("e", session, kind, AT, text=text, **fields))
        await self.evidence.settle()
        return self.used[before:]


@pytest.fixture
def here() -> Session:
    return Session()


async def test_a_telling_counts_what_it_cost_and_uses_nothing(here: Session) -> None:
    await here.told(PORT, WORKER)

    assert here.costs == [(PORT.id, cost_of(PORT)), (WORKER.id, cost_of(WORKER))]
    assert min(cost for _, cost in here.costs) > 5
    assert here.used == []


async def test_what_the_agent_says_is_used_once(here: Session) -> None:
    await here.told(PORT, WORKER, SECTION)

    assert await here.does("said", "I set the port to 5433, as the VPN has the other one.") == [PORT.id]
    assert await here.does("said", "Again: the port is 5433, because of the VPN.") == []
    assert await here.does("said", "JetStream of NATS carries it.") == [SECTION.id]


@pytest.mark.parametrize("name", ["20260220T140000_fact_0123abcd", "memories/20260220T140000_fact_0123abcd.md"])
async def test_a_record_that_is_named_is_used(here: Session, name: str) -> None:
    await here.told(PORT)

    assert await here.does("said", f"as {name} says") == [PORT.id]


async def test_a_short_name_is_one_only_with_its_folder(here: Session) -> None:
    await here.told(Candidate("alpha/memories/port", "relevant", "it is 5433"))

    assert await here.does("said", "which port is it? see live/port") == []
    assert await here.does("said", "as memories/port.md says") == ["alpha/memories/port"]


async def test_an_observation_is_named_as_timelines_name_it(here: Session) -> None:
    await here.told(WORKER)

    assert await here.does("said", "1a2b3c4d is just a number") == []
    assert await here.does("said", "see #1a2b3c4d") == [WORKER.id]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Edit", {"file_path": "/p/a.env", "old_string": "PORT=5432", "new_string": "PORT=5433 # database: VPN"}),
        ("Bash", {"command": "psql --port 5433 -c 'select 1' # the VPN's database"}),
        ("mcp__db__query", {"options": [{"dsn": "database on port 5433"}]}),
    ],
)
async def test_what_it_writes_with_a_tool_is_used(here: Session, tool: str, given: Any) -> None:
    await here.told(PORT)

    assert await here.does("tool", tool=tool, input=given) == [PORT.id]


async def test_what_an_editor_replaces_was_not_taken_from_memory(here: Session) -> None:
    await here.told(PORT)
    given = {"file_path": "/p/a.env", "old_string": "PORT=5433 # database", "new_string": "# removed"}

    assert await here.does("tool", tool="Edit", input=given) == []


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/home/u/project/src/worker.py"}),
        ("Edit", {"file_path": "src/worker.py", "old_string": "a", "new_string": "b"}),
        ("Bash", {"command": "python src/worker.py --once"}),
    ],
)
async def test_a_file_that_a_record_is_about_uses_it(here: Session, tool: str, given: Any) -> None:
    await here.told(WORKER, PORT)

    assert await here.does("tool", tool=tool, input=given, project="/home/u/project") == [WORKER.id]
    assert await here.does("tool", tool=tool, input=given, project="/home/u/project") == []


@pytest.mark.parametrize("path", ["/p/src/other.py", "/p/src/network.py", "/p/worker.pyc", "/p/src/worker.py/x"])
async def test_another_file_does_not(here: Session, path: str) -> None:
    await here.told(WORKER)

    assert await here.does("tool", tool="Read", input={"file_path": path}) == []


@pytest.mark.parametrize("asked", ["/home/u/project/src/worker.py", "what is wrong with worker.py?"])
async def test_a_file_that_was_asked_about_would_have_been_opened_anyway(here: Session, asked: str) -> None:
    await here.told(WORKER, asked=asked)

    assert await here.does("tool", tool="Read", input={"file_path": "/home/u/project/src/worker.py"}) == []


async def test_a_name_that_every_folder_has_says_nothing(here: Session) -> None:
    await here.told(Candidate("alpha/live/n", "live", "look", files=("README.md", "pkg/__init__.py")))

    assert await here.does("tool", tool="Read", input={"file_path": "/p/lib/README.md"}) == []
    assert await here.does("tool", tool="Read", input={"file_path": "/p/pkg/__init__.py"}) == ["alpha/live/n"]


@pytest.mark.parametrize("knows", ["asks", "is asked", "reads"])
async def test_what_a_session_has_from_elsewhere_is_no_use(here: Session, knows: str) -> None:
    known = "PORT=5433 for the database, since the VPN came"
    await here.told(PORT, asked=known if knows == "asks" else "how?")
    if knows == "is asked":
        await here.does("prompt", known)
    if knows == "reads":
        assert await here.does("tool", tool="Read", input={"file_path": "/p/.env"}, output=known) == []

    assert await here.does("said", "The database has port 5433, since the VPN came.") == []


async def test_what_it_wrote_before_it_read_the_same_is_used(here: Session) -> None:
    await here.told(PORT)
    given = {"command": "psql --port 5433 # the VPN's database"}

    assert await here.does("tool", tool="Bash", input=given, output="connected to port 5433, VPN database") == [PORT.id]


@pytest.mark.parametrize(("prompts", "used"), [(TURNS - 1, [PORT.id]), (TURNS, [])])
async def test_words_that_come_back_after_many_turns_are_chance(here: Session, prompts: int, used: list[str]) -> None:
    await here.told(PORT, WORKER)
    for number in range(prompts):
        await here.does("prompt", f"go on {number}")

    assert await here.does("said", "port 5433, because of the VPN") == used
    assert await here.does("said", "see #1a2b3c4d") == [WORKER.id]


@pytest.mark.parametrize(("files", "used"), [(MOST_FILES, ["alpha/live/n"]), (MOST_FILES + 1, [])])
async def test_a_record_that_is_about_many_files_is_about_none(here: Session, files: int, used: list[str]) -> None:
    await here.told(Candidate("alpha/live/n", "live", "look", files=tuple(f"src/f{n}.py" for n in range(files))))

    assert await here.does("tool", tool="Read", input={"file_path": "/p/src/f0.py"}) == used


async def test_the_name_of_a_file_that_is_read_is_nothing_that_was_written(here: Session) -> None:
    await here.told(PORT)
    given = {"file_path": "/p/database/port-5433/vpn.conf"}

    assert await here.does("tool", tool="Read", input=given) == []
    assert await here.does("tool", tool="Grep", input=given) == [PORT.id]


async def test_a_record_that_is_told_again_has_its_words_for_itself(here: Session) -> None:
    """Counted twice, they would be words of several records."""
    for _ in range(5):
        await here.told(PORT)

    assert await here.does("said", "port 5433, because of the VPN") == [PORT.id]


async def test_another_session_and_another_space_use_nothing(here: Session) -> None:
    await here.told(PORT)

    assert await here.does("said", "port 5433, because of the VPN", session="another") == []
    here.evidence.heard("beta", Event("e", "s", "said", AT, text="port 5433, because of the VPN"))
    await here.evidence.settle()
    assert here.used == []


async def test_what_is_told_again_is_not_used_again(here: Session) -> None:
    await here.told(PORT)
    await here.does("said", "port 5433, because of the VPN")
    await here.told(PORT)

    assert await here.does("said", "port 5433, because of the VPN") == []
    assert len(here.costs) == 2


async def test_everything_is_bounded(here: Session) -> None:
    """A flood of events, of sessions, of records, of words, and inputs without an end."""
    for number in range(MOST_SESSIONS + 10):
        await here.told(PORT, session=f"s{number}")
    assert await here.does("said", "port 5433, because of the VPN", session="s0") == []
    many = [Candidate(f"alpha/live/n{number}", "live", f"word{number} thing{number}") for number in range(MOST_TOLD)]
    await here.told(PORT, *many)
    assert await here.does("said", "port 5433, because of the VPN") == []
    assert await here.does("said", "thing7 word7") == ["alpha/live/n7"]
    deep: Any = "word8 thing8"
    for _ in range(2_000):
        deep = {"a": [deep]}
    assert await here.does("tool", tool="x", input=deep) == []
    for start in range(0, MOST_KNOWN + 900, 900):
        await here.does("tool", tool="x", output=" ".join(f"{n:06}" for n in range(start, start + 900)))
    assert await here.does("said", "thing9 word9") == []
    for _ in range(MOST_WAITING + 5):
        here.evidence.heard(SPACE, Event("e", "s", "said", AT, text="x"))
    assert here.evidence.statistics()["passed_over"] == 5
    assert here.evidence.statistics()["waiting"] == MOST_WAITING


async def test_it_runs_by_itself_after_whoever_reported_has_gone_on(here: Session) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.evidence.run)
        here.evidence.tells(Telling(SPACE, "s", "?", (PORT,)))
        here.evidence.heard(SPACE, Event("e", "s", "said", AT, text="port 5433, because of the VPN"))
        assert (here.costs, here.used) == ([], [])
        with trio.fail_after(10):
            await here.seen.wait()
        nursery.cancel_scope.cancel()
    assert here.evidence.statistics() == {"said": 1, "file": 0, "passed_over": 0, "waiting": 0}


async def test_it_takes_no_time_from_whoever_waits_for_an_answer(here: Session, autojump_clock: trio.abc.Clock) -> None:
    answered = trio.Event()
    here.evidence = Evidence(here._told, here._used, answered.wait)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.evidence.run)
        here.evidence.tells(Telling(SPACE, "s", "?", (PORT,)))
        await trio.sleep(60)
        assert (here.costs, here.evidence.statistics()["waiting"]) == ([], 1)
        answered.set()
        here.evidence.heard(SPACE, Event("e", "s", "said", AT, text="port 5433, because of the VPN"))
        await here.seen.wait()
        nursery.cancel_scope.cancel()
    assert len(here.costs) == 1
