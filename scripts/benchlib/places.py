"""Where it is measured: a plain folder, a mount of ours that is made and made again, a mount that somebody else made.

Owns the daemon, and what is written below a place. Refuses to remount what it did not mount. A place is entered before
use; whatever it started or made is gone when it is left. Main thread only.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Protocol, Self

from benchlib import seed
from benchlib.servers import BUCKET, TIED, Proxy, Server, client_of
from benchlib.workloads import Sizes

READY_WITHIN = 60.0
STOPPED_WITHIN = 90.0
SETTLED = ".livememfs/journal.wait"
"""Reading it takes until all that was written is in the bucket. Without it, it is there at the end of each close."""


class Place(Protocol):
    """A directory with spaces in it.

    :label:      what the table calls it
    :can_be_cold: whether `refresh` makes it forget what it knows
    """

    label: str
    can_be_cold: bool

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def refresh(self) -> None:
        """Forget whatever was read before, as far as that can be had."""
        ...

    def leave(self) -> None:
        """It is another place's turn: keep still until the next `refresh`."""
        ...

    def space(self, kind: str, name: str) -> Path:
        """The seeded space of that kind, or a new one of that name for the kind `new`."""
        ...

    def settle(self) -> Counter[str] | None:
        """Wait until all is stored; the requests since the last time, None where they cannot be counted."""
        ...


class Folder:
    """A directory that is used as it is: on the local disk, or below somebody's mount.

    On a local disk "cold" is what it always is there: the kernel keeps what was just written.
    """

    def __init__(self, label: str, above: Path, sizes: Sizes, *, can_be_cold: bool = False) -> None:
        self.label, self.can_be_cold = label, can_be_cold
        self._root = above / f"bench-{os.getpid()}"
        self._sizes = sizes

    def __enter__(self) -> Self:
        self._root.mkdir()
        seed.fill_folder(self._root, self._sizes)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def refresh(self) -> None:
        """See Place."""

    def leave(self) -> None:
        """See Place."""

    def space(self, kind: str, name: str) -> Path:
        """See Place."""
        if kind != "new":
            return self._root / seed.SPACES[kind]
        (self._root / name / "live").mkdir(parents=True, exist_ok=True)
        return self._root / name

    def settle(self) -> Counter[str] | None:
        """See Place."""
        return None


class OurMount:
    """livememfs on a bucket that is seeded already, each time with an empty cache; through a proxy, if there is one.

    `host` is the machine it stands for.
    """

    can_be_cold = True

    def __init__(self, server: Server, proxy: Proxy | None, latency: float, home: Path, host: str = "bench") -> None:
        self._host = host
        self.label = f"livememfs, {latency * 1000:.0f} ms"
        self._server, self._proxy, self._latency = server, proxy, latency
        self._home = home / f"latency-{latency}"
        self._mounts = 0
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def path(self) -> Path:
        """The mount point; the current one, after each `refresh` another."""
        return self._home / f"mnt-{self._mounts}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, Exception) and self._daemon is not None:
            print(f"bench: {self.label}: the daemon's last words:\n{self._last_words()}", file=sys.stderr)
        self.leave()

    def refresh(self) -> None:
        """See Place. A new daemon, with nothing from the one before but the bucket."""
        self.leave()
        if self._proxy is not None:
            self._proxy.set_latency(self._latency)
        self._mounts += 1
        self.path.mkdir(parents=True)
        reader, writer = os.pipe()
        command = [
            sys.executable,
            "-m",
            "livememfs",
            "mount",
            "--foreground",
            "--ready-fd",
            str(writer),
            str(self.path),
        ]
        with self._log.open("wb") as log:
            self._daemon = subprocess.Popen(
                [*TIED, *command],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(writer,),
                start_new_session=True,
                cwd="/",
            )
        os.close(writer)
        with os.fdopen(reader, "rb") as answer:
            said = answer.readline() if select.select([answer], [], [], READY_WITHIN)[0] else b""
        if json.loads(said or "{}").get("state") != "ready":
            raise RuntimeError(f"no mount: {said.decode()}")
        if self._proxy is not None:
            self._proxy.take_counts()

    def list_pages(self, folder: str, count: int) -> float:
        """Seconds that boto3 takes for the LIST pages of a seeded folder of `count` files, from where the mount asks.

        Without what opening a connection takes. AssertionError when it finds fewer.
        """
        client = client_of(self._proxy.port if self._proxy is not None else self._server.port)
        client.head_bucket(Bucket=BUCKET)
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{folder}/", Delimiter="/")
        started = time.perf_counter()
        found = sum(len(page["Contents"]) for page in pages)
        seconds = time.perf_counter() - started
        if found < count:
            raise AssertionError(f"{found} of {count} objects in {folder}")
        return seconds

    def figures(self) -> dict[str, Any]:
        """The statistics that the daemon shows."""
        found: dict[str, Any] = json.loads((self.path / ".livememfs/status.json").read_text())["statistics"]
        return found

    def rss_mb(self) -> float:
        """Memory of the daemon."""
        assert self._daemon is not None
        status = Path(f"/proc/{self._daemon.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def cpu_seconds(self) -> float:
        """Processor time that the daemon has had."""
        assert self._daemon is not None
        fields = Path(f"/proc/{self._daemon.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def _log(self) -> Path:
        return self._home / f"log-{self._mounts}"

    def _last_words(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])

    def _environment(self) -> dict[str, str]:
        """Made from nothing, but for where Python finds the code: no settings of this machine, no former cache."""
        kinds = ("config", "data", "state", "cache")
        inherited = {name: os.environ[name] for name in ("PYTHONPATH", "PATH", "TMPDIR") if name in os.environ}
        own = {f"XDG_{kind.upper()}_HOME": str(self._home / f"home-{self._mounts}" / kind) for kind in kinds}
        fixed = {"HOME": str(self._home), "LC_ALL": "C.UTF-8", "LIVEMEMFS_AGENT": "bench", "LIVEMEMFS_HOST": self._host}
        return {**inherited, **own, **fixed, **self._server.environment(self._proxy.port if self._proxy else None)}

    def space(self, kind: str, name: str) -> Path:
        """See Place."""
        if self._daemon is None:
            self.refresh()
        if kind != "new":
            return self.path / seed.SPACES[kind]
        (self.path / name).mkdir(exist_ok=True)
        return self.path / name

    def settle(self) -> Counter[str] | None:
        """See Place."""
        if (self.path / SETTLED).exists():
            (self.path / SETTLED).read_bytes()
        return Counter(self._proxy.take_counts()) if self._proxy is not None else None

    def leave(self) -> None:
        """See Place. Unmount and wait for the daemon; if it does not end, end it and let go of the mount."""
        if self._daemon is None:
            return
        daemon, self._daemon = self._daemon, None
        if self._proxy is not None:
            self._proxy.set_latency(0)
        try:
            if _unmounted(self.path):
                daemon.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            print(f"bench: the daemon of {self.path} did not end", file=sys.stderr)
        finally:
            daemon.kill()
            daemon.wait()
            if os.path.ismount(self.path):
                subprocess.run(["fusermount3", "-uz", self.path], check=False)


def _unmounted(path: Path) -> bool:
    """Unmount. The kernel lets go of the last file a moment after it was closed, so this is tried for a while."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if subprocess.run(["fusermount3", "-u", path], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return True
        time.sleep(0.05)
    return False
