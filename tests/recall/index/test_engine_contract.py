"""What every index can do, tried on each: what was applied is found by words and by meaning, what went is not."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_world import ALL, DAY, DIM, MODEL, THREE, assert_whole, embed, found, named, near, note, only, read
from postgres_server import Server
from test_search import CORPUS, FILES, TYPES, WORDS, ask, day, fill, filters, titles

from livememfs.recall.index.engine import Engine, Read
from livememfs.recall.index.exchanged import MAX_TERMS, Damaged, Restriction, TextQuery
from livememfs.recall.index.local import Index
from livememfs.recall.index.merits import UnaskedMemories, Use
from livememfs.recall.index.record import Record
from livememfs.recall.index.sittings import SITTING_SECONDS
from livememfs.recall.postgres.engine import Postgres
from livememfs.records.memory import Memory
from livememfs.testing.embed import hashed

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
KINDS = ("index", "postgres")
Open = Callable[..., Engine]


@pytest.fixture(params=KINDS)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the index of this test, again if it likes; `name` another one, `model` for another model."""
    opened: list[Engine] = []
    names: dict[str, str] = {}

    def opening(name: str = "one", model: str = MODEL) -> Engine:
        if request.param == "index":
            for one in opened:
                one.close()
            opened.clear()
            made: Engine = Index(tmp_path / name, model)
        else:
            bucket = names.setdefault(name, request.getfixturevalue("bucket_name")())
            made = Postgres(request.getfixturevalue("server").url(), model, bucket)
        opened.append(made)
        return made

    yield opening
    for one in opened:
        one.close()


@pytest.fixture
def index(opener: Open) -> Engine:
    return opener()


@pytest.fixture
def filled(index: Engine) -> Engine:
    """An index with three notes, of which all have vectors."""
    index.apply((), THREE)
    embed(index)
    return index


# --- what comes without being asked for ---------------------------------------------------------------------------

NOW = 400 * DAY
TYPES_OF = ("identity", "goal", "decision", "fact", "event")


def memory(name: str, kind: str = "memories", **given: Any) -> Record:
    """A memory of the space `space` that the object `name` holds."""
    key = f"{given.get('space', 'space')}/{kind}/{name}.md"
    return note(name, f"says {name}", **{"ref": key, "key": key, "kind": kind, "type": "fact", "updated": DAY, **given})


def foremost(index: Engine, spaces: tuple[str, ...] = ("space",), **wanted: Any) -> list[list[str]]:
    """Titles of who somebody is, of what matters, and of what is new."""
    found = index.foremost(spaces, UnaskedMemories(**{"now": NOW, "since": NOW - 3_600, **wanted}))
    return [[index.records([one])[one].title for one in ids] for ids in found]


def weight_of(record: Record, uses: dict[str, Use]) -> float:
    """What a memory weighs, as its own class says."""
    use = uses.get(record.title, Use(0, 0))
    made, now, last = (datetime.fromtimestamp(at, UTC) for at in (record.updated, NOW, use.last))
    whole = Memory("memories", record.type, "text", record.importance, made, made)
    return whole.effective(now, uses=use.times, last_use=last if use.times else None)


@pytest.mark.parametrize("seed", range(4 if LONG else 1))
def test_the_foremost_memories_are_those_that_their_weights_say_after_any_changes(opener: Open, seed: int) -> None:
    chance, index = random.Random(seed), opener()
    there: dict[str, Record] = {}
    uses: dict[str, Use] = {}
    for step in range(4 if LONG else 2):
        for _ in range(30 if LONG else 18):
            name = f"20260101T000000_fact_{chance.randrange(60):08x}"
            there[name] = memory(
                name, chance.choice(("memories", "self", "goals")) if name not in there else there[name].kind,
                type=chance.choice(TYPES_OF), importance=round(chance.random(), 2), etag=f"{step}{chance.random()}",
                created=NOW - chance.randrange(7_200), updated=NOW - chance.randrange(300 * DAY),
                channel=chance.choice(("", "lobby")),
            )  # fmt: skip
            index.apply([], [read(there[name])])
        for name in chance.sample(sorted(there), 5):
            index.apply([there.pop(name).key], [])
        new = {
            name: Use(chance.randrange(1, 60), NOW - chance.randrange(100 * DAY))
            for name in chance.sample(sorted(there), 9)
        }
        index.used({("space", name): use for name, use in new.items()})
        uses |= new
        if step == 2 and isinstance(index, Index):
            index = opener()
            index.used({("space", name): use for name, use in uses.items()})
        found = index.foremost(("space",), UnaskedMemories(NOW, NOW - 3_600, most=7))
        records = [list(map(index.records(ids).__getitem__, ids)) for ids in found]
        weights = {name: weight_of(one, uses) for name, one in there.items()}
        identity = [one for one in there.values() if one.type == "identity"]
        matters = [one for one in there.values() if one.type != "identity" and one.importance >= 0.8 - 1e-6]
        recent = [one for one in there.values() if one.created >= NOW - 3_600]
        assert [one.importance for one in records[0]] == sorted((one.importance for one in identity), reverse=True)[:7]
        assert [weights[one.title] for one in records[1]] == pytest.approx(
            sorted((weights[one.title] for one in matters), reverse=True)[:7], abs=1e-5
        )
        assert [one.created for one in records[2]] == sorted((one.created for one in recent), reverse=True)[:7]
        lobby = index.foremost(("space",), UnaskedMemories(NOW, NOW - 3_600, channel="lobby", most=99)).recent
        assert {one.title for one in index.records(lobby).values()} == {
            one.title for one in recent if one.channel == "lobby"
        }


@pytest.mark.parametrize("most", [0, 1, 10])
def test_of_thousands_that_are_equal_the_newest_are_the_foremost(index: Engine, most: int) -> None:
    same = [memory(f"m{n:04}", type=("identity", "goal")[n % 2], importance=1.0, updated=NOW - n) for n in range(2_500)]
    index.apply([], [read(one) for one in same])
    names = [one.title for one in same]
    assert foremost(index, most=most) == [names[::2][:most], names[1::2][:most], []]


def test_no_note_and_no_other_space_comes_without_being_asked_for(index: Engine) -> None:
    weighty: dict[str, Any] = {"importance": 1.0, "created": NOW, "updated": NOW}
    index.apply([], [read(note("note", "text", **weighty)), read(memory("here", **weighty))])
    index.apply([], [read(memory("elsewhere", space="other", **weighty))])
    assert foremost(index) == [[], ["here"], ["here"]]
    assert foremost(index, ("other", "space"))[1] == ["elsewhere", "here"]
    assert foremost(index, ("nowhere",)) == [[], [], []]
    assert foremost(index, channel="nowhere") == [[], ["here"], []]


def test_a_memory_that_ends_is_known_by_its_id_to_who_tells_of_its_use(index: Engine) -> None:
    name = "20260101T000000_fact_0000000a"
    ends = f"{name}_until_20270101T000000"
    index.apply([], [read(memory(ends, importance=0.8, updated=NOW)), read(memory("a", importance=0.9, updated=NOW))])
    assert foremost(index)[1] == ["a", ends]
    index.used({("space", name): Use(40, NOW), ("space", "nobody"): Use(1, NOW)})
    assert foremost(index)[1] == [ends, "a"]


def test_the_vector_of_a_record_is_that_of_its_text_and_of_length_one(index: Engine) -> None:
    index.apply([], [read(memory("a")), read(memory("b"))])
    ids = index.foremost(("space",), UnaskedMemories(NOW, 0)).recent
    assert index.vectors_of(ids) == {}
    embed(index)
    found = index.vectors_of([*ids, 99_999])
    assert set(found) == set(ids)
    for number, vector in found.items():
        wanted = hashed(f"says {index.records([number])[number].title} ", DIM)
        assert float(vector @ wanted) == pytest.approx(1, abs=1e-2)
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


# --- links between memories --------------------------------------------------------------------------------------


def called(number: int) -> str:
    """What a memory is called by others."""
    return f"20260101T000000_fact_{number:08x}"


def linked(index: Engine, name: str, where: Restriction = ALL, limit: int = 99) -> set[tuple[str, str, bool]]:
    """Titles of what a memory is linked to, by which relation, and whether the link is its own."""
    of = {stored.record.title: stored.id for stored in index.strict(ALL, 99)}
    found = index.linked([of[name]], where, limit)
    assert {one.of for one in found} <= {of[name]}
    briefs = index.briefs([one.piece for one in found])
    assert all(briefs[one.piece][0] == 0 and briefs[one.piece][1].id == one.to for one in found)
    records = index.records([one.to for one in found])
    return {(records[one.to].title, one.relation, one.forward) for one in found}


def test_links_are_seen_from_both_ends_whatever_came_first(index: Engine) -> None:
    one, two, three = (called(number) for number in (1, 2, 3))
    index.apply((), [read(memory(one, links=(("updates", two), ("part_of", two), ("part_of", three))))])
    assert linked(index, one) == set()
    index.apply((), [read(memory(f"{two}_until_20990101T000000", title=two)), read(memory(three, "goals"))])

    assert linked(index, one) == {(two, "updates", True), (two, "part_of", True), (three, "part_of", True)}
    assert linked(index, two) == {(one, "updates", False), (one, "part_of", False)}
    assert linked(index, three) == {(one, "part_of", False)}
    assert index.linked([], ALL, 9) == index.linked([999], ALL, 9) == []
    assert index.verify() == []


def test_links_that_went_and_links_to_what_went_lead_nowhere(index: Engine, opener: Open) -> None:
    one, two = called(1), called(2)
    index.apply((), [read(memory(one, links=(("updates", two),))), read(memory(two, links=(("part_of", one),)))])
    index.apply((), [read(memory(one, etag="2"))])
    assert linked(index, two) == {(one, "part_of", True)}
    index.apply([f"space/memories/{one}.md"], ())
    again = opener()
    assert linked(again, two) == set()
    assert (again.statistics().links, again.statistics().lost_links, again.verify()) == (1, 1, [])


def test_links_to_names_that_somebody_invented_are_counted(index: Engine) -> None:
    links = (("updates", "invented"), ("part_of", "\0" * 5_000), ("related_to", called(2)))
    index.apply((), [read(memory(called(1), links=links)), read(memory(called(2)))])
    assert linked(index, called(1)) == {(called(2), "related_to", True)}
    assert (index.statistics().links, index.statistics().lost_links) == (3, 2)


def test_links_stay_in_their_space_and_notes_have_none(index: Engine) -> None:
    links = (("updates", called(2)), ("updates", "note"))
    index.apply((), [read(memory(called(1), links=links)), read(memory(called(2), space="other"))])
    index.apply((), [read(note("note", "text", links=(("updates", called(1)),)))])
    assert linked(index, called(1)) == linked(index, called(2)) == set()


def test_of_what_is_linked_a_filter_lets_through_what_fits_and_the_limit_the_newest(index: Engine) -> None:
    links = tuple(("related_to", called(number)) for number in range(2, 6))
    index.apply((), [read(memory(called(1), links=links))])
    for number in range(2, 6):
        index.apply((), [read(memory(called(number), type="event" if number == 3 else "fact", agent=f"a{number}"))])
    assert {name for name, _, _ in linked(index, called(1), only(type=("event",)))} == {called(3)}
    assert {name for name, _, _ in linked(index, called(1), Restriction(without=(("agent", ("a2",)),)))} == {
        called(number) for number in (3, 4, 5)
    }
    assert {name for name, _, _ in linked(index, called(1), limit=2)} == {called(4), called(5)}


def test_what_a_memory_that_fits_is_linked_to_is_found_as_well(index: Engine) -> None:
    old, new, other = (called(number) for number in (1, 2, 3))
    index.apply(
        (),
        [
            read(memory(old, pieces=("we chose the queue kafka",))),
            read(memory(new, pieces=("nothing in common",), links=(("updates", old),))),
            read(memory(other, pieces=("lunch",))),
        ],
    )
    found = ask(index, "queue kafka", meaning=False, spaces=("space",))
    assert titles(found) == [old, new]
    assert found.hits[1].reasons == {"graph": 2}
    assert titles(ask(index, "queue kafka type:event", meaning=False, spaces=("space",))) == []
    assert titles(ask(index, "queue kafka -common", meaning=False, spaces=("space",))) == [old]


# --- in and out --------------------------------------------------------------------------------------------------


def test_what_is_applied_is_found_when_apply_returns_and_after_reopening(filled: Engine, opener: Open) -> None:
    assert_whole(filled)
    again = opener()
    assert_whole(again)
    assert near(again, "queue alpha")[0] == "one"
    statistics = again.statistics()
    assert (statistics.objects, statistics.records, statistics.pieces) == (3, 3, 4)
    assert statistics.embedded == statistics.vectors == 4


def test_an_object_that_went_and_one_that_changed_are_gone_at_once(filled: Engine) -> None:
    filled.apply(["space/live/one.md"], [read(note("two", "topic", 2 * DAY, etag="2"))])

    assert (found(filled, "queue"), found(filled, "topic"), near(filled, "alpha")) == (["three"], ["two"], [])
    assert filled.objects() == {"space/live/two.md": "2", "space/live/three.md": "1"}
    assert filled.verify() == []
    assert filled.statistics().embedded == 2


def test_an_object_without_records_is_remembered_as_read_and_forgets_those_it_had(index: Engine) -> None:
    index.apply((), THREE)
    index.apply((), [("space/live/one.md", "2", "space", ()), ("space/live/empty.md", "1", "space", ())])
    assert found(index, "queue") == ["three", "two"]
    assert index.objects()["space/live/empty.md"] == "1"
    assert index.verify() == []


def test_one_object_given_twice_at_once_has_its_last_records(index: Engine) -> None:
    index.apply((), [read(note("one", "first")), read(note("one", "second", etag="2"))])
    assert (found(index, "first"), found(index, "second"), index.verify()) == ([], ["one"], [])


def test_an_object_that_goes_and_comes_at_once_is_there(index: Engine) -> None:
    index.apply((), THREE)
    index.apply(["space/live/one.md"], [THREE[0]])
    assert_whole(index)


def test_forgetting_what_is_not_there_changes_nothing(index: Engine) -> None:
    index.apply((), THREE)
    index.apply(["space/live/never.md"], ())
    assert_whole(index)


def test_objects_are_listed_below_a_prefix(index: Engine) -> None:
    index.apply((), [read(note("one", "x", space=space)) for space in ("space", "spaces", "s", "é")])
    assert set(index.objects()) == {f"{space}/live/one.md" for space in ("space", "spaces", "s", "é")}
    assert set(index.objects("space/")) == {"space/live/one.md"}
    assert set(index.objects("é/")) == {"é/live/one.md"}


def test_a_record_comes_back_as_it_was(index: Engine) -> None:
    labels = (("tag", "École"), ("file", "a:b"), ("tag", "\0x"))
    odd = note(
        "é 🙂",
        ("a\0b", "", "\ud800 c" * 50_000),
        77,
        labels=labels,
        importance=0.1,
        agent="Zoë\0 d'Arc",
        links=(("updates", "é\0"), ("part_of", "b")),
        channel="\0é",
        updated=78,
    )
    index.apply((), [read(odd)])
    assert [stored.record for stored in index.strict(ALL, 9)] == [odd]
    numbers = index.fitting(ALL)
    assert sorted(part for part, _ in index.briefs(numbers).values()) == [0, 1, 2]
    (brief,) = {brief for _, brief in index.briefs(numbers).values()}
    assert index.records([brief.id, 999]) == {brief.id: odd}
    assert (brief.kind, brief.space, brief.created, brief.manner) == ("live", "space", 77, 0)
    assert index.verify() == []


def test_two_records_by_one_name_are_refused_as_a_whole(filled: Engine) -> None:
    with pytest.raises(Damaged):
        filled.apply((), [read(note("four", "queue")), ("space/bank/x.md", "1", "space", [note("four", "queue")])])
    assert_whole(filled)


def test_an_empty_index_answers_with_nothing(index: Engine) -> None:
    index.apply((), ())
    index.take_vectors([], np.zeros((0, DIM), np.float32))
    assert (found(index, "anything"), found(index, "", phrases=("a phrase",)), near(index, "x")) == ([], [], [])
    assert (index.unembedded(9), index.objects(), index.strict(ALL, 9), index.fitting(ALL)) == ([], {}, [], [])
    assert (index.briefs([1]), index.records([1]), index.spelt("agent", ["space"]), index.verify()) == ({}, {}, [], [])
    assert index.text(TextQuery("anything"), ALL, 9)[1] >= 0


# --- beside ------------------------------------------------------------------------------------------------------


def test_a_note_that_comes_between_two_others_is_context_of_both_and_changes_their_meaning(index: Engine) -> None:
    index.apply((), [read(note("before", "lunch", 1_000)), read(note("after", "dinner", 1_200))])
    embed(index)

    index.apply((), [read(note("between", "needle", 1_100))])

    assert found(index, "needle") == ["after", "before", "between"]
    assert {text.own.rpartition(": ")[2] for text in index.unembedded(100)} == {"needle", "dinner"}
    assert any("needle" in text.before and "dinner" in text.own for text in index.unembedded(100))
    assert "after" in near(index, "dinner"), "it is found by the vector it had until the new one is there"
    assert embed(index) == 2
    assert index.verify() == []


def test_a_note_that_goes_is_context_of_nothing(index: Engine) -> None:
    index.apply((), [read(note(name, name, at)) for name, at in (("first", 1_000), ("needle", 1_100), ("last", 1_200))])
    embed(index)
    index.apply(["space/live/needle.md"], ())
    assert found(index, "needle") == []
    assert embed(index) == 1
    assert index.verify() == []


def test_a_note_of_another_sitting_or_space_or_kind_is_no_context(index: Engine) -> None:
    index.apply(
        (),
        [
            read(note("late", "lunch", 1_000 + SITTING_SECONDS + 1)),
            read(note("elsewhere", "lunch", 1_000, space="other")),
            read(note("file", "lunch", 1_000, kind="bank")),
            read(note("needle", "needle", 1_000)),
        ],
    )
    assert found(index, "needle") == ["needle"]


def test_the_author_and_the_month_of_a_note_are_found(index: Engine) -> None:
    index.apply((), [read(note("one", "lunch", 1_772_530_000, agent="Zoé"))])
    assert (found(index, "zoe"), found(index, "March 2026")) == (["one"], ["one"])


def test_notes_of_one_second_leave_nothing_to_embed_for_ever(index: Engine) -> None:
    """An import writes many notes with one time. What follows them has a meaning that depends on the last of them."""
    index.apply((), [read(note(f"n{n}", f"word{n}", 1_000)) for n in range(5)])
    index.apply((), [read(note("follows", "dinner", 1_060))])
    index.apply((), [read(note("n5", "word5", 1_000))])
    for _ in range(3):
        texts = index.unembedded(100)
        index.take_vectors(
            [text.meaning for text in texts], np.array([hashed(text.own, DIM) for text in texts]).reshape(-1, DIM)
        )
    assert index.unembedded(100) == []


@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_after_any_changes_context_and_meaning_are_those_of_an_index_made_anew(opener: Open, seed: int) -> None:
    """Notes a minute apart, which come and go in any order."""
    chance = random.Random(seed)
    index = opener("changed")
    there: dict[int, Record] = {}
    for turn in range(15):
        gone = [number for number in list(there) if chance.random() < 0.2]
        came = [number for number in chance.sample(range(40), 4) if number not in gone]
        for number in gone:
            del there[number]
        there |= {number: note(f"n{number}", f"word{number}x", 60 * number, etag=str(turn)) for number in came}
        index.apply([f"space/live/n{number}.md" for number in gone], [read(there[number]) for number in came])
    answers = [found(index, f"word{number}x") for number in range(40)]
    meanings = {text.meaning for text in index.unembedded(1_000)}

    fresh = opener("fresh")
    fresh.apply((), [read(there[number]) for number in sorted(there)])
    assert {text.meaning for text in fresh.unembedded(1_000)} == meanings
    assert [found(fresh, f"word{number}x") for number in range(40)] == answers


@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_after_any_changes_the_index_finds_what_a_dictionary_holds(opener: Open, seed: int) -> None:
    """Each text has a word of its own. Notes are so far apart that they are no context of each other."""
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(12)]
    model: dict[str, str] = {}
    index = opener()
    version = 0
    for _ in range(20):
        gone = [name for name in chance.sample(names, 2) if chance.random() < 0.5]
        came = [name for name in chance.sample(names, 3) if chance.random() < 0.7 and name not in gone]
        reads = []
        for name in came:
            version += 1
            model[name] = f"word{version}x"
            pieces = (f"common {model[name]}", "tail")[: chance.choice((1, 2))]
            reads.append(read(note(name, pieces, DAY * names.index(name), etag=str(version))))
        for name in gone:
            model.pop(name, None)
        index.apply([f"space/live/{name}.md" for name in gone], reads)
        if chance.random() < 0.4:
            embed(index)
        if chance.random() < 0.2:
            index = opener()
        assert index.verify() == []
        assert found(index, "common") == sorted(model)
    assert (index.statistics().rebuilt, index.statistics().redone) == ((), 0)
    for number in range(version + 1):
        word = f"word{number}x"
        assert found(index, word) == [name for name, there in model.items() if there == word]


# --- meaning -----------------------------------------------------------------------------------------------------


def test_vectors_survive_reopening_and_a_text_that_comes_back_is_not_embedded_again(
    filled: Engine, opener: Open
) -> None:
    index = opener()
    assert index.unembedded(10) == []
    index.apply(["space/live/one.md"], ())
    assert "one" not in near(index, "alpha")
    index.apply((), [THREE[0]])
    assert index.unembedded(10) == []
    assert near(index, "alpha")[0] == "one"


def test_vectors_of_another_model_do_not_count(filled: Engine, opener: Open) -> None:
    other = opener(model="another")
    assert len(other.unembedded(10)) == 4
    assert near(other, "queue alpha") == []
    texts = other.unembedded(10)
    other.take_vectors([text.meaning for text in texts], np.array([hashed(text.own, 32) for text in texts]))
    assert len(other.near(hashed("queue", 32), ALL, 10)) == 4
    assert other.verify() == []
    index = opener()
    assert index.unembedded(10) == []
    assert near(index, "queue alpha")[0] == "one"


def test_what_is_unembedded_comes_newest_first_and_no_more_than_asked_for(index: Engine) -> None:
    index.apply((), THREE)
    assert [text.own.rpartition(" ")[2] for text in index.unembedded(3)] == ["delta", "gamma", "beta"]


def test_two_pieces_with_the_same_text_need_one_vector_and_both_are_found(index: Engine) -> None:
    index.apply((), [read(note(name, "same text", kind="bank")) for name in ("one", "two")])
    assert embed(index) == 1
    assert (index.statistics().embedded, index.statistics().vectors) == (2, 1)
    assert index.verify() == []


def test_vectors_that_nobody_asked_for_are_kept_for_who_comes(index: Engine) -> None:
    index.apply((), THREE)
    texts = index.unembedded(10)
    index.apply([one[0] for one in THREE], ())
    index.take_vectors([text.meaning for text in texts], np.array([hashed(text.own, DIM) for text in texts]))
    assert (index.statistics().vectors, index.statistics().embedded) == (4, 0)
    index.apply((), THREE)
    assert (index.unembedded(10), index.statistics().embedded, index.verify()) == ([], 4, [])


def test_meaning_looks_into_the_spaces_that_are_asked_for_and_filters(index: Engine) -> None:
    index.apply(
        (),
        [
            read(note("here", "alpha queue", 1 * DAY, labels=(("tag", "X"),))),
            read(note("pad", "nothing like it", 9 * DAY)),
            read(note("there", "alpha queue", 1 * DAY, space="other", type="decision")),
            read(note("pad", "nothing like it", 9 * DAY, space="other")),
        ],
    )
    embed(index)
    assert sorted(near(index, "alpha queue")) == ["here", "there"]
    assert near(index, "alpha queue", only(space=("space",))) == ["here"]
    assert near(index, "alpha queue", only(space=())) == near(index, "alpha queue", only(space=("no",))) == []
    assert near(index, "alpha queue", only(type=("decision",))) == ["there"]
    assert near(index, "alpha queue", Restriction(without=(("type", ("decision",)),))) == ["here"]
    assert near(index, "alpha queue", only(label=("tag:x",))) == ["here"]
    assert near(index, "alpha queue", Restriction(after=2 * DAY)) == []
    assert near(
        index, "alpha queue", Restriction(before=2 * DAY, numbers=tuple(index.fitting(only(kind=("live",)))))
    ) == [*near(index, "alpha queue")]
    assert near(index, "alpha queue", Restriction(numbers=())) == []


def test_a_question_of_another_length_finds_nothing(filled: Engine) -> None:
    assert filled.near(hashed("queue", 32), ALL, 10) == []


@pytest.mark.parametrize("first", ["prior", "vectors"])
def test_the_mean_of_any_texts_counts_whenever_it_comes(opener: Open, first: str) -> None:
    """Cosines are those of the vectors relative to the mean of the space, drawn to that of any texts."""
    index, prior = opener(), hashed("common words", DIM)
    index.apply((), THREE)
    if first == "prior":
        index.expect(prior)
    embed(index)
    if first == "vectors":
        index.expect(prior)
    index = opener()
    assert index.prior is not None
    assert np.array_equal(index.prior, prior)
    own = [hashed(f"ann ({n} January 1970): {said} ", DIM) for n, said in ((2, "queue alpha"), (3, "queue beta"))]
    own += [hashed(f"ann (4 January 1970): {said} ", DIM) for said in ("queue gamma", "second piece delta")]
    mean = (np.sum(own, axis=0) + 300 * prior) / 304
    asked = hashed("alpha", DIM) - mean
    expected = [row - mean for row in own]
    cosines = sorted(
        (float(row @ asked / np.linalg.norm(row) / np.linalg.norm(asked)) for row in expected), reverse=True
    )
    assert [cosine for _, cosine in index.near(hashed("alpha", DIM), ALL, 10)] == pytest.approx(cosines, abs=0.02)
    assert index.verify() == []


# --- filters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "fitting"),
    [
        (Restriction(), "abcd"),
        (only(kind=("bank",)), "c"),
        (only(space=("space", "nowhere")), "abcd"),
        (only(space=("nowhere",)), ""),
        (only(label=("tag:x",)), "ab"),
        (Restriction(fields=(("label", ("tag:x",)), ("label", ("tag:y",)))), "b"),
        (only(label=("tag:x", "tag:y")), "ab"),
        (Restriction(without=(("label", ("tag:x",)),)), "cd"),
        (Restriction(without=(("type", ("todo", "issue")),)), "c"),
        (Restriction(after=20, before=40), "bc"),
        (Restriction(after=40, before=20), ""),
        (only(agent=()), ""),
        (only(agent=("Ann",)), ""),
        (replace(only(type=("todo",)), after=11), "b"),
        (Restriction(numbers=()), ""),
        (Restriction(numbers=(1, 4, 99)), "ad"),
    ],
)
def test_a_filter_lets_through_what_fits_it_however_it_is_asked(
    index: Engine, where: Restriction, fitting: str
) -> None:
    index.apply(
        (),
        [
            read(note("a", "queue", 10, labels=(("tag", "X"),))),
            read(note("b", "queue", 20, labels=(("tag", "x"), ("tag", "y")))),
            read(note("c", "queue", 30, kind="bank", type="")),
            read(note("d", "queue", 40, type="issue")),
        ],
    )
    embed(index)
    assert [stored.record.title for stored in index.strict(where, 9)] == list(reversed(fitting))
    assert [stored.record.title for stored in index.strict(where, 1)] == list(reversed(fitting))[:1]
    assert named(index, sorted(index.fitting(where))) == list(fitting)
    assert found(index, "queue", where) == found(index, "", where, phrases=("queue",)) == list(fitting)
    assert sorted(named(index, [number for number, _ in index.near(hashed("queue", DIM), where, 9)])) == list(fitting)


def test_of_a_record_whose_pieces_are_not_all_listed_those_are_found_that_are(filled: Engine) -> None:
    (first, second) = sorted(filled.fitting(only(space=("space",))))[2:]
    for listed in ((first,), (second,)):
        where = Restriction(numbers=listed)
        assert [number for number, _ in filled.near(hashed("queue", DIM), where, 9)] == list(listed)
        assert {number for number, _ in filled.text(TextQuery("queue gamma delta"), where, 9)[0]} == set(listed)
        assert filled.fitting(where) == [first, second]


def test_a_filter_that_few_of_many_fit_finds_them(index: Engine) -> None:
    index.apply(
        (), [read(note(f"n{n}", f"queue {'queue ' * (n < 2_990)}", DAY * n, type=f"t{n % 300}")) for n in range(3_000)]
    )
    hits, _ = index.text(TextQuery("queue"), only(type=("t299",)), 100)
    assert {index.briefs([number])[number][1].type for number, _ in hits} == {"t299"}
    assert len(hits) == 10


def test_files_are_found_by_a_part_of_their_name(index: Engine) -> None:
    files = (("file", "src/Auth.py"),)
    index.apply((), [read(note("a", "x", 1, labels=files)), read(note("b", "x", 2, labels=(("tag", "auth"),)))])
    assert named(index, index.fitting(ALL, files=["AUTH"])) == ["a"]
    assert named(index, index.fitting(ALL, files=["nothing", "th.py"])) == ["a"]
    assert named(index, index.fitting(ALL, not_files=["auth"])) == ["b"]
    assert index.fitting(ALL, files=["%"]) == []


def test_names_are_told_as_they_are_written_in_the_spaces_that_are_asked_for(index: Engine) -> None:
    for space, agent in (("alpha", "Ann"), ("alpha", "ann"), ("other", "Eve")):
        index.apply((), [read(note(agent, "x", agent=agent, space=space))])
    assert sorted(index.spelt("agent", ["alpha"])) == ["Ann", "ann"]
    assert (index.spelt("agent", ["other"]), index.spelt("agent", [])) == (["Eve"], [])
    assert index.spelt("type", ["alpha", "other"]) == ["todo"]


def test_many_spaces_are_searched_side_by_side(index: Engine) -> None:
    spaces = [f"s{n}" for n in range(30)]
    index.apply((), [read(note(f"in-{space}", f"queue {space}", space=space)) for space in spaces])
    embed(index)
    assert len(found(index, "queue", only(space=tuple(spaces)))) == 30
    assert found(index, "queue", only(space=("s3", "s4"))) == ["in-s3", "in-s4"]
    assert len(index.near(hashed("queue", DIM), only(space=("s3", "s4")), 10)) == 2


# --- words, phrases, what must not be there ----------------------------------------------------------------------


def bank(name: str, text: str) -> Read:
    """A text that says nothing but itself."""
    return read(note(name, text, kind="bank", title=name))


def test_a_text_that_has_more_of_the_words_comes_first_and_the_limit_keeps_the_best(index: Engine) -> None:
    index.apply(
        (), [bank("1", "retry the upload"), bank("2", "retry later"), bank("3", "the upload"), bank("4", "lunch")]
    )
    hits, ceiling = index.text(TextQuery("retry upload"), ALL, 9)
    assert named(index, [number for number, _ in hits])[0] == "1"
    assert len(hits) == 3
    scores = [score for _, score in hits]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[0] <= ceiling
    assert index.text(TextQuery("retry upload"), ALL, 1)[0] == hits[:1]


def test_each_language_is_found_by_its_own_forms(index: Engine) -> None:
    index.apply((), [bank("en", "the deployments failed"), bank("fr", "les déploiements de la file échouent")])
    assert (found(index, "deployment"), found(index, "deploiement echoue")) == (["en"], ["fr"])


def test_a_phrase_needs_its_words_in_a_row_and_beside_the_words(index: Engine) -> None:
    index.apply(
        (), [bank("1", "exactly twice delivered"), bank("2", "twice exactly delivered"), bank("3", "delivered")]
    )
    assert found(index, "", phrases=("exactly twice",)) == ["1"]
    assert found(index, "delivered", phrases=("exactly twice",)) == ["1"]
    assert found(index, "lunch", phrases=("exactly twice",)) == []
    assert found(index, "", phrases=("exactly twice", "delivered")) == ["1"]
    assert found(index, "", phrases=("Exactly", "twice")) == ["1", "2"]


@pytest.mark.parametrize("text", ["the state of the art of caching", "la mise en place de la file"])
def test_a_phrase_with_stop_words_finds_the_text_it_was_copied_from(index: Engine, text: str) -> None:
    index.apply((), [bank("1", f"{text}: done."), bank("2", "state art caching mise place file")])
    assert found(index, "", phrases=(text,)) == ["1"]


def test_a_phrase_is_found_in_the_context_as_well(index: Engine) -> None:
    index.apply((), [read(note("said", "exactly twice", 1_000)), read(note("beside", "lunch", 1_060))])
    assert found(index, "", phrases=("exactly twice",)) == ["beside", "said"]
    assert found(index, "lunch", without=("exactly twice",)) == []


def test_a_phrase_of_stop_words_alone_forbids_nothing(index: Engine) -> None:
    index.apply((), [bank("1", "queue")])
    assert found(index, "queue", phrases=("on a",)) == ["1"]
    assert found(index, "", phrases=("on a",)) == []


def test_minus_excludes_words_and_phrases(index: Engine) -> None:
    index.apply((), [bank("1", "queue kafka"), bank("2", "queue message broker"), bank("3", "queue broker of message")])
    assert found(index, "queue", without=("Kafka",)) == ["2", "3"]
    assert found(index, "queue", without=("message broker",)) == ["1", "3"]
    assert found(index, "queue", without=("kafka", "message")) == []
    assert found(index, "queue", without=("the",)) == ["1", "2", "3"]
    assert found(index, "", without=("kafka",)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("see UserRepository for it", "repository"),
        ("see UserRepository for it", "UserRepository"),
        ("set max_retry_count to 5", "retry"),
        ("in src/upload/retry.py", "upload"),
        ("code ERR-4711 again", "4711"),
    ],
)
def test_a_name_is_found_whole_and_by_its_parts(index: Engine, text: str, words: str) -> None:
    index.apply((), [bank("1", text), bank("2", "lunch")])
    assert found(index, words) == ["1"]


# --- large and odd -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["aB" * 524_288, "word " * 209_715, "🙂" * 262_144, "queue\0queue\ud800queue (⑴) " * 1_000]
)
def test_a_large_or_odd_text_is_taken_and_its_neighbour_is_found(index: Engine, text: str) -> None:
    """Where a word is too long to be one, only that word is lost."""
    index.apply((), [read(note("one", f"{text} needle", 1_000)), read(note("two", "lunch", 9 * DAY))])
    embed(index)
    assert found(index, "needle") == ["one"]
    assert found(index, "lunch") == ["two"]
    assert found(index, "", phrases=("needle",)) == ["one"]
    assert index.verify() == []
    index.apply(["space/live/one.md"], ())
    assert (found(index, "needle"), found(index, "lunch"), index.verify()) == ([], ["two"], [])


def test_a_question_of_ten_kilobytes_is_answered_by_its_first_words(index: Engine) -> None:
    index.apply((), [bank("1", "word0"), bank("2", f"word{MAX_TERMS + 10}")])
    asked = " ".join(f"word{n}" for n in range(1_300))
    assert len(asked) > 10_000
    assert found(index, asked) == ["1"]
    assert found(index, "", phrases=(asked,), without=(asked,)) == []


@pytest.mark.parametrize("words", ["", "what is it", "?!", "\0", "\ud800", "👍", " ", "' OR 1=1 --", "%s {} \\"])
def test_odd_questions_find_nothing_and_fail_at_nothing(filled: Engine, words: str) -> None:
    for asked in (TextQuery(words), TextQuery("", (words,)), TextQuery("nothing", (words,), (words,))):
        assert filled.text(asked, only(space=("space",), agent=("ann",)), 9)[0] == []
    typed = words.encode(errors="ignore").decode()  # halves of surrogate pairs get no further than the parser
    assert filled.objects(typed) == ({} if typed else filled.objects())
    assert filled.fitting(only(agent=(typed,)), files=(typed or "x",)) == []


def test_names_may_be_anything(index: Engine) -> None:
    labels = (("tag", "x" * 100_000), ("tag", "é \0 🙂"), ("file", "a\\b%.py"), ("tag", "a:b"))
    odd = note("one", "queue", labels=labels, agent="Zoë d'Arc", type="été", ref="r" * 20_000)
    index.apply((), [read(odd)])
    assert found(index, "queue", only(label=("tag:a:b",), agent=("Zoë d'Arc",), type=("été",))) == ["one"]
    assert found(index, "queue", only(label=("tag:é \0 🙂",))) == ["one"]
    assert named(index, index.fitting(ALL, files=("\\b%",))) == ["one"]
    (found_again,) = index.records([brief.id for _, brief in index.briefs(index.fitting(ALL)).values()]).values()
    assert found_again.ref == odd.ref


# --- through the search ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelves(
    server: Server, bucket_name: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, ...]]:
    """The same records in each index."""
    both = Index(tmp_path_factory.mktemp("shelf"), "hashed"), Postgres(server.url(), "hashed", bucket_name())
    for one in both:
        fill(one, *CORPUS)  # type: ignore[arg-type]  # it takes any engine
    yield both
    for one in both:
        one.close()


def assert_same(shelves: tuple[Engine, ...], typed: str, *, meaning: bool) -> None:
    """Every engine gives the same answer, with the same scores."""
    first, *others = [ask(one, typed, meaning=meaning, limit=100) for one in shelves]  # type: ignore[arg-type]
    for other in others:
        assert {hit.record.ref: hit.score for hit in other.hits} == pytest.approx(
            {hit.record.ref: hit.score for hit in first.hits}, abs=0.02
        )
        assert (other.strategy, other.remarks) == (first.strategy, first.remarks)
        if not meaning:  # eight bits of a vector tell equals apart that are none
            assert titles(other) == titles(first)


@pytest.mark.parametrize("meaning", [False, True])
@pytest.mark.parametrize(
    "typed",
    [
        "queue", "queue broker retry", "queue type:todo", "type:todo", "", '"queue and"', '"upload number0" queue',
        "queue -broker", '-"queue and"', "-tag:db queue", "tag:école cache", f"file:{FILES[0]}", "queue -file:auth",
        "agent:ANN token", "in:bank queue", "space:there upload", "after:2026-01-20 queue", "before:2026-01-09",
        "what did Bob say of the queue", f"which {TYPES[0]} about the broker in January", "number17",
    ],
)  # fmt: skip
def test_every_index_gives_the_same_answer(shelves: tuple[Engine, ...], typed: str, meaning: bool) -> None:
    assert_same(shelves, typed, meaning=meaning)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters(), st.sampled_from(("", *WORDS)), st.booleans())
def test_every_index_understands_filters_alike(
    shelves: tuple[Engine, ...], chosen: tuple[str, Any], words: str, meaning: bool
) -> None:
    assert_same(shelves, f"{words} {chosen[0]}", meaning=meaning)


@given(st.text(max_size=60))
def test_whatever_is_typed_is_answered_alike(shelves: tuple[Engine, ...], typed: str) -> None:
    assert_same(shelves, typed, meaning=False)


def test_scores_are_the_same_to_the_digit_where_nothing_was_ever_taken_out(shelves: tuple[Engine, ...]) -> None:
    chance = random.Random(5)
    for _ in range(60):
        words = " ".join(chance.choices([*WORDS, "and", f"number{chance.randint(0, 60)}"], k=chance.randint(1, 5)))
        asked = TextQuery(words, phrases=("queue and",) if chance.random() < 0.2 else ())
        answers = []
        for one in shelves:
            hits, ceiling = one.text(asked, ALL, 400)
            briefs = one.briefs([number for number, _ in hits])
            known = one.records([brief.id for _, brief in briefs.values()])
            answers.append({known[briefs[number][1].id].ref: score for number, score in hits} | {"": ceiling})
        assert answers[0] == pytest.approx(answers[1], rel=1e-4)


def test_the_days_of_the_corpus_are_apart() -> None:
    """Else they were each other's context, and a difference there would look like one of the engines."""
    assert (day(1) - day(0)).total_seconds() > SITTING_SECONDS


# --- by name -------------------------------------------------------------------------------------------------------


def test_records_are_found_by_what_they_are_called(index: Engine) -> None:
    memory = "space/memories/20260220T140000_fact_d4d8560b"
    one = note("one", "first")
    section = note("b", "text", ref="space/bank/b.md#A / B", key="space/bank/b.md", kind="bank")
    ending = note("m", "soon over", ref=f"{memory}_until_20260221T140000.md", key=f"{memory}_until_20260221T140000.md")
    index.apply([], [read(one), read(section), read(ending)])

    found = index.called([one.ref, section.ref, f"{memory}.md", "space/live/none.md", "space/bank/b.md#A", "é\0"])

    assert {ref: stored.record.text for ref, stored in found.items()} == {
        one.ref: "first", section.ref: "text", f"{memory}.md": "soon over",
    }  # fmt: skip
    assert index.called([]) == {}


def test_records_are_found_by_the_files_they_name_the_newest_first(index: Engine) -> None:
    def about(name: str, day: int, *files: str, space: str = "space") -> Record:
        return note(name, name, day * DAY, labels=tuple(("file", file) for file in files), space=space)

    index.apply(
        [],
        [
            read(about("old", 1, "src/a.py")), read(about("other", 2, "src/ab.py", "a.py")),
            read(about("new", 3, "src/a.py", "src/b.py")), read(about("elsewhere", 4, "src/a.py", space="beta")),
            read(note("tagged", "t", DAY, labels=(("tag", "src/a.py"),))),
        ],
    )  # fmt: skip

    def named_by(*files: str, limit: int = 10) -> list[str]:
        return [one.record.title for one in index.naming("space", files, limit)]

    assert named_by("src/a.py") == ["new", "old"]
    assert named_by("src/a.py", "a.py", "src/b.py") == ["new", "other", "old"]
    assert named_by("src/a.py", "a.py", limit=1) == ["new"]
    assert named_by() == named_by("src") == named_by("%") == []


def test_who_asks_an_index_loads_no_engine_but_his_own() -> None:
    """A mount whose index is in PostgreSQL needs neither tantivy nor SQLite for it."""
    modules = "livememfs.recall.index.engine, livememfs.recall.search.ranking, livememfs.recall.postgres.engine"
    script = f"import sys, {modules}; print({{'tantivy', 'sqlite3'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"
