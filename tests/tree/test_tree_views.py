"""`.by/`, `.recent/` and `.contradictions/`: the same memories by another order, right at each look."""

from __future__ import annotations

import posixpath
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import trio
from hosts import Host, World, refused
from trio.abc import Clock

from livememfs import errors
from livememfs.memories.storing import id_of
from livememfs.text import frontmatter
from livememfs.tree.node import NOBODY, Directory, Symlink
from livememfs.tree.root import Root
from livememfs.tree.space import shelf

FOLDER = "alpha/memories"
BY = f"{FOLDER}/.by"


async def remember(here: Host, name: str, **fields: object) -> str:
    """Store a memory; its id."""
    before = {name for name in await here.names(FOLDER) if name.endswith(".md")}
    await here.write(f"{FOLDER}/{name}", frontmatter.join(fields, f"text of {name}"))
    (new,) = {name for name in await here.names(FOLDER) if name.endswith(".md")} - before
    return id_of(new)


async def shown(here: Host, path: str) -> set[str]:
    """The ids that a view shows; each link leads to its file, and is found under its name."""
    ids = set()
    for name, node in await (await here.folder(path)).children():
        assert isinstance(node, Symlink)
        target = posixpath.normpath(posixpath.join(path, await node.target()))
        assert posixpath.dirname(target) == FOLDER
        assert b"text of" in await here.read(target)
        assert await here.node(f"{path}/{name}") is node
        ids.add(name.removesuffix(".md"))
    return ids


async def test_the_types_there_are_have_a_directory_each(here: Host) -> None:
    one, two = await remember(here, "one"), await remember(here, "two")
    choice = await remember(here, "decision-three")

    assert await here.names(BY) == ["importance", "subject", "type"]
    assert await here.names(f"{BY}/type") == ["decision", "fact"]
    assert await shown(here, f"{BY}/type/fact") == {one, two}
    assert await shown(here, f"{BY}/type/decision") == {choice}
    assert await shown(here, f"{BY}/type/event") == set(), "a type without a memory is an empty directory"
    await refused(errors.NotFound, here.node(f"{BY}/type/poem"), here.node(f"{BY}/type/fact/{choice}.md"))


async def test_a_subject_is_found_however_it_is_written(here: Host) -> None:
    one = await remember(here, "one", subjects=["David", "either/or", ".."])
    two = await remember(here, "two", subjects=["david", "Élise"])

    assert await here.names(f"{BY}/subject") == ["david", "either-or", "élise"]
    assert await shown(here, f"{BY}/subject/david") == await shown(here, f"{BY}/subject/David") == {one, two}
    assert await shown(here, f"{BY}/subject/Élise") == {two}
    await refused(errors.NotFound, here.node(f"{BY}/subject/nobody"))


async def test_a_memory_is_as_important_as_it_was_written_whatever_its_age_and_use(world: World, here: Host) -> None:
    high = await remember(here, "high", importance=0.9)
    ageing = await remember(here, "ageing", importance=0.8)
    used = await remember(here, "used", importance=0.79)
    who = await remember(here, "identity-who")
    low = await remember(here, "low", importance=0.3)

    assert await here.names(f"{BY}/importance") == ["high", "low", "medium"]
    assert await shown(here, f"{BY}/importance/high") == {high, ageing, who}
    assert await shown(here, f"{BY}/importance/low") == {low}

    world.clock.advance(days=75)
    uses = SimpleNamespace(of=lambda space, name: (31, None) if name == used else (0, None))
    here.context = replace(here.context, uses=uses)
    here.root = Root(here.context)
    assert await shown(here, f"{BY}/importance/high") == {high, ageing, who}
    assert await shown(here, f"{BY}/importance/medium") == {used}
    await refused(errors.NotFound, here.node(f"{BY}/importance/highest"))


async def test_what_was_made_in_the_last_six_hours_is_recent(world: World, here: Host) -> None:
    old = await remember(here, "old")
    world.clock.advance(5 * 3600)
    new = await remember(here, "new")
    recent = f"{FOLDER}/.recent"

    assert await here.names(recent) == ["6h"]
    assert await shown(here, f"{recent}/6h") == {old, new}
    assert await shown(here, f"{recent}/1h") == await shown(here, f"{recent}/90m") == {new}
    world.clock.advance(3600)
    assert await shown(here, f"{recent}/6h") == {new}
    assert await shown(here, f"{recent}/7d") == {old, new}
    assert [name.removesuffix(".md") for name in await here.names(f"{recent}/7d")] == sorted([old, new])
    newest = await here.attrs(f"{recent}/6h/{new}.md")
    assert newest.mtime_ns == int(datetime.fromisoformat("2026-02-20T19:00:00+00:00").timestamp()) * 10**9
    for name in ("yesterday", "6", "0h"):
        await refused(errors.NotFound, here.node(f"{recent}/{name}"))


async def test_what_has_ended_or_was_forgotten_is_in_no_view_from_that_second(world: World, here: Host) -> None:
    await remember(here, "ill", ttl="1h", subjects=["mickael"])
    gone = await remember(here, "gone", subjects=["david"])
    views = [f"{BY}/type/fact", f"{BY}/importance/medium", f"{FOLDER}/.recent/6h"]
    for view in views:
        assert len(await here.names(view)) == 2

    world.clock.advance(3600)
    for view in views:
        assert await shown(here, view) == {gone}
    assert await here.names(f"{BY}/subject") == ["david"]
    await refused(errors.NotFound, here.node(f"{BY}/subject/mickael"))

    await here.unlink(f"{FOLDER}/gone")
    for view in views:
        assert await here.names(view) == []
        await refused(errors.NotFound, here.node(f"{view}/{gone}.md"))
    assert await here.names(f"{BY}/type") == await here.names(f"{BY}/subject") == []


async def test_an_edit_shows_at_the_next_look(here: Host, world: World, autojump_clock: Clock) -> None:
    one = await remember(here, "one", subjects=["david"])
    there = world.host("new")
    assert await there.names(f"{BY}/subject") == ["david"]

    await here.write(f"{FOLDER}/one", frontmatter.join({"subjects": ["elise"], "type": "event"}, "text of one"))
    assert await here.names(f"{BY}/subject") == ["elise"]
    assert await shown(here, f"{BY}/type/event") == {one}

    await world.settle()
    assert await there.names(f"{BY}/subject") == ["elise"]
    assert await shown(there, f"{BY}/type/event") == {one}


async def test_walking_all_views_reads_each_memory_once(here: Host, world: World) -> None:
    for number in range(40):
        await here.write(f"{FOLDER}/{number}", frontmatter.join({"subjects": [f"s{number % 7}"]}, f"text of {number}"))
    there = world.host("new")

    async def walk(directory: Directory) -> int:
        links = 0
        for _, node in await directory.children():
            links += await walk(node) if isinstance(node, Directory) else isinstance(node, Symlink)
        return links

    for _ in range(2):
        assert await walk(await there.folder(FOLDER)) == 4 * 40
    assert (there.store.counts["get"], there.store.counts["head"]) == (40, 0)


async def test_a_look_that_had_to_give_up_is_not_begun_anew(
    here: Host, world: World, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "READ_AT_ONCE", 10)
    for number in range(40):
        await here.write(f"{FOLDER}/{number}", f"text of {number}")
    there = world.host("new")
    there.store.latency("get", 1.0)

    with trio.move_on_after(15.5) as gave_up:
        await there.names(f"{BY}/type")
    assert gave_up.cancelled_caught
    before = there.store.counts["get"]
    assert len(await there.names(f"{BY}/type/fact")) == 40

    assert 10 < before < 40
    assert there.store.counts["get"] == before + 30, "what was read by then was kept"


async def test_views_are_of_one_folder_each(here: Host) -> None:
    await remember(here, "one")
    await here.write("alpha/goals/two", "text of two")

    assert await here.names("alpha/goals/.by/type") == ["goal"]
    assert await here.names("alpha/self/.by/type") == []


async def test_a_file_of_claude_codes_memory_is_among_those_of_its_type(here: Host) -> None:
    await here.write("alpha/memories/tests.md", "---\nname: tests\nmetadata:\n  type: feedback\n---\nTest first.\n")

    assert await here.names(f"{BY}/type") == ["feedback"]
    assert len(await here.names(f"{BY}/type/feedback")) == 1


async def test_nobody_changes_a_view(here: Host) -> None:
    one = await remember(here, "one")

    await refused(
        errors.ReadOnly,
        here.unlink(f"{BY}/type/fact/{one}.md"),
        here.rename(f"{BY}/type/fact/{one}.md", f"{BY}/type/event/{one}.md"),
        here.mkdir(f"{BY}/type/poem"),
        here.symlink(f"{BY}/type/fact/x", "../../x"),
        here.write(f"{FOLDER}/.recent/x", "x"),
    )


async def test_objects_that_are_no_memories_are_in_no_view(here: Host, world: World, autojump_clock: Clock) -> None:
    one = await remember(here, "one")
    await world.memory.put(f"{FOLDER}/picture.png", b"\xff\xfe")
    await world.memory.put(f"{FOLDER}/broken.md", b"\xff\xfe")
    await world.memory.put(f"{FOLDER}/foreign.md", b"text of another program")
    await world.settle()

    assert await shown(here, f"{BY}/type/fact") == {one, "foreign"}


async def test_what_contradicts_is_a_pair_with_dates_until_one_of_the_two_says_something_else(
    world: World, here: Host
) -> None:
    await here.write(f"{FOLDER}/one", "We indent with tabs.")
    (tabs,) = [name for name in await here.names(FOLDER) if name.endswith(".md")]
    world.clock.advance(days=30)
    said = world.clock.now()
    await here.write(f"{FOLDER}/two", f"---\nlinks: {{contradicts: [{id_of(tabs)}]}}\n---\nWe indent with spaces.")
    (spaces,) = [name for name in await here.names(FOLDER) if name.endswith(".md") and name != tabs]

    folder = f"{FOLDER}/.contradictions"
    pair = f"{id_of(spaces)}_contradicts_{id_of(tabs)}.md"
    assert await here.names(folder) == [pair]
    first = said - timedelta(days=30)
    text = (await here.read(f"{folder}/{pair}")).decode()
    assert text.startswith(f"{first:%Y-%m-%d}: We indent with tabs; {said:%Y-%m-%d}: We indent with spaces\n")
    assert f"../{tabs}" in text
    assert f"../{spaces}" in text
    await refused(errors.ReadOnly, (await here.folder(folder)).create("x.md", 0o644, NOBODY))

    await (await here.folder(FOLDER)).unlink(tabs)
    assert await here.names(folder) == []
    await refused(errors.NotFound, here.node(f"{folder}/{pair}"))


@pytest.mark.parametrize("side", ["older", "newer"])
async def test_a_pair_that_words_made_ends_when_an_edit_makes_them_say_two_things(here: Host, side: str) -> None:
    await here.write(f"{FOLDER}/one", "We indent with tabs.")
    (tabs,) = [name for name in await here.names(FOLDER) if name.endswith(".md")]
    linked = f"links: {{contradicts: [{id_of(tabs)}]}}\nunsure: [{id_of(tabs)}]"
    await here.write(f"{FOLDER}/two", f"---\n{linked}\n---\nWe indent with spaces.")
    (spaces,) = [name for name in await here.names(FOLDER) if name.endswith(".md") and name != tabs]
    assert len(await here.names(f"{FOLDER}/.contradictions")) == 1

    name, head = (tabs, "") if side == "older" else (spaces, f"---\n{linked}\n---\n")
    await here.write(f"{FOLDER}/{name}", f"{head}The release is on Friday.")
    assert await here.names(f"{FOLDER}/.contradictions") == []
