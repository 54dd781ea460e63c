"""The replica: what it knows, for how long it believes it, and what it says when the bucket tells otherwise."""

from __future__ import annotations

import pytest
import trio
from trio.abc import Clock
from trio.testing import wait_all_tasks_blocked

from livememfs import errors
from livememfs.cache.asking import OUTAGE_PAUSE
from livememfs.cache.changes import Change
from livememfs.cache.levels import split_key
from livememfs.cache.replica import DEFAULT_LISTING_TTL, Replica
from livememfs.store.base import IfAbsent, IfMatch
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore, StoreRequest

JUST_WITHIN = DEFAULT_LISTING_TTL * 0.9
EXPIRED = DEFAULT_LISTING_TTL * 1.1


class Bucket:
    """A bucket, the replica in front of it, and the changes that were published. `memory` is another host's hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory)
        self.replica = Replica(self.store)
        self.published: list[tuple[str, str, str]] = []
        self.replica.changes.subscribe(self._note)

    def _note(self, change: Change) -> None:
        self.published.append((change.kind, change.key, change.origin))

    async def names(self, prefix: str = "") -> set[str]:
        return set((await self.replica.names.listing(prefix)).objects)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def unreachable() -> errors.Unreachable:
    return errors.Unreachable("reset", endpoint="the bucket")


# --- answers on their way ------------------------------------------------------------------------------------------


async def test_who_asks_after_a_removal_does_not_get_an_answer_from_before_it(
    bucket: Bucket, nursery: trio.Nursery, autojump_clock: Clock
) -> None:
    """Where only a LIST can tell whether a folder went with its object, one that was begun earlier cannot."""
    await bucket.memory.put("a/b/only", b"x")
    await bucket.replica.names.listing("")
    bucket.store.script("list", Fault(late=2.0))
    nursery.start_soon(lambda: bucket.replica.names.listing("", max_age=0.0))
    await trio.sleep(1.0)
    await bucket.replica.delete("a/b/only")
    assert (await bucket.replica.names.listing("", max_age=1.0)).folders == set()


# --- many at once -------------------------------------------------------------------------------------------------


async def test_many_are_read_as_they_are_now_whether_the_bucket_has_them_yet_or_not(bucket: Bucket) -> None:
    for name in ("old", "changed", "removed", "cached"):
        await bucket.memory.put(f"a/{name}", name.encode())
    await bucket.replica.read("a/cached")
    changed = await bucket.replica.names.look("a/changed")
    bucket.replica.save("a/changed", b"ours", meta={}, base=changed)
    bucket.replica.save("a/new", b"new", meta={}, base=None)
    bucket.replica.remove("a/removed", base=await bucket.replica.names.look("a/removed"))
    bucket.store.forget()

    found = await bucket.replica.read_many([f"a/{n}" for n in ("old", "changed", "removed", "cached", "new", "none")])

    assert {key: one.data for key, one in found.items()} == {
        "a/old": b"old", "a/changed": b"ours", "a/cached": b"cached", "a/new": b"new",
    }  # fmt: skip
    assert "a/cached" not in {asked.key for asked in bucket.store.requests}


async def test_many_that_were_read_take_no_room_from_what_somebody_reads(bucket: Bucket) -> None:
    for n in range(5):
        await bucket.memory.put(f"a/{n}", b"text")
    before = bucket.replica.statistics().contents
    assert len(await bucket.replica.read_many([f"a/{n}" for n in range(5)])) == 5
    assert bucket.replica.statistics().contents.in_memory == before.in_memory


async def test_of_many_that_were_read_none_is_asked_for_again_to_be_looked_at(bucket: Bucket) -> None:
    for n in range(5):
        await bucket.memory.put(f"a/{n}", b"text", meta={"n": str(n)})
    await bucket.names("a/")
    await bucket.replica.read_many([f"a/{n}" for n in range(5)])
    bucket.store.forget()
    listed = (await bucket.replica.names.listing("a/")).objects.values()
    assert [info.meta for info in await bucket.replica.names.complete(list(listed))] == [
        {"n": str(n)} for n in range(5)
    ]
    assert not bucket.store.requests


async def test_what_was_changed_while_many_were_read_keeps_its_own_metadata(
    bucket: Bucket, autojump_clock: Clock
) -> None:
    await bucket.memory.put("a/1", b"text", meta={"by": "them"})
    await bucket.names("a/")
    theirs = (await bucket.replica.names.listing("a/")).objects["1"]
    bucket.store.script("get", None, Fault(late=1.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bucket.replica.read_many, ["a/1"])
        await trio.sleep(0.5)
        bucket.replica.restamp(theirs, {"by": "us"})
    now = bucket.replica.names.now("a/1")
    assert now is not None
    assert now.meta == {"by": "us"}


async def test_of_many_those_that_fail_at_first_are_asked_for_by_themselves(bucket: Bucket) -> None:
    for n in range(5):
        await bucket.memory.put(f"a/{n}", b"text")
    bucket.store.script("get", None, Fault(before=unreachable()))
    assert len(await bucket.replica.read_many([f"a/{n}" for n in range(5)])) == 5


async def test_many_of_a_store_that_is_down_are_not_said_to_be_gone(bucket: Bucket) -> None:
    await bucket.memory.put("a/1", b"text")
    await bucket.names("a/")
    bucket.store.fail_all = unreachable()
    with pytest.raises(errors.Unreachable):
        await bucket.replica.read_many(["a/1"])


# --- names -------------------------------------------------------------------------------------------------------


async def test_a_listing_is_one_level(bucket: Bucket) -> None:
    for key in ("a/", "a/x", "a/y", "a/sub/z", "a/sub/deeper/z", "b"):
        await bucket.memory.put(key, b"")

    listing = await bucket.replica.names.listing("a/")

    assert set(listing.objects) == {"", "x", "y"}
    assert listing.folders == {"sub"}
    assert "x" in listing
    assert "sub" in listing
    assert "z" not in listing
    assert [info.key for info in await bucket.replica.names.walk("a/sub/")] == ["a/sub/deeper/z", "a/sub/z"]


async def test_pages_are_overheard_only_while_somebody_listens(bucket: Bucket) -> None:
    for number in range(1_500):
        await bucket.memory.put(f"a/{number:04}", b"")
    pages: list[int] = []
    with bucket.replica.names.overhear("a/", lambda named: pages.append(len(named))):
        await bucket.replica.names.listing("b/", fresh=True)
        assert pages == []
        await bucket.replica.names.listing("a/", fresh=True)
    assert pages == [1_000, 500]

    await bucket.replica.names.listing("a/", fresh=True)
    assert pages == [1_000, 500]


async def test_the_items_of_a_level_are_in_the_order_of_names_whatever_happens_to_it(bucket: Bucket) -> None:
    for name in ("b", "d"):
        await bucket.memory.put(f"a/{name}", b"")
    level = await bucket.replica.names.listing("a/")
    assert [name for name, _ in level.items()] == ["b", "d"]

    await bucket.replica.put("a/c", b"1")
    await bucket.replica.put("a/b", b"22")
    assert [(name, info.size) for name, info in level.items()] == [("b", 2), ("c", 1), ("d", 0)]
    bucket.replica.remove("a/b", base=level.objects["b"])
    assert [name for name, _ in level.items()] == ["c", "d"]


async def test_a_listing_is_believed_for_its_time_and_then_asked_for_again(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    assert await bucket.names() == set()
    await bucket.memory.put("new", b"")

    await trio.sleep(JUST_WITHIN)
    assert await bucket.names() == set()

    await trio.sleep(EXPIRED - JUST_WITHIN)
    assert await bucket.names() == {"new"}
    assert (bucket.replica.statistics().listings, bucket.replica.statistics().listing_hits) == (2, 1)


async def test_a_listing_is_as_old_as_the_question_not_as_the_answer(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    bucket.store.latency("list", EXPIRED)
    await bucket.names()

    await bucket.names()

    assert bucket.store.counts["list"] == 2


async def test_fresh_asks_whatever_is_known(bucket: Bucket) -> None:
    await bucket.names()
    await bucket.memory.put("new", b"")

    assert set((await bucket.replica.names.listing("", fresh=True)).objects) == {"new"}


async def test_whoever_asks_for_the_same_level_at_once_shares_an_answer(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    await bucket.memory.put("x", b"")
    bucket.store.latency("list", 0.5)
    answers: list[set[str]] = []

    async def ask() -> None:
        answers.append(await bucket.names())

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)

    assert answers == [{"x"}] * 5
    assert bucket.store.counts["list"] == 1


async def test_who_waited_for_a_listing_that_failed_asks_for_itself(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    await bucket.memory.put("x", b"")
    bucket.store.latency("list", 0.5)
    bucket.store.script("list", Fault(before=unreachable()))
    outcomes: list[object] = []

    async def ask() -> None:
        try:
            outcomes.append(await bucket.names())
        except errors.Unreachable:
            outcomes.append("unreachable")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)

    assert outcomes == ["unreachable", {"x"}]


async def test_a_reader_who_gives_up_does_not_block_the_next_one(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    bucket.store.blackhole = True
    with trio.move_on_after(1):
        await bucket.names()
    bucket.store.blackhole = False

    assert await bucket.names() == set()


# --- our own hand ------------------------------------------------------------------------------------------------


async def test_own_writes_show_at_once_in_every_known_level(bucket: Bucket) -> None:
    await bucket.names()
    await bucket.names("a/")
    bucket.store.forget()

    await bucket.replica.put("a/b/c", b"")
    await bucket.replica.put("a/x", b"one")

    assert (await bucket.replica.names.listing("")).folders == {"a"}
    listing = await bucket.replica.names.listing("a/")
    assert (set(listing.objects), listing.folders) == ({"x"}, {"b"})
    assert listing.objects["x"].size == 3
    assert bucket.store.counts["list"] == 0


async def test_own_deletes_show_at_once_and_empty_folders_go(bucket: Bucket) -> None:
    await bucket.memory.put("a/x", b"")
    await bucket.names()
    await bucket.names("a/")

    await bucket.replica.delete("a/x")

    assert await bucket.names("a/") == set()
    assert (await bucket.replica.names.listing("")).folders == set()
    with pytest.raises(errors.ObjectMissing):
        await bucket.replica.names.stat("a/x")


async def test_a_copy_shows_at_once_with_its_content(bucket: Bucket) -> None:
    await bucket.replica.put("x", b"bytes", meta={"livememfs-mode": "644"})
    await bucket.names()

    info = await bucket.replica.copy("x", "y")
    bucket.store.forget()

    assert info.meta == {"livememfs-mode": "644"}
    assert (await bucket.replica.read("y")).data == b"bytes"
    assert bucket.store.requests == []


@pytest.mark.parametrize("known", [False, True], ids=["first listing", "later listing"])
async def test_a_listing_on_its_way_does_not_undo_our_hand(
    bucket: Bucket, autojump_clock: trio.abc.Clock, known: bool
) -> None:
    """The store answers with what was there when it was asked; we wrote and removed since."""
    await bucket.memory.put("a/old", b"")
    if known:
        await bucket.names("a/")
        await trio.sleep(EXPIRED)
    slow = _SlowAnswer(bucket.store, "list_page")
    bucket.replica.store = bucket.replica.names.store = slow
    found: list[set[str]] = []

    async def ask() -> None:
        found.append(await bucket.names("a/"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await slow.answered.wait()
        await bucket.replica.put("a/new", b"")
        await bucket.replica.put("a/sub/new", b"")
        await bucket.replica.delete("a/old")
        slow.go_on.set()

    assert found == [{"new"}]
    assert (await bucket.replica.names.listing("a/")).folders == {"sub"}


async def test_a_listing_on_its_way_takes_nothing_back_that_was_heard_of_one_object(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    """Whoever watches would hear of a removal, and of a new file later, where there was one file all the time."""
    await bucket.memory.put("a/old", b"")
    await bucket.names("a/")
    await trio.sleep(EXPIRED)
    slow = _SlowAnswer(bucket.store, "list_page")
    bucket.replica.store = bucket.replica.names.store = slow
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bucket.names, "a/")
        await slow.answered.wait()
        await bucket.memory.put("a/new", b"")
        await bucket.memory.delete("a/old")
        await bucket.replica.names.look_again(["a/new", "a/old"])
        slow.go_on.set()

    assert await bucket.names("a/") == {"new"}
    assert sorted(bucket.published) == [("delete", "a/old", "remote"), ("put", "a/new", "remote")]


@pytest.mark.parametrize("question", ["stat", "read"])
@pytest.mark.parametrize("before", [b"old", None], ids=["there before", "missing before"])
@pytest.mark.parametrize("after", [b"brand new", None], ids=["written", "removed"])
async def test_an_answer_on_its_way_does_not_undo_our_hand(
    bucket: Bucket, question: str, before: bytes | None, after: bytes | None
) -> None:
    """The same for questions about one object: whoever asked and whoever asks later learn of our write."""
    if before is not None:
        await bucket.memory.put("x", before)
    await bucket.names()
    slow = _SlowAnswer(bucket.store, "head" if question == "stat" else "get")
    bucket.replica.store = bucket.replica.names.store = slow
    sizes: list[int | None] = []

    async def ask() -> None:
        try:
            await (bucket.replica.names.stat if question == "stat" else bucket.replica.read)("x", fresh=True)
            sizes.append((await bucket.replica.names.stat("x")).size)
        except errors.ObjectMissing:
            sizes.append(None)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await slow.answered.wait()
        if after is None:
            await bucket.replica.delete("x")
        else:
            await bucket.replica.put("x", after)
        slow.go_on.set()

    assert sizes == [None if after is None else len(after)]
    assert await bucket.names() == (set() if after is None else {"x"})
    assert all(origin == "local" for _, _, origin in bucket.published)


class _SlowAnswer:
    """A store that answers one kind of question at once and delivers the answers when `go_on` is set."""

    def __init__(self, store: FaultyStore, slow: str) -> None:
        self._store, self._slow = store, slow
        self.answered, self.go_on = trio.Event(), trio.Event()

    def __getattr__(self, name: str) -> object:
        return self._ask if name == self._slow else getattr(self._store, name)

    async def _ask(self, *args: object, **kwargs: object) -> object:
        try:
            return await getattr(self._store, self._slow)(*args, **kwargs)
        finally:
            self.answered.set()
            await self.go_on.wait()


async def test_a_refused_put_changes_nothing_that_is_known(bucket: Bucket) -> None:
    await bucket.memory.put("x", b"theirs")
    await bucket.names()

    with pytest.raises(errors.PreconditionFailed):
        await bucket.replica.put("x", b"ours", condition=IfAbsent())

    assert (await bucket.replica.read("x")).data == b"theirs"
    assert bucket.published == []


# --- changes -----------------------------------------------------------------------------------------------------


async def test_own_changes_are_published_as_local(bucket: Bucket) -> None:
    await bucket.replica.put("x", b"")
    await bucket.replica.copy("x", "y")
    await bucket.replica.delete("x")

    assert bucket.published == [("put", "x", "local"), ("put", "y", "local"), ("delete", "x", "local")]


async def test_what_others_did_is_published_when_a_listing_shows_it(bucket: Bucket) -> None:
    await bucket.memory.put("changed", b"one")
    await bucket.memory.put("gone", b"")
    await bucket.memory.put("same", b"")
    await bucket.names()
    assert bucket.published == []

    await bucket.memory.put("changed", b"two")
    await bucket.memory.put("new", b"")
    await bucket.memory.delete("gone")
    await bucket.replica.names.listing("", fresh=True)

    assert sorted(bucket.published) == [
        ("delete", "gone", "remote"),
        ("put", "changed", "remote"),
        ("put", "new", "remote"),
    ]
    await bucket.replica.names.listing("", fresh=True)
    assert len(bucket.published) == 3


async def test_what_a_single_question_reveals_is_published_too(bucket: Bucket) -> None:
    await bucket.memory.put("x", b"one")
    await bucket.names()
    await bucket.memory.put("x", b"two")

    assert (await bucket.replica.names.stat("x", fresh=True)).size == 3
    await bucket.memory.delete("x")
    with pytest.raises(errors.ObjectMissing):
        await bucket.replica.read("x", fresh=True)

    assert bucket.published == [("put", "x", "remote"), ("delete", "x", "remote")]
    assert await bucket.names() == set()


async def test_the_absence_of_what_was_never_known_is_no_news(bucket: Bucket) -> None:
    for question in (bucket.replica.names.stat, bucket.replica.read):
        with pytest.raises(errors.ObjectMissing):
            await question("x", fresh=True)

    assert bucket.published == []


async def test_a_subscriber_that_fails_is_logged_and_the_others_still_hear(bucket: Bucket, expect_log) -> None:
    expect_log("a subscriber failed on a change")
    heard: list[str] = []

    def broken(change: Change) -> None:
        raise RuntimeError("no")

    bucket.replica.changes.subscribe(broken)
    bucket.replica.changes.subscribe(lambda change: heard.append(change.key))

    await bucket.replica.put("x", b"")

    assert heard == ["x"]
    assert bucket.replica.changes.statistics().failures == 1


# --- a store that does not answer --------------------------------------------------------------------------------


async def test_what_is_known_stays_known_while_the_store_is_away(bucket: Bucket, autojump_clock: Clock) -> None:
    await bucket.memory.put("a/x", b"x")
    await bucket.names("a/")
    await trio.sleep(EXPIRED)

    bucket.store.fail_all = unreachable()
    assert await bucket.names("a/") == {"x"}
    with pytest.raises(errors.Unreachable):
        await bucket.replica.names.listing("a/", fresh=True)
    with pytest.raises(errors.Unreachable):
        await bucket.replica.names.listing("never seen/")


async def test_a_reader_pays_for_an_outage_once_and_not_at_every_step(bucket: Bucket, autojump_clock: Clock) -> None:
    await bucket.memory.put("a/x", b"x")
    await bucket.names("a/")
    await trio.sleep(EXPIRED)
    bucket.store.fail_all = unreachable()
    await bucket.names("a/")
    asked = bucket.replica.statistics().listings

    await trio.sleep(EXPIRED)
    await bucket.names("a/")
    assert bucket.replica.statistics().listings == asked
    await trio.sleep(OUTAGE_PAUSE)
    await bucket.names("a/")
    assert bucket.replica.statistics().listings == asked + 1


async def test_the_first_answer_ends_the_outage(bucket: Bucket, autojump_clock: Clock) -> None:
    await bucket.memory.put("a/x", b"x")
    await bucket.names("a/")
    await trio.sleep(EXPIRED)
    bucket.store.fail_all = unreachable()
    await bucket.names("a/")
    bucket.store.fail_all = None
    await bucket.memory.put("a/y", b"y")
    assert await bucket.names("a/") == {"x"}

    await bucket.replica.put("b/z", b"z")

    assert await bucket.names("a/") == {"x", "y"}


# --- one object --------------------------------------------------------------------------------------------------


async def test_stat_knows_metadata_and_asks_for_it_once(bucket: Bucket) -> None:
    await bucket.memory.put("x", b"", meta={"livememfs-name": "é"})

    assert (await bucket.replica.names.stat("x")).meta == {"livememfs-name": "é"}
    assert (await bucket.replica.names.stat("x")).meta == {"livememfs-name": "é"}

    assert bucket.store.counts["head"] == 1


async def test_known_metadata_survives_a_listing_of_the_same_version_only(bucket: Bucket) -> None:
    await bucket.replica.put("x", b"one", meta={"livememfs-name": "a"})
    await bucket.replica.names.listing("", fresh=True)
    bucket.store.forget()
    assert (await bucket.replica.names.stat("x")).meta == {"livememfs-name": "a"}
    assert bucket.store.counts["head"] == 0

    bucket.clock.advance(10)  # the same bytes with other metadata: the ETag stays, the time moves
    await bucket.memory.put("x", b"one", meta={"livememfs-name": "b"})
    await bucket.replica.names.listing("", fresh=True)
    assert (await bucket.replica.names.stat("x")).meta == {"livememfs-name": "b"}


async def test_complete_keeps_the_order_and_leaves_out_what_vanished(bucket: Bucket) -> None:
    for name in "abc":
        await bucket.memory.put(name, b"", meta={"livememfs-name": name})
    listing = await bucket.replica.names.listing("")
    infos = [listing.objects[name] for name in "cba"]
    await bucket.memory.delete("b")

    completed = await bucket.replica.names.complete(infos)

    assert [(info.key, (info.meta or {}).get("livememfs-name")) for info in completed] == [("c", "c"), ("a", "a")]


async def test_complete_against_a_failing_store_raises_the_error_itself(bucket: Bucket) -> None:
    for number in range(40):
        await bucket.memory.put(f"{number:02}", b"")
    infos = list((await bucket.replica.names.listing("")).objects.values())
    bucket.store.fail_all = unreachable()

    with pytest.raises(errors.Unreachable):
        await bucket.replica.names.complete(infos)


async def test_read_answers_from_memory_while_the_version_is_believed(
    bucket: Bucket, autojump_clock: trio.abc.Clock
) -> None:
    await bucket.memory.put("x", b"one", meta={})
    assert (await bucket.replica.read("x")).data == b"one"
    await bucket.memory.put("x", b"two", meta={})

    assert (await bucket.replica.read("x")).data == b"one"
    assert (await bucket.replica.read("x", fresh=True)).data == b"two"

    await bucket.memory.put("x", b"three", meta={})
    await trio.sleep(EXPIRED)
    assert (await bucket.replica.read("x")).data == b"three"


async def test_read_version_gives_that_version_or_fails(bucket: Bucket) -> None:
    await bucket.memory.put("x", b"one")
    old = (await bucket.replica.names.listing("")).objects["x"]
    assert await bucket.replica.read_version(old) == b"one"

    await bucket.memory.put("x", b"two")
    assert await bucket.replica.read_version(old) == b"one", "versions do not change, so memory may answer"

    await bucket.replica.read("x", fresh=True)
    with pytest.raises(errors.PreconditionFailed):
        await bucket.replica.read_version(old)
    await bucket.memory.delete("x")
    with pytest.raises(errors.ObjectMissing):
        await bucket.replica.read_version(old)


async def test_conditional_deletes_keep_another_version(bucket: Bucket) -> None:
    info = await bucket.replica.put("x", b"one")
    await bucket.memory.put("x", b"two")

    with pytest.raises(errors.PreconditionFailed):
        await bucket.replica.delete("x", condition=IfMatch(info.etag))

    assert (await bucket.memory.get("x")).data == b"two"


# --- figures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [unreachable(), errors.Throttled(key="x"), errors.Denied(key="x"), errors.BucketMissing(bucket="b")],
    ids=lambda failure: type(failure).__name__,
)
async def test_the_last_failure_of_the_store_is_remembered_until_it_answers(
    bucket: Bucket, failure: errors.StoreError
) -> None:
    bucket.store.fail_all = failure
    with pytest.raises(type(failure)):
        await bucket.replica.names.listing("")
    assert bucket.replica.statistics().last_error == str(failure)

    bucket.store.fail_all = None
    await bucket.replica.names.listing("")

    assert bucket.replica.statistics().last_error == ""


async def test_an_answer_that_says_no_is_no_failure_of_the_store(bucket: Bucket) -> None:
    with pytest.raises(errors.ObjectMissing):
        await bucket.replica.read("x", fresh=True)

    assert bucket.replica.statistics().last_error == ""


async def test_statistics_count(bucket: Bucket) -> None:
    await bucket.replica.put("x", b"one")
    await bucket.replica.delete("x")
    await bucket.replica.put("y", b"two")
    await bucket.names()

    figures = bucket.replica.statistics()

    assert (figures.writes, figures.deletes, figures.levels, figures.known) == (2, 1, 1, 1)
    assert (figures.contents.in_memory, figures.contents.memory_bytes) == (1, 3)
    assert bucket.store.requests[0] == StoreRequest("put", "x")


def test_a_key_splits_into_its_level_and_its_name() -> None:
    assert [split_key(key) for key in ("a", "a/", "a/b/c")] == [("", "a"), ("a/", ""), ("a/b/", "c")]
