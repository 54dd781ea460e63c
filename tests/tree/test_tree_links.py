"""`<memory>.links/` and the attributes of memories: each change is an edit of the front matter."""

from __future__ import annotations

import posixpath
from datetime import timedelta

import pytest
import trio
from hosts import WRITE, Host, World, refused, unreachable
from trio.abc import Clock

from livememfs import errors
from livememfs.cache.changes import Change
from livememfs.memories.storing import id_of
from livememfs.records import keys
from livememfs.records.memory import RELATIONS, Memory
from livememfs.text import frontmatter
from livememfs.tree.node import Symlink
from livememfs.tree.space.memoryfile import PREFIX

FOLDER = "alpha/memories"
ONE = f"{FOLDER}/one"


async def names(world: World, folder: str = keys.MEMORIES) -> dict[str, Memory]:
    """The memories that the bucket has, by their ids."""
    return {id_of(name): memory for name, memory in (await world.memories(folder)).items()}


async def remembered(world: World, here: Host, *written: str) -> list[str]:
    """Memories of these names, a second apart; their ids in that order."""
    for name in written:
        await here.write(f"{FOLDER}/{name}", f"text of {name}")
        world.clock.advance(1)
    ids = {memory.content: name for name, memory in (await names(world)).items()}
    return [ids[f"text of {name}"] for name in written]


async def links(world: World, memory_id: str) -> tuple[tuple[str, str], ...]:
    return (await names(world))[memory_id].links


async def leads_to(here: Host, path: str) -> str:
    """Where a symbolic link leads, from the mount point."""
    node = await here.node(path)
    assert isinstance(node, Symlink)
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), await node.target()))


async def attributes(here: Host, path: str) -> dict[str, str]:
    xattrs = await (await here.node(path)).xattrs()
    return {name.removeprefix(PREFIX): value.decode() for name, value in xattrs.items()}


async def set_attribute(here: Host, path: str, name: str, value: str | bytes | None) -> None:
    data = value.encode() if isinstance(value, str) else value
    await (await here.node(path)).set_xattr(PREFIX + name, data)
    await here.sent()


# --- directories of links -----------------------------------------------------------------------------------------


async def test_each_memory_has_a_directory_for_each_relation_that_no_listing_shows(world: World, here: Host) -> None:
    (one,) = await remembered(world, here, "one")

    assert not [name for name in await here.names(FOLDER) if "links" in name]
    for name in ("one.links", "one.md.links", f"{one}.links", f"{one}.md.links"):
        assert await here.names(f"{FOLDER}/{name}") == sorted(RELATIONS)
        assert await here.names(f"{FOLDER}/{name}/updates") == []
    await refused(errors.NotFound, here.node(f"{FOLDER}/nothing.links"))


@pytest.mark.parametrize(
    "target",
    ["../{id}.md", "{id}", "{id}.md", "/mnt/alpha/memories/{id}.md", "../../two", "two.md", "../../../memories/two/"],
)
async def test_whatever_names_a_memory_can_be_linked_to(world: World, here: Host, target: str) -> None:
    one, two = await remembered(world, here, "one", "two")

    await here.symlink(f"{FOLDER}/one.links/updates/any", target.format(id=two))

    assert await links(world, one) == (("updates", two),)
    assert await here.names(f"{FOLDER}/{one}.md.links/updates") == [f"{two}.md"]
    assert await leads_to(here, f"{FOLDER}/one.links/updates/{two}.md") == f"{FOLDER}/{two}.md"
    assert await here.names(f"{FOLDER}/one.links/contradicts") == []
    assert await world.host("new").names(f"{FOLDER}/one.links/updates") == [f"{two}.md"]


async def test_a_link_leads_to_other_collections_of_the_space(world: World, here: Host) -> None:
    await remembered(world, here, "one", "travel")
    await here.write("alpha/goals/travel", "I would like to know about travel")
    (goal,) = await names(world, keys.GOALS)

    await here.symlink(f"{ONE}.links/result_of/travel", "../../goals/travel")

    assert await here.names(f"{ONE}.links/result_of") == [f"{goal}.md"]
    assert await leads_to(here, f"{ONE}.links/result_of/{goal}.md") == f"alpha/goals/{goal}.md"


async def test_a_link_leads_to_the_file_however_long_the_memory_lasts(world: World, here: Host) -> None:
    (one,) = await remembered(world, here, "one")
    await here.write(f"{FOLDER}/ill", frontmatter.join({"ttl": "7d"}, "Mickael is ill"))
    (ill,) = [name for name in await names(world) if name != one]
    await here.symlink(f"{ONE}.links/related_to/ill", "ill")

    assert await links(world, one) == (("related_to", ill),)
    leads = await leads_to(here, f"{ONE}.links/related_to/{ill}.md")
    assert leads == f"{FOLDER}/{ill}_until_20260227T140001.md"
    assert b"Mickael is ill" in await here.read(leads)

    world.clock.advance(days=7)
    assert await here.names(f"{ONE}.links/related_to") == []
    assert (await attributes(here, ONE))["links_missing"] == "1"


@pytest.mark.parametrize("target", ["../nobody.md", "one", "../one.md", "/mnt/beta/memories/two", "/", ".."])
async def test_what_is_no_other_memory_of_the_space_is_refused(world: World, here: Host, target: str) -> None:
    one, _ = await remembered(world, here, "one", "two")
    await here.mkdir("beta")

    await refused(errors.Unusable, here.symlink(f"{ONE}.links/updates/x", target))

    assert await links(world, one) == ()


async def test_a_link_that_is_there_is_not_made_again(world: World, here: Host) -> None:
    one, two = await remembered(world, here, "one", "two")
    await here.symlink(f"{ONE}.links/updates/two", "two")

    await refused(errors.AlreadyExists, here.symlink(f"{ONE}.links/updates/{two}.md", two))

    await here.symlink(f"{ONE}.links/part_of/two", "two")
    assert await links(world, one) == (("updates", two), ("part_of", two))


async def test_removing_the_link_removes_it_from_the_memory_and_nothing_else(world: World, here: Host) -> None:
    one, two, three = await remembered(world, here, "one", "two", "three")
    for relation, name in (("updates", "two"), ("updates", "three"), ("part_of", "two")):
        await here.symlink(f"{ONE}.links/{relation}/x", name)
    before = (await names(world))[one]

    await here.unlink(f"{ONE}.links/updates/{two}.md")
    assert await links(world, one) == (("updates", three), ("part_of", two))
    await here.unlink(f"{ONE}.links/updates/three")
    await here.unlink(f"{ONE}.links/part_of/{two}.md")

    after = (await names(world))[one]
    assert after.links == ()
    assert (after.content, after.updated_at, after.importance) == (before.content, before.updated_at, before.importance)
    assert len(await names(world)) == 3, "what was linked to is still there"
    await refused(errors.NotFound, here.unlink(f"{ONE}.links/updates/{two}.md"))


async def test_links_of_the_front_matter_are_shown_as_far_as_they_lead_anywhere(world: World, here: Host) -> None:
    (two,) = await remembered(world, here, "two")
    given = {"updates": ["two", "invented"], "part_of": [f"{two}.md"]}
    await here.write(ONE, frontmatter.join({"links": given}, "one"))

    assert await here.names(f"{ONE}.links/updates") == [f"{two}.md"]
    assert await here.names(f"{ONE}.links/part_of") == [f"{two}.md"]
    assert (await attributes(here, ONE))["links_missing"] == "1"
    await here.unlink(f"{ONE}.links/updates/two")
    assert (await attributes(here, ONE))["links"] == f"updates invented,part_of {two}"


async def test_only_links_can_be_made_there(world: World, here: Host) -> None:
    await remembered(world, here, "one", "two")
    await here.symlink(f"{ONE}.links/updates/two", "two")

    await refused(
        errors.NotPermitted,
        here.mkdir(f"{ONE}.links/other"),
        here.mkdir(f"{ONE}.links/updates/folder"),
        here.write(f"{ONE}.links/updates/file", "text"),
        here.write(f"{ONE}.links/file", "text"),
        here.symlink(f"{ONE}.links/link", "two"),
        here.rmdir(f"{ONE}.links/updates"),
        here.rmdir(f"{ONE}.links"),
    )
    with pytest.raises(errors.CrossesKinds):  # upon which `mv` makes the one and removes the other
        await here.rename(f"{ONE}.links/updates/two", f"{ONE}.links/part_of/two")


async def test_links_of_a_memory_that_was_forgotten_are_gone_with_it(world: World, here: Host) -> None:
    await remembered(world, here, "one", "two")
    updates = await here.folder(f"{ONE}.links/updates")

    await here.unlink(ONE)

    await refused(errors.NotFound, updates.children(), updates.attrs())


async def test_another_host_sees_the_link_and_can_remove_it(world: World, here: Host, there: Host) -> None:
    one, two = await remembered(world, here, "one", "two")
    await here.symlink(f"{ONE}.links/updates/two", "two")

    assert await there.names(f"{ONE}.links/updates") == [f"{two}.md"]
    await there.unlink(f"{ONE}.links/updates/{two}.md")

    assert await links(world, one) == ()


async def test_two_hosts_that_link_one_memory_at_once_lose_nothing(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    one, two, three = await remembered(world, here, "one", "two", "three")
    for host in (here, there):
        await host.read(ONE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.symlink, f"{ONE}.links/updates/two", "two")
        nursery.start_soon(there.symlink, f"{ONE}.links/part_of/three", "three")
    await world.settle()

    versions = [memory.links for name, memory in (await names(world)).items() if name.startswith(one)]
    assert set().union(*versions) == {("updates", two), ("part_of", three)}
    contents = {memory.content for memory in (await names(world)).values()}
    assert contents == {f"text of {name}" for name in ("one", "two", "three")}


# --- attributes ---------------------------------------------------------------------------------------------------


async def test_the_fields_of_a_memory_are_attributes(world: World, here: Host) -> None:
    (two,) = await remembered(world, here, "two")
    fields = {"importance": 0.75, "subjects": ["David", "home"], "links": {"updates": [two]}, "ttl": "7d"}
    await here.write(f"{FOLDER}/decision-one", frontmatter.join(fields, "one"))

    fields_shown = await attributes(here, f"{FOLDER}/decision-one")
    shown = {"type": "decision", "importance": "0.75", "subjects": "David,home", "links": f"updates {two}"}
    shown |= {"updates": two, "expires_at": "2026-02-27T14:00:01Z", "score": "0.75"}
    assert {name: fields_shown[name] for name in shown} == shown
    assert {"state", "key", "etag"} <= set(fields_shown)

    await here.write("alpha/live/note", "a note")
    assert set(await attributes(here, "alpha/live/note")) <= {"state", "key", "etag", "trust"}


async def test_the_score_is_what_it_weighs_now(world: World, here: Host) -> None:
    await remembered(world, here, "one")

    world.clock.advance(days=120)

    assert (await attributes(here, ONE))["score"] == "0.45"
    assert (await attributes(here, ONE))["importance"] == "0.6"


@pytest.mark.parametrize(
    ("name", "value", "field", "result"),
    [
        ("importance", "0.9", "importance", 0.9),
        ("type", "Event", "type", "event"),
        ("subjects", "David, home,david", "subjects", ("David", "home")),
        ("subjects", "", "subjects", ()),
        ("subjects", None, "subjects", ()),
        ("importance", None, "importance", 0.6),
    ],
)
async def test_setting_one_edits_the_front_matter(
    world: World, here: Host, name: str, value: str | None, field: str, result: object
) -> None:
    await here.write(ONE, frontmatter.join({"subjects": ["x"], "importance": 0.1, "kept": "yes"}, "text"))
    (before,) = (await names(world)).items()
    world.clock.advance(60)

    await set_attribute(here, ONE, name, value)

    ((id_after, after),) = (await names(world)).items()
    assert getattr(after, field) == result
    assert (id_after, after.content, after.extra) == (before[0], "text", before[1].extra)
    assert after.updated_at == before[1].updated_at + timedelta(seconds=60)
    assert await here.read(ONE) == after.render()


async def test_setting_when_it_ends_moves_its_object_and_none_brings_it_back(world: World, here: Host) -> None:
    (one,) = await remembered(world, here, "one")

    await set_attribute(here, ONE, "expires_at", "7d")
    (stored,) = await world.bucket(f"{FOLDER}/")
    assert stored == f"{one}_until_20260227T140001.md"

    await set_attribute(here, ONE, "expires_at", "2026-03-01T00:00:00Z")
    (stored,) = await world.bucket(f"{FOLDER}/")
    assert stored == f"{one}_until_20260301T000000.md"

    await set_attribute(here, ONE, "expires_at", None)
    (stored,) = await world.bucket(f"{FOLDER}/")
    assert stored == f"{one}.md"


async def test_a_memory_goes_by_its_id_however_long_it_lasts(world: World, here: Host, there: Host) -> None:
    (one,) = await remembered(world, here, "one")
    await set_attribute(here, f"{FOLDER}/{one}.md", "expires_at", "7d")

    for host in (here, there):
        assert b"text of one" in await host.read(f"{FOLDER}/{one}.md")
    await there.write(f"{FOLDER}/{one}.md", "another text")
    assert list(await world.bucket(f"{FOLDER}/")) == [f"{one}_until_20260227T140001.md"]
    await there.rename(f"{FOLDER}/{one}.md", f"{FOLDER}/{one}.md~")
    await there.write(f"{FOLDER}/{one}.md", "a third text")
    await there.unlink(f"{FOLDER}/{one}.md~")
    assert list(await world.bucket(f"{FOLDER}/")) == [f"{one}_until_20260227T140001.md"]
    assert b"a third text" in await there.read(f"{FOLDER}/one")

    world.clock.advance(days=8)
    for host in (here, there):
        await refused(errors.NotFound, host.read(f"{FOLDER}/{one}.md"))


async def test_links_can_be_set_as_attributes(world: World, here: Host) -> None:
    one, two, three = await remembered(world, here, "one", "two", "three")

    await set_attribute(here, ONE, "updates", "two, ../three.md")
    assert await links(world, one) == (("updates", two), ("updates", three))
    await set_attribute(here, ONE, "links", f"part_of {two}\ncontradicts three")
    assert await links(world, one) == (("part_of", two), ("contradicts", three))
    await set_attribute(here, ONE, "part_of", None)
    assert await links(world, one) == (("contradicts", three),)
    await set_attribute(here, ONE, "links", None)
    assert await links(world, one) == ()


UNUSABLE = (
    ("importance", "1.5"), ("importance", "much"), ("importance", b"\xff"), ("type", "poem"), ("type", None),
    ("expires_at", "soon"), ("updates", "nobody"), ("updates", "one"), ("links", "two"), ("links", "likes two"),
    ("links", "updates two three"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "value"), UNUSABLE)
async def test_what_cannot_be_used_is_refused_and_changes_nothing(
    world: World, here: Host, name: str, value: str | bytes | None
) -> None:
    await remembered(world, here, "one", "two", "three")
    before = await world.bucket(f"{FOLDER}/")

    await refused(errors.Unusable, set_attribute(here, ONE, name, value))

    assert await world.bucket(f"{FOLDER}/") == before


@pytest.mark.parametrize("name", ["score", "state", "key", "links_missing", "other"])
async def test_what_is_computed_cannot_be_set(world: World, here: Host, name: str) -> None:
    await remembered(world, here, "one")

    await refused(errors.NotSupported, set_attribute(here, ONE, name, "1"))


async def test_a_file_that_is_being_written_is_left_to_its_writer(world: World, here: Host) -> None:
    handle = await here.open(ONE, mode=WRITE)
    await refused(errors.BeingWritten, set_attribute(here, ONE, "importance", "0.9"))
    await handle.write(0, b"text")
    await handle.flush()
    await refused(errors.BeingWritten, set_attribute(here, ONE, "importance", "0.9"))
    await handle.release()

    await set_attribute(here, ONE, "importance", "0.9")
    ((_, memory),) = (await names(world)).items()
    assert (memory.content, memory.importance) == ("text", 0.9)


async def test_attributes_set_at_once_are_all_kept(world: World, here: Host) -> None:
    one, two, three = await remembered(world, here, "one", "two", "three")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.symlink, f"{ONE}.links/updates/two", "two")
        nursery.start_soon(here.symlink, f"{ONE}.links/part_of/three", "three")
        nursery.start_soon(set_attribute, here, ONE, "importance", "0.9")
        nursery.start_soon(set_attribute, here, ONE, "subjects", "x")

    memory = (await names(world))[one]
    assert set(memory.links) == {("updates", two), ("part_of", three)}
    assert (memory.importance, memory.subjects) == (0.9, ("x",))


async def test_the_version_of_another_host_is_edited(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    (one,) = await remembered(world, here, "one")
    await here.read(ONE)
    await there.write(ONE, "text of another host")
    await world.settle()

    await set_attribute(here, ONE, "importance", "0.9")

    memory = (await names(world))[one]
    assert (memory.content, memory.importance) == ("text of another host", 0.9)


async def test_whoever_holds_the_file_is_told_that_it_changed(world: World, here: Host) -> None:
    """The kernel has seen no write, and would cut the new bytes at the old size."""
    await remembered(world, here, "one")
    heard: list[Change] = []
    here.replica.changes.subscribe(heard.append)

    await set_attribute(here, ONE, "importance", "0.95")

    assert [change.by_caller for change in heard if change.kind == "put"] == [False]


async def test_a_store_that_does_not_answer_hides_only_fields(world: World, here: Host, autojump_clock: Clock) -> None:
    await remembered(world, here, "one")
    there = world.host("new")
    file = await there.node(ONE)
    there.store.fail_all = unreachable()

    assert PREFIX + "state" in await file.xattrs()
