"""Who hears that files of a bank have changed: sessions, and the streams that clients of the newest revision, which has
no sessions, open for it.

Owns the queue of changes, whom each concerns, and that nobody hears of what they may not see. Refuses to wait for one
that does not listen. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import structlog
import trio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from livememfs.errors import LiveMemError, NotFound
from livememfs.records import keys
from livememfs.records.access import Access
from livememfs.serve.toolbox import check_space

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from livememfs.cache.changes import Change
    from livememfs.cache.replica import Replica

log = structlog.get_logger("livememfs.serve")

SCHEME = "livememfs"
SECONDS = 5.0
"""How long somebody may take to hear of a change."""
QUEUED = 256
"""Changes that wait to be told; when there are more, listeners are told that all they asked for may have changed."""

Still = Callable[[], Awaitable[Access | None]]
"""What somebody may do now; None: nothing any more."""


@dataclass(eq=False)
class _Listener:
    """Somebody who hears of changes: how to find out whether they still may, how to tell them, what they asked for."""

    still: Still
    tell: Callable[[ServerEvent], Awaitable[None]]
    wanted: set[str] = field(default_factory=set)


class News:
    """Changes of the banks of one bucket. `run` must be running for them to be told."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._listeners: dict[object, _Listener] = {}
        self._send, self._receive = trio.open_memory_channel[str](QUEUED)
        self._missed = False
        self.told = 0

    def __len__(self) -> int:
        return len(self._listeners)

    def hears(self, session: Connection, still: Still) -> set[str]:
        """A session hears of changes from now on, until it ends; returns the addresses it asked for, to be changed."""
        listener = self._listeners.get(session)
        if listener is None:
            listener = self._listeners[session] = _Listener(still, partial(_notify, session))
            session.exit_stack.callback(self._listeners.pop, session, None)
        listener.still = still
        return listener.wanted

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams, still: Still
    ) -> SubscriptionsListenResult:
        """Tell over one stream, for as long as it is open, what was asked for and may be seen."""
        asked, access = params.notifications, await still()
        uris = [uri for uri in asked.resource_subscriptions or () if access is not None and sees(access, uri)]
        kept = asked.model_copy(
            update={"resource_subscriptions": uris, "tools_list_changed": None, "prompts_list_changed": None}
        )
        bus = InMemorySubscriptionBus()
        self._listeners[bus] = _Listener(still, bus.publish, set(uris))
        try:
            return await ListenHandler(bus)(context, params.model_copy(update={"notifications": kept}))
        finally:
            del self._listeners[bus]

    async def run(self) -> None:
        """Tell of changes, until cancelled."""
        changes = self._replica.changes
        changes.subscribe(self._heard)
        known: set[str] = set()
        try:
            async for key in self._receive:
                there = self._replica.names.now(key) is not None
                appeared = there != (key in known)
                known.add(key) if there else known.discard(key)
                missed, self._missed = self._missed, False
                for who, listener in list(self._listeners.items()):
                    uris = [*listener.wanted] if missed else [uri_of(key)]
                    await self._tell(who, listener, uris, appeared=appeared or missed)
        finally:
            changes.unsubscribe(self._heard)

    def _heard(self, change: Change) -> None:
        if keys.parse(change.key).kind == "bank" and self._listeners:
            try:
                self._send.send_nowait(change.key)
            except trio.WouldBlock:
                self._missed = True

    async def _tell(self, who: object, listener: _Listener, uris: Sequence[str], *, appeared: bool) -> None:
        """Tell somebody what they may know of; who does not listen, or is gone, hears no more."""
        access = await listener.still()
        seen = [uri for uri in uris if access is not None and sees(access, uri)]
        if access is None or (uris and not seen):
            return
        try:
            with trio.fail_after(SECONDS):
                for uri in listener.wanted.intersection(seen):
                    await listener.tell(ResourceUpdated(uri))
                if appeared:
                    await listener.tell(ResourcesListChanged())
            self.told += 1
        except Exception as error:  # the SDK's streams raise anyio's own kinds, which say that nobody is there
            log.info("somebody cannot be told of a change", reason=type(error).__name__)
            self._listeners.pop(who, None)


async def _notify(session: Connection, event: ServerEvent) -> None:
    if isinstance(event, ResourceUpdated):
        await session.send_resource_updated(event.uri)
    else:
        await session.send_resource_list_changed()


def sees(access: Access, uri: str) -> bool:
    """Whether an address is one of a bank that may be seen."""
    try:
        return access.sees(named(uri)[0])
    except LiveMemError:
        return False


def uri_of(key: str) -> str:
    """The address of a bank file as a resource."""
    return f"{SCHEME}://bucket/{quote(key)}"


def named(uri: str) -> tuple[str, str]:
    """The space and the bank file that an address names. NotFound, InvalidName."""
    path = unquote(uri.removeprefix(f"{SCHEME}://bucket/"))
    space, _, rest = path.partition("/")
    if not uri.startswith(f"{SCHEME}://bucket/") or not rest.startswith(f"{keys.BANK}/"):
        raise NotFound(path=f"resource {uri[:120]!a}")
    return check_space(space), rest.removeprefix(f"{keys.BANK}/")
