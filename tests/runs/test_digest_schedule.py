"""When digests start by themselves: at fixed hours, for what was missed while no mount was there, one of many hosts."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from consolidation_world import SPACE
from digest_world import DIGEST, contents
from schedule_world import Town
from trio.abc import Clock

from livememfs.errors import Unreachable
from livememfs.records.ledger import Entry
from livememfs.records.schedule import DIGEST_HOURS, DigestSchedule, Schedule, SpaceSchedule
from livememfs.records.schedule_book import Book, Past
from livememfs.testing.store import Fault, StoreRequest

MINUTE = 60
HOUR = 3_600


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError:
        pytest.skip("this machine has no time zones")


async def digests(t: Town) -> list[Entry]:
    """The digests there were."""
    return [entry for entry in await t.world.ledger() if entry.kind == "digest"]


# --- fixed hours --------------------------------------------------------------------------------------------------

SPRING = ["22:00", "03:00", "06:00", "10:00", "14:00", "18:00", "22:00", "02:00"]
"""Of the night in which 02:00 is not there: the moment after it."""
AUTUMN = ["22:00", "02:00", "06:00", "10:00", "14:00", "18:00", "22:00", "02:00"]
"""Of the night in which 02:00 is there twice: the first of the two."""


@pytest.mark.parametrize(("eve", "hours"), [("2026-03-28", SPRING), ("2026-10-24", AUTUMN)], ids=["spring", "autumn"])
async def test_each_fixed_hour_starts_one_digest_also_across_a_clock_change(
    eve: str, hours: list[str], town: Town, autojump_clock: Clock
) -> None:
    paris = _zone("Europe/Paris")
    town.clock.set(datetime.fromisoformat(f"{eve}T21:30").replace(tzinfo=paris))
    host = await town.digesting(zone=paris)
    until = town.clock.now() + timedelta(hours=30)
    written = 0
    while town.clock.now() < until:
        written += 1
        await host.note(f"We chose {written}", category="decision")
        await town.later(HOUR)

    fixed = [entry.committed_at.astimezone(paris) for entry in await digests(town)]
    assert [f"{moment:%H}:00" for moment in fixed] == hours
    assert {moment.minute for moment in fixed} <= {0, 1}
    assert len(await contents(town.world)) >= written - 4


async def test_the_usual_hours_are_every_four_in_paris_and_others_can_be_said() -> None:
    usual = DigestSchedule.parse({"alpha": {}, "beta": {"at": ["03:00"], "cooldown": 0}})

    assert usual.zone == "Europe/Paris"
    assert usual.spaces["alpha"] == SpaceSchedule(at=DIGEST_HOURS)
    assert [hour.hour for hour in DIGEST_HOURS] == [2, 6, 10, 14, 18, 22]
    assert usual.spaces["beta"] == SpaceSchedule(at=(time(3),), cooldown=0)
    assert DigestSchedule.parse({"a": {"after_notes": 3}}).spaces["a"].at == ()
    assert DigestSchedule.parse(str(usual)) == usual
    assert str(DigestSchedule.parse({"alpha": {}})) == '{"alpha": {}}'
    assert str(DigestSchedule()) == "{}"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("x", "this is not JSON"),
        ([], "a table for each space"),
        ({"zon": "Europe/Paris"}, "no key zon; did you mean zone"),
        ({"zone": 3}, "zone is the name of a time zone"),
        ({"zone": ""}, "zone is the name of a time zone"),
        ({"_system": {}}, "'_system' cannot be a space"),
        ({"a": {"at": []}}, "a: one of after_notes, after_idle and at"),
        ({"a": {"at": ["3:00"]}}, "a: at is a list of hours"),
        ({"a": {"hours": ["03:00"]}}, "a: there is no key hours"),
    ],
)
def test_a_schedule_of_digests_that_cannot_be_meant_is_refused_in_one_sentence(value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        DigestSchedule.parse(value)

    assert sentence in str(caught.value)


async def test_an_hour_with_nothing_new_has_passed_and_the_next_note_waits_for_the_next(
    town: Town, autojump_clock: Clock
) -> None:
    host = await town.digesting(at=["15:00", "17:00"])
    await town.later(HOUR + 5 * MINUTE)
    assert await town.world.ledger() == []
    await host.note("We chose S3", category="decision")
    await town.later(HOUR)
    assert await digests(town) == []
    assert host.state(kind="digests")["notes"] == 1
    await town.later(HOUR)

    assert [entry.committed_at.hour for entry in await digests(town)] == [17]
    assert host.state(kind="digests")["notes"] == 0
    assert (host.state(kind="digests")["last_why"], host.state(kind="digests")["last_state"]) == ("at", "ok")


async def test_notes_that_were_digested_start_no_other_digest(town: Town, autojump_clock: Clock) -> None:
    host = await town.digesting(at=["15:00", "16:00", "17:00"])
    await host.note("We chose S3", category="decision")
    await town.later(4 * HOUR)

    assert len(await digests(town)) == 1
    assert host.scheduler.statistics().ok == 1


# --- what was missed ----------------------------------------------------------------------------------------------


async def test_a_last_digest_of_over_four_hours_ago_is_made_up_for_once_at_the_start(
    town: Town, autojump_clock: Clock
) -> None:
    host = await town.digesting(at=["03:00"])
    await host.note("We chose S3", category="decision")
    await host.consolidations.run_once(SPACE, DIGEST)
    town.kill(host)
    await town.later(4 * HOUR + MINUTE)
    await town.world.note("We chose Postgres", category="decision")
    again = await town.digesting(at=["03:00"])
    await town.later(5 * MINUTE)
    assert len(await digests(town)) == 2
    assert again.state(kind="digests")["last_why"] == "catch_up"
    await again.note("We chose Redis", category="decision")
    await town.later(5 * HOUR)

    assert len(await digests(town)) == 2


async def test_a_last_digest_of_less_than_four_hours_ago_is_not(town: Town, autojump_clock: Clock) -> None:
    host = await town.digesting(at=["03:00"])
    await host.note("We chose S3", category="decision")
    await host.consolidations.run_once(SPACE, DIGEST)
    town.kill(host)
    await town.later(3 * HOUR)
    await town.world.note("We chose Postgres", category="decision")
    await town.digesting(at=["03:00"])
    await town.later(3 * HOUR)

    assert len(await digests(town)) == 1


async def test_with_nothing_new_at_the_start_nothing_is_made_up_for_later(town: Town, autojump_clock: Clock) -> None:
    host = await town.digesting(at=["03:00"])
    await town.later(5 * MINUTE)
    await host.note("We chose S3", category="decision")
    await town.later(5 * HOUR)

    assert await digests(town) == []


async def test_a_start_whose_digest_fails_is_made_up_for_later(town: Town, autojump_clock: Clock) -> None:
    await town.world.note("We chose S3", category="decision")
    host = town.digester(at=["03:00"], cooldown=0)
    host.store.plan = _refused
    await town.live(host)
    await town.later(20 * MINUTE)
    failures = host.state(kind="digests")["failures"]
    assert 2 <= failures <= 5
    assert len(host.failed) == failures
    assert await digests(town) == []
    host.store.plan = None
    await town.later(HOUR)

    assert len(await digests(town)) == 1
    assert host.state(kind="digests")["failures"] == 0


# --- one of many --------------------------------------------------------------------------------------------------


async def test_of_hosts_with_the_same_schedule_one_digests(town: Town, autojump_clock: Clock) -> None:
    hosts = [await town.digesting(f"host{number}", at=["15:00", "16:00"]) for number in range(3)]
    await hosts[0].note("We chose S3", category="decision")
    await town.later(3 * HOUR)

    assert len(await digests(town)) == 1
    assert sum(host.scheduler.statistics().ok for host in hosts) == 1


async def test_of_hosts_that_start_together_one_makes_up_for_what_was_missed(town: Town, autojump_clock: Clock) -> None:
    await town.world.note("We chose S3", category="decision")
    for number in range(3):
        await town.digesting(f"host{number}", at=["03:00"], cooldown=0)
    await town.later(HOUR)

    assert len(await digests(town)) == 1


async def test_what_another_host_has_digested_by_hand_is_not_digested_again(town: Town, autojump_clock: Clock) -> None:
    here, there = await town.digesting("here", at=["15:00"]), await town.digesting("there", at=["03:00"])
    await here.note("We chose S3", category="decision")
    await town.later(MINUTE)
    await there.consolidations.run_once(SPACE, DIGEST)
    await town.later(2 * HOUR)

    assert len(await digests(town)) == 1
    assert here.scheduler.statistics().ok == 0


async def test_where_both_are_due_the_digest_reads_the_notes_before_a_consolidation_takes_them(
    town: Town,
    autojump_clock: Clock,
) -> None:
    folding = Schedule({SPACE: SpaceSchedule(at=(time(15),))})
    host = await town.digesting(at=["15:00"], schedule=folding)
    await host.note("We chose S3", category="decision")
    await town.later(2 * HOUR)

    assert [entry.kind for entry in await town.world.ledger()] == ["digest", "consolidation"]
    assert await contents(town.world) == ["We chose S3"]


def test_what_is_remembered_of_digests_is_kept_beside_that_of_consolidations() -> None:
    now = datetime(2026, 2, 20, 12, tzinfo=UTC)
    book = Book("2026-02-20", 9, {"alpha": Past(started=now)}, {"alpha": Past(failures=2)})

    assert Book.parse(book.render(), now) == book
    assert (book.past("alpha").started, book.past("alpha", "digest").failures) == (now, 2)
    assert b"digests" not in Book().render()


def _refused(asked: StoreRequest, _: int) -> Fault | None:
    """A store that takes no entry of a ledger."""
    is_commit = asked.verb == "put" and "/_ledger/" in asked.key
    return Fault(before=Unreachable("gone")) if is_commit else None


async def test_a_digest_by_a_clock_that_is_ahead_puts_none_off(town: Town, autojump_clock: Clock) -> None:
    host = await town.digesting(at=["15:30"])
    await host.note("We chose S3", category="decision")
    town.clock.advance(days=30)
    await host.consolidations.run_once(SPACE, DIGEST)
    town.clock.advance(days=-30)
    await town.later(2 * MINUTE)
    await host.note("We chose Postgres", category="decision")
    await town.sleep(24 * HOUR)

    assert len(await digests(town)) == 2
    assert host.state(kind="digests")["notes"] == 0
