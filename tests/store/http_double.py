"""An HTTP server on the loopback that answers as it is told: for what moto never does."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Self

from livememfs.store.s3 import S3Options

ETAG = "900150983cd24fb0d6963f7d28e17f72"
LISTING = b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated></ListBucketResult>'
COPIED = f'<CopyObjectResult><ETag>"{ETAG}"</ETag></CopyObjectResult>'.encode()


@dataclass(frozen=True)
class Reply:
    """`promised`: a Content-Length that is not the truth. `silent`: no reply at all, until the server stops."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    promised: int | None = None
    silent: bool = False


@dataclass(frozen=True)
class Sent:
    """A request as it arrived."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes


def error(status: int, code: str, **headers: str) -> Reply:
    """An S3 error."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>said {code}</Message></Error>"
    return Reply(status, body.encode(), {name.replace("_", "-"): value for name, value in headers.items()})


class S3Double:
    """Scripted replies first, then plausible ones."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.sent: list[Sent] = []
        self.stopping = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def options(self, **changes: object) -> S3Options:
        plain = {
            "bucket": "some-bucket",
            "endpoint_url": f"http://127.0.0.1:{self._server.server_port}",
            "access_key_id": "test",
            "secret_access_key": "not-a-real-secret",
            "connect_timeout": 2.0,
            "read_timeout": 5.0,
        }
        return S3Options(**(plain | changes))

    def reply_to(self, sent: Sent) -> Reply:
        self.sent.append(sent)
        return self.replies.popleft() if self.replies else _plausible(sent)


def _plausible(sent: Sent) -> Reply:
    found = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 20 Feb 2026 14:00:00 GMT"}
    if sent.verb == "GET" and "list-type=2" in sent.path:
        return Reply(200, LISTING)
    if sent.verb == "PUT" and "x-amz-copy-source" in sent.headers:
        return Reply(200, COPIED)
    return {"GET": Reply(200, b"abc", found), "HEAD": Reply(200, b"abc", found), "DELETE": Reply(204)}.get(
        sent.verb, Reply(200, b"", found)
    )


def _handler(double: S3Double) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = double.reply_to(Sent(self.command, self.path, headers, body))
            if reply.silent:
                double.stopping.wait()
                self.close_connection = True
                return
            self._answer(reply)

        def _answer(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) if reply.promised is None else reply.promised))
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    for verb in ("GET", "HEAD", "PUT", "DELETE", "POST"):
        setattr(Handler, f"do_{verb}", Handler._serve)
    return Handler
