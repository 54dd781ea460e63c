"""The day: what is said and done in each session, and what must have come of it.

Owns the script and the checks. A check that fails says what was there instead. Main thread only.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from livememfs.text.own import END, HEAD
from trylib.endpoint import SUMMARY, Asked, Endpoint, Turn
from trylib.memory import SPACE, Memory
from trylib.programs import Program, Ran

SET = "Set the port in app.py to two."
DECIDE = "Decide which database the marmot service uses."
KEY = "Postgres because the marmot service needs JSONB"
NOTE = "Staging deploys are allowed on Tuesdays only; ask Ottoline first."
ASK_NOTE = "When are staging deploys allowed?"
BANK = "Migrations are named by the Perpetua scheme."
ASK_BANK = "How are migrations named here?"
LOOK = "Look at the port in app.py."
OWN = "The vole budget is forty."
FAILS, FAILED = "printf 'kestrel-%d' 42 >&2; exit 3", "kestrel-42"
HELLO = "Say hello."
STUCK = "Go on while nothing answers."
GONE = "Go on without a memory."
TAGS = re.compile(r"<system-reminder>|<hook_context>|<command-(?:name|message|args)>|<local-command|" + re.escape(HEAD))
OFF = re.compile(r'livememfs[^\n"]{0,120}\b(?:off|not mounted|unmounted|not running)\b|memory is off', re.IGNORECASE)
COLUMNS = {
    "begin": "next session knows, 1 s later",
    "once": "context once",
    "note": "note told",
    "bank": "bank told",
    "again": "told again after compaction",
    "file": "file memory",
    "soon": "all observed within 20 s of the end",
    "failure": "failure observed",
    "words": "last words observed",
    "prompts": "prompts",
    "agent": "named",
    "server": "note by MCP",
    "own": "own words left out",
    "frozen": "frozen daemon",
    "off": "says it is off",
    "gone": "uninstall",
}
HOOKS, BOUND = 6, 2.0
"""The most hooks of a session with one prompt and one tool, and the seconds each may take."""
SLACK, SOON, MANY = 3.0, 20.0, 6


@dataclass
class Row:
    """What became of one program's day: by column, empty for yes, a text for what was there instead.

    :skipped: columns that do not apply, and why
    :costs:   figures, by heading
    :stopped: why the day ended early, if it did
    :missing: why the program does not run here, if it does not
    """

    program: Program
    checks: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    costs: dict[str, str] = field(default_factory=dict)
    stopped: str = ""
    missing: str = ""

    @property
    def failed(self) -> dict[str, str]:
        """What is not as it should be."""
        wrong = {name: why for name, why in self.checks.items() if why}
        return {**wrong, **({"day": self.stopped} if self.stopped else {})}


@dataclass
class Session:
    """What one run of the program came to, and what its model was asked."""

    ran: Ran
    asked: list[Asked]
    began: float = 0.0

    @property
    def turns(self) -> list[str]:
        """The texts of the requests that go on with the conversation; an empty one when there is none."""
        return [one.text for one in self.asked if one.kind == "turn"] or [""]

    def waits(self) -> tuple[float, float]:
        """Milliseconds to the first request, and between two with a command between them, the median."""
        at = [one.at for one in self.asked if one.kind == "turn"]
        gaps = [later - earlier for earlier, later in pairwise(at)]
        return 1000 * (at[0] - self.began), 1000 * median(gaps)


class Day:
    """One program's day in a folder of its own."""

    def __init__(self, program: Program, binary: Path, folder: Path, livememfs: Path) -> None:
        self.program, self.binary, self.folder = program, binary, folder
        self.home, self.project = folder / "home", folder / "project"
        self.memory = Memory(livememfs, folder, KEY)
        self.row = Row(program, skipped=dict(program.lacks))
        self._given: list[str] = []
        self._number = 0

    def play(self) -> Row:
        """The whole day."""
        self._begin()
        with Endpoint(self.program.call) as self.model:
            self.program.settle(self.home, self.project, self.model.url)
            try:
                self._session(HELLO, *self._greeting(), given=False)  # the first start is slower than any other
                bare = self._session(HELLO, *self._greeting(MANY), given=False)
                if bare.ran.status != 0:
                    raise RuntimeError(f"it does not run: {bare.ran.output.strip()[-300:]}")
                before = _tree(self.project, self.program.keeps)
                with self.memory.mounted():
                    self._install()
                    self._morning()
                    self._noon()
                    self._costs(bare)
                    self._evening()
                self._bucket()
                self._uninstall(before)
            except (RuntimeError, TimeoutError, subprocess.SubprocessError, OSError) as error:
                self.row.stopped = str(error)
        (self.folder / "asked.json").write_text(json.dumps([[one.kind, one.body] for one in self.model.asked]))
        (self.folder / "observed.json").write_text(json.dumps(self.memory.told()))
        return self.row

    # --- the sessions ---------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        for path in (self.home, self.project, self.memory.store / SPACE / "bank"):
            path.mkdir(parents=True)
        (self.project / "app.py").write_text("PORT = 1\n")
        (self.project / ".gitignore").write_text("*.pyc\n")
        git = ["git", "-c", "user.name=try", "-c", "user.email=try@localhost"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "begin"]):
            subprocess.run([*git, *words], cwd=self.project, check=True, env={**self.memory.environment})

    def _install(self) -> None:
        made = self.memory.run("space", "create", SPACE, "--store", str(self.memory.store))
        (self.memory.store / SPACE / "bank" / "conventions.md").write_text(f"# Conventions\n\n{BANK}\n")
        (self.memory.space / "live" / "deploys.md").write_text(f"{NOTE}\n")
        words = ["--space", SPACE, "--mount", str(self.memory.mount), "--mcp", "--yes"]
        done = self.memory.run("install", self.program.name, *words, cwd=self.project)
        if done.returncode:
            raise RuntimeError(f"install: {(done.stderr or made.stderr).strip()[-300:]}")

    def _session(
        self, prompt: str, *script: Turn, again: bool = False, given: bool = True, limit: float = 90
    ) -> Session:
        """One run of the program with this script; `given` when the memory is to have its prompt."""
        first, self.model.script, began = len(self.model.asked), list(script), time.time()
        ran = self.program.run(
            self.binary, prompt, home=self.home, project=self.project, url=self.model.url, again=again, limit=limit
        )
        self._given += [prompt] if given else []
        self._number += 1
        (self.folder / f"run-{self._number}.txt").write_text(f"{prompt}\n{ran.status} {ran.seconds:.2f}\n{ran.output}")
        return Session(ran, self.model.asked[first:], began)

    def _tool(self, tool: str, **arguments: str) -> Turn:
        path = str(self.project / "app.py")
        return Turn(tool=tool, arguments={"path": path, "name": "app.py", **arguments})

    def _greeting(self, commands: int = 1) -> tuple[Turn, ...]:
        return *[self._tool("shell", command="echo hello")] * commands, Turn("Hello.")

    def _morning(self) -> None:
        """A session that works, is gone on with, compacts and decides; and the next one, a second later."""
        self._session(
            SET,
            self._tool("shell", command="echo works"),
            self._tool("shell", command=FAILS),
            self._tool("read"),
            self._tool("edit", old="PORT = 1", new="PORT = 2"),
            Turn("The port is set."),
        )
        asked = self._session(ASK_NOTE, Turn("I see."), again=True)
        self._found("note", asked.turns[0], NOTE, "told with the message")
        if "again" not in self.row.skipped:
            self._compact()
        self._session(DECIDE, Turn(f"We decide for {KEY}."), again=True)
        time.sleep(1)
        begun = self._session(ASK_BANK, Turn("I see."))
        first = begun.turns[0]
        self._found("begin", first, KEY, "in the first request")
        times = first.count(KEY)
        self.row.checks["once"] = "" if times == 1 else f"{times} times"
        if KEY in first and HEAD not in first[: first.index(KEY)]:
            self.row.checks["begin"] = "outside of the fence"
        self._found("bank", first, BANK, "told with the message")
        self.row.costs["tokens told at the start"] = str(sum(len(block) for block in _blocks(first)) // 4)

    def _compact(self) -> None:
        more = Turn("There is more to do.", used=60_000)
        if self.program.compact:
            self._session("Go on.", more, again=True)
            self._session(self.program.compact, again=True, given=False)
        else:
            full = replace(self._tool("shell", command="echo more"), used=self.program.full)
            self._session("Go on.", full, replace(more, used=1000), again=True)
        after = self._session(ASK_NOTE, Turn("I see."), again=True)
        if SUMMARY not in after.turns[0]:
            self.row.checks["again"] = "it did not compact"
        else:
            self._found("again", after.turns[0], NOTE, "told with the message after it")

    def _noon(self) -> None:
        """Once all is observed: a file that was changed is read, and the memory itself is used."""
        took = self.memory.observed(SOON)
        self.row.checks["soon"] = "" if took is not None else f"{self.memory.sessions()['events']}"
        done = self._session(
            LOOK,
            self._tool("read"),
            self._tool("shell", command=f"cat {self.memory.space}/context.md; grep -r . {self.memory.space}/live"),
            Turn(tool="note", arguments={"content": OWN}),
            Turn("The port is two."),
        )
        if "file" not in self.row.skipped:
            before, after = _blocks(done.turns[0]), _blocks(done.turns[min(1, len(done.turns) - 1)])
            told = [block for block in after if block not in before]
            self.row.checks["file"] = "" if told else "nothing was told of app.py when it was read"

    def _evening(self) -> None:
        """The daemon stands still, and is gone."""
        most = self._bare + HOOKS * BOUND + SLACK
        self.memory.freeze()
        try:
            stuck = self._session(STUCK, *self._greeting(), given=False, limit=most + 15)
        finally:
            self.memory.thaw()
        seconds = stuck.ran.seconds
        self.row.costs["s while frozen"] = f"{seconds:.1f}"
        fine = stuck.ran.status == 0 and seconds <= most
        self.row.checks["frozen"] = "" if fine else f"status {stuck.ran.status} after {seconds:.1f} s of {most:.1f}"
        self.memory.unmount()
        gone = self._session(GONE, *self._greeting(), given=False)
        lines = [line for line in gone.ran.output.splitlines() if OFF.search(line)]
        again = [line for line in lines if line.startswith("Hook system message")]  # Gemini's second way to show one
        times = max(len(again), len(lines) - len(again))
        if "off" not in self.row.skipped:
            self.row.checks["off"] = "" if times == 1 else f"said {times} times"
        if gone.ran.status != 0:
            self.row.checks["frozen"] += f" without a mount: status {gone.ran.status}"

    # --- what came of it ------------------------------------------------------------------------------------------

    def _found(self, name: str, text: str, wanted: str, where: str) -> None:
        self.row.checks[name] = "" if wanted in text else f"not {where}"

    def _costs(self, bare: Session) -> None:
        self._bare = bare.ran.seconds
        same = self._session(HELLO, *self._greeting(MANY))
        self.memory.observed(SOON)
        now, events = self.memory.sessions(), self.memory.sessions()["events"]
        for name, before, after in zip(("to begin", "for a command"), bare.waits(), same.waits(), strict=True):
            self.row.costs[f"ms {name}"] = f"{after:.0f} ({before:.0f} without)"
        self.row.costs["observer's calls"] = str(now["calls"])
        self.row.costs["observer's tokens"] = str(now["today"]["prompt_tokens"] + now["today"]["completion_tokens"])
        self.row.costs["events"] = str(events["events"])

    def _bucket(self) -> None:
        """What was kept: by whom, what was asked, what was observed."""
        events, told = self.memory.events(), self.memory.told()
        self.row.costs["observations"] = str(len(self.memory.texts("observations/*.md")))
        known = [one for one in events if FAILED in one]
        failed = [one for one in known if 'failed="yes"' in one]
        self.row.checks["failure"] = "" if failed else "observed, and not as a failure" if known else "not observed"
        self.row.checks["words"] = "" if any(KEY in one for one in told) else "not observed"
        lines = [line for text in self.memory.texts("sessions/*/prompts.ndjson").values() for line in text.splitlines()]
        prompts = sorted(json.loads(line)["prompt"].strip().strip('"') for line in lines)
        wanted = [one for one in prompts if one not in (STUCK, GONE)]
        tagged = [one for one in prompts if TAGS.search(one)]
        right = wanted == sorted(self._given) and not tagged
        missing = sorted(set(self._given) - set(wanted))
        more = sorted(set(wanted) - set(self._given))
        self.row.checks["prompts"] = "" if right else f"{len(wanted)} of {len(self._given)}, {missing=}, {more=}"
        names = {json.loads(text)["agent"] for text in self.memory.texts("sessions/*/session.json").values()}
        self.row.checks["agent"] = "" if names == {self.program.agent} else f"named {sorted(names)}"
        self._own(told)

    def _own(self, told: list[str]) -> None:
        notes = {path: text for path, text in self.memory.texts("live/*.md").items() if OWN in text}
        if not notes:
            self.row.checks["server"] = "there is no such note"
        else:
            path = next(iter(notes))
            self.row.checks["server"] = "" if f"_{self.program.agent}_" in path else f"by another name: {path}"
        back = [name for name in (OWN, NOTE, HEAD) if any(name in one for one in told)]
        self.row.checks["own"] = f"observed: {back}" if back else "" if told else "nothing was observed"

    def _uninstall(self, before: dict[str, bytes]) -> None:
        done = self.memory.run("uninstall", self.program.name, "--yes", cwd=self.project)
        after, edited = _tree(self.project, self.program.keeps), b"PORT = 2\n"
        expected = {**before, "app.py": edited}
        left = sorted(path for path in {*after, *expected} if after.get(path) != expected.get(path))
        self.row.checks["gone"] = "" if not left and done.returncode == 0 else f"status {done.returncode}, {left[:9]}"


def _blocks(text: str) -> list[str]:
    """What stands within our fences."""
    return re.findall(rf"{re.escape(HEAD)}.*?(?:{re.escape(END)}|\Z)", text, re.DOTALL)


def _tree(root: Path, keeps: str) -> dict[str, bytes]:
    """Every file of a project with its bytes, and every directory; without what git and the program keep there."""
    paths = {str(path.relative_to(root)): path for path in sorted(root.rglob("*"))}
    kept = re.compile(rf"\.git(?!/info|ignore)|{keeps or '(?!)'}")
    return {name: path.read_bytes() if path.is_file() else b"/" for name, path in paths.items() if not kept.match(name)}
