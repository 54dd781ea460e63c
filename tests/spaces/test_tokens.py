"""Tokens of a bucket: no change is lost, a revoked one is worth nothing, and an outage locks nobody out at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
import trio

from livememfs.cache.replica import Replica
from livememfs.errors import (
    AlreadyExists,
    BadRequest,
    ConditionsUnsupported,
    InvalidName,
    NotFound,
    NotSignedIn,
    ObjectUnreadable,
    PreconditionFailed,
    TimedOut,
    Unreachable,
)
from livememfs.records import keys
from livememfs.records.access import EVERYTHING, NOTHING, PERMISSIONS, Access
from livememfs.records.token import MAX_NAME
from livememfs.spaces.gate import AGAIN, Gate, GateStatistics
from livememfs.spaces.lease import Leases
from livememfs.spaces.tokens import CHANGE_SECONDS, FRESH, STALE, UNKNOWN, USED_EVERY, Tokens, TokensStatistics
from livememfs.store.base import Condition, ObjectInfo
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.store import Fault, FaultyStore

KEY = keys.tokens_key()


class WithoutConditions(MemoryStore):
    """A store that honours none."""

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        if condition is not None:
            raise ConditionsUnsupported(key=key)
        return await super().put(key, data, meta=meta)


class Town:
    """Hosts of one bucket."""

    def __init__(self, nursery: trio.Nursery, memory: MemoryStore | None = None) -> None:
        self.nursery, self.clock = nursery, ManualClock()
        self.memory = memory or MemoryStore(self.clock)
        self.stores: list[FaultyStore] = []

    def host(self) -> Tokens:
        """One more."""
        store = FaultyStore(self.memory)
        self.stores.append(store)
        replica = Replica(store)
        leases = Leases(replica, self.clock, f"host-{len(self.stores)}", self.nursery)
        return Tokens(replica, self.clock, leases)

    async def kept(self) -> list[dict[str, Any]]:
        """The entries in the bucket."""
        found: list[dict[str, Any]] = json.loads((await self.memory.get(KEY)).data)["tokens"]
        return found

    async def later(self, seconds: float) -> None:
        """On both clocks."""
        self.clock.advance(seconds)
        await trio.sleep(seconds)


@pytest.fixture
def town(nursery: trio.Nursery) -> Town:
    return Town(nursery)


@pytest.fixture
def tokens(town: Town) -> Tokens:
    return town.host()


# --- making and asking -----------------------------------------------------------------------------------------------


async def test_a_token_opens_what_it_was_made_for(town: Town, tokens: Tokens) -> None:
    secret, token = await tokens.create("cline", ["write"], ["alpha"], timedelta(days=30))

    assert await tokens.access(secret) == Access("cline", frozenset({"read", "write"}), ("alpha",))
    assert await town.host().access(secret) == Access("cline", frozenset({"read", "write"}), ("alpha",))
    assert await tokens.access_of(token.hash) is not None
    assert secret not in json.dumps(await town.kept())
    assert (await town.kept())[0]["expires_at"] == "2026-03-22T14:00:00Z"


async def test_what_is_no_token_opens_nothing(tokens: Tokens) -> None:
    await tokens.create("cline", ["read"])

    assert [await tokens.access(one) for one in ("", "lm_", "cline", "x" * 10_000)] == [None] * 4


async def test_a_bucket_without_tokens_lets_nobody_in(tokens: Tokens) -> None:
    assert await tokens.access("lm_anything") is None
    assert list(await tokens.list()) == []


async def test_a_token_ends_at_its_second(town: Town, tokens: Tokens) -> None:
    secret, _ = await tokens.create("short", ["read"], (), timedelta(minutes=1))

    town.clock.advance(59)
    assert await tokens.access(secret) is not None
    town.clock.advance(1)
    assert await tokens.access(secret) is None


async def test_a_token_that_was_made_elsewhere_is_good_almost_at_once(
    town: Town, tokens: Tokens, autojump_clock: object
) -> None:
    other = town.host()
    assert await other.access("lm_nobodys") is None
    secret, _ = await tokens.create("cline", ["read"])

    await town.later(UNKNOWN + 0.1)
    assert await other.access(secret) is not None


async def test_who_tries_many_secrets_costs_two_reads_a_second(
    town: Town, tokens: Tokens, autojump_clock: object
) -> None:
    await tokens.create("cline", ["read"])
    before = town.stores[0].counts["get"]

    for number in range(100):
        assert await tokens.access(f"lm_{number}") is None
        await town.later(0.1)

    assert 15 <= town.stores[0].counts["get"] - before <= 21


@pytest.mark.parametrize("away", ["revoke", "delete"])
async def test_one_that_was_taken_away_here_is_worth_nothing_at_once_and_elsewhere_soon(
    town: Town, tokens: Tokens, away: str, autojump_clock: object
) -> None:
    secret, token = await tokens.create("cline", ["read"])
    other = town.host()
    assert await other.access(secret) is not None

    await getattr(tokens, away)("cline")

    assert await tokens.access(secret) is None
    await town.later(FRESH + 0.1)
    assert await other.access(secret) is None
    assert await other.access_of(token.hash) is None


async def test_a_revoked_token_stays_in_the_list_and_a_deleted_one_does_not(town: Town, tokens: Tokens) -> None:
    await tokens.create("one", ["read"])
    await tokens.create("two", ["read"])
    await tokens.revoke("one")
    await tokens.delete("two")

    assert [(entry["name"], entry["revoked"]) for entry in await town.kept()] == [("one", True)]


async def test_purging_takes_what_has_expired_and_what_was_revoked_if_it_is_told(town: Town, tokens: Tokens) -> None:
    for name, lasts in (("ended", timedelta(hours=1)), ("kept", timedelta(days=9)), ("revoked", None)):
        await tokens.create(name, ["read"], (), lasts)
    await tokens.revoke("revoked")
    town.clock.advance(hours=2)

    assert [one.name for one in await tokens.purge()] == ["ended"]
    assert [one.name for one in await tokens.purge(revoked=True)] == ["revoked"]
    assert [entry["name"] for entry in await town.kept()] == ["kept"]


async def test_rights_can_be_changed_and_what_is_not_named_stays(tokens: Tokens) -> None:
    secret, token = await tokens.create("cline", ["read"], ["alpha"])

    await tokens.update("cline", permissions=["write"])
    assert await tokens.access(secret) == Access("cline", frozenset({"read", "write"}), ("alpha",))
    await tokens.update(token.hash, spaces=[])
    assert await tokens.access(secret) == Access("cline", frozenset({"read", "write"}), ())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("", ["read"]), BadRequest),
        (("a\nb", ["read"]), BadRequest),
        (("  ", ["read"]), BadRequest),
        (("x" * 101, ["read"]), BadRequest),
        (("AKIA" + "IOSFODNN7EXAMPLE", ["read"]), InvalidName),
        (("x", ["read", "root"]), BadRequest),
        (("x", []), BadRequest),
        (("x", ["root"]), BadRequest),
        (("x", ["read"], ["../alpha"]), InvalidName),
        (("x", ["read"], ["_system"]), InvalidName),
        (("x", ["read"], ["alpha", "../alpha"]), InvalidName),
        (("x", ["read"], (), timedelta()), BadRequest),
        (("x", ["read"], (), timedelta(seconds=-1)), BadRequest),
        (("x", ["read"], (), timedelta(days=9_999_999)), BadRequest),
    ],
)
async def test_what_no_token_can_be_is_refused_and_nothing_is_written(
    town: Town, tokens: Tokens, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await tokens.create(*arguments)
    assert town.stores[0].counts["put"] == 0


@pytest.mark.parametrize("changed", [{"permissions": []}, {"permissions": ["root"]}, {"spaces": ["_system"]}])
async def test_rights_that_no_token_can_have_are_not_given_later(tokens: Tokens, changed: dict[str, list[str]]) -> None:
    secret, _ = await tokens.create("cline", ["read"], ["alpha"])

    with pytest.raises((BadRequest, InvalidName)):
        await tokens.update("cline", **changed)
    assert await tokens.access(secret) == Access("cline", frozenset({"read"}), ("alpha",))


async def test_a_right_includes_the_lower_ones_and_a_name_may_have_a_hundred_characters(tokens: Tokens) -> None:
    _, token = await tokens.create("x" * MAX_NAME, ["admin", "read"])

    assert (token.permissions, token.expires_at) == (PERMISSIONS, None)
    assert (await tokens.update("x" * MAX_NAME, permissions=["write", "read"])).permissions == ("read", "write")


@pytest.mark.parametrize(
    ("which", "named"), [("nobody", "token nobody"), ("x" * 100, "token xxx"), ("x" * 101, "such token")]
)
async def test_a_token_that_is_not_there_is_named_as_far_as_it_may_be(tokens: Tokens, which: str, named: str) -> None:
    with pytest.raises(NotFound, match=named):
        await tokens.revoke(which)


async def test_a_name_is_given_once_while_its_token_is_good(tokens: Tokens) -> None:
    await tokens.create("cline", ["read"])
    with pytest.raises(AlreadyExists):
        await tokens.create("cline", ["read"])

    await tokens.revoke("cline")
    await tokens.create("cline", ["read"])

    assert (await tokens.revoke("cline")).revoked  # the one that is left to revoke
    with pytest.raises(BadRequest, match="beginning of its hash"):
        await tokens.delete("cline")


async def test_a_secret_names_its_token_and_is_not_repeated_when_there_is_none(tokens: Tokens) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    assert (await tokens.revoke(secret)).name == "cline"

    with pytest.raises(NotFound) as caught:
        await tokens.revoke("lm_somebody-elses-secret")
    assert "somebody" not in str(caught.value)


# --- together --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", [1, 100])
async def test_a_hundred_changes_at_once_lose_none(town: Town, hosts: int, autojump_clock: object) -> None:
    """Fifty are made, fifty others go, all in the same moment, by one host or by a hundred."""
    first = town.host()
    for number in range(50):
        await first.create(f"old-{number}", ["read"])
    places = [town.host() for _ in range(hosts)]

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(places[number % hosts].create, f"new-{number}", ["read"])
            nursery.start_soon(places[(number + 50) % hosts].delete, f"old-{number}")

    assert sorted(entry["name"] for entry in await town.kept()) == sorted(f"new-{number}" for number in range(50))
    assert hosts == 1 or sum(place.statistics().retries for place in places) > 0


async def test_a_change_whose_reply_was_lost_is_made_once(town: Town, tokens: Tokens) -> None:
    """The store has it, and says it was not as expected when it is asked again: nothing is doubled."""
    tokens_store = town.stores[0]
    tokens_store.script("put", Fault(after=Unreachable("reset")))

    with pytest.raises(Unreachable):
        await tokens.create("cline", ["read"])
    with pytest.raises(AlreadyExists):
        await tokens.create("cline", ["read"])
    assert len(await town.kept()) == 1


async def test_without_conditions_changes_of_two_hosts_wait_for_each_other(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    town = Town(nursery, WithoutConditions(ManualClock()))
    one, two = town.host(), town.host()

    async with trio.open_nursery() as changes:
        for number in range(5):
            changes.start_soon(one.create, f"one-{number}", ["read"])
            changes.start_soon(two.create, f"two-{number}", ["read"])

    assert len(await town.kept()) == 10


async def test_a_registry_that_cannot_be_read_is_never_written_over(town: Town, tokens: Tokens) -> None:
    await town.memory.put(KEY, b"not json")

    with pytest.raises(ObjectUnreadable):
        await tokens.create("cline", ["read"])
    with pytest.raises(ObjectUnreadable):
        await tokens.access("lm_x")
    assert (await town.memory.get(KEY)).data == b"not json"


async def test_who_never_comes_to_a_change_gives_up_after_a_minute_of_ever_longer_pauses(
    town: Town, tokens: Tokens, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    least: list[float] = []

    def longest(low: float, high: float) -> float:
        least.append(low)
        return high

    monkeypatch.setattr("random.uniform", longest)
    town.stores[0].script("put", *(Fault(before=PreconditionFailed(key=KEY)) for _ in range(100)))
    begun = trio.current_time()

    with pytest.raises(TimedOut, match="tokens"):
        await tokens.create("cline", ["read"])

    assert trio.current_time() - begun == pytest.approx(CHANGE_SECONDS)
    pauses = [0.05, 0.1, 0.2, 0.4, 0.8]  # and then one of a second after the other
    assert tokens.statistics().retries == len(pauses) + int(CHANGE_SECONDS - sum(pauses)) + 1
    assert set(least) == {0}


async def test_what_changes_nothing_is_not_written_and_all_that_is_done_is_counted(
    town: Town, tokens: Tokens, autojump_clock: object
) -> None:
    assert tokens.statistics() == TokensStatistics(asked=0, good=0, reads=0, writes=0, retries=0)
    secret, _ = await tokens.create("cline", ["read"])
    assert tokens.statistics() == TokensStatistics(asked=0, good=0, reads=1, writes=1, retries=0)
    await tokens.purge(revoked=True)
    await tokens.update("cline")
    assert tokens.statistics() == TokensStatistics(asked=0, good=0, reads=3, writes=1, retries=0)
    await town.later(UNKNOWN)
    assert await tokens.access("lm_nobodys") is None  # the copy counts for so long
    await town.later(FRESH - UNKNOWN)
    assert await tokens.access(secret) is not None
    assert tokens.statistics() == TokensStatistics(asked=2, good=1, reads=3, writes=1, retries=0)
    await town.later(0.1)
    assert await tokens.access(secret) is not None
    assert tokens.statistics() == TokensStatistics(asked=3, good=2, reads=4, writes=1, retries=0)
    town.stores[0].script("put", Fault(before=PreconditionFailed(key=KEY)))
    await tokens.revoke("cline")
    assert tokens.statistics() == TokensStatistics(asked=3, good=2, reads=6, writes=2, retries=1)
    assert town.stores[0].counts["put"] == 3


async def test_without_conditions_all_that_is_done_is_counted_too(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    town = Town(nursery, WithoutConditions(ManualClock()))
    tokens = town.host()

    secret, _ = await tokens.create("cline", ["read"])

    assert tokens.statistics() == TokensStatistics(asked=0, good=0, reads=2, writes=1, retries=0)
    assert await tokens.access(secret) is not None  # from the copy
    assert tokens.statistics().reads == 2


# --- while the bucket is away ----------------------------------------------------------------------------------------


async def test_an_outage_locks_nobody_out_at_once_and_lets_nobody_in_for_ever(
    town: Town, tokens: Tokens, autojump_clock: object
) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    town.stores[0].fail_all = Unreachable("down")

    await town.later(STALE - 1)
    assert await tokens.access(secret) is not None
    assert await tokens.access("lm_other") is None
    await town.later(2)
    with pytest.raises(Unreachable):
        await tokens.access(secret)


async def test_who_asks_often_costs_one_read_every_two_seconds(
    town: Town, tokens: Tokens, autojump_clock: object
) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    before = town.stores[0].counts["get"]

    for _ in range(100):
        await tokens.access(secret)
        await town.later(0.1)

    assert 4 <= town.stores[0].counts["get"] - before <= 6


async def test_a_hundred_that_ask_at_once_share_one_read(town: Town, tokens: Tokens, autojump_clock: object) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    await town.later(FRESH + 1)
    before = town.stores[0].counts["get"]
    town.stores[0].latency("get", 0.5)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(tokens.access, secret)

    assert town.stores[0].counts["get"] - before == 1


# --- when they were used ---------------------------------------------------------------------------------------------


async def test_uses_are_written_at_most_once_a_minute_however_many_there_are(
    town: Town, tokens: Tokens, nursery: trio.Nursery, autojump_clock: object
) -> None:
    made = [await tokens.create(f"token-{number}", ["read"]) for number in range(3)]
    before = town.stores[0].counts["put"]
    nursery.start_soon(tokens.run)

    for _ in range(30):
        for secret, _ in made:
            await tokens.access(secret)
        await town.later(10)

    assert 3 <= town.stores[0].counts["put"] - before <= 6  # five minutes
    used = [entry["last_used_at"] for entry in await town.kept()]
    assert all(one is not None and one > "2026-02-20T14:03:00Z" for one in used)


async def test_what_was_used_last_is_written_at_the_end(town: Town, tokens: Tokens) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    await tokens.access(secret)
    assert (await town.kept())[0]["last_used_at"] is None

    await tokens.write_uses()

    assert (await town.kept())[0]["last_used_at"] == "2026-02-20T14:00:00Z"


async def test_only_a_use_after_a_minute_is_one_to_write_and_no_later_one_is_set_back(
    town: Town, tokens: Tokens, autojump_clock: object
) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    late = town.host()
    await late.access(secret)  # and writes it when the other has written a later one
    await tokens.write_uses()  # there is none
    assert town.stores[0].counts["put"] == 1
    await town.later(10)
    for seconds, writes in ((0, 2), (USED_EVERY - 1, 2), (1, 3)):
        await town.later(seconds)
        await tokens.access(secret)
        await tokens.write_uses()
        assert town.stores[0].counts["put"] == writes
    await late.write_uses()
    assert (await town.kept())[0]["last_used_at"] == "2026-02-20T14:01:10Z"


async def test_a_use_that_cannot_be_written_keeps_nobody_from_using_it(
    town: Town, tokens: Tokens, nursery: trio.Nursery, autojump_clock: object
) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    nursery.start_soon(tokens.run)
    town.stores[0].fail_all = Unreachable("down")

    await tokens.access(secret)
    await town.later(1)
    assert await tokens.access(secret) is not None
    town.stores[0].fail_all = None
    await town.later(USED_EVERY * 2)
    await tokens.access(secret)
    await town.later(USED_EVERY * 2)
    assert (await town.kept())[0]["last_used_at"] is not None


# --- a process that is limited ---------------------------------------------------------------------------------------


async def test_a_gate_without_a_token_allows_everything_and_asks_nobody(town: Town, tokens: Tokens) -> None:
    gate = Gate(tokens)
    await gate.run()

    assert gate.access() == await gate.still() == EVERYTHING
    assert gate.statistics() == GateStatistics(limited=False, good=True, asked=0)
    assert not gate.limited
    assert town.stores[0].requests == []


async def test_a_gate_refuses_a_token_that_is_not_good(tokens: Tokens) -> None:
    with pytest.raises(NotSignedIn):
        await Gate(tokens).enter("lm_nobodys")


async def test_a_gate_follows_its_token(
    town: Town, tokens: Tokens, nursery: trio.Nursery, expect_log: Callable[[str], None], autojump_clock: object
) -> None:
    expect_log("the token is good no more")
    secret, _ = await tokens.create("cline", ["read", "write"], ["alpha"])
    gate = Gate(town.host())
    await gate.enter(secret)
    nursery.start_soon(gate.run)
    assert gate.access().may("write")

    await tokens.update("cline", permissions=["read"])
    await town.later(AGAIN + 1)
    assert not gate.access().may("write")
    town.stores[1].fail_all = Unreachable("down")
    await town.later(STALE * 2)
    assert gate.access().may("read")  # nobody has said otherwise
    town.stores[1].fail_all = None
    assert gate.statistics() == GateStatistics(limited=True, good=True, asked=int((AGAIN + 1 + STALE * 2) // 5))
    await tokens.revoke("cline")
    await town.later(AGAIN * 2)
    assert gate.access() is await gate.still() is NOTHING
    assert gate.statistics().good is False


async def test_a_gate_warns_of_no_token_that_is_good(
    town: Town, tokens: Tokens, nursery: trio.Nursery, autojump_clock: object
) -> None:
    secret, _ = await tokens.create("cline", ["read"])
    gate = Gate(tokens)
    await gate.enter(secret)
    nursery.start_soon(gate.run)

    await town.later(3 * AGAIN + 1)  # a warning would fail this test
    assert gate.statistics().asked == 3


async def test_a_token_ends_for_a_gate_although_the_bucket_is_away(
    town: Town, tokens: Tokens, nursery: trio.Nursery, expect_log: Callable[[str], None], autojump_clock: object
) -> None:
    expect_log("the token is good no more")
    secret, _ = await tokens.create("cline", ["read"], (), timedelta(hours=1))
    gate = Gate(town.host())
    await gate.enter(secret)
    nursery.start_soon(gate.run)
    town.stores[1].fail_all = Unreachable("down")

    await town.later(3_500)
    assert gate.access().may("read")
    await town.later(200)
    assert gate.access() is NOTHING
