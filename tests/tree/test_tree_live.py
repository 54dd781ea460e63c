"""`live/`: whatever a program does to save a file, one note is one object, and no byte of it is lost."""

from __future__ import annotations

import gc
import json

import pytest
import trio
from hosts import (
    APPEND,
    EDIT,
    REPLACE,
    WRITE,
    Host,
    World,
    close,
    during,
    refused,
    unreachable,
    while_saving,
    without_room,
)
from trio.abc import Clock

from livememfs import errors
from livememfs.records import keys
from livememfs.records.metadata import META_NAME
from livememfs.records.note import MAX_NOTE_BYTES, Note, uid8, uid_ending, uid_of
from livememfs.testing.clock import START
from livememfs.testing.store import Fault
from livememfs.text.privacy import redaction as privacy
from livememfs.tree.node import NOBODY, AttrChange, Caller

NAME = "decision-storage.md"
OLD = Note(START, "me", "decision", (), "alpha", "old\n").render()
PATH = f"alpha/live/{NAME}"
CANONICAL = f"20260220T140000_me_decision_{uid_of(0, uid_ending('alpha', NAME))}.md"
LITTER = (
    *("4913", f".{NAME}.swp", f".{NAME}.swx", f"{NAME}~", f"#{NAME}#", f".#{NAME}", "sedAbC123", f"{NAME}.tmp.77"),
    *(".DS_Store", f"._{NAME}", ".goutputstream-X", f".~lock.{NAME}#", ".fuse_hidden0001", ".nfs0001", "x.tmp"),
)
CATEGORIES = {
    "todo.md": "todo", "Decision use S3": "decision", "insight_1.md": "insight", "question-why": "question",
    "progress.txt": "progress", "issue 12.md": "issue", "todos.md": "observation", "notes-todo.md": "observation",
}  # fmt: skip
LARGE = b"a line\n" * (privacy.LARGE // 6)
REDACTION = "livememfs.text.privacy.redaction.redact_file"


def live(name: str) -> str:
    return f"alpha/live/{name}"


def body_of(data: bytes) -> str:
    return Note.parse(data, path="a note").body


async def only_note(world: World) -> Note:
    """The one note there is."""
    notes = await world.notes()
    assert len(notes) == 1, sorted(notes)
    name, data = notes.popitem()
    return Note.parse(data, path=name, name=name)


async def text_of_canonical(world: World) -> str:
    """The text of the one note there is, which has the canonical name of NAME."""
    [(name, data)] = (await world.notes()).items()
    assert name == CANONICAL
    return body_of(data)


@pytest.fixture
async def stored(world: World, here: Host) -> str:
    """A note that was written as NAME; its path."""
    await here.write(PATH, "we use S3\n")
    world.clock.advance(hours=1)
    return PATH


# --- sealing -----------------------------------------------------------------------------------------------------


async def test_closing_a_file_makes_one_complete_note_under_a_canonical_key(world: World, here: Host) -> None:
    await here.write(PATH, "we use S3\n")

    notes = await world.notes()

    assert list(notes) == [CANONICAL]
    assert Note.parse(notes[CANONICAL], path=CANONICAL) == Note(START, "me", "decision", (), "alpha", "we use S3\n")
    text = notes[CANONICAL].decode()
    fields = [line.partition(":")[0] for line in text.splitlines()[1:6]]
    assert fields == ["timestamp", "agent", "category", "tags", "space_id"]


@pytest.mark.parametrize(
    "name",
    ["x", "Décision à prendre.txt", "a b c.md", "-rf", "no-suffix", ".hidden", "日本語.md", "a.md.md", "x" * 255],
)
async def test_any_name_may_be_written_and_reads_back_on_both_hosts(
    world: World, there: Host, name: str, autojump_clock: Clock
) -> None:
    await world.here.write(live(name), "text\n")

    await world.settle()

    note = await only_note(world)
    assert note.body == "text\n"
    for host in (world.here, there):
        assert body_of(await host.read(live(name))) == "text\n"
        [canonical] = await host.names("alpha/live")
        assert keys.NoteName.parse(canonical) is not None


@pytest.mark.parametrize("attempt", [0, 1, 7])
async def test_a_note_of_the_first_version_answers_to_the_name_it_was_written_under(
    world: World, here: Host, there: Host, attempt: int, autojump_clock: Clock
) -> None:
    """Its eight digits follow from the name alone, and from how many were taken."""
    key = live(f"20260219T090000_me_decision_{uid8('alpha', NAME, attempt)}.md")
    await world.memory.put(key, OLD, meta={META_NAME: NAME})
    await world.settle()

    assert body_of(await there.read(PATH)) == "old\n"
    await here.write(PATH, "new\n")
    await world.settle()
    assert body_of(await there.read(PATH)) == body_of((await world.memory.get(key)).data) == "new\n"
    assert len(await world.notes()) == 1


async def test_a_name_with_the_same_last_digits_is_another_note(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    key = live(f"20260219T090000_me_decision_123{uid_ending('alpha', NAME)}.md")
    await world.memory.put(key, OLD, meta={META_NAME: "other.md"})
    await world.settle()

    await here.write(PATH, "new\n")

    assert len(await world.notes()) == 2
    assert body_of((await world.memory.get(key)).data) == "old\n"


async def test_notes_of_one_second_are_numbered_in_the_order_in_which_they_were_written(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    for number in range(50):
        await here.write(live(f"note {97 - number}.md"), f"{number}\n")

    notes = sorted((await world.notes()).items())
    assert [body_of(data) for _, data in notes] == [f"{number}\n" for number in range(50)]


async def test_a_note_that_is_renamed_keeps_its_place_among_those_of_its_second(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    for number in range(3):
        await here.write(live(f"{number}.md"), f"{number}\n")
    await here.rename(live("1.md"), live("zero.md"))
    await world.settle()

    notes = sorted((await world.notes()).items())
    assert [body_of(data) for _, data in notes] == ["0\n", "1\n", "2\n"]
    assert body_of(await there.read(live("zero.md"))) == "1\n"


@pytest.mark.parametrize(("name", "category"), CATEGORIES.items())
async def test_the_first_word_of_the_name_is_the_category(world: World, here: Host, name: str, category: str) -> None:
    await here.write(live(name), "text\n")

    assert (await only_note(world)).category == category


async def test_the_agent_is_known_even_when_its_process_is_gone_at_close(world: World, here: Host) -> None:
    here.agents[77] = "cline"
    handle = await here.begin(PATH, b"text\n", pid=77)
    here.agents.clear()

    await handle.flush()

    assert (await only_note(world)).agent == "cline"


async def test_given_front_matter_is_honoured_and_the_rest_is_filled_in(world: World, here: Host) -> None:
    await here.write(live("x.md"), '---\ncategory: issue\ntags: ["a"]\nmood: "calm"\n---\n\ntext\n')

    note = await only_note(world)

    assert (note.category, note.tags, note.agent, note.extra) == ("issue", ("a",), "me", {"mood": "calm"})


async def test_a_note_with_all_its_front_matter_is_stored_byte_for_byte(world: World, here: Host) -> None:
    data = Note(START, "cline", "todo", ("a",), "alpha", "text without end").render().replace(b"\n---", b" \n---")

    await here.write(live("x.md"), data)

    assert list((await world.notes()).values()) == [data]


async def test_the_writer_sees_what_it_wrote_and_the_next_open_what_is_stored(world: World, here: Host) -> None:
    handle = await here.begin(PATH, b"text\n", EDIT)
    await handle.flush()

    stored_bytes = (await world.notes())[CANONICAL]

    assert await handle.read(0, 100) == b"text\n"
    assert await here.read(PATH) == stored_bytes
    assert (await here.attrs(PATH)).size == len(stored_bytes)


async def test_a_draft_is_readable_before_it_is_closed_and_nowhere_else(world: World, here: Host, there: Host) -> None:
    _handle = await here.begin(PATH, b"half a sent")

    assert await here.read(PATH) == b"half a sent"
    assert (await here.attrs(PATH)).size == 11
    assert not await there.exists(PATH)
    assert await world.notes() == {}


async def test_a_listing_shows_canonical_names_and_drafts(here: Host, stored: str) -> None:
    await here.write(live("draft.md"), "")

    assert await here.names("alpha/live") == [CANONICAL, "draft.md"]


# --- one note stays one object -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [NAME, CANONICAL])
async def test_writing_a_name_again_edits_the_same_note(world: World, here: Host, stored: str, name: str) -> None:
    await here.write(live(name), "we use a folder\n")

    assert list(await world.notes()) == [CANONICAL]
    assert await only_note(world) == Note(START, "me", "decision", (), "alpha", "we use a folder\n")


async def test_another_host_edits_the_same_note_by_its_second_name(
    world: World, there: Host, stored: str, autojump_clock: Clock
) -> None:
    await there.write(PATH, "we use a folder\n")

    assert list(await world.notes()) == [CANONICAL]
    await world.settle()
    assert body_of(await world.here.read(PATH)) == "we use a folder\n"


async def test_an_edit_leaves_the_first_writer_and_fields_that_we_do_not_know(world: World, here: Host) -> None:
    here.agents[7] = "cline"
    await here.write(PATH, '---\nmood: "calm"\n---\n\none\n', pid=7)
    text = (await here.read(PATH)).replace(b"one", b"two")

    await here.write(PATH, text, pid=8)

    note = await only_note(world)
    assert (note.agent, note.extra, note.body) == ("cline", {"mood": "calm"}, "two\n")


@pytest.mark.parametrize("name", [NAME, CANONICAL])
async def test_appends_keep_one_front_matter_and_one_object(world: World, here: Host, stored: str, name: str) -> None:
    await here.write(live(name), "and folders\n", APPEND)
    await here.write(live(name), "and disks\n", APPEND)

    assert (await only_note(world)).body == "we use S3\nand folders\nand disks\n"


async def test_a_shell_that_keeps_the_file_open_grows_one_note(world: World, here: Host) -> None:
    """`exec 3>>note; echo a >&3; echo b >&3`: each echo closes a duplicate of the descriptor."""
    handle = await here.open(PATH, APPEND)
    for line in (b"a\n", b"b\n", b"c\n"):
        await handle.write(0, line)
        await handle.flush()
    await handle.release()

    assert (await only_note(world)).body == "a\nb\nc\n"


async def test_two_descriptors_that_are_open_at_once_write_one_note(world: World, here: Host) -> None:
    one, two = await here.open(PATH, WRITE), await here.open(PATH, WRITE)
    await one.write(0, b"first ")
    await one.flush()
    await two.write(6, b"second")
    await two.flush()
    await one.release()
    await two.release()

    assert (await only_note(world)).body == "first second"


async def test_two_shells_that_append_to_the_same_note_lose_no_line(world: World, here: Host) -> None:
    """The second one opened the stored note while the first one still holds the draft: all lines are in the bucket."""
    one = await here.begin(PATH, b"one\n", APPEND)
    await one.flush()
    two = await here.open(PATH, APPEND)
    await one.write(0, b"three\n")
    await one.flush()
    await two.write(0, b"two\n")
    await two.flush()
    await one.write(0, b"four\n")
    await one.flush()

    everything = b"".join((await world.notes()).values())

    assert all(line in everything for line in (b"one\n", b"two\n", b"three\n", b"four\n"))


async def test_truncating_by_name_and_writing_is_an_edit(world: World, here: Host, stored: str) -> None:
    """`truncate -s 0 note; cat >> note`, the way some editors save in place."""
    await (await here.node(PATH)).change(AttrChange(size=0), NOBODY)
    await here.write(PATH, "new\n", APPEND)

    assert await text_of_canonical(world) == "new\n"


async def test_vim_saves_by_moving_the_note_aside(world: World, here: Host, stored: str) -> None:
    for name in (NAME, CANONICAL):
        await here.write(live("4913"), "")
        await here.unlink(live("4913"))
        await here.rename(live(name), live(f"{name}~"))
        await here.write(live(name), f"saved as {name}\n")
        await here.unlink(live(f"{name}~"))

        assert list(await world.notes()) == [CANONICAL]
        assert await only_note(world) == Note(START, "me", "decision", (), "alpha", f"saved as {name}\n")
        assert body_of(await here.read(PATH)) == f"saved as {name}\n"


async def test_vim_saves_with_a_copy_as_backup(world: World, here: Host, stored: str) -> None:
    await here.write(live(f"{NAME}~"), await here.read(PATH))
    await here.write(PATH, "new\n")
    await here.unlink(live(f"{NAME}~"))

    assert await text_of_canonical(world) == "new\n"


async def test_emacs_keeps_its_backup_and_then_saves_in_place(world: World, here: Host, stored: str) -> None:
    await here.write(live(f"#{NAME}#"), "half")
    await here.rename(PATH, live(f"{NAME}~"))
    await here.write(PATH, "first save\n")
    await here.unlink(live(f"#{NAME}#"))
    await here.write(PATH, "second save\n")

    assert (await only_note(world)).body == "second save\n"
    assert body_of(await here.read(live(f"{NAME}~"))) == "we use S3\n"

    await here.unlink(live(f"{NAME}~"))
    assert (await only_note(world)).body == "second save\n"


async def test_the_lock_that_emacs_makes_of_a_symbolic_link_is_refused(here: Host) -> None:
    with pytest.raises(errors.NotPermitted):
        await here.symlink(live(f".#{NAME}"), "me@here.1234")


@pytest.mark.parametrize("temporary", ["sedXy12zQ", f"{NAME}.tmp.123", f".{NAME}.a1B2c3", ".goutputstream-ABC123"])
@pytest.mark.parametrize("name", [NAME, CANONICAL])
@pytest.mark.parametrize("whole", [True, False])
async def test_a_temporary_file_renamed_over_the_note_is_its_next_version(
    world: World, here: Host, stored: str, temporary: str, name: str, whole: bool
) -> None:
    """Whether the program wrote what it had read (sed) or a text of its own (an agent's Write tool)."""
    text = (await here.read(PATH)).replace(b"S3", b"a folder") if whole else b"we use a folder\n"
    await here.write(live(temporary), text)

    await here.rename(live(temporary), live(name))

    assert list(await world.notes()) == [CANONICAL]
    assert await only_note(world) == Note(START, "me", "decision", (), "alpha", "we use a folder\n")
    assert body_of(await here.read(PATH)) == "we use a folder\n"
    assert not await here.exists(live(temporary))


async def test_a_temporary_file_renamed_to_a_free_name_is_a_new_note(world: World, here: Host, there: Host) -> None:
    await here.write(live(f"{NAME}.tmp.123"), "we use S3\n")
    assert await world.notes() == {}

    await here.rename(live(f"{NAME}.tmp.123"), PATH)

    assert list(await world.notes()) == [CANONICAL]
    assert body_of(await there.read(PATH)) == "we use S3\n"


async def test_an_editor_that_moves_the_old_out_and_the_new_in_keeps_one(world: World, here: Host, stored: str) -> None:
    """JetBrains: write beside, move the old one away, move the new one in, remove the old one."""
    await here.write(live(f"{NAME}___jb_tmp___"), "new\n")
    await here.rename(PATH, live(f"{NAME}___jb_old___"))
    await here.rename(live(f"{NAME}___jb_tmp___"), PATH)
    await here.unlink(live(f"{NAME}___jb_old___"))

    assert await text_of_canonical(world) == "new\n"


async def test_a_note_moved_aside_and_back_is_the_same_note(world: World, here: Host, stored: str) -> None:
    await here.rename(PATH, live(f"{NAME}~"))
    assert not await here.exists(PATH)

    await here.rename(live(f"{NAME}~"), PATH)

    assert await text_of_canonical(world) == "we use S3\n"


async def test_an_editor_that_dies_after_moving_the_note_aside_loses_nothing(
    world: World, here: Host, there: Host, stored: str
) -> None:
    await here.rename(PATH, live(f"{NAME}~"))

    assert body_of(await here.read(live(f"{NAME}~"))) == "we use S3\n"
    assert body_of(await there.read(PATH)) == "we use S3\n"
    assert list(await world.notes()) == [CANONICAL]


async def test_removing_the_only_backup_of_a_note_removes_the_note(world: World, here: Host, stored: str) -> None:
    await here.rename(PATH, live(f"{NAME}~"))
    await here.unlink(live(f"{NAME}~"))

    assert await world.notes() == {}


async def test_a_rename_within_live_is_a_new_second_name_that_the_other_host_knows(
    world: World, here: Host, there: Host, stored: str, autojump_clock: Clock
) -> None:
    """The canonical name follows, so that a listing alone tells any host which note was meant; it stays one note."""
    await here.rename(PATH, live("storage.md"))
    await world.settle()

    [canonical] = await world.notes()
    assert canonical.rpartition("_")[0] == CANONICAL.rpartition("_")[0]
    assert await here.names("alpha/live") == await there.names("alpha/live") == [canonical]
    for host in (here, there):
        assert body_of(await host.read(live("storage.md"))) == "we use S3\n"
        assert not await host.exists(PATH)


async def test_a_note_renamed_over_another_one_replaces_it(world: World, here: Host, stored: str) -> None:
    await here.write(live("todo-other.md"), "the other\n")

    await here.rename(live("todo-other.md"), PATH)

    assert (await only_note(world)).body == "the other\n"
    assert body_of(await here.read(PATH)) == "the other\n"
    assert not await here.exists(live("todo-other.md"))


@pytest.mark.parametrize("temporary", ["x.tmp", "todo-other.md"], ids=["an editor's", "a note"])
@pytest.mark.parametrize("before", ["a draft", "a stored note"])
async def test_a_note_renamed_over_one_whose_close_is_still_running_replaces_it(
    world: World, here: Host, before: str, temporary: str
) -> None:
    """What is large is redacted in a thread, and accepted when that is done: not over what came meanwhile."""
    if before == "a stored note":
        here.caches = []
        await here.write(PATH, "we use S3\n")
        world.clock.advance(hours=1)
    await here.write(live(temporary), "the other\n")
    handle = await here.begin(PATH, LARGE, EDIT)

    await during(handle.flush, REDACTION, lambda: here.rename(live(temporary), PATH))
    await handle.release()

    assert body_of(await here.read(PATH)) == "the other\n"
    assert (await only_note(world)).body == "the other\n"
    await here.write(PATH, "one more\n", APPEND)
    assert (await only_note(world)).body == "the other\none more\n"


async def test_a_draft_renamed_over_a_note_while_both_are_saved_replaces_it(
    world: World, here: Host, stored: str
) -> None:
    one, two = await here.open(PATH, EDIT), await here.open(live("todo-other.md"), EDIT)
    await one.write(0, LARGE)
    await two.write(0, LARGE + b"the other\n")

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.flush)
            nursery.start_soon(two.flush)

    await during(both, REDACTION, lambda: here.rename(live("todo-other.md"), PATH))

    assert (await only_note(world)).body.endswith("the other\n")
    assert body_of(await here.read(PATH)).endswith("the other\n")


async def test_a_rename_that_must_not_replace_leaves_both(world: World, here: Host, stored: str) -> None:
    await here.write(live("todo-other.md"), "the other\n")

    await refused(errors.AlreadyExists, here.rename(live("todo-other.md"), PATH, replace=False))

    assert len(await world.notes()) == 2


async def test_hard_refusals(here: Host, stored: str) -> None:
    """Directories: EPERM. Moves out of `live/` and into it: EXDEV, so that tools copy. A taken name: EEXIST."""
    await here.write("alpha/plain.md", "plain\n")
    await refused(errors.NotPermitted, here.mkdir(live("folder")), here.rmdir(live("folder")))
    await refused(
        errors.CrossesKinds, here.rename(PATH, "alpha/away.md"), here.rename("alpha/plain.md", live("into.md"))
    )
    with pytest.raises(errors.AlreadyExists):
        await (await here.folder("alpha/live")).create(NAME, 0o644, Caller())
    await refused(errors.NameTooLong, here.write(live("x" * 256), "text"))
    await refused(errors.NotText, here.write(live("\udcff"), "text"))


# --- what stays local --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LITTER)
async def test_litter_never_reaches_the_bucket_and_works_as_a_file(world: World, here: Host, name: str) -> None:
    await here.write(live(name), b"\xff\x00 anything")
    here.store.forget()

    assert await here.read(live(name)) == b"\xff\x00 anything"
    assert await world.notes() == {}
    assert here.store.counts["put"] == 0
    assert here.root.unsaved_files() == []

    await here.unlink(live(name))
    assert not await here.exists(live(name))


async def test_an_empty_file_stays_a_draft_until_it_says_something(world: World, here: Host, there: Host) -> None:
    await here.write(PATH, "")
    gc.collect()

    assert await world.notes() == {}
    assert await here.read(PATH) == b""
    assert here.root.unsaved_files() == []

    await here.write(PATH, "text\n")
    assert (await only_note(world)).body == "text\n"


async def test_an_emptied_note_keeps_its_bytes_until_there_are_new_ones(world: World, here: Host, stored: str) -> None:
    before = await world.notes()
    handle = await here.open(PATH, REPLACE)
    await handle.flush()
    assert await world.notes() == before

    await handle.write(0, b"new\n")
    await handle.flush()

    assert (await only_note(world)).body == "new\n"


# --- what is refused and what fails ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "refusal"),
    [(b"caf\xe9\n", errors.NotText), (b"x" * (MAX_NOTE_BYTES + 1), errors.TooLarge)],
    ids=["latin-1", "over the limit"],
)
async def test_what_cannot_be_a_note_is_refused_at_close_and_stays_to_be_mended(
    world: World, here: Host, data: bytes, refusal: type[errors.LiveMemError]
) -> None:
    await refused(refusal, here.write(PATH, data))
    gc.collect()

    assert await world.notes() == {}
    assert await here.read(PATH) == data
    assert [file.path for file in here.root.unsaved_files()] == [PATH]
    assert here.root.statistics().unsaved == 1

    await here.write(PATH, "mended\n")
    assert (await only_note(world)).body == "mended\n"
    assert here.root.unsaved_files() == []
    assert here.root.statistics().unsaved == 0


async def test_a_note_of_exactly_the_limit_is_taken(world: World, here: Host) -> None:
    await here.write(PATH, b"x" * MAX_NOTE_BYTES)

    assert len((await only_note(world)).body) == MAX_NOTE_BYTES


async def test_a_text_that_cannot_be_a_note_leaves_the_stored_one(world: World, here: Host, stored: str) -> None:
    before = await world.notes()

    await refused(errors.NotText, here.write(PATH, b"\xff"))

    assert await world.notes() == before


async def test_a_refused_rename_leaves_the_file_where_it_was(world: World, here: Host, stored: str) -> None:
    before = await world.notes()
    await here.write(live("x.tmp"), b"\xff")

    await refused(errors.NotText, here.rename(live("x.tmp"), PATH))

    assert await world.notes() == before
    assert await here.read(live("x.tmp")) == b"\xff"
    assert body_of(await here.read(PATH)) == "we use S3\n"


async def test_a_failed_close_says_so_keeps_the_draft_and_the_next_one_saves_one_object(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    handle = await here.begin(PATH, b"text\n")

    await without_room(here, handle.flush())

    assert await here.read(PATH) == b"text\n"
    world.clock.advance(60)
    await close(handle)
    await world.settle()
    assert (await only_note(world)).body == "text\n"
    assert body_of(await here.read(PATH)) == "text\n"
    assert here.root.unsaved_files() == []


async def test_a_failed_edit_of_a_stored_note_is_saved_by_the_next_close(world: World, here: Host, stored: str) -> None:
    handle = await here.begin(PATH, b"new\n", REPLACE)

    await without_room(here, handle.flush())

    assert await here.read(PATH) == b"new\n"
    await handle.flush()
    assert await text_of_canonical(world) == "new\n"


async def test_a_failed_edit_is_kept_when_nobody_holds_the_file_any_more(world: World, here: Host, stored: str) -> None:
    """The kernel may forget the file at any time; what was accepted and not saved is drained all the same."""
    await without_room(here, here.write(PATH, "new\n"))
    world.clock.advance(60)
    gc.collect()

    assert await here.read(PATH) == b"new\n"
    assert [file.path for file in here.root.unsaved_files()] == [live(CANONICAL)]
    assert here.root.statistics().unsaved == 1
    assert await here.root.drain() == []
    assert here.root.statistics().unsaved == 0
    assert (await only_note(world)).body == "new\n"


async def test_a_failed_rename_over_a_note_can_be_done_again(world: World, here: Host, stored: str) -> None:
    await here.write(live("x.tmp"), "new\n")

    await without_room(here, here.rename(live("x.tmp"), PATH))
    assert body_of(await here.read(PATH)) == "we use S3\n"

    await here.rename(live("x.tmp"), PATH)
    assert await text_of_canonical(world) == "new\n"


# --- removing ----------------------------------------------------------------------------------------------------


async def test_a_draft_that_is_removed_while_open_is_never_stored(world: World, here: Host) -> None:
    handle = await here.begin(PATH, b"text\n", EDIT)
    await here.unlink(PATH)
    await handle.flush()

    assert await handle.read(0, 100) == b"text\n"
    assert not await here.exists(PATH)
    assert await world.notes() == {}


async def test_a_draft_that_is_removed_while_it_is_being_saved_does_not_come_back(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    handle = await here.begin(PATH, b"text\n")
    await while_saving(here, handle, here.unlink(PATH))

    assert await world.notes() == {}
    assert await here.names("alpha/live") == []


async def test_removing_a_note_whose_upload_was_never_answered_removes_the_object_too(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    here.prompt = False
    here.store.script("put", Fault(after=unreachable(), late=9.0))
    await here.write(PATH, "text\n")
    await trio.sleep(1.0)  # it is stored, and nobody here knows

    await here.unlink(PATH)

    assert await world.notes() == {}


@pytest.mark.parametrize("name", [NAME, CANONICAL])
async def test_removing_a_note_by_either_name_removes_both(
    world: World, here: Host, there: Host, stored: str, name: str, autojump_clock: Clock
) -> None:
    assert await there.exists(PATH)
    await here.unlink(live(name))
    await world.settle()

    assert await world.notes() == {}
    for host in (here, there):
        assert await host.names("alpha/live") == []
        for gone in (NAME, CANONICAL):
            await refused(errors.NotFound, host.unlink(live(gone)))


async def test_a_note_removed_while_it_is_read_stays_readable_there(here: Host, stored: str) -> None:
    handle = await here.open(PATH)
    await here.unlink(PATH)

    assert body_of(await handle.read(0, 4_096)) == "we use S3\n"


async def test_a_name_is_free_again_after_its_note_was_removed(world: World, here: Host, stored: str) -> None:
    await here.unlink(PATH)
    await here.write(PATH, "a new one\n")

    note = await only_note(world)
    assert (note.body, note.timestamp) == ("a new one\n", world.clock.now())


# --- two hosts ---------------------------------------------------------------------------------------------------


async def test_notes_of_one_name_and_second_from_two_hosts_are_both_kept(world: World, here: Host, there: Host) -> None:
    one, two = await here.begin(PATH, b"from here\n"), await there.begin(PATH, b"from there\n")
    await one.flush()
    await two.flush()

    assert sorted(map(body_of, (await world.notes()).values())) == ["from here\n", "from there\n"]


async def test_edits_of_one_note_on_two_hosts_are_both_kept_and_reported(
    world: World, here: Host, there: Host, stored: str
) -> None:
    theirs = await there.open(PATH, REPLACE)
    await here.write(PATH, "from here\n")
    await theirs.write(0, b"from there\n")
    await theirs.flush()

    notes = await world.notes()
    assert body_of(notes.pop(CANONICAL)) == "from here\n"
    [(copy, data)] = notes.items()
    assert body_of(data) == "from there\n"
    line = json.loads(there.errors.conflicts())
    assert (line["path"], line["copy"]) == (live(CANONICAL), live(copy))


async def test_a_writer_that_goes_on_after_a_conflict_overwrites_nobody(
    world: World, here: Host, there: Host, stored: str
) -> None:
    theirs = await there.open(PATH, REPLACE)
    await here.write(PATH, "from here\n")
    for line in (b"one\n", b"two\n"):
        await theirs.write(0, line)
        await theirs.flush()

    bodies = list(map(body_of, (await world.notes()).values()))
    assert "from here\n" in bodies
    assert any("two\n" in body for body in bodies)


async def test_a_note_that_one_host_removes_and_one_edits_stays(
    world: World, here: Host, there: Host, stored: str
) -> None:
    theirs = await there.open(PATH, REPLACE)
    await here.unlink(PATH)
    await theirs.write(0, b"still needed\n")
    await theirs.flush()

    assert (await only_note(world)).body == "still needed\n"


async def test_attributes_say_where_a_note_stands(here: Host, stored: str) -> None:
    await here.write(live("draft.md"), "")

    shown = await (await here.node(PATH)).xattrs()

    assert shown["user.livememfs.key"] == live(CANONICAL).encode()
    assert shown["user.livememfs.state"] == b"clean"
    assert (await (await here.node(live("draft.md"))).xattrs())["user.livememfs.state"] == b"local"


async def test_in_an_outage_a_note_is_written_into_a_folder_that_was_never_listed(
    world: World, here: Host, autojump_clock: Clock
) -> None:
    await here.names("alpha")
    here.store.fail_all = unreachable()
    await close(await here.begin(live("first"), b"one\n"))
    await close(await here.begin(live("second"), b"two\n"))
    assert body_of(await here.read(live("second"))) == "two\n"
    await close(await here.begin(live("second"), b"three\n", APPEND))
    await refused(errors.NotFound, here.read(live("another")))

    here.store.fail_all = None
    await trio.sleep(60)
    await world.settle()
    assert sorted(body_of(note) for note in (await world.notes()).values()) == ["one\n", "two\nthree\n"]


async def test_a_space_that_is_made_in_an_outage_is_in_the_bucket_later_and_one_with_that_of_another_host(
    world: World, here: Host, there: Host, autojump_clock: Clock
) -> None:
    await here.names("")
    here.prompt, here.store.fail_all = False, unreachable()
    await here.mkdir("beta")
    await close(await here.begin("beta/live/mine", b"by me\n"))
    await refused(errors.AlreadyExists, here.mkdir("beta"))
    await there.mkdir("beta")
    await there.write("beta/live/theirs", "by them\n")
    record = await there.read("beta/_meta.json")

    here.store.fail_all = None
    await trio.sleep(60)
    await world.settle()
    assert await here.read("beta/_meta.json") == record
    assert len([key for key in await world.bucket("beta/") if "_meta" in key]) == 1
    assert len([key for key in await world.bucket("beta/live/") if key.endswith(".md")]) == 2
