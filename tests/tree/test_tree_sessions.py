"""`sessions/`: what any agent can do with files alone, and what it cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from captured import EVENTS, MINE, PROMPTS, SESSIONS, STOP, Mount
from hosts import APPEND, EDIT, REPLACE, SPACE, WRITE, Host, World, close, refused

from livememfs import errors
from livememfs.observing.capture import EMPTY
from livememfs.records import keys
from livememfs.records.event import Event
from livememfs.records.session import Session
from livememfs.testing.clock import START
from livememfs.tree.node import AttrChange, Caller, File


@pytest.fixture
async def mount(world: World) -> Mount:
    made = Mount(world)
    await made.host.mkdir(MINE)
    return made


# --- the folder of a session -------------------------------------------------------------------------------------


async def test_mkdir_begins_a_session(mount: Mount, world: World) -> None:
    session = Session.parse(
        (await world.bucket(f"{MINE}/"))["session.json"], space="", session="", now=world.clock.now()
    )

    assert (session.id, session.agent, session.status, session.created_at) == ("s-1", "me", "active", START)
    assert await mount.host.names(SESSIONS) == ["s-1"]
    assert await mount.host.names(MINE) == [".stop", "events", "prompts.ndjson", "session.json"]
    assert json.loads(await mount.host.read(f"{MINE}/session.json"))["session_id"] == "s-1"


@pytest.mark.parametrize("name", ["a b", "é", ".x", "x.", "x" * 65, "a:b", "-"])
async def test_a_name_that_could_be_no_key_begins_none(mount: Mount, name: str) -> None:
    await refused(errors.InvalidName, mount.host.mkdir(f"{SESSIONS}/{name}"), match="up to 64")


async def test_a_session_that_is_there_is_not_begun_again(mount: Mount) -> None:
    await refused(errors.AlreadyExists, mount.host.mkdir(MINE))


async def test_what_the_observer_writes_cannot_be_written_by_hand(mount: Mount, world: World) -> None:
    await mount.put(f"{MINE}/summary.md", b"## Completed\n\nall\n")
    host = mount.host

    for change in (
        host.write(f"{MINE}/session.json", "x"),
        host.write(f"{MINE}/summary.md", "x", APPEND),
        host.write(f"{MINE}/new.md", "x"),
        host.mkdir(f"{MINE}/folder"),
        host.rename(f"{MINE}/summary.md", f"{MINE}/other.md"),
        host.unlink(f"{MINE}/session.json"),
        host.rmdir(EVENTS),
    ):
        with pytest.raises(errors.LiveMemError) as caught:
            await change
        assert isinstance(caught.value, errors.ReadOnly | errors.NotPermitted), caught.value
    assert await host.read(f"{MINE}/summary.md") == b"## Completed\n\nall\n"
    await refused(errors.NotPermitted, host.write(f"{SESSIONS}/file", "x"))


async def test_a_summary_may_be_forgotten(mount: Mount, world: World) -> None:
    await mount.put(f"{MINE}/summary.md", b"x")

    await mount.host.unlink(f"{MINE}/summary.md")

    assert sorted(await world.bucket(f"{MINE}/")) == ["session.json"]


async def test_a_session_of_a_hook_is_called_by_its_own_id(mount: Mount, world: World) -> None:
    slug = keys.session_slug("an id / with blanks")
    session = Session("an id / with blanks", SPACE, START, START)
    await mount.put(keys.session_key(SPACE, slug), session.render())

    await mount.host.write(f"{SESSIONS}/{slug}/events/e", "x")

    assert mount.events()[0].session == "an id / with blanks"


# --- events/ -----------------------------------------------------------------------------------------------------


async def test_a_file_of_json_is_an_event(mount: Mount) -> None:
    given = {"tool": "Edit", "input": {"file_path": "a"}, "output": ["ok"], "id": "e1", "project": "/p"}

    event = await mount.event(json.dumps(given))

    assert event == Event("e1", "s-1", "tool", START, "codex", "", "/p", "Edit", {"file_path": "a"}, ["ok"], tokens=10)


async def test_the_fields_of_a_hook_are_understood(mount: Mount) -> None:
    given = {"tool_name": "Edit", "tool_input": {"a": 1}, "tool_response": "ok", "tool_use_id": "t1", "cwd": "/p",
             "agent_id": "a1", "session_id": "of somebody else"}  # fmt: skip

    event = await mount.event(json.dumps(given))

    assert (event.tool, event.input, event.output, event.id) == ("Edit", {"a": 1}, "ok", "t1")
    assert (event.project, event.subagent, event.session) == ("/p", "a1", "s-1")


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ("I looked at the login.\n", "I looked at the login.\n"),
        ("{ not json", "{ not json"),
        ("[1, 2]", "[1, 2]"),
        ('{"what": "x", "why": 7}', {"what": "x", "why": 7}),
        ("[" * 100_000, None),
        (r'{"output": "half \ud83d"}', "half \ufffd"),
    ],
    ids=["text", "a bracket", "a list", "other fields", "too deep", "half a character"],
)
async def test_whatever_else_is_written_is_a_note(mount: Mount, data: str, output: Any) -> None:
    event = await mount.event(data)

    assert (event.kind, event.tool) == ("tool", "note")
    assert output is None or event.output == output


async def test_a_file_stays_visible_and_is_one_event_however_it_is_written(mount: Mount) -> None:
    handle = await mount.host.open(f"{EVENTS}/e.json", WRITE)
    await handle.flush()  # a shell has duplicated the descriptor
    await handle.write(0, b'{"tool": "Edit", ')
    await handle.flush()
    await handle.write(17, b'"output": "x"}')
    await handle.flush()
    await close(handle)

    assert [one.output for one in mount.events()] == ["x"]
    assert await mount.host.read(f"{EVENTS}/e.json") == b'{"tool": "Edit", "output": "x"}'
    assert await mount.host.names(EVENTS) == ["e.json"]
    await mount.host.unlink(f"{EVENTS}/e.json")
    assert await mount.host.names(EVENTS) == []
    assert len(mount.events()) == 1


@pytest.mark.parametrize("temporary", ["e.json.tmp", ".e.json.swp", "e.json~"])
async def test_a_temporary_file_is_an_event_when_it_gets_its_name(mount: Mount, temporary: str) -> None:
    held = await mount.host.folder(EVENTS)  # as a kernel does: what was dropped is shown for so long
    await mount.host.write(f"{EVENTS}/{temporary}", '{"output": "x"}')
    assert mount.rows() == []

    await mount.host.rename(f"{EVENTS}/{temporary}", f"{EVENTS}/e.json")

    assert [one.output for one in mount.events()] == ["x"]
    assert [name for name, _ in await held.children()] == ["e.json"]
    await mount.host.rename(f"{EVENTS}/e.json", f"{EVENTS}/f.json")
    assert len(mount.events()) == 1


@pytest.mark.parametrize("data", [b"\xff\xfe", b'{"output": "\xff"}', b"text \xc3"])
async def test_what_is_no_utf_8_is_refused_once_when_it_is_closed(mount: Mount, data: bytes) -> None:
    handle = await mount.host.begin(f"{EVENTS}/e.json", data)

    await refused(errors.NotText, handle.flush(), match="UTF-8")
    await handle.release()

    assert mount.rows() == []


async def test_an_empty_file_is_no_event(mount: Mount) -> None:
    await mount.host.write(f"{EVENTS}/e.json", "")
    await mount.host.write(f"{EVENTS}/f.json", " \n")

    assert mount.rows() == []


async def test_events_have_no_folders_and_leave_for_nowhere(mount: Mount) -> None:
    await mount.host.write(f"{EVENTS}/e", "x")

    await refused(errors.NotPermitted, mount.host.mkdir(f"{EVENTS}/folder"))
    await refused(errors.LiveMemError, mount.host.rename(f"{EVENTS}/e", f"{SPACE}/e"))
    await refused(errors.NotFound, mount.host.unlink(f"{EVENTS}/nothing"))


# --- prompts.ndjson ----------------------------------------------------------------------------------------------


async def test_each_line_that_is_appended_is_a_prompt(mount: Mount) -> None:
    await mount.host.write(PROMPTS, '{"prompt": "Mend it", "id": "p1"}\n', APPEND, pid=7)
    await mount.host.write(PROMPTS, 'And test it\n\n{"text": "Go\\non"}\n', APPEND)
    await mount.host.write(PROMPTS, '{"prompt": "Mend it", "id": "p1"}\n', APPEND)  # is known already

    assert [(one.kind, one.text) for one in mount.events()] == [
        ("prompt", "Mend it"),
        ("prompt", "And test it"),
        ("prompt", "Go\non"),
    ]
    assert (mount.events()[0].id, mount.events()[0].agent) == ("p1", "codex")


async def test_a_line_ends_where_files_end_lines(mount: Mount) -> None:
    await mount.host.write(PROMPTS, '{"prompt": "one\u2028two"}\r\nthree\x0cfour\r\n', APPEND)

    assert [one.text for one in mount.events()] == ["one\u2028two", "three\x0cfour"]


async def test_a_line_without_a_prompt_is_counted(mount: Mount) -> None:
    await mount.host.write(PROMPTS, '{"role": "user"}\n', APPEND)

    assert mount.rows() == [("s-1", "prompt", "skipped", EMPTY)]


async def test_prompts_are_read_as_the_bucket_has_them_and_must_be_text(mount: Mount, world: World) -> None:
    assert await mount.host.read(PROMPTS) == b""
    await mount.put(PROMPTS, b'{"prompt": "x"}\n')

    assert await mount.host.read(PROMPTS) == b'{"prompt": "x"}\n'
    await refused(errors.NotText, mount.host.write(PROMPTS, b"\xff\n", APPEND))


# --- .stop -------------------------------------------------------------------------------------------------------


async def touch(host: Host) -> None:
    """As `touch` does: it opens, sets the time, and closes."""
    handle = await host.open(STOP, WRITE)
    node = await host.node(STOP)
    await node.change(AttrChange(mtime_ns=1), Caller())
    await close(handle)


async def test_a_touch_is_one_stop_and_asks_for_what_was_given_up(mount: Mount) -> None:
    await touch(mount.host)

    assert mount.rows() == [("s-1", "stop", "waiting", "")]
    assert set(mount.observer.asked) == {(SPACE, "s-1")}

    await mount.event("something new")
    await touch(mount.host)
    assert [row[1] for row in mount.rows()] == ["stop", "tool", "stop"]


@pytest.mark.parametrize("mode", [WRITE, REPLACE, APPEND, EDIT])
async def test_whatever_is_written_to_it_is_a_stop_and_says_nothing(mount: Mount, mode: Any) -> None:
    await mount.host.write(STOP, "now!", mode)

    assert mount.rows() == [("s-1", "stop", "waiting", "")]
    assert "now!" not in str(mount.events())


async def test_whoever_only_looks_stops_nothing_and_sees_how_it_stands(mount: Mount) -> None:
    await mount.event("one", "a")
    await mount.event("two", "b")
    node = await mount.host.node(STOP)
    assert isinstance(node, File)

    await node.change(AttrChange(mode=0o600), Caller())
    await node.attrs()

    assert json.loads(await mount.host.read(STOP)) == {"waiting": 2}
    assert [row[1] for row in mount.rows()] == ["tool", "tool"]
    assert mount.observer.asked == []
