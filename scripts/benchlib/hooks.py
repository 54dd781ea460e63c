"""`scripts/bench hooks`: what a hook costs the agent that runs it, from the start of its shell to its end.

Owns the hooks, which are those that `livememfs install` writes, and what they are told, which is made up. They take
turns with a shell that does nothing and with a hook that starts an interpreter, so all meet the same machine. Times are
those of a bash that starts `sh`; what the mount does meanwhile, observing included, is part of them. Main thread only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchlib.recalling import TURNS, fill, put, ready
from benchlib.search import SPACE, Made
from benchlib.table import aligned, percentile
from livememfs.agents.install.command import HookCommand
from livememfs.config import Settings
from livememfs.recall.embed.builtin import Builtin
from livememfs.records import keys
from livememfs.records.observation import Observation

INTERPRETER = """python3 -c 'import json, sys; json.load(sys.stdin); print("{}")'"""
OUTPUT, LONG_OUTPUT = 4_000, 1 << 20
"""Characters that a tool gave."""
OBSERVED, FILES = 10_000, 2_000
"""Observations, and how many files they are about."""
ROOT = Path(__file__).resolve().parents[2]
COSTS = "tests/observing/test_observe.py::test_a_hundred_and_twenty_events_cost_at_most_fifteen_calls"
SHARES = (0.5, 0.95, 0.99)
HEADINGS = ("hook", "p50 ms", "p95 ms", "p99 ms", "p95 at most", "answered", "")
TIME = """
while IFS= read -r number && IFS= read -r command && IFS= read -r request; do
  start=$EPOCHREALTIME
  sh -c "$command" <"$request" >"$1"
  status=$? end=$EPOCHREALTIME
  printf '%s %s %s ' "$number" "$status" "$(( ${end/./} - ${start/./} ))"; tr '\n' ' ' <"$1"; echo
done
"""


@dataclass(frozen=True)
class Timed:
    """Something that is run as a hook is.

    :request: what its input is, by the number of the round
    :most:    milliseconds that 95 of 100 may take; None where nothing is promised
    """

    name: str
    command: str
    request: Callable[[int], str]
    most: float | None = None


@dataclass
class Found:
    """Milliseconds of every run, and how many of them were answered with something to tell."""

    ms: list[float] = field(default_factory=list)
    told: int = 0


def hooks(space: Path, made: Made) -> list[Timed]:
    """What is measured, on a space that is mounted."""

    def of(event: str, **fields: Callable[[int], Any]) -> tuple[str, Callable[[int], str]]:
        def request(number: int) -> str:
            common = {"session_id": f"s{number // TURNS}", "cwd": "/p", "hook_event_name": event}
            return json.dumps({**common, **{name: value(number) for name, value in fields.items()}})

        return HookCommand(str(space), event).command, request

    def used(size: int) -> tuple[str, Callable[[int], str]]:
        return of(
            "PostToolUse",
            tool_name=lambda _: "Edit",
            tool_use_id=lambda number: f"t{size}-{number}",
            tool_input=lambda number: {"file_path": f"/p/f{number}.py", "old_string": "a", "new_string": "b"},
            tool_response=lambda number: {
                "filePath": f"/p/f{number}.py",
                "originalFile": made.text(size // 7, size // 6),
            },
        )

    def file(number: int) -> dict[str, str]:
        return {"file_path": f"/p/src/part{number % 40}/f{number % FILES}.py"}

    return [
        Timed("sh -c :", ":", lambda _: "{}"),
        Timed("starting python3", INTERPRETER, lambda _: "{}"),
        Timed("PostToolUse", *used(OUTPUT), 15.0),
        Timed("PostToolUse, 1 MB", *used(LONG_OUTPUT)),
        Timed("PreToolUse, a file", *of("PreToolUse", tool_name=lambda _: "Read", tool_input=file), 15.0),
        Timed("UserPromptSubmit", *of("UserPromptSubmit", prompt=lambda _: made.text(4, 14)), 40.0),
        Timed("SessionStart", *of("SessionStart", source=lambda _: "startup"), 60.0),
    ]


def run(chosen: Sequence[Timed], rounds: int, scratch: Path) -> list[Found]:
    """Run each in every round, in turns. RuntimeError when one fails, or answers what is no JSON object."""
    lines = []
    for number in range(rounds):
        for which, one in enumerate(chosen):
            request = scratch / f"{which}-{number}.json"
            request.write_text(one.request(number))
            lines.append(f"{which}\n{one.command}\n{request}\n")
    done = subprocess.run(
        ["bash", "-c", TIME, "bash", scratch / "answer"],
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    found = [Found() for _ in chosen]
    for line in filter(None, done.stdout.splitlines()):
        which, status, micros, answer = line.split(" ", 3)
        one = found[int(which)]
        one.ms.append(int(micros) / 1e3)
        one.told += _told(chosen[int(which)].name, status, answer)
    if done.stderr or any(len(one.ms) != rounds for one in found):
        raise RuntimeError(f"some hook did not run or was not silent: {done.stderr[:200]}")
    return found


def _told(name: str, status: str, answer: str) -> bool:
    """Whether an answer tells anything."""
    try:
        if status == "0":
            return bool(answer and json.loads(answer))
    except ValueError:
        pass
    raise RuntimeError(f"{name} ended with {status} and answered {answer[:200]!r}")


def as_text(chosen: Sequence[Timed], found: Sequence[Found]) -> str:
    """The table. `answered`: in how many runs there was something to tell."""
    lines = [HEADINGS]
    for one, got in zip(chosen, found, strict=True):
        shares = [percentile(got.ms, share) for share in SHARES]
        most = "" if one.most is None else f"{one.most:.0f}"
        verdict = "" if one.most is None else "kept" if shares[1] < one.most else "missed"
        lines.append((one.name, *(f"{ms:.1f}" for ms in shares), most, f"{got.told} of {len(got.ms)}", verdict))
    return aligned(lines, right={1, 2, 3, 4, 5})


def observations(made: Made) -> Iterator[tuple[str, bytes]]:
    """Keys and bytes: of files that are read later."""
    then = datetime.now(UTC) - timedelta(days=100)
    for number in range(OBSERVED):
        file = f"src/part{number % 40}/f{number % FILES}.py"
        at = then + timedelta(minutes=10 * number)
        narrative, concepts = made.text(20, 60), ("gotcha",) if number % 7 else ()
        one = Observation(
            f"{number:08x}", "s", at, "change", made.text(4, 8), narrative=narrative, concepts=concepts,
            files_modified=(file,), files_read=("src/app.py",), project="/p",
        )  # fmt: skip
        yield keys.observations_prefix(SPACE) + one.name, one.render()


def session_costs() -> str:
    """What observing a session of 120 events costs, as the test of it says."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", COSTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return next(line for line in done.stdout.splitlines() if line.startswith("120 events:"))


def main(memories: int, rounds: int) -> int:
    """Measure and print a table."""
    model = Builtin.load()
    made = Made(model.dim)
    with tempfile.TemporaryDirectory(prefix="livememfs-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        settings = Settings(store=str(home / "store"), cache=str(home / "cache"))  # type: ignore[call-arg]  # the rest have defaults
        fill(home / "store", settings, made, model.name, range(memories))
        put(home / "store", settings, made, model.name, dict(observations(made)))
        (home / "requests").mkdir()
        with ready(home, settings, made, home / "mnt"):
            chosen = hooks(home / "mnt" / SPACE, made)
            found = run(chosen, rounds, home / "requests")
    print(f"{memories:,} memories, {OBSERVED:,} observations, {rounds} rounds in turns")
    print(as_text(chosen, found))
    print(session_costs())
    return 0
