"""One connection through the proxy: requests are held back, counted and spoiled on their way, replies seldom looked at.

Owns the two connections and what is between them. Refuses to know more of a reply than its status. Everything here is
called by the proxy's loop, except that the fields of `Rules` may be set from any thread.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from proxy.requests import Head, Part, Requests

MAX_HELD = 1024 * 1024
"""Bytes of a request that are kept while it is held back, before its sender has to wait."""

SLOW_DOWN = b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>SlowDown</Code><Message>told to</Message></Error>"


@dataclass
class Rules:
    """What is done to the connections, which there are, and how many bytes went to the server and to clients."""

    note: Callable[[Head], None]
    connect: Callable[[asyncio.Protocol], Awaitable[None]]
    latency: float = 0.0
    blackhole: bool = False
    replies_to_lose: int = 0
    refuse: tuple[float, str, random.Random] = (0.0, "before", random.Random(0))
    relays: set[Relay] = field(default_factory=set)
    sent: int = 0
    received: int = 0

    def refusal(self) -> str:
        """When the next request is answered with SlowDown: `before`, `after`, or "" for never."""
        fraction, when, dice = self.refuse
        return when if fraction and dice.random() < fraction else ""


class Relay(asyncio.Protocol):
    """The client's side of a connection; the server's side is its `_Upstream`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.closed = asyncio.Event()
        self._requests = Requests()
        self._parts: deque[Part] = deque()
        self._held = 0  # bytes in _parts
        self._timer: asyncio.TimerHandle | None = None
        self._waited = False  # the first part has had its latency
        self._refusal = ""
        self._inspect = False  # the coming reply may have to be spoiled
        self._head: Head | None = None
        self._reply = b""
        self._client: asyncio.Transport | None = None
        self._server: asyncio.Transport | None = None
        self._server_gone = False
        self._client_full = self._server_full = False  # who reads too slowly for what is sent to him
        self._connecting: asyncio.Task[None] | None = None

    # --- the client -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is here; the server is asked in at once."""
        assert isinstance(transport, asyncio.Transport)
        self._client = transport
        self._rules.relays.add(self)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._rules.connect(_Upstream(self))
        except OSError:
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of requests."""
        try:
            for part in self._requests.feed(data):
                if part.head:
                    self._rules.note(part.head)
                self._parts.append(part)
                self._held += len(part.data)
        except ValueError:
            self.abort()
            return
        self._pump()

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone: what it asked for and was not passed on is dropped."""
        self._parts.clear()
        self._rules.relays.discard(self)
        self.closed.set()
        if self._timer:
            self._timer.cancel()
        if self._connecting:
            self._connecting.cancel()
        if self._server:
            self._server.close()

    def pause_writing(self) -> None:
        """The client reads slowly, so we do too."""
        self._client_full = True
        self._balance()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._client_full = False
        self._balance()

    def server_full(self, full: bool) -> None:
        """The server reads slowly, so the client has to wait; or it has caught up."""
        self._server_full = full
        self._balance()

    def _balance(self) -> None:
        """Read from each side only what there is room for."""
        if self._client:
            self._read(self._client, not self._server_full and self._held <= MAX_HELD)
        if self._server:
            self._read(self._server, not self._client_full and not self._rules.blackhole)

    @staticmethod
    def _read(transport: asyncio.Transport, on: bool) -> None:
        if on != transport.is_reading():
            (transport.resume_reading if on else transport.pause_reading)()

    def abort(self) -> None:
        """End both connections now."""
        if self._client:
            self._client.abort()
        if self._server:
            self._server.abort()

    # --- requests, on their way to the server -----------------------------------------------------------------

    def go_on(self) -> None:
        """Take up whatever was held back, if nothing holds it back any more."""
        self._pump()
        if self._reply and not self._rules.blackhole:
            self.replied(b"")
        self._balance()
        if self._server_gone:
            self.server_lost()

    def _pump(self) -> None:
        out = []  # sent in one piece: a second send would cost as much as all the rest
        while self._parts and self._server and not self._timer and not self._rules.blackhole:
            part = self._parts[0]
            if part.head and not self._waited:
                self._waited = True
                if self._rules.latency > 0:
                    self._timer = asyncio.get_running_loop().call_later(self._rules.latency, self._time_is_up)
                    break
            self._waited = False
            self._parts.popleft()
            self._held -= len(part.data)
            if self._passes(part):
                out.append(part.data)
        if out and self._server:
            data = b"".join(out)
            self._rules.sent += len(data)
            self._server.write(data)
        self._balance()

    def _time_is_up(self) -> None:
        self._timer = None
        self._pump()

    def _passes(self, part: Part) -> bool:
        """Whether the server gets to see this. If not, the client gets its answer here."""
        if part.head:
            self._head = part.head
            self._refusal = self._rules.refusal()
            self._inspect = self._refusal == "after" or (self._rules.replies_to_lose > 0 and part.head.writes)
        if self._refusal != "before":
            return True
        if part.head and part.head.expects:
            self._slow_down(close=True)  # the body, which the client then keeps to itself, is never read
        elif part.last:
            self._slow_down()
        return False

    # --- replies, on their way to the client ------------------------------------------------------------------

    def server_made(self, transport: asyncio.Transport) -> None:
        """The server has let us in."""
        self._server = transport
        if self._client is None or self._client.is_closing():
            transport.abort()
        self._pump()

    def replied(self, data: bytes) -> None:
        """Bytes of a reply. Those that may have to be spoiled are held until their status is known."""
        if self._client is None or self._client.is_closing():
            return
        if self._reply or self._inspect or self._rules.blackhole:
            data, self._reply = self._reply + data, b""
        if self._rules.blackhole:
            self._reply = data
            self._balance()
        elif self._inspect:
            self._look_at(data)
        else:
            self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        assert self._client is not None
        self._rules.received += len(data)
        self._client.write(data)

    def _look_at(self, data: bytes) -> None:
        """Decide on a reply by its status. An interim one (100 Continue) is passed on, and the next one decides."""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._reply = data
            return
        status = data[9:12]
        if status.startswith(b"1"):
            self._pass_on(data[: end + 4])
            self.replied(data[end + 4 :])
            return
        self._inspect = False
        if not status.startswith(b"2"):
            self._pass_on(data)
        elif self._refusal == "after":
            self._slow_down(close=True)
        elif self._rules.replies_to_lose > 0:
            self._rules.replies_to_lose -= 1
            self.abort()
        else:
            self._pass_on(data)

    def _slow_down(self, *, close: bool = False) -> None:
        assert self._client is not None
        body = b"" if self._head and self._head.verb == "head" else SLOW_DOWN
        kept = "close" if close else "keep-alive"
        head = f"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: {len(SLOW_DOWN)}\r\n"
        self._client.write(f"{head}Connection: {kept}\r\n\r\n".encode() + body)
        if close:
            self._client.close()

    def server_lost(self) -> None:
        """The server is gone; the client gets what there is and is sent away."""
        self._server_gone = True
        if self._client and not self._rules.blackhole:
            self._client.close()


class _Upstream(asyncio.Protocol):
    """The server's side of a connection: tells its Relay."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self.data_received = relay.replied  # type: ignore[method-assign]  # a call less for each piece

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._relay.server_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._relay.server_lost()

    def pause_writing(self) -> None:
        self._relay.server_full(True)

    def resume_writing(self) -> None:
        self._relay.server_full(False)
