"""`livememfs demo`: the life of a memory in a few seconds, in a temporary directory, without any set-up.

Owns the script and the check after each step: the demo fails at a wrong result. Every step is a plain shell command and
is shown. Uses neither the network nor the machine's own configuration, and leaves no files. Main thread only.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from livememfs.cli import output
from livememfs.cli.common import Choice, command
from livememfs.cli.mounting import mounts
from livememfs.environment import environment
from livememfs.errors import LiveMemError

STEP_TIMEOUT = 60.0
FOREIGN = ("S3_", "AWS_", "LLMAAS_", "OPENAI_", "CONSOLIDATION_", "LIVEMEMFS_", "XDG_")
"""Variables of the machine's own configuration; the demo does not pass them on."""

DECISION = "We keep notes in S3 because every machine can reach it."


@command
def demo(choice: Choice) -> None:  # noqa: ARG001 - the demo always uses its own store
    """Show notes, consolidation, observing and the bucket, in a temporary directory.

    livememfs demo
    """
    with tempfile.TemporaryDirectory(prefix="livememfs-demo-") as name:
        root = Path(name).resolve()
        (root / "memory").mkdir()
        _install(root / "bin" / "livememfs")
        stage = Stage(root, _environment(root))
        with stage.unmounted_at_the_end():
            _mount(stage)
            _write(stage)
            _consolidate(stage)
            _observe(stage)
            _unmount(stage)
    output.say("", "That was all of it. Mount your own with: livememfs mount DIRECTORY")


def _install(path: Path) -> None:
    """Write a `livememfs` command that starts this same installation; it may be missing on PATH."""
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m livememfs "$@"\n')
    path.chmod(0o755)


def _environment(root: Path) -> dict[str, str]:
    """The environment of every step: the machine's, without settings, with temporary directories."""
    kept = {name: value for name, value in environment().items() if not name.startswith(FOREIGN)}
    return kept | {
        "PATH": f"{root / 'bin'}:{kept.get('PATH', '/usr/bin:/bin')}",
        "XDG_CONFIG_HOME": str(root / "config"),
        "XDG_CACHE_HOME": str(root / "cache"),
        "XDG_STATE_HOME": str(root / "state"),
        "XDG_DATA_HOME": str(root / "data"),
        "LIVEMEMFS_STORE": str(root / "store"),
        "LIVEMEMFS_AGENT": "demo",
    }


# --- the script --------------------------------------------------------------------------------------------------


def _mount(stage: Stage) -> None:
    stage.explain("A folder stands in for the bucket. Mount it, and make a space with mkdir.")
    stage.run("livememfs mount memory")
    stage.run("mkdir memory/project")
    stage.run("ls -A memory/project", shows=["README.md", "live", "bank", ".consolidate"])


def _write(stage: Stage) -> None:
    stage.explain("Remembering is writing a file. The first word of its name is its category.")
    stage.run(f"echo '{DECISION}' > memory/project/live/decision-storage.md")
    stage.run("echo 'Write the release notes.' > memory/project/live/todo-release.md")
    stage.run("printf '%s\\n' 'Listing is slow' 'with 10000 notes.' > memory/project/live/issue-listing.md")
    stage.explain("Each became a note with its own name and front matter; the name you wrote keeps working.")
    stage.run("ls memory/project/live", shows=["_demo_decision_", "_demo_todo_", "_demo_issue_"])
    stage.run("cat memory/project/live/decision-storage.md", shows=['category: "decision"', 'agent: "demo"', DECISION])
    stage.run("echo 'And it is cheap.' >> memory/project/live/decision-storage.md")
    stage.run("ls memory/project/live | wc -l", shows=["3"])


def _consolidate(stage: Stage) -> None:
    stage.explain("Touch a file and the notes are folded into the bank. Without a model they are filed as they are.")
    stage.run("touch memory/project/.consolidate")
    stage.run("cat memory/project/.consolidate.wait", shows=['"state": "ok"', '"model": "builtin"'])
    stage.run("ls memory/project/live | wc -l", shows=["0"])
    stage.run("ls memory/project/bank", shows=[".md"])
    stage.run("grep -rhF 'keep notes in S3' memory/project/bank", shows=[DECISION])
    stage.explain("The bank is read-only, and a refusal says why.")
    stage.run("echo scribble > memory/project/bank/progress.md", fails=True)
    stage.run("tail -n 1 memory/.livememfs/errors.ndjson", shows=["EROFS", "bank/progress.md"])


def _observe(stage: Stage) -> None:
    stage.explain("An agent's hooks write what it does into .hooks/; here are two of them, by hand.")
    used = '{"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "git commit -m \\"Retry uploads\\""}}'
    stage.run(f"printf '%s' '{used}' > memory/project/.hooks/PostToolUse")
    stage.run("""printf '%s' '{"session_id": "s1"}' > memory/project/.hooks/Stop""")
    stage.explain("What it did becomes observations and a summary, and the next agent begins with them.")
    stage.run("until [ -e memory/project/sessions/s1/summary.md ]; do sleep 0.2; done")
    stage.run("cat memory/project/context.md", shows=["Last session", "Committed: Retry uploads"])
    stage.run("ls memory/project/observations", shows=["_change_"])


def _unmount(stage: Stage) -> None:
    stage.run("livememfs status memory | head -n 8", shows=["mounted"])
    stage.explain("After unmounting, everything is in the store, as plain files.")
    stage.run("livememfs umount memory")
    stage.run("ls -A memory | wc -l", shows=["0"])
    stage.run("ls -A store/project", shows=["_meta.json", "_rules.md", "_synthesis.md"])


# --- the stage ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """The directory and the environment of the steps."""

    root: Path
    environment: dict[str, str]

    def explain(self, text: str) -> None:
        """Print a sentence before the next steps."""
        output.say("", f"# {text}")

    def run(self, line: str, *, shows: Sequence[str] = (), fails: bool = False) -> None:
        """Run one shell command, show it, and check its output and status. LiveMemError."""
        output.say(f"$ {line}")
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", line],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=STEP_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LiveMemError(f"the demo failed: `{line}` did not end within {STEP_TIMEOUT:g} seconds") from None
        text = done.stdout.decode("utf-8", "replace")
        output.say(*(f"  {row}" for row in text.splitlines()))
        if fails != (done.returncode != 0):
            raise LiveMemError(f"the demo failed: `{line}` ended with status {done.returncode}")
        missing = [wanted for wanted in shows if wanted not in text]
        if missing:
            raise LiveMemError(f"the demo failed: `{line}` should have shown {', '.join(missing)}")

    @contextmanager
    def unmounted_at_the_end(self) -> Iterator[None]:
        """Unmount at the end, also after a failure."""
        from livememfs.fuse.mountpoint import unmount

        try:
            yield
        finally:
            path = self.root / "memory"
            if str(path) in mounts.kernel_mounts():
                unmount(path, lazy=True)
