"""The command line of `scripts/bench`.

Owns what is started in which order, and that all of it ends. Refuses unknown workloads. Main thread only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import livememfs
from benchlib import seed, servers, table
from benchlib.places import Folder, OurMount, Place
from benchlib.run import Cost, Row, measure, measure_costs
from benchlib.workloads import Sizes, Workload, workloads
from livememfs.store.s3 import S3Options, S3Store

COSTS = "requests"
"""The name by which --only chooses the second table."""


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    root = argparse.ArgumentParser(prog="scripts/bench", description="Measure livememfs.")
    commands = root.add_subparsers(dest="command", required=True)
    mount = commands.add_parser(
        "mount", help="a mount next to a plain folder", description="Measure a mount next to a plain folder."
    )
    searched = commands.add_parser("search", help="the search index", description="Measure the search, by its size.")
    searched.add_argument(
        "--records", default="1000,10000,100000", help="sizes of the index, with commas; a million takes 10 minutes"
    )
    index = commands.add_parser(
        "index",
        help="from the first question until all is found",
        description="Measure how long it takes to index a bucket, and a second time with the vectors of the first.",
    )
    index.add_argument("--notes", type=int, default=10_000, help="notes in the space that is asked")
    index.add_argument("--latency", type=float, default=0.0, help="seconds added to each request")
    index.add_argument("--limit", type=float, default=3_600.0, help="seconds after which a mount is given up")
    index.add_argument("--server", choices=["seaweedfs", "moto"], default="seaweedfs", help="the S3 server to start")
    scaled = commands.add_parser(
        "scale",
        help="what several hosts of one bucket cost",
        description="Measure the requests and bytes of several mounts of one bucket, and when one sees another's work.",
    )
    scaled.add_argument("--notes", type=int, default=1_000, help="notes in the space that is searched")
    scaled.add_argument("--limit", type=float, default=3_600.0, help="seconds after which indexing is given up")
    scaled.add_argument("--server", choices=["seaweedfs", "moto"], default="seaweedfs", help="the S3 server to start")
    scaled.add_argument("--quick", action="store_true", help="two hosts, a little of everything, moto")
    told = commands.add_parser(
        "recall", help="what to know before answering", description="Measure `.recall` from a shell, by its memories."
    )
    told.add_argument("--memories", default="1000,10000,100000", help="how many, with commas")
    mirrored = commands.add_parser(
        "mirror",
        help="what a mirror costs",
        description="Measure when a change in one mirror is in another, and what one costs while nothing happens.",
    )
    mirrored.add_argument("--files", type=int, default=20_000, help="files that lie there")
    mirrored.add_argument("--rounds", type=int, default=20, help="changes of each kind")
    mirrored.add_argument("--seconds", type=float, default=60.0, help="how long nothing happens")
    hooked = commands.add_parser(
        "hooks",
        help="what an agent's hook costs it",
        description="Measure hooks from the start of their shell to its end, next to one that starts an interpreter.",
    )
    hooked.add_argument("--memories", type=int, default=10_000, help="how many the space has")
    hooked.add_argument("--rounds", type=int, default=200, help="how often each hook runs")
    stalled = commands.add_parser(
        "stall",
        help="for how long a mount does not answer while others ask for much",
        description="Measure the longest look at a file while ten clients repeat a request to the mount's server.",
    )
    stalled.add_argument("--notes", type=int, default=10_000, help="notes in the space that is asked")
    stalled.add_argument("--seconds", type=float, default=5.0, help="for how long each request is repeated")
    stalled.add_argument("--only", action="append", default=[], metavar="NAME", help="part of a request's name")
    commands.add_parser(
        "cli",
        help="what starting a command costs",
        description="Measure the processor time of help, status and completion.",
    ).add_argument("--rounds", type=int, default=5, help="how often each command runs")
    paged = commands.add_parser(
        "web", help="pages of a very large space", description="Measure the live page, from the first byte to the last."
    )
    paged.add_argument("--notes", type=int, default=100_000, help="notes in the space")
    paged.add_argument("--observations", type=int, default=10_000, help="observations in the space")
    paged.add_argument("--rounds", type=int, default=20, help="how often each page is asked for")
    searched.add_argument("--index", default="", metavar="URL", help="a PostgreSQL database to keep the index in")
    mount.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="other mounts to measure in the same run")
    mount.add_argument("--latency", default="0,0.03", help="seconds added to each request; several, with commas")
    mount.add_argument("--rounds", type=int, default=5, help="how often all is measured; medians are shown")
    mount.add_argument(
        "--only", action="append", default=[], metavar="NAME", help=f"part of a workload's name, or {COSTS}"
    )
    mount.add_argument("--limit", type=float, default=300.0, help="seconds after which a workload is given up")
    mount.add_argument("--json", type=Path, metavar="FILE", help="write all figures and samples there")
    mount.add_argument("--size", type=int, default=Sizes.objects, help="files in the directory that is listed")
    mount.add_argument("--server", choices=["seaweedfs", "moto"], default="seaweedfs", help="the S3 server to start")
    mount.add_argument("--quick", action="store_true", help="one round of everything, small")
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Ends with 1 when a workload failed, with 2 when there is nothing to measure."""
    given = parser().parse_args(arguments)
    if given.command == "search":
        from benchlib import search  # brings numpy and the model

        return search.main(sorted(int(size) for size in given.records.split(",")), given.index)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that everything started is ended
    if given.command == "cli":
        from benchlib import commands

        return commands.main(given.rounds)
    if given.command == "recall":
        from benchlib import recalling

        return recalling.main(sorted(int(size) for size in given.memories.split(",")))
    if given.command == "mirror":
        from benchlib import mirroring

        return mirroring.main(given.files, given.rounds, given.seconds)
    if given.command == "web":
        from benchlib import web

        return web.main(given.notes, given.observations, given.rounds)
    if given.command == "stall":
        from benchlib import stall

        return stall.main(given.notes, given.seconds, given.only)
    if given.command == "hooks":
        from benchlib import hooks

        return hooks.main(given.memories, given.rounds)
    if given.command == "scale":
        from benchlib import scaling

        sizes_of_it = scaling.QUICK if given.quick else replace(scaling.Sizes(), indexed=given.notes)
        return scaling.main("moto" if given.quick else given.server, _store, sizes_of_it, given.limit)
    if given.command == "index":
        from benchlib import indexing

        return indexing.main(given.notes, given.server, given.latency, _store, given.limit)
    sizes = replace(Sizes(), objects=given.size)
    sizes, rounds = (sizes.quick(), 1) if given.quick else (sizes, given.rounds)
    chosen = [item for item in workloads(sizes) if not given.only or any(part in item.name for part in given.only)]
    costs = not given.only or COSTS in given.only
    if not chosen and not costs:
        print(f"scripts/bench: no workload is called {' or '.join(given.only)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as home:
        header, rows, requests = _measure(given, chosen, sizes, rounds, costs, Path(home))
    print("\n".join([*header, "", table.as_text(rows, requests)]))
    if given.json:
        given.json.write_text(json.dumps({"header": header, **table.as_json(rows, requests)}, indent=1))
    return 1 if any(row.failures for row in rows) else 0


def _measure(
    given: argparse.Namespace, chosen: Sequence[Workload], sizes: Sizes, rounds: int, costs: bool, home: Path
) -> tuple[list[str], list[Row], list[Cost]]:
    with ExitStack() as stack:
        server = stack.enter_context(servers.s3_server(given.server, home))
        proxy = stack.enter_context(servers.proxy_to(server))
        seed.fill_bucket(_store(server), sizes)
        latencies = [float(text) for text in given.latency.split(",")]
        mounts = [stack.enter_context(OurMount(server, proxy, latency, home)) for latency in latencies]
        others = [Folder(str(path), path, sizes) for path in given.paths]
        folder = Folder(table.PLAIN, home, sizes, can_be_cold=True)
        places: list[Place] = [stack.enter_context(folder), *mounts, *map(stack.enter_context, others)]
        rows = measure(places, chosen, sizes, rounds, limit=given.limit) if chosen else []
        requests = []
        for mount in mounts if costs else ():
            requests += measure_costs(mount, rounds, idle=mount is mounts[0])  # which has no latency to depend on
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return _header(server, rounds), rows, requests


def _store(server: servers.Server) -> S3Store:
    where = server.environment()
    return S3Store(
        S3Options(
            bucket=where["S3_BUCKET_NAME"],
            endpoint_url=where["S3_ENDPOINT_URL"],
            access_key_id=where["S3_ACCESS_KEY_ID"],
            secret_access_key=where["S3_SECRET_ACCESS_KEY"],
        )
    )


def _header(server: servers.Server, rounds: int) -> list[str]:
    """What the figures below were measured on."""
    code = Path(livememfs.__file__).parent
    return [
        f"livememfs {livememfs.__version__} in {code}, Python {platform.python_version()}",
        f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs",
        f"{server.name} behind a proxy on loopback; the latency stands for one round trip, added to each request",
        f"{rounds} round{'s' * (rounds > 1)}; 'folder' is a local directory of which the kernel remembers everything",
    ]


if __name__ == "__main__":
    sys.exit(main())
