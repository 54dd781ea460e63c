"""The index of a team: many mounts at once, a server that comes and goes, and what it takes to open one."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest
from index_world import ALL, DAY, DIM, MODEL, THREE, assert_whole, embed, found, near, note, only, read
from postgres_server import PASSWORD, Server

from livememfs.app import open_app
from livememfs.app.recall import drop_engine, open_engine
from livememfs.cli.main import main
from livememfs.config import Settings
from livememfs.errors import LiveMemError, SettingsError, TimedOut
from livememfs.recall.index.exchanged import TextQuery
from livememfs.recall.index.sittings import Sittings, windows
from livememfs.recall.postgres import connection, meaning, schema
from livememfs.recall.postgres.connection import Unavailable, place_of
from livememfs.recall.postgres.engine import Postgres
from livememfs.recall.postgres.schema import drop, schema_of
from livememfs.records import keys
from livememfs.spaces.making import create
from livememfs.testing.embed import hashed

Bucket = Callable[[], str]
SLOW_MACHINE = 10.0
"""Seconds by which everything may be late."""


@pytest.fixture
def name(bucket_name: Bucket) -> str:
    """A bucket of this test's own."""
    return bucket_name()


@pytest.fixture
def opened(server: Server, name: str) -> Iterator[Callable[[], Postgres]]:
    """Opens the index of the test's bucket, as each of several mounts does."""
    made: list[Postgres] = []

    def opening() -> Postgres:
        made.append(Postgres(server.url(), MODEL, name))
        return made[-1]

    yield opening
    for one in made:
        one.close()


def administrator(server: Server, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    """A connection beside those of the index."""
    return psycopg.connect(server.url(database=database), autocommit=True)


# --- many at once ------------------------------------------------------------------------------------------------


def at_once(count: int, work: Callable[[int, threading.Barrier], None]) -> None:
    """Do work in several threads, each with its number and a barrier for all of them; none may fail."""
    start = threading.Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(work, number, start) for number in range(count)]:
            done.result(60)


def test_mounts_that_apply_the_same_objects_at_the_same_instant_end_with_one_set_of_records(
    opened: Callable[[], Postgres],
) -> None:
    """And the same vectors. Each has its own order, and some take away what others put in."""
    objects = [read(note(f"n{n}", f"queue word{n}x", 60 * n)) for n in range(40)]

    def mount(turn: int, start: threading.Barrier) -> None:
        engine = opened()
        start.wait(20)
        mine = objects[turn * 7 :] + objects[: turn * 7]
        for step in range(0, 40, 8):
            engine.apply([mine[step - 1][0]] if step and turn == 3 else (), mine[step : step + 8])
            embed(engine)

    at_once(4, mount)
    engine = opened()
    engine.apply((), objects)
    embed(engine)
    assert engine.verify() == []
    assert (engine.statistics().records, engine.statistics().embedded) == (40, 40)
    assert len(found(engine, "queue")) == 40


def test_mounts_that_open_an_index_at_the_same_instant_make_it_once(opened: Callable[[], Postgres]) -> None:
    def mount(_: int, start: threading.Barrier) -> None:
        start.wait(20)
        opened().apply((), THREE)

    at_once(8, mount)
    assert_whole(opened())


def test_an_object_that_is_there_in_this_version_is_not_written_again(opened: Callable[[], Postgres]) -> None:
    first, second = opened(), opened()
    first.apply((), THREE)
    before = [stored.id for stored in first.strict(ALL, 9)]
    second.apply((), THREE)
    assert [stored.id for stored in second.strict(ALL, 9)] == before
    second.apply((), [read(note("one", "queue alpha", 1 * DAY, etag="2"))])
    assert [stored.id for stored in first.strict(ALL, 9)][:2] == before[:2]
    assert_whole(first)


def test_what_one_mount_writes_the_other_finds_at_once(opened: Callable[[], Postgres]) -> None:
    first, second = opened(), opened()
    first.apply((), THREE)
    assert_whole(second)
    embed(second)
    assert first.unembedded(9) == []
    assert near(first, "queue alpha")[0] == "one"
    second.apply(["space/live/one.md"], ())
    assert (found(first, "alpha"), near(first, "alpha")) == ([], [])


def test_whoever_asks_waits_for_nobody_who_writes_and_who_writes_not_for_ever(
    opened: Callable[[], Postgres], server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().apply((), THREE)
    monkeypatch.setattr(connection, "LOCK_SECONDS", 1)
    with administrator(server) as other, other.transaction():
        connection.lock(other, schema_of(name))
        late = opened()
        assert_whole(late)
        with pytest.raises(TimedOut):
            late.apply((), [read(note("four", "queue"))])
    late.apply((), [read(note("four", "queue", 4 * DAY))])
    assert found(late, "queue") == ["four", "one", "three", "two"]


SHARED = [str(Path(__file__).parents[1] / folder) for folder in ("", "index", "search", "../../scripts")]
"""Where a process of its own finds what several tests share."""

DYING = """
import os, signal, sys
sys.path[:0] = sys.argv[4:]
from livememfs.recall.postgres import engine, meaning, postings, records
from index_world import THREE, note, read, DAY

index = engine.Postgres(sys.argv[1], "hashed", sys.argv[2])
index.apply([], THREE)
module, function = sys.argv[3].split(".")
module = {"meaning": meaning, "postings": postings, "records": records}[module]
original = getattr(module, function)

def dying(*args, **kwargs):
    original(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(module, function, dying)
index.apply(["space/live/one.md"], [read(note("four", "queue fourth", 4 * DAY)), THREE[1]])
"""


@pytest.mark.parametrize("where", ["records.forget", "records.add", "postings.replace", "meaning.place"])
def test_a_mount_that_is_killed_while_it_writes_leaves_what_was_there(
    opened: Callable[[], Postgres], server: Server, name: str, where: str
) -> None:
    died = subprocess.run(
        [sys.executable, "-c", DYING, server.url(), name, where, *SHARED],
        timeout=60,
        capture_output=True,
    )
    assert died.returncode == -9, died.stderr.decode()
    engine = opened()
    assert_whole(engine)
    engine.apply(["space/live/one.md"], [read(note("four", "queue fourth", 4 * DAY))])
    assert (found(engine, "queue"), engine.verify()) == (["four", "three", "two"], [])


WRITER = """
import sys
sys.path[:0] = sys.argv[4:]
from livememfs.recall.postgres.engine import Postgres
from index_world import embed, note, read

index = Postgres(sys.argv[1], "hashed", sys.argv[2])
start = int(sys.argv[3])
print("ready", flush=True)
for step in range(10_000):
    # The first half of each batch is everybody's.
    names = [*range(step * 4, step * 4 + 2), *range(start + step * 2, start + step * 2 + 2)]
    index.apply([], [read(note(f"n{n}", f"queue word{n}x", 60 * n)) for n in names])
    embed(index)
    print(*names, flush=True)
"""


BATCHES = 5
"""So many are acknowledged before each kill."""


def test_of_two_mounts_that_write_one_is_killed_and_nothing_acknowledged_is_lost(
    opened: Callable[[], Postgres], server: Server, name: str
) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, server.url(), name, str(start), *SHARED],
            stdout=subprocess.PIPE,
            text=True,
        )
        for start in (100_000, 200_000)
    ]
    outputs = [writer.stdout for writer in writers if writer.stdout is not None]
    for output in outputs:
        assert output.readline() == "ready\n"
    said = [output.readline() for output in outputs for _ in range(BATCHES)]
    writers[0].kill()
    said += [outputs[1].readline() for _ in range(BATCHES)]
    writers[1].kill()
    assert all(said), "a writer has ended"
    said += [line for output in outputs for line in output.readlines() if line.endswith("\n")]
    for output in outputs:
        output.close()
    assert [writer.wait(20) for writer in writers] == [-signal.SIGKILL] * 2
    acknowledged = {int(number) for line in said for number in line.split()}

    engine = opened()
    assert engine.verify() == []
    there = set(engine.objects())
    assert {f"space/live/n{number}.md" for number in acknowledged} <= there
    assert engine.statistics().records == len(there)
    embed(engine)
    assert (engine.unembedded(9), engine.verify()) == ([], [])


# --- a server that comes and goes --------------------------------------------------------------------------------


def test_a_server_that_was_restarted_between_two_calls_is_not_noticed(
    opened: Callable[[], Postgres], server: Server
) -> None:
    engine = opened()
    engine.apply((), THREE)
    server.stop()
    server.start()
    assert_whole(engine)
    server.stop()
    server.start()
    engine.apply(["space/live/one.md"], ())
    assert (found(engine, "queue"), engine.verify()) == (["three", "two"], [])


def test_a_server_that_is_down_is_said_soon_and_works_again_when_it_is_back(
    opened: Callable[[], Postgres], server: Server, name: str
) -> None:
    engine = opened()
    engine.apply((), THREE)
    before = engine.statistics()
    assert before.records == 3
    server.stop()
    try:
        for act in (
            lambda: engine.text(TextQuery("queue"), ALL, 9),
            lambda: engine.apply((), [read(note("four", "queue"))]),
            lambda: Postgres(server.url(), MODEL, name),
        ):
            begun = time.monotonic()
            with pytest.raises(Unavailable) as failed:
                act()
            assert time.monotonic() - begun < connection.CONNECT_SECONDS + SLOW_MACHINE
            assert f"127.0.0.1:{server.port}" in str(failed.value)
            assert PASSWORD not in str(failed.value) + failed.value.advice()
        assert engine.statistics() == before, "what shows them shows more than these"
    finally:
        server.start()
    assert_whole(engine)


def test_a_host_that_never_answers_is_given_up_within_its_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(LiveMemError):
            Postgres(f"postgresql://me:secret@127.0.0.1:{silent.getsockname()[1]}/x", MODEL, name)
        assert time.monotonic() - begun < connection.CONNECT_SECONDS + SLOW_MACHINE


async def test_an_answer_without_the_server_is_empty_and_says_why(tmp_path: Path, server: Server) -> None:
    url = server.url(password="hunter2", port=1)
    settings = Settings(
        store=str(tmp_path / "bucket"), cache=str(tmp_path / "cache"), embed_model="none", index_url=url
    )
    async with open_app(settings) as app:
        await create(app.replica, app.clock, "here")
        answer = await app.recall.ask("queue", ("here",))
    assert answer.found.hits == ()
    assert "cannot be used" in answer.notes[-1]
    assert "hunter2" not in " ".join(answer.notes) + repr(settings)


async def test_two_mounts_of_a_bucket_share_what_one_has_read(tmp_path: Path, server: Server) -> None:
    answers = []
    for cache in ("one", "two"):
        settings = Settings(
            store=str(tmp_path / "bucket"), cache=str(tmp_path / cache), embed_model="none", index_url=server.url()
        )
        async with open_app(settings) as app:
            if cache == "one":
                await create(app.replica, app.clock, "here")
                note_key = keys.live_key("here", "20260101T000000_me_todo_00000001.md")
                await app.replica.put(note_key, b"---\nagent: me\n---\nthe queue is full\n")
            answers.append([hit.record.key for hit in (await app.recall.ask("queue", ("here",))).found.hits])
    assert answers[0] == answers[1] != []


# --- opening -----------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_not_shown(server: Server, name: str) -> None:
    with pytest.raises(Unavailable, match="password authentication failed") as failed:
        Postgres(server.url(password="hunter2%21x"), MODEL, name)
    assert "hunter2" not in str(failed.value) + repr(failed.value) + failed.value.advice()
    assert failed.value.__cause__ is None


@pytest.mark.parametrize("url", ["mysql://me:hunter2@host/x", "host=x password=hunter2", "postgresql://[hunter2", ""])
def test_what_is_no_url_of_postgresql_is_refused_without_being_shown(url: str, name: str) -> None:
    with pytest.raises(SettingsError, match="LIVEMEMFS_INDEX_URL") as failed:
        Postgres(url, MODEL, name)
    assert "hunter2" not in str(failed.value)
    if url.startswith(("mysql", "host")):
        with pytest.raises(SettingsError) as refused:
            Settings.load({"LIVEMEMFS_INDEX_URL": url})
        assert "hunter2" not in str(refused.value)


def test_a_database_is_called_without_user_and_password() -> None:
    assert place_of("postgresql://me:secret@db.example:5433/memory?sslmode=require") == "db.example:5433/memory"
    assert place_of("postgres:///memory") == "this machine/memory"
    several = "postgresql://me:secret@a:1,b:2/memory?target_session_attrs=read-write"
    assert place_of(several).endswith("/memory")
    assert "secret" not in place_of(several)


def test_two_buckets_in_one_database_do_not_see_each_other(server: Server, bucket_name: Bucket) -> None:
    first, second = Postgres(server.url(), MODEL, bucket_name()), Postgres(server.url(), MODEL, bucket_name())
    first.apply((), THREE)
    embed(first)
    assert (found(second, "queue"), near(second, "queue alpha"), second.objects()) == ([], [], {})
    assert second.statistics().vectors == 0
    second.apply((), [read(note("one", "queue omega"))])
    assert found(first, "omega") == []
    drop(server.url(), second.bucket)
    assert_whole(first)
    for one in (first, second):
        one.close()


def test_an_index_that_was_dropped_is_empty_for_those_who_have_it_open(
    opened: Callable[[], Postgres], server: Server, name: str
) -> None:
    first, second = opened(), opened()
    first.apply((), THREE)
    embed(first)
    assert near(second, "queue alpha")
    drop(server.url(), name)
    drop(server.url(), name)
    assert (first.objects(), found(second, "queue"), near(second, "queue alpha")) == ({}, [], [])
    second.apply((), THREE)
    assert embed(first) == 4
    assert_whole(first)


def test_an_index_of_another_version_is_refused_and_left_alone(
    opened: Callable[[], Postgres], server: Server, name: str
) -> None:
    opened().apply((), THREE)
    with administrator(server) as other:
        other.execute(f"UPDATE {schema_of(name)}.state SET value = '77' WHERE name = 'version'")
        with pytest.raises(SettingsError, match="version 77"):
            Postgres(server.url(), MODEL, name)
        assert other.execute(f"SELECT count(*) FROM {schema_of(name)}.record").fetchone() == (3,)
    drop(server.url(), name)
    assert opened().statistics().records == 0


@pytest.fixture(scope="module")
def poor(server: Server) -> Iterator[str]:
    """A database for a user who may not create extensions."""
    with administrator(server) as other:
        other.execute("CREATE ROLE poor LOGIN PASSWORD 'poor'")
        other.execute("CREATE DATABASE poor")
        other.execute("GRANT CREATE ON DATABASE poor TO poor")
        yield server.url(database="poor").replace(f"tester:{PASSWORD}", "poor:poor")
        other.execute("DROP DATABASE poor WITH (FORCE)")


def test_an_extension_that_cannot_be_created_is_said_and_made_by_another_it_will_do(
    poor: str, server: Server, name: str
) -> None:
    with pytest.raises(SettingsError, match="extension `vector`"):
        Postgres(poor, MODEL, name)
    with administrator(server, "poor") as other:
        other.execute("CREATE SCHEMA extensions; GRANT USAGE ON SCHEMA extensions TO poor")
        other.execute("CREATE EXTENSION vector SCHEMA extensions")
    engine = Postgres(poor, MODEL, name)
    engine.apply((), THREE)
    embed(engine)
    assert_whole(engine)
    assert near(engine, "queue alpha")[0] == "one"
    engine.close()


def test_a_database_that_cannot_hold_every_text_is_refused(server: Server, name: str) -> None:
    with administrator(server) as other:
        other.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
        with pytest.raises(SettingsError, match="UTF8"):
            Postgres(server.url(database="ascii"), MODEL, name)
        other.execute("DROP DATABASE ascii WITH (FORCE)")


def test_an_old_extension_is_refused(server: Server, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST_VECTOR", (99, 0))
    with pytest.raises(SettingsError, match=r"99\.0"):
        Postgres(server.url(), MODEL, name)


def test_without_the_driver_the_setting_says_what_to_install(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(store=str(tmp_path), index_url=server.url())
    for module in ("engine", "schema"):
        monkeypatch.setitem(sys.modules, f"livememfs.recall.postgres.{module}", None)
    for act in (lambda: open_engine(settings, tmp_path), lambda: drop_engine(settings)):
        with pytest.raises(SettingsError, match=r"pip install livememfs\[search,postgres\]"):
            act()


def test_the_settings_choose_the_index(tmp_path: Path, server: Server) -> None:
    settings = Settings(store=str(tmp_path / "bucket"), embed_model="none", index_url=server.url())
    engine = open_engine(settings, tmp_path / "never")
    assert isinstance(engine, Postgres)
    assert engine.bucket == f"folder {tmp_path / 'bucket'}"
    assert not (tmp_path / "never").exists()
    engine.apply((), THREE)
    engine.close()
    drop_engine(settings)
    engine = open_engine(settings, tmp_path)
    assert engine.objects() == {}
    engine.close()


def test_the_command_says_how_the_shared_index_is_and_makes_it_anew(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While another mount has it open."""
    settings = Settings(store=str(tmp_path / "bucket"), embed_model="none", index_url=server.url())
    for variable, value in (("STORE", settings.store), ("EMBED_MODEL", "none"), ("CACHE", str(tmp_path / "cache"))):
        monkeypatch.setenv(f"LIVEMEMFS_{variable}", value)
    monkeypatch.setenv("LIVEMEMFS_INDEX_URL", settings.index_url)

    def said(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        assert int(ended.value.code or 0) == code, captured.err
        assert PASSWORD not in captured.out + captured.err
        return captured.out + captured.err

    said("space", "create", "here")
    said("note", "here", "the queue is full")
    other = open_engine(settings, tmp_path)
    assert '"records": 1' in said("index", "rebuild", "--json")
    assert found(other, "queue")
    assert f"1 records of 1 objects in 127.0.0.1:{server.port}/postgres" in said("index", "status")
    assert "no fault" in said("index", "verify")
    with administrator(server) as db:
        db.execute(f"DELETE FROM {schema_of(f'folder {settings.store}')}.posting")
        assert "not whole" in said("index", "verify", code=1)
        db.execute(f"UPDATE {schema_of(f'folder {settings.store}')}.state SET value = '0' WHERE name = 'version'")
    assert "version 0" in said("index", "status", code=2)
    said("index", "rebuild")
    assert '"problems": []' in said("index", "verify", "--json")
    other.close()


# --- looking after it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM posting WHERE term = (SELECT id FROM term WHERE word = 'alpha')", "not whole"),
        ("DELETE FROM piece WHERE part = 1", "belong to no record"),
        ("DELETE FROM record WHERE ref LIKE '%one%'", "belong to no record"),
        ("DELETE FROM object WHERE key LIKE '%one%'", "belong to no object"),
        ("UPDATE term SET found = found + 1", "counted wrongly"),
        ("UPDATE total SET tokens = tokens + 1", "counts other texts"),
        ("DELETE FROM near", "counted wrongly"),
        ("DELETE FROM said", "lack their words"),
        ("DELETE FROM kept", "lack a vector"),
    ],
)
def test_whatever_is_wrong_is_seen(
    opened: Callable[[], Postgres], server: Server, name: str, harm: str, said: str
) -> None:
    engine = opened()
    engine.apply((), THREE)
    embed(engine)
    assert engine.verify() == []
    with administrator(server) as other:
        other.execute(f"SET search_path = {schema_of(name)}")
        other.execute(harm)
    assert said in "; ".join(engine.verify())


# --- many vectors ------------------------------------------------------------------------------------------------

COUNT, CLUSTERS, ASKED = 3_000, 40, 25


@pytest.fixture(scope="module")
def large(server: Server, bucket_name: Bucket) -> Iterator[tuple[Postgres, np.ndarray, np.ndarray]]:
    """An index of many vectors in clusters that has a graph; the vectors, and questions like them."""
    chance = np.random.default_rng(11)
    centres = chance.normal(size=(CLUSTERS, DIM)) + 2.0  # all of them point much the same way, as those of models do

    def drawn(count: int) -> np.ndarray:
        rows = centres[chance.integers(0, CLUSTERS, count)] + 0.7 * chance.normal(size=(count, DIM))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    vectors, engine = drawn(COUNT), Postgres(server.url(), MODEL, bucket_name())
    engine.expect(drawn(36).mean(axis=0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meaning, "INDEXED_FROM", 1_000)
        for start in range(0, COUNT, 500):
            numbers = range(start, start + 500)
            engine.apply((), [read(note(f"n{n}", f"w{n}", DAY * n, type=f"t{n % 10}")) for n in numbers])
            texts = engine.unembedded(500)  # the newest first
            engine.take_vectors([text.meaning for text in reversed(texts)], vectors[start : start + 500])
    yield engine, vectors, drawn(ASKED)
    engine.close()


def exact(engine: Postgres, vectors: np.ndarray, question: np.ndarray) -> np.ndarray:
    """Cosines of all, as they are defined."""
    assert engine.prior is not None
    mean = (vectors.sum(axis=0) + 300 * engine.prior) / (len(vectors) + 300)
    centred, asked = vectors - mean, question - mean
    return np.asarray(centred @ asked / np.linalg.norm(centred, axis=1) / np.linalg.norm(asked))


@pytest.mark.parametrize("where", [ALL, only(type=("t1", "t2", "t3"))], ids=["all", "filtered"])
def test_the_graph_finds_what_a_scan_finds(
    large: tuple[Postgres, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch, where: object
) -> None:
    """At least 95 of 100 of the twenty nearest, with the cosines that they have."""
    engine, vectors, questions = large
    monkeypatch.setattr(meaning, "RESCORED", 200)
    monkeypatch.setattr(meaning, "INDEXED_FROM", 10)
    briefs = engine.briefs(range(1, COUNT + 1))
    known = engine.records([brief.id for _, brief in briefs.values()])
    numbers = {number: int(known[brief.id].ref[12:-3]) for number, (_, brief) in briefs.items()}
    right = 0
    for question in questions:
        cosines = exact(engine, vectors, question)
        fitting = np.arange(COUNT) if where is ALL else np.flatnonzero(np.isin(np.arange(COUNT) % 10, (1, 2, 3)))
        best = set(fitting[np.argsort(-cosines[fitting])[:20]].tolist())
        hits = engine.near(question, where, 20)  # type: ignore[arg-type]
        right += len(best & {numbers[number] for number, _ in hits})
        assert [cosine for _, cosine in hits] == pytest.approx([cosines[numbers[n]] for n, _ in hits], abs=0.01)
        assert len(hits) == 20
    assert right / (20 * len(questions)) >= 0.95


def test_a_graph_that_cannot_be_made_costs_nothing_but_speed(
    opened: Callable[[], Postgres], monkeypatch: pytest.MonkeyPatch, expect_log: Callable[[str], None]
) -> None:
    expect_log("without a graph")

    def refused(db: object, model: object) -> None:
        raise Unavailable("must be owner of table near", where="here")

    engine = opened()
    monkeypatch.setattr(meaning, "INDEXED_FROM", 1)
    monkeypatch.setattr(meaning, "make_graphs", refused)
    engine.apply((), THREE)
    assert embed(engine) == 4
    assert near(engine, "queue alpha")[0] == "one"


def test_the_graph_is_what_is_searched(large: tuple[Postgres, np.ndarray, np.ndarray], server: Server) -> None:
    engine, _, questions = large
    with administrator(server) as other:
        other.execute(f"SET search_path = {schema_of(engine.bucket)}, public")
        rows = other.execute("SELECT indexed FROM mean").fetchall()
        assert rows == [(True,)]
        scans = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'near_1_1'"
        before = other.execute(scans).fetchone()
        engine.near(questions[0], ALL, 20)
        engine.close()  # a connection that ends tells what it did
        for _ in range(50):
            after = other.execute(scans).fetchone()
            if after != before:
                break
            time.sleep(0.1)
        assert after != before
    assert engine.verify() == []


# --- sittings ----------------------------------------------------------------------------------------------------


def test_windows_that_touch_are_one() -> None:
    spaces, low, high = windows([("a", 10_000), ("a", 0), ("b", 0), ("a", 7_000)])
    assert list(zip(spaces, low, high, strict=True)) == [("a", -3_600, 13_600), ("b", -3_600, 3_600)]


def test_notes_are_beside_each_other_within_a_sitting() -> None:
    notes = Sittings([("a", 60 * n, n) for n in range(9)] + [("b", 240, 99)])
    assert notes.beside(("a", 240), 2) == [2, 3, 4, 5, 6]
    assert notes.beside(("a", 241), 2) == [3, 4, 5, 6, 7]
    assert (notes.before(("a", 240), 4), notes.before(("a", 0), 0), notes.before(("b", 240), 99)) == (3, None, None)
    assert notes.touched(("a", 240)) >= {2, 3, 4, 5, 6}
    assert notes.beside(("nowhere", 1), 2) == []


def test_a_question_of_another_kind_of_vector_and_one_that_is_the_mean_find_nothing(
    opened: Callable[[], Postgres],
) -> None:
    engine = opened()
    engine.apply((), [read(note("one", "queue"))])
    engine.take_vectors([text.meaning for text in engine.unembedded(9)], hashed("queue", DIM)[None, :])
    assert engine.near(hashed("queue", DIM), ALL, 9) == []
    assert engine.near(hashed("queue", 32), ALL, 9) == []
