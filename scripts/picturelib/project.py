"""A made-up project in a bucket: what agents and people have written over some days, and what runs made of it.

Owns the texts. Runs are real ones, by the built-in model; times are moments before now.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from livememfs.app import App
from livememfs.memories import storing
from livememfs.memories.notes import write_note
from livememfs.records import keys
from livememfs.records.ledger import Entry, Write
from livememfs.records.observation import Observation, ObservationType
from livememfs.records.session import Meter, Session, Summary
from livememfs.runs import held
from livememfs.spaces import making
from livememfs.text.outgoing import Outgoing
from livememfs.text.times import iso

SHOP, GARDEN = "shop", "garden"
OLD_NOTES = (
    (50, "claude", "decision", "queue", "The queue of jobs moves to **Postgres**: one system less to run."),
    (
        49,
        "claude",
        "progress",
        "queue",
        "`SELECT ... FOR UPDATE SKIP LOCKED` takes a job; forty workers share a table.",
    ),
    (48, "cursor", "issue", "checkout", "Two orders got the same number on Friday. The counter lives in the cache."),
    (30, "cursor", "decision", "checkout", "Order numbers come from a sequence of the database, never from the cache."),
    (29, "me", "todo", "billing", "Check the bill of the bucket at the end of the month."),
)
NEW_NOTES = (
    (
        4.2, "claude", "insight", "queue, performance",
        "The queue is slow only when all workers start at once.\n\n| workers | jobs a second |\n|---:|---:|\n"
        "| 10 | 410 |\n| 40 | 1,380 |\n| 40, at once | 95 |\n",
    ),
    (2.1, "cursor", "question", "mail", "Who owns the queue of the mails? It has no owner in `CODEOWNERS`."),
    (
        0.7, "claude", "progress", "queue",
        "Workers wait a random moment before they take their first job:\n\n```python\n"
        "async def begin(worker: Worker) -> None:\n    # not all at once\n"
        "    await trio.sleep(random.uniform(0, 2.0))\n    await worker.run()\n```\n",
    ),
    (0.05, "me", "todo", "release", "Release on Thursday; tell support **before** that."),
)  # fmt: skip
MEMORIES = (
    (70, "decision", "The queue of jobs is a table in Postgres.", ["queue", "Postgres"], 0.8, "claude"),
    (60, "preference", "Maria wants short commit messages that say why.", ["Maria", "git"], 0.7, "claude"),
    (26, "fact", "Order numbers come from the sequence `order_number`.", ["checkout"], 0.6, "cursor"),
    (3, "event", "The load test of Tuesday broke at forty workers.", ["queue", "performance"], 0.4, "claude"),
)
OBSERVED: tuple[tuple[float, ObservationType, str, str, str], ...] = (
    (3.2, "discovery", "Workers race for the first job", "All forty read the same row",
     "Each worker **asks at once** after its start, and forty wait for one lock.\n\n- `queue.py` has no jitter"),
    (2.9, "bugfix", "A random pause before the first job", "in the start of a worker",
     "The pause spreads the start over two seconds. The load test passes with forty workers."),
    (2.8, "decision", "The pause is at most two seconds", "", "Longer pauses delay a deployment."),
)  # fmt: skip


async def fill(app: App) -> None:
    """Make the project."""
    now = app.clock.now()
    await making.create(app.replica, app.clock, SHOP, description="A shop, its checkout and the queue behind it")
    await making.create(app.replica, app.clock, GARDEN, description="What grows where")
    await _notes(app, SHOP, OLD_NOTES, now)
    assert (await app.consolidations.run_once(SHOP)).state == "ok"
    await _notes(app, SHOP, NEW_NOTES, now)
    await _notes(app, GARDEN, ((20, "me", "observation", "beds", "The beans are up, a week early."),), now)
    await _memories(app, now)
    await _session(app, now)
    await _held(app, now)


async def _notes(app: App, space: str, notes: tuple[tuple[float, str, str, str, str], ...], now: datetime) -> None:
    for hours, agent, category, tags, text in notes:
        head = {"timestamp": iso(now - timedelta(hours=hours)), "category": category, "tags": tags.split(", ")}
        whole = "---\n" + "".join(f"{name}: {json.dumps(value)}\n" for name, value in head.items()) + f"---\n{text}\n"
        await write_note(app.replica, app.clock, space, whole, agent=agent)


async def _memories(app: App, now: datetime) -> None:
    first = ""
    for hours, kind, text, subjects, importance, agent in MEMORIES:
        head = {
            "type": kind,
            "importance": importance,
            "subjects": subjects,
            "created_at": iso(now - timedelta(hours=hours)),
            "agent": agent,
        }
        links = f"links:\n  result_of: [{json.dumps(first)}]\n" if first and kind == "event" else ""
        whole = (
            "---\n" + "".join(f"{name}: {json.dumps(value)}\n" for name, value in head.items()) + f"{links}---\n{text}"
        )
        key = await storing.remember(app.replica, app.clock, SHOP, keys.MEMORIES, whole, agent=agent)
        first = first or storing.id_of(key.rpartition("/")[2])
    await storing.remember(app.replica, app.clock, SHOP, keys.GOALS, "Understand the load of Mondays.", agent="claude")
    gone = await storing.remember(app.replica, app.clock, SHOP, keys.MEMORIES, "The queue is Redis.", agent="claude")
    await storing.forget(app.replica, app.clock, await app.replica.names.stat(gone))


async def _session(app: App, now: datetime) -> None:
    prompts = ("Why does the load test break at forty workers?", "Add the pause, and run the load test again.")
    observed = [
        Observation(
            f"0badcaf{number}", "5f0c1d7e-load", now - timedelta(hours=hours), kind, title, subtitle, text,
            ("the load test is `tests/load.py`",), ("concurrency", "how-it-works"), ("src/queue.py",),
            ("src/worker.py",), "shop", "claude", 1_900, "gpt-5-mini",
        )
        for number, (hours, kind, title, subtitle, text) in enumerate(OBSERVED)
    ]  # fmt: skip
    for one in observed:
        await app.replica.put(f"{SHOP}/{keys.OBSERVATIONS}/{one.name}", one.render())
    begun, slug = now - timedelta(hours=3.3), keys.session_slug("5f0c1d7e-load")
    session = Session(
        "5f0c1d7e-load", SHOP, begun, now - timedelta(hours=2.7), agent="claude", project="shop", prompts=2,
        observed=14, skipped=5, observations=tuple(one.name for one in observed), model="gpt-5-mini",
        meter=Meter(4, 18_240, 2_310),
    )  # fmt: skip
    await app.replica.put(keys.session_key(SHOP, slug), session.render())
    lines = [{"at": iso(begun + timedelta(minutes=9 * n)), "id": str(n), "prompt": p} for n, p in enumerate(prompts)]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    await app.replica.put(keys.session_key(SHOP, slug, keys.PROMPTS), text)
    summary = Summary(
        "5f0c1d7e-load", now - timedelta(hours=2.6), request="Find out why the load test breaks at forty workers",
        learned="Forty workers ask for their first job at once, and wait for one lock.",
        completed="A random pause before the first job; the load test passes.", next_steps="- tell support of Thursday",
        project="shop", model="gpt-5-mini",
    )  # fmt: skip
    await app.replica.put(keys.session_key(SHOP, slug, keys.SUMMARY), summary.render())


async def _held(app: App, now: datetime) -> None:
    """A plan that would drop too much."""
    infos = [info for info in await app.replica.names.walk(keys.bank_prefix(SHOP)) if info.key.endswith(".md")]
    info = next(info for info in infos if info.key.endswith("systemPatterns.md"))
    name, was = info.key.removeprefix(keys.bank_prefix(SHOP)), (await app.replica.read(info.key)).data.decode()
    lines = [line for line in was.split("\n") if line.startswith("> ")][:3]
    entry = Entry(
        number=2, space=SHOP, state="held", committed_at=now - timedelta(minutes=30),
        writes=(Write(f"bank/{name}", info.etag, was.split("\n")[0] + "\n", was=was),),
        outgoing=tuple(Outgoing(name, line.strip("> "), "dropped", reason="it is settled") for line in lines),
        held=(f"it would drop most of what {name} says",),
    )  # fmt: skip
    await held.keep(app.replica, entry)
