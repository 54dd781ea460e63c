"""The proxy itself: its port, its loop, its counts and its switches.

Owns the listening socket and the thread, if there is one. Refuses to serve two targets. `with DelayProxy(port)` runs
the loop in a thread of its own, and every method may then be called from any other thread; `run` and the `set_` methods
are for whoever has a loop already.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Literal, Self, TypeVar

from proxy.control import serve_control
from proxy.relay import Relay, Rules
from proxy.requests import Head

T = TypeVar("T")
When = Literal["before", "after"]


class DelayProxy:
    """`with DelayProxy(target_port) as proxy`: a server on `proxy.port` that passes everything on to the target.

    :latency:  seconds for which the first bytes of each request are held back; may be set at any time
    :keep_log: remember each request's verb and target

    A verb is `get`, `head`, `put`, `copy`, `delete`, `list`, or `other` for everything else, in which requests for the
    bucket itself are (but for `head`, and `put`, which makes it). A target is as it was sent, query included.
    """

    def __init__(
        self,
        target_port: int,
        *,
        target_host: str = "127.0.0.1",
        port: int = 0,
        latency: float = 0.0,
        keep_log: bool = False,
    ) -> None:
        self.keep_log = keep_log
        self._target = (target_host, target_port)
        self._rules = Rules(latency=latency, note=self._note, connect=self._connect)
        self._counts: Counter[str] = Counter()
        self._log: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        # Bound and never listened on: keeps the port ours while connections are refused.
        self._place = _bound(port)
        self.port: int = self._place.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    # --- running ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.run(ready)), name="DelayProxy", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop and self._stop and self._thread:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    async def run(self, ready: threading.Event | None = None, *, control_port: int | None = None) -> None:
        """Serve until cancelled, or until the `with` block ends. `ready` is set once connections are accepted."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        control = None
        try:
            await self._listen()
            if control_port is not None:
                control = await serve_control(self, control_port)
                print(json.dumps({"port": self.port, "control": control.sockets[0].getsockname()[1]}), flush=True)
            if ready:
                ready.set()
            await self._stop.wait()
        finally:
            if control:
                control.close()
            self._place.close()
            for relay in self._hang_up():
                await relay.closed.wait()

    async def _listen(self) -> None:
        if self._server is None:
            assert self._loop is not None
            place = _bound(self.port)
            self._server = await self._loop.create_server(lambda: Relay(self._rules), sock=place, backlog=1024)

    def _hang_up(self) -> list[Relay]:
        """Stop accepting, and end every connection there is. Returns them."""
        if self._server is not None:
            self._server.close()
            self._server = None
        relays = list(self._rules.relays)
        for relay in relays:
            relay.abort()
        return relays

    async def _connect(self, protocol: asyncio.Protocol) -> None:
        assert self._loop is not None
        await self._loop.create_connection(lambda: protocol, *self._target)

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop and wait for it. For other threads."""
        assert self._loop is not None, "the proxy does not run"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # --- what went through --------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """How many requests of each verb have come since the last reset, those in a blackhole included."""
        with self._changed:
            return dict(self._counts)

    def log(self) -> list[tuple[str, str]]:
        """(verb, target) of each request since the last reset, if `keep_log` is on."""
        with self._changed:
            return list(self._log)

    def reset(self) -> dict[str, int]:
        """Forget the counts and the log. Returns the counts as they were, so that none falls between two calls."""
        with self._changed:
            counts = dict(self._counts)
            self._counts.clear()
            self._log.clear()
            return counts

    def traffic(self) -> dict[str, int]:
        """Bytes, headers included, that went to the server (`sent`) and came from it (`received`) since the start."""
        return {"sent": self._rules.sent, "received": self._rules.received}

    def wait_for_requests(self, count: int, verb: str | None = None, timeout: float = 10.0) -> None:
        """Block until `count` requests (of one verb, if given) have come since the last reset. Raises TimeoutError."""

        def seen() -> int:
            return self._counts.total() if verb is None else self._counts[verb]

        with self._changed:
            if not self._changed.wait_for(lambda: seen() >= count, timeout):
                raise TimeoutError(f"{seen()} of {count} requests within {timeout} seconds")

    def _note(self, head: Head) -> None:
        with self._changed:
            self._counts[head.verb] += 1
            if self.keep_log:
                self._log.append((head.verb, head.target))
            self._changed.notify_all()

    # --- what goes wrong ----------------------------------------------------------------------------------------

    @property
    def latency(self) -> float:
        """Seconds before a request is passed on."""
        return self._rules.latency

    @latency.setter
    def latency(self, seconds: float) -> None:
        self._rules.latency = seconds

    @property
    def blackhole(self) -> bool:
        """While this is on, nothing goes in either direction, though connections are accepted.

        Switched off, what waited goes on. A request whose client has hung up meanwhile never reaches the server.
        """
        return self._rules.blackhole

    @blackhole.setter
    def blackhole(self, on: bool) -> None:
        self._ask(self.set_blackhole(on))

    async def set_blackhole(self, on: bool) -> None:
        """The same from within the loop."""
        self._rules.blackhole = on
        for relay in list(self._rules.relays):
            relay.go_on()

    @property
    def refusing(self) -> bool:
        """While this is on, no connection is accepted; switching it on also breaks those there are."""
        return self._server is None

    @refusing.setter
    def refusing(self, on: bool) -> None:
        self._ask(self.set_refusing(on))

    async def set_refusing(self, on: bool) -> None:
        """The same from within the loop."""
        if on:
            self._hang_up()
        else:
            await self._listen()

    def lose_replies(self, writes: int) -> None:
        """Break the connection instead of passing the reply on, for the next so many writes that succeed."""
        self._rules.replies_to_lose = writes

    def slow_down(self, fraction: float, *, when: When = "before", seed: int = 0) -> None:
        """Answer `fraction` (0 to 1) of all requests with 503 SlowDown; which ones is decided by `seed`.

        `before`: the server never sees them. `after`: it has done what they asked for; its own refusals are passed on.
        """
        self._rules.refuse = (fraction, when, random.Random(seed))


def _bound(port: int) -> socket.socket:
    # The protocol is named, since asyncio turns Nagle's algorithm off only where it finds that name. With Nagle, a
    # reply in two pieces waits 40 ms for the first to be acknowledged.
    place = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    place.bind(("127.0.0.1", port))
    return place
