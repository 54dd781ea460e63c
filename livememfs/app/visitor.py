"""What one connection to a mount's socket may do: only what both the mount and the connection's own token allow.

Owns that intersection, which is made anew for each request, so that a revoked token of either side counts at once.
Refuses to keep, log or pass on a secret. Trio thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs.records.access import NOTHING, PERMISSIONS, Access
from livememfs.spaces.gate import Gate

if TYPE_CHECKING:
    from livememfs.spaces.tokens import Tokens


class Visitor:
    """One connection. `mount` is the gate of the process that serves it; without a token it is the only one."""

    def __init__(self, mount: Gate, tokens: Tokens) -> None:
        self._mount = mount
        self._own = Gate(tokens)

    async def enter(self, secret: str) -> None:
        """Limit the connection to a token; an empty `secret` is none. NotSignedIn for an invalid token, StoreError."""
        if secret:
            await self._own.enter(secret)

    async def run(self) -> None:
        """Check the token again and again until cancelled; returns at once without one."""
        await self._own.run()

    async def still(self) -> Access:
        """What the connection may do now."""
        return meeting(self._mount.access(), self._own.access())


def meeting(mount: Access, own: Access) -> Access:
    """What both allow, under the name of the connection's own token if it has one."""
    spaces = mount.spaces or own.spaces
    if mount.spaces and own.spaces:
        spaces = tuple(name for name in own.spaces if name in mount.spaces)
        if not spaces:
            return NOTHING  # no spaces would mean all of them
    permissions = frozenset(name for name in PERMISSIONS if mount.may(name) and own.may(name))
    token = "" if mount.token and own.token else own.token or mount.token
    return Access(own.name or mount.name, permissions, spaces, token)
