"""Play the `console` blocks of documents as they are written, in a home of their own, and compare what is printed.

A block has commands behind `$ `, which go on behind `> `, each followed by what it prints. All blocks of a document are
typed into one shell. A comment `<!-- console` is a block that readers do not see: it makes what the document takes for
granted. `...` in a line stands for anything in it, and a line of `...` for any lines; times, dates, ids, durations and
scores need not be the same. The fresh home appears as `/home/ada`, which is what documents call it.

Only the standard library is used: the machine has nothing else yet.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = "/home/ada"
BLOCK = re.compile(r"^(?:```|<!-- )console\n(.*?)^(?:```|-->)$", re.DOTALL | re.MULTILINE)
MARK = "--- played, and ended with"
SECONDS = 300
KEPT = ("LANG", "TERM", "TZ", "PYTHON", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "UV_INDEX_URL", "SSL_CERT_FILE")
"""What the fresh home keeps of the environment, beside what `--env` gives."""
VARYING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?|\b\d{8}T\d{6}(?![0-9])"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds?)\b"), "<duration>"),
    (re.compile(r"(?<![0-9A-Za-z])(?=[a-f0-9]*\d)[a-f0-9]{8,40}(?![0-9A-Za-z])"), "<id>"),
    (re.compile(r"\bscore \d\.\d+|~[\d,]+ tokens\b"), "<number>"),
)


@dataclass(frozen=True)
class Step:
    """A command of a document, its line there, and what it prints there."""

    line: int
    command: str
    printed: str


@dataclass(frozen=True)
class Difference:
    """A step that ended otherwise than the document says."""

    step: Step
    printed: str
    status: int


def steps(text: str) -> Iterator[Step]:
    """The steps of a document, in order."""
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1)) + 1
        lines = block[1].splitlines()
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            after = start + 1
            while after < end and lines[after].startswith("> "):
                after += 1
            command = "\n".join(line[2:] for line in lines[start:after])
            yield Step(first + start, command, "\n".join(lines[after:end]))


def fits(expected: str, printed: str) -> bool:
    """Whether what was printed is what a document says."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else "[^\n]*".join(map(re.escape, line.rstrip().split("..."))) + r"\n"
        for line in _same(expected).strip("\n").splitlines()
    )
    plain = "".join(f"{line.rstrip()}\n" for line in _same(printed).strip("\n").splitlines())
    return re.fullmatch(pattern, plain) is not None


def _same(text: str) -> str:
    for pattern, mark in VARYING:
        text = pattern.sub(mark, text)
    return text


class Shell:
    """A shell in a home of its own, into which commands are typed one after the other."""

    def __init__(self, home: Path, environment: dict[str, str], folder: Path) -> None:
        self._home = home
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=environment, cwd=folder, bufsize=1,
        )  # fmt: skip

    def type(self, command: str) -> tuple[str, int]:
        """What a command prints, with the home as documents call it, and its status."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        own = command.replace(HOME, str(self._home))
        self._shell.stdin.write(f"{own}\nprintf '\\n%s %s\\n' '{MARK}' \"$?\"\n")
        printed: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(MARK):
                return "".join(printed).replace(str(self._home), HOME), int(line.rpartition(" ")[2])
            printed.append(line)
        raise SystemExit(f"the shell ended in: {command}")

    def end(self) -> None:
        """Leave the shell."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait(SECONDS)


def play(document: Path, home: Path, environment: dict[str, str], folder: Path, *, loud: bool) -> list[Difference]:
    """Type a document into a shell. Nothing is typed after the first difference, since steps build on one another."""
    shell = Shell(home, environment, folder)
    try:
        for step in steps(document.read_text()):
            printed, status = shell.type(step.command)
            if loud:
                print(f"$ {step.command}\n{printed.rstrip()}", flush=True)
            if not fits(step.printed, printed) or status:
                return [Difference(step, printed, status)]
    finally:
        shell.end()
    return []


def environment_of(home: Path, path: str, given: Sequence[str]) -> dict[str, str]:
    """The environment of somebody who has nothing of ours yet."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = dict(pair.split("=", 1) for pair in given)
    runtime = home / ".run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    usual = {"HOME": str(home), "USER": "ada", "PATH": path, "COLUMNS": "100", "XDG_RUNTIME_DIR": str(runtime)}
    return {**kept, **usual, **own}


def unmount_below(home: Path) -> None:
    """Let go of what a document left mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        where = line.split()[1]
        if Path(where).is_relative_to(home):
            subprocess.run(["fusermount3", "-uz", where], check=False)


def main() -> int:
    """0 when each document prints what it says."""
    parser = argparse.ArgumentParser(prog="scripts/docs play", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="given to the shell")
    parser.add_argument("--path", default="", help="put before the usual PATH")
    parser.add_argument("--folder", type=Path, help="where the shell begins; by default its home")
    parser.add_argument("--verbose", action="store_true", help="show what is typed and printed")
    given = parser.parse_args()
    wrong = 0
    for document in given.documents:
        with tempfile.TemporaryDirectory(prefix="livememfs-home.", ignore_cleanup_errors=True) as room:
            home = Path(room)
            path = ":".join(filter(None, (given.path, str(home / ".local/bin"), "/usr/bin:/bin:/usr/sbin:/sbin")))
            environment = environment_of(home, path, given.env)
            try:
                found = play(document.resolve(), home, environment, given.folder or home, loud=given.verbose)
            finally:
                unmount_below(home)
        for each in found:
            wrong += 1
            print(f"{document}:{each.step.line}: $ {each.step.command}\nexpected:\n{each.step.printed}")
            print(f"printed, with status {each.status}:\n{each.printed}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
