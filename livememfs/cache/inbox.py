"""The inbox: events of agents, durable from the moment they are accepted until what came of them is in the bucket.

Owns the tables `event`, `event_count` and `spent`, and the states an event goes through (claude-mem 3.2):

    waiting -> claimed -> stored -> observed        and    waiting | claimed -> skipped | failed

What comes of events is accepted in the same step in which they become `stored`, so a crash leaves both or neither.
Nothing but success, a reason somebody gave, or the user takes an event away. Refuses to know what an event means. Trio
thread only; nothing here awaits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livememfs.cache.database import Database

WAITING, CLAIMED, STORED, OBSERVED, SKIPPED, FAILED = "waiting", "claimed", "stored", "observed", "skipped", "failed"
KEPT_SECONDS = 14 * 86_400
"""For so long an event that is done is known: the same one again is still the same."""
_DONE = (OBSERVED, SKIPPED)


@dataclass(frozen=True, slots=True)
class Queued:
    """An event that is not done. `line` is the event as it was added."""

    seq: int
    space: str
    session: str
    id: str
    kind: str
    size: int
    tries: int
    outages: int
    line: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How many events wait, how many characters they are, and which came first and last."""

    number: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class InboxStatistics:
    """Events since the local state began: `events` is the sum of all the others.

    :waiting: accepted, and what came of them is not in the bucket yet
    :skipped: by reason
    :failed:  given up until somebody asks; they are kept
    """

    events: int
    observed: int
    skipped: Mapping[str, int]
    waiting: int
    failed: int


@dataclass(frozen=True)
class Spent:
    """What was asked of a model in the background in one day: calls, and tokens in and out."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """In and out."""
        return self.prompt_tokens + self.completion_tokens


_COLUMNS = "seq, space, session, id, kind, size, tries, outages, line"


class Inbox:
    """The events of one local state. Opening it takes over what the last process was at."""

    def __init__(self, database: Database) -> None:
        self._database = database
        if database.rows("SELECT 1 FROM event WHERE state = ? LIMIT 1", (CLAIMED,)):
            self.heal(None)
        rows = database.rows("SELECT key FROM parked")
        if rows and "\n" not in rows[0][0]:
            self.park(rows[0][0])  # an older version told no number; from now on there is more than it left

    # --- adding -------------------------------------------------------------------------------------------------

    def add(self, space: str, session: str, event_id: str, kind: str, line: str, *, at: int, skipped: str = "") -> bool:
        """Accept an event, or with `skipped` only that there was one; False when it is known already. NoSpace."""
        with self._database.atomic() as db:
            found = db.execute(
                "INSERT OR IGNORE INTO event (space, session, id, kind, state, at, size, reason, line)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    space,
                    session,
                    event_id,
                    kind,
                    SKIPPED if skipped else WAITING,
                    at,
                    len(line),
                    skipped,
                    None if skipped else line,
                ),
            )
            return found.rowcount == 1

    def count(self, space: str, session: str, *kinds: str) -> int:
        """How many events of some kinds a session has had, as far as they are known."""
        marks = ", ".join("?" * len(kinds))
        query = f"SELECT count(*) FROM event WHERE space = ? AND session = ? AND kind IN ({marks})"
        return int(self._database.rows(query, (space, session, *kinds))[0][0])

    def pending(self, space: str, since: int) -> list[tuple[str, int, int]]:
        """The sessions of a space of which something is not observed that came since, with the number of the last such
        event and how many there are; the last one first. `since` in seconds.
        """
        query = (
            "SELECT session, max(seq), count(*) FROM event INDEXED BY event_state WHERE state IN (?, ?, ?)"
            " AND space = ? AND at >= ? AND kind != 'start' GROUP BY session ORDER BY 2 DESC"
        )
        return self._database.rows(query, (WAITING, CLAIMED, FAILED, space, since))

    def lines(self, space: str, session: str, most: int) -> list[str]:
        """The last events of a session that are not observed, as they were added, in the order of time."""
        query = (
            "SELECT line FROM event WHERE space = ? AND session = ? AND state IN (?, ?, ?) AND line IS NOT NULL"
            " ORDER BY seq DESC LIMIT ?"
        )
        rows = self._database.rows(query, (space, session, WAITING, CLAIMED, FAILED, most))
        return [line for (line,) in rows][::-1]

    # --- working ------------------------------------------------------------------------------------------------

    def standing(self, most: int = 1 << 30) -> dict[tuple[str, str], dict[str, Standing]]:
        """What waits, by space and session and then by kind, without reading any of it. No event counts for more than
        `most` characters.
        """
        found: dict[tuple[str, str], dict[str, Standing]] = {}
        rows = self._database.rows(
            # The index has all of it: of a day without a model thousands may wait, and each event asks.
            "SELECT space, session, kind, count(*), sum(min(size, ?)), min(seq), max(seq)"
            " FROM event INDEXED BY event_waiting"
            " WHERE state = 'waiting' GROUP BY space, session, kind",
            (most,),
        )
        for space, session, kind, *counted in rows:
            found.setdefault((space, session), {})[kind] = Standing(*counted)
        return found

    def tries(self, seq: int) -> int:
        """How many calls an event was part of."""
        return int(self._database.rows("SELECT tries FROM event WHERE seq = ?", (seq,))[0][0])

    def waiting(self, space: str, session: str, *kinds: str, most: int = -1) -> list[Queued]:
        """What waits of a session, of some kinds, in the order of time; the first `most` of it."""
        marks = ", ".join("?" * len(kinds))
        query = (
            f"SELECT {_COLUMNS} FROM event WHERE state = 'waiting' AND space = ? AND session = ? AND kind IN ({marks})"
            " ORDER BY seq LIMIT ?"
        )
        return [Queued(*row) for row in self._database.rows(query, (space, session, *kinds, most))]

    def claim(self, events: Iterable[Queued], now: int) -> list[Queued]:
        """Make events ours, those of them that still wait; it counts as a try. `now` in seconds."""
        ours = []
        with self._database.atomic() as db:
            for one in events:
                found = db.execute(
                    "UPDATE event SET state = ?, claimed = ?, tries = tries + 1 WHERE seq = ? AND state = ?",
                    (CLAIMED, now, one.seq, WAITING),
                )
                if found.rowcount == 1:
                    ours.append(one)
        return ours

    def renew(self, events: Iterable[Queued], now: int) -> None:
        """A sign of life of whoever claimed them."""
        with self._database.atomic() as db:
            db.executemany("UPDATE event SET claimed = ? WHERE seq = ?", [(now, one.seq) for one in events])

    def heal(self, before: int | None) -> int:
        """Give back what was claimed by somebody of whom nothing was heard since `before`; None: of anybody."""
        with self._database.atomic() as db:
            found = db.execute(
                "UPDATE event SET state = ?, claimed = 0 WHERE state = ? AND (? IS NULL OR claimed < ?)",
                (WAITING, CLAIMED, before, before),
            )
            return found.rowcount

    def release(self, events: Iterable[Queued], reason: str, *, outage: bool = False) -> None:
        """Give events back after a try that failed. An outage was no try of theirs."""
        counted = "tries = max(tries - 1, 0), outages = outages + 1" if outage else "tries = tries"
        with self._database.atomic() as db:
            db.executemany(
                f"UPDATE event SET state = ?, claimed = 0, reason = ?, {counted} WHERE seq = ? AND state = ?",
                [(WAITING, reason, one.seq, CLAIMED) for one in events],
            )

    def unclaim(self, events: Iterable[Queued]) -> None:
        """Give events back as if they had never been claimed."""
        with self._database.atomic() as db:
            db.executemany(
                "UPDATE event SET state = ?, claimed = 0, tries = max(tries - 1, 0) WHERE seq = ? AND state = ?",
                [(WAITING, one.seq, CLAIMED) for one in events],
            )

    def stored(self, events: Mapping[str, Sequence[Queued]]) -> None:
        """What came of events is accepted, under these keys. Inside the step that accepts it."""
        with self._database.atomic() as db:
            for key, found in events.items():
                db.executemany(
                    "UPDATE event SET state = ?, claimed = 0, object = ?, reason = '' WHERE seq = ?",
                    [(STORED, key, one.seq) for one in found],
                )

    def skip(self, events: Iterable[Queued], reason: str) -> None:
        """Have events done with, for a reason."""
        with self._database.atomic() as db:
            db.executemany(
                "UPDATE event SET state = ?, claimed = 0, reason = ?, line = NULL WHERE seq = ?",
                [(SKIPPED, reason, one.seq) for one in events],
            )

    def fail(self, events: Iterable[Queued], reason: str) -> None:
        """Give events up until somebody asks: they are kept."""
        with self._database.atomic() as db:
            db.executemany(
                "UPDATE event SET state = ?, claimed = 0, reason = ? WHERE seq = ?",
                [(FAILED, reason, one.seq) for one in events],
            )

    def revive(self, space: str = "", session: str = "", *, reason: str = "") -> int:
        """Have events that were given up wait again: of one session, or for one reason, or all; how many."""
        with self._database.atomic() as db:
            found = db.execute(
                "UPDATE event SET state = ?, tries = 0, outages = 0 WHERE state = ?"
                " AND (? = '' OR (space = ? AND session = ?)) AND (? = '' OR reason = ?)",
                (WAITING, FAILED, session, space, session, reason, reason),
            )
            return found.rowcount

    def confirm(self, key: str) -> int:
        """The bucket has an object: what it came from is done with; how many events."""
        with self._database.atomic() as db:
            found = db.execute(
                "UPDATE event SET state = ?, line = NULL WHERE state = ? AND object = ?", (OBSERVED, STORED, key)
            )
            return found.rowcount

    def unconfirmed(self) -> list[str]:
        """The keys of objects that events wait for."""
        return [key for (key,) in self._database.rows("SELECT DISTINCT object FROM event WHERE state = ?", (STORED,))]

    # --- the end, and the next beginning --------------------------------------------------------------------------

    def unfinished(self) -> list[Queued]:
        """All that nothing has come of and that is not skipped, in the order of time."""
        query = f"SELECT {_COLUMNS} FROM event WHERE state IN (?, ?, ?) AND line IS NOT NULL ORDER BY seq"
        return [Queued(*row) for row in self._database.rows(query, (WAITING, CLAIMED, FAILED))]

    def forget(self, events: Iterable[tuple[str, str, str]]) -> None:
        """Undo the adding of events, by space, session and id."""
        with self._database.atomic() as db:
            db.executemany("DELETE FROM event WHERE space = ? AND session = ? AND id = ?", list(events))

    def parked(self) -> str:
        """The key under which the bucket has what was unfinished; empty when nothing is kept there."""
        rows = self._database.rows("SELECT key FROM parked")
        return str(rows[0][0]).partition("\n")[0] if rows else ""

    def left_behind(self) -> list[Queued]:
        """What is unfinished of that which the bucket has: nothing that was added after it was parked."""
        rows = self._database.rows("SELECT key FROM parked")
        last = int(str(rows[0][0]).partition("\n")[2]) if rows else 0
        return [one for one in self.unfinished() if one.seq <= last]

    def park(self, key: str) -> None:
        """Take note that the bucket has all that is unfinished now, or with an empty key that it has nothing."""
        with self._database.atomic() as db:
            db.execute("DELETE FROM parked")
            if key:
                # With the number of the last event: what is added from here on is not in the bucket.
                db.execute("INSERT INTO parked SELECT ? || char(10) || coalesce(max(seq), 0) FROM event", (key,))

    # --- the figures --------------------------------------------------------------------------------------------

    def prune(self, now: int) -> None:
        """Forget events that have been done with for long; they stay counted. `now` in seconds."""
        with self._database.atomic() as db:
            old = (now - KEPT_SECONDS, *_DONE)
            db.execute(
                "INSERT INTO event_count SELECT state, reason, count(*) FROM event WHERE at < ? AND state IN (?, ?)"
                " GROUP BY 1, 2 ON CONFLICT DO UPDATE SET n = n + excluded.n",
                old,
            )
            db.execute("DELETE FROM event WHERE at < ? AND state IN (?, ?)", old)

    def spend(self, day: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Take note of one call of a model."""
        with self._database.atomic() as db:
            db.execute(
                "INSERT INTO spent VALUES (?, 1, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + 1,"
                " prompt = prompt + excluded.prompt, completion = completion + excluded.completion",
                (day, prompt_tokens, completion_tokens),
            )

    def spent(self, day: str) -> Spent:
        """What was spent in one day."""
        rows = self._database.rows("SELECT calls, prompt, completion FROM spent WHERE day = ?", (day,))
        return Spent(*rows[0]) if rows else Spent()

    def of_session(self, space: str, session: str) -> dict[str, int]:
        """How many events of one session are in which state, as far as they are known."""
        rows = self._database.rows(
            "SELECT state, count(*) FROM event WHERE space = ? AND session = ? GROUP BY 1", (space, session)
        )
        return dict(sorted(rows))

    def statistics(self) -> InboxStatistics:
        """Counts by state."""
        rows = self._database.rows(
            "SELECT state, reason, count(*) FROM event GROUP BY 1, 2 UNION ALL SELECT state, reason, n FROM event_count"
        )
        by_state: dict[str, int] = {}
        skipped: dict[str, int] = {}
        for state, reason, number in rows:
            by_state[state] = by_state.get(state, 0) + number
            if state == SKIPPED:
                skipped[reason] = skipped.get(reason, 0) + number
        return InboxStatistics(
            events=sum(by_state.values()),
            observed=by_state.get(OBSERVED, 0),
            skipped=dict(sorted(skipped.items())),
            waiting=sum(by_state.get(state, 0) for state in (WAITING, CLAIMED, STORED)),
            failed=by_state.get(FAILED, 0),
        )
