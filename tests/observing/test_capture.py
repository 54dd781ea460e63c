"""Capture: each event once, nothing private and nothing of our own kept, and a reason for what is left out.

What is looked at is the database itself, not what a reader would make of it.
"""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secrets_corpus import EXAMPLES

from livememfs.cache.database import Database
from livememfs.cache.inbox import Inbox
from livememfs.observing import capture as capture_module
from livememfs.observing.capture import (
    EMPTY,
    IN_A_THREAD,
    NOISY,
    NOT_OBSERVED,
    NOTIFICATION,
    OFF,
    ONLY_OURS,
    SUBAGENT,
    Capture,
    CaptureSettings,
    Said,
)
from livememfs.records.event import STORED_CHARACTERS, TOO_DEEP, Event, Kind
from livememfs.testing.clock import START, ManualClock
from livememfs.text.own import LEFT_OUT, fenced

SPACE, SESSION = "alpha", "s-1"


class World:
    """A way into an inbox in memory, and what was heard of it."""

    def __init__(self, **settings: Any) -> None:
        self.database = Database(None)
        self.inbox = Inbox(self.database)
        self.clock = ManualClock()
        self.woken: list[tuple[str, str]] = []
        self.redacted: list[tuple[str, tuple[str, ...]]] = []
        self.capture = Capture(
            self.inbox,
            self.clock,
            CaptureSettings(**settings),
            woken=lambda *place: self.woken.append(place),
            redacted=lambda *told: self.redacted.append(told),
        )

    async def take(self, kind: Any = "tool", session: str = SESSION, **fields: Any) -> Said:
        self.clock.advance(1)
        return await self.capture.take(SPACE, Said(session, kind, **fields))

    def rows(self) -> list[tuple[Any, ...]]:
        return self.database.rows("SELECT id, kind, state, reason, line FROM event ORDER BY seq")

    def events(self) -> list[Event]:
        return [Event.from_json(row[4]) for row in self.rows() if row[4] is not None]

    def everything(self) -> str:
        """All that the local state has, as text."""
        names = [name for (name,) in self.database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return repr([self.database.rows(f"SELECT * FROM {name}") for name in names])


@pytest.fixture
async def world() -> World:
    return World()


# --- ids ---------------------------------------------------------------------------------------------------------


async def test_a_tool_has_the_agents_own_id_and_the_fields_it_was_told_with(world: World) -> None:
    said = {"agent": "claude", "subagent": "a1", "project": "/p", "tool": "Edit", "input": {"x": 1}, "output": ["y"]}

    await world.take(id="toolu_1", **said)

    assert world.events() == [Event("toolu_1", SESSION, "tool", START.replace(second=1), tokens=8, **said)]


async def test_the_same_event_twice_is_one(world: World) -> None:
    for said in (
        {"id": "toolu_1", "tool": "Edit", "input": {"a": 1}},
        {"tool": "Edit", "input": {"b": 1}, "output": "x"},
        {"kind": "start", "text": "startup"},
        {"kind": "prompt", "text": "Mend it"},
        {"kind": "stop"},
    ):
        await world.take(**said)
        await world.take(**said)

    assert [row[1] for row in world.rows()] == ["tool", "tool", "start", "prompt", "stop"]
    assert world.capture.statistics() == {"captured": 5, "repeated": 5, "redacted": 0}


@pytest.mark.parametrize("other", [{"input": {"b": 2}}, {"output": "y"}, {"tool": "Write"}, {"id": "toolu_2"}])
async def test_a_tool_without_an_id_is_known_by_what_it_was_given_and_gave(world: World, other: dict[str, Any]) -> None:
    first = {"tool": "Edit", "input": {"b": 1}, "output": "x"}

    await world.take(**first)
    await world.take(**{**first, **other})

    assert len({row[0] for row in world.rows()}) == 2


@pytest.mark.parametrize("meanwhile", [{"kind": "tool", "tool": "Edit"}, {"kind": "stop"}, {"kind": "start"}])
async def test_the_same_prompt_later_in_a_session_is_another(world: World, meanwhile: dict[str, Any]) -> None:
    await world.take("prompt", text="Go on")
    await world.take("prompt", text="Go on")
    await world.take(**meanwhile)
    await world.take("prompt", text="Go on")
    await world.take("prompt", text="Go on")

    assert [row[1] for row in world.rows()].count("prompt") == 2


async def test_each_stop_after_something_new_is_another(world: World) -> None:
    await world.take("stop")
    await world.take("stop")
    await world.take("prompt", text="Go on")
    await world.take("stop")

    assert [row[1] for row in world.rows()] == ["stop", "prompt", "stop"]


async def test_the_same_command_run_again_is_another_event_and_told_twice_it_is_one(world: World) -> None:
    run = {"tool": "Shell", "input": {"command": "npm test"}, "output": "4 passed"}

    for _ in range(4):
        await world.take(**run)
        await world.take(**run)  # a second later: two hooks told of one run
        world.clock.advance(20)
    for seconds in (1, 2, 3):  # at once, each of another duration
        await world.take(**run, occasion=f"turn 1, {seconds} s")

    assert len(world.events()) == 4 + 3


async def test_what_an_agent_said_as_it_stopped_is_an_event_of_its_own_and_told_twice_it_is_one(world: World) -> None:
    for _ in range(2):
        await world.take("stop", text="We decide for Postgres")
    await world.take("prompt", text="Sure?")
    await world.take("stop", text="We decide for Postgres")

    assert [row[1] for row in world.rows()] == ["said", "stop", "prompt", "said", "stop"]
    assert world.events()[0].text == "We decide for Postgres"


async def test_a_prompt_is_kept_without_what_the_program_wrote_and_a_command_of_it_is_none(world: World) -> None:
    said = await world.take("prompt", text="Mend it<system-reminder>the date</system-reminder>")
    other = await world.take("prompt", text="/clear")

    assert [event.text for event in world.events()] == ["Mend it"]
    assert (said.skipped, other.skipped) == ("", NOTIFICATION)


async def test_what_an_agent_says_is_kept_also_where_it_looks_like_a_command_or_a_reminder(world: World) -> None:
    """Programs write into prompts alone."""
    await world.take("said", text="/clear")
    await world.take("said", text="Use <system-reminder>this tag</system-reminder> for it")

    assert [event.text for event in world.events()] == [
        "/clear",
        "Use <system-reminder>this tag</system-reminder> for it",
    ]


async def test_what_a_reminder_hides_does_not_close_what_is_private(world: World) -> None:
    await world.take("prompt", text="<system-reminder><private></system-reminder>hun" + "ter2 </private> a")

    assert "hun" + "ter2" not in world.everything()


async def test_sessions_have_ids_of_their_own(world: World) -> None:
    for session in ("s-1", "s-2"):
        await world.take(session=session, id="toolu_1", tool="Edit")

    assert len(world.events()) == 2


# --- what is private ---------------------------------------------------------------------------------------------

FIELDS: dict[str, Any] = {
    "input": lambda text: {"kind": "tool", "tool": "Bash", "input": {"command": text}},
    "input deep in it": lambda text: {"kind": "tool", "tool": "X", "input": {"a": [{"b": [text]}]}},
    "a name in the input": lambda text: {"kind": "tool", "tool": "X", "input": {text: 1}},
    "input as text": lambda text: {"kind": "tool", "tool": "X", "input": text},
    "output": lambda text: {"kind": "tool", "tool": "X", "output": text},
    "output deep in it": lambda text: {"kind": "tool", "tool": "X", "output": {"stdout": [text], "code": 0}},
    "prompt": lambda text: {"kind": "prompt", "text": text},
    "start": lambda text: {"kind": "start", "text": text},
    "stop": lambda text: {"kind": "stop", "text": text},
    "tool": lambda text: {"kind": "tool", "tool": text},
    "project": lambda text: {"kind": "tool", "tool": "X", "project": text},
    "only counted": lambda text: {"kind": "prompt", "text": text, "skipped": "x"},
    "not observed": lambda text: {"kind": "tool", "tool": "TodoWrite", "input": text},
    "large": lambda text: {"kind": "tool", "tool": "X", "output": f"{text}\n{'x ' * IN_A_THREAD}"},
}


@pytest.mark.parametrize("field", FIELDS)
async def test_nothing_private_gets_into_the_local_state_by_any_field(field: str) -> None:
    world = World(skip_tools=frozenset({"todowrite"}))
    hidden = "my <Private >hun" + "ter2 and more"  # never closed

    said = await world.take(**FIELDS[field](hidden))

    assert "hun" + "ter2" not in world.everything()
    assert "hun" + "ter2" not in repr(said)
    assert world.redacted == [(SPACE, ("private",))]
    assert world.capture.statistics()["redacted"] == 1


@pytest.mark.parametrize("kind", EXAMPLES)
async def test_no_credential_of_any_kind_gets_into_the_local_state(kind: str) -> None:
    text, secret, _ = EXAMPLES[kind]
    world = World()

    await world.take(tool="Bash", input={"command": text}, output={"stdout": text})
    await world.take("prompt", text=text)

    found = world.everything()
    assert secret not in found
    assert json.dumps(secret)[1:-1] not in found
    assert len(world.events()) == 2
    assert world.redacted


async def test_a_private_block_that_shortening_would_cut_is_gone_before(world: World) -> None:
    await world.take(tool="X", output="x" * 9_000 + "<private>" + "secret " * 2_000 + "</private>" + "y" * 9_000)

    assert "secret" not in world.everything()


async def test_what_is_not_private_is_not_told_of(world: World) -> None:
    await world.take("prompt", text="a private matter, and a password")

    assert (world.redacted, world.events()[0].text) == ([], "a private matter, and a password")


# --- our own words -----------------------------------------------------------------------------------------------


async def test_context_that_we_gave_is_left_out_of_every_text(world: World) -> None:
    block = fenced("- what was known")

    await world.take("prompt", text=f"{block}Mend it")
    await world.take(tool="Bash", input={"command": "cat context.md"}, output={"stdout": f"a\n{block}"})
    await world.take(tool="Task", input={"prompt": block}, output=[block])

    assert "what was known" not in world.everything()
    prompt, tool = world.events()
    assert prompt.text == f"{LEFT_OUT}\nMend it"
    assert tool.output == {"stdout": f"a\n{LEFT_OUT}\n"}
    assert world.rows()[2][3] == ONLY_OURS  # nothing but our words came out


@pytest.mark.parametrize("name", ["file_path", "path"])
@pytest.mark.parametrize(("path", "ours"), [("/m/alpha/context.md", True), ("/m", True), ("/mine/a.md", False)])
async def test_a_tool_that_only_looks_at_the_mount_is_not_captured(name: str, path: str, ours: bool) -> None:
    world = World(mounted="/m")

    await world.take(tool="Read", input={name: path}, output="what was known")

    assert [row[3] for row in world.rows()] == [ONLY_OURS if ours else ""]


async def test_without_a_mount_nothing_lies_in_it(world: World) -> None:
    await world.take(tool="Read", input={"file_path": "/m/alpha/context.md"})

    assert len(world.events()) == 1


# --- why not -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (EMPTY, {"kind": "prompt", "text": " \n"}),
        (EMPTY, {"kind": "prompt"}),
        (NOTIFICATION, {"kind": "prompt", "text": "\n<task-notification>done</task-notification>"}),
        (NOTIFICATION, {"kind": "prompt", "text": "<local-command-stdout>x"}),
        (NOTIFICATION, {"kind": "prompt", "text": "<system-notification>"}),
        (NOISY, {"kind": "tool", "tool": "TodoWrite"}),
        (ONLY_OURS, {"kind": "tool", "tool": "Read", "input": {"file_path": "/m/a"}}),
        (SUBAGENT, {"kind": "stop", "skipped": SUBAGENT}),
        (NOT_OBSERVED, {"kind": "tool", "skipped": NOT_OBSERVED}),
    ],
)
async def test_what_is_left_out_is_counted_with_its_reason_and_nothing_of_it_is_kept(
    reason: str, said: dict[str, Any]
) -> None:
    world = World(skip_tools=frozenset({"todowrite"}), mounted="/m")

    await world.take(**said)

    assert [row[1:] for row in world.rows()] == [(said["kind"], "skipped", reason, None)]
    assert world.inbox.statistics().skipped == {reason: 1}
    assert world.capture.statistics()["captured"] == 0


async def test_when_observing_is_off_tools_are_counted_and_the_rest_is_kept() -> None:
    world = World(observe=False)

    await world.take("start", text="startup")
    await world.take("prompt", text="Mend it")
    await world.take(tool="Edit")
    await world.take("stop")

    assert [row[3] for row in world.rows()] == ["", "", OFF, ""]


async def test_what_is_only_counted_is_counted_each_time(world: World) -> None:
    for _ in range(3):
        await world.take(skipped=NOT_OBSERVED)

    assert world.inbox.statistics().skipped == {NOT_OBSERVED: 3}


async def test_an_angle_bracket_does_not_make_a_notification(world: World) -> None:
    await world.take("prompt", text="<task> is a tag, what does it do? See <task-notification>")

    assert len(world.events()) == 1


# --- what is large, and what is odd ------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["word " * 1_000_000, {"stdout": "word " * 1_000_000}, ["word " * 20] * 50_000])
async def test_a_huge_output_is_shortened_and_its_cost_is_that_of_the_whole(world: World, output: Any) -> None:
    await world.take(tool="Bash", input={"command": "yes"}, output=output)

    (event,) = world.events()
    assert len(world.rows()[0][4]) < 2 * STORED_CHARACTERS
    assert "characters left out" in str(event.output)
    assert event.tokens >= 1_000_000


async def test_what_is_large_is_cleaned_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    world, threads = World(), []
    run_sync = capture_module.trio.to_thread.run_sync

    async def counted(*args: Any) -> Any:
        threads.append(args)
        return await run_sync(*args)

    monkeypatch.setattr("trio.to_thread.run_sync", counted)

    await world.take(tool="X", output="x" * (IN_A_THREAD - 1))
    assert threads == []
    await world.take(tool="X", output="x" * (IN_A_THREAD + 1))
    assert len(threads) == 1


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "prompt", "text": "a \ud83d b"},
        {"tool": "X", "input": {"\ud83d": "\udc1b"}},
        {"tool": "X", "output": "\udcff", "id": "toolu_\udcff"},
        {"tool": "X\ud83d", "project": "/p/\udcff", "agent": "\udcff", "subagent": "\udcff"},
    ],
)
async def test_half_a_character_costs_no_event_and_nothing_of_it_is_kept(world: World, said: dict[str, Any]) -> None:
    """JSON can spell what neither a database nor a bucket can store: another character takes its place."""
    await world.take(**said)

    (event,) = world.events()
    kept = {name: getattr(event, name) for name in {**said, "kind": ""}}
    assert kept == json.loads(re.sub(r"\\ud[89a-f]..", r"\\ufffd", json.dumps({**said, "kind": event.kind})))


async def test_a_value_nested_without_end_costs_no_event_and_says_where_it_was_cut() -> None:
    value: Any = "x"
    for _ in range(100_000):
        value = [value]
    world = World()

    await world.take(tool="X", input=value, output={"x": value})

    (event,) = world.events()
    assert TOO_DEEP in str(event.input)
    assert TOO_DEEP in str(event.output)


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(alphabet=st.characters()),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(alphabet=st.characters()), one, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(get_args(Kind)), values, values, st.text(alphabet=st.characters()))
def test_whatever_is_told_is_one_row_that_can_be_read_back(kind: Any, put: Any, got: Any, text: str) -> None:
    import trio

    world = World()
    trio.run(lambda: world.take(kind, tool="X", input=put, output=got, text=text))

    words = kind == "stop" and bool(text.strip())
    assert [row[1] for row in world.rows()] == ["said"] * words + [kind]
    assert len(world.events()) == [row[2] for row in world.rows()].count("waiting")


# --- who hears of it ---------------------------------------------------------------------------------------------


async def test_the_observer_is_woken_by_new_events_alone() -> None:
    world = World(skip_tools=frozenset({"todowrite"}))

    await world.take(id="t1", tool="Edit")
    await world.take(id="t1", tool="Edit")
    await world.take(tool="TodoWrite")
    await world.take("prompt", text="")
    await world.take("stop", session="s-2")

    assert world.woken == [(SPACE, "s-1"), (SPACE, "s-2")]
