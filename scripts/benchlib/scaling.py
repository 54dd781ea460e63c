"""`scripts/bench scale`: what several hosts of one bucket cost it, each of them, and how soon one sees another's work.

Owns the hosts: real mounts of one bucket, each with a home, a name and a proxy of its own that counts what passes.
Looks at others' changes are told from all other requests, as they come whether or not anything is done. Bytes are those
on the wire, headers and looks included. Refuses to show a consolidation that happened twice, or a search that embedded
again. Main thread; hosts that do something at the same moment each have a thread for it.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs

import trio

from benchlib import indexing, servers
from benchlib.places import OurMount
from benchlib.seed import START, UPLOADS
from benchlib.table import aligned
from livememfs.concurrency import for_each
from livememfs.records import keys
from livememfs.records.space import Meta
from livememfs.store.base import Store, list_all

SPACE = "shared"
HEADINGS = ("what", "host", "looks", "other requests", "bytes sent", "received", "CPU ms", "")
FORMS = ("note", "edit of a note", "memory", "ordinary file")
SEEN_WITHIN = 30.0
LOOK_SECONDS = 0.02
SEEN_FIRST = 2.0
"""For so long a host looks into a space before anything is counted: it has read some beacons then."""
SILENT_SECONDS = 12.0
TOUCHED_SECONDS = 3.0
"""How often a space in use is looked into."""

OpenStore = Callable[[servers.Server], Store]


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    :hosts:   numbers of mounts that idle side by side; the last of them does everything else
    :settled: seconds after a mount, until it has done what a mount does at its beginning
    :idle:    seconds of idling
    :rounds:  how often each thing is written
    :taken:   notes in the consolidation
    :indexed: notes in the space that is searched
    :beacons: hosts that have left one in a space
    """

    hosts: tuple[int, ...] = (1, 2, 4)
    settled: float = 3.0
    idle: float = 30.0
    rounds: int = 10
    taken: int = 50
    indexed: int = 1_000
    questions: int = 10
    beacons: int = 1_000


QUICK = Sizes(hosts=(2,), settled=0.5, idle=3.0, rounds=1, taken=4, indexed=20, questions=2, beacons=20)


@dataclass
class Used:
    """What a host asked of the bucket, and the processor time it took for it."""

    looks: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    received: int = 0
    cpu: float = 0.0


class Host:
    """One mount behind a proxy of its own."""

    def __init__(self, mount: OurMount, proxy: servers.Proxy) -> None:
        self.mount, self.proxy = mount, proxy
        self.logged, self._traffic, self._cpu = 0, {"sent": 0, "received": 0}, 0.0

    @property
    def space(self) -> Path:
        """The space that all hosts use."""
        return self.mount.path / SPACE

    def start(self) -> None:
        """Mount anew, with nothing but the bucket."""
        self.mount.refresh()
        self.logged, self._cpu = 0, 0.0
        self.take()

    def settle(self) -> None:
        """Wait until the bucket has what was written here; counts nothing."""
        (self.mount.path / ".livememfs/journal.wait").read_bytes()

    def take(self, *, alive: bool = True) -> Used:
        """What was used since this was last asked. `alive`: its daemon can still be asked for its processor time."""
        log, traffic = self.proxy.log(), self.proxy.traffic()
        cpu = self.mount.cpu_seconds() if alive else self._cpu
        new = log[self.logged :]
        used = Used(
            looks=sum(is_look(verb, target) for verb, target in new),
            requests=Counter(verb for verb, target in new if not is_look(verb, target)),
            sent=traffic["sent"] - self._traffic["sent"],
            received=traffic["received"] - self._traffic["received"],
            cpu=cpu - self._cpu,
        )
        self.logged, self._traffic, self._cpu = len(log), traffic, cpu
        return used


def is_look(verb: str, target: str) -> bool:
    """Whether a request is one by which a mount finds out what others did: a space, its records, or its new notes."""
    query = parse_qs(target.partition("?")[2], keep_blank_values=True)
    prefix = query.get("prefix", [""])[0]
    whole_space = prefix.count("/") == 1 and prefix.endswith("/") and "delimiter" not in query
    new_notes = prefix.endswith(f"/{keys.LIVE}/") and "start-after" in query
    return verb == "list" and (prefix.endswith("/_") or new_notes or whole_space)


@contextmanager
def hosts_of(server: servers.Server, count: int, home: Path) -> Iterator[list[Host]]:
    """So many hosts of one bucket; their proxies run, their mounts do not yet."""
    with ExitStack() as stack:
        made = []
        for number in range(1, count + 1):
            proxy = stack.enter_context(servers.proxy_to(server, log=True))
            mount = OurMount(server, proxy, 0.0, home / f"h{number}", f"h{number}")
            made.append(Host(stack.enter_context(mount), proxy))
        yield made


def row(what: str, host: str, used: Sequence[Used], per: float, remark: str = "") -> tuple[str, ...]:
    """A line of the table: the mean of some hosts, for one of `per` operations."""
    share = len(used) * per
    requests = sum((one.requests for one in used), Counter[str]())
    words = ", ".join(f"{verb} {_number(count / share)}" for verb, count in sorted(requests.items()) if count)
    sums = (sum(one.sent for one in used), sum(one.received for one in used), 1e3 * sum(one.cpu for one in used))
    looks = _number(sum(one.looks for one in used) / share)
    return (what, host, looks, words or "none", *(f"{value / share:,.0f}" for value in sums), remark)


def _number(count: float) -> str:
    return f"{count:,.1f}".removesuffix(".0")


# --- doing nothing ---------------------------------------------------------------------------------------------------


def idle(hosts: Sequence[Host], settled: float, seconds: float) -> Iterator[tuple[str, ...]]:
    """What each host costs while nobody does anything, and while somebody is in one space: per minute."""
    for host in hosts:
        host.start()
    minutes, name = seconds / 60, f"each of {len(hosts)}"
    time.sleep(settled)
    for what, used in (("idle for a minute", False), ("idle, one space in use", True)):
        if used:
            _be_there(hosts, settled)
        for host in hosts:
            host.take()
        begun = time.monotonic()
        _be_there(hosts if used else (), seconds)
        minutes = (time.monotonic() - begun) / 60
        yield row(what, name, [host.take() for host in hosts], minutes)


def _be_there(hosts: Sequence[Host], seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        for host in hosts:
            list((host.space / keys.LIVE).iterdir())
        time.sleep(min(left, TOUCHED_SECONDS))


# --- hearing of who was silent ---------------------------------------------------------------------------------------


def silence(hosts: Sequence[Host], rounds: int) -> Iterator[tuple[str, ...]]:
    """How soon one host sees the first change of another in a space where none was at work, and the next one.

    Each round has a space of its own, which both have been in for longer than a calm host's pause.
    """
    writer, reader = hosts[:2]
    spaces = [Path(_silent(number), keys.LIVE) for number in range(rounds)]
    stay = _Presence([host.mount.path / space for host in (writer, reader) for space in spaces]).stay
    chance, first, later = random.Random(7), list[float](), list[float]()
    stay(SILENT_SECONDS)
    for space in spaces:
        for delays in (first, later):
            stay(chance.uniform(0, SILENT_SECONDS))
            text = f"Of {time.monotonic()}.\n"
            (writer.mount.path / space / "note.md").write_text(text)
            written = time.monotonic()
            delays.append(_heard(reader.mount.path / space, set(), text, stay) - written)
    for what, delays in (("a first change, after silence", first), ("the next change", later)):
        remark = f"read there after {statistics.median(delays):.1f} s, {max(delays):.1f} s at most, of {rounds}"
        yield (what, "another", "", "", "", "", "", remark)


def _silent(number: int) -> str:
    return f"silent-{number:02}"


def make_spaces(store: Store, names: Sequence[str]) -> None:
    """Spaces by a program that is no host, so none of these was at work there; closes the store."""

    async def make() -> None:
        for name in names:
            await store.put(keys.meta_key(name), Meta(name, "made to be measured", "bench", START).render())
        await store.aclose()

    trio.run(make)


class _Presence:
    """Somebody who is in many folders at the same time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._looked = float("-inf")

    def stay(self, seconds: float) -> None:
        """Sleep, and look into all of them now and then."""
        until = time.monotonic() + seconds
        while True:
            if time.monotonic() - self._looked >= TOUCHED_SECONDS:
                self._looked = time.monotonic()
                for folder in self._folders:
                    list(folder.iterdir())
            if (left := until - time.monotonic()) <= 0:
                return
            time.sleep(min(left, TOUCHED_SECONDS))


# --- writing and hearing of it ---------------------------------------------------------------------------------------


def spread(hosts: Sequence[Host], form: str, rounds: int) -> Iterator[tuple[str, ...]]:
    """What one thing costs the host that writes it and each other one, which reads it as soon as it is there."""
    writer, others = hosts[0], hosts[1:]
    folder = {"memory": keys.MEMORIES, "ordinary file": "files"}.get(form, keys.LIVE)
    for host in hosts:
        list((host.space / folder).iterdir())
        host.take()
    seconds: list[float] = []
    for number in range(rounds):
        before = {path.name for path in (others[0].space / folder).iterdir()}
        text = f"{form} {number} of {time.monotonic()}, of which all hosts are to hear.\n"
        _write(writer.space / folder, form, number, text)
        written = time.monotonic()
        seconds += [_heard(other.space / folder, before, text) - written for other in others]
        writer.settle()
    yield row(f"one {form}", "the writer", [writer.take()], rounds)
    remark = f"read there after {statistics.median(seconds):.1f} s, {max(seconds):.1f} s at most"
    yield row("", f"each of {len(others)} others", [host.take() for host in others], rounds, remark)


def _write(folder: Path, form: str, number: int, text: str) -> None:
    if form == FORMS[1]:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".md")
        with names[number].open("a") as file:
            file.write(text)
    else:
        (folder / f"{form.split()[0]}-{time.monotonic_ns()}.md").write_text(text)


def _heard(folder: Path, before: set[str], text: str, stay: Callable[[float], None] = time.sleep) -> float:
    """Look until something has that text, what is new first; when it did. What did not change costs no request."""
    until = time.monotonic() + SEEN_WITHIN
    while time.monotonic() < until:
        there = sorted(folder.iterdir(), key=lambda path: path.name in before)
        if any(path.is_file() and path.read_text().endswith(text) for path in there):
            return time.monotonic()
        stay(LOOK_SECONDS)
    raise RuntimeError(f"not seen within {SEEN_WITHIN} s: {text}")


# --- consolidating ---------------------------------------------------------------------------------------------------


def consolidate(hosts: Sequence[Host], notes: int, runs: Callable[[], int]) -> Iterator[tuple[str, ...]]:
    """All hosts ask for the same run at once. `runs()`: how many there are. RuntimeError unless exactly one is made."""
    live = hosts[0].space / keys.LIVE
    there = len(list(live.iterdir()))
    for number in range(notes):
        (live / f"taken-{number}.md").write_text(f"Fact {number} that the bank should have.\n")
    hosts[0].settle()
    until = time.monotonic() + SEEN_WITHIN
    while any(len(list((host.space / keys.LIVE).iterdir())) < there + notes for host in hosts):
        if time.monotonic() > until:
            raise RuntimeError("some host does not see all notes")
        time.sleep(LOOK_SECONDS)
    before = runs()
    for host in hosts:
        host.take()
    with ThreadPoolExecutor(len(hosts)) as pool:
        ends = list(pool.map(_touched, hosts))
    used = [host.take() for host in hosts]
    taken = [end for end, _ in ends]
    if runs() != before + 1 or sorted(taken)[:-1] != [0] * (len(hosts) - 1) or max(taken) < notes:
        raise RuntimeError(f"the hosts took {taken} notes in {runs() - before} runs")
    ran = taken.index(max(taken))
    rest = [number for number in range(len(hosts)) if number != ran]
    yield row(f"a run over {max(taken)} notes", "who runs", [used[ran]], 1, f"{ends[ran][1]:.1f} s")
    remark = f"asked at the same moment: {max(ends[number][1] for number in rest):.1f} s at most, nothing left to do"
    yield row("", f"each of {len(rest)} others", [used[number] for number in rest], 1, remark)


def _touched(host: Host) -> tuple[int, float]:
    """How many notes a run took, and seconds until that was known."""
    begun = time.monotonic()
    (host.space / ".consolidate").touch()
    last = json.loads((host.space / ".consolidate.wait").read_text().splitlines()[-1])
    if last["state"] != "ok":
        raise RuntimeError(f"the consolidation ended with {last}")
    return int(last["notes_processed"]), time.monotonic() - begun


def runs_in(store: Store) -> int:
    """How many runs the bucket has of the space; closes the store."""

    async def count() -> int:
        found = await list_all(store, keys.ledger_prefix(SPACE))
        await store.aclose()
        return sum(info.key.endswith(".json") for info in found.objects)

    return trio.run(count)


# --- searching -------------------------------------------------------------------------------------------------------


def search(hosts: Sequence[Host], names: list[str], questions: int, limit: float) -> Iterator[tuple[str, ...]]:
    """The first question on a host that has to embed all, on one that finds the vectors, and any question after it."""
    what = f"first question to {len(names):,} notes"
    for host, name in ((hosts[0], "the first"), (hosts[1], "another")):
        host.start()
        found = indexing.index_all(host.mount, names, limit)
        if not found.meant or (found.embedded and host is not hosts[0]):
            raise RuntimeError(f"{name} host: meanings after {found.meant} s, {found.embedded} texts embedded")
        used = [host.take()]
        if host is hosts[0]:
            host.mount.leave()  # it writes what it has embedded then, at the latest
            used.append(host.take(alive=False))
        remark = (
            f"words after {found.words:.0f} s, meanings after {found.meant:.0f} s, {found.embedded:,} texts embedded"
        )
        yield row(what, name, used, 1 / len(used), remark)
        what = ""
    ask = hosts[1].mount.path / indexing.SPACE / "search"
    hosts[1].take()
    begun = time.monotonic()
    for number in range(questions):
        list((ask / f"{indexing.QUESTION} {number}").iterdir())
    remark = f"{(time.monotonic() - begun) / questions:.2f} s"
    yield row("one question after that", "that one", [hosts[1].take()], questions, remark)


# --- hosts by the thousand -------------------------------------------------------------------------------------------


def crowd(host: Host, open_store: Callable[[], Store], beacons: int, seconds: float) -> Iterator[tuple[str, ...]]:
    """What a space costs one host in which very many others have left a beacon, and what it costs to hear them all.

    Only the beacons are real: nobody wrote what they name.
    """
    _leave_beacons(open_store(), beacons, 1)
    host.start()
    _be_there([host], SEEN_FIRST)
    host.take()
    begun = time.monotonic()
    _be_there([host], seconds)
    used = host.take()
    yield row(f"space in use, {beacons:,} beacons", "that one", [used], (time.monotonic() - begun) / 60)
    _leave_beacons(open_store(), beacons, 2)
    begun, heard = time.monotonic(), 0
    while heard < beacons:
        if time.monotonic() > begun + SEEN_WITHIN:
            raise RuntimeError(f"{heard} of {beacons} beacons were read within {SEEN_WITHIN} s")
        _be_there([host], 0.2)
        heard = sum(verb == "get" and f"/{keys.CHANGES}/" in target for verb, target in host.proxy.log()[host.logged :])
    remark = f"{time.monotonic() - begun:.1f} s"
    yield row("... each host changed something", "that one", [host.take()], 1, remark)


def _leave_beacons(store: Store, count: int, number: int) -> None:
    """So many beacons, after the change of that number; closes the store."""

    async def leave(which: int) -> None:
        recent = [[one, f"{SPACE}/files/of-host-{which:06}-{one}.md"] for one in range(1, number + 1)]
        value = {"epoch": f"{which:012}", "seq": number, "recent": recent}
        await store.put(f"{SPACE}/{keys.CHANGES}/host-{which:06}-0.json", json.dumps(value).encode())

    async def all_of_them() -> None:
        await for_each(range(count), leave, at_once=UPLOADS)
        await store.aclose()

    trio.run(all_of_them)


# --- all of it -------------------------------------------------------------------------------------------------------


def rows(
    server: servers.Server, open_store: OpenStore, sizes: Sizes, home: Path, limit: float
) -> Iterator[tuple[str, ...]]:
    """The lines of the table, one after the other."""
    names = indexing.fill(open_store(server), sizes.indexed)
    with hosts_of(server, max(sizes.hosts), home) as hosts:
        make_spaces(open_store(server), [SPACE, *map(_silent, range(sizes.rounds))])
        for count in sizes.hosts:
            yield from idle(hosts[:count], sizes.settled, sizes.idle)
        (hosts[0].mount.path / SPACE / "files").mkdir()
        hosts[0].settle()
        yield from silence(hosts, sizes.rounds)
        for form in FORMS:
            yield from spread(hosts, form, sizes.rounds)
        yield from consolidate(hosts, sizes.taken, lambda: runs_in(open_store(server)))
        yield from search(hosts, names, sizes.questions, limit)
        for host in hosts[1:]:
            host.mount.leave()
        yield from crowd(hosts[0], lambda: open_store(server), sizes.beacons, sizes.idle)


def main(server_choice: str, open_store: OpenStore, sizes: Sizes, limit: float) -> int:
    """Measure and print a table."""
    with (
        tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as folder,
        servers.s3_server(server_choice, Path(folder)) as server,
    ):
        found = list(rows(server, open_store, sizes, Path(folder), limit))
    print(
        f"{server.name}; requests and bytes of one host for one of what the line says, looks at others' changes apart"
    )
    print(aligned([HEADINGS, *found], right={2, 4, 5, 6}))
    return 0
