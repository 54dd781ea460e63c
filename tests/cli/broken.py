"""Set-ups that are broken for real, for the tests of `livememfs doctor`.

A bucket in moto behind a layer that asks for the right key, forgets conditions or lives in another time; and a way to
run the doctor in a mount namespace of its own, where the machine can be broken without anybody else noticing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import moto_s3
from commandline import Ended

ROOT = Path(__file__).resolve().parents[2]
KEY, SECRET, BUCKET = "the-right-key", "the-right-secret", "memory"


@dataclass
class Layer:
    """What is wrong with the server.

    :conditions: whether it honours If-Match and If-None-Match
    :ahead:      how far its clock is ahead
    :strict:     whether it refuses requests dated otherwise, as Amazon does after a quarter of an hour
    """

    application: Callable[..., Iterable[bytes]]
    conditions: bool = True
    ahead: timedelta = timedelta()
    strict: bool = False

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if f"Credential={KEY}/" not in environ.get("HTTP_AUTHORIZATION", ""):
            return self._refuse("InvalidAccessKeyId", start_response)
        sent = datetime.strptime(environ["HTTP_X_AMZ_DATE"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if self.strict and abs(self._now() - sent) > timedelta(minutes=15):
            return self._refuse("RequestTimeTooSkewed", start_response)
        if not self.conditions:
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)

        def respond(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            kept = [(name, value) for name, value in headers if name.lower() != "date"]
            return start_response(status, [*kept, ("Date", format_datetime(self._now(), usegmt=True))], *rest)

        return self.application(environ, respond)

    def _now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def _refuse(self, code: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>told to refuse</Message></Error>".encode()]


@contextmanager
def s3(**wrong: Any) -> Iterator[str]:
    """The endpoint of a server with one bucket."""
    server = moto_s3.server(Layer(moto_s3.application(), **wrong))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def doctor_where(breaking: str, tmp_path: Path, *options: str, **settings: str) -> Ended:
    """`livememfs doctor --json` after `breaking`, lines of shell, in a mount namespace that goes with it.

    Without the right to pass over permissions, which root has, so that what may not be done cannot be.
    """
    # In this namespace, what other tests have mounted is not there.
    named = """awk '$3 == "fuse.livememfs" { print $2 }' /proc/self/mounts"""
    alone = f"""{named} | while read -r at; do umount -l "$(printf '%b' "$at")"; done"""
    # These tests run without pyfuse3 and /dev/fuse, and this machine has both unless its breaking says otherwise.
    alone += "\nmount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/fuse c 10 229"
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "pyfuse3.py").touch()
    program = 'exec setpriv --bounding-set=-dac_override,-dac_read_search,-fowner "$@"'
    command = [sys.executable, "-m", "livememfs", "doctor", "--json", *options]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": f"{tmp_path}/there:{ROOT}",
        "LC_ALL": "C.UTF-8",
        "LIVEMEMFS_EMBED_MODEL": "none",
        **{name: value for name, value in os.environ.items() if name.startswith(("XDG_", "LIVEMEMFS_"))},
        **settings,
    }
    done = subprocess.run(
        ["unshare", "--mount", "/bin/sh", "-ec", f"{alone}\n{breaking}\n{program}", "sh", *command],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
