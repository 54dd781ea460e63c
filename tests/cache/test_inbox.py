"""The inbox: who may have an event, that no event is lost or counted twice, and that a crash leaves all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from livememfs.cache.database import Database
from livememfs.cache.inbox import KEPT_SECONDS, Inbox, InboxStatistics, Queued, Spent, Standing
from livememfs.cache.replica import Replica
from livememfs.errors import NoSpace
from livememfs.store.memory import MemoryStore

SPACE, SESSION = "alpha", "s-1"
AT = 1_771_596_000


def added(inbox: Inbox, *ids: str, session: str = SESSION, kind: str = "tool", at: int = AT, skipped: str = "") -> None:
    for one in ids:
        assert inbox.add(SPACE, session, one, kind, f'{{"id": "{one}"}}', at=at, skipped=skipped)


def waiting(inbox: Inbox, session: str = SESSION) -> list[Queued]:
    return inbox.waiting(SPACE, session, "start", "prompt", "tool", "stop")


def ids(found: Sequence[Queued]) -> list[str]:
    return [one.id for one in found]


def torn(*_: object, **__: object) -> None:
    raise NoSpace("the disk is full")


def states(inbox: Inbox) -> dict[str, int]:
    return inbox.of_session(SPACE, SESSION)


@pytest.fixture
def database() -> Database:
    return Database(None)


@pytest.fixture
def inbox(database: Database) -> Inbox:
    return Inbox(database)


# --- adding ------------------------------------------------------------------------------------------------------


def test_an_event_waits_as_it_was_added(inbox: Inbox) -> None:
    assert inbox.add(SPACE, SESSION, "t1", "tool", "the line é", at=AT)

    assert waiting(inbox) == [Queued(1, SPACE, SESSION, "t1", "tool", 10, 0, 0, "the line é")]


@pytest.mark.parametrize("how", ["waiting", "claimed", "stored", "observed", "skipped", "failed", "counted"])
def test_an_event_that_is_known_is_not_taken_again_whatever_became_of_it(inbox: Inbox, how: str) -> None:
    added(inbox, "t1", skipped="x" if how == "counted" else "")
    found = waiting(inbox)
    if how in ("claimed", "stored", "observed"):
        inbox.claim(found, AT)
    if how in ("stored", "observed"):
        inbox.stored({"k": found})
    if how == "observed":
        inbox.confirm("k")
    if how == "skipped":
        inbox.skip(found, "x")
    if how == "failed":
        inbox.fail(found, "x")
    before = states(inbox)

    assert not inbox.add(SPACE, SESSION, "t1", "tool", "another", at=AT + 9)
    assert states(inbox) == before == {"skipped" if how == "counted" else how: 1}


def test_an_id_is_one_of_its_session_and_space(inbox: Inbox) -> None:
    for space, session in (("a", "1"), ("a", "2"), ("b", "1")):
        assert inbox.add(space, session, "t1", "tool", "{}", at=AT)

    assert list(inbox.standing()) == [("a", "1"), ("a", "2"), ("b", "1")]


def test_what_waits_is_counted_by_session_and_kind_and_comes_in_the_order_of_time(inbox: Inbox) -> None:
    added(inbox, "a", session="late")
    added(inbox, "z", "b")
    inbox.skip(waiting(inbox, "late"), "x")
    added(inbox, "c", session="late")

    first = waiting(inbox)[0]
    assert inbox.standing() == {
        (SPACE, "late"): {"tool": Standing(1, waiting(inbox, "late")[0].size, *[waiting(inbox, "late")[0].seq] * 2)},
        (SPACE, SESSION): {
            "tool": Standing(2, sum(one.size for one in waiting(inbox)), first.seq, waiting(inbox)[-1].seq)
        },
    }
    assert ids(waiting(inbox)) == ["z", "b"]
    assert inbox.waiting(SPACE, SESSION, "tool", most=1) == [first]
    assert inbox.tries(first.seq) == 0


def test_events_are_counted_by_kind_whatever_became_of_them(inbox: Inbox) -> None:
    added(inbox, "t1", "t2")
    added(inbox, "p1", kind="prompt")
    added(inbox, "x1", skipped="x")
    inbox.fail(waiting(inbox), "x")

    assert inbox.count(SPACE, SESSION, "tool") == 3
    assert inbox.count(SPACE, SESSION, "tool", "prompt", "stop") == 4
    assert inbox.count(SPACE, "other", "tool") == 0


# --- claiming ----------------------------------------------------------------------------------------------------


def test_an_event_is_claimed_by_one_alone(inbox: Inbox) -> None:
    added(inbox, "t1", "t2", "t3")
    found = waiting(inbox)

    assert ids(inbox.claim(found[:2], AT)) == ["t1", "t2"]
    assert ids(inbox.claim(found, AT)) == ["t3"]
    assert inbox.claim(found, AT) == []
    assert (waiting(inbox), states(inbox)) == ([], {"claimed": 3})


@pytest.mark.parametrize("end", ["skip", "fail", "store"])
def test_what_is_done_cannot_be_claimed(inbox: Inbox, end: str) -> None:
    added(inbox, "t1")
    found = waiting(inbox)
    {"skip": lambda: inbox.skip(found, "x"), "fail": lambda: inbox.fail(found, "x")}.get(
        end, lambda: inbox.stored({"k": found})
    )()

    assert inbox.claim(found, AT) == []


def test_each_claim_is_a_try_and_one_that_is_taken_back_is_none(inbox: Inbox) -> None:
    added(inbox, "t1")
    for _ in range(3):
        inbox.release(inbox.claim(waiting(inbox), AT), "no use")
    assert (waiting(inbox)[0].tries, waiting(inbox)[0].outages) == (3, 0)

    inbox.unclaim(inbox.claim(waiting(inbox), AT))
    assert waiting(inbox)[0].tries == 3

    inbox.release(inbox.claim(waiting(inbox), AT), "nobody there", outage=True)
    assert (waiting(inbox)[0].tries, waiting(inbox)[0].outages) == (3, 1)


@pytest.mark.parametrize("how", ["release", "unclaim"])
def test_only_what_is_claimed_can_be_given_back(inbox: Inbox, how: str) -> None:
    added(inbox, "t1", "t2")
    found = waiting(inbox)
    inbox.skip(found[:1], "x")
    inbox.stored({"k": found[1:]})

    inbox.release(found, "x") if how == "release" else inbox.unclaim(found)

    assert states(inbox) == {"skipped": 1, "stored": 1}


def test_what_nobody_was_heard_of_at_is_given_back(inbox: Inbox) -> None:
    added(inbox, "old", "renewed", "new")
    old, renewed, new = waiting(inbox)
    inbox.claim([old, renewed], AT)
    inbox.claim([new], AT + 50)
    inbox.renew([renewed], AT + 60)

    assert inbox.heal(AT) == 0
    assert inbox.heal(AT + 50) == 1
    assert ids(waiting(inbox)) == ["old"]
    assert waiting(inbox)[0].tries == 1
    assert inbox.heal(None) == 2


# --- what became of it -------------------------------------------------------------------------------------------


def test_an_event_is_done_with_when_the_bucket_has_what_came_of_it(inbox: Inbox) -> None:
    added(inbox, "t1", "t2", "t3")
    one, *others = inbox.claim(waiting(inbox), AT)
    inbox.stored({"k/1": [one], "k/2": others})
    assert (inbox.statistics().waiting, sorted(inbox.unconfirmed())) == (3, ["k/1", "k/2"])

    assert inbox.confirm("k/2") == 2
    assert inbox.confirm("k/2") == 0
    assert inbox.confirm("k/3") == 0

    assert (states(inbox), inbox.unconfirmed()) == ({"observed": 2, "stored": 1}, ["k/1"])


def test_what_is_done_is_not_kept_and_what_failed_is(inbox: Inbox, database: Database) -> None:
    added(inbox, "t1", "t2", "t3", "t4")
    stored, skipped, failed, _ = waiting(inbox)
    inbox.stored({"k": [stored]})
    inbox.confirm("k")
    inbox.skip([skipped], "x")
    inbox.fail([failed], "x")

    assert database.rows("SELECT id, line IS NULL FROM event ORDER BY seq") == [
        ("t1", 1),
        ("t2", 1),
        ("t3", 0),
        ("t4", 0),
    ]


def test_what_failed_waits_again_when_somebody_asks_for_it(inbox: Inbox) -> None:
    def failing() -> None:
        for session, reason in (("s-1", "a"), ("s-1", "b"), ("s-2", "a")):
            inbox.add(SPACE, session, reason, "tool", "{}", at=AT)
            inbox.fail([one for one in waiting(inbox, session) if one.id == reason], reason)

    failing()
    assert inbox.revive(SPACE, "s-1") == 2
    failing_now = inbox.statistics().failed
    assert failing_now == 1
    inbox.fail(waiting(inbox, "s-1"), "b")

    assert inbox.revive(reason="a") == 1
    assert ids(waiting(inbox, "s-2")) == ["a"]
    assert inbox.revive(SPACE, "s-2") == 0
    assert inbox.revive() == 2
    assert [one.tries for one in waiting(inbox, "s-1")] == [0, 0]


def test_pruning_forgets_what_has_long_been_done_and_keeps_it_counted(inbox: Inbox) -> None:
    for at in (AT, AT + 9):
        added(inbox, f"s{at}", f"d{at}", f"f{at}", f"w{at}", at=at)
        inbox.add(SPACE, SESSION, f"c{at}", "tool", "", at=at, skipped="noisy")
        found = {one.id[0]: one for one in waiting(inbox) if one.id.endswith(str(at))}
        inbox.skip([found["s"]], "x")
        inbox.stored({f"k{at}": [found["d"]]})
        inbox.confirm(f"k{at}")
        inbox.fail([found["f"]], "y")
    before = inbox.statistics()

    inbox.prune(AT + 1 + KEPT_SECONDS)
    assert inbox.statistics() == before
    assert states(inbox) == {"failed": 2, "observed": 1, "skipped": 2, "waiting": 2}
    inbox.prune(AT + 10 + KEPT_SECONDS)

    assert inbox.statistics() == before == InboxStatistics(10, 2, {"noisy": 2, "x": 2}, 2, 2)
    assert states(inbox) == {"failed": 2, "waiting": 2}
    assert inbox.add(SPACE, SESSION, f"d{AT}", "tool", "{}", at=AT)  # so long after it is another


def test_what_is_spent_adds_up_by_day(inbox: Inbox) -> None:
    inbox.spend("2026-02-20", 100, 20)
    inbox.spend("2026-02-20", 10, 2)
    inbox.spend("2026-02-21", 1, 1)

    assert (inbox.spent("2026-02-20"), inbox.spent("2026-02-20").tokens) == (Spent(2, 110, 22), 132)
    assert inbox.spent("2026-02-22") == Spent()


# --- whatever happens --------------------------------------------------------------------------------------------

STEPS = (
    "add", "add", "add", "count", "claim", "claim", "stored", "stored", "confirm", "skip", "fail", "release", "outage",
    "unclaim", "heal", "revive", "revive a reason", "prune", "renew", "torn",
)  # fmt: skip


class Story:
    """An inbox that things happen to, in any order that a program could choose."""

    def __init__(self, database: Database) -> None:
        self.database, self.inbox, self.added = database, Inbox(database), 0

    def held(self, count: int) -> list[Queued]:
        """What somebody has claimed, as far as anybody knows."""
        columns = "seq, space, session, id, kind, size, tries, outages, line"
        rows = self.database.rows(f"SELECT {columns} FROM event WHERE state = 'claimed' LIMIT ?", (count,))
        return [Queued(*row) for row in rows]

    def step(self, name: str, number: int) -> None:
        inbox, session, held = self.inbox, f"s-{number % 2}", self.held(number)
        at = AT + (number % 3) * KEPT_SECONDS
        every: dict[str, Callable[[], Any]] = {
            "add": lambda: inbox.add(SPACE, session, f"t{number}", "tool", "{}", at=at),
            "count": lambda: inbox.add(SPACE, session, f"c{number}", "tool", "", at=at, skipped=f"r{number % 2}"),
            "claim": lambda: inbox.claim(waiting(inbox, session)[:number], at),
            "stored": lambda: inbox.stored({f"k{number % 3}": held}),
            "confirm": lambda: inbox.confirm(f"k{number % 3}"),
            "skip": lambda: inbox.skip(held or waiting(inbox, session)[:1], f"r{number % 2}"),
            "fail": lambda: inbox.fail(held, f"f{number % 2}"),
            "release": lambda: inbox.release(held, "x"),
            "outage": lambda: inbox.release(held, "x", outage=True),
            "unclaim": lambda: inbox.unclaim(held),
            "heal": lambda: inbox.heal(at),
            "revive": lambda: inbox.revive(SPACE, session),
            "revive a reason": lambda: inbox.revive(reason=f"f{number % 2}"),
            "prune": lambda: inbox.prune(at + KEPT_SECONDS),
            "renew": lambda: inbox.renew(held, at),
            "torn": lambda: self.torn(held),
        }
        found = every[name]()
        self.added += name in ("add", "count") and found is True

    def torn(self, held: list[Queued]) -> None:
        """A step that does not come to its end."""
        with suppress(NoSpace), self.database.atomic():
            self.inbox.stored({"k0": held})
            self.inbox.skip(waiting(self.inbox, "s-0"), "r0")
            torn()


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=60))
def test_the_sum_is_the_number_of_events_whatever_happens(steps: list[tuple[str, int]]) -> None:
    story = Story(Database(None))
    done = 0

    for name, number in steps:
        story.step(name, number)
        found = story.inbox.statistics()
        assert found.events == story.added
        assert found.events == found.observed + sum(found.skipped.values()) + found.waiting + found.failed
        # What is done with stays done with: nothing but success or a reason ends a wait, and neither is taken back.
        assert found.observed + sum(found.skipped.values()) >= done
        done = found.observed + sum(found.skipped.values())

    found = story.inbox.statistics()
    assert story.database.rows("SELECT count(*) FROM event WHERE line IS NOT NULL") == [(found.waiting + found.failed,)]


# --- crashes -----------------------------------------------------------------------------------------------------


def test_reopening_gives_claimed_events_back_and_nothing_else_changes(tmp_path: Path) -> None:
    database = Database(tmp_path)
    inbox = Inbox(database)
    added(inbox, "t1", "t2", "t3", "t4")
    one, two, three, _ = waiting(inbox)
    inbox.claim([one, two], AT)
    inbox.stored({"k": [two]})
    inbox.fail([three], "x")
    before = inbox.statistics()
    database.close()

    inbox = Inbox(Database(tmp_path))

    assert inbox.statistics() == before
    assert states(inbox) == {"failed": 1, "stored": 1, "waiting": 2}
    assert [(one.id, one.tries) for one in waiting(inbox)] == [("t1", 1), ("t4", 0)]
    assert inbox.unconfirmed() == ["k"]


KEYS = {"alpha/observations/1": b"one", "alpha/observations/2": b"two"}


def saving(replica: Replica, found: list[Queued], fail: Callable[[], None] = lambda: None) -> None:
    def also() -> None:
        replica.inbox.stored({next(iter(KEYS)): found[:1]})
        replica.inbox.skip(found[1:], "x")
        fail()

    replica.save_all(KEYS, also)


@pytest.mark.parametrize(
    "where", ["in the middle of the inbox", "after the inbox", "at the first object", "at the last"]
)
async def test_events_and_what_came_of_them_are_accepted_together_or_not_at_all(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica(MemoryStore(), folder=tmp_path)
    added(replica.inbox, "t1", "t2")
    found = replica.inbox.claim(waiting(replica.inbox), AT)
    put, count = replica.journal.put, iter(range(9))

    def fail_put(*args: Any, **named: Any) -> Any:
        if next(count) == (where == "at the last"):
            torn()
        return put(*args, **named)

    with monkeypatch.context() as patched:
        if where.startswith("at"):
            patched.setattr(replica.journal, "put", fail_put)
        if where == "in the middle of the inbox":
            patched.setattr(replica.inbox, "skip", torn)
        with pytest.raises(NoSpace):
            saving(replica, found, torn if where == "after the inbox" else lambda: None)

    assert states(replica.inbox) == {"claimed": 2}
    assert (replica.journal.ops.backlog, [replica.names.now(key) for key in KEYS]) == (0, [None, None])
    replica.close()
    replica = Replica(MemoryStore(), folder=tmp_path)
    assert states(replica.inbox) == {"waiting": 2}
    assert [replica.journal.ops.newest(key) for key in KEYS] == [None, None]

    saving(replica, replica.inbox.claim(waiting(replica.inbox), AT))
    assert states(replica.inbox) == {"skipped": 1, "stored": 1}
    with trio.fail_after(5):
        assert {key: (await replica.read(key)).data for key in KEYS} == KEYS
    replica.close()
