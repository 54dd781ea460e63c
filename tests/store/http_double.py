"""An HTTP server on the loopback that answers as it is told: for what moto never does."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Semaphore, Thread
from typing import Literal, Self

from livememfs.store.s3 import S3Options

ETAG = "900150983cd24fb0d6963f7d28e17f72"
LISTING = b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated></ListBucketResult>'
COPIED = f'<CopyObjectResult><ETag>"{ETAG}"</ETag></CopyObjectResult>'.encode()


@dataclass(frozen=True)
class Reply:
    """`promised`: a Content-Length that is not the truth. `raw`: the bytes that go over the wire, instead of all else.

    `silent`: no reply at all, until the server stops. `hang_up`: no reply, the connection is closed. `unread`: it comes
    before the request's body was read. `then`: the connection is closed as announced, kept, or closed by surprise.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    promised: int | None = None
    raw: bytes | None = None
    silent: bool = False
    hang_up: bool = False
    unread: bool = False
    then: Literal["close", "keep", "drop"] = "close"


@dataclass(frozen=True)
class Sent:
    """A request as it arrived, and the client's port: the same one means the same connection."""

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    port: int


def error(status: int, code: str, **headers: str) -> Reply:
    """An S3 error."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>said {code}</Message></Error>"
    return Reply(status, body.encode(), {name.replace("_", "-"): value for name, value in headers.items()})


class _Server(ThreadingHTTPServer):
    """Tells when a connection is closed. That a client hangs up, or refuses the certificate, is no error here."""

    closed: Semaphore

    def close_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        super().close_request(request)
        self.closed.release()

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class S3Double:
    """Scripted replies first, then plausible ones, which keep the connection if `kept`. Speaks TLS with a context."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, kept: bool = False) -> None:
        self.replies: deque[Reply] = deque()
        self.sent: list[Sent] = []
        self.asked, self.stopping = Event(), Event()
        self.kept = kept
        self.closed = Semaphore(0)
        self._scheme = "https" if tls else "http"
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.closed = self.closed
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_port

    def options(self, **changes: object) -> S3Options:
        plain = {
            "bucket": "some-bucket",
            "endpoint_url": f"{self._scheme}://127.0.0.1:{self.port}",
            "access_key_id": "test",
            "secret_access_key": "not-a-real-secret",
            "connect_timeout": 2.0,
            "read_timeout": 5.0,
        }
        return S3Options(**(plain | changes))

    def reply_to(self, sent: Sent) -> Reply:
        self.sent.append(sent)
        self.asked.set()
        if self.replies:
            return self.replies.popleft()
        return replace(_plausible(sent), then="keep" if self.kept else "close")


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
            is_read = not (double.replies and double.replies[0].unread)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) if is_read else b""
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = double.reply_to(Sent(self.command, self.path, headers, body, self.client_address[1]))
            self.close_connection = reply.then != "keep" or reply.silent or reply.hang_up
            if reply.silent:
                double.stopping.wait()
            elif reply.raw is not None:
                self.wfile.write(reply.raw)
            elif not reply.hang_up:
                self._answer(reply)

        def _answer(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) if reply.promised is None else reply.promised))
            if reply.then == "close":
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    for verb in ("GET", "HEAD", "PUT", "DELETE", "POST", "CONNECT"):
        setattr(Handler, f"do_{verb}", Handler._serve)
    return Handler
