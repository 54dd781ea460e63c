"""Where one HTTP request ends and the next begins, and what kind each is.

Owns the framing of requests: by length, in chunks, without a body. Refuses to join or alter anything: the parts, one
after the other, are the bytes that came. May be used from any thread, each `Requests` from one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Head:
    """What a request is: its verb for people, its target as sent, whether it changes anything.

    `length` is None for a chunked body; `expects`: the client waits for a word before it sends the body.
    """

    verb: str
    target: str
    writes: bool
    length: int | None
    expects: bool

    @classmethod
    def parse(cls, data: bytes) -> Head:
        """The head of a request in all its lines. Raises ValueError for what is none."""
        method, target, _ = data[: data.index(b"\r\n")].decode("latin-1").split(" ", 2)
        headers = data.lower()
        chunked = _header(headers, b"transfer-encoding") == b"chunked"
        return cls(
            verb=_verb(method, target, is_copy=_header(headers, b"x-amz-copy-source") != b""),
            target=target,
            writes=method in ("PUT", "POST", "DELETE"),
            length=None if chunked else int(_header(headers, b"content-length") or b"0"),
            expects=_header(headers, b"expect") == b"100-continue",
        )


def _header(lowered: bytes, name: bytes) -> bytes:
    """A header's value, b"" without one. Searched for, since to take all of them apart takes five times as long."""
    at = lowered.find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    at += len(name) + 3
    return lowered[at : lowered.index(b"\r\n", at)].strip()


def _verb(method: str, target: str, *, is_copy: bool) -> str:
    if method == "GET":
        path, _, query = target.partition("?")
        in_bucket = path.strip("/").count("/") > 0
        return "get" if in_bucket else "list" if "list-type=2" in query.split("&") else "other"
    if method == "PUT":
        return "copy" if is_copy else "put"
    return {"HEAD": "head", "DELETE": "delete"}.get(method, "other")


@dataclass(slots=True)
class Part:
    """A piece of a request: with its head in the first one, and a flag on the last one."""

    data: bytes
    head: Head | None = None
    last: bool = False


class Requests:
    """Takes a client's bytes as they come, gives them back cut into requests."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_left = 0
        self._chunks = ""  # "" no chunked body; "size" or "trailer": which line comes next

    def feed(self, data: bytes) -> Iterator[Part]:
        """What is complete with these bytes: heads as a whole, bodies as they come. Raises ValueError for nonsense."""
        self._buffer += data
        while self._buffer:
            part = self._body() if self._body_left else self._line() if self._chunks else self._head()
            if part is None:
                return
            yield part

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _head(self) -> Part | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        data = self._take(end + 4)
        head = Head.parse(data)
        self._body_left, self._chunks = head.length or 0, "size" if head.length is None else ""
        return Part(data, head, last=not self._body_left and not self._chunks)

    def _body(self) -> Part:
        data = self._take(self._body_left)
        self._body_left -= len(data)
        return Part(data, last=not self._body_left and not self._chunks)

    def _line(self) -> Part | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return None
        data = self._take(end + 2)
        if self._chunks == "trailer":
            self._chunks = "" if data == b"\r\n" else "trailer"
        elif size := int(data.partition(b";")[0], 16):
            self._body_left = size + 2  # the line end after the chunk is passed on with it
        else:
            self._chunks = "trailer"
        return Part(data, last=not self._chunks)
