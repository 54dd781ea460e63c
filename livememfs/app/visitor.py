"""What one connection to a mount's socket may do: what the mount may, and no more than the token it brings.

Owns the meeting of the two, anew with each request: a token that is revoked on either side counts no more for the
other. Refuses to keep, log or pass on a secret. Trio thread only.
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
        """Be limited to a token as well; empty: there is none. NotSignedIn for one that is not good, StoreError."""
        if secret:
            await self._own.enter(secret)

    async def run(self) -> None:
        """Ask again and again what the token is worth, until cancelled; returns where there is none."""
        await self._own.run()

    async def still(self) -> Access:
        """What may be done now."""
        return meeting(self._mount.access(), self._own.access())


def meeting(mount: Access, own: Access) -> Access:
    """What both allow, by the name of the token that was brought, if there is name."""
    spaces = mount.spaces or own.spaces
    if mount.spaces and own.spaces:
        spaces = tuple(name for name in own.spaces if name in mount.spaces)
        if not spaces:
            return NOTHING  # no spaces would mean all of them
    permissions = frozenset(name for name in PERMISSIONS if mount.may(name) and own.may(name))
    return Access(own.name or mount.name, permissions, spaces)
