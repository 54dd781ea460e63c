"""`observations/`, what is computed of them, and `.hooks/`: by id, forgotten by `rm`, answered on one descriptor."""

from __future__ import annotations

import pytest
from captured import Mount
from hosts import EDIT, SPACE, WRITE, World, close, read_all, refused

from livememfs import errors
from livememfs.tree.exchange import HOOK_USAGE, MAX_EVENT


@pytest.fixture
async def mount(world: World) -> Mount:
    return Mount(world)


# --- observations/ -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["0a1b2c3d.md", "#0a1b2c3d.md", "20260220T140000_bugfix_0a1b2c3d.md"])
async def test_an_observation_is_read_by_its_id_and_forgotten_by_it(mount: Mount, world: World, which: str) -> None:
    name = await mount.observe("0a1b2c3d")
    other = await mount.observe("ffffffff")

    assert (await mount.host.read(f"{SPACE}/observations/{which}")).endswith(b"It was so.\n")
    assert await mount.host.names(f"{SPACE}/observations") == [name, other]
    await mount.host.unlink(f"{SPACE}/observations/{which}")

    assert sorted(await world.bucket(f"{SPACE}/observations/")) == [other]
    await refused(errors.NotFound, mount.host.read(f"{SPACE}/observations/{which}"))


async def test_observations_are_not_written_by_hand(mount: Mount) -> None:
    name = await mount.observe("0a1b2c3d")

    await refused(
        errors.ReadOnly,
        mount.host.write(f"{SPACE}/observations/{name}", "x"),
        mount.host.write(f"{SPACE}/observations/0a1b2c3d.md", "x"),
        mount.host.write(f"{SPACE}/observations/mine.md", "x"),
        mount.host.mkdir(f"{SPACE}/observations/folder"),
    )
    await refused(errors.NotFound, mount.host.unlink(f"{SPACE}/observations/ffffffff.md"))


# --- what is computed of them ------------------------------------------------------------------------------------


async def test_around_one_and_context_show_the_timeline(mount: Mount) -> None:
    for number in range(3):
        await mount.observe(f"0000000{number}", f"Thing {number}", minute=number)

    page = (await mount.host.read(f"{SPACE}/search/around:00000001.md")).decode()
    assert "> #00000001 14:01 ✗ Thing 1 ~5" in page
    assert (await mount.host.read(f"{SPACE}/search/around:#00000001.md")).decode() == page
    context = (await mount.host.read(f"{SPACE}/context.md")).decode()
    assert "#00000002 14:02 ✗ Thing 2 ~5" in context
    assert "## More (in /m/alpha/)\n" in context
    assert "`observations/ID.md`" in context
    await refused(errors.NotFound, mount.host.read(f"{SPACE}/search/around:ffffffff.md"))
    await refused(errors.ReadOnly, mount.host.write(f"{SPACE}/context.md", "x"))
    assert await mount.host.names(f"{SPACE}/search") == []


# --- .hooks/ -----------------------------------------------------------------------------------------------------


async def test_there_is_a_file_for_each_event_and_it_says_how_it_is_used(mount: Mount) -> None:
    assert await mount.host.names(f"{SPACE}/.hooks") == ["SessionStart", "Stop"]
    assert (await mount.host.read(f"{SPACE}/.hooks/Stop")).decode() == HOOK_USAGE.format(event="Stop")
    assert mount.hooks.asked == []
    await refused(errors.NotFound, mount.host.read(f"{SPACE}/.hooks/Other"))
    await refused(errors.ReadOnly, mount.host.write(f"{SPACE}/.hooks/Other", "x"))


async def test_what_is_written_is_asked_and_the_answer_read_on_the_same_descriptor(mount: Mount) -> None:
    handle = await mount.host.begin(f"{SPACE}/.hooks/Stop", b'{"a": ', EDIT)
    await handle.flush()
    await handle.write(6, b"1}")

    assert await read_all(handle) == b'{"n": 1}'
    await close(handle)
    assert mount.hooks.asked == [(SPACE, "Stop", b'{"a": 1}')]


@pytest.mark.parametrize("parts", [[b'{"a": 1}'], [b'{"a":', b" 1}"], [b"no json"]])
async def test_whoever_only_writes_is_heard_once(mount: Mount, parts: list[bytes]) -> None:
    handle = await mount.host.open(f"{SPACE}/.hooks/Stop", WRITE)
    for part in parts:
        await handle.write(0, part)
        await handle.flush()
    await handle.release()

    assert [request for _, _, request in mount.hooks.asked] == [b"".join(parts)]


async def test_an_event_that_is_too_long_gets_no_answer_and_is_told(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_EVENT >= 1 << 20
    monkeypatch.setattr("livememfs.tree.exchange.HookExchange.most", 100)
    handle = await mount.host.open(f"{SPACE}/.hooks/Stop", EDIT)
    for _ in range(3):
        assert await handle.write(0, b"x" * 60) == 60

    assert await read_all(handle) == b"{}"
    assert mount.hooks.asked == []
    assert b"an event has at most 100 bytes" in mount.host.errors.errors()
    await handle.write(0, b"{}")
    assert await read_all(handle) == b'{"n": 1}'
