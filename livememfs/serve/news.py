"""Reports changes of bank files to MCP clients: to sessions, and to the streams of clients of the newest revision,
which has no sessions.

Owns the queue of changes, their recipients, and that a client gets only changes it may see. Refuses to wait for a
client that does not read. Trio thread only.
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
"""Most seconds for the delivery of a change."""
QUEUED = 256
"""Most waiting changes; after more, all subscribed files are reported as changed."""

Still = Callable[[], Awaitable[Access | None]]
"""Gives the present access of a caller; None: the access has ended."""


@dataclass(eq=False)
class _Listener:
    """A recipient of changes: a check of its access, a way to send, and the subscribed addresses."""

    still: Still
    tell: Callable[[ServerEvent], Awaitable[None]]
    wanted: set[str] = field(default_factory=set)


class News:
    """Changes of the banks of one bucket. `run` must run, or nothing is reported."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._listeners: dict[object, _Listener] = {}
        self._send, self._receive = trio.open_memory_channel[str](QUEUED)
        self._missed = False
        self.told = 0

    def __len__(self) -> int:
        return len(self._listeners)

    def hears(self, session: Connection, still: Still) -> set[str]:
        """Report changes to a session until it ends; returns its subscribed addresses, a set to be changed."""
        listener = self._listeners.get(session)
        if listener is None:
            listener = self._listeners[session] = _Listener(still, partial(_notify, session))
            session.exit_stack.callback(self._listeners.pop, session, None)
        listener.still = still
        return listener.wanted

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams, still: Still
    ) -> SubscriptionsListenResult:
        """Report the wanted and visible changes over one stream, while it is open."""
        wanted, access = params.notifications, await still()
        uris = [uri for uri in wanted.resource_subscriptions or () if access is not None and sees(access, uri)]
        kept = wanted.model_copy(
            update={"resource_subscriptions": uris, "tools_list_changed": None, "prompts_list_changed": None}
        )
        bus = InMemorySubscriptionBus()
        self._listeners[bus] = _Listener(still, bus.publish, set(uris))
        try:
            return await ListenHandler(bus)(context, params.model_copy(update={"notifications": kept}))
        finally:
            del self._listeners[bus]

    async def run(self) -> None:
        """Report changes, until cancelled."""
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
        """Report to one recipient the changes it may see; remove it if it does not read or is gone."""
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
        except Exception as error:  # the SDK's streams raise various errors of anyio when the client is gone
            log.info("somebody cannot be told of a change", reason=type(error).__name__)
            self._listeners.pop(who, None)


async def _notify(session: Connection, event: ServerEvent) -> None:
    if isinstance(event, ResourceUpdated):
        await session.send_resource_updated(event.uri)
    else:
        await session.send_resource_list_changed()


def sees(access: Access, uri: str) -> bool:
    """Whether an address is in a bank that this access sees."""
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
