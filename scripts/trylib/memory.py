"""The memory of one program's day: a folder store, its mount, and the scripted model that observes.

Owns the mount's process, and how what it kept is read from the folder afterwards. Main thread only.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from livememfs.testing.llm import LLMRequest, ScriptedLLM
from livememfs.testing.observer import observing

SPACE = "project"


class Memory:
    """A mount on `folder/mnt` of the store `folder/store`, with `folder/home` as HOME.

    `key` is what a summary says whenever the observer was told it.
    """

    def __init__(self, command: Path, folder: Path, key: str) -> None:
        self.command, self.folder, self._key = command, folder, key
        self.mount, self.store = folder / "mnt", folder / "store"
        self.space = self.mount / SPACE
        self.model = ScriptedLLM(responder=self._observe)
        self._process: subprocess.Popen[bytes] | None = None

    def _observe(self, request: LLMRequest) -> str:
        """Each two events become an observation; what was decided is in the summary, if it was told."""
        return observing(request).replace("The login was mended", self._key if self._key in request.text else "Nothing")

    @property
    def environment(self) -> dict[str, str]:
        """What commands of livememfs are started with."""
        model = {"LLMAAS_API_URL": self.model.url, "LLMAAS_API_KEY": "none", "LLMAAS_MODEL": "scripted"}
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), **model}

    def run(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A command of livememfs, to its end."""
        return subprocess.run(
            [str(self.command), *words],
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Within this there is the mount; at its end it is away, whatever state it was in."""
        self.mount.mkdir(parents=True, exist_ok=True)
        words = [str(self.command), "mount", "--foreground", str(self.mount), "--store", str(self.store)]
        with self.model, (self.folder / "mount.log").open("wb") as log:
            self._process = subprocess.Popen(
                words, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            try:
                until(lambda: (self.mount / ".livememfs" / "status.json").exists(), 30, "the mount did not start")
                yield
            finally:
                self.thaw()
                self.unmount()
                if self._process.poll() is None:
                    self._process.kill()
                self._process.wait()
                if os.path.ismount(self.mount):
                    subprocess.run(["fusermount3", "-uz", str(self.mount)], check=False)

    def unmount(self) -> None:
        """Take the mount away, with all saved."""
        if self._process is not None and self._process.poll() is None:
            self.run("umount", str(self.mount))
            self._process.wait(30)

    def freeze(self) -> None:
        """Stop the daemon as a machine out of memory would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def sessions(self) -> dict[str, Any]:
        """What `status.json` says of captured events and of the observer."""
        status = json.loads((self.mount / ".livememfs" / "status.json").read_text())
        return dict(status["sessions"])

    def observed(self, seconds: float) -> float | None:
        """Wait until no event waits any more, at most so many seconds; how many it took, None for too many."""
        began = time.monotonic()
        try:
            until(lambda: self.sessions()["events"]["waiting"] == 0, seconds, "events are not observed")
        except TimeoutError:
            return None
        return time.monotonic() - began

    # --- what was kept, read from the folder ---------------------------------------------------------------------

    def texts(self, pattern: str) -> dict[str, str]:
        """The files of the space that fit a pattern, by path."""
        root = self.store / SPACE
        return {str(path.relative_to(root)): path.read_text(errors="replace") for path in sorted(root.glob(pattern))}

    def told(self) -> list[str]:
        """What the observer was sent, by request."""
        return [request.text for request in self.model.requests]

    def events(self) -> list[str]:
        """Each event as the observer was sent it."""
        return [event for text in self.told() for event in re.findall(r"<event number.*?</event>", text, re.DOTALL)]


def until(ready: Any, seconds: float, otherwise: str) -> None:
    """Wait until something is so; TimeoutError otherwise."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(0.1)
