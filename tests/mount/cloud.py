"""An S3 server for the tests, in a process of its own, and a look at its buckets from outside.

Run as a program this is the server: moto behind a small layer that counts requests and can be told to fail. Everything
else is for the tests. The server says on its standard output where it listens, and ends with whoever started it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from machine import ROOT, uploaded

CONTROL = "/_test"
KEY_ID, SECRET = "test-key", "test-secret"


# --- the server's side -------------------------------------------------------------------------------------------


class Faulty:
    """A WSGI layer: counts every request, and answers with a failure while it is told to."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self.application = application
        self.lock = threading.Lock()
        self.seen: list[str] = []
        self.status = 0
        self.share = 0.0
        self.dice = random.Random(1)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path, query = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"), environ.get("QUERY_STRING", "")
        if path.startswith(CONTROL):
            return self._control(path.removeprefix(CONTROL), query, start_response)
        with self.lock:
            self.seen.append(f"{environ['REQUEST_METHOD']} {path}{'?' + query if query else ''}")
        if self.status:
            return self._fail(self.status, "ServiceUnavailable", start_response)
        if self.dice.random() < self.share / 2:
            return self._fail(503, "ServiceUnavailable", start_response)
        if self.dice.random() < self.share / 2:  # it has its effect, and the answer is lost
            for _ in self.application(environ, lambda *_: None):
                pass
            return self._fail(500, "InternalError", start_response)
        return self.application(environ, start_response)

    def _fail(self, status: int, code: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response(f"{status} Told To Fail", [("Content-Type", "application/xml")])
        return [f"<Error><Code>{code}</Code><Message>told to fail</Message></Error>".encode()]

    def _control(self, path: str, query: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        if path == "/fail":
            self.status = int(query)
        if path == "/share":
            self.share = float(query)
        with self.lock:
            return [json.dumps(self.seen).encode()]


def serve() -> None:
    """Serve until killed."""
    import moto_s3

    server = moto_s3.server(Faulty(moto_s3.application()))
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()


# --- the tests' side ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cloud:
    """A running server."""

    endpoint: str

    def client(self) -> Any:
        """A plain boto3 client that looks at the server from outside."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def log(self) -> list[str]:
        """Every request so far, `METHOD /bucket/key?query`."""
        return json.loads(self._control("/log"))

    def requests(self) -> Counter[str]:
        """How many requests there were, by method."""
        return Counter(line.split(" ", 1)[0] for line in self.log())

    @contextmanager
    def failing(self, status: int = 503) -> Iterator[None]:
        """While this lasts every request is answered with `status`."""
        self._control(f"/fail?{status}")
        try:
            yield
        finally:
            self._control("/fail?0")

    @contextmanager
    def failing_now_and_then(self, share: float) -> Iterator[None]:
        """While this lasts this share of the requests fails, one half of them after their effect."""
        self._control(f"/share?{share}")
        try:
            yield
        finally:
            self._control("/share?0")

    def _control(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.endpoint}{CONTROL}{path}", timeout=10) as reply:
            return reply.read()


@dataclass(frozen=True)
class Bucket:
    """A bucket, seen from outside."""

    cloud: Cloud
    name: str
    client: Any

    def keys(self, prefix: str = "") -> list[str]:
        """All keys below a prefix, in order, when what was accepted has been uploaded. Beacons come and go unasked."""
        uploaded(self.name)
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        found = [item["Key"] for page in pages for item in page.get("Contents", [])]
        return [key for key in found if "/_changes/" not in key and not key.startswith("_system/leases/")]

    def get(self, key: str) -> bytes:
        """An object's bytes, when what was accepted has been uploaded."""
        uploaded(self.name)
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def text(self, key: str) -> str:
        """An object's text."""
        return self.get(key).decode()

    def meta(self, key: str) -> dict[str, str]:
        """An object's user metadata, decoded, when what was accepted has been uploaded."""
        uploaded(self.name)
        found = self.client.head_object(Bucket=self.name, Key=key)["Metadata"]
        return {name: unquote(value) for name, value in found.items()}

    def put(self, key: str, data: bytes | str, **more: Any) -> None:
        """Write an object the way a stranger would."""
        body = data.encode() if isinstance(data, str) else data
        self.client.put_object(Bucket=self.name, Key=key, Body=body, **more)

    def delete(self, key: str) -> None:
        """Remove an object the way a stranger would."""
        self.client.delete_object(Bucket=self.name, Key=key)

    def requests(self) -> Counter[str]:
        """How many requests this bucket had, by method."""
        mine = (f"/{self.name}", f"/{self.name}/")
        lines = [line.split(" ", 1) for line in self.cloud.log()]
        return Counter(method for method, path in lines if path.partition("?")[0] in mine or path.startswith(mine[1]))

    def environment(self) -> dict[str, str]:
        """What a livememfs needs to find this bucket."""
        return {
            "S3_ENDPOINT_URL": self.cloud.endpoint,
            "S3_ACCESS_KEY_ID": KEY_ID,
            "S3_SECRET_ACCESS_KEY": SECRET,
            "S3_BUCKET_NAME": self.name,
        }


@contextmanager
def running() -> Iterator[Cloud]:
    """Start a server and end it."""
    arguments = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-W", "ignore", __file__]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}"}
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        try:
            port = json.loads(server.stdout.readline())["port"]
            yield Cloud(f"http://127.0.0.1:{port}")
        finally:
            server.kill()


if __name__ == "__main__":
    serve()
