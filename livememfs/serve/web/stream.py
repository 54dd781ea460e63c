"""`/events`: server-sent events, while a client reads and has access.

Owns the form of the stream, its heartbeat and its end: with the client, with its access, or with the server. Refuses to
wait for a client that does not read. Trio thread only.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from starlette.responses import Response

from livememfs.errors import LiveMemError
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.events import LOOK_SECONDS
from livememfs.serve.web.render import error_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from livememfs.records.access import Access
    from livememfs.serve.web.events import Events, PageEvent
    from livememfs.serve.web.site import Site

HEARTBEAT = 15.0
"""Seconds between two heartbeats, and between two checks of the access."""
SEND_SECONDS = 20.0
STREAMS, STREAMS_OF_A_TOKEN = 128, 32
RETRY_MS = 2_000


async def events(site: Site, request: Request) -> Response:
    """The stream, from `Last-Event-ID` or `?after=` on; of one space with `?space=`."""
    access, space = access_of(request), request.query_params.get("space", "")
    if space:
        access.require(space)
    holder = getattr(request.state, "holder", "")
    full = site.events.streams.total() >= STREAMS or site.events.streams[holder] >= STREAMS_OF_A_TOKEN
    if site.events.closed or full:
        return error_page(503, "Too many pages are listening.", "Close some of them.", access=access)
    place = request.headers.get("last-event-id") or request.query_params.get("after", "")
    still = request.state.still  # the guard's, which asks again for the access
    return EventStream(site.events, access, still, place=place, space=space, timeout=site.timeout, holder=holder)


class _Stuck(Exception):
    """The client does not read any more."""


class EventStream(Response):
    """One client. `still()` gives its present access; None: the access has ended."""

    def __init__(
        self,
        events: Events,
        access: Access,
        still: Callable[[], Awaitable[Access | None]],
        *,
        place: str = "",
        space: str = "",
        timeout: float = 30.0,
        holder: str = "",
    ) -> None:
        super().__init__(media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.events, self.access, self.still, self.space, self.timeout = events, access, still, space, timeout
        self.place, self.holder = place, holder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the client until the end."""
        self.events.streams[self.holder] += 1
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until_gone, receive, nursery.cancel_scope)
                with suppress(_Stuck):
                    await self._serve(send)
                nursery.cancel_scope.cancel()
        finally:
            self.events.streams[self.holder] -= 1
            self.events.streams += Counter()  # drops counts of zero

    async def _serve(self, send: Send) -> None:
        self.events.look()
        number = self.events.number_of(self.place) if self.place else self.events.last
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await self._send(send, f"retry: {RETRY_MS}\n\n")
        if number is None:
            number = await self._begin_anew(send)
        elif not self.place:
            await self._send(send, f"id: {self.events.place(number)}\nevent: hello\ndata: {{}}\n\n")
        await self._tell(send, number)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send, number: int) -> None:
        """Send events and wait for more, until the access or the server ends."""
        beat = trio.current_time() + HEARTBEAT
        while not self.events.closed:
            if not self.events.has_since(number):
                number = await self._begin_anew(send)
            for event in self.events.since(number):
                number = event.number
                if self._sees(event):
                    await self._send(send, self._text(event))
            if self.space:
                self.events.watch(self.space)
            with trio.move_on_after(LOOK_SECONDS):
                await self.events.news(number)
            self.events.look()
            if trio.current_time() >= beat:
                beat = trio.current_time() + HEARTBEAT
                if not await self._may_go_on():
                    return
                await self._send(send, ": still here\n\n")

    async def _may_go_on(self) -> bool:
        """Whether the access is still valid. After an error it is not: the client connects again, with a new check."""
        try:
            with trio.fail_after(self.timeout):
                access = await self.still()
        except (LiveMemError, trio.TooSlowError):
            return False
        if access is None or (self.space and not access.sees(self.space)):
            return False
        self.access = access
        return True

    def _sees(self, event: PageEvent) -> bool:
        if not event.space:
            return True
        return self.access.sees(event.space) and self.space in ("", event.space)

    async def _begin_anew(self, send: Send) -> int:
        """Tell the client that it missed events. Returns the number to continue from."""
        number = self.events.last
        await self._send(send, f"id: {self.events.place(number)}\nevent: reset\ndata: {{}}\n\n")
        return number

    def _text(self, event: PageEvent) -> str:
        return f"id: {self.events.place(event.number)}\nevent: {event.kind}\ndata: {event.data}\n\n"

    async def _send(self, send: Send, text: str) -> None:
        """Send, or raise _Stuck."""
        with trio.move_on_after(SEND_SECONDS) as patience:
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        if patience.cancelled_caught:
            raise _Stuck


async def _until_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
