"""The command line of `scripts/try-agents`.

Owns which programs take part, that each is had, and the table. Main thread only; each program's day has a process.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from trylib.day import COLUMNS, Day, Row
from trylib.programs import PROGRAMS, Missing, Program

NEEDED, LEAST = ("claude-code", "codex"), 3
"""Programs that must take part when none is named, and how many in all."""


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="scripts/try-agents",
        description="Play a scripted day with real agents' programs beside a real mount, and print what came of it.",
        epilog="Exits 1 when something is missing. Needs /dev/fuse, Node.js, and npm unless --programs has all.",
    )
    made.add_argument("agent", nargs="*", metavar="AGENT", help=f"which: {', '.join(PROGRAMS)} (all)")
    made.add_argument("--keep", metavar="DIR", help="play in this folder and leave it: requests, outputs, buckets")
    made.add_argument("--programs", metavar="DIR", help="where programs are installed already, or are to stay")
    made.add_argument("--jobs", type=int, default=2, help="days played side by side (%(default)s)")
    return made


def main() -> int:
    """Play, print, judge."""
    given = parser().parse_args()
    unknown = sorted(set(given.agent) - set(PROGRAMS))
    if unknown:
        print(f"scripts/try-agents: no such agent: {', '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = [PROGRAMS[name] for name in given.agent or PROGRAMS]
    folder = Path(given.keep) if given.keep else Path(tempfile.mkdtemp(prefix="livememfs-try-"))
    try:
        programs = Path(given.programs).absolute() if given.programs else folder / "programs"
        with ProcessPoolExecutor(given.jobs) as pool:
            days = [pool.submit(play, one.name, programs, folder.absolute() / one.name) for one in chosen]
            rows = [day.result() for day in days]
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    ran = [row.program.name for row in rows if not row.missing]
    short = [] if given.agent else [name for name in NEEDED if name not in ran]
    if short or (not given.agent and len(ran) < LEAST):
        print(f"scripts/try-agents: too few programs ran here: {', '.join(ran) or 'none'}", file=sys.stderr)
        return 1
    return 1 if any(row.failed for row in rows) else 0


def play(name: str, programs: Path, folder: Path) -> Row:
    """One program's day, in this process."""
    program = PROGRAMS[name]
    shutil.rmtree(folder, ignore_errors=True)
    try:
        binary = program.install(programs)
    except Missing as error:
        return Row(program, missing=str(error))
    return Day(program, binary, folder, Path(sys.executable).with_name("livememfs")).play()


def table(rows: list[Row]) -> str:
    """Two tables of Markdown, what arrived and what it cost, and a line for each cell that is not as it should be."""
    ran = [row for row in rows if row.checks]
    lines = _grid(
        ["", *(_heading(row.program) for row in ran)],
        [[title, *(_cell(row, name) for row in ran)] for name, title in COLUMNS.items()],
    )
    costs = list(dict.fromkeys(name for row in ran for name in row.costs))
    lines += [
        "",
        *_grid(
            ["", *(row.program.name for row in ran)],
            [[name, *(row.costs.get(name, "") for row in ran)] for name in costs],
        ),
    ]
    lines += [""]
    for row in rows:
        lines += [f"- {row.program.name}, {COLUMNS.get(name, name)}: **{why}**" for name, why in row.failed.items()]
        lines += [
            f"- {row.program.name}, {COLUMNS.get(name, name)}: not applicable, {why}"
            for name, why in row.skipped.items()
        ]
    return "\n".join(lines)


def _heading(program: Program) -> str:
    return f"{program.name} {program.package.rpartition('@')[2]}"


def _cell(row: Row, name: str) -> str:
    if name in row.skipped:
        return "–"
    return "yes" if row.checks.get(name) == "" else ("**no**" if name in row.checks else "**not reached**")


def _grid(head: list[str], body: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *body]]


if __name__ == "__main__":
    sys.exit(main())
