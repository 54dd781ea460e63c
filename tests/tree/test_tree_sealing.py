"""A file that is closed and a call with the same text come to the same, in `live/` and in the folders of memories."""

from __future__ import annotations

import pytest
from hosts import Host, World, refused

from livememfs import errors
from livememfs.memories.notes import write_note
from livememfs.memories.storing import remember
from livememfs.records.metadata import META_MODE, META_MTIME, META_NAME, META_OP, META_SHA256
from livememfs.records.sealing import Form, MemoryForm, NoteForm
from livememfs.store.base import ObjectInfo

TOKEN = "gh" + "p_" + "aB3" * 12
FORMS = [NoteForm(), *map(MemoryForm, ("memories", "self", "goals"))]
IDS = [form.folder for form in FORMS]
BLANK = {"empty": "", "white space": " \n\t\n", "fields alone": "---\ntags: [a]\nsubjects: [a]\n---\n\n"}
TEXTS = {
    "plain": "We use S3.\n",
    "without an end": "We use S3.",
    "with fields": "---\nextra: 1\ntags: [a]\nsubjects: [b]\n---\nbody\n",
    "with all fields": "---\ntimestamp: 2026-01-01T00:00:00Z\nagent: me\ncategory: todo\nspace_id: x\n---\nbody",
    "odd front matter": "---\nno mapping\n---\nbody",
    "a byte order mark": "\ufeffbody\n",
    "something private": f"<private>the moon</private> and {TOKEN}\n",
    "large": "word " * 6_000,
    "very large": "word " * 12_000 + TOKEN,
}


async def call(host: Host, world: World, form: Form, text: str) -> str:
    """Store a text without a file; the key."""
    if form.folder == "live":
        return await write_note(host.replica, world.clock, "alpha", text, agent="me")
    return await remember(host.replica, world.clock, "alpha", form.folder, text, agent="me")


async def stored(world: World, form: Form) -> dict[str, ObjectInfo]:
    """What the bucket has in a folder."""
    keys = [key for key in await world.bucket() if key.startswith(f"alpha/{form.folder}/2")]
    return {key: await world.memory.head(key) for key in keys}


@pytest.mark.parametrize("form", FORMS, ids=IDS)
@pytest.mark.parametrize("text", BLANK.values(), ids=BLANK)
async def test_a_text_without_a_word_is_a_draft_in_a_file_and_refused_in_a_call(
    world: World, here: Host, there: Host, form: Form, text: str
) -> None:
    path = f"alpha/{form.folder}/later"
    await here.write(path, text)
    await refused(errors.BadRequest, call(here, world, form, text), match=f"there is nothing in the {form.noun}")

    assert await stored(world, form) == {}
    assert await here.read(path) == text.encode()
    assert "later" in await here.names(f"alpha/{form.folder}")
    assert not await there.exists(path)
    assert here.root.unsaved_files() == [], "it must not keep anybody from unmounting"

    await here.write(path, text + "\nNow it says something.\n")
    [key] = await stored(world, form)
    assert (await world.memory.get(key)).data.endswith(b"Now it says something.\n")


@pytest.mark.parametrize("form", FORMS, ids=IDS)
@pytest.mark.parametrize("text", BLANK.values(), ids=BLANK)
async def test_what_is_stored_keeps_what_it_said_when_all_words_are_taken_out_of_its_file(
    world: World, here: Host, form: Form, text: str
) -> None:
    path = f"alpha/{form.folder}/plan"
    await here.write(path, "We use S3.\n")
    before = await world.bucket("alpha/")
    await here.write(path, text)

    assert await world.bucket("alpha/") == before
    assert await here.read(path) == text.encode()
    assert here.root.unsaved_files() == []

    await here.write(path, "We use Ceph.\n")
    [key] = await stored(world, form)
    assert (await world.memory.get(key)).data.endswith(b"We use Ceph.\n")


@pytest.mark.parametrize("form", FORMS, ids=IDS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_the_same_text_is_stored_the_same(world: World, here: Host, form: Form, text: str) -> None:
    await here.write(f"alpha/{form.folder}/plan", text)
    [by_file] = await stored(world, form)
    by_call = await call(here, world, form, text)

    one, other = await world.memory.get(by_file), await world.memory.get(by_call)
    assert one.data == other.data
    uids = [form.uid_of(key.rpartition("/")[2]) for key in (by_file, by_call)]
    assert by_file.replace(uids[0], "") == by_call.replace(uids[1], "")
    meta = dict(one.info.meta or {})
    assert meta.pop(META_NAME) == "plan"
    for name in (META_MTIME, META_OP, META_SHA256):  # of files and of uploads
        meta.pop(name)
    assert meta == dict(other.info.meta or {}) == {}


@pytest.mark.parametrize("form", FORMS, ids=IDS)
async def test_a_mode_that_somebody_sets_is_kept_and_the_usual_one_is_not(world: World, here: Host, form: Form) -> None:
    path = f"alpha/{form.folder}/plan"
    await here.write(path, "We use S3.\n")
    await here.sent()
    [(key, info)] = (await stored(world, form)).items()
    assert META_MODE not in (info.meta or {})

    await here.change(path, mode=0o600)

    assert (await here.attrs(path)).mode == 0o600
    assert ((await world.memory.head(key)).meta or {})[META_MODE] == "600"


async def test_a_field_of_a_memory_without_a_word_cannot_be_set(world: World, here: Host) -> None:
    """One that somebody else stored: a close would store nothing, and the caller believe that it did."""
    await world.memory.put("alpha/memories/20260220T140000_fact_0123abcd.md", b"---\ntype: fact\n---\n\n")
    file = await here.node("alpha/memories/20260220T140000_fact_0123abcd.md")

    with pytest.raises(errors.Unusable, match="there is nothing in the memory"):
        await file.set_xattr("user.livememfs.importance", b"0.9")
