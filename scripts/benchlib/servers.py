"""The other side: an S3 server on this machine, and the proxy before it that adds latency and counts.

Owns their processes and what they leave behind. Refuses to use a server that somebody else runs. Everything started is
ended when its `with` block is left, and with this process if that is killed. Main thread only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from benchlib.ports import free_ports

KEY_ID, SECRET, BUCKET = "bench", "bench-secret", "bench"
READY_WITHIN = 60.0
TESTS = Path(__file__).resolve().parents[2] / "tests"
TIED = ["setpriv", "--pdeathsig", "KILL", "--"]
"""Before a command: the kernel ends it with this process."""


@dataclass(frozen=True)
class Server:
    """An S3 server with an empty bucket."""

    name: str
    port: int

    def environment(self, port: int | None = None) -> dict[str, str]:
        """What a livememfs needs to use the bucket, by way of `port` if given."""
        return {
            "S3_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "S3_ACCESS_KEY_ID": KEY_ID,
            "S3_SECRET_ACCESS_KEY": SECRET,
            "S3_BUCKET_NAME": BUCKET,
        }


def _started(command: Sequence[str | Path], output: IO[bytes] | int, **environment: str) -> subprocess.Popen[bytes]:
    """A process that Ctrl-C is not for: it is ended in its turn."""
    error = None if output == subprocess.PIPE else output
    environ = {**os.environ, **environment}
    return subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=error, start_new_session=True
    )


@contextmanager
def ended(process: subprocess.Popen[bytes], *, patience: float = 5.0) -> Iterator[None]:
    """End a process when the block is left: politely, then not."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# --- S3 servers ------------------------------------------------------------------------------------------------------


@contextmanager
def s3_server(kind: str, home: Path) -> Iterator[Server]:
    """A running server: `seaweedfs` or `moto`."""
    with _seaweedfs(home) if kind == "seaweedfs" else _moto() as server:
        _make_bucket(server)
        yield server


@contextmanager
def _seaweedfs(home: Path) -> Iterator[Server]:
    """All of SeaweedFS in one process. It makes sockets in /tmp, by the names of its ports, and leaves them there."""
    weed = Path(sys.executable).with_name("weed")
    names = ("master", "volume", "filer", "s3")
    ports = dict(zip([*names, *(f"{name}.grpc" for name in names)], free_ports(2 * len(names)), strict=True))
    (home / "data").mkdir()
    identity = {"name": "bench", "credentials": [{"accessKey": KEY_ID, "secretKey": SECRET}], "actions": ["Admin"]}
    (home / "s3.json").write_text(json.dumps({"identities": [identity]}))
    options = ["-filer", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={home}/data", "-volume.max=0"]
    options += [f"-{name}.port={ports[name]}" for name in names]
    options += [f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names]
    options += [f"-s3.config={home}/s3.json", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    words = subprocess.run([weed, "version"], capture_output=True, text=True, check=True).stdout.split()
    with (home / "server.log").open("wb") as log:
        process = _started([*TIED, weed, "-logtostderr=true", "server", *options], log, TMPDIR=str(home))
    try:
        with ended(process, patience=2.0):
            yield Server(f"SeaweedFS {words[2]}", ports["s3"])
    finally:
        for port in ports.values():
            for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                path.unlink(missing_ok=True)


@contextmanager
def _moto() -> Iterator[Server]:
    process = _started([*TIED, sys.executable, "-W", "ignore", TESTS / "moto_s3.py"], subprocess.PIPE)
    with ended(process):
        assert process.stdout is not None
        with process.stdout:
            yield Server(f"moto {version('moto')}", json.loads(process.stdout.readline())["port"])


def client_of(port: int) -> Any:
    """boto3's client of the server, or of the proxy, at a port."""
    where: dict[str, Any] = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
    return boto3.client("s3", aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET, **where)


def _make_bucket(server: Server) -> None:
    """Wait until the server serves, which is when it makes the bucket. Raises RuntimeError when it does not."""
    client = client_of(server.port)
    deadline = time.monotonic() + READY_WITHIN
    while True:
        try:
            client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="probe", Body=b"x")
            client.delete_object(Bucket=BUCKET, Key="probe")
            return
        except (BotoCoreError, ClientError) as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{server.name} does not serve: {error}") from error
            time.sleep(0.2)


# --- the proxy -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proxy:
    """A `tests/proxy` in a process of its own."""

    port: int
    control: int

    def set_latency(self, seconds: float) -> None:
        """Add so much to each request from now on."""
        self._order(f"/latency?seconds={seconds}")

    def take_counts(self) -> dict[str, int]:
        """Requests by verb since this was last asked."""
        return dict(self._order("/reset"))

    def traffic(self) -> dict[str, int]:
        """Bytes to the server (`sent`) and from it (`received`) since the proxy began."""
        return dict(self._order("/traffic", "GET"))

    def log(self) -> list[tuple[str, str]]:
        """(verb, target) of each request since `take_counts` was last asked; only of a proxy with a log."""
        return [(str(verb), str(target)) for verb, target in self._order("/log", "GET")]

    def _order(self, what: str, method: str = "POST") -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.control}{what}", method=method)
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)


@contextmanager
def proxy_to(server: Server, *, log: bool = False) -> Iterator[Proxy]:
    """A running proxy before `server`. `log`: one that remembers each request until its counts are taken."""
    command = [sys.executable, TESTS / "proxy", "--target", f"127.0.0.1:{server.port}", "--control"]
    command += ["--log"] * log
    process = _started([*TIED, *command], subprocess.PIPE)
    with ended(process):
        assert process.stdout is not None
        with process.stdout:
            yield Proxy(**json.loads(process.stdout.readline()))
