"""What this process may do for its users: everything, or what one token allows.

Owns that answer, and checking the token again: a token that was revoked or changed counts for at most `AGAIN` seconds
more. While the bucket does not answer, the last answer counts, until the token expires. Refuses to keep a token's
secret. Trio thread only.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.errors import LiveMemError, NotSignedIn
from livememfs.records.access import EVERYTHING, NOTHING, Access
from livememfs.records.token import hash_of

if TYPE_CHECKING:
    from livememfs.spaces.tokens import Tokens

log = structlog.get_logger("livememfs.spaces")

AGAIN = 5.0


@dataclass(frozen=True)
class GateStatistics:
    """Whether there is a token, whether it is valid, and how often it was checked again."""

    limited: bool
    good: bool
    asked: int


class Gate:
    """The access of this process. Without a token it is everything, and nothing is checked."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._digest = ""
        self._access = EVERYTHING
        self._asked = 0

    @property
    def limited(self) -> bool:
        """Whether there is a token."""
        return bool(self._digest)

    def access(self) -> Access:
        """What may be done now."""
        return self._access

    async def still(self) -> Access:
        """The same, for callers that can wait."""
        return self._access

    async def enter(self, secret: str) -> None:
        """Limit the access to a token from now on. NotSignedIn for one that is not valid, StoreError."""
        access = await self._tokens.access(secret)
        if access is None:
            raise NotSignedIn()
        self._digest, self._access = hash_of(secret), access

    async def run(self) -> None:
        """Check the token every `AGAIN` seconds, until cancelled."""
        while self.limited:
            await trio.sleep(AGAIN)
            self._asked += 1
            with suppress(LiveMemError):
                access = await self._tokens.access_of(self._digest, stale=math.inf)
                if access is None and self._access is not NOTHING:
                    log.warning("the token is good no more", name=self._access.name)
                self._access = access or NOTHING

    def statistics(self) -> GateStatistics:
        """Counters, cheap."""
        return GateStatistics(self.limited, self._access is not NOTHING, self._asked)
